"""Number words: what 0 to 999,999 are called in English and in French.

English is British: *three hundred and five*. French has its traditional spelling, that
of the time before 1990: the words of a number below a hundred are joined by hyphens
(*quatre-vingt-un*) or by *et* (*vingt et un*, *soixante et onze*), others stand apart;
*vingt* and *cent* that are multiplied have an *s* where the number ends (*deux cents*,
but *deux cent un* and *deux cent mille*); *mille* never changes. *Les rectifications de
l'orthographe* (Journal officiel, 6 December 1990) made hyphens throughout right as well
(*vingt-et-un*, *deux-cent-un*).
"""

import hashlib
import random
import re

from annotated import require
from annotated.batches import SPLITS

LARGEST = 999_999
SMALL_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
TENS_ENGLISH = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SMALL_FRENCH = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
    "quinze seize dix-sept dix-huit dix-neuf"
).split()
# seventy is sixty and ten, ninety is eighty and ten
TENS_FRENCH = (
    "vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt"
).split()


def english(number: int) -> str:
    """Return the English words for a ``number``, from 0 to 999,999."""
    require.count(least=0, most=LARGEST, number=number)
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _english(rest)
    words = f"{_english(thousands)} thousand"
    if rest:
        words += f" {'and ' if rest < 100 else ''}{_english(rest)}"
    return words


def _english(number: int) -> str:
    """Return the words for a number below a thousand."""
    hundreds, rest = divmod(number, 100)
    if hundreds:
        words = f"{SMALL_ENGLISH[hundreds]} hundred"
        return f"{words} and {_english(rest)}" if rest else words
    if rest < 20:
        return SMALL_ENGLISH[rest]
    tens, ones = divmod(rest, 10)
    return TENS_ENGLISH[tens - 2] + (f"-{SMALL_ENGLISH[ones]}" if ones else "")


def french(number: int) -> str:
    """Return the French words for a ``number``, from 0 to 999,999."""
    require.count(least=0, most=LARGEST, number=number)
    thousands, rest = divmod(number, 1000)
    words = []
    if thousands:
        words += ["mille"] if thousands == 1 else [_french(thousands), "mille"]
    if rest or not thousands:
        # cent and vingt have their s only here, where they end the number
        several = rest % 100 == 80 or (rest > 100 and rest % 100 == 0)
        words.append(_french(rest) + "s" * several)
    return " ".join(words)


def _french(number: int) -> str:
    """Return the words for a number below a thousand, which something may follow."""
    hundreds, rest = divmod(number, 100)
    if hundreds:
        words = "cent" if hundreds == 1 else f"{SMALL_FRENCH[hundreds]} cent"
        return f"{words} {_french(rest)}" if rest else words
    if rest < 20:
        return SMALL_FRENCH[rest]
    tens, ones = divmod(rest, 10)
    ones += 10 * (tens in (7, 9))
    ten = TENS_FRENCH[tens - 2]
    if not ones:
        return ten
    if ones in (1, 11) and tens < 8:
        return f"{ten} et {SMALL_FRENCH[ones]}"
    return f"{ten}-{SMALL_FRENCH[ones]}"


def cut_words(text: str) -> list[str]:
    """Return the words of a ``text``; one that a hyphen joins on keeps its hyphen.

    So *trente-deux mille* is ``trente``, ``-deux`` and ``mille``.
    """
    return re.findall(r"-?[^\s-]+", text)


def join_words(words: list[str]) -> str:
    """Return the text whose ``words`` :func:`cut_words` returned."""
    return " ".join(words).replace(" -", "-")


def number_split(number: int) -> str:
    """Return the split that a ``number`` belongs to.

    Those below a hundred are for training, since nobody can guess a word. Of the others
    a hash of the digits decides: 18 in 20 are for training, 1 each for validation and
    test.
    """
    if number < 100:
        return "train"
    bucket = int.from_bytes(hashlib.sha256(str(number).encode()).digest()[:4]) % 20
    return "train" if bucket < 18 else SPLITS[bucket - 17]


def numbers_of(split: str, size: int) -> list[int]:
    """Return different numbers of a split, drawn with a fixed seed.

    Short ones are as likely as long ones: the number of digits is drawn first. (Of all
    numbers up to 999,999 nine in ten have six digits.)

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``; see :func:`number_split`.
        size: how many, at most 30,000; the test split holds about 50,000.
    """
    require.choice(SPLITS, split=split)
    require.count(least=1, most=30_000, size=size)
    rng = random.Random(0)
    numbers: dict[int, None] = {}  # a set that keeps its order
    while len(numbers) < size:
        number = rng.randrange(10 ** rng.randint(1, 6))
        if number_split(number) == split:
            numbers[number] = None
    return list(numbers)
