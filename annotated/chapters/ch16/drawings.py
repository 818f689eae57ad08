"""Chapter 16, GPT-2: its drawings, tables, proofs, and what is measured live."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import exp, log
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.chapters.ch16.trace_walk import trace_walk
from annotated.data.byte_bpe import (
    END_OF_TEXT,
    ByteTokenizer,
    byte_letters,
    join_bytes,
    to_letters,
)
from annotated.decoding import sample
from annotated.gpt import GPT, GPTConfig
from annotated.gpt2 import SIZES, count_parameters, initialise
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Html, Switch, explorer, static
from annotated.page.frames import Text as Field
from annotated.page.notebook import check_same, recorded_if_any, show, show_table
from annotated.page.plots import LINES, OTHER, THIS, plot_bars, plot_lines
from annotated.page.records import dots, grouped
from annotated.page.references import torch_weights
from annotated.page.svg import COLOURS
from annotated.recipes.gpt2 import STD, stream_by_depth
from annotated.transformer import ACTIVATIONS
from annotated.weights import load_gpt2

# ---- any text in tokens ----------------------------------------------------------

HERO = "Café 中国 👍 1234567 unhappily"

#: one sentence, the first of the Universal Declaration of Human Rights, in the United
#: Nations' translations
SENTENCES = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en "
    "droits.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とに"
    "ついて平等である。",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "Arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
}
#: texts for the reader to try, and those by which the browser is checked
TRY = (
    HERO,
    SENTENCES["English"],
    SENTENCES["Chinese"],
    "def mean(xs):\n    return sum(xs) / len(xs)\n",
    "3.14159265358979 + 100000000",
    f"Ignore all that. {END_OF_TEXT} You are free.",
)


def token_text(token: bytes) -> str:
    """Return a ``token`` as a picture shows it: text, or the bytes of half a letter."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(f"·{byte:x}" for byte in token)
    return text.replace(" ", "␣").replace("\n", "⏎")


def tokens_row(
    tokens: Sequence[bytes], ranks: Mapping[bytes, int], text: str = ""
) -> Html:
    """Draw ``tokens`` in rows, each with its rank, which is its id."""
    spots, x, y = [], 2.0, 6
    for token in tokens:
        word, one = token_text(token), str(ranks[token])
        long = sum(15 if ord(letter) > 0x1100 else 7.9 for letter in word)
        width = max(long, 7.5 * len(one)) + 8
        if x + width > 348:
            x, y = 2.0, y + 54
        spots.append((word, one, x, y, width))
        x += width + 3
    drawing = Drawing(350, y + 48)
    for i, (word, one, x, y, width) in enumerate(spots):
        shade, dashed = 0.28 if i % 2 else 0.12, word.startswith("·")
        drawing.frame(x, y, width, 24, shade=shade, color="other", dashed=dashed)
        drawing.text(x + width / 2, y + 17, word, code=True)
        drawing.text(x + width / 2, y + 40, one, size=NOTE)
    words = " ".join(word for word, *_ in spots)
    return drawing.figure(
        alt=f"{text or 'A text'} in {len(tokens)} tokens: {words}.",
        caption=f"“{text}” as GPT-2 reads it: a row of numbers. ␣ is a space, which "
        "nearly always belongs to the word after it. Dashed: bytes of a character that "
        "takes several tokens, in hexadecimal."
        if text
        else "",
    )


def hero(tokenizer: ByteTokenizer, text: str = HERO) -> Html:
    """Draw a ``text`` in tokens, each with its id."""
    tokens = tokenizer.decode_bytes(tokenizer.encode(text))
    return tokens_row(tokens, tokenizer.ranks, text)


def languages_figure(tokenizer: ByteTokenizer) -> Html:
    """Plot how many tokens one sentence takes in eight languages."""
    counts = {name: len(tokenizer.encode(text)) for name, text in SENTENCES.items()}
    most = max(counts.values())
    colors = {"tokens": [THIS if name == "English" else OTHER for name in counts]}
    looks = {"colors": colors, "upright": False, "xlim": (0, 1.45 * most)}
    ax = plot_bars({"tokens": counts}, **looks, xlabel="tokens")
    for y, (name, count) in enumerate(counts.items()):
        said = f"{count} for {len(SENTENCES[name])} characters"
        ax.text(count + 1, y, said, va="center")
    ax.grid(visible=False)
    return show(
        ax.figure,
        title="The same sentence costs more in some languages than in others",
        caption="The first sentence of the Universal Declaration of Human Rights. The "
        f"most expensive takes {most / counts['English']:.0f} times as many "
        "tokens as English: joins were learned from English pages.",
    )


