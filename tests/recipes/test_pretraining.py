"""recipes/pretraining.py: texts without labels, guesses, and few labels."""

from math import log

import pytest
import torch
from torch.nn import functional as F

from annotated.bert import SentencePair
from annotated.classifier import pool
from annotated.data.functions import Function, functions_of, module_split
from annotated.recipes import pretraining
from annotated.recipes.classification import Labelled, Recipe, measure, reader
from annotated.recipes.pretraining import (
    PRETRAINING_RECIPES,
    BertClassifier,
    FrozenLinear,
    PretrainingRecipe,
    Tokens,
    Unlabelled,
    code_texts,
    common_words,
    cpu_seconds,
    cut_sentence,
    cut_texts,
    docstrings,
    few_labels,
    fine_tune,
    guess,
    make_bert,
    masked_batches,
    masked_loss,
    pair_accuracy,
    pair_batches,
    pair_loss,
    pair_rows,
    pretrain,
    prose,
    prose_sentences,
    prose_texts,
    questions,
    rarity,
    sentences_of,
    shuffled,
    tile_positions,
    topic_accuracy,
    unigram_loss,
)
from annotated.training import evaluate

SMALL = PretrainingRecipe(
    steps=60, rate=1e-2, size=16, short=8, d_model=16, d_ff=32, layers=1, max_len=16
)


def small_texts(count: int = 120) -> Unlabelled:
    """Texts in which "a" stands beside "b", and "c" beside "d"."""
    draw = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 2, (count, 6), generator=draw).tolist()
    texts = [tuple("".join("cd" if i else "ab" for i in row)) for row in rows]
    return Unlabelled(texts[20:], texts[:20], Tokens(texts))


def small_task() -> Labelled:
    """Texts with one label: whether there are more "a" than "c"."""
    texts = small_texts()
    rows = {"train": texts.train, "validation": texts.validation}
    rows["test"] = texts.validation
    answers = {
        s: torch.tensor([[float(t.count("a") > 3)] for t in several])
        for s, several in rows.items()
    }
    return Labelled(("more",), rows, answers, texts.words)


# ---- texts without labels ------------------------------------------------------


def test_tokens_begin_with_berts_special_ones():
    words = Tokens([("b", "a", "b"), ("c", "b", "a")], least=2)
    assert words.symbols == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b")
    assert [words.symbols[i] for i in (words.start, words.end, words.mask)] == [
        "[CLS]", "[SEP]", "[MASK]",
    ]  # fmt: skip
    assert words.row(("a", "c", "[MASK]", "b")) == [5, 1, 1, 6]
    assert words.ids([("b",), ("a", "c")]).tolist() == [[6, 0], [5, 1]]
    assert [*words.special] == [0, 1, 2, 3, 4] and len(words) == 7


def names(split: str) -> list[str]:
    """Names of packages that are in a split."""
    return [n for n in map("package{}".format, range(60)) if module_split(n) == split]


SOURCES = {
    split: [
        f'"""All about {split}. It has two sentences."""\n'
        f"def {split}_{i}(x, y):\n    for z in x:\n        y.append(z, {i % 2})\n"
        f"    return {split}_y(x, y)"
        for i in range(6)
    ]
    for split in ("train", "validation", "test")
}
TWIN = "def other(a, b):\n    while a:\n        b.extend(a, a, a)\n    return b(a, a)"


@pytest.fixture
def library(monkeypatch):
    """A library of a few modules; training has the twin of a function for testing."""
    modules = [
        (names(split)[i], source)
        for split, several in SOURCES.items()
        for i, source in enumerate(several)
    ]
    modules.append((names("train")[7], TWIN.replace("other", "mine")))
    held = [*functions_of(TWIN)]
    monkeypatch.setattr(pretraining, "_modules", lambda: iter(modules))
    every = [f for module, source in modules for f in functions_of(source, module)]
    monkeypatch.setattr(pretraining, "every_function", lambda: every)
    monkeypatch.setattr(
        pretraining, "library_functions", lambda split: tuple[Function](held)
    )
    monkeypatch.setattr(pretraining, "topics", {"for": "How to loop. It is easy."})
    cached = (code_texts, prose, prose_sentences, prose_texts, pretraining.prose_pieces)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def test_code_is_that_of_training_packages_without_the_twins_of_a_test(library):
    texts = code_texts()
    assert {text[1] for text in texts.train} == {f"train_{i}" for i in range(6)}
    assert {t[1] for t in texts.validation} == {f"validation_{i}" for i in range(6)}
    assert all(text[0] == "def" for text in texts.train)
    assert "append" not in texts.words.symbols, "it isn't there ten times"
    assert "x" in texts.words.symbols


