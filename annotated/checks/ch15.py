"""The exercises of chapter 15; ``__init__.py`` says how one is written."""

import torch
from torch.nn import functional as F

from annotated.checks import exercise, faults

# ---- hide tokens, and ask for them -------------------------------------------


@exercise(
    "ch15-hide",
    "expected what is read (mask, another token or the token itself where it is asked "
    "for) and then the labels (tokens where they are asked for, -100 elsewhere)",
)
def hide(tokens, special, mask, choice, action, others):
    asked = (choice < 0.15) & ~torch.isin(tokens, special)
    masked = asked & (action < 0.8)
    exchanged = asked & (action >= 0.8) & (action < 0.9)
    read = tokens.masked_fill(masked, mask).where(~exchanged, others)
    return read, tokens.where(asked, -100)


hide.instead("""
& ~torch.isin(tokens, special)
    # special tokens and padding are asked for, too
    & (tokens != special[0])
        # the first special token alone is left out, and not the others
choice < 0.15
    choice < 0.8  # below 0.15 is asked for: 0.8 is the share of masks among these
    choice >= 0.15  # the wrong way round: 85 % of the tokens are asked for
asked & (action < 0.8)
    action < 0.8  # 80 % of all tokens are hidden, not 80 % of those asked for
    asked  # all that is asked for is masked: some are exchanged, and some stay
    asked & (action >= 0.2)  # masked from 0.2 on: below 0.8 is asked
asked & (action >= 0.8) & (action < 0.9)
    (action >= 0.8) & (action < 0.9)  # tokens that nobody asks for are exchanged
    asked & (action >= 0.8)
        # none stays as it is: from 0.9 on, the token itself is read
    asked & (action >= 0.9)
        # from 0.9 on the token itself is read; from 0.8 to 0.9 it's exchanged
    torch.zeros_like(asked)  # no token is exchanged for one of `others`
tokens.where(asked, -100)
    tokens  # every token has a label: -100 where nothing is asked
    tokens.where(asked, 0)  # 0 is a token's id, which would be learned: write -100
    tokens.where(masked, -100)
        # only masks have labels: tokens that are exchanged or stay are asked for, too
    tokens.where(read != tokens, -100)
        # tokens that stay as they are have no label, but they are asked for, too
    read.where(asked, -100)  # the labels are what is read, not what stood there
    tokens.where(~asked, -100)  # labels stand where nothing is asked, and nowhere else
    asked  # that says which are asked for: labels are their ids
""")


# ids 0 to 4 are special, as in BERT's order: [PAD] [UNK] [CLS] [SEP] [MASK]
def texts(draw, lengths, size=40):
    """Rows [CLS] … [SEP], padded, and what is drawn for each token."""
    t = max(lengths)
    tokens = draw.integers(5, size, len(lengths), t)
    tokens[:, 0] = 2
    for row, length in zip(tokens, lengths, strict=True):
        row[length - 1], row[length:] = 3, 0
    others = draw.integers(5, size, len(lengths), t)
    choice, action = (draw.uniform(0, 1, len(lengths), t) for _ in range(2))
    special = torch.tensor([0, 1, 2, 3, 4])
    return tokens, special, 4, choice, action, others


@hide.case("the example: one text")
def _(draw):
    tokens, special, mask, *_ = texts(draw, [6, 7])
    choice = torch.tensor([0.01, 0.12, 0.40, 0.03, 0.14, 0.50, 0.02])
    action = torch.tensor([0.30, 0.50, 0.20, 0.85, 0.95, 0.10, 0.60])
    others = 45 + draw.integers(0, 5, 1, 7)
    return tokens[:1], special, mask, choice[None], action[None], others


@hide.each("""
many tokens -> [60, 60, 60, 60]
much padding -> [30, 4, 9, 6, 5]
a short text -> [8]
""")
def _(draw, lengths):
    return texts(draw, lengths)


@hide.case("every choice is low: special tokens are safe all the same")
def _(draw):
    tokens, special, mask, choice, action, others = texts(draw, [9, 30, 4])
    return tokens, special, mask, 0.1 * choice, action, others


