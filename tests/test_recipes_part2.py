"""annotated/recipes_part2.py: what was recorded is what is trained."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from annotated.recipes_part2 import (
    COPY,
    COPY_TRAINING,
    DEEP,
    END,
    RATE_SHAPES,
    VOCAB,
    SeesAhead,
    Shifted,
    copy_batches,
    copy_rate,
    exact_copies,
    next_symbol_loss,
    take_away,
    train_copy,
    train_deep,
    with_end,
)
from annotated.transformer import Transformer, TransformerConfig

RESULTS = Path(__file__).parents[1] / "book" / "results"


def recorded(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


# ---- the records ---------------------------------------------------------------


def test_every_record_is_of_its_recipe():
    for name in ("copy_task", "ablations"):
        copying = recorded(name)
        assert (copying["config"], copying["recipe"]) == (COPY, COPY_TRAINING)
    depth = recorded("copy_depth")
    assert (depth["config"], depth["recipe"].keys()) == (COPY, COPY_TRAINING.keys())
    warmup = recorded("warmup")
    assert warmup["config"] == DEEP
    assert {row["shape"] for row in warmup["rows"]} == set(RATE_SHAPES)


def test_the_copy_task_has_its_recorded_losses():
    run = recorded("copy_task")["main"][0]
    torch.manual_seed(run["seed"])
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    batches = copy_batches(run["seed"], 8, COPY_TRAINING["batch"])
    steps = COPY_TRAINING["steps"]  # the schedule's; only a few are taken
    losses = [record["loss"] for record in train_copy(model, batches, steps)]
    assert losses == pytest.approx(run["losses"][:8], rel=2e-3)
    assert sum(p.numel() for p in model.parameters()) == run["parameters"]


# ---- rates -----------------------------------------------------------------------


def test_the_rate_of_the_copy_task_goes_up_stays_and_goes_down():
    rates = [copy_rate(done, 250) for done in range(250)]
    assert rates[:3] == [0.02, 0.04, 0.06] and rates[49:151] == [1.0] * 102
    assert rates[199:201] == pytest.approx([0.51, 0.5]) and rates[-1] == 0.01
    assert copy_rate(249, 250, fall=0) == 1.0 == copy_rate(299, 500)
    assert copy_rate(0, 250, warmup=1) == 1.0 == copy_rate(3, 250, warmup=4)


@pytest.mark.parametrize(
    ("shape", "shares"),
    [
        ("constant", [1, 1, 1, 1]),
        ("climbing, then constant", [0.5, 1, 1, 1]),
        ("falling", [1, 1, 0.5, 0.25]),
        ("climbing, then falling", [0.5, 1, 0.5, 0.25]),
    ],
)
def test_a_rate_climbs_for_forty_steps_or_falls_after_them(shape, shares):
    assert [RATE_SHAPES[shape](n) for n in (20, 40, 160, 640)] == shares


def test_step_n_of_the_deep_model_has_the_rate_of_n():
    history = train_deep(lambda n: n / 1000, 3, 4, "cpu")
    assert [r["learning_rate"] for r in history] == [0.001, 0.002, 0.003, 0.004]


# ---- the copy task ---------------------------------------------------------------


def test_the_loss_is_the_mean_over_the_next_symbols():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **DEEP))
    source, target = next(copy_batches(0, 1, 5, length=8, shortest=3))
    logits = model(source, target[:, :-1]).log_softmax(dim=-1)
    wanted = [
        -logits[i, j, symbol]
        for i, row in enumerate(target[:, 1:].tolist())
        for j, symbol in enumerate(row)
        if symbol
    ]
    loss = next_symbol_loss(model, (source, target))
    torch.testing.assert_close(loss, torch.stack(wanted).mean())


def test_an_end_follows_the_last_symbol():
    target = torch.tensor([[1, 5, 0, 0], [1, 2, 3, 4]])
    assert with_end(target).tolist() == [[1, 5, END, 0, 0], [1, 2, 3, 4, END]]
    one, other = (next(copy_batches(1, 1, 6, end=end)) for end in (True, False))
    assert torch.equal(one[0], other[0]) and torch.equal(one[1], with_end(other[1]))


class Copies(nn.Module):
    """Writes each source once more, but makes a mistake in those that end in 2."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(1, 1)
        self.config = TransformerConfig(VOCAB, VOCAB, **COPY)

    def encode(self, source):
        return source, None

    def decode(self, target, source, mask):
        step = target.shape[1]
        wrong = (source[:, -1] == 2) & (step == 4)
        symbols = source[:, 1 : step + 1].masked_fill(wrong[:, None], 1)
        return torch.nn.functional.one_hot(symbols, VOCAB).float()


