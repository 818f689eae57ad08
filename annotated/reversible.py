"""Reversible layers: what a layer was given is computed back from what it gave.

Letters: b batch, t length, d model width (``book/notation.md``).
"""

import threading
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from annotated import require
from annotated.transformer import FeedForward


class ReversibleBlock(nn.Module):
    """Two streams take turns: to each is added what a module makes of the other.

    Gomez et al. (2017), section 3.1, and Kitaev et al. (2020), section 3, where F is
    attention and G a feed-forward network. Whatever is computed is stored, as usual:
    :class:`ReversibleSequence` is what forgets.

    Args:
        f: F, any module that takes ``(b, t, d)`` and gives the same shape.
        g: G, a module of the same kind.
    """

    def __init__(self, f: nn.Module, g: nn.Module):
        super().__init__()
        self.f, self.g = f, g

    @require.shapes
    def forward(
        self, x1: Float[Tensor, "*batch d"], x2: Float[Tensor, "*batch d"]
    ) -> tuple[Float[Tensor, "*batch d"], Float[Tensor, "*batch d"]]:
        """Return ``y1 = x1 + F(x2)`` and ``y2 = x2 + G(y1)``, of ``x1`` and ``x2``."""
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return y1, y2

    @require.shapes
    def inverse(
        self, y1: Float[Tensor, "*batch d"], y2: Float[Tensor, "*batch d"]
    ) -> tuple[Float[Tensor, "*batch d"], Float[Tensor, "*batch d"]]:
        """Return the ``x1`` and ``x2`` that gave ``y1`` and ``y2``, if F and G repeat.

        Dropout, for one, doesn't: each call draws a new mask.
        """
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return x1, x2


class ReversibleSequence(nn.Module):
    """A stack of reversible blocks that keeps only its last outputs.

    Gomez et al. (2017), section 3.2. The backward pass rebuilds what each block was
    given from what it gave, the last block first, and runs F and G once more for their
    gradients, which are those of the blocks called one by one. For that it keeps random
    states, those of the CPU and of the streams' device (so dropout has the same mask
    again), buffers, and what :func:`repeated` was given; no F or G may depend on
    anything else that changes.

    Args:
        blocks: at least one.
    """

    def __init__(self, blocks: list[ReversibleBlock]):
        super().__init__()
        require.count(blocks=len(blocks))
        self.blocks = nn.ModuleList(blocks)

    @require.shapes
    def forward(
        self, x1: Float[Tensor, "*batch d"], x2: Float[Tensor, "*batch d"]
    ) -> tuple[Float[Tensor, "*batch d"], Float[Tensor, "*batch d"]]:
        """Return both streams after all blocks.

        Args:
            x1: the stream that F adds to.
            x2: the stream that G adds to, of the same shape.

        Raises:
            RuntimeError: in the backward pass, if the streams that it rebuilt are not
                those that came: F or G didn't repeat, or rounding took half of the
                digits.
        """
        functions = [f for block in self.blocks for f in (block.f, block.g)]
        return _Reversible.apply(functions, x1, x2, *self.parameters())


def repeated(choice: Tensor) -> Tensor:
    """Return ``choice``, or what it was in the forward pass of a reversible sequence.

    Inputs are rebuilt to within rounding. What jumps with the last digit, such as the
    bucket of a vector near a boundary, could come out differently the second time, so
    F and G pass it through here.

    Args:
        choice: a tensor of any shape, without gradient.
    """
    return _under_way.calls[-1].keep(choice) if _under_way.calls else choice


class _UnderWay(threading.local):
    """The calls of F or G that a thread is in, one in another, the innermost last."""

    def __init__(self):
        self.calls: list[_Call] = []


_under_way = _UnderWay()


