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
    fill=lambda end, pad: pad,
    kept=True,
):
    written = torch.full((b, most), fill(end, pad))
    tokens, rows = torch.full((b, 1), start), torch.arange(b)
    for i in range(most):
        symbols = next_logits(tokens, rows).argmax(dim=-1)
        ended = symbols == end
        written[rows, i] = symbols if kept else symbols.masked_fill(ended, pad)
        tokens = torch.cat([tokens, symbols[:, None]], dim=1)[~ended]
        rows = rows[~ended]
        if not len(rows):
            break
    return written[:, : i + 1]


def variant(**switches):
    return lambda *given: decode(*given, **switches)


def then(change):
    """What was written, changed."""
    return lambda next_logits, b, start, end, pad, most: change(
        decode(next_logits, b, start, end, pad, most), start, end, pad, most
    )


FAULTS = {  # what `asked` has seen
    "tensors": "next_logits takes two tensors: ids (n, t) and the numbers of the rows "
    "(n,)",
    "shapes": "next_logits takes ids (n, t) and the numbers of these rows, (n,): has "
    "only one of the two been cut?",
    "int64": "the ids and the numbers of rows that next_logits takes are int64",
    "numbers": "rows are numbered from 0 to b − 1, as at the beginning, also when "
    "others have ended",
    "ended": "next_logits was asked about a row that has written end: is that row "
    "still among them, or were the others numbered afresh, from 0?",
    "together": "next_logits is asked once at each step, about all rows that have not "
    "ended; here one of them was missing, or came twice (only end stops a row)",
    "start": "next_logits takes start and all that was written after it; here the "
    "first symbol of a row is not start",
    "room": "next_logits was given more than start and `most` − 1 symbols: was it "
    "asked once too often, or given room for what is still to come?",
    "fed": "next_logits was given other symbols than start and the most likely "
    "one at each step: do ids and numbers of rows still belong together?",
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
        "start counts as an end, because it is the same id": then(
            lambda w, start, end, pad, most: w[:, :1] if start == end else w
        ),
        "start counts as an end, because it is the same id: nothing is written": then(
            lambda w, start, end, pad, most: w[:, :0] if start == end else w
        ),
        "start is returned as well; only what was written is wanted": then(
            lambda w, start, end, pad, most: torch.cat(
                [torch.full((len(w), 1), start), w], dim=1
            )
        ),
        "the last symbol is missing: is start counted, or an end not written?": then(
            lambda w, start, end, pad, most: w[:, :-1]
        ),
        "padding is `pad`, whatever its number: not always 0": variant(
            fill=lambda end, pad: 0
        ),
        "after its end a row is filled with end; it should be `pad`": variant(
            fill=lambda end, pad: end
        ),
        "the end itself is replaced by padding": variant(kept=False),
        "the result is always `most` wide; it ends where the last row ends": then(
            lambda w, start, end, pad, most: torch.nn.functional.pad(
                w, (0, most - w.shape[1]), value=pad
            )
        ),
        "all rows write what the first one writes": then(
            lambda w, *_: w[:1].expand_as(w)
        ),
        "the rows are not in their own places": then(lambda w, *_: w.flip(0)),
        "batch first: the result is (b, t), a row a sequence": then(lambda w, *_: w.mT),
    },
)


def nearest(symbols, v):
    """Logits that are the largest at `symbols`, an expression of shape (n, 1)."""
    text = f"-0.5 * (torch.arange({v}) - {symbols}).abs() - 0.25"
    return Function(text, "tokens, rows")


def script_of(rows):
    """An expression: what each row wants to write now."""
    return f"torch.tensor({rows})[rows, tokens.shape[1] - 1, None]"


def scripted(draw, rows, *symbols):
    """Row n wants to write rows[n], whatever it has written so far."""
    rows, *symbols = disguised(draw, rows, *symbols)
    return nearest(script_of(rows.tolist()), 10), len(rows), *symbols, rows.shape[1]


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
        "no end at all",
        "without an end the text is the whole row: `argmax` gives 0 there, as if the "
        "first symbol were the end",
        exact(lambda row, pad, end: row[: row.index(end) + 1] if end in row else []),
        (ids("3 4 5", "6 3 5", "4 4 3"), ids("3 4 5", "6 3 4", "4 4 3"), 0, 2),
    ),
    (
        "rubbish after the end",
        "what comes after the end is not part of a text",
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
        "the end is a symbol to be written: a row without it is not the same "
        "(or does `argmax` find an end where there is none?)",
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
        "a row that is longer than its target is not judged as it should be: is it cut "
        "to the target's length, or its end dropped?",
        placewise(lambda one, other, pad: one == other),
        (ids("7 3 7 8", "4 7 3 3", "4 4 4 7", "7 8 8 8"), ids(*"7447"), 8, 7),
    ),
    (
        "padding, and no end",
        "without an end, the padding at the end of a row is not part of its text "
        "(or does `argmax` find an end where there is none?)",
        exact(lambda row, pad, end: row[: row.index(end) + 1] if end in row else row),
        (ids("4 4 0 0", "5 3 0 0", "6 3 0 0"), ids("4 4 0", "5 3 6", "6 3 0"), 0, 2),
    ),
    (
        "another padding, and no end",
        "padding is `pad`, whatever its number: not always 0 "
        "(or does `argmax` find an end where there is none?)",
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
        "a padding in between is a symbol like others, and the text goes on after it",
        exact(
            lambda row, pad, end: (
                row[: row.index(pad)]
                if pad in row and end not in row
                else text_of(row, pad, end)
            )
        ),
        (ids("4 0 5", "4 0 5", "3 0 4"), ids("4 0 6", "4 0 5", "3 4 0"), 0, 2),
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
    match.case(line, hint=None if line == "a row that goes on" else hint)(
        lambda draw, things=things: disguised(draw, *things)
    )


# ---- reverse instead of copy -------------------------------------------------


def by_row(change):
    """Rows of real symbols changed one by one, and padded again."""

    def targets(source, pad):
        rows = [[i for i in row if i != pad] for row in source.tolist()]
        rows = [change(row) for row in rows]
        rows = [r + [pad] * (source.shape[1] - len(r)) for r in rows]
        return torch.tensor(rows, dtype=source.dtype)

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
    "the first symbol after start stays where it is": lambda row: row[:2] + row[:1:-1],
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
        "ids of another dtype than those of `source`": (
            lambda *given: backwards(*given).long()
        ),
    },
)