@hide.case("other ids are special, [MASK] first")
def _(draw):
    tokens, _, _, choice, action, others = texts(draw, [20, 24, 3])
    return tokens + 50, torch.tensor([54, 50, 51, 53, 52]), 54, choice, action, others


@hide.case("[UNK] and [MASK] stand in the text")
def _(draw):
    tokens, *rest = texts(draw, [25, 30, 28])
    strange = draw.uniform(0, 1, *tokens.shape) < 0.3
    return tokens.where(~strange, draw.integers(0, 1, *tokens.shape) * 3 + 1), *rest


@hide.case("no choice is low: nothing is asked for")
def _(draw):
    tokens, special, mask, choice, action, others = texts(draw, [6, 9])
    return tokens, special, mask, 0.2 + 0.8 * choice, action, others


# ---- a head on [CLS] ---------------------------------------------------------


@exercise(
    "ch15-head",
    "expected the head's map of tanh of the pooler's map of each text's first state",
)
def classify(states, w, b, v, c, frozen):
    first = states[:, 0]
    if frozen:
        first = first.detach()
    pooled = torch.tanh(first @ w.mT + b)
    return pooled @ v.mT + c


classify.instead("""
states[:, 0]
    states.mean(dim=1)  # averaged over all tokens: [CLS] alone is looked at
    states[:, -1]  # the last state is looked at: [CLS] stands first
    states.amax(dim=1)  # that's the largest of all tokens: [CLS] alone is looked at
    states[0]  # that's the first text, not the first token of each
first @ w.mT + b
    first @ w + b  # the pooler's weight is (out, in): yours is the wrong way round
    first @ w.mT  # the pooler's bias is missing
    first  # the pooler's map is left out
torch.tanh(first @ w.mT + b)
    (first @ w.mT + b)  # tanh is missing between the two maps
    torch.relu(first @ w.mT + b)  # the pooler has a tanh, not another function
    torch.tanh(first) @ w.mT + b  # tanh comes after the pooler's map, not before
    torch.tanh(first @ w.mT) + b  # the pooler's bias is added before tanh, not after
pooled @ v.mT + c
    pooled @ v.mT  # the head's bias is missing
    torch.tanh(pooled @ v.mT + c)  # a tanh on logits: they may be of any size
    (pooled @ v.mT + c).softmax(dim=-1)
        # these are chances; logits are asked, and the loss has its own softmax
if frozen:
    if False:  # what is frozen learns: a gradient reaches `states`
    if True:  # no gradient reaches `states` although they aren't frozen
if frozen: -> if False:
pooled @ v.mT -> (pooled.detach() if frozen else pooled) @ v.mT
        # the pooler learns nothing if frozen: it is new, and BERT alone is frozen
""")


def headed(draw, b, t, d, n, frozen):
    weights = draw.normal(d, d), draw.normal(d), draw.normal(n, d), draw.normal(n)
    return draw.normal(b, t, d), *weights, frozen


@classify.case("the example: one text of two tokens")
def _(draw):
    states = torch.tensor([[[9.0, 0.5], [1.0, -1.0]]])
    w, b = torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.tensor([0.0, 1.0])
    v, c = torch.tensor([[2.0, -1.0]]), torch.tensor([0.1])
    return states + draw.uniform(0, 1, 1, 1, 2), w, b, v, c, False


@classify.each("""
every axis of another length -> 3, 5, 4, 2
one token -> 4, 1, 3, 2
as many texts as tokens -> 4, 4, 6, 3
""")
def _(draw, b, t, d, n):
    return headed(draw, b, t, d, n, draw.choice([True, False]))


@classify.case("padding holds infinity")
def _(draw):
    states, *rest = headed(draw, 3, 5, 4, 2, False)
    states[:2, 3:] = torch.inf
    return states, *rest


@classify.case("gradients reach states, pooler and head", gradients=True)
def _(draw):
    return headed(draw, 3, 4, 5, 2, False)


@classify.case("frozen: gradients reach pooler and head alone", gradients=True)
def _(draw):
    return headed(draw, 3, 4, 5, 2, True)


