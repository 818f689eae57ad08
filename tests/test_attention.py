"""annotated/attention.py: loops, module and independent references agree."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import (
    AdditiveAttention,
    DotAttention,
    LocationSensitiveAttention,
    MultiHeadAttention,
    ScoredAttention,
    masked_softmax,
    record_attention,
    scaled_dot_product_attention,
)
from annotated.masks import causal_mask, length_mask

# every axis another prime: two that change places cannot pass
B, T, S, V, QUERY, KEY, HIDDEN = 2, 3, 5, 7, 11, 13, 17
FILTERS, KERNEL = 19, 3

HALVES = [torch.float32, torch.float16, torch.bfloat16]
MAKE = {
    "dot": DotAttention,
    "general": lambda: DotAttention(QUERY, KEY),
    "additive": lambda: AdditiveAttention(QUERY, KEY, HIDDEN),
    "location": lambda: LocationSensitiveAttention(QUERY, KEY, HIDDEN, FILTERS, KERNEL),
}
WITHOUT_LOCATION = ["dot", "general", "additive"]
every_kind = pytest.mark.parametrize("kind", MAKE)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


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


def assert_close(actual: Tensor, expected: Tensor, why: str = "") -> None:
    limit = 1e-10 if actual.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=limit, msg=lambda text: f"{why}\n{text}"
    )


def gradients(outputs: tuple[Tensor, ...], of: list[Tensor]) -> tuple[Tensor, ...]:
    """Gradients of a random mixture of all that was computed."""
    generator = torch.Generator().manual_seed(1)
    mixture = sum(
        (out * torch.randn(out.shape, generator=generator).to(out)).sum()
        for out in outputs
    )
    return torch.autograd.grad(mixture, of)


# ---- masked_softmax ----------------------------------------------------------


def test_without_a_mask_it_is_the_softmax_over_the_keys():
    scores = torch.randn(B, T, S, dtype=torch.float64)
    sums = scores.exp().sum(dim=-1, keepdim=True)
    assert_close(masked_softmax(scores), scores.exp() / sums, "softmax over the keys")


def test_a_mask_that_allows_all_changes_nothing():
    scores = torch.randn(B, T, S)
    allowed = masked_softmax(scores, torch.ones(B, T, S, dtype=torch.bool))
    assert torch.equal(allowed, masked_softmax(scores))


def test_masked_softmax_agrees_with_minus_infinity_where_a_key_is_left():
    scores = torch.randn(B, T, S, dtype=torch.float64, requires_grad=True)
    mask = some_mask()
    ours = masked_softmax(scores, mask)
    theirs = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    assert_close(ours, theirs, "True = may attend: is the mask the wrong way round?")
    for one, other in zip(
        gradients((ours,), [scores]), gradients((theirs,), [scores]), strict=True
    ):
        assert_close(one, other, "gradients")


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_a_row_with_no_key_left_gives_zeros(dtype):
    scores = torch.randn(B, T, S, dtype=dtype)
    mask = some_mask()
    mask[1, 2] = False
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert weights[1, 2].eq(0).all(), "a row with no key left must be zeros"
    assert weights.isfinite().all()


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_a_row_with_no_key_left_gives_finite_gradients_and_none_of_its_own(dtype):
    scores = torch.randn(B, T, S, dtype=dtype, requires_grad=True)
    mask = some_mask()
    mask[1, 2] = False
    (gradient,) = gradients((masked_softmax(scores, mask),), [scores])
    assert gradient.isfinite().all()
    assert gradient[1, 2].eq(0).all()
    assert gradient[~mask].eq(0).all(), "a masked score has no influence"
    assert gradient[0, 0].ne(0).any(), "a row with keys must learn"


def test_a_row_with_no_key_left_passes_autograds_search_for_nan():
    scores = torch.randn(B, T, S, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):  # how readers will look for a NaN
        weights = masked_softmax(scores, torch.zeros(S, dtype=torch.bool))
        gradients((weights,), [scores])
    assert weights.eq(0).all()


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_masked_softmax_stands_huge_scores(dtype):
    huge = torch.finfo(dtype).max / 2
    scores = torch.tensor([[2 * huge, -2 * huge, 0.0], [-huge] * 3], dtype=dtype)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_masked_softmax_leaves_its_inputs_alone():
    scores, mask = torch.randn(B, T, S), some_mask()
    before = scores.clone(), mask.clone()
    masked_softmax(scores, mask)
    assert torch.equal(scores, before[0])
    assert torch.equal(mask, before[1])


@pytest.mark.parametrize("shape", [(S,), (T, 1), (T, S), (B, 1, S), (1, T, S), ()])
def test_masked_softmax_broadcasts_its_mask(shape):
    scores = torch.randn(B, T, S)
    mask = torch.rand(shape) < 0.5
    whole = mask.expand(B, T, S)
    assert torch.equal(masked_softmax(scores, mask), masked_softmax(scores, whole))


# ---- scaled_dot_product_attention --------------------------------------------


WIDTH, HEADS = 11, 3
BATCHES = [(), (B,), (B, HEADS)]
every_batch = pytest.mark.parametrize("batch", BATCHES)


def scaled_inputs(batch=(B, HEADS), dtype=torch.float64) -> tuple[Tensor, ...]:
    shapes = (T, WIDTH), (S, WIDTH), (S, V)
    return tuple(
        torch.randn(*batch, *shape, dtype=dtype, requires_grad=True) for shape in shapes
    )


def test_scaled_attention_by_loops():
    query, key, value = scaled_inputs(())
    output, weights = scaled_dot_product_attention(query, key, value)
    for t in range(T):
        scores = torch.stack([query[t] @ key[s] / math.sqrt(WIDTH) for s in range(S)])
        row = scores.exp() / scores.exp().sum()
        assert_close(
            weights[t], row, f"weights of query {t}: scaled by 1 / sqrt(width)?"
        )
        assert_close(output[t], sum(row[s] * value[s] for s in range(S)))


@every_batch
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [None, 1.0, 0.37])
def test_scaled_attention_is_pytorchs(batch, masked, scale):
    tensors = scaled_inputs(batch)
    mask = torch.rand(*batch, T, S).lt(0.5) if masked else None
    if masked:
        mask[..., 1] = True
    ours, weights = scaled_dot_product_attention(*tensors, mask, scale=scale)
    assert weights.shape == (*batch, T, S)
    theirs = F.scaled_dot_product_attention(*tensors, mask, scale=scale)
    assert_close(ours, theirs)
    for name, one, other in zip(
        ["query", "key", "value"],
        gradients((ours,), tensors),
        gradients((theirs,), tensors),
        strict=True,
    ):
        assert_close(one, other, f"gradient of {name}")


def test_the_unscaled_one_is_dot_attention():
    query, keys, values = inputs("dot")
    mask = some_mask()
    ours = scaled_dot_product_attention(query, keys, values, mask, scale=1.0)
    for one, other in zip(ours, DotAttention()(query, keys, values, mask), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_scaled_query_with_no_key_gets_zeros_and_finite_gradients(dtype):
    tensors = scaled_inputs(dtype=dtype)
    mask = torch.ones(B, 1, 1, S, dtype=torch.bool)
    mask[1] = False
    output, weights = scaled_dot_product_attention(*tensors, mask)
    assert output.dtype == weights.dtype == dtype
    assert output[1].eq(0).all()
    assert weights[1].eq(0).all()
    assert output[0].ne(0).any()
    for gradient in gradients((output, weights), tensors):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("shape", [(S,), (T, S), (B, 1, 1, S), (1, HEADS, T, 1), ()])
def test_a_mask_broadcasts_over_batch_and_heads(shape):
    tensors, mask = scaled_inputs(), torch.rand(shape) < 0.6
    short = scaled_dot_product_attention(*tensors, mask)
    whole = scaled_dot_product_attention(*tensors, mask.expand(B, HEADS, T, S))
    for one, other in zip(short, whole, strict=True):
        assert torch.equal(one, other)


def test_half_precision_does_not_overflow_before_the_scale():
    large = torch.full((1, 64), 60.0).half()  # 60 · 60 · 64 is more than 65504
    output, weights = scaled_dot_product_attention(large, large, large)
    assert weights.item() == 1.0
    assert torch.equal(output, large)


def test_dropout_drops_weights_on_their_way_to_the_output():
    query, key, _ = scaled_inputs()
    every = torch.eye(S, dtype=torch.float64).expand(B, HEADS, S, S)
    output, weights = scaled_dot_product_attention(query, key, every, dropout=0.5)
    kept = output.ne(0)
    assert 0.3 < kept.double().mean() < 0.7
    assert_close(output[kept], 2 * weights[kept], "what is left is twice as large")
    assert weights.gt(0).all(), "the weights returned are those before dropout"
    torch.manual_seed(2)
    twice = torch.cat([every, every], dim=-1)
    both, _ = scaled_dot_product_attention(query, key, twice, dropout=0.5)
    why = "weights are dropped, so a key is lost to all columns of the output"
    assert torch.equal(both[..., :S], both[..., S:]), why
    undropped = scaled_dot_product_attention(query, key, every)[1]
    assert torch.equal(weights, undropped)


def test_no_dropout_means_none_at_all():
    tensors, before = scaled_inputs(), torch.get_rng_state()
    one, other = (scaled_dot_product_attention(*tensors)[0] for _ in range(2))
    assert torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_scaled_attention_leaves_its_inputs_alone():
    tensors = [*scaled_inputs(), torch.rand(T, S) < 0.5]
    before = [tensor.detach().clone() for tensor in tensors]
    scaled_dot_product_attention(*tensors)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)


# ---- what all attention shares -----------------------------------------------


@every_kind
def test_shapes(kind):
    query, keys, values = inputs(kind)
    contexts, weights = make(kind)(query, keys, values)
    assert contexts.shape == (B, T, V), "contexts are (b, t, v)"
    assert weights.shape == (B, T, S), "alignments are (b, t, s)"


@every_kind
def test_each_alignment_is_a_distribution_over_the_keys(kind):
    _, weights = make(kind)(*inputs(kind))
    assert weights.gt(0).all()
    assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), "sum over keys")


@every_kind
def test_a_context_is_the_weighted_sum_of_the_values(kind):
    query, keys, values = inputs(kind)
    contexts, weights = make(kind)(query, keys, values, some_mask())
    for b, t in itertools.product(range(B), range(T)):
        wanted = sum(weights[b, t, s] * values[b, s] for s in range(S))
        assert_close(contexts[b, t], wanted, "weighted sum of values")


@every_kind
def test_the_keys_are_the_values_when_none_are_given(kind):
    query, keys, _ = inputs(kind)
    attention = make(kind)
    for one, other in zip(
        attention(query, keys), attention(query, keys, keys), strict=True
    ):
        assert torch.equal(one, other)


@every_kind
def test_masked_keys_get_no_weight(kind):
    mask = some_mask()
    _, weights = make(kind)(*inputs(kind), mask)
    assert weights[~mask].eq(0).all(), "True = may attend"
    assert weights[mask].gt(0).all()


@every_kind
def test_padding_behind_the_keys_changes_nothing(kind):
    query, keys, values = inputs(kind)
    attention = make(kind)
    contexts, weights = attention(query, keys, values)
    padding = 2
    longer = [F.pad(x, (0, 0, 0, padding), value=97.0) for x in (keys, values)]
    mask = torch.arange(S + padding) < S
    padded_contexts, padded_weights = attention(query, *longer, mask)
    assert_close(padded_contexts, contexts, "contexts")
    assert_close(padded_weights[..., :S], weights, "alignments")
    assert padded_weights[..., S:].eq(0).all()


@every_kind
@pytest.mark.parametrize("dtype", HALVES)
def test_a_query_with_no_key_gets_a_context_of_zeros_and_finite_gradients(kind, dtype):
    attention = make(kind, dtype)
    tensors = inputs(kind, dtype)
    mask = torch.ones(B, 1, S, dtype=torch.bool)
    mask[1] = False
    contexts, weights = attention(*tensors, mask)
    assert contexts.dtype == weights.dtype == dtype
    assert contexts[1].eq(0).all()
    assert contexts[0].ne(0).any()
    wanted = [*tensors, *attention.parameters()]
    for gradient in gradients((contexts, weights), wanted):
        assert gradient.isfinite().all()


@every_kind
@pytest.mark.parametrize("shape", [(S,), (T, S), (B, 1, S), (1, T, S), (1, 1, 1), ()])
def test_a_mask_broadcasts(kind, shape):
    tensors, attention = inputs(kind), make(kind)
    mask = torch.rand(shape) < 0.6
    short = attention(*tensors, mask)
    whole = attention(*tensors, mask.expand(B, T, S).contiguous())
    for one, other in zip(short, whole, strict=True):
        assert torch.equal(one, other)


@every_kind
def test_a_batch_is_its_sentences_one_by_one(kind):
    query, keys, values = inputs(kind)
    attention, mask = make(kind), some_mask()
    contexts, weights = attention(query, keys, values, mask)
    for b in range(B):
        alone = [x[b : b + 1] for x in (query, keys, values, mask)]
        context, weight = attention(*alone)
        assert_close(contexts[b], context[0], "sentences must not see each other")
        assert_close(weights[b], weight[0], "sentences must not see each other")


@pytest.mark.parametrize("kind", WITHOUT_LOCATION)
def test_queries_do_not_see_each_other(kind):
    query, keys, values = inputs(kind)
    attention, order = make(kind), [2, 0, 1]
    contexts, weights = attention(query, keys, values)
    moved_contexts, moved_weights = attention(query[:, order], keys, values)
    assert_close(moved_contexts, contexts[:, order])
    assert_close(moved_weights, weights[:, order])


@pytest.mark.parametrize("kind", WITHOUT_LOCATION)
def test_the_order_of_the_keys_is_not_seen(kind):
    query, keys, values = inputs(kind)
    attention, order = make(kind), [3, 0, 4, 1, 2]
    contexts, weights = attention(query, keys, values)
    moved_contexts, moved = attention(query, keys[:, order], values[:, order])
    assert_close(moved_contexts, contexts, "a sum has no order")
    assert_close(moved, weights[..., order], "weights move with their keys")


@pytest.mark.parametrize("kind", WITHOUT_LOCATION)
def test_only_location_sensitive_attention_reads_the_previous_alignment(kind):
    tensors, attention = inputs(kind), make(kind)
    previous = torch.rand(B, S, dtype=torch.float64)
    for one, other in zip(
        attention(*tensors), attention(*tensors, previous=previous), strict=True
    ):
        assert torch.equal(one, other)


@every_kind
def test_prepared_keys_give_what_the_module_gives(kind):
    query, keys, values = inputs(kind)
    attention, mask = make(kind), some_mask()[:, :1]
    previous = torch.rand(B, S, dtype=torch.float64)
    first = query[:, :1]
    parts = attention.attend(first, attention.prepare(keys), values, mask, previous)
    whole = attention(first, keys, values, mask, previous)
    for one, other in zip(parts, whole, strict=True):
        assert_close(one, other)


@every_kind
def test_attention_leaves_its_inputs_alone(kind):
    tensors = [*inputs(kind), some_mask(), torch.rand(B, S, dtype=torch.float64)]
    before = [tensor.detach().clone() for tensor in tensors]
    make(kind)(*tensors)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)


@every_kind
def test_the_same_call_gives_the_same_bits(kind):
    tensors, attention = inputs(kind), make(kind)
    for one, other in zip(attention(*tensors), attention(*tensors), strict=True):
        assert torch.equal(one, other)


@every_kind
def test_gradients_are_those_of_finite_differences(kind):
    # small, because each number is moved twice
    attention = {
        "dot": DotAttention,
        "general": lambda: DotAttention(2, 3),
        "additive": lambda: AdditiveAttention(2, 3, 2),
        "location": lambda: LocationSensitiveAttention(2, 3, 2, 1, 3),
    }[kind]().double()
    shapes = (1, 2, 3 if kind == "dot" else 2), (1, 3, 3), (1, 3, 2)
    tensors = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    mask = torch.tensor([[True, True, False], [False, True, True]])

    def run(*all_of_them):
        return attention(*all_of_them[:3], mask)

    assert torch.autograd.gradcheck(run, [*tensors, *attention.parameters()])


@every_kind
def test_every_parameter_learns(kind):
    attention = make(kind)
    outputs = attention(*inputs(kind))
    for name, parameter in attention.named_parameters():
        (gradient,) = gradients(outputs, [parameter])
        assert gradient.ne(0).any(), f"{name} has no influence"
        outputs = attention(*inputs(kind))


# ---- ScoredAttention ---------------------------------------------------------


def test_a_variant_overrides_how_it_scores_and_nothing_else():
    class Nearest(ScoredAttention):
        def score(self, query, prepared, previous=None):
            return -torch.cdist(query, prepared)

    query, keys, values = inputs("dot")
    contexts, weights = Nearest()(query, keys, values)
    far = (query[:, :, None] - keys[:, None]).pow(2).sum(-1).sqrt()
    assert_close(weights, (-far).softmax(-1))
    assert_close(contexts, weights @ values)


def test_what_has_no_score_says_so():
    query, keys, _ = inputs("dot")
    with pytest.raises(NotImplementedError):
        ScoredAttention()(query, keys)


# ---- DotAttention ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dot", "general"])
@pytest.mark.parametrize("masked", [False, True])
def test_dot_attention_is_pytorchs_with_no_scale(kind, masked):
    query, keys, values = inputs(kind)
    attention = make(kind)
    mask = some_mask() if masked else None
    ours, _ = attention(query, keys, values, mask)
    mapped = keys
    if kind == "general":
        mapped = torch.einsum("qk,bsk->bsq", attention.key_map.weight, keys)
    theirs = F.scaled_dot_product_attention(query, mapped, values, mask, scale=1.0)
    assert_close(ours, theirs, "scale 1: nothing is scaled in chapter 01")
    of = [query, keys, values, *attention.parameters()]
    names = ["query", "keys", "values", "map"]
    for name, one, other in zip(
        names, gradients((ours,), of), gradients((theirs,), of), strict=False
    ):
        assert_close(one, other, f"gradient of {name}")


@pytest.mark.parametrize("kind", ["dot", "general"])
def test_dot_scores_by_loops(kind):
    query, keys, _ = inputs(kind)
    attention = make(kind)
    scores = attention.score(query, attention.prepare(keys))
    assert scores.shape == (B, T, S)
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        if kind == "dot":
            wanted = sum(query[b, t, i] * keys[b, s, i] for i in range(KEY))
        else:
            wanted = query[b, t] @ (attention.key_map.weight @ keys[b, s])
        assert_close(scores[b, t, s], wanted, f"e[{b}, {t}, {s}]")


def test_the_plain_dot_product_owns_no_parameter():
    assert list(DotAttention().parameters()) == []


def test_the_general_score_owns_one_matrix():
    shapes = {name: tuple(p.shape) for name, p in make("general").named_parameters()}
    assert shapes == {"key_map.weight": (QUERY, KEY)}


# ---- AdditiveAttention -------------------------------------------------------


def test_additive_scores_by_loops():
    query, keys, _ = inputs("additive")
    attention = make("additive")
    scores = attention.score(query, attention.prepare(keys))
    assert scores.shape == (B, T, S)
    w, u = attention.query_map.weight, attention.key_map.weight
    (v,) = attention.direction.weight
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        wanted = v @ torch.tanh(w @ query[b, t] + u @ keys[b, s])
        assert_close(scores[b, t, s], wanted, f"e[{b}, {t}, {s}]")


def test_additive_attention_owns_the_three_maps_of_the_paper():
    shapes = {name: tuple(p.shape) for name, p in make("additive").named_parameters()}
    assert shapes == {
        "query_map.weight": (HIDDEN, QUERY),
        "key_map.weight": (HIDDEN, KEY),
        "direction.weight": (1, HIDDEN),
    }


# ---- LocationSensitiveAttention ----------------------------------------------


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


@pytest.mark.parametrize("started", [False, True])
def test_location_sensitive_attention_by_loops(started):
    query, keys, values = inputs("location")
    attention, mask = make("location"), some_mask()
    previous = torch.rand(B, S).double() if started else torch.zeros(B, S).double()
    ours = attention(query, keys, values, mask, previous if started else None)
    loops = location_by_loops(attention, query, keys, values, mask, previous)
    assert_close(ours[1], loops[1], "alignments")
    assert_close(ours[0], loops[0], "contexts")
    of = [query, keys, values, *attention.parameters()]
    names = ["query", "keys", "values", *dict(attention.named_parameters())]
    for name, one, other in zip(
        names, gradients(ours, of), gradients(loops, of), strict=True
    ):
        assert_close(one, other, f"gradient of {name}")


def test_location_scores_are_those_of_pytorchs_convolution():
    query, keys, _ = inputs("location")
    attention = make("location")
    previous = torch.rand(B, S, dtype=torch.float64)
    scores = attention.score(query[:, :1], attention.prepare(keys), previous)
    where = F.conv1d(previous[:, None], attention.convolution.weight, padding="same")
    inner = (
        query[:, :1] @ attention.query_map.weight.T
        + keys @ attention.key_map.weight.T
        + where.transpose(1, 2) @ attention.location_map.weight.T
        + attention.offset
    )
    wanted = torch.tanh(inner) @ attention.direction.weight[0]
    assert_close(scores[:, 0], wanted)


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_a_filter_is_centred_and_reaches_half_its_width(kernel):
    attention = LocationSensitiveAttention(QUERY, KEY, HIDDEN, FILTERS, kernel).double()
    query, keys, _ = inputs("location")
    keys = F.pad(keys.detach(), (0, 0, 0, 8))  # longer than any filter
    prepared, here = attention.prepare(keys), 6
    nothing = torch.zeros(B, S + 8, dtype=torch.float64)
    looked = nothing.clone()
    looked[:, here] = 1.0
    first = query[:, :1]
    change = attention.score(first, prepared, looked) - attention.score(
        first, prepared, nothing
    )
    reached = change.abs().gt(1e-9).any(dim=(0, 1)).nonzero().flatten().tolist()
    half = kernel // 2
    assert reached == list(range(here - half, here + half + 1))


def test_each_alignment_enters_the_next_one():
    query, keys, values = inputs("location")
    attention, mask = make("location"), some_mask()
    contexts, weights = attention(query, keys, values, mask)
    previous = None
    for t in range(T):
        row = slice(t, t + 1)
        context, weight = attention(query[:, row], keys, values, mask[:, row], previous)
        assert_close(contexts[:, row], context, f"query {t}")
        assert_close(weights[:, row], weight, f"query {t}")
        previous = weight[:, 0]


def test_before_the_first_query_nothing_has_been_looked_at():
    tensors, attention = inputs("location"), make("location")
    nothing = torch.zeros(B, S, dtype=torch.float64)
    for one, other in zip(
        attention(*tensors), attention(*tensors, previous=nothing), strict=True
    ):
        assert torch.equal(one, other)


def test_location_sensitive_attention_owns_the_maps_of_the_paper():
    shapes = {name: tuple(p.shape) for name, p in make("location").named_parameters()}
    assert shapes == {
        "query_map.weight": (HIDDEN, QUERY),
        "key_map.weight": (HIDDEN, KEY),
        "direction.weight": (1, HIDDEN),
        "convolution.weight": (FILTERS, 1, KERNEL),
        "location_map.weight": (HIDDEN, FILTERS),
        "offset": (HIDDEN,),
    }


# ---- an independent reference that takes seconds to import: last --------------


@pytest.fixture
def keras(monkeypatch, tmp_path):
    # keras reads both when it is first imported, and would else write into the home
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    import keras

    assert keras.backend.backend() == "torch", "keras was imported with another backend"
    return keras


@pytest.mark.parametrize("masked", [False, True])
def test_additive_attention_is_that_of_keras(keras, masked):
    attention = make("additive", torch.float32)
    query, keys, values = inputs("additive", torch.float32)
    # keras' layer maps neither query nor keys: it adds them as they are
    mapped = attention.query_map(query), attention.key_map(keys)
    layer = keras.layers.AdditiveAttention(dtype="float32")
    layer.build([mapped[0].shape, values.shape, mapped[1].shape])
    (scale,) = (variable.value for variable in layer.trainable_weights)
    with torch.no_grad():
        scale.copy_(attention.direction.weight[0])
    keep = torch.tensor([[True] * S, [True, True, False, True, False]])
    theirs = layer(
        [mapped[0], values, mapped[1]],
        mask=[None, keep] if masked else None,
        return_attention_scores=True,
    )
    ours = attention(query, keys, values, keep[:, None] if masked else None)
    assert_close(ours[0], theirs[0], "contexts")
    assert_close(ours[1], theirs[1], "alignments")
    of = [query, keys, values, attention.query_map.weight, attention.key_map.weight]
    theirs_of = [*of, scale]
    of = [*of, attention.direction.weight]
    names = ["query", "keys", "values", *dict(attention.named_parameters())]
    for name, one, other in zip(
        names, gradients(ours, of), gradients(theirs, theirs_of), strict=True
    ):
        assert_close(one.flatten(), other.flatten(), f"gradient of {name}")


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.bad_input
@every_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_mask_must_be_boolean(kind, dtype):
    mask = torch.ones(B, T, S, dtype=dtype)
    message = rf"^mask must be a boolean tensor \(True = may attend\), got {dtype}"
    with pytest.raises(TypeError, match=message):
        make(kind)(*inputs(kind), mask)


@pytest.mark.bad_input
@every_kind
@pytest.mark.parametrize("shape", [(B, S, T), (B, S), (T,), (1, B, T, S)])
def test_a_mask_must_fit_the_scores(kind, shape):
    mask = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ValueError, match="does not broadcast") as caught:
        make(kind)(*inputs(kind), mask)
    assert f"mask of shape {shape}" in str(caught.value)
    assert f"{(B, T, S)}" in str(caught.value)


@pytest.mark.bad_input
def test_masked_softmax_checks_its_mask():
    scores = torch.randn(B, T, S)
    with pytest.raises(TypeError, match=r"^mask must be a boolean .* got torch.int64"):
        masked_softmax(scores, torch.ones(S, dtype=torch.long))
    with pytest.raises(ValueError, match=r"^mask of shape \(3,\) does not broadcast"):
        masked_softmax(scores, torch.ones(T, dtype=torch.bool))


@pytest.mark.bad_input
@every_kind
@pytest.mark.parametrize("wrong", ["query", "keys", "values"])
def test_inputs_must_have_three_axes(kind, wrong):
    tensors = dict(zip(["query", "keys", "values"], inputs(kind), strict=True))
    tensors[wrong] = tensors[wrong][0]
    message = rf"^{wrong} must have three axes \(batch, length, width\), got shape "
    with pytest.raises(ValueError, match=message) as caught:
        make(kind)(**tensors)
    assert str(tuple(tensors[wrong].shape)) in str(caught.value)


@pytest.mark.bad_input
@every_kind
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_inputs_must_have_the_same_batch_size(kind, wrong):
    tensors = list(inputs(kind))
    tensors[wrong] = torch.cat([tensors[wrong]] * 2)
    sizes = [B, B, B]
    sizes[wrong] = 2 * B
    message = (
        "^query, keys and values must have the same batch size, got "
        f"{sizes[0]}, {sizes[1]} and {sizes[2]}$"
    )
    with pytest.raises(ValueError, match=message):
        make(kind)(*tensors)


@pytest.mark.bad_input
@every_kind
def test_each_key_needs_a_value(kind):
    query, keys, values = inputs(kind)
    message = "^each key needs one value: got 5 keys and 4 values$"
    with pytest.raises(ValueError, match=message):
        make(kind)(query, keys, values[:, 1:])


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", ["general", "additive", "location"])
def test_widths_must_be_those_of_the_module(kind):
    query, keys, values = inputs(kind)
    attention = make(kind)
    with pytest.raises(ValueError, match=r"^query must have width 11, got 13$"):
        attention(keys, keys, values)
    with pytest.raises(ValueError, match=r"^keys must have width 13, got 11$"):
        attention(query, query, query)


@pytest.mark.bad_input
def test_the_plain_dot_product_needs_equal_widths():
    query, keys, values = inputs("general")
    message = "^query and keys must have the same width .* got 11 and 13; .*key_size"
    with pytest.raises(ValueError, match=message):
        DotAttention()(query, keys, values)


@pytest.mark.bad_input
@pytest.mark.parametrize("given", ["query_size", "key_size"])
def test_the_general_score_needs_both_widths(given):
    message = f"^query_size and key_size go together: .*{given}=5"
    with pytest.raises(ValueError, match=message):
        DotAttention(**{given: 5})


@pytest.mark.bad_input
@pytest.mark.parametrize("size", [0, -1, 2.0, "7"])
@pytest.mark.parametrize(
    ("make_it", "names"),
    [
        (DotAttention, ["query_size", "key_size"]),
        (AdditiveAttention, ["query_size", "key_size", "hidden"]),
        (
            LocationSensitiveAttention,
            ["query_size", "key_size", "hidden", "filters", "kernel"],
        ),
    ],
)
def test_sizes_must_be_whole_numbers_above_zero(make_it, names, size):
    for name in names:
        sizes = dict.fromkeys(names, 3) | {name: size}
        message = f"^{name} must be a whole number above 0, got {size!r}$"
        with pytest.raises(ValueError, match=message):
            make_it(**sizes)


@pytest.mark.bad_input
@pytest.mark.parametrize("kernel", [2, 4])
def test_a_kernel_must_have_a_centre(kernel):
    message = f"^kernel must be odd, to have a centre; got {kernel}$"
    with pytest.raises(ValueError, match=message):
        LocationSensitiveAttention(QUERY, KEY, HIDDEN, FILTERS, kernel)


@pytest.mark.bad_input
def test_location_scores_take_one_query_at_a_time():
    query, keys, _ = inputs("location")
    attention = make("location")
    with pytest.raises(ValueError, match=r"one query at a time .* got 3 queries"):
        attention.score(query, attention.prepare(keys))


@pytest.mark.bad_input
@pytest.mark.parametrize("shape", [(B, T), (B, 1), (1, S), (S,), (B, 1, S)])
def test_a_previous_alignment_must_have_a_weight_for_each_key(shape):
    message = r"^previous must be an alignment of shape \(2, 5\), got "
    with pytest.raises(ValueError, match=message) as caught:
        make("location")(*inputs("location"), previous=torch.rand(shape).double())
    assert str(tuple(shape)) in str(caught.value)


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", ["query", "key", "value"])
def test_scaled_attention_needs_lengths_and_widths(wrong):
    tensors = dict(zip(["query", "key", "value"], scaled_inputs(()), strict=True))
    tensors[wrong] = tensors[wrong][0]
    message = rf"^{wrong} must have the axes \(…, length, width\), got shape \(\d+,\)$"
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(**tensors)


@pytest.mark.bad_input
def test_scaled_attention_needs_widths_and_values_that_fit():
    query, key, value = scaled_inputs()
    message = r"^query and key must have the same width, got 11 and 7$"
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(query, value, value)
    message = r"^each key needs one value: got 5 keys and 4 values$"
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(query, key, value[..., 1:, :])


@pytest.mark.bad_input
@pytest.mark.parametrize("dropout", [1.0, -0.1, 1.5, math.nan, "0.1", False, None])
def test_dropout_is_a_probability_below_one(dropout):
    message = rf"^dropout must lie in \[0, 1\), got {dropout!r}$"
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*scaled_inputs(), dropout=dropout)


@pytest.mark.bad_input
def test_scaled_attention_checks_its_mask():
    tensors = scaled_inputs()
    with pytest.raises(
        TypeError, match=r"^mask must be a boolean .* got torch.float32"
    ):
        scaled_dot_product_attention(*tensors, torch.ones(T, S))
    with pytest.raises(ValueError, match=r"^mask of shape \(5, 3\) does not broadcast"):
        scaled_dot_product_attention(*tensors, torch.ones(S, T, dtype=torch.bool))


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", ["query", "key", "value"])
def test_scaled_attention_takes_one_dtype(wrong):
    tensors = dict(zip(["query", "key", "value"], scaled_inputs(), strict=True))
    tensors[wrong] = tensors[wrong].float()
    message = r"^query, key and value must have the same dtype, got .*torch\.float32"
    with pytest.raises(TypeError, match=message):
        scaled_dot_product_attention(**tensors)


@pytest.mark.bad_input
def test_scaled_attention_takes_mixed_dtypes_where_autocast_levels_them():
    query, key, value = scaled_inputs(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        output, _ = scaled_dot_product_attention(query.bfloat16(), key, value)
    assert output.dtype == torch.bfloat16


@pytest.mark.bad_input
@pytest.mark.parametrize("batch", [(1, HEADS), (B, 1), (HEADS,), (B, HEADS, 1)])
@pytest.mark.parametrize("wrong", ["query", "key", "value"])
def test_scaled_attention_takes_one_batch(wrong, batch):
    tensors = dict(zip(["query", "key", "value"], scaled_inputs(), strict=True))
    tensors[wrong] = torch.randn(*batch, *tensors[wrong].shape[-2:]).double()
    message = "^query, key and value must have the same axes before length and width"
    with pytest.raises(ValueError, match=message) as caught:
        scaled_dot_product_attention(**tensors)
    assert str(tuple(tensors[wrong].shape)) in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_of_very_low_scores_still_sum_to_one(dtype):
    # with a finite filling the hidden key would tie with the others
    scores = torch.full((1, 3), torch.finfo(dtype).min, dtype=dtype)
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


# ---- several heads -----------------------------------------------------------

# 2 sequences, 3 heads of width 5, 7 queries, 11 keys
H, K, QUERIES, KEYS = 3, 5, 7, 11
D = H * K
KINDS = ["self", "causal", "cross", "cross with other values"]


def make_heads(dtype=torch.float64, dropout=0.0, bias=True) -> MultiHeadAttention:
    return MultiHeadAttention(D, H, dropout, bias).to(dtype)


def sequences(kind="cross", dtype=torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, which may be the same tensor; they ask for gradients."""
    x, y, z = (
        torch.randn(B, n, D, dtype=dtype, requires_grad=True)
        for n in (QUERIES, KEYS, KEYS)
    )
    return {"cross": (x, y, y), "cross with other values": (x, y, z)}.get(
        kind, (x, x, x)
    )


