"""The exercises of chapter 10; ``__init__.py`` says how one is written."""

import math

import torch

from annotated.checks import exercise, faults

# ---- mean and maximum of what is real ------------------------------------------


FILLED = "numbers may be lower than what padding is filled with"


def filled(result, states, lengths):
    """A symptom: a maximum above all of its text that is no number of any text."""
    hidden = torch.arange(states.shape[1]) >= lengths[:, None]
    real = states.masked_fill(hidden[..., None], -torch.inf).amax(dim=1)
    largest = result[:, states.shape[-1] :]
    strange = (largest > real) & (largest < 0) & ~torch.isin(largest, states)
    return FILLED if strange.any() else None


@exercise(
    "ch10-pooling",
    "expected the mean and then the maximum of the first `lengths` vectors of each "
    "text, side by side",
    symptoms=filled,
)
def mean_and_max(states, lengths):
    """Mean and maximum of the real vectors of each text, (b, 2d)."""
    real = torch.arange(states.shape[1]) < lengths[:, None]  # (b, t)
    hidden = ~real[..., None]
    mean = states.masked_fill(hidden, 0.0).sum(dim=1) / lengths[:, None]
    largest = states.masked_fill(hidden, -torch.inf).amax(dim=1)
    return torch.cat([mean, largest], dim=-1)


mean_and_max.instead("""
states.masked_fill(hidden, 0.0).sum(dim=1) / lengths[:, None]
    states.mean(dim=1)  # padding is averaged, too
    states.masked_fill(hidden, 0.0).mean(dim=1)
        # padding counts as zeros: divide by the number of real tokens
    states.sum(dim=1) / lengths[:, None]  # the sum of the mean holds padding
    states.masked_fill(hidden, 0.0).sum(dim=1)  # that's the sum, not the mean
    states.masked_fill(hidden, 0.0).sum(dim=1) / lengths.sum()
        # every text is divided by the tokens of the whole batch
    (states * real[..., None]).sum(dim=1) / lengths[:, None]
        # 0 times infinity is no number: padding may hold anything
states.masked_fill(hidden, -torch.inf).amax(dim=1)
    states.amax(dim=1)  # the maximum is looked for among padding, too
    states.masked_fill(hidden, 0.0).amax(dim=1)
        # padding counts as 0 in the maximum, above all negative numbers
    states.masked_fill(hidden, torch.inf).amin(dim=1)  # that's the minimum
    states.masked_fill(hidden, -torch.inf).abs().amax(dim=1)
        # the sign of the maximum is lost
    states.masked_fill(hidden, -100.0).amax(dim=1)  # {FILLED}
    states.masked_fill(hidden, -1e9).amax(dim=1)  # … than what padding is filled with
states.masked_fill(hidden, 0.0).sum(dim=1) / lengths[:, None] -> states.mean(dim=1)
states.masked_fill(hidden, -torch.inf).amax(dim=1) -> states.amax(dim=1)
        # padding counts as real, in the mean and in the maximum: use `lengths`
states.masked_fill(hidden, 0.0).sum(dim=1) / lengths[:, None]
        -> states.masked_fill(hidden, 0.0).mean(dim=1)
states.masked_fill(hidden, -torch.inf).amax(dim=1)
        -> states.masked_fill(hidden, 0.0).amax(dim=1)
        # padding counts as zeros, in the mean and in the maximum
torch.cat([mean, largest], dim=-1) -> torch.stack([mean, largest], dim=-1).flatten(1)
        # mean and maximum take turns: first all means, then all maxima
[mean, largest] -> [largest, mean]  # the maximum comes first
[mean, largest], dim=-1 -> [mean, largest], dim=0
        # stacked below each other: a text is one row
real = torch.arange(states.shape[1]) < lengths[:, None] -> real = (torch.arange(
        states.shape[1]) < lengths.max()).expand(len(lengths), -1)
        # each text has a length of its own; yours is the longest one's
< lengths -> <= lengths  # the first position of padding counts as real
< lengths -> >= states.shape[1] - lengths
        # the last vectors are taken as real; padding stands behind the text
""")


@mean_and_max.case("the example: three tokens and two")
def _(draw):
    states = torch.tensor(
        [
            [[1.0, -2.0], [3.0, -4.0], [2.0, -6.0]],
            [[2.0, -2.0], [4.0, -8.0], [9.0, 9.0]],
        ]
    )
    return states + draw.uniform(0, 1, 1, 1, 2), torch.tensor([3, 2])


