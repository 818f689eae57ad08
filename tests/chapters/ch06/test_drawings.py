"""ch06/drawings.py: what its proofs refuse, and what it counts."""

import pytest
import torch

from annotated.chapters.ch06 import drawings as ch06
from annotated.transformer import DecoderLayer, EncoderLayer


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


def test_words_differ_by_their_distance_from_their_mean():
    words = torch.tensor([[[3.0, 4.0], [3.0, 4.0]]])
    assert ch06.difference(words) == 0
    apart = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    assert ch06.difference(apart) == 1 and ch06.rms(apart) == pytest.approx(0.5**0.5)
    words = ch06.through_layers(lambda x, seen: seen)
    assert [tuple(x.shape) for x in words] == [(1, 10, 32)] * 13
    assert ch06.difference(words[-1]) < 2e-6 < 0.5 < ch06.difference(words[0])


def test_the_rungs_and_what_is_left_out_are_named_by_their_parts():
    assert ch06.UP["+ network"] == "11000" and ch06.UP["attention alone"] == "00000"
    assert ch06.WITHOUT["without residual"] == "01111"
    assert ch06.WITHOUT["without self-attention"] == "11110"


def test_a_rung_that_replaces_where_it_should_add_is_refused(capsys):
    def decode(layers, x, memory, mask, keep):
        for layer in layers:
            x = keep * x + layer.cross_attention(x, memory, mask=mask)
        return x

    alone, added = (
        lambda *given: decode(*given, keep=0),
        lambda *given: decode(*given, keep=1),
    )
    ch06.check_decode(alone, added)
    assert capsys.readouterr().out.count("✓") == 2
    with pytest.raises(AssertionError, match="the decoder of its rung"):
        ch06.check_decode(added, added)
