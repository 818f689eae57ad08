"""Chapter 12 on a GPU: a model of bytes with a memory, and the plain one beside it.

Width, depth, batches and steps are those of chapter 11's recipe "enwik8". Both models
read the same segments in the same order.
"""

from itertools import chain, count, islice
from math import log

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from annotated import require
from annotated.checkpoints import Record
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.recipes.text import TEXT_RECIPES, Recipe, read_text
from annotated.segments import SegmentLoss, segments
from annotated.training import evaluate, fit
from annotated.transformer_xl import TransformerXL, TransformerXLConfig

ENWIK8_MODELS = ("vanilla", "Transformer-XL")


def enwik8_model(kind: str, recipe: Recipe = TEXT_RECIPES["enwik8"]) -> nn.Module:
    """Return an untrained model of bytes; its memory is as long as a segment.

    Args:
        kind: one of ``ENWIK8_MODELS``. The plain model's feed-forward networks are
            wider, by what the maps of positions take in the other.
        recipe: whose widths, depth and length it has.
    """
    require.choice(ENWIK8_MODELS, kind=kind)
    widths = dict(recipe.model)
    length = widths.pop("max_len")
    if kind == "vanilla":
        widths["d_ff"] += widths["d_model"] // 2
        return GPT(GPTConfig(256, **widths, max_len=length))
    return TransformerXL(TransformerXLConfig(256, **widths, norm="pre", mem_len=length))


def train_on_enwik8(
    kind: str, device: torch.device | str = "cuda", seed: int = 0, **changes
) -> tuple[nn.Module, list[Record], float]:
    """Train a model on enwik8, 90 million bytes of Wikipedia (a download).

    Args:
        changes: fields of the recipe that are to differ, such as ``steps``.

    Returns:
        The model, its history, and its bits per byte on the validation text.
    """
    r = TEXT_RECIPES["enwik8"]._replace(**changes)
    torch.manual_seed(seed)
    model = enwik8_model(kind, r).to(device)
    loss = SegmentLoss if kind == "Transformer-XL" else lambda: next_token_loss
    optimizer = torch.optim.AdamW(
        model.parameters(), r.rate, betas=(0.9, 0.98), weight_decay=r.decay
    )
    schedule = OneCycleLR(optimizer, r.rate, total_steps=r.steps, pct_start=0.1)
    text, sizes = read_text("enwik8"), (r.batch, r.model["max_len"])
    # round after round; once in each, a row begins with the memory of its own end
    rounds = (segments(text.train.long(), *sizes) for _ in count())
    batches = islice(chain.from_iterable(rounds), r.steps)
    history = fit(
        model,
        loss(),
        batches,
        optimizer,
        schedule=schedule,
        clip=1.0,
        precision=r.precision,
    )
    held_out = segments(text.validation.long(), *sizes)
    nats = evaluate(model, loss(), held_out, weight=lambda b: b[1].numel())
    return model, history, nats / log(2)
