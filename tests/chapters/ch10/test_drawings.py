"""ch10/drawings.py: its drawings draw what ran, and its sentences say it."""

import hashlib
import json
import re
from pathlib import Path

import pytest
import torch
from markupsafe import escape
from torch import nn

from annotated.chapters.ch10 import drawings as ch10
from annotated.classifier import ClassifierConfig, TransformerClassifier
from annotated.page.frames import static
from annotated.page.packed import pack_films, unpack_films
from annotated.recipes.classification import (
    CLASSIFICATION_RECIPES,
    GOOD,
    BagOfEmbeddings,
    Labelled,
    Words,
    make_classifier,
    order_task,
)

RESULTS = Path(__file__).parents[3] / "book" / "results"
TEXTS = [("def", "f", "a"), ("def", "g", "b", "a"), ("def", "f", "b")]


def recorded(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def html(shown):
    return shown._repr_html_()


def alt(shown):
    return re.search(r'(?:alt|aria-label)="([^"]+)"', html(shown))[1]


@pytest.fixture
def task():
    answers = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    texts = dict.fromkeys(("train", "validation", "test"), TEXTS)
    every = dict.fromkeys(texts, answers)
    return Labelled(("has f", "has g"), texts, every, Words(TEXTS))


class Finds(nn.Module):
    """Says yes to its two labels where a token for each is there."""

    def __init__(self, *tokens):
        super().__init__()
        self.tokens, self.unused = tokens, nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        there = [(ids == token).any(dim=1) for token in self.tokens]
        return 2.0 * torch.stack(there, dim=1) - 1


def test_the_opening_has_one_bag_and_two_answers():
    text = html(ch10.same_words())
    assert text.count("bad good not ,") == 2
    assert text.count("var(--at-wrong)") == text.count("var(--at-right)") == 1
    for said in ("See it? No.", "See it? Yes."):
        assert said in text


def test_tokens_become_lines():
    tokens = "def f ( a ) : ⏎ ⇥ if a : ⏎ ⇥ return 0 ⏎ ⇤ b ⏎ ⇤".split()
    assert ch10.as_text(tokens) == (
        "def f ( a ) :\n    if a :\n        return 0\n    b"
    )


def test_a_function_is_found_by_its_labels(task):
    assert ch10.by_labels(task, "has g", most=4) == 1
    assert ch10.by_labels(task, "has f", "has g", most=4) == 0
    with pytest.raises(ValueError):
        ch10.by_labels(task, "has g", most=3)


def test_means_are_drawn_beside_what_is_real():
    states = torch.tensor([[[1.0, 2.0], [7.0, 8.0]], [[3.0, 4.0], [9.0, 6.0]]])
    real = torch.tensor([[True, True], [True, False]])
    text = html(ch10.pooled_picture(states, real, torch.tensor([[4.0, 5], [3, 4]])))
    assert text.count("hidden") >= 2 and ">9<" not in text and ">8<" in text


def test_the_classifier_is_proved(capsys, monkeypatch):
    ch10.check_classifier()
    assert capsys.readouterr().out.count("✓") == 2
    monkeypatch.setattr(
        "annotated.classifier.pool", lambda states, real, pooling: states.mean(1)
    )
    with pytest.raises(AssertionError, match="is its parts"):
        ch10.check_classifier()


def test_a_blind_model_gets_half_of_the_verdicts():
    task = order_task()
    model = make_classifier("bag", task, CLASSIFICATION_RECIPES["order"])
    assert ch10.right_share(model, task) == 0.5
    assert ch10.right_share(model, task, "train") == 0.5
    ids = task.words.ids([(word,) for word in GOOD]).flatten()

    class EndsWell(nn.Linear):  # what the last word says
        def forward(self, tokens):
            return 2.0 * torch.isin(tokens[:, -1:], ids) - 1

    assert ch10.right_share(EndsWell(1, 1), task) == 1


def test_scores_and_thresholds(task):
    half = {"each": [0.25, 0.5], "macro": 0.375, "micro": 0.4}
    tuned = {"each": [0.75, 1.0], "macro": 0.875, "micro": 0.9}
    text = html(ch10.scores_table(task, half, tuned, torch.tensor([0.15, 0.6])))
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", text)
    assert ["has f", "67%", "0.25", "0.15", "0.75"] == cells[5:10]
    assert ["mean: macro", "", "0.38", "", "0.88"] == cells[15:20]
    chances = torch.tensor([[0.42, 0.9], [0.37, 0.8], [0.95, 0.7]])
    said = alt(ch10.thresholds_figure(chances, task, ["has g", "has f"]))
    assert "has g is best at 0.70 with 1.00" in said
    assert "has f is best at 0.40 with 1.00" in said


def test_poolings_and_flips_are_those_of_the_record():
    record = recorded("pooling")
    text = html(ch10.poolings_table(record))
    first = [run["tuned"] for run in record["rows"] if run["kind"] == "first"]
    assert " · ".join(f"{one:.2f}" for one in first) in text
    assert "31 · 9 · 5" in text and "0 · 0 · 0" in text and text.count("0*") == 3
    other = [row | {"flips": 50.0} for row in record["rows"]]
    with pytest.raises(AssertionError):
        ch10.poolings_table(record | {"rows": other})


def test_reliability_before_and_after():
    record = recorded("films")
    said = alt(ch10.reliability_figure(record, 1000))
    runs = [r for r in record["rows"] if (r["kind"], r["size"]) == ("encoder", 1000)]
    for title, name in (("As they come", "as it comes"), ("With a temp", "cooled")):
        sure, right = (
            sum(run[name][key][-1] for run in runs) / 3 for key in ("chances", "right")
        )
        assert re.search(
            rf"{title}\w*, encoder: sure {sure:.2f}, right {right:.2f}", said
        )
    text = ch10.cooling(record, 1000, 1.234)
    by = " · ".join(f"{run['temperature']:.0f}" for run in runs)
    assert f"are {by} with" in text and "1.23 is enough" in text
    nats = sum(run["as it comes"]["nats"] for run in runs) / 3
    assert f"from {nats:.1f} to" in text


def test_shades_are_shares_of_the_largest_score():
    tokens = "def f : ⏎ ⇥ return 0 ⏎ ⇤".split()
    scores = torch.zeros(len(tokens))
    scores[1], scores[5], scores[6] = 2.0, 1.0, -3.0
    text = html(ch10.marked(tokens, scores, "it says yes to nine in ten"))
    assert re.findall(r'fill-opacity="([\d.]+)"', text) == ["0.6", "0.3"]
    assert "⇥" not in text and text.count("⏎") == 2
    tops = {t: y for y, t in re.findall(r'y="([\d.]+)"[^>]*>(def|return)<', text)}
    assert float(tops["return"]) > float(tops["def"])
    long = ch10.marked(("name_of_ten",) * 9, torch.zeros(9), "nine long names in a row")
    across = [float(x) for x in re.findall(r'<text x="([\d.]+)"', html(long))]
    assert max(across) < 350 - 11 * 7.8, "wrapped"


@pytest.mark.slow
def test_examples_are_right_and_short():
    from annotated.recipes.classification import functions_task

    task = functions_task()
    sure = 2 * task.answers["test"] - 1
    shown = ch10.examples(task, sure)
    assert len(shown) == 4
    for name, text in shown.items():
        assert text[1] == name and 25 <= len(text) <= 56
    assert ch10.examples(task, -sure) == {}


def test_survivors_of_deletion(task):
    f, g = task.words.ids([("f", "g")])[0].tolist()
    a = task.words.ids([("a",)]).item()
    # only the first text holds both labels; f is its second token, a its third
    task = task._replace(answers=dict.fromkeys(task.texts, task.answers["test"]))
    methods = {
        "its own": lambda ids, label: (ids[0] == (f, a)[label]).float(),
        "the first": lambda ids, label: (ids[0] == f).float(),
    }
    found = ch10.survivors(Finds(f, a), task, methods, most=2)
    assert found["its own"]["asked"][:2] == [1, 0]
    assert found["its own"]["others"][:2] == [1, 1]
    assert found["the first"]["asked"][:2] == [1, 0.5]
    assert found["the first"]["others"][:2] == [1, 0.5]
    both = ch10.survivors(
        Finds(f, a),
        task,
        {"both": lambda ids, label: torch.tensor([0.0, 2.0, 1.0])},
        most=2,
    )["both"]
    assert both == {"asked": [1, 0.5, 0], "others": [1, 0.5, 0]}
    assert g != f


def test_survivors_are_plotted_and_said():
    lines = {"asked": [1.0, 0.8, 0.7, 0.25], "others": [1.0, 0.9, 0.8, 0.75]}
    found = dict.fromkeys(
        ("attention", "gradient × input", "deletion", "random"), lines
    )
    said = alt(ch10.survivors_figure(found))
    assert "The label asked for, attention: 25 after three" in said
    assert "Its other labels, random: 75 after three" in said
    three = {n: {"asked": 0.1 * i, "others": 0.15 * i} for i, n in enumerate(found, 1)}
    text = ch10.survivors_said(three)
    assert "deleted, 40% of the" in text and "and 60% of the others" in text
    assert "points at, 10% and 15%" in text and "**: 20% and 30%" in text
    assert "**Deletion**: 30% and 45%" in text


def test_keywords_among_three_tokens():
    from annotated.recipes.classification import functions_task

    task = functions_task()
    order = {token: task.words.ids([(token,)]).item() for token in
             ("for", "raise", "except", "return")}  # fmt: skip

    class Sure(torch.nn.Module):  # of all that is true
        def forward(self, ids):
            return torch.stack([2 * truth[tuple(r[r > 0].tolist())] - 1 for r in ids])

    truth = {
        tuple(task.words.ids([text])[0].tolist()): yes
        for text, yes in zip(task.texts["test"], task.answers["test"], strict=True)
    }
    methods = {
        # third, after two that always stand in front
        "keywords": lambda ids, label: (
            torch.isin(ids[0], torch.tensor([*order.values()])).float()
            + 0.1 * (ids[0] == [*order.values()][label_to_keyword(task, label)])
            + 2.0 * (torch.arange(ids.shape[1]) < 2)
        ),
        "the first three": lambda ids, label: -torch.arange(ids.shape[1]).float(),
    }
    shares = ch10.keyword_shares(Sure(), task, methods, texts=20)
    assert shares["keywords"] > 0.95 and shares["the first three"] == 0
    said = ch10.keywords_said({"attention": 0.9, "gradient × input": 0.4,
                               "deletion": 0.95, "random": 0.1})  # fmt: skip
    for share in ("names in 90%", "input in 40%", "deletion in 95%", "random in 10%"):
        assert share in said


def label_to_keyword(task, label):
    return ("loops", "raises", "catches", "returns a value").index(task.labels[label])


def test_a_borrowed_encoder_beside_what_starts_from_nothing():
    films, borrowed = recorded("films"), recorded("borrowed")
    rows = borrowed["rows"]

    def mean(kind, size, key="accuracy"):
        some = [r[key] for r in rows if (r["kind"], r["size"]) == (kind, size)]
        return sum(some) / len(some)

    said = ch10.borrowed_said(films, borrowed)
    for kind in ch10.BORROWED:
        for size in (200, 8625):
            assert f"{100 * mean(kind, size):.0f} %" in said
    text = alt(ch10.borrowed_curves(films, borrowed))
    assert f"frozen from {100 * mean('frozen', 200):.0f} to" in text
    reading = 8625 * borrowed["reading_seconds_per_sentence"]
    seconds = reading + mean("frozen", 8625, "cpu_seconds")
    cost = alt(ch10.cost_plane(films, borrowed))
    assert (
        f"borrowed, frozen: {100 * mean('frozen', 8625):.0f} % for {seconds:.1f}"
        in cost
    )
    worse = [r | {"accuracy": 0.6} for r in rows]
    for draw in (ch10.borrowed_curves, ch10.borrowed_said):
        with pytest.raises(AssertionError):
            draw(films, borrowed | {"rows": worse})


def test_a_network_that_is_held_back():
    films, stopped = recorded("films"), recorded("stopped")
    said = ch10.held_back_said(films, stopped)
    for size in (1000, 8625):
        for rows in (films["rows"], stopped["rows"]):
            some = [
                row["accuracy"]
                for row in rows
                if row["size"] == size and row.get("kind", "encoder") == "encoder"
            ]
            assert f"{100 * sum(some) / 3:.0f} %" in said


def test_films_by_size_and_cost():
    record = recorded("films")
    means = {
        (kind, size): sum(
            100 * r["accuracy"] / 3
            for r in record["rows"]
            if (r["kind"], r["size"]) == (kind, size)
        )
        for kind in ch10.NAMES
        for size in (200, 8625)
    }
    said = alt(ch10.learning_curves(record))
    first, last = means["bag", 200], means["bag", 8625]
    assert f"bag of embeddings from {first:.0f} to {last:.0f}" in said
    assert f"TF-IDF, linear: {means['TF-IDF', 8625]:.0f} %" in alt(
        ch10.cost_plane(record, recorded("borrowed"))
    )
    gap = means["TF-IDF", 8625] - means["encoder", 8625]
    said = ch10.cost_said(record)
    assert f"is right on {gap:.0f} sentences fewer" in said
    assert "28 times as long as TF-IDF" in said and "it takes twice as long." in said
    level = [r | {"accuracy": 0.7 + 0.01 * (r["kind"] == "TF-IDF"), "reading": 1,
                  "cpu_seconds": 1} for r in record["rows"]]  # fmt: skip
    said = ch10.cost_said(record | {"rows": level})
    assert "as long as TF-IDF" in said and "times" not in said
    assert "on 1 sentence fewer" in said and "it takes as long." in said
    worse = [r | {"accuracy": r["accuracy"] * (r["kind"] != "bag")}
             for r in record["rows"]]  # fmt: skip
    with pytest.raises(AssertionError):
        ch10.learning_curves(record | {"rows": worse})


def test_labels_with_and_without_disguise():
    record = recorded("functions")
    text = html(ch10.by_label(record))
    hidden = [r["each"][-1] for r in record["rows"]
              if r["disguise"] and r["kind"] == "encoder"]  # fmt: skip
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    names = re.findall(r"<th[^>]*>(.*?)</th>", rows[0])
    assert len(names) == len({*names}) == 6
    row = next(row for row in rows if "ignores a parameter" in row)
    always, counted, read, _, last = re.findall(r"<td>(.*?)</td>", row)
    assert last == f"<strong>{sum(hidden) / 3:.2f}</strong>", "higher than counting"
    assert "<strong>" in counted and "<strong>" not in read + always
    for share, yes in zip(record["shares"], record["always yes"]["each"], strict=True):
        assert yes == pytest.approx(2 * share / (1 + share), abs=1e-3)
    assert always == f"{2 * share / (1 + share):.2f}", "the last label's"
    assert "mean: macro" in rows[-1] and ">0.27<" in rows[-1]
    bag = [
        sum(run["tuned"] / 3 for run in record["rows"]
            if (run["kind"], run["disguise"]) == ("bag", hide))
        for hide in (False, True)
    ]  # fmt: skip
    assert "disguised: {:.2f} and {:.2f}; of an encoder".format(*bag) in text
    column = ch10._higher([0.501, 0.3, 0.2], [0.499, 0.2, 0.3])
    assert column == ["0.50", "<strong>0.30</strong>", "0.20"]
    deeper = recorded("deeper")
    two = [sum(r["tuned"] / 3 for r in deeper["rows"] if r["disguise"] == hide)
           for hide in (False, True)]  # fmt: skip
    said = ch10.disguise_said(record, deeper)
    assert f"to {two[0]:.2f} as written" in said
    assert f"to {two[1]:.2f} in disguise" in said
    ahead, behind = said.split("behind for")
    assert "*ignores a parameter*" in ahead and "*loops*" in behind
    turned = [r | {"disguise": not r["disguise"]} for r in record["rows"]]
    with pytest.raises(AssertionError):
        ch10.disguise_said(record | {"rows": turned}, deeper)


def test_people_beside_models():
    record = recorded("film_ratings")
    means = {
        kind: [sum(r["right"][end] for r in some) / len(some) * 100 for end in (0, -1)]
        for kind in ("one person", "TF-IDF", "encoder")
        for some in [[r for r in record["rows"] if r["kind"] == kind]]
    }
    said = alt(ch10.people_figure(record))
    assert "encoder from {:.0f} to {:.0f}".format(*means["encoder"]) in said
    said = ch10.people_said(record)
    assert f"a single person gets {means['one person'][0]:.0f} % right" in said
    for kind in ("TF-IDF", "encoder"):
        assert f"{means[kind][1]:.0f} % by" in said
    lost = [r | {"right": [0.6] * 4} for r in record["rows"]]
    with pytest.raises(AssertionError):
        ch10.people_figure(record | {"rows": lost})


@pytest.fixture
def films():
    """A bag and an encoder for a few words."""
    torch.manual_seed(0)
    words = Words([("a", "film", "not", "bad", ",", "good")])
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "max_len": 9}
    config = ClassifierConfig(len(words), 1, **sizes)
    bag, encoder = BagOfEmbeddings(len(words), 1, 8), TransformerClassifier(config)
    for model in (bag, encoder):
        for name, weight in model.named_parameters():
            weight.data += 0.5 * torch.randn_like(weight)
            if "embedding" in name:
                weight.data[0] = 0.0
    return bag.eval(), encoder.eval(), words


