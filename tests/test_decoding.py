"""annotated/decoding.py: each sequence is what it would be alone, symbol by symbol."""

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.decoding import greedy_decode
from annotated.transformer import Transformer, TransformerConfig

# b 3, s 6; 13 and 11 symbols
B, S, SOURCES, TARGETS, MOST = 3, 6, 13, 11, 9
START, END = 1, 2
SETTINGS = {"start": START, "end": END, "max_length": MOST}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def make_model(**changes) -> Transformer:
    given = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 12, "dropout": 0.0}
    given |= {"max_len": 16, "norm": "pre"} | changes
    config = TransformerConfig(SOURCES, TARGETS, **given)
    return Transformer(config).double().eval()


def draw_sources(pad: int = 0) -> Tensor:
    source = torch.randint(0, SOURCES, (B, S))
    source[source == pad] = pad + 1
    source[1, 4:] = pad
    return source


class Told(Transformer):
    """A model that says what it was told, whatever it reads; and counts."""

    def __init__(self, answers: list[list[int]], pad: int = 0):
        sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "max_len": 16}
        super().__init__(TransformerConfig(SOURCES, TARGETS, pad=pad, **sizes))
        self.answers, self.read, self.modes = torch.tensor(answers), [], []
        self.encoded = 0

    def encode(self, source):
        self.encoded += 1
        return torch.zeros(*source.shape, 8), (source != 0)[:, None, None, :]

    def decode(self, target, memory, memory_mask=None):
        self.read.append(target.clone())
        self.modes.append((self.training, torch.is_grad_enabled()))
        # at the places before the last something else
        logits = torch.zeros(*target.shape, TARGETS)
        logits[:, :-1, 7] = 50.0
        said = self.answers[:, target.shape[1] - 1]
        logits[:, -1] = F.one_hot(said, TARGETS).float()
        return logits


def loop(model: Transformer, source: Tensor, start, end, max_length) -> list[int]:
    """One sequence alone, without the padding behind it."""
    source = source[source != model.config.pad][None]
    written = [start]
    with torch.no_grad():
        while len(written) <= max_length:
            logits = model(source, torch.tensor([written]))
            scores = logits[0, len(written) - 1].tolist()
            written.append(scores.index(max(scores)))
            if written[-1] == end:
                break
    return written[1:]


def padded(row: list[int], length: int, pad: int) -> list[int]:
    return row + [pad] * (length - len(row))


# ---- what is written ---------------------------------------------------------


@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_each_sequence_is_what_a_slow_loop_writes_for_it_alone(seed, pad):
    torch.manual_seed(seed)
    model, source = make_model(pad=pad), draw_sources(pad)
    with torch.no_grad():  # a model that repeats itself would prove little
        model.output.weight[pad] -= 3.0
        model.target_embedding.weight *= 3.0
    for end in range(4, TARGETS):
        settings = {"start": START, "end": end, "max_length": MOST}
        rows = [loop(model, row, **settings) for row in source]
        longest = max(map(len, rows))
        wanted = [padded(row, longest, pad) for row in rows]
        written = greedy_decode(model, source, **settings)
        assert written.tolist() == wanted, f"{end=}"
        assert written.dtype == torch.int64


def test_without_an_end_all_get_the_whole_length():
    model, source = make_model(), draw_sources()
    with torch.no_grad():
        model.target_embedding.weight *= 3.0
    rows = [loop(model, row, START, None, MOST) for row in source]
    assert len({symbol for row in rows for symbol in row}) > 2, "the test sees little"
    written = greedy_decode(model, source, start=START, max_length=MOST)
    assert written.tolist() == rows


def test_the_loop_writes_rows_of_several_lengths():
    """What the tests above compare with."""
    model, source = make_model(), draw_sources()
    with torch.no_grad():
        model.output.weight[0] -= 3.0
        model.target_embedding.weight *= 3.0
    lengths = [
        [len(loop(model, row, START, end, MOST)) for row in source]
        for end in range(4, TARGETS)
    ]
    assert any(len(set(row)) > 1 for row in lengths), "all end together"


