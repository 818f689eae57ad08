"""annotated/seq2seq.py: the batched modules are their sentences, step by step."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.batches import Batch, Vocabulary, pad_sequences
from annotated.recurrent_attention import (
    AdditiveAttention,
    DotAttention,
    LocationSensitiveAttention,
)
from annotated.seq2seq import (
    QUERIES,
    AttentionDecoder,
    Memory,
    RecurrentReader,
    RNNEncoder,
    Seq2Seq,
    Step,
    exact_matches,
    teacher_forcing_loss,
)
from tests import compare
from tests.compare import assert_close

# every axis another prime (the encoder's states are twice ENCODED wide)
B, S, T = 3, 5, 7
SOURCE, TARGET = 19, 13  # vocabularies
EMBEDDING, ENCODED, EMBEDDED, DECODED = 17, 11, 23, 29
MEMORY = 2 * ENCODED
PAD, START, END = Vocabulary.pad, Vocabulary.start, Vocabulary.end
LENGTHS = [2, 5, 3]  # unsorted, and one as long as the batch

ATTENTIONS = {
    "none": lambda size: None,
    "general": lambda size: DotAttention(size, MEMORY),
    "additive": lambda size: AdditiveAttention(size, MEMORY, 31),
    "location": lambda size: LocationSensitiveAttention(size, MEMORY, 31, 37, 3),
}
gradients = partial(compare.gradients, materialize_grads=True)
every_attention = pytest.mark.parametrize("attention", ATTENTIONS)
every_query = pytest.mark.parametrize("query", QUERIES)


def make_encoder() -> RNNEncoder:
    return RNNEncoder(SOURCE, EMBEDDING, ENCODED).double()


def make_decoder(attention: str = "additive", query: str = "previous"):
    size = DECODED + (EMBEDDED if query == "previous+output" else 0)
    attend = ATTENTIONS[attention](size)
    decoder = AttentionDecoder(TARGET, EMBEDDED, DECODED, MEMORY, attend, query)
    return decoder.double()


def make_model(attention: str = "additive", query: str = "previous") -> Seq2Seq:
    return Seq2Seq(make_encoder(), make_decoder(attention, query))


def make_source() -> tuple[Tensor, Tensor]:
    rows = [torch.randint(3, SOURCE, (length,)).tolist() for length in LENGTHS]
    return pad_sequences(rows)


def make_target() -> Tensor:
    """What a decoder reads: the start symbol first, no padding."""
    target = torch.randint(3, TARGET, (B, T))
    target[:, 0] = START
    return target


def assert_same_gradients(module: nn.Module, ours: list, theirs: list) -> None:
    names, parameters = zip(*module.named_parameters(), strict=True)
    for name, one, other in zip(
        names,
        gradients(ours, parameters),
        gradients(theirs, parameters),
        strict=True,
    ):
        assert_close(one, other, f"gradient of {name}")


# ---- RNNEncoder --------------------------------------------------------------


def read_one(encoder: RNNEncoder, source: Tensor) -> tuple[Tensor, Tensor]:
    """States and summary of one source with no padding."""
    states, (forward, backward) = encoder.rnn(encoder.embedding.weight[source])
    return states, torch.cat([forward, backward])


def test_the_encoder_reads_each_source_as_if_alone():
    encoder, (source, lengths) = make_encoder(), make_source()
    states, summary, _ = encoder(source, lengths)
    theirs = []
    for b, length in enumerate(LENGTHS):
        alone, one_summary = read_one(encoder, source[b, :length])
        assert_close(states[b, :length], alone, f"states of source {b}")
        assert_close(summary[b], one_summary, f"summary of source {b}")
        theirs += [F.pad(alone, (0, 0, 0, S - length)), one_summary]
    ours = [part for b in range(B) for part in (states[b], summary[b])]
    assert_same_gradients(encoder, ours, theirs)


def test_states_at_the_padding_are_zero_and_masked():
    source, lengths = make_source()
    states, _, mask = make_encoder()(F.pad(source, (0, 2), value=PAD), lengths)
    assert states.shape == (B, S + 2, MEMORY)
    for b, length in enumerate(LENGTHS):
        assert mask[b, 0].tolist() == [s < length for s in range(S + 2)]
        assert states[b, length:].eq(0).all()
        assert states[b, :length].ne(0).all()


def test_what_stands_at_the_padding_does_not_matter():
    encoder, (source, lengths) = make_encoder(), make_source()
    garbage = source.masked_fill(source == PAD, SOURCE - 1)
    assert not torch.equal(garbage, source)
    for one, other in zip(
        encoder(source, lengths), encoder(garbage, lengths), strict=True
    ):
        assert torch.equal(one, other)


def test_the_padding_symbol_has_no_embedding_and_learns_none():
    source, lengths = make_source()
    source[1, 2] = 4  # another id whose embedding must learn
    for pad in (0, 7):
        encoder = RNNEncoder(SOURCE, EMBEDDING, ENCODED, pad=pad).double()
        assert encoder.embedding.weight[pad].eq(0).all()
        with_pad = source.clone()
        with_pad[1, 3] = pad  # read as a token, to see that it learns nothing
        states, _, _ = encoder(with_pad, lengths)
        (gradient,) = gradients([states], [encoder.embedding.weight])
        assert gradient[pad].eq(0).all()
        assert gradient[4].ne(0).any()


# ---- AttentionDecoder --------------------------------------------------------


def write_one(decoder, target, states, summary) -> tuple[Tensor, Tensor]:
    """Logits and alignments of one sentence with no padding, by the book's formulas."""

    def look(query, previous):
        if decoder.attention is None:
            return summary, torch.zeros(len(states), dtype=summary.dtype)
        keys = decoder.attention.prepare(states[None])
        scores = decoder.attention.score(query[None, None], keys, previous[None])
        alignment = scores[0, 0].softmax(-1)
        return sum(a * h for a, h in zip(alignment, states, strict=True)), alignment

    state = torch.tanh(decoder.bridge.weight @ summary + decoder.bridge.bias)
    context, alignment = torch.zeros_like(summary), torch.zeros_like(states[:, 0])
    logits, alignments = [], []
    for y in target:
        last = decoder.embedding.weight[y]
        if decoder.query == "current":  # the state moves first, then it asks
            state = decoder.cell(torch.cat([last, context]), state)
            context, alignment = look(state, alignment)
        else:
            beside = [last] if decoder.query == "previous+output" else []
            context, alignment = look(torch.cat([state, *beside]), alignment)
            state = decoder.cell(torch.cat([last, context]), state)
        logits.append(
            decoder.head.weight @ torch.cat([state, context]) + decoder.head.bias
        )
        alignments.append(alignment)
    return torch.stack(logits), torch.stack(alignments)


