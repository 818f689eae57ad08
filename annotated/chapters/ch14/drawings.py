"""Chapter 14, reversible layers: its drawings, tables, explorers, longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.chapters.ch14.reversible import (
    REFORMER_RECIPES,
    layers,
    reformer,
    stored,
)
from annotated.gpt import next_token_loss
from annotated.memory import kept_bytes
from annotated.page.diagrams import PLUS, Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import COLOURS, OTHER, THIS, plot_lines
from annotated.page.records import grouped
from annotated.reformer import lsh_buckets
from annotated.reversible import ChunkedFeedForward, ReversibleBlock, ReversibleSequence

Record = Mapping[str, Any]
Streams = tuple[Tensor, Tensor]
Peaks = Mapping[int, Mapping[str, Mapping[int, float]]]

WAYS = ("stored", "checkpointed", "reversible")
LETTERS = "undo"


def row(values: Tensor, name: str, **look: Any) -> Matrix:
    """Return numbers at u, n, d and o as they are drawn."""
    return Matrix(values.detach(), name, columns=[*LETTERS], **look)


def real_blocks(depth: int, gain: float = 1.0, **options: Any) -> nn.ModuleList:
    """Return attention and feed-forward networks, their matrices times ``gain``."""
    blocks = layers(depth, 64, 4, 256, **options).blocks
    with torch.no_grad():
        for parameter in blocks.parameters():
            parameter.mul_(gain if parameter.dim() > 1 else 1.0)
    return blocks


def megabytes_saved(
    layer: nn.Module, compute: Callable[[Tensor], Tensor], x: Tensor
) -> float:
    """Return the megabytes saved for the backward pass, without a layer's weights."""
    return kept_bytes(layer, lambda: compute(x)) / 1e6


# ---- memory, as recorded -------------------------------------------------------------


def peaks_by_length(records: Mapping[str, Record]) -> Peaks:
    """Return recorded peaks in MB by length, way, depth; checkpointed: one stream."""
    runs = [
        {"length": 2048} | run
        for run in records["reversible_cost"]["memory"]["peaks"]
        if run["attention"] == "full attention"
    ]
    runs += records["reversible_length"]["peaks"]
    runs = [run for run in runs if run["way"] in ("stored", "reversible")]
    runs += [
        run for run in records["one_stream"]["peaks"] if run["way"] == "checkpointed"
    ]
    deep = records["deep_and_long"]
    size = {name: deep[name] for name in ("length", "depth")}
    runs += [size | {"way": way, "MB": MB} for way, MB in deep["MB"].items()]
    table: dict = {length: {way: {} for way in WAYS} for length in (2048, 8192)}
    for run in runs:
        table[run["length"]][run["way"]][run["depth"]] = run["MB"]
    return table


def for_one_layer(peaks: Peaks) -> dict[int, dict[str, float]]:
    """Return the MB that one more layer takes, by length and way."""
    ends = {2048: (8, 16), 8192: (2, 6)}
    return {
        length: {
            way: (table[way][b] - table[way][a]) / (b - a)
            for way in WAYS
            for a, b in [ends[length]]
        }
        for length, table in peaks.items()
    }


def _time_ratios(records: Mapping[str, Record]) -> dict[str, float]:
    """Return the time of a step, as a multiple of stored; checkpointed: one stream."""
    timing = records["reversible_cost"]["time, depth 16"]["full attention"]
    ratios = {way: timing["ratios to stored"][way][1] for way in WAYS}
    return ratios | {"checkpointed": records["one_stream"]["time to stored"]}


def layer_table(records: Mapping[str, Record]) -> Html:
    """Show what one more layer takes, and the time of a step."""
    short, long = for_one_layer(peaks_by_length(records)).values()
    ratios = _time_ratios(records)
    return show_table(
        ("one more layer takes", "2048 characters", "8192 characters", "time"),
        [
            (way, f"{short[way]:.1f} MB", f"{long[way]:.1f} MB", f"{ratios[way]:.2f}")
            for way in WAYS
        ],
        caption="Time: a step through 16 layers, 2048 characters, against stored.",
    )


