"""Chapter 06, encoder and decoder: its drawings, and its longest proofs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention as Attention
from annotated.data import Vocabulary, make_batch
from annotated.masks import causal_mask, length_mask
from annotated.page.diagrams import Drawing
from annotated.page.frames import (
    Choice,
    Grid,
    Html,
    Slider,
    explorer,
    plot_html,
    static,
)
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, name_lines
from annotated.page.svg import COLOURS
from annotated.recipes.ladder import Rung, ladder_pairs, translations
from annotated.recipes.parts import take_away
from annotated.transformer import (
    NORMS,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Residual,
    Transformer,
    TransformerConfig,
)

WORDS = ("7", "mars", "2024")


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


def count(module: nn.Module) -> int:
    """Return the number of a module's parameters."""
    return sum(p.numel() for p in module.parameters())


def padded() -> Tensor:
    """Return the mask of two sources, of five symbols and of three."""
    return length_mask(torch.tensor([5, 3]), 5)


# ---- proofs: each is given the function that the page defines -----------------------


def check_baseline(attention_alone: Callable, decoder: nn.Module) -> None:
    """Prove that the trained decoder of the first rung is ``attention_alone``."""
    memory, mask = torch.randn(2, 5, 64), padded()
    check_same(
        "the trained decoder is attention_alone",
        lambda decoder, x: decoder(x, memory, causal_mask(7), mask),
        lambda decoder, x: attention_alone(decoder.layers, x, memory, mask),
        decoder,
        torch.randn(2, 7, 64),
        tolerance=1e-4,
    )


def check_stream(gradients: Callable) -> None:
    """Prove that a stream is a sum, and what the addition does to ``gradients``."""
    start = torch.randn(1, 10, 32)
    x, additions = start, []
    for layer in [nn.Linear(32, 32) for _ in range(6)]:
        additions.append(layer(x).tanh())
        x = x + additions[-1]
    check_close("stream = start + all additions", x, start + sum(additions), 1e-5)
    for size in (0.3, 0.5, 1, 2, 4):
        plain, residual = (gradients(added, size)[0] for added in (False, True))
        assert residual > 1, (
            f"weight size {size}: with x +, only {residual:.0e} is left"
        )
        if size < 1:
            assert plain < 1e-3, f"weight size {size}: {plain:.0e} arrives without x +"
    assert plain > residual, f"weight size {size}: the gradient grows more with x +"
    print(f"✓ weight size {size}: {plain:.0e} arrives without x +, {residual:.0e} with")


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


def check_tied() -> None:
    """Prove that a tied matrix gets the sum of its three gradients."""
    tied, untied = (small("post", tied=tied) for tied in (True, False))
    untied.load_state_dict(tied.state_dict())
    tables = [untied.source_embedding, untied.target_embedding, untied.output]
    source, target = torch.randint(2, 20, (2, 2, 6))
    one, other = (model(source, target) for model in (tied, untied))
    upstream = torch.randn_like(one)
    one.backward(upstream)
    other.backward(upstream)
    assert tied.output.weight is tied.source_embedding.weight, "they aren't tied"
    check_close(
        "tied or not, the same logits; tied, the sum of three gradients",
        [one, tied.output.weight.grad],
        [other, sum(table.weight.grad for table in tables)],
        1e-4,
    )


