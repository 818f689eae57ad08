"""annotated/transformer.py: PyTorch's Transformer with the same numbers in it."""

import dataclasses
import itertools
import math
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.positions import sinusoidal_encoding
from annotated.transformer import (
    ACTIVATIONS,
    Decoder,
    Encoder,
    FeedForward,
    Residual,
    Transformer,
    TransformerConfig,
    last_norm,
)
from tests import compare

# b 2, s 7, t 5; 23 and 19 symbols; d 12 in 3 heads; two layers, inside 17 wide
B, S, T = 2, 7, 5
SOURCES, TARGETS, D, HEADS, LAYERS, INNER = 23, 19, 12, 3, 2, 17
SIZES = {"d_model": D, "heads": HEADS, "layers": LAYERS, "d_ff": INNER}
NORMS = ["pre", "post"]
assert_close = partial(compare.assert_close, single=8e-5)
either_norm = pytest.mark.parametrize("norm", NORMS)
either_tie = pytest.mark.parametrize("tied", [False, True])


def make_config(**changes) -> TransformerConfig:
    given = {"source_vocab": SOURCES, "target_vocab": TARGETS, **SIZES}
    given |= {"dropout": 0.0, "max_len": 11}
    if changes.get("tied"):
        given["target_vocab"] = SOURCES
    return TransformerConfig(**given | changes)


def shaken(module: nn.Module) -> nn.Module:
    """No bias at 0, no gain at 1: what is forgotten or swapped would not be seen."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return module


def make_model(dtype=torch.float64, **changes) -> Transformer:
    return shaken(Transformer(make_config(**changes))).to(dtype)


def draw(high: int, length: int, pad: int = 0) -> Tensor:
    tokens = torch.randint(0, high, (B, length))
    return tokens.masked_fill(tokens == pad, (pad + 1) % high)


def padded_batch(high: int = TARGETS, pad: int = 0) -> tuple[Tensor, Tensor]:
    """One row without padding at its end, one with; and padding amid both."""
    source, target = draw(high, S, pad), draw(high, T, pad)
    source[1, 4:] = pad
    source[0, 2] = target[0, 2] = pad
    target[1, 3:] = pad
    return source, target


def stream(length: int = T, dtype=torch.float64) -> Tensor:
    return torch.randn(B, length, D, dtype=dtype, requires_grad=True)


def backward(output: Tensor) -> None:
    """Gradients of a random mixture of all that was computed."""
    generator = torch.Generator().manual_seed(1)
    mixture = torch.randn(output.shape, generator=generator).to(output)
    (output * mixture).sum().backward()


# ---- PyTorch's own, with our numbers in it -----------------------------------


ATTENTIONS = {"attention": "self_attn", "cross_attention": "multihead_attn"}
MAPS = {"feed_forward.inner": "linear1", "feed_forward.outer": "linear2"}
MAPS |= {f"residuals.{i}.norm": f"norm{i + 1}" for i in range(3)}


def layer_pairs(ours: nn.Module, theirs: nn.Module) -> list[tuple[Tensor, Tensor, int]]:
    """Each parameter of our layer, PyTorch's, and which third of that it is, or -1."""
    pairs, their = [], dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        holder, _, kind = name.rpartition(".")
        if holder in MAPS:
            pairs.append((parameter, their[f"{MAPS[holder]}.{kind}"], -1))
            continue
        attention, _, which = holder.partition(".")
        attention = ATTENTIONS[attention]
        if which == "output_map":
            pairs.append((parameter, their[f"{attention}.out_proj.{kind}"], -1))
        else:
            third = ["query_map", "key_map", "value_map"].index(which)
            pairs.append((parameter, their[f"{attention}.in_proj_{kind}"], third))
    assert len({id(p) for p, *_ in pairs}) == len([*ours.parameters()])
    return pairs


def part(tensor: Tensor, third: int) -> Tensor:
    return tensor if third < 0 else tensor.chunk(3)[third]


def copy_over(pairs) -> None:
    with torch.no_grad():
        for ours, theirs, third in pairs:
            part(theirs, third).copy_(ours)


