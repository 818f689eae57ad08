"""annotated/trace.py: steps have the values, the lines and the shapes of the model."""

import linecache
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from annotated import trace as module
from annotated.attention import MultiHeadAttention, record_attention
from annotated.bert import Bert, BertConfig
from annotated.gpt import GPT, GPTConfig
from annotated.positions import rotary_embedding
from annotated.sparse import SparseSelfAttention, local_pattern
from annotated.trace import Step, trace
from annotated.transformer import FeedForward, Residual, Transformer, TransformerConfig

ROOT = Path(__file__).resolve().parents[1]
V = 11
TOKENS = torch.tensor([[3, 7, 1, 4, 9]])
SIZES = {"d_model": 24, "heads": 4, "layers": 2, "d_ff": 30}

GPTS = {
    "of today": {
        "positions": "rotary",
        "norm_kind": "rms",
        "activation": "swiglu",
        "kv_heads": 2,
        "bias": False,
    },
    "of 2019": {"activation": "gelu_tanh"},
    "untied": {"norm_kind": "rms", "activation": "relu", "kv_heads": 1, "tied": False},
    "turned": {"positions": "rotary", "activation": "gelu", "tied": False},
    "gated": {"activation": "swiglu", "kv_heads": 1},
}


def gpt(name: str = "of 2019", **changes) -> GPT:
    torch.manual_seed(0)
    options = {"dropout": 0.1, "max_len": 16} | SIZES | GPTS[name] | changes
    return GPT(GPTConfig(V, **options)).eval()


def transformer(norm: str = "post", tied: bool = False) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        TransformerConfig(V, V, **SIZES, norm=norm, tied=tied, max_len=16)
    ).eval()


PAIR = torch.tensor([[5, 2, 8, 0, 0, 0]]), TOKENS[:, :4]


def named(steps: list[Step], place: str) -> dict[str, Step]:
    """Return the steps of a place by what they give."""
    return {step.operation: step for step in steps if step.place == place}


def untraced(steps: list[Step], model: nn.Module, *inputs: torch.Tensor) -> list[str]:
    """Return the maps, norms, sublayers and residuals whose output no step has."""
    seen = []
    kinds = nn.Linear, nn.Embedding, nn.LayerNorm, nn.RMSNorm
    kinds += MultiHeadAttention, FeedForward, Residual
    hooks = [
        part.register_forward_hook(lambda part, _, output: seen.append((part, output)))
        for part in model.modules()
        if isinstance(part, kinds)
    ]
    with torch.no_grad():
        last = model(*inputs)
    for hook in hooks:
        hook.remove()
    values = [step.value for step in steps]
    assert torch.equal(values[-1], last)
    return [str(p) for p, output in seen if not any(map(output.equal, values))]


@pytest.mark.parametrize("name", GPTS)
def test_every_output_in_a_gpt_is_the_value_of_a_step(name):
    model = gpt(name)
    assert untraced(trace(model, TOKENS), model, TOKENS) == []


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tied", [True, False])
def test_every_output_in_a_transformer_is_the_value_of_a_step(norm, tied):
    model = transformer(norm, tied)
    steps = trace(model, *PAIR)
    assert untraced(steps, model, *PAIR) == []
    last = steps[-1].equation
    assert last == rf"Z = \hat{{X}} \, {'E' if tied else 'W_{z}'}^\top"


@pytest.mark.parametrize("name", ["of today", "of 2019"])
def test_weights_are_those_that_attention_records(name):
    model = gpt(name)
    steps = trace(model, TOKENS)
    with torch.no_grad(), record_attention(model) as maps:
        model(TOKENS)
    found = [step.value for step in steps if step.operation == "weights"]
    assert len(found) == len(maps) == 2
    for one, (recorded,) in zip(found, maps.values(), strict=True):
        torch.testing.assert_close(one, recorded)


def test_a_fused_kernel_is_unfolded_into_its_equation():
    model = gpt("of today")
    block = named(trace(model, TOKENS), "block 2, attention")
    kinds = "turned queries", "shared turned keys", "shared values"
    q, k, v = (block[kind].value for kind in kinds)
    assert torch.equal(block["scaled queries"].value, q * 6**-0.5)
    scores = q @ k.mT * 6**-0.5
    torch.testing.assert_close(block["scores"].value, scores)
    hidden = torch.ones(5, 5).triu(1).bool()
    visible = block["visible scores"].value
    assert torch.equal(visible == -torch.inf, hidden.expand_as(visible))
    torch.testing.assert_close(visible[:, :, ~hidden], scores[:, :, ~hidden])
    weights = block["weights"].value
    torch.testing.assert_close(weights, visible.softmax(-1))
    torch.testing.assert_close(block["weighted sum"].value, weights @ v)


