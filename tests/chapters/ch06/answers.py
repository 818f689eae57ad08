"""Answers to the exercises of chapter 06."""

import torch

from tests.exercises.answers import RIGHT, right


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


@right("ch06-whole-layer")
def encoder_layer(x, weights, heads, mask):
    w, F = weights, torch.nn.functional

    def ln(y, n):
        return F.layer_norm(y, y.shape[-1:], w[f"gain_{n}"], w[f"bias_{n}"])

    read = ln(x, 1)
    outputs = []
    cut = (w[name].chunk(heads, 1) for name in ("query", "key", "value"))
    for maps in zip(*cut, strict=True):
        q, k, v = (read @ matrix for matrix in maps)
        bias = 0 if mask is None else torch.where(mask[:, 0], 0.0, -torch.inf)
        outputs.append(((q @ k.mT) * k.shape[-1] ** -0.5 + bias).softmax(2) @ v)
    x = torch.cat(outputs, dim=2) @ w["output"] + x
    inner = torch.clamp(ln(x, 2) @ w["inner"] + w["inner_bias"], min=0)
    return torch.addmm(w["outer_bias"], inner.flatten(0, 1), w["outer"]).view_as(x) + x


@right("ch06-decoder-layer")
def decoder_layer(x, memory, parts, mask, memory_mask):
    p = dict(parts)
    one = p.pop("norm_1")(p["attention"](x, x, mask) + x)
    two = p.pop("norm_2")(one.add(p["cross_attention"](one, memory, memory_mask)))
    return p.pop("norm_3")(torch.stack([two, p["feed_forward"](two)]).sum(dim=0))


RIGHT["ch06-decoder-layer"] = "(y, y, mask) -> (query=y, key=y, mask=mask)  # names"


@right("ch06-repair-decoder")
def decoder_layer(x, memory, parts, memory_mask):
    places = torch.arange(x.shape[1])
    past = (places[:, None] >= places).view(1, 1, len(places), len(places))
    x = x + parts["attention"](parts["norm_1"](x), parts["norm_1"](x), past)
    x = parts["cross_attention"](parts["norm_2"](x), memory, memory_mask) + x
    return parts["feed_forward"](parts["norm_3"](x)) + x


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


RIGHT["ch06-find-leak"] = "return True -> return moved.abs().max() > 1e-3  # a tensor"


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
