"""annotated/reversible.py: against blocks called one by one, and plain networks."""

import random
from contextlib import nullcontext
from functools import partial
from threading import Thread
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from annotated.reversible import (
    ChunkedFeedForward,
    ReversibleBlock,
    ReversibleSequence,
    _Call,
    repeated,
)
from annotated.transformer import FeedForward
from tests.refused import assert_refused, table

B, T, D = 2, 5, 6


@pytest.fixture(autouse=True)
def seeded_python():
    random.seed(0)


def network(activation=nn.ReLU, dropout=0.3):
    return nn.Sequential(
        nn.LayerNorm(D),
        nn.Linear(D, 3 * D),
        activation(),
        nn.Dropout(dropout),
        nn.Linear(3 * D, D),
    )


def stack(depth=3, make=network, dtype=torch.float64):
    blocks = [ReversibleBlock(make(), make()) for _ in range(depth)]
    return ReversibleSequence(blocks).to(dtype)


def streams(dtype=torch.float64, requires_grad=True):
    made = torch.randn(2, B, T, D, dtype=dtype)
    return [x.clone().requires_grad_(requires_grad) for x in made]


def plain(model, x1, x2):
    for block in model.blocks:
        x1, x2 = block(x1, x2)
    return x1, x2


def loss(y1, y2):
    weights = torch.linspace(-1, 2, y1.numel(), dtype=y1.dtype).view_as(y1)
    return (weights * y1).sum() + (y2**2).sum()


def gradients(run, model, xs, seed=1):
    """The outputs, and the gradients of streams and parameters, as two lists."""
    torch.manual_seed(seed)
    ys = run(*xs)
    wanted = [x for x in (*xs, *model.parameters()) if x.requires_grad]
    return ys, torch.autograd.grad(loss(*ys), wanted)


def assert_near(actual, expected, limit=1e-12, why=""):
    """Each tensor differs by at most `limit` of its own length."""
    for one, other in zip(actual, expected, strict=True):
        error = (one - other).norm() / other.norm().clamp(min=1e-30)
        assert error <= limit, f"{why} {error:.1e}"


def assert_same_as_plain(model, xs):
    ours, found = gradients(model, model, xs)
    theirs, wanted = gradients(partial(plain, model), model, xs)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other), "outputs must be the same to the last bit"
    assert_near(found, wanted, why="gradients differ by")


class Counting(nn.Module):
    """Multiplies by the number of its calls, which a buffer holds."""

    def __init__(self, in_place=True):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.float64))
        self.scale = nn.Parameter(torch.ones(()))
        self.in_place = in_place

    def forward(self, x):
        if self.in_place:
            self.calls += 1
        else:
            self.calls = self.calls + 1
        return x.tanh() * self.scale * self.calls.to(x.dtype)


# ---- a block -----------------------------------------------------------------


def test_a_block_is_the_two_equations():
    f, g = nn.Linear(D, D), network(dropout=0)
    x1, x2 = streams(torch.float32)
    y1, y2 = ReversibleBlock(f, g)(x1, x2)
    assert torch.equal(y1, x1 + f(x2))
    assert torch.equal(y2, x2 + g(x1 + f(x2)))


@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e-14), ("float32", 1e-6)])
def test_the_inverse_gives_back_what_came(dtype, limit):
    block = stack(1, partial(network, dropout=0), getattr(torch, dtype)).blocks[0]
    xs = streams(getattr(torch, dtype))
    assert_near(block.inverse(*block(*xs)), xs, limit)


def test_the_inverse_needs_f_and_g_to_repeat():
    block = stack(1).blocks[0]
    xs = streams()
    found = block.inverse(*block(*xs))
    assert (found[0] - xs[0]).abs().max() > 0.01
    block.eval()
    assert_near(block.inverse(*block(*xs)), xs, 1e-14)


