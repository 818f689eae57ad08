"""annotated/variants.py: norms on queries and keys, windows, and what a cache holds."""

import pytest
import torch
from torch import nn

from annotated.attention import MultiHeadAttention, record_attention
from annotated.decoding import KeyValueCache
from annotated.gpt import GPT, GPTConfig
from annotated.positions import RotaryMultiHeadAttention, rotary_embedding
from annotated.variants import (
    QueryKeyNormAttention,
    SlidingWindowAttention,
    cache_numbers,
    window_mask,
)

# b 2, t 7, h 6, k 4, two heads of keys and values
B, T, H, K, KV = 2, 7, 6, 4, 2
D = H * K


def drawn(module):
    """Return a module in double precision, no parameter of which is 0 or 1."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double()


class Turned(RotaryMultiHeadAttention, QueryKeyNormAttention):
    """Normalised, then turned."""


class TurnedFirst(QueryKeyNormAttention, RotaryMultiHeadAttention):
    """Turned, then normalised."""


# ---- a norm on queries and keys ------------------------------------------------


def rms(x, gain):
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


def test_queries_and_keys_are_normalised_head_by_head():
    attention, x = drawn(QueryKeyNormAttention(D, H, kv_heads=KV)), torch.randn(B, T, D)
    x = x.double()
    q, k, v = attention.project(x)
    for found, linear, gain in (
        (q, attention.query_map, attention.query_norm.weight),
        (k, attention.key_map, attention.key_norm.weight),
    ):
        for head in range(found.shape[1]):
            part = linear(x)[..., head * K : (head + 1) * K]
            torch.testing.assert_close(found[:, head], rms(part, gain))
    assert k.shape == v.shape == (B, KV, T, K)
    assert attention.query_norm.weight is not attention.key_norm.weight
    plain = MultiHeadAttention.project(attention, x)[2]
    assert torch.equal(v, plain), "values are as they were"


def test_other_sources_and_a_start_reach_the_class_above():
    attention = drawn(QueryKeyNormAttention(D, H))
    one, two, three = (torch.randn(B, n, D).double() for n in (3, 5, 5))
    q, k, v = attention.project(one, two, three)
    assert q.shape[2] == 3 and k.shape[2] == v.shape[2] == 5
    assert torch.equal(k, attention.project(two)[1])
    assert torch.equal(v, attention.project(three)[2])
    for kind in (Turned, TurnedFirst):
        turned, x = drawn(kind(D, H)), torch.randn(B, T, D).double()
        whole, part = turned.project(x), turned.project(x[:, 3:], start=3)
        for all_of_it, end in zip(whole, part, strict=True):
            torch.testing.assert_close(all_of_it[:, :, 3:], end)


def test_what_was_normalised_is_turned():
    turned, x = drawn(Turned(D, H, kv_heads=KV)), torch.randn(B, T, D).double()
    plain = QueryKeyNormAttention(D, H, kv_heads=KV).double()
    plain.load_state_dict(turned.state_dict())
    q, k, _ = plain.project(x)
    found = turned.project(x)
    torch.testing.assert_close(found[0], rotary_embedding(q))
    torch.testing.assert_close(found[1], rotary_embedding(k))


# ---- a window ------------------------------------------------------------------


@pytest.mark.parametrize(("window", "t", "s"), [(1, 5, 5), (3, 5, 5), (3, 2, 7)])
def test_a_query_sees_the_last_keys_up_to_its_own(window, t, s):
    mask = window_mask(window, t, s)
    assert mask.shape == (1, 1, t, s) and mask.dtype == torch.bool
    for i in range(t):
        own = s - t + i  # where the query stands
        wanted = [own - window < j <= own for j in range(s)]
        assert mask[0, 0, i].tolist() == wanted


@pytest.mark.parametrize("padded", [False, True])
def test_weights_are_those_of_the_mask(padded):
    near = drawn(SlidingWindowAttention(D, H, window=3, causal=True, kv_heads=KV))
    plain = MultiHeadAttention(D, H, kv_heads=KV).double()
    plain.load_state_dict(near.state_dict())
    x, mask = torch.randn(B, T, D).double(), window_mask(3, T)
    padding = torch.rand(B, 1, 1, T) > 0.3 if padded else None
    if padded:
        mask = mask & padding
    with record_attention(near) as maps:
        torch.testing.assert_close(near(x, mask=padding), plain(x, mask=mask))
    (weights,) = maps[""]
    assert torch.equal(weights > 0, mask.expand(B, H, T, T))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_layers_reach_back_a_window_less_one_each(layers):
    config = GPTConfig(11, d_model=D, heads=H, layers=layers, d_ff=8, max_len=T)
    model = GPT(
        config, lambda: SlidingWindowAttention(D, H, window=3, causal=True)
    ).double()
    x = model.embed(torch.arange(T)[None]).detach().requires_grad_()
    model.blocks(x)[0, -1].square().sum().backward()
    reached = x.grad[0].abs().sum(dim=-1) > 0
    assert reached.tolist() == [i >= T - 1 - layers * 2 for i in range(T)]


@pytest.mark.parametrize("options", [{"window": 0}, {"window": 3, "causal": False}])
def test_windows_that_are_none_are_refused(options):
    with pytest.raises(
        ValueError, match=next(iter(options.keys() - {"window"}), "window")
    ):
        SlidingWindowAttention(D, H, **{"causal": True} | options)


def test_a_window_below_one_is_refused_in_a_mask():
    with pytest.raises(ValueError, match="window"):
        window_mask(0, 3)


# ---- with a cache --------------------------------------------------------------

KINDS = {
    "norm": lambda: QueryKeyNormAttention(D, H, causal=True, kv_heads=KV),
    "turned": lambda: Turned(D, H, causal=True, kv_heads=KV),
    "window": lambda: SlidingWindowAttention(D, H, window=3, causal=True, kv_heads=KV),
}
CONFIG = GPTConfig(11, d_model=D, heads=H, layers=2, d_ff=8, max_len=T, kv_heads=KV)


@pytest.mark.parametrize(
    ("kind", "window"),
    [(kind, 3 if name == "window" else None) for name, kind in KINDS.items()],
    ids=KINDS,
)
@pytest.mark.parametrize("pieces", [[1] * T, [4, 1, 2]])
@torch.no_grad()
def test_pieces_give_what_the_whole_gives(kind, window, pieces):
    model, ids = drawn(GPT(CONFIG, kind)).eval(), torch.randint(11, (B, T))
    reader = KeyValueCache(model)
    found = torch.cat([reader.read(one) for one in ids.split(pieces, dim=1)], dim=1)
    torch.testing.assert_close(found, model(ids))
    held = sum(x[0].numel() for pair in reader.kept for x in pair)
    kept = T if window is None else window
    # of a window, its last keys are kept until the next ones are read
    assert cache_numbers(CONFIG, T, window) == held == 2 * 2 * KV * K * kept


def test_numbers_of_a_window_and_of_a_latent():
    own = GPTConfig(11, d_model=D, heads=H, layers=3)  # each head has its keys
    assert cache_numbers(own, 100) == 3 * 100 * 2 * D
    assert cache_numbers(CONFIG, 100, window=40) == cache_numbers(CONFIG, 40)
    assert cache_numbers(CONFIG, 30, window=40) == cache_numbers(CONFIG, 30)
    assert cache_numbers(own, 100, latent=(5, 2)) == 3 * 100 * 7
    assert cache_numbers(own, 100, window=10, latent=(5, 2)) == 3 * 10 * 7
    assert cache_numbers(own, 0) == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"length": -1}, "length"),
        ({"length": 3, "window": 0}, "window"),
        ({"length": 3, "latent": (5, 0)}, r"latent\[1\]"),
    ],
)
def test_numbers_that_are_none_are_named(options, named):
    with pytest.raises(ValueError, match=named):
        cache_numbers(CONFIG, **options)
