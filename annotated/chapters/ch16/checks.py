"""The exercises of chapter 16; ``__init__.py`` says how one is written."""

from itertools import pairwise

import torch

from annotated.checks import exercise, faults
from annotated.checks.calling import Raised

# ---- cut a prompt -----------------------------------------------------------


def not_two(result, text, merges, most):
    if isinstance(result, Raised):
        return None
    match result:
        case [[*ids], str()] if max(ids, default=0) < 256 + len(merges):
            return None
        case [[*ids], str()]:
            return "an id is larger than any: begin with bytes, and not with characters"
        case list() | tuple() | str():
            return "two values are asked for: the ids, a list, and their text, a string"


def longest_first(text, merges, most):
    spelled = [bytes([i]) for i in range(256)]
    for a, b in merges:
        spelled.append(spelled[a] + spelled[b])
    ids, rest = [], text.encode()
    while rest and len(ids) < most:
        fitting = [i for i, token in enumerate(spelled) if rest.startswith(token)]
        ids.append(max(fitting, key=lambda i: len(spelled[i])))
        rest = rest[len(spelled[ids[-1]]) :]
    return ids, b"".join(spelled[i] for i in ids).decode("utf-8", "replace")


@exercise(
    "ch16-bytes",
    "expected the bytes' ids, of all neighbours always those joined that come first in "
    "`merges`, cut, and then the text of all bytes that are left",
    {
        "you go from left to right; join neighbours, always those "
        "that come first in `merges`": longest_first
    },
    symptoms=not_two,
)
def truncate(text, merges, most):
    """The first ids of a text, at most `most`, and what they say."""
    from itertools import pairwise

    ranks = {pair: i for i, pair in enumerate(merges)}
    ids = list(text.encode())
    while pairs := [p for p in pairwise(ids) if p in ranks]:
        pair = min(pairs, key=ranks.get)
        i = list(pairwise(ids)).index(pair)
        ids[i : i + 2] = [256 + ranks[pair]]
    ids = ids[:most]
    spelled = [bytes([i]) for i in range(256)]
    for a, b in merges:
        spelled.append(spelled[a] + spelled[b])
    whole = b"".join(spelled[i] for i in ids)
    return ids, whole.decode("utf-8", errors="replace")


truncate.instead("""
min(pairs, key=ranks.get)
    pairs[0]  # you join from the left; join the pair first that comes first in
        `merges`, wherever it stands
    max(pairs, key=pairs.count)  # you join the commonest pair, as when merges are
        learned; now they are known, and have an order
    max(pairs, key=ranks.get)  # of two pairs, you join the one that comes last
text.encode()
    text.encode("latin-1", "replace")
        # your ids are the numbers of characters; begin with the bytes of UTF-8
    text.encode()[:most]  # you cut before you join; `most` counts tokens
    text[:most].encode()  # you cut the text; `most` counts tokens
while pairs -> if pairs
        # you join once, and stop; what was joined may be joined again
while pairs := [p for p in pairwise(ids) if p in ranks]: -> for pair in merges:
pair = min(pairs, key=ranks.get) -> if pair not in pairwise(ids): continue
        # you join each pair once; it may be there again: go on while there's one
i = list(pairwise(ids)).index(pair) -> i = len(ids) - 2 - [*pairwise(ids)][::-1].index(
        pair)  # of equal pairs, you join the last; begin on the left
ids = ids[:most]
    ids = ids[-most:]  # the last tokens are left, not the first
    # nothing is cut off
    ids = ids[: most + 1]  # … expected 9 values, got 10
whole = b"".join(spelled[i] for i in ids) -> whole = [spelled[i] for i in ids]
whole.decode("utf-8", errors="replace") -> "".join(x.decode("utf-8", errors="replace")
        for x in whole)
        # each token is decoded by itself; a character may be in two of them
errors="replace"
    errors="ignore"  # bytes that don't form a character are left out; they become "�"
whole.decode("utf-8", errors="replace") -> whole.decode("latin-1")
        # each byte is read as a character, whatever UTF-8 says
list(text.encode()) -> [min(ord(c), 255) for c in text]  # … numbers of characters
whole.decode("utf-8", errors="replace") -> whole.decode()  # … UnicodeDecodeError
return ids, whole.decode("utf-8", errors="replace")
    return whole.decode("utf-8", errors="replace")  # … two values are asked for
""")


