"""The exercises of chapter 08; ``__init__.py`` says how one is written."""

import torch
from torch import Tensor

from annotated.checks import Function, exercise
from annotated.checks.material import asked

NUMBER = "padding is `pad`, whatever its number: not always 0"


def ids(*rows):
    """Token ids, a row a string: ``ids("1 4 3", "1 2 0")``."""
    return torch.tensor([[int(i) for i in row.split()] for row in rows])


def disguised(draw, *things):
    """Ids and batches of ids, renamed, and the rows of all batches in another order.

    0 keeps its name, so that a padding is 0 where it was, and only there.
    """
    names = torch.tensor([0, *draw.shuffled(range(1, 10))])
    order = draw.shuffled(range(next(len(t) for t in things if isinstance(t, Tensor))))
    return tuple(
        names[t][order] if isinstance(t, Tensor) else names[t].item() for t in things
    )


# ---- greedy decoding with early stop -----------------------------------------

FAULTS = {  # what `asked` has seen
    "tensors": "next_logits takes two tensors: ids (n, t) and the numbers of the rows "
    "(n,)",
    "shapes": "next_logits takes ids (n, t) and the numbers of these rows, (n,): has "
    "only one of the two been cut?",
    "int64": "the ids and the numbers of rows that next_logits takes are int64",
    "numbers": "rows are numbered from 0 to b − 1, as at the beginning, also when "
    "others have ended",
    "afresh": "the rows that are left were numbered afresh, from 0: each keeps its "
    "number",
    "ended": "next_logits was asked about a row that has written end: is no row "
    "dropped?",
    "together": "next_logits is asked once at each step, about all rows that have not "
    "ended; here one of them was missing, or came twice (only end stops a row)",
    "start": "next_logits takes start and all that was written after it; here the "
    "first symbol of a row is not start",
    "room": "next_logits was given more than start and `most` − 1 symbols: was it "
    "asked once too often, or given room for what is still to come?",
    "fed": "next_logits was given other symbols than start and the most likely one at "
    "each step: do ids and numbers of rows still belong together?",
}


@exercise(
    "ch08-greedy",
    "expected the likeliest symbol after start and all that was written, again and "
    "again, until every row has written end",
    through=asked,
    broken=FAULTS,
)
def greedy(next_logits, b, start, end, pad, most):
    """Write the most likely symbols; ids (b, t), `pad` after `end`."""
    written = torch.full((b, most), pad)
    tokens, rows = torch.full((b, 1), start), torch.arange(b)
    for i in range(most):
        symbols = next_logits(tokens, rows).argmax(dim=-1)  # (n,)
        going = symbols != end
        written[rows, i] = symbols
        tokens = torch.cat([tokens, symbols[:, None]], dim=1)[going]
        rows = rows[going]
        if not len(rows):
            break
    return written[:, : i + 1]


START = "start counts as an end, because it is the same id"
greedy.instead("""
return written[:, : i + 1]
    return written[:, : 1 if start == end else i + 1]  # {START}
    return written[:, : 0 if start == end else i + 1]  # {START}: nothing is written
    return torch.cat([torch.full((b, 1), start), written[:, : i + 1]], dim=1)
        # start is returned as well; only what was written is wanted
    return written[:, :i]
        # the last symbol is missing: is start counted, or an end not written?
    return written  # the result is always `most` wide; it ends where the last row ends
    return written[:1, : i + 1].expand(b, -1)
        # all rows write what the first one writes
    return written[:, : i + 1].flip(0)  # the rows are not in their own places
    return written[:, : i + 1].mT  # batch first: the result is (b, t), a row a sequence
(b, most), pad)
    (b, most), 0)  # {NUMBER}
    (b, most), end)  # after its end a row is filled with end; it should be `pad`
i] = symbols -> i] = symbols.where(going, pad)  # the end itself is replaced by padding
dim=1)[going] -> dim=1)
rows = rows[going] -> pass  # … about a row that has written end
next_logits(tokens, rows)
    next_logits(tokens, torch.arange(len(rows)))  # … numbered afresh, from 0
    next_logits(tokens, rows + 1)  # … as at the beginning, also when others
    torch.cat([next_logits(tokens[[i]], rows[[i]]) for i in range(len(rows))])
        # … about all rows that have not
dim=1)[going] -> dim=1)  # … only one of the two been cut
dim=1)[going]
    dim=1)[: going.sum()]  # … ids and numbers of rows still belong together
""")