def heads_mask() -> Tensor:
    """Another one for each sequence and head, with rows that leave no key."""
    mask = torch.rand(B, H, QUERIES, KEYS) < 0.5
    mask[..., 3] = True
    mask[1, :, 2] = False  # for all heads
    mask[0, 1, 4] = False  # for one
    return mask


def heads_by_loops(module, query, key, value, mask) -> tuple[Tensor, Tensor]:
    """Vaswani et al. (2017), section 3.2.2: one head, one query, one key at a time."""

    def mapped(linear, x, head):
        rows = slice(head * K, (head + 1) * K)
        return linear.weight[rows] @ x + linear.bias[rows]

    outputs, every = [], []
    for b, t in itertools.product(range(len(query)), range(query.shape[1])):
        heads = []
        for h in range(H):
            q = mapped(module.query_map, query[b, t], h)
            seen = [s for s in range(key.shape[1]) if mask[b, h, t, s]]
            exps = {
                s: (q @ mapped(module.key_map, key[b, s], h) / math.sqrt(K)).exp()
                for s in seen
            }
            row = [q.new_zeros(())] * key.shape[1]
            for s in seen:
                row[s] = exps[s] / sum(exps.values())
            every.append(torch.stack(row))
            values = (mapped(module.value_map, value[b, s], h) for s in seen)
            weighted = (row[s] * v for s, v in zip(seen, values, strict=True))
            heads.append(sum(weighted, q.new_zeros(K)))
        joined = torch.cat(heads)
        outputs.append(module.output_map.weight @ joined + module.output_map.bias)
    b, t, s = len(query), query.shape[1], key.shape[1]
    weights = torch.stack(every).view(b, t, H, s).transpose(1, 2)
    return torch.stack(outputs).view(b, t, D), weights


