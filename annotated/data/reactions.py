"""Reactions: molecules as text, and where the atoms of a product were before.

``CO.CBr>>COC``: what stands before ``>>`` becomes what stands behind it. The notation
is SMILES (Weininger, 1988): a letter is an atom with as many hydrogens as it needs,
neighbours in the text are bound, brackets branch, and equal digits close a ring. An
ALBERT that Schwaller et al. (2021) trained to guess hidden tokens of such lines comes
with the package (``annotated/vendor/rxnmapper``, with its own licence), and 158
reactions whose atoms can be followed. "Reactants" are here solvents and reagents too.

Letters: b batch, t length, h heads (``book/notation.md``).
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from annotated import require
from annotated.attention import record_attention
from annotated.bert import Bert, BertConfig
from annotated.data.vendored import vendored_file
from annotated.devices import device_of
from annotated.training import evaluating
from annotated.weights import load_albert, read_safetensors

RXNMAPPER = {
    "title": "The model of RXNMapper, albert_heads_8_uspto_all_1310k",
    "version": "rxnmapper 0.4.3",
    "source": "https://github.com/rxn4chemistry/rxnmapper",
    "licence": "MIT; © 2020 RXN4Chemistry team",
}
#: the files that came with the package, and the sha256 of each
FILES = {
    "model.safetensors": (
        "e82d8975859d30cc8473ef662e33909fdb9b088d57217d0fa09559df48530eab"
    ),
    "vocab.txt": "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
}
CONFIG = BertConfig(
    591, d_model=256, heads=8, layers=12, d_ff=512, embedding_width=128, shared=True
)
#: where the package of the model looks for links, both counted from 0
LAYER, HEAD = 10, 5

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TOKEN = re.compile(
    r"\[[^][]+\]"  # an atom with what it needs said: [nH], [O-]
    r"|Br|Cl|[BCNOPSFI]|[bcnops]"  # an atom; small in a ring such as benzene's
    r"|%\d\d|\d"  # an end of a bond that closes a ring
    r"|>>|[-=#:/\\().~*]"
)
BONDS = {"-": 1, "=": 2, "#": 3, ":": 1, "/": 1, "\\": 1, "~": 1}
VALENCES = {"B": (3,), "C": (4,), "N": (3, 5), "O": (2,), "P": (3, 5), "S": (2, 4, 6)}
BRACKET = re.compile(r"\[\d*(se|as|te|[bcnops]|[A-Z][a-z]?)@{0,2}(?:H(\d?))?[-+\d]*\]")


# ---- the text ------------------------------------------------------------------


def tokenize(text: str) -> list[str]:
    """Return the tokens of a ``text`` of molecules: atoms, bonds, brackets, digits.

    ``"[MASK]"`` and the other ``SPECIALS`` may stand in it.

    Raises:
        ValueError: if a character can't be read.
    """
    tokens, place = [], 0
    while place < len(text):
        found = TOKEN.match(text, place)
        require.that(found, f"text can't be read from {place} on: {text[place:]!r}")
        tokens.append(found[0])
        place = found.end()
    return tokens


def is_atom(token: str) -> bool:
    """Return whether a ``token`` is an atom."""
    return token not in SPECIALS and (token[0] == "[" or token[0].isalpha())


def atom_places(text: str) -> tuple[list[int], list[int]]:
    """Return where a reaction's atoms stand among its tokens, before and behind ``>>``.

    Places in ``text`` are those in what :func:`encode` returns: 0 is ``[CLS]``.

    Raises:
        ValueError: if there is not one ``>>``, or no atom on one side of it.
    """
    tokens = tokenize(text)
    require.that(tokens.count(">>") == 1, f"text must hold one '>>', got {text!r}")
    arrow = tokens.index(">>")
    places = [i for i, token in enumerate(tokens) if is_atom(token)]
    before = [i + 1 for i in places if i < arrow]
    behind = [i + 1 for i in places if i > arrow]
    require.that(
        before and behind, f"text must hold atoms on both sides of '>>', got {text!r}"
    )
    return before, behind


def parse(text: str) -> tuple[list[tuple[str, int]], list[list[int]]]:
    """Return the atoms of a ``text`` of molecules, and the neighbours of each.

    Returns:
        For each atom, in the order of the text, its element (small in an aromatic ring)
        and how many hydrogens it has; and the numbers of its neighbours. Stereo
        marks and charges go.

    Raises:
        ValueError: if a bracket or a ring is left open, or a character can't be read.
    """
    atoms: list[str] = []
    near: list[list[int]] = []
    orders: list[int] = []  # of all bonds of an atom
    rings: dict[str, tuple[int, int]] = {}
    branches: list[int | None] = []
    last, order = None, 1

    def bind(one: int, other: int, order: int) -> None:
        for here, there in ((one, other), (other, one)):
            near[here].append(there)
            orders[here] += order

    for token in tokenize(text):
        if is_atom(token):
            atoms.append(token)
            near.append([])
            orders.append(0)
            if last is not None:
                bind(last, len(atoms) - 1, order)
            last, order = len(atoms) - 1, 1
        elif token in BONDS:
            order = BONDS[token]
        elif token in (".", ">>"):
            last = None
        elif token == "(":
            branches.append(last)
        elif token == ")":
            require.that(branches, f"text has no '(' for a ')': {text!r}")
            last = branches.pop()
        elif token.strip("%").isdigit():
            require.that(last is not None, f"text has no atom before a digit: {text!r}")
            if token in rings:
                other, before = rings.pop(token)
                bind(other, last, max(order, before))
            else:
                rings[token] = last, order
            order = 1
    left = [*rings, *("(" for _ in branches)]
    require.that(not left, f"text leaves {left} open: {text!r}")
    return [_element(*pair) for pair in zip(atoms, orders, strict=True)], near


def _element(atom: str, orders: int) -> tuple[str, int]:
    """Return an atom's element and its hydrogens, which fill up its valence."""
    if atom[0] == "[":
        found = BRACKET.fullmatch(atom)
        require.that(found, f"text has an atom that can't be read: {atom}")
        return found[1], 0 if found[2] is None else int(found[2] or 1)
    if atom.islower():
        return atom, max(3 - orders, 0) if atom == "c" else 0
    most = [n for n in VALENCES.get(atom, (1,)) if n >= orders]
    return atom, most[0] - orders if most else 0


