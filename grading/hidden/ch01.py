"""Hidden cases of the exercises of chapter 01: other shapes, dtypes, and corners."""

import torch

from annotated.checks import expect
from annotated.checks.ch01 import (
    judge_alignment,
    judge_scores,
    judge_tempered,
    right_scores,
    scores_arguments,
)
from annotated.checks.material import draw
from grading.hidden import hidden

HALVES = torch.float16, torch.bfloat16

# ---- additive scores ---------------------------------------------------------


@hidden(
    "ch01-additive-scores", *scores_arguments(3, t=4, s=2, widths=(3, 5, 2), seed=100)
)
def _(scores, queries, keys, W, U, v):
    "more queries than keys"
    judge_scores(scores, queries, keys, W, U, v)


@hidden(
    "ch01-additive-scores",
    *scores_arguments(2, 3, t=2, s=4, widths=(3, 5, 6), seed=110),
)
def _(scores, queries, keys, W, U, v):
    "two batch axes"
    judge_scores(scores, queries, keys, W, U, v)


@hidden(
    "ch01-additive-scores", *scores_arguments(1, t=1, s=1, widths=(3, 2, 4), seed=120)
)
def _(scores, queries, keys, W, U, v):
    "one source, one query, one key"
    judge_scores(scores, queries, keys, W, U, v)


@hidden(
    "ch01-additive-scores",
    *scores_arguments(2, t=3, s=5, widths=(4, 7, 6), dtype=torch.float64, seed=130),
)
def _(scores, queries, keys, W, U, v):
    "float64 stays float64"
    judge_scores(scores, queries, keys, W, U, v)


for _dtype in HALVES:

    @hidden(
        "ch01-additive-scores",
        *scores_arguments(2, t=3, s=5, widths=(2, 3, 2), dtype=_dtype, seed=140),
    )
    def _(scores, queries, keys, W, U, v):
        "half precision"
        judge_scores(scores, queries, keys, W, U, v)


# A million pairs: 0.1 s at once, more than the time of a cell one by one. The last
# case, so that an answer that runs out of time has been judged by all others.
@hidden(
    "ch01-additive-scores",
    *scores_arguments(4, t=512, s=512, widths=(2, 3, 4), seed=150),
)
def _(scores, queries, keys, W, U, v):
    "no loops: a million pairs in time"
    right = right_scores(queries, keys, W, U, v)
    expect(scores, right, hint="expected v · tanh(W q + U k) here too", tolerance=1e-4)


# ---- masked alignment --------------------------------------------------------


@hidden("ch01-mask-padding", draw(2, 2, 2, seed=200), torch.tensor([1, 2]))
def _(alignment, energies, lengths):
    "as many sources as queries as positions"
    judge_alignment(alignment, energies, lengths)


@hidden("ch01-mask-padding", draw(1, 3, 6, seed=201), torch.tensor([4]))
def _(alignment, energies, lengths):
    "a batch of one"
    judge_alignment(alignment, energies, lengths)


@hidden("ch01-mask-padding", draw(2, 3, 4, seed=202), torch.tensor([0, 0]))
def _(alignment, energies, lengths):
    "nothing but padding"
    judge_alignment(alignment, energies, lengths)


@hidden("ch01-mask-padding", draw(3, 1, 5, seed=203), torch.tensor([5, 5, 5]))
def _(alignment, energies, lengths):
    "no padding at all"
    judge_alignment(alignment, energies, lengths)


@hidden("ch01-mask-padding", 100 * draw(2, 3, 5, seed=204), torch.tensor([3, 5]))
def _(alignment, energies, lengths):
    "large energies"
    judge_alignment(alignment, energies, lengths)


@hidden("ch01-mask-padding", draw(2, 3, 5, seed=205) - 2e10, torch.tensor([3, 4]))
def _(alignment, energies, lengths):
    "energies far below those that are often filled in"
    judge_alignment(alignment, energies, lengths)


for _dtype in (torch.float64, *HALVES):

    @hidden(
        "ch01-mask-padding",
        draw(3, 2, 5, seed=206, dtype=_dtype),
        torch.tensor([2, 0, 5]),
    )
    def _(alignment, energies, lengths):
        "other precisions"
        judge_alignment(alignment, energies, lengths)


@hidden(
    "ch01-mask-padding",
    draw(2, 3, 5, seed=207),
    torch.tensor([2, 4], dtype=torch.int32),
)
def _(alignment, energies, lengths):
    "lengths of another integer type"
    judge_alignment(alignment, energies, lengths)


# ---- temperature -------------------------------------------------------------


@hidden("ch01-temper", draw(3, 2, 6, seed=300), 0.3)
def _(alignment, energies, tau):
    "another temperature"
    judge_tempered(alignment, energies, tau)


@hidden("ch01-temper", draw(1, 4, 4, seed=301), 5)
def _(alignment, energies, tau):
    "a whole number"
    judge_tempered(alignment, energies, tau)


@hidden("ch01-temper", draw(2, 3, 5, seed=302), 1e9)
def _(alignment, energies, tau):
    "so hot that all keys count the same"
    judge_tempered(alignment, energies, tau)


@hidden(
    "ch01-temper",
    torch.tensor([[[2.0, 5.0, 5.0, 1.0], [3.0, 3.0, 3.0, 3.0], [0.0, 0.0, -1.0, 0.0]]]),
    0,
)
def _(alignment, energies, tau):
    "ties at τ = 0"
    judge_tempered(alignment, energies, tau)


@hidden("ch01-temper", torch.tensor([[[1.0, 1.0001, 0.9999], [2.0, 1.9, 2.001]]]), 0)
def _(alignment, energies, tau):
    "energies that are close at τ = 0"
    judge_tempered(alignment, energies, tau)


@hidden("ch01-temper", draw(2, 3, 4, seed=303) - 50.0, 0.0)
def _(alignment, energies, tau):
    "energies below 0 at τ = 0"
    judge_tempered(alignment, energies, tau)


@hidden("ch01-temper", 500 * draw(2, 3, 4, seed=304), 2.0)
def _(alignment, energies, tau):
    "large energies"
    judge_tempered(alignment, energies, tau)


for _dtype in (torch.float64, *HALVES):
    for _tau in (0.0, 0.5):

        @hidden("ch01-temper", draw(2, 3, 4, seed=305, dtype=_dtype), _tau)
        def _(alignment, energies, tau):
            "other precisions"
            judge_tempered(alignment, energies, tau)


@hidden("ch01-temper", 100 * draw(2, 3, 4, seed=306, dtype=torch.float16), 1e-3)
def _(alignment, energies, tau):
    "half precision and a small temperature"
    judge_tempered(alignment, energies, tau)
