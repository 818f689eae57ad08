"""The variants of a chapter's exercises, notebooks/src/exercises/NN_topic.py.

- The student notebook, notebooks/exercises/NN_topic.ipynb: no solution in it. It is
  committed, Colab opens it, and nbgrader's release has the same cells.
- The page of the book, book/exercises/NN_topic.ipynb: stub, folded solution, and checks
  that run on the solution. It is not committed.

`python -m tools.notebooks` writes both, and `python -m grading assignment` makes an
nbgrader course of the same source.

A source holds what an author writes: of each exercise the statement, whose second line
says its points and its goal, and a cell that starts with its id. The answer stands in
annotated/checks, where the check takes it for right; a question in words is answered in
the source. What follows from these is made here: the introduction with its table, the
answer cells, nbgrader's metadata, and the cell that checks an answer.
"""

import ast
import copy
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from tools import ROOT, SOURCES, STUDENT
from tools.source import SourceError, read_source

ID = r"ch\d\d(?:-[a-z0-9]+)+"
TAG = re.compile(rf"^(?:# |<!-- )exercise: ({ID})(?: -->)?\s*$")
SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION[ \t]*$", re.S | re.M
)
MARKER = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION[ \t]*$", re.M)
TITLE = re.compile(r"^## (.+)$", re.M)
STATEMENT = re.compile(r"^\*(\d+) points?\. Goal: (.+?)\.\*$", re.M | re.S)
FUNCTION = re.compile(r"^def (\w+)\(", re.M)
CALL = re.compile(rf"check\([\"']({ID})[\"'], (\w+)\)\s*")

INTRODUCTION = """\
Each exercise has a cell for your answer and a cell that checks it. Run both: the check
tells you at once what is right and what is probably wrong, as often as you like. These
checks are *public*: anyone can read their cases. In a course, your answers are *graded*
by the same checks on other numbers. Chapter {chapter} has what you need, with the pages
that an exercise names.

Write your answers in plain PyTorch. Use functions of `annotated` to try things out, but
not inside an answer: the point is that you can write them yourself.

| exercise | points | after it you can |
|---|---|---|
"""

# nbgrader is told to write the same (grading/course.py)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
CODE_STUB = "# your code here\nraise NotImplementedError()"
TEXT_STUB = "*Your answer here.*"

COLUMNS = 79  # of code, which stands beside the contents of a page
UNSOLVED = "raises-exception"  # lets nbval and Jupyter go on after a check that fails


@dataclass(frozen=True)
class Exercise:
    """One exercise of a source: where its cells are and what it is worth."""

    id: str
    points: float
    function: str | None  # None: answered in words
    answer: int  # position of the cell
    test: int | None

    @property
    def in_words(self) -> bool:
        return self.function is None


def role(cell) -> str | None:
    """`answer` or `test`, for cells that nbgrader knows."""
    grader = cell.metadata.get("nbgrader", {})
    if grader.get("solution"):
        return "answer"
    return "test" if grader.get("grade") else None


def tag_of(cell) -> str | None:
    """The exercise that a cell answers, by its first line."""
    first = cell.source.lstrip().split("\n", 1)[0]
    found = TAG.match(first)
    return found and found[1]