def alike(text: str) -> list[int]:
    """Return a class for each atom: the same for atoms that symmetry can't tell apart.

    The atoms of ``text`` begin with their element and hydrogens as a colour, and get a
    new one from their own and their neighbours', until no class is split any more
    (Weisfeiler and Leman, 1968). Bonds have no order here, so the two oxygens of a
    nitro group, or of a carboxylate, are alike, as in nature.
    """
    atoms, near = parse(text)
    colours = _numbered(atoms)
    while True:
        finer = _numbered(
            [
                (colour, sorted(colours[j] for j in near[i]))
                for i, colour in enumerate(colours)
            ]
        )
        if len(set(finer)) == len(set(colours)):
            return colours
        colours = finer


def _numbered(keys: list) -> list[int]:
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    return [numbers[repr(key)] for key in keys]


# ---- reactions whose atoms can be followed -----------------------------------------


@dataclass(frozen=True)
class Reaction:
    """A reaction, and what its product is made of."""

    kind: str  #: its name in textbooks
    text: str  #: in SMILES
    #: for each atom of the product, the number of the reactants' atom that it is
    origins: tuple[int, ...]

    def right(self) -> list[set[int]]:
        """Return for each atom of the product which atoms of the reactants it may be.

        Those that symmetry can't tell from its origin; and those of each other atom of
        the product that symmetry can't tell from it.
        """
        before, behind = map(alike, self.text.split(">>"))
        may = defaultdict(set)
        for atom, origin in zip(behind, self.origins, strict=True):
            may[atom] |= {i for i, one in enumerate(before) if one == before[origin]}
        return [may[atom] for atom in behind]


