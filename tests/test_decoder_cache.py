"""annotated/search.py: reading step by step gives what reading at once gives."""

from collections import Counter

import pytest
import torch
from torch import Tensor

from annotated.decoding import greedy_decode
from annotated.search import (
    DecoderCache,
    Rereader,
    cached_greedy_decode,
    padding_last,
)
from annotated.transformer import Transformer, TransformerConfig

# b 3, s 5, t 7; 13 and 11 symbols
B, S, T, SOURCES, TARGETS, START = 3, 5, 7, 13, 11, 1
READERS = [DecoderCache, Rereader]


def make_model(**changes) -> Transformer:
    given = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "dropout": 0.0}
    given |= {"max_len": 16, "norm": "pre"} | changes
    model = Transformer(TransformerConfig(SOURCES, TARGETS, **given)).double().eval()
    with torch.no_grad():  # a model that repeats itself would prove little
        model.target_embedding.weight *= 3.0
        model.output.weight[model.config.pad] -= 3.0
    return model


def draw(pad: int = 0) -> tuple[Tensor, Tensor]:
    source = torch.randint(0, SOURCES, (B, S))
    target = torch.randint(0, TARGETS, (B, T))
    source[source == pad] = pad + 1
    source[1, 3:] = pad
    target[target == pad] = pad + 1
    target[2, 4:] = pad
    return source, target


# ---- reading ---------------------------------------------------------------------


@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("pieces", [[1] * T, [T], [3, 1, 2, 1]])
@pytest.mark.parametrize("reader", READERS)
@torch.no_grad()
def test_pieces_give_what_the_whole_gives(reader, pieces, norm, pad):
    model, (source, target) = make_model(norm=norm, pad=pad), draw(pad)
    past = reader(model, source)
    logits = torch.cat([past.read(piece) for piece in target.split(pieces, dim=1)], 1)
    torch.testing.assert_close(logits, model(source, target))


@torch.no_grad()
def test_nothing_is_read_twice():
    model, (source, target) = make_model(), draw()
    read = Counter()

    def count(part, name):
        def add(module, given, output):
            read[name] += given[0].shape[1]

        part.register_forward_hook(add)

    layer = model.decoder.layers[1]
    count(layer.cross_attention.key_map, "cross keys")
    count(layer.cross_attention.value_map, "cross values")
    count(layer.attention.key_map, "keys")
    count(layer.feed_forward, "networks")
    count(model.encoder, "encoder")
    past = DecoderCache(model, source)
    for symbol in target.split(1, dim=1):
        past.read(symbol)
    assert read["cross keys"] == read["cross values"] == read["encoder"] == S
    assert read["keys"] == read["networks"] == T


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("rows", [[2, 0, 1], [0, 0, 1, 1, 1, 2], [1], [1, 0, 0]])
@torch.no_grad()
def test_rows_go_on_where_others_stopped(rows, reader):
    model, (source, target) = make_model(), draw()
    target[2, 4:] = 5
    rows, past = torch.tensor(rows), reader(model, source)
    past.read(target[:, :3])
    past.keep(rows)
    past.read(target[rows, 3:5])
    past.keep(torch.arange(len(rows)).flip(0))
    rows = rows.flip(0)
    logits = past.read(target[rows, 5:6])
    wanted = model(source[rows], target[rows, :6])[:, -1:]
    torch.testing.assert_close(logits, wanted)


@torch.no_grad()
def test_hypotheses_of_one_source_share_what_was_read_of_it():
    model, (source, _) = make_model(), draw()
    past = DecoderCache(model, source)
    past.keep(torch.tensor([0, 0, 1, 1, 2, 2]))
    past.read(torch.ones(6, 1, dtype=torch.long))
    before = [k for k, _ in past.read_source]
    past.keep(torch.tensor([1, 0, 2, 2, 5, 4]))
    assert all(k is b for (k, _), b in zip(past.read_source, before, strict=True))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("pad", [0, 3])
@torch.no_grad()
def test_padding_may_stand_anywhere(reader, pad):
    model, (source, target) = make_model(pad=pad), draw(pad)
    front = source.clone()
    front[1] = source[1].roll(2)
    front[2, 2] = source[2, 2] = pad
    logits = reader(model, front).read(target)
    for i in range(B):
        alone = source[i][source[i] != pad][None]
        torch.testing.assert_close(logits[i], model(alone, target[i : i + 1])[0])