def assert_gradients_agree(pairs, names: dict[int, str]) -> None:
    for ours, theirs, third in pairs:
        assert ours.grad is not None, f"{names[id(ours)]} gets no gradient"
        why = f"gradient of {names[id(ours)]}"
        assert_close(ours.grad, part(theirs.grad, third), why)


def names_of(module: nn.Module) -> dict[int, str]:
    return {id(parameter): name for name, parameter in module.named_parameters()}


def their_stacks(config: TransformerConfig, dtype) -> nn.Transformer:
    """nn.Transformer; after post-norm without the last norm that it would add."""
    stacks, c = {}, config
    settings = {"dropout": 0.0, "batch_first": True, "norm_first": c.norm == "pre"}
    for name in ("Encoder", "Decoder"):
        kind = getattr(nn, f"Transformer{name}Layer")
        layer = kind(c.d_model, c.heads, c.d_ff, **settings, dtype=dtype)
        norm = nn.LayerNorm(c.d_model, dtype=dtype)
        extra = {"enable_nested_tensor": False} if name == "Encoder" else {}
        stacks[f"custom_{name.lower()}"] = getattr(nn, f"Transformer{name}")(
            layer, c.layers, norm if c.norm == "pre" else None, **extra
        )
    return nn.Transformer(c.d_model, c.heads, batch_first=True, **stacks)


def stack_pairs(ours: nn.Module, theirs: nn.Module) -> list:
    pairs = []
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        pairs += layer_pairs(one, other)
    if theirs.norm is not None:
        pairs += [(ours.norm.weight, theirs.norm.weight, -1)]
        pairs += [(ours.norm.bias, theirs.norm.bias, -1)]
    return pairs


class Reference(nn.Module):
    """nn.Transformer with embeddings, positions and output around it."""

    def __init__(self, model: Transformer):
        super().__init__()
        c, dtype = model.config, model.output.weight.dtype
        self.pad = c.pad
        self.source = nn.Parameter(model.source_embedding.weight.detach().clone())
        self.target = self.output = self.source
        if not c.tied:
            self.target = nn.Parameter(model.target_embedding.weight.detach().clone())
            self.output = nn.Parameter(model.output.weight.detach().clone())
        self.stacks = their_stacks(c, dtype)
        self.pairs = stack_pairs(model.encoder, self.stacks.encoder)
        self.pairs += stack_pairs(model.decoder, self.stacks.decoder)
        copy_over(self.pairs)
        self.pairs += [(model.source_embedding.weight, self.source, -1)]
        self.pairs += [(model.target_embedding.weight, self.target, -1)]
        self.pairs += [(model.output.weight, self.output, -1)]
        ours = {id(one) for one, *_ in self.pairs}
        assert ours == {id(parameter) for parameter in model.parameters()}

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        embedded = [
            F.embedding(tokens, table) * math.sqrt(D)
            + sinusoidal_encoding(tokens.shape[1], D).to(table.dtype)
            for tokens, table in ((source, self.source), (target, self.target))
        ]
        length = target.shape[1]
        hidden = self.stacks(
            *embedded,
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=source == self.pad,  # True = hidden
            tgt_key_padding_mask=target == self.pad,
            memory_key_padding_mask=source == self.pad,
        )
        return hidden @ self.output.T


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@either_norm
@either_tie
@pytest.mark.parametrize("pad", [0, 3])
def test_the_whole_model_is_pytorchs_forward_and_backward(norm, tied, pad, dtype):
    model = make_model(dtype, norm=norm, tied=tied, pad=pad)
    reference = Reference(model)
    source, target = padded_batch(pad=pad)
    ours, theirs = model(source, target), reference(source, target)
    assert ours.shape == (B, T, model.config.target_vocab)
    assert ours.dtype == dtype
    assert_close(ours, theirs, "logits")
    for logits in (ours, theirs):
        backward(logits)
    assert_gradients_agree(reference.pairs, names_of(model))


# ---- layers ------------------------------------------------------------------