def nearest(symbols, v):
    """Logits that are the largest at `symbols`, an expression of shape (n, 1)."""
    text = f"-0.5 * (torch.arange({v}) - {symbols}).abs() - 0.25"
    return Function(text, "tokens, rows")


def script_of(rows):
    """An expression: what each row wants to write now."""
    return f"torch.tensor({rows})[rows, tokens.shape[1] - 1, None]"


@greedy.case("the example: one row ends after two symbols, one after three")
def _(draw):
    rows = [[5, 2, 7, 7, 7], [4, 3, 2, 6, 6]]
    return nearest(script_of(rows), 8), 2, 1, 2, 0, 5


@greedy.case("what comes next depends on all that was written")
def _(draw):
    v, start = draw.integer(7, 9), draw.integer(1, 3)
    weights = "torch.arange(2, tokens.shape[1] + 2)"
    symbols = f"((tokens * {weights}).sum(1, True) + rows[:, None]) % {v}"
    return nearest(f"({symbols})", v), 3, start, v - 1, v, 5


# start, end and pad; what the rows want to write, whatever they have written so far
@greedy.each("""
another padding, and a row that writes a padding itself -> 2, 5, 6,
        "2 5 3 3 1 1", "5 4 4 4 4 4", "6 2 4 6 4 5", "3 3 5 4 2 0"
start and end are the same id -> 1, 1, 0, "3 3 1 4", "4 1 3 1"
a row that never ends is cut after `most` symbols -> 1, 2, 7, "3 4 5", "4 2 6"
""")
def _(draw, start, end, pad, *rows):
    rows, *symbols = disguised(draw, ids(*rows), start, end, pad)
    return nearest(script_of(rows.tolist()), 10), len(rows), *symbols, rows.shape[1]


# ---- exact match -------------------------------------------------------------


def stripped(row, pad):
    """Without the padding at its end."""
    return stripped(row[:-1], pad) if row and row[-1] == pad else row


@exercise(
    "ch08-exact",
    "expected the number of rows that are right, divided by that of all rows",
)
def exact_match(written, target, pad, end):
    """Share of the rows whose text is exactly that of the target."""

    def text(row):
        if end in row:
            return row[: row.index(end) + 1]
        size = max((n + 1 for n, i in enumerate(row) if i != pad), default=0)
        return row[:size]

    pairs = list(zip(written.tolist(), target.tolist(), strict=True))
    right = [text(one) == text(other) for one, other in pairs]
    return sum(right) / len(right)


@exact_match.case("the example: one of two is right")
def _(draw):
    return ids("3 4 2 5", "3 5 2 0"), ids("3 4 2", "3 4 2"), 0, 2


@exact_match.each("""
nothing but symbols and ends: two of five are right -> "3 4 2|5 6 2|7 3 2|4 4 2|6 5 2",
        "3 4 2|5 6 2|7 4 2|4 5 2|3 5 2", 0, 2
no end at all -> "3 4 5|6 3 5|4 4 3|7 3 4", "3 4 5|6 3 4|4 4 3|5 3 4", 0, 2
rubbish after the end -> "5 2 0 0|4 2 3 0|3 2 6 5", "5 2|4 2|3 4", 0, 2
        # what comes after the end is not part of a text
several ends in a row -> "3 2 4 2|4 2 2 0|5 2 0 0", "3 2|4 2|7 2", 0, 2
        # a text ends with its first end, not with its last
a row that has not ended is not one that has -> "3 4 5|3 4 5|5 5 2",
        "3 4 5 2|3 4 2 0|5 5 2 0", 0, 2  # the end is a symbol to be written: a row
        without it is not the same
a row that goes on -> "3 4 2 0|3 4 5 5|6 4 5 2", "3 4 2|3 4 0|6 4 5", 0, 2
a row that is longer than its target -> "7 3 7 8|4 7 3 3|4 4 4 7|7 8 8 8", "7|4|4|7",
        8, 7  # a row that is longer than its target is not judged as it should be: is
        it cut to the target's length, or its end dropped?
padding, and no end -> "4 4 0 0|5 3 0 0|6 3 0 0", "4 4 0|5 3 6|6 3 0", 0, 2
        # without an end, the padding at the end of a row is not part of its text
another padding, and no end -> "4 4 9 9|5 0 9 9|6 3 9 9", "4 4 9|5 0 9|6 4 9", 9, 2
        # {NUMBER}
a padding in between -> "3 0 4 2|3 4 2 0|5 0 6 2", "3 4 2|3 4 2|5 6 2", 0, 2
        # a padding in between is a symbol like others
a padding in between, and no end -> "4 0 5|4 0 5|3 0 4", "4 0 6|4 0 5|3 4 0", 0, 2
        # a padding in between is a symbol like others, and the text goes on after it
""")
def _(draw, written, target, pad, end):
    return disguised(draw, ids(*written.split("|")), ids(*target.split("|")), pad, end)


