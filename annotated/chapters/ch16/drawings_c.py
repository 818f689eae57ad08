"""Page 16c, speculative decoding: its drawings, its tables and its explorer.

Letters: t guesses, v vocabulary (``book/notation.md``). The record is that of
``benchmarks/ch16/drafts.py``.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import ceil
from typing import Any

import matplotlib.pyplot as plt
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.chapters.ch16.drafting import MISSING, Reading, readings
from annotated.data.glassllm import encode
from annotated.gpt import GPT
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import show, show_table
from annotated.page.plots import OTHER, plot_bars, plot_lines
from annotated.page.svg import COLOURS
from annotated.speculative import expected_speedup, expected_tokens

GUESSES = (1, 2, 3, 4, 6, 8)  #: how many at once, where that is measured


def missing() -> Html:
    """Return what a cell shows where the model's file is missing."""
    return Html(f"<p>{MISSING}</p>")


# ---- pictures ----------------------------------------------------------------------


def hero(record: Mapping[str, Any]) -> Html:
    """Draw two readings: what was guessed, kept, refused and written."""
    shown = record["example"][2:4]
    drawing, wide, left = Drawing(350, 236), 54, 64
    for number, one in enumerate(shown):
        top, guesses = 26 + 112 * number, one["guesses"]
        title = ("one reading", "the next one")[number]
        drawing.text(0, top - 8, title, anchor="start", bold=True)
        drawing.text(0, top + 17, "draft", anchor="start")
        drawing.text(0, top + 62, "written", anchor="start")
        for i in range(len(guesses) + 1):
            x, middle = left + (wide + 3) * i, left + (wide + 3) * i + wide / 2
            if i < len(guesses):
                void, kept = i > one["kept"], i < one["kept"]
                shade, color = (0.25, "right") if kept else (0.25, "wrong")
                shade = 0.0 if void else shade
                place = (x, top, wide, 24)
                drawing.frame(*place, dashed=void, shade=shade, color=color)
                drawing.text(middle, top + 17, spaced(guesses[i][0]), code=True)
                verdict = "" if void else "✓" if kept else "✗"
                drawing.text(middle, top + 38, verdict, bold=True)
            if i <= one["kept"]:
                last = i == one["kept"]
                color = "this" if last else "right"
                drawing.frame(x, top + 45, wide, 24, shade=0.25, color=color)
                word = one["more"] if last else guesses[i][0]
                drawing.text(middle, top + 62, spaced(word), code=True)
                if last:
                    free = last and i == len(guesses)
                    words = "free" if free else "instead"
                    drawing.text(middle, top + 84, words, size=12.2)
    first, second = shown
    return drawing.figure(
        alt=f"Two readings. In the first, all {first['kept']} guesses are kept, and "
        f"one token more is free. In the second, {second['kept']} of "
        f"{len(second['guesses'])} is kept, the next one is refused and replaced.",
        caption="Two readings by a small model that read Lewis Carroll (␣: a space). "
        "Green: guesses that are kept. Red: the first that is refused; those after it, "
        "dashed, are dropped. Blue: the token that the model adds.",
    )


def rows_picture() -> Html:
    """Draw what the model reads with four guesses, and what each of its rows is for."""
    drawing = Drawing(350, 204)
    drawing.text(64, 14, "the model reads", bold=True)
    drawing.text(245, 14, "its row gives p for", bold=True)
    names = ["last written token", *(f"guess {i}" for i in range(1, 5))]
    for i, name in enumerate(names):
        top = 26 + 35 * i
        last = i == len(names) - 1
        drawing.frame(2, top, 124, 26)
        drawing.text(64, top + 18, name)
        drawing.arrow((128, top + 13), (178, top + 13))
        color = "this" if last else "right"
        drawing.frame(182, top, 126, 26, shade=0.25, color=color)
        drawing.text(245, top + 18, "the free token" if last else names[i + 1])
    return drawing.figure(
        alt="Five rows. The model reads the last written token and gives p for guess "
        "1; it reads guess 1 and gives p for guess 2; and so on. At guess 4 it gives p "
        "for the free token.",
        caption="One reading with t = 4 guesses has t + 1 = 5 rows. Each checks the "
        "next guess (green); the last one has none to check (blue).",
    )


def spaced(token: str) -> str:
    """Return a ``token`` with a sign for each space and each end of a line."""
    return token.replace(" ", "␣").replace("\n", "⏎")


