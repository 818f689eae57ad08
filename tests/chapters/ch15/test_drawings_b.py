"""ch15/drawings_b.py: molecules, links, deletions, and what mistakes cost."""

import base64
import copy

import pytest
import torch

from annotated.chapters.ch15 import drawings_b as ch15b
from annotated.data import vendored
from annotated.data.reactions import (
    HEAD,
    LAYER,
    Reaction,
    attention_maps,
    links,
    parse,
    reaction_model,
    reactions,
)


@pytest.fixture(scope="module")
def model():
    return reaction_model()


# ---- molecules -----------------------------------------------------------------


def test_letters_stand_at_all_atoms_but_carbon():
    assert ch15b.letters("C[O-].[Na+].Clc1cc[nH]c1.C[N+](C)C") == (
        ["", "O⁻", "Na⁺", "Cl", "", "", "", "N", "", "", "N⁺", "", ""]
    )


def test_a_kind_is_found_by_its_number():
    first, second = (ch15b.reaction("Mitsunobu ester", which) for which in (0, 1))
    assert first.kind == second.kind == "Mitsunobu ester"
    assert second.text.endswith(">>CC(=O)OC1CCCCC1") and first.text != second.text


@pytest.mark.parametrize("text", ch15b.drawn_reactions())
def test_what_is_drawn_is_the_molecule_of_the_text(text):
    assert text in {one.text for one in reactions()}
    sides = ch15b.drawn_reactions()[text]
    for side, told in zip(("before", "behind"), text.split(">>"), strict=True):
        _, near = parse(told)
        wanted = {(i, j) for i, those in enumerate(near) for j in those if i < j}
        atoms = [atom for one in sides[side] for atom in one["atoms"]]
        bonds = [bond for one in sides[side] for bond in one["bonds"]]
        assert sorted(i for i, *_ in atoms) == list(range(len(near)))
        assert {(min(i, j), max(i, j)) for i, j, _ in bonds} == wanted
        place = {i: complex(x, y) for i, x, y in atoms}
        for i, j, order in bonds:
            assert order in (1, 2, 3)
            assert 0.7 < abs(place[i] - place[j]) < 1.6
        for one in sides[side]:
            assert min(x for _, x, _ in one["atoms"]) == 0
            assert min(y for *_, y in one["atoms"]) == 0


# ---- guessing ------------------------------------------------------------------


def test_a_guess_follows_the_other_side(model):
    text = "CC{}.O=C(O)c1ccccc1F.O=S(=O)(O)O>>CC[MASK]C(=O)c1ccccc1F"
    for letter in "OSN":
        found = ch15b.guesses(model, text.format(letter))
        chances = [chance for _, chance in found]
        assert found[0][0] == letter and len(found) == 5
        assert chances == sorted(chances, reverse=True) and sum(chances) <= 1


# ---- weights -------------------------------------------------------------------


def test_parameters_are_counted_for_each_saving(model):
    narrow, shared = {"embedding_width": 128}, {"shared": True}
    ways = ({}, narrow, shared, narrow | shared)
    counts = [ch15b.parameters(**changes) for changes in ways]
    assert counts[-1] == sum(p.numel() for p in model.parameters())
    assert [round(4 * counts[i] / 1e6) for i in (0, 3)] == [27, 3]  # megabytes
    one = 4 * (256 * 256 + 256) + 2 * 256 * 512 + 256 + 512 + 4 * 256  # a layer
    assert counts[0] - counts[2] == counts[1] - counts[3] == 11 * one


def by_hand(w, ids, times=12, widen=True):
    e = "albert.embeddings."
    x = w[f"{e}word_embeddings.weight"][ids]
    x = x + w[f"{e}position_embeddings.weight"][: ids.shape[1]]
    x = x + w[f"{e}token_type_embeddings.weight"][0]
    x = ch15b.norm(w, f"{e}LayerNorm", x)
    x = ch15b.linear(w, "albert.encoder.embedding_hidden_mapping_in", x)
    for _ in range(times):
        x = ch15b.layer(w, x)
    return x


def test_the_surgery_is_proved_and_a_layer_too_few_refused(capsys):
    state = ch15b.weights()
    ch15b.check_surgery(by_hand, state)
    said = capsys.readouterr().out
    assert said.count("✓") == 3 and "801,359 numbers" in said
    with pytest.raises(AssertionError):
        ch15b.check_surgery(lambda w, ids: by_hand(w, ids, times=11), state)


# ---- where each atom looks -----------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Four reactions, among them one that the head gets wrong."""
    some = reactions()[0], reactions()[3], reactions()[10], ch15b.reaction("indole")
    monkeypatch.setattr(ch15b, "reactions", lambda: some)
    return some


def test_shares_are_over_all_atoms(model, few):
    shares = ch15b.head_shares(model)
    atoms = sum(len(one.origins) for one in few)
    assert shares.shape == (12, 8)
    assert shares[LAYER, HEAD] == pytest.approx((12 + 9 + 9 + 4) / atoms)


