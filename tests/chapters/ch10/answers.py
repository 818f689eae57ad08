"""Answers to the exercises of chapter 10."""

import torch
from torch.nn import functional as F

from tests.exercises.answers import RIGHT, right


@right("ch10-pooling")
def mean_and_max(states, lengths):
    rows = [text[:n] for text, n in zip(states, lengths.tolist(), strict=True)]
    pairs = [torch.cat([row.mean(dim=0), row.max(dim=0).values]) for row in rows]
    return torch.stack(pairs)


@right("ch10-labels")
def loss_and_yes(logits, answers, thresholds):
    loss = F.binary_cross_entropy_with_logits(logits, answers.to(logits.dtype))
    return loss, logits > (thresholds / (1 - thresholds)).log()


RIGHT["ch10-labels"] = """
loss.mean() -> loss.mean().item()  # a number of Python's is one number, too
"""


@right("ch10-blind")
def blind_ceiling(texts, answers):
    bags = [sorted(text) for text in texts]
    right = 0
    for i, bag in enumerate(bags):
        if bag not in bags[:i]:
            met = [answers[j] for j, other in enumerate(bags) if other == bag]
            right += max(met.count(0), met.count(1))
    return right / len(texts)


@right("ch10-macro")
def macro_f1(batches):
    logits, answers = (torch.cat(several) for several in zip(*batches, strict=True))
    scores = []
    for said, is_yes in zip(logits.T.sigmoid() > 0.5, answers.T > 0, strict=True):
        total = int(said.sum() + is_yes.sum())
        scores.append(2 * int((said & is_yes).sum()) / total if total else 0.0)
    return sum(scores) / len(scores)


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
