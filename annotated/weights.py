"""Weights: official GPT-2, BERT, ALBERT and Llama in the blocks of this book.

Each loader takes a state dict with the names of Hugging Face's ``transformers``, and a
config of ours, and gives our model. Names that are missing, not expected or of another
shape are errors: nothing is loaded in part.
"""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from annotated import require
from annotated.bert import Bert, BertConfig
from annotated.gpt import GPT, GPTConfig

StateDict = Mapping[str, Tensor]


class _Entry(NamedTuple):
    """One official tensor: our parameters, one after another along the first axis."""

    ours: tuple[str, ...]  # all of one shape
    transposed: bool = False


def load_gpt2(state: StateDict, config: GPTConfig) -> GPT:
    """Return a GPT-2 with official weights (Radford et al., 2019).

    GPT-2 is ``GPTConfig(50257, d_model=768, heads=12, layers=12, d_ff=3072,
    max_len=1024, activation="gelu_tanh")``. Its matrices are stored transposed: the
    official code multiplies ``x @ W``, and has query, key and value map in one.

    Args:
        state: of ``GPT2LMHeadModel`` or ``GPT2Model``.
        config: of the model that is wanted.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: if ``config`` is not a GPT-2's, or a name or shape does not fit.
    """
    _require(config, activation="gelu_tanh", norm_kind="layer", positions="learned")
    _require(config, bias=True, tied=True, kv_heads=None)
    state = {name.removeprefix("transformer."): x for name, x in state.items()}
    masks = ".attn.bias", ".attn.masked_bias"  # no weights, but older files hold them
    state = {name: x for name, x in state.items() if not name.endswith(masks)}
    _drop_copy(state, "lm_head.weight", "wte.weight")
    entries = {
        "wte.weight": _Entry(("embedding.weight",)),
        "wpe.weight": _Entry(("positions.table",)),
        **_pairs("ln_f", "blocks.norm"),
    }
    for i in range(config.layers):
        theirs, ours = f"h.{i}.", f"blocks.layers.{i}."
        maps = [f"{ours}attention.{name}_map" for name in ("query", "key", "value")]
        entries |= {
            **_pairs(f"{theirs}ln_1", f"{ours}residuals.0.norm"),
            **_pairs(f"{theirs}attn.c_attn", *maps, transposed=True),
            **_pairs(
                f"{theirs}attn.c_proj", f"{ours}attention.output_map", transposed=True
            ),
            **_pairs(f"{theirs}ln_2", f"{ours}residuals.1.norm"),
            **_pairs(f"{theirs}mlp.c_fc", f"{ours}feed_forward.inner", transposed=True),
            **_pairs(
                f"{theirs}mlp.c_proj", f"{ours}feed_forward.outer", transposed=True
            ),
        }
    return _fill(GPT(config), state, entries)


def load_bert(state: StateDict, config: BertConfig) -> Bert:
    """Return a BERT with official weights (Devlin et al., 2019).

    Args:
        state: of ``BertForPreTraining``; the names of 2018, ``gamma`` and ``beta``, are
            read too.
        config: of the model that is wanted; by default the base model's.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: if ``config`` is not a BERT's, or a name or shape does not fit.
    """
    _require(config, activation="gelu", norm_kind="layer", bias=True)
    renamed = {
        "LayerNorm.gamma": "LayerNorm.weight",
        "LayerNorm.beta": "LayerNorm.bias",
    }
    for old, new in renamed.items():
        state = {name.replace(old, new): x for name, x in state.items()}
    state = {n: x for n, x in state.items() if not n.endswith(".position_ids")}
    head = "cls.predictions."
    table = "bert.embeddings.word_embeddings.weight"
    _drop_copy(state, f"{head}decoder.weight", table)
    _drop_copy(state, f"{head}decoder.bias", f"{head}bias")
    entries = {
        table: _Entry(("embedding.weight",)),
        "bert.embeddings.position_embeddings.weight": _Entry(("positions.table",)),
        "bert.embeddings.token_type_embeddings.weight": _Entry(("segments.weight",)),
        **_pairs("bert.embeddings.LayerNorm", "norm"),
        **_pairs("bert.pooler.dense", "pooler"),
        f"{head}bias": _Entry(("output.bias",)),
        **_pairs(f"{head}transform.dense", "transform"),
        **_pairs(f"{head}transform.LayerNorm", "transform_norm"),
        **_pairs("cls.seq_relationship", "follows"),
    }
    for i in range(config.layers):
        theirs, ours = f"bert.encoder.layer.{i}.", f"encoder.layers.{i}."
        for name in ("query", "key", "value"):
            entries |= _pairs(
                f"{theirs}attention.self.{name}", f"{ours}attention.{name}_map"
            )
        entries |= {
            **_pairs(f"{theirs}attention.output.dense", f"{ours}attention.output_map"),
            **_pairs(f"{theirs}attention.output.LayerNorm", f"{ours}residuals.0.norm"),
            **_pairs(f"{theirs}intermediate.dense", f"{ours}feed_forward.inner"),
            **_pairs(f"{theirs}output.dense", f"{ours}feed_forward.outer"),
            **_pairs(f"{theirs}output.LayerNorm", f"{ours}residuals.1.norm"),
        }
    return _fill(Bert(config), state, entries)


