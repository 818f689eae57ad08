"""Vocabularies, batches, and the tasks that need no download.

Dates: the same day written as people write it in sixteen locales, to be read into
ISO 8601. The texts come from the Unicode locale data through ``babel``. Letters: b
batch, s source length, t target length (``book/notation.md``).
"""

import datetime
import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from annotated import require

LOCALES = (
    "en_US", "en_GB", "de", "fr", "es", "it", "pt", "nl",
    "sv", "fi", "pl", "hu", "tr", "el", "ru", "zh",
)  # fmt: skip
# "short" is left out: 3/7/24 is the seventh of March in one country and the third
# of July in another, so no model could read it.
STYLES = ("full", "long", "medium")
FIRST_DAY, LAST_DAY = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
SPLITS = ("train", "validation", "test")


class Vocabulary:
    """Symbols and their ids; the first three ids are pad, start and end.

    Args:
        symbols: the symbols, in any order, repeats allowed; ids follow the sorted
            order, so that the same symbols always give the same ids.
    """

    SPECIAL = ("<pad>", "<start>", "<end>")
    pad, start, end = 0, 1, 2

    def __init__(self, symbols: Iterable[str]):
        self.symbols = (*self.SPECIAL, *sorted(set(symbols)))
        self._ids = {symbol: i for i, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, sequence: Iterable[str], end: bool = False) -> list[int]:
        """Return the ids of a ``sequence`` of symbols, and of ``end`` after them.

        Raises:
            ValueError: if a symbol is not in the vocabulary.
        """
        sequence = list(sequence)
        unknown = sorted(set(sequence) - set(self._ids))
        if unknown:
            raise ValueError(
                f"sequence holds symbols outside the vocabulary: {unknown}"
            )
        return [self._ids[s] for s in sequence] + [self.end] * end

    def decode(self, ids: Iterable[int] | Int[Tensor, "t"]) -> list[str]:
        """Return the symbols of ``ids`` before the first end, special ones left out."""
        before_end = takewhile(lambda i: i != self.end, map(int, ids))
        return [self.symbols[i] for i in before_end if i >= len(self.SPECIAL)]


