"""The exercises of chapter 15; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import exercise, faults
from annotated.checks.material import SAVED, naming

# ---- hide tokens, and ask for them -------------------------------------------


@exercise(
    "ch15-hide",
    "expected what is read (mask, another token or the token itself where it is asked "
    "for) and then the labels (tokens where they are asked for, -100 elsewhere)",
)
def hide(tokens, special, mask, choice, action, others):
    """What is read, and labels with −100 where nothing is asked."""
    asked = (choice < 0.15) & ~torch.isin(tokens, special)
    masked = asked & (action < 0.8)
    exchanged = asked & (action >= 0.8) & (action < 0.9)
    read = tokens.masked_fill(masked, mask).where(~exchanged, others)
    return read, tokens.where(asked, -100)


hide.instead("""
choice < 0.15 -> choice <= 0.15
masked = asked & (action < 0.8) -> masked = asked & (action <= 0.8)
(action >= 0.8) & (action < 0.9) -> (action > 0.8) & (action <= 0.9)
        # 0.15, 0.8 and 0.9 themselves don't belong to what is below them
& ~torch.isin(tokens, special)
    # special tokens and padding are asked for, too
    & (tokens > special.max())  # special ids may lie between those of other tokens
    & (tokens != 0)  # the id 0 alone is left out, and not all that are special
choice < 0.15
    choice < 0.8
        # far too many are asked for: 0.8 is the share of masks among them
    choice >= 0.15  # the wrong way round: 85 % of the tokens are asked for
asked & (action < 0.8)
    action < 0.8  # 80 % of all tokens are hidden, not 80 % of those asked for
    asked  # all that is asked for is read as the mask; a fifth should not be
    asked & (action >= 0.2)  # it's masked from 0.2 on, and not below 0.8
asked & (action >= 0.8) & (action < 0.9)
    (action >= 0.8) & (action < 0.9)  # tokens that nobody asks for are exchanged
    asked & (action >= 0.8)
        # no token that is asked for stays as it is
    asked & (action >= 0.9)
        # tokens are exchanged from 0.9 on, which is where they stay as they are
    torch.zeros_like(asked)  # none is exchanged for a token of `others`
tokens.where(asked, -100)
    tokens  # every token has a label, also those that nobody asks for
    tokens.where(asked, 0)  # 0 is the id of a token: the loss doesn't skip it
    tokens.where(masked, -100)
        # only masks have labels: tokens that are exchanged or stay are asked for, too
    tokens.where(read != tokens, -100)
        # tokens that stay as they are have no label, but they are asked for, too
    read.where(asked, -100)  # the labels are what is read, not what stood there
    tokens.where(~asked, -100)  # labels stand where nothing is asked, and nowhere else
    asked  # that says which are asked for: labels are their ids
    tokens.where(read == mask, -100)  # … expected what is read
