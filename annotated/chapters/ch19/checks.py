"""The exercises of chapter 19; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import Function, exercise, faults

# ---- a round of mask-predict ---------------------------------------------------


@exercise(
    "ch19-round",
    "expected the tokens after this round, and the probability that each one had when "
    "it was written",
)
def next_round(model, tokens, sure, lengths, r, rounds, mask):
    """Tokens, and how sure each one was when it was written, (b, t) each."""
    real = torch.arange(tokens.shape[1]) < lengths[:, None]  # (b, t)
    number = lengths * (rounds - r) // rounds
    order = sure.masked_fill(~real, torch.inf).argsort(dim=1)
    rank = order.argsort(dim=1)  # 0: the least sure
    hidden = rank < number[:, None]
    chances = model(tokens.masked_fill(hidden, mask)).softmax(dim=-1)
    best, guess = chances.max(dim=-1)
    return guess.where(hidden, tokens), best.where(hidden, sure)


next_round.instead("""
lengths * (rounds - r) // rounds
    lengths * r // rounds  # ever more are hidden: the first round hides all
    lengths * (rounds - r - 1) // rounds
        # the first round, r = 0, hides all: you hide what the round after it hides
    -(-lengths * (rounds - r) // rounds)  # the number is rounded down
    tokens.shape[1] * (rounds - r) // rounds + 0 * lengths
        # padding is counted: the number follows from each row's own length
    lengths // rounds
        # every round hides as many: round r hides ⌊N (T − r) / T⌋
sure.masked_fill(~real, torch.inf)
    sure  # padding is hidden in place of real positions
    -sure.masked_fill(~real, -torch.inf)
        # the surest are hidden: those that you doubt most should be
order.argsort(dim=1) -> order
        # argsort says which position comes first, not which rank a position has
number[:, None] -> number[:1, None]
        # the first row's number is used for all rows
model(tokens.masked_fill(hidden, mask)) -> model(tokens)
        # the model reads the old guesses: nothing is hidden from it
model(tokens.masked_fill(hidden, mask)) -> model(torch.full_like(tokens, mask))
        # the model sees masks alone: what stays is what helps it
.softmax(dim=-1) -> .log_softmax(dim=-1)
        # probabilities are compared, not their logarithms: old ones are between 0 and 1
.softmax(dim=-1) -> .mul(1.0)  # logits are no probabilities
guess.where(hidden, tokens) -> guess
        # what stays is guessed anew: only what was hidden is
best.where(hidden, sure) -> best
        # a token that stays keeps the probability that it had when it was written
best.where(hidden, sure) -> sure
        # a token that is written anew has another probability
guess.where(hidden, tokens), best.where(hidden, sure)
    guess.where(hidden, tokens)  # … expected 2 values
""")


def reader(draw, v):
    """A model whose guess at a position depends on what stands there and beside."""
    a, b, c = (round(draw.number(0.5, 3.0), 2) for _ in range(3))
    text = (
        f"3 * torch.sin({a} * (x[..., None] + 1.0).float() * torch.arange(1, {v + 1})"
        f" + {b} * x.roll(1, 1)[..., None] + {c} * x.roll(-1, 1)[..., None])"
    )
    return Function(text)


@next_round.each("""
the first round -> [5], 0, 4
the second of four -> [8], 1, 4
rows of different lengths -> [7, 3, 5], 1, 3
the last round -> [4, 6], 4, 5
more rounds than symbols: nothing is hidden -> [3, 2], 7, 8
""")
def _(draw, lengths, r, rounds):
    b, t = len(lengths), max(lengths) + (len(lengths) > 1)
    sure = torch.stack([draw.uniform(0.1, 1, t) for _ in range(b)])
    sure = sure.masked_fill(torch.arange(t) >= torch.tensor(lengths)[:, None], 0.0)
    tokens = draw.integers(1, 8, b, t)
    return reader(draw, 9), tokens, sure, torch.tensor(lengths), r, rounds, 9


# ---- schedules -----------------------------------------------------------------


@exercise(
    "ch19-schedule",
    "expected how many symbols mask-predict hides, and how many diffusion writes, in "
    "each round of each text",
)
def schedules(lengths, rounds):
    """What mask–predict hides, and what diffusion writes, (rounds, b) each."""
    r = torch.arange(rounds)[:, None]
    hidden = lengths * (rounds - r) // rounds
    there = -(-lengths * r // rounds)  # before round r, rounded up
    after = -(-lengths * (r + 1) // rounds)
    return hidden, after - there


schedules.instead("""
lengths * (rounds - r) // rounds
    -(-lengths * (rounds - r) // rounds)  # what is hidden is rounded down
    lengths * (rounds - r - 1) // rounds  # the first round hides all
    lengths * r // rounds  # the first round hides all, and each later one fewer
-(-lengths * r // rounds) -> lengths * r // rounds
-(-lengths * (r + 1) // rounds) -> lengths * (r + 1) // rounds
        # what is there after a round is rounded up, not down
after - there
    after  # that's all that is there after a round: which part of it is new?
    there  # that's what is there before a round: which part of it is new?
    lengths // rounds + 0 * r  # the rest of the division is never written
    -(-lengths // rounds) + 0 * r  # that's more in all than the text has symbols
hidden, after - there
    hidden.mT, (after - there).mT  # a row for each round, a column for each text
    hidden  # … expected 2 values
""")


@schedules.each("""
the example: nine symbols, four rounds -> [9], 4
several texts -> [3, 7, 10, 4], 4
one round -> [5, 2], 1
more rounds than symbols -> [3, 2], 5
""")
def _(draw, lengths, rounds):
    if len(lengths) > 1:
        lengths = [n + rounds * draw.integer(0, 3) for n in lengths]
    return torch.tensor(lengths), rounds


@schedules.case("drawn")
def _(draw):
    return draw.integers(1, 30, 6), draw.integer(3, 11)


# ---- a bound in bits -----------------------------------------------------------


@exercise(
    "ch19-bound",
    "expected, for each text, the bits of its masked symbols, added up and divided by "
    "the share of masks",
)
def bound(logits, labels, masked, share, pad):
    """A draw of the bound on −log₂ p of each text, in bits, (b,)."""
    import math

    costs = -logits.log_softmax(dim=-1).gather(-1, labels[..., None])[..., 0]
    counted = masked & (labels != pad)
    nats = costs.where(counted, 0.0).sum(dim=1)
    return nats / share / math.log(2)


bound.instead("""
counted = masked & (labels != pad)
    counted = masked  # padding that is masked counts, too
    counted = labels != pad  # symbols that weren't masked count: they can be read
    counted = ~masked & (labels != pad)
        # symbols that can be read count, and those that are hidden don't
costs.where(counted, 0.0).sum(dim=1)
    costs.where(counted, 0.0).sum(dim=1) / counted.sum(dim=1).clamp(min=1)
        # a mean over the masked: a text's costs are added up
    costs.where(counted, 0.0).mean(dim=1)
        # a mean over positions: a text's costs are added up
    costs.where(counted, 0.0).sum() / len(costs)
        # every text has a bound of its own
    (costs * counted).sum(dim=1)  # what isn't counted may be infinite: 0 · ∞ is NaN
nats / share / math.log(2)
    nats / math.log(2)  # without 1/t it is no bound: few masks cost little
    nats * share / math.log(2)  # the share divides, it doesn't multiply
    nats / share  # that's nats: a bit is ln 2 of them
    nats / share * math.log(2)  # a bit is ln 2 nats: divide by it
    nats / share.mean() / math.log(2)  # every text has its own share
    nats / masked.float().mean(dim=1).clamp(min=0.1) / math.log(2)
        # the share is the one that masks were drawn with, not the one that came out
-logits.log_softmax(dim=-1) -> logits.log_softmax(dim=-1)
        # the sign is wrong: a cost is positive
-logits.log_softmax(dim=-1) -> -logits.softmax(dim=-1)
        # a cost is a logarithm of a probability
-logits.log_softmax(dim=-1) -> -logits  # logits aren't normalised
""")


@bound.each("""
one text -> [4]
texts of different lengths -> [6, 2, 4]
hardly anything is masked -> [7, 5], 0.15
all is masked -> [3, 5], 1.0
what is read may be impossible: minus infinity -> [5, 6, 2], 0.5, "impossible"
""")
def _(draw, lengths, t=None, kind=""):
    b, n = len(lengths), max(lengths) + 1
    real = torch.arange(n) < torch.tensor(lengths)[:, None]
    labels = draw.integers(1, 6, b, n).masked_fill(~real, 0)
    share = draw.uniform(0.2, 0.9, b) if t is None else torch.full((b,), t)
    masked = draw.uniform(0, 1, b, n) < share[:, None]
    logits = 2 * draw.normal(b, n, 7)
    if kind:
        for i, j in (~masked).nonzero().tolist():
            logits[i, j, labels[i, j]] = -torch.inf
    return logits, labels, masked, share, 0


@bound.case("gradients reach the logits", gradients=True)
def _(draw):
    masked = torch.tensor([[True, False, True], [True, True, False]])
    labels = draw.integers(1, 4, 2, 3)
    return draw.normal(2, 3, 5), labels, masked, torch.tensor([0.5, 0.8]), 0


# ---- a factorisation error by hand ---------------------------------------------


@exercise(
    "ch19-factorised",
    "expected, added up over the blocks, what their symbols cost each for itself, "
    "minus what they cost together",
    tolerance=1e-4,
)
def lost_bits(texts, p, blocks):
    """What is lost in bits if these blocks are written one after the other."""
    import math

    def bits(places):
        """The entropy of some places together."""
        _, which = texts[:, places].unique(dim=0, return_inverse=True)
        q = torch.zeros_like(p).index_add(0, which, p)
        return -torch.special.xlogy(q, q).sum() / math.log(2)

    seen, lost = [], 0.0
    for block in blocks:
        before = bits(seen) if seen else 0.0
        apart = sum(bits([*seen, i]) - before for i in block)
        together = bits([*seen, *block]) - before
        lost, seen = lost + apart - together, [*seen, *block]
    return float(lost)


lost_bits.instead("""
sum(bits([*seen, i]) - before for i in block)
    sum(bits([i]) for i in block)  # a later block sees what was written before it
    sum(bits([*seen, i]) for i in block)
        # what is seen is paid for already, and not again by each symbol
bits([*seen, *block]) - before
    bits(block)  # what a block costs together depends on what was seen before it
    0.0  # what a block costs together has to be paid in any case: it isn't lost
lost + apart - together
    apart - together  # that's the last block alone: all of them lose
    lost + together - apart  # the sign is wrong: apart is never cheaper
/ math.log(2) -> / 1.0  # that's nats: a bit is ln 2 of them
index_add(0, which, p) -> index_add(0, which, torch.full_like(p, 1 / len(p)))
        # texts aren't equally likely: p says how likely each is
together, [*seen, *block] -> together, [*block]  # … minus what they cost together
""")


@lost_bits.case("the example: New York and San Diego, both words at once")
def _(draw):
    p = torch.tensor([0.5, 0.5])
    return draw.integers(0, 9, 1, 2) + torch.tensor([[0, 10], [10, 0]]), p, [[0, 1]]


@lost_bits.each("""
one after the other: nothing is lost -> 5, 3, [[2], [0], [1]]
both halves -> 6, 4, [[0, 1], [2, 3]]
in another order -> 9, 5, [[3, 0], [4], [2, 1]]
all at once -> 7, 4, [[0, 1, 2, 3]]
one, then three -> 7, 4, [[1], [3, 0, 2]]
""")
def _(draw, n, t, blocks):
    p = draw.uniform(0.1, 1, n).double()
    texts = draw.integers(0, 1, n, t)
    return texts, (p / p.sum()).to(draw.dtype), blocks


@lost_bits.case("a text that never comes")
def _(draw):
    texts = torch.tensor([[0, 0, 1], [1, 1, 0], [2, 2, 2]])
    a = draw.number(0.2, 0.45)
    return texts, torch.tensor([a, 1 - a, 0.0]), [[0, 1], [2]]


# ---- find the fault ------------------------------------------------------------


@exercise(
    "ch19-fault",
    "expected four: the mean loss of hidden symbols, the loss of the lengths, the best "
    "symbols that aren't padding or [MASK], and their probabilities",
    faults("""
[hidden].mean() -> [labels != pad].mean()
        # of which symbols is the loss the mean, and which of them can be read?
(labels != pad).sum(dim=1) -> torch.full_like(labels[:, 0], labels.shape[1])
        # how long is a short text in a batch with a long one?
never[pad] = never[mask] = True -> never[pad] = True
        # how sure is it of [MASK], where it likes that best?
"""),
)
def trained_and_read(logits, length_logits, labels, hidden, pad, mask):
    """The loss of symbols, that of lengths, guesses and their probabilities."""
    never = torch.zeros(logits.shape[-1], dtype=torch.bool)
    never[pad] = never[mask] = True
    logs = logits.masked_fill(never, -torch.inf).log_softmax(dim=-1)
    loss = -logs.gather(-1, labels[..., None])[..., 0][hidden].mean()
    lengths = (labels != pad).sum(dim=1)
    length_logs = length_logits.log_softmax(dim=-1)
    length_loss = -length_logs.gather(1, lengths[:, None]).mean()
    sure, guess = logs.exp().max(dim=-1)
    return loss, length_loss, guess, sure


trained_and_read.instead("""
[hidden].mean()
    [hidden].sum()  # the loss is a mean over what is hidden
    [hidden].sum() / labels.numel()
        # what is hidden is divided by all positions
(labels != pad).sum(dim=1)
    hidden.sum(dim=1)
        # the length is that of the whole text, not of what is hidden
    (labels != pad).sum(dim=1) - 1  # a length is one too small
never[pad] = never[mask] = True
    never[mask] = True  # padding is among the answers: the length is known
    pass  # padding and [MASK] are among the answers
sure, guess = logs.exp().max(dim=-1)
    sure, guess = logs.max(dim=-1)  # those are logarithms of probabilities
    sure, guess = logits.masked_fill(never, -torch.inf).softmax(dim=-1).min(dim=-1)
        # … expected four
    guess = labels; sure = logs.exp().gather(-1, guess[..., None])[..., 0]
        # that's how sure it is of the label: reading, there's none
    sure = logits.softmax(dim=-1).amax(dim=-1); guess = logs.argmax(dim=-1)
        # the probabilities are those of a softmax that still has [MASK] in it
""")


@trained_and_read.each("""
one text -> [4]
texts of different lengths -> [6, 2, 4]
all texts are long -> [5, 5]
[MASK] is what it likes best -> [3, 5, 4], 4.0
""")
def _(draw, lengths, liked=0.0):
    b, n, v = len(lengths), max(lengths), 8
    real = torch.arange(n) < torch.tensor(lengths)[:, None]
    labels = draw.integers(1, v - 2, b, n).masked_fill(~real, 0)
    hidden = (draw.uniform(0, 1, b, n) < 0.5) & real
    hidden[:, 0], hidden[:, 1] = True, False
    logits = draw.normal(b, n, v)
    logits[..., v - 1] += liked
    return logits, draw.normal(b, n + 2), labels, hidden, 0, v - 1
