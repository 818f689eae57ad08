"""Page 16b, planks: GPT-2's block and today's, what each part buys, and what is kept.

Records are those of ``benchmarks/ch16/planks.py`` and its neighbour: one for each rate,
the faster first.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch16.planks import GPT2_PARTS, PLANKS, plank_config
from annotated.data.glassllm import CONFIG, FILES, decode, encode, to_llama
from annotated.data.vendored import MissingError, vendored_file
from annotated.decoding import sample
from annotated.gpt import GPT, GPTConfig
from annotated.page.diagrams import GAP, LINE, PLUS, Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show, show_table
from annotated.page.plots import OTHER, THIS
from annotated.page.svg import COLOURS
from annotated.positions import rotary_embedding
from annotated.transformer import FeedForward
from annotated.variants import QueryKeyNormAttention, cache_numbers
from annotated.weights import StateDict, load_llama, read_safetensors

Record = Mapping[str, Any]
MISSING = (
    "The model's file, annotated/vendor/glassllm/model.safetensors, is not in this "
    "installation, so what it gives was recorded (book/results/carroll.json)."
)

# ---- two blocks ----------------------------------------------------------------------

Part = tuple[list[str], bool]  #: lines of a box, and whether it is lit
BLOCKS: dict[str, list[list[Part]]] = {
    "GPT-2, 2019": [
        [(["embedding", "+ position"], False)],
        [
            (["LayerNorm"], False),
            (["attention", "keys for every head", "as they are", "of all before"],
             False),
        ],
        [
            (["LayerNorm"], False),
            (["network", "two maps, GELU", "with biases"], False),
        ],
        [(["LayerNorm", "output"], False)],
    ],
    "today": [
        [(["embedding", "nothing added"], True)],
        [
            (["RMSNorm"], True),
            (["attention", "keys that heads share", "normed and turned", "of a window"],
             True),
        ],
        [
            (["RMSNorm"], True),
            (["network", "three maps, SwiGLU", "no biases"], True),
        ],
        [(["RMSNorm", "output"], True)],
    ],
}  # fmt: skip


def _boxes(
    drawing: Drawing, middle: float, top: float, width: float, parts: Sequence[Part]
) -> float:
    """Draw boxes below each other, the lit ones in colour; return where they end."""
    y = top
    for lines, lit in parts:
        high = LINE * len(lines) + 9
        if lit:
            place = (middle - width / 2, y, width, high)
            drawing.frame(*place, shade=0.22, outline=False)
        y = drawing.box(middle, y, width, *lines) + GAP
    return y - GAP


def hero() -> Html:
    """Draw GPT-2's block beside today's, with the parts that changed in colour."""
    drawing = Drawing(356, 440)
    for i, (name, (entry, *branches, end)) in enumerate(BLOCKS.items()):
        stream, middle, width = 14 + 180 * i, 102 + 180 * i, 142
        drawing.text(stream - 8, 14, name, anchor="start", bold=True)
        y = _boxes(drawing, middle, 24, width, entry)
        drawing.line((middle, y), (middle, y + 8), (stream, y + 8), width=4)
        points, top = [(stream, y + 6)], y + 18
        for parts in branches:
            drawing.arrow((stream, top), (middle, top), (middle, top + GAP))
            bottom = _boxes(drawing, middle, top + GAP, width, parts)
            plus = bottom + GAP
            drawing.arrow((middle, bottom), (middle, plus), (stream + PLUS, plus))
            drawing.plus(stream, plus)
            drawing.line(*points, (stream, plus - PLUS), width=4)
            points, top = [(stream, plus + PLUS)], plus + 22
        drawing.line(*points, (stream, top), width=4)
        drawing.arrow((stream, top - 2), (middle, top - 2), (middle, top + 10), width=4)
        bottom = _boxes(drawing, middle, top + 10, width, end)
        drawing.height = round(bottom + 6)
    return drawing.figure(
        alt="Two flows side by side, of the same shape: embedding; a stream, to which "
        "attention and a network add what they make of the normalised stream; norm and "
        "output. Each box of today's, on the right, differs from GPT-2's beside it.",
        caption="Blue: replaced since. No model has all of it; the table says which "
        "has what.",
    )


def models_table() -> Html:
    """Show which of today's models has which part, and its name in a configuration."""
    header = ("plank", "in a configuration", "GPT-2", "Llama 3", "Qwen3", "Gemma 3")
    rows = [
        ("RMSNorm", "rms_norm_eps", "–", "✓", "✓", "✓"),
        ("rotary positions", "rope_theta", "–", "✓", "✓", "✓"),
        ("gated network", "hidden_act", "–", "SwiGLU", "SwiGLU", "GELU inside"),
        ("grouped queries", "num_key_value_heads", "–", "✓", "✓", "✓"),
        ("no biases", "attention_bias: false", "–", "✓", "✓", "✓"),
        ("QK-norm", "use_qk_norm, or unsaid", "–", "–", "✓", "✓"),
        ("window", "sliding_window", "–", "–", "–", "5 of 6 layers"),
        ("latent attention", "kv_lora_rank", "–", "–", "–", "–"),
        ("experts", "n_routed_experts", "–", "–", "–", "–"),
    ]
    more = ["✓", "✓", "SwiGLU", "–", "✓", "on what is kept", "–", "✓", "✓"]
    return show_table(
        (*header, "DeepSeek-V2"),
        [(*row, last) for row, last in zip(rows, more, strict=True)],
        caption="Models of 2024 and 2025 beside GPT-2 (Llama 3 8B, Qwen3 8B, Gemma 3 "
        "27B), from their reports and configurations.",
    )


