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


# ---- an encoder layer --------------------------------------------------------


@right("ch06-encoder-layer")
def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):
    def same(y):
        return y

    before = (norm_1, norm_2) if order == "pre" else (same, same)
    after = (norm_1, norm_2) if order == "post" else (same, same)
    sublayers = lambda y: attend(y, y, mask), feed_forward
    for first, sublayer, last in zip(before, sublayers, after, strict=True):
        x = last(sublayer(first(x)) + x)
    return x


@wrong("ch06-encoder-layer", "changes its argument `x` in place")
def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):
    if order == "pre":
        read = norm_1(x)
        x += attend(read, read, mask)
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attend(x, x, mask))
    return norm_2(x + feed_forward(x))


@wrong("ch06-encoder-layer", "expected a residual around the attention")
def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):
    if order == "pre":
        read = norm_1(x)
        x = x + attend(read, read, mask)
        return x + feed_forward(norm_2(x))
    x = x + attend(x, x, mask)
    return norm_2(x + feed_forward(x))


@wrong("ch06-encoder-layer", 'in "pre", what is carried on is normalised too')
def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):
    if order == "pre":
        x = norm_1(x)
        x = norm_2(x + attend(x, x, mask))
        return x + feed_forward(x)
    x = norm_1(x + attend(x, x, mask))
    return norm_2(x + feed_forward(x))


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


@wrong("ch06-decoder-layer", "cross-attention asks with x as it came")
def decoder_layer(x, memory, parts, mask, memory_mask):
    y = parts["norm_1"](x + parts["attention"](x, x, mask))
    y = parts["norm_2"](y + parts["cross_attention"](x, memory, memory_mask))
    return parts["norm_3"](y + parts["feed_forward"](y))


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


@wrong("ch06-find-leak", "it does, by one symbol at one place")
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
