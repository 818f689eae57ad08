"""Hidden cases of the exercises of chapter 07: other sizes, dtypes, and corners."""

import torch

from annotated.checks import Function
from annotated.checks.ch07 import (
    CURVED,
    MASKED,
    REAL,
    accumulated,
    judge_accumulated,
    judge_groups,
    judge_no_step,
    judge_peak,
    judge_schedule,
    judge_smoothed,
    judge_too_long,
    whole,
)
from annotated.checks.material import draw
from grading.hidden import hidden

INT32 = torch.int32

# ---- another schedule --------------------------------------------------------

for _line, _sizes in (
    ("the first step of a long climb", (1, 4000, 100_000, 7e-4, 1e-5)),
    ("in the climb, below the floor", (2, 50, 300, 1e-3, 5e-4)),
    ("the top of another climb", (64, 64, 65, 0.3, 0.1)),
    ("a single step after the warm-up", (65, 64, 65, 0.3, 0.1)),
    ("a climb of one step", (1, 1, 9, 0.7, 0.0)),
    ("after a climb of one step", (2, 1, 9, 0.7, 0.05)),
    ("no warm-up, after the first step", (2, 0, 6, 2.5, 0.5)),
    ("so far down that the wave is below the floor", (46, 6, 51, 0.9, 0.45)),
    ("three quarters of the way down", (150, 30, 190, 5e-4, 1e-4)),
    ("no warm-up, at the first step", (1, 0, 6, 2.5, 0.5)),
    ("no warm-up, at the last step", (6, 0, 6, 2.5, 0.5)),
    ("a lone step without warm-up", (1, 0, 1, 0.9, 0.3)),
    ("after a lone step", (2, 0, 1, 0.9, 0.3)),
    ("twice as far as the end", (400, 40, 200, 5e-4, 1e-4)),
    ("nothing but warm-up, and what comes then", (31, 30, 30, 0.8, 0.2)),
    ("within nothing but warm-up", (29, 30, 30, 0.8, 0.2)),
    ("a floor as high as the peak", (17, 5, 50, 0.6, 0.6)),
    ("a third of the way down", (22, 7, 52, 6.0, 1.0)),
):

    def _judge(rate, step, warmup, total, peak, floor):
        judge_schedule(rate, step, warmup, total, peak, floor)

    _judge.__doc__ = _line
    hidden("ch07-schedule", *_sizes)(_judge)


@hidden("ch07-schedule", 90, 10, 60, 0.5)
def _(rate, step, warmup, total, peak):
    "no floor given, after the end"
    judge_schedule(rate, step, warmup, total, peak, 0.0)


for _line, _sizes in (
    ("a step that is negative", (-2, 5, 20, 1.0, 0.1)),
    ("no step and no warm-up", (0, 0, 20, 1.0, 0.1)),
):

    def _refusal(result, step, warmup, total, peak, floor):
        judge_no_step(result, step, warmup, total, peak, floor)

    _refusal.__doc__ = _line
    hidden("ch07-schedule", *_sizes, raises=True)(_refusal)

# ---- where is the peak? ------------------------------------------------------

for _line, _sizes in (
    ("other sizes", (128, 400, 0.5, 2.0)),
    ("a power between", (72, 250, 0.35, 1.5)),
    ("a steep fall", (36, 12, 2, 0.1)),
    ("next to no fall", (300, 5000, 0.01, 1.0)),
    ("a warm-up of one step", (25, 1, 0.7, 4.0)),
    ("a width of 1", (1, 30, 1.5, 1.0)),
    ("a factor that no root undoes", (49, 640, 0.3, 11.0)),
    ("a long warm-up", (1024, 60_000, 0.9, 7.0)),
):

    def _judge_peak(result, d_model, warmup, a, factor):
        judge_peak(result, d_model, warmup, a, factor)

    _judge_peak.__doc__ = _line
    hidden("ch07-peak", *_sizes)(_judge_peak)


@hidden("ch07-peak", 200, 90, 1.25)
def _(result, d_model, warmup, a):
    "no factor, another power"
    judge_peak(result, d_model, warmup, a)


# ---- smoothing with forbidden symbols ----------------------------------------


def _smooth(line: str, target: torch.Tensor, *rest) -> None:
    def judge(rows, target, size, smoothing, forbidden):
        judge_smoothed(rows, target, size, smoothing, forbidden)

    judge.__doc__ = line
    hidden("ch07-smoothing", target, *rest)(judge)


_smooth("a lone place", whole([2]), 7, 0.15, [6, 1])
_smooth("a lone place that is forbidden", whole([6]), 7, 0.15, [6, 1])
_smooth("a column", whole([1], [4], [0]), 8, 0.1, [0, 5, 2])
_smooth("all axes of one length", whole([1, 0, 2], [2, 2, 1], [0, 1, 0]), 3, 0.3, [2])
_smooth("nobody to share, twice", whole([3, 1], [0, 3]), 4, 0.45, [0, 2, 1])
_smooth("no smoothing", whole([3, 0, 5], [2, 4, 1]), 6, 0.0, [0, 4])
_smooth("no smoothing, nobody to share", whole([1, 0]), 2, 0.0, [0])
_smooth("strong smoothing", whole([3, 7, 9, 2]), 10, 0.9, [9, 8])
_smooth("one symbol to share with", whole([0, 1, 2, 3]), 4, 0.35, [1, 3])
_smooth("everything forbidden", whole([2, 0], [1, 1]), 3, 0.2, [0, 1, 2])
_smooth("all but one forbidden, and it stands at the end", whole([4, 2]), 5, 0.2,
        [3, 0, 2, 1])  # fmt: skip
