"""If the check passes, so will the grading: odd notebooks, executed and then graded."""

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Collection
from typing import NamedTuple

import pytest
from IPython.core.interactiveshell import InteractiveShell

import annotated.page.notebook  # noqa: F401, what the set-up needs, before any fork
from annotated.checks import exercise_named
from grading.normalise import normalise, read_cells
from grading.runner import ABOVE, Runner
from grading.sandbox import PATIENCE
from tests.exercises.submissions import Maker
from tests.sample import in_turn
from tools.exercises import exercises, read_exercises, source_of, student_notebook
from tools.source import setup_cell

SOLVED = read_exercises(source_of("02"), setup_cell())
RELEASE = student_notebook(SOLVED)
MAKER = Maker(RELEASE, SOLVED)
NAMES = [exercise.id for exercise in MAKER.code]

TEMPERED, ATTENTION, REPAIRED, FACTOR, EQUIVARIANT = (
    MAKER.solutions[name] for name in NAMES
)


def coded(source):
    return {"cell_type": "code", "metadata": {}, "source": source}


def in_one_cell(cells):
    """Two answers in the first one's cell."""
    first, second = (cells[exercise.answer] for exercise in MAKER.code[:2])
    first["source"] = f"{TEMPERED}\n\n{body(ATTENTION)}"
    cells.remove(second)


def in_another_order(cells):
    """A later exercise first, and above it a helper that the first one uses."""
    last = MAKER.code[-1]
    block = [coded(SOFTMAX), cells[last.answer], cells[last.test]]
    del cells[last.answer : last.test + 1]
    place = MAKER.code[0].answer
    cells[place:place] = block


def added_to_the_setup(cells):
    [setup] = [c for c in cells if "notebook import setup" in c["source"]]
    setup["source"] += (
        "\ntry:\n    import einopsy\nexcept ModuleNotFoundError:\n    pass\n" + SOFTMAX
    )


def checks_in_a_loop(cells):
    """All at the end; and a helper below the answer that needs it."""
    for exercise in MAKER.code:
        cells[exercise.test]["source"] = ""
    first = MAKER.code[0].answer
    cells[first]["source"] = tagged(0, BY_HELPER)
    cells.insert(first + 1, coded(SOFTMAX))
    pairs = ", ".join(f"('{e.id}', {e.function})" for e in MAKER.code)
    loop = f"for name, answer in [{pairs}]:\n    check(name, answer)"
    cells.append(coded(loop))


def without_tag(cells):
    cells[MAKER.code[0].answer]["source"] = body(TEMPERED)


def checked(source):
    """The first check, written otherwise."""

    def edit(cells):
        [cell] = [c for c in cells if c["source"].startswith(f'check("{NAMES[0]}"')]
        cell["source"] = source

    return edit


def body(source):
    return source.split("\n", 1)[1]


def tagged(position, source):
    return (
        source if "exercise: " in source else f"# exercise: {NAMES[position]}\n{source}"
    )


STUB = RELEASE.cells[MAKER.code[0].answer].source
SOFTMAX = """def own_softmax(scores):
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)"""
BY_HELPER = """def tempered(x, tau):
    return own_softmax(x @ x.mT / tau[:, None, None]) @ x"""
HALVES = """def tempered(x, tau):
    return HALF * 2 * (x @ x.mT / tau[:, None, None]).softmax(-1) @ x"""
WRONG = "def tempered(x, tau):\n    return x"
ROOT = "def uniform_factor(width):\n    return 3 / math.sqrt(width)"


class Odd(NamedTuple):
    """What is changed in a notebook: at its first exercise, or those by position."""

    answer: str | dict[int, str] = {}
    before: str | dict[int, str] = {}  # a cell of the student's own above the answer
    below: str | dict[int, str] = {}  # one between the answer and its check, or further
    edit: Callable = lambda cells: None
    red: Collection[str] = ()  # whose checks fail, in the notebook as when graded


