"""Sparse attention: patterns of who may see whom, and the work of those pairs alone.

Letters: b batch, t query length, s key length, h heads, d model width, k width of a
query or key, v width of a value (``book/notation.md``). Masks are boolean, True = may
attend (``masks.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, inf, lcm
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention

# ---- patterns --------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    """Which query may see which key, asked by their positions; no matrix is kept.

    ``pattern(i, j)`` answers for any tensors of positions that broadcast, and
    ``pattern.mask(t)`` for all pairs of t positions. The distance i − j must lie
    between two bounds and be a multiple of ``period``, and ``rule`` may ask for more.
    ``&`` and ``|`` combine patterns as they do masks.
    """

    low: float = -inf  #: least distance i − j; 0 or more makes a pattern causal
    high: float = inf  #: largest distance
    period: int = 1  #: a query sees only keys at multiples of it away
    #: takes positions of queries and keys, gives True where it allows the pair
    rule: Callable[[Tensor, Tensor], Tensor] | None = None

    def __post_init__(self):
        require.count(period=self.period)

    @property
    def causal(self) -> bool:
        """Return whether no query sees a key after it."""
        return self.low >= 0

    def __call__(
        self, i: Int[Tensor, "..."], j: Int[Tensor, "..."]
    ) -> Bool[Tensor, "..."]:
        """Return True where the query at ``i`` may see the key at ``j``."""
        distance = i - j
        allowed = (distance >= self.low) & (distance <= self.high)
        if self.period > 1:
            allowed = allowed & (distance % self.period == 0)
        return allowed if self.rule is None else allowed & self.rule(i, j)

    def __and__(self, other: "Pattern") -> "Pattern":
        low, high = max(self.low, other.low), min(self.high, other.high)
        period = lcm(self.period, other.period)
        return Pattern(low, high, period, _Rule(_both, (self, other)))

    def __or__(self, other: "Pattern") -> "Pattern":
        low, high = min(self.low, other.low), max(self.high, other.high)
        period = gcd(self.period, other.period)
        return Pattern(low, high, period, _Rule(_either, (self, other)))

    def mask(
        self,
        queries: int,
        keys: int | None = None,
        device: torch.device | str | None = None,
    ) -> Bool[Tensor, "1 1 t s"]:
        """Return the dense mask.

        Args:
            queries: number t of queries, the last of the keys' positions.
            keys: number s of keys, at least as many; as many if not given.
            device: where to make the mask.
        """
        keys = queries if keys is None else keys
        require.at_most(queries=queries, keys=keys)
        j = torch.arange(keys, device=device)
        return self(j[keys - queries :, None], j)[None, None]


@dataclass(frozen=True)
class _Rule:
    """A function of this module with its last arguments: pickled, equal by value."""

    function: Callable[..., Tensor]
    arguments: tuple

    def __call__(self, i: Tensor, j: Tensor) -> Tensor:
        return self.function(i, j, *self.arguments)


def _both(i: Tensor, j: Tensor, one: Pattern, other: Pattern) -> Tensor:
    return one(i, j) & other(i, j)


def _either(i: Tensor, j: Tensor, one: Pattern, other: Pattern) -> Tensor:
    return one(i, j) | other(i, j)


def local_pattern(window: int, causal: bool = True) -> Pattern:
    """Return a window: each query sees ``{j : 0 ≤ i − j < w}``.

    The sliding window of Beltagy et al. (2020), section 3.1, and of decoders since
    Jiang et al. (2023).

    Args:
        window: number w of keys, the query's own among them.
        causal: whether keys after the query are hidden. If not, ``|i − j| < w``: it
            sees 2w − 1 keys.
    """
    require.count(window=window)
    return Pattern(0 if causal else 1 - window, window - 1)


def dilated_pattern(window: int, dilation: int, causal: bool = True) -> Pattern:
    """Return a window with gaps: ``{j : i − j = r·m, 0 ≤ m < w}``.

    Beltagy et al. (2020), section 3.1.

    Args:
        window: number w of keys, the query's own among them.
        dilation: distance r from one key to the next.
        causal: whether keys after the query are hidden. If not, ``|m| < w``.
    """
    require.count(window=window, dilation=dilation)
    far = dilation * (window - 1)
    return Pattern(0 if causal else -far, far, dilation)


def strided_patterns(stride: int, causal: bool = True) -> tuple[Pattern, Pattern]:
    """Return the two steps of strided attention, for separate heads.

    Child et al. (2019), section 4.3: ``A⁽¹⁾ = {i − l, …, i}`` and
    ``A⁽²⁾ = {j : (i − j) mod l = 0}``. Here, as in the code that they released, the
    first has l keys: the key at i − l is in the second, so the union, ``a | b``, is
    the same.

    Args:
        stride: l, near √t if work is to be least.
        causal: whether keys after the query are hidden.
    """
    require.count(stride=stride)
    every = Pattern(0 if causal else -inf, period=stride)
    return local_pattern(stride, causal), every


def fixed_patterns(
    stride: int, summary: int = 1, causal: bool = True
) -> tuple[Pattern, Pattern]:
    """Return the two steps of fixed attention, for separate heads.

    Child et al. (2019), section 4.3: ``A⁽¹⁾ = {j : ⌊j / l⌋ = ⌊i / l⌋}``, a stretch of
    the text, and ``A⁽²⁾ = {j : j mod l ≥ l − c}``, the last of every stretch.

    Args:
        stride: length l of a stretch.
        summary: number c of positions at its end, which later stretches see.
        causal: whether keys after the query are hidden.

    Raises:
        ValueError: if ``stride`` or ``summary`` is below 1, or ``summary`` is larger.
    """
    require.count(stride=stride, summary=summary)
    require.at_most(summary=summary, stride=stride)
    least = 0 if causal else 1 - stride
    same = Pattern(least, stride - 1, rule=_Rule(_in_one_stretch, (stride,)))
    ends = _Rule(_at_an_end, (stride, summary))
    return same, Pattern(0 if causal else -inf, rule=ends)


def _in_one_stretch(i: Tensor, j: Tensor, stride: int) -> Tensor:
    return i // stride == j // stride


def _at_an_end(i: Tensor, j: Tensor, stride: int, summary: int) -> Tensor:
    return j % stride >= stride - summary


def global_pattern(positions: Sequence[int], causal: bool = True) -> Pattern:
    """Return a few that see all and are seen by all: ``{j : i ∈ G or j ∈ G}``.

    Beltagy et al. (2020), section 3.1; Zaheer et al. (2020), section 2. They add it to
    a local pattern: ``local_pattern(w) | global_pattern(G)``.

    Args:
        positions: G, counted from 0.
        causal: whether keys after the query are hidden.
    """
    require.count(0, **{f"positions[{n}]": g for n, g in enumerate(positions)})
    rule = _Rule(_one_is_global, tuple(positions))
    return Pattern(0 if causal else -inf, rule=rule)


def _one_is_global(i: Tensor, j: Tensor, *positions: int) -> Tensor:
    allowed = torch.zeros_like(i, dtype=torch.bool)
    for g in positions:
        allowed = allowed | (i == g) | (j == g)
    return allowed


# ---- how far they reach ----------------------------------------------------------


def reach(masks: Sequence[Bool[Tensor, "..."]], layers: int) -> Bool[Tensor, "_ t t"]:
    """Return which positions each position has heard from, after each layer.

    Layer 1 lets i hear from j where its mask is True; layer 2 hands on what was heard
    before, and so on: a product of the masks as matrices, ``R ← (M or I) · R``, with
    "or" in place of sums. I is the residual stream, in which each keeps what it had.

    Args:
        masks: of the layers, ``(t, t)`` or as :meth:`Pattern.mask` gives them; after
            the last the first comes again. If a mask has heads, ``(1, h, t, t)``,
            their union counts.
        layers: how many.

    Returns:
        Boolean ``(layers, t, t)``. Its sums over the last two axes count pairs.

    Raises:
        ValueError: if there's no mask or no layer, or masks have different lengths.
    """
    require.count(layers=layers)
    steps = _steps(masks)
    heard = [torch.eye(len(steps[0]), device=steps[0].device)]
    for layer in range(layers):
        heard.append((steps[layer % len(steps)] @ heard[-1] > 0).float())
    return torch.stack(heard[1:]).bool()


def layers_to_reach(masks: Sequence[Bool[Tensor, "..."]]) -> int | None:
    """Return after how many layers all have heard from all, or None if they never do.

    ``masks`` are as for :func:`reach`. If none of them shows a later key, "all" means
    all up to oneself.
    """
    steps = _steps(masks)
    wanted = torch.ones_like(steps[0])
    if not any(step.triu(1).any() for step in steps):
        wanted = wanted.tril()
    heard, layers, still = torch.eye(len(wanted)).to(wanted), 0, 0
    while not torch.equal(heard, wanted):
        before, heard = heard, (steps[layers % len(steps)] @ heard > 0).float()
        layers, still = layers + 1, still + 1 if torch.equal(heard, before) else 0
        if still == len(steps):
            return None  # no mask adds anything
    return layers


def _steps(masks: Sequence[Tensor]) -> list[Tensor]:
    """Return ``M or I`` of each mask, its heads united, as numbers."""
    require.that(len(masks) > 0, "masks must hold at least one, got none")
    united = [m.flatten(0, -3).any(dim=0) if m.dim() > 2 else m for m in masks]
    shapes = {tuple(m.shape) for m in united}
    require.that(
        len(shapes) == 1 and all(m.dim() == 2 and len(m) == m.shape[1] for m in united),
        f"masks must be square and of one length, got {sorted(shapes)}",
    )
    own = torch.eye(len(united[0]), dtype=torch.bool, device=united[0].device)
    return [(m | own).float() for m in united]


# ---- attention in blocks ---------------------------------------------------------


@dataclass(frozen=True)
class BlockLayout:
    """The p blocks of queries and keys in which a pattern allows at least one pair.

    Positions go into blocks of c, those with the same remainder by the pattern's
    period side by side. :func:`block_layout` makes one.
    """

    queries: Int[Tensor, "n c"]  #: places of the queries of each block
    keys: Int[Tensor, "m c"]  #: places of the keys of each block
    place: Int[Tensor, "t"]  #: where each query stands among ``queries``
    rows: Int[Tensor, "_"]  #: which block of queries each kept block has
    columns: Int[Tensor, "_"]  #: which block of keys each kept block has
    allowed: Bool[Tensor, "_ c c"]  #: which pairs of each kept block may attend
    lengths: tuple[int, int]  #: t and s

    @property
    def computed(self) -> int:
        """Return the number of pairs whose scores are computed, allowed or not."""
        return self.allowed.numel()


def block_layout(
    pattern: Pattern,
    block: int,
    queries: int,
    keys: int | None = None,
    device: torch.device | str | None = None,
) -> BlockLayout:
    """Return the blocks that a pattern needs, found without the dense mask.

    Bounds and period tell which blocks can hold a pair; only those are looked into.

    Args:
        pattern: who may see whom.
        block: number c of positions in a block.
        queries: number t of queries, the last of the keys' positions.
        keys: number s of keys, at least as many; as many if not given.
        device: where the layout will be used.

    Raises:
        ValueError: if ``block`` or ``queries`` is below 1, or ``keys`` < ``queries``.
    """
    keys = queries if keys is None else keys
    require.count(block=block, queries=queries)
    require.at_most(queries=queries, keys=keys)

    def blocks(first: int) -> Tensor:
        positions = torch.arange(first, keys)
        order = positions[(positions % pattern.period).argsort(stable=True)]
        return F.pad(order, (0, -len(order) % block), value=-1).view(-1, block)

    def may_meet(i: Tensor, j: Tensor, low: float, high: float) -> Tensor:
        """Whether a distance from the span of i to that of j lies in the bounds."""
        least, most = i.amin(1)[:, None] - j.amax(1), i.amax(1)[:, None] - j.amin(1)
        return (most >= low) & (least <= high)

    i, j = blocks(keys - queries), blocks(0)  # positions, -1 where the last is short
    possible = may_meet(i, j, pattern.low, pattern.high)
    possible &= may_meet(i % pattern.period, j % pattern.period, 0, 0)
    rows, columns, allowed = [], [], []
    for row, positions in enumerate(i):
        candidates = possible[row].nonzero()[:, 0]
        own, other = positions[:, None], j[candidates][:, None]
        inside = pattern(own, other) & (own >= 0) & (other >= 0)
        some = inside.flatten(1).any(dim=1)
        columns.append(candidates[some])
        rows.append(torch.full_like(columns[-1], row))
        allowed.append(inside[some])

    place = i.flatten().argsort()[i.numel() - queries :]
    parts = torch.cat(rows), torch.cat(columns), torch.cat(allowed)
    tables = (i - (keys - queries)).clamp(min=0), j.clamp(min=0), place, *parts
    return BlockLayout(*(x.to(device) for x in tables), (queries, keys))


@require.shapes
def block_sparse_attention(
    q: Float[Tensor, "b h t k"],
    k: Float[Tensor, "b h s k"],
    v: Float[Tensor, "b h s v"],
    layout: BlockLayout,
    mask: Bool[Tensor, "_ 1 1 s"] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "b h t v"]:
    """Attention over the blocks of a layout, equal to dense attention with its mask.

    A kept block is a small product of its queries and keys. The softmax of a query
    runs over all kept blocks of its row: each adds to numerator and denominator. Time
    and memory follow the number of kept blocks.

    Args:
        q: queries.
        k: keys.
        v: values.
        layout: for t queries and s keys, such as :func:`block_layout` gives.
        mask: True = may attend, ``(b, 1, 1, s)``, as
            :func:`~annotated.masks.padding_mask` gives it.
        dropout: probability of dropping a weight; pass 0 outside training.

    Returns:
        ``(b, h, t, v)``; a query with no key left gets zeros. Sums run in single
        precision at least.

    Raises:
        ValueError: if the layout is for other lengths, or ``mask`` doesn't fit.
    """
    lengths = q.shape[2], k.shape[2]
    require.that(
        layout.lengths == lengths,
        f"layout must be for {lengths} queries and keys, got {layout.lengths}",
    )
    require.mask(mask, (*q.shape[:3], k.shape[2]))
    rows, columns, allowed = layout.rows, layout.columns, layout.allowed
    if mask is not None:  # (b, 1, p, 1, c)
        allowed = allowed & _take(_take(mask.mT, layout.keys), columns).mT
    wide = torch.promote_types(q.dtype, torch.float32)
    scale = q.shape[-1] ** -0.5
    with torch.autocast(q.device.type, enabled=False):
        queries = _take(q.to(wide) * scale, layout.queries)  # (b, h, n, c, k)
        keys, values = (_take(x.to(wide), layout.keys) for x in (k, v))
        scores = _take(queries, rows) @ _take(keys, columns).mT  # (b, h, p, c, c)
        scores = scores.masked_fill_(~allowed, -torch.inf)

        with torch.no_grad():  # the largest score of each query
            most = scores.amax(dim=-1, keepdim=True)
            top = torch.full_like(queries[..., :1], torch.finfo(wide).min)
            where = rows.view(-1, 1, 1).expand_as(most)
            top = top.scatter_reduce(2, where, most, "amax")
        weights = scores.sub_(_take(top, rows)).exp_()
        sums = F.dropout(weights, dropout) @ _take(values, columns)
        heads = sums.new_zeros(*top.shape[:-1], v.shape[-1]).index_add(2, rows, sums)
        sums = weights.sum(dim=-1, keepdim=True)
        total = torch.zeros_like(top).index_add(2, rows, sums)
        heads = heads / total.masked_fill(total == 0, 1.0)
    return _take(heads.flatten(2, 3), layout.place).to(q.dtype)


def _take(x: Tensor, places: Tensor) -> Tensor:
    """Return ``x[:, :, places]``; its backward pass is much faster than that one's."""
    return x.index_select(2, places.flatten()).unflatten(2, places.shape)