def some_mask(*shape: int) -> Tensor:
    """Each query of each sequence and head has other keys, the first among them."""
    mask = torch.rand(B, HEADS, *shape) < 0.5
    mask[..., 0] = True
    return mask


def hidden(mask: Tensor) -> Tensor:
    return ~mask.flatten(0, 1)  # PyTorch's: (b·h, t, s), True = hidden


@either_norm
@pytest.mark.parametrize("masked", [*itertools.product([False, True], repeat=3)])
def test_the_stacks_are_pytorchs_with_any_mask(norm, masked):
    config = make_config(norm=norm)
    encoder, decoder = (shaken(k(config)).double() for k in (Encoder, Decoder))
    theirs = their_stacks(config, torch.float64)
    pairs = stack_pairs(encoder, theirs.encoder) + stack_pairs(decoder, theirs.decoder)
    copy_over(pairs)
    x, y = stream(S), stream(T)
    others = [tensor.detach().clone().requires_grad_() for tensor in (x, y)]
    shapes = zip(masked, ((S, S), (T, T), (T, S)), strict=True)
    masks = [some_mask(*shape) if given else None for given, shape in shapes]
    own, target, memory = (None if mask is None else hidden(mask) for mask in masks)
    ours = decoder(y, encoder(x, masks[0]), *masks[1:])
    read = theirs.encoder(others[0], mask=own)
    wanted = theirs.decoder(others[1], read, tgt_mask=target, memory_mask=memory)
    assert_close(ours, wanted)
    for output in (ours, wanted):
        backward(output)
    pairs += [(x, others[0], -1), (y, others[1], -1)]
    names = names_of(encoder) | names_of(decoder) | {id(x): "source", id(y): "target"}
    assert_gradients_agree(pairs, names)


def test_layers_of_a_stack_do_not_share_their_numbers():
    for kind in (Encoder, Decoder):
        stack = kind(make_config(layers=3))
        assert len(stack.layers) == 3
        weights = [layer.attention.query_map.weight for layer in stack.layers]
        for one, other in itertools.combinations(weights, 2):
            assert not torch.equal(one, other), "copies of one layer begin alike"


# ---- FeedForward -------------------------------------------------------------


def test_the_feed_forward_network_drops_inner_numbers():
    network, x = FeedForward(D, INNER, dropout=0.5), torch.randn(B, T, D)
    torch.manual_seed(5)
    output = network(x)
    torch.manual_seed(5)
    inner = F.dropout(network.inner(x).relu(), 0.5)
    assert_close(output, network.outer(inner), "dropout between the two maps")
    network.eval()
    assert_close(network(x), network.outer(network.inner(x).relu()), "evaluation")


# ---- Residual ----------------------------------------------------------------


