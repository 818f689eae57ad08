"""annotated/decoding.py: what is drawn, from which distribution, and what is kept."""

from functools import partial

import pytest
import torch

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch05.distance import ALiBiAttention
from annotated.chapters.ch13.lsh import LSHText
from annotated.decoding import (
    KeyValueCache,
    keep_top_k,
    keep_top_p,
    sample,
    tempered,
)
from annotated.gpt import GPT, GPTConfig
from annotated.positions import RotaryMultiHeadAttention
from annotated.recipes.text_models import PastAverage
from annotated.transformer_xl import RelativeMultiHeadAttention
from annotated.variants import SlidingWindowAttention, cache_numbers

# b 3, prompts of 4, a context of 12, 11 tokens
B, S, V, CONTEXT = 3, 4, 11, 12
CHANCES = torch.tensor([0.125, 0.5, 0.0625, 0.25, 0.0625])


def make_model(attention=None, **changes) -> GPT:
    given = {"d_model": 8, "heads": 2, "layers": 3, "d_ff": 12, "max_len": CONTEXT}
    model = GPT(GPTConfig(V, **given | changes), attention).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or "table" in name:
                parameter.add_(torch.randn_like(parameter) * 0.5)
            else:
                parameter.mul_(2.0)
    return model


def draw_prompt(length: int = S) -> torch.Tensor:
    return torch.randint(V, (B, length))


def seed(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


class Fixed(GPT):
    """A model that gives the same distribution at its last position, and counts."""

    def __init__(self, chances=CHANCES, **changes):
        sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "max_len": CONTEXT}
        super().__init__(GPTConfig(len(chances), **sizes | changes))
        self.chances, self.seen, self.modes = chances, [], []

    def forward(self, tokens):
        self.seen.append(tokens.clone())
        self.modes.append((self.training, torch.is_grad_enabled()))
        logits = torch.zeros(*tokens.shape, len(self.chances))
        logits[:, -1] = self.chances.log()
        return logits


# ---- operations on a distribution -----------------------------------------------


def test_temperature_divides_the_logits():
    logits = torch.randn(2, 3, 5, dtype=torch.float64)
    for temperature in (0.5, 1, 2.5):
        powers = logits.exp() ** (1 / temperature)
        wanted = powers / powers.sum(dim=-1, keepdim=True)
        assert torch.allclose(tempered(logits, temperature), wanted)


