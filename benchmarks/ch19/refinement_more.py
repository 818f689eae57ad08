"""Chapter 19: what orders, lengths, caches and gaps do; one seed each.

1000 words of the test split, or their pronunciations. The two models of a canvas
learned without lengths: with end symbols in every place that is left, or with one end
symbol and nothing behind it. A mistake is made by hand: in what the model writes right,
one sound is replaced by another.

Bands: where end symbols were learned, more lengths are right. A sound that was replaced
comes back more often where it is masked than where it is looked at. With keys of
finished blocks kept, the logits are those without a cache if no block looks ahead, and
others if blocks do. Diffusion fills a gap right more often if it sees both sides. (That
it would do so more often than the autoregressive model, which sees one, was expected
too, and missed: after so short a training it doesn't.)
"""

import random
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from annotated.batches import Vocabulary
from annotated.data.spelling import spelling_words
from annotated.masks import padding_mask
from annotated.metrics import error_rates
from annotated.recipes.refinement import CANVAS, refine, without_end
from annotated.recipes.translation import Cutter, spelling_task
from annotated.refinement import (
    MaskedTransformer,
    diffusion_bits,
    diffusion_loss,
    diffusion_sample,
    mask_predict,
)
from annotated.search import DecoderCache
from annotated.training import evaluating
from annotated.transformer import Transformer
from benchmarks.ch19._models import trained
from benchmarks.ch19.refinement import held_out

TESTED, ITEMS, GAP, BLOCK = 1000, 300, 3, 4


class BlockCache(DecoderCache):
    """Keeps the keys of what was read; what is read together sees both its sides."""

    def read(self, tokens: Tensor) -> Tensor:
        model, start = self.model, self.tokens.shape[1]
        self.tokens = torch.cat([self.tokens, tokens], dim=1)
        mask = padding_mask(self.tokens, self.pad)
        x = model.target_embedding(tokens) * model.config.d_model**0.5
        x = model.positions(x, start=start)
        for i, layer in enumerate(model.decoder.layers):
            attend, look_up, map_each = layer.residuals
            x = attend(x, lambda x, i=i: self.attend(i, x, mask))
            x = look_up(x, lambda x, i=i: self.look_up(i, x))
            x = map_each(x, layer.feed_forward)
        logits = model.output(model.decoder.norm(x))
        never = torch.tensor([self.pad, model.mask])
        return logits.index_fill(-1, never, -torch.inf)

    def rewind(self, length: int) -> None:
        """Forget all but the first ``length`` positions."""
        self.tokens = self.tokens[:, :length]
        kept = [(k[:, :, :length], v[:, :, :length]) for k, v in self.read_target]
        self.read_target = kept


def rates(outputs: Sequence[tuple], words: Sequence[str]) -> dict[str, float]:
    known = spelling_words("test")
    found = error_rates(outputs, [known[word] for word in words])
    return {"phonemes": found["symbols"], "words": found["whole"]}


def write(model, cutter: Cutter, words: list[str], how, **options) -> list[tuple]:
    lines = refine(model, cutter, words, 256, partial(how, **options))
    return [tuple(line.split()) for line in lines]


# ---- lengths, and what is repeated -----------------------------------------------


def lengths(cutter: Cutter, words: list[str]) -> dict[str, Any]:
    """Compare lengths that are guessed with those of end symbols on a canvas."""
    known, rows = spelling_words("test"), []
    right = [{len(one) for one in known[word]} for word in words]
    for kind in ("diffusion", "canvas", "one end"):
        model, _ = trained(kind, 0)
        for order in ("random", "surest"):
            options = {"rounds": CANVAS, "order": order, "temperature": 0.0}

            def how(model, source, kind=kind, options=options):
                whole = torch.full((len(source), CANVAS), model.mask)
                canvas = None if kind == "diffusion" else whole
                return diffusion_sample(model, source, canvas=canvas, **options)

            outputs = write(model, cutter, words, how)
            sizes = [len(one) for one in outputs]
            row = {"model": kind, "order": order, **rates(outputs, words)}
            row["mean_length"] = sum(sizes) / len(sizes)
            hits = sum(n in some for n, some in zip(sizes, right, strict=True))
            rows.append(row | {"right_length": hits / len(words)})
    first = sum(len(known[word][0]) for word in words) / len(words)
    return {"mean_length": first, "canvas": CANVAS, "rows": rows}


