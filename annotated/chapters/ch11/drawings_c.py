"""Page 11c, the cache: its pictures, tables, figures, longest proofs."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.decoding import KeyValueCache, sample
from annotated.gpt import GPT
from annotated.page.frames import Html, Slider, explorer, static
from annotated.page.notebook import check_close, show, show_table
from annotated.page.pictures import Matrix, chain
from annotated.page.plots import OTHER, THIS, name_lines
from annotated.page.records import Rows

AFTER = list("def␣g")
WAYS = ["without a cache", "with a cache"]


def rows_explorer(tiny: GPT, prompt: Tensor) -> Html:
    """Show the positions that each of twelve steps computes; check their numbers."""
    counts: dict[str, list[int]] = {way: [] for way in WAYS}
    for way in WAYS:
        hook = tiny.blocks.layers[0].attention.key_map.register_forward_hook(
            lambda module, inputs, output, way=way: counts[way].append(output.shape[1])
        )
        given = {"max_new_tokens": 12, "top_k": 1, "slide": True}
        sample(tiny, prompt, cache=way == WAYS[1], **given)
        hook.remove()
    plain, cached = counts.values()
    assert plain == [min(step, 8) for step in range(1, 13)]
    assert cached == [1] * 8 + [8] * 4
    return explorer(
        static("ch11/cache_rows.js"),
        {"letters": [*"def␣gcd(a,␣b"], "ways": WAYS, "context": 8, "computed": counts},
        [Slider("step", "characters read", list(range(1, 13)))],
        label="Positions computed and kept, step by step",
        checks=[
            (
                {"step": step},
                {
                    "now": [counts[way][step - 1] for way in WAYS],
                    "totals": [sum(counts[way][:step]) for way in WAYS],
                },
            )
            for step in (1, 5, 8, 9, 12)
        ],
        question="After eight characters, how many positions has it computed in all, "
        "without a cache and with one? What happens at the ninth?",
        caption="One cell for each character. The counts are those of the module; the "
        "letters only show where we are.",
    )


def twice(before: Tensor, after: Tensor) -> Html:
    """Show the keys of four characters, and of these and a fifth."""
    return chain(
        *(Matrix(before, "keys after “def␣”", rows=AFTER[:4]), "g →"),
        Matrix(after, "keys after “def␣g”", rows=AFTER, row=4),
        caption="Second block, width 4. Only the lit row is new.",
    )


@torch.no_grad()
def check_past(tiny: GPT, keys: Mapping[str, Tensor], encode: Callable) -> None:
    """Check that keys of the past stay, and that they don't without the mask."""
    short, long = keys
    check_close("the first keys don't change", keys[long][:4], keys[short], 1e-5)
    (first, second), rows = tiny.blocks.layers, {}
    for masked in (False, True):
        first.attention.causal = masked
        for text in keys:
            x = second.residuals[0].norm(first(tiny.embed(encode(text))))
            rows[masked, text] = second.attention.key_map(x)[0]
    check_close("computed without the cache", rows[True, long], keys[long], 1e-5)
    shift = (rows[False, long][:4] - rows[False, short]).abs().max().item()
    assert shift > 0.05
    print(f"✓ without the mask, they change by up to {shift:.2f}")