@every_query
@every_attention
def test_decoder_is_its_sentences_one_by_one(attention, query):
    model, target = make_model(attention, query), make_target()
    memory = model.encoder(*make_source())
    logits, alignments = model.decoder(target, memory)
    assert logits.shape == (B, T, TARGET)
    assert alignments.shape == (B, T, S)
    theirs = []
    for b, length in enumerate(LENGTHS):
        states, summary = memory.states[b, :length], memory.summary[b]
        one, look = write_one(model.decoder, target[b], states, summary)
        assert_close(logits[b], one, f"logits of sentence {b}")
        assert_close(alignments[b, :, :length], look, f"alignments of sentence {b}")
        assert alignments[b, :, length:].eq(0).all(), "padding must get no weight"
        theirs += [one, F.pad(look, (0, S - length))]
    ours = [part for b in range(B) for part in (logits[b], alignments[b])]
    assert_same_gradients(model.decoder, ours, theirs)


def test_keys_are_prepared_once_a_source():
    decoder, memory = make_decoder(), make_encoder()(*make_source())
    calls = []
    decoder.attention.key_map.register_forward_hook(lambda *_: calls.append(1))
    decoder(make_target(), memory)
    assert len(calls) == 1


def test_the_padding_symbol_of_the_target_has_no_embedding():
    for pad in (0, 5):
        decoder = AttentionDecoder(TARGET, EMBEDDED, DECODED, MEMORY, pad=pad)
        assert decoder.embedding.weight[pad].eq(0).all()
        assert decoder.embedding.weight[pad - 1].ne(0).all()


# ---- Seq2Seq -----------------------------------------------------------------


