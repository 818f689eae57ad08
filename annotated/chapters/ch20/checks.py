"""The exercises of chapter 20; ``__init__.py`` says how one is written.

Each case draws a patient (``patients.py``), whose text goes to where the answer runs.
"""

import torch

from annotated.chapters.ch20.patients import friend, patient
from annotated.checks import exercise, material

# ---- who sees later tokens? --------------------------------------------------


@exercise(
    "ch20-future",
    "expected, of each logit and each later token, whether one moves the other",
    through=material.as_trained,
)
def leaks(model, tokens, v):
    """Which logits (rows) depend on which later tokens (columns), (t, t)."""
    model.eval()  # dropout would move everything
    t = tokens.shape[1]
    before, found = model(tokens)[0], torch.zeros(t, t, dtype=torch.bool)
    for j in range(t):
        other = tokens.clone()
        other[0, j] = 3 + (other[0, j] - 2) % (v - 3)
        moved = model(other)[0] != before  # exactly: shapes are equal
        found[:, j] = moved.any(dim=-1)
    return found.triu(1)


leaks.instead(r"""
other[0, j] = 3 + (other[0, j] - 2) -> other[0, j:] = 3 + (other[0, j:] - 2)
        # these are too many pairs: which of the tokens that you change moves the logit?
model.eval()
    # every logit moves with every token: is the model still in training mode, or are
        rows and columns swapped?
moved = model(other)[0] != before
    moved = (model(other)[0] - before).abs() > 1e-3
        # a small leak is a leak: at equal shapes a sound model moves by exactly 0
other[0, j] = 3 + (other[0, j] - 2) % (v - 3) -> other[0, j] = 3
        # a token that's 3 already isn't changed by writing a 3
moved = model(other)[0] != before
    moved = model(other[:, :j])[0] != before[:j]; moved = torch.nn.functional.pad(
        moved, (0, 0, 0, t - j))
        # a text that's cut off has another shape: sums are rounded in another way there
found[:, j] = moved.any(dim=-1)
    found[j] = moved.any(dim=-1)  # … rows and columns swapped
    found[:, j] = moved.all(dim=-1)
        # … whether one moves the other
    found[:, j] = moved.any(dim=-1) & (torch.arange(t) == j - 1)
        # a logit may see further ahead than the next token
    found[:, j] = moved.any(dim=-1) & (torch.arange(t) == 0)
        # the first logit isn't the only one that may see what comes later
return found.triu(1)
    return found  # a logit may depend on what's before it, and on its own token
    return found.triu(0)  # a logit may depend on its own token: that's no leak
    return found.tril(-1)  # that's who sees the past: rows are logits
""")


@leaks.each("""
patient 1 -> "OneAhead"
patient 2 -> "Chunks", "Window"
patient 3 -> "NormOverTime", "GlobalMean"
patient 4 -> "Circular"
patient 5 -> "SoftMask"
patient 6, who is sound ->
patient 7 -> "Centred"
patient 8 -> "NoMask", "WrongAxis"
""")
def _(draw, *names):
    number = draw.integer(0, 2**31)
    ill = patient(number, "future", names=[draw.choice(names)] if names else [])
    source = ill.source if names else friend(number)
    return source, draw.integers(3, 16, 1, draw.integer(11, 15)), number


# ---- repair what says who sees whom ------------------------------------------


@exercise(
    "ch20-padding",
    "expected the logits of a model that sees the past, and no padding",
    through=material.looking,
    tolerance=1e-4,
)
def look(tokens, pad):
    """Who may attend to whom (b, 1, t, t), and where each token stands (b, t)."""
    t = tokens.shape[1]
    past = torch.ones(t, t, dtype=torch.bool).tril()
    real = (tokens != pad)[:, None, None, :]
    # a query always sees itself, so that no row is left without a key
    may = past & real | torch.eye(t, dtype=torch.bool)
    place = ((tokens != pad).cumsum(dim=1) - 1).clamp(min=0)
    return may, place


