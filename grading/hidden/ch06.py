"""Hidden cases of the exercises of chapter 06: other shapes, dtypes, and corners."""

import torch

from annotated.checks import Function
from annotated.checks.ch06 import (
    EACH,
    ELSEWHERE,
    FIRST,
    LOWERED,
    NEXT,
    SECOND,
    THIRD,
    attention,
    elsewhere,
    expect_decoder_gradients,
    expect_encoder_gradients,
    expect_residual_gradients,
    far,
    gaps,
    judge_decoder,
    judge_encoder,
    judge_far,
    judge_misfit,
    judge_residual,
    judge_tied,
    leak_judge,
    model,
    norm,
    rarely,
    refused,
    tied,
    triangle,
    watched,
)
from annotated.checks.material import draw
from grading.hidden import hidden

HALVES = torch.float16, torch.bfloat16
ALL = torch.float64, *HALVES
ORDERS = "post", "pre"

# ---- a residual block --------------------------------------------------------

TURN = Function("0.5 * x.roll(1, -1) - x.flip(1)")


def _residual(line: str, x: torch.Tensor, sublayer: Function, seed: int) -> None:
    d, dtype = x.shape[-1], x.dtype
    weight, bias = draw(d, seed=seed, dtype=dtype), draw(d, seed=seed + 1, dtype=dtype)
    for order in ORDERS:

        def judge(y, x, sublayer, weight, bias, norm):
            judge_residual(y, x, sublayer, weight, bias, norm)

        judge.__doc__ = f'{line}, "{order}"'
        hidden("ch06-residual", x, sublayer, weight, bias, order)(judge)


_residual("a batch of one", draw(1, 5, 4, seed=300), TURN, 301)
_residual("a lone place", draw(3, 1, 6, seed=303), Function("x.sin() + x"), 304)
_residual("width 1: nothing is left but the bias", draw(2, 3, 1, seed=306), TURN, 307)
_residual("all axes of one length", draw(3, 3, 3, seed=309), TURN, 310)
_residual(
    "vectors of equal entries",
    draw(2, 3, 1, seed=312).repeat(1, 1, 4),
    *(Function("2 * x"), 313),
)
_residual(
    "a sublayer that finds nothing", draw(2, 3, 5, seed=315), Function("0 * x"), 316
)
_residual(
    "small vectors, wide", 2e-3 * draw(2, 2, 7, seed=318, dtype=ALL[0]), TURN, 319
)
for _dtype in ALL:
    _residual(
        "other precisions", draw(2, 3, 8, seed=321, dtype=_dtype), Function("x.cos()"),
        322,
    )  # fmt: skip


@hidden(
    "ch06-residual",
    *(far(1, 3, 4, seed=327, offset=-750.0), Function("x / 2")),
    *(draw(4, seed=328), draw(4, seed=329), "post"),
)
def _(y, x, sublayer, weight, bias, norm):
    "far below 0, close together"
    judge_far(y, x, sublayer, weight, bias, norm)


for _order in ORDERS:

    @hidden(
        "ch06-residual",
        *(draw(2, 3, 1, seed=324).repeat(1, 1, 4), TURN),
        *(draw(4, seed=325), draw(4, seed=326), _order),
        gradients=True,
    )
    def _(result, x, sublayer, weight, bias, norm):
        "gradients, finite also for equal entries"
        expect_residual_gradients(result, x, sublayer, weight, bias, norm)


# ---- an encoder layer --------------------------------------------------------

PLAIN = (
    Function("query.cumsum(1) - 0.5 * key.flip(1)", "query, key, mask"),
    *(Function("x.sin()"), norm(2.0, 0.0), norm(0.5, 1.0)),
)
LAYER = attention(1.25), EACH, SECOND, THIRD


def _encoder(line: str, x: torch.Tensor, functions: tuple, mask) -> None:
    for order in ORDERS:

        def judge(y, x, attend, feed_forward, norm_1, norm_2, order, mask):
            judge_encoder(y, x, attend, feed_forward, norm_1, norm_2, order, mask)

        judge.__doc__ = f'{line}, "{order}"'
        hidden("ch06-encoder-layer", x, *functions, order, mask)(judge)


_encoder("a batch of one", draw(1, 5, 4, seed=330), LAYER, gaps("xxx--"))
_encoder("a lone word", draw(2, 1, 3, seed=331), LAYER, gaps("x", "x"))
_encoder("no mask", draw(2, 4, 3, seed=332), LAYER, None)
_encoder("a mask of t × s", draw(2, 4, 3, seed=333), LAYER, triangle("xxxx", "xx--"))
_encoder("all axes of one length", draw(3, 3, 3, seed=334), LAYER,
         gaps("xxx", "xx-", "x--"))  # fmt: skip