@mean_and_max.each("""
lengths all different -> 4, 7, 3, 0
all numbers negative -> 3, 5, 2, 2
all numbers far below zero -> 3, 5, 2, 1e12
""")
def _(draw, b, t, d, low):
    states = draw.normal(b, t, d)
    states = -low * (1 + states.abs()) if low else states
    return states, torch.tensor(draw.shuffled(range(1, t + 1))[:b])


@mean_and_max.case("gradients reach the real tokens alone", gradients=True)
def _(draw):
    return draw.normal(3, 6, 4), torch.tensor(draw.shuffled([2, 4, 6]))


@mean_and_max.case("padding holds infinity")
def _(draw):
    states = draw.normal(2, 5, 3)
    states[0, 3:], states[1, 2:] = torch.inf, -torch.inf
    return states, torch.tensor([3, 2])


# ---- loss and decisions --------------------------------------------------------

INFINITE = (
    "the logarithm of a chance that was rounded to 0 is infinite: compute it from the "
    "logit, without an exponential of hundreds"
)
BOUNDED = "a bound in the logarithm hides how wrong a sure answer is"


def bounded(result, logits, answers, thresholds):
    """Symptoms in the loss of logits of hundreds: no number, or far too small a one."""
    loss, wrong = float(result[0]), logits * (1 - 2 * answers)
    if not math.isfinite(loss):
        return INFINITE
    low, high = (wrong.clamp(0, most).mean().item() for most in (9, 40))
    return BOUNDED if wrong.max() > 100 and low < loss < high else None


@exercise(
    "ch10-labels",
    "expected the mean over all texts and labels of the cross-entropy of each answer, "
    "and yes where a chance is above its label's threshold",
    symptoms=bounded,
    also=("loss.mean()", "loss.mean().item()"),
)
def loss_and_yes(logits, answers, thresholds):
    """The mean cross-entropy of all answers, and where yes is said."""
    from torch.nn import functional as F

    loss = F.softplus(logits) - answers * logits
    return loss.mean(), logits.sigmoid() > thresholds


loss_and_yes.instead("""
F.softplus(logits) - answers * logits
    -(answers * logits.sigmoid().log() + (1 - answers) * (1 - logits.sigmoid()).log())
        # {INFINITE}
    -(answers * logits.sigmoid().clamp(min=1e-6).log() + (1 - answers) * (1 -
        logits.sigmoid()).clamp(min=1e-6).log())
        # {BOUNDED}
    -answers * logits.log_softmax(dim=-1)
        # a softmax makes labels rivals: each is a question of its own
    F.softplus(-logits) * answers
        # the loss of answers that are no is missing
    F.softplus(-logits)  # the loss takes every answer for yes
    answers * logits - F.softplus(logits)
        # the loss has the wrong sign: the logarithm of a chance is negative
    -answers * F.logsigmoid(logits) - (1 - answers) * (1 - F.logsigmoid(logits))
        # the chance of no is 1 − p: its logarithm isn't 1 minus that of p
    F.softplus(logits) - (1 - answers) * logits  # yes and no are exchanged in the loss
    F.softplus(logits.sigmoid()) - answers * logits.sigmoid()
        # chances are taken for logits: one sigmoid too many
    (logits.sigmoid() - answers) ** 2  # that's the squared error
    F.binary_cross_entropy(logits.float().sigmoid(), answers.float(), reduction="none")
        # from chances, PyTorch's loss is never above 100: compute it from the logits
F.softplus(logits) - answers * logits -> -answers * logits.log_softmax(dim=-1)
loss.mean() -> loss.sum(dim=1).mean()
        # that's the cross-entropy of one label out of all: its softmax makes labels
        rivals
loss.mean() -> loss.sum()  # added up, not averaged
loss.mean() -> loss.sum(dim=0).mean()
        # averaged over labels alone: divide by the number of texts, too
loss.mean() -> loss.sum(dim=1).mean()
        # averaged over texts alone: divide by the number of labels, too
loss.mean() -> loss.mean(dim=0)  # one number is asked, not one for each label
logits.sigmoid() > thresholds
    logits > thresholds  # thresholds are chances, and are compared with logits
    logits.sigmoid() >= thresholds  # a chance that's at its threshold isn't above it
    logits.sigmoid() > 0.5  # one half decides, not the label's own threshold
    logits.sigmoid() > thresholds.mean()
        # one threshold decides for all labels; each has its own
    logits.softmax(dim=-1) > thresholds
        # the decisions come from a softmax, which makes labels rivals
    logits.sigmoid() < thresholds  # the wrong way round: yes is above
    F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).bool()
        # exactly one yes for each text; there may be several, or none
""")


