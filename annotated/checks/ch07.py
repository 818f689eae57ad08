"""The exercises of chapter 07; ``__init__.py`` says how one is written."""

import math
import warnings
from functools import partial
from itertools import combinations

import torch
from torch import Tensor, nn

from annotated.checks import Exercise, Function, Raised
from annotated.checks.material import accumulated, looped, steps_taken


def asserts(result):
    """The symptom of an `assert` where an error is asked for."""
    if isinstance(result, Raised) and result.kind == "AssertionError":
        return "an assert is gone when Python runs with -O: raise a ValueError"


def each(make, variants):
    """A mistake for every variant, with its hint."""
    return {hint: make(variant) for hint, variant in variants.items()}


# ---- a training step ---------------------------------------------------------


def next_symbols(model, source, target, shift=1, reads=-1):
    """Logits, and the labels that they are to say."""
    size = target.shape[1]
    logits = model(source, target[:, : size + reads])
    labels = target[:, shift:][:, : logits.shape[1]]
    return logits[:, : labels.shape[1]], labels


def per_token(logits, labels):
    losses = nn.functional.cross_entropy(logits.mT, labels, reduction="none")
    return losses[labels != 0].mean()


def everywhere(logits, labels):
    return nn.functional.cross_entropy(logits.mT, labels)


def per_place(logits, labels):
    losses = nn.functional.cross_entropy(logits.mT, labels, reduction="none")
    return (losses * (labels != 0)).sum() / labels.numel()


def per_sentence(logits, labels):
    losses = nn.functional.cross_entropy(logits.mT, labels, reduction="none")
    real = labels != 0
    return ((losses * real).sum(dim=1) / real.sum(dim=1)).mean()


def summed(logits, labels):
    return per_token(logits, labels) * (labels != 0).sum()


ORDER = ("clear", "backward", "clip", "step", "schedule")


def step(loss=per_token, order=ORDER, clip=nn.utils.clip_grad_norm_, **shift):
    def training_step(model, source, target, optimizer, schedule, most):
        value = loss(*next_symbols(model, source, target, **shift))
        parts = {
            "clear": optimizer.zero_grad,
            "backward": value.backward,
            "clip": lambda: clip(model.parameters(), most),
            "step": optimizer.step,
            "schedule": schedule.step,
        }
        with warnings.catch_warnings():  # some mistakes step in the wrong order
            warnings.simplefilter("ignore")
            for name in order:
                parts[name]()
        return value.item()

    return training_step


def without(part):
    return tuple(name for name in ORDER if name != part)


def by_itself(parameters, most):
    for parameter in parameters:
        nn.utils.clip_grad_norm_([parameter], most)


ORDERS_OF_A_STEP = {
    "gradients that were there before are in your step": without("clear"),
    "cleared only at the end: what waited there at first is in the first step": (
        "backward", "clip", "step", "clear", "schedule",
    ),
    "the parameters stay where they are: is there a gradient when you step?": (
        "backward", "clear", "clip", "step", "schedule",
    ),
    "a gradient longer than `clip` gets through": without("clip"),
    "the rate stays where it is": without("schedule"),
    "each step has the rate of the next one": (
        "clear", "backward", "clip", "schedule", "step",
    ),
}  # fmt: skip


def no_step(result, *_):
    """The symptom of a result that is no number, or of a model in another mode."""
    if result in ("a step in evaluation mode", "left in evaluation mode"):
        return "the model is put into evaluation mode: a step wants its dropout"
    if result is None:
        return "return the loss, a number"
    if isinstance(result, Tensor) and result.requires_grad:
        return "the loss you return keeps its whole graph in memory: return loss.item()"
    return None


def without_dropout(result, *_):
    """The symptom of a model that stays in evaluation mode."""
    if result == "a step in evaluation mode":
        return "a step is taken in evaluation mode, without dropout: back to train()"
    return None


