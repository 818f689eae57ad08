"""From sequence to sequence with recurrent networks, with attention or without.

Letters: b batch, s source length, t target length, v vocabulary
(``book/notation.md``). Tokens are whole numbers; ``lengths`` counts the real tokens
of each source, padding stands behind them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from annotated.attention import ScoredAttention
from annotated.data import Batch, Vocabulary
from annotated.masks import length_mask

QUERIES = ("previous", "current", "previous+output")


class Memory(NamedTuple):
    """What the encoder hands to the decoder."""

    #: ``(b, s, m)``, one vector a source token, zeros at the padding
    states: Tensor
    summary: Tensor  #: ``(b, m)``, one vector a source
    mask: Tensor  #: ``(b, 1, s)``, True at real tokens


class Step(NamedTuple):
    """What one step of the decoder gives."""

    logits: Tensor  #: ``(b, v)``
    state: Tensor  #: ``(b, d)``
    context: Tensor  #: ``(b, m)``
    weights: Tensor  #: ``(b, s)``, the alignment; zeros without attention


class RNNEncoder(nn.Module):
    """Bidirectional GRU over the embedded source.

    Bahdanau et al. (2015), section 3.2: the annotation of a token is its forward
    state beside its backward state, so it knows what stands on either side.

    Args:
        vocabulary: number of source symbols.
        embedding: width of a source embedding.
        hidden: width of the GRU in each direction; annotations have twice that.
        pad: id of the padding symbol, whose embedding stays zero.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int, pad: int = 0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=pad)
        self.rnn = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)

    def forward(self, source: Int[Tensor, "b s"], lengths: Int[Tensor, "b"]) -> Memory:
        """Read the source.

        Args:
            source: token ids ``(b, s)``, padding behind the real ones.
            lengths: number of real tokens of each source, ``(b,)``, at least 1.

        Returns:
            ``Memory``: states ``(b, s, 2·hidden)``, summary ``(b, 2·hidden)`` (the
            last forward state beside the last backward state) and mask ``(b, 1, s)``.

        Raises:
            TypeError: if ``source`` or ``lengths`` are not tensors of whole numbers.
            ValueError: if a token id is outside the vocabulary, or ``lengths`` does
                not fit ``source``.
        """
        require_tokens("source", source, self.embedding.num_embeddings)
        if not isinstance(lengths, Tensor):
            kind = type(lengths).__name__
            raise TypeError(f"lengths must be a tensor of whole numbers, got {kind}")
        if lengths.shape != source.shape[:1]:
            raise ValueError(
                f"lengths must hold one length for each of the {source.shape[0]} "
                f"sources, got shape {tuple(lengths.shape)}"
            )
        mask = length_mask(lengths, source.shape[1])[:, 0]  # no heads yet: (b, 1, s)
        if lengths.numel() and lengths.min() < 1:
            raise ValueError("lengths must be at least 1: a source cannot be empty")
        # packing lets the backward direction start at the last real token, so that
        # padding changes nothing
        packed = pack_padded_sequence(
            self.embedding(source),
            lengths.cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        packed_states, last = self.rnn(packed)  # last: (2, b, hidden)
        states, _ = pad_packed_sequence(
            packed_states, batch_first=True, total_length=source.shape[1]
        )
        return Memory(states, torch.cat([last[0], last[1]], dim=-1), mask)


class AttentionDecoder(nn.Module):
    """GRU decoder that looks back at the source at every step.

    Step i, with the state ``s``, the last output ``y`` and the context ``c``
    (Bahdanau et al., 2015, section 3.1 and appendix A.2.2)::

        c_i = attention(s_{i-1}, h)     what of the source is needed now
        s_i = GRU([y_{i-1}, c_i], s_{i-1})
        p(y_i) = softmax(head([s_i, c_i]))

    Without attention the context is the source's summary at every step: the
    one-vector bottleneck of Cho et al. (2014).

    Args:
        vocabulary: number of target symbols.
        embedding: width of a target embedding.
        hidden: width of the decoder's state.
        memory: width of the encoder's annotations.
        attention: how to score; ``None`` for the bottleneck.
        query: which state asks. ``"previous"`` s_{i-1} (Bahdanau), ``"current"``
            s_i (Luong et al., 2015, with input feeding: the GRU then reads the
            context of the step before), ``"previous+output"`` s_{i-1} beside the
            embedding of y_{i-1}.
        pad: id of the padding symbol.

    Raises:
        ValueError: if ``query`` is unknown, or ``attention`` takes queries or keys
            of other widths.
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        hidden: int,
        memory: int,
        attention: ScoredAttention | None = None,
        query: str = "previous",
        pad: int = 0,
    ):
        super().__init__()
        if query not in QUERIES:
            raise ValueError(f"query must be one of {QUERIES}, got {query!r}")
        asked = hidden + embedding if query == "previous+output" else hidden
        if attention is not None:
            takes = attention.query_size, attention.key_size
            if takes[0] not in (None, asked):
                raise ValueError(
                    f"attention must take queries of width {asked} (query={query!r}), "
                    f"got one for {takes[0]}"
                )
            if takes[1] not in (None, memory):
                raise ValueError(
                    f"attention must take keys of width {memory} (memory), "
                    f"got one for {takes[1]}"
                )
        self.query = query
        self.attention = attention
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=pad)
        self.bridge = nn.Linear(memory, hidden)
        self.cell = nn.GRUCell(embedding + memory, hidden)
        self.head = nn.Linear(hidden + memory, vocabulary)

    def start(self, memory: Memory) -> Step:
        """Return the step before the first one: its state, nothing looked at.

        Args:
            memory: what the encoder handed over.
        """
        state = torch.tanh(self.bridge(memory.summary))
        return Step(
            logits=state.new_zeros(state.shape[0], self.head.out_features),
            state=state,
            context=torch.zeros_like(memory.summary),
            weights=state.new_zeros(memory.states.shape[:2]),
        )

    def look(
        self, query: Tensor, memory: Memory, prepared: Tensor, previous: Tensor
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b s"]]:
        """Return the context that a query fetches, and its alignment.

        Args:
            query: ``(b, q)``.
            memory: what the encoder handed over.
            prepared: what :meth:`prepare` gave, ``(b, s, ·)``.
            previous: alignment of the step before, ``(b, s)``.

        Returns:
            Context ``(b, m)`` and alignment ``(b, s)``.
        """
        if self.attention is None:
            return memory.summary, torch.zeros_like(previous)
        context, weights = self.attention.attend(
            query[:, None], prepared, memory.states, memory.mask, previous
        )
        return context[:, 0], weights[:, 0]

    def step(
        self,
        last: Float[Tensor, "b e"],
        before: Step,
        memory: Memory,
        prepared: Float[Tensor, "b s _"],
    ) -> Step:
        """Decode one symbol.

        Args:
            last: embedding of the last output, ``(b, e)``.
            before: the step before (:meth:`start` gives the first).
            memory: what the encoder handed over.
            prepared: ``attention.prepare(memory.states)``, computed once a source.

        Returns:
            The step: logits ``(b, v)``, state, context and alignment.
        """
        if self.query == "current":
            state = self.cell(torch.cat([last, before.context], -1), before.state)
            context, weights = self.look(state, memory, prepared, before.weights)
        else:
            query = before.state
            if self.query == "previous+output":
                query = torch.cat([query, last], -1)
            context, weights = self.look(query, memory, prepared, before.weights)
            state = self.cell(torch.cat([last, context], -1), before.state)
        return Step(self.head(torch.cat([state, context], -1)), state, context, weights)

    def prepare(self, memory: Memory) -> Float[Tensor, "b s _"]:
        """Return what the attention needs of the source, computed once.

        Args:
            memory: what the encoder handed over.
        """
        if self.attention is None:
            return memory.states
        return self.attention.prepare(memory.states)

    def forward(
        self, target: Int[Tensor, "b t"], memory: Memory
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b t s"]]:
        """Decode with teacher forcing: step i reads the true symbol i, predicts i+1.

        Args:
            target: ids of the true target, beginning with the start symbol,
                ``(b, t)``.
            memory: what the encoder handed over.

        Returns:
            Logits ``(b, t, v)`` and alignments ``(b, t, s)``.

        Raises:
            TypeError: if ``target`` holds no whole numbers.
            ValueError: if a target id is outside the vocabulary.
        """
        if isinstance(self.embedding, nn.Embedding):
            require_tokens("target", target, self.embedding.num_embeddings)
        embedded, prepared = self.embedding(target), self.prepare(memory)
        steps = [self.start(memory)]
        for i in range(target.shape[1]):
            steps.append(self.step(embedded[:, i], steps[-1], memory, prepared))
        logits = torch.stack([step.logits for step in steps[1:]], dim=1)
        return logits, torch.stack([step.weights for step in steps[1:]], dim=1)


class Seq2Seq(nn.Module):
    """Encoder and decoder in one.

    Sutskever et al. (2014) and Cho et al. (2014); with attention, Bahdanau et al.
    (2015).

    Args:
        encoder: reads the source.
        decoder: writes the target.
    """

    def __init__(self, encoder: RNNEncoder, decoder: AttentionDecoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(
        self,
        source: Int[Tensor, "b s"],
        lengths: Int[Tensor, "b"],
        target: Int[Tensor, "b t"],
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the next symbols, with teacher forcing.

        Args:
            source: ids ``(b, s)``.
            lengths: real tokens of each source, ``(b,)``.
            target: ids that begin with the start symbol, ``(b, t)``.
        """
        logits, _ = self.decoder(target, self.encoder(source, lengths))
        return logits

    @torch.no_grad()
    def greedy(
        self,
        source: Int[Tensor, "b s"],
        lengths: Int[Tensor, "b"],
        start: int,
        end: int,
        max_length: int,
        pad: int = 0,
    ) -> tuple[Int[Tensor, "b t"], Float[Tensor, "b t s"]]:
        """Decode by taking the likeliest symbol at each step.

        Args:
            source: ids ``(b, s)``.
            lengths: real tokens of each source, ``(b,)``.
            start: id that the decoder was trained to begin with.
            end: id that closes an output.
            max_length: most symbols to write, the end symbol included.
            pad: id written behind the end symbol.

        Returns:
            Ids ``(b, t)`` without the start symbol, padding behind the end symbol,
            t at most ``max_length``; and the alignments ``(b, t, s)``.

        Raises:
            ValueError: if ``max_length`` is below 1, or ``start`` or ``end``
                is no target id.
        """
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        vocabulary = self.decoder.head.out_features
        for name, symbol in (("start", start), ("end", end)):
            if not 0 <= symbol < vocabulary:
                raise ValueError(
                    f"{name} must be an id below {vocabulary}, got {symbol}"
                )
        memory = self.encoder(source, lengths)
        prepared = self.decoder.prepare(memory)
        step = self.decoder.start(memory)
        token = source.new_full((source.shape[0],), start)
        ended = torch.zeros_like(token, dtype=torch.bool)
        tokens, alignments = [], []
        for _ in range(max_length):
            embedded = self.decoder.embedding(token)
            step = self.decoder.step(embedded, step, memory, prepared)
            token = step.logits.argmax(dim=-1).masked_fill(ended, pad)
            tokens.append(token)
            alignments.append(step.weights)
            ended = ended | (token == end)
            if ended.all():
                break
        return torch.stack(tokens, dim=1), torch.stack(alignments, dim=1)


def teacher_forcing_loss(model: Seq2Seq, batch: Batch) -> Float[Tensor, ""]:
    """Return the mean cross-entropy in nats of the true next symbols.

    Padding behind a target is no symbol anybody should predict, so it counts
    neither in the sum nor in the number of symbols.

    Args:
        model: the model, which reads the true target up to each symbol.
        batch: sources, targets and labels.
    """
    logits = model(batch.source, batch.lengths, batch.target)
    return F.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=Vocabulary.pad
    )


