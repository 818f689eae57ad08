"""Chapter 01, attention in recurrent networks: its drawings, and its longest proofs."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy
import torch
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.batches import Batch, Vocabulary, date_split, make_batch, write_date
from annotated.chapters.ch01.dates import date_reader, date_symbols, read_dates
from annotated.devices import device_of
from annotated.masks import length_mask
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html, Slider, Text, explorer, plot_html, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.pictures import Matrix, chain, number
from annotated.page.play import play
from annotated.page.plots import OTHER, THIS, WEIGHTS, name_lines, visible
from annotated.page.records import Rows, dots, grouped
from annotated.page.svg import COLOURS
from annotated.recurrent_attention import AdditiveAttention, LocationSensitiveAttention
from annotated.seq2seq import Memory, Seq2Seq, teacher_forcing_loss

Pairs = Sequence[tuple[str, str]]  # a date as people write it, and in ISO 8601
Symbols = tuple[Vocabulary, Vocabulary]  # of what is read and what is written
# the toy of 1.2: what its words mark, and the value that is the fourth number
WORDS, KINDS = ("7", "March", "2024"), ("day", "month", "year")
FOUR = (*KINDS, "number")

# ---- 1.1: dates, and what one vector can hold ----------------------------------------


def date_explorer(
    model: Seq2Seq, weights: Mapping, symbols: Symbols, samples: Sequence[str]
) -> Html:
    """Show a date reader at work; its packed ``weights`` are the ``model``'s."""

    @torch.no_grad()
    def state(text: str, step: int, typed: str = "") -> tuple[dict, dict]:
        """Return what Python computes where the browser does."""
        (output,), rows = read_dates(model, [text], symbols)
        step = min(step, len(rows[0]))  # it may have stopped before
        batch = make_batch([(text, output)], *symbols).to(device_of(model))
        logits = model(batch.source, batch.lengths, batch.target)[0, step - 1]
        values = {"output": output, "alignment": rows[0, step - 1].tolist()}
        values["chance"] = logits.softmax(-1).max().item()
        return {"date": typed or text, "step": step}, values

    data = {"weights": weights, "source": symbols[0].symbols, "most": 12}
    data |= {"target": symbols[1].symbols}
    typed = "a date (16 July 2024; July 16, 2024; 16.07.2024)"
    return explorer(
        static("ch01/date_reader.js"),
        data | {"start": Vocabulary.start, "end": Vocabulary.end},
        [
            Text("date", typed, samples[0], suggestions=samples),
            Slider("step", "step", range(1, 12), 5),
        ],
        checks=[
            *(state(text, 1 + 3 * i % 11) for i, text in enumerate(samples)),
            state("16.07.2024", 6, "07/16/2024"),
            state("16.07.2024", 7, "16/07/2024"),
        ],
        label="Step through the reading of a date",
        question="Once it has written the year: which letters will it need for the "
        "month? Guess, then go on to step 7.",
        caption="A row for each symbol it writes: the stronger a cell, the more it "
        "takes from that character. Below, the three likeliest symbols.",
    )


def bottleneck(text: str, memory: Memory) -> Html:
    """Draw sequence to sequence, whose ``memory`` of a text is one vector."""
    drawing, width = Drawing(350, 104), memory.summary.shape[1]
    drawing.text(0, 14, text, anchor="start", size=12.2, code=True)
    drawing.text(350, 14, "2024-07-16", anchor="end", size=12.2, code=True)
    drawing.arrow((52, 22), (52, 46))
    drawing.frame(130, 46, 90, 41, shade=0.25)
    drawing.box(52, 46, 104, "encoder", "reads it all")
    drawing.box(175, 46, 90, "one vector", f"{width} numbers")
    drawing.box(298, 46, 104, "decoder", "writes it all")
    drawing.arrow((104, 66), (130, 66))
    drawing.arrow((220, 66), (246, 66))
    drawing.arrow((298, 46), (298, 22))
    return drawing.figure(
        alt=f"From left to right: {text} goes into the encoder, which hands one vector "
        f"of {width} numbers to the decoder, which writes 2024-07-16.",
        caption="Sequence to sequence: everything passes through one vector.",
    )


