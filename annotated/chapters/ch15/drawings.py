"""Chapter 15, BERT: its drawings, tables, proofs, and what is measured live."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

from annotated.attention import record_attention
from annotated.bert import Bert, BertConfig, mask_tokens
from annotated.data.functions import tokens_of
from annotated.data.wordpiece import cut_word
from annotated.devices import device_of
from annotated.page.diagrams import LINE, NOTE, Drawing
from annotated.page.frames import Choice, Html, Switch, explorer, static
from annotated.page.frames import Text as Field
from annotated.page.notebook import (
    check_close,
    check_same,
    recorded_if_any,
    show,
    show_table,
)
from annotated.page.packed import pack_bert, unpack_bert
from annotated.page.plots import LINES, MARKERS, OTHER, THIS, name_lines
from annotated.page.records import borrowed_rows, dots, grouped, mean_of, span
from annotated.page.references import torch_weights
from annotated.page.svg import COLOURS
from annotated.recipes.bert import GapFiller
from annotated.recipes.pretraining import Tokens
from annotated.training import evaluating
from annotated.transformer import ACTIVATIONS

MASK = "[MASK]"

# ---- hide and guess ------------------------------------------------------------


def gap() -> Html:
    """Draw a line of code with a gap: what BERT sees, and what a GPT would see."""
    before, after = ["if", "source", "is"], ["None", ":"]
    drawing = Drawing(350, 150)
    for row, (top, name) in enumerate(
        ((22, "From both sides"), (96, "From the left alone"))
    ):
        x = 6.0
        drawing.text(6, top - 6, name, anchor="start", bold=True)
        for i, token in enumerate([*before, "", *after]):
            width = 7.85 * len(token) + 9 if token else 40
            if not token:
                drawing.frame(x, top, width, 24, shade=0.3, color="this")
                drawing.text(x + width / 2, top + 17, "?", bold=True)
            elif row and i > len(before):
                drawing.frame(x, top, width, 24, dashed=True)
            else:
                drawing.frame(x, top, width, 24, shade=0.12, color="other")
                drawing.text(x + width / 2, top + 17, token, code=True)
            x += width + 3
        said = "None? not? self? 0?" if row else "not, what else?"
        drawing.text(6, top + 24 + LINE + 2, said, anchor="start", size=NOTE)
    return drawing.figure(
        alt="A line of code with a gap: if source is, gap, None:. If you see both "
        "sides, you guess not. From the left side alone, much is possible.",
        caption="Gaps are easier to fill from both sides.",
    )


def hidden_row(
    tokens: Sequence[str], read: Sequence[str], asked: Tensor, answers: bool = True
) -> Html:
    """Draw a row of tokens, what is read instead, and what is asked for."""
    spots, x, line = [], 2.0, 0
    pairs = zip(tokens, read, strict=True)
    width = [7.85 * max(map(len, pair)) + 8 for pair in pairs]
    for i, wide in enumerate(width):
        if x + wide > 346:
            x, line = 2.0, line + 1
        spots.append((i, x, line))
        x += wide + 4
    high = 82
    drawing = Drawing(350, high * (line + 1) - 10)
    for i, x, line in spots:
        top, middle = high * line, x + width[i] / 2
        masked, color = read[i] == MASK, "this" if asked[i] else "other"
        if asked[i] and answers and not masked:
            color = "right" if read[i] == tokens[i] else "wrong"
        shade = 0.1 if color == "other" else 0.35
        drawing.frame(x, top + 2, width[i], 22, shade=shade, color=color)
        drawing.text(middle, top + 18, read[i], code=True)
        if asked[i]:
            drawing.arrow((middle, top + 28), (middle, top + 44))
            drawing.frame(x, top + 47, width[i], 22)
            drawing.text(middle, top + 63, tokens[i] if answers else "?", code=True)
    where = asked.nonzero().flatten().tolist()
    named = ", ".join(tokens[i] for i in where) if answers else f"{len(where)} tokens"
    return drawing.figure(alt=f"Read: {' '.join(read)}. Asked for: {named}.")


def check_hide(hide: Callable) -> None:
    """Prove that ``hide`` and the module change as many tokens as they should."""
    torch.manual_seed(0)
    tokens = torch.randint(2, 1000, (400, 500))  # 0 and 1 are special
    tokens[:, -50:] = 0
    ordinary = torch.arange(2, 1000)
    wanted = torch.tensor([0.15, 0.8, 0.1, 0.1])
    for name, (read, asked) in {
        "hide": hide(tokens, 1, ordinary),
        "mask_tokens": mask_tokens(tokens, 1000, 1, (0, 1)),
    }.items():
        assert not asked[tokens == 0].any(), "padding is never asked for"
        assert torch.equal(read[~asked], tokens[~asked])
        masks, same = read[asked] == 1, read[asked] == tokens[asked]
        parts = masks, ~masks & ~same, same
        shares = torch.stack([p.double().mean() for p in parts])
        rate = asked[:, :-50].double().mean()
        found = torch.cat([rate[None], shares])
        # 180,000 draws, 27,000 asked: five deviations are 0.0042 and less than 0.013
        check_close(f"{name}: 15 %, and 80, 10, 10 of them", found, wanted, 0.013)


# ---- the model -----------------------------------------------------------------


def inputs_picture() -> Html:
    """Draw what is added for each token of two sentences: three embeddings."""
    tokens = ["[CLS]", "open", "it", "[SEP]", "read", "##ing", "[SEP]"]
    segments = [0, 0, 0, 0, 1, 1, 1]
    drawing = Drawing(350, 178)
    x = 4.0
    for i, (token, segment) in enumerate(zip(tokens, segments, strict=True)):
        width = 46.0
        middle = x + width / 2
        drawing.text(middle, 16, token, code=True, size=NOTE)
        colors = (("this", 0.3), ("key" if segment else "value", 0.3), ("other", 0.2))
        for row, (said, (color, shade)) in enumerate(
            zip(("token", "AB"[segment], str(i)), colors, strict=True)
        ):
            top = 26 + 40 * row
            drawing.frame(x, top, width - 2, 24, shade=shade, color=color)
            drawing.text(middle - 1, top + 17, said, size=NOTE)
            if row < 2:
                drawing.text(middle - 1, top + 37, "+")
        drawing.arrow((middle - 1, 132), (middle - 1, 150))
        x += width + 3
    drawing.frame(2, 152, 342, 24, shade=0.1, color="this")
    drawing.text(173, 169, "normalise, then the encoder")
    return drawing.figure(
        alt="Seven tokens: [CLS] open it [SEP] read ##ing [SEP]. For each, three "
        "vectors are added: of the token, of its sentence, A or B, and of its position "
        "from 0 to 6.",
        caption="Rows: token, sentence, position. [CLS] is read for the whole, and "
        "[SEP] ends a sentence.",
    )


def small_bert(vocab_size: int) -> Bert:
    """Return an untrained BERT of two layers, for proofs, without dropout."""
    sizes = {"d_model": 12, "heads": 3, "layers": 2, "d_ff": 20, "max_len": 32}
    return Bert(BertConfig(vocab_size, dropout=0.0, **sizes))


def check_bert(read: Callable, guess: Callable) -> None:
    """Prove that ``read`` and ``guess`` are the module, around PyTorch's encoder."""
    torch.manual_seed(0)
    model = small_bert(23).double()
    model.pooler = model.follows = nn.Identity()  # not asked here
    with torch.no_grad():  # norms and biases that are not 1 and 0
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    tokens = torch.tensor([[2, 7, 8, 3, 9, 10, 3], [2, 5, 3, 6, 3, 0, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]])
    real = tokens != 0

    def together(states: Tensor, logits: Tensor) -> Tensor:
        return torch.cat([states, logits], dim=-1)[real]

    def by_hand(model: Bert) -> Tensor:
        states = read(model, tokens, segments)
        return together(states, guess(model, states))

    def module(model: Bert) -> Tensor:
        states = model(tokens, segments)
        return together(states, model.guess_tokens(states))

    def theirs(model: Bert) -> Tensor:
        c = model.config
        sizes = c.d_model, c.heads, c.d_ff, 0.0, ACTIVATIONS[c.activation]
        with torch.device("meta"):
            layer = nn.TransformerEncoderLayer(*sizes, c.norm_epsilon, batch_first=True)
            stack = nn.TransformerEncoder(layer, c.layers, enable_nested_tensor=False)
        x = model.embedding.weight[tokens] + model.segments.weight[segments]
        x = model.norm(x + model.positions.table[: tokens.shape[1]])
        weights = torch_weights(model.encoder)
        given = {"src_key_padding_mask": ~real}
        states = torch.func.functional_call(stack, weights, (x,), given)
        return together(states, guess(model, states))

    check_same("by hand = `Bert`: states, guesses", module, by_hand, model)
    check_same("`nn.TransformerEncoder` within `Bert`", module, theirs, model)


