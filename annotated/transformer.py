"""The Transformer: residual streams that attention and feed-forward networks write to.

Letters: b batch, t target length, s source length, d model width, v vocabulary
(``book/notation.md``). Masks are boolean, True = may attend; the model makes its own
from token ids.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import (
    MultiHeadAttention,
    _require_dropout,
    _require_positive,
)
from annotated.masks import _require_whole, causal_mask, padding_mask
from annotated.positions import PositionalEncoding


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that a Transformer is made from; the defaults are the base model.

    Vaswani et al. (2017), table 3.

    Args:
        source_vocab: number of symbols of the source.
        target_vocab: number of symbols of the target.
        d_model: width of the residual stream, even.
        heads: heads of each attention; they must divide ``d_model``.
        layers: layers of the encoder, and as many of the decoder.
        d_ff: inner width of the feed-forward networks.
        dropout: probability of dropout: of the sums of embeddings and positions, of
            attention weights, within feed-forward networks, and of what each sublayer
            adds. 0 means none at all.
        norm: "pre" normalises what a sublayer reads, and the end of each stack;
            "post" normalises each sum, as the paper has it, and nothing at the end.
        max_len: number of positions.
        tied: one matrix embeds source and target and gives the logits (section 3.4);
            both vocabularies must then be one.
        pad: the id of padding.

    Raises:
        ValueError: if a number is out of its range, ``heads`` does not divide
            ``d_model``, ``norm`` is unknown, or ``tied`` asks for one matrix for
            vocabularies of two sizes.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 512
    heads: int = 8
    layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    norm: str = "post"
    max_len: int = 5000
    tied: bool = False
    pad: int = 0

    def __post_init__(self):
        sizes = "source_vocab target_vocab d_model heads layers d_ff max_len".split()
        _require_positive(**{name: getattr(self, name) for name in sizes})
        if self.d_model % 2:
            raise ValueError(f"d_model must be even, got {self.d_model}")
        if self.d_model % self.heads:
            raise ValueError(
                f"heads must divide d_model, got d_model={self.d_model} and "
                f"heads={self.heads}"
            )
        _require_dropout(self.dropout)
        if self.norm not in ("pre", "post"):
            raise ValueError(f'norm must be "pre" or "post", got {self.norm!r}')
        smallest = min(self.source_vocab, self.target_vocab)
        whole = isinstance(self.pad, int) and not isinstance(self.pad, bool)
        if not whole or not 0 <= self.pad < smallest:
            raise ValueError(
                f"pad must be the id of a symbol of both vocabularies, 0 to "
                f"{smallest - 1}, got {self.pad!r}"
            )
        if self.tied and self.source_vocab != self.target_vocab:
            raise ValueError(
                "tied needs one vocabulary for source and target, got "
                f"source_vocab={self.source_vocab} and target_vocab={self.target_vocab}"
            )


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them, at each position by itself.

    Vaswani et al. (2017), equation 2: ``max(0, x W_1 + b_1) W_2 + b_2``.

    Args:
        d_model: width of input and output.
        d_ff: width between the two maps.
        dropout: probability with which an inner number is dropped in training.

    Raises:
        ValueError: if a width is no whole number above 0, or ``dropout`` is not in
            [0, 1).
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        _require_positive(d_model=d_model, d_ff=d_ff)
        _require_dropout(dropout)
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Map each vector.

        Args:
            x: ``(…, d)``.

        Returns:
            ``(…, d)``.
        """
        return self.outer(self.dropout(F.relu(self.inner(x))))