def check_dropout() -> None:
    """Prove that dropout of a config reaches every place, and that 0 drops nothing."""
    source, target = torch.randint(1, 20, (2, 3, 6))
    for p, same in ((0.0, True), (0.3, False)):
        model = small("post", 2, dropout=p).train()
        rates = [m.dropout for m in model.modules() if isinstance(m, Attention)]
        rates += [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
        assert set(rates) == {p}, f"dropout={p}, but some places drop {set(rates)}"
        assert len(rates) == 21, f"{len(rates)} places drop, the text counts on 21"
        one, other = model(source, target), model(source, target)
        equal = torch.allclose(one, other, atol=1e-5)
        assert equal == same, f"dropout={p}: are two passes equal? {equal}"
    print(f"✓ dropout=0 drops nothing, 0.3 reaches all {len(rates)} places that drop")


def one_norm_more() -> None:
    """Measure what the last norm changes that PyTorch adds to a post-norm stack."""
    theirs = nn.Transformer(32, 4, 1, 1, batch_first=True, norm_first=False)
    final = theirs.decoder.norm
    assert isinstance(final, nn.LayerNorm), "nn.Transformer has no last norm any more"
    decoder = small("post", 2).decoder
    plain = decoder(torch.randn(3, 6, 32), torch.randn(3, 7, 32))
    more = final(plain)
    gain, upstream = decoder.layers[-1].residuals[-1].norm.weight, torch.randn(3, 6, 32)
    one, other = (
        torch.autograd.grad(output, gain, upstream, retain_graph=True)[0]
        for output in (plain, more)
    )
    nn.init.uniform_(final.weight, 0.5, 1.5)  # as if it had learned
    pairs = ((plain, more), (one, other), (plain, final(plain)))
    fresh, gradients, learned = ((x - y).abs().max().item() for x, y in pairs)
    assert fresh < 1e-3, f"in a fresh model, outputs differ by {fresh:.0e}"
    assert gradients > 0.1, f"gradients differ by {gradients:.0e} only"
    assert learned > 0.1, f"with gains that moved, outputs differ by {learned:.0e} only"
    print(
        f"measured: one norm more, fresh: outputs differ by {fresh:.0e}, gradients by "
        f"{gradients:.1f};\n  once gains have moved, outputs differ by {learned:.2f}"
    )


def check_collapse(streams: Mapping[str, Sequence[Tensor]]) -> None:
    """Print how fast the words become equal, and hold the page to what it says."""
    every = ([difference(x) for x in words] for words in streams.values())
    alone, resized, added = every
    before, after = (rms(x) for x in streams["attention alone"][:2])
    shrinks = (before / after) ** 2
    ends = streams["x + attention(x)"][0], streams["x + attention(x)"][-1]
    apart, common = ([part(x) for x in ends] for part in (spread, shared))
    print(
        f"measured: after 4 layers the words differ by {alone[4]:.0e} of their size\n"
        f"  (after layer 1, the scores in layer 2 are {shrinks:.0f} times smaller);\n"
        f"  with x + attention(x), {added[-1]:.0%} is left after {len(added) - 1} "
        f"layers: their differences\n  grow from {apart[0]:.0f} to {apart[1]:.0f}, "
        f"what they share from {common[0]:.0f} to {common[1]:.0f}"
    )
    # roundings are 6e-8
    assert alone[4] < 2e-6, f"attention alone: {alone[4]:.0e} is left after 4 layers"
    assert resized[5] < 2e-6, f"size restored: {resized[5]:.0e} is left after 5 layers"
    assert resized[3] > 10 * alone[3] and shrinks > 5, "the size makes no difference"
    assert added[4] > 0.8, f"with x +, only {added[4]:.0%} is left after 4 layers"
    assert abs(added[-1] - 0.18) < 0.01, f"the text says 18%, not {added[-1]:.0%}"
    grows = 1 < apart[1] / apart[0] < common[1] / common[0]
    assert grows, "with x +, what words share no longer grows faster than the rest"


def check_ladder(ladder: dict, more: dict) -> None:
    """Hold the page to what it says of the recorded models."""
    runs = by_parts(ladder, more)
    ups = [sum(row["loss"] for row in runs[bits]) for bits in UP.values()]
    assert ups == sorted(ups, reverse=True), "a rung isn't below the one before"
    for rows in zip(*(runs[bits] for bits in ("00000", "11111", "11101")), strict=True):
        first, last, bare = (row["loss"] for row in rows)
        assert last < first / 3 and last < bare, "the whole model isn't far below"
    exact = [runs[bits][0]["exact"] for bits in ("10001", "11111")]
    assert exact == [380, 543], f"the text says 380 and 543 exact, the record {exact}"
    best = sorted(runs, key=lambda bits: runs[bits][0]["loss"])  # of seed 0
    one, two = ([bits for bits in best if bits.count("1") == n] for n in (1, 2))
    ends = [best[0], one[0], one[-1], two[0]]
    assert ends == ["11111", "10000", "00100", "10001"], f"best and worst: {ends}"
    bare = [bits for bits in best if bits[0] == "0"]  # without the residual
    ends = [len(bare), *bare[:2]]
    assert ends == [16, "01000", "00000"], f"without the residual: {ends}"


@torch.no_grad()
def padding_moves() -> None:
    """Print how far padding moves the logits, with the mask and without it."""
    model = small("post", 2)
    source, target = torch.randint(2, 20, (1, 5)), torch.randint(2, 20, (1, 4))
    before, moved = model(source, target), {}
    for masked in (True, False):
        moved[masked] = []
        for extra in (1, 8, 64):
            memory, mask = model.encode(F.pad(source, (0, extra)))
            after = model.decode(target, memory, mask if masked else None)
            moved[masked].append(((after - before).norm() / before.norm()).item())
    assert max(moved[True]) < 1e-4, "with the mask, padding moves the logits"
    assert min(moved[False]) > 1e-3, "without the mask, padding moves nothing"
    print("1, 8 or 64 symbols of padding move the logits, in percent of their size,")
    for masked, shares in moved.items():
        said = ", ".join(f"{share:.1%}" for share in shares)
        print(f"  {'with' if masked else 'without'} the mask: by {said}")


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
        alt="Two columns, read from top to bottom. The encoder: source ids (b, s) are "
        "embedded, a position is added, (b, s, d). This stream is a thick line that "
        "runs straight down past all layers. In a layer, a branch of it goes through a "
        "norm and self-attention, with a padding mask, and is added to it; a second "
        "branch goes through a norm and a network, and is added. After six layers, a "
        "last norm gives the memory, (b, s, d). The decoder: target ids (b, t), "
        "embedded; in each of its six layers self-attention with a causal and a "
        "padding mask, cross-attention with the source's padding mask, and a network, "
        "all added to the stream. An arrow leads from the memory to the "
        "cross-attention of every layer. A last norm and an output layer give logits "
        "(b, t, v).",
        caption="The thick line is the residual stream: each sublayer reads it through "
        "a norm and adds to it (⊕). Every layer of the decoder reads the same memory. "
        "(Six layers as in the original of 2017, which is drawn upwards and has its "
        "norms elsewhere: 6.5. The models we'll train have two.) Shapes: b sentences "
        "in a batch, s and t symbols of source and target, d width, v vocabulary.",
    )


