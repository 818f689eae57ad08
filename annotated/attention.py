"""Attention: scores between queries and keys, a softmax, a weighted sum of values.

Letters: b batch, t query length, s key length, k width of query and key, v width
of a value (``book/notation.md``). Masks are boolean, True = may attend (``masks.py``).
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from numbers import Real

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.masks import require_mask


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
        TypeError: if ``mask`` is not boolean.
        ValueError: if ``mask`` does not broadcast to ``scores``.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    require_mask(mask, scores.shape)
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


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
        dropout: probability with which a weight is dropped on its way to the
            output; pass 0 outside training.
        scale: factor of the energies; ``1 / √k`` if not given.

    Returns:
        Output ``(…, t, v)`` and weights ``(…, t, s)``, these before dropout.

    Raises:
        TypeError: if ``mask`` is not boolean, or dtypes differ.
        ValueError: if shapes do not fit, or ``dropout`` is not in [0, 1).
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} must have the axes (…, length, width), "
                f"got shape {tuple(tensor.shape)}"
            )
    if not query.dtype == key.dtype == value.dtype and not torch.is_autocast_enabled(
        query.device.type
    ):
        raise TypeError(
            "query, key and value must have the same dtype, got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        raise ValueError(
            "query, key and value must have the same axes before length and width, "
            f"got {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "query and key must have the same width, got "
            f"{query.shape[-1]} and {key.shape[-1]}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"each key needs one value: got {key.shape[-2]} keys "
            f"and {value.shape[-2]} values"
        )
    _require_dropout(dropout)
    if scale is None:
        scale = query.shape[-1] ** -0.5
    # scaling the query first keeps the product in the range of half precision
    weights = masked_softmax((query * scale) @ key.transpose(-2, -1), mask)
    return F.dropout(weights, dropout) @ value, weights


class MultiHeadAttention(nn.Module):
    """Several scaled dot-product attentions side by side, each in a part of the width.

    Vaswani et al. (2017), section 3.2.2; W^Q, W^K, W^V and W^O are ``query_map``,
    ``key_map``, ``value_map`` and ``output_map``, each for all heads at once. The
    weights themselves are never formed, since the kernel of PyTorch is fused:
    :func:`record_attention` computes them beside it.

    Args:
        d_model: width of inputs and output; ``heads`` must divide it.
        heads: number of heads, each of width ``d_model / heads``.
        dropout: probability with which a weight is dropped in training.
        bias: whether the four maps have a bias.

    Raises:
        ValueError: if a size is below 1, ``heads`` does not divide ``d_model``, or
            ``dropout`` is not in [0, 1).
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, bias: bool = True
    ):
        super().__init__()
        _require_positive(d_model=d_model, heads=heads)
        if d_model % heads:
            raise ValueError(
                f"heads must divide d_model, got {d_model=} and {heads=}, "
                f"which leaves {d_model % heads}"
            )
        _require_dropout(dropout)
        self.heads, self.dropout = heads, dropout
        self.query_map = nn.Linear(d_model, d_model, bias=bias)
        self.key_map = nn.Linear(d_model, d_model, bias=bias)
        self.value_map = nn.Linear(d_model, d_model, bias=bias)
        self.output_map = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        value: Float[Tensor, "b s d"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Attend from ``query`` to ``key`` and ``value``.

        Args:
            query: ``(b, t, d)``.
            key: ``(b, s, d)``; the query if not given.
            value: ``(b, s, d)``; the key if not given.
            mask: boolean, broadcastable to ``(b, h, t, s)``; True = may attend. One
                mask a sequence, ``(b, t, s)``, is passed as ``mask[:, None]``.

        Returns:
            Output ``(b, t, d)``. A query with no key left gets only the bias of
            ``output_map``.

        Raises:
            TypeError: if ``mask`` is not boolean, or a dtype is another one than
                that of the parameters.
            ValueError: if a shape does not fit.
        """
        key = query if key is None else key
        value = key if value is None else value
        self._require_fit(query, key, value, mask)
        q, k = self._queries_and_keys(query, key)  # (b, h, t, k), (b, h, s, k)
        v = self._split(self.value_map(value))
        dropout = self.dropout if self.training else 0.0
        if mask is None:
            heads = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        else:
            mask = torch.atleast_2d(mask)  # the kernel wants a query and a key axis
            # not every kernel empties a row with no key left, some give NaN: such a
            # row sees all keys here, and is emptied after it
            empty = ~mask.any(dim=-1, keepdim=True)
            heads = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask | empty, dropout_p=dropout
            ).masked_fill(empty, 0.0)
        return self.output_map(heads.transpose(1, 2).flatten(2))

    def weights(
        self,
        query: Float[Tensor, "b t d"],
        key: Float[Tensor, "b s d"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b h t s"]:
        """Compute the weights that the fused kernel uses and never forms.

        Args:
            query: ``(b, t, d)``.
            key: ``(b, s, d)``; the query if not given.
            mask: boolean, broadcastable to ``(b, h, t, s)``; True = may attend.

        Returns:
            Weights ``(b, h, t, s)`` before dropout, in single precision at least, as
            the kernel computes inside; each row sums to 1, or to 0 where the mask
            allows no key.

        Raises:
            TypeError: if ``mask`` is not boolean, or a dtype is another one.
            ValueError: if a shape does not fit.
        """
        key = query if key is None else key
        self._require_fit(query, key, key, mask)
        q, k = self._queries_and_keys(query, key)
        with torch.autocast(q.device.type, enabled=False):
            q, k = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k))
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
            return masked_softmax(scores, mask)

    def _queries_and_keys(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return self._split(self.query_map(query)), self._split(self.key_map(key))

    def _split(self, x: Tensor) -> Tensor:
        b, length, width = x.shape  # b may be 0, and -1 would then be anything
        return x.view(b, length, self.heads, width // self.heads).transpose(1, 2)

    def _require_fit(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> None:
        width, dtype = self.query_map.in_features, self.query_map.weight.dtype
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            if tensor.dim() != 3 or tensor.shape[-1] != width:
                raise ValueError(
                    f"{name} must have the shape (batch, length, {width}), "
                    f"got {tuple(tensor.shape)}"
                )
            if tensor.dtype != dtype and not torch.is_autocast_enabled(
                tensor.device.type
            ):
                raise TypeError(
                    f"{name} must have the dtype of the module's parameters, {dtype}, "
                    f"got {tensor.dtype}"
                )
        if key.shape[:2] != value.shape[:2] or len(query) != len(key):
            raise ValueError(
                "query, key and value must have the same batch size, and each key one "
                f"value: got {tuple(query.shape)}, {tuple(key.shape)}, "
                f"{tuple(value.shape)}"
            )
        if mask is not None:
            require_mask(mask, (len(query), self.heads, query.shape[1], key.shape[1]))
            if mask.dim() == 3:  # its first axis would be read as the heads
                raise ValueError(
                    "mask must have the axes (batch, heads, queries, keys); for one "
                    f"mask a sequence pass mask[:, None], got {tuple(mask.shape)}"
                )


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights of every multi-head attention in a model.

    The kernel is fused and never forms the weights. Inside ``with record_attention(
    model) as maps:`` each call of a :class:`MultiHeadAttention` computes them once
    more, beside the forward pass and without gradients; outputs stay what they were,
    bit for bit, dropout or not. Leaving the block, by an exception too, takes the
    hooks away; blocks may be nested, and each records for itself.

    Args:
        model: a module that holds multi-head attention, or is one.

    Yields:
        A dictionary: for the name of each attention, as ``model.named_modules()``
        gives it, a list of weights ``(b, h, t, s)``, one a call, in order. The model
        itself has the name ``""``. Weights are those before dropout.

    Raises:
        TypeError: if ``model`` is not a module.
        ValueError: if it holds no multi-head attention.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type(model).__name__}")
    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    if not found:
        raise ValueError(
            f"model must hold a MultiHeadAttention, and this {type(model).__name__} "
            "holds none"
        )
    maps: dict[str, list[Tensor]] = {name: [] for name in found}

    def recorder(name: str) -> Callable:
        def hook(module: nn.Module, args: tuple, kwargs: dict, _: Tensor) -> None:
            given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
            key, mask = given.get("key"), given.get("mask")
            with torch.no_grad():
                maps[name].append(module.weights(given["query"], key, mask))

        return hook

    with ExitStack() as hooks:
        for name, module in found.items():
            handle = module.register_forward_hook(recorder(name), with_kwargs=True)
            hooks.callback(handle.remove)
        yield maps


class ScoredAttention(nn.Module):
    """What all attention of chapter 01 shares; a variant overrides how it scores.

    Keys do not change while a decoder walks along its output, so what depends on
    them alone is computed once by :meth:`prepare`, and :meth:`score` is called at
    every step.
    """

    query_size: int | None = None  # None: any width
    key_size: int | None = None

    def prepare(self, keys: Float[Tensor, "b s k"]) -> Float[Tensor, "b s _"]:
        """Return what :meth:`score` needs of the keys, ``(b, s, ·)``.

        Args:
            keys: ``(b, s, k)``.
        """
        return keys

    def score(
        self,
        query: Float[Tensor, "b t q"],
        prepared: Float[Tensor, "b s _"],
        previous: Float[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t s"]:
        """Return the energies ``e[b, t, s]`` of each query with each key.

        Args:
            query: ``(b, t, q)``.
            prepared: what ``prepare`` gave, ``(b, s, ·)``.
            previous: alignment ``(b, s)`` of the step before; only
                location-sensitive attention reads it.

        Raises:
            ValueError: if widths or shapes do not fit the score, or if a
                location-sensitive score is asked for several queries at once.
        """
        raise NotImplementedError

    def attend(
        self,
        query: Float[Tensor, "b t q"],
        prepared: Float[Tensor, "b s _"],
        values: Float[Tensor, "b s v"],
        mask: Bool[Tensor, "..."] | None = None,
        previous: Float[Tensor, "b s"] | None = None,
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b t s"]]:
        """Score, softmax, weighted sum, over keys that are already prepared.

        Args:
            query: ``(b, t, q)``.
            prepared: what :meth:`prepare` gave.
            values: ``(b, s, v)``.
            mask: boolean, broadcastable to ``(b, t, s)``; True = may attend.
            previous: alignment ``(b, s)`` of the step before.

        Returns:
            Contexts ``(b, t, v)`` and alignments ``(b, t, s)``.
        """
        weights = masked_softmax(self.score(query, prepared, previous), mask)
        return weights @ values, weights

    def forward(
        self,
        query: Float[Tensor, "b t q"],
        keys: Float[Tensor, "b s k"],
        values: Float[Tensor, "b s v"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        previous: Float[Tensor, "b s"] | None = None,
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b t s"]]:
        """Attend from each query to all keys.

        Args:
            query: ``(b, t, q)``.
            keys: ``(b, s, k)``.
            values: ``(b, s, v)``; the keys themselves if not given.
            mask: boolean, broadcastable to ``(b, t, s)``; True = may attend.
            previous: alignment ``(b, s)`` before the first query; only
                location-sensitive attention reads it.

        Returns:
            Contexts ``(b, t, v)`` and alignments ``(b, t, s)``, whose rows sum to 1
            (to 0 where the mask allows no key).

        Raises:
            TypeError: if ``mask`` is not boolean.
            ValueError: if widths, batch sizes or the mask's shape do not fit.
        """
        values = keys if values is None else values
        self._require_fit(query, keys, values)
        return self.attend(query, self.prepare(keys), values, mask, previous)

    def _require_fit(self, query: Tensor, keys: Tensor, values: Tensor) -> None:
        for name, tensor in (("query", query), ("keys", keys), ("values", values)):
            if tensor.dim() != 3:
                raise ValueError(
                    f"{name} must have three axes (batch, length, width), "
                    f"got shape {tuple(tensor.shape)}"
                )
        if not query.shape[0] == keys.shape[0] == values.shape[0]:
            raise ValueError(
                "query, keys and values must have the same batch size, got "
                f"{query.shape[0]}, {keys.shape[0]} and {values.shape[0]}"
            )
        if keys.shape[1] != values.shape[1]:
            raise ValueError(
                f"each key needs one value: got {keys.shape[1]} keys "
                f"and {values.shape[1]} values"
            )
        wanted = (("query", query, self.query_size), ("keys", keys, self.key_size))
        for name, tensor, size in wanted:
            if size is not None and tensor.shape[-1] != size:
                raise ValueError(
                    f"{name} must have width {size}, got {tensor.shape[-1]}"
                )


class AdditiveAttention(ScoredAttention):
    """Additive attention, ``e = vᵀ tanh(W q + U k)``.

    Bahdanau, Cho and Bengio (2015), appendix A.1.2, where W is ``query_map``, U is
    ``key_map`` and v is ``direction``.

    Args:
        query_size: width of a query.
        key_size: width of a key.
        hidden: width in which query and key are added.

    Raises:
        ValueError: if a width is no whole number above 0.
    """

    def __init__(self, query_size: int, key_size: int, hidden: int):
        super().__init__()
        _require_positive(query_size=query_size, key_size=key_size, hidden=hidden)
        self.query_size, self.key_size = query_size, key_size
        self.query_map = nn.Linear(query_size, hidden, bias=False)
        self.key_map = nn.Linear(key_size, hidden, bias=False)
        self.direction = nn.Linear(hidden, 1, bias=False)

    def prepare(self, keys):
        return self.key_map(keys)

    def score(self, query, prepared, previous=None):
        # every query meets every key: (b, t, 1, hidden) + (b, 1, s, hidden)
        sums = self.query_map(query)[:, :, None, :] + prepared[:, None, :, :]
        return self.direction(torch.tanh(sums)).squeeze(-1)


class DotAttention(ScoredAttention):
    """Dot-product attention, ``e = q·k``, or ``e = qᵀ W k`` ("general").

    Luong, Pham and Manning (2015), equation 8; both are called multiplicative.
    Nothing is scaled here: why one should is the subject of chapter 02.

    Args:
        query_size: width of a query; with ``key_size``, gives the general score.
            Without the two, query and key must have the same width.
        key_size: width of a key.

    Raises:
        ValueError: if only one of the two is given, or is no whole number above 0.
    """

    def __init__(self, query_size: int | None = None, key_size: int | None = None):
        super().__init__()
        if (query_size is None) != (key_size is None):
            raise ValueError(
                "query_size and key_size go together: give both for the general "
                f"score or neither for the dot score, got {query_size=}, {key_size=}"
            )
        if query_size is None:
            self.key_map = nn.Identity()
        else:
            _require_positive(query_size=query_size, key_size=key_size)
            self.query_size, self.key_size = query_size, key_size
            self.key_map = nn.Linear(key_size, query_size, bias=False)

    def prepare(self, keys):
        return self.key_map(keys)

    def score(self, query, prepared, previous=None):
        if query.shape[-1] != prepared.shape[-1]:
            raise ValueError(
                "query and keys must have the same width for the dot score, got "
                f"{query.shape[-1]} and {prepared.shape[-1]}; "
                "give query_size and key_size for the general score"
            )
        return query @ prepared.transpose(1, 2)


class LocationSensitiveAttention(AdditiveAttention):
    """Additive attention that also sees where it looked one step before.

    ``e = vᵀ tanh(W q + U k + L f + β)`` with ``f = F * α``, a convolution over the
    previous alignment α. Chorowski et al. (2015), equations 8 and 9, where L is
    ``location_map``, F is ``convolution`` and β is ``offset``.

    Each alignment enters the next one, so several queries are walked one by one.

    Args:
        query_size: width of a query.
        key_size: width of a key.
        hidden: width in which query, key and location are added.
        filters: number of convolution filters.
        kernel: width of a filter in source positions, odd, so that it has a centre.

    Raises:
        ValueError: if a size is no whole number above 0, or ``kernel`` is even.
    """

    def __init__(
        self,
        query_size: int,
        key_size: int,
        hidden: int,
        filters: int = 8,
        kernel: int = 7,
    ):
        super().__init__(query_size, key_size, hidden)
        _require_positive(filters=filters, kernel=kernel)
        if kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, to have a centre; got {kernel}")
        self.convolution = nn.Conv1d(
            1, filters, kernel, padding=kernel // 2, bias=False
        )
        self.location_map = nn.Linear(filters, hidden, bias=False)
        self.offset = nn.Parameter(torch.zeros(hidden))

    def score(self, query, prepared, previous=None):
        b, s, _ = prepared.shape
        if query.shape[1] != 1:
            raise ValueError(
                "location-sensitive scores need one query at a time (each alignment "
                f"enters the next), got {query.shape[1]} queries; call the module, "
                "which walks them"
            )
        if previous is None:  # nothing has been read yet
            previous = prepared.new_zeros(b, s)
        if previous.shape != (b, s):
            raise ValueError(
                f"previous must be an alignment of shape {(b, s)}, "
                f"got {tuple(previous.shape)}"
            )
        where = self.convolution(previous[:, None, :]).transpose(1, 2)  # (b, s, f)
        sums = self.query_map(query) + prepared + self.location_map(where) + self.offset
        return self.direction(torch.tanh(sums)).transpose(1, 2)  # (b, 1, s)

    def forward(self, query, keys, values=None, mask=None, previous=None):
        values = keys if values is None else values
        self._require_fit(query, keys, values)
        prepared = self.prepare(keys)
        if mask is not None:
            shape = (query.shape[0], query.shape[1], keys.shape[1])
            require_mask(mask, shape)
            mask = mask.expand(shape)
        contexts, alignments = [], []
        for i in range(query.shape[1]):
            row = None if mask is None else mask[:, i : i + 1]
            context, weights = self.attend(
                query[:, i : i + 1], prepared, values, row, previous
            )
            previous = weights[:, 0]
            contexts.append(context)
            alignments.append(weights)
        return torch.cat(contexts, dim=1), torch.cat(alignments, dim=1)


def _require_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number above 0, got {size!r}")


def _require_dropout(dropout: float) -> None:
    number = isinstance(dropout, Real) and not isinstance(dropout, bool)
    if not number or not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout must lie in [0, 1), got {dropout!r}")
