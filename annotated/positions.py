"""Positions: what tells a set of vectors in which order it stands.

Letters: b batch, t length, d model width, k head width (``book/notation.md``).
Positions are counted from 0; ``start`` is the position of the first vector given, for
a decoder that goes on where it stopped.
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.attention import MultiHeadAttention


def frequencies(width: int, base: float = 10000.0) -> Float[Tensor, "_"]:
    """Return the angles by which each pair of dimensions turns from one position on.

    Vaswani et al. (2017), section 3.5: pair i turns by ``base^(−2i/width)``, from 1
    down to nearly ``1 / base``, computed in log space.

    Args:
        width: width of the encoding, even.
        base: the larger, the slower the last pairs turn.

    Returns:
        ``(width / 2,)``, in radians per position, in double precision.

    Raises:
        TypeError: if ``width`` is no integer.
        ValueError: if ``width`` is not even and above 0.
    """
    require.even(width=width)
    pairs = torch.arange(0, width, 2, dtype=torch.float64)
    return torch.exp(pairs * (-math.log(base) / width))


def sinusoidal_encoding(
    length: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "t d"]:
    """Return the sinusoidal positional encoding.

    Vaswani et al. (2017), section 3.5: dimensions 2i and 2i + 1 of position p are the
    sine and the cosine of ``p / base^(2i / d_model)``, for i from 0 to d_model/2 − 1.

    Args:
        length: number t of positions, from 0 on.
        d_model: width d of the encoding, even.
        base: the larger, the slower the last dimensions turn.

    Returns:
        The table ``(t, d)``, in single precision; angles are computed in double
        precision, so that far positions are exact too.

    Raises:
        TypeError: if ``d_model`` is no integer.
        ValueError: if ``d_model`` is not even and above 0.
    """
    require.even(d_model=d_model)
    positions = torch.arange(length, dtype=torch.float64)
    angles = positions[:, None] * frequencies(d_model, base)  # (t, d/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


class PositionalEncoding(nn.Module):
    """Adds the sinusoidal encoding to its input.

    Vaswani et al. (2017), section 3.5. The table is a buffer: it moves with the module
    and is no parameter. It is not saved either, since it can be computed.

    Args:
        d_model: width of the input, even.
        max_len: number of positions in the table.
        dropout: probability of dropping a number of the sum in training (section 5.4
            of the paper).

    Raises:
        TypeError: if a size is no integer.
        ValueError: if ``d_model`` is not even, or ``max_len`` is below 1.
    """

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0):
        super().__init__()
        require.count(max_len=max_len)
        self.d_model = d_model
        table = sinusoidal_encoding(max_len, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    @require.shapes(d="d_model")
    def forward(
        self,
        x: Float[Tensor, "b t d"],
        start: int = 0,
        positions: Int[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Add the encoding of the positions ``start`` to ``start + t − 1``.

        Args:
            x: ``(b, t, d)``.
            start: position of the first vector.
            positions: those of all vectors, where they aren't in a row.

        Returns:
            ``(b, t, d)``, in the dtype of ``x``.

        Raises:
            ValueError: if a position lies outside the table.
        """
        return self.dropout(x + _rows(self.table, x, start, positions))


class LearnedPositionalEmbedding(nn.Module):
    """Adds a learned vector for each position to its input.

    Vaswani et al. (2017), section 3.5 and table 3, row E; Gehring et al. (2017). There
    is no position beyond ``max_len``, and one that no training sequence reached keeps
    the random vector that it began with.

    Args:
        max_len: number of positions.
        d_model: width of the input.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.d_model = d_model
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=0.02)  # as BERT begins

    @require.shapes(d="d_model")
    def forward(
        self,
        x: Float[Tensor, "b t d"],
        start: int = 0,
        positions: Int[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Add the vectors of the positions ``start`` to ``start + t − 1``.

        Args:
            x: ``(b, t, d)``.
            start: position of the first vector.
            positions: those of all vectors, where they aren't in a row.

        Returns:
            ``(b, t, d)``, in the dtype of ``x``.

        Raises:
            ValueError: if a position lies at ``max_len`` or beyond.
        """
        return x + _rows(self.table, x, start, positions)


