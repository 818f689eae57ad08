"""Chapter 07: four post-norm layers under learning rates of several shapes."""

from collections.abc import Callable

import torch

from annotated.checkpoints import Record
from annotated.recipes.common import paper_adam
from annotated.recipes.copy_task import VOCAB, copy_batches, next_symbol_loss
from annotated.training import fit
from annotated.transformer import Transformer, TransformerConfig

# chapter 07: four post-norm layers, which a rate that is too high keeps from learning
DEEP = {
    "d_model": 32,
    "heads": 2,
    "layers": 4,
    "d_ff": 64,
    "dropout": 0.0,
    "max_len": 16,
}
CLIMB = 40
RATE_SHAPES: dict[str, Callable[[int], float]] = {  # the share of the rate in step n
    "constant": lambda n: 1.0,
    "climbing, then constant": lambda n: min(1.0, n / CLIMB),
    "falling": lambda n: min(1.0, (CLIMB / n) ** 0.5),
    "climbing, then falling": lambda n: min(n / CLIMB, (CLIMB / n) ** 0.5),
}


def train_deep(
    rate: Callable[[int], float], seed: int, steps: int, device: torch.device | str
) -> list[Record]:
    """Return the history of the four post-norm layers under a learning rate.

    Args:
        rate: the rate of step n, from 1.
    """
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **DEEP)).to(device)
    optimizer, schedule = paper_adam(model, rate)
    batches = copy_batches(seed, steps, 32, length=8)
    return fit(model, next_symbol_loss, batches, optimizer, schedule=schedule)