def exercises(notebook) -> list[Exercise]:
    """The exercises of a notebook in nbgrader's format, in order.

    Raises:
        SourceError: if a cell is not what the tools need it to be.
    """
    answers, found = {}, []
    for position, cell in enumerate(notebook.cells):
        if role(cell) is None:
            continue
        grader, start = cell.metadata["nbgrader"], cell.source.split("\n", 1)[0]
        points = grader.get("points")
        if grader.get("grade") and not (isinstance(points, int | float) and points > 0):
            raise SourceError(f"{start!r}: expected points above 0, got {points!r}")
        if role(cell) == "answer":
            exercise = tag_of(cell)
            if exercise is None:
                raise SourceError(
                    f"an answer cell starts with '# exercise: chNN-name' (in words: "
                    f"'<!-- exercise: chNN-name -->'), found {start!r}"
                )
            if exercise in answers:
                raise SourceError(f"{exercise}: two answer cells")
            answers[exercise] = position
            if grader.get("grade"):
                found.append(Exercise(exercise, points, None, position, None))
            continue
        call = CALL.fullmatch(cell.source)
        if call is None:
            raise SourceError(
                f'a test cell holds one call, check("chNN-name", function), found '
                f"{cell.source!r}"
            )
        exercise, function = call.groups()
        if exercise not in answers:
            raise SourceError(f"{exercise}: its test comes before any answer cell")
        found.append(Exercise(exercise, points, function, answers[exercise], position))
    untested = answers.keys() - {exercise.id for exercise in found}
    if untested:
        raise SourceError(f"{sorted(untested)}: neither a test nor points")
    if len({exercise.id for exercise in found}) != len(found):
        raise SourceError("an exercise has two test cells")
    if not found:
        raise SourceError("no exercises")
    return found


def read_exercises(path: Path, setup: str) -> nbformat.NotebookNode:
    """The notebook with solutions that a source describes, complete and checked."""
    notebook, chapter = read_source(path, setup), int(path.name[:2])
    try:
        for cell in notebook.cells:
            if MARKER.search(cell.source):
                raise SourceError(f"markers are set here, found {cell.source!r}")
        checks = checks_of(chapter, path.parents[3])
        _complete(notebook, chapter, right_answers(checks))
        found = exercises(notebook)
    except SourceError as error:
        raise SourceError(f"{path}: {error}") from None
    if not any(exercise.in_words for exercise in found):
        raise SourceError(f"{path}: at least one question is answered in words")
    return notebook


def checks_of(chapter: int, root: Path = ROOT) -> Path:
    """The file that holds the right answers of a chapter's exercises."""
    return root / "annotated" / "chapters" / f"ch{chapter:02}" / "checks.py"


def right_answers(path: Path) -> dict[str, str]:
    """The functions that a file declares by ``@exercise(id, …)``, as answer cells hold
    them: what stands below the docstring is between the markers.

    Raises:
        SourceError: if one has no docstring, or lines that are too long for a page.
    """
    text = path.read_text(encoding="utf-8")
    lines, answers = text.splitlines(), {}
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(
                decorator_list=[
                    ast.Call(ast.Name("exercise"), [ast.Constant(name), *_]),
                    *others,
                ]
            ):
                start, stop = [*others, node][0].lineno - 1, node.end_lineno
            case _:
                continue
        if ast.get_docstring(node) is None:
            raise SourceError(f"{name}: its right answer has no docstring")
        below = node.body[0].end_lineno
        solution = [f"    {BEGIN}", *lines[below:stop], f"    {END}"]
        answers[name] = "\n".join(lines[start:below] + solution)
        for line in lines[below:stop]:
            if len(line.split(" # ")[0]) > COLUMNS:
                raise SourceError(f"{name}: over {COLUMNS} columns: {line.strip()!r}")
    return answers


def _complete(notebook, chapter: int, answers: dict[str, str]) -> None:
    """Add what follows from the statements and the ids of the answers."""
    first, *others = notebook.cells
    cells, rows, statement = [first], [], None
    for cell in others:
        cells.append(cell)
        if cell.cell_type == "markdown" and TITLE.search(cell.source):
            statement, answered = cell.source, False
        if (exercise := tag_of(cell)) is None:
            continue
        said = statement and STATEMENT.search(statement)
        if not said or answered:
            raise SourceError(
                f"{exercise}: expected a statement of its own before it, with a line "
                "*3 points. Goal: say what it is for.*"
            )
        title, points, goal = TITLE.search(statement)[1], int(said[1]), said[2]
        rows.append(f"| {title} | {points} | {' '.join(goal.split())} |")
        answered = True
        if cell.cell_type == "code":
            if exercise not in answers:
                raise SourceError(f"{exercise}: there is no right answer in its check")
            gap = "\n\n\n" if "\n" in cell.source else "\n"  # below what is given
            cell.source += gap + answers.pop(exercise)
            cell.metadata["nbgrader"] = _grader(exercise, solution=True)
            cells.append(_test_cell(exercise, cell, points))
        else:  # (without markers, nbgrader would clear the first line, too)
            tag, _, answer = cell.source.partition("\n")
            cell.source = f"{tag}\n{BEGIN}\n{answer.strip()}\n{END}"
            cell.metadata["nbgrader"] = _grader(exercise, solution=True, points=points)
    if answers:
        raise SourceError(f"{', '.join(answers)}: no cell starts with this id")
    introduction = INTRODUCTION.format(chapter=chapter)
    first.source = f"{first.source}\n\n{introduction}" + "\n".join(rows)
    notebook.cells = cells