@require.shapes
def rotary_embedding(
    x: Float[Tensor, "*batch t k"], start: int = 0, base: float = 10000.0
) -> Float[Tensor, "*batch t k"]:
    """Turn each pair of dimensions by an angle proportional to the position.

    Su et al. (2021), equation 34. Applied to queries and keys alike, it makes their
    dot product depend on the distance of their positions alone.

    Args:
        x: queries or keys, ``(…, t, k)``, k even.
        start: position of the first vector.
        base: as in :func:`sinusoidal_encoding`, whose angles these are.

    Returns:
        ``(…, t, k)``, in the dtype of ``x``; turned in single precision at least.

    Raises:
        ValueError: if the width is odd.
    """
    return turn_pairs(x, rotary_table(start, start + x.shape[-2], x.shape[-1], base))


def rotary_table(
    start: int, end: int, width: int, base: float = 10000.0
) -> Float[Tensor, "t _ 2"]:
    """Return the cosine and sine by which positions turn each pair of dimensions.

    Args:
        start: the first position.
        end: the one after the last.
        width: number k of dimensions, even.
        base: as in :func:`sinusoidal_encoding`, whose angles these are.

    Returns:
        ``(t, k / 2, 2)``, in double precision.
    """
    positions = torch.arange(start, end, dtype=torch.float64)
    angles = positions[:, None] * frequencies(width, base)  # (t, k/2)
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def turn_pairs(
    x: Float[Tensor, "*batch t k"], table: Float[Tensor, "t _ 2"]
) -> Float[Tensor, "*batch t k"]:
    """Turn the pairs of ``x``, each by the cosine and sine that ``table`` has for it.

    Args:
        x: queries or keys, ``(…, t, k)``.
        table: of their positions, ``(t, k / 2, 2)``, as :func:`rotary_table` gives it.

    Returns:
        ``(…, t, k)``, turned in single precision at least, in the dtype of ``x``.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    cosine, sine = table.to(wide).to(x.device).unbind(-1)  # (t, k/2)
    first, second = x.to(wide).unflatten(-1, (-1, 2)).unbind(-1)
    turned = first * cosine - second * sine, first * sine + second * cosine
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


class RotaryMultiHeadAttention(MultiHeadAttention):
    """Multi-head self-attention whose queries and keys are turned by their positions.

    Su et al. (2021). The width of a head must be even. With more keys than queries the
    queries are the last ones, as in :func:`~annotated.masks.causal_mask`.

    Args:
        sizes: of :class:`~annotated.attention.MultiHeadAttention`, its first arguments.
        base: as in :func:`rotary_embedding`.
        options: its other arguments.
    """

    def __init__(self, *sizes: Any, base: float = 10000.0, **options: Any):
        super().__init__(*sizes, **options)
        self.base = base
        self.register_buffer("table", torch.empty(0), persistent=False)

    def project(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        value: Float[Tensor, "b s d"] | None = None,
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "b h t k"], Float[Tensor, "b _ s k"], Float[Tensor, "b _ s k"]
    ]:
        """Return queries and keys, turned by their positions, and values.

        ``query``, ``key``, ``value`` and ``start`` are as in the class above.
        """
        q, k, v = super().project(query, key, value)
        require.at_most(queries=q.shape[2], keys=k.shape[2])
        first = start + k.shape[2] - q.shape[2]
        return self.turn(q, first), self.turn(k, start), v

    def turn(
        self, x: Float[Tensor, "*batch t k"], start: int
    ) -> Float[Tensor, "*batch t k"]:
        """Return what :func:`rotary_embedding` does of ``x`` from ``start`` on.

        The table of angles is kept, and made anew when it is too short.
        """
        end = start + x.shape[-2]
        wide = torch.promote_types(x.dtype, torch.float32)
        if end > len(self.table) or self.table.dtype != wide:  # or after half()
            longer = max(end, 2 * len(self.table))
            with torch.inference_mode(False):  # the table may be learned with, later
                table = rotary_table(0, longer, x.shape[-1], self.base).to(wide)
                self.table = table.to(x.device)  # an MPS device has no float64
        return turn_pairs(x, self.table[start:end])


def _rows(table: Tensor, x: Tensor, start: int, positions: Tensor | None) -> Tensor:
    if positions is not None:
        require.within(0, len(table) - 1, positions=positions)
        return table[positions].to(x.dtype)  # (b, t, d)
    end = start + x.shape[1]
    require.at_most(length=end, max_len=len(table))
    return table[start:end].to(x.dtype)
