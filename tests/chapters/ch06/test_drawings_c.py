"""ch06/drawings_c.py: what its proofs refuse."""

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch06 import drawings_c as ch06c
from annotated.transformer import TransformerConfig
from tests.defined import defined
from tests.shown import cells


def test_what_has_changed_since_is_compared_with_pytorch(capsys):
    rms_norm, swiglu = defined("06c_inside_a_transformer", "rms_norm", "swiglu")
    ch06c.check_today(rms_norm, swiglu)
    assert capsys.readouterr().out.count("✓") == 3
    with pytest.raises(AssertionError, match="equals PyTorch's RMSNorm"):
        ch06c.check_today(lambda x, gain: F.layer_norm(x, (8,), gain), swiglu)
    with pytest.raises(AssertionError, match="swiglu = FeedForward"):
        ch06c.check_today(
            rms_norm, lambda x, gate, inner, *o: swiglu(x, inner, gate, *o)
        )


def test_multiplications_that_are_not_those_of_the_formulas_are_refused():
    with pytest.raises(AssertionError, match="by hand"):
        ch06c.component_table(lambda t: {"output": 1, "attention": 2})


def test_a_tied_model_repeats_what_it_read_and_an_untied_one_does_not():
    config = TransformerConfig(1000, 1000, norm="pre", dropout=0.0)
    _, (_, tied, *_), (_, untied, *_) = cells(ch06c.first_losses(config))
    assert float(tied) > 5 > abs(float(untied))


def test_the_last_stage_is_the_end():
    shares = {"pre": torch.rand(7, 6, 12).softmax(-1)}
    logits = {"pre": shares["pre"][-1].log()}
    ch06c.check_last_stage(shares, logits)
    with pytest.raises(AssertionError, match="pre-norm: the last stage"):
        ch06c.check_last_stage(shares, {"pre": shares["pre"][-2].log()})