def learned(draw, words, count):
    """Pairs that occur in a text of some words, one learned after the other."""
    ids, merges = list("".join(draw.choice(words) for _ in range(60)).encode()), []
    for new in range(256, 256 + count):
        pair = draw.choice([*pairwise(ids)])
        merges.append(pair)
        i = 0
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == pair:
                ids[i : i + 2] = [new]
            i += 1
    return merges


@truncate.case("the example: half an emoji is left")
def _(draw):
    return "abcd😀", [(98, 99), (97, 98), (256, 100), (97, 256)], draw.integer(3, 5)


@truncate.each("""
nothing can be joined, and nothing is cut off -> "abcd", 0, 99
three letters, many pairs -> "abc", 20, 99
the same, cut -> "abc", 12, 9
letters with accents -> "aéèü", 10, 15
emoji that share some bytes -> "😀😂👍🙂", 4, 40
Chinese and Greek -> "你好βίος ", 14, 8
""")
def _(draw, words, count, most):
    text = "".join(draw.choice(words) for _ in range(30))
    return text, learned(draw, words, count), most


@truncate.case("equal letters in a row")
def _(draw):
    return "a" * draw.choice([3, 5, 7]) + "b", [(97, 97)], 99


@truncate.case("one byte of a character is left")
def _(draw):
    return draw.choice("äöüß") + "abc", [(97, 98)], 1


# ---- how many parameters? ----------------------------------------------------


@exercise(
    "ch16-count",
    "expected both tables, in each block an attention, a network and two norms, and "
    "one norm more",
    symptoms=lambda result, *_: (
        "a whole number is asked for: `//` divides into one, `/` doesn't"
        if isinstance(result, float)
        else None
    ),
    tolerance=1e-12,
)
def parameters(vocab, d, layers, heads, max_len):
    """How many numbers a GPT-2 of these sizes learns."""
    attention = 4 * (d * d + d)
    network = d * 4 * d + 4 * d + 4 * d * d + d
    norm = 2 * d
    tables = vocab * d + max_len * d  # the head is one of them
    return tables + layers * (attention + network + 2 * norm) + norm


parameters.instead("""
vocab * d +
    2 * vocab * d +
        # the head is counted as well, but it is the table of the tokens once more
    # the table of the tokens is missing
vocab * d + max_len * d -> vocab * d  # the table of the positions is missing
4 * (d * d + d)
    4 * d * d  # the biases of the attention's maps are missing
    3 * (d * d + d)  # the attention has four maps: there's one for its output
    4 * heads * (d * d + d)
        # all heads together have maps of d × d: their number makes no difference
    4 * (d * d + heads)  # … expected both tables
network = d * 4 * d + 4 * d + 4 * d * d + d
    network = d * 4 * d + 4 * d * d  # the biases of the network are missing
    network = d * 4 * d + 4 * d + 4 * d * d + 4 * d
        # the network's second bias is d wide, as what it gives is
    network = d * 4 * d + 4 * d  # the network goes back from 4d to d, too
    network = 2 * (d * d + d)  # the network is d wide inside; it should be 4d
norm = 2 * d
    norm = d  # a norm has a weight and a bias
    norm = 0  # the norms are missing
2 * norm) + norm
    2 * norm)  # the norm after the last block is missing
    norm) + norm  # a block has two norms
    2 * norm) + norm + max_len * max_len  # the causal mask isn't learned
return tables + layers * (attention + network + 2 * norm) + norm
    return 12 * layers * d * d
        # these are the matrices of the blocks: tables, biases and norms are missing
layers * -> # there are more blocks than one
4 * (d * d + d) -> 4 * d * d
network = d * 4 * d + 4 * d + 4 * d * d + d -> network = 8 * d * d
        # the biases of the blocks' maps are missing
4 * (d * d + d) -> 4 * d * d
network = d * 4 * d + 4 * d + 4 * d * d + d -> network = 8 * d * d
norm = 2 * d -> norm = 0  # biases and norms are missing
vocab * d + max_len * d -> vocab * d + max_len  # … in each block an attention
""")


