"""Chapter 17: what a model learns under a pattern; three tasks, on the page and longer.

Copying from a distance, glyphs pixel by pixel, and a text. The models are small and the
sequences short, so a dense mask is faster than blocks; both give the same numbers.

Letters: b batch, t length, h heads, v vocabulary (``book/notation.md``).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import torch
from jaxtyping import Bool, Float, Int
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from torch import Tensor
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.checkpoints import Record
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.recipes.common import one_cycle
from annotated.recipes.text import TEXT_RECIPES, Corpus, bits_per_character, train_text
from annotated.sparse import (
    Pattern,
    dilated_pattern,
    fixed_patterns,
    global_pattern,
    local_pattern,
    strided_patterns,
)
from annotated.training import evaluating, fit

# ---- a model with one mask for each block ----------------------------------------


class MaskedSelfAttention(MultiHeadAttention):
    """Causal self-attention under a mask of its own (chapter 17).

    Args:
        visible: True = may attend, ``(1, 1, t, t)``, or one for each head.
    """

    def __init__(self, *sizes: Any, visible: Bool[Tensor, "1 _ t t"]):
        super().__init__(*sizes, causal=True)
        self.register_buffer("visible", visible, persistent=False)

    def attend(
        self,
        q: Float[Tensor, "b h t k"],
        k: Float[Tensor, "b h t k"],
        v: Float[Tensor, "b h t k"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return the output of ``q``, ``k`` and ``v``; ``mask`` hides more keys."""
        t = q.shape[2]
        own = self.visible[..., :t, :t]
        return super().attend(q, k, v, own if mask is None else own & mask)


def masks_of(layers: Sequence[Sequence[Pattern]], length: int) -> list[Tensor]:
    """Return a mask for each layer, ``(1, h, t, t)``."""
    return [torch.cat([p.mask(length) for p in heads], dim=1) for heads in layers]


def masked_gpt(
    masks: Sequence[Bool[Tensor, "1 _ t t"]], vocab_size: int, seed: int, **sizes: Any
) -> GPT:
    """Return an untrained GPT whose blocks have these masks.

    Args:
        sizes: fields of :class:`~annotated.gpt.GPTConfig`.
    """
    torch.manual_seed(seed)
    sizes |= {"layers": len(masks), "max_len": masks[0].shape[-1]}
    config, own = GPTConfig(vocab_size, **sizes), iter(masks)
    return GPT(
        config,
        lambda: MaskedSelfAttention(config.d_model, config.heads, visible=next(own)),
    )


def heard(model: GPT, seed: int = 0) -> Bool[Tensor, "t t"]:
    """Return whose output changes when the token at j becomes another one.

    It's measured, in double precision: ``heard[i, j]`` says whether the logits at i do.
    """
    t, v = model.config.max_len, model.config.vocab_size
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(v, (1, t), generator=generator)
    others = (tokens + torch.eye(t, dtype=torch.long)) % v  # one other token in each
    kind = model.embedding.weight.dtype
    with evaluating(model.double()):
        change = (model(others) - model(tokens)).abs().amax(dim=-1)  # (changed, t)
    model.to(kind)
    return change.T > 1e-13


# ---- copying from a distance -----------------------------------------------------

#: symbols, positions, stride and window of the patterns, sizes of the model
COPY = {"symbols": 16, "length": 48, "stride": 8, "batch": 32, "rate": 1e-2}
COPY_SIZES = {"d_model": 32, "heads": 2, "d_ff": 64}
COPY_STEPS = {1: 100, 2: 300}  #: of the optimiser, by the number of layers
DISTANCES = (5, 12, 16, 21)  #: how far back the symbol stands


@cache
def copy_patterns() -> dict[str, list[tuple[Pattern, Pattern]]]:
    """Return the patterns of two heads; where there are two rows, layers alternate."""
    stride = COPY["stride"]
    near, every = strided_patterns(stride)
    gaps = dilated_pattern(stride, stride // 2)
    first = near | global_pattern([0])
    return {
        "window": [(near, near)],
        "window and first": [(first, first)],
        "dilated": [(gaps, gaps)],
        "strided, by layer": [(near, near), (every, every)],
        "strided, by head": [(near, every)],
        "strided, union": [(near | every, near | every)],
        "fixed, by head": [fixed_patterns(stride)],
    }


def copy_masks(name: str, layers: int) -> list[Bool[Tensor, "1 h t t"]]:
    """Return the masks of so many ``layers`` for the pattern of this ``name``."""
    require.choice(copy_patterns(), name=name)
    rows = copy_patterns()[name]
    chosen = [rows[layer % len(rows)] for layer in range(layers)]
    return masks_of(chosen, COPY["length"])


def copy_batches(
    distance: int, steps: int, seed: int
) -> Iterator[tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]]:
    """Draw random symbols; the target is the symbol ``distance`` positions back.

    The first positions have no such symbol: their target is −100, which the loss skips.
    """
    generator, size = torch.Generator().manual_seed(seed), (COPY["batch"],)
    for _ in range(steps):
        tokens = torch.randint(
            COPY["symbols"], (*size, COPY["length"]), generator=generator
        )
        targets = torch.full_like(tokens, -100)
        targets[:, distance:] = tokens[:, :-distance]
        yield tokens, targets


