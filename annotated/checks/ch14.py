"""The exercises of chapter 14; ``__init__.py`` says how one is written."""

from functools import partial

import torch

from annotated.checks import Exercise, Function
from annotated.checks.material import counting_positions, leaving_flags, replayed

# ---- undo three streams ------------------------------------------------------


def undone(y1, y2, y3, F, G, H):
    x3 = y3 - H(y1, y2)
    x2 = y2 * (-G(y1, x3)).exp()
    return y1 - F(x2, x3), x2, x3


def from_the_first(y1, y2, y3, F, G, H):
    """The steps in the order of the forward pass, each with what is there by then."""
    x1 = y1 - F(y2, y3)
    x2 = y2 / G(x1, y3).exp()
    return x1, x2, y3 - H(x1, x2)


def multiplied(y1, y2, y3, F, G, H):
    x3 = y3 - H(y1, y2)
    x2 = y2 * G(y1, x3).exp()
    return y1 - F(x2, x3), x2, x3


def subtracted(y1, y2, y3, F, G, H):
    x3 = y3 - H(y1, y2)
    x2 = y2 - G(y1, x3).exp()
    return y1 - F(x2, x3), x2, x3


def without_exp(y1, y2, y3, F, G, H):
    x3 = y3 - H(y1, y2)
    x2 = y2 / G(y1, x3)
    return y1 - F(x2, x3), x2, x3


def with_outputs(y1, y2, y3, F, G, H):
    """Every function gets outputs."""
    return y1 - F(y2, y3), y2 / G(y1, y3).exp(), y3 - H(y1, y2)


def forward_again(y1, y2, y3, F, G, H):
    z1 = y1 + F(y2, y3)
    z2 = y2 * G(z1, y3).exp()
    return z1, z2, y3 + H(z1, z2)


def only_g_wrong(y1, y2, y3, F, G, H):
    x3 = y3 - H(y1, y2)
    x2 = y2 / G(y1, y3).exp()
    return y1 - F(x2, x3), x2, x3


def only_f_wrong(y1, y2, y3, F, G, H):
    _, x2, x3 = undone(y1, y2, y3, F, G, H)
    return y1 - F(y2, x3), x2, x3


undo = Exercise(
    "ch14-undo",
    right=undone,
    hint="expected the layer's own inputs: take the last step back first, then the one "
    "before",
    tolerance=1e-4,
    mistakes={
        "the steps are taken back in the order of the forward pass: which stream was "
        "changed last?": from_the_first,
        "what was multiplied has to be divided": multiplied,
        "the second stream was multiplied, not added to": subtracted,
        "the factor was e to the power of G": without_exp,
        "F and G looked at inputs, and yours look at outputs": with_outputs,
        "that goes forward once more; undoing takes away what was added": (
            forward_again
        ),
        "G looked at x3, and yours looks at y3": only_g_wrong,
        "F looked at x2, and yours looks at y2": only_f_wrong,
    },
)

_MIXED = Function("0.5 * torch.tanh(p) * q.roll(1, 0)", "p, q")
_POSITIVE = Function("0.3 * (p - q).relu() + 0.1", "p, q")
_SQUARES = Function("0.2 * p * p + 0.4 * q.cumsum(0)", "p, q")


@undo.case("the example: functions that give 0")
def _(draw):
    t, d = draw.sizes(2)
    nothing = Function("0.0 * p", "p, q")
    return *(draw.normal(t, d) for _ in range(3)), nothing, nothing, nothing


@undo.case("only H does something")
def _(draw):
    t, d = draw.sizes(2)
    nothing = Function("0.0 * p", "p, q")
    return *(draw.normal(t, d) for _ in range(3)), nothing, nothing, _SQUARES


@undo.case("all three, none of which has an inverse")
def _(draw):
    t, d = draw.sizes(2)
    return *(draw.normal(t, d) for _ in range(3)), _MIXED, _POSITIVE, _SQUARES


