"""data/reactions.py: molecules, what becomes of their atoms, and the model."""

from pathlib import Path

import numpy
import pytest
import torch

from annotated.attention import record_attention
from annotated.data import reactions
from annotated.data.datasets import DataError
from annotated.data.reactions import (
    FILES,
    HEAD,
    LAYER,
    Reaction,
    alike,
    atom_places,
    attention_maps,
    encode,
    is_atom,
    links,
    parse,
    reaction_model,
    right_links,
    tokenize,
    vocabulary,
)

# ---- the text ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("CO.CBr>>COC", "C O . C Br >> C O C"),
        ("ClCCl", "Cl C Cl"),
        ("BrB(O)I", "Br B ( O ) I"),
        ("c1c[nH]cn1", "c 1 c [nH] c n 1"),
        ("C[N+](C)(C)C.[OH-]", "C [N+] ( C ) ( C ) C . [OH-]"),
        ("C%12CC%12", "C %12 C C %12"),
        ("F/C=C\\F", "F / C = C \\ F"),
        ("N#C[C@@H](N)C", "N # C [C@@H] ( N ) C"),
        ("CC[MASK]C", "C C [MASK] C"),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens.split()


@pytest.mark.parametrize(
    ("text", "rest"), [("CCx", "from 2 on: 'x'"), ("C[NH", r"from 1 on: '\[NH'")]
)
def test_what_can_not_be_read_is_named_with_its_place(text, rest):
    with pytest.raises(ValueError, match=f"text can't be read {rest}"):
        tokenize(text)


def test_atoms_among_the_tokens():
    atoms = "C", "Cl", "c", "[nH]", "[O-]", "[Na+]", "[H]"
    others = "(", ")", "=", "1", "%12", ".", ">>", "[MASK]", "[CLS]", "[SEP]", "[UNK]"
    assert all(map(is_atom, atoms)) and not any(map(is_atom, others))


def test_places_are_those_among_the_ids():
    text = "CO.C[MASK]>>C(O)C"
    before, behind = atom_places(text)
    assert (before, behind) == ([1, 2, 4], [7, 9, 11])
    ids = {i: token for token, i in vocabulary().items()}
    tokens = [ids[i] for i in encode(text)[0].tolist()]
    assert tokens == ["[CLS]", *tokenize(text), "[SEP]"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CO", "text must hold one '>>', got 'CO'"),
        ("C>>O>>C", "text must hold one '>>'"),
        ("C>>", "text must hold atoms on both sides of '>>', got 'C>>'"),
        (">>C", "text must hold atoms on both sides"),
    ],
)
def test_what_is_no_reaction_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        atom_places(text)


def test_an_unknown_token_is_unknown_to_the_model():
    ids = vocabulary()
    wanted = [ids[token] for token in ("[CLS]", "[UNK]", "C", "[SEP]")]
    assert encode("[Xx]C")[0].tolist() == wanted


