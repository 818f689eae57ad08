"""Chapter 15: a BERT learns from texts without labels, and then from a few with labels.

As in ``annotated.recipes``: one seed trains on the page, ``python -m benchmarks``
trains the others. Texts are Python's own library, which is on board everywhere: the
code of its functions, and what its docstrings say. No package is in two splits, so no
text for testing has a neighbour that was trained on. Letters: n texts, c labels, b
batch, t length, v vocabulary, d model width.
"""

import ast
import copy
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import log
from pydoc_data.topics import topics
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.batches import pad_sequences
from annotated.bert import Bert, BertConfig, SentencePair, mask_tokens, pair_ids
from annotated.checkpoints import Record
from annotated.classifier import pool
from annotated.data.functions import (
    _modules,
    disguised,
    every_function,
    library_functions,
    module_split,
)
from annotated.data.wordpiece import bert_words, cut_word, learn_pieces
from annotated.devices import device_of, to_device
from annotated.recipes.classification import (
    Labelled,
    Recipe,
    Text,
    Words,
    both_ways,
    labelled_batches,
    train_classifier,
)
from annotated.recipes.common import one_cycle
from annotated.training import evaluating, fit

Masked = tuple[Tensor, Tensor, Tensor]  # read (b, t), tokens (b, t), asked (b, t)
Document = tuple[str, ...]  # its sentences


# ---- texts without labels ------------------------------------------------------


class Tokens(Words):
    """Tokens and their ids, of which the first five are BERT's special ones.

    Args:
        least: how often a token must stand in them.
    """

    start, end, mask = 2, 3, 4
    special = range(5)

    def __init__(self, texts: Iterable[Text], least: int = 1):
        times = Counter(token for text in texts for token in text)
        kept = sorted(token for token, n in times.items() if n >= least)
        self.symbols = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *kept)
        self._ids = {token: i for i, token in enumerate(self.symbols) if i > 4}

    def row(self, text: Text) -> list[int]:
        """Return the ids of one ``text``."""
        return [self._ids.get(token, self.unknown) for token in text]


class Unlabelled(NamedTuple):
    """Texts to learn from by guessing, texts to try it on, and their tokens."""

    train: list[Text]  #: those to learn from
    validation: list[Text]  #: of other packages
    words: Tokens  #: of the texts for training