def check_days(train: Pairs, test: Pairs) -> None:
    """Prove that no day of the test was trained on; show the style left out."""
    train_days, test_days = ({iso for _, iso in part} for part in (train, test))
    for day in map(datetime.date.fromisoformat, test_days):
        assert date_split(day) == "test", f"{day} belongs to {date_split(day)}"
    assert not train_days & test_days, "a day of the test is in training"
    print(f"counted: {len(train_days)} days of training, {len(test_days)} of the test,")
    march, july = datetime.date(2024, 3, 7), datetime.date(2024, 7, 3)
    short = write_date(march, "en_US", "short")
    assert short == write_date(july, "es", "short"), f"{short} has one meaning only"
    print(f"none in both. Left out: {short}, March in the United States, July in Spain")


def _shares(runs: Rows) -> dict[tuple, numpy.ndarray]:
    """Return the percentages read, (seeds, counts of dates), by way and steps."""
    return {
        way: 100 * numpy.array([[*run["exact"].values()] for run in seeds])
        for way, seeds in grouped(runs, "way", "steps").items()
    }


def lines_read(record: Mapping[str, Any], wide: Mapping[str, Any]) -> Html:
    """Plot how many lines of one to four dates are read, with attention and without."""
    figure, ax = plt.subplots()
    counts, shares = (1, 2, 3, 4), _shares([*record["lines"], wide])
    large = "four times as wide,\n800 steps"
    for rows, color, words, at in (
        (shares["none", 800], OTHER, "800 steps", (1.85, 18)),
        (shares["none", 1600], OTHER, "1600 steps", (1.52, 84)),
        (shares[None, 800], OTHER, large, (3, 33)),
        (shares["additive", 800], THIS, "attention, 800 steps", (2.85, 88)),
    ):
        style = "--" if words is large else "-"
        middle, label = numpy.median(rows, axis=0), words.replace("\n", " ")
        ax.plot(counts, middle, style, color=color, zorder=3, label=label)
        ax.plot(counts, rows.T, "o", color=color, alpha=0.35, markersize=5)
        ax.annotate(
            words, at, (7, 0), textcoords="offset points", color=color, va="center"
        )
    ax.set(xlabel="dates in the line", ylabel="lines read exactly (%)")
    ax.set(xticks=counts, xlim=(0.9, 4.1), ylim=(-4, 104))
    return show(
        figure,
        title="After 800 steps, 128 numbers read one date; attention reads four",
        caption=f"Grey: one vector, of 128 numbers or {wide['numbers']}. Medians of "
        f"three recorded seeds (pale; {wide['numbers']}: one), lines of unseen dates.",
    )


# ---- 1.2: attention, number by number ------------------------------------------------


def meeting(asked: Tensor, offered: Tensor, sums: Tensor) -> Html:
    """Show the mapped query added to the mapped key of each word."""
    return chain(
        Matrix(asked, "W_q · query", columns=KINDS),
        "+",
        Matrix(offered, "W_k · keys", WORDS, KINDS, row=2),
        "=",
        Matrix(sums, "sums", columns=KINDS, row=2),
        caption="The query meets each key. The row of 2024 is highlighted.",
    )


def scoring(sums: Tensor, hidden: Tensor, scores: Tensor) -> Html:
    """Show how each row of sums becomes one score."""
    return chain(
        Matrix(sums, "sums", WORDS, KINDS, row=2),
        "tanh →",
        Matrix(hidden, "hidden", columns=KINDS, row=2),
        "· w →",
        Matrix(scores[:, None], "scores", row=2),
        caption="Each row of sums becomes one score; w holds 7 three times.",
    )


def mixing(
    weights: Tensor, states: Tensor, contexts: Tensor, caption: str | None = None
) -> Html:
    """Show ``weights`` times ``states``; of three rows, the second is highlighted."""
    asked, row, name = [f"{kind}?" for kind in KINDS[::-1]], 1, "contexts"
    said = "Three steps, three questions, three contexts; the month's is highlighted."
    if weights.dim() == 1:
        asked, row, name = None, None, "context"
        said = "The softmax of the scores, and the context: nearly the state of 2024."
    return chain(
        Matrix(weights, "weights", asked, WORDS, weights=True, row=row),
        "·",
        Matrix(states, "states", WORDS, FOUR),
        "=",
        Matrix(contexts, name, columns=FOUR, row=row),
        caption=said if caption is None else caption,
    )