@exact_match.case("other rows, of which some are right", graded_only=True)
def _(draw):
    target = draw.integers(3, 8, 9, 4)
    target[:, -1] = 2
    wrong = draw.integers(0, 1, 9, 1) * (torch.arange(4) == draw.integer(0, 2))
    return torch.where(wrong > 0, 11 - target, target), target, 0, 2


exact_match.instead(r"""
return row[:size]
    return []  # without an end the text is the whole row, not nothing
    return row[:1]  # without an end the text is the whole row; `argmax` gives 0 there,
        as if the first symbol were the end
    return row  # {padding, and no end}
    return stripped(row, 0)  # {another padding, and no end}
    return row[: row.index(pad)] if pad in row else row
        # {a padding in between, and no end}
return row[: row.index(end) + 1]
    return stripped(row, pad)  # {rubbish after the end}
    return row[: len(row) - row[::-1].index(end)]  # {several ends in a row}
    return row[: row.index(end)]  # {a row that has not ended is not one that has}
text(one) == text(other)
    all(b in (a, pad) for a, b in zip(one, other))
        # a row that goes on where its target has ended is wrong
    all(a == b for a, b in zip(one, other))  # {a row that is longer than its target}
if end in row -> row = [i for i in row if i != pad]\n        if end in row
        # {a padding in between}
sum(right) / len(right)
    100 * sum(right) / len(right)  # a share from 0 to 1 is wanted, no percentage
    sum(right)  # this is how many rows are right; their share is wanted
    1 - sum(right) / len(right)  # this is the share of the rows that are wrong
[text(one) == text(other) for one, other in pairs] -> [text(o)[n : n + 1] == [s] for o,
        r in pairs for n, s in enumerate(text(r))]
        # this is the share of right symbols; a row counts only if all of it is
""")


# ---- reverse instead of copy -------------------------------------------------


def around(row):
    """Symbols turned round, but for those that are the first one's like."""
    others = [symbol for symbol in row if symbol != row[0]]
    return [symbol if symbol == row[0] else others.pop() for symbol in row]


def overwritten(row):
    """Symbols turned round in place, one after the other: half of them are lost."""
    for i in range(1, len(row)):
        row[i] = row[len(row) - i]
    return row


@exercise(
    "ch08-reverse",
    "expected the start symbol, the other real ones backwards, the padding",
)
def reversed_targets(source, pad):
    """Targets (b, s): start, the other real symbols backwards, padding."""
    result = source.clone()
    for row, new in zip(source.tolist(), result, strict=True):
        real = [i for i in row if i != pad]
        turned = real[:1] + real[:0:-1]  # start, the others backwards
        new[:] = torch.tensor(turned + [pad] * (len(row) - len(turned)))
    return result


LIKE = "there they are symbols like others"
reversed_targets.instead("""
real[:1] + real[:0:-1]
    real  # nothing is reversed
    real[::-1]  # the start symbol is reversed, too
    real[:0:-1]  # the start symbol has become padding
    real[:1] + sorted(real[1:], reverse=True)
        # the symbols are sorted, not turned round
    real[:1] + real[-2:0:-1] + real[1:][-1:]  # the last real symbol stays where it is
    real[:2] + real[:1:-1]  # the first symbol after start stays where it is
    around(real)
        # a start symbol further on stays where it is; there it is a symbol like others
    sorted(real[:1] + real[:0:-1], key=lambda i: i != real[0])
        # start symbols further on come to the front; {LIKE}
    real[:1] + [i for i in real[::-1] if i != real[0]]
        # start symbols further on are lost; {LIKE}
    overwritten(real)  # a symbol is lost to one that stands there twice: the row is
        written while it is read
return result
    return source.flip(1)  # the padding is reversed, too, and comes first
    return torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
        # the padding stands between the start symbol and the others
    return result[:, 1:]  # the start symbol is missing
    return source.flip(0)  # the order of the rows is reversed, not that of the symbols
    return result.masked_fill(source == pad, 0)
        # padding is `pad`, in the result, too: not always 0
    return result.mT  # batch first: the result is (b, s), a row a sequence
    return result.long()  # ids of another dtype than those of `source`
[i for i in row if i != pad] -> row[: int((source[0] != pad).sum())]
        # every row has its own length; you use that of the first
i != pad -> i != 0  # {NUMBER}
return result -> return source.copy_(result)  # … changes its argument `source` in place
[i for i in row if i != pad] -> row[: int((source != pad).sum(dim=1).max())]
        # … the padding stands between
""")


