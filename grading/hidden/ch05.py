"""Hidden cases of the exercises of chapter 05: other shapes, dtypes, and corners."""

import torch

from annotated.checks import expect
from annotated.checks.ch05 import (
    judge_distance,
    judge_halves,
    judge_learned,
    judge_refused,
    judge_shift,
    right_halves,
    right_learned,
    score,
)
from annotated.checks.material import draw, expect_gradients
from grading.hidden import hidden

HALVES = torch.float16, torch.bfloat16

# ---- the table without loops -------------------------------------------------


@hidden("ch05-table", 7, 12)
def _(table, length, d_model):
    "other sizes"
    judge_halves(table, length, d_model)


@hidden("ch05-table", 1, 4)
def _(table, length, d_model):
    "one position: sines of 0, cosines of 0"
    judge_halves(table, length, d_model)


@hidden("ch05-table", 6, 2, 3)
def _(table, length, d_model, start):
    "one pair"
    judge_halves(table, length, d_model, start)


@hidden("ch05-table", 6, 6, 1)
def _(table, length, d_model, start):
    "as many positions as dimensions"
    judge_halves(table, length, d_model, start)


@hidden("ch05-table", 0, 6, 4)
def _(table, length, d_model, start):
    "no position at all: (0, d)"
    judge_halves(table, length, d_model, start)


@hidden("ch05-table", 4, 10, 9, 2.5)
def _(table, length, d_model, start, base):
    "a small base"
    judge_halves(table, length, d_model, start, base)


@hidden("ch05-table", 3, 16, 0, 500_000.0)
def _(table, length, d_model, start, base):
    "a large base"
    judge_halves(table, length, d_model, start, base)


@hidden("ch05-table", 3, 16, 1_000_000)
def _(table, length, d_model, start):
    "a million positions on"
    judge_halves(table, length, d_model, start)


# Four million numbers: 0.2 s at once, more than the time of an exercise one by one.
# The last case, so that an answer that runs out of time has been judged by all others.
@hidden("ch05-table", 8192, 512, 11)
def _(table, length, d_model, start):
    "no loops: four million numbers in time"
    right = right_halves(length, d_model, start).float()
    # a table in single precision is off by 1e-3 at the end of this one
    expect(table, right, hint="expected the same formula here", tolerance=1e-2)


# ---- the rotation matrix -----------------------------------------------------

for _steps, _width in ((1, 4), (2, 2), (-1, 2), (7, 16), (-40, 10), (200, 6), (0, 2)):

    @hidden("ch05-shift-matrix", _steps, _width)
    def _(matrix, steps, d_model):
        "other steps and widths"
        judge_shift(matrix, steps, d_model)


# ---- learned positions that refuse -------------------------------------------


@hidden("ch05-learned", draw(3, 5, 2, seed=800), draw(13, 2, seed=801), 4)
def _(y, x, table, start):
    "other shapes"
    judge_learned(y, x, table, start)


@hidden("ch05-learned", draw(4, 4, 4, seed=802), draw(9, 4, seed=803), 1)
def _(y, x, table, start):
    "all axes of one length"
    judge_learned(y, x, table, start)


@hidden("ch05-learned", draw(1, 1, 3, seed=804), draw(1, 3, seed=805), raises=True)
def _(y, x, table):
    "one vector, one position"
    judge_learned(y, x, table)


@hidden("ch05-learned", draw(2, 1, 3, seed=806), draw(6, 3, seed=807), 5, raises=True)
def _(y, x, table, start):
    "one vector, on the last row of six"
    judge_learned(y, x, table, start)


@hidden("ch05-learned", draw(2, 6, 3, seed=808), draw(6, 3, seed=809), 0, raises=True)
def _(y, x, table, start):
    "exactly as many positions as there are"
    judge_learned(y, x, table, start)


for _dtype in (torch.float64, *HALVES):
    for _other in (_dtype, torch.float32):

        @hidden(
            "ch05-learned",
            draw(2, 3, 5, seed=810, dtype=_dtype),
            draw(7, 5, seed=811, dtype=_other),
            3,
        )
        def _(y, x, table, start):
            "other precisions, and a table of the same or another one"
            judge_learned(y, x, table, start)


# shape of x, number of positions, start, and what is asked
_TOO_FAR = (
    ((1, 18, 2), 12, 0, "more vectors than positions"),
    ((3, 13, 4), 12, 0, "one too many"),
    ((2, 5, 3), 24, 20, "one too far, from a start that fits"),
    ((2, 1, 3), 16, 16, "one vector, just behind the end"),
    ((2, 1, 3), 16, 40, "one vector, far behind the end"),
    ((1, 6, 2), 15, 14, "one row is left"),
    ((2, 1, 3), 16, -1, "a start of −1, and one vector"),
    ((2, 4, 3), 16, -4, "a start of −4: all before the beginning"),
    ((2, 7, 3), 16, -3, "a start of −3: a part before the beginning"),
)


