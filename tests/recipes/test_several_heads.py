"""annotated/recipes/several_heads.py: what chapter 03 trains."""

import torch

from annotated.attention import MultiHeadAttention
from annotated.recipes import several_heads as recipe
from annotated.recipes.several_heads import (
    ALPHABET,
    BLANK,
    SIDE,
    VERB,
    WORDS,
    Giving,
    MissingLetter,
    answers_right,
    giving_sentences,
    hide_letter,
    letter_codes,
    letter_loss,
    letter_windows,
    letters_right,
    library_prose,
    right_without_each,
    train_giving,
    train_letters,
    with_network,
)


def test_a_sentence_gives_three_different_nouns_in_their_positions():
    tokens, nouns = giving_sentences(torch.Generator().manual_seed(0), 200)
    assert torch.equal(tokens[:, [0, 2, 4]], nouns)
    assert all(len(set(row)) == 3 for row in nouns.tolist())
    assert [WORDS[i] for i in tokens[0, [1, 3]]] == ["gave", "to"]
    assert nouns.unique().numel() == 48


def test_only_the_verb_answers_and_a_network_keeps_its_words_apart():
    model = with_network(Giving(3))
    x = torch.randn(2, 5, 48)
    changed = x.clone()
    changed[:, 3] += 1.0
    moved = (model.before(changed) - model.before(x)).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.tolist() == [False, False, False, True, False]
    for parameter in model.before.second.parameters():
        parameter.data.zero_()
    assert torch.equal(model.before(x), x)  # the word goes on, whatever is added
    assert VERB == 1


class Copies(torch.nn.Module):
    """Answers with what it sees, if it is an answer: nouns, or the middle letter."""

    def __init__(self):
        super().__init__()
        self.positions = torch.nn.Parameter(torch.zeros(1))

    def forward(self, tokens):
        if tokens.shape[1] == 5:  # who for every question but the last
            nouns = tokens[:, [0, 0, 4]]
            return torch.nn.functional.one_hot(nouns, 48).float()
        middle = tokens[:, SIDE] % BLANK
        return torch.nn.functional.one_hot(middle, len(ALPHABET)).float()


def test_answers_are_counted_by_question_and_letters_without_seeing_them(monkeypatch):
    assert answers_right(Copies(), count=50) == [1.0, 0.0, 1.0]
    train, test = letter_codes("the roses of them")[None], letter_codes(" " * 17)[None]
    monkeypatch.setattr(recipe, "letter_windows", lambda: (train, test))
    assert letters_right(Copies(), count=4) == 1.0  # a blank is taken for a space
    monkeypatch.setattr(recipe, "letter_windows", lambda: (test, train))
    assert letters_right(Copies(), count=4) == 0.0
    seen = letter_loss(Copies(), torch.cat([train, test]))
    wanted = torch.nn.functional.cross_entropy(
        torch.nn.functional.one_hot(torch.tensor([0, 0]), len(ALPHABET)).float(),
        torch.tensor([ALPHABET.index("e"), 0]),
    )
    torch.testing.assert_close(seen, wanted)


def test_training_follows_its_seed_and_its_labels(monkeypatch):
    def trained(seed, steps):
        torch.manual_seed(0)
        return train_giving(Giving(3), seed, steps=steps)

    one, other = trained(0, 1), trained(1, 1)
    assert not torch.equal(one.answers.weight, other.answers.weight)
    assert sum(answers_right(trained(0, 150))) > 1.5  # by chance 0.06

    train, test = torch.full((9, 17), 4), torch.full((9, 17), 5)  # "a", and "b"
    monkeypatch.setattr(recipe, "letter_windows", lambda: (train, test))
    torch.manual_seed(0)
    model = MissingLetter(MultiHeadAttention(64, 4))
    history = train_letters(model, seed=0, steps=20)
    assert history[-1]["loss"] < 0.5
    assert letter_loss(model, train) < letter_loss(model, test)


def test_the_prose_is_english_in_the_alphabet_of_the_model():
    prose = library_prose()
    assert len(prose) > 300_000 and set(prose) <= set(ALPHABET)
    # counted, for pytest would compare the whole texts
    assert prose.count(" the ") > 1000 and prose.count("  ") == 0


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
    model = MissingLetter(MultiHeadAttention(64, 4))
    before = model.attention.output_map.weight.clone()
    lost = []

    def look(model):
        columns = model.attention.output_map.weight.view(64, 4, 16)
        lost.append((columns == 0).all(dim=2).all(dim=0).tolist())
        return 0.0

    monkeypatch.setattr(recipe, "letters_right", look)
    right_without_each(model)
    assert lost == torch.eye(4, dtype=torch.bool).tolist()
    assert torch.equal(model.attention.output_map.weight, before)
