"""Chapter 18, training large models: its drawings, tables, proofs and one measurement.

"Off" is the relative distance of a gradient from the one that was wanted: 0 if they are
equal, 1 if nothing is right, or all of it is missing.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from jaxtyping import Float
from torch import Tensor, nn

from annotated.chapters.ch18.large import (
    STORING,
    large_model,
    stochastic_bfloat16,
    with_checkpoints,
)
from annotated.data.text import CHARACTERS, Characters
from annotated.gpt import GPT, next_token_loss
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Html
from annotated.page.notebook import check_close, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, plot_lines
from annotated.page.records import dots, grouped, span
from annotated.page.svg import COLOURS
from annotated.training import fit

Batch = tuple[Tensor, Tensor]
Record = Mapping[str, Any]
HALVES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


CHAT = (
    "Yes.",
    "No.",
    "Why not?",
    "Let me think about that for a moment.",
    "Sure!",
    "Here is the whole story, from the beginning to the end.",
    "Oh.",
    "That depends on what you mean by soon.",
)


def line_batches(lines: Sequence[str] = CHAT) -> list[Batch]:
    """Return a batch of one row for each of some ``lines``: tokens and targets."""
    characters = Characters(CHARACTERS)
    rows = [torch.tensor(characters.encode(line)) for line in lines]
    return [(row[None, :-1], row[None, 1:]) for row in rows]


# ---- how far a step is off ---------------------------------------------------------


def gradient(model: nn.Module) -> Float[Tensor, "n"]:
    """Return the gradient of all weights of a ``model`` as one long row."""
    return torch.cat([p.grad.detach().flatten() for p in model.parameters()])


def off(found: Tensor, wanted: Tensor) -> float:
    """Return how far ``found`` is from what was ``wanted``, relative to its length."""
    return ((found - wanted).norm() / wanted.norm()).item()


def gradient_of(
    model: nn.Module, *parts: tuple[Batch, float], precision: torch.dtype | None = None
) -> Float[Tensor, "n"]:
    """Return the gradient of a sum of losses.

    Args:
        model: in training mode, its dropout masks drawn from seed 1.
        parts: batches, and what the mean loss of each is multiplied by.
        precision: of :class:`torch.autocast`, if any.
    """
    model.zero_grad()
    torch.manual_seed(1)
    for batch, share in parts:
        with torch.autocast("cpu", precision, enabled=precision is not None):
            loss = next_token_loss(model, batch) * share
        loss.backward()
    return gradient(model)


def tokens_in(batch: Batch) -> int:
    """Return how many targets of a ``batch`` count."""
    return (batch[1] >= 0).sum().item()


def bfloat16_step(weights: Float[Tensor, "n"], rate: float) -> Float[Tensor, "n"]:
    """Return what becomes of a step of ``−rate`` where ``weights`` are in bfloat16."""
    narrow = weights.bfloat16()
    return (narrow.float() - rate).bfloat16().float() - narrow.float()


def gaps(parts: Sequence[Batch], whole: Batch, compiled: Record) -> dict[str, tuple]:
    """Return how far the step is off with each trick, done right and wrong.

    Returns:
        By the trick's name: both numbers (the second is ``None`` if there's no wrong
        way), and in words what the two are.
    """
    plain = large_model()
    wanted = gradient_of(plain, (whole, 1.0))
    shares = [tokens_in(part) / tokens_in(whole) for part in parts]
    weighted = gradient_of(plain, *zip(parts, shares, strict=True))
    means = gradient_of(plain, *((part, 1 / len(parts)) for part in parts))

    def clipped(row: Tensor) -> Tensor:
        return row / row.norm().clamp(min=1.0)

    scaled = gradient_of(plain, (whole, 65536.0))
    early, late = clipped(scaled / 65536), clipped(scaled) / 65536
    masks = [gradient_of(one, (whole, 1.0)) for one in stored_or_not().values()]
    narrow = gradient_of(large_model(), (whole, 1.0), precision=torch.bfloat16)
    weights = torch.cat([p.detach().flatten() for p in plain.parameters()])
    # given: 0.0003
    step = torch.full_like(weights, -3e-4)
    return {
        "in pieces": (
            *(off(weighted, wanted), off(means, wanted)),
            *("weighted by tokens", "mean of means"),
        ),
        "loss scaled": (
            *(off(one, clipped(wanted)) for one in (early, late)),
            *("unscale, clip", "clip, unscale"),
        ),
        "bfloat16": (
            *(off(narrow, wanted), off(bfloat16_step(weights, 3e-4), step)),
            *("products", "weights"),
        ),
        "checkpoints": (
            *(off(masks[1], masks[0]), off(masks[2], masks[0])),
            *("same masks", "new masks"),
        ),
        "compiled": (compiled["gradient"]["compiled to plain"], None, "as it is", ""),
    }


def hero(found: Mapping[str, tuple]) -> Html:
    """Plot how far each trick is off, as :func:`gaps` found it."""
    figure, ax = plt.subplots(figsize=(8.6, 3.9))
    names, floor = [*found][::-1], 1e-8
    for y, name in enumerate(names):
        for number, words, color, mark in zip(
            *(found[name][:2], found[name][2:], ("right", "wrong"), "ox"), strict=True
        ):
            if number is not None:
                x = max(number, floor)
                style = {"color": COLOURS[color], "ms": 9, "mew": 2.5}
                ax.plot(x, y, mark, **style)
                high = 10 if mark == "o" else -18
                at = {"xytext": (0, high), "textcoords": "offset points"}
                ax.annotate(words, (x, y), ha=_side(x), color=COLOURS[color], **at)
    ax.set_xscale("log")
    ax.set_xlim(floor / 2, 3)
    ax.set_ylim(-0.5, len(names) - 0.2)
    ax.set_yticks(range(len(names)), names)
    ticks = [floor, 1e-6, 1e-4, 1e-2, 1]
    ax.set_xticks(ticks, ["≈ 0", "0.000001", "0.0001", "0.01", "1"])
    ax.set_xlabel("relative error of the step (1: as large as the step)")
    said = [
        f"{name}: {a:.1g} ({right})" + ("" if b is None else f", {b:.2g} ({wrong})")
        for name, (a, b, right, wrong) in found.items()
    ]
    return show(
        figure,
        title="Done right, a trick hardly changes the step; nearly right, it does",
        alt=f"How far a step is off with five tricks. {'; '.join(said)}.",
        caption="How far a step is from that of plain training, relative to its "
        "length (0: at most 1e-8), with the model and rows of section 18.2. It's SGD's "
        "step; for bfloat16 weights, Adam's at a rate of 0.0003. Green: right. Red: a "
        "slip; what three of them cost in training, their sections say.",
    )


def _side(x: float) -> str:
    return "left" if x < 1e-6 else "right" if x > 0.3 else "center"


# ---- a batch in pieces -------------------------------------------------------------


def token_weights(lengths: Sequence[int], weights: Sequence[float], size: int) -> Html:
    """Draw rows of tokens, ``size`` rows a piece, and what one token of each counts."""
    right, high = 1 / sum(lengths), 25
    gaps = (len(lengths) - 1) // size
    wide = min(22.0, 244 / max(lengths))
    drawing = Drawing(350, 24 + high * len(lengths) + 8 * gaps)
    drawing.text(348, 13, "a token counts", anchor="end", size=NOTE)
    for i, (length, weight) in enumerate(zip(lengths, weights, strict=True)):
        top, ratio = 20 + high * i + 8 * (i // size), weight / right
        color = "this" if abs(ratio - 1) < 1e-9 else "wrong"
        drawing.frame(
            *(2, top, wide * length, high - 5),
            shade=min(0.9, 0.25 * ratio),
            color=color,
        )
        drawing.text(348, top + 15, f"× {ratio:.2f}", anchor="end", bold=ratio != 1)
    for group in range(gaps):
        y = 20 + high * size * (group + 1) + 8 * group + 1.5
        drawing.line((2, y), (290, y), width=1)
    said = [
        f"{length} tokens, each × {weight / right:.2f}"
        for length, weight in zip(lengths, weights, strict=True)
    ]
    return drawing.figure(
        alt=f"Rows in micro-batches of {size}. {'; '.join(said)}.",
        caption="The wider a row, the more tokens. On the right: what each of them "
        f"counts, as a multiple of 1/{sum(lengths)}. A line ends a micro-batch.",
    )


def check_pieces(parts: Sequence[Batch], whole: Batch) -> None:
    """Prove that pieces weighted by tokens are the batch, in ``fit`` as well."""
    model = large_model().double()
    wanted = gradient_of(model, (whole, 1.0))
    shares = [tokens_in(part) / tokens_in(whole) for part in parts]
    for name, some in {"one row each": parts, "two": joined(parts, 2)}.items():
        shares = [tokens_in(part) / tokens_in(whole) for part in some]
        found = gradient_of(model, *zip(some, shares, strict=True))
        check_close(f"{name}: gradient of pieces = of the batch", found, wanted, 1e-12)
    before = _weights(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    options = {"accumulate": len(parts), "weight": tokens_in}
    fit(model, next_token_loss, parts, optimizer, **options)
    after = before - wanted
    check_close("fit's step = the batch's", _weights(model), after, 1e-12)


def joined(parts: Sequence[Batch], size: int) -> list[Batch]:
    """Return rows as batches of ``size`` of them, padded; ``parts`` are rows alone."""
    pad = nn.utils.rnn.pad_sequence
    return [
        (
            pad([tokens[0] for tokens, _ in some], batch_first=True),
            pad([targets[0] for _, targets in some], True, -100),
        )
        for some in (parts[i : i + size] for i in range(0, len(parts), size))
    ]


def _weights(model: nn.Module) -> Float[Tensor, "n"]:
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


# ---- half the bits -----------------------------------------------------------------


def bits_of(number: float, kind: torch.dtype) -> tuple[str, str, str]:
    """Return sign, exponent and fraction of a ``number`` as a format writes them."""
    wide, exponent = {
        torch.float32: (torch.int32, 8),
        torch.float16: (torch.int16, 5),
        torch.bfloat16: (torch.int16, 8),
    }[kind]
    one = torch.tensor(number, dtype=torch.float64).to(kind)
    size = one.element_size() * 8
    text = f"{one.view(wide).item() % (1 << size):0{size}b}"
    return text[0], text[1 : 1 + exponent], text[1 + exponent :]


def number_picture(number: float, said: str = "") -> Html:
    """Draw what three formats keep of a ``number``, ``said`` in the caption."""
    drawing, said = Drawing(350, 158), said or f"{number:g}"
    for row, (name, kind) in enumerate(HALVES.items()):
        top, x = 20 + 50 * row, 2.0
        kept = torch.tensor(number, dtype=torch.float64).to(kind).double().item()
        drawing.text(2, top - 4, name, anchor="start", bold=True)
        lost = "" if kept in (number, 0.0) or abs(kept) == float("inf") else "≈ "
        drawing.text(348, top - 4, lost + f"{kept:.9g}", anchor="end", code=True)
        for bits, color in zip(
            bits_of(number, kind), ("other", "minus", "this"), strict=True
        ):
            width = 9.8 * len(bits)
            drawing.frame(x, top + 2, width + 2, 21, shade=0.2, color=color)
            places = [x + 6 + 9.8 * i for i in range(len(bits))]
            drawing.text(places, top + 17, bits, code=True, size=NOTE)
            x += width + 5
    kept = [
        f"{name} {torch.tensor(number, dtype=torch.float64).to(kind).item():.9g}"
        for name, kind in HALVES.items()
    ]
    return drawing.figure(
        alt=f"{said} in three formats: {', '.join(kept)}.",
        caption=f"What is kept of {said}. Grey: the sign. Orange: the exponent, which "
        "says how large. Blue: the fraction, which says how exactly.",
    )


def logit_gradients(vocabulary: int, tokens: int, rows: int = 64) -> Float[Tensor, "n"]:
    """Return how large a loss's gradient is at each logit; word 0 is right.

    Args:
        vocabulary: number v of words.
        tokens: in the batch, over which the loss is averaged.
        rows: how many of these tokens are drawn; logits have deviation 1.
    """
    draws = torch.Generator().manual_seed(0)
    p = torch.randn(rows, vocabulary, generator=draws).softmax(dim=-1)
    p[:, 0] -= 1
    return p.abs().flatten() / tokens


def scaling_figure(gradients: Float[Tensor, "n"], scale: float) -> Html:
    """Plot sizes of gradients before and after scaling, and where float16 ends."""
    figure, ax = plt.subplots(figsize=(8.6, 3.2))
    info, lost, norms = torch.finfo(torch.float16), [], []
    small = info.tiny * info.eps
    for factor, color, name, side in (
        (1.0, OTHER, "unscaled", "right"),
        (scale, THIS, "scaled", "center"),
    ):
        sizes = factor * gradients
        gone = sizes.half() == 0
        lost.append(gone.double().mean().item())
        norms.append((sizes[gone].norm() / sizes.norm()).item())
        shown = sizes.log10().histc(220, -12, 8) / len(sizes)
        edges = torch.linspace(-12, 8, 221)[:-1]
        ax.fill_between(edges, shown, color=color, alpha=0.5, step="post", lw=0)
        peak = shown.argmax()
        at = {"xytext": (0, 4), "textcoords": "offset points", "ha": side}
        ax.annotate(name, (edges[peak], shown[peak]), color=color, **at)
    high = ax.get_ylim()[1]
    for end, words in ((small, "smallest"), (info.max, "largest")):
        x = torch.tensor(end).log10().item()
        ax.axvline(x, color=COLOURS["wrong"], ls="--", lw=1.5)
        ax.text(x + 0.15, high * 1.2, words, fontsize=12)
    ax.set_xlim(-14, 9)
    ax.set_ylim(0, high * 1.35)
    ax.set_yticks([])
    ax.set_xticks(range(-12, 9, 4), [f"$10^{{{n}}}$" for n in range(-12, 9, 4)])
    ax.set_xlabel("size of a gradient")
    return show(
        figure,
        title=f"float16 loses {lost[0]:.1%} of these numbers, "
        f"{norms[0]:.1%} of the gradient; scaled, {lost[1]:.0%}",
        alt="Two humps of gradients on a line of sizes. As they are, they lie below "
        "float16's smallest number; multiplied, they lie between it and the largest.",
        caption="A loss's gradient at GPT-2's logits when training begins, for random "
        "logits. Red: float16's smallest and largest numbers. In the gradient's norm, "
        "right words are nearly everything.",
    )


def clipping_table(record: Record) -> Html:
    """Show what two orders learn, by optimiser."""
    groups = grouped(record["rows"], "rule", "unscaled first")
    rows = []
    for rule in record["rates"]:
        good, bad = (
            [row["bits"] for row in groups[rule, first]] for first in (True, False)
        )
        rows.append((rule, dots(good, ".3f"), dots(bad, ".3f")))
    small = [row["bits"] for row in record["small epsilon"]]
    rows.append(("AdamW, ε / 65,536", "", dots(small, ".3f")))
    start = mean(record["untrained"])
    return show_table(
        ("optimiser", "unscale, then clip", "clip, then unscale"),
        rows,
        caption=f"Bits per character on new text, three seeds, "
        f"{record['recipe']['steps']} steps; untrained {start:.1f}.",
    )


# ---- the update that disappears ----------------------------------------------------


def paths(
    weight: float, step: float, steps: int = 100, seed: int = 0
) -> dict[str, Tensor]:
    """Return a weight that loses ``step`` again and again, kept in four ways."""
    draws = torch.Generator().manual_seed(seed)
    wide = weight - step * torch.arange(steps + 1)
    nearest, chance = [torch.tensor(weight)], [torch.tensor(weight)]
    for _ in range(steps):
        nearest.append((nearest[-1] - step).bfloat16().float())
        chance.append(stochastic_bfloat16(chance[-1] - step, draws).float())
    return {
        "float32": wide,
        "bfloat16": torch.stack(nearest),
        "bfloat16 + master": wide.bfloat16().float(),
        "bfloat16, at random": torch.stack(chance),
    }


def stuck_figure(found: Mapping[str, Tensor]) -> Html:
    """Plot ``paths``."""
    colors = (OTHER, COLOURS["wrong"], THIS, COLOURS["value"])
    ax = plot_lines(
        {name: dict(enumerate(path)) for name, path in found.items()},
        colors=dict(zip(found, colors, strict=True)),
        xlabel="step",
        ylabel="the weight",
    )
    for line in ax.lines:
        line.set_drawstyle("steps-post")
    ax.lines[-1].set_linestyle(":")
    return show(
        ax.figure,
        title="One weight stands still, although every step asks it to move",
        caption="Red: each step is rounded away. Grey: a float32 copy moves; blue: the "
        "bfloat16 weight follows it in stairs. Dotted: rounded up or down at random.",
    )


HALVES_SAID = {
    "float32": "float32",
    "autocast": "mixed: autocast to bfloat16",
    "bfloat16": "bfloat16 alone",
    "stochastic": "bfloat16, stochastic rounding",
    "master": "bfloat16, with master weights",
}


def halves_table(record: Record) -> Html:
    """Show what five ways learn, at two rates."""
    groups = grouped(record["rows"], "way", "rate")
    rates = sorted({row["rate"] for row in record["rows"]}, reverse=True)
    rows = [
        (
            HALVES_SAID[way],
            *(dots((r["bits"] for r in groups[way, rate]), ".2f") for rate in rates),
        )
        for way in HALVES_SAID
    ]
    return show_table(
        ("weights and products", *(f"rate {rate:g}" for rate in rates)),
        rows,
        caption=f"Bits per character on new text, three seeds, "
        f"{record['recipe']['steps']} steps of AdamW. In the last two rows, Adam's "
        "averages are in float32.",
    )


def worse(record: Record, way: str, than: str, **among: Any) -> list[float]:
    """Return by how many bits one way is worse than another, seed by seed.

    Of the record's "rows", those that have all that ``among`` names.
    """
    rows = [r for r in record["rows"] if among.items() <= r.items()]
    bits = {(r["way"], r["seed"]): r["bits"] for r in rows}
    seeds = sorted({seed for _, seed in bits})
    return [bits[way, seed] - bits[than, seed] for seed in seeds]


def _as_shown(record: Record, digits: int) -> dict[tuple, list[float]]:
    """Return the bits of a record's "rows" as a table rounds them, by way and rate."""
    groups = grouped(record["rows"], "way", "rate")
    return {
        key: [round(row["bits"], digits) for row in rows]
        for key, rows in groups.items()
    }


