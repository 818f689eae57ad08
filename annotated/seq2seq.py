"""From sequence to sequence with recurrent networks, with attention or without.

Letters: b batch, s source length, t target length, e width of an embedding, m width of
the encoder's states, v vocabulary (``book/notation.md``). ``lengths`` counts the real
tokens of each source; padding stands after them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from annotated import require
from annotated.batches import Batch, Vocabulary
from annotated.devices import device_of, to_device
from annotated.masks import length_mask
from annotated.recurrent_attention import ScoredAttention
from annotated.search import padding_last
from annotated.training import evaluating

QUERIES = ("previous", "current", "previous+output")


class Memory(NamedTuple):
    """What the encoder hands to the decoder."""

    states: Tensor  #: ``(b, s, m)``, a vector for each token, zeros at the padding
    summary: Tensor  #: ``(b, m)``, a vector for each source
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
        embedding: width of an embedding.
        hidden: width of the GRU in each direction; annotations have twice that.
        pad: id of padding, whose embedding stays zero.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int, pad: int = 0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=pad)
        self.rnn = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)

    @require.shapes
    def forward(self, source: Int[Tensor, "b s"], lengths: Int[Tensor, "b"]) -> Memory:
        """Read the ``source``, whose real tokens ``lengths`` counts, at least 1 each.

        Returns:
            ``Memory``: states ``(b, s, 2·hidden)``, summary ``(b, 2·hidden)`` (the
            last forward state beside the last backward state) and mask ``(b, 1, s)``.

        Raises:
            ValueError: if an id is outside the vocabulary, or a length not in 1 to s.
        """
        size = source.shape[1]
        require.ids(self.embedding.num_embeddings, source=source)
        require.within(1, size, lengths=lengths)
        mask = length_mask(lengths, size)[:, 0]  # no heads yet: (b, 1, s)
        # packing lets the backward direction start at the last real token, so that
        # padding changes nothing
        x, real = self.embedding(source), lengths.cpu()
        x = pack_padded_sequence(x, real, batch_first=True, enforce_sorted=False)
        x, last = self.rnn(x)  # last: (2, b, hidden)
        states, _ = pad_packed_sequence(x, batch_first=True, total_length=size)
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
        query: which state asks: ``"previous"`` s_{i-1} (Bahdanau); ``"current"`` s_i
            (Luong et al., 2015, with input feeding: the GRU reads the last context);
            ``"previous+output"`` s_{i-1} beside the embedding of y_{i-1}.
        pad: id of padding.

    Raises:
        ValueError: if ``query`` is unknown, or ``attention`` has other widths.
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
        require.choice(QUERIES, query=query)
        if attention is not None:
            width = hidden + embedding if query == "previous+output" else hidden
            require.choice((None, width), query_size=attention.query_size)
            require.choice((None, memory), key_size=attention.key_size)
        self.query, self.attention = query, attention
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=pad)
        self.bridge = nn.Linear(memory, hidden)
        self.cell = nn.GRUCell(embedding + memory, hidden)
        self.head = nn.Linear(hidden + memory, vocabulary)

    def start(self, memory: Memory) -> Step:
        """Return the step before the first: its state from ``memory``, the rest 0."""
        state = torch.tanh(self.bridge(memory.summary))
        logits = state.new_zeros(len(state), self.head.out_features)
        weights = state.new_zeros(memory.states.shape[:2])
        return Step(logits, state, torch.zeros_like(memory.summary), weights)

    def prepare(self, memory: Memory) -> Float[Tensor, "b s _"]:
        """Return what the attention needs of ``memory``, computed once a source."""
        if self.attention is None:
            return memory.states
        return self.attention.prepare(memory.states)

    def look(
        self, query: Tensor, memory: Memory, prepared: Tensor, previous: Tensor
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b s"]]:
        """Return what a ``query``, (b, q), fetches from ``memory``, and its alignment.

        ``prepared`` is what :meth:`prepare` gave, ``previous`` the last alignment.
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
        """Return the step that decodes one symbol, with the ``memory`` at hand.

        ``last`` is the embedding of the last output, ``before`` the step before it
        (:meth:`start` gives the first), ``prepared`` what :meth:`prepare` gave.
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

    def forward(
        self, target: Int[Tensor, "b t"], memory: Memory
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b t s"]]:
        """Return logits and alignments with teacher forcing.

        Step i reads the true symbol i of ``target``, which begins with the start
        symbol, and predicts the next one. ``memory`` is what the encoder handed over.
        """
        embedded, prepared = self.embedding(target), self.prepare(memory)
        steps = [self.start(memory)]
        for i in range(target.shape[1]):
            steps.append(self.step(embedded[:, i], steps[-1], memory, prepared))
        logits = torch.stack([step.logits for step in steps[1:]], dim=1)
        return logits, torch.stack([step.weights for step in steps[1:]], dim=1)


class Seq2Seq(nn.Module):
    """An ``encoder`` that reads the source, and a ``decoder`` that writes the target.

    Sutskever et al. (2014), Cho et al. (2014); with attention, Bahdanau et al. (2015).
    """

    def __init__(self, encoder: RNNEncoder, decoder: AttentionDecoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    @require.shapes
    def forward(
        self,
        source: Int[Tensor, "b s"],
        lengths: Int[Tensor, "b"],
        target: Int[Tensor, "b t"],
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the next symbols, with teacher forcing.

        The encoder reads ``source`` and ``lengths``, the decoder ``target``.

        Raises:
            ValueError: if an id of the target is outside its vocabulary.
        """
        require.ids(self.decoder.head.out_features, target=target)
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
        """Return ids and their alignments, taking the likeliest symbol at each step.

        Args:
            source: ids.
            lengths: real tokens of each source.
            start: id that the decoder was trained to begin with; it is not returned.
            end: id that closes an output.
            max_length: most symbols to write, the end symbol included.
            pad: id written after the end symbol.

        Raises:
            TypeError: if ``max_length``, ``start`` or ``end`` is no integer.
            ValueError: if ``max_length`` is below 1, or ``start`` or ``end`` no id.
        """
        require.count(max_length=max_length)
        require.count(0, self.decoder.head.out_features - 1, start=start, end=end)
        memory = self.encoder(source, lengths)
        prepared, step = self.decoder.prepare(memory), self.decoder.start(memory)
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


