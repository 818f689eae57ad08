"""Chapter 14: what the page and its recorded runs share.

Letters: b batch, t length, d model width (``book/notation.md``).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.checkpoints import Record
from annotated.recipes.text import Recipe, bits_per_character, read_text, train_text
from annotated.reformer import Reformer, ReformerConfig
from annotated.reversible import ReversibleBlock, ReversibleSequence
from annotated.transformer import FeedForward

Streams = tuple[Float[Tensor, "b t d"], Float[Tensor, "b t d"]]


def layers(
    depth: int,
    d_model: int,
    heads: int,
    d_ff: int,
    dropout: float = 0.0,
    attention: Callable[[], nn.Module] | None = None,
) -> ReversibleSequence:
    """Return a reversible stack: F is attention, G a network, both read normalised.

    Args:
        d_ff: inner width of the networks.
        dropout: probability, at the end of F and of G.
        attention: makes the attention of a block; causal multi-head attention if none.
    """

    def reads(module: nn.Module) -> nn.Module:
        return nn.Sequential(nn.LayerNorm(d_model), module, nn.Dropout(dropout))

    make = attention or partial(MultiHeadAttention, d_model, heads, causal=True)
    return ReversibleSequence(
        [
            ReversibleBlock(reads(make()), reads(FeedForward(d_model, d_ff)))
            for _ in range(depth)
        ]
    )


def stored(
    stack: ReversibleSequence, x1: Float[Tensor, "b t d"], x2: Float[Tensor, "b t d"]
) -> Streams:
    """Return ``x1`` and ``x2`` after ``stack``, block by block: all is stored."""
    for block in stack.blocks:
        x1, x2 = block(x1, x2)
    return x1, x2


def checkpointed(
    stack: ReversibleSequence, x1: Float[Tensor, "b t d"], x2: Float[Tensor, "b t d"]
) -> Streams:
    """Return ``x1`` and ``x2`` after ``stack``; stored is what each block was given."""
    for block in stack.blocks:
        x1, x2 = checkpoint(block, x1, x2, use_reentrant=False)
    return x1, x2


def reversible(
    stack: ReversibleSequence, x1: Float[Tensor, "b t d"], x2: Float[Tensor, "b t d"]
) -> Streams:
    """Return ``x1`` and ``x2`` after ``stack`` as it is: stored is the end alone."""
    return stack(x1, x2)


STACKS = {"stored": stored, "checkpointed": checkpointed, "reversible": reversible}


# ---- a whole chapter of text at once --------------------------------------------

_WIDTHS = {"d_model": 64, "heads": 2, "layers": 2, "d_ff": 256}
REFORMER_RECIPES = {
    # 80 seconds on one core with LSH attention: each step reads one window
    "16k": Recipe(
        "library",
        _WIDTHS | {"max_len": 16_384, "rounds": 1},
        batch=1,
        steps=100,
        rate=1e-2,
    ),
    # for a GPU: windows as long as the paper's on enwik8
    "64k": Recipe(
        "enwik8",
        {"d_model": 512, "heads": 8, "layers": 6, "d_ff": 2048, "dropout": 0.1}
        | {"max_len": 65_536, "rounds": 4, "ff_chunk": 4096},
        batch=1,
        steps=20_000,
        rate=6e-4,
        decay=0.1,
        precision=torch.bfloat16,
    ),
}


def run_reformer_recipe(
    name: str,
    attention: str = "LSH",
    device: torch.device | str = "cpu",
    seed: int = 0,
    **changes: Any,
) -> tuple[Reformer, list[Record], float]:
    """Train a Reformer on the text of a recipe: the one call that a GPU is asked for.

    Args:
        name: one of ``REFORMER_RECIPES``; "64k" wants a GPU.
        attention: "LSH", or "all", by PyTorch's kernel.
        changes: fields of the recipe that are to differ, such as ``steps``.

    Returns:
        The model, its history, and its bits per character on the validation text, in
        windows as long as those of training.
    """
    require.choice(REFORMER_RECIPES, name=name)
    recipe = REFORMER_RECIPES[name]._replace(**changes)
    text = read_text(recipe.text)
    model = reformer(recipe, text.size, attention, seed).to(device)
    history = train_text(model, text.train, recipe, seed)
    length = recipe.model["max_len"]
    return model, history, bits_per_character(model, text.validation, length, 1)


def reformer(recipe: Recipe, size: int, attention: str, seed: int) -> Reformer:
    """Return the untrained model of a ``recipe`` for ``size`` tokens.

    ``attention`` and ``seed`` are as for :func:`run_reformer_recipe`.
    """
    require.choice(("LSH", "all"), attention=attention)
    torch.manual_seed(seed)
    config = ReformerConfig(size, **recipe.model)
    make = None
    if attention == "all":
        make = partial(MultiHeadAttention, config.d_model, config.heads, causal=True)
    return Reformer(config, make)
