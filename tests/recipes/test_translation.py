"""recipes/translation.py: pieces go in and come out whole, in their order."""

import pytest
import torch

from annotated.batches import Vocabulary
from annotated.data.bpe import split_words
from annotated.recipes import translation
from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    Cutter,
    TranslationLoss,
    exact_numbers,
    number_words_task,
    spelling_errors,
    spelling_task,
    train_translation,
    translate,
    translation_batches,
    translation_model,
    translation_task,
)
from annotated.search import Rereader

PAIRS = [
    ("A dog runs.", "Ein Hund rennt."),
    ("Two dogs run.", "Zwei Hunde rennen."),
    ("A man, a dog.", "Ein Mann, ein Hund."),
]


@pytest.fixture
def sentences(monkeypatch):
    def read(split, source, target):
        assert (split, source, target) == ("train", "en", "de")
        return PAIRS

    monkeypatch.setattr(translation, "multi30k", read)
    return translation_task(TRANSLATION_RECIPES["multi30k"]._replace(merges=30))


def small(recipe: str, **changes):
    r = TRANSLATION_RECIPES[recipe]
    sizes = {"d_model": 32, "heads": 2, "layers": 1, "d_ff": 32, "max_len": 40}
    return r._replace(model=r.model | sizes | {"dropout": 0.0}, **changes)


def test_sentences_are_cut_and_put_together_again(sentences):
    cutter = sentences.cutter
    assert cutter.source is cutter.target
    for (source, target), pieces in zip(PAIRS, sentences.pairs, strict=True):
        assert cutter.cut(source) == pieces[0] and cutter.cut(target) == pieces[1]
        assert cutter.join(pieces[1]) == target
        assert len(pieces[0]) < len(source), "nothing was merged"
    assert cutter.cut("") == [] and cutter.join([]) == ""
    assert set("".join(split_words("A dog.,"))) <= set(cutter.source.symbols)


def test_unknown_letters_are_left_out_and_named(sentences):
    cutter = sentences.cutter
    assert cutter.unknown("A dog? ñ\tdog") == "?ñ"
    assert cutter.cut("A d?og?") == cutter.cut("A dog")
    assert cutter.cut("??") == []
    letters = Cutter(Vocabulary("cat'"), Vocabulary(["K", "AE", "T"]), [])
    assert (
        letters.cut("Cat's") == ["c", "a", "t", "'"] and letters.unknown("Cat's") == "s"
    )
    assert letters.unknown("a cat") == " "
    assert letters.join(["K", "AE", "T"]) == "K AE T"


def test_words_have_each_pronunciation_in_a_pair(monkeypatch):
    given = [("read", ("R", "EH", "D")), ("read", ("R", "IY", "D"))]
    monkeypatch.setattr(translation, "spelling_pairs", lambda split, every: given)
    task = spelling_task()
    assert task.pairs == given and task.cutter.merges == []
    assert task.cutter.source.symbols[3:] == tuple("ader")
    assert task.cutter.target.symbols[3:] == ("D", "EH", "IY", "R")


def test_number_words_are_cut_at_spaces_and_hyphens():
    task = number_words_task()
    assert (["eighty", "-one"], ["quatre", "-vingt", "-un"]) in task.pairs
    assert {"thousand", "-one", "zero"} <= {*task.cutter.source.symbols}
    assert {"mille", "-vingts", "zéro", "cents"} <= {*task.cutter.target.symbols}
    assert "mille" not in task.cutter.source.symbols
    cutter = task.cutter
    assert cutter.cut("Three million forty-two") == ["three", "forty", "-two"]
    assert cutter.unknown("Three million forty-two 7") == "million 7"
    assert cutter.join(["quatre", "-vingt", "-un"]) == "quatre-vingt-un"
    assert cutter.cut("") == [] and cutter.join([]) == ""


def test_training_never_shows_a_number_of_another_split(monkeypatch):
    asked = []
    numbers_of = translation.numbers_of
    monkeypatch.setattr(
        translation,
        "numbers_of",
        lambda *given: asked.append(given) or numbers_of(*given),
    )
    assert len(number_words_task().pairs) == 22_000
    assert asked == [("train", 22_000)]


