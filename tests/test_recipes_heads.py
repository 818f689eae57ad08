"""annotated/recipes_heads.py: what was recorded is what chapter 03 trains."""

import pytest
import torch

from annotated import recipes_heads
from annotated.attention import MultiHeadAttention
from annotated.recipes_heads import (
    ALPHABET,
    BLANK,
    SIDE,
    VERB,
    WORDS,
    Giving,
    GroupedQueryAttention,
    MissingLetter,
    giving_sentences,
    hide_letter,
    letter_codes,
    letter_windows,
    library_prose,
    right_without_each,
    with_network,
)


def test_a_sentence_gives_three_different_nouns_in_their_positions():
    tokens, nouns = giving_sentences(torch.Generator().manual_seed(0), 200)
    assert torch.equal(tokens[:, [0, 2, 4]], nouns)
    assert all(len(set(row)) == 3 for row in nouns.tolist())
    assert [WORDS[i] for i in tokens[0, [1, 3]]] == ["gave", "to"]
    assert nouns.unique().numel() == 48


def test_only_the_verb_answers_and_a_network_keeps_its_words_apart():
    torch.manual_seed(0)
    model = with_network(Giving(3))
    x = torch.randn(2, 5, 48)
    changed = x.clone()
    changed[:, 3] += 1.0
    moved = (model.before(changed) - model.before(x)).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.tolist() == [False, False, False, True, False]
    assert model(torch.arange(10).view(2, 5)).shape == (2, 3, 48)
    assert VERB == 1


def test_the_prose_is_english_in_the_alphabet_of_the_model():
    prose = library_prose()
    assert len(prose) > 300_000 and set(prose) <= set(ALPHABET)
    assert " the " in prose and "  " not in prose


def test_training_and_test_windows_share_no_letter():
    train, test = letter_windows()
    whole = letter_codes(library_prose())
    assert torch.equal(train[5], whole[5 : 5 + 2 * SIDE + 1])
    begins = len(train) + 2 * SIDE
    assert torch.equal(test[0], whole[begins : begins + 2 * SIDE + 1])


def test_the_letter_is_hidden_and_returned():
    windows = letter_codes(" the roses of the")[None]
    hidden, letters = hide_letter(windows)
    assert hidden[0, SIDE] == BLANK and ALPHABET[letters] == "e"
    assert (hidden != windows).sum() == 1


def test_taking_heads_away_one_by_one_leaves_the_model_as_it_was(monkeypatch):
    torch.manual_seed(0)
    model = MissingLetter(MultiHeadAttention(64, 4))
    before = model.attention.output_map.weight.clone()
    lost = []

    def look(model):
        columns = model.attention.output_map.weight.view(64, 4, 16)
        lost.append((columns == 0).all(dim=2).all(dim=0).tolist())
        return 0.0

    monkeypatch.setattr(recipes_heads, "letters_right", look)
    right_without_each(model)
    assert lost == torch.eye(4, dtype=torch.bool).tolist()
    assert torch.equal(model.attention.output_map.weight, before)


@pytest.mark.parametrize("shared", [1, 2, 6])
def test_shared_keys_equal_plain_heads_whose_keys_are_repeated(shared):
    torch.manual_seed(0)
    grouped, plain = GroupedQueryAttention(12, 6, shared), MultiHeadAttention(12, 6)
    with torch.no_grad():
        for name in ("query_map", "output_map"):
            getattr(plain, name).load_state_dict(getattr(grouped, name).state_dict())
        for name in ("key_map", "value_map"):
            few, many = getattr(grouped, name), getattr(plain, name)
            for r in range(6):
                g = r // (6 // shared)
                many.weight[2 * r : 2 * r + 2] = few.weight[2 * g : 2 * g + 2]
                many.bias[2 * r : 2 * r + 2] = few.bias[2 * g : 2 * g + 2]
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(grouped(x), plain(x))
