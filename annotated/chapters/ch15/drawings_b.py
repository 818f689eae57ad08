"""Page 15b, reactions: molecules, who looks at whom, and what the model knows.

Layers and heads are counted from 1 on the page, and from 0 in code. A ``model`` is that
of reactions, or None where its file is missing; the record is that of
``benchmarks/ch15/reactions.py``.
"""

import base64
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import hypot
from typing import Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import gelu, layer_norm

from annotated.bert import Bert, BertConfig
from annotated.data.reactions import (
    CONFIG,
    FILES,
    HEAD,
    LAYER,
    Reaction,
    atom_places,
    attention_maps,
    encode,
    is_atom,
    links,
    parse,
    reactions,
    right_links,
    tokenize,
    vocabulary,
)
from annotated.data.vendored import MissingError, vendored_file
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, show_table
from annotated.weights import StateDict, load_albert, read_safetensors

NAME = "model.safetensors"
MISSING = (
    "The model's file, `annotated/vendor/rxnmapper/model.safetensors`, is not in this "
    "installation and couldn't be downloaded, so this cell has nothing to show. What "
    "the model does was recorded: all numbers that aren't computed here come from "
    "`book/results/reactions.json`."
)


def weights() -> StateDict | None:
    """Return the tensors of the model's file, or nothing where the file is missing."""
    try:
        return read_safetensors(vendored_file(f"rxnmapper/{NAME}", FILES[NAME]))
    except MissingError:
        print(MISSING)
        return None


def missing() -> Html:
    """Return what a cell shows where the model's file is missing."""
    return Html(f"<p>{MISSING.replace('`', '')}</p>")


def reaction(kind: str, which: int = 0) -> Reaction:
    """Return one of the reactions of a ``kind``; ``which``: counted from 0."""
    return [one for one in reactions() if one.kind == kind][which]


# ---- molecules ---------------------------------------------------------------------

Place = tuple[float, float]
Molecule = Mapping[str, Sequence]  #: of molecules.json: atoms and bonds


def letters(side: str) -> list[str]:
    """Return what stands at each atom of a ``side`` of a reaction; nothing at carbon.

    Hydrogens aren't drawn.
    """
    tokens = [token for token in tokenize(side) if is_atom(token)]
    charges = ["⁺" if "+" in one else "⁻" if "-" in one else "" for one in tokens]
    names = [element.capitalize() for element, _ in parse(side)[0]]
    return [
        "" if name + charge == "C" else name + charge
        for name, charge in zip(names, charges, strict=True)
    ]


def drawn_reactions() -> dict[str, dict[str, list[Molecule]]]:
    """Return the molecules of the reactions that are drawn, before and behind."""
    return json.loads(static("molecules.json"))


class Molecules(Drawing):
    """A drawing of molecules: corners and ends of lines are atoms."""

    scale, edge, gap = 28, 13, 24

    def lay(self, molecules: Sequence[Molecule], top: float) -> dict[int, Place]:
        """Return places of the atoms of ``molecules`` in one row below ``top``."""
        sizes = [
            [max(atom[axis] for atom in one["atoms"]) * self.scale for axis in (1, 2)]
            for one in molecules
        ]
        wide = sum(width + 2 * self.edge for width, _ in sizes)
        x = (self.width - wide - self.gap * (len(molecules) - 1)) / 2
        high, places = max(height for _, height in sizes), {}
        for one, (width, height) in zip(molecules, sizes, strict=True):
            if x > 0 and places:
                self.text(x - self.gap / 2, top + high / 2 + 5, "+", size=16)
            for i, u, v in one["atoms"]:
                down = top + (high - height) / 2 + v * self.scale
                places[i] = (x + self.edge + u * self.scale, down)
            x += width + 2 * self.edge + self.gap
        return places

    def stroke(self, one: Place, other: Place, color: str, **style: Any) -> None:
        """Draw a line in one of the look's colours, or in that of the text."""
        (x1, y1), (x2, y2) = one, other
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        ends = {name: round(z, 1) for name, z in ends.items()}
        paint = color if color == "currentColor" else f"var(--at-{color})"
        self._add("line", **ends, stroke=paint, stroke_linecap="round", **style)

    def molecule(
        self, one: Molecule, places: Mapping[int, Place], names: Sequence[str]
    ) -> None:
        """Draw the bonds of ``one`` molecule, and the ``names`` of its atoms."""
        for i, j, order in one["bonds"]:
            (x1, y1), (x2, y2) = places[i], places[j]
            length = hypot(x2 - x1, y2 - y1)
            u, v = (x2 - x1) / length, (y2 - y1) / length
            near, far = (9 if names[k] else 0 for k in (i, j))
            ends = (x1 + near * u, y1 + near * v), (x2 - far * u, y2 - far * v)
            for aside in {1: (0,), 2: (-2, 2), 3: (-3.5, 0, 3.5)}[order]:
                begin, end = ((x - aside * v, y + aside * u) for x, y in ends)
                self.stroke(begin, end, "currentColor", stroke_width=1.4)
        for i, *_ in one["atoms"]:
            if names[i]:
                x, y = places[i]
                self.text(round(x, 1), round(y + 4.6, 1), names[i], size=13)

    def link(self, one: Place, other: Place, right: bool) -> None:
        """Draw a link from an atom of the product, ``one``, to ``other``."""
        (x1, y1), (x2, y2) = one, other
        length = hypot(x2 - x1, y2 - y1)
        u, v = (x2 - x1) / length, (y2 - y1) / length
        ends = (x1 + 10 * u, y1 + 10 * v), (x2 - 10 * u, y2 - 10 * v)
        style = {"stroke_width": 1.6, "stroke_opacity": 0.75}
        if right:
            self.stroke(*ends, "right", **style)
        else:
            self.stroke(*ends, "wrong", **style, stroke_dasharray="5 4")


