"""Attention for recurrent decoders: three ways to score a query against the keys.

Letters: b batch, t query length, s key length, q width of a query, k width of a key,
v width of a value (``book/notation.md``). Masks are boolean, True = may attend, and
have no axis for heads.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from annotated import require
from annotated.attention import masked_softmax


class ScoredAttention(nn.Module):
    """What all attention of chapter 01 shares; a variant overrides how it scores.

    Keys stay the same while a decoder writes its output, so what depends on them alone
    is computed once, by :meth:`prepare`; :meth:`score` is called at every step.
    """

    query_size: int | None = None  # None: any width
    key_size: int | None = None

    def prepare(self, keys: Float[Tensor, "b s k"]) -> Float[Tensor, "b s _"]:
        """Return what :meth:`score` needs of the ``keys``, ``(b, s, ·)``."""
        return keys

    def score(
        self,
        query: Float[Tensor, "b t q"],
        prepared: Float[Tensor, "b s _"],
        previous: Float[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t s"]:
        """Return the scores ``e[b, t, s]`` of each query with each key.

        Args:
            query: ``(b, t, q)``.
            prepared: what ``prepare`` gave, ``(b, s, ·)``.
            previous: alignment ``(b, s)`` of the step before. Only location-sensitive
                attention reads it, and takes one query at a time.
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
            prepared: what ``prepare`` gave.
            values: ``(b, s, v)``.
            mask: boolean, broadcastable to ``(b, t, s)``; True = may attend.
            previous: alignment ``(b, s)`` of the step before.

        Returns:
            Contexts ``(b, t, v)`` and alignments ``(b, t, s)``.
        """
        weights = masked_softmax(self.score(query, prepared, previous), mask)
        return weights @ values, weights

    @require.shapes(q="query_size", k="key_size")
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
            previous: alignment ``(b, s)`` before the first query.

        Returns:
            Contexts ``(b, t, v)`` and alignments ``(b, t, s)``, whose rows sum to 1
            (to 0 where the mask allows no key).
        """
        values = keys if values is None else values
        return self.attend(query, self.prepare(keys), values, mask, previous)


class AdditiveAttention(ScoredAttention):
    """Additive attention, ``e = wᵀ tanh(W_q q + W_k k)``.

    Bahdanau, Cho and Bengio (2015), appendix A.1.2. W_q is ``query_map``, W_k is
    ``key_map`` and w is ``direction``.

    Args:
        query_size: width of a query.
        key_size: width of a key.
        hidden: width in which query and key are added.
    """

    def __init__(self, query_size: int, key_size: int, hidden: int):
        super().__init__()
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
    Nothing is scaled here: chapter 02 shows why one should.

    Args:
        query_size: width of a query; together with ``key_size`` it gives the general
            score. Without the two, query and key must have the same width.
        key_size: width of a key.

    Raises:
        ValueError: if only one of the two is given.
    """

    def __init__(self, query_size: int | None = None, key_size: int | None = None):
        super().__init__()
        require.that(
            (query_size is None) == (key_size is None),
            "query_size and key_size go together: give both for the general score or "
            f"neither for the dot score, got {query_size=}, {key_size=}",
        )
        self.query_size, self.key_size = query_size, key_size
        self.key_map = nn.Identity()
        if key_size is not None:
            self.key_map = nn.Linear(key_size, query_size, bias=False)

    def prepare(self, keys):
        return self.key_map(keys)

    @require.shapes
    def score(
        self,
        query: Float[Tensor, "b t k"],
        prepared: Float[Tensor, "b s k"],
        previous: Float[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t s"]:
        return query @ prepared.transpose(1, 2)


class LocationSensitiveAttention(AdditiveAttention):
    """Additive attention that also sees where it looked one step before.

    ``e = wᵀ tanh(W_q q + W_k k + L f + β)`` with ``f = F * α``, a convolution over the
    previous alignment α. Chorowski et al. (2015), equations 8 and 9, where L is
    ``location_map``, F is ``convolution`` and β is ``offset``.

    Each alignment enters the next one, so queries are taken one by one.

    Args:
        query_size: width of a query.
        key_size: width of a key.
        hidden: width in which query, key and location are added.
        filters: number of convolution filters.
        kernel: width of a filter in source positions, odd, so that it has a centre.

    Raises:
        ValueError: if ``kernel`` is even.
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
        require.that(kernel % 2, f"kernel must be odd, to have a centre, got {kernel}")
        padding = kernel // 2
        self.convolution = nn.Conv1d(1, filters, kernel, padding=padding, bias=False)
        self.location_map = nn.Linear(filters, hidden, bias=False)
        self.offset = nn.Parameter(torch.zeros(hidden))

    @require.shapes
    def score(
        self,
        query: Float[Tensor, "b 1 q"],
        prepared: Float[Tensor, "b s _"],
        previous: Float[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b 1 s"]:
        if previous is None:  # nothing has been read yet
            previous = prepared.new_zeros(prepared.shape[:2])
        location = self.convolution(previous[:, None, :]).transpose(1, 2)  # (b, s, f)
        sums = self.query_map(query) + prepared
        sums = sums + self.location_map(location) + self.offset
        return self.direction(torch.tanh(sums)).transpose(1, 2)  # (b, 1, s)

    def attend(self, query, prepared, values, mask=None, previous=None):
        b, t, s = len(query), query.shape[1], prepared.shape[1]
        require.mask(mask, (b, t, s))
        contexts, alignments = [], []
        for i in range(t):
            row = None if mask is None else mask.expand(b, t, s)[:, i : i + 1]
            one = query[:, i : i + 1]
            context, weights = super().attend(one, prepared, values, row, previous)
            previous = weights[:, 0]
            contexts.append(context)
            alignments.append(weights)
        return torch.cat(contexts, dim=1), torch.cat(alignments, dim=1)