# ---- the planks ----------------------------------------------------------------------


def check_parts(rms_norm: Callable, swiglu: Callable, turn: Callable) -> None:
    """Prove a notebook's norm, network and turned pairs against PyTorch and the module.

    Args:
        rms_norm: of x (…, d) and a gain (d).
        swiglu: of x and the three matrices, gate, inner and outer.
        turn: of queries or keys (…, t, k), in halves.
    """
    norm, x = nn.RMSNorm(8, eps=1e-6), torch.randn(2, 5, 8)
    check_same(
        "equals nn.RMSNorm", nn.RMSNorm.forward, lambda n, x: rms_norm(x, n.weight),
        *(norm, x),
    )  # fmt: skip
    check_same(
        "equals FeedForward(activation='swiglu')",
        FeedForward.forward,
        lambda n, x: swiglu(x, n.gate.weight, n.inner.weight, n.outer.weight),
        *(FeedForward(8, 12, activation="swiglu", bias=False), x),
    )
    q, k = torch.randn(2, 3, 7, 8).double()  # (h, t, k) each
    halves = [*range(0, 8, 2), *range(1, 8, 2)]
    theirs = rotary_embedding(q), rotary_embedding(k)
    check_close(
        "scores of turned halves = chapter 5's, of pairs",
        turn(q[..., halves]) @ turn(k[..., halves]).mT,
        theirs[0] @ theirs[1].mT,
        1e-9,
    )


@torch.no_grad()
def check_scores() -> None:
    """Check that larger maps change no scores where queries and keys are normalised."""
    found = []
    for kind in (MultiHeadAttention, QueryKeyNormAttention):
        torch.manual_seed(0)
        attention, x = kind(64, 4, bias=False), torch.randn(1, 100, 64)
        for _ in range(2):
            q, k, _v = attention.project(x)
            found.append((q @ k.mT / 16**0.5).abs().max().item())
            for one in (attention.query_map, attention.key_map):
                one.weight *= 10
    before, after, bounded, still = found
    assert after > 90 * before and abs(still - bounded) < 1e-3 and still < 4
    print(
        "the largest score of a hundred random vectors, in heads of width 16, and with "
        f"maps ten times as large: {before:.1f} and {after:.0f}; with the norm "
        f"{bounded:.2f} and {still:.2f}, below √16"
    )


# ---- what each one buys --------------------------------------------------------------

CONTROLS = ("GPT-2, larger", "GPT-2, smaller")
BOTH = ("all but the window", "all")


