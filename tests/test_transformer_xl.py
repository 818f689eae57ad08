"""annotated/transformer_xl.py: against loops, and what transformers 4.37.2 computed."""

from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from annotated.attention import MultiHeadAttention, record_attention
from annotated.masks import causal_mask
from annotated.positions import sinusoidal_encoding
from annotated.transformer_xl import (
    RelativeMultiHeadAttention,
    TransformerXL,
    TransformerXLConfig,
    relative_shift,
    update_memory,
)
from tests.refused import assert_refused, table

# b 2, t 3, m 4, so s 7; d 10, h 5, k 2; 13 symbols
B, T, M, D, H, V = 2, 3, 4, 10, 5, 13
S = M + T
SMALL = TransformerXLConfig(V, D, H, layers=2, d_ff=6, mem_len=M)
REFERENCE = numpy.load(Path(__file__).parent / "references" / "transfo_xl.npz")


def small(**changes) -> TransformerXL:
    """A model whose every parameter is random, u and v too."""
    model = TransformerXL(replace(SMALL, **changes)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def assert_near(actual, expected, limit=8e-5, why=""):
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=limit, msg=lambda text: f"{why}\n{text}"
    )


def gathered(x, before=0.0):
    """Each key's score by its distance, one at a time; `before` where there is none."""
    *batch, t, s = x.shape
    wanted = torch.full((*batch, t, s), before, dtype=x.dtype)
    for i in range(t):
        for j in range(i + s - t + 1):
            distance = (i + s - t) - j
            wanted[..., i, j] = x[..., i, s - 1 - distance]
    return wanted


# ---- relative_shift ----------------------------------------------------------


@pytest.mark.parametrize(("t", "s"), [(1, 1), (1, 5), (3, 3), (3, 5), (4, 6), (5, 13)])
def test_a_shift_puts_each_distance_at_its_key(t, s):
    x = torch.randn(2, 3, t, s)
    visible = causal_mask(t, s)[0, 0]
    found = relative_shift(x)
    assert found.shape == x.shape
    assert torch.equal(found[..., visible], gathered(x)[..., visible])


def test_after_the_diagonal_stand_zeros_and_numbers_of_the_next_row():
    x = torch.arange(1.0, 16).view(3, 5)
    wanted = [[3.0, 4, 5, 0, 6], [7, 8, 9, 10, 0], [11, 12, 13, 14, 15]]
    assert relative_shift(x).tolist() == wanted


def test_a_shift_leaves_its_input_and_passes_gradients_on():
    x = torch.randn(2, T, S, requires_grad=True)
    before = x.detach().clone()
    visible = causal_mask(T, S)[0, 0]
    upstream = torch.randn(2, T, S) * visible
    (found,) = torch.autograd.grad((relative_shift(x) * upstream).sum(), x)
    (wanted,) = torch.autograd.grad((gathered(x) * upstream).sum(), x)
    assert torch.equal(found, wanted)
    assert torch.equal(x, before)


# ---- RelativeMultiHeadAttention ----------------------------------------------


def attention(**changes) -> RelativeMultiHeadAttention:
    module = RelativeMultiHeadAttention(**{"d_model": D, "heads": H} | changes).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def slow_scores(module, query, key, vectors):
    """Equation (5) of the paper, a pair of positions at a time: terms (a) to (d).

    ``vectors[distance]`` is R of a distance.
    """
    k = D // H
    u, v = module.content_bias[:, 0], module.position_bias[:, 0]  # (h, k)
    scores = torch.full((len(query), H, query.shape[1], key.shape[1]), -torch.inf)
    for n, i, j in numpy.ndindex(len(query), query.shape[1], key.shape[1]):
        distance = i + key.shape[1] - query.shape[1] - j
        if distance < 0:
            continue
        q = (module.query_map.weight @ query[n, i]).view(H, k)
        by_content = (module.key_map.weight @ key[n, j]).view(H, k)
        by_place = (module.position_map.weight @ vectors[distance]).view(H, k)
        terms = q * by_content + q * by_place + u * by_content + v * by_place
        scores[n, :, i, j] = terms.sum(dim=-1) / k**0.5
    return scores