def test_a_model_is_its_decoder_over_its_encoder():
    model, target, (source, lengths) = make_model(), make_target(), make_source()
    wanted, _ = model.decoder(target, model.encoder(source, lengths))
    assert torch.equal(model(source, lengths, target), wanted)


class Script(AttentionDecoder):
    """Writes what a script says, whatever it reads; the state counts the steps."""

    def __init__(self, script: list[list[int]]):
        super().__init__(TARGET, EMBEDDED, 1, MEMORY)
        self.script = torch.tensor(script)
        self.row = 0  # where the sources of the next batch begin
        self.read = []

    def start(self, memory: Memory) -> Step:
        count = len(memory.summary)
        rows = self.script[self.row : self.row + count]
        self.row += count
        self.logits = F.one_hot(rows, TARGET).double()
        return super().start(memory)._replace(state=torch.zeros(count, 1).double())

    def step(self, last, before, memory, prepared):
        i = int(before.state[0])
        self.read.append(last)
        weights = torch.full_like(before.weights, i + 1.0)
        return before._replace(
            logits=self.logits[:, i], state=before.state + 1, weights=weights
        )


def scripted(*script: list[int]) -> Seq2Seq:
    return Seq2Seq(make_encoder(), Script(list(script)).double())


@every_attention
@every_query
def test_greedy_is_teacher_forcing_on_its_own_output(attention, query):
    model, (source, lengths) = make_model(attention, query), make_source()
    tokens, alignments = model.greedy(source, lengths, START, END, max_length=T)
    read = torch.cat([torch.full((B, 1), START), tokens[:, :-1]], dim=1)
    logits, weights = model.decoder(read, model.encoder(source, lengths))
    ended = (read[:, 1:] == END).cumsum(1).bool()
    ended = torch.cat([torch.zeros(B, 1, dtype=torch.bool), ended], dim=1)
    assert torch.equal(tokens, logits.argmax(-1).masked_fill(ended, PAD))
    assert_close(alignments, weights, "alignments are those of the steps")


def test_greedy_begins_with_the_start_symbol():
    model = scripted([5, 6, 7])
    source, lengths = torch.tensor([[3, 4]]), torch.tensor([2])
    model.greedy(source, lengths, start=9, end=END, max_length=3)
    embedded = model.decoder.embedding(torch.tensor([9, 5, 6]))
    assert torch.equal(torch.cat(model.decoder.read), embedded)


def test_greedy_writes_padding_behind_the_end_symbol():
    model = scripted([5, END, 6, 7, 8], [5, 6, 7, END, 8], [END, 9, END, 9, 9])
    tokens, _ = model.greedy(*make_source(), START, END, max_length=5)
    assert tokens.tolist() == [[5, END, 0, 0], [5, 6, 7, END], [END, 0, 0, 0]]


def test_greedy_writes_the_padding_that_it_is_told():
    model = scripted([5, END, 6], [5, 6, END], [END, 9, 9])
    tokens, _ = model.greedy(*make_source(), START, END, max_length=3, pad=11)
    assert tokens.tolist() == [[5, END, 11], [5, 6, END], [END, 11, 11]]


def test_greedy_ends_with_the_symbol_that_it_is_told():
    model = scripted([5, 9, 6], [END, 5, 9], [9, 5, 5])
    tokens, _ = model.greedy(*make_source(), START, end=9, max_length=3)
    assert tokens.tolist() == [[5, 9, 0], [END, 5, 9], [9, 0, 0]]


def test_greedy_stops_when_all_have_ended():
    model = scripted(*[[5, END, 6, 7, 8]] * B)
    tokens, alignments = model.greedy(*make_source(), START, END, max_length=5)
    assert tokens.shape == (B, 2)
    assert alignments.shape == (B, 2, S)
    assert len(model.decoder.read) == 2, "a step was computed that nobody needs"


@pytest.mark.parametrize("most", [1, 4])
def test_greedy_writes_at_most_max_length_symbols(most):
    model = scripted(*[[5, 6, 7, 8, 9]] * B)
    tokens, alignments = model.greedy(*make_source(), START, END, most)
    assert tokens.tolist() == [[5, 6, 7, 8][:most]] * B
    assert alignments[0, :, 0].tolist() == [1.0, 2.0, 3.0, 4.0][:most]