@cache
def code_texts(longest: int = 128) -> Unlabelled:
    """Return the functions of Python's library as tokens, whatever they do.

    Those for training are of the packages that chapter 10's task trains on, long ones
    too, which are cut; those for validation are of its validation packages. A function
    that says the same as one that the task validates or tests with is left out.
    """
    require.count(12, longest=longest)
    held = {
        disguised(function.tokens, 0)
        for split in ("validation", "test")
        for function in library_functions(split)
    }
    known: dict[Text, str] = {}
    for function in every_function():
        if (split := module_split(function.module)) != "test":
            known.setdefault(function.tokens, split)
    texts: dict[str, list[Text]] = {"train": [], "validation": []}
    for tokens, split in known.items():
        if split == "validation" or disguised(tokens, 0) not in held:
            texts[split] += cut_texts([tokens], longest)
    return Unlabelled(**texts, words=Tokens(texts["train"], least=10))


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module's ``source``, which is parsed and never run.

    Yields:
        Texts, without the indentation that their lines share.
    """
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text


def sentences_of(text: str) -> Document:
    """Return the sentences of a ``text``.

    They end at a full stop, a colon and the like before a space, and at empty lines.
    """
    parts = re.split(r"(?<=[.!?:;])\s+|\n\s*\n", text)
    return tuple(" ".join(part.split()) for part in parts if part.strip())


@cache
def prose(split: str) -> tuple[Document, ...]:
    """Return what Python says about itself: docstrings and, to train on, its help.

    The help is that of ``help("for")``, texts on the language, all for training.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``: other packages.
    """
    require.choice(("train", "validation", "test"), split=split)
    texts = list(topics.values()) if split == "train" else []
    for module, source in _modules():
        if module_split(module) == split:
            texts += docstrings(source)
    # what says nothing new, such as the help of many methods, is there once
    return tuple(dict.fromkeys(filter(None, map(sentences_of, texts))))


@cache
def prose_pieces(joins: int = 1500) -> tuple[str, ...]:
    """Return WordPieces of the prose for training; ``joins`` as in chapter 9."""
    words = [w for d in prose("train") for sentence in d for w in bert_words(sentence)]
    return tuple(learn_pieces(words, joins, min_count=10))


def cut_sentence(sentence: str, pieces: frozenset[str]) -> Text:
    """Return the ``pieces`` of a ``sentence``."""
    return tuple(p for word in bert_words(sentence) for p in cut_word(word, pieces))


@cache
def prose_texts(longest: int = 64) -> Unlabelled:
    """Return the prose in pieces, a document cut where it is too long."""
    require.count(8, longest=longest)
    pieces, texts = frozenset(prose_pieces()), {}
    for split in ("train", "validation"):
        wholes = [cut_sentence(" ".join(document), pieces) for document in prose(split)]
        texts[split] = cut_texts(wholes, longest)
    return Unlabelled(**texts, words=Tokens(texts["train"]))


def shuffled(texts: Unlabelled, seed: int = 0) -> Unlabelled:
    """Return ``texts`` with the tokens of each in another order, drawn by ``seed``."""
    draw = random.Random(seed)
    train = [tuple(draw.sample(text, len(text))) for text in texts.train]
    return texts._replace(train=train)


# ---- learning to guess ---------------------------------------------------------


class PretrainingRecipe(NamedTuple):
    """Sizes and rates, chosen together."""

    steps: int  #: of the optimiser, with texts that are cut short
    rate: float  #: the highest
    long_steps: int = 0  #: more steps after them, with whole texts
    size: int = 64  #: texts in a batch; of whole ones a quarter as many
    short: int = 32  #: tokens of a text that was cut
    masked: float = 0.15  #: chance of a token to be asked for
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)  #: as in ``mask_tokens``
    dropout: float = 0.0  #: texts are seen only a few times
    layers: int = 2  #: of the encoder
    d_model: int = 64  #: width of the residual stream
    heads: int = 2  #: few and wide, so that one can tell neighbours from the rest
    d_ff: int = 256  #: inner width of the feed-forward networks
    max_len: int = 128  #: the longest text


# Code: of 60 tokens in 100 that are asked for, half are read as they are. With BERT's
# one in ten, a model as narrow as this one forgets rare tokens as it reads them, and
# they are what chapter 10 asks for.
PRETRAINING_RECIPES = {
    "code": PretrainingRecipe(
        steps=800, long_steps=600, rate=3e-3, masked=0.6, shares=(0.4, 0.1, 0.5)
    ),
    "prose": PretrainingRecipe(steps=1500, rate=3e-3, masked=0.3, max_len=64),
}


def make_bert(words: Tokens, recipe: PretrainingRecipe, seed: int = 0) -> Bert:
    """Return an untrained BERT that begins as a narrow one should.

    BERT's deviation of 0.02 is meant for a width of 768; narrower, matrices need more
    to give vectors as long.
    """
    torch.manual_seed(seed)
    sizes = "d_model heads layers d_ff dropout max_len".split()
    fields = {name: getattr(recipe, name) for name in sizes}
    model = Bert(BertConfig(len(words), **fields))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter *= (768 / recipe.d_model) ** 0.5
    return model


def cut_texts(texts: Sequence[Text], longest: int, least: int = 8) -> list[Text]:
    """Return ``texts``, cut where they are too long.

    Args:
        least: a part that is shorter is left out.
    """
    parts = (t[i : i + longest] for t in texts for i in range(0, len(t), longest))
    return [part for part in parts if len(part) >= least]


def masked_batches(
    texts: Unlabelled, recipe: PretrainingRecipe, seed: int = 0, whole: bool = False
) -> Iterator[Masked]:
    """Yield batches of texts for training, each time with other tokens hidden.

    Args:
        recipe: how many texts in a batch, how many batches, how much is hidden.
        whole: whether texts are whole, and not cut short.

    Yields:
        What is read, the tokens, and which are asked for; ``(b, t)`` each.
    """
    draw = torch.Generator().manual_seed(seed)
    train, size, steps = cut_texts(texts.train, recipe.short), recipe.size, recipe.steps
    if whole:
        train, size, steps = texts.train, recipe.size // 4, recipe.long_steps
    task = Labelled(
        (), {"train": train}, {"train": torch.zeros(len(train), 0)}, texts.words
    )
    for tokens, _ in labelled_batches(task, size, steps, seed):
        read, asked = hide(tokens, texts.words, recipe.masked, recipe.shares, draw)
        yield read, tokens, asked


def hide(
    tokens: Int[Tensor, "b t"],
    words: Tokens,
    rate: float,
    shares: tuple[float, float, float],
    generator: torch.Generator,
) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b t"]]:
    """Return ``mask_tokens`` of ``tokens``, whose ids are those of ``words``.

    Args:
        rate: chance of a token to be asked for.
        shares: of those, read as a mask, as a random token and as they are.
    """
    known = len(words), words.mask, words.special
    return mask_tokens(tokens, *known, rate, shares, generator)


def masked_loss(model: Bert, batch: Masked) -> Float[Tensor, ""]:
    """Return the cross-entropy of what a ``model`` guesses, in nats a hidden token.

    Args:
        batch: what is read, the tokens, and which are asked for; ``(b, t)`` each. If
            none is, the loss is 0.
    """
    read, tokens, asked = batch
    return guess_loss(model.guess_tokens(model(read)[asked]), tokens[asked])


# for `fit` and `evaluate`: how many tokens the mean is taken over
masked_loss.batch_weight = lambda batch: batch[2].sum().item()


def guess_loss(
    logits: Float[Tensor, "n v"], answers: Int[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of ``answers``; of none, 0 and not NaN."""
    return F.cross_entropy(logits, answers, reduction="sum") / max(1, len(answers))


