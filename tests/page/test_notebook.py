"""annotated/page/notebook.py: checks that can fail, and that say what failed."""

import ast
import inspect
import json
import math
import random
import re
import textwrap
import time
import warnings

import matplotlib.pyplot as plt
import numpy
import pytest
import torch
from bs4 import BeautifulSoup
from torch import nn

from annotated import attention, masks, require, training
from annotated.page import notebook
from annotated.page.notebook import (
    check_close,
    check_same,
    check_shape,
    cost,
    expect,
    recorded,
    recorded_if_any,
    say,
    setup,
    show,
    show_source,
    show_table,
)


@pytest.fixture(autouse=True)
def no_device_named(monkeypatch):
    monkeypatch.delenv("ANNOTATED_DEVICE", raising=False)


# ---- setup -------------------------------------------------------------------


def draws() -> tuple:
    return torch.rand(3).tolist(), numpy.random.rand(3).tolist(), random.random()


def test_setup_seeds_torch_numpy_and_random():
    setup(seed=3)
    first = draws()
    again = draws()
    setup(seed=3)
    assert draws() == first
    setup(seed=4)
    other = draws()
    for one, two, three in zip(first, again, other, strict=True):
        assert one != two
        assert one != three


def test_setup_says_what_it_runs_on(capsys):
    device = setup(seed=7)
    said = capsys.readouterr().out
    assert torch.__version__ in said
    assert f"{torch.get_num_threads()} thread(s)" in said
    assert "seed 7" in said
    assert device.type != "cpu" or "CPU" in said


def test_a_failed_assertion_says_what_it_means_and_still_fails(capsys):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        setup()
        run = shell.run_cell("assert 1 == 2, 'one is two'")
        said = capsys.readouterr().out
        shell.run_cell("1 / 0")
        other = capsys.readouterr().out
    finally:
        InteractiveShell.clear_instance()
    assert isinstance(run.error_in_exec, AssertionError)
    assert "one is two" in said and "If you changed a cell above" in said
    assert "ZeroDivisionError" in other and "If you changed" not in other


def test_setup_sets_the_style_and_leaves_the_threads():
    threads = torch.get_num_threads()
    plt.rcParams["axes.spines.top"] = True
    setup()
    assert plt.rcParams["axes.spines.top"] is False
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("wanted", "found", "device"),
    [
        ("", False, "cpu"),
        ("", True, "cuda"),
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_the_environment_chooses_the_device(wanted, found, device, monkeypatch):
    monkeypatch.setenv("ANNOTATED_DEVICE", wanted)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "a GPU")
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: None)
    assert setup() == torch.device(device)


def test_no_device_counts_in_tf32():
    units = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [unit.allow_tf32 for unit in units]
    try:
        for unit in units:
            unit.allow_tf32 = True
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            setup()
        assert [unit.allow_tf32 for unit in units] == [False, False]
    finally:
        for unit, kept in zip(units, before, strict=True):
            unit.allow_tf32 = kept


# ---- show_source -------------------------------------------------------------


def brief(x):
    """One line,
    or two."""
    return x


class Checked:
    """Checks its arguments.

    Args:
        size: a number.
    """

    def __init__(self, size: int):
        require.count(
            least=2,
            size=size,
        )
        if size > 9:
            message = f"size is large: {size}"
            require.that(size < 99, message)
        self.size = size  # the last line

    @property
    @require.shapes(s="size")
    def twice(self) -> int:
        """Return it twice.

        Returns:
            The number.
        """
        require.count(size=self.size)
        wanted = require.choice  # not a check
        return self.size * 2 if wanted else 0


SHOWN = '''class Checked:
    """Checks its arguments."""

    def __init__(self, size: int):
        self.size = size  # the last line

    @property
    def twice(self) -> int:
        """Return it twice."""
        wanted = require.choice  # not a check
        return self.size * 2 if wanted else 0'''


@pytest.fixture
def shown(monkeypatch):
    """The sources that were displayed, without the fence around them."""
    things = []

    def display(markdown):
        fenced = re.fullmatch(r"```python\n(.*)\n```", markdown.data, re.DOTALL)
        things.append(fenced[1])

    monkeypatch.setattr("IPython.display.display", display)
    return things


def test_checks_and_the_tails_of_docstrings_are_not_shown(shown):
    show_source(Checked, Checked.__init__)
    assert shown[0] == SHOWN
    assert shown[1] == (
        "def __init__(self, size: int):\n    self.size = size  # the last line"
    ), "a method is moved to the margin"


