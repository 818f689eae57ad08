"""Answers to the exercises of chapter 06."""

import torch
from torch import nn

from tests.exercises.answers import right, wrong

# ---- a residual block --------------------------------------------------------


@right("ch06-residual")
def residual(x, sublayer, weight, bias, norm):
    class Norm:
        def __call__(self, y):
            y = y - y.sum(dim=-1)[..., None] / y.size(-1)
            length = (y * y).sum(dim=-1) / y.size(-1) + 0.00001
            return torch.einsum("btd,bt,d->btd", y, length**-0.5, weight) + bias

    read = Norm()(x) if norm == "pre" else x
    stream = sublayer(read) + x
    return stream if norm == "pre" else Norm()(stream)


@right("ch06-residual")
def residual(x, sublayer, weight, bias, norm):
    read = torch.nn.functional.layer_norm
    if norm == "post":
        return read(x + sublayer(x), x.shape[-1:], weight, bias)
    return x + sublayer(read(x, x.shape[-1:], weight, bias))


@wrong("ch06-residual", "a gradient holds NaN")
def residual(x, sublayer, weight, bias, norm):
    def layer_norm(y):
        centred = y - y.mean(dim=-1, keepdim=True)
        deviation = centred.square().mean(dim=-1, keepdim=True).sqrt()
        return centred / (deviation**2 + 1e-5).sqrt() * weight + bias

    if norm == "pre":
        return x + sublayer(layer_norm(x))
    return layer_norm(x + sublayer(x))


@wrong("ch06-residual", "the gradient of x is another one")
def residual(x, sublayer, weight, bias, norm):
    def layer_norm(y):
        mean, std = y.mean(-1, keepdim=True), y.var(-1, correction=0, keepdim=True)
        std = (std + 1e-5).sqrt().detach()
        return (y - mean.detach()) / std * weight + bias

    if norm == "pre":
        return x + sublayer(layer_norm(x))
    return layer_norm(x + sublayer(x))


@wrong("ch06-residual", "the weight is not used")
def residual(x, sublayer, weight, bias, norm):
    layer_norm = nn.LayerNorm(x.shape[-1]).to(x)
    layer_norm.bias = nn.Parameter(bias)
    y = x if norm == "pre" else x + sublayer(x)
    return x + sublayer(layer_norm(x)) if norm == "pre" else layer_norm(y)


# ---- an encoder layer, from its matrices ----------------------------------------


@right("ch06-whole-layer")
def encoder_layer(x, weights, heads, mask):
    w, F = weights, torch.nn.functional

    def ln(y, n):
        return F.layer_norm(y, y.shape[-1:], w[f"gain_{n}"], w[f"bias_{n}"])

    read = ln(x, 1)
    outputs = []
    for maps in zip(
        *(w[n].chunk(heads, 1) for n in ("query", "key", "value")), strict=True
    ):
        q, k, v = (read @ matrix for matrix in maps)
        bias = 0 if mask is None else torch.where(mask[:, 0], 0.0, -torch.inf)
        outputs.append(((q @ k.mT) * k.shape[-1] ** -0.5 + bias).softmax(2) @ v)
    x = torch.cat(outputs, dim=2) @ w["output"] + x
    inner = torch.clamp(ln(x, 2) @ w["inner"] + w["inner_bias"], min=0)
    return torch.addmm(w["outer_bias"], inner.flatten(0, 1), w["outer"]).view_as(x) + x


@wrong("ch06-whole-layer", "how wide is one head?")
def encoder_layer(x, weights, heads, mask):
    w, (b, s, d) = weights, x.shape
    ln = torch.nn.functional.layer_norm
    read = ln(x, (d,), w["gain_1"], w["bias_1"])
    q, k, v = (
        (read @ w[n]).view(b, s, heads, -1).transpose(1, 2)
        for n in ("query", "key", "value")
    )
    scores = q @ k.mT / d**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, d)
    x = x + mixed @ w["output"]
    read = ln(x, (d,), w["gain_2"], w["bias_2"])
    return (
        x + (read @ w["inner"] + w["inner_bias"]).relu() @ w["outer"] + w["outer_bias"]
    )