def _declare_refused(shape, max_len, start, line) -> None:
    x, table = draw(*shape, seed=820), draw(max_len, shape[-1], seed=821)

    def judge(y, x, table, start):
        judge_refused(y, x, table, start)

    judge.__doc__ = f"{line}: refused"
    hidden("ch05-learned", x, table, start, raises=True)(judge)


for _asked in _TOO_FAR:
    _declare_refused(*_asked)


@hidden(
    "ch05-learned",
    draw(3, 2, 3, seed=830, dtype=torch.float64),
    draw(5, 3, seed=831, dtype=torch.float64),
    3,
    gradients=True,
)
def _(result, x, table, start):
    "gradients, up to the last row"
    expect_gradients(
        result,
        lambda x, table: right_learned(x, table, start),
        *(x, table),
        names="x table",
        hint="is something detached, or copied, on the way?",
    )


# ---- only the distance counts ------------------------------------------------

_BUCKETS = "torch.tensor([0.5, -1.0, 2.0, 0.25, 1.5])"

# score, width -> does it depend on the distance alone, and what fools an answer
_SCORES = {
    ("(q * k).sum()", 3): (True, "a score without positions does not change either"),
    ("(q * k).sum() - 0.25 * abs(p - r)", 5): (True, "it falls with the distance"),
    ("(q * k).sum() - 5.0 * (p < r)", 2): (True, "what comes later is p < r"),
    ("(q * k).sum() / (1 + (p - r) ** 2)", 1): (True, "it is divided by 1 + (p − r)²"),
    (f"(q * k).sum() + {_BUCKETS}[max(-2, min(2, p - r)) + 2]", 4): (
        True,
        "a table of distances, clamped at ±2",
    ),
    ("(turn(q, p) * turn(k, r)).sum() / len(q) ** 0.5", 16): (True, "is it rounding?"),
    ("(pe(q, p) * pe(k, r)).sum()", 8): (
        True,
        "PE(p) · PE(r) is a sum of cosines of the distance; is it rounding?",
    ),
    ("(q * k).sum() + 0.01 * p", 4): (
        False,
        "a small difference is a difference: allow only for rounding, 1e-3 or so",
    ),
    ("(q * k).sum() + 0.05 * (p + r)", 3): (
        False,
        "p + r is no distance: are both positions moved the same way?",
    ),
    ("(q * k).sum() * (1 + 0.1 * r)", 3): (False, "it depends on r"),
    ("(turn(q, p) * turn(k, -r)).sum()", 6): (
        False,
        "turned in opposite senses, p + r remains",
    ),
    ("(q * k).sum() + p % 2", 2): (
        False,
        "an even shift hides it: try several shifts",
    ),
    ("(q * k).sum() + 0.1 * p * (p < r)", 4): (
        False,
        "only where p < r: try positions in either order",
    ),
    ("(q * k).sum() + 0.1 * p * (p > r)", 4): (
        False,
        "only where p > r: try positions in either order",
    ),
    ("(q * k).sum() + 0.1 * p * (p - r)", 4): (
        False,
        "only where p and r differ: try positions that do",
    ),
    ("(q * k).sum() + 0.1 * p * (abs(p - r) > 45)", 3): (
        False,
        "only where p and r are far apart: try positions from the whole range",
    ),
    ("(q * k).sum() + 0.1 * p * (q - k).sum()", 4): (
        False,
        "only where q and k differ: draw each for itself",
    ),
    ("(q * k).sum() + 0.1 * p * (q[0] > 0)", 2): (
        False,
        "only for some vectors: try several",
    ),
    ("(q * k).sum() + 0.1 * p * (k.sum() < 0)", 2): (
        False,
        "only for some vectors: try several",
    ),
    ("(q * k).sum() + 0.1 * max(p - 30, 0)", 4): (
        False,
        "only beyond position 30: try positions up to 100",
    ),
    ("((q + pe(q, p)) * (k + pe(k, r))).sum()", 2): (
        False,
        "sinusoids are added, so what stands there counts too",
    ),
}


def _declare(expression: str, width: int, right: bool, hint: str) -> None:
    def judge(verdict, score, width):
        judge_distance(verdict, right, hint)

    judge.__doc__ = f"{expression}: {right}"
    hidden("ch05-relative", score(expression), width)(judge)


for (_expression, _width), (_right, _hint) in _SCORES.items():
    _declare(_expression, _width, _right, _hint)
