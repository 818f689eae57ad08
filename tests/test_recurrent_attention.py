"""annotated/recurrent_attention.py: loops, module and independent references agree."""

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import scaled_dot_product_attention
from annotated.recurrent_attention import (
    AdditiveAttention,
    DotAttention,
    LocationSensitiveAttention,
    ScoredAttention,
)
from tests.compare import assert_close, gradients

# every axis another prime: two that change places cannot pass
B, T, S, V, QUERY, KEY, HIDDEN = 2, 3, 5, 7, 11, 13, 17
FILTERS, KERNEL = 19, 3

MAKE = {
    "dot": DotAttention,
    "general": lambda: DotAttention(QUERY, KEY),
    "additive": lambda: AdditiveAttention(QUERY, KEY, HIDDEN),
    "location": lambda: LocationSensitiveAttention(QUERY, KEY, HIDDEN, FILTERS, KERNEL),
}
every_kind = pytest.mark.parametrize("kind", MAKE)
without_location = pytest.mark.parametrize("kind", ["dot", "general", "additive"])


def make(kind: str, dtype: torch.dtype = torch.float64) -> ScoredAttention:
    attention = MAKE[kind]()
    if kind == "location":  # an offset of zeros would hide that it is forgotten
        nn.init.normal_(attention.offset)
    return attention.to(dtype)


def inputs(kind: str, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """Query, keys and values that ask for gradients."""
    shapes = (B, T, KEY if kind == "dot" else QUERY), (B, S, KEY), (B, S, V)
    return tuple(torch.randn(s, dtype=dtype, requires_grad=True) for s in shapes)


def some_mask() -> Tensor:
    """Keeps from one to all of the keys of each row."""
    mask = torch.rand(B, T, S) < 0.5
    mask[..., 2] = True
    mask[0, 0] = True
    return mask


# ---- what all kinds share ----------------------------------------------------


@every_kind
def test_alignments_are_softmaxes_of_scores_and_contexts_weighted_sums(kind):
    query, keys, values = inputs(kind)
    contexts, weights = make(kind)(query, keys, values, mask := some_mask())
    assert contexts.shape == (B, T, V) and weights.shape == (B, T, S)
    assert weights[~mask].eq(0).all(), "True = may attend"
    assert weights[mask].gt(0).all()
    assert_close(weights.sum(-1), torch.ones(B, T).double(), "sum over the keys")
    for b, t in itertools.product(range(B), range(T)):
        wanted = sum(weights[b, t, s] * values[b, s] for s in range(S))
        assert_close(contexts[b, t], wanted, "weighted sum of values")


@every_kind
def test_the_keys_are_the_values_when_none_are_given(kind):
    query, keys, _ = inputs(kind)
    attention = make(kind)
    assert_close(attention(query, keys), attention(query, keys, keys))


@every_kind
def test_padding_after_the_keys_changes_nothing(kind):
    query, keys, values = inputs(kind)
    attention = make(kind)
    contexts, weights = attention(query, keys, values)
    longer = [F.pad(x, (0, 0, 0, 2), value=97.0) for x in (keys, values)]
    padded_contexts, padded = attention(query, *longer, torch.arange(S + 2) < S)
    assert_close(padded_contexts, contexts, "contexts")
    assert_close(padded, F.pad(weights, (0, 2)), "alignments")


@every_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_query_with_no_key_gets_a_context_of_zeros_and_finite_gradients(kind, dtype):
    attention, tensors = make(kind, dtype), inputs(kind, dtype)
    mask = torch.ones(B, 1, S, dtype=torch.bool)
    mask[1] = False
    contexts, weights = attention(*tensors, mask)
    assert contexts.dtype == weights.dtype == dtype
    assert contexts[1].eq(0).all() and contexts[0].ne(0).any()
    wanted = [*tensors, *attention.parameters()]
    for gradient in gradients((contexts, weights), wanted):
        assert gradient.isfinite().all()


@every_kind
@pytest.mark.parametrize("axes", [(S,), (T, S), (B, 1, S), (1, T, S), (1, 1, 1), ()])
def test_a_mask_broadcasts(kind, axes):
    tensors, attention = inputs(kind), make(kind)
    mask = torch.rand(axes) < 0.6
    whole = mask.expand(B, T, S).contiguous()
    assert_close(attention(*tensors, mask), attention(*tensors, whole))


@without_location
def test_only_location_sensitive_attention_reads_the_previous_alignment(kind):
    tensors, attention = inputs(kind), make(kind)
    previous = torch.rand(B, S, dtype=torch.float64)
    assert_close(attention(*tensors), attention(*tensors, previous=previous))


@every_kind
def test_prepared_keys_give_what_the_module_gives(kind):
    query, keys, values = inputs(kind)
    attention, mask = make(kind), some_mask()[:, :1]
    previous = torch.rand(B, S, dtype=torch.float64)
    first = query[:, :1]
    parts = attention.attend(first, attention.prepare(keys), values, mask, previous)
    assert_close(parts, attention(first, keys, values, mask, previous))


@every_kind
def test_attention_leaves_its_inputs_alone(kind):
    tensors = [*inputs(kind), some_mask(), torch.rand(B, S, dtype=torch.float64)]
    before = [tensor.detach().clone() for tensor in tensors]
    make(kind)(*tensors)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)


