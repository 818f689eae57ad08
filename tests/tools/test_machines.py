"""tools/machines.py: other machines differ, each always in the same way."""

import json
import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import colab, machines

PAGE = """

# %%
import torch
from IPython.display import display

torch.manual_seed(0)
layer = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(layer.parameters(), lr=1.0)
for _ in range(5):
    optimizer.zero_grad()
    layer(torch.ones(3)).square().sum().backward()
    optimizer.step()


def expect(name, words, value, **band):
    verdict = {"name": name, "words": words, "value": [value], "band": "> 0"}
    verdict["held"] = value > 0
    verdict["unlike"] = {"words": "none", "value": [-1], "outside": True}
    data = {"application/vnd.annotated.finding+json": verdict}
    display(data, raw=True)


weight = layer.weight.double().sum().item()
expect("01-weight", "It moves.", abs(weight), above=0)

# %%
assert weight == 0, "mathematics"
"""


@pytest.fixture
def page(workshop):
    source = workshop.read("notebooks/src/01_tiny.py") + PAGE
    workshop.write("notebooks/src/01_tiny.py", source)
    workshop.tool("notebooks")
    return workshop


def recorded(page):
    return json.loads(page.read("book/results/findings/01.json"))


def sweep(page, *names):
    return page.tool("machines", "--machines", *names)


@pytest.mark.slow
def test_each_machine_finds_its_own_and_runs_once(page):
    first = sweep(page, "noise-1", "noise-2", "plain")
    assert "3 runs" in first.stdout, first.stdout
    record = recorded(page)
    values = record["findings"]["01-weight"]["values"]
    assert len({*map(tuple, values.values())}) == 3
    assert max(values.values())[0] - min(values.values())[0] < 1e-4
    assert "0 runs" in sweep(page, "noise-1", "noise-2").stdout
    page.replace("notebooks/src/01_tiny.py", "range(5)", "range(6)")
    page.tool("notebooks")
    assert "1 runs" in sweep(page, "noise-1").stdout
    again = recorded(page)["findings"]["01-weight"]["values"]
    assert again["noise-1"] != values["noise-1"]
    assert again["noise-2"] == values["noise-2"]


