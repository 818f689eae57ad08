"""annotated/page/ch06.py: its count of parameters, and what its proofs say."""

import re

import pytest

from annotated.page import ch06
from annotated.transformer import (
    DecoderLayer,
    EncoderLayer,
    Transformer,
    TransformerConfig,
)


@pytest.mark.parametrize(
    "changes",
    [
        {"tied": True},
        {"tied": False},
        {"norm": "pre", "norm_kind": "rms"},
        {"bias": False, "activation": "swiglu"},
    ],
)
def test_the_parameters_of_any_model_are_counted_part_by_part(changes):
    config = TransformerConfig(7, 7, d_model=10, heads=2, layers=3, d_ff=11, **changes)
    table = ch06.parameter_table(config).text
    *parts, total = (
        int(number.replace(",", ""))
        for number in re.findall(r"<td[^>]*>([\d,]+)</td>", table)
    )
    assert len(parts) == 5 and min(parts) > 0
    assert sum(parts) == total == ch06.count(Transformer(config))


def test_a_decoder_layer_that_sees_the_future_is_told_so(capsys):
    ch06.check_decoder_layer(DecoderLayer.forward)
    assert capsys.readouterr().out.count("✓") == 2
    with pytest.raises(AssertionError, match="decoder_layer sees the future"):
        ch06.check_decoder_layer(
            lambda layer, x, memory, causal, padding: layer(x, memory, None, padding)
        )


def test_an_encoder_layer_that_attends_to_padding_is_refused():
    ch06.check_encoder_layer(EncoderLayer.forward)
    with pytest.raises(AssertionError, match="encoder_layer"):
        ch06.check_encoder_layer(lambda layer, x, mask: layer(x))
