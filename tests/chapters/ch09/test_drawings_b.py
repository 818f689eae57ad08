"""ch09/drawings_b.py: its searches are the module's, and faults are refused."""

import math
from types import SimpleNamespace

import pytest
import torch

from annotated.chapters.ch09 import drawings_b as ch09b
from annotated.recipes.translation import spelling_task, translation_model
from annotated.search import STOPS, Hypothesis, beam_search
from tests.defined import defined
from tests.shown import cells

PAGE = "09b_search"
sentences, AFTER, by_hand = defined(PAGE, "sentences", "AFTER", "beam")


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


def test_the_toy_has_seven_sentences_and_greedy_misses_the_best():
    every, table = sentences(), ch09b.table_of(AFTER)
    assert len(every) == 7
    ch09b.check_toy(every, by_hand, table)
    with pytest.raises(AssertionError):
        ch09b.check_toy(every, lambda *given: by_hand(*given)[1:], table)
    assert ch09b.said(ch09b.search_table(table, beam=1)[0].tokens) == "at once"
    assert ch09b.said(ch09b.search_table(table, beam=2)[0].tokens) == "suddenly"
    assert cells(ch09b.trace_of_toy(by_hand, table))[1:] == [
        ["1", "at 0.450, suddenly 0.350", "–", "all 0.200"],
        ["2", "at once 0.243, at first 0.207", "suddenly 0.315", "suddenly at 0.035"],
        ["3", "–", "at once 0.243, at first 0.207", "–"],
    ]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_penalty_and_a_stop_choose_from_a_tree_as_the_module_does(task, alpha, stop):
    for i in range(3):
        source = task.source[i : i + 1]
        after = ch09b.continues(task.model, source)
        for width in ch09b.BEAMS:
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


def test_a_recorded_tree_is_read():
    tree = [
        "0 ▁Ein -0.1 lives  0 ▁Da -2.0 dropped",
        "0 <end> -2.4 ends  0 ▁Hund -0.5 lives",
        "0 <end> -0.75 ends  0 ▁Hund -9.0 lives",
    ]
    sentence = {"source": "A dog is a dog.", "reference": "Ein Hund."}
    sentence["trees"] = {"1": tree, "2": tree}
    name, item = ch09b.sentence_tree({"trees": [sentence]})
    assert name == "A dog is a …" and item["symbols"][2] == "end"
    steps, most = item["trees"]["2"], item["most"]
    words = [
        [item["symbols"][i] for i in ch09b.answer(steps, 2, alpha, stop, most)[1]]
        for alpha, stop in ((0.0, "bound"), (0.0, "first"))
    ]
    assert words == [["▁Ein", "▁Hund", "end"]] * 2
    assert ch09b.answer(steps, 1, 0.0, "first", most) == (-2.4, [3, 2])


def test_words_that_show_something_are_told_apart(task):
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


def test_a_cache_that_forgets_gives_other_answers(task):
    wide = task.search(beam=4, most=12)
    again = task.search(beam=4, most=12, reader=ch09b.Forgetful)
    pairs = list(zip(wide, again, strict=True))
    assert any(abs(a.log_probability - b.log_probability) > 1e-3 for a, b in pairs)


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


def test_a_rule_that_stops_too_late_or_too_early_is_refused(task, capsys):
    ch09b.check_bound(task, defined(PAGE, "hopeless"), count=6)
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
    assert "✓ drawn" in capsys.readouterr().out
