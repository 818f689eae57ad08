"""annotated/page/static/laboratory_engine.js in the browser, against PyTorch."""

import itertools
import json

import pytest
import torch

from annotated.page.frames import static
from annotated.page.laboratory_runs import (
    LABORATORY_TASKS,
    LETTERS,
    LaboratoryTransformer,
    laboratory_batch,
    laboratory_loss,
    laboratory_rate,
    laboratory_settings,
    laboratory_words,
    laboratory_writes,
)
from annotated.positions import sinusoidal_encoding
from annotated.training import noam_rate
from annotated.transformer import Transformer, TransformerConfig

pytestmark = pytest.mark.covers("laboratory")

SWITCHES = {
    "model": ["encoder-decoder", "decoder"],
    "positions": ["none", "sinusoidal", "learned", "rotary"],
    "causal": [True, False],
    "scaled": [True, False],
    "residual": [True, False],
    "norm": ["none", "pre", "post"],
    "feed_forward": [True, False],
    "smoothing": [0, 0.1],
}
# no two sizes are alike; 9 symbols leave a column over in products, a batch of 3 a row
SMALL = {"width": 12, "heads": 3, "inner": 10, "letters": 6, "batch": 3}
SMALL |= {"shortest": 2, "longest": 5}
COMBINATIONS = [
    dict(zip(SWITCHES, values, strict=True))
    for values in itertools.product(*SWITCHES.values())
]
TOLERANCE = 1e-9

# Loss, gradients and what is written, for words that are given. Weights are shaken: at
# their start, biases and gains would hide some faults.
RUN = """([settings, words]) => {
  const { model, network } = new E.Training(settings), random = new E.Random(7);
  model.value.forEach((x, i) => { model.value[i] = x + 0.1 * random.normal(); });
  const answer = E.TASKS[settings.task];
  words.forEach((word, b) => model.fill(network, b, word, answer(word)));
  network.net.forward();
  network.net.backward();
  const list = (part) => Object.fromEntries(Object.entries(model.parameters)
    .map(([name, matrix]) => [name, Array.from(matrix[part])]));
  const { loss } = network.result, labels = Array.from(network.labels);
  const [target, source] = [network.target, network.source].map(
    ({ ids }) => Array.from(ids));
  const value = list("value"), grad = list("grad");
  const same = words.map((word) => Array.from(word.slice(0, settings.shortest)));
  const written = model.write(network, same);
  return JSON.stringify({ loss, labels, target, source, value, grad, same, written });
}"""


def engine_text(fault: tuple[str, str] | None = None) -> str:
    text = static("laboratory_engine.js")
    if fault:
        right, wrong = fault
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    return f"{text}; const E = laboratoryEngine();"


@pytest.fixture(scope="module")
def engine(browser):
    """Run a function in a page that has the engine as E, with a fault or without."""
    page = browser.new_page()

    def run(function: str, argument, fault=None):
        return page.evaluate(
            f"(argument) => {{ {engine_text(fault)}; return ({function})(argument); }}",
            argument,
        )

    yield run
    page.close()


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def settings_of(number: int, switches) -> dict:
    """The tasks, and one or two layers, take turns."""
    task = list(LABORATORY_TASKS)[number % 3]
    layers = 1 + number // 3 % 2
    return laboratory_settings(
        seed=number, task=task, layers=layers, **SMALL, **switches
    )


def words_of(settings) -> list[list[int]]:
    generator = torch.Generator().manual_seed(settings["seed"])
    return laboratory_words(settings, settings["batch"], generator)


def load(model: torch.nn.Module, value) -> None:
    """Give a model the parameters of the engine: all of them, and no others."""
    state = dict(model.named_parameters())
    assert set(state) == set(value)
    with torch.no_grad():
        for name, numbers in value.items():
            state[name].copy_(torch.tensor(numbers).view(state[name].shape))
    if hasattr(model.positions, "table") and "positions.table" not in value:
        rows, d = model.positions.table.shape  # the module's own is in single precision
        angle = torch.arange(rows)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        assert torch.allclose(table.float(), sinusoidal_encoding(rows, d))
        model.positions.table = table


def difference(model, loss, found) -> tuple[float, str]:
    """How far the engine's loss and gradients are from those of a model, and where.

    A gradient is measured against its own largest number. Some are rounding alone, as
    that of a key's bias, which moves no weight: what is below a hundred-thousandth of
    the largest gradient of all is measured against that.
    """
    loss.backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    largest = max(grad.abs().max() for grad in grads.values())
    worst = [(abs(found["loss"] - loss.item()) / abs(loss.item()), "loss")]
    for name, grad in grads.items():
        error = (torch.tensor(found["grad"][name]).view(grad.shape) - grad).abs().max()
        worst.append(((error / max(grad.abs().max(), 1e-5 * largest)).item(), name))
    return max(worst)