def test_greedy_keeps_no_graph_and_draws_no_random_number():
    model, source = make_model(), make_source()
    before = torch.get_rng_state()
    _, alignments = model.greedy(*source, START, END, T)
    assert not alignments.requires_grad
    assert torch.equal(torch.get_rng_state(), before)


# ---- teacher_forcing_loss ----------------------------------------------------


def make_pairs() -> Batch:
    """Targets of different lengths, so that some labels are padding."""
    source, lengths = make_source()
    labels = torch.tensor([[5, 6, END, 0], [7, END, 0, 0], [8, 9, 10, END]])
    start = torch.full((B, 1), START)
    return Batch(source, lengths, torch.cat([start, labels[:, :-1]], 1), labels)


def test_the_loss_is_the_mean_over_real_labels():
    model, batch = make_model(), make_pairs()
    logits = model(batch.source, batch.lengths, batch.target)
    parts = [
        -logits[b, t].log_softmax(-1)[batch.labels[b, t]]
        for b, t in batch.labels.ne(PAD).nonzero()
    ]
    assert len(parts) == 9
    loss = teacher_forcing_loss(model, batch)
    assert_close(loss, sum(parts) / 9, "padding counts in neither sum nor number")


# ---- exact_matches -----------------------------------------------------------


def labelled(*labels: list[int]) -> Batch:
    """Labels with padding; the targets are nonsense, for nobody should read them."""
    rows, _ = pad_sequences(labels)
    source, lengths = pad_sequences([[3, 4, 5]] * len(labels))
    return Batch(source, lengths, torch.full_like(rows, 12), rows)


RIGHT = [5, 6, END, 9, 9]


@pytest.mark.parametrize(
    ("written", "right"),
    [
        (RIGHT, True),
        ([5, 6, END, END, 5], True),  # nothing behind the end symbol counts
        ([5, 7, END, 9, 9], False),
        ([7, 6, END, 9, 9], False),
        ([5, END, 9, 9, 9], False),  # too short
        ([END, 9, 9, 9, 9], False),  # empty
        ([5, 6, 6, END, 9], False),  # too long
        ([5, 6, 7, 8, 9], False),  # never ends
        ([5, 6, PAD, 9, 9], False),  # padding is no end
        ([5, PAD, END, 9, 9], False),  # nor is it any symbol
    ],
)
def test_an_output_is_right_from_first_to_last_symbol_or_wrong(written, right):
    alone = exact_matches(scripted(written), [labelled([5, 6, END])])
    assert alone.tolist() == [right]
    # beside a longer one, so that the shorter label is padded
    together = exact_matches(
        scripted(written, [7, 7, 7, END, 9]),
        [labelled([5, 6, END], [7, 7, 7, END])],
    )
    assert together.tolist() == [right, True]


def test_an_output_beyond_the_longest_label_is_wrong():
    # the label fills its row, and its last symbol happens not to be the end
    assert exact_matches(
        scripted([5, 6, 7, END, 9]), [labelled([5, 6, 7])]
    ).tolist() == [False]


def test_matches_come_in_the_order_of_the_batches():
    model = scripted(RIGHT, [7, END, 9, 9, 9], [8, 8, END, 9, 9])
    parts = [labelled([5, 6, END], [7, 7, END]), labelled([8, 8, END])]
    hits = exact_matches(model, parts)
    assert hits.dtype == torch.bool
    assert hits.tolist() == [True, False, True]


def test_outputs_begin_and_end_with_the_symbols_of_the_vocabulary():
    model, told = scripted(RIGHT), []
    greedy = model.greedy

    def watched(source, lengths, start, end, max_length):
        told.append((start, end))
        return greedy(source, lengths, start, end, max_length)

    model.greedy = watched
    exact_matches(model, [labelled([5, 6, END])])
    assert told == [(START, END)]


@pytest.mark.parametrize("training", [True, False])
def test_exact_matches_decodes_in_evaluation_mode_and_puts_all_modes_back(training):
    model = scripted(RIGHT).train(training)
    model.encoder.rnn.train(not training)  # a part that was frozen, or let loose
    modes = []
    model.encoder.register_forward_hook(lambda *_: modes.append(model.encoder.training))
    exact_matches(model, [labelled([5, 6, END])])
    assert modes == [False]
    assert model.training is model.encoder.training is training
    assert model.encoder.rnn.training is not training