def load_albert(state: StateDict, config: BertConfig) -> Bert:
    """Return an ALBERT with official weights (Lan et al., 2020).

    Its one layer does the work of all, and its embeddings are narrower than the
    stream: ``config`` has ``shared=True`` and an ``embedding_width``. They are added
    and normalised while narrow, so the map that widens them can't be multiplied into
    the table. ALBERT orders two sentences where BERT asks whether the second follows:
    number 1 of :meth:`annotated.bert.Bert.guess_next` then says that they are swapped.

    Args:
        state: of ``AlbertForPreTraining`` or ``AlbertForMaskedLM``.
        config: of the model that is wanted; ``activation="gelu_tanh"`` is what the
            files of the paper's models call "gelu_new".

    Returns:
        The model, in evaluation mode. Where the state has no pooler or no head that
        orders sentences, the model has no ``pooler`` or no ``follows``.

    Raises:
        ValueError: if ``config`` is not an ALBERT's, or a name or shape does not fit.
    """
    require.choice(("gelu", "gelu_tanh"), **{"config.activation": config.activation})
    _require(config, norm_kind="layer", bias=True, shared=True)
    require.that(
        config.embedding_width is not None,
        "config.embedding_width must be an integer ≥ 1, got None",
    )
    state = {n: x for n, x in state.items() if not n.endswith(".position_ids")}
    table = "albert.embeddings.word_embeddings.weight"
    _drop_copy(state, "predictions.decoder.weight", table)
    _drop_copy(state, "predictions.decoder.bias", "predictions.bias")
    theirs = "albert.encoder.albert_layer_groups.0.albert_layers.0."
    ours = "encoder.layers.0."
    entries = {
        table: _Entry(("embedding.weight",)),
        "albert.embeddings.position_embeddings.weight": _Entry(("positions.table",)),
        "albert.embeddings.token_type_embeddings.weight": _Entry(("segments.weight",)),
        **_pairs("albert.embeddings.LayerNorm", "norm"),
        **_pairs("albert.encoder.embedding_hidden_mapping_in", "widen"),
        **_pairs(f"{theirs}attention.query", f"{ours}attention.query_map"),
        **_pairs(f"{theirs}attention.key", f"{ours}attention.key_map"),
        **_pairs(f"{theirs}attention.value", f"{ours}attention.value_map"),
        **_pairs(f"{theirs}attention.dense", f"{ours}attention.output_map"),
        **_pairs(f"{theirs}attention.LayerNorm", f"{ours}residuals.0.norm"),
        **_pairs(f"{theirs}ffn", f"{ours}feed_forward.inner"),
        **_pairs(f"{theirs}ffn_output", f"{ours}feed_forward.outer"),
        **_pairs(f"{theirs}full_layer_layer_norm", f"{ours}residuals.1.norm"),
        "predictions.bias": _Entry(("output.bias",)),
        **_pairs("predictions.dense", "transform"),
        **_pairs("predictions.LayerNorm", "transform_norm"),
    }
    model = Bert(config)
    heads = {"albert.pooler": "pooler", "sop_classifier.classifier": "follows"}
    for head, name in heads.items():
        if f"{head}.weight" in state:
            entries |= _pairs(head, name)
        else:
            delattr(model, name)
    return _fill(model, state, entries)


