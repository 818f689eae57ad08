"""tools/lines.py counts right; in what chapters show, the mathematics comes first."""

import pytest

from tools import ROOT
from tools.lines import LONGEST, RATIO, count, shown_files

SAMPLE = '''"""Of a module."""

import math


class Scale(Module):
    """Of a class,
    on two lines."""

    width: int  #: a field

    @require.shapes
    @cache
    def forward(
        self, x: Float[Tensor, "b d"]
    ) -> Float[Tensor, "b d"]:
        """Of a method."""
        require.count(
            width=self.width
        )
        sizes = "width".split()
        if self.width > 9:
            raise ValueError("too wide")
        # a comment
        wide = x * math.sqrt(
            self.width
        )
        return wide


def _require_width(width):
    if width < 1:
        raise ValueError("too narrow")
'''


def test_lines_are_counted_by_their_purpose():
    lines = count(SAMPLE)
    assert lines.total == len(SAMPLE.splitlines())
    assert lines.docstrings == 1 + 2 + 1
    assert lines.checks == 1 + 3 + 1 + 2 + 3, "a decorator, a call, its names, …"
    assert lines.compute == 3 + 1, "no imports, signatures, comments"
    assert lines.ratio == 4 / 10


def test_the_chapters_show_these_files():
    names = {path.stem for path in shown_files()}
    assert names >= {"attention", "masks", "positions", "transformer", "training"}
    assert not names & {"require", "frames", "notebook", "plots"}


@pytest.mark.parametrize("path", shown_files(), ids=lambda path: path.stem)
def test_in_what_chapters_show_the_mathematics_comes_first(path):
    lines = count(path.read_text(encoding="utf-8"))
    assert lines.ratio >= RATIO, f"{lines.checks} lines of checks"
    assert lines.fit_to_show


def test_files_that_check_more_or_are_longer_would_be_named():
    assert not count(SAMPLE).fit_to_show, "more checks than mathematics"
    quarter = "def f(x):\n" + "    require.count(x=x)\n" + "    x = x + 1\n" * RATIO
    assert count(quarter).fit_to_show
    assert not count(quarter + "    require.even(x=x)\n").fit_to_show
    assert count("x = 1\n" * LONGEST).fit_to_show
    assert not count("x = 1\n" * (LONGEST + 1)).fit_to_show
    assert count('"""One.\n\nTwo."""\n' + "x = 1\n" * LONGEST).fit_to_show
    text = (ROOT / "annotated" / "attention.py").read_text(encoding="utf-8")
    guard = "        if self.heads < 1:\n            raise ValueError('no heads')\n"
    guarded = text.replace(
        "        key = query if", 20 * guard + "        key = query if"
    )
    assert count(text).fit_to_show and not count(guarded).fit_to_show
