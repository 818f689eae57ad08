"""Chapter 10, text classification: its drawings, tables, and what is measured live."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from markupsafe import Markup
from torch import Tensor, nn

from annotated.attention import record_attention
from annotated.classifier import ClassifierConfig, TransformerClassifier
from annotated.devices import device_of
from annotated.masks import padding_mask
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, explorer, static
from annotated.page.frames import Text as Field
from annotated.page.notebook import check_close, show, show_table
from annotated.page.packed import packed_script, unpack_films
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import LINES, MARKERS, OTHER, THIS, name_lines
from annotated.page.records import Rows, borrowed_rows, dots, grouped, mean_of
from annotated.page.svg import COLOURS
from annotated.recipes.classification import (
    BagOfEmbeddings,
    Labelled,
    Text,
    Words,
    classify,
    words_and_pairs,
    words_of,
)
from annotated.training import evaluating

#: from a text's ids (1, t) and a label's number to a score for each token (t,)
Method = Callable[[Tensor, int], Tensor]
NAMES = {
    "TF-IDF": "TF-IDF, linear",
    "bag": "bag of embeddings",
    "encoder": "encoder",
    "no positions": "encoder, no positions",
}
BORROWED = {"frozen": "borrowed, frozen", "fine-tuned": "borrowed, fine-tuned"}
LOOKS = {  # of a line for each model
    "TF-IDF": {"color": COLOURS["value"], "linestyle": LINES[1], "marker": MARKERS[1]},
    "bag": {"color": OTHER, "linestyle": LINES[2], "marker": MARKERS[2]},
    "encoder": {"color": THIS, "linestyle": LINES[0], "marker": MARKERS[0]},
    "no positions": {"color": COLOURS["key"], "linestyle": LINES[3], "marker": "D"},
    "frozen": {"color": COLOURS["query"], "linestyle": LINES[3], "marker": "v"},
    "fine-tuned": {"color": COLOURS["right"], "linestyle": LINES[0], "marker": "*"},
}
MODELS = "films_model.js"  # what `pack_films` made of the recorded ones
SHA256 = "1517524cc91747b62a40e8eda2e2ae3e7b0d6cd770570dbb739222204d9f9d0c"
WAYS = ["what deleting one changes", "attention received"]
SENTENCES = [  # on films, of nobody's review
    "not bad at all, and often funny",
    "a smart film with a stupid title",
    "a stupid film with a smart title",
    "it never gets boring",
    "not a good one, a bad one",
    "not a bad one, a good one",
]
LETTERS = 400  # at most, of a sentence that is typed


# ---- texts ---------------------------------------------------------------------


def same_words() -> Html:
    """Draw two verdicts on a film, and the bag of words that both give."""
    drawing = Drawing(350, 166)
    for i, (lines, said) in enumerate(
        (
            (("“not a good one,", "a bad one”"), "no"),
            (("“not a bad one,", "a good one”"), "yes"),
        )
    ):
        left, color = 88 + 174 * i, "wrong" if said == "no" else "right"
        for j, line in enumerate(lines):
            drawing.text(left, 16 + 18 * j, line, bold=True, size=15)
        drawing.arrow((left, 42), (left, 60))
        drawing.frame(left - 72, 64, 144, 42, shade=0.12, color="other")
        for j, words in enumerate(("a a bad good", "not one one ,")):
            drawing.text(left, 81 + 18 * j, words, code=True, size=13)
        drawing.arrow((left, 110), (left, 128))
        drawing.frame(left - 72, 132, 144, 26, shade=0.25, color=color)
        drawing.text(left, 150, f"See it? {said.capitalize()}.")
    return drawing.figure(
        alt="Two verdicts, “not a good one, a bad one” and “not a bad one, a good "
        "one”. Both give the same bag of words: a twice, one twice, bad, good, not, "
        "and a comma. The first says no, the second yes.",
        caption="One bag of words, two answers. Even all pairs of neighbours are the "
        "same: the order of the whole settles it.",
    )


def as_text(tokens: Text) -> str:
    """Return a function's tokens as lines, indented as they were."""
    lines, depth = [[]], 0
    for token in tokens:
        if token == "⏎":
            lines.append([])
        elif token in "⇥⇤":
            depth += 1 if token == "⇥" else -1
        else:
            lines[-1] = lines[-1] or ["    " * depth]
            lines[-1].append(token)
    return "\n".join(line[0] + " ".join(line[1:]) for line in lines if line)


