"""Answers to the exercises of chapter 11."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.exercises.answers import WRONG, right

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


WRONG["ch11-windows"] = r"""
ids[:-1] -> ids[:-2]
ids[1:] -> ids[1:-1]  # the last window is missing
ids[1:].unfold(0, length, stride) -> windows.roll(-1, 1)  # shifted within each window
count[0] = True -> # none has counted its beginning
ids[:-1] -> ids
ids[1:] -> ids.roll(-1)  # its target is missing
windows = -> ids = torch.cat([ids, ids.new_zeros(length)])\n    windows =
        # what is left at the end is dropped
"""

# ---- bits per character --------------------------------------------------------


@right("ch11-bits")
def bits_per_character(logits, targets, sizes, count):
    nats = characters = 0.0
    for row, tokens, counts in zip(logits, targets, count, strict=True):
        for scores, token, one in zip(row, tokens, counts, strict=True):
            if one:
                nats += (scores.logsumexp(dim=0) - scores[token]).item()
                characters += sizes[token].item()
    return nats / math.log(2) / characters


WRONG["ch11-bits"] = """
/ math.log(2) -> # these are nats
logs[count] -> logs.div(sizes[targets])[count]
sizes[targets][count].sum() -> count.sum()  # each token's own bits per character
logs[count] -> logs
sizes[targets][count] -> sizes[targets]  # targets that do not count are among them
log_softmax(dim=-1) -> softmax(dim=-1).log()  # rounded to 0 before its logarithm
"""

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


WRONG["ch11-nucleus"] = """
- falling -> # the character that reaches p is dropped
torch.zeros_like(before < p).scatter(-1, places, before < p)
    (before < p).gather(-1, places)  # the wrong way round
(logits / temperature).softmax(dim=-1) -> logits.softmax(dim=-1) / temperature
        # does not sum to 1
if p == 1: -> if p > 1:  # too small to change a rounded sum
"""

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


WRONG["ch11-gpt"] = r"""
tril()
    tril(1)  # one step ahead
    tril(-1)  # NaN: the first position
(y @ w["inner"].T).relu() -> F.gelu(y @ w["inner"].T)  # not GELU
@ w["output"].T -> # before it is added
return F.layer_norm(x, (d,)) -> return x  # the LN after the last layer is missing
F.layer_norm(x, (d,))\n        q -> x\n        q
F.layer_norm(x, (d,))\n        x -> x\n        x
        # nothing is normalised before the sublayers
w[name].T
    w[name]  # for query, key and value, too
    (w[name] if name == "query" else w[name].T)  # for the query, too
embedding[tokens] -> embedding[tokens] * d**0.5  # is not multiplied by √d
F.layer_norm(x, (d,))\n        q -> x\n        q  # attention reads the stream without
"""

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


WRONG["ch11-repair"] = """
chances = chances / chances.sum(dim=-1, keepdim=True) -> # does not add up to 1
ids[:, -context:] -> ids[:, :context]  # the window does not slide
(logits / temperature).softmax(dim=-1) -> logits.softmax(dim=-1) / temperature
        # the temperature changes nothing
> draw -> >= draw  # the sum should exceed the draw
"""
