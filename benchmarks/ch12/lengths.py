"""Page 12c: lengths of evaluation that change the loss by themselves, three seeds.

Transformer-XL of chapter 12, trained with segments and memory of 32 characters, reads
the held-out modules by other lengths. The characters predicted are the same each time.

Bands, written before the final run, from one seed: without memory the loss is at least
0.1 bits higher, and falls by at least 0.1 from segments of 8 to 32 and from 32 to 256;
with a memory of 256 these segments are within 0.02 bits of each other; with longer
memories than in training it is within 0.05, in either direction (this model saw no
distance above 63 in its training); ``same_length`` and ``clamp_len`` of 63 change it
by at most 0.02 each.
"""

from typing import Any

from annotated.chapters.ch12.segments import SEGMENTS, train_on_segments
from annotated.chapters.ch12.segments_options import LENGTHS, bits_at
from annotated.data.text import library_facts
from benchmarks.record import SEEDS


def run() -> dict[str, Any]:
    """Train with each seed, and evaluate by all lengths."""
    runs = []
    for seed in SEEDS:
        model, _ = train_on_segments("Transformer-XL", seed)
        for length, mem_len, options in LENGTHS:
            entry = {"seed": seed, "length": length, "mem_len": mem_len, **options}
            entry["bits"] = bits_at(model, length, mem_len, **options)
            runs.append(entry)
            print(entry, flush=True)
    return {"config": SEGMENTS, "text": library_facts(), "runs": runs}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands."""
    assert len(record["runs"]) == 3 * len(LENGTHS)
    for seed in (0, 1, 2):
        bits = {
            (r["length"], r["mem_len"], r.get("same_length"), r.get("clamp_len")): r[
                "bits"
            ]
            for r in record["runs"]
            if r["seed"] == seed
        }
        trained = bits[32, 32, None, None]
        assert bits[32, 0, None, None] > trained + 0.1
        none = [bits[length, 0, None, None] for length in (8, 32, 256)]
        assert none[0] > none[1] + 0.1 > none[2] + 0.2
        assert none[2] > trained
        long = [bits[length, 256, None, None] for length in (8, 32, 256)]
        assert max(long) - min(long) < 0.02
        for length, mem_len, same, clamp in bits:
            if mem_len >= 64 and not (same or clamp):
                assert abs(bits[length, mem_len, None, None] - trained) < 0.05
            if same or clamp == 63:
                plain = bits[length, mem_len, None, None]
                assert abs(bits[length, mem_len, same, clamp] - plain) <= 0.02