def clipping_said(record: Record) -> str:
    """Say what the order costs by optimiser; ``record`` as in the table."""
    groups = grouped(record["rows"], "rule", "unscaled first")
    gaps = [
        round(bad["bits"], 3) - round(good["bits"], 3)
        for good, bad in zip(groups["AdamW", True], groups["AdamW", False], strict=True)
    ]
    behind = [
        row["bits"] - good["bits"]
        for good, row in zip(
            groups["AdamW", True], record["small epsilon"], strict=True
        )
    ]
    assert max(behind) < 0, behind
    share = min(r["bits"] for r in groups["SGD", False])
    steps = record["recipe"]["steps"]
    return (
        f"In a recorded run of {steps} steps, clipping first keeps SGD at {share:.1f} "
        "bits per character or more, about where it began. Most people use Adam, which "
        "divides a gradient by its own size, so that a constant factor cancels. There, "
        f"the wrong order costs {span(gaps, '.3f')} bits, which is little enough to "
        "pass for bad luck. The reason is Adam's ε, which nobody scaled: once ε is "
        "divided by 65,536, too, nothing is lost."
    )


def halves_said(record: Record) -> str:
    """Say what bfloat16 alone loses; ``record`` as in the table."""
    bits = _as_shown(record, 2)

    def behind(way: str, rate: float) -> list[float]:
        pairs = zip(bits[way, rate], bits["float32", rate], strict=True)
        return [one - other for one, other in pairs]

    others = [
        abs(gap)
        for way in ("autocast", "stochastic", "master")
        for rate in (3e-3, 3e-4)
        for gap in behind(way, rate)
    ]
    return (
        "With bfloat16 alone, a model ends "
        f"{span(behind('bfloat16', 3e-3), '.2f')} bits per character behind float32 "
        f"at a rate of {3e-3:g}, and {span(behind('bfloat16', 3e-4), '.2f')} at "
        f"{3e-4:g}, where more steps are rounded away. Autocast, master weights and "
        f"stochastic rounding stay within {max(others):.2f} bits of float32."
    )


