"""Chapter 11: how far careful counting gets.

Counts of up to eight characters of Python's own source, each length smoothed by the
next shorter one: interpolated Kneser–Ney with its usual discount (Chen and Goodman,
1999), not tuned.

Band: 2.8 bits from looking back at two characters, 2.12 at four, 2.00 to 2.08 at seven,
and never more than 0.01 worse for looking back further: what a longer context takes
from its counts it hands to the shorter one, which is estimated from how many different
characters it follows.
"""

from collections import Counter
from math import log2
from typing import Any

from annotated.data.text import CHARACTERS, library_facts, standard_library

LONGEST, DISCOUNT, WINDOW = 8, 0.75, 64


def smoothed(
    grams: Counter[str], order: int, text: str, shorter: list[float]
) -> list[float]:
    """Return each character's chance after the ``order - 1`` before it.

    Each count loses ``DISCOUNT``. What a context loses in all, it hands on to
    ``shorter``, the chances under the context without its first character.
    """
    total, different = Counter(), Counter()
    for gram, count in grams.items():
        total[gram[:-1]] += count
        different[gram[:-1]] += 1
    chances = shorter[:]
    for i in range(order - 1, len(text)):
        gram = text[i - order + 1 : i + 1]
        if n := total[gram[:-1]]:
            own, lost = grams[gram] - DISCOUNT, DISCOUNT * different[gram[:-1]]
            chances[i] = (max(own, 0) + lost * shorter[i]) / n
    return chances


def counted_bits() -> list[dict[str, Any]]:
    """Return the bits of counting, by how many characters are looked back at.

    ``"bits"`` reads the text without a break. ``"cut"`` reads as a model does that
    has windows of ``WINDOW`` characters end to end, each beginning with nothing.
    """
    train, text = (standard_library(split) for split in ("train", "validation"))
    shorter, numbers, rows = [1 / len(CHARACTERS)] * len(text), 0, []
    read = [(i - 1) % WINDOW + 1 for i in range(len(text))]  # in the window, before i
    cut = shorter[:]
    for order in range(1, LONGEST + 1):
        grams = Counter(train[i : i + order] for i in range(len(train) - order + 1))
        numbers += len(grams)
        chances = smoothed(grams, order, text, shorter)
        cut = [
            new if order <= n + 1 else old
            for new, old, n in zip(chances, cut, read, strict=True)
        ]
        bits, cut_bits = (
            -sum(map(log2, each[1:])) / len(text[1:]) for each in (chances, cut)
        )
        row = {"back": order - 1, "numbers": numbers, "bits": bits, "cut": cut_bits}
        rows.append(row)
        print(row, flush=True)
        # a shorter context is judged by how many different characters stand before
        longer = {train[i : i + order + 1] for i in range(len(train) - order)}
        before = Counter(gram[1:] for gram in longer)
        shorter = smoothed(before, order, text, shorter)
    return rows


def run() -> dict[str, Any]:
    return {"text": library_facts(), "discount": DISCOUNT, "rows": counted_bits()}
