"""The exercises of chapter 05; ``__init__.py`` says how one is written."""

import math
import re
from functools import partial

import torch

from annotated.checks import Exercise, Function, Raised, tensor_for_bool

# ---- sines first -------------------------------------------------------------


def paper(i, d):
    return 2 * i / d


EXPONENTS = {  # of pair i
    "the exponent is i/d: look at the formula again": lambda i, d: i / d,
    "the exponent is 4i/d: does your index count 0, 2, 4, … already?": (
        lambda i, d: 4 * i / d
    ),
    "the exponent is i/(d/2 − 1), as in tensor2tensor; the paper's is wanted": (
        lambda i, d: i / (d / 2 - 1)
    ),
    "the later pairs turn faster; they should turn slower": lambda i, d: -2 * i / d,
    "all pairs turn like the first; each has a speed of its own": lambda i, d: 0 * i,
}


def side_by_side(sines, cosines):
    return torch.cat([sines, cosines], dim=1)


def halves_table(
    length,
    d_model,
    start=0,
    base=10000.0,
    *,
    exponent=paper,
    cosines_from=lambda d: 0,
    layout=side_by_side,
):
    positions = torch.arange(start, start + length, dtype=torch.float64)
    pairs = torch.arange(d_model // 2, dtype=torch.float64)

    def angles(i):
        return torch.outer(positions, base ** -exponent(i, d_model))

    sines, cosines = angles(pairs).sin(), angles(pairs + cosines_from(d_model)).cos()
    return layout(sines.float(), cosines.float())


halves = Exercise(
    "ch05-table",
    right=halves_table,
    hint="expected sin(p / base^(2i/d)) for all pairs, and then the cosines",
    tolerance=1e-4,
    mistakes={
        "yours alternate, as in the chapter; the exercise wants all sines first": (
            partial(halves_table, layout=lambda s, c: torch.stack([s, c], 2).flatten(1))
        ),
        "the cosines come first; the sines should": (
            partial(halves_table, layout=lambda s, c: side_by_side(c, s))
        ),
        "the cosines are missing": partial(halves_table, layout=lambda s, c: s),
        "the table is transposed: a row is a position": (
            lambda *given: halves_table(*given).mT
        ),
        "i runs up to d − 1, but there are only d/2 pairs": (
            partial(halves_table, cosines_from=lambda d: d / 2)
        ),
        "i runs up to d − 1, but there are only d/2 pairs; and the exponent is i/d": (
            partial(
                halves_table,
                exponent=lambda i, d: i / d,
                cosines_from=lambda d: d / 2,
            )
        ),
        "your positions begin at 0: is start used?": (
            lambda length, d, start=0, *base: halves_table(length, d, 0, *base)
        ),
        "your positions are one too high: the first row is that of position start": (
            lambda length, d, start=0, *base: halves_table(length, d, start + 1, *base)
        ),
        "length is the number of rows, not the position where they end": (
            lambda length, d, start=0, *base: halves_table(
                max(length - start, 0), d, start, *base
            )
        ),
        "the base is not used: it isn't always 10000": (
            lambda length, d, start=0, base=0: halves_table(length, d, start)
        ),
    }
    | {hint: partial(halves_table, exponent=e) for hint, e in EXPONENTS.items()},
)


@halves.case("the example: positions 1 and 2, width 6, base 1000")
def _(draw):
    return 2, 6, 1, 1000.0


@halves.case("from position 0 on")
def _(draw):
    return draw.integer(3, 7), draw.choice([6, 8, 10])


@halves.case("from another position on, with another base")
def _(draw):
    return 6, draw.choice([8, 10, 12]), draw.integer(2, 4), draw.number(20.0, 900.0)


# ---- the rotation matrix -----------------------------------------------------


def along_the_diagonal(blocks):
    """For the chapter's layout."""
    return torch.block_diag(*blocks)


def regrouped(blocks, back=False, columns=True):
    """For all sines first, and then all cosines."""
    matrix = along_the_diagonal(blocks)
    order = torch.arange(len(matrix)).view(-1, 2).mT.flatten()
    order = order.argsort() if back else order
    return matrix[order][:, order] if columns else matrix[order]


def shift(
    steps,
    d_model,
    *,
    exponent=paper,
    block=lambda c, s: [[c, s], [-s, c]],
    put_together=regrouped,
):
    pairs = range(d_model // 2)
    angles = [steps * 10000.0 ** -exponent(i, d_model) for i in pairs]
    blocks = [block(math.cos(angle), math.sin(angle)) for angle in angles]
    return put_together([torch.tensor(b) for b in blocks])


shift_matrix = Exercise(
    "ch05-shift-matrix",
    right=shift,
    hint="M PE(p) should be PE(p + steps) for every p: build a table, and try it row "
    "by row",
    tolerance=1e-4,
    mistakes={
        "it turns the wrong way: PE(p − steps) comes out": (
            partial(shift, block=lambda c, s: [[c, -s], [s, c]])
        ),
        "that is for the chapter's table, where sines and cosines alternate; here all "
        "sines come first, as in exercise 1": (
            partial(shift, put_together=along_the_diagonal)
        ),
        "that regroups the wrong way round: row 1 should be the sine of pair 1": (
            partial(shift, put_together=partial(regrouped, back=True))
        ),
        "the rows are regrouped, the columns are not": (
            partial(shift, put_together=partial(regrouped, columns=False))
        ),
        "neither sine of a block has a minus: that is no rotation": (
            partial(shift, block=lambda c, s: [[c, s], [s, c]])
        ),
        "both sines of a block have a minus: that is no rotation": (
            partial(shift, block=lambda c, s: [[c, -s], [-s, c]])
        ),
        "sine and cosine are exchanged: 0 steps should give the identity": (
            partial(shift, block=lambda c, s: [[s, c], [-c, s]])
        ),
        "it turns by one step: is `steps` used?": lambda steps, d: shift(1, d),
        "these are the blocks alone; they belong into one matrix (d, d)": (
            partial(shift, put_together=torch.stack)
        ),
    }
    | {hint: partial(shift, exponent=e) for hint, e in EXPONENTS.items()},
)


@shift_matrix.case("the example: one step, width 2, a single block")
def _(draw):
    return 1, 2


for _line, _steps in {
    "each pair turns at its own speed": (2, 9),
    "backwards": (-9, -2),
    "no step at all: the identity": (0, 0),
    "many steps": (50, 200),
}.items():

    @shift_matrix.case(_line)
    def _(draw, steps=_steps):
        return draw.integer(*steps), draw.choice([6, 8, 10])


# ---- write rotary positions --------------------------------------------------


def in_pairs(x, half_split):
    return x.chunk(2, dim=-1) if half_split else (x[..., 0::2], x[..., 1::2])


def from_pairs(first, second, half_split):
    if half_split:
        return torch.cat([first, second], dim=-1)
    return torch.stack([first, second], dim=-1).flatten(-2)


def rotary(x, start=0, half_split=False, **wrong):
    """Rotary positions, each step of which a mistake may replace."""
    t, k = x.shape[-2:]
    positions = wrong.get("positions", torch.arange)(start, start + t).double()
    pairs = torch.arange(k // 2).double()
    angles = positions[:, None] * 10000 ** -wrong.get("exponent", paper)(pairs, k)
    c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = wrong.get("apart", in_pairs)(x, half_split)
    turn = wrong.get("turn", lambda a, b, c, s: (a * c - b * s, a * s + b * c))
    return wrong.get("together", from_pairs)(*turn(a, b, c, s), half_split)


def repeated(x, start=0, half_split=False, *, where=True):
    """A mistake ``where`` half_split is this: the angles of the other layout."""
    if half_split != where:
        return rotary(x, start, half_split)
    t, k = x.shape[-2:]
    positions, pairs = torch.arange(start, start + t), torch.arange(k // 2).double()
    angles = (positions[:, None] * 10000 ** -paper(pairs, k)).to(x.dtype)
    angles = from_pairs(angles, angles, not half_split)
    a, b = in_pairs(x, half_split)
    return x * angles.cos() + from_pairs(-b, a, half_split) * angles.sin()


def along_heads(x, *options):
    """A mistake: in ``(b, h, t, k)``, axis 1 is taken for the positions."""
    if x.ndim < 4:
        return rotary(x, *options)
    return rotary(x.transpose(1, 2), *options).transpose(1, 2)


def of_another_dtype(result, x, *options):
    """Values right to the last digit of a narrower dtype still get their name."""
    value = getattr(result, "value", result)  # without its gradients
    if isinstance(value, torch.Tensor) and value.dtype != x.dtype:
        found, wanted = (str(t.dtype).removeprefix("torch.") for t in (value, x))
        return f"the result is {found}, x is {wanted}"


NO_TURN = "that is no rotation: the lengths of the pairs change"

turned = Exercise(
    "ch05-rotary",
    right=rotary,
    hint="turn pair i at position p by p / 10000^(2i/k), and put it back where it was",
    symptoms=of_another_dtype,
    tolerance=1e-5,  # angles in single precision will do, for x in double too
    mistakes={
        hint: partial(rotary, **wrong)
        for hint, wrong in {
            "it turns the wrong way: which of the two sines has a minus?": {
                "turn": lambda a, b, c, s: (a * c + b * s, b * c - a * s)
            },
            f"{NO_TURN} (neither sine has a minus)": {
                "turn": lambda a, b, c, s: (a * c + b * s, a * s + b * c)
            },
            f"{NO_TURN} (is b computed from the new a?)": {
                "turn": lambda a, b, c, s: (
                    a * c - b * s,
                    (a * c - b * s) * s + b * c,
                )
            },
            f"{NO_TURN} (sines and cosines are added, not multiplied)": {
                "turn": lambda a, b, c, s: (a + s, b + c)
            },
            "sine and cosine are exchanged: position 0 should change nothing": {
                "turn": lambda a, b, c, s: (a * s - b * c, a * c + b * s)
            },
            "your positions begin at 0: is start used?": {
                "positions": lambda start, end: torch.arange(end - start)
            },
            "your positions are one too high: the first row is that of position "
            "start": {"positions": lambda start, end: torch.arange(start, end) + 1},
            "all rows turn alike: each has a position of its own": {
                "positions": lambda start, end: torch.full((end - start,), start + 1)
            },
            "you pair neighbours where the halves are asked for: is half_split used?": {
                "apart": lambda x, _: in_pairs(x, False),
                "together": lambda a, b, _: from_pairs(a, b, False),
            },
            "you pair the halves where neighbours are asked for: is half_split used?": {
                "apart": lambda x, _: in_pairs(x, True),
                "together": lambda a, b, _: from_pairs(a, b, True),
            },
            "interleaved pairs come back half-split: turned numbers stay where they "
            "were": {"together": lambda a, b, _: from_pairs(a, b, True)},
            "half-split pairs come back interleaved: turned numbers stay where they "
            "were": {"together": lambda a, b, _: from_pairs(a, b, False)},
        }.items()
    }
    | {
        hint: partial(rotary, exponent=e)
        for hint, e in EXPONENTS.items()
        if "4i" in hint
    }
    | {
        "half-split, but angle i stands beside dimensions 2i and 2i + 1; it belongs "
        "beside i and k/2 + i": repeated,
        "interleaved, but angle i stands beside dimensions i and k/2 + i; it belongs "
        "beside 2i and 2i + 1": partial(repeated, where=False),
        "your positions run along the heads: they are the axis before the last": (
            along_heads
        ),
        "the exponent is i/k: look at the formula again": (
            partial(rotary, exponent=lambda i, k: i / k)
        ),
        "all pairs turn like the first; each has a speed of its own": (
            partial(rotary, exponent=lambda i, k: 0 * i)
        ),
        "the later pairs turn faster; they should turn slower": (
            partial(rotary, exponent=lambda i, k: -2 * i / k)
        ),
    },
)


@turned.case("the example: 1 0 0 0 at position 1, interleaved")
def _(draw):
    return torch.tensor([[1.0, 0, 0, 0]]), 1


@turned.case("the example, half-split")
def _(draw):
    return torch.tensor([[1.0, 0, 0, 0]]), 1, True


@turned.case("interleaved, a batch, from position 0 on")
def _(draw):
    b, t = draw.sizes(2)
    return (draw.normal(b, t, draw.choice([6, 8, 10])),)


@turned.case("half-split, a batch and heads, from another position on")
def _(draw):
    b, h, t = draw.sizes(3)
    k = draw.choice([8, 10])
    return draw.normal(b, h, t, k), draw.integer(2, 9), True


@turned.case("interleaved, a batch and heads, from another position on")
def _(draw):
    b, h, t = draw.sizes(3)
    return draw.normal(b, h, t, draw.choice([8, 10])), draw.integer(2, 9)


for _half in (False, True):

    @turned.case(
        f"gradients, {'half-split' if _half else 'interleaved'}, in double precision",
        gradients=True,
        dtype=torch.float64,
    )
    def _(draw, half=_half):
        return draw.normal(2, 3, 8), draw.integer(1, 4), half


# ---- learned positions that refuse -------------------------------------------


def rows(x, table, start=0):
    """A slice; shorter than it should be where it leaves the table."""
    return table[max(start, 0) : start + x.shape[1]]


def learned(
    say=lambda start, t, max_len: f"start {start}, {t} vectors, max_len {max_len}",
    kind=ValueError,
    spared=0,
):
    """An answer, by what it says and raises, and the rows that it does not use."""

    def answer(x, table, start=0):
        t, max_len = x.shape[1], len(table)
        if start < 0 or start + t > max_len - spared:
            raise kind(say(start, t, max_len))
        return x + rows(x, table, start)

    return answer


def picked(choose):
    """A mistake: rows chosen otherwise, by positions and the length of the table."""

    def answer(x, table, start=0):
        positions = torch.arange(start, start + x.shape[1])
        return x + table[choose(positions, len(table))]

    return answer


def from_the_end(x, table, start=0):
    """A mistake: it refuses what PyTorch refuses; a negative index isn't."""
    positions = torch.arange(start, start + x.shape[1])
    if positions[-1] >= len(table):
        raise ValueError(f"{positions[-1]} does not fit: max_len is {len(table)}")
    return x + table[positions]


def cut_off(x, table, start=0):
    there = rows(x, table, start)
    return x[:, : len(there)] + there


def left_as_it_was(x, table, start=0):
    there = cut_off(x, table, start)
    return torch.cat([there, x[:, there.shape[1] :]], dim=1)


NOT_DUE = "you refuse positions that are in the table"
LAST = "you refuse the last row of the table"
ASSERT = "an assert is gone when Python runs with -O: refuse in a way that stays"
LATE = "raise a ValueError, before the table is used"
NO_START = "the message should name start"
NO_MAX_LEN = "the message should name max_len"
NO_LENGTH = "the message should name what does not fit: the length, or where it ends"


def refusal(result, x, table, start=0):
    """A refusal where none is due, of another kind, or without its numbers."""
    if not isinstance(result, Raised):
        return None
    t, max_len = x.shape[1], len(table)
    if 0 <= start <= max_len - t:
        early = LAST if start + t == max_len else NOT_DUE
        return early if result.kind == "ValueError" else None
    if result.kind != "ValueError":
        return ASSERT if result.kind == "AssertionError" else LATE
    numbers = {int(n) for n in re.findall(r"-?\d+", result.message)}
    if start < 0:
        return None if start in numbers else NO_START
    if max_len not in numbers:
        return NO_MAX_LEN
    return None if numbers & {t, start + t - 1, start + t} else NO_LENGTH


add_learned = Exercise(
    "ch05-learned",
    right=learned(),
    hint="expected x plus the rows start to start + t − 1 of the table",
    symptoms=refusal,
    mistakes={
        LAST: learned(spared=1),
        NOT_DUE: learned(spared=4),
        ASSERT: learned(kind=AssertionError),
        LATE: learned(kind=IndexError),
        NO_START: learned(lambda start, t, max_len: f"{t} vectors, {max_len} rows"),
        NO_MAX_LEN: learned(lambda start, t, max_len: f"{t} vectors from {start} on"),
        NO_LENGTH: learned(lambda start, t, max_len: f"{start}: only {max_len} rows"),
        "a negative index counts from the end of the table: refuse a start below 0": (
            from_the_end
        ),
        "only one row was left, and every vector got it; these should be refused": (
            picked(lambda p, n: p[p < n])
        ),
        "positions outside the table wrap around to its other end": (
            picked(lambda p, n: p % n)
        ),
        "positions outside the table are clamped, so that several share a row": (
            picked(lambda p, n: p.clamp(0, n - 1))
        ),
        "vectors without a row are cut off": cut_off,
        "vectors without a row are left as they were": left_as_it_was,
        "your positions begin at 0: is start used?": picked(lambda p, n: p - p[0]),
        "your positions are one too high: the first is start": (
            picked(lambda p, n: p + 1)
        ),
        "these are the last rows of the table: start counts from its beginning": (
            picked(lambda p, n: p - p[-1] - 1)
        ),
        "every vector gets the row of the first; each has its own position": (
            picked(lambda p, n: p[:1])
        ),
        "the rows run along the batch; positions are the second axis": (
            picked(lambda p, n: p[:, None])
        ),
        "these are rows of the table alone: where is x?": (
            lambda x, *rest: rows(x, *rest).expand_as(x)
        ),
        "these are rows of the table alone, and for one sequence: where is x?": rows,
        "x comes back as it was": lambda x, *rest: x,
        "the rows multiply x; they should be added": (
            lambda x, *rest: x * rows(x, *rest)
        ),
        "x is multiplied by √d as well; here it is only added to": (
            lambda x, *rest: x * x.shape[-1] ** 0.5 + rows(x, *rest)
        ),
    },
)


@add_learned.case("the example: positions 1 and 2 of a table of three rows")
def _(draw):
    return torch.zeros(1, 2, 2), torch.tensor([[1.0, 1], [2, 2], [3, 3]]), 1


def vectors_and_table(draw, t, max_len, start):
    """The batch is 3; a start above 0 and the end of the table move together."""
    more = draw.integer(0, 2)
    x, table = draw.normal(3, t, 5), draw.normal(max_len + more, 5)
    return x, table, start + more * (start > 0)


for _line, _sizes in {  # vectors, rows of the table, start
    "from position 0 on": (4, 7, 0),
    "from another position on": (4, 9, 2),
    "as many sequences as positions": (3, 11, 4),
    "up to the last row: they just fit": (4, 9, 5),
    "more vectors than rows: refused": (14, 11, 0),
    "one vector too many: refused": (4, 11, 8),
    "only one row is left: refused": (4, 11, 10),
    "beyond the last row: refused": (1, 11, 16),
    "a negative start: refused": (3, 11, -5),
    "partly before the table: refused": (6, 11, -2),
}.items():

    @add_learned.case(_line)
    def _(draw, sizes=_sizes):
        return vectors_and_table(draw, *sizes)


@add_learned.case("in double precision", dtype=torch.float64)
def _(draw):
    return vectors_and_table(draw, 2, 8, 3)


@add_learned.case("gradients reach x and the rows that were used", gradients=True)
def _(draw):
    return vectors_and_table(draw, 2, 8, 3)


# ---- only the offset counts --------------------------------------------------


def stays(
    score,
    width,
    *,
    pair=lambda width: torch.randn(2, width),
    highest=100,
    place=lambda p, r: (p, r),
    moved=lambda p, r, c: (p + c, r + c),
    shift=lambda p, r: int(torch.randint(-min(p, r), 101 - max(p, r), ())),
    tolerance=1e-3,
    trials=60,
):
    """Does a score stay the same where both positions move together?"""
    for _ in range(trials):
        q, k = pair(width)
        p, r = place(*torch.randint(highest + 1, (2,)).tolist())
        there = score(q, k, *moved(p, r, shift(p, r)))
        if abs(float(score(q, k, p, r)) - float(there)) > tolerance:
            return False
    return True


def most(score, width):
    """A mistake: a few trials in a hundred may differ."""
    return sum(stays(score, width, trials=1) for _ in range(200)) > 180


def even_shift(p, r):
    return 10 if max(p, r) <= 90 else -10


MOVED = (
    "only p − r counts: do both positions move by the same number, and do q and k stay "
    "what they were?"
)
ROUNDING = (
    "only p − r counts: if q and k stay what they were, the last digits differ by "
    "rounding alone"
)
CONTENT = (
    "q · PE(r) and PE(p) · k are part of it, and change with the positions: are your q "
    "and k random, and not zero?"
)
STILL = "only q is turned, so p alone counts: do your positions really move?"
SUM = "p + r counts, which is no offset: do both positions move the same way?"
APART = "p − r is not all that counts: do you try positions that differ?"
ORDER = "it shows where p is before r: do you try positions in either order?"
FAR = "it shows where p and r are far apart: do you try the whole range?"
BEHIND = "it shows late in the sequence: do you try positions up to 100?"
STEPS = "some shifts hide it: do you draw the shift afresh in every trial?"
ALIKE = "it shows where q and k differ: is each drawn independently?"
SOME = "it shows for some vectors only: are q and k drawn afresh in every trial?"
SMALL = "a small difference is a difference: how much is due to rounding?"
FEW = "it shows in one trial of 25: do you try 200, and is a single difference enough?"

relative = Exercise(
    "ch05-relative",
    # vectors three times as long, so that few trials meet what is rare (FEW)
    right=partial(stays, pair=lambda width: 3 * torch.randn(2, width)),
    hint="compare score(q, k, p, r) with score(q, k, p + c, r + c)",
    symptoms=tensor_for_bool,
    mistakes={
        MOVED: partial(stays, moved=lambda p, r, c: (p + c, r)),
        ROUNDING: partial(stays, tolerance=0.0),
        CONTENT: partial(stays, pair=lambda width: torch.zeros(2, width)),
        STILL: partial(stays, shift=lambda p, r: 0),
        SUM: partial(stays, moved=lambda p, r, c: (p + c, r - c)),
        APART: partial(stays, place=lambda p, r: (p, p)),
        ORDER: partial(stays, place=lambda p, r: (max(p, r), min(p, r))),
        FAR: partial(stays, highest=40),
        BEHIND: partial(stays, highest=10, shift=lambda p, r: 10),
        STEPS: partial(stays, shift=even_shift),
        ALIKE: partial(stays, pair=lambda width: [torch.randn(width)] * 2),
        SOME: partial(
            stays, pair=lambda width: torch.arange(1.0, 3)[:, None].expand(2, width)
        ),
        SMALL: partial(stays, tolerance=1.0),
        FEW: most,
    },
)

# Angles of position p, for a vector of the width of x; sinusoids; and a vector turned.
ANGLES = "p * 10000.0 ** (-torch.arange(0, len(x), 2).double() / len(x))"
ENCODE = (
    f"lambda x, p: (lambda a: torch.stack([a.sin(), a.cos()], -1).flatten())({ANGLES})"
)
TURN = (
    "lambda x, p: (lambda x, y, a: torch.stack([x * a.cos() - y * a.sin(), "
    f"x * a.sin() + y * a.cos()], -1).flatten())(x[0::2], x[1::2], {ANGLES})"
)


def score(expression):
    """A score of q, k at p, r; pe(x, p) and turn(x, p) may be used."""
    text = f"(lambda pe, turn: {expression})({ENCODE}, {TURN})"
    return Function(text, "q, k, p, r")


SCORES = {  # a score with a number in it, what it is, and what an answer may miss
    "q @ k - {} * (p - r)": ("q·k, less with p − r", None),
    "q @ k / (1 + {} * (p - r) ** 2)": ("q·k, divided by the distance squared", MOVED),
    "{} * (pe(q, p) * pe(k, r)).sum()": ("PE(p) · PE(r) alone", MOVED),
    "{} * (turn(q, p) * turn(k, r)).sum()": ("q and k turned by positions", ROUNDING),
    "((q + pe(q, p)) * (k + {} * pe(k, r))).sum()": ("sinusoids added", CONTENT),
    "{} * (turn(q, p) * k).sum()": ("only q turned by its position", STILL),
    "q @ k + {} * (p + r)": ("q·k, more with p + r", SUM),
    "q @ k + {} * r * (p - r)": ("q·k, and r times the distance", APART),
    "q @ k + {} * p * (p < r)": ("q·k, and p where p < r", ORDER),
    "q @ k + {} * p * (abs(p - r) > 45)": ("q·k, and p from a distance", FAR),
    "q @ k + {} * max(p - 30, 0)": ("q·k, and p beyond 30", BEHIND),
    "q @ k + {} * (r % 2)": ("q·k, more where r is odd", STEPS),
    "q @ k + {} * p * (k - q).sum()": ("q·k, and p times the sum of k − q", ALIKE),
    "q @ k + {} * p * (q[0] < 0)": ("q·k, and p for some queries", SOME),
    "q @ k + 0.01 * {} * p": ("q·k, and a little of p", SMALL),
    "q @ k + {} * p * (q[0] > 1.75)": ("q·k, and p for few queries", FEW),
    "q @ k + {} * p * (k[1] < -1.75)": ("q·k, and p for few keys", FEW),
    "q @ k - {} * r * (k[0] > 1.75)": ("q·k, less with r for few keys", FEW),
}

for _expression, (_name, _missed) in SCORES.items():

    @relative.case(_name, hint=_missed)
    def _(draw, expression=_expression):
        number = round(draw.number(0.2, 0.9), 2)
        return score(expression.format(number)), draw.choice([4, 6, 8])


# ---- find the fault: a decoder that stutters ---------------------------------


def decode(
    x,
    table,
    cache,
    *,
    begin=lambda s, n: s,
    diagonal=lambda s: s,
    kept=lambda x, placed: placed,
    old=lambda cache, table: cache,
    scale=lambda d: d**0.5,
):
    s, n = cache.shape[1], x.shape[1]
    placed = x + table[begin(s, n) : begin(s, n) + n]
    cache = old(cache, table)
    keys = torch.cat([cache, placed], dim=1)
    scores = placed @ keys.mT / scale(x.shape[-1])
    allowed = torch.ones_like(scores[0]).tril(diagonal(s)).bool()
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return weights @ keys, torch.cat([cache, kept(x, placed)], dim=1)


def alone(x, table, cache):
    """The new tokens see each other, and nothing that came before."""
    s = cache.shape[1]
    output, new = decode(x, table[s:], cache[:, :0])
    return output, torch.cat([cache, new], dim=1)


def at_zero(s, n):
    return 0


def top_left(s):
    return 0


stutter = Exercise(
    "ch05-stutter",
    right=decode,
    hint="step by step should equal all at once: compare the two for each token",
    mistakes={
        "nothing has been repaired yet: what do a position and a mask know of the "
        "cache?": partial(decode, begin=at_zero, diagonal=top_left),
        "every step begins at position 0 again": partial(decode, begin=at_zero),
        "the positions are right; which tokens, cached and new, does your mask let a "
        "new one see?": partial(decode, diagonal=top_left),
        "your positions are one too high": partial(decode, begin=lambda s, n: s + 1),
        "your positions begin at the end of the new tokens, not at their beginning": (
            partial(decode, begin=lambda s, n: s + n - 1)
        ),
        "your positions count the new tokens, not the cached ones": (
            partial(decode, begin=lambda s, n: n)
        ),
        "a new token sees the one after it": partial(decode, diagonal=lambda s: s + 1),
        "a new token does not see itself": partial(decode, diagonal=lambda s: s - 1),
        "a new token sees all new tokens, later ones too": (
            partial(decode, diagonal=lambda s: 10_000)
        ),
        "the output is right; the new cache lacks the positions": (
            partial(decode, kept=lambda x, placed: x)
        ),
        "the output is right; the new cache lacks the new tokens": (
            partial(decode, kept=lambda x, placed: placed[:, :0])
        ),
        "the cached tokens are not attended to": alone,
        "the cached tokens have their positions already; you add them again": (
            partial(decode, old=lambda cache, table: cache + table[: cache.shape[1]])
        ),
        "the scores are not divided by √d": partial(decode, scale=lambda d: 1.0),
    },
)


@stutter.case("the example: one token in the cache, one new one")
def _(draw):
    table = torch.tensor([[0.0], [1.0], [3.0]])
    return torch.zeros(1, 1, 1), table, torch.full((1, 1, 1), 2.0)


for _line, _sizes in {  # new tokens, tokens in the cache
    "an empty cache: the first token": (1, 0),
    "an empty cache: a whole sequence": (5, 0),
    "one new token after four": (1, 4),
    "three new tokens after five": (3, 5),
    "five new tokens after two": (5, 2),
}.items():

    @stutter.case(_line)
    def _(draw, sizes=_sizes):
        n, s = sizes
        d = draw.integer(4, 6)
        return draw.normal(3, n, d), draw.normal(s + n + 8, d), draw.normal(3, s, d)


@stutter.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 2, 4), draw.normal(12, 4), draw.normal(2, 3, 4)
