"""Text as characters: a text that every Python brings along, and windows of it.

The text is the source of Python's own standard library, under the licence of the
Python Software Foundation, read from the Python that runs; nothing is downloaded.
Which modules, and in which order, is fixed here. Their text is not: each Python has its
own, a few per cent different from the next. :func:`library_facts` gives the hash of the
text that is read, which recorded runs keep.

Letters: b batch, t length of a window (``book/notation.md``).
"""

import hashlib
import platform
import sysconfig
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from annotated import require
from annotated.batches import Vocabulary

# Whole modules are held out: a text beside one that was learned would be too easy.
# Tables (encodings, locales) are left out; what is here is plain ASCII in Python 3.11
# to 3.13.
MODULES = {
    "train": (
        "argparse", "ast", "bdb", "calendar", "collections/__init__", "configparser",
        "contextlib", "copy", "csv", "dataclasses", "difflib", "doctest", "enum",
        "gettext", "gzip", "inspect", "ipaddress", "json/decoder", "json/encoder",
        "logging/__init__", "mailbox", "optparse", "os", "pickle", "pkgutil",
        "plistlib", "pprint", "selectors", "shutil", "subprocess", "tarfile",
        "threading", "tokenize", "trace", "traceback", "typing", "unittest/case",
        "unittest/mock", "weakref",
    ),
    "validation": (
        "cmd", "queue", "shelve", "socketserver", "tempfile", "textwrap", "timeit",
        "uuid",
    ),
}  # fmt: skip
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))  # printable ASCII


class Characters(Vocabulary):
    """Characters and their ids, which follow the order of Unicode; none is special.

    A text without end needs neither padding nor symbols for start and end.
    ``"".join(characters.decode(characters.encode(text)))`` is ``text``.

    Args:
        symbols: the characters, in any order, repeats allowed.
    """

    SPECIAL = ()
    pad = start = end = None


def standard_library(split: str) -> str:
    """Return the source text of modules of the standard library, one after another.

    Every character is one of ``CHARACTERS``: a tab becomes spaces, and where a Python
    has another character, its escape stands in its place (``\\xe9`` for é).

    Args:
        split: ``"train"`` or ``"validation"``: other modules, named in ``MODULES``.

    Raises:
        FileNotFoundError: if this Python has a module no more, or not as a text.
    """
    require.choice(MODULES, split=split)
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = "".join((folder / f"{m}.py").read_text("utf-8") for m in MODULES[split])
    plain = text.expandtabs().replace("\f", "\n")  # a form feed ends a page
    return plain.encode("ascii", "backslashreplace").decode()


def library_facts() -> dict[str, Any]:
    """Return what is to be known of the text: its Python, licence, sizes and hash.

    Two runs read the same text if they have the same ``"sha256"``, that of
    ``"train"`` and then ``"validation"`` in UTF-8.
    """
    texts = {split: standard_library(split) for split in MODULES}
    return {
        "python": platform.python_version(),
        "licence": "PSF License Agreement",
        "modules": {split: len(names) for split, names in MODULES.items()},
        "characters": {split: len(text) for split, text in texts.items()},
        "sha256": hashlib.sha256("".join(texts.values()).encode()).hexdigest(),
    }


@require.shapes
def random_windows(
    ids: Int[Tensor, "n"], length: int, size: int, steps: int, seed: int
) -> Iterator[tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]]:
    """Draw batches of windows, each with the same window one character later.

    Target i of a window is the character that follows its character i: every position
    is a prediction to learn from.

    Args:
        ids: the whole text.
        length: characters t in a window.
        size: windows b in a batch.
        steps: number of batches.
        seed: of the draw; windows may overlap, and begin anywhere.

    Yields:
        Windows and targets, ``(b, t)`` each, in ``int64``.

    Raises:
        ValueError: if the text holds no window and the character after it.
    """
    require.count(length=length, size=size)
    require.at_most(length=length, characters_but_one=len(ids) - 1)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(ids) - length, (size, 1), generator=generator)
        rows = ids[starts + torch.arange(length + 1)].long()  # (b, t + 1)
        yield rows[:, :-1], rows[:, 1:]


@require.shapes
def all_windows(
    ids: Int[Tensor, "n"], length: int, size: int
) -> Iterator[tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]]:
    """Cut a text into windows that lie end to end, with the targets of each.

    Every character but the first is the target of one window. The characters left over
    at the end are a shorter window, in a batch of its own.

    Args:
        ids: the whole text.
        length: characters t in a window.
        size: windows b in a batch; there may be fewer in the last ones.

    Yields:
        Windows and targets, ``(b, t)`` each, in ``int64``.

    Raises:
        ValueError: if the text holds no two characters.
    """
    require.count(length=length, size=size)
    require.at_most(two=2, characters=len(ids))
    ids, whole = ids.long(), (len(ids) - 1) // length * length
    if whole:
        windows = ids[:whole].view(-1, length).split(size)
        targets = ids[1 : whole + 1].view(-1, length).split(size)
        yield from zip(windows, targets, strict=True)
    if whole < len(ids) - 1:
        yield ids[None, whole:-1], ids[None, whole + 1 :]


@require.shapes
def ngram_bits(
    train: Int[Tensor, "n"], text: Int[Tensor, "m"], order: int, size: int
) -> float:
    """Return the bits per character of counting, the floor that a model should beat.

    A character is predicted from the ``order − 1`` before it, as often as it followed
    them in ``train``, each count one more (Laplace), so that nothing is impossible:
    −log₂ of that probability, in the mean over ``text``.

    Args:
        train: the ids that are counted.
        text: the ids that are predicted, but for the first ``order − 1``.
        order: 1 for unigrams, 2 for bigrams, 3 for trigrams.
        size: number of characters that there are.

    Raises:
        ValueError: if a text is shorter than ``order``, or holds an id outside
            the vocabulary.
    """
    require.count(1, 3, order=order)
    require.ids(size, train=train, text=text)
    require.at_most(order=order, characters=min(len(train), len(text)))

    def codes(ids: Tensor) -> Tensor:  # one number for each run of `order` characters
        weights = size ** torch.arange(order - 1, -1, -1)
        return ids.cpu().unfold(0, order, 1) @ weights

    counts = torch.bincount(codes(train), minlength=size**order).view(-1, size) + 1.0
    chances = (counts / counts.sum(dim=1, keepdim=True)).flatten()
    return -chances[codes(text)].double().log().mean().item() / log(2)