training = Exercise(
    "ch07-training-step",
    right=step(),
    through=steps_taken,
    hint="the loss, or the parameters after the step, are other ones",
    symptoms=no_step,
    mistakes={
        **each(lambda order: step(order=order), ORDERS_OF_A_STEP),
        "padding is counted, in the sum and in the number": step(everywhere),
        "the sum is divided by all positions, padding too": step(per_place),
        "this is the mean of the sentences' means, not of the tokens": (
            step(per_sentence)
        ),
        "this is the sum, not the mean": step(summed),
        "the model reads the very symbol that it should say": step(shift=0, reads=0),
        "the labels are those of the position before": step(shift=0),
        "each parameter is shortened by itself": step(clip=by_itself),
        "each number is cut off: the direction changes": (
            step(clip=nn.utils.clip_grad_value_)
        ),
    },
)


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


@training.case("one step, no padding, nothing to clip")
def _(draw):
    batches = [padded_targets(draw, [4, 4])]
    return speaker(draw), batches, [0.1, 0.2], 100.0


@training.case("sentences of several lengths")
def _(draw):
    batches = [padded_targets(draw, draw.shuffled([1, 3, 6]))]
    return speaker(draw), batches, [0.3, 0.1], 100.0


@training.case("a long gradient")
def _(draw):
    batches = [padded_targets(draw, [5, 2])]
    return [6 * table for table in speaker(draw)], batches, [0.5, 0.1], 0.05


@training.case("four steps, and a rate that climbs")
def _(draw):
    sets = [draw.shuffled([1, 2, 5]) for _ in range(4)]
    batches = [padded_targets(draw, lengths) for lengths in sets]
    return speaker(draw), batches, [0.1, 0.2, 0.3, 0.4, 0.5], 0.2


# ---- find the fault ----------------------------------------------------------


def real_tokens(target):
    return (target[:, 1:] != 0).sum().item()


def epoch(
    late_schedule=False,
    early_clip=False,
    leak=False,
    weight=real_tokens,
    clear_first=False,
):
    """The loop of the exercise, with those of its faults that are still there."""

    def train_epoch(model, training, checking, optimizer, schedule, clip):
        losses = []
        for source, target in training:
            value = per_token(*next_symbols(model, source, target))
            if clear_first:
                optimizer.zero_grad()
            if early_clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            value.backward()
            if not early_clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if not clear_first:
                optimizer.zero_grad()
            if not late_schedule:
                schedule.step()
            losses.append(value.item())
        if late_schedule:
            schedule.step()
        total = count = 0
        for source, target in checking:
            value = per_token(*next_symbols(model, source, target))
            if leak:
                value.backward()
            tokens = weight(target)
            total, count = total + value.item() * tokens, count + tokens
        return losses, total / count

    return train_epoch


STILL_THERE = {
    "late_schedule": "the rate does not move within an epoch",
    "early_clip": "a gradient longer than `clip` gets through",
    "leak": "the next epoch begins with something that the evaluation left behind",
}
CLEARED_LATER = {
    **STILL_THERE,
    "leak": "the evaluation goes backward: its gradients are left until the next step",
}
WEIGHTS = {
    "the checking loss depends on how tokens are split into batches": lambda target: 1,
    "the checking loss weighs a batch by its sentences, not by its tokens": len,
    "the checking loss counts the start symbol, which is never said": (
        lambda target: (target != 0).sum().item()
    ),
}


def remaining():
    """Every set of faults that is not empty, with its hint: the smaller ones first."""
    names = [*STILL_THERE, *WEIGHTS]
    for count in range(1, len(STILL_THERE) + 2):
        for chosen in combinations(names, count):
            weights = [WEIGHTS[name] for name in chosen if name in WEIGHTS]
            if len(weights) > 1:
                continue
            faults = [name for name in chosen if name in STILL_THERE]
            how = {"weight": weights[0]} if weights else {}
            how |= dict.fromkeys(faults, True)
            hint = "; and ".join(STILL_THERE.get(name, name) for name in chosen)
            yield hint, epoch(**how)
            if "leak" in faults:  # the steps are the right ones, if they clear first
                hint = "; and ".join(CLEARED_LATER.get(name, name) for name in chosen)
                yield hint, epoch(**how, clear_first=True)