parameters.each("""
the example -> [11, 6, 3, 2, 5]
124M -> [50257, 768, 12, 12, 1024]
1.5B -> [50257, 1600, 48, 25, 1024]
""")(lambda draw, sizes: tuple(sizes))


@parameters.case("other sizes")
@parameters.case("sizes that are drawn")
def _(draw):
    heads, layers = draw.sizes(2, 3, 9)
    sizes = draw.integer(100, 900), heads * draw.integer(8, 40), layers, heads
    return *sizes, draw.integer(20, 90)


# ---- the load that doesn't fail ----------------------------------------------


def other_names(result, state):
    """A symptom: names that are missing, or too many."""
    wanted = translate.right(state).keys()
    if isinstance(result, dict) and (lacking := sorted(wanted - result.keys())):
        return f"a name of ours is missing: {lacking[0]}"
    if isinstance(result, dict) and result.keys() - wanted:
        mask = [name for name in state if name.endswith(".attn.bias")]
        if result.keys() & set(mask):
            return "`attn.bias` is the causal mask, and no bias: leave it out"
        return "there's a name in your result that isn't ours"


@exercise(
    "ch16-surgery",
    "expected the tensors under our names, the matrices of maps turned to (out, in), "
    "and all others as they were",
    symptoms=other_names,
)
def translate(state):
    """An official GPT-2's weights under our names, in `nn.Linear`'s layout."""
    turned = "c_attn.weight", "c_proj.weight", "c_fc.weight"
    ours = {}
    for name, tensor in state.items():
        if name.endswith(turned):
            tensor = tensor.T
        if "c_attn" in name:
            for i, part in enumerate(("query", "key", "value")):
                ours[name.replace("c_attn", part)] = tensor.chunk(3)[i]
        elif not name.endswith(".attn.bias"):
            ours[name] = tensor
    return ours


translate.instead("""
tensor = tensor.T
    tensor = tensor.T if len(tensor) != tensor.shape[1] else tensor
        # `attn.c_proj` is square, and fits both ways: it isn't (out, in) yet
    tensor = tensor.reshape(*tensor.shape[::-1])
        # a reshape fits, but mixes the numbers of a matrix
    tensor = tensor
        # no matrix is turned to (out, in)
tensor = tensor.T -> shape = (-1, len(tensor)); tensor = tensor.reshape(shape) if
        "c_attn" in name else tensor.T
        # a reshape of queries, keys and values fits, but mixes their numbers
tensor = tensor.T -> tensor = tensor if "c_attn" in name else tensor.T
tensor.chunk(3)[i] -> tensor.chunk(3, dim=-1)[i]
        # queries, keys and values are square, and fit both ways: they aren't (out, in)
name.endswith(turned)
    tensor.dim() == 2  # `wte` and `wpe` are turned, but they are tables: nothing is
        multiplied by them
    name.endswith((*turned, "wte.weight"))  # `wte` is a table, and stays as it is
turned = "c_attn.weight", "c_proj.weight", "c_fc.weight"
    turned = "c_attn.weight", "attn.c_proj.weight", "c_fc.weight"
        # `mlp.c_proj` isn't (out, in) yet
    turned = "c_attn.weight", "c_proj.weight"  # `mlp.c_fc` isn't (out, in) yet
"query", "key", "value"
    "key", "query", "value"  # queries come first, then keys
    "query", "value", "key"  # keys come second, values last
tensor.chunk(3)[i]
    tensor[i::3]  # queries are the first third, side by side; yours takes every third
        row
elif not name.endswith(".attn.bias")
    else  # `attn.bias` is the causal mask, and no bias: leave it out
if name.endswith(turned) -> if name.endswith((*turned, "wpe.weight"))  # … as they were
if "c_attn" in name -> if "c_attn.weight" in name  # … a name of ours is missing
return ours
    return {f"transformer.{name}": x for name, x in ours.items()}  # … missing
""")