def scaled(peaks: Peaks) -> dict[str, dict[str, float]]:
    """Return MB at 2048 positions, width 256: for a layer, and once, by way."""
    long = for_one_layer(peaks)[8192]
    return {
        way: {
            "layer": 0 if way == "reversible" else long[way] / 4,
            "once": (peaks[8192][way][2] - 2 * long[way]) / 4,
        }
        for way in WAYS
    }


def gigabytes(
    fits: Mapping[str, Mapping[str, float]], layers: int, length: int, width: int
) -> dict[str, float]:
    """Return the GB of a training step, by way, scaled from what was measured."""
    scale = length / 2048 * width / 256 / 1000
    weights = layers * 12 * width**2 * 16 / 1e9  # also gradients, two averages
    return {
        way: weights + scale * (at["once"] + layers * at["layer"])
        for way, at in fits.items()
    }


def fit_explorer(peaks: Peaks) -> Html:
    """Show which ways of training fit a GPU, by layers, length and width."""
    fits, checks = scaled(peaks), []
    for sizes in (
        (6, 2048, 256),
        (12, 2**16, 1024),
        (48, 2**16, 1024),
        (96, 4096, 2048),
    ):
        state = dict(zip(("layers", "length", "width"), sizes, strict=True))
        checks.append((state, gigabytes(fits, *sizes)))
    return explorer(
        static("ch14/what_fits.js"),
        {"ways": fits, "length": 2048, "width": 256, "room": 24},
        [
            Slider("layers", "layers", [3, 6, 12, 24, 48, 96], 24),
            Slider("length", "characters", [2**n for n in range(11, 17)], 16_384),
            Slider("width", "width", [256, 512, 1024, 2048], 1024),
        ],
        label="What fits",
        checks=checks,
        question="A GPU has 24 GB. Which of the three fit, if 12 layers, 1024 wide, "
        "read 65,536 characters at once? And 48 layers?",
        caption="Grey: weights, gradients (as if they accumulate), Adam's averages. "
        "Orange: there once, at any depth. Blue: what each layer keeps. Estimated "
        "from width 256, on a CPU.",
    )


# ---- two streams ---------------------------------------------------------------------


def _block(
    drawing: Drawing, left: int, top: int, right: int, undo: bool, words: Sequence[str]
) -> None:
    """Draw two streams, what F and G add to them or take away, and ``words`` there."""
    width = right - left
    near, far = left + round(0.32 * width), left + round(0.73 * width)
    for name, x, source, y, word in (
        ("F", near, top + 74, top, words[0]),
        ("G", far, top, top + 74, words[1]),
    ):
        side = 1 if source > y else -1  # where it comes from, seen from the stream
        ends = [(left, y), (x - PLUS, y)], [(x + PLUS, y), (right, y)]
        before, after = [line[::-1] for line in ends[::-1]] if undo else ends
        drawing.line(*before)
        drawing.arrow(*after)
        drawing.line((x, source), (x, top + 37 + 13 * side))
        drawing.frame(x - 15, top + 24, 30, 26, shade=0.2)
        drawing.text(x, top + 42, name, bold=True)
        drawing.arrow((x, top + 37 - 13 * side), (x, y + PLUS * side))
        drawing.text(x + 8, top + 37 - 21 * side + 5, word, anchor="start")
        drawing.frame(x - PLUS, y - PLUS, 2 * PLUS, 2 * PLUS)
        drawing.line((x - 5, y), (x + 5, y))
        if not undo:
            drawing.line((x, y - 5), (x, y + 5))