reversed_targets.case(
    "ids of 32 bits stay ids of 32 bits",
    lambda draw: (draw.integers(1, 9, 3, 5).int(), 0),
)
reversed_targets.case(
    "the example: a full row and a padded one",
    lambda draw: (ids("1 5 3 4 7", "1 6 2 0 0"), 0),
)
reversed_targets.each("""
padding is 9, say, and 0 is a symbol like others -> 9,
        "1 3 8 2 5 4 9", "1 7 0 3 9 9 9", "1 4 9 9 9 9 9"
the start symbol once more, and a row with nothing but start -> 0,
        "2 2 5 2 0 0", "2 0 0 0 0 0", "2 4 2 6 7 3"
""")(lambda draw, pad, *rows: disguised(draw, ids(*rows), pad))

# ---- find the fault: it copies everything -------------------------------------


@exercise(
    "ch08-honest",
    "expected the share of rows in which all that the model writes by itself is right",
)
@torch.no_grad()
def exact_share(model, source, target):
    """Share of the sequences that the model writes as they should be."""
    written = target[:, :1]
    for _ in range(target.shape[1] - 1):
        symbol = model(source, written)[:, -1:].argmax(dim=-1)
        written = torch.cat([written, symbol], dim=1)
    right = written[:, 1:] == target[:, 1:]
    return right.all(dim=1).float().mean().item()


exact_share.instead("""
written[:, 1:] == target[:, 1:] -> model(source, target[:, :-1]).argmax(dim=-1) ==
        target[:, 1:]
        # it is still given the right beginning; nobody has that when it is used
written = target[:, :1]
    written = torch.ones_like(target[:, :1])
        # it begins with 1 in every row, not with the target's first symbol
    written = source[:, :1]
        # it begins with the source's first symbol, not with the target's
.all(dim=1)
    # single symbols count; a row counts if all of it is right
    .any(dim=1)  # one right symbol is enough; a row counts if all of it is right
    [:, :-1].all(dim=1)  # the last symbol is not compared
model(source, written)[:, -1:]
    model(source, torch.cat([written, 0 * target], dim=1)[:, : target.shape[1] - 1])[:,
        written.shape[1] - 1, None]
        # the model is given room for what is still to come; give it what has been
        written, and no more
    model(source, written)[:, :1]  # this is the symbol after start, again and again
.mean().item()
    .sum().item()  # this is how many rows are right; their share is wanted
    .sub(1).mean().neg().item()  # this is the share of the rows that are wrong
written[:, 1:] == -> model(source, target[:, :-1]).argmax(dim=-1) ==
.all(dim=1) -> # unchanged: it is given the right beginning, and single symbols count
written = target[:, :1] -> written = torch.ones_like(target[:, :1])
written[:, 1:] == target[:, 1:] -> written == target
        # the start symbol is compared, too, and it isn't the target's
""")


def next_symbols(symbols, v=9):
    """A model: logits (b, i, v) that are the largest at ``symbols``, (b, i)."""
    text = f"-0.5 * (torch.arange({v}) - ({symbols})[..., None]).abs() - 0.25"
    return Function(text, "source, given")


COPIES = "source[:, 1 : given.shape[1] + 1]"


@exact_share.case("other rows, of which some are right", graded_only=True)
def _(draw):
    source = (draw.integers(0, 7, 9, 1) + torch.arange(5)) % 8 + 1
    wrong = draw.integers(0, 1, 9, 1) * (torch.arange(5) == draw.integer(1, 4))
    source = torch.where(wrong > 0, source % 8 + 1, source)
    return next_symbols("given % 8 + 1"), source, source.clone()


@exact_share.case("a model that copies has all rows right")
def _(draw):
    source = draw.integers(2, 8, 4, 5)
    return next_symbols(COPIES), source, source.clone()


@exact_share.case("a model that reads the answer off what it is given has none")
def _(draw):
    target = torch.cat([draw.integers(1, 1, 4, 1), draw.integers(2, 8, 4, 5)], dim=1)
    peeking = "torch.cat([given[:, 1:], source[:, -1:] * (given.shape[1] == 5)], dim=1)"
    return next_symbols(peeking), target.clone(), target


