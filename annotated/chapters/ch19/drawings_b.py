"""Page 19b: masks on a small language, which numbers are bounds, and proofs."""

import math
from collections.abc import Mapping
from itertools import permutations, product
from typing import Any

import torch

from annotated.chapters.ch19 import chain
from annotated.page.frames import Html
from annotated.page.notebook import show_table
from annotated.page.records import dots
from annotated.refinement import MaskedTransformer, diffusion_bits, diffusion_loss
from annotated.transformer import TransformerConfig

# ---- masks on the small language -----------------------------------------------------


def drawn_text(seed: int) -> list[int]:
    """Return a text of the small language, drawn with a ``seed``."""
    generator = torch.Generator().manual_seed(seed)
    text = [int(torch.randint(4, (), generator=generator))]
    while len(text) < chain.LENGTH:
        row = chain.FOLLOWS[text[-1]]
        text.append(int(torch.multinomial(row, 1, generator=generator)))
    return text


def guesses(text: list[int], masked: list[bool]) -> torch.Tensor:
    """Return the exact denoiser's chances at each position, (t, 4)."""
    joint = chain.chances()
    for i, (letter, hidden) in enumerate(zip(text, masked, strict=True)):
        joint = joint if hidden else joint.narrow(i, letter, 1)
    rows = []
    for i, letter in enumerate(text):
        others = [j for j in range(chain.LENGTH) if j != i]
        row = joint.sum(dim=others)
        if not masked[i]:
            row = torch.nn.functional.one_hot(torch.tensor(letter), 4).double()
        rows.append(row / row.sum())
    return torch.stack(rows)


def covered(share: float, seed: int) -> str:
    """Return a text, what is left of it, and what the masked letters cost, in lines."""
    text = drawn_text(seed)
    u = torch.rand(len(text), generator=torch.Generator().manual_seed(10 + seed))
    masked = (u < share).tolist()
    chances = guesses(text, masked)[range(len(text)), text]
    bits = (-chances.log2()).abs().tolist()
    cells = [
        [chain.LETTERS[i], "■" if m else chain.LETTERS[i], f"{b:.1f}" if m else ""]
        for i, m, b in zip(text, masked, bits, strict=True)
    ]
    names = "text", "reads", "bits"
    rows = [
        f"{name:6}{''.join(f'{one:>5}' for one in row)}".rstrip()
        for name, row in zip(names, zip(*cells, strict=True), strict=True)
    ]
    total = sum(b for b, m in zip(bits, masked, strict=True) if m)
    rows.append(f"{total:.2f} bits in all, divided by t = {share}: {total / share:.2f}")
    return "\n".join(rows)


VERDICTS = {
    "1/t": ("masks with t from 0 to 1, divided by t", "tight"),
    "sizes": ("n masks, times N/n, every n equally likely", "tight"),
    "from 0.1, mean": ("the first, t from 0.1 on: the mean", "too high"),
    "from 0.1, integral": ("the first, t from 0.1 on: the integral", "too low"),
    "five shares": ("the first, t = 0.1, 0.3, 0.5, 0.7, 0.9 alone", "too low"),
    "half": ("half of the letters masked, divided by ½", "too low"),
    "without 1/t": ("t from 0 to 1, not divided", "too low"),
    "one": ("one letter masked at a time, times N", "too low"),
}


def estimates_table() -> Html:
    """Show what one exact model costs by several countings, and which are bounds."""
    found = chain.estimates()
    rows = [
        (words, f"{found[name]:.3f}", verdict)
        for name, (words, verdict) in VERDICTS.items()
    ]
    caption = (
        f"Bits per letter of the exact model. The entropy is {found['entropy']:.3f}."
    )
    return show_table(("counted as", "bits", "as a bound"), rows, caption)


# ---- recorded: bits, orders, lengths, caches -----------------------------------------

Record = Mapping[str, Any]


