"""Chapter 19: its drawings, counts and tables."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import log2, prod

from torch import Tensor

from annotated.chapters.ch19 import chain
from annotated.data.spelling import Sounds, pronunciations
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import show, show_table
from annotated.page.plots import COLOURS, plot_bars

CITIES = {"New York": True, "San Diego": True, "New Diego": False, "San York": False}

# ---- New Diego -----------------------------------------------------------------------


def postcards() -> Html:
    """Draw two people who write one word each, and the four cities of their cards."""
    drawing = Drawing(350, 176)
    for x, name, words in (
        (52, "you", ("New", "San")),
        (136, "your friend", ("York", "Diego")),
    ):
        drawing.text(x, 16, name, bold=True)
        for i, word in enumerate(words):
            drawing.frame(x - 37, 28 + 40 * i, 74, 30, shade=0.2, color="key")
            drawing.text(x, 48 + 40 * i, f"{word}  ½", size=14)
    drawing.text(94, 126, "at the same moment", size=NOTE)
    drawing.arrow((184, 66), (208, 66))
    for i, (city, real) in enumerate(CITIES.items()):
        y = 14 + 34 * i
        drawing.frame(
            218, y - 4, 128, 28, shade=0.25, color="right" if real else "wrong"
        )
        mark = "✓" if real else "✗"
        drawing.text(226, y + 15, f"{mark} {city}", anchor="start", size=14)
        drawing.text(338, y + 15, "¼", anchor="end")
    return drawing.figure(
        alt="You write New or San, half of the time each; your friend York or Diego. "
        "Of four cards that are equally likely two name a city, New York and San "
        "Diego, and two don't: New Diego and San York.",
        caption="Half of the trips go to New York, half to San Diego. Both of you know "
        "that, and neither sees the other's word.",
    )


NAMES = {"New York or San Diego": 2, "BOSTON or DALLAS": 6}


def agreeing(p: float, m: int) -> float:
    """Return how often m symbols that are written at once belong to one text."""
    return p**m + (1 - p) ** m


def choice_bits(p: float) -> float:
    """Return the entropy of a choice between two, in bits."""
    return -sum(x * log2(x) for x in (p, 1 - p) if x)


def steps_explorer() -> Html:
    """Let the reader choose names, shares and rounds, and see what is written."""
    shares, rounds = [50, 60, 70, 80, 90, 95, 99], [1, 2, 3, 6]
    checks = []
    for name, n in NAMES.items():
        for r, share in ((1, 50), (2, 90), (3, 99), (6, 70)):
            p, m = share / 100, -(-n // r)
            values = {"right": agreeing(p, m), "lost": (m - 1) * choice_bits(p)}
            checks.append(({"names": name, "rounds": r, "share": share}, values))
    return explorer(
        static("ch19/new_diego.js"),
        {"names": {name: name.split(" or ") for name in NAMES}},
        [
            Choice("names", "names", [*NAMES]),
            Slider("rounds", "rounds", rounds),
            Slider("share", "share of the first name, %", shares),
        ],
        label="New Diego by steps",
        checks=checks,
        question="Spelled letter by letter, how many rounds does BOSTON or DALLAS need "
        "before half of what is written is a city? And does it help if one of them is "
        "rare?",
        caption="Twenty-four cards, drawn at random. A round writes equally many "
        "symbols, from the left, each for itself.",
    )


def lost_figure() -> Html:
    """Plot what texts of the small language lose by the rounds they are written in."""
    lost = {f"{k}": chain.lost(k) for k in (1, 2, 4, 8)}
    ax = plot_bars(
        {"lost": lost},
        colors={"lost": (COLOURS["wrong"], 0.7)},
        xlabel="rounds, for eight letters",
        ylabel="bits lost per text",
        ylim=(0, 10),
    )
    for i, value in enumerate(lost.values()):
        ax.text(i, value + 0.25, f"{abs(value):.2f}", ha="center")
    return show(
        ax.figure,
        title="Twice the rounds, less than half the loss",
        caption="Computed, not sampled: a Markov chain of four letters, and a model "
        "that knows it exactly.",
    )


# ---- words with several answers ------------------------------------------------------


def mixed(answers: Sequence[Sounds], length_known: bool) -> float:
    """Return how often sounds guessed at once are none of the ``answers``.

    Every answer is equally likely, and the guess at each position is as often a sound
    as the answers have it there.

    Args:
        answers: all right ones of a word.
        length_known: how many sounds it has is drawn first, together; otherwise the
            positions behind a short answer are guessed to be empty, each for itself.
    """
    longest, right = max(map(len, answers)), 0.0
    groups: dict[int, list[Sounds]] = {}
    for answer in answers:
        size = len(answer) if length_known else longest
        padded = answer + ("",) * (size - len(answer))
        groups.setdefault(size, []).append(padded)
    for group in groups.values():
        columns = [Counter(column) for column in zip(*group, strict=True)]
        chances = (
            prod(c[s] / len(group) for c, s in zip(columns, one, strict=True))
            for one in group
        )
        right += len(group) / len(answers) * sum(chances)
    return 1 - right


def mixing_table(words: Sequence[str]) -> Html:
    """Show how often a guess at once mixes the answers of words, and of all words."""
    several = {w: a for w, a in pronunciations().items() if len(a) > 1}
    rows = []
    for word in words:
        said = " or ".join(" ".join(answer) for answer in several[word])
        shares = (f"{mixed(several[word], known):.0%}" for known in (False, True))
        rows.append((word, said, *shares))
    ends = (
        sum(mixed(a, known) for a in several.values()) / len(several)
        for known in (False, True)
    )
    rows.append((f"all {len(several):,}", "", *(f"{share:.1%}" for share in ends)))
    return show_table(
        ("word", "right answers", "length unknown", "length known"),
        rows,
        "How often a guess at once is no right answer.",
    )


# ---- rounds --------------------------------------------------------------------------


def rounds_table(
    steps: Sequence[tuple[Tensor, Tensor]], symbols: Sequence[str], mask: int
) -> Html:
    """Show what each round read, masks as ■, and what it wrote, (t,) ids each."""
    said: Callable[[Tensor], str] = lambda ids: " ".join(  # noqa: E731
        "■" if i == mask else symbols[i] for i in ids.tolist()
    )
    rows = [(f"{i}", said(a), said(b)) for i, (a, b) in enumerate(steps, start=1)]
    return show_table(("round", "reads", "writes"), rows)
