"""Hidden cases of the exercises of chapter 04: other shapes, dtypes, and corners."""

import torch

from annotated.checks.ch04 import (
    expect_loss_gradients,
    expect_mean_gradients,
    expect_weights_gradients,
    gaps,
    judge_decoder,
    judge_left_padding,
    judge_loss,
    judge_mean,
    judge_prefix,
    judge_weights,
    judge_window,
    spoiled,
    whole,
)
from annotated.checks.material import draw
from grading.hidden import hidden

HALVES = torch.float16, torch.bfloat16
ALL = torch.float64, *HALVES

# ---- padding on the left -----------------------------------------------------

for _line, _lengths, _size in (
    ("a batch of one", whole(2), 5),
    ("a batch of one, nothing padded", whole(3), 3),
    ("rows of length 1", whole(1, 0, 1), 1),
    ("nothing real at all", whole(0, 0), 3),
    ("other numbers", whole(6, 1, 0, 4, 8, 3), 8),
    ("as many sequences as places", whole(1, 3, 0, 5, 2), 5),
    ("lengths of other widths", whole(2, 0, 4, 1, dtype=torch.int32), 6),
):

    def _judge(mask, lengths, size):
        judge_left_padding(mask, lengths, size)

    _judge.__doc__ = _line
    hidden("ch04-left-padding", _lengths, _size)(_judge)

# ---- a prefix and then causal ------------------------------------------------

for _line, _prefix, _size in (
    ("a batch of one", whole(3), 7),
    ("a single position", whole(0, 1), 1),
    ("no prefix, and nothing but prefix", whole(0, 5), 5),
    ("other numbers", whole(1, 6, 2, 0, 4, 3), 8),
    ("as many sequences as positions", whole(1, 0, 3), 3),
    ("lengths of other widths", whole(2, 4, 0, 1, dtype=torch.int32), 5),
):

    def _judge(mask, prefix, size):
        judge_prefix(mask, prefix, size)

    _judge.__doc__ = _line
    hidden("ch04-prefix", _prefix, _size)(_judge)

# ---- a causal window ---------------------------------------------------------

for _line, _queries, _keys, _width in (
    ("one of each", 1, 1, 1),
    ("a window of 1 is one's own key", 4, 4, 1),
    ("a window of 1, more keys than queries", 3, 8, 1),
    ("a window as wide as the keys", 5, 5, 5),
    ("a window wider than the keys", 4, 6, 20),
    ("a lone query goes on from the keys before it", 1, 9, 4),
    ("other numbers", 7, 11, 5),
    ("as many queries as keys", 8, 8, 2),
):

    def _judge(mask, queries, keys, width):
        judge_window(mask, queries, keys, width)

    _judge.__doc__ = _line
    hidden("ch04-window", _queries, _keys, _width)(_judge)

# ---- the masked mean ---------------------------------------------------------


def _mean(line: str, x: torch.Tensor, mask: torch.Tensor) -> None:
    def judge(mean, x, mask):
        judge_mean(mean, x, mask)

    judge.__doc__ = line
    hidden("ch04-masked-mean", x, mask)(judge)


_mean("a batch of one", draw(1, 4, 3, seed=700), gaps("x-x-"))
_mean("a lone token", draw(2, 1, 3, seed=701), gaps("x", "-"))
_mean("width 1", draw(3, 4, 1, seed=702), gaps("xx--", "---x", "xxxx"))
_mean("all axes of one length", draw(3, 3, 3, seed=703), gaps("x--", "-xx", "xxx"))
_mean("nothing real at all", draw(2, 3, 4, seed=704), gaps("---", "---"))
_mean(
    "NaN, infinity, and nothing real",
    spoiled(draw(3, 4, 2, seed=705), gaps("-xx-", "----", "x--x")),
    gaps("-xx-", "----", "x--x"),
)
for _dtype in ALL:
    _mean(
        "other precisions",
        draw(3, 6, 5, seed=706, dtype=_dtype),
        gaps("xxxx--", "------", "x-x--x"),
    )


@hidden(
    "ch04-masked-mean", draw(2, 5, 3, seed=707), gaps("-----", "-x-x-"), gradients=True
)
def _(result, x, mask):
    "gradients, nothing real"
    expect_mean_gradients(result, x, mask)


@hidden(
    "ch04-masked-mean",
    spoiled(draw(2, 4, 3, seed=708), gaps("x--x", "----")),
    gaps("x--x", "----"),
    gradients=True,
)
def _(result, x, mask):
    "gradients, NaN and infinity at the padding"
    expect_mean_gradients(result, x, mask)


# ---- broken: the weights -----------------------------------------------------


