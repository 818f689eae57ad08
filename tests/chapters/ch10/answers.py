"""Answers to the exercises of chapter 10."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import WRONG, right

# ---- mean and maximum of what is real ------------------------------------------


@right("ch10-pooling")
def mean_and_max(states, lengths):
    rows = [text[:n] for text, n in zip(states, lengths.tolist(), strict=True)]
    pairs = [torch.cat([row.mean(dim=0), row.max(dim=0).values]) for row in rows]
    return torch.stack(pairs)


WRONG["ch10-pooling"] = """
states.masked_fill(hidden, 0.0).sum(dim=1) / lengths[:, None]
    states.mean(dim=1)  # padding is averaged
    states.masked_fill(hidden, 0.0).mean(dim=1)  # padding counts as zeros
states.masked_fill(hidden, -torch.inf).amax(dim=1)
    states.amax(dim=1)  # among padding
    states.masked_fill(hidden, 0.0).amax(dim=1)  # above all negative numbers
    states.masked_fill(hidden, -100.0).amax(dim=1)  # lower than what padding is
    states.masked_fill(hidden, -1e9).amax(dim=1)  # than what padding is filled with
[mean, largest] -> [largest, mean]  # the maximum comes first
"""

# ---- loss and decisions --------------------------------------------------------


@right("ch10-labels")
def loss_and_yes(logits, answers, thresholds):
    loss = F.binary_cross_entropy_with_logits(logits, answers.to(logits.dtype))
    return loss, logits > (thresholds / (1 - thresholds)).log()


WRONG["ch10-labels"] = """
F.softplus(logits) - answers * logits
    F.binary_cross_entropy(logits.sigmoid(), answers, reduction="none")  # expected
    -answers * logits.log_softmax(dim=-1)  # makes labels rivals
logits.sigmoid() > thresholds
    logits > thresholds  # are compared with logits
    logits.sigmoid() > 0.5  # not the label's own threshold
loss.mean() -> loss.sum()  # added up
"""

# ---- how good can a blind model be? --------------------------------------------


@right("ch10-blind")
def blind_ceiling(texts, answers):
    bags = [sorted(text) for text in texts]
    right = 0
    for i, bag in enumerate(bags):
        if bag not in bags[:i]:
            met = [answers[j] for j, other in enumerate(bags) if other == bag]
            right += max(met.count(0), met.count(1))
    return right / len(texts)


WRONG["ch10-blind"] = """
tuple(sorted(text))
    tuple(text)  # in its order
    tuple(sorted(set(text)))  # a bag counts its words
    sum(text)  # may have the same sum
max(counts.values()) -> min(counts.values())  # the rarer answer
right / len(texts)
    right / len(bags)  # divided by the bags
    sum(max(n.values()) / sum(n.values()) for n in bags.values()) / len(bags)
        # each bag counts the same
"""

# ---- find the fault: a macro F1 ------------------------------------------------


@right("ch10-macro")
def macro_f1(batches):
    logits, answers = (torch.cat(several) for several in zip(*batches, strict=True))
    scores = []
    for said, is_yes in zip(logits.T.sigmoid() > 0.5, answers.T > 0, strict=True):
        total = int(said.sum() + is_yes.sum())
        scores.append(2 * int((said & is_yes).sum()) / total if total else 0.0)
    return sum(scores) / len(scores)


WRONG["ch10-macro"] = """
(yes & (answers == 1)) -> (yes == (answers == 1))  # never says yes
logits > 0 -> logits > 0.5  # which logit is that
each.mean() -> 2 * hits.sum() / (said + are).sum().clamp(min=1)  # : does a rare label
(said + are).clamp(min=1) -> (said + are)  # 0 divided by 0
"""

# ---- cool the logits -----------------------------------------------------------


@right("ch10-temperature")
def cooled(validation, test):
    logits, answers = validation
    low, high = 0.1, 100.0
    for _ in range(40):
        by = (low * high) ** 0.5
        slope = (logits * ((logits / by).sigmoid() - answers)).mean()
        low, high = (by, high) if slope > 0 else (low, by)
    logits, answers = test
    return by, F.binary_cross_entropy_with_logits(logits / by, answers)


WRONG["ch10-temperature"] = """
logits / by
    logits * by  # a temperature divides
    (logits.sigmoid() / by).clamp(1e-6, 1 - 1e-6).logit()  # turns yes into no
nats(validation, by) -> nats(test, by)  # fitted on test
nats(test, best) -> nats(validation, best)  # not that of test
nats(test, best) -> nats(test, 1.0)  # without the temperature
torch.logspace(-1, 2, 1000) -> torch.logspace(-1, 2, 20)  # to one percent
"""
