"""Answers to the exercises of chapter 07."""

import math

import torch

from tests.exercises.answers import RIGHT, right, wrong


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
