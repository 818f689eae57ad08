"""ch16/drawings_b.py: two blocks, planks and what they buy, a model, a cache."""

import pytest
import torch

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch16 import drawings_b as ch16b
from annotated.chapters.ch16.planks import PLANKS, PLANKS_RECIPE
from annotated.data.datasets import DataError
from annotated.data.glassllm import glass_model
from annotated.positions import frequencies


def record(rate, bits, seconds=None):
    """Return a record of models that have three seeds 0.01 apart, but for ``bits``."""
    rows = [
        {"plank": name, "seed": seed, "bits": value, "parameters": 1000}
        for name in PLANKS
        for seed, value in enumerate(bits.get(name, [2.5, 2.51, 2.52]))
    ]
    recipe = PLANKS_RECIPE._replace(rate=rate)._asdict()
    times = {name: (seconds or {}).get(name, [2.0, 9.0, 2.0]) for name in PLANKS}
    return {"recipe": recipe, "rows": rows, "seconds": times}


GOOD, BAD, MIXED = [2.41, 2.45, 2.40], [2.6, 2.61, 2.62], [2.45, 2.505, 2.46]
RECORDS = [
    record(
        0.01,
        {"rotary": GOOD, "no biases": BAD, "SwiGLU": MIXED, "window": GOOD}
        | {"grouped": GOOD, "GPT-2, larger": [2.49, 2.49, 2.49]},
        {"SwiGLU": [3.0, 3.0, 50.0]},
    ),
    record(
        0.005,
        {"rotary": [2.38] * 3, "no biases": BAD, "SwiGLU": GOOD, "window": BAD}
        | {"GPT-2, larger": [2.47, 2.47, 2.47]},
        {"SwiGLU": [5.0, 5.0, 5.0]},
    ),
]

# ---- the planks ----------------------------------------------------------------


def rms_norm(x, gain, eps=1e-6):
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


def swiglu(x, W_gate, W_inner, W_outer):
    gate = torch.nn.functional.silu(x @ W_gate.T)
    return (gate * (x @ W_inner.T)) @ W_outer.T


def turn(x):
    t, k = x.shape[-2:]
    angles = torch.arange(t)[:, None] * frequencies(k)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@pytest.mark.parametrize(
    "wrong",
    [
        (lambda x, gain: rms_norm(x - x.mean(dim=-1, keepdim=True), gain), None, None),
        (lambda x, gain: rms_norm(x, 1 + 0 * gain), None, None),
        (None, lambda x, gate, inner, outer: swiglu(x, inner, gate, outer), None),
        (None, None, lambda x: turn(x.flip(-1)).flip(-1)),
        (None, None, lambda x: x),
    ],
)
def test_parts_are_proved_and_wrong_ones_refused(wrong, capsys):
    right = rms_norm, swiglu, turn
    ch16b.check_parts(*right)
    assert capsys.readouterr().out.count("✓") == 3
    with pytest.raises(AssertionError):
        ch16b.check_parts(*(w or r for w, r in zip(wrong, right, strict=True)))


def test_scores_grow_with_the_maps_but_for_the_norm(capsys, monkeypatch):
    ch16b.check_scores()
    assert "below √16" in capsys.readouterr().out
    monkeypatch.setattr(ch16b, "QueryKeyNormAttention", MultiHeadAttention)
    with pytest.raises(AssertionError):
        ch16b.check_scores()


# ---- what each one buys --------------------------------------------------------


def test_gains_are_counted_from_the_mean_of_gpt2():
    found = ch16b.gains(RECORDS[0])
    assert found["rotary"] == pytest.approx([0.1, 0.06, 0.11])
    assert found["GPT-2"] == pytest.approx([0.01, 0, -0.01])
    assert [*found] == [*PLANKS]
    assert ch16b.mean_gains(RECORDS, "rotary") == pytest.approx([0.09, 0.13])
    assert ch16b.mean_gains(RECORDS, "GPT-2, larger") == pytest.approx([0.02, 0.04])


def test_told_apart_only_by_all_seeds_at_both_rates():
    wanted = {"rotary": "better", "no biases": "worse", "GPT-2, larger": "better"}
    for name in PLANKS:
        assert ch16b.told(RECORDS, name) == wanted.get(name, ""), name
    assert ch16b.told(RECORDS, "rotary", "no biases") == "better"
    assert ch16b.told(RECORDS, "GPT-2, larger", "rotary") == "worse"
    touching = [record(0.01, {"rotary": [2.5, 2.4, 2.4]})] * 2
    assert ch16b.told(touching, "rotary") == "", "as good as GPT-2's best isn't better"


def test_time_is_a_ratio_of_medians_of_both_records():
    assert ch16b.step_ratio(RECORDS, "SwiGLU") == 2.5
    assert ch16b.step_ratio(RECORDS, "rotary") == 1


def test_caches_of_a_thousand_tokens():
    caches = {name: ch16b.cache_kilobytes(name) for name in PLANKS}
    assert caches["GPT-2"] == caches["rotary"] == 2 * 4 * 1000 * 2 * 64 / 1000
    assert caches["grouped"] == caches["GPT-2"] / 2
    assert caches["window"] == caches["GPT-2"] * 32 / 1000
    assert caches["all"] == caches["window"] / 2
    assert ch16b.cache_kilobytes("window", 20) == ch16b.cache_kilobytes("GPT-2", 20)