@pytest.mark.parametrize(
    "thing", [masks.causal_mask, attention.MultiHeadAttention, training.fit]
)
def test_everything_else_is_shown_as_the_module_ships_it(shown, thing):
    show_source(thing)
    (text,), source = shown, textwrap.dedent(inspect.getsource(thing))
    ast.parse(text)
    assert set(text.splitlines()) <= {*source.splitlines(), text.splitlines()[-1]} | {
        line for line in text.splitlines() if line.endswith('"""')
    }
    assert text.count(" # ") == source.count(" # ")
    assert "Args:" not in text and "require." not in text
    left_out = len(source.splitlines()) - len(text.splitlines())
    assert left_out > 3


def test_a_docstring_of_one_paragraph_stays(shown):
    show_source(brief)
    assert shown == [inspect.getsource(brief).rstrip()]


def test_several_things_are_shown_in_order(shown):
    show_source(masks.length_mask, masks.causal_mask)
    assert [text.partition("(")[0] for text in shown] == [
        "def length_mask",
        "def causal_mask",
    ]


def test_a_fold_holds_all_things_behind_its_title(monkeypatch):
    outputs = []
    monkeypatch.setattr("IPython.display.display", outputs.append)
    show_source(masks.length_mask, brief, fold="Two <masks>")
    (text,) = (output.data for output in outputs)
    fences = re.findall(r"\n\n```python\n(.*?)\n```(?=\n\n)", text, re.DOTALL)
    assert text.startswith("<details><summary>Two &lt;masks&gt;</summary>\n\n")
    assert text.endswith("\n\n</details>") and len(fences) == 2
    assert fences[1] == inspect.getsource(brief).rstrip()


# ---- check_shape -------------------------------------------------------------


def test_a_shape_is_printed_by_the_names_of_its_axes(capsys):
    assert check_shape("weights", torch.zeros(2, 3, 5), b=2, t=3, s=5) is None
    assert capsys.readouterr().out == "weights: (b=2, t=3, s=5)\n"


@pytest.mark.parametrize(
    "axes",
    [{"b": 2, "t": 5, "s": 3}, {"b": 2, "t": 3}, {"b": 2, "t": 3, "s": 5, "d": 1}],
)
def test_another_shape_is_an_error(axes):
    with pytest.raises(AssertionError) as caught:
        check_shape("weights", torch.zeros(2, 3, 5), **axes)
    names = ", ".join(f"{letter}={size}" for letter, size in axes.items())
    assert str(caught.value) == (
        f"weights should have shape ({names}), but has (2, 3, 5)"
    )


# ---- check_close -------------------------------------------------------------


def test_what_agrees_is_printed_with_its_worst_difference(capsys):
    one = nn.Parameter(torch.zeros(2, 3))
    other = [torch.zeros(2, 3), torch.zeros(2, 3).half()]
    other[0][1, 2], other[1][0, 1] = 2.5e-4, -1.5e-4
    check_close("loops = module", [one, one], other, tolerance=1e-3)
    check_close("same", torch.ones(3, dtype=torch.long), torch.ones(3))
    assert capsys.readouterr().out == ("✓ loops = module, to 3e-04\n✓ same, exactly\n")


def test_a_difference_is_an_error_that_says_where():
    one, other = torch.zeros(2, 3), torch.zeros(2, 3)
    other[1, 2] = -2
    with pytest.raises(AssertionError) as caught:
        check_close("loops = module", [torch.ones(1), one], [torch.ones(1), other])
    said = str(caught.value)
    assert said.startswith("loops = module: ")
    assert "2.0 at index (1, 2) (up to 1e-06 allowed)" in said
    assert "item [1]" in said


@pytest.mark.parametrize(
    ("actual", "expected", "tolerance"),
    [
        (torch.zeros(1), torch.full((1,), 0.5), 0.499),
        (torch.tensor([2049.0]).double(), torch.tensor([2048.0]).half(), 0.9),
        (torch.tensor([math.nan]), torch.tensor([math.nan]), 1e9),
        (torch.tensor([math.inf]), torch.ones(1), 1e9),
        (torch.ones(3), torch.ones(1, 3), 1.0),
        ([torch.ones(1)], [torch.ones(1)] * 2, 1.0),
    ],
    ids=["above", "half", "nan", "infinite", "shape", "number"],
)
def test_what_does_not_agree_is_an_error(actual, expected, tolerance):
    with pytest.raises(AssertionError):
        check_close("claim", actual, expected, tolerance)
    with pytest.raises(AssertionError):
        check_close("claim", expected, actual, tolerance)