def test_a_number_is_exact_if_all_its_words_are(monkeypatch):
    given = []

    def said(model, cutter, texts, *options):
        given.append((texts, options))
        return ["deux cents", "deux cents un", "mille"]

    monkeypatch.setattr(translation, "translate", said)
    assert exact_numbers(None, None, [200, 201, 1000], Rereader) == [True, False, True]
    texts, (beam, _, reader) = given[0]
    assert texts == ["two hundred", "two hundred and one", "one thousand"]
    assert beam == 1 and reader is Rereader


def test_batches_follow_the_seed_and_hold_every_pair(sentences):
    def read(seed, steps=6):
        return [
            batch.source.tolist()
            for batch in translation_batches(sentences, 12, steps, seed)
        ]

    assert read(0) == read(0) != read(1)
    assert len(read(0)) == 6
    first, second = read(0, 30)[:15], read(0, 30)[15:]
    assert first != second, "shuffled anew"


def counted():
    """Return a reader, and a list of the sizes it has read."""
    read = []

    class Counted(Rereader):
        def read(self, tokens):
            read.append(len(tokens))
            return super().read(tokens)

    return Counted, read


def test_it_learns_a_few_sentences_and_keeps_their_order(sentences):
    recipe = small("multi30k", tokens=60, steps=120, rate=1e-2, smoothing=0.1)
    cutter = sentences.cutter
    model = translation_model(recipe, cutter, seed=1)
    assert model.output.weight is model.source_embedding.weight
    history = train_translation(model, sentences, recipe, seed=0)
    assert len(history) == 120 and history[-1]["loss"] < 0.2 < history[0]["loss"]
    english, german = zip(*PAIRS, strict=True)
    texts = [english[2], "", english[0], english[1], "  "]
    wanted = [german[2], "", german[0], german[1], ""]
    assert translate(model, cutter, texts) == wanted
    assert translate(model, cutter, texts, beam=3, size=2) == wanted
    for beam in (1, 3):
        reader, read = counted()
        assert translate(model, cutter, texts, beam, reader=reader) == wanted
        assert read, "another reader did it"
    with pytest.raises(ValueError, match="text 2 has 51 pieces, and at most 40 fit"):
        translate(model, cutter, ["A", "." * 50])


def test_the_loss_is_smoothed_as_the_recipe_says(sentences):
    cutter = sentences.cutter
    model = translation_model(small("multi30k"), cutter)
    (batch,) = translation_batches(sentences, 100, 1)
    losses = [
        TranslationLoss(small("multi30k", smoothing=epsilon), cutter)(model, batch)
        for epsilon in (0.0, 0.3)
    ]
    logits = model(batch.source, batch.target).flatten(0, 1)
    plain = torch.nn.functional.cross_entropy(
        logits, batch.labels.flatten(), ignore_index=Vocabulary.pad
    )
    torch.testing.assert_close(losses[0], plain)
    assert losses[1] < losses[0], "the entropy of the smoothed labels is taken off"
    real = (batch.labels != Vocabulary.pad).sum()
    loss = TranslationLoss(small("multi30k"), cutter)
    assert loss.batch_weight(batch) == real < batch.labels.numel()


def test_errors_are_counted_against_all_pronunciations(monkeypatch):
    known = {"read": (("R", "EH", "D"), ("R", "IY", "D")), "cat": (("K", "AE", "T"),)}
    said = {"read": "R IY D", "cat": "K AE"}
    monkeypatch.setattr(translation, "spelling_words", lambda split: known)
    monkeypatch.setattr(
        translation,
        "translate",
        lambda model, cutter, words, *_: [said[word] for word in words],
    )
    assert spelling_errors(None, None) == {"phonemes": 1 / 6, "words": 0.5}


def test_an_unknown_task_is_named():
    recipe = TRANSLATION_RECIPES["spelling"]._replace(task="cooking")
    with pytest.raises(ValueError, match="task must be one of 'spelling', 'multi30k'"):
        translation_task(recipe)