def compared(engine, settings, fault=None) -> tuple[float, str]:
    words = words_of(settings)
    found = json.loads(engine(RUN, [settings, words], fault))
    for name, rows in zip(
        ("source", "target", "labels"), laboratory_batch(settings, words), strict=True
    ):
        assert found[name] == rows.flatten().tolist(), name
    model = LaboratoryTransformer(settings)
    load(model, found["value"])
    worst = difference(model, laboratory_loss(model, settings, words), found)
    assert fault or found["written"] == laboratory_writes(
        model, settings, found["same"]
    )
    return worst


@pytest.mark.parametrize("part", range(8))
def test_loss_and_gradients_for_every_combination_of_switches(engine, part):
    for number in range(part, len(COMBINATIONS), 8):
        settings = settings_of(number, COMBINATIONS[number])
        worst, name = compared(engine, settings)
        assert worst < TOLERANCE, f"{name} of {settings}: {worst}"


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_books_own_class_gives_the_same(engine, norm):
    settings = settings_of(3, {"norm": norm})
    words = words_of(settings)
    found = json.loads(engine(RUN, [settings, words]))
    v = LETTERS + settings["letters"]
    sizes = {"d_model": 12, "heads": 3, "layers": settings["layers"], "d_ff": 10}
    model = Transformer(TransformerConfig(v, v, **sizes, dropout=0.0, norm=norm))
    load(model, found["value"])
    assert (
        difference(model, laboratory_loss(model, settings, words), found)[0] < TOLERANCE
    )


def test_steps_of_adam(engine):
    settings = settings_of(0, {"norm": "pre", "smoothing": 0.1, "hold": 4})
    steps = json.loads(
        engine(
            """(settings) => {
              const training = new E.Training(settings), { model } = training;
              const states = [{ value: Array.from(model.value) }];
              for (let i = 0; i < 6; i += 1) {
                training.train();
                const value = Array.from(model.value), grad = Array.from(model.grad);
                states.push({ value, grad, rate: training.rate(training.step) });
              }
              return JSON.stringify(states);
            }""",
            settings,
        )
    )
    value = torch.tensor(steps[0]["value"], requires_grad=True)
    adam = torch.optim.Adam([value], betas=(0.9, 0.98), eps=1e-9)
    factor = settings["rate"] * (settings["width"] * 4) ** 0.5
    for i, step in enumerate(steps[1:], start=1):
        rate = noam_rate(i, settings["width"], 4, factor)
        assert step["rate"] == pytest.approx(rate) == laboratory_rate(settings, i)
        adam.param_groups[0]["lr"] = rate
        value.grad = torch.tensor(step["grad"])
        adam.step()
        assert (value - torch.tensor(step["value"])).abs().max() < 1e-14


def test_without_warm_up_the_rate_begins_at_its_peak(engine):
    settings = laboratory_settings(warmup=False)
    rates = engine(
        """(settings) => {
          const training = new E.Training(settings);
          return [1, 49, 50, 200].map((step) => training.rate(step));
        }""",
        settings,
    )
    assert rates == pytest.approx([0.005, 0.005, 0.005, 0.0025])
    assert rates == pytest.approx(
        [laboratory_rate(settings, n) for n in (1, 49, 50, 200)]
    )


def test_exponentials_and_turns(engine):
    x = torch.cat([torch.linspace(-699, 699, 997), torch.linspace(-3, 3, 98)])
    found = torch.tensor(engine("(x) => x.map(E.exp)", x.tolist()))
    assert torch.allclose(found, x.exp(), rtol=2e-14, atol=0)
    assert engine("() => [E.exp(-1e9), E.exp(-Infinity), E.exp(1e9)]", None)[:2] == [
        0,
        0,
    ]
    table = engine(
        "() => { const { cosine, sine } = E.turns(30, 8);"
        " return [cosine, sine].map((x) => Array.from(x)); }",
        None,
    )
    angles = torch.arange(30)[:, None] / 10000 ** (torch.arange(0, 8, 2) / 8)
    wanted = torch.stack([angles.cos(), angles.sin()]).flatten(1)
    assert torch.allclose(torch.tensor(table), wanted, rtol=0, atol=1e-13)


def test_random_numbers_are_spread_as_they_should(engine):
    draws = engine(
        """() => {
          const random = new E.Random(5);
          const draw = (what) => Array.from({ length: 20000 }, what);
          return [draw(() => random.uniform()), draw(() => random.normal()),
            draw(() => random.below(3))];
        }""",
        None,
    )
    uniform, normal, below = map(torch.tensor, draws)
    assert 0 <= uniform.min() and uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=0.01)
    assert normal.mean() == pytest.approx(0, abs=0.03)
    assert normal.std() == pytest.approx(1, abs=0.02)
    assert (normal.abs() < 1).double().mean() == pytest.approx(0.683, abs=0.02)
    shares = below.bincount(minlength=3) / len(below)
    assert shares.tolist() == pytest.approx([1 / 3] * 3, abs=0.02)