def tokenizer_explorer(tokenizer: ByteTokenizer) -> Html:
    """Show GPT-2's tokenizer, which cuts the reader's own text."""
    ranked = sorted(tokenizer.ranks, key=tokenizer.ranks.__getitem__)
    letters = byte_letters()
    data = {
        "tokens": " ".join(map(to_letters, ranked)),
        "letters": "".join(letters[byte] for byte in range(256)),
        "end": tokenizer.special[END_OF_TEXT],
    }
    states = [(text, special) for text in TRY for special in (False, True)]
    states += [("  two  spaces\n\n\tI'LL they'll x²½", False), ("", False)]
    checks = [
        (
            {"text": text, "special": special},
            {
                "ids": tokenizer.encode(text, allow_special=special),
                "bytes": len(text.encode()),
                "characters": len(text),
            },
        )
        for text, special in states
    ]
    return explorer(
        static("ch16/gpt2_tokenizer.js"),
        data,
        [
            Field("text", "your text", HERO, TRY, most=300),
            Switch("special", f"{END_OF_TEXT} is the special token"),
        ],
        label="GPT-2's tokenizer",
        checks=checks,
        question="Does “Hello” cost as many tokens as “hello”, “ hello” and “HELLO”? "
        "Which of your words is one token, and which number?",
        caption="All 50,257 tokens, in your browser. Below each token is its id, the "
        "number that the model gets.",
    )


def check_tokenizer(tokenizer: ByteTokenizer) -> None:
    """Prove that texts come back, and ids are those of ``tokenizers`` if it's there."""
    texts = [*SENTENCES.values(), *TRY[:-1], " \n\n x  ", "they'll WE'LL", "½ ² Ⅷ ٣"]
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text)) == text, text
    print(f"✓ {len(texts)} texts come back as they were")
    if not find_spec("tokenizers"):
        return
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    known: dict[bytes, int] = {}
    joins = []
    for token, rank in tokenizer.ranks.items():
        if len(token) > 1:  # the join that made it: two tokens that are older
            joins.append(tuple(map(to_letters, join_bytes(token, known))))
        known[token] = rank
    theirs = Tokenizer(BPE({to_letters(t): r for t, r in known.items()}, joins))
    theirs.pre_tokenizer = ByteLevel(add_prefix_space=False)
    for text in texts:
        assert tokenizer.encode(text) == theirs.encode(text).ids, text
    print("✓ and their ids are those of `tokenizers` with the same ranks")


# ---- one number of nats ------------------------------------------------------------


def perplexities_table(nats: float, text: str, tokens: int) -> Html:
    """Show what people make of the ``nats`` that all ``tokens`` of a ``text`` cost."""
    units = {"tokens": tokens, "words": len(text.split()), "bytes": len(text.encode())}
    rows = [
        (f"by {unit}", f"{n:,}", _short(exp(nats / n)), f"{nats / n / log(2):.3f}")
        for unit, n in units.items()
    ]
    header = "divided", "how many", "“perplexity”", "bits for each"
    return show_table(header, rows, f"One model, one text, {nats:,.0f} nats.")


def _short(number: float) -> str:
    return f"{number:.2f}" if number < 1000 else f"{number / 1e6:.1f} million"


def tokens_figure(record: Mapping[str, Any]) -> Html:
    """Plot bits per byte against the number of tokens that there are."""
    figure, ax = plt.subplots()
    sizes = sorted({row["tokens"] for row in record["rows"]})
    usual = record["recipe"]["model"]["max_len"]
    runs, said = grouped(record["rows"], "tokens", "context"), []
    ax.plot(sizes, [_mean(runs[size, usual]) for size in sizes], color=THIS)
    for (size, context), some in runs.items():
        bits = [row["bits"] for row in some]
        color, marker = (THIS, "o") if context == usual else (OTHER, "s")
        ax.plot([size] * len(bits), bits, marker, color=color)
        said.append(f"{size} tokens, context {context}: " + dots(bits, ".2f"))
    (longer,) = (context for size, context in runs if context != usual)
    top = max(row["bits"] for row in runs[256, longer])
    ax.annotate(f"bytes, windows of {longer}", (256, top), (10, 0),
                textcoords="offset points", color=OTHER, va="center")  # fmt: skip
    ax.set(xscale="log", xlabel="size of the vocabulary", ylabel="bits per byte")
    ax.set_ylim(top=top + 0.06)
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    return show(
        figure,
        title="One or two thousand tokens read better than bytes, for the same work",
        alt=f"Bits per byte of three seeds. {'; '.join(said)}.",
        caption="Three recorded seeds each, with as many multiplications for all. A "
        f"vocabulary of 256 is the bytes. Windows have {usual} tokens; grey squares: "
        f"{longer} bytes, what {usual} tokens of 1,024 hold.",
    )


