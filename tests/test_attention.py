"""annotated/attention.py: loops, module and independent references agree."""

import itertools
import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import (
    MultiHeadAttention,
    masked_softmax,
    record_attention,
    scaled_dot_product_attention,
)
from annotated.chapters.ch05.distance import ALiBiAttention, T5Attention
from annotated.masks import causal_mask, length_mask
from annotated.page.laboratory_runs import UnscaledAttention
from annotated.positions import RotaryMultiHeadAttention
from annotated.recipes.text_models import PastAverage
from annotated.transformer_xl import RelativeMultiHeadAttention
from tests.compare import assert_close, gradients

# every axis another length: two that change places cannot pass
B, H, T, S, K, V = 2, 3, 7, 11, 5, 13
D = H * K
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def assert_gradients_close(ours: tuple, theirs: tuple, of: list[Tensor]) -> None:
    pairs = zip(gradients(ours, of), gradients(theirs, of), strict=True)
    for i, (one, other) in enumerate(pairs):
        assert_close(one, other, f"gradient {i}")


def some_mask(*shape: int) -> Tensor:
    """Keeps from one to all of the keys of each row, and none of the last row."""
    mask = torch.rand(shape) < 0.5
    mask[..., 2] = True
    mask[..., 0, :] = True
    mask.view(-1, shape[-1])[-1] = False
    return mask


# ---- masked_softmax ----------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_it_is_the_softmax_over_the_keys_that_are_left(masked):
    scores = torch.randn(B, T, S, dtype=torch.float64, requires_grad=True)
    mask = some_mask(B, T, S) if masked else torch.ones(B, T, S, dtype=torch.bool)
    ours = masked_softmax(scores, mask if masked else None)
    parts = scores.exp() * mask
    theirs = parts / parts.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    assert_close(ours, theirs, "True = may attend: is the mask the wrong way round?")
    assert_gradients_close((ours,), (theirs,), [scores])


@every_dtype
def test_a_row_with_no_key_left_gives_zeros_forward_and_backward(dtype):
    scores = torch.randn(B, T, S, dtype=dtype, requires_grad=True)
    mask = some_mask(B, T, S)
    with torch.autograd.set_detect_anomaly(True):  # how readers will look for a NaN
        weights = masked_softmax(scores, mask)
        (gradient,) = gradients((weights,), [scores])
    assert weights.dtype == dtype
    assert weights[~mask].eq(0).all() and weights.isfinite().all()
    assert gradient[~mask].eq(0).all() and gradient.isfinite().all()
    assert gradient[0, 0].ne(0).any(), "a row with keys must learn"


@every_dtype
def test_extreme_scores_still_give_weights_that_sum_to_one(dtype):
    most = torch.finfo(dtype).max
    rows = [[most, -most, 0.0], [-most / 2] * 3, [-most, -most, -most]]
    mask = [[True, True, True], [True, False, False], [True, True, False]]
    weights = masked_softmax(torch.tensor(rows, dtype=dtype), torch.tensor(mask))
    # with a finite filling the hidden keys would tie with the others
    assert weights.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]


# ---- scaled_dot_product_attention --------------------------------------------


def scaled_inputs(batch=(B, H), dtype=torch.float64) -> tuple[Tensor, ...]:
    return tuple(
        torch.randn(*batch, *ends, dtype=dtype, requires_grad=True)
        for ends in ((T, K), (S, K), (S, V))
    )


