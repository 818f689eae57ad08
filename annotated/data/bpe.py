"""Byte-pair encoding: a vocabulary of pieces, between letters and words.

Sennrich et al. (2016). Words are cut into letters; the pair of neighbours that is met
most often becomes a piece of its own, and so on. Rare words keep several pieces,
frequent ones become one, and no word is unknown whose letters are known.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from annotated import require

Pair = tuple[str, str]

#: stands for the space before a word (Kudo and Richardson, 2018), so that pieces can be
#: put together again
SPACE = "▁"


def split_words(text: str) -> list[str]:
    """Return the words of a ``text``, and its signs each alone; none is lost.

    A space belongs to what follows it, as ``"▁"``; several count as one.
    """
    marked = "".join(SPACE + word for word in text.split())
    return re.findall(rf"{SPACE}?(?:\w+|[^\w{SPACE}])|{SPACE}", marked)


def join_pieces(pieces: Iterable[str]) -> str:
    """Return the text that ``pieces`` were cut from."""
    return "".join(pieces).replace(SPACE, " ").strip()


def merge(pieces: Sequence[str], pair: Pair) -> list[str]:
    """Return ``pieces`` with each occurrence of a ``pair`` joined, from left to right.

    What was joined is not joined again: of *a a a* the first two become *aa*, and the
    third stays alone.
    """
    joined, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            joined.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def learn_merges(words: Iterable[str], merges: int) -> list[Pair]:
    """Return the pairs that are joined, in the order in which they are learned.

    The rule for ties: of the pairs that are as frequent, the one whose first piece is
    the oldest, then the one whose second piece is. Letters are the oldest, in the order
    of Unicode, then come pieces as they were learned. ``tokenizers`` has the same rule.

    Args:
        words: words of a text, each as often as it stands there.
        merges: number of merges; there are fewer if every word is one piece before.
    """
    require.count(0, merges=merges)
    times = Counter(words)
    pieces = {word: list(word) for word in times}
    age = {letter: i for i, letter in enumerate(sorted(set("".join(times))))}
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[str]] = defaultdict(set)  # words that hold a pair

    def count(word: str, sign: int) -> None:
        for pair in pairwise(pieces[word]):
            counts[pair] += sign * times[word]
            places[pair].add(word)
            if not counts[pair]:
                del counts[pair]

    for word in times:
        count(word, 1)
    learned: list[Pair] = []
    while len(learned) < merges and counts:
        most = max(counts.values())
        tied = [pair for pair, n in counts.items() if n == most]
        best = min(tied, key=lambda pair: (age[pair[0]], age[pair[1]]))
        learned.append(best)
        age.setdefault("".join(best), len(age))
        for word in places.pop(best):  # no other count changes
            count(word, -1)
            pieces[word] = merge(pieces[word], best)
            count(word, 1)
    return learned


def apply_merges(word: str, merges: Sequence[Pair]) -> list[str]:
    """Return the pieces of a ``word``.

    Of the pairs that stand in it, the one that was learned first is joined first.

    Args:
        word: letters, perhaps with ``"▁"`` before them.
        merges: what :func:`learn_merges` gave.
    """
    pieces, rank = list(word), {pair: i for i, pair in enumerate(merges)}
    while len(pieces) > 1:
        best = min(pairwise(pieces), key=lambda pair: rank.get(pair, len(rank)))
        if best not in rank:
            break
        pieces = merge(pieces, best)
    return pieces


def recover_merges(ranks: dict[str, int]) -> list[Pair]:
    """Return the merges of a tokenizer that tells its pieces alone.

    When a piece was learned, it was joined from two older ones: those that its letters
    become when the merges before it are applied.

    Args:
        ranks: for each piece when it was learned; those of one letter are no merges.

    Raises:
        ValueError: if a piece is no join of two older ones.
    """
    recovered: list[Pair] = []
    for piece in sorted((p for p in ranks if len(p) > 1), key=ranks.get):
        parts = apply_merges(piece, recovered)
        require.that(
            len(parts) == 2, f"ranks: {piece!r} must be two older pieces, got {parts}"
        )
        recovered.append((parts[0], parts[1]))
    return recovered
