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
from annotated.page.diagrams import NOTE, Drawing
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


def trips(t: int, k: int, size: int | None = None) -> list[tuple[str, int, bool]]:
    """Return what one head's forward pass moves between slow and fast memory, in order.

    Args:
        t: number of queries and keys.
        k: width of queries, keys and values.
        size: of the tiles; if not given, scores and weights are written out, and read
            again.

    Returns:
        Of each trip what travels, its bytes, and whether it goes into fast memory.
    """
    rows, matrix = BYTES * t * k, BYTES * t * t
    if size is None:
        return [
            ("q, k", 2 * rows, True),
            ("scores", matrix, False),
            ("scores", matrix, True),
            ("weights", matrix, False),
            ("weights", matrix, True),
            ("v", rows, True),
            ("o", rows, False),
        ]
    times = ceil(t / size)
    return [
        ("q", rows, True),
        (f"k, v, {times} times", times * 2 * rows, True),
        ("o", rows, False),
    ]


def bytes_moved(t: int, k: int, size: int | None = None) -> int:
    """Return the bytes of all :func:`trips`, of which these are the arguments.

    ``t`` positions of width ``k``, and tiles of ``size``.
    """
    return sum(count for _, count, _ in trips(t, k, size))


def megabytes(count: float) -> str:
    """Return a number of bytes in MB, to two places of which one is never zero."""
    return f"{count / 1e6:,.{0 if count >= 1e7 else 1 if count >= 1e6 else 2}f}"


def trips_picture(t: int, k: int, size: int) -> Html:
    """Draw what travels between slow and fast memory, written out and in tiles.

    Args:
        t: number of queries and keys.
        k: width of queries, keys and values.
        size: of the tiles.
    """
    drawing, top, said = Drawing(350, 386), 0, []
    for name, used in (("written out", None), (f"in tiles of {size}", size)):
        moved = megabytes(bytes_moved(t, k, used))
        title = f"{name.capitalize()}: {moved} MB travel"
        drawing.text(0, top + 14, title, anchor="start", bold=True)
        lanes = trips(t, k, used)
        height = max(27 * len(lanes) + 12, 96)
        for left, place, color in ((1, "slow", "other"), (277, "fast", "this")):
            drawing.frame(left, top + 24, 72, height, shade=0.15, color=color)
            drawing.text(left + 36, top + 42, place, bold=True)
            drawing.text(left + 36, top + 58, "memory")
        stay = {"scores": 46, "weights": 46} if used is None else {"one tile": 14}
        x, y = 37 if used is None else 313, top + 70
        for word, side in stay.items():
            drawing.cells(x - side / 2, y, [[True]], size=side, shade=0.5)
            drawing.text(x, y + side + 14, word, size=NOTE)
            y += side + 24
        for i, (what, count, into) in enumerate(lanes):
            y = top + 50 + 27 * i
            ends = ((76, y), (274, y)) if into else ((274, y), (76, y))
            drawing.arrow(*ends, width=1.2 + 4.3 * count / (BYTES * t * t))
            words = f"{what}: {megabytes(count)} MB"
            drawing.text(175, y - 6, words, size=NOTE)
            said.append(f"{words} {'into fast memory' if into else 'back'}")
        said.append(f"together {moved} MB ({name})")
        top += height + 46
    return drawing.figure(
        alt="Two drawings of slow and fast memory, and of what travels between them. "
        + "; ".join(said)
        + ". In tiles, scores and weights stay in fast memory.",
        caption=f"One head of width {k}, forward, {t:,} positions, every key in sight, "
        "float32. The thicker the arrow, the more bytes. A tile's scores and weights "
        "are made, used and dropped in fast memory.",
    )


#: operations and bytes per second, as Dao (2023) and Dao et al. (2022) give them
A100 = {"operations per second": 312e12, "bytes per second": 1.5e12}


def pace(t: int, k: int, size: int, speed: Record, number: int) -> list[float]:
    """Return the milliseconds that products and trips take, each at full speed.

    Args:
        t: number of queries and keys.
        k: width of queries, keys and values.
        size: of the tiles.
        speed: operations and bytes per second.
        number: bytes of one.

    Returns:
        Of the products, of the trips written out, and of those in tiles.
    """
    moved = [bytes_moved(t, k, used) * number / BYTES for used in (None, size)]
    work = 2 * multiplications(t, k) / speed["operations per second"]
    return [1e3 * s for s in (work, *(b / speed["bytes per second"] for b in moved))]


def pace_table(t: int, k: int, size: int, record: Record) -> Html:
    """Show what products and trips take, on the recorded core and on a GPU.

    Args:
        t: number of queries and keys.
        k: width of queries, keys and values.
        size: of the tiles.
        record: ``softmax_bands``.
    """
    rows = []
    for name, speed, size_of_one in (
        ("our CPU core, float32", record, 4),
        ("an A100, float16", A100, 2),
    ):
        found = pace(t, k, size, speed, size_of_one)
        rows.append((name, *(f"{float(f'{ms:.2g}'):g}" for ms in found)))
    return show_table(
        ("milliseconds", "products", "trips, written out", "trips, in tiles"),
        rows,
        caption="What the picture's attention takes if only the products counted, or "
        "only the trips: its operations and bytes, divided by how many each processor "
        f"manages per second. Our core: {record['operations per second'] / 1e9:.0f} "
        "billion operations in a large product, "
        f"{record['bytes per second'] / 1e9:.0f} billion bytes in a copy (measured). "
        f"The GPU: {A100['operations per second'] / 1e12:.0f} trillion, and "
        f"{A100['bytes per second'] / 1e12:.1f} trillion bytes (cited).",
    )