def normalised(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * norm.weight + norm.bias


def test_a_residual_is_post_norm_unless_said_otherwise():
    residual, x = Residual(D), torch.randn(B, T, D) * 9 + 4
    output = residual(x, torch.zeros_like)
    assert_close(output.mean(dim=-1), torch.zeros(B, T))
    assert torch.equal(Residual(D, norm="pre")(x, torch.zeros_like), x)


@either_norm
def test_a_residual_drops_what_is_added_and_never_the_stream(norm):
    residual, x = Residual(D, 0.5, norm), torch.randn(B, T, D)
    torch.manual_seed(5)
    output = residual(x, torch.ones_like)
    torch.manual_seed(5)
    total = x + F.dropout(torch.ones_like(x), 0.5)
    assert_close(output, total if norm == "pre" else normalised(total, residual.norm))
    total = x + 1
    wanted = total if norm == "pre" else normalised(total, residual.norm)
    assert_close(residual.eval()(x, torch.ones_like), wanted, "evaluation")


# ---- what sees what ----------------------------------------------------------


@either_norm
def test_a_source_of_nothing_but_padding_gives_finite_numbers(norm):
    model = make_model(norm=norm)
    source, target = draw(SOURCES, S), draw(TARGETS, T)
    source[1] = 0
    logits = model(source, target)
    assert logits.isfinite().all()
    backward(logits)
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name


# ---- encode, decode, forward -------------------------------------------------


def test_forward_is_encode_then_decode():
    model, (source, target) = make_model(), padded_batch()
    memory, mask = model.encode(source)
    assert memory.shape == (B, S, D)
    assert torch.equal(mask, (source != 0)[:, None, None, :])
    assert torch.equal(model.decode(target, memory, mask), model(source, target))


def test_decode_without_a_mask_sees_the_whole_memory():
    model, target = make_model(), draw(TARGETS, T)
    memory, everything = stream(S), torch.ones(B, 1, 1, S, dtype=torch.bool)
    logits = model.decode(target, memory)
    assert_close(logits, model.decode(target, memory, everything))
    some = everything.clone()
    some[..., 3] = False
    assert not torch.allclose(logits, model.decode(target, memory, some))


def test_source_and_target_may_be_of_any_length_up_to_the_last_position():
    model = make_model(max_len=8)
    for s, t in ((1, 1), (8, 1), (1, 8), (8, 8)):
        assert model(draw(SOURCES, s), draw(TARGETS, t)).shape == (B, t, TARGETS)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_first_and_the_last_symbol_are_taken(dtype):
    model = make_model()
    source = torch.tensor([[1, SOURCES - 1, 0]], dtype=dtype)
    target = torch.tensor([[TARGETS - 1, 1, 0]], dtype=dtype)
    assert model(source, target).shape == (1, 3, TARGETS)


@either_norm
def test_a_batch_may_hold_no_sequence(norm):
    model = make_model(norm=norm)
    logits = model(*(tokens[:0] for tokens in padded_batch()))
    assert logits.shape == (0, T, TARGETS)
    backward(logits)


def test_tokens_are_left_alone():
    model, (source, target) = make_model(), padded_batch()
    before = source.clone(), target.clone()
    model(source, target)
    assert torch.equal(source, before[0]) and torch.equal(target, before[1])


def test_the_model_works_where_it_is_moved_to():
    model = make_model().to("meta")
    logits = model(*(tokens.to("meta") for tokens in padded_batch()))
    assert logits.is_meta and logits.shape == (B, T, TARGETS)


# ---- dropout -----------------------------------------------------------------


def test_without_dropout_training_is_evaluation():
    model, batch = make_model(), padded_batch()
    before = torch.get_rng_state()
    assert torch.equal(model.train()(*batch), model.eval()(*batch))
    assert torch.equal(torch.get_rng_state(), before), "a number was drawn for nothing"


def dropouts(model: Transformer) -> dict[str, nn.Module]:
    kinds = nn.Dropout, MultiHeadAttention
    named = model.named_modules()
    return {name: module for name, module in named if isinstance(module, kinds)}


def probability(module: nn.Module) -> float:
    return module.p if isinstance(module, nn.Dropout) else module.dropout


def set_probability(module: nn.Module, p: float) -> None:
    setattr(module, "p" if isinstance(module, nn.Dropout) else "dropout", p)


def places(layers: int = LAYERS) -> list[str]:
    """Everywhere the docstring of the config says that numbers are dropped."""
    found = ["positions.dropout"]
    for i in range(layers):
        for stack, sublayers in (("encoder", 2), ("decoder", 3)):
            layer = f"{stack}.layers.{i}"
            found += [f"{layer}.attention", f"{layer}.feed_forward.dropout"]
            found += [f"{layer}.residuals.{j}.dropout" for j in range(sublayers)]
        found += [f"decoder.layers.{i}.cross_attention"]
    return found


@pytest.mark.parametrize("p", [0.0, 0.1, 0.37])
def test_every_dropout_has_the_probability_of_the_config(p):
    found = dropouts(Transformer(make_config(dropout=p)))
    assert sorted(found) == sorted(places())
    assert {name: probability(one) for name, one in found.items()} == dict.fromkeys(
        found, p
    )


@pytest.mark.parametrize("place", places())
@either_norm
def test_dropout_reaches_each_of_its_places(place, norm):
    model, batch = make_model(norm=norm, dropout=0.5), padded_batch()
    for name, module in dropouts(model).items():
        set_probability(module, 0.5 if name == place else 0.0)
    model.train()
    one, other = model(*batch), model(*batch)
    assert not torch.allclose(one, other), f"nothing is dropped at {place}"
    model.eval()
    assert torch.equal(model(*batch), model(*batch)), "dropped in evaluation"


# ---- how it begins -----------------------------------------------------------


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_base_model_has_as_many_parameters_as_the_paper_says():
    with torch.device("meta"):
        tied = Transformer(TransformerConfig(37_000, 37_000, tied=True))
        untied = Transformer(TransformerConfig(37_000, 37_000))
    assert count(tied) == 63_082_496  # table 3: 65 million
    assert count(untied) == 63_082_496 + 2 * 37_000 * 512


def test_the_defaults_are_the_base_model():
    assert dataclasses.asdict(TransformerConfig(7, 9)) == {
        "activation": "relu",
        "norm_kind": "layer",
        "norm_epsilon": 1e-5,
        "bias": True,
        "source_vocab": 7,
        "target_vocab": 9,
        "d_model": 512,
        "heads": 8,
        "layers": 6,
        "d_ff": 2048,
        "dropout": 0.1,
        "norm": "post",
        "max_len": 5000,
        "tied": False,
        "pad": 0,
    }


@either_tie
def test_embeddings_enter_the_stream_with_deviation_one(tied):
    model = Transformer(make_config(source_vocab=907, target_vocab=907, tied=tied))
    for table in (model.source_embedding, model.target_embedding):
        # of 10884 numbers: five standard deviations of the spread and of the mean
        assert 0.966 < table.weight.std().item() * math.sqrt(D) < 1.034
        assert abs(table.weight.mean().item() * math.sqrt(D)) < 0.05


def test_matrices_begin_as_glorots_and_biases_small():
    model = Transformer(make_config(d_model=60, d_ff=90))
    tables = {"source_embedding.weight", "target_embedding.weight"}
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2 or name in tables:
            continue
        limit = math.sqrt(6 / sum(parameter.shape))
        assert 0.97 * limit < parameter.abs().max() <= limit, name
        # a uniform draw of 1140 numbers or more: ten per cent are six deviations
        assert parameter.std().item() == pytest.approx(limit / 3**0.5, rel=0.1), name


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 2, "heads": 2},
        {"d_model": 6, "heads": 1},
        {"layers": 1, "d_ff": 1, "max_len": 1},
        {"source_vocab": 1, "target_vocab": 1, "pad": 0},
        {"pad": TARGETS - 1},
        {"dropout": 0.99999},
    ],
)
def test_the_smallest_and_the_largest_numbers_are_taken(changes):
    model = Transformer(make_config(**changes))
    assert dataclasses.asdict(model.config).items() >= changes.items()
    tokens = torch.zeros(B, 1, dtype=torch.long)
    assert model(tokens, tokens).shape == (B, 1, model.config.target_vocab)


