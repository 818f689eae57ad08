"""The exercises of chapter 08; ``__init__.py`` says how one is written."""

import torch
from torch import Tensor

from annotated.checks import Exercise, Function
from annotated.checks.material import asked


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


def by_end(tokens, end, pad):
    """Which rows hold an end."""
    return (tokens == end).any(dim=1)


def decode(
    next_logits,
    b,
    start,
    end,
    pad,
    most,
    *,
    ended=by_end,
    stop=lambda tokens, end, pad: by_end(tokens, end, pad).all(),
    filled=True,
    fill=lambda end, pad: pad,
    sign=1,
    behind_start=True,
):
    tokens = torch.full((b, 1), start)
    for _ in range(most):
        symbols = (sign * next_logits(tokens)).argmax(dim=-1)
        if filled:
            symbols[ended(tokens[:, behind_start:], end, pad)] = fill(end, pad)
        tokens = torch.cat([tokens, symbols[:, None]], dim=1)
        if stop(tokens[:, behind_start:], end, pad):
            break
    return tokens[:, 1:]


def variant(**switches):
    return lambda *given: decode(*given, **switches)


def then(change):
    """What was written, changed."""
    return lambda next_logits, b, start, end, pad, most: change(
        decode(next_logits, b, start, end, pad, most), start, end, pad, most
    )


def end_or_pad(tokens, end, pad):
    return ((tokens == end) | (tokens == pad)).any(dim=1)


FAULTS = {  # what `asked` has seen
    "rows": "next_logits takes all b rows, ended or not, as a tensor (b, t)",
    "int64": "the ids that next_logits takes are int64",
    "start": "next_logits takes start and all that was written behind it; here the "
    "first symbol of a row is not start",
    "room": "next_logits was given more than start and `most` − 1 symbols: was it "
    "asked once too often, or given room for what is still to come?",
    "again": "next_logits was asked once more although every row had written end: do "
    "you remember who has ended?",
    "filled with end": "behind its end a row is filled with end; it should be `pad`",
    "filled with 0": "padding is `pad`, whatever its number: not always 0",
    "fed": "next_logits was given other symbols than `pad` behind the end of a row: "
    "what is written is also fed",
}

greedy = Exercise(
    "ch08-greedy",
    right=decode,
    through=asked,
    symptoms=lambda written, *_: (
        FAULTS.get(written) if isinstance(written, str) else None
    ),
    hint="expected the likeliest symbol after start and all that was written, again "
    "and again, until every row has written end",
    mistakes={
        "start counts as an end, for it is the same id": then(
            lambda w, start, end, pad, most: w[:, :1] if start == end else w
        ),
        "start counts as an end, for it is the same id: all is padding": (
            variant(behind_start=False)
        ),
        "start counts as an end, for it is the same id: nothing is written": then(
            lambda w, start, end, pad, most: w[:, :0] if start == end else w
        ),
        "start is returned as well; only what was written is wanted": then(
            lambda w, start, end, pad, most: torch.cat(
                [torch.full((len(w), 1), start), w], dim=1
            )
        ),
        "what a row writes behind its end is still there": variant(filled=False),
        "it stops when the first row has ended; the others have not": variant(
            stop=lambda tokens, end, pad: by_end(tokens, end, pad).any()
        ),
        "the last symbol is missing: is start counted, or an end not written?": then(
            lambda w, start, end, pad, most: w[:, :-1]
        ),
        FAULTS["filled with 0"]: variant(fill=lambda end, pad: 0),
        FAULTS["filled with end"]: variant(fill=lambda end, pad: end),
        "a row stops at a padding that it wrote; only end stops it": variant(
            ended=end_or_pad, stop=lambda *given: end_or_pad(*given).all()
        ),
        "a padding that a row wrote counts as its end; only end stops it": variant(
            stop=lambda *given: end_or_pad(*given).all()
        ),
        "it stops where every row writes end or `pad`; a row that writes `pad` by "
        "itself has not ended": variant(
            stop=lambda tokens, end, pad: end_or_pad(tokens[:, -1:], end, pad).all()
        ),
        "the end itself is replaced by padding": then(
            lambda w, start, end, pad, most: w.masked_fill(w == end, pad)
        ),
        "the result is always `most` wide; it ends where the last row ends": then(
            lambda w, start, end, pad, most: torch.nn.functional.pad(
                w, (0, most - w.shape[1]), value=pad
            )
        ),
        "this is the least likely symbol": variant(sign=-1),
        "all rows write what the first one writes": then(
            lambda w, *_: w[:1].expand_as(w)
        ),
        "batch first: the result is (b, t), a row a sequence": then(lambda w, *_: w.mT),
    },
)


