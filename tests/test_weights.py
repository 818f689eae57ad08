"""annotated/weights.py: official weights give official logits, or it says why not."""

import re
from functools import cache
from pathlib import Path

import numpy
import pytest
import torch
from torch import Tensor

from annotated.attention import record_attention
from annotated.bert import BertConfig
from annotated.decoding import KeyValueCache
from annotated.gpt import GPTConfig
from annotated.weights import load_albert, load_bert, load_gpt2, load_llama
from annotated.weights import read_safetensors as read
from tools.safetensors import file_of, safetensors

SIZES = {"d_model": 12, "heads": 3, "layers": 2, "d_ff": 20, "max_len": 16}
CONFIGS = {
    "gpt2": GPTConfig(23, **SIZES, activation="gelu_tanh"),
    "bert": BertConfig(23, **SIZES),
    "albert": BertConfig(
        23, **SIZES, embedding_width=6, shared=True, activation="gelu_tanh"
    ),
    "llama": GPTConfig(
        23,
        **SIZES | {"d_model": 24, "heads": 4},
        activation="swiglu",
        norm_kind="rms",
        norm_epsilon=1e-3,
        bias=False,
        positions="rotary",
        rotary_base=500.0,
        kv_heads=2,
        tied=False,
    ),
}
LOAD = {
    "gpt2": load_gpt2,
    "bert": load_bert,
    "albert": load_albert,
    "llama": load_llama,
}
KINDS = list(CONFIGS)


@cache
def reference() -> dict[str, Tensor]:
    file = numpy.load(Path(__file__).parent / "references" / "official.npz")
    return {name: torch.from_numpy(file[name]) for name in file.files}


def of(kind: str, what: str) -> dict[str, Tensor]:
    prefix = f"{kind}.{what}."
    return {
        name.removeprefix(prefix): x
        for name, x in reference().items()
        if name.startswith(prefix)
    }


def load(kind: str, state: dict[str, Tensor] | None = None):
    return LOAD[kind](of(kind, "state") if state is None else state, CONFIGS[kind])


def assert_near(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


# ---- the same numbers ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_logits_are_those_of_transformers_with_a_cache_too(kind):
    model, tokens = load(kind), of(kind, "given")["input_ids"]
    assert not model.training
    assert_near(model(tokens), reference()[f"{kind}.logits"])
    cache = KeyValueCache(model)
    parts = [cache.read(part) for part in tokens.split([4, 1, 4], dim=1)]
    assert_near(torch.cat(parts, dim=1), reference()[f"{kind}.logits"])


def test_berts_two_answers_are_those_of_transformers():
    model, given = load("bert"), of("bert", "given")
    assert not model.training
    states = model(given["input_ids"], given["token_type_ids"])
    assert_near(model.guess_tokens(states), reference()["bert.prediction_logits"])
    assert_near(model.guess_next(states), reference()["bert.seq_relationship_logits"])


def test_alberts_answers_and_attention_are_those_of_transformers():
    model, given = load("albert"), of("albert", "given")
    assert not model.training
    with record_attention(model) as maps:
        states = model(given["input_ids"], given["token_type_ids"])
    assert_near(model.guess_tokens(states), reference()["albert.prediction_logits"])
    assert_near(model.guess_next(states), reference()["albert.sop_logits"])
    (calls,) = maps.values()
    assert_near(torch.stack(calls), reference()["albert.attentions"])


# ---- other files of the same model ---------------------------------------------


def same(kind: str, state: dict[str, Tensor]) -> bool:
    ours = (load(kind, given).state_dict() for given in (None, state))
    pairs = zip(*(x.values() for x in ours), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def test_a_gpt2_without_its_head_and_with_masks():
    state = {
        name.removeprefix("transformer."): x
        for name, x in of("gpt2", "state").items()
        if name != "lm_head.weight"
    }
    state |= {"h.0.attn.bias": torch.ones(1, 1, 16, 16)}
    state |= {"h.1.attn.masked_bias": torch.tensor(-1e4)}
    assert same("gpt2", state)


def test_a_bert_with_the_names_of_2018():
    state = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): x
        for name, x in of("bert", "state").items()
        if "decoder" not in name
    }
    state["bert.embeddings.position_ids"] = torch.arange(16)[None]
    assert same("bert", state)


