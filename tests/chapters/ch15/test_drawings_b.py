"""ch15/drawings_b.py: molecules, links, deletions and what is said of them."""

import base64
import copy
import json
from collections import Counter
from itertools import pairwise
from math import hypot
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.chapters.ch15 import drawings_b as ch15b
from annotated.data.reactions import (
    CONFIG,
    HEAD,
    LAYER,
    Reaction,
    attention_maps,
    links,
    parse,
    reaction_model,
    reactions,
)

ROOT = Path(__file__).resolve().parents[3]
RECORD = json.loads((ROOT / "book" / "results" / "reactions.json").read_text())


@pytest.fixture(scope="module")
def model():
    return reaction_model()


def soup(html):
    return BeautifulSoup(html.text, "html.parser")


def cells(html):
    return [
        [cell.text for cell in row.select("th, td")] for row in soup(html).select("tr")
    ]


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


def test_molecules_stand_side_by_side_inside_the_drawing():
    sides = ch15b.drawn_reactions()[ch15b.reaction("esterification").text]
    drawing = ch15b.Molecules(350, 100)
    places = drawing.lay(sides["before"], 20)
    across = [[places[i][0] for i, *_ in one["atoms"]] for one in sides["before"]]
    assert 0 < min(across[0]) and max(across[-1]) < 350
    for one, other in pairwise(across):
        assert min(other) - max(one) >= 40
    assert [text for *_, text in drawing.parts] == ["+", "+"]
    assert min(y for _, y in places.values()) == pytest.approx(20, abs=0.1)
    margins = min(across[0]), 350 - max(across[-1])
    assert margins[0] == pytest.approx(margins[1], abs=0.5)


def test_bonds_are_as_many_lines_as_their_order_and_stop_at_letters():
    one = {"atoms": [[0, 0, 0], [1, 1, 0]], "bonds": [[0, 1, 3]]}
    drawing = ch15b.Molecules(100, 40)
    drawing.molecule(one, {0: (10.0, 20.0), 1: (40.0, 20.0)}, ["", "N"])
    lines = [named for tag, named, _ in drawing.parts if tag == "line"]
    assert sorted(line["y1"] for line in lines) == [16.5, 20, 23.5]
    assert {(line["x1"], line["x2"]) for line in lines} == {(10, 31)}
    (letter,) = [text for tag, _, text in drawing.parts if tag == "text"]
    assert letter == "N"


def test_a_link_says_whether_it_is_right():
    drawing = ch15b.Molecules(100, 100)
    drawing.link((10, 90), (10, 10), True)
    drawing.link((10, 90), (10, 10), False)
    right, wrong = (named for _, named, _ in drawing.parts)
    assert right["stroke"] == "var(--at-right)" and "stroke-dasharray" not in right
    assert wrong["stroke"] == "var(--at-wrong)" and wrong["stroke-dasharray"]
    assert (right["y1"], right["y2"]) == (80, 20)


def test_the_first_picture_links_each_atom_of_the_ester():
    drawn = soup(ch15b.hero())
    strokes = Counter(line["stroke"] for line in drawn.select("line"))
    assert strokes["var(--at-right)"] == 12 and not strokes["var(--at-wrong)"]
    letters = Counter(text.text for text in drawn.select("svg text"))
    assert (letters["O"], letters["F"], letters["S"], letters["+"]) == (9, 2, 1, 2)
    assert "12 of 12 links are right" in drawn.figcaption.text
    fluorine = [text for text in drawn.select("svg text") if text.text == "F"]
    above, below = sorted((float(f["y"]), float(f["x"])) for f in fluorine)
    ends = [
        (float(line["x1"]), float(line["y1"]), float(line["x2"]), float(line["y2"]))
        for line in drawn.select("line[stroke='var(--at-right)']")
    ]
    near = [
        hypot(x1 - below[1], y1 - below[0]) < 18
        and hypot(x2 - above[1], y2 - above[0]) < 18
        for x1, y1, x2, y2 in ends
    ]
    assert near.count(True) == 1  # from fluorine to fluorine


