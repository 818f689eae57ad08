"""ch09/drawings_b.py: its searches are the module's, and faults are refused."""

import math
from types import SimpleNamespace

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.chapters.ch09 import drawings_b as ch09b
from annotated.recipes.translation import spelling_task, translation_model
from annotated.search import STOPS, Hypothesis, beam_search

AFTER = {
    "start": {"at": 0.45, "suddenly": 0.35, "all": 0.20},
    "at": {"once": 0.54, "first": 0.46},
    "suddenly": {"end": 0.90, "at": 0.10},
    "all": {"at": 1.0},
    "once": {"end": 1.0},
    "first": {"end": 1.0},
}


def sentences(words=("start",), chance=1.0):
    if words[-1] == "end":
        return {words[1:]: chance}
    found = {}
    for word, p in AFTER[words[-1]].items():
        found |= sentences((*words, word), chance * p)
    return found


def by_hand(after, k, most, kept=2, inner=lambda best: best):
    """The notebook's search; ``kept`` and ``inner`` break it."""
    ids, total, finished = torch.tensor([[1]]), torch.zeros(1), []
    for length in range(1, most + 1):
        logs = total[:, None] + after(ids)
        best, places = logs.flatten().topk(min(kept * k, logs.numel()))
        parents, symbols = places // logs.shape[1], places % logs.shape[1]
        ids = torch.cat([ids[inner(parents)], symbols[:, None]], dim=1)
        ended = symbols == 2
        over = (ended | (length == most)) & (best > -torch.inf)
        for i in over[:k].nonzero().flatten().tolist():
            finished.append((best[i].item(), ids[i, 1:].tolist()))
        ids, total = ids[~ended][:k], best[~ended][:k]
    return sorted(finished, reverse=True)


@pytest.fixture(scope="module")
def task():
    """A speller that has learned nothing, but is sure of what it says."""
    cutter = spelling_task().cutter
    model = translation_model(ch09b.SMALL, cutter)
    with torch.no_grad():
        model.output.weight *= 4.0
        model.target_embedding.weight *= 4.0
        model.output.weight[0] = 0.0
    return ch09b.Task(model, cutter, 12)


def cells(html):
    rows = BeautifulSoup(html.text, "html.parser").select("tbody tr")
    return [[cell.text for cell in row.select("th, td")] for row in rows]


def test_the_toy_has_seven_sentences_and_greedy_misses_the_best(capsys):
    every, table = sentences(), ch09b.table_of(AFTER)
    assert len(every) == 7
    ch09b.check_toy(every, by_hand, table)
    assert ch09b.said(ch09b.search_table(table, beam=1)[0].tokens) == "at once"
    assert ch09b.said(ch09b.search_table(table, beam=2)[0].tokens) == "suddenly"
    steps = ch09b.trace_of_toy(by_hand, table)
    assert cells(steps) == [
        ["1", "at 0.450, suddenly 0.350", "–", "all 0.200"],
        ["2", "at once 0.243, at first 0.207", "suddenly 0.315", "suddenly at 0.035"],
        ["3", "–", "at once 0.243, at first 0.207", "–"],
    ]
    assert "finds “suddenly” (0.315); a beam of 1 finds “at once” (0.243)" in steps.text
    drawn = BeautifulSoup(ch09b.tree(every, AFTER).text, "html.parser")
    words = [text.text for text in drawn.select("svg text")]
    assert words.count("end") == words.count("0.90") == 1  # the only one in doubt
    assert "Greedy decoding writes at once" in drawn.svg["aria-label"]
    assert "0.315 ← best" in drawn.text and "0.243 ← greedy" in drawn.text
    capsys.readouterr()


@pytest.mark.parametrize(
    "broken",
    [
        {"kept": 1},  # what ends leaves a place empty
        {"inner": lambda parents: parents * 0},  # beams reordered, their past not
    ],
)
def test_a_broken_search_is_refused(broken, capsys):
    ch09b.check_search(by_hand)
    with pytest.raises(AssertionError):
        ch09b.check_search(lambda *given: by_hand(*given, **broken))
    assert "20 random models" in capsys.readouterr().out