def hero() -> Html:
    """Draw an ester and what it's made of, and the links of the named head."""
    one = reaction("esterification")
    before, behind = one.text.split(">>")
    sides, drawing = drawn_reactions()[one.text], Molecules(350, 296)
    tops = drawing.lay(sides["before"], 28)
    bottoms = drawing.lay(sides["behind"], 194)
    drawing.text(6, 14, "before", anchor="start", bold=True)
    drawing.text(6, 290, "after", anchor="start", bold=True)
    count, said = 0, " (The model's file is missing here, and with it its links.)"
    if (state := weights()) is not None:
        model = load_albert(state, CONFIG)
        found = links(attention_maps(model, one.text), one.text)
        right = right_links(found, one)[LAYER, HEAD].tolist()
        for i, j in enumerate(found[LAYER, HEAD].tolist()):
            drawing.link(bottoms[i], tops[j], right[i])
        count = sum(right)
        said = f" {count} of {len(right)} links are right."
    for side, places, text in (
        (sides["before"], tops, before),
        (sides["behind"], bottoms, behind),
    ):
        for molecule in side:
            drawing.molecule(molecule, places, letters(text))
    return drawing.figure(
        alt="Above: ethanol, 2-fluorobenzoic acid and sulfuric acid. Below: the ester "
        "made of the first two. From each of its atoms a line leads to the atom above "
        f"that the head attends to most.{said}",
        caption="Each corner and each end of a line is a carbon atom; other atoms have "
        "their letters, and hydrogens aren't drawn. From each atom of the product, a "
        "line to the atom that one head of the model attends to most. The third "
        f"molecule only helps.{said}",
    )


def smiles_picture() -> Html:
    """Draw a molecule with its atoms numbered, above its text with the same numbers."""
    one = reaction("esterification")
    before, drawing = one.text.split(">>")[0], Molecules(350, 186)
    acid = drawn_reactions()[one.text]["before"][1]
    first, text = acid["atoms"][0][0], before.split(".")[1]
    names, places = letters(before), drawing.lay([acid], 24)
    drawing.molecule(acid, places, names)
    middle = [sum(z) / len(places) for z in zip(*places.values(), strict=True)]
    for i, (x, y) in places.items():  # numbers stand outside
        u, v = x - middle[0], y - middle[1]
        away = 15 / hypot(u, v)
        drawing.text(
            round(x + u * away, 1), round(y + v * away + 4, 1), str(i - first), size=12
        )
    number, start = 0, 175 - 8 * len(text)
    for place, letter in enumerate(text):
        x = start + 16 * place + 8
        drawing.text(x, 162, letter, code=True, size=17, bold=is_atom(letter))
        if is_atom(letter):
            drawing.text(x, 180, str(number), size=12)
            number += 1
    return drawing.figure(
        alt=f"2-fluorobenzoic acid with its {number} atoms numbered from 0, and below "
        f"it its text, {text}, with the same numbers below the letters of atoms.",
        caption="A molecule, and the same as text. Numbers count the letters.",
    )


# ---- guessing ----------------------------------------------------------------------


