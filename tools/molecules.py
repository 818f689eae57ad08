"""Make `annotated/chapters/ch15/molecules.json`: where page 15b draws atoms and bonds.

    python3.11 -m venv ENV
    ENV/bin/pip install rdkit==2026.9.1
    ENV/bin/python -m tools.molecules

RDKit lays each molecule out flat, with bonds of length 1, and says which bonds of a
ring it draws double. Each reactant is turned, and mirrored if need be, so that its
atoms lie as they do in the product, and those that give it most come from left to
right as there. The book itself doesn't need RDKit.
"""

import json
from pathlib import Path

import numpy
from rdkit import Chem
from rdkit.Chem import AllChem

STATIC = Path(__file__).parents[1] / "annotated" / "page" / "static"
#: kinds, and which of the reactions of each
CHOSEN = {
    "esterification": 0,
    "amide coupling": 0,
    "Diels–Alder": 0,
    "ester hydrolysis": 0,
    "Mitsunobu ester": 1,
    "Claisen rearrangement": 0,
    "Cope rearrangement": 0,
    "indole": 0,
}


def flat(text: str) -> tuple[Chem.Mol, numpy.ndarray]:
    """Return a molecule, and places of its atoms; y runs down."""
    molecule = Chem.MolFromSmiles(text)
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    AllChem.Compute2DCoords(molecule, canonOrient=True, bondLength=1.0)
    places = molecule.GetConformer().GetPositions()[:, :2] * [1, -1]
    return molecule, places - places.mean(axis=0)


def turned(places: numpy.ndarray, rows: list[int], wanted: numpy.ndarray):
    """Return places turned so that these rows lie best as is wanted (Kabsch)."""
    if len(rows) < 2:
        return places
    own, other = (x - x.mean(axis=0) for x in (places[rows], wanted))
    left, _, right = numpy.linalg.svd(own.T @ other)
    return places @ (left @ right)


def entry(molecule: Chem.Mol, places: numpy.ndarray, first: int) -> dict:
    """Return a molecule as JSON; its atoms are counted from ``first``."""
    low = places.min(axis=0)
    bonds = [
        [first + bond.GetBeginAtomIdx(), first + bond.GetEndAtomIdx()]
        + [int(bond.GetBondTypeAsDouble())]
        for bond in molecule.GetBonds()
    ]
    atoms = [
        [first + i, *(round(float(z), 2) for z in place)]
        for i, place in enumerate(places - low)
    ]
    return {"atoms": atoms, "bonds": bonds}


def main() -> None:
    """Write the file."""
    lines = (STATIC / "reactions.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    drawn = {}
    for kind, which in CHOSEN.items():
        _, text, origins = [row for row in rows if row[0] == kind][which]
        origins = list(map(int, origins.split()))
        before, behind = text.split(">>")
        product, goal = flat(behind)
        sides, first = [], 0
        for part in before.split("."):
            molecule, places = flat(part)
            own = range(first, first + len(places))
            given = [i for i, origin in enumerate(origins) if origin in own]
            there = [origins[i] - first for i in given]
            places = turned(places, there, goal[given])
            across = goal[given, 0].mean() if given else numpy.inf
            sides.append((across, first, entry(molecule, places, first)))
            first += len(places)
        sides.sort(key=lambda side: side[:2])
        drawn[text] = {
            "before": [side for *_, side in sides],
            "behind": [entry(product, goal, 0)],
        }
    text = json.dumps(drawn, separators=(",", ":"), ensure_ascii=False)
    text = text.replace('},"', '},\n"').replace("{", "{\n", 1)
    (STATIC / "molecules.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