def parameter_count(config: BertConfig) -> dict[str, int]:
    """Return the number of parameters of each part, from the ``config`` alone."""
    c, d = config, config.d_model
    norm = 2 * d
    layer = 4 * (d * d + d) + (d * c.d_ff + c.d_ff) + (c.d_ff * d + d) + 2 * norm
    return {
        "embeddings": (c.vocab_size + c.max_len + c.segments) * d + norm,
        "layers": c.layers * layer,
        "pooler": d * d + d,
        "heads": (d * d + d) + norm + c.vocab_size + (2 * d + 2),
    }


def counts_table() -> Html:
    """Show the number of parameters of BERT's two sizes, part by part."""
    sizes = {
        "base": BertConfig(),
        "large": BertConfig(d_model=1024, heads=16, layers=24, d_ff=4096),
    }
    rows = []
    for name, config in sizes.items():
        parts = parameter_count(config)
        with torch.device("meta"):  # no numbers, shapes alone
            there = sum(p.numel() for p in Bert(config).parameters())
        assert there == sum(parts.values()), name
        whole = there - parts["heads"]
        in_millions = [f"{n / 1e6:.1f}" for n in (*parts.values(), whole, there)]
        rows.append((name, config.layers, config.d_model, *in_millions))
    header = "BERT", "layers", "width", "embeddings", "encoder", "pooler", "heads"
    return show_table(
        (*header, "all but heads", "all"),
        rows,
        "Millions of parameters, computed from the configuration, and equal to what "
        "the class has.",
    )


