"""Odd submissions to an assignment, and the marks that each of them deserves."""

import copy
import json
from dataclasses import dataclass, field

from tools.exercises import exercises, solution

GARBAGE = "    return 42"


@dataclass
class Handed:
    """A file in the inbox, who it is from, and the exercises that earn no points."""

    path: str
    student: str
    content: str
    lost: set[str] = field(default_factory=set)
    odd: tuple[str, ...] = ()  # what the report must say
    words: bool = True  # was the question in words answered?
    graded: bool = True
    encoding: str = "utf-8"


class Maker:
    """Makes submissions from a student notebook and the notebook with the solutions."""

    def __init__(self, student, solved) -> None:
        self.blank = json.loads(json.dumps(student))
        self.exercises = exercises(solved)
        self.solutions = {
            e.id: solution(solved.cells[e.answer]) for e in self.exercises
        }
        self.code = [e for e in self.exercises if not e.in_words]
        self.words = next(e for e in self.exercises if e.in_words)

    def right(self) -> dict:
        """Every answer in its place."""
        notebook = copy.deepcopy(self.blank)
        for exercise in self.exercises:
            notebook["cells"][exercise.answer]["source"] = self.solutions[exercise.id]
        return notebook

    def body(self, exercise, statements: str) -> str:
        """The answer cell's own def with other statements in it, one level deep."""
        head = []
        for line in self.solutions[exercise.id].split("\n"):
            head.append(line)
            if line.startswith(f"def {exercise.function}("):
                break
        return "\n".join([*head, statements])

    def with_answers(self, **changed: str) -> dict:
        """Right, but for the answers given by position: `_0` is the first exercise."""
        notebook = self.right()
        for key, source in changed.items():
            exercise = self.code[int(key[1:])]
            notebook["cells"][exercise.answer]["source"] = source
        return notebook

    def all(self) -> list[Handed]:
        """At least one of every kind that has been met."""
        first, second = self.code[0], self.code[1]
        every = {e.id for e in self.code}
        made = []

        def add(path, student, notebook, lost=(), odd=(), words=True, **options):
            text = notebook if isinstance(notebook, str) else json.dumps(notebook)
            lost = {lost} if isinstance(lost, str) else set(lost)
            made.append(Handed(path, student, text, lost, odd, words, **options))

        add("blankb_101_90001_02_x.ipynb", "blankb", self.blank, every, (), False)
        add("rightr_LATE_102_90002_02_x-1.ipynb", "rightr", self.right())
        wrong = self.with_answers(_0=self.body(first, GARBAGE))
        add(
            "Will Wrong_103_assignsubmission_file_02_x.ipynb",
            "will_wrong",
            wrong,
            first.id,
        )
        half = self.with_answers(_0=self.blank["cells"][first.answer]["source"])
        add("half_104_90004_02_x.ipynb", "half", half, first.id)

        colab = self.right()
        colab["metadata"] = {"colab": {"provenance": []}}
        for cell in colab["cells"]:
            cell["metadata"] = {"id": "aBcDeF"}
            cell["source"] = cell["source"].splitlines(keepends=True)
        add(
            "cora - Copy of 02_self_attention (1).ipynb", "cora", colab,
            odd=("metadata is lost",),
        )  # fmt: skip

        deleted = self.right()
        gone = {first.answer, first.test}
        deleted["cells"] = [
            cell for i, cell in enumerate(deleted["cells"]) if i not in gone
        ]
        add(
            "dele/ch02/02_x.ipynb", "dele", deleted, first.id,
            ("no answer cell found", "test cell is gone"),
        )  # fmt: skip

        doubled = self.right()
        answer = doubled["cells"][first.answer]
        early = answer | {"source": self.body(first, GARBAGE)}
        late = copy.deepcopy(self.blank["cells"][first.answer])
        doubled["cells"][first.answer : first.answer + 1] = [early, answer, late]
        add("dora.ipynb", "dora", doubled, odd=("3 answer cells",))

        moved = self.right()
        moved["cells"].reverse()
        for cell in moved["cells"]:
            cell["id"] = "same"
        add("mona_02_self_attention.ipynb", "mona", moved)

        extra = self.with_answers(
            _0=self.body(first, "    return my_helper(*locals().values())")
        )
        inner = self.solutions[first.id].replace(first.function, "my_helper")
        inner = inner.split("\n", 1)[1]
        loop = {"cell_type": "code", "metadata": {}, "source": "while True: pass"}
        helper = {"cell_type": "code", "metadata": {}, "source": inner}
        script = "<script>alert(31337)</script><img src=x onerror=alert(31337)>"
        words = extra["cells"][self.words.answer]
        words["source"] = words["source"].split("\n")[0] + f"\n=1+1 {script}\ud800"
        extra["cells"][2:2] = [loop, helper, copy.deepcopy(loop)]
        add(
            "ext (2).ipynb", "ext", extra,
            odd=("3 code cell(s)",),
        )  # fmt: skip

        tampered = self.with_answers(_0=self.body(first, GARBAGE))
        for cell in tampered["cells"]:
            if cell["source"].startswith("check("):
                cell["source"] = "print('all public checks passed')"
                cell["metadata"]["nbgrader"]["points"] = 100
        add("tam.ipynb", "tam", tampered, first.id, ("test cell is gone",))

        endless = self.with_answers(_0=self.body(first, "    while True: pass"))
        add("endl.ipynb", "endl", endless, first.id, ("takes longer than",))

        flood = "    import warnings; warnings.warn('!'); print('x' * 5_000_000)\n"
        rest = self.solutions[first.id].split('"""\n', 1)[1]
        flooding = self.with_answers(_0=self.body(first, flood + rest))
        add("floo.ipynb", "floo", flooding)

        quits = self.with_answers(
            _0=self.body(first, "    import sys; sys.exit(0)"),
            _1=self.body(second, "    import os; os._exit(0)"),
        )
        add(
            "quit.ipynb", "quit", quits, {first.id, second.id},
            ("ended its process", "imports sys"),
        )  # fmt: skip

        forging = """\
import os, torch, annotated.checks
torch.allclose = torch.equal = lambda *a, **k: True
annotated.checks.check = annotated.checks.verdict = lambda *a, **k: None
annotated.checks.close = annotated.checks.expect = lambda *a, **k: True
def check(*arguments): print("all public checks passed")
os.write(3, b'[null, {"tuple": []}, null]\\n' * 99)
"""
        forged = self.with_answers(
            _0=self.solutions[first.id].split("\n", 1)[0]
            + f"\n{forging}\ndef {first.function}(*arguments): return arguments[0]",
        )
        # (the last answer compares by torch.allclose, as it is in this notebook)
        add(
            "forg.ipynb", "forg", forged, {first.id, self.code[-1].id},
            ("assigns torch.allclose", "defines its own check"),
        )  # fmt: skip

        peeking = """\
    import gc, glob, inspect, sys, traceback
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(str(frame.f_locals))
        frame = frame.f_back
    for path in glob.glob("/**/chapters/*/checks.py", recursive=True):
        seen.append(open(path).read())
    try:
        seen.append(inspect.getsource(sys.modules["annotated.chapters.ch02.checks"]))
    except Exception:
        seen.append(traceback.format_exc())
    print(*seen)
    raise ValueError("".join(seen)[-5000:])"""
        peek = self.with_answers(_0=self.body(first, peeking))
        add("peek.ipynb", "peek", peek, first.id, ("imports inspect",))

        text = json.dumps(self.right())
        add(
            "trun_02_self_attention.ipynb",
            "trun",
            text[: len(text) // 2],
            every,
            ("no JSON", "NOT GRADED"),
            False,
            graded=False,
        )

        broken = self.with_answers(_0=self.solutions[first.id] + "\n    return (")
        add("synt.ipynb", "synt", broken, first.id)

        greedy = "    import torch\n    return torch.ones(20_000_000_000)"
        greedy = self.with_answers(_0=self.body(first, greedy))
        add("gree.ipynb", "gree", greedy, first.id)

        borrowed = self.solutions[first.id].split("\n", 1)
        borrowed.insert(
            1, "from annotated.attention import scaled_dot_product_attention"
        )
        copied = self.with_answers(_0="\n".join(borrowed))
        add(
            "borr.ipynb", "borr", copied,
            odd=("takes annotated.attention.scaled_dot_product_attention",),
        )  # fmt: skip
        for submission in [*self.unusual(), *self.attacks()]:
            made.append(submission)
        return made

    def unusual(self) -> list[Handed]:
        """Honest work in an unusual form, which keeps its marks."""
        first = self.code[0]
        right, name = self.solutions[first.id], first.function
        spaced = right.replace(f"def {name}(", f"def {name} (")
        content = json.dumps(self.with_answers(_0=spaced))
        made = [Handed("spac.ipynb", "spac", content)]
        for key, source in (
            ("miss", right.replace(f"def {name}(", f"def {name}x(")),
            ("clea", ""),
            ("comm", "# I do not know"),
        ):
            notebook = json.dumps(self.with_answers(_0=source))
            made.append(Handed(f"{key}.ipynb", key, notebook, {first.id}))

        tried = self.right()
        source = f"import time; time.sleep(60)\n{name} = None  # what if?"
        cell = {"cell_type": "code", "metadata": {}, "source": source}
        tried["cells"].insert(first.answer + 1, cell)
        odd = (f"{first.id}: 1 statement(s) around it took too long",)
        made.append(Handed("expe.ipynb", "expe", json.dumps(tried), set(), odd))
        pasted = self.right()
        data = "iVBORw0KGgo=" * 20_000  # a picture, as Colab keeps it
        cell = pasted["cells"][self.words.answer]
        cell["source"] += f"\n\n![photo](data:image/png;base64,{data})"
        made.append(Handed("pict.ipynb", "pict", json.dumps(pasted)))
        wide = json.dumps(self.right())
        made.append(Handed("wide.ipynb", "wide", wide, encoding="utf-16"))
        for number in ("901", "902"):
            path = f"Sam Lee_{number}_assignsubmission_file_02_x.ipynb"
            odd = ("several students are called sam_lee",)
            content = json.dumps(self.right())
            made.append(Handed(path, f"sam_lee_{number}", content, set(), odd))
        return made

    def attacks(self) -> list[Handed]:
        """What was once seen to work, each in the place of the first answer."""
        first = self.code[0]
        forms = {
            "daem": """
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        for pid in os.listdir("/proc"):
            if pid.isdigit() and int(pid) not in (1, os.getpid()):
                for end in range(3):
                    try:
                        pipe = open(f"/proc/{pid}/fd/{end}", "wb", buffering=0)
                        pipe.write(b'"ended"\\n')
                    except OSError:
                        continue
        time.sleep(0.05)
""",
            "heap": """
seen = ""
try:
    with open("/proc/self/mem", "rb") as memory:
        for line in open("/proc/self/maps"):
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "heap" in line:
                memory.seek(start)
                seen = memory.read(end - start).decode("latin-1")
except OSError as error:
    seen = str(error)
raise ValueError("LEAKED " + seen[:1000])
""",
        }
        made = []
        for key, source in forms.items():
            body = self.body(first, "    return arguments_that_are_not_there")
            source = body.replace("\n", f"\n{source}\n", 1)
            notebook = json.dumps(self.with_answers(_0=source))
            made.append(Handed(f"{key}.ipynb", key, notebook, {first.id}))
        return made