def test_streams_may_have_any_axes_before_the_last():
    for shape in [(D,), (T, D), (B, 3, T, D)]:
        xs = [torch.randn(shape, dtype=torch.float64, requires_grad=True)] * 2
        model = stack(2).eval()
        for one, other in zip(model(*xs), plain(model, *xs), strict=True):
            assert torch.equal(one, other)


# ---- gradients ---------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_gradients_are_those_of_blocks_one_by_one_with_dropout(depth):
    assert_same_as_plain(stack(depth), streams())


def test_the_same_stream_may_come_twice():
    model, (x, _) = stack(), streams()
    _, (found, *_) = gradients(lambda x: model(x, x), model, [x])
    torch.manual_seed(1)
    (wanted,) = torch.autograd.grad(loss(*plain(model, x, x)), x)
    assert_near([found], [wanted])


def test_inputs_need_no_gradient():
    model = stack()
    assert_same_as_plain(model, streams(requires_grad=False))
    x1, x2 = streams()
    assert_same_as_plain(model, [x1.detach(), x2])


def test_parameters_need_no_gradient():
    model = stack().requires_grad_(False)
    assert_same_as_plain(model, streams())
    model.blocks[1].f[1].weight.requires_grad_()
    assert_same_as_plain(model, streams())
    frozen = stack().requires_grad_(False)
    assert not frozen(*streams(requires_grad=False))[0].requires_grad


def test_one_output_may_go_unused():
    model, xs = stack(), streams()
    for i in (0, 1):
        torch.manual_seed(1)
        found = torch.autograd.grad(model(*xs)[i].sum(), xs)
        torch.manual_seed(1)
        wanted = torch.autograd.grad(plain(model, *xs)[i].sum(), xs)
        assert_near(found, wanted)


def test_modules_may_be_shared():
    shared = network()
    model = ReversibleSequence(
        [ReversibleBlock(shared, network()), ReversibleBlock(network(), shared)]
    ).double()
    assert_same_as_plain(model, streams())


def test_a_module_may_give_a_constant_or_leave_a_parameter_unused():
    class Constant(nn.Module):
        def forward(self, x):
            return torch.ones_like(x)

    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(D, D), nn.Linear(D, D)

        def forward(self, x):
            return self.used(x)

    model = ReversibleSequence([ReversibleBlock(Constant(), Partly())]).double()
    x1, x2 = streams()
    loss(*model(x1, x2)).backward()
    found = [x1.grad, x2.grad, model.blocks[0].g.used.weight.grad]
    wanted = [x1, x2, model.blocks[0].g.used.weight]
    assert_near(found, torch.autograd.grad(loss(*plain(model, x1, x2)), wanted))
    assert not model.blocks[0].g.unused.weight.grad.any()


def test_several_backward_passes_add_up():
    model, xs = stack(2, Counting), streams()
    value = loss(*model(*xs))
    value.backward(retain_graph=True)
    once = [p.grad.clone() for p in model.parameters()]
    value.backward(retain_graph=True)
    assert_near([p.grad / 2 for p in model.parameters()], once)
    value.backward()
    assert_near([p.grad / 3 for p in model.parameters()], once)
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()


