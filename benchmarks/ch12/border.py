"""Chapter 12: what each letter of a word costs that a segment's border cuts in two.

Two models, one without memory and one with it, guess the letters after "argument ". The
ninth segment begins with the e of "specifies".

Expected: without memory the model sees one e before the c, which many letters can
follow; with it, it sees "spe". The letters before the border cost about the same.
"""

from typing import Any

import torch

from annotated.chapters.ch12.segments import library_ids, token_bits, train_on_segments
from annotated.data.text import CHARACTERS, Characters

BEFORE, AFTER = 5, 6  # characters that are shown on either side of the border


def run() -> dict[str, Any]:
    ids, symbols = library_ids("validation"), Characters(CHARACTERS)
    text = "".join(symbols.decode(ids.tolist()))
    c = text.index("rgument specifies") + len("rgument spe")
    begins = range(c - 1 - 8 * 32, c - 1 + 32, 32)
    parts = [(ids[None, i : i + 32], ids[None, i + 1 : i + 33]) for i in begins]
    bits = {}
    for kind in ("vanilla", "Transformer-XL"):
        model, _ = train_on_segments(kind, seed=0)
        every = torch.cat(list(token_bits(model, parts)), dim=1)[0, 8 * 32 - BEFORE :]
        bits[kind] = every[: BEFORE + AFTER].tolist()
        print(kind, bits[kind], flush=True)
    return {"letters": text[c - BEFORE : c + AFTER], "bits": bits}


def bands(record: dict[str, Any]) -> None:
    forgets, remembers = (torch.tensor(bits) for bits in record["bits"].values())
    saved = forgets - remembers
    assert saved[BEFORE : BEFORE + 2].mean() > 1
    assert saved[:BEFORE].mean() < 1
