"""Answers to the exercises of chapter 08."""

import torch

from tests.exercises.answers import right, wrong

# ---- greedy decoding with early stop -----------------------------------------


@right("ch08-greedy")
def greedy(next_logits, b, start, end, pad, most):
    rows = [[] for _ in range(b)]
    while len(rows[0]) < most and not all(end in row for row in rows):
        logits = next_logits(torch.tensor([[start] + row for row in rows]))
        for row, scores in zip(rows, logits.tolist(), strict=True):
            best = max(range(len(scores)), key=scores.__getitem__)
            row.append(pad if end in row else best)
    return torch.tensor(rows)


@wrong("ch08-greedy", "what is written is also fed")
def greedy(next_logits, b, start, end, pad, most):
    tokens = torch.full((b, most + 1), start)
    for i in range(1, most + 1):
        tokens[:, i] = next_logits(tokens[:, :i]).sort(dim=-1).indices[:, -1]
        if tokens[:, 1 : i + 1].eq(end).any(dim=1).all():
            break
    tokens = tokens[:, 1 : i + 1]
    ends = tokens.eq(end).int()
    return torch.where(ends.cumsum(dim=1) > ends, pad, tokens)


@wrong("ch08-greedy", "do you remember who has ended")
def greedy(next_logits, b, start, end, pad, most):
    tokens = torch.full((b, 1), start)
    ended = torch.zeros(b, dtype=torch.bool)
    for _ in range(most):
        symbol = next_logits(tokens).argmax(-1).masked_fill(ended, pad)
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
        ended |= symbol == end
        if (symbol == end).all():
            break
    return tokens[:, 1:]


@wrong("ch08-greedy", "room for what is still to come")
def greedy(next_logits, b, start, end, pad, most):
    tokens = torch.full((b, most + 1), pad)
    tokens[:, 0] = start
    for i in range(most):
        tokens[:, i + 1] = next_logits(tokens).argmax(-1)
    return tokens[:, 1:]


@wrong("ch08-greedy", "takes all b rows")
def greedy(next_logits, b, start, end, pad, most):
    rows = []
    for _ in range(b):
        row = [start]
        while len(row) <= most and end not in row[1:]:
            row.append(int(next_logits(torch.tensor([row])).argmax()))
        rows.append(row[1:] + [pad] * (most + 1 - len(row)))
    return torch.tensor(rows)


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


@wrong("ch08-exact", "what stands behind the end is no part")
def exact_match(written, target, pad, end):
    t = max(written.shape[1], target.shape[1])
    wide = torch.full((2, len(target), t), pad)
    wide[0, :, : written.shape[1]] = written
    wide[1, :, : target.shape[1]] = target
    return (wide[0] == wide[1]).all(1).double().mean().item()


@wrong("ch08-exact", "without an end the text is the whole row")
def exact_match(written, target, pad, end):
    def text(row):
        size = (row == end).int().argmax()  # 0 if there is none
        return row[: size + 1].tolist() if end in row else row[:size].tolist()

    hits = [text(a) == text(b) for a, b in zip(written, target, strict=True)]
    return sum(hits) / len(hits)


@wrong("ch08-exact", "changes its argument `written` in place")
def exact_match(written, target, pad, end):
    ends = (written == end).int()
    written[(ends.cumsum(1) - ends).bool()] = pad
    pairs = zip(written.tolist(), target.tolist(), strict=True)
    return sum(x == y for x, y in pairs) / len(written)


@wrong("ch08-exact", "a padding in between is a symbol")
def exact_match(written, target, pad, end):
    def text(row):
        return set(row[: row.index(end)] if end in row else row) - {pad}

    pairs = zip(written.tolist(), target.tolist(), strict=True)
    return sum(text(one) == text(two) for one, two in pairs) / len(written)


# ---- reverse instead of copy -------------------------------------------------


@right("ch08-reverse")
def reversed_targets(source, pad):
    behind = source[:, 1:].flip(1)  # padding first
    order = behind.eq(pad).int().argsort(dim=1, stable=True)
    return torch.cat([source[:, :1], behind.gather(1, order)], dim=1)


@wrong("ch08-reverse", "the padding stands between")
def reversed_targets(source, pad):
    n = int((source != pad).sum(dim=1).max())
    return torch.cat([source[:, :1], source[:, 1:n].flip(1), source[:, n:]], dim=1)


@wrong("ch08-reverse", "changes its argument `source` in place")
def reversed_targets(source, pad):
    for row in source:
        n = int((row != pad).sum())
        row[1:n] = row[1:n].flip(0)
    return source


@wrong("ch08-reverse", "a start symbol further on stays where it is")
def reversed_targets(source, pad):
    result = source.clone()
    for row in result:
        keep = (row != pad) & (row != row[0])
        row[keep] = row[keep].flip(0)
    return result


# ---- where does it go wrong first? -------------------------------------------


@right("ch08-first-error")
def first_error(written, target, pad):
    fine = written.eq(target) | target.eq(pad)
    ahead = fine.long().cumprod(dim=1).sum(dim=1)  # right ones up to there
    return ahead.masked_fill(ahead == target.shape[1], -1)


@wrong("ch08-first-error", "you count the real ones alone")
def first_error(written, target, pad):
    places = []
    for one, two in zip(written, target, strict=True):
        real = two != pad
        found = (one[real] != two[real]).nonzero()
        places.append(int(found[0]) if len(found) else -1)
    return torch.tensor(places)


@wrong("ch08-first-error", "0 is a place like others")
def first_error(written, target, pad):
    places = []
    for one, two in zip(written.tolist(), target.tolist(), strict=True):
        place = 0
        for i in range(len(two)):
            if two[i] != pad and one[i] != two[i]:
                place = i
                break
        places.append(place or -1)
    return torch.tensor(places)


@wrong("ch08-first-error", "changes its argument `written` in place")
def first_error(written, target, pad):
    written[target == pad] = pad
    flags = written != target
    return torch.where(flags.any(dim=1), flags.int().argmax(dim=1), -1)
