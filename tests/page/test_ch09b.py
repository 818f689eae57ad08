"""annotated/page/ch09b.py: its searches are the module's, and faults are refused."""

import math

import pytest
import torch
from bs4 import BeautifulSoup

from annotated.page import ch09b
from annotated.recipes.translation import spelling_task, translation_model
from annotated.search import Hypothesis, beam_search

AFTER = {
    "start": {"at": 0.45, "suddenly": 0.35, "all": 0.20},
    "at": {"once": 0.55, "first": 0.45},
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
    ch09b.found_in_toy(by_hand, table)
    drawn = BeautifulSoup(ch09b.tree(every, AFTER).text, "html.parser")
    assert "Greedy decoding writes at once" in drawn.svg["aria-label"]
    assert "0.315 ← best" in drawn.text and "0.248 ← greedy" in drawn.text
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


def test_the_explorer_holds_a_tree_for_each_word_and_width(task):
    found = task.search(beam=3, most=ch09b.MOST)
    html = ch09b.tree_explorer(task, found, found).text
    assert f"“{task.words[ch09b.telling(task, found, found)[0]]}”" in html


def test_words_that_a_beam_mends_come_first(task):
    right = [Hypothesis(task.cutter.target.encode(a[0]), -1, -1) for a in task.answers]
    wrong = [Hypothesis([5, 2], -1, -1)] * len(right)
    assert task.right(right) == [True] * 12 and not any(task.right(wrong))
    mended = ch09b.telling(task, wrong, right)
    assert len(mended) == 3
    mixed = right[: mended[0]] + wrong[mended[0] : mended[0] + 1]
    mixed += right[mended[0] + 1 :]
    assert ch09b.telling(task, mixed, right)[0] == mended[0]
    assert task.rates(right) == ("0.0%", "0.0%")


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
    assert cells(ch09b.whose_table(task, {"any": wrong}))[0][2:] == ["12", "11", "1"]


def test_penalties_rank_the_toy(capsys):
    every = sentences()
    ch09b.check_penalties(every)
    assert capsys.readouterr().out.count("✓") == 3
    assert cells(ch09b.ranking(every, 0.6, "plain"))[0][0] == "at once"
    first = cells(ch09b.ranking(every, 0.6, "gnmt"))[0]
    score = math.log(0.315) / (7 / 6) ** 0.6
    assert first == ["suddenly", "2", "−1.16", "1.10", ch09b.minus(score, 2)]


def test_ways_to_stop_are_compared(task, capsys):
    first, bound, never = cells(ch09b.stops_table(task, count=6))
    assert float(first[1]) <= float(bound[1]) <= float(never[1]) == 30.0
    assert bound[2:] == never[2:]
    ch09b.check_bound(task, count=6)
    assert capsys.readouterr().out.count("✓") == 2


def test_samples_are_drawn_by_their_probabilities(task, capsys):
    torch.manual_seed(0)
    ch09b.check_samples(task, count=500)
    for ids in ch09b.draw(task, 0, 5):
        assert 2 not in ids[:-1] and len(ids) <= 25
    found = {"greedy": task.search(beam=1)}
    names = [row[0] for row in cells(ch09b.agreeing_table(task, min, found, count=3))]
    assert names == ["greedy", "one sample", "agrees most, of 16 samples"]
    assert len(cells(ch09b.lengths_table(task))) == 5
    assert "✓ drawn" in capsys.readouterr().out


def test_inputs_that_are_hardly_any_are_answered_or_refused(task, capsys):
    ch09b.check_edges(task)
    assert capsys.readouterr().out.count("✓") == 6


def test_a_recorded_models_rates_are_means_of_its_seeds(capsys):
    def row(name, seed, words):
        table = [
            {"beam": k, "phonemes": 0.1, "words": words / k, "search": 0.04 / k}
            | {"model": 0.3, "sure": 0.9 + 0.02 * seed}
            for k in (1, 5)
        ]
        return {"name": name, "seed": seed, "beams": table}

    rows = [row("Transformer", s, 0.3 + 0.1 * s) for s in (0, 1)]
    rows += [row("GRU", s, 0.5) for s in (0, 1)]
    greedy, five = ch09b.beam_means(rows, "Transformer")
    assert greedy["words"] == pytest.approx(0.35) and five["beam"] == 5
    page = BeautifulSoup(ch09b.beams_figure(rows).text, "html.parser")
    alt = page.select_one("[role=img]")["aria-label"]
    assert "GRU, beam of 1: 50.0% of words wrong, 4.0% by the search" in alt
    ch09b.say_beams(rows)