@pytest.mark.parametrize("temperature", [1e-30, 1e-39, 5e-324])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_however_low_the_temperature_the_largest_are_taken(temperature, dtype):
    logits = torch.tensor([[1.0, 3.0, -torch.inf, 3.0], [-9.0, -7.0, 0.0, -8.0]])
    found = tempered(logits.to(dtype), temperature)
    assert found.dtype == dtype
    assert found.tolist() == [[0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("k", "kept"),
    [(1, [1]), (2, [1, 3]), (3, [0, 1, 3]), (5, [0, 1, 2, 3, 4])],
)
def test_the_k_likeliest_share_the_whole(k, kept):
    share = keep_top_k(CHANCES, k)
    assert share.nonzero().flatten().tolist() == kept
    assert torch.allclose(share[kept], CHANCES[kept] / CHANCES[kept].sum())


def test_among_equals_exactly_k_are_kept():
    assert (keep_top_k(torch.full((2, 6), 1 / 6), 4) > 0).sum(dim=1).tolist() == [4, 4]


@pytest.mark.parametrize(
    ("p", "kept"),
    [
        (0.01, [1]),
        (0.5, [1]),
        (0.51, [1, 3]),
        (0.75, [1, 3]),
        (0.8, [0, 1, 3]),
        (0.875, [0, 1, 3]),
        (1, [0, 1, 2, 3, 4]),
    ],
)
def test_the_fewest_that_reach_p_share_the_whole(p, kept):
    share = keep_top_p(CHANCES, p)
    assert share.nonzero().flatten().tolist() == kept
    assert torch.allclose(share[kept], CHANCES[kept] / CHANCES[kept].sum())


def test_each_row_has_a_nucleus_of_its_own():
    rows = torch.stack([CHANCES, torch.full((5,), 0.2), CHANCES.flip(0)])[None]
    counts = (keep_top_p(rows, 0.6) > 0).sum(dim=-1)
    assert counts.tolist() == [[2, 3, 2]]
    assert torch.equal(keep_top_p(rows, 0.6)[0, 2], keep_top_p(CHANCES, 0.6).flip(0))
    counts = (keep_top_k(rows, 2) > 0).sum(dim=-1)
    assert counts.tolist() == [[2, 2, 2]]
    for kept in (keep_top_p(rows, 0.6), keep_top_k(rows, 2)):
        assert torch.allclose(kept.sum(dim=-1), torch.ones(1, 3))


def test_with_p_of_one_not_even_the_smallest_is_lost():
    rows = torch.tensor([[1.0, 1e-30, 0.3, 1e-12]])
    assert (keep_top_p(rows, 1.0) > 0).all()


def test_what_is_given_stays_as_it_is():
    before = CHANCES.clone()
    keep_top_k(CHANCES, 2), keep_top_p(CHANCES, 0.6), tempered(CHANCES, 0.5)
    assert torch.equal(CHANCES, before)


# ---- the cache ------------------------------------------------------------------


ATTENTIONS = {
    "plain": None,
    "rotary": partial(RotaryMultiHeadAttention, 8, 2, causal=True),
    "grouped": partial(MultiHeadAttention, 8, 4, causal=True, kv_heads=2),
    "rotary, grouped": partial(
        RotaryMultiHeadAttention, 8, 4, causal=True, kv_heads=1, base=100.0
    ),
    "ALiBi": partial(ALiBiAttention, 8, 2, causal=True),
    "relative": partial(RelativeMultiHeadAttention, 8, 2),
    "average": partial(PastAverage, 8, 2, causal=True),
}


@pytest.mark.parametrize("pieces", [[12], [1] * 12, [4, 1, 2, 5]])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_in_pieces_the_logits_are_those_of_the_whole(name, pieces):
    model = make_model(ATTENTIONS[name])
    tokens, cache, parts = draw_prompt(CONTEXT), KeyValueCache(model), []
    for part in tokens.split(pieces, dim=1):
        parts.append(cache.read(part))
        assert cache.length == sum(p.shape[1] for p in parts)
    assert torch.allclose(torch.cat(parts, dim=1), model(tokens), atol=1e-10)
    heads = model.blocks.layers[0].attention.kv_heads
    assert cache.kept[0][0].shape[1] == heads, "no shared key is kept twice"


class Careless(GPT):
    """Its attention sees what comes later."""

    def __init__(self):
        super().__init__(
            GPTConfig(V, d_model=8, heads=2, max_len=CONTEXT),
            lambda: MultiHeadAttention(8, 2),
        )


@pytest.mark.parametrize(
    "make", [Careless, lambda: LSHText(GPTConfig(V, 8, 2, max_len=CONTEXT), chunk=4)]
)
def test_what_cannot_be_kept_is_refused_and_read_without_a_cache(make):
    model, given = make(), {"max_new_tokens": 3, "generator": seed()}
    message = "^model must have MultiHeadAttention with causal=True, .* cache=False"
    with pytest.raises(ValueError, match=message):
        sample(model, draw_prompt(), **given)
    assert sample(model, draw_prompt(), **given, cache=False).shape == (B, 3)


def test_only_what_is_new_is_mapped():
    model, lengths = make_model(), []
    for layer in model.blocks.layers:
        for part in (layer.feed_forward, layer.attention.key_map):
            part.register_forward_hook(
                lambda _, args, out: lengths.append(out.shape[1])
            )
    cache = KeyValueCache(model)
    cache.read(draw_prompt(5))
    cache.read(draw_prompt(1))
    assert lengths == [5] * 6 + [1] * 6


# ---- sampling -------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"temperature": 0.5},
        {"top_k": 1},
        {"top_k": 3, "temperature": 2.0},
        {"top_p": 0.7},
        {"temperature": 1.5, "top_k": 8, "top_p": 0.9},
    ],
)
def test_tokens_are_the_same_with_the_cache_and_without(given):
    model, prompt = make_model(), draw_prompt()
    rows = [
        sample(model, prompt, max_new_tokens=8, generator=seed(3), cache=cache, **given)
        for cache in (True, False)
    ]
    assert torch.equal(*rows) and rows[0].shape == (B, 8)
    varied = len(rows[0].unique()) > 2 or given == {"top_k": 1}
    assert varied, "a model that repeats itself proves little"