def check_attend(attend: Callable) -> None:
    """Prove that ``attend`` is the module, in a padded batch."""
    lengths, module = [4, 2], AdditiveAttention(query_size=5, key_size=7, hidden=6)
    mask = length_mask(torch.tensor(lengths), size=4)[:, 0]

    def by_hand(module: AdditiveAttention, queries: Tensor, keys: Tensor) -> Tensor:
        W_q, W_k, (w,) = module.parameters()
        real = [keys[n, :size] for n, size in enumerate(lengths) for _ in queries[n]]
        pairs = zip(queries.flatten(0, 1), real, strict=True)
        rows = [attend(q, keys, keys, W_q, W_k, w)[0] for q, keys in pairs]
        return torch.stack(rows).view(2, 3, 7)

    check_same(
        "attend, without padding = the module, with it",
        lambda module, q, k: module(q, k, mask=mask)[0],
        by_hand,
        module,
        torch.randn(2, 3, 5),
        torch.randn(2, 4, 7),
    )


# ---- 1.3: the network ----------------------------------------------------------------


def unrolled(weights: Tensor) -> Html:
    """Draw one step of the decoder, about to write the month, by its ``weights``."""
    drawing = Drawing(350, 316)
    drawing.frame(22, 88, 316, 25, shade=0.1)
    for j, x in enumerate((60, 180, 300)):
        drawing.text(x, 14, WORDS[j], bold=True)
        drawing.arrow((x, 20), (x, 38))
        drawing.box(x, 38, 76, "state")
        drawing.arrow((x, 63), (x, 88))
        drawing.text(x, 105, number(weights[j].item()), size=12.2)
        drawing.line((x, 113), (180, 148), width=0.8 + 6 * weights[j].item())
    for x in (60, 180):
        drawing.arrow((x + 60, 50), (x + 82, 50))
        drawing.arrow((x + 60, 50), (x + 38, 50))
    drawing.box(180, 148, 76, "context")
    drawing.arrow((180, 173), (180, 210))
    for x, name in ((60, "old state"), (180, "GRU"), (300, "new state")):
        drawing.box(x, 210, 76, name)
    drawing.arrow((98, 222), (142, 222))
    drawing.arrow((218, 222), (262, 222))
    drawing.arrow((34, 210), (34, 113))
    drawing.text(40, 166, "query", anchor="start", size=12.2)
    drawing.text(180, 276, "2024", bold=True)
    drawing.text(180, 294, "last symbol", size=12.2)
    drawing.arrow((180, 262), (180, 235))
    drawing.box(300, 258, 60, "logits")
    drawing.arrow((300, 235), (300, 258))
    drawing.arrow((218, 160), (346, 160), (346, 270), (330, 270))
    drawing.arrow((300, 283), (300, 298))
    drawing.text(300, 312, "03", bold=True)
    return drawing.figure(
        alt="Three encoder states below the words 7, March and 2024, joined in both "
        "directions. The decoder's old state sends a query to the row of weights below "
        "them; a thick line from March and two thin ones make the context. Context, "
        "old state and last symbol, 2024, go into a GRU, which gives the new state. "
        "From that and the context come the logits, and from them 03.",
        caption="A step of the decoder, about to write the month. Its old state asks. "
        "The larger a weight (those of 1.2), the thicker its line.",
    )


def teacher_forcing(batch: Batch, names: Sequence[str]) -> Html:
    """Show what the decoder reads and should answer, by the ``names`` of symbols."""
    rows = {"reads": batch.target[0], "should answer": batch.labels[0]}
    return show_table(
        ["step", *range(1, 1 + batch.target.shape[1])],
        [[word, *(names[i] for i in ids.tolist())] for word, ids in rows.items()],
    )


