"""Wrong answers to the exercises of chapter 05."""

from tests.exercises.wrong import Wrong


def _table(name: str, hint: str, body: str) -> Wrong:
    source = "def halves_table(length, d_model, start=0, base=10000.0):\n"
    return Wrong("ch05-table", name, source + body.strip("\n"), hint)


def _shift(name: str, hint: str, body: str) -> Wrong:
    source = "def shift_matrix(steps, d_model):\n" + body.strip("\n")
    return Wrong("ch05-shift-matrix", name, source, hint)


def _learned(name: str, hint: str, body: str) -> Wrong:
    source = "def add_learned(x, table, start=0):\n" + body.strip("\n")
    return Wrong("ch05-learned", name, source, hint)


def _relative(name: str, hint: str, body: str) -> Wrong:
    source = "def depends_on_distance(score, width):\n" + body.strip("\n")
    return Wrong("ch05-relative", name, source, hint)


WRONG = [
    # ---- the table without loops ----
    _table("alternating", "sines and cosines alternate", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()
"""),
    _table("cosines first", "the cosines come first", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.cos(), angles.sin()], dim=-1).float()
"""),
    _table("i instead of 2i", "the exponent is i/d;", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (torch.arange(d_model // 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("i up to d", "i runs up to d − 1; there", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (2 * torch.arange(d_model).double() / d_model)
    half = d_model // 2
    return torch.cat([angles[:, :half].sin(), angles[:, half:].cos()], dim=1).float()
"""),
    _table("i up to d, and no 2", "with an exponent of i/d", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (torch.arange(d_model).double() / d_model)
    half = d_model // 2
    return torch.cat([angles[:, :half].sin(), angles[:, half:].cos()], dim=1).float()
"""),
    _table("as tensor2tensor spaces them", "i/(d/2 − 1), as in tensor2tensor", """
    p = torch.arange(start, start + length).double()[:, None]
    half = d_model // 2
    angles = p / base ** (torch.arange(half).double() / max(half - 1, 1))
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("multiplied", "divide, the later pairs turn slower", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p * base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("no start", "is start used?", """
    p = torch.arange(length).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("from 1 on", "one too high", """
    p = torch.arange(start + 1, start + length + 1).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("length as the end", "length the number of rows", """
    p = torch.arange(start, max(length, start)).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("no base", "the base is not used", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
"""),
    _table("transposed", "the table is transposed", """
    p = torch.arange(start, start + length).double()
    angles = p / base ** (torch.arange(0, d_model, 2).double()[:, None] / d_model)
    return torch.cat([angles.sin(), angles.cos()]).float()
"""),
    _table("no cosines", "only the sines are there", """
    p = torch.arange(start, start + length).double()[:, None]
    return (p / base ** (torch.arange(0, d_model, 2).double() / d_model)).sin().float()
"""),
    _table("angles in float32", "need double precision", """
    p = torch.arange(start, start + length).float()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).float() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
"""),
    _table("left in float64", "the dtype is torch.float64", """
    p = torch.arange(start, start + length).double()[:, None]
    angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
"""),
    _table("rows joined, none too many", "your code raised", """
    rows = []
    for p in range(start, start + length):
        angles = p / base ** (torch.arange(0, d_model, 2).double() / d_model)
        rows.append(torch.cat([angles.sin(), angles.cos()]))
    return torch.stack(rows).float()
"""),
    _table("loops", "no loops: four million numbers in time: your code raised", """
    table = torch.zeros(length, d_model)
    for row in range(length):
        for i in range(d_model // 2):
            angle = torch.tensor((start + row) / base ** (2 * i / d_model)).double()
            table[row, i] = angle.sin()
            table[row, d_model // 2 + i] = angle.cos()
    return table
"""),
    _table("a list", "expected a tensor, got a list", """
    from math import cos, sin
    w = [base ** (-2 * i / d_model) for i in range(d_model // 2)]
    rows = range(start, start + length)
    return [[sin(p * v) for v in w] + [cos(p * v) for v in w] for p in rows]
"""),
    _table("the example by heart", "expected sin(p", """
    return torch.tensor([[0.8415, 0.01, 0.5403, 0.9999]]).repeat(
        length, d_model // 4 + 1)[:, :d_model]
"""),
    # ---- the rotation matrix ----
    _shift("the rotation of a geometry book", "it turns the wrong way", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps * 10000 ** (-i / d_model))
        M[i, i], M[i, i + 1] = a.cos(), -a.sin()
        M[i + 1, i], M[i + 1, i + 1] = a.sin(), a.cos()
    return M
"""),
    _shift("halves", "not at i and i + d/2", """
    h = d_model // 2
    a = steps * 10000 ** (-2 * torch.arange(h) / d_model)
    c, s = torch.diag(a.cos()), torch.diag(a.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)])
"""),
    _shift("one angle for all", "every pair has an angle of its own", """
    a = torch.tensor(float(steps))
    block = torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]])
    return torch.block_diag(*[block] * (d_model // 2))
"""),
    _shift("i instead of 2i", "the exponent is i/d;", """
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        a = torch.tensor(steps * 10000 ** (-i / d_model))
        j = 2 * i
        M[j, j], M[j, j + 1] = a.cos(), a.sin()
        M[j + 1, j], M[j + 1, j + 1] = -a.sin(), a.cos()
    return M
"""),
    _shift("4i instead of 2i", "M PE(p) should be PE(p + steps)", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps * 10000 ** (-2 * i / d_model))
        M[i, i], M[i, i + 1] = a.cos(), a.sin()
        M[i + 1, i], M[i + 1, i + 1] = -a.sin(), a.cos()
    return M
"""),
    _shift("multiplied", "divide, the later pairs turn slower", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps * 10000 ** (i / d_model)).double()
        M[i, i], M[i, i + 1] = a.cos(), a.sin()
        M[i + 1, i], M[i + 1, i + 1] = -a.sin(), a.cos()
    return M
"""),
    _shift("no minus", "no sine of a block has a minus", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps * 10000 ** (-i / d_model))
        M[i, i], M[i, i + 1] = a.cos(), a.sin()
        M[i + 1, i], M[i + 1, i + 1] = a.sin(), a.cos()
    return M
"""),
    _shift("two minuses", "both sines of a block have a minus", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps * 10000 ** (-i / d_model))
        M[i, i], M[i, i + 1] = a.cos(), -a.sin()
        M[i + 1, i], M[i + 1, i + 1] = -a.sin(), a.cos()
    return M
"""),
    _shift("the sign of steps lost", "or the sign of steps", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(abs(steps) * 10000 ** (-i / d_model))
        M[i, i], M[i, i + 1] = a.cos(), a.sin()
        M[i + 1, i], M[i + 1, i + 1] = -a.sin(), a.cos()
    return M
"""),
    _shift("one step, then multiplied", "or the sign of steps", """
    M = torch.eye(d_model)
    for _ in range(abs(steps)):
        for i in range(0, d_model, 2):
            a = torch.tensor(10000 ** (-i / d_model))
            block = torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]])
            M[i : i + 2] = block @ M[i : i + 2]
    return M
"""),
    _shift("steps not used", "this turns by one step", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(10000 ** (-i / d_model))
        M[i, i], M[i, i + 1] = a.cos(), a.sin()
        M[i + 1, i], M[i + 1, i + 1] = -a.sin(), a.cos()
    return M
"""),
    _shift("the blocks alone", "these are the blocks alone", """
    a = steps * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    one, two = torch.stack([a.cos(), a.sin()], 1), torch.stack([-a.sin(), a.cos()], 1)
    return torch.stack([one, two], 1)
"""),
    _shift("sine and cosine exchanged", "sine and cosine are exchanged", """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps * 10000 ** (-i / d_model))
        M[i, i], M[i, i + 1] = a.sin(), a.cos()
        M[i + 1, i], M[i + 1, i + 1] = -a.cos(), a.sin()
    return M
"""),
    _shift("left in float64", "the dtype is torch.float64", """
    a = steps * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    blocks = [torch.tensor([[v.cos(), v.sin()], [-v.sin(), v.cos()]]) for v in a]
    return torch.block_diag(*blocks).double()
"""),
    _shift("fits one position only", "M PE(p) should be PE(p + steps)", """
    w = 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    here = torch.stack([(0 * w).sin(), (0 * w).cos()], -1).flatten()
    there = torch.stack([(steps * w).sin(), (steps * w).cos()], -1).flatten()
    return (torch.outer(there, here) / (here @ here)).float()
"""),
    _shift("too few positions", "M PE(p) should be PE(p + steps)", """
    w = 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    p = torch.arange(3).double()[:, None]
    def table(p):
        return torch.stack([(p * w).sin(), (p * w).cos()], -1).flatten(1)
    return torch.linalg.lstsq(table(p), table(p + steps), driver="gelsd")[0].T.float()
"""),
    # ---- learned positions that refuse ----
    _learned("slices and hopes", "one row was left, and broadcast", """
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("clamps", "it clamps them", """
    where = torch.arange(start, start + x.shape[1]).clamp(0, len(table) - 1)
    return x + table[where].to(x.dtype)
"""),
    _learned("clamps at the end only", "it clamps them", """
    if start < 0:
        raise ValueError(f"start is {start}")
    where = torch.arange(start, start + x.shape[1]).clamp(max=len(table) - 1)
    return x + table[where].to(x.dtype)
"""),
    _learned("wraps around", "it wraps around", """
    where = torch.arange(start, start + x.shape[1]) % len(table)
    return x + table[where].to(x.dtype)
"""),
    _learned("counts a negative start from the end", "it wraps around", """
    if start + x.shape[1] > len(table):
        raise ValueError(f"position {start + x.shape[1] - 1}, max_len {len(table)}")
    return x + table[torch.arange(start, start + x.shape[1])].to(x.dtype)
"""),
    _learned("cuts x off", "are cut off", """
    if start < 0:
        raise ValueError(f"start is {start}")
    rows = table[start : start + x.shape[1]].to(x.dtype)
    return x[:, : len(rows)] + rows
"""),
    _learned("leaves the rest without", "without a row stay as they were", """
    if start < 0:
        raise ValueError(f"start is {start}")
    y, rows = x.clone(), table[start : start + x.shape[1]].to(x.dtype)
    y[:, : len(rows)] += rows
    return y
"""),
    _learned("prints", "so raise; your code does not", """
    if start < 0 or start + x.shape[1] > len(table):
        print(f"too long: {start + x.shape[1] - 1}, max_len is {len(table)}")
        return None
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("returns the exception", "so raise; your code does not", """
    if start < 0 or start + x.shape[1] > len(table):
        return f"ValueError: position {start + x.shape[1] - 1}, max_len {len(table)}"
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("torch's own exception", "raise a ValueError in words of your own", """
    return x + table[torch.arange(start, start + x.shape[1])].to(x.dtype)
"""),
    _learned("an assert", "an assert is gone", """
    t, max_len = x.shape[1], len(table)
    assert 0 <= start and start + t <= max_len, f"{start}, {t}: max_len {max_len}"
    return x + table[start : start + t].to(x.dtype)
"""),
    _learned("no numbers", "the message should name max_len", """
    if start < 0 or start + x.shape[1] > len(table):
        raise ValueError("the sequence is too long")
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("no max_len", "the message should name max_len", """
    if start < 0 or start + x.shape[1] > len(table):
        raise ValueError(f"there is no position {start + x.shape[1] - 1}: {start}")
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("max_len only", "should name what does not fit", """
    if start < 0 or start + x.shape[1] > len(table):
        raise ValueError(f"too long, max_len is {len(table)}: {start}")
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("no name for start", "the message should name start", """
    if start < 0:
        raise ValueError("start must not be negative")
    if start + x.shape[1] > len(table):
        raise ValueError(f"length {x.shape[1]}, max_len {len(table)}")
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("forgets start in the question", "one row was left", """
    if start < 0:
        raise ValueError(f"start is {start}")
    if x.shape[1] > len(table):
        raise ValueError(f"length {x.shape[1]}, max_len {len(table)}")
    return x + table[start : start + x.shape[1]].to(x.dtype)
"""),
    _learned("forgets negative starts", "all in a table of 11, so raise", """
    if start + x.shape[1] > len(table):
        raise ValueError(f"position {start + x.shape[1] - 1}, max_len {len(table)}")
    rows = table[start : start + x.shape[1]].to(x.dtype)
    return x + rows if len(rows) == x.shape[1] else x
"""),
    _learned("refuses the last position", "off by one?", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t >= max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return x + table[start : start + t].to(x.dtype)
"""),
    _learned("accepts one too many", "positions 0 to 12 are not all", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len + 1:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    where = torch.arange(start, start + t).clamp(max=max_len - 1)
    return x + table[where].to(x.dtype)
"""),
    _learned("no start", "is start used?", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return x + table[:t].to(x.dtype)
"""),
    _learned("positions from 1", "your positions are one too high", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    where = torch.arange(start + 1, start + t + 1).clamp(max=max_len - 1)
    return x + table[where].to(x.dtype)
"""),
    _learned("the first row for all", "every position gets the row of the first", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return x + table[start].to(x.dtype)
"""),
    _learned("along the batch", "the rows run along the batch", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return x + table[start : start + t, None].to(x.dtype)
"""),
    _learned("the rows alone", "these are rows of the table alone", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return table[start : start + t].to(x.dtype).expand_as(x)
"""),
    _learned("in place", "changes its argument `x` in place", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    x += table[start : start + t].to(x.dtype)
    return x
"""),
    _learned("promoted to float32", "the dtype is torch.float32", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return x + table[start : start + t]
"""),
    _learned("detached", "no gradient reaches table", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return x + table.data[start : start + t].to(x.dtype)
"""),
    _learned("works only for a batch of one", "the shape is", """
    t, max_len = x.shape[1], len(table)
    if start < 0 or start + t > max_len:
        raise ValueError(f"positions {start} to {start + t - 1}, max_len {max_len}")
    return (x[0] + table[start : start + t].to(x.dtype))[None]
"""),
    # ---- only the distance counts ----
    _relative("always so", "it does not: only q is turned", """
    return True
"""),
    _relative("never so", "move both positions by the same number", """
    return False
"""),
    _relative("only one position moved", "move both positions by the same number", """
    q, k = torch.randn(width), torch.randn(width)
    return torch.allclose(score(q, k, 5, 3), score(q, k, 9, 3), atol=1e-3)
"""),
    _relative("positions exchanged", "move both positions by the same number", """
    q, k = torch.randn(width), torch.randn(width)
    return torch.allclose(score(q, k, 5, 3), score(q, k, 3, 5), atol=1e-3)
"""),
    _relative("other vectors after the move", "for the same q and k", """
    for c in range(1, 20):
        here = score(torch.randn(width), torch.randn(width), 5, 3)
        there = score(torch.randn(width), torch.randn(width), 5 + c, 3 + c)
        if not torch.allclose(here, there, atol=1e-3):
            return False
    return True
"""),
    _relative("equal to the last digit", "not with ==", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(50, (3,)).tolist()
        if score(q, k, p, r) != score(q, k, p + c, r + c):
            return False
    return True
"""),
    _relative("vectors of zeros", "are your q and k random", """
    q = k = torch.zeros(width)
    for _ in range(200):
        p, r, c = torch.randint(50, (3,)).tolist()
        if not torch.allclose(
            score(q, k, p, r), score(q, k, p + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("a shift of nothing", "by shifts other than 0", """
    q, k = torch.randn(width), torch.randn(width)
    return all(
        torch.allclose(score(q, k, p, 7), score(q, k, p, 7), atol=1e-3)
        for p in range(50)
    )
"""),
    _relative("returns a tensor", "returns a tensor", """
    q, k = torch.randn(width), torch.randn(width)
    return (score(q, k, 5, 3) - score(q, k, 25, 23)).abs() < 1e-3
"""),
    _relative("prints its answer", "is a `return` missing", """
    q, k = torch.randn(width), torch.randn(width)
    print(torch.allclose(score(q, k, 5, 3), score(q, k, 25, 23), atol=1e-3))
"""),
    _relative("one vector for both", "draw each for itself", """
    for _ in range(200):
        q = torch.randn(width)
        p, r, c = torch.randint(50, (3,)).tolist()
        if not torch.allclose(
            score(q, q, p, r), score(q, q, p + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("one pair of vectors", "only for some vectors", """
    torch.manual_seed(0)
    q, k = torch.ones(width) / 2, torch.ones(width).cumsum(0)
    for _ in range(200):
        p, r, c = torch.randint(50, (3,)).tolist()
        if not torch.allclose(
            score(q, k, p, r), score(q, k, p + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("queries behind keys only", "in either order", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(1, 33, (3,)).tolist()
        if not torch.allclose(
            score(q, k, p + r, r), score(q, k, p + r + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("an even shift only", "try several shifts", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r = torch.randint(90, (2,)).tolist()
        if not torch.allclose(
            score(q, k, p, r), score(q, k, p + 10, r + 10), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("a distance of 0 only", "try positions that do", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, c = torch.randint(50, (2,)).tolist()
        if not torch.allclose(
            score(q, k, p, p), score(q, k, p + c, p + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("the first positions only", "try positions up to 100", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(10, (3,)).tolist()
        if not torch.allclose(
            score(q, k, p, r), score(q, k, p + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("near positions only", "try positions from the whole range", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(41, (3,)).tolist()
        if not torch.allclose(
            score(q, k, p, r), score(q, k, p + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("vectors of ones", "draw each for itself", """
    q = k = torch.ones(width)
    for _ in range(200):
        p, r, c = torch.randint(50, (3,)).tolist()
        if not torch.allclose(
            score(q, k, p, r), score(q, k, p + c, r + c), atol=1e-3
        ):
            return False
    return True
"""),
    _relative("too large a tolerance", "a small difference is a difference", """
    for _ in range(200):
        q, k = torch.randn(width), torch.randn(width)
        p, r, c = torch.randint(50, (3,)).tolist()
        if not torch.allclose(score(q, k, p, r), score(q, k, p + c, r + c), atol=1.0):
            return False
    return True
"""),
]  # fmt: skip
