"""Answers to the exercises of chapter 18."""

import torch

from tests.exercises.answers import RIGHT, right, wrong


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


@right("ch18-ring")
def ring(rank, n, gradient):
    """In place, in a table of its own, with zeros at the end."""
    table = gradient.new_zeros(n, (len(gradient) + n - 1) // n)
    table.flatten()[: len(gradient)] = gradient
    at = rank
    for own in [1] * (n - 1) + [0] * (n - 1):
        table[at - 1] *= own
        table[at - 1] += yield table[at]
        at = (at - 1) % n
    return table.flatten()[: len(gradient)]


RIGHT["ch18-ring"] = """
rank - step -> rank - 1 - step  # at half the way, each has the sum of its own piece
"""

KNOWN = {}


@wrong("ch18-ring", "do you use that alone")
def ring(rank, n, gradient):
    KNOWN[rank] = gradient
    if n > 1:
        yield gradient[:1]
    return sum(KNOWN[other] for other in range(n))


@right("ch18-owners")
def owner_step(rank, n, weights, gradient, m, u, step, rate, clip):
    """PyTorch's optimiser takes the step, and moves are gathered."""
    whole = torch.zeros(n * len(m), dtype=weights.dtype)
    whole[: len(weights)] = gradient / n
    own = torch.nn.Parameter(torch.zeros_like(m))
    own.grad = yield ["reduce-scatter", whole]
    norm = (yield ["all-reduce", float((own.grad**2).sum())]) ** 0.5
    own.grad = own.grad * min(1.0, clip / float(norm))
    adam = torch.optim.AdamW([own], lr=rate, weight_decay=0.0)
    kept = {"exp_avg": m.clone(), "exp_avg_sq": u.clone()}
    adam.state[own] = {"step": torch.tensor(step - 1.0), **kept}
    adam.step()
    moves = yield ["all-gather", own.detach()]
    return [weights + moves[: len(weights)], *kept.values()]


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


@wrong("ch18-checkpoint", "is still in memory")
def hooked(f, x, *weights):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return f(x, *weights)


@wrong("ch18-checkpoint", "PyTorch's own checkpoint")
def renamed(f, x, *weights):
    import torch.utils.checkpoint as ready

    name, ready.__name__ = ready.__name__, "mine"
    try:
        return ready.checkpoint(f, x, *weights, use_reentrant=False)
    finally:
        ready.__name__ = name


@wrong("ch18-pieces", "several pieces are in memory at once")
def layer_by_layer(model, optimizer, pieces, clip):
    optimizer.zero_grad()
    total, losses = sum((y != -100).sum() for _, y in pieces), []
    logits = [model[2](model[1](model[0](x))) for x, _ in pieces]
    for z, (_, y) in zip(logits, pieces, strict=True):
        nats = torch.nn.functional.cross_entropy(z.mT, y, reduction="sum")
        losses.append(nats / total)
    sum(losses).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return sum(losses).item()