@reverse.case("ids of 32 bits stay ids of 32 bits")
def _(draw):
    return draw.integers(1, 9, 3, 5).int(), 0


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


# ---- find the fault: it copies everything -------------------------------------


def writes(
    model,
    source,
    target,
    *,
    alone=True,
    whole=True,
    start=lambda source, target: target[:, :1],
    chosen=-1,
    compared=lambda written, target: written == target[:, 1:],
):
    written = start(source, target)
    for _ in range(target.shape[1] - 1):
        symbol = model(source, written)[:, chosen].argmax(dim=-1)
        written = torch.cat([written, symbol[:, None]], dim=1)
    if not alone:
        guesses = model(source, target[:, :-1]).argmax(dim=-1)
        written = torch.cat([target[:, :1], guesses], dim=1)
    right = compared(written[:, 1:], target)
    return (right.all(dim=1) if whole else right).double().mean().item()


def writing(**switches):
    return lambda *given: writes(*given, **switches)


def with_room(model, source, target):
    """Written into a buffer of zeros that the model is given as a whole."""
    written = torch.zeros_like(target)
    written[:, 0] = target[:, 0]
    for i in range(target.shape[1] - 1):
        written[:, i + 1] = model(source, written[:, :-1])[:, i].argmax(dim=-1)
    return (written == target).all(dim=1).double().mean().item()


honest = Exercise(
    "ch08-honest",
    right=writes,
    hint="expected the share of rows in which all that the model writes by itself is "
    "right",
    mistakes={
        "it is still given the right beginning; nobody has that when it is used": (
            writing(alone=False)
        ),
        "unchanged: it is given the right beginning, and single symbols count": (
            writing(alone=False, whole=False)
        ),
        "the model is given room for what is still to come; give it what has been "
        "written, and no more": with_room,
        "single symbols count; a row counts if all of it is right": writing(
            whole=False
        ),
        "one right symbol is enough; a row counts if all of it is right": writing(
            compared=lambda written, target: (written == target[:, 1:]).any(
                dim=1, keepdim=True
            )
        ),
        "it begins with 1 in every row, not with the target's first symbol": writing(
            start=lambda source, target: torch.ones_like(target[:, :1])
        ),
        "the start symbol is compared, too, and it isn't the target's": (
            lambda model, source, target: writes(
                model,
                source,
                target,
                start=lambda source, target: torch.ones_like(target[:, :1]),
                compared=lambda written, target: (
                    (written == target[:, 1:]) & (target[:, :1] == 1)
                ),
            )
        ),
        "this is the symbol after start, again and again": writing(chosen=0),
        "it begins with the source's first symbol, not with the target's": writing(
            start=lambda source, target: source[:, :1]
        ),
        "the last symbol is not compared": writing(
            compared=lambda written, target: (written == target[:, 1:])[:, :-1]
        ),
        "this is how many rows are right; their share is wanted": (
            lambda model, source, target: writes(model, source, target) * len(source)
        ),
        "this is the share of the rows that are wrong": (
            lambda model, source, target: 1 - writes(model, source, target)
        ),
    },
)


def next_symbols(symbols, v=9):
    """A model: logits (b, i, v) that are the largest at ``symbols``, (b, i)."""
    text = f"-0.5 * (torch.arange({v}) - ({symbols})[..., None]).abs() - 0.25"
    return Function(text, "source, given")


COPIES = "source[:, 1 : given.shape[1] + 1]"


@honest.case("a model that copies has all rows right")
def _(draw):
    source = draw.integers(2, 8, 4, 5)
    return next_symbols(COPIES), source, source.clone()


