"""ch13/lsh.py: the dense side of LSH attention, and the duplicate task."""

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch13.lsh import (
    ASKED,
    DUPLICATE,
    FULL,
    LENGTH,
    TRAINED,
    LSHText,
    duplicate_loss,
    duplicates,
    duplicates_right,
    exact_attention,
    lost_pairs,
    meetings,
    prototypes,
    recall,
    second_word,
    train_duplicate,
)
from annotated.gpt import GPTConfig
from annotated.reformer import LSHSelfAttention, lsh_attention, lsh_buckets


def assert_near(actual, expected, limit=1e-5):
    torch.testing.assert_close(actual, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("causal", [False, True])
def test_exact_attention_hides_oneself_unless_alone(causal):
    query, value = torch.randn(2, 5, 4), torch.randn(2, 5, 3)
    found = exact_attention(query, value, causal=causal, scale=0.5)
    for n in range(2):
        for i in range(5):
            others = [j for j in range(i if causal else 5) if j != i] or [i]
            keys = F.normalize(query[n, others], dim=-1)
            weights = (0.5 * keys @ query[n, i]).softmax(dim=0)
            assert_near(found[n, i], weights @ value[n, others])


def test_exact_attention_of_those_that_meet_is_lsh_attention():
    query, value = torch.randn(3, 30, 4), torch.randn(3, 30, 5)
    buckets = lsh_buckets(query, 6, 3)
    met = meetings(buckets, 5)
    assert met.shape == (3, 3, 30, 30)
    for causal in (False, True):
        wanted = lsh_attention(query, value, buckets, 5, causal)
        found = exact_attention(query, value, met.any(dim=1), causal)
        assert_near(found, wanted)


def test_meetings_by_hand():
    buckets = torch.tensor([[1, 0, 1, 0, 2, 1]])  # sorted: 1 3 | 0 2 | 5 4
    met = meetings(buckets, 2)[0]
    rows = {i: met[i].nonzero().flatten().tolist() for i in range(6)}
    assert rows[1] == rows[3] == [0, 1, 2, 3]  # the first chunk looks at the second
    assert rows[0] == rows[2] == [0, 1, 2, 3]
    assert rows[5] == rows[4] == [0, 2, 4, 5]
    inside = meetings(buckets, 2, within=True)[0]
    assert inside[0].nonzero().flatten().tolist() == [0, 2]
    assert inside[5].nonzero().flatten().tolist() == [0, 2, 5]
    assert inside[4].nonzero().flatten().tolist() == [4]


def test_recall_counts_the_heaviest_keys_that_are_met():
    # the last is long, and not what the others look at
    query = torch.tensor([[3.0, 1.0], [3.0, 0.0], [0.0, 2.0], [8.0, 80.0]])
    met = torch.zeros(2, 4, 4, dtype=torch.bool)
    met[0, 0, 1] = met[1, 2, 3] = met[1, 3, 2] = True
    assert recall(query, met, 1) == [0.25, 0.75]
    assert recall(query, torch.ones_like(met), 2) == [1.0, 1.0]
    # causal: the first query has no choice; 1 → 0, 2 → 0, 3 → 2
    assert recall(query, met, 1, causal=True) == pytest.approx([0, 1 / 3])


def test_a_bucket_over_more_than_two_chunks_loses_pairs():
    buckets = torch.zeros(1, 8, dtype=torch.int64)
    assert lost_pairs(buckets, meetings(buckets, 4)) == 0
    # chunks of 2: the first and third, first and fourth, second and fourth never meet
    lost = lost_pairs(buckets, meetings(buckets, 2))
    assert lost == pytest.approx(3 * 4 / (8 * 7 / 2))


def test_prototypes_repeat_each_other():
    query, value = prototypes(3, length=60, count=5, width=16)
    assert query.shape == value.shape == (60, 16)
    alike = F.normalize(query, dim=-1) @ F.normalize(query, dim=-1).T
    assert ((alike > 0.9).sum(dim=1) >= 2).all()
    assert (alike > 0.9).float().mean() < 0.4
    assert torch.equal(prototypes(3, 60, 5, 16)[0], query)
    assert not torch.equal(prototypes(4, 60, 5, 16)[0], query)


def test_a_duplicate_is_zero_word_zero_word():
    tokens, target = duplicates(4, torch.Generator().manual_seed(0))
    assert tokens.shape == target.shape == (4, LENGTH)
    assert torch.equal(tokens[:, 1:], target[:, :-1])
    half = DUPLICATE["word"] + 1
    whole = torch.cat([tokens, target[:, -1:]], dim=1)
    assert torch.equal(whole[:, :half], whole[:, half:])
    assert (whole[:, [0, half]] == 0).all()
    words = whole[:, 1:half]
    assert words.min() >= 1 and words.max() == DUPLICATE["symbols"] - 1


def test_only_the_second_word_counts():
    def model(tokens):
        return F.one_hot(tokens, DUPLICATE["symbols"]).float()

    batch = duplicates(2, torch.Generator().manual_seed(0))
    logits, target = second_word(model, batch)
    assert logits.shape == (2 * DUPLICATE["word"], DUPLICATE["symbols"])
    begin = DUPLICATE["word"] + 1
    assert torch.equal(target, batch[1][:, begin:].flatten())
    assert torch.equal(target.view(2, -1), batch[0][:, 1:begin])  # the first word again
    loss = duplicate_loss(model, batch)
    assert_near(loss, F.cross_entropy(logits, target))


def test_a_text_model_attends_by_lsh_in_every_block():
    model = LSHText(GPTConfig(7, 8, 2, layers=2, d_ff=8, max_len=9), chunk=2, rounds=3)
    attentions = [block.attention for block in model.blocks.layers]
    assert all(isinstance(a, LSHSelfAttention) and a.causal for a in attentions)
    assert [(a.chunk, a.rounds) for a in attentions] == [(2, 3)] * 2
    model.attend(4, 5)
    assert [(a.chunk, a.rounds) for a in attentions] == [(4, 5)] * 2
    tokens = torch.randint(0, 7, (2, 9))
    model.attend(9, 1)
    before = model(tokens)
    assert before.shape == (2, 9, 7)
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 7
    after = model(changed)
    assert_near(after[:, :5], before[:, :5])
    assert not torch.allclose(after[:, 5:], before[:, 5:])


def test_one_learns_to_duplicate_and_is_asked_in_every_way():
    model, seconds = train_duplicate("full", seed=0, steps=2)
    assert seconds > 0
    attention = model.blocks.layers[0].attention
    assert (attention.chunk, attention.rounds) == FULL == TRAINED["full"]
    other, _ = train_duplicate("full", seed=0, steps=2)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    asked = []
    attention.register_forward_pre_hook(
        lambda module, args: asked.append((module.chunk, module.rounds))
    )
    shares = duplicates_right(model, size=8)
    assert asked == list(ASKED.values())
    assert list(shares) == list(ASKED) == ["full", "LSH-8", "LSH-4", "LSH-2", "LSH-1"]
    assert (attention.chunk, attention.rounds) == FULL
    assert train_duplicate("LSH-1", 0, 1)[0].blocks.layers[0].attention.rounds == 1
    with pytest.raises(ValueError, match="kind must be one of"):
        train_duplicate("LSH-3", 0)


def test_right_answers_are_counted():
    model, _ = train_duplicate("full", seed=0, steps=1)
    begin = DUPLICATE["word"]

    def copy(tokens):  # the symbol after the same one of the first word
        ahead = tokens[:, 1 : begin + 1]
        ahead = torch.cat([torch.zeros_like(tokens[:, : begin + 1]), ahead], dim=1)
        wanted = ahead[:, : tokens.shape[1]]
        return F.one_hot(wanted, DUPLICATE["symbols"]).float()

    model.forward = copy
    assert duplicates_right(model, ["full"], 16) == {"full": 1.0}
