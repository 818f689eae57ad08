"""The exercises of chapter 03; ``__init__.py`` says how one is written."""

import torch

from annotated.checks import Function, exercise, fused, overflown
from annotated.checks.material import differentiable, written_out

MIXED = "numbers of one word end up in another word's row"

# ---- split packed heads ------------------------------------------------------


def exchanged(parts, x, heads):
    names, right = ["queries", "keys", "values"], split_packed.right(x, heads)
    for name, part in zip(names, parts, strict=True):
        for other, wanted in zip(names, right, strict=True):
            if name != other and torch.equal(part, wanted):
                return f"what you return as the {name} are the {other}"


@exercise(
    "ch03-split-packed",
    "head j has the columns j·k to (j+1)·k of the queries, keys or values",
    symptoms=exchanged,
)
def split_packed(x, heads):
    """Queries, keys and values, (b, h, t, k) each, of packed (b, t, 3·d)."""
    b, t, width = x.shape
    apart = x.view(b, t, 3, heads, width // (3 * heads))  # (b, t, 3, h, k)
    return apart.permute(2, 0, 3, 1, 4).unbind(0)


split_packed.instead(r"""
permute(2, 0, 3, 1, 4)
    permute(2, 0, 1, 3, 4)  # the axes are (b, t, h, k), expected (b, h, t, k)
    permute(2, 0, 3, 4, 1)  # the axes are (b, h, k, t), expected (b, h, t, k)
    permute(2, 3, 0, 1, 4)  # the axes are (h, b, t, k), expected (b, h, t, k)
apart.permute(2, 0, 3, 1, 4).unbind(0)
    [part.reshape(b, heads, t, -1) for part in x.chunk(3, dim=-1)]
        # {MIXED}: in memory, the heads of a word stand side by side
    x.view(b, t, 3, -1, heads).permute(2, 0, 4, 1, 3).unbind(0)
        # every h-th number goes to the same head; a head has k numbers side by side
    [torch.cat(part.chunk(heads, dim=-1)).reshape(b, heads, t, -1) for part in
        x.chunk(3, dim=-1)]  # head 0 of all
        sequences comes first, then head 1 of all, and that is read sequence by sequence
    apart.flip(3).permute(2, 0, 3, 1, 4).unbind(0)
        # the heads come in reverse order
    x.view(b, t, heads, -1, 3).permute(4, 0, 2, 1, 3).unbind(0)
        # you take every third number; the queries are the first third of the width
    [torch.stack(part.chunk(heads, dim=-1), dim=1) for part in x.chunk(3, dim=1)]
        # you cut the words into three parts; it is the width that holds them
    x.view(b, t, heads, 3, -1).permute(3, 0, 2, 1, 4).unbind(0)
        # you read x head by head, with query, key and value in each; here all queries
        of a word come first, then all keys, then all values
    x.reshape(b, 3, heads, t, -1).unbind(1)
        # {MIXED}: in memory, queries, keys and values alternate word by word
    x.reshape(3, b, heads, t, -1).unbind(0)
        # {MIXED}: x does not begin with all queries, its first axis is the batch
.unbind(0) -> [[0, 2, 1]].unbind(0)  # … what you return as the keys are the values
b, t, width -> x.mul_(2)\n    b, t, width  # … changes its argument `x` in place
""")


split_packed.case(
    "the example: 2 sequences of 3 words, 2 heads of width 2",
    lambda draw: (torch.arange(72.0).view(2, 3, 12), 2),
)
split_packed.case(
    "as many sequences as words, heads and numbers in a head",
    lambda draw: (draw.normal(3, 3, 27), 3),
)


@split_packed.case("every axis of another length")
@split_packed.case("in double precision", dtype=torch.float64)
def _(draw):
    b, t, h, k = draw.sizes(4)
    return draw.normal(b, t, 3 * h * k), h


@split_packed.case("one sequence, one head")
def _(draw):
    t, k = draw.sizes(2)
    return draw.normal(1, t, 3 * k), 1


# ---- merge folded heads ------------------------------------------------------

BESIDE = "a reshape joins neighbouring axes, and here t stands between h and k"
HEAD_MAJOR = "you read head 0 of all sequences first; here the heads of one sequence "
HEAD_MAJOR += "are neighbours"


@exercise(
    "ch03-merge-folded",
    "head j of sequence n, y[n·h + j], becomes the columns j·k to (j+1)·k",
)
def merge_folded(y, heads):
    """Heads side by side, (b, t, d), of heads folded into the batch, (b·h, t, k)."""
    apart = y.unflatten(0, (-1, heads))  # (b, h, t, k)
    return apart.transpose(1, 2).flatten(2)


merge_folded.instead(r"""
y.unflatten(0, (-1, heads))
    y.unflatten(0, (heads, -1)).transpose(0, 1)  # {HEAD_MAJOR}
    y.unflatten(0, (-1, heads)).flip(1)  # the heads come in reverse order
apart.transpose(1, 2).flatten(2)
    apart.reshape(len(apart), y.shape[1], -1)  # {MIXED}: {BESIDE}
    y.transpose(0, 1).reshape(len(apart), y.shape[1], -1)
        # {MIXED}: the words stand in front of b and h here
    apart.movedim(1, 3).flatten(2)  # the numbers of the heads are dealt out in turn;
        the k numbers of a head stay side by side
    apart.transpose(1, 2)  # the axes are (b, t, h, k): h and k are to become one
    apart  # the axes are (b, h, t, k): the heads are to stand side by side
    apart.transpose(1, 2).flatten(2).transpose(0, 1)
        # the axes are (t, b, d), expected (b, t, d)
    apart.transpose(1, 2).flatten(2).mT  # the axes are (b, d, t), expected (b, t, d)
    apart.sum(1)  # the heads are added up; they stand side by side
    apart.mean(1)  # the heads are averaged; they stand side by side
y.unflatten(0, (-1, heads)) -> y.unflatten(0, (heads, -1)).transpose(0, 1)
apart.transpose(1, 2) -> apart.reshape(len(apart), y.shape[1], heads, -1)
        # {HEAD_MAJOR}, and {BESIDE}
return
    apart = torch.cat([apart[:, :1], apart[:, 1:].detach()], dim=1)\n    return
        # … the gradient of y is another one
apart.transpose(1, 2).flatten(2) -> y.transpose(0, 1).reshape(1, y.shape[1], -1)
        # … the shape is (1,
""")


merge_folded.case(
    "the example: 2 sequences of 3 words, 2 heads of width 2",
    lambda draw: (torch.arange(24.0).view(4, 3, 2), 2),
)
merge_folded.case(
    "as many sequences as heads, words and numbers in a head",
    lambda draw: (draw.normal(9, 3, 3), 3),
)
merge_folded.case(
    "one sequence, one head", lambda draw: (draw.normal(1, *draw.sizes(2)), 1)
)


@merge_folded.case("every axis of another length")
@merge_folded.case("in double precision", dtype=torch.float64)
@merge_folded.case("gradients reach y", gradients=True)
def _(draw):
    b, h, t, k = draw.sizes(4)
    return draw.normal(b * h, t, k), h


# ---- count parameters --------------------------------------------------------


def float_for_int(count, *arguments):
    if isinstance(count, float):
        return "a count is a whole number, int: where does yours become a float?"


@exercise(
    "ch03-count-parameters",
    "four maps, each with its bias if there is one: queries and output of width "
    "d_model, keys and values as wide as the heads that they are made for",
    symptoms=float_for_int,
    tolerance=0.0,  # a count is right or wrong
)
def count_parameters(d_model, heads, key_value_heads, bias):
    """How many parameters the four maps of an attention have."""
    d, h, g = d_model, heads, key_value_heads
    k = d // h  # the width of a head
    outputs = d, g * k, g * k, d  # of queries, keys, values and the output map
    biases = sum(outputs) if bias else 0
    return d * sum(outputs) + biases


count_parameters.instead("""
return d * sum(outputs) + biases -> return (d * sum(outputs) + biases) * (3 if g == h
        else 4) // 4  # one of the four maps is missing: queries, keys, values, output
outputs = d, g * k, g * k, d
    outputs = d, d, d, d  # keys and values are as wide as the queries here: they are
        made for key_value_heads heads only
    outputs = d, g * k, g * k  # the output map is missing
    outputs = d, d, d
        # the output map is missing, and keys and values are made for every head
    outputs = d, g * k, d  # keys or values are forgotten: both have a map
    outputs = d, d  # the maps of keys and values are forgotten
    outputs = g * k, g * k, g * k, d
        # you let the queries have key_value_heads heads: they keep all
    outputs = 4 * (g * k,)
        # all four maps have the width of the keys: queries and output keep d_model
    outputs = d, g * d, g * d, d
        # each shared head is counted with the width d_model; it has d_model / heads
    outputs = d, k, k, d
        # the map of one shared head is counted; there are key_value_heads of them
    outputs = d, d // g, d // g, d  # a head has the width d_model / heads, also where
        heads are shared; you divide by key_value_heads
    outputs = 2 * (h * d, h * g * k)  # this is multiplied by the number of heads; the
        width d_model is that of all heads together
sum(outputs) if bias else 0
    0  # the biases are missing
    4 * d if bias else 0
        # keys and values give fewer numbers than d_model: how long are their biases?
    2 * d if bias else 0
        # only queries and output have a bias here: keys and values have one too
    d + 2 * g * k if bias else 0  # the bias of the output map is missing
    d if bias else 0  # one bias is counted; each of the four maps has its own
    sum(outputs)  # biases are counted, although there are none
d, g * k, g * k, d -> h * d, g * d, g * d, h * d
sum(outputs) if -> (h + 2 * g + 1) * d if  # each head is counted with the width
        d_model; that is the width of all heads together
d // h -> d / h  # … where does yours become a float
""")


def width_and_heads(draw):
    """With these, and three heads of keys and values, no two mistakes agree."""
    heads = draw.choice([12, 15])
    return heads * draw.integer(16, 80), heads


count_parameters.case(
    "the example: d_model = 8, four heads share keys and values",
    lambda draw: (8, 4, 1, True),
)
count_parameters.each("""
3 heads of keys and values, no bias -> False
3 heads of keys and values, with biases -> True
""")(lambda draw, bias: (*width_and_heads(draw), 3, bias))


@count_parameters.case("nothing shared")
def _(draw):
    d_model, heads = width_and_heads(draw)
    return d_model, heads, heads, True


# ---- find the split that mixes words -----------------------------------------


@exercise(
    "ch03-mixes-tokens",
    "give every word of every sequence a label of its own, and see where it goes",
    through=differentiable,
)
def mixes_tokens(split):
    """Do numbers of one word end up in another word's row?"""
    for b, t, h, k in ((4, 5, 3, 2), (4, 3, 3, 2), (4, 3, 5, 2)):
        label = torch.arange(b * t).view(b, t, 1)  # one for each word
        rows = split(label.repeat(1, 1, h * k), h)  # (b, h, t, k)
        if (rows != label[:, None]).any():  # against (b, 1, t, 1)
            return True
    return False


def splitting(expression):
    """A split, written with the right one, y, and the sizes b, t, k at hand."""
    right = "x.unflatten(2, (heads, -1)).transpose(1, 2)"
    sizes = f"len(x), x.shape[1], x.shape[2] // heads, {right}"
    return Function(f"(lambda b, t, k, y: {expression})({sizes})", "x, heads")


@mixes_tokens.each("""
candidate_a: a view and a transpose -> "y"
candidate_b: a view alone -> "x.reshape(b, heads, t, k)"
        # it does: with two heads and four words, the first row of head 0 is the first
        half of word 0, and its second row the other half of word 0. Do you try several
        words and several heads, and can you tell the words apart?
candidate_c: cut into heads, joined along the batch, then a view ->
        "torch.cat(x.chunk(heads, dim=-1)).reshape(b, heads, t, k)"
        # it does, from one sequence to another: head 0 of sequence 1 becomes head 1 of
        sequence 0. Would you see that in what you try?
the heads in reverse order -> "y.flip(1)"
        # it mixes no words: which numbers a head gets, and where, is not asked
dealt out in turn -> "x.reshape(b, t, k, heads).permute(0, 3, 1, 2)"
        # {the heads in reverse order}
the first number of each head, k times -> "y[..., :1].repeat(1, 1, 1, k)"
        # it mixes no words: a number may stand twice in its row, and another nowhere
the right split, copied -> "y.contiguous()"
        # it mixes none: what counts is where the numbers stand, not how they lie
no transpose where the shape is right without -> "y.transpose(1, 2) if t == heads else
        y"
        # it does, where there are as many words as heads: do you try several shapes?
the words in reverse order, unless there are as many as heads -> "y if t == heads else
        y.flip(2)"  # it does, unless there are as many words as heads: do you try
        several shapes, and not always as many of one as of the other?
the words in reverse order -> "y.flip(2)"
        # it does: row i holds the numbers of another word. Do you look at which word
        stands where, and not only whether a row holds one word?
all words but the first reversed -> "y[:, :, [0, *range(t - 1, 0, -1)]]"
        # it does, behind the first word: would you see that with two words?
the sequences in reverse order -> "y.flip(0)"
        # it does: a word of another sequence is another word
b and t in one view -> "x.reshape(t, b, heads, k).permute(1, 2, 0, 3)"
        # it does, as soon as there are several sequences
""")
def _(draw, expression):
    return (splitting(expression),)


@mixes_tokens.each("""
one sequence whose words have moved on -> 0
        # it does, in one sequence: look at all sequences
one head whose words have moved on -> 1  # it does, in one head: look at all heads
one number of each row from another word -> 3
        # it does, in one number of each row: look at all numbers
""")
def _(draw, axis):
    before = ":, " * axis  # the last one along the axis is moved
    moved = draw.choice(["roll(1, 2)", "roll(-1, 2)", "flip(2)"])
    pieces = f"y[{before}:-1], y[{before}-1:].{moved}"
    return (splitting(f"torch.cat([{pieces}], dim={axis})"),)


# which of them, and how its heads and numbers are turned, only the seed knows
@mixes_tokens.each(
    "\n".join(f"one of the functions above, turned ({n}) -> " for n in range(6)),
    graded_only=True,
)
def _(draw):
    keeping = "y", "x.reshape(b, t, k, heads).permute(0, 3, 1, 2)", "y.flip(1)"
    mixing = "x.reshape(b, heads, t, k)", "y.flip(2)", "y.flip(0)"
    expression = draw.choice(draw.choice([keeping, mixing]))
    turned = f"roll({draw.integer(0, 5)}, 1).roll({draw.integer(0, 5)}, 3)"
    return (splitting(f"({expression}).{turned}"),)


mixes_tokens.instead(r"""
(4, 5, 3, 2), (4, 3, 3, 2), (4, 3, 5, 2)
    (4, 2, 3, 2),  # {all words but the first reversed}
    (4, 5, 3, 2),  # {no transpose where the shape is right without}
    (3, 3, 3, 3),  # {the words in reverse order, unless there are as many as heads}
torch.arange(b * t).view(b, t, 1) -> torch.arange(t).view(1, t, 1).repeat(b, 1, 1)
        # {candidate_c: cut into heads, joined along the batch, then a view}
(rows != label[:, None]).any()
    True  # it mixes none: row [n, j, i] holds numbers of word i of sequence n alone. Do
        you compare that row with x[n, i]?
    rows.shape != (b, h, t, k)  # {candidate_b: a view alone}
    not split(x := torch.randn(3, 4, 10), 5).equal(torch.stack(x.chunk(5, -1), 1))
        # {dealt out in turn}
    rows.is_contiguous()  # {the right split, copied}
    (rows != label[:, None])[:, 0].any()  # {one head whose words have moved on}
    (rows != label[:, None])[..., 0].any()  # {one number of each row from another word}
    (rows != label[:, None])[0].any()  # {one sequence whose words have moved on}
return True\n    return False -> 1  # … is a `return` missing
(4, 5, 3, 2), (4, 3, 3, 2), (4, 3, 5, 2) -> (3, 4, 1, 5),
        # … Do you try several words and several heads
rows != label[:, None] -> rows != rows[..., :1]  # … look at which word stands where
""")


# ---- write multi-head attention ----------------------------------------------

TURNED = "the other way round: which"


@exercise(
    "ch03-multi-head",
    "split the three projections, attend in each head with scores over √k, put the "
    "heads side by side, apply W_o",
    through=written_out,
    symptoms=lambda y, *_: fused(y) or overflown(y),
)
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    """Multi-head attention from x (b, t, d) to memory (b, s, d)."""
    k = x.shape[2] // heads

    def split(y):
        return y.unflatten(2, (heads, k)).transpose(1, 2)  # (b, h, t or s, k)

    q, key, v = map(split, (x @ W_q.mT, memory @ W_k.mT, memory @ W_v.mT))
    weights = (q @ key.mT / q.shape[-1] ** 0.5).softmax(dim=-1)  # (b, h, t, s)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.mT


multi_head.instead(r"""
y.unflatten(2, (heads, k)).transpose(1, 2)
    y.reshape(len(y), heads, -1, k)
        # {MIXED} when you split: does a view alone read the right numbers?
    y[:, None]  # there is one head of the whole width
    torch.stack([y[..., j::heads] for j in range(heads)], dim=1)
        # every h-th number goes to the same head; a head has k numbers side by side
.transpose(1, 2).flatten(2) @ -> .reshape(x.shape) @
        # {MIXED} when you merge: in which order do t and h stand?
q.shape[-1] ** 0.5
    x.shape[2] ** 0.5  # the scores are divided by the root of the model's width
    1  # the scores are not scaled
    q.shape[-1]  # the scores are divided by k, not by its root
softmax(dim=-1)
    softmax(dim=-2)  # the softmax runs over the queries
    softmax(dim=1)  # the softmax runs over the heads
    clone()  # the scores have not gone through a softmax
@ W_o.mT
    # the output map W_o is missing
    @ W_o  # W_o is used {TURNED} of its axes is the input?
x @ W_q.mT, memory @ W_k.mT, memory @ W_v.mT
    x @ W_q, memory @ W_k, memory @ W_v
        # W_q, W_k and W_v are used {TURNED} axis is the input?
    x @ W_q.mT, x @ W_k.mT, memory @ W_v.mT  # the keys are made from x, not from memory
    x @ W_q.mT, memory @ W_k.mT, x @ W_v.mT
        # the values are made from x, not from memory
    x @ W_q.mT, x @ W_k.mT, x @ W_v.mT
        # keys and values are made from x; memory is not used
    x @ W_q.mT, memory @ W_v.mT, memory @ W_k.mT
        # W_k makes your values and W_v your keys
    memory @ W_q.mT, x @ W_k.mT, x @ W_v.mT
        # x and memory are swapped: queries come from x, keys and values from memory
    memory @ W_q.mT, memory @ W_k.mT, memory @ W_v.mT
        # the queries are made from memory; x is not used
y.unflatten(2, (heads, k)).transpose(1, 2) -> y.reshape(len(y), heads, -1, k)
.transpose(1, 2).flatten(2) @ -> .reshape(x.shape) @
        # {MIXED}, when you split and again when you merge
x @ W_q.mT, memory @ W_k.mT, memory @ W_v.mT -> x @ W_q, memory @ W_k, memory @ W_v
W_o.mT -> W_o  # all four matrices are used {TURNED} axis is input?
(weights @ v)
    torch.nn.functional.scaled_dot_product_attention(q, key, v)
        # … write it out: the attention
.flatten(2) @ W_o.mT -> .flatten(2).float() @ W_o.mT.float()  # … float64
softmax(dim=-1) -> exp()\n    weights = weights / weights.sum(dim=-1, keepdim=True)
        # … does the exponential of a large score overflow?
""")


def four_maps(draw, d):
    return [draw.normal(d, d) / d**0.5 for _ in range(4)]


@multi_head.case("the example: one sentence of two words, two heads of width 1")
def _(draw):
    x, one = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]]), torch.eye(2)
    return x, x, one, one, one, torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 2


