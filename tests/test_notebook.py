"""annotated/notebook.py: checks that can fail, and that say what failed."""

import ast
import inspect
import math
import random
import re
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy
import pytest
import torch
from bs4 import BeautifulSoup
from torch import nn

from annotated import attention, masks, notebook, training
from annotated.notebook import (
    check_close,
    check_shape,
    cost,
    setup,
    show,
    show_source,
)


@pytest.fixture(autouse=True)
def figures():
    with plt.rc_context():
        yield
    plt.close("all")


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


def test_the_seed_is_zero_unless_said_otherwise():
    setup()
    first = draws()
    setup(seed=0)
    assert draws() == first


def test_setup_says_what_it_runs_on(capsys):
    device = setup(seed=7)
    said = capsys.readouterr().out
    assert torch.__version__ in said
    assert f"{torch.get_num_threads()} thread(s)" in said
    assert "seed 7" in said
    assert device.type != "cpu" or "CPU" in said


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


# ---- show_source -------------------------------------------------------------


def brief(x):
    """One line,
    or two."""
    return x


@pytest.fixture
def shown(monkeypatch):
    """The sources that were displayed, without the fence around them."""
    things = []

    def display(markdown):
        fenced = re.fullmatch(r"```python\n(.*)\n```", markdown.data, re.DOTALL)
        things.append(fenced[1])

    monkeypatch.setattr("IPython.display.display", display)
    return things


def test_a_class_is_shown_as_the_module_ships_it(shown):
    show_source(attention.DotAttention)
    (text,) = shown
    file = Path(attention.__file__).read_text(encoding="utf-8")
    assert text.startswith("class DotAttention(ScoredAttention):\n    ")
    head, docstring, body = text.partition('"""Dot-product attention')
    assert head in file and docstring in file
    assert body.partition("\n")[2] + "\n" in file
    ast.parse(text)


