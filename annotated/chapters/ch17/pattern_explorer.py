"""Chapter 17's explorer of patterns: who sees whom, who hears from whom, what it costs.

Letters: t positions, w window, l stride (``book/notation.md``).
"""

from collections.abc import Mapping
from functools import reduce
from itertools import product
from operator import or_
from statistics import fmean
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from annotated.page.frames import Choice, Html, Slider, Switch, explorer, static
from annotated.sparse import (
    Pattern,
    block_layout,
    global_pattern,
    layers_to_reach,
    local_pattern,
    reach,
    strided_patterns,
)

POSITIONS, BLOCK = 32, 8  #: t, and positions in a block
WINDOWS = 1, 2, 4, 8, 16, 32
STRIDES = {"none": 0, "every 4th": 4, "every 8th": 8, "every 16th": 16}
GLOBALS = {"none": 0, "the first": POSITIONS, "every 8th": 8}  #: apart by so many
START = {"window": 8, "stride": "none", "global": "none", "causal": True, "layers": 1}


def pattern_of(state: Mapping[str, Any], t: int = POSITIONS) -> Pattern:
    """Return the pattern that a reader has chosen."""
    causal, stride = state["causal"], STRIDES[state["stride"]]
    parts = [local_pattern(state["window"], causal)]
    if stride:
        parts.append(strided_patterns(stride, causal)[1])
    if state["global"] == "the first":
        parts.append(global_pattern([0], causal))
    elif state["global"] != "none":
        every = GLOBALS[state["global"]]
        parts.append(global_pattern(range(0, t, every), causal))
    return reduce(or_, parts)


def pairs_of(state: Mapping[str, Any], t: int) -> int:
    """Return how many pairs a pattern keeps, from its distances, without a mask.

    t − δ pairs are δ apart. If δ is in the window or a multiple of the stride, all of
    them are kept, and otherwise those of which one is global.
    """
    stride, every = STRIDES[state["stride"]], GLOBALS[state["global"]]
    apart = torch.arange(t)
    near = apart < state["window"]
    if stride:
        near |= apart % stride == 0
    one = torch.zeros(t, dtype=torch.long)
    if state["global"] == "the first":
        one += 1
    elif every:  # multiples among 0 … t − 1 − δ, and among δ … t − 1
        first = (t - 1 - apart) // every + 1
        last = (t - 1) // every - (apart + every - 1) // every + 1
        one += first + last - torch.where(apart % every == 0, first, 0)
    pairs = torch.where(near, t - apart, one)
    return int(pairs.sum() if state["causal"] else 2 * pairs.sum() - pairs[0])


def first_heard(state: Mapping[str, Any]) -> Int[Tensor, "t t"]:
    """Return after how many layers i has first heard from j; 0 if it never does."""
    heard = reach([pattern_of(state).mask(POSITIONS)], POSITIONS)
    layer = torch.arange(1, POSITIONS + 1)[:, None, None]
    after = layer.expand_as(heard).masked_fill(~heard, POSITIONS + 1).amin(0)
    return after.masked_fill(after > POSITIONS, 0)


def values_of(state: Mapping[str, Any], long: int) -> dict[str, Any]:
    """Return what the explorer has to compute, from the book's own functions."""
    pattern = pattern_of(state)
    mask, first = pattern.mask(POSITIONS)[0, 0], first_heard(state)
    return {
        "mask": mask.int().tolist(),
        "first": first.tolist(),
        "pairs": int(mask.sum()),
        "computed": block_layout(pattern, BLOCK, POSITIONS).computed,
        "heard": int(((first > 0) & (first <= state["layers"])).sum()),
        "layers": layers_to_reach([mask]) or 0,
        "long": pairs_of(state, long),
    }