def test_an_albert_without_the_heads_that_guessing_tokens_does_not_need():
    state = {
        name: x
        for name, x in of("albert", "state").items()
        if not name.startswith(("albert.pooler", "sop_")) and "decoder" not in name
    }
    state["albert.embeddings.position_ids"] = torch.arange(16)[None]
    model, whole = load("albert", state), load("albert")
    tokens = of("albert", "given")["input_ids"]
    assert torch.equal(model(tokens), whole(tokens))
    names = {name for name, _ in whole.named_children()}
    assert names - {name for name, _ in model.named_children()} == {"pooler", "follows"}
    with pytest.raises(AttributeError, match="pooler"):
        model.pool(model(tokens))


def test_half_a_head_is_refused():
    state = of("albert", "state")
    del state["albert.pooler.weight"]
    assert "albert.pooler.bias is not expected: (12,)" in refused("albert", state)


def test_a_llama_whose_output_is_its_embedding():
    state = of("llama", "state")
    del state["lm_head.weight"]
    state["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(3)
    config = GPTConfig(**vars(CONFIGS["llama"]) | {"tied": True})
    model = load_llama(state, config)
    assert model.output.weight is model.embedding.weight
    assert torch.equal(model.output.weight, state["model.embed_tokens.weight"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_left_alone_and_copied(kind):
    state = of(kind, "state")
    before, names = [x.clone() for x in state.values()], list(state)
    model = load(kind, state)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert list(state) == names
    for x, copy in zip(state.values(), before, strict=True):
        assert torch.equal(x, copy)


SOME = {
    "gpt2": "transformer.h.1.mlp.c_fc.weight",
    "bert": "bert.encoder.layer.1.intermediate.dense.weight",
    "albert": "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight",
    "llama": "model.layers.1.mlp.up_proj.weight",
}
SHAPE = {"gpt2": (12, 20), "bert": (20, 12), "albert": (20, 12), "llama": (20, 24)}


def refused(kind: str, state: dict[str, Tensor], **changes) -> str:
    config = type(CONFIGS[kind])(**vars(CONFIGS[kind]) | changes)
    with pytest.raises(ValueError, match=r".") as caught:
        LOAD[kind](state, config)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_named_with_its_shape(kind):
    state, name, shape = of(kind, "state"), SOME[kind], SHAPE[kind]
    matrix = state.pop(name)
    missing = f"{name.removeprefix('transformer.')} is missing: {shape} wanted"
    assert missing in refused(kind, state)
    state[name] = torch.ones(5, 7)
    message = refused(kind, state)
    assert f"weight must have the shape {shape}, got (5, 7)" in message
    assert "transposed" not in message
    state[name] = matrix.T
    wanted = f"must have the shape {shape}, got {shape[::-1]}, which is transposed"
    assert wanted in refused(kind, state)
    state |= {name: matrix, "adapter.weight": torch.ones(2, 3)}
    assert "adapter.weight is not expected: (2, 3)" in refused(kind, state)


@pytest.mark.parametrize("kind", KINDS)
def test_all_faults_are_told_at_once(kind):
    state = of(kind, "state")
    del state[SOME[kind]]
    message = refused(kind, state, vocab_size=24)
    assert "is missing" in message and "got (23, " in message


# ALBERT's file says nothing of how often its layer is used
@pytest.mark.parametrize("kind", ["gpt2", "bert", "llama"])
def test_a_layer_too_few_is_not_overlooked(kind):
    assert "1." in refused(kind, of(kind, "state"), layers=1)
    assert "2." in refused(kind, of(kind, "state"), layers=3)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gpt2", "lm_head.weight"),
        ("bert", "cls.predictions.decoder.weight"),
        ("bert", "cls.predictions.decoder.bias"),
        ("albert", "predictions.decoder.weight"),
        ("albert", "predictions.decoder.bias"),
    ],
)
def test_a_copy_that_differs_from_the_embedding_is_refused(kind, name):
    state = of(kind, "state")
    state[name] = state[name] + 1.0
    assert re.match(f"{name}, .*, must be .* once more", refused(kind, state))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("gpt2", {"activation": "gelu"}, "config.activation must be one of 'gelu_ta"),
        ("gpt2", {"positions": "rotary"}, "config.positions must be one of 'learned'"),
        ("gpt2", {"tied": False}, "config.tied must be one of True, got False"),
        ("gpt2", {"kv_heads": 1}, "config.kv_heads must be one of None, got 1"),
        ("gpt2", {"bias": False}, "config.bias must be one of True, got False"),
        ("gpt2", {"norm_kind": "rms"}, "config.norm_kind must be one of 'layer'"),
        ("bert", {"activation": "relu"}, "config.activation must be one of 'gelu'"),
        ("bert", {"norm_kind": "rms"}, "config.norm_kind must be one of 'layer'"),
        ("albert", {"activation": "relu"}, "config.activation must be one of 'gelu', "),
        ("albert", {"norm_kind": "rms"}, "config.norm_kind must be one of 'layer'"),
        ("albert", {"shared": False}, "config.shared must be one of True, got False"),
        ("albert", {"embedding_width": None}, "config.embedding_width must be an int"),
        ("llama", {"activation": "gelu"}, "config.activation must be one of 'swiglu'"),
        ("llama", {"norm_kind": "layer"}, "config.norm_kind must be one of 'rms'"),
        ("llama", {"positions": "learned"}, "config.positions must be one of 'rotary'"),
        ("llama", {"bias": True}, "config.bias must be one of False, got True"),
    ],
)
def test_a_config_of_another_kind_of_model_is_refused(kind, changes, message):
    assert refused(kind, of(kind, "state"), **changes).startswith(message)