def test_colab_is_made_anew_for_a_process_and_not_for_a_notebook(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(colab, "environment", lambda: made.append("one") or tmp_path)
    monkeypatch.setattr(machines, "with_annotated", lambda python: python)
    machines.environment.cache_clear()
    found = [machines.environment("colab")[0] for _ in range(2)]
    machines.environment.cache_clear()  # not for the tests that come after
    assert (found, made) == ([tmp_path, tmp_path], ["one"])


@pytest.mark.slow
def test_a_machine_is_the_same_each_time(page):
    sweep(page, "noise-1")
    first = recorded(page)["findings"]
    (page.root / "book/results/findings/01.json").unlink()
    sweep(page, "noise-1")
    assert recorded(page)["findings"] == first


@pytest.mark.slow
def test_a_false_assertion_is_noted_and_an_error_ends_the_run(page):
    said = sweep(page, "noise-1")
    assert said.returncode == 1
    assert "assert weight == 0" in said.stdout
    assert recorded(page)["machines"]["noise-1"]["asserts"] == ["weight == 0"]
    page.replace("notebooks/src/01_tiny.py", "= layer.weight", "= wait.weight")
    page.tool("notebooks")
    before = recorded(page)
    assert "stopped: NameError: name 'wait'" in sweep(page, "noise-1").stdout
    assert recorded(page) == before  # what a stopped run found is no record


@pytest.mark.slow
def test_other_machines_are_tried_without_a_record(page):
    said = page.tool("machines", "--noise", "901-902")
    assert "01_tiny on noise-902: 1 findings" in said.stdout
    assert not (page.root / "book/results/findings").exists()


@pytest.mark.slow
def test_ci_runs_what_has_changed_on_one_machine(page):
    def machine():
        return re.search(
            r"on (noise-\d+): 1 finding", page.tool("machines", "--ci").stdout
        )

    assert machine()[1] == machine()[1]  # a second try is the same
    sweep(page, "noise-1")
    assert "0 runs" in page.tool("machines", "--ci").stdout
    page.write("annotated/answer.py", "ANSWER = 42\n")  # drawn, when the module changes
    assert "1 runs" in page.tool("machines", "--ci").stdout


def code(*cells):
    return machines.code_hash(new_notebook(cells=[new_code_cell(c) for c in cells]))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (
            "expect('01-a', 'Words.', x, above=1)",
            "expect('01-a', 'W', x, below=2)",
            True,
        ),
        ("expect('01-a', 'Words.', x, above=1)", "expect('01-b', 'Words.', x)", False),
        ("expect('01-a', 'Words.', x)", "expect('01-a', 'Words.', y)", False),
        ("f(); say('one')", "f(); say('two')", True),
        ("f(); assert 1", "f(); assert 2; print(3)", True),
        ("show(f, caption='one')", "show(f, caption='two')", True),
        ("train(x, steps=10)", "train(x, steps=20)", False),
        ("x = 1; y = x", "x = 1; y = 2", True),
        ("x = 1; y = x", "x = 2; y = x", False),
        ("x = 1; x = 2", "x = 3; x = 2", True),
        ("y = 1\nfor x in a:\n x = y", "y = 2\nfor x in a:\n x = y", False),
        (
            "def f():\n return y\ny = 1; x = f()",
            "def f():\n return y\ny = 2; x = f()",
            False,
        ),
        (
            "def f():\n a.append(1)\nrun(f); x = a",
            "def f():\n a.append(2)\nrun(f); x = a",
            False,
        ),
        ("x = m(); fit(x)", "x = m()", False),
        ("x = m(); draw(x); x.y = 1", "x = m(); x.y = 1; ax.plot(x)", True),
        ("x = m(); x.y = 1", "x = m(); x.y = 2", False),
        ("seed(1); draw(); seed(2); x = m()", "seed(2); x = m()", True),
        ("seed(1); x = m()", "seed(2); x = m()", False),
        ("x = m(); draw('seed 1')", "x = m(); draw('seed 2')", True),
        (
            "y = 1; expect('01-a', 'W', y, unlike=seed)",
            "y = 2; expect('01-a', 'W', y, unlike=seed)",
            False,
        ),
        ("x = m(); o = opt(x.w); o.step()", "x = m(); o = opt(x.w)", False),
        ("x = m(); loss.backward()", "x = m(); (2 * loss).backward()", False),
        ("x = m(); print(train_on(x))", "x = m(); print(x)", False),
        ("x = m(); model.train()", "x = m(); model.eval()", True),
        ("device = setup(seed=0); x = m()", "device = setup(seed=5); x = m()", False),
        ("x = m(below=1)", "x = m(below=2)", False),
        ("from a import R; R['n'] = 1; x = R", "from a import R; x = R", False),
        ("from a import R; R.update(n=1); x = R", "from a import R; x = R", False),
        (
            "from a import c; y = c(trained).f(); x = c(1)",
            "from a import c; x = c(1)",
            True,
        ),
        ("import a; a.close(); x = a.b", "import a; x = a.b", True),
        ("from annotated.a import x", "from annotated.b.c import x", True),
        ("from annotated.a import x", "from other.b import x", False),
    ],
)
def test_what_no_finding_depends_on_changes_without_a_new_run(old, new, same):
    expects = "expect('01-z', 'Words.', x)"
    assert (code(old, expects) == code(new, expects)) is same


def test_a_proof_may_train_for_itself():
    cells = [new_code_cell("expect('01-z', 'Words.', x)")]
    before = machines.code_hash(new_notebook(cells=cells))
    for tags, same in ((["proof"], True), ([], False)):
        proof = new_code_cell("y = m(); y.backward()", metadata={"tags": tags})
        both = machines.code_hash(new_notebook(cells=[proof, *cells]))
        assert (both == before) is same
