"""The exercises of chapter 14; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import Function, exercise, faults
from annotated.checks.material import counting_positions, leaving_flags, replayed

# ---- undo three streams ------------------------------------------------------


@exercise(
    "ch14-undo",
    "expected the layer's own inputs: take the last step back first, then the one "
    "before",
    tolerance=1e-4,
)
def undo(y1, y2, y3, F, G, H):
    """The streams that the layer was given, three tensors (t, d)."""
    x3 = y3 - H(y1, y2)
    x2 = y2 / G(y1, x3).exp()
    x1 = y1 - F(x2, x3)
    return x1, x2, x3


undo.instead(r"""
x3 = y3 - H(y1, y2)\n    x2 = y2 / G(y1, x3).exp()\n    x1 = y1 - F(x2, x3)
    x1 = y1 - F(y2, y3)\n    x2 = y2 / G(x1, y3).exp()\n    x3 = y3 - H(x1, x2)
        # the steps are taken back in the order of the forward pass: which stream was
        changed last?
    x1 = y1 + F(y2, y3)\n    x2 = y2 * G(x1, y3).exp()\n    x3 = y3 + H(x1, x2)
        # that goes forward once more; undoing takes away what was added
y2 / G(y1, x3).exp()
    y2 * G(y1, x3).exp()  # what was multiplied has to be divided
    y2 - G(y1, x3).exp()  # the second stream was multiplied, not added to
    y2 / G(y1, x3)  # the factor was e to the power of G
    y2 / G(y1, y3).exp()  # G looked at x3, and yours looks at y3
F(x2, x3) -> F(y2, x3)  # F looked at x2, and yours looks at y2
return x1, x2, x3 -> return y1 - F(y2, y3), y2 / G(y1, y3).exp(), x3
        # F and G looked at inputs, and yours look at outputs
""")

_MIXED = Function("0.5 * torch.tanh(p) * q.roll(1, 0)", "p, q")
_POSITIVE = Function("0.3 * (p - q).relu() + 0.1", "p, q")
_SQUARES = Function("0.2 * p * p + 0.4 * q.cumsum(0)", "p, q")


_NOTHING = Function("0.0 * p", "p, q")

for _line, _functions in {
    "the example: functions that give 0": (_NOTHING, _NOTHING, _NOTHING),
    "only H does something": (_NOTHING, _NOTHING, _SQUARES),
    "all three, none of which has an inverse": (_MIXED, _POSITIVE, _SQUARES),
    "three other functions": (_POSITIVE, _MIXED, _POSITIVE),
}.items():

    @undo.case(_line)
    def _(draw, functions=_functions):
        t, d = draw.sizes(2)
        return *(draw.normal(t, d) for _ in range(3)), *functions


# ---- a backward pass that rebuilds -------------------------------------------


def _left_behind(result, *_):
    """What can be seen of missing gradients."""
    none = isinstance(result, list | tuple) and len(result) == 5
    if none and any(gradient is None for gradient in result[4]):
        return (
            "among the gradients of the weights there is a None: the weights that you "
            "get require no gradient, so take copies that do"
        )
    return None


@exercise(
    "ch14-backward",
    "for each layer, the last one first: compute f again, subtract it, and "
    "differentiate it with the gradient of the stream that it was added to",
    through=leaving_flags,
    broken={
        "touched": "your code turns on requires_grad in a tensor that it was given: "
        "take a copy first, w.detach().requires_grad_()",
        "off": "gradients are off in your function, as in every backward pass, so "
        "nothing can be differentiated",
        "graph": "the graphs of several layers are in memory at once, which is what "
        "rebuilding avoids: go backward through a layer before you run the next one",
    },
    tolerance=1e-4,
    symptoms=_left_behind,
)
def backward(f, weights, y1, y2, dy1, dy2):
    """Rebuild the inputs, and carry the gradients back to them and the weights."""
    gradients = [None] * len(weights)
    for n in reversed(range(len(weights))):
        with torch.enable_grad():
            z = y1.detach().requires_grad_()
            w = weights[n].detach().requires_grad_()
            added = f(z, w)
        dz, gradients[n] = torch.autograd.grad(added, (z, w), dy2)
        y1, y2 = (y2 - added).detach(), y1
        dy1, dy2 = dy2, dy1 + dz
    return y1, y2, dy1, dy2, gradients


backward.instead(r"""
reversed(range(len(weights))) -> range(len(weights))
        # the layers are undone from the first to the last
y1.detach() -> y2.detach()
        # f looked at z2, which comes out as the first stream; yours looks at the second
(y2 - added)
    (y2 + added)  # what f added is added once more, not taken away
    y2  # the streams aren't rebuilt: f is looked at in the wrong place
(z, w), dy2)
    (z, w), dy1)  # f's result was added to one stream: the gradient that comes to f is
        dy2, not dy1
    (z, w), torch.ones_like(dy2))
        # the gradient that comes from above is left out (ones stand in its place)
dy2, dy1 + dz
    dy2, dz  # z2 has two ways to the loss: directly, and through f
    dy2, dy1  # the way through f is missing in the gradient of z2
    dy1 + dz, dy2  # the streams changed places, and so do their gradients