def circuit() -> Html:
    """Draw a block forward, and running backwards, with numbers: F and G square."""
    drawing = Drawing(350, 250)
    for top, undo, title, words in (
        (26, False, "forward: F, then G", ("+4", "+49")),
        (158, True, "backwards: G, then F", ("−4", "−49")),
    ):
        drawing.text(175, top - 12, title, bold=True)
        for number, ends, y in (("₁", "3 7", top + 5), ("₂", "−2 47", top + 79)):
            before, after = ends.split()
            drawing.text(0, y, f"x{number} = {before}", anchor="start")
            drawing.text(350, y, f"y{number} = {after}", anchor="end")
        _block(drawing, 52, top, 296, undo, words)
    return drawing.figure(
        alt="The same two streams twice. Forward, to the right: F of x2, 4, is "
        "added to x1, 3, which becomes y1, 7; G of y1, 49, is added to x2, −2, which "
        "becomes y2, 47. Backwards, to the left: G of y1, 49, is subtracted from y2, "
        "which gives x2, −2; F of x2, 4, is subtracted from y1, which gives x1, 3.",
        caption="A block of a reversible network. Here F and G square what they read: "
        "a square forgets the sign, and yet −2 comes back.",
    )


def round_trip(before: Tensor, after: Tensor, again: Tensor) -> Html:
    """Show two streams (2, 4) before a block and after it, and what comes back."""
    wrong = int((before != again).sum())
    came = f"back: {wrong} of 8 are wrong" if wrong else "back: all 8 are right"
    return chain(
        row(before, "forward from", rows=["x₁", "x₂"], narrow=True),
        "→",
        row(after, "to", rows=["y₁", "y₂"], narrow=True),
        "→",
        row(again, came, rows=["x₁", "x₂"], narrow=True, wrong=before != again),
    )


def check_undo(undo: Callable[..., Streams], before: Streams, after: Streams) -> None:
    """Check a notebook's undo on its example, and the module's on a real block."""
    for name, one, other in zip(("x1", "x2"), undo(*after), before, strict=True):
        assert one.equal(other), f"undo: {name} should be {other}, but it is {one}"
    print("✓ our four positions, undone, exactly")
    given = torch.randn(2, 2, 17, 64)
    with torch.no_grad():
        (block,) = real_blocks(1)
        back = torch.stack(block.inverse(*block(*given)))
    check_close("attention and a feed-forward network, undone", back, given, 1e-5)


# ---- forget and rebuild --------------------------------------------------------------

WEIGHTS = [[1, 1], [1, -1], [-1, 1], [1, -1]]  # of F and of G, block by block
MASKS = {  # what dropout keeps, twice as large, and what is dropped
    "first": [[2, 0, 2, 0], [2, 2, 0, 0], [0, 2, 0, 2], [0, 0, 2, 2]],
    "second": [[0, 2, 2, 0], [0, 2, 0, 2], [2, 2, 0, 0], [2, 0, 0, 2]],
}
FORWARD = [f"forward {k}" for k in (1, 2, 3, 4)]
STEPS = ["start", *FORWARD, *(f"backward {k}" for k in (4, 3, 2, 1))]
MOST = {"stored": 72, "checkpointed": 48, "reversible": 24}


def one_back(x: Tensor) -> Tensor:
    """Return what stands before each position, (t,)."""
    return F.pad(x[:-1], (1, 0))


def toy_stack(
    start: Tensor, dropout: str, method: str
) -> tuple[list[Tensor], list[Tensor], list[list[int]]]:
    """Return the states (2, 4), what is rebuilt of them, the weights' gradients."""
    none, redrawn = torch.ones(4, 4), method != "stored" and dropout == "drawn again"
    first = none if dropout == "none" else torch.tensor(MASKS["first"])
    again = torch.tensor(MASKS["second"]) if redrawn else first
    states = [start]
    for (a, w), mask in zip(WEIGHTS, first, strict=True):
        x1, x2 = states[-1]
        y1 = x1 + a * one_back(x2)
        states.append(torch.stack([y1, x2 + w * mask * y1.relu()]))
    rebuilt, slopes = [*states], [[]] * 4
    d1 = d2 = torch.ones(4)  # the loss is the sum of the outputs
    for k in reversed(range(4)):
        y1, y2 = rebuilt[k + 1]
        weight = torch.tensor(WEIGHTS[k], dtype=torch.float, requires_grad=True)
        y1 = y1.clone().requires_grad_()
        g = weight[1] * again[k] * y1.relu()
        x2 = y2 - g if method == "reversible" else states[k][1]
        x2 = x2.detach().clone().requires_grad_()
        f = weight[0] * one_back(x2)
        (g * d2).sum().backward()
        d1 = d1 + y1.grad
        (f * d1).sum().backward()
        d2 = d2 + x2.grad
        slopes[k] = weight.grad.int().tolist()
        if method == "reversible":
            rebuilt[k] = torch.stack([y1 - f, x2]).detach()
    return states, rebuilt, slopes


