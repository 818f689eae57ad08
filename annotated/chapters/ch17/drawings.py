"""Chapter 17, sparse attention: its counts, blocks, graphs, and what it proves.

Letters: t positions, l stride, b batch, d model width (``book/notation.md``). Windows
and stretches are as long as the stride.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from annotated.attention import MultiHeadAttention, scaled_dot_product_attention
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html
from annotated.page.notebook import check_close, show_table
from annotated.sparse import (
    BlockLayout,
    Pattern,
    SparseSelfAttention,
    dilated_pattern,
    fixed_patterns,
    global_pattern,
    local_pattern,
    strided_patterns,
)
from annotated.variants import window_mask

# ---- counted -------------------------------------------------------------------------

Formula = tuple[str, str, int]  #: a pattern, its pairs in letters and in numbers


def formulas(t: int, stride: int) -> list[Formula]:
    """Return the pairs of causal patterns by formula; ``stride`` must divide ``t``."""
    rows = t // stride
    full, window = t * (t + 1) // 2, t * stride - stride * (stride - 1) // 2
    every = t * (rows + 1) // 2
    stretch, ends = t * (stride + 1) // 2, t * (rows - 1) // 2 + rows
    return [
        ("full", "t (t + 1) / 2", full),
        ("window", "t l − l (l − 1) / 2", window),
        ("every l-th", "t (t/l + 1) / 2", every),
        ("strided, both", "the two, less t that they share", window + every - t),
        ("a stretch", "t (l + 1) / 2", stretch),
        ("ends of stretches", "t (t/l − 1) / 2 + t/l", ends),
        ("fixed, both", "the two, less t/l that they share", stretch + ends - rows),
    ]


def counted(t: int, stride: int) -> dict[str, int]:
    """Return the same pairs, counted in the masks."""
    near, every = strided_patterns(stride)
    stretch, ends = fixed_patterns(stride)
    patterns = {
        "full": Pattern(0),
        "window": near,
        "every l-th": every,
        "strided, both": near | every,
        "a stretch": stretch,
        "ends of stretches": ends,
        "fixed, both": stretch | ends,
    }
    return {name: int(pattern.mask(t).sum()) for name, pattern in patterns.items()}


def check_counts(*sizes: tuple[int, int]) -> None:
    """Prove that formulas and masks agree."""
    for size in sizes:
        found = {name: pairs for name, _, pairs in formulas(*size)}
        assert found == counted(*size), size
    print(f"✓ seven formulas = the masks, counted, for {len(sizes)} sizes")


def pairs_table(t: int, stride: int) -> Html:
    """Show how many pairs of a long text each pattern has."""
    shown = formulas(t, stride)
    full = shown[0][2]
    return show_table(
        ("pattern", "pairs", f"t = {t:,}", "share of full"),
        [(name, how, f"{p:,}", f"{p / full:.1%}") for name, how, p in shown],
        caption=f"Pairs of a query and a key, causal, l = {stride}.",
    )


# ---- blocks --------------------------------------------------------------------------


def blocks_picture(layouts: Mapping[str, BlockLayout]) -> Html:
    """Draw which blocks are computed, and which of their pairs may attend."""
    side, gap = 160, 28
    drawing, said = Drawing(2 * side + gap + 2, side + 46), []
    for panel, (title, layout) in enumerate(layouts.items()):
        left, (blocks, c) = 1 + panel * (side + gap), layout.queries.shape
        cell = side / (blocks * c)
        drawing.text(left + side / 2, 14, title, bold=True)
        drawing.frame(left, 24, side, side)
        for row, column, allowed in zip(
            layout.rows.tolist(), layout.columns.tolist(), layout.allowed, strict=True
        ):
            x, y = left + column * c * cell, 24 + row * c * cell
            drawing.frame(x, y, c * cell, c * cell, shade=0.12, color="other")
            for i, j in allowed.nonzero().tolist():
                place = (x + j * cell, y + i * cell, cell, cell)
                drawing.frame(*place, shade=0.8, color="weight", outline=False)
        kept, all_pairs = int(layout.allowed.sum()), layout.lengths[0] ** 2
        words = f"{kept} of {layout.computed} computed"
        drawing.text(left + side / 2, side + 42, words)
        said.append(f"{title}: {words}, of {all_pairs} pairs in all")
    return drawing.figure(
        alt=f"Two square matrices, cut into blocks. {'. '.join(said)}.",
        caption="Queries in rows, keys in columns. Framed: blocks that are computed. "
        "Coloured: pairs that may attend. On the right, positions stand in the order "
        "0, 4, 8, …, 1, 5, 9, …, so that those that see each other are neighbours.",
    )


# ---- proofs --------------------------------------------------------------------------


def check_masks(masks: Mapping[str, Bool[Tensor, "t t"]], stride: int) -> None:
    """Prove that masks written by hand are those of the module."""
    near, every = strided_patterns(stride)
    stretch, ends = fixed_patterns(stride)
    names = ("window", "every l-th", "a stretch", "ends of stretches")
    for name, pattern in zip(names, (near, every, stretch, ends), strict=True):
        assert torch.equal(pattern.mask(len(masks[name]))[0, 0], masks[name]), name
    n = len(masks["window"])
    assert torch.equal(window_mask(stride, n)[0, 0], masks["window"])
    print(f"✓ {len(names)} masks by hand = `annotated.sparse`, exactly")


def check_attention(length: int = 45, block: int = 8) -> None:
    """Prove that block attention is dense attention with the pattern's mask.

    Outputs and gradients, in double precision, for several patterns and for heads with
    patterns of their own; against attention written out, with the mask.
    """
    near, every = strided_patterns(5)
    several = {
        "window": local_pattern(6),
        "dilated": dilated_pattern(4, 3),
        "union": near | every,
        "fixed": fixed_patterns(5, 2)[0] | fixed_patterns(5, 2)[1],
        "globals": local_pattern(3) | global_pattern([0, 7]),
        "a head each": [near, every],
    }
    results = []
    for pattern in several.values():
        layer = SparseSelfAttention(8, 2, pattern=pattern, block=block).double()
        x = torch.randn(2, length, 8, dtype=torch.float64, requires_grad=True)
        upstream = torch.randn_like(x)
        both = [pattern] if isinstance(pattern, Pattern) else pattern
        mask = torch.cat([p.mask(length) for p in both], dim=1)
        outputs = layer(x), dense(layer, x, mask)
        leaves = [x, *layer.parameters()]
        found = [[o, *torch.autograd.grad(o, leaves, upstream)] for o in outputs]
        results.append(found)
    ours, theirs = ([t for pair in results for t in pair[i]] for i in (0, 1))
    check_close(f"{len(several)} patterns: output and gradients", ours, theirs, 1e-10)


def dense(
    layer: MultiHeadAttention, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "b t d"]:
    """Return what a ``layer`` gives for ``x`` if all scores are written out."""
    q, k, v = layer.project(x, x, x)
    heads, _ = scaled_dot_product_attention(q, k, v, mask)
    return layer.output_map(heads.transpose(1, 2).flatten(2))
