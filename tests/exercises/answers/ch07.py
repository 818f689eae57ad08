"""Answers to the exercises of chapter 07."""

import math

import torch

from tests.exercises.answers import right, wrong

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


# ---- where is the peak? ------------------------------------------------------


@right("ch07-peak")
def peak(d_model, warmup, a, factor=1.0):
    def rate(n):
        return factor / d_model**0.5 * min(1 / n**a, n / warmup ** (1 + a))

    step = max(range(1, warmup + 2), key=rate)
    return [step, rate(step)]


@wrong("ch07-peak", "one step earlier the rate still climbs, as your own rate shows")
def peak(d_model, warmup, a, factor=1.0):
    rates = [min(n**-a, n * warmup ** -(1 + a)) for n in range(1, 2 * warmup)]
    step = rates.index(max(rates))
    return step, factor * d_model**-0.5 * rates[step - 1]


@wrong("ch07-peak", "the exponent of d is not a")
def peak(d_model, warmup, a, factor=1.0):
    return warmup, factor * math.exp(-a * math.log(d_model * warmup))


@wrong("ch07-peak", "expected the step at which both terms")
def peak(d_model, warmup, a, factor=1.0):
    rates = [min(n**-a, n * warmup ** -(1 + a)) for n in range(1, 1000)]
    top = max(rates)
    return rates.index(top) + 1, factor * d_model**-0.5 * top


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
