"""Chapter 16: a small GPT-2 that reads pieces of bytes, and streams by depth.

A tokenizer of fewer tokens is GPT-2's own: its first ranks. Losses of several
tokenizers are compared in bits per byte, for a token is as long as its tokenizer likes.
"""

from functools import partial
from math import log
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.data.byte_bpe import ByteTokenizer, gpt2_tokenizer
from annotated.data.datasets import REGISTRY, cache_folder, fetch
from annotated.data.text import all_windows, standard_library
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.gpt2 import SIZES, initialise
from annotated.recipes.text import Recipe
from annotated.training import evaluate
from annotated.transformer import Encoder, TransformerConfig
from annotated.weights import load_gpt2, read_safetensors

GPT2_RECIPE = Recipe(
    "library",
    {"d_model": 64, "heads": 4, "layers": 3, "d_ff": 256, "max_len": 64}
    | {"activation": "gelu_tanh"},
    batch=16,
    steps=1000,
    rate=1e-2,
)
VOCABULARY = 1024  #: tokens of the page's tokenizer
STD = 0.02 * 768**0.5  #: GPT-2's deviation times √d, so that it suits any width d


def short_tokenizer(size: int = VOCABULARY) -> ByteTokenizer:
    """Return the tokenizer of GPT-2's first ranks.

    Args:
        size: number of tokens, at least the 256 bytes.
    """
    ranks = gpt2_tokenizer().ranks
    require.count(256, len(ranks), size=size)
    return ByteTokenizer({token: r for token, r in ranks.items() if r < size})


class TokenText(NamedTuple):
    """A text in two parts, as ids, and the bytes of the second."""

    train: Int[Tensor, "n"]  #: ids to learn from
    validation: Int[Tensor, "m"]  #: ids to be measured by
    validation_bytes: int  #: how many bytes these stand for


def token_text(tokenizer: ByteTokenizer) -> TokenText:
    """Return the library's text as ids of a ``tokenizer``."""
    texts = [standard_library(split) for split in ("train", "validation")]
    ids = [torch.tensor(tokenizer.encode(text)) for text in texts]
    return TokenText(*ids, len(texts[1].encode()))


def small_gpt2(vocab_size: int, recipe: Recipe = GPT2_RECIPE, seed: int = 0) -> GPT:
    """Return an untrained GPT-2 of few parameters."""
    torch.manual_seed(seed)
    config = GPTConfig(vocab_size, **recipe.model)
    return initialise(GPT(config), STD / config.d_model**0.5)


def text_nats(model: nn.Module, ids: Int[Tensor, "n"], length: int) -> float:
    """Return the nats of a whole text but its first token, all windows together."""
    windows = all_windows(ids, length, 64)
    mean = evaluate(model, next_token_loss, windows, weight=lambda b: b[1].numel())
    return mean * (len(ids) - 1)


def bits_per_byte(model: nn.Module, text: TokenText, length: int) -> float:
    """Return the loss on the validation text, in bits for each of its bytes.

    Args:
        text: as :func:`token_text` gives it.
    """
    nats = text_nats(model, text.validation, length)
    return nats / log(2) / text.validation_bytes


@torch.no_grad()
def stream_by_depth(
    norm: str, layers: int, scaled: bool, d_model: int = 256, seed: int = 0
) -> Float[Tensor, "n"]:
    """Return the root mean square of the residual stream, before and after each block.

    Args:
        norm: order of norms, "pre" or "post".
        scaled: whether what writes to the stream is divided by ``√(2 · layers)``.
    """
    torch.manual_seed(seed)
    config = TransformerConfig(
        *(1, 1, d_model, 4, layers, 4 * d_model, 0.0, norm), activation="gelu_tanh"
    )
    blocks = Encoder(config, partial(MultiHeadAttention, d_model, 4, causal=True))
    std, found = STD / d_model**0.5, []
    for name, weight in blocks.named_parameters():
        if weight.dim() > 1:
            writes = name.endswith(("output_map.weight", "outer.weight"))
            smaller = (2 * layers) ** 0.5 if writes and scaled else 1.0
            nn.init.normal_(weight, std=std / smaller)
        elif name.endswith("_map.bias") or "feed_forward" in name:
            nn.init.zeros_(weight)
    x = 2**0.5 * std * torch.randn(1, 64, d_model)  # a token and its position
    found.append(x.square().mean().sqrt())
    for layer in blocks.layers:
        x = layer(x)
        found.append(x.square().mean().sqrt())
    return torch.stack(found)


def official_gpt2(download: bool = False) -> GPT | None:
    """Return the small GPT-2 with OpenAI's weights, or None where they aren't.

    Args:
        download: whether to fetch the file, 548 MB, if it isn't in the cache.

    Raises:
        DataError: if the file can't be downloaded.
        ValueError: if it is damaged.
    """
    (file,) = REGISTRY["gpt2"].files
    if not download and not (cache_folder() / "gpt2" / file.name).exists():
        return None
    (path,) = fetch("gpt2")
    return load_gpt2(read_safetensors(path), SIZES["small"])