def test_the_weighted_sum_is_the_kernels_own(monkeypatch):
    kernel = module.F.scaled_dot_product_attention
    model, found = gpt().double(), []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **kwargs or {})
            if function is kernel:
                found.append(result)
            return result

    with Watch():
        steps = trace(model, TOKENS)
    sums = [step.value for step in steps if step.operation == "weighted sum"]
    assert len(sums) == len(found) == 2
    assert all(map(torch.equal, sums, found))


def test_turned_queries_are_one_step_each():
    steps = trace(gpt("of today"), TOKENS)
    block = named(steps, "block 1, attention")
    for kind, letter in (("queries", "Q"), ("keys", "K")):
        turned = block[f"turned {kind}"]
        plain = block[kind].value.unflatten(-1, (-1, 6)).transpose(1, 2)
        torch.testing.assert_close(turned.value, rotary_embedding(plain))
        assert turned.equation == rf"{letter}_p \leftarrow R_p \, {letter}_p"
        assert turned.symbol == letter
        assert turned.source.text == turned.source.part
        assert "first * cosine - second * sine" in turned.source.text
    assert block["shared values"].equation == r"V^{(i)} = V^{(\lceil i / 2 \rceil)}"


def test_steps_of_a_small_gpt_are_these():
    attention = "norm|queries|keys|values|scaled queries|scores|visible scores|weights"
    attention = [*attention.split("|"), "weighted sum", "attention's output", "stream"]
    network = ["norm", "inner numbers", "activations", "network's output", "stream"]
    steps = trace(gpt(), TOKENS)
    first = ["token vectors", "vectors with positions"]
    operations = [*first, *2 * (attention + network), "norm", "logits"]
    assert [step.operation for step in steps] == operations
    parts = [
        f"block {i}, {part}" for i in (1, 2) for part in ("attention", "feed-forward")
    ]
    places = list(dict.fromkeys(step.place for step in steps))
    assert places == ["embedding", *parts, "output"]
    # block 1: 2 to 17; what a step reads comes before it
    assert [step.reads for step in steps[:18]] == [
        (), (0,), (1,), (2,), (2,), (2,), (3,), (6, 4), (7,), (8,), (9, 5), (10,),
        (1, 11), (12,), (13,), (14,), (15,), (12, 16),
    ]  # fmt: skip


def test_places_of_a_transformer_are_these():
    steps = trace(transformer("pre"), *PAIR)
    parts = {
        "encoder": ("attention", "feed-forward"),
        "decoder": ("attention", "cross-attention", "feed-forward"),
    }
    encoder, decoder = (
        [f"{side} layer {i}, {part}" for i in (1, 2) for part in parts[side]]
        for side in parts
    )
    places = ["source embedding", *encoder, "end of the encoder"]
    places += ["target embedding", *decoder, "output"]
    assert list(dict.fromkeys(step.place for step in steps)) == places
    crossed = named(steps, "decoder layer 2, cross-attention")
    assert crossed["keys"].equation == r"K = M \, W_{k}^\top + b_{k}"
    assert crossed["queries"].equation == r"Q = \hat{X} \, W_{q}^\top + b_{q}"
    assert crossed["stream"].equation == r"X \leftarrow X + Y"
    memory = named(steps, "end of the encoder")["norm"]
    assert steps[crossed["keys"].reads[0]] is memory
    assert crossed["weights"].value.shape == (1, 4, 4, 6)
    assert (crossed["visible scores"].value[..., 3:] == -torch.inf).all()
    source = named(steps, "source embedding")["scaled vectors"]
    assert source.equation == r"X \leftarrow \sqrt{d} \, X"


def test_a_mask_that_hides_nothing_is_no_step():
    steps = trace(transformer(), torch.tensor([[5, 2, 8]]), TOKENS)
    places = {step.place for step in steps if step.operation == "visible scores"}
    assert places == {"decoder layer 1, attention", "decoder layer 2, attention"}
    steps = trace(gpt(), TOKENS[:, :1])
    assert "visible scores" not in {step.operation for step in steps}