@pytest.mark.parametrize("width", ch09b.BEAMS)
def test_the_grown_tree_holds_what_the_module_finds(task, width):
    for i in range(4):
        source = task.source[i : i + 1]
        steps = ch09b.grow(ch09b.continues(task.model, source), width)
        finished, living = [], [()]
        for n, step in enumerate(steps, start=1):
            paths = [(*living[parent], symbol) for parent, symbol, _, _ in step]
            finished += [
                (log / n, list(path))
                for path, (_, _, log, fate) in zip(paths, step, strict=True)
                if fate == "ends"
            ]
            fates = [fate for *_, fate in step]
            living = [p for p, f in zip(paths, fates, strict=True) if f == "lives"]
            assert len(living) <= width and sum(f != "dropped" for f in fates) > 0
        score, ids = max(finished)
        given = ch09b.IDS | {"alpha": 1.0, "penalty": "plain", "stop": "never"}
        ((one,),) = beam_search(
            task.model, source, beam=width, max_new_tokens=ch09b.MOST, **given
        )
        assert one.tokens == ids and one.score == pytest.approx(score, rel=1e-4)


@pytest.fixture
def translator():
    """A record as that of ``multi30k_search``, of two beams and one sentence."""
    tree = [
        "0 ▁Ein -0.1 lives  0 ▁Da -2.0 dropped",
        "0 <end> -2.4 ends  0 ▁Hund -0.5 lives",
        "0 <end> -0.75 ends  0 ▁Hund -9.0 lives",
    ]
    trees = {str(width): tree for width in ch09b.BEAMS}
    rows = [
        {"penalty": penalty, "alpha": alpha, "beam": beam, "bleu": 30 + beam}
        | {"length": 1 - 0.01 * beam * (alpha == 0), "seconds": 0.002 * beam}
        | {"search_errors": 0.04 / beam, "log": -13.1 / beam}
        | {"empty": 0.32 * (beam - 1) / 3, "empty_likelier": 0.64 / beam}
        for penalty, alpha in (("gnmt", 0.0), ("gnmt", 0.6), ("plain", 1.0))
        for beam in (1, 4)
    ]
    stops = [
        {"penalty": "plain", "alpha": 1.0, "stop": stop, "missed": missed, "bleu": 31.2}
        | {"steps": 16.65, "length": 0.98}
        for stop, missed in (("first", 0.0575), ("bound", 0.0), ("never", 0.0))
    ]
    sentence = {"source": "A dog is a dog.", "reference": "Ein Hund.", "trees": trees}
    facts = {"tested": 400, "alone": 20, "rows": 256, "trees": [sentence]}
    return facts | {"beams": rows, "stops": stops}


def test_the_explorer_holds_a_tree_for_each_word_and_width(task, translator):
    shown = {"same": [0], "wrong": [1]}
    html = ch09b.tree_explorer(task, shown, translator).text
    assert f"“{task.words[0]}”" in html
    assert "A dog is a …" in html and "A dog is a dog." in html


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_penalty_and_a_stop_choose_from_a_tree_as_the_module_does(task, alpha, stop):
    for i in range(3):
        source = task.source[i : i + 1]
        after = ch09b.continues(task.model, source)
        for width in (1, 4):
            score, ids = ch09b.answer(ch09b.grow(after, width), width, alpha, stop)
            given = ch09b.IDS | {"alpha": alpha, "penalty": "plain", "stop": stop}
            ((one,),) = beam_search(
                task.model, source, beam=width, max_new_tokens=ch09b.MOST, **given
            )
            assert one.tokens == ids and one.score == pytest.approx(score, rel=1e-4)


def test_a_bound_reckons_with_the_largest_penalty():
    steps = [
        [[0, 2, -0.5, "ends"], [0, 5, -1.2, "lives"]],
        [[0, 6, -1.3, "lives"]],
        [[0, 2, -1.35, "ends"]],
    ]
    best = ch09b.answer(steps, 2, 1.0, "bound", 4)
    assert best == (pytest.approx(-0.45), [5, 6, 2])
    assert ch09b.answer(steps, 2, 0.0, "bound", 4) == (-0.5, [2])


def test_a_recorded_tree_is_read(translator):
    name, item = ch09b.sentence_tree(translator)
    assert name == "A dog is a …" and item["symbols"][2] == "end"
    steps, most = item["trees"]["2"], item["most"]
    words = [
        [item["symbols"][i] for i in ch09b.answer(steps, 2, alpha, stop, most)[1]]
        for alpha, stop in ((0.0, "bound"), (0.0, "first"))
    ]
    assert words == [["▁Ein", "▁Hund", "end"]] * 2
    assert ch09b.answer(steps, 1, 0.0, "first", most) == (-2.4, [3, 2])