def tile_positions(model: Bert, length: int) -> None:
    """Give later positions of a ``model`` what the first ``length`` have learned.

    Beltagy et al. (2020), section 5: what is near stays near, and what is further away
    is soon told apart.
    """
    table = model.positions.table.data
    for i in range(length, len(table), length):
        part = table[i : i + length]
        part.copy_(table[: len(part)])


def pretrain(
    model: Bert,
    texts: Unlabelled,
    recipe: PretrainingRecipe,
    seed: int = 0,
    **options: Any,
) -> list[Record]:
    """Return the history of a model that learned to guess hidden tokens.

    First it reads texts that are cut short: among 32 tokens, neighbours are sooner
    found than among 128, and each position is met more often. Then come whole texts,
    with the positions of the short ones, repeated. BERT, too, read 128 tokens for nine
    tenths of its steps, and then 512 (Devlin et al., 2019, appendix A.2).
    """
    history: list[Record] = []
    for whole, steps in ((False, recipe.steps), (True, recipe.long_steps)):
        if steps:
            if whole:
                tile_positions(model, recipe.short)
            optimizer, schedule = one_cycle(model, recipe.rate, steps)
            batches = masked_batches(texts, recipe, seed, whole)
            given = {"schedule": schedule, "clip": 1.0} | options
            history += fit(model, masked_loss, batches, optimizer, **given)
    return history


def cpu_seconds(history: list[Record]) -> float:
    """Return how long both parts of a ``history`` took together."""
    ends = [
        record["cpu_seconds"]
        for record, following in zip(history, [*history[1:], {"step": 1}], strict=True)
        if following["step"] == 1
    ]
    return sum(ends)


def questions(
    texts: Sequence[Text],
    words: Tokens,
    rate: float = 0.15,
    shares: tuple[float, float, float] = (1.0, 0.0, 0.0),
    size: int = 64,
    seed: int = 0,
) -> list[Masked]:
    """Return batches of held-out texts, with the same tokens hidden for every model.

    Args:
        texts: those of one length are read together.
        rate: chance of a token to be hidden.
        shares: as in ``mask_tokens``; by default all are masks.
    """
    draw, rows = torch.Generator().manual_seed(seed), sorted(texts, key=len)
    batches = []
    for i in range(0, len(rows), size):
        tokens = words.ids(rows[i : i + size])
        read, asked = hide(tokens, words, rate, shares, draw)
        batches.append((read, tokens, asked))
    return batches