def loop(model, prompt, steps, generator, temperature, top_k, top_p):
    """One sequence, by the words of the definition."""
    written = prompt.tolist()
    for _ in range(steps):
        logits = model(torch.tensor([written]))[0, -1]
        chances = (logits / temperature).softmax(dim=0).tolist()
        order = sorted(range(V), key=lambda i: -chances[i])[:top_k]
        whole, mass, kept = sum(chances[i] for i in order), 0.0, []
        for i in order:
            if mass < top_p:
                kept.append(i)
            mass += chances[i] / whole
        share = torch.zeros(1, V, dtype=torch.float64)
        for i in kept:
            share[0, i] = chances[i]
        share /= share.sum()
        written.append(torch.multinomial(share, 1, generator=generator).item())
    return written[len(prompt) :]


@pytest.mark.parametrize("number", range(5))
def test_temperature_comes_first_then_k_then_p(number):
    model, prompt = make_model(), draw_prompt()[:1]
    given = {"temperature": 1.7, "top_k": 5, "top_p": 0.8}
    written = sample(model, prompt, max_new_tokens=8, generator=seed(number), **given)
    with torch.no_grad():
        wanted = loop(model, prompt[0], 8, seed(number), **given)
    assert written[0].tolist() == wanted


def test_symbols_come_as_often_as_they_should():
    model = Fixed()
    prompt = torch.zeros(4000, 1, dtype=torch.long)
    drawn = sample(model, prompt, max_new_tokens=1, generator=seed(), cache=False)
    shares = torch.bincount(drawn.flatten(), minlength=5) / 4000
    assert torch.allclose(shares, CHANCES, atol=0.03)


