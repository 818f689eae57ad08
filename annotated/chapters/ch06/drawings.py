"""Chapter 06, encoder and decoder: its drawings, and its longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.batches import Vocabulary, make_batch
from annotated.chapters.ch06.ladder import (
    LADDER_PARTS,
    Rung,
    ladder_pairs,
    translations,
)
from annotated.chapters.ch06.ladder_records import by_parts
from annotated.masks import causal_mask, length_mask
from annotated.metrics import edit_distance
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Choice, Grid, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.plots import OTHER, THIS, plot_lines
from annotated.page.svg import COLOURS
from annotated.recipes.parts import take_away
from annotated.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Residual,
    Transformer,
    TransformerConfig,
)


def small(norm: str, layers: int = 1, **changes: Any) -> Transformer:
    """Return a Transformer that is small enough to be compared number by number."""
    settings = {"d_model": 32, "heads": 4, "d_ff": 128, "dropout": 0.0, "max_len": 128}
    settings |= {"norm": norm, "layers": layers} | changes
    return Transformer(TransformerConfig(20, 20, **settings))


def redrawn(module: nn.Module) -> nn.Module:
    """Return a module whose norms can't be mistaken for each other, or for none."""
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias)
    return module


def padded() -> Tensor:
    """Return the mask of two sources, of five symbols and of three."""
    return length_mask(torch.tensor([5, 3]), 5)


Steps = Mapping[str, Callable[[Tensor, Tensor], Tensor]]


# ---- proofs: each is given the function that the page defines -----------------------


def check_stream(gradients: Callable) -> None:
    """Prove that a stream is a sum, and what the addition does to ``gradients``."""
    start = x = torch.randn(1, 10, 32)
    additions = []
    for layer in [nn.Linear(32, 32) for _ in range(6)]:
        additions.append(layer(x).tanh())
        x = x + additions[-1]
    check_close("stream = start + all additions", x, start + sum(additions), 1e-5)
    for size in (0.3, 0.5, 1, 2, 4):
        plain, added = (gradients(residual, size)[0] for residual in (False, True))
        said = f"weight size {size}: {plain:.0e} arrives without x +, {added:.0e} with"
        assert added > 1 and (size >= 1 or plain < 1e-3), said
    assert plain > added, said
    print(f"✓ {said}")


def check_decode(*rungs: Callable) -> None:
    """Prove that the first ``rungs`` of a notebook are the decoders of the ladder's."""
    for parts, decode in zip(((), ("residual",)), rungs, strict=True):
        missing = [part for part in LADDER_PARTS if part not in parts]
        check_same(
            f"{decode.__name__} = the decoder of its rung",
            lambda decoder, x, memory: decoder(x, memory, None, padded()),
            lambda decoder, x, memory, f=decode: f(decoder.layers, x, memory, padded()),
            take_away(small("pre", layers=2), *missing).decoder,
            *(torch.randn(2, 4, 32), torch.randn(2, 5, 32)),
        )


def check_feed_forward(feed_forward: Callable) -> None:
    """Prove that ``feed_forward`` is the module, one position at a time."""

    def by_lines(network: nn.Module, x: Tensor) -> Tensor:
        return feed_forward(x, *network.parameters())

    def by_loops(network: nn.Module, x: Tensor) -> Tensor:
        return torch.stack([by_lines(network, word) for word in x])

    given = FeedForward(d_model=8, d_ff=32), torch.randn(5, 8)
    check_same("equals FeedForward", FeedForward.forward, by_lines, *given)
    check_same("one position at a time", FeedForward.forward, by_loops, *given)


def check_encode(encode: Callable) -> None:
    """Prove that ``encode`` is the encoder of its rung, which has no norms."""
    mask = padded()
    check_same(
        "the encoder of this rung is encode",
        lambda encoder, x: encoder(x, mask),
        lambda encoder, x: encode(encoder.layers, x, mask),
        take_away(small("pre", layers=2), "norm").encoder,
        torch.randn(2, 5, 32),
    )