def by_labels(task: Labelled, *labels: str, most: int) -> int:
    """Return the number of a function for testing for which these ``labels`` hold.

    And no others; the longest one of at most as many tokens.
    """
    wanted = torch.tensor([float(label in labels) for label in task.labels])
    same = (task.answers["test"] == wanted).all(dim=1).nonzero().flatten().tolist()
    short = [i for i in same if len(task.texts["test"][i]) <= most]
    return max(short, key=lambda i: len(task.texts["test"][i]))


# ---- order and padding ---------------------------------------------------------


def pooled_picture(states: Tensor, real: Tensor, means: Tensor) -> Html:
    """Draw vectors (b, t, d) of two texts, padding hatched, and their means (b, d)."""
    parts: list[Matrix | str] = []
    for number, (rows, holds, mean) in enumerate(
        zip(states, real, means, strict=True), start=1
    ):
        mask = holds[:, None].expand_as(rows)
        parts += [Matrix(rows, f"text {number}", mask=mask), "→"]
        parts.append(Matrix(mean, f"its mean {number}"))
        parts += [" "] * (number < len(states))
    return chain(*parts, caption="A row for each token. Hatched: padding, left out.")


def check_classifier() -> None:
    """Prove that the classifier is its parts, and that padding changes nothing."""
    torch.manual_seed(0)
    config = ClassifierConfig(11, 3, d_model=8, heads=2, layers=2, d_ff=12, max_len=9)
    model = TransformerClassifier(config).double().eval()
    tokens = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    x = model.positions(model.embedding(tokens))
    states = model.encoder(x, padding_mask(tokens))
    means = torch.stack([states[0].mean(dim=0), states[1, :2].mean(dim=0)])
    check_close("the classifier is its parts", model(tokens), model.output(means))
    padded = torch.nn.functional.pad(tokens, (0, 4))
    check_close("four more of padding change nothing", model(padded), model(tokens))


def check_twins(task: Labelled) -> None:
    """Prove that twins share words and pairs of neighbours, and not the answer."""
    texts = [text for some in task.texts.values() for text in some]
    answers = torch.cat([*task.answers.values()])
    assert (answers[::2] + answers[1::2] == 1).all()
    for one, other in zip(texts[::2], texts[1::2], strict=True):
        assert Counter(words_and_pairs(one)) == Counter(words_and_pairs(other))
    print(f"✓ {len(texts) // 2} pairs of twins: the same words and pairs of neighbours")


def right_share(model: nn.Module, task: Labelled, split: str = "test") -> float:
    """Return how many of all answers a model gets right."""
    yes = classify(model, task, task.texts[split]) > 0
    return (yes == task.answers[split].bool()).float().mean().item()


def poolings_table(record: Mapping[str, Any]) -> Html:
    """Show recorded ways to pool: macro F1 and flips per hundred, by seed."""
    names = {
        "encoder": "mean of the real tokens",
        "first": "first token",
        "max": "maximum of each number",
        "attention": "attention with one learned query",
        "unmasked": "mean, padding included",
    }
    rows = []
    for (kind,), runs in grouped(record["rows"], "kind").items():
        flips = dots((run["flips"] for run in runs if "flips" in run), ".0f")
        rows.append((names[kind], dots((run["tuned"] for run in runs), ".2f"), flips))
    careless = [run["flips"] for run in record["rows"] if run["kind"] == "unmasked"]
    assert (round(min(careless)), round(max(careless))) == (5, 31)  # as the text says
    caption = "A number for each of three seeds. Flips: of a hundred functions, those "
    caption += "that get other labels if padded to 128 tokens (*: none, by the masks)."
    header = "one vector from many", "macro F1", "flips"
    return show_table(header, [(a, b, c or "0*") for a, b, c in rows], caption)


# ---- labels and thresholds -----------------------------------------------------