@wrong("ch06-whole-layer", "when the heads are joined")
def encoder_layer(x, weights, heads, mask):
    w, (b, s, d) = weights, x.shape
    ln = torch.nn.functional.layer_norm
    read = ln(x, (d,), w["gain_1"], w["bias_1"])
    q, k, v = (
        (read @ w[n]).view(b, s, heads, -1).transpose(1, 2)
        for n in ("query", "key", "value")
    )
    scores = q @ k.mT / (d / heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    x = x + (scores.softmax(-1) @ v).reshape(b, s, d) @ w["output"]
    read = ln(x, (d,), w["gain_2"], w["bias_2"])
    inner = (read @ w["inner"] + w["inner_bias"]).relu()
    return x + inner @ w["outer"] + w["outer_bias"]


@wrong("ch06-whole-layer", "this is post-norm")
def encoder_layer(x, weights, heads, mask):
    w, (b, s, d) = weights, x.shape
    ln = torch.nn.functional.layer_norm
    q, k, v = (
        (x @ w[n]).view(b, s, heads, -1).transpose(1, 2)
        for n in ("query", "key", "value")
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    x = x + mixed.transpose(1, 2).reshape(b, s, d) @ w["output"]
    x = ln(x, (d,), w["gain_1"], w["bias_1"])
    inner = (x @ w["inner"] + w["inner_bias"]).relu()
    x = x + inner @ w["outer"] + w["outer_bias"]
    return ln(x, (d,), w["gain_2"], w["bias_2"])


def written_out(x, weights, heads, hide, finish):
    """An encoder layer as students write it, with their way to use the mask."""
    w, (b, s, d) = weights, x.shape
    ln = torch.nn.functional.layer_norm
    read = ln(x, (d,), w["gain_1"], w["bias_1"])
    q, k, v = (
        (read @ w[n]).view(b, s, heads, -1).transpose(1, 2)
        for n in ("query", "key", "value")
    )
    shares = finish(hide(q @ k.mT / (d // heads) ** 0.5).softmax(-1))
    x = x + (shares @ v).transpose(1, 2).reshape(b, s, d) @ w["output"]
    read = ln(x, (d,), w["gain_2"], w["bias_2"])
    inner = (read @ w["inner"] + w["inner_bias"]).relu()
    return x + inner @ w["outer"] + w["outer_bias"]


def unchanged(tensor):
    return tensor


@wrong("ch06-whole-layer", "the mask is the wrong way round")
def encoder_layer(x, weights, heads, mask):
    def hide(scores):
        return scores if mask is None else scores.masked_fill(mask, -torch.inf)

    return written_out(x, weights, heads, hide, unchanged)


@wrong("ch06-whole-layer", "do the weights that are left sum to 1?")
def encoder_layer(x, weights, heads, mask):
    def finish(shares):
        return shares if mask is None else shares.masked_fill(~mask, 0.0)

    return written_out(x, weights, heads, unchanged, finish)


@wrong("ch06-whole-layer", "the mask is added as 0 and 1")
def encoder_layer(x, weights, heads, mask):
    def hide(scores):
        return scores if mask is None else scores + mask.to(scores.dtype)

    return written_out(x, weights, heads, hide, unchanged)


@wrong("ch06-whole-layer", "ε stands outside the root")
def encoder_layer(x, weights, heads, mask):
    def ln(y, n):
        centred = y - y.mean(-1, keepdim=True)
        deviation = y.std(-1, correction=0, keepdim=True)
        return (
            centred / (deviation + 1e-5) * weights[f"gain_{n}"] + weights[f"bias_{n}"]
        )

    q, k, v = (
        (ln(x, 1) @ weights[n]).unflatten(-1, (heads, -1)).transpose(1, 2)
        for n in ("query", "key", "value")
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    x = x + mixed.transpose(1, 2).flatten(2) @ weights["output"]
    inner = (ln(x, 2) @ weights["inner"] + weights["inner_bias"]).relu()
    return x + inner @ weights["outer"] + weights["outer_bias"]


# ---- a decoder layer ---------------------------------------------------------


@right("ch06-decoder-layer")
def decoder_layer(x, memory, parts, mask, memory_mask):
    p = dict(parts)
    one = p.pop("norm_1")(p["attention"](x, x, mask) + x)
    two = p.pop("norm_2")(one.add(p["cross_attention"](one, memory, memory_mask)))
    return p.pop("norm_3")(torch.stack([two, p["feed_forward"](two)]).sum(dim=0))


@wrong("ch06-decoder-layer", "changes its argument `parts` in place")
def decoder_layer(x, memory, parts, mask, memory_mask):
    x = parts.pop("norm_1")(x + parts["attention"](x, x, mask))
    x = parts.pop("norm_2")(x + parts["cross_attention"](x, memory, memory_mask))
    return parts.pop("norm_3")(x + parts["feed_forward"](x))


@wrong("ch06-decoder-layer", "no gradient reaches memory")
def decoder_layer(x, memory, parts, mask, memory_mask):
    with torch.no_grad():
        memory = memory.clone()
    x = parts["norm_1"](x + parts["attention"](x, x, mask))
    x = parts["norm_2"](x + parts["cross_attention"](x, memory, memory_mask))
    return parts["norm_3"](x + parts["feed_forward"](x))


@wrong("ch06-decoder-layer", "feed-forward network comes before the cross-attention")
def decoder_layer(x, memory, parts, mask, memory_mask):
    x = parts["norm_1"](x + parts["attention"](x, x, mask))
    x = parts["norm_3"](x + parts["feed_forward"](x))
    return parts["norm_2"](x + parts["cross_attention"](x, memory, memory_mask))


@wrong("ch06-decoder-layer", "cross-attention asks with x as it came")
def decoder_layer(x, memory, parts, mask, memory_mask):
    y = parts["norm_1"](x + parts["attention"](x, x, mask))
    y = parts["norm_2"](y + parts["cross_attention"](x, memory, memory_mask))
    return parts["norm_3"](y + parts["feed_forward"](y))


# ---- find the fault --------------------------------------------------------------


@right("ch06-repair-decoder")
def decoder_layer(x, memory, parts, memory_mask):
    places = torch.arange(x.shape[1])
    past = (places[:, None] >= places).view(1, 1, len(places), len(places))
    x = x + parts["attention"](parts["norm_1"](x), parts["norm_1"](x), past)
    x = parts["cross_attention"](parts["norm_2"](x), memory, memory_mask) + x
    return parts["feed_forward"](parts["norm_3"](x)) + x


@wrong("ch06-repair-decoder", "does the first one move?")
def decoder_layer(x, memory, parts, memory_mask):
    t = x.shape[1]
    mask = torch.ones(t, t, dtype=torch.bool).tril()[None, None]
    read = parts["norm_1"](x)
    x = x + parts["attention"](read, read, mask)
    read = parts["norm_2"](x)
    x = x + parts["cross_attention"](read, memory, memory_mask)
    x = x - x.mean(dim=1, keepdim=True)
    return x + parts["feed_forward"](parts["norm_3"](x))


@wrong("ch06-repair-decoder", "change the padding of the source")
def decoder_layer(x, memory, parts, memory_mask):
    t = x.shape[1]
    mask = torch.ones(t, t, dtype=torch.bool).triu(1).logical_not()[None, None]
    read = parts["norm_1"](x)
    x = x + parts["attention"](read, read, mask)
    x = x + parts["cross_attention"](parts["norm_2"](x), memory, None)
    return x + parts["feed_forward"](parts["norm_3"](x))


@wrong("ch06-repair-decoder", "without its faults, else unchanged")
def decoder_layer(x, memory, parts, memory_mask):
    t = x.shape[1]
    mask = torch.ones(t, t, dtype=torch.bool).tril(-1)[None, None]
    mask[..., 0, 0] = True  # a row needs something to look at
    read = parts["norm_1"](x)
    x = x + parts["attention"](read, read, mask)
    read = parts["norm_2"](x)
    x = x + parts["cross_attention"](read, memory, memory_mask)
    return x + parts["feed_forward"](parts["norm_3"](x))


# ---- tie the weights ---------------------------------------------------------


@right("ch06-tie")
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


@wrong("ch06-tie", "the numbers are equal, but copied")
def tie(source, target, output):
    shapes = {tuple(m.weight.shape) for m in (source, target, output)}
    if len(shapes) > 1:
        raise ValueError(f"expected one shape, got {shapes}")
    target.load_state_dict(source.state_dict())
    output.load_state_dict(source.state_dict())


@wrong("ch06-tie", "the numbers lie in one place")
def tie(source, target, output):
    for module in (target, output):
        if module.weight.shape != source.weight.shape:
            raise ValueError(f"{module.weight.shape} is not {source.weight.shape}")
    target.weight.data = output.weight.data = source.weight.data


@wrong("ch06-tie", "the sizes do not fit")
def tie(source, target, output):
    for module in (target, output):
        if module.weight.numel() != source.weight.numel():
            raise ValueError(f"{module.weight.shape} is not {source.weight.shape}")
    target.weight = output.weight = source.weight


# ---- find the leak of the future ---------------------------------------------


@right("ch06-find-leak")
def leaks(model, length, vocab):
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        before = model(ids)
        for place in range(1, length):
            old = ids[0, place].item()
            for symbol in range(vocab):  # in place, and put back
                ids[0, place] = symbol
                moved = model(ids)[0, :place] - before[0, :place]
                if moved.abs().gt(2e-3).any():
                    return True
            ids[0, place] = old
    return False


@wrong("ch06-find-leak", "do ids that are changed in place stay changed")
def leaks(model, length, vocab):
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        before = model(ids)
        for place in range(1, length):
            for symbol in range(vocab):
                ids[:, place] = symbol
                if (model(ids) - before)[:, :place].abs().max() > 1e-3:
                    return True
    return False


@wrong("ch06-find-leak", "it does, by one symbol at one position")
def leaks(model, length, vocab):
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                one, other = model(changed)[:, :place], model(ids)[:, :place]
                if (one.argmax(-1) != other.argmax(-1)).any():
                    return True
    return False


@wrong("ch06-find-leak", "a plain True or False")
def leaks(model, length, vocab):
    leak = torch.tensor(False)
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.repeat(vocab, 1)
            changed[:, place] = torch.arange(vocab)
            moved = model(changed)[:, :place] - model(ids)[:, :place]
            leak = leak | (moved.abs() > 1e-3).any()
    return leak


@wrong("ch06-find-leak", "by 0.02")
def leaks(model, length, vocab):
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.repeat(vocab, 1)
            changed[:, place] = torch.arange(vocab)
            moved = model(changed)[:, :place] - model(ids)[:, :place]
            if moved.abs().max() > 0.1:
                return True
    return False


@wrong("ch06-find-leak", "over a distance")
def leaks(model, length, vocab):
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.repeat(vocab, 1)
            changed[:, place] = torch.arange(vocab)
            moved = (model(changed) - model(ids))[:, place - 1]
            if moved.abs().max() > 1e-3:
                return True
    return False