_kept_layout = lru_cache(maxsize=16)(block_layout)


class SparseSelfAttention(MultiHeadAttention):
    """Multi-head self-attention in which a pattern says who sees whom.

    Child et al. (2019), section 4.2, give heads patterns of their own, or one to all.
    Equal to :class:`~annotated.attention.MultiHeadAttention` with the dense mask, and
    the work of the kept blocks alone. It has no ``score_bias``. Layouts are found at
    the first call with a length and shared by all layers.

    Args:
        sizes: of :class:`~annotated.attention.MultiHeadAttention`, its first arguments.
        pattern: one for all heads, or a sequence with one for each.
        block: number of positions in a block.
        causal: whether keys after their query are hidden; patterns must be causal then.
        options: the other arguments of that class.

    Raises:
        ValueError: if ``block`` is below 1, there's not one pattern for each head, or
            a pattern shows the future to attention that is causal.
    """

    def __init__(
        self,
        *sizes: Any,
        pattern: Pattern | Sequence[Pattern],
        block: int = 64,
        causal: bool = True,
        **options: Any,
    ):
        super().__init__(*sizes, causal=causal, **options)
        require.count(block=block)
        patterns = [pattern] if isinstance(pattern, Pattern) else list(pattern)
        require.that(
            isinstance(pattern, Pattern) or len(patterns) == self.heads,
            f"pattern must be one, or one for each of {self.heads} heads, "
            f"got {len(patterns)}",
        )
        require.that(
            not causal or all(p.causal for p in patterns),
            "pattern must be causal, as attention is, got one that shows later keys",
        )
        self.patterns, self.block = patterns, block

    def attend(
        self,
        q: Float[Tensor, "b h t k"],
        k: Float[Tensor, "b _ s k"],
        v: Float[Tensor, "b _ s k"],
        mask: Bool[Tensor, "..."] | None = None,
        **options: Any,
    ) -> Float[Tensor, "b t d"]:
        """Return the output of queries, keys and values such as ``project`` gives.

        ``q``, ``k``, ``v`` and ``options`` are as in the class above; ``mask`` hides
        whole keys, as :func:`~annotated.masks.padding_mask` does.

        Raises:
            ValueError: if a subclass has a ``score_bias``, or ``mask`` doesn't fit.
        """
        if not q.shape[2]:  # there is no block
            return super().attend(q, k, v, mask, **options)
        k, v = self._for_all_heads(k), self._for_all_heads(v)
        require.that(
            self.score_bias(q, k, **options) is None,
            f"score_bias must be None, got that of {type(self).__name__}",
        )
        dropout, n = self.dropout if self.training else 0.0, len(self.patterns)
        qs, ks, vs = (x.chunk(n, dim=1) for x in (q, k, v))  # heads of each pattern
        heads = [
            block_sparse_attention(
                qs[i], ks[i], vs[i], self._layout(pattern, q, k), mask, dropout
            )
            for i, pattern in enumerate(self.patterns)
        ]
        return self.output_map(torch.cat(heads, dim=1).transpose(1, 2).flatten(2))

    def _layout(self, pattern: Pattern, q: Tensor, k: Tensor) -> BlockLayout:
        return _kept_layout(pattern, self.block, q.shape[2], k.shape[2], q.device)

    def _visible(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        sizes = q.shape[2], k.shape[2], q.device
        sparse = torch.cat([p.mask(*sizes) for p in self.patterns], dim=1)
        return super()._visible(q, k, sparse if mask is None else sparse & mask)