@pytest.mark.parametrize("nothing", [torch.ones(0, 3), []])
def test_nothing_is_no_proof(nothing):
    with pytest.raises((RuntimeError, ValueError), match="max"):
        check_close("claim", nothing, nothing)


# ---- check_same --------------------------------------------------------------


@pytest.fixture
def weight():
    return nn.Parameter(torch.tensor([2.0, -1.0, 0.5]))


def test_output_and_gradients_that_agree_are_printed_in_a_line(capsys, weight):
    x, shift = torch.randn(4, 3), torch.arange(3)  # integers have no gradient
    ours = lambda x, shift: x * weight + shift  # noqa: E731
    theirs = lambda x, shift: (weight * x + shift) * 1  # noqa: E731
    check_same("by hand", ours, theirs, x, shift, parameters=iter([weight]))
    check_same("sine", torch.sin, lambda x: x.sin() + 0.3, x, tolerance=0.5)
    assert capsys.readouterr().out == (
        "✓ by hand: output and 2 gradients, exactly\n"
        "✓ sine: output and its gradient, to 3e-01\n"
    )


class Other(torch.autograd.Function):
    """The right output, and a gradient of which some entries are wrong."""

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.wrong = wrong
        return x.clone()

    @staticmethod
    def backward(ctx, upstream):
        return ctx.wrong(upstream), None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda upstream: upstream * 1.01,
        lambda upstream: upstream.flip(0),  # the same sum, if all were ones
        lambda upstream: torch.ones_like(upstream),
    ],
)
@pytest.mark.parametrize("learned", [True, False], ids=["parameter", "input"])
def test_a_gradient_alone_that_differs_is_an_error(weight, wrong, learned):
    other = lambda x: Other.apply(x, wrong)  # noqa: E731
    ours = lambda x: x + weight  # noqa: E731
    bad = (lambda x: x + other(weight)) if learned else lambda x: other(x) + weight
    for pair in ((ours, bad), (bad, ours)):
        with pytest.raises(AssertionError, match=r"^by hand: .*gradients"):
            check_same("by hand", *pair, torch.randn(3), parameters=[weight])


@pytest.mark.parametrize(
    "bad",
    [
        lambda x: x.sin() + 1e-3,
        lambda x: x.sin()[:1],
        lambda x: x.sin()[None],
        lambda x: x.detach().sin() + 0 * x,
    ],
    ids=["output", "rows", "axes", "detached"],
)
def test_another_output_is_an_error(bad):
    with pytest.raises(AssertionError, match=r"^sine: "):
        check_same("sine", torch.sin, bad, torch.randn(3, 2))


@pytest.mark.parametrize("place", ["ours", "reference", "input"])
def test_the_parameters_of_a_module_are_compared(place, capsys):
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    right = lambda x: x @ layer.weight.T + layer.bias  # noqa: E731
    wrong = lambda x: x @ layer.weight.detach().T + 0 * layer.weight.sum()  # noqa: E731

    def compare(by_hand):
        if place == "ours":
            check_same("linear", layer, by_hand, x)
        elif place == "reference":
            check_same("linear", by_hand, layer, x, parameters=[layer.weight])
        else:
            called = lambda layer, x: by_hand(x)  # noqa: E731
            check_same("linear", nn.Linear.forward, called, layer, x)

    compare(right)
    assert capsys.readouterr().out.startswith("✓ linear: output and 3 gradients, ")
    layer.bias.data.zero_()
    with pytest.raises(AssertionError, match=r"^linear: "):
        compare(lambda x: wrong(x) + layer.bias)


def test_what_is_given_is_left_as_it_is(weight, capsys):
    x = torch.randn(2, 3)
    before = x.clone()
    double = lambda x: x.mul(weight)  # noqa: E731
    check_same("doubled", double, double, x, parameters=[weight])
    assert torch.equal(x, before) and not x.requires_grad and weight.grad is None
    in_place = lambda x: x.mul_(1) * weight  # noqa: E731
    with pytest.raises(RuntimeError, match="in-place"):
        check_same("in place", in_place, double, x, parameters=[weight])