@undo.case("three other functions")
def _(draw):
    t, d = draw.sizes(2)
    return *(draw.normal(t, d) for _ in range(3)), _POSITIVE, _MIXED, _POSITIVE


# ---- a backward pass that rebuilds -------------------------------------------


def rebuilt(
    f,
    weights,
    y1,
    y2,
    dy1,
    dy2,
    *,
    order=lambda weights: list(reversed(range(len(weights)))),
    looked=lambda y1, y2: y1,
    sign=-1.0,
    upstream=lambda dy1, dy2: dy2,
    passed=lambda dy1, dz: dy1 + dz,
    swapped=True,
):
    gradients = [None] * len(weights)
    for n in order(weights):
        with torch.enable_grad():
            z = looked(y1, y2).detach().requires_grad_()
            w = weights[n].detach().requires_grad_()
            added = f(z, w)
        dz, gradients[n] = torch.autograd.grad(added, (z, w), upstream(dy1, dy2))
        y1, y2 = (y2 + sign * added).detach(), y1
        new = passed(dy1, dz)
        dy1, dy2 = (dy2, new) if swapped else (new, dy2)
    return y1, y2, dy1, dy2, gradients


def reversed_list(*given):
    """The weights' gradients, the last layer's first."""
    *rest, gradients = rebuilt(*given)
    return *rest, gradients[::-1]


def not_rebuilt(f, weights, y1, y2, dy1, dy2):
    """Gradients at the last output everywhere, as if all layers had seen it."""
    _, _, dx1, dx2, gradients = rebuilt(f, weights, y1, y2, dy1, dy2, sign=0.0)
    return y1, y2, dx1, dx2, gradients


def _left_behind(result, *_):
    """What can be seen of flags and missing gradients."""
    if isinstance(result, str) and result == "touched":
        return (
            "your code turns on requires_grad in a tensor that it was given: take a "
            "copy first, w.detach().requires_grad_()"
        )
    none = isinstance(result, list | tuple) and len(result) == 5
    if none and any(gradient is None for gradient in result[4]):
        return (
            "among the gradients of the weights there is a None: the weights that you "
            "get require no gradient, so take copies that do"
        )
    return None


backward = Exercise(
    "ch14-backward",
    right=rebuilt,
    through=leaving_flags,
    hint="for each layer, the last one first: compute f again, subtract it, and "
    "differentiate it with the gradient of the stream that it was added to",
    tolerance=1e-4,
    symptoms=_left_behind,
    mistakes={
        "the layers are undone from the first to the last": partial(
            rebuilt, order=lambda weights: list(range(len(weights)))
        ),
        "f looked at z2, which comes out as the first stream; yours looks at the "
        "second": partial(rebuilt, looked=lambda y1, y2: y2),
        "what f added is added once more, not taken away": partial(rebuilt, sign=1.0),
        "the streams aren't rebuilt: f is looked at in the wrong place": partial(
            rebuilt, sign=0.0
        ),
        "the outputs are returned as they came": not_rebuilt,
        "f's result was added to one stream: the gradient that comes to f is dy2, not "
        "dy1": partial(rebuilt, upstream=lambda dy1, dy2: dy1),
        "the gradient that comes from above is left out (ones stand in its place)": (
            partial(rebuilt, upstream=lambda dy1, dy2: torch.ones_like(dy2))
        ),
        "z2 has two ways to the loss: directly, and through f": partial(
            rebuilt, passed=lambda dy1, dz: dz
        ),
        "the way through f is missing in the gradient of z2": partial(
            rebuilt, passed=lambda dy1, dz: dy1
        ),
        "the streams changed places, and so do their gradients": partial(
            rebuilt, swapped=False
        ),
        "the weights' gradients come in the order of the weights, the first layer's "
        "first": reversed_list,
    },
)

_TANH = Function("torch.tanh(w * z) + 0.1 * z.roll(1, 0)", "z, w")
_RELU = Function("w * (z - 0.2).relu()", "z, w")


