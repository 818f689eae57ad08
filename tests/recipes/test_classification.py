"""recipes/classification.py: labels as they're written, scores as scikit-learn's."""

import pytest
import torch

from annotated.data.functions import LABELS
from annotated.recipes import classification
from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    GOOD,
    KINDS,
    BagOfEmbeddings,
    Labelled,
    TfidfLinear,
    Words,
    answers_of,
    best_temperature,
    best_thresholds,
    both_ways,
    classify,
    cross_entropy,
    f1_scores,
    films_task,
    flips,
    functions_task,
    label_loss,
    labelled_batches,
    make_classifier,
    measure,
    order_task,
    reader,
    reliability,
    train_classifier,
    words_and_pairs,
    words_of,
)

ORDER = CLASSIFICATION_RECIPES["order"]


def small_task(disguise=False) -> Labelled:
    """Texts with two labels: the first token is "a"; there is a "b"."""
    draw = torch.Generator().manual_seed(0)
    texts = {}
    for split, n in (("train", 50), ("validation", 20), ("test", 20)):
        sizes = torch.randint(2, 9, (n,), generator=draw).tolist()
        rows = (torch.randint(0, 4, (k,), generator=draw).tolist() for k in sizes)
        texts[split] = [tuple("abcd"[i] for i in row) for row in rows]
    answers = {
        s: torch.tensor([[float(t[0] == "a"), float("b" in t)] for t in several])
        for s, several in texts.items()
    }
    return Labelled(("begins", "has"), texts, answers, Words(texts["train"]), disguise)


# ---- texts with labels ---------------------------------------------------------


def test_words_have_ids_and_strangers_share_one():
    words = Words([("b", "a", "b"), ("c", "b", "a")], least=2)
    assert words.symbols == ("<pad>", "<unknown>", "a", "b") and len(words) == 4
    assert words.ids([("b", "c", "a"), ("a",)]).tolist() == [[3, 1, 2], [2, 0, 0]]
    assert words.ids([("<pad>", "<unknown>")]).tolist() == [[1, 1]]
    assert words.ids([()]).tolist() == [[0]]
    assert words.ids([(), ("a", "a")]).tolist() == [[0, 0], [2, 2]]


def test_answers_are_a_row_for_each_text():
    rows = answers_of([{"y"}, set(), {"x", "y"}], ("x", "y"))
    assert rows.tolist() == [[0, 1], [0, 0], [1, 1]]
    with pytest.raises(ValueError, match="label must be one of 'x', 'y', got 'z'"):
        answers_of([{"x"}, {"z"}], ("x", "y"))


@pytest.mark.slow
def test_functions_and_their_disguise():
    open_, hidden = functions_task(), functions_task(disguise=True)
    assert open_.labels == hidden.labels == LABELS
    for split, texts in open_.texts.items():
        assert open_.answers[split].shape == (len(texts), len(LABELS))
        loops = open_.answers[split][:, LABELS.index("loops")]
        for text, yes in zip(texts[:50], loops.tolist(), strict=False):
            assert {"for", "while"} & set(text) or not yes
    text = open_.texts["test"][0]
    assert open_.view(text, 1) == text
    assert "def" not in hidden.view(text, 1) != hidden.view(text, 2)
    names = {f"n{i}" for i in range(100)}
    assert names < set(hidden.words.symbols) and "def" not in hidden.words.symbols
    known = {*hidden.words.symbols}
    seen = [token for t in open_.texts["train"][:200] for token in hidden.view(t, 9)]
    assert sum(token in known for token in seen) > 0.99 * len(seen)


def test_films_are_drawn_by_the_seed(monkeypatch):
    def read(split):
        return [(f"{split} Film {i} isn't well-made !", i % 2) for i in range(20)]

    monkeypatch.setattr(classification, "rotten_tomatoes", read)
    task, few, others = films_task(), films_task(8, seed=1), films_task(8, seed=2)
    assert len(task.texts["train"]) == 20 and task.answers["test"].shape == (20, 1)
    assert task.texts["test"][3] == ("test", "film", "3", "isn't", "well-made", "!")
    assert task.answers["test"][:3].tolist() == [[0], [1], [0]]
    assert len(few.texts["train"]) == len(few.answers["train"]) == 8
    assert few.texts["train"] != others.texts["train"]
    assert few.texts["test"] == task.texts["test"]
    for text, row in zip(few.texts["train"], few.answers["train"], strict=True):
        assert row.tolist() == [int(text[2]) % 2]
    assert "film" in few.words.symbols and "3" not in few.words.symbols
    with pytest.raises(ValueError, match="size must be an integer from 1 to 20"):
        films_task(21)


