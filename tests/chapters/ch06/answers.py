"""Answers to the exercises of chapter 06."""

import torch

from tests.exercises.answers import RIGHT, WRONG, right

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


WRONG["ch06-residual"] = """
(variance -> (variance.sqrt() ** 2  # a gradient holds NaN
y - y.mean(dim=-1, keepdim=True)
    y - y.mean(dim=-1, keepdim=True).detach()  # the gradient of x is another one
    y  # this is RMSNorm
* weight + bias -> + bias  # the weight is not used
"""

# ---- an encoder layer, from its matrices ----------------------------------------


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


WRONG["ch06-whole-layer"] = r"""
(d // heads) ** 0.5 -> d**0.5  # how wide is one head?
mixed.transpose(1, 2).reshape -> mixed.reshape  # when the heads are joined
F.layer_norm(x, (d,), w["gain_1"], w["bias_1"]) -> x
read = F.layer_norm(x, (d,), w["gain_2"], w["bias_2"]) -> read = x = F.layer_norm(x,
        (d,), w["gain_1"], w["bias_1"])
return x + -> x = x +
w["outer_bias"] -> w["outer_bias"]\n    return F.layer_norm(x, (d,), w["gain_2"],
        w["bias_2"])  # this is post-norm
~mask -> mask  # the mask is the wrong way round
scores.masked_fill(~mask, -torch.inf) -> scores
softmax(dim=-1) -> softmax(dim=-1) * (1 if mask is None else mask)
        # do the weights that are left sum to 1?
scores.masked_fill(~mask, -torch.inf) -> scores + mask  # the mask is added as 0 and 1
w[name] -> w[name].T
w["output"] -> w["output"].T  # a matrix is turned
"""

# ---- a decoder layer ---------------------------------------------------------


@right("ch06-decoder-layer")
def decoder_layer(x, memory, parts, mask, memory_mask):
    p = dict(parts)
    one = p.pop("norm_1")(p["attention"](x, x, mask) + x)
    two = p.pop("norm_2")(one.add(p["cross_attention"](one, memory, memory_mask)))
    return p.pop("norm_3")(torch.stack([two, p["feed_forward"](two)]).sum(dim=0))


RIGHT["ch06-decoder-layer"] = "(x, x, mask) -> (query=x, key=x, mask=mask)  # names"
WRONG["ch06-decoder-layer"] = r"""
parts["norm_3"] -> parts.pop("norm_3")  # changes its argument `parts` in place
(x, memory, memory_mask) -> (x, memory.detach(), memory_mask)
        # no gradient reaches memory
parts["feed_forward"](x) -> last
parts["cross_attention"](x, memory, memory_mask) -> parts["feed_forward"](x)
last -> parts["cross_attention"](x, memory, memory_mask)
norm_2 -> norm_last
norm_3 -> norm_2
norm_last -> norm_3  # feed-forward network comes before the cross-attention
found = parts["attention"] -> start = x\n    found = parts["attention"]
(x, memory, memory_mask) -> (start, memory, memory_mask)
        # cross-attention asks with x as it came
found = parts["attention"] -> start = x\n    found = parts["attention"]
parts["norm_2"](x + found) -> parts["norm_2"](start + found)
        # the residual of the cross-attention adds the x of the beginning
x = parts["norm_1"](x + found) -> x = x + found
(x, x, mask) -> (read, read, mask)
found = parts["attention"] -> read = parts["norm_1"](x)\n    found = parts["attention"]
        # the first block is pre-norm
"""

# ---- find the fault --------------------------------------------------------------


@right("ch06-repair-decoder")
def decoder_layer(x, memory, parts, memory_mask):
    places = torch.arange(x.shape[1])
    past = (places[:, None] >= places).view(1, 1, len(places), len(places))
    x = x + parts["attention"](parts["norm_1"](x), parts["norm_1"](x), past)
    x = parts["cross_attention"](parts["norm_2"](x), memory, memory_mask) + x
    return parts["feed_forward"](parts["norm_3"](x)) + x


WRONG["ch06-repair-decoder"] = r"""
return x -> x = x - x.mean(dim=1, keepdim=True)\n    return x
        # does the first one move?
memory, memory_mask) -> memory, None)  # change the padding of the source
tril() -> tril(-1)\n    mask[0, 0] = True  # without its faults, else unchanged
"""

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


WRONG["ch06-tie"] = """
target.weight = output.weight = table
    [m.load_state_dict(source.state_dict()) for m in (target, output)]
        # the numbers are equal, but copied
    target.weight.data = output.weight.data = table.data  # the numbers lie in one place
module.weight.shape != table.shape -> len(module.weight) != len(table)
        # the sizes do not fit
"""

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


WRONG["ch06-find-leak"] = """
(1, length)) -> (1, length)).repeat(vocab, 1)
ids.repeat(vocab, 1) -> ids  # do ids changed in place stay changed
model(changed)[:, :place] - before[:, :place]
    1.0 * (model(changed).argmax(-1) != before.argmax(-1))[:, :place]
        # it does, by one symbol at one position
    (model(changed) - before)[:, place - 1]  # over a distance
    (model(changed) - before)[:, :place].mean(-1)  # not one, changed in place
    model(changed[:, :place]) - before[:, :place]  # with all `length` positions
return True -> return moved.abs().max() > 1e-3  # a plain True or False
1e-3 -> 0.1  # by 0.02
range(10) -> range(3)  # takes the 10 sequences
"""