@exact_share.case("a wrong symbol leads to the next one")
def _(draw):
    source = ids("1 2 3 4 5", "1 4 4 4 4", "1 8 2 3 4", "1 3 4 5 6", "1 3 5 6 7")
    return next_symbols("given % 8 + 1"), source, source.clone()


@exact_share.case(
    "a model that looks at the last symbol it is given, whatever the position"
)
def _(draw):
    # zeros in place of what is to come would make the fourth or the fifth right
    texts = "1 2 3 4 5", "5 6 7 8 1", "1 4 4 4 4", "5 1 1 1 2", "6 1 1 1 1"
    source = ids(*texts, "1 2 3 4 5", "7 2 3 4 5")
    next_one = "given[:, -1:].expand(given.shape) % 8 + 1"
    return next_symbols(next_one), source, source.clone()


@exact_share.case("nearly right is wrong: one symbol of each row")
def _(draw):
    target = ids("1 5 3 4 7", "1 2 2 8 6", "1 3 6 6 3", "1 7 4 5 3")
    source = target.clone()
    source[0, 2], source[1, 4], source[3, 1] = 8, 3, 2
    return next_symbols(COPIES), source, target


@exact_share.case("the target has a start symbol of its own, which the source lacks")
def _(draw):
    source = draw.integers(3, 8, 3, 4)
    source[0, 0] = 2
    target = torch.cat([torch.full((3, 1), 2), source], dim=1)
    copies = "source[:, : given.shape[1]] + 3 * (given[:, :1] != 2)"
    return next_symbols(copies, 12), source, target


# ---- the leak test -------------------------------------------------------------


@exercise(
    "ch08-leak",
    "expected the largest absolute change of a logit before the last position",
)
def leak(model, source, given, last):
    """The largest change of an earlier logit when the last symbols change."""
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    before, after = model(source, given), model(source, changed)
    moved = (after - before)[:, :-1]  # (b, t − 1, v)
    return moved.abs().max().item()


leak.instead(r"""
(after - before)[:, :-1]
    (after - before)  # the last position's logits may move: leave them out
    (after - before)[:, :1]  # only the first position is looked at
    (after - before)[:, -2:-1]  # only the last position but one is looked at
    (1.0 * (after.argmax(-1) != before.argmax(-1)))[:, :-1]
        # the answers are compared, not the logits: a small leak changes no answer
moved.abs().max()
    moved.max()  # a logit may also move down: take the absolute value
    moved.neg().max()  # a logit may also move up: take the absolute value
    moved.abs().mean()  # this is a mean or a sum, in which one leaking row may drown:
        the largest is wanted
[given[:, :-1], last[:, None]]
    [last[:, None], given[:, 1:]]  # the first symbol is changed; change the last one
    [given[:, :-1], last[:1].expand(len(last))[:, None]]
        # every row gets the first row's new symbol
changed = torch.cat([given[:, :-1], last[:, None]], dim=1) -> changed = given\n
        \n    changed[:, -1] = last  # … changes its argument `given` in place
""")


# The last symbol moves the logits of the last position: by a lot, and that is allowed.
CAUSAL = "(source[:, :1] + given.cumsum(1))[..., None] * torch.arange(1, 6) / 4"


@leak.each("""
no position sees what comes after it: 0 -> "0"
all positions see everything -> "given.sum(1)[:, None, None] * torch.arange(-3, 2) / 8"
only the last but one sees one symbol ahead, and its logits go down ->
        "-torch.cat([given[:, 1:], given[:, :1] * 0], dim=1)[..., None] *
        (torch.arange(given.shape[1]) == given.shape[1] - 2)[:, None] *
        torch.arange(-1, 4) / 8"
only the first position sees the last symbol, and its logits mostly go up ->
        "given[:, -1, None, None] * (torch.arange(given.shape[1]) == 0)[:, None] *
        torch.arange(-1, 4) / 8"
a single row leaks -> "given[:, -1, None, None] * (source[:, :1, None] == 10) *
        torch.arange(-1, 4) / 16", [9, 14, 2, 11]
""")
def _(draw, added, last=(12, 9, 14, 11)):  # what is added to the logits
    model = Function(f"{CAUSAL} + {added}", "source, given")
    source, given = draw.integers(1, 9, 4, 6), draw.integers(4, 7, 4, 5)
    source[2, 0] = 10  # the row that leaks, wherever in a batch it stands
    return model, source, given, torch.tensor(last)