def gains(record: Record) -> dict[str, list[float]]:
    """Return bits per character below GPT-2's mean, for each model and seed."""
    bits: dict[str, list[float]] = {name: [] for name in PLANKS}
    for row in record["rows"]:
        bits[row["plank"]].append(row["bits"])
    mean = statistics.mean(bits["GPT-2"])
    return {name: [mean - one for one in several] for name, several in bits.items()}


def told(records: Sequence[Record], name: str, other: str = "GPT-2") -> str:
    """Return how a model compares with another: "better", "worse", or "" for neither.

    It is better if at each rate each of its seeds is better than each of the other's.
    """
    found = set()
    for one in map(gains, records):
        ours, theirs = one[name], one[other]
        better, worse = min(ours) > max(theirs), max(ours) < min(theirs)
        found.add("better" if better else "worse" if worse else "")
    return found.pop() if len(found) == 1 else ""


def step_ratio(records: Sequence[Record], name: str) -> float:
    """Return the CPU time of a training step, as a multiple of GPT-2's."""
    ours, theirs = (
        statistics.median(t for one in records for t in one["seconds"][which])
        for which in (name, "GPT-2")
    )
    return ours / theirs


def cache_kilobytes(name: str, length: int = 1000) -> float:
    """Return what a model's cache holds of a text, at two bytes per number, in kB."""
    window = PLANKS[name].options.get("window")
    return 2 * cache_numbers(plank_config(name), length, window) / 1000


def _signed(number: float) -> str:
    text = f"{number:+.2f}".replace("-", "−")
    return "0.00" if text[1:] == "0.00" else text


def planks_table(records: Sequence[Record]) -> Html:
    """Show what each plank changed: bits, parameters, cache, time."""
    each = [gains(record) for record in records]
    sizes = {row["plank"]: row["parameters"] for row in records[0]["rows"]}
    rows = []
    for name in PLANKS:
        told_here = told(records, name) or "–"
        bits = [_signed(statistics.mean(one[name])) for one in each]
        rows.append(
            (name, *bits, told_here, f"{sizes[name]:,}",
             f"{cache_kilobytes(name):.0f}", f"{step_ratio(records, name):.2f}")
        )  # fmt: skip
    rates = [f"rate {record['recipe']['rate']:g}" for record in records]
    recipe, mean = records[0]["recipe"], _means(records, "GPT-2")
    return show_table(
        ("replaced", *rates, "beats GPT-2?", "parameters", "cache, kB", "time"),
        rows,
        caption="Bits per character below GPT-2's mean "
        f"({' and '.join(f'{bits:.3f}' for bits in mean)}), means of three seeds. "
        "“Better”: at both rates, every seed beats every GPT-2 seed; –: neither. "
        "Cache: if 1,000 tokens were read, two bytes per number. Time: CPU of a "
        f"training step, beside GPT-2's. {recipe['steps']:,} steps of "
        f"{recipe['batch']} windows of {recipe['model']['max_len']} characters.",
    )


def _means(records: Sequence[Record], name: str) -> list[float]:
    return [
        statistics.mean(row["bits"] for row in one["rows"] if row["plank"] == name)
        for one in records
    ]


def mean_gains(records: Sequence[Record], name: str) -> list[float]:
    """Return the mean over seeds of a model's bits below GPT-2, at each rate."""
    return [statistics.mean(gains(record)[name]) for record in records]


