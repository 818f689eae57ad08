"""The laboratory's named experiments, in the browser, do what its page says.

Three seeds each; `make test` runs the quick ones with one, `make laboratory` all.
"""

import json
import os

import pytest

from annotated.page.frames import static
from annotated.page.laboratory_runs import laboratory_settings

pytestmark = pytest.mark.covers("laboratory")

EXPERIMENTS = json.loads(static("laboratory.json"))["experiments"]
QUICK = [("whole", 1), ("network", 2), ("mask", 1), ("rate", 3)]
EVERY = [(name, seed) for name in EXPERIMENTS for seed in (1, 2, 3)]

# As the engine's own `serve` does, without pauses to answer messages.
RUN = """(settings) => {
  const training = new E.Training(settings), losses = [];
  let exact = 0;
  while (training.step < settings.steps) {
    losses.push(training.train().loss);
    if (training.step % 25 === 0 && training.exact(64, 1) >= 0.99) {
      exact = training.exact(1000, 2);
      if (exact >= 0.99) break;
    }
  }
  exact = training.exact(settings.causal ? 1000 : 200, 2);
  const loss = losses.slice(-20).reduce((sum, x) => sum + x / 20, 0);
  return { steps: training.step, exact, loss };
}"""


@pytest.fixture(scope="module")
def run(browser):
    page = browser.new_page()
    page.goto("about:blank")
    yield lambda settings, script=RUN: page.evaluate(
        f"(settings) => {{ {static('laboratory_engine.js')};"
        f" const E = laboratoryEngine(); return ({script})(settings); }}",
        settings,
    )
    page.close()


def outcome(run, name: str, seed: int, **changes) -> dict[str, float]:
    """Run an experiment, print what came of it, and return it."""
    found = run(laboratory_settings(name, seed=seed, **changes))
    print(name, seed, changes, found)
    return found


@pytest.mark.parametrize(
    ("name", "seed"), EVERY if os.environ.get("LABORATORY") == "all" else QUICK
)
def test_an_experiment_ends_in_its_bands(run, name, seed):
    found = outcome(run, name, seed)
    for what in ("exact", "loss"):
        low, high = EXPERIMENTS[name][what]
        assert low <= found[what] <= high, (what, found)


ANY = json.loads(static("laboratory.json"))["any"]


@pytest.mark.parametrize(
    "seed", [1, 2, 3] if os.environ.get("LABORATORY") == "all" else [2]
)
def test_it_learns_words_of_any_length_from_the_whole_alphabet(run, seed):
    assert outcome(run, "whole", seed, **ANY)["exact"] >= 0.99


# How often each next letter is right, if all letters before it are.
PLACES = """(settings) => {
  const training = new E.Training(settings), { model, network } = training;
  while (training.step < settings.steps) training.train();
  const right = Array(settings.longest + 1).fill(0), random = new E.Random(5);
  for (let pass = 0; pass < 10; pass += 1) {
    for (let b = 0; b < settings.batch; b += 1) {
      const word = training.word(random);
      model.fill(network, b, word, E.TASKS[settings.task](word));
    }
    network.net.forward();
    network.labels.forEach((label, i) => {
      right[i % right.length] += label === network.result.guesses[i];
    });
  }
  return right.map((n) => n / (10 * settings.batch));
}"""

HEADS = """(settings) => {
  const training = new E.Training(settings), { longest: n, heads, width } = settings;
  while (training.step < settings.steps) {
    training.train();
    if (training.step % 25 === 0 && training.exact(64, 1) >= 0.99
      && training.exact(1000, 2) >= 0.99) break;
  }
  const { parameters } = training.model;
  const map = parameters["decoder.layers.0.cross_attention.output_map.weight"];
  const size = width / heads, whole = Float64Array.from(map.value);
  const random = new E.Random(5), sharp = Array(heads).fill(0);
  for (let word = 0; word < 40; word += 1) {
    const { maps } = training.look(E.spell(training.word(random)));
    const { weights, columns } = maps.find(({ name }) => name.includes("cross"));
    for (let row = 0; row < heads * (n + 1); row += 1) {
      const seen = weights.subarray(row * columns, (row + 1) * columns);
      sharp[Math.floor(row / (n + 1))] += Math.max(...seen);
    }
  }
  const without = sharp.map((_, head) => {
    const its = (i) => Math.floor((i % width) / size) === head;
    map.value.set(whole.map((x, i) => (its(i) ? 0 : x)));
    return training.exact(1000, 2);
  });
  return [Math.min(...sharp), Math.max(...sharp)].map((x) => without[sharp.indexOf(x)]);
}"""


@pytest.mark.parametrize(
    "seed", [1, 2, 3] if os.environ.get("LABORATORY") == "all" else [1]
)
def test_a_blurred_head_matters_little_and_a_sharp_one_much(run, seed):
    blurred, sharp = run(laboratory_settings(seed=seed), HEADS)
    print(seed, blurred, sharp)
    assert 0.955 <= blurred < 0.995 and 0.2 < sharp < 0.35


@pytest.mark.parametrize("seed", [1])
def test_without_positions_the_bag_shrinks(run, seed):
    shares = run(laboratory_settings("positions", seed=seed), PLACES)
    print(shares)
    assert 0.25 < shares[0] < 0.4 and shares[7] > 0.85 and shares[8] > 0.98
    assert 0.45 < sum(shares) / 9 < 0.56


@pytest.mark.skipif(os.environ.get("LABORATORY") != "all", reason="make laboratory")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_comparisons_that_the_page_makes(run, seed):
    def steps(name: str, **changes) -> float:
        return outcome(run, name, seed, **changes)["steps"]

    assert steps("scale", scaled=True) < steps("scale")
    control = {"residual": True, "steps": 400}  # as many as the page gives it
    assert outcome(run, "residual", seed, **control)["exact"] > 0.98
    assert steps("network") <= 1.7 * steps("whole")
    shallow = outcome(run, "residual", seed, layers=1)["loss"]
    assert shallow < 0.6 * outcome(run, "residual", seed)["loss"]
    with_warmup = outcome(run, "warmup", seed, warmup=True)["exact"]
    assert with_warmup > max(0.8, outcome(run, "warmup", seed)["exact"] + 0.3)
