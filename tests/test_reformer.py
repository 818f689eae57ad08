"""annotated/reformer.py: against loops over pairs, and what others computed."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotated.masks import length_mask
from annotated.positions import sinusoidal_encoding
from annotated.reformer import (
    LSHSelfAttention,
    Reformer,
    ReformerConfig,
    lsh_attention,
    lsh_buckets,
)
from annotated.reversible import ReversibleBlock, ReversibleSequence
from tests.compare import gradients
from tests.refused import assert_refused, table

# b 2, h 3, t 11, k 4, v 5, r 3, c 3
B, H, T, K, V, R, C = 2, 3, 11, 4, 5, 3, 3
REFERENCE = numpy.load(Path(__file__).parent / "references" / "reformer.npz")


def assert_near(actual, expected, limit=1e-5, why=""):
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=limit, msg=lambda text: f"{why}\n{text}"
    )


# ---- lsh_buckets -------------------------------------------------------------


def test_a_bucket_is_the_nearest_axis_after_a_random_map():
    vectors = torch.randn(B, T, K)
    found = lsh_buckets(vectors, 6, R, torch.Generator().manual_seed(3))
    maps = torch.randn(R, K, 3, generator=torch.Generator().manual_seed(3))
    assert found.shape == (B, R, T)
    assert found.dtype == torch.int64
    for n, r, i in numpy.ndindex(B, R, T):
        turned = (vectors[n, i] @ maps[r]).tolist()
        along = turned + [-x for x in turned]
        assert found[n, r, i] == along.index(max(along))


def test_several_numbers_are_digits_of_a_bucket():
    x = torch.randn(B, T, K)
    found = lsh_buckets(x, (4, 6), R, torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(1)
    high = lsh_buckets(x, 4, R, generator)
    low = lsh_buckets(x, 6, R, generator)
    assert torch.equal(found, 6 * high + low)


def test_buckets_have_no_gradient_and_take_any_precision():
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        x = torch.randn(B, H, T, K, dtype=dtype, requires_grad=True)
        found = lsh_buckets(x, 4, R)
        assert found.shape == (B, H, R, T)
        assert not found.requires_grad
        assert set(found.flatten().tolist()) == {0, 1, 2, 3}


def test_maps_are_drawn_where_the_generator_is(monkeypatch):
    """There's no GPU here, and PyTorch's own generators are all on the CPU."""
    where, draw = [], torch.randn

    class OnGPU(torch.Generator):
        device = torch.device("meta")

    def randn(*sizes, generator=None, device=None):
        where.append(torch.device(device or "cpu").type)
        return draw(*sizes)

    monkeypatch.setattr(torch, "randn", randn)
    x = torch.ones(T, K)
    for generator in (None, torch.Generator(), OnGPU()):
        lsh_buckets(x, 4, R, generator)
    assert where == ["cpu", "cpu", "meta"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_vectors_on_a_gpu_are_hashed_by_a_generator_of_either_device(place):
    x, draws = torch.randn(T, K).cuda(), torch.Generator(place)
    one, other = (lsh_buckets(x, 4, R, draws.manual_seed(1)) for _ in range(2))
    assert one.is_cuda and torch.equal(one, other)


# ---- lsh_attention: against loops --------------------------------------------


def meetings(buckets, chunk, real):
    """How often each pair meets, (t, t): r rounds of sorting, cutting, looking back."""
    t = buckets.shape[1]
    count = torch.zeros(t, t, dtype=torch.float64)
    for row in buckets.tolist():
        order = sorted((b, i) for i, b in enumerate(row) if real[i])
        chunks = [[i for _, i in order[s : s + chunk]] for s in range(0, t, chunk)]
        for n, members in enumerate(chunks):
            near = set(members)
            if len(chunks) > 1:
                near |= set(chunks[n - 1] if n else chunks[1])
            for i in members:
                for j in near:
                    count[i, j] += 1
    return count


def slow_attention(query, value, buckets, chunk, causal, mask, scale, repeats):
    """One softmax a query, over the keys that it met: a dense matrix, no sort."""
    output = torch.zeros(*query.shape[:2], value.shape[-1], dtype=query.dtype)
    for n in range(len(query)):
        real = [True] * query.shape[1] if mask is None else mask[n].tolist()
        count = meetings(buckets[n], chunk, real)
        for i, q in enumerate(query[n]):
            if not real[i]:
                continue
            keys = [
                j
                for j in range(query.shape[1])
                if count[i, j] and j != i and not (causal and j > i)
            ] or [i]
            scores = torch.stack(
                [scale * q @ query[n, j] / query[n, j].norm() for j in keys]
            )
            if repeats:
                scores = scores + count[i, keys].log()
            output[n, i] = scores.softmax(dim=0) @ value[n, keys]
    return output


def data(t=T, dtype=torch.float64):
    query = torch.randn(B, t, K, dtype=dtype, requires_grad=True)
    value = torch.randn(B, t, V, dtype=dtype, requires_grad=True)
    return query, value, lsh_buckets(query, 4, R)


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("t", "chunk"), [(12, 3), (11, 3), (13, 3), (9, 4), (8, 4), (7, 1), (5, 9), (2, 1)]
)
def test_attention_is_a_softmax_over_those_that_one_meets(t, chunk, causal, repeats):
    query, value, buckets = data(t)
    options = chunk, causal, None, 0.7, repeats
    outputs = (
        lsh_attention(query, value, buckets, *options),
        slow_attention(query, value, buckets, *options),
    )
    assert_near(*outputs, 1e-12)
    found, wanted = (gradients(output, (query, value)) for output in outputs)
    for one, other in zip(found, wanted, strict=True):
        assert other.abs().max() > 0.01 or t == 2  # the one key has all the weight
        assert_near(one, other, 1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("chunk", [2, 3, 8])
def test_padding_is_met_by_nobody_and_gets_zeros(chunk, causal):
    query, value, buckets = data()
    mask = torch.rand(B, T) > 0.4
    mask[1, :2] = False  # before the text as well
    options = chunk, causal, mask, 1.0, False
    found = lsh_attention(query, value, buckets, *options)
    assert_near(found, slow_attention(query, value, buckets, *options), 1e-12)
    assert torch.equal(found[~mask], torch.zeros_like(found[~mask]))
    with torch.no_grad():
        query[~mask] = 1e3
        value[~mask] = 1e3
        buckets[~mask[:, None].expand_as(buckets)] = 0
    assert torch.equal(lsh_attention(query, value, buckets, *options), found)


def test_padding_alone_gives_zeros_and_finite_gradients():
    query, value, buckets = data()
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[0] = False
    found = lsh_attention(query, value, buckets, C, mask=mask)
    assert torch.equal(found[0], torch.zeros_like(found[0]))
    for gradient in torch.autograd.grad(found.sum(), (query, value)):
        assert gradient.isfinite().all()


def exact(query, value, causal, scale=1.0):
    """Shared-QK attention to all: by PyTorch's kernel, itself hidden."""
    t = query.shape[-2]
    key = query / query.norm(dim=-1, keepdim=True)
    mask = ~torch.eye(t, dtype=torch.bool)
    if causal:
        mask &= torch.ones(t, t, dtype=torch.bool).tril()
        mask[0, 0] = True
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=scale
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("t", "chunk"), [(12, 6), (11, 6), (11, 64), (4, 3)])
def test_if_two_chunks_are_all_it_is_exact_attention(t, chunk, causal):
    query, value = (torch.randn(B, H, t, K, requires_grad=True) for _ in range(2))
    outputs = (
        lsh_attention(query, value, lsh_buckets(query, 4, R), chunk, causal),
        exact(query, value, causal),
    )
    assert_near(*outputs)
    found, wanted = (gradients(output, (query, value)) for output in outputs)
    assert_near(found, wanted, 3e-5)


