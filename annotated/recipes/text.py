"""Chapter 11: models that write text, and the texts they learn from.

As in ``annotated.recipes``: one seed trains on the page, ``python -m benchmarks``
trains the others. Losses are in bits per character: nats divided by ln 2.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import log
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import OneCycleLR

from annotated import require
from annotated.checkpoints import Record
from annotated.data.datasets import enwik8, tinyshakespeare
from annotated.data.text import (
    CHARACTERS,
    Characters,
    all_windows,
    random_windows,
    standard_library,
)
from annotated.devices import device_of
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.recipes.text_models import ConvolutionText, GRUText, PastAverage
from annotated.training import evaluate, evaluating, fit

# ---- what is read, and how a model learns from it ------------------------------


class Recipe(NamedTuple):
    """A model, a text and a way to train, chosen together."""

    text: str  #: one of ``TEXTS``
    model: dict[str, Any]  #: fields of :class:`~annotated.gpt.GPTConfig`
    batch: int  #: windows in a batch, each as long as the context
    steps: int  #: of the optimiser
    rate: float  #: the highest learning rate
    decay: float = 0.0  #: decoupled weight decay
    precision: torch.dtype | None = None  #: of mixed precision


TEXT_RECIPES = {
    # the page's: half a minute on one core; small enough to go into the page
    "library": Recipe(
        "library",
        {"d_model": 48, "heads": 4, "layers": 2, "d_ff": 144, "max_len": 64},
        batch=16,
        steps=3000,
        rate=1e-2,
    ),
    # three minutes on one core; model and context are those of nanoGPT's CPU example
    "shakespeare, CPU": Recipe(
        "shakespeare",
        {"d_model": 128, "heads": 4, "layers": 4, "d_ff": 512, "max_len": 64},
        batch=12,
        steps=2000,
        rate=4e-3,
    ),
    # minutes on a GPU; nanoGPT's train_shakespeare_char: much dropout, so little text
    "shakespeare": Recipe(
        "shakespeare",
        {"d_model": 384, "heads": 6, "layers": 6, "d_ff": 1536, "max_len": 256}
        | {"dropout": 0.2},
        batch=64,
        steps=5000,
        rate=1e-3,
        decay=0.1,
        precision=torch.bfloat16,
    ),
    # an hour on a GPU: seven times through the text, 38 million parameters
    "enwik8": Recipe(
        "enwik8",
        {"d_model": 512, "heads": 8, "layers": 12, "d_ff": 2048, "max_len": 512}
        | {"dropout": 0.1},
        batch=64,
        steps=20_000,
        rate=6e-4,
        decay=0.1,
        precision=torch.bfloat16,
    ),
}
TEXTS = ("library", "shakespeare", "enwik8")


class Corpus(NamedTuple):
    """A text in two parts, as ids."""

    train: Tensor  #: ``(n,)``
    validation: Tensor  #: ``(m,)``
    characters: Characters | None  #: what an id stands for; ``None``: it is a byte
    size: int  #: number of ids that there are


def read_text(name: str) -> Corpus:
    """Return the ids of a text.

    Args:
        name: "library" (on board, characters), "shakespeare" (a download, characters)
            or "enwik8" (a download, bytes).
    """
    require.choice(TEXTS, name=name)
    if name == "enwik8":
        parts = (enwik8(split) for split in ("train", "validation"))
        ids = [torch.frombuffer(bytearray(b), dtype=torch.uint8).short() for b in parts]
        return Corpus(*ids, None, 256)
    source = standard_library if name == "library" else tinyshakespeare
    texts = [source(split) for split in ("train", "validation")]
    characters = Characters(CHARACTERS if name == "library" else "".join(texts))
    ids = [torch.tensor(characters.encode(text)) for text in texts]
    return Corpus(*ids, characters, len(characters))


def train_text(
    model: nn.Module,
    ids: Int[Tensor, "n"],
    recipe: Recipe = TEXT_RECIPES["library"],
    seed: int = 0,
    on_step: Callable[[int], None] | None = None,
    **changes: Any,
) -> list[Record]:
    """Return the history of a model that learned to predict the next character.

    The rate rises for a tenth of the steps, and then falls.

    Args:
        changes: fields of the recipe that are to differ, such as ``steps``.
    """
    r = recipe._replace(**changes)
    optimizer = torch.optim.AdamW(
        model.parameters(), r.rate, betas=(0.9, 0.98), weight_decay=r.decay
    )
    schedule = OneCycleLR(optimizer, r.rate, total_steps=r.steps, pct_start=0.1)
    windows = random_windows(ids, r.model["max_len"], r.batch, r.steps, seed)
    return fit(
        model,
        next_token_loss,
        windows,
        optimizer,
        schedule=schedule,
        clip=1.0,
        on_step=on_step,
        precision=r.precision,
    )


def bits_per_character(
    model: nn.Module, ids: Int[Tensor, "n"], length: int, size: int = 64
) -> float:
    """Return the mean loss over a whole text, in bits per character.

    The text is cut into windows that lie end to end, so the first character of a window
    is predicted from nothing.

    Args:
        model: in evaluation mode, without gradients.
    """
    windows = all_windows(ids, length, size)
    nats = evaluate(model, next_token_loss, windows, weight=lambda b: b[1].numel())
    return nats / log(2)


def bits_by_position(
    model: nn.Module, ids: Int[Tensor, "n"], length: int, size: int = 64
) -> Float[Tensor, "t"]:
    """Return the mean loss at each position of a window, in bits.

    Position i has read ``i + 1`` characters. A shorter window at the end of the text is
    left out. Arguments are those of :func:`bits_per_character`: ``model``, ``ids``,
    ``length``, ``size``.

    Raises:
        ValueError: if the text, less its first character, is shorter than a window.
    """
    require.at_most(length=length, targets=len(ids) - 1)
    device = device_of(model)
    total, count = torch.zeros(length, dtype=torch.float64), 0
    with evaluating(model):
        for window, target in all_windows(ids, length, size):
            if window.shape[1] == length:
                logits = model(window.to(device)).transpose(1, 2).cpu()  # (b, v, t)
                nats = F.cross_entropy(logits, target, reduction="none")
                total += nats.sum(dim=0)
                count += len(window)
    return total / (count * log(2))


# ---- models of about as many parameters ----------------------------------------


TEXT_MODELS = ("attention", "average", "recurrent", "convolution")
WIDTHS = {"recurrent": 88, "convolution": 50}  # for as many parameters as the GPT has


def text_model(
    way: str, size: int, seed: int = 0, recipe: Recipe = TEXT_RECIPES["library"]
) -> nn.Module:
    """Return an untrained model of text.

    Args:
        way: "attention" (a GPT as the recipe has it), "average" (the same, with
            :class:`~annotated.recipes.text_models.PastAverage`), "recurrent" or
            "convolution" (as many parameters as the page's GPT, within 2 %).
    """
    require.choice(TEXT_MODELS, way=way)
    torch.manual_seed(seed)
    if way == "recurrent":
        return GRUText(size, WIDTHS[way])
    if way == "convolution":
        return ConvolutionText(size, WIDTHS[way])
    config, attention = GPTConfig(size, **recipe.model), None
    if way == "average":
        attention = partial(PastAverage, config.d_model, config.heads, causal=True)
    return GPT(config, attention)


def run_text_recipe(
    name: str, device: torch.device | str = "cpu", seed: int = 0, **changes: Any
) -> tuple[nn.Module, list[Record], float]:
    """Train the GPT of a recipe on its text: the one call that a GPU is asked for.

    Args:
        device: where to train; "shakespeare" and "enwik8" want a GPU.

    Returns:
        The model, its history, and its bits per character (enwik8: per byte) on the
        whole validation text.
    """
    require.choice(TEXT_RECIPES, name=name)
    recipe = TEXT_RECIPES[name]._replace(**changes)
    text = read_text(recipe.text)
    model = text_model("attention", text.size, seed, recipe).to(device)
    history = train_text(model, text.train, recipe, seed)
    length = recipe.model["max_len"]
    return model, history, bits_per_character(model, text.validation, length)


def seconds_by_length(
    way: str, lengths: Sequence[int], repeats: int = 3
) -> list[float]:
    """Return the CPU seconds of a forward and backward pass over one long window.

    Args:
        way: as for :func:`text_model`; "attention" gets positions enough.
        repeats: passes at each length; the fastest counts.
    """
    recipe = TEXT_RECIPES["library"]
    recipe = recipe._replace(model=recipe.model | {"max_len": max(lengths)})
    model, seconds = text_model(way, len(CHARACTERS), recipe=recipe), []
    for length in lengths:
        row = torch.randint(len(CHARACTERS), (1, length + 1))
        times = []
        for _ in range(repeats + 1):  # the first one warms up
            model.zero_grad()
            began = time.process_time()
            next_token_loss(model, (row[:, :-1], row[:, 1:])).backward()
            times.append(time.process_time() - began)
        seconds.append(min(times[1:]))
    return seconds
