"""ch12/segments.py: published shifts, and what chapter 12 trains."""

from functools import partial
from itertools import pairwise
from math import log

import pytest
import torch

from annotated.chapters.ch12 import segments as recipe
from annotated.chapters.ch12.segments import (
    MODELS,
    SEGMENTS,
    SHIFTS,
    RememberingGPT,
    bits_by_segment_position,
    four_terms,
    labml_shift,
    labml_shift_changed,
    library_ids,
    paper_shift,
    shift_by_index,
    slow_attention,
    token_bits,
    train_on_segments,
)
from annotated.data.text import standard_library
from annotated.gpt import GPT, GPTConfig
from annotated.segments import segments
from annotated.transformer_xl import RelativeMultiHeadAttention

SHAPES = [(1, 1), (1, 4), (3, 3), (3, 5), (4, 6), (5, 5)]


def test_the_loop_looks_up_the_distance_of_each_pair():
    # two queries, the last of three positions; columns are distances 3, 2, 1, 0, −1
    scores = torch.tensor([[3.0, 2, 1, 0, -1], [3, 2, 1, 0, -1]])
    assert shift_by_index(scores).tolist() == [[1, 0, -1], [2, 1, 0]]


@pytest.mark.parametrize(("t", "s"), SHAPES)
def test_which_shift_is_exact_where(t, s):
    scores = torch.randn(t, s + t)
    visible = torch.ones(t, s, dtype=torch.bool).tril(s - t)
    wanted = shift_by_index(scores)
    assert torch.equal(labml_shift(scores), wanted)
    found = paper_shift(scores)
    assert torch.equal(found[visible], wanted[visible])
    assert not (found == wanted)[~visible].any()
    assert not (labml_shift_changed(scores) == wanted).any()


def test_the_proposed_change_moves_all_by_the_number_of_queries():
    scores = torch.arange(1.0, 25).view(3, 8)
    assert labml_shift_changed(scores)[0].tolist() == [7, 8, 0, 9, 10]
    assert labml_shift(scores)[0].tolist() == [4, 5, 6, 7, 8]
    assert len(SHIFTS) == 4


@pytest.fixture
def attention():
    torch.manual_seed(0)
    module = RelativeMultiHeadAttention(10, 5)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


@pytest.mark.parametrize("memory", [0, 4])
def test_the_four_terms_make_what_the_module_makes(attention, memory):
    key = torch.randn(2, memory + 3, 10, requires_grad=True)
    inputs = [key, *attention.parameters()]
    upstream = torch.randn(2, 3, 10)
    outputs, gradients = [], []
    for function in (attention, partial(slow_attention, attention)):
        outputs.append(function(key[:, memory:], key))
        loss = (outputs[-1] * upstream).sum()
        gradients.append(torch.autograd.grad(loss, inputs))
    torch.testing.assert_close(*outputs, rtol=0, atol=2e-5)
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=4e-5)


def test_each_term_depends_on_what_it_should(attention):
    key = torch.randn(2, 7, 10)
    terms = four_terms(attention, key[:, 4:], key)
    assert [*terms] == ["a", "b", "c", "d"]
    assert {tuple(term.shape) for term in terms.values()} == {(2, 5, 3, 7)}
    moved = four_terms(attention, key[:, 3:6], key)  # other queries
    for name, same in zip("abcd", (False, False, True, True), strict=True):
        assert torch.equal(terms[name], moved[name]) == same, name
    d = terms["d"][0, 0]
    assert torch.equal(d[0, 1], d[1, 2])  # distance 3, whichever the pair
    attention.content_bias.data.zero_()
    assert not four_terms(attention, key, key)["c"].any()


def test_models_are_of_equal_size_and_the_vanilla_one_is_no_smaller():
    sizes = {
        k: sum(p.numel() for p in make().parameters()) for k, make in MODELS.items()
    }
    assert sizes["relative, no memory"] == sizes["Transformer-XL"]
    assert 1 <= sizes["vanilla"] / sizes["Transformer-XL"] < 1.03
    assert MODELS["Transformer-XL"]().config.mem_len == SEGMENTS["length"]
    assert isinstance(MODELS["vanilla"](), GPT)
    assert sizes["numbered, with memory"] == sizes["vanilla"]


def test_ids_are_the_characters_of_the_text():
    ids = library_ids("validation")
    text = standard_library("validation")
    assert len(ids) == len(text)
    assert (ids[:200] == ids[0]).tolist() == [c == text[0] for c in text[:200]]


@pytest.fixture
def short(monkeypatch):
    """A text that a test can wait for."""
    text = torch.arange(96).repeat(20)
    monkeypatch.setattr(recipe, "library_ids", lambda split: text)
    monkeypatch.setitem(SEGMENTS, "batch", 4)


