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
from annotated.chapters.ch17.tiles import TiledAttention
from annotated.masks import causal_mask
from annotated.memory import kept_bytes
from annotated.page.frames import Html, Slider, Switch, explorer, static
from annotated.page.notebook import show, show_table
from annotated.page.pictures import Matrix, chain, number
from annotated.page.plots import OTHER, THIS, plot_bars, plot_lines
from annotated.sparse import Pattern

Record = Mapping[str, Any]

BYTES, HALF = 4, 2  #: of a number in float32, and in float16
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
    t = lengths(record)
    MB = {way: {n: run_of(record, way, n)["MB"] for n in t} for way in WAYS}
    named = {f"{way}: {points[t[-1]]:,.0f}": points for way, points in MB.items()}
    *others, _ = named
    ax = plot_lines(
        named, colors=dict.fromkeys(others, OTHER), xscale="log", yscale="log",
        xlabel="positions", ylabel="memory at the peak (MB)", ylim=(3, None),
    )  # fmt: skip
    ax.lines[1].set_linestyle("--")
    share = MB["written out"][t[-1]] / MB["fused"][t[-1]]
    out, fused = (run_of(record, way, t[-1], False)["MB"] for way in WAYS[::2])
    bare = out / fused
    return show(
        ax.figure,
        title=f"At {t[-1]:,} positions, writing the matrix out takes {share:.0f} times "
        "the fused kernel's memory",
        caption="Causal attention, forward and backward, four heads of width 64, both "
        "scales logarithmic. With each doubling, attention written out takes four "
        "times the memory, the others at most twice. “Written out” is this book's own "
        "function with "
        f"a mask; without one, it takes {bare:.0f} times the kernel's memory.",
    )


# ---- one row, in blocks --------------------------------------------------------------


def row_picture(scores: Tensor, values: Tensor) -> Html:
    """Draw the powers of a row's ``scores`` in blocks of two, and its ``values``."""
    powers = scores.exp()
    return chain(
        Matrix(powers[None], "exp(score)", rows=[""], cut=2, digits=0),
        Matrix(values[None], "value", rows=[""], cut=2, digits=0),
        caption="One row, cut into blocks of two. Its exponentials sum to "
        f"{powers.sum():.0f}.",
    )


def steps_table(steps: Sequence[Sequence[Tensor]]) -> Html:
    """Show what is kept after each block of a row."""
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
    draws = torch.Generator().manual_seed(130)
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
    """Return what the walk has to show, from the rows' whole softmax so far."""
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
        static("ch17/tile_walk.js"),
        {"scores": scores.tolist(), "values": values.tolist()},
        [
            Slider("size", "tile size", SIZES, 2),
            Switch("causal", "causal", True),
            Slider("tile", "tile", range(1, COUNT * COUNT + 1), 1),
        ],
        label="Walk the tiles",
        checks=checks,
        question="Step through with “next tile”. When does a row rescale?",
        caption="Numbers in the matrix: the scores that exist now (blue: positive, "
        "orange: negative). Grey: computed, used and forgotten. Hatched: hidden. In "
        "the shaded rows, bold factors rescale, and a factor of 1 changes nothing; a "
        "row's first is 0, since nothing is there yet. Green: a finished output.",
    )
    answer = (
        "<details><summary>Answer</summary><p>When a score exceeds all earlier "
        "ones in its row. With one tile of 8, nothing is ever rescaled, "
        "but the whole matrix is in memory.</p></details>"
    )
    return Html(str(made.text) + answer)


# ---- work, bytes and time ------------------------------------------------------------


def multiplications(t: int, k: int) -> int:
    """Return the multiplications of one head's two products, without a mask."""
    return 2 * t * t * k


def trips(t: int, k: int, size: int | None = None) -> list[tuple[str, int, bool]]:
    """Return what one head's forward pass moves between the memories, in order.

    Args:
        size: of the tiles; if not given, scores and weights are written out, and read
            again.

    Returns:
        Of each trip what travels, its bytes in float16, and whether it goes into fast
        memory.
    """
    rows, matrix = HALF * t * k, HALF * t * t
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


#: operations and bytes per second, as Dao (2023) and Dao et al. (2022) give them, and
#: bytes of shared memory that a program gets, by NVIDIA's CUDA guide
A100 = {
    "operations per second": 312e12,
    "bytes per second": 1.5e12,
    "bytes": 163 * 1024,
}
TILES = (16, 32, 64, 128, 256)  #: sizes to choose from