def bits_table(record: Record) -> Html:
    """Show the bits of a held-out sound by each kind of model, a number a seed."""
    rows = []
    for kind, words in (
        ("autoregressive", "symbol by symbol: exact"),
        ("deep encoder", "deep encoder, one layer: exact"),
        ("diffusion", "masked diffusion: at most"),
    ):
        found = [m["bits"] for m in record["models"] if m["model"] == kind]
        rows.append((words, dots(found, ".3f")))
    caption = "Bits per sound of 2,000 held-out pronunciations, the end or the length "
    caption += "included" + (": a number for each seed." if "·" in rows[0][1] else ".")
    return show_table(("", "bits"), rows, caption)


def orders_table(record: Record) -> Html:
    """Show words wrong and sounds repeated by order, drawn and likeliest."""
    rows = []
    for order, words in (
        ("random", "any"),
        ("surest", "the surest first"),
        ("blocks", "from left to right"),
    ):
        for temperature, how in ((1.0, "drawn"), (0.0, "the likeliest")):
            runs = [
                row
                for row in record["orders"]
                if (row["order"], row["temperature"], row["remask"])
                == (order, temperature, 0.0)
            ]
            cells = (f"{row['words']:.0%}, {row['repeated']:.1%}" for row in runs)
            rows.append((f"{words}, {how}", *cells))
    header = ("order, and symbol", "1 round", "2", "4", "10")
    caption = "Words wrong, and words in which a sound follows itself (in the "
    caption += f"dictionary {record['repeated_in_dictionary']:.1%}). One seed."
    return show_table(header, rows, caption)


def remasked(record: Record, order: str, temperature: float) -> list[str]:
    """Return words wrong in ten rounds if 0, 10, 30, 50 % are masked again in each."""
    runs = {
        row["remask"]: row["words"]
        for row in record["orders"]
        if (row["order"], row["temperature"], row["rounds"]) == (order, temperature, 10)
    }
    return [f"{runs[share]:.1%}" for share in (0.0, 0.1, 0.3, 0.5)]


def lengths_table(record: Record) -> Html:
    """Show lengths and words wrong by what becomes of the places that are left."""
    part, rows = record["lengths"], []
    for kind, words in (
        ("diffusion", "the length is guessed first"),
        ("canvas", "ends everywhere, all in the loss"),
        ("one end", "one end, nothing behind it"),
    ):
        for row in part["rows"]:
            if row["model"] == kind:
                order = {"random": "any", "surest": "surest first"}[row["order"]]
                cells = f"{row['mean_length']:.1f}", f"{row['right_length']:.0%}"
                rows.append((words, order, *cells))
    header = ("", "order", "mean length", "length right")
    caption = f"{part['canvas']} places; in the dictionary a word has "
    caption += (
        f"{part['mean_length']:.1f} sounds. The lower two learned for 350 steps, "
    )
    return show_table(header, rows, caption + "the first for 850. One seed.")


def caches_table(record: Record) -> Html:
    """Show how far logits are from those without a cache, and what both take."""
    rows = []
    for row in record["caches"]:
        sees = {"blocks": "blocks that don't look ahead", "both sides": "both sides"}
        wrong = row["difference"]
        rows.append(
            (
                sees[row["order"]],
                f"{row['batch']}",
                "at most rounding" if wrong < 1e-4 else f"{wrong:.2g}",
                f"{row['ms_cache']:.1f}",
                f"{row['ms_anew']:.1f}",
            )
        )
    header = ("attention", "batch", "logits differ by", "ms with cache", "ms without")
    caption = f"{record['caches'][0]['positions']} positions in blocks of "
    return show_table(header, rows, caption + f"{record['block']}. One core.")


