"""Chapter 19: numbers in English or in French, a task where writing at once mixes."""

from collections.abc import Mapping, Sequence
from functools import cache

import torch
from markupsafe import Markup

from annotated.batches import Vocabulary
from annotated.data.number_words import cut_words, english, french, number_split
from annotated.devices import device_of
from annotated.page.frames import Html
from annotated.page.notebook import show_table
from annotated.recipes.translation import Cutter, Translations
from annotated.refinement import MaskedTransformer, mask_predict

Words = Sequence[str]
NUMBERS = range(1000, 10_000)


def names(number: int) -> dict[str, tuple[str, ...]]:
    """Return the words of a ``number`` in both languages."""
    spoken = {"English": english(number), "French": french(number)}
    return {language: tuple(cut_words(text)) for language, text in spoken.items()}


def two_languages() -> tuple[Translations, list[int]]:
    """Return the numbers to learn from, once in each language, and those to test."""
    train, test = (
        [n for n in NUMBERS if number_split(n) == split] for split in ("train", "test")
    )
    pairs = [([*str(n)], words) for n in train for words in names(n).values()]
    digits, words = (Vocabulary(w for pair in pairs for w in pair[i]) for i in (0, 1))
    return Translations(pairs, Cutter(digits, words, [])), test


@cache
def only_in() -> dict[str, frozenset[str]]:
    """Return the words of each language that the other one doesn't have."""
    english, french = (
        frozenset(w for n in NUMBERS for w in names(n)[language])
        for language in ("English", "French")
    )
    return {"English": english - french, "French": french - english}


def is_right(number: int, words: Words) -> bool:
    """Say whether ``words`` are a name of the ``number``."""
    return tuple(words) in names(number).values()


def is_mixed(words: Words) -> bool:
    """Say whether ``words`` are of two languages."""
    return all(not own.isdisjoint(words) for own in only_in().values())


def mixed_share(lines: Sequence[str]) -> float:
    """Return which share of the written ``lines`` are of two languages."""
    return sum(is_mixed(line.split()) for line in lines) / len(lines)


def right_share(numbers: Sequence[int], lines: Sequence[str]) -> float:
    """Return which share of the written ``lines`` are a name of their number."""
    pairs = zip(numbers, lines, strict=True)
    return sum(is_right(number, line.split()) for number, line in pairs) / len(lines)


def written_table(lines: Mapping[str, Sequence[str]], numbers: Sequence[int]) -> Html:
    """Show how many numbers are right and how many mixed, by ways of writing."""
    rows = [
        (way, f"{right_share(numbers, some):.0%}", f"{mixed_share(some):.1%}")
        for way, some in lines.items()
    ]
    caption = f"{len(numbers)} numbers that no model has seen. Right: either name."
    return show_table(("", "right", "of two languages"), rows, caption)


def wrong_lengths(numbers: Sequence[int], lines: Sequence[str]) -> tuple[int, int]:
    """Return how many lines are wrong, and of these, have the length of no name."""
    wrong = [
        len(line.split()) not in map(len, names(number).values())
        for number, line in zip(numbers, lines, strict=True)
        if not is_right(number, line.split())
    ]
    return len(wrong), sum(wrong)


def joined(words: Words) -> Markup:
    """Return ``words`` in a row, those that only French has in italics."""
    french = only_in()["French"]
    return Markup(" ").join(
        Markup("<em>{}</em>").format(word) if word in french else word for word in words
    )


def history_table(
    model: MaskedTransformer, cutter: Cutter, number: int, rounds: int
) -> Html:
    """Show what each round reads, masks as ■, and what it writes."""
    ids = [cutter.source.encode([*str(number)])]
    source = torch.tensor(ids, device=device_of(model))
    symbols = [*cutter.target.symbols, "■"]
    rows = [
        (f"{i}", *(joined([symbols[id] for id in ids[0].tolist()]) for ids in one[:2]))
        for i, one in enumerate(mask_predict(model, source, rounds=rounds).rounds, 1)
    ]
    return show_table(("round", "reads", "writes"), rows)