def tile_bytes(k: int, size: int) -> int:
    """Return the bytes of fast memory that a tile needs.

    Its queries, keys and values are float16, its scores and outputs float32.
    """
    return size * (3 * HALF * k + BYTES * (k + size))


def pace(t: int, k: int, size: int, speed: Record) -> list[float]:
    """Return the milliseconds that products and trips take, each at full speed.

    Returns:
        Of the products, of the trips written out, and of those in tiles.
    """
    moved = [bytes_moved(t, k, used) for used in (None, size)]
    work = 2 * multiplications(t, k) / speed["operations per second"]
    return [1e3 * s for s in (work, *(b / speed["bytes per second"] for b in moved))]


def lanes(t: int, k: int, size: int | None = None) -> dict[str, Any]:
    """Return what :func:`trips` has to show; ``t``, ``k`` and ``size`` are its own."""
    return {
        "MB": megabytes(bytes_moved(t, k, size)),
        "trips": [
            {"what": f"{what}: {megabytes(count)} MB", "bytes": count, "into": into}
            for what, count, into in trips(t, k, size)
        ],
    }


def trips_explorer(t: int, k: int) -> Html:
    """Show what travels between slow and fast memory, by the size of a tile."""
    tiles, checks = {}, []
    for size in TILES:
        needs = tile_bytes(k, size)
        values = {
            "KB": needs / 1024,
            "fits": needs <= A100["bytes"],
            "ms": pace(t, k, size, A100),
        }
        tiles[f"{size}"] = values | lanes(t, k, size)
        checks.append(({"size": size}, values))
    made = explorer(
        static("ch17/tile_trips.js"),
        {
            "matrix": HALF * t * t,
            "out": lanes(t, k),
            "tiles": tiles,
            "room": A100["bytes"] / 1024,
        },
        [Slider("size", "tile size", TILES, 256)],
        label="What travels, by the size of the tiles",
        checks=checks,
        question="A square tile of 256 is too large for an A100's fast memory. Which "
        "sizes fit? And how small may a tile be before tiling saves no time?",
        caption=f"One head of width {k}, forward, {t:,} positions, no mask, float16; "
        "each tile of queries meets all keys in turn, with no cache on the way. "
        "Tiles are square here; each needs room for its q, k and v, and in float32 "
        "for its scores and o. The thicker the arrow, the more bytes. Times are for a "
        "whole A100 at full speed; the fast memory is the shared memory of one of its "
        "108 processors.",
    )
    largest = max(size for size in TILES if tile_bytes(k, size) <= A100["bytes"])
    same = max(
        size for size in TILES if bytes_moved(t, k, size) > 0.95 * bytes_moved(t, k)
    )
    answer = (
        f"<details><summary>Answer</summary><p>Tiles of up to {largest} fit. With "
        f"tiles of {same}, {megabytes(bytes_moved(t, k, same))} MB travel, about as "
        f"many as the {megabytes(bytes_moved(t, k))} MB of the matrix written out: "
        "small tiles fetch the same keys and values again and again.</p></details>"
    )
    return Html(str(made.text) + answer)


def ways_said(record: Record) -> str:
    """Return in words what the recorded times of three ways show."""
    t = lengths(record)[-1]
    out, fused = (
        [median(run_of(record, way, t, causal)["seconds"]) for causal in (False, True)]
        for way in ("written out", "fused")
    )
    return (
        f"On our core, at {t:,} positions, the kernel is {out[0] / fused[0]:.1f} times "
        "as fast as attention written out, and about "
        f"{out[1] / fused[1]:.0f} times with the causal mask. Then it skips the tiles "
        "above the diagonal, while attention written out takes "
        f"{out[1] / out[0]:.1f} times as long as without a mask."
    )


PARTS = ("products", "passes over scores", "fresh memory", "the rest")
WHOLE = "not split"


def parts_of(record: Record) -> dict[str, dict[str, float]]:
    """Return the recorded CPU seconds of each way, by what they go to: medians.

    Args:
        record: ``attention_parts``. The fused kernel is one operation, so it has only
            a whole. The parts are from other runs than the whole, so where Python takes
            little, the rest may come out below 0: it's 0 then.
    """
    found = {}
    for run in record["runs"]:
        total = median(run["seconds"])
        if run["way"] == "fused":
            found["fused"] = {WHOLE: total}
        else:
            parts = [median(run[part]) for part in ("products", "passes", "fresh")]
            rest = max(total - sum(parts), 0.0)
            found[run["way"]] = dict(zip(PARTS, (*parts, rest), strict=True))
    return found


