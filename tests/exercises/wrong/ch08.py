"""Wrong answers to the exercises of chapter 08."""

from tests.exercises.wrong import Wrong


def _greedy(name: str, hint: str, body: str) -> Wrong:
    head = "def greedy(next_logits, b, start, end, pad, most):\n"
    return Wrong("ch08-greedy", name, head + body.strip("\n"), hint)


def _exact(name: str, hint: str, body: str) -> Wrong:
    source = "def exact_match(written, target, pad, end):\n" + body.strip("\n")
    return Wrong("ch08-exact", name, source, hint)


def _reverse(name: str, hint: str, body: str) -> Wrong:
    source = "def reversed_targets(source, pad):\n" + body.strip("\n")
    return Wrong("ch08-reverse", name, source, hint)


def _first(name: str, hint: str, body: str) -> Wrong:
    source = "def first_error(written, target, pad):\n" + body.strip("\n")
    return Wrong("ch08-first-error", name, source, hint)


def _loop(
    name: str,
    hint: str,
    symbol: str = "logits.argmax(-1)",
    fill: str = "symbol[ended] = pad",
    ended: str = "ended |= symbol == end",
    stop: str = "ended.all()",
    result: str = "tokens[:, 1:]",
    given: str = "tokens",
) -> Wrong:
    """Greedy decoding, right but for what is given."""
    return _greedy(
        name,
        hint,
        f"""
    tokens = torch.full((b, 1), start)
    ended = torch.zeros(b, dtype=torch.bool)
    for _ in range(most):
        logits = next_logits({given})
        symbol = {symbol}
        {fill}
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
        {ended}
        if {stop}:
            break
    return {result}
""",
    )


def _texts(name: str, hint: str, text: str, result: str = "right / len(a)") -> Wrong:
    """Exact match with another idea of a text."""
    return _exact(
        name,
        hint,
        f"""
    def text(row):
{text.strip(chr(10))}
    a, b = written.tolist(), target.tolist()
    right = sum(text(one) == text(other) for one, other in zip(a, b))
    return {result}
""",
    )


TEXT = """
        if end in row:
            return row[: row.index(end) + 1]
        while row and row[-1] == pad:
            row = row[:-1]
        return row
"""

