"""annotated/masks.py: True = may attend, and nothing else is taken for a mask."""

import pytest
import torch

from annotated.masks import causal_mask, length_mask, padding_mask, require_mask

LENGTHS, SIZE = [2, 0, 7, 3, 1], 7
# 0 in front, in the middle, behind, nowhere and everywhere; 4 at other places
TOKENS = [[0, 4, 1], [3, 0, 4], [4, 5, 0], [1, 2, 3], [0, 0, 0]]
NUMBERS = [torch.int16, torch.int32, torch.int64]


# ---- length_mask -------------------------------------------------------------


def test_length_mask_is_true_at_real_tokens_and_false_behind_them():
    mask = length_mask(torch.tensor(LENGTHS), SIZE)
    wanted = [[position < length for position in range(SIZE)] for length in LENGTHS]
    assert mask[:, 0, 0].tolist() == wanted


def test_length_mask_has_axes_for_heads_and_queries():
    mask = length_mask(torch.tensor(LENGTHS), SIZE)
    assert mask.shape == (len(LENGTHS), 1, 1, SIZE), "axes are (b, 1, 1, s)"
    assert mask.dtype == torch.bool


@pytest.mark.parametrize("dtype", NUMBERS)
def test_length_mask_takes_every_width_of_whole_number(dtype):
    mask = length_mask(torch.tensor(LENGTHS, dtype=dtype), SIZE)
    assert mask.sum(-1).flatten().tolist() == LENGTHS


def test_length_mask_leaves_the_lengths_alone():
    lengths = torch.tensor(LENGTHS)
    length_mask(lengths, SIZE)
    assert lengths.tolist() == LENGTHS


def test_length_mask_composes_with_any_other():
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


# ---- padding_mask ------------------------------------------------------------


@pytest.mark.parametrize("pad", [0, 4, -100])
def test_padding_mask_is_false_wherever_padding_stands(pad):
    mask = padding_mask(torch.tensor(TOKENS), pad)
    wanted = [[token != pad for token in row] for row in TOKENS]
    assert mask[:, 0, 0].tolist() == wanted


def test_the_id_of_padding_is_zero_if_none_is_given():
    tokens = torch.tensor(TOKENS)
    assert torch.equal(padding_mask(tokens), padding_mask(tokens, 0))


def test_padding_mask_has_axes_for_heads_and_queries():
    mask = padding_mask(torch.tensor(TOKENS))
    assert mask.shape == (5, 1, 1, 3), "axes are (b, 1, 1, s)"
    assert mask.dtype == torch.bool


@pytest.mark.parametrize("dtype", NUMBERS)
def test_padding_mask_takes_every_width_of_whole_number(dtype):
    mask = padding_mask(torch.tensor(TOKENS, dtype=dtype), 4)
    assert mask.sum(-1).flatten().tolist() == [2, 2, 2, 3, 3]


def test_padding_mask_is_the_length_mask_where_padding_stands_behind():
    tokens = torch.full((len(LENGTHS), SIZE), 9)
    for row, length in zip(tokens, LENGTHS, strict=True):
        row[length:] = 0
    by_length = length_mask(torch.tensor(LENGTHS), SIZE)
    assert torch.equal(padding_mask(tokens), by_length)


def test_padding_mask_leaves_the_tokens_alone():
    tokens = torch.tensor(TOKENS)
    padding_mask(tokens)
    assert tokens.tolist() == TOKENS


def test_padding_mask_is_made_on_the_device_of_the_tokens():
    here = torch.tensor(TOKENS)
    with torch.device("meta"):  # where a tensor with no device named would go
        mask = padding_mask(here)
    assert mask.device == here.device
    assert padding_mask(here.to("meta")).device == torch.device("meta")


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_padding_mask_of_no_token_is_empty(shape):
    mask = padding_mask(torch.zeros(shape, dtype=torch.long))
    assert mask.shape == (shape[0], 1, 1, shape[1])


# ---- causal_mask -------------------------------------------------------------


@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (5, 5), (5, 7), (1, 7), (2, 3), (6, 7)]
)
def test_causal_mask_lets_a_query_see_the_keys_up_to_its_own_position(queries, keys):
    mask = causal_mask(queries, keys)
    for t in range(queries):
        position = keys - queries + t  # the queries are the last ones of the keys
        wanted = [s <= position for s in range(keys)]
        assert mask[0, 0, t].tolist() == wanted, f"query {t} of {queries}"