def test_rounds_come_closer_to_exact_attention():
    query, value = torch.randn(200, 8), torch.randn(200, V)
    wanted = exact(4 * query, value, causal=False)
    errors = []
    for rounds in (1, 4, 16):
        buckets = lsh_buckets(query, 20, rounds)
        found = lsh_attention(4 * query, value, buckets, 10)
        errors.append((found - wanted).norm() / wanted.norm())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_alone_one_attends_to_oneself():
    """Chunks of 1: in a causal round the earlier of two that meet sees itself alone."""
    query, value, _ = data(3)
    buckets = torch.tensor([[[2, 0, 1]]]).expand(B, 1, 3)  # sorted: 1, 2, 0
    found = lsh_attention(query, value, buckets, 1, causal=True)
    assert_near(found[:, 1], value[:, 1], 1e-12)  # looks at 2, which is later
    assert_near(found[:, 2], value[:, 1], 1e-12)
    assert_near(found[:, 0], value[:, 0], 1e-12)
    single = lsh_attention(query[:, :1], value[:, :1], buckets[..., :1], 4)
    assert_near(single, value[:, :1], 1e-12)


@pytest.mark.parametrize(
    ("dtype", "limit"), [(torch.float16, 4e-3), (torch.bfloat16, 4e-2)]
)
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_is_near_and_finite(dtype, limit, causal):
    query, value, buckets = data(dtype=dtype)
    found = lsh_attention(query, value, buckets, C, causal)
    assert found.dtype == dtype
    wanted = lsh_attention(query.float(), value.float(), buckets, C, causal)
    assert_near(found.float(), wanted, limit)
    for gradient in torch.autograd.grad(found.sum(), (query, value)):
        assert gradient.isfinite().all()
    large = lsh_attention(3000 * query, value, buckets, C, causal)
    assert large.isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [(torch.float16, 4e-3), (torch.bfloat16, 4e-2), (torch.float32, 1e-6)],
)
def test_a_query_of_zeros_weighs_all_alike(dtype, limit):
    query, value, buckets = data(dtype=dtype)
    with torch.no_grad():
        query[:, 3] = 0
    found = lsh_attention(query, value, buckets, chunk=T)  # all meet
    others = torch.arange(T) != 3
    assert_near(found[:, 3], value[:, others].mean(dim=1), limit)
    assert found.isfinite().all()
    upstream = torch.randn_like(found)
    for gradient in torch.autograd.grad((found * upstream).sum(), (query, value)):
        assert gradient.abs().max() < 100, "it has no direction to be divided by"


