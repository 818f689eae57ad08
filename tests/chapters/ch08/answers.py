"""Answers to the exercises of chapter 08."""

import torch

from tests.exercises.answers import RIGHT, WRONG, right, wrong

# ---- greedy decoding with early stop -----------------------------------------


@right("ch08-greedy")
def greedy(next_logits, b, start, end, pad, most):
    texts = [[] for _ in range(b)]
    for _ in range(most):
        going = [n for n, text in enumerate(texts) if end not in text]
        if not going:
            break
        tokens = torch.tensor([[start, *texts[n]] for n in reversed(going)])
        logits = next_logits(tokens, torch.tensor(going).flip(0)).tolist()
        for n, scores in zip(reversed(going), logits, strict=True):
            texts[n].append(max(range(len(scores)), key=scores.__getitem__))
    width = max(map(len, texts))
    return torch.tensor([text + [pad] * (width - len(text)) for text in texts])


WRONG["ch08-greedy"] = """
dim=1)[going] -> dim=1)
rows = rows[going] -> pass  # about a row that has written end
next_logits(tokens, rows)
    next_logits(tokens, torch.arange(len(rows)))  # numbered afresh, from 0
    next_logits(tokens, rows + 1)  # as at the beginning, also when others
    torch.cat([next_logits(tokens[[i]], rows[[i]]) for i in range(len(rows))])
        # about all rows that have not
dim=1)[going]
    dim=1)  # only one of the two been cut
    dim=1)[: going.sum()]  # ids and numbers of rows still belong together
"""

# ---- exact match -------------------------------------------------------------


@right("ch08-exact")
def exact_match(written, target, pad, end):
    t = max(written.shape[1], target.shape[1])
    clean = []
    for x in (written, target):
        x = torch.nn.functional.pad(x, (0, t - x.shape[1]), value=pad)
        ends = x.eq(end).int()
        clean.append(x.masked_fill(ends.cumsum(dim=1) > ends, pad))
    return clean[0].eq(clean[1]).all(dim=1).double().mean()


@wrong("ch08-exact", "changes its argument `written` in place")
def exact_match(written, target, pad, end):
    ends = (written == end).int()
    written[(ends.cumsum(1) - ends).bool()] = pad
    pairs = zip(written.tolist(), target.tolist(), strict=True)
    return sum(x == y for x, y in pairs) / len(written)


WRONG["ch08-exact"] = r"""
return row[: row.index(end) + 1] -> pass  # what comes after the end is not part
return row[:size]
    return []  # without an end the text is the whole row
    return [i for i in row if i != pad]  # a padding in between, and no end
    return row[:1]  # as if the first symbol were the end
def text(row): -> def text(row):\n        row = [i for i in row if i != pad]
        # a padding in between is a symbol
"""

# ---- reverse instead of copy -------------------------------------------------


@right("ch08-reverse")
def reversed_targets(source, pad):
    others = source[:, 1:].flip(1)  # padding first
    order = others.eq(pad).int().argsort(dim=1, stable=True)
    return torch.cat([source[:, :1], others.gather(1, order)], dim=1)


WRONG["ch08-reverse"] = r"""
source.gather(1, torch.where(turned, size - position, position))
    source.gather(1, torch.where(turned, size - position, position)).long()
        # another dtype than those of `source`
    source.copy_(source.gather(1, torch.where(turned, size - position, position)))
        # changes its argument `source` in place
.sum(dim=1, keepdim=True) -> .sum(dim=1, keepdim=True).max().repeat(len(source), 1)
        # the padding stands between
return source.gather(1, torch.where(turned, size - position, position)) -> result =
        source.clone()\n    for row in result:\n        keep = (row != pad) & (row !=
        row[0])\n        row[keep] = row[keep].flip(0)\n    return result
        # a start symbol further on stays where it is
"""

# ---- find the fault: it copies everything --------------------------------------


@right("ch08-honest")
def exact_share(model, source, target):
    rows = [[symbol] for symbol in target[:, 0].tolist()]
    for _ in range(target.shape[1] - 1):
        logits = model(source, torch.tensor(rows))[:, -1]
        for row, symbol in zip(rows, logits.argmax(-1).tolist(), strict=True):
            row.append(symbol)
    hits = [row == wanted for row, wanted in zip(rows, target.tolist(), strict=True)]
    return sum(hits) / len(hits)


WRONG["ch08-honest"] = """
(written == target) -> (model(source, target[:, :-1]).argmax(dim=-1) == target[:, 1:])
        # still given the right beginning
model(source, written)[:, -1:] -> model(source, torch.cat([written, 0 * target], 1)[:, :
        target.shape[1]])[:, written.shape[1] - 1 :][:, :1]
        # room for what is still to come
(written == target).all(dim=1) -> (written == target)[:, 1:]  # single symbols count
written = target[:, :1] -> written = source[:, :1]
(written == target) -> (written == target)[:, 1:]  # with the source's first symbol
written = target[:, :1] -> written = torch.ones_like(target[:, :1])
(written == target) -> (written == target)[:, 1:]  # begins with 1 in every row
"""

# ---- the leak test -------------------------------------------------------------


@right("ch08-leak")
def leak(model, source, given, last):
    before = model(source, given)[:, :-1]
    after = model(source, torch.cat([given[:, :-1], last.unsqueeze(1)], dim=1))
    rows = zip(before.flatten().tolist(), after[:, :-1].flatten().tolist(), strict=True)
    return max(abs(one - two) for one, two in rows)


RIGHT["ch08-leak"] = """
model(source, changed) - model(source, given)
    torch.sub(*model(source.repeat(2, 1), torch.cat([changed, given])).chunk(2))
        # both questions in one batch
    torch.cat([model(source[n : n + 1], changed[n : n + 1]) - model(source[n : n + 1],
        given[n : n + 1]) for n in range(len(given))])  # row by row
"""
WRONG["ch08-leak"] = """
given.clone() -> given  # changes its argument `given` in place
[:, :-1]
    # leave them out
    [:, -2]  # only the last position but one
    [:, 0]  # only the first position is looked at
.abs()
    # may also move down
    .neg()  # may also move up
.max() -> .mean()  # may drown
"""
