"""The pronouns of chapter 02: what *it* means is clear, and can be learned."""

import pytest
import torch

from annotated.chapters.ch02 import pronouns
from annotated.chapters.ch02.pronouns import (
    ANIMALS,
    IDS,
    IT,
    LOOKS,
    MOODS,
    PLACES,
    SENTENCE,
    PronounReader,
    encode,
    meant,
    sentences,
    train_reader,
)


def test_unseen_pairs_are_never_trained_on():
    seen, kept = sentences()
    pairs = [{choice[:2] for choice in part} for part in (seen, kept)]
    assert not pairs[0] & pairs[1] and len(pairs[1]) == 16
    assert ("cat", "street") in pairs[1]
    everything = len(ANIMALS) * len(PLACES) * len(MOODS + LOOKS)
    assert len(set(seen + kept)) == len(seen) + len(kept) == everything
    # so that an unseen pair is new, and its words are not
    assert {a for a, _ in pairs[0]} == set(ANIMALS)
    assert {p for _, p in pairs[0]} == set(PLACES)


@pytest.mark.parametrize(
    ("choice", "noun", "pronoun"),
    [
        (("cat", "street", "tired"), "cat", 0),
        (("cat", "street", "wide"), "street", 1),
        (("cow", "lake", "lazy"), "cow", 1),
        (("cow", "lake", "icy"), "lake", 0),
    ],
)
def test_the_reason_decides_what_it_means(choice, noun, pronoun):
    assert meant(choice) == noun
    tokens, pronouns_ = encode([choice])
    words = SENTENCE.format(*choice).split()
    assert tokens.tolist() == [[IDS[word] for word in words]]
    assert pronouns_.tolist() == [pronoun] and words[IT] == "it"


@pytest.mark.parametrize(
    ("roles", "matrices"), [("three", 6), ("value", 2), ("one", 0), ("equal", 2)]
)
def test_roles_have_their_matrices(roles, matrices):
    reader = PronounReader(roles)
    assert len(list(reader.looks.parameters())) == matrices
    logits, looks = reader(encode(sentences()[0][:5])[0])
    assert logits.shape == (5, 2) and looks.shape == (5, 2, 11)
    torch.testing.assert_close(looks.sum(dim=-1), torch.ones(5, 2))
    equal = torch.full_like(looks, 1 / 11)
    assert torch.allclose(looks, equal) == (roles == "equal")


def test_the_first_look_changes_the_second():
    reader = PronounReader()
    tokens, _ = encode([("cat", "street", "tired")])
    before = reader(tokens)[1]
    reader.looks[0][2].weight.data.add_(1.0)  # the value of the first look
    after = reader(tokens)[1]
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.allclose(before[:, 1], after[:, 1])


def test_a_reader_learns_and_repeats():
    one, other = (train_reader("three", seed=1, steps=120) for _ in range(2))
    tokens, answers = encode(sentences()[1])
    with torch.no_grad():
        logits = one(tokens)[0]
        assert torch.equal(logits, other(tokens)[0])
    assert (logits.argmax(dim=-1) == answers).float().mean() > 0.95


def test_unknown_roles_are_refused():
    with pytest.raises(ValueError, match="roles must be one of"):
        pronouns.PronounReader("two")
