"""Answers to the exercises of chapter 07."""

import math

import torch

from tests.exercises.answers import right, wrong

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


@wrong("ch07-training-step", "keeps its whole graph")
def training_step(model, source, target, optimizer, schedule, clip):
    optimizer.zero_grad()
    logits = model(source, target[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=0)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    schedule.step()
    return loss


@wrong("ch07-training-step", "cleared only at the end")
def training_step(model, source, target, optimizer, schedule, clip):
    logits = model(source, target[:, :-1])
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    return loss.item()


@wrong("ch07-training-step", "padding is counted")
def training_step(model, source, target, optimizer, schedule, clip):
    model.zero_grad()
    logits = model(source, target[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.mT, target[:, 1:])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    schedule.step()
    return loss.item()


@wrong("ch07-training-step", "reads the very symbol")
def training_step(model, source, target, optimizer, schedule, clip):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(
        model(source, target).mT, target, ignore_index=0
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    schedule.step()
    return loss.item()


@wrong("ch07-training-step", "return the loss")
def training_step(model, source, target, optimizer, schedule, clip):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(
        model(source, target[:, :-1]).mT, target[:, 1:], ignore_index=0
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    schedule.step()


def in_mode(first, last):
    """A step that is right, but for the mode that the model is in."""

    def training_step(model, source, target, optimizer, schedule, clip):
        model.train(first)
        optimizer.zero_grad()
        logits = model(source, target[:, :-1]).mT
        loss = torch.nn.functional.cross_entropy(logits, target[:, 1:], ignore_index=0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        model.train(last)
        return loss.item()

    return training_step


wrong("ch07-training-step", "evaluation mode")(in_mode(False, True))
wrong("ch07-training-step", "evaluation mode")(in_mode(True, False))


# ---- find the fault ----------------------------------------------------------


def loss_of(model, source, target):
    logits = model(source, target[:, :-1]).mT
    return torch.nn.functional.cross_entropy(logits, target[:, 1:], ignore_index=0)


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
        counts = torch.tensor([(t[:, 1:] != 0).sum() for _, t in checking])
        each = torch.stack([loss_of(model, s, t) for s, t in checking])
    return losses, ((each * counts).sum() / counts.sum()).item()


@wrong("ch07-repair-loop", "left behind; and the checking loss")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    losses = []
    for source, target in training:
        loss = loss_of(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    checked = []
    for source, target in checking:
        loss = loss_of(model, source, target)
        loss.backward()
        checked.append(loss.item())
    return losses, sum(checked) / len(checked)


@wrong("ch07-repair-loop", "longer than `clip` gets through")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    losses = []
    for source, target in training:
        loss = loss_of(model, source, target)
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    total = tokens = 0
    for source, target in checking:
        with torch.no_grad():
            loss = loss_of(model, source, target)
        count = (target[:, 1:] != 0).sum().item()
        total, tokens = total + loss.item() * count, tokens + count
    return losses, total / tokens


@wrong("ch07-repair-loop", "the rate does not move within an epoch")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    losses = []
    for source, target in training:
        optimizer.zero_grad()
        loss = loss_of(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    total = tokens = 0
    for source, target in checking:
        with torch.no_grad():
            loss = loss_of(model, source, target)
        count = (target[:, 1:] != 0).sum().item()
        total, tokens = total + loss.item() * count, tokens + count
    return losses, total / tokens


@right("ch07-repair-loop")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    def loss_of(model, source, target):
        logits = model(source, target[:, :-1]).mT
        return torch.nn.functional.cross_entropy(logits, target[:, 1:], ignore_index=0)

    losses = []
    model.train()
    for source, target in training:
        optimizer.zero_grad()
        loss = loss_of(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    total = tokens = 0
    for source, target in checking:
        with torch.no_grad():
            loss = loss_of(model, source, target)
        count = (target[:, 1:] != 0).sum().item()
        total, tokens = total + loss.item() * count, tokens + count
    return losses, total / tokens


@wrong("ch07-repair-loop", "in evaluation mode, without dropout")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    losses = []
    for source, target in training:
        optimizer.zero_grad()
        loss = loss_of(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    total = tokens = 0
    for source, target in checking:
        with torch.no_grad():
            loss = loss_of(model, source, target)
        count = (target[:, 1:] != 0).sum().item()
        total, tokens = total + loss.item() * count, tokens + count
    return losses, total / tokens


@wrong("ch07-repair-loop", "counts the start symbol")
def train_epoch(model, training, checking, optimizer, schedule, clip):
    losses = []
    for source, target in training:
        loss = loss_of(model, source, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    total = tokens = 0
    for source, target in checking:
        with torch.no_grad():
            loss = loss_of(model, source, target)
        count = (target != 0).sum().item()
        total, tokens = total + loss.item() * count, tokens + count
    return losses, total / tokens


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


@wrong("ch07-schedule", "your code raised ZeroDivisionError")
def warm_cosine(step, warmup, total, peak, floor=0.0):
    if step < 1:
        raise ValueError(step)
    x = (step - warmup) / (total - warmup)
    if step <= warmup:
        return peak * step / warmup
    return floor + (peak - floor) * (1 + math.cos(math.pi * min(x, 1))) / 2


@wrong("ch07-schedule", "cuts the wave off")
def warm_cosine(step, warmup, total, peak, floor=0.0):
    if step < 1:
        raise ValueError(step)
    if step <= warmup:
        return peak * step / warmup
    x = min(1, (step - warmup) / max(total - warmup, 1))
    return max(floor, peak * (1 + math.cos(math.pi * x)) / 2)


@wrong("ch07-schedule", "an assert is gone")
def warm_cosine(step, warmup, total, peak, floor=0.0):
    assert step >= 1
    if step <= warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    x = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * x)) / 2


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


@wrong("ch07-smoothing", "asks for the forbidden symbol")
def smoothed(target, size, smoothing, forbidden):
    others = max(size - 1 - len(forbidden), 1)
    rows = torch.full((*target.shape, size), smoothing / others)
    rows[..., forbidden] = 0
    return rows.scatter(-1, target[..., None], 1 - smoothing)


@wrong("ch07-smoothing", "two cases are missing")
def smoothed(target, size, smoothing, forbidden):
    asked = torch.nn.functional.one_hot(target, size).float()
    free = 1 - asked
    free[..., forbidden] = 0
    share = smoothing / free.sum(dim=-1, keepdim=True).clamp(min=1)
    return asked * (1 - smoothing) + free * share


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


@wrong("ch07-token-batches", "the groups fit, but only a sequence that does not")
def group_by_tokens(lengths, tokens):
    groups = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > tokens:
            raise ValueError(f"{lengths[i]} > {tokens}")
        full = groups and (len(groups[-1]) + 1) * lengths[i] > tokens
        if not groups or full or lengths[groups[-1][0]] != lengths[i]:
            groups.append([])
        groups[-1].append(i)
    return groups


@wrong("ch07-token-batches", "changes its argument `lengths`")
def group_by_tokens(lengths, tokens):
    kept = list(lengths)
    lengths.sort()
    groups = []
    for i in sorted(range(len(kept)), key=lambda i: kept[i]):
        if kept[i] > tokens:
            raise ValueError(f"{kept[i]} > {tokens}")
        if not groups or (len(groups[-1]) + 1) * kept[i] > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups


@wrong("ch07-token-batches", "is in no group")
def group_by_tokens(lengths, tokens):
    groups = []
    for length in sorted(lengths):
        if length > tokens:
            raise ValueError(f"{length} > {tokens}")
        if not groups or (len(groups[-1]) + 1) * length > tokens:
            groups.append([])
        groups[-1].append(lengths.index(length))
    return groups


@wrong("ch07-token-batches", "the message should hold")
def group_by_tokens(lengths, tokens):
    if lengths and max(lengths) > tokens:
        raise ValueError("a sequence is too long")
    groups, group = [], []
    for length, i in sorted(zip(lengths, range(len(lengths)), strict=True)):
        if (len(group) + 1) * length > tokens:
            groups.append(group)
            group = []
        group = [*group, i]
    return groups + [group] if group else groups


@wrong("ch07-token-batches", "does fit into")
def group_by_tokens(lengths, tokens):
    groups = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] >= tokens:
            raise ValueError(f"{lengths[i]} is more than {tokens}")
        if not groups or (len(groups[-1]) + 1) * lengths[i] > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups


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


@wrong("ch07-accumulate", "the old gradient is there, and no batch is weighed")
def accumulated_gradient(model_loss, parameter, batches, counts):
    for batch, count in zip(batches, counts, strict=True):
        if count:
            model_loss(parameter, batch).backward()
    return parameter.grad


@wrong("ch07-accumulate", "losses were in memory at once")
def accumulated_gradient(model_loss, parameter, batches, counts):
    total = 0
    for batch, count in zip(batches, counts, strict=True):
        if count:
            total = total + model_loss(parameter, batch) * count / sum(counts)
    return torch.autograd.grad(total, parameter)[0]


@wrong("ch07-accumulate", "does not require grad")
def accumulated_gradient(model_loss, parameter, batches, counts):
    total = 0
    for batch, count in zip(batches, counts, strict=True):
        if count:
            loss = model_loss(parameter.detach(), batch) * count / sum(counts)
            total = total + torch.autograd.grad(loss, parameter)[0]
    return total


@wrong("ch07-accumulate", "none of the batches")
def accumulated_gradient(model_loss, parameter, batches, counts):
    joined = torch.cat([batch.flatten() for batch in batches])
    return torch.autograd.grad(model_loss(parameter, joined), parameter)[0]
