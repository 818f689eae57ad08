"""Other right answers: the checks look at what comes out, not at how it is written."""

RIGHT = {
    "ch01-additive-scores": [
        """
def additive_scores(queries, keys, W, U, v):
    sums = (queries @ W.mT).unsqueeze(-2) + (keys @ U.mT).unsqueeze(-3)
    return (torch.tanh(sums) * v).sum(dim=-1)
""",
        """
def additive_scores(queries, keys, W, U, v):
    asked = torch.nn.functional.linear(queries, W)
    offered = torch.nn.functional.linear(keys, U)
    sums = asked[..., None, :] + offered[..., None, :, :]
    return torch.einsum("...h,h->...", sums.tanh(), v)
""",
    ],
    "ch01-mask-padding": [
        """
def mask_padding(energies, lengths):
    s = energies.size(-1)
    padding = torch.arange(s) < (s - lengths)[:, None, None]
    return energies.masked_fill(padding, -torch.inf).softmax(dim=-1).nan_to_num()
""",
        """
def mask_padding(energies, lengths):
    rows = torch.zeros_like(energies)
    for n, length in enumerate(lengths.tolist()):
        if length:
            rows[n, :, -length:] = energies[n, :, -length:].softmax(dim=-1)
    return rows
""",
        """
def mask_padding(energies, lengths):
    real = (torch.arange(energies.shape[-1]).flip(0) < lengths[:, None])[:, None]
    weights = torch.where(real, energies, -torch.inf).softmax(dim=-1)
    return torch.where(real, weights, 0.0)
""",
    ],
    "ch01-temper": [
        """
def temper(energies, tau):
    gaps = energies - energies.max(dim=-1, keepdim=True).values
    if tau == 0:
        gaps, tau = gaps.masked_fill(gaps < 0, -torch.inf), 1.0
    return torch.softmax(gaps / tau, dim=-1)
""",
        """
def temper(energies, tau):
    wide = energies.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(energies.dtype)
""",
    ],
    "ch02-tempered": [
        """
def tempered(x, tau):
    energies = torch.einsum("bik,bjk->bij", x, x) / tau.view(-1, 1, 1)
    return energies.softmax(dim=2) @ x
""",
        """
def tempered(x, tau):
    q = x / tau[:, None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, x, x, scale=1.0)
""",
    ],
    "ch02-scaled-energies": [
        """
def scaled_energies(q, k):
    root = q.size(2) ** 0.25
    return torch.einsum("btk,bsk->bts", q / root, k / root)
""",
        """
def scaled_energies(q, k):
    wide = q.float() @ k.float().mT / q.shape[-1] ** 0.5
    if q.dtype.itemsize < 4:
        return wide.to(q.dtype)
    return (q * q.shape[-1] ** -0.5) @ k.mT
""",
    ],
    "ch02-uniform-factor": [
        """
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return 1 / (q * k).sum(dim=-1).std()
""",
        """
def uniform_factor(width):
    return (9 / width) ** 0.5
""",
    ],
    "ch02-is-equivariant": [
        """
def is_equivariant(f):
    for t in (2, 3, 4, 5, 6, 7, 8, 9):
        x, p = torch.randn(t, 5), torch.randperm(t)
        if (f(x[p]) - f(x)[p]).abs().max() > 1e-4:
            return False
        if (f(x.flip(0)) - f(x).flip(0)).abs().max() > 1e-4:
            return False
    return True
""",
        """
def is_equivariant(f):
    x = torch.randn(5, 3, dtype=torch.float64)
    swaps = []
    for i in range(5):
        for j in range(i):
            p = torch.arange(5)
            p[i], p[j] = j, i
            swaps.append(torch.allclose(f(x)[p], f(x[p])))
    return all(swaps)
""",
    ],
    "ch03-split-packed": [
        """
def split_packed(x, heads):
    return tuple(
        part.unflatten(2, (heads, -1)).transpose(1, 2) for part in x.chunk(3, dim=2)
    )
""",
        """
def split_packed(x, heads):
    k = x.shape[2] // (3 * heads)
    heads_of_all = x.split(k, dim=2)
    parts = [heads_of_all[p * heads : (p + 1) * heads] for p in range(3)]
    return [torch.stack(part, dim=1) for part in parts]
""",
    ],
    "ch03-merge-folded": [
        """
def merge_folded(y, heads):
    return torch.cat([y[j::heads] for j in range(heads)], dim=2)
""",
        """
def merge_folded(y, heads):
    first = y.transpose(0, 1).contiguous()
    return first.view(y.shape[1], -1, heads * y.shape[2]).transpose(0, 1)
""",
        """
def merge_folded(y, heads):
    chosen = torch.eye(heads, dtype=y.dtype)
    apart = y.unflatten(0, (-1, heads))
    return torch.einsum("nhtk,hj->ntjk", apart, chosen).flatten(-2)
""",
    ],
    "ch03-count-parameters": [
        """
def count_parameters(d_model, heads, key_value_heads, bias):
    narrow = key_value_heads * d_model // heads
    count = 2 * d_model * d_model + 2 * d_model * narrow
    if bias:
        count += 2 * (d_model + narrow)
    return count
""",
        """
def count_parameters(d_model, heads, key_value_heads, bias):
    k = d_model // heads
    count = 0
    for width in (heads * k, key_value_heads * k, key_value_heads * k, d_model):
        layer = torch.nn.Linear(d_model, width, bias, device="meta")
        count += sum(parameter.numel() for parameter in layer.parameters())
    return count
""",
    ],
    "ch03-mixes-tokens": [
        """
def mixes_tokens(split):
    x = torch.randn(3, 5, 12)
    for n in range(3):
        for i in range(5):
            other = x.clone()
            other[n, i] = torch.randn(12)
            moved = (split(other, 4) != split(x, 4)).any(dim=3)  # (b, h, t)
            moved[n, :, i] = False
            if moved.any():
                return True
    return False
""",
        """
def mixes_tokens(split):
    b, t, heads, k = 4, 3, 3, 5
    x = torch.arange(b * t * heads * k).view(b, t, heads * k)
    rows = split(x, heads)
    for n in range(b):
        for i in range(t):
            if not set(rows[n, :, i].flatten().tolist()) <= set(x[n, i].tolist()):
                return True
    return False
""",
    ],
    "ch04-left-padding": [
        """
def left_padding_mask(lengths, size):
    place = torch.arange(size, 0, -1, device=lengths.device)
    return place <= lengths.view(-1, 1, 1, 1)
""",
        """
def left_padding_mask(lengths, size):
    mask = torch.zeros(len(lengths), 1, 1, size, dtype=torch.bool)
    for n, length in enumerate(lengths.tolist()):
        mask[n, 0, 0, size - length :] = True
    return mask
""",
    ],
    "ch04-prefix": [
        """
def prefix_mask(prefix, size):
    mask = torch.ones(len(prefix), 1, size, size, dtype=torch.bool).tril()
    for n, length in enumerate(prefix.tolist()):
        mask[n, :, :, :length] = True
    return mask
""",
        """
def prefix_mask(prefix, size):
    j = torch.arange(size, device=prefix.device)
    start = prefix[:, None, None]
    block = (j[:, None] < start) & (j < start)
    return (block | (j <= j[:, None])).unsqueeze(1)
""",
    ],
    "ch04-window": [
        """
def window_mask(queries, keys, width):
    square = torch.ones(1, 1, keys, keys, dtype=torch.bool)
    return square.tril().triu(1 - width)[:, :, -queries:]
""",
        """
def window_mask(queries, keys, width):
    mask = torch.zeros(queries, keys, dtype=torch.bool)
    for row in range(queries):
        own = keys - queries + row
        for key in range(keys):
            mask[row, key] = 0 <= own - key < width
    return mask.view(1, 1, queries, keys)
""",
    ],
    "ch04-masked-mean": [
        """
def masked_mean(x, mask):
    means = []
    for one, real in zip(x, mask.flatten(1)):
        rows = one[real]
        means.append(rows.mean(dim=0) if len(rows) else one[:0].sum(dim=0))
    return torch.stack(means)
""",
        """
def masked_mean(x, mask):
    real = mask.squeeze(2).squeeze(1)
    weights = real.to(x.dtype) / real.sum(dim=1, keepdim=True).clamp(min=1)
    x = torch.where(real[..., None], x, 0)
    return torch.einsum("bt,btd->bd", weights, x)
""",
    ],
    "ch04-repair-weights": [
        """
def masked_weights(energies, mask):
    weights = energies.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(0)
""",
        """
def masked_weights(energies, mask):
    lowest = torch.finfo(energies.dtype).min
    weights = torch.where(mask, energies, lowest).softmax(dim=-1)
    return torch.where(mask, weights, 0)
""",
    ],
    "ch04-repair-decoder": [
        """
def decoder_mask(tokens, pad, training):
    place = torch.arange(tokens.shape[1], device=tokens.device)
    return tokens.ne(pad)[:, None, None] & (place <= place[:, None])
""",
        """
def decoder_mask(tokens, pad, training):
    t = tokens.shape[1]
    real = tokens.ne(pad).view(-1, 1, 1, t)
    return real.repeat(1, 1, t, 1).tril()
""",
    ],
    "ch04-repair-loss": [
        """
def masked_loss(logits, targets, pad):
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad, reduction="sum"
    )
    return total / max(1, int((targets != pad).sum()))
""",
        """
def masked_loss(logits, targets, pad):
    real = targets != pad
    if not real.any():
        return 0 * logits.sum()
    picked = logits.log_softmax(dim=-1).gather(-1, targets[..., None])[real]
    return -picked.mean()
""",
    ],
    "ch05-table": [
        """
def halves_table(length, d_model, start=0, base=10000.0):
    import math
    i = torch.arange(d_model // 2, dtype=torch.float64)
    turns = torch.exp(-2 * i / d_model * math.log(base))
    positions = start + torch.arange(length, dtype=torch.float64)
    angles = torch.einsum("t,i->ti", positions, turns)
    table = torch.empty(length, d_model)
    table[:, : d_model // 2] = angles.sin()
    table[:, d_model // 2 :] = angles.cos()
    return table
""",
        """
def halves_table(length, d_model, start=0, base=10000.0):
    import numpy as np
    angles = np.arange(start, start + length)[:, None] / np.power(
        base, np.arange(0, d_model, 2) / d_model
    )
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return torch.from_numpy(table.astype(np.float32))
""",
    ],
    "ch05-shift-matrix": [
        """
def shift_matrix(steps, d_model):
    blocks = []
    for i in range(0, d_model, 2):
        a = torch.tensor(float(steps) / 10000 ** (i / d_model))
        blocks.append(torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]))
    return torch.block_diag(*blocks)
""",
        """
def shift_matrix(steps, d_model):
    speed = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        speed[i, i + 1] = 10000 ** (-i / d_model)
        speed[i + 1, i] = -speed[i, i + 1]
    return torch.linalg.matrix_exp(steps * speed).float()
""",
        """
def shift_matrix(steps, d_model):
    pairs = torch.eye(d_model, dtype=torch.float64).view(d_model, -1, 2)
    turned = torch.view_as_complex(pairs) * torch.exp(
        -1j * steps * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    )
    return torch.view_as_real(turned).reshape(d_model, d_model).T.float()
""",
    ],
    "ch05-learned": [
        """
def add_learned(x, table, start=0):
    if start not in range(len(table)):
        raise ValueError(f"start {start} and {x.shape}: max_len is {len(table)}")
    positions = torch.arange(start, start + x.size(1))
    if positions[-1] >= len(table):
        raise ValueError(f"no position {positions[-1]} below max_len={len(table)}")
    return x + torch.nn.functional.embedding(positions, table).type_as(x)
""",
        """
def add_learned(x, table, start=0):
    class TooFar(ValueError):
        pass

    rows = [table[i] for i in range(max(start, 0), min(start + x.shape[1], len(table)))]
    if len(rows) < x.shape[1]:
        raise TooFar(f"{start}, {x.shape[1]} vectors, {len(table)} positions")
    return (x + torch.stack(rows).expand_as(x)).to(x.dtype)
""",
    ],
    "ch05-relative": [
        """
def depends_on_distance(score, width):
    for _ in range(100):
        q, k = torch.randn(2, width, dtype=torch.float64)
        p, r = torch.randint(0, 101, (2,))
        c = torch.randint(-min(p, r), 101 - max(p, r), ())
        if abs(score(q, k, p, r) - score(q, k, p + c, r + c)) > 1e-6:
            return False
    return True
""",
        """
def depends_on_distance(score, width):
    for _ in range(40):
        q, k = 3 * torch.randn(width), 2 * torch.randn(width)
        distance = int(torch.randint(-60, 61, ()))
        low = range(max(0, -distance), min(100, 100 - distance), 7)
        found = [float(score(q, k, r + distance, r)) for r in low]
        if max(found) - min(found) > 2e-3:
            return False
    return True
""",
    ],
    "ch06-residual": [
        """
def residual(x, sublayer, weight, bias, norm):
    class Norm:
        def __call__(self, y):
            y = y - y.sum(dim=-1)[..., None] / y.size(-1)
            length = (y * y).sum(dim=-1) / y.size(-1) + 0.00001
            return torch.einsum("btd,bt,d->btd", y, length**-0.5, weight) + bias

    read = Norm()(x) if norm == "pre" else x
    stream = sublayer(read) + x
    return stream if norm == "pre" else Norm()(stream)
""",
        """
def residual(x, sublayer, weight, bias, norm):
    def ln(y):
        deviation, mean = torch.std_mean(y.double(), -1, correction=0, keepdim=True)
        root = torch.hypot(deviation, torch.tensor(1e-5, dtype=torch.float64).sqrt())
        return ((y - mean) / root * weight + bias).to(y.dtype)

    return {"pre": lambda: x + sublayer(ln(x)), "post": lambda: ln(x + sublayer(x))}[
        norm
    ]()
""",
        """
def residual(x, sublayer, weight, bias, norm):
    d = x.shape[-1:]
    if norm == "post":
        y = torch.add(x, sublayer(x))
        return torch.nn.functional.layer_norm(y, d, weight, bias)
    return x + sublayer(torch.nn.functional.layer_norm(x, d, weight, bias, 1e-5))
""",
    ],
    "ch06-encoder-layer": [
        """
def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):
    def same(y):
        return y

    before = (norm_1, norm_2) if order == "pre" else (same, same)
    after = (norm_1, norm_2) if order == "post" else (same, same)
    sublayers = lambda y: attend(y, y, mask), feed_forward
    for first, sublayer, last in zip(before, sublayers, after):
        x = last(sublayer(first(x)) + x)
    return x
""",
        """
def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):
    post = order == "post"
    read = x.clone() if post else norm_1(x)
    middle = x.clone()
    middle += attend(read, read, mask)
    middle = norm_1(middle) if post else middle
    found = feed_forward(middle if post else norm_2(middle))
    return norm_2(middle + found) if post else middle + found
""",
    ],
    "ch06-decoder-layer": [
        """
def decoder_layer(x, memory, parts, mask, memory_mask):
    sublayers = [
        lambda y: parts["attention"](y, y, mask),
        lambda y: parts["cross_attention"](y, memory, memory_mask),
        parts["feed_forward"],
    ]
    for n, sublayer in enumerate(sublayers, 1):
        x = parts[f"norm_{n}"](x + sublayer(x))
    return x
""",
        """
def decoder_layer(x, memory, parts, mask, memory_mask):
    p = dict(parts)
    one = p.pop("norm_1")(p["attention"](x, x, mask) + x)
    two = p.pop("norm_2")(one.add(p["cross_attention"](one, memory, memory_mask)))
    return p.pop("norm_3")(torch.stack([two, p["feed_forward"](two)]).sum(dim=0))
""",
    ],
    "ch06-tie": [
        """
def tie(source, target, output):
    sizes = [
        (source.num_embeddings, target.num_embeddings, "symbols of the target"),
        (source.embedding_dim, target.embedding_dim, "width of the target"),
        (source.num_embeddings, output.out_features, "symbols of the output"),
        (source.embedding_dim, output.in_features, "width of the output"),
    ]
    for wanted, found, what in sizes:
        if wanted != found:
            raise ValueError(f"{what}: {found}, the source has {wanted}")
    setattr(target, "weight", source.weight)
    setattr(output, "weight", source.weight)
    return output
""",
        """
def tie(source, target, output):
    class Misfit(ValueError):
        pass

    rows = {len(module.weight) for module in (source, target, output)}
    widths = {module.weight.size(1) for module in (source, target, output)}
    if len(rows) > 1 or len(widths) > 1:
        raise Misfit(f"rows {sorted(rows)}, widths {sorted(widths)}")
    for module in (target, output):
        del module.weight
        module.register_parameter("weight", source.weight)
""",
    ],
    "ch06-find-leak": [
        """
def leaks(model, length, vocab):
    found = False
    for _ in range(15):
        ids = torch.randint(0, vocab, (2, length))
        for place in reversed(range(length)):
            for symbol in range(vocab):
                row = torch.arange(length) == place
                changed = torch.where(row, symbol, ids)
                one, other = model(ids)[:, :place], model(changed)[:, :place]
                found |= not torch.allclose(one, other, rtol=0, atol=5e-4)
    return found
""",
        """
def leaks(model, length, vocab):
    for _ in range(100):
        start = torch.randint(vocab, (1, length))
        rows = torch.randint(vocab, (20, length))
        for place in range(1, length):
            rows[:, :place] = start[:, :place]
            seen = model(rows)[:, :place].double()
            if (seen.amax(dim=0) - seen.amin(dim=0)).gt(0.004).any():
                return True
    return False
""",
        """
def leaks(model, length, vocab):
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        before = model(ids)
        for place in range(1, length):
            old = ids[0, place].item()
            for symbol in range(vocab):  # in place, and put back
                ids[0, place] = symbol
                moved = model(ids)[0, :place] - before[0, :place]
                if any(abs(m) > 2e-3 for m in moved.flatten().tolist()):
                    return True
            ids[0, place] = old
    return False
""",
    ],
    "ch08-greedy": [
        """
def greedy(next_logits, b, start, end, pad, most):
    rows = [[] for _ in range(b)]
    while len(rows[0]) < most and not all(end in row for row in rows):
        logits = next_logits(torch.tensor([[start] + row for row in rows]))
        for row, scores in zip(rows, logits.tolist()):
            best = max(range(len(scores)), key=scores.__getitem__)
            row.append(pad if end in row else best)
    return torch.tensor(rows)
""",
        """
def greedy(next_logits, b, start, end, pad, most):
    tokens = torch.full((b, most + 1), start)
    for i in range(1, most + 1):
        over = tokens[:, 1:i].eq(end).any(dim=1)
        symbol = next_logits(tokens[:, :i]).sort(dim=-1).indices[:, -1]
        tokens[:, i] = torch.where(over, pad, symbol)
        if tokens[:, 1 : i + 1].eq(end).any(dim=1).all():
            return tokens[:, 1 : i + 1]
    return tokens[:, 1:]
""",
    ],
    "ch08-exact": [
        """
def exact_match(written, target, pad, end):
    t = max(written.shape[1], target.shape[1])
    clean = []
    for x in (written, target):
        x = torch.nn.functional.pad(x, (0, t - x.shape[1]), value=pad)
        ends = x.eq(end).int()
        clean.append(x.masked_fill(ends.cumsum(dim=1) > ends, pad))
    return clean[0].eq(clean[1]).all(dim=1).double().mean().item()
""",
        """
def exact_match(written, target, pad, end):
    def text(row):
        kept = []
        for symbol in row:
            kept.append(int(symbol))
            if symbol == end:
                return kept
        while kept and kept[-1] == pad:
            kept.pop()
        return kept

    hits = [text(written[n]) == text(target[n]) for n in range(len(target))]
    return hits.count(True) / len(hits)
""",
    ],
    "ch08-reverse": [
        """
def reversed_targets(source, pad):
    rows = []
    for row in source.tolist():
        real = [symbol for symbol in row if symbol != pad]
        rows.append(real[:1] + real[1:][::-1] + [pad] * (len(row) - len(real)))
    return torch.tensor(rows, dtype=source.dtype)
""",
        """
def reversed_targets(source, pad):
    behind = source[:, 1:].flip(1)  # padding first
    order = behind.eq(pad).int().argsort(dim=1, stable=True)
    return torch.cat([source[:, :1], behind.gather(1, order)], dim=1)
""",
        """
def reversed_targets(source, pad):
    result = source.clone()
    for row, size in zip(result, source.ne(pad).sum(dim=1)):
        row[1:size] = row[1:size].flip(0)
    return result
""",
    ],
    "ch08-first-error": [
        """
def first_error(written, target, pad):
    places = []
    for one, two in zip(written.tolist(), target.tolist()):
        found = [i for i, b in enumerate(two) if b != pad and one[i] != b]
        places.append(min(found, default=-1))
    return torch.tensor(places)
""",
        """
def first_error(written, target, pad):
    right = written.eq(target) | target.eq(pad)
    ahead = right.long().cumprod(dim=1).sum(dim=1)  # right ones up to there
    return ahead.masked_fill(ahead == target.shape[1], -1)
""",
    ],
    "ch07-schedule": [
        """
def warm_cosine(step, warmup, total, peak, floor=0.0):
    import math

    if step <= 0:
        raise ValueError("steps begin with 1")
    if warmup and step <= warmup:
        return peak * (step / warmup)
    x = min(1.0, (step - warmup) / max(total - warmup, 1))
    return floor + (peak - floor) * math.cos(math.pi / 2 * x) ** 2
""",
        """
def warm_cosine(step, warmup, total, peak, floor=0.0):
    class NoStep(ValueError):
        pass

    if not step >= 1:
        raise NoStep(step)
    line = lambda: torch.tensor(step / warmup).double().mul(peak).item()
    if warmup > 0 and step <= warmup:
        return step * peak / warmup
    if total <= step:
        return float(floor)
    angle = torch.tensor(torch.pi, dtype=torch.float64)
    angle = angle * (step - warmup) / (total - warmup)
    middle, half = (peak + floor) / 2, (peak - floor) / 2
    return middle + half * angle.cos().item()
""",
    ],
    "ch07-peak": [
        """
def peak(d_model, warmup, a, factor=1.0):
    def rate(n):
        return factor / d_model**0.5 * min(1 / n**a, n / warmup ** (1 + a))

    step = max(range(1, warmup + 2), key=rate)
    return [step, rate(step)]
""",
        """
def peak(d_model, warmup, a, factor=1.0):
    import math

    log = math.log(factor) - math.log(d_model) / 2 - a * math.log(warmup)
    return (warmup, math.exp(log))
""",
    ],
    "ch07-smoothing": [
        """
def smoothed(target, size, smoothing, forbidden):
    symbols = torch.arange(size, device=target.device)
    right = symbols == target[..., None]
    banned = torch.zeros_like(right)
    for symbol in forbidden:
        banned |= symbols == symbol
    free = ~(right | banned)
    count = free.sum(dim=-1, keepdim=True)
    rows = free * smoothing / count.clamp(min=1) + right * 1.0
    rows = rows - right * smoothing * (count > 0)
    return rows * ~(right & banned).any(dim=-1, keepdim=True)
""",
        """
def smoothed(target, size, smoothing, forbidden):
    b, t = target.shape
    rows = torch.zeros(b, t, size)
    for i in range(b):
        for j in range(t):
            right = target[i, j].item()
            if right in forbidden:
                continue
            others = set(range(size)) - {right} - set(forbidden)
            for symbol in others:
                rows[i, j, symbol] = smoothing / len(others)
            rows[i, j, right] = 1 - smoothing if others else 1
    return rows
""",
        """
def smoothed(target, size, smoothing, forbidden):
    table = torch.full((size, size), 1.0)  # one row for each right symbol
    table.fill_diagonal_(0)
    table[:, forbidden] = 0
    table = table * smoothing / table.sum(dim=1, keepdim=True).clamp(min=1)
    table += torch.diag(1 - table.sum(dim=1))
    table[forbidden] = 0
    return torch.nn.functional.embedding(target, table)
""",
    ],
    "ch07-token-batches": [
        """
def group_by_tokens(lengths, tokens):
    if lengths and max(lengths) > tokens:
        raise ValueError(f"{max(lengths)} does not fit into {tokens}")
    groups, group = [], []
    for length, i in sorted(zip(lengths, range(len(lengths)))):
        if (len(group) + 1) * length > tokens:
            groups.append(group)
            group = []
        group = [*group, i]
    return groups + [group] if group else groups
""",
        """
def group_by_tokens(lengths, tokens):
    order = torch.tensor(lengths, dtype=torch.long).argsort(stable=True).tolist()
    groups, start = [], 0
    while start < len(order):
        stop = start
        while stop < len(order):
            if (stop - start + 1) * lengths[order[stop]] > tokens:
                break
            stop += 1
        if stop == start:
            raise ValueError(f"length {lengths[order[start]]}, tokens {tokens}")
        groups.append(tuple(order[start:stop]))
        start = stop
    return tuple(groups)
""",
    ],
    "ch07-accumulate": [
        """
def accumulated_gradient(model_loss, parameter, batches, counts):
    parameter.grad = None
    for batch, count in zip(batches, counts):
        if count == 0:
            continue
        loss = model_loss(parameter, batch)
        (loss * count / sum(counts)).backward()
    return parameter.grad
""",
        """
def accumulated_gradient(model_loss, parameter, batches, counts):
    leaf = parameter.detach().clone().requires_grad_()
    sums = torch.zeros_like(leaf).detach()
    for i in reversed(range(len(batches))):
        loss = model_loss(leaf, batches[i])
        [gradient] = torch.autograd.grad(loss, [leaf])
        sums += gradient.nan_to_num() * counts[i]
    return sums / sum(counts)
""",
        """
def accumulated_gradient(model_loss, parameter, batches, counts):
    jacobian, p = torch.autograd.functional.jacobian, parameter.detach()
    pairs = [(b, c) for b, c in zip(batches, counts) if c]
    parts = [jacobian(lambda p, b=b: model_loss(p, b), p) * c for b, c in pairs]
    return sum(parts) / sum(counts)
""",
    ],
}