def compile_said(record: Record) -> str:
    """Say what compiling changes, by the ``record`` of ``compile``."""
    share = record["gradient"]["numbers that differ"]
    return (
        f"Nearly. {share:.0%} of the gradient's numbers differ, but only in their last "
        "digits, because sums are taken in another order."
    )


# ---- compute it twice, compile it --------------------------------------------------


def stored_or_not(dropout: float = 0.1) -> dict[str, GPT]:
    """Return the same model in the three ways of ``STORING``, with ``dropout``."""
    models = {way: large_model(dropout=dropout) for way in STORING}
    for way in STORING[1:]:
        with_checkpoints(models[way], preserve=way == "checkpointed")
    return models


def masks_picture(dropout: nn.Module, seed: int = 0) -> Html:
    """Draw what a dropout layer lets through, and a second time from two states."""
    x = torch.tensor([3.0, 1, 4, 1, 5, 9, 2, 6])
    torch.manual_seed(seed)
    state = torch.get_rng_state()
    forward, new = dropout(x), dropout(x)
    torch.set_rng_state(state)
    same = dropout(x)
    return chain(
        Matrix(forward, "forward"),
        Matrix(same, "again, from the stored state", wrong=(same != forward)[None]),
        Matrix(new, "again, without it", wrong=(new != forward)[None]),
        caption="A dropout layer lets half of the numbers through, doubled. Red: not "
        "what the loss was computed from.",
    )


