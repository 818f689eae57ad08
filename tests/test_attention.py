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
    scaled_dot_product_attention,
)

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
@pytest.mark.parametrize("dropout", [1.0, -0.1, 1.5, math.nan])
def test_dropout_is_a_probability_below_one(dropout):
    message = rf"^dropout must lie in \[0, 1\), got {dropout}$"
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_of_very_low_scores_still_sum_to_one(dtype):
    # with a finite filling the hidden key would tie with the others
    scores = torch.full((1, 3), torch.finfo(dtype).min, dtype=dtype)
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


# ---- several heads -----------------------------------------------------------


def heads_and_reference(d_model=12, heads=3, bias=True):
    """The module, and PyTorch's with the same weights."""
    torch.manual_seed(3)
    module = MultiHeadAttention(d_model, heads, bias=bias)
    reference = nn.MultiheadAttention(d_model, heads, bias=bias, batch_first=True)
    maps = (module.query_map, module.key_map, module.value_map)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
        reference.out_proj.weight.copy_(module.output_map.weight)
        if bias:
            reference.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
            reference.out_proj.bias.copy_(module.output_map.bias)
    return module, reference


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_heads_agree_with_pytorchs_forward_and_backward(masked, bias):
    module, reference = heads_and_reference(bias=bias)
    query, key, value = (torch.randn(2, n, 12, requires_grad=True) for n in (5, 7, 7))
    mask = torch.rand(2, 1, 5, 7) < 0.6
    mask[..., 2] = True
    ours = module(query, key, value, mask if masked else None)
    hidden = ~mask.expand(2, 3, 5, 7).reshape(6, 5, 7) if masked else None
    theirs, _ = reference(query, key, value, attn_mask=hidden)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=0)
    pull = torch.randn_like(ours)
    inputs = (query, key, value)
    for mine, other in zip(
        torch.autograd.grad((ours * pull).sum(), inputs),
        torch.autograd.grad((theirs * pull).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, atol=5e-6, rtol=0)


def test_key_is_the_query_and_value_the_key_by_default():
    module, _ = heads_and_reference()
    x, y = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    torch.testing.assert_close(module(x), module(x, x, x))
    torch.testing.assert_close(module(x, y), module(x, y, y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_query_with_no_key_left_gets_the_bias_and_no_nan(dtype):
    module = heads_and_reference()[0].to(dtype)
    x = torch.randn(2, 5, 12, dtype=dtype, requires_grad=True)
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[1, :, 3] = False
    out = module(x, mask=mask)
    torch.testing.assert_close(out[1, 3], module.output_map.bias)
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in module.parameters())


def test_dropout_is_for_training_alone():
    torch.manual_seed(0)
    module = MultiHeadAttention(12, 3, dropout=0.5)
    x = torch.randn(2, 5, 12)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 3), r"^heads must divide d_model, got d_model=10 and heads=3, .* 1$"),
        ((0, 1), "^d_model must be a whole number above 0, got 0"),
        ((4, 0), "^heads must be a whole number above 0, got 0"),
        ((4, 2, 1.0), r"^dropout must lie in \[0, 1\), got 1.0"),
    ],
)
def test_heads_and_width_must_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(*arguments)


@pytest.mark.bad_input
def test_the_inputs_of_heads_must_fit():
    module = MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12)
    with pytest.raises(ValueError, match=r"^query must have the shape .* 12\), got"):
        module(x[..., :7])
    with pytest.raises(ValueError, match=r"^key must have the shape .* 12\), got"):
        module(x, x[0])
    with pytest.raises(ValueError, match=r"^query, key and value must have the same"):
        module(x, x[:1])
    with pytest.raises(ValueError, match="each key one value"):
        module(x, x, x[:, :3])
    with pytest.raises(TypeError, match=r"^mask must be a boolean tensor"):
        module(x, mask=torch.ones(5, 5))
    with pytest.raises(ValueError, match=r"^mask of shape"):
        module(x, mask=torch.ones(4, 4, dtype=torch.bool))
    one_a_sequence = torch.ones(3, 5, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"pass mask\[:, None\], got \(3, 5, 5\)$"):
        MultiHeadAttention(12, 3)(torch.randn(3, 5, 12), mask=one_a_sequence)