CALLS = {
    "token vectors": "embedding(",
    "vectors with positions": "x + _rows(self.table, x, start, positions)",
    "norm": "self.norm(",
    "queries": "self.query_map(query)",
    "keys": "self.key_map(key)",
    "values": "self.value_map(value)",
    "scaled queries": "query * scale",
    "scores": "(query * scale) @ key.transpose(-2, -1)",
    "visible scores": "scores.masked_fill(~mask, -torch.inf)",
    "weights": "scores.softmax(dim=-1)",
    "weighted sum": "F.dropout(weights, dropout) @ value",
    "attention's output": "self.output_map(heads.transpose(1, 2).flatten(2))",
    "inner numbers": "self.inner(x)",
    "gates": "self.gate(x)",
    "open gates": "self.activation(self.gate(x))",
    "gated numbers": "self.activation(self.gate(x)) * self.inner(x)",
    "activations": "self.activation(self.inner(x))",
    "network's output": "self.outer(self.dropout(inner))",
    "stream": "x + self.dropout(sublayer(",
    "logits": "self.output(",
}


@pytest.mark.parametrize("name", ["of today", "of 2019"])
def test_sources_are_lines_of_the_files_and_hold_the_calls(name):
    for step in trace(gpt(name), TOKENS):
        file, line, text, part = step.source
        lines = (ROOT / file).read_text("utf-8").splitlines()
        wanted = lines[line - 1 : line + text.count("\n")]
        assert [one.strip() for one in wanted] == [x.strip() for x in text.split("\n")]
        assert part in text and part == part.strip()
        if step.operation in CALLS:
            assert CALLS[step.operation] in part
            assert len(part) < 70 or step.operation == "stream"


def own_model(source: str, name: str) -> nn.Module:
    """Return a model whose code is in no file, as that of a notebook's cell is."""
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {"nn": nn, "torch": torch}
    exec(compile(source, name, "exec"), space)
    return space["Own"]()


def test_a_model_of_your_own_is_traced_too():
    model = own_model(
        "class Own(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.inside = nn.Embedding(11, 4)\n"
        "        self.mixed = nn.Linear(4, 4)\n"
        "    def forward(self, ids):\n"
        "        é = self.inside(ids); y = torch.cumsum(\n"
        "            é, dim=1,\n"
        "        )\n"
        "        return self.mixed(y)[:, -1]\n",
        "<cell 3>",
    )
    steps = trace(model, TOKENS)
    assert [step.place for step in steps] == ["inside", "Own", "mixed"]
    assert [step.operation for step in steps] == ["token vectors", "cumsum", "mixed"]
    assert steps[1].equation == r"Y = \text{cumsum}(X)"
    assert steps[2].equation == r"Y \leftarrow Y \, W_{}^\top + b_{}"
    assert steps[1].source == (
        "<cell 3>",
        7,
        "é = self.inside(ids); y = torch.cumsum(\n    é, dim=1,\n)",
        "torch.cumsum(\n    é, dim=1,\n)",
    )
    assert steps[0].source.part == "self.inside(ids)"
    assert torch.equal(steps[2].value[:, -1], model(TOKENS))


def test_scores_with_a_bias_stay_one_step():
    class Biased(MultiHeadAttention):
        def score_bias(self, q, k):
            return (q @ k.mT).tanh()

    model = gpt()
    model.blocks.layers[0].attention = Biased(24, 4, causal=True).eval()
    steps = trace(model, TOKENS)
    block = named(steps, "block 1, attention")
    assert "weights" not in block and block["tanh"].value.shape == (1, 4, 5, 5)
    fused = next(s for s in steps if s.operation == "attention")
    assert fused.value.shape == (1, 4, 5, 6)
    assert fused.equation == r"C = \mathrm{softmax}(Q K^\top / \sqrt{k} + B) \, V"
    torch.testing.assert_close(steps[-1].value, model(TOKENS).detach())


def test_gelu_is_that_of_the_model():
    for activation, part in (("gelu", r"\Phi(U)"), ("gelu_tanh", r"\tanh")):
        steps = trace(gpt(activation=activation), TOKENS)
        assert part in named(steps, "block 1, feed-forward")["activations"].equation


def test_shapes_are_those_of_the_values_read():
    steps = trace(gpt("of today"), TOKENS)
    assert steps[0].shapes == ((1, 5),)
    for step in steps[1:]:
        assert step.shapes == tuple(tuple(steps[i].value.shape) for i in step.reads)


def test_the_trace_of_a_batch_of_several():
    several = torch.cat([TOKENS, TOKENS.flip(1)])
    model = gpt("of today")
    one, two = trace(model, TOKENS), trace(model, several)
    assert [step[:5] for step in one] == [step[:5] for step in two]
    for first, both in zip(one, two, strict=True):
        torch.testing.assert_close(both.value[:1], first.value, atol=1e-5, rtol=1e-5)