ODD = {
    "an import in another answer": Odd(
        answer={0: f"import math\n{body(TEMPERED)}", 3: ROOT}
    ),
    "a helper in another answer": Odd(
        answer={
            0: f"{SOFTMAX}\n\n{BY_HELPER}",
            1: ATTENTION.replace("scores.softmax(-1)", "own_softmax(scores)"),
        }
    ),
    "another answer is called": Odd(
        answer={
            0: (
                f"{body(TEMPERED)}\n\ndef attend(q, k, v):\n"
                "    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v"
            ),
            2: "def attention(q, k, v):\n    return attend(q, k, v)",
        }
    ),
    "a display above a helper": Odd(answer=BY_HELPER, before=f"display(3)\n{SOFTMAX}"),
    "a slow experiment above a helper in one cell": Odd(
        answer=BY_HELPER, before=f"import time\ntime.sleep(4)\n{SOFTMAX}"
    ),
    "the answer below an untouched stub": Odd(answer=STUB, below=body(TEMPERED)),
    "the answer below a first try": Odd(answer=WRONG, below=body(TEMPERED)),
    "a first try below the answer, and never run again": Odd(
        answer=TEMPERED, below={1: WRONG}
    ),
    "a wrong try, as the check says": Odd(answer=TEMPERED, below=WRONG, red={NAMES[0]}),
    "a helper that only another try has": Odd(
        answer=f"{SOFTMAX}\n\n{WRONG}", below=BY_HELPER
    ),
    "the tag is lost": Odd(edit=without_tag),
    "the tag stands in the second line": Odd(answer=f"# my answer\n{TEMPERED}"),
    "the answer and its check in one cell": Odd(
        answer=f"{TEMPERED}\n\ncheck('{NAMES[0]}', tempered)"
    ),
    "timed": Odd(answer=f"%%time\n{TEMPERED}"),
    "magic lines": Odd(answer=f"{TEMPERED}\n%matplotlib inline\n!true"),
    "help is asked for": Odd(before="torch.softmax?"),
    "a helper written to a file": Odd(
        answer=f"from own import own_softmax\n{BY_HELPER}",
        before=f"%%writefile own.py\n{SOFTMAX}",
    ),
    "star imports": Odd(
        answer={3: FACTOR.replace("width**0.5", "sqrt(width)")},
        before={3: "from math import *"},
    ),
    "a name with a type": Odd(
        answer=f"{SOFTMAX}\nfrom collections.abc import Callable\n"
        "tempered: Callable = lambda x, tau: "
        "own_softmax(x @ x.mT / tau[:, None, None]) @ x"
    ),
    "annotations of the future": Odd(
        answer="def tempered(x: Batch, tau: Batch) -> Batch:\n"
        "    return (x @ x.mT / tau[:, None, None]).softmax(-1) @ x",
        before="from __future__ import annotations",
    ),
    "a decorator from a cell above": Odd(
        answer=f"@logged\n{body(TEMPERED)}",
        before="import functools\ndef logged(f):\n    @functools.wraps(f)\n"
        "    def inner(*a):\n        print(f.__name__)\n        return f(*a)\n"
        "    return inner",
    ),
    "a dataclass for constants": Odd(
        answer=HALVES.replace("HALF", "config.half"),
        before="from dataclasses import dataclass\n@dataclass\nclass Config:\n"
        "    half: float = 0.5\nconfig = Config()",
    ),
    "a helper between the answer and its check": Odd(answer=BY_HELPER, below=SOFTMAX),
    "a constant from an experiment with the answer": Odd(
        answer=HALVES,
        below="HALF = 1.0\nHALF = tempered(torch.ones(1, 1, 1), torch.ones(1))"
        ".item() / 4",
    ),
    "defined where a condition holds": Odd(
        answer="if True:\n"
        + "\n".join(f"    {line}" for line in body(TEMPERED).split("\n"))
    ),
    "a library that may be missing": Odd(
        answer=BY_HELPER,
        before=f"try:\n    import einopsy\nexcept ImportError:\n    einopsy = None\n"
        f"{SOFTMAX}",
    ),
    "a plot above": Odd(
        answer=BY_HELPER,
        before="import matplotlib\nmatplotlib.use('Agg')\n"
        f"import matplotlib.pyplot as plt\nplt.plot([1, 2])\n{SOFTMAX}",
    ),
    "measured with a generator from above": Odd(
        answer={
            3: (
                "def uniform_factor(width):\n"
                "    q, k = torch.rand(2, 40_000, width, generator=generator) * 2 - 1\n"
                "    return 1 / (q * k).sum(-1).std()"
            )
        },
        before={3: "generator = torch.Generator().manual_seed(1)"},
    ),
    "a wrapper below the answer": Odd(
        answer=TEMPERED,
        below="inner = tempered\ndef tempered(x, tau):\n    return inner(x, tau)",
    ),
    "an answer that would be another one if it ran twice": Odd(
        answer=f"HALF = 2 * HALF\n{HALVES}", before="HALF = 0.25"
    ),
    "an answer that takes a while to define": Odd(
        answer=f"import time\ntime.sleep(4)\nHALF = 0.5\n{HALVES}"
    ),
    "two answers in one cell": Odd(edit=in_one_cell),
    "exercises in another order": Odd(answer=BY_HELPER, edit=in_another_order),
    "a helper in the set-up": Odd(answer=BY_HELPER, edit=added_to_the_setup),
    "a cell that awaits": Odd(
        answer=BY_HELPER, before=f"import asyncio\nawait asyncio.sleep(0)\n{SOFTMAX}"
    ),
    "a timed constant": Odd(answer=HALVES, before="%time HALF = 0.5"),
    "a helper run from a file": Odd(
        answer=BY_HELPER, before=f"%%file own.py\n{SOFTMAX}", below="%run own.py"
    ),
    "a helper added to a file": Odd(
        answer=f"from own import *\n{BY_HELPER}",
        before="open('own.py', 'w').write('import math\\n')",
        edit=lambda cells: cells.insert(
            MAKER.code[0].answer + 1, coded(f"%%writefile -a own.py\n{SOFTMAX}")
        ),
    ),
    "a helper changed below the check": Odd(
        answer=BY_HELPER, before={0: SOFTMAX, 1: "own_softmax = None"}
    ),
    "a compiled function left behind": Odd(
        before="@torch.compile\ndef twice(x):\n    return 2 * x"
    ),
    "words behind the tag": Odd(
        answer=tagged(0, "").strip() + f" (mine)\n{body(TEMPERED)}"
    ),
    "the answer twice": Odd(
        edit=lambda cells: cells.insert(3, dict(cells[MAKER.code[0].answer]))
    ),
    "all metadata lost": Odd(
        edit=lambda cells: [cell.update(metadata={}) for cell in cells]
    ),
    "the answer at the top of the notebook": Odd(
        edit=lambda cells: cells.insert(3, cells.pop(MAKER.code[1].answer))
    ),
    "lines of Windows, and tabs": Odd(
        answer=TEMPERED.replace("\n", "\r\n").replace("    ", "\t")
    ),
    "warnings are errors": Odd(
        before="import warnings\nwarnings.simplefilter('error')"
    ),
    "without gradients": Odd(
        before="torch.set_grad_enabled(False)", red={NAMES[0], NAMES[1]}
    ),
    "Greek letters and print": Odd(
        answer="def tempered(x, tau):\n    τ = tau[:, None, None]\n    print('τ', τ)\n"
        "    return (x @ x.mT / τ).softmax(-1) @ x"
    ),
    "a helper that is deleted after its use": Odd(
        answer=HALVES, before="half = 0.5\nHALF = half\ndel half"
    ),
    "an exercise not done": Odd(answer=STUB, red={NAMES[0]}),
    "an exercise with an error": Odd(
        answer=TEMPERED + "\n    return (", red={NAMES[0]}
    ),
    "a cell below the check raises": Odd(below={1: "1 / 0"}),
    "scripted": Odd(answer=f"@torch.jit.script\n{SOFTMAX}\n\n{BY_HELPER}"),
    "the device": Odd(
        answer=body(TEMPERED).replace("weights @ x", "weights @ x.to(device)")
    ),
    "a second version, which the check is given": Odd(
        answer=WRONG,
        below=body(TEMPERED).replace("tempered", "tempered_2"),
        edit=checked(f"check('{NAMES[0]}', tempered_2)"),
    ),
    "another name, and a function made for the check": Odd(
        answer=body(TEMPERED).replace("tempered", "own"),
        edit=checked(f"check('{NAMES[0]}', lambda x, tau: own(x, tau))"),
    ),
    "a check under another name": Odd(
        answer=BY_HELPER,
        below=SOFTMAX,
        edit=checked(
            f"from annotated.checks import check as verify\n"
            f"verify('{NAMES[0]}', tempered)"
        ),
    ),
    "checks in a loop at the end": Odd(edit=checks_in_a_loop),
    "a random seed above, and a number drawn": Odd(
        answer=HALVES,
        before="torch.manual_seed(3)\nHALF = torch.rand(1).item() * 0 + 0.5",
    ),
}