class _Call:
    """A call of F or G, and all that it takes to make it again.

    It's made just before the call, and notes parameters, buffers, random states and
    autocast as they are then. ``first`` makes the call, in the forward pass; meanwhile
    it's under way, and ``keep`` notes each choice that is to be ``repeated``. ``again``
    makes it once more in the backward pass, with what was noted; then ``keep`` hands
    the choices out, in the same order. For a further backward pass it can be made again
    any number of times, until the graph that holds it goes.
    """

    def __init__(self, module: nn.Module, x: Tensor):
        self.module, kind = module, x.device.type
        self.parameters = dict(module.named_parameters())
        self.buffers = {name: b.clone() for name, b in module.named_buffers()}
        self.devices = [] if kind in ("cpu", "meta") else [x.device]
        self.random = torch.get_rng_state()
        self.device_random = [
            torch.get_device_module(device).get_rng_state(device)
            for device in self.devices
        ]
        self.autocast = {"device_type": kind, "dtype": torch.get_autocast_dtype(kind)}
        self.autocast["enabled"] = torch.is_autocast_enabled(kind)
        self.choices, self.replay = [], None

    def first(self, x: Tensor) -> Tensor:
        return self._run(self.module, x)

    def again(self, x: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor, dict]:
        """Return the same once more, and the gradients of x and parameters."""
        x = x.detach().requires_grad_()
        # copies, for a further backward pass
        state = self.parameters | {name: b.clone() for name, b in self.buffers.items()}
        self.replay = iter(self.choices)
        kind = self.devices[0].type if self.devices else None
        with torch.random.fork_rng(self.devices, device_type=kind), torch.enable_grad():
            torch.set_rng_state(self.random)
            for device, random in zip(self.devices, self.device_random, strict=True):
                torch.get_device_module(device).set_rng_state(random, device)
            added = self._run(lambda x: functional_call(self.module, state, x), x)
        learned = [p for p in self.parameters.values() if p.requires_grad]
        if not added.requires_grad:  # the module gives a constant
            return added, torch.zeros_like(x), {}
        upstream = upstream.to(added.dtype)
        dx, *gradients = torch.autograd.grad(
            added, [x, *learned], upstream, materialize_grads=True
        )
        return added.detach(), dx, dict(zip(learned, gradients, strict=True))

    def keep(self, choice: Tensor) -> Tensor:
        if self.replay is not None:
            return next(self.replay)
        self.choices.append(choice)
        return choice

    def _run(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        _under_way.calls.append(self)
        try:
            with torch.autocast(**self.autocast):
                return function(x)
        finally:
            _under_way.calls.pop()


class _Reversible(torch.autograd.Function):
    """F and G in turn: ``(x1, x2)`` becomes ``(x2, x1 + F(x2))``, twice in a block."""

    @staticmethod
    def forward(ctx, functions, x1, x2, *parameters):
        ctx.calls, ctx.sample = [], _sample(x1, x2)
        for function in functions:
            call = _Call(function, x2)
            x1, x2 = x2, x1 + call.first(x2)
            ctx.calls.append(call)
        ctx.save_for_backward(x1, x2, *parameters)  # which notices changed ones
        ctx.parameters = parameters
        return x1, x2

    @staticmethod
    @once_differentiable
    def backward(ctx, dx1, dx2):
        x1, x2, *_ = ctx.saved_tensors
        totals, size = dict.fromkeys(ctx.parameters), _sample(x1, x2).norm()
        for call in reversed(ctx.calls):
            added, dx, gradients = call.again(x1, dx2)
            x1, x2 = x2 - added, x1
            dx1, dx2 = dx2, dx1 + dx
            for parameter, gradient in gradients.items():
                total = totals[parameter]
                totals[parameter] = gradient if total is None else total + gradient
        error = (_sample(x1, x2) - ctx.sample).norm() / (size + ctx.sample.norm())
        kinds = {x1.dtype, x2.dtype} | {
            call.autocast["dtype"] for call in ctx.calls if call.autocast["enabled"]
        }
        if error > max(torch.finfo(kind).eps for kind in kinds) ** 0.5:
            raise RuntimeError(
                f"streams were rebuilt with an error of {error:.1e}: F or G gave "
                "something else the second time (is it random by a generator of its "
                "own, or in another mode?), or rounding grew over too many blocks"
            )
        return None, dx1, dx2, *totals.values()


def _sample(*streams: Tensor) -> Tensor:
    few = torch.cat([x.flatten()[:: x.numel() // 500 + 1] for x in streams])
    return few.to(torch.promote_types(few.dtype, torch.float32))


class ChunkedFeedForward(FeedForward):
    """A feed-forward network that maps a few positions at a time.

    Kitaev et al. (2020), section 3. Each position is mapped by itself, so cutting the
    sequence changes nothing. Only the ends of a chunk are stored: its inner vectors,
    ``d_ff`` wide, are computed again in the backward pass. ``d_model``, ``d_ff`` and
    ``dropout`` are as in its parent.

    Args:
        chunk_size: positions in a chunk; there may be fewer in the last one.
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, chunk_size: int = 256
    ):
        super().__init__(d_model, d_ff, dropout)
        require.count(chunk_size=chunk_size)
        self.chunk_size = chunk_size

    @require.shapes
    def forward(self, x: Float[Tensor, "*batch t d"]) -> Float[Tensor, "*batch t d"]:
        """Return ``x``, ``(…, t, d)``, with each vector mapped."""
        chunks = x.split(self.chunk_size, dim=-2)
        run = super().forward
        return torch.cat([checkpoint(run, c, use_reentrant=False) for c in chunks], -2)
