"""Vocabularies, batches, and the tasks that need no download.

Dates: the same day written as people write it in sixteen locales, to be read into
ISO 8601. The texts come from the Unicode locale data through ``babel``.
"""

import datetime
import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

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

    Raises:
        ValueError: if there is no symbol, or one has the name of a special symbol.
    """

    SPECIAL = ("<pad>", "<start>", "<end>")
    pad, start, end = 0, 1, 2

    def __init__(self, symbols: Iterable[str]):
        ordinary = sorted(set(symbols))
        if not ordinary:
            raise ValueError("symbols must hold at least one symbol, got none")
        taken = set(ordinary) & set(self.SPECIAL)
        if taken:
            raise ValueError(f"symbols must not use the special names {sorted(taken)}")
        self.symbols = (*self.SPECIAL, *ordinary)
        self._ids = {symbol: i for i, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, sequence: Iterable[str], end: bool = False) -> list[int]:
        """Return the ids of a sequence of symbols.

        Args:
            sequence: symbols; a string is a sequence of characters.
            end: append the end symbol.

        Raises:
            ValueError: if a symbol is not in the vocabulary.
        """
        sequence = list(sequence)
        unknown = sorted({s for s in sequence if s not in self._ids})
        if unknown:
            raise ValueError(
                f"sequence holds symbols outside the vocabulary: {unknown}; "
                f"known are {len(self) - 3} symbols"
            )
        return [self._ids[s] for s in sequence] + [self.end] * end

    def decode(self, ids: Iterable[int] | Int[Tensor, "t"]) -> list[str]:
        """Return the symbols up to the first end symbol, special ones left out.

        Args:
            ids: token ids, ``(t,)`` if a tensor.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        symbols = []
        for i in map(int, ids):
            if not 0 <= i < len(self):
                raise ValueError(f"ids must lie between 0 and {len(self) - 1}, got {i}")
            if i == self.end:
                break
            if i >= len(self.SPECIAL):
                symbols.append(self.symbols[i])
        return symbols


class Batch(NamedTuple):
    """Padded pairs of sequences, as tensors of whole numbers."""

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
    """Stack sequences of unlike length, padding behind the shorter ones.

    Args:
        sequences: token ids, at least one sequence.
        pad: id to fill with.

    Returns:
        Ids ``(b, s)`` and lengths ``(b,)``.

    Raises:
        ValueError: if there is no sequence.
    """
    if not sequences:
        raise ValueError("sequences must hold at least one sequence, got none")
    lengths = torch.tensor([len(s) for s in sequences])
    tokens = torch.full((len(sequences), int(lengths.max())), pad)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    return tokens, lengths