def official(draw, v, n, d, blocks):
    """A state dict by the names of the official GPT-2, in any order."""
    maps = {"attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d)}
    maps |= {"mlp.c_fc": (d, 4 * d), "mlp.c_proj": (4 * d, d)}
    maps |= {"ln_1": (d,), "ln_2": (d,)}
    shapes = {"wte.weight": (v, d), "wpe.weight": (n, d)}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    for i in blocks:
        for name, shape in maps.items():
            shapes[f"h.{i}.{name}.weight"] = shape
            shapes[f"h.{i}.{name}.bias"] = shape[-1:]
    state = {name: draw.normal(*shape) for name, shape in shapes.items()}
    mask = torch.ones(1, 1, n, n).tril().bool()
    state |= {f"h.{i}.attn.bias": mask for i in blocks}
    return dict(draw.shuffled([*state.items()]))


translate.each("""
one block, every axis of another length -> 7, 5, 3, [0]
three blocks -> 9, 2, 6, [0, 1, 2]
as many tokens and positions as d -> 5, 5, 5, [0, 1]
blocks 9 to 11 -> 6, 2, 3, [9, 10, 11]
""")(lambda draw, *sizes: (official(draw, *sizes),))


# ---- one step of speculative decoding ----------------------------------------


@exercise(
    "ch16-step",
    "expected the number of guesses before the first whose coin isn't below p/q, and "
    "the distribution of the token after them",
)
def step(guesses, draft, target, coins):
    """How many guesses are kept, and the distribution of the token after them."""
    t = len(guesses)
    here = torch.arange(t)
    ratio = target[here, guesses] / draft[here, guesses]  # (t,)
    kept = int((coins < ratio).long().cumprod(dim=0).sum())  # before a refusal
    if kept == t:
        return kept, target[t]
    left = (target[kept] - draft[kept]).clamp(min=0)
    return kept, left / left.sum()


step.instead("""
coins < ratio
    coins < 2  # every guess is kept
    coins < 1 / ratio  # you compare with q/p: but what the model likes less than the
        draft did is kept less often
    coins < target[here, guesses] - draft[here, guesses]
        # you compare with p − q; it's p/q that decides
    coins < target[here, guesses]  # you compare with p alone: but a guess comes with
        probability q already
    coins >= ratio  # guesses are kept where the coin is not below p/q
    ratio >= 1  # a guess whose p is below q may be kept, too; the coin decides
    target[:t].argmax(dim=1) == guesses  # you keep what is the model's favourite; the
        coin decides
.cumprod(dim=0) -> # after the first guess that isn't kept, none is, whatever its coin
        says
left / left.sum()
    left  # what is left doesn't add up to 1 yet
    left.softmax(dim=0)  # max(0, p − q) is divided by its sum; there's no softmax
    target[kept]  # after a refusal you draw from p, which counts twice what the guesses
        bring
    target[kept].scatter(0, guesses[kept], 0) / (1 - target[kept, guesses[kept]])
        # you take p without the guess that was refused; other tokens of which the draft
        has too much come too often then
    left / left.max()  # … and the distribution of the token after them
    draft[kept]  # after a refusal you draw from the draft again
target[kept] - draft[kept] -> draft[kept] - target[kept]
        # that's what the draft has more than the model: the other way round
.clamp(min=0) -> .abs()  # where the draft has more than the model, nothing is left
    # where the draft has more than the model, less than nothing is left
return kept, target[t]
    return kept, target[t - 1]  # if all guesses are kept, the last row of `target` says
        what comes next
    return kept, draft[t - 1]  # if all guesses are kept, the model says what comes next
return kept, left -> return kept + 1, left  # … before the first
if kept == t: -> if True:
        # after a refusal you draw from the last row of `target`, which is of another
        place
""")

# kinds of guesses: q, p/q, and the coin, as a share of p or of p/q. In the order of
# "FukKU" each is the first that another wrong rule doesn't keep.
KINDS = {
    "F": ((0.4, 0.45), (1.3, 1.5), (0.2, 0.8), "p"),  # the model's favourite
    "u": ((0.1, 0.15), (1.2, 1.4), (0.2, 0.8), "p"),
    "k": ((0.1, 0.25), (0.4, 0.6), (0.2, 0.8), "p"),
    "K": ((0.1, 0.25), (0.4, 0.6), (0.7, 0.9), "p/q"),
    "U": ((0.1, 0.25), (1.6, 1.9), (0.45, 0.5), "p/q"),
    "x": ((0.3, 0.5), (0.3, 0.5), (1.2, 1.9), "p/q"),  # not kept
}


def with_share(row, token, share):
    """A distribution that gives a token this share."""
    row[token] = 0
    row *= (1 - share) / row.sum()
    row[token] = share


@step.each("""
five guesses, all are kept -> "FukKU", 9
six guesses, all are kept but the last -> "FukKUx", 12
seven guesses, the third isn't kept -> "FuxkKUk", 7
the first isn't kept, and the others are void -> "xFukKUk", 10
""")
def _(draw, kinds, v):
    t = len(kinds)
    draft, target = (draw.normal(n, v).softmax(dim=1) for n in (t, t + 1))
    guesses, coins = draw.integers(0, v - 1, t), torch.zeros(t)
    for i, kind in enumerate(kinds):
        *bounds, of = KINDS[kind]
        q, ratio, coin = (draw.number(*both) for both in bounds)
        with_share(draft[i], guesses[i], q)
        with_share(target[i], guesses[i], ratio * q)
        coins[i] = coin * ratio * (q if of == "p" else 1)
    return guesses, draft, target, coins


@step.case("the example: the guess isn't kept")
def _(draw):
    target = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.2, 0.7]])
    draft, guess = torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([0])
    return guess, draft, target, draw.uniform(0.6, 0.9, 1)