@pytest.mark.parametrize("t", [2 * C, 4 * C, T])
def test_buckets_may_lie_anyhow_in_memory(t):
    query, value, buckets = (torch.stack([x, x, x]) for x in data(t))
    buckets = buckets.random_(4)
    wanted = lsh_attention(query, value, buckets, C)
    turned = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (query, buckets)]
    assert not any(x.is_contiguous() for x in turned)
    found = lsh_attention(turned[0], value, turned[1], C)
    assert torch.equal(found, wanted)


def test_axes_before_the_positions_are_alike():
    query, value, buckets = data()
    whole = lsh_attention(query, value, buckets, C)
    for n in range(B):
        assert_near(lsh_attention(query[n], value[n], buckets[n], C), whole[n], 1e-12)
    folded = (x.unsqueeze(1).expand(-1, H, -1, -1) for x in (query, value, buckets))
    found = lsh_attention(*folded, C)
    assert_near(found, whole[:, None].expand_as(found), 1e-12)
    empty = lsh_attention(query[:0], value[:0], buckets[:0], C)
    assert empty.shape == (0, T, V)


# ---- lsh_attention: against two published implementations ---------------------


def recorded(name):
    prefix, found = name + ".", {}
    for key in REFERENCE.files:
        if key.startswith(prefix):
            tensor = torch.from_numpy(REFERENCE[key])
            tensor = tensor.double() if tensor.is_floating_point() else tensor
            found[key.removeprefix(prefix)] = tensor
    return found


def never_first(buckets, chunk):
    """True where a position is in no round's first chunk, which look elsewhere."""
    place = buckets.argsort(dim=-1, stable=True).argsort(dim=-1)
    return (place >= chunk).all(dim=-2)  # (…, t)


def layer_of(one, **options):
    """A layer with their maps, and without one of its output."""
    module = LSHSelfAttention(12, 3, chunk=4, **options)
    module.output_map = nn.Identity()
    module.query_map.weight.data = one["query_map"]
    module.value_map.weight.data = one["value_map"]
    return module


@pytest.mark.parametrize("kind", ["plain", "causal", "padded"])
def test_two_chunks_are_those_of_transformers_and_gradients_too(kind):
    one = recorded(f"hf.two chunks.{kind}")
    module = layer_of(one, causal=kind == "causal")
    x = one["x"].requires_grad_()
    found = module(x, one["mask"][:, None, None])
    assert_near(found, one["output"])
    inputs = [x, module.query_map.weight, module.value_map.weight]
    ours = torch.autograd.grad((found * one["mixture"]).sum(), inputs)
    names = ("x", "query_map", "value_map")
    for name, gradient in zip(names, ours, strict=True):
        wanted = one[f"gradient.{name}"]
        assert_near(gradient, wanted, 1e-5 * wanted.abs().max().item(), name)


