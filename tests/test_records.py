"""book/results: every record is of the code as it is."""

import json
import subprocess
import sys
from types import ModuleType

import pytest
import torch

from benchmarks import record
from benchmarks.__main__ import main
from benchmarks.record import TOLERANCE, Enough, first_steps, names, stale
from tools import definitions


def test_every_benchmark_is_recorded_and_every_record_has_a_benchmark():
    assert names() == sorted(path.stem for path in record.RESULTS.glob("*.json"))


@pytest.mark.parametrize("name", names())
def test_a_record_is_of_the_code_as_it_is(name):
    changed = "; ".join(stale(name))
    assert not changed, (
        f"what {name} uses has changed since it was recorded ({changed}): "
        f"python -m benchmarks --confirm {name}, or, if that fails, run it again"
    )


BANDED = [name for name in names() if "\ndef bands(" in record.source(name)]


@pytest.mark.parametrize("name", BANDED)
def test_a_record_is_in_its_bands(name):
    _, _, body = record.source(name).partition("\ndef bands(")
    assert "  assert " in body, "these bands cannot fail"
    record.bands(name, record.read(name))


# ---- how it is told --------------------------------------------------------------

BENCHMARK = """
import torch

RATE = 0.1


def run() -> dict:
    '''Train.'''
    torch.manual_seed(0)
    x = torch.nn.Parameter(torch.randn(4))
    optimizer = torch.optim.SGD([x], RATE)
    for step in range(30):
        optimizer.zero_grad()
        x.square().sum().backward()
        optimizer.step()
    return {"steps": step + 1, "end": x.norm().item()}
"""


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """``python -m benchmarks`` in a repository of one benchmark, "small"."""

    def git(*arguments: str) -> None:
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True)

    def bench(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        definitions._module.cache_clear()  # files are read once in a process
        definitions._definition.cache_clear()
        return main(), capsys.readouterr().out

    def write(text: str) -> None:
        (tmp_path / "benchmarks/ch01/small.py").write_text(text)
        module = ModuleType("benchmarks.ch01.small")
        exec(text, vars(module))
        monkeypatch.setitem(sys.modules, "benchmarks.ch01.small", module)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "ROOT", tmp_path)
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    for folder in ("benchmarks", "benchmarks/ch01", "annotated", "results"):
        (tmp_path / folder).mkdir()
    for folder in ("benchmarks", "benchmarks/ch01", "annotated"):
        (tmp_path / folder / "__init__.py").write_text("")
    write(BENCHMARK)
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "-m", "all")
    bench.write = write
    bench.result = tmp_path / "results/small.json"
    return bench


def test_a_record_is_made_becomes_stale_and_is_confirmed(bench):
    assert bench("small")[0] == 0
    first = json.loads(bench.result.read_text())
    assert first["steps"] == 30
    assert len(first["provenance"]["first_steps"]) == record.STEPS
    assert bench("--status") == (0, "")

    bench.write(BENCHMARK.replace("'''Train.'''", "# nothing"))
    assert bench("--status") == (0, "")
    bench.write(BENCHMARK.replace("RATE = 0.1", "RATE = 0.2 / 2").replace("30", "40"))
    what = ", ".join(f"benchmarks.ch01.small.{name}" for name in ("RATE", "run"))
    assert bench("--status") == (1, f"small\n  changed: {what}\n")

    assert bench("--confirm", "small")[0] == 0
    assert bench("--status") == (0, "")
    second = json.loads(bench.result.read_text())
    assert second["provenance"].pop("confirmed") == "its first steps are the same"
    for result in (first, second):
        del result["provenance"]["definitions"]
    assert first == second, "the run stays that of 30 steps"


def test_first_steps_say_nothing_of_what_is_called_later(bench):
    later = "\n\ndef judge(x):\n    return x\n"
    text = BENCHMARK.replace("x.norm()", "judge(x.norm())") + later
    bench.write(text)
    bench("small")
    bench.write(text.replace("return x\n", "return 2 * x\n"))
    status, said = bench("--confirm", "small")
    assert status == 1 and "do not call benchmarks.ch01.small.judge" in said


def test_other_first_steps_confirm_nothing(bench):
    bench("small")
    before = bench.result.read_text()
    bench.write(BENCHMARK.replace("0.1", str(0.1 * (1 + 2 * TOLERANCE))))
    status, said = bench("--confirm", "small")
    assert status == 1 and "its first steps are others now" in said
    assert bench.result.read_text() == before


def test_a_run_without_training_is_confirmed_with_a_reason_alone(bench):
    bench.write("def run() -> dict:\n    return {'x': 1}\n")
    bench("small")
    bench.write("def run() -> dict:\n    return {'x': 2 - 1}\n")
    status, said = bench("--confirm", "small")
    assert status == 1 and "no first steps are recorded" in said
    assert bench("--confirm", "small", "--because", "it adds up")[0] == 0
    assert bench("--status") == (0, "")
    made = json.loads(bench.result.read_text())["provenance"]
    assert made["confirmed"] == "it adds up" and made["commit"].endswith("-dirty")


def test_a_record_without_first_steps_gets_them_while_nothing_has_changed(bench):
    bench("small")
    first = json.loads(bench.result.read_text())
    steps = first["provenance"].pop("first_steps")
    bench.result.write_text(json.dumps(first))
    assert bench("--confirm", "small")[0] == 0
    assert json.loads(bench.result.read_text())["provenance"]["first_steps"] == steps
    bench.result.write_text(json.dumps(first))
    bench.write(BENCHMARK.replace("0.1", "0.2"))
    assert bench("--confirm", "small")[0] == 1, "they may be those of another run"


def test_a_record_that_misses_a_band_is_kept_and_told(bench):
    bench.write(
        BENCHMARK
        + """

def bands(record):
    assert record["end"] < 0, "it ends above 0"
"""
    )
    with pytest.raises(AssertionError, match="it ends above 0"):
        bench("small")
    assert json.loads(bench.result.read_text())["end"] > 0


def test_an_unknown_benchmark_is_named(bench, capsys):
    with pytest.raises(SystemExit, match="2"):
        bench("--status", "smal")
    assert "among small; got smal" in capsys.readouterr().err


def test_the_first_steps_are_the_largest_gradients_before_each_step():
    x = torch.nn.Parameter(torch.tensor([1.0, -3.0]))
    empty, unused = torch.nn.Parameter(torch.ones(0)), torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([x, empty, unused], lr=0.5)

    def step():
        optimizer.zero_grad()
        (x.square().sum() + empty.sum()).backward()
        optimizer.step()

    with first_steps() as seen:
        step()
        step()
    assert seen == [6.0, 0.0]
    step()
    assert len(seen) == 2, "the hook is gone"
    with first_steps(only=True) as seen:
        try:
            while True:
                step()
        except Exception:
            pytest.fail("the end must pass by a benchmark's own handlers")
    assert len(seen) == record.STEPS and not issubclass(Enough, Exception)
