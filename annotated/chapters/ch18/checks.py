"""The exercises of chapter 18; ``__init__.py`` says how one is written."""

import torch
from torch.nn import functional as F

from annotated.checks import Function, exercise, faults, material

# ---- a step in pieces --------------------------------------------------------


@exercise(
    "ch18-pieces",
    "expected the step, and the loss, of all pieces as one batch",
    through=material.stepped_in_pieces,
    broken={
        "joined": "the model reads what is none of the pieces: joined, they don't fit",
        "together": "several pieces are in memory at once: when do you go backward?",
        "attached": "the loss that you return still holds its graph",
    },
    tolerance=1e-4,
)
def step_in_pieces(model, optimizer, pieces, clip):
    """Take one step with all pieces as one batch; return its loss."""
    optimizer.zero_grad()
    total, losses = sum((y != -100).sum() for _, y in pieces), []
    nats = torch.nn.functional.cross_entropy
    for x, y in pieces:
        # divided by the tokens of the batch, not by those of the piece
        loss = nats(model(x).mT, y, reduction="sum") / total
        loss.backward()
        losses.append(loss.item())
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return sum(losses)


step_in_pieces.instead(r"""
, reduction="sum") / total
    ) / len(pieces)
        # that's a mean of means: a piece with more tokens has to count more
    )  # the pieces are added up as they are
    , reduction="sum")  # that's a sum over all tokens: by what is it divided?
    ) * y.numel() / sum(y.numel() for _, y in pieces)
        # pieces count by their tokens, but padding is counted, too
    , reduction="sum") / sum(y.numel() for _, y in pieces)
        # the sum is divided by a number of tokens that includes padding
    ) * (y != -100).sum() / total
        # a piece of nothing but padding has no mean: 0 / 0 is NaN
optimizer.zero_grad()
    # the gradient that was there before is still in your step
loss = nats -> optimizer.zero_grad(); loss = nats
        # the gradient of the last piece alone is left: it's cleared in between
loss.backward()
    loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        # the gradient is clipped before it's whole
torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip / total)
        # it's clipped before it's divided by the number of tokens
    # the gradient isn't clipped
loss.backward() -> loss.backward(); optimizer.step()
optimizer.step()\n    return -> return
        # there's a step after each piece: asked for is a single one
return sum(losses)
    return sum(losses) / len(pieces)
        # the step is right, but the loss is divided once too often
return sum(losses)
    return sum(nats(model(x).mT, y, reduction="sum").item() for x, y in pieces) / total
        # the step is right, but the loss is that after it; asked for is the one before
optimizer.zero_grad() -> optimizer.zero_grad()\n    logits = [model(x) for x, _ in
        pieces]  # … when do you go backward
""")


@step_in_pieces.each("""
two pieces of equal length -> [[4], [4]], 9
three tokens and one -> [[3], [1]], 9
pieces of several rows, with padding -> [[5, 1], [2, 4, 3], [6]], 9
a piece of nothing but padding -> [[3], [0, 0], [2]], 9
a gradient that has to be clipped -> [[5, 1], [2, 4, 3], [6]], 0.1
""")
def _(draw, rows, clip):
    v, pieces = 5, []
    for lengths in draw.shuffled(rows):
        width = max(*lengths, 1)
        tokens, targets = draw.integers(0, v - 1, 2, len(lengths), width)
        here = torch.arange(width) < torch.tensor(lengths)[:, None]
        pieces.append((tokens * here, targets.masked_fill(~here, -100)))
    tables = [draw.normal(v, 3), draw.normal(v, 3)]
    return tables, pieces, draw.number(0.5, 1.5), clip


# ---- a step in float16 -------------------------------------------------------


@exercise(
    "ch18-scaler",
    "expected the step of the true gradients, clipped, or none if one of them isn't "
    "finite; then the scale, and how many good steps there have been with it",
    tolerance=1e-4,
)
def scaler_step(weights, gradients, scale, good, rate, clip, patience):
    """One step, or none; new weights, scale and number of good steps."""
    true = [g.to(weights[0]) / scale for g in gradients]
    flat = torch.cat([g.flatten() for g in true])
    if not flat.isfinite().all():
        return weights, scale / 2, 0
    factor = (clip / flat.norm()).clamp(max=1.0)
    pairs = zip(weights, true, strict=True)
    weights = [w - rate * factor * g for w, g in pairs]
    good += 1
    if good == patience:
        scale, good = scale * 2, 0
    return weights, scale, good


