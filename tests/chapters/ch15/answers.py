"""Answers to the exercises of chapter 15."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import right, wrong


@right("ch15-hide")
def hide(tokens, special, mask, choice, action, others):
    read, labels = tokens.clone(), torch.full_like(tokens, -100)
    for i, j in (choice < 0.15).nonzero().tolist():
        if tokens[i, j] not in special.tolist():
            labels[i, j] = tokens[i, j]
            if action[i, j] < 0.9:
                read[i, j] = mask if action[i, j] < 0.8 else others[i, j]
    return read, labels


@right("ch15-head")
def classify(states, w, b, v, c, frozen):
    with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
        first = states.select(1, 0).clone()
    return F.linear(F.linear(first, w, b).tanh(), v, c)


@right("ch15-sees")
def layers_to_see(mask, shown, asked):
    t = len(mask)
    steps = torch.where(mask, 1, t).fill_diagonal_(0)
    for j in range(t):  # ways that go through position j
        steps = torch.minimum(steps, steps[:, [j]] + steps[j])
    steps = steps.gather(1, asked.clamp(min=0)[:, None])[:, 0]
    return steps.where((asked >= 0) & shown[asked] & (steps < t), -1)


@right("ch15-half")
def pretraining_loss(token_logits, pair_logits, answers, labels):
    logs = token_logits.log_softmax(dim=-1).gather(-1, answers[..., None])[..., 0]
    words = -(logs * (answers > 0)).sum() / (answers > 0).sum()
    wrong_minus_right = pair_logits[:, 1] - pair_logits[:, 0]
    wrong_minus_right = wrong_minus_right * (1 - 2 * labels)
    return words + F.softplus(wrong_minus_right).mean()


@right("ch15-surgery")
def translate(state, layers):
    left = dict(state)
    try:
        words, widen = left.pop("words"), left.pop("widen.kernel")
        ours = {"embedding.weight": words, "widen.weight": widen.transpose(0, 1)}
        weight = [left.pop(f"layer.{name}.kernel") for name in ("qkv", "out")]
        bias = [left.pop(f"layer.{name}.bias") for name in ("qkv", "out")]
    except KeyError as error:
        raise ValueError(f"{error} is missing; what is {list(left)}?") from error
    if left:
        raise ValueError(f"what is {list(left)}?")
    rows, biases = torch.cat(weight, dim=1).split(len(bias[1]), dim=1), torch.cat(bias)
    for n in range(layers):
        for i, name in enumerate(["query", "key", "value", "output"]):
            name = f"layers.{n}.{name}_map"
            ours[f"{name}.weight"] = torch.einsum("io->oi", rows[i])
            ours[f"{name}.bias"] = biases.view(4, -1)[i].clone()
    return ours


@right("ch15-heads")
def head_shares(maps, before, behind, may):
    shares = torch.zeros(maps.shape[:2], dtype=maps.dtype)
    for layer, of_layer in enumerate(maps):
        for head, rows in enumerate(of_layer):
            hits = [
                bool(may[i, max(range(len(before)), key=lambda j: rows[p, before[j]])])
                for i, p in enumerate(behind.tolist())
            ]
            shares[layer, head] = sum(hits) / len(hits)
    return shares


@wrong("ch15-heads", "weights on other tokens don't count")
def head_shares(maps, before, behind, may):
    chosen = maps.max(-1).indices[..., behind]  # of all tokens
    hits = (chosen[..., None] == before).logical_and(may).sum(-1)
    return hits.to(maps.dtype).mean(-1)