def test_numbers_of_atoms_stand_at_the_molecule_and_below_its_text():
    drawn = soup(ch15b.smiles_picture())
    texts = [text.text for text in drawn.select("svg text")]
    assert all(texts.count(str(i)) == 2 + 2 * (i == 1) for i in range(10))
    places = {text.text: text for text in drawn.select("svg text")}
    assert places["9"]["x"] == places["F"]["x"]  # the last ones, below the text


# ---- guessing ------------------------------------------------------------------


def test_a_guess_follows_the_other_side(model):
    text = "CC{}.O=C(O)c1ccccc1F.O=S(=O)(O)O>>CC[MASK]C(=O)c1ccccc1F"
    for letter in "OSN":
        found = ch15b.guesses(model, text.format(letter))
        chances = [chance for _, chance in found]
        assert found[0][0] == letter and len(found) == 5
        assert chances == sorted(chances, reverse=True) and sum(chances) <= 1
    table = cells(ch15b.guess_table(model, {"a thiol": text.format("S")}))
    assert table[1][0] == "a thiol" and table[1][1].startswith("S 9")


# ---- weights -------------------------------------------------------------------


def test_parameters_are_counted_for_each_saving(model):
    narrow, shared = {"embedding_width": 128}, {"shared": True}
    ways = ({}, narrow, shared, narrow | shared)
    counts = [ch15b.parameters(**changes) for changes in ways]
    assert counts[-1] == sum(p.numel() for p in model.parameters())
    assert [round(4 * counts[i] / 1e6) for i in (0, 3)] == [27, 3]  # megabytes
    # 591 tokens, 512 positions, 2 segments, a norm; the map that widens them; the
    # map before the output is narrower, too, and so are its norm and the bias
    rest = 591 + 512 + 2
    assert counts[0] - counts[1] == rest * 128 + 2 * 128 - (128 * 256 + 256) + (
        256 * 128 + 128 + 2 * 128
    )
    one = 4 * (256 * 256 + 256) + 2 * 256 * 512 + 256 + 512 + 4 * 256
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


def test_the_table_of_heads_is_the_measured_one():
    heads = torch.tensor(RECORD["heads"])
    drawn = soup(ch15b.heads_picture(heads))
    numbers = [text.text for text in drawn.select("svg text")]
    shown = [f"{100 * share:.0f}" for row in RECORD["heads"] for share in row]
    assert [n for n in numbers[9:] if "layer" not in n].count("95") >= 4
    assert Counter(shown) <= Counter(numbers)
    (named,) = [t for t in drawn.select("svg text") if t.get("font-weight")][1:]
    assert named.text == "95"
    frames = [r for r in drawn.select("rect") if r["stroke"] == "currentColor"]
    assert len(frames) == 1  # and around that number
    assert float(frames[0]["y"]) == 40 + 20 * LAYER + 1
    assert float(frames[0]["x"]) == 62 + 35 * HEAD + 1
    assert "no other head for more than 46%" in drawn.svg["aria-label"]


def test_rivals_stand_beside_the_head():
    html = ch15b.controls_table(torch.tensor(RECORD["heads"]), RECORD)
    _, head, tokens, spelt, text, text_spelt, lot, number, chance = cells(html)
    assert head == ["head 6 of layer 11", "95.2% ± 0.9%"]
    assert tokens[1].startswith("88.9%") and spelt[1].startswith("91.0%")
    assert text[1] == "74.4% ± 2.6%" and text_spelt[1].startswith("53.2%")
    assert "otherwise" in spelt[0] and "otherwise" in text_spelt[0]
    assert lot[1] == "17.8% ± 0.8%" and number[1] == "15.5% ± 2.2%"
    assert chance[1] == "7.8% to 10.2%"
    assert "right in 8 of 12 spellings" in html.text


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


def test_layers_are_those_of_the_record():
    asked = []
    ch15b.without_head(
        reaction_model(),
        lambda model, head, layers: asked.append((head, [*layers])) or model,
        every=100,
    )
    assert {head for head, _ in asked} == {HEAD}
    layers = [
        [layer + 1 for layer in one]
        for one in (range(12), range(4), range(4, 8), range(8, 12), [LAYER])
    ]
    assert [[layer + 1 for layer in one] for _, one in asked] == layers
    assert [*RECORD["without"]] == [*ch15b.IN_LAYERS]
    for name, of in zip(RECORD["without"], layers, strict=True):
        assert {int(n) for n in name.split(" to ")} == {of[0], of[-1]}