scaler_step.instead(r"""
g.to(weights[0]) / scale for
    g.to(weights[0]) for  # the gradients are still multiplied by the scale
    (g.half() / scale).to(weights[0]) for
        # in float16, a gradient that's divided again is lost again: which precision
        does the division need?
(clip / flat.norm())
    (clip / (flat * scale).norm())
        # it's clipped while it's still multiplied by the scale
.clamp(max=1.0)
    # a gradient that's shorter than `clip` stays as it is: yours is made longer
factor * g for -> (clip / g.norm()).clamp(max=1.0) * g for
        # the norm is that of all gradients together: you clip each by its own
factor * g for -> g for  # the gradient isn't clipped
if not flat.isfinite().all()
    if False  # a number isn't finite, and the weights are ruined: it may be infinite
        or NaN, and in any of the gradients
weights, scale / 2, 0
    weights, scale, 0  # after an overflow the scale is halved
    weights, scale / 2, good
        # after an overflow, good steps are counted from 0 again
good == patience
    False  # this was the last of `patience` good steps, and the scale isn't doubled
    good == patience - 1  # the scale doubles one step too early
    good > 0  # the scale doubles after `patience` good steps, not after each
scale * 2, 0 -> scale * 2, good
        # after doubling, good steps are counted from 0 again
not flat.isfinite().all() -> flat.isnan().any()  # … infinite or NaN
""")


@scaler_step.each("""
the example -> 4, 0, 1, 5
a gradient that needn't be clipped -> 1024, 2, 1, 1e9
a gradient that has to be clipped -> 1024, 0, 1, 0.5
a gradient that float16 can't hold without its scale -> 65536, 1, 1e-8, 1e9
the step before the scale doubles -> 1024, 3, 1, 1e9
the step after which the scale doubles -> 4096, 4, 1, 1e9
a number that's infinite, in the last gradient -> 65536, 2, 0.1, 1e9, "-inf"
a number that's NaN -> 65536, 2, 0.1, 1e9, "nan"
an overflow in what would be the last good step -> 65536, 4, 0.1, 1e9, "inf"
""")
def _(draw, scale, good, size, clip, number=None):
    shapes = [[2], [2]] if scale == 4 else [draw.sizes(2), draw.sizes(1)]
    weights = [draw.normal(*shape) for shape in shapes]
    gradients = [(draw.normal(*shape) * size * scale).half() for shape in shapes]
    if scale == 4:
        gradients = [*torch.tensor([[24.0, 0.0], [0.0, 32.0]]).half()]
    if number:
        gradients[1][0] = float(number)
    return weights, gradients, float(scale), good, 1 / size, clip * size, 5


# ---- checkpoint a block ------------------------------------------------------


@exercise(
    "ch18-checkpoint",
    "expected what f gives, its gradients with the same random numbers, and a "
    "generator that goes on as if f had run once",
    through=material.run_twice,
    broken={
        "ready": "PyTorch's own checkpoint is what you build here",
        "flat": "no gradient reaches the weights if x needs none: are they inputs of "
        "your Function?",
        "kept": "what f computes on the way forward is still in memory",
        "off": "gradients are off in a backward pass, so nothing can be differentiated",
    },
    tolerance=1e-4,
)
def checkpointed(f, x, *weights):
    """The same as f(x, *weights), without keeping what f computes."""

    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.state = torch.get_rng_state()
            ctx.save_for_backward(*inputs)
            return f(*inputs)

        @staticmethod
        def backward(ctx, upstream):
            now = torch.get_rng_state()
            torch.set_rng_state(ctx.state)  # the same dropout
            inputs = [t.detach().requires_grad_() for t in ctx.saved_tensors]
            with torch.enable_grad():
                y = f(*inputs)
            torch.set_rng_state(now)
            return torch.autograd.grad(y, inputs, upstream)

    return Checkpoint.apply(x, *weights)