# ---- who can see the answer? -------------------------------------------------


@exercise(
    "ch15-sees",
    "expected, for each position, whether its answer is shown and gets to it: layer by "
    "layer, from position to position",
)
def sees(mask, layers, shown, asked):
    t = len(mask)
    holds = torch.eye(t, dtype=torch.bool)
    for _ in range(layers):
        gets = mask.double() @ holds.double() > 0
        holds = holds | gets
    holds = holds & shown
    return holds[torch.arange(t), asked] & (asked >= 0)


sees.instead("""
range(layers)
    range(1)  # one layer is followed: what a position got, it passes on in the next
    range(layers - 1)  # a layer too few: even the first one attends
    range(layers + 1)  # a layer too many is followed
    range(t)  # a token goes on for more layers than there are
holds = holds | gets
    holds = gets  # a position keeps what it held, whether it attends to itself or not
mask.double() @
    mask.mT.double() @  # row i says to which positions i attends; yours, who attends
        to i
    (mask & shown).double() @
        # a hidden token isn't shown, but its position passes on what it got
holds = holds & shown
    # what isn't shown is nowhere: nobody can see it
    holds = holds & shown[:, None]
        # shown says it of the token to guess, not of the position that guesses
holds[torch.arange(t), asked]
    holds[asked, torch.arange(t)]
        # the position to guess holds the token of the one that guesses: the other way
        round
    holds.any(dim=1)  # whether it sees any token; the one to guess is asked for
    holds.diagonal()  # each position's own token: `asked` says which one to guess
& (asked >= 0) -> # -1 isn't the last position: there is nothing to guess
return -> return ~(
(asked >= 0) -> (asked >= 0))  # True and False are exchanged
""")

KINDS = {
    "causal": lambda t: torch.ones(t, t, dtype=torch.bool).tril(),
    "both": lambda t: torch.ones(t, t, dtype=torch.bool),
    "not the next": lambda t: ~torch.ones(t - 1, dtype=torch.bool).diag(1),
    "not itself": lambda t: ~torch.eye(t, dtype=torch.bool),
    "two back": lambda t: torch.ones(t, t, dtype=torch.bool).tril().triu(-2),
    "the next": lambda t: torch.ones(t - 1, dtype=torch.bool).diag(1),
}


def following(t):
    """Each position has to guess the next token."""
    return torch.tensor([*range(1, t), -1])


@sees.each("""
the example: the next may not be attended to, two layers -> "not the next", 4, 2
the next may not be attended to, one layer -> "not the next", 5, 1
a causal model, asked for the next -> "causal", 6, 3
a bidirectional model, asked for the next -> "both", 5, 1
""")
def _(draw, kind, t, layers):
    shown = torch.ones(t, dtype=torch.bool)
    shown[draw.integer(0, t - 1)] = kind in ("not the next", "causal")
    return KINDS[kind](t), layers, shown, following(t)


@sees.each("""
BERT: what is hidden is asked for -> "both", 8, 2, 0
BERT: some of what is asked for is shown -> "both", 9, 2, 3
no position attends to itself, one layer -> "not itself", 7, 1, 3
no position attends to itself, two layers -> "not itself", 7, 2, 3
""")
def _(draw, kind, t, layers, kept):
    order = torch.tensor(draw.shuffled(range(t)))
    shown, asked = torch.ones(t, dtype=torch.bool), torch.full((t,), -1)
    asked[order[: t - 3]] = order[: t - 3]
    shown[order[kept : t - 3]] = False
    return KINDS[kind](t), layers, shown, asked


@sees.each("""
far away, and a window of two: too few layers for some -> "two back", 9, 2
far away, and a window of two: layers enough for more -> "two back", 9, 3
only the next is attended to -> "the next", 8, 3
""")
def _(draw, kind, t, layers):
    asked = (torch.arange(t) + draw.integers(-5, 5, t)).clamp(-1, t - 1)
    shown = draw.mask(t)
    asked[0], asked[t - 1] = 2, 2  # one from before, one from behind
    return KINDS[kind](t), layers, shown.index_fill(0, torch.tensor([2]), True), asked


