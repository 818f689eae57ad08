"""ch18/memory.py: what it draws and says is what was recorded."""

import json
import re
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib import pyplot

from annotated.chapters.ch18 import memory_drawings as ch18_memory
from annotated.gpt import GPTConfig
from annotated.memory import kept_activations, memory_timeline

ROOT = Path(__file__).resolve().parents[2]
RECORD = json.loads((ROOT / "book" / "results" / "memory_use.json").read_text())
PARTS = ["parameters", "optimizer", "gradients", "activations", "temporary"]
SMALL = GPTConfig(31, d_model=14, heads=7, layers=3, d_ff=11, max_len=13)


def cells(html):
    rows = BeautifulSoup(html.text, "html.parser").select("tr")
    return [[cell.text for cell in row.select("th, td")] for row in rows]


@pytest.fixture
def shown(monkeypatch):
    """What a function shows: figure and words."""
    seen = []
    monkeypatch.setattr(
        ch18_memory, "show", lambda figure, **words: seen.append((figure, words))
    )
    yield seen
    pyplot.close("all")


def test_the_record_keeps_its_bands():
    assert len(RECORD["config"]) == 3 and len(RECORD["rows"]) == 13
    for row in RECORD["rows"]:
        assert abs(row["total"] / row["counted"] - 1) < 0.05
        assert abs(row["total"] / row["resident"] - 1) < 0.1
    for name, told in RECORD["config"].items():
        config = GPTConfig(**told["config"])
        for row in (row for row in RECORD["rows"] if row["model"] == name):
            moments = memory_timeline(
                config, told["batch"], told["length"], **row["options"]
            )
            assert moments[row["moment"]]._asdict() == row["predicted"]
            assert row["total"] == max(use.total for use in moments.values())


def test_options_in_words():
    words = [ch18_memory.ways(row["options"]) for row in RECORD["rows"]]
    assert words[:3] == ["as it is", "checkpoints", "autocast"]
    assert words[6:10] == [
        "autocast, checkpoints", "bfloat16 alone", "SGD", "accumulating"
    ]  # fmt: skip


def test_areas_are_the_prediction_and_the_line_is_the_count(shown):
    ch18_memory.timeline_figure(RECORD)
    ((figure, words),) = shown
    (ax,) = figure.axes
    told = RECORD["timeline"]
    moments = [*told["moments"].values()]
    assert [area.get_label() for area in ax.collections] == [
        "parameters", "Adam's two numbers", "gradients", "activations", "temporary"
    ]  # fmt: skip
    for i, area in enumerate(ax.collections):
        tops = area.get_paths()[0].vertices
        wanted = max(sum(use[part] for part in PARTS[: i + 1]) for use in moments)
        assert tops[:, 1].max() == pytest.approx(wanted / 1e6)
    for line, seen in zip(ax.lines, told["seen"].values(), strict=True):
        wanted = [(told["held before"] + size) / 1e6 for size in seen]
        assert line.get_ydata().tolist() == pytest.approx(wanted)
    ends = [line.get_xdata()[-1] for line in ax.lines]
    assert ends == pytest.approx([0.45, 0.9, 1.0])
    # where the line is highest, the areas are, too
    x = ax.collections[-1].get_paths()[0].vertices
    highest = x[x[:, 1].argmax(), 0]
    seen = ax.lines[1].get_ydata()
    assert highest == pytest.approx(ax.lines[1].get_xdata()[seen.argmax()])
    peak = told["moments"]["loss"]
    assert f"at the loss: {sum(peak.values()) / 1e6:.0f} MB" in words["alt"]
    assert f"{peak['activations'] / 1e6:.0f} of activations" in words["alt"]


def test_the_line_stays_close_to_the_areas():
    """What is drawn agrees at both turning points and at the end of each phase."""
    told = RECORD["timeline"]
    moments = {name: sum(use.values()) for name, use in told["moments"].items()}
    before = told["held before"]
    for phase, name in (("forward", "logits"), ("backward", "loss")):
        counted = before + max(told["seen"][phase])
        assert moments[name] == pytest.approx(counted, rel=0.01)
    gradients = told["moments"]["update"]["gradients"]
    assert told["seen"]["backward"][-1] == pytest.approx(gradients, rel=0.01)
    assert told["seen"]["update"][-1] == 0