def test_words_that_show_something_are_told_apart(task, capsys):
    right = [Hypothesis(task.cutter.target.encode(a[0]), -1, -1) for a in task.answers]
    wrong = [Hypothesis([5, 2], -1, -1)] * len(right)
    assert task.right(right) == [True] * 12 and not any(task.right(wrong))
    assert task.rates(right) == ("0.0%", "0.0%")
    alike = SimpleNamespace(**vars(task), right=task.right)

    def kinds(greedy, wide, bound, first):
        alike.search = lambda stop, **_: bound if stop == "bound" else first
        return set(ch09b.telling(alike, greedy, wide))

    assert kinds(wrong, right, right, right) == {"mended"}
    assert kinds(right, wrong, wrong, wrong) == {"lost"}
    assert kinds(right, right, wrong, wrong) == {"penalised"}
    assert kinds(right, right, wrong, right) == {"hasty"}
    assert kinds(wrong, wrong, wrong, wrong) == {"wrong"}
    assert kinds(right, right, right, right) == {"same"}
    other = [Hypothesis([6, 2], -1, -1)] * len(right)
    alike.search = lambda stop, **_: [*wrong[:6], *right[6:]]
    assert ch09b.telling(alike, other, other)["penalised"][0] >= 6  # one that it mends
    assert ch09b.exchanged(task, wrong, right) == (12, 0, 12)
    assert ch09b.exchanged(task, right, [*right[:9], *wrong[9:]]) == (0, 3, 3)
    capsys.readouterr()


def test_what_comes_of_the_tasks_is_said(task):
    tasks = ch09b.tree_tasks({"same": [0], "hasty": [1], "lost": [2]}, task)
    *_, (hasty, comes), (lost, ends) = tasks
    assert task.words[1] in hasty and task.words[2] in lost
    assert "*first* stops at" in comes and "is right" in ends
    assert comes.endswith("(wrong)")
    ch09b.say_tasks(task, {"same": [0]})


def test_a_cache_that_forgets_gives_other_answers(task, monkeypatch):
    wide = task.search(beam=4, most=12)
    again = task.search(beam=4, most=12, reader=ch09b.Forgetful)
    pairs = list(zip(wide, again, strict=True))
    assert any(abs(a.log_probability - b.log_probability) > 1e-3 for a, b in pairs)
    told = []
    monkeypatch.setattr(ch09b, "say", told.append)
    ch09b.say_forgotten(task, wide)
    assert "of 12 answers change, and still 100.0% of the words are wrong" in told[0]


def test_an_error_is_the_searchs_if_a_right_answer_is_likelier(task):
    reference = task.references().tolist()
    for i in (0, 5):
        logs = [
            ch09b.log_probabilities(
                task.model,
                task.source[i : i + 1],
                torch.tensor([task.cutter.target.encode(one, end=True)]),
                start=1,
            ).item()
            for one in task.answers[i]
        ]
        assert reference[i] == pytest.approx(max(logs), abs=1e-3)
    wrong = [Hypothesis([5, 2], log - 1.0, 0.0) for log in reference]
    wrong[3] = Hypothesis([5, 2], reference[3] + 1.0, 0.0)
    assert task.search_errors(wrong, range(12)) == 11
    assert task.failed(wrong) == pytest.approx(11 / 12)
    found = {"greedy": wrong, "beam of 4": wrong}
    table = ch09b.whose_table(task, found, {"lost": [3]})
    assert cells(table)[0][2:] == ["12", "11", "1"]
    assert "0 answers change" in table.text and task.words[3] in table.text


def test_penalties_rank_the_toy(capsys):
    every = sentences()
    ch09b.check_penalties(every)
    assert capsys.readouterr().out.count("✓") == 3
    drawn = BeautifulSoup(ch09b.penalties_figure(every).text, "html.parser")
    said = drawn.select_one("[role=img]")["aria-label"]
    assert "“at once” passes “suddenly” at: plain 0.50 and GNMT's 1.52" in said


def hopeless(alive, best, alpha, most):
    return best >= alive / most**alpha


