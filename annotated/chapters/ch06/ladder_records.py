"""Chapter 06: the 32 models that ``ladder`` and ``ladder_parts`` recorded."""

from collections.abc import Mapping
from typing import Any


def by_parts(
    ladder: Mapping[str, Any], more: Mapping[str, Any]
) -> dict[str, list[Mapping[str, Any]]]:
    """Return the runs of each model; "10001" has the first and the last part.

    ``ladder`` and ``more`` are the records ``ladder`` and ``ladder_parts``.
    """
    rungs = [row["rung"] for row in ladder["rows"] if row["seed"] == 0]
    parts = {rung: ladder["parts"][:i] for i, rung in enumerate(rungs)}
    parts["all but the norm"] = [p for p in ladder["parts"] if p != "norm"]
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in ladder["rows"] + more["rows"]:
        has = row["parts"] if "parts" in row else parts[row["rung"]]
        bits = "".join(str(int(part in has)) for part in ladder["parts"])
        runs.setdefault(bits, []).append(row)
    return runs
