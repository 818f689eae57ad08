"""Exercises, each written once: right answer, mistakes, and how cases are drawn.

An exercise stands in ``annotated/chapters/chNN/checks.py``::

    @exercise("ch02-scaled-scores", "expected q·k/√k for each query and each key")
    def scaled_scores(q, k):
        '''Scores (b, t, s).'''
        return q @ k.mT / k.shape[-1] ** 0.5


    scaled_scores.instead('''
    / k.shape[-1] ** 0.5
        # the factor 1/√k is missing
        / k.shape[-1]  # divided by k, not by √k
    k.mT -> k.mT.detach()  # … no gradient reaches k
    ''')


    @scaled_scores.case("a batch of two, every axis of another length")
    def _(draw):
        t, s, k = draw.sizes(3)
        return draw.normal(2, t, k), draw.normal(2, s, k)


    @scaled_scores.each('''
    one query -> 1, 4
    as many queries as keys -> 3, 3
    ''')
    def _(draw, t, s):
        return draw.normal(2, t, 5), draw.normal(2, s, 5)

The decorated function is the right answer, and the student's stub and the solution are
made from it: what stands below the docstring is the solution. A mistake is a change of
its text, with the hint that names it: a line of a table that `changes` reads. After
``…`` there is a piece of what is said of a change anyway, and tests alone try it. Where
a mistake is another way to go about the exercise, it is a function, ``@exercise(…,
{hint: function})``. A case is a function that draws the arguments; cases that differ in
plain values alone are lines of a table, too.

Three things follow. A notebook's ``check`` draws each case with seed 0; a course draws
the same cases with its own secret seed, so that a table of known results is worth
nothing; and the tests try every mistake as an answer, which must be rejected with its
own hint.

Right answers and mistakes are computed in double precision, and cast to the precision
of the arguments. Judging needs plain results only and never calls the answer, which in
grading ran in a process of its own.
"""

import hashlib
import importlib
import inspect
import math
import re
import textwrap
import warnings
from ast import literal_eval, parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, zip_longest
from typing import Any

import torch
from torch import Tensor

from annotated.checks.calling import (
    NOT_DONE,
    PROBLEMS,
    Call,
    Differentiated,
    Function,
    Problem,
    Raised,
    call,
    copied,
    is_float,
    mapped,
)

__all__ = [
    "CheckFailed",
    "Exercise",
    "Function",
    "changes",
    "check",
    "exercise",
    "faults",
    "fused",
    "overflown",
]

EXERCISE = re.compile(r"ch\d\d-[a-z0-9]+(-[a-z0-9]+)*")
# How near an answer must come in each precision, when the right one is computed wide.
TOLERANCES = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float64: 1e-9}
_EXERCISES: dict[str, "Exercise"] = {}

Change = tuple[str, str] | Sequence[tuple[str, str]]
"""A change ``(old, new)`` of a text, or several, one after the other."""


class CheckFailed(AssertionError):
    """A check did not pass; shown as one line, without the way through our code."""

    def _render_traceback_(self) -> list[str]:  # what IPython and Colab show
        return [f"\x1b[31m✗ {self}\x1b[0m"]