def check_norms(normalise: Callable) -> None:
    """Prove that ``normalise`` is the norm of a residual, in both orders."""

    def by_hand(norm: nn.Module, x: Tensor) -> Tensor:
        return normalise(x, *norm.parameters())

    def add_by_hand(residual: Residual, x: Tensor, f: Callable) -> Tensor:
        if residual.norm_order == "pre":
            return x + f(by_hand(residual.norm, x))
        return by_hand(residual.norm, x + f(x))

    x, f = torch.randn(2, 5, 8), nn.Linear(8, 8)  # some sublayer
    for order in ("pre", "post"):
        given = redrawn(Residual(8, norm=order)), x, f
        check_same(f"Residual, {order}-norm", Residual.forward, add_by_hand, *given)


def check_encoder_layer(encoder_layer: Callable) -> None:
    """Prove that ``encoder_layer`` is the module, and that padding is hidden."""
    layer = redrawn(EncoderLayer(small("pre").config))
    x, mask = torch.randn(2, 5, 32), padded()
    check_same("encoder_layer", EncoderLayer.forward, encoder_layer, layer, x, mask)
    y = encoder_layer(layer, x, mask)
    check_close(
        "a padded batch = one sentence at a time, without a mask",
        [y[0], y[1, :3]],
        [layer(x[:1])[0], layer(x[1:, :3])[0]],
        1e-5,
    )


def check_decoder_layer(decoder_layer: Callable) -> None:
    """Prove that ``decoder_layer`` is the module, and what its masks hide."""
    layer = redrawn(DecoderLayer(small("pre").config))
    x, memory = torch.randn(2, 4, 32), torch.randn(2, 5, 32)
    masks = causal_mask(4), padded()
    y = decoder_layer(layer, x, memory, *masks)
    changed = torch.cat([x[:, :3], torch.randn(2, 1, 32)], dim=1)  # the last word
    moved = decoder_layer(layer, changed, memory, *masks)[:, :3] - y[:, :3]
    assert moved.abs().max() < 1e-5, "decoder_layer sees the future: is it causal?"
    given = layer, x, memory, *masks
    check_same("decoder_layer", DecoderLayer.forward, decoder_layer, *given)
    alone = [
        layer(x[i : i + 1, :j], memory[i : i + 1, :length])[0, -1]
        for i, length in enumerate((5, 3))
        for j in range(1, 5)
    ]
    claim = "its masks = word by word, without any mask"
    check_close(claim, y.flatten(0, 1), torch.stack(alone), 1e-5)


@torch.no_grad()
def check_write(write: Callable, rung: Rung) -> None:
    """Prove that ``write`` writes what ``translations`` gives."""
    for note in ("7 mars 2024", "1936. márc. 20."):
        ids = make_batch([(note, "")], rung.source, rung.target).source
        text = write(rung.model.eval(), ids, Vocabulary.start, Vocabulary.end)
        written, right = "".join(rung.target.decode(text)), translations(rung, [note])
        assert written == right[0], f"{note}: write gives {written!r}, not {right[0]!r}"
    print("✓ write gives what was printed above")


def check_whole(reference: Callable) -> None:
    """Prove that the model equals ``reference``, PyTorch's, in a padded batch."""
    ids = [torch.randint(1, 20, (3, size)) for size in (7, 6)]
    ids[0][1, 4:], ids[0][2, 6:], ids[1][0, 3:] = 0, 0, 0  # padding
    for norm in ("pre", "post"):
        for tied in (True, False):
            model = redrawn(small(norm, layers=2, tied=tied)).double()
            name = f"nn.Transformer, {norm}-norm, {'tied' if tied else 'untied'}"
            check_same(name, model, reference(model), *ids, tolerance=1e-9)


def check_reach(reach: Callable) -> None:
    """Prove that no logit moves when a later symbol changes, in both orders."""
    for norm in ("pre", "post"):
        moved = reach(small(norm, 2), *torch.randint(1, 20, (2, 3, 6)))
        assert not moved.tril(-1).any(), f"{norm}-norm: a logit sees the future"
        assert moved.triu().sum() == 21, f"{norm}-norm: a logit misses the past"
    print("✓ pre-norm and post-norm: no logit sees the future, each sees all before")