def test_a_sequence_counts_only_without_a_fault():
    source, _ = next(copy_batches(7, 1, 200))
    wrong = (source[:, -1] == 2) & (source[:, 4] != 1)
    assert 0 < wrong.sum() < 40
    assert exact_copies(Copies(), seed=7, count=200) == 200 - wrong.sum()


def test_the_mistake_sees_ahead_and_the_model_does_not():
    torch.manual_seed(0)
    config = TransformerConfig(VOCAB, VOCAB, **COPY)
    source, target = next(copy_batches(0, 1, 2))
    changed = target.clone()
    changed[:, -1] = target[:, -1] % 10 + 1
    for kind in (Transformer, SeesAhead):
        model = kind(config).eval()
        same = torch.equal(model(source, target)[:, 0], model(source, changed)[:, 0])
        assert same == (kind is Transformer)


def test_positions_are_shifted_in_training_alone():
    positions, x = Shifted(8, 32), torch.zeros(1, 3, 8)
    positions.offset = 4
    moved = positions(x)
    plain = positions.eval()(x)
    assert torch.equal(moved, positions(x, start=4)) and not torch.equal(moved, plain)


# ---- taking a part away ----------------------------------------------------------


def sizes_of(model: Transformer) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits for one source in its order and turned round, over the same target."""
    model = model.double().eval()
    source, target = next(copy_batches(0, 1, 2))
    turned = torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
    return model(source, target).detach(), model(turned, target).detach()


@pytest.mark.parametrize(
    ("part", "norms"),
    [
        ("residual", 12),
        ("norm", 0),
        ("network", 8),
        ("encoder", 7),
        ("self-attention", 10),
        ("positions", 12),
    ],
)
def test_a_part_is_taken_out_of_every_layer(part, norms):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY | {"layers": 2}))
    whole, turned = sizes_of(model)
    assert not torch.allclose(whole, turned)
    assert take_away(model, part) is model
    without, turned = sizes_of(model)
    assert without.isfinite().all() and not torch.allclose(whole, without)
    assert torch.allclose(without, turned) == (part == "positions")
    left = sum(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert left == norms


def test_a_decoder_without_its_self_attention_sees_the_last_symbol_alone():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)).eval()
    source, target = next(copy_batches(0, 1, 2))
    changed = target.clone()
    changed[:, 0] = 2
    assert not torch.equal(model(source, target)[:, 1:], model(source, changed)[:, 1:])
    take_away(model, "self-attention")
    assert torch.equal(model(source, target)[:, 1:], model(source, changed)[:, 1:])
    self_attention = model.encoder.layers[0].attention
    assert sum(p.numel() for p in self_attention.parameters()) > 0


def test_without_its_encoder_the_memory_is_the_embedded_source():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)).eval()
    source, _ = next(copy_batches(0, 1, 2))
    memory, mask = take_away(model, "encoder").encode(source)
    x = model.source_embedding(source) * COPY["d_model"] ** 0.5
    assert torch.equal(memory, model.positions(x))
    assert torch.equal(mask[:, 0, 0], source != 0)


def test_parts_are_taken_away_in_any_order():
    config = TransformerConfig(VOCAB, VOCAB, **COPY)
    parts = ("residual", "norm", "network", "encoder", "self-attention")
    source, target = next(copy_batches(0, 1, 2))
    logits = []
    for several in (parts, parts[::-1]):
        torch.manual_seed(0)
        model = take_away(Transformer(config), *several)
        logits.append(model(source, target))
        maps = [p for name, p in model.named_parameters() if "decoder" in name]
        assert len(maps) == 8  # of the cross-attention, and nothing else
    assert torch.equal(*logits) and logits[0].std() > 0.01


def test_without_its_addition_a_residual_forgets_what_came_in():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    take_away(model, "residual")
    x = torch.randn(1, 2, COPY["d_model"])
    for layer in (*model.encoder.layers, *model.decoder.layers):
        for residual in layer.residuals:
            assert torch.equal(residual(x, torch.zeros_like), torch.zeros_like(x))
            assert torch.equal(residual(x, lambda y: y), residual.norm(x))


def test_only_what_there_is_can_be_taken_away():
    model = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY))
    with pytest.raises(ValueError, match="'decoder'"):
        take_away(model, "decoder")
