"""Page 17b, why fused attention wins: its figures, its tables and its explorer.

Letters: t query length, s key length, k width of a query, key or value
(``book/notation.md``).
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import masked_softmax, scaled_dot_product_attention
from annotated.masks import causal_mask
from annotated.page.ch14 import megabytes_saved
from annotated.page.frames import Html, Slider, Switch, explorer, static
from annotated.page.notebook import show, show_table
from annotated.page.pictures import Matrix, chain, number
from annotated.page.plots import OTHER, THIS, name_lines
from annotated.recipes.tiles import TiledAttention
from annotated.sparse import Pattern

Record = Mapping[str, Any]

BYTES = 4  #: of a number
WAYS = ("written out", "tiled", "fused")


def run_of(record: Record, way: str, length: int, causal: bool = True) -> Record:
    """Return the run of ``way`` at ``length`` from ``fused_memory``'s ``record``."""
    wanted = {"way": way, "length": length, "causal": causal}
    (run,) = (run for run in record["runs"] if wanted.items() <= run.items())
    return run


def lengths(record: Record) -> list[int]:
    """Return the lengths in ``fused_memory``'s ``record``."""
    return sorted({run["length"] for run in record["runs"]})


def memory_figure(record: Record) -> Html:
    """Draw the peak of memory against the length, of causal attention."""
    figure, ax = plt.subplots(figsize=(8.6, 3.6))
    ends, t = {}, lengths(record)
    for way, line in zip(WAYS, ("-", "--", "-"), strict=True):
        MB = [run_of(record, way, n)["MB"] for n in t]
        color = THIS if way == "fused" else OTHER
        ax.plot(t, MB, line, color=color, marker="o", label=way)
        ends[way] = MB[-1]
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(t, [f"{n:,}" for n in t])
    ax.minorticks_off()
    ax.set(xlabel="positions", ylabel="memory at the peak (MB)", ylim=(3, None))
    name_lines(ax)
    share = ends["written out"] / ends["fused"]
    said = ", ".join(f"{way} {MB:,.0f} MB" for way, MB in ends.items())
    return show(
        figure,
        title=f"At {t[-1]:,} positions, writing the matrix out takes {share:.0f} times "
        "the memory",
        alt=f"Memory against length, both axes logarithmic. At {t[-1]:,}: {said}.",
        caption="Causal attention, forward and backward, four heads of width 64. With "
        "each doubling, written out grows fourfold, the other two at most twofold.",
    )


# ---- one row, in blocks --------------------------------------------------------------


def row_picture(scores: Tensor, values: Tensor) -> Html:
    """Draw the powers of a row's ``scores`` in blocks of two, and its ``values``."""
    powers = scores.exp()
    return chain(
        Matrix(powers[None], "exp(score)", rows=[""], cut=2, digits=0),
        Matrix(values[None], "value", rows=[""], cut=2, digits=0),
        caption=f"One row, cut into blocks of two. Its softmax divides by "
        f"{powers.sum():.0f}.",
    )


def steps_table(steps: Sequence[Sequence[Tensor]]) -> Html:
    """Show what is kept after each block of a row.

    Args:
        steps: maximum, factor, sum and output after each block.
    """
    rows = [
        (f"{i}", f"log {m.exp():.0f}", *(number(x.item(), 5) for x in rest))
        for i, (m, *rest) in enumerate(steps, start=1)
    ]
    return show_table(
        ("block", "m", "factor", "sum", "o"),
        rows,
        caption="What is kept after each block. The factor rescales sum and o of the "
        "blocks before.",
    )


# ---- the walk ------------------------------------------------------------------------

SIZES, COUNT = (1, 2, 4, 8), 8


def walk_numbers() -> tuple[Tensor, Tensor]:
    """Return scores and values of the walk, as the reader sees them: rounded."""
    draws = torch.Generator().manual_seed(2)
    scores = (1.6 * torch.randn(COUNT, COUNT, generator=draws)).double()
    values = torch.randint(1, 10, (COUNT,), generator=draws).double()
    return (10 * scores).round() / 10 + 0.0, values  # no −0


