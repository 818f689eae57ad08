"""annotated/recipes_laboratory.py; tests/site compares its model with the engine."""

import pytest
import torch

from annotated.recipes_laboratory import (
    END,
    LETTERS,
    PAD,
    START,
    LaboratoryTransformer,
    laboratory_batch,
    laboratory_rate,
    laboratory_settings,
    laboratory_words,
    laboratory_writes,
)

SMALL = {"width": 8, "heads": 2, "inner": 6, "letters": 4, "shortest": 2, "longest": 3}
A, B, C = LETTERS, LETTERS + 1, LETTERS + 2


def settings(**changes):
    return laboratory_settings(**SMALL | changes)


def test_settings_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="experiment must be one of"):
        laboratory_settings("nothing")
    with pytest.raises(ValueError, match="name must be one of"):
        laboratory_settings(heat=3)


@pytest.mark.parametrize(
    ("task", "answer"),
    [("copy", [C, A, B]), ("reverse", [B, A, C]), ("sort", [A, B, C])],
)
def test_a_batch_of_each_task(task, answer):
    source, target, labels = laboratory_batch(settings(task=task), [[C, A, B], [B, A]])
    assert source.tolist() == [[C, A, B, END], [B, A, END, PAD]]
    assert target[0].tolist() == [START, *answer]
    assert labels[0].tolist() == [*answer, END]
    assert target[1, 3] == labels[1, 3] == PAD


def test_a_decoder_alone_reads_one_sequence():
    _, target, labels = laboratory_batch(settings(model="decoder"), [[C, A]])
    assert target.tolist() == [[C, A, END, START, A, C, PAD, PAD]]
    assert labels.tolist() == [[PAD, PAD, PAD, A, C, END, PAD, PAD]]


def test_words_have_all_letters_and_lengths():
    words = laboratory_words(settings(), 200, torch.Generator().manual_seed(0))
    assert {len(word) for word in words} == {2, 3}
    assert {letter for word in words for letter in word} == set(range(3, 7))


def test_the_rate_rises_and_falls():
    rates = [laboratory_rate(settings(rate=0.1), step) for step in (1, 25, 50, 200)]
    assert rates == pytest.approx([0.002, 0.05, 0.1, 0.05])
    assert laboratory_rate(settings(rate=0.1, warmup=False), 1) == 0.1


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("model", ["encoder-decoder", "decoder"])
def test_the_causal_mask_hides_what_comes_later(model, causal):
    torch.manual_seed(0)
    s = settings(model=model, causal=causal)
    network = LaboratoryTransformer(s)
    source, target, _ = laboratory_batch(s, [[C, A, B]])
    other = target.clone()
    other[0, -1] = LETTERS + 3
    same = torch.isclose(network(source, target), network(source, other)).all(-1)[0]
    assert same[:-1].all() == causal and not same[-1]


def test_writing_goes_symbol_by_symbol_until_the_end():
    s, network = settings(), None

    def script(source, written):  # writes b, a, and then the end; never PAD or START
        logits = torch.zeros(len(source), written.shape[1], 7)
        logits[..., [PAD, START]] = 9
        logits[:, -1, [B, A, END, C][min(3, written.shape[1] - 1)]] = 5
        return logits

    network = script
    network.alone = False
    assert laboratory_writes(network, s, [[A, B, C]] * 2) == [[B, A]] * 2
