"""The exercises of chapter 07; ``__init__.py`` says how one is written."""

import math

import torch
from torch import Tensor

from annotated.checks import Function, Raised, changes, exercise, faults
from annotated.checks.material import accumulated, looped, steps_taken


def asserts(result):
    """The symptom of an `assert` where an error is asked for."""
    if isinstance(result, Raised) and result.kind == "AssertionError":
        return "an assert is gone when Python runs with -O: raise a ValueError"


# ---- a training step ---------------------------------------------------------


def no_step(result, *_):
    """The symptom of a result that is no number."""
    if result is None:
        return "return the loss, a number"
    if isinstance(result, Tensor) and result.requires_grad:
        return "the loss you return keeps its whole graph in memory: return loss.item()"
    return None


@exercise(
    "ch07-training-step",
    "the loss, or the parameters after the step, are other ones",
    through=steps_taken,
    broken=dict.fromkeys(
        ("a step in evaluation mode", "left in evaluation mode"),
        "the model is put into evaluation mode: a step wants its dropout",
    ),
    symptoms=no_step,
)
def training_step(model, source, target, optimizer, schedule, clip):
    """Take one step on one batch; return its loss."""
    read, labels = target[:, :-1], target[:, 1:]
    nats = torch.nn.functional.cross_entropy  # of (b, v, t) and (b, t)
    losses = nats(model(source, read).mT, labels, reduction="none")
    real = labels != 0
    loss = losses[real].mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    schedule.step()
    return loss.item()


training_step.instead(r"""
optimizer.zero_grad() -> # gradients that were there before are in your step
optimizer.zero_grad()\n    loss.backward() -> loss.backward()\n    optimizer.zero_grad()
        # the parameters stay where they are: is there a gradient when you step?
torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    pass  # a gradient longer than `clip` gets through
    [torch.nn.utils.clip_grad_norm_([p], clip) for p in model.parameters()]
        # each parameter is shortened by itself
    torch.nn.utils.clip_grad_value_(model.parameters(), clip)
        # each number is cut off: the direction changes
schedule.step() -> # the rate stays where it is
optimizer.step()\n    schedule.step() -> schedule.step()\n    optimizer.step()
        # each step has the rate of the next one
losses[real].mean()
    losses.mean()  # padding is counted, in the sum and in the number
    losses[real].sum() / real.numel()
        # the sum is divided by all positions, padding too
    ((losses * real).sum(1) / real.sum(1)).mean()
        # this is the mean of the sentences' means, not of the tokens
    losses[real].sum()  # this is the sum, not the mean
target[:, :-1], target[:, 1:]
    target, target  # the model reads the very symbol that it should say
    target[:, :-1], target[:, :-1]  # the labels are those of the position before
optimizer.zero_grad() ->
\n    schedule -> \n    optimizer.zero_grad()\n    schedule
        # cleared only at the end: what waited there at first is in the first step
loss.item() -> loss  # … keeps its whole graph
return loss.item() ->  # … return the loss
loss.backward() -> model.eval()\n    loss.backward()  # … evaluation mode
\n    return -> \n    model.eval()\n    return  # … put into evaluation mode
""")


def speaker(draw, symbols=7, wide=4):
    return [draw.normal(symbols, wide) for _ in range(3)]


def padded_targets(draw, lengths, symbols=7):
    """A source, and a target that begins with 1 and is padded with 0."""
    rows = draw.integers(3, symbols - 1, len(lengths), max(lengths) + 2)
    rows[:, 0] = 1
    size = torch.tensor(lengths)[:, None] + 1
    place = torch.arange(rows.shape[1])
    rows = torch.where(place == size, 2, rows.masked_fill(place > size, 0))
    return draw.integers(3, symbols - 1, len(lengths), 3), rows


# lengths of a batch, scale of the model, rates, longest gradient
@training_step.each("""
one step, no padding, nothing to clip -> [4, 4], 1, [0.1, 0.2], 100.0
sentences of several lengths -> [1, 3, 6], 1, [0.3, 0.1], 100.0
a long gradient -> [5, 2], 6, [0.5, 0.1], 0.05
four steps, and a rate that climbs -> [1, 2, 5], 1, [0.1, 0.2, 0.3, 0.4, 0.5], 0.2
""")
def _(draw, lengths, scale, rates, clip):
    batches = [padded_targets(draw, draw.shuffled(lengths)) for _ in rates[1:]]
    return [scale * table for table in speaker(draw)], batches, rates, clip