def nearest(symbols, v):
    """Logits that are the largest at `symbols`, an expression of shape (b, 1)."""
    return Function(f"-0.5 * (torch.arange({v}) - {symbols}).abs() - 0.25", "tokens")


def scripted(draw, rows, *symbols):
    """Row n wants to write rows[n], whatever it has written so far."""
    rows, *symbols = disguised(draw, rows, *symbols)
    script = f"torch.tensor({rows.tolist()})[:, tokens.shape[1] - 1, None]"
    return nearest(script, 10), len(rows), *symbols, rows.shape[1]


@greedy.case("the example: one row ends after three symbols, one after two")
def _(draw):
    script = "torch.tensor([[4, 3, 2, 6, 6], [5, 2, 7, 7, 7]])"
    return nearest(f"{script}[:, tokens.shape[1] - 1, None]", 8), 2, 1, 2, 0, 5


@greedy.case("what comes next depends on all that was written")
def _(draw):
    v, start = draw.integer(7, 9), draw.integer(1, 3)
    weights = "torch.arange(2, tokens.shape[1] + 2)"
    symbols = f"((tokens * {weights}).sum(1, True) + torch.arange(3)[:, None]) % {v}"
    return nearest(f"({symbols})", v), 3, start, v - 1, v, 5


SCRIPTS = {  # rows; start, end, pad
    "another padding, and a row that writes a padding itself": (
        ids("2 5 3 3 1 1", "5 4 4 4 4 4", "6 2 4 6 4 5", "3 3 5 4 2 0"),
        (2, 5, 6),
    ),
    "start and end are the same id": (ids("3 3 1 4", "4 1 3 1"), (1, 1, 0)),
    "a row that never ends is cut after `most` symbols": (
        ids("3 4 5", "4 2 6"),
        (1, 2, 7),
    ),
}

for line, (rows, symbols) in SCRIPTS.items():
    greedy.case(line)(
        lambda draw, rows=rows, symbols=symbols: scripted(draw, rows, *symbols)
    )


# ---- exact match -------------------------------------------------------------


def stripped(row, pad):
    """Without the padding at its end."""
    return stripped(row[:-1], pad) if row and row[-1] == pad else row


def text_of(row, pad, end):
    return row[: row.index(end) + 1] if end in row else stripped(row, pad)


def exact(text=text_of, same=lambda one, other, pad: one == other, told=None):
    def share(written, target, pad, end):
        pairs = zip(written.tolist(), target.tolist(), strict=True)
        right = [same(text(a, pad, end), text(b, pad, end), pad) for a, b in pairs]
        return told(sum(right), len(right)) if told else sum(right) / len(right)

    return share


def placewise(rule):
    """Rows compared place by place, as far as both of them go."""
    return exact(
        text=lambda row, pad, end: row,
        same=lambda one, other, pad: all(
            rule(a, b, pad) for a, b in zip(one, other, strict=False)
        ),
    )


def of_symbols(written, target, pad, end):
    right = []
    for one, two in zip(written.tolist(), target.tolist(), strict=True):
        one, two = text_of(one, pad, end), text_of(two, pad, end)
        right += [n < len(one) and one[n] == symbol for n, symbol in enumerate(two)]
    return sum(right) / max(len(right), 1)