# ---- molecules -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "atoms", "bonds"),
    [
        ("CC(=O)O", "C3 C0 O0 O1", "01 12 13"),
        ("CS(=O)(=O)C#N", "C3 S0 O0 O0 C0 N0", "01 12 13 14 45"),
        ("C1CC1.Cl", "C2 C2 C2 Cl1", "01 12 02"),
        ("c1cc[nH]c1", "c1 c1 c1 n1 c1", "01 12 23 34 04"),
        ("c1ccncc1", "c1 c1 c1 n0 c1 c1", "01 12 23 34 45 05"),
        ("O=c1ccn(C)c1", "O0 c0 c1 c1 n0 C3 c1", "01 12 23 34 45 46 16"),
        ("C%10=CC%10", "C1 C1 C2", "01 12 02"),
        ("C1CC=1", "C1 C2 C1", "01 12 02"),
        ("[O-][N+](=O)[13CH3]", "O0 N0 O0 C3", "01 12 13"),
        ("[C@@H](F)(Cl)[SiH2]Br", "C1 F0 Cl0 Si2 Br0", "01 02 03 34"),
        ("[H][H].[Pd]", "H0 H0 Pd0", "01"),
    ],
)
def test_a_molecule_is_atoms_with_hydrogens_and_neighbours(text, atoms, bonds):
    found, near = parse(text)
    assert " ".join(f"{element}{count}" for element, count in found) == atoms
    pairs = {(i, j) for i, those in enumerate(near) for j in those}
    one_way = {(int(bond[0]), int(bond[1])) for bond in bonds.split()}
    assert pairs == one_way | {(j, i) for i, j in one_way}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C(C", r"text leaves \['\('\] open"),
        ("C)C", r"text has no '\(' for a '\)': 'C\)C'"),
        ("C1CC", r"text leaves \['1'\] open"),
        ("1CC1", "text has no atom before a digit"),
        ("[C+&]", r"text has an atom that can't be read: \[C\+&\]"),
    ],
)
def test_a_molecule_that_can_not_be_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("Cc1ccccc1", "abcdedc"),  # two places ortho, two meta
        ("CC(=O)O", "abcd"),  # one oxygen has a hydrogen
        ("CC(=O)[O-]", "abcc"),
        ("C[N+](=O)[O-]", "abcc"),
        ("CCO.CCO", "abcabc"),
        ("CC(C)(C)OC(=O)OC(=O)OC(C)(C)C", "abaacdefdecbaaa"),
        ("CCCCC", "abcba"),
        ("CCCCCCC", "abcdcba"),  # takes several rounds
    ],
)
def test_atoms_that_symmetry_can_not_tell_apart_are_alike(text, classes):
    found = alike(text)
    pairs = {*zip(found, classes, strict=True)}
    assert len(pairs) == len({*found}) == len({*classes})


# ---- reactions whose atoms can be followed -----------------------------------------


def test_an_atom_may_be_any_that_is_like_its_origin():
    one = Reaction("ether", "CBr.Oc1ccccc1>>COc1ccccc1", (0, 2, 3, 4, 5, 6, 7, 8))
    assert one.right() == [{0}, {2}, {3}, {4, 8}, {5, 7}, {6}, {5, 7}, {4, 8}]


def test_atoms_that_were_alike_need_not_be_so_in_the_product():
    origins = (2, 3, 4, 5, 6, 7, 8, 0)
    one = Reaction("bromide", "BrBr.Cc1ccccc1>>Cc1ccccc1Br", origins)
    assert one.right() == [{2}, {3}, {4, 8}, {5, 7}, {6}, {5, 7}, {4, 8}, {0, 1}]


def test_atoms_that_are_alike_in_the_product_may_change_places():
    one = Reaction("ether", "CBr.CO>>COC", (0, 3, 2))
    assert one.right() == [{0, 2}, {3}, {0, 2}]


def test_the_reactions_on_board():
    every = reactions.reactions()
    assert len(every) == 158
    assert len({one.kind for one in every}) == 51
    assert len({one.text for one in every}) == len(every)
    assert sum(len(one.origins) for one in every) == 2064
    known = vocabulary()
    for one in every:
        assert {*tokenize(one.text)} <= known.keys(), one.text
        before, behind = (parse(side)[0] for side in one.text.split(">>"))
        assert len({*one.origins}) == len(one.origins) == len(behind)
        for (element, _), origin in zip(behind, one.origins, strict=True):
            assert element.lower() == before[origin][0].lower(), one.text


def test_other_spellings_are_of_the_same_product():
    for one, several in zip(reactions.reactions(), reactions.respelled(), strict=True):
        texts = {one.text, *(other.text for other in several)}
        assert len(texts) == len(several) + 1 > 2
        assert {text.split(">>")[0] for text in texts} == {one.text.split(">>")[0]}
        wanted = bonds_by_origin(one)
        for other in several:
            assert other.kind == one.kind
            assert {*tokenize(other.text)} <= vocabulary().keys()
            assert bonds_by_origin(other) == wanted, other.text
    assert sum(map(len, reactions.respelled())) == 1530


