"""Chapter 12, Transformer-XL: its drawings, tables, explorers, longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Html, Slider, Text, explorer, pack, static, unpack
from annotated.page.notebook import check_close, show, show_table
from annotated.page.pictures import Matrix, chain, number
from annotated.page.plots import OTHER, THIS, name_lines, visible
from annotated.positions import sinusoidal_encoding
from annotated.recipes.segments_options import (
    AttachedXL,
    reach_model,
    reached_by_change,
    reached_by_gradient,
)
from annotated.text import CHARACTERS, Characters
from annotated.transformer_xl import (
    RelativeMultiHeadAttention,
    TransformerXL,
    relative_shift,
    update_memory,
)

# the chapter's word in miniature: a memory of two letters, a segment of three
MEMORY, SEGMENT = list("sp"), list("eci")
BY_KEY = {"rows": SEGMENT, "columns": MEMORY + SEGMENT}

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
    figure, ax = plt.subplots(figsize=(8.6, 3.2))
    for kind, label, color in (
        ("relative, no memory", "without memory", OTHER),
        ("Transformer-XL", "with memory", THIS),
    ):
        lines = bits[kind, 600]
        ax.fill_between(where, lines.min(0), lines.max(0), color=color, alpha=0.2)
        ax.plot(where, lines.mean(axis=0), color=color, label=label)
    ax.set(xlabel="position in the segment", ylabel="bits per character")
    ax.set(ylim=(2.2, 4), xlim=(1, 32), xticks=(1, 8, 16, 24, 32))
    name_lines(ax)
    return show(
        figure,
        title="Without memory, each segment begins in the dark",
        alt="Bits per character against the position in a segment of 32, a band over "
        "three seeds for each of two models. Without memory it starts high, falls "
        "steeply over the first five positions and then stays level. With memory it is "
        "flat, a little below that level, from the first position on.",
        caption="How hard is it to guess the next character? The more bits, the harder "
        "(12.1). A Transformer that knows distances, trained with a memory of 32 "
        "characters and without, three seeds each.",
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


def cost_table(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Show what a guess costs by windows and by memory, and how far it sees."""
    (row,) = (row for row in runs if row["length"] == 800)
    fused, unfused = row["fused / XL by 128"], row["plain / XL by 128"]
    assert fused >= 100 and fused / 400 < 1 < unfused / 400
    far = 800 + 3 * 896  # through four layers, before the segment
    return show_table(
        ("length 800", "times memory's cost", "characters a guess can see"),
        [
            ("window, advances by 1", f"{fused:.0f}", "800"),
            ("window, advances by half", f"{fused / 400:.1f}", "401 to 800"),
            ("memory", "1", f"{far + 1:,} to {far + 128:,}"),
        ],
        caption="Recorded on one CPU core: 4 layers of width 256, memory with segments "
        "of 128, windows with fused attention; without it, advancing by half costs "
        f"{unfused / 400:.1f}.",
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
        "the border, before the first guess of the new segment.",
    )


def seen(mask: Tensor) -> Html:
    """Show which keys each query sees, by a ``mask`` of three queries, five keys."""
    parts = (mask[:, :2], "memory", MEMORY), (mask[:, 2:], "segment", SEGMENT)
    memory, segment = (
        Matrix(part, name, rows=SEGMENT, columns=columns, mask=part)
        for part, name, columns in parts
    )
    return chain(
        *(memory, "∘", segment),
        alt="The causal mask. The e sees s and p in memory, and itself; c one more; i "
        "all five.",
        caption="Rows: queries, t = 3. Columns: keys, s = 5, the first two in memory. "
        "(b texts side by side; d model width.)",
    )


def check_memory(update: Callable[[Tensor, Tensor, int], Tensor]) -> None:
    """Check what a notebook's ``update_memory`` keeps; say where it goes wrong."""
    states = torch.arange(20.0).view(1, 10, 2).requires_grad_()
    for m, mem_len in ((4, 2), (4, 5), (4, 10), (4, 20), (4, 0), (0, 3)):
        parts = states[:, :m], states[:, m:]
        kept, wanted = update(*parts, mem_len), update_memory(*parts, mem_len)
        case = f"update_memory, {m} old and {10 - m} new states, mem_len={mem_len}: "
        if kept.shape != wanted.shape:
            sizes = f"{wanted.shape[1]} should be kept, not {kept.shape[1]}"
            raise AssertionError(case + sizes)
        if not kept.equal(wanted):
            raise AssertionError(case + "it should keep the last, in their order")
        if kept.requires_grad:
            raise AssertionError(case + "what it keeps should be detached")
    print("✓ update_memory keeps what the module's keeps")