def test_without_anything_to_learn_no_gradient_is_compared():
    with pytest.raises(ValueError, match=r"^none: inputs or parameters must be able"):
        check_same("none", torch.neg, torch.neg, torch.arange(3))


# ---- expect, say -------------------------------------------------------------

FINDING = "application/vnd.annotated.finding+json"


@pytest.fixture
def displayed(monkeypatch):
    """What cells display, in order."""
    outputs = []
    keep = lambda thing, raw=False: outputs.append(thing)  # noqa: E731
    monkeypatch.setattr("IPython.display.display", keep)
    return outputs


def found(displayed, value, **band) -> dict:
    expect("02-twice", "Twice as much.", value, unlike=("untrained", 0.5), **band)
    return displayed.pop()


@pytest.mark.parametrize(
    ("band", "inside", "outside"),
    [
        ({"above": 1}, 1.01, 1),
        ({"at_least": 1}, 1, 0.99),
        ({"below": 1}, 0.99, 1),
        ({"at_most": 1}, 1, 1.01),
        ({"above": 1, "at_most": 2}, [1.5, 2], [1.5, 2.1]),
        ({"above": 1, "at_most": 2}, torch.tensor([1.5, 2]), [1, 1.5]),
        ({"above": 1}, math.inf, math.nan),
    ],
)
def test_a_finding_is_held_or_not_and_never_raises(displayed, band, inside, outside):
    assert found(displayed, inside, **band)[FINDING]["held"] is True
    assert found(displayed, outside, **band)[FINDING]["held"] is False


def test_a_finding_that_holds_shows_nothing_and_leaves_all_as_data(displayed):
    output = found(displayed, [2.0, math.inf], above=1)
    assert output["text/html"] == output["text/plain"] == ""
    assert json.loads(json.dumps(output[FINDING], allow_nan=False)) == {
        "name": "02-twice",
        "words": "Twice as much.",
        "value": [2.0, "inf"],
        "band": "> 1",
        "held": True,
        "unlike": {"words": "untrained", "value": [0.5], "outside": True},
    }


def test_an_alternative_in_the_band_is_noted(displayed):
    assert found(displayed, 2.0, above=0.4)[FINDING]["unlike"]["outside"] is False


def test_a_finding_that_differs_says_what_others_found(
    displayed, tmp_path, monkeypatch
):
    record = {"findings": {"02-twice": {"values": {"one": [3, 2], "two": [4, 2.5]}}}}
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "02.json").write_text(json.dumps(record))
    monkeypatch.setattr(notebook.resources, "files", lambda name: tmp_path)
    output = found(displayed, 0.25, above=1)
    assert output["text/plain"] == (
        "Not so here: Twice as much. Measured: 0.25; 2 other machines: 2 to 4."
    )
    assert output["text/plain"] in output["text/html"]


def test_a_finding_without_a_record_says_what_was_found_here(displayed):
    assert found(displayed, 0.25, above=1)["text/plain"].endswith("Measured: 0.25.")


def test_a_finding_needs_a_page_and_a_band(displayed):
    with pytest.raises(ValueError, match="name must be like '08b-longer', got 'x02-y'"):
        expect("x02-y", "Twice.", 2, above=1, unlike=("untrained", 0))
    with pytest.raises(ValueError, match="02-twice: the band must have a bound"):
        found(displayed, 2)


@pytest.mark.parametrize(
    "band",
    [{"above": 2, "below": 2}, {"at_least": 3, "at_most": 1}]
    + [{"above": 1, "at_least": 5}],
)
def test_a_band_without_numbers_is_refused(displayed, band):
    with pytest.raises(ValueError, match="02-twice: the band must hold numbers, got"):
        found(displayed, 2, **band)


def test_nothing_to_compare_is_no_finding(displayed):
    for value, unlike in (([], 0.5), (2, []), (2, math.nan)):
        with pytest.raises(ValueError, match="value and alternative must be numbers"):
            expect("02-twice", "Twice.", value, above=1, unlike=("untrained", unlike))


def test_a_bound_is_kept_to_its_last_digit(displayed):
    assert found(displayed, 2.0, below=2.0000001)[FINDING]["band"] == "< 2.0000001"


def test_says_a_paragraph(displayed):
    say("It ends at **2.5**.")
    (paragraph,) = displayed
    assert paragraph.data == "It ends at **2.5**."


# ---- recorded, show_table ----------------------------------------------------