@torch.no_grad()
def guesses(model: Bert, text: str, count: int = 5) -> list[tuple[str, float]]:
    """Return the likeliest tokens at a text's first mask, and their chances."""
    ids, names = encode(text), {i: token for token, i in vocabulary().items()}
    place = ids[0].tolist().index(vocabulary()["[MASK]"])
    chances = model.guess_tokens(model(ids)[0, place]).softmax(dim=-1)
    top = chances.topk(count)
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return [(names[i], chance) for i, chance in pairs]


def guess_table(model: Bert | None, texts: Mapping[str, str]) -> Html:
    """Show the model's five likeliest tokens for a hidden one."""
    if model is None:
        return missing()
    rows = [
        (name, *(f"{token} {chance:.1%}" for token, chance in guesses(model, text)))
        for name, text in texts.items()
    ]
    return show_table(
        ("what stands before", "first guess", "2nd", "3rd", "4th", "5th"),
        rows,
        caption="The model's five likeliest tokens for the hidden one.",
    )


# ---- weights -----------------------------------------------------------------------

ONE = "albert.encoder.albert_layer_groups.0.albert_layers.0."


def linear(w: StateDict, name: str, x: Float[Tensor, "b t d"]) -> Float[Tensor, "..."]:
    """Return what the map ``name`` of a file's tensors ``w`` makes of ``x``."""
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def norm(w: StateDict, name: str, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
    """Return ``x``, normalised by the norm ``name`` of a file's tensors ``w``."""
    gain, bias = w[f"{name}.weight"], w[f"{name}.bias"]
    return layer_norm(x, gain.shape, gain, bias, eps=1e-12)


def layer(w: StateDict, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
    """Return what the one layer of a file's tensors ``w`` makes of ``x``."""
    q, k, v = (
        linear(w, f"{ONE}attention.{name}", x).unflatten(-1, (8, 32)).transpose(1, 2)
        for name in ("query", "key", "value")
    )  # each (b, h, t, 32)
    heads = (q @ k.mT / 32**0.5).softmax(dim=-1) @ v
    merged = heads.transpose(1, 2).flatten(2)  # (b, t, 256)
    y = x + linear(w, f"{ONE}attention.dense", merged)
    y = norm(w, f"{ONE}attention.LayerNorm", y)
    z = linear(w, f"{ONE}ffn_output", gelu(linear(w, f"{ONE}ffn", y)))
    return norm(w, f"{ONE}full_layer_layer_norm", y + z)


def parameters(**changes: Any) -> int:
    """Return how many parameters a BERT has, of this shape but for ``changes``."""
    sizes = {"vocab_size": CONFIG.vocab_size, "d_model": 256, "heads": 8}
    sizes |= {"layers": 12, "d_ff": 512} | changes
    with torch.device("meta"):
        model = Bert(BertConfig(**sizes))
    del model.follows  # the file has no such head
    return sum(p.numel() for p in model.parameters())


def check_surgery(
    by_hand: Callable[[StateDict, Tensor], Tensor], state: StateDict | None
) -> None:
    """Prove that plain tensors, one layer twelve times, give what our blocks give."""
    if state is None:
        print(MISSING)
        return
    exact = {name: x.double() for name, x in state.items()}
    model = load_albert(state, CONFIG).double()
    for kind in ("esterification", "Suzuki"):
        ids = encode(reaction(kind).text)
        with torch.no_grad():
            check_close(
                f"{kind}: {ids.shape[1]} tokens, by hand = our blocks",
                by_hand(exact, ids),
                model(ids),
                1e-9,
            )
    count = sum(p.numel() for p in model.parameters())
    assert count == sum(x.numel() for x in state.values())
    assert count == parameters(embedding_width=128, shared=True)
    print(f"✓ {len(state)} tensors with {count:,} numbers, each in one place")


# ---- where each atom looks -----------------------------------------------------------


def head_shares(model: Bert) -> Float[Tensor, "layers h"]:
    """Return how often the largest weight of each head is right, over all reactions."""
    right = [
        right_links(links(attention_maps(model, one.text), one.text), one)
        for one in reactions()
    ]
    return torch.cat(right, dim=-1).double().mean(dim=-1)


def heads_picture(heads: Float[Tensor, "layers h"]) -> Html:
    """Draw the share of right links of each layer and head."""
    layers, across = heads.shape
    left, top, wide, high = 62, 40, 35, 20
    drawing = Drawing(left + wide * across + 6, top + high * layers + 6)
    drawing.text(left + wide * across / 2, 14, "head", bold=True)
    for h in range(across):
        drawing.text(left + wide * (h + 0.5), 32, str(h + 1))
    for i, row in enumerate(heads.tolist()):
        y = top + high * i
        name = f"layer {i + 1}" if i in (0, layers - 1) else str(i + 1)
        drawing.text(left - 8, y + 15, name, anchor="end")
        for h, share in enumerate(row):
            x, named = left + wide * h, (i, h) == (LAYER, HEAD)
            place = (x + 1, y + 1, wide - 2, high - 2)
            drawing.frame(*place, shade=round(0.5 * share, 3), color="right", outline=0)
            if named:
                drawing.frame(*place)
            number = f"{100 * share:.0f}"
            drawing.text(x + wide / 2, y + 15, number, size=13, bold=named)
    best = heads[:, HEAD]
    others = heads.clone()
    others[:, HEAD] = 0
    return drawing.figure(
        alt=f"A table of {layers} layers and {across} heads. Head {HEAD + 1} is right "
        f"for {best[0]:.0%} of the atoms in layer 1 and for {heads[LAYER, HEAD]:.0%} "
        f"in layer {LAYER + 1}; no other head for more than {others.max():.0%}.",
        caption="Percent of the products' atoms whose largest weight, among the atoms "
        "before the arrow, is on the right one. Framed: the head that the package "
        "uses.",
    )


def controls_table(heads: Float[Tensor, "layers h"], record: Mapping[str, Any]) -> Html:
    """Show the named head beside guesses without weights, and in other spellings."""
    named, spelt = f"head {HEAD + 1} of layer {LAYER + 1}", "products spelt otherwise"
    error, oxygen = record["named"]["error"], record["middle oxygen"]
    names = {
        "all tokens": f"{named}, if it must beat all other tokens, too",
        "other spellings": f"{named}, {spelt}",
        "longest same text": "the atom with the longest same text around it",
        "the text in other spellings": f"the longest same text, {spelt}",
        "of the element by lot": "any atom of the same element, at random",
        "same number": "the atom at the same position",
    }
    rows = [(named, f"{heads[LAYER, HEAD]:.1%} ± {error:.1%}")]
    rows += [
        (name, f"{record[key]['share']:.1%} ± {record[key]['error']:.1%}")
        for key, name in names.items()
    ]
    best = sorted(one["best"] for one in record["random"])
    rows.append(
        ("random weights: the best of 96 heads", f"{best[0]:.1%} to {best[-1]:.1%}")
    )
    return show_table(
        ("where an atom of the product comes from", "right"),
        rows,
        caption=f"{record['atoms']:,} atoms in the products of {record['reactions']} "
        "reactions; ±: standard errors, over kinds. Spelt otherwise: mean over all "
        "spellings that begin at another atom. The first picture's middle oxygen is "
        f"right in {oxygen['right']} of {oxygen['spellings']} spellings.",
    )


# ---- is it used? ---------------------------------------------------------------------


def hidden_atoms(every: int = 3) -> list[tuple[Tensor, list[int], Tensor]]:
    """Return reactions with one atom of the product hidden, other than carbon.

    Returns:
        For each reaction: its ids with an atom hidden in each row; where; and which.
    """
    rows = []
    for one in reactions()[::every]:
        ids, (_, behind) = encode(one.text), atom_places(one.text)
        names = letters(one.text.split(">>")[1])
        places = [i for i, name in zip(behind, names, strict=True) if name]
        if places:
            hidden, right = ids.repeat(len(places), 1), ids[0, places]
            hidden[range(len(places)), places] = vocabulary()["[MASK]"]
            rows.append((hidden, places, right))
    return rows


@torch.no_grad()
def guessed(model: Bert, rows: Sequence[tuple[Tensor, list[int], Tensor]]) -> float:
    """Return the share of hidden atoms that a ``model`` guesses."""
    hits = []
    for ids, places, right in rows:
        states = model(ids)[range(len(places)), places]
        hits.append(model.guess_tokens(states).argmax(dim=-1) == right)
    return torch.cat(hits).double().mean().item()


#: layers, counted from 0, by their names on the page and in the record
IN_LAYERS = {
    "1 to 12": range(12),
    "1 to 4": range(4),
    "5 to 8": range(4, 8),
    "9 to 12": range(8, 12),
    "11": [LAYER],
}


def without_head(
    model: Bert, without: Callable[[Bert, int, Iterable[int]], Bert], every: int = 3
) -> dict[str, float]:
    """Return the shares of hidden atoms guessed without the named head, by layers.

    ``without(model, head, layers)`` returns a model that lacks the head there.
    """
    rows = hidden_atoms(every)
    return {
        name: guessed(without(model, HEAD, layers), rows)
        for name, layers in IN_LAYERS.items()
    }


def other_heads(record: Mapping[str, Any], name: str) -> list[float]:
    """Return what was recorded without each other head, in the layers of a ``name``."""
    shares = record["without"][name]
    return shares[:HEAD] + shares[HEAD + 1 :]


def without_table(shares: Mapping[str, float], record: Mapping[str, Any]) -> Html:
    """Show how many hidden atoms are guessed without a head in some layers."""
    rows = []
    for name, share in shares.items():
        others = other_heads(record, name)
        among = f"{min(others):.0%} to {max(others):.0%}"
        rows.append((f"in layer{'s' * (' ' in name)} {name}", f"{share:.0%}", among))
    return show_table(
        ("deleted", f"head {HEAD + 1}", "one of the other seven"),
        rows,
        caption=f"How many of {record['hidden']} hidden atoms are still guessed "
        f"(with all heads {record['whole']:.0%}): all but carbon in the products of "
        f"every third reaction. While they're hidden, head {HEAD + 1} of layer "
        f"{LAYER + 1} links {record['hidden and linked']:.0%} of them rightly.",
    )


# ---- what it doesn't know ------------------------------------------------------------


def kinds_table(record: Mapping[str, Any], count: int = 8) -> Html:
    """Show the kinds of reactions in which the named head is right least often."""
    shares, text = record["by kind"], record["text by kind"]
    worst = sorted(shares, key=shares.get)[:count]
    whole = sum(share == 1 for share in shares.values())
    many = Counter(one.kind for one in reactions())
    return show_table(
        ("kind", "reactions", f"head {HEAD + 1}", "longest same text"),
        [(k, many[k], f"{shares[k]:.0%}", f"{text[k]:.0%}") for k in worst],
        caption=f"Right links in the {count} kinds of {len(shares)} with the fewest; "
        f"in {whole} kinds every link is right. (The explorer shows one reaction of a "
        "kind.)",
    )


# ---- the explorer --------------------------------------------------------------------

TOP = 3  # atoms whose weights are shown
ELEMENTS = {
    "C": "carbon",
    "N": "nitrogen",
    "O": "oxygen",
    "F": "fluorine",
    "P": "phosphorus",
    "S": "sulfur",
    "Cl": "chlorine",
    "Br": "bromine",
    "Na": "sodium",
}


def item(model: Bert, one: Reaction) -> dict[str, Any]:
    """Return what the explorer needs of ``one`` reaction.

    Its bytes: for each layer, head and atom of the product, the three atoms of the
    reactants with the largest weights, and these weights in percent.
    """
    maps, (before, behind) = attention_maps(model, one.text), atom_places(one.text)
    top = maps[:, :, behind][..., before].topk(TOP)
    pairs = torch.stack([top.indices, (100 * top.values).round().long()], dim=-1)
    packed = base64.b64encode(pairs.numpy().astype(numpy.uint8).tobytes()).decode()
    sides = one.text.split(">>")
    return drawn_reactions()[one.text] | {
        "letters": [letters(side) for side in sides],
        "may": [sorted(may) for may in one.right()],
        "bytes": packed,
    }


def map_explorer(model: Bert | None) -> Html:
    """Show who looks at whom, by reaction, layer, head and atom of the product."""
    if model is None:
        return missing()
    shown = {one.kind: one for one in reactions() if one.text in drawn_reactions()}
    items = {kind: item(model, one) for kind, one in shown.items()}
    most = max(len(one.origins) for one in shown.values())
    draw, checks = random.Random(0), []
    for kind, one in shown.items():
        for layer, head in ((LAYER, HEAD), (draw.randrange(12), draw.randrange(8))):
            atom = draw.randrange(len(one.origins))
            state = {"reaction": kind, "layer": layer + 1, "head": head + 1}
            values = values_of(model, one, layer, head, atom)
            checks.append((state | {"atom": atom + 1}, values))
    return explorer(
        static("ch15/reaction_map.js"),
        {"items": items, "top": TOP, "heads": CONFIG.heads, "elements": ELEMENTS},
        [
            Choice("reaction", "reaction", list(shown)),
            Slider("layer", "layer", range(1, CONFIG.layers + 1), LAYER + 1),
            Slider("head", "head", range(1, CONFIG.heads + 1), HEAD + 1),
            Slider("atom", "atom of the product", ["all", *range(1, most + 1)]),
        ],
        label="Which atom was which",
        checks=checks,
        question="In the ester, the oxygen between the two halves could be the "
        "alcohol's or the acid's. Which one does the head choose? Tap it. And in "
        "the Mitsunobu ester?",
        caption="Above: what goes in. Below: the product; tap an atom, or use the "
        "slider. Green: the right atom, or one that symmetry can't tell from it; "
        "red and dashed: a wrong one, with the right one ringed (of an acid's two "
        "oxygens, the one that textbooks draw). Blue discs: the chosen atom's three "
        "largest weights on atoms.",
    )


def values_of(
    model: Bert, one: Reaction, layer: int, head: int, atom: int
) -> dict[str, Any]:
    """Return what the explorer has to compute, from the book's own functions."""
    found = links(attention_maps(model, one.text), one.text)
    right = right_links(found, one)[layer, head]
    return {
        "count": int(right.sum()),
        "linked": found[layer, head, atom].item(),
        "right": bool(right[atom]),
    }


def margins(model: Bert) -> Float[Tensor, "_ h"]:
    """Return by how much heads of the named layer prefer one atom to another.

    Of the oxygen in the middle of two esters, the alcohol's to the acid's; of the new
    oxygen after a hydrolysis, the sodium to the hydroxide's oxygen.
    """
    cases = {
        ("esterification", 0): (2, 2, 5),
        ("Mitsunobu ester", 1): (3, 21, 8),
        ("ester hydrolysis", 0): (2, 16, 17),
    }
    found = []
    for which, (atom, one, other) in cases.items():
        text = reaction(*which).text
        before, behind = atom_places(text)
        maps = attention_maps(model, text)[LAYER, :, behind[atom]]  # (h, t)
        found.append(maps[:, before[one]] - maps[:, before[other]])
    return torch.stack(found)


# ---- pitfalls ------------------------------------------------------------------------


def careless_shares(model: Bert, every: int = 3) -> dict[str, float]:
    """Return the named head's share, and what two mistakes make of it.

    Returns:
        "right"; "no symmetry", where an atom's own origin alone counts; and "no [CLS]",
        where places of tokens are counted without the first one.
    """
    rows: dict[str, list[bool]] = {"right": [], "no symmetry": [], "no [CLS]": []}
    for one in reactions()[::every]:
        maps, (before, behind) = attention_maps(model, one.text), atom_places(one.text)
        found = links(maps, one.text)
        rows["right"] += right_links(found, one)[LAYER, HEAD].tolist()
        chosen = found[LAYER, HEAD].tolist()
        pairs = zip(chosen, one.origins, strict=True)
        rows["no symmetry"] += [link == origin for link, origin in pairs]
        early = maps[LAYER, HEAD][[i - 1 for i in behind]]
        shifted = early[:, [i - 1 for i in before]].argmax(dim=-1)
        found[LAYER, HEAD] = shifted
        rows["no [CLS]"] += right_links(found, one)[LAYER, HEAD].tolist()
    return {name: sum(row) / len(row) for name, row in rows.items()}


def pitfalls_said(model: Bert | None, record: Mapping[str, Any]) -> str:
    """Return three pitfalls in words, with what they cost here."""
    cost = {} if model is None else careless_shares(model)

    def share(name: str) -> str:
        return f"{cost[name]:.0%}" if cost else "fewer"

    halves = [one["share of the other"] for one in record["best of halves"]]
    seeds = record["random"]
    chance = ", ".join(f"{one['best']:.0%} ({one['mean']:.0%})" for one in seeds)
    return (
        "**The number of an atom isn't the position of its token.** Brackets, bonds "
        "and digits are tokens, too, and `[CLS]` comes first. Forget that one token, "
        f"and {share('no [CLS]')} of the links are right instead of "
        f"{share('right')} (every third reaction): what stands before an atom often "
        "attends to what stands before its origin. Nothing crashes.\n\n"
        "**Symmetry.** To a chemist, the two carbons beside a benzene ring's tail are "
        "the same. Count only the one with the right number as right, and the head "
        f"gets {share('no symmetry')}.\n\n"
        "**The best of 96.** With random weights, the best head gets "
        f"{chance}; in brackets the mean of all 96. If you choose a head by its score, "
        "report its score on something else. Ours was named by the paper's package; "
        "and the best head of each half of our reactions gets "
        f"{' and '.join(f'{one:.1%}' for one in halves)} of the other half."
    )