PROPERTIES = [  # a case, what it shows, who misses it; written, target, pad, end
    (
        "rubbish behind the end",
        "what stands behind the end is no part of a text",
        exact(lambda row, pad, end: stripped(row, pad)),
        (ids("5 2 0 0", "4 2 3 0", "3 2 6 5"), ids("5 2", "4 2", "3 4"), 0, 2),
    ),
    (
        "several ends in a row",
        "a text ends with its first end, not with its last",
        exact(
            lambda row, pad, end: (
                row[: len(row) - row[::-1].index(end)]
                if end in row
                else stripped(row, pad)
            )
        ),
        (ids("3 2 4 2", "4 2 2 0", "5 2 0 0"), ids("3 2", "4 2", "7 2"), 0, 2),
    ),
    (
        "a row that has not ended is not one that has",
        "the end is a symbol to be written: a row without it is not the same",
        exact(
            lambda row, pad, end: (
                row[: row.index(end)] if end in row else stripped(row, pad)
            )
        ),
        (ids("3 4 5", "3 4 5", "5 5 2"), ids("3 4 5 2", "3 4 2 0", "5 5 2 0"), 0, 2),
    ),
    (
        "a row that goes on",
        "a row that goes on where its target has ended is wrong",
        placewise(lambda one, other, pad: other in (one, pad)),
        (ids("3 4 2 0", "3 4 5 5", "6 4 5 2"), ids("3 4 2", "3 4 0", "6 4 5"), 0, 2),
    ),
    (
        "a row that is longer than its target",
        "what was written must not be cut to the length of the target",
        placewise(lambda one, other, pad: one == other),
        (ids("7 3 7 8", "4 7 3 3", "4 4 4 7", "7 8 8 8"), ids(*"7447"), 8, 7),
    ),
    (
        "no end at all",
        "without an end the text is the whole row",
        exact(lambda row, pad, end: row[: row.index(end) + 1] if end in row else []),
        (ids("3 4 5", "6 3 5", "4 4 3"), ids("3 4 5", "6 3 4", "4 4 3"), 0, 2),
    ),
    (
        "padding, and no end",
        "without an end, the padding at the end of a row is no part of its text",
        exact(lambda row, pad, end: row[: row.index(end) + 1] if end in row else row),
        (ids("4 4 0 0", "5 3 0 0", "6 3 0 0"), ids("4 4 0", "5 3 6", "6 3 0"), 0, 2),
    ),
    (
        "another padding, and no end",
        "padding is `pad`, whatever its number: not always 0",
        exact(lambda row, pad, end: text_of(row, 0, end)),
        (ids("4 4 9 9", "5 0 9 9", "6 3 9 9"), ids("4 4 9", "5 0 9", "6 4 9"), 9, 2),
    ),
    (
        "a padding in between",
        "a padding in between is a symbol like others",
        exact(lambda row, pad, end: [i for i in text_of(row, pad, end) if i != pad]),
        (ids("3 0 4 2", "3 4 2 0", "5 0 6 2"), ids("3 4 2", "3 4 2", "5 6 2"), 0, 2),
    ),
    (
        "a padding in between, and no end",
        "a text goes on behind a padding in between",
        exact(
            lambda row, pad, end: (
                row[: row.index(pad)]
                if pad in row and end not in row
                else text_of(row, pad, end)
            )
        ),
        (ids("4 0 5", "4 0 5", "3 6 0"), ids("4 0 6", "4 0 5", "3 6 0"), 0, 2),
    ),
]

match = Exercise(
    "ch08-exact",
    right=exact(),
    hint="expected the number of rows that are right, divided by that of all rows",
    mistakes={
        **{hint: mistake for _, hint, mistake, _ in PROPERTIES},
        "this is the share of right symbols; a row counts only if all of it is": (
            of_symbols
        ),
        "a share from 0 to 1 is wanted, no percentage": exact(
            told=lambda right, count: 100 * right / count
        ),
        "this is how many rows are right; their share is wanted": exact(
            told=lambda right, count: right
        ),
        "this is the share of the rows that are wrong": exact(
            told=lambda right, count: 1 - right / count
        ),
    },
)


@match.case("the example: one of two is right")
def _(draw):
    return ids("3 4 2 5", "3 5 2 0"), ids("3 4 2", "3 4 2"), 0, 2


@match.case("nothing but symbols and ends: two of five are right")
def _(draw):
    target = ids("3 4 2", "5 6 2", "7 4 2", "4 5 2", "3 5 2")
    written = ids("3 4 2", "5 6 2", "7 3 2", "4 4 2", "6 5 2")
    return disguised(draw, written, target, 0, 2)


for line, hint, _, things in PROPERTIES:
    match.case(line, hint=hint)(lambda draw, things=things: disguised(draw, *things))