def bars(q: Float[Tensor, "v"], p: Float[Tensor, "v"], names: Sequence[str]) -> "Html":
    """Draw what is kept of the draft's ``q``, and what makes up the model's ``p``."""
    kept = torch.minimum(q, p)
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.1), sharey=True)
    parts = (
        ("the draft guesses: q", q - kept, "refused", "wrong"),
        ("to be written: p", p - kept, "residual", "this"),
    )
    for ax, (title, rest, label, color) in zip(axes, parts, strict=True):
        colors = {"kept": COLOURS["right"], label: (COLOURS[color], 0.75)}
        sizes = {
            name: dict(zip(names, values.tolist(), strict=True))
            for name, values in (("kept", kept), (label, rest))
        }
        plot_bars(sizes, ax, colors=colors, title=title, ylim=(0, 0.78))
        ax.legend(loc="upper right")
    for bar in axes[0].containers[1]:
        bar.set_hatch("//")
    return show(
        figure,
        caption="Green is the same on both sides. What is refused on the left is as "
        "much, in all, as is still to be made up on the right.",
        title="What is kept, and what has to be made up",
    )


def chi2(counts: Float[Tensor, "v"], p: Float[Tensor, "v"]) -> float:
    """Return χ² of the ``counts`` of tokens that should be distributed as ``p``."""
    wanted = counts.sum() * p
    return ((counts - wanted) ** 2 / wanted).sum().item()


def shares_table(
    ways: Mapping[str, Int[Tensor, "_"]], p: Float[Tensor, "v"], names: Sequence[str]
) -> Html:
    """Show how often each token was written, and χ²."""
    rows = [("the model, p", *(f"{one:.1%}" for one in p.tolist()), "")]
    for way, tokens in ways.items():
        counts = torch.bincount(tokens, minlength=len(p)).double()
        shares = (counts / counts.sum()).tolist()
        rows.append((way, *(f"{one:.1%}" for one in shares), f"{chi2(counts, p):,.1f}"))
    return show_table(
        ("what is written", *names, "χ²"),
        rows,
        caption=f"Shares of {len(tokens):,} tokens. χ² adds up (counted − "
        "expected)² / expected over the tokens. If p is right, it exceeds "
        f"{MOST} once in 1,000 such experiments.",
    )


MOST = 16.27  #: what χ² with 3 degrees of freedom stays below, 999 times of 1,000

NAMES = {
    "any token": "any token, all equally likely (a table of one row)",
    "frequent tokens": "frequent tokens (a table of one row)",
    "pairs, counted": "pairs, counted",
    "pairs, averaged": "pairs, averaged",
    "1 layer": "the first layer",
    "2 layers": "the first 2 layers",
    "3 layers": "the first 3 layers",
    "the model itself": "the model itself",
}


def drafts_table(shares: Mapping[str, float], record: Mapping[str, Any]) -> Html:
    """Show how often the guesses of each draft are kept, and what a guess costs."""
    rows = []
    for name, share in shares.items():
        one = record["drafts"][name]
        cost = f"{one['cost']:.1%}"
        rows.append((NAMES[name], f"{share:.1%}", cost))
    return show_table(
        ("draft", "kept", "weights read"),
        rows,
        caption="Mean probability that a guess is kept, over texts that no table was "
        "counted from, and the weights that a guess reads, as a share of the model's.",
    )


SHOWN = ("any token", "pairs, counted", "pairs, averaged", "3 layers")


def tokens_figure(record: Mapping[str, Any]) -> Html:
    """Draw tokens per reading against the number of guesses, with equation 1."""
    lines = {
        name: {0: 1.0}
        | {row["guesses"]: row["tokens"] for row in record["drafts"][name]["written"]}
        for name in SHOWN
    }
    ax = plot_lines(
        lines, plt.subplots(figsize=(8.6, 4.2))[1], ylim=(1, None), xlim=(0, 8),
        xlabel="guesses for each reading, t", ylabel="tokens per reading",
    )  # fmt: skip
    for name, points in lines.items():
        acceptance = record["drafts"][name]["acceptance"]
        formula = [expected_tokens(acceptance, t) for t in points]
        style = {"color": OTHER, "zorder": 1, "label": f"{name}, equation 1"}
        ax.plot([*points], formula, "--", **style)
    return show(
        ax.figure,
        caption="Blue: measured. Grey and dashed: equation 1 with the mean acceptance. "
        "The model as its own draft, not drawn, gives one token more than it guesses. "
        + tokens_said(record),
        title="More guesses help a good draft, and hardly help a bad one",
    )


def best_theory(one: Mapping[str, Any]) -> tuple[float, int]:
    """Return the best speed-up by theorem 3.8, and its number of guesses."""
    a, c = one["acceptance"], one["cost"]
    return max((expected_speedup(a, t, c), t) for t in GUESSES)


def measured(one: Mapping[str, Any], alone: float) -> tuple[float, float]:
    """Return the lowest and the highest speed-up, over all numbers of guesses."""
    speeds = [alone / row["seconds"] for row in one["written"]]
    return min(speeds), max(speeds)


def seconds_alone(record: Mapping[str, Any]) -> float:
    """Return the median of the seconds that the model takes alone."""
    return torch.tensor(record["seconds alone"]).median().item()