def named_gradients(output: Tensor, module: nn.Module, **tensors: Tensor) -> dict:
    named = tensors | dict(module.named_parameters())
    return dict(zip(named, gradients((output,), [*named.values()]), strict=True))


def test_heads_by_loops_forward_and_backward():
    module, mask = make_heads(), heads_mask()
    query, key, value = sequences("cross with other values")
    ours = module(query, key, value, mask)
    theirs, _ = heads_by_loops(module, query, key, value, mask)
    assert_close(ours, theirs, "output")
    tensors = {"query": query, "key": key, "value": value}
    wanted = named_gradients(theirs, module, **tensors)
    for name, gradient in named_gradients(ours, module, **tensors).items():
        assert_close(gradient, wanted[name], f"gradient of {name}")


def heads_and_reference(bias=True, dtype=torch.float64):
    """The module, and PyTorch's with the same weights."""
    module = make_heads(dtype, bias=bias)
    reference = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=dtype)
    maps = (module.query_map, module.key_map, module.value_map)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
        reference.out_proj.weight.copy_(module.output_map.weight)
        if bias:
            reference.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
            reference.out_proj.bias.copy_(module.output_map.bias)
    return module, reference


def by_our_names(gradient: dict) -> dict:
    """Gradients of PyTorch's module under the names of ours."""
    found = {}
    for name, value in gradient.items():
        if name.startswith("in_proj_"):
            for part, piece in zip(
                ["query", "key", "value"], value.chunk(3), strict=True
            ):
                found[f"{part}_map.{name.removeprefix('in_proj_')}"] = piece
        else:
            found[name.replace("out_proj", "output_map")] = value
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_heads_are_pytorchs_forward_and_backward(kind, padded, bias, dtype):
    module, reference = heads_and_reference(bias, dtype)
    query, key, value = sequences(kind, dtype)
    keys, mask = key.shape[1], None
    hidden = dict.fromkeys(("key_padding_mask", "attn_mask"))  # True = hidden, here
    if padded:
        lengths = torch.tensor([keys, 4])
        hidden["key_padding_mask"] = torch.arange(keys) >= lengths[:, None]
        mask = length_mask(lengths, keys)
    if kind == "causal":
        hidden["attn_mask"] = torch.ones(keys, keys, dtype=torch.bool).triu(1)
        mask = causal_mask(keys) if mask is None else mask & causal_mask(keys)
    ours = module(query, key, value, mask)
    theirs, weights = reference(query, key, value, average_attn_weights=False, **hidden)
    # in single precision, sums of some dozens of numbers of size 1
    limit = 1e-10 if dtype == torch.float64 else 3e-5
    torch.testing.assert_close(ours, theirs, rtol=0, atol=limit)
    recomputed = module.weights(query, key, mask)
    torch.testing.assert_close(recomputed, weights, rtol=0, atol=limit)
    tensors = {"query": query, "key": key, "value": value}
    wanted = by_our_names(named_gradients(theirs, reference, **tensors))
    found = named_gradients(ours, module, **tensors)
    assert set(found) == set(wanted)
    for name, gradient in found.items():
        torch.testing.assert_close(
            gradient,
            wanted[name],
            rtol=0,
            atol=limit,
            msg=lambda text, name=name: f"gradient of {name}\n{text}",
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_heads_in_half_precision_are_near_those_in_double(dtype):
    half = make_heads(dtype)
    double = make_heads()
    double.load_state_dict(half.state_dict())  # the same, rounded, parameters
    query, key, value = sequences("cross with other values", dtype)
    mask = heads_mask()
    ours = half(query, key, value, mask)
    wanted = double(query.double(), key.double(), value.double(), mask)
    assert ours.dtype == dtype
    # numbers of size 1, rounded at each of four maps and at the kernel's output
    limit = 5 * torch.finfo(dtype).eps
    assert (ours - wanted).abs().max() < limit


def test_heads_own_the_four_maps_of_the_paper():
    shapes = {name: tuple(p.shape) for name, p in make_heads().named_parameters()}
    maps = ["query_map", "key_map", "value_map", "output_map"]
    weights = {f"{name}.weight": (D, D) for name in maps}
    assert shapes == weights | {f"{name}.bias": (D,) for name in maps}
    without = make_heads(bias=False).named_parameters()
    assert {name: tuple(p.shape) for name, p in without} == weights


def test_key_is_the_query_and_value_the_key_by_default():
    module, mask = make_heads(), causal_mask(QUERIES)
    x, y, _ = sequences()
    assert torch.equal(module(x), module(x, x, x))
    assert torch.equal(module(x, mask=mask), module(x, x, x, mask))
    assert torch.equal(module(x, y), module(x, y, y))
    assert torch.equal(module.weights(x, mask=mask), module.weights(x, x, mask))


@pytest.mark.parametrize(
    "shape",
    [
        *[(QUERIES, 1), (QUERIES, KEYS), (1, 1), (B, 1, 1, KEYS), (B, H, QUERIES, 1)],
        *[(1, 1, QUERIES, KEYS), (1, H, 1, KEYS)],
        *[(KEYS,), (1,), ()],
    ],
)
def test_a_mask_broadcasts_over_sequences_heads_and_queries(shape):
    module, mask = make_heads(), torch.rand(shape) < 0.6
    query, key, value = sequences()
    whole = mask.expand(B, H, QUERIES, KEYS).contiguous()
    assert torch.equal(
        module(query, key, value, mask), module(query, key, value, whole)
    )
    assert torch.equal(
        module.weights(query, key, mask), module.weights(query, key, whole)
    )


@pytest.mark.parametrize("recorded", [False, True], ids=["fused", "recorded"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_a_query_with_no_key_left_gets_only_the_bias_of_the_output_map(
    dtype, bias, recorded
):
    module = make_heads(dtype, bias=bias)
    query, key, value = sequences("cross with other values", dtype)
    mask = torch.ones(B, 1, QUERIES, KEYS, dtype=torch.bool)
    mask[1, :, 2] = False
    if recorded:
        with record_attention(module) as maps:
            output = module(query, key, value, mask)
        assert maps[""][0][1, :, 2].eq(0).all(), "weights of a row with no key"
    else:
        output = module(query, key, value, mask)
    nothing = module.output_map.bias if bias else torch.zeros(D, dtype=dtype)
    assert output.dtype == dtype
    assert torch.equal(output[1, 2], nothing)
    assert output.isfinite().all()
    tensors = {"query": query, "key": key, "value": value}
    found = named_gradients(output, module, **tensors)
    for name, gradient in found.items():
        assert gradient.isfinite().all(), f"gradient of {name}"
    assert found["query"][1, 2].eq(0).all(), "what sees nothing asks for nothing"
    assert found["query"][1, 1].ne(0).any()


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_a_sequence_of_padding_alone_gives_zeros_and_finite_gradients(dtype):
    module = make_heads(dtype)
    x, *_ = sequences("self", dtype)
    mask = length_mask(torch.tensor([QUERIES, 0]), QUERIES) & causal_mask(QUERIES)
    with torch.autograd.set_detect_anomaly(True):  # how readers will look for a NaN
        with record_attention(module) as maps:
            output = module(x, mask=mask)
        found = named_gradients(output, module, x=x)
    assert torch.equal(output[1], module.output_map.bias.expand(QUERIES, D))
    assert maps[""][0][1].eq(0).all()
    assert all(gradient.isfinite().all() for gradient in found.values())
    assert found["x"][1].eq(0).all()
    assert found["x"][0].ne(0).any()


@pytest.mark.parametrize("causal", [False, True])
def test_padding_behind_a_sequence_changes_no_real_position(causal):
    module, padding = make_heads(), 4
    x, *_ = sequences("self")
    longer = F.pad(x, (0, 0, 0, padding), value=97.0)
    size = QUERIES + padding
    short_mask = causal_mask(QUERIES) if causal else None
    mask = length_mask(torch.tensor([QUERIES] * B), size)
    mask = mask & causal_mask(size) if causal else mask
    alone = module(x, mask=short_mask)
    padded = module(longer, mask=mask)[:, :QUERIES]
    assert_close(padded, alone, "outputs at the real positions")
    recomputed = module.weights(longer, mask=mask)[:, :, :QUERIES]
    assert recomputed[..., QUERIES:].eq(0).all()
    assert_close(recomputed[..., :QUERIES], module.weights(x, mask=short_mask))
    for name, gradient in named_gradients(padded, module, x=x).items():
        wanted = named_gradients(module(x, mask=short_mask), module, x=x)[name]
        assert_close(gradient, wanted, f"gradient of {name}")


def test_padding_behind_the_keys_changes_no_query():
    module, padding = make_heads(), 2
    query, key, value = sequences("cross with other values")
    longer = [F.pad(x, (0, 0, 0, padding), value=97.0) for x in (key, value)]
    mask = length_mask(torch.tensor([KEYS] * B), KEYS + padding)
    assert_close(module(query, *longer, mask), module(query, key, value))


@pytest.mark.parametrize("keys", [QUERIES, KEYS])
@pytest.mark.parametrize("position", range(0, QUERIES, 2))
def test_under_a_causal_mask_no_output_depends_on_what_comes_later(position, keys):
    module, mask = make_heads(), causal_mask(QUERIES, keys)
    query, *_ = sequences()
    key, value = torch.randn(2, B, keys, D, dtype=torch.float64, requires_grad=True)
    output = module(query, key, value, mask)[:, position]
    of_key, of_value = gradients((output,), [key, value])
    last = keys - QUERIES + position  # the queries are the last ones of the keys
    for gradient in (of_key, of_value):
        assert gradient[:, last + 1 :].eq(0).all(), "the future has no influence"
        assert gradient[:, last].ne(0).any(), "a query sees its own position"
    changed = [x.detach().clone() for x in (key, value)]
    for x in changed:
        x[:, last + 1 :] = 97.0
    again = module(query, *changed, mask)[:, : position + 1]
    assert_close(again, module(query, key, value, mask)[:, : position + 1])


def test_a_batch_of_heads_is_its_sequences_one_by_one():
    module, mask = make_heads(), heads_mask()
    query, key, value = sequences("cross with other values")
    output = module(query, key, value, mask)
    for b in range(B):
        alone = [x[b : b + 1] for x in (query, key, value, mask)]
        assert_close(output[b], module(*alone)[0], f"sequence {b} sees another")


def test_dropout_of_heads_drops_weights_and_doubles_the_others():
    module = MultiHeadAttention(KEYS, 1, dropout=0.5, bias=False).double()
    with torch.no_grad():  # so that the output is the weights
        module.value_map.weight.copy_(torch.eye(KEYS))
        module.output_map.weight.copy_(torch.eye(KEYS))
    query = torch.randn(B, 4 * QUERIES, KEYS, dtype=torch.float64)
    key = torch.randn(B, KEYS, KEYS, dtype=torch.float64)
    value = torch.eye(KEYS, dtype=torch.float64).expand(B, KEYS, KEYS)
    output, weights = module(query, key, value), module.weights(query, key)[:, 0]
    kept = output.ne(0)
    assert 0.4 < kept.double().mean() < 0.6  # of 616: five standard deviations
    assert_close(output[kept], 2 * weights[kept], "what is left is twice as large")
    assert_close(weights.sum(-1), torch.ones(B, 4 * QUERIES).double())


def test_dropout_is_for_training_alone():
    module = make_heads(dropout=0.5)
    tensors = sequences()
    assert not torch.equal(module(*tensors), module(*tensors))
    module.eval()
    without = make_heads()
    without.load_state_dict(module.state_dict())
    assert torch.equal(module(*tensors), without(*tensors))


def test_heads_without_dropout_draw_no_random_number():
    module, before = make_heads(), torch.get_rng_state()
    module(*sequences())  # draws, and is put back
    torch.set_rng_state(before)
    tensors = sequences()
    after = torch.get_rng_state()
    module(*tensors)
    assert torch.equal(torch.get_rng_state(), after)


def test_gradients_of_heads_are_those_of_finite_differences():
    module = MultiHeadAttention(4, 2).double()
    query, key = (torch.randn(1, n, 4).double().requires_grad_() for n in (2, 3))
    mask = torch.tensor([[True, False, True], [False, False, False]])
    names = [name for name, _ in module.named_parameters()]

    def run(query, key, *parameters):
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, given, (query, key, None, mask))

    assert torch.autograd.gradcheck(run, [query, key, *module.parameters()])


def test_heads_leave_their_inputs_alone():
    tensors = [*sequences("cross with other values"), heads_mask()]
    before = [tensor.detach().clone() for tensor in tensors]
    module = make_heads()
    with record_attention(module):
        module(*tensors)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)


@pytest.mark.parametrize("masked", [False, True])
def test_several_heads_take_a_batch_of_no_sequences(masked):
    attention, query = MultiHeadAttention(H * K, H), torch.randn(0, QUERIES, H * K)
    mask = torch.ones(1, 1, QUERIES, QUERIES, dtype=torch.bool) if masked else None
    assert attention(query, mask=mask).shape == (0, QUERIES, H * K)
    assert attention.weights(query, mask=mask).shape == (0, H, QUERIES, QUERIES)


# ---- their weights -----------------------------------------------------------


def test_weights_by_loops_forward_and_backward():
    module, mask = make_heads(), heads_mask()
    query, key, value = sequences()
    ours = module.weights(query, key, mask)
    _, theirs = heads_by_loops(module, query, key, value, mask)
    assert ours.shape == (B, H, QUERIES, KEYS), "weights are (b, h, t, s)"
    assert_close(ours, theirs, "scaled by 1 / sqrt(width of a head)?")
    of = [query, key, module.query_map.weight, module.key_map.bias]
    for one, other in zip(
        gradients((ours,), of), gradients((theirs,), of), strict=True
    ):
        assert_close(one, other, "gradient")


def test_weights_are_those_that_the_output_is_made_of():
    module, mask = make_heads(), heads_mask()
    query, key, value = sequences("cross with other values")
    values = module.value_map(value).unflatten(-1, (H, K))
    weights = module.weights(query, key, mask)
    heads = torch.einsum("bhts,bshk->bthk", weights, values)
    wanted = module.output_map(heads.flatten(2))
    assert_close(module(query, key, value, mask), wanted)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_weights_are_computed_in_single_precision_at_least(dtype):
    module, mask = make_heads(dtype), heads_mask()
    query, key, _ = sequences(dtype=dtype)
    weights = module.weights(query, key, mask)
    assert weights.dtype == torch.promote_types(dtype, torch.float32)
    # from the rounded queries and keys on, nothing more is rounded to half precision
    q, k = (
        linear(x).double().unflatten(-1, (H, K)).transpose(1, 2)
        for linear, x in ((module.query_map, query), (module.key_map, key))
    )
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(K)
    wanted = scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)
    limit = 1e-10 if dtype == torch.float64 else 1e-6
    assert (weights - wanted).abs().max() < limit


