"""Chapter 10: texts with labels, models that read them, and what answers are worth.

As in ``annotated.recipes``: one seed trains on the page, ``python -m benchmarks``
trains the others. Each label is a question of its own, answered by a logit: above 0 is
yes. One label, as for film sentences, is the ordinary yes or no. Letters: n texts, c
labels, b batch, t length.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count, islice, pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.batches import pad_sequences
from annotated.checkpoints import Record
from annotated.classifier import ClassifierConfig, TransformerClassifier, pool
from annotated.data.datasets import imdb, rotten_tomatoes
from annotated.data.functions import LABELS, disguised, library_functions
from annotated.devices import device_of
from annotated.recipes.common import one_cycle
from annotated.training import evaluating, fit

Text = tuple[str, ...]  # its tokens
Batch = tuple[Tensor, Tensor]  # ids (b, t), labels (b, c)


# ---- texts with labels ---------------------------------------------------------


class Words:
    """Tokens and their ids: 0 is padding, 1 is whatever isn't known.

    Args:
        least: how often a token must stand in them.
    """

    pad, unknown = 0, 1

    def __init__(self, texts: Iterable[Text], least: int = 1):
        times = Counter(token for text in texts for token in text)
        kept = sorted(token for token, n in times.items() if n >= least)
        self.symbols = ("<pad>", "<unknown>", *kept)
        self._ids = {token: i for i, token in enumerate(self.symbols) if i > 1}

    def __len__(self) -> int:
        return len(self.symbols)

    def ids(self, texts: Sequence[Text]) -> Int[Tensor, "n t"]:
        """Return the ids of ``texts``, padded behind; of an empty one nothing else."""
        rows = [[self._ids.get(token, self.unknown) for token in t] for t in texts]
        tokens, _ = pad_sequences(rows, self.pad)
        return tokens if tokens.shape[1] else tokens.new_zeros(len(rows), 1)


class Labelled(NamedTuple):
    """Texts with their labels, in three splits, and the words to read them by."""

    labels: tuple[str, ...]  #: names of the labels
    texts: dict[str, list[Text]]  #: of "train", "validation" and "test"
    answers: dict[str, Tensor]  #: ``(n, c)``, 1 where a label holds, else 0
    words: Words  #: of the texts for training
    disguise: bool = False  #: whether texts are disguised, anew each time

    def view(self, text: Text, seed: int) -> Text:
        """Return what a model gets to see of a ``text``; ``seed`` draws a disguise."""
        return disguised(text, seed) if self.disguise else text


def answers_of(
    held: Sequence[Collection[str]], labels: Sequence[str]
) -> Float[Tensor, "n c"]:
    """Return a row for each text: 1 for each label that holds, else 0.

    Args:
        held: for each text the names of its labels; it may have none.

    Raises:
        ValueError: if a text has a label that isn't among them.
    """
    for one in set().union(*held):
        require.choice(labels, label=one)
    return torch.tensor([[float(label in one) for label in labels] for one in held])


def functions_task(disguise: bool = False) -> Labelled:
    """Return the functions of Python's library, and what each of them does.

    Args:
        disguise: take their keywords away and rename the rest, anew at each reading.
    """
    splits = {s: library_functions(s) for s in ("train", "validation", "test")}
    texts = {s: [f.tokens for f in several] for s, several in splits.items()}
    answers = {
        s: answers_of([f.labels for f in several], LABELS)
        for s, several in splits.items()
    }
    seen = texts["train"]
    if disguise:
        seen = [disguised(text, i) for i, text in enumerate(seen)]
    return Labelled(LABELS, texts, answers, Words(seen, least=5), disguise)


def films_task(size: int | None = None, seed: int = 0) -> Labelled:
    """Return sentences of film reviews, and whether each praises its film.

    Args:
        size: how many sentences to learn from; all by default.

    Raises:
        ValueError: if there aren't as many.
    """
    splits = {s: rotten_tomatoes(s) for s in ("train", "validation", "test")}
    if size is not None:
        require.count(1, len(splits["train"]), size=size)
        splits["train"] = random.Random(seed).sample(splits["train"], size)
    texts = {s: [words_of(one) for one, _ in pairs] for s, pairs in splits.items()}
    answers = {
        s: torch.tensor([[float(label)] for _, label in pairs])
        for s, pairs in splits.items()
    }
    return Labelled(("praise",), texts, answers, Words(texts["train"], least=2))


def imdb_task(longest: int = 512) -> Labelled:
    """Return film reviews of hundreds of words, and whether each praises its film.

    Every tenth review for training is for validation instead, so the same film may be
    in both; those for testing are of other films.

    Args:
        longest: how many words of a review are read; what follows is left out.
    """
    train, test = imdb("train"), imdb("test")
    splits = {
        "train": [one for i, one in enumerate(train) if i % 10 != 9],
        "validation": train[9::10],
        "test": test,
    }
    texts = {
        s: [words_of(text.replace("<br />", " "))[:longest] for text, _ in pairs]
        for s, pairs in splits.items()
    }
    answers = {
        s: torch.tensor([[float(label)] for _, label in pairs])
        for s, pairs in splits.items()
    }
    return Labelled(("praise",), texts, answers, Words(texts["train"], least=10))


def words_of(sentence: str) -> Text:
    """Return the words and signs of a ``sentence``, in lower case."""
    return tuple(re.findall(r"[\w'-]+|[^\w\s]", sentence.lower()))


GOOD = ("good", "funny", "clever", "moving", "fresh", "lovely")
BAD = ("bad", "dull", "stupid", "cold", "stale", "ugly")


def order_task() -> Labelled:
    """Return all verdicts such as "not a good one, a bad one", and their twins.

    The second quality decides. The twin, "not a bad one, a good one", has the same
    words and the same pairs of neighbours, and the other answer. Twins stay together: a
    quarter of the pairs are for testing.
    """
    pairs = [(good, bad) for good in GOOD for bad in BAD]
    random.Random(0).shuffle(pairs)
    cut = 3 * len(pairs) // 4
    splits = {"train": pairs[:cut], "test": pairs[cut:]}
    texts = {
        s: [
            ("not", "a", a, "one", ",", "a", b, "one")
            for pair in some
            for a, b in (pair, pair[::-1])
        ]
        for s, some in splits.items()
    }
    answers = {
        s: torch.tensor([[float(text[-2] in GOOD)] for text in several])
        for s, several in texts.items()
    }
    return Labelled(("praise",), texts, answers, Words(texts["train"]))


# ---- models --------------------------------------------------------------------


class BagOfEmbeddings(nn.Module):
    """The mean of the words' vectors and a linear map: a classifier without attention.

    Iyyer et al. (2015), without their hidden layers.

    Args:
        dropout: probability of dropout, of the words' vectors.
    """

    def __init__(
        self, vocab_size: int, classes: int, d_model: int = 64, dropout: float = 0.0
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=Words.pad)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, classes)

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b c"]:
        """Return logits for ``tokens``, padded ids."""
        vectors = self.dropout(self.embedding(tokens))
        return self.output(pool(vectors, tokens != Words.pad))


class Unmasked(TransformerClassifier):
    """A classifier with a slip (chapter 10): padding is attended to, and averaged."""

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b c"]:
        """Return logits for ``tokens`` that depend on how much padding there is."""
        x = self.dropout(self.positions(self.embedding(tokens)))
        return self.output(self.encoder(x).mean(dim=1))


class TfidfLinear:
    """TF-IDF of words and pairs of neighbours, and a logistic regression a label.

    It needs scikit-learn, which the extra ``classification`` brings.

    Args:
        answers: ``(n, c)``, 1 where a label holds.
        least: in how many texts a word or pair has to stand.
        strength: how little the weights are held back (scikit-learn's ``C``).

    Raises:
        ImportError: if scikit-learn isn't installed.
        ValueError: if a label holds for no text, or for all.
    """

    def __init__(
        self,
        texts: Sequence[Text],
        answers: Float[Tensor, "n c"],
        least: int = 1,
        strength: float = 10.0,
    ):
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
            from sklearn.linear_model import LogisticRegression
        except ImportError as error:
            raise ImportError(
                "scikit-learn is not installed. It comes with the extra "
                '`classification`: pip install "annotated-transformers[classification]"'
            ) from error
        both_ways(answers)
        settings = {"analyzer": words_and_pairs, "sublinear_tf": True, "min_df": least}
        self.features = TfidfVectorizer(**settings)
        counted = self.features.fit_transform(texts)
        self.models = [
            LogisticRegression(C=strength, solver="liblinear").fit(counted, column)
            for column in answers.T.numpy()
        ]

    def __call__(self, texts: Sequence[Text]) -> Float[Tensor, "n c"]:
        """Return the logits of each label for each of the ``texts``."""
        counted = self.features.transform(texts)
        columns = [model.decision_function(counted) for model in self.models]
        return torch.stack([torch.from_numpy(column) for column in columns], 1).float()


def words_and_pairs(text: Text) -> list[str]:
    """Return the tokens of a ``text`` and its pairs of neighbours."""
    return [*text, *map(" ".join, pairwise(text))]


# ---- training ------------------------------------------------------------------


class Recipe(NamedTuple):
    """Sizes and rates, chosen together."""

    steps: int  #: of the optimiser
    rate: float  #: the highest
    size: int = 32  #: texts in a batch
    dropout: float = 0.1  #: its probability
    max_len: int = 128  #: the longest text
    layers: int = 1  #: of an encoder
    d_model: int = 64  #: width of the vectors
    d_ff: int = 128  #: inner width of the feed-forward networks


CLASSIFICATION_RECIPES = {
    "functions": Recipe(steps=800, rate=5e-3),
    "disguised": Recipe(steps=1500, rate=3e-3),
    "films": Recipe(steps=1000, rate=1e-2, dropout=0.3, max_len=64),
    "order": Recipe(steps=300, rate=3e-3, size=18, dropout=0.0, max_len=8, d_model=32),
}
# for reviews of up to 512 words, the second one for a GPU; a starting point, not tuned
IMDB_RECIPES = {
    "imdb": Recipe(steps=2000, rate=2e-3, dropout=0.3, max_len=512),
    "imdb, GPU": Recipe(
        steps=7000, rate=5e-4, dropout=0.3, max_len=512, layers=6, d_model=128, d_ff=512
    ),
}
KINDS = ("bag", "encoder", "no positions", "first", "max", "attention", "unmasked")


def make_classifier(
    kind: str, task: Labelled, recipe: Recipe, seed: int = 0
) -> nn.Module:
    """Return an untrained model of a ``kind``, one of ``KINDS``.

    "encoder" averages; "first", "max" and "attention" are encoders that pool in another
    way, and "unmasked" is the one with a slip.
    """
    require.choice(KINDS, kind=kind)
    torch.manual_seed(seed)
    sizes = len(task.words), len(task.labels)
    if kind == "bag":
        return BagOfEmbeddings(*sizes, recipe.d_model, recipe.dropout)
    fields = {name: getattr(recipe, name) for name in ("d_model", "d_ff", "layers")}
    pooling = kind if kind in ("first", "max", "attention") else "mean"
    config = ClassifierConfig(
        *sizes,
        **fields,
        dropout=recipe.dropout,
        max_len=recipe.max_len,
        pooling=pooling,
        positions=kind != "no positions",
    )
    return (Unmasked if kind == "unmasked" else TransformerClassifier)(config)


def labelled_batches(
    task: Labelled, size: int, steps: int, seed: int = 0
) -> Iterator[Batch]:
    """Return as many batches as ``steps``; texts that are used up are shuffled again.

    Texts of a batch have about one length, so that little is padding.

    Args:
        task: whose training texts they hold.
    """
    require.count(size=size, steps=steps)
    texts, answers = task.texts["train"], task.answers["train"]

    def once(number: int) -> Iterator[Batch]:
        draw = random.Random(f"{seed} {number}")
        near = {i: len(text) + draw.uniform(0, 20) for i, text in enumerate(texts)}
        order = sorted(near, key=near.get)
        groups = [order[i : i + size] for i in range(0, len(order), size)]
        draw.shuffle(groups)
        for rows in groups:
            seen = [task.view(texts[i], draw.randrange(2**32)) for i in rows]
            yield task.words.ids(seen), answers[rows]

    return islice((batch for number in count() for batch in once(number)), steps)


def label_loss(model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Return the binary cross-entropy of a ``model`` on a ``batch``, per label."""
    tokens, answers = batch
    return F.binary_cross_entropy_with_logits(model(tokens), answers)


def train_classifier(
    model: nn.Module, task: Labelled, recipe: Recipe, seed: int = 0, **options: Any
) -> list[Record]:
    """Return the history of a model that learned to classify."""
    torch.manual_seed(seed)
    optimizer, schedule = one_cycle(model, recipe.rate, recipe.steps)
    batches = labelled_batches(task, recipe.size, recipe.steps, seed)
    options = {"schedule": schedule, "clip": 1.0} | options
    return fit(model, label_loss, batches, optimizer, **options)


def classify(
    model: nn.Module, task: Labelled, texts: Sequence[Text], size: int = 64
) -> Float[Tensor, "n c"]:
    """Return logits for each of the ``texts``, in their order.

    Args:
        texts: tokens; disguised if those of the task are. An empty one is read, too.
        size: texts in a batch; those of about one length are read together.

    Raises:
        ValueError: if a text is longer than the model has positions for.
    """
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    logits = torch.empty(len(texts), len(task.labels))
    with evaluating(model):
        for first in range(0, len(order), size):
            rows = order[first : first + size]
            seen = [task.view(texts[i], i) for i in rows]
            logits[rows] = model(task.words.ids(seen).to(device_of(model))).cpu()
    return logits


def reader(
    model: nn.Module, task: Labelled
) -> Callable[[Sequence[Text]], Float[Tensor, "n c"]]:
    """Return a function from texts to logits, as :class:`TfidfLinear` is one."""
    return lambda texts: classify(model, task, texts)


# ---- what answers are worth ----------------------------------------------------


def both_ways(answers: Float[Tensor, "n c"]) -> None:
    """Require that each label of ``answers`` holds for some texts and not for others.

    Raises:
        ValueError: if one holds for none, or for all: there is nothing to learn.
    """
    share = answers.float().mean(dim=0)
    for i, value in enumerate(share.tolist()):
        require.that(
            0 < value < 1,
            f"answers must hold both 0 and 1 for each label, got only {value:.0f} "
            f"for label {i}",
        )


@require.shapes
def f1_scores(
    yes: Bool[Tensor, "n c"], answers: Float[Tensor, "n c"]
) -> dict[str, Any]:
    """Return F1 of each label, their mean (macro), and F1 of all decisions (micro).

    F1 = 2 · hits / (said yes + is yes), over the whole set, never a mean over batches.
    Where nothing is yes and nothing was said to be, it is 0.

    Returns:
        ``"each"``, a list; ``"macro"`` and ``"micro"``.
    """
    holds = answers.bool()
    hits, said, is_yes = (x.sum(dim=0) for x in (yes & holds, yes, holds))
    each = 2 * hits / (said + is_yes).clamp(min=1)
    micro = 2 * hits.sum() / (said + is_yes).sum().clamp(min=1)
    return {
        "each": each.tolist(),
        "macro": each.mean().item(),
        "micro": micro.item(),
    }


@require.shapes
def best_thresholds(
    chances: Float[Tensor, "n c"], answers: Float[Tensor, "n c"]
) -> Float[Tensor, "c"]:
    """Return for each label the threshold, of 19, above which yes has the best F1.

    Args:
        chances: probabilities, on texts for validation.

    Raises:
        ValueError: if a label holds for none of the texts, or for all.
    """
    both_ways(answers)
    steps = torch.linspace(0.05, 0.95, 19)
    scores = [f1_scores(chances > step, answers)["each"] for step in steps]
    return steps[torch.tensor(scores).argmax(dim=0)]


def cross_entropy(logits: Float[Tensor, "n c"], answers: Float[Tensor, "n c"]) -> float:
    """Return the mean loss of ``logits`` by their ``answers``, in nats a label."""
    return F.binary_cross_entropy_with_logits(logits, answers).item()


def best_temperature(
    logits: Float[Tensor, "n c"], answers: Float[Tensor, "n c"]
) -> float:
    """Return what logits are divided by for the lowest loss (Guo et al., 2017)."""
    steps = torch.logspace(-1, 2, 151).tolist()  # a tenth to a hundred
    return min(steps, key=lambda step: cross_entropy(logits / step, answers))


@require.shapes
def reliability(
    logits: Float[Tensor, "n c"], answers: Float[Tensor, "n c"], bins: int = 10
) -> list[tuple[float, float, int]]:
    """Return how sure answers are, and how many of them are right, from unsure to sure.

    An answer is yes or no, whichever is more likely; its chance is from one half to 1.

    Args:
        bins: number of parts; each holds as many answers, but for one.

    Returns:
        For each part the mean chance, the share that is right, and the number.
    """
    require.count(bins=bins)
    chances = logits.abs().sigmoid().flatten()
    right = ((logits > 0) == answers.bool()).flatten().float()
    order = chances.argsort()
    parts = (rows for rows in order.tensor_split(bins) if len(rows))
    return [
        (chances[rows].mean().item(), right[rows].mean().item(), len(rows))
        for rows in parts
    ]


def measure(
    read: Callable[[Sequence[Text]], Float[Tensor, "n c"]], task: Labelled
) -> dict[str, Any]:
    """Return what a model's answers are worth on the texts for testing.

    Returns:
        ``"accuracy"`` of all decisions, ``"macro"`` and ``"micro"`` F1, with thresholds
        of one half, and ``"tuned"`` and ``"each"``: macro F1 and that of each label
        with thresholds chosen on validation.
    """
    logits = {s: read(task.texts[s]) for s in ("validation", "test")}
    answers = task.answers["test"]
    half = f1_scores(logits["test"] > 0, answers)
    right = (logits["test"] > 0) == answers.bool()
    limits = best_thresholds(logits["validation"].sigmoid(), task.answers["validation"])
    tuned = f1_scores(logits["test"].sigmoid() > limits, answers)
    return {
        "accuracy": right.float().mean().item(),
        "macro": half["macro"],
        "micro": half["micro"],
        "tuned": tuned["macro"],
        "each": [round(one, 4) for one in tuned["each"]],
    }


def flips(
    model: nn.Module, task: Labelled, texts: Sequence[Text], length: int
) -> float:
    """Return how many texts in a hundred get other labels if they're padded.

    Each text is read once without padding, and once padded to a ``length``, as it is
    beside a longer neighbour.

    Args:
        texts: at most as long as ``length``, none empty.
    """
    changed = 0
    with evaluating(model):
        for text in texts:
            alone = task.words.ids([text]).to(device_of(model))
            padded = F.pad(alone, (0, length - len(text)), value=Words.pad)
            changed += ((model(alone) > 0) != (model(padded) > 0)).any().item()
    return 100 * changed / len(texts)