@pytest.mark.parametrize("kind", MODELS)
def test_training_follows_its_seed_and_learns(short, kind):
    model, seconds = train_on_segments(kind, seed=1, steps=8)
    again, _ = train_on_segments(kind, seed=1, steps=8)
    other, _ = train_on_segments(kind, seed=2, steps=8)
    found, same, differs = (bits_by_segment_position(m) for m in (model, again, other))
    assert found.shape == (SEGMENTS["length"],)
    assert torch.equal(found, same)
    assert not torch.equal(found, differs)
    assert found.mean() < log(96) / log(2)
    assert 0 < seconds < 60
    assert model.training


def test_segments_are_read_in_order_from_where_the_seed_says(short, monkeypatch):
    read = []

    def fit(model, loss, batches, *rest, **extras):
        read.append((model, batches))
        return [{"cpu_seconds": 0.0}]

    monkeypatch.setattr(recipe, "fit", fit)
    for seed in (3, 4):
        train_on_segments("vanilla", seed, steps=5)
    (one, batches), (other, elsewhere) = read
    assert len(batches) == 5
    for (_, target), (tokens, _) in pairwise(batches):
        assert torch.equal(target[:, -1], tokens[:, 0])
    assert not torch.equal(batches[0][0], elsewhere[0][0])
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_bits_are_those_of_the_loss_with_memories():
    xl = MODELS["Transformer-XL"]()
    text = torch.randint(0, 96, (101,))
    batches = list(segments(text, 2, 20))
    found = list(token_bits(xl, batches))
    losses, memories = xl.loss(*batches[0])
    torch.testing.assert_close(found[0], losses.detach() / log(2))
    losses, _ = xl.loss(*batches[1], memories)
    torch.testing.assert_close(found[1], losses.detach() / log(2))
    gpt = MODELS["vanilla"]()
    (first, *_) = token_bits(gpt, batches)
    logits = gpt(batches[0][0]).log_softmax(-1)
    wanted = -logits.gather(-1, batches[0][1][..., None])[..., 0] / log(2)
    torch.testing.assert_close(first, wanted.detach())


@pytest.fixture
def remembering():
    torch.manual_seed(0)
    config = GPTConfig(11, d_model=10, heads=5, layers=2, d_ff=14, max_len=4)
    return RememberingGPT(config).double().eval()


def test_a_numbered_memory_begins_as_a_gpt_and_numbers_each_segment_from_0(remembering):
    gpt = GPT(remembering.config).double().eval()
    gpt.load_state_dict(remembering.state_dict())
    tokens, target = torch.randint(11, (2, 3, 4))
    losses, memories = remembering.loss(tokens, target)
    log_p = gpt(tokens).log_softmax(-1)
    wanted = -log_p.gather(-1, target[..., None])[..., 0]
    torch.testing.assert_close(losses, wanted)
    assert memories.shape == (2, 3, 4, 10)
    assert not memories.requires_grad
    torch.testing.assert_close(memories[0], gpt.embed(tokens))  # numbers and all


def test_a_numbered_memory_is_attended_to_layer_by_layer(remembering):
    read = torch.randint(11, (2, 3, 4))
    _, memories = remembering.loss(read[0], read[0])
    losses, kept = remembering.loss(read[1], read[1], memories)
    x, states = remembering.embed(read[1]), []
    for layer, memory in zip(remembering.blocks.layers, memories, strict=True):
        states.append(x)
        attend, map_each = layer.residuals
        known = torch.cat([memory, x], dim=1)
        hidden = torch.ones(4, 8, dtype=torch.bool).tril(4)[None, None]
        given = attend.norm(x), attend.norm(known)
        x = map_each(x + layer.attention(*given, mask=hidden), layer.feed_forward)
    log_p = remembering.output(remembering.blocks.norm(x)).log_softmax(-1)
    wanted = -log_p.gather(-1, read[1][..., None])[..., 0]
    torch.testing.assert_close(losses, wanted)
    torch.testing.assert_close(kept, torch.stack(states))  # the last four alone


def test_to_a_numbered_memory_a_segment_and_the_one_before_look_alike(remembering):
    # the query at the last number sees each number twice: swap the two segments, but
    # for the query itself, and the first layer's sums stay the same
    remembering.blocks.layers = remembering.blocks.layers[:1]
    one, other = torch.randint(11, (2, 1, 4))
    other[:, -1] = one[:, -1]
    target = torch.zeros(1, 4, dtype=torch.long)
    last = []
    for before, after in ((one, other), (other, one)):
        _, memories = remembering.loss(before, target)
        losses, _ = remembering.loss(after, target, memories)
        last.append(losses[0, -1])
    assert not torch.equal(one, other)
    torch.testing.assert_close(*last)
