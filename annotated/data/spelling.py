"""Spelling to sound: how 126,052 English words are pronounced, on board.

The words are those of the CMU Pronouncing Dictionary, which comes with the package
(``annotated/vendor/cmudict``, with its own licence). Sounds are written in ARPAbet:
``K AE T`` is *cat*. Thousands of words have several right answers: *read* is ``R EH D``
and ``R IY D``.
"""

import gzip
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any

from annotated import require
from annotated.batches import SPLITS
from annotated.data.datasets import DataError

CMUDICT = {
    "title": "The CMU Pronouncing Dictionary",
    "version": "cmudict 1.1.3",
    "source": "https://github.com/cmusphinx/cmudict",
    "licence": "BSD, two clauses; © Carnegie Mellon University",
    "sha256": "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
}

Sounds = tuple[str, ...]  #: one pronunciation, such as ``("K", "AE", "T")``


def cmudict_text() -> str:
    """Return the dictionary as it is published, a pronunciation a line.

    Raises:
        DataError: if the file that came with the package is damaged.
    """
    path = files("annotated") / "vendor" / "cmudict" / "cmudict.dict.gz"
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, gzip.zlib.error) as error:
        content, found = b"", f"{type(error).__name__}: {error}"
    else:
        found = f"its sha256 is {hashlib.sha256(content).hexdigest()}"
    if hashlib.sha256(content).hexdigest() != CMUDICT["sha256"]:
        raise DataError(
            f"{path} is not the dictionary that came with this package: {found}, not "
            f"{CMUDICT['sha256']}. Install the package again."
        )
    return content.decode()


@cache
def pronunciations(stress: bool = False) -> dict[str, tuple[Sounds, ...]]:
    """Return the pronunciations of every word, the dictionary's first one first.

    A line is ``read(2) R IY1 D``: a word, the number of the pronunciation if it isn't
    the first, and its sounds. Numbers go, and so do comments, which begin with ``#``.

    Args:
        stress: keep the digits at vowels, 1 for the main stress, 2 for a second one, 0
            for none. Without them there are 39 sounds, and pronunciations that are then
            alike count as one.
    """
    words: dict[str, dict[Sounds, None]] = {}  # a set that keeps its order
    for line in cmudict_text().splitlines():
        spelled, *sounds = line.partition(" #")[0].split()
        word = re.sub(r"\(\d+\)$", "", spelled)
        if not stress:
            sounds = [sound.rstrip("012") for sound in sounds]
        words.setdefault(word, {})[tuple(sounds)] = None
    return {word: tuple(several) for word, several in words.items()}


def cmudict_facts() -> dict[str, Any]:
    """Return where the dictionary comes from, and what becomes of its lines.

    They are counted: ``"lines"``; the ``"words"`` they are about; ``"comments"`` that
    are dropped; numbered ``"further"`` pronunciations, and those of them that are
    ``"alike"`` another one of the word but for the stress; words with ``"several"``
    pronunciations without stress; and the ``"sounds"`` that there are.
    """
    lines, words = cmudict_text().splitlines(), pronunciations()
    answers = [one for several in words.values() for one in several]
    return CMUDICT | {
        "lines": len(lines),
        "words": len(words),
        "comments": sum(" #" in line for line in lines),
        "further": len(lines) - len(words),
        "alike": len(lines) - len(answers),
        "several": sum(len(several) > 1 for several in words.values()),
        "sounds": len(set().union(*answers)),
    }


def word_split(word: str) -> str:
    """Return the split that a ``word`` belongs to.

    A hash of its letters decides, so no word is in two splits and none ever moves: 18
    in 20 words are for training, 1 each for validation and test. Neither punctuation
    nor a final *s* counts: *smith*, *smiths* and *smith's* are in one split.
    """
    stem = re.sub(r"[^a-z]", "", word).removesuffix("s")
    bucket = int.from_bytes(hashlib.sha256(stem.encode()).digest()[:4]) % 20
    return "train" if bucket < 18 else SPLITS[bucket - 17]


@cache
def spelling_words(split: str, stress: bool = False) -> dict[str, tuple[Sounds, ...]]:
    """Return the words of a split with all their pronunciations.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``; see :func:`word_split`.
        stress: as for :func:`pronunciations`.
    """
    require.choice(SPLITS, split=split)
    known = pronunciations(stress)
    return {word: known[word] for word in known if word_split(word) == split}


def spelling_pairs(
    split: str, every: bool = False, stress: bool = False
) -> list[tuple[str, Sounds]]:
    """Return pairs of a word and a pronunciation, to train on.

    Args:
        split: as for :func:`spelling_words`.
        every: take all pronunciations of a word, each in a pair of its own; only the
            dictionary's first one otherwise.
        stress: as for :func:`pronunciations`.
    """
    words = spelling_words(split, stress).items()
    return [(w, one) for w, answers in words for one in answers[: None if every else 1]]
