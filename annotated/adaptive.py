"""Adaptive embedding and softmax: frequent words are wide, rare ones narrow.

Ids are sorted by frequency: 0 is the most frequent word. Cutoffs divide them into
clusters; the vectors of cluster i are ``d_embed / div_value^i`` wide. Letters: b batch,
t length, d model width, v vocabulary (``book/notation.md``).
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require


class _Clusters(nn.Module):
    """What embedding and softmax share: the bounds of the clusters, and their tables.

    Args:
        vocab_size: number v of words.
        d_model: width d of the model.
        cutoffs: the first id of each cluster after the first, ascending; without any,
            all words form one cluster.
        div_value: how many times narrower each cluster is than the one before it.
        d_embed: width of the first cluster; ``d_model`` if not given.

    Raises:
        ValueError: if cutoffs don't ascend from 1 to below ``vocab_size``, or a cluster
            would be less than 1 wide.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        cutoffs: Sequence[int] = (),
        div_value: int = 4,
        d_embed: int | None = None,
    ):
        super().__init__()
        d_embed = d_model if d_embed is None else d_embed
        require.count(vocab_size=vocab_size, d_model=d_model, div_value=div_value)
        bounds = [0, *cutoffs, vocab_size]
        require.that(
            all(start < end for start, end in pairwise(bounds)),
            f"cutoffs must ascend from 1 to below vocab_size={vocab_size}, "
            f"got {tuple(cutoffs)}",
        )
        require.count(div_value ** len(cutoffs), d_embed=d_embed)
        self.vocab_size, self.d_model, self.bounds = vocab_size, d_model, bounds
        self.widths = [d_embed // div_value**i for i in range(len(cutoffs) + 1)]
        self.tables = nn.ParameterList(
            torch.randn(end - start, width) * d_model**-0.5
            for (start, end), width in zip(pairwise(bounds), self.widths, strict=True)
        )

    def _map(self, width: int, inputs: int, outputs: int) -> nn.Module:
        if width == self.d_model:
            return nn.Identity()
        narrow = nn.Linear(inputs, outputs, bias=False)
        nn.init.normal_(narrow.weight, std=width**-0.5)
        return narrow


class AdaptiveEmbedding(_Clusters):
    """Embeds frequent words in wide vectors and rare words in narrow ones.

    Baevski & Auli (2019), section 3; Dai et al. (2019), section 4.1. Each cluster has a
    table of its own, and a map up to the width of the model where it is narrower.
    Vectors are multiplied by ``√d``, as in :class:`~annotated.transformer.Transformer`.

    Args:
        vocab_size: number v of words, the most frequent first.
        d_model: width d of the model.
        cutoffs: the first id of each cluster after the first, ascending; without any,
            this is an ordinary embedding.
        div_value: how many times narrower each cluster is than the one before it.
        d_embed: width of the first cluster; ``d_model`` if not given.

    Raises:
        ValueError: if cutoffs don't ascend from 1 to below ``vocab_size``, or a cluster
            would be less than 1 wide.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        cutoffs: Sequence[int] = (),
        div_value: int = 4,
        d_embed: int | None = None,
    ):
        super().__init__(vocab_size, d_model, cutoffs, div_value, d_embed)
        self.maps = nn.ModuleList(self._map(w, w, d_model) for w in self.widths)

    @require.shapes
    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        """Return the vectors of ``tokens``, ids ``(b, t)``, as ``(b, t, d)``.

        Raises:
            ValueError: if an id is outside the vocabulary (checked only on the CPU).
        """
        require.ids(self.vocab_size, tokens=tokens)
        x = self.tables[0].new_zeros(*tokens.shape, self.d_model)
        for start, table, widen in zip(
            self.bounds, self.tables, self.maps, strict=False
        ):
            inside = (tokens >= start) & (tokens < start + len(table))
            x[inside] = widen(table[tokens[inside] - start]).to(x.dtype)
        return x * self.d_model**0.5


class AdaptiveSoftmax(_Clusters):
    """A softmax in two steps: a frequent word or a cluster, then the word in it.

    Grave et al. (2017), section 4: ``p(w) = p(cluster) · p(w | cluster)``. Only the
    few positions whose word is rare pay for the many rare words. There are no biases,
    as in ``nn.AdaptiveLogSoftmaxWithLoss(head_bias=False)``.

    Arguments as :class:`AdaptiveEmbedding`.

    Raises:
        ValueError: if cutoffs don't ascend from 1 to below ``vocab_size``, or a cluster
            would be less than 1 wide.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        cutoffs: Sequence[int] = (),
        div_value: int = 4,
        d_embed: int | None = None,
    ):
        super().__init__(vocab_size, d_model, cutoffs, div_value, d_embed)
        self.maps = nn.ModuleList(self._map(w, d_model, w) for w in self.widths)
        # one row for each cluster after the first, beside the frequent words
        rows = torch.randn(len(cutoffs), self.widths[0]) * d_model**-0.5
        self.clusters = nn.Parameter(rows)

    @require.shapes(d="d_model")
    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        """Return the log-probabilities of all words, ``(…, v)``.

        They are computed in single precision at least, as are losses.

        Args:
            x: what the model makes of each position, ``(…, d)``.
        """
        sizes = len(self.tables[0]), len(self.clusters)
        frequent, clusters = self._head(x).split(sizes, dim=-1)
        rare = [
            clusters[..., i - 1, None] + self._tail(i, x)
            for i in range(1, len(self.tables))
        ]
        return torch.cat([frequent, *rare], dim=-1)

    @require.shapes(d="d_model")
    def loss(
        self, x: Float[Tensor, "b t d"], target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t"]:
        """Return the negative log-probability of each target, in nats.

        Args:
            x: what the model makes of each position, ``(b, t, d)``.
            target: ids, ``(b, t)``.

        Raises:
            ValueError: if an id is outside the vocabulary (checked only on the CPU).
        """
        require.ids(self.vocab_size, target=target)
        starts = torch.tensor(self.bounds[1:-1], device=target.device)
        cluster = (target[..., None] >= starts).sum(dim=-1)  # 0: a frequent word
        entry = torch.where(cluster == 0, target, self.bounds[1] - 1 + cluster)
        log_p = self._head(x).gather(-1, entry[..., None])[..., 0]
        for i in range(1, len(self.tables)):
            inside = cluster == i
            word = target[inside] - self.bounds[i]
            tail = self._tail(i, x[inside]).gather(-1, word[:, None])[:, 0]
            log_p = log_p.index_put((inside,), tail, accumulate=True)
        return -log_p

    def _head(self, x: Tensor) -> Tensor:
        return self._logs(0, x, torch.cat([self.tables[0], self.clusters]))

    def _tail(self, i: int, x: Tensor) -> Tensor:
        return self._logs(i, x, self.tables[i])

    def _logs(self, i: int, x: Tensor, rows: Tensor) -> Tensor:
        logits = F.linear(self.maps[i](x), rows)
        wide = torch.promote_types(logits.dtype, torch.float32)
        return logits.log_softmax(dim=-1, dtype=wide)