def train_copy(
    masks: Sequence[Bool[Tensor, "1 h t t"]],
    distance: int,
    steps: int | None = None,
    seed: int = 0,
) -> tuple[GPT, list[Record]]:
    """Train a small GPT under these ``masks`` to copy from a ``distance``.

    Args:
        steps: of the optimiser; as ``COPY_STEPS`` has it if not given.
    """
    model = masked_gpt(masks, COPY["symbols"], seed, **COPY_SIZES)
    steps = COPY_STEPS[len(masks)] if steps is None else steps
    optimizer, schedule = one_cycle(model, COPY["rate"], steps)
    batches = copy_batches(distance, steps, seed)
    history = fit(
        model, next_token_loss, batches, optimizer, schedule=schedule, clip=1.0
    )
    return model, history


def copied(model: GPT, distance: int) -> float:
    """Return the share of symbols that a model copies right, of new sequences."""
    tokens, targets = next(copy_batches(distance, 1, seed=10_000))
    with evaluating(model):
        right = model(tokens).argmax(dim=-1) == targets
    return right[:, distance:].double().mean().item()


def reachable(reached: Bool[Tensor, "t t"], distance: int) -> float:
    """Return the share of positions that have heard from ``distance`` back.

    ``reached`` is as :func:`~annotated.sparse.reach` gives it for one layer.
    """
    return reached.diagonal(-distance).double().mean().item()


# ---- glyphs, pixel by pixel ------------------------------------------------------

SIDE = 16  #: pixels of a glyph, in each direction
FAMILIES = ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif")
SLANTED = {"DejaVuSerif": "Italic"}  # the others say "Oblique"
CHARACTERS_DRAWN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
HELD_OUT = "BGRSWadhkty259"  #: characters that models don't learn from


class Glyphs(NamedTuple):
    """Images of characters, ``SIDE`` pixels wide and high, and which they are."""

    train: Bool[Tensor, "n _ _"]  #: to learn from; True is black
    held_out: Bool[Tensor, "_ _ _"]  #: of ``HELD_OUT``
    names: tuple[list[str], list[str]]  #: characters of both


def glyph(character: str, font: Path, size: int = 14) -> Bool[Tensor, "_ _"]:
    """Return the pixels of a ``character``: True where most of a pixel is covered."""
    path = TextPath((0, 0), character, size=size, prop=FontProperties(fname=font))
    left, right = path.vertices[:, 0].min(), path.vertices[:, 0].max()
    fine = 3  # points in each direction of a pixel
    steps = (torch.arange(SIDE * fine) + 0.5) / fine
    x = steps + (left + right - SIDE) / 2  # in the middle
    y = SIDE - 4 - steps  # letters stand on the twelfth row
    points = torch.cartesian_prod(y, x).flip(1).numpy()
    turns = torch.zeros(len(points))  # of the outlines around a point; holes turn back
    for outline in path.to_polygons(closed_only=True):
        ahead, back = outline[:-1].T, outline[1:].T
        turn = (ahead[0] * back[1] - back[0] * ahead[1]).sum()
        inside = Outline(outline).contains_points(points)
        turns += torch.from_numpy(inside) * (1.0 if turn > 0 else -1.0)
    covered = (turns != 0).double().unflatten(0, (SIDE, fine, SIDE, fine))
    return covered.mean(dim=(1, 3)) > 0.45


@cache
def glyphs() -> Glyphs:
    """Return letters and digits in twelve fonts that come with matplotlib.

    An image that more than one character has, such as the large and small o of some
    fonts, is there once; none of those held out is among the others.
    """
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    files = []
    for family in FAMILIES:
        slanted = SLANTED.get(family, "Oblique")
        for style in ("", "-Bold", f"-{slanted}", f"-Bold{slanted}"):
            files.append(folder / f"{family}{style}.ttf")
    seen, parts = set(), ([], [])
    for held in (False, True):
        for character in CHARACTERS_DRAWN:
            if (character in HELD_OUT) != held:
                continue
            for file in files:
                image = glyph(character, file)
                key = image.numpy().tobytes()
                if key not in seen:
                    seen.add(key)
                    parts[held].append((character, image))
    images = [torch.stack([image for _, image in part]) for part in parts]
    return Glyphs(*images, tuple([c for c, _ in part] for part in parts))


