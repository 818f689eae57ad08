"""Chapter 02's small world: *the cat didn't cross the street because it was too tired*.

To say *it* in French one has to know what it stands for: *le chat* is *il*, *la rue*
is *elle*. A :class:`PronounReader` learns that from sentences and their pronouns alone.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import scaled_dot_product_attention

PRONOUNS = ("il", "elle")
ANIMALS = {
    "cat": "il", "dog": "il", "horse": "il", "wolf": "il",
    "cow": "elle", "hen": "elle", "frog": "elle", "goose": "elle",
}  # fmt: skip
PLACES = {
    "bridge": "il", "field": "il", "lake": "il", "path": "il",
    "street": "elle", "river": "elle", "square": "elle", "valley": "elle",
}  # fmt: skip
MOODS = ("tired", "scared", "hungry", "lazy")  # said of animals
LOOKS = ("wide", "long", "muddy", "icy")  # said of places
SENTENCE = "the {} didn't cross the {} because it was too {}"
IT = SENTENCE.split().index("it")
FRAME = [word for word in SENTENCE.split() if word != "{}"]
IDS = {
    word: i
    for i, word in enumerate(dict.fromkeys([*FRAME, *ANIMALS, *PLACES, *MOODS, *LOOKS]))
}

PronounCase = tuple[str, str, str]  # an animal, a place, and a reason


def sentences(
    seed: int = 1, unseen: int = 16
) -> tuple[list[PronounCase], list[PronounCase]]:
    """Return the sentences to learn from, and those of pairs of nouns kept apart.

    Args:
        seed: which pairs are kept apart; *cat* and *street* always are.
        unseen: number of pairs that are.
    """
    pairs = [(animal, place) for animal in ANIMALS for place in PLACES]
    pairs.remove(("cat", "street"))
    random.Random(seed).shuffle(pairs)
    apart = {("cat", "street"), *pairs[: unseen - 1]}
    seen, kept = [], []
    for animal in ANIMALS:
        for place in PLACES:
            for reason in (*MOODS, *LOOKS):
                part = kept if (animal, place) in apart else seen
                part.append((animal, place, reason))
    return seen, kept


def meant(choice: PronounCase) -> str:
    """Return the noun that *it* stands for.

    Args:
        choice: an animal, a place and a reason.
    """
    animal, place, reason = choice
    return animal if reason in MOODS else place


def encode(
    choices: Sequence[PronounCase],
) -> tuple[Int[Tensor, "n t"], Int[Tensor, " n"]]:
    """Return the words of sentences as ids, and their pronouns: 0 for il, 1 for elle.

    Args:
        choices: an animal, a place and a reason for each sentence.
    """
    words = [SENTENCE.format(*choice).split() for choice in choices]
    genders = ANIMALS | PLACES
    pronouns = [PRONOUNS.index(genders[meant(choice)]) for choice in choices]
    tokens = [[IDS[word] for word in sentence] for sentence in words]
    return torch.tensor(tokens), torch.tensor(pronouns)


class PronounReader(nn.Module):
    """Looks back from *it*, twice, and says *il* or *elle* (chapter 02).

    Args:
        roles: ``"three"``: query, key and value have a matrix each; ``"value"``: only
            the value has one; ``"one"``: a word's vector is all three;
            ``"equal"``: like ``"value"``, but every word gets the same weight.
    """

    def __init__(self, roles: str = "three", width: int = 16):
        super().__init__()
        require.choice(("three", "value", "one", "equal"), roles=roles)
        self.scale = 0.0 if roles == "equal" else None  # scores of 0: equal weights
        self.embedding = nn.Embedding(len(IDS), width)
        self.embedding.weight.data *= 0.3  # small scores: nearly equal weights at first
        self.looks = nn.ModuleList()
        for _ in range(2):
            query_map, key_map, value_map = nn.Identity(), nn.Identity(), nn.Identity()
            if roles == "three":
                query_map = nn.Linear(width, width, bias=False)
                key_map = nn.Linear(width, width, bias=False)
            if roles != "one":
                value_map = nn.Linear(width, width, bias=False)
            self.looks.append(nn.ModuleList([query_map, key_map, value_map]))
        self.answer = nn.Linear(width, len(PRONOUNS))

    @require.shapes
    def forward(
        self, tokens: Int[Tensor, "b t"]
    ) -> tuple[Float[Tensor, "b _"], Float[Tensor, "b _ t"]]:
        """Return the logits of *il* and *elle*, and the weights of the two looks."""
        words = self.embedding(tokens)  # (b, t, k)
        asking = words[:, IT : IT + 1]  # (b, 1, k)
        looks = []
        for query_map, key_map, value_map in self.looks:
            seen, weights = scaled_dot_product_attention(
                query_map(asking), key_map(words), value_map(words), scale=self.scale
            )
            asking = asking + seen  # what it saw helps it to ask again
            looks.append(weights)
        return self.answer(seen[:, 0]), torch.cat(looks, dim=1)


def train_reader(
    roles: str = "three",
    seed: int = 0,
    steps: int = 200,
    on_step: Callable[[int, PronounReader], object] | None = None,
) -> PronounReader:
    """Return a reader trained on the sentences that it may see.

    Args:
        roles: as :class:`PronounReader` takes them.
        on_step: called as ``on_step(step, reader)`` after each of them.
    """
    torch.manual_seed(seed)
    reader = PronounReader(roles)
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-2)
    tokens, pronouns = encode(sentences()[0])
    for step in range(1, steps + 1):
        batch = torch.randint(len(tokens), (64,))
        loss = F.cross_entropy(reader(tokens[batch])[0], pronouns[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if on_step is not None:
            on_step(step, reader)
    return reader


def settled(run: Mapping[str, Any], kind: str, start: float | None) -> list[float]:
    """Return the step of each seed from which all is right; infinity if none is.

    Of a recorded ``run``, for readers of a ``kind``, with embeddings of size ``start``.
    """
    steps = []
    for seed in run["rows"]:
        if (seed["roles"], seed.get("start")) == (kind, start):
            every = [*zip(run["steps"], seed["right"], strict=True)]
            wrong = max((step for step, share in every if share < 1), default=0)
            after = [step for step, _ in every if step > wrong]
            steps.append(min(after, default=float("inf")))
    return steps