def test_bars_are_the_parts_and_marks_what_was_measured(shown):
    ch18_memory.where_figure(RECORD)
    ((figure, words),) = shown
    for ax, model in zip(figure.axes, RECORD["config"], strict=True):
        rows = [row for row in RECORD["rows"] if row["model"] == model][:3]
        assert ax.get_title("left") == model or ax.get_title() == model
        for container, part in zip(ax.containers, PARTS, strict=True):
            widths = [bar.get_width() for bar in container]
            sizes = [row["predicted"][part] / 1e6 for row in rows]
            assert widths == pytest.approx(sizes)
        ends = [bar.get_x() + bar.get_width() for bar in ax.containers[-1]]
        assert ends == pytest.approx([row["total"] / 1e6 for row in rows])
        marks = [line.get_xdata()[0] for line in ax.lines]
        assert marks == pytest.approx([row["resident"] / 1e6 for row in rows])
    row = RECORD["rows"][0]
    assert (
        f"characters, as it is: predicted {row['total'] / 1e6:.0f}, "
        f"measured {row['resident'] / 1e6:.0f}" in words["alt"]
    )


def test_the_worst_run_is_said():
    said = ch18_memory.memory_said(RECORD)
    shares = [float(share) / 100 for share in re.findall(r"([\d.]+)%", said)]
    for share, key in zip(shares, ("counted", "resident"), strict=True):
        worst = max(abs(row["total"] / row[key] - 1) for row in RECORD["rows"])
        assert share == pytest.approx(worst, abs=6e-4)
    assert said.startswith("In 13 runs")
    sizes = {
        ch18_memory.ways(row["options"]): row["resident"] / 1e6
        for row in RECORD["rows"]
        if row["model"] == "GPT-2 small"
    }
    assert f"{sizes['autocast']:,.0f} MB instead of {sizes['as it is']:,.0f}" in said


def test_what_is_kept_here(capsys, monkeypatch):
    torch.manual_seed(0)
    ch18_memory.check_kept(SMALL, 3, 5)
    lines = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if line.startswith("✓")]
    parts = kept_activations(SMALL, 3, 5)
    size = parts["embedding"] + 3 * parts["block"] + parts["output"]
    assert lines[0] == f"✓ float32: {size:,} bytes kept, as predicted"
    assert [line.split(":")[0] for line in lines] == [
        "✓ float32", "✓ autocast", "✓ bfloat16 alone"
    ]  # fmt: skip
    monkeypatch.setattr(ch18_memory, "kept_bytes", lambda *_: size + 4)
    with pytest.raises(AssertionError, match="float32"):
        ch18_memory.check_kept(SMALL, 3, 5)


def test_a_block_tensor_by_tensor():
    config = GPTConfig(96, d_model=100, heads=4, d_ff=400, activation="gelu")
    rows = cells(ch18_memory.block_table(config, 25, 100))[1:]
    # a stream is 25 · 100 · 100 · 4 bytes: one MB
    assert [row[2] for row in rows] == [
        "2.0",
        "2.0",
        "3.0",
        "1.0",
        "8.0",
        "0.1",
        "16.1",
        "32.2",
        "3.0",
    ]
    assert [row[0] for row in rows[-2:]] == ["2 blocks", "last norm, logits"]
    assert rows[-4][1] == "b · t · (4 + h)"  # (4 + 4) · 2500 · 4 bytes are 0.08 MB


def test_bytes_of_a_parameter():
    rows = cells(ch18_memory.bytes_table())[1:]
    assert rows == [
        ["float32", "4", "4", "8", "16"],
        ["autocast", "4", "4", "8", "16"],
        ["bfloat16 alone", "2", "2", "4", "8"],
        ["bfloat16, float32 copy", "2 + 4", "2", "8", "16"],
    ]


def test_the_estimate_and_the_count():
    found = ch18_memory.attention_matrices()
    assert [round(n) for n in found["written out"]] == [1, 3]
    assert all(n < 0.2 for n in found["fused"])
    rows = cells(ch18_memory.source_arithmetic())[1:]
    assert [row[2] for row in rows] == [
        "4 MB", "64 MB", "256 MB", "1", "3", "44", "0", "3"
    ]  # fmt: skip
    assert [row[1] for row in rows if row[1]] == ["250 MB", "4", "12"]