# ---- find the fault ----------------------------------------------------------


def token_loss(model, source, target):
    logits, labels = model(source, target[:, :-1]).mT, target[:, 1:]
    return torch.nn.functional.cross_entropy(logits, labels, ignore_index=0)


STILL_THERE = r"""
schedule.step() ->
total = count -> schedule.step()\n    total = count
        # the rate does not move within an epoch
loss.backward() ->
optimizer.step() -> loss.backward()\n        optimizer.step()
        # a gradient longer than `clip` gets through
"""
# the last one's steps are the right ones, if they clear first
LEAKS = r"""
tokens = -> token_loss(model, source, target).backward()\n        tokens =
        # the next epoch begins with something that the evaluation left behind
tokens = -> token_loss(model, source, target).backward()\n        tokens =
optimizer.zero_grad() ->
loss = -> optimizer.zero_grad()\n        loss =
        # the evaluation goes backward: its gradients are left until the next step
"""
COUNTS = """
(target[:, 1:] != 0).sum().item()
    1  # the checking loss depends on how tokens are split into batches
    len(target)  # the checking loss weighs a batch by sentences, not by tokens
    (target != 0).sum().item()
        # the checking loss counts the start symbol, which is never said
    target[:, 1:].numel()  # the checking loss counts padding
"""


def left_over():
    """Every set of faults that may be left, of each kind one."""
    for leak in changes(LEAKS).items():
        for count in changes(COUNTS).items():
            yield faults(changes(STILL_THERE) | dict([leak, count]))