@honest.case("a model that reads the answer off what it is given has none")
def _(draw):
    target = torch.cat([draw.integers(1, 1, 4, 1), draw.integers(2, 8, 4, 5)], dim=1)
    peeking = "torch.cat([given[:, 1:], source[:, -1:] * (given.shape[1] == 5)], dim=1)"
    return next_symbols(peeking), target.clone(), target


@honest.case("a wrong symbol leads to the next one")
def _(draw):
    source = ids("1 2 3 4 5", "1 4 4 4 4", "1 8 2 3 4", "1 3 4 5 6", "1 3 5 6 7")
    return next_symbols("given % 8 + 1"), source, source.clone()


@honest.case("a model that looks at the last symbol it is given, whatever the position")
def _(draw):
    # zeros in place of what is to come would make the fourth or the fifth right
    texts = "1 2 3 4 5", "5 6 7 8 1", "1 4 4 4 4", "5 1 1 1 2", "6 1 1 1 1"
    source = ids(*texts, "1 2 3 4 5", "7 2 3 4 5")
    next_one = "given[:, -1:].expand(given.shape) % 8 + 1"
    return next_symbols(next_one), source, source.clone()


@honest.case("nearly right is wrong: one symbol of each row")
def _(draw):
    target = ids("1 5 3 4 7", "1 2 2 8 6", "1 3 6 6 3", "1 7 4 5 3")
    source = target.clone()
    source[0, 2], source[1, 4], source[3, 1] = 8, 3, 2
    return next_symbols(COPIES), source, target


@honest.case("the target has a start symbol of its own, which the source lacks")
def _(draw):
    source = draw.integers(3, 8, 3, 4)
    source[0, 0] = 2
    target = torch.cat([torch.full((3, 1), 2), source], dim=1)
    copies = "source[:, : given.shape[1]] + 3 * (given[:, :1] != 2)"
    return next_symbols(copies, 12), source, target


# ---- the leak test -------------------------------------------------------------


def leaking(
    part=lambda moved: moved[:, :-1],
    size=lambda moved: moved.abs().max(),
    change=lambda given, last: torch.cat([given[:, :-1], last[:, None]], dim=1),
    said=lambda logits: logits,
):
    def leak(model, source, given, last):
        before, after = (said(model(source, x)) for x in (given, change(given, last)))
        return size(part(after - before)).item()

    return leak


leak = Exercise(
    "ch08-leak",
    right=leaking(),
    hint="expected the largest absolute change of a logit before the last position",
    mistakes={
        "the last position's logits may move: leave them out": leaking(
            part=lambda moved: moved
        ),
        "a logit may also move down: take the absolute value": leaking(
            size=lambda moved: moved.max()
        ),
        "a logit may also move up: take the absolute value": leaking(
            size=lambda moved: (-moved).max()
        ),
        "only the first position is looked at": leaking(
            part=lambda moved: moved[:, :1]
        ),
        "only the last position but one is looked at": leaking(
            part=lambda moved: moved[:, -2:-1]
        ),
        "this is a mean or a sum, in which one leaking row may drown: the largest is "
        "wanted": leaking(size=lambda moved: moved.abs().mean()),
        "the first symbol is changed; change the last one": leaking(
            change=lambda given, last: torch.cat([last[:, None], given[:, 1:]], dim=1)
        ),
        "every row gets the first row's new symbol": leaking(
            change=lambda given, last: torch.cat(
                [given[:, :-1], last[:1].expand(len(last))[:, None]], dim=1
            )
        ),
        "the answers are compared, not the logits: a small leak changes no answer": (
            leaking(said=lambda logits: logits.argmax(dim=-1)[..., None].double())
        ),
    },
)


# The last symbol moves the logits of the last position: by a lot, and that is allowed.
CAUSAL = "(source[:, :1] + given.cumsum(1))[..., None] * torch.arange(1, 6) / 4"
LEAKS = {  # a case: what is added to the logits
    "no position sees what comes after it: 0": "0",
    "all positions see everything": (
        "given.sum(1)[:, None, None] * torch.arange(-3, 2) / 8"
    ),
    "only the last but one sees one symbol ahead, and its logits go down": (
        "-torch.cat([given[:, 1:], given[:, :1] * 0], dim=1)[..., None]"
        " * (torch.arange(given.shape[1]) == given.shape[1] - 2)[:, None]"
        " * torch.arange(-1, 4) / 8"
    ),
    "only the first position sees the last symbol, and its logits mostly go up": (
        "given[:, -1, None, None] * (torch.arange(given.shape[1]) == 0)[:, None]"
        " * torch.arange(-1, 4) / 8"
    ),
    "a single row leaks": (
        "given[:, -1, None, None] * (torch.arange(len(given)) == 2)[:, None, None]"
        " * torch.arange(-1, 4) / 16"
    ),
}

for line, added in LEAKS.items():

    @leak.case(line)
    def _(draw, line=line, added=added):
        model = Function(f"{CAUSAL} + {added}", "source, given")
        given = draw.integers(4, 7, 4, 5)
        all_up = "a single row" not in line
        last = torch.tensor([12, 9, 14, 11] if all_up else [9, 14, 2, 11])
        return model, draw.integers(1, 9, 4, 6), given, last
