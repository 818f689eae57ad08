"""Attention tile by tile, as fused kernels compute it: the loop of page 17b.

Milakov and Gimelshein (2018) for the running sum, Dao et al. (2022) for the tiles and
the backward pass. Letters: t query length, s key length, k width of a query or key, v
width of a value (``book/notation.md``); m, total and o are the running maximum, sum
and output of each row.
"""

from collections.abc import Callable, Iterator
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from annotated import require

# takes positions of queries and keys, gives True where one sees the other
Sees = Callable[[Tensor, Tensor], Tensor]


def tiles(
    q: Tensor, k: Tensor, sees: Sees, size: int
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield each tile in which a query sees a key.

    Yields:
        Its rows, its columns, and its scores, −inf where a key isn't seen.
    """
    i, j = (torch.arange(x.shape[-2], device=q.device) for x in (q, k))
    for top in range(0, len(i), size):
        for left in range(0, len(j), size):
            rows, columns = slice(top, top + size), slice(left, left + size)
            allowed = sees(i[rows, None], j[columns])
            if allowed.any():
                scores = q[..., rows, :] @ k[..., columns, :].mT
                scores = scores * q.shape[-1] ** -0.5
                yield rows, columns, scores.masked_fill(~allowed, -inf)


@require.shapes
def forward_tiles(
    q: Float[Tensor, "*batch t k"],
    k: Float[Tensor, "*batch s k"],
    v: Float[Tensor, "*batch s v"],
    sees: Sees,
    size: int,
) -> tuple[Float[Tensor, "*batch t v"], Float[Tensor, "*batch t 1"]]:
    """Return attention's output, and the log-sum-exp of each row of scores.

    Args:
        sees: which query may see which key, asked by their positions, such as a
            :class:`annotated.sparse.Pattern`.
        size: rows and columns of a tile; there may be fewer in the last one.

    Returns:
        Output, and log-sum-exp; of a row that sees no key they are 0 and −inf.
    """
    require.count(size=size)
    all_o = q.new_zeros(*q.shape[:-1], v.shape[-1])
    all_total = q.new_zeros(*q.shape[:-1], 1)
    all_m = q.new_full(all_total.shape, -inf)
    running = all_m, all_total, all_o
    for rows, columns, scores in tiles(q, k, sees, size):
        m, total, o = (x[..., rows, :] for x in running)  # views
        largest = torch.maximum(m, scores.amax(dim=-1, keepdim=True))
        shift = largest.masked_fill(largest == -inf, 0.0)  # −inf − (−inf): NaN
        factor, p = (m - shift).exp(), (scores - shift).exp()
        total.mul_(factor).add_(p.sum(dim=-1, keepdim=True))
        o.mul_(factor).add_(p @ v[..., columns, :])
        m.copy_(largest)
    output = all_o / all_total.masked_fill(all_total == 0, 1.0)
    return output, all_m + all_total.log()


class TiledAttention(torch.autograd.Function):
    """Attention that keeps one number for each row, and rebuilds the rest."""

    @staticmethod
    def forward(ctx, q, k, v, sees, size):
        """Return attention's output; ``ctx`` keeps what's needed.

        ``q``, ``k``, ``v``, ``sees`` and ``size`` are as in :func:`forward_tiles`.
        """
        o, lse = forward_tiles(q, k, v, sees, size)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.sees, ctx.size = sees, size
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        """Return the gradients of queries, keys and values.

        ``ctx`` is that of the forward pass, ``do`` the gradient of its output.
        """
        q, k, v, o, lse = ctx.saved_tensors
        dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
        lse = lse.masked_fill(lse == -inf, 0.0)
        mean = (do * o).sum(dim=-1, keepdim=True)  # of dp, weighted by p
        for rows, columns, scores in tiles(q, k, ctx.sees, ctx.size):
            p = (scores - lse[..., rows, :]).exp()  # the weights, once more
            dp = do[..., rows, :] @ v[..., columns, :].mT
            dz = p * (dp - mean[..., rows, :]) * q.shape[-1] ** -0.5
            dq[..., rows, :] += dz @ k[..., columns, :]
            dk[..., columns, :] += dz.mT @ q[..., rows, :]
            dv[..., columns, :] += p.mT @ do[..., rows, :]
        return dq, dk, dv, None, None