_encoder("other functions", draw(2, 3, 5, seed=335), PLAIN, gaps("xxx", "xx-"))
for _dtype in ALL:
    _encoder(
        "other precisions", draw(2, 4, 6, seed=336, dtype=_dtype),
        (attention(0.25), EACH, FIRST, SECOND), gaps("xxx-", "xxxx"),
    )  # fmt: skip


@hidden(
    "ch06-encoder-layer",
    *(draw(1, 4, 3, seed=337), *LAYER, "post", gaps("xxx-")),
    gradients=True,
)
def _(result, x, attend, feed_forward, norm_1, norm_2, order, mask):
    "gradients in the other order"
    expect_encoder_gradients(
        result, x, attend, feed_forward, norm_1, norm_2, order, mask
    )


# ---- a decoder layer ---------------------------------------------------------

OTHERS = {
    "attention": attention(1.0),
    "cross_attention": attention(0.75),
    "feed_forward": Function("x.tanh() * 2 + x.roll(1, -1)"),
    "norm_1": THIRD,
    "norm_2": FIRST,
    "norm_3": norm(0.5, -0.25),
}
# in the other order, as a dictionary may be
TURNED = dict(reversed(OTHERS.items())) | {"norm_1": SECOND}


def _decoder(line: str, x, memory, parts: dict, mask, memory_mask) -> None:
    def judge(y, x, memory, parts, mask, memory_mask):
        judge_decoder(y, x, memory, parts, mask, memory_mask)

    judge.__doc__ = line
    hidden("ch06-decoder-layer", x, memory, parts, mask, memory_mask)(judge)


_decoder(
    "a batch of one", draw(1, 4, 3, seed=340), draw(1, 6, 3, seed=341), OTHERS,
    triangle("xxxx"), gaps("xxxx--"),
)  # fmt: skip
_decoder(
    "a lone symbol, a lone word", draw(2, 1, 4, seed=342), draw(2, 1, 4, seed=343),
    OTHERS, triangle("x", "x"), gaps("x", "x"),
)  # fmt: skip
_decoder(
    "one symbol asks a long source", draw(2, 1, 3, seed=344), draw(2, 7, 3, seed=345),
    OTHERS, None, gaps("xxxxxxx", "xx-----"),
)  # fmt: skip
_decoder(
    "no masks", draw(2, 3, 4, seed=346), draw(2, 5, 4, seed=347), TURNED, None, None
)
_decoder(
    "all axes of one length", draw(3, 3, 3, seed=348), draw(3, 3, 3, seed=349), TURNED,
    triangle("xxx", "xx-", "xxx"), gaps("x--", "xxx", "xx-"),
)  # fmt: skip
_decoder(
    "a source shorter than the target", draw(2, 5, 4, seed=350),
    draw(2, 2, 4, seed=351), OTHERS, triangle("xxxxx", "xxx--"), gaps("xx", "x-"),
)  # fmt: skip
for _dtype in ALL:
    _decoder(
        "other precisions", draw(2, 3, 6, seed=352, dtype=_dtype),
        draw(2, 4, 6, seed=353, dtype=_dtype), OTHERS,
        triangle("xxx", "xx-"), gaps("xxxx", "xx--"),
    )  # fmt: skip


@hidden(
    "ch06-decoder-layer",
    *(draw(1, 4, 3, seed=354), draw(1, 3, 3, seed=355), TURNED),
    *(triangle("xxx-"), gaps("xx-")),
    gradients=True,
)
def _(result, x, memory, parts, mask, memory_mask):
    "gradients, and masked words get none"
    expect_decoder_gradients(result, x, memory, parts, mask, memory_mask)


# ---- tie the weights ---------------------------------------------------------

for _line, _vocab, _width, _dtype in (
    ("other sizes", 11, 6, "float32"),
    ("a single symbol to embed", 1, 4, "float32"),
    ("vectors of a single number", 5, 1, "float32"),
    ("fewer symbols than the width", 3, 8, "float32"),
    ("double precision", 6, 5, "float64"),
    ("half precision", 9, 2, "float16"),
    ("the other half precision", 8, 3, "bfloat16"),
):

    def _judge(told, vocab, d_model, dtype):
        judge_tied(told, vocab, d_model, dtype)

    _judge.__doc__ = _line
    hidden("ch06-tie", _vocab, _width, _dtype, through=tied)(_judge)

