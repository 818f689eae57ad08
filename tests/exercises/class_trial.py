"""A whole class, a tenth of it hostile, graded by one command.

python -m tests.exercises.class_trial 300 --jobs 2

Prints how many marks are what they should be, the time and the memory that it took.
"""

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import psutil

from tests.exercises.submissions import Handed, Maker
from tests.exercises.test_grading_green import ODD, odd_notebook
from tools import ROOT
from tools.exercises import read_exercises, source_of, student_notebook
from tools.source import setup_cell

HOSTILE = ("daem", "heap", "many", "repl", "forg", "peek", "endl", "gree")
PICTURE = f"![a.png](data:image/png;base64,{'iVBORw0KGgo=' * 20_000})"


def hostile(maker: Maker) -> list[Handed]:
    """Old attacks, and those that once stopped a class; with what must not count."""
    made = [handed for handed in maker.all() if handed.student in HOSTILE]
    first = maker.code[0]
    forms = {
        "slow": [f"import time; time.sleep(99)  # {n}" for n in range(30)],
        "mute": [
            "import os, time\nfor fd in range(3, 12):\n    try:\n"
            "        os.write(fd, b'[true, null]\\n' * 3)\n"
            "    except OSError:\n        continue\ntime.sleep(600)"
        ],
        "long": ["\n" * 2_000_000 + "check("],
        "deep": ["x = " + "(" * 5000],
        "many-cells": ["for n in range(10**9): n"] * 1900,
    }
    for name, sources in forms.items():
        notebook = maker.with_answers(_0=maker.body(first, "    return 42"))
        cells = [{"cell_type": "code", "metadata": {}, "source": s} for s in sources]
        notebook["cells"][first.answer : first.answer] = cells
        # such a one may lose more than what it did not solve
        made.append(Handed(f"{name}.ipynb", name, json.dumps(notebook), {first.id}))
    return made


def honest(maker: Maker) -> list[Handed]:
    made = []
    for number, change in enumerate(ODD.values()):
        notebook = odd_notebook(change)
        [words] = [
            cell
            for cell in notebook["cells"]
            if cell["source"].startswith(f"<!-- exercise: {maker.words.id}")
        ]
        if number % 5 == 0:
            words["source"] += f"\n\n{PICTURE}"
        lost = change.get("red", set())
        made.append(Handed("", f"odd{number}", json.dumps(notebook), set(lost)))
    return made


def hand_in(inbox: Path, maker: Maker, students: int) -> dict[str, tuple[bool, set]]:
    """Fill the inbox; who is honest, and which exercises each must not get."""
    good, bad, deserved = honest(maker), hostile(maker), {}
    for kinds in (good, bad):  # a small class is a sample of them
        random.Random(0).shuffle(kinds)
    with zipfile.ZipFile(inbox / "class.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(students):
            evil = number % 10 == 3
            kinds = bad if evil else good
            handed = kinds[number // (10 if evil else 1) % len(kinds)]
            name = (
                f"student{chr(97 + number // 26 % 26)}{chr(97 + number % 26)}{number}"
            )
            archive.writestr(
                f"{name}_{1000 + number}_{90000 + number}_02_self_attention.ipynb",
                handed.content.encode(handed.encoding),
            )
            deserved[name] = not evil, handed.lost
    bomb = inbox / "Eve Bomb_7_assignsubmission_file_work.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(60):
            archive.writestr(f"{number}.ipynb", b" " * 20 * 2**20)
    return deserved


def watched(command: list[str]) -> tuple[int, float, float, float]:
    """Run a command: its exit code, its seconds, those that its processes computed, and
    the most bytes that they held, in GB."""
    begun, most, used = time.monotonic(), 0, {}
    process = subprocess.Popen(command, cwd=ROOT)

    def watch() -> None:
        nonlocal most
        while process.poll() is None:
            held = 0
            for one in [root := psutil.Process(process.pid), *root.children(True)]:
                try:
                    used[one] = sum(one.cpu_times()[:2])
                    held += one.memory_full_info().pss  # forks share most of theirs
                except psutil.Error:
                    continue
            most = max(most, held)
            time.sleep(1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    code = process.wait()
    return code, time.monotonic() - begun, sum(used.values()), most / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("students", type=int)
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    given = parser.parse_args()
    solved = read_exercises(source_of("02"), setup_cell())
    maker = Maker(student_notebook(solved), solved)
    grading = [sys.executable, "-m", "grading"]
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        subprocess.run([*grading, "assignment", "02", course], cwd=ROOT, check=True)
        deserved = hand_in(course / "inbox", maker, given.students)
        code, seconds, cpu, most = watched(
            [*grading, "grade", str(course), "--jobs", given.jobs]
        )
        with open(course / "export" / "exercises.csv", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    points = {exercise.id: exercise.points for exercise in maker.code}
    found = {(row["student"], row["exercise"]): row["score"] for row in rows}
    lost, earned = [], []
    for name, (good, without) in deserved.items():
        for exercise, most_points in points.items():
            score = float(found.get((name, exercise)) or 0)
            if good and exercise not in without and score < most_points:
                lost.append((name, exercise))
            if exercise in without and score > 0:
                earned.append((name, exercise))
    count = sum(good for good, _ in deserved.values())
    print(f"{given.students} submissions, {count} honest, {given.jobs} at once")
    # (looked at once a second: a process that is killed was not waited for)
    print(f"exit code {code}; {seconds:.0f} s, about {cpu:.0f} of CPU")
    print(f"at most {most:.2f} GB held by all processes together")
    print(f"honest marks lost: {len(lost)} {lost[:9]}")
    print(f"marks earned without a right answer: {len(earned)} {earned[:9]}")


if __name__ == "__main__":
    main()