def test_deletions_stand_in_a_table():
    shares = {name: each[HEAD] for name, each in RECORD["without"].items()}
    html = ch15b.without_table(shares, RECORD)
    assert cells(html) == [
        ["deleted", "head 6", "one of the other seven"],
        ["in layers 1 to 12", "52%", "85% to 99%"],
        ["in layers 1 to 4", "94%", "93% to 98%"],
        ["in layers 5 to 8", "88%", "96% to 98%"],
        ["in layers 9 to 12", "80%", "96% to 99%"],
        ["in layer 11", "97%", "96% to 98%"],
    ]
    assert "How many of 145 hidden atoms" in html.text
    assert "with all heads 97%" in html.text and "links 95% of them" in html.text


def test_the_worst_kinds_come_first():
    html = ch15b.kinds_table(RECORD, 3)
    text = RECORD["text by kind"]
    names = ("Cope rearrangement", "Beckmann rearrangement", "indole")
    assert cells(html)[1:] == [
        [name, "3", share, f"{text[name]:.0%}"]
        for name, share in zip(names, ("67%", "73%", "76%"), strict=True)
    ]
    assert f"3 kinds of {51} with the fewest; in 19 kinds every" in html.text


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


def test_the_explorer_is_checked_against_links(model):
    drawn = soup(ch15b.map_explorer(model))
    script = drawn.select_one(".annotated-explorer-checks").text
    checks = json.loads(script)
    kinds = [option.text for option in drawn.select("option")]
    assert len(kinds) == 8 and len(checks) == 16
    for check in checks:
        state, values = check["state"], check["values"]
        which = next(
            one
            for one in reactions()
            if one.kind == state["reaction"] and one.text in ch15b.drawn_reactions()
        )
        found = links(attention_maps(model, which.text), which.text)
        chosen = found[state["layer"] - 1, state["head"] - 1].tolist()
        hits = [i in may for i, may in zip(chosen, which.right(), strict=True)]
        assert values == {
            "count": sum(hits),
            "linked": chosen[state["atom"] - 1],
            "right": hits[state["atom"] - 1],
        }
    data = drawn.select_one(".annotated-explorer-data").text
    assert len(data) < 250_000
    items = json.loads(data)["items"]
    for item in items.values():  # every atom can be named
        names = {name.strip("⁺⁻") or "C" for side in item["letters"] for name in side}
        assert names <= set(ch15b.ELEMENTS)


# ---- pitfalls, and a file that isn't there -------------------------------------


def test_mistakes_cost_links(model, few):
    cost = ch15b.careless_shares(model, every=1)
    assert cost["right"] == pytest.approx(34 / sum(len(one.origins) for one in few))
    assert cost["no [CLS]"] < 0.75 * cost["right"]
    assert cost["no symmetry"] < cost["right"]
    said = ch15b.pitfalls_said(model, RECORD)
    assert "96.2% and 95.6%" in said and "8% (5%), 8% (6%), 10% (6%)" in said


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
    monkeypatch.setattr(ch15b, "FILE", tmp_path / "model.safetensors")
    assert ch15b.weights() is None
    assert "is not in this installation" in capsys.readouterr().out
    drawn = soup(ch15b.hero())
    assert {line["stroke"] for line in drawn.select("line")} == {"currentColor"}
    assert "file is missing" in drawn.figcaption.text
    for html in (
        ch15b.guess_table(None, {}),
        ch15b.map_explorer(None),
        ch15b.missing(),
    ):
        assert "is not in this installation" in html.text
    ch15b.check_surgery(by_hand, None)
    assert "✓" not in capsys.readouterr().out
    assert "fewer of the links are right" in ch15b.pitfalls_said(None, RECORD)


def test_all_heads_of_the_config_are_drawn():
    assert (CONFIG.layers, CONFIG.heads) == (12, 8)
