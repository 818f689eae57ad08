"""The exercises of chapter 03; ``__init__.py`` says how one is written."""

from functools import partial

import torch

from annotated.checks import Exercise, Function, tensor_for_bool
from annotated.checks.ch02 import fused
from annotated.checks.material import differentiable, written_out

MIXED = "numbers of one word end up in another word's row"

# ---- split packed heads ------------------------------------------------------

PARTS = ["queries", "keys", "values"]


def heads_of(part, h):
    return torch.stack(part.chunk(h, dim=-1), dim=1)


def view_alone(part, h):
    b, t, d = part.shape
    return part.reshape(b, h, t, d // h)


def head_after_head(part, h):
    return view_alone(torch.cat(part.chunk(h, dim=-1)).view(part.shape), h)


def in_turn(part, h):
    return torch.stack([part[..., j::h] for j in range(h)], dim=1)


def split(x, h, parts=lambda x: x.chunk(3, dim=-1), apart=heads_of, order=range(4)):
    return tuple(apart(part, h).permute(*order) for part in parts(x))


def parts_viewed(x, axis):
    """Three parts by a view that lets them begin at an axis where they do not."""
    b, t, d = x.shape[0], x.shape[1], x.shape[2] // 3
    return x.reshape(3, b, t, d) if axis == 0 else x.reshape(b, 3, t, d).unbind(1)


def exchanged(parts, x, heads):
    right = split(x, heads)
    for name, part in zip(PARTS, parts, strict=True):
        for other, wanted in zip(PARTS, right, strict=True):
            if name != other and torch.equal(part, wanted):
                return f"what you return as the {name} are the {other}"


AXES = {"(b, t, h, k)": (0, 2, 1, 3), "(b, h, k, t)": (0, 1, 3, 2)}
AXES |= {"(h, b, t, k)": (1, 0, 2, 3)}

split_packed = Exercise(
    "ch03-split-packed",
    right=lambda x, heads: split(x, heads),
    hint="head j has the columns j·k to (j+1)·k of the queries, keys or values",
    symptoms=exchanged,
    mistakes={
        f"the axes are {axes}, expected (b, h, t, k)": partial(split, order=order)
        for axes, order in AXES.items()
    }
    | {
        f"{MIXED}: in memory, the heads of a word stand side by side": (
            partial(split, apart=view_alone)
        ),
        f"{MIXED}: in memory, queries, keys and values alternate word by word": (
            partial(split, parts=lambda x: parts_viewed(x, 1), apart=view_alone)
        ),
        f"{MIXED}: x does not begin with all queries, its first axis is the batch": (
            partial(split, parts=lambda x: parts_viewed(x, 0), apart=view_alone)
        ),
        "you read x head by head, with query, key and value in each; here all queries "
        "of a word come first, then all keys, then all values": (
            lambda x, heads: heads_of(x, heads).chunk(3, dim=-1)
        ),
        "you take every third number; the queries are the first third of the width": (
            partial(split, parts=lambda x: [x[..., p::3] for p in range(3)])
        ),
        "you cut the words into three parts; it is the width that holds them": (
            partial(split, parts=lambda x: x.chunk(3, dim=1))
        ),
        "every h-th number goes to the same head; a head has k numbers side by side": (
            partial(split, apart=in_turn)
        ),
        "head 0 of all sequences comes first, then head 1 of all, and that is read "
        "sequence by sequence": partial(split, apart=head_after_head),
        "the heads come in reverse order": (
            partial(split, apart=lambda part, h: heads_of(part, h).flip(1))
        ),
    },
)


@split_packed.case("the example: 2 sequences of 3 words, 2 heads of width 2")
def _(draw):
    return torch.arange(72.0).view(2, 3, 12), 2


@split_packed.case("every axis of another length")
def _(draw):
    b, t, h, k = draw.sizes(4)
    return draw.normal(b, t, 3 * h * k), h


@split_packed.case("as many sequences as words, heads and numbers in a head")
def _(draw):
    return draw.normal(3, 3, 27), 3


@split_packed.case("one sequence, one head")
def _(draw):
    t, k = draw.sizes(2)
    return draw.normal(1, t, 3 * k), 1


@split_packed.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 4, 18), 3


# ---- merge folded heads ------------------------------------------------------


def unfolded(y, h):
    return y.unflatten(0, (-1, h))  # (b, h, t, k)


def side_by_side(y, heads):
    return torch.cat([y[j::heads] for j in range(heads)], dim=-1)