def teacher_forcing() -> Html:
    """Draw a target that goes in shifted by one."""
    given, wanted = "▷March␣7", "March␣7,"
    drawing = Drawing(350, 104)
    drawing.text(0, 25, "goes in", anchor="start")
    drawing.text(0, 89, "to predict", anchor="start")
    for i, symbols in enumerate(zip(given, wanted, strict=True)):
        left = 72 + 35 * i
        for y, symbol in zip((5, 69), symbols, strict=True):
            drawing.frame(left, y, 30, 30)
            drawing.text(left + 15, y + 20, symbol, code=True)
        drawing.arrow((left + 15, 35), (left + 15, 68))
    return drawing.figure(
        alt=f"The decoder gets {given}; below each symbol stands the one to predict, "
        f"{wanted}: the same text, shifted by one.",
        caption="Teacher forcing: the target goes in shifted by one, after the start "
        "symbol ▷. All positions learn in one pass.",
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
        "and sublayer and is added to it. Right, post-norm: the branch goes through "
        "the sublayer alone, and the stream, after the addition, goes through the "
        "norm.",
        caption="The thick line is the stream. In pre-norm nothing stands in its way; "
        "in post-norm it goes through every norm.",
    )


# ---- matrices ------------------------------------------------------------------------


def addition(x: Tensor, added: Tensor) -> Html:
    """Show what attention found, added to three words."""
    return chain(
        Matrix(x, "x", rows=WORDS, row=1, digits=1),
        "+",
        Matrix(added, "attention(x)", row=1, digits=1),
        "=",
        Matrix(x + added, "stream", row=1, digits=1),
        alt="Three words of four numbers each, plus what attention found for each of "
        "them, gives the stream. The row of mars is lit: it keeps its large second "
        "number and gets a little of everything else.",
        caption="Without the addition, only the matrix in the middle would go on: "
        "three rows that are nearly equal.",
    )


def network(x: Tensor, inner: Tensor, added: Tensor) -> Html:
    """Show a feed-forward network at three words."""
    picture = chain(
        Matrix(x, "stream", rows=WORDS, row=1, digits=1),
        "· W₁ᵀ\nReLU\n→",
        Matrix(inner, "which patterns match", row=1, digits=1),
        "· W₂ᵀ\n→",
        Matrix(added, "what they add", row=1, digits=1),
        alt="The stream of three words, four numbers each, becomes five matches for "
        "each word, many of them zero, and then four numbers again. The row of mars "
        "is lit; no other row matters for it.",
        caption="d = 4 and five inner units, fresh weights; the biases are left out of "
        "the picture. The paper goes from 512 to 2048 and back.",
    )
    return Html(  # narrower cells: thirteen columns and two signs fit the page
        "<style>.annotated-narrow-cells .annotated-cell "
        "{ min-width: 2.1rem; padding: 0.25rem 0 }</style>"
        f'<div class="annotated-narrow-cells">{picture.text}</div>'
    )