# ---- wrong arguments ---------------------------------------------------------


def changed(tensor: Tensor, value: int) -> Tensor:
    tensor = tensor.clone()
    tensor.view(-1)[1] = value
    return tensor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, n, t: (changed(s, 19), n, t), "source .* 18, got 19"),
        (lambda s, n, t: (s, changed(n, 0), t), "lengths .* 1 to 5, got 0"),
        (lambda s, n, t: (s, n[:2], t), "lengths .* b=3 as in source"),
        (lambda s, n, t: (s, n, changed(t, 13)), "target .* 12, got 13"),
        (lambda s, n, t: (s, n, t[:2]), "target .* b=3 as in source"),
    ],
)
def test_a_batch_fits_the_model(change, message):
    model, batch = make_model(), (*make_source(), make_target())
    with pytest.raises(ValueError, match=f"^{message}"):
        model(*change(*batch))


def test_a_query_must_be_one_of_those_named():
    message = "^query must be one of 'previous', 'current', .*, got 'next'$"
    with pytest.raises(ValueError, match=message):
        AttentionDecoder(TARGET, EMBEDDED, DECODED, MEMORY, query="next")


@every_query
def test_the_attention_must_take_the_decoders_queries_and_the_encoders_states(query):
    # state alone where state and output are asked with, or the other way round
    right, wrong = DECODED, DECODED + EMBEDDED
    if query == "previous+output":
        right, wrong = wrong, right
    sizes = TARGET, EMBEDDED, DECODED, MEMORY
    with pytest.raises(ValueError, match=f"^query_size .* {right}, got {wrong}$"):
        AttentionDecoder(*sizes, DotAttention(wrong, MEMORY), query)
    with pytest.raises(ValueError, match=f"^key_size .* {MEMORY}, got {ENCODED}$"):
        AttentionDecoder(*sizes, DotAttention(right, ENCODED), query)  # one direction


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((START, END, 0), "^max_length must be an integer ≥ 1, got 0$"),
        ((START, TARGET, 3), "^end must be an integer from 0 to 12, got 13$"),
    ],
)
def test_greedy_takes_ids_and_room(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_model().greedy(*make_source(), *arguments)


# ---- step by step, for a search ----------------------------------------------------


class Rereader:
    """Reads all again at each step, a row at a time; what a reader should equal."""

    def __init__(self, model, source):
        self.model, self.pad, self.vocab_size = model, PAD, TARGET
        self.source, self.tokens = source, source[:, :0]

    def read(self, tokens):
        self.tokens = torch.cat([self.tokens, tokens], dim=1)
        rows = zip(self.source, self.tokens, strict=True)
        each = [
            self.model(one[one != PAD][None], (one != PAD).sum()[None], read[None])
            for one, read in rows
        ]
        return torch.cat(each)[:, -tokens.shape[1] :]

    def keep(self, rows):
        self.source, self.tokens = self.source[rows], self.tokens[rows]


def make_both(attention: str, query: str = "previous") -> tuple[Seq2Seq, Tensor]:
    model = Seq2Seq(make_encoder(), make_decoder(attention, query)).eval()
    source = torch.randint(3, SOURCE, (B, S))
    source[0, 2:] = PAD
    source[2, :3] = PAD  # in front
    return model, source


@every_attention
@every_query
def test_reading_step_by_step_is_reading_all_again(attention, query):
    model, source = make_both(attention, query)
    reader, again = RecurrentReader(model, source), Rereader(model, source)
    assert (reader.vocab_size, reader.pad) == (TARGET, PAD)
    for rows, size in ([0, 1, 2], 1), ([2, 0, 2, 1], 3), ([3, 0, 0, 1], 1), ([1], 2):
        for one in (reader, again):
            one.keep(torch.tensor(rows))
        tokens = torch.randint(1, TARGET, (len(rows), size))
        assert_close(reader.read(tokens), again.read(tokens))


def test_a_reader_wants_evaluation_mode_and_a_source():
    model, source = make_both("additive")
    with pytest.raises(ValueError, match="model must be in evaluation mode"):
        RecurrentReader(model.train(), source)
    source[1] = PAD
    with pytest.raises(ValueError, match=r"in rows \[1\], got none"):
        RecurrentReader(model.eval(), source)