def test_parts_of_texts_are_in_order_and_short_ones_are_left_out():
    assert cut_texts(["abcdefghij", "kl"], 4, least=2) == ["abcd", "efgh", "ij", "kl"]
    assert cut_texts(["abcdefghij"], 4, least=3) == ["abcd", "efgh"]
    assert cut_texts(["abcdefghijklmnopq"], 9) == ["abcdefghi", "jklmnopq"]


def test_docstrings_of_modules_classes_and_functions():
    source = (
        '"""M."""\nclass A:\n    """C."""\n    def f(self):\n        """F."""\n'
        "    async def g(self): 'G'\ndef h(): return 'no'\n"
    )
    assert sorted(docstrings(source)) == ["C.", "F.", "G", "M."]


def test_sentences_end_at_signs_and_empty_lines():
    text = "One two.  Three\nfour? Five: six\n\nseven (e.g.no) eight\n"
    assert sentences_of(text) == (
        "One two.", "Three four?", "Five:", "six", "seven (e.g.no) eight",
    )  # fmt: skip
    assert sentences_of(" \n\n ") == ()


def test_prose_is_split_by_packages_and_help_is_for_training(library):
    assert prose("train") == (
        ("How to loop.", "It is easy."),
        ("All about train.", "It has two sentences."),
    )
    assert prose("test") == (("All about test.", "It has two sentences."),)
    with pytest.raises(ValueError, match="split must be one of 'train', "):
        prose("all")


def test_prose_in_pieces(library):
    texts = prose_texts(longest=8)
    letters = [piece for text in texts.train for piece in text]
    assert "".join(letters).replace("##", "").startswith("howtoloop")
    assert all(len(text) == 8 for text in texts.train)
    assert "[UNK]" not in letters
    assert cut_sentence("All, so", frozenset(["a", "all", "s", "##o"])) == (
        "all", "[UNK]", "s", "##o",
    )  # fmt: skip
    documents = prose_sentences("train", least=4, most=9)
    assert [len(document) for document in documents] == [2, 2]
    assert {len(text) for document in documents for text in document} <= {*range(4, 10)}
    assert prose_sentences("train", least=11, most=29) == [
        document for document in prose_sentences("train", 4, 29)
        if all(len(text) >= 11 for text in document)
    ]  # fmt: skip


def test_shuffled_texts_have_the_same_tokens():
    texts = small_texts()
    other = shuffled(texts, seed=1)
    assert other.validation == texts.validation and other.train != texts.train
    assert [sorted(t) for t in other.train] == [sorted(t) for t in texts.train]
    assert other == shuffled(texts, seed=1) != shuffled(texts, seed=2)


# ---- learning to guess ---------------------------------------------------------


def test_a_narrow_bert_begins_with_larger_matrices():
    words = Tokens([tuple(map(str, range(400)))])
    recipe = PRETRAINING_RECIPES["code"]
    model = make_bert(words, recipe, seed=1)
    wanted = 0.02 * (768 / recipe.d_model) ** 0.5
    for name, parameter in model.named_parameters():
        if parameter.numel() > 2000:
            assert parameter.std().item() == pytest.approx(wanted, rel=0.05), name
    again, other = make_bert(words, recipe, 1), make_bert(words, recipe, 2)
    assert torch.equal(model.pooler.weight, again.pooler.weight)
    assert not torch.equal(model.pooler.weight, other.pooler.weight)
    sizes = model.config
    assert (sizes.heads, sizes.layers, sizes.max_len) == (2, 2, recipe.max_len)