def test_bert_is_traced_to_its_end():
    model = Bert(BertConfig(V, **SIZES, max_len=16)).eval()
    steps = trace(model, TOKENS)
    assert torch.equal(steps[-1].value, model(TOKENS).detach())
    assert [step.place for step in steps[:3]] == ["embedding", "segments", "Bert"]
    assert steps[2].equation == r"Y = \text{add}(X, X)"
    assert steps[-1].place == "encoder layer 2, feed-forward"


def test_the_model_stays_as_it_was():
    model = gpt("of today").train()
    model.blocks.layers[0].eval()
    modes = [part.training for part in model.modules()]
    state = {name: one.clone() for name, one in model.state_dict().items()}
    tokens = TOKENS.clone()
    steps = trace(model, tokens)
    assert torch.equal(steps[-1].value, model.eval()(TOKENS)), "without dropout"
    assert not any(step.value.requires_grad for step in steps)
    assert torch.equal(tokens, TOKENS)
    model.train()
    model.blocks.layers[0].eval()
    with pytest.raises(ValueError):
        trace(model, torch.tensor([[V]]))
    assert [part.training for part in model.modules()] == modes
    assert all(torch.equal(one, state[n]) for n, one in model.state_dict().items())
    assert not any(part._forward_hooks for part in model.modules())
    assert model(TOKENS).requires_grad


def test_values_are_copies():
    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(V, 3)

        def forward(self, tokens):
            x = self.embedding(tokens)
            x.mul_(2.0)
            return x + 1.0

    model = Doubled()
    vectors, doubled, last = trace(model, TOKENS)
    assert torch.equal(vectors.value, model.embedding.weight[TOKENS])
    assert torch.equal(doubled.value, 2 * vectors.value)
    assert torch.equal(last.value, doubled.value + 1)


class Opaque(nn.Module):
    def forward(self, tokens):
        return torch.zeros(1) if len(tokens) else None


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, 3)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x + 1.0
        return x


class Compiled(nn.Sequential):
    """As ``torch.compile`` leaves a module: the original behind a wrapper."""

    def __init__(self):
        super().__init__(gpt())
        self._orig_mod = self[0]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((len, TOKENS), TypeError, "model must be a torch.nn.Module, got builtin"),
        ((gpt(),), ValueError, "inputs must hold the tokens"),
        ((gpt(), [3, 4]), TypeError, "tokens must be a tensor of integers, got list"),
        ((gpt(), TOKENS.float()), TypeError, "integers, got torch.float32"),
        ((gpt(), TOKENS[0]), ValueError, r"shape \(b, t\), got \(5,\)"),
        ((gpt(), TOKENS[:, :0]), ValueError, r"tokens must not be empty.* \(1, 0\)"),
        ((gpt(), TOKENS + 2), ValueError, "tokens must hold .* 10, got 11"),
        ((gpt(), TOKENS.repeat(1, 4)), ValueError, "length must be at most max_len"),
        ((Opaque(), TOKENS), ValueError, "got a Opaque whose output is not the last"),
        ((Two(), TOKENS), ValueError, "got a Two whose output is not the last"),
        ((Compiled(), TOKENS), ValueError, "model must not be compiled"),
    ],
)
def test_what_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        trace(*arguments)


def test_a_step_says_what_it_is():
    first, _, _, step = trace(gpt(), TOKENS)[:4]
    assert repr(first).startswith("embedding: token vectors (1, 5, 24), X = E[")
    assert re.fullmatch(
        r"block 1, attention: queries \(1, 5, 24\), Q = \\hat\{X\} \\, W_\{q\}\^\\top "
        r"\+ b_\{q\}, annotated/attention\.py:\d+",
        repr(step),
    )


def test_attention_in_blocks_is_one_step_of_queries_keys_and_values():
    model = gpt(layers=1)
    sparse = SparseSelfAttention(24, 4, pattern=local_pattern(2), block=2).eval()
    sparse.load_state_dict(model.blocks.layers[0].attention.state_dict())
    model.blocks.layers[0].attention = sparse
    steps = trace(model, TOKENS)
    fused = named(steps, "block 1, attention")["attention in blocks"]
    assert [steps[n].operation for n in fused.reads] == ["queries", "keys", "values"]
    assert fused.shapes == ((1, 5, 24),) * 3
    assert fused.value.shape == (1, 4, 5, 6)
    torch.testing.assert_close(steps[-1].value, model(TOKENS).detach())
    assert len(steps) == len(trace(gpt(layers=1), TOKENS)) - 4
