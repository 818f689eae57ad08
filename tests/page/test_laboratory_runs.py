"""annotated/page/laboratory_runs.py; tests/site compares its model with the engine."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.page.laboratory_runs import (
    END,
    LETTERS,
    PAD,
    START,
    LaboratoryTransformer,
    NoResidual,
    UnscaledAttention,
    laboratory_batch,
    laboratory_exact,
    laboratory_loss,
    laboratory_rate,
    laboratory_settings,
    laboratory_words,
    laboratory_writes,
    train_laboratory,
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
    s = settings(model=model, causal=causal)
    network = LaboratoryTransformer(s)
    source, target, _ = laboratory_batch(s, [[C, A, B]])
    other = target.clone()
    other[0, -1] = LETTERS + 3
    same = torch.isclose(network(source, target), network(source, other)).all(-1)[0]
    assert same[:-1].all() == causal and not same[-1]


def scripted(forward) -> nn.Module:
    """Return a model of encoder and decoder whose logits a function gives."""
    model = nn.Identity()
    model.forward, model.alone = forward, False
    return model


def test_writing_goes_symbol_by_symbol_until_the_end():
    def script(source, written):  # writes b, a, and then the end; never PAD or START
        logits = torch.zeros(len(source), written.shape[1], 7)
        logits[..., [PAD, START]] = 9
        logits[:, -1, [B, A, END, C][min(3, written.shape[1] - 1)]] = 5
        return logits

    written = laboratory_writes(scripted(script), settings(), [[A, B, C]] * 2)
    assert written == [[B, A]] * 2


def test_unscaled_queries_are_root_k_times_as_long():
    plain, unscaled = MultiHeadAttention(8, 2), UnscaledAttention(8, 2)
    unscaled.load_state_dict(plain.state_dict())
    x = torch.randn(1, 3, 8)
    (q, k, v), (longer, *same) = (a.project(x) for a in (plain, unscaled))
    assert torch.allclose(longer, 2 * q)
    assert torch.equal(same[0], k) and torch.equal(same[1], v)


def test_without_a_residual_nothing_is_added():
    x = torch.randn(1, 3, 8)
    pre, post = (NoResidual(8, norm=order) for order in ("pre", "post"))
    assert torch.equal(pre(x, torch.sin), torch.sin(pre.norm(x)))
    assert torch.equal(post(x, torch.sin), post.norm(torch.sin(x)))


def test_the_loss_leaves_padding_out():
    s = settings()
    model, words = LaboratoryTransformer(s), [[A, B, C], [C, A]]
    source, target, labels = laboratory_batch(s, words)
    logits = model(source, target)
    expected = F.cross_entropy(logits.mT, labels, ignore_index=PAD)
    assert laboratory_loss(model, s, words).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("causal", [True, False])
def test_a_word_is_right_when_all_its_letters_are(causal):
    s = settings(causal=causal)

    def backwards_but_b(source, target):  # at the right place, but b is never written
        logits = torch.zeros(*target.shape, 7)
        for row, word in enumerate(source.tolist()):
            answer = word[: word.index(END)][::-1] + [END]
            for i, letter in enumerate(answer[: target.shape[1]]):
                logits[row, i, A if letter == B else letter] = 1
        return logits

    model = scripted(backwards_but_b)
    words = [[A, C, C], [C, A, A], [A, B, C], [C, C, A]]
    assert laboratory_exact(model, s, words) == 0.75
    if causal:
        assert laboratory_exact(model, s, [[A, C], [B, B]]) == 0.5


def test_training_is_these_steps():
    s = settings(steps=4, batch=4, shortest=3, hold=3)
    run = train_laboratory(s)
    draw = torch.Generator().manual_seed(s["seed"])
    torch.manual_seed(s["seed"])
    model = LaboratoryTransformer(s)
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step, loss in enumerate(run.losses, 1):
        adam.param_groups[0]["lr"] = laboratory_rate(s, step)
        expected = laboratory_loss(model, s, laboratory_words(s, 4, draw))
        assert loss == pytest.approx(expected.item())
        adam.zero_grad()
        expected.backward()
        adam.step()
    assert len(run.losses) == 4 and run.tests == []
    assert len(train_laboratory({**s, "steps": 50}).tests) == 2