def test_texts_are_short_or_whole_and_tokens_are_hidden_anew():
    texts = small_texts()
    recipe = SMALL._replace(steps=20, long_steps=3, masked=0.5)
    short = list(masked_batches(texts, recipe, seed=1))
    long = list(masked_batches(texts, recipe, seed=1, whole=True))
    assert {tokens.shape[1] for _, tokens, _ in short} == {8} and len(short) == 20
    assert {tuple(tokens.shape) for _, tokens, _ in long} == {(4, 12)}
    assert len(long) == 3
    for read, tokens, asked in short + long:
        assert (tokens[asked] > 4).all() and torch.equal(read[~asked], tokens[~asked])
    rate = sum(asked.double().mean() for _, _, asked in short) / 20
    assert rate == pytest.approx(0.5, abs=0.04)
    asked = {tuple(map(tuple, asked.tolist())) for _, _, asked in short}
    assert len(asked) == 20
    again = list(masked_batches(texts, recipe, seed=1))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(short, again, strict=True))


def test_later_positions_repeat_the_first():
    model = make_bert(small_texts().words, SMALL)
    first = model.positions.table[:6].clone()
    tile_positions(model, 6)
    table = model.positions.table
    assert torch.equal(table, torch.cat([first, first, first[:4]]))


def test_short_texts_come_first_then_whole_ones():
    texts = small_texts()
    recipe = SMALL._replace(steps=4, long_steps=3)
    model, lengths, seen = make_bert(texts.words, SMALL), [], []

    def look(module, args):
        lengths.append(args[0].shape[1])
        seen.append(module.positions.table.detach().clone())

    model.register_forward_pre_hook(look)
    history = pretrain(model, texts, recipe)
    assert lengths == [8] * 4 + [12] * 3
    assert [record["step"] for record in history] == [1, 2, 3, 4, 1, 2, 3]
    assert torch.equal(seen[4][8:], seen[4][:8])
    assert not torch.equal(seen[3][8:], seen[3][:8])
    both = history[3]["cpu_seconds"] + history[6]["cpu_seconds"]
    assert cpu_seconds(history) == pytest.approx(both)
    assert cpu_seconds(history[:4]) == history[3]["cpu_seconds"]


def test_the_loss_is_that_of_hidden_tokens_alone():
    texts = small_texts()
    model = make_bert(texts.words, SMALL)
    read, tokens, asked = next(masked_batches(texts, SMALL))
    logits = model.guess_tokens(model(read)).transpose(1, 2)
    labels = tokens.where(asked, -100)  # as libraries have it
    torch.testing.assert_close(
        masked_loss(model, (read, tokens, asked)), F.cross_entropy(logits, labels)
    )


def test_of_nothing_the_loss_is_0_and_teaches_nothing():
    texts = small_texts()
    model = make_bert(texts.words, SMALL)
    read, tokens, asked = next(masked_batches(texts, SMALL))
    none, segments = torch.zeros_like(asked), torch.zeros_like(tokens)
    loss = masked_loss(model, (read, tokens, none))
    loss.backward()
    assert loss == 0 and all(not p.grad.any() for p in model.encoder.parameters())
    labels = torch.zeros(len(tokens), dtype=torch.long)
    pairs = pair_loss(model, (read, tokens, none, segments, labels))
    states = model(read, segments)
    assert pairs == F.cross_entropy(model.guess_next(states), labels)


def test_the_loss_counts_the_hidden_tokens():
    texts = small_texts()
    model = make_bert(texts.words, SMALL).eval()
    read, tokens, asked = next(masked_batches(texts, SMALL))
    asked[0], asked[1:] = True, False
    asked[1, :2] = True
    parts = [tuple(one[i] for one in (read, tokens, asked)) for i in ([0], [1])]
    whole = masked_loss(model, (read, tokens, asked)).item()
    assert evaluate(model, masked_loss, parts) == pytest.approx(whole, rel=1e-5)


def test_it_learns_what_stands_beside_what():
    draw = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 4, (120,), generator=draw).tolist()
    lines = [tuple("abcd"[i] * 12) for i in rows]
    texts = Unlabelled(lines[20:], lines[:20], Tokens(lines))
    model = make_bert(texts.words, SMALL)
    asked = questions(texts.validation, texts.words, rate=0.2)
    line = unigram_loss(texts, asked)
    assert line == pytest.approx(log(4), abs=0.1)
    before = guess(model, asked)
    history = pretrain(model, texts, SMALL)
    after = guess(model, asked)
    assert before["loss"] > line - 0.1 and after["loss"] < 0.2 * line
    assert after["accuracy"] > 0.9 > before["accuracy"] and len(history) == 60