@torch.no_grad()
def padding_moves() -> None:
    """Print how far padding moves the logits, with the mask and without it."""
    model = small("post", 2)
    source, target = torch.randint(2, 20, (1, 5)), torch.randint(2, 20, (1, 4))
    before = model(source, target)
    for extra in (1, 8, 64):
        memory, mask = model.encode(F.pad(source, (0, extra)))
        moved = [model.decode(target, memory, m) - before for m in (mask, None)]
        hidden, seen = ((x.norm() / before.norm()).item() for x in moved)
        said = f"{hidden:.1%} of their size with the mask, {seen:.1%} without"
        assert hidden < 1e-4 and seen > 1e-3, said
        print(f"measured: {extra} symbols of padding move the logits by {said}")


# ---- drawings ------------------------------------------------------------------------

ENCODER = (["self-attention", "mask: padding"],)
DECODER = (
    ["self-attention", "mask: causal,", "and padding"],
    ["cross-attention", "mask: padding", "of the source"],
)


def architecture() -> Html:
    """Draw the whole model, encoder beside decoder."""
    drawing = Drawing(356, 722)
    for left, stream, name, text, letter, attentions in (
        (2, 14, "encoder", "7 mars 2024", "s", ENCODER),
        (188, 342, "decoder", "▷March␣7,␣", "t", DECODER),
    ):
        middle, outwards = left + 83, 1 if stream > left + 83 else -1
        boxes = middle - 9 * outwards
        drawing.text(middle, 14, name, bold=True)
        drawing.text(middle, 34, text, code=True)
        drawing.arrow((middle, 40), (middle, 62))
        drawing.text(middle + 10, 56, f"(b, {letter})", anchor="start")
        y = drawing.box(middle, 62, 166, "embed + position")
        side = "end" if outwards > 0 else "start"
        drawing.text(stream - 8 * outwards, 107, f"(b, {letter}, d)", anchor=side)
        drawing.text(middle, 132, "layer 1")
        top = 138
        for box in (*attentions, ["network"]):
            top = drawing.branch(stream, boxes, top, 138, ["norm"], box) + 13
            if box[0] == "cross-attention":
                look = top - 54
        drawing.frame(left, 115, 166, top - 115, dashed=True)
        last = top + 16 + 44
        for number, at in ((2, top + 16), (6, last)):
            drawing.frame(left, at, 166, 26, dashed=True)
            drawing.text(middle, at + 17, f"layer {number}, the same")
        drawing.text(middle, top + 57, "⋮", bold=True)
        for begin, end in ((y, top + 16), (top + 42, last)):
            drawing.line((stream, begin), (stream, end), width=3)
        drawing.arrow((stream, last + 26), (stream, last + 42), width=3)
        end = drawing.box(middle, last + 42, 166, "norm")
        if letter == "s":
            memory = end - 13
            drawing.text(left, end + 18, "memory (b, s, d)", anchor="start")
    # the memory goes to the cross-attention of every layer
    drawing.line((168, memory), (178, memory), width=3)
    drawing.line((178, look), (178, last + 13), width=3)
    for y, x in ((look, 193), (top + 29, 188), (last + 13, 188)):
        drawing.arrow((178, y), (x, y), width=3)
    drawing.arrow((middle, end), (middle, end + 18), width=3)
    out = drawing.box(middle, end + 18, 166, "output layer")
    drawing.arrow((middle, out), (middle, out + 22))
    drawing.text(middle + 10, out + 15, "(b, t, v)", anchor="start")
    drawing.text(middle, out + 36, "March␣7,␣2", code=True)
    return drawing.figure(
        alt="Two columns, read downwards. The encoder embeds ids (b, s) and adds "
        "positions: (b, s, d), a stream drawn as a thick line past all layers. In a "
        "layer, self-attention and then a network read it through a norm, and are "
        "added to it. A last norm gives the memory, (b, s, d). Each layer of the "
        "decoder has causal self-attention, cross-attention, to which an arrow leads "
        "from the memory, and a network. A last norm and an output layer give logits "
        "(b, t, v).",
        caption="Thick: the residual stream, which each sublayer reads through a norm "
        "and adds to (⊕). b sentences, s and t symbols, d width, v vocabulary. (The "
        "paper has its norms elsewhere: 6.5.)",
    )