def one_character(x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Html:
    """Show how a new character's row x (1, 4) looks at five keys, and what it takes."""
    scores = q @ k.T / 2
    weights = scores.softmax(dim=-1)
    rows = torch.cat([q, k[-1:], v[-1:]])
    pictures = (
        chain(
            *(Matrix(x, "x of “g”"), "maps →"),
            Matrix(rows, rows=["query", "key", "value"]),
            caption="The new position alone goes through the three maps.",
        ),
        chain(
            *(Matrix(k, "keys", rows=AFTER, row=4), "· q ÷ 2 ="),
            *(Matrix(scores.T, "scores"), "softmax →"),
            Matrix(weights.T, "weights", weights=True),
            caption="Five keys, four of them from the cache. A row's score is its key "
            "times the query, over √4 = 2.",
        ),
        chain(
            *(Matrix(weights.T, "weights", rows=AFTER, weights=True), "·"),
            *(Matrix(v, "values", rows=AFTER, row=4), "="),
            Matrix(weights @ v, "what “g” takes"),
            caption="One row comes out, for the one position that went in. The output "
            "map follows.",
        ),
    )
    return Html("".join(picture.text for picture in pictures))


def prompt_mask(mask: Tensor) -> Html:
    """Show the mask (3, 5) of three new positions after two that are kept."""
    look = {"mask": mask, "weights": True, "digits": 0}
    return chain(
        Matrix(mask.float(), "may look", AFTER[2:], AFTER, **look),
        caption="Two positions are kept, three are new.",
    )


@torch.no_grad()
def check_loop(tiny: GPT, read_one: Callable[..., Tensor], encode: Callable) -> None:
    """Check that a notebook's loop, the module and the whole at once agree."""
    kept = [[torch.empty(0, 4)] * 2 for _ in tiny.blocks.layers]
    by_hand = torch.cat([read_one(encode(c), kept) for c in "def gcd("])
    reader, whole = KeyValueCache(tiny), tiny(encode("def gcd("))
    pieces = [reader.read(encode(piece)) for piece in ("de", "f g", "c", "d(")]
    check_close("one by one = the whole at once", by_hand, whole[0], 2e-5)
    check_close(
        "the module, in pieces of 2, 3, 1, 2", torch.cat(pieces, 1), whole, 1e-5
    )
    theirs = [one[0, 0] for pair in reader.kept for one in pair]
    check_close("the same are kept", theirs, [x for pair in kept for x in pair], 1e-5)


class _Forgets:
    """A model, but every character is at position 0."""

    def __init__(self, model: GPT):
        self.model = model

    def embed(self, tokens: Tensor, start: int, positions: None) -> Tensor:
        return self.model.embed(tokens, start=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


@torch.no_grad()
def check_pitfalls(tiny: GPT, encode: Callable) -> None:
    """Check that a start left out changes the text, and that training is refused."""
    reader = KeyValueCache(_Forgets(tiny))
    wrong = [reader.read(encode(letter)) for letter in "def g"][-1][0, -1]
    right = tiny(encode("def g"))[0, -1]
    moved = (wrong.softmax(dim=-1) - right.softmax(dim=-1)).abs().sum().item() / 2
    assert moved > 0.05
    try:
        KeyValueCache(tiny.train()).read(encode("d"))
    except ValueError as error:
        print(f"✓ refused: {error}")
    else:
        raise AssertionError("a model in training mode was accepted")
    finally:
        tiny.eval()
    print(f"✓ all at position 0: {moved:.0%} of the probability is on other characters")


def saved(rows: Rows) -> Html:
    """Plot the recorded CPU seconds by length, and what n² and n would be."""
    lengths, first = [row["length"] for row in rows], rows[0]
    figure, ax = plt.subplots(figsize=(8.6, 3.8))
    for key, name, power, color in (
        *(("plain", WAYS[0], 2, OTHER), ("cached", WAYS[1], 1, THIS)),
    ):
        ax.plot(lengths, [row[key] for row in rows], "o-", color=color, label=name)
        ideal = [first[key] * (n / lengths[0]) ** power for n in lengths]
        grows = f"if it grew as n{'²' * (power == 2)}"
        ax.plot(lengths, ideal, color=OTHER, lw=1, label=grows, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="characters written, n")
    ax.set(ylabel="CPU seconds")
    ax.set_xticks(lengths, [str(n) for n in lengths])
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    name_lines(ax)
    return show(
        figure,
        title="The cache saves much, though less than it saves in positions",
        caption="Recorded: 16 sequences, median of three runs, both axes logarithmic. "
        f"At {lengths[-1]} characters it is {rows[-1]['times']:.0f} × faster.",
    )


def _timed(operation: Callable[..., Any], *given: Any, repeats: int = 9) -> float:
    """Return the median of the milliseconds that an operation takes."""
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        operation(*given)
        taken.append(1000 * (time.process_time() - began))
    return median(taken)


def handled() -> Html:
    """Time one step of four layers, by the positions that are kept."""
    rows, attend = [], F.scaled_dot_product_attention
    for length in (16, 64, 256):
        past, new = torch.randn(16, 8, length, 32), torch.randn(16, 8, 1, 32)
        both = torch.cat([past, new], dim=2)
        append = 8 * _timed(torch.cat, [past, new], 2)  # k, v of 4 layers
        look = 4 * _timed(attend, new, both, both)
        rows.append((length, f"{append:.2f}", f"{look:.2f}"))
    return show_table(
        ("positions kept", "append, ms", "look back, ms"),
        rows,
        caption="One step of 16 sequences, four layers; median of nine.",
    )


@torch.no_grad()
def pieces(model: nn.Module, line: Tensor) -> Html:
    """Time reading ids (b, 128) through a cache, in pieces of several sizes."""

    def read(piece: int) -> None:
        reader = KeyValueCache(model)
        for part in line.split(piece, dim=1):
            reader.read(part)

    read(64)  # warms up
    rows = [(n, f"{_timed(read, n, repeats=3) / 128:.2f}") for n in (1, 4, 16, 64, 128)]
    return show_table(
        ("positions at a time", "ms per position"),
        rows,
        caption="Reading 128 positions of four sequences through the cache; median of "
        "three.",
    )


MODELS = {  # layers, width, positions, bytes in a number
    "the page's model": (2, 48, 64, 4),
    "the recorded one": (4, 256, 257, 4),
    "GPT-2, smallest": (12, 768, 1024, 2),
    "GPT-2, largest": (48, 1600, 1024, 2),
    "GPT-3": (96, 12288, 2048, 2),
}


def readable(size: float) -> str:
    """Return a number of bytes in B, kB, MB or GB."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def memory_table(cache_bytes: Callable[..., int]) -> Html:
    """Show the cache of five models, by a notebook's function."""
    return show_table(
        ("model", "layers · positions · width", "cache"),
        [
            (name, f"{n} · {s} · {d}", readable(cache_bytes(n, d, s, size)))
            for name, (n, d, s, size) in MODELS.items()
        ],
        caption="One sequence, full context; 4 bytes a number for our models, 2 for "
        "others.",
    )


def check_memory(
    cache_bytes: Callable[..., int], model: GPT, recorded: Mapping[str, int]
) -> None:
    """Check a notebook's function on a full cache, and the sizes of the table."""
    reader = KeyValueCache(model)
    reader.read(torch.randint(96, (1, 64)))
    held = sum(t.numel() * t.element_size() for pair in reader.kept for t in pair)
    assert held == cache_bytes(*MODELS["the page's model"])
    sizes = tuple(recorded[name] for name in ("layers", "d_model", "max_len"))
    assert sizes == MODELS["the recorded one"][:3]
    print(f"✓ a full cache of the page's model holds {held:,} bytes")


@torch.no_grad()
def slides(tiny: GPT, encode: Callable) -> Html:
    """Show keys of the first block on a window, and on the next."""
    keys = []
    for text in ("def g", "ef gc"):
        reader = KeyValueCache(tiny)
        reader.read(encode(text))
        keys.append(reader.kept[0][0][0, 0])
    assert (keys[0][1:] - keys[1][:-1]).abs().amax(dim=1).min() > 0.05
    return chain(
        *(Matrix(keys[0], "first window", rows=AFTER), "slide →"),
        Matrix(keys[1], "next window", rows=list("ef␣gc")),
        caption="Compare e with e, f with f: none of the rows is the same.",
    )


@torch.no_grad()
def full_context(model: GPT, first: Tensor, context: int = 64, count: int = 88) -> Html:
    """Time each character that is written after ids (b, 1), as if of that context."""

    def one_run() -> list[float]:
        ids, reader, taken = first, KeyValueCache(model), []
        for _ in range(count):
            began = time.process_time()
            if ids.shape[1] <= context:
                logits = reader.read(ids[:, reader.length :])
            else:
                logits = model(ids[:, -context:])
            taken.append(1000 * (time.process_time() - began))
            ids = torch.cat([ids, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
        return taken

    each = torch.tensor([one_run() for _ in range(3)]).median(dim=0).values
    inside, outside = (x.median().item() for x in (each[:context], each[context:]))
    figure, ax = plt.subplots(figsize=(8.6, 3.0))
    ax.plot(range(1, count + 1), each, ".", color=THIS)
    ax.axvline(context + 0.5, color=OTHER, lw=1)
    full = "context full:\nthe window slides"
    ax.text(context - 1, 0.7 * outside, full, ha="right", color=OTHER)
    ax.set(xlabel="character", ylabel="ms of CPU time", ylim=(0, 1.3 * outside))
    return show(
        figure,
        title="When the window slides, every character costs a whole window",
        alt=f"Milliseconds for each of {count} characters. Up to character {context} "
        f"about {inside:.0f}, beyond it, where the window slides, about {outside:.0f}.",
        caption=f"Width 256, four layers and sequences, median of three runs: "
        f"{inside:.1f} ms for a character inside the context, {outside:.1f} beyond it.",
    )