# ---- find the fault: perplexity ----------------------------------------------


@exercise(
    "ch16-perplexity",
    "expected e to all nats over the tokens, e to all nats over the words, and all "
    "bits over the bytes",
    faults("""
sum(batch.sum() for batch in losses)
    sum(batch.mean() for batch in losses) / len(losses) * tokens
        # does a short batch count as much as a long one?
per_word = math.exp(nats / words)
    per_word = per_token * tokens / words
        # if a word has two tokens, and each costs 3 nats, what does the word cost?
len(text.encode())
    len(text)  # what does the bits' divisor count?
"""),
)
def report(losses, text):
    """Perplexity per token and per word, and bits per byte."""
    import math

    tokens, words = sum(map(len, losses)), len(text.split())
    nats = sum(batch.sum() for batch in losses)
    per_token = math.exp(nats / tokens)
    per_word = math.exp(nats / words)
    bits = float(nats / math.log(2) / len(text.encode()))
    return per_token, per_word, bits


report.instead("""
math.log(2) / len(text.encode())
    1 / len(text.encode())  # these are nats per byte; a bit is ln 2 of them
    math.log(2) / tokens  # these are bits per token; a byte is asked for
    math.log(2) / len(text.encode()) * 8  # these are bits per 8 bytes
len(text.encode())
    len("".join(text.split()).encode())  # spaces and ends of lines are bytes, too
    len("".join(text.split()))  # letters are counted; all bytes are asked for
nats / math.log(2) -> nats * math.log(2)
        # nats are multiplied by ln 2; they should be divided by it
math.exp(nats / tokens)
    2 ** (nats / tokens).item()  # a perplexity is e to nats, or 2 to bits
    float(nats / tokens)  # per token, that's the mean loss; the perplexity is e to it
    torch.cat(losses).exp().mean().item()
        # you average perplexities: losses are averaged, and then comes e
    (sum(batch.mean().exp() for batch in losses) / len(losses)).item()
        # you average the batches' perplexities: losses are averaged, and then comes e
per_word = math.exp(nats / words)
    per_word = math.exp(nats / tokens)  # a perplexity per word is asked for
    per_word = per_token ** (words / tokens)
        # it's the other way round: a word costs more nats than a token
len(text.split())
    text.count(" ")  # the spaces are counted, not the words
    len(text.split(" "))  # lines end a word, too, and several spaces are one end
return per_token, per_word, bits
    return per_word, per_token, bits
        # per token comes first, then per word
    return per_token, bits  # … expected 3 values
len(text.encode()) -> len(text.encode("utf-16"))  # … all bits over the bytes
""")


@report.each("""
the example, in one batch -> 9
the example, in batches of four -> 4
""")
def _(draw, size):
    nats = torch.tensor([6.0, 2.0, 1.0, 3.0, 0.5, 2.5, 4.0, 1.5, 3.5])
    return list(nats[draw.shuffled(range(9))].split(size)), "ὁ βίος βραχύς"


