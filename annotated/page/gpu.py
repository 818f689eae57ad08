"""What `make gpu` measured: tables for pages, where somebody has run it.

Without its record, a table is None, for which a notebook shows nothing.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from typing import Any

from annotated.page.notebook import Html, show_table

FOLDER = resources.files("annotated.results").joinpath("gpu")
Row = dict[str, Any]  # of a record, as tools/gpu.py describes it


def gpu_table(
    name: str,
    header: Sequence[str],
    cells: Callable[[list[Row]], Iterable[Sequence[str]]],
    caption: str,
) -> Html | None:
    """Return a table of a record of `make gpu`, or None if there is no such record.

    Args:
        name: the record, ``book/results/gpu/NAME.json``.
        header: names of the columns.
        cells: makes the rows of the table from those of the record.
        caption: what the table shows; the card and PyTorch's version are added.
    """
    file = FOLDER.joinpath(f"{name}.json")
    if not file.is_file():
        return None
    record = json.loads(file.read_text("utf-8"))
    made = record["provenance"]
    caption += f", on one {made['card']} (PyTorch {made['torch']}, {made['date']})."
    return show_table(header, cells(record["rows"]), caption)


def attention_on_gpu() -> Html | None:
    """Return milliseconds of attention by length, with the backward pass, or None."""
    lengths = [2**power for power in range(10, 17)]

    def cells(rows: list[Row]) -> list[list[str]]:
        measured = {(r["way"], r["length"]): r for r in rows if r["backward"]}
        ways = dict.fromkeys(way for way, _ in measured)
        return [
            [way, *(_entry(measured.get((way, n)), "ms") for n in lengths)]
            for way in ways
        ]

    caption = "Milliseconds of causal attention, forward and backward, in bfloat16"
    header = ["", *(f"{n:,} positions" for n in lengths)]
    return gpu_table("attention", header, cells, caption)


def step_on_gpu() -> Html | None:
    """Return what a step of GPT-2 small takes, and what was predicted, or None."""

    def cells(rows: list[Row]) -> list[list[str]]:
        return [
            [
                f"{row['way']}, {row['batch']} texts",
                _entry(row, "ms"),
                _entry(row, "peak", 1e9, ".1f"),
                _entry(row, "predicted", 1e9, ".1f"),
            ]
            for row in rows
        ]

    header = ["", "ms a step", "GB at the peak", "GB by the calculator"]
    caption = "A training step of GPT-2 small with texts of 1,024 tokens"
    return gpu_table("step", header, cells, caption)


def decoding_on_gpu() -> Html | None:
    """Return tokens a second that GPT-2 small writes, or None."""

    def cells(rows: list[Row]) -> list[list[str]]:
        measured = {(row["batch"], row["cache"]): row for row in rows}
        return [
            [
                f"{batch}",
                *(
                    _entry(measured.get((batch, cache)), "tokens a second", 1, ",.0f")
                    for cache in (True, False)
                ),
            ]
            for batch in dict.fromkeys(batch for batch, _ in measured)
        ]

    header = ["texts at once", "with a cache", "without"]
    caption = "Tokens a second, written by a model of GPT-2 small's size"
    return gpu_table("decoding", header, cells, caption)


def _entry(row: Row | None, key: str, unit: float = 1.0, style: str = ".3g") -> str:
    """Return an entry of a ``row`` in a ``unit``; in words why there is none."""
    if row is None:
        return "not yet"
    if "failed" in row:
        return "no room" if "out of memory" in row["failed"] else "refused"
    return "" if row.get(key) is None else f"{row[key] / unit:{style}}"