def one_stack() -> Html:
    """Draw the two stacks, and below them a decoder alone, which reads one text."""
    drawing = Drawing(350, 296)
    own, cross = "causal self-attention", "cross-attention"
    for middle, top, text, *lines in (
        (72, 14, "7 mars 2024", "encoder", "self-attention", "network"),
        (276, 14, "▷March␣7,␣", "decoder", own, cross, "network"),
        (155, 182, "Translate:␣7␣mars␣2024→", "decoder alone", own, "network"),
    ):
        drawing.text(middle, top, text, code=True)
        drawing.arrow((middle, top + 6), (middle, top + 24))
        end = drawing.box(middle, top + 24, 140, *lines)
        if own in lines:
            drawing.arrow((middle, end), (middle, end + 16))
            drawing.text(middle, end + 30, "2", code=True)
    drawing.arrow((142, 84), (206, 84), width=3)
    drawing.text(174, 76, "memory", size=NOTE)
    drawing.frame(54, 168, 202, 20, shade=0.15)  # around Translate: …→
    drawing.text(49, 182, "prompt", anchor="end", size=NOTE)
    drawing.text(264, 182, "March␣7,␣", anchor="start", code=True)
    return drawing.figure(
        alt="Above, two stacks: an encoder reads the note; its memory goes to the "
        "cross-attention of a decoder, which has the date so far and writes 2. Below, "
        "a decoder alone, without cross-attention, has both in one line, Translate: 7 "
        "mars 2024 → March 7, and writes 2.",
        caption="Above, the stacks of this chapter. Below, one stack and one stream: "
        "the note is the beginning of the text that goes on.",
    )


def norm_orders() -> Html:
    """Draw pre-norm beside post-norm."""
    drawing = Drawing(350, 226)
    for left, title, formula, boxes in (
        (0, "pre-norm", "x + f(norm(x))", (["norm"], ["sublayer f"])),
        (180, "post-norm (the paper)", "norm(x + f(x))", (["sublayer f"],)),
    ):
        stream, middle = left + 34, left + 116
        drawing.text(left + 85, 14, title, bold=True)
        drawing.text(stream + 8, 36, "x", anchor="start", code=True)
        plus = drawing.branch(stream, middle, 46, 84, *boxes)
        drawing.line((stream, 26), (stream, plus - 8), width=3)
        if len(boxes) == 1:  # the norm is still to come, in the stream
            drawing.arrow((stream, plus + 8), (stream, plus + 28), width=3)
            plus = drawing.box(stream, plus + 28, 60, "norm") - 8
        drawing.arrow((stream, plus + 8), (stream, 198), width=3)
        drawing.text(left + 85, 218, formula, code=True)
    return drawing.figure(
        alt="Left, pre-norm: the stream goes straight down; a branch goes through norm "
        "and sublayer and is added. Right, post-norm: the branch goes through the "
        "sublayer alone; then the stream itself goes through the norm.",
        caption="The thick line is the stream. In pre-norm nothing stands in its way.",
    )


# ---- plots and tables ----------------------------------------------------------------


def rms(x: Tensor) -> float:
    """Return the root mean square of all numbers."""
    return x.square().mean().sqrt().item()


def difference(x: Tensor) -> float:
    """Return the words' distance from their mean, as a share of their size."""
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item()


