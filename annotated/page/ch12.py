"""Chapter 12, Transformer-XL: its drawings, tables and explorers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from torch import Tensor, nn

from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Html, Slider, Text, explorer, pack, static, unpack
from annotated.page.notebook import show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import LINES, PALETTE, visible
from annotated.transformer_xl import relative_shift

# ---- recorded runs -------------------------------------------------------------------

MODELS = {
    ("vanilla", 600): "forgets, numbered positions",
    ("numbered, with memory", 600): "remembers, numbered positions",
    ("relative, no memory", 600): "forgets, relative positions",
    ("Transformer-XL", 600): "remembers, relative positions",
    ("vanilla", 1200): "forgets, numbered, 1,200 steps",
    ("Transformer-XL", 1200): "remembers, relative, 1,200 steps",
}


def by_position(runs: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Any]:
    """Return bits by position, (seeds, 32), by kind of model and number of steps."""
    rows: dict[tuple[str, int], list[list[float]]] = {key: [] for key in MODELS}
    for run in runs:
        rows[run["kind"], run["steps"]].append(run["bits by position"])
    return {key: numpy.array(lines) for key, lines in rows.items()}


def with_and_without(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Plot bits by position, with memory and without."""
    bits, where = by_position(runs), numpy.arange(1, 33)
    figure, ax = plt.subplots(figsize=(5.8, 3.4))
    for i, (kind, label) in enumerate(
        (("relative, no memory", "without"), ("Transformer-XL", "with memory"))
    ):
        lines, color = bits[kind, 600], PALETTE[i]
        ax.fill_between(where, lines.min(0), lines.max(0), color=color, alpha=0.3)
        ax.plot(where, lines.mean(axis=0), LINES[i], color=color, label=label)
    ax.set(xlabel="position in the segment", ylabel="surprise (bits per character)")
    ax.set(ylim=(2.2, 4), xlim=(1, 32), xticks=(1, 8, 16, 24, 32))
    ax.legend()
    return show(
        figure,
        alt="Surprise in bits against the position in a segment of 32 characters, a "
        "band over three seeds for each of two models. Without memory it starts high, "
        "falls steeply over the first five positions and then stays level. With memory "
        "it is flat, a little below that level, from the first position on.",
        caption="How hard is it to guess the next character? A Transformer that knows "
        "distances, trained with a memory of 32 characters and without, three seeds "
        "each.",
    )


