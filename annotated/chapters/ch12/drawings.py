"""Chapter 12, Transformer-XL: its drawings, tables, explorers, longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import islice
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.chapters.ch12 import segments_options as options
from annotated.chapters.ch12.segments import library_ids, slow_attention
from annotated.data.text import CHARACTERS, Characters
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Html, Slider, Text, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, plot_lines, visible
from annotated.positions import sinusoidal_encoding
from annotated.segments import SegmentLoss, segments
from annotated.training import fit
from annotated.transformer_xl import RelativeMultiHeadAttention as RelativeAttention
from annotated.transformer_xl import TransformerXL, relative_shift, update_memory

Runs = Sequence[Mapping[str, Any]]

# ---- bits of characters --------------------------------------------------------------

MODELS = {
    "vanilla": "forgets, numbered positions",
    "numbered, with memory": "remembers, numbered",
    "numbered, marked memory": "remembers, numbered, memory marked",
    "relative, no memory": "forgets, relative positions",
    "Transformer-XL": "remembers, relative",
}


def by_position(runs: Runs, kind: str, steps: int = 600) -> Any:
    """Return bits by position, (seeds, 32), of a recorded kind of model."""
    chosen = (run for run in runs if (run["kind"], run["steps"]) == (kind, steps))
    return numpy.array([run["bits by position"] for run in chosen])


def cold_start(runs: Runs) -> Html:
    """Plot bits by position of two recorded models, the mean of their seeds."""
    ax = plot_lines(
        {
            name: dict(enumerate(by_position(runs, kind).mean(0), 1))
            for name, kind in (("forgets", "vanilla"), ("remembers", "Transformer-XL"))
        },
        colors={"forgets": OTHER},
        xlabel="position in the segment",
        ylabel="bits per character",
    )
    ax.set(ylim=(0, None), xticks=(1, 8, 16, 24, 32))
    return show(
        ax.figure,
        title="The cost of starting cold",
        caption="Held-out modules, after 600 steps; means of three recorded seeds.",
    )


def results_table(runs: Runs) -> Html:
    """Show what each recorded model reached, with 600 steps and with 1,200."""
    table, spread = [], 0.0
    for kind, name in MODELS.items():
        bits, longer = (by_position(runs, kind, steps) for steps in (600, 1200))
        parts = [part.mean(1) for part in (bits, bits[:, :4], bits[:, 16:])]
        parts += [longer.mean(1)] if len(longer) else []
        spread = max(spread, *map(numpy.ptp, parts))
        shown = [f"{seeds.mean():.2f}" for seeds in parts]
        table.append((name, *shown, *["–"] * (4 - len(shown))))
    return show_table(
        ("model", "all", "1–4", "17–32", "all, 1,200 steps"),
        table,
        caption="Bits per character of held-out modules, by position in the segment, "
        "after 600 steps if not given: the mean of three recorded seeds, which differ "
        f"by at most {spread:.2f}.",
    )


def curtain(record: Mapping[str, Any]) -> Html:
    """Draw what the letters around a border cost, recorded, and what the c may see."""
    letters, first, hung = record["letters"], 4, 16  # the curtain hangs before the e
    at = [22 + 27 * j + hung * (j >= first) for j in range(len(letters))]
    edge, drawing, told = at[first] - 12 - hung, Drawing(350, 244), []
    for name, bits, color, top, fall, sees in (
        ("forgets", record["bits"]["vanilla"], "other", 0, 100, at[first : first + 1]),
        ("remembers", record["bits"]["Transformer-XL"], "this", 128, 22, at[2:5]),
    ):
        base, eye = top + 74, top + 108
        drawing.text(0, top + 14, f"It {name}", anchor="start", bold=True)
        for x, letter, cost in zip(at, letters, bits, strict=True):
            bar = x - 9, base - 6 * cost, 18, 6 * cost
            drawing.frame(*bar, shade=0.75, color=color, outline=False)
            drawing.text(x, base - 6 * cost - 4, f"{cost:.1f}", size=NOTE)
            drawing.text(x, base + 17, visible(letter), code=True)
        drawing.frame(edge, top + 16, hung, fall, shade=0.3, color="other")
        for y in range(top + 16, top + 16 + fall - hung, 5):
            drawing.line((edge, y + hung), (edge + hung, y), width=0.7)
        c = at[first + 1]
        drawing.line((c, base + 22), (c, eye), (sees[0], eye))
        for x in sees:
            drawing.arrow((x, eye), (x, base + 21))
        told.append(f"the model that {name}: {' '.join(f'{x:.1f}' for x in bits)}")
    drawing.line((at[first], 108), (edge + hung, 108))
    drawing.frame(edge, 100, hung, hung, shade=1, color="wrong", outline=False)
    drawing.frame(edge + 3, 106, 10, 4, shade=1, color="on", outline=False)
    return drawing.figure(
        alt=f"A border before the e of {' '.join(map(visible, letters))}. Bits, "
        f"{'; '.join(told)}. For the c, the first sees the e alone, the other s, p, e.",
        caption="How hard each letter is to guess, in bits (12.1). Between p and e a "
        "segment ends. Arrows: what each model sees before the c. One recorded run.",
    )


# ---- what a segment sees -------------------------------------------------------------


def check_memory(update: Callable[[Tensor, Tensor, int], Tensor]) -> None:
    """Check what a notebook's ``update_memory`` keeps; say where it goes wrong."""
    states = torch.arange(20.0).view(1, 10, 2).requires_grad_()
    for m, mem_len in ((4, 2), (4, 5), (4, 10), (4, 20), (4, 0), (0, 3)):
        parts = states[:, :m], states[:, m:], mem_len
        kept, wanted = update(*parts), update_memory(*parts)
        case = f"update_memory, {m} old and {10 - m} new states, mem_len={mem_len}: "
        sizes = f"{wanted.shape[1]} should be kept, not {kept.shape[1]}"
        assert kept.shape == wanted.shape, case + sizes
        assert kept.equal(wanted), case + "it should keep the last, in their order"
        assert not kept.requires_grad, case + "what it keeps should be detached"
    print("✓ update_memory keeps what the module's keeps")