def planks_picture(records: Sequence[Record]) -> Html:
    """Draw what each plank is worth, a dot for each seed and rate."""
    names = [name for name in PLANKS if name != "GPT-2"]
    figure, ax = plt.subplots(figsize=(8.6, 5.4))
    own = [bits for record in records for bits in gains(record)["GPT-2"]]
    ax.axvspan(min(own), max(own), color=COLOURS["other"], alpha=0.25, linewidth=0)
    for shift, record, marker in zip((-0.17, 0.17), records, "os", strict=True):
        each, rate = gains(record), record["recipe"]["rate"]
        for y, name in enumerate(names):
            color = OTHER if name in CONTROLS else THIS
            face = color if marker == "o" else "none"
            ax.scatter(
                each[name], [y + shift] * len(each[name]), 46, marker=marker,
                facecolor=face, edgecolor=color, label="" if y else f"rate {rate:g}",
                linewidth=1.6,
            )  # fmt: skip
    ax.axvline(0, color=OTHER, linewidth=1)
    ax.axhline(len(names) - len(CONTROLS) - 0.5, color=COLOURS["rule"], linewidth=1)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("bits per character below GPT-2")
    ax.legend(loc="best")
    better = [name for name in names if told(records, name) == "better"]
    return show(
        figure,
        title="What each plank is worth here",
        alt="Dots for three seeds at two learning rates, a row for each model. Right "
        f"of all of GPT-2's seeds at both rates: {', '.join(better)}.",
        caption="Each dot is one seed; further right is better. Grey band: GPT-2's own "
        "seeds, at both rates. Below the line: GPT-2 with a quarter more, or less, in "
        "its networks.",
    )


def beside_rotary(records: Sequence[Record], names: Sequence[str]) -> list[float]:
    """Return the best plank's share of what rotary positions are worth, by rate."""
    gained = [mean_gains(records, name) for name in names]
    best = [max(some) for some in zip(*gained, strict=True)]
    return [
        one / rotary
        for one, rotary in zip(best, mean_gains(records, "rotary"), strict=True)
    ]


def planks_said(records: Sequence[Record]) -> str:
    """Return what the records say; their bands hold what is better, and what is not."""

    def worth(name: str) -> str:
        return " and ".join(f"{x:.2f}" for x in mean_gains(records, name))

    single = [name for name in PLANKS if name not in ("GPT-2", *CONTROLS, *BOTH)]
    assert [name for name in single if told(records, name)] == ["rotary"]
    assert all(told(records, name, "rotary") == "better" for name in BOTH)
    first, second = (record["recipe"]["rate"] for record in records)
    return (
        "**Only rotary positions stand out.** They alone beat GPT-2 with every seed at "
        f"both learning rates: by {worth('rotary')} bits per character, at rates of "
        f"{first:g} and {second:g}. For every other single plank, seeds overlap with "
        "GPT-2's, or the rates disagree. All planks together, with the window or "
        "without, beat rotary positions alone."
    )


# ---- a trained one -------------------------------------------------------------------

PROMPT = "Alice looked at the ship"
ALICE = (
    "Alice was beginning to get very tired of sitting by her sister on the bank, and "
    "of having nothing to do: once or twice she had peeped into the book her sister "
    "was reading, but it had no pictures or conversations in it, “and what is the use "
    "of a book,” thought Alice “without pictures or conversations?”"
)  #: the beginning of her Adventures in Wonderland (1865)


def weights() -> StateDict | None:
    """Return glassllm's tensors by Llama's names, or nothing where the file is missing.

    Raises:
        DataError: if the file is there, but isn't the one that came with the package.
    """
    name = "model.safetensors"
    try:
        file = vendored_file(f"glassllm/{name}", FILES[name])
    except MissingError:
        print(MISSING)
        return None
    return to_llama(read_safetensors(file), CONFIG)