def _grader(grade_id: str, solution: bool, points: int | None = None) -> dict:
    """nbgrader's metadata of a cell."""
    graded = points is not None
    made = {"schema_version": 3, "grade_id": grade_id, "grade": graded}
    made |= {"solution": solution, "locked": not solution, "task": False}
    return made | ({"points": points} if graded else {})


def _test_cell(exercise: str, answer, points: int) -> nbformat.NotebookNode:
    """The cell that checks the last function of an answer."""
    functions = FUNCTION.findall(answer.source)
    if not functions:
        raise SourceError(f"{exercise}: the answer cell defines no function")
    cell = nbformat.v4.new_code_cell(f'check("{exercise}", {functions[-1]})')
    grader = _grader(f"{exercise}-test", solution=False, points=points)
    cell.metadata["nbgrader"] = grader
    return cell


def stub(cell) -> str:
    """What the student finds in an answer cell."""
    text = CODE_STUB if cell.cell_type == "code" else TEXT_STUB

    def indented(match: re.Match) -> str:
        return "\n".join(match[1] + line for line in text.split("\n"))

    return SOLUTION.sub(indented, cell.source)


def solution(cell) -> str:
    """An answer cell without the markers."""
    return SOLUTION.sub(lambda match: match[2].rstrip("\n"), cell.source)


def student_notebook(notebook) -> nbformat.NotebookNode:
    """The notebook without its solutions."""
    made = copy.deepcopy(notebook)
    for cell in made.cells:
        if role(cell) == "answer":
            cell.source = stub(cell)
        elif role(cell) == "test":
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), UNSOLVED]
    return made


def prompts(what: str) -> dict[str, str]:
    """What stands on a fold of the page."""
    return {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}


def page_notebook(notebook) -> nbformat.NotebookNode:
    """The page of the book: solutions folded, and run by the checks below them."""
    made = copy.deepcopy(notebook)
    made.cells = []
    for cell in copy.deepcopy(notebook.cells):
        kind = role(cell)
        cell.metadata.pop("nbgrader", None)
        if kind == "answer" and cell.cell_type == "code":
            made.cells.append(nbformat.v4.new_code_cell(stub(cell)))
            cell.source = solution(cell)
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-cell"]
            cell.metadata["mystnb"] = prompts("the solution")
        elif kind == "answer":
            tag, _, answer = solution(cell).partition("\n")
            cell.source = f"{tag}\n::::::{{dropdown}} Model answer\n{answer}\n::::::"
        elif kind == "test":
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-output"]
            cell.metadata["mystnb"] = prompts("what the check says of the solution")
        made.cells.append(cell)
    return made


def sources(root: Path = ROOT) -> list[Path]:
    return sorted((root / SOURCES[STUDENT]).glob("*.py"))


def source_of(chapter: str, root: Path = ROOT) -> Path:
    """The source of a chapter's exercises; `chapter` is its number, 02 or 2."""
    for path in sources(root):
        if chapter.isdigit() and path.name.startswith(f"{int(chapter):02}_"):
            return path
    known = [path.name[:2] for path in sources(root)]
    raise SourceError(f"CHAPTER={chapter}: expected one of {', '.join(known)}")