def test_a_sentence_of_the_reader():
    assert words_of("It isn't GOOD, is it?") == (
        "it", "isn't", "good", ",", "is", "it", "?"
    )  # fmt: skip
    assert words_of("  ") == ()


def test_verdicts_come_in_pairs_of_the_same_words():
    task = order_task()
    assert len(task.texts["train"]) == 54 and len(task.texts["test"]) == 18
    assert not set(task.texts["train"]) & set(task.texts["test"])
    for split, texts in task.texts.items():
        answers = task.answers[split]
        for one, other in zip(texts[::2], texts[1::2], strict=True):
            features = (sorted(words_and_pairs(text)) for text in (one, other))
            assert next(features) == next(features) and one != other
        assert (answers[::2] + answers[1::2] == 1).all()
    assert all((t[6] in GOOD) == (t[2] not in GOOD) for t in task.texts["train"])
    shown = tuple("not a good one , a bad one".split())
    assert shown in task.texts["train"] + task.texts["test"]
    for text, row in zip(task.texts["test"], task.answers["test"], strict=True):
        assert row.item() == (text[-2] in GOOD)


# ---- models --------------------------------------------------------------------


def test_a_bag_is_the_mean_of_its_words():
    bag = BagOfEmbeddings(7, 3, 5)
    tokens = torch.tensor([[2, 3, 3, 0], [4, 0, 0, 0]])
    vectors = bag.embedding.weight
    by_hand = [(vectors[2] + 2 * vectors[3]) / 3, vectors[4]]
    torch.testing.assert_close(bag(tokens), bag.output(torch.stack(by_hand)))
    assert bag(tokens[:, [2, 0, 1, 3]]).allclose(bag(tokens)), "order doesn't matter"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_what_it_notices(kind):
    task = small_task()
    model = make_classifier(kind, task, ORDER, seed=3).double().eval()
    text = ("a", "b", "c", "d", "d")
    ids = task.words.ids([text, text[::-1]])
    logits = model(ids)
    assert logits.shape == (2, 2)
    blind = kind in ("bag", "no positions")
    assert torch.allclose(logits[0], logits[1]) == blind, "does order matter?"
    padded = model(torch.nn.functional.pad(ids, (0, 3)))
    assert torch.allclose(padded, logits) == (kind != "unmasked")
    again = make_classifier(kind, task, ORDER, seed=3).double().eval()
    other = make_classifier(kind, task, ORDER, seed=4).double().eval()
    assert torch.equal(again(ids), logits) and not torch.equal(other(ids), logits)


def test_the_kinds_pool_as_they_are_called():
    task = small_task()
    kinds = ("encoder", "no positions", "first", "max", "attention", "unmasked")
    models = [make_classifier(kind, task, ORDER) for kind in kinds]
    pooled = [model.config.pooling for model in models]
    assert pooled == ["mean", "mean", "first", "max", "attention", "mean"]
    with pytest.raises(ValueError, match="kind must be one of 'bag'"):
        make_classifier("median", task, ORDER)
    recipe = ORDER._replace(dropout=0.25, layers=2, d_ff=24)
    made = make_classifier("encoder", task, recipe)
    assert made.dropout.p == 0.25 and len(made.encoder.layers) == 2
    assert make_classifier("bag", task, recipe).dropout.p == 0.25