def check_cut(cut: Callable) -> None:
    """Prove that ``cut`` is the module, and what ``tokenizers`` does if it's there."""
    pieces = {*"abc", "ab", "abc", "##a", "##b", "##bc", "##cab", "##ca"}
    several = [
        "".join(letters) for n in range(1, 6) for letters in product("abcx", repeat=n)
    ]
    ours = [cut(word, pieces) for word in several]
    assert ours == [cut_word(word, pieces) for word in several]
    print(f"✓ cut = cut_word on {len(several):,} words")
    if find_spec("tokenizers"):
        from tokenizers.models import WordPiece

        vocabulary = {piece: i for i, piece in enumerate(["[UNK]", *sorted(pieces)])}
        theirs = WordPiece(vocabulary, unk_token="[UNK]")
        assert ours == [[t.value for t in theirs.tokenize(word)] for word in several]
        print("✓ and WordPiece of tokenizers")


# ---- learning ------------------------------------------------------------------


def neighbour_shares(model: Bert, tokens: Tensor) -> Tensor:
    """Return how much attention goes to the tokens on the left and right, ``(n,)``.

    The mean over all ``tokens``, ``(b, t)`` without padding, for each head of all
    layers, one layer after the other.
    """
    with evaluating(model), torch.no_grad(), record_attention(model) as maps:
        model(tokens.to(device_of(model)))
    beside = [
        w.diagonal(1, 2, 3).sum(dim=-1) + w.diagonal(-1, 2, 3).sum(dim=-1)
        for [w] in maps.values()
    ]
    return torch.cat([one.mean(dim=0) / tokens.shape[1] for one in beside]).cpu()