repaired = Exercise(
    "ch07-repair-loop",
    right=epoch(),
    through=looped,
    symptoms=without_dropout,
    hint="something else has changed: repair the faults, and leave the rest as it is",
    mistakes=dict(remaining()),
)


def two_sets(draw, scale=1.0, clip=0.3):
    tables = [scale * table for table in speaker(draw)]
    training = [padded_targets(draw, draw.shuffled([1, 2, 5])) for _ in range(3)]
    checking = [padded_targets(draw, [1]), padded_targets(draw, [6, 4, 5])]
    return tables, training, checking, [0.1 * n for n in range(1, 9)], clip


@repaired.case("one epoch")
def _(draw):
    return *two_sets(draw), 1


@repaired.case("two epochs, with an evaluation between them")
def _(draw):
    return *two_sets(draw), 2


@repaired.case("long gradients")
def _(draw):
    return *two_sets(draw, 4.0, 0.05), 2


# ---- another schedule --------------------------------------------------------


def part(n, w, t):
    """The share of the steps after the warm-up that has been done."""
    return (n - w) / max(t - w, 1)


def wave(x, p, f):
    """From peak to floor, by the square of the cosine of the half angle."""
    return f + (p - f) * math.cos(math.pi * x / 2) ** 2


def schedule(
    climb=lambda n, w, t, p, f: p * n / w,
    share=part,
    fall=wave,
    end=lambda x, p, f: f,
):
    def rate(step, warmup, total, peak, floor=0.0):
        if step < 1:
            raise ValueError
        if step <= warmup:
            return climb(step, warmup, total, peak, floor)
        if step > total:
            return end(part(step, warmup, total), peak, floor)
        return fall(share(step, warmup, total), peak, floor)

    return rate


warm_cosine = schedule()


def floor_too_early(step, warmup, total, peak, floor=0.0):
    return floor if step >= total else warm_cosine(step, warmup, total, peak, floor)


def undecided(x, p, f):
    """Here nobody can say whether there is no floor, or one that only cuts."""
    missing = wave(x, p, 0)
    return missing if missing > f else wave(x, p, f)