def check_reach(states_needed: Callable[..., list[Tensor]]) -> None:
    """Check which characters a notebook's function names, on models that run."""
    text = torch.tensor(Characters(CHARACTERS).encode(" argument specifies the "))
    cases = "441 442 443 643 243 402 682 623 423 161".split()
    for segment, memory, layers in (map(int, case) for case in cases):
        model = options.reach_model(TransformerXL, layers=layers, mem_len=memory)
        felt = options.reached_by_change(model, text, segment)
        named = states_needed(len(text), segment, memory, layers)[-1]
        places = [which.nonzero().flatten().tolist() for which in (felt, named)]
        assert felt.equal(named), (
            f"states_needed, segments of {segment}, memory {memory}, {layers} layers: "
            f"a model feels changes at {places[0]}, but {places[1]} are named"
        )
    for layers in (1, 2, 3):  # memories of 4, segments of 4
        for kind, count in ((TransformerXL, 4), (options.AttachedXL, 4 + 4 * layers)):
            model = options.reach_model(kind, layers=layers)
            got = int((options.reached_by_gradient(model, text, 4) != 0).sum())
            assert got == count, f"gradients of {kind.__name__} reach {got} characters"
    print(f"✓ {len(cases)} models feel a change in just these characters")
    print("✓ gradients stop at the border; without detach they reach just as far back")


