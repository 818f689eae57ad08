"""Page 12c: lengths of evaluation that change the loss by themselves.

Transformer-XL of chapter 12, trained with segments and memory of 32 characters, reads
the held-out modules by other lengths. The characters predicted are the same each time.

This model saw no distance above 63 in its training, so longer memories, ``same_length``
and a ``clamp_len`` of 63 are expected to change little.
"""

from typing import Any

from annotated.chapters.ch12.segments import SEGMENTS, train_on_segments
from annotated.chapters.ch12.segments_options import LENGTHS, bits_at
from annotated.data.text import library_facts
from benchmarks.record import SEEDS, read


def run() -> dict[str, Any]:
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
    for seed in SEEDS:
        bits = {
            (r["length"], r["mem_len"], r.get("same_length"), r.get("clamp_len")): (
                r["bits"]
            )
            for r in record["runs"]
            if r["seed"] == seed
        }
        trained, longer = (bits[32, n, None, None] for n in (32, 256))
        assert 0 < longer - trained < 0.05
        assert abs(bits[32, 256, None, 63] - longer) < 0.005
        assert longer - bits[32, 64, True, None] > 0.005
        (alone,) = (
            run["bits"]
            for run in read("segments")["runs"]
            if (run["kind"], run["steps"], run["seed"])
            == ("relative, no memory", 600, seed)
        )
        assert bits[32, 0, None, None] > alone
        none = [bits[length, 0, None, None] for length in (8, 32, 256)]
        assert none[1] > trained + 0.1 and none[2] > trained
        assert none[0] > none[1] + 0.1 > none[2] + 0.2
        long = [bits[length, 256, None, None] for length in (8, 32, 256)]
        assert max(long) - min(long) < 0.02
        for (length, mem_len, same, clamp), found in bits.items():
            plain = bits[length, mem_len, None, None]
            if mem_len >= 64 and not (same or clamp):
                assert abs(plain - trained) < 0.05
            if same or clamp == 63:
                assert abs(found - plain) <= 0.02