def test_tfidf_is_scikit_learns():
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    task = small_task()
    texts, answers = task.texts["train"], task.answers["train"]
    ours = TfidfLinear(texts, answers, strength=3.0)
    vectors = TfidfVectorizer(
        token_pattern=r"\w", ngram_range=(1, 2), sublinear_tf=True
    )
    counted = vectors.fit_transform(map(" ".join, texts))
    tested = vectors.transform(map(" ".join, task.texts["test"]))
    logits = ours(task.texts["test"])
    assert logits.shape == (20, 2) and logits.dtype == torch.float32
    for i in range(2):
        model = LogisticRegression(C=3.0, solver="liblinear")
        model.fit(counted, answers[:, i].numpy())
        wanted = torch.tensor(model.decision_function(tested)).float()
        torch.testing.assert_close(logits[:, i], wanted, atol=1e-4, rtol=1e-4)
    assert words_and_pairs(("a", "b", "a")) == ["a", "b", "a", "a b", "b a"]
    assert ours([()]).shape == (1, 2)
    with pytest.raises(ValueError, match="got only 1 for label 0"):
        TfidfLinear(texts, torch.ones_like(answers))


def test_tfidf_names_what_is_missing(monkeypatch):
    import sys

    task = small_task()
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match="extra `classification`"):
        TfidfLinear(task.texts["train"], task.answers["train"])


# ---- training ------------------------------------------------------------------


def test_batches_hold_every_text_once_and_follow_the_seed():
    task = small_task()
    texts = task.texts["train"]

    def read(steps, seed):
        return [
            (tuple(task.words.symbols[i] for i in row if i), tuple(answer))
            for tokens, answers in labelled_batches(task, 8, steps, seed)
            for row, answer in zip(tokens.tolist(), answers.tolist(), strict=True)
        ]

    pairs = list(zip(texts, map(tuple, task.answers["train"].tolist()), strict=True))
    assert sorted(read(7, 0)) == sorted(pairs)
    assert sorted(read(14, 0)) == sorted(2 * pairs), "and every text again"
    assert read(14, 0)[50:] != read(7, 0) == read(7, 0) != read(7, 1)
    assert len(list(labelled_batches(task, 8, 5))) == 5
    with pytest.raises(ValueError, match="size must be an integer ≥ 1"):
        list(labelled_batches(task, 0, 5))


@pytest.mark.slow
def test_batches_hold_texts_of_about_one_length():
    task = functions_task()
    batches = list(labelled_batches(task, 32, 40))
    padding = sum((ids == 0).sum().item() for ids, _ in batches)
    assert padding < 0.3 * sum(ids.numel() for ids, _ in batches)


@pytest.mark.slow
def test_a_disguise_is_new_each_time():
    task = functions_task(disguise=True)
    few = task._replace(
        texts=task.texts | {"train": task.texts["train"][:1]},
        answers=task.answers | {"train": task.answers["train"][:1]},
    )
    (one, _), (other, _) = labelled_batches(few, 1, 2)
    assert one.shape == other.shape and not torch.equal(one, other)
    assert not (one == Words.unknown).all()


def test_the_loss_is_that_of_each_label():
    logits, answers = torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]])
    by_hand = -(torch.tensor(2.0).sigmoid().log() + torch.tensor(1.0).sigmoid().log())
    assert label_loss(lambda x: x, (logits, answers)).item() == pytest.approx(
        by_hand.item() / 2
    )
    assert cross_entropy(logits, answers) == pytest.approx(by_hand.item() / 2)


def test_a_model_learns_and_keeps_the_order_of_texts():
    task = small_task()
    recipe = ORDER._replace(steps=150, rate=1e-2, size=10, max_len=12)
    model = make_classifier("encoder", task, recipe)
    history = train_classifier(model, task, recipe)
    assert len(history) == 150 and history[-1]["loss"] < 0.1 < history[0]["loss"]
    texts = task.texts["test"]
    yes = classify(model, task, texts, size=3) > 0
    assert (yes == task.answers["test"].bool()).float().mean() > 0.9
    one_by_one = torch.cat([classify(model, task, [text]) for text in texts])
    torch.testing.assert_close(classify(model, task, texts), one_by_one)
    assert torch.equal(reader(model, task)(texts), classify(model, task, texts))
    assert classify(model, task, []).shape == (0, 2)
    assert classify(model, task, [(), ("zebra",)]).isfinite().all()
    with pytest.raises(ValueError, match="length=13"):
        classify(model, task, [("a",) * 13])
    again = make_classifier("encoder", task, recipe)
    assert train_classifier(again, task, recipe)[-1]["loss"] == history[-1]["loss"]
    scores = measure(reader(model, task), task)
    assert scores["accuracy"] == pytest.approx(
        (yes == task.answers["test"].bool()).float().mean().item()
    )