def check_reach(states_needed: Callable[..., list[Tensor]]) -> None:
    """Check which characters a notebook's function names, on models that run."""
    text = torch.tensor(Characters(CHARACTERS).encode(" argument specifies the "))
    cases = "441 442 443 643 243 402 682 623 423 161".split()
    for segment, memory, layers in (map(int, case) for case in cases):
        model = reach_model(TransformerXL, layers=layers, mem_len=memory)
        felt = reached_by_change(model, text, segment)
        named = states_needed(len(text), segment, memory, layers)[-1]
        if not felt.equal(named):
            raise AssertionError(
                f"states_needed, segments of {segment}, memory {memory}, {layers} "
                f"layers: a model feels changes at the positions {_places(felt)}, but "
                f"{_places(named)} are named"
            )
    for layers in (1, 2, 3):  # memories of 4, segments of 4
        for kind, count in ((TransformerXL, 4), (AttachedXL, 4 + 4 * layers)):
            model = reach_model(kind, layers=layers)
            got = int((reached_by_gradient(model, text, 4) != 0).sum())
            assert got == count, f"gradients of {kind.__name__} reach {got} characters"
    print(f"✓ {len(cases)} models feel a change in just these characters")
    print(
        "✓ detach stops gradients at the border; without detach, they reach as far "
        "back as the information does"
    )


def _places(positions: Tensor) -> list[int]:
    return positions.nonzero().flatten().tolist()


def reach(text: str, levels: Sequence[Tensor], memory: int, segment: int) -> Html:
    """Draw which states of each level, the last layer first, the last output needs."""
    n, size, left, tall = len(text), 12.5, 48, 26
    for used in levels:
        require.that(
            len(used) == n,
            f"levels must have {n} states, one for each character, got {len(used)}",
        )
    require.that(1 <= n <= 24, f"the text must have 1 to 24 characters, got {n}")
    drawing = Drawing(350, tall * len(levels) + 30)
    middle = [left + size * (p + 0.5) for p in range(n)]
    begin = (n - 1) // segment * segment  # of the last segment
    remembered = min(memory, begin)
    for row, used in enumerate(levels):
        y, layer = 4 + tall * row, len(levels) - 1 - row
        drawing.text(0, y + 16, f"layer {layer}" if layer else "input", anchor="start")
        x = left + size * begin
        drawing.frame(x, y, size * (n - begin), tall - 4, shade=0.25)
        if row and remembered:  # nobody looks back at the last layer
            width = size * remembered
            drawing.frame(x - width, y, width, tall - 4, dashed=True)
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


# ---- scores by distance --------------------------------------------------------------


def distances() -> Html:
    """Show distances by the numbers of two segments, and the true ones."""
    numbers, places = torch.tensor([1, 2, 0, 1, 2]), torch.arange(5)
    seeming = numbers[2:, None] - numbers
    true = places[2:, None] - places  # (t, s)
    look: dict[str, Any] = {"rows": SEGMENT, "row": 0, "mask": true >= 0}
    return chain(
        Matrix(
            seeming, "distance by numbers", columns="s1 p2 e0 c1 i2".split(), **look
        ),
        "  ",
        Matrix(true, "true distance", columns="s0 p1 e2 c3 i4".split(), **look),
        alt="Two matrices, queries e, c, i, keys s, p, e, c, i. By the numbers 1 2 "
        "0 1 2, the distances of e are −1, −2 and 0; its true ones 2, 1 and 0.",
        caption="Query's number minus key's. Hatched: hidden by the causal mask.",
    )


def _weights(weights: Tensor, name: str) -> Matrix:
    """Draw weights as they were computed: hatched where nothing is left."""
    return Matrix(weights, name, **BY_KEY, row=1, mask=weights > 0, weights=True)


def score(terms: Mapping[str, Tensor], weights: Tensor) -> Html:
    """Show the four terms (t, s) of scores, their sum, and what the softmax makes."""
    look: dict[str, Any] = {**BY_KEY, "row": 1, "mask": torch.ones(3, 5).tril(2).bool()}
    names = "(a) qᵢ · kⱼ", "(b) qᵢ · r", "(c) u · kⱼ", "(d) v · r"
    a, b, c, d = (
        Matrix(term, name, **look)
        for term, name in zip(terms.values(), names, strict=True)
    )
    total = Matrix(sum(terms.values()), "sum", **look)
    said = (
        f"{name}, " + " ".join(map(number, term[1, :4].tolist()))
        for name, term in {**terms, "their sum": total.table}.items()
    )
    return chain(
        *(a, "+", b, "+", c, "+", d, "=", total, "→", _weights(weights, "weights")),
        alt="The four terms, a row for each of e, c, i. Lit, the row of c, keys s, p, "
        f"e and c: in {'; in '.join(said)}. It becomes weights, the largest for "
        f"{BY_KEY['columns'][int(weights[1].argmax())]}.",
        caption="The c skips the vowel just before it and looks at the nearest "
        "consonant before that. (r: the vector of the distance i − j.)",
    )