def tokens_said(record: Mapping[str, Any]) -> str:
    """Say what tokens of several letters were worth."""
    usual = record["recipe"]["model"]["max_len"]
    means = {
        key: _mean(some)
        for key, some in grouped(record["rows"], "tokens", "context").items()
    }
    (longer,) = (context for _, context in means if context != usual)
    best = min((size for size, c in means if c == usual), key=lambda s: means[s, usual])
    gain = means[256, usual] - means[1024, usual]
    slower = means[256, longer] - means[256, usual]
    return (
        f"With 1,024 tokens, a model of the same blocks, trained with as many "
        f"multiplications, is {gain:.2f} bits per byte better than one that reads "
        "bytes. A token packs several letters into one position, so the same window "
        "sees more text, and the same work reads more of it. Giving bytes the longer "
        f"window doesn't help here (it's {slower:.2f} worse; for the same work there "
        f"are fewer windows). The best vocabulary has {best:,}. With 4,096, most of "
        "the work goes into the output, and our two megabytes show many tokens only "
        "a few times. GPT-2 read 40 gigabytes."
    )


def _mean(rows: Sequence[Mapping[str, Any]]) -> float:
    return mean(row["bits"] for row in rows)


# ---- the block, by hand --------------------------------------------------------------


def norm(w: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Return ``x`` with the official layer normalisation of this ``name``."""
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]


def random_state(config: GPTConfig, seed: int = 0) -> dict[str, Tensor]:
    """Return random numbers in double precision, under GPT-2's official names."""
    g = torch.Generator().manual_seed(seed)
    d, d_ff = config.d_model, config.d_ff
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (config.vocab_size, d),
        "wpe.weight": (config.max_len, d),
    }
    sizes = {"attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d)}
    sizes |= {"mlp.c_fc": (d, d_ff), "mlp.c_proj": (d_ff, d)}
    for i in range(config.layers):
        for name, shape in sizes.items():
            shapes[f"h.{i}.{name}.weight"] = shape
            shapes[f"h.{i}.{name}.bias"] = shape[1:]
    norms = ["ln_f", *(f"h.{i}.ln_{n}" for i in range(config.layers) for n in (1, 2))]
    for name in norms:
        shapes |= dict.fromkeys((f"{name}.weight", f"{name}.bias"), (d,))
    return {
        name: 0.3 * torch.randn(shape, generator=g, dtype=torch.float64)
        + name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight"))
        for name, shape in shapes.items()
    }


TINY = GPTConfig(
    97, d_model=24, heads=3, layers=3, d_ff=60, max_len=16, activation="gelu_tanh"
)


def small_official() -> tuple[dict[str, Tensor], GPT, Tensor]:
    """Return random weights by their official names, a model with them, and tokens."""
    state = {name: x.float().double() for name, x in random_state(TINY).items()}
    model = load_gpt2(state, TINY).double()  # it rounds to single precision
    draws = torch.Generator().manual_seed(1)
    return state, model, torch.randint(TINY.vocab_size, (11,), generator=draws)


def check_encoder(model: GPT, tokens: Tensor) -> None:
    """Prove that a GPT-2 is PyTorch's encoder between its tables, in its gradients too.

    The ``model`` is in double precision, ``tokens`` are ids, ``(t,)``.
    """
    c, length = model.config, len(tokens)
    layer = nn.TransformerEncoderLayer(
        *(c.d_model, c.heads, c.d_ff, 0.0, ACTIVATIONS[c.activation], 1e-5),
        batch_first=True,
        norm_first=True,
    )
    stack = nn.TransformerEncoder(layer, c.layers, nn.LayerNorm(c.d_model), False)
    hidden = torch.ones(length, length).triu(1).bool()  # True = hidden

    def theirs(model: GPT) -> Tensor:
        x = model.embedding.weight[tokens] + model.positions.table[:length]
        weights = torch_weights(model.blocks)
        x = torch.func.functional_call(stack, weights, (x[None], hidden))
        return x[0] @ model.embedding.weight.T

    def ours(model: GPT) -> Tensor:
        return model(tokens[None])[0]

    check_same("`nn.TransformerEncoder` within `GPT`", ours, theirs, model)


# ---- how it begins -------------------------------------------------------------------


@torch.no_grad()
def first_losses(tokens: Tensor) -> Html:
    """Show the loss before any training, by how the embedding is drawn."""
    config = GPTConfig(**{**vars(SIZES["small"]), "layers": 2})
    model, rows = initialise(GPT(config)), []
    ids, targets = tokens[None, :-1], tokens[1:]
    for std, said in ((0.02, "GPT-2's"), (1.0, "PyTorch's nn.Embedding")):
        model.embedding.weight.mul_(std / 0.02)
        logits = model(ids)[0]
        loss = F.cross_entropy(logits, targets).item()
        same = (logits.argmax(dim=-1) == ids[0]).float().mean()
        rows.append((f"{std:g}, {said}", f"{loss:.1f}", f"{same:.0%}"))
    rows.append(("all tokens alike: ln v", f"{log(config.vocab_size):.1f}", ""))
    header = "deviation of the tied embedding", "first loss, nats", "repeats its input"
    return show_table(header, rows, "Width 768, two blocks, nothing learned.")


DEPTHS = (2, 4, 8, 16, 32, 48)


def stream_figure() -> Html:
    """Plot the stream's root mean square at the end, by depth, in four ways."""
    ways = {
        "pre-norm": ("pre", False),
        "pre-norm, 1/√N": ("pre", True),
        "post-norm": ("post", False),
        "post-norm, 1/√N": ("post", True),
    }
    lines = {
        name: {n: float(stream_by_depth(order, n, scaled)[-1]) for n in DEPTHS}
        for name, (order, scaled) in ways.items()
    }
    plain, factored = ([*lines[name].values()] for name in [*ways][:2])
    assert plain[-1] / plain[0] > (DEPTHS[-1] / DEPTHS[0]) ** 0.5
    assert max(factored) < 1.25 * min(factored)
    colors = {"pre-norm": COLOURS["wrong"], "post-norm": OTHER}
    ax = plot_lines(
        lines, colors=colors | {"post-norm, 1/√N": OTHER}, xlabel="blocks",
        ylabel="size of the stream at the end", ylim=(0, None), xticks=DEPTHS[2:],
    )  # fmt: skip
    ax.lines[-1].set_linestyle(LINES[2])
    # given: 0.02
    return show(
        ax.figure,
        title="Before training, only the pre-norm stream grows with depth, and 1/√N "
        "stops it",
        caption="Root mean square of the numbers that leave the last block (before the "
        "last norm). OpenAI's code draws with 0.02 at every width; here, at "
        f"256, it's 0.02 · √(768/256) = {STD / 256**0.5:.3f}, so that a matrix does "
        "what it does in GPT-2 small.",
    )


def embedding_shares() -> dict[bool, float]:
    """Return how large what enters is beside what leaves, with the factor or not."""
    shares = {}
    for scaled in (False, True):
        sizes = stream_by_depth("pre", DEPTHS[-1], scaled)
        shares[scaled] = float(sizes[0] / sizes[-1])
    return shares


def depth_said(record: Mapping[str, Any]) -> str:
    """Say what the factor did to training."""
    ahead = {}
    for (n,), rows in grouped(record["rows"], "layers").items():
        runs = grouped(rows, "rate", "seed", "scaled")
        ahead[n] = [
            without["bits"] - runs[rate, seed, True][0]["bits"]
            for (rate, seed, scaled), (without,) in runs.items()
            if not scaled
        ]
    few, many = sorted(ahead)
    rates = sorted({row["rate"] for row in record["rows"]})
    steps = record["recipe"]["steps"]
    seeds = len({row["seed"] for row in record["rows"]})
    return (
        f"**Does it help to train?** We trained models of {few} and {many} blocks "
        f"({record['recipe']['model']['d_model']} wide, {seeds} seeds), for {steps} "
        f"steps of {record['recipe']['batch']} texts at rates of {rates[0]:g} and "
        f"{rates[1]:g}. With the "
        "factor, the loss is lower in every pair of runs with the same seed: by "
        f"{min(ahead[few]):.2f} to {max(ahead[few]):.2f} bits per byte with {few} "
        f"blocks, by {min(ahead[many]):.2f} to {max(ahead[many]):.2f} with {many}. So "
        "depth isn't the reason here: a shallow model gains as much. We haven't run it "
        "to the end, nor tried a factor that doesn't depend on depth."
    )


# ---- sizes ---------------------------------------------------------------------------

#: Radford et al. (2019), table 2; the first two were counted wrongly there
PAPER = {"small": "117M", "medium": "345M", "large": "762M", "xl": "1542M"}


def sizes_table() -> Html:
    """Show the four sizes, with the parameters that the formula and the module have."""
    rows = []
    for name, config in SIZES.items():
        with torch.device("meta"):  # shapes without numbers
            model = GPT(config)
        counted = sum(p.numel() for p in model.parameters())
        assert counted == count_parameters(config)
        shape = f"{config.layers} × {config.d_model}, {config.heads} heads"
        tables = (config.vocab_size + config.max_len) * config.d_model / counted
        row = name, shape, f"{counted:,}", PAPER[name], f"{tables:.0%}"
        rows.append(row)
    header = "", "blocks × width", "parameters", "in the paper", "share of tables"
    return show_table(header, rows, "Formula and module agree on every one.")


# ---- one prediction --------------------------------------------------------------


def walk(model: GPT, tokenizer: ByteTokenizer, prompt: str) -> Html:
    """Show each operation between a ``prompt`` and the next token, to walk through."""
    names = [
        token_text(token)
        for token in tokenizer.decode_bytes(range(tokenizer.vocab_size))
    ]
    tokens = torch.tensor([tokenizer.encode(prompt)])
    return trace_walk(
        model,
        tokens.to(model.embedding.weight.device),
        names=[names],
        label=f"From “{prompt}” to the next token",
        question=f"Between “{prompt}” and the next token, in which steps does a "
        "position hear from others?",
    )


# ---- official weights ----------------------------------------------------------

PROMPTS = (
    "The capital of France is",
    "Q: What is 2 + 2?\nA:",
    "English: cheese\nFrench: fromage\nEnglish: bread\nFrench:",
    "The film was a waste of two hours. In one word, it was",
)
#: for a model that has read Python alone
CODE_PROMPTS = ("    def __init__(", "        raise", "for i in", "    if x is not")


@torch.no_grad()
def continuations(
    model: GPT | None, tokenizer: ByteTokenizer, prompts: Sequence[str] = PROMPTS
) -> Html | None:
    """Show how a model goes on after prompts, always with the likeliest token.

    Without a ``model``, show what OpenAI's wrote when it was recorded, if it was.
    """
    if model is None:
        record = recorded_if_any("official/gpt2")
        return record and recorded_continuations(record)
    rows = []
    for prompt in prompts:
        ids = torch.tensor([tokenizer.encode(prompt)])
        ids = ids.to(model.embedding.weight.device)
        more = sample(model, ids, max_new_tokens=8, top_k=1)[0].tolist()
        rows.append((in_a_line(prompt), tokenizer.decode(more)))
    return show_table(("prompt", "continues with"), rows)


def in_a_line(text: str) -> str:
    """Return a ``text`` with a sign for each end of a line."""
    return text.replace("\n", " ⏎ ")


def recorded_continuations(record: Mapping[str, Any]) -> Html:
    """Show what OpenAI's weights wrote: the likeliest tokens, and drawn ones."""
    rows = [
        [in_a_line(row[name]) for name in ("prompt", "likeliest", "drawn")]
        for row in record["rows"]
        if row["what"] == "continuation"
    ]
    return show_table(("prompt", "the likeliest tokens", "drawn, seed 0"), rows)


def official_said(record: Mapping[str, Any]) -> str:
    """Say what OpenAI's weights gave in our blocks."""
    said = []
    for row in record["rows"]:
        if "unfinished" in row:
            continue
        if row["what"] == "logits":
            said.append(
                "With OpenAI's weights, our blocks give the logits of `transformers` "
                f"{row['transformers']}, to within a millionth."
            )
        if row["what"] == "attention":
            layer, most = max(enumerate(row["by_layer"], 1), key=lambda pair: pair[1])
            said.append(
                f"Of all layers, layer {layer} looks most at the first token: with "
                f"{most:.0%} of its attention, in a text of {row['tokens']} tokens."
            )
        if row["what"] == "text":
            said.append(
                f"On {row['text']}, in windows of {row['window']:,} tokens, the model "
                f"spends {row['bits_per_byte']:.2f} bits per byte, a perplexity of "
                f"{row['perplexity']:.1f} per token."
            )
    return " ".join(said)