for _line, _sizes in (
    ("embeddings of two widths", (18, 13, 18, 12, 13, 18)),
    ("one symbol more in the target", (19, 4, 20, 4, 4, 19)),
    ("an output that is the wrong way round", (14, 13, 14, 13, 14, 13)),
    ("an output of one symbol less", (31, 4, 31, 4, 4, 30)),
    ("a target that is turned", (21, 22, 22, 21, 22, 21)),
):

    def _judge(told, v, d, v_target, d_target, inputs, outputs):
        judge_misfit(told, v, d, v_target, d_target, inputs, outputs)

    _judge.__doc__ = _line
    hidden("ch06-tie", *_sizes, through=refused, raises=True)(_judge)

# ---- find the leak of the future ---------------------------------------------

AFFINE = "torch.arange(float(ids.shape[1]))[:, None]"


def _leak(line: str, given: Function, *sizes: int, leaks: bool, hint: str) -> None:
    declare = hidden("ch06-find-leak", given, *sizes, through=watched)
    declare(leak_judge(line, leaks, hint))


for _but in range(4):
    _leak(
        "a place sees the next but one, by what it holds itself",
        elsewhere(2, _but, 4, far=2),
        *(7, 4),
        leaks=True,
        hint=ELSEWHERE,
    )
_leak(
    "another sum of symbols, lowered",
    rarely(-0.25, 43, 12, 9),
    *(10, 9),
    leaks=True,
    hint=LOWERED,
)
_leak(
    "another sum of symbols, raised",
    rarely(0.25, 67, 24, 10),
    *(9, 10),
    leaks=True,
    hint=NEXT,
)


_leak(
    "a length of 1 has no future",
    model("one * 2", 4),
    1,
    4,
    leaks=False,
    hint="one place has no later one, whatever the model does",
)
_leak(
    "a vocabulary of one symbol",
    model("one.flip(1).cumsum(1)", 1),
    4,
    1,
    leaks=False,
    hint="with one symbol nothing can be changed",
)
_leak(
    "only the last place is seen, and only by the one before",
    model("one + torch.eye(ids.shape[1])[6, :, None] * one.roll(-1, 1)", 3),
    8,
    3,
    leaks=True,
    hint="it does: the last logit but one depends on the last symbol",
)
_leak(
    "a mask that is one too wide in the middle",
    model("one.cumsum(1) + torch.eye(ids.shape[1])[4, :, None] * one.roll(-1, 1)", 4),
    9,
    4,
    leaks=True,
    hint="it does: the logit at place 4 depends on the symbol at place 5",
)
_leak(
    "a look ahead over several places",
    model("one.cumsum(1) + torch.eye(ids.shape[1])[1, :, None] * one.roll(-4, 1)", 5),
    7,
    5,
    leaks=True,
    hint="it does: the logit at place 1 depends on the symbol at place 5",
)
_leak(
    "symbol 0 lets itself be seen",
    model("one + (ids == 0).flip(1).cumsum(1).flip(1)[..., None] * 0.3", 5),
    6,
    5,
    leaks=True,
    hint="it does: symbol 0 is seen from before; put every symbol at every place",
)
_leak(
    "one logit of many gives it away",
    model("one.cumsum(1) + torch.eye(8)[3] * one.roll(-1, 1)[..., :1] * 0.02", 8),
    5,
    8,
    leaks=True,
    hint="it does, in one logit alone, by 0.02: compare all of them",
)
_leak(
    "a leak that leaves the sum of the logits alone",
    model("one.cumsum(1) + one.roll(-1, 1)", 4),
    6,
    4,
    leaks=True,
    hint="it does, and the sum of the logits does not show it: compare each",
)
_leak(
    "logits of one place alone",
    model("one - 0.5", 3),
    7,
    3,
    leaks=False,
    hint="it does not: each logit depends on its own symbol",
)
_leak(
    "the mean so far, in other words",
    model(f"one.cumsum(1) / (1 + {AFFINE})", 6),
    6,
    6,
    leaks=False,
    hint="it does not: means of what came",
)
_leak(
    "the mean over all places",
    model("one + one.mean(1, True)", 4),
    4,
    4,
    leaks=True,
    hint="it does: the mean runs over the later places too",
)
_leak(
    "a position that counts from the end",
    model(f"one.cumsum(1) * (ids.shape[1] - {AFFINE})", 4),
    5,
    4,
    leaks=False,
    hint="it does not: its logits depend on the length, not on later symbols",
)
_leak(
    "large logits, so that their last digits differ",
    model(
        "(torch.tensor(0.3) * one).sum(1, True) * 30"
        " - (torch.tensor(0.3) * one).flip(1).cumsum(1).flip(1) * 30",
        5,
    ),
    10,
    5,
    leaks=False,
    hint="it does not: what differs is rounding, below 1e-4",
)