def guess(model: Bert, batches: Sequence[Masked]) -> dict[str, float]:
    """Return ``"loss"``, in nats, and ``"accuracy"`` of a model's guesses."""
    lost, right, number = 0.0, 0, 0
    with evaluating(model):
        for read, tokens, asked in batches:
            states = model(read.to(device_of(model)))
            logits = model.guess_tokens(states[asked.to(states.device)]).cpu()
            lost += F.cross_entropy(logits, tokens[asked], reduction="sum").item()
            right += (logits.argmax(dim=-1) == tokens[asked]).sum().item()
            number += int(asked.sum())
    return {"loss": lost / number, "accuracy": right / number}


def unigram_loss(texts: Unlabelled, batches: Sequence[Masked]) -> float:
    """Return the loss of the best guess that doesn't look at the text, in nats.

    It gives each token its share of the texts for training (and one more occurrence):
    the line at which the loss of every model waits for a while.

    Args:
        texts: whose training texts are counted.
    """
    words = texts.words
    counts = Counter(i for text in texts.train for i in words.row(text))
    for i in words.special:
        del counts[i]  # they are never asked for
    total = counts.total() + len(words) - len(words.special)
    answers = [i for _, tokens, asked in batches for i in tokens[asked].tolist()]
    return sum(log(total / (counts[i] + 1)) for i in answers) / len(answers)


def neighbour_losses(
    texts: Unlabelled, batches: Sequence[Masked], trust: float = 20.0
) -> dict[str, float]:
    """Return the losses of tables of counts that know a token's neighbours, in nats.

    ``"left"`` knows the token before it, ``"right"`` the one behind it, ``"both"`` the
    two, even if a model would find a mask there. Where a table has seen little, a
    shorter one helps out, as much as ``trust`` sightings would.

    Args:
        texts: whose training texts are counted.
        trust: the weight of the shorter table, in sightings.
    """
    words, edge = texts.words, -1  # before the first token and behind the last
    single, left, right, both = (Counter[Any]() for _ in range(4))
    before, behind, around = (Counter[Any]() for _ in range(3))
    for text in texts.train:
        row = [edge, *words.row(text), edge]
        for a, b, c in zip(row, row[1:], row[2:], strict=False):
            for table, key in (
                *((single, b), (left, (a, b)), (right, (b, c)), (both, (a, b, c))),
                *((before, a), (behind, c), (around, (a, c))),
            ):
                table[key] += 1
    total = single.total() + len(words)
    lost, number = {"left": 0.0, "right": 0.0, "both": 0.0}, 0
    for _, tokens, asked in batches:
        for ids, holds in zip(tokens.tolist(), asked.tolist(), strict=True):
            row = [edge, *(i for i in ids if i != words.pad), edge]
            for j, (a, b, c) in enumerate(zip(row, row[1:], row[2:], strict=False)):
                if holds[j]:
                    alone = (single[b] + 1) / total
                    by_left = (left[a, b] + trust * alone) / (before[a] + trust)
                    by_right = (right[b, c] + trust * alone) / (behind[c] + trust)
                    shorter = trust * (by_left + by_right) / 2
                    by_both = (both[a, b, c] + shorter) / (around[a, c] + trust)
                    lost["left"] -= log(by_left)
                    lost["right"] -= log(by_right)
                    lost["both"] -= log(by_both)
                    number += 1
    return {name: nats / number for name, nats in lost.items()}


# ---- few labels ----------------------------------------------------------------

# of a BERT on chapter 10's functions; fewer steps where labels are few
FINE_TUNING = Recipe(steps=400, rate=3e-3, size=16)