def trained(record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return bits per character for each trained pattern, one number for each seed.

    A pattern's name is what the controls mean: window, stride, and how far apart global
    tokens are.

    Args:
        record: ``rows`` with window, stride (0 or None: none), global (one of
            ``GLOBALS``; False and True: none and the first) and bits.
    """
    bits: dict[str, list[float]] = {}
    for row in record["rows"]:
        some = {False: "none", True: "the first"}.get(row["global"], row["global"])
        name = f"{row['window']} {row['stride'] or 0} {GLOBALS[some]}"
        bits.setdefault(name, []).append(row["bits"])
    return bits


def grid_said(record: Mapping[str, Any]) -> str:
    """Return how far trained patterns differ, and seeds of one."""
    bits = trained(record)
    blind = [one for name, each in bits.items() if name[:2] == "1 " for one in each]
    wider = [each for name, each in bits.items() if name[:2] != "1 "]
    everything = [one for each in wider for one in each]
    several = [max(each) - min(each) for each in bits.values() if len(each) > 1]
    seeds = max(several, default=0.0)
    return (
        "Among causal patterns, what counts is whether the window shows the previous "
        f"character. If it does, the bits hardly differ: all {len(wider)} patterns end "
        f"between {min(everything):.2f} and {max(everything):.2f} bits per character, "
        f"and seeds differ by up to {seeds:.2f} (in the {len(several)} patterns that "
        "have several), so small differences mean nothing. In two layers that read 64 "
        "characters of code, a window of 2 does about as well as one of 32. With a "
        f"window of 1, models end between {min(blind):.2f} and {max(blind):.2f}, "
        "whatever else they see."
    )


def fewest(causal: bool, layers: int = 2) -> tuple[int, dict[str, Any]]:
    """Return the fewest pairs that reach everything, and the pattern that has them."""
    found = []
    for window, stride, some in product(WINDOWS, STRIDES, GLOBALS):
        state = START | {"window": window, "stride": stride, "global": some}
        state |= {"causal": causal}
        mask = pattern_of(state).mask(POSITIONS)
        after = layers_to_reach([mask])
        if after is not None and after <= layers:
            found.append((int(mask.sum()), state))
    return min(found, key=lambda one: one[0])


def said(state: Mapping[str, Any]) -> str:
    """Return a pattern in words."""
    stride, some = state["stride"], state["global"]
    parts = [f"a window of {state['window']}"]
    parts += [f"{stride} key"] if stride != "none" else []
    if some != "none":
        parts.append(f"{some} token global")
    return " and ".join(parts)


def pattern_explorer(record: Mapping[str, Any], long: int = 16_384) -> Html:
    """Show a pattern that the reader chooses: its mask, reach, cost, trained result."""
    bits = trained(record)
    checks = []
    for window, stride, some, causal, layers in (
        (4, "none", "none", True, 1),
        (4, "every 4th", "none", True, 2),
        (2, "every 8th", "the first", True, 3),
        (8, "none", "every 8th", True, 2),
        (1, "every 16th", "none", False, 5),
        (2, "none", "the first", False, 2),
        (16, "every 8th", "every 8th", False, 1),
        (32, "none", "none", True, 1),
    ):
        choice = window, stride, some, causal, layers
        state = dict(zip(START, choice, strict=True))
        checks.append((state, values_of(state, long)))
    (pairs, best), (both, other) = fewest(True), fewest(False)
    computed, full = (
        block_layout(one, BLOCK, POSITIONS).computed
        for one in (pattern_of(best), Pattern(0))
    )
    assert computed == full, "then the answer's second sentence is wrong"
    answer = (
        f"<details><summary>Answer</summary><p>Causal: {said(best)}, {pairs} pairs. "
        f"But in blocks of {BLOCK} they cost {computed} pairs, as many as full "
        "attention does: far keys are in every block, so none is skipped. "
        f"In both directions, {said(other)} will do: {both} of {POSITIONS**2} pairs. "
        "A global token hears from everyone in the first layer and tells everyone in "
        "the second. In causal attention the first token comes before all others, so "
        "it hears from none of them.</p>"
        f"<p>{grid_said(record)}</p></details>"
    )
    shown = explorer(
        static("ch17/pattern_explorer.js"),
        {
            "t": POSITIONS,
            "block": BLOCK,
            "long": long,
            "strides": STRIDES,
            "globals": GLOBALS,
            "bits": {name: sorted(each) for name, each in bits.items()},
            "means": sorted(fmean(each) for each in bits.values()),
        },
        [
            Slider("window", "window", WINDOWS, START["window"]),
            Choice("stride", "far keys", list(STRIDES), START["stride"]),
            Choice("global", "global tokens", list(GLOBALS), START["global"]),
            Switch("causal", "causal", START["causal"]),
            Slider("layers", "layers", range(1, POSITIONS), START["layers"]),
        ],
        label="Draw a pattern",
        checks=checks,
        question="Let everyone hear from everyone within two layers. How few pairs do "
        "you need? First causal, then in both directions.",
        caption=f"{POSITIONS} positions; rows are queries, columns keys. The "
        "fainter a square, the later the layer; grey: skipped, or not heard yet. The "
        "window counts the query itself; a global token sees all and is seen by all, "
        "but if causal, nobody sees a later key. Bits: models of two layers that read "
        "64 characters of source code, a dot for each pattern; fewer are better.",
    )
    return Html(str(shown.text) + answer)