look.instead(r"""
torch.ones(t, t, dtype=torch.bool).tril()
    torch.ones(t, t, dtype=torch.bool)  # nothing hides later tokens
    torch.ones(t, t, dtype=torch.bool).tril(1)
        # each token sees one that comes later: where does the mask's diagonal begin?
    torch.arange(t)[:, None] // 8 >= torch.arange(t) // 8
        # later tokens are hidden between chunks of 8, and not inside of one
    torch.arange(t)[:, None] - torch.arange(t) < 8
        # a window has two ends: yours is open towards the future
real = (tokens != pad)[:, None, None, :]
    real = torch.ones_like(tokens, dtype=torch.bool)[:, None, None, :]
        # padding isn't hidden
    real = (tokens == pad)[:, None, None, :]
        # the mask is upside down: it hides what is real, and shows padding
    real = (tokens != pad)[:, None, :, None]
        # … padding isn't hidden
    real = (tokens != pad)[:1, None, None, :]
        # the mask of the first row is used for all rows
    real = (tokens != 0)[:, None, None, :]  # padding needn't be 0: its id is `pad`
past & real | torch.eye(t, dtype=torch.bool)
    past & real  # a row that sees nothing gives NaN, 0 / 0
    past | real  # a key must be in the past and real, not one of the two
((tokens != pad).cumsum(dim=1) - 1).clamp(min=0)
    torch.arange(t).expand(tokens.shape)
        # padding in front is counted: the first real token stands at 0
    ((tokens != pad).cumsum(dim=1) - 1).clamp(min=0).amax(dim=0).expand(tokens.shape)
        # positions are those of the longest row, for all rows
    (tokens != pad).cumsum(dim=1).clamp(min=0)
        # the first real token stands at 0, not at 1
    (tokens != pad).cumsum(dim=1) - 1
        # … IndexError
    ((tokens != pad).cumsum(dim=0) - 1).clamp(min=0)
        # positions are counted along a row, not from row to row
""")


@look.each("""
no padding -> 0, 0, "no"
padding behind -> 0, 4, "no"
padding in front -> 4, 0, "no"
padding at both ends -> 3, 3, "no"
padding in front, and a row of padding alone -> 4, 0, "and"
""")
def _(draw, front, behind, empty):
    number = draw.integer(0, 2**31)
    ill = patient(number, part="look")
    ids = material.script(ill.source)
    t = draw.integer(12, 16)
    tokens = (ids["PAD"] + draw.integers(1, ids["V"] - 1, 4, t)) % ids["V"]
    for row in range(4):
        tokens[row, : draw.integer(min(front, 1), front)] = ids["PAD"]
        tokens[row, t - draw.integer(min(behind, 1), behind) :] = ids["PAD"]
    if empty == "and":
        tokens[draw.integer(1, 3)] = ids["PAD"]
    return tokens, ill.source, number


# ---- what does a loss ask for? -----------------------------------------------


@exercise(
    "ch20-loss",
    "expected the words for all that is wrong, sorted: [] for a sound loss",
    through=material.asked_of_loss,
)
def diagnose(loss, v, pad, end):
    """What is wrong with a loss: a sorted list of words."""
    import math

    rows = [[3, 4, 5, 6, 7, 8], [9, 10, end, pad, pad, pad]]
    tokens, found = torch.tensor(rows), set()
    # all logits are 0: the gradient is negative where the label is
    logits = torch.zeros(*tokens.shape, v, requires_grad=True)
    value = loss(lambda _: logits, tokens)
    [gradient] = torch.autograd.grad(value, logits)
    counted, label = gradient.any(dim=-1), gradient.argmin(dim=-1)
    asked = label[counted].tolist()
    shift = label[0, 0].item() - 3
    found |= {"copies"} if shift == 0 else {"skips"} if shift == 2 else set()
    found |= {"padding"} if pad in asked else set()
    found |= {"end"} if end not in asked else set()
    found |= {"last"} if 8 not in asked else set()
    mean = value.item() / math.log(v)  # in units of what a guess costs
    found |= {"sum"} if mean > 1.01 else {"diluted"} if mean < 0.99 else set()
    # a model that is right, and sure of it
    sure = 30.0 * torch.nn.functional.one_hot(label, v)
    again = loss(lambda _: sure, tokens)
    found |= {"softmax"} if again > 0.05 * value else set()
    return sorted(found)