# step n, warm-up w, total t, peak p, floor f; x, the share of the fall
CLIMBS = {
    "the climb begins one step late": lambda n, w, t, p, f: p * (n - 1) / w,
    "the climb ends one step late": lambda n, w, t, p, f: p * n / (w + 1),
    "the climb is one step early": lambda n, w, t, p, f: p * (n + 1) / w,
    "the climb begins at 0, not at `floor`": lambda n, w, t, p, f: f + (p - f) * n / w,
    "the floor is where the rate ends": lambda n, w, t, p, f: max(f, p * n / w),
    "no climb: the rate is at the peak at once": lambda n, w, t, p, f: p,
    "no climb: the cosine begins at step 1": lambda n, w, t, p, f: wave(n / t, p, f),
    "the climb is straight, not a cosine": lambda n, w, t, p, f: wave(n / w, 0, p),
    "the cosine falls before the climb is over": (
        lambda n, w, t, p, f: wave(part(n, w, t), p, f)
    ),
    "the climb ends at step `total`, too late": lambda n, w, t, p, f: p * n / t,
    "the climb goes up to 1, not to the peak": lambda n, w, t, p, f: n / w,
}
SHARES = {
    "the share is that of all steps, the warm-up included": lambda n, w, t: n / t,
    "the steps of the warm-up do not count in the share": lambda n, w, t: n / (t - w),
    "the share is divided by `total`, warm-up included": lambda n, w, t: (n - w) / t,
    "the cosine begins one step late": lambda n, w, t: part(n - 1, w, t),
    "the cosine begins one step early": lambda n, w, t: part(n + 1, w, t),
}
FALLS = {
    "the floor is missing, or it only cuts the wave off": undecided,
    "the floor cuts the wave off before its end": lambda x, p, f: max(f, wave(x, p, 0)),
    "the floor is missing": lambda x, p, f: wave(x, p, 0),
    "the wave has the right height, but ends at 0": lambda x, p, f: wave(x, p - f, 0),
    "the floor is added on top of the peak": lambda x, p, f: wave(x, p + f, f),
    "this climbs from the floor to the peak": lambda x, p, f: wave(x, f, p),
    "half a wave goes from 0 to π, not to π/2": (
        lambda x, p, f: f + (p - f) * math.cos(math.pi * x / 2)
    ),
    "half a wave goes from 0 to π, not to 2π": lambda x, p, f: wave(2 * x, p, f),
    "π is missing in the cosine": lambda x, p, f: wave(x / math.pi, p, f),
    "the cosine is taken of degrees": lambda x, p, f: wave(180 / math.pi * x, p, f),
    "1 + cos is 2 at first: it is not halved": lambda x, p, f: wave(x, 2 * p - f, f),
    "a cosine alone becomes negative": lambda x, p, f: wave(x, p, 2 * f - p),
    "this is a straight line down, no cosine": lambda x, p, f: p + (f - p) * x,
    "after the warm-up the rate stays at the peak": lambda x, p, f: p,
    "after the warm-up the rate drops to the floor at once": lambda x, p, f: f,
}
ENDS = {
    "after `total` the cosine climbs again": wave,
    "after `total` the rate is the floor, not 0": lambda x, p, f: 0.0,
    "after `total` the rate is the floor, not the peak": lambda x, p, f: p,
    "after `total` the straight line goes on": lambda x, p, f: p + (f - p) * x,
}

rates = Exercise(
    "ch07-schedule",
    right=warm_cosine,
    hint="expected another rate: see the three cases of the statement",
    symptoms=lambda result, step, *_: asserts(result) if step < 1 else None,
    mistakes={
        "this step is still the top of the climb": floor_too_early,
        "no warm-up became one of 1 step": (
            lambda n, w, t, p, f=0.0: warm_cosine(n, max(w, 1), max(t, 1), p, f)
        ),
        **each(lambda climb: schedule(climb), CLIMBS),
        **each(lambda share: schedule(share=share), SHARES),
        **each(lambda fall: schedule(fall=fall), FALLS),
        **each(lambda end: schedule(end=end), ENDS),
        "the climb goes on after the warm-up": lambda n, w, t, p, f=0.0: p * n / w,
    },
)


@rates.case("in the climb: a quarter of the peak at step 1 of 4")
def _(draw):
    return 1, 4, 12, 1.0, 0.2


@rates.case("half way down: 0.6 at step 8", hint="0.6 is the middle of 1.0 and 0.2")
def _(draw):
    return 8, 4, 12, 1.0, 0.2


PLACES = {
    "a climb that is below the floor at first": lambda w, rest: 1,
    "the top of the climb": lambda w, rest: w,
    "on the way down": lambda w, rest: w + 2 * rest // 7,
    "so far down that the wave is below the floor": lambda w, rest: w + 6 * rest // 7,
    "after the end": lambda w, rest: w + 9 * rest // 7,
    "no warm-up": lambda w, rest: 3,
}

for line, place in PLACES.items():

    @rates.case(line)
    def _(draw, line=line, place=place):
        w, rest = draw.integer(6, 20), 7 * draw.integer(3, 6)
        peak = draw.number(1.0, 3.0)
        n, w = place(w, rest), 0 if line == "no warm-up" else w
        return n, w, w + rest, peak, peak * draw.number(0.2, 0.4)