def test_packed_films_are_the_same_but_for_rounding(films):
    bag, encoder, words = films
    script = pack_films("films", *films)
    assert script.startswith('(globalThis.annotatedModels ||= {})["films"] = {')
    packed, rounded, again = unpack_films(script)
    assert again.symbols == words.symbols and not packed.training
    ids = words.ids([("a", "film", "neither"), ("not", "bad")])
    torch.testing.assert_close(packed(ids), bag(ids))
    for name, weight in encoder.state_dict().items():
        room = weight.abs().amax(dim=-1, keepdim=True) / 254 if weight.dim() == 2 else 0
        difference = (rounded.state_dict()[name] - weight).abs()
        assert (difference <= room + 1e-6).all(), name
    assert pack_films("films", packed, rounded, again) == script


def test_a_sentence_is_judged_word_by_word(films):
    _, encoder, words = films
    bag, _, _ = unpack_films(pack_films("films", *films))
    found = ch10.judged(bag, encoder, words, "Not BAD, not neither")
    assert found["words"] == ["not", "bad", ",", "not", "neither"]
    assert found["unknown"] == [False, False, False, False, True]
    weights = found["bag"]["weights"]
    assert weights[0] == weights[3]
    bias = bag.output.bias.item()
    assert weights.mean().item() + bias == pytest.approx(found["bag"]["logit"])
    there = found["encoder"]
    assert there["received"].sum().item() == pytest.approx(1)
    without = encoder(
        words.ids([tuple(found["words"][:1] + found["words"][2:])])
    ).item()
    assert there["changes"][1].item() == pytest.approx(
        there["logit"] - without, abs=1e-6
    )
    assert there["changes"][0] != there["changes"][3], "the same word, elsewhere"
    x = encoder.positions(encoder.embedding(words.ids([found["words"]])))
    one, two = encoder.encoder.layers
    read = two.residuals[0].norm(one(x))
    query, key = (
        part(read).view(5, 2, 4).transpose(0, 1)
        for part in (two.attention.query_map, two.attention.key_map)
    )
    maps = (query @ key.transpose(1, 2) / 2).softmax(dim=-1)
    torch.testing.assert_close(there["received"], maps.mean(dim=(0, 1)))