def test_weights_know_no_dropout():
    module = make_heads(dropout=0.9)
    query, key, _ = sequences()
    before = torch.get_rng_state()
    assert torch.equal(module.weights(query, key), module.eval().weights(query, key))
    assert torch.equal(torch.get_rng_state(), before)


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
    masks = (
        causal_mask(QUERIES) & length_mask(torch.tensor([QUERIES, 4]), QUERIES),
        heads_mask(),
    )
    return x, memory, *masks


def test_record_has_a_list_for_each_attention_and_an_entry_for_each_call():
    model = stack()
    with record_attention(model) as maps:
        assert maps == {"own": [], "blocks.1": []}
        for calls in (1, 2):
            model(*stack_inputs())
            counts = {name: len(weights) for name, weights in maps.items()}
            assert counts == {"own": 2 * calls, "blocks.1": calls}
    assert [w.shape for w in maps["own"]] == [(B, H, QUERIES, QUERIES)] * 4
    assert [w.shape for w in maps["blocks.1"]] == [(B, H, QUERIES, KEYS)] * 2


def test_record_is_what_loops_give_call_by_call():
    model = stack()
    x, memory, mask, memory_mask = stack_inputs()
    with record_attention(model) as maps:
        model(x, memory, mask, memory_mask)
    own, (linear, other) = model.own, model.blocks
    full = mask.expand(B, H, QUERIES, QUERIES)
    output, first = heads_by_loops(own, x, x, x, full)
    x = x + output
    key = linear(memory)
    output, between = heads_by_loops(other, x, key, memory, memory_mask)
    x = x + output
    _, last = heads_by_loops(own, x.tanh(), x.tanh(), x, full)
    assert_close(maps["own"][0], first, "first call")
    assert_close(maps["blocks.1"][0], between, "attention to the memory")
    assert_close(maps["own"][1], last, "second call")


