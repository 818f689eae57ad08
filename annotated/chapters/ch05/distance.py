"""Page 05c: biases by distance, live and in ``python -m benchmarks distance``.

In place of positions, each score gets a number that depends on how far the key stands
from the query. Letters: b batch, t length, d model width, h heads.
"""

import math
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch05.reading import (
    POSITIONS,
    Reader,
    previous_symbol_loss,
    reading_task,
    uniform_lengths,
)
from annotated.devices import device_of, to_device
from annotated.positions import RotaryMultiHeadAttention
from annotated.recipes.common import one_cycle
from annotated.training import evaluating, fit


class BiasedAttention(MultiHeadAttention):
    """Self-attention that adds a bias to each score.

    What Raffel et al. (2020) and Press et al. (2022) have in common.
    """

    def score_bias(
        self, q: Float[Tensor, "b h t k"], k: Float[Tensor, "b h s k"]
    ) -> Float[Tensor, "h t s"]:
        """Return numbers by the distance from each of ``q`` to each of ``k``."""
        position = torch.arange(k.shape[2], device=k.device)
        queries = position[k.shape[2] - q.shape[2] :]  # the last ones
        return self.bias(position - queries[:, None])  # from the query to the key


class ALiBiAttention(BiasedAttention):
    """Takes from each score the distance, times a slope for each head.

    Press et al. (2022).
    """

    def bias(self, offset: Int[Tensor, "t s"]) -> Float[Tensor, "h t s"]:
        """Return minus slope times distance, for each ``offset``."""
        head = torch.arange(1, self.heads + 1, device=offset.device)
        slopes = 2.0 ** (-8 * head / self.heads)
        return -slopes[:, None, None] * offset.abs()


def t5_bucket(
    offset: Int[Tensor, "..."], buckets: int = 32, furthest: int = 128
) -> Int[Tensor, "..."]:
    """Return the bucket of each offset: half for each side, half of these exact.

    Raffel et al. (2020). ``offset`` is the key's position less the query's; distances
    from ``furthest`` on share the last of the ``buckets`` of their side.
    """
    side, exact = buckets // 2, buckets // 4
    distance = offset.abs()
    steps = (distance.clamp(min=exact) / exact).log() / math.log(furthest / exact)
    # 16, 32 and 64 lie on borders, which another processor's logarithm may just miss
    shared = exact + (steps * (side - exact) + 1e-4).long()
    bucket = torch.where(distance < exact, distance, shared.clamp(max=side - 1))
    return bucket + side * (offset > 0)


class T5Attention(BiasedAttention):
    """Adds to each score a learned number, one for each bucket and head.

    Raffel et al. (2020).

    Args:
        furthest: distances from here on share a bucket.
    """

    def __init__(self, d_model: int, heads: int, furthest: int = 128):
        super().__init__(d_model, heads)
        self.furthest = furthest
        self.table = nn.Embedding(32, heads)
        nn.init.normal_(self.table.weight, std=0.1)

    def bias(self, offset: Int[Tensor, "t s"]) -> Float[Tensor, "h t s"]:
        """Return the learned numbers of each ``offset``."""
        bucket = t5_bucket(offset, furthest=self.furthest)
        return self.table(bucket).permute(2, 0, 1)


DISTANCE_KINDS = {
    "ALiBi": ALiBiAttention,
    "T5's bias, furthest 128": T5Attention,
    "T5's bias, furthest 24": partial(T5Attention, furthest=24),
    "rotary": RotaryMultiHeadAttention,
}


def distance_reader(kind: str) -> Reader:
    """Return chapter 5's reader without positions, with a ``kind`` of attention."""
    model = Reader("none")
    for layer in model.layers:
        layer.attention = DISTANCE_KINDS[kind](POSITIONS["d_model"], POSITIONS["heads"])
    return model


def train_distance(
    model: Reader,
    seed: int,
    steps: int = POSITIONS["steps"],
    rate: float = POSITIONS["rate"],
) -> float:
    """Return the CPU seconds that a ``model`` takes to train on short sequences."""
    generator = torch.Generator().manual_seed(seed)
    batches = (
        reading_task(uniform_lengths(generator), generator) for _ in range(steps)
    )
    optimizer, schedule = one_cycle(model, rate, steps)
    history = fit(
        model,
        previous_symbol_loss,
        batches,
        optimizer,
        schedule=schedule,
        clip=POSITIONS["clip"],
    )
    return history[-1]["cpu_seconds"]


def neighbours_named(
    model: Reader, length: int, count: int = 100
) -> tuple[Float[Tensor, "_"], float]:
    """Return the share of right answers at each position from the second on.

    And the share of answers that are the symbol before or the one after.
    """
    generator = torch.Generator().manual_seed(10_000 + length)
    batch = reading_task(torch.full((count,), length), generator)
    tokens, mask = to_device(batch, device_of(model))
    with evaluating(model):
        guesses = model(tokens, mask).argmax(dim=-1)
    right = (guesses[:, 1:] == tokens[:, :-1]).cpu()
    either = right[:, :-1] | (guesses[:, 1:-1] == tokens[:, 2:]).cpu()
    return right.double().mean(dim=0), either.double().mean().item()