def labelled(draw, n, c, scale=2.0, share=0.4):
    answers = (draw.uniform(0, 1, n, c) < share).to(torch.float32)
    return scale * draw.normal(n, c), answers, draw.uniform(0.1, 0.6, c)


@loss_and_yes.case("the example: two texts, three labels")
def _(draw):
    logits = torch.tensor([[2.0, -1.0, 0.2], [-0.5, 1.5, -3.0]])
    answers = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    return logits, answers, torch.tensor([0.5, 0.2, 0.6])


@loss_and_yes.case("a chance of exactly one half, and that threshold")
def _(draw):
    logits = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    return logits, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0.5, 0.5])


@loss_and_yes.each("""
several labels -> 6, 4
one label -> 5, 1
one text -> 1, 7
""")
def _(draw, n, c):
    return labelled(draw, n, c)


@loss_and_yes.case("chances that are exactly at their thresholds")
def _(draw):
    answers = draw.integers(0, 1, 5, 2).float()
    return torch.zeros(5, 2), answers, torch.tensor([0.5, draw.number(0.1, 0.4)])


@loss_and_yes.case("no label holds")
def _(draw):
    return labelled(draw, 4, 3, share=-1.0)


@loss_and_yes.case("logits of hundreds, some of them wrong")
def _(draw):
    logits, answers, thresholds = labelled(draw, 4, 3)
    return logits.sign() * draw.uniform(200, 300, 4, 3), answers, thresholds


# ---- how good can a blind model be? --------------------------------------------


@exercise(
    "ch10-blind",
    "expected, for each bag of words, as many right as its commoner answer has texts; "
    "added up, and divided by the number of texts",
)
def blind_ceiling(texts, answers):
    """The largest share that a model can get right without seeing order."""
    from collections import Counter

    bags = {}
    for text, answer in zip(texts, answers, strict=True):
        bag = tuple(sorted(text))
        bags.setdefault(bag, Counter())[answer] += 1
    right = sum(max(counts.values()) for counts in bags.values())
    return right / len(texts)


blind_ceiling.instead("""
tuple(sorted(text))
    tuple(text)  # that's the text in its order; a bag has none
    tuple(sorted(set(text)))
        # a bag counts its words: "very very good" isn't the bag of "very good"
    sum(text)  # different words may have the same sum: that doesn't tell bags apart
    sum(n * n for n in text)  # different words may have the same sum of squares
    __import__("math").prod(text)  # different words may have the same product
    "".join(map(str, sorted(text)))  # 1 and 14, written in a row, are 1, 1 and 4
max(counts.values())
    min(counts.values())  # the rarer answer; a model says the commoner one
    counts.total() / len(counts)
        # half of each bag, as if its texts were split evenly
    int(len(counts) == 1) * counts.total()
        # a bag with both answers isn't lost: one of them is right
    counts[1]  # always yes; a model says the commoner answer
    1  # one text of each bag counts as right: count all that have the commoner answer
right / len(texts)
    right / len(bags)  # divided by the bags, not by the texts
    sum(max(c.values()) / c.total() for c in bags.values()) / len(bags)
        # each bag counts the same, however many texts it has: count texts
    right / len(set(map(tuple, texts)))
        # a text that occurs twice counts twice, in the number of texts, too
    right  # that's the number of texts, not their share
    1 - right / len(texts)  # that's the share it must get wrong
""")


@blind_ceiling.case("the example: a pair of twins, and one more")
def _(draw):
    good, bad, dull, no = draw.shuffled(range(10, 14))
    return [[no, good, bad], [no, bad, good], [dull]], [0, 1, 0]


@blind_ceiling.case("nothing but twins: one half")
def _(draw):
    words = draw.shuffled(range(20))
    pairs = [words[i : i + 3] for i in range(0, 12, 3)]
    return [t for p in pairs for t in (p, p[::-1])], [0, 1] * len(pairs)


@blind_ceiling.case("three of one bag against one")
def _(draw):
    a, b, c, d = draw.shuffled(range(4))
    yes = draw.integer(0, 1)
    texts = [[a, b, c], [b, c, a], [c, b, a], [a, c, b], [d, d], [d]]
    return texts, [yes, yes, yes, 1 - yes, 1, 0]


@blind_ceiling.case("a word that stands twice")
def _(draw):
    a, b, c = draw.shuffled(range(3))
    return [[a, a, b], [a, b], [b, a, b], [c], [b, b, a]], [1, 0, 0, 1, 1]


@blind_ceiling.case("no bag is met twice")
def _(draw):
    a = draw.integer(1, 9)
    return [[a, a + 3], [a + 1, a + 2], [a], [a + 2, a, a + 1], [a, a]], [0, 1, 1, 0, 1]


