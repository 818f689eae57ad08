"""Answers to the exercises of chapter 08."""

import torch

from tests.exercises.answers import right, wrong

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


@wrong("ch08-greedy", "about a row that has written end")
def greedy(next_logits, b, start, end, pad, most):
    tokens, rows = torch.full((b, 1), start), torch.arange(b)
    ended = torch.zeros(b, dtype=torch.bool)
    while tokens.shape[1] <= most and not ended.all():
        symbol = next_logits(tokens, rows).argmax(-1).masked_fill(ended, pad)
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
        ended |= symbol == end
    return tokens[:, 1:]


@wrong("ch08-greedy", "numbered afresh, from 0")
def greedy(next_logits, b, start, end, pad, most):
    written, tokens = torch.full((b, most), pad), torch.full((b, 1), start)
    rows = torch.arange(b)
    for i in range(most):
        symbol = next_logits(tokens, torch.arange(len(rows))).argmax(-1)
        written[rows, i] = symbol
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)[symbol != end]
        rows = rows[symbol != end]
        if not len(rows):
            break
    return written[:, : i + 1]


@wrong("ch08-greedy", "only one of the two been cut")
def greedy(next_logits, b, start, end, pad, most):
    written, tokens = torch.full((b, most), pad), torch.full((b, 1), start)
    rows = torch.arange(b)
    for i in range(most):
        symbol = next_logits(tokens, rows).argmax(-1)
        written[rows, i] = symbol
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
        rows = rows[symbol != end]
        if not len(rows):
            break
    return written[:, : i + 1]


@wrong("ch08-greedy", "as at the beginning, also when others")
def greedy(next_logits, b, start, end, pad, most):
    done, tokens = [], torch.full((b, 1), start)
    names = list(range(1, b + 1))
    while tokens.shape[1] <= most and names:
        symbol = next_logits(tokens, torch.tensor(names)).argmax(-1)
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
        done += [tokens[symbol == end]]
        names = [n for n, s in zip(names, symbol.tolist(), strict=True) if s != end]
        tokens = tokens[symbol != end]
    return done


@wrong("ch08-greedy", "ids and numbers of rows still belong together")
def greedy(next_logits, b, start, end, pad, most):
    written, tokens = torch.full((b, most), pad), torch.full((b, 1), start)
    rows = torch.arange(b)
    for i in range(most):
        symbol = next_logits(tokens, rows).argmax(-1)
        written[rows, i] = symbol
        rows = rows[symbol != end]
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)[: len(rows)]
        if not len(rows):
            break
    return written[:, : i + 1]


@wrong("ch08-greedy", "about all rows that have not")
def greedy(next_logits, b, start, end, pad, most):
    rows = []
    for n in range(b):
        row = [start]
        while len(row) <= most and end not in row[1:]:
            logits = next_logits(torch.tensor([row]), torch.tensor([n]))
            row.append(int(logits.argmax()))
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


@wrong("ch08-exact", "what comes after the end is not part")
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
    others = source[:, 1:].flip(1)  # padding first
    order = others.eq(pad).int().argsort(dim=1, stable=True)
    return torch.cat([source[:, :1], others.gather(1, order)], dim=1)


@wrong("ch08-reverse", "another dtype than those of `source`")
def reversed_targets(source, pad):
    result = torch.full(source.shape, pad)
    for row, new in zip(source, result, strict=True):
        real = row[row != pad]
        new[0] = real[0]
        new[1 : len(real)] = real[1:].flip(0)
    return result


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


@wrong("ch08-honest", "still given the right beginning")
def exact_share(model, source, target):
    guesses = model(source, target[:, :-1]).argmax(dim=-1)
    return (guesses == target[:, 1:]).all(dim=1).float().mean().item()


@wrong("ch08-honest", "room for what is still to come")
def exact_share(model, source, target):
    written = torch.zeros_like(target)
    written[:, 0] = target[:, 0]
    for i in range(1, target.shape[1]):
        written[:, i] = model(source, written)[:, i - 1].argmax(dim=-1)
    return (written == target).all(dim=1).float().mean().item()


@wrong("ch08-honest", "single symbols count")
def exact_share(model, source, target):
    written = target[:, :1]
    while written.shape[1] < target.shape[1]:
        symbol = model(source, written)[:, -1:].argmax(dim=-1)
        written = torch.cat([written, symbol], dim=1)
    return (written[:, 1:] == target[:, 1:]).float().mean().item()


@wrong("ch08-honest", "with the source's first symbol")
def exact_share(model, source, target):
    written = source[:, :1]
    while written.shape[1] < target.shape[1]:
        symbol = model(source, written)[:, -1:].argmax(dim=-1)
        written = torch.cat([written, symbol], dim=1)
    return (written[:, 1:] == target[:, 1:]).all(1).float().mean().item()


@wrong("ch08-honest", "begins with 1 in every row")
def exact_share(model, source, target):
    written = torch.ones(len(target), 1, dtype=torch.int64)
    while written.shape[1] < target.shape[1]:
        symbol = model(source, written)[:, -1:].argmax(dim=-1)
        written = torch.cat([written, symbol], dim=1)
    return (written[:, 1:] == target[:, 1:]).all(1).float().mean().item()


# ---- the leak test -------------------------------------------------------------


@right("ch08-leak")
def leak(model, source, given, last):
    before = model(source, given)[:, :-1]
    after = model(source, torch.cat([given[:, :-1], last.unsqueeze(1)], dim=1))
    rows = zip(before.flatten().tolist(), after[:, :-1].flatten().tolist(), strict=True)
    return max(abs(one - two) for one, two in rows)


@wrong("ch08-leak", "changes its argument `given` in place")
def leak(model, source, given, last):
    before = model(source, given)
    given[:, -1] = last
    return (model(source, given) - before)[:, :-1].abs().max()


@wrong("ch08-leak", "leave them out")
def leak(model, source, given, last):
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    return (model(source, changed) - model(source, given)).abs().max()


@wrong("ch08-leak", "may also move down")
def leak(model, source, given, last):
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    return (model(source, changed) - model(source, given))[:, :-1].max()


@wrong("ch08-leak", "may also move up")
def leak(model, source, given, last):
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    return (model(source, given) - model(source, changed))[:, :-1].max()


@wrong("ch08-leak", "only the last position but one")
def leak(model, source, given, last):
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    return (model(source, changed) - model(source, given))[:, -2].abs().max()


@wrong("ch08-leak", "only the first position is looked at")
def leak(model, source, given, last):
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    return (model(source, changed) - model(source, given))[:, 0].abs().max()


@wrong("ch08-leak", "may drown")
def leak(model, source, given, last):
    changed = torch.cat([given[:, :-1], last[:, None]], dim=1)
    return (model(source, changed) - model(source, given))[:, :-1].abs().mean()


@wrong("ch08-exact", "a padding in between, and no end")
def share_of_exact(written, target, pad, end):
    def text(row):
        if end in row:
            return row[: row.index(end) + 1]
        return [symbol for symbol in row if symbol != pad]

    rows = zip(written.tolist(), target.tolist(), strict=True)
    return sum(text(a) == text(b) for a, b in rows) / len(written)


@wrong("ch08-exact", "as if the first symbol were the end")
def exact_match(written, target, pad, end):
    def text(row):
        return row[: (row == end).int().argmax() + 1].tolist()

    hits = [text(a) == text(b) for a, b in zip(written, target, strict=True)]
    return sum(hits) / len(hits)
