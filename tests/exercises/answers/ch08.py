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


# ---- a training step ---------------------------------------------------------


@right("ch08-train-step")
def train_step(model, optimizer, source, target, pad):
    logs = model(source, target[:, :-1]).log_softmax(dim=-1)
    labels = target[:, 1:]
    real = labels != pad
    own = logs.gather(-1, labels.masked_fill(~real, 0)[..., None])[..., 0]
    loss = -own[real].sum() / real.sum()
    for parameter in model.parameters():
        parameter.grad = None
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@wrong("ch08-train-step", "gradients of an earlier step")
def train_step(model, optimizer, source, target, pad):
    logits = model(source, target[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=pad)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("ch08-train-step", "given the source, and the target without its last")
def train_step(model, optimizer, source, target, pad):
    optimizer.zero_grad()
    logits = model(source, target)
    loss = torch.nn.functional.cross_entropy(logits.mT, target, ignore_index=pad)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("ch08-train-step", "divided by all positions")
def train_step(model, optimizer, source, target, pad):
    optimizer.zero_grad()
    labels = target[:, 1:]
    logs = model(source, target[:, :-1]).log_softmax(dim=-1)
    own = logs.gather(-1, labels[..., None])[..., 0]
    loss = -(own * (labels != pad)).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("ch08-train-step", "a plain number is wanted")
def train_step(model, optimizer, source, target, pad):
    optimizer.zero_grad()
    logits = model(source, target[:, :-1]).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(
        logits, target[:, 1:].flatten(), ignore_index=pad
    )
    loss.backward()
    optimizer.step()
    return loss


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
