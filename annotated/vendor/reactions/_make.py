"""Make `reactions.tsv`, `respelled.tsv` and `molecules.json` of `annotated/page/static`.

    python3.11 -m venv ENV
    ENV/bin/pip install rdkit==2026.9.1
    ENV/bin/python annotated/vendor/reactions/_make.py annotated/page/static

`rules.tsv` has a textbook's rule for each kind of reaction, which says for every atom
where it goes. RDKit applies it to molecules of our choice, keeps track of the atoms
that the rule does not name, and writes both sides in an order of atoms that knows
nothing of the other side. Reagents and solvents stand among the reactants.

`respelled.tsv` has the same products, written from each other atom. `molecules.json`
has what page 15b draws: each reactant laid out flat, then turned, and mirrored if need
be, so that its atoms lie as they do in the product.
"""

import json
import re
import sys
from pathlib import Path

import numpy
from rdkit import Chem
from rdkit.Chem import AllChem

HEAD = """\
# kind, reaction, and for each atom of the product which of the reactants' atoms it is,
# both counted from 0 as they stand (made by annotated/vendor/reactions/_make.py)
"""
HEAD_RESPELLED = """\
# number of a reaction in reactions.tsv, its product written from another atom, and for
# each atom which of the product's it is there (made by the same script)
"""
# which of the reactions of each kind are drawn
DRAWN = {
    "esterification": 0,
    "amide coupling": 0,
    "Diels–Alder": 0,
    "ester hydrolysis": 0,
    "Mitsunobu ester": 1,
    "Claisen rearrangement": 0,
    "Cope rearrangement": 0,
    "indole": 0,
}


def written(mols):
    """Return molecules as sorted text, and which molecule's which atom comes when."""
    parts = []
    for number, mol in enumerate(mols):
        # beside a metal RDKit puts atoms into brackets, which it did not when the
        # patents were written out that the model read
        text = re.sub(r"\[(Br|Cl|I|c|C)(H\d?)?\]", r"\1", Chem.MolToSmiles(mol))
        order = mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
        parts.append((text, [(number, atom) for atom in order]))
    parts.sort(key=lambda part: part[0])
    return ".".join(text for text, _ in parts), [a for _, atoms in parts for a in atoms]


def reaction(rule, reagents, reactants):
    """Return a reaction, and from which reactant's atom each of its product's comes."""
    mols = [Chem.MolFromSmiles(text) for text in reactants.split(".")]
    products = {}
    for (product,) in AllChem.ReactionFromSmarts(rule).RunReactants(mols):
        Chem.SanitizeMol(product)
        products.setdefault(Chem.MolToSmiles(product), product)
    (product,) = products.values()
    came = {
        atom.GetIdx(): (atom.GetIntProp("react_idx"), atom.GetIntProp("react_atom_idx"))
        for atom in product.GetAtoms()
    }
    others = [Chem.MolFromSmiles(text) for text in reagents.split(".")]
    left, order = written(mols + others)
    right, places = written([product])
    return f"{left}>>{right}", [order.index(came[atom]) for _, atom in places]


def spellings(text):
    """Return the other spellings of a molecule, and the order of atoms of each."""
    product = Chem.MolFromSmiles(text)
    found = {text: []}
    for atom in range(product.GetNumAtoms()):
        other = Chem.MolToSmiles(product, rootedAtAtom=atom)
        order = product.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
        found.setdefault(other, list(order))
    del found[text]
    return found


def flat(text):
    """Return a molecule, and places of its atoms; y runs down."""
    molecule = Chem.MolFromSmiles(text)
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    AllChem.Compute2DCoords(molecule, canonOrient=True, bondLength=1.0)
    places = molecule.GetConformer().GetPositions()[:, :2] * [1, -1]
    return molecule, places - places.mean(axis=0)


def turned(places, rows, wanted):
    """Return places turned so that these rows lie best as is wanted (Kabsch)."""
    if len(rows) < 2:
        return places
    own, other = (x - x.mean(axis=0) for x in (places[rows], wanted))
    left, _, right = numpy.linalg.svd(own.T @ other)
    return places @ (left @ right)


def entry(molecule, places, first):
    """Return a molecule as JSON; its atoms are counted from ``first``."""
    bonds = [
        [first + bond.GetBeginAtomIdx(), first + bond.GetEndAtomIdx()]
        + [int(bond.GetBondTypeAsDouble())]
        for bond in molecule.GetBonds()
    ]
    atoms = [
        [first + i, *(round(float(z), 2) for z in place)]
        for i, place in enumerate(places - places.min(axis=0))
    ]
    return {"atoms": atoms, "bonds": bonds}


def drawing(text, origins):
    """Return both sides of a reaction; reactants come in the product's order."""
    before, _, behind = text.partition(">>")
    product, goal = flat(behind)
    sides, first = [], 0
    for part in before.split("."):
        molecule, places = flat(part)
        own = range(first, first + len(places))
        given = [i for i, origin in enumerate(origins) if origin in own]
        places = turned(places, [origins[i] - first for i in given], goal[given])
        across = goal[given, 0].mean() if given else numpy.inf
        sides.append((across, first, entry(molecule, places, first)))
        first += len(places)
    sides.sort(key=lambda side: side[:2])
    return {
        "before": [side for *_, side in sides],
        "behind": [entry(product, goal, 0)],
    }


def main(folder):
    rules = Path(__file__).with_name("rules.tsv").read_text("utf-8").splitlines()
    made = [
        (kind, *reaction(rule, reagents, reactants))
        for kind, rule, reagents, *several in (row.split("\t") for row in rules[1:])
        for reactants in several
    ]
    lines = [f"{kind}\t{text}\t{' '.join(map(str, o))}\n" for kind, text, o in made]
    (folder / "reactions.tsv").write_text(HEAD + "".join(lines), "utf-8")

    lines = [
        f"{number}\t{other}\t{' '.join(map(str, order))}\n"
        for number, (_, text, _) in enumerate(made)
        for other, order in spellings(text.partition(">>")[2]).items()
    ]
    (folder / "respelled.tsv").write_text(HEAD_RESPELLED + "".join(lines), "utf-8")

    drawn = {}
    for kind, which in DRAWN.items():
        text, origins = [row[1:] for row in made if row[0] == kind][which]
        drawn[text] = drawing(text, origins)
    text = json.dumps(drawn, separators=(",", ":"), ensure_ascii=False)
    text = text.replace('},"', '},\n"').replace("{", "{\n", 1)
    (folder / "molecules.json").write_text(text + "\n", "utf-8")


main(Path(sys.argv[1]))