@rates.case("one step of fall", hint="after the climb the next step is `floor` already")
def _(draw):
    w = draw.integer(4, 9)
    return w + 1, w, w + 1, draw.number(0.5, 3.0), 0.1


@rates.case("nothing but warm-up, and its last step")
def _(draw):
    w = draw.integer(4, 9)
    return w, w, w, draw.number(0.5, 3.0), 0.1


@rates.case("nothing but warm-up, and the step after it")
def _(draw):
    w = draw.integer(4, 9)
    return w + 1, w, w, 1.0, draw.number(0.1, 0.5)


@rates.case("without a floor it ends at 0")
def _(draw):
    return 12, 3, 11, draw.number(0.5, 3.0)


@rates.case("a step below 1: refused", hint="there is no such step: raise a ValueError")
def _(draw):
    return draw.integer(-2, 0), 4, 12, 1.0, 0.2


# ---- smoothing with forbidden symbols ----------------------------------------


def smooth(
    target,
    size,
    smoothing,
    forbidden,
    *,
    among=lambda v, k: v - 1 - k,  # how many share, of v symbols, k of them forbidden
    own=lambda e, share: 1 - e,  # what the right symbol gets
    alone=True,  # where nobody is left to share with, the right symbol keeps 1
    closed=True,  # forbidden symbols get no share
    dead=lambda asks, few, many: 0 * asks,  # the rows of forbidden targets
):
    right = torch.nn.functional.one_hot(target, size).double()
    banned = torch.tensor([symbol in forbidden for symbol in range(size)])

    def shared(count):
        return (1 - right) * ~(banned & closed) * smoothing / max(count, 1)

    count, allowed = among(size, len(forbidden)), size - len(forbidden)
    kept = own(smoothing, smoothing / max(count, 1))
    asks = right * (1.0 if alone and count <= 0 else kept)
    rows = dead(asks, shared(count), shared(allowed))
    return torch.where(banned[target][..., None], rows, asks + shared(count)).float()


def forbidding(choose):
    """Other ids are forbidden than should be."""
    return lambda t, v, e, forbidden: smooth(t, v, e, choose(forbidden))


AMONG = {
    "ε is shared by all v symbols: who should get none?": lambda v, k: v,
    "ε is shared by v − 1 symbols; the forbidden ones get none": lambda v, k: v - 1,
    "ε is shared by v − 2 symbols: how many are forbidden here?": lambda v, k: v - 2,
    "the right symbol is counted among those that share": lambda v, k: v - k,
    "a forbidden symbol too many is counted": lambda v, k: v - 2 - k,
    "nothing is shared out: each of the others gets ε": lambda v, k: 1,
}
DEAD = "where the target is forbidden the whole row is 0; yours "
ALONE = "two cases are missing, nobody to share with and a forbidden target: yours "
DEADS = {
    "asks for the forbidden symbol": lambda asks, few, many: asks,
    "asks for the forbidden symbol, and shares out": lambda asks, few, many: asks + few,
    "asks for the forbidden symbol, and shares ε among the allowed": (
        lambda asks, few, many: asks + many
    ),
    "shares out ε": lambda asks, few, many: few,
    "shares ε among the allowed": lambda asks, few, many: many,
}
FORBIDDEN = {
    "only the first forbidden id is looked at": lambda ids: ids[:1],
    "only the padding, 0, is forbidden": lambda ids: [0],
    "all ids up to the largest are forbidden": (
        lambda ids: range(max(ids, default=-1) + 1)
    ),
    "as many ids are forbidden, but the first ones": lambda ids: range(len(ids)),
    "`forbidden` is not used": lambda ids: [],
}


def infinite(rows, *_):
    if isinstance(rows, Tensor) and not rows.isfinite().all():
        return "NaN or infinity: what if nobody is left to share with?"