TRAINED = """([settings, steps]) => {
  const training = new E.Training(settings), losses = [];
  for (let i = 0; i < steps; i += 1) losses.push(training.train().loss);
  const share = training.exact(60, 3), random = new E.Random(3);
  const { model, network } = training;
  let right = 0;
  for (let b = 0; b < 60; b += settings.batch) {
    const words = Array.from({ length: Math.min(settings.batch, 60 - b) },
      () => training.word(random));
    model.write(network, words).forEach((ids, i) => {
      right += String(ids) === String(E.TASKS[settings.task](words[i]));
    });
  }
  return { losses, share, written: right / 60, look: training.look("abc") };
}"""
EASY = {"letters": 3, "shortest": 2, "longest": 3, "width": 16, "heads": 2}


@pytest.mark.parametrize("model", SWITCHES["model"])
def test_words_told_right_are_words_written_right(engine, model):
    settings = laboratory_settings(model=model, **EASY)
    found = engine(TRAINED, [settings, 60])
    assert 0.1 < found["share"] < 1
    assert found["share"] == found["written"]


def test_a_seed_repeats_a_run_and_another_gives_another(engine):
    one, same, other = (
        engine(TRAINED, [laboratory_settings(seed=seed, **EASY), 5])["losses"]
        for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_run_of_a_seed_is_the_same_everywhere(engine):
    # recorded once; nothing that a browser may round in its own way takes part in it
    found = engine(TRAINED, [laboratory_settings(**EASY), 40])
    assert found["losses"][-1] == pytest.approx(0.5251937167213651, rel=1e-14)


def test_a_look_at_a_word_has_every_map(engine):
    settings = laboratory_settings(layers=2, **EASY)
    look = engine(TRAINED, [settings, 1])["look"]
    assert (look["text"], look["wanted"]) == ("abc", "cba")
    names = [f"encoder.layers.{n}.attention" for n in (0, 1)]
    for n in (0, 1):
        names += [f"decoder.layers.{n}.{part}attention" for part in ("", "cross_")]
    assert [one["name"] for one in look["maps"]] == names
    cross = look["maps"][-1]
    assert (cross["heads"], cross["rows"], cross["columns"]) == (2, 4, 4)
    weights = torch.tensor(cross["weights"]).view(2, 4, 4)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4), atol=1e-6)


FAULTS = [  # what is right, what stands in its place, and the switches that must tell
    ("1 / Math.sqrt(d / heads) : 1", "1 : 1", {}),
    ("1 / Math.sqrt(d / heads) : 1", "1 / Math.sqrt(d) : 1", {}),
    ("settings.causal ? (b, i)", "!settings.causal ? (b, i)", {}),
    ("Math.min(i + 1, target", "Math.min(i + 2, target", {}),
    ("          y.grad[i] += out.grad[i];\n", "", {}),
    ("          x.grad[i] += out.grad[i];\n          y", "          y", {}),
    ("(slopes[j] - mean)", "slopes[j]", {}),
    ("const g = scale * weights", "const g = weights", {}),
    ("k.grad[key + c] += g * q.value[query + c];", "", {}),
    ("v.grad[key + c] += weight * out.grad[query + c];", "", {}),
    ("g - mean - slope * normal[at]", "g - mean", {}),
    ("g - mean - slope * normal[at]", "g - slope * normal[at]", {}),
    ("variance + 1e-5", "variance + 1e-6", {}),
    ("+= factor * out.grad[i]", "+= out.grad[i]", {}),
    ("if (x.value[i] > 0) x.grad[i]", "x.grad[i]", {}),
    ("bias.grad[i % n] += out.grad[i]", "bias.grad[i % n] = out.grad[i]", {}),
    ("j = i < evenM ? evenN : 0", "j = evenN", {}),
    ("j = i < evenM ? evenN : 0", "j = n", {}),
    ("table.grad[i % size] += out.grad[i]", "", {"positions": "learned"}),
    ("- sine[at] * out.grad[i];", "+ sine[at] * out.grad[i];", {"positions": "rotary"}),
    ('positions === "rotary" && x === memory', 'positions === "rotary"',
     {"positions": "rotary"}),
    ('order === "pre" ? norm(x, residual) : x', "norm(x, residual)", {"norm": "post"}),
    ('if (order === "post") x = norm(x, residual);', "", {"norm": "post"}),
    ('return order === "pre" ? norm(x, name) : x;', "return x;", {}),
    ("settings.residual ? net.sum(x, found) : found", "net.sum(x, found)",
     {"residual": False}),
    ("smoothing / (v - 2)", "smoothing / (v - 1)", {"smoothing": 0.1}),
    ("c === PAD ? 0 : share", "share", {"smoothing": 0.1}),
    ("if (labels[r] === PAD) continue;", "", {}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_faults_are_found(engine, number):
    right, wrong, switches = FAULTS[number]
    settings = settings_of(0, switches)
    assert compared(engine, settings)[0] < TOLERANCE
    assert not compared(engine, settings, (right, wrong))[0] < TOLERANCE