def test_recorded_rows_sum_to_one_over_the_keys_that_are_allowed():
    model = stack()
    x, memory, mask, memory_mask = stack_inputs()
    with record_attention(model) as maps:
        model(x, memory, mask, memory_mask)
    given = [(w, mask) for w in maps["own"]]
    given += [(w, memory_mask) for w in maps["blocks.1"]]
    for weights, allowed in given:
        allowed = allowed.expand_as(weights)
        assert weights[~allowed].eq(0).all(), "a hidden key has no weight"
        assert weights[allowed].gt(0).all()
        some = allowed.any(-1)
        assert_close(weights.sum(-1), some.double(), "sum over the allowed keys")


def test_recorded_weights_hold_no_graph():
    model = stack()
    with record_attention(model) as maps:
        assert model(*stack_inputs()).requires_grad
    for weights in itertools.chain(*maps.values()):
        assert not weights.requires_grad and weights.grad_fn is None


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_recording_changes_no_bit_and_draws_no_random_number(dtype, dropout, training):
    model = stack(dtype, dropout).train(training)
    tensors = stack_inputs(dtype)

    def run():
        torch.manual_seed(7)
        output = model(*tensors)
        state = torch.get_rng_state()
        x, memory, *_ = tensors
        return output, state, named_gradients(output, model, x=x, memory=memory)

    output, state, found = run()
    with record_attention(model):
        recorded_output, recorded_state, recorded_gradients = run()
    assert torch.equal(recorded_output, output)
    assert torch.equal(recorded_state, state), "the generator was used"
    for name, gradient in found.items():
        assert torch.equal(recorded_gradients[name], gradient), name