class RecurrentReader:
    """Reads a target step by step, so that :func:`annotated.search.beam_search` can.

    There is no cache to grow: what was read is in the decoder's state.

    Args:
        model: in evaluation mode.
        source: token ids, ``(b, s)``, padded anywhere.

    Raises:
        ValueError: if the model is in training mode, or a source is all padding.
    """

    def __init__(self, model: Seq2Seq, source: Int[Tensor, "b s"]):
        require.that(not model.training, "model must be in evaluation mode")
        self.decoder, self.pad = model.decoder, model.decoder.embedding.padding_idx
        self.vocab_size = model.decoder.head.out_features
        source = padding_last(source, self.pad)
        self.memory = model.encoder(source, (source != self.pad).sum(dim=1))
        self.prepared = self.decoder.prepare(self.memory)
        self.last = self.decoder.start(self.memory)

    @require.shapes
    def read(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits at new positions, those after all that was read before.

        Args:
            tokens: ids of the new positions.
        """
        logits = []
        for embedded in self.decoder.embedding(tokens).unbind(dim=1):
            self.last = self.decoder.step(
                embedded, self.last, self.memory, self.prepared
            )
            logits.append(self.last.logits)
        return torch.stack(logits, dim=1)

    @require.shapes
    def keep(self, rows: Int[Tensor, "n"]) -> None:
        """Go on with these ``rows``, in this order; a row may be there several times.

        Row i of the next :meth:`read` goes on where row ``rows[i]`` stopped.
        """
        self.last = Step(*(one[rows] for one in self.last))
        self.memory = Memory(*(one[rows] for one in self.memory))
        self.prepared = self.prepared[rows]


def teacher_forcing_loss(model: Seq2Seq, batch: Batch) -> Float[Tensor, ""]:
    """Return the mean cross-entropy in nats of the true next symbols.

    The ``model`` reads the true target of the ``batch`` up to each symbol. Padding
    after a target is no symbol anybody should predict, so it counts neither in the sum
    nor in the number of symbols.
    """
    logits = model(batch.source, batch.lengths, batch.target).flatten(0, 1)
    return F.cross_entropy(logits, batch.labels.flatten(), ignore_index=Vocabulary.pad)


def exact_matches(model: Seq2Seq, batches: Iterable[Batch]) -> Bool[Tensor, "n"]:
    """Return for each source whether its output is right from first to last symbol.

    The ``model`` decodes greedily, and never sees the labels of the ``batches``.
    """
    hits, ends = [], (Vocabulary.start, Vocabulary.end)
    with evaluating(model):
        for batch in batches:
            batch = to_device(batch, device_of(model))
            # one symbol more than the longest label: an output too long is wrong too
            size = batch.labels.shape[1] + 1
            tokens, _ = model.greedy(batch.source, batch.lengths, *ends, size)
            tokens = F.pad(tokens, (0, size - tokens.shape[1]), value=Vocabulary.pad)
            labels = F.pad(batch.labels, (0, 1), value=Vocabulary.pad)
            hits.append((tokens == labels).all(dim=1))
    return torch.cat(hits)