@pytest.mark.parametrize(
    "thing", [masks.causal_mask, attention.MultiHeadAttention, training.fit]
)
def test_docstrings_end_after_their_first_paragraph(shown, thing):
    show_source(thing)
    (text,) = shown
    found, whole = (ast.parse(source) for source in (text, inspect.getsource(thing)))
    documented = 0
    for node, original in zip(ast.walk(found), ast.walk(whole), strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            docstring = ast.get_docstring(original)
            first = docstring and docstring.split("\n\n")[0]
            assert ast.get_docstring(node) == first
            if docstring:
                documented += 1
                node.body[0] = original.body[0] = ast.Pass()
    assert documented
    assert ast.dump(found) == ast.dump(whole)
    assert "Args:" not in text and "Raises:" not in text


def test_a_docstring_of_one_paragraph_stays(shown):
    show_source(brief)
    assert shown == [inspect.getsource(brief).rstrip()]


def test_comments_and_blank_lines_stay(shown):
    show_source(training.fit)
    (text,) = shown
    source = inspect.getsource(training.fit)
    for line in text.splitlines():
        assert line in source or line.endswith('"""')
    assert text.count(" # ") == source.count(" # ") > 0
    body = source.rpartition('"""')[2]
    assert text.endswith(body.rstrip())


def test_a_function_is_shown_with_its_indentation(shown):
    show_source(masks.length_mask)
    (text,) = shown
    assert text.startswith("def length_mask(")
    assert '\n    """True at the real tokens' in text
    ast.parse(text)


def test_a_method_is_moved_to_the_margin(shown):
    show_source(attention.AdditiveAttention.prepare)
    assert shown == ["def prepare(self, keys):\n    return self.key_map(keys)"]


def test_several_things_are_shown_in_order(shown):
    show_source(masks.length_mask, masks.require_mask)
    assert [text.partition("(")[0] for text in shown] == [
        "def length_mask",
        "def require_mask",
    ]


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
    one = torch.zeros(2, 3)
    other = [one.clone(), one.clone()]
    other[0][1, 2], other[1][0, 1] = 2.5e-4, 1.5e-4
    check_close("loops = module", [one, one], other, tolerance=1e-3)
    said = "✓ loops = module: worst difference 2.5e-04 (allowed 1e-03)\n"
    assert capsys.readouterr().out == said


def test_single_tensors_need_no_list(capsys):
    check_close("same", torch.ones(3), torch.ones(3))
    assert (
        capsys.readouterr().out == "✓ same: worst difference 0.0e+00 (allowed 1e-06)\n"
    )


def test_a_difference_as_large_as_allowed_is_allowed():
    check_close("halves", torch.zeros(1), torch.full((1,), 0.5), tolerance=0.5)
    with pytest.raises(AssertionError):
        check_close("halves", torch.zeros(1), torch.full((1,), 0.5), tolerance=0.499)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_is_an_error_that_says_where(sign):
    one, other = torch.zeros(2, 3), torch.zeros(2, 3)
    other[0, 1], other[1, 2] = sign * 0.5, sign * 2
    with pytest.raises(AssertionError) as caught:
        check_close("loops = module", [torch.ones(1), one], [torch.ones(1), other])
    assert str(caught.value) == (
        "loops = module: worst difference 2.00e+00 is above 1e-06, in tensor 1 at "
        f"(1, 2): 0 against {sign * 2}"
    )


def test_one_number_among_many_is_enough():
    other = torch.zeros(11, 13)
    other[7, 5] = 1.0
    with pytest.raises(AssertionError, match=r"at \(7, 5\): 0 against 1$"):
        check_close("claim", torch.zeros(11, 13), other, tolerance=0.5)


def test_a_difference_between_single_numbers_is_an_error():
    with pytest.raises(AssertionError, match=r"at \(\): 1 against 2$"):
        check_close("losses", torch.tensor(1.0), torch.tensor(2.0))


def test_differences_are_taken_in_double_precision():
    # in half precision 2048 + 1 is 2048: the difference would be lost
    one, other = torch.tensor([2049.0]).double(), torch.tensor([2048.0]).half()
    with pytest.raises(AssertionError, match=r"worst difference 1\.00e"):
        check_close("mixed", one, other)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", [0, 1, "both"])
def test_numbers_that_are_not_finite_never_agree(bad, side):
    tensors = [torch.ones(3), torch.ones(3)]
    for i in (0, 1) if side == "both" else (side,):
        tensors[i][1] = bad
    with pytest.raises(
        AssertionError, match=r"^claim: tensor 0 holds NaN or infinity$"
    ):
        check_close("claim", *tensors, tolerance=1e9)


def test_shapes_that_would_broadcast_are_an_error():
    message = r"^claim: tensor 0 has shape \(3,\), expected \(1, 3\)$"
    with pytest.raises(AssertionError, match=message):
        check_close("claim", torch.ones(3), torch.ones(1, 3))


def test_nothing_is_no_proof():
    with pytest.raises(AssertionError, match=r"^claim: tensor 0 is empty, nothing is"):
        check_close("claim", torch.ones(0, 3), torch.ones(0, 3))
    with pytest.raises(AssertionError, match=r"^claim: 0 tensors against 0;"):
        check_close("claim", [], [])


@pytest.mark.parametrize(("left", "right"), [(1, 2), (2, 1), (0, 1)])
def test_as_many_tensors_are_needed_on_both_sides(left, right):
    message = (
        f"^claim: {left} tensors against {right}; as many are needed on both sides"
    )
    with pytest.raises(AssertionError, match=message):
        check_close("claim", [torch.ones(1)] * left, [torch.ones(1)] * right)


def test_tensors_with_gradients_are_compared_as_they_are(capsys):
    parameter = nn.Parameter(torch.ones(3))
    check_close("parameter", parameter, torch.ones(3))
    assert "✓ parameter" in capsys.readouterr().out
    assert parameter.requires_grad


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
    html = show(figure, alt="A line & its <end>", caption="It <b>falls</b>.")
    page = BeautifulSoup(html._repr_html_(), "html.parser")
    assert (
        page.select_one("figure.annotated-figure > img")["alt"] == "A line & its <end>"
    )
    assert page.select_one("figure > figcaption").text == "It <b>falls</b>."
    assert page.b is None
    assert not plt.fignum_exists(figure.number), "Jupyter would show it once more"


def test_a_caption_may_be_left_out():
    assert "figcaption" not in show(make_figure(), alt="A line that falls").text


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.bad_input
@pytest.mark.parametrize("alt", [None, "", " ", "curve.png", "A figure"])
def test_a_figure_without_words_is_refused(alt):
    arguments = {} if alt is None else {"alt": alt}
    with pytest.raises(
        ValueError, match=r"^alt must be a sentence that says"
    ) as caught:
        show(make_figure(), **arguments)
    assert repr(alt) in str(caught.value)


@pytest.mark.bad_input
@pytest.mark.parametrize("device", ["gpu", "CUDA", "cuda:0"])
def test_the_device_must_be_one_of_two(device, monkeypatch):
    monkeypatch.setenv("ANNOTATED_DEVICE", device)
    with pytest.raises(
        ValueError, match=r"^ANNOTATED_DEVICE must be cpu or cuda, got "
    ):
        setup()


@pytest.mark.bad_input
def test_a_gpu_that_is_not_there_is_no_silent_fallback(monkeypatch):
    monkeypatch.setenv("ANNOTATED_DEVICE", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        RuntimeError, match=r"^ANNOTATED_DEVICE=cuda, but PyTorch finds n"
    ):
        setup()


@pytest.mark.bad_input
@pytest.mark.parametrize("thing", [3, "length_mask", len, torch.ones(2)])
def test_only_classes_and_functions_have_a_source(thing):
    with pytest.raises(
        TypeError, match=r"^show_source needs a class or function, got "
    ):
        show_source(thing)


@pytest.mark.bad_input
@pytest.mark.parametrize("tolerance", [math.nan, -1e-6])
def test_a_tolerance_must_be_a_number_that_can_be_exceeded(tolerance):
    # nothing is above NaN: such a check could not fail
    message = f"^tolerance must be 0 or more, got {tolerance}$"
    with pytest.raises(ValueError, match=message):
        check_close("claim", torch.ones(1), torch.zeros(1), tolerance=tolerance)