class Residual(nn.Module):
    """What a sublayer finds is added to what it was given, with a layer normalisation.

    Vaswani et al. (2017), section 3.1, normalise the sum ("post"): ``norm(x + f(x))``.
    Xiong et al. (2020) normalise what the sublayer reads ("pre"): ``x + f(norm(x))``.

    Args:
        d_model: width of the stream.
        dropout: probability with which a number that is added is dropped in training.
        norm: "pre" or "post".

    Raises:
        ValueError: if ``d_model`` is no whole number above 0, ``dropout`` is not in
            [0, 1), or ``norm`` is unknown.
    """

    def __init__(self, d_model: int, dropout: float = 0.0, norm: str = "post"):
        super().__init__()
        _require_positive(d_model=d_model)
        _require_dropout(dropout)
        if norm not in ("pre", "post"):
            raise ValueError(f'norm must be "pre" or "post", got {norm!r}')
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.order = norm

    def forward(
        self, x: Float[Tensor, "b t d"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "b t d"]:
        """Add what ``sublayer`` finds.

        Args:
            x: the stream, ``(b, t, d)``.
            sublayer: maps ``(b, t, d)`` to ``(b, t, d)``.

        Returns:
            The stream, ``(b, t, d)``.

        Raises:
            ValueError: if ``sublayer`` gives another shape.
        """
        if self.order == "pre":
            return self._sum(x, sublayer(self.norm(x)))
        return self.norm(self._sum(x, sublayer(x)))

    def _sum(self, x: Tensor, found: Tensor) -> Tensor:
        if found.shape != x.shape:  # it would be broadcast
            raise ValueError(
                f"sublayer must give the shape {tuple(x.shape)} that it was given, "
                f"got {tuple(found.shape)}"
            )
        return x + self.dropout(found)


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network, each in a residual.

    Vaswani et al. (2017), section 3.1.

    Args:
        config: widths, heads, dropout and norm are read from it.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = config
        self.attention = MultiHeadAttention(c.d_model, c.heads, c.dropout)
        self.feed_forward = FeedForward(c.d_model, c.d_ff, c.dropout)
        self.residuals = _residuals(c, 2)

    def forward(
        self, x: Float[Tensor, "b s d"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "b s d"]:
        """Let the positions of the source look at each other.

        Args:
            x: ``(b, s, d)``.
            mask: broadcastable to ``(b, h, s, s)``; True = may attend.

        Returns:
            ``(b, s, d)``.
        """
        attend, map_each = self.residuals
        x = attend(x, lambda x: self.attention(x, mask=mask))
        return map_each(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, feed-forward network.

    Vaswani et al. (2017), section 3.1.

    Args:
        config: widths, heads, dropout and norm are read from it.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = config
        self.attention = MultiHeadAttention(c.d_model, c.heads, c.dropout)
        self.cross_attention = MultiHeadAttention(c.d_model, c.heads, c.dropout)
        self.feed_forward = FeedForward(c.d_model, c.d_ff, c.dropout)
        self.residuals = _residuals(c, 3)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        memory: Float[Tensor, "b s d"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Let the positions of the target look back, and at the source.

        Args:
            x: ``(b, t, d)``.
            memory: what the encoder gave, ``(b, s, d)``.
            mask: of the target, broadcastable to ``(b, h, t, t)``.
            memory_mask: of the source, broadcastable to ``(b, h, t, s)``.

        Returns:
            ``(b, t, d)``.
        """
        attend, look_up, map_each = self.residuals
        x = attend(x, lambda x: self.attention(x, mask=mask))
        x = look_up(x, lambda x: self.cross_attention(x, memory, mask=memory_mask))
        return map_each(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers; pre-norm normalises its end.

    Vaswani et al. (2017), section 3.1; Xiong et al. (2020) for the last normalisation.

    Args:
        config: what the layers are made from.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = _last_norm(config)

    def forward(
        self, x: Float[Tensor, "b s d"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "b s d"]:
        """Run the layers one after the other.

        Args:
            x: embedded source with its positions, ``(b, s, d)``.
            mask: broadcastable to ``(b, h, s, s)``; True = may attend.

        Returns:
            ``(b, s, d)``.
        """
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers; pre-norm normalises its end.

    Vaswani et al. (2017), section 3.1; Xiong et al. (2020) for the last normalisation.

    Args:
        config: what the layers are made from.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = _last_norm(config)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        memory: Float[Tensor, "b s d"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Run the layers one after the other.

        Args:
            x: embedded target with its positions, ``(b, t, d)``.
            memory: what the encoder gave, ``(b, s, d)``.
            mask: of the target, broadcastable to ``(b, h, t, t)``.
            memory_mask: of the source, broadcastable to ``(b, h, t, s)``.

        Returns:
            ``(b, t, d)``.
        """
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder with embeddings, positions and an output layer.

    Vaswani et al. (2017), section 3. Embeddings are drawn with deviation ``d^−½`` and
    multiplied by ``√d``, so that they enter the stream with deviation 1; other
    matrices are Glorot's. The output layer has no bias, so that it can be tied.

    Args:
        config: what it is made from.

    Raises:
        TypeError: if ``config`` is no :class:`TransformerConfig`.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        if not isinstance(config, TransformerConfig):
            kind = type(config).__name__
            raise TypeError(f"config must be a TransformerConfig, got {kind}")
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

    def encode(
        self, source: Int[Tensor, "b s"]
    ) -> tuple[Float[Tensor, "b s d"], Bool[Tensor, "b 1 1 s"]]:
        """Read a batch of sources.

        Args:
            source: token ids, ``(b, s)``, padded with ``pad``.

        Returns:
            The memory ``(b, s, d)``, and its mask ``(b, 1, 1, s)``.

        Raises:
            TypeError: if ``source`` does not hold whole numbers, of 32 or 64 bits.
            ValueError: if it does not have two axes, its length is not between 1 and
                ``max_len``, or it holds an id outside the vocabulary (checked on the
                CPU alone).
        """
        embedded = self._embed("source", source, self.source_embedding)
        mask = padding_mask(source, self.config.pad)
        return self.encoder(embedded, mask), mask

    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s d"],
        memory_mask: Bool[Tensor, "b 1 1 s"] | None = None,
    ) -> Float[Tensor, "b t v"]:
        """Predict, at each position of a target, the symbol that comes next.

        Args:
            target: token ids, ``(b, t)``, from the start symbol on.
            memory: what :meth:`encode` gave, ``(b, s, d)``.
            memory_mask: the mask that came with it.

        Returns:
            Logits ``(b, t, v)``.

        Raises:
            TypeError: if ``target`` does not hold whole numbers, of 32 or 64 bits.
            ValueError: if it does not have two axes, its length is not between 1 and
                ``max_len``, or it holds an id outside the vocabulary (checked on the
                CPU alone).
        """
        embedded = self._embed("target", target, self.target_embedding)
        mask = padding_mask(target, self.config.pad)
        mask = mask & causal_mask(target.shape[1], device=target.device)
        return self.output(self.decoder(embedded, memory, mask, memory_mask))

    def forward(
        self, source: Int[Tensor, "b s"], target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t v"]:
        """Read sources, and predict the next symbol at each position of the targets.

        Args:
            source: token ids, ``(b, s)``.
            target: token ids, ``(b, t)``, from the start symbol on, without the last.

        Returns:
            Logits ``(b, t, v)``.

        Raises:
            TypeError: if ids are no whole numbers.
            ValueError: as :meth:`encode` and :meth:`decode` say.
        """
        return self.decode(target, *self.encode(source))

    def _embed(self, name: str, tokens: Tensor, table: nn.Embedding) -> Tensor:
        size, longest = table.num_embeddings, self.config.max_len
        _require_whole(name, tokens)
        if tokens.dtype not in (torch.int32, torch.int64):
            raise TypeError(
                f"{name} must hold whole numbers of 32 or 64 bits, got {tokens.dtype}"
            )
        if tokens.dim() != 2:
            raise ValueError(
                f"{name} must have the axes (batch, length), "
                f"got shape {tuple(tokens.shape)}"
            )
        if not tokens.shape[1]:
            raise ValueError(f"{name} must hold a symbol at least, got length 0")
        if tokens.shape[1] > longest:
            raise ValueError(
                f"{name} must not be longer than max_len={longest}, "
                f"got length {tokens.shape[1]}"
            )
        # on a GPU the question would make the whole device wait for its answer
        if tokens.device.type == "cpu" and tokens.numel():
            low, high = tokens.min().item(), tokens.max().item()
            if low < 0 or high >= size:
                raise ValueError(
                    f"{name} must hold ids from 0 to {size - 1}, got {low} to {high}"
                )
        return self.positions(table(tokens) * self.config.d_model**0.5)


def _residuals(config: TransformerConfig, count: int) -> nn.ModuleList:
    c = config
    return nn.ModuleList(Residual(c.d_model, c.dropout, c.norm) for _ in range(count))


def _last_norm(config: TransformerConfig) -> nn.Module:
    # the stream of a pre-norm stack is a plain sum, which grows layer by layer
    return nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
