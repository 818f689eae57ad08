"""What tests/conftest.py promises: shapes are checked, or only bad input is tried."""

import jaxtyping
import pytest
import torch

from annotated.masks import length_mask


def test_signatures_are_checked_with_the_hook():
    with pytest.raises(jaxtyping.TypeCheckError):
        length_mask(torch.ones(2, 2, dtype=torch.long), 2)  # "b" is one axis


@pytest.mark.bad_input
def test_our_own_errors_are_seen_without_the_hook():
    with pytest.raises((TypeError, ValueError), match="lengths") as caught:
        length_mask(torch.ones(2, 2, dtype=torch.long), 2)
    assert not isinstance(caught.value, jaxtyping.TypeCheckError)


def test_tests_use_one_thread():
    assert torch.get_num_threads() == 1
