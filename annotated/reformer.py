"""Reformer: attention among positions that hash alike, in reversible blocks.

Letters: b batch, t length, h heads, d model width, k width of a query, v width of a
value (``book/notation.md``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, prod, sqrt

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.gpt import GPTConfig
from annotated.positions import PositionalEncoding
from annotated.reversible import (
    ChunkedFeedForward,
    ReversibleBlock,
    ReversibleSequence,
    repeated,
)

# ---- attention among positions that hash alike ---------------------------------


@require.shapes
def lsh_buckets(
    vectors: Float[Tensor, "*batch t k"],
    buckets: int | tuple[int, ...],
    rounds: int = 1,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "*batch _ t"]:
    """Hash vectors so that those of similar directions mostly share a bucket.

    Kitaev et al. (2020), section 2, after Andoni et al. (2015). A random map turns all
    vectors alike; the axis that lies nearest, in either direction, is the bucket.

    Args:
        vectors: ``(…, t, k)``; their lengths do not matter.
        buckets: how many, an even number; or several, ``(8, 16)``: then each bucket is
            a pair of smaller ones, 128 in all for the work of 24.
        rounds: number of hashes, each by a map of its own.
        generator: draws the maps on its own device; PyTorch's on the CPU if not given.

    Returns:
        Numbers from 0 to ``buckets − 1``, ``(…, rounds, t)``. They have no gradient.

    Raises:
        ValueError: if a number of buckets is odd, or one is below 1.
    """
    factors = buckets if isinstance(buckets, tuple) else (buckets,)
    require.count(rounds=rounds, factors_of_buckets=len(factors))
    found = 0
    for size in factors:
        require.even(buckets=size)
        sizes = rounds, vectors.shape[-1], size // 2
        device = None if generator is None else generator.device
        maps = torch.randn(*sizes, generator=generator, device=device).to(vectors)
        turned = vectors.detach().unsqueeze(-3) @ maps  # (…, rounds, t, size / 2)
        nearest = torch.cat([turned, -turned], dim=-1).max(dim=-1).indices
        found = found * size + nearest
    return found


@require.shapes
def lsh_attention(
    query: Float[Tensor, "*batch t k"],
    value: Float[Tensor, "*batch t v"],
    buckets: Int[Tensor, "*batch _ t"],
    chunk: int = 64,
    causal: bool = False,
    mask: Bool[Tensor, "*batch t"] | None = None,
    scale: float = 1.0,
    repeats: bool = False,
) -> Float[Tensor, "*batch t v"]:
    """Attend to the positions that a sort by buckets brings near, in any round.

    Kitaev et al. (2020), section 2 and appendix A. In each round positions are sorted
    by bucket and cut into chunks; each attends to its chunk and the one before, the
    first chunk to the second. The softmax is one over all pairs of all rounds: each
    round adds to its numerator and denominator. A key is its query at length 1, and a
    position attends to itself only if it meets nobody else.

    Args:
        query: ``(…, t, k)``, queries and keys in one.
        value: ``(…, t, v)``.
        buckets: of each round, ``(…, rounds, t)``, such as :func:`lsh_buckets` gives.
        chunk: most positions in a chunk; t needn't be a multiple of it. If it's at
            least half of t, this is exact attention.
        causal: whether positions after the query are hidden.
        mask: True = may attend, ``(…, t)``; False for padding, which gets zeros.
        scale: factor of the scores.
        repeats: whether a pair that meets in several rounds counts once in each of
            them. Faster, and what other implementations do; but further from exact
            attention.

    Returns:
        ``(…, t, v)``.
    """
    *batch, rounds, t = buckets.shape
    require.count(chunk=chunk, positions=t, rounds=rounds)
    c = min(chunk, ceil(t / 2))
    n = max(2, ceil(t / c))  # chunks
    fill = n * c - t
    length = query.norm(dim=-1, keepdim=True)  # adds up squares in single precision
    key = scale * (query / length.masked_fill(length == 0, 1.0))  # 0: no direction
    query, key, value = (F.pad(x, (0, 0, 0, fill)) for x in (query, key, value))
    real = torch.ones_like(buckets[..., 0, :], dtype=torch.bool)
    real = F.pad(real if mask is None else mask, (0, fill)).reshape(prod(batch), n * c)

    ids = F.pad(buckets, (0, fill)).reshape(prod(batch), rounds, n * c)
    ids = ids.masked_fill(~real[:, None], torch.iinfo(ids.dtype).max)  # padding: last
    order = ids.argsort(dim=-1, stable=True)  # positions, sorted by bucket
    place = order.argsort(dim=-1)  # of each position in that order
    time = torch.arange(n * c, device=order.device)
    time = time.masked_fill(~real, n * c)  # padding comes after all

    parts = []
    for i in range(rounds):
        own = order[:, i].view(-1, n, c)  # the positions of each chunk
        near = torch.cat([own[:, 1:2], own[:, :-1]], dim=1)  # the chunk before
        near = torch.cat([near, own], dim=2)
        before = place[:, : 0 if repeats else i] // c  # chunks of earlier rounds
        hidden = _hidden(own, near, time, before, causal)
        scores = _rows(query, own) @ _rows(key, near).mT
        scores = scores.masked_fill_(hidden, -torch.inf)
        scores.diagonal(c, -2, -1).fill_(torch.finfo(scores.dtype).min / 2)  # oneself
        top = scores.detach().amax(dim=-1, keepdim=True)
        weights = (scores - top).exp()
        sums = weights @ _rows(value, near), weights.sum(dim=-1, keepdim=True), top
        parts.append([_rows(x.flatten(1, 2), place[:, i]) for x in sums])

    numerator, denominator, top = (torch.stack(x) for x in zip(*parts, strict=True))
    share = (top - top.amax(dim=0)).exp()
    heads = (share * numerator).sum(dim=0) / (share * denominator).sum(dim=0)
    heads = heads.masked_fill(~real[..., None], 0.0)
    return heads[:, :t].reshape(*batch, t, value.shape[-1])


def _hidden(
    own: Tensor, near: Tensor, time: Tensor, before: Tensor, causal: bool
) -> Tensor:
    """Return which keys ``near`` are hidden from ``own``: later ones and padding, and
    those whose chunks met ``before``, so that no pair counts twice.
    """

    def look_up(x: Tensor, positions: Tensor) -> Tensor:
        return x.gather(1, positions.flatten(1)).view_as(positions)

    latest = look_up(time, own)[..., None] if causal else time.shape[1] - 1
    hidden = look_up(time, near)[:, :, None] > latest
    for chunks in before.unbind(1):
        mine = look_up(chunks, own)[..., None]
        theirs = look_up(chunks, near)[:, :, None]
        first = (mine - 1).clamp(min=0)  # of the two chunks that were looked at
        hidden = hidden | (theirs == first) | (theirs == first + 1)
    return hidden


def _rows(x: Tensor, places: Tensor) -> Tensor:
    """Return the rows of ``x`` at ``places``, each in its own sequence."""
    t = x.shape[-2]
    first = torch.arange(0, len(places) * t, t, device=x.device)
    rows = places + first.view(-1, *[1] * (places.dim() - 1))
    return x.flatten(0, -2).index_select(0, rows.flatten()).unflatten(0, rows.shape)


class LSHSelfAttention(nn.Module):
    """Self-attention in several heads, among positions whose queries hash alike.

    Kitaev et al. (2020), section 2. Queries and keys share one map.

    Args:
        d_model: width of inputs and output; ``heads`` must divide it.
        heads: number of heads; each hashes its own queries.
        chunk: positions in a chunk.
        rounds: number of hashes. More find more of the pairs that matter.
        buckets: as for :func:`lsh_buckets`; if not given, about two for each chunk.
        causal: whether positions after the query are hidden.
        scale: of the scores. A key has length 1, so it is not ``1 / √k``.
        repeats: as for :func:`lsh_attention`.

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if a size is below 1, or ``heads`` does not divide ``d_model``.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        chunk: int = 64,
        rounds: int = 4,
        buckets: int | tuple[int, ...] | None = None,
        causal: bool = False,
        scale: float = 1.0,
        repeats: bool = False,
    ):
        super().__init__()
        require.divides(heads=heads, d_model=d_model)
        require.count(chunk=chunk, rounds=rounds)
        self.d_model, self.heads, self.chunk = d_model, heads, chunk
        self.rounds, self.buckets, self.causal = rounds, buckets, causal
        self.scale, self.repeats = scale, repeats
        self.query_map = nn.Linear(d_model, d_model, bias=False)
        self.value_map = nn.Linear(d_model, d_model, bias=False)
        self.output_map = nn.Linear(d_model, d_model, bias=False)

    @require.shapes(d="d_model", h="heads")
    def forward(
        self,
        x: Float[Tensor, "b t d"],
        mask: Bool[Tensor, "b 1 1 t"] | None = None,
        buckets: Int[Tensor, "b h _ t"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return what each position gets from those that it meets.

        Args:
            x: ``(b, t, d)``.
            mask: True = may attend, ``(b, 1, 1, t)``, as
                :func:`~annotated.masks.padding_mask` gives; padding gets zeros.
            buckets: ``(b, h, rounds, t)``; hashed anew if not given.
        """
        return self.attend(*self.project(x), mask, buckets)

    def project(
        self, x: Float[Tensor, "b t d"]
    ) -> tuple[Float[Tensor, "b h t k"], Float[Tensor, "b h t k"]]:
        """Return queries, which are keys too, and values of each head of ``x``."""
        mapped = self.query_map(x), self.value_map(x)
        query, value = (
            x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in mapped
        )
        return query, value

    def attend(
        self,
        query: Float[Tensor, "b h t k"],
        value: Float[Tensor, "b h t k"],
        mask: Bool[Tensor, "b 1 1 t"] | None = None,
        buckets: Int[Tensor, "b h _ t"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return the output of a ``query`` and ``value`` that :meth:`project` gave.

        ``mask`` and ``buckets`` are as in :meth:`forward`.
        """
        if buckets is None:
            buckets = repeated(self._hash(query))
        if mask is not None:
            mask = mask[:, 0].expand(query.shape[:3])  # (b, h, t)
        heads = lsh_attention(
            query,
            value,
            buckets,
            chunk=self.chunk,
            causal=self.causal,
            mask=mask,
            scale=self.scale,
            repeats=self.repeats,
        )
        return self.output_map(heads.transpose(1, 2).flatten(2))

    @require.shapes(d="d_model")
    def hash(self, x: Float[Tensor, "b t d"]) -> Int[Tensor, "b h _ t"]:
        """Return buckets of ``x`` in each head and round, by new random maps."""
        return self._hash(self.project(x)[0])

    def _hash(self, query: Tensor) -> Tensor:
        buckets = self.buckets
        if buckets is None:
            buckets = 2 * ceil(query.shape[2] / self.chunk)
            if buckets > 64:
                buckets = (2 * ceil(sqrt(buckets) / 2),) * 2
        return lsh_buckets(query, buckets, self.rounds)


# ---- a language model ----------------------------------------------------------


@dataclass(frozen=True)
class ReformerConfig(GPTConfig):
    """Everything that a Reformer is made from (Kitaev et al., 2020), as for a GPT."""

    max_len: int = 16_384  #: number of positions, which is the context
    chunk: int = 64  #: positions in a chunk of the attention
    rounds: int = 4  #: of hashing
    ff_chunk: int = 1024  #: positions that a feed-forward network maps at a time

    def __post_init__(self):
        super().__post_init__()
        fixed = "activation norm_kind norm_epsilon bias positions kv_heads tied".split()
        for name in fixed:  # what a GPT may have, and a Reformer has in one form alone
            require.choice({getattr(GPTConfig, name)}, **{name: getattr(self, name)})


class Reformer(nn.Module):
    """A language model of reversible blocks: F is attention, G a feed-forward network.

    Kitaev et al. (2020), as in the authors' code: both streams begin as the embedded
    tokens, and their concatenated outputs, normalised, give the logits. F and G read a
    normalised stream. ``attention`` makes the attention of a block, a causal module of
    ``(b, t, d)``; by default LSH attention, as ``config`` says.
    """

    def __init__(
        self, config: ReformerConfig, attention: Callable[[], nn.Module] | None = None
    ):
        super().__init__()
        c = self.config = config
        hashed = partial(LSHSelfAttention, c.d_model, c.heads, c.chunk, c.rounds)
        make = attention or partial(hashed, causal=True)

        def reading(module: nn.Module) -> nn.Module:
            return nn.Sequential(nn.LayerNorm(c.d_model), module, nn.Dropout(c.dropout))

        def block() -> ReversibleBlock:
            network = ChunkedFeedForward(c.d_model, c.d_ff, c.dropout, c.ff_chunk)
            return ReversibleBlock(reading(make()), reading(network))

        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.positions = PositionalEncoding(c.d_model, c.max_len, c.dropout)
        self.blocks = ReversibleSequence([block() for _ in range(c.layers)])
        self.norm = nn.LayerNorm(2 * c.d_model)
        self.output = nn.Linear(2 * c.d_model, c.vocab_size)

    @require.shapes
    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits of what comes after each of the ``tokens``, ``(b, t)``."""
        require.ids(self.config.vocab_size, tokens=tokens)
        x = self.positions(self.embedding(tokens))
        y1, y2 = self.blocks(x, x)
        return self.output(self.norm(torch.cat([y1, y2], dim=-1)))
