"""Chapter 18: a small GPT trained with the tricks of large ones, done right and wrong.

Everything is small; what a trick does to a gradient doesn't depend on the size.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.checkpoint import checkpoint

from annotated import require
from annotated.data.text import CHARACTERS, random_windows
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.recipes.text import Recipe, bits_per_character

LARGE_RECIPE = Recipe(
    "library",
    {"d_model": 64, "heads": 4, "layers": 3, "d_ff": 256, "max_len": 64},
    batch=16,
    steps=400,
    rate=3e-3,
)


def large_model(seed: int = 0, **changes: Any) -> GPT:
    """Return an untrained model of the chapter.

    Args:
        changes: fields of :class:`~annotated.gpt.GPTConfig` that are to differ.
    """
    torch.manual_seed(seed)
    return GPT(GPTConfig(len(CHARACTERS), **LARGE_RECIPE.model | changes))


# ---- a step, to be varied ----------------------------------------------------------


def training(
    model: nn.Module,
    ids: Int[Tensor, "n"],
    step: Callable[[Tensor], None],
    optimizer: torch.optim.Optimizer,
    rate: float,
    seed: int,
    steps: int = LARGE_RECIPE.steps,
    precision: torch.dtype | None = None,
) -> list[float]:
    """Return the losses of a training run whose step is given.

    The rate rises for a tenth of the steps, and then falls.

    Args:
        step: gets each loss, a tensor of one number: it has to backpropagate and to
            change the weights.
    """
    schedule = OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    length, size = LARGE_RECIPE.model["max_len"], LARGE_RECIPE.batch
    losses = []
    torch.manual_seed(seed)
    for batch in random_windows(ids, length, size, steps, seed):
        model.zero_grad()
        with torch.autocast("cpu", precision, enabled=precision is not None):
            loss = next_token_loss(model, batch)
        step(loss)
        schedule.step()
        losses.append(loss.item())
    return losses


def plain_step(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> Callable[[Tensor], None]:
    """Return a step that takes a loss, clips the gradient at 1, and updates.

    The loss is a tensor of one number.
    """

    def step(loss: Tensor) -> None:
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


# ---- clipping before and after unscaling -------------------------------------------


def rule_of(name: str, model: nn.Module, rate: float) -> torch.optim.Optimizer:
    """Return an optimiser.

    Args:
        name: "AdamW" or "SGD" (with momentum).
    """
    require.choice(("AdamW", "SGD"), name=name)
    if name == "SGD":
        return torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)


def scaled_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    unscale_first: bool,
    clip: float = 1.0,
) -> Callable[[Tensor], None]:
    """Return a step that scales, clips and updates, in one of two orders.

    The loss is a tensor of one number.
    """

    def step(loss: Tensor) -> None:
        scaler.scale(loss).backward()
        if unscale_first:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)  # unscales, unless that was done
        scaler.update()

    return step


# ---- bfloat16 ----------------------------------------------------------------------


@require.shapes
def stochastic_bfloat16(
    x: Float[Tensor, "*batch"], generator: torch.Generator | None = None
) -> Float[Tensor, "*batch"]:
    """Return ``x`` rounded up or down at random, so that the mean is ``x``.

    A bfloat16 is the upper half of a float32: a random number is added to the lower
    half, which is then cut off.
    """
    noise = torch.randint(0, 1 << 16, x.shape, dtype=torch.int32, generator=generator)
    bits = (x.view(torch.int32) + noise) & -(1 << 16)
    return bits.view(torch.float32).bfloat16()


WAYS = ("float32", "autocast", "bfloat16", "nearest", "stochastic", "master")


def train_halves(
    way: str, ids: Int[Tensor, "n"], rate: float, seed: int, **changes: Any
) -> tuple[GPT, list[float]]:
    """Train with less precision.

    Args:
        way: "float32"; "autocast" (weights in float32, products in bfloat16);
            "bfloat16" (weights, gradients and Adam's averages); "nearest" (weights and
            gradients in bfloat16, Adam's averages in float32); "stochastic" (the same,
            with weights rounded at random); "master" (the same, but a float32 copy of
            the weights is what learns).
    """
    require.choice(WAYS, way=way)
    model = large_model(seed)
    if way in ("float32", "autocast", "bfloat16"):
        model = model.to(torch.bfloat16 if way == "bfloat16" else torch.float32)
        optimizer = rule_of("AdamW", model, rate)
        step = plain_step(model, optimizer)
    else:
        wide = [p.detach().clone() for p in model.parameters()]
        model.bfloat16()
        optimizer = torch.optim.AdamW(wide, rate, weight_decay=0.0)
        narrow = list(model.parameters())

        def step(loss: Tensor) -> None:
            loss.backward()
            nn.utils.clip_grad_norm_(narrow, 1.0)
            for w, p in zip(wide, narrow, strict=True):
                w.grad = p.grad.float()
            optimizer.step()
            with torch.no_grad():
                for w, p in zip(wide, narrow, strict=True):
                    p.copy_(stochastic_bfloat16(w) if way == "stochastic" else w)
                    if way != "master":  # which keeps in w what rounding loses
                        w.copy_(p)

    precision = torch.bfloat16 if way == "autocast" else None
    options = {"precision": precision} | changes
    return model, training(model, ids, step, optimizer, rate, seed, **options)


# ---- checkpoints -------------------------------------------------------------------


class Checkpointed(nn.Module):
    """A layer that keeps its input alone, and computes the rest again when needed.

    The trick is Chen et al.'s (2016).

    Args:
        preserve: whether it draws the same random numbers again.
    """

    def __init__(self, layer: nn.Module, preserve: bool = True):
        super().__init__()
        self.layer, self.preserve = layer, preserve

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what the layer makes of ``x``, of any shape, and a ``mask``."""
        options = {"use_reentrant": False, "preserve_rng_state": self.preserve}
        return checkpoint(self.layer, x, mask, **options)


def with_checkpoints(model: GPT, preserve: bool = True) -> GPT:
    """Return a ``model``, now with checkpoints at its blocks; ``preserve`` as above."""
    layers = model.blocks.layers
    model.blocks.layers = nn.ModuleList(Checkpointed(one, preserve) for one in layers)
    return model


STORING = ("stored", "checkpointed", "drawn again")


def train_checkpointed(
    way: str, ids: Int[Tensor, "n"], seed: int, dropout: float = 0.1, **changes: Any
) -> tuple[GPT, list[float]]:
    """Train with dropout.

    Args:
        way: "stored", "checkpointed", or "drawn again": with checkpoints that draw new
            dropout masks on the way back.
    """
    require.choice(STORING, way=way)
    model, rate = large_model(seed, dropout=dropout), LARGE_RECIPE.rate
    if way != "stored":
        with_checkpoints(model, preserve=way == "checkpointed")
    optimizer = rule_of("AdamW", model, rate)
    step = plain_step(model, optimizer)
    return model, training(model, ids, step, optimizer, rate, seed, **changes)


def held_out_bits(model: GPT, ids: Int[Tensor, "n"]) -> float:
    """Return the bits per character of a model, in float32, on the first 20,000."""
    return bits_per_character(
        model.float(), ids[:20_000], LARGE_RECIPE.model["max_len"]
    )
