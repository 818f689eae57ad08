"""ch06/drawings_c.py: what its proofs refuse, and what its tables count."""

import pytest
import torch
from bs4 import BeautifulSoup
from torch.nn import functional as F

from annotated.chapters.ch06 import drawings_c as ch06c
from annotated.transformer import TransformerConfig


def rms_norm(x, gain, eps=1e-6):
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


def swiglu(x, W_gate, W_inner, W_outer):
    return (F.silu(x @ W_gate.T) * (x @ W_inner.T)) @ W_outer.T


def test_what_has_changed_since_is_compared_with_pytorch(capsys):
    ch06c.check_today(rms_norm, swiglu)
    assert capsys.readouterr().out.count("✓") == 3
    with pytest.raises(AssertionError, match="equals PyTorch's RMSNorm"):
        ch06c.check_today(lambda x, gain: F.layer_norm(x, (8,), gain), swiglu)
    with pytest.raises(AssertionError, match="swiglu = FeedForward"):
        ch06c.check_today(
            rms_norm, lambda x, gate, inner, *o: swiglu(x, inner, gate, *o)
        )


def test_a_network_is_a_convolution_and_masks_decide_who_is_moved(capsys):
    ch06c.check_network()
    ch06c.check_masks()
    out = capsys.readouterr().out
    assert (
        out.count("✓") == 5
        and "a causal mask: the last word moves the others by 0" in out
    )


def test_multiplications_that_are_not_those_of_the_formulas_are_refused():
    with pytest.raises(AssertionError, match="by hand"):
        ch06c.component_table(lambda t: {"output": 1, "attention": 2})


def test_a_tied_model_repeats_what_it_read_and_an_untied_one_does_not():
    config = TransformerConfig(1000, 1000, norm="pre", dropout=0.0)
    table = BeautifulSoup(ch06c.first_losses(config).text, "html.parser")
    tied, untied = (
        [cell.text for cell in row.select("td")] for row in table.select("tbody tr")
    )
    assert float(tied[0]) > 5 > abs(float(untied[0])) and tied[1] != untied[1]
    assert "ln v = 6.91" in table.text


def test_the_table_counts_stages_and_the_last_stage_is_the_end():
    said = {
        norm: {"now": torch.linspace(1, 0, 7), "next": torch.linspace(0, 1, 7)}
        for norm in ("pre", "post")
    }
    lengths = dict.fromkeys(("pre", "post"), torch.arange(7.0))
    rows = BeautifulSoup(ch06c.said_table(said, lengths).text, "html.parser")
    first, *_, last = (
        [cell.text for cell in row.select("td")] for row in rows.select("tbody tr")
    )
    assert first == ["100%", "0%", "0.0"] * 2 and last == ["0%", "100%", "6.0"] * 2
    shares = {"pre": torch.rand(7, 6, 12).softmax(-1)}
    logits = {"pre": shares["pre"][-1].log()}
    ch06c.check_last_stage(shares, logits)
    with pytest.raises(AssertionError, match="pre-norm: the last stage"):
        ch06c.check_last_stage(shares, {"pre": shares["pre"][-2].log()})