@torch.no_grad()
def check_today(block: Callable[..., Tensor], w: StateDict | None) -> None:
    """Prove that plain tensors, by Llama's names, give what our blocks give.

    Args:
        block: a function of the file's tensors, the number of a layer, and what enters
            that layer (b, t, d).
        w: the tensors of the file, if there.
    """
    if w is None:
        print(MISSING)
        return
    exact = {name: x.double() for name, x in w.items()}
    model = load_llama(w, CONFIG).double()
    ids = torch.tensor([encode(ALICE)])
    x = embedded = exact["model.embed_tokens.weight"][ids]
    for i in range(CONFIG.layers):
        x = block(exact, i, x)
    blocks = model.blocks
    for layer in blocks.layers:
        embedded = layer(embedded)
    claim = f"{CONFIG.layers} blocks on plain tensors = ours, {ids.shape[1]} tokens"
    check_close(claim, x, embedded, 1e-8)
    x = x / (x.square().mean(dim=-1, keepdim=True) + CONFIG.norm_epsilon).sqrt()
    x = x * exact["model.norm.weight"]
    logits = x @ exact["model.embed_tokens.weight"].T
    check_close("and the logits", logits, model(ids), 1e-8)
    count = sum(p.numel() for p in model.parameters())
    assert count == sum(x.numel() for x in w.values())
    c = CONFIG
    assert (c.d_model, c.layers, c.heads, c.kv_heads) == (128, 4, 4, 2)
    assert CONFIG.d_ff == 341 == 2 * 4 * CONFIG.d_model // 3 and CONFIG.tied
    assert (CONFIG.norm_epsilon, CONFIG.rotary_base) == (1e-6, 10_000)
    print(f"✓ {len(w)} tensors with {count:,} numbers, each in one place")


def story(model: GPT, seed: int = 0) -> str:
    """Return how glassllm's ``model`` goes on with a text."""
    written = sample(
        model,
        torch.tensor([encode(PROMPT)]),
        max_new_tokens=60,
        temperature=0.7,
        top_p=0.9,
        generator=torch.Generator().manual_seed(seed),
    )
    return PROMPT + decode(written[0].tolist())


@torch.no_grad()
def careless_losses(w: StateDict) -> dict[str, float]:
    """Return nats per token on a sentence of Carroll's, loaded rightly and wrongly.

    Returns:
        "right"; "pairs", where queries and keys stay in halves though pairs are turned;
        and "epsilon", with 1e-5 in the norms.
    """
    ids = torch.tensor([encode(ALICE)])
    other = GPTConfig(**vars(CONFIG) | {"norm_epsilon": 1e-5})
    models = {"right": load_llama(w, CONFIG), "epsilon": load_llama(w, other)}
    models["pairs"] = load_llama(w, CONFIG)
    for i, layer in enumerate(models["pairs"].blocks.layers):
        for name, one in (("q", "query_map"), ("k", "key_map")):
            halves = w[f"model.layers.{i}.self_attn.{name}_proj.weight"]
            getattr(layer.attention, one).weight.copy_(halves)
    return {
        name: F.cross_entropy(model(ids)[0, :-1], ids[0, 1:]).item()
        for name, model in models.items()
    }


# ---- what a cache holds --------------------------------------------------------------

OWN = "your own"
TURNED = 64  #: width of the one key that positions turn, beside a latent
#: layers, heads of keys and values, width of a head, latent width, window, as published
MODELS: dict[str, dict[str, Any]] = {
    "GPT-2 small": {"layers": 12, "heads": 12, "width": 64},
    "GPT-3": {"layers": 96, "heads": 96, "width": 128},
    "Llama 2 7B": {"layers": 32, "heads": 32, "width": 128},
    "Llama 3 8B": {"layers": 32, "heads": 8, "width": 128},
    "Mistral 0.1": {"layers": 32, "heads": 8, "width": 128, "window": 4096},
    "Falcon 7B": {"layers": 32, "heads": 1, "width": 64},
    "DeepSeek-V2": {"layers": 60, "heads": 128, "width": 128, "latent": 512},
}
MODELS = {
    name: {"latent": "none", "window": "all"} | sizes for name, sizes in MODELS.items()
}
CHOICES = {
    "layers": [4, 8, 12, 16, 24, 32, 40, 48, 60, 80, 96, 128],
    "heads": [1, 2, 4, 8, 12, 16, 32, 64, 96, 128],
    "width": [32, 64, 128, 256],
    "latent": ["none", 128, 256, 512, 1024],
    "window": ["all", 128, 512, 1024, 2048, 4096, 8192],
    "length": [2**n for n in range(10, 21)],
    "texts": [2**n for n in range(9)],
    "bytes": [1, 2, 4],
}
LABELS = {
    "layers": "layers",
    "heads": "key/value heads",
    "width": "width of a head",
    "latent": f"latent width, + {TURNED}",
    "window": "window",
    "length": "tokens in a text",
    "texts": "texts at once",
    "bytes": "bytes per number",
}
START = {"model": "Llama 3 8B", "length": 32_768, "texts": 1, "bytes": 2}