def remembered(
    start: Tensor, method: str, dropout: str, step: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return a state of the explorer, and what it has to show there."""
    states, rebuilt, slopes = toy_stack(start, dropout, method)
    at = STEPS.index(step)
    forward, block = at <= 4, at - 1 if at <= 4 else 8 - at
    rows, insides = [*range(block + 2)], block + 1 if method == "stored" else min(at, 1)
    if method == "reversible" and at:
        rows = [block, block + 1]
    shown = states if forward else rebuilt
    wrong = sum(int((shown[i] != states[i]).sum()) for i in rows)
    return {"method": method, "dropout": dropout, "step": step}, {
        "count": 8 * (len(rows) + insides),
        "rows": [shown[i].int().tolist() for i in rows],
        "slopes": [] if forward else slopes[block:],
        "wrong": wrong,
        "most": MOST[method],
    }


def rebuild_explorer(start: Tensor) -> Html:
    """Show four blocks forward and backward from ``start`` (2, 4), by what is kept."""
    none, replayed, again = dropouts = ["none", "replayed", "drawn again"]
    states = [("stored", none, "forward 4"), ("stored", again, "backward 2")]
    states += [("checkpointed", kind, "backward 3") for kind in (none, again)]
    states += [("reversible", none, s) for s in ("start", "forward 2", "backward 1")]
    states += [("reversible", kind, "backward 1") for kind in (replayed, again)]
    states += [("reversible", again, "backward 4")]
    given = {"start": start.int().tolist(), "weights": WEIGHTS, "masks": MASKS}
    return explorer(
        static("ch14/forget_rebuild.js"),
        given | {"letters": [*LETTERS], "steps": STEPS},
        [
            Slider("step", "step", STEPS, "forward 2"),
            Choice("method", "what is kept", WAYS),
            Choice("dropout", "dropout in G", dropouts),
        ],
        label="Forget and rebuild",
        checks=[remembered(start, *state) for state in states],
        question="Stored, how many numbers are in memory after block 4? Reversible, "
        "what's the most at any time? And with forty blocks?",
        caption="Filled: in memory. Dashed: used, then forgotten. Framed: rebuilt or "
        "computed again. Underlined, in a row with ✗: a wrong number.",
    )


def check_stack(forgetful: type[torch.autograd.Function]) -> None:
    """Check a notebook's function and the module on six real blocks, with dropout."""
    given = torch.randn(2, 3, 17, 64).double()

    def gradients(way: Callable[..., Streams]) -> list[Tensor]:
        torch.manual_seed(1)  # dropout draws the same
        x, parameters = given.clone().requires_grad_(), [*module.parameters()]
        for parameter in parameters:
            parameter.grad = None
        output = torch.stack(way(*x))
        output.square().sum().backward()
        return [output, x.grad, *(p.grad for p in parameters), torch.rand(1)]

    for dropout in (0.0, 0.3):
        module = ReversibleSequence(real_blocks(6, dropout=dropout)).double()
        pairs = [(block.f, block.g) for block in module.blocks]
        wanted = gradients(partial(stored, module))
        if not dropout:
            found = gradients(lambda x1, x2, all=pairs: forgetful.apply(x1, x2, all))
            check_close("Forgetful = stored, gradients", found, wanted, 1e-8)
        case = "and the next random number" if dropout else "gradients"
        claim = f"ReversibleSequence, dropout {dropout} = stored, {case}"
        check_close(claim, gradients(module), wanted, 1e-8)


# ---- chunks, two streams or one, pitfalls --------------------------------------------


def check_chunks(saved: Callable[..., float], wide: nn.Module, x: Tensor) -> None:
    """Check that chunks give the same, and with ``saved`` that the module's forget."""
    chunked = ChunkedFeedForward(256, 1024, chunk_size=256)
    chunked.load_state_dict(wide.state_dict())
    names = [name for name, _ in wide.named_parameters()]

    def output(network: nn.Module, x: Tensor, *weights: Tensor) -> Tensor:
        named = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(network, named, (x,))

    check_same(  # 256 doesn't divide 1000
        "1000 positions in chunks of 256 = at once",
        *(partial(output, chunked), partial(output, wide)),
        *(x[:, :1000], *(p.detach() for p in wide.parameters())),
        tolerance=1e-4,
    )
    kept, whole = saved(chunked, x), saved(wide, x)
    assert kept < 0.25 * whole
    print(f"saved for the backward pass: {kept:.1f} MB, not {whole:.1f}")


CHUNKS = {"whole": "at once", "cut": "in chunks", "chunked": "in chunks that forget"}


def chunk_table(record: Record) -> Html:
    """Show the recorded peaks of a wide network at once and in chunks."""
    runs = {(run["way"], run["backward"]): run for run in record["runs"]}
    MB = {at: run["MB"] for at, run in runs.items()}
    return show_table(
        ("", "forward alone", "forward and backward", "time of both"),
        [
            (
                name,
                *(f"{MB[way, back]:.0f} MB" for back in (False, True)),
                f"{runs[way, True]['time to whole']:.2f}",
            )
            for way, name in CHUNKS.items()
        ],
        caption="A feed-forward network 256 wide, 4096 in the middle, on 8192 "
        "positions, in chunks of 256. All the wide vectors together are 134 MB.",
    )


def check_pitfalls(
    forgetful: type[torch.autograd.Function], *given: Tensor, pairs: Sequence
) -> None:
    """Check that what the page warns of happens, on a notebook's function as well."""
    moody = ReversibleSequence(real_blocks(1, dropout=0.3))

    def other_mode() -> None:
        output = moody(*torch.randn(2, 1, 5, 64))[0]
        moody.eval()
        output.sum().backward()

    def nothing_to_train() -> None:
        forgetful.apply(*given, pairs)[0].sum().backward()

    for pitfall, wanted in (
        (other_mode, "were rebuilt with an error"),
        (nothing_to_train, "does not require grad"),
    ):
        try:
            pitfall()
        except RuntimeError as error:
            assert wanted in str(error), error
            print(f"✓ it stops: {str(error)[:64]}…")
        else:
            raise AssertionError(f"{pitfall.__name__}: it should stop, and doesn't")


# ---- page 14b: rounding --------------------------------------------------------------

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@torch.no_grad()
def rebuilt(blocks: Sequence[ReversibleBlock], x: Tensor) -> Tensor:
    """Return what comes back of x, (2, b, t, d), through all blocks and back."""
    streams = tuple(x)
    for block in blocks:
        streams = block(*streams)
    for block in reversed(blocks):
        streams = block.inverse(*streams)
    return torch.stack(streams)


def relative(found: Tensor, true: Tensor) -> float:
    """Return the error of ``found`` as a share of ``true``."""
    return ((found - true).double().norm() / true.double().norm()).item()


def errors(gain: float, dtypes: Sequence[torch.dtype]) -> dict[str, list[float]]:
    """Return the error of the rebuilt input, for each depth, by precision."""
    torch.manual_seed(0)
    blocks, given = real_blocks(max(DEPTHS), gain), torch.randn(2, 1, 64, 64)
    table = {}
    for dtype in dtypes:
        cast, x = deepcopy(blocks).to(dtype), given.to(dtype)
        table[_name(dtype)] = [relative(rebuilt(cast[:n], x), x) for n in DEPTHS]
    return table


def plot_errors() -> Html:
    """Plot the error by depth: by precision, and by how much F and G amplify."""
    by_dtype = errors(1, DTYPES)
    half = {"as initialised": by_dtype["bfloat16"]}
    for gain in (2, 4):
        half |= {f"matrices × {gain}": errors(gain, DTYPES[3:])["bfloat16"]}
    first, double, fourfold = half.values()
    assert by_dtype["float32"][-1] < 1e-5 and 5e-3 < first[-1] < 0.1
    assert double[-1] > 0.1 and fourfold[2] > 0.5
    assert all(5 < errors[-1] / errors[0] < 64 for errors in by_dtype.values())
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6))
    for ax, table, title in zip(
        axes, (by_dtype, half), ("as initialised", "in bfloat16"), strict=True
    ):
        plot_lines(
            {name: dict(zip(DEPTHS, row, strict=True)) for name, row in table.items()},
            ax, colors={name: OTHER for name, row in table.items() if row is not first},
            xlabel="blocks", xscale="log", ylabel="error / input", yscale="log",
            title=title,
        )  # fmt: skip
    return show(
        figure,
        title="Depth adds errors; large matrices multiply them",
        caption="Width 64, 64 positions. At 1, the error is as large as the input.",
    )