def orders(model, cutter: Cutter, words: list[str]) -> list[dict[str, Any]]:
    """Count words wrong, and outputs in which a sound follows itself, by order."""
    rows = []
    settings = [
        (order, rounds, temperature, 0.0)
        for temperature in (1.0, 0.0)
        for rounds in (1, 2, 4, 10)
        for order in ("random", "surest", "blocks")
    ]
    settings += [("random", 10, 1.0, remask) for remask in (0.1, 0.3, 0.5)]
    settings += [("surest", 10, 0.0, remask) for remask in (0.1, 0.3, 0.5)]
    for order, rounds, temperature, remask in settings:
        way = {"order": order, "rounds": rounds, "temperature": temperature}
        way |= {"remask": remask, "generator": torch.Generator().manual_seed(0)}
        outputs = write(model, cutter, words, diffusion_sample, **way)
        del way["generator"]
        rows.append(way | rates(outputs, words) | {"repeated": repeated(outputs)})
    return rows


def repeated(outputs: Sequence[tuple]) -> float:
    twice = [any(a == b for a, b in pairwise(o)) for o in outputs]
    return sum(twice) / len(twice)


# ---- a mistake, and a second look ------------------------------------------------


@torch.no_grad()
def mistakes(model, cutter: Cutter, words: list[str]) -> dict[str, float]:
    """Replace a sound of what was right, look again, and mask it and write it again."""
    known, draw = spelling_words("test"), random.Random(0)
    outputs = write(model, cutter, words, mask_predict, rounds=10)
    counts = {"right": 0, "kept": 0, "mended_by_look": 0, "mended_by_mask": 0}
    sure = []
    for word, output in zip(words, outputs, strict=True):
        if output not in known[word]:
            continue
        ids = torch.tensor([cutter.target.encode(output)])
        place, other = draw.randrange(len(output)), ids[0, draw.randrange(len(output))]
        true = ids[0, place].item()
        while other == true:
            other = torch.tensor(draw.randrange(3, len(cutter.target)))
        wrong = ids.clone()
        wrong[0, place] = other
        masked = wrong.clone()
        masked[0, place] = model.mask
        memory = model.encode(torch.tensor([cutter.source.encode(word)]))
        seen, again = (model.decode(x, *memory)[0, place] for x in (wrong, masked))
        counts["right"] += 1
        counts["kept"] += (seen.argmax() == other).item()
        counts["mended_by_look"] += (seen.argmax() == true).item()
        counts["mended_by_mask"] += (again.argmax() == true).item()
        sure.append(seen.softmax(-1)[other].item())
    shares = {name: n / counts["right"] for name, n in counts.items()}
    return shares | {"right": counts["right"], "sure": sum(sure) / len(sure)}


# ---- is a cache exact? -----------------------------------------------------------


@torch.no_grad()
def caches(model: MaskedTransformer, cutter: Cutter) -> list[dict[str, Any]]:
    """Compare the logits of a last block with and without the keys of those before.

    ``blocks``: a block sees itself and those before it. ``both sides``: it sees the
    masks after it too, and the kept keys are those of the moment when it was finished.
    """
    rows, size = [], 4 * BLOCK
    place = torch.arange(size) // BLOCK
    never_ahead = (place[:, None] >= place)[None, None]
    draw = torch.Generator().manual_seed(0)
    for batch in (1, 32):
        source = torch.randint(3, len(cutter.source), (batch, 9), generator=draw)
        whole = torch.randint(3, len(cutter.target), (batch, size), generator=draw)
        last = size - BLOCK
        masked = whole.clone()
        masked[:, last:] = model.mask  # three blocks are finished
        earlier = masked.clone()
        earlier[:, last - BLOCK :] = model.mask  # one block before
        memory = model.encode(source)
        for order in ("blocks", "both sides"):
            cache, mask = BlockCache(model, source), never_ahead
            if order == "blocks":
                for block in masked[:, :last].split(BLOCK, dim=1):
                    cache.read(block)
            else:
                mask = None
                cache.read(earlier)
                cache.rewind(last - BLOCK)
            start = cache.tokens.shape[1]

            def with_cache(cache=cache, start=start, masked=masked):
                cache.rewind(start)
                return cache.read(masked[:, start:])

            def without(memory=memory, mask=mask, masked=masked):
                return model.decode(masked, *memory, mask=mask)

            kept, anew = with_cache(), without()[:, start:]
            some = kept.isfinite()
            row = {"order": order, "batch": batch, "positions": size, "kept": start}
            row["difference"] = (kept - anew)[some].abs().max().item()
            for name, one in (("ms_cache", with_cache), ("ms_anew", without)):
                row[name] = min(timed(one) for _ in range(5))
            rows.append(row)
    return rows


def timed(call, times: int = 10) -> float:
    began = time.process_time()
    for _ in range(times):
        call()
    return 1000 * (time.process_time() - began) / times


# ---- gaps ------------------------------------------------------------------------


