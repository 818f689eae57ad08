"""Public checks of the exercises of chapter 07; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from annotated.checks import Function, Raised, expect, public
from annotated.checks.material import draw, tolerance_of


def whole(*rows: list, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(rows, dtype=dtype)


def expect_number(result: object, kind: str) -> None:
    if isinstance(result, Tensor) and result.numel() == 1:
        raise AssertionError(
            f"{kind} is a tensor: use `math`, or make a number of it with .item()"
        )
    if isinstance(result, complex):
        raise AssertionError(f"{kind} is a complex number: of what is a root taken?")
    if result is not None and not isinstance(result, int | float):
        raise AssertionError(
            f"{kind} should be a number, and it is none: {result!r}"[:90]
        )


# ---- another schedule --------------------------------------------------------


def half_wave(share, top, bottom):
    """From top to bottom, by the square of the cosine of the half angle."""
    return bottom + (top - bottom) * math.cos(math.pi * share / 2) ** 2


def right_rate(step, warmup, total, peak, floor):
    if step <= warmup:
        return step / warmup * peak
    done = min(step, total) - warmup
    # no step after the warm-up: it is over as soon as it begins
    return half_wave(done / (total - warmup), peak, floor) if done > 0 else floor


def judge_schedule(rate, step, warmup, total, peak, floor):
    expect_number(rate, "the rate")
    climbing, after = step <= warmup, step - warmup
    rest = max(total - warmup, 1)
    share = min(after / rest, 1.0)
    mistakes = {}
    if warmup == 0 and step <= total:
        mistakes[
            "max(warmup, 1) makes a climb of one step of none; without a warm-up "
            "the cosine begins at step 1"
        ] = half_wave((step - 1) / (total - 1), peak, floor) if step > 1 else peak
    if step == warmup == total:
        mistakes["this step is still the top of the climb, and gets the peak"] = floor
    if climbing:
        mistakes |= {
            "the climb is one step late: at step 1 it is peak / warmup, and at step "
            "`warmup` the peak": peak * (step - 1) / warmup,
            "the climb is one step late: it reaches the peak at step `warmup`, not one "
            "after it": peak * step / (warmup + 1),
            "the climb is one step early: the first step is number 1": (
                peak * (step + 1) / warmup
            ),
            "the climb begins at 0, not at the floor": (
                floor + (peak - floor) * step / warmup
            ),
            "the climb begins at 0: the floor is where the rate ends": max(
                floor, peak * step / warmup
            ),
            "there is no climb: up to step `warmup` the rate goes up in a straight "
            "line": peak,
            "there is no climb: the cosine begins at step 1 instead of after the "
            "warm-up": half_wave(min(step / total, 1), peak, floor),
            "the climb is a straight line, and not a cosine": half_wave(
                step / warmup, 0, peak
            ),
            "the rate falls along the cosine during the climb": half_wave(
                after / rest, peak, floor
            ),
            "the climb ends at step `total`; it should end at step `warmup`": (
                peak * step / total
            ),
            "a share of the warm-up is wanted times the peak: `peak` is missing": (
                step / warmup
            ),
        }
    elif step > total:
        mistakes |= {
            "after `total` the cosine climbs again: it should stay at the floor": (
                half_wave(after / rest, peak, floor)
            ),
            "after `total` the rate is `floor`, and not 0": 0.0,
            "after `total` the rate is `floor`, and not the peak": peak,
            "after `total` the straight line goes on: it ends at `floor`": (
                peak + (floor - peak) * after / rest
            ),
        }
    else:
        line = peak + (floor - peak) * share
        cosine = math.cos(math.pi * share)
        rate_here = right_rate(step, warmup, total, peak, floor)
        cut = half_wave(share, peak, 0) < floor
        mistakes |= {
            "the share is that of all steps; it should be that of the steps after the "
            "warm-up: (step − warmup) / (total − warmup)": (
                half_wave(step / total, peak, floor)
            ),
            "the steps of the warm-up do not count in the share: step − warmup": (
                half_wave(step / rest, peak, floor)
            ),
            "the share is divided by `total`; after the warm-up there are total − "
            "warmup steps": half_wave(after / total, peak, floor),
            "the cosine is one step late: after the warm-up it has already begun to "
            "fall": half_wave((after - 1) / rest, peak, floor),
            "the cosine is one step early: at step `warmup` it is at the peak": (
                half_wave((after + 1) / rest, peak, floor)
            ),
            "the floor cuts the wave off; it should end there: floor + (peak − floor) "
            "· …": max(floor, half_wave(share, peak, 0)) if cut else rate_here,
            "the floor is missing, or only cuts the wave off: floor + (peak − floor) · "
            "…": rate_here if cut else half_wave(share, peak, 0),
            "the floor is missing": half_wave(share, peak, 0),
            "the floor is missing in front: floor + (peak − floor) · …": (
                half_wave(share, peak - floor, 0)
            ),
            "the floor is added: the wave should fall from `peak`, so it is `peak − "
            "floor` high": half_wave(share, peak + floor, floor),
            "this climbs from the floor to the peak: 1 + cos, not 1 − cos": (
                half_wave(1 - share, peak, floor)
            ),
            "half a wave goes from 0 to π; this one ends at π/2": (
                floor + (peak - floor) * math.cos(math.pi * share / 2)
            ),
            "half a wave goes from 0 to π; this one goes to 2π and comes back up": (
                half_wave(2 * share, peak, floor)
            ),
            "π is missing in the cosine": (
                floor + (peak - floor) * (1 + math.cos(share)) / 2
            ),
            "the cosine is taken of degrees": (
                floor + (peak - floor) * (1 + math.cos(math.pi * 180 * share)) / 2
            ),
            "the division by 2 is missing: 1 + cos is 2 at first": (
                floor + (peak - floor) * (1 + cosine)
            ),
            "the 1 is missing: a cosine alone becomes negative": (
                floor + (peak - floor) * cosine
            ),
            "this is a straight line; it should fall along a cosine": line,
            "after the warm-up the rate falls; here it stays at the peak": peak,
            "at the end of the warm-up the rate does not drop to the floor at once": (
                floor
            ),
            "after the warm-up the straight line goes on climbing": (
                peak * step / max(warmup, 1)
            ),
        }
    expect(
        rate,
        right_rate(step, warmup, total, peak, floor),
        hint="expected another rate: see the three cases of the statement",
        mistakes=mistakes,
        tolerance=1e-9,
    )


def judge_no_step(result, *arguments):
    if not isinstance(result, Raised):
        raise AssertionError(
            f"there is no step {arguments[0]}, so raise; your code does not"
        )
    if result.kind != "ValueError":
        hint = "an assert is gone when Python runs with -O; " * (
            result.kind == "AssertionError"
        )
        raise AssertionError(
            f"your code raised {result.kind} ({result.message[:60]!r}): {hint}look at "
            "the step before you compute, and raise a ValueError"
        )


for _line, _sizes in (
    ("in the climb: a quarter of the peak at step 1 of 4", (1, 4, 12, 1.0, 0.2)),
    ("the top of the climb", (4, 4, 12, 1.0, 0.2)),
    ("a climb that is below the floor at first", (1, 10, 40, 1.0, 0.3)),
    ("the first step after the warm-up", (101, 100, 164, 3e-3, 1e-3)),
    ("a quarter of the way down", (6, 2, 18, 2.0, 0.5)),
    ("nearly down", (18, 4, 21, 2.0, 0.5)),
    ("half way down: 0.6 at step 8", (8, 4, 12, 1.0, 0.2)),
    ("the end of the wave", (12, 4, 12, 1.0, 0.2)),
    ("after the end", (13, 4, 12, 1.0, 0.2)),
    ("no warm-up", (3, 0, 12, 1.0, 0.0)),
    ("nothing but warm-up, and its last step", (5, 5, 5, 0.4, 0.1)),
):

    def _judge(rate, step, warmup, total, peak, floor):
        judge_schedule(rate, step, warmup, total, peak, floor)

    _judge.__doc__ = _line
    public("ch07-schedule", *_sizes)(_judge)


@public("ch07-schedule", 7, 3, 11, 0.5)
def _(rate, step, warmup, total, peak):
    "without a floor it is 0"
    judge_schedule(rate, step, warmup, total, peak, 0.0)


@public("ch07-schedule", 0, 4, 12, 1.0, 0.2, raises=True)
def _(result, step, warmup, total, peak, floor):
    "step 0: refused"
    judge_no_step(result, step, warmup, total, peak, floor)


# ---- where is the peak? ------------------------------------------------------


def judge_peak(result, d_model, warmup, a, factor=1.0):
    if isinstance(result, tuple | list):
        for value in result:
            expect_number(value, "one of the two")
    root, w = math.sqrt(d_model), float(warmup)
    best = factor / root / w**a
    if isinstance(result, int | float) and not isinstance(result, bool):
        for name, value in (("step", warmup), ("rate", best)):
            if math.isclose(result, value, rel_tol=1e-9):
                raise AssertionError(
                    f"this is the {name} alone: wanted is the pair (step, rate)"
                )
    rates = {
        "the exponent of the warm-up is a, and not always a half": (
            factor / root / math.sqrt(w)
        ),
        "put n = w into the formula: n · w^−(1+a) is w^−a; you forget the n": (
            factor / root / w ** (1 + a)
        ),
        "the sign of the exponent of the warm-up: the rate falls as n^−a": (
            factor / root * w**a
        ),
        "the rate does not depend on the warm-up in your answer: w^−a is missing": (
            factor / root
        ),
        "the factor is missing": best / factor,
        "the factor stands in front of everything; do not take its root": (
            best / math.sqrt(factor)
        ),
        "the rate is divided by the factor; multiply": best / factor**2,
        "the exponent of the width is −1/2, whatever a is": (
            factor / d_model**a / w**a
        ),
        "the width is divided by, and its root should be": factor / d_model / w**a,
        "the root of the width is multiplied with; divide": factor * root / w**a,
        "the width is missing: d^−1/2": factor / w**a,
        "the root is taken of the whole: for a = 0.5 that is right, for others not": (
            factor / math.sqrt(d_model * w)
        ),
        "the warm-up stands below a root of its own: w^−a, nothing else": (
            factor / root / w ** (a / 2)
        ),
    }
    steps = {
        "the steps: at n = w the line and the power are equal; one step later it "
        "falls already": warmup + 1,
        "the steps: at n = w the line and the power are equal; one step earlier it "
        "still climbs": warmup - 1,
        "the rate is highest where the line and the power meet, not at step 1": 1,
        "the place of the peak does not depend on a: solve n^−a = n · w^−(1+a)": (
            w ** (1 + a)
        ),
        "the place of the peak: solve n^−a = n · w^−(1+a); no root is left": w**0.5,
        "the place of the peak, n^(1+a) = w^(1+a): take the root": w ** (1 / (1 + a)),
    }
    mistakes = {name: (warmup, rate) for name, rate in rates.items()}
    for name, step in steps.items():
        mistakes[name] = (step, best)
        there = factor / root * min(step**-a, step * w ** -(1 + a)) if step else 0.0
        mistakes[f"{name}; your rate is that of your step"] = (step, there)
    mistakes["the step comes first: (step, rate)"] = (best, warmup)
    expect(
        result,
        (warmup, best),
        hint="expected the step at which both terms of the minimum are equal, and the "
        "rate there",
        mistakes=mistakes,
        tolerance=1e-9,
    )
    if not isinstance(result[0], int):
        raise AssertionError("a step is a whole number: an int, and no float")


for _line, _sizes in (
    ("the example: the schedule of the paper", (64, 100, 0.5, 1.0)),
    ("the example: a = 1", (64, 100, 1, 1.0)),
    ("a factor, and another power", (256, 81, 0.25, 5.0)),
    ("a width that is no square", (48, 1000, 0.75, 0.5)),
):

    def _judge(result, d_model, warmup, a, factor):
        judge_peak(result, d_model, warmup, a, factor)

    _judge.__doc__ = _line
    public("ch07-peak", *_sizes)(_judge)


@public("ch07-peak", 512, 4000, 0.5)
def _(result, d_model, warmup, a):
    "without a factor it is 1"
    judge_peak(result, d_model, warmup, a)


# ---- smoothing with forbidden symbols ----------------------------------------


def right_smoothed(target, size, smoothing, forbidden):
    rows = []
    for line in target.tolist():
        rows.append([])
        for right in line:
            free = [s for s in range(size) if s != right and s not in forbidden]
            row = [smoothing / len(free) if s in free else 0.0 for s in range(size)]
            row[right] = 1 - smoothing if free else 1.0
            rows[-1].append([0.0] * size if right in forbidden else row)
    return torch.tensor(rows, dtype=torch.float64)


def judge_smoothed(rows, target, size, smoothing, forbidden):
    right = right_smoothed(target, size, smoothing, forbidden)
    ids, v, k = target.long(), size, len(forbidden)
    own = torch.nn.functional.one_hot(ids, v).double()
    banned = torch.tensor([s in forbidden for s in range(v)])
    dead = banned[ids][..., None]

    def shared(among: int, keeps: float = 1 - smoothing) -> Tensor:
        """What the answer is with another number of sharers."""
        share = smoothing / among if among > 0 else math.inf
        free = (1 - own) * share * ~banned + own * keeps
        return free.nan_to_num(posinf=math.inf).masked_fill(dead, 0)

    if isinstance(rows, Tensor) and not rows.isfinite().all():
        raise AssertionError(
            "NaN or infinity: where nobody is left to share, the right symbol keeps 1"
        )
    others = v - 1 - k
    everyone = (own * (1 - smoothing) + smoothing / v).masked_fill(banned, 0)
    leaving = (1 - own) * smoothing / max(others, 1) + own * (1 - smoothing)
    first, below = forbidden[:1], max(forbidden, default=-1) + 1
    asks = own * (1 - smoothing)
    shares = asks + (1 - own) * ~banned * smoothing / max(v - k, 1)
    lonely = {
        "nobody is left to share, so the right symbol keeps 1; and where the target is "
        "forbidden the whole row is 0: two cases are missing": asks,
        "nobody is left to share, so the right symbol keeps 1; and where the target is "
        "forbidden the whole row is 0, and shares out nothing": shares,
        "nobody is left to share, so the right symbol keeps 1; and where the target is "
        "forbidden nobody gets a share, either": torch.where(dead, shares - asks, asks),
        "where the target is forbidden the whole row is 0; yours keeps 1 there": own,
    }
    mistakes = {} if others > 0 else lonely
    mistakes |= {
        "where nobody is left to share, the right symbol keeps 1, not 1 − ε": (
            right if others else (own * (1 - smoothing)).masked_fill(dead, 0)
        ),
        "ε is shared by v symbols; the right one and the forbidden ones get no share": (
            shared(v)
        ),
        "ε is shared by v − 1 symbols; the forbidden ones get no share": shared(v - 1),
        "ε is shared by v − 2 symbols: how many are forbidden here?": shared(v - 2),
        "the right symbol is counted among those that share: v − 1 − k, not v − k": (
            shared(v - k)
        ),
        "a forbidden symbol too many is counted: v − 1 − k share": shared(others - 1),
        "nothing is shared out: each other one gets ε divided by their number": (
            shared(1)
        ),
        "the right symbol gets a share on top of 1 − ε": shared(
            max(v - k, 1), 1 - smoothing + smoothing / max(v - k, 1)
        ),
        "the right symbol gets a share on top of its own, as in PyTorch": (
            everyone.masked_fill(dead, 0)
        ),
        "the right symbol keeps 1: 1 − ε is left": shared(others, 1.0),
        "the right symbol gets ε and the others share 1 − ε": (
            own * smoothing + (1 - own) * ~banned * (1 - smoothing) / max(others, 1)
        ).masked_fill(dead, 0),
        "the forbidden symbols get a share": leaving.masked_fill(dead, 0),
        "where the target is forbidden the whole row is 0; yours asks for the "
        "forbidden symbol": torch.where(dead, own * (1 - smoothing), right),
        "where the target is forbidden the whole row is 0; yours asks for the "
        "forbidden symbol, and shares out": torch.where(
            dead,
            own * (1 - smoothing) + (1 - own) * ~banned * smoothing / max(others, 1),
            right,
        ),
        "where the target is forbidden the whole row is 0; yours asks for the "
        "forbidden symbol, and shares out among those that are allowed": torch.where(
            dead, shares, right
        ),
        "the forbidden symbols get a share, and rows with a forbidden target are not "
        "0": leaving,
        "where the target is forbidden the whole row is 0; yours shares out ε": (
            torch.where(dead, ~banned * smoothing / max(others, 1), right)
        ),
        "where the target is forbidden the whole row is 0; yours shares out ε among "
        "all others that are allowed": torch.where(
            dead, ~banned * smoothing / max(v - k, 1), right
        ),
        "only the first forbidden id is looked at": right_smoothed(
            target, size, smoothing, first
        ),
        "only the padding, 0, is forbidden in your answer": right_smoothed(
            target, size, smoothing, [0]
        ),
        "all ids up to the largest forbidden one are forbidden in your answer": (
            right_smoothed(target, size, smoothing, list(range(below)))
        ),
        "as many ids as are forbidden are, but the first ones: look at the ids": (
            right_smoothed(target, size, smoothing, list(range(k)))
        ),
        "`forbidden` is not used": right_smoothed(target, size, smoothing, []),
        "this is the target without smoothing": (own * ~dead),
        "the symbols stand on the wrong axis: (b, t, v)": right.mT,
        "batch and places should stay two axes: (b, t, v)": right.flatten(0, 1),
        "the rows of forbidden targets are to be 0, not to be left out": (
            right[~dead[..., 0]]
        ),
    }
    expect(
        rows,
        right.float(),
        hint="expected 1 − ε at the right symbol, an equal share of ε at each symbol "
        "that is neither right nor forbidden, 0 elsewhere",
        mistakes={name: wrong.float() for name, wrong in mistakes.items()},
        tolerance=1e-6,
    )


@public("ch07-smoothing", whole([3, 1]), 6, 0.3, [0, 1])
def _(rows, target, size, smoothing, forbidden):
    "the example: six symbols, two of them forbidden"
    judge_smoothed(rows, target, size, smoothing, forbidden)


@public("ch07-smoothing", whole([2, 5, 0], [7, 4, 1]), 9, 0.2, [7, 0, 3])
def _(rows, target, size, smoothing, forbidden):
    "forbidden ids anywhere, in any order"
    judge_smoothed(rows, target, size, smoothing, forbidden)


@public("ch07-smoothing", whole([0, 3], [2, 1]), 4, 0.4, [])
def _(rows, target, size, smoothing, forbidden):
    "nothing is forbidden: every other symbol shares"
    judge_smoothed(rows, target, size, smoothing, forbidden)


@public("ch07-smoothing", whole([2, 0, 1]), 3, 0.1, [1, 0])
def _(rows, target, size, smoothing, forbidden):
    "nobody is left to share: the right symbol keeps 1"
    judge_smoothed(rows, target, size, smoothing, forbidden)


@public("ch07-smoothing", whole([4, 1], [0, 2], dtype=torch.int32), 5, 0.25, [4])
def _(rows, target, size, smoothing, forbidden):
    "ids of dtype int32, and the last symbol forbidden"
    judge_smoothed(rows, target, size, smoothing, forbidden)


# ---- batches by tokens -------------------------------------------------------


def right_groups(lengths: list[int], tokens: int) -> list[list[int]]:
    left = sorted((length, index) for index, length in enumerate(lengths))
    groups = []
    while left:
        size = 1  # as many as fit; the last one taken is the longest
        while size < len(left) and (size + 1) * left[size][0] <= tokens:
            size += 1
        groups.append([index for _, index in left[:size]])
        left = left[size:]
    return groups


def grouped(order: list[int], fits: Callable[[list[int]], bool]) -> list[list[int]]:
    """Groups cut from an order, by a rule that says which groups are allowed."""
    groups = []
    for index in order:
        if not groups or not fits([*groups[-1], index]):
            groups.append([])
        groups[-1].append(index)
    return groups


def judge_groups(groups, lengths, tokens):
    right = right_groups(lengths, tokens)
    n = len(lengths)
    up = sorted(range(n), key=lambda i: lengths[i])
    down = sorted(range(n), key=lambda i: -lengths[i])
    ties = sorted(range(n), key=lambda i: (lengths[i], -i))

    def places(group):
        return len(group) * max(lengths[i] for i in group)

    def rectangle(group):
        return places(group) <= tokens

    mistakes = {
        "the sum of the lengths is limited; padding takes places too: size × longest": (
            grouped(up, lambda g: sum(lengths[i] for i in g) <= tokens)
        ),
        "a group of exactly `tokens` places fits: > and not >=": (
            grouped(up, lambda g: places(g) < tokens)
        ),
        "the number of sequences is limited; it should be size × longest": (
            grouped(up, lambda g: len(g) <= tokens)
        ),
        "the newcomer is not counted: a group holds one sequence too many": (
            grouped(up, lambda g: (len(g) - 1) * lengths[g[-1]] <= tokens)
        ),
        "the rectangle is as wide as its longest sequence, not as its shortest": (
            grouped(up, lambda g: len(g) * lengths[g[0]] <= tokens)
        ),
        "the newcomer is the longest: the rectangle is as wide as it, and not as the "
        "one before it": (
            grouped(up, lambda g: len(g) * lengths[g[max(len(g) - 2, 0)]] <= tokens)
        ),
        "the newcomer is not counted: this is the rectangle before it comes": (
            grouped(
                up, lambda g: (len(g) - 1) * lengths[g[max(len(g) - 2, 0)]] <= tokens
            )
        ),
        "sequences are not sorted: take them from the shortest to the longest": (
            grouped(list(range(n)), rectangle)
        ),
        "take the shortest first, not the longest": grouped(down, rectangle),
        "sequences of one length come in the order of `lengths`": (
            grouped(ties, rectangle)
        ),
        "each group holds one sequence: several may go together": [[i] for i in up],
        "these are lengths; wanted are the indices of the sequences": [
            [lengths[i] for i in group] for group in right
        ],
        "these are indices into the sorted sequences; wanted are those in `lengths`": (
            [[up.index(i) for i in group] for group in right]
        ),
        "indices are counted from 0": [[i + 1 for i in group] for group in right],
        "the last group is missing: is it appended after the loop?": right[:-1],
        "no sequences, no groups: an empty list": right if n else [[]],
        "an empty group stands in front: open the first one with its first sequence": (
            [[], *right]
        ),
        "an empty group stands at the end": [*right, []],
        "this is one list of indices; wanted is a list for each group": up,
        "groups come in the order in which they were opened": right[::-1],
        "within a group, the shortest comes first": [group[::-1] for group in right],
        "within a group, the shortest comes first; these are sorted by index": (
            [sorted(group) for group in right]
        ),
    }
    for mistake, wrong in mistakes.items():
        if wrong != right and isinstance(groups, list) and groups == wrong:
            raise AssertionError(mistake)
    _expect_partition(groups, lengths, tokens)
    if [list(group) for group in groups] != right:
        raise AssertionError(
            "the groups fit, but they are others: only a sequence that no longer fits "
            "into the newest group opens another one"
        )


def _expect_partition(groups, lengths, tokens):
    if groups is None:
        raise AssertionError("your function returns nothing: is a `return` missing?")
    if not isinstance(groups, list | tuple) or not all(
        isinstance(group, list | tuple) for group in groups
    ):
        raise AssertionError("expected a list of lists of indices")
    found = [index for group in groups for index in group]
    if not all(isinstance(index, int) for index in found):
        raise AssertionError("indices are whole numbers of Python, not tensors")
    missing = sorted(set(range(len(lengths))) - set(found))
    if missing:
        raise AssertionError(
            f"sequence {missing[0]} is in no group: every one is to be placed once"
        )
    if sorted(found) != list(range(len(lengths))):
        raise AssertionError("an index comes twice, or there is no such sequence")
    for group in groups:
        if not group:
            raise AssertionError("a group is empty")
        widest = max(lengths[i] for i in group)
        if len(group) * widest > tokens:
            raise AssertionError(
                f"the group {list(group)} has {len(group)} × {widest} = "
                f"{len(group) * widest} places, more than {tokens}"
            )


def judge_too_long(result, lengths, tokens):
    if not isinstance(result, Raised):
        raise AssertionError(
            f"a sequence of {max(lengths)} does not fit into {tokens} places, so "
            "raise; your code does not"
        )
    if result.kind != "ValueError":
        hint = "an assert is gone when Python runs with -O; " * (
            result.kind == "AssertionError"
        )
        raise AssertionError(
            f"your code raised {result.kind} ({result.message[:60]!r}): {hint}raise a "
            "ValueError"
        )
    longer = [length for length in lengths if length > tokens]
    if str(tokens) not in result.message or not any(
        str(length) in result.message for length in longer
    ):
        raise AssertionError(
            f"the message should hold the length, {longer[0]} here, and `tokens`, "
            f"{tokens}; it is: {result.message[:100]!r}"
        )


for _line, _lengths, _tokens in (
    ("the example: six sequences, twelve places", [9, 3, 2, 5, 3, 6], 12),
    ("sequences of one length keep their order", [4, 2, 4, 2, 2, 4, 4, 2], 8),
    ("many short ones, few long ones", [1, 7, 2, 1, 8, 3, 1, 5, 2, 4, 1], 16),
    ("lengths that grow within a group", [4, 5, 5, 2, 2, 9, 3, 5, 3, 3], 10),
    ("no sequence at all", [], 10),
):

    def _judge(groups, lengths, tokens):
        judge_groups(groups, lengths, tokens)

    _judge.__doc__ = _line
    public("ch07-token-batches", _lengths, _tokens)(_judge)


@public("ch07-token-batches", [3, 17, 5], 16, raises=True)
def _(result, lengths, tokens):
    "a sequence that is too long: refused"
    judge_too_long(result, lengths, tokens)


# ---- accumulation ------------------------------------------------------------

# Losses of tokens: what is 0 is padding, except in the first.
SQUARES = Function("((batch - parameter) ** 2).mean()", "parameter, batch")
REAL = "((batch != 0) * ({})).sum() / (batch != 0).sum()"
MASKED = Function(REAL.format("(batch - parameter) ** 2"), "parameter, batch")
CURVED = Function(
    REAL.format("(batch[..., None] * parameter.flatten()).sin().sum(-1)"),
    "parameter, batch",
)


def accumulated(
    answer: Callable, model_loss: Function, parameter: Tensor, old, batches, counts
) -> dict:
    """Let an answer accumulate, with gradients on; tell what it returned and did."""
    with torch.enable_grad():
        leaf = parameter.clone().requires_grad_()
        leaf.grad = None if old is None else old.clone()
        real = [count > 0 for count in counts]  # an answer may change its list
        open_losses, most, joined = set(), [0], [False]

        def watched(given, batch):
            known = [i for i, b in enumerate(batches) if b is batch]
            known += [
                i
                for i, b in enumerate(batches)
                if b.shape == batch.shape and torch.equal(b, batch)
            ]
            joined[0] |= not known
            mark = object()
            seen = given.view_as(given)
            if seen.requires_grad:
                if known and real[known[0]]:
                    open_losses.add(mark)
                    most[0] = max(most[0], len(open_losses))
                seen.register_hook(lambda _: open_losses.discard(mark))
            return model_loss(seen, batch)

        value = answer(watched, leaf, batches, counts)
        return {
            "result": value.detach() if isinstance(value, Tensor) else value,
            "attached": isinstance(value, Tensor) and value.requires_grad,
            "moved": not torch.equal(leaf.detach(), parameter),
            "joined": joined[0],
            "most": most[0],
        }


def gradients_apart(model_loss, parameter, batches) -> tuple[list, list]:
    """Loss and gradient of each batch, in double precision."""
    losses, gradients = [], []
    with torch.enable_grad():
        for batch in batches:
            leaf = parameter.double().clone().requires_grad_()
            loss = model_loss(leaf, batch.double())
            gradients.append(torch.autograd.grad(loss, leaf)[0])
            losses.append(loss.detach())
    return losses, gradients


def judge_accumulated(told, model_loss, parameter, old, batches, counts):
    dtype, result = parameter.dtype, told["result"]
    if told["moved"]:
        raise AssertionError(
            "the parameter has changed: compute the gradient, and take no step"
        )
    if isinstance(result, Tensor) and result.isnan().any():
        raise AssertionError(
            "the result holds NaN: a batch without a real token has the loss NaN, and "
            "0 times that is NaN; leave it out"
        )
    losses, each = gradients_apart(model_loss, parameter, batches)
    real = [i for i, count in enumerate(counts) if count > 0]

    def mean(weights: list, things: list = each) -> Tensor:
        chosen = [weights[i] * things[i] for i in real]
        return torch.stack(chosen).sum(dim=0) / sum(weights)

    ones = [1 if i in real else 0 for i in range(len(batches))]
    sizes = [batch.numel() if i in real else 0 for i, batch in enumerate(batches)]
    rows = [len(batch) if i in real else 0 for i, batch in enumerate(batches)]
    right = mean(counts)
    everything = sum(batch.numel() for batch in batches)
    mistakes = {
        "this is the mean of the gradients of the batches: a batch with more tokens "
        "counts more": mean(ones),
        "this is the mean over the number of batches, those without a real token "
        "included": mean(ones) * len(real) / len(batches),
        "the gradients are added up as they are; each counts by its share of the "
        "tokens": mean(ones) * len(real),
        "divide by the number of tokens of all batches: this is count times gradient": (
            right * sum(counts)
        ),
        "divided by the number of batches; it should be by that of all tokens": (
            right * sum(counts) / len(batches)
        ),
        "padding is counted: `counts` says how many tokens are real": mean(sizes),
        "padding is counted, and that of batches without a real token too: `counts` "
        "says how many tokens are real": mean(sizes) * sum(sizes) / everything,
        "sequences are counted; `counts` says how many tokens there are": mean(rows),
        "each batch is divided by its count, and not multiplied": mean(
            [1 / count if count else 0 for count in counts]
        ),
        "only the gradient of the last batch is left: was it cleared in between?": (
            each[real[-1]] * counts[real[-1]] / sum(counts)
        ),
        "this is the gradient of the last batch alone": each[real[-1]],
        "this is the gradient of the first batch alone": each[real[0]],
        "the sign: wanted is the gradient, not the step against it": -right,
        "this is the mean loss; wanted is its gradient": mean(counts, losses),
    }
    if old is not None:
        left = old.double()
        mistakes |= {
            "the old gradient that stood in parameter.grad is in the result": (
                right + left
            ),
            "the old gradient is in the result, and the batches count alike": (
                mean(ones) + left
            ),
            "the old gradient is in the result, and the gradients are added up as they "
            "are": mean(ones) * len(real) + left,
            "this is the old gradient, as it stood in parameter.grad": left,
        }
    if told["joined"]:
        raise AssertionError(
            "model_loss got something that is none of the batches; hand them over one "
            "at a time, and do not join them: together they would not fit"
        )
    expect(
        result,
        right.to(dtype),
        hint="expected the gradients of the batches, each times its share of tokens",
        mistakes={name: wrong.to(dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(dtype),
    )
    if told["attached"]:
        raise AssertionError(
            "the result still hangs on the graphs of all losses: no create_graph"
        )
    if told["most"] > 1:
        raise AssertionError(
            f"the numbers are right, but {told['most']} losses were in memory at once: "
            "go backward through each before you compute the next"
        )


TENS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0])]
PADDED = [
    torch.tensor([[4.0, 2.0, 1.0, 3.0], [5.0, 0.0, 0.0, 0.0]]),
    torch.tensor([[2.0, 7.0], [1.0, 0.0], [6.0, 0.0]]),
    torch.tensor([[9.0]]),
]
EMPTY = [torch.tensor([[0.0, 0.0]]), *PADDED[1:], torch.tensor([[0.0], [0.0]])]

for _line, _arguments in (
    (
        "the example: three tokens and one",
        (SQUARES, torch.tensor(0.0), None, TENS, [3, 1]),
    ),
    (
        "batches with padding",
        (MASKED, torch.tensor([0.5]), None, PADDED, [5, 4, 1]),
    ),
    (
        "an old gradient stands in parameter.grad",
        (CURVED, draw(3, seed=170), draw(3, seed=171), PADDED, [5, 4, 1]),
    ),
    (
        "batches without a real token",
        (CURVED, draw(2, 2, seed=172), None, EMPTY, [0, 4, 1, 0]),
    ),
):

    def _judge(told, model_loss, parameter, old, batches, counts):
        judge_accumulated(told, model_loss, parameter, old, batches, counts)

    _judge.__doc__ = _line
    public("ch07-accumulate", *_arguments, through=accumulated)(_judge)