def scores_table(
    task: Labelled, half: Mapping[str, Any], tuned: Mapping[str, Any], limits: Tensor
) -> Html:
    """Show each label's share and F1, with one half and with its own threshold."""
    shares = task.answers["test"].mean(dim=0).tolist()
    rows = [
        (label, f"{share:.0%}", f"{one:.2f}", f"{limit:.2f}", f"{other:.2f}")
        for label, share, one, limit, other in zip(
            task.labels,
            shares,
            half["each"],
            limits.tolist(),
            tuned["each"],
            strict=True,
        )
    ]
    for name, key in (("mean: macro", "macro"), ("all decisions: micro", "micro")):
        rows.append((name, "", f"{half[key]:.2f}", "", f"{tuned[key]:.2f}"))
    header = "label", "holds for", "F1 at ½", "threshold", "F1 with it"
    return show_table(header, rows, "Functions of modules that training never saw.")


def thresholds_said(
    task: Labelled, half: Mapping[str, Any], tuned: Mapping[str, Any], limits: Tensor
) -> str:
    """Say what each label's own threshold changes, and for which label most."""
    gains = [b - a for a, b in zip(half["each"], tuned["each"], strict=True)]
    most, least = (f(range(len(gains)), key=gains.__getitem__) for f in (max, min))
    said = (
        f"And the thresholds? They take macro F1 from {half['macro']:.3f} to "
        f"{tuned['macro']:.3f}; *{task.labels[most]}* alone brings "
        f"{gains[most] / len(gains):.3f} of that. Micro F1, where common labels "
        f"decide, goes from {half['micro']:.3f} to {tuned['micro']:.3f}: each "
        "threshold was chosen "
        "for its own label's F1. Which score should win is your decision."
    )
    if gains[least] < 0:
        said += (
            f" And *{task.labels[least]}*, with a threshold of {limits[least]:.2f}, "
            f"loses {-gains[least]:.2f} of its F1: what fits the validation split "
            "needn't fit other packages."
        )
    return said


# ---- how sure ------------------------------------------------------------------


def reliability_figure(record: Mapping[str, Any], size: int) -> Html:
    """Plot how many answers are right against how sure they are; films, one size."""
    runs = [row for row in record["rows"] if row["size"] == size]
    figure, axes = plt.subplots(1, 2, sharey=True)
    for ax, (name, title) in zip(
        axes,
        (("as it comes", "As they come"), ("cooled", "With a temperature")),
        strict=True,
    ):
        ax.plot([0.5, 1], [0.5, 1], color=COLOURS["muted"], linewidth=1)
        for kind in ("TF-IDF", "encoder"):
            several = [run[name] for run in runs if run["kind"] == kind]
            x, y = (
                torch.tensor([run[key] for run in several]).mean(dim=0)
                for key in ("chances", "right")
            )
            ax.plot(x, y, **LOOKS[kind], label=NAMES[kind])
        ax.set(title=title, xlabel="how sure", xlim=(0.48, 1.02), ylim=(0.4, 1.02))
    axes[0].set_ylabel("share that is right")
    axes[0].legend(loc="upper left")
    return show(
        figure,
        title="Overconfident, until divided by a temperature",
        caption=f"Film sentences, learned from {size:,}; the mean of three recorded "
        "seeds. A point: a fifth of the answers. The line: perfectly calibrated.",
    )


def cooling(record: Mapping[str, Any], size: int, temperature: float) -> str:
    """Say what a temperature does to the film sentences, and to the page's model."""
    runs = [r for r in record["rows"] if (r["kind"], r["size"]) == ("encoder", size)]
    surest = sum(run["as it comes"]["chances"][-1] for run in runs) / len(runs)
    right = sum(run["as it comes"]["right"][-1] for run in runs) / len(runs)
    by = [run["temperature"] for run in runs]
    before, after = (
        sum(run[name]["nats"] for run in runs) / len(runs)
        for name in ("as it comes", "cooled")
    )
    return (
        "For the film sentences the surest fifth of the encoder's answers has a "
        f"chance of {surest:.1%}, and {right:.0%} of them are right. Temperatures of "
        f"{min(by):.0f} to {max(by):.0f} take the loss from {before:.1f} to "
        f"{after:.2f} nats. For our functions "
        f"{temperature:.2f} is enough."
    )


# ---- what it looks at ----------------------------------------------------------