dy2, gradients -> dy2, gradients[::-1]  # the weights' gradients come in the order of
        the weights, the first layer's first
(y2 - added).detach() -> y2
gradients = -> given = y1, y2\n    gradients =
return y1, y2 -> return *given  # the outputs are returned as they came
weights[n].detach().requires_grad_() -> weights[n].requires_grad_()
        # … in a tensor that it was given
""")

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
    backward.case(_line, lambda draw, layers=_layers, f=_f: streams(draw, layers, f))


# ---- the same dice -----------------------------------------------------------


@exercise(
    "ch14-replay",
    "expected what f makes of x with the random numbers of the first call, and the "
    "generator afterwards where it was before",
    through=replayed,
)
def replay(f, state, x):
    """What f makes of x with the random numbers of an earlier call."""
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    result = f(x)
    torch.set_rng_state(now)
    return result


replay.instead("""
torch.set_rng_state(state)
    # other random numbers were drawn: put the generator where it stood before the
        first call, and then call f
    torch.manual_seed(0)  # a seed of your own isn't the state that was noted
torch.set_rng_state(now)
    # the generator goes on from the replay: put it back to where it was when your
        function was called
    torch.set_rng_state(state)  # the generator is put back to where it stood before the
        first call; it had moved on since
f(x) -> f(x.detach())
        # no gradient flows from the result to x: is a detach in the way, or no_grad?
torch.set_rng_state(state) ->
torch.set_rng_state(now) -> # other random numbers were drawn: the generator has to
        stand where it stood before the first call
""")

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


@exercise(
    "ch14-chunks",
    "expected the same as f(x): each chunk takes along the positions before it that f "
    "looks at, and drops what f gives there",
    through=counting_positions,
    broken={
        "too many": "f gets more than size + reach positions at once: size is the "
        "length of a chunk (not how many there are), and positions are the last axis "
        "but one",
        "too often": "f is called more often than there are chunks of this size",
    },
)
def in_chunks(f, x, size, reach):
    """The same as f(x), with few positions at a time, (…, t, d)."""
    results = []
    for begin in range(0, x.shape[-2], size):
        first = max(0, begin - reach)
        seen = f(x[..., first : begin + size, :])
        results.append(seen[..., begin - first :, :])
    return torch.cat(results, dim=-2)


in_chunks.instead(r"""
max(0, begin - reach) -> begin
        # a chunk's first positions don't see what stands before the chunk
begin - first :
    :  # what was only there to be looked at is part of the result
    reach:  # results of the first chunk are dropped: nothing was taken along there
range(0, x.shape[-2], size) -> range(0, x.shape[-2] - size + 1, size)
        # the last chunk is missing: size needn't divide the length
results = [] -> return f(x)\n    results = []  # … more than size + reach positions
results = [] -> size, results = 1, []  # … more often than there are chunks
""")

_REACHES = {
    0: Function("2 * x.relu() - x.flip(-1)"),
    1: Function(
        "x * 3 + torch.nn.functional.pad(x, (0, 0, 1, 0))[..., : x.shape[-2], :]"
    ),
    2: Function(
        "x.tanh() - 2 * torch.nn.functional.pad(x, (0, 0, 2, 0))[..., : x.shape[-2], :]"
    ),
}


@in_chunks.each("""
the example: ten positions, size 4, reach 1 -> (10, 3), 4, 1
a feed-forward network: reach 0 -> (6, 3), 2, 0
a size that divides the length, reach 2 -> (3, 9, 4), 3, 2
batches and heads, a short last chunk -> (2, 3, 11, 4), 4, 2
a reach longer than a chunk -> (2, 7, 3), 1, 2
all positions in one chunk -> (2, 5, 3), 8, 1
""")
def _(draw, shape, size, reach):
    return _REACHES[reach], draw.normal(*shape), size, reach


# ---- find the fault ----------------------------------------------------------


@exercise(
    "ch14-stack",
    "expected the x that forward was given: take apart what cat put together, then "
    "undo the last block first, and in each block the last step first",
    faults(r"""
dim=-1 -> dim=0  # along which axis did cat put the two streams side by side?
reversed(blocks) -> blocks  # the blocks are undone from the first to the last.
y2 = y2 - G(y1)\n        y1 = y1 - F(y2) -> y1 = y1 - F(y2)\n        y2 = y2 - G(y1)
        # in a block, the step that was taken last has to be undone first.
"""),
    tolerance=1e-3,
)
def undo_all(blocks, y):
    """The input of the model, (b, t, d)."""
    y1, y2 = y.chunk(2, dim=-1)
    for F, G in reversed(blocks):
        y2 = y2 - G(y1)
        y1 = y1 - F(y2)
    return y1


undo_all.instead(r"""
y2 = y2 - G(y1)\n        y1 = y1 - F(y2) -> y1, y2 = y1 - F(y2), y2 - G(y1)
        # F looked at the other stream as it was before G added to it
return y1 -> return y1 + y2
        # x is there twice in the beginning: return one of the streams, not their sum
""")

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

    @undo_all.case(_line)
    def _(draw, blocks=_blocks):
        t, d = draw.sizes(2, 3, 6)
        return list(blocks), through_blocks(blocks, 0.5 * draw.normal(4, t, d))
