"""GPT-2: four sizes of the GPT, how their weights begin, and the official ones.

Radford et al. (2019). Letters: d model width, v vocabulary (``book/notation.md``).
"""

from dataclasses import replace

from torch import nn

from annotated import require
from annotated.gpt import GPT, GPTConfig
from annotated.transformer import ACTIVATIONS

_SMALL = GPTConfig(
    50_257,
    d_model=768,
    heads=12,
    layers=12,
    d_ff=3072,
    max_len=1024,
    activation="gelu_tanh",
)
#: Radford et al. (2019), table 2; the numbers of heads are those of the released files
SIZES = {
    "small": _SMALL,
    "medium": replace(_SMALL, d_model=1024, heads=16, layers=24, d_ff=4096),
    "large": replace(_SMALL, d_model=1280, heads=20, layers=36, d_ff=5120),
    "xl": replace(_SMALL, d_model=1600, heads=25, layers=48, d_ff=6400),
}


def require_gpt2(config: GPTConfig) -> None:
    """Require a config of GPT-2's architecture; sizes, dropout and activation are free.

    Args:
        config: with biases, layer norms, learned positions and a tied output, as many
            heads of keys as of queries, and feed-forward networks without gates.

    Raises:
        ValueError: if one of these is otherwise.
    """
    wanted = {
        "positions": ["learned"],
        "norm_kind": ["layer"],
        "bias": [True],
        "tied": [True],
        "kv_heads": [None, config.heads],
        "activation": [name for name in ACTIVATIONS if name != "swiglu"],
    }
    for name, options in wanted.items():
        require.choice(options, **{f"config.{name}": getattr(config, name)})


def count_parameters(config: GPTConfig) -> int:
    """Return the number of parameters of a GPT-2, by its formula.

    The output is the embedding once more, and counted once.

    Args:
        config: as for :func:`require_gpt2`.
    """
    require_gpt2(config)
    c = config
    attention = 4 * (c.d_model**2 + c.d_model)
    network = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model
    norm = 2 * c.d_model
    tables = (c.vocab_size + c.max_len) * c.d_model
    return tables + c.layers * (attention + network + 2 * norm) + norm


def initialise(model: GPT, std: float = 0.02, scaled: bool = True) -> GPT:
    """Draw the weights of a GPT nearly as GPT-2's were drawn, and return it.

    From OpenAI's code: matrices and the table of tokens are drawn from a normal
    distribution with deviation 0.02, biases are 0. From the paper (section 2.3), since
    the published code doesn't have it: the weights of residual layers are divided by
    the square root of their number, so that their sum is as large in a deep model as in
    a shallow one. We take these for the two matrices in each block that add to the
    residual stream, the last one of attention and of the feed-forward network. Also
    ours: the table of positions has the deviation of the others, 0.01 in OpenAI's code.

    Args:
        model: any GPT; its norms stay as they are.
        std: standard deviation of the numbers; 0.02 is meant for a width of 768.
        scaled: whether the matrices that add to the stream are divided by
            ``√(2 · layers)``.

    Returns:
        The same model.
    """
    require.positive(std=std)
    last_maps = {m for block in model.blocks.layers for m in _last_maps(block)}
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            smaller = (2 * model.config.layers) ** 0.5 if module in last_maps else 1.0
            nn.init.normal_(module.weight, std=std / (smaller if scaled else 1.0))
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)
    if model.positions is not None:
        nn.init.normal_(model.positions.table, std=std)
    return model


def _last_maps(block: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Return the maps whose outputs are added to the residual stream."""
    return block.attention.output_map, block.feed_forward.outer