diagnose.instead(r"""
return sorted(found) -> return sorted(found)[:1]  # a patient may have two faults
return sorted(found) -> return sorted(found, reverse=True)
        # the words are sorted by the alphabet
[9, 10, end, pad, pad, pad] -> [9, 10, 11, 12, 13, end]
        # one loss counts padding, and one divides by it: has a text of yours padding?
end, pad, pad, pad] -> 11, pad, pad, pad]
found |= {"end"} if end not in asked else set() -> found |= set()
        # one loss never asks for the end: has a text of yours an end?
shift = label[0, 0].item() - 3 -> shift = 1 + 0 * label[0, 0].item()
        # which token does the first position ask for: its own, or the one after next?
shift == 2 -> shift == 1  # the next token is what a loss should ask for
{"copies"} if shift == 0 -> set() if shift == 0
        # … which token does the first position ask for
{"skips"} if shift == 2 -> set() if shift == 2
        # … which token does the first position
found |= {"end"} if end not in asked else set() -> found |= set()
        # … has a text of yours an end
found |= {"last"} if 8 not in asked else set() -> found |= set()
        # one loss never asks for the last column: a full row's last token is missing
mean > 1.01 -> mean > 2.01 * len(asked)
        # one loss is a sum over tokens: what does a model of equal logits pay?
mean < 0.99 -> mean < 0.01  # … has a text of yours padding
found |= {"softmax"} if again > 0.05 * value else set() -> found |= set()
        # one loss doesn't reward a model that's right and sure
again > 0.05 * value -> again > 0.05 * math.log(v)
sure = 30.0 -> sure = 1.0
        # a model that's right but not sure pays, too: make it surer
{"sum"} if mean > 1.01 else {"diluted"} if mean < 0.99
    {"sum"} if mean < 0.99 else {"diluted"} if mean > 1.01
        # a sum is too large, a sum divided by too much is too small
""")


@diagnose.each("""
patient 1 -> "same_token"
patient 2 -> "after_the_next"
patient 3 -> "padding_counts"
patient 4 -> "end_is_padding"
patient 5 -> "last_forgotten"
patient 6 -> "sum_of_tokens"
patient 7 -> "divided_by_all"
patient 8 -> "softmax_twice"
patient 9, who has two faults -> "same_token", "sum_of_tokens"
patient 10, who has two faults -> "softmax_twice", "divided_by_all"
patient 11, who is sound ->
patient 12, who is drawn -> "drawn"
""")
def _(draw, *names):
    number = draw.integer(0, 2**31)
    if not names:
        return (friend(number),)
    names = [] if names[0] == "drawn" else list(names)
    return (patient(number, "loss", "loss", names=names).source,)


# ---- repair a cache ----------------------------------------------------------


@exercise(
    "ch20-cache",
    "expected the logits that the whole text gives at once",
    through=material.reading_on,
    broken={"again": "tokens are read again that were read before: use what is kept"},
    tolerance=1e-4,
)
def read_on(model, tokens, past=None):
    """Logits (b, n, v) of n more tokens, and all that is kept of the text so far."""
    past = past or {"read": 0, "layers": [{} for _ in model.layers]}
    n, read = tokens.shape[1], past["read"]
    x = model.embed(tokens, torch.arange(read, read + n))
    may = torch.ones(n, read + n, dtype=torch.bool).tril(read)
    for layer, kept in zip(model.layers, past["layers"], strict=True):
        x = layer(x, may, kept)
    past["read"] = read + n
    return model.logits(x), past


