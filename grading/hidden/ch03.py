"""Hidden cases of the exercises of chapter 03: other shapes, dtypes, and corners."""

import torch

from annotated.checks.ch03 import (
    judge_count,
    judge_merge,
    judge_merge_gradients,
    judge_mixing,
    judge_split,
    splitting,
)
from annotated.checks.material import draw
from grading.hidden import hidden

PRECISIONS = torch.float64, torch.float16, torch.bfloat16

# ---- split packed heads ------------------------------------------------------

# shape of x, number of heads -> what is tried
_PACKED = {
    (3, 4, 30, 2): "other shapes",
    (1, 6, 24, 4): "one sequence in the batch",
    (4, 1, 12, 2): "a single token",
    (2, 5, 15, 1): "a single head alone",
    (3, 4, 15, 5): "heads of width 1",
    (2, 2, 12, 2): "all axes of one length",
    (1, 1, 3, 1): "one of everything",
    (2, 3, 18, 3): "as many tokens as heads, and as parts",
    (3, 6, 36, 3): "as many sequences as heads",
}

for _seed, ((*_shape, _heads), _line) in enumerate(_PACKED.items(), 600):

    def _judge(parts, x, heads):
        judge_split(parts, x, heads)

    _judge.__doc__ = _line
    hidden("ch03-split-packed", draw(*_shape, seed=_seed), _heads)(_judge)

for _dtype in PRECISIONS:

    @hidden("ch03-split-packed", draw(2, 4, 18, seed=620, dtype=_dtype), 3)
    def _(parts, x, heads):
        "other precisions"
        judge_split(parts, x, heads)


# ---- merge folded heads ------------------------------------------------------

# shape of y, number of heads -> what is tried
_FOLDED = {
    (12, 5, 2, 4): "other shapes",
    (4, 3, 5, 4): "one sequence in the batch",
    (6, 1, 4, 2): "a single token",
    (3, 4, 5, 1): "a single head alone",
    (10, 3, 1, 5): "heads of width 1",
    (4, 2, 2, 2): "all axes of one length",
    (1, 1, 1, 1): "one of everything",
    (6, 2, 3, 2): "as many tokens as heads",
    (8, 3, 4, 2): "more sequences than heads",
}

for _seed, ((*_shape, _heads), _line) in enumerate(_FOLDED.items(), 640):

    def _judge(x, y, heads):
        judge_merge(x, y, heads)

    _judge.__doc__ = _line
    hidden("ch03-merge-folded", draw(*_shape, seed=_seed), _heads)(_judge)

for _dtype in PRECISIONS:

    @hidden("ch03-merge-folded", draw(6, 4, 2, seed=660, dtype=_dtype), 3)
    def _(x, y, heads):
        "other precisions"
        judge_merge(x, y, heads)


@hidden("ch03-merge-folded", draw(8, 3, 2, seed=661), 4, gradients=True)
def _(result, y, heads):
    "gradients, other shapes"
    judge_merge_gradients(result, y, heads)


# ---- count parameters --------------------------------------------------------

_SIZES = [
    (1, 1, 1, True),
    (7, 1, 1, False),
    (15, 5, 1, True),
    (20, 5, 5, False),
    (64, 8, 2, True),
    (96, 12, 6, False),
    (256, 4, 1, True),
    (384, 6, 6, True),
    (2048, 32, 4, False),
    (8192, 64, 8, False),
    (8192, 64, 8, True),
]

for _size in _SIZES:

    @hidden("ch03-count-parameters", *_size)
    def _(count, d_model, heads, key_value_heads, bias):
        "other sizes"
        judge_count(count, d_model, heads, key_value_heads, bias)


# ---- find the transposed view ------------------------------------------------

_SPLIT = "x.reshape(b, t, heads, k).transpose(1, 2)"
_OTHER_HEADS = "it mixes no tokens: which numbers a head gets, and where, is not asked"
_MEMORY = "it mixes none: what counts is where the numbers stand, not how they lie"

# what is called with x and heads -> does it mix, and what fools an answer that says
# otherwise
_SPLITS = {
    "torch.stack(x.split(k, dim=-1), dim=1)": (False, _MEMORY),
    f"{_SPLIT}.contiguous()": (False, _MEMORY),
    "x.mT.reshape(b, heads, k, t).mT": (
        False,
        "it mixes none: the tokens are moved last, and back again",
    ),
    f"{_SPLIT}.roll(1, dims=1)": (False, _OTHER_HEADS),
    f"{_SPLIT}.flip(3)": (False, _OTHER_HEADS),
    f"{_SPLIT}[..., :1].repeat(1, 1, 1, k)": (
        False,
        "it mixes no tokens: a number may stand twice in its row, and another nowhere",
    ),
    "x.reshape(b, t, k, heads).permute(0, 3, 1, 2).contiguous()": (False, _OTHER_HEADS),
    "x.mT.reshape(b, heads, t, k)": (True, "it does: a transpose too early"),
    f"torch.cat([{_SPLIT}[:, :, 1:], {_SPLIT}[:, :, :1]], dim=2)": (
        True,
        "it does: the first token has gone to the end",
    ),
    f"{_SPLIT}.roll(1, dims=2)": (True, "it does: every token moves by one"),
    f"{_SPLIT}.flip(0)": (
        True,
        "it does: the sequences are exchanged; a token of another sequence is another",
    ),
    f"torch.cat([{_SPLIT}[:, :-1], {_SPLIT}[:, -1:].flip(2)], dim=1)": (
        True,
        "it does, in the last head: look at all heads",
    ),
    f"torch.cat([{_SPLIT}[..., :-1], {_SPLIT}[..., -1:].roll(1, dims=2)], dim=-1)": (
        True,
        "it does, in the last number of each row: look at all numbers",
    ),
    f"torch.cat([{_SPLIT}[:-1], {_SPLIT}[-1:].flip(2)])": (
        True,
        "it does, in the last sequence: look at all sequences",
    ),
    f"torch.cat([{_SPLIT}[:, :, :1], {_SPLIT}[:, :, 1:].flip(2)], dim=2)": (
        True,
        "it does, behind the first token: try at least three tokens",
    ),
    f"{_SPLIT}[:, :, torch.arange(t).clamp(max=max(t - 2, 0))]": (
        True,
        "it does: the last token has the numbers of the one before",
    ),
    "x.reshape(t, b, heads, k).permute(1, 2, 0, 3)": (
        True,
        "it does: b and t are exchanged by a view, which shows in a batch of several",
    ),
}


def _declare(expression: str, right: bool, hint: str) -> None:
    def judge(verdict, split):
        judge_mixing(verdict, right, hint)

    judge.__doc__ = f"{expression} {'mixes tokens' if right else 'mixes no tokens'}"
    hidden("ch03-mixes-tokens", splitting(expression))(judge)


for _expression, (_right, _hint) in _SPLITS.items():
    _declare(_expression, _right, _hint)
