"""Whose answers are alike: for a person to look at, never a mark.

Code is compared without names, comments, docstrings and layout; an answer in words,
without capitals and punctuation. The book's own answers are one more participant.
"""

import ast
import re
from collections import Counter, defaultdict
from itertools import combinations

from grading.normalise import MOST_LOOKED_AT, parsed
from tools.exercises import exercises

BOOK = "the book"
LONG = 50  # symbols of code, about four lines, that are not in what students got
MUCH = 100  # such symbols that a pair shares with few
LONG_WORDS = 25
NEVER_TWICE = 1000  # symbols that nobody writes as another does; words count so much
RARE = 0.1  # of those who answered, and two of a small class, are few
SEVERAL = 3  # longer answers: who agrees in all of them is named, however many do

Answers = dict[str, tuple[str, int]]  # exercise -> what is compared, and its size


def answers(notebook, release) -> Answers:
    """The longer answers of a notebook.

    Args:
        notebook: a release with answers in it.
        release: the one without.
    """
    given = set()
    for cell in release.cells:
        if cell.cell_type == "code":
            given |= set(_lines(_tree(cell.source)))
    found = {}
    for exercise in exercises(notebook):
        source = notebook.cells[exercise.answer].source
        if exercise.in_words:
            words = re.findall(r"\w+", source.partition("\n")[2].lower())
            if len(words) >= LONG_WORDS:
                found[exercise.id] = " ".join(words), NEVER_TWICE
            continue
        try:
            tree = _tree(source[:MOST_LOOKED_AT])
            new = [line for line in _lines(tree) if line not in given]
            size = len(re.findall(r"\w+|[^\w\s]", " ".join(new)))
            if size >= LONG:
                found[exercise.id] = _without_names(tree), size
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # what is no Python is in the report already
    return found


def _tree(source: str) -> ast.Module:
    """Code without docstrings."""
    tree = parsed(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            del node.body[0]
    return tree


def _lines(tree: ast.Module) -> list[str]:
    return [line.strip() for line in ast.unparse(tree).split("\n")]


def _without_names(tree: ast.Module) -> str:
    """The tree in which each name that the code gives itself is a number."""
    kinds = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name"}
    named = [(n, kinds[type(n)]) for n in ast.walk(tree) if type(n) in kinds]
    own: dict[str, str] = {}
    for node, field in named:
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            own.setdefault(getattr(node, field), f"name {len(own)}")
    for node, field in named:
        name = getattr(node, field)
        setattr(node, field, own.get(name, name))
    return ast.dump(tree)


def alike(given: dict[str, Answers]) -> dict[str, str]:
    """Who should be looked at: student -> beside whom, and for which answers.

    A pair is named that shares much with few others, or agrees in all of several longer
    answers: four lines that half a class writes say nothing.
    """
    book = given.get(BOOK, {})
    for found in given.values():
        for exercise, (text, _) in found.items():
            if exercise in book and text in book[exercise][0]:  # without its rubric
                found[exercise] = book[exercise]
    shared = Counter((e, found[e][0]) for found in given.values() for e in found)
    answered = Counter(e for found in given.values() for e in found)
    beside: dict[str, list[str]] = defaultdict(list)
    for one, other in combinations(sorted(given), 2):
        mine, theirs = given[one], given[other]
        both = mine.keys() & theirs.keys()
        same = sorted(e for e in both if mine[e][0] == theirs[e][0])
        much = sum(
            mine[e][1]
            for e in same
            if mine[e][1] >= NEVER_TWICE
            or BOOK in (one, other)  # however many have copied it
            or shared[e, mine[e][0]] <= max(2, RARE * answered[e])
        )
        if much >= MUCH or len(same) == len(both) >= SEVERAL:
            beside[one].append(f"{other} ({', '.join(same)})")
            beside[other].append(f"{one} ({', '.join(same)})")
    return {who: "; ".join(found) for who, found in beside.items() if who != BOOK}