def test_recorded_weights_are_those_before_dropout():
    model, tensors = stack(dropout=0.5), stack_inputs()
    with record_attention(model) as maps:
        model(*tensors)
    x, _, mask, _ = tensors
    assert_close(maps["own"][0], model.own.weights(x, mask=mask))


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def test_hooks_are_gone_after_the_block():
    model, tensors = stack(), stack_inputs()
    with record_attention(model) as maps:
        assert hooks_of(model) == 2
        model(*tensors)
    assert hooks_of(model) == 0
    model(*tensors)
    assert len(maps["own"]) == 2 and len(maps["blocks.1"]) == 1


def test_hooks_are_gone_after_an_exception_in_the_block():
    model, tensors = stack(), stack_inputs()
    with pytest.raises(KeyError, match="in the block"), record_attention(model) as maps:
        model(*tensors)
        raise KeyError("in the block")
    assert hooks_of(model) == 0
    model(*tensors)
    assert len(maps["own"]) == 2, "what was recorded before stays, and no more comes"


def test_hooks_are_gone_after_an_exception_in_the_forward():
    model, tensors = stack(), stack_inputs()
    model.fails = True
    with pytest.raises(RuntimeError, match="in the forward"), record_attention(model):
        model(*tensors)
    assert hooks_of(model) == 0
    model.fails = False
    with record_attention(model) as maps:
        model(*tensors)
    assert len(maps["own"]) == 2, "recording works again"