def streams(draw, layers, f):
    t, d = draw.sizes(2)
    weights = [draw.normal(d) for _ in range(layers)]
    return f, weights, *(draw.normal(t, d) for _ in range(4))


for _line, _layers, _f in (
    ("the example: no layer", 0, _TANH),
    ("one layer", 1, _TANH),
    ("two layers", 2, _RELU),
    ("five layers", 5, _TANH),
):

    @backward.case(_line)
    def _(draw, layers=_layers, f=_f):
        return streams(draw, layers, f)


# ---- the same dice -----------------------------------------------------------


def replay_right(f, state, x):
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        return f(x)


def drawn_again(f, state, x):
    return f(x)


def drawn_elsewhere(f, state, x):
    with torch.random.fork_rng(devices=[]):
        return f(x)


def not_put_back(f, state, x):
    torch.set_rng_state(state)
    return f(x)


def put_back_to_state(f, state, x):
    torch.set_rng_state(state)
    result = f(x)
    torch.set_rng_state(state)
    return result


@torch.no_grad()
def without_gradients(f, state, x):
    return replay_right(f, state, x)


def always_zero(f, state, x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return f(x)


replay = Exercise(
    "ch14-replay",
    right=replay_right,
    through=replayed,
    hint="expected what f makes of x with the random numbers of the first call, and "
    "the generator afterwards where it was before",
    mistakes={
        "other random numbers were drawn: the generator has to stand where it stood "
        "before the first call": drawn_again,
        "other random numbers were drawn: put the generator where it stood before the "
        "first call, and then call f": drawn_elsewhere,
        "the generator goes on from the replay: put it back to where it was when your "
        "function was called": not_put_back,
        "the generator is put back to where it stood before the first call; it had "
        "moved on since": put_back_to_state,
        "a seed of your own isn't the state that was noted": always_zero,
        "no gradient flows from the result to x: is a detach in the way, or no_grad?": (
            without_gradients
        ),
    },
)


# explicit draws: those of dropout would depend on the precision
_DROP = Function("2 * x * (torch.rand(x.shape) < 0.5)")
_NOISE = Function("x.tanh() + torch.randn(x.shape)")


@replay.case("the example: the same x")
def _(draw):
    x = draw.normal(3, 4)
    return _DROP, x, x.clone(), 0


@replay.case("random numbers drawn in between, and afterwards")
def _(draw):
    x = draw.normal(3, 4)
    return _NOISE, x, x.clone(), draw.integer(2, 9)


@replay.case("a rebuilt x that differs a little")
def _(draw):
    x = draw.normal(2, 5)
    return _DROP, x, x + draw.uniform(0.01, 0.02, 2, 5), 3


# ---- chunks that look back ---------------------------------------------------


def cut(
    f,
    x,
    size,
    reach,
    *,
    axis=-2,
    overlap=lambda begin, reach: min(begin, reach),
    dropped=lambda begin, taken, reach: taken,
    last=True,
):
    results, length = [], x.shape[axis]
    for begin in range(0, length, size):
        if not last and begin + size > length:
            break
        taken = overlap(begin, reach)
        part = x.narrow(axis, begin - taken, min(size, length - begin) + taken)
        seen, drop = f(part), dropped(begin, taken, reach)
        results.append(seen.narrow(axis, drop, max(0, seen.shape[axis] - drop)))
    return torch.cat(results, dim=axis)


chunks = Exercise(
    "ch14-chunks",
    right=cut,
    through=counting_positions,
    symptoms=lambda result, *_: (
        "f gets more than size + reach positions at once: size is the length of a "
        "chunk (not how many there are), and positions are the last axis but one"
        if isinstance(result, str) and result == "too many"
        else None
    ),
    hint="expected the same as f(x): each chunk takes along the positions before it "
    "that f looks at, and drops what f gives there",
    mistakes={
        "a chunk's first positions don't see what stands before the chunk": partial(
            cut, overlap=lambda begin, reach: 0
        ),
        "what was only there to be looked at is part of the result": partial(
            cut, dropped=lambda begin, taken, reach: 0
        ),
        "results of the first chunk are dropped: nothing was taken along there": (
            partial(cut, dropped=lambda begin, taken, reach: reach)
        ),
        "the last chunk is missing: size needn't divide the length": partial(
            cut, last=False
        ),
    },
)

_REACHES = {
    0: Function("2 * x.relu() - x.flip(-1)"),
    1: Function(
        "x * 3 + torch.nn.functional.pad(x, (0, 0, 1, 0))[..., : x.shape[-2], :]"
    ),
    2: Function(
        "x.tanh() - 2 * torch.nn.functional.pad(x, (0, 0, 2, 0))[..., : x.shape[-2], :]"
    ),
}


for _line, _shape, _size, _reach in (
    ("the example: ten positions, size 4, reach 1", (10, 3), 4, 1),
    ("a feed-forward network: reach 0", (6, 3), 2, 0),
    ("a size that divides the length, reach 2", (3, 9, 4), 3, 2),
    ("batches and heads, a short last chunk", (2, 3, 11, 4), 4, 2),
    ("a reach longer than a chunk", (2, 7, 3), 1, 2),
    ("all positions in one chunk", (2, 5, 3), 8, 1),
):

    @chunks.case(_line)
    def _(draw, shape=_shape, size=_size, reach=_reach):
        return _REACHES[reach], draw.normal(*shape), size, reach


# ---- find the fault ----------------------------------------------------------


def come_back(
    blocks,
    y,
    *,
    axis=-1,
    order=lambda blocks: list(reversed(blocks)),
    f_first=False,
    other=False,
):
    y1, y2 = y.chunk(2, dim=axis)
    for F, G in order(blocks):
        if f_first:
            y1 = y1 - F(y2)
            y2 = y2 - G(y1)
        else:
            y2 = y2 - G(y1)
            y1 = y1 - F(y2)
    return y2 if other else y1


def both_from_outputs(blocks, y):
    y1, y2 = y.chunk(2, dim=-1)
    for F, G in reversed(blocks):
        y1, y2 = y1 - F(y2), y2 - G(y1)
    return y1


def joined(blocks, y):
    return come_back(blocks, y) + come_back(blocks, y, other=True)


_AS_IT_WAS = {"order": lambda blocks: list(blocks)}

stack = Exercise(
    "ch14-stack",
    right=come_back,
    hint="expected the x that forward was given: take apart what cat put together, "
    "then undo the last block first, and in each block the last step first",
    tolerance=1e-3,
    mistakes={
        "unchanged: all three faults are still there": partial(
            come_back, axis=0, f_first=True, **_AS_IT_WAS
        ),
        "the streams are told apart now; two faults are left": partial(
            come_back, f_first=True, **_AS_IT_WAS
        ),
        "the blocks are undone from the first to the last": partial(
            come_back, **_AS_IT_WAS
        ),
        "in a block, the step that was taken last has to be undone first": partial(
            come_back, f_first=True
        ),
        "F looked at the other stream as it was before G added to it": (
            both_from_outputs
        ),
        "x is there twice in the beginning: return one of the streams, not their sum": (
            joined
        ),
    },
)

_HALVES = [
    (Function("x.roll(1, 1).tanh()"), Function("(x - 0.1).relu()")),
    (Function("0.5 * x.relu()"), Function("x.flip(-1).sin()")),
    (Function("x.cumsum(1) / 4"), Function("0.2 * x * x")),
]


def through_blocks(blocks, x):
    x1 = x2 = x
    for F, G in blocks:
        x1 = x1 + F(x2)
        x2 = x2 + G(x1)
    return torch.cat([x1, x2], dim=-1)


for _line, _blocks in {
    "no block": [],
    "one block": _HALVES[:1],
    "two blocks": _HALVES[1:],
    "three blocks": _HALVES,
}.items():

    @stack.case(_line)
    def _(draw, blocks=_blocks):
        t, d = draw.sizes(2, 3, 6)
        return list(blocks), through_blocks(blocks, 0.5 * draw.normal(4, t, d))
