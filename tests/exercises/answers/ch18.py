"""Answers to the exercises of chapter 18."""

import torch

from tests.exercises.answers import WRONG, right

# ---- a step in pieces --------------------------------------------------------


@right("ch18-pieces")
def step_in_pieces(model, optimizer, pieces, clip):
    parameters, loss, tokens, whole = list(model.parameters()), 0.0, 0, None
    for x, y in pieces:
        logs = model(x).log_softmax(dim=-1)
        real = y >= 0
        own = -logs.gather(-1, y.clamp(min=0)[..., None])[..., 0][real].sum()
        found = torch.cat([g.flatten() for g in torch.autograd.grad(own, parameters)])
        whole = found if whole is None else whole + found
        loss, tokens = loss + own.detach(), tokens + int(real.sum())
    whole = whole / tokens * min(1.0, clip / float(whole.norm() / tokens))
    rows = whole.split([p.numel() for p in parameters])
    for parameter, row in zip(parameters, rows, strict=True):
        parameter.grad = row.view_as(parameter)
    optimizer.step()
    return loss / tokens


WRONG["ch18-pieces"] = r"""
reduction="sum" -> reduction="mean"
loss = loss / total -> loss = loss / len(pieces)  # a mean of means
(targets != -100).sum() for -> targets.numel() for  # that includes padding
loss.backward() -> optimizer.zero_grad(); loss.backward()  # the last piece alone
losses = [] -> losses, logits = [], [model(x) for x, _ in pieces]
        # when do you go backward
"""

# ---- a step in float16 -------------------------------------------------------


@right("ch18-scaler")
def scaler_step(weights, gradients, scale, good, rate, clip, patience):
    squares, scaled = 0.0, [g.double() for g in gradients]
    for g in scaled:
        squares += ((g / scale) ** 2).sum().item()
    if squares != squares or squares == float("inf"):
        return [w.clone() for w in weights], scale * 0.5, 0
    length = min(1.0, clip / squares**0.5) if squares else 0.0
    moved = []
    for w, g in zip(weights, scaled, strict=True):
        moved.append((w - g * (rate * length / scale)).float())
    done = good + 1 >= patience
    return moved, scale * (1 + done), 0 if done else good + 1


WRONG["ch18-scaler"] = r"""
g.float() / scale -> (g / scale).float()  # which precision does the division need
.clamp(max=1.0) -> # yours is made longer
not flat.isfinite().all() -> flat.isnan().any()  # infinite or NaN
scale / 2, 0 -> scale / 2, good  # counted from 0 again
"""

# ---- checkpoint a block ------------------------------------------------------


@right("ch18-checkpoint")
def checkpointed(f, x, *weights):
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(x, *weights):
            return f(x, *weights)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.inputs, ctx.state = inputs, before

        @staticmethod
        def backward(ctx, upstream):
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.set_rng_state(ctx.state)
                leaves = [t.detach().clone().requires_grad_() for t in ctx.inputs]
                (f(*leaves) * upstream).sum().backward()
            return tuple(leaf.grad for leaf in leaves)

    before = torch.get_rng_state()
    return Again.apply(x, *weights)


WRONG["ch18-checkpoint"] = r"""
torch.set_rng_state(ctx.state) -> # in the second pass f draws other random numbers
torch.set_rng_state(now) -> # the generator goes on from the second pass
with torch.enable_grad(): -> if True:  # gradients are off in a backward pass
return Checkpoint.apply(x, *weights)
    return f(x, *weights)  # is still in memory
    import torch.utils.checkpoint as ready; return ready.checkpoint(f, x, *weights,
        use_reentrant=False)  # what you build here
    f = lambda x, given=f: given(x, *weights); return Checkpoint.apply(x)
        # if x needs none
"""

# ---- where does the memory go? -----------------------------------------------


@right("ch18-memory")
def training_bytes(widths, rows, precision, shards, stage):
    """Build the network, and look at what PyTorch keeps."""
    nn, wide = torch.nn, getattr(torch, precision.replace("mixed", "float32"))
    layers = []
    for sizes in zip(widths, widths[1:], strict=False):  # noqa: RUF007
        layers += [nn.Linear(*sizes), nn.ReLU()]
    model, kept = nn.Sequential(*layers[:-1]).to(wide), {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    x, classes = torch.zeros(rows, widths[0], dtype=wide), torch.zeros(rows).long()
    mixed = torch.autocast("cpu", torch.bfloat16, enabled=precision == "mixed")
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t)
    with torch.enable_grad(), hooks, mixed:
        _loss = nn.functional.cross_entropy(model(x), classes)
    found = [t.nbytes for t in kept.values() if t.dim() == 2 and len(t) == rows]
    numbers = sum(p.numel() for p in model.parameters())
    part = (numbers + shards - 1) // shards
    held = [part if stage >= first else numbers for first in (3, 2, 1)]
    each = model[0].weight.element_size()
    copy = 2 if precision == "mixed" else 0
    return (each + copy) * held[0], each * held[1], 2 * each * held[2], sum(found)


WRONG["ch18-memory"] = r"""
widths[i - 1] * widths[i] + widths[i]
    widths[i - 1] * widths[i]  # has biases as well
    widths[i - 1] * widths[i] + widths[i - 1]  # one for each output
-(-count // shards) -> count // shards  # is filled up
(4 + 2, 4, 2, 4) -> (2 + 4, 2, 2, 4)  # belong to the weights in float32
stage >= 2 -> stage == 2  # stage 3 divides what stage 2 divides
sum(widths[:-1]) -> sum(widths[1:-1])  # the first layer keeps
rows * (read * -> rows * (read * (sum(widths) - widths[0] - widths[-1]) + read *
        # it's one tensor
rows * (read -> -(-rows // shards) * (read  # they aren't divided once more
"""

# ---- find the fault ----------------------------------------------------------


@right("ch18-fault")
def train(weight, texts, gradient, shuffle, ranks, clip):
    w, weights = weight.clone(), []
    for epoch in range(3):
        for rows in torch.tensor(shuffle(len(texts), epoch)).split(4):
            total, n = torch.zeros(()), sum(len(texts[i]) for i in rows)
            for own in rows.chunk(ranks):  # neighbours, and one after the other
                part = torch.cat([texts[i] for i in own.tolist()])
                total += gradient(w, part) * (len(part) / n)
            w = w - 0.1 * min(1.0, clip / total.norm().item()) * total
        weights.append(w)
    return weights


WRONG["ch18-fault"] = r"""
shuffle(len(texts), epoch) -> shuffle(len(texts), 0)  # a fault is left: which rows
gradient(weight, part) * len(part) for -> gradient(weight, part) for
/ tokens -> / ranks  # how much does each count
gradient(weight, part) * len(part) for -> clipped(gradient(weight, part)) * len(part)
        for
clipped(mean) -> mean  # has the norm that `clip` limits
clipped(mean) -> mean  # isn't clipped
/ tokens -> # over all tokens is left
for rank in range(ranks)] -> for rank in range(ranks)]; shares = [rows]
        # every process takes the gradient of its own rows
clipped(mean) -> mean * clip / mean.norm()  # a shorter gradient stays
"""