def cache_bytes(state: Mapping[str, Any]) -> dict[str, int]:
    """Return what the calculator has to compute, by the book's own function.

    Returns:
        "token": bytes of a token; "total": of all texts.
    """
    heads, width = state["heads"], state["width"]
    sizes = {"d_model": heads * width, "heads": heads, "layers": state["layers"]}
    config = GPTConfig(1, **sizes)
    latent = None if state["latent"] == "none" else (state["latent"], TURNED)
    window = None if state["window"] == "all" else state["window"]
    each = state["bytes"] * cache_numbers(config, 1, latent=latent)
    text = state["bytes"] * cache_numbers(config, state["length"], window, latent)
    return {"token": each, "total": state["texts"] * text}


def cache_explorer() -> Html:
    """Show what a cache holds, for published models and for the reader's own."""
    lengths = {"length": 32_768, "texts": 1, "bytes": 2}
    states = [{"model": name} | MODELS[name] | lengths for name in MODELS]
    mine = {"model": OWN, "layers": 24, "heads": 4, "width": 256, "latent": "none"}
    mine |= {"window": 1024, "length": 8192, "texts": 16, "bytes": 4}
    unseen = {"latent": 256, "window": 8192, "length": 4096, "bytes": 1}
    states += [mine, mine | unseen]
    begin = MODELS[START["model"]] | START
    return explorer(
        static("ch16/cache_calculator.js"),
        {"models": MODELS, "own": OWN, "turned": TURNED},
        [
            Choice("model", "model", [*MODELS, OWN], START["model"]),
            *(
                Slider(name, LABELS[name], values, begin[name])
                for name, values in CHOICES.items()
            ),
        ],
        label="What a cache holds",
        checks=[(state, cache_bytes(state)) for state in states],
        question="Suppose that Llama 2 7B could read 32,768 tokens (it was trained for "
        "4,096). How many such texts at once fit on a card of 80 GB? And with Llama 3 "
        "8B, which has a quarter of the key/value heads?",
        caption="Each dot is a published model, as if it could read the length that "
        "you chose; the filled one has your sizes. From line to line is a thousand "
        "times more. Weights take up space, too, and aren't counted. With a latent, "
        "heads and their width don't matter.",
    )


# ---- pitfalls ------------------------------------------------------------------------


def swiglu_surplus() -> float:
    """Return how many parameters more a SwiGLU has whose width wasn't reduced."""
    with torch.device("meta"):
        plain, gated = (
            sum(p.numel() for p in GPT(GPTConfig(96, **GPT2_PARTS | more)).parameters())
            for more in ({}, {"activation": "swiglu"})
        )
    return gated / plain - 1


def pitfalls_said(w: StateDict | None, carroll: Record) -> str:
    """Return three pitfalls in words; their cost is recorded where no file is."""
    loss = carroll["losses"] if w is None else careless_losses(w)
    off = abs(loss["epsilon"] - loss["right"])
    assert loss["pairs"] > loss["right"] + 0.2 and off < 0.1
    return (
        "**Halves or pairs.** Llama's files on Hugging Face rotate dimension `i` "
        "with `i + k/2`; Meta's own, the paper and this book rotate neighbours. Load "
        "one as the other and nothing crashes: all shapes fit. The loss on the first "
        "sentence of *Alice* goes from "
        f"{loss['right']:.2f} to {loss['pairs']:.2f} nats per token.\n\n"
        "**A third map for free.** Replace a GELU by a SwiGLU of the same "
        f"inner width, and the model has {swiglu_surplus():.0%} more parameters. Some "
        "of what it gains is size.\n\n"
        "**The norm's ε.** It's `1e-5` in some files and `1e-6` in others. The wrong "
        f"one changes the loss by {off:.1g} here: too little to notice, enough "
        "to make a comparison of logits fail."
    )
