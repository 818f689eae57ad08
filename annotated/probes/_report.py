"""What the probes of a model found: data, a line for each, and a picture."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

MARKS = {"passed": "✓", "failed": "✗", "not asked": "·"}


@dataclass(frozen=True)
class Outcome:
    """What one probe says."""

    name: str  # of the probe: "future", "reach", …
    state: str  # "passed", "failed" or "not asked"
    said: str  # one sentence: what was seen, or why nothing was asked
    # where it failed: (i, j) is the logit that moved and the token that was changed
    where: Any = None
    # the smallest texts that show it, as lists of ids: before and after the change
    example: Any = None

    def __str__(self) -> str:
        said = " ".join(self.said.split())
        return f"{MARKS[self.state]} {self.name}: {self.state}. {said}"


@dataclass(frozen=True)
class Report:
    """What all probes say; ``print(report)`` shows a line for each."""

    name: str  # of the function
    kind: str  # what was asked of it: "causal", "encoder" or "translation"
    outcomes: list[Outcome] = field(default_factory=list)  # one a probe, in order
    # how far logit i moves when token j is changed, ``(i, j)``; of a translation, j
    # counts target tokens. None if it couldn't be asked.
    reach: Tensor | None = None

    @property
    def ok(self) -> bool:
        """True if no probe failed; what wasn't asked is not known."""
        return not self.failures

    @property
    def failures(self) -> list[Outcome]:
        """What failed."""
        return [one for one in self.outcomes if one.state == "failed"]

    def __getitem__(self, name: str) -> Outcome:
        return next(one for one in self.outcomes if one.name == name)

    def __str__(self) -> str:
        count = dict.fromkeys(MARKS, 0)
        for one in self.outcomes:
            count[one.state] += 1
        sums = ", ".join(f"{n} {state}" for state, n in count.items() if n)
        return "\n".join(
            [f"{self.name} ({self.kind}): {sums}", *map(str, self.outcomes)]
        )

    def figure(self) -> Any:
        """Return a drawing of who sees whom: queries downward, tokens to the right.

        Grey is what a logit depends on; of a causal model, red is what it should not.

        Raises:
            ValueError: if no reach was measured.
        """
        if self.reach is None:
            raise ValueError("reach wasn't measured: see print(report)")
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure

        moved = (self.reach > 0).double()
        if self.kind != "encoder":
            moved = moved + moved.triu(1)  # 2: it sees what comes later
        rows, columns = moved.shape
        figure = Figure(figsize=(4.2, 0.6 + 3.6 * min(1, max(rows, 4) / columns)))
        axes = figure.add_subplot()
        colours = ListedColormap(["white", "#9aa5b1", "#c0392b"])
        axes.imshow(moved, cmap=colours, vmin=0, vmax=2, interpolation="nearest")
        axes.set_xlabel("token that was changed")
        axes.set_ylabel("logit" if rows > 1 else "output")
        leaks = int((moved == 2).sum())
        seen = f"{leaks} of them later tokens" if leaks else f"{int(moved.sum())} pairs"
        axes.set_title(f"Who sees whom in {self.name}: {seen}", fontsize=9)
        figure.set_layout_engine("tight")
        return figure