def test_there_are_as_many_keys_as_queries_if_no_number_is_given():
    assert torch.equal(causal_mask(5), causal_mask(5, 5))
    assert causal_mask(5).sum() == 1 + 2 + 3 + 4 + 5


def test_causal_mask_has_axes_for_batch_and_heads():
    mask = causal_mask(5, 7)
    assert mask.shape == (1, 1, 5, 7), "axes are (1, 1, t, s)"
    assert mask.dtype == torch.bool


@pytest.mark.parametrize("queries", range(1, 8))
def test_causal_mask_of_the_last_queries_is_the_end_of_the_whole_one(queries):
    whole = causal_mask(7)
    assert torch.equal(causal_mask(queries, 7), whole[:, :, 7 - queries :])


def test_causal_mask_is_made_where_it_is_asked_for():
    assert causal_mask(5, 7, device="meta").device == torch.device("meta")
    assert causal_mask(5, device=torch.device("meta")).device == torch.device("meta")
    with torch.device("meta"):  # where a tensor with no device named would go
        assert causal_mask(5, device="cpu").device == torch.device("cpu")


@pytest.mark.parametrize("queries", [7, 5, 1])
def test_the_three_masks_compose(queries):
    tokens = torch.tensor([[3, 0, 4, 5, 6, 0, 0], [1, 2, 3, 4, 5, 6, 7]])
    lengths = torch.tensor([7, 4])
    mask = padding_mask(tokens) & length_mask(lengths, 7) & causal_mask(queries, keys=7)
    assert mask.shape == (2, 1, queries, 7)
    for b in range(2):
        for t in range(queries):
            wanted = [
                tokens[b, s].item() != 0 and s < lengths[b] and s <= 7 - queries + t
                for s in range(7)
            ]
            assert mask[b, 0, t].tolist() == wanted, f"sequence {b}, query {t}"


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
        (torch.tensor([2j, 3j]), "torch.complex64"),
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
    ("tokens", "found"),
    [
        (torch.tensor([[2.0, 3.0]]), "torch.float32"),
        (torch.tensor([[2j, 3j]]), "torch.complex64"),
        (torch.tensor([[True, False]]), "torch.bool"),
        ([[2, 3]], "list"),
        (None, "NoneType"),
    ],
)
def test_padding_mask_refuses_tokens_that_are_no_whole_numbers(tokens, found):
    message = f"^tokens must be a tensor of whole numbers, got {found}$"
    with pytest.raises(TypeError, match=message):
        padding_mask(tokens)


@pytest.mark.bad_input
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 5)])
def test_padding_mask_refuses_tokens_with_another_number_of_axes(shape):
    with pytest.raises(ValueError, match=r"^tokens must have the axes \(b, s\), ") as e:
        padding_mask(torch.ones(shape, dtype=torch.long))
    assert str(e.value).endswith(f"got shape {shape}")


@pytest.mark.bad_input
@pytest.mark.parametrize("pad", [0.0, "0", None, True, torch.tensor(0)])
def test_padding_mask_refuses_an_id_that_is_no_whole_number(pad):
    message = "^pad must be a whole number, the id of padding, got "
    with pytest.raises(TypeError, match=message) as caught:
        padding_mask(torch.tensor(TOKENS), pad)
    assert str(caught.value).endswith(repr(pad))


@pytest.mark.bad_input
@pytest.mark.parametrize("number", [5.0, "5", True, torch.tensor(5)])
@pytest.mark.parametrize("name", ["queries", "keys"])
def test_causal_mask_refuses_what_is_no_whole_number(name, number):
    numbers = {"queries": 5, "keys": 5} | {name: number}
    with pytest.raises(TypeError, match=f"^{name} must be a whole number, got ") as e:
        causal_mask(**numbers)
    assert str(e.value).endswith(repr(number))


@pytest.mark.bad_input
@pytest.mark.parametrize("queries", [0, -1])
def test_causal_mask_needs_a_query(queries):
    message = f"^queries must be 1 or more, got {queries}$"
    with pytest.raises(ValueError, match=message):
        causal_mask(queries, 5)


@pytest.mark.bad_input
@pytest.mark.parametrize("keys", [4, 1, 0, -1])
def test_causal_mask_refuses_fewer_keys_than_queries(keys):
    message = f"^keys must be at least as many as queries, got {keys} keys and 5 quer"
    with pytest.raises(ValueError, match=message):
        causal_mask(5, keys)


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