class Half(nn.Module):
    """Compute in bfloat16, and give float32."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module.to(torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the module makes of x, (b, t, d)."""
        return self.module(x.to(torch.bfloat16)).float()


def check_mixed() -> None:
    """Check that streams in float32 help F and G in bfloat16."""
    torch.manual_seed(0)
    plain, given = real_blocks(64), torch.randn(2, 1, 64, 64)
    mixed = [ReversibleBlock(Half(b.f), Half(b.g)) for b in deepcopy(plain)]
    lost = relative(rebuilt(mixed, given), given)
    x = given.bfloat16()
    everything = relative(rebuilt(plain.bfloat16(), x), x)
    assert lost < everything / 2
    print(f"measured: error after 64 blocks, F and G in bfloat16: {lost:.1e}")
    print(f"with the streams in bfloat16 as well: {everything:.1e}")


def gradient_table() -> Html:
    """Show how far stored and rebuilt gradients are from those in float64."""

    def gradients(stack: nn.Module, way: Callable[..., Streams]) -> Tensor:
        x = given.to(next(stack.parameters()).dtype).requires_grad_()
        loss = sum(y.double().square().sum() for y in way(*x))
        slopes = torch.autograd.grad(loss, [*stack.parameters()])
        return torch.cat([slope.double().flatten() for slope in slopes])

    torch.manual_seed(0)
    exact = ReversibleSequence(real_blocks(16)).double()
    given = torch.randn(2, 1, 256, 64).double()
    true, off = gradients(exact, partial(stored, exact)), {}
    for dtype in DTYPES:
        stack = deepcopy(exact).to(dtype)
        ways = (partial(stored, stack), stack)
        off[_name(dtype)] = [relative(gradients(stack, way), true) for way in ways]
    assert off.pop("float64")[1] < 1e-12
    assert off["float32"][1] < 1e-2  # more than 1e-5 if a ReLU switches
    assert all(off[half][1] < 2 * off[half][0] for half in ("float16", "bfloat16"))
    return show_table(
        ("precision", "stored", "rebuilt"),
        [(name, *(f"{error:.1e}" for error in pair)) for name, pair in off.items()],
        caption="How far the gradients are from those in float64, as a share.",
    )