class Batch(NamedTuple):
    """Padded pairs of sequences, as tensors of integers."""

    source: Tensor  #: ``(b, s)``
    lengths: Tensor  #: ``(b,)``, real tokens of each source
    target: Tensor  #: ``(b, t)``, begins with the start symbol
    labels: Tensor  #: ``(b, t)``, the target one step ahead, ends with the end symbol

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on another ``device``."""
        return Batch(*(tensor.to(device) for tensor in self))


def pad_sequences(
    sequences: Sequence[Sequence[int]], pad: int = 0
) -> tuple[Tensor, Tensor]:
    """Return ids ``(b, s)``, padded after the shorter sequences, and lengths ``(b,)``.

    Args:
        sequences: token ids, at least one sequence.
        pad: id to fill with.
    """
    rows = [torch.tensor(sequence, dtype=torch.long) for sequence in sequences]
    tokens = pad_sequence(rows, batch_first=True, padding_value=pad)
    return tokens, torch.tensor([len(row) for row in rows])


def make_batch(
    pairs: Sequence[tuple[Iterable[str], Iterable[str]]],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
) -> Batch:
    """Return one batch of pairs, padded after the shorter sequences.

    The target is what the decoder reads (start symbol first), the labels are what
    it should answer (end symbol last): the same sequence, one step apart.

    Args:
        pairs: source and target, each a sequence of symbols.
        source_vocabulary: symbols of the sources.
        target_vocabulary: symbols of the targets.
    """
    sources = [source_vocabulary.encode(source) for source, _ in pairs]
    targets = [target_vocabulary.encode(target, end=True) for _, target in pairs]
    source, lengths = pad_sequences(sources, source_vocabulary.pad)
    labels, _ = pad_sequences(targets, target_vocabulary.pad)
    start = torch.full_like(labels[:, :1], target_vocabulary.start)
    return Batch(source, lengths, torch.cat([start, labels[:, :-1]], dim=1), labels)


def batches(
    pairs: Sequence[tuple[str, str]],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    size: int,
    seed: int | None = None,
) -> Iterator[Batch]:
    """Cut pairs into batches of similar source length, so that little is padding.

    Args:
        pairs: as for :func:`make_batch`, ``source_vocabulary`` and
            ``target_vocabulary`` too.
        size: pairs in a batch; the last one may hold fewer.
        seed: shuffles pairs and batches; ``None`` keeps the order of ``pairs``.

    Yields:
        Batches; together they hold every pair once.
    """
    require.count(size=size)
    pairs = list(pairs)
    starts = list(range(0, len(pairs), size))
    if seed is not None:
        rng = random.Random(seed)
        rng.shuffle(pairs)
        # sort within pools of batches: similar in length, and still mixed at random
        pool = 20 * size
        for i in range(0, len(pairs), pool):
            pairs[i : i + pool] = sorted(pairs[i : i + pool], key=lambda p: len(p[0]))
        rng.shuffle(starts)
    for i in starts:
        yield make_batch(pairs[i : i + size], source_vocabulary, target_vocabulary)


def token_batches(
    pairs: Sequence[tuple[str, str]],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    tokens: int,
    seed: int | None = None,
) -> Iterator[Batch]:
    """Return batches of about as many tokens each, which hold every pair once.

    Vaswani et al. (2017), section 5.1: batches hold sequences of about one length, so
    that short ones come many at a time and long ones few.

    Args:
        pairs: as for :func:`make_batch`, ``source_vocabulary`` and
            ``target_vocabulary`` too.
        tokens: most positions in a batch, padding included, on either side: pairs
            times longest sequence.
        seed: shuffles pairs of one length, and the batches; ``None`` keeps both in
            order of length.
    """
    require.count(tokens=tokens)

    def size(pair: tuple[str, str]) -> int:
        return max(len(pair[0]), len(pair[1]) + 1)  # the target's end symbol, too

    require.at_most(longest=max(map(size, pairs), default=0), tokens=tokens)
    rng, pairs = random.Random(seed), list(pairs)
    if seed is not None:
        rng.shuffle(pairs)
    groups: list[list[tuple[str, str]]] = []
    for pair in sorted(pairs, key=size):  # stable: shuffled among equals
        if not groups or (len(groups[-1]) + 1) * size(pair) > tokens:
            groups.append([])
        groups[-1].append(pair)
    if seed is not None:
        rng.shuffle(groups)
    return (make_batch(g, source_vocabulary, target_vocabulary) for g in groups)


TASKS = ("copy", "reverse", "sort")


def sequence_task(
    task: str,
    count: int,
    generator: torch.Generator,
    *,
    vocab_size: int = 11,
    length: int = 10,
    shortest: int | None = None,
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """Return random sequences, and what is to be written for them, ``(b, length)``.

    Ids: 0 pads, 1 starts every sequence, the others are drawn from 1 on.

    Args:
        task: "copy", "reverse" or "sort"; the start symbol stays in front.
        count: number b of sequences.
        generator: where the numbers come from.
        vocab_size: number of ids, the padding included.
        length: symbols of the longest sequence, the start symbol included.
        shortest: symbols of the shortest, lengths being drawn in between; all have
            ``length`` if not given.
    """
    shortest = length if shortest is None else shortest
    require.choice(TASKS, task=task)
    require.count(count=count)
    require.count(least=3, vocab_size=vocab_size)
    require.count(least=2, most=length, shortest=shortest)
    drawn = torch.randint(1, vocab_size, (count, length), generator=generator)
    sizes = torch.randint(shortest, length + 1, (count, 1), generator=generator)
    positions = torch.arange(length)
    drawn[:, 0] = 1
    source = drawn.masked_fill(positions >= sizes, 0)
    if task == "copy":
        return source, source.clone()
    if task == "reverse":
        back = (sizes - positions).clamp(min=0)  # position 1 gets the last real symbol
        target = source.gather(1, back.where(back < length, 0))
    else:
        behind = source.masked_fill(source == 0, vocab_size)  # padding sorts to the end
        target = behind[:, 1:].sort(dim=1).values
        target = torch.cat([source[:, :1], target], dim=1)
    target[:, 0] = 1
    return source, target.masked_fill(positions >= sizes, 0)


def date_split(day: datetime.date) -> str:
    """Return the split that a ``day`` belongs to, whatever its locale or style.

    A hash of the day decides, so no day is in two splits and none ever moves:
    8 in 10 days are for training, 1 each for validation and test.
    """
    bucket = hashlib.sha256(day.isoformat().encode()).digest()[0] % 10
    return "train" if bucket < 8 else SPLITS[bucket - 7]


def write_date(day: datetime.date, locale: str, style: str) -> str:
    """Return a day as people of a locale write it, with plain spaces.

    Args:
        day: the day.
        locale: name of a locale, one of ``LOCALES`` or any other that babel knows.
        style: ``"full"``, ``"long"``, ``"medium"`` or ``"short"``.
    """
    from babel.dates import format_date

    return " ".join(format_date(day, style, locale=locale).split())


def date_pairs(
    count: int,
    split: str,
    seed: int = 0,
    locales: Sequence[str] = LOCALES,
    dates: tuple[int, int] = (1, 1),
) -> list[tuple[str, str]]:
    """Return lines of dates with their ISO forms: ``("7. März 2024", "2024-03-07")``.

    Args:
        count: number of lines.
        split: ``"train"``, ``"validation"`` or ``"test"``; see :func:`date_split`.
        seed: seed of the draw.
        locales: locales to draw from; a line stays in one locale.
        dates: least and most dates in a line; separated by ``"; "`` in the source
            and by a space in the target.
    """
    require.choice(SPLITS, split=split)
    rng = random.Random(f"{split}-{seed}")
    span = (LAST_DAY - FIRST_DAY).days + 1

    def draw() -> datetime.date:
        while True:
            day = FIRST_DAY + datetime.timedelta(rng.randrange(span))
            if date_split(day) == split:
                return day

    pairs = []
    for _ in range(count):
        locale = rng.choice(locales)
        days = [draw() for _ in range(rng.randint(*dates))]
        source = "; ".join(write_date(day, locale, rng.choice(STYLES)) for day in days)
        pairs.append((source, " ".join(day.isoformat() for day in days)))
    return pairs
