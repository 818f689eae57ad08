"""Public checks of the exercises of chapter 08; ``__init__.py`` says how they work.

What a judge compares with is written here, apart from the module and from the model
answers, and so are the mistakes it knows by name.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from annotated.checks import Function, expect, public


def ids(*rows: str, dtype: torch.dtype = torch.int64) -> Tensor:
    """Token ids, a row a string: ``ids("1 4 3", "1 2 0")``."""
    return torch.tensor([[int(i) for i in row.split()] for row in rows], dtype=dtype)


# ---- greedy decoding with early stop -----------------------------------------


def guarded(logits: str, b: int, start: int, end: int, pad: int, most: int) -> Function:
    """A function of tokens that refuses what a right answer never asks.

    A function is plain text and cannot count its calls; it need not, for what it is
    given says whether it should have been asked.
    """
    guards = {
        f"tokens.ndim == 2 and len(tokens) == {b}": (
            "next_logits takes all b rows, ended or not, as a tensor (b, t)"
        ),
        "tokens.dtype == torch.int64": "the ids that next_logits takes are int64",
        f"tokens.shape[1] > 0 and bool((tokens[:, 0] == {start}).all())": (
            "next_logits takes start and all that was written behind it; here the "
            "first symbol of a row is not start"
        ),
        f"tokens.shape[1] <= {most}": (
            "next_logits was given more than start and `most` − 1 symbols: was it "
            "asked once too often, or given room for what is still to come?"
        ),
        f"not bool((tokens[:, 1:] == {end}).any(dim=1).all())": (
            "next_logits was asked once more although every row had written end: "
            "remember who has ended, and stop"
        ),
    }
    # what rows hold behind their first end
    ended = (
        "(lambda w, e: w[e.cumsum(1) > e])"
        f"(tokens[:, 1:], (tokens[:, 1:] == {end}).int())"
    )
    if pad != end:
        guards[f"{ended}.ne({end}).any() or not {ended}.numel()"] = (
            "a row is filled with end; it should be `pad`, which is fed, too"
        )
    if 0 not in (pad, end):
        guards[f"{ended}.ne(0).any() or not {ended}.numel()"] = (
            "padding is `pad`, whatever its number: not always 0"
        )
    guards[f"bool({ended}.eq({pad}).all())"] = (
        "next_logits was given other symbols than `pad` behind the end of a row: what "
        "is written there is `pad`, and what is written is fed"
    )
    asserts = [
        f"torch._assert(bool({test}), {said!r})" for test, said in guards.items()
    ]
    return Function(" or ".join([*asserts, f"({logits})"]), "tokens")


def unguarded(next_logits: Function) -> Function:
    logits = next_logits.expression.rsplit(" or (", 1)[1].removesuffix(")")
    return Function(logits, "tokens")


def nearest(symbols: str, v: int) -> str:
    """Logits that are the largest at `symbols`, an expression of shape (b, 1)."""
    return f"-0.5 * (torch.arange({v}) - {symbols}).abs() - 0.25"


def scripted(rows: list[list[int]], v: int, start: int, end: int, pad: int) -> Function:
    """Row n wants to write rows[n], whatever it has written so far."""
    symbols = f"torch.tensor({rows})[:, tokens.shape[1] - 1, None]"
    return guarded(nearest(symbols, v), len(rows), start, end, pad, len(rows[0]))


def remembering(b: int, v: int, start: int, end: int, pad: int, most: int) -> Function:
    """What comes next depends on all symbols so far, on their order, on the row."""
    weights = "torch.arange(2, tokens.shape[1] + 2)"
    symbols = f"(((tokens * {weights}).sum(1, True) + torch.arange({b})[:, None]) % {v}"
    return guarded(nearest(symbols + ")", v), b, start, end, pad, most)


def written_by(next_logits: Callable, b, start, end, pad, most, stop=True) -> Tensor:
    rows = [[] for _ in range(b)]
    for _ in range(most):
        so_far = torch.tensor([[start, *row] for row in rows])
        likeliest = next_logits(so_far).max(dim=-1).indices.tolist()
        for row, symbol in zip(rows, likeliest, strict=True):
            row.append(pad if stop and end in row else symbol)
        if stop and all(end in row for row in rows):
            break
    return torch.tensor(rows)


def judge_greedy(written, next_logits, b, start, end, pad, most):
    free, options = unguarded(next_logits), (b, start, end, pad, most)
    right = written_by(free, *options)
    on = written_by(free, *options, stop=False)  # nobody ever stops
    t = right.shape[1]
    behind = ((on == end).cumsum(dim=1) - (on == end).int()).bool()
    stopping = ((on == end) | (on == pad)).int()
    halted = (stopping.cumsum(dim=1) - stopping).bool()
    halts = most if not halted[:, -1].all() else int((~halted).sum(dim=1).max())
    silent = ((right == end) | (right == pad)).all(dim=0).tolist()
    quiet = silent.index(True) + 1 if True in silent else t
    lone = [row.index(end) + 1 for row in on.tolist() if end in row]
    mistakes = {}
    if start == end:
        hint = "start counts as an end, for it is the same id; look behind it"
        padded = torch.full((b, 1), pad)
        mistakes = {hint: right[:, :1], hint + " only": padded}
        mistakes[hint + " alone"] = padded[:, :0]
    mistakes |= {
        "start is returned as well; only what was written is wanted": torch.cat(
            [torch.full((b, 1), start), right], dim=1
        ),
        "what a row writes behind its end is still there: it should be `pad`": (
            on[:, :t]
        ),
        "no row stops at its end, and none is padded": on,
        "it stops when the first row has ended; the others have not": (
            right[:, : min([*lone, most])]
        ),
        "padding is `pad`, whatever its number: not always 0": (
            right.masked_fill(behind[:, :t], 0)
        ),
        "behind its end a row is filled with end; it should be `pad`": (
            right.masked_fill(behind[:, :t], end)
        ),
        "a row stops at a padding that it wrote; only end stops it": (
            on.masked_fill(halted, pad)[:, :halts]
        ),
        "a padding that a row wrote counts as its end; only end stops it": (
            right[:, :halts]
        ),
        "it stops where every row writes end or `pad`; a row that writes `pad` by "
        "itself has not ended": right[:, :quiet],
        "the end itself is replaced by padding: it was written, it stays": (
            right.masked_fill((right == end) & ~behind[:, :t], pad)
        ),
        "the last symbol is missing: `most` does not count start, and an end is "
        "written before one stops": right[:, :-1],
        "the result is always `most` wide; it ends where the last row ends": torch.cat(
            [right, torch.full((b, most - t), pad)], dim=1
        ),
        "this is the least likely symbol; take the largest logit": (
            written_by(lambda tokens: -free(tokens), *options)
        ),
        "all rows write what the first one writes": right[:1].expand(b, t),
        "batch first: the result is (b, t), a row a sequence": right.mT,
    }
    expect(
        written,
        right,
        hint="expected the likeliest symbol after start and all that was written, "
        "again and again, until every row has written end",
        mistakes=mistakes,
    )


_EXAMPLE = [[4, 3, 2, 6, 6], [5, 2, 7, 7, 7]]


@public("ch08-greedy", scripted(_EXAMPLE, 8, 1, 2, 0), 2, 1, 2, 0, 5)
def _(written, next_logits, b, start, end, pad, most):
    "the example: one row ends after three symbols, one after two"
    judge_greedy(written, next_logits, b, start, end, pad, most)


@public("ch08-greedy", remembering(3, 7, 1, 6, 0, 5), 3, 1, 6, 0, 5)
def _(written, next_logits, b, start, end, pad, most):
    "what comes next depends on all that was written"
    judge_greedy(written, next_logits, b, start, end, pad, most)


_LATE = [
    *([2, 5, 3, 3, 1, 1], [5, 4, 4, 4, 4, 4]),
    *([6, 2, 4, 6, 4, 5], [3, 3, 5, 4, 2, 0]),
]


@public("ch08-greedy", scripted(_LATE, 7, 2, 5, 6), 4, 2, 5, 6, 6)
def _(written, next_logits, b, start, end, pad, most):
    "another padding, another start, and a row that writes a padding itself"
    judge_greedy(written, next_logits, b, start, end, pad, most)


_TWICE = [[3, 3, 1, 4], [4, 1, 3, 1]]


@public("ch08-greedy", scripted(_TWICE, 5, 1, 1, 0), 2, 1, 1, 0, 4)
def _(written, next_logits, b, start, end, pad, most):
    "start and end are the same id"
    judge_greedy(written, next_logits, b, start, end, pad, most)


_NEVER = [[3, 4, 5], [4, 2, 6]]


@public("ch08-greedy", scripted(_NEVER, 8, 1, 2, 7), 2, 1, 2, 7, 3)
def _(written, next_logits, b, start, end, pad, most):
    "a row that never ends is cut after `most` symbols"
    judge_greedy(written, next_logits, b, start, end, pad, most)


# ---- exact match -------------------------------------------------------------


def text_of(row: list[int], pad: int, end: int) -> list[int]:
    """Up to the first end, with it; without an end all of it but padding behind."""
    if end in row:
        return row[: row.index(end) + 1]
    while row and row[-1] == pad:
        row = row[:-1]
    return row


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def judge_exact(share, written, target, pad, end, hint):
    """`hint` says what this case is about; a share alone does not show it."""
    pairs = list(zip(written.tolist(), target.tolist(), strict=True))
    texts = [(text_of(one, pad, end), text_of(two, pad, end)) for one, two in pairs]
    count = sum(one == two for one, two in texts)
    right = count / len(texts)
    if isinstance(share, Tensor):
        raise AssertionError(
            "expected a number, a float of Python, got a tensor; .item() makes one of "
            "the tensor, once there is one number for the batch"
        )
    if share is not None and not is_number(share):
        kind = type(share).__name__
        raise AssertionError(f"expected a share, a number from 0 to 1, got a {kind}")
    symbols = [
        n < len(one) and one[n] == symbol
        for one, two in texts
        for n, symbol in enumerate(two)
    ]
    single = sum(symbols) / max(len(symbols), 1)
    mistakes = {"a share from 0 to 1 is wanted, no percentage": 100 * right}
    if count > 1:  # 1 may be a share, wrongly found
        hint_count = "this is how many rows are right; their share is wanted, 0 to 1"
        mistakes[hint_count] = count
    if (single * len(texts)) % 1:  # else it may be a share of rows, wrongly found
        mistakes[
            "this is the share of right symbols; a row counts only if all of it is"
        ] = single
    expect(share, right, hint=hint, mistakes=mistakes)


@public("ch08-exact", ids("3 4 2 5", "3 5 2 0"), ids("3 4 2", "3 4 2"), 0, 2)
def _(share, written, target, pad, end):
    "the example: one of two rows"
    hint = (
        "one of the two is right, the first: what stands behind its end does not count"
    )
    judge_exact(share, written, target, pad, end, hint)


@public(
    "ch08-exact",
    ids("5 2 0 0 0", "4 2 3 2 0", "3 3 2 4 2", "4 5 3 2 2", "5 2 4 0 3"),
    ids("5 2 0 0 0", "4 2 0 0 0", "3 3 2 0 0", "4 5 5 2 0", "5 2 0 0 0"),
    *(0, 2),
)
def _(share, written, target, pad, end):
    "rubbish behind the end, further ends too"
    hint = (
        "four of the five are right: a text ends with its FIRST end, and what stands "
        "behind it does not count"
    )
    judge_exact(share, written, target, pad, end, hint)


@public(
    "ch08-exact",
    ids("3 4 5", "3 4 5", "5 5 2"),
    ids("3 4 5 2", "3 4 2 0", "5 5 2 0"),
    *(0, 2),
)
def _(share, written, target, pad, end):
    "a row that has not ended is not one that has"
    hint = (
        "one of the three is right: the end is a symbol to be written, and a row that "
        "goes on without one is wrong"
    )
    judge_exact(share, written, target, pad, end, hint)


@public(
    "ch08-exact",
    ids("4 4 9 9", "5 3 9 9", "6 3 4 9", "3 9 4 9", "7 9 3 9", "8 9 3 9"),
    ids("4 4 9", "5 3 6", "6 3 9", "3 4 9", "7 9 4", "8 9 3"),
    *(9, 2),
)
def _(share, written, target, pad, end):
    "no ends at all: padding behind a text is none of it, padding 9 here"
    hint = (
        "two of the six are right: without an end the text is the whole row, less the "
        "padding at its end (`pad`, not always 0); a padding in between is a symbol, "
        "and the text goes on behind it"
    )
    judge_exact(share, written, target, pad, end, hint)


@public(
    "ch08-exact",
    ids("7 3 3 7 8 8", "4 7 3 3 3 3", "4 4 4 4 4 7", "7 8 8 8 8 8"),
    ids("7", "4", "4", "7"),
    *(8, 7),
)
def _(share, written, target, pad, end):
    "a target that is much shorter"
    hint = (
        "two of the four are right: lengths may differ, and what was written must not "
        "be cut to the length of the target"
    )
    judge_exact(share, written, target, pad, end, hint)


# ---- reverse instead of copy -------------------------------------------------


def judge_reverse(result, source, pad):
    dtype, rows, size = source.dtype, source.tolist(), source.shape[1]
    if isinstance(result, Tensor) and result.is_floating_point():
        raise AssertionError("ids are whole numbers: the dtype is that of `source`")

    def filled(rows):
        return torch.tensor([row + [pad] * (size - len(row)) for row in rows]).to(dtype)

    real = [[symbol for symbol in row if symbol != pad] for row in rows]
    right = filled([row[:1] + row[:0:-1] for row in real])
    bare = [[symbol for symbol in row if symbol] for row in rows]  # padding 0?
    first = len(real[0])
    mistakes = {
        "nothing is reversed": source,
        "the start symbol is reversed, too; it stays in front": (
            filled([row[::-1] for row in real])
        ),
        "the padding is reversed, too, and comes first": source.flip(1),
        "the padding stands between the start symbol and the others; it stays behind": (
            torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
        ),
        "the start symbol is missing; it stays in front": right[:, 1:],
        "the start symbol has become padding; it stays in front": (
            filled([row[:0:-1] for row in real])
        ),
        "every row has its own length; you use that of the first": torch.tensor(
            [row[:1] + row[1:first][::-1] + row[first:] for row in rows]
        ).to(dtype),
        "the order of the rows is reversed; that of the symbols is wanted": (
            source.flip(0)
        ),
        "the symbols are sorted; their order is to be turned round": (
            filled([row[:1] + sorted(row[1:], reverse=True) for row in real])
        ),
        "the last real symbol stays where it is: one too few is turned": (
            filled([row[:1] + row[1:-1][::-1] + row[-1:][: len(row) - 1]
                    for row in real])
        ),
        "the first symbol behind start stays where it is: one too few is turned": (
            filled([row[:2] + row[:1:-1] for row in real])
        ),
        "a start symbol further on stays where it is; there it is a symbol like "
        "others": filled([row[:1] + around(row[1:], row[0]) for row in real]),
        "start symbols further on come to the front; there they are symbols like "
        "others": filled(
            [
                [i for i in row if i == row[0]]
                + [i for i in row[::-1] if i != row[0]]
                for row in real
            ]
        ),
        "start symbols further on are lost; there they are symbols like others": filled(
            [row[:1] + [i for i in row[::-1] if i != row[0]] for row in real]
        ),
        "a symbol is lost to one that stands there twice: the row is written while it "
        "is read": filled([mirrored(row) for row in real]),
        "batch first: the result is (b, s), a row a sequence": right.mT,
    }  # fmt: skip
    if pad != 0:
        sizes = [len(row) for row in bare]
        turned = [
            row[:1] + row[1:n][::-1] + row[n:]
            for row, n in zip(rows, sizes, strict=True)
        ]
        guess = [row[:1] + row[:0:-1] for row in bare]
        guess = [row + [0] * (size - len(row)) for row in guess]
        hint = "padding is `pad`, whatever its number: not always 0"
        mistakes[hint] = torch.tensor(guess).to(dtype)
        mistakes["padding is `pad`: not always 0"] = torch.tensor(turned).to(dtype)
        tail = right.masked_fill(right == pad, 0)
        mistakes[hint + ", in the result, too"] = tail
    expect(
        result,
        right,
        hint="expected the start symbol, the other real ones backwards, the padding",
        mistakes=mistakes,
    )


def around(row: list[int], fixed: int) -> list[int]:
    """Symbols turned round, but for one of them, which stays where it stands."""
    others = [symbol for symbol in row if symbol != fixed]
    return [fixed if symbol == fixed else others.pop() for symbol in row]


def mirrored(row: list[int]) -> list[int]:
    """Symbols turned round in place, one after the other: half of them are lost."""
    row = list(row)
    for i in range(1, len(row)):
        row[i] = row[len(row) - i]
    return row


@public("ch08-reverse", ids("1 5 3 4 7", "1 6 2 0 0"), 0)
def _(result, source, pad):
    "the example: a full row and a padded one"
    judge_reverse(result, source, pad)


@public("ch08-reverse", ids("1 3 8 2 5 4", "1 7 0 3 9 9", "1 4 9 9 9 9"), 9)
def _(result, source, pad):
    "padding is 9, and 0 is a symbol like others"
    judge_reverse(result, source, pad)


@public("ch08-reverse", ids("2 2 5 2 0 0", "2 0 0 0 0 0", "2 4 2 6 7 3"), 0)
def _(result, source, pad):
    "the start symbol once more, and a row with nothing but start"
    judge_reverse(result, source, pad)


# ---- where does it go wrong first? -------------------------------------------


def judge_first_error(places, written, target, pad):
    pairs = list(zip(written.tolist(), target.tolist(), strict=True))
    errors = [
        [i for i, (a, b) in enumerate(zip(one, two, strict=True)) if b not in (a, pad)]
        for one, two in pairs
    ]
    right = torch.tensor([found[0] if found else -1 for found in errors])
    t = target.shape[1]
    wrong = (written != target) & (target != pad)
    real = (target != pad).long()
    none = right < 0
    everywhere, zero = written != target, wrong & (target != 0)
    own = (written != target) & (written != pad)
    if isinstance(places, Tensor) and places.shape == target.shape:
        raise AssertionError(
            f"the shape is {tuple(places.shape)}: one place a row is wanted, (b,)"
        )

    def first(flags):
        found = flags.int().argmax(dim=1)
        return found.masked_fill(~flags.any(dim=1), -1)

    mistakes = {
        "a row without an error gives 0, as if its first symbol were wrong; it should "
        "be −1": right.masked_fill(none, 0),
        "an error at place 0 is told as none: 0 is a place like others; ask whether "
        "there is an error at all": right.masked_fill(right == 0, -1),
        "a row without an error gives t; it should be −1": right.masked_fill(none, t),
        "padding of the target is compared, too; what is written there does not "
        "matter": first(everywhere),
        "padding of the target is compared, too, and a row without an error gives 0": (
            first(everywhere).clamp(min=0)
        ),
        "where padding is written and a symbol is asked for, that is an error: leave "
        "out the padding of `target`, not of `written`": first(own),
        "what is written as padding counts, too, where a symbol is asked for: only "
        "the padding of `target` is left out": first(own & (target != pad)),
        "this is the last error; the first is wanted": torch.tensor(
            [found[-1] if found else -1 for found in errors]
        ),
        "this is how many errors there are; the place of the first is wanted": (
            wrong.sum(dim=1)
        ),
        "places are counted from 0": right + 1 - none.long(),
        "the place is counted from 1, and a row without an error gives 0": right + 1,
        "this is the first symbol that is right": first(
            (written == target) & (target != pad)
        ),
        "places count all symbols of a row; you count the real ones alone": (
            torch.where(
                none,
                right,
                (real.cumsum(dim=1) - 1).gather(1, right.clamp(min=0)[:, None])[:, 0],
            )
        ),
        "this is the first error of the whole batch; each row has its own": (
            right[~none].min().expand(len(right)) if (~none).any() else right
        ),
        "rows without an error are left out; they get −1": right[~none],
        "one number a row is wanted, (b,), no axis of length 1": right[:, None],
    }
    if pad != 0:
        mistakes["padding is `pad`, whatever its number: not always 0"] = first(
            everywhere & (target != 0)
        )
        mistakes["symbol 0 is left out, and so is padding: only `pad` is padding"] = (
            first(zero)
        )
    expect(
        places,
        right,
        hint="expected the first place where a real symbol of the target is not what "
        "was written, −1 if there is none",
        mistakes=mistakes,
    )


@public(
    "ch08-first-error",
    ids("5 3 4 4", "2 6 7 3", "7 4 5 5"),
    ids("5 3 2 6", "2 6 0 0", "7 4 5 5"),
    0,
)
def _(places, written, target, pad):
    "the example: a row with two errors and two without"
    judge_first_error(places, written, target, pad)


@public(
    "ch08-first-error",
    ids("4 3 2 5 7", "0 2 4 4 6", "3 9 9 9 9", "8 1 5 2 9"),
    ids("4 3 2 5 9", "5 2 4 1 6", "3 6 2 9 9", "8 1 0 2 9"),
    9,
)
def _(places, written, target, pad):
    "padding is 9, some of it is written where it should not be, and 0 is a symbol"
    judge_first_error(places, written, target, pad)


@public(
    "ch08-first-error",
    ids("6 2 3 4 7 7", "1 3 2 2 5 8"),
    ids("0 2 0 4 5 5", "0 0 2 4 5 6"),
    0,
)
def _(places, written, target, pad):
    "padding in front and in between: places count the whole row"
    judge_first_error(places, written, target, pad)


@public("ch08-first-error", ids("4 5", "3 3", "0 6"), ids("4 5", "3 0", "0 0"), 0)
def _(places, written, target, pad):
    "no error anywhere, and a target of nothing but padding"
    judge_first_error(places, written, target, pad)
