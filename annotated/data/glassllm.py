"""A trained model of today's kind: RMSNorm, rotary positions, SwiGLU, grouped queries.

It has 852,608 parameters and read books by Lewis Carroll. It comes with the package
(``annotated/vendor/glassllm``, with its own licence), and is loaded into the GPT of
this book by way of the names that Llama's files have. Its tokens are pieces of words,
by byte-pair encoding of letters.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from torch import Tensor

from annotated import require
from annotated.data.bpe import SPACE, Pair, apply_merges
from annotated.data.vendored import vendored_file
from annotated.gpt import GPT, GPTConfig
from annotated.weights import load_llama, read_safetensors

GLASSLLM = {
    "title": "The English model of glassllm",
    "version": "glassllm 0.1.0",
    "source": "https://github.com/Oseiasdfarias/glassllm",
    "licence": "MIT; © 2026 Oséias Dias de Farias",
}
#: the files that came with the package, and the sha256 of each
FILES = {
    "model.safetensors": (
        "8b25c557b1f18467336d94bd29e485eab271dd1080a193ac5a66fd4bfdbe2504"
    ),
    "tokenizer.json": (
        "4cf0830157c45cf7f8c70a8fdcb8378c33330b9ba0c9a312e772d7d6485ca4df"
    ),
}
CONFIG = GPTConfig(
    1024,
    d_model=128,
    heads=4,
    kv_heads=2,
    layers=4,
    d_ff=341,
    max_len=128,
    activation="swiglu",
    norm_kind="rms",
    norm_epsilon=1e-6,
    bias=False,
    positions="rotary",
)

SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")  #: ids 0 to 3; never in a text
UNKNOWN = "⁇"  #: what stands in a text for ``"<unk>"``
CHUNK = re.compile(rf"\n|{SPACE}*[^{SPACE}\n]+|{SPACE}+")

#: the names of this model's matrices in one block, and Llama's
NAMES = {
    "norm1.gamma": "input_layernorm",
    "attn.W_Q": "self_attn.q_proj",
    "attn.W_K": "self_attn.k_proj",
    "attn.W_V": "self_attn.v_proj",
    "attn.W_O": "self_attn.o_proj",
    "norm2.gamma": "post_attention_layernorm",
    "ffn.W1": "mlp.gate_proj",
    "ffn.W3": "mlp.up_proj",
    "ffn.W2": "mlp.down_proj",
}


# ---- the weights ---------------------------------------------------------------


def to_llama(state: Mapping[str, Tensor], config: GPTConfig) -> dict[str, Tensor]:
    """Return weights with the names and in the order that Llama's files have.

    Two things differ beside the names. glassllm multiplies ``x @ W``, so its matrices
    are transposed. And it turns dimensions 2i and 2i + 1 of a query together, as the
    paper of rotary positions has it, Llama's files i and i + k/2; so the rows of each
    head are put into another order. (:func:`~annotated.weights.load_llama` undoes
    that, for this book turns neighbours too.)

    Args:
        state: tensors of any shape, with glassllm's names.
        config: of the model, for its number of layers and the width of its heads.
    """
    renamed = {"E": "model.embed_tokens.weight", "norm_f.gamma": "model.norm.weight"}
    for i in range(config.layers):
        for theirs, official in NAMES.items():
            renamed[f"blocks.{i}.{theirs}"] = f"model.layers.{i}.{official}.weight"
    width = config.d_model // config.heads
    made = {}
    for name, weight in state.items():
        if ".W" in name:
            weight = weight.T
        if name.endswith((".W_Q", ".W_K")):
            weight = _in_halves(weight, width)
        made[renamed.get(name, name)] = weight
    return made


def _in_halves(weight: Tensor, width: int) -> Tensor:
    """Reorder the rows of each head: those of even number first, then the odd."""
    heads = weight.unflatten(0, (-1, width // 2, 2))  # (h, k/2, 2, d)
    return heads.transpose(1, 2).flatten(0, 2)


def glass_model() -> GPT:
    """Return the model that read Lewis Carroll, in evaluation mode.

    Raises:
        DataError: if the file that came with the package is damaged or missing.
    """
    state = read_safetensors(_file("model.safetensors"))
    return load_llama(to_llama(state, CONFIG), CONFIG)


# ---- the tokens ----------------------------------------------------------------


@cache
def merges() -> tuple[Pair, ...]:
    """Return the 932 pairs of pieces that are joined, in this order.

    Raises:
        DataError: if the file that came with the package is damaged or missing.
    """
    return tuple((first, second) for first, second in _tokenizer()["merges"])


@cache
def vocabulary() -> dict[str, int]:
    """Return the id of each token: special ones, letters, and pieces as they came.

    Raises:
        DataError: if the file that came with the package is damaged or missing.
    """
    joined = ("".join(pair) for pair in merges())
    tokens = [*SPECIALS, *_tokenizer()["alphabet"], *joined]
    return {token: i for i, token in enumerate(tokens)}


def encode(text: str) -> list[int]:
    """Return the ids of a ``text``; a letter that the model doesn't know is "<unk>".

    An accent becomes one with its letter (Unicode's NFC). A space is "▁", at the
    beginning of the word behind it; lines end for themselves.
    """
    marked = unicodedata.normalize("NFC", text).replace(" ", SPACE)
    ids, unknown = vocabulary(), SPECIALS.index("<unk>")
    chunks = CHUNK.findall(marked)
    pieces = {chunk: apply_merges(chunk, merges()) for chunk in dict.fromkeys(chunks)}
    return [ids.get(piece, unknown) for chunk in chunks for piece in pieces[chunk]]


def decode(ids: Iterable[int]) -> str:
    """Return the text that ``ids`` stand for, with "⁇" for what was unknown.

    They may be in a tensor, ``(t,)``.
    """
    ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    tokens = list(vocabulary())
    require.count(0, len(tokens) - 1, **{f"ids[{i}]": n for i, n in enumerate(ids)})
    texts = dict.fromkeys(SPECIALS, "") | {"<unk>": UNKNOWN}
    pieces = (texts.get(tokens[n], tokens[n]) for n in ids)
    return "".join(pieces).replace(SPACE, " ")


def _tokenizer() -> dict[str, list]:
    return json.loads(_file("tokenizer.json").read_text("utf-8"))


def _file(name: str) -> Path:
    return vendored_file(f"glassllm/{name}", FILES[name])
