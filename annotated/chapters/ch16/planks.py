"""Chapter 16: today's parts, each swapped alone into a small GPT-2.

All models have about as many parameters: what a part saves or costs, the feed-forward
networks get or give.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from annotated import require
from annotated.data.text import CHARACTERS, random_windows
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.positions import RotaryMultiHeadAttention
from annotated.recipes.text import Recipe
from annotated.variants import QueryKeyNormAttention, SlidingWindowAttention

#: GPT-2's parts at the size of a page
GPT2_PARTS = {
    "d_model": 64,
    "heads": 4,
    "layers": 4,
    "d_ff": 256,
    "max_len": 128,
    "activation": "gelu_tanh",
}
WINDOW = 32  #: keys that a query sees in a sliding window
KV_HEADS = 2  #: heads of keys and values where query heads share them


class Plank(NamedTuple):
    """A part that replaces one of GPT-2's."""

    changes: dict[str, Any] = {}  #: of the configuration
    attention: type | None = None  #: in place of multi-head attention
    options: dict[str, Any] = {}  #: of that attention


class Today(RotaryMultiHeadAttention, QueryKeyNormAttention):
    """Attention of chapter 16, with queries and keys normalised, then turned."""


class TodayNear(SlidingWindowAttention, Today):
    """Attention of chapter 16, normalised and turned, in a sliding window."""


PLANKS = {
    "GPT-2": Plank(),
    "RMSNorm": Plank({"norm_kind": "rms"}),
    "rotary": Plank({"positions": "rotary"}),
    "SwiGLU": Plank({"activation": "swiglu"}),
    "grouped": Plank({"kv_heads": KV_HEADS}),
    "QK-norm": Plank({}, QueryKeyNormAttention),
    "no biases": Plank({"bias": False}),
    "window": Plank({}, SlidingWindowAttention, {"window": WINDOW}),
}
ALL = {
    "norm_kind": "rms",
    "positions": "rotary",
    "activation": "swiglu",
    "kv_heads": KV_HEADS,
    "bias": False,
}
PLANKS |= {
    "all but the window": Plank(ALL, Today),
    "all": Plank(ALL, TodayNear, {"window": WINDOW}),
    # controls: a quarter more or less in the networks, at no other change
    "GPT-2, larger": Plank({"d_ff": 320}),
    "GPT-2, smaller": Plank({"d_ff": 192}),
}

PLANKS_RECIPE = Recipe("library", GPT2_PARTS, batch=12, steps=1000, rate=1e-2)


def plank_config(name: str, **changes: Any) -> GPTConfig:
    """Return the configuration of a model with one part replaced, at GPT-2's size.

    Args:
        changes: fields of :class:`~annotated.gpt.GPTConfig` that are to differ.
    """
    require.choice(PLANKS, name=name)
    fields = GPT2_PARTS | PLANKS[name].changes | changes
    config = GPTConfig(len(CHARACTERS), **fields)
    if "d_ff" in PLANKS[name].changes:
        return config
    target = _size("GPT-2", GPTConfig(len(CHARACTERS), **GPT2_PARTS | changes))
    one, two = (
        _size(name, GPTConfig(len(CHARACTERS), **fields | {"d_ff": i})) for i in (1, 2)
    )
    d_ff = 1 + round((target - one) / (two - one))
    return GPTConfig(len(CHARACTERS), **fields | {"d_ff": d_ff})


def plank_model(name: str, seed: int = 0, **changes: Any) -> GPT:
    """Return an untrained model with one part replaced."""
    torch.manual_seed(seed)
    return _made(name, plank_config(name, **changes))


def seconds_per_step(names: Sequence[str], repeats: int = 20) -> dict[str, list[float]]:
    """Return the CPU seconds of training steps, all models in turn.

    Args:
        repeats: steps of each model that are timed, after two that warm up.
    """
    length, ids = GPT2_PARTS["max_len"], torch.arange(4096) % len(CHARACTERS)
    models = {name: plank_model(name) for name in names}
    rules = {name: torch.optim.AdamW(m.parameters()) for name, m in models.items()}
    times: dict[str, list[float]] = {name: [] for name in names}
    for batch in random_windows(ids, length, 16, repeats + 2, 0):
        for name, model in models.items():
            began = time.process_time()
            next_token_loss(model, batch).backward()
            rules[name].step()
            rules[name].zero_grad()
            times[name].append(time.process_time() - began)
    return {name: one[2:] for name, one in times.items()}


def _made(name: str, config: GPTConfig) -> GPT:
    kind, options = PLANKS[name].attention, PLANKS[name].options
    if kind is None:
        return GPT(config)
    if issubclass(kind, RotaryMultiHeadAttention):
        options = options | {"base": config.rotary_base}
    sizes = config.d_model, config.heads, config.dropout, config.bias
    options = options | {"causal": True, "kv_heads": config.kv_heads}
    return GPT(config, partial(kind, *sizes, **options))


def _size(name: str, config: GPTConfig) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in _made(name, config).parameters())
