"""annotated/sparse.py: against sets of positions, walks, and the dense mask."""

import pickle

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from annotated import sparse
from annotated.attention import (
    MultiHeadAttention,
    record_attention,
    scaled_dot_product_attention,
)
from annotated.masks import causal_mask, length_mask
from annotated.positions import RotaryMultiHeadAttention
from annotated.sparse import (
    Pattern,
    SparseSelfAttention,
    block_layout,
    block_sparse_attention,
    dilated_pattern,
    fixed_patterns,
    global_pattern,
    layers_to_reach,
    local_pattern,
    reach,
    strided_patterns,
)

# b 2, h 3, t 23, k 5, v 7, c 4
B, H, T, K, V, C = 2, 3, 23, 5, 7, 4


def assert_near(actual, expected, limit=1e-12, why=""):
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=limit, msg=lambda text: f"{why}\n{text}"
    )


# ---- patterns: against the sets of the papers ------------------------------------


def local(i, window, causal):
    return {j for j in range(T) if abs(i - j) < window}


def dilated(i, window, dilation, causal):
    near = range(-window + 1, window)
    return {i - dilation * m for m in near}


def strided(i, stride, causal):
    return {j for j in range(T) if (i - j) % stride == 0}


def same_stretch(i, stride, summary, causal):
    return {j for j in range(T) if j // stride == i // stride}


def ends(i, stride, summary, causal):
    return {j for j in range(T) if j % stride in range(stride - summary, stride)}


def few(i, positions, causal):
    return set(range(T)) if i in positions else set(positions)


def dense(keys_of, *options, causal):
    """The mask of a set of keys for each query."""
    mask = torch.zeros(T, T, dtype=torch.bool)
    for i in range(T):
        for j in keys_of(i, *options, causal):
            if 0 <= j < T and (j <= i or not causal):
                mask[i, j] = True
    return mask


PATTERNS = {
    "local": (lambda causal: local_pattern(5, causal), local, (5,)),
    "only itself": (lambda causal: local_pattern(1, causal), local, (1,)),
    "dilated": (lambda causal: dilated_pattern(3, 4, causal), dilated, (3, 4)),
    "first step": (lambda causal: strided_patterns(7, causal)[0], local, (7,)),
    "second step": (lambda causal: strided_patterns(7, causal)[1], strided, (7,)),
    "stretch": (lambda causal: fixed_patterns(7, 2, causal)[0], same_stretch, (7, 2)),
    "ends": (lambda causal: fixed_patterns(7, 2, causal)[1], ends, (7, 2)),
    "end": (lambda causal: fixed_patterns(7, causal=causal)[1], ends, (7, 1)),
    "global": (lambda causal: global_pattern([3, 11], causal), few, ([3, 11],)),
    "nobody": (lambda causal: global_pattern([], causal), few, ([],)),
}


def composed():
    """Patterns that ``&``, ``|`` and rules make, and their masks."""
    near, every = strided_patterns(6)
    other = dilated_pattern(9, 4, causal=False)
    a = dense(local, 6, causal=True)
    b = dense(strided, 6, causal=True)
    c = dense(dilated, 9, 4, causal=False)
    wide = Pattern(rule=lambda i, j: (i * j) % 5 == 3)  # leaves rows empty
    i, j = torch.meshgrid(torch.arange(T), torch.arange(T), indexing="ij")
    return {
        "near | every": (near | every, a | b),
        "every | near": (every | near, a | b),
        "every & other": (every & other, b & c),
        "other & every": (other & every, b & c),
        "every | other": (every | other, b | c),
        "a & b | c": (near & every | other, a & b | c),
        "rule": (wide, (i * j) % 5 == 3),
        "near & rule": (near & wide, a & ((i * j) % 5 == 3)),
        "rule & near": (wide & near, a & ((i * j) % 5 == 3)),
        "before": (Pattern(high=-3), i - j <= -3),
        "nothing": (Pattern(5, 4), torch.zeros(T, T, dtype=torch.bool)),
    }


def all_patterns():
    for causal in (True, False):
        for name, (make, keys_of, options) in PATTERNS.items():
            mask = dense(keys_of, *options, causal=causal)
            yield pytest.param(make(causal), mask, id=f"{name}, causal {causal}")
    for name, (pattern, mask) in composed().items():
        yield pytest.param(pattern, mask, id=name)


ALL = list(all_patterns())


@pytest.mark.parametrize(("pattern", "mask"), ALL)
def test_a_pattern_is_the_papers_set_of_keys(pattern, mask):
    assert torch.equal(pattern.mask(T), mask[None, None])
    assert torch.equal(pattern.mask(3, T), mask[None, None, -3:])
    assert pattern.mask(T).dtype == torch.bool


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_and_a_model_with_it_can_be_pickled(name):
    make, _, _ = PATTERNS[name]
    own, again = make(True), make(True)
    for pattern, same in ((own, again), (own & own, again & again), (own | own,) * 2):
        assert pattern == same and hash(pattern) == hash(same)
        assert pickle.loads(pickle.dumps(pattern)) == pattern
    assert own != local_pattern(3)
    module = SparseSelfAttention(6, 3, pattern=own | local_pattern(2), block=C)
    again, x = pickle.loads(pickle.dumps(module)), torch.randn(B, T, 6)
    assert torch.equal(again(x), module(x))


def test_patterns_know_whether_they_are_causal():
    for name, (make, *_) in PATTERNS.items():
        assert make(True).causal
        assert make(False).causal == (name == "only itself")
    near, ends = local_pattern(3), fixed_patterns(5, causal=False)[1]
    assert (near & ends).causal and not (near | ends).causal
    assert not Pattern(high=4).causal, "the pitfall q − k <= w: the future is seen"


def test_two_patterns_together_keep_what_both_know():
    """Bounds and period, by which a layout looks into few blocks."""
    one, other = Pattern(-5, 9, 4), Pattern(-2, 12, 6)
    both, either = one & other, one | other
    assert (both.low, both.high, both.period) == (-2, 9, 12)
    assert (either.low, either.high, either.period) == (-5, 12, 2)


def test_flex_attention_reads_a_pattern_as_its_mask():
    from torch.nn.attention.flex_attention import create_mask

    pattern = local_pattern(4) | global_pattern([2]) | strided_patterns(5)[1]
    mask = create_mask(lambda b, h, i, j: pattern(i, j), None, None, T, T, "cpu")
    assert torch.equal(mask, pattern.mask(T))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: local_pattern(0), "window must be an integer ≥ 1, got 0"),
        (lambda: dilated_pattern(0, 2), "window must be"),
        (lambda: dilated_pattern(2, 0), "dilation must be"),
        (lambda: strided_patterns(0), "stride must be an integer ≥ 1, got 0"),
        (lambda: fixed_patterns(0, 1), "stride must be"),
        (lambda: fixed_patterns(4, 0), "summary must be an integer ≥ 1"),
        (lambda: fixed_patterns(4, 5), "summary must be at most stride"),
        (lambda: global_pattern([3, -1]), r"positions\[1\] must be an integer ≥ 0"),
        (lambda: Pattern(period=0), "period must be"),
        (lambda: local_pattern(2).mask(5, 4), "queries must be at most keys"),
        (lambda: block_layout(local_pattern(2), 0, 5), "block must be an integer"),
        (lambda: block_layout(local_pattern(2), 3, 0), "queries must be an integer"),
        (lambda: block_layout(local_pattern(2), 3, 5, 4), "queries must be at most"),
        (lambda: reach([], 2), "masks must hold at least one"),
        (lambda: layers_to_reach([]), "masks must hold at least one"),
        (lambda: reach([causal_mask(3)], 0), "layers must be"),
        (lambda: reach([causal_mask(3), causal_mask(4)], 2), "masks must be square"),
        (lambda: reach([causal_mask(3, 4)], 2), r"of one length, got \[\(3, 4\)\]"),
        (lambda: reach([torch.ones(3, dtype=torch.bool)], 2), "masks must be square"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


# ---- reach: against walks --------------------------------------------------------


def walk(masks, layers):
    """The positions that each one's sets of keys lead to, layer by layer."""
    heard = [{i} for i in range(T)]
    for layer in range(layers):
        mask = masks[layer % len(masks)]
        heard = [
            set().union(heard[i], *(heard[j] for j in range(T) if mask[i, j]))
            for i in range(T)
        ]
        yield torch.tensor([[j in own for j in range(T)] for own in heard])


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_reach_follows_every_path(layers):
    masks = [
        dense(dilated, 2, 5, causal=True),
        dense(ends, 7, 1, causal=False),
        dense(few, [3], causal=True),
    ]
    for some in (masks, masks[::-1], masks[:1]):
        found = reach(some, layers)
        assert found.dtype == torch.bool
        assert torch.equal(found, torch.stack(list(walk(some, layers))))


def test_reach_takes_the_union_over_heads():
    near, every = (p.mask(T) for p in strided_patterns(5))
    heads = torch.cat([near, every], dim=1)
    assert torch.equal(reach([heads], 3), reach([near | every], 3))


def test_how_many_layers_a_pattern_needs():
    near, every = (p.mask(T) for p in strided_patterns(5))
    assert layers_to_reach([causal_mask(T)]) == 1
    assert layers_to_reach([near, every]) == layers_to_reach([every, near]) == 2
    assert layers_to_reach([near | every]) == 2
    assert layers_to_reach([every]) is None
    assert layers_to_reach([every, every]) is None
    for window in (2, 5, 22, 23):  # a layer goes window − 1 back
        assert layers_to_reach([local_pattern(window).mask(T)]) == -(
            -22 // (window - 1)
        )
    assert layers_to_reach([local_pattern(1).mask(T)]) is None
    assert layers_to_reach([local_pattern(2, causal=False).mask(T)]) == T - 1
    assert layers_to_reach([global_pattern([9], causal=False).mask(T)]) == 2
    assert layers_to_reach([global_pattern([0]).mask(T)]) is None, "the past of 0 is 0"
    nothing = torch.zeros(T, T, dtype=torch.bool)
    assert layers_to_reach([nothing, nothing, causal_mask(T)]) == 3
    assert layers_to_reach([local_pattern(2).mask(T), nothing]) == 2 * (T - 1) - 1
    hears = torch.zeros(T, T, dtype=torch.bool)
    hears[9] = True  # 9 hears from all; of it all hear, by the mask turned over
    assert layers_to_reach([hears, hears.T]) == 2
    assert layers_to_reach([hears.T, hears]) == 3
    assert layers_to_reach([causal_mask(T)[0, 0], ~causal_mask(T)[0, 0]]) == 2


# ---- the layout ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (local_pattern(256), 16_384 * (256 + 2 * 64)),
        (strided_patterns(256)[1], 16_384 * (16_384 // 256 + 64)),
        (dilated_pattern(256, 64), 16_384 * (256 + 2 * 64)),
    ],
    ids=["local", "strided", "dilated"],
)
def test_a_layout_of_16384_positions_asks_about_few_pairs(pattern, most):
    """Neither it nor what makes it is as large as (t, t)."""
    asked = 0

    def rule(i, j):
        nonlocal asked
        asked += torch.broadcast_shapes(i.shape, j.shape).numel()
        return torch.ones_like(i + j, dtype=torch.bool)

    counted = Pattern(pattern.low, pattern.high, pattern.period, rule)
    layout = block_layout(counted, 64, 16_384)
    assert layout.computed <= asked <= most
    assert layout.lengths == (16_384, 16_384), "keys are as many"


def test_a_layout_is_made_where_it_is_used():
    layout = block_layout(local_pattern(6), C, T, device="meta")
    for part in (layout.queries, layout.keys, layout.place, layout.allowed):
        assert part.is_meta
    assert layout.rows.is_meta and layout.columns.is_meta


# ---- attention in blocks: against the dense mask ---------------------------------


def inputs(t=T, s=T, dtype=torch.float64):
    sizes = (t, K), (s, K), (s, V)
    return [torch.randn(B, H, *n, dtype=dtype, requires_grad=True) for n in sizes]


def assert_same(one, other, tensors, limit=1e-12):
    """Outputs and gradients."""
    towards = torch.randn_like(one)
    assert one.dtype == other.dtype
    assert_near(one, other, limit)
    mine, theirs = (torch.autograd.grad(x, tensors, towards) for x in (one, other))
    assert_near(mine, theirs, limit, "a gradient")


@pytest.mark.parametrize(("pattern", "mask"), ALL)
@pytest.mark.parametrize("block", [1, C, 23, 50])
def test_attention_in_blocks_is_attention_under_the_mask(pattern, mask, block):
    tensors = inputs()
    layout = block_layout(pattern, block, T)
    assert layout.allowed.flatten(1).any(dim=1).all(), "a block for nothing"
    assert layout.allowed.sum() == mask.sum(), "a pair stands in one block"
    assert layout.computed == len(layout.rows) * block**2
    found = block_sparse_attention(*tensors, layout)
    expected, _ = scaled_dot_product_attention(*tensors, mask)
    assert_same(found, expected, tensors)
    empty = ~mask.any(dim=-1)
    assert (found[:, :, empty] == 0).all()


@pytest.mark.parametrize("block", [3, 5])
def test_the_last_queries_of_more_keys(block):
    tensors = inputs(t=7)
    for pattern, mask in composed().values():
        layout = block_layout(pattern, block, 7, T)
        assert layout.lengths == (7, T)
        assert layout.queries.shape == (-(-7 // block), block), "no row for nothing"
        expected, _ = scaled_dot_product_attention(*tensors, mask[-7:])
        assert_same(block_sparse_attention(*tensors, layout), expected, tensors)


@pytest.mark.parametrize("pattern", [local_pattern(6), *strided_patterns(5)])
def test_padding_is_hidden(pattern):
    tensors = inputs()
    real = length_mask(torch.tensor([T, 8]), T).roll(3, dims=-1)  # before, too
    layout = block_layout(pattern, C, T)
    found = block_sparse_attention(*tensors, layout, real)
    expected, _ = scaled_dot_product_attention(*tensors, pattern.mask(T) & real)
    assert_same(found, expected, tensors)
    if pattern.high < T:
        assert (found[1, :, -1] == 0).all()


def test_large_scores_do_not_overflow():
    q, k, v = inputs()
    layout = block_layout(local_pattern(9), C, T)
    tensors = [1e3 * q, 1e3 * k, v]
    found = block_sparse_attention(*tensors, layout)
    expected, _ = scaled_dot_product_attention(*tensors, local_pattern(9).mask(T))
    assert_same(found, expected, [v], limit=1e-9)
    same = torch.full_like(q, -1e3)  # every score far below 0
    found = block_sparse_attention(same, -same, v, layout)
    assert_near(found[:, :, 0], v[:, :, 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_precisions(dtype):
    layout = block_layout(local_pattern(9), C, T)
    tensors = inputs(dtype=dtype)
    found = block_sparse_attention(*tensors, layout)
    wide = [x.detach().float() for x in tensors]
    expected, _ = scaled_dot_product_attention(*wide, local_pattern(9).mask(T))
    assert found.dtype == dtype
    assert_near(found, expected.to(dtype), limit=torch.finfo(dtype).eps * 8)


def test_a_long_row_in_half_precision_loses_nothing():
    """In bfloat16 256 + 1 is 256."""
    layout = block_layout(Pattern(low=0), 1, 601)
    ones = torch.ones(1, 1, 601, 1, dtype=torch.bfloat16)
    first = (torch.arange(601) < 200)[:, None] * ones
    found = block_sparse_attention(ones, ones, first, layout)
    assert_near(found[0, 0, -1].item(), 200 / 601, 0.002)


def test_autocast_leaves_the_sums_as_they_are():
    tensors = inputs(dtype=torch.float32)
    layout = block_layout(local_pattern(9), C, T)
    with torch.autocast("cpu", torch.bfloat16):
        found = block_sparse_attention(*tensors, layout)
    assert_near(found, block_sparse_attention(*tensors, layout), 0)


def test_dropout_drops_weights_and_keeps_their_mean():
    tensors = inputs(dtype=torch.float32)[:2]
    values = torch.eye(T).expand(B, H, T, T)
    layout = block_layout(local_pattern(9), C, T)
    whole = block_sparse_attention(*tensors, values, layout)
    dropped = block_sparse_attention(*tensors, values, layout, dropout=0.25)
    gone = (dropped == 0) & (whole > 0)
    assert_near(dropped, torch.where(gone, 0.0, whole / 0.75), 1e-6)
    assert abs(gone.sum() / (whole > 0).sum() - 0.25) < 0.05


def test_multiplications_are_those_of_kept_blocks():
    layout = block_layout(strided_patterns(8)[1], 5, 160)
    q, k, v = inputs(160, 160)
    with FlopCounterMode(display=False) as counter:
        block_sparse_attention(q, k, v, layout)
    assert counter.get_total_flops() == 2 * B * H * layout.computed * (K + V)
    assert layout.computed < 160**2 / 6


@pytest.mark.parametrize(
    "pattern", [local_pattern(256), strided_patterns(256)[1]], ids=["local", "strided"]
)
def test_no_tensor_of_16384_positions_is_as_large_as_its_square(pattern):
    """Whatever the forward and backward passes make: looked at one by one."""
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = 0

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    t = 16_384
    q, k, v = (torch.randn(1, 1, t, 4, requires_grad=True) for _ in range(3))
    with Look():
        layout = block_layout(pattern, 64, t)
        block_sparse_attention(q, k, v, layout).sum().backward()
    assert layout.computed <= largest < t * 400


def test_wrong_arguments_of_attention_are_refused():
    q, k, v = inputs()
    layout = block_layout(local_pattern(3), C, T)
    with pytest.raises(ValueError, match=r"layout must be for \(22, 23\) queries and"):
        block_sparse_attention(q[:, :, 1:], k, v, layout)
    with pytest.raises(ValueError, match=r"mask must have the shape \(_, 1, 1, s\)"):
        block_sparse_attention(q, k, v, layout, causal_mask(T))
    with pytest.raises(ValueError, match="mask must be broadcastable"):
        mask = torch.ones(B + 1, 1, 1, T, dtype=torch.bool)
        block_sparse_attention(q, k, v, layout, mask)
    with pytest.raises(ValueError, match="v must have the shape"):
        block_sparse_attention(q, k, v[:, :, 1:], layout)


# ---- the module ------------------------------------------------------------------

D = 12
HEADS = [*strided_patterns(5), local_pattern(3) | global_pattern([0])]


def pair_of_modules(pattern, causal=True, **options):
    """Sparse, and dense with the same weights."""
    module = SparseSelfAttention(
        D, H, pattern=pattern, block=C, causal=causal, **options
    ).double()
    other = MultiHeadAttention(D, H, causal=causal, **options).double()
    other.load_state_dict(module.state_dict())
    return module, other


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kv_heads", [None, 1])
@pytest.mark.parametrize("pattern", [local_pattern(6), HEADS], ids=["one", "heads"])
def test_the_module_is_dense_attention_with_the_mask(pattern, kv_heads, padded):
    module, other = pair_of_modules(pattern, kv_heads=kv_heads)
    assert module.causal
    patterns = [pattern] if isinstance(pattern, Pattern) else pattern
    mask = torch.cat([p.mask(T) for p in patterns], dim=1)
    real = length_mask(torch.tensor([T, 8]), T).roll(3, dims=-1) if padded else None
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    found = module(x, mask=real)
    whole = mask if real is None else mask & real
    expected = other(x, mask=whole)
    assert_near(found, expected)
    grads = [
        torch.autograd.grad(y.square().sum(), [x, *m.parameters()])
        for y, m in ((found, module), (expected, other))
    ]
    assert_near(*grads)
    with record_attention(module) as maps:
        again = module(x, mask=real)
    assert torch.equal(again, found)
    assert_near(maps[""][0], other.weights(x, mask=whole).detach())


def test_attention_both_ways_has_a_pattern_both_ways():
    pattern = local_pattern(4, causal=False)
    module, other = pair_of_modules(pattern, causal=False)
    x = torch.randn(B, T, D, dtype=torch.float64)
    assert_near(module(x), other(x, mask=pattern.mask(T)))


def test_the_last_queries_see_what_they_see_among_all():
    module, _ = pair_of_modules(HEADS)
    x = torch.randn(B, T, D, dtype=torch.float64)
    q, k, v = module.project(x)
    assert_near(module.attend(q[:, :, -4:], k, v), module(x)[:, -4:])
    assert_near(module(x[:, :9]), module(x)[:, :9], why="a shorter text")


def test_weights_are_dropped_in_training_alone():
    module = SparseSelfAttention(D, H, 0.5, pattern=local_pattern(6), block=C)
    x = torch.randn(B, T, D)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))


def test_a_layout_is_found_once_for_all_layers(monkeypatch):
    seen = []
    layout = sparse.block_layout

    def look(*args):
        seen.append(args)
        return layout(*args)

    monkeypatch.setattr(sparse, "_kept_layout", sparse.lru_cache(look))
    modules = [
        SparseSelfAttention(D, H, pattern=local_pattern(6), block=C) for _ in range(3)
    ]
    x = torch.randn(B, T, D)
    for module in modules:
        module(module(x))
    assert seen == [(local_pattern(6), C, T, T, x.device)]
    modules[0](x[:, :5])
    assert len(seen) == 2


def test_layouts_are_kept():
    module = SparseSelfAttention(D, H, pattern=local_pattern(11), block=C)
    x = torch.randn(B, T, D)
    module(x)
    before = sparse._kept_layout.cache_info()
    module(x)
    after = sparse._kept_layout.cache_info()
    assert after.hits == before.hits + 1 and after.misses == before.misses
    assert after.maxsize is not None, "memory grows for ever"


def test_rotary_positions_go_with_a_pattern():
    class Both(SparseSelfAttention, RotaryMultiHeadAttention):
        pass

    module = Both(24, H, pattern=local_pattern(6), block=C).double()
    other = RotaryMultiHeadAttention(24, H).double()
    other.load_state_dict(module.state_dict())
    x = torch.randn(B, T, 24, dtype=torch.float64)
    assert_near(module(x), other(x, mask=local_pattern(6).mask(T)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": Pattern(high=5)}, "pattern must be causal"),
        ({"pattern": [*HEADS[:2], Pattern()]}, "pattern must be causal"),
        ({"pattern": HEADS[:2]}, "one for each of 3 heads, got 2"),
        ({"pattern": HEADS[:1]}, "one for each of 3 heads, got 1"),
        ({"pattern": []}, "one for each of 3 heads, got 0"),
        ({"pattern": HEADS, "block": 0}, "block must be an integer"),
    ],
)
def test_a_module_refuses_what_does_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        SparseSelfAttention(D, H, **options)


def test_a_text_of_no_token_is_read_as_dense_attention_reads_it():
    module = SparseSelfAttention(6, 3, pattern=local_pattern(2))
    for mask in (None, torch.ones(B, 1, 1, 0, dtype=torch.bool)):
        assert module(torch.randn(B, 0, 6), mask=mask).shape == (B, 0, 6)


def test_a_bias_of_scores_is_refused_and_not_forgotten():
    class Biased(SparseSelfAttention):
        def score_bias(self, q, k, slope=1.0):
            return torch.full((1,), slope)

    module = Biased(6, 3, pattern=local_pattern(2))
    with pytest.raises(ValueError, match="score_bias must be None, got that of Biased"):
        module(torch.randn(B, T, 6), slope=2.0)


def test_a_mask_of_pairs_belongs_into_the_pattern():
    module = SparseSelfAttention(D, H, pattern=local_pattern(3))
    with pytest.raises(ValueError, match=r"mask must have the shape \(_, 1, 1, s\)"):
        module(torch.randn(B, T, D), mask=causal_mask(T))