read_on.instead(r"""
torch.arange(read, read + n)
    torch.arange(n)  # every piece stands at position 0
    torch.arange(n) + read + max(read - 1, 0) // 2
        # positions run ahead: the offset is counted again after the first step
    torch.arange(2 * read, 2 * read + n)  # the offset is added twice
    torch.full((n,), read)  # all tokens of a piece stand at one position
dtype=torch.bool).tril(read)
    dtype=torch.bool)  # inside of a piece, tokens see later ones
    dtype=torch.bool).tril(read if n == 1 else 0)
        # a piece's mask begins at the first key of the text, not at its own
    dtype=torch.bool).tril(read + 1)  # tokens of a piece see one that comes later
    dtype=torch.bool).tril(read - 1)
        # tokens don't see themselves, and the first one sees nothing at all
past["read"] = read + n
    past["read"] = read + 1  # … must match the size
    past["read"] = n  # … your code raised RuntimeError
[{} for _ in model.layers]
    [{}] * len(model.layers)
        # … your code raised
past or {"read": 0, "layers": [{} for _ in model.layers]}
    past if past is not None else model.__dict__.setdefault("begun", {"read": 0,
        "layers": [{} for _ in model.layers]})
        # … in the second text
return model.logits(x), past
    return model.output(x), past  # the last norm is missing: logits are model.logits(x)
x = layer(x, may, kept) -> x = layer(x, may[:, read:]); kept.clear()
        # keys and values of the text so far aren't used
""")


@read_on.each("""
all at once -> [9]
one token at a time -> [1, 1, 1, 1, 1, 1, 1, 1, 1]
the beginning at once, and then one token at a time -> [5, 1, 1, 1, 1]
in pieces of 3 -> [3, 3, 3]
in pieces of other sizes -> [2, 4, 3]
""")
def _(draw, pieces):
    number = draw.integer(0, 2**31)
    ill = patient(number, part="read_on")
    rows, pieces = draw.integer(1, 3), draw.shuffled(pieces)
    return ill.source, [draw.integers(3, 16, rows, sum(pieces))], pieces, number


@read_on.case(
    "two texts by turns",
    hint="in the second text something is left of the first one",
)
def _(draw):
    number = draw.integer(0, 2**31)
    texts = [draw.integers(3, 16, 2, 6), draw.integers(3, 16, 2, 6)]
    return patient(number, part="read_on").source, texts, [1] * 6, number


# ---- parameters and modes ----------------------------------------------------


@exercise(
    "ch20-modes",
    "expected the words for all that is wrong, sorted: [] for a sound model",
    through=material.examined,
)
def examine(make, tokens):
    """What is wrong with a model's modes and parameters: a sorted list of words."""
    one, two, found = make(), make(), set()

    def seeded(model):
        torch.manual_seed(1)
        return model(tokens)

    if one.train()(tokens).equal(one(tokens)):
        found.add("idle")
    if not one.eval()(tokens).equal(one(tokens)):
        found.add("random")
    one(tokens).square().sum().backward()
    parameters = list(one.parameters())
    for p in parameters:
        if p.grad is None or not p.grad.any():
            found.add("stuck")
        elif not p.grad.isfinite().all():
            found.add("infinite")
    if len({p.data_ptr() for p in parameters}) < len(parameters):
        found.add("torn")
    two.load_state_dict(one.state_dict())
    if not seeded(one).equal(seeded(two.eval())):
        found.add("lost")
    return sorted(found)


examine.instead(r"""
return sorted(found) -> return sorted(found)[:1]  # a patient may have two faults
torch.manual_seed(1) -> pass
        # a model that draws gives other outputs anyway: nothing need have been lost
one.eval()(tokens) -> one(tokens)  # dropout is allowed in training mode
one, two, found = make(), make(), set()
    torch.manual_seed(0); one = make(); torch.manual_seed(0); two, found = make(), set()
        # something that matters isn't saved. Is it equal in your two models all the
        same: are they copies, or made from the same random numbers?
    one, found = make(), set(); two = __import__("copy").deepcopy(one)
        # … Is it equal in your two models
found.add("lost") -> pass  # … something that matters isn't saved
found.add("idle") -> pass  # one model's dropout never acts
found.add("random") -> pass  # one model draws random numbers when it should not
found.add("stuck") -> pass
        # one model has a parameter that isn't used: its gradient may be None
p.grad is None or not p.grad.any() -> p.grad is not None and not p.grad.any()
elif not p.grad.isfinite().all() -> elif p.grad is not None and not
        p.grad.isfinite().all()
        # … its gradient may be None
found.add("infinite") -> pass  # one model's gradients aren't finite
found.add("torn") -> pass
        # one model has two parameters that share their numbers: no tie that holds
len({p.data_ptr() for p in parameters}) < len(parameters)
    len({tuple(p.flatten().tolist()) for p in parameters}) < len(parameters)
        # new norms have equal numbers, and share nothing
two.load_state_dict(one.state_dict())
    # your two models differ where nothing was lost: has the second one loaded the
        first one's state, and are both in evaluation mode?
seeded(two.eval()) -> seeded(two.train())  # … are both in evaluation mode
""")