def check_decoder(decoder_step: Callable, pairs: Pairs, symbols: Symbols) -> None:
    """Prove that ``decoder_step``, one date at a time, is the batched model."""
    model, batch = date_reader("additive", *symbols), make_batch(pairs, *symbols)
    decoder, a = model.double().decoder, model.decoder.attention

    def by_hand(model: Seq2Seq) -> Tensor:
        scorer = a.query_map.weight, a.key_map.weight, a.direction.weight[0]
        rows = []
        for source, size, target in zip(*batch[:3], strict=True):
            memory = model.encoder(source[None, :size], size[None])
            state = torch.tanh(decoder.bridge(memory.summary[0]))
            for last in decoder.embedding(target):
                args = scorer, decoder.cell, decoder.head
                logits, state, _ = decoder_step(state, last, memory.states[0], *args)
                rows.append(logits)
        return torch.stack(rows).view(*batch.target.shape, -1)

    check_same(
        "decoder_step, date by date = the batched model, logits",
        lambda model: model(batch.source, batch.lengths, batch.target),
        by_hand,
        model,
        tolerance=1e-9,
    )


# ---- 1.4 to 1.6: what was learned ----------------------------------------------------


def misread(
    models: Mapping[str, nn.Module],
    exact: Mapping[str, float],
    errors: Mapping[str, Sequence],
    by_part: Callable,
) -> Html:
    """Show how many of the test's dates each of ``models`` misreads, and which part."""
    return show_table(
        ["network", "exact", "wrong year", "month", "day"],
        [[name, f"{exact[name]:.2%}", *by_part(errors[name])] for name in models],
        caption="Of 2,000 dates on unseen days, seed 0. Parameters: "
        + "; ".join(
            f"{name}, {sum(p.numel() for p in model.parameters()):,}"
            for name, model in models.items()
        ),
    )


def losses(curves: Mapping[str, Sequence[Mapping[str, float]]]) -> Html:
    """Plot the loss with attention and without, each step and the mean of 25."""
    figure, ax = plt.subplots(figsize=(8.6, 3.2))
    names, ends = ("without attention", "with attention"), []
    for name, history, color in zip(names, curves.values(), (OTHER, THIS), strict=True):
        loss = numpy.array([record["loss"] for record in history])
        ax.plot(loss, color=color, alpha=0.25, linewidth=1)
        smooth = numpy.convolve(loss, numpy.full(25, 1 / 25), "valid")
        ax.plot(numpy.arange(len(smooth)) + 12, smooth, color=color, label=name)
        ends.append(f"{loss[-50:].mean():.4f} {name}")
    ax.set(xlabel="training step", ylabel="loss (nats per symbol)", yscale="log")
    name_lines(ax)
    return show(
        figure,
        title="With attention, the loss falls much further",
        caption="One seed; pale, each batch, and the mean of 25. The last 50 steps: "
        + ", ".join(ends)
        + ".",
    )


def alignment(
    ax: Any, weights: Tensor, written: str, read: str, title: str = ""
) -> None:
    """Draw an alignment with eleven rows, written or not, as a few light cells."""
    rows = [*written, "end"][: len(weights)][:11]
    rows += [""] * (11 - len(rows))
    wide, shades = len(read), (10 * weights[:11]).round()

    def draw(lines: Sequence[Path], **look: Any) -> None:  # as one: light frames
        path = Path.make_compound_path(*lines)
        ax.add_patch(PathPatch(path, clip_on=False, **look))

    for shade in shades[shades > 0].unique().tolist():
        cells = [
            Path([(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1), (j, i)], closed=True)
            for i, j in (shades == shade).nonzero().tolist()
        ]
        draw(cells, color=WEIGHTS(shade / 10), linewidth=0)
    rules = [Path([(0, i), (wide, i)]) for i in range(12)]
    rules += [Path([(j, 0), (j, 11)]) for j in range(wide + 1)]
    draw(rules, edgecolor=COLOURS["rule"], fill=False, linewidth=1)
    ax.set(xticks=numpy.arange(wide) + 0.5, xticklabels=map(visible, read))
    ax.set(yticks=numpy.arange(11) + 0.5, yticklabels=rows, ylim=(11, 0))
    ax.set(xlabel="read (a row for each symbol written)", title=title, xlim=(0, wide))
    ax.grid(visible=False)
    ax.spines["bottom"].set_visible(False)