def test_questions_are_the_same_for_all_and_guesses_are_counted():
    texts = small_texts()
    asked = questions(texts.validation, texts.words, size=8)
    again = questions(texts.validation, texts.words, size=8)
    assert len(asked) == 3
    for one, other in zip(asked, again, strict=True):
        assert all(map(torch.equal, one, other))
        assert (one[0][one[2]] == texts.words.mask).all()
    shown = questions(texts.validation, texts.words, shares=(0, 0, 1))
    assert torch.equal(shown[0][0], shown[0][1])
    model = make_bert(texts.words, SMALL).eval()
    with torch.no_grad():
        parts = [model.guess_tokens(model(r)[a]) for r, _, a in asked]
    logits, answers = torch.cat(parts), torch.cat([t[a] for _, t, a in asked])
    assert guess(model, asked) == {
        "loss": pytest.approx(F.cross_entropy(logits, answers).item(), abs=1e-5),
        "accuracy": pytest.approx((logits.argmax(-1) == answers).float().mean().item()),
    }


def test_the_line_is_the_best_guess_without_context():
    words = Tokens([("a", "b")])
    texts = Unlabelled([("a", "a", "a", "b", "?")], [], words)
    a, b = words.row(("a", "b"))
    tokens = torch.tensor([[a, b, a]])
    asked = torch.tensor([[True, True, False]])
    # a 3 + 1, b 1 + 1 of 6; the unknown one isn't asked for
    wanted = -(log(4 / 6) + log(2 / 6)) / 2
    assert unigram_loss(texts, [(tokens, tokens, asked)]) == pytest.approx(wanted)


# ---- few labels ----------------------------------------------------------------


def test_few_labels_are_drawn_by_the_seed():
    task = small_task()
    few, other = few_labels(task, 9, seed=1), few_labels(task, 9, seed=2)
    assert len(few.texts["train"]) == 9 == len(few.answers["train"])
    assert few.texts["train"] != other.texts["train"]
    for text, (answer,) in zip(few.texts["train"], few.answers["train"], strict=True):
        assert answer == (text.count("a") > 3)
    assert few.texts["test"] == task.texts["test"] and len(task.texts["train"]) == 100
    assert few_labels(task, None) is task
    with pytest.raises(ValueError, match="size must be an integer from 1 to 100"):
        few_labels(task, 101)


def test_a_classifier_is_a_bert_and_the_largest_of_its_states():
    texts = small_texts()
    model = BertClassifier(make_bert(texts.words, SMALL), 3).eval()
    tokens = texts.words.ids([("a", "b", "c"), ("d",)])
    real = torch.tensor([[True, True, True], [True, False, False]])
    vectors = pool(model.bert(tokens), real, "max")
    torch.testing.assert_close(model.vectors(tokens), vectors)
    torch.testing.assert_close(model(tokens), model.output(vectors))


def test_fine_tuning_begins_with_a_copy():
    task = small_task()
    bert = make_bert(task.words, SMALL)
    before = {name: x.clone() for name, x in bert.state_dict().items()}
    recipe = Recipe(steps=80, rate=1e-2, size=16, max_len=16)
    model, history = fine_tune(bert, task, recipe, seed=1)
    for name, value in bert.state_dict().items():
        assert torch.equal(value, before[name]), name
    first, changed = bert.encoder.layers[0], model.bert.encoder.layers[0]
    assert not torch.equal(
        changed.feed_forward.inner.weight, first.feed_forward.inner.weight
    )
    assert len(history) == 80
    assert measure(reader(model, task), task)["accuracy"] > 0.8
    again, _ = fine_tune(bert, task, recipe, seed=1)
    assert torch.equal(model.output.weight, again.output.weight)


def test_a_frozen_bert_is_read_by_a_regression():
    task = small_task()
    bert = make_bert(task.words, SMALL)
    pretrain(bert, small_texts(), SMALL)
    before = {name: x.clone() for name, x in bert.state_dict().items()}
    model = FrozenLinear(bert, task)
    assert model(task.texts["test"]).shape == (20, 1)
    assert measure(model, task)["accuracy"] > 0.7
    assert all(torch.equal(x, before[n]) for n, x in bert.state_dict().items())
    none = task._replace(answers=task.answers | {"train": torch.zeros(100, 1)})
    with pytest.raises(ValueError, match="answers must hold both 0 and 1"):
        FrozenLinear(bert, none)