def test_second_derivatives_are_refused():
    model, xs = stack(), streams()
    (first,) = torch.autograd.grad(loss(*model(*xs)), xs[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_parameters_may_be_handed_in():
    model, xs = stack(), streams()
    with torch.no_grad():
        given = {name: p * 1.5 for name, p in model.named_parameters()}
    for p in given.values():
        p.requires_grad_()
    doubled = {name: 2 * p for name, p in given.items()}  # no leaves
    torch.manual_seed(1)
    found = torch.autograd.grad(
        loss(*functional_call(model, doubled, tuple(xs))), list(given.values())
    )
    model.load_state_dict(doubled)
    torch.manual_seed(1)
    ys = plain(model, *xs)
    wanted = torch.autograd.grad(loss(*ys), list(model.parameters()))
    assert_near(found, [2 * gradient for gradient in wanted])


def test_saved_tensors_may_be_packed_and_unpacked():
    model, xs = stack(), streams()

    def on_cpu(x1, x2):
        with torch.autograd.graph.save_on_cpu():
            return model(x1, x2)

    def in_a_checkpoint(x1, x2):
        return checkpoint(model, x1, x2, use_reentrant=False)

    _, wanted = gradients(partial(plain, model), model, xs)
    for run in (on_cpu, in_a_checkpoint):
        _, found = gradients(run, model, xs)
        assert_near(found, wanted)


# ---- what is repeated, and what is kept -------------------------------------


def test_random_numbers_go_on_as_if_nothing_had_been_repeated():
    model, xs = stack(), streams()
    gradients(model, model, xs)
    after = torch.rand(3)
    gradients(partial(plain, model), model, xs)
    assert torch.equal(after, torch.rand(3))


def test_nothing_is_kept_but_two_streams_whatever_the_depth():
    def kept(depth):
        model, sizes = stack(depth), []
        own = {p.data_ptr() for p in model.parameters()}

        def pack(tensor):
            if tensor.data_ptr() not in own:
                sizes.append(tensor.numel())
            return tensor

        with saved_tensors_hooks(pack, lambda tensor: tensor):
            loss_of = model(*streams())
        assert loss_of[0].requires_grad
        return sum(sizes)

    assert kept(1) == kept(6) == 2 * B * T * D


@pytest.mark.parametrize("in_place", [True, False])
def test_a_replay_reads_buffers_as_they_were(in_place):
    make = partial(Counting, in_place)
    ours, theirs = stack(2, make), stack(2, make)
    xs = streams()
    gradients(ours, ours, xs)  # counts
    gradients(partial(plain, theirs), theirs, xs)
    _, found = gradients(ours, ours, xs)
    _, wanted = gradients(partial(plain, theirs), theirs, xs)
    assert_near(found, wanted)
    assert {b.item() for b in ours.buffers()} == {2}


class OwnRandom(nn.Module):
    """Draws from Python's generator, whose state nobody keeps."""

    def __init__(self, kept=False):
        super().__init__()
        self.map, self.kept = nn.Linear(D, D), kept

    def forward(self, x):
        factor = torch.tensor([random.random()], dtype=x.dtype)
        return self.map(x) * (repeated(factor) if self.kept else factor)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_replay_that_does_not_repeat_is_caught(dtype):
    model = stack(2, OwnRandom, dtype)
    ys = model(*streams(dtype))
    with pytest.raises(RuntimeError, match="F or G gave something else"):
        loss(*ys).backward()


def test_a_sequence_notices_either_stream():
    for f, g in [(OwnRandom(), nn.Linear(D, D)), (nn.Linear(D, D), OwnRandom())]:
        model = ReversibleSequence([ReversibleBlock(f, g)]).double()
        ys = model(*streams())
        with pytest.raises(RuntimeError, match="F or G gave something else"):
            loss(*ys).backward()


def test_another_mode_in_the_backward_pass_is_caught():
    model = stack()
    ys = model(*streams())
    model.eval()
    with pytest.raises(RuntimeError, match="another mode"):
        loss(*ys).backward()


def test_parameters_that_changed_before_the_backward_pass_are_caught():
    model = stack()
    ys = model(*streams())
    with torch.no_grad():
        model.blocks[0].f[1].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss(*ys).backward()


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_alone_is_no_trouble(dtype, depth):
    model = stack(depth, network, dtype)
    _, found = gradients(model, model, streams(dtype))
    assert all(gradient.isfinite().all() for gradient in found)


def test_choices_follow_their_order_in_each_backward_pass():
    class Twice(nn.Module):
        def forward(self, x):
            first, second = (repeated(torch.tensor(random.random())) for _ in range(2))
            return x.tanh() * first + x * second

    model, xs = stack(2, Twice), streams()
    value = loss(*model(*xs))
    found = torch.autograd.grad(value, xs, retain_graph=True)
    assert_near(torch.autograd.grad(value, xs), found)
    random.seed(0)
    assert_near(found, torch.autograd.grad(loss(*plain(model, *xs)), xs))


def test_a_choice_outside_a_reversible_sequence_is_itself():
    choice = torch.randn(3)
    assert repeated(choice) is choice

    class Broken(nn.Module):
        def forward(self, x):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        ReversibleSequence([ReversibleBlock(Broken(), Broken())])(*streams())
    assert repeated(choice) is choice
    model = stack(1, partial(OwnRandom, kept=True))
    loss(*model(*streams())).backward()
    assert repeated(choice) is choice


def test_a_choice_in_another_thread_is_none_of_a_sequence():
    """Python's threads take turns; here another one does in the middle of F."""
    seen = []

    class Waiting(nn.Module):
        def forward(self, x):
            elsewhere = Thread(target=lambda: seen.append(repeated(len(seen))))
            elsewhere.start()
            elsewhere.join()
            return x * repeated(torch.tensor(2.0))

    xs = streams()
    model = ReversibleSequence([ReversibleBlock(Waiting(), nn.Identity())])
    loss(*model(*xs)).backward()
    assert seen == [0, 1], "its choice of the second time is not that of the first"


# ---- modes, precisions, devices ---------------------------------------------


def test_without_gradients_nothing_is_recorded():
    model, xs = stack(), streams()
    with torch.no_grad():
        ys = model(*xs)
    assert not ys[0].requires_grad
    torch.manual_seed(3)
    with torch.inference_mode():
        ours = model(*xs)
    torch.manual_seed(3)
    for one, other in zip(ours, plain(model, *xs), strict=True):
        assert torch.equal(one, other)


def seen_dtypes(model):
    seen = []
    for block in model.blocks:
        for module in (block.f, block.g):
            module[1].register_forward_hook(lambda m, args, y: seen.append(y.dtype))
    return seen


@pytest.mark.parametrize("inside", [True, False])
def test_a_replay_rounds_as_autocast_did(inside):
    model, xs = stack(3, network, torch.float32), streams(torch.float32)
    seen = seen_dtypes(model)

    def run(model):
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16):
            value = loss(*model(*xs))
            if inside:
                return torch.autograd.grad(value, [*xs, *parameters])
        return torch.autograd.grad(value, [*xs, *parameters])

    parameters = list(model.parameters())
    found = run(model)
    assert seen == [torch.bfloat16] * 12
    assert_near(found, run(partial(plain, model)), 0.02)


def test_without_autocast_a_replay_has_none_either():
    model, xs = stack(2, network, torch.float32), streams(torch.float32)
    seen = seen_dtypes(model)
    value = loss(*model(*xs))
    with torch.autocast("cpu", torch.bfloat16):
        value.backward()
    assert seen == [torch.float32] * 8


def test_weights_keep_their_gradient_elsewhere_under_autocast():
    model, xs = stack(1, network, torch.float32), streams(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        model(*xs)
        elsewhere = model.blocks[0].f[1](xs[0])
    elsewhere.float().sum().backward()
    assert model.blocks[0].f[1].weight.grad.abs().sum() > 0


class Accelerator:
    """The random numbers of a device that isn't here, as ``torch.mps`` has them."""

    def __init__(self):
        self.states, self.set = {}, []

    def get_rng_state(self, device):
        return self.states[device.type]

    def set_rng_state(self, state, device):
        self.set.append((state, device.type))


def test_random_states_of_an_accelerator_are_kept_and_restored(monkeypatch):
    accelerator = Accelerator()
    monkeypatch.setattr(torch, "get_device_module", lambda device: accelerator)
    monkeypatch.setattr(torch, "autocast", lambda **_: nullcontext())
    accelerator.states["mps"] = "as in the forward pass"
    x = torch.ones(2, requires_grad=True)
    call = _Call(nn.Identity(), SimpleNamespace(device=torch.device("mps", 0)))
    accelerator.states["mps"] = "as in the backward pass"
    call.again(x, torch.ones(2))
    assert accelerator.set == [
        ("as in the forward pass", "mps"),
        ("as in the backward pass", "mps"),
    ]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_dropout_is_replayed_on_a_gpu():
    model = stack().cuda()
    assert_same_as_plain(model, [x.detach().cuda().requires_grad_() for x in streams()])


# ---- chunks ------------------------------------------------------------------


@pytest.mark.parametrize("chunk_size", [1, 2, T, T + 3])
def test_chunks_change_nothing(chunk_size):
    whole = FeedForward(D, 4 * D).double()
    chunked = ChunkedFeedForward(D, 4 * D, chunk_size=chunk_size).double()
    chunked.load_state_dict(whole.state_dict())
    x = streams()[0]
    upstream = torch.randn(B, T, D, dtype=torch.float64)
    for ours, theirs in [(chunked, whole), (chunked.eval(), whole.eval())]:
        found = torch.autograd.grad(ours(x), [x, *ours.parameters()], upstream)
        wanted = torch.autograd.grad(theirs(x), [x, *theirs.parameters()], upstream)
        assert_near(found, wanted)
        assert_near([ours(x)], [theirs(x)])


def test_chunks_are_mapped_one_at_a_time_and_each_once_more():
    model, x = ChunkedFeedForward(D, 4 * D, chunk_size=2), torch.randn(B, T, D)
    seen = []
    model.inner.register_forward_hook(lambda m, args, y: seen.append(y.shape[1]))
    y = model(x)
    assert seen == [2, 2, 1]
    y.sum().backward()
    assert seen == [2, 2, 1, 1, 2, 2]


def test_of_a_chunk_its_inner_vectors_are_not_stored():
    x, sizes = torch.randn(B, T, D, requires_grad=True), []
    model = ChunkedFeedForward(D, 50 * D, chunk_size=2)

    def pack(tensor):
        sizes.append(tensor.shape)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x)
    assert not [
        shape for shape in sizes if shape[:2] in [(B, 2), (B, 1)] and 50 * D in shape
    ]


def test_chunks_drop_the_same_numbers_again():
    model = ChunkedFeedForward(D, 40 * D, dropout=0.5, chunk_size=2).double()
    x = streams()[0]
    seen = []
    model.dropout.register_forward_hook(lambda m, args, y: seen.append(y == 0))
    model(x).sum().backward()
    for first, second in zip(seen[:3], reversed(seen[3:]), strict=True):
        assert torch.equal(first, second)
        assert 0.6 < first.double().mean() < 0.9, "half by the ReLU, half of the rest"
    model.eval()
    assert_near([model(x)], [FeedForward.forward(model, x)])


def test_chunks_in_a_reversible_stack():
    def make():
        return nn.Sequential(nn.LayerNorm(D), ChunkedFeedForward(D, 9, 0.3, 2))

    assert_same_as_plain(stack(3, make), streams())


# ---- errors ------------------------------------------------------------------

BAD = table("""
    ReversibleSequence([])
        blocks must be an integer ≥ 1, got 0
    stack(1)(x, x[..., :3])
        x2 must have the shape (*batch, d) with
    stack(1).blocks[0](x, x[:, :3])
        x2 must have the shape (*batch, d) with
    stack(1).blocks[0].inverse(x, x[:, :3])
        y2 must have the shape (*batch, d) with
    ChunkedFeedForward(6, 9, chunk_size=0)
        chunk_size must be an integer ≥ 1, got 0
""")


@pytest.mark.parametrize("call", BAD)
def test_errors_name_argument_value_and_expectation(call):
    assert_refused(call, BAD[call], globals() | {"x": streams()[0]})
