"""ch18/memory_drawings.py: what it counts is what is kept."""

import pytest

from annotated.chapters.ch18 import memory_drawings as ch18_memory
from annotated.gpt import GPTConfig
from annotated.memory import kept_activations
from tests.shown import cells

SMALL = GPTConfig(31, d_model=14, heads=7, layers=3, d_ff=11, max_len=13)


def test_what_is_kept_here(capsys, monkeypatch):
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
    sizes = " ".join(row[2] for row in rows)
    assert sizes == "2.0 2.0 3.0 1.0 8.0 0.1 16.1 32.2 3.0"
    assert [row[0] for row in rows[-2:]] == ["2 blocks", "last norm, logits"]
    assert rows[-4][1] == "b · t · (4 + h)"  # (4 + 4) · 2500 · 4 bytes are 0.08 MB
