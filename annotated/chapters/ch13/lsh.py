"""Chapter 13: what the page and its recorded runs share.

Letters: b batch, t length, k width of a query, v width of a value or number of symbols
(``book/notation.md``).
"""

import time
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import masked_softmax
from annotated.devices import device_of, to_device
from annotated.gpt import GPT, GPTConfig
from annotated.recipes.common import one_cycle
from annotated.reformer import LSHSelfAttention
from annotated.training import evaluating, fit

# ---- who meets whom, as a dense matrix -----------------------------------------


@require.shapes
def exact_attention(
    query: Float[Tensor, "*batch t k"],
    value: Float[Tensor, "*batch t v"],
    met: Bool[Tensor, "*batch t t"] | None = None,
    causal: bool = False,
    scale: float = 1.0,
) -> Float[Tensor, "*batch t v"]:
    """Return attention with shared queries and keys, by the whole matrix of scores.

    Args:
        query: ``(…, t, k)``, queries and keys in one.
        met: which pairs count, ``(…, t, t)``; all if not given.
    """
    t = query.shape[-2]
    scores = scale * query @ F.normalize(query, dim=-1).mT
    seen = torch.ones_like(scores, dtype=torch.bool) if met is None else met
    seen = seen.tril() if causal else seen
    oneself = torch.eye(t, dtype=torch.bool, device=query.device)
    others = seen & ~oneself
    alone = ~others.any(dim=-1, keepdim=True)
    return masked_softmax(scores, others | (oneself & alone)) @ value


@require.shapes
def meetings(
    buckets: Int[Tensor, "*batch _ t"], chunk: int, within: bool = False
) -> Bool[Tensor, "*batch _ t t"]:
    """Return which pairs meet in each round: those of a chunk and the chunk before.

    Args:
        within: whether they must share a bucket too.
    """
    order = buckets.argsort(dim=-1, stable=True)
    mine = order.argsort(dim=-1)[..., None] // chunk  # (…, rounds, t, 1)
    theirs = mine.mT
    first = (mine - 1).clamp(min=0)
    met = (theirs == first) | (theirs == first + 1)
    return met & (buckets[..., None] == buckets[..., None, :]) if within else met


@require.shapes
def recall(
    query: Float[Tensor, "*batch t k"],
    met: Bool[Tensor, "*batch _ t t"],
    top: int,
    causal: bool = False,
) -> list[float]:
    """Return which share of the heaviest keys is met, after 1, 2, … rounds.

    Args:
        query: ``(…, t, k)``, queries and keys in one.
        met: which pairs meet in each round, ``(…, rounds, t, t)``.
        causal: whether only earlier keys count; the first ``top`` queries, which have
            no choice, are left out then.
    """
    t = query.shape[-2]
    scores = query @ F.normalize(query, dim=-1).mT
    hidden = torch.eye(t, dtype=torch.bool, device=query.device)
    if causal:
        hidden = hidden | ~torch.ones_like(hidden).tril()
    heaviest = scores.masked_fill(hidden, -torch.inf).topk(top).indices
    begin = top if causal else 0
    found, shares = torch.zeros_like(met[..., 0, :, :]), []
    for of_round in met.unbind(dim=-3):
        found = found | of_round
        shares.append(found.gather(-1, heaviest)[..., begin:, :].float().mean().item())
    return shares


def lost_pairs(
    buckets: Int[Tensor, "*batch _ t"], met: Bool[Tensor, "*batch _ t t"]
) -> float:
    """Return the share of pairs of one bucket that do not meet in their round.

    A bucket that spreads over more than two chunks is why. ``buckets`` and ``met`` are
    those of :func:`meetings`.
    """
    t = buckets.shape[-1]
    oneself = torch.eye(t, dtype=torch.bool, device=buckets.device)
    pairs = (buckets[..., None] == buckets[..., None, :]) & ~oneself
    either = met | met.mT  # one of the two looks at the other
    return 1 - (pairs & either).sum().item() / pairs.sum().item()


def prototypes(
    seed: int, length: int = 1024, count: int = 128, width: int = 64
) -> tuple[Float[Tensor, "t k"], Float[Tensor, "t k"]]:
    """Return queries that repeat each other with some noise, and random values.

    Args:
        count: how many different ones there would be without noise.
    """
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.randn(count, width, generator=generator)
    which = torch.randint(count, (length,), generator=generator)
    noise, value = torch.randn(2, length, width, generator=generator)
    return kinds[which] + 0.1 * noise, value


# ---- the duplicate task --------------------------------------------------------