def check_rounded(rounded: Callable[[nn.Module], nn.Module]) -> None:
    """Check that a notebook's rounding loses nothing in 64 blocks."""
    blocks = [
        ReversibleBlock(rounded(b.f), rounded(b.g)) for b in real_blocks(64, gain=2)
    ]
    on_grid = (torch.randn(2, 1, 64, 64) * 2**12).round() / 2**12
    check_close("64 blocks undone", rebuilt(blocks, on_grid), on_grid, 0.0)


def plot_guesses(
    guesses: Callable[[float], Sequence[float]], every: Sequence[float], c: float
) -> Any:
    """Plot how far the guesses of a round are off for this ``c``, and for others."""
    figure, ax = plt.subplots(figsize=(8.2, 3.2))
    for gain in sorted(every, key=c.__eq__):  # this one last
        look = {"color": THIS, "marker": "o", "ms": 4} if gain == c else {}
        shown = [max(distance, 1e-13) for distance in guesses(gain)]
        ax.semilogy(shown, **{"color": COLOURS["rule"], "lw": 1.5, **look})
    ax.set(xlabel="rounds of guessing", ylabel="distance from the input")
    ax.set(ylim=(1e-13, 10), xlim=(0, 20), xticks=range(0, 21, 5))
    return figure


def check_guesses(guesses: Callable[[float], Sequence[float]]) -> None:
    """Check where a notebook's guessing ends."""
    ends = {c: guesses(c)[-1] / guesses(c)[0] for c in (0.25, 0.5, 1.0, 1.5)}
    assert ends[0.25] < 1e-10 and ends[0.5] < 1e-5 and min(ends[1.0], ends[1.5]) > 0.09
    print(
        "distance after 20 rounds / before: "
        + str({c: f"{e:.0e}" for c, e in ends.items()})
    )