def test_the_best_of_the_others_is_set_beside_rotary():
    found = ch16b.beside_rotary(RECORDS, ["GPT-2, larger", "no biases"])
    assert found == pytest.approx([0.02 / 0.09, 0.04 / 0.13])
    assert ch16b.beside_rotary(RECORDS, ["rotary"]) == pytest.approx([1, 1])


# ---- a trained one -------------------------------------------------------------


def block(w, i, x, repeat=2):
    def weight(name):
        return w[f"model.layers.{i}.{name}.weight"]

    y = rms_norm(x, weight("input_layernorm"))
    q, k, v = (y @ weight(f"self_attn.{one}_proj").T for one in "qkv")
    q, k, v = (z.unflatten(-1, (-1, 32)).transpose(1, 2) for z in (q, k, v))
    if repeat:
        k, v = (z.repeat_interleave(2, dim=1) for z in (k, v))
    else:
        k, v = (z.repeat(1, 2, 1, 1) for z in (k, v))
    scores = turn(q) @ turn(k).mT / 32**0.5
    later = torch.ones(scores.shape[-2:]).triu(1).bool()
    heads = scores.masked_fill(later, -torch.inf).softmax(dim=-1) @ v
    x = x + heads.transpose(1, 2).flatten(2) @ weight("self_attn.o_proj").T
    y = rms_norm(x, weight("post_attention_layernorm"))
    maps = (weight(f"mlp.{one}_proj") for one in ("gate", "up", "down"))
    return x + swiglu(y, *maps)


def test_a_block_on_plain_tensors_is_ours_and_wrong_ones_are_refused(capsys):
    w = ch16b.weights()
    ch16b.check_today(block, w)
    said = capsys.readouterr().out
    assert said.count("✓") == 3 and "852,608 numbers" in said and "94 tokens" in said
    with pytest.raises(AssertionError):
        ch16b.check_today(lambda w, i, x: block(w, i, x, repeat=0), w)
    with pytest.raises(AssertionError):
        ch16b.check_today(lambda w, i, x: block(w, min(i, 2), x), w)


def test_it_writes_on_by_a_seed():
    model = glass_model()
    one, again, other = (ch16b.story(model, seed) for seed in (0, 0, 1))
    assert one == again != other
    assert one.startswith("Alice looked at the ship") and len(one) > 120
    assert other.startswith("Alice looked at the ship")


def test_wrong_orders_and_epsilons_are_loaded_without_an_error():
    w = ch16b.weights()
    loss = ch16b.careless_losses(w)
    assert loss["right"] < 4 and loss["pairs"] > loss["right"] + 0.3
    assert 0 < abs(loss["epsilon"] - loss["right"]) < 0.01
    from annotated.data.glassllm import encode

    ids = torch.tensor([encode(ch16b.ALICE)])
    with torch.no_grad():
        logits = glass_model()(ids)[0, :-1]
    wanted = torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item()
    assert loss["right"] == pytest.approx(wanted, abs=1e-5)


@pytest.fixture
def missing(monkeypatch, tmp_path):
    from annotated.data import vendored

    monkeypatch.setattr(vendored, "files", lambda name: tmp_path)
    monkeypatch.setattr(vendored, "_addresses", lambda name: [])


CARROLL = {"losses": {"right": 1.0, "pairs": 2.5, "epsilon": 1.002}}


def test_without_the_file_the_page_says_so(missing, capsys):
    assert ch16b.weights() is None
    ch16b.check_today(block, None)
    assert capsys.readouterr().out.count("is not in this installation") == 2
    said = ch16b.pitfalls_said(None, CARROLL)
    assert "from 1.00 to 2.50 nats" in said and "by 0.002 here" in said


def test_a_damaged_file_is_not_taken_for_a_missing_one(monkeypatch):
    monkeypatch.setitem(ch16b.FILES, "model.safetensors", "0" * 64)
    with pytest.raises(DataError):
        ch16b.weights()


def test_a_third_map_adds_parameters():
    # a third map of 64 · 256 and its bias, four times, beside 214,400 parameters
    surplus = 4 * (64 * 256 + 256) / 214_400
    assert ch16b.swiglu_surplus() == pytest.approx(surplus)


# ---- what a cache holds --------------------------------------------------------


def test_bytes_of_published_models():
    given = {"length": 4096, "texts": 3, "bytes": 2}
    tokens = {
        name: ch16b.cache_bytes(sizes | given)["token"]
        for name, sizes in ch16b.MODELS.items()
    }
    assert tokens == {
        "GPT-2 small": 36_864,
        "GPT-3": 4_718_592,
        "Llama 2 7B": 524_288,
        "Llama 3 8B": 131_072,
        "Mistral 0.1": 131_072,
        "Falcon 7B": 8_192,
        "DeepSeek-V2": 60 * 576 * 2,
    }
