"""Chapter 06: the same models with every set of parts that the ladder leaves out.

Of 32 sets the ladder has seven; the other 25 are trained with seed 0, and with all
seeds those that the page compares with a rung.
"""

from itertools import combinations
from typing import Any

from annotated.chapters.ch06.ladder import LADDER, LADDER_PARTS, LADDER_TRAINING
from annotated.chapters.ch06.ladder_records import by_parts
from benchmarks.ch06.ladder import EXAMPLES, one
from benchmarks.record import SEEDS, read

WITHOUT_ONE = [tuple(p for p in LADDER_PARTS if p != part) for part in LADDER_PARTS]
COMPARED = [
    *WITHOUT_ONE,
    ("residual", "network", "norm"),
    ("residual", "self-attention"),
]


def others() -> list[tuple[str, ...]]:
    """Return the sets of parts that are not on the ladder."""
    on_ladder = [LADDER_PARTS[:count] for count in range(len(LADDER_PARTS) + 1)]
    on_ladder.append(tuple(part for part in LADDER_PARTS if part != "norm"))
    return [
        parts
        for count in range(len(LADDER_PARTS) + 1)
        for parts in combinations(LADDER_PARTS, count)
        if parts not in on_ladder
    ]


def run() -> dict[str, Any]:
    rows = []
    for seed in SEEDS:
        for parts in others():
            if seed == 0 or parts in COMPARED:
                row = one(", ".join(parts), parts, seed)
                del row["losses"]
                rows.append({**row, "parts": list(parts)})
    return {
        "config": LADDER,
        "training": LADDER_TRAINING,
        "tested": 1000,
        "examples": EXAMPLES,
        "rows": rows,
    }


def bands(record: dict[str, Any]) -> None:
    """Check the bands, and what the page says of its 32 models, with seed 0."""
    assert (record["config"], record["training"]) == (LADDER, LADDER_TRAINING)
    runs = by_parts(read("ladder"), record)
    assert len(runs) == 2 ** len(LADDER_PARTS)
    for without, whole in zip(runs["11011"], runs["11111"], strict=True):
        assert without["loss"] > whole["loss"]
    best = sorted(runs, key=lambda bits: runs[bits][0]["loss"])
    one, two = ([bits for bits in best if bits.count("1") == n] for n in (1, 2))
    ends = [best[0], one[0], one[-1], two[0]]
    assert ends == ["11111", "10000", "00100", "10001"]
    exact = [runs[bits][0]["exact"] for bits in ("10001", "11111")]
    assert exact[0] == 380 < exact[1]  # the page: 380
    bare = [bits for bits in best if bits[0] == "0"]  # without the residual
    assert len(bare) == 16 and bare.index("00000") == 2  # two are better than no part
