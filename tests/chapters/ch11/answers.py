"""Answers to the exercises of chapter 11."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.exercises.answers import right


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


@right("ch11-bits")
def bits_per_character(logits, targets, sizes, count):
    nats = characters = 0.0
    for row, tokens, counts in zip(logits, targets, count, strict=True):
        for scores, token, one in zip(row, tokens, counts, strict=True):
            if one:
                nats += (scores.logsumexp(dim=0) - scores[token]).item()
                characters += sizes[token].item()
    return nats / math.log(2) / characters


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