return read, tokens.where(asked, -100) -> return read  # … expected 2 values
""")


SPECIAL = torch.tensor([4, 0, 1, 2, 3])  # [MASK] [PAD] [UNK] [CLS] [SEP]


@hide.case("the example: one text")
def _(draw):
    words = draw.integers(5, 40, 2, 4).tolist()
    tokens = torch.tensor([[2, *words[0], 3, 0]])
    choice = torch.tensor([[0.01, 0.12, 0.40, 0.03, 0.14, 0.50, 0.02]])
    action = torch.tensor([[0.30, 0.50, 0.20, 0.85, 0.95, 0.10, 0.60]])
    return tokens, SPECIAL, 4, choice, action, 40 + draw.integers(1, 9, 1, 7)


@hide.each("""
many tokens -> [60, 60, 60, 60]
much padding -> [30, 4, 9, 6, 5]
every choice is low, and special tokens are safe all the same -> [9, 30, 4], 0.0, 0.1
no choice is low, and nothing is asked for -> [6, 9], 0.2, 1.0
other ids are special -> [20, 24, 3], 0.0, 0.5, 50
""")
def _(draw, lengths, low=0.0, high=1.0, first=0):
    b, t = len(lengths), max(lengths)
    tokens = draw.integers(1, 30, b, t)  # with an [UNK] or a [MASK] now and then
    tokens[:, 0] = 2
    for row, length in zip(tokens, lengths, strict=True):
        row[length - 1], row[length:] = 3, 0
    choice, action = draw.uniform(low, high, b, t), draw.uniform(0, 1, b, t)
    others = first + draw.integers(5, 30, b, t)
    return tokens + first, SPECIAL + first, 4 + first, choice, action, others


@hide.case("special ids are 0 and 100 to 103")
def _(draw):
    special = torch.tensor([103, 0, 100, 101, 102])
    tokens = draw.integers(0, 110, 4, 50)
    chances = draw.uniform(0, 0.3, 4, 50), draw.uniform(0, 1, 4, 50)
    return tokens, special, 103, *chances, draw.integers(1, 99, 4, 50)


@hide.case("exactly on the bounds, in double precision", dtype=torch.float64)
def _(draw):
    choice = torch.tensor([[0.15, 0.1, 0.1, 0.1, 0.1, 0.5]], dtype=draw.dtype)
    action = torch.tensor([[0.5, 0.8, 0.9, 0.7, 0.85, 0.1]], dtype=draw.dtype)
    order = draw.shuffled(range(6))
    words = draw.integers(5, 40, 2, 1, 6)
    return words[0], SPECIAL, 4, choice[:, order], action[:, order], 40 + words[1]


# ---- a head on [CLS] ---------------------------------------------------------


@exercise(
    "ch15-head",
    "expected the head's map of tanh of the pooler's map of each text's first state",
)
def classify(states, w, b, v, c, frozen):
    """Logits of each text from the state of its [CLS], (b, n)."""
    first = states[:, 0]  # [CLS]
    if frozen:
        first = first.detach()
    pooled = torch.tanh(first @ w.mT + b)
    return pooled @ v.mT + c


classify.instead("""
states[:, 0]
    states.mean(dim=1)  # the states of all tokens are averaged; [CLS] has one of them
    states[:, -1]  # that's the state of the last token: where does [CLS] stand?
    states.amax(dim=1)  # that's the largest of all tokens; [CLS] is one of them
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
    (first @ w.mT + b).sigmoid()  # … expected the head's map
pooled @ v.mT + c
    pooled @ v.mT  # the head's bias is missing
    torch.tanh(pooled @ v.mT + c)  # a tanh on logits: they may be of any size
    (pooled @ v.mT + c).softmax(dim=-1)
        # these are chances; logits are asked, and the loss has its own softmax
    (pooled @ v.mT + c).log_softmax(-1)  # … tanh of the pooler's map
if frozen:
    if False:  # what is frozen learns: a gradient reaches `states`
    if True:  # no gradient reaches `states` although they aren't frozen
    if not frozen:  # … although they aren't frozen
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
    "expected, for each position, the first number of layers after which it holds the "
    "token to guess, -1 if it never does",
)
def layers_to_see(mask, shown, asked):
    """How many layers it takes to see the token to guess, (t,)."""
    t = len(mask)
    layers = torch.full((t,), -1)
    holds = torch.eye(t, dtype=torch.bool) & shown  # position i, token j
    for n in range(t):
        seen = holds[torch.arange(t), asked] & (asked >= 0)
        layers[seen & (layers < 0)] = n
        holds = holds | (mask.double() @ holds.double() > 0)
    return layers


layers_to_see.instead("""
& (asked >= 0) -> # -1 isn't the last position: there is nothing to guess
& shown -> # what isn't shown is nowhere: nobody can see it
mask.double() @
    mask.mT.double() @  # row i says to which positions i attends; yours, who attends
        to i
    (mask & shown).double() @
        # positions whose token is hidden pass nothing on, but they attend like others
holds[torch.arange(t), asked]
    holds[asked, torch.arange(t)]
        # whether the position to guess holds the token of the one that guesses: the
        other way round
    holds.any(dim=1)  # any token that is held counts, not only the one to guess
    holds.diagonal()  # each position's own token: `asked` says which one to guess
seen & (layers < 0) -> seen
        # that's the last layer in which it's in sight, not the first
= n -> = n + 1  # that's one more than the layers that have run
in range(t) -> in range(2)
        # one layer is followed: what a position got, it passes on in the next
torch.full((t,), -1) -> torch.full((t,), t)
layers < 0 -> layers == t  # an answer that is never seen is -1
""")


def square(t):
    return torch.ones(t, t, dtype=torch.bool)


MASKS = {
    "causal": lambda t: square(t).tril(),
    "both ways": square,
    "all but the next": lambda t: ~square(t).triu(1).tril(1),
    "two back": lambda t: square(t).tril().triu(-2),
}