def examples(task: Labelled, logits: Tensor, most: int = 56) -> dict[str, Text]:
    """Return four short functions for testing, by name; each says yes to several."""
    yes = (logits > 0) & (task.answers["test"] > 0)
    wanted = (
        ("loops", "returns a value"),
        ("raises", "returns a value"),
        ("calls its own name", "returns a value"),
        ("catches", "loops"),
    )
    found: dict[str, Text] = {}
    for pair in wanted:
        both = yes[:, [task.labels.index(label) for label in pair]].all(dim=1)
        for i in both.nonzero().flatten().tolist():
            text = task.texts["test"][i]
            if 25 <= len(text) <= most and text[1] not in found:
                found[text[1]] = text
                break
    return found


def marked(tokens: Text, scores: Tensor, said: str) -> Html:
    """Draw a function, each token shaded by its share of the largest score."""
    wide, line = 7.85, 19  # of a letter of this size, of a line
    shades = (scores / scores.max().clamp(min=1e-9)).clamp(min=0).tolist()
    places, x, y, depth = [], 0.0, 0, 0
    for token, shade in zip(tokens, shades, strict=True):
        if token in "⇥⇤":
            depth += 1 if token == "⇥" else -1
            continue
        width = wide * len(token)
        if x and x + width > 346:
            x, y = 16.0 * (depth + 2), y + 1
        x = x or 16.0 * depth
        places.append((token, shade, x, y, width))
        x += width + 6
        if token == "⏎":
            x, y = 0.0, y + 1
    drawing = Drawing(350, line * (places[-1][3] + 1) + 6)
    for token, shade, x, y, width in places:
        if shade >= 0.05:
            look: dict[str, Any] = {"shade": round(0.6 * shade, 2), "color": "weight"}
            drawing.frame(x + 1, line * y + 2, width + 4, 18, outline=False, **look)
        drawing.text(x + 3, line * y + 16, token, anchor="start", code=True)
    return drawing.figure(alt=said, caption=said)


def survivors(
    model: nn.Module,
    task: Labelled,
    methods: Mapping[str, Method],
    most: int = 8,
    texts: int = 100,
) -> dict[str, dict[str, list[float]]]:
    """Return how many answers stay yes when the tokens that a method names are gone.

    Functions for testing of which at least two labels hold and the model says so. It's
    asked for each of these labels in turn; its tokens are replaced by "unknown".

    Returns:
        For each method ``"asked"``, shares of the label asked for, by the number of
        tokens from 0 on; and ``"others"``, of the other labels that held.
    """
    yes = classify(model, task, task.texts["test"]) > 0
    yes &= task.answers["test"] > 0
    chosen = (yes.sum(dim=1) >= 2).nonzero().flatten().tolist()[:texts]
    found: dict[str, dict[str, list]] = {
        name: {"asked": [], "others": []} for name in methods
    }
    for i in chosen:
        ids = task.words.ids([task.texts["test"][i]]).to(device_of(model))
        for label in yes[i].nonzero().flatten().tolist():
            others = yes[i].clone()
            others[label] = False
            for name, method in methods.items():
                order = method(ids, label).argsort(descending=True)
                fewer = ids.repeat(most + 1, 1)
                for number in range(1, most + 1):
                    fewer[number, order[:number]] = Words.unknown
                with evaluating(model):
                    still = (model(fewer) > 0).float().cpu()
                found[name]["asked"].append(still[:, label])
                found[name]["others"].append(still[:, others].mean(dim=1))
    return {
        name: {key: torch.stack(rows).mean(dim=0).tolist() for key, rows in x.items()}
        for name, x in found.items()
    }


def survivors_figure(found: Mapping[str, Mapping[str, list[float]]]) -> Html:
    """Plot what :func:`survivors` returns."""
    figure, axes = plt.subplots(1, 2, sharey=True)
    looks = {
        "attention": COLOURS["weight"],
        "gradient × input": COLOURS["value"],
        "deletion": COLOURS["key"],
        "random": OTHER,
    }
    for ax, key, title in zip(
        axes,
        ("asked", "others"),
        ("The label asked for", "Its other labels"),
        strict=True,
    ):
        for i, (name, several) in enumerate(found.items()):
            shares = [100 * share for share in several[key]]
            ax.plot(shares, LINES[i], marker=MARKERS[i], color=looks[name], label=name)
        ax.set(title=title, xlabel="tokens deleted", ylim=(0, 103))
    axes[0].set_ylabel("answers that stay yes, %")
    axes[1].legend(loc=(0.4, 0.28))
    return show(
        figure,
        caption="Functions with two labels or more that the model gets right. Left: "
        "the label that the tokens were named for. Right: the others.",
    )