def reach(text: str, levels: Sequence[Tensor], memory: int, segment: int) -> Html:
    """Draw which states of each level, the last layer first, the last output needs."""
    n, size, left, tall = len(text), 12.5, 48, 26
    for used in levels:
        require.that(len(used) == n, f"levels must have {n} states, got {len(used)}")
    drawing = Drawing(350, tall * len(levels) + 30)
    middle = [left + size * (p + 0.5) for p in range(n)]
    begin = (n - 1) // segment * segment  # of the last segment
    back = size * min(memory, begin)
    for row, used in enumerate(levels):
        y, layer = 4 + tall * row, len(levels) - 1 - row
        drawing.text(0, y + 16, f"layer {layer}" if layer else "input", anchor="start")
        x = left + size * begin
        drawing.frame(x, y, size * (n - begin), tall - 4, shade=0.25)
        if row and back:  # nobody looks back at the last layer
            drawing.frame(x - back, y, back, tall - 4, dashed=True)
        dots = [middle[p] for p in used.nonzero().flatten().tolist()]
        drawing.text(dots, y + 16, "●" * len(dots), size=14)
    base = 4 + tall * len(levels) + 14
    drawing.text(middle, base, "".join(map(visible, text)), code=True)
    borders = [left + size * p for p in range(segment, n, segment)]
    drawing.text(borders, base, "|" * len(borders), size=14)
    shown, blocks = int(levels[-1].sum()), -(-memory // segment)  # of the memory
    far = segment + memory + (len(levels) - 2) * blocks * segment
    more = f" (here, all {shown})" if far > shown else ""
    said = f"The last output can depend on {far} characters{more}."
    alt = f"Segments of {segment}, a memory of {memory}, {len(levels) - 1} layers."
    return drawing.figure(alt=f"{alt} {said}", caption=said)


# ---- scores by distance --------------------------------------------------------------


def by_key(values: Tensor, name: str, **look: Any) -> Matrix:
    """Return the matrix of queries e, c, i and keys s, p, e, c, i as it is drawn."""
    given = {"rows": list("eci"), "columns": list("speci"), "narrow": True}
    mask = torch.ones(3, 5, dtype=torch.bool).tril(2)
    return Matrix(values, name, **given | {"mask": mask} | look)


def weights(table: Tensor) -> Matrix:
    """Return weights (t, s) as they are drawn: hatched where nothing is left."""
    return by_key(table, "weights", row=1, mask=table > 0, weights=True)


def score(terms: Mapping[str, Tensor], table: Tensor) -> Html:
    """Show the four terms (t, s), their sum, and the weights that it becomes."""
    names = "(a) qᵢ · kⱼ", "(b) qᵢ · r", "(c) u · kⱼ", "(d) v · r", "sum"
    every = *terms.values(), sum(terms.values())
    drawn = [by_key(t, name, row=1) for t, name in zip(every, names, strict=True)]
    signed = [x for pair in zip(drawn, "+++=→", strict=True) for x in pair]
    return chain(
        *(*signed, weights(table)),
        caption="Lit: the c. It skips the vowel just before it and looks at the "
        "nearest consonant before that. (r: the vector of the distance i − j.)",
    )


# ---- the relative shift --------------------------------------------------------------


def addresses(t: int, s: int) -> Tensor:
    """Return addresses of scores by distance: tens the query, units the distance."""
    return 10.0 * torch.arange(1, t + 1)[:, None] + torch.arange(s - 1, -1, -1)


def staircase() -> Html:
    """Show the steps of the shift: padded rows and their line, with cuts; new rows."""
    x = addresses(3, 5)
    padded, cuts = F.pad(x, (1, 0)), {"narrow": True, "skip": 3, "cut": 5}
    return chain(
        Matrix(padded, "steps 1 and 2: zeros, cuts", rows=list("eci"), **cuts),
        "→",
        by_key(relative_shift(x), "step 3: stacked", mask=None),
        Matrix(padded.flatten(), "step 2, as one line: skip 3, cut every 5", **cuts),
        caption="A shade for each old row. Dashed: skipped. Bars: cuts. No number "
        "moves: each new row ends with whatever comes next in the line.",
    )


def check_shifts(**shifts: Callable[[Tensor], Tensor]) -> None:
    """Check a notebook's shifts where keys are visible; say which row is wrong.

    The module's is checked with them: all have to look up the distance of each key.
    """
    for t, s in ((3, 5), (1, 1), (4, 6), (5, 5), (2, 9), (7, 10)):
        for name, shift in {**shifts, "the module's": relative_shift}.items():
            shifted, case = shift(addresses(t, s)), f"{name}, {t} queries and {s} keys"
            assert shifted.shape == (t, s), f"{case}: the shape is {shifted.shape}"
            for i, row in enumerate(shifted.int().tolist(), 1):
                keys = s - t + i  # that query i sees; the first is keys − 1 back
                wanted = [10 * i + keys - 1 - j for j in range(keys)]
                assert row[:keys] == wanted, (
                    f"{case}: row {i} should begin with "
                    f"{' '.join(map(str, wanted))}, but it is {' '.join(map(str, row))}"
                )
    print(f"✓ {', '.join(shifts)} and the module's agree wherever keys are visible")


def check_attention(relative_attention: Callable[..., Tensor]) -> None:
    """Check the module by its four terms, and a notebook's lines by one head of it."""

    def by_lines(head: nn.Module, query: Tensor, key: Tensor) -> Tensor:
        R = sinusoidal_encoding(key.shape[1], 8).flip(0).to(query)
        maps = head.query_map, head.key_map, head.value_map, head.position_map
        inputs = zip(maps, (query[0], key[0], key[0], R), strict=True)
        biases = head.content_bias[0, 0], head.position_bias[0, 0]
        output = relative_attention(*(map_(x) for map_, x in inputs), *biases)
        return head.output_map(output)[None]

    for claim, heads, slow in (
        ("the module = the four terms, pair by pair", 2, slow_attention),
        ("relative_attention = a head of the module", 1, by_lines),
    ):
        module = RelativeAttention(8, heads).double()
        nn.init.normal_(module.content_bias)
        nn.init.normal_(module.position_bias)
        x = torch.randn(1, 7, 8, dtype=torch.float64)  # a memory of 3, a segment of 4
        given = module, partial(slow, module), x[:, 3:], x
        check_same(claim, *given, tolerance=1e-9)


def shift_explorer() -> Html:
    """Show the steps of the shift, for other numbers of queries and keys."""
    checks = []
    for state in ("46323", "46415", "35312", "24020", "47246", "44132"):
        t, s, step, query, distance = map(int, state)
        names = {"queries": t, "keys": s, "step": step}
        names |= {"query": query, "distance": distance}
        key = s - t + query - distance  # counted from 1
        result = relative_shift(addresses(t, s)).int().tolist()
        checks.append((names, {"result": result, "key": max(key, 0)}))
    queries, keys = [2, 3, 4], [4, 5, 6, 7]
    return explorer(
        static("ch12/relative_shift.js"),
        {"queries": max(queries), "keys": [min(keys), max(keys)]},
        [
            Slider("step", "step", [0, 1, 2, 3, 4], 0),
            Slider("queries", "queries t", queries, 4),
            Slider("keys", "keys s", keys, 6),
            Slider("query", "follow query", [1, 2, 3, 4], 2),
            Slider("distance", "at distance", [0, 1, 2, 3, 4, 5, 6], 3),
        ],
        label="Step through relative_shift",
        checks=checks,
        question="At which key will 23 (query 2, distance 3) land, and which three "
        "numbers right of 10? Decide, then take the steps.",
        caption="Tens: the query. Units: the distance. Framed: the cell you follow.",
    )


# ---- what memory costs, and what is used of it ---------------------------------------


def cost_table(record: Mapping[str, Any]) -> Html:
    """Show the recorded milliseconds of a guess, by way and step."""
    before = record["before"]
    cost = {(run["way"], run["step"]): run["milliseconds"] for run in record["runs"]}
    ways = {
        "window, written out": "overlapping windows",
        "window, fused": "the same, fused attention",
        "memory": "a memory",
    }
    steps = dict.fromkeys(step for _, step in cost)
    return show_table(
        ("a guess costs", *(f"n = {step}" for step in steps)),
        [
            (name, *(f"{cost[way, step]:.{2 * (step > 1)}f} ms" for step in steps))
            for way, name in ways.items()
        ],
        caption=f"Every guess sees {before + 1} characters at least, {before} + n at "
        "most. Recorded on one CPU core: 4 layers of width 256, medians of "
        f"{record['rounds']} rounds.",
    )


def recall_table(record: Mapping[str, Any]) -> Html:
    """Show which words are recalled with which memory; check it seed by seed."""
    right: dict[tuple[int, int], list[float]] = {}
    for run in record["runs"]:
        right.setdefault((run["word"], run["mem_len"]), []).append(run["right"])
    words, memories = (dict.fromkeys(at[axis] for at in right) for axis in (0, 1))
    for (word, memory), shares in right.items():
        seen = word <= 8 + memory  # by one layer, from position 9 of a segment on
        assert min(shares) > 0.9 if seen else max(shares) < 0.2
    return show_table(
        ("memory", *(f"{word} letters back" for word in words)),
        [
            (str(memory), *(f"{numpy.mean(right[word, memory]):.0%}" for word in words))
            for memory in memories
        ],
        caption="Right guesses in the second copy, positions 9 to 16 of a segment: "
        f"means of three recorded seeds. Chance: {1 / 16:.0%}.",
    )


# ---- a trained model -----------------------------------------------------------------


def check_loop(read_in_order: Callable[..., None]) -> None:
    """Check that a notebook's loop takes the steps that ``train_on_segments`` takes."""
    batches = [*islice(segments(library_ids("validation"), 4, 8), 3)]
    ours = options.reach_model(TransformerXL, mem_len=8)
    theirs = deepcopy(ours)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, theirs)]
    read_in_order(ours, batches, optimizers[0])
    fit(theirs, SegmentLoss(), batches, optimizers[1])
    pair = [nn.utils.parameters_to_vector(m.parameters()) for m in (ours, theirs)]
    check_close("the loop = fit with SegmentLoss, weights after 3 steps", *pair, 1e-5)
    attached = options.reach_model(options.AttachedXL, mem_len=8)
    optimizer = torch.optim.SGD(attached.parameters())
    try:
        read_in_order(attached, batches, optimizer)
    except RuntimeError as error:
        assert "backward through the graph a second time" in str(error)
        print(f"✓ without detach(), it stops: {str(error)[:56]}…")
    else:
        raise AssertionError("without detach(), the loop runs: are memories passed on?")


def border_explorer(
    weights: Mapping[str, Any],
    characters: Sequence[str],
    text: str,
    answer: Callable[[str, int], tuple[dict[str, Any], dict[str, Any]]],
) -> Html:
    """Show a model that reads the reader's text; ``answer`` is what it has to find."""
    sizes = {"heads": 4, "layers": 2, "memory": 32}
    return explorer(
        static("ch12/border_reader.js"),
        {"weights": weights, "characters": "".join(characters), **sizes},
        [
            Text("text", "text", text),
            Slider("segment", "characters in a segment", list(range(1, 33)), 8),
        ],
        label="Borders in a text of your own",
        checks=[answer(text, 8), answer("def f(", 1), answer("specifies the", 5)],
        question="After which border does an empty memory cost most? Why there?",
        caption="A square for each guess: the stronger, the more bits. Bars: borders. "
        "Bars up: bits that its memory saves this model; bars down: bits lost. Point "
        "at a character for its numbers.",
    )
