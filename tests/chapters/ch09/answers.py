"""Answers to the exercises of chapter 09."""

import math

import torch

from tests.exercises.answers import RIGHT, right


@right("ch09-error-rate")
def error_rate(outputs, references):
    def edits(one, other):  # the whole table, by recursion
        if not one or not other:
            return len(one) + len(other)
        if one[0] == other[0]:
            return edits(one[1:], other[1:])
        ways = (one[1:], other[1:]), (one[1:], other), (one, other[1:])
        return 1 + min(edits(*way) for way in ways)

    found = []
    for output, answers in zip(outputs, references, strict=True):
        rows = [(edits(output, a), i, len(a)) for i, a in enumerate(answers)]
        found.append(min(rows))
    return torch.tensor(sum(f[0] for f in found) / sum(f[2] for f in found)).item()


@right("ch09-beam-step")
def beam_step(totals, logits, end):
    rows = logits.log_softmax(-1).tolist()
    every = [
        (total + log, i, j)
        for i, (total, row) in enumerate(zip(totals.tolist(), rows, strict=True))
        for j, log in enumerate(row)
    ]
    k = len(rows)
    every = sorted(every, reverse=True)[: 2 * k]
    over = [one for one in every[:k] if one[2] == end]
    alive = [one for one in every if one[2] != end][:k]

    def column(found, n):
        kind = logits.dtype if n == 0 else torch.int64
        return torch.tensor([one[n] for one in found], dtype=kind)

    living = (column(alive, n) for n in (1, 2, 0))
    return *living, column(over, 1), column(over, 0)


@right("ch09-bpe-step")
def bpe_step(words, times):
    from collections import Counter

    pairs = []
    for pieces, n in zip(words, times, strict=True):
        for i in range(len(pieces) - 1):
            pairs += [(pieces[i], pieces[i + 1])] * n
    best, _ = Counter(pairs).most_common(1)[0]
    joined = []
    for pieces in words:
        word = []
        for piece in pieces:
            if word and word[-1] == best[0] and piece == best[1]:
                word[-1] = (best[0] + best[1],)  # a tuple: not to be joined again
            else:
                word.append(piece)
        joined.append([one[0] if isinstance(one, tuple) else one for one in word])
    return best, joined


@right("ch09-best-and-stop")
def best_and_stop(finished, alive, length, most, alpha):
    def score(log, n):
        return log * math.exp(-alpha * math.log((5 + n) / 6))

    best = sorted(range(len(finished)), key=lambda i: score(*finished[i]))[-1]
    lengths = range(length, most + 1)
    hopes = [score(log, n) for log in alive for n in lengths]
    return best, max(hopes), not any(h > score(*finished[best]) for h in hopes)


RIGHT["ch09-best-and-stop"] = (
    "max(scores) >= -> torch.tensor(max(scores)) >=  # a tensor"
)


@right("ch09-bleu")
def corpus_bleu(outputs, references):
    logs = 0.0
    for n in (1, 2):
        found = every = 0
        for output, reference in zip(outputs, references, strict=True):
            left = [reference[i : i + n] for i in range(len(reference) - n + 1)]
            for i in range(len(output) - n + 1):
                every += 1
                if output[i : i + n] in left:
                    left.remove(output[i : i + n])
                    found += 1
        if not found:
            return 0.0
        logs += math.log(found / every) / 2
    ratio = sum(map(len, references)) / sum(map(len, outputs))
    return 100 * math.exp(logs + min(0.0, 1 - ratio))