def check_recorded(record: Record) -> None:
    """Check what the page concludes from the record."""
    rows = record["orders"]
    by_way = {(r["order"], r["temperature"], r["rounds"], r["remask"]): r for r in rows}
    for order in ("random", "surest", "blocks"):
        for t in (1.0, 0.0):
            once, ten = (by_way[order, t, n, 0.0]["repeated"] for n in (1, 10))
            assert ten < 0.6 * once and once > 20 * record["repeated_in_dictionary"]
            assert by_way["surest", t, 10, 0.0]["repeated"] <= ten
        assert (
            by_way[order, 0.0, 10, 0.0]["words"] < by_way[order, 1.0, 10, 0.0]["words"]
        )
    for order, t in (("random", 1.0), ("surest", 0.0)):
        plain, *again = (by_way[order, t, 10, m]["words"] for m in (0.0, 0.1, 0.3, 0.5))
        assert min(again) > plain - 0.01
    looks, ends = record["mistakes"], record["lengths"]
    assert looks["kept"] < 0.1 < 0.6 < looks["mended_by_look"] < looks["mended_by_mask"]
    for row in ends["rows"]:
        mean, right = row["mean_length"], ends["mean_length"]
        assert {"canvas": right - 1 < mean < right, "one end": mean > right + 3}.get(
            row["model"], abs(mean - right) < 0.2
        ), row
    b = record["bounds"]
    assert b["half"] < b["from 0.1"] < b["bound"]
    print("measured: what this page concludes from the record is in it")


# ---- proofs --------------------------------------------------------------------------


def check_estimates() -> None:
    """Prove that both bounds are tight for the exact model, and others below."""
    found = chain.estimates()
    for name in ("1/t", "sizes"):
        assert abs(found[name] - found["entropy"]) < 1e-5, name
        print(f"✓ {VERDICTS[name][0]}: the entropy, to 1e-5")
    for name in ("from 0.1, integral", "five shares", "half", "without 1/t", "one"):
        assert found[name] < found["entropy"] - 0.005, name
        print(f"measured: {VERDICTS[name][0]}: {found[name]:.3f}, below it")
    assert found["from 0.1, mean"] > found["entropy"]


@torch.no_grad()
def check_bound(symbols: int = 3, t: int = 3) -> None:
    """Prove the bound of an untrained model by all texts and all orders."""
    torch.manual_seed(0)
    config = TransformerConfig(5, symbols + 2, 16, 2, 1, 32, 0.0, max_len=8)
    model = MaskedTransformer(config).double().eval()
    source = torch.tensor([[1, 4, 2]])
    texts = torch.tensor([*product(range(1, symbols + 1), repeat=t)])
    memory, mask = model.encode(source.expand(len(texts), -1))
    orders = [*permutations(range(t))]
    logs = torch.zeros(len(orders), len(texts)).double()
    for row, order in zip(logs, orders, strict=True):
        read = torch.full_like(texts, model.mask)
        for i in order:
            chances = model.decode(read, memory, mask)[:, i].log_softmax(-1)
            row += chances.gather(1, texts[:, i : i + 1])[:, 0]
            read[:, i] = texts[:, i]
    likely = logs.exp().mean(dim=0)
    assert abs(likely.sum() - 1) < 1e-9
    bound = -logs.mean(dim=0) / math.log(2)
    assert (bound >= -likely.log2() - 1e-12).all()
    print(f"✓ {len(texts)} texts: chances add up to 1, no cost is above its bound")
    generator = torch.Generator().manual_seed(0)
    several = source.expand(len(texts), -1)
    found = diffusion_bits(model, several, texts, 900, False, generator)
    apart = (found - bound).abs().mean()
    print(f"✓ `diffusion_bits` gives the mean over all orders, to {apart:.2f} bits")
    losses = [
        diffusion_loss(model, several, texts, lengths=False, generator=generator)
        for _ in range(400)
    ]
    other = torch.stack(losses).mean() * t / math.log(2) - bound.mean()
    print(f"✓ so does the mean of `diffusion_loss`, to {abs(other):.2f} bits")
    assert apart < 0.15 and abs(other) < 0.15, (apart, other)