def test_padding_is_moved_and_the_rest_keeps_its_order():
    tokens = torch.tensor([[0, 0, 5, 3, 4], [7, 0, 6, 0, 6], [1, 2, 3, 4, 5]])
    moved = [[5, 3, 4, 0, 0], [7, 6, 6, 0, 0], [1, 2, 3, 4, 5]]
    assert padding_last(tokens).tolist() == moved
    assert padding_last(tokens, 9).tolist() == tokens.tolist()
    assert padding_last(torch.tensor([[4, 1, 0]]), 4).tolist() == [[1, 0, 4]]


@pytest.mark.parametrize("reader", READERS)
def test_an_honest_mistake_of_reading_is_named(reader):
    model, (source, target) = make_model(max_len=S), draw()
    source[1] = 0
    with pytest.raises(ValueError, match=r"real symbol in rows \[1\], got none"):
        reader(model, source)
    source[1, 0] = 4
    with pytest.raises(ValueError, match="model must be in evaluation mode"):
        reader(model.train(), source)
    past = reader(model.eval(), source)
    past.read(target[:, :5])
    with pytest.raises(ValueError, match=r"max_len.* got .*6 and max_len=5"):
        past.read(target[:, 5:6])
    with pytest.raises(ValueError, match="must hold integers from 0 to 10, got 11"):
        reader(model, source).read(torch.full((B, 1), TARGETS))


# ---- greedy ----------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("seed", range(4))
def test_greedy_writes_the_same_tokens_with_and_without_a_cache(seed, reader):
    torch.manual_seed(seed)
    model, (source, _) = make_model(norm="pre" if seed % 2 else "post"), draw()
    several = set()
    for end in (None, *range(2, TARGETS)):
        settings = {"start": START, "end": end, "max_new_tokens": 9}
        written = cached_greedy_decode(model, source, **settings, reader=reader)
        assert written.tolist() == greedy_decode(model, source, **settings).tolist()
        several |= set(written.unique().tolist())
    assert len(several) > 2, "the test sees little"


@pytest.mark.parametrize("decode", [greedy_decode, cached_greedy_decode])
def test_greedy_writes_for_padding_in_front_what_it_writes_for_padding_behind(decode):
    model, (source, _) = make_model(), draw()
    front = source.flip(1)  # padding is in row 1 alone
    behind = padding_last(front)
    assert not torch.equal(front, behind)
    given = {"start": 1, "max_new_tokens": T}
    assert torch.equal(decode(model, front, **given), decode(model, behind, **given))


def test_greedy_uses_the_cache_unless_told_otherwise():
    model, (source, _) = make_model(), draw()
    sizes = []
    model.decoder.layers[0].feed_forward.register_forward_hook(
        lambda part, given, output: sizes.append(given[0].shape[1])
    )
    settings = {"start": START, "max_new_tokens": 4}
    cached_greedy_decode(model, source, **settings)
    cached_greedy_decode(model, source, **settings, reader=Rereader)
    assert sizes == [1, 1, 1, 1] + [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_greedy_leaves_mode_and_source_alone_and_keeps_its_dtype(dtype):
    model, (source, _) = make_model(dropout=0.5).train(), draw()
    source, before = source.to(dtype), source.clone()
    settings = {"start": START, "max_new_tokens": 6}
    written = cached_greedy_decode(model, source, **settings)
    assert written.dtype == dtype and model.training
    assert written.tolist() == cached_greedy_decode(model, source, **settings).tolist()
    assert source.tolist() == before.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": TARGETS}, "start must be an integer from 0 to 10, got 11"),
        ({"end": -1}, "end must be an integer from 0 to 10, got -1"),
        ({"end": ""}, "end must be an integer from 0 to 10, got ''"),
        ({"max_new_tokens": 0}, "max_new_tokens must be .* from 1 to 16, got 0"),
        ({"max_new_tokens": 17}, "max_new_tokens must be .* from 1 to 16, got 17"),
    ],
)
def test_an_honest_mistake_of_greedy_decoding_is_named(given, message):
    settings = {"start": START, "end": 2, "max_new_tokens": 9} | given
    with pytest.raises((TypeError, ValueError), match=message):
        cached_greedy_decode(make_model(), draw()[0], **settings)