@examine.each("""
patient 1 -> "AlwaysDropout"
patient 2 -> "IdleDropout"
patient 3 -> "RootAtZero"
patient 4 -> "NeverCalled"
patient 5 -> "Detached"
patient 6 -> "TiedByData"
patient 7 -> "NotSaved"
patient 8 -> "PlainList"
patient 9, who has two faults -> "AlwaysDropout", "NoGradient"
patient 10, who has two faults -> "TiedByData", "RootAtZero"
patient 11, who is sound ->
patient 12, who is drawn -> "drawn"
""")
def _(draw, *names):
    number = draw.integer(0, 2**31)
    tokens = draw.integers(3, 16, 2, draw.integer(9, 14))
    if not names:
        return friend(number), tokens, number
    names = [] if names[0] == "drawn" else list(names)
    return patient(number, "parameters", names=names).source, tokens, number


# ---- twenty calls ------------------------------------------------------------


@exercise(
    "ch20-calls",
    "expected the first position of the stretch, and the one after its last",
    through=material.with_twenty_calls,
    broken={"calls": "your probe calls the model more than 20 times"},
)
def stretch(f, tokens, v):
    """The stretch (start, stop) that a norm is over, or None if there's none."""
    before = f(tokens)

    def first_moved(j):
        other = tokens.clone()
        other[j] = 3 + (other[j] - 2) % (v - 3)
        moved = (f(other) != before).any(dim=-1)
        return int(moved.nonzero()[0])

    for j in range(29, len(tokens), 30):
        start = first_moved(j)
        if start < j:  # a token inside moves all logits of its stretch
            break
    else:
        return None
    inside, outside = j, len(tokens)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if first_moved(middle) < middle:
            inside = middle
        else:
            outside = middle
    return start, outside


stretch.instead(r"""
range(29, len(tokens), 30)
    range(len(tokens))  # … calls the model more than 20 times
    range(29, len(tokens), 60)
        # a stretch of 31 positions fits between two of your tokens
    range(len(tokens) - 1, len(tokens))
        # there's a stretch, and you find none: is one of your tokens inside it, and do
        you compare exactly?
    range(1)  # … is one of your tokens inside it
start = first_moved(j)
    start = first_moved(j); start = start if start < j else j; found = j
return start, outside -> return found, outside
        # the stretch begins before the token that you changed: which logit is the first
        to move?
while outside - inside > 1 -> while first_moved(inside + 1) < inside + 1:
        inside, outside = inside + 1, inside + 2\n    while False
        # … more than 20 times
return start, outside
    return start, inside  # stop is the position after the last one of the stretch
    return start, len(tokens)  # a stretch may end before the text does
    return torch.tensor([start, outside])  # … expected 2 values
(f(other) != before) -> ((f(other) - before).abs() > 1e-2)
        # … do you compare exactly
else:\n        return None -> else:\n        return 0, 0
        # a model that's sound has no stretch: None
""")


@stretch.each("""
a first friend's model -> 240, 31
a second friend's model -> 240, 33
a third friend's model -> 230, 31
a fourth friend's model -> 221, 70
a fifth friend's model -> 239, 36
a model that is sound -> 240, 0
""")
def _(draw, t, length):
    number = draw.integer(0, 2**31)
    return friend(number, t, length), draw.integers(3, 16, t), number