def test_the_last_place_alone_is_asked():
    model = Told([[3, 4, END, 5], [5, END, 6, 6], [9, 8, 9, END]])
    written = greedy_decode(model, draw_sources(), **SETTINGS)
    assert written.tolist() == [[3, 4, END, 0], [5, END, 0, 0], [9, 8, 9, END]]


@pytest.mark.parametrize("pad", [0, 4])
def test_padding_stands_behind_the_end_whatever_the_model_says(pad):
    model = Told([[END, 9, END, 9], [9, 9, 9, END], [END, END, END, END]], pad)
    written = greedy_decode(model, draw_sources(), **SETTINGS)
    assert written.tolist() == [[END, pad, pad, pad], [9, 9, 9, END], [END, *[pad] * 3]]
    # and so it is read again
    assert model.read[-1].tolist()[0] == [START, END, pad, pad]


def test_the_start_symbol_is_read_and_not_returned():
    for start in (0, 1, 8, TARGETS - 1):
        model = Told([[3, END], [4, END], [5, END]])
        settings = SETTINGS | {"start": start}
        written = greedy_decode(model, draw_sources(), **settings)
        assert written.tolist() == [[3, END], [4, END], [5, END]]
        assert [read.tolist() for read in model.read] == [
            [[start]] * 3,
            [[start, 3], [start, 4], [start, 5]],
        ]


# ---- when it stops -----------------------------------------------------------


def test_it_stops_when_every_sequence_has_ended():
    model = Told([[3, END, 9, 9, 9], [4, 4, END, 9, 9], [END, 9, 9, 9, 9]])
    written = greedy_decode(model, draw_sources(), **SETTINGS)
    assert len(model.read) == 3, "the decoder is called once a symbol"
    assert written.shape == (B, 3)
    assert model.encoded == 1, "the source is read once"


@pytest.mark.parametrize("max_length", [1, 2, 4])
def test_it_stops_at_the_largest_length(max_length):
    model = Told([[3, 4, 5, 6]] * 3)
    settings = SETTINGS | {"max_length": max_length}
    written = greedy_decode(model, draw_sources(), **settings)
    assert written.tolist() == [[3, 4, 5, 6][:max_length]] * 3
    assert len(model.read) == max_length


def test_without_an_end_it_does_not_stop_early():
    model = Told([[0, 0, 0, END]] * 3)
    written = greedy_decode(model, draw_sources(), start=START, max_length=4)
    assert written.tolist() == [[0, 0, 0, END]] * 3


def test_the_symbol_zero_may_be_the_end():
    model = Told([[3, 0, 9], [0, 9, 9], [3, 0, 9]], pad=5)
    written = greedy_decode(model, draw_sources(), start=START, end=0, max_length=3)
    assert written.tolist() == [[3, 0], [0, 5], [3, 0]]


def test_as_many_symbols_can_be_written_as_there_are_positions():
    model, source = make_model(max_len=S), draw_sources()
    assert greedy_decode(model, source, start=START, max_length=S).shape == (B, S)


@pytest.mark.parametrize(("end", "wanted"), [(END, 1), (None, 4)])
def test_for_no_sequences_nothing_is_written(end, wanted):
    settings = {"start": START, "end": end, "max_length": 4}
    written = greedy_decode(make_model(), draw_sources()[:0], **settings)
    assert written.shape == (0, wanted)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_what_is_written_has_the_dtype_of_the_source(dtype):
    model, source = make_model(), draw_sources()
    written = greedy_decode(model, source.to(dtype), **SETTINGS)
    assert written.dtype == dtype
    assert written.tolist() == greedy_decode(model, source, **SETTINGS).tolist()


def test_what_is_written_may_be_learned_from():
    model = make_model()
    written = greedy_decode(model, draw_sources(), **SETTINGS)
    # a tensor of inference mode could be kept for no backward pass
    assert not written.is_inference()
    model.decode(written, torch.zeros(B, S, 8).double()).sum().backward()