smoothed = Exercise(
    "ch07-smoothing",
    right=smooth,
    symptoms=infinite,
    hint="expected 1 − ε at the right symbol, an equal share of ε at each symbol that "
    "is neither right nor forbidden, 0 elsewhere",
    mistakes={
        "nobody is left to share with, and yet ε is lost": partial(smooth, alone=False),
        **each(lambda among: partial(smooth, among=among), AMONG),
        "the right symbol gets a share on top of 1 − ε": partial(
            smooth, among=lambda v, k: v - k, own=lambda e, share: 1 - e + share
        ),
        "the right symbol gets a share on top of its own, as in PyTorch": partial(
            smooth, among=lambda v, k: v, own=lambda e, share: 1 - e + share
        ),
        "all symbols share ε, as in PyTorch, the forbidden ones too": partial(
            smooth,
            among=lambda v, k: v,
            own=lambda e, share: 1 - e + share,
            closed=False,
            dead=lambda asks, few, many: asks + few,
        ),
        "the right symbol gives nothing away": partial(smooth, own=lambda e, share: 1),
        "the right symbol gets ε and the others share 1 − ε": (
            lambda t, v, e, forbidden: smooth(t, v, 1 - e, forbidden)
        ),
        "the forbidden symbols get a share": partial(smooth, closed=False),
        "forbidden symbols get a share, and no row is 0": (
            partial(smooth, closed=False, dead=lambda asks, few, many: asks + few)
        ),
        **{DEAD + what: partial(smooth, dead=dead) for what, dead in DEADS.items()},
        **{
            ALONE + what: partial(smooth, alone=False, dead=DEADS[what])
            for what in DEADS
            if "shares out" not in what  # nobody is there to get it
        },
        **each(forbidding, FORBIDDEN),
        "this is the target without smoothing": (
            lambda t, v, e, forbidden: smooth(t, v, 0.0, forbidden)
        ),
        "the symbols stand on the wrong axis": lambda *a: smooth(*a).mT,
        "batch and places should stay two axes": lambda *a: smooth(*a).flatten(0, 1),
        "rows of forbidden targets are left out": (
            lambda *a: (rows := smooth(*a))[rows.any(dim=-1)]
        ),
    },
)


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


def short_first(lengths):
    return sorted(range(len(lengths)), key=lengths.__getitem__)


def fits(group, lengths, tokens):
    return len(group) * max(lengths[i] for i in group) <= tokens


def groups(lengths, tokens, *, order=short_first, fits=fits):
    """Groups cut from an order, by a rule that says which groups are allowed."""
    if max(lengths, default=0) > tokens:
        raise ValueError(f"{max(lengths)} > {tokens}")
    found = []
    for index in order(lengths):
        if not found or not fits([*found[-1], index], lengths, tokens):
            found.append([])
        found[-1].append(index)
    return found


def told(name):
    """The right groups, with other numbers for the indices."""
    return lambda found, n: [[name(i, n) for i in g] for g in found]


