"""Tables of what `make gpu` measured."""

import json

import pytest
from bs4 import BeautifulSoup

from annotated.page import gpu

MADE = {"card": "A card", "torch": "2.13.0", "date": "2026-11-29"}
ATTENTION = [
    {"way": "fused", "length": 1024, "backward": False, "ms": 1.0, "peak": 1},
    {"way": "fused", "length": 1024, "backward": True, "ms": 2.345, "peak": 1},
    {"way": "fused", "length": 2048, "backward": True, "failed": "CUDA out of memory"},
    {"way": "flex", "length": 1024, "backward": True, "failed": "RuntimeError: no"},
]
STEP = [
    {"way": "float16", "batch": 4, "ms": 98.76, "peak": 5.26e9},
    {"way": "float32", "batch": 4, "ms": 150.0, "peak": 7.01e9, "predicted": 6.9e9},
]
DECODING = [
    {"batch": 8, "cache": True, "tokens a second": 1234.5},
    {"batch": 8, "cache": False, "tokens a second": 99.0},
]


@pytest.mark.parametrize(
    "name, table, rows, seen",
    [
        (
            "attention",
            gpu.attention_on_gpu,
            ATTENTION,
            [
                ["fused", "2.35", "no room", *["not yet"] * 5],
                ["flex", "refused", *["not yet"] * 6],
            ],
        ),
        (
            "step",
            gpu.step_on_gpu,
            STEP,
            [
                ["float16, 4 texts", "98.8", "5.3", ""],
                ["float32, 4 texts", "150", "7.0", "6.9"],
            ],
        ),
        ("decoding", gpu.decoding_on_gpu, DECODING, [["8", "1,234", "99"]]),
    ],
)
def test_a_record_is_shown_where_it_exists(
    name, table, rows, seen, tmp_path, monkeypatch
):
    monkeypatch.setattr(gpu, "FOLDER", tmp_path)
    assert table() is None
    (tmp_path / f"{name}.json").write_text(
        json.dumps({"provenance": MADE, "of": 9, "rows": rows})
    )
    soup = BeautifulSoup(table()._repr_html_(), "html.parser")
    rows = soup.select("tbody tr")
    assert [[cell.get_text() for cell in row.select("th, td")] for row in rows] == seen
    assert "on one A card (PyTorch 2.13.0, 2026-11-29)" in soup.get_text()