@torch.no_grad()
def exact_matches(model: Seq2Seq, batches: Iterable[Batch]) -> Bool[Tensor, "n"]:
    """Decode greedily and say which outputs are right from first to last symbol.

    Args:
        model: the model; left in the mode it was in.
        batches: sources and labels; the decoder never sees the labels.

    Returns:
        True for each source that was read without a fault, in order, ``(n,)``.

    Raises:
        ValueError: if there is no batch.
    """
    was_training = model.training
    model.eval()
    hits = []
    try:
        for batch in batches:
            # one symbol more than the longest label: an output too long is wrong too
            size = batch.labels.shape[1] + 1
            tokens, _ = model.greedy(
                batch.source, batch.lengths, Vocabulary.start, Vocabulary.end, size
            )
            tokens = F.pad(tokens, (0, size - tokens.shape[1]), value=Vocabulary.pad)
            labels = F.pad(batch.labels, (0, 1), value=Vocabulary.pad)
            hits.append((tokens == labels).all(dim=1))
    finally:
        model.train(was_training)
    if not hits:
        raise ValueError("batches must hold at least one batch, got none")
    return torch.cat(hits)


def require_tokens(name: str, tokens: Bool[Tensor, "..."] | Tensor, size: int) -> None:
    """Raise a readable error unless all ``tokens`` are ids below ``size``.

    Args:
        name: what the caller calls them.
        tokens: ids, a tensor of any shape.
        size: number of ids that there are.

    Raises:
        TypeError: if ``tokens`` are no tensor, or not of whole numbers.
        ValueError: if one is negative or not below ``size``.
    """
    if not isinstance(tokens, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(tokens).__name__}")
    if tokens.is_floating_point() or tokens.dtype == torch.bool:
        raise TypeError(f"{name} must hold whole numbers, got {tokens.dtype}")
    if tokens.numel() and not 0 <= tokens.min() <= tokens.max() < size:
        raise ValueError(
            f"{name} must hold token ids from 0 to {size - 1}, "
            f"got {tokens.min().item()} to {tokens.max().item()}"
        )
