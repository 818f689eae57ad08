"""ch16/drawings_c.py: drafts, readings step by step, and what is said of them."""

import json

import pytest
import torch

from annotated.chapters.ch16 import drawings_c as ch16c
from annotated.data.glassllm import encode
from annotated.speculative import (
    expected_speedup,
    expected_tokens,
    speculative_sample,
)
from tests.shown import soup


def test_without_the_file_the_page_says_so():
    for html in (ch16c.missing(), ch16c.steps_explorer(None, {}, {})):
        assert "was recorded, in book/results/drafts.json" in html.text


def test_chi2_of_counts():
    counts, p = torch.tensor([10.0, 20, 30, 40]), torch.tensor([0.1, 0.2, 0.3, 0.4])
    assert ch16c.chi2(counts, p) == pytest.approx(0, abs=1e-5)
    assert ch16c.chi2(counts.flip(0), p) == pytest.approx(90 + 5 + 100 / 30 + 22.5)


def test_the_best_number_of_guesses_is_found():
    one = {"acceptance": 0.6, "cost": 0.2, "written": []}
    assert ch16c.best_theory(one) == (expected_speedup(0.6, 2, 0.2), 2)
    assert ch16c.best_theory(one | {"cost": 0.0})[1] == 8
    rows = [{"guesses": t, "seconds": s} for t, s in ((1, 4.0), (2, 2.0), (3, 8.0))]
    assert ch16c.measured({"written": rows}, 3.0) == (0.375, 1.5)


def test_the_model_alone_takes_the_median_of_its_times():
    assert ch16c.seconds_alone({"seconds alone": [3.0, 1.0, 2.0]}) == 2


# ---- the explorer --------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(model, drafts):
    shares = {name: 0.1 * i for i, name in enumerate(drafts)}
    return soup(ch16c.steps_explorer(model, drafts, shares))


@pytest.mark.slow
def test_the_explorer_is_checked_against_the_module(shown, model, drafts):
    checks = json.loads(shown.select_one(".annotated-explorer-checks").text)
    data = json.loads(shown.select_one(".annotated-explorer-data").text)
    assert len(shown.select_one(".annotated-explorer-data").text) < 250_000
    assert [*data["runs"]] == [option.text for option in shown.select("option")]
    prompt = torch.tensor([encode(data["prompt"])])
    for check in checks:
        label, t = check["state"]["draft"], check["state"]["guesses"]
        (name,) = (n for n, label_ in ch16c.OFFERED.items() if label_ == label)
        found = speculative_sample(
            model,
            drafts[name],
            prompt,
            max_new_tokens=ch16c.LONG,
            guesses=t,
            generator=torch.Generator().manual_seed(0),
        )
        number = check["state"]["reading"]
        tokens = sum(found.kept[:number]) + number
        a = 0.1 * [*drafts].index(name)
        assert data["kept"][label] == pytest.approx(a)
        assert check["values"] == {
            "tokens": tokens,
            "kept": found.kept[number - 1],
            "mean": pytest.approx(tokens / number),
            "formula": pytest.approx(expected_tokens(a, t)),
        }
    assert len(checks) >= 25


@pytest.mark.slow
def test_every_run_writes_as_many_tokens(shown):
    data = json.loads(shown.select_one(".annotated-explorer-data").text)
    most = 0
    for runs in data["runs"].values():
        assert [*runs] == [str(t) for t in ch16c.AT_ONCE]
        for t, run in runs.items():
            assert sum(one["kept"] + 1 for one in run) == ch16c.LONG
            assert max(len(one["guesses"]) for one in run) == int(t)
            most = max(most, len(run))
    slider = shown.select_one("[data-name=reading]")
    first = data["runs"]["pairs, averaged"]["4"][int(slider["value"])]
    assert 0 < first["kept"] < len(first["guesses"])  # it begins with a refusal
    answer = shown.select_one("details p").text
    low, high = (expected_tokens(0.1 * i, 4) for i in (0, 6))
    assert f"gives {low:.1f} with" in answer and f"{high:.1f} with the first" in answer
    assert json.loads(slider["data-values"]) == [*range(1, most + 1)]
