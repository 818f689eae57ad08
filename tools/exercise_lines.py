"""What an exercise costs in lines: ``python -m tools.exercise_lines``.

An exercise stands in three files: its text in ``notebooks/src/exercises``, its solution
and check in ``chapters/chNN/checks.py`` of the package, answers that try the check in
``answers.py`` of its tests. Every line of the three is counted, blank ones too. What
stands between two headings (``# ## 1. …`` in a source, ``# ---- …`` in the others)
belongs to the exercises whose ids it holds, in equal parts; what names none, to all
exercises of the chapter.
"""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from tools import ROOT
from tools.exercises import ID, checks_of, exercises, read_exercises, source_of, sources

MEDIAN, LONGEST = 150, 220  # lines of an exercise
HEADING = re.compile(r"^(?:# ## |# ---- |@right|@wrong|RIGHT)", re.M)


def files(chapter: str) -> list[Path]:
    """The three files of a chapter's exercises; ``chapter`` is its number, 02 say."""
    answers = ROOT / "tests" / "chapters" / f"ch{chapter}" / "answers.py"
    return [source_of(chapter), checks_of(int(chapter)), answers]


def share(text: str, names: list[str]) -> Counter[str]:
    """The lines of a file, shared out to the exercises that it may be about."""
    starts = [0, *(match.start() for match in HEADING.finditer(text)), len(text)]
    lines = Counter(dict.fromkeys(names, 0))
    for start, end in pairwise(starts):
        section = text[start:end]
        found = set(re.findall(rf"\b{ID}", section)) & set(names) or names
        for name in found:
            lines[name] += section.count("\n") / len(found)
    return lines


def cost(chapter: str) -> dict[str, list[float]]:
    """Lines of each exercise of a chapter: in its text, check and answers."""
    names = [e.id for e in exercises(read_exercises(source_of(chapter), setup=""))]
    shares = [share(path.read_text(encoding="utf-8"), names) for path in files(chapter)]
    return {name: [lines[name] for lines in shares] for name in names}


def main() -> None:
    print(f"{'exercise':36} {'text':>5} {'check':>6} {'answers':>8} {'all':>5}")
    every = []
    for chapter in [path.name[:2] for path in sources()]:
        parts = cost(chapter)
        for name, lines in parts.items():
            text, check, answers = lines
            print(
                f"{name:36} {text:5.0f} {check:6.0f} {answers:8.0f} {sum(lines):5.0f}"
            )
        totals = [sum(lines) for lines in parts.values()]
        print(f"chapter {chapter}: median {median(totals):.0f}, most {max(totals):.0f}")
        every += totals
    print(
        f"{len(every)} exercises: mean {mean(every):.0f}, median {median(every):.0f}, "
        f"most {max(every):.0f}; allowed are {MEDIAN} and {LONGEST}"
    )


if __name__ == "__main__":
    main()