# ---- what blocks may be made of ------------------------------------------------


def by_formula(layer: FeedForward, x: Tensor, name: str) -> Tensor:
    inner = layer.inner(x)
    if name == "swiglu":
        gate = layer.gate(x)
        return layer.outer(inner * gate / (1 + (-gate).exp()))
    root = math.sqrt(2 / math.pi)
    return layer.outer(
        {
            "relu": lambda: inner * (inner > 0),
            "gelu": lambda: inner * (1 + torch.erf(inner / 2**0.5)) / 2,
            "gelu_tanh": lambda: (
                inner * (1 + (root * (inner + 0.044715 * inner**3)).tanh()) / 2
            ),
        }[name]()
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_their_formulas(name):
    layer, x = FeedForward(D, INNER, activation=name).double(), stream()
    assert_close(layer(x), by_formula(layer, x, name))
    assert (layer.gate is not None) == (name == "swiglu")


@pytest.mark.parametrize("name", ["relu", "swiglu"])
def test_a_network_may_have_no_bias(name):
    layer = FeedForward(D, INNER, activation=name, bias=False)
    assert all(parameter.dim() == 2 for parameter in layer.parameters())
    with_bias = FeedForward(D, INNER, activation=name)
    assert count(with_bias) - count(layer) == D + INNER * (1 + (name == "swiglu"))


def test_a_root_mean_square_norm_is_its_formula():
    module, x = Residual(D, norm="pre", kind="rms", epsilon=0.5).double(), stream()
    nn.init.normal_(module.norm.weight)
    size = (x.square().mean(dim=-1, keepdim=True) + 0.5).sqrt()
    assert_close(module(x, torch.sin), x + (x / size * module.norm.weight).sin())


OPTIONS = {
    "activation": "gelu",
    "norm_kind": "rms",
    "norm_epsilon": 0.25,
    "bias": False,
    "norm": "pre",
}


def test_every_layer_is_made_of_what_the_config_says():
    model = Transformer(make_config(**OPTIONS))
    kinds = {
        "norms": [m for m in model.modules() if isinstance(m, nn.RMSNorm)],
        "networks": [m for m in model.modules() if isinstance(m, FeedForward)],
        "maps": [m for m in model.modules() if isinstance(m, nn.Linear)],
    }
    assert not any(isinstance(m, nn.LayerNorm) for m in model.modules())
    assert {norm.eps for norm in kinds["norms"]} == {0.25}
    # 2 in each layer of the encoder, 3 of the decoder, and the ends
    assert len(kinds["norms"]) == 5 * LAYERS + 2
    assert {m.activation for m in kinds["networks"]} == {ACTIVATIONS["gelu"]}
    assert len(kinds["networks"]) == 2 * LAYERS
    assert not any(m.bias is not None for m in kinds["maps"])
    with_biases = Transformer(make_config()).modules()
    biased = [m.bias is not None for m in with_biases if isinstance(m, nn.Linear)]
    assert biased == [True] * (len(biased) - 1) + [False], "but for the output"


def test_the_last_norm_is_of_the_kind_of_the_others():
    post, pre = make_config(norm="post"), make_config(norm="pre", norm_epsilon=0.5)
    assert isinstance(last_norm(post), nn.Identity)
    assert isinstance(last_norm(pre), nn.LayerNorm) and last_norm(pre).eps == 0.5
    rms = last_norm(make_config(norm="pre", norm_kind="rms", norm_epsilon=0.5))
    assert isinstance(rms, nn.RMSNorm) and rms.eps == 0.5


class Other(MultiHeadAttention):
    """Another kind of attention."""


def test_attention_may_be_another_in_each_place():
    config = make_config()
    own = partial(Other, D, HEADS)
    cross = partial(MultiHeadAttention, D, HEADS, 0.0, False)
    encoder = Encoder(config, own)
    assert all(type(layer.attention) is Other for layer in encoder.layers)
    decoder = Decoder(config, own, cross)
    for layer in decoder.layers:
        assert type(layer.attention) is Other
        assert layer.cross_attention.query_map.bias is None
    for layer in Decoder(config).layers:
        assert type(layer.attention) is type(layer.cross_attention)
        assert layer.cross_attention.query_map.bias is not None
    first, second = (layer.attention for layer in encoder.layers)
    assert first is not second


# ---- compiled ----------------------------------------------------------------

COMPILED = """
import torch
from annotated.transformer import Transformer, TransformerConfig
torch.manual_seed(0)
sizes = {"d_model": 12, "heads": 3, "layers": 2, "d_ff": 17, "dropout": 0.0}
model = Transformer(TransformerConfig(23, 19, **sizes, max_len=11))
source, target = torch.randint(23, (2, 7)), torch.randint(19, (2, 5))
compiled = torch.compile(model, fullgraph=True, backend="eager")
torch.testing.assert_close(compiled(source, target), model(source, target))
"""


def test_the_model_compiles_as_one_graph():
    """In a process without the tests' shape checker, which cannot be compiled."""
    command = [sys.executable, "-c", COMPILED]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.parametrize("name", ["source_vocab", "target_vocab", *SIZES, "max_len"])
def test_sizes_are_integers_above_zero(name):
    with pytest.raises(ValueError, match=f"^{name} must be an integer ≥ 1, got 0$"):
        make_config(**{name: 0})
    with pytest.raises(TypeError, match=f"^{name} must be an integer ≥ 1, got 4.0$"):
        make_config(**{name: 4.0})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 15, "heads": 1}, "^d_model must be even, got 15$"),
        ({"heads": 5}, "^heads must divide d_model, got heads=5 and d_model=12$"),
        ({"dropout": 1.0}, r"^dropout must be a number in \[0, 1\), got 1.0$"),
        ({"norm": "Pre"}, "^norm must be one of 'pre', 'post', got 'Pre'$"),
        ({"pad": TARGETS}, "^pad must be an integer from 0 to 18, got 19$"),
        ({"source_vocab": 9, "pad": 9}, "^pad must be an integer from 0 to 8, got 9$"),
        ({"pad": -1}, "^pad must be an integer from 0 to 18, got -1$"),
        ({"activation": "elu"}, "^activation must be one of 'relu', .* got 'elu'$"),
        ({"norm_kind": "batch"}, "^norm_kind must be one of 'layer', 'rms', got 'b"),
        ({"norm_epsilon": 0}, "^norm_epsilon must be a number above 0 and finite, got"),
        (
            {"tied": True, "target_vocab": TARGETS},
            "^tied needs .*source_vocab=23, target_vocab=19,",
        ),
    ],
)
def test_numbers_of_a_config_fit_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        make_config(**changes)


