"""Chapter 19: what writing all at once costs and buys, on spelling to sound.

Four kinds of model: symbol by symbol; the same with four layers in the encoder and one
in the decoder; mask-predict; masked diffusion. All trained for about as many CPU
seconds; three seeds each, of which the first is timed. Quality is of 2000 words of the
test split; a word is right if any pronunciation in the dictionary is met. CPU seconds
are the least of three readings, one word at a time and 32 at a time. Beside them the
bits of 2000 held-out pronunciations: exact for a model that writes symbol by symbol, a
bound for diffusion.

Bands, for each seed: mask-predict has more words wrong in one round than in ten, and
greedy decoding fewer than one round. One round takes less than half as long as greedy
decoding, one word at a time; and there the shallow decoder is faster than the other.
The bound lies above the autoregressive bits.
"""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from annotated.batches import Vocabulary, pad_sequences
from annotated.data.spelling import spelling_pairs, spelling_words
from annotated.metrics import error_rates
from annotated.recipes.refinement import DEEP, REFINEMENT, STEPS, refine, without_end
from annotated.recipes.translation import Cutter, spelling_task, translate
from annotated.refinement import diffusion_bits, diffusion_sample, mask_predict
from annotated.search import DecoderCache, log_probabilities
from annotated.training import evaluating
from annotated.transformer import Transformer
from benchmarks.ch19._models import trained

TESTED, TIMED = 2000, {1: 32, 32: 96}  # words, by how many are written at a time
SEEDS = (0, 1, 2)
ROUNDS, CANDIDATES, BEAM, DRAWS = (1, 2, 4, 10), (1, 3, 5), 5, 16
Write = Callable[..., list[str]]  # write(words, size of a batch)


class Counted(DecoderCache):
    """A cache that counts how often it was asked."""

    asked = 0

    def read(self, tokens):
        Counted.asked += 1
        return super().read(tokens)


def ways(kind: str, model: Transformer, cutter: Cutter) -> Iterator[tuple[dict, Write]]:
    """Yield the ways in which a model of a ``kind`` writes."""
    if kind in ("autoregressive", "deep encoder"):
        for beam in (1, BEAM):
            way = {"method": "greedy" if beam == 1 else f"beam of {beam}"}
            yield way, partial(by_symbol, model, cutter, beam)
    elif kind == "mask-predict":
        for rounds in ROUNDS:
            for candidates in CANDIDATES:
                options = {"rounds": rounds, "candidates": candidates}
                write = partial(mask_predict, **options)
                yield (
                    {"method": kind} | options,
                    partial(all_at_once, model, cutter, write),
                )
    else:
        for order, temperature in (("random", 1.0), ("surest", 0.0)):
            for rounds in ROUNDS:
                options = {"order": order, "rounds": rounds, "temperature": temperature}
                g = torch.Generator().manual_seed(0)
                write = partial(diffusion_sample, generator=g, **options)
                yield (
                    {"method": kind} | options,
                    partial(all_at_once, model, cutter, write),
                )


def by_symbol(model, cutter, beam, words, size) -> list[str]:
    with evaluating(model):
        return translate(model, cutter, words, beam, size, Counted)


def all_at_once(model, cutter, write, words, size) -> list[str]:
    return refine(model, cutter, words, size, write)


def seconds(write: Write, words: list[str], size: int) -> float:
    """Return the CPU seconds of a word, the least of three readings."""
    readings = []
    for _ in range(3):
        began = time.process_time()
        write(words, size)
        readings.append(time.process_time() - began)
    return min(readings) / len(words)


def held_out(cutter: Cutter) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return 2000 held-out pronunciations, in batches of a length: sources, labels."""
    pairs = random.Random(1).sample(spelling_pairs("test", every=True), TESTED)
    pairs.sort(key=lambda pair: len(pair[0]))
    return [
        tuple(
            pad_sequences([vocabulary.encode(pair[side], end=side) for pair in some])[0]
            for side, vocabulary in enumerate(cutter[:2])
        )
        for some in (pairs[i : i + 200] for i in range(0, TESTED, 200))
    ]


def bits(kind: str, model: Transformer, cutter: Cutter) -> float:
    """Return bits a sound, exact or a bound; length or end symbol is counted."""
    total = count = 0.0
    g = torch.Generator().manual_seed(0)
    for source, labels in held_out(cutter):
        if kind == "diffusion":
            each = diffusion_bits(
                model, source, without_end(labels), DRAWS, generator=g
            )
        else:
            each = -log_probabilities(model, source, labels, start=Vocabulary.start)
            each = each / torch.tensor(2.0).log()
        total += each.sum().item()
        count += (labels > Vocabulary.end).sum().item()
    return total / count


def run() -> dict[str, Any]:
    cutter, known = spelling_task().cutter, spelling_words("test")
    words = random.Random(0).sample(sorted(known), TESTED)
    rows, models = [], []
    for seed in SEEDS:
        for kind in ("autoregressive", "mask-predict", "diffusion", "deep encoder"):
            model, facts = trained(kind, seed)
            facts = {"model": kind, "seed": seed} | facts
            if kind in ("autoregressive", "deep encoder", "diffusion"):
                facts["bits"] = round(bits(kind, model, cutter), 4)
            models.append(facts)
            print(facts, flush=True)
            for way, write in ways(kind, model, cutter):
                lines = write(words, 256)
                outputs = [tuple(line.split()) for line in lines]
                rates = error_rates(outputs, [known[word] for word in words])
                row = {"model": kind, "seed": seed} | way
                row |= {"phonemes": rates["symbols"], "words": rates["whole"]}
                if seed == SEEDS[0]:
                    for size, number in TIMED.items():
                        some = words[:number]
                        row[f"ms_{size}"] = 1000 * seconds(write, some, size)
                    if "rounds" not in row:  # one word at a time
                        Counted.asked = 0
                        write(words[: TIMED[1]], 1)
                        row["steps"] = Counted.asked / TIMED[1]
                rows.append(row)
                print(row, flush=True)
    facts = {"recipe": REFINEMENT._asdict(), "steps": STEPS, "deep": DEEP}
    facts |= {"tested": TESTED, "timed": TIMED, "draws": DRAWS}
    return facts | {"models": models, "rows": rows}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    rows = record["rows"]

    def one(model, seed, **way):
        for row in rows:
            if (row["model"], row["seed"]) == (model, seed):
                if way.items() <= row.items():
                    return row
        raise AssertionError(f"no row of {model}, {seed}, {way}")

    first, last = ({"rounds": n, "candidates": 1} for n in (1, 10))
    for seed in sorted({row["seed"] for row in rows}):
        greedy = one("autoregressive", seed, method="greedy")
        once = one("mask-predict", seed, **first)
        assert once["words"] > one("mask-predict", seed, **last)["words"]
        assert greedy["words"] < once["words"]
        exact, bound = (
            next(m["bits"] for m in record["models"] if (m["model"], m["seed"]) == pair)
            for pair in (("autoregressive", seed), ("diffusion", seed))
        )
        assert exact < bound
    greedy = one("autoregressive", 0, method="greedy")
    assert one("mask-predict", 0, **first)["ms_1"] < greedy["ms_1"] / 2
    assert one("deep encoder", 0, method="greedy")["ms_1"] < greedy["ms_1"]