def walk_order(size: int, causal: bool) -> list[tuple[int, int]]:
    """Return row and column of each tile that is walked."""
    parts = range(COUNT // size)
    return [(a, b) for a in parts for b in parts if b <= a or not causal]


def values_of(
    scores: Tensor, values: Tensor, size: int, causal: bool, tile: int
) -> dict[str, Any]:
    """Return what the walk has to show, from the rows' whole softmax so far.

    Args:
        scores: of all pairs.
        values: one for each key.
        size: of the tiles.
        causal: whether later keys are hidden.
        tile: number of the tile, from 1.
    """
    order = walk_order(size, causal)
    a, b = order[tile - 1]
    rows, end = slice(a * size, (a + 1) * size), (b + 1) * size
    mask = causal_mask(COUNT)[..., rows, :].reshape(size, COUNT) | (not causal)
    z = scores[rows].masked_fill(~mask, -torch.inf)
    m, before = z[:, :end].amax(dim=1), torch.full((size,), -torch.inf).double()
    if b:
        before = z[:, : end - size].amax(dim=1)
    weights = masked_softmax(scores[rows, :end], mask[:, :end])
    return {
        "alive": size * size,
        "skipped": (COUNT // size) ** 2 - len(order),
        "tiles": len(order),
        "m": m.tolist(),
        "factor": (before - m).exp().tolist(),
        "total": (z[:, :end] - m[:, None]).exp().sum(dim=1).tolist(),
        "output": (weights @ values[:end]).tolist(),
    }


def walk_explorer() -> Html:
    """Show a walk over the tiles of a small attention."""
    scores, values = walk_numbers()
    checks = []
    for size in SIZES:
        for causal in (True, False):
            last = len(walk_order(size, causal))
            for tile in sorted({1, (last + 1) // 2, last}):
                state = {"size": size, "causal": causal, "tile": tile}
                wanted = values_of(scores, values, size, causal, tile)
                checks.append((state, wanted))
    made = explorer(
        static("tile_walk.js"),
        {"scores": scores.tolist(), "values": values.tolist()},
        [
            Slider("size", "tile size", SIZES, 2),
            Switch("causal", "causal", True),
            Slider("tile", "tile", range(1, COUNT * COUNT + 1), 1),
        ],
        label="Walk the tiles",
        checks=checks,
        question="A factor of 1 changes nothing. In which tiles will it be below 1? "
        "Press “next tile”.",
        caption="Numbers in the matrix: the scores that exist now (blue: positive, "
        "orange: negative). Grey: computed, used and forgotten. Hatched: hidden. In "
        "the shaded rows, bold factors rescale; a row's first factor is 0, since "
        "nothing is there yet. Green: a finished output.",
    )
    answer = (
        "<details><summary>Answer</summary><p>In those that hold a score larger than "
        "every earlier one of its row. With one tile of 8, nothing is ever rescaled, "
        "but the whole matrix is in memory.</p></details>"
    )
    return Html(str(made.text) + answer)


# ---- work, bytes and time ------------------------------------------------------------


def multiplications(t: int, k: int) -> int:
    """Return the multiplications of one head's two products, every key in sight.

    Args:
        t: number of queries and keys.
        k: width of queries, keys and values.
    """
    return 2 * t * t * k


def bytes_moved(t: int, k: int, size: int | None = None) -> int:
    """Return the bytes that one head's forward pass moves to and from slow memory.

    Args:
        t: number of queries and keys.
        k: width of queries, keys and values.
        size: of the tiles; if not given, scores and weights are written out, and read
            again.
    """
    if size is None:
        return BYTES * (4 * t * k + 4 * t * t)
    return BYTES * (2 * t * k + ceil(t / size) * 2 * t * k)


def bytes_held(k: int, size: int) -> int:
    """Return the bytes of a tile: queries, keys, values, output and scores.

    Args:
        k: width of queries, keys and values.
        size: of the tile.
    """
    return BYTES * (4 * size * k + size * size)


def megabytes(count: float) -> str:
    """Return a number of bytes in MB, to two places of which one is never zero."""
    return f"{count / 1e6:,.{0 if count >= 1e7 else 1 if count >= 1e6 else 2}f}"


def work_table(record: Record) -> Html:
    """Show by tile size what a tile holds, what is moved, and the recorded time."""
    t, k = record["tiles"][0]["length"], record["config"]["width"]
    rows = [
        (
            f"{run['size']:,}",
            megabytes(bytes_held(k, run["size"])),
            megabytes(bytes_moved(t, k, run["size"])),
            f"{median(run['seconds']):.2f}",
        )
        for run in record["tiles"]
    ]
    whole = run_of(record, "written out", t, causal=False)
    moved, seconds = megabytes(bytes_moved(t, k)), f"{median(whole['seconds']):.2f}"
    rows.append(("written out", "", moved, seconds))
    return show_table(
        ("tile", "MB in a tile", "MB moved", "seconds"),
        rows,
        caption=f"{t:,} positions, every key in sight. Computed, for the forward pass "
        "of one head: what a tile needs at once, and what goes to and from slow memory "
        f"if a tile fits in fast memory; {multiplications(t, k) / 1e9:.1f} billion "
        "multiplications in each row. Measured: CPU seconds of the loop in Python, "
        "forward and backward, four heads, one thread (median of three).",
    )


def time_table(record: Record) -> Html:
    """Show the recorded CPU seconds at the longest length."""
    t = lengths(record)[-1]
    rows = [
        (
            name,
            *(
                f"{median(run_of(record, way, t, causal)['seconds']):.1f}"
                for causal in (False, True)
            ),
        )
        for way, name in zip(
            WAYS, ("written out", "tiled, in Python", "fused"), strict=True
        )
    ]
    return show_table(
        ("attention", "every key in sight", "causal"),
        rows,
        caption=f"CPU seconds, forward and backward, {t:,} positions (four heads of "
        "width 64, one thread, median of three).",
    )


def seconds_by_size(record: Record) -> dict[int, float]:
    """Return the loop's recorded CPU seconds by the size of its tiles: medians."""
    return {run["size"]: median(run["seconds"]) for run in record["tiles"]}


def sizes_said(record: Record) -> str:
    """Return in words what the recorded times by tile size show."""
    seconds = seconds_by_size(record)
    best, last = min(seconds, key=seconds.get), max(seconds)
    small = min(seconds)
    out = median(run_of(record, "written out", last, causal=False)["seconds"])
    return (
        f"All rows but the last run the same code. Tiles of {best} are the fastest, "
        f"{seconds[last] / seconds[best]:.1f} times as fast as one tile of {last:,}, "
        "which multiplies as much: only where its numbers lie is different. (One tile "
        f"is {seconds[last] / out:.1f} times as slow as attention written out, since "
        "our loop passes over a tile more often. In the cache that's cheap.) Small "
        f"tiles lose time elsewhere: with tiles of {small}, Python starts "
        f"{ceil(last / small) ** 2:,} of them."
    )


def ways_said(record: Record) -> str:
    """Return in words what the recorded times of three ways show."""
    t = lengths(record)[-1]
    seconds = {
        (way, causal): median(run_of(record, way, t, causal)["seconds"])
        for way in WAYS
        for causal in (False, True)
    }
    out = {causal: seconds["written out", causal] for causal in (False, True)}
    fast, faster = (out[causal] / seconds["fused", causal] for causal in out)
    loop = out[False] / seconds["tiled", False]
    return (
        f"On this CPU core, with every key in sight, the kernel is {fast:.1f} times as "
        f"fast as attention written out, and our loop in Python {loop:.1f} times. "
        "Here, fewer bytes alone gain next to nothing. With the causal mask, the "
        f"kernel is about {faster:.0f} times as fast. It skips the tiles above the "
        "diagonal. Written out, they are computed as well, and then masked: with its "
        "passes over the matrix, the mask makes it about "
        f"{out[True] / out[False]:.0f} times as slow."
    )


def check_record(record: Record) -> None:
    """Prove what the page says of the recorded memory and times."""
    t = lengths(record)[-1]
    MB = {(way, n): run_of(record, way, n)["MB"] for way in WAYS for n in (t // 2, t)}
    assert 3.5 < MB["written out", t] / MB["written out", t // 2] < 4.5
    for way in ("tiled", "fused"):
        assert MB[way, t] / MB[way, t // 2] < 2.3, way
        assert MB["written out", t] > 70 * MB[way, t], way
    seconds = seconds_by_size(record)
    best = min(seconds, key=seconds.get)
    assert 64 <= best <= 512 and seconds[max(seconds)] > 1.3 * seconds[best]
    for causal, least in ((False, 1.3), (True, 4)):
        out, loop, fused = (
            median(run_of(record, way, t, causal)["seconds"]) for way in WAYS
        )
        assert out > least * fused and fused < loop < out
    print(
        f"✓ from {t // 2:,} to {t:,}: fourfold written out, twofold in tiles; the "
        f"fastest tiles are {best} wide"
    )


def saved_ways(t: int) -> dict[str, float]:
    """Return the MB that several ways to attend save for the backward pass.

    Args:
        t: number of positions.
    """
    heads, k = 4, 64
    q, keys, v = (torch.randn(1, heads, t, k, requires_grad=True) for _ in range(3))
    x = torch.randn(1, t, heads * k, requires_grad=True)
    mask = causal_mask(t)
    module = nn.MultiheadAttention(heads * k, heads, batch_first=True)

    def fused(**options: Any) -> Callable[[Tensor], Tensor]:
        return lambda q: F.scaled_dot_product_attention(q, keys, v, **options)

    def asked(x: Tensor, need_weights: bool) -> Tensor:
        hidden = ~mask[0, 0]
        return module(x, x, x, attn_mask=hidden, need_weights=need_weights)[0]

    none = nn.Identity()
    ways: dict[str, tuple[nn.Module, Callable, Tensor]] = {
        "our loop": (
            none,
            lambda q: TiledAttention.apply(q, keys, v, Pattern(low=0), 256),
            q,
        ),
        "is_causal=True": (none, fused(is_causal=True), q),
        "attn_mask, boolean": (none, fused(attn_mask=mask), q),
        "is_causal=True, dropout_p=0.1": (
            none,
            fused(is_causal=True, dropout_p=0.1),
            q,
        ),
        "weights written out": (
            none,
            lambda q: scaled_dot_product_attention(q, keys, v, mask)[0],
            q,
        ),
        "nn.MultiheadAttention, need_weights=False": (
            module,
            lambda x: asked(x, False),
            x,
        ),
        "nn.MultiheadAttention, need_weights=True": (
            module,
            lambda x: asked(x, True),
            x,
        ),
    }
    return {name: megabytes_saved(*way) for name, way in ways.items()}


def saved_table(saved: Mapping[str, float], t: int) -> Html:
    """Show what is saved for the backward pass.

    Args:
        saved: MB by way.
        t: number of positions.
    """
    return show_table(
        ("attention", "MB saved"),
        [(name, f"{MB:.1f}") for name, MB in saved.items()],
        caption=f"Saved for the backward pass at {t:,} positions, four heads of width "
        "64, on a CPU. Their four matrices of weights would be "
        f"{megabytes(4 * t * t * BYTES)} MB.",
    )


def check_saved(saved: Mapping[str, float], t: int) -> None:
    """Prove which ways keep matrices of weights, one for each of four heads."""
    matrix = t * t * BYTES / 1e6
    least = saved["is_causal=True"]
    assert saved["our loop"] < 1.1 * least
    mask = saved["attn_mask, boolean"] - least
    assert abs(mask - matrix) < 0.1 * matrix  # one for all heads
    for way in (
        "is_causal=True, dropout_p=0.1",
        "weights written out",
        "nn.MultiheadAttention, need_weights=True",
    ):
        assert saved[way] > 4 * matrix, way
    asked, unasked = (
        saved[f"nn.MultiheadAttention, need_weights={needed}"]
        for needed in (True, False)
    )
    assert asked - unasked > 2.5 * matrix
    print(f"✓ a matrix is {matrix:.1f} MB: none, one (the mask), or four and more")
