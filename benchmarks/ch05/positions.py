"""Chapter 05: positions that training saw often, rarely and never.

A small bidirectional encoder says at each place which symbol stood one place before.

Bands, for every seed, at a token spread of 0.125 (one over the root of the width):

- ``longer`` (lengths 8 to 32): at length 32 sinusoidal, learned and rotary at least
  99 %, without positions at most 25 % (the symbol is one of those in the sequence). At
  length 64, behind position 31: learned at most 20 % (nothing was learned there),
  rotary at least 95 %, sinusoidal at most 80 %.
- ``rarely`` (long sequences are rare): at places that 1000 training sequences or more
  reached, at least 99 % in all three ways; at places that none reached, learned at most
  20 %; rotary at least 99 % at places that 1 to 100 reached.
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from annotated.chapters.ch05.reading import (
    POSITIONS,
    Reader,
    Runs,
    by_zone,
    guessing,
    previous_symbol_loss,
    reading_task,
    runs_of,
    skewed_lengths,
    uniform_lengths,
)
from annotated.recipes.common import one_cycle
from annotated.training import evaluating, fit
from benchmarks.record import SEEDS

WAYS = ("sinusoidal", "learned", "rotary", "none")
# the second experiment, at several spreads; "learned, large" begins with vectors as
# large as the sinusoids are (0.71 is the root mean square of sine and cosine); some
# are repeated with twice the steps
SPREADS = (1.0, 0.125, 0.02)
RARE_WAYS = ("sinusoidal", "learned", "learned, large", "rotary")
TWICE = [(way, spread) for spread in (0.125, 0.02) for way in ("sinusoidal", "learned")]
LENGTHS = (8, 16, 24, 32, 40, 48, 64, 96, 128)
ENDS = tuple(range(8, 113, 4))


def right(model: Reader, length: int, count: int = 100) -> list[float]:
    """Return the share of right answers at each position from the second on."""
    generator = torch.Generator().manual_seed(10_000 + length)
    tokens, mask = reading_task(torch.full((count,), length), generator)
    with evaluating(model):
        guesses = model(tokens, mask).argmax(dim=-1)
    return (guesses[:, 1:] == tokens[:, :-1]).double().mean(dim=0).tolist()


def train(
    way: str,
    spread: float,
    seed: int,
    draw: Callable[[torch.Generator], Tensor],
    times: int = 1,
) -> tuple[Reader, dict[str, Any]]:
    """Train one model, ``times`` as long; return it with what is worth recording."""
    steps = times * POSITIONS["steps"]
    torch.manual_seed(seed)
    model = Reader(way, spread)
    generator = torch.Generator().manual_seed(seed)  # the same data for every way
    seen = torch.zeros(POSITIONS["max_len"], dtype=torch.long)

    def batches():
        for _ in range(steps):
            tokens, mask = batch = reading_task(draw(generator), generator)
            seen[: tokens.shape[1]] += mask[:, 0, 0].sum(dim=0)
            yield batch

    optimizer, schedule = one_cycle(model, POSITIONS["rate"], steps)
    extras = {"schedule": schedule, "clip": POSITIONS["clip"]}
    history = fit(model, previous_symbol_loss, batches(), optimizer, **extras)
    return model, {
        "way": way,
        "spread": spread,
        "seed": seed,
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "final_loss": sum(r["loss"] for r in history[-20:]) / 20,
        "cpu_seconds": history[-1]["cpu_seconds"],
        "seen": seen.tolist(),  # how many training sequences reached each place
    }


def longer(way: str, spread: float, seed: int) -> dict[str, Any]:
    """Train on short sequences, test on longer ones."""
    model, run = train(way, spread, seed, uniform_lengths)
    shares = {length: right(model, length) for length in LENGTHS}
    edge = POSITIONS["longest"] - 1  # the answer at place p stands at index p − 1
    run["right"] = {str(n): mean(shares[n]) for n in LENGTHS}
    run["beyond"] = {
        str(n): mean(shares[n][edge:]) for n in LENGTHS if n > POSITIONS["longest"]
    }
    return run


def rarely(way: str, spread: float, seed: int, times: int = 1) -> dict[str, Any]:
    """Train where long sequences are rare; test how sequences of any length end."""
    model, run = train(way, spread, seed, skewed_lengths, times)
    shares = {length: right(model, length) for length in ENDS}
    run["ends"] = {str(n): mean(shares[n][-4:]) for n in ENDS}
    run["beginnings"] = {str(n): mean(shares[n][:4]) for n in ENDS}
    return run


def run() -> dict[str, Any]:
    results: dict[str, Any] = {"config": POSITIONS, "longer": [], "rarely": []}
    settings = [(way, POSITIONS["spread"]) for way in WAYS]
    settings += [("learned", 1.0), ("learned, large", 1.0)]
    for way, spread in settings:
        for seed in SEEDS:
            results["longer"].append(longer(way, spread, seed))
            print(results["longer"][-1], flush=True)
    rare = [(way, spread, 1) for spread in SPREADS for way in RARE_WAYS]
    rare += [(way, spread, 2) for way, spread in TWICE]
    for way, spread, times in rare:
        for seed in SEEDS:
            results["rarely"].append(rarely(way, spread, seed, times))
            print(results["rarely"][-1], flush=True)
    return results


def bands(record: dict[str, Any]) -> None:
    """Check the bands above, and what pages 5 and 5b say, for every seed."""
    assert record["config"] == POSITIONS

    def of(experiment: str, *setting: Any) -> Runs:
        return runs_of(record, experiment, *setting)

    for way, inside, low, high in (  # right at 32, at least; after position 31
        *(("sinusoidal", 0.99, 0, 0.8), ("learned", 0.99, 0, 0.2)),
        *(("rotary", 0.99, 0.95, 1), ("none", 0, 0, 0.25)),
    ):
        for run in of("longer", way):
            assert inside <= run["right"]["32"] <= (1 if inside else 0.25)
            assert low <= run["beyond"]["64"] <= high
    clocks, learned = (of("longer", way) for way in WAYS[:2])
    least = min(run["beyond"]["48"] for run in clocks)
    assert least > max(run["beyond"]["48"] for run in learned)
    assert max(run["beyond"]["128"] for run in clocks) <= 0.2
    # page 5: positions that start small are drowned out by words of size 1
    assert max(run["right"]["32"] for run in of("longer", "learned", 1.0)) < 0.25
    large = of("longer", "learned, large", 1.0)
    assert min(run["right"]["32"] for run in large) > 0.99

    runs = {way: of("rarely", way) for way in WAYS[:3]}
    clocks, learned, rotary = map(by_zone, runs.values())
    assert min(clocks["often"] + learned["often"] + rotary["often"]) >= 0.99
    assert max(learned["never"]) <= 0.20 and min(rotary["rarely"]) >= 0.99
    assert min(map(min, by_zone(runs["learned"], "beginnings").values())) >= 0.99
    assert max(by_zone(of("rarely", "learned", 0.125, 600))["rarely"]) < 0.90
    for run in runs["sinusoidal"]:  # many sequences end at 80, where clocks recover
        ending = [here - after for here, after in pairwise(run["seen"][69:80])]
        assert run["seen"][79] >= 16 > 5 >= max(ending)
    peaks, before = (
        [run["ends"][n] for run in runs["sinusoidal"]] for n in ("80", "76")
    )
    assert min(peaks) > max(before)

    # page 5b: clocks are ahead in all settings but one, in which they haven't learned
    for setting in ((1.0, 300), (0.125, 300), (0.125, 600), (0.02, 300), (0.02, 600)):
        clocks, learned = (by_zone(of("rarely", way, *setting)) for way in WAYS[:2])
        ahead = min(clocks["rarely"]) > max(learned["rarely"])
        assert ahead == (setting != (0.02, 300)) == (max(clocks["often"]) > 0.99)
        assert max(learned["never"]) < 0.13 and max(clocks["never"]) < 0.35
        assert (min(clocks["never"]) > guessing(84)) == ahead
        assert min(clocks["rarely"]) > 0.95 or setting[1] == 300
    for spread in (1.0, 0.125):  # and rows begun as large as the clocks
        clocks, large = (
            by_zone(of("rarely", way, spread))
            for way in ("sinusoidal", "learned, large")
        )
        assert min(clocks["rarely"]) > max(large["rarely"])
