"""annotated/speculative.py: what is written has the model's distribution, by χ²."""

from functools import partial
from itertools import product

import pytest
import torch
from torch import nn

from annotated.decoding import KeyValueCache, sample
from annotated.gpt import GPT, GPTConfig
from annotated.speculative import (
    acceptance,
    expected_speedup,
    expected_tokens,
    residual,
    rewind,
    speculative_sample,
    speculative_step,
)
from annotated.variants import SlidingWindowAttention

P = torch.tensor([0.1, 0.2, 0.3, 0.4])
Q = torch.tensor([0.4, 0.3, 0.2, 0.1])
BELOW_ZERO = torch.tensor([[-0.5, 0.5, 0.5, 0.5]] * 2)  # though rows sum to 1
V, CONTEXT = 7, 24
# what χ² stays below 999 times of a thousand, by its degrees of freedom
MOST = {3: 16.27, 18: 42.31}


def seed(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def chi2(counts: torch.Tensor, chances: torch.Tensor) -> float:
    wanted = counts.sum(dim=-1, keepdim=True) * chances
    assert wanted.min() > 5  # or χ² says little
    return ((counts - wanted) ** 2 / wanted).sum().item()


def gpt(number: int, **changes) -> GPT:
    torch.manual_seed(number)
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "max_len": CONTEXT}
    model = GPT(GPTConfig(V, **sizes | changes)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return model


def table(chances: torch.Tensor) -> nn.Embedding:
    """A model that looks at the last token alone."""
    return nn.Embedding.from_pretrained(chances.log())


# ---- one step ------------------------------------------------------------------


def test_the_first_token_is_distributed_as_by_the_model():
    generator, counts, rows = seed(), torch.zeros(4), torch.stack([P, P])
    for guess in torch.multinomial(Q, 3000, replacement=True, generator=seed(1)):
        first = speculative_step(guess[None], Q[None], rows, generator)[0]
        counts[first] += 1
    assert chi2(counts, P) < MOST[3]


def test_what_is_kept_and_what_stands_in_add_up_to_the_model():
    for draft, target in product(torch.rand(5, V).softmax(dim=-1), repeat=2):
        kept = torch.minimum(draft, target)
        refused = 1 - acceptance(draft, target)
        whole = kept + refused * residual(draft, target)
        torch.testing.assert_close(whole, target)


def test_what_two_distributions_share():
    assert acceptance(Q, P).item() == pytest.approx(0.6)
    rows = acceptance(torch.stack([P, Q, P]), torch.stack([P, P, P.flip(0)]))
    assert rows.tolist() == pytest.approx([1.0, 0.6, 0.6])
    found = residual(torch.stack([Q, P]), torch.stack([P, P]))
    torch.testing.assert_close(found[0], torch.tensor([0.0, 0.0, 0.25, 0.75]))
    assert torch.equal(found[1], P)  # nothing is left, and nothing is divided by 0


def test_what_follows_a_refusal_is_void():
    sure = torch.eye(4)
    guesses = torch.tensor([2, 1, 3])
    target = sure[[2, 0, 3, 1]]  # refuses the second, would have kept the third
    found = speculative_step(guesses, sure[guesses], target, seed())
    assert found.tolist() == [2, 0]
    found = speculative_step(guesses, sure[guesses], sure[[2, 1, 3, 1]], seed())
    assert found.tolist() == [2, 1, 3, 1]


def test_each_guess_is_held_against_its_own_row():
    draft, target = torch.stack([P, Q]), torch.stack([P, P, P])
    kept = torch.zeros(3)
    generator = seed()
    for _ in range(2000):
        guesses = torch.multinomial(draft, 1, generator=generator)[:, 0]
        kept[len(speculative_step(guesses, draft, target, generator)) - 1] += 1
    assert kept[0] == 0  # the first row is the model's own
    assert kept[2] / kept.sum() == pytest.approx(0.6, abs=0.04)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": P.expand(2, -1)}, "rows_of_target must be one of 3, got 2"),
        ({"target": torch.rand(3, 5)}, r"target must have the shape \(_, v\) with v=4"),
        ({"guesses": torch.tensor([1, 4])}, "guesses must hold integers from 0 to 3"),
        ({"draft": Q.log().expand(2, -1)}, "draft must hold probabilities, and each"),
        ({"draft": BELOW_ZERO}, "draft must hold probabilities, and each row"),
        ({"target": 2 * P.expand(3, -1)}, "target must hold probabilities, and each"),
        ({"draft": torch.eye(4)[:2]}, "guesses must be drawn from draft"),
        ({"guesses": torch.tensor([[1, 2]])}, r"guesses must have the shape \(t\)"),
    ],
)
def test_a_step_that_can_not_be_is_named(changes, message):
    given = {"guesses": torch.tensor([1, 2]), "draft": Q.expand(2, -1)}
    given |= {"target": P.expand(3, -1)} | changes
    with pytest.raises(ValueError, match=message):
        speculative_step(**given)