# ---- what answers are worth ----------------------------------------------------


def test_f1_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = torch.Generator().manual_seed(0)
    answers = (torch.rand(40, 3, generator=draw) < 0.3).float()
    yes = torch.rand(40, 3, generator=draw) < torch.tensor([0.2, 0.5, 0.9])
    ours, holds = f1_scores(yes, answers), answers.int().numpy()
    for average in ("micro", "macro"):
        wanted = metrics.f1_score(holds, yes.numpy(), average=average)
        assert ours[average] == pytest.approx(wanted)
    assert ours["each"] == pytest.approx(
        metrics.f1_score(holds, yes.numpy(), average=None).tolist()
    )
    nothing = f1_scores(torch.zeros(4, 2).bool(), torch.zeros(4, 2))
    assert nothing == {"each": [0, 0], "macro": 0, "micro": 0}
    with pytest.raises(ValueError, match="answers must have the shape"):
        f1_scores(torch.zeros(4, 2).bool(), torch.zeros(4, 3))


def test_the_best_threshold_of_each_label():
    answers = torch.tensor([[1, 1], [0, 1], [0, 0], [0, 0]]).float()
    chances = torch.tensor([[0.42, 0.33], [0.37, 0.18], [0.3, 0.07], [0.1, 0.07]])
    limits = best_thresholds(chances, answers)
    torch.testing.assert_close(limits, torch.tensor([0.4, 0.1]))
    assert f1_scores(chances > limits, answers)["each"] == [1, 1]
    with pytest.raises(ValueError, match="got only 0 for label 1"):
        best_thresholds(chances, answers * torch.tensor([1, 0]))
    with pytest.raises(ValueError, match="got only 1 for label 0"):
        both_ways(torch.ones(3, 1))


def test_a_temperature_finds_how_much_too_sure_logits_are():
    honest = 2 * torch.randn(20_000, 1)
    answers = torch.bernoulli(honest.sigmoid())
    assert best_temperature(honest, answers) == pytest.approx(1, abs=0.05)
    assert best_temperature(3 * honest, answers) == pytest.approx(3, rel=0.06)
    assert best_temperature(honest / 2, answers) == pytest.approx(0.5, rel=0.06)


def test_reliability_sorts_answers_by_how_sure_they_are():
    logits = torch.tensor([[4.0, -0.1], [0.2, -3.0], [0.3, 2.0]])
    answers = torch.tensor([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    unsure, sure = reliability(logits, answers, bins=2)
    chances = torch.tensor([0.1, 0.2, 0.3, 2.0, 3.0, 4.0]).sigmoid()
    assert unsure == pytest.approx((chances[:3].mean().item(), 1 / 3, 3))
    assert sure == pytest.approx((chances[3:].mean().item(), 1, 3))
    assert len(reliability(logits, answers, bins=10)) == 6


def test_measures_take_thresholds_from_validation():
    task = small_task()
    sure = {
        id(task.texts[s]): task.answers[s] * 2 - 3 for s in ("validation", "test")
    }  # yes is -1, no is -3: right order, all below one half
    scores = measure(lambda texts: sure[id(texts)], task)
    assert scores["macro"] == scores["micro"] == 0
    assert scores["tuned"] == 1 and scores["each"] == [1, 1]
    share = task.answers["test"].mean().item()
    assert scores["accuracy"] == pytest.approx(1 - share)


def test_flips_are_counted_per_hundred():
    task = small_task()
    texts = task.texts["test"][:10]
    masked = make_classifier("encoder", task, ORDER)
    assert flips(masked, task, texts, 8) == 0

    class Longest(torch.nn.Linear):  # says yes to what stands in long rows
        def forward(self, tokens):
            return torch.full((len(tokens), 2), tokens.shape[1] - 5.5)

    short = sum(len(text) < 6 for text in texts)
    assert 0 < short < 10
    assert flips(Longest(1, 1), task, texts, 8) == 10 * short
