"""Page 18b, several processes: its drawings, its table and its explorers.

The record is that of ``benchmarks/ch18/processes.py``.
Letters: n processes, P parameters (``book/notation.md``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from annotated import require
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import show_table

BYTES = {"weights": 4, "gradients": 4, "Adam's averages": 8}  #: for each parameter
CARDS = (24, 80)  #: gigabytes of GPUs, as in chapter 18's calculator
BILLIONS = 7  #: of parameters, in the explorer of who holds what
COUNTS = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64]  #: of processes
MODES = {  # of ZeRO, and what each of them divides by n
    "DDP": (),
    "ZeRO-1": ("Adam's averages",),
    "ZeRO-2": ("Adam's averages", "gradients"),
    "ZeRO-3, FSDP": ("Adam's averages", "gradients", "weights"),
}


# ---- pictures ----------------------------------------------------------------------


def hero() -> Html:
    """Draw one training step of two processes."""
    drawing = Drawing(360, 252)
    drawing.text(0, 21, "one batch", anchor="start")
    for rank, words in enumerate(("rows 0, 2, …", "rows 1, 3, …")):
        drawing.frame(88 + 98 * rank, 4, 94, 24, shade=(0.12, 0.35)[rank])
        drawing.text(135 + 98 * rank, 21, words)
    for rank, x in enumerate((76, 284)):
        shade = (0.12, 0.35)[rank]
        drawing.arrow((135 + 98 * rank, 28), (x, 52))
        drawing.frame(x - 74, 54, 148, 26, shade=shade)
        drawing.text(x, 72, f"process {rank}: its half")
        drawing.arrow((x, 80), (x, 94))
        drawing.frame(x - 74, 96, 148, 26)
        drawing.text(x, 114, "the whole model")
        drawing.arrow((x, 122), (x, 136))
        drawing.text(x, 152, "its own gradient")
        drawing.arrow((x, 158), (x, 176))
        drawing.arrow((x, 204), (x, 222))
        drawing.text(x, 240, "the same step")
    drawing.frame(2, 178, 356, 26)
    drawing.text(180, 196, "all-reduce: both get the mean gradient", bold=True)
    return drawing.figure(
        alt="One batch, whose rows go to two processes in turn. Each runs the whole "
        "model on its half and has its own gradient. An all-reduce gives both the mean "
        "gradient, and both take the same step.",
        caption="One training step. Both processes work at the same time, each on half "
        "of the rows. They need each other only for the all-reduce.",
    )


def sends(n: int, compute: int, send: int, *, wait: bool) -> list[int]:
    """Return when the gradient of each of ``n`` layers goes onto the wire.

    Args:
        n: layers, each of which fills a bucket in the backward pass.
        compute: time that a layer's backward pass takes.
        send: time that a bucket is on the wire.
        wait: for the end of the backward pass.
    """
    starts: list[int] = []
    for layer in range(1, n + 1):
        ready = (n if wait else layer) * compute
        starts.append(max(ready, starts[-1] + send) if starts else ready)
    return starts


def buckets() -> Html:
    """Draw a step whose buckets wait for the backward pass, and one whose don't."""
    drawing, left, layers, compute, send, update = Drawing(358, 234), 60, 4, 36, 26, 46
    last = {True: 0, False: 0}
    titles = {
        True: "All buckets sent at the end",
        False: "Each bucket sent as soon as it's full",
    }
    for top, (wait, title) in zip((0, 114), titles.items(), strict=True):
        above, below = top + 24, top + 58
        drawing.text(0, top + 14, title, anchor="start", bold=True)
        for y, words in ((above, "compute"), (below, "wire")):
            drawing.text(0, y + 18, words, anchor="start")
        starts = sends(layers, compute, send, wait=wait)
        last[wait] = starts[-1] + send
        for i, start in enumerate(starts):
            name, hidden = f"{layers - i}", start < layers * compute
            drawing.frame(left + compute * i, above, compute, 26, shade=0.12)
            drawing.text(left + compute * (i + 0.5), above + 18, name)
            shade = 0.12 if hidden else 0.5
            drawing.frame(left + start, below, send, 26, shade=shade)
            drawing.text(left + start + send / 2, below + 18, name, bold=not hidden)
        drawing.frame(left + last[wait], above, update, 26)
        drawing.text(left + last[wait] + update / 2, above + 18, "update", size=NOTE)
    early, late = (left + last[wait] + update for wait in (False, True))
    drawing.line((late, 20), (late, 198), width=1)
    drawing.line((early, 134), (early, 198), width=1)
    drawing.arrow((late, 188), (early, 188))
    drawing.text((early + late) / 2, 182, "time saved")
    end = left + last[False] - send / 2
    drawing.arrow((end, 216), (end, 200))
    words = "can't be hidden: nothing is left to compute"
    drawing.text(356, 230, words, anchor="end")
    return drawing.figure(
        alt="Two schedules of a step with four layers. Above, all four buckets go onto "
        "the wire after the backward pass, and the update waits for them. Below, each "
        "goes as soon as its layer is through, so three are sent while earlier layers "
        "compute, only the bucket of layer 1 comes after, and the update is earlier.",
        caption="A schematic, not measured: each layer, from 4 to 1, takes equally "
        "long in the backward pass, and its gradient fills a bucket. Time runs to the "
        "right. Bold: buckets on the wire while nothing is computed.",
    )