# ---- page 14c: a Reformer ------------------------------------------------------------


def whole_model() -> Html:
    """Draw a Reformer: two streams through a block."""
    drawing = Drawing(350, 176)
    drawing.frame(1, 24, 78, 100)
    drawing.frame(264, 24, 85, 100)
    drawing.frame(102, 6, 140, 134, dashed=True)
    _block(drawing, 79, 36, 264, undo=False, words=("", ""))
    for x, y, words in (
        *((40, 64, "embedding,"), (40, 80, "positions"), (40, 144, "characters")),
        *((307, 58, "side by side:"), (307, 74, "norm,"), (307, 90, "output map")),
        *((91, 30, "x₁"), (91, 104, "x₂"), (172, 158, "a block, repeated")),
        *((40, 160, "(b, t)"), (307, 144, "logits"), (307, 160, "(b, t, v)")),
    ):
        drawing.text(x, y, words)
    return drawing.figure(
        alt="Two streams from left to right. Embedding and positions enter as both, x1 "
        "and x2. In a block, F of x2 is added to x1, and then G of the new x1 to x2. "
        "At the end both go side by side through a norm and the output map.",
        caption="b texts, t characters, v to choose from. Each stream is (b, t, d), "
        "side by side they are (b, t, 2d). F and G begin with a norm.",
    )


def check_reformer() -> None:
    """Check a small Reformer that rebuilds against itself, storing everything."""
    widths = {"d_model": 32, "layers": 3, "max_len": 256, "dropout": 0.1}
    recipe = REFORMER_RECIPES["16k"]
    recipe = recipe._replace(model=recipe.model | widths)
    tokens = torch.randint(96, (1, 257), generator=torch.Generator().manual_seed(0))
    both = []
    for keep in (False, True):
        model = reformer(recipe, 96, "LSH", seed=0).double()
        if keep:
            stack = model.blocks
            stack.forward = partial(stored, stack)
        torch.manual_seed(1)  # dropout and rotations
        loss = next_token_loss(model, (tokens[:, :-1], tokens[:, 1:]))
        loss.backward()
        both.append([loss, *(p.grad for p in model.parameters())])
    largest = max(gradient.abs().max() for gradient in both[1][1:])
    scaled = [[value / largest for value in values] for values in both]
    check_close("rebuilt = stored, loss and gradients / the largest", *scaled, 1e-9)