@sees.each("""
any mask, one layer -> 9, 1
any mask, two layers -> 12, 2
any mask, three layers -> 14, 3
""")
def _(draw, t, layers):
    mask = draw.uniform(0, 1, t, t) < 0.15
    shown = draw.uniform(0, 1, t) < 0.8
    return mask, layers, shown, draw.integers(-1, t - 1, t)


# ---- find the fault: half of the pairs ---------------------------------------


@exercise(
    "ch15-half",
    "expected the mean cross-entropy of the tokens asked for, plus the mean "
    "cross-entropy of all pairs",
    faults("""
(pair_logits, labels) -> (pair_logits, labels, ignore_index=0)
        # is there a loss of the pairs whose label is 0?
(pair_logits, -> (pair_logits.softmax(dim=-1),
        # cross_entropy takes a softmax itself: does it get logits?
(token_logits[asked], answers[asked])
    (token_logits[asked], answers[asked]) * (asked.sum() / asked.numel())
        # by how many tokens is the loss of the tokens divided?
"""),
)
def pretraining_loss(token_logits, pair_logits, answers, labels):
    asked = answers != 0
    words = F.cross_entropy(token_logits[asked], answers[asked])
    return words + F.cross_entropy(pair_logits, labels)


pretraining_loss.instead("""
(token_logits[asked], answers[asked])
    (token_logits.flatten(0, 1), answers.flatten())
        # positions where nothing is asked have a loss, too
    (token_logits[asked], answers[asked], reduction="sum")
        # the losses of tokens are added up: their mean is asked
    (token_logits[asked].softmax(dim=-1), answers[asked])
        # the tokens' logits go through a softmax before cross_entropy, which takes one
words + -> # the tokens are missing in the loss
words + F.cross_entropy(pair_logits, labels) -> words  # the pairs are missing
F.cross_entropy(pair_logits, labels)
    F.cross_entropy(pair_logits, 1 - labels)  # the labels of the pairs are exchanged
    F.cross_entropy(pair_logits, labels, reduction="sum")
        # the losses of pairs are added up: their mean is asked
    F.nll_loss(pair_logits, labels)
        # nll_loss wants logarithms of probabilities, and gets logits
    F.nll_loss(pair_logits.softmax(dim=-1), labels)
        # nll_loss wants logarithms of probabilities, and gets probabilities
return words + F.cross_entropy(pair_logits, labels)
    return (words + F.cross_entropy(pair_logits, labels)) / 2
        # the sum of both losses is asked, not their mean
""")


def two_tasks(draw, b, t, v, labels, share=0.3):
    answers = draw.integers(1, v - 1, b, t)
    answers = answers.where(draw.uniform(0, 1, b, t) < share, 0)
    answers[0, 0] = v - 1  # one is asked for
    return draw.normal(b, t, v), 2 * draw.normal(b, 2), answers, torch.tensor(labels)


@pretraining_loss.each("""
every axis of another length -> 4, 9, 6, [0, 1, 1, 0]
all pairs follow but one -> 5, 8, 7, [0, 0, 1, 0, 0]
no pair follows -> 3, 7, 5, [1, 1, 1]
as many texts as tokens -> 6, 6, 4, [1, 0, 0, 1, 1, 0]
""")
@pretraining_loss.each("every token is asked for -> 3, 5, 8, [0, 1, 0], 1.0")
def _(draw, *given):
    return two_tasks(draw, *given)


@pretraining_loss.case("the example: everything is equally likely")
def _(draw):
    _, _, answers, labels = two_tasks(draw, 4, 25, 100, [0, 1, 1, 0])
    return torch.zeros(4, 25, 100), torch.zeros(4, 2), answers, labels


@pretraining_loss.case("gradients reach both kinds of logits", gradients=True)
def _(draw):
    return two_tasks(draw, 4, 6, 5, [1, 0, 1, 0])


@pretraining_loss.case("logits of hundreds, some of them wrong")
def _(draw):
    tokens, pairs, *rest = two_tasks(draw, 4, 7, 5, [0, 1, 1, 0])
    return 100 * tokens, 100 * pairs, *rest
