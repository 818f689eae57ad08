"""Public checks of the exercises of chapter 05; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name. Angles are in double precision.
"""

import re

import torch
from torch import Tensor

from annotated.checks import Function, Raised, expect, public
from annotated.checks.material import draw, expect_gradients, tolerance_of

NEAR = 1e-4  # what a table or a matrix in single precision must come to

# ---- the table without loops -------------------------------------------------


def right_halves(length, d_model, start=0, base=10000.0):
    turned = [base ** (-2 * i / d_model) for i in range(d_model // 2)]
    angles = torch.outer(
        torch.arange(start, start + length, dtype=torch.float64),
        torch.tensor(turned, dtype=torch.float64),
    )
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


def judge_halves(table, length, d_model, start=0, base=10000.0):
    positions = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    half, wide = d_model // 2, torch.float64
    pairs, entries = torch.arange(half, dtype=wide), torch.arange(d_model, dtype=wide)
    right = right_halves(length, d_model, start, base)
    sines, cosines = right[:, :half], right[:, half:]

    def halves(angles):
        return torch.cat([angles.sin(), angles.cos()], dim=1)

    every = positions * base ** (-2 * entries / d_model)  # (t, d), i from 0 to d − 1
    mistakes = {
        "sines and cosines alternate, as in the chapter; wanted is all sines first": (
            torch.stack([sines, cosines], dim=-1).flatten(1)
        ),
        "the cosines come first; the sines should": torch.cat([cosines, sines], dim=1),
        "the exponent is i/d; pair i turns by base^(−2i/d) a position": (
            halves(positions * base ** (-pairs / d_model))
        ),
        "i runs up to d − 1; there are only d/2 pairs, i = 0 … d/2 − 1": (
            torch.cat([every.sin()[:, :half], every.cos()[:, half:]], dim=1)
        ),
        "i runs up to d − 1 with an exponent of i/d; pair i has 2i/d": (
            torch.cat(
                [
                    (positions * base ** (-entries / d_model)).sin()[:, :half],
                    (positions * base ** (-entries / d_model)).cos()[:, half:],
                ],
                dim=1,
            )
        ),
        "the angle is p · base^(2i/d): divide, the later pairs turn slower": (
            halves(positions * base ** (2 * pairs / d_model))
        ),
        "your positions begin with 0 (is start used?)": (
            right_halves(length, d_model, 0, base)
        ),
        "your positions are one too high: the first row is that of position start": (
            right_halves(length, d_model, start + 1, base)
        ),
        "the base is not used: it is not always 10000": (
            right_halves(length, d_model, start)
        ),
        "start is the position of the first row, and length the number of rows": (
            right[: max(length - start, 0)]
        ),
        "the table is transposed: a row is a position": right.mT,
        "only the sines are there: append the cosines": sines,
    }
    if half > 1:
        mistakes[
            "the exponent is i/(d/2 − 1), as in tensor2tensor; wanted is the 2i/d of "
            "the paper"
        ] = halves(positions * base ** (-pairs / (half - 1)))
    hint = "expected sin(p / base^(2i/d)), all of them, and then the cosines"
    if start > 10_000:
        hint = (
            "far from 0 the angles need double precision: float32 holds seven digits, "
            "and those before the point use them up"
        )
    expect(
        table,
        right.float(),
        hint=hint,
        mistakes={name: wrong.float() for name, wrong in mistakes.items()},
        tolerance=NEAR,
    )


@public("ch05-table", 4, 6)
def _(table, length, d_model):
    "four positions, width 6"
    judge_halves(table, length, d_model)


@public("ch05-table", 3, 8, 5)
def _(table, length, d_model, start):
    "positions 5, 6 and 7"
    judge_halves(table, length, d_model, start)


@public("ch05-table", 5, 4, 2, 50.0)
def _(table, length, d_model, start, base):
    "another base"
    judge_halves(table, length, d_model, start, base)


@public("ch05-table", 2, 10, 300_000)
def _(table, length, d_model, start):
    "position 300000: the angles are exact there too"
    judge_halves(table, length, d_model, start)


# ---- the rotation matrix -----------------------------------------------------


def right_shift(steps, d_model):
    """From the definition: turn the angle of each pair, and read off the columns."""
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        angle = torch.tensor(steps * 10000.0 ** (-2 * i / d_model), dtype=torch.float64)
        matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = angle.cos()
        matrix[2 * i, 2 * i + 1] = angle.sin()
        matrix[2 * i + 1, 2 * i] = -angle.sin()
    return matrix


def judge_shift(matrix, steps, d_model):
    right = right_shift(steps, d_model)
    half = d_model // 2
    pairs = torch.arange(half, dtype=torch.float64)

    def from_angles(angles):
        """Blocks of these angles along the diagonal."""
        c, s = angles.cos(), angles.sin()
        blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
        return torch.block_diag(*blocks)

    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    wrong_way = "it turns the wrong way, PE(p − steps) comes out: the sign of the sines"
    wrong_way += (
        ", a transpose, or the sign of steps" if steps < 0 else ", or a transpose"
    )
    mistakes = {
        wrong_way: right.mT,
        "sines and cosines alternate in the chapter's table: pair i stands at 2i and "
        "2i + 1, not at i and i + d/2": right[order][:, order],
        "every pair has an angle of its own; yours all turn like the first": (
            from_angles(torch.full_like(pairs, float(steps)))
        ),
        "the exponent is i/d; pair i turns by 10000^(−2i/d) a position": (
            from_angles(steps * 10000.0 ** (-pairs / d_model))
        ),
        "the angle is steps · 10000^(2i/d): divide, the later pairs turn slower": (
            from_angles(steps * 10000.0 ** (2 * pairs / d_model))
        ),
        "no sine of a block has a minus: a rotation has one of each sign": (
            torch.where(right < right.T, right.T, right)
        ),
        "both sines of a block have a minus: a rotation has one of each sign": (
            torch.where(right > right.T, right.T, right)
        ),
        "this turns by one step; by `steps` is what is asked": right_shift(1, d_model),
        "these are the blocks alone: put them along the diagonal of a (d, d)": (
            torch.stack([right[i : i + 2, i : i + 2] for i in range(0, d_model, 2)])
        ),
        "sine and cosine are exchanged: for 0 steps it should be the identity": (
            from_angles(torch.pi / 2 - steps * 10000.0 ** (-2 * pairs / d_model))
        ),
    }
    if half > 1:
        mistakes["the exponent is i/(d/2 − 1); pair i has 2i/d"] = from_angles(
            steps * 10000.0 ** (-pairs / (half - 1))
        )
    expect(
        matrix,
        right.float(),
        hint="M PE(p) should be PE(p + steps) for every p: try "
        "`table[steps:] - table[:-steps] @ M.T` for your M",
        mistakes={name: wrong.float() for name, wrong in mistakes.items()},
        tolerance=NEAR,
    )


@public("ch05-shift-matrix", 1, 2)
def _(matrix, steps, d_model):
    "one step, width 2: one block"
    judge_shift(matrix, steps, d_model)


@public("ch05-shift-matrix", 5, 6)
def _(matrix, steps, d_model):
    "five steps, width 6: each pair turns at its own speed"
    judge_shift(matrix, steps, d_model)


@public("ch05-shift-matrix", -3, 4)
def _(matrix, steps, d_model):
    "three steps back"
    judge_shift(matrix, steps, d_model)


@public("ch05-shift-matrix", 0, 8)
def _(matrix, steps, d_model):
    "no step at all: the identity"
    judge_shift(matrix, steps, d_model)


# ---- learned positions that refuse -------------------------------------------


def right_learned(x, table, start=0):
    rows = torch.stack([table[start + i] for i in range(x.shape[1])])
    return x + rows[None].to(x.dtype)


def judge_learned(y, x, table, start=0):
    """Positions that fit: the sum, and no refusal."""
    (b, t, d), max_len = x.shape, len(table)
    if isinstance(y, Raised):
        fits = f"positions {start} to {start + t - 1} fit into a table of {max_len}"
        if start + t == max_len:
            fits += ": its last is max_len − 1 (off by one?)"
        raise AssertionError(f"{fits}; your code raised {y.kind}: {y.message}")
    wide, rows = x.double(), table.double()
    right = wide + rows[start : start + t]
    mistakes = {
        "your positions begin with 0 (is start used?)": wide + rows[:t],
        "every position gets the row of the first: it needs its own": (
            wide + rows[start : start + 1]
        ),
        "these are rows of the table alone: add them to x": (
            rows[start : start + t].expand_as(wide)
        ),
        "these are rows of the table alone: add them to x, for every sequence": (
            rows[start : start + t]
        ),
        "the rows multiply x; they should be added": wide * rows[start : start + t],
        "x is multiplied by √d: here it is only added to": (
            wide * d**0.5 + rows[start : start + t]
        ),
        "x comes back as it was": wide,
    }
    if start + t < max_len:
        mistakes["your positions are one too high: the first is position start"] = (
            wide + rows[start + 1 : start + 1 + t]
        )
    if b == t:
        mistakes[
            "the rows run along the batch: the axis of positions is the second, "
            "rows (t, d) broadcast over the batch as they are"
        ] = wide + rows[start : start + t, None]
    if start:
        mistakes["the last rows of the table: start is counted from its beginning"] = (
            wide + rows[-t:]
        )
    expect(
        y,
        right.to(x.dtype),
        hint="expected x plus the rows start to start + t − 1 of the table",
        mistakes={name: wrong.to(x.dtype) for name, wrong in mistakes.items()},
        tolerance=tolerance_of(x.dtype),
    )


def judge_refused(y, x, table, start=0):
    """Positions that do not fit: a ValueError that says so."""
    t, max_len, last = x.shape[1], len(table), start + x.shape[1] - 1
    if not isinstance(y, Raised):
        raise AssertionError(_not_refused(y, x, table, start))
    if y.kind != "ValueError":
        raise AssertionError(_refused_otherwise(y))
    numbers = {int(number) for number in re.findall(r"\d+", y.message)}
    shown = y.message if len(y.message) < 150 else y.message[:150] + "…"
    if start < 0:
        if str(start) not in y.message.replace("−", "-"):
            raise AssertionError(
                f"the message should name start, {start} here; it is: {shown!r}"
            )
    elif max_len not in numbers:
        raise AssertionError(
            f"the message should name max_len, {max_len} here; it is: {shown!r}"
        )
    elif not numbers & {t, last, last + 1}:
        raise AssertionError(
            f"the message should name what does not fit, the length {t}, the last "
            f"position {last} or the end {last + 1}; it is: {shown!r}"
        )


def _not_refused(y, x, table, start) -> str:
    t, max_len = x.shape[1], len(table)
    where, wide, rows = torch.arange(start, start + t), x.double(), table.double()
    left = rows[max(start, 0) :][:t]
    returned = [
        ("it wraps around, to rows of the other end", wide + rows[where % max_len]),
        (
            "it clamps them, so that several share a row",
            wide + rows[where.clamp(0, max_len - 1)],
        ),
        ("an empty slice came of it, and an empty sum", wide[:, :0]),
        ("the vectors without a row are cut off", wide[:, : len(left)] + left),
        (
            "the vectors without a row stay as they were",
            torch.cat([wide[:, : len(left)] + left, wide[:, len(left) :]], dim=1),
        ),
    ]
    if start == max_len - 1:
        broadcast = "all get the last row: one row was left, and broadcast (or a clamp)"
        returned.insert(0, (broadcast, wide + rows[-1]))
    if t <= max_len:
        returned.append(("it takes the first rows instead", wide + rows[:t]))
        returned.append(("it takes the last rows instead", wide + rows[-t:]))
    said = f"positions {start} to {start + t - 1} are not all in a table of {max_len}"
    said += ", so raise; your code does not"
    for what, value in returned:
        if not isinstance(y, Tensor) or y.shape != value.shape:
            continue
        if torch.allclose(y.double(), value, atol=tolerance_of(x.dtype)):
            return f"{said}: {what}"
    return said


def _refused_otherwise(y) -> str:
    if y.kind == "AssertionError":
        return (
            "an assert is gone when Python runs with -O: "
            "`if …: raise ValueError(…)` stays"
        )
    return (
        f"your code raised {y.kind} ({y.message[:80]!r}): look at start and start + t "
        "before you use the table, and raise a ValueError in words of your own"
    )


@public("ch05-learned", draw(2, 4, 3, seed=50), draw(7, 3, seed=51))
def _(y, x, table):
    "four positions of seven"
    judge_learned(y, x, table)


@public("ch05-learned", draw(3, 3, 4, seed=52), draw(10, 4, seed=53), 5)
def _(y, x, table, start):
    "positions 5 to 7, as many sequences as positions"
    judge_learned(y, x, table, start)


@public("ch05-learned", draw(1, 3, 2, seed=54), draw(9, 2, seed=55), 6, raises=True)
def _(y, x, table, start):
    "positions 6 to 8 of 9: they just fit"
    judge_learned(y, x, table, start)


@public("ch05-learned", draw(2, 14, 3, seed=56), draw(11, 3, seed=57), 0, raises=True)
def _(y, x, table, start):
    "fourteen vectors, eleven positions: refused"
    judge_refused(y, x, table, start)


@public("ch05-learned", draw(2, 4, 3, seed=58), draw(11, 3, seed=59), 10, raises=True)
def _(y, x, table, start):
    "positions 10 to 13 of 11: refused, although one row is left"
    judge_refused(y, x, table, start)


@public("ch05-learned", draw(2, 3, 3, seed=60), draw(11, 3, seed=61), -5, raises=True)
def _(y, x, table, start):
    "a negative start: refused"
    judge_refused(y, x, table, start)


@public(
    "ch05-learned",
    draw(2, 3, 4, seed=62, dtype=torch.float16),
    draw(8, 4, seed=63),
    2,
)
def _(y, x, table, start):
    "half precision in, half precision out, with a table in float32"
    judge_learned(y, x, table, start)


@public("ch05-learned", draw(2, 3, 4, seed=64), draw(8, 4, seed=65), 3, gradients=True)
def _(result, x, table, start):
    "gradients reach x and the rows that were used"
    expect_gradients(
        result,
        lambda x, table: right_learned(x, table, start),
        *(x, table),
        names="x table",
        hint="is something detached, or copied, on the way?",
    )


# ---- only the distance counts ------------------------------------------------

# Angles of position p, for a vector of the width of x; sinusoids; and a vector turned.
ANGLES = "p * 10000.0 ** (-torch.arange(0, len(x), 2).double() / len(x))"
ENCODE = (
    f"lambda x, p: (lambda a: torch.stack([a.sin(), a.cos()], -1).flatten())({ANGLES})"
)
TURN = (
    "lambda x, p: (lambda x, y, a: torch.stack([x * a.cos() - y * a.sin(), "
    f"x * a.sin() + y * a.cos()], -1).flatten())(x[0::2], x[1::2], {ANGLES})"
)


def score(expression: str) -> Function:
    """A score of q, k at p, r; pe(x, p) and turn(x, p) may be used."""
    text = f"(lambda pe, turn: {expression})({ENCODE}, {TURN})"
    return Function(text, "q, k, p, r")


def judge_distance(verdict, right, hint):
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        raise AssertionError(
            "your function returns a tensor: bool(…) makes a plain True or False of it"
        )
    expect(verdict, right, hint=hint)


MOVED = (
    "it depends on p − r alone: move both positions by the same number, and compare "
    "score(q, k, p, r) with score(q, k, p + c, r + c), for the same q and k"
)
ROUNDING = (
    "it depends on p − r alone, but its last digits differ: compare with a tolerance, "
    "torch.allclose(…, atol=1e-3), not with =="
)
CONTENT = (
    "it does not: q · PE(r) and PE(p) · k are part of it, and change when both "
    "positions move; are your q and k random, and not zero?"
)
ONE_TURNED = (
    "it does not: only q is turned, so p counts and r does not; do you move both "
    "positions, by shifts other than 0?"
)


@public("ch05-relative", score("(q * k).sum() - 0.5 * (p - r)"), 4)
def _(verdict, score, width):
    "q·k − (p − r)/2: True"
    judge_distance(verdict, True, MOVED)


@public("ch05-relative", score("(turn(q, p) * turn(k, r)).sum()"), 6)
def _(verdict, score, width):
    "q and k turned by their positions, the rotary score: True"
    judge_distance(verdict, True, ROUNDING)


@public("ch05-relative", score("((q + pe(q, p)) * (k + pe(k, r))).sum()"), 8)
def _(verdict, score, width):
    "sinusoids added to q and k: False"
    judge_distance(verdict, False, CONTENT)


@public("ch05-relative", score("(turn(q, p) * k).sum()"), 4)
def _(verdict, score, width):
    "only q turned by its position: False"
    judge_distance(verdict, False, ONE_TURNED)


BOTH = "it does not: p + r grows by 2c when both move by c; do both move the same way?"
APART = "it does not, only where p and r differ: try positions that do, in either order"
STEPS = "it does not, but some shifts hide it: draw the shift afresh in every trial"
UNLIKE = "it does not, only where q and k differ: draw each for itself (torch.randn)"


@public("ch05-relative", score("(q * k).sum() + 0.02 * (p + r)"), 5)
def _(verdict, score, width):
    "q·k + (p + r)/50: False"
    judge_distance(verdict, False, BOTH)


@public("ch05-relative", score("(q * k).sum() + 0.2 * r * (p - r)"), 3)
def _(verdict, score, width):
    "q·k + r·(p − r)/5: False"
    judge_distance(verdict, False, APART)


@public("ch05-relative", score("(q * k).sum() + r % 2"), 2)
def _(verdict, score, width):
    "q·k, and 1 more where r is odd: False"
    judge_distance(verdict, False, STEPS)


@public("ch05-relative", score("(q * k).sum() + 0.2 * p * (k - q).sum()"), 4)
def _(verdict, score, width):
    "q·k + p·(sum of k − sum of q)/5: False"
    judge_distance(verdict, False, UNLIKE)