def survivors_said(three: Mapping[str, Mapping[str, float]]) -> str:
    """Say which answers stay without three tokens."""
    asked, others = (
        {name: f"{some[key]:.0%}" for name, some in three.items()}
        for key in ("asked", "others")
    )
    grad = "gradient × input"
    return (
        f"With three random tokens deleted, {asked['random']} of the answers asked for "
        f"stay, and {others['random']} of the others. Without those that **attention** "
        f"points at, {asked['attention']} and {others['attention']}: the same, as it "
        "must be, since its map is made before the question is asked. **Gradient × "
        f"input**: {asked[grad]} and {others[grad]}. **Deletion**: {asked['deletion']} "
        f"and {others['deletion']}."
    )


#: what gives a label away, wherever it stands
KEYWORDS = {
    "loops": "for",
    "raises": "raise",
    "catches": "except",
    "returns a value": "return",
}


def keyword_shares(
    model: nn.Module, task: Labelled, methods: Mapping[str, Method], texts: int = 40
) -> dict[str, float]:
    """Return how often a method's three strongest tokens hold a label's keyword.

    The mean over the labels of ``KEYWORDS``, each on functions for testing that hold
    its keyword, and of which the model rightly says the label.
    """
    yes = classify(model, task, task.texts["test"]) > 0
    yes &= task.answers["test"] > 0
    named: dict[str, list[bool]] = {name: [] for name in methods}
    for label, keyword in KEYWORDS.items():
        column = task.labels.index(label)
        right = yes[:, column].nonzero().flatten().tolist()
        held = [task.texts["test"][i] for i in right]
        for text in [one for one in held if keyword in one][:texts]:
            ids = task.words.ids([text]).to(device_of(model))
            for name, method in methods.items():
                best = method(ids, column).topk(3).indices.tolist()
                named[name].append(keyword in [text[i] for i in best])
    return {name: sum(some) / len(some) for name, some in named.items()}


def keywords_said(shares: Mapping[str, float]) -> str:
    """Say which methods name a label's keyword."""
    return (
        "For *loops*, *raises*, *catches* and *returns a value* we know the right "
        "answer: a keyword. It's among the three tokens that attention names in "
        f"{shares['attention']:.0%} of the functions, with gradient × input in "
        f"{shares['gradient × input']:.0%}, with deletion in {shares['deletion']:.0%}, "
        f"at random in {shares['random']:.0%}."
    )


# ---- worth it? -----------------------------------------------------------------


def _curves(rows: Rows, kinds: Iterable[str]) -> tuple[Any, dict[tuple, float]]:
    """Plot accuracy against the number of sentences learned from; return its means."""
    _, ax = plt.subplots(figsize=(8.6, 3.8))
    sizes = sorted({row["size"] for row in rows})
    means = mean_of(rows, "accuracy", "kind", "size")
    for kind in kinds:
        for row in rows:
            if row["kind"] == kind:
                style = {"color": LOOKS[kind]["color"], "alpha": 0.35}
                ax.plot(row["size"], 100 * row["accuracy"], ".", **style)
        line = [100 * means[kind, size] for size in sizes]
        ax.plot(sizes, line, **LOOKS[kind], label=(NAMES | BORROWED)[kind])
    ax.set(xscale="log", xlabel="sentences to learn from", ylabel="right, %")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    name_lines(ax)
    return ax, means


def learning_curves(record: Mapping[str, Any]) -> Html:
    """Plot accuracy against the number of sentences learned from, by model."""
    ax, means = _curves(record["rows"], NAMES)
    ax.axhline(50, color=COLOURS["muted"], linestyle=":", linewidth=1)
    for size in {size for _, size in means}:  # what the title and the text say
        counted = (means[kind, size] for kind in ("TF-IDF", "bag"))
        assert min(counted) > max(means[k, size] for k in ("encoder", "no positions"))
    return show(
        ax.figure,
        title="More sentences help everyone, and counting words stays ahead",
        caption=f"{record['tested']:,} sentences for testing. Lines: means; dots: "
        "three recorded seeds.",
    )


