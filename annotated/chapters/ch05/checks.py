"""The exercises of chapter 05; ``__init__.py`` says how one is written."""

import re

import torch

from annotated.checks import Function, Raised, exercise
from annotated.checks.material import scores_tried

# ---- what three of them ask --------------------------------------------------

AT_ZERO = "your positions begin at 0: is start used?"
SPEEDS = """
2 * i / d
    i / d  # the exponent is i/d: look at the formula again
    4 * i / d  # the exponent is 4i/d: does your index count 0, 2, 4, … already?
    i / (d / 2 - 1)
        # the exponent is i/(d/2 − 1), as in tensor2tensor; the paper's is wanted
    -2 * i / d  # the later pairs turn faster; they should turn slower
    0 * i  # all pairs turn like the first; each has a speed of its own
"""

# ---- sines first -------------------------------------------------------------

TO_D = "i runs up to d − 1, but there are only d/2 pairs"


@exercise(
    "ch05-table",
    "expected sin(p / base^(2i/d)) for all pairs, and then the cosines",
    tolerance=1e-4,
)
def halves_table(length, d_model, start=0, base=10000.0):
    """Sinusoids (length, d_model): all sines, then all cosines."""
    positions = torch.arange(start, start + length).double()
    i, d = torch.arange(d_model // 2).double(), d_model  # the number of the pair
    angles = torch.outer(positions, base ** -(2 * i / d))  # (t, d/2)
    sines, cosines = angles.sin(), angles.cos()
    return torch.cat([sines, cosines], dim=1).float()


halves_table.instead(SPEEDS)
halves_table.instead("""
torch.cat([sines, cosines], dim=1)
    torch.stack([sines, cosines], 2).flatten(1)
        # yours alternate, as in the chapter; the exercise wants all sines first
    torch.cat([cosines, sines], dim=1)  # the cosines come first; the sines should
    sines  # the cosines are missing
    torch.cat([sines, cosines], dim=1).mT
        # the table is transposed: a row is a position
angles.cos() -> torch.outer(positions, base ** -(2 * (i + d / 2) / d)).cos()  # {TO_D}
torch.arange(start, start + length)
    torch.arange(length)  # {AT_ZERO}
    torch.arange(start + 1, start + length + 1)
        # your positions are one too high: the first row is that of position start
    torch.arange(start, max(start, length))
        # length is the number of rows, not the position where they end
base ** -> 10000.0 **  # the base is not used: it isn't always 10000
2 * i / d -> i / d
angles.cos() -> torch.outer(positions, base ** -((i + d / 2) / d)).cos()
        # {TO_D}; and the exponent is i/d
.float() -> .tolist()  # … expected a tensor, got a list
.float() -> # … the dtype is torch.float64
""")

halves_table.case(
    "the example: positions 1 and 2, width 6, base 1000", lambda draw: (2, 6, 1, 1000.0)
)
halves_table.case(
    "from position 0 on", lambda draw: (draw.integer(3, 7), draw.choice([6, 8, 10]))
)


@halves_table.case("from another position on, with another base")
def _(draw):
    return 6, draw.choice([8, 10, 12]), draw.integer(2, 4), draw.number(20.0, 900.0)


# ---- the rotation matrix -----------------------------------------------------


@exercise(
    "ch05-shift-matrix",
    "M PE(p) should be PE(p + steps) for every p: build a table, and try it row by row",
    tolerance=1e-4,
)
def shift_matrix(steps, d_model):
    """The matrix (d, d) that turns PE(p) into PE(p + steps), for every p."""
    from math import cos, sin

    blocks, d = [], d_model
    for i in range(d // 2):
        angle = steps * 10000.0 ** -(2 * i / d)
        c, s = cos(angle), sin(angle)
        # sin(a + b) = cos b sin a + sin b cos a, cos(a + b) = cos b cos a − sin b sin a
        blocks.append(torch.tensor([[c, s], [-s, c]]))
    matrix = torch.block_diag(*blocks)
    order = torch.arange(d).view(-1, 2).mT.flatten()  # all sines first
    return matrix[order][:, order]


shift_matrix.instead(SPEEDS)
shift_matrix.instead("""
[[c, s], [-s, c]]
    [[c, -s], [s, c]]  # it turns the wrong way: PE(p − steps) comes out
    [[c, s], [s, c]]  # neither sine of a block has a minus: that is no rotation
    [[c, -s], [-s, c]]  # both sines of a block have a minus: that is no rotation
    [[s, c], [-c, s]]  # sine and cosine are exchanged: 0 steps should give the identity
matrix[order][:, order]
    matrix  # that is for the chapter's table, where sines and cosines alternate; here
        all sines come first, as in exercise 1
    matrix[order.argsort()][:, order.argsort()]
        # that regroups the wrong way round: row 1 should be the sine of pair 1
    matrix[order]  # the rows are regrouped, the columns are not
    torch.stack(blocks)
        # these are the blocks alone; they belong into one matrix (d, d)
angle = steps * -> angle =  # it turns by one step: is `steps` used?
steps * 10000.0 ** -(2 * i / d) -> (steps / 10000 ** (torch.arange(0, d, 2) / d))[i]
        # … in which precision are the angles
""")


@shift_matrix.each("""
the example: one step, width 2, a single block -> (1, 1), [2]
each pair turns at its own speed -> (2, 9), [6, 8, 10]
backwards -> (-9, -2), [6, 8, 10]
no step at all: the identity -> (0, 0), [6, 8, 10]
many steps -> (50, 200), [6, 8, 10]
a hundred thousand steps -> (90_000, 110_000), [6, 8, 10]
        # if this check fails alone: in which precision are the angles of so many steps?
""")
def _(draw, steps, widths):
    return draw.integer(*steps), draw.choice(widths)


# ---- write rotary positions --------------------------------------------------


def along_heads(x, *options):
    """A mistake: in ``(b, h, t, k)``, axis 1 is taken for the positions."""
    if x.ndim < 4:
        return rotary.right(x, *options)
    return rotary.right(x.transpose(1, 2), *options).transpose(1, 2)


def along_batch(x, *options):
    """A mistake: the axis before the positions is taken for them."""
    if x.ndim < 3:
        return rotary.right(x, *options)
    return rotary.right(x.transpose(-3, -2), *options).transpose(-3, -2)


def of_another_dtype(result, x, *options):
    """Values right to the last digit of a narrower dtype still get their name."""
    value = getattr(result, "value", result)  # without its gradients
    if isinstance(value, torch.Tensor) and value.dtype != x.dtype:
        return f"x is {str(x.dtype).removeprefix('torch.')}, and the result isn't"


@exercise(
    "ch05-rotary",
    "turn pair i at position p by p / 10000^(2i/k), and put it back where it was",
    {
        "your positions run along the heads: they are the axis before the last": (
            along_heads
        ),
        "your positions run along the batch: they are the axis before the last": (
            along_batch
        ),
    },
    symptoms=of_another_dtype,
    tolerance=1e-5,  # angles in single precision will do, for x in double too
)
def rotary(x, start=0, half_split=False):
    """Turn each pair of (…, t, k) by an angle that grows with its position."""
    t, d = x.shape[-2:]
    p = torch.arange(start, start + t).double()
    i = torch.arange(d // 2).double()
    angles = torch.outer(p, 10000.0 ** -(2 * i / d)).to(x.dtype)  # (t, k/2)
    c, s = angles.cos(), angles.sin()
    a, b = x.chunk(2, dim=-1) if half_split else (x[..., 0::2], x[..., 1::2])
    turned = a * c - b * s, a * s + b * c
    if half_split:
        return torch.cat(turned, dim=-1)
    return torch.stack(turned, dim=-1).flatten(-2)


NO_TURN = "that is no rotation: the lengths of the pairs change"
STAY = "turned numbers stay where they were"

rotary.instead(r"""
a * c - b * s, a * s + b * c
    a * c + b * s, b * c - a * s
        # it turns the wrong way: which of the two sines has a minus?
    a * c + b * s, a * s + b * c  # {NO_TURN} (neither sine has a minus)
    a * c - b * s, (a * c - b * s) * s + b * c
        # {NO_TURN} (is b computed from the new a?)
    a + s, b + c  # {NO_TURN} (sines and cosines are added, not multiplied)
    a * s - b * c, a * c + b * s
        # sine and cosine are exchanged: position 0 should change nothing
torch.arange(start, start + t)
    torch.arange(t)  # {AT_ZERO}
    torch.arange(start + 1, start + t + 1)
        # your positions are one too high: the first row is that of position start
    torch.full((t,), start + 1)  # all rows turn alike: each has a position of its own
t, d =
    half_split = False\n    t, d =
        # you pair neighbours where the halves are asked for: is half_split used?
    half_split = True\n    t, d =
        # you pair the halves where neighbours are asked for: is half_split used?
return torch.stack(turned, dim=-1).flatten(-2)
    return torch.cat(turned, dim=-1)  # interleaved pairs come back half-split: {STAY}
    a, b = x, torch.stack([-b, a], dim=-1).flatten(-2)\n    return a * torch.cat([c, c],
        -1) + b * torch.cat([s, s], -1)  # interleaved, but angle i stands beside
        dimensions i and k/2 + i; it belongs beside 2i and 2i + 1
return torch.cat(turned, dim=-1)
    return torch.stack(turned, dim=-1).flatten(-2)
        # half-split pairs come back interleaved: {STAY}
    c, s = c.repeat_interleave(2, -1), s.repeat_interleave(2, -1)\n        return x * c
        + torch.cat([-b, a], -1) * s  # half-split, but angle i stands beside dimensions
        2i and 2i + 1; it belongs beside i and k/2 + i
t, d = -> x = x.float()\n    t, d =  # … x is float64, and the result isn't
""")
rotary.instead(SPEEDS.replace("i/d", "i/k"))  # k is the width of a head

for _half, _line in enumerate(("interleaved", "half-split")):
    rotary.case(
        f"the example: 1 2 0 0 at position 1, {_line}",
        lambda draw, half=_half: (torch.tensor([[1.0, 2, 0, 0]]), 1, bool(half)),
    )

    @rotary.case(f"{_line}, a batch and heads, from another position on")
    @rotary.case(
        f"gradients, {_line}, in double precision", gradients=True, dtype=torch.float64
    )
    def _(draw, half=_half):
        b, h, t = draw.sizes(3)
        x = draw.normal(b, h, t, draw.choice([8, 10]))
        return x, draw.integer(2, 9), bool(half)


@rotary.case("interleaved, a batch, from position 0 on")
def _(draw):
    b, t = draw.sizes(2)
    return (draw.normal(b, t, draw.choice([6, 8, 10])),)


# ---- learned positions that refuse -------------------------------------------

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


REFUSES = "start < 0 or start + t > max_len"
ROWS = "x + table[positions]"
THERE = "there := table[max(start, 0) : start + t]"
UNREFUSED = {  # what becomes of positions that are not in the table
    "x + table[positions[positions < max_len]]": "only one row was left, and every "
    "vector got it; these should be refused",
    "x + table[positions % max_len]": "positions outside the table wrap around to its "
    "other end",
    "x + table[positions.clamp(0, max_len - 1)]": "positions outside the table are "
    "clamped, so that several share a row",
    f"x[:, : len({THERE})] + there": "vectors without a row are cut off",
    f"torch.cat([x[:, : len({THERE})] + there, x[:, len(there) :]], dim=1)": "vectors "
    "without a row are left as they were",
}


@exercise(
    "ch05-learned",
    "expected x plus the rows start to start + t − 1 of the table",
    {hint: [(REFUSES, "False"), (ROWS, new)] for new, hint in UNREFUSED.items()},
    symptoms=refusal,
)
def add_learned(x, table, start=0):
    """Add rows start … start + t − 1 of (max_len, d) to (b, t, d), or refuse."""
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"start {start}, {t} vectors, max_len {max_len}")
    positions = torch.arange(start, start + t)
    return x + table[positions]


add_learned.instead("""
> max_len
    > max_len - 1  # {LAST}
    > max_len - 4  # {NOT_DUE}
ValueError
    AssertionError  # {ASSERT}
    IndexError  # {LATE}
f"start {start}, {t} vectors, max_len {max_len}"
    f"{t} vectors, {max_len} rows"  # {NO_START}
    f"{t} vectors from {start} on"  # {NO_MAX_LEN}
    f"{start}: only {max_len} rows"  # {NO_LENGTH}
start < 0 or ->
        # a negative index counts from the end of the table: refuse a start below 0
x + table[positions]
    x + table[positions - start]  # {AT_ZERO}
    x + table[(positions + 1) % max_len]
        # your positions are one too high: the first is start
    x + table[positions - positions[-1] - 1]
        # these are the last rows of the table: start counts from its beginning
    x + table[positions[:1]]
        # every vector gets the row of the first; each has its own position
    x + table[positions[:, None]]
        # the rows run along the batch; positions are the second axis
    table[positions].expand_as(x)  # these are rows of the table alone: where is x?
    table[positions]
        # these are rows of the table alone, and for one sequence: where is x?
    x  # x comes back as it was
    x * table[positions]  # the rows multiply x; they should be added
    x * x.shape[-1] ** 0.5 + table[positions]
        # x is multiplied by √d as well; here it is only added to
x + table[positions] -> x + table[positions].detach()  # … no gradient reaches table
""")


@add_learned.case("the example: positions 1 and 2 of a table of three rows")
def _(draw):
    return torch.zeros(1, 2, 2), torch.tensor([[1.0, 1], [2, 2], [3, 3]]), 1


def vectors_and_table(draw, t, max_len, start):
    """The batch is 3; a start above 0 and the end of the table move together."""
    more = draw.integer(0, 2)
    x, table = draw.normal(3, t, 5), draw.normal(max_len + more, 5)
    return x, table, start + more * (start > 0)


# vectors, rows of the table, start
add_learned.each("""
from position 0 on -> 4, 7, 0
from another position on -> 4, 9, 2
as many sequences as positions -> 3, 11, 4
up to the last row: they just fit -> 4, 9, 5
more vectors than rows: refused -> 14, 11, 0
one vector too many: refused -> 4, 11, 8
only one row is left: refused -> 4, 11, 10
beyond the last row: refused -> 1, 11, 16
a negative start: refused -> 3, 11, -5
partly before the table: refused -> 6, 11, -2
""")(vectors_and_table)


@add_learned.case("in double precision", dtype=torch.float64)
@add_learned.case("gradients reach x and the rows that were used", gradients=True)
def _(draw):
    return vectors_and_table(draw, 2, 8, 3)


# ---- only the offset counts --------------------------------------------------


@exercise(
    "ch05-relative",
    "compare score(q, k, p, r) with score(q, k, p + c, r + c)",
    through=scores_tried,
    broken={
        "few": "it does, but to be sure takes the 200 trials that the text asks for"
    },
)
def depends_on_offset(score, width):
    """Does score(q, k, p, r) stay the same when p and r move together?"""
    for _ in range(110):
        # vectors three times as long, so that few trials meet what is rare
        q, k = 3 * torch.randn(2, width)
        p, r = torch.randint(101, (2,)).tolist()
        c = int(torch.randint(-min(p, r), 101 - max(p, r), ()))
        here, there = score(q, k, p, r), score(q, k, p + c, r + c)
        if abs(float(here) - float(there)) > 1e-3:
            return False
    return True


# Angles of position p, for a vector of the width of x; sinusoids; and a vector turned.
ANGLES = "p * 10000.0 ** (-torch.arange(0, len(x), 2).double() / len(x))"
ENCODE = (
    f"lambda x, p: (lambda a: torch.stack([a.sin(), a.cos()], -1).flatten())({ANGLES})"
)
TURN = (
    "lambda x, p: (lambda x, y, a: torch.stack([x * a.cos() - y * a.sin(), x * "
    f"a.sin() + y * a.cos()], -1).flatten())(x[0::2], x[1::2], {ANGLES})"
)


def score(expression):
    """A score of q, k at p, r; pe(x, p) and turn(x, p) may be used."""
    text = f"(lambda pe, turn: {expression})({ENCODE}, {TURN})"
    return Function(text, "q, k, p, r")


# a score with a number in it, and what an answer may miss
@depends_on_offset.each("""
q·k, less with p − r -> "q @ k - {} * (p - r)"
q·k, divided by the distance squared -> "q @ k / (1 + {} * (p - r) ** 2)"
        # only p − r counts: do both positions move by the same number, and do q and k
        stay what they were?
PE(p) · PE(r) alone -> "{} * (pe(q, p) * pe(k, r)).sum()"
        # {q·k, divided by the distance squared}
q and k turned by positions -> "{} * (turn(q, p) * turn(k, r)).sum()"  # only p − r
        counts: if q and k stay what they were, the last digits differ by rounding alone
sinusoids added -> "((q + pe(q, p)) * (k + {} * pe(k, r))).sum()"
        # q · PE(r) and PE(p) · k are part of it, and change with the positions: are
        your q and k random, and not zero?
only q turned by its position -> "{} * (turn(q, p) * k).sum()"
        # only q is turned, so p alone counts: do your positions really move?
q·k, more with p + r -> "q @ k + {} * (p + r)"
        # p + r counts, which is no offset: do both positions move the same way?
q·k, and r times the distance -> "q @ k + {} * r * (p - r)"
        # p − r is not all that counts: do you try positions that differ?
q·k, and p where p < r -> "q @ k + {} * p * (p < r)"
        # it shows where p is before r: do you try positions in either order?
q·k, and p from a distance -> "q @ k + {} * p * (abs(p - r) > 45)"
        # it shows where p and r are far apart: do you try the whole range?
q·k, and p beyond 30 -> "q @ k + {} * max(p - 30, 0)"
        # it shows late in the sequence: do you try positions up to 100?
q·k, more where r is odd -> "q @ k + {} * (r % 2)"
        # some shifts hide it: do you draw the shift afresh in every trial?
q·k, and p times the sum of k − q -> "q @ k + {} * p * (k - q).sum()"
        # it shows where q and k differ: is each drawn independently?
q·k, and p for some queries -> "q @ k + {} * p * (q[0] < 0)"
        # it shows for some vectors only: are q and k drawn afresh in every trial?
q·k, and a little of p -> "q @ k + 0.01 * {} * p"
        # a small difference is a difference: how much is due to rounding?
q·k, and a drift -> "q @ k + 0.001 * {} * p"
        # it shows over many steps: do you try large shifts, too?
q·k, and p for few queries -> "q @ k + {} * p * (q[0] > 1.75)"  # it shows in one trial
        of 25: do you try 200, and is a single difference enough?
q·k, and p for few keys -> "q @ k + {} * p * (k[1] < -1.75)"
        # {q·k, and p for few queries}
q·k, less with r for few keys -> "q @ k - {} * r * (k[0] > 1.75)"
        # {q·k, and p for few queries}
""")
def _(draw, expression):
    number = round(draw.number(0.2, 0.9), 2)
    return score(expression.format(number)), draw.choice([4, 6, 8])


@depends_on_offset.case("as many trials as the text asks for")
def _(draw):
    return score("q @ k - abs(p - r)"), draw.choice([4, 6, 8]), True


depends_on_offset.instead(r"""
p + c, r + c
    p + c, r  # {PE(p) · PE(r) alone}
    p, r  # {only q turned by its position}
    p + c, r - c  # {q·k, more with p + r}
1e-3
    0.0  # {q and k turned by positions}
    1.0  # {q·k, and a little of p}
3 * torch.randn(2, width)
    torch.zeros(2, width)  # {sinusoids added}
    [torch.randn(width)] * 2  # {q·k, and p times the sum of k − q}
    torch.arange(1.0, 3)[:, None].expand(2, width)  # {q·k, and p for some queries}
torch.randint(101, (2,))
    torch.randint(101, ()).expand(2)  # {q·k, and r times the distance}
    torch.randint(101, (2,)).sort(descending=True).values  # {q·k, and p where p < r}
    torch.randint(41, (2,))  # {q·k, and p from a distance}
int(torch.randint(-min(p, r), 101 - max(p, r), ()))
    10 if max(p, r) <= 90 else -10  # {q·k, more where r is odd}
    1 if max(p, r) < 100 else -1  # {q·k, and a drift}
range(110) -> range(30)  # {few}
randint(101, (2,)) -> randint(11, (2,))
int(torch.randint(-min(p, r), 101 - max(p, r), ())) -> 10  # {q·k, and p beyond 30}
for _ -> differ = 0\n    for _
return False -> differ += 1
return True -> return differ < 10
3 * torch -> torch  # {q·k, and p for few keys}
score(q, k, p + c, r + c)
    score(*torch.randn(2, width), p + c, r + c)  # … do q and k stay what they were
""")


# ---- find the fault: a decoder that stutters ---------------------------------


@exercise(
    "ch05-stutter",
    "step by step should equal all at once: compare the two for each token",
)
def decode_step(x, table, cache):
    """One step of a decoder: outputs (b, n, d), and the cache (b, s + n, d)."""
    s, n = cache.shape[1], x.shape[1]
    new = x + table[s : s + n]  # the cache says where we are
    seen = torch.cat([cache, new], dim=1)
    scores = new @ seen.mT / x.shape[-1] ** 0.5
    # new token i may see the s old ones, and the new ones up to itself
    allowed = torch.ones_like(scores[0]).tril(s).bool()
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return weights @ seen, seen


decode_step.instead(r"""
table[s : s + n]
    table[:n]  # every step begins at position 0 again
    table[s + 1 : s + n + 1]  # your positions are one too high
    table[s + n - 1 : s + 2 * n - 1]
        # your positions begin at the end of the new tokens, not at their beginning
    table[n : 2 * n]  # your positions count the new tokens, not the cached ones
tril(s)
    tril()  # the positions are right; which tokens, cached and new, does your mask let
        a new one see?
    tril(s + 1)  # a new token sees the one after it
    tril(s - 1)  # a new token does not see itself
    tril(10_000)  # a new token sees all new tokens, later ones too
weights @ seen, seen
    weights @ seen, torch.cat([cache, x], dim=1)
        # the output is right; the new cache lacks the positions
    weights @ seen, cache  # the output is right; the new cache lacks the new tokens
seen = -> cache = cache + table[:s]\n    seen =
        # the cached tokens have their positions already; you add them again
x.shape[-1] ** 0.5 -> 1.0  # the scores are not divided by √d
table[s : s + n] -> table[:n]
tril(s) -> tril()  # nothing has been repaired yet: what do a position and a mask know
        of the cache?
new @ seen.mT -> new @ new.mT
tril(s) -> tril()
weights @ seen, -> weights @ new,  # the cached tokens are not attended to
""")


@decode_step.case("the example: one token in the cache, one new one")
def _(draw):
    table = torch.tensor([[0.0], [1.0], [3.0]])
    return torch.zeros(1, 1, 1), table, torch.full((1, 1, 1), 2.0)


@decode_step.each("""
an empty cache: the first token -> 1, 0
an empty cache: a whole sequence -> 5, 0
one new token after four -> 1, 4
three new tokens after five -> 3, 5
five new tokens after two -> 5, 2
""")
def _(draw, n, s):
    d = draw.integer(4, 6)
    return draw.normal(3, n, d), draw.normal(s + n + 8, d), draw.normal(3, s, d)


@decode_step.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 2, 4), draw.normal(12, 4), draw.normal(2, 3, 4)
