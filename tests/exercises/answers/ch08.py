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


CUT = "dim=1)[going]"
NEXT = "next_logits(tokens, rows)"
WRONG["ch08-greedy"] = {
    "about a row that has written end": [
        (CUT, "dim=1)"),
        ("rows = rows[going]", "pass"),
    ],
    "numbered afresh, from 0": (NEXT, "next_logits(tokens, torch.arange(len(rows)))"),
    "only one of the two been cut": (CUT, "dim=1)"),
    "as at the beginning, also when others": (NEXT, "next_logits(tokens, rows + 1)"),
    "ids and numbers of rows still belong together": (CUT, "dim=1)[: going.sum()]"),
}

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


LAST = "return row[:size]"
FIRST = "return row[: row.index(end) + 1]"
WRONG["ch08-exact"] = {
    "what comes after the end is not part": (FIRST, "pass"),
    "without an end the text is the whole row": (LAST, "return []"),
    "a padding in between is a symbol": (
        "    def text(row):",
        "    def text(row):\n        row = [i for i in row if i != pad]",
    ),
    "a padding in between, and no end": (LAST, "return [i for i in row if i != pad]"),
    "as if the first symbol were the end": (LAST, "return row[:1]"),
}

# ---- reverse instead of copy -------------------------------------------------


@right("ch08-reverse")
def reversed_targets(source, pad):
    others = source[:, 1:].flip(1)  # padding first
    order = others.eq(pad).int().argsort(dim=1, stable=True)
    return torch.cat([source[:, :1], others.gather(1, order)], dim=1)


GATHERED = "source.gather(1, torch.where(turned, size - position, position))"
WRONG["ch08-reverse"] = {
    "another dtype than those of `source`": (GATHERED, f"{GATHERED}.long()"),
    "the padding stands between": (
        ".sum(dim=1, keepdim=True)",
        ".sum(dim=1, keepdim=True).max().repeat(len(source), 1)",
    ),
    "changes its argument `source` in place": (GATHERED, f"source.copy_({GATHERED})"),
    "a start symbol further on stays where it is": (
        f"    return {GATHERED}",
        "    result = source.clone()\n    for row in result:\n        keep = (row != "
        "pad) & (row != row[0])\n        row[keep] = row[keep].flip(0)\n    return "
        "result",
    ),
}

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


ASKED = "model(source, written)[:, -1:]"
BEGUN = "written = target[:, :1]"
WRONG["ch08-honest"] = {
    "still given the right beginning": (
        "(written == target)",
        "(model(source, target[:, :-1]).argmax(dim=-1) == target[:, 1:])",
    ),
    "room for what is still to come": (
        ASKED,
        "model(source, torch.cat([written, 0 * target], 1)[:, : target.shape[1]])[:, "
        "written.shape[1] - 1 :][:, :1]",
    ),
    "single symbols count": (
        "(written == target).all(dim=1)",
        "(written == target)[:, 1:]",
    ),
    "with the source's first symbol": [
        (BEGUN, "written = source[:, :1]"),
        ("(written == target)", "(written == target)[:, 1:]"),
    ],
    "begins with 1 in every row": [
        (BEGUN, "written = torch.ones_like(target[:, :1])"),
        ("(written == target)", "(written == target)[:, 1:]"),
    ],
}

# ---- the leak test -------------------------------------------------------------


@right("ch08-leak")
def leak(model, source, given, last):
    before = model(source, given)[:, :-1]
    after = model(source, torch.cat([given[:, :-1], last.unsqueeze(1)], dim=1))
    rows = zip(before.flatten().tolist(), after[:, :-1].flatten().tolist(), strict=True)
    return max(abs(one - two) for one, two in rows)


MOVED = "model(source, changed) - model(source, given)"
RIGHT["ch08-leak"] = [
    (  # both questions in one batch
        MOVED,
        "torch.sub(*model(source.repeat(2, 1), torch.cat([changed, given])).chunk(2))",
    ),
    (  # row by row
        MOVED,
        "torch.cat([model(source[n : n + 1], changed[n : n + 1]) - model(source[n : n "
        "+ 1], given[n : n + 1]) for n in range(len(given))])",
    ),
]
WRONG["ch08-leak"] = {
    "changes its argument `given` in place": ("given.clone()", "given"),
    "leave them out": ("[:, :-1]", ""),
    "may also move down": (".abs()", ""),
    "may also move up": (".abs()", ".neg()"),
    "only the last position but one": ("[:, :-1]", "[:, -2]"),
    "only the first position is looked at": ("[:, :-1]", "[:, 0]"),
    "may drown": (".max()", ".mean()"),
}
