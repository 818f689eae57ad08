"""Chapter 09: texts in pieces, and models that translate them.

As in ``annotated.recipes``: one seed trains on the page, ``python -m benchmarks``
trains the others, and ``python -m annotated.train`` trains any of them from a terminal.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from annotated import require
from annotated.batches import Batch, Vocabulary, pad_sequences, token_batches
from annotated.checkpoints import Record
from annotated.data.bpe import apply_merges, join_pieces, learn_merges, split_words
from annotated.data.datasets import multi30k
from annotated.data.number_words import (
    cut_words,
    english,
    french,
    join_words,
    numbers_of,
)
from annotated.data.spelling import Sounds, spelling_pairs, spelling_words
from annotated.devices import device_of
from annotated.metrics import error_rates
from annotated.recipes.common import one_cycle
from annotated.search import (
    DecoderCache,
    Hypothesis,
    beam_search,
    cached_greedy_decode,
)
from annotated.training import LabelSmoothing, fit
from annotated.transformer import Transformer, TransformerConfig

Pieces = Sequence[str]


class Recipe(NamedTuple):
    """A task, a model and a way to train, chosen together."""

    task: str  #: "spelling", "multi30k" or "numbers"
    model: dict[
        str, Any
    ]  #: fields of :class:`~annotated.transformer.TransformerConfig`
    tokens: int  #: most positions in a batch, padding included
    steps: int  #: of the optimiser
    rate: float  #: the highest learning rate
    smoothing: float = 0.0  #: ε of the labels
    merges: int = 0  #: of byte-pair encoding; none where symbols are letters
    languages: tuple[str, str] = ("en", "de")  #: of source and target


TRANSLATION_RECIPES = {
    # the page's: about a minute on one core
    "spelling": Recipe(
        "spelling",
        {"d_model": 64, "heads": 4, "layers": 2, "d_ff": 256, "dropout": 0.0}
        | {"norm": "pre", "max_len": 64},
        tokens=700,
        steps=2700,
        rate=4e-3,
    ),
    # ten minutes on one core, in bfloat16: the one that the built page loads, and whose
    # probabilities it shows; smoothed labels would keep them all below 90 %
    "spelling, page": Recipe(
        "spelling",
        {"d_model": 128, "heads": 4, "layers": 3, "d_ff": 512, "dropout": 0.0}
        | {"norm": "pre", "max_len": 64},
        tokens=2000,
        steps=3000,
        rate=2.5e-3,
    ),
    # less than ten minutes on one core, in bfloat16; four passes need no dropout
    "multi30k": Recipe(
        "multi30k",
        {"d_model": 128, "heads": 4, "layers": 3, "d_ff": 512, "dropout": 0.0}
        | {"norm": "pre", "max_len": 256, "tied": True},
        tokens=1200,
        steps=1600,
        rate=2.5e-3,
        smoothing=0.1,
        merges=4000,
    ),
    # minutes on a GPU; so few sentences need much dropout
    "multi30k, GPU": Recipe(
        "multi30k",
        {"d_model": 256, "heads": 4, "layers": 4, "d_ff": 512, "dropout": 0.3}
        | {"norm": "pre", "max_len": 256, "tied": True},
        tokens=4096,
        steps=10_000,
        rate=2e-3,
        smoothing=0.1,
        merges=8000,
    ),
}

# the page's warm-up; seconds on one core
NUMBER_WORDS = Recipe(
    "numbers",
    {"d_model": 64, "heads": 4, "layers": 1, "d_ff": 128, "dropout": 0.0}
    | {"norm": "pre", "max_len": 64},
    tokens=1000,
    steps=400,
    rate=5e-3,
)


# ---- pieces --------------------------------------------------------------------


class Cutter(NamedTuple):
    """Cuts texts into what a model reads, and puts together what it writes."""

    source: Vocabulary  #: pieces that are read
    target: Vocabulary  #: pieces that are written
    merges: list[tuple[str, str]]  #: of both; none if a piece is a letter or a sound

    def cut(self, text: str) -> list[str]:
        """Return the pieces of a ``text`` that is to be read.

        Letters that no training text holds are left out.
        """
        unknown = dict.fromkeys(map(ord, self.unknown(text)))
        text = (text if self.merges else text.lower()).translate(unknown)
        if not self.merges:
            return list(text)
        words = split_words(text)
        return [piece for word in words for piece in apply_merges(word, self.merges)]

    def unknown(self, text: str) -> str:
        """Return the letters of a ``text`` that :meth:`cut` leaves out."""
        text = "".join(text.split()) if self.merges else text.lower()
        return "".join(one for one in text if one not in self.source.symbols)

    def join(self, pieces: Pieces) -> str:
        """Return the text of ``pieces`` that were written; sounds with spaces."""
        return join_pieces(pieces) if self.merges else " ".join(pieces)


class WordCutter(Cutter):
    """Cuts texts into whole words, and puts words together: for number words."""

    def cut(self, text: str) -> list[str]:
        """Return the words of a ``text``, without those that no training text holds."""
        words = cut_words(text.lower())
        return [word for word in words if word in self.source.symbols]

    def unknown(self, text: str) -> str:
        """Return the words of a ``text`` that :meth:`cut` leaves out."""
        words = cut_words(text.lower())
        return join_words([word for word in words if word not in self.source.symbols])

    def join(self, pieces: Pieces) -> str:
        """Return the text of ``pieces`` that were written, each a word."""
        return join_words(pieces)


class Translations(NamedTuple):
    """Pairs to learn from, and what cuts others like them."""

    pairs: list[tuple[Pieces, Pieces]]  #: source and target
    cutter: Cutter  #: of this task


def spelling_task() -> Translations:
    """Return the words for training, each pronunciation in a pair of its own."""
    pairs = spelling_pairs("train", every=True)
    letters = Vocabulary("".join(word for word, _ in pairs))
    sounds = Vocabulary(sound for _, answer in pairs for sound in answer)
    return Translations(pairs, Cutter(letters, sounds, []))


def number_words_task(size: int = 22_000) -> Translations:
    """Return numbers for training, in English and in French words."""
    numbers = numbers_of("train", size)
    pairs = [(cut_words(english(n)), cut_words(french(n))) for n in numbers]
    source, target = (
        Vocabulary(word for pair in pairs for word in pair[side]) for side in (0, 1)
    )
    return Translations(pairs, WordCutter(source, target, []))


def multi30k_task(merges: int, languages: tuple[str, str]) -> Translations:
    """Return the sentences for training, in pieces that both languages share."""
    texts = [
        [split_words(one) for one in pair] for pair in multi30k("train", *languages)
    ]
    words = [word for pair in texts for side in pair for word in side]
    learned = learn_merges(words, merges)
    pieces = {word: apply_merges(word, learned) for word in set(words)}
    pairs = [
        tuple([piece for word in side for piece in pieces[word]] for side in pair)
        for pair in texts
    ]
    shared = Vocabulary({*"".join(words), *("".join(pair) for pair in learned)})
    return Translations(pairs, Cutter(shared, shared, learned))


def translation_task(recipe: Recipe) -> Translations:
    """Return what a ``recipe`` learns from."""
    require.choice(("spelling", "multi30k"), task=recipe.task)
    if recipe.task == "spelling":
        return spelling_task()
    return multi30k_task(recipe.merges, recipe.languages)


# ---- training ------------------------------------------------------------------


def translation_model(recipe: Recipe, cutter: Cutter, seed: int = 0) -> Transformer:
    """Return an untrained model."""
    torch.manual_seed(seed)
    sizes = len(cutter.source), len(cutter.target)
    return Transformer(TransformerConfig(*sizes, **recipe.model))


def translation_batches(
    task: Translations, tokens: int, steps: int, seed: int = 0
) -> Iterator[Batch]:
    """Return as many batches as ``steps``; pairs that are used up are shuffled again.

    Args:
        tokens: most positions in a batch.
    """
    vocabularies = task.cutter.source, task.cutter.target
    passes = (
        token_batches(task.pairs, *vocabularies, tokens, 1000 * seed + i)
        for i in count()
    )
    return islice((batch for one in passes for batch in one), steps)


class TranslationLoss:
    """The divergence from smoothed labels, per real symbol."""

    def __init__(self, recipe: Recipe, cutter: Cutter):
        size = len(cutter.target)
        self.smooth = LabelSmoothing(size, Vocabulary.pad, recipe.smoothing)

    def __call__(self, model: Transformer, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of a ``model`` on a ``batch``."""
        return self.smooth(model(batch.source, batch.target), batch.labels)

    def batch_weight(self, batch: Batch) -> int:
        """Return how many real symbols a ``batch`` has, of which the loss is a mean."""
        return (batch.labels != self.smooth.pad).sum().item()


