"""BERT: an encoder that guesses hidden words, and whether sentences follow each other.

Letters: b batch, t length, d model width, v vocabulary (``book/notation.md``).
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.masks import padding_mask
from annotated.positions import LearnedPositionalEmbedding
from annotated.transformer import ACTIVATIONS, NORMS, BlockConfig, Encoder


@dataclass(frozen=True)
class BertConfig(BlockConfig):
    """Everything that a BERT is made from; the defaults are the base model.

    Devlin et al. (2019), section 3 and appendix A.2.

    Raises:
        TypeError: if a size is no integer, or ``dropout`` no number.
        ValueError: if a number is out of range, ``heads`` does not divide ``d_model``,
            or a choice is unknown.
    """

    vocab_size: int = 30_522  #: number of tokens that there are
    d_model: int = 768  #: width of the residual stream
    heads: int = 12  #: heads of each attention; they must divide ``d_model``
    layers: int = 12  #: number of layers
    d_ff: int = 3072  #: inner width of the feed-forward networks
    dropout: float = 0.1  #: probability of dropout, as in the Transformer
    max_len: int = 512  #: number of positions
    segments: int = 2  #: a token is of the first sentence or of the second
    pad: int = 0  #: the id of padding
    _: KW_ONLY
    activation: str = "gelu"  #: of feed-forward networks, and before the output
    norm_epsilon: float = 1e-12  #: what norms add to a variance
    #: width of the embeddings, which a map widens to ``d_model``; there is no map if it
    #: is ``None`` (Lan et al., 2020, factorise the embedding so)
    embedding_width: int | None = None
    shared: bool = False  #: one layer, used ``layers`` times (Lan et al., 2020)
    norm: ClassVar[str] = "post"  #: every sum is normalised

    def __post_init__(self):
        super().__post_init__()
        sizes = "vocab_size d_model heads layers d_ff max_len segments".split()
        require.count(**{name: getattr(self, name) for name in sizes})
        if self.embedding_width is not None:
            require.count(embedding_width=self.embedding_width)
        require.count(0, self.vocab_size - 1, pad=self.pad)
        require.divides(heads=self.heads, d_model=self.d_model)
        require.probability(dropout=self.dropout)


class Bert(nn.Module):
    """Chapter 06's encoder, and what asks it: two heads for two tasks of guessing.

    Devlin et al. (2019). Tokens, positions and segments have embeddings, which are
    added, normalised and dropped. ``config`` holds widths, heads and the rest. All
    matrices begin with deviation 0.02. With ``embedding_width`` and ``shared`` it is
    ALBERT (Lan et al., 2020): narrow embeddings, and one layer for all.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        c = self.config = config
        norm = NORMS[c.norm_kind]
        narrow = c.embedding_width is not None
        width = c.embedding_width if narrow else c.d_model
        self.embedding = nn.Embedding(c.vocab_size, width)
        self.positions = LearnedPositionalEmbedding(c.max_len, width)
        self.segments = nn.Embedding(c.segments, width)
        self.norm = norm(width, eps=c.norm_epsilon)
        self.dropout = nn.Dropout(c.dropout)
        self.widen = nn.Linear(width, c.d_model) if narrow else nn.Identity()
        self.encoder = Encoder(c)
        if c.shared:
            layer = self.encoder.layers[0]
            self.encoder.layers = nn.ModuleList(layer for _ in range(c.layers))
        self.pooler = nn.Linear(c.d_model, c.d_model)
        self.transform = nn.Linear(c.d_model, width)
        self.activation = ACTIVATIONS[c.activation]
        self.transform_norm = norm(width, eps=c.norm_epsilon)
        self.output = nn.Linear(width, c.vocab_size)  # tied but for its bias
        self.follows = nn.Linear(c.d_model, 2)
        self.output.weight = self.embedding.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    @require.shapes
    def forward(
        self,
        tokens: Int[Tensor, "b t"],
        segments: Int[Tensor, "b t"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return what the encoder makes of each token.

        Positions count from the first column, as in BERT's libraries, and what speaks
        for a sequence is its first state (:meth:`pool`). So padding stands behind.

        Args:
            tokens: ids, padded with ``pad`` behind.
            segments: the number of each token's sentence, from 0; all 0 if not given.
            mask: broadcastable to ``(b, h, t, t)``; True = may attend. All but padding
                if not given.

        Raises:
            ValueError: if ``tokens`` are longer than ``max_len``, or an id is outside
                its vocabulary, or padding stands in front (looked at on the CPU alone).
        """
        c = self.config
        segments = torch.zeros_like(tokens) if segments is None else segments
        require.ids(c.vocab_size, tokens=tokens)
        require.ids(c.segments, segments=segments)
        require.padding_behind(c.pad, tokens=tokens)
        x = self.positions(self.embedding(tokens) + self.segments(segments))
        mask = padding_mask(tokens, c.pad) if mask is None else mask
        return self.encoder(self.widen(self.dropout(self.norm(x))), mask)

    def guess_tokens(self, states: Float[Tensor, "*batch d"]) -> Float[Tensor, "... v"]:
        """Return logits of the token that stood at each of the ``states``, ``(…, d)``.

        The masked language model of section 3.1; its output is the embedding.
        """
        x = self.transform_norm(self.activation(self.transform(states)))
        return self.output(x)

    def pool(self, states: Float[Tensor, "b t d"]) -> Float[Tensor, "b d"]:
        """Return a vector for each sequence: its first state of ``states``, mapped.

        Raises:
            ValueError: if there is no state.
        """
        require.that(
            states.shape[1],
            f"states must hold a first one, got the shape {tuple(states.shape)}",
        )
        return self.pooler(states[:, 0]).tanh()

    def guess_next(self, states: Float[Tensor, "b t d"]) -> Float[Tensor, "b 2"]:
        """Return two logits for each sequence of ``states``, ``(b, t, d)``.

        The next sentence prediction of section 3.1: number 0 says that the second
        sentence follows the first, number 1 that it is from elsewhere.

        Raises:
            ValueError: as :meth:`pool` does.
        """
        return self.follows(self.pool(states))


# ---- what it is asked ----------------------------------------------------------


@require.shapes
def mask_tokens(
    tokens: Int[Tensor, "b t"],
    vocab_size: int,
    mask: int,
    special: Collection[int],
    rate: float = 0.15,
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1),
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b t"]]:
    """Hide some tokens, and return what is read instead, and which are asked for.

    Devlin et al. (2019), section 3.1. Each token is asked for with a chance of
    ``rate``; what is read in its place is the mask, a random token or itself. The
    answers are ``tokens[asked]``, and only the states ``[asked]`` need logits.
    Libraries that want labels of all places write −100 at the others:
    ``tokens.where(asked, -100)``.

    Args:
        tokens: ids.
        vocab_size: number of tokens that there are.
        mask: the id of ``[MASK]``.
        special: ids that are never asked for and never drawn: padding, ``mask``, …
        rate: chance of each other token to be asked for.
        shares: of the tokens asked for, how many are read as the mask, as a random
            token and as they are; ``(1, 0, 0)`` is masks alone.
        generator: draws on the CPU, whatever the device of ``tokens``.

    Returns:
        What is read, ids like ``tokens``; and which are asked for, booleans ``(b, t)``.

    Raises:
        ValueError: if ``rate`` is not in [0, 1], ``shares`` aren't three that add up
            to 1, ``mask`` is no id of the vocabulary, or no token is left to draw.
    """
    require.that(0 <= rate <= 1, f"rate must be a number in [0, 1], got {rate}")
    require.count(0, vocab_size - 1, mask=mask)
    require.that(
        len(shares) == 3 and min(shares) >= 0 and abs(sum(shares) - 1) < 1e-6,
        f"shares must be three numbers ≥ 0 that add up to 1, got {shares}",
    )
    masked, drawn, _ = shares  # the rest is read as it is
    special = torch.tensor(sorted({mask, *special}), device=tokens.device)
    every = torch.arange(vocab_size, dtype=tokens.dtype, device=tokens.device)
    ordinary = every[~torch.isin(every, special)]
    require.that(len(ordinary), "special must leave a token to draw, got all of them")
    asked = torch.rand(tokens.shape, generator=generator).to(tokens.device) < rate
    asked &= ~torch.isin(tokens, special)
    draw = torch.rand(tokens.shape, generator=generator).to(tokens.device)
    places = torch.randint(len(ordinary), tokens.shape, generator=generator)
    others = ordinary[places.to(tokens.device)]
    read = tokens.where(~(asked & (draw < masked)), mask)
    read = read.where(~(asked & (draw >= masked) & (draw < masked + drawn)), others)
    return read, asked


Sentence = tuple[str, ...]  # its tokens


class SentencePair(NamedTuple):
    """Two sentences, and whether the second one follows the first."""

    first: Sentence  #: its tokens
    second: Sentence  #: those of the other one
    label: int  #: 0 = it follows, 1 = it doesn't, as :meth:`Bert.guess_next` has it


def next_sentence_pairs(
    documents: Sequence[Sequence[Sentence]], seed: int = 0
) -> list[SentencePair]:
    """Return all neighbours; of half, the second is replaced by one of elsewhere.

    Devlin et al. (2019), section 3.1 and appendix A.2: from another document, any of
    its sentences.

    Arguments as :func:`sentence_order_pairs`.

    Raises:
        ValueError: if there is one document alone.
    """
    full = [document for document in documents if document]
    require.that(
        len(full) > 1,
        f"documents must hold at least 2 with a sentence, got {len(full)} of them",
    )
    draw, elsewhere, pairs = random.Random(seed), random.Random(seed + 1), []
    for i, document in enumerate(full):
        for first, second in pairwise(document):
            label = draw.randrange(2)
            if label:
                other = elsewhere.randrange(len(full) - 1)
                second = elsewhere.choice(full[other + (other >= i)])
            pairs.append(SentencePair(first, second, label))
    return pairs


def sentence_order_pairs(
    documents: Sequence[Sequence[Sentence]], seed: int = 0
) -> list[SentencePair]:
    """Return all neighbours, half of them turned round.

    Lan et al. (2020), section 3.1: both sentences are of one document, so that their
    topics say nothing. With one ``seed``, the pairs that follow are those of
    :func:`next_sentence_pairs`.

    Args:
        documents: sentences in their order.
        seed: of the draw.
    """
    draw, pairs = random.Random(seed), []
    for document in filter(None, documents):
        for first, second in pairwise(document):
            label = draw.randrange(2)
            both = (second, first) if label else (first, second)
            pairs.append(SentencePair(*both, label))
    return pairs


def pair_ids(
    first: Sequence[int], second: Sequence[int], start: int, end: int
) -> tuple[list[int], list[int]]:
    """Return ids and segments of two sentences: [CLS] first [SEP] second [SEP].

    Args:
        first: ids of the first sentence; it is segment 0, with what is around it.
        second: ids of the second one; it is segment 1, with its end.
        start: the id of ``[CLS]``.
        end: the id of ``[SEP]``.
    """
    ids = [start, *first, end, *second, end]
    return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)