def test_kinds_that_there_are_not_are_named():
    with pytest.raises(ValueError, match=r"^kind must be one of 'layer', 'rms', got"):
        Residual(D, kind="batch")
    with pytest.raises(ValueError, match=r"^activation must be one of 'relu', "):
        FeedForward(D, INNER, activation="elu")


def test_the_norm_of_a_residual_is_pre_or_post():
    with pytest.raises(
        ValueError, match=r"^norm must be one of 'pre', 'post', got 'b'"
    ):
        Residual(D, norm="b")


RUNS = {
    "source": lambda model, tokens: model.encode(tokens),
    "target": lambda model, tokens: model.decode(tokens, torch.randn(B, S, D).double()),
    "source of both": lambda model, tokens: model(tokens, draw(TARGETS, T)),
    "target of both": lambda model, tokens: model(draw(SOURCES, S), tokens),
}


@pytest.mark.parametrize("side", RUNS)
def test_tokens_fit_the_model(side):
    model, run, name = make_model(), RUNS[side], side.partition(" ")[0]
    size = SOURCES if name == "source" else TARGETS
    message = f"^{name} must be a tensor of integers, got "
    for wrong, kind in ((torch.ones(B, T), "torch.float32"), ([[1, 2]], "list")):
        with pytest.raises(TypeError, match=message + kind):
            run(model, wrong)
    with pytest.raises(
        ValueError, match=rf"^{name} must have the shape \(b, [st]\), g"
    ):
        run(model, torch.ones(T, dtype=torch.long))
    message = "^length must be at most max_len, got length=12 and max_len=11$"
    with pytest.raises(ValueError, match=message):
        run(model, draw(TARGETS, 12))
    for wrong in (-1, size):
        tokens = draw(TARGETS, T)
        tokens[1, 2] = wrong
        message = f"^{name} must hold integers from 0 to {size - 1}, got {wrong}$"
        with pytest.raises(ValueError, match=message):
            run(model, tokens)


def test_source_and_target_are_one_batch():
    model, source, target = make_model(), draw(SOURCES, S), draw(TARGETS, T)
    message = (
        r"^target must have the shape \(b, t\) with b=2 as in source, got \(1, 5\)$"
    )
    with pytest.raises(ValueError, match=message):
        model(source, target[:1])
    memory, mask = model.encode(source)
    with pytest.raises(ValueError, match=r"^memory must .* with b=2 as in target, got"):
        model.decode(target, memory[:1], mask)
    with pytest.raises(ValueError, match=r"^memory_mask must .* with s=7 as in memory"):
        model.decode(target, memory, mask[..., 1:])