def results_table(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Show what each model reached."""
    bits, table, spread = by_position(runs), [], 0.0
    for key, name in MODELS.items():
        lines = bits[key]
        parts = [part.mean(1) for part in (lines, lines[:, :4], lines[:, 16:])]
        spread = max(spread, *(numpy.ptp(seeds) for seeds in parts))
        seconds = [r["cpu_seconds"] for r in runs if (r["kind"], r["steps"]) == key]
        entries = [f"{seeds.mean():.2f}" for seeds in parts]
        table.append((name, *entries, f"{numpy.mean(seconds):.0f}"))
    return show_table(
        ("model", "all", "1–4", "17–32", "CPU s"),
        table,
        caption="Bits per character of held-out modules, by position in the segment, "
        "and seconds of training, 600 steps if not given: the mean of three recorded "
        f"seeds, whose bits differ by at most {spread:.2f}.",
    )


def check_gains(runs: Sequence[Mapping[str, Any]]) -> None:
    """Check what the page says of recorded models, seed by seed; print the gains."""
    vanilla, numbered, relative, xl, longer, xl_longer = by_position(runs).values()

    def saved(better: Any, worse: Any, part: slice = slice(None)) -> Any:
        return (worse - better)[:, part].mean(axis=1)

    early, late = (saved(xl, relative, part) for part in (slice(4), slice(16, None)))
    for better, worse, least in (
        (xl, vanilla, 0.2),
        (xl, longer, 0.02),
        (xl, relative, 0.05),
        (xl, numbered, 0.1),
        (xl_longer, longer, 0.1),
    ):
        assert saved(better, worse).min() >= least
    for part in (slice(None), slice(4), slice(16, None)):
        assert (saved(vanilla, numbered, part) > 0).all()
    assert (early > 2 * late).all()
    print(
        f"recorded, bits that memory saves at positions 1 to 4: {early.round(2)}, at "
        f"17 to 32: {late.round(2)}\nbits that the plain model is behind with 1,200 "
        f"steps each: {saved(xl_longer, longer).round(2)}"
    )


# ---- what a segment sees -------------------------------------------------------------


def strip(rows: Mapping[str, Tensor], letters: str) -> Html:
    """Show the bits of the characters around the border, a row a model."""
    said = [
        f"The model that {name}: "
        + ", ".join(f"{c} {v:.1f}" for c, v in zip(letters, bits.tolist(), strict=True))
        for name, bits in rows.items()
    ]
    bits, columns = torch.stack([*rows.values()]), [*map(visible, letters)]
    columns[5] = f"│ {columns[5]}"
    return chain(
        Matrix(bits, rows=[*rows], columns=columns, column=5, digits=1),
        alt=f"Eleven characters and what each costs in bits. {'. '.join(said)}. A "
        "border stands in the middle, after spe.",
        caption="The characters to be guessed, and the bits that each one costs. │: "
        "the border. The new segment reads the e first, so its first guess is the c.",
    )


def reach(text: str, levels: Sequence[Tensor], memory: int, segment: int) -> Html:
    """Draw which states of each level, the last layer first, the last output needs."""
    n, size, left, tall = len(text), 12.5, 48, 26
    drawing = Drawing(350, tall * len(levels) + 30)
    middle = [left + size * (p + 0.5) for p in range(n)]
    begin = left + size * (n - segment)
    for row, used in enumerate(levels):
        y, layer = 4 + tall * row, len(levels) - 1 - row
        drawing.text(0, y + 16, f"layer {layer}" if layer else "input", anchor="start")
        drawing.frame(begin, y, size * segment, tall - 4, shade=0.25)
        if row and memory:  # nobody looks back at the last layer
            drawing.frame(
                begin - size * memory, y, size * memory, tall - 4, dashed=True
            )
        dots = [middle[p] for p in used.nonzero().flatten().tolist()]
        drawing.text(dots, y + 16, "●" * len(dots), size=NOTE)
    base = 4 + tall * len(levels) + 14
    drawing.text(middle, base, "".join(map(visible, text)), code=True)
    borders = [left + size * p for p in range(segment, n, segment)]
    drawing.text(borders, base, "|" * len(borders), size=NOTE)
    count = int(levels[-1].sum())
    return drawing.figure(
        alt=f"Segments of {segment} characters, a memory of {memory}, "
        f"{len(levels) - 1} layers: the last output can depend on {count} characters.",
        caption=f"The last output can depend on {count} characters.",
    )


# ---- the relative shift --------------------------------------------------------------


def addresses(t: int, s: int) -> Tensor:
    """Return addresses of scores by distance: tens the query, units the distance."""
    return 10.0 * torch.arange(1, t + 1)[:, None] + torch.arange(s - 1, -1, -1)


def _cells(
    drawing: Drawing, padded: Tensor, width: int, left: float, top: float, size: float
) -> None:
    """Draw the line of padded rows, broken at a ``width``."""
    t, row = padded.shape
    for n, value in enumerate(padded.flatten().tolist()):
        x, y = left + size * (n % width), top + 24 * (n // width)
        shade = (0.1, 0.26, 0.42)[n // row]  # of its old row
        drawing.frame(x + 1, y, size - 2, 22, dashed=n < t, shade=shade)
        drawing.text(x + size / 2, y + 16, f"{value:.0f}", size=NOTE)
        if n >= t and (n - t) % (row - 1) == 0:
            drawing.line((x, y - 2), (x, y + 24), width=4)


def cuts(padded: Tensor, names: Sequence[str]) -> Html:
    """Draw where padded rows are cut: a staircase in them, every s in their line."""
    (t, row), size = padded.shape, 19
    drawing = Drawing(350, 200)
    _cells(drawing, padded, row, 118, 6, 22)
    for i, name in enumerate(names):
        drawing.text(106, 22 + 24 * i, name, code=True)
        for start, end, y, tip, words in (
            (row * i, row * i + row, 112, 118, f"old row {name}"),
            (t + (row - 1) * i, t + (row - 1) * (i + 1), 158, 152, f"new row {name}"),
        ):
            a, b = 4 + size * start + 3, 4 + size * end - 3
            drawing.line((a, tip), (a, y), (b, y), (b, tip), width=1)
            drawing.text((a + b) / 2, y - 5 if y < tip else y + 14, words, size=NOTE)
        x = 4 + size * (t + (row - 1) * (i + 0.5))
        drawing.text(x, 188, f"{t - 1 - i} to the left", size=NOTE)
    drawing.text(4 + size * t / 2, 172, "skip", size=NOTE)
    _cells(drawing, padded, padded.numel(), 4, 124, size)
    return drawing.figure(
        alt="The addresses with a zero before each row: 0 14 13 12 11 10, 0 24 23 22 "
        "21 20, 0 34 33 32 31 30; below, the same eighteen cells in a line. The first "
        "three, 0 14 13, are skipped. A bar stands before 12, before 23 and before 34: "
        "in the rows, a staircase. The new rows: 12 11 10 0 24, 23 22 21 20 0, 34 33 "
        "32 31 30.",
        caption="A shade for each old row. Dashed: skipped. Bars: cuts, each one cell "
        "earlier in its row than the cut before. No number moves; but e's two first "
        "numbers are gone, so the rest of e stands two places further left. Each new "
        "row is filled up from the next old one: 0 and 24 end e's, a 0 ends c's.",
    )


def shift_explorer() -> Html:
    """Show the steps of the shift, for other numbers of queries and keys."""
    checks = []
    for state in ("46323", "46415", "35312", "24020", "47246", "44132"):
        t, s, stage, query, distance = map(int, state)
        names = {"queries": t, "keys": s, "stage": stage}
        names |= {"query": query, "distance": distance}
        key = s - t + query - 1 - distance  # from the query's position among the keys
        result = relative_shift(addresses(t, s)).int().tolist()
        checks.append((names, {"result": result, "key": max(key, -1)}))
    stages = "scores by distance, a zero before each row, skip and cut, the new rows"
    return explorer(
        static("relative_shift.js"),
        {"stages": [*stages.split(", "), "with the causal mask"]},
        [
            Slider("stage", "step", [0, 1, 2, 3, 4], 0),
            Slider("queries", "queries t", [2, 3, 4], 4),
            Slider("keys", "keys s", [4, 5, 6, 7], 6),
            Slider("query", "follow query", [1, 2, 3, 4], 2),
            Slider("distance", "at distance", [0, 1, 2, 3, 4, 5, 6], 3),
        ],
        label="Step through relative_shift",
        checks=checks,
        question="Four queries, six keys. At which key will 23 (second query, distance "
        "3) land? Decide, then take the steps. And which three numbers end up right of "
        "10?",
        caption="Tens: the query. Units: the distance. Framed: the cell you follow.",
    )


# ---- a trained model in the page -----------------------------------------------------


def rounded(model: nn.Module) -> dict[str, Any]:
    """Round a model's weights as the browser will see them; return them packed."""
    packed = {name: pack(weight) for name, weight in model.named_parameters()}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(unpack(packed[name]))
    return packed


def border_explorer(
    weights: Mapping[str, Any],
    characters: Sequence[str],
    text: str,
    answer: Callable[[str, int], tuple[dict[str, Any], dict[str, Any]]],
) -> Html:
    """Show a model that reads the reader's text; ``answer`` is what it has to find."""
    sizes = {"heads": 4, "layers": 2, "memory": 32}
    return explorer(
        static("border_reader.js"),
        {"weights": weights, "characters": "".join(characters), **sizes},
        [
            Text("text", "text", text),
            Slider("segment", "characters in a segment", list(range(1, 33)), 32),
        ],
        label="Borders in a text of your own",
        checks=[answer(text, 8), answer("def f(", 1), answer("specifies the", 5)],
        question="At first the text is one segment, and both rows agree. Now set "
        "segments of 8. Where will an empty memory cost most?",
        caption="Bits for each character but the first, which is given. Upper row: the "
        "memory is emptied at each border. Lower row: it's kept. Bars: the borders.",
    )