checkpointed.instead(r"""
torch.set_rng_state(ctx.state)
    # in the second pass f draws other random numbers
return f(*inputs) -> y = f(*inputs); ctx.state = torch.get_rng_state(); return y
        # in the second pass f draws what comes after its first numbers
torch.set_rng_state(now)
    # the generator goes on from the second pass: put it back to where it stood
inputs, upstream)
    inputs, torch.ones_like(y))  # the gradient that comes from above isn't used
return f(*inputs) -> y = f(*inputs); torch.set_rng_state(ctx.state); return y
        # after the forward pass, the generator has to go on as if f had been called
return torch.autograd.grad(y, inputs, upstream)
    return torch.autograd.grad(y, inputs[0], upstream) + (None,) * len(weights)
        # the weights get no gradient
with torch.enable_grad(): -> if True:  # … gradients are off in a backward pass
return Checkpoint.apply(x, *weights) -> return f(x, *weights)  # … is still in memory
return Checkpoint.apply(x, *weights)
    import torch.utils.checkpoint as ready; return ready.checkpoint(f, x, *weights,
        use_reentrant=False)
        # … what you build here
    f = lambda x, given=f: given(x, *weights); return Checkpoint.apply(x)
        # … if x needs none
""")


@checkpointed.each("""
nothing random -> "1", True, 3
dropout, and nothing drawn between the passes -> "DROP", True, 0
dropout, and random numbers drawn between the passes -> "DROP", True, 5
an x that needs no gradient -> "DROP", False, 2
""")
def _(draw, factor, learns, between):
    # (a dropout of PyTorch's would depend on the precision)
    factor = factor.replace("DROP", "2 * (torch.rand(len(x), a.shape[1]) < 0.5)")
    f = Function(f"((x @ a).tanh() * {factor}) @ b", "x, a, b")
    d, e = draw.sizes(2)
    weights = [draw.normal(d, 16), draw.normal(16, e)]
    return f, draw.normal(30, d), weights, learns, between


# ---- where does the memory go? -----------------------------------------------