@pytest.mark.parametrize("kind", ["plain", "causal", "padded"])
def test_two_chunks_are_those_of_reformer_pytorch_and_gradients_too(kind):
    one = recorded(f"rp.two chunks.{kind}")
    query, value = one["query"].requires_grad_(), one["value"].requires_grad_()
    options = {"causal": kind == "causal", "mask": one["mask"], "scale": 4**-0.5}
    found = lsh_attention(query, value, one["buckets"], 4, **options)
    assert_near(found, one["output"])
    ours = torch.autograd.grad((found * one["mixture"]).sum(), (query, value))
    for name, gradient in zip(("query", "value"), ours, strict=True):
        assert_near(gradient, one[f"gradient.{name}"], 2e-5, name)


@pytest.mark.parametrize("kind", ["plain", "causal"])
def test_many_chunks_and_rounds_are_those_of_transformers(kind):
    one = recorded(f"hf.many chunks.{kind}")
    module = layer_of(one, causal=kind == "causal", repeats=True)
    buckets = one["buckets"] % 8  # theirs are numbered through all rounds
    found = module(one["x"], buckets=buckets).unflatten(-1, (3, 4)).transpose(1, 2)
    wanted = one["output"].unflatten(-1, (3, 4)).transpose(1, 2)
    same = never_first(buckets, 4)
    assert same.float().mean() > 0.5
    assert_near(found[same], wanted[same], 3e-5)  # their norm has an ε


# ---- LSHSelfAttention --------------------------------------------------------


def test_the_layer_is_its_maps_and_the_attention_between():
    module = LSHSelfAttention(H * K, H, C, R, buckets=4, scale=0.5)
    x = torch.randn(B, T, H * K)
    buckets = module.hash(x)
    assert buckets.shape == (B, H, R, T)
    mask = length_mask(torch.tensor([T, 6]), T)
    heads = []
    for head in range(H):
        part = slice(head * K, (head + 1) * K)
        query = x @ module.query_map.weight[part].T
        value = x @ module.value_map.weight[part].T
        options = C, False, mask[:, 0, 0], 0.5, False
        heads.append(slow_attention(query, value, buckets[:, head], *options))
    wanted = torch.cat(heads, dim=-1) @ module.output_map.weight.T
    assert_near(module(x, mask, buckets), wanted)
    assert not any(name.endswith("bias") for name in module.state_dict())


def test_buckets_are_hashed_anew_in_each_call():
    module, x = LSHSelfAttention(H * K, H, 1, 1, causal=True), torch.randn(1, 40, H * K)
    assert not torch.equal(module(x), module(x))
    torch.manual_seed(5)
    one = module(x)
    torch.manual_seed(5)
    assert torch.equal(one, module(x))
    torch.manual_seed(5)
    assert torch.equal(one, module(x, buckets=module.hash(x)))


@pytest.mark.parametrize(
    ("t", "chunk", "buckets"),
    [(1, 8, 2), (8, 8, 2), (9, 8, 4), (64, 8, 16), (256, 8, 64), (264, 8, 10 * 10)],
)
def test_there_are_about_two_buckets_for_a_chunk(t, chunk, buckets):
    module = LSHSelfAttention(H * K, H, chunk, rounds=40)
    found = module.hash(torch.randn(1, t, H * K))
    assert ceil(buckets * 0.9) - 1 <= found.amax() < buckets or t == 1


def test_a_rebuilt_input_keeps_its_buckets():
    """What a reversible stack rebuilds may hash elsewhere; it must not."""
    attention = LSHSelfAttention(4, 1, 1, 1, buckets=2, causal=True)
    stack = ReversibleSequence([ReversibleBlock(attention, nn.Linear(4, 4))])
    calls, draw = [], torch.Generator().manual_seed(0)  # it is not wound back

    def another(query):
        calls.append(torch.randint(0, 9, (1, 1, 1, 40), generator=draw))
        return calls[-1]

    attention._hash = another
    inputs = [torch.randn(1, 40, 4, requires_grad=True) for _ in range(2)]
    upstream = torch.randn(1, 40, 4)
    found = torch.autograd.grad((stack(*inputs)[1] * upstream).sum(), inputs)
    assert len(calls) > 1
    attention._hash = lambda query: calls[0]
    plain = ReversibleBlock(attention, stack.blocks[0].g)
    wanted = torch.autograd.grad((plain(*inputs)[1] * upstream).sum(), inputs)
    assert_near(found, wanted, 1e-5)


# ---- errors ------------------------------------------------------------------

