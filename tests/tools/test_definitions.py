"""tools/definitions.py: what a run depends on, and nothing else."""

import json
import textwrap

import pytest

from tools.definitions import CODE, changes, digest, reached

FILES = {
    "annotated/__init__.py": "",
    "annotated/page/static/table.json": "[1, 2]",
    "annotated/sizes.py": """
        WIDTH = 4
        WIDTHS = [WIDTH]
        WIDTHS.append(8)
        DEPTH = 2
        DEPTH += 1
        UNUSED = 7
    """,
    "annotated/model.py": """
        from annotated import require, sizes as numbers

        class Base:
            def grow(self):
                return numbers.WIDTHS

        class Model(Base):
            width: int = 3

            @require.shapes
            def run(self, x: int) -> int:
                '''Runs.'''
                require.count(x=x)
                return self.double(x) + depth()

            def double(self, x):
                return 2 * x

        def depth():
            return numbers.DEPTH

        def unused(width):
            return width
    """,
    "annotated/require.py": "def count(**n): ...",
    "benchmarks/__init__.py": "",
    "benchmarks/first.py": """
        from annotated.model import Model as Network

        TABLE = "table.json"

        def run(unused=None):
            from annotated.other import helper
            return Network().run(helper(TABLE)), unused
    """,
    "annotated/other.py": "def helper(x): return x",
    "book/results/past.json": json.dumps({"provenance": 1, "rows": [2]}),
}
RUN = "from benchmarks.first import run\nrun()"


@pytest.fixture
def write(tmp_path):
    """Write a repository with some texts replaced, and return its digests."""
    made = []

    def write(code=RUN, **replaced):
        root = tmp_path / str(len(made))
        made.append(root)
        for name, text in FILES.items():
            text = textwrap.dedent(text)
            for old, new in replaced.get(name.split("/")[-1].split(".")[0], {}).items():
                assert old in text, (name, old)
                text = text.replace(old, new)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return reached(code, root)

    return write


def test_what_is_reached(write):
    assert list(write()) == [
        CODE,
        "annotated.model.Base",
        "annotated.model.Model",
        "annotated.model.depth",
        "annotated.other.helper",
        "annotated.sizes.DEPTH",
        "annotated.sizes.WIDTH",
        "annotated.sizes.WIDTHS",
        "annotated/page/static/table.json",
        "benchmarks.first.TABLE",
        "benchmarks.first.run",
    ]


@pytest.mark.parametrize(
    ("replaced", "name"),
    [
        ({"sizes": {"WIDTH = 4": "WIDTH = 5"}}, "sizes.WIDTH"),
        ({"sizes": {"append(8)": "append(9)"}}, "sizes.WIDTHS"),
        ({"sizes": {"DEPTH += 1": "DEPTH += 2"}}, "sizes.DEPTH"),
        ({"model": {"2 * x": "3 * x"}}, "model.Model"),
        ({"model": {"numbers.WIDTHS": "[]"}}, "model.Base"),
        ({"model": {"width: int = 3": "width: int = 4"}}, "model.Model"),
        ({"model": {"@require.shapes": "@cached"}}, "model.Model"),
        ({"other": {"return x": "return -x"}}, "other.helper"),
        ({"table": {"1": "3"}}, "static/table.json"),
    ],
)
def test_what_counts_is_named(write, replaced, name):
    said = changes(write(), write(**replaced))
    assert any(f.startswith("changed") and name in f for f in said), said


@pytest.mark.parametrize(
    "replaced",
    [
        {"model": {"'''Runs.'''": "'''Runs twice.'''"}},
        {"model": {"'''Runs.'''": "# a comment"}},
        {"model": {"x: int) -> int": "x) -> float"}},
        {"model": {"@require.shapes": ""}},
        {"model": {"require.count(x=x)": "if x < 1: raise ValueError(x)"}},
        {"model": {"return width": "return 2 * width"}},
        {"sizes": {"UNUSED = 7": "UNUSED = 8"}},
        {"first": {"Model as Network": "Model", "Network()": "Model()"}},
        {"first": {"annotated.model import": "annotated.moved import"}},
    ],
)
def test_what_does_not_count(write, replaced, monkeypatch):
    monkeypatch.setitem(FILES, "annotated/moved.py", FILES["annotated/model.py"])
    before, after = write(), write(**replaced)
    assert digest(before) == digest(after) and changes(before, after) == []


def test_a_local_name_is_not_the_global_one(write):
    local = "from annotated.model import unused\n"
    assert (
        len(write(local + "def f(unused): return [unused for unused in unused]")) == 1
    )
    assert len(write(local + "def f(a=unused): return a")) == 2
    assert len(write(local + "[unused for unused in (1, 2)]\nunused")) == 2


def test_a_module_as_a_whole_stands_for_all_that_it_defines(write):
    found = write("import annotated.sizes\nprint(annotated.sizes)")
    assert "annotated.sizes.UNUSED" in found
    found = write("import annotated.sizes\nprint(annotated.sizes.UNUSED)")
    assert list(found) == [CODE, "annotated.sizes.UNUSED"]


def test_of_a_record_its_provenance_does_not_count(write):
    code = "rows = recorded('past')"
    before = write(code)
    assert "book/results/past.json" in before
    assert before == write(code, past={'"provenance": 1': '"provenance": 2'})
    assert before != write(code, past={"[2]": "[3]"})
