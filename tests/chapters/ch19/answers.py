"""Answers to the exercises of chapter 19."""

import math

import torch

from tests.exercises.answers import right, wrong


@right("ch19-round")
def next_round(model, tokens, sure, lengths, r, rounds, mask):
    read, rows = tokens.clone(), []
    for row, (chances, n) in enumerate(zip(sure, lengths.tolist(), strict=True)):
        by_chance = sorted(range(n), key=lambda i: chances[i])
        rows += [(row, i) for i in by_chance[: math.floor(n * (rounds - r) / rounds)]]
    for row, i in rows:
        read[row, i] = mask
    logits = model(read)
    written, chances = tokens.clone(), sure.clone()
    for row, i in rows:
        best = logits[row, i].argmax()
        written[row, i] = best
        chances[row, i] = (logits[row, i, best] - logits[row, i].logsumexp(0)).exp()
    return written, chances


@right("ch19-schedule")
def schedules(lengths, rounds):
    hidden = [
        [n - -(-n * r // rounds) for n in lengths.tolist()] for r in range(rounds)
    ]
    new = [
        [sum(i * rounds // n == r for i in range(n)) for n in lengths.tolist()]
        for r in range(rounds)
    ]
    return torch.tensor(hidden), torch.tensor(new)


@right("ch19-bound")
def bound(logits, labels, masked, share, pad):
    bits = []
    for row, text, hidden, t in zip(logits, labels, masked, share, strict=True):
        at = (hidden & (text != pad)).nonzero().flatten()
        logs = row[at].softmax(-1)[range(len(at)), text[at]].log2()
        bits.append(-logs.sum() / t)
    return torch.stack(bits)


@right("ch19-factorised")
def lost_bits(texts, p, blocks):
    """The divergence itself, text by text."""
    lost, rows = 0.0, texts.tolist()

    def chance(places, of):
        same = [all(row[i] == of[i] for i in places) for row in rows]
        return sum(q for q, one in zip(p.tolist(), same, strict=True) if one)

    for row, q in zip(rows, p.tolist(), strict=True):
        written, seen = 1.0, []
        for block in blocks:
            before = chance(seen, row) if q else 1.0
            for i in block:
                written *= chance([*seen, i], row) / before
            seen = seen + block
        total = chance(range(len(row)), row)  # texts may be alike
        lost += q * math.log2(total / written) if q else 0.0
    return torch.tensor(lost).to(p.dtype)


@right("ch19-fault")
def trained_and_read(logits, length_logits, labels, hidden, pad, mask):
    ids = [i for i in range(logits.shape[-1]) if i not in (pad, mask)]
    chances = logits[..., ids].softmax(-1)  # of the real ones alone
    place = {one: i for i, one in enumerate(ids)}
    nats = [
        -chances[i, j, place[labels[i, j].item()]].log()
        for i, j in hidden.nonzero().tolist()
    ]
    lengths = [sum(one != pad for one in row) for row in labels.tolist()]
    length_loss = torch.nn.functional.cross_entropy(
        length_logits, torch.tensor(lengths)
    )
    sure, best = chances.max(-1)
    return torch.stack(nats).mean(), length_loss, torch.tensor(ids)[best], sure


@wrong("ch19-round", "the model reads the old guesses")
def reads_old_guesses(model, tokens, sure, lengths, r, rounds, mask):
    best, guess = model(tokens).softmax(-1).max(-1)
    tokens, sure = tokens.clone(), sure.clone()
    for row, n in enumerate(lengths.tolist()):
        least = sure[row, :n].argsort()[: n * (rounds - r) // rounds]
        tokens[row, least], sure[row, least] = guess[row, least], best[row, least]
    return tokens, sure