def test_other_hooks_stay():
    model, seen = stack(), []
    model.own.register_forward_hook(lambda *_: seen.append(1))
    with record_attention(model):
        model(*stack_inputs())
    model(*stack_inputs())
    assert len(seen) == 4


def test_blocks_may_be_nested_and_each_records_for_itself():
    model, tensors = stack(), stack_inputs()
    with record_attention(model) as outer:
        model(*tensors)
        with record_attention(model.blocks) as inner:
            model(*tensors)
        model(*tensors)
    model(*tensors)
    assert {name: len(weights) for name, weights in outer.items()} == {
        "own": 6,
        "blocks.1": 3,
    }
    assert {name: len(weights) for name, weights in inner.items()} == {"1": 1}
    assert torch.equal(inner["1"][0], outer["blocks.1"][1])


def test_the_model_itself_has_no_name():
    module, mask = make_heads(), heads_mask()
    query, key, value = sequences()
    with record_attention(module) as maps:
        module(query, key, value, mask)
    assert list(maps) == [""]
    assert torch.equal(maps[""][0], module.weights(query, key, mask))


def test_a_module_with_two_names_is_recorded_under_its_first():
    module = make_heads()
    model = nn.Sequential(module, module)
    with record_attention(model) as maps:
        model(sequences()[0])
    assert {name: len(weights) for name, weights in maps.items()} == {"0": 2}