def test_a_rule_that_stops_too_late_or_too_early_is_refused(task, capsys):
    ch09b.check_bound(task, hopeless, count=6)
    assert capsys.readouterr().out.count("✓") == 3
    for broken in (
        lambda alive, best, alpha, most: best >= alive,  # the penalty is forgotten
        lambda alive, best, alpha, most: True,
    ):
        with pytest.raises(AssertionError):
            ch09b.check_bound(task, broken, count=6)


def test_what_is_finished_is_not_forgotten():
    table, seen = ch09b.table_of(AFTER), []

    def note(alive, best, alpha, most):
        seen.append(best)
        return False

    ch09b.steps_until(note, lambda ids: table[ids[:, -1]], most=4)
    assert seen == sorted(seen) and seen[-1] == pytest.approx(math.log(0.243) / 3)


def test_recorded_beams_and_stops_are_shown(translator):
    first, bound, to_end = cells(ch09b.stops_table(translator))
    assert first == ["plain, α = 1: first", "17", "5.8%", "0.980", "31.2"]
    assert bound[2] == "0.0%"
    assert to_end[0] == "plain, α = 1: to the end" and to_end[2] == "–"
    prices = cells(ch09b.price_table(translator, (2, 4)))
    found = ["−3.3", "32%", "16%", "1.0%"]
    assert prices == [["4", "8", *found, "34.0", "34.0", "34.0"]]
    page = BeautifulSoup(ch09b.wide_figure(translator).text, "html.parser")
    said = page.select_one("[role=img]")["aria-label"]
    assert "none, 4: 34.0 BLEU, length 0.960; GNMT's, α = 0.6, 1" in said


def test_samples_are_drawn_for_each_word_in_turn(task, monkeypatch):
    sources = []

    class Noting(ch09b.DecoderCache):
        def __init__(self, model, source):
            sources.append(source)
            super().__init__(model, source)

    monkeypatch.setattr(ch09b, "DecoderCache", Noting)
    ch09b.draw(task, [3, 8], 2, most=2)
    assert torch.equal(sources[0], task.source[[3, 3, 8, 8]])


def test_samples_are_drawn_by_their_probabilities(task, capsys):
    ch09b.check_samples(task, count=500)
    one, two = ch09b.draw(task, [0, 1], 5)
    for ids in (*one, *two):
        assert 2 not in ids[:-1] and len(ids) <= 25
    (alone,) = ch09b.draw(task, [1], 300)
    (_, beside) = ch09b.draw(task, [0, 1], 300, seed=1)
    likeliest = max(map(tuple, alone), key=alone.count)
    shares = [several.count(list(likeliest)) / 300 for several in (alone, beside)]
    assert shares[0] == pytest.approx(shares[1], abs=0.15)
    found = {"greedy": task.search(beam=1)}
    folded = ch09b.agreeing_table(task, min, found, count=3)
    assert folded.text.startswith("<details>")
    names = [row[0] for row in cells(folded)]
    assert names == ["greedy", "one sample", "agrees most, of 16 samples"]
    assert "✓ drawn" in capsys.readouterr().out


def test_inputs_that_are_hardly_any_are_answered_or_refused(task, capsys):
    ch09b.check_edges(task)
    assert capsys.readouterr().out.count("✓") == 6


def test_a_recorded_models_rates_are_means_of_its_seeds():
    def row(name, seed, words):
        table = [
            {"beam": k, "phonemes": 0.1, "words": words / k, "search": 0.04 / k}
            | {"model": 0.3, "sure": 0.9 + 0.02 * seed}
            for k in (1, 5, 20)
        ]
        return {"name": name, "seed": seed, "beams": table}

    rows = [row("Transformer", s, 0.3 + 0.1 * s) for s in (0, 1)]
    rows += [row("GRU", s, 0.5) for s in (0, 1)]
    greedy, five, _ = ch09b.beam_means(rows, "Transformer")
    assert greedy["words"] == pytest.approx(0.35) and five["beam"] == 5
    folded = ch09b.beams_table(rows)
    assert "repairs 24.0 to 40.0% of them" in folded.text
    table = cells(folded)
    assert table[0] == ["Transformer", "35.0%", "7.0%", "1.8%", "4.0%"]
    assert table[1][:3] == ["GRU", "50.0%", "10.0%"]