@blind_ceiling.case("other bags, with the same squares, product or digits")
def _(draw):
    pairs = [[1, 8], [4, 7]], *2 * [[[2, 6], [3, 4]]], *3 * [[[1, 14], [1, 1, 4]]]
    twins = [[20, 21], [21, 20]] * draw.integer(1, 4)
    texts = [text for pair in pairs for text in pair] + twins
    return texts, [0, 1] * (len(texts) // 2)


@blind_ceiling.case("many texts of few words")
def _(draw):
    texts = [draw.integers(0, 2, 3).tolist() for _ in range(24)]
    return texts, draw.integers(0, 1, 24).tolist()


# ---- find the fault: a macro F1 ------------------------------------------------


def mean_f1(batches):
    return sum(macro_f1.right([batch]) for batch in batches) / len(batches)


@exercise(
    "ch10-macro",
    "expected F1 of each label over all batches together, and the mean of these",
    faults("""
hits += (yes & (answers == 1)).sum(dim=0) -> hits += (yes == (answers == 1)).sum(dim=0)
        # what does it give a model that never says yes?
logits > 0 -> logits > 0.5  # a chance of one half: which logit is that?
2 * hits / (said + are).clamp(min=1)
    torch.full_like(said, 2 * hits.sum() / (said + are).sum().clamp(min=1))
        # does a rare label count as much as a common one?
""")
    | {
        "that's the mean of each batch's F1: hits of all batches are added up before "
        "anything is divided": mean_f1
    },
)
def macro_f1(batches):
    """The mean of the labels' F1, each over all batches."""
    hits = said = are = 0.0
    for logits, answers in batches:
        yes = logits > 0  # a chance of one half
        hits += (yes & (answers == 1)).sum(dim=0)
        said += yes.sum(dim=0)
        are += answers.sum(dim=0)
    each = 2 * hits / (said + are).clamp(min=1)
    return each.mean().item()


macro_f1.instead(r"""
hits = said = are = 0.0\n    for logits, answers in batches:
    hits = said = are = 0.0\n    for logits, answers in batches[-1:]:
        # the last batch alone is counted
2 * hits / (said + are).clamp(min=1)
    2 * hits / (said + are)  # a label that is never yes: 0 divided by 0
    hits / said.clamp(min=1)  # that's precision: how many of those said are yes
    hits / are.clamp(min=1)  # that's recall: how many of the yeses were said
    hits / (said + are).clamp(min=1)  # the 2 is missing: all right would give one half
    hits / (said + are - hits).clamp(min=1)
        # hits divided by all that is yes or was said so: that's not F1
    (hits / said.clamp(min=1) + hits / are.clamp(min=1)) / 2
        # that's the plain mean of precision and recall; F1 is their harmonic mean
logits > 0 -> logits.sigmoid() > 0  # every chance is above 0: compare it with one half
each.mean()
    ((each * are).sum() / are.sum().clamp(min=1))
        # labels are weighted by how often they are yes: each counts the same
    (each.sum() / (said + are > 0).sum().clamp(min=1))
        # a label that is never yes and never said to be counts, too, with an F1 of 0
    each.masked_fill(said + are == 0, 1.0).mean()
        # a label that is never yes and never said to be has an F1 of 0, not of 1
""")


def scored(draw, sizes, shares):
    batches = []
    for n in sizes:
        answers = (draw.uniform(0, 1, n, len(shares)) < torch.tensor(shares)).float()
        batches.append((2 * answers - 1 + 1.5 * draw.normal(*answers.shape), answers))
    return (batches,)


@macro_f1.case("the example: two labels, two batches")
def _(draw):
    first = torch.tensor([[2.0, -1.0], [0.3, -2.0]]), torch.tensor([[1.0, 0], [0, 0]])
    second = torch.tensor([[-1.0, 0.4], [-2, -0.5]]), torch.tensor([[1.0, 1], [1, 0]])
    return ([first, second],)


@macro_f1.each("""
batches of several sizes -> [5, 8, 3], [0.4, 0.6, 0.3]
a rare label and a common one -> [12, 12], [0.9, 0.1]
a label that is never yes -> [9, 14], [0.5, 0.0]
one batch -> [9], [0.5, 0.5, 0.5]
""")
def _(draw, sizes, shares):
    return scored(draw, sizes, shares)


@macro_f1.case("a label that is never yes, and never said to be")
def _(draw):
    (batches,) = scored(draw, [7, 5], [0.5, 0.4, 0.0])
    never = torch.tensor([0.0, 0.0, 9.0])
    return ([(logits - never, answers) for logits, answers in batches],)


@macro_f1.case("nothing is yes, and nothing was said to be")
def _(draw):
    return ([(-draw.uniform(1, 2, 3, 2), torch.zeros(3, 2))],)


@macro_f1.case("chances between 0.5 and 0.62")
def _(draw):
    (batches,) = scored(draw, [6, 6], [0.5, 0.5])
    return (
        [
            (logits.sign() * draw.uniform(0.1, 0.4, *logits.shape), answers)
            for logits, answers in batches
        ],
    )


# ---- cool the logits -----------------------------------------------------------


def nearby(result, validation, test):
    """Symptoms: no number as the loss, or a temperature that is nearly right."""
    by, loss = map(float, result)
    if not math.isfinite(loss):
        return "the loss isn't a number: compute it from the logits, as in exercise 2"
    best = cooled.right(validation, test)[0]
    if 0.0125 < abs(by / best - 1) < 0.08:
        return (
            "the temperature is a few percent off: try values that are nearer to each "
            "other, each less than one percent above the last"
        )
    return None


@exercise(
    "ch10-temperature",
    "expected the temperature with the lowest loss on validation, to one percent, and "
    "then the mean loss per answer on test with it",
    symptoms=nearby,
    tolerance=0.0125,
)
def cooled(validation, test):
    """The temperature with the lowest loss on validation; the loss on test."""

    def nats(split, by):
        logits, answers = split
        z = logits / by
        losses = torch.nn.functional.softplus(z) - answers * z
        return losses.mean(dim=(-2, -1))

    steps = torch.logspace(-1, 2, 2000)[:, None, None]  # each 0.35 % above
    best = steps[nats(validation, steps).argmin()].item()
    return best, nats(test, best).item()


cooled.instead("""
z = logits / by
    z = logits * by  # the logits are multiplied: a temperature divides them
    z = (logits.sigmoid() / by).clamp(1e-6, 1 - 1e-6).logit()
        # the chances are divided, which turns yes into no: divide the logits
    z = logits - torch.as_tensor(by).log()
        # something is subtracted from the logits, which changes answers: divide them
nats(validation, steps) -> nats(test, steps)
        # fitted on test: that looks good by itself
nats(validation, steps) -> (-nats(validation, steps))
        # the temperature of the highest loss
nats(validation, steps)
    (validation[0].abs() / steps).sigmoid().mean(dim=(-2, -1)).sub(((validation[0] > 0)
        == (validation[1] == 1)).double().mean()).abs()
        # mean confidence is made to match accuracy; the loss is asked to be lowest
nats(test, best)
    nats(validation, best)  # the loss is that of validation, not that of test
    nats(test, 1.0)  # that's the loss on test as it was, without the temperature
    test[0].numel() * nats(test, best)  # added up, not averaged
    test[0].shape[1] * nats(test, best)
        # averaged over texts alone: divide by the number of labels, too
nats(validation, steps)
    (nats(validation, steps) * len(validation[0]) + nats(test, steps) * len(test[0]))
        # fitted on validation and test together: test is for the loss alone
return best, -> return 1 / best,
        # that's 1/T: the logits are divided by the temperature
return best, nats(test, best).item() -> return nats(test, best).item(), best
        # the temperature comes first, then the loss
2000 -> 176  # … a few percent off
""")


def heated(draw, n, c, by, shift=0.0):
    """Logits that a temperature of about ``by`` makes honest, and their answers."""
    honest = 1.5 * draw.normal(n, c) + shift
    answers = (draw.uniform(0, 1, n, c) < honest.sigmoid()).to(torch.float32)
    return by * honest, answers


@cooled.each("""
the example: three of four are right -> 1.0
the same, one percent larger -> 1.01
the same, two percent larger -> 1.02
the same, three percent larger -> 1.03
""")
def _(draw, larger):
    size = 4 * larger + draw.number(0, 0.001)
    validation = torch.full((4, 1), size), torch.tensor([[1.0], [1], [1], [0]])
    logits = torch.tensor([[size], [-size], [size]])
    return validation, (logits, torch.tensor([[1.0], [0], [0]]))


@cooled.each("""
too sure -> 60, 3, 5.0, 2.0
not sure enough -> 60, 3, 0.4, 1.0
one label -> 150, 1, 3.0, 9.0
logits of hundreds -> 60, 4, 60.0, 25.0
""")
def _(draw, n, c, by, other):
    return heated(draw, n, c, by), heated(draw, n // 2, c, other, shift=-0.5)