@layers_to_see.each("""
the example: all but the next may be attended to -> "all but the next", 4
a causal model -> "causal", 6
a bidirectional model -> "both ways", 5
a window of two, and some are hidden on the way -> "two back", 12, "first"
a window of two, in a longer text -> "two back", 24, "first"
BERT: what is asked for is hidden, or shown now and then -> "both ways", 9, "itself"
any mask -> None, 14, "any"
""")
def _(draw, kind, t, asked="next"):
    mask = MASKS[kind](t) if kind else draw.uniform(0, 1, t, t) < 0.15
    here, half = torch.arange(t), draw.mask(t)
    shown = square(t)[0] if asked == "next" else half | (here == 0)
    asked = {
        "next": (here + 2) % (t + 1) - 1,
        "first": 0 * here,
        "itself": here.where(~half | (here < 2), -1),  # two of them may be shown
        "any": draw.integers(-1, t - 1, t),
    }[asked]
    return mask, shown, asked


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
    """The mean loss of tokens asked for, plus the mean loss of pairs."""
    from torch.nn import functional as F

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
    F.cross_entropy(pair_logits.sigmoid(), labels)  # … plus the mean
return words + F.cross_entropy(pair_logits, labels)
    return (words + F.cross_entropy(pair_logits, labels)) / 2
        # the sum of both losses is asked, not their mean
words + F.cross_entropy(pair_logits, labels)
    (words + F.cross_entropy(pair_logits, labels)).item()  # … expected a tensor
""")


@pretraining_loss.each("""
every axis of another length -> 4, 9, 6, [0, 1, 1, 0]
all pairs follow but one -> 5, 8, 7, [0, 0, 1, 0, 0]
no pair follows -> 3, 7, 5, [1, 1, 1]
every token is asked for -> 3, 5, 8, [0, 1, 0], 1.0
the example: everything is equally likely -> 4, 25, 100, [0, 1, 1, 0], 0.2, 0.0
""")
@pretraining_loss.each(
    "gradients reach both kinds of logits -> 4, 6, 5, [1, 0, 1, 0]", gradients=True
)
def _(draw, b, t, v, labels, share=0.3, size=2.0):
    answers = draw.integers(1, v - 1, b, t)
    answers = answers.where(draw.uniform(0, 1, b, t) < share, 0)
    answers[0, 0] = v - 1  # one is asked for
    logits = size * draw.normal(b, t, v), size * draw.normal(b, 2)
    return *logits, answers, torch.tensor(labels)


# ---- weight surgery ----------------------------------------------------------


def missing(result, state, layers):
    """A symptom: fewer names than ours."""
    lacking = sorted(translate.right(state, layers).keys() - result.keys())
    return f"a name of ours is missing: {lacking[0]}" if lacking else None


@exercise(
    "ch15-surgery",
    "expected their tensors under our names: kernels turned to (out, in), queries, "
    "keys and values apart, and the one layer written for each",
    through=naming,
    broken={"unnamed": "the message doesn't hold the name that is missing or too many"},
    symptoms=missing,
)
def translate(state, layers):
    """The tensors of `state` under our names and in our layout."""
    names = ["words", "widen.kernel", "layer.qkv.kernel", "layer.qkv.bias"]
    names += ["layer.out.kernel", "layer.out.bias"]
    if odd := set(names) ^ state.keys():
        raise ValueError(f"missing or not expected: {sorted(odd)}")
    words, widen, *qkv_and_out = (state[name] for name in names)
    qkv, qkv_bias, out, out_bias = qkv_and_out
    ours = {"embedding.weight": words, "widen.weight": widen.T}
    for n in range(layers):
        for i, name in enumerate(("query_map", "key_map", "value_map")):
            ours[f"layers.{n}.{name}.weight"] = qkv.T.chunk(3)[i]
            ours[f"layers.{n}.{name}.bias"] = qkv_bias.chunk(3)[i]
        ours[f"layers.{n}.output_map.weight"] = out.T
        ours[f"layers.{n}.output_map.bias"] = out_bias
    return ours


translate.instead("""
out.T -> out  # the output map is square, and fits both ways: it isn't (out, in) yet
widen.T -> widen  # the map that widens isn't (out, in)
: words -> : words.T  # `words` is a table, and stays as it is
qkv.T.chunk(3)[i] -> qkv.T[i::3]
        # the first third of the columns is the queries'; yours takes every third one
qkv.T.chunk(3)
    qkv.chunk(3, dim=1)
        # queries, keys and values are square, and fit both ways: they aren't (out, in)
    qkv.reshape(-1, len(qkv)).chunk(3)
        # a reshape of queries, keys and values fits, but mixes their numbers
qkv_bias.chunk(3)[i]
    qkv_bias  # one bias for queries, keys and values together: each gets its third
