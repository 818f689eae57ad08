"""The Transformer: residual streams that attention and feed-forward networks write to.

Letters: b batch, t target length, s source length, d model width, v vocabulary
(``book/notation.md``). Masks are boolean, True = may attend; the model makes its own
from token ids.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.masks import causal_mask, padding_mask
from annotated.positions import PositionalEncoding

#: what stands between the two maps of a feed-forward network; with "swiglu" it is a
#: gate (Shazeer, 2020), and "gelu_tanh" is GPT-2's approximation of "gelu"
ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swiglu": F.silu,
}
NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


@dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """What the blocks of every model are made of, beside their sizes.

    The defaults are those of Vaswani et al. (2017).

    Raises:
        TypeError: if ``norm_epsilon`` is no number.
        ValueError: if an activation or norm is unknown, or ``norm_epsilon`` is not
            above 0.
    """

    activation: str = "relu"  #: of feed-forward networks, one of ``ACTIVATIONS``
    norm_kind: str = "layer"  #: "layer", or "rms" (Zhang and Sennrich, 2019)
    norm_epsilon: float = 1e-5  #: what norms add to a variance
    bias: bool = True  #: whether the maps of attention and networks have biases

    def __post_init__(self):
        require.choice(ACTIVATIONS, activation=self.activation)
        require.choice(NORMS, norm_kind=self.norm_kind)
        require.positive(norm_epsilon=self.norm_epsilon)


@dataclass(frozen=True)
class TransformerConfig(BlockConfig):
    """Everything that a Transformer is made from; the defaults are the base model.

    Vaswani et al. (2017), table 3.

    Raises:
        TypeError: if a size is no integer, or ``dropout`` no number.
        ValueError: if a number is out of range, ``heads`` does not divide ``d_model``,
            ``norm`` is unknown, or ``tied`` meets vocabularies of two sizes.
    """

    source_vocab: int  #: number of symbols of the source
    target_vocab: int  #: number of symbols of the target
    d_model: int = 512  #: width of the residual stream, even
    heads: int = 8  #: heads of each attention; they must divide ``d_model``
    layers: int = 6  #: layers of the encoder, and as many of the decoder
    d_ff: int = 2048  #: inner width of the feed-forward networks
    #: probability of dropout, in the sums of embeddings and positions, attention
    #: weights, feed-forward networks, and what each sublayer adds
    dropout: float = 0.1
    #: "pre" normalises what a sublayer reads, and the end of each stack; "post"
    #: normalises each sum, as the paper has it, and nothing at the end
    norm: str = "post"
    max_len: int = 5000  #: number of positions
    #: one matrix embeds source and target and gives the logits (section 3.4); both
    #: vocabularies must then be one
    tied: bool = False
    pad: int = 0  #: the id of padding

    def __post_init__(self):
        super().__post_init__()
        sizes = "source_vocab target_vocab d_model heads layers d_ff max_len".split()
        require.count(**{name: getattr(self, name) for name in sizes})
        require.even(d_model=self.d_model)
        require.divides(heads=self.heads, d_model=self.d_model)
        require.probability(dropout=self.dropout)
        require.choice(("pre", "post"), norm=self.norm)
        require.count(0, min(self.source_vocab, self.target_vocab) - 1, pad=self.pad)
        require.that(
            not self.tied or self.source_vocab == self.target_vocab,
            f"tied needs source_vocab == target_vocab, got {self}",
        )


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them, at each position by itself.

    Vaswani et al. (2017), equation 2: ``max(0, x W_1 + b_1) W_2 + b_2``. Vectors are
    ``d_model`` wide, and ``d_ff`` wide between the maps, where ``dropout`` applies.

    Args:
        d_model: width of the vectors.
        d_ff: width between the maps.
        dropout: probability of dropping a number between the maps in training.
        activation: one of ``ACTIVATIONS``; with "swiglu" a third map, ``gate``, has the
            activation, and multiplies the first (Shazeer, 2020, equation 6).
        bias: whether the maps have a bias.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
    ):
        super().__init__()
        require.choice(ACTIVATIONS, activation=activation)
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)
        gated = activation == "swiglu"
        self.gate = nn.Linear(d_model, d_ff, bias=bias) if gated else None
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Return ``x``, ``(…, d)``, with each vector mapped."""
        if self.gate is None:
            inner = self.activation(self.inner(x))
        else:
            inner = self.activation(self.gate(x)) * self.inner(x)
        return self.outer(self.dropout(inner))


