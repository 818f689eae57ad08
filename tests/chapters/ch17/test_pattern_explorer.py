"""ch17/pattern_explorer.py: what the browser is compared with is right."""

import json
from itertools import product
from pathlib import Path

import pytest
import torch

from annotated.chapters.ch17 import pattern_explorer as explorer

PATTERNS = [
    dict(zip(("window", "stride", "global", "causal"), each, strict=True))
    for each in product((1, 4, 32), explorer.STRIDES, explorer.GLOBALS, (True, False))
]
RECORD = {
    "rows": [
        {"window": 4, "stride": None, "global": False, "bits": 2.5, "seed": 0},
        {"window": 4, "stride": 0, "global": False, "bits": 2.25, "seed": 1},
        {"window": 8, "stride": 4, "global": True, "bits": 2.0, "seed": 0},
        {"window": 1, "stride": 4, "global": "every 8th", "bits": 3.0, "seed": 0},
    ]
}


def sees(state, i, j):
    """Whether i sees j, in other words."""
    stride = {"none": 10**9, "every 4th": 4, "every 8th": 8, "every 16th": 16}
    chosen = {"none": (), "the first": (0,), "every 8th": range(0, 999, 8)}
    apart = abs(i - j)
    if state["causal"] and j > i:
        return False
    near = apart < state["window"] or apart % stride[state["stride"]] == 0
    return near or i in chosen[state["global"]] or j in chosen[state["global"]]


@pytest.mark.parametrize("state", PATTERNS)
def test_patterns_and_their_pairs_are_those_of_the_controls(state):
    for t in (1, 32, 53):
        mask = explorer.pattern_of(state, t).mask(t)[0, 0]
        wanted = torch.tensor([[sees(state, i, j) for j in range(t)] for i in range(t)])
        assert torch.equal(mask, wanted)
        assert explorer.pairs_of(state, t) == int(wanted.sum())


def test_seeds_of_a_pattern_come_together():
    found = {"4 0 0": [2.5, 2.25], "8 4 32": [2.0], "1 4 8": [3.0]}
    assert explorer.trained(RECORD) == found


def test_models_were_trained_for_every_causal_pattern():
    results = Path(__file__).parents[3] / "book" / "results"
    names = "pattern_grid", "pattern_grid_further"
    records = [json.loads((results / f"{name}.json").read_text()) for name in names]
    rows = [row for record in records for row in record["rows"]]
    controls = explorer.WINDOWS, explorer.STRIDES.values(), explorer.GLOBALS.values()
    bits = explorer.trained({"rows": rows})
    assert {*bits} == {" ".join(map(str, each)) for each in product(*controls)}
    _, answer = explorer.fewest(True)
    assert len(bits[f"{answer['window']} 0 8"]) == 3
    assert len({json.dumps(one["text"]) for one in records}) == 1
    assert len({one["steps"] for one in records}) == 1


def test_the_fewest_pairs_within_two_layers():
    pairs, state = explorer.fewest(True)
    assert (pairs, state["window"], state["global"]) == (219, 4, "every 8th")
    pairs, state = explorer.fewest(False)
    assert (pairs, state["window"], state["global"]) == (94, 1, "the first")
    assert explorer.fewest(True, 31)[0] == 63  # a window of 2
