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


def test_a_train_that_takes_other_steps_is_refused(capsys):
    losses = {
        parts: [row["loss"] for row in ch06.train_rung(parts, 0, 4).history]
        for parts in ((), ("residual",))
    }

    def replaces():
        """Stand for a function of the layers, as the next does."""

    def adds():
        """Stand for another."""

    def train(decode, steps):
        return losses[()] if decode is replaces else losses["residual",]

    ch06.check_train(train, replaces, adds)
    assert capsys.readouterr().out.count("✓") == 2
    with pytest.raises(AssertionError, match=r"train\(adds\) = train_rung"):
        ch06.check_train(train, adds, replaces)


def test_networks_are_shown_with_the_numbers_that_are_trained():
    rows = ch06.with_sizes(dict.fromkeys("abcdefg", 0))
    assert [size for _, size, _ in rows] == [272, 544, 1072, 2128, 4240, 1040, 2128]