def speed_table(record: Mapping[str, Any]) -> Html:
    """Show for each draft the speed-up that the theorem gives, and the measured one."""
    alone = seconds_alone(record)
    rows = [
        (
            NAMES[name],
            f"{one['acceptance']:.2f}",
            f"{one['cost']:.3f}",
            "{:.2f} (t\u00a0=\u00a0{})".format(*best_theory(one)),
            "{:.1f} to {:.1f}".format(*measured(one, alone)),
        )
        for name, one in record["drafts"].items()
    ]
    return show_table(
        ("draft", "a", "c", "theorem 3.8", "measured here"),
        rows,
        caption="Times as fast as the model alone. Theorem: with the best number of "
        "guesses. Measured: one timing for each t in the figure above, CPU seconds "
        f"on one thread, {record['texts']} texts of 127 tokens; below 1 is slower.",
    )


# ---- the explorer ------------------------------------------------------------------

OFFERED = {
    "any token": "any token",
    "pairs, averaged": "pairs, averaged",
    "1 layer": "the first layer",
    "3 layers": "the first 3 layers",
    "the model itself": "the model itself",
}
AT_ONCE, LONG = (1, 2, 3, 4), 40  # guesses that may be chosen; tokens to be written


def runs(
    model: GPT, drafts: Mapping[str, nn.Module], prompt: str
) -> dict[str, dict[str, list[Reading]]]:
    """Return the readings of one text for each draft and number of guesses."""
    ids = torch.tensor([encode(prompt)])
    return {
        label: {
            str(t): readings(model, drafts[name], ids, max_new_tokens=LONG, guesses=t)
            for t in AT_ONCE
        }
        for name, label in OFFERED.items()
    }