FITS = {  # the last of a group g is the newcomer, and the longest; n are the lengths
    "the sum of the lengths is limited, but padding takes positions too": (
        lambda g, n, most: sum(n[i] for i in g) <= most
    ),
    "a group of exactly `tokens` places fits": (
        lambda g, n, most: len(g) * n[g[-1]] < most
    ),
    "the newcomer is not counted: a group holds one sequence too many": (
        lambda g, n, most: (len(g) - 1) * n[g[-1]] <= most
    ),
    "the rectangle is as wide as its longest sequence, not as its shortest": (
        lambda g, n, most: len(g) * n[g[0]] <= most
    ),
    "the number of sequences is limited, not that of places": (
        lambda g, n, most: len(g) <= most
    ),
    "the newcomer is the longest: the rectangle is as wide as it": (
        lambda g, n, most: len(g) * n[g[-2]] <= most
    ),
    "this is the rectangle before the newcomer": (
        lambda g, n, most: fits(g[:-1], n, most)
    ),
    "each group holds one sequence": lambda g, n, most: False,
}
ORDERS = {
    "sequences are not sorted by length": lambda n: range(len(n)),
    "the longest comes first": lambda n: sorted(range(len(n)), key=lambda i: -n[i]),
    "sequences of one length have changed places": (
        lambda n: sorted(range(len(n)), key=lambda i: (n[i], -i))
    ),
}
CHANGES = {
    "these are lengths, not indices": told(lambda i, n: n[i]),
    "these are places in the sorted order, no indices": (
        told(lambda i, n: short_first(n).index(i))
    ),
    "indices are counted from 0": told(lambda i, n: i + 1),
    "the last group is missing": lambda found, n: found[:-1],
    "no sequences, no groups": lambda found, n: found or [[]],
    "an empty group stands in front": lambda found, n: [[], *found],
    "an empty group stands at the end": lambda found, n: [*found, []],
    "this is one list for all groups": lambda found, n: [i for g in found for i in g],
    "the groups are not in the order of their opening": lambda found, n: found[::-1],
    "each group begins with its longest": lambda found, n: [g[::-1] for g in found],
    "within a group, length decides, not the index": (
        lambda found, n: [sorted(g) for g in found]
    ),
}
MISTAKES = {
    **each(lambda fits: partial(groups, fits=fits), FITS),
    **each(lambda order: partial(groups, order=order), ORDERS),
    **each(
        lambda change: lambda lengths, tokens: change(groups(lengths, tokens), lengths),
        CHANGES,
    ),
}


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
    if result in [wrong(lengths, tokens) for wrong in MISTAKES.values()]:
        return None
    missing = set(range(len(lengths))) - {i for g in result for i in g}
    if missing:
        return f"sequence {min(missing)} is in no group: every one is to be placed once"
    for g in result:
        places = f"{len(g)} × {max(lengths[i] for i in g)}"
        if not fits(g, lengths, tokens):
            return f"the group {g} has {places} positions, more than {tokens}"
    if result != groups(lengths, tokens):
        return "the groups fit, but only a sequence that does not may open another one"


grouped = Exercise(
    "ch07-token-batches",
    right=groups,
    symptoms=misplaced,
    hint="expected a list of groups, each of them a list of indices",
    mistakes=MISTAKES,
)


@grouped.case("the example: six sequences, twelve places")
def _(draw):
    return [9, 3, 2, 5, 3, 6], 12


SETS = {
    "sequences of one length keep their order": ([2, 2, 2, 2, 4, 4, 4, 4], 8),
    "many short ones, few long ones": ([1, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8], 16),
    "lengths that grow within a group": ([2, 2, 3, 3, 3, 4, 5, 5, 5, 9], 10),
    "no sequence at all": ([], 10),
    "a sequence that fills a group by itself": ([3, 5, 16, 2], 16),
    "a sequence that is too long: refused": ([3, 5, 17], 16),
}

for line, (lengths, tokens) in SETS.items():
    grouped.case(line)(
        lambda draw, lengths=lengths, tokens=tokens: (draw.shuffled(lengths), tokens)
    )


# ---- accumulation ------------------------------------------------------------


def real(counts):
    return [i for i, count in enumerate(counts) if count > 0]


def weighed(weight, of=torch.autograd.grad, old=False):
    """The gradients of all real batches, each times its weight.

    Args:
        weight: of the number of a batch, all batches, and the counts.
        of: what is added up.
        old: with what stood in ``parameter.grad``.
    """

    def gradient(model_loss, parameter, batches, counts):
        total = torch.zeros_like(parameter, requires_grad=False)
        for i in real(counts):
            [one] = of(model_loss(parameter, batches[i]), [parameter])
            total += one * weight(i, batches, counts)
        return total + parameter.grad if old and parameter.grad is not None else total

    return gradient