class Draw:
    """Random arguments: the same ones for the same seed.

    Args:
        seed: any text.
        dtype: precision of the tensors drawn.
    """

    def __init__(self, seed: str, dtype: torch.dtype = torch.float32) -> None:
        digest = hashlib.sha256(seed.encode()).digest()
        self.generator = torch.Generator()
        self.generator.manual_seed(int.from_bytes(digest[:6], "big"))
        self.dtype = dtype

    def normal(self, *shape: int) -> Tensor:
        """Normal numbers, ``shape``."""
        return torch.randn(*shape, generator=self.generator).to(self.dtype)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform numbers in [low, high), ``shape``."""
        unit = torch.rand(*shape, generator=self.generator)
        return (low + (high - low) * unit).to(self.dtype)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from ``low`` to ``high``, both included, ``shape``."""
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def integer(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return int(self.integers(low, high))

    def number(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * float(torch.rand((), generator=self.generator))

    def sizes(self, count: int, low: int = 2, high: int = 7) -> list[int]:
        """As many lengths, all different, so that no two axes can be confused."""
        return [low + i for i in self.shuffled(range(high - low + 1))[:count]]

    def shuffled(self, things: Sequence) -> list:
        """The things in another order."""
        order = torch.randperm(len(things), generator=self.generator)
        return [things[i] for i in order.tolist()]

    def choice(self, things: Sequence) -> Any:
        """One of the things."""
        return self.shuffled(things)[0]

    def mask(self, *shape: int) -> Tensor:
        """A boolean mask with something allowed, and something not, in every row."""
        scores = torch.rand(*shape, generator=self.generator)
        rows = scores.flatten(0, -2) if len(shape) > 1 else scores[None]
        allowed = rows > 0.4
        allowed.scatter_(-1, rows.argmax(-1, keepdim=True), True)
        allowed.scatter_(-1, rows.argmin(-1, keepdim=True), False)
        return allowed.view(shape)


@dataclass(frozen=True)
class Case:
    """One test: arguments that were drawn, and what is looked at.

    Args:
        exercise: what it belongs to.
        line: what is tested, one line for the reader.
        arguments: what the answer is called with.
        gradients: the gradients of the arguments are compared too.
        hint: said where the result is wrong, whatever it is.
        number: its place among the exercise's cases.
        turn: when it is tried.
        results: of the functions of ours that have been called with it.
    """

    exercise: "Exercise"
    line: str
    arguments: tuple
    gradients: bool = False
    hint: str | None = None
    number: int = 0
    turn: int = 0
    results: dict[Callable, Any] = field(default_factory=dict, compare=False)

    @property
    def seed(self) -> int:
        """Of the random numbers that an answer draws: they must not tell it which case
        it is."""
        return self.turn if self.exercise.luck else 0


class Exercise:
    """An exercise: what is right, what is known to go wrong, what is tried.

    Args:
        name: id, such as ``ch02-self-attention``.
        right: the right answer, apart from the module. It is called with the
            arguments in double precision. Where it raises, the answer
            has to raise the same kind of exception.
        hint: said where a result is wrong and no known mistake gives it.
        mistakes: hint -> a function that makes this mistake, called as ``right`` is; or
            a `Change` of the text of ``right``, where a table of `instead` won't do.
        broken: hints for the rules whose name ``through`` returns in place of a result.
        symptoms: called as ``symptoms(result, *arguments)`` first of all: returns a
            hint for what can be seen of the result itself (an infinity, a number
            where True or False is asked), which rejects it, or None. What was raised
            is a `Raised`. The hint repeats nothing of the result: when graded, it could
            be what the answer has read.
        tolerance: largest relative difference; by precision if not given.
        through: called as ``through(answer, *arguments)`` in place of the answer, for
            answers that take or change what is no plain data, modules say. A function
            of ``annotated.checks.material``, which students' processes have.
        luck: an answer draws other numbers in each case, so that one that tries too few
            is not lucky in all.
        also: a change of the text of ``right`` that gives another right answer, by
            another convention; its results are accepted, too.
    """

    def __init__(
        self,
        name: str,
        right: Callable,
        hint: str,
        mistakes: dict[str, Callable | Change] | None = None,
        *,
        broken: dict[str, str] | None = None,
        symptoms: Callable | None = None,
        tolerance: float | None = None,
        through: Callable | None = None,
        luck: bool = False,
        also: Change | None = None,
    ) -> None:
        if not EXERCISE.fullmatch(name):
            raise ValueError(
                f"exercise {name!r}: expected chNN- and then small letters, digits "
                "and hyphens, ch02-self-attention say"
            )
        self.name, self.right, self.hint = name, right, hint
        self.symptoms, self.tolerance, self.through = symptoms, tolerance, through
        self.broken, self.luck = broken or {}, luck
        self._also = also
        self.parameters = list(inspect.signature(right).parameters)
        self._instead: dict[str, Change] = {}
        self._tried: dict[str, Change] = {}
        self._mistakes = mistakes or {}
        self._cases: list[tuple] = []
        _EXERCISES[name] = self

    def instead(self, table: str) -> None:
        """Declare mistakes that are changes of the text of the right answer.

        Args:
            table: as `changes` reads it. What is said elsewhere, too, stands there by
                its name: ``{NAME}`` of a text of the right answer's module, ``{line}``
                of a case that has this hint, ``{key}`` of ``broken``. ``… a piece``
                of what is said of it anyway: nobody's result is compared with such a
                mistake, but tests try it.

        Raises:
            ValueError: if it can't be read, repeats a hint, or names what isn't there
                (yet: the cases that it names come first).
        """
        for hint, change in changes(table).items():
            hint = self._named(hint)
            if hint in self._instead | self._tried | self._mistakes:
                raise ValueError(f"{self.name} has two mistakes with the hint {hint!r}")
            (self._tried if hint[0] == "…" else self._instead)[hint] = change

    def _named(self, hint: str) -> str:
        """A hint, with what is said elsewhere in place of its name in braces."""
        names = {line: told for line, _, _, told, *_ in self._cases if told}
        names |= self.broken | self.right.__globals__

        def said(name: re.Match) -> str:
            if name[1] not in names:
                raise ValueError(f"{self.name}: no hint is called {name[1]!r}")
            return names[name[1]]

        return re.sub(r"{(.*?)}", said, hint)

    @cached_property
    def mistakes(self) -> dict[str, Callable]:
        """The mistakes as functions: hint -> function, in the order they are tried.

        Where the source of the right answer is not to be had (a package of compiled
        files alone), these are the functions only. What is wrong is refused all the
        same, then with the hint of the exercise.

        Raises:
            ValueError: if the old text of a change is not in the right answer once.
        """
        functions = {h: made for h, made in self._mistakes.items() if callable(made)}
        changed = self._instead | {
            h: made for h, made in self._mistakes.items() if h not in functions
        }
        if changed:
            try:
                text = source_of(self.right)
            except OSError:
                return functions
            functions |= {h: self._changed(text, made) for h, made in changed.items()}
        return functions

    @property
    def tried(self) -> list[tuple[str, Callable]]:
        """The mistakes that get another's hint, and a piece of it."""
        text = source_of(self.right)
        return [(h[1:].strip(), self._changed(text, c)) for h, c in self._tried.items()]

    @cached_property
    def other(self) -> Callable | None:
        """The right answer by another convention, if there is one (and a source)."""
        try:
            return self._also and self._changed(source_of(self.right), self._also)
        except OSError:
            return None

    def _changed(self, text: str, change: Change) -> Callable:
        """The right answer, its text changed, among the names of its module."""
        code = compile(replaced(text, change), f"<a mistake in {self.name}>", "exec")
        defined: dict[str, Callable] = {}
        exec(code, inspect.unwrap(self.right).__globals__, defined)
        return defined[self.right.__name__]

    def case(
        self,
        line: str,
        make: Callable[[Draw], tuple] | None = None,
        *,
        gradients: bool = False,
        hint: str | None = None,
        dtype: torch.dtype = torch.float32,
        graded_only: bool = False,
    ) -> Callable:
        """Declare a case. Without ``make``, a decorator of it.

        Args:
            line: what is tested, for the reader.
            make: takes a :class:`Draw`, and returns the arguments as a tuple.
            gradients: compare the gradients of all floating-point tensors too.
            hint: said where the result is wrong, before any mistake is looked for.
            dtype: precision of what is drawn.
            graded_only: not tried in the notebook.
        """

        def declare(make: Callable[[Draw], tuple]) -> Callable[[Draw], tuple]:
            self._cases.append((line, make, gradients, hint, dtype, graded_only))
            return make

        return declare(make) if make else declare

    def each(self, table: str, **options: Any) -> Callable:
        """Declare the cases of a table that differ only in what ``make`` is given.

        Args:
            table: lines ``what is tested -> 3, "word"``, of plain Python values, which
                ``make`` takes after the draw; ``# hint`` may follow, as in `instead`.
                Eight spaces go on with the line above.
            options: of `case`, for all of them.

        Raises:
            ValueError: for a line without values, or with others than plain ones.
        """

        def declare(make: Callable) -> Callable:
            for row in _joined(table):
                line, *rest = re.split(r" ->(?: |$)", row, maxsplit=1)
                if not rest:
                    raise ValueError(f"expected a case, line -> values, got {row!r}")
                values, *hint = re.split(r"\s+# ", rest[0], maxsplit=1)
                given = literal_eval(f"[{values}]")
                told = {"hint": self._named(hint[0])} if hint else {}
                self.case(line, partial(_with, make, given), **options, **told)
            return make

        return declare

    def cases(self, seed: str = "0", graded: bool = False) -> list[Case]:
        """The cases, drawn: in a notebook with seed 0, by a course with its own.

        Args:
            seed: of all that is random in the arguments.
            graded: with the cases that are kept for grading, and in an order that is
                drawn: a list of results that the seed does not change earns nothing.
        """
        drawn = []
        for number, declared in enumerate(self._cases):
            line, make, gradients, hint, dtype, graded_only = declared
            if graded or not graded_only:
                arguments = make(Draw(f"{seed} {self.name} {line}", dtype))
                drawn.append(Case(self, line, arguments, gradients, hint, number))
        drawn = Draw(f"{seed} {self.name}").shuffled(drawn) if graded else drawn
        return [replace(case, turn=turn) for turn, case in enumerate(drawn)]

    def result_of(self, answer: Callable, case: Case) -> Any:
        """What a function of ours gives for a case: computed wide, cast back."""
        if answer in case.results:
            return case.results[answer]
        wide = mapped(lambda v: v.double() if is_float(v) else v, case.arguments)
        # (leaves of a list or dict of arguments hold no gradient, as for the answer)
        with warnings.catch_warnings():  # a mistake may be one that PyTorch warns of
            warnings.simplefilter("ignore")
            result = call(
                answer, copied(wide), case.gradients, self.through, watched=False
            ).result
        dtype = _dtype_of(case.arguments)

        def narrow(v: Any) -> Any:
            double = isinstance(v, Tensor) and v.dtype == torch.float64
            return v.to(dtype) if double else v

        case.results[answer] = mapped(narrow, result)
        return case.results[answer]


def exercise(
    name: str, hint: str, mistakes: dict | None = None, **options: Any
) -> Callable[[Callable], Exercise]:
    """Make a right answer an `Exercise`: a decorator, with its other arguments."""
    return lambda right: Exercise(name, right, hint, mistakes, **options)


def changes(table: str) -> dict[str, Change]:
    r"""Read a table of changes of a text, each with its hint: hint -> change.

    ::

        old -> new  # hint
        old
            new  # hint
            # hint of a change that takes `old` out
        old -> new
        other old -> other new  # hint of both changes together
        old -> new  # … a piece of a hint (see `Exercise.instead`)

    Eight spaces go on with the line above. A line break in a text is written ``\n``,
    in a raw string. A text has no space at its beginning or end.

    Raises:
        ValueError: for a change without a hint, a hint without a change or told twice.
    """
    found: dict[str, Change] = {}
    old, parts, unchanged = "", [], ""
    for line in _joined(table):
        code, *hint = re.split(r"(?:^|\s)# ", line, maxsplit=1)
        if line[0] == " ":
            new = code.strip()
        elif arrow := re.search(r" ->( |$)", code):
            old, new = code[: arrow.start()], code[arrow.end() :].rstrip()
        elif hint or parts or unchanged:
            raise ValueError(f"expected a change, old -> new, got {line!r}")
        else:
            old = unchanged = code
            continue
        unchanged = ""
        parts.append((old.replace(r"\n", "\n"), new.replace(r"\n", "\n")))
        if hint:
            if hint[0] in found:
                raise ValueError(f"two changes have the hint {hint[0]!r}")
            found[hint[0]], parts = parts, []
    if parts or unchanged:
        raise ValueError(f"expected a change with a hint after {line!r}")
    return found


def _joined(table: str) -> list[str]:
    """The lines of a table that say something, each with those that go on with it."""
    lines = re.sub(r"\n {8,}", " ", textwrap.dedent(table)).splitlines()
    return [line for line in lines if line.strip()]


def _with(make: Callable, given: list, draw: Draw) -> tuple:
    return make(draw, *given)


def faults(questions: dict[str, Change] | str) -> dict[str, Change]:
    """The mistakes of an exercise that gives code with faults: any of them are left.

    Args:
        questions: what to tell somebody who left this fault in -> the change that puts
            it back into the right answer; or a table that `changes` reads.
    """
    questions = changes(questions) if isinstance(questions, str) else questions
    numbers = [
        "",
        "a fault is",
        "two faults are",
        "three faults are",
        "four faults are",
    ]
    made = {}
    for count in range(1, len(questions) + 1):
        for left in combinations(questions, count):
            hint = f"{numbers[count]} left: {' And: '.join(left)}"
            parts = [_parts(questions[question]) for question in left]
            made[hint] = [part for change in parts for part in change]
    return made


def _parts(change: Change) -> Sequence[tuple[str, str]]:
    return [change] if isinstance(change[0], str) else change


def source_of(function: Callable) -> str:
    """The source of a function that ``def`` defines, without its decorators.

    Raises:
        OSError: if it is not to be had.
    """
    text = textwrap.dedent(inspect.getsource(function))
    first = parse(text).body[0].lineno
    return "".join(text.splitlines(keepends=True)[first - 1 :])


def replaced(text: str, change: Change) -> str:
    """``text`` after a change, each part of which finds its place.

    Raises:
        ValueError: if an old text does not occur exactly once.
    """
    for old, new in _parts(change):
        if (times := text.count(old)) != 1:
            raise ValueError(f"expected {old!r} once, found it {times} times in {text}")
        text = text.replace(old, new)
    return text


def _dtype_of(arguments: Any) -> torch.dtype:
    """The precision of the first floating-point tensor, single without one."""
    found: list[torch.dtype] = []
    mapped(lambda v: found.append(v.dtype) if is_float(v) else None, arguments)
    return found[0] if found else torch.float32


def exercise_named(name: str) -> Exercise:
    """The exercise of an id.

    Raises:
        KeyError: if there is none.
    """
    if not EXERCISE.fullmatch(name):
        raise KeyError(
            f"exercise must be an id such as ch02-self-attention, got {name!r}"
        )
    chapter = name[:4]
    try:
        importlib.import_module(f"annotated.chapters.{chapter}.checks")
    except ModuleNotFoundError as error:
        if not f"annotated.chapters.{chapter}.checks".startswith(str(error.name)):
            raise
    if name not in _EXERCISES:
        known = sorted(other for other in _EXERCISES if other.startswith(chapter))
        raise KeyError(f"there is no exercise {name!r}; {chapter} has {known}")
    return _EXERCISES[name]


def check(exercise: str, answer: Any) -> None:
    """Try an answer on the cases of an exercise, one printed line a case.

    Args:
        exercise: id, such as ``ch02-self-attention``.
        answer: the reader's function.

    Raises:
        CheckFailed: if the answer is wrong or not done yet.
        KeyError: if there is no such exercise.
    """
    cases = exercise_named(exercise).cases()
    results, problems = [], []
    for case in cases:
        called = _called(case, answer)
        problems.append(verdict(case, called))
        results.append(called.result)
        if problems[-1] == NOT_DONE:
            raise CheckFailed(NOT_DONE)
    failed = len(cases) - problems.count(None)
    for case, problem in zip(cases, _agreed(cases, results, problems), strict=True):
        print(f"✗ {case.line}: {problem}" if problem else f"✓ {case.line}")
    if failed:
        raise CheckFailed(f"{failed} of {len(cases)} checks of {exercise} failed")
    print(f"all {len(cases)} checks of {exercise} passed")


def _agreed(
    cases: list[Case], results: list, problems: list[str | None]
) -> list[str | None]:
    """The problems; where they name several mistakes, the one that explains all."""
    mistakes = cases[0].exercise.mistakes
    named = {problem for problem in problems if problem in mistakes}
    if len(named) < 2:
        return problems

    def explains(mistake: Callable) -> bool:
        for case, result in zip(cases, results, strict=True):
            wrong = case.exercise.result_of(mistake, case)
            if not close(_as_asked(result, wrong), wrong, _tolerance(case)):
                return False
        return True

    told = next((hint for hint, wrong in mistakes.items() if explains(wrong)), None)
    return [told if told and said in named else said for said in problems]


def try_case(case: Case, answer: Any) -> str | None:
    """None if the answer passes, otherwise the hint."""
    return verdict(case, _called(case, answer))


def _called(case: Case, answer: Any) -> Call:
    arguments, through = copied(case.arguments), case.exercise.through
    return call(answer, arguments, case.gradients, through, seed=case.seed)


# ---- judging a plain result --------------------------------------------------


def verdict(case: Case, called: Call, quote: bool = True) -> str | None:
    """Judge what came of a call; None if it passes, otherwise the hint.

    Args:
        case: what was tried.
        called: what came of it.
        quote: repeat what the answer said: kind and message of an exception, numbers,
            shapes, dtypes. Not in grading, where they could be a file or the arguments.
    """
    exercise, result = case.exercise, called.result
    if isinstance(result, Problem):
        return PROBLEMS.get(result.name, "not what is expected")
    expected = exercise.result_of(exercise.right, case)
    if isinstance(result, Raised):
        # torch raises it too, with a message, for what a dtype or device lacks
        if result.kind == "NotImplementedError" and not result.message:
            return NOT_DONE
        if not isinstance(expected, Raised):
            return _symptom(case, result) or _raised(result, quote)
    else:
        pairs = zip(case.arguments, called.after, strict=True)
        # (an argument with a default may have been left out)
        for name, (before, after) in zip(exercise.parameters, pairs, strict=False):
            if not close(after, before, 0.0):
                return f"your code changes its argument `{name}` in place; make a copy"
    result = _as_asked(result, expected)
    if seen := _symptom(case, result):
        return seen
    tolerance = _tolerance(case)
    if close(result, expected, tolerance):
        return None
    other = exercise.other and exercise.result_of(exercise.other, case)
    if other is not None and close(result, other, tolerance):
        return None
    return next(_reasons(case, result, expected, tolerance, quote))


def fused(result: Any, *arguments: Any) -> str | None:
    """A symptom: PyTorch's attention was called, so `written_out` left no width."""
    if isinstance(result, Tensor) and result.shape[-1:] == (0,):
        return "write it out: the attention you call ready-made is what you build here"


def overflown(result: Any, *arguments: Any) -> str | None:
    """A symptom: a softmax written out divides ∞ by ∞."""
    if isinstance(result, Tensor) and result.isnan().any():
        return "not a number: does the exponential of a large score overflow?"


def _symptom(case: Case, result: Any) -> str | None:
    if isinstance(result, str) and result in case.exercise.broken:
        return case.exercise.broken[result]
    if case.exercise.symptoms is None:
        return None
    try:
        return case.exercise.symptoms(result, *copied(case.arguments))
    except Exception:  # they met what they cannot add up or index: the rest will say so
        return None


def _reasons(
    case: Case, result: Any, expected: Any, tolerance: float, quote: bool
) -> Iterator[str]:
    """Why a result may be wrong, the likeliest reason first."""
    exercise = case.exercise
    if case.hint:
        yield case.hint
    for hint, mistake in exercise.mistakes.items():
        wrong = exercise.result_of(mistake, case)
        # a wrong value that is right for these arguments would name a wrong reason
        if close(wrong, expected, tolerance):
            continue
        if close(_as_asked(result, wrong), wrong, tolerance):
            yield hint
    if isinstance(expected, Raised):
        yield _not_refused(result, expected, quote)
    if isinstance(expected, Differentiated) and isinstance(result, Differentiated):
        yield from _gradient_reasons(case, result, expected, tolerance)
    yield from _differences(result, expected, quote)
    yield _wrong_values(result, expected, tolerance) + exercise.hint


def _wrong_values(result: Any, expected: Any, tolerance: float) -> str:
    """Which of several values are wrong, in words; empty if all of them are."""
    if not (isinstance(result, list | tuple) and isinstance(expected, tuple)):
        return ""
    pairs = enumerate(zip(result, expected, strict=True), start=1)
    wrong = [str(place) for place, pair in pairs if not close(*pair, tolerance)]
    if len(wrong) == len(expected):
        return ""
    are = "value {} is" if len(wrong) == 1 else "values {} are"
    return f"of {len(expected)} {are.format(' and '.join(wrong))} wrong: "


def _differences(result: Any, expected: Any, quote: bool) -> Iterator[str]:
    """Kind, shape, dtype and NaN, in words."""
    if isinstance(expected, Differentiated) and not isinstance(result, Differentiated):
        expected = expected.value
    if result is None:
        yield "your function returns nothing: is a `return` missing?"
    if isinstance(expected, Tensor):
        if not isinstance(result, Tensor):
            yield f"expected a tensor, got {_described(result, quote)}"
        elif result.shape != expected.shape:
            found = _shape(result) if quote else "another one"
            yield f"the shape is {found}, expected {_shape(expected)}"
        elif result.dtype != expected.dtype:
            found = result.dtype if quote else "another one"
            yield f"the dtype is {found}, expected {expected.dtype}"
        elif result.isnan().any() and not expected.isnan().any():
            yield "the result holds NaN (not a number)"
    elif isinstance(expected, list | tuple):
        wanted = "1 value" if len(expected) == 1 else f"{len(expected)} values"
        if not isinstance(result, list | tuple):
            yield f"expected {wanted}, got {_described(result, quote)}"
        elif len(result) != len(expected):
            found = len(result) if quote else "another number"
            yield f"expected {wanted}, got {found}"
        else:
            for place, pair in enumerate(zip(result, expected, strict=True), start=1):
                inner = isinstance(pair[1], list | tuple)
                within = f"in value {place} of {len(expected)}: " if inner else ""
                yield from (within + said for said in _differences(*pair, quote))
    elif type(result) is not type(expected) and not (
        _is_number(result) and _is_number(expected)
    ):
        yield f"expected {type(expected).__name__}, got {_described(result, quote)}"


def _gradient_reasons(
    case: Case, result: Differentiated, expected: Differentiated, tolerance: float
) -> Iterator[str]:
    if not close(result.value, expected.value, tolerance):
        yield "the values differ already; the other checks say more"
    names = [
        name
        for name, argument in zip(
            case.exercise.parameters, case.arguments, strict=False
        )
        if is_float(argument)
    ]
    pairs = zip(names, result.gradients, expected.gradients, strict=False)
    for name, gradient, wanted in pairs:
        if close(gradient, wanted, tolerance):
            continue
        if gradient is None:
            yield f"no gradient reaches {name}; is something detached on the way?"
        elif isinstance(gradient, Tensor) and gradient.isnan().any():
            yield f"the gradient of {name} holds NaN"
        else:
            yield f"the gradient of {name} is another one"


def _not_refused(result: Any, expected: Raised, quote: bool) -> str:
    if not isinstance(result, Raised):
        return f"expected {expected.kind}: these arguments should be refused"
    found = result.kind if quote else "another exception"
    return f"expected {expected.kind} for these arguments, got {found}"


def _raised(error: Raised, quote: bool) -> str:
    text = f"your code raised {error.kind if quote else 'an exception'}"
    if quote and error.message:
        text += f": {error.message}"
    return f"{text} (in the line `{error.line}`)" if quote and error.line else text


def _tolerance(case: Case) -> float:
    if case.exercise.tolerance is not None:
        return case.exercise.tolerance
    tolerance = TOLERANCES.get(_dtype_of(case.arguments), 1e-5)
    return 10 * tolerance if case.gradients else tolerance


def _as_asked(result: Any, expected: Any) -> Any:
    """A plain value for a tensor of one, where one is asked for, in a list as well."""
    if type(result) in (list, tuple) and type(expected) in (list, tuple):
        pairs = zip_longest(result, expected[: len(result)])
        return type(result)(_as_asked(*pair) for pair in pairs)
    asked = isinstance(expected, int | float)
    if asked and isinstance(result, Tensor) and result.dim() == 0:
        return result.item()
    return result


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Are two plain values of one kind, shape and dtype, and nearly equal?

    Differences are relative to the value, or to the largest one of ``other``, which is
    what rounding is relative to in a sum.
    """
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        wide = torch.complex128 if one.is_complex() else torch.float64
        one, other = one.to(wide), other.to(wide)
        finite = other.abs()[other.isfinite()]
        largest = max(finite.max().item(), 1e-3) if finite.numel() else 1.0
        return torch.allclose(
            one, other, rtol=tolerance, atol=tolerance * largest, equal_nan=True
        )
    if isinstance(one, Raised) and isinstance(other, Raised):
        return one.kind == other.kind
    if isinstance(one, Differentiated) != isinstance(other, Differentiated):
        return False
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(close(a, b, tolerance) for a, b in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys()
        return same and all(close(one[key], other[key], tolerance) for key in one)
    if _is_number(one) and _is_number(other):
        try:
            one, other = float(one), float(other)
        except OverflowError:  # a whole number beyond all floating-point ones
            return one == other
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        least = max(1e-12, 1e-3 * tolerance)  # beside 0, as for tensors
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=least)
    return type(one) is type(other) and not isinstance(one, Tensor) and one == other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _described(value: Any, quote: bool) -> str:
    kind = type(value).__name__
    if not quote:
        return "something else"
    if isinstance(value, Tensor):
        return f"a tensor of shape {_shape(value)}"
    if isinstance(value, bool | int | float):
        return f"{kind} {value!r}"
    return f"{'an' if kind == 'int' else 'a'} {kind}"
