"""Answers to the exercises of chapter 15."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import WRONG, right

# ---- hide tokens, and ask for them -------------------------------------------


@right("ch15-hide")
def hide(tokens, special, mask, choice, action, others):
    read, labels = tokens.clone(), torch.full_like(tokens, -100)
    for i, j in (choice < 0.15).nonzero().tolist():
        if tokens[i, j] not in special.tolist():
            labels[i, j] = tokens[i, j]
            if action[i, j] < 0.9:
                read[i, j] = mask if action[i, j] < 0.8 else others[i, j]
    return read, labels


WRONG["ch15-hide"] = """
& ~torch.isin(tokens, special) -> & (tokens != 0)  # alone is left out
& ~torch.isin(tokens, special) -> # special tokens and padding are asked
asked & (action < 0.8) -> (action < 0.8)  # of all tokens
tokens.where(asked, -100)
    tokens.where(read == mask, -100)  # expected what is read
    tokens.where(masked, -100)  # only masks have labels
    tokens  # every token has a label
asked & (action >= 0.8) & (action < 0.9) -> asked & (action >= 0.8)  # stays as it is
return read, tokens.where(asked, -100) -> return read  # expected 2 values
"""

# ---- a head on [CLS] ---------------------------------------------------------


@right("ch15-head")
def classify(states, w, b, v, c, frozen):
    with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
        first = states.select(1, 0).clone()
    return F.linear(F.linear(first, w, b).tanh(), v, c)


WRONG["ch15-head"] = """
states[:, 0]
    states.mean(dim=1)  # of all tokens are averaged
    states[:, -1]  # where does [CLS] stand
first @ w.mT -> first @ w  # the wrong way round
torch.tanh(first @ w.mT + b) -> (first @ w.mT + b).sigmoid()  # expected the head's map
if frozen: -> if not frozen:  # although they aren't frozen
if frozen: -> if False:
pooled @ v.mT -> (pooled.detach() if frozen else pooled) @ v.mT  # the pooler learns
pooled @ v.mT + c -> (pooled @ v.mT + c).log_softmax(-1)  # tanh of the pooler's map
"""

# ---- who can see the answer? -------------------------------------------------


@right("ch15-sees")
def layers_to_see(mask, shown, asked):
    t = len(mask)
    steps = torch.where(mask, 1, t).fill_diagonal_(0)
    for j in range(t):  # ways that go through position j
        steps = torch.minimum(steps, steps[:, [j]] + steps[j])
    steps = steps.gather(1, asked.clamp(min=0)[:, None])[:, 0]
    return steps.where((asked >= 0) & shown[asked] & (steps < t), -1)


WRONG["ch15-sees"] = """
in range(t) -> in range(2)  # one layer is followed
in range(t) -> in range(1, t + 1)  # one more than the layers
mask.float() @ -> (mask & shown).float() @  # pass nothing on
mask.float() @ holds.float() -> holds.float() @ mask.mT.float()  # who attends to i
& (asked >= 0) -> # isn't the last position
& shown -> # is nowhere
seen & (layers < 0) -> seen  # not the first
"""

# ---- find the fault: half of the pairs ---------------------------------------


@right("ch15-half")
def pretraining_loss(token_logits, pair_logits, answers, labels):
    logs = token_logits.log_softmax(dim=-1).gather(-1, answers[..., None])[..., 0]
    words = -(logs * (answers > 0)).sum() / (answers > 0).sum()
    wrong_minus_right = pair_logits[:, 1] - pair_logits[:, 0]
    wrong_minus_right = wrong_minus_right * (1 - 2 * labels)
    return words + F.softplus(wrong_minus_right).mean()


WRONG["ch15-half"] = """
(pair_logits, labels) -> (pair_logits, labels, ignore_index=0)  # whose label is 0
(pair_logits, -> (pair_logits.log_softmax(-1).exp(),  # does it get logits
(token_logits[asked], answers[asked])
    (token_logits.mT, answers, ignore_index=0, reduction="none").mean()
        # by how many tokens
    (token_logits.mT, answers)  # where nothing is asked have a loss
    (token_logits.mT, answers, ignore_index=0, reduction="sum")  # of tokens are added
F.cross_entropy(pair_logits, labels)
    F.cross_entropy(pair_logits.sigmoid(), labels)  # plus the mean
    F.nll_loss(pair_logits, labels)  # gets logits
(token_logits[asked], answers[asked]) -> (token_logits.mT, answers, ignore_index=0,
        reduction="none").mean()
(pair_logits, labels) -> (pair_logits, labels, ignore_index=0)  # two faults are left
words + F.cross_entropy(pair_logits, labels)
    (words + F.cross_entropy(pair_logits, labels)).item()  # expected a tensor
"""

# ---- weight surgery ----------------------------------------------------------


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


WRONG["ch15-surgery"] = """
out.T -> out  # is square, and fits
widen.T -> widen  # the map that widens
qkv.T.chunk(3)
    qkv.chunk(3, dim=-1)  # are square, and fit both ways
    qkv.view(-1, len(qkv)).chunk(3)  # but mixes their numbers
range(layers)
    range(1)  # is missing: layers.1
    range(1, layers + 1)  # is missing: layers.0
set(names) ^ state.keys() -> state.keys() - set(names)  # doesn't say which
set(names) ^ state.keys() -> ()  # is passed over
{sorted(odd)} ->  # doesn't hold the name
"""