def bonds_by_origin(one: Reaction) -> tuple[dict, set]:
    """A product's atoms and bonds, named by the atoms of the reactants they were."""
    atoms, near = parse(one.text.split(">>")[1])
    names = dict(zip(one.origins, atoms, strict=True))
    bonds = {
        (one.origins[i], one.origins[j]) for i, those in enumerate(near) for j in those
    }
    return names, bonds


def test_most_bonds_of_a_product_were_there_before():
    """What a rule of chemistry breaks and makes is little."""
    for one in reactions.reactions():
        near, bonds = (parse(side)[1] for side in one.text.split(">>"))
        pairs = {(i, j) for i, those in enumerate(bonds) for j in those if i < j}
        new = {p for p in pairs if one.origins[p[1]] not in near[one.origins[p[0]]]}
        assert len(new) <= 2, one.text


# ---- the model -----------------------------------------------------------------


def reference() -> dict[str, torch.Tensor]:
    file = numpy.load(Path(__file__).parents[1] / "references" / "rxnmapper.npz")
    return {name: torch.from_numpy(file[name]) for name in file.files}


def test_the_model_is_the_one_of_transformers():
    wanted, model = reference(), reaction_model().double()
    assert not model.training
    with record_attention(model) as maps, torch.no_grad():
        states = model(wanted["ids"])
    (calls,) = maps.values()
    found = {
        "attentions": torch.stack(calls),
        "logits": model.guess_tokens(states[0, 6]),
        "pooled": model.pool(states),
    }
    for name, x in found.items():
        torch.testing.assert_close(x.float(), wanted[name], rtol=1e-5, atol=1e-5)
    assert sum(p.numel() for p in model.parameters()) == 801_359


def test_maps_are_those_of_all_layers():
    maps = attention_maps(reaction_model(), "CO.CBr>>COC")
    wanted = reference()["attentions"][:, 0, :, :11, :11]  # the first is the shorter
    torch.testing.assert_close(maps, wanted, rtol=1e-4, atol=1e-5)


def test_a_link_is_the_largest_weight_among_atoms():
    text = "C(O).CBr>>COC"  # tokens: [CLS] C ( O ) . C Br >> C O C [SEP]
    maps = torch.zeros(2, 3, 13, 13)
    maps[..., 0] = 9.0  # [CLS] is no atom,
    maps[..., 11] = 9.0  # this one is of the product,
    maps[..., 2] = 9.0  # and this is a bracket
    maps[1, 2, 9, 1] = maps[1, 2, 10, 3] = maps[1, 2, 11, 6] = 1.0
    found = links(maps, text)
    assert found.shape == (2, 3, 3)
    assert found[1, 2].tolist() == [0, 1, 2]
    one = Reaction("ether", text, (0, 1, 2))
    right = right_links(found, one)
    assert right[1, 2].tolist() == [True, True, True]
    assert right[0, 0].tolist() == [True, False, True]  # carbon 0 may be either


def test_the_named_head_follows_an_ester():
    one = reactions.reactions()[0]
    found = links(attention_maps(reaction_model(), one.text), one.text)
    right = right_links(found, one).double().mean(dim=-1)
    assert one.kind == "esterification" and right[LAYER, HEAD] == 1.0


@pytest.mark.parametrize(
    ("name", "read"),
    [("model.safetensors", reaction_model), ("vocab.txt", vocabulary.__wrapped__)],
)
def test_a_damaged_file_is_refused(name, read, monkeypatch):
    monkeypatch.setitem(FILES, name, "0" * 64)
    with pytest.raises(DataError, match=f"{name} is not the file"):
        read()