def again_table(record: Record) -> Html:
    """Show what is learned with the same masks and with new ones."""
    groups = grouped(record["rows"], "way")
    said = {
        "stored": "stored",
        "checkpointed": "checkpointed",
        "drawn again": "checkpointed, new masks on the way back",
    }
    rows = [
        (said[way], dots((r["bits"] for r in groups[(way,)]), ".3f")) for way in STORING
    ]
    return show_table(
        ("blocks", "bits per character"),
        rows,
        # given: 0.1
        caption=f"On new text, three seeds, {record['recipe']['steps']} steps with a "
        "dropout of 0.1.",
    )


def again_said(record: Record) -> str:
    """Say what new masks cost; ``record`` as in the table."""
    gaps = worse(record, "drawn again", "stored")
    seeds, steps = len(record["same"]), record["recipe"]["steps"]
    same = sum(record["same"])
    return (
        f"In training, new masks cost {min(gaps):.2f} to {max(gaps):.2f} bits per "
        f"character ({seeds} seeds, {steps} steps). With the same masks, {same} of "
        f"{seeds} runs had exactly the losses of the stored model, at every step."
    )


# ---- proofs ------------------------------------------------------------------------


def check_float16(batch: Batch) -> None:
    """Prove that a small model's gradient needs no scale in float16."""
    model = large_model()
    wanted = gradient_of(model, (batch, 1.0))
    plain, scaled = (
        off(gradient_of(model, (batch, n), precision=torch.float16) / n, wanted)
        for n in (1.0, 65536.0)
    )
    assert plain < 1.1 * scaled < 0.1, f"off by {plain:.3f}, scaled by {scaled:.3f}"
    print("✓ float16 products: as near to float32's gradient without a scale as with")


