"""Attention: scores between queries and keys, a softmax, a weighted sum of values.

Letters: b batch, t query length, s key length, h heads, d model width, k width of a
query or key, v width of a value (``book/notation.md``). Masks are boolean, True = may
attend (``masks.py``).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.masks import causal_mask


@require.shapes
def masked_softmax(
    scores: Float[Tensor, "... s"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "... s"]:
    """Softmax over the keys that the mask allows.

    A row with no key left gives zeros, forward and backward, in every dtype: the
    softmax of −inf alone would be NaN, so such a row gets zeros before the softmax
    and after it.

    Args:
        scores: one number for each query and key, the keys on the last axis.
        mask: boolean, broadcastable to ``scores``; True = may attend.

    Returns:
        Weights of the shape of ``scores``; each row sums to 1, or to 0 where the
        mask allows no key.

    Raises:
        ValueError: if ``mask`` does not broadcast to ``scores``.
    """
    require.mask(mask, scores.shape)
    if mask is None:
        return scores.softmax(dim=-1)
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


@require.shapes
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch t k"],
    key: Float[Tensor, "*batch s k"],
    value: Float[Tensor, "*batch s v"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch t v"], Float[Tensor, "*batch t s"]]:
    """Return ``softmax(q kᵀ · scale) v`` and the weights of the softmax.

    Vaswani et al. (2017), equation 1. The equation itself, with its weights at
    hand; it equals ``torch.nn.functional.scaled_dot_product_attention``, which
    does not return them.

    Args:
        query: ``(…, t, k)``.
        key: ``(…, s, k)``.
        value: ``(…, s, v)``.
        mask: boolean, broadcastable to ``(…, t, s)``; True = may attend. A query
            with no key left gets zeros.
        dropout: probability of dropping a weight on its way to the output; pass 0
            outside training.
        scale: factor of the scores; ``1 / √k`` if not given.

    Returns:
        Output ``(…, t, v)`` and weights ``(…, t, s)``, these before dropout.

    Raises:
        ValueError: if ``mask`` does not broadcast to ``(…, t, s)``.
    """
    if scale is None:
        scale = query.shape[-1] ** -0.5
    # scaling the query first keeps the product in the range of half precision
    weights = masked_softmax((query * scale) @ key.transpose(-2, -1), mask)
    return F.dropout(weights, dropout) @ value, weights


class MultiHeadAttention(nn.Module):
    """Several scaled dot-product attentions side by side, each in a part of the width.

    Vaswani et al. (2017), section 3.2.2; W^Q, W^K, W^V and W^O are ``query_map``,
    ``key_map``, ``value_map`` and ``output_map``, each for all heads at once.
    A variant overrides :meth:`project`, which makes queries, keys and values,
    :meth:`score_bias`, which adds to their scores, or :meth:`attend`, which does the
    rest. PyTorch's kernel is fused and never forms the weights:
    :func:`record_attention` computes them beside it.

    Args:
        d_model: width of inputs and output; ``heads`` must divide it.
        heads: number of heads, each of width ``d_model / heads``.
        dropout: probability of dropping a weight in training.
        bias: whether the four maps have a bias.
        causal: whether keys after their query are hidden; queries stand at the last
            of the keys' positions.
        kv_heads: number of heads of keys and values, each shared by a group of
            neighbouring query heads (Ainslie et al., 2023); ``heads`` if not given.

    Raises:
        TypeError: if a size is no integer, or ``dropout`` no number.
        ValueError: if a size is below 1, ``heads`` does not divide ``d_model``,
            ``kv_heads`` does not divide ``heads``, or ``dropout`` is not in [0, 1).
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        causal: bool = False,
        kv_heads: int | None = None,
    ):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        require.divides(heads=heads, d_model=d_model)
        require.divides(kv_heads=kv_heads, heads=heads)
        require.probability(dropout=dropout)
        self.d_model, self.heads, self.dropout = d_model, heads, dropout
        self.causal, self.kv_heads = causal, kv_heads
        shared = d_model // heads * kv_heads  # d, unless query heads share
        self.query_map = nn.Linear(d_model, d_model, bias=bias)
        self.key_map = nn.Linear(d_model, shared, bias=bias)
        self.value_map = nn.Linear(d_model, shared, bias=bias)
        self.output_map = nn.Linear(d_model, d_model, bias=bias)

    @require.shapes(d="d_model")
    def forward(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        value: Float[Tensor, "b s d"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        **options: Any,
    ) -> Float[Tensor, "b t d"]:
        """Attend from ``query`` to ``key`` and ``value``.

        Args:
            query: ``(b, t, d)``.
            key: ``(b, s, d)``; the query if not given.
            value: ``(b, s, d)``; the key if not given.
            mask: boolean, broadcastable to ``(b, h, t, s)``; True = may attend. Pass
                one mask per sequence, ``(b, t, s)``, as ``mask[:, None]``.
            options: more arguments of :meth:`score_bias`, for a subclass that has some.

        Returns:
            Output ``(b, t, d)``. A query with no key left gets only the bias of
            ``output_map``.

        Raises:
            ValueError: if ``mask`` does not fit.
        """
        return self.attend(*self.project(query, key, value), mask, **options)

    @require.shapes(d="d_model")
    def project(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        value: Float[Tensor, "b s d"] | None = None,
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "b h t k"], Float[Tensor, "b _ s k"], Float[Tensor, "b _ s k"]
    ]:
        """Return queries, keys and values of each head.

        Args:
            query: ``(b, t, d)``.
            key: as in :meth:`forward`.
            value: as in :meth:`forward`.
            start: position of the first key, for attention that knows positions.

        Returns:
            Queries ``(b, h, t, k)``, and keys and values ``(b, kv_heads, s, k)``.
        """
        key = query if key is None else key
        value = key if value is None else value
        mapped = self.query_map(query), self.key_map(key), self.value_map(value)
        k = self.d_model // self.heads
        q, k, v = (x.unflatten(-1, (-1, k)).transpose(1, 2) for x in mapped)
        return q, k, v

    def score_bias(
        self, q: Float[Tensor, "b h t k"], k: Float[Tensor, "b h s k"]
    ) -> Float[Tensor, "..."] | None:
        """Return what is added to the scaled scores: nothing, unless overridden.

        Args:
            q: queries.
            k: keys.

        Returns:
            Numbers, broadcastable to ``(b, h, t, s)``, or None.
        """

    def attend(
        self,
        q: Float[Tensor, "b h t k"],
        k: Float[Tensor, "b _ s k"],
        v: Float[Tensor, "b _ s k"],
        mask: Bool[Tensor, "..."] | None = None,
        **options: Any,
    ) -> Float[Tensor, "b t d"]:
        """Return the output of queries, keys and values such as :meth:`project` gives.

        Args:
            q: queries, ``(b, h, t, k)``.
            k: keys, ``(b, kv_heads, s, k)``.
            v: values, as many.
            mask: as in :meth:`forward`.
            options: as in :meth:`forward`.
        """
        k, v = self._for_all_heads(k), self._for_all_heads(v)
        bias = self.score_bias(q, k, **options)
        dropout = self.dropout if self.training else 0.0
        square = q.shape[2] == k.shape[2]  # the kernel counts from the first key
        if mask is None and bias is None and (square or not self.causal):
            heads = F.scaled_dot_product_attention(
                q, k, v, dropout_p=dropout, is_causal=self.causal
            )
        else:
            mask = self._visible(q, k, mask)
            # not every kernel empties a row with no key left, some give NaN: here such
            # a row sees all keys, and is emptied afterwards
            empty = ~mask.any(dim=-1, keepdim=True)
            mask = mask | empty
            if bias is not None:
                mask = torch.where(mask, bias.to(q.dtype), -torch.inf)
            heads = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=dropout
            ).masked_fill(empty, 0.0)
        return self.output_map(heads.transpose(1, 2).flatten(2))

    @require.shapes(d="d_model")
    def weights(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        **options: Any,
    ) -> Float[Tensor, "b h t s"]:
        """Compute the weights that the fused kernel uses and never forms.

        Args:
            query: ``(b, t, d)``.
            key: ``(b, s, d)``; the query if not given.
            mask: boolean, broadcastable to ``(b, h, t, s)``; True = may attend.
            options: as in :meth:`forward`.

        Returns:
            Weights ``(b, h, t, s)`` before dropout, in single precision at least, as
            the kernel computes inside; each row sums to 1, or to 0 where the mask
            allows no key.
        """
        q, k, _ = self.project(query, key)
        k = self._for_all_heads(k)
        bias = self.score_bias(q, k, **options)
        with torch.autocast(q.device.type, enabled=False):
            q, k = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k))
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
            if bias is not None:
                scores = scores + bias
            return masked_softmax(scores, self._visible(q, k, mask))

    def _for_all_heads(self, x: Tensor) -> Tensor:
        shared = self.heads // self.kv_heads
        return x if shared == 1 else x.repeat_interleave(shared, dim=1)

    def _visible(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """The keys that ``mask`` allows, no later ones if attention is causal."""
        require.mask(mask, (*q.shape[:3], k.shape[2]))
        if mask is None:
            mask = torch.ones(1, dtype=torch.bool, device=q.device)
        if self.causal:
            mask = mask & causal_mask(q.shape[2], k.shape[2], device=q.device)
        return torch.atleast_2d(mask)  # the kernel wants a query and a key axis


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights of every multi-head attention in a model.

    Inside ``with record_attention(model) as maps:`` each call of a
    :class:`MultiHeadAttention` computes its weights once more, beside the forward pass
    and without gradients; outputs stay what they were, bit for bit, dropout or not.
    Leaving the block, even by an exception, removes the hooks. Blocks may be nested,
    and each records for itself.

    Args:
        model: a module that holds multi-head attention, or is one.

    Yields:
        A dictionary: for the name of each attention, as ``model.named_modules()``
        gives it, a list of weights ``(b, h, t, s)``, one a call, in order. The model
        itself has the name ``""``. Weights are those before dropout.

    Raises:
        ValueError: if the model holds no multi-head attention.
    """
    attentions = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    require.that(attentions, f"model must hold a MultiHeadAttention, got {model}")
    maps: dict[str, list[Tensor]] = {name: [] for name in attentions}

    def recorder(name: str) -> Callable:
        def hook(module: nn.Module, args: tuple, kwargs: dict, output: Tensor) -> None:
            def weights(query, key=None, value=None, mask=None, **options):
                return module.weights(query, key, mask, **options)

            with torch.no_grad():
                maps[name].append(weights(*args, **kwargs))

        return hook

    with ExitStack() as hooks:
        for name, module in attentions.items():
            handle = module.register_forward_hook(recorder(name), with_kwargs=True)
            hooks.callback(handle.remove)
        yield maps