@torch.no_grad()
def gaps(symbolwise: Transformer, masked: MaskedTransformer, cutter: Cutter) -> list:
    """Fill a gap in the middle, or the first half, by both kinds of model.

    The word is given, and what the dictionary says around the gap; to diffusion once
    more without what follows the gap (``alone``), to the autoregressive model what is
    before it. Right is what makes one of the dictionary's pronunciations of the word.
    """
    known, rows = spelling_words("test"), []
    words = random.Random(2).sample(sorted(known), 2 * TESTED)
    items = [(w, one) for w in words for one in known[w] if len(one) >= 6]
    several = [item for item in items if len(known[item[0]]) > 1]
    for name, some in (("all", items[:ITEMS]), ("several answers", several[:ITEMS])):
        for task in ("middle", "beginning"):
            hits = {"autoregressive": 0, "alone": 0, "diffusion": 0}
            for word, sounds in some:
                n = len(sounds)
                first = (n - GAP) // 2 if task == "middle" else 0
                last = first + (GAP if task == "middle" else n // 2)
                source = torch.tensor([cutter.source.encode(word)])
                ids = torch.tensor([cutter.target.encode(sounds)])
                found = {"autoregressive": go_on(symbolwise, source, ids, first, last)}
                for kind, end in (("alone", n), ("diffusion", last)):
                    canvas = ids.clone()
                    canvas[:, first:end] = masked.mask
                    options = {"rounds": end - first, "order": "surest"}
                    options |= {"canvas": canvas, "temperature": 0.0}
                    filled = diffusion_sample(masked, source, **options).tokens[0]
                    found[kind] = filled[first:last].tolist()
                for kind, gap in found.items():
                    middle = tuple(cutter.target.decode(gap))
                    whole = (*sounds[:first], *middle, *sounds[last:])
                    hits[kind] += whole in known[word]
            shares = {kind: count / len(some) for kind, count in hits.items()}
            rows.append({"words": name, "gap": task, "items": len(some)} | shares)
    return rows


def go_on(model: Transformer, source: Tensor, ids: Tensor, first: int, last: int):
    """Return what a model writes, greedily, at some places after what is given."""
    past, written = DecoderCache(model, source), []
    read = torch.cat([torch.tensor([[Vocabulary.start]]), ids[:, :first]], dim=1)
    for _ in range(last - first):
        read = past.read(read)[:, -1:].argmax(-1)
        written.append(read.item())
    return written


# ---- which numbers are no bounds -------------------------------------------------


def bounds(model: MaskedTransformer, cutter: Cutter) -> dict[str, float]:
    """Return bits a sound of a known length, by the right estimate and by others."""
    total, found = 0, {"bound": 0.0, "from 0.1": 0.0, "half": 0.0}
    g = torch.Generator().manual_seed(0)
    with evaluating(model):
        for source, labels in held_out(cutter):
            target = without_end(labels)
            count = (target != Vocabulary.pad).sum().item()
            loss = partial(diffusion_loss, model, source, target, lengths=False)
            each = diffusion_bits(model, source, target, 16, False, g).sum().item()
            found["bound"] += each
            for name, shares in (
                ("from 0.1", [0.1 + 0.9 * (i + 0.5) / 16 for i in range(16)]),
                ("half", [0.5] * 4),
            ):
                for t in shares:
                    share = torch.full((len(target),), t)
                    bits = loss(share=share, generator=g) / torch.tensor(2.0).log()
                    found[name] += bits.item() * count / len(shares)
            total += count
    return {name: bits / total for name, bits in found.items()}


def run() -> dict[str, Any]:
    cutter, known = spelling_task().cutter, spelling_words("test")
    words = random.Random(0).sample(sorted(known), TESTED)
    symbolwise, _ = trained("autoregressive", 0)
    model, _ = trained("diffusion", 0)
    record: dict[str, Any] = {"tested": TESTED, "gap": GAP, "block": BLOCK}
    for name, part in (
        ("lengths", lambda: lengths(cutter, words)),
        ("orders", lambda: orders(model, cutter, words)),
        ("mistakes", lambda: mistakes(model, cutter, words)),
        ("caches", lambda: caches(model, cutter)),
        ("gaps", lambda: gaps(symbolwise, model, cutter)),
        ("bounds", lambda: bounds(model, cutter)),
    ):
        record[name] = part()
        print(name, record[name], flush=True)
    answers = [one for word in words for one in known[word]]
    return record | {"repeated_in_dictionary": repeated(answers)}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    for order in ("random", "surest"):
        right = {
            row["model"]: row["right_length"]
            for row in record["lengths"]["rows"]
            if row["order"] == order
        }
        assert right["canvas"] > right["one end"]
    looks = record["mistakes"]
    assert looks["mended_by_mask"] > looks["mended_by_look"]
    for row in record["caches"]:
        assert (row["difference"] < 1e-4) == (row["order"] == "blocks")
    for row in record["gaps"]:
        assert row["diffusion"] > row["alone"]