def gains(record: Record, steps: str) -> dict[int, float]:
    """Return how many times as fast as the whole matrix each size of bands is.

    Args:
        record: ``softmax_bands``; of each size, the fastest run counts.
        steps: "signs" or "softmax".
    """
    runs = (run for run in record["runs"] if run["steps"] == steps)
    fastest = {run["size"]: min(run["seconds"]) for run in runs}
    return {n: fastest[max(fastest)] / one for n, one in fastest.items()}


def bands_figure(record: Record) -> Html:
    """Draw how much faster bands of rows are than the whole matrix, by their size."""
    figure, ax = plt.subplots(figsize=(8.6, 3.6))
    row = BYTES * record["config"]["length"] / 1e6  # MB
    best = {}
    for steps, name, color in (
        ("signs", "eight changes of sign", OTHER),
        ("softmax", "a softmax", THIS),
    ):
        by_size = gains(record, steps)
        MB = [row * size for size in by_size]
        ax.plot(MB, [*by_size.values()], color=color, marker="o", ms=5, label=name)
        size = max(by_size, key=by_size.get)
        best[steps] = by_size[size]
        place = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
        ax.annotate(name, (row * size, best[steps]), **place, color=color)
    for level, size in record["config"]["caches"].items():
        if level != "L1":
            ax.axvline(size, color=OTHER, lw=1, ls=":")
            ax.annotate(level, (size, 0.05), (4, 0), textcoords="offset points")
    ax.set(xscale="log", ylim=(0, 1.2 * best["signs"]), xlabel="MB in a band")
    ax.set_ylabel("times as fast as the whole matrix")
    ticks = (0.1, 1, 10, 100)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    one = {steps: gains(record, steps)[1] for steps in best}
    caches = record["config"]["caches"]
    return show(
        figure,
        title=f"In the cache, eight light steps run {best['signs']:.1f} times as fast, "
        f"a softmax {best['softmax']:.1f} times",
        alt="Speed against the size of a band, relative to the whole matrix at once. "
        f"Eight changes of sign rise to {best['signs']:.1f} and fall to 1 beyond the "
        f"caches; a softmax rises to {best['softmax']:.1f} only. With one row per band "
        f"they are at {one['signs']:.1f} and {one['softmax']:.1f}.",
        caption=f"A matrix of {record['config']['length']:,} rows and columns, one "
        "core, CPU seconds, best of seven. All sizes do the same operations and give "
        f"the same numbers. Upright lines: its own cache (L2, {caches['L2']:.0f} MB), "
        f"and the one it shares (L3, {caches['L3']:.0f} MB). With one row per band, "
        "Python's own work dominates.",
    )


def check_bands(record: Record) -> None:
    """Prove what the page says of bands, and of the core's speed."""
    best = {}
    for steps in ("signs", "softmax"):
        by_size = gains(record, steps)
        size = max(by_size, key=by_size.get)
        best[steps] = by_size[size]
        MB = BYTES * record["config"]["length"] * size / 1e6
        assert 0.25 <= MB <= 16, steps
        assert by_size[size] > 1.4 * by_size[1], steps
    assert best["signs"] > 1.7 and 1.1 < best["softmax"] < 1.7
    products, out, tiled = pace(8192, 64, 256, record, BYTES)
    assert tiled < out < products / 4
    products, out, tiled = pace(8192, 64, 256, A100, 2)
    assert tiled < products < out / 6
    print(f"✓ bands gain {best['signs']:.1f} and {best['softmax']:.1f} times")


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


def ways_said(record: Record) -> str:
    """Return in words what the recorded times of three ways show, and of tile sizes."""
    t = lengths(record)[-1]
    seconds = {
        (way, causal): median(run_of(record, way, t, causal)["seconds"])
        for way in WAYS
        for causal in (False, True)
    }
    out = {causal: seconds["written out", causal] for causal in (False, True)}
    fast, faster = (out[causal] / seconds["fused", causal] for causal in out)
    loop = out[False] / seconds["tiled", False]
    by_size = seconds_by_size(record)
    best, last = min(by_size, key=by_size.get), max(by_size)
    return (
        "With every key in sight, our loop takes about as long as attention written "
        f"out: it's {loop:.1f} times as fast, so here, fewer bytes alone gain next to "
        f"nothing. The kernel is {fast:.1f} times as fast, and with the causal mask "
        f"about {faster:.0f} times, because it skips the tiles above the diagonal. "
        "Written out, they are computed and then masked, and the mask's own passes "
        f"over the matrix make that about {out[True] / out[False]:.0f} times as slow. "
        "Tiles may be too small or too large: at "
        f"{last:,} positions, our loop is fastest with tiles of {best}, "
        f"{by_size[last] / by_size[best]:.1f} times as fast as with one tile."
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