BAD = table("""
    lsh_buckets(x, (4, 3))
        buckets must be even, got 3
    lsh_buckets(x, 4, 0)
        rounds must be an integer ≥ 1, got 0
    lsh_attention(x, x, buckets[..., :3])
        buckets must have the shape (*batch, _, t) with t=5 as in query, got (2, 2, 3)
    lsh_attention(x, x, buckets, 0)
        chunk must be an integer ≥ 1, got 0
    LSHSelfAttention(6, 2, chunk=0)
        chunk must be an integer ≥ 1, got 0
    LSHSelfAttention(6, 4)
        heads must divide d_model, got heads=4 and d_model=6
    LSHSelfAttention(6, 2)(x, torch.ones(1, 1, 5, 5, dtype=torch.bool))
        mask must have the shape (b, 1, 1, t)
    reformer()(torch.full((1, 3), 13))
        tokens must hold integers from 0 to 12, got 13
    reformer(activation="gelu")
        activation must be one of 'relu', got 'gelu'
    reformer(positions="rotary")
        positions must be one of
    reformer(layers=0)
        layers must be an integer ≥ 1, got 0
""")


@pytest.mark.parametrize("call", BAD)
def test_errors_name_argument_value_and_expectation(call):
    x = torch.randn(2, 5, 6)
    names = {"x": x, "buckets": torch.zeros(2, 2, 5, dtype=torch.int64)}
    assert_refused(call, BAD[call], globals() | names)


# ---- the language model ------------------------------------------------------

MODEL = ReformerConfig(13, 6, 3, layers=2, d_ff=10, max_len=29, chunk=4, rounds=2)


class Causal(nn.Module):
    """The mean of what has come, mapped: a causal module of one line."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 6)

    def forward(self, x):
        return self.map(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


def reformer(attention=None, **changes):
    torch.manual_seed(0)
    return Reformer(replace(MODEL, **changes), attention)


@pytest.mark.parametrize("attention", [None, Causal])
def test_a_reformer_does_not_see_what_comes(attention):
    model = reformer(attention).eval()
    tokens = torch.randint(0, 13, (2, 29))
    changed = tokens.clone()
    changed[:, 17:] = (changed[:, 17:] + 1) % 13
    logits = []
    for given in (tokens, changed):
        torch.manual_seed(1)  # the same maps; buckets of what came stay what they were
        logits.append(model(given))
    assert logits[0].shape == (2, 29, 13)
    if attention:  # (in LSH attention what comes may move the borders of chunks)
        torch.testing.assert_close(logits[0][:, :17], logits[1][:, :17])
    assert not torch.allclose(logits[0][:, 17:], logits[1][:, 17:])


def test_a_reformer_is_its_blocks_one_by_one():
    model = reformer(dropout=0.3)
    tokens = torch.randint(0, 13, (2, 29))

    def learned(run):
        torch.manual_seed(1)
        logits = run()
        loss = (logits * torch.arange(13)).sum()
        return logits, torch.autograd.grad(loss, list(model.parameters()))

    def plain():
        x1 = x2 = model.positions(model.embedding(tokens))
        for block in model.blocks.blocks:
            x1, x2 = block(x1, x2)
        return model.output(model.norm(torch.cat([x1, x2], dim=-1)))

    model.double()
    ours, found = learned(lambda: model(tokens))
    theirs, wanted = learned(plain)
    assert torch.equal(ours, theirs)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_reformer_adds_positions_and_reads_normalised_streams():
    model = reformer(Causal).eval()
    x = model.embedding(torch.zeros(1, 29, dtype=torch.long))
    seen = []
    model.blocks.register_forward_pre_hook(lambda m, args: seen.extend(args))
    for block in model.blocks.blocks:
        for module in (block.f, block.g):
            module[1].register_forward_pre_hook(lambda m, args: seen.extend(args))
    model(torch.zeros(1, 29, dtype=torch.long))
    first, second, *read = seen
    assert torch.equal(first, second)
    torch.testing.assert_close(first - x, sinusoidal_encoding(29, 6)[None])
    assert len(read) == 4
    for stream in read:
        torch.testing.assert_close(stream.mean(-1), torch.zeros(1, 29))


def test_a_reformer_has_what_its_config_says():
    model = reformer(dropout=0.25, ff_chunk=7)
    block = model.blocks.blocks[1]
    attention, network = block.f[1], block.g[1]
    assert (attention.chunk, attention.rounds, attention.causal) == (4, 2, True)
    assert (network.chunk_size, network.inner.out_features) == (7, 10)
    dropped = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    assert dropped == [0.25] * (1 + 2 * 3)  # positions; F, G and the network of each
    assert len(model.blocks.blocks) == 2
    assert model.norm.normalized_shape == (12,)
