"""Answers to the exercises of chapter 11."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.exercises.answers import right, wrong

# ---- windows that overlap ------------------------------------------------------


@right("ch11-windows")
def overlapping(ids, length, stride):
    windows, targets, count, seen = [], [], [], 0
    i = 0
    while i + length < len(ids):
        windows.append(ids[i : i + length].tolist())
        targets.append(ids[i + 1 : i + 1 + length].tolist())
        count.append([place > seen for place in range(i + 1, i + 1 + length)])
        seen = i + length
        i += stride
    return torch.tensor(windows), torch.tensor(targets), torch.tensor(count)


@wrong("ch11-windows", "the last window is missing")
def overlapping(ids, length, stride):
    rows = [ids[i : i + length + 1] for i in range(0, len(ids) - length - 1, stride)]
    rows = torch.stack(rows)
    count = torch.zeros(len(rows), length, dtype=torch.bool)
    count[:, -stride:] = True
    count[0] = True
    return rows[:, :-1], rows[:, 1:], count


@wrong("ch11-windows", "shifted within each window")
def overlapping(ids, length, stride):
    windows = ids[:-1].unfold(0, length, stride)
    count = torch.zeros_like(windows, dtype=torch.bool)
    count[:, -stride:] = True
    count[0] = True
    return windows, torch.cat([windows[:, 1:], windows[:, :1]], dim=1), count


@wrong("ch11-windows", "none has counted its beginning")
def overlapping(ids, length, stride):
    windows, targets = (x.unfold(0, length, stride) for x in (ids[:-1], ids[1:]))
    new = torch.arange(length) >= length - stride
    return windows, targets, new.expand(len(windows), -1)


@wrong("ch11-windows", "its target is missing")
def overlapping(ids, length, stride):
    windows = ids.unfold(0, length, stride)
    targets = ids.roll(-1).unfold(0, length, stride)
    count = torch.zeros_like(windows, dtype=torch.bool)
    count[:, -stride:] = True
    count[0] = True
    return windows, targets, count


@wrong("ch11-windows", "what is left at the end is dropped")
def overlapping(ids, length, stride):
    rows = range(0, len(ids) - 1, stride)
    padded = F.pad(ids, (0, length + 1))
    windows = torch.stack([padded[i : i + length] for i in rows])
    targets = torch.stack([padded[i + 1 : i + length + 1] for i in rows])
    count = torch.zeros_like(windows, dtype=torch.bool)
    count[:, -stride:] = True
    count[0] = True
    return windows, targets, count


# ---- bits per character --------------------------------------------------------


@right("ch11-bits")
def bits_per_character(logits, targets, sizes, count):
    nats = characters = 0.0
    for row, tokens, counts in zip(logits, targets, count, strict=True):
        for scores, token, one in zip(row, tokens, counts, strict=True):
            if one:
                nats -= math.log(scores.softmax(dim=0)[token].item())
                characters += sizes[token].item()
    return nats / math.log(2) / characters


@wrong("ch11-bits", "these are nats")
def bits_per_character(logits, targets, sizes, count):
    loss = F.cross_entropy(logits[count], targets[count], reduction="sum")
    return loss / sizes[targets[count]].sum()


@wrong("ch11-bits", "each token's own bits per character")
def bits_per_character(logits, targets, sizes, count):
    loss = F.cross_entropy(logits.mT, targets, reduction="none") / math.log(2)
    return (loss / sizes[targets])[count].mean()


@wrong("ch11-bits", "targets that do not count are among them")
def bits_per_character(logits, targets, sizes, count):
    loss = F.cross_entropy(logits.mT, targets, reduction="sum") / math.log(2)
    return loss / sizes[targets].sum()


# ---- which characters may be drawn ---------------------------------------------


@right("ch11-nucleus")
def may_be_drawn(logits, temperature, p):
    kept = torch.zeros(logits.shape, dtype=torch.bool)
    for row, chances in enumerate((logits / temperature).softmax(-1).tolist()):
        mass = 0.0
        for i in sorted(range(len(chances)), key=lambda i: -chances[i]):
            if mass < p or p == 1:
                kept[row, i] = True
            mass += chances[i]
    return kept


@wrong("ch11-nucleus", "the character that reaches p is dropped")
def may_be_drawn(logits, temperature, p):
    chances = (logits / temperature).softmax(dim=-1)
    falling, places = chances.sort(descending=True)
    kept = falling.cumsum(-1) <= p
    return torch.zeros_like(kept).scatter(-1, places, kept)


@wrong("ch11-nucleus", "not in that of the logits")
def may_be_drawn(logits, temperature, p):
    falling, _ = (logits / temperature).softmax(dim=-1).sort(descending=True)
    return (falling.cumsum(-1) - falling < p) | torch.tensor(p == 1)


@wrong("ch11-nucleus", "alone is compared with 1 − p")
def may_be_drawn(logits, temperature, p):
    return (logits / temperature).softmax(dim=-1) >= 1 - p


@wrong("ch11-nucleus", "the wrong way round")
def may_be_drawn(logits, temperature, p):
    chances = (logits / temperature).softmax(dim=-1)
    falling, places = chances.sort(descending=True)
    kept = (falling.cumsum(-1) - falling < p) | torch.tensor(p == 1)
    return torch.gather(kept, -1, places)


@wrong("ch11-nucleus", "the temperature multiplies the logits")
def may_be_drawn(logits, temperature, p):
    chances = (logits * temperature).softmax(dim=-1)
    falling, places = chances.sort(descending=True)
    kept = (falling.cumsum(-1) - falling < p) | torch.tensor(p == 1)
    return torch.zeros_like(kept).scatter(-1, places, kept)


@wrong("ch11-nucleus", "does not sum to 1")
def may_be_drawn(logits, temperature, p):
    chances = logits.softmax(dim=-1) / temperature
    falling, places = chances.sort(descending=True)
    kept = (falling.cumsum(-1) - falling < p) | torch.tensor(p == 1)
    return torch.zeros_like(kept).scatter(-1, places, kept)


@wrong("ch11-nucleus", "too small to change a rounded sum")
def may_be_drawn(logits, temperature, p):
    chances = (logits / temperature).softmax(dim=-1)
    falling, places = chances.sort(descending=True)
    kept = falling.cumsum(-1) - falling < p
    return torch.zeros_like(kept).scatter(-1, places, kept)


# ---- a GPT ---------------------------------------------------------------------


@right("ch11-gpt")
def gpt(tokens, embedding, positions, layers):
    x = embedding[tokens] + positions[None, : tokens.size(1)]
    norm = nn.LayerNorm(x.size(-1), elementwise_affine=False)
    for w in layers:
        y = norm(x)
        q, k, v = (F.linear(y, w[n]) for n in ("query", "key", "value"))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(mixed, w["output"])
        x = x + F.linear(F.relu(F.linear(norm(x), w["inner"])), w["outer"])
    return F.linear(norm(x), embedding)


def unfinished(tokens, embedding, positions, layers, mask, norm, last, bend=F.relu):
    t, d = tokens.shape[1], embedding.shape[1]
    x = embedding[tokens] + positions[:t]
    for w in layers:
        q, k, v = (norm(x) @ w[n].T for n in ("query", "key", "value"))
        scores = (q @ k.mT / d**0.5).masked_fill(mask(t), float("-inf"))
        x = x + scores.softmax(-1) @ v @ w["output"].T
        x = x + bend(norm(x) @ w["inner"].T) @ w["outer"].T
    return last(x) @ embedding.T


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


@wrong("ch11-gpt", "one step ahead")
def gpt(*given):
    def mask(t):
        return torch.ones(t, t, dtype=torch.bool).triu(2)

    return unfinished(*given, mask, layer_norm, layer_norm)


def future(t):
    return torch.ones(t, t, dtype=torch.bool).triu(1)


@wrong("ch11-gpt", "NaN: the first position")
def gpt(*given):
    def mask(t):
        return torch.ones(t, t, dtype=torch.bool).triu(0)

    return unfinished(*given, mask, layer_norm, layer_norm)


@wrong("ch11-gpt", "not GELU")
def gpt(*given):
    return unfinished(*given, future, layer_norm, layer_norm, F.gelu)


@wrong("ch11-gpt", "before it is added")
def gpt(tokens, embedding, positions, layers):
    eye = torch.eye(embedding.shape[1])
    layers = [w | {"output": eye} for w in layers]
    return unfinished(
        tokens, embedding, positions, layers, future, layer_norm, layer_norm
    )


@wrong("ch11-gpt", "the LN after the last layer is missing")
def gpt(*given):
    return unfinished(*given, future, layer_norm, lambda x: x)


@wrong("ch11-gpt", "nothing is normalised before the sublayers")
def gpt(*given):
    return unfinished(*given, future, lambda x: x, layer_norm)


# ---- a sampling loop -----------------------------------------------------------


@right("ch11-repair")
def write_on(logits_of, prompt, draws, temperature, k, context):
    ids = prompt[0].tolist()
    for draw in draws.tolist():
        scores = logits_of(torch.tensor([ids[-context:]]))[0, -1].tolist()
        kept = sorted(range(len(scores)), key=scores.__getitem__)[-k:]
        powers = {i: math.exp((scores[i] - max(scores)) / temperature) for i in kept}
        goal, mass = draw * sum(powers.values()), 0.0
        for i in sorted(kept):
            mass += powers[i]
            if mass > goal:
                break
        ids.append(i)
    return torch.tensor([ids[prompt.shape[1] :]])


def loop(logits_of, prompt, draws, temperature, k, context, first=False, sums=True):
    ids = prompt
    for draw in draws:
        seen = ids[:, :context] if first else ids[:, -context:]
        chances = (logits_of(seen)[:, -1] / temperature).softmax(dim=-1)
        values, places = chances.topk(k)
        if sums:
            values = values / values.sum(dim=-1, keepdim=True)
        chances = torch.zeros_like(chances).scatter(-1, places, values)
        symbol = (chances.cumsum(dim=-1) > draw).int().argmax(dim=-1)
        ids = torch.cat([ids, symbol[:, None]], dim=1)
    return ids[:, prompt.shape[1] :]


@wrong("ch11-repair", "does not add up to 1")
def write_on(*given):
    return loop(*given, sums=False)


@wrong("ch11-repair", "the window does not slide")
def write_on(*given):
    return loop(*given, first=True)


@wrong("ch11-repair", "the temperature changes nothing")
def write_on(logits_of, prompt, draws, temperature, k, context):
    return loop(logits_of, prompt, draws, 1.0, k, context)
