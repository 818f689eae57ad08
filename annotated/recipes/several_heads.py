"""Chapter 03: one head and several, live and in recorded runs.

Two tasks, in each of which one position asks all the others: a verb asks who gave what
to whom, and a missing letter asks its neighbours. Letters: b batch, t length.
"""

import re
import sysconfig
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.checkpoints import Record
from annotated.data.text import MODULES
from annotated.devices import device_of, to_device
from annotated.recipes.common import one_cycle
from annotated.training import evaluating, fit

# ---- who gave what to whom -------------------------------------------------------

NOUNS = """mary susan john paul anna peter lucy tom
roses books bread coins keys letters apples stones
cats dogs horses birds kings nurses pirates robots
cups lamps boats hats maps ropes bells drums
rivers hills clouds stars fields woods roads towers
songs jokes names dreams hours stories secrets wishes""".split()
WORDS = [*NOUNS, "gave", "to"]
WHO, VERB, WHAT, TO, WHOM = range(5)  # the positions of a sentence
GIVING = {"width": 48, "batch": 64, "steps": 400, "rate": 1e-2}
# with a network on each word before attention
NETWORK = {"hidden": 96, "steps": 1200, "rate": 3e-3}


def giving_sentences(
    generator: torch.Generator, count: int = GIVING["batch"]
) -> tuple[Int[Tensor, "b t"], Int[Tensor, "b _"]]:
    """Return ``count`` sentences from a ``generator``, and their three different nouns.

    Any noun may give, be given and receive, so only positions tell which did.
    """
    order = torch.rand(count, len(NOUNS), generator=generator).argsort(dim=1)
    nouns = order[:, :3]
    tokens = torch.full((count, 5), WORDS.index("gave"))
    tokens[:, [WHO, WHAT, WHOM]] = nouns
    tokens[:, TO] = WORDS.index("to")
    return tokens, nouns


class Giving(nn.Module):
    """Says who gave what to whom, from the verb's output alone (chapter 03)."""

    def __init__(self, heads: int, width: int = GIVING["width"]):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), width)
        self.positions = nn.Parameter(torch.randn(5, width))
        self.before = nn.Identity()
        self.attention = MultiHeadAttention(width, heads)
        self.answers = nn.Linear(width, 3 * len(NOUNS))

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b _ v"]:
        """Return logits over the nouns for three questions about ``tokens``."""
        x = self.before(self.words(tokens) + self.positions)
        verb = self.attention(x[:, VERB : VERB + 1], x)  # one query: (b, 1, d)
        return self.answers(verb).view(-1, 3, len(NOUNS))


class WordNetwork(nn.Module):
    """A small network on each word alone, added to it (chapter 03)."""

    def __init__(self):
        super().__init__()
        width, hidden = GIVING["width"], NETWORK["hidden"]
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """Return each word of ``x`` and what the network makes of it."""
        return x + self.second(self.first(x).relu())


def with_network(model: Giving) -> Giving:
    """Return a ``model`` with a small network on each word, before its attention."""
    model.before = WordNetwork()
    return model


def train_giving(
    model: Giving,
    seed: int,
    steps: int = GIVING["steps"],
    rate: float = GIVING["rate"],
) -> Giving:
    """Return a ``model`` trained on sentences drawn with ``seed``.

    There are ``steps`` of Adam at a constant ``rate``.
    """
    generator = torch.Generator().manual_seed(seed)
    device = device_of(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        tokens, nouns = to_device(giving_sentences(generator), device)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), nouns.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def answers_right(model: Giving, seed: int = 1000, count: int = 1000) -> list[float]:
    """Return a ``model``'s share of right answers to who, what and whom.

    ``seed`` draws ``count`` fresh sentences.
    """
    device = device_of(model)
    generator = torch.Generator().manual_seed(seed)
    tokens, nouns = to_device(giving_sentences(generator, count), device)
    with evaluating(model):
        right = model(tokens).argmax(dim=-1) == nouns
    return right.float().mean(dim=0).tolist()


# ---- the missing letter ------------------------------------------------------------

ALPHABET = " .,'abcdefghijklmnopqrstuvwxyz-"  # a hyphen inside would be a range
BLANK = len(ALPHABET)
SIDE = 8  # letters to the left of the blank, and as many to its right
MISSING_LETTER = {"width": 64, "hidden": 128, "batch": 128, "steps": 1200, "rate": 3e-3}