# ---- modes -------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
def test_it_writes_in_evaluation_mode_and_leaves_the_mode_as_it_was(training):
    model = Told([[3, END]] * 3).train(training)
    greedy_decode(model, draw_sources(), **SETTINGS)
    assert set(model.modes) == {(False, False)}, "no dropout and no gradients"
    assert {module.training for module in model.modules()} == {training}
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("method", ["encode", "decode"])
def test_the_mode_is_restored_after_an_exception(training, method, monkeypatch):
    class Interrupted(BaseException):
        pass

    def interrupt(*_):
        raise Interrupted

    model = make_model().train(training)
    monkeypatch.setattr(model, method, interrupt)
    with pytest.raises(Interrupted):
        greedy_decode(model, draw_sources(), **SETTINGS)
    assert {module.training for module in model.modules()} == {training}
    assert torch.is_grad_enabled()


def test_a_frozen_part_stays_frozen():
    model = make_model().train()
    model.encoder.eval()
    greedy_decode(model, draw_sources(), **SETTINGS)
    assert model.decoder.training and not model.encoder.training


def test_dropout_changes_nothing_of_what_is_written():
    model, source = make_model(dropout=0.5).train(), draw_sources()
    before = torch.get_rng_state()
    written = greedy_decode(model, source, start=START, max_length=MOST)
    assert torch.equal(torch.get_rng_state(), before)
    rows = [loop(model.eval(), row, START, None, MOST) for row in source]
    assert written.tolist() == rows


def test_sources_are_left_alone():
    source = draw_sources()
    before = source.clone()
    greedy_decode(make_model(), source, **SETTINGS)
    assert torch.equal(source, before)


def test_it_writes_where_the_source_is():
    # without an end nothing depends on a number, which a meta tensor does not have
    model, source = make_model().to("meta"), draw_sources().to("meta")
    written = greedy_decode(model, source, start=START, max_length=4)
    assert written.device == torch.device("meta")
    assert written.shape == (B, 4)


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.bad_input
@pytest.mark.parametrize("symbol", [-1, TARGETS, SOURCES, 1.0, "1", None, True])
@pytest.mark.parametrize("name", ["start", "end"])
def test_start_and_end_are_symbols_of_the_target(name, symbol):
    if name == "end" and symbol is None:
        symbol = [2]
    message = f"^{name} must be an id from 0 to {TARGETS - 1}, got "
    with pytest.raises(ValueError, match=message) as caught:
        greedy_decode(make_model(), draw_sources(), **SETTINGS | {name: symbol})
    assert str(caught.value).endswith(repr(symbol))


@pytest.mark.bad_input
@pytest.mark.parametrize("length", [0, -1, 17, 4.0, None, True])
def test_the_length_lies_between_one_and_the_number_of_positions(length):
    message = "^max_length must be a whole number from 1 to max_len=16, got "
    with pytest.raises(ValueError, match=message) as caught:
        settings = SETTINGS | {"max_length": length}
        greedy_decode(make_model(), draw_sources(), **settings)
    assert str(caught.value).endswith(repr(length))


@pytest.mark.bad_input
def test_sources_are_whole_numbers():
    model = make_model().train()
    with pytest.raises(TypeError, match=r"^source must be a tensor of whole numb"):
        greedy_decode(model, torch.ones(B, S), **SETTINGS)
    assert model.training


@pytest.mark.bad_input
def test_the_model_is_a_transformer():
    with pytest.raises(TypeError, match=r"^model must be a Transformer, got Linear$"):
        greedy_decode(torch.nn.Linear(2, 2), draw_sources(), **SETTINGS)


@pytest.mark.bad_input
def test_numbers_may_be_numpys():
    source, numbers = draw_sources(), {k: numpy.int64(v) for k, v in SETTINGS.items()}
    model = make_model()
    wanted = greedy_decode(model, source, **SETTINGS)
    assert torch.equal(greedy_decode(model, source, **numbers), wanted)