def check_scaling(batch: Batch) -> None:
    """Prove what scaling and clipping do to a gradient."""
    model = large_model()
    wanted = gradient_of(model, (batch, 1.0))
    scaled = gradient_of(model, (batch, 65536.0))
    check_close("scaled by a power of two, then back: the same", scaled / 65536, wanted)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for first in (True, False):
        scaler = torch.amp.GradScaler("cpu")
        model.zero_grad()
        scaler.scale(next_token_loss(model, batch)).backward()
        if first:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not first:
            scaler.unscale_(optimizer)
        share = 1.0 if first else 1 / 65536
        clipped = share * wanted / wanted.norm()
        words = "unscaled, then clipped: norm 1" if first else "clipped first: 1/65,536"
        check_close(words, gradient(model), clipped, 1e-6 * share)


def check_rounding() -> None:
    """Prove that steps below half a spacing are lost, and random rounding is fair."""
    one = torch.tensor(1.0, dtype=torch.bfloat16)
    assert (one - 2**-9).item() == 1 and (one - 2**-9 - 2**-11).item() == 1
    assert (one.float() - 2**-8).bfloat16().item() == 1 - 2**-8
    assert (one * 0.999).item() == 1  # so an average with β = 0.999 never shrinks
    draws = torch.Generator().manual_seed(0)
    x = torch.full((100_000,), 1.001)
    rounded = stochastic_bfloat16(x, draws).float()
    assert set(rounded.tolist()) == {1.0, 1 + 2**-7}
    # the mean of so many has a deviation of 8e-6
    check_close("rounded at random, the mean is right", rounded.mean(), x[0], 1e-4)