# ---- reverse instead of copy -------------------------------------------------


def by_row(change):
    """Rows of real symbols changed one by one, and padded again."""

    def targets(source, pad):
        rows = [[i for i in row if i != pad] for row in source.tolist()]
        rows = [change(row) for row in rows]
        return torch.tensor([r + [pad] * (source.shape[1] - len(r)) for r in rows])

    return targets


def turned(row):
    return row[:1] + row[:0:-1]


backwards = by_row(turned)


def around(row):
    """Symbols turned round, but for those that are the first one's like."""
    others = [symbol for symbol in row if symbol != row[0]]
    return [symbol if symbol == row[0] else others.pop() for symbol in row]


def overwritten(row):
    """Symbols turned round in place, one after the other: half of them are lost."""
    for i in range(1, len(row)):
        row[i] = row[len(row) - i]
    return row


def of_first(source, pad):
    n = int((source[0] != pad).sum())
    return torch.cat([source[:, :1], source[:, 1:n].flip(1), source[:, n:]], dim=1)


def zeros(source, pad):
    """0 is taken for the padding."""
    place, size = torch.arange(source.shape[1]), (source != 0).sum(1, keepdim=True)
    moved = (place > 0) & (place < size)
    return source.gather(1, torch.where(moved, size - place, place))


ROWS = {
    "nothing is reversed": lambda row: row,
    "the start symbol is reversed, too": lambda row: row[::-1],
    "the start symbol has become padding": lambda row: row[:0:-1],
    "the symbols are sorted, not turned round": (
        lambda row: row[:1] + sorted(row[1:], reverse=True)
    ),
    "the last real symbol stays where it is": (
        lambda row: turned(row[:-1]) + row[-1:] if len(row) > 1 else row
    ),
    "the first symbol behind start stays where it is": lambda row: row[:2] + row[:1:-1],
    "a start symbol further on stays where it is; there it is a symbol like others": (
        around
    ),
    "start symbols further on come to the front; there they are symbols like others": (
        lambda row: sorted(turned(row), key=lambda i: i != row[0])
    ),
    "start symbols further on are lost; there they are symbols like others": (
        lambda row: row[:1] + [i for i in row[::-1] if i != row[0]]
    ),
    "a symbol is lost to one that stands there twice: the row is written while it is "
    "read": overwritten,
}

reverse = Exercise(
    "ch08-reverse",
    right=backwards,
    hint="expected the start symbol, the other real ones backwards, the padding",
    mistakes={
        **{hint: by_row(change) for hint, change in ROWS.items()},
        "the padding is reversed, too, and comes first": (
            lambda source, pad: source.flip(1)
        ),
        "the padding stands between the start symbol and the others": (
            lambda source, pad: torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
        ),
        "the start symbol is missing": lambda *given: backwards(*given)[:, 1:],
        "every row has its own length; you use that of the first": of_first,
        "the order of the rows is reversed, not that of the symbols": (
            lambda source, pad: source.flip(0)
        ),
        "padding is `pad`, whatever its number: not always 0": zeros,
        "padding is `pad`, in the result, too: not always 0": (
            lambda source, pad: backwards(source, pad).masked_fill(source == pad, 0)
        ),
        "batch first: the result is (b, s), a row a sequence": (
            lambda *given: backwards(*given).mT
        ),
    },
)


@reverse.case("the example: a full row and a padded one")
def _(draw):
    return ids("1 5 3 4 7", "1 6 2 0 0"), 0


SOURCES = {
    "padding is 9, say, and 0 is a symbol like others": (
        ids("1 3 8 2 5 4 9", "1 7 0 3 9 9 9", "1 4 9 9 9 9 9"),
        9,
    ),
    "the start symbol once more, and a row with nothing but start": (
        ids("2 2 5 2 0 0", "2 0 0 0 0 0", "2 4 2 6 7 3"),
        0,
    ),
}

for line, things in SOURCES.items():
    reverse.case(line)(lambda draw, things=things: disguised(draw, *things))


# ---- where does it go wrong first? -------------------------------------------


def first(flags, none=-1):
    """Place of the first True of each row."""
    return flags.int().argmax(dim=1).masked_fill(~flags.any(dim=1), none)