@multi_head.case("self-attention, every axis of another length")
def _(draw):
    b, t, h, k = draw.sizes(4)
    x = draw.normal(b, t, h * k)
    return x, x, *four_maps(draw, h * k), h


@multi_head.case(
    "cross-attention: queries from x, keys from memory, as many words in both"
)
def _(draw):
    b, t, h, k = draw.sizes(4)
    x, memory = draw.normal(b, t, h * k), draw.normal(b, t, h * k)
    return x, memory, *four_maps(draw, h * k), h


@multi_head.case("cross-attention: a memory of another length")
@multi_head.case("in double precision", dtype=torch.float64)
def _(draw):
    b, t, s, h, k = draw.sizes(5)
    x, memory = draw.normal(b, t, h * k), draw.normal(b, s, h * k)
    return x, memory, *four_maps(draw, h * k), h


@multi_head.case(
    "scores of several thousand",
    dtype=torch.float64,  # rounding may decide between two such scores in float32
)
def _(draw):
    x, memory = 100 * draw.normal(2, 3, 8), 100 * draw.normal(2, 5, 8)
    return x, memory, *four_maps(draw, 8), 2


@multi_head.case("gradients reach all four matrices", gradients=True)
def _(draw):
    x = draw.normal(2, 3, 8)
    return x, draw.normal(2, 5, 8), *four_maps(draw, 8), 4
