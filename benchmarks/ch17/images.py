"""Chapter 17: glyphs read pixel by pixel, under patterns that know rows and columns.

A GPT of two layers and two heads predicts the next pixel of letters and digits of 16 x
16 pixels; characters that it never saw measure it. Bits per pixel, 200 steps of 8
glyphs; two patterns also for 800. "strides" has a row's head and one that sees a
column, in an image of this width: right at 16, wrong elsewhere.

Bands, every seed:

- Row and column are more than 0.04 bits better than the row alone, and more than 0.02
  better than everything.
- The column of the pixel that was read, which stands one pixel to the left of the one
  that is predicted, helps the row by less than 0.02.
- Of all strides, 16 is the best, by more than 0.02.
- After 800 steps, row and column are still better than everything.
"""

from typing import Any

from annotated.chapters.ch17.patterns import (
    IMAGE_SIZES,
    IMAGES,
    bits_per_pixel,
    glyphs,
    image_patterns,
    stride_patterns,
    train_image,
)
from benchmarks.record import SEEDS

WIDTHS = (13, 14, 15, 16, 17, 18, 19)
LONGER = 4  #: times as many steps, for some


def run() -> dict[str, Any]:
    held_out = glyphs().held_out

    def bits(heads: tuple, seed: int, times: int = 1) -> float:
        model, _ = train_image(heads, times * IMAGES["steps"], seed)
        found = round(bits_per_pixel(model, held_out), 4)
        print(seed, times, found, flush=True)
        return found

    named = image_patterns()
    result: dict[str, Any] = {"config": IMAGES | IMAGE_SIZES, "longer": LONGER}
    result["glyphs"] = [len(part) for part in glyphs()[:2]]
    result["rows"] = [
        {"pattern": name, "seed": seed, "times": 1, "bits": bits(heads, seed)}
        for name, heads in named.items()
        for seed in SEEDS
    ]
    result["rows"] += [
        {"pattern": name, "seed": seed, "times": LONGER}
        | {"bits": bits(named[name], seed, LONGER)}
        for name in ("everything", "row and column")
        for seed in SEEDS
    ]
    result["strides"] = [
        {"stride": width, "seed": seed, "bits": bits(stride_patterns(width), seed)}
        for width in WIDTHS
        for seed in SEEDS
    ]
    return result


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, for every seed."""
    bits = {
        (row["pattern"], row["times"], row["seed"]): row["bits"]
        for row in record["rows"]
    }
    for seed in SEEDS:
        row, both, off, everything = (
            bits[name, 1, seed]
            for name in (
                "row",
                "row and column",
                "column of the pixel read",
                "everything",
            )
        )
        assert row - both > 0.04 and everything - both > 0.02 and row - off < 0.02
        later = record["longer"], seed
        assert bits["row and column", *later] < bits["everything", *later]
    right, wrong = (
        [row["bits"] for row in record["strides"] if (row["stride"] == 16) == fits]
        for fits in (True, False)
    )
    assert max(right) < min(wrong) - 0.02