@torch.no_grad()
def through_layers(step: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    """Return ten random words after each of twelve untrained layers of attention.

    ``step`` makes the words after a layer of those before it and its attention.
    """
    torch.manual_seed(0)
    streams = [torch.randn(1, 10, 32)]
    for layer in small("pre", layers=12).encoder.layers:
        streams.append(step(streams[-1], layer.attention(streams[-1])))
    return streams


def collapse(steps: Steps) -> Html:
    """Plot how much the words differ, layer by layer."""
    streams = {name: through_layers(step) for name, step in steps.items()}
    apart = {name: [difference(x) for x in words] for name, words in streams.items()}
    alone, resized, added = apart.values()
    # roundings are 6e-8
    assert alone[4] < 2e-6, f"attention alone: {alone[4]:.0e} is left after 4 layers"
    assert resized[6] < 2e-6, f"size restored: {resized[6]:.0e} is left after 6 layers"
    first, second, *_ = map(rms, streams["attention alone"])
    assert resized[3] > 10 * alone[3] and (first / second) ** 2 > 5, "size is nothing"
    assert 0.02 < added[12] < 0.1, f"the text says a few percent, not {added[12]:.0%}"
    ax = plot_lines(
        {name: dict(enumerate(shares)) for name, shares in apart.items()},
        colors=dict.fromkeys([*steps][:2], OTHER),
        yscale="log",
        xlabel="layers",
        ylabel="difference between words",
    )
    return show(
        ax.figure,
        title="Attention alone makes all words equal; with x + they differ for longer",
        caption="Ten random words, fresh weights. Difference: the words' distance from "
        "their mean, as a share of their size. At 10⁻⁷ they are equal in float32.",
    )


def gradients_arriving(gradients: Callable) -> Html:
    """Plot the gradient at each layer, without ``x +`` and with it, by the weights."""
    figure, axes = plt.subplots(1, 3, figsize=(8.6, 3), sharey=True)
    for ax, (name, size) in zip(
        axes, {"small weights": 0.5, "usual": 1, "large": 4}.items(), strict=True
    ):
        lines = {
            label: dict(enumerate(gradients(residual, size)))
            for label, residual in (("without", False), ("with x +", True))
        }
        plot_lines(
            lines,
            ax,
            colors={"without": OTHER},
            title=f"{name} ({size:g})",
            xlabel="layer (0 = input)",
            ylabel="size of the gradient" if ax is axes[0] else "",
            yscale="log",
            ylim=(1e-9, 1e9),
        )
    return show(
        figure,
        title="With x +, the gradient doesn't vanish, whatever the size of the weights",
        caption="Random weights; in brackets their size, as a multiple of 1/√d.",
    )


def trained_on(further: dict, baseline: Sequence[str], here: Sequence[str]) -> Html:
    """Show what three models write for the notes: trained here, and trained on."""
    longer = [row for row in further["rows"] if row["run"] == "1500 steps"]
    rows = zip(further["notes"], baseline, here, longer[0]["written"], strict=True)
    exact = [row["exact"] for row in longer]
    caption = (
        f"Recorded: seed 0. Of 1000 unseen dates, {min(exact)} to {max(exact)} are "
    )
    head = [
        "the note",
        "attention alone",
        "the whole, 300 steps",
        "1500 steps, recorded",
    ]
    return show_table(head, rows, caption + "exact after 1500 steps (three seeds).")


UP = {"attention alone": "00000"} | {
    f"+ {part}": ("1" * n).ljust(5, "0") for n, part in enumerate(LADDER_PARTS, 1)
}
WITHOUT = {"the whole model": "11111", "without encoder, self-attention": "11010"} | {
    f"without {part}": "1" * n + "0" + "1" * (4 - n)
    for n, part in enumerate(LADDER_PARTS)
}


def ladder_losses(ladder: dict, more: dict) -> Html:
    """Plot the losses of the rungs, and of the whole model without a part or two."""
    losses = {
        bits: [row["loss"] for row in rows]
        for bits, rows in by_parts(ladder, more).items()
    }
    left_out = sorted(WITHOUT.items(), key=lambda named: sum(losses[named[1]]))
    figure, ax = plt.subplots(figsize=(7, 5.2))
    ticks = {}
    for label, bits in (*UP.items(), *left_out):
        y = len(ticks) + 0.7 * (len(ticks) >= len(UP))
        mean = f"{sum(losses[bits]) / 3:.2f}"
        if min(losses[bits]) < 1:
            ax.plot(losses[bits], [y] * 3, "o", color=THIS, alpha=0.6)
            ax.text(max(losses[bits]) * 1.08, y, mean, va="center")
        else:
            ax.text(0.8, y, f"{mean} →", va="center", ha="right")
        ticks[f"{label} {mean}"] = y, label
    ax.set(xscale="log", xlim=(0.05, 0.8))
    ax.set(xlabel="loss on unseen dates, nats per symbol")
    ax.set_xticks([0.1, 0.2, 0.4, 0.8], ["0.1", "0.2", "0.4", "0.8"])
    ax.minorticks_off()
    ax.set_yticks(*zip(*ticks.values(), strict=True))
    ax.set_ylim(y + 0.6, -0.6)
    ax.axhline(len(UP) - 0.15, color=COLOURS["muted"], linewidth=1)
    return show(
        figure,
        title="Rung by rung the mean falls; what a part is worth depends on the others",
        alt=f"Mean losses of models, on a logarithmic axis: {'; '.join(ticks)}.",
        caption="Above the line, the ladder: each model has one part more. Below it, "
        "the whole model without a part or two. Dots: three seeds; →: off the axis.",
    )


# ---- explorers -----------------------------------------------------------------------


def date_writer(writings: Mapping[str, dict]) -> Html:
    """Show dates being written, symbol by symbol, and where each symbol looks."""

    def seen(date: str, step: int) -> dict[str, Any]:
        written = writings[date]["written"]
        step = min(step, len(written))
        row = writings[date]["weights"][step - 1]
        symbol, before = written[step - 1], "".join(written[: step - 1])
        return {"symbol": symbol, "most": row.index(max(row)), "before": before}

    longest = max(len(drawn["written"]) for drawn in writings.values())
    tried = [("7 mars 2024", 7), ("1936. márc. 20.", 8), ("20 Oca 1973", 14)]
    return explorer(
        static("ch06/date_writer.js"),
        {"dates": writings},
        [
            Choice("date", "the note says", list(writings)),
            Slider("step", "writing symbol", list(range(1, longest + 1)), 6),
        ],
        label="A date being written",
        checks=[
            ({"date": date, "step": step}, seen(date, step)) for date, step in tried
        ],
        question="Move the slider one step: it writes the day. Where does it look?",
        caption="■ is the end symbol. The stronger the shade, the more of the weight.",
    )


def model_builder(ladder: dict, more: dict) -> Html:
    """Show what a model with some of the parts loses, and what it writes."""
    dates, kept = ladder["examples"], ("loss", "exact", "written")
    models = {  # of seed 0
        bits: {name: rows[0][name] for name in kept}
        for bits, rows in by_parts(ladder, more).items()
    }
    pairs = ladder_pairs(len(dates), "test", 1)
    assert [text for text, _ in pairs] == dates == more["examples"]
    answers = [answer for _, answer in pairs]

    def built(on: list[int], date: str) -> dict[str, Any]:
        model = models["".join(str(int(j in on)) for j in range(5))]
        i = dates.index(date)
        edits = edit_distance(answers[i], model["written"][i])
        return {"loss": model["loss"], "edits": edits}

    start = "12 de set. de 1928"
    tried = (([], start), ([0, 4], dates[3]), ([0, 1, 2, 3, 4], dates[0]))
    return explorer(
        static("ch06/ladder.js"),
        {
            "parts": [*ladder["parts"][:-1], "decoder's self-attention"],
            "examples": dates,
            "answers": answers,
            "models": models,
            "all": models["11111"]["loss"],
            "none": models["00000"]["loss"],
        },
        [
            Grid("parts", "switch parts on and off:", 1, 5),
            Slider("date", "unseen date", dates, start),
        ],
        label="Build a model",
        checks=[
            ({"parts": [[0, j] for j in on], "date": date}, built(on, date))
            for on, date in tried
        ],
        question="Alone, which part helps most, and which harms most? And which two "
        "parts together give most of the gain?",
        caption="32 trained models, recorded, all with seed 0. Framed: symbols that "
        "are wrong, missing (–) or too many.",
    )