@pytest.mark.parametrize("named", range(5), ids="{} arguments by name".format)
def test_arguments_may_have_names(named):
    module, mask = make_heads(), heads_mask()
    query, key, value = sequences("cross with other values")
    arguments = {"query": query, "key": key, "value": value, "mask": mask}
    by_place = list(arguments.values())[: 4 - named]
    by_name = dict(list(arguments.items())[4 - named :])
    with record_attention(module) as maps:
        module(*by_place, **by_name)
    assert torch.equal(maps[""][0], module.weights(query, key, mask))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_recording_works_without_gradients(mode):
    model, tensors = stack(dropout=0.5).eval(), stack_inputs()
    with record_attention(model) as learning:
        wanted = model(*tensors)
    with mode(), record_attention(model) as maps:
        output = model(*tensors)
    assert torch.equal(output, wanted)
    for name, weights in learning.items():
        for one, other in zip(maps[name], weights, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_recording_under_autocast(dropout):
    model = stack(torch.float32, dropout)
    x, memory, mask, memory_mask = stack_inputs(torch.float32)

    def run():
        torch.manual_seed(7)
        with torch.autocast("cpu", torch.bfloat16):
            output = model(x, memory, mask, memory_mask)
        return output, named_gradients(output, model, x=x, memory=memory)

    output, found = run()
    with record_attention(model) as maps:
        recorded_output, recorded_gradients = run()
    assert torch.equal(recorded_output, output)
    for name, gradient in found.items():
        assert torch.equal(recorded_gradients[name], gradient), name
    weights = maps["own"][0]
    assert weights.dtype == torch.float32, "the softmax in single precision"
    with torch.autocast("cpu", torch.bfloat16):
        q, k = model.own.query_map(x), model.own.key_map(x)
    assert q.dtype == torch.bfloat16
    q, k = (y.double().unflatten(-1, (H, K)).transpose(1, 2) for y in (q, k))
    scores = (q @ k.transpose(-2, -1) / math.sqrt(K)).masked_fill(~mask, -math.inf)
    assert (weights - scores.softmax(-1)).abs().max() < 1e-6


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "model", [nn.Linear(2, 2), nn.MultiheadAttention(4, 2), DotAttention()]
)
def test_there_must_be_something_to_record(model):
    name = type(model).__name__
    message = f"^model must hold a MultiHeadAttention, and this {name} holds none$"
    with pytest.raises(ValueError, match=message), record_attention(model):
        raise AssertionError("the block must not begin")


@pytest.mark.bad_input
@pytest.mark.parametrize("model", [None, MultiHeadAttention, [make_heads]])
def test_only_a_module_can_be_recorded(model):
    message = f"^model must be an nn.Module, got {type(model).__name__}$"
    with pytest.raises(TypeError, match=message), record_attention(model):
        raise AssertionError("the block must not begin")


# ---- several heads, wrong arguments ------------------------------------------


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 3), r"^heads must divide d_model, got d_model=10 and heads=3, .* 1$"),
        ((0, 1), "^d_model must be a whole number above 0, got 0$"),
        ((4.0, 2), "^d_model must be a whole number above 0, got 4.0$"),
        ((4, 0), "^heads must be a whole number above 0, got 0$"),
        ((4, -2), "^heads must be a whole number above 0, got -2$"),
        ((4, True), "^heads must be a whole number above 0, got True$"),
        ((4, 2, 1.0), r"^dropout must lie in \[0, 1\), got 1.0$"),
        ((4, 2, -0.1), r"^dropout must lie in \[0, 1\), got -0.1$"),
    ],
)
def test_heads_and_width_must_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(*arguments)


def both(module: MultiHeadAttention) -> list:
    """The output, and the weights for a query, key and mask."""

    def weights(query, key=None, value=None, mask=None):
        return module.weights(query, key, mask)

    return [module, weights]


@pytest.mark.bad_input
@pytest.mark.parametrize("i", [0, 1], ids=["output", "weights"])
def test_inputs_of_heads_have_three_axes_and_the_width_of_the_module(i):
    run = both(make_heads())[i]
    x, y, _ = sequences()
    with pytest.raises(
        ValueError, match=r"^query must have the shape .* 15\), got \(2,"
    ):
        run(x[..., :7])
    with pytest.raises(
        ValueError, match=r"^query must have the shape .* 15\), got \(7,"
    ):
        run(x[0])
    with pytest.raises(ValueError, match=r"^key must have the shape .* 15\), got \(2,"):
        run(x, y[..., :7])
    with pytest.raises(
        ValueError, match=r"^key must have the shape .* 15\), got \(11,"
    ):
        run(x, y[0])
    if i == 0:
        with pytest.raises(ValueError, match=r"^value must have the shape .* 15\), go"):
            run(x, y, y[..., :7])


@pytest.mark.bad_input
@pytest.mark.parametrize("i", [0, 1], ids=["output", "weights"])
@pytest.mark.parametrize("wrong", ["query", "key"])
def test_inputs_of_heads_have_the_dtype_of_the_parameters(wrong, i):
    run = both(make_heads())[i]
    tensors = dict(zip(["query", "key"], sequences()[:2], strict=True))
    tensors[wrong] = tensors[wrong].float()
    message = f"^{wrong} must have the dtype .*, torch.float64, got torch.float32$"
    with pytest.raises(TypeError, match=message):
        run(**tensors)


@pytest.mark.bad_input
def test_values_of_heads_have_the_dtype_of_the_parameters():
    x, y, _ = sequences()
    with pytest.raises(
        TypeError, match=r"^value must have the dtype .* got torch.floa"
    ):
        make_heads()(x, y, y.half())


def test_autocast_takes_the_dtypes_that_it_levels():
    module = make_heads(torch.float32)
    x, y, _ = sequences(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module(x.bfloat16(), y), module(x, y))
        assert torch.equal(module.weights(x.bfloat16(), y), module.weights(x, y))


@pytest.mark.bad_input
@pytest.mark.parametrize("i", [0, 1], ids=["output", "weights"])
def test_inputs_of_heads_have_one_batch_size(i):
    run = both(make_heads())[i]
    x, y, _ = sequences()
    message = (
        r"^query, key and value must have the same batch size, .* got \(2, 7, 15\)"
    )
    with pytest.raises(ValueError, match=message):
        run(x, y[:1])


@pytest.mark.bad_input
def test_each_key_of_heads_has_one_value():
    x, y, _ = sequences()
    message = r"each key one value: .* \(2, 11, 15\), \(2, 8, 15\)$"
    with pytest.raises(ValueError, match=message):
        make_heads()(x, y, y[:, 3:])
    message = r"each key one value: .* \(2, 11, 15\), \(1, 11, 15\)$"
    with pytest.raises(ValueError, match=message):
        make_heads()(x, y, y[:1])


@pytest.mark.bad_input
@pytest.mark.parametrize("i", [0, 1], ids=["output", "weights"])
def test_the_mask_of_heads_is_checked(i):
    run = both(make_heads())[i]
    x, y, _ = sequences()
    numbers = torch.ones(QUERIES, KEYS)
    with pytest.raises(
        TypeError, match=r"^mask must be a boolean .* got torch.float32"
    ):
        run(x, y, mask=numbers)
    turned = torch.ones(KEYS, QUERIES, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"^mask of shape \(11, 7\) does not broadc"):
        run(x, y, mask=turned)


@pytest.mark.bad_input
@pytest.mark.parametrize("i", [0, 1], ids=["output", "weights"])
def test_a_mask_of_three_axes_would_be_read_as_one_for_each_head(i):
    run = both(make_heads())[i]
    x, y = torch.randn(2, H, QUERIES, D, dtype=torch.float64)
    one_a_sequence = torch.ones(H, QUERIES, QUERIES, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"pass mask\[:, None\], got \(3, 7, 7\)$"):
        run(x, y, mask=one_a_sequence)
    run(x, y, mask=one_a_sequence[:, None])