# ---- tables ------------------------------------------------------------------------


def gaps(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest difference of two lists of losses, relative to the first."""
    return max(abs(a - b) / abs(a) for a, b in zip(one, other, strict=True))


def bytes_exchanged(parameters: int, n: int) -> float:
    """Return the bytes that each of ``n`` processes sends for one all-reduce."""
    require.count(parameters=parameters, n=n)
    return 2 * (n - 1) / n * 4 * parameters


def held(n: int) -> dict[str, dict[str, float]]:
    """Return the bytes per parameter that each of ``n`` processes holds, by mode."""
    require.count(n=n)
    return {
        mode: {
            what: size / n if what in split else size for what, size in BYTES.items()
        }
        for mode, split in MODES.items()
    }


def order_table(orders: Mapping[str, Sequence[Sequence[int]]]) -> Html:
    """Show which rows the first process reads, epoch by epoch, by name of the order."""
    rows = [
        (name, *(", ".join(f"{row}" for row in epoch) for epoch in epochs))
        for name, epochs in orders.items()
    ]
    epochs = len(next(iter(orders.values())))
    return show_table(
        ("process and loop", *(f"epoch {i}" for i in range(epochs))),
        rows,
        caption="Twelve rows of data, numbered from 0, and who reads which.",
    )


# ---- the explorers -----------------------------------------------------------------


def ring(numbers: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """Return what each of n processes, with n numbers each, holds after each step."""
    n = len(numbers)
    held = [[*row] for row in numbers]
    seen = [[[*row] for row in held]]
    for step in range(2 * (n - 1)):
        # who sends which number, all at the same time
        sent = [(p, (p - step) % n, held[p][(p - step) % n]) for p in range(n)]
        for p, which, number in sent:
            old = held[(p + 1) % n][which] if step < n - 1 else 0
            held[(p + 1) % n][which] = old + number
        seen.append([[*row] for row in held])
    return seen


NUMBERS = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9], [3, 2, 3, 8, 4]]
NUMBERS += [[6, 2, 6, 4, 3]]


def ring_explorer() -> Html:
    """Show a ring all-reduce step by step."""
    checks = []
    for n in (2, 3, 4, 5):
        seen = ring([row[:n] for row in NUMBERS[:n]])
        for step in {0, 1, n - 1, n, 2 * (n - 1)}:
            state = {"processes": f"{n}", "step": step}
            total = [sum(column) for column in zip(*seen[0], strict=True)]
            done = sum(
                number == wanted  # as all numbers are positive, it has all of them
                for row in seen[step]
                for number, wanted in zip(row, total, strict=True)
            )
            values = {"table": seen[step], "complete": done, "sent": step / n}
            checks.append((state, values))
    return explorer(
        static("ch18/ring_walk.js"),
        {"numbers": NUMBERS},
        [
            Choice("processes", "processes", ["2", "3", "4", "5"], "4"),
            Slider("step", "step", range(9), 0),
        ],
        label="A ring all-reduce, step by step",
        checks=checks,
        question="How many steps will it take until every process has every sum? How "
        "much will each have sent by then? Press “next step”.",
        caption="Each row is a process, with its own gradient in as many pieces as "
        "there are processes; here, a piece is one number. In each step, every process "
        "sends one piece to the next one below, and the last to the first. The more "
        "processes a sum includes, the stronger its colour; a thick frame marks a "
        "complete sum.",
    )


def holds_explorer() -> Html:
    """Show what each process holds, by stage of ZeRO and number of processes."""
    checks = []
    for n in (1, 4, 5, 64):
        for mode, parts in held(n).items():
            values = {what: size * BILLIONS for what, size in parts.items()}
            least = sum(0 if what in MODES[mode] else values[what] for what in values)
            values |= {"total": sum(values.values()), "least": least}
            checks.append(({"stage": mode, "processes": n}, values))
    made = explorer(
        static("ch18/who_holds.js"),
        {"billions": BILLIONS, "bytes": BYTES, "modes": MODES, "cards": CARDS},
        [
            Choice("stage", "stage", [*MODES], "ZeRO-1"),
            Slider("processes", "processes", COUNTS, 4),
        ],
        label="Who holds what",
        checks=checks,
        question="Apart from activations, all three stages stay below "
        f"{CARDS[1]}\u00a0GB with four processes. Do they with two? And if each GPU "
        f"has only {CARDS[0]}\u00a0GB, which stage do you need, and how many "
        "processes?",
        caption=f"Training {BILLIONS} billion parameters: 4 bytes for each weight, 4 "
        "for its gradient, 8 for Adam's two averages. (In the paper's mixed precision, "
        "it's 2, 2, and 12 for Adam with its float32 copy of the weights: also 16.) "
        "Activations come on top. Each row is a process, and what it holds is filled.",
    )
    return Html(str(made.text) + holds_answer())


def holds_answer() -> str:
    """Return the answer to the question of :func:`holds_explorer`, folded."""

    def each(mode: str, n: int) -> float:
        return BILLIONS * sum(held(n)[mode].values())

    few, many = CARDS
    _, first, _, third = MODES
    enough = next(n for n in COUNTS if each(third, n) < few)
    return (
        "<details><summary>Answer</summary><p>With two, stage 1 needs "
        f"{each(first, 2):.0f}\u00a0GB, so only stages 2 and 3 stay below {many}. And "
        f"for {few}\u00a0GB, you need stage 3, because in the others, every process "
        f"has all weights, which alone take {BILLIONS * BYTES['weights']}\u00a0GB. "
        f"With {enough} processes, each holds {each(third, enough):.1f}\u00a0GB; with "
        f"{enough - 1}, it would be {each(third, enough - 1):.0f}.</p></details>"
    )


# ---- what is said of the record ----------------------------------------------------


def gains(record: Mapping[str, Any]) -> dict[int, float]:
    """Return how many times as fast two processes take a step as one, by batch."""
    return {
        row["batch"]: min(row["one, wall"]) / min(row["two, wall"])
        for row in record["times"]
    }


def speed_said(record: Mapping[str, Any]) -> str:
    """Return in words how much faster two processes finish."""
    found = gains(record)
    few, many = min(found), max(found)
    (one, two), (other, both) = (
        [1000 * min(row[f"{n}, wall"]) for n in ("one", "two")]
        for size in (many, few)
        for row in record["times"]
        if row["batch"] == size
    )
    return (
        f"With {many} sequences, a step takes one process {one:.1f} ms by the clock "
        f"and two processes {two:.1f} ms: two finish {found[many]:.1f} times as fast. "
        f"With {few}, it's {other:.1f} ms and {both:.1f} ms: two take "
        f"{1 / found[few]:.1f} times as long."
    )