@exercise(
    "ch18-memory",
    "expected bytes of parameters, gradients, Adam's averages and activations, in each "
    "process",
    tolerance=1e-12,
)
def training_bytes(widths, rows, precision, shards, stage):
    """Bytes of parameters, gradients, averages and activations."""
    from itertools import pairwise

    count = sum(d * e + e for d, e in pairwise(widths))
    weight, gradient, activation, loss = {
        "float32": (4, 4, 4, 4),
        "mixed": (4 + 2, 4, 2, 4),
        "bfloat16": (2, 2, 2, 2),
    }[precision]
    share = -(-count // shards)  # rounded up
    return (
        weight * (share if stage >= 3 else count),
        gradient * (share if stage >= 2 else count),
        2 * gradient * (share if stage >= 1 else count),
        rows * (activation * sum(widths[:-1]) + loss * widths[-1]),
    )


training_bytes.instead("""
d * e + e
    d * e  # each layer has biases as well
    d * e + d  # a layer from d to e has e biases, one for each output
4 + 2
    4  # mixed: the copy in bfloat16 counts as well
(4 + 2, 4, 2, 4)
    (4 + 2, 2, 2, 4)  # mixed: gradients belong to the weights in float32
    (4 + 2, 4, 2, 2)  # mixed: the loss keeps its numbers in float32
-(-count // shards)
    count // shards  # the last part is filled up, so that all are equally large
weight * (share if stage >= 3 else count)
    (weight - 2) * (share if stage >= 3 else count) + 2 * count
        # the copy in bfloat16 counts among the parameters: stage 3 divides it, too
stage >= 3
    stage >= 1  # stage 1 divides the averages alone; each process has all parameters
stage >= 2
    stage == 2  # stage 3 divides what stage 2 divides, and more
2 * gradient
    gradient  # Adam keeps two averages for each parameter
rows * (activation * sum(widths[:-1]) + loss * widths[-1])
    rows * activation * sum(widths[:-1])  # what the loss keeps is missing
    rows * (activation * sum(widths[1:-1]) + loss * widths[-1])
        # the first layer keeps what it reads as well: its weights need it
    rows * (activation * (sum(widths[:-1]) + sum(widths[1:-1])) + loss * widths[-1])
        # what a ReLU gives is what the next layer reads: it's one tensor
    -(-rows // shards) * (activation * sum(widths[:-1]) + loss * widths[-1])
        # `rows` are those of one process: they aren't divided once more
""")


@training_bytes.each("""
the example -> "float32", 1, 0
mixed precision -> "mixed", 1, 0
all in bfloat16 -> "bfloat16", 1, 0
stage 1 -> "float32", 3, 1
stage 2 -> "mixed", 4, 2
stage 3, mixed -> "mixed", 5, 3
stage 3 in bfloat16, where a part has to be filled up -> "bfloat16", 64, 3
""")
def _(draw, precision, shards, stage):
    if (precision, shards) == ("float32", 1):
        return [784, 1000, 10], draw.choice([64, 128]), precision, 1, 0
    widths = [draw.integer(5, 90) for _ in range(draw.integer(3, 6))]
    return widths, draw.integer(100, 199), precision, shards, stage


# ---- around the ring ---------------------------------------------------------

APART = {
    "generator": "your function is no generator: is there a `yield` in it?",
    "alone": "one process has returned while another still waits for it",
    "changed": "your code changes its arguments in place: do tensors share memory?",
}


@exercise(
    "ch18-ring",
    "expected the sum of all gradients, in every process",
    through=material.around_the_ring,
    broken={
        **APART,
        "message": "what you yield has to be a piece of the gradient, `(p,)`, of its "
        "dtype",
        "whole": "a process sends more at once than one of n pieces",
        "often": "a process sends more than 2(n − 1) times",
    },
)
def ring(rank, n, gradient):
    """The sum of all gradients; sends a piece in each step."""
    pieces = list(gradient.tensor_split(n))
    for step in range(2 * (n - 1)):
        i = (rank - step) % n
        received = yield pieces[i]
        if step < n - 1:
            received = received + pieces[i - 1]
        pieces[i - 1] = received
    return torch.cat(pieces)


ring.instead(r"""
step < n - 1
    step >= 0  # in the second half, finished sums go around: they're no summands
rank - step
    rank + step + 2 * (step >= n - 1)  # which piece can you send next? One that has
        just arrived
    rank - step % max(n - 1, 1)  # each piece is one process's own: do you add up in the
        first half, and does the second begin with the sum that's finished?
yield pieces[i]
    yield gradient.tensor_split(n)[i]  # you pass on your own piece, not the sum so far
+ pieces[i - 1] -> + pieces[i]
pieces[i - 1] = received -> pieces[i] = received
        # what arrives isn't the piece that you've sent: which one is it?
range(2 * (n - 1))
    range(n - 1)  # that's half the way: each process has one finished sum, of a piece
    range(0)  # nothing is sent: that's each process's own gradient
torch.cat(pieces)
    torch.cat(pieces) / n  # that's the mean; asked for is the sum
    torch.cat(pieces[rank:] + pieces[:rank])  # the sums are right, but not in order
gradient.tensor_split(n) -> gradient.chunk(n)  # … IndexError
list(gradient.tensor_split(n)) -> n * [gradient]  # … than one of n pieces
received = received + pieces[i - 1] -> pieces[i - 1] += received\n            received =
        pieces[i - 1]  # … in place
2 * (n - 1) -> 2 * n - 1  # … more than 2(n − 1) times
""")


@ring.each("""
the example -> 3, 3
one process alone -> 1, 5
two processes -> 2, 7
pieces of equal length -> 4, 12
pieces of unequal length -> 4, 10
one number more than processes -> 4, 5
fewer numbers than processes -> 5, 3
many processes -> 7, 40
something is added on the way, so sums have to change -> 3, 8, 1.0  # what a process
        knows of others is what arrives at it: do you use that alone?
""")
def _(draw, n, count, noise=0.0):
    if (n, count) == (3, 3):
        example = torch.tensor([1.0, 2.0, 3.0])
        return draw.shuffled([example, 10 * example, 100 * example]), noise
    return [draw.normal(count) for _ in range(n)], noise


# ---- everyone owns a part ----------------------------------------------------


@exercise(
    "ch18-owners",
    "expected, in every process, all weights after Adam's step with the mean gradient, "
    "clipped, and the averages of its own part",
    through=material.owned_in_parts,
    broken={
        **APART,
        "message": "what you yield has to be one of the three words, and an x",
        "different": "processes must take part in the same exchange, with an equally "
        "large x",
        "often": "each exchange is needed once",
        "gathered": "more than one part is gathered from each process",
        "reduced": "the all-reduce is for a single number: with a whole gradient, "
        "nobody's memory is saved",
        "uneven": "n must divide the length of what's reduced and scattered: add zeros",
        "averages": "`m` and `u` have p numbers in each process, added zeros too",
        "no reduce-scatter": "nobody knows the others' gradients: where do they meet?",
        "no all-reduce": "the norm of the whole gradient depends on all parts: without "
        "a sum over processes, nobody knows it",
        "no all-gather": "each process needs the weights that others have moved",
    },
    tolerance=1e-4,
)
def owner_step(rank, n, weights, gradient, m, u, step, rate, clip):
    """One step of Adam; all weights, and the averages of the own part."""
    p, pad = len(m), torch.nn.functional.pad
    rest = 0, n * p - len(weights)  # zeros, so that all parts are equally large
    g = yield "reduce-scatter", pad(gradient, rest)
    g = g / n
    squares = yield "all-reduce", g.square().sum()
    g = g * (clip / squares.sqrt()).clamp(max=1.0)
    m = 0.9 * m + 0.1 * g
    u = 0.999 * u + 0.001 * g**2
    move = m / (1 - 0.9**step) / ((u / (1 - 0.999**step)).sqrt() + 1e-8)
    own = pad(weights, rest)[rank * p : (rank + 1) * p]
    whole = yield "all-gather", own - rate * move
    return whole[: len(weights)], m, u


owner_step.instead("""
g = g / n
    # the step is that of the mean gradient: yours is a sum
g.square().sum()
    g.norm()  # norms of parts don't add up to that of the whole: what does?
    (g * n).square().sum()  # you clip by the norm of the sum: which gradient is Adam's?
squares.sqrt()
    g.norm()  # each part is clipped by its own norm: the whole gradient has only one
    squares  # the norm is the root of the sum of squares
    gradient.norm()  # each process clips by the norm of its own rows' gradient
.clamp(max=1.0)
    # a gradient that's shorter than `clip` stays as it is: yours is made longer
g = g * (clip / squares.sqrt()).clamp(max=1.0)
    # the gradient isn't clipped
g = g * (clip -> factor = (clip
m / (1 -> m * factor / (1
        # it's the gradient that's clipped, before Adam sees it, not the move
1 - 0.9**step -> 1
1 - 0.999**step -> 1
        # the averages begin at 0, and that isn't corrected
1 - 0.9**step -> 1 - 0.9**(step + 1)
1 - 0.999**step -> 1 - 0.999**(step + 1)
        # steps are counted from 1 already
1 - 0.9**step -> 1 - 0.9**(step - 1 or 1)
1 - 0.999**step -> 1 - 0.999**(step - 1 or 1)
        # this step counts as well when averages are corrected
.sqrt() + 1e-8
    + 1e-8  # Adam divides by the root of `u`
    .add(1e-8).sqrt()  # Adam adds ε to the root, not below it
    .sqrt().clamp(min=1e-30)  # where does Adam add its ε?
rank * p : (rank + 1) * p
    : p  # every process moves the first part
    rank::n  # a part is made of neighbours, not of every n-th number
own - rate * move
    - rate * move  # gathered are moves: they have to be added to the weights
whole[: len(weights)]
    whole  # the zeros that were added are still there
squares = yield "all-reduce", g.square().sum()
    squares = g.square().sum()  # … the norm of the whole gradient depends on all parts
m = 0.9 * m + 0.1 * g -> m = m.mul_(0.9).add_(0.1 * g)  # … in place
pad(gradient, rest) -> gradient  # … add zeros
yield "reduce-scatter", pad(gradient, rest)
    (yield "all-reduce", pad(gradient, rest)).chunk(n)[rank]  # … for a single number
yield "all-gather", own - rate * move -> (own - rate * move).repeat(n)
        # … each process needs the weights
whole[: len(weights)], m, u
    whole[: len(weights)], m[: len(weights) - rank * len(m)], u  # … have p numbers
    own - rate * move, m, u  # … the shape is
""")


@owner_step.each("""
the example -> 2, 3, 1, 1.0
one process alone -> 1, 5, 4, 0.5
two processes, a step that isn't clipped -> 2, 8, 3, 99.0
two processes, a step that's clipped -> 2, 8, 3, 0.5
zeros are added -> 3, 7, 2, 0.5
the first step -> 3, 11, 1, 99.0
one process owns nothing but added zeros -> 4, 5, 6, 0.5
a late step -> 5, 23, 900, 0.5
a norm that's just below the limit -> 2, 8, 3, None  # the norm of the mean gradient
        isn't above `clip` here, so nothing is to be shortened
gradients so small that ε counts -> 2, 6, 1, 99.0, 1e-7
""")
def _(draw, n, count, step, clip, small=1.0):
    p, weights = -(-count // n), draw.normal(count)
    gradients = [small * draw.normal(count) for _ in range(n)]
    clip, size = clip or 1.02 * (sum(gradients) / n).norm().item(), float(step > 1)
    if count == 3:
        gradients = draw.shuffled(torch.tensor([[6.0, 0.0, 0.0], [0.0, 0.0, 8.0]]))
    m, u = size * draw.normal(count) / 5, size * draw.uniform(0.001, 0.03, count)
    parts = (F.pad(x, (0, n * p - count)).split(p) for x in (m, u))
    averages = [*zip(*parts, strict=True)]
    return weights, gradients, averages, step, draw.number(0.1, 0.3), clip


# ---- find the fault ----------------------------------------------------------


@exercise(
    "ch18-fault",
    "expected after each epoch the weight that one process has, which reads all rows",
    faults("""
* len(p) / tokens for -> * 1 / ranks for
        # a process with few tokens and one with many: how much does each count?
clipped(mean) -> mean
gradient(weight, p) * -> clipped(gradient(weight, p)) *
        # which gradient has the norm that `clip` limits?
shuffle(len(texts), epoch) -> shuffle(len(texts), 0)
        # which rows come first in the second epoch?
"""),
    through=material.trained_in_shares,
    broken={"shares": "in each step, every process takes the gradient of its own rows"},
)
def train(weight, texts, gradient, shuffle, ranks, clip):
    """The weight after each of three epochs."""

    def clipped(g):
        return g * (clip / g.norm()).clamp(max=1.0)

    weights = []
    for epoch in range(3):
        order = shuffle(len(texts), epoch)
        for start in range(0, len(texts), 4):
            rows = order[start : start + 4]
            shares = [rows[rank::ranks] for rank in range(ranks)]
            parts = [torch.cat([texts[i] for i in share]) for share in shares]
            tokens = sum(len(p) for p in parts)
            own = [gradient(weight, p) * len(p) / tokens for p in parts]
            mean = torch.stack(own).sum(dim=0)  # the exchange
            weight = weight - 0.1 * clipped(mean)
        weights.append(weight)
    return weights


train.instead("""
* len(p) / tokens for
    * len(p) for  # the sum over all tokens is left undivided
    * 1 / tokens for
        # each is a mean over its own tokens already: it's divided once more
clipped(mean) -> mean  # the gradient isn't clipped
clipped(mean) -> mean * clip / mean.norm()  # a shorter gradient stays as it is
clipped(mean) -> mean
torch.stack(own) -> torch.stack([clipped(g) for g in own])
        # which gradient has the norm that `clip` limits?
shuffle(len(texts), epoch) -> shuffle(len(texts), epoch + 1)
        # the first epoch has the seed 0
for rank in range(ranks)]
    for rank in range(ranks)]; shares = [rows]
        # … every process takes the gradient of its own rows
""")


@train.each("""
one process -> 1, 1, 9, 1.0
two processes, texts of equal length -> 2, 4, 4, 99.0
two processes -> 2, 1, 9, 99.0
two processes, and a gradient that's clipped -> 2, 1, 9, 1.0
four processes -> 4, 1, 9, 99.0
""")
def _(draw, ranks, low, high, clip):
    gradient = Function("2 * (w - x).mean()", "w, x")
    rule = f"[(5 * i + {draw.integer(0, 11)} + 3 * seed) % n for i in range(n)]"
    lengths = [draw.integer(low, high) for _ in range(12)]
    texts = [2 * draw.normal(1) + draw.uniform(9, 9.5, n) for n in lengths]
    weight, shuffle = torch.tensor(draw.number(8, 10)), Function(rule, "n, seed")
    return weight, texts, gradient, shuffle, ranks, clip
