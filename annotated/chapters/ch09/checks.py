"""The exercises of chapter 09; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import exercise, faults

# ---- the error rate with several answers ---------------------------------------


def distance(written, wanted):
    row = list(range(len(wanted) + 1))
    for i, symbol in enumerate(written, start=1):
        above, row = row, [i]
        for j, other in enumerate(wanted, start=1):
            replaced = above[j - 1] + (symbol != other)
            row.append(min(replaced, above[j] + 1, row[j - 1] + 1))
    return row[-1]


@exercise(
    "ch09-error-rate",
    "expected the edits to the nearest answers, added up and divided by the lengths of "
    "these answers, added up",
)
def error_rate(outputs, references):
    """Edits to the nearest answers, divided by the length of these answers."""
    edits = length = 0
    for output, answers in zip(outputs, references, strict=True):
        distances = [distance(output, answer) for answer in answers]
        nearest = distances.index(min(distances))
        edits += distances[nearest]
        length += len(answers[nearest])
    return edits / length


error_rate.instead("""
edits / length -> min(1.0, edits / length)
        # the rate is above 1 where outputs are much too long: yours stops at 1
edits += distances[nearest] -> edits += int(distances[nearest] > 0)
length += len(answers[nearest]) -> length += 1
        # that's the share of outputs with an edit; edits and symbols are counted
zip(outputs, references, strict=True)
    ((o, a) for o, a in zip(outputs, references, strict=True) if o)
        # an output that is empty isn't left out: all of its answer is missing
distances.index(min(distances))
    0  # only the first answer of each output counts
    min(range(len(answers)), key=lambda j: (distances[j], len(answers[j])))
        # of answers that are equally near the shortest one counts, not the first
    min(range(len(answers)), key=lambda j: (distances[j], -len(answers[j])))
        # of answers that are equally near the longest one counts, not the first
    len(distances) - 1 - distances[::-1].index(min(distances))
        # of answers that are equally near the last one counts, not the first
    min(range(len(answers)), key=lambda j: distances[j] / len(answers[j]))
        # the answer with the lowest rate counts, not the one with the fewest edits
    min(range(len(answers)), key=lambda j: abs(len(answers[j]) - len(output)))
        # the answer of the nearest length counts, not the one with the fewest edits
    distances.index(max(distances))  # the farthest answer counts, not the nearest
len(answers[nearest])
    len(output)  # divided by the length of what was written, not of the answers
    len(answers[0])  # the length is that of the first answer, not of the nearest one
    sum(map(len, answers))  # the lengths of all answers are added up
    max(len(output), len(answers[nearest]))
        # divided by the longer of output and answer: that rate is never above 1
distances[nearest] -> int(distances[nearest] > 0)
        # an output with several edits counts as one error: that's for whole outputs
edits += distances[nearest] -> edits += distances[nearest] / len(answers[nearest])
length += len(answers[nearest]) -> length += 1
        # the mean of each output's own rate: add up first, and divide once