def test_a_recorded_run_is_read_with_where_it_comes_from(capsys):
    result = recorded("warmup")
    assert {"provenance", "rows"} <= set(result)
    said, made = capsys.readouterr().out, result["provenance"]
    assert (
        said
        == f"recorded {made['date']}: python -m benchmarks warmup (seeds 3, 4, 5)\n"
    )


def test_a_record_that_nobody_has_made_is_none():
    assert recorded_if_any("warmup") == recorded("warmup")
    assert recorded_if_any("official/nobody") is None


def test_a_page_shows_where_a_record_is_not_exact(tmp_path, monkeypatch, displayed):
    made = {"exact": False, "date": "today", "command": "<run>"}
    (tmp_path / "run.json").write_text(json.dumps({"provenance": made}))
    monkeypatch.setattr(notebook.resources, "files", lambda package: tmp_path)
    recorded("run")
    (shown,) = displayed
    assert "not exact: made before" in shown["text/html"]
    assert "&lt;run&gt;" in shown["text/html"]


def test_a_table_names_its_rows_and_columns():
    table = show_table(["model", "loss"], [["<b>", 1.5], ["c", None]], "Two <models>")
    page = BeautifulSoup(table._repr_html_(), "html.parser")
    assert page.caption.text == "Two <models>"
    columns = page.select("thead th[scope=col]")
    assert [cell.text for cell in columns] == ["model", "loss"]
    assert [cell.text for cell in page.select("tbody th[scope=row]")] == ["<b>", "c"]
    assert [cell.text for cell in page.select("td")] == ["1.5", "None"]
    empty = show_table(["n"], []).text
    assert empty.count("<tr>") == 1 and "caption" not in empty


# ---- cost --------------------------------------------------------------------


def test_the_cost_is_printed(capsys, monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: 41.7)
    cost()
    said = capsys.readouterr().out
    found = re.match(r"this page so far: 42 CPU seconds, (.*) GiB of memory", said)
    assert 0.05 <= float(found[1]) < 64, "this process imported torch"


def test_without_the_resource_module_the_memory_is_left_out(capsys, monkeypatch):
    monkeypatch.setattr(notebook.importlib.util, "find_spec", lambda name: None)
    cost()
    assert re.fullmatch(r"this page so far: \d+ CPU seconds\n", capsys.readouterr().out)


# ---- show --------------------------------------------------------------------


def make_figure():
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1], [2, 1])
    return figure


def test_a_figure_is_shown_with_its_words():
    figure = make_figure()
    words = {"caption": "It <b>falls</b>.", "title": "It <b>does</b>"}
    html = show(figure, alt="A line & its <end>", **words)
    page = BeautifulSoup(html._repr_html_(), "html.parser")
    plot = page.select_one("figure.annotated-figure > div.annotated-plot")
    assert plot["aria-label"] == "A line & its <end>"
    assert page.select_one("figure > .annotated-title").text == "It <b>does</b>"
    assert page.select_one("figure > figcaption").text == "It <b>falls</b>."
    assert page.b is None
    assert not plt.fignum_exists(figure.number), "Jupyter would show it once more"


def test_a_figure_says_what_is_drawn_in_it():
    figure = make_figure()
    figure.axes[0].set(xlabel="step", ylabel="loss")
    assert 'aria-label="Loss against step."' in show(figure).text


def test_a_caption_may_be_left_out():
    assert "figcaption" not in show(make_figure(), alt="A line that falls").text


# ---- honest mistakes ---------------------------------------------------------


@pytest.mark.parametrize("alt", [None, "", "curve.png"])
def test_a_figure_without_words_is_refused(alt):
    with pytest.raises(ValueError, match=r"^alt "):
        show(make_figure(), alt=alt)


def test_the_device_is_the_one_asked_for_or_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("ANNOTATED_DEVICE", "gpu")
    with pytest.raises(ValueError, match=r"^ANNOTATED_DEVICE must be one of .*'gpu'$"):
        setup()
    monkeypatch.setenv("ANNOTATED_DEVICE", "cuda")
    with pytest.raises(RuntimeError, match=r"^ANNOTATED_DEVICE=cuda, but PyTorch f"):
        setup()


@pytest.mark.parametrize("thing", [3, "length_mask", len])
def test_only_classes_and_functions_have_a_source(thing):
    with pytest.raises(TypeError, match=r"^show_source needs a class or function, got"):
        show_source(thing)
