"""Pages 20b and 20c: public faults, scorers, and a model of Hugging Face."""

import inspect
import itertools
import re
from pathlib import Path

import pytest
import torch

from annotated import probes
from annotated.chapters.ch20 import drawings_b as ch20b
from annotated.chapters.ch20 import faults, public, scorers, yours
from annotated.probes import NAMES, Outcome

ROOT = Path(__file__).resolve().parents[3]
PUBLIC = public.public_faults()
TEXTS = torch.tensor([*itertools.product(range(4), repeat=5)])


def test_thirty_reports_half_of_them_new():
    reports = {one.report for one in PUBLIC}
    assert len(PUBLIC) == len(reports) == len({one.fault for one in PUBLIC}) == 30
    assert sum(one.year == 2026 for one in PUBLIC) >= 15
    assert {one.year for one in PUBLIC} <= set(range(2018, 2027))


@pytest.mark.parametrize("one", PUBLIC, ids=lambda one: one.fault)
def test_each_is_said_in_a_line_and_shown_in_a_few(one):
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", one.report)
    assert one.family in NAMES
    assert max(len(one.wrong.split()), len(one.effect.split())) <= 20
    lines = one.code.splitlines()
    assert lines[0].startswith((f"class {one.fault}(", f"def {one.fault}("))
    assert len(lines) <= 18


@pytest.mark.parametrize("name", ["end_is_padding", "FrontCounted", "CacheOfTarget"])
def test_a_probe_answers_and_leaves_random_numbers_alone(name):
    state = torch.get_rng_state()
    said = public.ask(name)
    assert said.state == "failed" and said.name == faults.FAULTS[name].family
    assert torch.equal(state, torch.get_rng_state())
    assert said.said in ch20b.told(name).text


def test_the_table_has_a_row_for_each():
    said = {one.fault: Outcome(one.family, "failed", "<seen>") for one in PUBLIC}
    text = ch20b.public_table(said).text
    assert text.count("<tbody>") == text.count("✗") == 30
    assert "&lt;seen&gt;" in text and "<seen>" not in text
    assert '<a href="https://github.com/ndif-team/nnsight/issues/672">' in text


def test_what_followed_before_by_loops():
    wanted = torch.zeros(len(TEXTS), 4, 4, dtype=torch.bool)
    for row, text in enumerate(TEXTS.tolist()):
        for i, j in itertools.product(range(4), repeat=2):
            if j < i and text[j] == text[i]:
                wanted[row, i, text[j + 1]] = True
    assert torch.equal(scorers.followers(TEXTS), wanted)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_cache_for_every_token_keeps_the_sum(share):
    model = scorers.small_model()
    p = scorers.blended(model, TEXTS, share, for_all=True)
    assert torch.allclose(p.sum(-1), torch.ones(()).double())
    sums = {
        every: scorers.with_cache(model, TEXTS, share, every).exp().sum().item()
        for every in (False, True)
    }
    assert sums[True] == pytest.approx(1, abs=1e-9)
    assert (sums[False] > 1.1) == (share > 0)


def test_the_page_shows_the_function_that_was_recorded():
    page = (ROOT / "notebooks/src/20c_your_model.py").read_text("utf-8")
    lines = inspect.getsource(yours.ask_gpt2).splitlines()
    code = [line.strip() for line in lines if '"""' not in line and line.strip()]
    shown = [line.strip() for line in page.splitlines()]
    assert "".join(code) in "".join(shown)


def test_without_the_library_the_record_is_shown():
    def lacks(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    record = {"reports": ["one", "two"]}
    assert yours.here_or_recorded(lambda: [1, 2], record) == ["1", "2"]
    found = yours.here_or_recorded(lambda: lacks("transformers"), record)
    assert found == ["one", "two"]
    with pytest.raises(ModuleNotFoundError, match="torch"):
        yours.here_or_recorded(lambda: lacks("torch"), record)


def test_what_is_not_told_is_not_asked_and_each_switch_finds_one():
    assert yours.told("3", False, False, False).count("·") == 3
    found = {
        name: [line[2:5] for line in yours.told(name, True, True, True).split("\n")
               if line.startswith("✗")]
        for name in yours.MODELS
    }  # fmt: skip
    assert found == {"1": [], "2": ["pad"], "3": ["cac"], "4": ["los"]}
    short = "model: 1 failed\n✓ a: passed. x\n✗ b c: failed. y"
    assert yours.lines(short, "b c") == "model: 1 failed\n✗ b c: failed. y"


@pytest.mark.parametrize("pad", [False, True])
def test_a_frame_says_what_the_call_with_its_switches_says(pad):
    given = {"pad": 0} if pad else {}
    given["loss"] = faults.padding_counts
    said = probes.probe(faults.Small(), faults.texts(), only="loss", **given)["loss"]
    assert (said.state == "failed") == pad
    frame = yours.told("4", pad=pad, step=False, loss=True)
    assert yours.wrapped(said) in frame