def steps_explorer(
    model: GPT | None, drafts: Mapping[str, nn.Module], shares: Mapping[str, float]
) -> Html:
    """Show speculative decoding step by step: a draft, its guesses, and a reading."""
    if model is None:
        return missing()
    prompt = "said the"
    made = runs(model, drafts, prompt)
    kept = {label: shares[name] for name, label in OFFERED.items()}
    checks = []
    for label, by_guesses in made.items():
        for t in (1, 4):
            seen = by_guesses[str(t)]
            for number in {1, len(seen) // 2 + 1, len(seen)}:
                state = {"draft": label, "guesses": t, "reading": number}
                values = values_of(seen, number, kept[label], t)
                checks.append((state, values))
    usual, law = made[OFFERED["pairs, averaged"]]["4"], shares["pairs, averaged"]
    begin = min(
        (
            number
            for number, one in enumerate(usual, start=1)
            if 0 < one["kept"] < len(one["guesses"])
        ),
        key=lambda n: abs(
            values_of(usual, n, law, 4)["mean"] - expected_tokens(law, 4)
        ),
    )  # a reading with a refusal, after which the mean is near the law's
    longest = max(len(seen) for each in made.values() for seen in each.values())
    low, high = (expected_tokens(shares[one], 4) for one in ("any token", "3 layers"))
    answer = (
        f"<details><summary>Answer</summary><p>With four guesses, equation 1 gives "
        f"{low:.1f} with any token and {high:.1f} with the first 3 layers. A single "
        "text scatters around that.</p></details>"
    )
    made_explorer = explorer(
        static("ch16/speculate.js"),
        {"prompt": prompt, "runs": made, "kept": kept},
        [
            Choice("draft", "draft", list(made), "pairs, averaged"),
            Slider("guesses", "guesses", AT_ONCE, 4),
            Slider("reading", "reading", range(1, longest + 1), begin),
        ],
        label="Guess, read, keep or refuse",
        checks=checks,
        question="How many tokens will a reading give with any token as a guess? With "
        "the first 3 layers? Press “next reading”.",
        caption="One text for each draft and number of guesses, at temperature 1 (␣: a "
        "space, ⏎: a new line). Grey bar: the draft's probability of its guess, q; "
        "blue bar: the model's, p; the longer of the two fills the row. “≈”: from "
        "rounded q and p. If q exceeds p, a draw decides. Green: kept. Red: refused, "
        "and what is written instead. Blue: tokens that the model adds. The "
        f"text ends after {LONG} tokens, so the last reading may guess fewer.",
    )
    return Html(str(made_explorer.text) + answer)


def values_of(
    seen: Sequence[Reading], number: int, kept: float, guesses: int
) -> dict[str, Any]:
    """Return what the explorer has to compute, from the book's own functions."""
    tokens = [*accumulate(one["kept"] + 1 for one in seen)][number - 1]
    return {
        "tokens": tokens,
        "kept": seen[number - 1]["kept"],
        "mean": tokens / number,
        "formula": expected_tokens(kept, guesses),
    }


# ---- what is said of the record ----------------------------------------------------


def drafts_said(record: Mapping[str, Any]) -> str:
    """Return in words what averaging gives, and what more texts do."""
    counted, averaged = (
        [each[name] for each in record["more texts"].values()]
        for name in ("pairs, counted", "pairs, averaged")
    )
    few, many = map(int, record["more texts"])
    drafts = record["drafts"]
    one, other = drafts["pairs, counted"], drafts["pairs, averaged"]
    v = round(other["cost"] * record["parameters"])  # a guess reads one row
    return (
        f"Counting needs a lot of text: {counted[0]:.0%} of its guesses are kept with "
        f"{few} texts, {one['acceptance']:.0%} with 256, and {counted[1]:.0%} with "
        f"{many:,}. Averaging gets {averaged[0]:.0%}, {other['acceptance']:.0%} and "
        f"{averaged[1]:.0%} out of as many, and guesses as cheaply.\n\n"
        f"But that table has {v:,} × {v:,} = {v * v:,} entries, more than the model "
        f"has parameters ({record['parameters']:,}), and filling it took the model's "
        "own pass over 256 texts. A guess reads only one row. With 50,000 tokens it "
        f"would have {50_000**2 / 1e9:.1f} billion entries, so it isn't a draft for a "
        "large vocabulary."
    )


def off(record: Mapping[str, Any]) -> dict[str, float]:
    """Return how far the tokens are from equation 1, where it is furthest, by draft."""
    return {
        name: max(
            (
                row["tokens"] / expected_tokens(one["acceptance"], row["guesses"]) - 1
                for row in one["written"]
            ),
            key=abs,
        )
        for name, one in record["drafts"].items()
    }


def tokens_said(record: Mapping[str, Any]) -> str:
    """Return in words how well equation 1 fits."""
    worst = ceil(1000 * max(map(abs, off(record).values()))) / 1000
    return (
        "The equation assumes that all guesses are kept with the same probability, "
        "independently of each other. That isn't quite so, but over all drafts and "
        "numbers of guesses measured here, the tokens are never more than "
        f"{worst:.1%} away from it."
    )


def nats_table(record: Mapping[str, Any]) -> Html:
    """Show how surprising texts are for the model, by how they were written."""
    rows = [
        (WAYS[way], f"{one['mean']:.2f} ± {one['error']:.2f}")
        for way, one in record["nats"].items()
    ]
    return show_table(
        ("the text was written", "nats per token"),
        rows,
        caption="The model's loss on 128 texts each, of 127 tokens. The draft: "
        "averaged pairs, four guesses at once.",
    )


WAYS = {
    "alone": "by the model alone",
    "with a draft": "with a draft",
    "every guess is kept": "with a draft, and every guess is kept",
    "without the residual": "with a draft, and after a refusal drawn from p",
}


def promise_said(record: Mapping[str, Any]) -> str:
    """Return in words what the theorem says of two drafts."""
    theory = {name: best_theory(one)[0] for name, one in record["drafts"].items()}
    return (
        "So the price decides. The first 3 layers guess best, and promise "
        f"{theory['3 layers']:.2f}: what they save, they cost. Averaged pairs guess "
        "worse, cost next to nothing, and promise "
        f"{theory['pairs, averaged']:.2f}."
    )


def speed_said(record: Mapping[str, Any]) -> str:
    """Return in words how long this computer takes."""
    times, drafts, seconds = record["milliseconds"], record["drafts"], {}
    alone = sorted(record["seconds alone"])
    for name, one in drafts.items():
        seconds[name] = {row["guesses"]: row["seconds"] for row in one["written"]}
    fast = {t: s for t, s in seconds["pairs, averaged"].items() if s < alone[0]}
    slow = [t for t in seconds["pairs, averaged"] if t not in fast]
    least, most = (seconds_alone(record) / f(fast.values()) for f in (max, min))
    layers = min(min(seconds[f"{n} layer{'s' * (n > 1)}"].values()) for n in (1, 2, 3))
    return (
        "The measured times are rough: each is a single timing on a shared machine, "
        f"where the model alone took from {alone[0]:.1f} to {alone[-1]:.1f} s in "
        f"{len(alone)} timings of the same work. With averaged pairs and "
        f"{min(fast)} to {max(fast)} guesses, it took {min(fast.values()):.1f} to "
        f"{max(fast.values()):.1f} s, each time less than the fastest of those, and "
        f"{least:.1f} to {most:.1f} times as fast as their median; with "
        f"{min(slow)} and {max(slow)} guesses it took longer than that. With layers as "
        f"a draft, it took {layers:.1f} s or more, always longer than the slowest.\n\n"
        f"A reading of nine positions takes {times['9'] / times['1']:.1f} times as "
        "long as a reading of one, and guessing and checking take time, too."
    )