PARAMETERS = {
    "dot": {},
    "general": {"key_map.weight": (QUERY, KEY)},
    "additive": {
        "query_map.weight": (HIDDEN, QUERY),
        "key_map.weight": (HIDDEN, KEY),
        "direction.weight": (1, HIDDEN),
    },
}
PARAMETERS["location"] = PARAMETERS["additive"] | {
    "convolution.weight": (FILTERS, 1, KERNEL),
    "location_map.weight": (HIDDEN, FILTERS),
    "offset": (HIDDEN,),
}


@every_kind
def test_each_kind_owns_the_maps_of_its_paper_and_all_learn(kind):
    attention = make(kind)
    named = dict(attention.named_parameters())
    assert {name: tuple(p.shape) for name, p in named.items()} == PARAMETERS[kind]
    tensors = inputs(kind)
    found = gradients(attention(*tensors), [*tensors, *named.values()])
    assert all(gradient.ne(0).any() for gradient in found)


# ---- dot products ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dot", "general"])
@pytest.mark.parametrize("masked", [False, True])
def test_dot_attention_is_pytorchs_with_no_scale(kind, masked):
    query, keys, values = inputs(kind)
    attention = make(kind)
    mask = some_mask() if masked else None
    ours = attention(query, keys, values, mask)
    mapped = keys
    if kind == "general":
        mapped = torch.einsum("qk,bsk->bsq", attention.key_map.weight, keys)
    theirs = F.scaled_dot_product_attention(query, mapped, values, mask, scale=1.0)
    assert_close(ours[0], theirs, "scale 1: nothing is scaled in chapter 01")
    of = [query, keys, values, *attention.parameters()]
    assert_close(gradients(ours[:1], of), gradients((theirs,), of), "gradients")
    unscaled = scaled_dot_product_attention(query, mapped, values, mask, scale=1.0)
    assert_close(ours, unscaled)


# ---- additive and location-sensitive attention -------------------------------


def test_additive_scores_by_loops():
    query, keys, _ = inputs("additive")
    attention = make("additive")
    scores = attention.score(query, attention.prepare(keys))
    w, u = attention.query_map.weight, attention.key_map.weight
    (v,) = attention.direction.weight
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        wanted = v @ torch.tanh(w @ query[b, t] + u @ keys[b, s])
        assert_close(scores[b, t, s], wanted, f"e[{b}, {t}, {s}]")


