"""annotated/search.py: search finds the best of all sequences where it looks at all,
and what a slow search on Python lists finds where it doesn't.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cache, partial

import pytest
import torch
from torch import Tensor

from annotated.batches import pad_sequences
from annotated.decoding import greedy_decode
from annotated.search import (
    PENALTIES,
    STOPS,
    DecoderCache,
    Hypothesis,
    Rereader,
    beam_search,
    exhaustive_search,
    log_probabilities,
)
from annotated.transformer import Transformer, TransformerConfig

SOURCES, TARGETS, START, END, MOST = 7, 5, 1, 2, 4
SETTINGS = {"start": START, "end": END, "max_new_tokens": MOST}
# wide enough for all: 3 of 4 symbols go on, and each is continued by 4
WIDE = 4 * 3 ** (MOST - 1)
SCORES = [
    {"alpha": alpha, "penalty": penalty}
    for penalty in PENALTIES
    for alpha in (0.0, 0.6, 1.5)
]


def make_model(seed: int, targets: int = TARGETS, **changes) -> Transformer:
    torch.manual_seed(seed)
    given = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 12, "dropout": 0.0}
    given |= {"max_len": 32, "norm": "pre"} | changes
    model = Transformer(TransformerConfig(SOURCES, targets, **given)).double().eval()
    with torch.no_grad():  # far from uniform, and never the same symbol for ever
        model.target_embedding.weight *= 3.0
        model.output.weight *= 3.0
    return model


def draw_sources() -> Tensor:
    """Three sources, one padded in front and one behind."""
    source = torch.randint(1, SOURCES, (3, 5))
    source[1, :2] = 0
    source[2, 4:] = 0
    return source


def tokens(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[one.tokens for one in several] for several in found]


def next_logs(model: Transformer, source: Tensor, before: Sequence[int]) -> list[float]:
    source = source[source != model.config.pad][None]
    with torch.no_grad():
        logits = model(source, torch.tensor([[START, *before]]))[0, -1]
    logs = logits.log_softmax(-1).tolist()
    logs[model.config.pad] = -math.inf
    return logs


def slow_search(logs, beam, alpha, penalty, stop, most, n_best):
    """A single source: every hypothesis is a pair of its log-probability and its ids.

    ``logs`` gives the logarithms of what comes after some ids.
    """

    def divisor(n):
        return ((5 + n) / 6) ** alpha if penalty == "gnmt" else n**alpha

    alive, done = [(0.0, [])], []
    for length in range(1, most + 1):
        grown = [
            (log + more, [*ids, symbol])
            for log, ids in alive
            for symbol, more in enumerate(logs(tuple(ids)))
            if more > -math.inf
        ]
        grown.sort(key=lambda one: -one[0])
        for log, ids in grown[:beam]:
            if ids[-1] == END or length == most:
                done.append((log / divisor(length), ids))
        done.sort(key=lambda one: -one[0])
        alive = [one for one in grown if one[1][-1] != END][:beam]
        if stop == "first" and len(done) >= beam:
            break
        if stop == "bound" and len(done) >= n_best and length < most:
            hopes = [alive[0][0] / divisor(n) for n in range(length + 1, most + 1)]
            if max(hopes) <= done[n_best - 1][0]:
                break
    return [ids for _, ids in done[:n_best]]


# ---- against all sequences -------------------------------------------------------


@pytest.mark.parametrize("stop", ["bound", "never"])
@pytest.mark.parametrize("seed", range(10))
def test_a_beam_as_wide_as_all_sequences_finds_the_best_of_them(seed, stop):
    model, source = make_model(seed), draw_sources()
    for scores in SCORES[seed % 2 :: 2]:
        found = beam_search(
            model, source, beam=WIDE, n_best=20, stop=stop, **SETTINGS, **scores
        )
        for row, several in zip(source, found, strict=True):
            every = exhaustive_search(model, row[None], **SETTINGS, **scores)
            assert tokens([several]) == tokens([every[:20]]), scores
            for one, other in zip(several, every[:20], strict=True):
                assert one[1:] == pytest.approx(other[1:], rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_all_sequences_are_all_and_their_probabilities_are_one(seed):
    model, source = make_model(seed), draw_sources()[:1]
    with torch.no_grad():  # padding as good as impossible
        model.decoder.norm.bias += 100 * torch.eye(8, dtype=torch.double)[0]
        model.output.weight[:, 0] = 0.0
        model.output.weight[0, 0] = -1.0
    every = exhaustive_search(model, source, **SETTINGS)
    # of 4 symbols one ends
    assert len(every) == sum(3**n for n in range(MOST)) + 3**MOST
    assert len({tuple(one.tokens) for one in every}) == len(every)
    assert sum(math.exp(one.log_probability) for one in every) == pytest.approx(1.0)
    scores = [one.score for one in every]
    assert scores == sorted(scores, reverse=True)
    assert all(END not in one.tokens[:-1] and 0 not in one.tokens for one in every)


# ---- against a slow search -------------------------------------------------------


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_beam_finds_what_a_slow_search_finds_for_each_source_alone(
    seed, beam, stop
):
    model, source = make_model(seed, targets=9), draw_sources()
    settings = SETTINGS | {"max_new_tokens": 6}
    rows = [cache(partial(next_logs, model, row)) for row in source]
    for scores, n_best in itertools.product(SCORES[::2], {1, beam}):
        options = {"beam": beam, "stop": stop, "n_best": n_best} | scores
        found = beam_search(model, source, **settings, **options)
        wanted = [slow_search(logs, most=6, **options) for logs in rows]
        assert tokens(found) == wanted, options


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_loses_nothing(seed):
    model, source = make_model(seed, targets=9), draw_sources()
    for alpha, penalty in itertools.product((-0.5, 0.0, 0.6, 2.0), PENALTIES):
        options = SETTINGS | {"max_new_tokens": 12, "alpha": alpha, "penalty": penalty}
        options |= {"beam": 3, "n_best": 2}
        with_bound = beam_search(model, source, stop="bound", **options)
        assert with_bound == beam_search(model, source, stop="never", **options)


def count_reads(model: Transformer) -> list[int]:
    read = []
    model.positions.register_forward_hook(lambda part, given, out: read.append(1))
    return read


def test_a_search_that_may_stop_reads_less():
    model, source = make_model(1), draw_sources()
    read, steps = count_reads(model), {}
    for stop in STOPS:
        read.clear()
        options = SETTINGS | {"max_new_tokens": 20, "stop": stop, "alpha": 0.0}
        beam_search(model, source, **options)
        steps[stop] = len(read) - 1  # the source
    assert steps["first"] < 20 and steps["bound"] < 20 and steps["never"] == 20


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_that_stops_first_is_greedy(seed):
    model, source = make_model(seed, targets=9), draw_sources()
    front = source.clone()
    front[1] = source[1].roll(-2)  # greedy_decode reads positions as they stand
    with torch.no_grad():
        model.output.weight[0] = 0.0
    for end in range(1, 9):
        settings = SETTINGS | {"end": end, "max_new_tokens": 9}
        greedy = greedy_decode(model, front, **settings)
        if (greedy == 0).logical_and(greedy.cumsum(1) == 0).any():
            continue
        found = beam_search(model, source, beam=1, stop="first", **settings)
        for row, (one,) in zip(greedy.tolist(), found, strict=True):
            cut = row.index(end) + 1 if end in row else 9
            assert one.tokens == row[:cut]


# ---- scores ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "alpha", "length", "divisor"),
    [
        ("gnmt", 0.6, 1, 1.0),
        ("gnmt", 0.5, 19, 2.0),
        ("plain", 0.5, 9, 3.0),
        ("plain", 0.0, 9, 1.0),
    ],
)
def test_length_penalties_by_hand(penalty, alpha, length, divisor):
    assert PENALTIES[penalty](length, alpha) == pytest.approx(divisor)


def refuse(*_):
    raise RuntimeError("read otherwise")


def test_log_probabilities_are_those_of_the_search_and_of_a_loop():
    model, source = make_model(2, targets=9), draw_sources()
    found = [one for (one,) in beam_search(model, source, **SETTINGS)]
    size = max(len(one.tokens) for one in found)
    outputs = torch.tensor(
        [one.tokens + [0] * (size - len(one.tokens)) for one in found]
    )
    logs = log_probabilities(model, source, outputs, start=START)
    for i, one in enumerate(found):
        ids = one.tokens
        loop = sum(
            next_logs(model, source[i], ids[:n])[ids[n]] for n in range(len(ids))
        )
        assert logs[i].item() == pytest.approx(loop)
        assert one.log_probability == pytest.approx(loop)
    more = torch.cat([outputs, torch.zeros(3, 2, dtype=torch.long)], dim=1)
    padded = log_probabilities(model, source, more, start=START)
    torch.testing.assert_close(padded, logs)
    with pytest.raises(RuntimeError, match="read otherwise"):
        log_probabilities(model, source, more, start=START, reader=refuse)
    model.train()
    assert not log_probabilities(model, source, more, start=START).requires_grad
    assert model.training


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_are_added_in_single_precision(dtype):
    model, source = make_model(2, targets=9).to(dtype), draw_sources()
    found = [one for (one,) in beam_search(model, source, alpha=0.0, **SETTINGS)]
    outputs, _ = pad_sequences([one.tokens for one in found], 0)
    exact = []
    for row, output in zip(source, outputs, strict=True):
        ids = row[row != 0][None], torch.tensor([[START, *output[:-1]]])
        with torch.no_grad():
            logs = model(*ids)[0].double().log_softmax(dim=-1)
        own = logs.gather(-1, output[:, None])[:, 0].masked_fill(output == 0, 0.0)
        exact.append(own.sum().item())
    logs = log_probabilities(model, source, outputs, start=START)
    assert [one.score for one in found] == pytest.approx(exact, abs=2e-5)
    assert logs.tolist() == pytest.approx(exact, abs=2e-5)


# ---- edges -----------------------------------------------------------------------


def test_no_source_finds_nothing():
    model, none = make_model(0), torch.ones(0, 5, dtype=torch.long)
    for stop in STOPS:
        assert beam_search(model, none, stop=stop, **SETTINGS) == []
    with pytest.raises(ValueError, match="end must be an integer from 0 to 4, got -1"):
        beam_search(model, none, **SETTINGS | {"end": -1})


def test_a_beam_wider_than_the_vocabulary_and_more_than_there_are():
    model, source = make_model(0), draw_sources()
    options = {"start": START, "end": END, "max_new_tokens": 1}
    found = beam_search(model, source, beam=50, n_best=50, **options)
    # one symbol: any but the padding, whether it ends or is cut off
    for several in found:
        assert sorted(one.tokens for one in several) == [[1], [2], [3], [4]]


def test_what_reaches_the_limit_is_returned_as_it_stands():
    model, source = make_model(0), draw_sources()
    with torch.no_grad():  # the symbol that ends never comes
        model.decoder.norm.bias += 100 * torch.eye(8, dtype=torch.double)[0]
        model.output.weight[:, 0] = 0.0
        model.output.weight[END, 0] = -1.0
    for stop in STOPS:
        found = beam_search(model, source, stop=stop, n_best=2, **SETTINGS)
        assert all(len(one.tokens) == MOST for several in found for one in several)
        assert all(len(several) == 2 for several in found)


@pytest.mark.parametrize("end", [0, 3])
def test_other_ids_may_pad_and_end(end):
    model, source = make_model(7, pad=4), torch.randint(0, 4, (2, 5))
    source[1, 3:] = 4
    settings = SETTINGS | {"end": end}
    found = beam_search(model, source, beam=WIDE, **settings)
    for i, (one,) in enumerate(found):
        every = exhaustive_search(model, source[i : i + 1], **settings, alpha=0.6)
        assert one.tokens == every[0].tokens and 4 not in one.tokens


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_it_searches_without_dropout_or_gradients_and_leaves_all_as_it_was(dtype):
    model, source = make_model(0, dropout=0.5).train(), draw_sources().to(dtype)
    before = source.clone()
    found = beam_search(model, source, **SETTINGS)
    assert found == beam_search(model, source, **SETTINGS)
    assert model.training and torch.equal(source, before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"beam": 0}, "beam must be an integer ≥ 1, got 0"),
        ({"beam": -2}, "beam must be an integer ≥ 1, got -2"),
        ({"n_best": 5}, "n_best must be an integer from 1 to 4, got 5"),
        ({"n_best": 0}, "n_best must be an integer from 1 to 4, got 0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer ≥ 1, got 0"),
        ({"start": TARGETS}, "start must be an integer from 0 to 4, got 5"),
        ({"end": -1}, "end must be an integer from 0 to 4, got -1"),
        ({"penalty": "google"}, "penalty must be one of 'gnmt', 'plain', got 'google'"),
        ({"stop": "early"}, "stop must be one of 'first', 'bound', .* got 'early'"),
    ],
)
def test_an_honest_mistake_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        beam_search(make_model(0), draw_sources(), **SETTINGS | given)


def test_a_source_of_padding_only_is_named():
    source = draw_sources()
    source[[0, 2]] = 0
    message = r"tokens must hold a real symbol in rows \[0, 2\], got none"
    for reader in (DecoderCache, Rereader):
        with pytest.raises(ValueError, match=message):
            beam_search(make_model(0), source, **SETTINGS, reader=reader)


def test_more_sequences_than_a_toy_has_are_refused():
    model, sources = make_model(0), draw_sources()
    with pytest.raises(ValueError, match="sequences must be at most a_million, got s"):
        exhaustive_search(model, sources[:1], **SETTINGS | {"max_new_tokens": 9})
    with pytest.raises(ValueError, match="penalty must be one of"):
        exhaustive_search(model, sources[:1], **SETTINGS, penalty="google")
    with pytest.raises(ValueError, match=r"source must have the shape \(1, s\)"):
        exhaustive_search(model, sources, **SETTINGS)
