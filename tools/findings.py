"""What the notebooks found about trained models, on this machine and on the recorded.

    python -m tools.findings            list what differs here; the book is built anyway
    python -m tools.findings --strict   exit 1 if anything does, or lacks its record

A finding is data in a cell's output (`expect` in annotated/page/notebook.py).
Mathematics is asserted and stops a notebook; a finding never does.
"""

import argparse
import operator
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import CHAPTERS, ROOT, cache, slices

MIME = "application/vnd.annotated.finding+json"
RECORDS = "book/results/findings"
SIGNS = {">": operator.gt, "≥": operator.ge, "<": operator.lt, "≤": operator.le}
# So many have to have run a notebook before its findings count.
MACHINES = 30


def held(output: dict) -> bool:
    """Whether an output is a finding that holds, which shows nothing."""
    return output.get("data", {}).get(MIME, {}).get("held", False)


def in_notebook(notebook: dict) -> Iterator[dict]:
    """The findings among a notebook's outputs."""
    for cell in cache.code_cells(notebook):
        for output in cell.get("outputs", []):
            if MIME in output.get("data", {}):
                yield output["data"][MIME]


def executed(root: Path = ROOT) -> dict[str, list[dict]]:
    """The findings of each chapter that the cache holds as it is now."""
    found = {}
    for path in sorted((root / CHAPTERS).glob("*.ipynb")):
        kept = cache.place(path, cache.read(path), root)
        if kept.is_file():
            found[path.stem] = list(in_notebook(cache.read(kept)))
    return found


def recorded(name: str, root: Path = ROOT) -> dict:
    """What the machines found: their values, and those of the alternative.

    Only of those that ran the page's code as it is now, where all that it asserts held.
    """
    page = name.split("-")[0]
    file = root / RECORDS / f"{page}.json"
    paths = list((root / CHAPTERS).glob(f"{page}_*.ipynb"))
    if not (file.is_file() and paths):
        return {"values": {}, "unlike": {}}
    record, code = cache.read(file), slices.hash_of(cache.read(paths[0]))
    known = {
        machine
        for machine, ran in record["machines"].items()
        if ran["code"] == code and not ran["asserts"]
    }
    found = record["findings"].get(name, {"values": {}, "unlike": {"values": {}}})
    values, others = found["values"], found["unlike"]["values"]
    return {
        "values": {m: values[m] for m in values if m in known},
        "unlike": {m: others[m] for m in others if m in known},
    }


def spread(numbers: list) -> str:
    low, high = min(map(float, numbers)), max(map(float, numbers))
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def inside(band: str, numbers: list) -> bool:
    """Whether all numbers are in a band, such as ``> 0.5 and ≤ 1``."""
    bounds = [bound.split() for bound in band.split(" and ")]
    return all(
        SIGNS[sign](float(number), float(end))
        for number in numbers
        for sign, end in bounds
    )


def differs(finding: dict, root: Path = ROOT) -> str:
    """What is found here and not on the recorded machines, in a line."""
    found = recorded(finding["name"], root)["values"]
    there = spread([n for numbers in found.values() for n in numbers]) if found else "-"
    return (
        f"{finding['name']}: {finding['words']} Here {spread(finding['value'])}, band "
        f"{finding['band']}; {len(found)} recorded machines: {there}"
    )


def faults(finding: dict, root: Path = ROOT) -> list[str]:
    """What an author has to mend: no record, or one that doesn't carry the words."""
    name, band = finding["name"], finding["band"]
    record = recorded(name, root)
    values, others = record["values"], record["unlike"]
    wrong = []
    if len(values) < MACHINES:
        wrong.append(f"{len(values)} of {MACHINES} machines are recorded")
    missed = [machine for machine, found in values.items() if not inside(band, found)]
    if missed:
        wrong.append(f"{finding['words']} Missed on {', '.join(missed)}")
    others = {**others, "here": finding["unlike"]["value"]}
    alike = [
        machine
        for machine, found in others.items()
        if any(inside(band, [number]) for number in found)
    ]
    if alike:
        named = finding["unlike"]["words"]
        wrong.append(f"{named} is in the band {band}, too, on {', '.join(alike)}")
    return [f"{name}: {text}" for text in wrong]


def lacking(shown: dict[str, list[str]], root: Path = ROOT) -> list[str]:
    """What pages don't state here, though their code or their record has it."""
    wrong = []
    for path in sorted((root / CHAPTERS).glob("*.ipynb")):
        file = root / RECORDS / f"{path.stem.split('_')[0]}.json"
        if path.stem not in shown:
            if "expect(" in cache.code_of(cache.read(path)):
                wrong.append(f"{path.stem}: not executed here as it is now")
        elif file.is_file():
            names = cache.read(file)["findings"].keys() - set(shown[path.stem])
            wrong += [f"{name}: recorded, and not stated" for name in sorted(names)]
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.findings",
        description="List the findings that differ on this machine.",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail on these, and on what lacks a record",
    )
    strict = parser.parse_args(arguments).strict
    pages = executed()
    findings = [finding for found in pages.values() for finding in found]
    differ = [differs(finding) for finding in findings if not finding["held"]]
    names = [finding["name"] for finding in findings]
    wrong = [f"{name}: twice" for name in sorted(set(names)) if names.count(name) > 1]
    wrong += [
        f"{name}: on page {stem.split('_')[0]}"
        for stem, found in pages.items()
        for name in (finding["name"] for finding in found)
        if not name.startswith(f"{stem.split('_')[0]}-")
    ]
    if strict:
        wrong += [fault for finding in findings for fault in faults(finding)]
        wrong += lacking({stem: [f["name"] for f in pages[stem]] for stem in pages})
    print(
        f"{len(findings)} findings about trained models; {len(differ)} differ on this "
        "machine" + (":" if differ else "")
    )
    for line in [*differ, *wrong]:
        print(f"  {line}")
    return int(bool(wrong or (strict and differ)))


if __name__ == "__main__":
    sys.exit(main())
