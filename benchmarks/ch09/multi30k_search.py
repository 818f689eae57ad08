"""Chapter 09: what a beam finds, and what it costs, where outputs are long.

The recipe of ``multi30k``, trained once. The first 400 sentences of the test set of
2016 are searched with beams from 1 to 100, each without a length penalty, with GNMT's
and α = 0.6, and with the plain one and α = 1; a batch holds up to 256 hypotheses. Where
the reference can be written in the model's pieces, and is likelier than what was found,
the search has failed. ``p`` is that of sacrebleu's paired bootstrap test, against a
beam of 5. With that beam three ways to stop are compared; their steps are counted on 20
sentences, one by one.

Multi30k may be used for research and education, so weights and merges aren't recorded,
and of its sentences only three, with the trees of their beams.

Bands: a beam of 5 with a penalty is 0 to 2 BLEU better than greedy decoding. Without a
penalty outputs become shorter from a beam of 5 to one of 100, and BLEU falls by at
least 0.3; with the plain penalty it falls by less. Greedily the search fails in at most
15 % of the sentences, with a beam of 100 in at most 2 %. From a beam of 4 on, a
sentence takes as many times longer as the beam is wider, within a factor of two.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from annotated.batches import Vocabulary, pad_sequences
from annotated.chapters.ch09 import drawings_b as ch09b
from annotated.data.datasets import multi30k
from annotated.metrics import sacrebleu_score
from annotated.recipes.translation import (
    TRANSLATION_RECIPES,
    Cutter,
    train_translation,
    translation_model,
    translation_task,
)
from annotated.search import STOPS, Hypothesis, beam_search, log_probabilities
from annotated.transformer import Transformer
from benchmarks.record import ROOT

SEED, TESTED, ALONE, ROWS = 0, 400, 20, 256
BEAMS = (1, 2, 4, 5, 8, 16, 32, 64, 100)
PENALTIES = (("gnmt", 0.0), ("gnmt", 0.6), ("plain", 1.0))
WEIGHTS = ROOT / "_build" / "multi30k_search.pt"
ENDS = {"start": Vocabulary.start, "end": Vocabulary.end}


class Test:
    """A trained model and sentences that it has never seen.

    Args:
        model: in evaluation mode.
        cutter: of its task.
        pairs: sentences with their references.
    """

    def __init__(
        self, model: Transformer, cutter: Cutter, pairs: Sequence[tuple[str, str]]
    ):
        self.model, self.cutter = model, cutter
        self.texts, self.references = zip(*pairs, strict=True)
        self.sources = [cutter.source.encode(cutter.cut(text)) for text in self.texts]
        self.order = sorted(range(len(pairs)), key=lambda i: len(self.sources[i]))
        ends = [[Vocabulary.end] for _ in pairs]
        self.empty = self.likelihoods(ends)
        wanted = [[*cutter.target.encode(cutter.cut(r)), 2] for r in self.references]
        logs = self.likelihoods(wanted)
        writable = [not cutter.unknown(one) for one in self.references]
        never = [float("-inf")] * len(logs)  # likelier than nothing that is found
        choose = zip(writable, logs, never, strict=True)
        self.reference = [log if can else least for can, log, least in choose]

    def likelihoods(self, outputs: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-probability of each output."""
        logs = []
        for first in range(0, len(outputs), 50):
            part = slice(first, first + 50)
            source, _ = pad_sequences(self.sources[part])
            ids, _ = pad_sequences(outputs[part])
            start = Vocabulary.start
            logs += log_probabilities(self.model, source, ids, start=start).tolist()
        return logs

    def search(
        self, beam: int, count: int = TESTED, size: int | None = None, **options: Any
    ) -> tuple[list[Hypothesis], float]:
        """Return the best hypothesis of the first sentences, and CPU seconds.

        Args:
            beam: number of hypotheses; 1 is greedy decoding.
            count: of sentences.
            size: of a batch.
            options: of the search.
        """
        rows = [i for i in self.order if i < count]
        size = size or min(64, max(1, ROWS // beam))
        options = ENDS | ({"stop": "first"} if beam == 1 else {}) | options
        found: dict[int, Hypothesis] = {}
        began = time.process_time()
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            source, lengths = pad_sequences([self.sources[i] for i in part])
            most = 2 * int(lengths.max()) + 10
            best = beam_search(
                self.model, source, beam=beam, max_new_tokens=most, **options
            )
            found |= {i: one for i, (one,) in zip(part, best, strict=True)}
        return [found[i] for i in range(count)], time.process_time() - began

    def written(self, found: Sequence[Hypothesis]) -> list[str]:
        """Return sentences."""
        decode, join = self.cutter.target.decode, self.cutter.join
        return [join(decode(one.tokens)) for one in found]

    def scored(self, found: Sequence[Hypothesis]) -> dict[str, float]:
        """Return BLEU, length, and how often the search has failed."""
        outputs, references = self.written(found), list(self.references)
        score = BLEU().corpus_score(outputs, [references])
        logs = [one.log_probability for one in found]
        pairs = list(zip(logs, self.reference, self.empty, strict=True))
        return {
            "bleu": score.score,
            "length": score.sys_len / score.ref_len,
            "log": sum(logs) / len(logs),
            "search_errors": sum(r > log + 1e-3 for log, r, _ in pairs) / len(logs),
            "empty_likelier": sum(e > log for log, _, e in pairs) / len(logs),
            "empty": sum(not one for one in outputs) / len(outputs),
            "as_reference": sum(
                one == other for one, other in zip(outputs, references, strict=True)
            )
            / len(outputs),
        }


def by_beam(test: Test) -> list[dict[str, Any]]:
    """Search with every beam and penalty."""
    rows = []
    for penalty, alpha in PENALTIES:
        outputs, table = {}, []
        for beam in BEAMS:
            found, seconds = test.search(beam, penalty=penalty, alpha=alpha)
            row = {"penalty": penalty, "alpha": alpha, "beam": beam}
            row |= test.scored(found) | {"seconds": seconds / TESTED}
            outputs[str(beam)] = test.written(found)
            print(row, flush=True)
            table.append(row)
        names = ["5", *(name for name in outputs if name != "5")]  # the baseline first
        compared = PairedTest(
            [(name, outputs[name]) for name in names],
            {"BLEU": BLEU()},
            [list(test.references)],
            test_type="bs",
            n_samples=1000,
        )
        _, results = compared()
        chances = dict(
            zip(names, [one.p_value for one in results["BLEU"]], strict=True)
        )
        rows += [row | {"p": chances[str(row["beam"])]} for row in table]
    return rows


def by_stop(test: Test) -> list[dict[str, Any]]:
    """Search with a beam of 5 and every way to stop."""
    rows = []
    for penalty, alpha in PENALTIES:
        options = {"penalty": penalty, "alpha": alpha}
        searched = {stop: test.search(5, stop=stop, **options) for stop in STOPS}
        best, _ = searched["never"]
        for stop, (found, seconds) in searched.items():
            row = {"stop": stop, **options} | test.scored(found)
            pairs = zip(found, best, strict=True)
            worse = sum(one.score < other.score - 1e-4 for one, other in pairs)
            row |= {"missed": worse / TESTED, "seconds": seconds / TESTED}
            ch09b.Counting.reads = 0
            reader = {"reader": ch09b.Counting}
            test.search(5, ALONE, 1, stop=stop, **options, **reader)
            row["steps"] = ch09b.Counting.reads / ALONE
            print(row, flush=True)
            rows.append(row)
    return rows


def trees(test: Test, most: int = 14, count: int = 3) -> list[dict[str, Any]]:
    """Return short sentences for which the settings of a search matter most."""
    symbols, found = test.cutter.target.symbols, []
    for i in test.order:
        if len(test.references[i].split()) > 8 or not test.reference[i] > -1e9:
            continue
        source = torch.tensor([test.sources[i]])
        after = ch09b.continues(test.model, source)
        grown = {beam: ch09b.grow(after, beam, most) for beam in ch09b.BEAMS}
        answers = {
            (beam, alpha, stop): tuple(ch09b.answer(tree, beam, alpha, stop, most)[1])
            for beam, tree in grown.items()
            for alpha in ch09b.ALPHAS
            for stop in STOPS
        }
        if max(len(one) for key, one in answers.items() if key[1] <= 1) == most:
            continue  # one that was cut off
        by_alpha = len({answers[4, alpha, "never"] for alpha in ch09b.ALPHAS})
        by_rule = len({answers[4, 1.0, stop] for stop in STOPS})
        by_width = len({answers[beam, 0.0, "never"] for beam in ch09b.BEAMS})
        matters = (
            (by_alpha > 1) + (by_rule > 1) + (by_width > 1),
            len(set(answers.values())),
        )
        found.append((matters, i, grown))  # shorter ones first
    best = sorted(found, key=lambda one: one[0], reverse=True)[:count]
    return [
        {
            "source": test.texts[i],
            "reference": test.references[i],
            "matters": list(matters),
            "trees": {
                str(beam): as_lines(tree, symbols) for beam, tree in grown.items()
            },
        }
        for matters, i, grown in best
    ]


def as_lines(tree: Sequence[Sequence], symbols: Sequence[str]) -> list[str]:
    """Return a line for each step: parent, piece, log p and fate of each hypothesis."""
    return [
        "  ".join(
            f"{parent} {symbols[symbol]} {log:.4f} {fate}"
            for parent, symbol, log, fate in step
        )
        for step in tree
    ]


def run() -> Mapping[str, Any]:
    recipe = TRANSLATION_RECIPES["multi30k"]
    task = translation_task(recipe)
    model = translation_model(recipe, task.cutter, SEED)
    half = {"precision": torch.bfloat16}
    history = train_translation(model, task, recipe, SEED, **half)
    model.eval()
    WEIGHTS.parent.mkdir(exist_ok=True)
    torch.save(model.state_dict(), WEIGHTS)
    test = Test(model, task.cutter, multi30k("test", *recipe.languages)[:TESTED])
    facts = {"recipe": recipe._asdict(), "precision": "bfloat16", "seed": SEED}
    facts |= {"cpu_seconds": history[-1]["cpu_seconds"], "tested": TESTED}
    facts |= {"writable": sum(log > -1e9 for log in test.reference) / TESTED}
    _, signature = sacrebleu_score(["a"], ["a"])
    facts |= {"signature": signature, "alone": ALONE, "rows": ROWS}
    facts |= {"trees": trees(test)}
    return facts | {"beams": by_beam(test), "stops": by_stop(test)}


def bands(record: dict[str, Any]) -> None:
    """Check what the page says of wide beams, and of ways to stop."""
    rows = {(row["alpha"], row["beam"]): row for row in record["beams"]}
    greedy, widest = rows[0.0, 1], rows[0.0, 100]
    for alpha in (0.0, 0.6, 1.0):
        gains = [rows[alpha, k]["bleu"] - greedy["bleu"] for k in (2, 4, 5)]
        assert max(gains) < 1
    assert widest["bleu"] < greedy["bleu"] / 2 and widest["search_errors"] == 0
    assert 0.3 < widest["empty"] < 0.36 and 0.6 < greedy["empty_likelier"] < 0.7
    assert 0.14 < widest["empty_likelier"] < 0.19  # "for a sixth"
    assert abs(rows[1.0, 100]["bleu"] - greedy["bleu"]) < 1  # "no width does harm"
    slower = [rows[0.0, k]["seconds"] / greedy["seconds"] for k in (4, 100)]
    assert 1.5 < slower[0] < 2.5 and 25 < slower[1] < 36
    stops = {(row["alpha"], row["stop"]): row for row in record["stops"]}
    for alpha in (0.0, 0.6, 1.0):
        bound, never = stops[alpha, "bound"], stops[alpha, "never"]
        assert bound["missed"] == 0 and bound["steps"] < 0.6 * never["steps"]
    assert stops[0.0, "bound"]["steps"] < stops[0.0, "first"]["steps"]