def load_llama(state: StateDict, config: GPTConfig) -> GPT:
    """Return a model of Llama's kind with official weights (Touvron et al., 2023).

    Llama 2 of 7B is ``GPTConfig(32000, d_model=4096, heads=32, layers=32, d_ff=11008,
    max_len=4096, activation="swiglu", norm_kind="rms", bias=False, positions="rotary",
    tied=False)``; later ones have ``kv_heads`` and another ``rotary_base`` and
    ``norm_epsilon``. Angles that are stretched (``rope_scaling``) are not among them.

    Args:
        state: of ``LlamaForCausalLM``.
        config: of the model that is wanted.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: if ``config`` is not a Llama's, or a name or shape does not fit.
    """
    _require(config, activation="swiglu", norm_kind="rms", positions="rotary")
    _require(config, bias=False)
    state = {n: x for n, x in state.items() if not n.endswith(".inv_freq")}
    entries = {
        "model.embed_tokens.weight": _Entry(("embedding.weight",)),
        "model.norm.weight": _Entry(("blocks.norm.weight",)),
    }
    if config.tied:
        _drop_copy(state, "lm_head.weight", "model.embed_tokens.weight")
    else:
        entries["lm_head.weight"] = _Entry(("output.weight",))
    names = {
        "input_layernorm": "residuals.0.norm",
        "self_attn.q_proj": "attention.query_map",
        "self_attn.k_proj": "attention.key_map",
        "self_attn.v_proj": "attention.value_map",
        "self_attn.o_proj": "attention.output_map",
        "post_attention_layernorm": "residuals.1.norm",
        "mlp.gate_proj": "feed_forward.gate",
        "mlp.up_proj": "feed_forward.inner",
        "mlp.down_proj": "feed_forward.outer",
    }
    for i in range(config.layers):
        for theirs, ours in names.items():
            ours = f"blocks.layers.{i}.{ours}.weight"
            entries[f"model.layers.{i}.{theirs}.weight"] = _Entry((ours,))
    model = _fill(GPT(config), state, entries)
    with torch.no_grad():
        for layer in model.blocks.layers:
            for one in (layer.attention.query_map, layer.attention.key_map):
                one.weight.copy_(_in_pairs(one.weight, config.d_model // config.heads))
    return model


_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a file in the format *safetensors*, by their names.

    The file at ``path`` begins with a number of eight bytes, the length of what comes
    next: a header in JSON, which says the dtype, the shape (any shape) and the place of
    each tensor. The numbers follow. A pickle can run code when it is opened; this
    can't.

    Raises:
        OSError: if the file can't be read.
        ValueError: if it is damaged, or no such file.
    """
    content = Path(path).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    try:
        header: dict[str, Any] = json.loads(content[8:start])
        header.pop("__metadata__", None)
        numbers = memoryview(content)[start:]
        return {name: _tensor(numbers, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is no file of safetensors, or damaged: {error!r}"
        raise ValueError(message) from error


def _tensor(numbers: memoryview, entry: dict[str, Any]) -> Tensor:
    begin, end = entry["data_offsets"]
    dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
    require.count(0, begin=begin, **{f"shape[{i}]": n for i, n in enumerate(shape)})
    require.that(end <= len(numbers), f"it has {len(numbers)} bytes, not {end}")
    require.that(
        end - begin == prod(shape) * dtype.itemsize,
        f"{end - begin} bytes can't be {shape} of {entry['dtype']}",
    )
    if begin == end:  # which torch.frombuffer refuses
        return torch.empty(shape, dtype=dtype)
    # copied, for a place in the file need not suit the dtype
    return torch.frombuffer(bytearray(numbers[begin:end]), dtype=dtype).reshape(shape)


def _in_pairs(weight: Tensor, width: int) -> Tensor:
    """Reorder the rows of each head so that what turns together stands together.

    The official code turns dimension i of a head with dimension i + k/2, ours 2i with
    2i + 1, as the paper has it. Scores are sums over dimensions, so their order in
    queries and keys is free, as long as it is the same in both.
    """
    heads = weight.unflatten(0, (-1, 2, width // 2))  # (h, 2, k/2, d)
    return heads.transpose(1, 2).flatten(0, 2)


def _pairs(theirs: str, *ours: str, transposed: bool = False) -> dict[str, _Entry]:
    """Return the entries of a map's or a norm's weight and bias."""
    return {
        f"{theirs}.weight": _Entry(
            tuple(f"{name}.weight" for name in ours), transposed
        ),
        f"{theirs}.bias": _Entry(tuple(f"{name}.bias" for name in ours)),
    }


def _fill(model: nn.Module, state: StateDict, entries: dict[str, _Entry]) -> nn.Module:
    """Give a model its weights, or say everything that does not fit."""
    parameters, faults = dict(model.named_parameters()), []
    for name, entry in entries.items():
        parts = [parameters.pop(ours) for ours in entry.ours]
        shape = (len(parts) * len(parts[0]), *parts[0].shape[1:])
        wanted = shape[::-1] if entry.transposed else shape
        if name not in state:
            faults.append(f"{name} is missing: {wanted} wanted")
        elif (got := tuple(state[name].shape)) != wanted:
            turned = ", which is transposed" if got == wanted[::-1] else ""
            faults.append(f"{name} must have the shape {wanted}, got {got}{turned}")
        elif not faults:
            weight = state[name].T if entry.transposed else state[name]
            for part, piece in zip(parts, weight.chunk(len(parts)), strict=True):
                part.data.copy_(piece)
    faults += [
        f"{name} is not expected: {tuple(state[name].shape)}"
        for name in state
        if name not in entries
    ]
    require.that(not faults, "state does not fit config:\n" + "\n".join(faults))
    require.that(not parameters, f"no weights for {sorted(parameters)}")
    return model.eval()


def _require(config: GPTConfig | BertConfig, **fields: object) -> None:
    for name, value in fields.items():
        require.choice([value], **{f"config.{name}": getattr(config, name)})


def _drop_copy(state: dict[str, Tensor], copy: str, original: str) -> None:
    """Drop what a file holds twice, and require that it is the same both times."""
    twin = state.pop(copy, None)
    if twin is not None and original in state:
        first = state[original]
        require.that(
            twin.shape == first.shape and torch.equal(twin, first),
            f"{copy}, {tuple(twin.shape)}, must be {original} once more, which is "
            f"{tuple(first.shape)}",
        )