def learning(formed: Mapping[int, tuple], text: str) -> Any:
    """Show the alignment of a ``text`` behind a slider over the training steps."""
    steps = [step for step, (answer, *_) in formed.items() if answer]

    def frame(training_step: int) -> Html:
        answer, weights, share = formed[training_step]
        said = f"After step {training_step} it writes {answer}. Of 500 unseen dates, "
        said += f"{share:.0%} are right."
        figure, ax = plt.subplots(figsize=(8.6, 3.9))
        alignment(ax, weights, answer, text)
        drawn = plot_html(figure, f"Alignment of {text}. {said}")
        return Html(f'{drawn}<p class="annotated-says">{said}</p>')

    return play(
        frame,
        label="The alignment while the network learns",
        training_step=steps,
        start={"training_step": steps[len(steps) // 2]},
        question="At which step does it find the year? And is the month faint or "
        "strong when it is first right?",
        caption="The alignment of one unseen date. The stronger a cell, the larger the "
        "weight.",
    )


def learned(peaks: Mapping[int, Mapping], hits: Mapping[int, Mapping]) -> Html:
    """Plot how sharp weights are and how many answers right, by training step."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.0), sharey=True)
    names = "largest weight of a row", "parts right"
    for ax, by_step, name in zip(axes, (peaks, hits), names, strict=True):
        for part, color in (("year", OTHER), ("month", THIS)):
            curve = [by_step[step][part] for step in by_step]
            right = [step for step in hits if hits[step][part] > 0.5]
            first = min(right, default=400)
            ax.plot(first, by_step[first][part], "o", color=color, markersize=10)
            ax.plot([*by_step], curve, "o-", color=color, label=part, markersize=5)
        ax.set(xlabel="training step", ylim=(0, 1.05), ylabel=name)
        name_lines(ax)
    return show(
        figure,
        title="The month is right while its weights are still flat",
        caption="Means over 500 unseen dates. Large dots: most are right for the first "
        "time.",
    )


@torch.no_grad()
def hidden(
    heaviest: Mapping[str, float],
    second: Mapping[str, float],
    reader: Seq2Seq,
    batch: Batch,
) -> Html:
    """Plot which symbols stay right if a character is hidden from attention."""
    _, looks = reader.decoder(batch.target, reader.encoder(batch.source, batch.lengths))
    most, next_most = looks.topk(2, dim=-1).values.mean(dim=(0, 1)).tolist()
    figure, ax = plt.subplots(figsize=(8.6, 2.9))
    names = [*heaviest][::-1]
    for by, color, row, words, side in (
        (second, OTHER, -2, "second heaviest", "right"),
        (heaviest, THIS, -1, "heaviest hidden", "left"),
    ):
        shares = [100 * by[name] for name in names]
        ax.plot(shares, range(len(names)), "o", color=color, markersize=9)
        at, away = (shares[row], len(names) + row), 10 if side == "left" else -10
        look = {"color": color, "ha": side, "va": "center"}
        ax.annotate(words, at, (away, 0), textcoords="offset points", **look)
    ax.set(yticks=range(len(names)), yticklabels=names, xlim=(-3, 103))
    ax.set(ylim=(-0.5, len(names) - 0.5), xlabel="symbols still right (%)")
    said = (f"{n}, {heaviest[n]:.0%} and {second[n]:.0%}" for n in heaviest)
    return show(
        figure,
        title="Hide what it looks at, and day and year are lost",
        alt="Symbols still right with the heaviest character hidden, and with the "
        f"second heaviest: {'; '.join(said)}.",
        caption="500 unseen dates; at each step, one character is hidden. On average "
        f"the heaviest has {most:.0%} of the weight, the second {next_most:.0%}.",
    )


def at_temperatures(tempered: Mapping[float, tuple], text: str) -> Html:
    """Show what a network reads at each temperature: a ``text``, and of 500 dates."""
    return show_table(
        ("temperature", f"{text} becomes", "of 500 dates exact"),
        [(f"{tau:g}", read, f"{share:.1%}") for tau, (read, share) in tempered.items()],
        "One trained network, its scores divided by the temperature.",
    )


def stripes(
    no_tanh: Seq2Seq,
    reader: Seq2Seq,
    text: str,
    symbols: Symbols,
    losses: Sequence,
    others: Sequence,
) -> Html:
    """Draw the alignment of a ``text`` without the tanh, and with it."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.9))
    steps = len(losses)
    both = {f"without tanh, {steps} steps": no_tanh}
    both |= {f"with tanh, {steps} steps": reader}
    for ax, (name, model) in zip(axes, both.items(), strict=True):
        (answer,), rows = read_dates(model, [text], symbols)
        alignment(ax, rows[0], answer, text, name)
    return show(
        figure,
        title="Without the tanh, every step looks at the same characters",
        alt=f"Two alignments of {text}. Without tanh all rows are the same vertical "
        "stripes; with tanh they differ.",
        caption="Without tanh, rows are equal at any time. The loss fell all the same, "
        f"from {losses[0]['loss']:.2f} to {losses[-1]['loss']:.2f}; with the tanh it's "
        f"at {others[steps - 1]['loss']:.2f} by then.",
    )


def check_rows(no_tanh: Seq2Seq, text: str, symbols: Symbols) -> None:
    """Prove that without the tanh all rows are equal, trained or not."""
    fresh = date_reader(type(no_tanh.decoder.attention), *symbols)
    for claim, model in (("trained", no_tanh), ("untrained", fresh)):
        rows = read_dates(model, [text], symbols)[1]
        first = rows[:, :1].expand_as(rows)
        check_close(f"without the tanh, {claim}: all rows are equal", rows, first, 1e-4)
    _, rows = AdditiveAttention(5, 7, 6)(torch.randn(2, 3, 5), torch.randn(2, 4, 7))
    assert (rows - rows[:, :1]).abs().max() > 1e-4, "with the tanh, they are equal, too"


# ---- 1b: other scores ----------------------------------------------------------------


def products(queries: Tensor, keys: Tensor, scores: Tensor) -> Html:
    """Show the toy scored by products."""
    asked, weights = [f"{kind}?" for kind in KINDS[::-1]], scores.softmax(dim=-1)
    return chain(
        Matrix(queries, "queries", asked, KINDS, row=0),
        "· W ·",
        Matrix(keys.T, "keysᵀ", KINDS, WORDS),
        "softmax\n→",
        Matrix(weights, "weights", columns=WORDS, weights=True, row=0),
        # given: 4
        caption="The toy of chapter 1, scored by products. W is 4 times the identity: "
        "the scores are 4 where query and key match and 0 elsewhere.",
    )


def ways(record: Mapping[str, Any]) -> Html:
    """Show how many dates each way of scoring reads, by recorded seeds."""
    parameters = {run["way"]: run["parameters"] for run in record["single"]}
    rows = [
        [way, f"{parameters[way]:,}", dots(seeds[:, 0] / 100, ".2%")]
        for (way, _), seeds in _shares(record["single"]).items()
    ]
    return show_table(
        ["attention", "parameters", "unseen dates exact, seeds 0 · 1 · 2"], rows
    )


def voices(heard: Mapping[str, tuple], histories: Mapping, spread: float) -> Html:
    """Show how two voices speak 100 words each."""
    return show_table(
        ["attention", "last loss", "stops at the right frame, of 100", "squared error"],
        [
            [name, f"{histories[name][-1]['loss']:.4f}", stopped, f"{error:.4f}"]
            for name, (stopped, error) in heard.items()
        ],
        caption=f"The error is the median; the frames' variance is {spread:.2f}.",
    )


def moved(looked: Tensor, found: Tensor, weights: Tensor) -> Html:
    """Show how a filter moves a look one place on."""
    return chain(
        Matrix(
            torch.cat([looked, found, weights]),
            rows=["it looked last", "the filter finds f", "it looks now"],
            columns=[str(place) for place in range(1, 8)],
            row=2,
            weights=True,
        )
    )


def _located(
    module: LocationSensitiveAttention, queries: Tensor, keys: Tensor
) -> Tensor:
    """Return contexts (t, v), one query and key at a time; nothing looked at yet."""
    W_q, W_k = module.query_map.weight, module.key_map.weight
    w, L = module.direction.weight[0], module.location_map.weight
    alpha, contexts = torch.zeros(len(keys)), []
    for query in queries:
        windows = F.pad(alpha, (1, 1)).unfold(0, 3, 1)  # (s, kernel), 0 at the ends
        f = windows @ module.convolution.weight[:, 0].T  # (s, filters)
        scores = [
            w @ torch.tanh(W_q @ query + W_k @ key + L @ f[j] + module.offset)
            for j, key in enumerate(keys)
        ]
        powers = torch.stack(scores).exp()
        alpha = powers / powers.sum()
        contexts.append(sum(a * key for a, key in zip(alpha, keys, strict=True)))
    return torch.stack(contexts)


def check_located(queries: Tensor, keys: Tensor, lengths: Sequence[int]) -> None:
    """Prove that location-sensitive attention is its equations, and moves on."""
    mask = length_mask(torch.tensor(lengths), keys.shape[1])[:, 0]
    located = LocationSensitiveAttention(5, 7, hidden=6, filters=2, kernel=3)

    def by_hand(module: LocationSensitiveAttention, q: Tensor, k: Tensor) -> Tensor:
        rows = [_located(module, q[n], k[n, :s]) for n, s in enumerate(lengths)]
        return torch.stack(rows)

    def batched(module: LocationSensitiveAttention, q: Tensor, k: Tensor) -> Tensor:
        return module(q, k, mask=mask)[0]

    claim = "location-sensitive, step by step = the module"
    with torch.random.fork_rng():  # what the page draws next stays the same
        check_same(claim, batched, by_hand, located, queries, keys)
    located.location_map.weight.data *= 10  # random, and large enough to see
    same, query = torch.randn(1, 1, 7).expand(1, 7, 7), torch.randn(1, 1, 5)
    looked = F.one_hot(torch.arange(7)).float()
    third, fourth = (
        located(query, same, previous=looked[i : i + 1])[1][0, 0] for i in (2, 3)
    )
    assert third.max() - third.min() > 0.01, "the last look changes nothing"
    claim = "its row moves along when the last look does"
    check_close(claim, fourth[1:], third[:-1], 1e-5)
    even = AdditiveAttention(5, 7, 6)(query, same)[1][0, 0]
    claim = "equal keys, additive: even weights"
    check_close(claim, even, torch.full((7,), 1 / 7), 1e-5)


def gated(old: Tensor, candidate: Tensor, z: Tensor) -> Html:
    """Show what a gate ``z`` keeps of a state."""
    return chain(
        Matrix(
            torch.stack([old, candidate, z, z * old + (1 - z) * candidate]),
            rows=["old state", "candidate", "update gate z", "new state"],
            row=3,
        ),
        caption="Kept, replaced, and half of each: new = z · old + (1 − z) · "
        "candidate.",
    )


def check_gru(gru_step: Callable) -> None:
    """Prove that ``gru_step`` in a loop is PyTorch's GRU."""

    def walk(gru: nn.GRU, inputs: Tensor) -> Tensor:
        states = [torch.zeros(4)]
        for x in inputs[0]:
            states.append(gru_step(x, states[-1], *gru.parameters()))
        return torch.stack(states[1:])

    gru, inputs = nn.GRU(3, 4, batch_first=True), torch.randn(1, 5, 3)
    claim = "gru_step = nn.GRU, over five inputs"
    check_same(claim, lambda gru, x: gru(x)[0][0], walk, gru, inputs)


def check_loss() -> None:
    """Prove that the loss is the mean over real symbols; print what padding does."""
    pairs = [("7 Mar 2024", "2024"), ("7 Mar 2024", "2024-03-07")]
    symbols = date_symbols(pairs)
    batch, reader = make_batch(pairs, *symbols), date_reader("none", *symbols)
    logits = reader(batch.source, batch.lengths, batch.target).log_softmax(dim=-1)
    nats = -logits.gather(2, batch.labels[:, :, None])[:, :, 0]  # (b, t)
    real = batch.labels != Vocabulary.pad
    claim = "teacher_forcing_loss = the mean over the real symbols"
    check_close(claim, teacher_forcing_loss(reader, batch), nats[real].mean())
    over_all = (nats * real).mean().item()
    assert over_all < nats[real].mean(), "padding no longer lowers the mean"
    print(f"measured: {over_all:.2f} nats over all positions, padding as 0,")
    print(f"{nats[real].mean().item():.2f} over the real ones")