class Residual(nn.Module):
    """Adds what a sublayer gives to what it was given, with a layer normalisation.

    Vaswani et al. (2017), section 3.1, normalise the sum ("post"): ``norm(x + f(x))``.
    Xiong et al. (2020) normalise what the sublayer reads ("pre"): ``x + f(norm(x))``.

    Args:
        d_model: width of the stream.
        dropout: probability of dropping a number of what is added, in training.
        norm: "post" or "pre".
        kind: of the norm, "layer" or "rms".
        epsilon: of the norm.

    Raises:
        ValueError: if ``norm`` or ``kind`` is unknown.
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        norm: str = "post",
        kind: str = "layer",
        epsilon: float = 1e-5,
    ):
        super().__init__()
        require.choice(("pre", "post"), norm=norm)
        require.choice(NORMS, kind=kind)
        self.norm = NORMS[kind](d_model, eps=epsilon)
        self.dropout = nn.Dropout(dropout)
        self.norm_order = norm

    def forward(
        self, x: Float[Tensor, "b t d"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "b t d"]:
        """Return the stream ``x``, ``(b, t, d)``, with what ``sublayer`` adds to it."""
        if self.norm_order == "pre":
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def last_norm(config: TransformerConfig) -> nn.Module:
    """Return the norm after the last layer of a stack, by its ``config``.

    The stream of a pre-norm stack is a plain sum, which grows layer by layer; that of a
    post-norm stack is normalised already.
    """
    if config.norm == "post":
        return nn.Identity()
    return NORMS[config.norm_kind](config.d_model, eps=config.norm_epsilon)


def _residuals(config: TransformerConfig, count: int) -> nn.ModuleList:
    c = config
    options = c.dropout, c.norm, c.norm_kind, c.norm_epsilon
    return nn.ModuleList(Residual(c.d_model, *options) for _ in range(count))


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network, each in a residual.

    Vaswani et al. (2017), section 3.1. ``config`` holds widths, heads and the rest;
    ``attention`` makes another one than multi-head attention of these.
    """

    def __init__(
        self,
        config: TransformerConfig,
        attention: Callable[[], nn.Module] | None = None,
    ):
        super().__init__()
        c = config
        plain = partial(MultiHeadAttention, c.d_model, c.heads, c.dropout, c.bias)
        self.attention = (attention or plain)()
        self.feed_forward = FeedForward(
            c.d_model, c.d_ff, c.dropout, c.activation, c.bias
        )
        self.residuals = _residuals(c, 2)

    def forward(
        self, x: Float[Tensor, "b s d"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "b s d"]:
        """Return ``x`` after its positions looked at each other.

        ``mask`` is broadcastable to ``(b, h, s, s)``; True = may attend.
        """
        attend, map_each = self.residuals
        x = attend(x, lambda x: self.attention(x, mask=mask))
        return map_each(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, feed-forward network.

    Vaswani et al. (2017), section 3.1. ``config`` holds widths, heads and the rest;
    ``attention`` and ``cross_attention`` make others than multi-head attention.
    """

    def __init__(
        self,
        config: TransformerConfig,
        attention: Callable[[], nn.Module] | None = None,
        cross_attention: Callable[[], nn.Module] | None = None,
    ):
        super().__init__()
        c = config
        plain = partial(MultiHeadAttention, c.d_model, c.heads, c.dropout, c.bias)
        self.attention = (attention or plain)()
        self.cross_attention = (cross_attention or plain)()
        self.feed_forward = FeedForward(
            c.d_model, c.d_ff, c.dropout, c.activation, c.bias
        )
        self.residuals = _residuals(c, 3)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        memory: Float[Tensor, "b s d"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return ``x`` after its positions looked at each other and at ``memory``.

        ``mask`` is that of the target, broadcastable to ``(b, h, t, t)``, and
        ``memory_mask`` that of the source, broadcastable to ``(b, h, t, s)``.
        """
        attend, look_up, map_each = self.residuals
        x = attend(x, lambda x: self.attention(x, mask=mask))
        x = look_up(x, lambda x: self.cross_attention(x, memory, mask=memory_mask))
        return map_each(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers, made from a ``config``; pre-norm normalises its end.

    Vaswani et al. (2017), section 3.1; Xiong et al. (2020) for the last normalisation.
    ``attention`` is as in :class:`EncoderLayer`.
    """

    def __init__(
        self,
        config: TransformerConfig,
        attention: Callable[[], nn.Module] | None = None,
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(config, attention) for _ in range(config.layers)
        )
        self.norm = last_norm(config)

    def forward(
        self, x: Float[Tensor, "b s d"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "b s d"]:
        """Return ``x`` after all layers; ``mask`` as in :class:`EncoderLayer`."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers, made from a ``config``; pre-norm normalises its end.

    Vaswani et al. (2017), section 3.1; Xiong et al. (2020) for the last normalisation.
    ``attention`` and ``cross_attention`` are as in :class:`DecoderLayer`.
    """

    def __init__(
        self,
        config: TransformerConfig,
        attention: Callable[[], nn.Module] | None = None,
        cross_attention: Callable[[], nn.Module] | None = None,
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(config, attention, cross_attention)
            for _ in range(config.layers)
        )
        self.norm = last_norm(config)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        memory: Float[Tensor, "b s d"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return ``x`` after all layers.

        ``memory``, ``mask`` and ``memory_mask`` are as in :class:`DecoderLayer`.
        """
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder with embeddings, positions and an output, by a ``config``.

    Vaswani et al. (2017), section 3. Embeddings are drawn with deviation ``d^−½`` and
    multiplied by ``√d``, so that they enter the stream with deviation 1; other
    matrices are Glorot's. The output layer has no bias, so that it can be tied.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = self.config = config
        self.source_embedding = nn.Embedding(c.source_vocab, c.d_model)
        self.target_embedding = (
            self.source_embedding if c.tied else nn.Embedding(c.target_vocab, c.d_model)
        )
        self.positions = PositionalEncoding(c.d_model, c.max_len, c.dropout)
        self.encoder = Encoder(c)
        self.decoder = Decoder(c)
        self.output = nn.Linear(c.d_model, c.target_vocab, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table.weight, std=c.d_model**-0.5)
        if c.tied:
            self.output.weight = self.source_embedding.weight

    @require.shapes
    def encode(
        self, source: Int[Tensor, "b s"]
    ) -> tuple[Float[Tensor, "b s d"], Bool[Tensor, "b 1 1 s"]]:
        """Return the memory of a batch of sources, and its mask.

        Args:
            source: token ids, padded with ``pad``.

        Raises:
            ValueError: if ``source`` is longer than ``max_len``, or holds an id outside
                the vocabulary (looked at on the CPU alone).
        """
        require.ids(self.config.source_vocab, source=source)
        x = self.source_embedding(source) * self.config.d_model**0.5
        mask = padding_mask(source, self.config.pad)
        return self.encoder(self.positions(x), mask), mask

    @require.shapes
    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s d"],
        memory_mask: Bool[Tensor, "b 1 1 s"] | None = None,
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the symbol that comes next, at each position.

        Args:
            target: token ids from the start symbol on.
            memory: what :meth:`encode` gave.
            memory_mask: the mask that came with it.

        Raises:
            ValueError: if ``target`` is longer than ``max_len``, or holds an id outside
                the vocabulary (looked at on the CPU alone).
        """
        require.ids(self.config.target_vocab, target=target)
        x = self.target_embedding(target) * self.config.d_model**0.5
        mask = padding_mask(target, self.config.pad)
        mask = mask & causal_mask(target.shape[1], device=target.device)
        x = self.decoder(self.positions(x), memory, mask, memory_mask)
        return self.output(x)

    @require.shapes
    def forward(
        self, source: Int[Tensor, "b s"], target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the next symbols: ``source`` read, then ``target``.

        A target is given from its start symbol on, without its last symbol.
        """
        return self.decode(target, *self.encode(source))