edits / length -> 1 - edits / length  # that's the share that is right
""")


@error_rate.case("the example: three edits, five symbols")
def _(draw):
    a, b, c, d, e = draw.shuffled(range(1, 6))
    return [[a, b], [c, d, e]], [[[a, c, d, e], [a, b, c]], [[c, b], [c, b, d, a]]]


def texts(draw, number, low, high):
    sizes = (draw.integer(low, high) for _ in range(number))
    return [draw.integers(1, 4, size).tolist() for size in sizes]


@error_rate.each("""
a single answer each -> 5, 1, 2, 7
several answers, of different lengths -> 6, 3, 2, 8
outputs that are much too long: a rate above 1 -> 4, 2, 1, 2
""")
def _(draw, number, several, low, high):
    outputs = texts(draw, number, 5, 9)
    return outputs, [texts(draw, several, low, high) for _ in outputs]


@error_rate.each("""
equally near: the first is the longest -> 2, 0, 1
equally near: the first is the shortest -> 0, 2, 1
""")
def _(draw, *order):
    a, b, c = draw.shuffled(range(1, 4))
    answers = [a], [c, b], [a, b, c]  # one edit each
    long = [a, b, c] * 3  # so that the lengths of outputs tell nothing of answers'
    return [[a, b], long], [[answers[i] for i in order], [long[:5]]]


@error_rate.case("one edit of two symbols is nearer than two of five")
def _(draw):
    a, b, c = draw.shuffled(range(1, 4))
    return [[a, b, c]], [[[a, c], [a, b, c, c, c]]]


@error_rate.case("an output that is empty")
def _(draw):
    return [[], [1, 2]], [texts(draw, 2, 3, 6), [[1, 2, 3]]]


# ---- a step of beam search -----------------------------------------------------


@exercise(
    "ch09-beam-step",
    "these aren't the five: parents, symbols and totals of the likeliest k that live "
    "on, then parents and totals of those among the first k that ended",
    symptoms=lambda result, *_: (
        "parents and symbols are whole numbers, also where there are none: an empty "
        "list becomes a float tensor without dtype=torch.int64"
        if any(result[i].is_floating_point() for i in (0, 1, 3))
        else None
    ),
)
def beam_step(totals, logits, end):
    """Parents, symbols, totals of what lives on; parents, totals of what ended."""
    k, v = logits.shape
    grown = totals[:, None] + logits.log_softmax(dim=-1)  # (k, v)
    best, places = grown.flatten().topk(2 * k)
    parents, symbols = places // v, places % v
    alive = (symbols != end).nonzero().flatten()[:k]
    over = (symbols[:k] == end).nonzero().flatten()
    kept = parents[alive], symbols[alive], best[alive]
    return *kept, parents[over], best[over]


beam_step.instead("""
totals[:, None] + logits.log_softmax(dim=-1)
    logits.log_softmax(dim=-1)  # the totals of the parents are forgotten, or cancelled
        by a softmax after the sum
    totals[:, None] + logits  # logits are no log-probabilities: each row needs its
        log-softmax
    totals[:, None] + logits.softmax(dim=-1)
        # probabilities are added; it's their logarithms that add up
    totals[:, None] + logits.flatten().log_softmax(0).view(k, v)
        # the softmax runs over all rows together; each hypothesis has its own
    (totals[:, None] + logits).flatten().log_softmax(0).view(k, v)
        # the softmax runs over all sums together; it belongs to each row of logits
(symbols != end).nonzero().flatten()[:k]
    (symbols[:k] != end).nonzero().flatten()
        # fewer than k live on: those that end must be replaced by the next best
    (symbols != end).nonzero().flatten()  # more than k live on
    torch.arange(k)  # hypotheses that have ended live on