def make_batch(
    pairs: Sequence[tuple[Iterable[str], Iterable[str]]],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
) -> Batch:
    """Turn pairs of symbol sequences into one padded batch.

    The target is what the decoder reads (start symbol first), the labels are what
    it should answer (end symbol last): the same sequence, one step apart.

    Args:
        pairs: source and target, each a sequence of symbols.
        source_vocabulary: symbols of the sources.
        target_vocabulary: symbols of the targets.

    Returns:
        The batch, padded behind the shorter sequences.

    Raises:
        ValueError: if there is no pair, or a symbol is in no vocabulary.
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
        pairs: source and target texts.
        source_vocabulary: symbols of the sources.
        target_vocabulary: symbols of the targets.
        size: pairs in a batch; the last one may hold fewer.
        seed: shuffles pairs and batches; ``None`` keeps the order of ``pairs``.

    Yields:
        Batches; together they hold every pair once.

    Raises:
        ValueError: if ``size`` is below 1.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    pairs = list(pairs)
    starts = list(range(0, len(pairs), size))
    if seed is not None:
        rng = random.Random(seed)
        rng.shuffle(pairs)
        # sort within pools of batches: alike in length, still in random company
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
    """Cut pairs into batches of about as many tokens each, padding included.

    Vaswani et al. (2017), section 5.1: batches hold sequences of about one length, so
    that short ones come many at a time and long ones few.

    Args:
        pairs: source and target texts.
        source_vocabulary: symbols of the sources.
        target_vocabulary: symbols of the targets.
        tokens: most places in a batch, on either side: pairs times longest sequence.
        seed: shuffles pairs of one length, and the batches; ``None`` keeps both in
            order of length.

    Returns:
        An iterator over batches; together they hold every pair once.

    Raises:
        ValueError: at the call, if ``tokens`` is no whole number from 1 on, or a pair
            alone has more.
    """
    _require_counts(1, tokens=tokens)
    # the target's end symbol takes a place as well
    sized = [(max(len(pair[0]), len(pair[1]) + 1), pair) for pair in pairs]
    for i, (size, _) in enumerate(sized):
        if size > tokens:
            raise ValueError(
                f"tokens must be at least {size}, for pair {i}; got {tokens}"
            )
    rng = random.Random(seed)
    if seed is not None:
        rng.shuffle(sized)
    sized.sort(key=lambda item: item[0])  # stable: shuffled among equals
    groups: list[list[tuple[str, str]]] = []
    for size, pair in sized:
        if not groups or (len(groups[-1]) + 1) * size > tokens:
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
    vocab: int = 11,
    length: int = 10,
    shortest: int | None = None,
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """Draw random sequences, and what is to be written for them.

    Ids: 0 pads, 1 starts every sequence, the others are drawn from 1 to vocab − 1.

    Args:
        task: "copy", "reverse" or "sort"; the start symbol stays in front.
        count: number b of sequences.
        generator: where the numbers come from.
        vocab: number of ids, the padding included.
        length: symbols of the longest sequence, the start symbol included.
        shortest: symbols of the shortest, lengths being drawn in between; all have
            ``length`` if not given.

    Returns:
        Source and target, both ``(b, length)``.

    Raises:
        ValueError: if the task is unknown or a number is out of range.
    """
    shortest = length if shortest is None else shortest
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, got {task!r}")
    _require_counts(3, vocab=vocab)
    _require_counts(1, count=count)
    _require_counts(2, length=length, shortest=shortest)
    if shortest > length:
        raise ValueError(f"shortest must not be above length={length}, got {shortest}")
    drawn = torch.randint(1, vocab, (count, length), generator=generator)
    sizes = torch.randint(shortest, length + 1, (count, 1), generator=generator)
    places = torch.arange(length)
    drawn[:, 0] = 1
    source = drawn.masked_fill(places >= sizes, 0)
    if task == "copy":
        return source, source.clone()
    if task == "reverse":
        back = (sizes - places).clamp(min=0)  # place 1 gets the last real symbol
        target = source.gather(1, back.where(back < length, 0))
    else:
        behind = source.masked_fill(source == 0, vocab)  # padding sorts to the end
        target = behind[:, 1:].sort(dim=1).values
        target = torch.cat([source[:, :1], target], dim=1)
        target = target.masked_fill(target == vocab, 0)
    target[:, 0] = 1
    return source, target.masked_fill(places >= sizes, 0)


def _require_counts(least: int, **counts: int) -> None:
    for name, count in counts.items():
        whole = isinstance(count, Integral) and not isinstance(count, bool)
        if not whole or count < least:
            raise ValueError(
                f"{name} must be a whole number from {least} on, got {count!r}"
            )


def date_split(day: datetime.date) -> str:
    """Return the split that a ``day`` belongs to, whatever its locale or style.

    A hash of the day decides, so no day is in two splits and none ever moves:
    8 in 10 days are for training, 1 each for validation and test.
    """
    bucket = hashlib.sha256(day.isoformat().encode()).digest()[0] % 10
    return "train" if bucket < 8 else SPLITS[bucket - 7]


def write_date(day: datetime.date, locale: str, style: str) -> str:
    """Write a day as people of a locale do.

    Args:
        day: the day.
        locale: name of a locale, one of ``LOCALES`` or any other that babel knows.
        style: ``"full"``, ``"long"``, ``"medium"`` or ``"short"`` of the Unicode
            locale data.

    Returns:
        The text, with every kind of space written as a plain one.
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
    """Draw lines of dates and their ISO forms.

    Args:
        count: number of lines.
        split: ``"train"``, ``"validation"`` or ``"test"``; see :func:`date_split`.
        seed: seed of the draw.
        locales: locales to draw from; a line stays in one locale.
        dates: least and most dates in a line; separated by ``"; "`` in the source
            and by a space in the target.

    Returns:
        Pairs such as ``("7. März 2024", "2024-03-07")``.

    Raises:
        ValueError: if ``split`` or ``dates`` is none of those named, ``locales`` is
            empty, or ``count`` is negative.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
    if not locales:
        raise ValueError("locales must hold at least one locale to draw from, got none")
    if count < 0:
        raise ValueError(f"count must be 0 or more, got {count}")
    least, most = dates
    if not 1 <= least <= most:
        raise ValueError(f"dates must be 1 ≤ least ≤ most, got {dates}")
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
        days = [draw() for _ in range(rng.randint(least, most))]
        source = "; ".join(write_date(day, locale, rng.choice(STYLES)) for day in days)
        pairs.append((source, " ".join(day.isoformat() for day in days)))
    return pairs
