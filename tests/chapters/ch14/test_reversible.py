"""ch14/reversible.py: ways agree, and one pair has no inverse."""

import pytest
import torch
from torch import nn

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch14.reversible import (
    REFORMER_RECIPES,
    STACKS,
    PrintedBlock,
    checkpointed,
    layers,
    reformer,
    run_reformer_recipe,
    undo_by_iteration,
)
from annotated.reformer import LSHSelfAttention
from annotated.reversible import ReversibleBlock
from benchmarks.record import read as recorded

T, D = 7, 8


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_three_ways_are_one_function():
    stack, x = layers(3, D, 2, 11, dropout=0.2).double(), torch.randn(2, 1, T, D)
    x1, x2 = x.double()
    found = {}
    for way, run in STACKS.items():
        torch.manual_seed(1)
        y1, y2 = run(stack, x1, x2)
        loss = (y1 * torch.arange(D)).sum() + y2.square().sum()
        found[way] = [y1, y2, *torch.autograd.grad(loss, list(stack.parameters()))]
    for way in STACKS:
        for one, other in zip(found[way], found["stored"], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_the_three_ways_store_most_little_and_least():
    from torch.autograd.graph import saved_tensors_hooks

    def kept(way, depth):
        stack, sizes = layers(depth, D, 2, 11), []
        own = {p.data_ptr() for p in stack.parameters()}

        def pack(tensor):
            if tensor.data_ptr() not in own:
                sizes.append(tensor.numel())
            return tensor

        x1, x2 = torch.randn(2, 1, T, D, requires_grad=True)
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            ends = STACKS[way](stack, x1, x2)
        del ends
        return sum(sizes)

    slopes = {way: (kept(way, 5) - kept(way, 2)) / 3 for way in STACKS}
    assert slopes["reversible"] == 0
    assert slopes["stored"] > 5 * T * D


def test_a_checkpoint_stands_at_each_block():
    stack, calls = layers(2, D, 2, 11), []
    stack.blocks[0].register_forward_pre_hook(lambda *_: calls.append(0))
    stack.blocks[1].register_forward_pre_hook(lambda *_: calls.append(1))
    x = torch.randn(1, T, D, requires_grad=True)
    ends = checkpointed(stack, x, x)
    assert calls == [0, 1]
    sum(ends).sum().backward()
    assert len(calls) > 2


def test_layers_read_normalised_streams_by_the_attention_given():
    stack = layers(2, D, 2, 11, 0.25, nn.Identity)
    block = stack.blocks[1]
    assert isinstance(block.f[0], nn.LayerNorm) and isinstance(block.f[1], nn.Identity)
    assert block.g[1].inner.out_features == 11
    assert block.f[2].p == block.g[2].p == 0.25
    attention = layers(1, D, 2, 11).blocks[0].f[1]
    assert isinstance(attention, MultiHeadAttention) and attention.causal


# ---- the printed pair ----------------------------------------------------------


def test_the_printed_pair_sends_different_inputs_to_one_output():
    block = PrintedBlock(nn.Identity(), nn.Identity())
    one = block(torch.tensor([1.0]), torch.tensor([2.0]))
    other = block(torch.tensor([0.0]), torch.tensor([3.0]))
    assert one == other
    apart = ReversibleBlock(nn.Identity(), nn.Identity())
    assert apart(torch.tensor([1.0]), torch.tensor([2.0])) != apart(
        torch.tensor([0.0]), torch.tensor([3.0])
    )


def test_the_inverse_does_not_fit_the_printed_pair():
    x1, x2 = torch.randn(2, 1, T, D)
    block = PrintedBlock(nn.Linear(D, D), nn.Linear(D, D))
    _, found = block.inverse(*block(x1, x2))
    wanted = x2 + block.g(x1) - block.g(x1 + block.f(x2))
    torch.testing.assert_close(found, wanted)
    assert (found - x2).abs().max() > 0.1


@pytest.mark.parametrize(("factor", "ends"), [(0.5, True), (2.0, False)])
def test_iterating_ends_at_what_came_if_f_and_g_shrink(factor, ends):
    class Times(nn.Module):
        def forward(self, x):
            return factor * x

    block = PrintedBlock(Times(), Times())
    x1, x2 = torch.randn(2, 1, T, D, dtype=torch.float64)
    guesses = undo_by_iteration(block, *block(x1, x2), steps=40)
    assert len(guesses) == 41
    assert torch.equal(guesses[0][0], block(x1, x2)[0])
    error = max((guesses[-1][0] - x1).norm(), (guesses[-1][1] - x2).norm())
    assert (error < 1e-9) == ends


# ---- the language model ----------------------------------------------------------


def test_a_recipe_trains_a_reformer():
    small = {"model": {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}}
    small["model"] |= {"max_len": 128, "chunk": 16, "rounds": 1}
    model, history, bits = run_reformer_recipe("16k", steps=3, **small)
    assert len(history) == 3 and 4 < bits < 9
    assert isinstance(model.blocks.blocks[0].f[1], LSHSelfAttention)
    mixed = {"steps": 1, "precision": torch.bfloat16}  # as on a GPU
    model, _, _ = run_reformer_recipe("16k", "all", **mixed, **small)
    attention = model.blocks.blocks[0].f[1]
    assert isinstance(attention, MultiHeadAttention) and attention.causal


def test_models_of_recipes():
    model = reformer(REFORMER_RECIPES["16k"], 96, "LSH", seed=1)
    assert model.config.max_len == 16_384
    assert model.config.rounds == model.blocks.blocks[0].f[1].rounds == 1
    again = reformer(REFORMER_RECIPES["16k"], 96, "LSH", seed=1)
    assert torch.equal(model.output.weight, again.output.weight)
    with pytest.raises(ValueError, match="attention must be one of 'LSH', 'all'"):
        reformer(REFORMER_RECIPES["16k"], 96, "some", seed=1)
    with pytest.raises(ValueError, match="name must be one of"):
        run_reformer_recipe("32k")
    with torch.device("meta"):
        model = reformer(REFORMER_RECIPES["64k"], 256, "LSH", seed=0)
    assert 15e6 < sum(p.numel() for p in model.parameters()) < 25e6


# ---- what was recorded ----------------------------------------------------------


def test_the_record_of_the_inverse_keeps_its_bands():
    runs = recorded("inverse_error")["runs"]
    first = {run["dtype"]: run["input"] for run in runs if run["depth"] == 1}
    for run in runs:
        dtype = getattr(torch, run["dtype"])
        assert run["input, seeds"] and first[run["dtype"]] < torch.finfo(dtype).eps
        assert run["input"] < 100 * first[run["dtype"]]
        assert run["raises"] == 0
        if dtype != torch.float64:
            assert run["gradients"] <= 2 * run["stored gradients from exact"]


def test_the_record_of_long_sequences_keeps_its_bands():
    slopes = recorded("reversible_length")["MB per layer"]
    assert 95 < slopes["stored"] < 107
    assert 15 < slopes["checkpointed"] < 18.5
    assert 3 < slopes["reversible"] <= 4


def test_the_record_of_hashes_keeps_its_bands():
    runs = recorded("hashes_again")["runs"]
    for dtype, low, high in (("float32", 0, 1e-4), ("bfloat16", 0.003, 0.03)):
        of_dtype = [run for run in runs if run["dtype"] == dtype]
        assert all("refused" in r for r in of_dtype if r["backward"] == "new maps")
        kept, again = (
            [run for run in of_dtype if run["backward"] == name]
            for name in ("kept", "hashed again")
        )
        assert len(kept) == len(again) == 3
        for one, other in zip(kept, again, strict=True):
            assert low <= one["changed buckets"] <= high
            if dtype == "bfloat16":
                assert other["error"] > 3 * one["error"]
            else:
                assert one["error"] < 1e-6


def test_the_record_of_depth_keeps_its_bands():
    costs = recorded("reversible_cost")
    slopes = costs["memory"]["MB per layer"]
    for kind in ("full attention", "LSH attention"):
        ours = slopes[f"{kind}: reversible"]
        assert ours <= 21 and ours < slopes[f"{kind}: stored"] / 4
    assert slopes["full attention: checkpointed"] <= 15
    times = costs["time, depth 16"]
    for kind, low, high in (("full", 1.2, 1.35), ("LSH", 1.25, 1.42)):
        _, middle, _ = times[f"{kind} attention"]["ratios to stored"]["reversible"]
        assert low <= middle <= high
    assert costs["gradients"]["torch.float64"]["relative error"] < 1e-6
    assert costs["gradients"]["torch.float32"]["relative error"] < 1e-6
    assert max(costs["memory"]["one peak three times"]) < 1.01 * min(
        costs["memory"]["one peak three times"]
    )


def test_the_record_of_chunks_keeps_its_bands():
    runs = {
        (run["way"], run["backward"]): run for run in recorded("chunked_cost")["runs"]
    }
    bands = {"whole": (400, 450), "cut": (134, 200), "chunked": (20, 60)}
    for way, (low, high) in bands.items():
        assert low < runs[way, True]["MB"] < high
    assert 260 < runs["whole", False]["MB"] < 300
    assert runs["cut", False]["MB"] < 30 and runs["chunked", False]["MB"] < 30
    assert 1.1 < runs["chunked", True]["time to whole"] < 1.5


def test_the_record_of_two_streams_keeps_its_band():
    made = recorded("two_streams")
    for seed in (0, 1, 2):
        bits = {r["way"]: r["bits"] for r in made["runs"] if r["seed"] == seed}
        assert all(2.4 < of_way < 3 for of_way in bits.values())
    two, one = (made["mean bits"][way] for way in ("two streams", "one stream"))
    assert abs(two - one) < 0.1


def test_the_record_at_equal_steps_keeps_its_bands():
    long, cut, *short = recorded("reformer_steps")["runs"]
    expected = (3.68, 3.17, 3.46, 2.38)
    for run, bits in zip((long, *short), expected, strict=True):
        assert abs(run["bits"] - bits) < 0.1
    assert 3.0 < cut["bits"] < 3.8
    assert [run["steps"] for run in (long, cut, *short)] == [100] * 4 + [1600]
    assert long["characters"] == cut["characters"] == short[0]["characters"]


def test_the_record_with_all_pairs_keeps_its_bands():
    cut, long = recorded("reformer_pairs")["runs"]
    assert 3.2 < long["bits"] < 3.8 and 3.17 < cut["bits"] < 3.57
    assert long["bits"] - cut["bits"] > 0.15  # the window costs bits, not hashing
    for run, length in ((cut, 64), (long, 16_384)):
        assert run["window"] == length and run["in a row"] == 16_384
        assert (run["steps"], run["seed"], run["characters"]) == (100, 0, 1_638_400)


def test_the_record_of_a_text_keeps_its_bands():
    made = recorded("reformer_text")
    bits = {run["model"].split()[-1]: run["bits"] for run in made["runs"]}
    assert all(3.4 < bits[attention] < 4.2 for attention in ("LSH", "all"))
    assert bits["LSH"] <= bits["all"] + 0.1
    assert bits["GPT"] < min(bits["LSH"], bits["all"])
    peaks = {
        (r["attention"], r["layers"], r["forget"]): r["MB"] for r in made["one step"]
    }
    for attention in ("LSH", "all"):
        few, many = (
            peaks[attention, layers, False] / peaks[attention, layers, True]
            for layers in (2, 8)
        )
        assert 1.1 < few < 1.5 and many > 2