def people_said(record: Mapping[str, Any]) -> str:
    """Say how many of the mildest and of the strongest opinions are recognised."""
    mild, strong = (
        {kind: f"{right[end]:.0f} %" for kind, right in _by_strength(record).items()}
        for end in (0, -1)
    )
    return (
        "**How well could anybody do?** The label is the critic's own verdict, and "
        "at least 15 people have rated each of these sentences, from −4 to 4 "
        "([Hutto and Gilbert, 2014](https://doi.org/10.1609/icwsm.v8i1.14550)). Of "
        "the quarter with the mildest ratings, a single person gets "
        f"{mild['one person']} right: there, the labels themselves are in doubt. Of "
        f"the quarter with the strongest it's {strong['one person']}, against "
        f"{strong['TF-IDF']} by counting and {strong['encoder']} by the encoder. "
        "There it isn't the labels that hold the models back."
    )


def _by_strength(record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return percent right in each quarter, by who answers."""
    groups = grouped(record["rows"], "kind")

    def mean(kind: str) -> list[float]:
        several = [row["right"] for row in groups[kind,]]
        return (100 * torch.tensor(several)).mean(dim=0).tolist()

    return {kind: mean(kind) for kind in ("one person", "TF-IDF", "bag", "encoder")}


@torch.no_grad()
def judged(
    bag: BagOfEmbeddings, encoder: TransformerClassifier, words: Words, sentence: str
) -> dict[str, Any]:
    """Return what both packed models make of a ``sentence``, as the explorer does.

    The bag's weights are those of its words, wherever they stand. For the encoder: the
    attention that each word receives, the mean over heads and queries of the last
    layer, and how much its logit would fall without the word.
    """
    tokens = words_of(sentence)
    ids = words.ids([tokens])
    fewer = [tokens[:i] + tokens[i + 1 :] for i in range(len(tokens))]
    with evaluating(encoder), record_attention(encoder) as maps:
        logit = encoder(ids)
    weights = list(maps.values())[-1][0].mean(dim=(0, 1, 2))
    with evaluating(encoder):
        changes = (logit - encoder(words.ids(fewer))).flatten()
    return {
        "words": list(tokens),
        "unknown": (ids[0] == Words.unknown).tolist(),
        "bag": {"logit": bag(ids).item(), "weights": bag.embedding(ids).flatten()},
        "encoder": {"logit": logit.item(), "received": weights, "changes": changes},
    }


def _plain(value: Any) -> Any:
    """Return tensors and numbers as JSON, with as many digits as a page needs."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return round(value, 5) if isinstance(value, float) else value


def film_reader(record: Mapping[str, Any]) -> Html:
    """Show two recorded models, which judge what a reader types."""
    script = packed_script(MODELS, SHA256)
    bag, encoder, words = unpack_films(script)
    known = [_plain(judged(bag, encoder, words, one)) for one in SENTENCES]
    # what the text beside it says
    first, (there, back) = known[0], known[1:3]
    weight = dict(zip(first["words"], first["bag"]["weights"], strict=True))
    assert first["bag"]["logit"] < 0 and first["encoder"]["logit"] < 0
    assert weight["bad"] + weight["often"] + weight["funny"] < 0
    assert weight["bad"] / 4 < weight["not"] < 0
    assert there["bag"]["logit"] == back["bag"]["logit"]
    assert there["encoder"]["logit"] > back["encoder"]["logit"] + 0.5
    bad, good = known[-2:]
    assert bad["bag"]["logit"] == good["bag"]["logit"]
    assert bad["encoder"]["logit"] < good["encoder"]["logit"] < 0
    tested = record["tested"]
    right = {
        row["kind"]: round(row["accuracy"] * tested) / tested
        for row in record["rows"]
        if row["precision"] == "packed"
    }
    data = {
        "name": "films",
        "file": MODELS,
        "button": f"Load the models ({len(script.encode()) / 1e6:.1f} MB)",
        "loaded": "The models are loaded",
        "before": "To judge a sentence of your own, load the models: they then run in "
        "your browser.",
        "missing": "They could not be loaded: they come with the pages of the book, "
        "not with its notebooks.",
        "known": known,
        "ways": WAYS,
        "most": encoder.config.max_len,
        "letters": LETTERS,
        "full": {"bag": 25.0, "encoder": 5.0},  # what has the full shade
        "decides": 0.5,  # a word that moves the logit by so much: 50 % become 62 %
        "room": 285,
    }
    checks = [
        ({"sentence": sentence, "by": WAYS[i % 2]}, one)
        for i, (sentence, one) in enumerate(zip(SENTENCES, known, strict=True))
    ]
    return explorer(
        static("ch10/film_reader.js"),
        data,
        [
            Field("sentence", "a sentence", SENTENCES[0], SENTENCES, most=LETTERS),
            Choice("by", "the encoder's numbers", WAYS),
        ],
        label="Judge a sentence on a film",
        checks=checks,
        question="Let two words change places: which of the models notices?",
        caption=f"Learned from {record['learned']:,} sentences; of {tested:,} others "
        f"the bag gets {right['bag']:.1%} right, the encoder {right['encoder']:.1%}. "
        "Under each word what it weighs in the bag (all words share the answer), then "
        "what it does in the encoder; plus speaks for praise. Dashed: unknown to both.",
    )


def shuffled_said(record: Mapping[str, Any]) -> str:
    """Say how many answers change when the words of a sentence are shuffled."""
    rows = {row["kind"]: row for row in record["rows"] if row["precision"] == "packed"}
    encoder, tested = rows["encoder"], record["tested"]
    assert rows["bag"]["changed"] == 0
    before, after = (round(encoder[key] * tested) for key in ("accuracy", "shuffled"))
    return (
        f"Shuffle the words of all {tested:,} sentences for testing, and the encoder "
        f"gives another answer to {100 * encoder['changed']:.0f} of a hundred; {after} "
        f"are right instead of {before}. The bag changes none."
    )


def borrowed_curves(films: Mapping[str, Any], borrowed: Mapping[str, Any]) -> Html:
    """Plot the learning curves of a borrowed encoder beside those from nothing."""
    rows = borrowed_rows(films, borrowed)
    ax, means = _curves(rows, ("TF-IDF", "encoder", *BORROWED))
    for size in {size for _, size in means}:  # what the title says
        rest = (means[kind, size] for kind in ("TF-IDF", "encoder", "frozen"))
        assert means["fine-tuned", size] > max(rest)
    return show(
        ax.figure,
        title="Borrowed and fine-tuned, it's ahead of all that start from nothing",
        caption="Lines: means; dots: three recorded seeds, but for fine-tuning on "
        "4,000 and more, which has one.",
    )


def borrowed_said(films: Mapping[str, Any], borrowed: Mapping[str, Any]) -> str:
    """Say what a borrowed encoder gets right, by how it's used."""
    rows = borrowed_rows(films, borrowed)
    means = mean_of(rows, "accuracy", "kind", "size")
    right = {key: f"{100 * value:.0f} %" for key, value in means.items()}
    few, all_ = 200, max(row["size"] for row in rows)
    assert means["frozen", few] > means["TF-IDF", few]
    assert means["frozen", all_] < means["TF-IDF", all_]
    return (
        f"**Frozen**, with a linear map on its vectors, it gets {right['frozen', few]} "
        f"right after only {few} sentences, where counting gets "
        f"{right['TF-IDF', few]}; with all of them counting has overtaken it, "
        f"{right['TF-IDF', all_]} to {right['frozen', all_]}. **Fine-tuned**, which "
        "means that all of its weights go on learning, it gets "
        f"{right['fine-tuned', few]} with {few} and {right['fine-tuned', all_]} with "
        "all."
    )


def held_back_said(films: Mapping[str, Any], stopped: Mapping[str, Any]) -> str:
    """Say what a network gets right that is stopped when validation says so."""
    before = mean_of(
        [row for row in films["rows"] if row["kind"] == "encoder"], "accuracy", "size"
    )
    after, few = mean_of(stopped["rows"], "accuracy", "size"), 1000
    by = [row["temperature"] for row in stopped["rows"] if row["size"] == few]
    return (
        "The other repair is regularisation: early stopping, and the dropout that "
        "validation prefers. Then temperatures from "
        f"{min(by):.1f} to {max(by):.1f} are enough, but the accuracy drops from "
        f"{100 * before[few,]:.0f} % to {100 * after[few,]:.0f} %. So being "
        "too sure isn't what makes the encoder wrong."
    )


def cost_said(films: Mapping[str, Any], borrowed: Mapping[str, Any]) -> str:
    """Say what each model takes to learn from all sentences, and to read new ones."""
    rows = borrowed_rows(films, borrowed)
    largest = max(row["size"] for row in rows)
    seconds = mean_of(rows, "cpu_seconds", "kind", "size")
    reading = mean_of(films["rows"], "reading", "kind", "size")
    took = {kind: f"{seconds[kind, largest]:.0f}" for kind, _ in seconds}
    times = _as_long(reading["encoder", largest] / reading["TF-IDF", largest])
    return (
        "What does it all cost? With all sentences the encoder from nothing learns for "
        f"{took['encoder']} seconds of one processor, "
        f"{_as_long(seconds['encoder', largest] / seconds['TF-IDF', largest])} as "
        f"TF-IDF; the frozen one takes {took['frozen']} seconds, nearly all of them to "
        f"read the sentences, and fine-tuning {took['fine-tuned']}. To read a new "
        f"sentence the encoder from nothing takes {times} as TF-IDF."
    )


def _as_long(times: float) -> str:
    """Say how many times as long something takes."""
    return {1: "as long", 2: "twice as long"}.get(
        round(times), f"{times:.0f} times as long"
    )


def by_label(record: Mapping[str, Any]) -> Html:
    """Show F1 of each label, functions as written and in disguise, by model."""
    groups = grouped(record["rows"], "disguise", "kind")

    def mean(disguise: bool, kind: str) -> list[float]:
        each = torch.tensor([r["each"] for r in groups[disguise, kind]]).mean(dim=0)
        return [*each.tolist(), each.mean().item()]

    yes = record["always yes"]
    always = [f"{one:.2f}" for one in (*yes["each"], yes["macro"])]
    names = (*record["labels"], "mean: macro")
    columns = []
    for disguise in (False, True):
        counted, read = (mean(disguise, kind) for kind in ("TF-IDF", "encoder"))
        columns += [_higher(counted, read), _higher(read, counted)]
    rows = [*zip(names, always, *columns, strict=True)]
    counting = Markup('<span style="white-space: nowrap">TF-IDF</span>')
    header = ["", "always yes", counting, "encoder"]
    header += [Markup("{}, disguised").format(kind) for kind in (counting, "encoder")]
    bag, blind = (
        "{:.2f} and {:.2f}".format(*(mean(one, kind)[-1] for one in (False, True)))
        for kind in ("bag", "no positions")
    )
    caption = (
        "F1 of each label, the mean of three recorded seeds; thresholds from "
        "validation. Bold: the higher of a pair. Macro of a bag of embeddings, as "
        f"written and disguised: {bag}; of an encoder without positions: {blind}."
    )
    return show_table(header, rows, caption)


def _higher(numbers: Sequence[float], others: Sequence[float]) -> list[str]:
    """Return numbers as a column of text, bold where they are above the others."""
    two = ([f"{number:.2f}" for number in some] for some in (numbers, others))
    bold = Markup("<strong>{}</strong>")
    return [bold.format(a) if a > b else a for a, b in zip(*two, strict=True)]


def disguise_said(record: Mapping[str, Any], deeper: Mapping[str, Any]) -> str:
    """Say where the encoder wins, where it doesn't, and what a second layer changes."""
    groups, labels = grouped(record["rows"], "disguise", "kind"), record["labels"]
    means = {
        one: torch.tensor([run["each"] for run in runs]).mean(dim=0)
        for one, runs in groups.items()
    }
    gaps = dict(
        zip(labels, means[True, "encoder"] - means[True, "TF-IDF"], strict=True)
    )
    wins = {label for label, gap in gaps.items() if gap > 0.02}
    loses = [f"*{label}*" for label, gap in gaps.items() if gap < -0.02]
    assert wins == {"reads or writes", "ignores a parameter", "rebinds a parameter"}
    assert "*calls its own name*" in loses
    one = {hidden: means[hidden, "encoder"].mean().item() for hidden in (False, True)}
    two = mean_of(deeper["rows"], "tuned", "disguise")
    return (
        "In disguise the encoder is ahead for *rebinds a parameter* and *ignores a "
        "parameter*, which ask where else a name stands, and for *reads or writes*, "
        "where it does little better than always saying yes. It's behind for "
        f"{', '.join(loses)}. A second layer hardly helps: its macro F1 goes from "
        f"{one[False]:.2f} to {two[False,]:.2f} as written, and from {one[True]:.2f} "
        f"to {two[True,]:.2f} in disguise."
    )
