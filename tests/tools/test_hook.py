"""What tests/conftest.py promises: shapes are checked, behind the errors of our own."""

import jaxtyping
import pytest
import torch

from annotated import require
from annotated.masks import length_mask


def test_tensors_are_checked_with_the_hook():
    with pytest.raises(jaxtyping.TypeCheckError):
        length_mask.__wrapped__(
            torch.ones(2, 2, dtype=torch.long), 2
        )  # "b" is one axis


def test_our_own_errors_come_first():
    with pytest.raises(ValueError, match=r"^lengths must have the shape"):
        length_mask(torch.ones(2, 2, dtype=torch.long), 2)
    with pytest.raises(TypeError, match=r"^heads must be an integer") as caught:
        require.count(heads=2.0)
    assert not isinstance(caught.value, jaxtyping.TypeCheckError)


def test_tests_use_one_thread():
    assert torch.get_num_threads() == 1