WRONG = [
    # ---- greedy decoding with early stop ----
    _loop("start is kept", "start is returned as well", result="tokens"),
    _loop("rubbish behind the end", "behind its end is still there", fill="pass"),
    _loop("stops with the first", "stops when the first row has ended",
          stop="ended.any()"),
    _loop("all at the same step", "remember who has ended",
          stop="(symbol == end).all()"),
    _loop("never stops", "remember who has ended", stop="False"),
    _loop("padded with 0", "padding is `pad`, whatever its number",
          fill="symbol[ended] = 0"),
    _loop("filled with the end", "a row is filled with end",
          fill="symbol[ended] = end"),
    _loop("the end is lost", "the end itself is replaced",
          result="tokens[:, 1:].masked_fill(tokens[:, 1:] == end, pad)"),
    _loop("stops before the end is written", "the last symbol is missing",
          result="tokens[:, 1:-1] if ended.all() else tokens[:, 1:]"),
    _loop("a padding stops a row, too", "only end stops it",
          ended="ended |= (symbol == end) | (symbol == pad)"),
    _loop("fed with rubbish, padded at the end", "what is written is fed",
          fill="pass", ended="ended |= symbol == end", result="""(
        lambda w, e: w.masked_fill(e.cumsum(1) > e, pad)
    )(tokens[:, 1:], (tokens[:, 1:] == end).int())"""),
    _loop("fed with end, padded at the end", "a row is filled with end",
          fill="symbol[ended] = end", result="""(
        lambda w, e: w.masked_fill(e.cumsum(1) > e, pad)
    )(tokens[:, 1:], (tokens[:, 1:] == end).int())"""),
    _loop("stops when all have ended or padded", "counts as its end; only end stops",
          stop="((tokens[:, 1:] == end) | (tokens[:, 1:] == pad)).any(1).all()"),
    _loop("stops when nobody writes a symbol", "by itself has not ended",
          stop="((symbol == end) | (symbol == pad)).all()"),
    _loop("the least likely", "take the largest logit", symbol="logits.argmin(-1)"),
    _loop("start counts as an end", "start counts as an end",
          ended="ended = (tokens == end).any(1)"),
    _loop("the last symbol alone", "start and all that was written",
          given="tokens[:, -1:]"),
    _loop("without start", "start and all that was written", given="tokens[:, 1:]"),
    _loop("start is always 1", "start and all that was written",
          given="torch.cat([torch.ones(b, 1).long(), tokens[:, 1:]], 1)"),
    _loop("ids as numbers with a comma", "are int64", given="tokens.float()"),
    _loop("rows one by one", "takes all b rows",
          given="tokens[:1]"),
    _loop("those that have ended are left out", "takes all b rows",
          given="tokens[~ended]"),
    _loop("a number with a comma as a result", "the dtype is torch.float32",
          result="tokens[:, 1:].float()"),
    _loop("lists", "expected a tensor, got a list", result="tokens[:, 1:].tolist()"),
    _loop("transposed", "batch first", result="tokens[:, 1:].T"),
    _loop("the first row for all", "all rows write what the first one writes",
          symbol="logits[:1].argmax(-1).expand(b).clone()"),
    _loop("drawn, not chosen", "expected the likeliest symbol",
          symbol="(4 * logits).softmax(-1).multinomial(1)[:, 0]"),
    _greedy("most counts start", "the last symbol is missing", """
    tokens = torch.full((b, 1), start)
    while tokens.shape[1] < most and not (tokens[:, 1:] == end).any(1).all():
        ended = (tokens[:, 1:] == end).any(1)
        symbol = next_logits(tokens).argmax(-1).masked_fill(ended, pad)
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
    return tokens[:, 1:]
"""),
    _greedy("one call too many", "asked once too often", """
    tokens = torch.full((b, 1), start)
    for _ in range(most + 1):
        if (tokens[:, 1:] == end).any(1).all():
            break
        ended = (tokens[:, 1:] == end).any(1)
        symbol = next_logits(tokens).argmax(-1).masked_fill(ended, pad)
        tokens = torch.cat([tokens, symbol[:, None]], dim=1)
    return tokens[:, 1:]
"""),
    _greedy("always most wide", "the result is always `most` wide", """
    tokens = torch.full((b, most + 1), pad)
    tokens[:, 0] = start
    ended = torch.zeros(b, dtype=torch.bool)
    for i in range(most):
        symbol = next_logits(tokens[:, : i + 1]).argmax(-1)
        tokens[:, i + 1] = symbol.masked_fill(ended, pad)
        ended |= tokens[:, i + 1] == end
        if ended.all():
            break
    return tokens[:, 1:]
"""),
    _greedy("room for what is to come", "room for what is still to come", """
    tokens = torch.full((b, most + 1), pad)
    tokens[:, 0] = start
    for i in range(most):
        tokens[:, i + 1] = next_logits(tokens).argmax(-1)
    return tokens[:, 1:]
"""),
    _greedy("sorted, and padded at the end", "what is written is fed", """
    tokens = torch.full((b, most + 1), start)
    for i in range(1, most + 1):
        tokens[:, i] = next_logits(tokens[:, :i]).sort(dim=-1).indices[:, -1]
        if tokens[:, 1 : i + 1].eq(end).any(dim=1).all():
            break
    tokens = tokens[:, 1 : i + 1]
    ends = tokens.eq(end).int()
    return torch.where(ends.cumsum(dim=1) > ends, pad, tokens)
"""),
    _greedy("the book's", "your code raised", """
    from annotated.decoding import greedy_decode
    source = torch.zeros(b, 1).long()
    return greedy_decode(next_logits, source, start=start, end=end, max_new_tokens=most)
"""),
    _greedy("the example by heart", "the shape is (2, 3)", """
    return torch.tensor([[4, 3, 2], [5, 2, 0]])
"""),
    # ---- exact match ----
    _exact("whole rows", "what stands behind its end does not count", """
    t = max(written.shape[1], target.shape[1])
    def wide(x):
        return torch.nn.functional.pad(x, (0, t - x.shape[1]), value=pad)
    return (wide(written) == wide(target)).all(1).float().mean().item()
"""),
    _exact("whole rows of one length", "your code raised RuntimeError", """
    return (written == target).all(dim=1).double().mean().item()
"""),
    _exact("cut to the shorter", "must not be cut to the length of the target", """
    t = min(written.shape[1], target.shape[1])
    return (written[:, :t] == target[:, :t]).all(1).double().mean().item()
"""),
    _exact("only where the target is real", "goes on without one is wrong", """
    t = min(written.shape[1], target.shape[1])
    written, target = written[:, :t], target[:, :t]
    right = (written == target) | (target == pad)
    return right.all(1).double().mean().item()
"""),
    _exact("symbols", "this is the share of right symbols", """
    t = max(written.shape[1], target.shape[1])
    def wide(x):
        return torch.nn.functional.pad(x, (0, t - x.shape[1]), value=pad)
    written, target = wide(written), wide(target)
    ends = (target == end).int()
    real = (ends.cumsum(1) - ends == 0) & (target != pad)
    return (written == target)[real].double().mean().item()
"""),
    _texts("without the end", "goes on without one is wrong", """
        row = row[: row.index(end)] if end in row else row
        while row and row[-1] == pad:
            row = row[:-1]
        return row
"""),
    _texts("no end gives place 0", "without an end the text is the whole row", """
        first = (torch.tensor(row) == end).int().argmax()
        return row[: first + 1] if end in row else row[:first]
"""),
    _texts("the last end", "with its FIRST end", """
        if end in row:
            return row[: len(row) - row[::-1].index(end)]
        while row and row[-1] == pad:
            row = row[:-1]
        return row
"""),
    _texts("padding is left out everywhere", "a padding in between is a symbol", """
        row = row[: row.index(end) + 1] if end in row else row
        return [i for i in row if i != pad]
"""),
    _texts("cut at the first padding", "the text goes on behind it", """
        if end in row:
            return row[: row.index(end) + 1]
        return row[: row.index(pad)] if pad in row else row
"""),
    _texts("padding is 0", "not always 0", TEXT.replace("== pad", "== 0")),
    _texts("padding of a text without an end", "less the padding at its end", """
        return row[: row.index(end) + 1] if end in row else row
"""),
    _texts("as sets", "one of the three is right", TEXT.replace(
        "return row[: row.index(end) + 1]", "return set(row[: row.index(end)])"
    ).replace("return row\n", "return set(row)\n")),
    _texts("lengths", "one of the two is right", TEXT.replace(
        "return row\n", "return len(row)\n"
    ).replace(
        "return row[: row.index(end) + 1]", "return row.index(end)"
    )),
    _texts("how many", "how many rows are right", TEXT, "right"),
    _texts("per cent", "no percentage", TEXT, "100 * right / len(a)"),
    _texts("the share of wrong ones", "one of the three is right", TEXT,
           "1 - right / len(a)"),
    _texts("a tensor", "got a tensor", TEXT, "torch.tensor(right / len(a))"),
    _texts("all or nothing", "got a bool", TEXT, "right == len(a)"),
    _exact("in place", "changes its argument `written` in place", """
    ends = (written == end).int()
    written[(ends.cumsum(1) - ends).bool()] = pad
    a, b = written.tolist(), target.tolist()
    return sum(x == y for x, y in zip(a, b)) / len(a)
"""),
    _exact("the example by heart", "it is right", """
    return 0.5
"""),
    # ---- reverse instead of copy ----
    _reverse("nothing", "nothing is reversed", """
    return source.clone()
"""),
    _reverse("flip", "the padding is reversed, too", """
    return source.flip(1)
"""),
    _reverse("flip behind the start", "the padding stands between", """
    return torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
"""),
    _reverse("start is turned, too", "the start symbol is reversed, too", """
    result = source.clone()
    for row in result:
        n = int((row != pad).sum())
        row[:n] = row[:n].flip(0)
    return result
"""),
    _reverse("without start", "the start symbol is missing", """
    result = source[:, 1:].clone()
    for row in result:
        n = int((row != pad).sum())
        row[:n] = row[:n].flip(0)
    return result
"""),
    _reverse("padding instead of start", "the start symbol has become padding", """
    result = torch.full_like(source, pad)
    for row, old in zip(result, source):
        real = old[old != pad][1:]
        row[: len(real)] = real.flip(0)
    return result
"""),
    _reverse("the first length for all", "you use that of the first", """
    n = int((source[0] != pad).sum())
    return torch.cat([source[:, :1], source[:, 1:n].flip(1), source[:, n:]], dim=1)
"""),
    _reverse("the longest length for all", "the padding stands between", """
    n = int((source != pad).sum(dim=1).max())
    return torch.cat([source[:, :1], source[:, 1:n].flip(1), source[:, n:]], dim=1)
"""),
    _reverse("rows", "the order of the rows is reversed", """
    return source.flip(0)
"""),
    _reverse("sorted", "the symbols are sorted", """
    result = source.clone()
    for row in result:
        n = int((row != pad).sum())
        row[1:n] = row[1:n].sort(descending=True).values
    return result
"""),
    _reverse("one too few", "the last real symbol stays", """
    result = source.clone()
    for row in result:
        n = int((row != pad).sum())
        row[1 : n - 1] = row[1 : n - 1].flip(0)
    return result
"""),
    _reverse("from the second", "the first symbol behind start stays", """
    result = source.clone()
    for row in result:
        n = int((row != pad).sum())
        row[2:n] = row[2:n].flip(0)
    return result
"""),
    _reverse("written while it is read", "lost to one that stands there twice", """
    result = source.clone()
    for row in result:
        n = int((row != pad).sum())
        for i in range(1, n):
            row[i] = row[n - i]
    return result
"""),
    _reverse("padding is 0", "not always 0", """
    place = torch.arange(source.shape[1])
    size = (source != 0).sum(dim=1, keepdim=True)
    turned = (place > 0) & (place < size)
    return source.gather(1, torch.where(turned, size - place, place))
"""),
    _reverse("padded with 0", "in the result, too", """
    result = torch.zeros_like(source)
    for row, old in zip(result, source):
        real = old[old != pad]
        row[: len(real)] = torch.cat([real[:1], real[1:].flip(0)])
    return result
"""),
    _reverse("further starts to the front", "come to the front", """
    rows = []
    for row in source.tolist():
        real = [i for i in row if i != pad]
        ones = [i for i in real if i == row[0]]
        others = [i for i in real if i != row[0]][::-1]
        rows.append(ones + others + [pad] * (len(row) - len(real)))
    return torch.tensor(rows, dtype=source.dtype)
"""),
    _reverse("further starts lost", "are lost; there they are symbols", """
    rows = []
    for row in source.tolist():
        others = [i for i in row if i not in (pad, row[0])][::-1]
        rows.append([row[0], *others] + [pad] * (len(row) - 1 - len(others)))
    return torch.tensor(rows, dtype=source.dtype)
"""),
    _reverse("further starts stay put", "a start symbol further on stays", """
    result = source.clone()
    for row in result:
        keep = (row != pad) & (row != row[0])
        row[keep] = row[keep].flip(0)
    return result
"""),
    _reverse("in place", "changes its argument `source` in place", """
    for row in source:
        n = int((row != pad).sum())
        row[1:n] = row[1:n].flip(0)
    return source
"""),
    _reverse("int64 always", "the dtype is torch.int64", """
    rows = [[i for i in row if i != pad] for row in source.tolist()]
    rows = [row[:1] + row[:0:-1] for row in rows]
    wide = source.shape[1]
    return torch.tensor([row + [pad] * (wide - len(row)) for row in rows])
"""),
    _reverse("lists", "expected a tensor, got a list", """
    rows = [[i for i in row if i != pad] for row in source.tolist()]
    return [row[:1] + row[:0:-1] for row in rows]
"""),
    _reverse("a negative step", "your code raised ValueError", """
    return torch.cat([source[:, :1], source[:, :0:-1]], dim=1)
"""),
    _reverse("the book's", "the shape is (2, 10)", """
    from annotated.data import sequence_task
    return sequence_task("reverse", len(source), torch.Generator())[1]
"""),
    _reverse("the example by heart", "the shape is (2, 5)", """
    return torch.tensor([[1, 7, 4, 3, 5], [1, 2, 6, 0, 0]])
"""),
    # ---- where does it go wrong first? ----
    _first("no −1", "as if its first symbol were wrong", """
    return ((written != target) & (target != pad)).int().argmax(dim=1)
"""),
    _first("0 is none", "0 is a place like others", """
    place = ((written != target) & (target != pad)).int().argmax(dim=1)
    return torch.where(place > 0, place, -1)
"""),
    _first("t for no error", "gives t", """
    wrong = (written != target) & (target != pad)
    t = target.shape[1]
    return torch.where(wrong, torch.arange(t), t).min(dim=1).values
"""),
    _first("padding too", "padding of the target is compared, too; what", """
    wrong = written != target
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1)
"""),
    _first("padding too, and no −1", "too, and a row without an error gives 0", """
    return (written != target).int().argmax(dim=1)
"""),
    _first("padding of what was written", "not of `written`", """
    wrong = (written != target) & (written != pad)
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1)
"""),
    _first("real in both", "only the padding of `target` is left out", """
    wrong = (written != target) & (written != pad) & (target != pad)
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1)
"""),
    _first("padding is 0", "not always 0", """
    wrong = (written != target) & (target != 0)
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1)
"""),
    _first("the last error", "this is the last error", """
    wrong = (written != target) & (target != pad)
    return torch.where(wrong, torch.arange(wrong.shape[1]), -1).max(dim=1).values
"""),
    _first("how many", "how many errors there are", """
    return ((written != target) & (target != pad)).sum(dim=1)
"""),
    _first("from 1", "places are counted from 0", """
    wrong = (written != target) & (target != pad)
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1) + 1, -1)
"""),
    _first("right symbols up to there", "gives t", """
    right = (written == target) | (target == pad)
    return right.int().cumprod(dim=1).sum(dim=1)
"""),
    _first("the first right one", "the first symbol that is right", """
    right = (written == target) & (target != pad)
    return torch.where(right.any(dim=1), right.int().argmax(dim=1), -1)
"""),
    _first("among the real ones", "you count the real ones alone", """
    places = []
    for one, two in zip(written, target):
        real = two != pad
        wrong = (one[real] != two[real]).nonzero()
        places.append(int(wrong[0]) if len(wrong) else -1)
    return torch.tensor(places)
"""),
    _first("one for the batch", "first error of the whole batch", """
    wrong = ((written != target) & (target != pad)).any(dim=0)
    return wrong.int().argmax().expand(len(written))
"""),
    _first("only those with an error", "are left out; they get −1", """
    wrong = (written != target) & (target != pad)
    return wrong.int().argmax(dim=1)[wrong.any(dim=1)]
"""),
    _first("an axis too many", "no axis of length 1", """
    wrong = (written != target) & (target != pad)
    place = wrong.int().argmax(dim=1, keepdim=True)
    return place.masked_fill(~wrong.any(dim=1, keepdim=True), -1)
"""),
    _first("all errors", "one place a row is wanted", """
    return (written != target) & (target != pad)
"""),
    _first("argmax of booleans", "your code raised", """
    wrong = (written != target) & (target != pad)
    return torch.where(wrong.any(dim=1), wrong.argmax(dim=1), -1)
"""),
    _first("int32", "the dtype is torch.int32", """
    wrong = (written != target) & (target != pad)
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1).int()
"""),
    _first("a list", "expected a tensor, got a list", """
    wrong = (written != target) & (target != pad)
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1).tolist()
"""),
    _first("in place", "changes its argument `written` in place", """
    written[target == pad] = pad
    wrong = written != target
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), -1)
"""),
    _first("the example by heart", "the shape is (3,), expected (2,)", """
    return torch.tensor([2, -1, -1])
"""),
]  # fmt: skip