def plateau_figure(
    losses: Sequence[float], line: float, shares: Sequence[Tensor], every: int
) -> Html:
    """Plot the loss, the line that it waits at, and attention to neighbours.

    Args:
        losses: on held-out text, from before the first step on.
        line: the loss of guessing each token by its share.
        shares: what :func:`neighbour_shares` gave at the same times.
        every: steps from one loss to the next.
    """
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.4))
    steps = [every * i for i in range(len(losses))]
    ax, beside = axes
    ax.plot(steps, losses, color=THIS, label="the loss")
    ax.axhline(line, color=OTHER, linestyle=LINES[1])
    ax.text(steps[-1], line + 0.08, "frequency alone", ha="right", color=OTHER)
    ax.set(title="Loss, nats per hidden token", xlabel="steps", ylim=(1.5, 5))
    best = int(shares[-1].argmax())
    for head in range(len(shares[0])):
        look = {
            "color": THIS if head == best else OTHER,
            "lw": 2 if head == best else 1,
            "label": f"head {head + 1}",
        }
        beside.plot(steps, [100 * float(share[head]) for share in shares], **look)
    beside.set(title="Attention to both neighbours, %", xlabel="steps", ylim=(0, 100))
    return show(
        figure,
        title="It falls fast when a head finds the neighbours",
        caption=f"The first {steps[-1]} steps, on held-out pieces of 32 tokens. Right: "
        "a line for each of the four heads, blue for the one that ends highest.",
    )


def neighbours_figure(record: Mapping[str, Any]) -> Html:
    """Plot the losses of models that may not see neighbours, or nothing else."""
    names = {
        "as it is": ("all tokens in sight", THIS),
        "hidden": ("neighbours hidden", COLOURS["wrong"]),
        "alone": ("neighbours alone", COLOURS["value"]),
    }
    figure, ax = plt.subplots()
    for i, ((kind,), runs) in enumerate(grouped(record["rows"], "kind").items()):
        name, color = names[kind]
        for seed, run in enumerate(runs):
            steps = range(record["every"], 9999, record["every"])
            x, y = zip(*zip(steps, run["losses"], strict=False), strict=True)
            label = {} if seed else {"label": name}
            ax.plot(x, y, LINES[i], color=color, lw=1.4, **label)
    ax.axhline(record["line"], color=COLOURS["muted"], linewidth=1)
    last = record["every"] * len(record["rows"][0]["losses"])
    at = {"ha": "right", "color": COLOURS["muted"]}
    ax.text(last, record["line"] + 0.08, "the line: frequency alone", **at)
    ax.set(xlabel="steps", ylabel="loss, nats per hidden token", ylim=(1.5, 5))
    name_lines(ax)
    return show(
        figure,
        title="Shown where to look, it doesn't wait",
        caption="Three recorded seeds each. Hidden: in both layers no token may attend "
        "to the one on its left or right; alone: only to these and itself.",
    )


def below(run: Mapping[str, Any], every: int, line: float) -> int | None:
    """Return after how many steps a ``run`` is a nat below the ``line``, if ever.

    ``every``: steps from one of its losses to the next.
    """
    steps = (every * (i + 1) for i, x in enumerate(run["losses"]) if x < line - 1)
    return next(steps, None)