def check_checkpoints(batch: Batch) -> None:
    """Prove that checkpoints with the same masks change nothing."""
    models = stored_or_not()
    found = {way: gradient_of(one, (batch, 1.0)) for way, one in models.items()}
    check_close(
        "gradient with checkpoints = stored, dropout and all",
        *(found["checkpointed"], found["stored"], 1e-6),
    )
    assert off(found["drawn again"], found["stored"]) > 0.01
    models = stored_or_not(dropout=0.0)
    found = {way: gradient_of(one, (batch, 1.0)) for way, one in models.items()}
    check_close(
        "without dropout, there is nothing to draw",
        *(found["drawn again"], found["stored"], 1e-6),
    )


def check_pitfalls(parts: Sequence[Batch], whole: Batch) -> None:
    """Prove what the pitfalls say of sums that nobody divides."""
    model = large_model().double()
    means = gradient_of(model, *((part, 1 / len(parts)) for part in parts))
    sums = gradient_of(model, *((part, 1.0) for part in parts))
    check_close("undivided: times the pieces", sums, len(parts) * means, 1e-12)
    with torch.autocast("cpu", torch.float16):
        scores = torch.full((2, 1), 300.0) @ torch.ones(1, 2)
        assert scores.dtype == torch.float16 and (scores * scores).isinf().all()
        try:
            scores.masked_fill(torch.eye(2).bool(), -1e9)
        except RuntimeError as refused:
            print(f"✓ a mask by hand, under autocast: {refused}")
    last = gradient_of(model, (parts[-1], 1.0))
    assert off(last, gradient_of(model, (whole, 1.0))) > 0.1  # zero_grad in between
    steps = []
    for factor in (1.0, float(len(parts))):
        one = torch.ones(3, requires_grad=True)
        one.grad = factor * torch.tensor([1.0, -2.0, 0.5])
        torch.optim.Adam([one], lr=0.1).step()
        steps.append(one)
    check_close("Adam's step: the same with any factor, but for ε", *steps, 1e-6)


def check_weights(weights: Any) -> None:
    """Prove what the page's ``weights`` gives a token, against gradients."""
    lengths = [3, 1, 4, 2]
    for rows in (1, 2, 4):
        for by_tokens in (False, True):
            logits = torch.zeros(sum(lengths), dtype=torch.float64, requires_grad=True)
            pieces = logits.split(
                [sum(lengths[i : i + rows]) for i in range(0, 4, rows)]
            )
            shares = [len(p) / len(logits) if by_tokens else rows / 4 for p in pieces]
            sum(s * p.mean() for s, p in zip(shares, pieces, strict=True)).backward()
            found = torch.tensor(weights(lengths, rows, by_tokens))
            wide = found.double().repeat_interleave(torch.tensor(lengths))
            torch.testing.assert_close(wide, logits.grad, rtol=1e-6, atol=0)
    print("✓ weights = gradients of the mean of means, for 6 batches, to 1e-6")