@cache
def library_prose() -> str:
    """Return the English of the docstrings in Python's own library, in lower case.

    Which modules is fixed (``annotated.data.text.MODULES``); each Python has its own
    text.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [folder / f"{m}.py" for modules in MODULES.values() for m in modules]
    sources = (file.read_text("utf-8", "replace") for file in files)
    docstrings = (re.findall(r'"""(.*?)"""', source, re.DOTALL) for source in sources)
    text = " ".join(text for several in docstrings for text in several).lower()
    return re.sub(" +", " ", re.sub(f"[^{ALPHABET}]", " ", text))


def letter_codes(text: str) -> Int[Tensor, "t"]:
    """Return the number of each letter of a ``text``; an underscore is a blank."""
    return torch.tensor([BLANK if c == "_" else ALPHABET.index(c) for c in text])


def letter_windows() -> tuple[Int[Tensor, "_ t"], Int[Tensor, "_ t"]]:
    """Return all windows of the prose: nine tenths to learn from, the rest to test."""
    windows = letter_codes(library_prose()).unfold(0, 2 * SIDE + 1, 1)
    cut = len(windows) * 9 // 10
    return windows[:cut], windows[cut + 2 * SIDE :]


class MissingLetter(nn.Module):
    """Guesses the middle letter from what its position attends to (chapter 03).

    Args:
        attention: the attention that the blank uses.
    """

    def __init__(self, attention: MultiHeadAttention):
        super().__init__()
        width = attention.d_model
        self.letters = nn.Embedding(len(ALPHABET) + 1, width)
        self.positions = nn.Parameter(torch.randn(2 * SIDE + 1, width))
        self.attention = attention
        self.answer = nn.Sequential(
            nn.Linear(width, MISSING_LETTER["hidden"]),
            nn.ReLU(),
            nn.Linear(MISSING_LETTER["hidden"], len(ALPHABET)),
        )

    def forward(self, window: Int[Tensor, "b t"]) -> Float[Tensor, "b v"]:
        """Return logits of the letter in the middle of a ``window``, a blank there."""
        x = self.letters(window) + self.positions
        blank = self.attention(x[:, SIDE : SIDE + 1], x)  # one query: (b, 1, d)
        return self.answer(blank[:, 0])


def hide_letter(
    windows: Int[Tensor, "b t"],
) -> tuple[Int[Tensor, "b t"], Int[Tensor, "b"]]:
    """Return ``windows`` with a blank in the middle, and the letters it stands for."""
    hidden = windows.clone()
    hidden[:, SIDE] = BLANK
    return hidden, windows[:, SIDE]


def letter_loss(model: MissingLetter, windows: Int[Tensor, "b t"]) -> Float[Tensor, ""]:
    """Return the cross-entropy of a ``model`` on the middle letters of ``windows``."""
    hidden, letters = hide_letter(windows)
    return F.cross_entropy(model(hidden), letters)


def train_letters(
    model: MissingLetter, seed: int, steps: int = MISSING_LETTER["steps"]
) -> list[Record]:
    """Return the history of a ``model`` that learned from windows.

    ``seed`` draws the batches of all ``steps``.
    """
    train, _ = letter_windows()
    generator = torch.Generator().manual_seed(seed)

    def batches():
        for _ in range(steps):
            chosen = torch.randint(
                len(train), (MISSING_LETTER["batch"],), generator=generator
            )
            yield train[chosen]

    optimizer, schedule = one_cycle(model, MISSING_LETTER["rate"], steps)
    return fit(model, letter_loss, batches(), optimizer, schedule=schedule)


def letters_right(model: MissingLetter, count: int = 10_000) -> float:
    """Return a ``model``'s share of right letters in ``count`` unseen windows."""
    _, test = letter_windows()
    generator = torch.Generator().manual_seed(1000)
    chosen = test[torch.randint(len(test), (count,), generator=generator)]
    hidden, letters = hide_letter(to_device(chosen, device_of(model)))
    with evaluating(model):
        return (model(hidden).argmax(dim=-1) == letters).float().mean().item()


def right_without_each(model: MissingLetter) -> list[float]:
    """Return a ``model``'s share of right letters without each of its heads in turn.

    A head reaches the output through its own columns of the output map, so those are
    set to zero, and put back.
    """
    attention = model.attention
    weight = attention.output_map.weight.detach()
    shares = []
    for columns in weight.chunk(attention.heads, dim=1):  # views: (d, k)
        kept = columns.clone()
        columns.zero_()
        shares.append(letters_right(model))
        columns.copy_(kept)
    return shares