def test_preferences_are_of_the_named_layer(model):
    margins = ch15b.margins(model)
    maps = attention_maps(model, ch15b.reaction("esterification").text)[LAYER]
    # tokens: [CLS] C C O . O = C ( O ) …; the oxygen of the product is number 35
    assert torch.equal(margins[0], maps[:, 35, 3] - maps[:, 35, 9])
    assert (margins[:, HEAD] > 0.05).all() and margins.shape == (3, 8)


# ---- is it used? ---------------------------------------------------------------


def test_hidden_are_all_atoms_but_carbon(few):
    mask = ch15b.vocabulary()["[MASK]"]
    rows = ch15b.hidden_atoms(1)
    assert [len(places) for _, places, _ in rows] == [3, 3, 2, 1]
    for (ids, places, right), one in zip(rows, few, strict=True):
        whole = ch15b.encode(one.text)[0]
        for row, place, token in zip(ids, places, right, strict=True):
            assert row[place] == mask and token == whole[place] != mask
            assert (row != whole).sum() == 1
    assert len(ch15b.hidden_atoms(2)) == 2


def without(model, head, layers):
    copied = copy.deepcopy(model)
    cut = slice(32 * head, 32 * (head + 1))
    for i in layers:
        own = copy.deepcopy(model.encoder.layers[i])
        own.attention.output_map.weight.data[:, cut] = 0
        copied.encoder.layers[i] = own
    return copied


def test_without_the_head_guesses_go_wrong(model, few):
    rows = ch15b.hidden_atoms(1)
    assert ch15b.guessed(model, rows) > 0.7
    assert ch15b.guessed(model, rows[:1]) == 1
    shares = ch15b.without_head(model, without, every=1)
    assert shares["1 to 12"] == min(shares.values()) < 0.7
    for name, first, end in (("9 to 12", 9, 12), ("11", 11, 11)):
        layers = range(first - 1, end)
        assert shares[name] == ch15b.guessed(without(model, HEAD, layers), rows)


# ---- the explorer --------------------------------------------------------------


def test_an_item_holds_the_largest_weights(model):
    one = ch15b.reaction("esterification")
    item = ch15b.item(model, one)
    packed = torch.tensor(list(base64.b64decode(item["bytes"])))
    table = packed.reshape(12, 8, 12, ch15b.TOP, 2)
    maps = attention_maps(model, one.text)
    assert torch.equal(table[..., 0, 0], links(maps, one.text))
    weight = maps[LAYER, HEAD, 35, 3].item()  # the two oxygens, among tokens
    assert table[LAYER, HEAD, 2, 0].tolist() == [2, round(100 * weight)]
    assert (table[..., 1:, 1] <= table[..., :-1, 1]).all()
    assert item["may"][0] == [0] and len(item["may"]) == 12
    assert item["letters"][1] == ch15b.letters(one.text.split(">>")[1])
    assert item["before"] and item["behind"]


# ---- pitfalls, and a file that isn't there -------------------------------------


def test_mistakes_cost_links(model, few):
    cost = ch15b.careless_shares(model, every=1)
    assert cost["right"] == pytest.approx(34 / sum(len(one.origins) for one in few))
    assert cost["no [CLS]"] < 0.75 * cost["right"]
    assert cost["no symmetry"] < cost["right"]


def test_symmetry_counts_only_for_one_that_has_it(model, monkeypatch):
    chain = Reaction("none", ch15b.reaction("esterification").text, tuple(range(12)))
    monkeypatch.setattr(ch15b, "reactions", lambda: [chain])
    found = links(attention_maps(model, chain.text), chain.text)[LAYER, HEAD]
    wanted = (found == torch.arange(12)).double().mean().item()
    cost = ch15b.careless_shares(model, 1)
    assert cost["no symmetry"] == pytest.approx(wanted)
    before, behind = ch15b.atom_places(chain.text)
    maps = attention_maps(model, chain.text)[LAYER, HEAD]
    chosen = maps[[i - 1 for i in behind]][:, [i - 1 for i in before]].argmax(dim=-1)
    hits = [i.item() in may for i, may in zip(chosen, chain.right(), strict=True)]
    assert cost["no [CLS]"] == pytest.approx(sum(hits) / 12)


def test_without_the_file_the_page_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(vendored, "files", lambda name: tmp_path)
    monkeypatch.setattr(vendored, "_addresses", lambda name: [])
    assert ch15b.weights() is None
    assert "is not in this installation" in capsys.readouterr().out
    for html in (
        ch15b.guess_table(None, {}),
        ch15b.map_explorer(None),
        ch15b.missing(),
    ):
        assert "is not in this installation" in html.text
    ch15b.check_surgery(by_hand, None)
    assert "✓" not in capsys.readouterr().out
    record = {"best of halves": [], "random": []}
    assert "fewer of the links are right" in ch15b.pitfalls_said(None, record)