@cache
def reactions() -> tuple[Reaction, ...]:
    """Return 158 reactions of 51 kinds, by the rules of textbooks.

    Molecules are our own choice, and written as RDKit writes them, so that the order of
    atoms on one side says nothing of that on the other.
    """
    return tuple(
        Reaction(kind, text, tuple(map(int, origins.split())))
        for kind, text, origins in _rows("reactions.tsv")
    )


@cache
def respelled() -> tuple[tuple[Reaction, ...], ...]:
    """Return each of the :func:`reactions` with its product written otherwise.

    ``CCOC=O`` is ``O=COCC``, too: a spelling may begin at any atom. Those of RDKit are
    here, one for each atom that begins another than the reaction has.
    """
    found: list[list[Reaction]] = [[] for _ in reactions()]
    for number, text, order in _rows("respelled.tsv"):
        one = reactions()[int(number)]
        before = one.text.split(">>")[0]
        origins = tuple(one.origins[int(atom)] for atom in order.split())
        found[int(number)].append(Reaction(one.kind, f"{before}>>{text}", origins))
    return tuple(map(tuple, found))


def _rows(name: str) -> list[list[str]]:
    path = files("annotated") / "page" / "static" / name
    lines = path.read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


# ---- the model that read reactions ---------------------------------------------------


def _vendored(name: str) -> Path:
    return vendored_file(f"rxnmapper/{name}", FILES[name])


def reaction_model() -> Bert:
    """Return the ALBERT that was trained on reactions, in evaluation mode.

    It guessed hidden tokens of reactions from patents, and saw no numbers of atoms.

    Raises:
        DataError: if the file that came with the package is damaged or missing.
    """
    return load_albert(read_safetensors(_vendored("model.safetensors")), CONFIG)


@cache
def vocabulary() -> dict[str, int]:
    """Return the id of each of the model's tokens.

    Raises:
        DataError: if the file that came with the package is damaged or missing.
    """
    tokens = _vendored("vocab.txt").read_text("utf-8").splitlines()
    return {token: i for i, token in enumerate(tokens)}


def encode(text: str) -> Int[Tensor, "1 t"]:
    """Return the ids of the ``text`` of a reaction, from ``[CLS]`` to ``[SEP]``.

    A token that the model does not know becomes ``[UNK]``.
    """
    ids = vocabulary()
    tokens = ["[CLS]", *tokenize(text), "[SEP]"]
    return torch.tensor([[ids.get(token, ids["[UNK]"]) for token in tokens]])


def attention_maps(model: Bert, text: str) -> Float[Tensor, "layers h t t"]:
    """Return the attention weights of all layers and heads of a ``model``.

    The ``text`` is that of one reaction, and ``t`` counts its tokens with ``[CLS]`` and
    ``[SEP]``.
    """
    with evaluating(model), record_attention(model) as maps:
        model(encode(text).to(device_of(model)))
    return torch.cat([one for calls in maps.values() for one in calls]).cpu()


@require.shapes
def links(maps: Float[Tensor, "layers h t t"], text: str) -> Int[Tensor, "layers h _"]:
    """Return for each atom of the product the reactants' atom it attends to most.

    Args:
        maps: of :func:`attention_maps`.
        text: of the reaction.

    Returns:
        Numbers of atoms, ``(layers, h, …)``, one for each atom of the product.
    """
    before, behind = atom_places(text)
    return maps[:, :, behind][..., before].argmax(dim=-1)


def right_links(
    found: Int[Tensor, "layers h _"], reaction: Reaction
) -> Bool[Tensor, "layers h _"]:
    """Return which links of a ``reaction`` are right; ``found`` is of :func:`links`."""
    right = [
        torch.isin(found[..., i], torch.tensor([*may]))
        for i, may in enumerate(reaction.right())
    ]
    return torch.stack(right, dim=-1)