def steepest(run: Mapping[str, Any], every: int) -> float:
    """Return the most that a ``run``'s loss falls in 100 steps, once 120 are over."""
    losses, within = run["losses"][120 // every - 1 :], 100 // every
    pairs = zip(losses, losses[within:], strict=False)
    return max(before - after for before, after in pairs)


def neighbours_said(record: Mapping[str, Any]) -> str:
    """Say what a model learns without its neighbours, and with them alone."""
    runs, every = grouped(record["rows"], "kind"), record["every"]
    left = {
        kind: span([below(run, every, record["line"]) for run in some])
        for (kind,), some in runs.items()
    }
    late = 400
    end = {
        kind: span([run["losses"][late // every - 1] for run in some], ".1f")
        for (kind,), some in runs.items()
    }
    alone = [below(run, every, record["line"]) for run in runs["alone",]]
    hidden, usual = (
        [below(run, every, record["line"]) for run in runs[kind,]]
        for kind in ("hidden", "as it is")
    )
    assert min(alone) == max(alone) and max(hidden) <= max(usual)
    return (
        f"With **neighbours alone** in sight, there's no plateau: after {alone[0]} "
        "steps the loss is a nat below the line, which usually takes "
        f"{left['as it is']} steps. With **neighbours hidden** the wait is no longer "
        f"than usual ({left['hidden']} steps). So a model waits for *a* place to look, "
        "and neighbours are the best that it can find: further away there's less to "
        f"learn, and after {late} steps the loss is {end['hidden']} instead of "
        f"{end['as it is']}. Shown where to look, it doesn't wait."
    )


#: changes of the training that are compared, as the record names them
DELAYS = (
    "as it is",
    "a third of the rate",
    "three times the rate",
    "three times the rate, no warm-up",
    "a quarter of the batch",
    "long texts",
)


def delays_said(record: Mapping[str, Any], neighbours: Mapping[str, Any]) -> str:
    """Say how a plateau is told from slow progress, and what keeps a model there.

    ``neighbours`` is the record of :func:`neighbours_said`.
    """
    every, line = record["every"], record["lines"]["32"]
    runs = [run for run in record["rows"] if run["kind"] in DELAYS]
    both = [*runs, *neighbours["rows"]]
    falls = [
        steepest(run, every) for run in both if below(run, every, line) is not None
    ]
    stays = [steepest(run, every) for run in both if below(run, every, line) is None]
    assert max(stays) < 0.25 < min(falls), (stays, falls)
    left = {
        kind: [below(run, every, line) for run in some]
        for (kind,), some in grouped(runs, "kind").items()
    }
    fast, faster, few = (
        left[kind]
        for kind in (
            "three times the rate",
            "three times the rate, no warm-up",
            "a quarter of the batch",
        )
    )
    assert not any((*fast, *faster, *left["long texts"])) and len(few) == 3
    (one,) = (step for step in few if step)
    return (
        "By its slope, roughly. We recorded runs at several rates, with several "
        "batches. Runs that never came a nat below the line fell by at most "
        f"{max(stays):.2f} nats in any 100 steps (after the first 120). Runs that did "
        f"fell by {min(falls):.2f} or more in some hundred. So **a loss near the line "
        "that gains less than a quarter of a nat in 100 steps is still waiting.**\n\n"
        "What keeps a model there? **The learning rate.** With BERT's 15 % of tokens "
        f"and our rate, it's left after {span(left['as it is'])} steps, with a third "
        f"of the rate after {span(left['a third of the rate'])}. With *three times* it "
        "never gets there, with a warm-up or without: post-norm doesn't tolerate it "
        "(page 6b measures that). **The batch size.** With a quarter of the "
        f"texts, only one of three seeds gets there, after {one} steps. With a quarter "
        "of the texts at full length none does, perhaps because neighbours are harder "
        "to find among 128 positions than among 32. So ours learns from short pieces "
        "first. (BERT did, too: 128 tokens for nine tenths of its steps, then 512.)"
    )


def masking_table(record: Mapping[str, Any], labels: Mapping[str, Any]) -> Html:
    """Show what each way to hide tokens taught; ``labels`` has what nothing gives."""
    rows = []
    for (kind,), runs in grouped(record["rows"], "kind").items():
        entries = ("masks", "loss", ".2f"), ("shown", "accuracy", ".0%")
        masks, shown = (
            dots((run[name][key] for run in runs), form) for name, key, form in entries
        )
        rows.append((kind, masks, shown, dots((r["fine-tuned"] for r in runs), ".2f")))
    nothing = grouped(labels["rows"], "kind", "size")["scratch", record["labels"]]
    rows.append(("no pretraining", "", "", dots((r["tuned"] for r in nothing), ".2f")))
    header = "asked for", "loss behind masks", "knows what it sees", "fine-tuned F1"
    caption = (
        "A number for each of three seeds. 500 steps with pieces of 32 tokens and "
    )
    caption += "250 with whole functions, on which the loss is measured."
    return show_table(header, rows, caption)


def masking_said(record: Mapping[str, Any], labels: Mapping[str, Any]) -> str:
    """Say what each way to hide was good for; ``labels`` has what nothing gives."""

    def means(read: Callable[[Mapping[str, Any]], float]) -> list[float]:
        """Of numbers as the table shows them."""
        groups = grouped(record["rows"], "kind").values()
        return [mean(float(f"{read(run):.2f}") for run in runs) for runs in groups]

    hidden = means(lambda row: row["masks"]["loss"])
    shown = means(lambda row: row["shown"]["accuracy"])
    tuned = means(lambda row: row["fine-tuned"])
    nothing = grouped(labels["rows"], "kind", "size")["scratch", record["labels"]]
    alone = mean(float(f"{run['tuned']:.2f}") for run in nothing)
    # BERT's way, masks alone, 30 %, 40 %, as many kept
    return (
        f"**Masks alone.** Shown a token, the model can name it in {shown[1]:.0%} of "
        "the cases: it was never asked, so it didn't keep it. Fine-tuned it gets "
        f"{tuned[1]:.2f}, *less* than without any pretraining ({alone:.2f}). With "
        f"BERT's two tenths it knows {shown[0]:.0%} and gets {tuned[0]:.2f}. Our "
        "recipe is the last way, where half of what's asked for stays in sight: it "
        f"knows {shown[4]:.0%} and gets {tuned[4]:.2f}. But this way also asks for "
        "four times as many tokens as BERT, and we haven't tried one change without "
        "the other. And so short a pretraining hardly pays: the best way gains "
        f"{max(tuned) - alone:.2f}, and {sum(one < alone for one in tuned)} of 5 are "
        "behind no pretraining at all.\n\n"
        "**Don't carry this over to large models**, which may be wide enough to guess "
        "one token and keep another. In BERT's own ablation (appendix C.2), masks "
        "alone cost nothing on MNLI (84.3 % against 84.2), but 0.5 points on named "
        "entities, and 0.9 if the states are only read.\n\n"
        "**More gaps.** With 30 and 40 % our models guess better than with 15 % after "
        f"as many steps ({hidden[2]:.2f} and {hidden[3]:.2f} nats against "
        f"{hidden[0]:.2f}), perhaps because every text asks more questions. "
        "Fine-tuned, the seeds overlap. For large models 40 % has been found better "
        "than 15 ([Wettig et al., 2023](https://arxiv.org/abs/2202.08005))."
    )


def pairs_said(record: Mapping[str, Any]) -> str:
    """Say what common words tell of two sentences, and what BERT learned of it."""
    runs = grouped(record["rows"], "kind")["next",]
    words, model = ([100 * run[key] for run in runs] for key in ("topic", "model"))
    return (
        "We tried it on the sentences of Python's docstrings. If you say “it follows” "
        "whenever two sentences share rare words, you're right on "
        f"{mean(words):.0f} % of the pairs. Our miniature got {span(model, '.0f')} %, "
        "and BERT 97 to 98 %, says its paper."
    )


# ---- guess what is hidden --------------------------------------------------------

HIDDEN = "?"  # as it is typed: no token of Python's
BEST = 5  # guesses that are shown of each
ORDERS = ["neither", "number 1", "number 2", "the surer one"]
HIDING = {  # lines, and what is hidden in them
    "if source ? ? None:\n    return source": ("is", "not"),
    "if source is ? ?:\n    return source": ("not", "None"),
    "def __exit__(self, *?):\n    self.close(*?)": ("args", "args"),
    "def f(*args, **?):\n    g(*args, **?)": ("kwargs", "kwargs"),
    "try:\n    return data[key]\n? ?:\n    return None": ("except", "KeyError"),
    "if x < 0:\n    raise ?('bad')": ("ValueError",),
}


def guessed(model: Bert, words: Tokens, text: str, order: str) -> dict[str, Any]:
    """Return what a model makes of a ``text``, as the explorer does.

    Args:
        text: lines of Python, with ``HIDDEN`` for one or two tokens.
        order: which of two is filled in first, one of ``ORDERS``.

    Returns:
        ``"tokens"``, which of them are ``"unknown"``, and the best ``"guesses"`` for
        each hidden one, with their chances. Where one of two is filled in, its number
        is ``"first"``; ``"again"`` are then the guesses for the other one, ``"kept"``
        the chance that is left to what was its best guess, and ``"changed"`` says
        whether another one is best.
    """
    name = "_hidden_"
    tokens = tokens_of(text.replace(HIDDEN, name))
    tokens = tuple(HIDDEN if token == name else token for token in tokens)
    ids = torch.tensor(words.row(tokens))
    hidden = [i for i, token in enumerate(tokens) if token == HIDDEN]
    ids[hidden] = words.mask

    def chances() -> Tensor:
        with evaluating(model):
            logits = model.guess_tokens(model(ids[None]))[0]
        logits[:, list(words.special)] = -torch.inf  # they are never an answer
        return logits.softmax(dim=-1)

    def best(row: Tensor) -> list[tuple[str, float]]:
        values, places = row.topk(BEST)
        symbols = [words.symbols[i] for i in places.tolist()]
        return list(zip(symbols, values.tolist(), strict=True))

    at_once = chances()[hidden]
    found = {
        "tokens": tokens,
        "unknown": (ids == words.unknown).tolist(),
        "guesses": [best(row) for row in at_once],
        "first": None,
    }
    if len(hidden) == 2 and order != ORDERS[0]:
        sure, guess = at_once.max(dim=-1)
        first = sure.argmax().item() if order == ORDERS[3] else ORDERS.index(order) - 1
        ids[hidden[first]] = guess[first]
        again = chances()[hidden[1 - first]]
        before = guess[1 - first]
        found |= {"first": first, "again": best(again), "kept": again[before].item()}
        found["changed"] = again.argmax().item() != before.item()
    return found


def mask_guesser(model: Bert, words: Tokens) -> Html:
    """Show a BERT that guesses what a reader hides in lines of Python.

    The ``model`` comes with the page, in eight bits a number.
    """
    packed = pack_bert(model, words)
    rounded, _ = unpack_bert(packed)
    rounded.double()
    texts = [*HIDING]
    data = {
        "model": packed,
        "orders": ORDERS,
        "best": BEST,
        "known": [{"text": text, "hidden": HIDING[text]} for text in texts],
        "letters": 400,
        "room": 230,
    }
    states = [(texts[0], order) for order in ORDERS]
    states += [(text, ORDERS[1 + i % 3]) for i, text in enumerate(texts[1:])]
    checks = [
        ({"text": text, "order": order}, guessed(rounded, words, text, order))
        for text, order in states
    ]
    return explorer(
        static("ch15/mask_guesser.js"),
        data,
        [
            Field(
                "text",
                "Python, with a ? for each hidden token",
                texts[0],
                texts,
                most=data["letters"],
                code=True,
            ),
            Choice("order", "fill in first", ORDERS, start=ORDERS[3]),
            Switch("shown", "show what stood there"),
        ],
        label="Guess hidden tokens",
        checks=checks,
        question="Hide two tokens that must agree. Do the two best guesses agree when "
        "both are guessed at once?",
        caption="Our BERT in your browser, each number rounded to eight bits. It reads "
        "any number as 0 and any string as “…”. Among its guesses ⏎ ends a line, ⇥ and "
        "⇤ begin and end an indented block. Dashed: a token that it doesn't know.",
    )


# ---- the published BERT --------------------------------------------------------

GAPS = (
    "The capital of France is [MASK].",
    "A robin is a kind of [MASK].",
    "A robin is not a kind of [MASK].",
    "The keys to the cabinet [MASK] on the table.",
    "He put the milk back into the [MASK].",
)


def gaps_table(model: GapFiller | None, texts: Sequence[str] = GAPS) -> Html | None:
    """Show a BERT's likeliest pieces for the gaps of texts, of one gap each.

    Without a ``model``, show what Google's guessed when it was recorded, if it was.
    """
    if model:
        filled, caption = {text: model.fill(text) for text in texts}, ""
    elif record := recorded_if_any("official/bert"):
        rows = {what: rows for (what,), rows in grouped(record["rows"], "what").items()}
        filled = {row["text"]: row["guesses"] for row in rows["gap"]}
        caption = "".join(
            "With Google's weights, our blocks give the logits of transformers "
            f"{row['transformers']}, to within a millionth."
            for row in rows["logits"]
            if "unfinished" not in row
        )
    else:
        return None
    rows = [
        (text, *(f"{piece} {chance:.0%}" for piece, chance in guesses))
        for text, guesses in filled.items()
    ]
    header = "text", "first guess", "2nd", "3rd", "4th", "5th"
    return show_table(header, rows, caption)


# ---- few labels ----------------------------------------------------------------

LABELLED = {
    "TF-IDF": "counting",
    "encoder": "chapter 10's",
    "scratch": "from nothing",
    "pretrained": "fine-tuned",
    "frozen": "frozen",
}
LOOKS = {
    "TF-IDF": {"color": COLOURS["value"], "linestyle": LINES[1], "marker": MARKERS[1]},
    "encoder": {"color": OTHER, "linestyle": LINES[2], "marker": MARKERS[2]},
    "scratch": {"color": COLOURS["key"], "linestyle": LINES[3], "marker": "D"},
    "pretrained": {"color": THIS, "linestyle": LINES[0], "marker": MARKERS[0]},
    "frozen": {"color": COLOURS["query"], "linestyle": LINES[3], "marker": "v"},
}


def few_labels_figure(
    labels: Mapping[str, Any], films: Mapping[str, Any], borrowed: Mapping[str, Any]
) -> Html:
    """Plot both learning curves: our miniature's, and MiniLM's on film sentences."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.9))
    films_rows = [
        row | {"kind": {"fine-tuned": "pretrained"}.get(row["kind"], row["kind"])}
        for row in borrowed_rows(films, borrowed)
    ]
    for ax, rows, key, title in (
        (axes[0], labels["rows"], "tuned", "Our BERT, functions: macro F1, %"),
        (axes[1], films_rows, "accuracy", "MiniLM, film sentences: right, %"),
    ):
        means = mean_of(rows, key, "kind", "size")
        sizes = sorted({row["size"] for row in rows})
        for kind, look in LOOKS.items():
            if (kind, sizes[0]) not in means:
                continue
            for row in rows:
                if row["kind"] == kind:
                    dot = {"color": look["color"], "alpha": 0.35}
                    ax.plot(row["size"], 100 * row[key], ".", **dot)
            line = [100 * means[kind, size] for size in sizes]
            ax.plot(sizes, line, **look, label=LABELLED[kind])
        ax.set(xscale="log", title=title, xlabel="labelled texts")
        ticks = [sizes[0], 1000, sizes[-1]]
        ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
        ax.minorticks_off()
        low, high = ax.get_ylim()
        ax.set_ylim(top=high + 0.12 * (high - low))  # below the title
        name_lines(ax)
    return show(
        figure,
        title="Our small BERT on chapter 10's functions, a borrowed one on its films",
        caption="Pretrained: fine-tuned, frozen. Not pretrained: this BERT (from "
        "nothing), chapter 10's encoder. Lines: means; dots: recorded seeds.",
    )


def few_labels_said(record: Mapping[str, Any]) -> str:
    """Say from how few labels pretraining pays, and how much of it order was for."""
    means = mean_of(record["rows"], "tuned", "kind", "size")
    sizes = sorted({row["size"] for row in record["rows"]})
    few, half, thousand, two, many = sizes
    ahead = {n: means["pretrained", n] - means["scratch", n] for n in sizes}
    shuffled, real, none = (
        means[kind, thousand] for kind in ("shuffled", "pretrained", "scratch")
    )
    gains = list(ahead.values())[1:]
    return (
        "Read the left side from left to right. "
        f"With {few} labels pretraining doesn't help ({means['pretrained', few]:.2f}, "
        f"from nothing {means['scratch', few]:.2f}, and counting is far ahead of "
        f"both). From {half} on, the pretrained model is ahead of the same one from "
        f"nothing, by {min(gains):.2f} to {max(gains):.2f}. With {half} labels it does "
        f"as well as the model from nothing with {thousand:,} or {two:,} "
        f"({means['pretrained', half]:.2f}, {means['scratch', thousand]:.2f}, "
        f"{means['scratch', two]:.2f}); with {thousand:,}, as well as that with "
        f"{many:,} ({means['pretrained', thousand]:.2f} and "
        f"{means['scratch', many]:.2f}). Against chapter 10's encoder, which learns "
        f"from nothing, too, but faster, pretraining is worth less: that one gets "
        f"{means['encoder', two]:.2f} with {two:,}. "
        "It's never ahead of counting by more than a hundredth. And frozen "
        "(a **linear probe**: a logistic regression on its states) it's poor.\n\n"
        "**What did it learn that helps?** Here's a control. Pretrain on the same "
        f"functions, *their tokens shuffled*. With {thousand:,} labels, macro F1 is "
        f"{none:.3f} from nothing, {shuffled:.3f} after shuffled functions, and "
        f"{real:.3f} after real ones. Most of the gain is there without any order: it "
        "seems to be about which tokens occur together. Large models show the same "
        "([Sinha et al., 2021](https://arxiv.org/abs/2104.06644))."
    )