def some_terms(every: Tensor, some: Tensor, chosen: str) -> Html:
    """Show the weights (t, s) of all four terms beside those of the ``chosen``."""
    name = "terms " + " + ".join(chosen)
    row = ", ".join(f"{weight:.0%}" for weight in some[1, :4].tolist())
    return chain(
        *(_weights(every, "all four"), _weights(some, name)),
        alt=f"With {name}, the c gives s, p, e and itself {row}.",
    )


# ---- the relative shift --------------------------------------------------------------


def addresses(t: int, s: int) -> Tensor:
    """Return addresses of scores by distance: tens the query, units the distance."""
    return 10.0 * torch.arange(1, t + 1)[:, None] + torch.arange(s - 1, -1, -1)


def to_be_shifted(address: Tensor, distance: Tensor) -> Html:
    """Show addresses (t, s) by distance, and where each key wants its own."""
    wanted = 10.0 * torch.arange(1, 4)[:, None] + distance.clamp(min=0)
    return chain(
        Matrix(address, "what we have", rows=SEGMENT, columns=list("43210")),
        "→",
        Matrix(wanted, "what we want", **BY_KEY, mask=distance >= 0),
        alt="Left, columns are the distances 4 to 0: 14 13 12 11 10, 24 23 22 21 "
        "20, 34 33 32 31 30. Right, columns are the keys s p e c i: 12 11 10 and "
        "two hidden; 23 22 21 20 and one hidden; 34 33 32 31 30.",
        caption="Tens: which query. Units: which distance. Left sorted by "
        "distance, right by key.",
    )


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


def cuts(address: Tensor) -> Html:
    """Draw where padded rows are cut: a staircase in them, every s in their line."""
    padded = F.pad(address, (1, 0))  # (t, s + 1)
    (t, row), size = padded.shape, 19
    drawing = Drawing(350, 200)
    _cells(drawing, padded, row, 118, 6, 22)
    for i, name in enumerate(SEGMENT):
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
        "earlier in its row than the cut before. No number moves; but e's first two "
        "numbers are gone, so the rest of e stands two places further left. Each new "
        "row is filled up from the next old one: 0 and 24 end e's, a 0 ends c's.",
    )


def check_shifts(**shifts: Callable[[Tensor], Tensor]) -> None:
    """Check a notebook's shifts where keys are visible; say which row is wrong.

    The module's is checked with them: all have to look up the distance of each key.
    """
    for t, s in ((3, 5), (1, 1), (4, 6), (5, 5), (2, 9), (7, 10)):
        for name, shift in {**shifts, "the module's": relative_shift}.items():
            shifted, case = shift(addresses(t, s)), f"{name}, {t} queries and {s} keys"
            if shifted.shape != (t, s):
                raise AssertionError(f"{case}: the shape is {tuple(shifted.shape)}")
            for i, row in enumerate(shifted.int().tolist()):
                keys = s - t + i + 1  # that query i sees; the first is keys − 1 back
                wanted = [10 * (i + 1) + keys - 1 - j for j in range(keys)]
                if row[:keys] != wanted:
                    raise AssertionError(
                        f"{case}: row {i}, counted from 0, should begin with "
                        f"{' '.join(map(str, wanted))}, but it is "
                        f"{' '.join(map(str, row))}"
                    )
    print(f"✓ {', '.join(shifts)} and the module's agree wherever keys are visible")


def check_attention(attend: Callable[..., Tensor]) -> None:
    """Check a notebook's ``relative_attention`` against a head of the module."""
    generator = torch.Generator().manual_seed(0)
    head = RelativeMultiHeadAttention(4, heads=1).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(generator=generator)
    both = torch.randn(1, 7, 4, generator=generator, dtype=torch.float64)
    R = sinusoidal_encoding(7, 4).flip(0).double()
    q, k, v, r = (
        map_(x)
        for map_, x in (
            (head.query_map, both[0, 3:]),
            (head.key_map, both[0]),
            (head.value_map, both[0]),
            (head.position_map, R),
        )
    )
    biases = head.content_bias[0, 0], head.position_bias[0, 0]
    ours = head.output_map(attend(q, k, v, r, *biases))
    claim = "relative_attention = a head of the module (memory 3, segment 4)"
    check_close(claim, ours, head(both[:, 3:], both, positions=R)[0], 1e-9)


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


def error_of(function: Callable[..., Any], *arguments: Any) -> str:
    """Return what PyTorch says when a function fails: the beginning, or that it ran."""
    try:
        function(*arguments)
    except RuntimeError as error:
        return f"{str(error)[:58]}…"
    return "no error"


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
        "memory is emptied at each border. Lower row: it's kept. Bars: the borders, "
        "each before the first guess of a segment.",
    )