# ---- what is expected ------------------------------------------------------------


def test_tokens_of_a_reading_are_as_the_equation_says():
    generator = seed()
    for n, draft in product((1, 3, 6), (P, Q, torch.full((4,), 0.25))):
        a = acceptance(draft, P).item()
        lengths = []
        for _ in range(600):
            guesses = torch.multinomial(draft, n, True, generator=generator)
            rows = draft.expand(n, -1), P.expand(n + 1, -1)
            lengths.append(float(len(speculative_step(guesses, *rows, generator))))
        lengths = torch.tensor(lengths)
        error = 4 * lengths.std().item() / 600**0.5
        wanted = expected_tokens(a, n)
        assert lengths.mean().item() == pytest.approx(wanted, abs=error + 1e-4)
        if a < 0.99:
            assert wanted == pytest.approx((1 - a ** (n + 1)) / (1 - a))


def test_ends_of_what_is_expected():
    assert expected_tokens(0.0, 5) == 1 and expected_tokens(1.0, 5) == 6
    assert expected_tokens(0.7, 0) == 1
    assert expected_speedup(1.0, 4, 0.0) == 5
    assert expected_speedup(0.8, 3, 0.1) == pytest.approx(2.952 / 1.3)
    assert expected_speedup(0.1, 4, 0.5) < 1  # a draft can cost more than it gives


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (expected_tokens, (1.1, 2), "acceptance must be from 0 to 1, got 1.1"),
        (expected_tokens, (0.5, -1), "guesses must be an integer ≥ 0, got -1"),
        (expected_speedup, (0.5, 2, -0.1), "cost must be at least 0, got -0.1"),
    ],
)
def test_what_can_not_be_expected_is_named(function, given, message):
    with pytest.raises(ValueError, match=message):
        function(*given)


# ---- with models ---------------------------------------------------------------

TARGET = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.6, 0.3]])
DRAFT = torch.tensor([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.3, 0.2, 0.5]])


def transitions(tokens: torch.Tensor) -> torch.Tensor:
    """Count which token came after which two: ``(v, v, v)``."""
    counts = torch.zeros(3, 3, 3)
    places = tokens[:-2], tokens[1:-1], tokens[2:]
    return counts.index_put_(places, torch.ones(len(tokens) - 2), accumulate=True)


def written(guesses: int) -> torch.Tensor:
    options = {"max_new_tokens": 2500, "guesses": guesses, "generator": seed()}
    start = torch.tensor([[0]])
    return speculative_sample(table(TARGET), table(DRAFT), start, **options).tokens[0]


@pytest.mark.parametrize("guesses", [0, 1, 3])
def test_every_token_is_distributed_as_by_the_model(guesses):
    """Whatever stands before it, and wherever in a step it stands."""
    counts = transitions(written(guesses)).flatten(0, 1)
    assert chi2(counts, TARGET.repeat(3, 1)) < MOST[18]


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("draft", ["small", "table", "itself"])
def test_greedy_tokens_are_those_of_the_model_alone(draft, cache):
    model = gpt(0)
    drafts = {
        "small": gpt(1, layers=1, d_model=4, positions="rotary"),
        "table": table(torch.rand(V, V, generator=seed()).double()),
        "itself": model,
    }
    for number in range(3):
        prompt = torch.randint(V, (1, 4), generator=seed(number))
        wanted = sample(model, prompt, max_new_tokens=20, top_k=1)
        options = {"max_new_tokens": 20, "guesses": 3, "top_k": 1, "cache": cache}
        found = speculative_sample(model, drafts[draft], prompt, **options)
        assert torch.equal(found.tokens, wanted)
        assert sum(found.kept) + len(found.kept) == 20
        if draft == "itself":
            assert found.kept == [3, 3, 3, 3, 3]