"query_map", "key_map", "value_map" -> "key_map", "query_map", "value_map"
        # queries come first, and then keys
set(names) ^ state.keys()
    state.keys() - SAVED
        # a name is missing, and your code doesn't say which, in a ValueError
    set(SAVED) - state.keys()
        # a name that the table doesn't have is passed over: a ValueError is asked
ValueError(f"missing or not expected: {sorted(odd)}")
    ValueError("wrong names")  # {unnamed}
range(layers) -> range(1)  # … is missing: layers.1
range(layers) -> range(1, layers + 1)  # … is missing: layers.0
set(names) ^ state.keys() -> ()  # … is passed over
""")


def saved(draw, v, e, d):
    shapes = [(v, e), (e, d), (d, 3 * d), (3 * d,), (d, d), (d,)]
    both = zip(SAVED, shapes, strict=True)
    return {name: draw.normal(*shape) for name, shape in draw.shuffled([*both])}


@translate.each("""
the example: two layers of width 2 -> 5, 1, 2, 2
three layers, all sizes different -> 7, 3, 5, 3
one layer -> 6, 2, 3, 1
embeddings as wide as the stream -> 4, 4, 4, 2
""")
def _(draw, v, e, d, layers):
    return saved(draw, v, e, d), layers


@translate.each("""
a bias is missing -> "layer.out.bias", None
the table is missing -> "words", None
there is a name too many -> None, "pooler.kernel"
""")
def _(draw, missing, strange):
    state = saved(draw, 5, 2, 3)
    state.pop(missing, None)
    return state | ({strange: draw.normal(3, 3)} if strange else {}), 2


# ---- which head? -------------------------------------------------------------


@exercise(
    "ch15-heads",
    "expected, for each layer and head, the share of the product's atoms whose largest "
    "weight, among the atoms before the arrow, is on a right one",
)
def head_shares(maps, before, behind, may):
    """How often each head's largest weight is on a right atom, (layers, h)."""
    weights = maps[:, :, behind][..., before]  # (layers, h, n, m)
    chosen = weights.argmax(dim=-1)  # (layers, h, n)
    right = may[torch.arange(len(behind)), chosen]
    return right.to(maps.dtype).mean(dim=-1)


head_shares.instead("""
maps[:, :, behind][..., before]
    maps[:, :, before][..., behind].mT
        # rows are queries: the product's atoms look back, and not the others at them
    maps[:, :, behind][..., :len(before)]
        # these are the first columns: the atoms stand at the positions in `before`
may[torch.arange(len(behind)), chosen] -> chosen == may.int().argmax(dim=-1)
        # an atom may have several right ones, which symmetry can't tell apart
right.to(maps.dtype)
    (weights * may).sum(dim=-1)
        # that's the weight on right atoms; count how often the largest one is right
right.to(maps.dtype).mean(dim=-1)
    ((maps[:, :, behind].argmax(dim=-1)[..., None] == before) & may).any(dim=-1).to(
        maps.dtype).mean(dim=-1)
        # weights on other tokens don't count: the largest is of those on `before`
    right.to(maps.dtype).mean(dim=(0, 2)).expand(maps.shape[:2])
        # the layers are averaged: each layer and head has a share of its own
    right.to(maps.dtype).sum(dim=-1)  # that's how many are right, not their share
""")


@head_shares.case("the example: two heads, two atoms of the product")
def _(draw):
    rows = (
        [[0, 5, 2, 0, 3, 0], [0, 6, 1, 3, 0, 0]],
        [[5, 3, 2, 0, 0, 0], [0, 1, 4, 0, 5, 0]],
    )
    maps = torch.full((1, 2, 6, 6), 1 / 6)
    maps[0, :, 4:] = torch.tensor(rows) / 10
    return maps, torch.tensor([1, 2]), torch.tensor([4, 5]), torch.eye(2).bool()


@head_shares.each("""
several layers and heads, every axis of another length -> 3, 2, 7, 5
one atom on each side -> 2, 3, 1, 1
""")
@head_shares.each("in double precision -> 2, 3, 6, 4", dtype=torch.float64)
def _(draw, layers, heads, before, behind):
    t = before + behind + 3
    places = draw.shuffled([*range(t)])
    maps = draw.normal(layers, heads, t, t).softmax(dim=-1)
    may = draw.uniform(0, 1, behind, before) < 0.4
    may[:, 0] = True
    split = torch.tensor(places[:before]), torch.tensor(places[before:][:behind])
    return maps, *split, may