@report.each("""
English: every character is a byte -> "the cat sat on it", [6, 6]
batches of different lengths -> "the cat sat on it", [7, 2, 4]
Greek -> "ὁ βίος βραχύς ἡ δὲ τέχνη μακρή", [12, 8]
one batch, more spaces, and two lines -> "two   lines\\nare a text\\n", [9]
emoji, in batches of different lengths -> "well 😀 done 👍🏽 you", [5, 5, 1]
""")
def _(draw, text, sizes):
    words = draw.shuffled(text.split(" "))
    return [draw.uniform(0.1, 4.0, n) for n in sizes], " ".join(words)


# ---- what a cache weighs -----------------------------------------------------


@exercise(
    "ch16-cache",
    "expected the numbers of a token in a layer, times the tokens that each layer "
    "keeps, times the bytes of a number",
    tolerance=1e-12,
)
def cache_bytes(t, model):
    """The bytes of a cache after `t` tokens."""
    numbers = 2 * model["kv_heads"] * model["k"]  # of a token in a layer
    if model["latent"]:
        numbers = model["latent"] + model["rotary"]
    kept = 0
    for layer in range(1, model["layers"] + 1):
        whole = model["every"] and layer % model["every"] == 0
        sliding = model["window"] and not whole
        kept += min(t, model["window"]) if sliding else t
    return kept * numbers * model["size"]


cache_bytes.instead("""
2 * model["kv_heads"]
    model["kv_heads"]  # keys are kept, and values as well
    2 * model["heads"]  # kept are the heads of keys and values; queries aren't
    2  # each head of keys and values is kept
2 * model["kv_heads"] * model["k"] -> 2 * model["kv_heads"]
        # a head's keys and values have a width
model["latent"] + model["rotary"]
    model["latent"]  # the rotary part is kept as well
    2 * (model["latent"] + model["rotary"])
        # keys and values come from the same latent vector: it's kept once
    2 * model["latent"] + model["rotary"]
        # keys and values come from one latent vector: it's kept once
    model["kv_heads"] * (model["latent"] + model["rotary"])
        # the latent vector and the rotary part are for all heads together
    model["latent"] + model["kv_heads"] * model["rotary"]
        # the rotary part is one for all heads together
    numbers + model["latent"] + model["rotary"]
        # the latent vector is kept in place of keys and values, not beside them
    model["heads"] * (model["latent"] + model["rotary"])  # … times the tokens
sliding = model["window"] and not whole -> sliding = 0
        # the window changes nothing
min(t, model["window"])
    model["window"]  # a window that isn't full yet has no more than t tokens
sliding = model["window"] and not whole
    sliding = model["window"]  # each so many, a layer has no window
    sliding = model["window"] and whole
        # each so many, a layer has no window; yours are the only ones that have one
range(1, model["layers"] + 1)
    range(model["layers"])
        # with 3, the first layer without a window is the third, not the first
    range(1, 2)  # that's a single layer
* model["size"] -> # these are numbers, not bytes
""")


@cache_bytes.each("""
the example: the largest GPT-2 -> [48, 25, 64, 25], {}, [1024]
grouped queries -> [24, 16, 64, 8], {}, [100, 900]
multi-query attention -> [5, 8, 32, 1], {"size": 1}, [100, 900]
a sliding window -> [7, 9, 16, 3], {"window": 128}, [200, 900]
a window that isn't full yet -> [7, 9, 16, 3], {"window": 128}, [1, 100]
a window, but not in every third layer -> [8, 9, 16, 3], {"window": 64, "every": 3},
        [100, 900]
latent attention -> [6, 16, 128, 16], {"latent": 512, "rotary": 64}, [100, 900]
latent attention with windows -> [6, 6, 8, 3], {"latent": 40, "rotary": 6, "window": 9,
        "every": 4}, [20, 90]
""")
def _(draw, sizes, others, between):
    names = "layers", "heads", "k", "kv_heads"
    model = dict(zip(names, sizes, strict=True))
    model |= {"latent": 0, "rotary": 0, "window": 0, "every": 0, "size": 4} | others
    return draw.integer(between[0], between[-1]), model