def errors(written, target, pad):
    return (written != target) & (target != pad)


def places(flags=errors, change=lambda place: place, none=-1):
    return lambda written, target, pad: change(first(flags(written, target, pad), none))


def among_real(written, target, pad):
    flags, real = errors(written, target, pad), target != pad
    return first(
        torch.stack(
            [
                f[r.argsort(descending=True, stable=True)]
                for f, r in zip(flags, real, strict=True)
            ]
        )
    )


def last(written, target, pad):
    flags = errors(written, target, pad)
    return torch.where(flags, torch.arange(flags.shape[1]), -1).amax(dim=1)


def of_batch(written, target, pad):
    flags = errors(written, target, pad).any(dim=0, keepdim=True)
    return first(flags).expand(len(written))


FLAGS = {
    "padding of the target is compared, too": lambda w, target, pad: w != target,
    "where padding is written and a symbol is asked for, that is an error": (
        lambda w, target, pad: (w != target) & (w != pad)
    ),
    "what is written as padding counts, too, where a symbol is asked for": (
        lambda w, target, pad: errors(w, target, pad) & (w != pad)
    ),
    "this is the first symbol that is right": (
        lambda w, target, pad: (w == target) & (target != pad)
    ),
    "padding is `pad`, whatever its number: not always 0": (
        lambda w, target, pad: errors(w, target, 0)
    ),
    "symbol 0 is left out, and so is padding: only `pad` is padding": (
        lambda w, target, pad: errors(w, target, pad) & (target != 0)
    ),
}

first_error = Exercise(
    "ch08-first-error",
    right=places(),
    hint="expected the first place where a real symbol of the target is not what was "
    "written, −1 if there is none",
    mistakes={
        "a row without an error gives 0, as if its first symbol were wrong": (
            places(none=0)
        ),
        "an error at place 0 is told as none: 0 is a place like others": places(
            change=lambda place: place.masked_fill(place == 0, -1)
        ),
        "a row without an error gives t; it should be −1": (
            lambda written, target, pad: first(
                errors(written, target, pad), target.shape[1]
            )
        ),
        **{hint: places(flags) for hint, flags in FLAGS.items()},
        "padding of the target is compared, too, and a row without an error gives 0": (
            places(FLAGS["padding of the target is compared, too"], none=0)
        ),
        "this is the last error; the first is wanted": last,
        "this is how many errors there are; the place of the first is wanted": (
            lambda *given: errors(*given).sum(dim=1)
        ),
        "places are counted from 0": places(
            change=lambda place: place + (place >= 0).long()
        ),
        "the place is counted from 1, and a row without an error gives 0": places(
            change=lambda place: place + 1
        ),
        "places count all symbols of a row; you count the real ones alone": among_real,
        "this is the first error of the whole batch; each row has its own": of_batch,
        "rows without an error are left out": places(
            change=lambda place: place[place >= 0]
        ),
        "one number a row is wanted, (b,), no axis of length 1": places(
            change=lambda place: place[:, None]
        ),
        "one place a row is wanted, not one a symbol": errors,
    },
)


@first_error.case("the example: a row with two errors and two without")
def _(draw):
    return ids("5 3 4 4", "2 6 7 3", "7 4 5 5"), ids("5 3 2 6", "2 6 0 0", "7 4 5 5"), 0


ROW_PAIRS = {
    "padding is 9, say, written in the wrong places too, and 0 is a symbol": (
        ids("4 3 2 5 7", "0 2 4 4 6", "3 9 9 9 9", "8 1 5 2 9"),
        ids("4 3 2 5 9", "5 2 4 1 6", "3 6 2 9 9", "8 1 0 2 9"),
        9,
    ),
    "padding in front and in between: places count the whole row": (
        ids("6 2 3 4 7 7", "1 3 2 2 5 8"),
        ids("0 2 0 4 5 5", "0 0 2 4 5 6"),
        0,
    ),
    "no error anywhere, and a target of nothing but padding": (
        ids("4 5", "3 3", "0 6"),
        ids("4 5", "3 0", "0 0"),
        0,
    ),
}

for line, things in ROW_PAIRS.items():
    first_error.case(line)(lambda draw, things=things: disguised(draw, *things))