def test_a_seed_writes_the_same_again_and_another_does_not():
    model, prompt = make_model(), draw_prompt()
    first, again, other = (
        sample(model, prompt, max_new_tokens=8, generator=seed(n)) for n in (1, 1, 2)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_prompt_is_read_and_not_returned():
    model, prompt = Fixed(), torch.tensor([[4, 3], [2, 1]])
    written = sample(model, prompt, max_new_tokens=3, generator=seed(), cache=False)
    assert written.shape == (2, 3)
    assert [seen.shape[1] for seen in model.seen] == [2, 3, 4]
    assert torch.equal(model.seen[-1], torch.cat([prompt, written[:, :2]], dim=1))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_prompts_of_several_lengths_are_written_on_as_if_alone(positions, cache):
    model, pad = make_model(positions=positions, heads=4), 5
    prompt = torch.tensor([[5, 5, 3, 7], [1, 2, 3, 4], [5, 9, 9, 5]])
    for given in ({"max_new_tokens": 8}, {"max_new_tokens": 20, "slide": True}):
        given |= {"cache": cache, "top_k": 1}
        written = sample(model, prompt, pad=pad, **given)
        for row, tokens in zip(prompt, written, strict=True):
            alone = sample(model, row[row != pad][None], **given)
            assert torch.equal(tokens[None], alone)
    with pytest.raises(ValueError, match=r"real symbol in rows \[1\], got none"):
        sample(model, torch.tensor([[1, 2], [5, 5]]), pad=pad, max_new_tokens=1)


def test_columns_of_padding_alone_take_no_room():
    model, prompt = make_model(), torch.tensor([[5, 5, 5, 1], [5, 5, 5, 5]])
    prompt[1, 0] = 2
    assert sample(model, prompt, pad=5, max_new_tokens=CONTEXT - 1).shape == (2, 11)


@pytest.mark.parametrize(("pad", "behind"), [(None, 0), (2, 2)])
def test_each_row_stops_at_the_end_symbol(pad, behind):
    chances = torch.tensor([0.5, 0.0, 0.0, 0.0, 0.5])
    model, prompt = Fixed(chances), torch.ones(4, 3, dtype=torch.long)
    given = {"cache": False, "max_new_tokens": 9, "generator": seed(1)}
    written = sample(model, prompt, end=0, pad=pad, **given).tolist()
    lengths = [row.index(0) + 1 for row in written]
    assert len(set(lengths)) > 1 and max(lengths) == len(written[0]) < 9
    for row, length in zip(written, lengths, strict=True):
        assert row[:length] == [4] * (length - 1) + [0]
        assert row[length:] == [behind] * (len(row) - length)


def test_end_and_pad_are_ids():
    for name, wrong in (("end", V), ("pad", -1)):
        with pytest.raises(ValueError, match=f"{name} must be .*10, got {wrong}"):
            sample(make_model(), draw_prompt(), max_new_tokens=1, **{name: wrong})


def test_beside_padding_a_model_is_cached_only_if_asked():
    model, seen = make_model(), []
    model.register_forward_hook(lambda *_: seen.append(1))
    for cache in (True, False):
        seen.clear()
        sample(model, torch.tensor([[5, 1]]), pad=5, max_new_tokens=2, cache=cache)
        assert len(seen) == (0 if cache else 2)


def test_it_slides_over_the_last_positions_when_asked_to():
    model, prompt = make_model(), draw_prompt()
    steps = 2 * CONTEXT
    given = {"max_new_tokens": steps, "slide": True, "top_p": 0.9}
    rows = [
        sample(model, prompt, generator=seed(5), cache=cache, **given)
        for cache in (True, False)
    ]
    assert torch.equal(*rows)
    written = torch.cat([prompt, rows[0]], dim=1)
    generator = seed(5)
    with torch.no_grad():
        for i in range(S, S + steps):
            window = written[:, max(0, i - CONTEXT) : i]
            chances = keep_top_p(model(window)[:, -1].softmax(dim=-1), 0.9)
            drawn = torch.multinomial(chances, 1, generator=generator)
            assert torch.equal(drawn, written[:, i : i + 1])


def test_a_prompt_longer_than_the_context_can_slide_too():
    model = Fixed()
    prompt = torch.arange(5).repeat(1, 4)
    sample(model, prompt, max_new_tokens=2, generator=seed(), slide=True)
    assert torch.equal(model.seen[0], prompt[:, -CONTEXT:])


def test_it_writes_without_dropout_or_gradients_and_leaves_modes_alone():
    model, prompt = Fixed(dropout=0.5).train(), torch.tensor([[4, 3]])
    before = prompt.clone()
    sample(model, prompt, max_new_tokens=2, cache=False)
    assert set(model.modes) == {(False, False)} and model.training
    assert torch.equal(prompt, before)
    model = make_model(dropout=0.5).train()
    rows = [
        sample(model, draw_prompt()[:1] * 0, max_new_tokens=8, top_k=1)
        for _ in range(2)
    ]
    assert torch.equal(*rows) and model.training
    assert not rows[0].requires_grad


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_what_is_written_has_the_dtype_of_the_prompt(dtype):
    written = sample(make_model(), draw_prompt().to(dtype), max_new_tokens=3)
    assert written.dtype == dtype


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_new_tokens": 9}, "prompt_and_new_tokens must be at most max_len, got "),
        ({"prompt": draw_prompt(0)}, "one must be at most prompt_length, got one=1 an"),
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer ≥ 1, got 0"),
        ({"temperature": 0}, "temperature must be above 0, got 0; top_k=1 takes"),
        (
            {"temperature": -1},
            "temperature must be a number above 0 and fin",
        ),
        ({"top_k": 12}, "k must be an integer from 1 to 11, got 12"),
        ({"top_p": -0.5}, "p must be a number above 0 and finite, got -0.5"),
        ({"top_p": 1.1}, "p must be at most one, got p=1.1 and one=1"),
        ({"prompt": draw_prompt() + V}, "tokens must hold integers from 0 to 10"),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_an_honest_mistake_is_named(given, message, cache):
    given = {"prompt": draw_prompt(), "max_new_tokens": 2, "cache": cache} | given
    with pytest.raises(ValueError, match=message):
        sample(make_model(), **given)


def test_a_windowed_cache_keeps_its_window_alone():
    window = partial(SlidingWindowAttention, 8, 2, window=3, causal=True)
    model, prompt = make_model(window), draw_prompt(10)
    cache, parts = KeyValueCache(model), prompt.split([1, 4, 1, 2, 2], dim=1)
    logits = torch.cat([cache.read(part) for part in parts], dim=1)
    torch.testing.assert_close(logits, model(prompt))
    kept = sum(one.numel() for pair in cache.kept for one in pair)
    assert kept == B * cache_numbers(model.config, 10, window=3)
    padded = torch.tensor([[5, 5, 5, 5, 1, 2], [1, 2, 3, 4, 6, 7]])
    given = {"max_new_tokens": 4, "pad": 5, "top_k": 1}
    written = sample(model, padded, cache=True, **given)
    assert torch.equal(written, sample(model, padded, cache=False, **given))


def test_a_cache_says_what_does_not_fit():
    cache = KeyValueCache(make_model())
    cache.read(draw_prompt(10))
    with pytest.raises(ValueError, match="length must be at most max_len, got leng"):
        cache.read(draw_prompt(3))
    with pytest.raises(ValueError, match="sequences must be one of 3, got 2"):
        cache.read(draw_prompt(1)[:2])
    cache.read(draw_prompt(2))  # nothing was spoilt
    with pytest.raises(ValueError, match="model must be in evaluation mode"):
        KeyValueCache(make_model().train()).read(draw_prompt())
