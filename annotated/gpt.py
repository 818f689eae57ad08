"""GPT: a decoder alone, which predicts what comes next at every position.

Letters: b batch, t length, d model width, v vocabulary (``book/notation.md``).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.positions import LearnedPositionalEmbedding, RotaryMultiHeadAttention
from annotated.transformer import BlockConfig, Encoder


@dataclass(frozen=True)
class GPTConfig(BlockConfig):
    """Everything that a GPT is made from; the defaults are a small one for characters.

    Radford et al. (2018), section 4.1, for the parts; Radford et al. (2019), section
    2.3, for the order of the norms.

    Raises:
        TypeError: if a size is no integer, or ``dropout`` no number.
        ValueError: if a number is out of range, ``heads`` does not divide ``d_model``,
            or a choice is unknown.
    """

    vocab_size: int  #: number of tokens that there are
    d_model: int = 64  #: width of the residual stream
    heads: int = 4  #: heads of each attention; they must divide ``d_model``
    layers: int = 2  #: number of blocks
    d_ff: int = 256  #: inner width of the feed-forward networks
    #: probability of dropout, in the sums of embeddings and positions, attention
    #: weights, feed-forward networks, and what each sublayer adds
    dropout: float = 0.0
    max_len: int = 128  #: number of positions, which is the context
    _: KW_ONLY
    #: "learned" adds a vector for each position, "rotary" turns queries and keys
    positions: str = "learned"
    rotary_base: float = 10000.0  #: the larger, the slower the last pairs turn
    kv_heads: int | None = None  #: heads of keys and values; as many if not given
    tied: bool = True  #: whether the output is the embedding once more
    norm: ClassVar[str] = "pre"  #: every sublayer reads a normalised stream

    def __post_init__(self):
        super().__post_init__()
        sizes = "vocab_size d_model heads layers d_ff max_len".split()
        require.count(**{name: getattr(self, name) for name in sizes})
        require.divides(heads=self.heads, d_model=self.d_model)
        require.probability(dropout=self.dropout)
        require.choice(("learned", "rotary"), positions=self.positions)
        require.positive(rotary_base=self.rotary_base)


class GPT(nn.Module):
    """Embeddings, blocks under a causal mask, and the embeddings again as the output.

    Radford et al. (2018, 2019). A block is the encoder layer of chapter 06: what makes
    it a decoder's is that no position sees a later one. ``config`` holds widths, heads
    and the rest; ``attention`` makes another attention for each block, causal too. The
    output is the embedding once more (Press and Wolf, 2017), drawn with deviation
    ``d^−½``, so that logits begin with deviation 1; matrices of blocks are Glorot's.
    """

    def __init__(
        self, config: GPTConfig, attention: Callable[[], nn.Module] | None = None
    ):
        super().__init__()
        c = self.config = config
        kind, options = MultiHeadAttention, {"causal": True, "kv_heads": c.kv_heads}
        if c.positions == "rotary":
            kind, options["base"] = RotaryMultiHeadAttention, c.rotary_base
        plain = partial(kind, c.d_model, c.heads, c.dropout, c.bias, **options)
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.positions = None
        if c.positions == "learned":
            self.positions = LearnedPositionalEmbedding(c.max_len, c.d_model)
        self.dropout = nn.Dropout(c.dropout)
        self.blocks = Encoder(c, attention or plain)
        self.output = nn.Linear(c.d_model, c.vocab_size, bias=False)
        if c.tied:
            self.output.weight = self.embedding.weight
        else:
            nn.init.normal_(self.output.weight, std=c.d_model**-0.5)
        nn.init.normal_(self.embedding.weight, std=c.d_model**-0.5)
        for parameter in self.blocks.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    @require.shapes
    def embed(
        self,
        tokens: Int[Tensor, "b t"],
        start: int = 0,
        positions: Int[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return what enters the first block: embeddings and positions.

        Args:
            tokens: ids.
            start: position of the first of them.
            positions: as for :meth:`forward`.

        Raises:
            ValueError: if a position lies at ``max_len`` or beyond, or an id is outside
                the vocabulary (looked at on the CPU alone).
        """
        require.ids(self.config.vocab_size, tokens=tokens)
        length, x = start + tokens.shape[1], self.embedding(tokens)
        require.at_most(length=length, max_len=self.config.max_len)
        if self.positions is not None:
            x = self.positions(x, start, positions)
        return self.dropout(x)

    @require.shapes
    def forward(
        self,
        tokens: Int[Tensor, "b t"],
        mask: Bool[Tensor, "..."] | None = None,
        positions: Int[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the token that comes next, at each position.

        Texts of several lengths are padded on either side, with the
        :func:`~annotated.masks.padding_mask`; several in a row have a
        :func:`~annotated.masks.document_mask`. With that mask and its
        :func:`~annotated.masks.count_positions`, each text is read as if alone.

        Args:
            tokens: ids, at most ``max_len`` in a row.
            mask: broadcastable to ``(b, h, t, t)``; True = may attend. Later tokens
                are hidden besides.
            positions: the position of each token in its text; 0 to t − 1 if not given.
                Rotary attention needs none: it reads distances, and these are the same
                wherever a text begins.

        Raises:
            ValueError: as :meth:`embed` does.
        """
        return self.output(self.blocks(self.embed(tokens, 0, positions), mask))


def next_token_loss(
    model: nn.Module, batch: tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of every next token, in nats per token.

    ``model`` reads the tokens of a ``batch``, ``(b, t)``, and gives logits
    ``(b, t, v)`` of its targets: the same tokens one step later, or −100 where none is
    asked for.
    """
    tokens, targets = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


# for `fit` and `evaluate`: how many tokens the mean is taken over
next_token_loss.batch_weight = lambda batch: (batch[1] != -100).sum().item()
