"""Hidden cases of the exercises of chapter 08: other shapes, dtypes, and corners."""

import torch

from annotated.checks import Function
from annotated.checks.ch08 import (
    ids,
    judge_exact,
    judge_first_error,
    judge_greedy,
    judge_reverse,
    remembering,
    scripted,
)
from grading.hidden import hidden

INT = torch.int32

# ---- greedy decoding with early stop -----------------------------------------


def _greedy(line: str, logits: Function, *numbers: int) -> None:
    def judge(written, next_logits, b, start, end, pad, most):
        judge_greedy(written, next_logits, b, start, end, pad, most)

    judge.__doc__ = line
    hidden("ch08-greedy", logits, *numbers)(judge)


def _script(line: str, rows: list, v: int, start: int, end: int, pad: int) -> None:
    logits = scripted(rows, v, start, end, pad)
    _greedy(line, logits, len(rows), start, end, pad, len(rows[0]))


_script("a lone row", [[5, 6, 3, 3, 4, 1]], 7, 2, 3, 0)
_script("all end at once, with the first symbol", [[4, 5], [4, 6]], 8, 1, 4, 0)
_script("one symbol at most", [[4], [3], [0]], 5, 1, 3, 2)
_script("one row, one symbol, no end", [[6]], 9, 0, 1, 2)
_script("the very last symbol ends", [[3, 3, 6], [6, 3, 3], [3, 6, 6]], 7, 2, 6, 1)
_script("nobody ends", [[3, 4, 3, 4], [0, 4, 0, 4]], 6, 5, 1, 2)
_script("ids that begin with the end", [[2, 3, 0, 1], [0, 3, 3, 1]], 4, 3, 0, 1)
_script(
    "start and end the same, and a padding written",
    [[4, 6, 2, 5, 3], [6, 4, 4, 4, 2], [3, 5, 6, 4, 2]],
    *(7, 2, 2, 6),
)
_script(
    "who writes a padding goes on, also when nobody else does",
    [[4, 3, 0, 6, 6], [5, 0, 0, 4, 3], [3, 6, 6, 6, 6]],
    *(7, 1, 3, 0),
)
_script("as many rows as symbols", [[4, 1, 5], [5, 5, 1], [1, 4, 4]], 6, 3, 1, 2)
for _b, _v, _start, _end, _pad, _most in (
    (1, 9, 2, 7, 0, 12),
    (4, 11, 1, 10, 0, 8),
    (5, 6, 3, 4, 5, 20),
):
    _greedy(
        "other rules and numbers",
        remembering(_b, _v, _start, _end, _pad, _most),
        *(_b, _start, _end, _pad, _most),
    )

# ---- exact match -------------------------------------------------------------


def _exact(line: str, hint: str, written, target, pad: int, end: int) -> None:
    def judge(share, written, target, pad, end):
        judge_exact(share, written, target, pad, end, hint)

    judge.__doc__ = line
    hidden("ch08-exact", written, target, pad, end)(judge)


_exact(
    "a batch of one that is right", "it is right",
    ids("4 5 6 2 7"), ids("4 5 6 2"), 0, 2,
)  # fmt: skip
_exact("a batch of one that is wrong", "it is wrong", ids("4 5"), ids("4 6"), 0, 2)
_exact(
    "rows of one symbol", "two of the three are right",
    ids("2", "5", "0"), ids("2", "5", "5"), 0, 2,
)  # fmt: skip
_exact(
    "a padding in front of the end", "one of the three is right: padding in a text is "
    "a symbol that is wrong or right like others",
    ids("3 0 2 0", "3 0 2 2", "0 3 2 0"), ids("3 2 0 0", "3 0 2 0", "3 2 0 0"), 0, 2,
)  # fmt: skip
_exact(
    "an inner padding in rows that never end", "one of the three is right: the text "
    "goes on behind a padding in between",
    ids("4 0 5 0", "4 0 5 6", "0 3 0 0"), ids("4 0 6", "4 0 5", "0 3 0"), 0, 2,
)  # fmt: skip
_exact(
    "shorter than the target", "one of the four is right",
    ids("3 4", "3 2", "5 5", "5 2"), ids("3 4 2", "3 2 0", "5 5 5", "5 5 2"), 0, 2,
)  # fmt: skip
_exact(
    "other ids, int32", "two of the three are right",
    ids("7 0 3 3", "1 0 3 1", "0 0 8 3", dtype=INT),
    ids("7 0 3 8 8 8", "1 0 3 8 8 8", "0 8 0 3 8 8", dtype=INT), 8, 3,
)  # fmt: skip
_exact(
    "nothing written but padding", "one of the three is right",
    ids("6 6 6", "6 6 6", "6 1 6"), ids("6 6", "6 1", "1 6"), 6, 1,
)  # fmt: skip
_exact("all wrong", "none is right", ids("4 3 2", "2 3 4"), ids("3 4 2", "4 2 3"), 0, 2)

