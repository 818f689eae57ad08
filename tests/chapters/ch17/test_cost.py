"""ch17/cost.py: where blocks and the fused kernel meet, and which way is best."""

import pytest

from annotated.chapters.ch17 import cost as page


def window(size, allowed, ratio, forward=1.0):
    kinds = {"both": ratio, "forward": forward}
    return {"pattern": f"window {size}", "allowed": allowed} | {
        kind: {"blocks of 64": {"to fused": [0.9 * r, r, 1.1 * r]}}
        for kind, r in kinds.items()
    }


COST = {
    "config": {"length": 1000},
    "by sparsity": [
        window(64, 0.05005, 0.125),
        window(256, 0.1001, 0.5, forward=0.5),
        window(1024, 0.4004, 2.0, forward=8.0),
        {"pattern": "strided, 1", "allowed": 0.0125},
    ],
}


def test_shares_are_of_causal_pairs():
    found = [share for share, _ in page.windows(COST)]
    assert found == pytest.approx([0.1, 0.2, 0.8])


def test_blocks_cross_where_logarithms_meet_one():
    # from (0.2, 1/2) to (0.8, 2): halfway between, by logarithms
    assert page.crossing(COST, "blocks of 64") == pytest.approx(0.4)
    always = COST | {"by sparsity": COST["by sparsity"][:2]}
    assert page.crossing(always, "blocks of 64") is None
    assert page.crossing(COST, "blocks of 64", "forward") == pytest.approx(
        0.8**0.25 * 0.2**0.75
    )


def test_sparse_attention_keeps_weights_and_copies_of_keys():
    kept = page.kept_bytes_of(256, window=16, block=8)
    rows = 4 * 2 * 256 * 32  # one of q, k, v, o
    assert 4 * rows <= kept["fused"] < 5 * rows < kept["sparse"]
