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


WRONG["ch11-windows"] = {
    "the last window is missing": [("ids[:-1]", "ids[:-2]"), ("ids[1:]", "ids[1:-1]")],
    "shifted within each window": (
        "ids[1:].unfold(0, length, stride)",
        "windows.roll(-1, 1)",
    ),
    "none has counted its beginning": ("    count[0] = True\n", ""),
    "its target is missing": [("ids[:-1]", "ids"), ("ids[1:]", "ids.roll(-1)")],
    "what is left at the end is dropped": (
        "    windows =",
        "    ids = torch.cat([ids, ids.new_zeros(length)])\n    windows =",
    ),
}

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


WRONG["ch11-bits"] = {
    "these are nats": ("log2", "log"),
    "each token's own bits per character": [
        ("log2()[count]", "log2().div(sizes[targets])[count]"),
        ("sizes[targets][count].sum()", "count.sum()"),
    ],
    "targets that do not count are among them": [
        ("log2()[count]", "log2()"),
        ("sizes[targets][count]", "sizes[targets]"),
    ],
}

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


BACK = "torch.zeros_like(before < p).scatter(-1, places, before < p)"
WRONG["ch11-nucleus"] = {
    "the character that reaches p is dropped": (" - falling", ""),
    "not in that of the logits": (BACK, "before < p"),
    "alone is compared with 1 − p": (BACK, "chances >= 1 - p"),
    "the wrong way round": (BACK, "(before < p).gather(-1, places)"),
    "the temperature multiplies the logits": ("/ temperature", "* temperature"),
    "does not sum to 1": (
        "(logits / temperature).softmax(dim=-1)",
        "logits.softmax(dim=-1) / temperature",
    ),
    "too small to change a rounded sum": ("if p == 1:", "if p > 1:"),
}

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


INNER = '(y @ w["inner"].T)'
WRONG["ch11-gpt"] = {
    "one step ahead": ("tril()", "tril(1)"),
    "NaN: the first position": ("tril()", "tril(-1)"),
    "not GELU": (f"{INNER}.relu()", f"F.gelu{INNER}"),
    "before it is added": (' @ w["output"].T', ""),
    "the LN after the last layer is missing": (
        "return F.layer_norm(x, (d,))",
        "return x",
    ),
    "nothing is normalised before the sublayers": [
        ("F.layer_norm(x, (d,))\n        q", "x\n        q"),
        ("F.layer_norm(x, (d,))\n        x", "x\n        x"),
    ],
    "for query, key and value, too": ("w[name].T", "w[name]"),
    "is not multiplied by √d": ("embedding[tokens]", "embedding[tokens] * d**0.5"),
    "attention reads the stream without": (
        "F.layer_norm(x, (d,))\n        q",
        "x\n        q",
    ),
}

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


WRONG["ch11-repair"] = {
    "does not add up to 1": (
        "chances = chances / chances.sum(dim=-1, keepdim=True)",
        "",
    ),
    "the window does not slide": ("ids[:, -context:]", "ids[:, :context]"),
    "the temperature changes nothing": (
        "(logits / temperature).softmax(dim=-1)",
        "logits.softmax(dim=-1) / temperature",
    ),
    "the sum should exceed the draw": ("> draw", ">= draw"),
}
