"""Chapter 11: how far careful counting gets.

Counts of up to seven characters of Python's own source, each length smoothed by the
next shorter one (Witten and Bell, 1991).
"""

from collections import Counter
from math import log2
from typing import Any

from annotated.text import CHARACTERS, library_facts, standard_library

LONGEST = 7


def smoothed_bits() -> list[dict[str, Any]]:
    """Return the bits of counting 1 to ``LONGEST`` characters, and how many counts.

    Of n occurrences of a context with d different successors, a character that
    followed c times gets ``(c + d · p) / (n + d)``, where p is its chance under the
    context without its first character.
    """
    train, text = (standard_library(split) for split in ("train", "validation"))
    chances, counts, rows = [1 / len(CHARACTERS)] * len(text), 0, []
    for order in range(1, LONGEST + 1):
        grams = Counter(train[i : i + order] for i in range(len(train) - order + 1))
        total, different = Counter(), Counter()
        for gram, count in grams.items():
            total[gram[:-1]] += count
            different[gram[:-1]] += 1
        counts += len(grams)
        for i in range(order - 1, len(text)):
            gram = text[i - order + 1 : i + 1]
            n, d = total[gram[:-1]], different[gram[:-1]]
            if n:
                chances[i] = (grams[gram] + d * chances[i]) / (n + d)
        bits = -sum(map(log2, chances)) / len(text)
        rows.append({"order": order, "bits": bits, "counts": counts})
        print(rows[-1], flush=True)
    return rows


def run() -> dict[str, Any]:
    """Count."""
    return {"text": library_facts(), "rows": smoothed_bits()}