def train_translation(
    model: Transformer,
    task: Translations,
    recipe: Recipe,
    seed: int = 0,
    **options: Any,
) -> list[Record]:
    """Return the history of a model that learned to translate.

    Args:
        options: of :func:`annotated.training.fit`, such as ``checkpoint``.
    """
    optimizer, schedule = one_cycle(model, recipe.rate, recipe.steps)
    batches = translation_batches(task, recipe.tokens, recipe.steps, seed)
    loss, options = TranslationLoss(recipe, task.cutter), {"clip": 1.0} | options
    return fit(model, loss, batches, optimizer, schedule=schedule, **options)


# ---- using it ------------------------------------------------------------------


def translate(
    model: Transformer,
    cutter: Cutter,
    texts: Sequence[str],
    beam: int = 1,
    size: int = 64,
    reader: type = DecoderCache,
) -> list[str]:
    """Return the translation of each text, in their order; of an empty one nothing.

    Texts of about one length are translated together, so that little is padding.

    Args:
        texts: sentences, or words to pronounce.

    Raises:
        ValueError: if a text has more pieces than the model has positions for.
    """
    pieces, written = [cutter.cut(text) for text in texts], [""] * len(texts)
    longest = model.config.max_len
    for number, one in enumerate(pieces, start=1):
        require.that(
            len(one) <= longest,
            f"text {number} has {len(one)} pieces, and at most {longest} fit",
        )
    order = sorted(
        (i for i, one in enumerate(pieces) if one), key=lambda i: len(pieces[i])
    )
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        source, lengths = pad_sequences([cutter.source.encode(pieces[i]) for i in rows])
        settings: dict[str, Any] = {"start": Vocabulary.start, "end": Vocabulary.end}
        settings["reader"] = reader
        settings["max_new_tokens"] = min(longest, 2 * int(lengths.max()) + 10)
        source = source.to(device_of(model))
        if beam == 1:
            found = cached_greedy_decode(model, source, **settings).tolist()
        else:
            best: list[list[Hypothesis]] = beam_search(
                model, source, beam=beam, **settings
            )
            found = [several[0].tokens for several in best]
        for i, ids in zip(rows, found, strict=True):
            written[i] = cutter.join(cutter.target.decode(ids))
    return written


def spelling_errors(
    model: Transformer,
    cutter: Cutter,
    split: str = "test",
    most: int = 2000,
    beam: int = 1,
    reader: type = DecoderCache,
) -> dict[str, float]:
    """Return the phoneme and the word error rate on held-out words."""
    known = spelling_words(split)
    words = random.Random(0).sample(sorted(known), min(most, len(known)))
    lines = translate(model, cutter, words, beam, 256, reader)
    outputs: list[Sounds] = [tuple(line.split()) for line in lines]
    rates = error_rates(outputs, [known[word] for word in words])
    return {"phonemes": rates["symbols"], "words": rates["whole"]}


def exact_numbers(
    model: Transformer,
    cutter: Cutter,
    numbers: Sequence[int],
    reader: type = DecoderCache,
) -> list[bool]:
    """Return of each number whether its French words are all right, written greedily.

    Args:
        numbers: such as ``numbers_of("test", 2000)``.
    """
    said = translate(model, cutter, [english(n) for n in numbers], 1, 256, reader)
    return [text == french(n) for text, n in zip(said, numbers, strict=True)]