@exercise(
    "ch07-repair-loop",
    "something else has changed: repair the faults, and leave the rest as it is",
    {hint: change for made in left_over() for hint, change in made.items()},
    through=looped,
    broken={
        "a step in evaluation mode": "a step is taken in evaluation mode, without "
        "dropout: back to train()",
        "an evaluation in training mode": "the evaluation runs in training mode: a "
        "model with dropout would drop there, too",
        "left in evaluation mode": "after the evaluation the model stays in evaluation "
        "mode: the next epoch would be without dropout",
    },
)
def train_epoch(model, training, checking, optimizer, schedule, clip):
    """Losses of the steps, and the mean loss per token of the evaluation."""
    losses = []
    for source, target in training:
        loss = token_loss(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    total = count = 0
    model.eval()
    for source, target in checking:
        with torch.no_grad():
            checked = token_loss(model, source, target)
        tokens = (target[:, 1:] != 0).sum().item()
        total, count = total + checked.item() * tokens, count + tokens
    model.train()
    return losses, total / count


train_epoch.instead(r"""
torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    [torch.nn.utils.clip_grad_norm_([p], clip) for p in model.parameters()]
        # each parameter is clipped by itself: clip the gradient of all together
losses = [] -> losses = []\n    model.eval()  # … in evaluation mode, without dropout
model.eval() -> # … runs in training mode
model.train() -> # … stays in evaluation mode
""")


@train_epoch.each("""
one epoch -> 1.0, 0.3, 1
two epochs, with an evaluation between them -> 1.0, 0.3, 2
long gradients -> 4.0, 0.05, 2
""")
def _(draw, scale, clip, epochs):
    tables = [scale * table for table in speaker(draw)]
    training = [padded_targets(draw, draw.shuffled([1, 2, 5])) for _ in range(3)]
    checking = [padded_targets(draw, [1]), padded_targets(draw, [6, 4, 5])]
    rates = [0.1 * n for n in range(1, 9)]
    return tables, training, checking, rates, clip, epochs


# ---- another schedule --------------------------------------------------------


def part(n, w, t):
    """The share of the steps after the warm-up that has been done."""
    return (n - w) / max(t - w, 1)


def wave(x, p, f):
    """From peak to floor, by the square of the cosine of the half angle."""
    return f + (p - f) * math.cos(math.pi * x / 2) ** 2


def undecided(x, p, f):
    """Here nobody can say whether there is no floor, or one that only cuts."""
    missing = wave(x, p, 0)
    return missing if missing > f else wave(x, p, f)


@exercise(
    "ch07-schedule",
    "expected another rate: see the three cases of the statement",
    symptoms=lambda result, step, *_: asserts(result) if step < 1 else None,
)
def warm_cosine(step, warmup, total, peak, floor=0.0):
    """Learning rate of a step: a straight line up, half a cosine down."""
    from math import cos, pi

    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    x = (step - warmup) / max(total - warmup, 1)  # the share of the way down
    if step <= warmup:
        return peak * step / warmup
    if step > total:
        return floor
    return (peak - floor) * (1 + cos(pi * x)) / 2 + floor


warm_cosine.instead(r"""
if step <= warmup:
    if step >= total:\n        return floor\n    if step <= warmup:
        # this step is still the top of the climb
    if step:  # the climb goes on after the warm-up
x = -> warmup, total = max(warmup, 1), max(total, 1)\n    x =
        # no warm-up became one of 1 step
peak * step / warmup
    peak * (step - 1) / warmup  # the climb begins one step late
    peak * step / (warmup + 1)  # the climb ends one step late
    peak * (step + 1) / warmup  # the climb is one step early
    floor + (peak - floor) * step / warmup  # the climb begins at 0, not at `floor`
    max(floor, peak * step / warmup)  # the floor is where the rate ends
    peak  # no climb: the rate is at the peak at once
    wave(step / total, peak, floor)  # no climb: the cosine begins at step 1
    wave(step / warmup, 0, peak)  # the climb is straight, not a cosine
    wave(x, peak, floor)  # the cosine falls before the climb is over
    peak * step / total  # the climb ends at step `total`, too late
    step / warmup  # the climb goes up to 1, not to the peak
(step - warmup) / max(total - warmup, 1)
    step / total  # the share is that of all steps, the warm-up included
    step / max(total - warmup, 1)  # the steps of the warm-up do not count in the share
    (step - warmup) / total  # the share is divided by `total`, warm-up included
    part(step - 1, warmup, total)  # the cosine begins one step late
    part(step + 1, warmup, total)  # the cosine begins one step early
(peak - floor) * (1 + cos(pi * x)) / 2 + floor
    undecided(x, peak, floor)  # the floor is missing, or it only cuts the wave off
    max(floor, wave(x, peak, 0))  # the floor cuts the wave off before its end
    wave(x, peak, 0)  # the floor is missing
    wave(x, peak - floor, 0)  # the wave has the right height, but ends at 0
    wave(x, peak + floor, floor)  # the floor is added on top of the peak
    wave(x, floor, peak)  # this climbs from the floor to the peak
    floor + (peak - floor) * math.cos(math.pi * x / 2)
        # half a wave goes from 0 to π, not to π/2
    wave(2 * x, peak, floor)  # half a wave goes from 0 to π, not to 2π
    wave(x / math.pi, peak, floor)  # π is missing in the cosine
    wave(180 / math.pi * x, peak, floor)  # the cosine is taken of degrees
    wave(x, 2 * peak - floor, floor)  # 1 + cos is 2 at first: it is not halved
    wave(x, peak, 2 * floor - peak)  # a cosine alone becomes negative
    peak + (floor - peak) * x  # this is a straight line down, no cosine
    peak  # after the warm-up the rate stays at the peak
    floor  # after the warm-up the rate drops to the floor at once
return floor
    return wave(x, peak, floor)  # after `total` the cosine climbs again
    return 0.0  # after `total` the rate is the floor, not 0
    return peak  # after `total` the rate is the floor, not the peak
    return peak + (floor - peak) * x  # after `total` the straight line goes on
if step <= warmup
    share = (step - warmup) / (total - warmup)\n    if step <= warmup
        # … ZeroDivisionError
raise ValueError(f"steps are counted from 1, got {step}") -> raise AssertionError
        # … an assert is gone
""")


# step, warm-up and total
@warm_cosine.each("""
a climb that is below the floor at first -> "1, w, w + 7 * r"
the top of the climb -> "w, w, w + 7 * r"
on the way down -> "w + 2 * r, w, w + 7 * r"
so far down that the wave is below the floor -> "w + 6 * r, w, w + 7 * r"
after the end -> "w + 9 * r, w, w + 7 * r"
no warm-up -> "3, 0, 7 * r"
nothing but warm-up, and its last step -> "w, w, w"
nothing but warm-up, and the step after it -> "w + 1, w, w"
""")
def _(draw, steps):
    peak = draw.number(1.0, 3.0)
    floor = peak * draw.number(0.2, 0.4)
    steps = Function(f"({steps})", "w, r")
    return *steps(draw.integer(6, 20), draw.integer(3, 6)), peak, floor


@warm_cosine.case(
    "one step of fall", hint="after the climb the next step is `floor` already"
)
def _(draw):
    w = draw.integer(4, 9)
    return w + 1, w, w + 1, draw.number(0.5, 3.0), 0.1


warm_cosine.each("""
in the climb: a quarter of the peak at step 1 of 4 -> 1, 4, 12, 1.0, 0.2
half way down: 0.6 at step 8 -> 8, 4, 12, 1.0, 0.2  # 0.6 is the middle of 1.0 and 0.2
""")(lambda draw, *given: given)
warm_cosine.case(
    "without a floor it ends at 0", lambda draw: (12, 3, 11, draw.number(0.5, 3.0))
)
warm_cosine.case(
    "a step below 1: refused",
    lambda draw: (draw.integer(-2, 0), 4, 12, 1.0, 0.2),
    hint="there is no such step: raise a ValueError",
)

# ---- smoothing with forbidden symbols ----------------------------------------


def infinite(rows, *_):
    if isinstance(rows, Tensor) and not rows.isfinite().all():
        return "NaN or infinity: what if nobody is left to share with?"


DEAD = "where the target is forbidden the whole row is 0; yours"
TWO = "two cases are missing, nobody to share with and a forbidden target: yours"


@exercise(
    "ch07-smoothing",
    "expected 1 − ε at the right symbol, an equal share of ε at each symbol that is "
    "neither right nor forbidden, 0 elsewhere",
    symptoms=infinite,
)
def smoothed(target, size, smoothing, forbidden):
    """Smoothed targets (b, t, v); no share for forbidden symbols."""
    right = torch.nn.functional.one_hot(target, size).double()
    banned = torch.tensor([symbol in forbidden for symbol in range(size)])
    others = size - 1 - len(forbidden)

    def others_get(count):
        return (1 - right) * ~banned * smoothing / max(count, 1)

    asks = right * (1 - smoothing if others > 0 else 1.0)
    rows = asks + others_get(others)
    return torch.where(banned[target][..., None], 0.0, rows).float()


smoothed.instead(r"""
1 - smoothing if others > 0 else 1.0
    1 - smoothing  # nobody is left to share with, and yet ε is lost
    1.0  # the right symbol gives nothing away
size - 1 - len(forbidden)
    size  # ε is shared by all v symbols: who should get none?
    size - 1  # ε is shared by v − 1 symbols; the forbidden ones get none
    size - 2  # ε is shared by v − 2 symbols: how many are forbidden here?
    size - len(forbidden)  # the right symbol is counted among those that share
    size - 2 - len(forbidden)  # a forbidden symbol too many is counted
max(count, 1) -> 1  # nothing is shared out: each of the others gets ε
right =
    smoothing = 1 - smoothing\n    right =
        # the right symbol gets ε and the others share 1 − ε
    smoothing = 0\n    right =  # this is the target without smoothing
    forbidden = forbidden[:1]\n    right =  # only the first forbidden id is looked at
    forbidden = [0]\n    right =  # only the padding, 0, is forbidden
    forbidden = range(max(forbidden, default=-1) + 1)\n    right =
        # all ids up to the largest are forbidden
    forbidden = range(len(forbidden))\n    right =
        # as many ids are forbidden, but the first ones
    forbidden = []\n    right =  # `forbidden` is not used
* ~banned -> # the forbidden symbols get a share
0.0, rows
    asks, rows  # {DEAD} asks for the forbidden symbol
    rows, rows  # {DEAD} asks for the forbidden symbol, and shares out
    asks + others_get(size - len(forbidden)), rows
        # {DEAD} asks for the forbidden symbol, and shares ε among the allowed
    others_get(others), rows  # {DEAD} shares out ε
    others_get(size - len(forbidden)), rows  # {DEAD} shares ε among the allowed
.float()
    .float().mT  # the symbols stand on the wrong axis
    .float().flatten(0, 1)  # batch and places should stay two axes
    .float()[~banned[target]]  # rows of forbidden targets are left out
size - 1 - len(forbidden) -> size - len(forbidden)
1 - smoothing if -> 1 - smoothing + smoothing / others if
        # the right symbol gets a share on top of 1 − ε
size - 1 - len(forbidden) -> size
1 - smoothing if -> 1 - smoothing + smoothing / others if
        # the right symbol gets a share on top of its own, as in PyTorch
size - 1 - len(forbidden) -> size
1 - smoothing if -> 1 - smoothing + smoothing / others if
* ~banned ->
0.0, rows -> rows, rows  # all symbols share ε, as in PyTorch, the forbidden ones too
* ~banned ->
0.0, rows -> rows, rows  # forbidden symbols get a share, and no row is 0
1 - smoothing if others > 0 else 1.0 -> 1 - smoothing
0.0, rows -> asks, rows  # {TWO} asks for the forbidden symbol
1 - smoothing if others > 0 else 1.0 -> 1 - smoothing
0.0, rows -> asks + others_get(size - len(forbidden)), rows
        # {TWO} asks for the forbidden symbol, and shares ε among the allowed
1 - smoothing if others > 0 else 1.0 -> 1 - smoothing
0.0, rows -> others_get(size - len(forbidden)), rows  # {TWO} shares ε among the allowed
0.0, rows -> asks + (others > 0) * others_get(others), rows
        # … asks for the forbidden symbol
1 - smoothing if others > 0 else 1.0 -> 1 - smoothing
0.0, rows -> asks + (others > 0) * others_get(others), rows  # … two cases are missing
""")


@smoothed.case("the example: six symbols, two of them forbidden")
def _(draw):
    return torch.tensor([[3, 1]]), 6, 0.3, [0, 1]


@smoothed.case("forbidden ids anywhere, in any order")
def _(draw):
    v = draw.integer(8, 11)
    first, second, third, *others = draw.shuffled(range(1, v - 1))
    target = draw.shuffled([third, first, 0, *others[:2], v - 1])
    smoothing = draw.number(0.1, 0.4)
    return torch.tensor(target).view(2, 3), v, smoothing, [first, second, third]


@smoothed.case("nothing is forbidden: every other symbol shares")
def _(draw):
    v = draw.integer(4, 7)
    return torch.tensor([draw.shuffled(range(v))]), v, draw.number(0.1, 0.4), []


@smoothed.case("nobody is left to share: the right symbol keeps 1")
def _(draw):
    v = draw.integer(3, 5)
    right, *forbidden = draw.shuffled(range(v))
    return torch.tensor([[right, *forbidden]]), v, draw.number(0.1, 0.4), forbidden


# ---- batches by tokens -------------------------------------------------------


def misplaced(result, lengths, tokens):
    """What can be seen of groups that no known mistake makes."""
    longest = max(lengths, default=0)
    if longest > tokens and not isinstance(result, Raised):
        return (
            f"a sequence of {longest} does not fit into {tokens} positions: refuse it"
        )
    if longest > tokens:
        named = str(longest) in result.message and str(tokens) in result.message
        if result.kind == "ValueError" and not named:
            return f"the message should hold {longest}, the length, and {tokens}"
        return asserts(result)
    if isinstance(result, Raised) and longest == tokens:
        return f"a sequence of {longest} does fit into {tokens} positions"
    result = [list(g) for g in result]
    if result in [
        wrong(lengths, tokens) for wrong in group_by_tokens.mistakes.values()
    ]:
        return None
    missing = set(range(len(lengths))) - {i for g in result for i in g}
    if missing:
        return f"sequence {min(missing)} is in no group: every one is to be placed once"
    for g in result:
        if len(g) * max(lengths[i] for i in g) > tokens:
            return (
                f"a group takes more than {tokens} positions: as many rows as it has "
                "sequences, each as wide as the longest"
            )
    if result != group_by_tokens.right(lengths, tokens):
        return "the groups fit, but only a sequence that does not may open another one"


@exercise(
    "ch07-token-batches",
    "expected a list of groups, each of them a list of indices",
    symptoms=misplaced,
)
def group_by_tokens(lengths, tokens):
    """Groups of indices, each of at most `tokens` positions, padding included."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    groups = []
    for index in order:
        length = lengths[index]  # the longest so far
        if length > tokens:
            raise ValueError(f"{length} > {tokens}")
        if not groups or (len(groups[-1]) + 1) * length > tokens:
            groups.append([])
        groups[-1].append(index)
    return groups


group_by_tokens.instead(r"""
(len(groups[-1]) + 1) * length > tokens
    sum(lengths[i] for i in groups[-1]) + length > tokens
        # the sum of the lengths is limited, but padding takes positions too
    (len(groups[-1]) + 1) * length >= tokens  # exactly `tokens` positions fit
    len(groups[-1]) * length > tokens
        # the newcomer is not counted: a group holds one sequence too many
    (len(groups[-1]) + 1) * lengths[groups[-1][0]] > tokens
        # the rectangle is as wide as its longest sequence, not as its shortest
    len(groups[-1]) >= tokens  # the number of sequences is limited, not of positions
    (len(groups[-1]) + 1) * lengths[groups[-1][-1]] > tokens
        # the newcomer is the longest: the rectangle is as wide as it
    len(groups[-1]) * lengths[groups[-1][-1]] > tokens
        # this is the rectangle before the newcomer
    True  # each group holds one sequence
key=lengths.__getitem__
    key=str  # sequences are not sorted by length
    key=lambda i: -lengths[i]  # the longest comes first
    key=lambda i: (lengths[i], -i)  # sequences of one length have changed places
return groups
    return [[lengths[i] for i in g] for g in groups]  # these are lengths, not indices
    return [[order.index(i) for i in g] for g in groups]
        # these are places in the sorted order, no indices
    return [[i + 1 for i in g] for g in groups]  # indices are counted from 0
    return groups[:-1]  # the last group is missing
    return groups or [[]]  # no sequences, no groups
    return [[], *groups]  # an empty group stands in front
    return [*groups, []]  # an empty group stands at the end
    return [i for g in groups for i in g]  # this is one list for all groups
    return groups[::-1]  # the groups are not in the order of their opening
    return [g[::-1] for g in groups]  # each group begins with its longest
    return [sorted(g) for g in groups]  # within a group, length decides, not the index
append(index) -> append(lengths.index(length))  # … is in no group
if length > tokens -> if length >= tokens  # … does fit into
not groups or -> not groups or lengths[groups[-1][0]] != length or
        # … the groups fit, but only a sequence that does not
groups = [] -> groups = []\n    lengths.sort()  # … changes its argument `lengths`
{length} > {tokens} -> many tokens  # … the message should hold
""")

group_by_tokens.case(
    "the example: six sequences, twelve positions",
    lambda draw: ([9, 3, 2, 5, 3, 6], 12),
)
group_by_tokens.each("""
sequences of one length keep their order -> [2, 2, 2, 2, 4, 4, 4, 4], 8
many short ones, few long ones -> [1, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8], 16
lengths that grow within a group -> [2, 2, 3, 3, 3, 4, 5, 5, 5, 9], 10
no sequence at all -> [], 10
a sequence that fills a group by itself -> [3, 5, 16, 2], 16
a sequence that is too long: refused -> [3, 5, 17], 16
""")(lambda draw, lengths, tokens: (draw.shuffled(lengths), tokens))


# ---- accumulation ------------------------------------------------------------


def not_a_number(result, *_):
    if isinstance(result, Tensor) and result.isnan().any():
        return "the result holds NaN: what is 0 times the loss of an empty batch?"


@exercise(
    "ch07-accumulate",
    "expected the gradients of the batches, each times its share of tokens",
    through=accumulated,
    broken={
        "moved": "the parameter has changed: only its gradient is wanted",
        "joined": "model_loss got something that is none of the batches, one at a "
        "time; joined they would not fit into memory",
        "attached": "the result still hangs on the graphs of all losses",
        "together": "losses were in memory at once: when do you go backward?",
    },
    symptoms=not_a_number,
)
def accumulated_gradient(model_loss, parameter, batches, counts):
    """Gradient of the mean over all tokens, from one batch at a time."""
    total = torch.zeros_like(parameter, requires_grad=False)
    real = [i for i, count in enumerate(counts) if count > 0]
    for i in real:
        loss = model_loss(parameter, batches[i])
        [gradient] = torch.autograd.grad(loss, [parameter])
        total += gradient * counts[i] / sum(counts)
    return total


accumulated_gradient.instead(r"""
gradient * counts[i] / sum(counts)
    gradient / len(real)
        # this is the mean of the gradients: a batch with more tokens counts more
    gradient / len(counts)
        # each batch weighs the same here, also one without a real token
    gradient  # the gradients are added up as they are
    gradient * counts[i]  # this is count times gradient: by what is the sum divided?
    gradient * counts[i] / len(counts)
        # divided by the number of batches, not by that of all tokens
    gradient * batches[i].numel() / sum(batches[j].numel() for j in real)
        # padding is counted
    gradient * batches[i].numel() / sum(b.numel() for b in batches)
        # padding is counted, and that of batches without a real token too
    gradient * len(batches[i]) / sum(len(batches[j]) for j in real)
        # sequences are counted, not tokens
    gradient / counts[i] / sum(1 / counts[j] for j in real)
        # a batch with more tokens counts less
    gradient * counts[i] / sum(counts) * (i == real[-1])
        # only the gradient of the last batch is left: was it cleared in between?
    gradient * (i == real[-1])  # this is the gradient of the last batch alone
    gradient * (i == real[0])  # this is the gradient of the first batch alone
    -gradient * counts[i] / sum(counts)
        # the sign: wanted is the gradient, not the step against it
return total
    return total if parameter.grad is None else total + parameter.grad
        # the old gradient is in the result
    return parameter.grad.clone()  # this is the old gradient, from `parameter.grad`
[gradient] = torch.autograd.grad(loss, [parameter]) -> gradient = loss.detach()
        # this is the mean loss; wanted is its gradient
gradient * counts[i] / sum(counts) -> gradient / len(real)
return total -> return total if parameter.grad is None else total + parameter.grad
        # the old gradient is there, and batches count alike
gradient * counts[i] / sum(counts) -> gradient
return total -> return total if parameter.grad is None else total + parameter.grad
        # the old gradient is there, and no batch is weighed
[gradient] = torch.autograd.grad(loss, [parameter])\n        total += gradient *
        counts[i] / sum(counts) -> total = total + loss * (counts[i] / sum(counts))
return total -> return torch.autograd.grad(total.sum(), parameter)[0]
        # … losses were in memory at once
model_loss(parameter, -> model_loss(parameter.detach(),  # … does not require grad
batches[i]) -> torch.cat([one.flatten() for one in batches]))  # … none of the batches
""")

SQUARES = Function("((batch - parameter) ** 2).mean()", "parameter, batch")
# The mean over tokens: what is 0 is padding.
SINES = Function(
    "((batch != 0) * (batch[..., None] * parameter.flatten()).sin().sum(-1)).sum() / "
    "(batch != 0).sum()",
    "parameter, batch",
)


def padded(draw, batches=([4, 1], [2, 1, 1], [1, 0])):
    """Batches, each told by the lengths of its rows, and how many tokens they have."""
    tensors, batches = [], draw.shuffled(batches)
    for lengths in batches:
        tokens = draw.uniform(0.5, 3.0, len(lengths), max(1, *lengths))
        here = torch.arange(tokens.shape[1]) < torch.tensor(lengths)[:, None]
        tensors.append(tokens * here)
    return tensors, [sum(lengths) for lengths in batches]


@accumulated_gradient.case("the example: three tokens and one")
def _(draw):
    batches = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0])]
    return SQUARES, torch.tensor(0.0), batches, [3, 1]


@accumulated_gradient.case("batches with padding")
@accumulated_gradient.case("in double precision", dtype=torch.float64)
def _(draw):
    return SINES, draw.normal(3), *padded(draw)


@accumulated_gradient.case("an old gradient stands in parameter.grad")
def _(draw):
    return SINES, draw.normal(3), *padded(draw), draw.normal(3)


@accumulated_gradient.case("batches without a real token")
def _(draw):
    return SINES, draw.normal(2, 2), *padded(draw, ([0, 0], [2, 1, 1], [3], [0, 0]))


@accumulated_gradient.case("one loss in memory at a time, and none afterwards")
def _(draw):
    return SINES, draw.normal(3), *padded(draw), None, True