# ---- reverse instead of copy -------------------------------------------------

for _line, _source, _pad in (
    ("a batch of one", ids("1 4 2 9 3 5 7"), 0),
    ("a batch of one, padded", ids("3 8 6 0 0"), 0),
    ("rows of one symbol", ids("1", "1"), 0),
    ("nothing but start symbols", ids("4 7 7", "4 7 7"), 7),
    ("one symbol to turn", ids("1 5", "1 0", "1 3"), 0),
    ("as many rows as places", ids("1 2 3 4", "1 4 2 0", "1 3 0 0", "1 2 4 3"), 0),
    ("int32, another padding", ids("0 3 5 8 2 2", "0 5 0 2 2 2", dtype=INT), 2),
    ("a start of 0, a padding of 1", ids("0 4 5 1 1", "0 3 0 0 2", "0 0 1 1 1"), 1),
    ("nothing but the start symbol and one more", ids("3 3 8 3", "3 8 3 0"), 0),
    ("the longest row comes last", ids("5 6 0 0 0 0", "5 9 8 0 0 0", "5 1 2 3 4 6"), 0),
):

    def _judge(result, source, pad):
        judge_reverse(result, source, pad)

    _judge.__doc__ = _line
    hidden("ch08-reverse", _source, _pad)(_judge)

# ---- where does it go wrong first? -------------------------------------------

for _line, _written, _target, _pad in (
    ("a batch of one", ids("4 5 6 6 8"), ids("4 5 6 7 9"), 0),
    ("a batch of one, no error", ids("4 5 6"), ids("4 5 6"), 0),
    ("rows of one symbol", ids("3", "4", "5"), ids("3", "5", "0"), 0),
    ("the first symbol alone is wrong", ids("3 5 6", "4 4 4"), ids("2 5 6", "5 4 4"),
     0),
    ("all is wrong", ids("1 2 3 4", "4 3 2 1"), ids("2 3 4 5", "3 2 1 4"), 0),
    ("the last symbol alone is wrong", ids("6 4 2 2", "1 8 8 7"), ids("6 4 2 5",
     "1 8 8 9"), 0),
    ("as many rows as places", ids("2 2 4", "5 1 4", "3 3 3"), ids("2 3 4", "5 1 4",
     "4 0 0"), 0),
    ("int32, another padding", ids("3 0 4 7", "7 6 1 0", "2 2 7 7", dtype=INT),
     ids("3 5 4 7", "2 6 7 7", "2 2 7 7", dtype=INT), 7),
    ("a padding of 5, zeros that are wrong", ids("0 1 0 3 5", "5 0 0 2 2"),
     ids("5 1 2 3 5", "5 5 0 0 2"), 5),
    ("padding in between", ids("8 3 9 9 1 4", "2 9 3 9 9 9"), ids("0 3 0 9 2 4",
     "2 0 3 0 0 0"), 0),
):  # fmt: skip

    def _judge(places, written, target, pad):
        judge_first_error(places, written, target, pad)

    _judge.__doc__ = _line
    hidden("ch08-first-error", _written, _target, _pad)(_judge)