@pytest.mark.parametrize("batch", [(), (B,), (B, H)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [None, 1.0, 0.37])
def test_scaled_attention_is_pytorchs(batch, masked, scale):
    tensors = scaled_inputs(batch)
    mask = some_mask(*batch, T, S) if masked else None
    ours, weights = scaled_dot_product_attention(*tensors, mask, scale=scale)
    query, key, value = tensors
    # values of which each is a column of its own show what each key weighs
    values = torch.cat([value, torch.eye(S).expand(*batch, S, S)], dim=-1)
    theirs = F.scaled_dot_product_attention(query, key, values, mask, scale=scale)
    theirs = theirs[..., :V], theirs[..., V:]
    assert_close((ours, weights), theirs, "weights: scaled by 1 / √k?")
    assert_gradients_close((ours, weights), theirs, tensors)


@pytest.mark.parametrize(
    "axes", [(S,), (T, S), (T, 1), (B, 1, 1, S), (1, H, T, 1), (1, 1, T, S), ()]
)
def test_a_mask_broadcasts(axes):
    mask = torch.rand(axes) < 0.6
    whole = mask.expand(B, H, T, S)
    tensors, module, (query, key, value) = scaled_inputs(), make_heads(), sequences()
    short = scaled_dot_product_attention(*tensors, mask)
    for one, other in zip(
        short, scaled_dot_product_attention(*tensors, whole), strict=True
    ):
        assert torch.equal(one, other)
    assert torch.equal(
        module(query, key, value, mask), module(query, key, value, whole)
    )
    assert torch.equal(
        module.weights(query, key, mask), module.weights(query, key, whole)
    )


def test_half_precision_does_not_overflow_before_the_scale():
    large = torch.full((1, 64), 60.0).half()  # 60 · 60 · 64 is more than 65504
    output, weights = scaled_dot_product_attention(large, large, large)
    assert weights.item() == 1.0
    assert torch.equal(output, large)


def test_dropout_drops_weights_on_their_way_to_the_output():
    query, key, _ = scaled_inputs()
    every = torch.eye(S, dtype=torch.float64).expand(B, H, S, S)
    twice = torch.cat([every, every], dim=-1)
    output, weights = scaled_dot_product_attention(query, key, twice, dropout=0.5)
    left, right = output.chunk(2, dim=-1)
    assert torch.equal(left, right), "a dropped key is lost to all columns"
    kept = left.ne(0)
    assert 0.4 < kept.double().mean() < 0.6
    assert_close(left[kept], 2 * weights[kept], "what is left is twice as large")
    undropped = scaled_dot_product_attention(query, key, every)[1]
    assert torch.equal(weights, undropped), "weights returned are those before dropout"


# ---- several heads -----------------------------------------------------------


def make_heads(
    dtype=torch.float64, dropout=0.0, bias=True, causal=False
) -> MultiHeadAttention:
    return MultiHeadAttention(D, H, dropout, bias, causal).to(dtype)


def sequences(kind="others", dtype=torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, which may be the same tensor; they ask for gradients."""
    x, y, z = (torch.randn(B, n, D, dtype=dtype, requires_grad=True) for n in (T, S, S))
    return {"cross": (x, y, y), "others": (x, y, z)}.get(kind, (x, x, x))


def named_gradients(
    outputs: Tensor | tuple, module: nn.Module, **tensors: Tensor
) -> dict:
    named = tensors | dict(module.named_parameters())
    return dict(zip(named, gradients(outputs, [*named.values()]), strict=True))


def reference_of(module: MultiHeadAttention) -> nn.MultiheadAttention:
    """PyTorch's module with the same weights."""
    bias = module.output_map.bias is not None
    reference = nn.MultiheadAttention(D, H, bias=bias, batch_first=True).double()
    maps = (module.query_map, module.key_map, module.value_map)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
        reference.out_proj.weight.copy_(module.output_map.weight)
        if bias:
            reference.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
            reference.out_proj.bias.copy_(module.output_map.bias)
    return reference


def by_our_names(gradient: dict) -> dict:
    """Gradients of PyTorch's module under the names of ours."""
    ours = {}
    for name, value in gradient.items():
        if name.startswith("in_proj_"):
            kind, pieces = name.removeprefix("in_proj_"), value.chunk(3)
            for part, piece in zip(["query", "key", "value"], pieces, strict=True):
                ours[f"{part}_map.{kind}"] = piece
        else:
            ours[name.replace("out_proj", "output_map")] = value
    return ours


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", ["not", "padding", "pairs"])
@pytest.mark.parametrize("kind", ["self", "causal", "cross", "others"])
def test_heads_are_pytorchs_forward_and_backward(kind, masked, bias):
    module = make_heads(bias=bias)
    reference = reference_of(module)
    query, key, value = sequences(kind)
    keys, mask = key.shape[1], None
    hidden = dict.fromkeys(("key_padding_mask", "attn_mask"))  # True = hidden, here
    if masked == "padding":
        lengths = torch.tensor([keys, 4])
        hidden["key_padding_mask"] = torch.arange(keys) >= lengths[:, None]
        mask = length_mask(lengths, keys)
    if masked == "pairs":
        mask = some_mask(B, H, T, keys) | torch.eye(T, keys, dtype=torch.bool)
        hidden["attn_mask"] = ~mask.flatten(0, 1)
    elif kind == "causal":
        hidden["attn_mask"] = torch.ones(keys, keys, dtype=torch.bool).triu(1)
        mask = causal_mask(keys) if mask is None else mask & causal_mask(keys)
    ours = module(query, key, value, mask)
    theirs, weights = reference(query, key, value, average_attn_weights=False, **hidden)
    assert_close(ours, theirs)
    found = module.weights(query, key, mask)
    assert_close(found, weights)
    tensors = {"query": query, "key": key, "value": value}
    both = ours, found
    wanted = by_our_names(named_gradients((theirs, weights), reference, **tensors))
    gradient = named_gradients(both, module, **tensors)
    assert set(gradient) == set(wanted)
    for name in wanted:
        assert_close(gradient[name], wanted[name], f"gradient of {name}")


@every_dtype
def test_heads_in_lower_precision_are_near_those_in_double(dtype):
    lower, double = make_heads(dtype), make_heads()
    double.load_state_dict(lower.state_dict())  # the same, rounded, parameters
    query, key, value = sequences(dtype=dtype)
    mask = some_mask(B, H, T, S)
    ours, weights = lower(query, key, value, mask), lower.weights(query, key, mask)
    wanted = double(query.double(), key.double(), value.double(), mask)
    assert ours.dtype == dtype
    # numbers of size 1, rounded at each of four maps and at the kernel's output
    assert (ours - wanted).abs().max() < 5 * torch.finfo(dtype).eps
    # weights: from the rounded queries and keys on, in single precision at least
    assert weights.dtype == torch.promote_types(dtype, torch.float32)
    q, k = (
        linear(x).double().unflatten(-1, (H, K)).transpose(1, 2)
        for linear, x in ((lower.query_map, query), (lower.key_map, key))
    )
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(K)
    exact = scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)
    assert (weights - exact).abs().max() < 1e-6


def test_key_is_the_query_and_value_the_key_by_default():
    module, mask = make_heads(), causal_mask(T)
    x, y, _ = sequences()
    assert torch.equal(module(x, mask=mask), module(x, x, x, mask))
    assert torch.equal(module(x, y), module(x, y, y))
    assert torch.equal(module.weights(x, mask=mask), module.weights(x, x, mask))


@pytest.mark.parametrize("bias", [True, False])
@every_dtype
def test_a_query_with_no_key_left_gets_only_the_bias_of_the_output_map(dtype, bias):
    module = make_heads(dtype, bias=bias)
    query, key, value = sequences(dtype=dtype)
    mask = length_mask(torch.tensor([S, 0]), S).repeat(1, 1, T, 1)
    mask[0, :, 2] = False
    with torch.autograd.set_detect_anomaly(True), record_attention(module) as maps:
        output = module(query, key, value, mask)
        tensors = {"query": query, "key": key, "value": value}
        gradient = named_gradients(output, module, **tensors)
    nothing = module.output_map.bias if bias else torch.zeros(D, dtype=dtype)
    assert output.dtype == dtype
    for rows in (output[1], output[0, 2:3]):
        assert torch.equal(rows, nothing.expand_as(rows))
    assert maps[""][0][~mask.expand(B, H, T, S)].eq(0).all()
    assert output.isfinite().all()
    assert all(one.isfinite().all() for one in gradient.values())
    assert gradient["query"][1].eq(0).all(), "what sees nothing asks for nothing"
    assert gradient["query"][0, 2].eq(0).all()
    assert gradient["query"][0, 1].ne(0).any()


def test_dropout_of_heads_drops_weights_and_doubles_the_others():
    module = MultiHeadAttention(S, 1, dropout=0.5, bias=False).double()
    with torch.no_grad():  # so that the output is the weights
        module.value_map.weight.copy_(torch.eye(S))
        module.output_map.weight.copy_(torch.eye(S))
    query, key = (torch.randn(B, n, S, dtype=torch.float64) for n in (4 * T, S))
    value = torch.eye(S, dtype=torch.float64).expand(B, S, S)
    output, weights = module(query, key, value), module.weights(query, key)[:, 0]
    kept = output.ne(0)
    assert 0.4 < kept.double().mean() < 0.6  # of 616: five standard deviations
    assert_close(output[kept], 2 * weights[kept], "what is left is twice as large")
    assert_close(weights.sum(-1), torch.ones(B, 4 * T).double())
    without = module.eval()(query, key, value)
    assert_close(without, weights, "dropout is for training alone")


@pytest.mark.parametrize("masked", [False, True])
def test_a_batch_of_no_sequences(masked):
    module, x = make_heads(torch.float32), torch.randn(0, T, D)
    mask = torch.ones(1, 1, T, T, dtype=torch.bool) if masked else None
    assert module(x, mask=mask).shape == (0, T, D)
    assert module.weights(x, mask=mask).shape == (0, H, T, T)


def test_autocast_levels_dtypes():
    module = make_heads(torch.float32)
    x, y, _ = sequences(dtype=torch.float32)
    query, key, value = scaled_inputs(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module(x.bfloat16(), y), module(x, y))
        assert torch.equal(module.weights(x.bfloat16(), y), module.weights(x, y))
        output, _ = scaled_dot_product_attention(query.bfloat16(), key, value)
    assert output.dtype == torch.bfloat16


# ---- the interface of variants -----------------------------------------------


class Graded(MultiHeadAttention):
    """Adds to each score, by an argument of its own."""

    def score_bias(self, q, k, slope=0.5):
        """Return minus slope times the key's position."""
        return -slope * torch.arange(k.shape[2], dtype=k.dtype)


VARIANTS = {
    "plain": partial(MultiHeadAttention, D, H),
    "causal": partial(MultiHeadAttention, D, H, causal=True),
    "grouped": partial(MultiHeadAttention, 16, 4, kv_heads=2),
    "graded": partial(Graded, D, H),
    "rotary": partial(RotaryMultiHeadAttention, 18, H),
    "rotary, grouped": partial(RotaryMultiHeadAttention, 16, 4, kv_heads=1),
    "relative": partial(RelativeMultiHeadAttention, 18, H),
    "ALiBi": partial(ALiBiAttention, D, H),
    "T5": partial(T5Attention, D, H),
    "average": partial(PastAverage, D, H, causal=True),
    "unscaled": partial(UnscaledAttention, D, H),
}


def of_values(module, weights, value):
    """What the weights make of the values: the output."""
    width = module.d_model // module.heads
    values = module.value_map(value).unflatten(-1, (-1, width)).transpose(1, 2)
    values = values.repeat_interleave(module.heads // values.shape[1], dim=1)
    return module.output_map((weights @ values).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_recorded_weights_are_those_that_the_output_is_made_of(name, masked):
    module = VARIANTS[name]().double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    d = module.d_model
    key = torch.randn(B, S, d, dtype=torch.float64)
    query = key[:, S - T :]
    mask = length_mask(torch.tensor([S, 6]), S) if masked else None
    with record_attention(module) as maps:
        output = module(query, key, mask=mask)
    (weights,) = maps[""]
    assert_close(of_values(module, weights, key), output)
    assert_close(weights.sum(-1), torch.ones(B, module.heads, T).double())


@pytest.mark.parametrize("name", VARIANTS)
def test_a_call_is_attend_after_project(name):
    module = VARIANTS[name]()
    x = torch.randn(B, T, module.d_model)
    mask = length_mask(torch.tensor([T, 4]), T)
    q, k, v = module.project(x)
    width = module.d_model // module.heads
    assert q.shape == (B, module.heads, T, width)
    assert k.shape == v.shape == (B, module.kv_heads, T, width)
    assert torch.equal(module.attend(q, k, v, mask), module(x, mask=mask))


def test_a_bias_of_scores_goes_with_any_mask_and_its_own_arguments():
    module = Graded(D, H).double()
    query, key, value = sequences()
    mask = some_mask(B, H, T, S)
    plain = MultiHeadAttention(D, H).double()
    plain.load_state_dict(module.state_dict())
    assert_close(module(query, key, value, slope=0.0), plain(query, key, value))
    q, k, _ = plain.project(query, key)
    scores = q @ k.mT / K**0.5 - 2.0 * torch.arange(S)
    wanted = masked_softmax(scores, mask)
    with record_attention(module) as maps:
        module(query, key, value, mask, slope=2.0)
    assert_close(maps[""][0], wanted)
    # in a lower precision than the bias, too: float64 beside float32 is refused
    module.score_bias = lambda q, k: torch.zeros(k.shape[2], dtype=torch.float64)
    assert module.float()(query.detach().float()).dtype == torch.float32


def test_a_row_with_no_key_is_empty_beside_a_bias():
    module, (x, *_) = Graded(D, H).double(), sequences("self")
    mask = length_mask(torch.tensor([T, 0]), T)
    output = module(x, mask=mask)
    assert torch.equal(output[1], module.output_map.bias.expand(T, D))
    gradient = named_gradients(output, module, x=x)
    assert all(one.isfinite().all() for one in gradient.values())


def causal_pair() -> tuple[MultiHeadAttention, MultiHeadAttention]:
    """Causal attention, and plain attention with its weights."""
    causal, plain = make_heads(causal=True), make_heads()
    plain.load_state_dict(causal.state_dict())
    return causal, plain


def test_the_kernel_is_told_that_attention_is_causal(monkeypatch):
    module, (x, *_) = make_heads(causal=True), sequences("self")
    calls, run = [], F.scaled_dot_product_attention

    def kernel(q, k, v, **given):
        calls.append(given)
        return run(q, k, v, **given)

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    output = module(x)
    (given,) = calls
    assert given["is_causal"] and given.get("attn_mask") is None, "no mask in memory"
    module.causal = False
    wanted = module(x, mask=causal_mask(T))
    assert_close(output, wanted)
    assert_gradients_close((output,), (wanted,), [x, *module.parameters()])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("keys", [T, S])
def test_causal_attention_is_that_of_a_mask(keys, masked):
    causal, plain = causal_pair()
    query, *_ = sequences()
    key = torch.randn(B, keys, D, dtype=torch.float64)
    mask = length_mask(torch.tensor([keys, 6]), keys) if masked else None
    both = causal_mask(T, keys) if mask is None else mask & causal_mask(T, keys)
    assert_close(causal(query, key, mask=mask), plain(query, key, mask=both))
    assert torch.equal(
        causal.weights(query, key, mask), plain.weights(query, key, both)
    )


def test_a_mask_of_keys_alone_fits_causal_attention():
    causal, plain = causal_pair()
    x, *_ = sequences("self")
    mask = torch.arange(T) != 3
    assert_close(causal(x, mask=mask), plain(x, mask=mask & causal_mask(T)))


def test_what_comes_later_is_hidden_on_any_device():
    module = make_heads(causal=True).to("meta")
    key = torch.randn(B, S, D, dtype=torch.float64, device="meta")
    assert module(key[:, :T], key).shape == (B, T, D)


@pytest.mark.parametrize("shared", [1, 2, 6])
def test_shared_keys_equal_plain_heads_whose_keys_are_repeated(shared):
    grouped = MultiHeadAttention(12, 6, kv_heads=shared)
    plain = MultiHeadAttention(12, 6)
    assert grouped.key_map.weight.shape == (2 * shared, 12)
    with torch.no_grad():
        for name in ("query_map", "output_map"):
            getattr(plain, name).load_state_dict(getattr(grouped, name).state_dict())
        for name in ("key_map", "value_map"):
            few, many = getattr(grouped, name), getattr(plain, name)
            for r in range(6):
                g = r // (6 // shared)
                many.weight[2 * r : 2 * r + 2] = few.weight[2 * g : 2 * g + 2]
                many.bias[2 * r : 2 * r + 2] = few.bias[2 * g : 2 * g + 2]
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    assert_close(grouped(x, mask=mask), plain(x, mask=mask))
    assert_close(grouped.weights(x, mask=mask), plain.weights(x, mask=mask))


# ---- record_attention --------------------------------------------------------


class OtherAttention(MultiHeadAttention):
    """A subclass counts too."""


class Stack(nn.Module):
    """Self-attention, attention to a memory, and the first one once more."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.own = MultiHeadAttention(D, H, dropout)
        self.blocks = nn.ModuleList([nn.Linear(D, D), OtherAttention(D, H, dropout)])
        self.fails = False

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = x + self.own(x, mask=mask)
        x = x + self.blocks[1](x, self.blocks[0](memory), memory, memory_mask)
        if self.fails:
            raise RuntimeError("in the forward")
        return x + self.own(query=x.tanh(), value=x, mask=mask)


def stack(dtype=torch.float64, dropout=0.0) -> Stack:
    return Stack(dropout).to(dtype)


def stack_inputs(dtype=torch.float64) -> tuple[Tensor, ...]:
    x, memory, _ = sequences(dtype=dtype)
    own = causal_mask(T) & length_mask(torch.tensor([T, 4]), T)
    return x, memory, own, some_mask(B, H, T, S)


def counts(maps: dict) -> dict[str, int]:
    return {name: len(weights) for name, weights in maps.items()}


def test_record_is_what_the_weights_are_call_by_call():
    model = stack()
    x, memory, mask, memory_mask = stack_inputs()
    with record_attention(model) as maps:
        assert maps == {"own": [], "blocks.1": []}
        assert model(x, memory, mask, memory_mask).requires_grad
        assert counts(maps) == {"own": 2, "blocks.1": 1}
    own, (linear, other) = model.own, model.blocks
    first = x
    x = x + own(x, mask=mask)
    key = linear(memory)
    last = x + other(x, key, memory, memory_mask)
    assert_close(maps["own"][0], own.weights(first, mask=mask), "first call")
    wanted = other.weights(x, key, memory_mask)
    assert_close(maps["blocks.1"][0], wanted, "attention to the memory")
    wanted = own.weights(last.tanh(), mask=mask)
    assert_close(maps["own"][1], wanted, "second call")
    for weights in itertools.chain(*maps.values()):
        assert not weights.requires_grad and weights.grad_fn is None


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [*DTYPES, "autocast"], ids=str)
def test_recording_changes_no_bit_and_draws_no_random_number(dtype, dropout, training):
    autocast = dtype == "autocast"
    dtype = torch.float32 if autocast else dtype
    model = stack(dtype, dropout).train(training)
    tensors = stack_inputs(dtype)

    def run():
        torch.manual_seed(7)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            output = model(*tensors)
        state = torch.get_rng_state()
        x, memory, *_ = tensors
        return output, state, named_gradients(output, model, x=x, memory=memory)

    output, state, gradient = run()
    with record_attention(model) as maps:
        recorded_output, recorded_state, recorded_gradient = run()
    assert torch.equal(recorded_output, output)
    assert torch.equal(recorded_state, state), "the generator was used"
    for name in gradient:
        assert torch.equal(recorded_gradient[name], gradient[name]), name
    x, _, mask, _ = tensors
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        undropped = model.own.weights(x, mask=mask)
    assert torch.equal(maps["own"][0], undropped), "weights are those before dropout"
    assert undropped.dtype == torch.promote_types(dtype, torch.float32)


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("where", ["nowhere", "in the block", "in the forward"])
def test_only_our_hooks_are_gone_after_the_block_and_after_exceptions(where):
    model, tensors, seen = stack(), stack_inputs(), []
    model.own.register_forward_hook(lambda *_: seen.append(1))
    try:
        with record_attention(model) as maps:
            assert hooks_of(model) == 3
            model(*tensors)
            model.fails = where == "in the forward"
            if where != "nowhere":
                model(*tensors)
                raise RuntimeError(where)
    except RuntimeError as error:
        assert str(error) == where
    assert hooks_of(model) == 1, "another's hook stays"
    model.fails = False
    before = counts(maps)
    model(*tensors)
    assert before == counts(maps), "what was recorded stays, and no more comes"
    with record_attention(model) as again:
        model(*tensors)
    assert counts(again) == {"own": 2, "blocks.1": 1} and seen


def test_blocks_may_be_nested_and_each_records_for_itself():
    model, tensors = stack(), stack_inputs()
    with record_attention(model) as outer:
        model(*tensors)
        with record_attention(model.blocks) as inner:
            model(*tensors)
        model(*tensors)
    assert counts(outer) == {"own": 6, "blocks.1": 3}
    assert counts(inner) == {"1": 1}
    assert torch.equal(inner["1"][0], outer["blocks.1"][1])


def test_a_module_with_two_names_is_recorded_under_its_first():
    module = make_heads()
    model = nn.Sequential(module, module)
    with record_attention(model) as maps:
        model(sequences()[0])
    assert counts(maps) == {"0": 2}


@pytest.mark.parametrize("named", range(5), ids="{} arguments by name".format)
def test_arguments_may_have_names(named):
    module, mask = make_heads(), some_mask(B, H, T, S)
    query, key, value = sequences()
    arguments = {"query": query, "key": key, "value": value, "mask": mask}
    by_place = list(arguments.values())[: 4 - named]
    by_name = dict(list(arguments.items())[4 - named :])
    with record_attention(module) as maps:
        module(*by_place, **by_name)
    assert list(maps) == [""], "the model itself has no name"
    assert torch.equal(maps[""][0], module.weights(query, key, mask))


# ---- wrong arguments ---------------------------------------------------------


def wrong_scaled(**changed):
    tensors = dict(zip(["query", "key", "value"], scaled_inputs(), strict=True))
    return scaled_dot_product_attention(**tensors | changed)


def wrong_heads(method="forward", dropout=0.0, **changed):
    query, key, value = sequences()
    tensors = {"query": query, "key": key, "value": value} | changed
    if method == "weights":
        del tensors["value"]
    return getattr(make_heads(), method)(**tensors)


def floats(*shape):
    return torch.zeros(shape, dtype=torch.float64)


def allowed(*shape):
    return torch.ones(shape, dtype=torch.bool)


BOTH = ["forward", "weights"]
WRONG = [
    (masked_softmax, {"scores": floats(B, T, S), "mask": allowed(T)}, "got (7,)"),
    # one mask a sequence, with an axis for heads: scores have none
    (masked_softmax, {"scores": floats(B, T, S), "mask": allowed(B, 1, 1, S)}, "(2, 7"),
    (wrong_scaled, {"query": floats(K)}, "query must have the shape (*batch, t, k)"),
    (wrong_scaled, {"key": floats(B, H, S, V)}, "k=5 as in query, got (2, 3, 11, 13)"),
    (wrong_scaled, {"value": floats(B, H, T, V)}, "s=11 as in key, got (2, 3, 7, 13)"),
    (wrong_scaled, {"key": floats(B, 1, S, K)}, "batch=(2, 3) as in query, got (2, 1"),
    (wrong_scaled, {"mask": allowed(S, T)}, "(2, 3, 7, 11) of the scores"),
    (wrong_scaled, {"mask": allowed(B, T, S)}, "pass mask[:, None]"),
    (wrong_scaled, {"dropout": 1.5}, "dropout probability has to be between 0 and 1"),
    (
        wrong_heads,
        {"value": floats(B, T, D)},
        "value must .* s=11 as in key, got (2, 7",
    ),
]
for method in BOTH:
    WRONG += [
        (wrong_heads, {"method": method} | changed, message)
        for changed, message in [
            ({"query": floats(B, T, K)}, "query must .* d=15 as in self.d_model"),
            ({"query": floats(T, D)}, "query must have the shape (b, t, d), got (7, 1"),
            ({"key": floats(B, S, K)}, "key must .* with d=15 as in self.d_model, got"),
            ({"key": floats(1, S, D)}, "key must .* b=2 as in query, got (1, 11, 15)"),
            ({"mask": allowed(S, T)}, "mask must be broadcastable .* (2, 3, 7, 11)"),
            ({"mask": allowed(H, T, S)}, "pass mask[:, None]"),
        ]
    ]


def matching(message: str) -> str:
    for character in "()[]*":
        message = message.replace(character, f"\\{character}")
    return message.replace(".\\*", ".*")


@pytest.mark.parametrize(("call", "arguments", "message"), WRONG)
def test_what_does_not_fit_is_named(call, arguments, message):
    with pytest.raises(ValueError, match=matching(message)):
        call(**arguments)


@pytest.mark.parametrize("call", [wrong_scaled, wrong_heads])
def test_a_mask_of_numbers_is_refused(call):
    with pytest.raises(TypeError, match=r"^mask must be .* booleans .* torch.float64$"):
        call(mask=floats(T, S))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 3), "^heads must divide d_model, got heads=3 and d_model=10$"),
        ((0, 1), "^d_model must be an integer ≥ 1, got 0$"),
        ((4, -2), "^heads must be an integer ≥ 1, got -2$"),
        ((4, 2, 1.0), r"^dropout must be a number in \[0, 1\), got 1.0$"),
        (
            (8, 4, 0.0, True, False, 3),
            "^kv_heads must divide heads, got kv_heads=3 and heads=4$",
        ),
    ],
)
def test_heads_and_width_must_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(*arguments)


@pytest.mark.parametrize("model", [nn.Linear(2, 2), nn.MultiheadAttention(4, 2)])
def test_there_must_be_something_to_record(model):
    message = "^model must hold a MultiHeadAttention, got "
    with pytest.raises(ValueError, match=message), record_attention(model):
        raise AssertionError("the block must not begin")
