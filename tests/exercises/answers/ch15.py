"""Answers to the exercises of chapter 15."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import WRONG, right, wrong

# ---- hide tokens, and ask for them -------------------------------------------


@right("ch15-hide")
def hide(tokens, special, mask, choice, action, others):
    never = set(special.tolist())
    read, labels = tokens.clone(), torch.full_like(tokens, -100)
    for i, row in enumerate(tokens.tolist()):
        for j, token in enumerate(row):
            if choice[i, j] >= 0.15 or token in never:
                continue
            labels[i, j] = token
            if action[i, j] < 0.8:
                read[i, j] = mask
            elif action[i, j] < 0.9:
                read[i, j] = others[i, j]
    return read, labels


@wrong("ch15-hide", "changes its argument `tokens` in place")
def hide_in_place(tokens, special, mask, choice, action, others):
    asked = (choice < 0.15) & ~torch.isin(tokens, special)
    labels = tokens.where(asked, -100)
    tokens[asked & (action < 0.8)] = mask
    exchanged = asked & (action >= 0.8) & (action < 0.9)
    tokens[exchanged] = others[exchanged]
    return tokens, labels


WRONG["ch15-hide"] = """
& ~torch.isin(tokens, special) -> & (tokens != 0)  # alone is left out
& ~torch.isin(tokens, special) -> # special tokens and padding are asked
asked & (action < 0.8) -> (action < 0.8)  # of all tokens
tokens.where(asked, -100)
    tokens.where(read == mask, -100)  # expected what is read
    tokens.where(masked, -100)  # only masks have labels
    tokens  # every token has a label
asked & (action >= 0.8) & (action < 0.9) -> asked & (action >= 0.8)  # none stays
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
    states.mean(dim=1)  # averaged over all tokens
    states[:, -1]  # [CLS] stands first
first @ w.mT -> first @ w  # the wrong way round
torch.tanh(first @ w.mT + b) -> (first @ w.mT + b).sigmoid()  # expected the head's map
if frozen: -> if not frozen:  # although they aren't frozen
if frozen: -> if False:
pooled @ v.mT -> (pooled.detach() if frozen else pooled) @ v.mT  # the pooler learns
pooled @ v.mT + c -> (pooled @ v.mT + c).log_softmax(-1)  # tanh of the pooler's map
"""

# ---- who can see the answer? -------------------------------------------------


@right("ch15-sees")
def sees(mask, layers, shown, asked):
    t = len(mask)
    held = [{i} if shown[i] else set() for i in range(t)]
    for _ in range(layers):
        held = [
            held[i].union(*(held[j] for j in range(t) if mask[i, j])) for i in range(t)
        ]
    return torch.tensor([target in held[i] for i, target in enumerate(asked.tolist())])


@wrong("ch15-sees", "a hidden token isn't shown, but its position passes on")
def sees_by_powers(mask, layers, shown, asked):
    t = len(mask)
    steps = torch.eye(t) + (mask & shown).float()
    ways = torch.linalg.matrix_power(steps, layers) * shown
    return (ways[torch.arange(t), asked] > 0) & (asked >= 0)


WRONG["ch15-sees"] = """
for _ in range(layers): -> for _ in range(1):  # one layer is followed
range(layers) -> range(len(mask))  # for more layers than there are
holds = holds | gets -> holds = gets  # keeps what it held
& (asked >= 0) -> # isn't the last position
holds = holds & shown -> # is nowhere
mask.float() @ holds.float() -> holds.float() @ mask.mT.float()  # who attends to i
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