def parts_figure(record: Record) -> Html:
    """Draw what the time of three ways goes to, as stacked bars; one isn't split."""
    _, ax = plt.subplots(figsize=(8.6, 3.4))
    found = parts_of(record)
    shades = ((THIS, 1.0), (THIS, 0.45), (OTHER, 1.0), (OTHER, 0.45))
    sizes = {
        part: {way: parts.get(part, 0.0) for way, parts in found.items()}
        for part in PARTS
    }
    looks = {"upright": False, "xlabel": "CPU seconds"}
    plot_bars(sizes, ax, colors=dict(zip(PARTS, shades, strict=True)), **looks)
    handles, names = ax.get_legend_handles_labels()
    ax.figure.legend(handles, names, loc="outside lower center", ncols=2)
    whole = {"fill": False, "edgecolor": THIS, "linewidth": 2}
    ax.barh("fused", found["fused"][WHOLE], 0.6, label=WHOLE, **whole)
    for way, parts in found.items():
        total, split = sum(parts.values()), "" if len(parts) > 1 else f", {WHOLE}"
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(f"{total:.1f} s{split}", (total, way), **place)
    ax.grid(visible=False)
    ax.set_xlim(0, 1.12 * ax.get_xlim()[1])
    t = record["config"]["length"]
    return show(
        ax.figure,
        title="The whole fused kernel takes about as long as the others' products "
        "alone",
        caption=f"Forward and backward, {t:,} positions, four heads of width 64, no "
        "mask, one core, median of three. Passes: everything else done to scores, such "
        "as the softmax. The rest includes Python (in the loop, too little to "
        "measure).",
    )


def parts_said(record: Record) -> str:
    """Return in words what :func:`parts_figure` shows."""
    out, loop, fused = parts_of(record).values()
    config = record["config"]
    GB = BYTES * config["heads"] * config["length"] ** 2 / 1e9
    whole = round(sum(out.values()), 1)
    return (
        f"Written out, the products take only {out['products']:.1f} of {whole:.1f} s. "
        "The passes over the scores, which means the softmax and its gradient, take "
        f"{out['passes over scores']:.1f} s, and fresh memory takes "
        f"{out['fresh memory']:.1f} s: a matrix of scores, here {GB:.1f} GB for all "
        "heads, is new each time, and the system clears every page before handing it "
        "out. Our loop's fresh memory takes "
        f"{loop['fresh memory']:.1f} s, but its passes, started from Python, take "
        f"{loop['passes over scores']:.1f} s. The kernel runs the same loop in C++, "
        "with one tile's memory and a few vectorised passes, and takes "
        f"{fused[WHOLE]:.1f} s in all."
    )


def saved_ways(t: int) -> dict[str, float]:
    """Return the MB that several ways to attend save for the backward pass."""
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
    return {
        name: kept_bytes(layer, lambda compute=compute, x=x: compute(x)) / 1e6
        for name, (layer, compute, x) in ways.items()
    }


def saved_table(saved: Mapping[str, float], t: int) -> Html:
    """Show what is saved for the backward pass."""
    return show_table(
        ("attention", "MB saved"),
        [(name, f"{MB:.1f}") for name, MB in saved.items()],
        caption=f"Saved for the backward pass at {t:,} positions, four heads of width "
        "64, on a CPU. The heads' four matrices of weights would be "
        f"{megabytes(4 * t * t * BYTES)} MB. The module got the boolean mask, too.",
    )


def check_saved(saved: Mapping[str, float], t: int) -> None:
    """Prove which ways keep matrices of weights, one for each of four heads."""
    matrix = t * t * BYTES / 1e6
    least = saved["is_causal=True"]
    assert saved["our loop"] < 1.1 * least
    mask = saved["attn_mask, boolean"] - least
    assert abs(mask - matrix) < 0.1 * matrix  # one for all heads
    for way, each in {
        "is_causal=True, dropout_p=0.1": 3,
        "weights written out": 2,
        "nn.MultiheadAttention, need_weights=True": 1,
    }.items():
        assert saved[way] // (4 * matrix) == each, way
    asked, unasked = (
        saved[f"nn.MultiheadAttention, need_weights={needed}"]
        for needed in (True, False)
    )
    assert asked - unasked > 2.5 * matrix
    print(
        f"✓ a matrix is {matrix:.1f} MB: none is kept, or one (the mask), or one, two "
        "or three for each head"
    )