def test_a_cache_changes_nothing():
    models = gpt(0, positions="rotary", kv_heads=1), gpt(1, layers=1)
    kept = []
    for number in range(5):
        found = [
            speculative_sample(
                *models,
                torch.tensor([[1, 2]]),
                max_new_tokens=22,
                guesses=4,
                generator=seed(number),
                cache=cache,
            )
            for cache in (True, False)
        ]
        assert torch.equal(found[0].tokens, found[1].tokens)
        assert found[0].kept == found[1].kept
        kept += found[0].kept
    assert {0, 1, 2} <= {*kept}  # some were refused, so that something was forgotten


def test_temperature_and_nucleus_are_those_of_sampling():
    """Where they leave the model one token, it is written."""
    model, draft, prompt = gpt(0), gpt(1), torch.tensor([[3]])
    wanted = sample(model, prompt, max_new_tokens=9, top_k=1)
    for options in ({"temperature": 1e-9}, {"top_p": 1e-9}):
        found = speculative_sample(model, draft, prompt, max_new_tokens=9, **options)
        assert torch.equal(found.tokens, wanted)


def test_models_are_as_they_were():
    model, draft = gpt(0, dropout=0.5).train(), gpt(1).train()
    prompt = torch.tensor([[0, 1]])
    found = speculative_sample(model, draft, prompt, max_new_tokens=9, top_k=1)
    assert model.training and draft.training
    assert torch.equal(found.tokens, sample(model, prompt, max_new_tokens=9, top_k=1))
    assert prompt.tolist() == [[0, 1]]


def test_a_cache_forgets():
    model = gpt(0)
    tokens = torch.randint(V, (1, 9), generator=seed())
    other = torch.cat([tokens[:, :5], (tokens[:, 5:] + 1) % V], dim=1)
    past = KeyValueCache(model)
    with torch.no_grad():
        past.read(tokens)
        rewind(past, 12)
        assert past.length == 9  # nothing to forget
        rewind(past, 5)
        assert past.length == 5
        with pytest.raises(ValueError, match="length must be an integer ≥ 0, got -1"):
            rewind(past, -1)
        assert past.length == 5
        torch.testing.assert_close(past.read(other[:, 5:]), model(other)[:, 5:])


def test_a_cache_of_a_window_cannot_bring_back_what_it_let_go():
    d, heads = gpt(0).config.d_model, gpt(0).config.heads
    near = partial(SlidingWindowAttention, d, heads, window=3, causal=True)
    past = KeyValueCache(GPT(gpt(0).config, near).eval())
    past.read(torch.tensor([[1, 2, 0]]))
    rewind(past, 2)
    past.read(torch.tensor([[1, 2]]))
    with pytest.raises(ValueError, match="cache must hold all positions"):
        rewind(past, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_new_tokens": 23}, "prompt_and_new_tokens=25 and max_len=24"),
        ({"draft": gpt(1, max_len=9)}, "prompt_and_new_tokens=10 and max_len=9"),
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer ≥ 1, got 0"),
        ({"guesses": -1}, "guesses must be an integer ≥ 0, got -1"),
        ({"prompt": torch.zeros(1, 0, dtype=torch.int64)}, "prompt_length=0"),
        ({"prompt": torch.zeros(2, 3, dtype=torch.int64)}, r"shape \(1, s\)"),
        ({"draft": table(Q.expand(4, 4))}, r"target must have the shape \(_, v\) with"),
    ],
)
def test_what_can_not_be_written_is_named(changes, message):
    given = {"model": gpt(0), "draft": gpt(1), "prompt": torch.tensor([[0, 1]])}
    given |= {"max_new_tokens": 8} | changes
    with pytest.raises(ValueError, match=message):
        speculative_sample(**given)