# ---- a file of safetensors --------------------------------------------------------


def test_a_file_gives_its_tensors_by_name(tmp_path):
    tensors = {
        "b": torch.tensor([[1.5, -2.0, 3.0]]),
        "a.weight": torch.tensor([7, -8]),
        "flag": torch.tensor([True]),
        "half": torch.tensor([[0.5], [2.0]], dtype=torch.float16),
        "one": torch.tensor(4.0, dtype=torch.float64),
        "none": torch.empty(0),
        "no rows": torch.empty(0, 3, dtype=torch.int8),
        "short": torch.tensor([-300], dtype=torch.int16),
        "byte": torch.tensor([-3, 4], dtype=torch.int8),
        "wide": torch.tensor([2**63], dtype=torch.uint64),
    }
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(tensors))
    found = read(path)
    assert list(found) == list(tensors)
    for name, x in tensors.items():
        assert found[name].dtype == x.dtype and torch.equal(found[name], x)
    found["b"].zero_()  # a tensor of its own
    assert torch.equal(read(str(path))["b"], tensors["b"])


GOOD = {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "JSONDecodeError"),
        (b"PK\x03\x04 a pickle in a zip, as PyTorch writes it", "Error"),
        (file_of(GOOD, bytes(8))[:20], "JSONDecodeError"),
        (file_of(GOOD, bytes(7)), "bytes, not"),
        (file_of([1], b""), "Error"),
        (file_of({"x": {"dtype": "F32"}}, b""), "data_offsets"),
        (file_of({"x": GOOD["x"] | {"dtype": "F99"}}, bytes(8)), "F99"),
        (file_of({"x": GOOD["x"] | {"shape": [3]}}, bytes(8)), r"8 bytes can't be"),
        (file_of({"x": GOOD["x"] | {"data_offsets": [0]}}, bytes(8)), "unpack"),
        (file_of({"x": GOOD["x"] | {"data_offsets": [-8, 0]}}, bytes(8)), "begin"),
        (file_of({"x": GOOD["x"] | {"shape": [-1, -2]}}, bytes(8)), r"shape\[0\]"),
    ],
)
def test_a_damaged_file_is_named(content, what, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    wanted = f"(?s)model.safetensors is no file of safetensors, or damaged: .*{what}"
    with pytest.raises(ValueError, match=wanted):
        read(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        read(tmp_path / "nothing.safetensors")