def plot_hashed(x: Tensor, rebuilt: Tensor, buckets: int) -> Any:
    """Plot points (t, 2): in red those that ``rebuilt`` puts into another bucket."""
    both = torch.cat([x, rebuilt])  # hashed by the same rotation
    ids = lsh_buckets(both, buckets, 1, torch.Generator().manual_seed(0))[0].chunk(2)
    moved = ids[0] != ids[1]
    figure, ax = plt.subplots(figsize=(4.4, 3.6))
    for which, name in ((~moved, "other"), (moved, "wrong")):
        ax.plot(*x[which].T, "o", ms=5, color=COLOURS[name])
    title = f"{int(moved.sum())} of {len(x)} change their bucket"
    ax.set(xticks=(), yticks=(), title=title)
    ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    return figure


def hash_table(record: Record) -> Html:
    """Show the errors of gradients, by what happens to buckets on the way back."""
    runs = grouped(record["runs"], "backward", "dtype")

    def words(*at: str) -> str:
        if "refused" in runs[at][0]:
            return "refused"
        return f"{median(run['error'] for run in runs[at]):.2g}"

    names = {
        "kept": "buckets as they were",
        "hashed again": "hashed again, same rotations",
        "new maps": "hashed again, other rotations",
    }
    return show_table(
        ("on the way back", "float32", "bfloat16"),
        [
            (n, *(words(way, d) for d in ("float32", "bfloat16")))
            for way, n in names.items()
        ],
        caption="Relative error of the gradients of eight layers against those of a "
        "stored stack in the same format. Refused: the backward pass stops.",
    )


def step_table(record: Record) -> Html:
    """Show the recorded memory of one training step."""
    MB = {
        (run["attention"], run["forget"], run["layers"]): run["MB"]
        for run in record["one step"]
    }
    named = {"LSH": "LSH, one round", "all": "full, fused kernel"}
    return show_table(
        ("attention", "layers are", "2 layers", "8 layers"),
        [
            (named[at], name, *(f"{MB[at, forget, n]:.0f} MB" for n in (2, 8)))
            for at in named
            for name, forget in (("reversible", True), ("stored", False))
        ],
        caption="Peak of one training step: width 64, one text of 16,384 characters.",
    )


def peer_table(record: Record) -> Html:
    """Show memory and time of published Reformers and ours, as recorded."""
    slopes = record["memory"]["MB per layer"]
    seconds = record["time, depth 16"]["LSH attention"]["seconds"]
    named = {
        "stored": "ours, stored",
        "reversible": "ours, reversible",
        "reformer-pytorch, stored": "reformer-pytorch, stored",
        "reformer-pytorch, reversible": "reformer-pytorch, reversible",
        "transformers": "transformers, reversible",
    }
    MB = {key: slopes[f"LSH attention: {key}"] for key in named}
    return show_table(
        ("", "MB for one more layer", "CPU seconds, 16 layers"),
        [
            (name, f"{MB[key]:.1f}", f"{seconds[key][1]:.2f}")
            for key, name in named.items()
        ],
        caption="Memory: peaks of fresh processes, with 2 and with 8 layers. Seconds: "
        "medians of five rounds, the five models taking turns.",
    )


def window_table(steps: Record, pairs: Record, counted: float) -> Html:
    """Show what a hundred steps in long and short windows reached."""
    long, cut, scattered, few, many = steps["runs"]
    cut_all, long_all = pairs["runs"]
    told = {
        "one window": (long, long_all),
        "the same, cut": (cut, cut_all),
        "from all over": (scattered,),
        "from all over, few": (few,),
        "few, more steps": (many,),
    }
    return show_table(
        ("a step reads", "windows × length", "steps", "seconds", "bits"),
        [
            (
                name + (", full attention" if "attention" in run else ""),
                f"{run['batch'] * run['in a row'] // run['window']} × "
                f"{run['window']:,}",
                f"{run['steps']:,}",
                f"{run['seconds']:.0f}",
                f"{run['bits']:.2f}",
            )
            for name, runs in told.items()
            for run in runs
        ],
        caption="2 layers, width 64, LSH attention, one round, if not full. Seconds "
        "of training and test; bits per character of the test; one seed. Counting "
        f"pairs of characters: {counted:.2f} bits.",
    )
