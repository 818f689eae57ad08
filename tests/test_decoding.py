"""annotated/decoding.py: each sequence is what it would be alone, symbol by symbol."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.decoding import greedy_decode
from annotated.transformer import Transformer, TransformerConfig

# b 3, s 6; 13 and 11 symbols
B, S, SOURCES, TARGETS, MOST = 3, 6, 13, 11, 9
START, END = 1, 2
SETTINGS = {"start": START, "end": END, "max_new_tokens": MOST}


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


def loop(model: Transformer, source: Tensor, start, end, max_new_tokens) -> list[int]:
    """One sequence alone, without the padding behind it."""
    source = source[source != model.config.pad][None]
    written = [start]
    with torch.no_grad():
        while len(written) <= max_new_tokens:
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
    lengths = set()
    for end in (None, *range(4, TARGETS)):
        settings = {"start": START, "end": end, "max_new_tokens": MOST}
        rows = [loop(model, row, **settings) for row in source]
        longest = max(map(len, rows))
        lengths |= {longest - len(row) for row in rows}
        wanted = [padded(row, longest, pad) for row in rows]
        written = greedy_decode(model, source, **settings)
        assert written.tolist() == wanted, f"{end=}"
    assert len(lengths) > 1, "all end together"


@pytest.mark.parametrize("seed", range(4))
def test_padding_in_front_of_a_source_is_no_position(seed):
    torch.manual_seed(seed)
    model, source = make_model(), draw_sources()
    with torch.no_grad():
        model.output.weight[0] -= 3.0
        model.target_embedding.weight *= 3.0
    front = source.clone()
    front[1] = source[1].roll(source.shape[1] - 4)
    assert front[1, 0] == 0 != front[1, -1]
    settings = {"start": START, "max_new_tokens": MOST}
    written = greedy_decode(model, front, **settings)
    assert torch.equal(written, greedy_decode(model, source, **settings))


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


@pytest.mark.parametrize("max_new_tokens", [1, 2, 4])
def test_it_stops_at_the_largest_length(max_new_tokens):
    model = Told([[3, 4, 5, 6]] * 3)
    settings = SETTINGS | {"max_new_tokens": max_new_tokens}
    written = greedy_decode(model, draw_sources(), **settings)
    assert written.tolist() == [[3, 4, 5, 6][:max_new_tokens]] * 3
    assert len(model.read) == max_new_tokens


def test_the_symbol_zero_may_be_the_end():
    model = Told([[3, 0, 9], [0, 9, 9], [3, 0, 9]], pad=5)
    written = greedy_decode(model, draw_sources(), start=START, end=0, max_new_tokens=3)
    assert written.tolist() == [[3, 0], [0, 5], [3, 0]]


def test_as_many_symbols_can_be_written_as_there_are_positions():
    model, source = make_model(max_len=S), draw_sources()
    assert greedy_decode(model, source, start=START, max_new_tokens=S).shape == (B, S)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_what_is_written_has_the_dtype_of_the_source(dtype):
    model, source = make_model(), draw_sources()
    written = greedy_decode(model, source.to(dtype), **SETTINGS)
    assert written.dtype == dtype
    assert written.tolist() == greedy_decode(model, source, **SETTINGS).tolist()


def test_it_writes_without_dropout_or_gradients_and_leaves_modes_and_sources_alone():
    model, source = Told([[3, END]] * 3).train(), draw_sources()
    model.encoder.eval()  # frozen
    before = source.clone()
    greedy_decode(model, source, **SETTINGS)
    assert set(model.modes) == {(False, False)}
    assert model.decoder.training and not model.encoder.training
    assert torch.is_grad_enabled() and torch.equal(source, before)


def test_it_writes_where_the_source_is():
    # without an end nothing depends on a number, which a meta tensor does not have
    model, source = make_model().to("meta"), draw_sources().to("meta")
    written = greedy_decode(model, source, start=START, max_new_tokens=4)
    assert written.device == torch.device("meta")
    assert written.shape == (B, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": TARGETS}, f"start must be an integer from 0 to 10, got {TARGETS}"),
        ({"start": -1}, "start must be an integer from 0 to 10, got -1"),
        ({"end": SOURCES}, f"end must be an integer from 0 to 10, got {SOURCES}"),
        ({"end": ""}, "end must be an integer from 0 to 10, got ''"),
        ({"max_new_tokens": 0}, "max_new_tokens must be .* from 1 to 16, got 0"),
        ({"max_new_tokens": 17}, "max_new_tokens must be .* from 1 to 16, got 17"),
    ],
)
def test_an_honest_mistake_is_named(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        greedy_decode(make_model(), draw_sources(), **SETTINGS | given)


def test_sources_are_integers():
    with pytest.raises(TypeError, match=r"source must be a tensor of integers, got to"):
        greedy_decode(make_model(), torch.ones(B, S), **SETTINGS)
