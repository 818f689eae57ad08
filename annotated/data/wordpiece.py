"""WordPiece: BERT's vocabulary of pieces, and how a word is cut into them.

Schuster and Nakajima (2012). A piece that doesn't begin a word is written with "##"
before it. A vocabulary grows by joining neighbours, as in :mod:`annotated.data.bpe`; a
word is then cut without these joins: the longest piece that it begins with, and so on.

BERT's vocabulary was published, the program that made it wasn't. The paper of 2012 says
that the pair is joined that raises the likelihood of the text most: our "likelihood",
which takes each piece as drawn by itself. "ratio", count(ab) / (count(a) · count(b)),
is the guess of Hugging Face's course and what most texts describe; "count" is
byte-pair encoding, and what the library ``tokenizers`` does.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from math import log

from annotated import require
from annotated.data.bpe import Pair, merge

INSIDE = "##"  #: what a piece begins with that doesn't begin a word
UNKNOWN = "[UNK]"


# ---- words ---------------------------------------------------------------------


def bert_words(text: str, lower: bool = True, accents: bool = False) -> list[str]:
    """Return the words of a ``text`` as BERT's tokenizer does; signs stand alone.

    Args:
        text: spaces and characters that can't be seen are lost.
        lower: whether capitals become small letters, as BERT "uncased" wants them.
        accents: whether accents stay; without them, "é" is "e", and "й" is "и".
    """
    if not accents:
        letters = unicodedata.normalize("NFD", text)
        text = "".join(c for c in letters if unicodedata.category(c) != "Mn")
    text = text.lower() if lower else text
    seen = (c for c in text if c in "\t\n\r" or unicodedata.category(c)[0] != "C")
    return "".join(f" {c} " if _alone(c) else c for c in seen).split()


def _alone(c: str) -> bool:
    sign = unicodedata.category(c)[0] == "P" or (c.isascii() and not c.isalnum())
    return sign or "㐀" <= c <= "䶿" or "一" <= c <= "鿿"  # Chinese has no spaces


# ---- cutting -------------------------------------------------------------------


def cut_word(word: str, pieces: Collection[str], longest: int = 100) -> list[str]:
    """Return the pieces of a ``word``: always the longest one that fits, from the left.

    Where none fits, the whole word is ``"[UNK]"``, however much of it was cut before.

    Args:
        word: letters.
        pieces: the vocabulary, a set or a dictionary.
        longest: a word of more letters is unknown.
    """
    cut, start = [], 0
    while start < len(word) <= longest:
        before = INSIDE if start else ""
        ends = range(len(word), start, -1)
        fits = (end for end in ends if before + word[start:end] in pieces)
        end = next(fits, None)
        if end is None:
            return [UNKNOWN]
        cut.append(before + word[start:end])
        start = end
    return cut if len(word) <= longest else [UNKNOWN]


# ---- learning ------------------------------------------------------------------


def likelihood_gain(
    both: int, first: int, second: int, total: int, same: bool
) -> float:
    """Return by how many nats a join raises the likelihood of a text.

    Each piece is drawn by itself, with its share of all pieces. The text is then worth
    Σ n ln n − N ln N nats, n for each piece's count and N for all. (Of *aaa*, pairs
    overlap, and the gain is a little less.)

    Args:
        both: how often the pair stands in the text.
        first: how often its first piece does.
        second: how often its second piece does.
        total: number of pieces in the text.
        same: whether the two are the same piece.
    """
    before = _nats(first) + (0 if same else _nats(second)) - _nats(total)
    left = (first - 2 * both,) if same else (first - both, second - both)
    return sum(map(_nats, left)) + _nats(both) - _nats(total - both) - before


def _nats(n: int) -> float:
    return n * log(n) if n > 0 else 0.0


SCORES: dict[str, Callable[[int, int, int, int, bool], float]] = {
    "likelihood": likelihood_gain,
    "ratio": lambda both, first, second, total, same: both / (first * second),
    "count": lambda both, first, second, total, same: both,
}


def letters_of(word: str) -> list[str]:
    """Return the letters of a ``word`` as pieces; all but the first begin with "##"."""
    return [INSIDE * (i > 0) + letter for i, letter in enumerate(word)]


def learn_pieces(
    words: Iterable[str], joins: int, score: str = "likelihood", min_count: int = 1
) -> list[str]:
    """Return a vocabulary: the letters by age, then the pieces as they were joined.

    Of pairs with the same score, the one whose first piece is the oldest is joined,
    then the one whose second piece is; letters are the oldest.

    Args:
        words: words of a text, each as often as it stands there.
        joins: number of joins; there are fewer if no pair is left.
        score: what makes the best pair, one of ``SCORES``.
        min_count: how often a pair has to stand in the text to be joined.
    """
    require.count(0, joins=joins)
    require.count(min_count=min_count)
    require.choice(SCORES, score=score)
    times = Counter(words)
    cuts = {word: letters_of(word) for word in times}
    single: Counter[str] = Counter()
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[str]] = defaultdict(set)  # words that hold a pair

    def count(word: str, sign: int) -> None:
        for piece in cuts[word]:
            single[piece] += sign * times[word]
        for pair in pairwise(cuts[word]):
            counts[pair] += sign * times[word]
            places[pair].add(word)
            if not counts[pair]:
                del counts[pair]

    def worth(pair: Pair) -> float:
        first, second = pair
        given = single[first], single[second], total, first == second
        return SCORES[score](counts[pair], *given)

    for word in times:
        count(word, 1)
    age = {letter: i for i, letter in enumerate(sorted(single))}
    for _ in range(joins):
        total = single.total()
        often = [pair for pair, n in counts.items() if n >= min_count]
        if not often:
            break
        scores = {pair: worth(pair) for pair in often}
        most = max(scores.values())
        tied = (pair for pair in often if scores[pair] == most)
        best = min(tied, key=lambda pair: (age[pair[0]], age[pair[1]]))
        piece = best[0] + best[1].removeprefix(INSIDE)
        age.setdefault(piece, len(age))
        for word in sorted(places.pop(best)):
            count(word, -1)
            cuts[word] = _join(cuts[word], best, piece)
            count(word, 1)
    return list(age)


def _join(pieces: list[str], pair: Pair, piece: str) -> list[str]:
    joined = "".join(pair)  # with a "##" too many
    return [piece if p == joined else p for p in merge(pieces, pair)]