# ---- two sentences -------------------------------------------------------------


def small_pairs(count: int = 60) -> list[SentencePair]:
    """Sentences of one letter follow, of two don't."""
    draw = torch.Generator().manual_seed(1)
    rows = torch.randint(0, 2, (count, 2), generator=draw).tolist()
    return [
        SentencePair(("ab"[x],) * 3, ("ab"[y],) * 4, int(x != y)) for x, y in rows
    ]  # fmt: skip


def test_pairs_are_rows_with_segments():
    words = Tokens([("a", "b")])
    pairs = [SentencePair(("a", "?"), ("b",), 1), SentencePair(("b",), ("a",), 0)]
    tokens, segments, labels = pair_rows(pairs, words)
    assert tokens.tolist() == [[2, 5, 1, 3, 6, 3], [2, 6, 3, 5, 3, 0]]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    assert labels.tolist() == [1, 0]


def test_pairs_come_all_before_any_comes_again():
    pairs, words = small_pairs(), Tokens([("a", "b")])
    pairs = [p._replace(label=i) for i, p in enumerate(pairs)]
    recipe = SMALL._replace(steps=8, size=15)
    seen = [labels for *_, labels in pair_batches(pairs, words, recipe)]
    assert sorted(torch.cat(seen[:4]).tolist()) == [*range(60)]
    assert sorted(torch.cat(seen[4:]).tolist()) == [*range(60)]
    assert torch.cat(seen[:4]).tolist() != torch.cat(seen[4:]).tolist()
    for read, tokens, asked, segments, _ in pair_batches(pairs, words, recipe):
        assert torch.equal(read[~asked], tokens[~asked]) and asked.any()
        assert (tokens[asked] > 4).all() and segments.max() == 1


def test_both_losses_are_added():
    pairs, words = small_pairs(), Tokens([("a", "b")])
    model = make_bert(words, SMALL)
    batch = next(pair_batches(pairs, words, SMALL))
    read, tokens, asked, segments, labels = batch
    states = model(read, segments)
    hidden = F.cross_entropy(model.guess_tokens(states)[asked], tokens[asked])
    follows = F.cross_entropy(model.guess_next(states), labels)
    torch.testing.assert_close(pair_loss(model, batch), hidden + follows)


def test_pairs_that_are_right_are_counted():
    pairs, words = small_pairs(90), Tokens([("a", "b")])
    model = make_bert(words, SMALL)
    with torch.no_grad():
        model.follows.weight.zero_()
        model.follows.bias.copy_(torch.tensor([0.0, 1.0]))
    share = sum(pair.label for pair in pairs) / 90
    assert pair_accuracy(model, pairs, words) == pytest.approx(share)


def test_words_in_common_are_a_cosine():
    weights = {"a": 1.0, "b": 2.0, "c": 2.0}
    pair = SentencePair(("a", "b", "b"), ("a", "c", "?"), 0)
    assert common_words(pair, weights) == pytest.approx(1 / 5)
    turned = SentencePair(pair.second, pair.first, 1)
    assert common_words(turned, weights) == common_words(pair, weights)
    assert common_words(SentencePair(("?",), ("a",), 0), weights) == 0.0


def test_what_stands_in_every_document_is_not_rare():
    documents = [[("a", "b"), ("a",)], [("a", "c")], [("a", "c")]]
    assert rarity(documents) == {
        "a": 0.0, "b": pytest.approx(log(3)), "c": pytest.approx(log(1.5)),
    }  # fmt: skip


def test_topics_tell_sentences_of_one_letter():
    pairs = small_pairs()
    right, limit = topic_accuracy(pairs[:30], pairs[30:], {"a": 1.0, "b": 1.0})
    assert right == 1.0 and 0 < limit <= 0.5
    turned = [pair._replace(label=1 - pair.label) for pair in pairs]
    assert topic_accuracy(turned[:30], turned[30:], {"a": 1.0, "b": 1.0})[0] < 0.8