#: window of a row's head, sizes of the model and of its training
IMAGES = {"window": 8, "batch": 8, "steps": 200, "rate": 1e-2}
IMAGE_SIZES = {"d_model": 32, "heads": 2, "d_ff": 64}


def column_pattern(width: int) -> Pattern:
    """Return the pixels above the next one: ``{j : (i + 1 − j) mod width = 0}``, and i.

    A model that has read pixel i predicts i + 1, and it's the column of that pixel
    that may tell something. The ``width`` is that of the image, or a wrong one.
    """
    require.count(width=width)
    above = Pattern(0, rule=lambda i, j: (i + 1 - j) % width == 0)
    return above | local_pattern(1)


@cache
def image_patterns() -> dict[str, tuple[Pattern, Pattern]]:
    """Return the patterns of two heads, the same in both layers."""
    row, column, everything = (
        local_pattern(IMAGES["window"]),
        column_pattern(SIDE),
        Pattern(0),
    )
    return {
        "everything": (everything, everything),
        "row": (row, row),
        "column": (column, column),
        "row and column": (row, column),
        "column of the pixel read": (row, strided_patterns(SIDE)[1]),
    }


def stride_patterns(width: int) -> tuple[Pattern, Pattern]:
    """Return a row's head, and that of a column in an image of this ``width``."""
    return local_pattern(IMAGES["window"]), column_pattern(width)


def train_image(
    heads: Sequence[Pattern], steps: int = IMAGES["steps"], seed: int = 0
) -> tuple[GPT, list[Record]]:
    """Train a GPT of two layers to predict glyphs pixel by pixel.

    Args:
        heads: a pattern for each head, the same in both layers.
    """
    pixels = glyphs().train.flatten(1).long()
    masks = masks_of([heads, heads], pixels.shape[1] - 1)
    model = masked_gpt(masks, 2, seed, **IMAGE_SIZES)
    generator = torch.Generator().manual_seed(seed)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(steps):
            size = (IMAGES["batch"],)
            drawn = pixels[torch.randint(len(pixels), size, generator=generator)]
            yield drawn[:, :-1], drawn[:, 1:]

    optimizer, schedule = one_cycle(model, IMAGES["rate"], steps)
    history = fit(
        model, next_token_loss, batches(), optimizer, schedule=schedule, clip=1.0
    )
    return model, history


def bits_per_pixel(model: GPT, images: Bool[Tensor, "n _ _"]) -> float:
    """Return a ``model``'s mean loss over ``images``, in bits; the first is given."""
    pixels, nats = images.flatten(1).long(), 0.0
    with evaluating(model):
        for part in pixels.split(32):
            logits = model(part[:, :-1]).flatten(0, 1)
            targets = part[:, 1:].flatten()
            nats += F.cross_entropy(logits, targets, reduction="sum").item()
    return nats / log(2) / pixels[:, 1:].numel()


# ---- text under a grid of patterns -----------------------------------------------

GRID = {"windows": (2, 4, 8, 16, 32), "strides": (None, 4, 8, 16), "steps": 1500}
GRID_VALIDATION = 16_385  #: characters of the held-out text that are predicted, and one


def grid_pattern(window: int, stride: int | None, first: bool) -> Pattern:
    """Return the union of a window, a stride, and the first position.

    Args:
        stride: all keys at multiples of it away are seen; None for none of them.
        first: whether all see the first position.
    """
    pattern = local_pattern(window)
    if stride is not None:
        pattern |= strided_patterns(stride)[1]
    return pattern | global_pattern([0]) if first else pattern


def train_grid(
    pattern: Pattern, text: Corpus, seed: int = 0, steps: int = GRID["steps"]
) -> float:
    """Return the bits per held-out character of chapter 11's GPT under a pattern.

    Args:
        text: "library", as :func:`~annotated.recipes.text.read_text` gives it.
    """
    recipe = TEXT_RECIPES["library"]
    length = recipe.model["max_len"]
    masks = [pattern.mask(length)] * recipe.model["layers"]
    model = masked_gpt(masks, text.size, seed, **recipe.model)
    train_text(model, text.train, recipe, seed, steps=steps)
    return bits_per_character(model, text.validation[:GRID_VALIDATION], length)