def share_of(size):
    """Weights by the size of a batch, a function of the batch and its count."""

    def weight(i, batches, counts):
        sizes = [size(batches[j], counts[j]) for j in real(counts)]
        return size(batches[i], counts[i]) / sum(sizes)

    return weight


by_tokens = share_of(lambda batch, count: count)
alike = share_of(lambda batch, count: 1)

WEIGHTS = {  # of batch i, of all batches b with their counts c
    "this is the mean of the gradients: a batch with more tokens counts more": alike,
    "this is the mean over all batches, those without a real token included": (
        lambda i, b, c: 1 / len(c)
    ),
    "the gradients are added up as they are": lambda i, b, c: 1,
    "this is count times gradient: by what is the sum divided?": lambda i, b, c: c[i],
    "divided by the number of batches, not by that of all tokens": (
        lambda i, b, c: c[i] / len(c)
    ),
    "padding is counted": share_of(lambda batch, count: batch.numel()),
    "padding is counted, and that of batches without a real token too": (
        lambda i, b, c: b[i].numel() / sum(one.numel() for one in b)
    ),
    "sequences are counted, not tokens": share_of(lambda batch, count: len(batch)),
    "a batch with more tokens counts less": share_of(lambda batch, count: 1 / count),
    "only the gradient of the last batch is left: was it cleared in between?": (
        lambda i, b, c: by_tokens(i, b, c) * (i == real(c)[-1])
    ),
    "this is the gradient of the last batch alone": lambda i, b, c: i == real(c)[-1],
    "this is the gradient of the first batch alone": lambda i, b, c: i == real(c)[0],
    "the sign: wanted is the gradient, not the step against it": (
        lambda i, b, c: -by_tokens(i, b, c)
    ),
}
FAULTS = {  # what `accumulated` has seen
    "moved": "the parameter has changed: only its gradient is wanted",
    "joined": "model_loss got something that is none of the batches, one at a time; "
    "joined they would not fit into memory",
    "attached": "the result still hangs on the graphs of all losses",
    "together": "losses were in memory at once: when do you go backward?",
}


def seen(result, *_):
    if isinstance(result, str):
        return FAULTS.get(result)
    if isinstance(result, Tensor) and result.isnan().any():
        return "the result holds NaN: what is 0 times the loss of an empty batch?"


accumulation = Exercise(
    "ch07-accumulate",
    right=weighed(by_tokens),
    through=accumulated,
    symptoms=seen,
    hint="expected the gradients of the batches, each times its share of tokens",
    mistakes={
        **each(weighed, WEIGHTS),
        "the old gradient is in the result": weighed(by_tokens, old=True),
        "the old gradient is there, and batches count alike": weighed(alike, old=True),
        "the old gradient is there, and no batch is weighed": (
            weighed(lambda i, b, c: 1, old=True)
        ),
        "this is the old gradient, from `parameter.grad`": (
            lambda model_loss, parameter, batches, counts: parameter.grad.clone()
        ),
        "this is the mean loss; wanted is its gradient": (
            weighed(by_tokens, of=lambda loss, _: [loss.detach()])
        ),
    },
)

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


@accumulation.case("the example: three tokens and one")
def _(draw):
    batches = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0])]
    return SQUARES, torch.tensor(0.0), batches, [3, 1]


@accumulation.case("batches with padding")
def _(draw):
    return SINES, draw.normal(3), *padded(draw)


@accumulation.case("an old gradient stands in parameter.grad")
def _(draw):
    return SINES, draw.normal(3), *padded(draw), draw.normal(3)


@accumulation.case("batches without a real token")
def _(draw):
    return SINES, draw.normal(2, 2), *padded(draw, ([0, 0], [2, 1, 1], [3], [0, 0]))


@accumulation.case("in double precision", dtype=torch.float64)
def _(draw):
    return SINES, draw.normal(4), *padded(draw)


@accumulation.case("one loss in memory at a time, and none afterwards")
def _(draw):
    return SINES, draw.normal(3), *padded(draw), None, True