def normalised(x: Tensor, y: Tensor) -> Html:
    """Show three words before and after their normalisation."""
    return chain(
        Matrix(x, "stream", rows=WORDS, row=1, digits=1),
        "each row: − mean, ÷ deviation →",
        Matrix(y, "what the sublayer reads", row=1, digits=1),
        alt="Each row of the stream is brought to mean 0 and variance 1 by itself. The "
        "row of mars is lit.",
        caption="One position at a time: nothing else in the batch matters.",
    )


def reach(moved: Tensor) -> Html:
    """Show which logits move (column) when a symbol changes (row)."""
    return chain(
        Matrix(
            moved.float(),
            "logit that moves, by position",
            rows=[f"symbol {j + 1} changed" for j in range(len(moved))],
            weights=True,
        ),
        alt="A table of six changed symbols and six logits: a changed symbol moves the "
        "logits at its own position and after it, none before. Ones on and above the "
        "diagonal, zeros below.",
        caption="1: the logits move. Below the diagonal, nothing moves at all.",
    )


# ---- plots and tables ----------------------------------------------------------------


def rms(x: Tensor) -> float:
    """Return the root mean square of all numbers."""
    return x.square().mean().sqrt().item()


def shared(x: Tensor) -> float:
    """Return the size of what all words share, their mean, in each of them."""
    return x.mean(dim=1, keepdim=True).expand_as(x).norm().item()


def spread(x: Tensor) -> float:
    """Return the size of what words don't share: their distance from their mean."""
    return (x - x.mean(dim=1, keepdim=True)).norm().item()


def difference(x: Tensor) -> float:
    """Return the share of the words' size that isn't common to all of them."""
    return spread(x) / x.norm().item()


def collapse(streams: Mapping[str, Sequence[Tensor]]) -> Html:
    """Plot how much the words differ, layer by layer."""
    figure, ax = plt.subplots(figsize=(7, 3.2))
    for (name, words), colour in zip(
        streams.items(), (OTHER, COLOURS["key"], THIS), strict=True
    ):
        ax.semilogy([difference(x) for x in words], color=colour, label=name)
    ax.set(xlabel="layers", ylabel="difference between words")
    name_lines(ax)
    return show(
        figure,
        title="Attention alone makes all words equal; x + attention(x) doesn't",
        alt="Difference between ten words after 0 to 12 layers, on a logarithmic axis. "
        "With attention alone it falls to float32's rounding within four layers, and "
        "a layer later when the size is restored after each layer. With "
        f"x + attention(x) it falls slowly, to {difference(words[-1]):.2f} after "
        "twelve.",
        caption="Ten random words, fresh weights (Xavier, as in this book's models), "
        "one seed. Difference: the words' distance from their mean, as a share of "
        "their size. At 10⁻⁷, float32's rounding, they are equal.",
    )


def plot_gradients(norms: Sequence[float]) -> Html:
    """Plot the gradient at each layer, on the same axes for all weights."""
    figure, ax = plt.subplots(figsize=(4.4, 3))
    ax.semilogy(norms, "o-", ms=4)
    ax.set(xlabel="layer (0 = input)", ylabel="size of the gradient")
    ax.set(ylim=(1e-16, 1e12), yticks=[1e-15, 1e-10, 1e-5, 1, 1e5, 1e10])
    ax.text(0, 1e10, f"{norms[0]:.0e} arrives at the input")
    ends = f"from {norms[-1]:.0f} above the last layer to {norms[0]:.0e} at the input"
    alt = f"The gradient, on a logarithmic axis: {ends}."
    return Html(plot_html(figure, alt, once=True))


UP = {
    "attention alone": "00000",
    "+ residual": "10000",
    "+ network": "11000",
    "+ encoder": "11100",
    "+ norm": "11110",
    "+ self-attention": "11111",
}
WITHOUT = {
    "the whole model": "11111",
    "without network": "10111",
    "without norm": "11101",
    "without self-attention": "11110",
    "without encoder": "11011",
    "without those two": "11010",
    "without residual": "01111",
}