def _weights(line: str, energies: torch.Tensor, mask: torch.Tensor) -> None:
    def judge(weights, energies, mask):
        judge_weights(weights, energies, mask)

    judge.__doc__ = line
    hidden("ch04-repair-weights", energies, mask)(judge)


_causal = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]

_weights("a batch of one, one head", draw(1, 1, 2, 5, seed=800), gaps("-xx-x"))
_weights("a lone query and key", draw(2, 3, 1, 1, seed=801), gaps("x", "-"))
_weights("a causal mask", draw(2, 3, 4, 4, seed=802), _causal)
_weights(
    "padding and causality, and rows with nothing",
    draw(2, 2, 4, 4, seed=803),
    _causal & gaps("-xx-", "xxxx"),
)
_weights(
    "a mask for each head",
    draw(2, 2, 2, 3, seed=804),
    draw(2, 2, 2, 3, seed=805) > 0,
)
_weights("all axes of one length", draw(2, 2, 2, 2, seed=806), gaps("x-", "-x"))
_weights(
    "very low energies",
    draw(2, 1, 3, 4, seed=807, dtype=torch.float64) - 1e7,
    gaps("xx--", "x--x"),
)
_weights("energies below −1e4", draw(2, 2, 2, 3, seed=808) - 3e4, gaps("x-x", "-xx"))
for _dtype in ALL:
    _weights(
        "other precisions",
        draw(2, 2, 3, 5, seed=809, dtype=_dtype),
        gaps("xxx--", "-----"),
    )


@hidden(
    "ch04-repair-weights",
    draw(2, 2, 4, 4, seed=810),
    _causal & gaps("-xx-", "x-xx"),
    gradients=True,
)
def _(result, energies, mask):
    "gradients, rows with nothing to attend to"
    expect_weights_gradients(result, energies, mask)


# ---- broken: the decoder's mask ----------------------------------------------

_SENTENCES = (
    ("a batch of one", torch.tensor([[4, 2, 6, 0, 0]]), 0),
    ("a lone token", torch.tensor([[3], [9]]), 9),
    (
        "padding on the left and in between",
        torch.tensor([[1, 1, 5, 3], [2, 1, 4, 1]]),
        1,
    ),
    ("as many sentences as places", torch.tensor([[2, 7, 7], [7, 7, 7], [0, 1, 2]]), 7),
    ("nothing is padding", torch.tensor([[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]), 0),
    ("a padding of −1, int32", torch.tensor([[0, 3, -1], [4, -1, -1]]).int(), -1),
)
for _line, _tokens, _pad in _SENTENCES:
    for _training in (True, False):

        def _judge(mask, tokens, pad, training):
            judge_decoder(mask, tokens, pad, training)

        _judge.__doc__ = f"{_line}, in {'training' if _training else 'evaluation'}"
        hidden("ch04-repair-decoder", _tokens, _pad, _training)(_judge)

# ---- broken: the loss --------------------------------------------------------


def _loss(line: str, logits: torch.Tensor, targets: list, pad: int) -> None:
    def judge(loss, logits, targets, pad):
        judge_loss(loss, logits, targets, pad)

    judge.__doc__ = line
    hidden("ch04-repair-loss", logits, torch.tensor(targets), pad)(judge)


_loss("a batch of one", draw(1, 5, 6, seed=900), [[3, 2, 5, 0, 0]], 0)
_loss("a lone target", draw(2, 1, 3, seed=901), [[2], [1]], 1)
_loss("nothing is padding", draw(2, 3, 5, seed=902), [[1, 2, 3], [4, 3, 2]], 0)
_loss("padding on the left", draw(2, 4, 5, seed=903), [[4, 4, 1, 0], [4, 2, 3, 0]], 4)
_loss(
    "all axes of one length",
    draw(3, 3, 3, seed=904),
    [[0, 1, 2], [2, 2, 2], [1, 2, 2]],
    2,
)
_loss("nothing is real", draw(1, 4, 3, seed=905), [[2, 2, 2, 2]], 2)
for _dtype in ALL:
    _loss(
        "other precisions",
        draw(2, 4, 3, seed=906, dtype=_dtype),
        [[1, 2, 1, 2], [2, 1, 0, 0]],
        0,
    )


@hidden(
    "ch04-repair-loss",
    draw(2, 2, 3, seed=907),
    torch.full((2, 2), 1),
    1,
    gradients=True,
)
def _(result, logits, targets, pad):
    "gradients, with nothing real"
    expect_loss_gradients(result, logits, targets, pad)


@hidden(
    "ch04-repair-loss",
    draw(2, 4, 5, seed=908),
    torch.tensor([[4, 1, 2, 3], [0, 4, 4, 4]]),
    4,
    gradients=True,
)
def _(result, logits, targets, pad):
    "what flows back"
    expect_loss_gradients(result, logits, targets, pad)
