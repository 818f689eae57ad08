"""The laboratory's named experiments, in the browser, do what its page says.

Three seeds each; `make test` runs the quick ones with one, `make laboratory` all.
"""

import json
import os

import pytest

from annotated.frames import static
from annotated.recipes_laboratory import laboratory_settings

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
    yield lambda settings: page.evaluate(
        f"(settings) => {{ {static('laboratory_engine.js')};"
        f" const E = laboratoryEngine(); return ({RUN})(settings); }}",
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


@pytest.mark.skipif(os.environ.get("LABORATORY") != "all", reason="make laboratory")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_comparisons_that_the_page_makes(run, seed):
    def steps(name: str, **changes) -> float:
        return outcome(run, name, seed, **changes)["steps"]

    assert steps("scale", scaled=True) < steps("scale")
    assert outcome(run, "residual", seed, residual=True)["exact"] > 0.98
    assert steps("network") <= 1.7 * steps("whole")
    shallow = outcome(run, "residual", seed, layers=1)["loss"]
    assert shallow < 0.6 * outcome(run, "residual", seed)["loss"]
    with_warmup = outcome(run, "warmup", seed, warmup=True)["exact"]
    assert with_warmup > max(0.8, outcome(run, "warmup", seed)["exact"] + 0.3)