def slow_attention(module, query, key, vectors, mask=None):
    scores = slow_scores(module, query, key, vectors)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    values = (key @ module.value_map.weight.T).view(len(key), -1, H, D // H)
    heads = scores.softmax(dim=-1) @ values.transpose(1, 2)
    return heads.transpose(1, 2).flatten(2) @ module.output_map.weight.T


@pytest.mark.parametrize("memory", [0, M])
def test_attention_is_the_four_terms_forward_and_backward(memory):
    module = attention()
    key = torch.randn(B, memory + T, D, requires_grad=True)
    inputs = [key, *module.parameters()]
    vectors = sinusoidal_encoding(memory + T, D)
    outputs = (
        module(key[:, memory:], key),
        slow_attention(module, key[:, memory:], key, vectors),
    )
    assert_near(*outputs)
    upstream = torch.randn(B, T, D)
    found, wanted = (
        torch.autograd.grad((output * upstream).sum(), inputs) for output in outputs
    )
    for name, one, other in zip(
        ["key", *dict(module.named_parameters())], found, wanted, strict=True
    ):
        assert other.abs().max() > 0.01, name
        assert_near(one, other, 8e-5, name)


def test_a_mask_hides_more_and_a_row_without_keys_gives_zeros():
    module = attention()
    key = torch.randn(B, S, D)
    mask = causal_mask(T, S)[0, 0] & (torch.rand(B, 1, T, S) > 0.4)
    mask[..., 0] = True
    vectors = sinusoidal_encoding(S, D)
    wanted = slow_attention(module, key[:, M:], key, vectors, mask)
    assert_near(module(key[:, M:], key, mask=mask), wanted)
    mask[1, 0, 2] = False
    found = module(key[:, M:], key.requires_grad_(), mask=mask)
    assert torch.equal(found[1, 2], torch.zeros(D))
    assert_near(found[0], wanted[0])
    (gradient,) = torch.autograd.grad(found.sum(), key)
    assert gradient.isfinite().all()


def test_u_and_v_begin_at_zero_and_maps_have_no_bias():
    torch.use_deterministic_algorithms(True)  # uninitialised memory is NaN then
    try:
        module = RelativeMultiHeadAttention(D, H)
    finally:
        torch.use_deterministic_algorithms(False)
    assert isinstance(module, MultiHeadAttention)
    for bias in (module.content_bias, module.position_bias):
        assert torch.equal(bias, torch.zeros(H, 1, D // H))
    others = [n for n, _ in module.named_parameters() if n.endswith("map.bias")]
    assert not others


def test_attention_drops_weights_in_training_alone():
    module, x = attention(dropout=0.5), torch.randn(B, T, D)
    assert_near(module(x), module(x))
    module.train()
    assert not torch.allclose(module(x), module(x))


# ---- update_memory -----------------------------------------------------------


def numbered(first, count):
    return torch.arange(float(first), first + count).view(1, -1, 1)


@pytest.mark.parametrize(
    ("memory", "states", "mem_len", "ext_len", "wanted"),
    [
        (0, 8, 20, 0, range(0, 8)),
        (0, 8, 20, 3, range(0, 5)),  # swapped lengths would keep all 8
        (4, 3, 20, 0, range(0, 7)),
        (4, 3, 5, 0, range(2, 7)),
        (4, 3, 5, 2, range(0, 5)),
        (4, 3, 2, 1, range(4, 6)),
        (4, 3, 0, 0, range(0)),
        (4, 3, 4, 5, range(0, 4)),  # the segment is read again whole
    ],
)
def test_memory_keeps_the_last_states_that_are_not_read_again(
    memory, states, mem_len, ext_len, wanted
):
    found = update_memory(
        numbered(0, memory), numbered(memory, states), mem_len, ext_len
    )
    assert found[0, :, 0].tolist() == list(wanted)


def test_memory_lets_no_gradient_through():
    states = torch.randn(2, B, T, D, requires_grad=True)
    memory = torch.randn(2, B, M, D)
    assert not update_memory(memory, states, M).requires_grad


# ---- TransformerXL -----------------------------------------------------------

# ours, and what transformers calls it
NAMES = {
    "attention.output_map.weight": "dec_attn.o_net.weight",
    "attention.position_map.weight": "dec_attn.r_net.weight",
    "feed_forward.inner.weight": "pos_ff.CoreNet.0.weight",
    "feed_forward.inner.bias": "pos_ff.CoreNet.0.bias",
    "feed_forward.outer.weight": "pos_ff.CoreNet.3.weight",
    "feed_forward.outer.bias": "pos_ff.CoreNet.3.bias",
    "residuals.0.norm.weight": "dec_attn.layer_norm.weight",
    "residuals.0.norm.bias": "dec_attn.layer_norm.bias",
    "residuals.1.norm.weight": "pos_ff.layer_norm.weight",
    "residuals.1.norm.bias": "pos_ff.layer_norm.bias",
}
WIDTH, HEADS = 12, 3


def recorded(kind: str, what: str, tied: bool) -> dict[str, torch.Tensor]:
    """Weights, or gradients, of the recorded model, by our names.

    Theirs has the sines of all dimensions before the cosines, where ours alternate.
    """
    theirs = {
        name.removeprefix(f"{kind}.{what}."): torch.from_numpy(REFERENCE[name])
        for name in REFERENCE.files
        if name.startswith(f"{kind}.{what}.")
    }
    halves = torch.arange(WIDTH).view(2, -1).T.flatten()
    ours = {}
    for layer in range(2):
        prefix = f"transformer.layers.{layer}."
        for name, other in NAMES.items():
            ours[f"layers.{layer}.{name}"] = theirs[prefix + other]
        name = f"layers.{layer}.attention."
        ours[name + "position_map.weight"] = theirs[prefix + "dec_attn.r_net.weight"][
            :, halves
        ]
        maps = theirs[prefix + "dec_attn.qkv_net.weight"].chunk(3)
        for part, weight in zip(("query", "key", "value"), maps, strict=True):
            ours[f"{name}{part}_map.weight"] = weight
        for part, other in (("content", "r_w_bias"), ("position", "r_r_bias")):
            bias = theirs[f"{prefix}dec_attn.{other}"]
            ours[f"{name}{part}_bias"] = bias.view(HEADS, 1, -1)
    for i in range(3 if kind == "post" else 1):
        ours[f"embedding.tables.{i}"] = theirs[
            f"transformer.word_emb.emb_layers.{i}.weight"
        ]
        if not tied:
            ours[f"output.tables.{i}"] = theirs[f"crit.out_layers.{i}.weight"]
        if i:
            up = theirs[f"transformer.word_emb.emb_projs.{i}"]
            ours[f"embedding.maps.{i}.weight"] = up
            ours[f"output.maps.{i}.weight"] = theirs[f"crit.out_projs.{i}"].T
    if kind == "post":
        ours["output.clusters"] = theirs["crit.cluster_weight"]
    return ours


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("post", {"mem_len": 7, "cutoffs": (5, 11), "div_value": 2, "tied": True}),
        ("pre", {"mem_len": 6, "same_length": True, "clamp_len": 4, "tied": False}),
    ],
)
def test_four_segments_are_those_of_transformers_and_gradients_too(kind, options):
    config = TransformerXLConfig(23, WIDTH, HEADS, 2, 14, norm=kind, **options)
    model = TransformerXL(config).eval()
    model.norm = nn.Identity()  # theirs does not normalise the end of the stack
    weights = recorded(kind, "weight", config.tied)
    extra = set(model.state_dict()) - set(weights)
    assert extra <= {"output.clusters", *(f"output.tables.{i}" for i in range(3))}
    model.load_state_dict(weights, strict=False)
    memories = torch.zeros(2, 2, config.mem_len, WIDTH)  # theirs begins with zeros
    total = 0.0
    for i in range(4):
        tokens, mixture, scores, remembered = (
            torch.from_numpy(REFERENCE[f"{kind}.{name}.{i}"])
            for name in ("tokens", "mixture", "scores", "memories")
        )
        found, memories = model(tokens, memories)
        assert_near(found, scores, 8e-5, f"segment {i}")
        assert_near(memories, remembered, 8e-5, f"memories after segment {i}")
        total = total + (found * mixture).sum()
    total.backward()
    parameters = dict(model.named_parameters())
    for name, gradient in recorded(kind, "gradient", config.tied).items():
        if name in parameters:
            scale = gradient.abs().max().item()
            assert_near(parameters[name].grad, gradient, 8e-5 * max(scale, 1.0), name)


@pytest.mark.parametrize(("layers", "norm"), [(1, "pre"), (3, "pre"), (3, "post")])
def test_segments_with_memory_are_the_text_read_at_once(layers, norm):
    model = small(layers=layers, mem_len=20, norm=norm)
    tokens = torch.randint(0, V, (B, 11))
    whole, _ = model(tokens)
    memories, parts = None, []
    for segment in tokens.split([4, 1, 6], dim=1):
        part, memories = model(segment, memories)
        parts.append(part)
    assert_near(torch.cat(parts, dim=1), whole)
    assert memories.shape == (layers, B, 11, D)


def test_memory_begins_empty_and_grows_to_its_length():
    model, memories, lengths = small(), None, []
    for _ in range(3):
        _, memories = model(torch.randint(0, V, (B, T)), memories)
        lengths.append(memories.shape[2])
    assert lengths == [3, 4, 4]
    assert not memories.requires_grad


def test_the_last_layer_sees_layers_times_memory_back():
    """A changed symbol reaches as many positions on as layers × mem_len allow."""
    model = small(mem_len=2, layers=2, same_length=True, tied=False)
    tokens = torch.randint(0, V, (1, 9))
    changed = tokens.clone()
    changed[0, 2] = (tokens[0, 2] + 1) % V
    outputs = []
    for text in (tokens, changed):
        memories, parts = None, []
        for segment in text.split(1, dim=1):
            part, memories = model(segment, memories)
            parts.append(part)
        outputs.append(torch.cat(parts, dim=1))
    apart = (outputs[0] - outputs[1]).abs().amax(dim=(0, 2))
    # each layer looks at mem_len keys, itself included: one position back here
    assert (apart > 0).nonzero().flatten().tolist() == [2, 3, 4]


@pytest.mark.parametrize("t", [2, 3, 5])
def test_same_length_gives_every_query_as_many_keys(t):
    model = small(same_length=True, layers=1)
    memories = torch.randn(1, B, M, D)
    with record_attention(model) as maps:
        model(torch.randint(0, V, (B, t)), memories)
    # the map is recorded with the mask that the layer got
    seen = maps["layers.0.attention"][0] > 0
    assert (seen.sum(-1) == M).all()
    for i in range(t):
        assert seen[0, 0, i].nonzero().flatten().tolist() == list(range(i + 1, i + 5))


def test_recorded_weights_are_those_that_the_model_used():
    """With a memory, clamped distances and dropout, which positions have too."""
    model = small(layers=2, clamp_len=3, dropout=0.5).train()
    for name, parameter in model.named_parameters():
        if name.endswith("_bias"):
            nn.init.normal_(parameter)
    attention, calls = model.layers[1].attention, []
    attention.dropout = 0.0  # of the weights alone, so that the output is made of them
    attention.register_forward_hook(
        lambda module, args, options, output: calls.append((args[1], output)),
        with_kwargs=True,
    )
    tokens, memories = torch.randint(0, V, (B, T)), torch.randn(2, B, M, D)

    def run():
        torch.manual_seed(7)
        return model(tokens, memories)[0]

    plain = run()
    with record_attention(model) as maps:
        assert torch.equal(run(), plain), "outputs stay what they were"
    (weights,), (key, output) = maps["layers.1.attention"], calls[-1]
    values = attention.value_map(key).unflatten(-1, (H, -1)).transpose(1, 2)
    heads = (weights @ values).transpose(1, 2).flatten(2)
    assert_near(attention.output_map(heads), output)


@pytest.mark.parametrize("autocast", [False, True])
def test_weights_are_in_single_precision_at_least(autocast):
    module = attention() if autocast else attention().bfloat16()
    key = torch.randn(B, S, D).to(module.content_bias.dtype)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        weights = module.weights(key[:, M:], key)
    assert weights.dtype == torch.float32
    assert_near(weights.sum(-1), torch.ones(B, H, T), 1e-6)


def test_large_queries_and_keys_do_not_overflow():
    module = attention().half()
    with torch.no_grad():  # q and k of some 200, whose product is above 65,504
        for parameter in (module.query_map.weight, module.key_map.weight):
            parameter.mul_(200 / parameter.std())
    x = torch.randn(B, S, D).half() / D**0.5
    with record_attention(module) as maps:
        assert module(x).isfinite().all()
    assert maps[""][0].isfinite().all()


def test_targets_may_be_none():
    loss, _ = small().loss(torch.randint(0, V, (B, T)), torch.zeros(B, 0).long())
    assert loss.shape == (B, 0)


def test_lengths_may_change_after_training():
    model = small()
    tokens = torch.randint(0, V, (B, 6))
    _, memories = model(tokens)
    model.config = replace(model.config, mem_len=6)
    assert model(tokens, memories)[1].shape[2] == 6


def test_extended_context_is_read_again_and_predicted_once():
    model = small(ext_len=2, mem_len=20)
    text = torch.randint(0, V, (B, 10))
    whole, _ = model.loss(text[:, :-1], text[:, 1:])
    first, memories = model.loss(text[:, :5], text[:, 1:6])
    assert memories.shape[2] == 3
    second, _ = model.loss(text[:, 3:9], text[:, 6:], memories)
    assert_near(torch.cat([first, second], dim=1), whole, 8e-5)


def test_loss_is_that_of_the_log_probabilities():
    for cutoffs in ((), (3, 7)):
        model = small(cutoffs=cutoffs, div_value=2)
        tokens, target = torch.randint(0, V, (2, B, T))
        logits, memories = model(tokens)
        assert_near(logits.exp().sum(-1), torch.ones(B, T), 1e-5)
        losses, same = model.loss(tokens, target)
        assert_near(losses, -logits.gather(-1, target[..., None])[..., 0], 1e-5)
        assert torch.equal(memories, same)


def test_tables_are_shared_if_tied_and_no_parameter_is_left_without_gradient():
    for tied in (True, False):
        model = small(tied=tied, cutoffs=(3, 7), div_value=2)
        shared = model.output.tables[1] is model.embedding.tables[1]
        assert shared == tied
        tokens = torch.randint(0, V, (B, 30))
        model.loss(tokens, tokens.flip(1))[0].sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_dropout_reaches_embeddings_positions_and_output():
    model = small(dropout=0.5, layers=1).train()
    calls = []
    model.dropout.register_forward_hook(lambda m, args, out: calls.append(out.shape))
    model(torch.randint(0, V, (B, T)), torch.randn(1, B, M, D))
    assert sorted(calls) == sorted([(S, D), (B, T, D), (B, T, D)])
    assert model.layers[0].attention.dropout == model.dropout.p == 0.5


def test_the_table_of_positions_is_no_part_of_what_is_saved():
    model = small()
    model(torch.randint(0, V, (B, T)))
    assert "table" not in model.state_dict()
    first = model.table
    model(torch.randint(0, V, (B, 1)))
    assert model.table is first


def test_norm_says_where_it_stands():
    assert isinstance(small(norm="pre").norm, nn.LayerNorm)
    assert isinstance(small(norm="post").norm, nn.Identity)
    model = small(norm="pre")
    model.norm.reset_parameters()
    ends = []
    model.output.register_forward_hook(lambda m, args, out: ends.append(args[0]))
    model(torch.randint(0, V, (B, T)))
    assert_near(ends[0].mean(-1), torch.zeros(B, T))
    assert_near(ends[0].std(-1, correction=0), torch.ones(B, T), 1e-3)


# ---- errors ------------------------------------------------------------------

BAD = table("""
    model(tokens[:1], memories)
        memories must have the shape (layers, b, _, d) with b=1 as in tokens
    model(tokens, memories[:1])
        memories must have the shape (layers, b, _, d) with layers=2 as in self.config
    model(tokens, memories[..., :6])
        memories must have the shape (layers, b, _, d) with d=10 as in self.config
    model(tokens, torch.randn(2, 2, 5, 10))
        memories must be at most mem_len, got memories=5 and mem_len=4
    model(tokens + 13)
        tokens must hold integers from 0 to 12, got
    model.loss(tokens, tokens - 13)
        target must hold integers from 0 to 12, got
    model.loss(tokens[:, :2], tokens)
        targets must be at most tokens, got targets=3 and tokens=2
    model(tokens.float())
        tokens must be a tensor of integers, got torch.float32
    relative_shift(torch.randn(5, 3))
        queries must be at most keys, got queries=5 and keys=3
    model.layers[0].attention(x, mask=torch.ones(1, 1, 4, 3, dtype=torch.bool))
        mask must be broadcastable to the shape (2, 5, 3, 3)
    update_memory(x, x, -1)
        mem_len must be an integer ≥ 0, got -1
    TransformerXLConfig(13, same_length=True)
        same_length needs mem_len ≥ 1, got mem_len=0
    TransformerXLConfig(13, d_model=9, heads=3)
        d_model must be even, got 9
    TransformerXLConfig(13, d_model=10, heads=3)
        heads must divide d_model, got heads=3 and d_model=10
    TransformerXLConfig(13, norm_kind='none')
        norm_kind must be one of 'layer', 'rms', got 'none'
    TransformerXLConfig(13, norm='none')
        norm must be one of 'pre', 'post', got 'none'
    TransformerXLConfig(13, dropout=1.0)
        dropout must be a number in [0, 1), got 1.0
    TransformerXLConfig(13, layers=0)
        layers must be an integer ≥ 1, got 0
    TransformerXLConfig(13, clamp_len=-1)
        clamp_len must be an integer ≥ 0, got -1
    TransformerXLConfig(13, ext_len=-1)
        ext_len must be an integer ≥ 0, got -1
""")


@pytest.mark.parametrize("call", BAD)
def test_errors_name_argument_value_and_expectation(call):
    names = {
        "model": TransformerXL(SMALL),
        "tokens": torch.randint(0, V, (B, T)),
        "memories": torch.randn(2, B, M, D),
        "x": torch.randn(B, T, D),
    }
    assert_refused(call, BAD[call], globals() | names)
