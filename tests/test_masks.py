"""annotated/masks.py: True = may attend, and nothing else is taken for a mask."""

import pytest
import torch

from annotated.masks import length_mask, require_mask

LENGTHS, SIZE = [2, 0, 7, 3, 1], 7


# ---- length_mask -------------------------------------------------------------


def test_length_mask_is_true_at_real_tokens_and_false_behind_them():
    mask = length_mask(torch.tensor(LENGTHS), SIZE)
    wanted = [[position < length for position in range(SIZE)] for length in LENGTHS]
    assert mask[:, 0, 0].tolist() == wanted


def test_length_mask_has_axes_for_heads_and_queries():
    mask = length_mask(torch.tensor(LENGTHS), SIZE)
    assert mask.shape == (len(LENGTHS), 1, 1, SIZE), "axes are (b, 1, 1, s)"
    assert mask.dtype == torch.bool


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_length_mask_takes_every_width_of_whole_number(dtype):
    mask = length_mask(torch.tensor(LENGTHS, dtype=dtype), SIZE)
    assert mask.sum(-1).flatten().tolist() == LENGTHS


def test_length_mask_leaves_the_lengths_alone():
    lengths = torch.tensor(LENGTHS)
    length_mask(lengths, SIZE)
    assert lengths.tolist() == LENGTHS


def test_length_mask_composes_with_a_causal_mask():
    queries = 5
    causal = torch.ones(queries, SIZE, dtype=torch.bool).tril()
    both = length_mask(torch.tensor(LENGTHS), SIZE) & causal
    assert both.shape == (len(LENGTHS), 1, queries, SIZE)
    for b, length in enumerate(LENGTHS):
        for t in range(queries):
            wanted = [s < length and s <= t for s in range(SIZE)]
            assert both[b, 0, t].tolist() == wanted


def test_length_mask_is_made_on_the_device_of_the_lengths():
    lengths = torch.tensor(LENGTHS)
    with torch.device("meta"):  # where a tensor with no device named would go
        mask = length_mask(lengths, SIZE)
    assert mask.device == lengths.device


def test_length_mask_of_no_sequence_is_empty():
    assert length_mask(torch.zeros(0, dtype=torch.long), SIZE).shape == (0, 1, 1, SIZE)


# ---- require_mask ------------------------------------------------------------


@pytest.mark.parametrize(
    "shape",
    [(2, 3, 5), (1, 3, 5), (2, 1, 5), (2, 3, 1), (3, 5), (1, 5), (5,), (1,), ()],
)
def test_require_mask_accepts_what_broadcasts(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    mask.expand(2, 3, 5)  # what it promises can be done
    assert require_mask(mask, (2, 3, 5)) is None


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("lengths", "found"),
    [
        (torch.tensor([2.0, 3.0]), "torch.float32"),
        (torch.tensor([2.0, 3.0]).half(), "torch.float16"),
        (torch.tensor([True, False]), "torch.bool"),
        ([2, 3], "list"),
        (3, "int"),
    ],
)
def test_length_mask_refuses_lengths_that_are_no_whole_numbers(lengths, found):
    message = f"^lengths must be a tensor of whole numbers, got {found}$"
    with pytest.raises(TypeError, match=message):
        length_mask(lengths, SIZE)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("lengths", "found"), [([2, 8], "2 to 8"), ([-1, 3], "-1 to 3"), ([8], "8 to 8")]
)
def test_length_mask_refuses_lengths_beyond_the_batch(lengths, found):
    message = f"^lengths must lie between 0 and size=7, got {found}$"
    with pytest.raises(ValueError, match=message):
        length_mask(torch.tensor(lengths), SIZE)


@pytest.mark.bad_input
@pytest.mark.parametrize(("shape", "found"), [((2, 3), r"\(2, 3\)"), ((), r"\(\)")])
def test_length_mask_refuses_lengths_with_another_number_of_axes(shape, found):
    message = rf"^lengths must have one axis \(b,\), got shape {found}$"
    with pytest.raises(ValueError, match=message):
        length_mask(torch.ones(shape, dtype=torch.long), SIZE)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("mask", "found"),
    [
        (torch.ones(2, 3, 5), "torch.float32"),
        (torch.ones(2, 3, 5, dtype=torch.long), "torch.int64"),
        ([True] * 5, "list"),
        (None, "NoneType"),
    ],
)
def test_require_mask_refuses_what_is_not_boolean(mask, found):
    message = rf"^mask must be a boolean tensor \(True = may attend\), got {found};"
    with pytest.raises(TypeError, match=message):
        require_mask(mask, (2, 3, 5))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "shape", [(2, 5, 3), (3,), (2, 3, 4), (3, 3, 5), (2, 2, 5), (1, 2, 3, 5), (0, 3, 5)]
)
def test_require_mask_refuses_what_does_not_broadcast(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ValueError, match="does not broadcast") as caught:
        require_mask(mask, (2, 3, 5))
    assert f"mask of shape {shape}" in str(caught.value)
    assert "(2, 3, 5)" in str(caught.value)