def test_the_film_reader_brings_what_its_models_say(monkeypatch):
    record = recorded("films_page")
    script = static(ch10.MODELS).encode()
    assert len(script) == record["bytes"] < 1.3e6
    assert hashlib.sha256(script).hexdigest() == record["sha256"]
    text = html(ch10.film_reader(record))
    assert "Load the models (1.0 MB)" in text and "8,625 sentences" in text
    assert "of 1,036 others the bag gets 76.3% right, the encoder 74.0%" in text
    for sentence in ch10.SENTENCES:
        assert f">{escape(sentence)}</button>" in text
    checks = json.loads(re.search(r'explorer-checks">(.*?)</script>', text)[1])
    _, wrong, right, *_ = ch10.SENTENCES
    shown = {check["state"]["sentence"]: check["values"] for check in checks}
    assert shown[wrong]["bag"]["logit"] == shown[right]["bag"]["logit"]
    exact = ch10.judged(*unpack_films(script.decode()), wrong)["encoder"]
    assert shown[wrong]["encoder"]["logit"] == pytest.approx(exact["logit"], abs=1e-5)
    assert shown[wrong]["encoder"]["changes"] == pytest.approx(
        exact["changes"].tolist(), abs=1e-5
    )
    assert {check["state"]["by"] for check in checks} == set(ch10.WAYS)
    monkeypatch.setattr(ch10, "SENTENCES", [*ch10.SENTENCES[::-1]])
    with pytest.raises((AssertionError, KeyError)):
        ch10.film_reader(record)


def test_shuffling_is_said_as_it_was_recorded():
    record = recorded("films_page")
    rows = {r["kind"]: r for r in record["rows"] if r["precision"] == "packed"}
    said = ch10.shuffled_said(record)
    assert f"answer to {100 * rows['encoder']['changed']:.0f} of a hundred" in said
    counts = (round(1036 * rows["encoder"][key]) for key in ("shuffled", "accuracy"))
    assert "{} are right instead of {}.".format(*counts) in said
    rows["bag"]["changed"] = 0.01
    with pytest.raises(AssertionError):
        ch10.shuffled_said(record)