DUPLICATE = {
    "symbols": 32,
    "word": 31,
    "d_model": 64,
    "heads": 4,
    "d_ff": 128,
    "chunk": 4,
    "batch": 32,
    "steps": 400,
    "rate": 3e-3,
    "clip": 1.0,
}
LENGTH = 2 * DUPLICATE["word"] + 1  # 0 w 0 w, but for the last symbol
# how the models attend: (chunk, rounds); one chunk for all is exact attention
FULL = (LENGTH, 1)
TRAINED = {"full": FULL} | {f"LSH-{n}": (DUPLICATE["chunk"], n) for n in (4, 1)}
ASKED = {"full": FULL} | {f"LSH-{n}": (DUPLICATE["chunk"], n) for n in (8, 4, 2, 1)}


class LSHText(GPT):
    """A GPT that attends among positions that hash alike (chapter 13).

    Args:
        options: of :class:`~annotated.reformer.LSHSelfAttention`, such as ``chunk``.
    """

    def __init__(self, config: GPTConfig, **options: Any):
        super().__init__(config)
        for block in self.blocks.layers:
            sizes = config.d_model, config.heads
            block.attention = LSHSelfAttention(*sizes, causal=True, **options)
            for parameter in block.attention.parameters():
                nn.init.xavier_uniform_(parameter)

    def attend(self, chunk: int, rounds: int) -> None:
        """Attend from now on in chunks of another size, and in so many ``rounds``."""
        for block in self.blocks.layers:
            block.attention.chunk, block.attention.rounds = chunk, rounds


def duplicates(
    size: int, generator: torch.Generator
) -> tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]:
    """Return sequences 0 w 0 w and, as targets, the same one step later.

    Kitaev et al. (2020), section 5. Only the second w can be foretold.
    """
    shape = size, DUPLICATE["word"]
    word = torch.randint(1, DUPLICATE["symbols"], shape, generator=generator)
    once = F.pad(word, (1, 0))
    both = torch.cat([once, once], dim=1)
    return both[:, :-1], both[:, 1:]


def second_word(
    model: nn.Module, batch: tuple[Tensor, Tensor]
) -> tuple[Float[Tensor, "_ v"], Int[Tensor, "_"]]:
    """Return logits and targets where the second word is: what counts.

    ``model`` reads the tokens of the ``batch``, ``(b, t)``.
    """
    tokens, target = batch
    begin = DUPLICATE["word"] + 1
    return model(tokens)[:, begin:].flatten(0, 1), target[:, begin:].flatten()


def duplicate_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Float[Tensor, ""]:
    """Return the mean loss over the second word; see :func:`second_word`.

    ``model`` gives logits ``(b, t, v)`` for the tokens of the ``batch``.
    """
    return F.cross_entropy(*second_word(model, batch))


def train_duplicate(
    kind: str, seed: int, steps: int = DUPLICATE["steps"]
) -> tuple[LSHText, float]:
    """Return a model that learned to repeat a word, and its CPU seconds."""
    require.choice(TRAINED, kind=kind)
    task, (chunk, rounds) = DUPLICATE, TRAINED[kind]
    torch.manual_seed(seed)
    sizes = {name: task[name] for name in ("d_model", "heads", "d_ff")}
    config = GPTConfig(task["symbols"], layers=1, max_len=LENGTH, **sizes)
    model = LSHText(config, chunk=chunk, rounds=rounds)
    # positions as large as embeddings: they alone say where to look
    nn.init.normal_(model.positions.table, std=task["d_model"] ** -0.5)
    generator = torch.Generator().manual_seed(seed)
    batches = [duplicates(task["batch"], generator) for _ in range(steps)]
    optimizer, schedule = one_cycle(model, task["rate"], steps)
    began = time.process_time()
    fit(model, duplicate_loss, batches, optimizer, schedule=schedule, clip=task["clip"])
    return model, time.process_time() - began


def duplicates_right(
    model: LSHText, ways: Sequence[str] = tuple(ASKED), size: int = 256
) -> dict[str, float]:
    """Return the share of symbols of second words that ``model`` foretells.

    Args:
        model: trained; it attends as before afterwards.
        ways: how it is to attend, each one of ``ASKED``.
    """
    batch = duplicates(size, torch.Generator().manual_seed(10_000))
    batch = to_device(batch, device_of(model))
    attention, shares = model.blocks.layers[0].attention, {}
    before = attention.chunk, attention.rounds
    for way in ways:
        model.attend(*ASKED[way])
        with evaluating(model):
            logits, target = second_word(model, batch)
        shares[way] = (logits.argmax(dim=-1) == target).float().mean().item()
    model.attend(*before)
    return shares
