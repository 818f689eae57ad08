"""A Transformer that classifies: an encoder, a vector for each text, and its logits.

Letters: b batch, t length, d model width, c classes (``book/notation.md``).
"""

from dataclasses import KW_ONLY, dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.masks import padding_mask
from annotated.positions import LearnedPositionalEmbedding
from annotated.transformer import BlockConfig, Encoder

POOLINGS = ("mean", "first", "max", "attention")


@dataclass(frozen=True)
class ClassifierConfig(BlockConfig):
    """Everything that a classifier is made from; the defaults are a small one.

    Raises:
        TypeError: if a size is no integer, or ``dropout`` no number.
        ValueError: if a number is out of range, ``heads`` does not divide ``d_model``,
            or a choice is unknown.
    """

    vocab_size: int  #: number of tokens that there are
    classes: int  #: number of logits
    d_model: int = 64  #: width of the residual stream
    heads: int = 4  #: heads of each attention; they must divide ``d_model``
    layers: int = 1  #: layers of the encoder
    d_ff: int = 128  #: inner width of the feed-forward networks
    dropout: float = 0.0  #: probability of dropout, as in the Transformer
    norm: str = "pre"  #: "pre" or "post", as in the Transformer
    max_len: int = 256  #: number of positions
    pad: int = 0  #: the id of padding
    _: KW_ONLY
    pooling: str = "mean"  #: how a text becomes one vector, one of ``POOLINGS``
    positions: bool = True  #: whether a token knows where it stands

    def __post_init__(self):
        super().__post_init__()
        sizes = "vocab_size classes d_model heads layers d_ff max_len".split()
        require.count(**{name: getattr(self, name) for name in sizes})
        require.count(0, self.vocab_size - 1, pad=self.pad)
        require.divides(heads=self.heads, d_model=self.d_model)
        require.probability(dropout=self.dropout)
        require.choice(("pre", "post"), norm=self.norm)
        require.choice(POOLINGS, pooling=self.pooling)


@require.shapes
def pool(
    states: Float[Tensor, "b t d"],
    real: Bool[Tensor, "b t"],
    pooling: str = "mean",
) -> Float[Tensor, "b d"]:
    """Return one vector for each text; padding has no say in it.

    Args:
        states: vectors of tokens.
        real: True = a token, False = padding. A text without tokens gives zeros.
        pooling: ``"mean"`` or ``"max"`` over the tokens, or the ``"first"`` of them.
    """
    require.choice(POOLINGS[:3], pooling=pooling)
    if pooling == "first":
        first = real & (real.cumsum(dim=1) == 1)
        return states.masked_fill(~first[..., None], 0.0).sum(dim=1)
    states = states.masked_fill(~real[..., None], 0.0)
    if pooling == "mean" or not states.shape[1]:
        return states.sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1)
    some = real.any(dim=1)[:, None]  # of nothing there is no largest
    lowest = torch.finfo(states.dtype).min
    largest = states.masked_fill(~real[..., None], lowest).amax(dim=1)
    return torch.where(some, largest, 0.0)


class AttentionPooling(nn.Module):
    """A mean of tokens, weighed by how well each answers one learned question.

    Yang et al. (2016), equations 5 to 7, without their hidden layer. Vectors are
    ``d_model`` wide.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.question = nn.Linear(d_model, 1, bias=False)

    @require.shapes
    def weights(
        self, states: Float[Tensor, "b t d"], real: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b t"]:
        """Return what each token weighs; ``states`` and ``real`` as in :func:`pool`."""
        scores = self.question(states).squeeze(-1).masked_fill(~real, -torch.inf)
        return scores.softmax(dim=1).nan_to_num()

    def forward(
        self, states: Float[Tensor, "b t d"], real: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b d"]:
        """Return one vector a text; ``states`` and ``real`` as in :func:`pool`."""
        weights = self.weights(states, real)
        return (weights[:, None] @ states).squeeze(1)


class TransformerClassifier(nn.Module):
    """The encoder, pooled to one vector a text, and a linear map to logits.

    Several classes of which one holds: cross-entropy of the logits. Several labels of
    which any may hold: binary cross-entropy of each, with logits. From chapter 10.

    Args:
        config: its sizes, and how it pools.
    """

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        c = self.config = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad)
        places = LearnedPositionalEmbedding(c.max_len, c.d_model)
        self.positions = places if c.positions else None
        self.dropout = nn.Dropout(c.dropout)
        self.encoder = Encoder(c)
        attention = c.pooling == "attention"
        self.pooling = AttentionPooling(c.d_model) if attention else None
        self.output = nn.Linear(c.d_model, c.classes)

    @require.shapes
    def states(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        """Return what the encoder makes of each token.

        Args:
            tokens: ids, padded with ``pad``.

        Raises:
            ValueError: if ``tokens`` are longer than ``max_len``, or an id is outside
                the vocabulary (looked at on the CPU alone).
        """
        c = self.config
        require.ids(c.vocab_size, tokens=tokens)
        require.at_most(length=tokens.shape[1], max_len=c.max_len)
        x = self.embedding(tokens)
        x = x if self.positions is None else self.positions(x)
        return self.encoder(self.dropout(x), padding_mask(tokens, c.pad))

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b c"]:
        """Return logits for each text; ``tokens`` as :meth:`states`."""
        real, states = tokens != self.config.pad, self.states(tokens)
        if self.pooling is not None:
            return self.output(self.pooling(states, real))
        return self.output(pool(states, real, self.config.pooling))
