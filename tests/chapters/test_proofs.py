"""Proofs pass what their page defines, and refuse it with a mistake in it."""

from functools import partial

import pytest
import torch

from annotated.chapters.ch01 import drawings as ch01
from annotated.chapters.ch02 import drawings as ch02
from annotated.chapters.ch05 import drawings as ch05
from annotated.chapters.ch06 import drawings_b as ch06b
from annotated.chapters.ch07 import drawings as ch07
from annotated.chapters.ch07 import drawings_b as ch07b
from annotated.chapters.ch09 import drawings_b as ch09b
from annotated.chapters.ch09 import drawings_c as ch09c
from tests.defined import defined

ATTENTION, NORMS, TRAINING = "02_self_attention", "06b_norm_order", "07_training"
POSITIONS, DISTANCES = "05_positional_encoding", "05c_relative_positions"
X = torch.tensor([[2.0, 0, 0, -1], [0, 2, 0, 1], [0.5, 0.5, 1, 0], [1.5, -0.5, 1, 0]])
TIMES = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def loops(self_attention):
    ch02.check_loops(self_attention, X)


def shuffled(self_attention):
    ch02.check_set(self_attention, X)


def schedule(rate):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    ch07.check_schedule(rate, optimizer)


toy = partial(ch09c.check_toy, TIMES)
# a page, its function and proof, a text of the function, and what replaces it
MISTAKES = [
    ("01_seq2seq_attention", "attend", ch01.check_attend, "torch.tanh", ""),
    ("01b_other_scores", "gru_step", ch01.check_gru, "z * state", "(1 - z) * state"),
    (ATTENTION, "self_attention", loops, "dim=-1", "dim=-2"),
    (ATTENTION, "self_attention", shuffled, "weights @ x", "x.cumsum(0)"),
    (POSITIONS, "table_by_hand", ch05.check_table, "math.sin", "math.cos"),
    (POSITIONS, "turned_by", ch05.check_longer, "/ factor", "* factor"),
    (POSITIONS, "turned_by", ch05.check_longer, "/ factor", ""),
    (DISTANCES, "squeezed", ch05.check_squeezed, "/ factor", "* factor"),
    (NORMS, "nearly", ch06b.nearly_table, "+ eps", "+ 1e-3"),
    (NORMS, "nearly", ch06b.nearly_table, "True) + eps", "True, correction=0) + eps"),
    (TRAINING, "smoothing_loss", ch07.check_smoothing, "real.sum()", "len(real)"),
    (TRAINING, "clip_by_hand", ch07.check_clipping, "sum(", "max("),
    (TRAINING, "noam_rate", schedule, "n * w ** (-1.5)", "1"),
    ("07b_adam", "adam_moves", ch07b.check_adam, "m / (1 - betas[0] ** n)", "m"),
    ("07b_adam", "adam_moves", ch07b.check_memory, "betas[1] * u", "betas[0] * u"),
    # what ends leaves a place empty; beams reordered, their past not
    ("09b_search", "beam", ch09b.check_search, "2 * k", "k"),
    ("09b_search", "beam", ch09b.check_search, "ids[parents]", "ids[0 * parents]"),
    ("09c_subwords", "learn", toy, "+= n", "+= 1"),
    ("09c_subwords", "learn", toy, "min(tied", "max(tied"),
]


@pytest.mark.parametrize(("page", "name", "proof", "text", "instead"), MISTAKES)
def test_a_function_passes_and_a_mistake_in_it_is_refused(
    page, name, proof, text, instead
):
    proof(defined(page, name))
    with pytest.raises(AssertionError):
        proof(defined(page, name, mistake=(text, instead)))
