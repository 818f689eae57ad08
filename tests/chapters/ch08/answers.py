"""Answers to the exercises of chapter 08."""

import torch

from tests.exercises.answers import RIGHT, right, wrong


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


@right("ch08-reverse")
def reversed_targets(source, pad):
    others = source[:, 1:].flip(1)  # padding first
    order = others.eq(pad).int().argsort(dim=1, stable=True)
    return torch.cat([source[:, :1], others.gather(1, order)], dim=1)


@right("ch08-honest")
def exact_share(model, source, target):
    rows = [[symbol] for symbol in target[:, 0].tolist()]
    for _ in range(target.shape[1] - 1):
        logits = model(source, torch.tensor(rows))[:, -1]
        for row, symbol in zip(rows, logits.argmax(-1).tolist(), strict=True):
            row.append(symbol)
    hits = [row == wanted for row, wanted in zip(rows, target.tolist(), strict=True)]
    return sum(hits) / len(hits)


@right("ch08-leak")
def leak(model, source, given, last):
    before = model(source, given)[:, :-1]
    after = model(source, torch.cat([given[:, :-1], last.unsqueeze(1)], dim=1))
    rows = zip(before.flatten().tolist(), after[:, :-1].flatten().tolist(), strict=True)
    return max(abs(one - two) for one, two in rows)


RIGHT["ch08-leak"] = r"""
before, after = model(source, given), model(source, changed)
    after, before = model(source.repeat(2, 1), torch.cat([changed, given])).chunk(2)
        # both questions in one batch
    before, after = (torch.cat([model(source[n : n + 1], x[n : n + 1]) for n in
        range(len(x))]) for x in (given, changed))  # row by row
"""