_smooth("a vocabulary of one symbol", whole([0, 0], [0, 0]), 1, 0.4, [])
_smooth("two symbols, none forbidden", whole([0], [1]), 2, 0.25, [])
_smooth("int32 and nothing forbidden", whole([5, 1, 2], dtype=INT32), 6, 0.2, [])
_smooth("int32, all forbidden", whole([1], [0], dtype=INT32), 2, 0.2, [1, 0])
_smooth("a large vocabulary", whole([17, 999, 3], [0, 450, 2]), 1000, 0.1,
        [0, 1, 2, 999])  # fmt: skip

# ---- batches by tokens -------------------------------------------------------

for _line, _lengths, _tokens in (
    ("a lone sequence", [5], 9),
    ("a lone sequence that just fits", [9], 9),
    ("no sequence, no place", [], 0),
    ("nothing but threes", [3] * 10, 12),
    ("nothing but fours, with a rest", [4] * 7, 11),
    ("one place each", [1, 1, 1, 1, 1], 1),
    ("everything in one group", [6, 2, 4, 1, 5], 30),
    ("everything but one in one group", [6, 2, 4, 1, 5], 29),
    ("from long to short", [9, 8, 7, 6, 5, 4, 3, 2, 1], 18),
    ("ties at the edge of a group", [5, 5, 2, 5, 2, 3, 2, 5, 3], 10),
    ("each longer than the one before", [3, 4, 7, 8, 5, 9, 6, 2], 18),
    ("a group whose longest doubles it", [1, 1, 1, 6, 1, 12, 2], 12),
    ("long ones stand alone", [11, 13, 12, 2, 11], 15),
    ("two hundred sequences", [(7 * i) % 31 + 1 for i in range(200)], 100),
):

    def _judge_groups(groups, lengths, tokens):
        judge_groups(groups, lengths, tokens)

    _judge_groups.__doc__ = _line
    hidden("ch07-token-batches", _lengths, _tokens)(_judge_groups)

for _line, _lengths, _tokens in (
    ("one place too many", [24, 2, 2], 23),
    ("the only one is too long", [72], 51),
    ("no place at all", [41], 0),
):

    def _too_long(result, lengths, tokens):
        judge_too_long(result, lengths, tokens)

    _too_long.__doc__ = _line
    hidden("ch07-token-batches", _lengths, _tokens, raises=True)(_too_long)

# ---- accumulation ------------------------------------------------------------

CUBES = Function("((batch * parameter) ** 3).mean()", "parameter, batch")
PLAIN = Function("(batch.exp() * parameter.sin()).mean()", "parameter, batch")
MATRIX = Function(REAL.format("(batch * parameter.sum()).cos()"), "parameter, batch")
ONE = [torch.tensor([[1.5, 2.0, 0.5]])]
SEVERAL = [
    torch.tensor([[1.0, 3.0, 0.0], [0.5, 0.0, 0.0]]),
    torch.tensor([[2.0, 1.0]]),
    torch.tensor([[0.0, 0.0, 0.0]]),
    torch.tensor([[0.25, 4.0, 1.0, 2.0], [3.0, 1.5, 0.0, 0.0], [2.5, 0.0, 0.0, 0.0]]),
]
COUNTS = [3, 2, 0, 7]
EQUAL = list(draw(3, 2, 4, seed=300))


def _accumulate(line: str, *arguments) -> None:
    def judge(told, model_loss, parameter, old, batches, counts):
        judge_accumulated(told, model_loss, parameter, old, batches, counts)

    judge.__doc__ = line
    hidden("ch07-accumulate", *arguments, through=accumulated)(judge)


_accumulate("a single batch", CUBES, torch.tensor([0.5]), None, ONE, [3])
_accumulate(
    "a single batch and an old gradient",
    *(CUBES, torch.tensor([[0.5]]), torch.tensor([[3.0]]), ONE, [3]),
)
_accumulate("batches of one size", PLAIN, torch.tensor(0.75), None, EQUAL, [8, 8, 8])
_accumulate("a matrix", MATRIX, draw(2, 3, seed=301), None, SEVERAL, COUNTS)
_accumulate(
    "a matrix with an old gradient",
    *(CURVED, draw(2, 2, seed=302), draw(2, 2, seed=303), SEVERAL, COUNTS),
)
_accumulate(
    "double precision, the last batch empty",
    *(CURVED, draw(4, seed=304, dtype=torch.float64), None),
    *([SEVERAL[1], SEVERAL[3], SEVERAL[2]], [2, 7, 0]),
)
_accumulate(
    "double precision, an old gradient",
    *(MASKED, torch.tensor([1.25]).double(), torch.tensor([-2.0]).double()),
    *(SEVERAL, COUNTS),
)
_accumulate(
    "an empty batch that is wide, with an old gradient",
    *(MASKED, torch.tensor([0.25]), torch.tensor([1.0])),
    *([SEVERAL[0], torch.zeros(3, 5), SEVERAL[1]], [3, 0, 2]),
)
_accumulate(
    "two batches that are the same",
    *(CURVED, draw(3, seed=305), None, [SEVERAL[0], SEVERAL[0], ONE[0]], [3, 3, 3]),
)
_accumulate(
    "half precision",
    *(MASKED, torch.tensor(0.5, dtype=torch.bfloat16), None, SEVERAL, COUNTS),
)
