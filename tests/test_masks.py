"""annotated/masks.py: True = may attend, and nothing else is taken for a mask."""

import pytest
import torch

from annotated.masks import (
    causal_mask,
    count_positions,
    document_mask,
    length_mask,
    padding_mask,
)
from tests.refused import assert_refused, table

LENGTHS, SIZE = [2, 0, 7, 3, 1], 7
# 0 in front, in the middle, behind, nowhere and everywhere; 4 at other places
TOKENS = [[0, 4, 1], [3, 0, 4], [4, 5, 0], [1, 2, 3], [0, 0, 0]]
NUMBERS = [torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_length_mask_is_true_at_real_tokens_and_false_behind_them(dtype):
    mask = length_mask(torch.tensor(LENGTHS, dtype=dtype), SIZE)
    wanted = [[position < length for position in range(SIZE)] for length in LENGTHS]
    assert mask.shape == (len(LENGTHS), 1, 1, SIZE), "axes are (b, 1, 1, s)"
    assert mask[:, 0, 0].tolist() == wanted


def test_length_mask_is_made_on_the_device_of_the_lengths():
    lengths = torch.tensor(LENGTHS)
    with torch.device("meta"):  # where a tensor with no device named would go
        mask = length_mask(lengths, SIZE)
    assert mask.device == lengths.device


def test_length_mask_of_no_sequence_is_empty():
    assert length_mask(torch.zeros(0, dtype=torch.long), SIZE).shape == (0, 1, 1, SIZE)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("pad", [0, 4, -100])
def test_padding_mask_is_false_wherever_padding_stands(pad, dtype):
    mask = padding_mask(torch.tensor(TOKENS, dtype=dtype), pad)
    wanted = [[token != pad for token in row] for row in TOKENS]
    assert mask.shape == (5, 1, 1, 3), "axes are (b, 1, 1, s)"
    assert mask[:, 0, 0].tolist() == wanted


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


@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (5, 5), (5, 7), (1, 7), (2, 3), (6, 7)]
)
def test_causal_mask_lets_a_query_see_the_keys_up_to_its_own_position(queries, keys):
    mask = causal_mask(queries, keys)
    assert mask.shape == (1, 1, queries, keys) and mask.dtype == torch.bool
    for t in range(queries):
        position = keys - queries + t  # the queries are the last ones of the keys
        wanted = [s <= position for s in range(keys)]
        assert mask[0, 0, t].tolist() == wanted, f"query {t} of {queries}"


def test_causal_mask_is_made_where_it_is_asked_for():
    assert causal_mask(5, 7, device="meta").device == torch.device("meta")
    assert causal_mask(5, device=torch.device("meta")).device == torch.device("meta")
    with torch.device("meta"):  # where a tensor with no device named would go
        assert causal_mask(5, device="cpu").device == torch.device("cpu")


REFUSED = """
    length_mask(torch.tensor([2, 8]), SIZE)
        lengths must hold integers from 0 to 7, got 8
    padding_mask(torch.tensor([2, 3]))
        tokens must have the shape (b, s), got (2,)
    causal_mask(5, 4)
        queries must be at most keys, got queries=5 and keys=4
"""


@pytest.mark.parametrize(("call", "message"), table(REFUSED).items())
def test_what_does_not_fit_is_named(call, message):
    assert_refused(call, message, globals())


# ---- several documents in a row --------------------------------------------------


def test_tokens_see_those_of_their_own_document_and_positions_start_again():
    documents = torch.tensor([[4, 4, 4, 7, 7], [0, 1, 1, 2, 2]])
    mask = document_mask(documents)
    assert mask.shape == (2, 1, 5, 5), "axes are (b, 1, t, t)"
    same = [[[i == j for j in row] for i in row] for row in documents.tolist()]
    assert mask[:, 0].tolist() == same
    assert count_positions(mask).tolist() == [[0, 1, 2, 0, 1], [0, 0, 1, 0, 1]]


def test_positions_count_the_real_tokens_before():
    tokens = torch.tensor([[0, 0, 4, 5], [4, 5, 6, 0], [0, 4, 0, 5], [0, 0, 0, 0]])
    places = count_positions(padding_mask(tokens))
    assert places.tolist() == [[0, 0, 0, 1], [0, 1, 2, 2], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_what_tells_documents_apart_stays_on_their_device():
    mask = document_mask(torch.ones(2, 3, dtype=torch.long, device="meta"))
    assert count_positions(mask).device == mask.device == torch.device("meta")