def odd_notebook(change):
    answers, before, below = (
        (given if isinstance(given, dict) else {0: given}).items()
        for given in change[:3]
    )
    notebook = MAKER.with_answers(**{f"_{n}": tagged(n, text) for n, text in answers})
    cells = notebook["cells"]
    added = [(MAKER.code[n].answer, source) for n, source in before]
    added += [(MAKER.code[n].answer + 1, source) for n, source in below]
    for place, source in sorted(added, reverse=True):
        cells.insert(place, coded(source))
    change.edit(cells)
    return notebook


def executed(notebook, folder):
    """The notebook after a run from top to bottom; the exercises that are green."""
    os.chdir(folder)
    sys.path.insert(0, "")
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    shell, green = InteractiveShell.instance(), set()
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        source = "".join(cell["source"])
        passed = shell.run_cell(source).success
        cell["execution_count"] = number
        green |= {
            name
            for name in NAMES
            if passed and f"{name}', " in source.replace('"', "'")
        }
    return notebook, green


@pytest.fixture(scope="module")
def running():
    with Runner() as runner, runner.submission() as submission:
        yield submission


def graded(notebook, running):
    made, _ = normalise(RELEASE, read_cells(json.dumps(notebook).encode()))
    running.left.clear()
    running.spare = ABOVE
    running.sandbox.patience = PATIENCE
    return {
        exercise.id
        for exercise in exercises(made)
        if exercise.function
        and not running.grade(
            made, exercise, exercise_named(exercise.id).cases("x", graded=True)
        ).failures
    }


@pytest.mark.parametrize("change", in_turn(ODD))
def test_green_means_graded(change, running, tmp_path):
    notebook = odd_notebook(ODD[change])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        notebook, green = pool.apply(executed, (notebook, tmp_path))
    assert green == set(NAMES) - set(ODD[change].red)
    assert graded(notebook, running) == green
    if ODD[change].below:  # which of two counts, without what ran when?
        for cell in notebook["cells"]:
            cell["execution_count"] = None
        assert graded(notebook, running) == green