def rows(y, heads):
    """A reshape that takes (b·h, t, k) for (b, t, h·k)."""
    folded, t, k = y.shape
    return y.reshape(folded // heads, t, heads * k)


def tokens_first(y, heads):
    return rows(y.transpose(0, 1).reshape(y.shape), heads)


def heads_first(y, heads):
    return y.unflatten(0, (heads, -1)).transpose(0, 1).flatten(0, 1)


BESIDE = "a reshape joins neighbouring axes, and here t stands between h and k"
HEAD_MAJOR = "you read head 0 of all sequences first; here the heads of one sequence "
HEAD_MAJOR += "are neighbours"

merge_folded = Exercise(
    "ch03-merge-folded",
    right=side_by_side,
    hint="head j of sequence n, y[n·h + j], becomes the columns j·k to (j+1)·k",
    mistakes={
        HEAD_MAJOR: lambda y, heads: side_by_side(heads_first(y, heads), heads),
        f"{MIXED}: {BESIDE}": rows,
        f"{MIXED}: the words stand in front of b and h here": tokens_first,
        f"{HEAD_MAJOR}, and {BESIDE}": lambda y, h: rows(heads_first(y, h), h),
        "the numbers of the heads are dealt out in turn; the k numbers of a head stay "
        "side by side": lambda y, heads: unfolded(y, heads).movedim(1, 3).flatten(2),
        "the heads come in reverse order": (
            lambda y, heads: side_by_side(
                unfolded(y, heads).flip(1).flatten(0, 1), heads
            )
        ),
        "the axes are (b, t, h, k): h and k are to become one": (
            lambda y, heads: unfolded(y, heads).transpose(1, 2)
        ),
        "the axes are (b, h, t, k): the heads are to stand side by side": unfolded,
        "the axes are (t, b, d), expected (b, t, d)": (
            lambda y, heads: side_by_side(y, heads).transpose(0, 1)
        ),
        "the axes are (b, d, t), expected (b, t, d)": (
            lambda y, heads: side_by_side(y, heads).mT
        ),
        "the heads are added up; they stand side by side": (
            lambda y, heads: unfolded(y, heads).sum(1)
        ),
        "the heads are averaged; they stand side by side": (
            lambda y, heads: unfolded(y, heads).mean(1)
        ),
    },
)


@merge_folded.case("the example: 2 sequences of 3 words, 2 heads of width 2")
def _(draw):
    return torch.arange(24.0).view(4, 3, 2), 2


@merge_folded.case("every axis of another length")
def _(draw):
    b, h, t, k = draw.sizes(4)
    return draw.normal(b * h, t, k), h


@merge_folded.case("as many sequences as heads, words and numbers in a head")
def _(draw):
    return draw.normal(9, 3, 3), 3


@merge_folded.case("one sequence, one head")
def _(draw):
    return draw.normal(1, *draw.sizes(2)), 1


@merge_folded.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(6, 4, 2), 3


@merge_folded.case("gradients reach y", gradients=True)
def _(draw):
    return draw.normal(6, 2, 4), 3


# ---- count parameters --------------------------------------------------------


def right_outputs(d, k, h, g):
    return d, g * k, g * k, d


def counted(outputs=right_outputs, biases=None, always=False):
    """A count for maps with these numbers of outputs, and of biases if they differ:
    functions of d_model, the width k of a head, h heads, and g of keys and values."""

    def count(d_model, heads, key_value_heads, bias):
        sizes = d_model, d_model // heads, heads, key_value_heads
        added = sum((biases or outputs)(*sizes)) if bias or always else 0
        return d_model * sum(outputs(*sizes)) + added

    return count


def one_missing(d_model, heads, key_value_heads, bias):
    """It cannot be told which where all four are alike."""
    maps = 3 if key_value_heads == heads else 4
    return maps * counted()(d_model, heads, key_value_heads, bias) // 4


def wide_heads(d, heads, key_value_heads, bias):
    """... also in the output map, which takes h·d numbers then."""
    made = counted(lambda d, k, h, g: (h * d, g * d, g * d))
    return made(d, heads, key_value_heads, bias) + heads * d * d + bias * d


def float_for_int(count, *arguments):
    if isinstance(count, float):
        return "a count is a whole number, int: where does yours become a float?"


WRONG_OUTPUTS = {
    "keys and values are as wide as the queries here: they are made for "
    "key_value_heads heads only": lambda d, k, h, g: (d, d, d, d),
    "the output map is missing": lambda d, k, h, g: (d, g * k, g * k),
    "the output map is missing, and keys and values are made for every head": (
        lambda d, k, h, g: (d, d, d)
    ),
    "keys or values are forgotten: both have a map": lambda d, k, h, g: (d, g * k, d),
    "the maps of keys and values are forgotten": lambda d, k, h, g: (d, d),
    "you let the queries have key_value_heads heads: they keep all": (
        lambda d, k, h, g: (g * k, g * k, g * k, d)
    ),
    "all four maps have the width of the keys: queries and output keep d_model": (
        lambda d, k, h, g: 4 * (g * k,)
    ),
    "each shared head is counted with the width d_model; it has d_model / heads": (
        lambda d, k, h, g: (d, g * d, g * d, d)
    ),
    "the map of one shared head is counted; there are key_value_heads of them": (
        lambda d, k, h, g: (d, k, k, d)
    ),
    "a head has the width d_model / heads, also where heads are shared; you divide by "
    "key_value_heads": lambda d, k, h, g: (d, d // g, d // g, d),
    "this is multiplied by the number of heads; the width d_model is that of all heads "
    "together": lambda d, k, h, g: 2 * (h * d, h * g * k),
}
WRONG_BIASES = {
    "the biases are missing": lambda d, k, h, g: (),
    "keys and values give fewer numbers than d_model: how long are their biases?": (
        lambda d, k, h, g: (d, d, d, d)
    ),
    "only queries and output have a bias here: keys and values have one too": (
        lambda d, k, h, g: (d, d)
    ),
    "the bias of the output map is missing": lambda d, k, h, g: (d, g * k, g * k),
    "one bias is counted; each of the four maps has its own": lambda d, k, h, g: (d,),
}

count_parameters = Exercise(
    "ch03-count-parameters",
    right=counted(),
    hint="four maps, each with its bias if there is one: queries and output of width "
    "d_model, keys and values as wide as the heads that they are made for",
    symptoms=float_for_int,
    tolerance=0.0,  # a count is right or wrong
    mistakes={
        "one of the four maps is missing: queries, keys, values, output": one_missing,
        "biases are counted, although there are none": counted(always=True),
        "each head is counted with the width d_model; that is the width of all heads "
        "together": wide_heads,
    }
    | {hint: counted(outputs) for hint, outputs in WRONG_OUTPUTS.items()}
    | {hint: counted(biases=biases) for hint, biases in WRONG_BIASES.items()},
)


@count_parameters.case("the example: d_model = 8, four heads share keys and values")
def _(draw):
    return 8, 4, 1, True


def width_and_heads(draw):
    """With these, and three heads of keys and values, no two mistakes agree."""
    heads = draw.choice([12, 15])
    return heads * draw.integer(16, 80), heads


@count_parameters.case("nothing shared")
def _(draw):
    d_model, heads = width_and_heads(draw)
    return d_model, heads, heads, True


@count_parameters.case("3 heads of keys and values, no bias")
def _(draw):
    return *width_and_heads(draw), 3, False


@count_parameters.case("3 heads of keys and values, with biases")
def _(draw):
    return *width_and_heads(draw), 3, True


# ---- find the split that mixes words -----------------------------------------


def mixes(split, b=4, t=5, h=3, k=2, look=lambda strange: strange):
    """Are there strange numbers where one looks? Each word has a label of its own."""
    label = torch.arange(b * t).view(b, t, 1)
    strange = split(label.repeat(1, 1, h * k), h) != label[:, None]  # (b, h, t, k)
    return bool(look(strange).any())


def mixes_somewhere(split):
    return mixes(split) or mixes(split, t=3) or mixes(split, t=3, h=5)


def shape_only(split):
    return split(torch.randn(3, 4, 10), 5).shape != (3, 5, 4, 2)


def positions_only(split):
    place = torch.arange(4).view(4, 1)
    return bool((split(place.repeat(3, 1, 10), 5) != place).any())


def not_the_right_one(split):
    x = torch.randn(3, 4, 10)
    return not torch.equal(split(x, 5), heads_of(x, 5))


NONE = "it mixes none: row [n, j, i] holds numbers of word i of sequence n alone. Do "
NONE += "you compare that row with x[n, i]?"
VIEW = (
    "it does: with two heads and four words, the first row of head 0 is the first "
    "half of word 0, and its second row the other half of word 0. Do you try "
    "several words and several heads, and can you tell the words apart?"
)
BATCH = "it does, from one sequence to another: head 0 of sequence 1 becomes head 1 of "
BATCH += "sequence 0. Would you see that in what you try?"
OTHER_HEADS = "it mixes no words: which numbers a head gets, and where, is not asked"
MEMORY = "it mixes none: what counts is where the numbers stand, not how they lie"
TWO = "it does, behind the first word: would you see that with two words?"
HEAD = "it does, in one head: look at all heads"
NUMBER = "it does, in one number of each row: look at all numbers"
SEQUENCE = "it does, in one sequence: look at all sequences"
AS_MANY = "it does, where there are as many words as heads: do you try several shapes?"
NOT_AS_MANY = "it does, unless there are as many words as heads: do you try several "
NOT_AS_MANY += "shapes, and not always as many of one as of the other?"

mixes_tokens = Exercise(
    "ch03-mixes-tokens",
    right=mixes_somewhere,
    hint="give every word of every sequence a label of its own, and see where it goes",
    symptoms=tensor_for_bool,
    through=differentiable,
    mistakes={
        NONE: lambda split: True,
        VIEW: shape_only,
        BATCH: positions_only,
        OTHER_HEADS: not_the_right_one,
        MEMORY: lambda split: split(torch.randn(3, 4, 10), 5).is_contiguous(),
        TWO: partial(mixes, t=2),
        HEAD: partial(mixes, look=lambda strange: strange[:, 0]),
        NUMBER: partial(mixes, look=lambda strange: strange[..., 0]),
        SEQUENCE: partial(mixes, look=lambda strange: strange[0]),
        AS_MANY: mixes,
        NOT_AS_MANY: partial(mixes, b=3, t=3, h=3, k=3),
    },
)


def splitting(expression):
    """A split, written with the right one, y, and the sizes b, t, k at hand."""
    right = "x.unflatten(2, (heads, -1)).transpose(1, 2)"
    sizes = f"len(x), x.shape[1], x.shape[2] // heads, {right}"
    return Function(f"(lambda b, t, k, y: {expression})({sizes})", "x, heads")


CUT = "torch.cat(x.chunk(heads, dim=-1)).reshape(b, heads, t, k)"
ROW = "it does: row i holds the numbers of another word. Do you look at which word "
ROW += "stands where, and not only whether a row holds one word?"
TWICE = "it mixes no words: a number may stand twice in its row, and another nowhere"
OTHER = "it does: a word of another sequence is another word"
SEVERAL = "it does, as soon as there are several sequences"

SPLITS = [  # what it does, its expression, and what an answer may miss in it
    ("candidate_a: a view and a transpose", "y", None),
    ("candidate_b: a view alone", "x.reshape(b, heads, t, k)", VIEW),
    ("candidate_c: cut into heads, joined along the batch, then a view", CUT, BATCH),
    ("the heads in reverse order", "y.flip(1)", OTHER_HEADS),
    ("dealt out in turn", "x.reshape(b, t, k, heads).permute(0, 3, 1, 2)", OTHER_HEADS),
    ("the first number of each head, k times", "y[..., :1].repeat(1, 1, 1, k)", TWICE),
    ("the right split, copied", "y.contiguous()", MEMORY),
    (
        "no transpose where the shape is right without",
        "y.transpose(1, 2) if t == heads else y",
        AS_MANY,
    ),
    (
        "the words in reverse order, unless there are as many as heads",
        "y if t == heads else y.flip(2)",
        NOT_AS_MANY,
    ),
    ("the words in reverse order", "y.flip(2)", ROW),
    ("all words but the first reversed", "y[:, :, [0, *range(t - 1, 0, -1)]]", TWO),
    ("the sequences in reverse order", "y.flip(0)", OTHER),
    ("b and t in one view", "x.reshape(t, b, heads, k).permute(1, 2, 0, 3)", SEVERAL),
]

for line, expression, missed in SPLITS:
    mixes_tokens.case(line, hint=missed)(
        lambda draw, expression=expression: (splitting(expression),)
    )

for axis, line, missed in [
    (0, "one sequence whose words have moved on", SEQUENCE),
    (1, "one head whose words have moved on", HEAD),
    (3, "one number of each row from another word", NUMBER),
]:

    @mixes_tokens.case(line, hint=missed)
    def _(draw, axis=axis):
        before = ":, " * axis  # the last one along the axis is moved
        moved = draw.choice(["roll(1, 2)", "roll(-1, 2)", "flip(2)"])
        pieces = f"y[{before}:-1], y[{before}-1:].{moved}"
        return (splitting(f"torch.cat([{pieces}], dim={axis})"),)


# ---- write multi-head attention ----------------------------------------------


def scores_of(q, key):
    return q @ key.mT / q.shape[-1] ** 0.5


def by_query(scores):
    return scores.softmax(dim=-1)


def whole(x, memory, W_q, W_k, W_v, W_o, heads, **wrong):
    """Multi-head attention, each step of which a mistake may replace."""
    into = wrong.get("into", lambda x, W: x @ W.mT)
    apart = wrong.get("apart", heads_of)
    keys, values = wrong.get("asked", lambda x, memory: (memory, memory))(x, memory)
    q, key = apart(into(x, W_q), heads), apart(into(keys, W_k), heads)
    v = apart(into(values, W_v), heads)
    if "exchanged" in wrong:
        key, v = v, key
    weights = wrong.get("weights", by_query)(wrong.get("scores", scores_of)(q, key))
    answers = weights @ v  # (b, h, t, k)
    merged = wrong.get("merge", lambda y: y.transpose(1, 2).flatten(2))(answers)
    return wrong.get("out", lambda y, W: y @ W.mT)(merged, W_o)


def unscaled(q, key):
    return q @ key.mT


def by_model_width(q, key):
    return q @ key.mT / (q.shape[1] * q.shape[-1]) ** 0.5


def rows_of_heads(y):
    b, h, t, k = y.shape
    return y.reshape(b, t, h * k)


def one_wide_head(part, heads):
    return part.unsqueeze(1)


multi_head = Exercise(
    "ch03-multi-head",
    right=whole,
    through=written_out,
    symptoms=fused,
    hint="split the three projections, attend in each head with scores over √k, put "
    "the heads side by side, apply W_o",
    mistakes={
        hint: partial(whole, **wrong)
        for hint, wrong in {
            f"{MIXED} when you split: does a view alone read the right numbers?": {
                "apart": view_alone
            },
            f"{MIXED} when you merge: in which order do t and h stand?": {
                "merge": rows_of_heads
            },
            f"{MIXED}, when you split and again when you merge": {
                "apart": view_alone,
                "merge": rows_of_heads,
            },
            "the scores are divided by the root of the model's width": {
                "scores": by_model_width
            },
            "the scores are not scaled": {"scores": unscaled},
            "the scores are divided by k, not by its root": {
                "scores": lambda q, key: q @ key.mT / q.shape[-1]
            },
            "the softmax runs over the queries": {
                "weights": lambda scores: scores.softmax(dim=-2)
            },
            "the softmax runs over the heads": {
                "weights": lambda scores: scores.softmax(dim=1)
            },
            "the scores have not gone through a softmax": {
                "weights": lambda scores: scores
            },
            "the output map W_o is missing": {"out": lambda y, W: y},
            "W_o is used the other way round: which of its axes is the input?": {
                "out": lambda y, W: y @ W
            },
            "W_q, W_k and W_v are used the other way round: which axis is the input?": {
                "into": lambda x, W: x @ W
            },
            "all four matrices are used the other way round: which axis is input?": {
                "into": lambda x, W: x @ W,
                "out": lambda y, W: y @ W,
            },
            "the keys are made from x, not from memory": {
                "asked": lambda x, memory: (x, memory)
            },
            "the values are made from x, not from memory": {
                "asked": lambda x, memory: (memory, x)
            },
            "keys and values are made from x; memory is not used": {
                "asked": lambda x, memory: (x, x)
            },
            "W_k makes your values and W_v your keys": {"exchanged": True},
            "there is one head of the whole width": {"apart": one_wide_head},
            "every h-th number goes to the same head; a head has k numbers side by "
            "side": {"apart": in_turn},
        }.items()
    }
    | {
        "x and memory are swapped: queries come from x, keys and values from memory": (
            lambda x, memory, *rest: whole(memory, x, *rest)
        ),
        "the queries are made from memory; x is not used": (
            lambda x, memory, *rest: whole(memory, memory, *rest)
        ),
    },
)


def four_maps(draw, d):
    return [draw.normal(d, d) / d**0.5 for _ in range(4)]


@multi_head.case("the example: one sentence of two words, two heads of width 1")
def _(draw):
    x, one = torch.eye(2)[None], torch.eye(2)
    return x, x, one, one, one, one, 2


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
def _(draw):
    b, t, s, h, k = draw.sizes(5)
    x, memory = draw.normal(b, t, h * k), draw.normal(b, s, h * k)
    return x, memory, *four_maps(draw, h * k), h


@multi_head.case("in double precision", dtype=torch.float64)
def _(draw):
    return draw.normal(2, 4, 6), draw.normal(2, 5, 6), *four_maps(draw, 6), 3


@multi_head.case("gradients reach all four matrices", gradients=True)
def _(draw):
    x = draw.normal(2, 3, 8)
    return x, draw.normal(2, 5, 8), *four_maps(draw, 8), 4
