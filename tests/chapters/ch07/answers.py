"""Answers to the exercises of chapter 07."""

import math

import torch

from tests.exercises.answers import RIGHT, WRONG, right, wrong

# ---- a training step ---------------------------------------------------------


@right("ch07-training-step")
def training_step(model, source, target, optimizer, schedule, clip):
    read, labels = target[:, :-1], target[:, 1:]
    logs = model(source, read).log_softmax(-1)
    own = logs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    real = (labels != 0).float()
    loss = -(own * real).sum() / real.sum()
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    norm = sum(g.square().sum() for g in gradients) ** 0.5
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * min(1.0, clip / norm.item())
    optimizer.step()
    schedule.step()
    return loss.detach()


WRONG["ch07-training-step"] = r"""
loss.item() -> loss  # keeps its whole graph
optimizer.zero_grad() ->
schedule.step() -> schedule.step()\n    optimizer.zero_grad()  # cleared only at the end
, ignore_index=0 -> # padding is counted
target[:, :-1] -> target
target[:, 1:] -> target  # reads the very symbol
return loss.item() -> # return the loss
loss.backward() -> model.eval()\n    loss.backward()  # evaluation mode
\n    return -> \n    model.eval()\n    return  # put into evaluation mode
"""

# ---- find the fault ----------------------------------------------------------


@right("ch07-repair-loop")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    def loss_of(model, source, target):
        logits = model(source, target[:, :-1]).mT
        return torch.nn.functional.cross_entropy(logits, target[:, 1:], ignore_index=0)

    losses = []
    for source, target in training:
        optimizer.zero_grad()
        loss = loss_of(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    with torch.no_grad():
        model.train(False)
        counts = torch.tensor([(t[:, 1:] != 0).sum() for _, t in checking])
        each = torch.stack([loss_of(model, s, t) for s, t in checking])
        model.train(True)
    return losses, ((each * counts).sum() / counts.sum()).item()


RIGHT["ch07-repair-loop"] = r"""
losses = [] -> losses = []\n    model.train()  # both modes
"""
WRONG["ch07-repair-loop"] = r"""
\n            loss = -> \n            torch.set_grad_enabled(True)\n            loss =
count = -> loss.backward()\n        count =
(target[:, 1:] != 0).sum().item() -> 1  # evaluation left behind
optimizer.step() ->
torch.nn.utils -> optimizer.step()\n        torch.nn.utils  # `clip` gets through
schedule.step() ->
total, tokens -> schedule.step()\n    total, tokens
        # the rate does not move within an epoch
losses = [] -> losses = []\n    model.eval()  # in evaluation mode, without dropout
model.eval() -> # runs in training mode
model.train() -> # stays in evaluation mode
(target[:, 1:] != 0) -> (target != 0)  # counts the start symbol
(target[:, 1:] != 0).sum().item() -> target[:, 1:].numel()  # counts padding
"""

# ---- another schedule --------------------------------------------------------


@right("ch07-schedule")
def warm_cosine(step, warmup, total, peak, floor=0.0):
    class NoStep(ValueError):
        pass

    if not step >= 1:
        raise NoStep(step)
    if warmup and step <= warmup:
        return torch.tensor(step / warmup) * peak
    x = min(1.0, (step - warmup) / max(total - warmup, 1))
    return floor + (peak - floor) * math.cos(math.pi / 2 * x) ** 2


WRONG["ch07-schedule"] = r"""
if step <= warmup -> share = (step - warmup) / (total - warmup)\n    if step <= warmup
        # ZeroDivisionError
floor + (peak - floor) * (1 + cos(pi * share)) / 2 -> max(floor, peak * (1 + cos(pi *
        share)) / 2)  # cuts the wave off
raise ValueError(f"steps are counted from 1, got {step}") -> raise AssertionError
        # an assert is gone
"""

# ---- smoothing with forbidden symbols ----------------------------------------


@right("ch07-smoothing")
def smoothed(target, size, smoothing, forbidden):
    table = torch.ones(size, size)  # one row for each right symbol
    table.fill_diagonal_(0)
    table[:, forbidden] = 0
    table = table * smoothing / table.sum(dim=1, keepdim=True).clamp(min=1)
    table += torch.diag(1 - table.sum(dim=1))
    table[forbidden] = 0
    return torch.nn.functional.embedding(target, table)


@wrong("ch07-smoothing", "NaN or infinity")
def smoothed(target, size, smoothing, forbidden):
    free = torch.ones(*target.shape, size).scatter(-1, target[..., None], 0)
    free[..., forbidden] = 0
    rows = smoothing * free / free.sum(dim=-1, keepdim=True)
    rows.scatter_(-1, target[..., None], 1 - smoothing)
    banned = torch.isin(target, torch.tensor(forbidden, dtype=target.dtype))
    return rows.masked_fill(banned[..., None], 0)


WRONG["ch07-smoothing"] = r"""
return rows.masked_fill(banned | banned[target][..., None], 0.0) -> return rows
rows.scatter_(-1, target[..., None], own) -> rows = rows.masked_fill(banned,
        0.0)\n    rows.scatter_(-1, target[..., None], own)
        # asks for the forbidden symbol
return rows.masked_fill(banned | banned[target][..., None], 0.0) -> return rows
rows.scatter_(-1, target[..., None], own) -> rows = rows.masked_fill(banned,
        0.0)\n    rows.scatter_(-1, target[..., None], own)
1 - smoothing if others > 0 else 1.0 -> 1 - smoothing  # two cases are missing
"""

# ---- batches by tokens -------------------------------------------------------


@right("ch07-token-batches")
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


WRONG["ch07-token-batches"] = r"""
not groups or -> not groups or lengths[groups[-1][0]] != length or
        # the groups fit, but only a sequence that does not
groups = [] -> groups = []\n    lengths.sort()  # changes its argument `lengths`
append(index) -> append(lengths.index(length))  # is in no group
{length} tokens, more than {tokens} -> many tokens  # the message should hold
if length > tokens -> if length >= tokens  # does fit into
"""

# ---- accumulation ------------------------------------------------------------


@right("ch07-accumulate")
def accumulated_gradient(model_loss, parameter, batches, counts):
    leaf = parameter.detach().clone().requires_grad_()
    sums = torch.zeros_like(leaf).detach()
    for i in reversed(range(len(batches))):
        loss = model_loss(leaf, batches[i])
        [gradient] = torch.autograd.grad(loss, [leaf])
        sums += gradient.nan_to_num() * counts[i]
    return sums / sum(counts)


@right("ch07-accumulate")
def accumulated_gradient(model_loss, parameter, batches, counts):
    parameter.grad = None
    for batch, count in zip(batches, counts, strict=True):
        if count:
            (model_loss(parameter, batch) * count / sum(counts)).backward()
    return parameter.grad


WRONG["ch07-accumulate"] = """
loss = model_loss(parameter, batch) * (count / sum(counts)) -> model_loss(parameter,
        batch).backward()
total += torch.autograd.grad(loss, parameter)[0] ->
return total -> return parameter.grad
        # the old gradient is there, and no batch is weighed
total += torch.autograd.grad(loss, parameter)[0] -> total = total + loss
return total -> return torch.autograd.grad(total.sum(), parameter)[0]
        # losses were in memory at once
(parameter, batch)
    (parameter.detach(), batch)  # does not require grad
    (parameter, torch.cat([one.flatten() for one in batches]))  # none of the batches
"""