def fine_tuning(size: int) -> Recipe:
    """Return the recipe for ``size`` labelled texts: 30 passes at most."""
    return FINE_TUNING._replace(
        steps=min(FINE_TUNING.steps, 30 * size // FINE_TUNING.size)
    )


class BertClassifier(nn.Module):
    """A BERT, the largest of its states in each direction, and a linear map.

    Chapter 15's own: BERT is read by its first state, but ours was never asked for one
    of a whole text, and what a function does mostly shows at one place (chapter 10).
    """

    def __init__(self, bert: Bert, classes: int):
        super().__init__()
        self.bert = bert
        self.output = nn.Linear(bert.config.d_model, classes)

    def vectors(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b d"]:
        """Return a vector for each text; ``tokens`` are padded ids."""
        return pool(self.bert(tokens), tokens != self.bert.config.pad, "max")

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b c"]:
        """Return logits for each text; ``tokens`` are padded ids."""
        return self.output(self.vectors(tokens))


def few_labels(task: Labelled, size: int | None, seed: int = 0) -> Labelled:
    """Return a ``task`` that has fewer texts to learn from.

    Args:
        size: how many; all if ``None``.

    Raises:
        ValueError: if there aren't as many.
    """
    texts, answers = task.texts["train"], task.answers["train"]
    if size is None:
        return task
    require.count(1, len(texts), size=size)
    rows = random.Random(seed).sample(range(len(texts)), size)
    fewer = {"texts": [texts[i] for i in rows], "answers": answers[rows]}
    parts = {
        name: getattr(task, name) | {"train": part} for name, part in fewer.items()
    }
    return task._replace(**parts)


def fine_tune(
    bert: Bert, task: Labelled, recipe: Recipe, seed: int = 0, **options: Any
) -> tuple[BertClassifier, list[Record]]:
    """Return a classifier that began as a copy of ``bert``, and its history.

    Args:
        bert: pretrained or not; it stays as it is.
        task: what to learn; its words are those that ``bert`` knows.
    """
    torch.manual_seed(seed)
    model = BertClassifier(copy.deepcopy(bert), len(task.labels)).to(device_of(bert))
    return model, train_classifier(model, task, recipe, seed, **options)


class FrozenLinear:
    """What a BERT reads that stays as it is, and a logistic regression for each label.

    It needs scikit-learn, as chapter 10's ``TfidfLinear`` does.

    Args:
        task: what to learn; its words are those that ``bert`` knows.
        strength: how little the weights are held back (scikit-learn's ``C``).

    Raises:
        ValueError: if a label holds for no text, or for all.
    """

    def __init__(self, bert: Bert, task: Labelled, strength: float = 0.1):
        from sklearn.linear_model import LogisticRegression

        both_ways(task.answers["train"])
        self.bert, self.words = bert, task.words
        vectors = self.vectors(task.texts["train"])
        self.mean, self.spread = vectors.mean(dim=0), vectors.std(dim=0) + 1e-6
        scaled = ((vectors - self.mean) / self.spread).numpy()
        self.models = [
            LogisticRegression(C=strength, max_iter=1000).fit(scaled, column)
            for column in task.answers["train"].T.numpy()
        ]

    def vectors(self, texts: Sequence[Text]) -> Float[Tensor, "n d"]:
        """Return a vector for each of the ``texts``."""
        model = BertClassifier(self.bert, 1)
        rows = range(0, len(texts), 64)
        with evaluating(model):
            parts = [
                model.vectors(self.words.ids(texts[i : i + 64]).to(device_of(model)))
                for i in rows
            ]
        return torch.cat(parts).cpu()

    def __call__(self, texts: Sequence[Text]) -> Float[Tensor, "n c"]:
        """Return the logits of each label for each of the ``texts``."""
        scaled = ((self.vectors(texts) - self.mean) / self.spread).numpy()
        columns = [model.decision_function(scaled) for model in self.models]
        return torch.stack([torch.from_numpy(column) for column in columns], 1).float()


# ---- two sentences -------------------------------------------------------------

Pairs = list[SentencePair]
PairBatch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


@cache
def prose_sentences(split: str, least: int = 4, most: int = 29) -> list[list[Text]]:
    """Return the documents of a split, their sentences cut into pieces.

    Args:
        least: number of pieces of a sentence; shorter ones are left out.
    """
    pieces = frozenset(prose_pieces())
    documents = []
    for document in prose(split):
        cut = (cut_sentence(sentence, pieces)[:most] for sentence in document)
        documents.append([text for text in cut if len(text) >= least])
    return [document for document in documents if len(document) > 1]


def pair_rows(
    pairs: Pairs, words: Tokens
) -> tuple[Int[Tensor, "b t"], Int[Tensor, "b t"], Int[Tensor, "b"]]:
    """Return padded ids, segments and labels of ``pairs``; ``words`` know them."""
    rows = [
        pair_ids(words.row(p.first), words.row(p.second), words.start, words.end)
        for p in pairs
    ]
    tokens, _ = pad_sequences([ids for ids, _ in rows], words.pad)
    segments, _ = pad_sequences([numbers for _, numbers in rows], 0)
    return tokens, segments, torch.tensor([pair.label for pair in pairs])


def pair_batches(
    pairs: Pairs, words: Tokens, recipe: PretrainingRecipe, seed: int = 0
) -> Iterator[PairBatch]:
    """Yield what is read, tokens, which of them are asked for, segments and labels.

    Args:
        pairs: to learn from; when they are used up, they are shuffled again.
        recipe: how many pairs in a batch, how many batches, how much is hidden.

    Yields:
        As many tensors: ``(b, t)`` each, but the labels, ``(b,)``.
    """
    draw, order = torch.Generator().manual_seed(seed), random.Random(seed)
    left: Pairs = []
    for _ in range(recipe.steps):
        if len(left) < recipe.size:
            left += order.sample(pairs, len(pairs))
        some, left = left[: recipe.size], left[recipe.size :]
        tokens, segments, labels = pair_rows(some, words)
        read, asked = hide(tokens, words, recipe.masked, recipe.shares, draw)
        yield read, tokens, asked, segments, labels


def pair_loss(model: Bert, batch: PairBatch) -> Float[Tensor, ""]:
    """Return the sum of both losses, as BERT learned: hidden tokens, and the pairs."""
    read, tokens, asked, segments, labels = batch
    states = model(read, segments)
    logits = model.guess_tokens(states[asked])
    pairs = F.cross_entropy(model.guess_next(states), labels)
    return guess_loss(logits, tokens[asked]) + pairs


def pair_accuracy(model: Bert, pairs: Pairs, words: Tokens) -> float:
    """Return the share of ``pairs`` that a model gets right, nothing hidden."""
    right = 0
    with evaluating(model):
        for i in range(0, len(pairs), 64):
            tokens, segments, labels = pair_rows(pairs[i : i + 64], words)
            read = model(*to_device((tokens, segments), device_of(model)))
            answers = model.guess_next(read).argmax(dim=-1).cpu()
            right += (answers == labels).sum().item()
    return right / len(pairs)


def common_words(pair: SentencePair, weights: dict[str, float]) -> float:
    """Return how alike the words of two sentences are: the cosine of their weights.

    It knows nothing of order, and is the same for a pair turned round.

    Args:
        weights: of each token, such as how rare it is; 0 if it isn't there.
    """
    first, second = ({t: weights.get(t, 0.0) for t in text} for text in pair[:2])
    both = sum(first[t] * second[t] for t in first.keys() & second.keys())
    sizes = [sum(w * w for w in one.values()) ** 0.5 for one in (first, second)]
    return both / (sizes[0] * sizes[1]) if all(sizes) else 0.0


def rarity(documents: Sequence[Sequence[Text]]) -> dict[str, float]:
    """Return for each token ln(number of ``documents`` / of those that hold it)."""
    held = Counter(
        token for d in documents for token in {token for text in d for token in text}
    )
    return {token: log(len(documents) / n) for token, n in held.items()}


def topic_accuracy(
    train: Pairs, test: Pairs, weights: dict[str, float]
) -> tuple[float, float]:
    """Return how many pairs common words get right, and the limit that was used.

    A pair whose words are as alike as the limit is said to follow. The limit is the one
    that is best on the pairs for training.

    Args:
        train: pairs to choose the limit by.
    """
    alike = torch.tensor([common_words(pair, weights) for pair in train])
    labels = torch.tensor([pair.label for pair in train])
    limits = torch.linspace(0, 0.5, 51)
    right = [((alike < limit).long() == labels).float().mean() for limit in limits]
    limit = limits[torch.stack(right).argmax()].item()
    said = [int(common_words(pair, weights) < limit) for pair in test]
    return sum(s == p.label for s, p in zip(said, test, strict=True)) / len(test), limit
