"""What decoders changed after GPT-2, where it isn't a choice of ``GPTConfig``.

A norm on queries and keys, a window of near keys, and latent attention's small cache.

Letters: b batch, t query length, s key length, h heads, d model width, k head width
(``book/notation.md``). Masks are boolean, True = may attend.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.gpt import GPTConfig
from annotated.masks import causal_mask


class QueryKeyNormAttention(MultiHeadAttention):
    """Multi-head attention whose queries and keys have a length of √k.

    Henry et al. (2020) began it; here as in Qwen3 and Gemma 3: RMSNorm over the width
    of a head, with a gain for each dimension, one norm for queries and one for keys.
    Scores can't grow with the stream. To turn by positions what was normalised, derive
    from :class:`~annotated.positions.RotaryMultiHeadAttention` first, then from this.

    Args:
        sizes: of :class:`~annotated.attention.MultiHeadAttention`, its first arguments.
        options: its other arguments.
    """

    def __init__(self, *sizes: Any, **options: Any):
        super().__init__(*sizes, **options)
        width = self.d_model // self.heads
        self.query_norm = nn.RMSNorm(width, eps=1e-6)
        self.key_norm = nn.RMSNorm(width, eps=1e-6)

    def project(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        value: Float[Tensor, "b s d"] | None = None,
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "b h t k"], Float[Tensor, "b _ s k"], Float[Tensor, "b _ s k"]
    ]:
        """Return queries and keys, normalised, and values.

        ``query``, ``key``, ``value`` and ``start`` are as in the class above.
        """
        q, k, v = super().project(query, key, value, start)
        return self.query_norm(q), self.key_norm(k), v


def window_mask(
    window: int,
    queries: int,
    keys: int | None = None,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "1 1 t s"]:
    """True at the last ``window`` keys up to each query's own, itself among them.

    Beltagy et al. (2020), section 3.1; Jiang et al. (2023), section 2, for decoders.

    Args:
        window: number of keys that a query sees.
        queries: number t of queries, the last of the keys' positions.
        keys: number s of keys; as many if not given.
        device: where to make the mask.

    Returns:
        Boolean mask ``(1, 1, t, s)``, causal.
    """
    require.count(window=window)
    past = causal_mask(queries, keys, device)
    return past & ~past.tril(past.shape[-1] - queries - window)


class SlidingWindowAttention(MultiHeadAttention):
    """Causal attention in which a query sees the last ``window`` keys alone.

    Beltagy et al. (2020), section 3.1; Jiang et al. (2023), for decoders. L layers of
    it reach back ``L · (window − 1)`` positions, and a cache needs no more than
    ``window`` keys and values.

    Args:
        sizes: of :class:`~annotated.attention.MultiHeadAttention`, its first arguments.
        window: number of keys that a query sees, itself among them.
        options: its other arguments; ``causal`` must be True.

    Raises:
        ValueError: if ``window`` is below 1, or ``causal`` isn't True.
    """

    def __init__(self, *sizes: Any, window: int, **options: Any):
        super().__init__(*sizes, **options)
        require.count(window=window)
        require.choice([True], causal=self.causal)
        self.window = window

    def attend(
        self,
        q: Float[Tensor, "b h t k"],
        k: Float[Tensor, "b _ s k"],
        v: Float[Tensor, "b _ s k"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return the output of queries, keys and values such as ``project`` gives.

        ``q``, ``k``, ``v`` and ``mask`` are as in the class above.
        """
        return super().attend(q, k, v, self._visible(q, k, mask))

    def _visible(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        near = window_mask(self.window, q.shape[2], k.shape[2], q.device)
        return super()._visible(q, k, near if mask is None else near & mask)


def cache_numbers(
    config: GPTConfig,
    length: int,
    window: int | None = None,
    latent: tuple[int, int] | None = None,
) -> int:
    """Return how many numbers a decoder keeps of ``length`` tokens, in all layers.

    Args:
        config: of the model: layers, heads, ``kv_heads`` and widths.
        length: number of tokens that were read.
        window: of :class:`SlidingWindowAttention` in all layers; None if all is kept.
        latent: of latent attention (DeepSeek-AI, 2024, section 2.1), the width of what
            is kept of a token in place of keys and values, and the width of the one key
            that positions turn; None for keys and values.
    """
    require.count(0, length=length)
    if window is not None:
        require.count(window=window)
        length = min(length, window)
    heads = config.heads if config.kv_heads is None else config.kv_heads
    each = 2 * heads * (config.d_model // config.heads)
    if latent is not None:
        require.count(**{f"latent[{i}]": one for i, one in enumerate(latent)})
        each = sum(latent)
    return config.layers * length * each