def location_by_loops(attention, query, keys, values, mask, previous):
    """Chorowski et al. (2015), equations 8 and 9, one number at a time."""
    w, u = attention.query_map.weight, attention.key_map.weight
    location, offset = attention.location_map.weight, attention.offset
    (v,) = attention.direction.weight
    filters = attention.convolution.weight[:, 0]  # (filters, kernel)
    half = filters.shape[1] // 2
    contexts, alignments = torch.zeros(B, T, V), torch.zeros(B, T, S)
    contexts, alignments = contexts.double(), alignments.double()
    for b in range(B):
        before = previous[b]
        for t in range(T):
            energies = []
            for s in range(S):
                seen = torch.zeros(FILTERS, dtype=torch.float64)
                for j in range(-half, half + 1):
                    if 0 <= s + j < S:
                        seen = seen + filters[:, half + j] * before[s + j]
                inner = w @ query[b, t] + u @ keys[b, s] + location @ seen + offset
                energies.append(v @ torch.tanh(inner))
            allowed = mask[b, t]
            left = torch.stack(energies)[allowed].softmax(-1)
            before = torch.zeros(S, dtype=torch.float64).masked_scatter(allowed, left)
            alignments[b, t] = before
            contexts[b, t] = before @ values[b]
    return contexts, alignments


@pytest.mark.parametrize("kernel", [1, 3, 7])
@pytest.mark.parametrize("started", [False, True])
def test_location_sensitive_attention_by_loops(started, kernel):
    tensors, mask = inputs("location"), some_mask()
    attention = LocationSensitiveAttention(QUERY, KEY, HIDDEN, FILTERS, kernel).double()
    nn.init.normal_(attention.offset)
    previous = torch.rand(B, S).double() if started else torch.zeros(B, S).double()
    ours = attention(*tensors, mask, previous if started else None)
    loops = location_by_loops(attention, *tensors, mask, previous)
    assert_close(ours, loops)
    of = [*tensors, *attention.parameters()]
    assert_close(gradients(ours, of), gradients(loops, of), "gradients")


@pytest.mark.parametrize("kind", ["general", "additive", "location"])
def test_widths_must_be_those_of_the_module(kind):
    query, keys, values = inputs(kind)
    with pytest.raises(ValueError, match=r"query must .* q=11 as in self.query_size"):
        make(kind)(keys, keys, values)
    with pytest.raises(ValueError, match=r"keys must .* with k=13 as in self.key_size"):
        make(kind)(query, query, query)


def test_the_plain_dot_product_needs_equal_widths():
    message = r"prepared must .* with k=11 as in query, got \(2, 5, 13\)"
    with pytest.raises(ValueError, match=message):
        DotAttention()(*inputs("general"))


@every_kind
def test_a_mask_must_fit_the_scores(kind):
    message = r"mask must be broadcastable to the shape \(2, 3, 5\)"
    with pytest.raises(ValueError, match=message):
        make(kind)(*inputs(kind), torch.ones(B, S, T).bool())


def test_the_general_score_needs_both_widths():
    message = "query_size and key_size go together: .*key_size=5"
    with pytest.raises(ValueError, match=message):
        DotAttention(key_size=5)


def test_a_kernel_must_have_a_centre():
    with pytest.raises(ValueError, match="kernel must be odd, to have a centre, got 4"):
        LocationSensitiveAttention(QUERY, KEY, HIDDEN, FILTERS, 4)


def test_location_scores_take_one_query_and_one_alignment_at_a_time():
    query, keys, values = inputs("location")
    attention = make("location")
    message = r"query must have the shape \(b, 1, q\), got \(2, 3, 11\)"
    with pytest.raises(ValueError, match=message):
        attention.score(query, attention.prepare(keys))
    message = r"previous must have the shape \(b, s\) with s=5 as in keys, got"
    with pytest.raises(ValueError, match=message):
        attention(query, keys, values, previous=torch.rand(B, T).double())