topk(2 * k) -> topk(k + (k + 1) // 2)
        # all k parents may end at once: it takes the 2k likeliest that k live on
(symbols[:k] == end) -> (symbols == end)
        # an ended hypothesis counts only if it is among the k likeliest
best, places = grown.flatten().topk(2 * k)
    others = grown < grown.topk(min(k, v)).values[:, -1:]; best, places =
        grown.masked_fill(others, -torch.inf).flatten().topk(2 * k)
symbols != end -> (symbols != end) & (best > -torch.inf)
        # the 2k likeliest of all parents together, not k of each: one parent may own
        most of them
best, places = grown.flatten().topk(2 * k)
    others = grown < grown.topk(2).values[:, -1:]; best, places =
        grown.masked_fill(others, -torch.inf).flatten().topk(2 * k)
        # the 2k likeliest of all parents together, not two of each: one parent may own
        most of them
places // v, places % v
    places % v, places // v  # parents and symbols are exchanged
    places // k, places % k  # a row of logits has v entries, not k
parents[alive], symbols[alive], best[alive] ->
        torch.arange(len(alive)), symbols[alive], best[alive]
        # whose child is it? The parent of the i-th best need not be the i-th hypothesis
parents[over] -> parents[over] if len(over) else torch.tensor([])  # … dtype=torch.int64
""")


def likely(draw, shares, totals, dtype=torch.float32):
    """Log-probabilities plus a number for each row; the first column is the end's."""
    table = torch.tensor(shares, dtype=dtype).log()
    order = torch.tensor(draw.shuffled(range(table.shape[1])))
    end = int((order == 0).nonzero())
    shift = draw.uniform(2, 5, len(table), 1).to(dtype)
    return torch.tensor(totals, dtype=dtype), table[:, order] + shift, end


beam_step.each("""
the example: one of the two likeliest has ended ->
        [[0.45, 0.4, 0.1, 0.05], [0.2, 0.15, 0.05, 0.6]], [-1.0, -1.3]
what has ended is less likely than the two best ->
        [[0.35, 0.5, 0.1, 0.05], [0.2, 0.19, 0.6, 0.01]], [-1.0, -1.2]
both survivors have the same parent, the second one ->
        [[0.1, 0.3, 0.35, 0.25], [0.1, 0.5, 0.35, 0.05]], [-3.0, -1.0]
a beam of one, and the end is its best -> [[0.5, 0.2, 0.3]], [-1.0]
all four parents end -> [[0.6, 0.2, 0.12, 0.08], [0.6, 0.19, 0.11, 0.1], [0.6, 0.18,
        0.13, 0.09], [0.6, 0.17, 0.14, 0.09]], [-1.0, -1.1, -1.2, -1.3]
one parent owns the six best -> [[0.25, 0.2, 0.18, 0.14, 0.1, 0.08, 0.05], [0.1, 0.3,
        0.2, 0.15, 0.12, 0.08, 0.05], [0.3, 0.1, 0.25, 0.1, 0.08, 0.12, 0.05]],
        [-1.0, -5.0, -6.0]
""")(likely)


@beam_step.each("""
a beam of one -> 1, 5
a wide beam -> 5, 9
more hypotheses than symbols -> 6, 4
""")
def _(draw, k, v):
    totals = -draw.uniform(0, 2, k).sort().values
    return totals, 2 * draw.normal(k, v) + 3 * draw.normal(k, 1), draw.integer(0, v - 1)


# ---- a step of byte-pair encoding ----------------------------------------------


@exercise(
    "ch09-bpe-step",
    "expected the pair of neighbours that is met most often, and the words in which it "
    "is joined",
)
def bpe_step(words, times):
    """The commonest pair of neighbours, and the words in which it is joined."""
    from collections import Counter
    from itertools import pairwise

    counts = Counter()
    for pieces, n in zip(words, times, strict=True):
        for pair in pairwise(pieces):
            counts[pair] += n
    best = max(counts, key=counts.get)
    joined = []
    for pieces in words:
        word, i = [], 0
        while i < len(pieces):
            if tuple(pieces[i : i + 2]) == best:
                word.append("".join(best))
                i += 2
            else:
                word.append(pieces[i])
                i += 1
        joined.append(word)
    return best, joined


bpe_step.instead("""
max(counts, key=counts.get)
    max(counts, key=lambda p: sum(counts[q] * (p[0] + p[1] == q[0] + q[1]) for q in
        counts))
tuple(pieces[i : i + 2]) == best -> "".join(pieces[i : i + 2]) == "".join(best)
        # (a, bc) and (ab, c) are two pairs, although both become abc
in pairwise(pieces)
    in (p for p, q in zip(pairwise(pieces), [0, *pairwise(pieces)]) if p != q)
        # in aaa the pair (a, a) is met twice, and counts once
    in dict.fromkeys(pairwise(pieces))
        # a pair that stands in a word twice counts there once
counts[pair] += n
    counts[pair] += 1  # every word counts once; it counts as often as it stands there
    counts[pair] = max(counts[pair], n)
        # the counts of several words aren't added up
max(counts, key=counts.get)
    min(counts, key=counts.get)  # the rarest pair is joined, not the commonest
    max(reversed(counts), key=counts.get)
        # of pairs that are equally common the last one is taken, not the first
    max(counts, key=lambda p: (counts[p], max(n for w, n in zip(words, times) if p in
        pairwise(w))))
        # of equally common pairs the first one counts, not that of the commonest word
    max(counts, key=lambda p: (counts[p], -len("".join(p))))
        # of equally common pairs the first one counts, not the shortest
    max(sorted(counts), key=counts.get)
        # equally common pairs are ordered by their letters or by age, as on page 9c;
        here the one that is met first counts
    max(counts, key=lambda p: sum(counts[q] * (p[0] + p[1] == q[0] + q[1]) for q in
        counts))
        # (a, bc) and (ab, c) are two pairs: they don't count together
i += 2 -> i += 1  # a piece that was joined is joined a second time, or stays behind
tuple(pieces[i : i + 2]) == best
    tuple(pieces[i : i + 2]) == best and "".join(best) not in word
        # only the first occurrence in a word is joined
    set(pieces[i : i + 2]) == set(best) and len(pieces) > i + 1
        # neighbours in the other order are joined, too
word, i = [], 0
    word, i = " ".join(pieces).replace(" ".join(best), "".join(best)).split(), 99
        # joined in a text, where the pair is found inside longer pieces, too
""")


@bpe_step.case("the example: low, lower, newest")
def _(draw):
    return [[*"low"], [*"lower"], [*"newest"]], [5, 2, 6]


@bpe_step.case("the commonest word decides, not the most words")
def _(draw):
    a, b, c, d = draw.shuffled("pqrstu")[:4]
    return [[a, b, d], [d, a, b], [d, c, c, d]], [2, 1, draw.integer(5, 9)]


@bpe_step.case("pieces of several letters, twice in a word, and turned round")
def _(draw):
    a, b, c = draw.shuffled(["th", "in", "er", "on"])[:3]
    return [[a, b, c, a, b], [b, a, b, a], [c, b, a]], [3, 1, 1]


@bpe_step.each("""
a pair that stands in a word twice counts twice ->
        [["a", "b", "a", "b"], ["c", "d"]], [2, 3]
three in a row: the first two are joined ->
        [["b", "a", "a", "a"], ["a", "a", "a", "a", "b"], ["b", "a"]], [4, 3, 1]
words of one piece -> [["a"], ["b", "c"], ["a", "b", "c"], ["c"]], [9, 1, 1, 9]
what overlaps counts: a a in aaa -> [["a", "a", "a"], ["b", "c"]], [2, 3]
longer pieces end and begin as the pair does -> [["ca", "b"], ["a", "b"], ["a", "bd"]],
        [1, 5, 1]
equally common: in three words, and in commoner ones -> [["c", "d"], ["a", "b"], ["e",
        "c", "d"], ["a", "b", "e"], ["c", "d", "e"], ["b", "d"], ["b", "d", "a"], ["e",
        "a"]], [2, 3, 2, 2, 1, 3, 2, 4]
equally common: the first is longer -> [["ab", "cd"], ["d", "e"], ["bd", "ec"]], [3, 3,
        3]
two pairs with the same letters -> [["d", "e"], ["a", "bc"], ["ab", "c"], ["e", "d"]],
        [4, 3, 3, 1]
another pair with its letters -> [["d", "e"], ["a", "bc"], ["ab", "c"]], [4, 5, 2]
""")
def _(draw, words, times):
    names = dict(zip("abcde", draw.shuffled("pqrstu"), strict=False))
    return [["".join(map(names.get, piece)) for piece in w] for w in words], times


@bpe_step.case("equally common: the pair that is met first")
def _(draw):
    a, b, c, d, e, f = sorted(draw.shuffled("pqrstuvw")[:6])
    pairs = [[c, d], [a, b], [e, f]]  # in the middle, whichever way they are sorted
    return [*pairs, [f, e]], [3, 3, 3, draw.integer(1, 2)]


# ---- the best one, and may we stop? --------------------------------------------


@exercise(
    "ch09-best-and-stop",
    "expected the place of the best score, each with GNMT's penalty of its own length, "
    "the best score that a living one can get, and whether that is no better",
)
def best_and_stop(finished, alive, length, most, alpha):
    """The place of the best finished one, the bound, and whether to stop."""
    scores = [log / ((5 + n) / 6) ** alpha for log, n in finished]
    bound = max(alive) / ((5 + most) / 6) ** alpha
    return scores.index(max(scores)), bound, max(scores) >= bound


best_and_stop.instead("""
log / ((5 + n) / 6) ** alpha
    log  # finished hypotheses are compared without a penalty
    log / ((5 + length) / 6) ** alpha
        # one penalty for all: each finished hypothesis has a length of its own
    log / n**alpha  # finished ones get the plain penalty, n to the power of α
    log * ((5 + n) / 6) ** alpha  # multiplied by the penalty, not divided
    log / ((5 + n) / 6)  # α is missing in the scores
log / ((5 + n) / 6) ** alpha -> log / ((5 + n) / 6)
((5 + most) / 6) ** alpha -> ((5 + most) / 6)  # the penalty's exponent α is missing
log / ((5 + n) / 6) ** alpha -> log / (5 + n / 6) ** alpha
((5 + most) / 6) ** alpha -> (5 + most / 6) ** alpha
        # the penalty divides the sum of 5 and the length by 6, not the length alone
log / ((5 + n) / 6) ** alpha -> log / n
((5 + most) / 6) ** alpha -> most
        # log-probabilities are divided by the length: that's a mean, not GNMT's penalty
log / ((5 + n) / 6) ** alpha -> log / n**alpha
((5 + most) / 6) ** alpha -> most**alpha
        # that's the plain penalty, n to the power of α, not GNMT's
log / ((5 + n) / 6) ** alpha -> log
((5 + most) / 6) ** alpha -> 1  # log-probabilities are compared, without any penalty
((5 + most) / 6) ** alpha
    ((5 + length) / 6) ** alpha
        # the living get today's penalty, but may grow until it forgives them most
    ((5 + length + 1) / 6) ** alpha
        # the living end at the next step: they may grow, and the longest gains most
    ((5 + most + 1) / 6) ** alpha  # a hypothesis has at most `most` symbols
    1  # the living are compared without a penalty
max(alive)
    alive[0]  # the first living one decides; they come in any order
    min(alive)  # the least likely living one decides; the likeliest may win
    sum(alive) / len(alive)  # the mean of the living decides; the likeliest may win
max(scores) >= bound
    len(finished) >= len(alive)  # stops as soon as enough are finished
    min(scores) >= bound
        # the worst finished one has to beat the living; the best is enough
    max(scores) > bound  # of equal scores none is better: the search may stop
    max(scores) < bound  # the wrong way round: stop if the living can't win
scores.index(max(scores)) -> scores.index(min(scores))
        # the worst score is returned; log-probabilities are negative
scores.index(max(scores)), -> max(scores),  # the score is returned, not its place
""")


def nearly(draw, lengths, likeliest, alpha, margin, living=3, most=20):
    """Finished ones, and living of which the likeliest could beat them by ``margin``.

    The score of the finished at place ``likeliest`` is the best, by little.
    """
    scores = [-1.2 - draw.uniform(0, 0.05, 1).item() for _ in lengths]
    scores[likeliest] = -1.1
    pairs = zip(scores, lengths, strict=True)
    finished = [(score * ((5 + n) / 6) ** alpha, n) for score, n in pairs]
    top = (max(scores) + margin) * ((5 + most) / 6) ** alpha
    low = [top - 2 - i - draw.uniform(0, 1, 1).item() for i in range(living - 1)]
    return finished, [low[0], top, *low[1:]], max(lengths), most, alpha


@best_and_stop.case("the example: the living one comes close")
def _(draw):
    little = draw.uniform(0, 0.001, 1).item()
    return [(-1.2 - little, 2), (-1.4, 3)], [-1.9], 3, 10, 0.6


best_and_stop.each("""
a long one is the best, and the living can't win -> [3, 9, 5], 1, 1.0, -0.03, 3
a long one is the best, and a living one may win -> [8, 4], 0, 1.0, 0.1, 3
a short one is the best, and a living one may just win -> [2, 7, 6], 0, 0.6, 0.02, 4
more are alive than finished, and none can win -> [6, 9], 1, 0.8, -0.05, 5
more are finished than alive, and one may win -> [4, 6, 9, 5], 2, 0.8, 0.05, 3
without a penalty -> [5, 3], 1, 0.0, -0.1, 3
a strong penalty -> [4, 12], 1, 2.0, 0.1, 3
one that ended at once, and one that may win -> [1], 0, 0.7, 0.05, 3
""")(nearly)


@best_and_stop.case("the longest is the best, and has the lowest log-probability")
def _(draw):
    log = -3.3 - draw.uniform(0, 0.1, 1).item()
    return [(log, 13), (-1.8, 4), (-2.0, 1)], [-3.8, -3.6], 13, 16, 1.0


@best_and_stop.case("equal scores: nothing better can come")
def _(draw):
    log = -draw.uniform(1, 2, 1).item()
    return [(log, 4)], [log], 4, 9, 0.0


# ---- find the fault: a score for parrots ----------------------------------------


def mean_bleu(outputs, references):
    pairs = zip(outputs, references, strict=True)
    return sum(corpus_bleu.right([o], [r]) for o, r in pairs) / len(outputs)


@exercise(
    "ch09-bleu",
    "expected 100 times the geometric mean of both shares, times the brevity penalty",
    faults("""
(ours & theirs).total() -> sum(n for gram, n in ours.items() if gram in theirs)
        # what does it give an output that repeats one right word?
min(0.0, 1 - r / c) -> 1 - r / c  # what does it give an output that is too long?
math.sqrt(shares[0] * shares[1]) -> sum(shares) / 2
        # what does it give the right words in an order of which no pair is right?
""")
    | {
        "that's the mean of each sentence's BLEU: matches, totals and lengths of all "
        "sentences are added up before anything is divided": mean_bleu
    },
)
def corpus_bleu(outputs, references):
    """BLEU from 0 to 100, of words and pairs of words."""
    import math
    from collections import Counter

    matches, totals, c, r = [0, 0], [0, 0], 0, 0
    for output, reference in zip(outputs, references, strict=True):
        c, r = c + len(output), r + len(reference)
        for n in (1, 2):
            ours, theirs = (
                Counter(zip(*(text[i:] for i in range(n)), strict=False))
                for text in (output, reference)
            )
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    shares = [m / n for m, n in zip(matches, totals, strict=True)]
    mean = math.sqrt(shares[0] * shares[1])
    return 100 * mean * math.exp(min(0.0, 1 - r / c))


corpus_bleu.instead("""
math.exp(min(0.0, 1 - r / c)) -> 1.0  # the brevity penalty is gone
math.exp(min(0.0, 1 - r / c)) -> math.exp(min(0.0, 1 - c / r))
        # the penalty is for outputs that are too long; it is meant for short ones
math.exp(min(0.0, 1 - r / c)) -> min(1.0, c / r)
        # the penalty is c / r; it should be the exponential of 1 − r / c
c + len(output), r + len(reference)
    c + min(len(output), len(reference)), r + len(reference)
        # each short sentence is punished by itself; only all lengths together count
return 100 * -> return 1.0 *  # the result is a share; 100 times that is asked
""")


@corpus_bleu.each("""
the example: a parrot -> "aaab"
an output that is too long -> "abcdac"
the right words, turned round: no pair is right -> "dcba"
""")
def _(draw, output):
    words = dict(zip("abcd", draw.shuffled(range(1, 5)), strict=True))
    return [[words[letter] for letter in output]], [[*words.values()]]


@corpus_bleu.case("one too short and one too long: all lengths together")
@corpus_bleu.case("several sentences, counted together")
def _(draw):
    references = [[*range(1, n)] for n in draw.sizes(3, 6, 9)]
    outputs = [draw.shuffled(text[1:]) + draw.shuffled(text[:2]) for text in references]
    return [outputs[0][:3], outputs[1], outputs[2][:4]], references