def ladder_losses(ladder: dict, more: dict) -> Html:
    """Plot the losses of the rungs, and of the whole model without a part or two."""
    runs = by_parts(ladder, more)
    figure, ax = plt.subplots(figsize=(6, 5.2))
    said, ticks = [], []
    for label, bits in (*UP.items(), *WITHOUT.items()):
        losses = [row["loss"] for row in runs[bits]]
        level, y = sum(losses) / 3, len(ticks) + 0.7 * (len(ticks) >= len(UP))
        ax.plot(losses, [y] * 3, "o", color=THIS, alpha=0.6)
        ax.text(max(losses) * 1.15, y, f"{level:.2f}", va="center")
        said.append(f"{label} {level:.2f}")
        ticks.append((y, label))
    ax.set(xscale="log", xlim=(0.05, 8), xlabel="loss on unseen dates, nats per symbol")
    ax.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    ax.set_yticks(*zip(*ticks, strict=True))
    ax.invert_yaxis()
    ax.axhline(len(UP) - 0.15, color=COLOURS["muted"], linewidth=1)
    return show(
        figure,
        title="Every rung is better; what a part is worth depends on the others",
        alt="Losses of models, three seeds each, on a logarithmic axis. Up the ladder, "
        f"then leaving out: {'; '.join(said)} nats per symbol.",
        caption="Above the line, the ladder: each model has the parts of those above "
        "it, and one more. Below it, the whole model without a part or two. Dots are "
        "the three seeds, numbers their means.",
    )


def facts_table(facts: Mapping[str, int]) -> Html:
    """Show how many facts each network remembers."""
    return show_table(
        ["network", "facts remembered"],
        facts.items(),
        "Of the same 1000 facts, after 300 steps of Adam (guessing: 62)",
    )


def parameter_table(c: TransformerConfig) -> Html:
    """Count the parameters of each part of a model, behind a title."""
    with torch.device("meta"):  # shapes without numbers
        model = Transformer(c)
    parts = {
        f"attention, in {c.layers} encoder layers": (model.encoder, Attention),
        f"attention, in {c.layers} decoder layers, two each": (
            model.decoder,
            Attention,
        ),
        f"networks, in {2 * c.layers} layers": (model, FeedForward),
        "norms": (model, NORMS[c.norm_kind]),
    }
    sizes = {
        name: sum(count(m) for m in part.modules() if isinstance(m, kind))
        for name, (part, kind) in parts.items()
    }
    total = count(model)
    tied = f"one table of {c.source_vocab:,} symbols, tied"
    tables = {tied if c.tied else "three tables": total - sum(sizes.values())}
    sizes = tables | sizes
    rows = [[name, f"{size:,}", f"{size / total:.0%}"] for name, size in sizes.items()]
    table = show_table(
        ["part", "parameters", "share"],
        [*rows, ["the whole model", f"{total:,}", "100%"]],
        f"Parameters of a model of width {c.d_model}",
    )
    title = f"Where the {total / 1e6:.0f} million are"
    return Html(f"<details><summary>{title}</summary>{table.text}</details>")


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
        static("date_writer.js"),
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


def by_parts(ladder: dict, more: dict) -> dict[str, list[dict]]:
    """Return the recorded runs of each model; "10001" has the first and last part."""
    rungs = [row["rung"] for row in ladder["rows"] if row["seed"] == 0]
    parts = {rung: ladder["parts"][:i] for i, rung in enumerate(rungs)}
    parts["all but the norm"] = [p for p in ladder["parts"] if p != "norm"]
    runs: dict[str, list[dict]] = {}
    for row in ladder["rows"] + more["rows"]:
        has = row["parts"] if "parts" in row else parts[row["rung"]]
        bits = "".join(str(int(part in has)) for part in ladder["parts"])
        runs.setdefault(bits, []).append(row)
    return runs


def ladder_models(ladder: dict, more: dict) -> dict[str, dict]:
    """Return what the 32 models of seed 0 reach and write."""
    runs = by_parts(ladder, more).items()
    kept = ("loss", "exact", "written")
    return {bits: {k: rows[0][k] for k in kept} for bits, rows in runs}


def edits(one: str, other: str) -> int:
    """Return the fewest symbols to exchange, add or remove."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        above, row = row, [i]
        for j, b in enumerate(other, start=1):
            row.append(min(above[j - 1] + (a != b), above[j] + 1, row[-1] + 1))
    return row[-1]


def model_builder(ladder: dict, more: dict) -> Html:
    """Show what a model with some of the parts loses, and what it writes."""
    models, dates = ladder_models(ladder, more), ladder["examples"]
    pairs = ladder_pairs(len(dates), "test", 1)
    assert [text for text, _ in pairs] == dates == more["examples"]
    answers = [answer for _, answer in pairs]

    def built(on: list[int], date: str) -> dict[str, Any]:
        model = models["".join(str(int(j in on)) for j in range(5))]
        i = dates.index(date)
        return {"loss": model["loss"], "edits": edits(answers[i], model["written"][i])}

    start = "12 de set. de 1928"
    tried = (([], start), ([0, 4], dates[3]), ([0, 1, 2, 3, 4], dates[0]))
    return explorer(
        static("ladder.js"),
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
