"""Page 09c, subwords: merges step by step, the stepper, and other ways to cut."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import mean
from time import perf_counter
from typing import Any

import matplotlib.pyplot as plt

from annotated.data.bpe import (
    Pair,
    apply_merges,
    join_pieces,
    learn_merges,
    merge,
    recover_merges,
    split_words,
)
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html, Slider, Text, explorer, static
from annotated.page.notebook import show, show_table
from annotated.page.plots import OTHER, THIS, plot_lines

# ---- words, letters, pieces ------------------------------------------------------


def sizes_table(learned: Sequence[str], unread: Sequence[str], merges: list) -> Html:
    """Show three ways to cut a text: their vocabulary, length, and what is unknown."""
    letters = set("".join(learned))
    cuts: dict[str, tuple[set[str], Callable[[str], Sequence[str]]]] = {
        "words": (set(learned), lambda word: [word]),
        "letters": (letters, list),
        f"pieces, {len(merges)} merges": (
            letters | {"".join(pair) for pair in merges},
            lambda word: apply_merges(word, merges),
        ),
    }
    rows = []
    for name, (known, cut) in cuts.items():
        pieces = {word: cut(word) for word in set(unread)}
        count = sum(len(pieces[word]) for word in unread)
        unknown = sum(not known.issuperset(pieces[word]) for word in unread)
        share = f"{unknown / len(unread):.1%}"
        rows.append((name, f"{len(known):,}", f"{count / len(unread):.2f}", share))
    return show_table(
        ("symbols", "vocabulary", "a word takes", "words unknown"),
        rows,
        caption=f"Learned from {len(learned):,} words, measured on the next "
        f"{len(unread):,}. A sign is a word, and the space before a word a letter.",
    )


# ---- the toy ---------------------------------------------------------------------


def boxes(
    drawing: Drawing, x: float, y: float, pieces: Sequence[str], new: str = ""
) -> None:
    """Draw pieces side by side; those that are ``new`` are shaded."""
    for piece in pieces:
        wide = 8 * len(piece) + 6
        drawing.frame(x, y - 14, wide, 20, shade=0.3 if piece == new else 0)
        drawing.text(x + wide / 2, y, piece, code=True)
        x += wide + 3


def steps_drawing(times: Mapping[str, int], learned: Sequence[Pair]) -> Html:
    """Draw words in pieces before the first merge, and after each one."""
    words, row, left = list(times), 30, 116
    pieces = {word: list(word) for word in words}
    drawing = Drawing(350, row * (len(learned) + 1) * 2 + 10)
    at = {"low": 0, "lower": 88, "newest": 0, "widest": 118}
    y = 20
    for n, pair in enumerate([None, *learned]):
        if pair:
            count = sum(
                times[word] * list(pairwise(pieces[word])).count(pair) for word in words
            )
            pieces = {word: merge(pieces[word], pair) for word in words}
            drawing.text(2, y, f"{n}. {pair[0]} {pair[1]}", anchor="start", bold=True)
            drawing.text(2, y + 19, f"{count} times", anchor="start")
        else:
            drawing.text(2, y, "letters", anchor="start", bold=True)
        for i, word in enumerate(words):
            new = "".join(pair) if pair else ""
            boxes(drawing, left + at[word], y + 25 * (i // 2), pieces[word], new)
        y += 2 * row
    said = "; ".join(" ".join(pair) for pair in learned)
    ends = ", ".join(" ".join(pieces[word]) for word in words)
    return drawing.figure(
        alt=f"Four words in pieces, before any merge and after each of {len(learned)}: "
        f"{said}. At the end: {ends}.",
        caption="; ".join(f"{word} ×{n}" for word, n in times.items())
        + ". Shaded: the piece that was just joined.",
    )


def check_toy(times: Mapping[str, int], by_hand: Callable) -> None:
    """Prove that a notebook's loop learns what the module learns."""
    for counts in (times, {"aaab": 3, "abab": 2, "baaa": 4}, {"dc": 1, "ba": 1}):
        words = [word for word, n in counts.items() for _ in range(n)]
        for merges in (1, 4, 7):
            assert by_hand(dict(counts), merges) == learn_merges(words, merges)
    print("✓ by hand = the module: the same merges on three toys")


# ---- the stepper -----------------------------------------------------------------

TOY_TEXT = (
    "low low low low low lower lower newest newest newest newest newest newest "
    "widest widest widest"
)
TEXTS = (
    TOY_TEXT,
    "she sells sea shells by the sea shore; the shells she sells are sea shells",
    "aaaa aaaa aaa",
)


def learned_from(text: str, merges: int, word: str) -> dict[str, Any]:
    """Return what the stepper has to find."""
    words = split_words(text)
    learned = learn_merges(words, merges)
    cut = {one: apply_merges(one, learned) for one in set(words)}
    return {
        "merges": [list(pair) for pair in learned],
        "pieces": sum(len(cut[one]) for one in words),
        "word": [p for one in split_words(word) for p in apply_merges(one, learned)],
    }


def stepper() -> Html:
    """Show merges, one by one, on the reader's own text."""
    states = [
        (TOY_TEXT, 0, "lowest"),
        (TOY_TEXT, 3, "lowest"),
        (TOY_TEXT, 9, "slow newt"),
        (TEXTS[1], 12, "seashells, she said"),
        (TEXTS[2], 2, "aaaaa"),
        ("Zwei Männer – „zwei“, nicht drei! 🙂 🙂", 6, "zweimal 🙂"),
        ("b a c a b", 20, "cab_1"),
    ]
    assert learned_from(TOY_TEXT, 4, "lowest")["word"] == ["▁lo", "w", "est"]
    assert learned_from(TOY_TEXT, 5, "lowest")["word"] == ["▁low", "est"]
    return explorer(
        static("ch09/bpe_stepper.js"),
        {"texts": TEXTS},
        [
            Text("text", "learn from", TOY_TEXT, most=400),
            Slider("merges", "merges", list(range(401)), 3),
            Text("word", "then cut", "lowest", ("slow", "seashells"), most=40),
        ],
        label="Byte-pair encoding, step by step",
        checks=[
            ({"text": t, "merges": n, "word": w}, learned_from(t, n, w))
            for t, n, w in states
        ],
        question="“lowest” isn't in the text below. After how many merges does it take "
        "two pieces, and which? And which merge is the first that joins a ▁?",
        caption="▁ stands for the space before a word. Filled: the piece that was just "
        "joined. Each number is how often the word stands in your text. Dashed: a "
        "letter that isn't in it.",
    )


# ---- tokenizers ------------------------------------------------------------------


def check_tokenizer(tokenizer: Any, words: Sequence[str], merges: int) -> None:
    """Prove that a trained tokenizer has our merges, and cuts as we do."""
    from tokenizers import Tokenizer, models
    from tokenizers.trainers import BpeTrainer

    began = perf_counter()
    learned = learn_merges(words, merges)
    taken = perf_counter() - began
    began, size = perf_counter(), len(set("".join(words))) + merges
    again = BpeTrainer(vocab_size=size, show_progress=False)
    Tokenizer(models.BPE()).train_from_iterator(words, again)
    theirs_taken = perf_counter() - began
    theirs = json.loads(tokenizer.to_str())["model"]["merges"]
    assert learned == [tuple(pair) for pair in theirs]
    print(f"✓ `tokenizers` learns the same {merges:,} merges, in the same order")
    some = sorted(set(words))[::5]
    for word in some:
        assert apply_merges(word, learned) == tokenizer.encode(word).tokens
    print(f"✓ and cuts {len(some):,} words as `apply_merges` does")
    pieces = tokenizer.get_vocab()
    assert recover_merges(pieces) == learned
    print("✓ `recover_merges` finds them again from the pieces and their ids alone")
    print(
        f"measured: our merges in {taken:.1f} s, those of Rust in {theirs_taken:.1f} s"
    )


def examples_drawing(
    learned: Sequence[str], merges: Sequence[Pair], words: Sequence[str]
) -> Html:
    """Draw a few words in the pieces of three vocabularies."""
    amounts, y, said = (100, 1000, 4000), 20, []
    drawing = Drawing(350, 96 * len(words) - 10)
    for word in words:
        for n in amounts:
            pieces = apply_merges("▁" + word, merges[:n])
            drawing.text(2, y, f"{n:,} merges", anchor="start")
            boxes(drawing, 100, y, pieces)
            said.append(f"{n} merges: {' '.join(pieces)}")
            y += 25
        y += 21
    read = [word for word in words if "▁" + word in set(learned)]
    fresh = "None of them is" if not read else f"Only {', '.join(read)} is"
    return drawing.figure(
        alt=f"{', '.join(words)} in pieces. {'; '.join(said)}.",
        caption=f"{fresh} in the text that was learned from.",
    )


# ---- how many merges -------------------------------------------------------------

SOME = (0, 50, 100, 200, 500, 1000, 2000, 4000)


def amounts(
    learned: Sequence[str], unread: Sequence[str], merges: Sequence[Pair]
) -> list[dict[str, float]]:
    """Return vocabulary, length of an unread text and rare pieces, by merges."""
    rows, new, old = [], Counter(unread), Counter(learned)
    letters = set("".join(learned))
    for n in SOME:
        first = merges[:n]
        vocabulary = letters | {"".join(pair) for pair in first}
        met: Counter[str] = Counter()
        for word, times in old.items():
            for piece in apply_merges(word, first):
                met[piece] += times
        count = sum(len(apply_merges(w, first)) * times for w, times in new.items())
        rows.append(
            {
                "merges": n,
                "vocabulary": len(vocabulary),
                "pieces": count / len(unread),
                "rare": sum(met[one] < 20 for one in vocabulary) / len(vocabulary),
            }
        )
    return rows


def amounts_figure(rows: Sequence[Mapping[str, float]]) -> Html:
    """Plot length and rare pieces by the size of the vocabulary."""
    figure, (one, two) = plt.subplots(1, 2)
    sizes = [row["vocabulary"] for row in rows]
    pieces = dict(zip(sizes, [row["pieces"] for row in rows], strict=True))
    rare = dict(zip(sizes, [100 * row["rare"] for row in rows], strict=True))
    axes = {"xscale": "log", "xlabel": "vocabulary, log axis"}
    axes |= {"xticks": [30, 100, 300, 1000, 4000]}
    first = {"title": "pieces a word, unread text", "ylim": (0, 1.1 * pieces[sizes[0]])}
    plot_lines({"pieces": pieces}, one, **axes, **first)
    plot_lines({"rare": rare}, two, **axes, title="rare pieces, %", ylim=(0, 100))
    amounts = ", ".join(f"{row['merges']:,}" for row in rows[1:])
    return show(
        figure,
        title="Early merges shorten the text, late ones make rare pieces",
        caption=f"From the left: letters; {amounts} merges. Rare: fewer than 20 "
        "occurrences.",
    )


def merges_figure(record: Mapping[str, Any]) -> Html:
    """Plot BLEU, and how many symbols are frequent, by the size of the vocabulary."""
    rows, letters = record["rows"], record["rows"][0]["symbols"]
    figure, (one, two) = plt.subplots(1, 2, width_ratios=(3, 2))
    sizes, said, names = [row["symbols"] for row in rows], [], []
    for row in rows:
        x, bleu, kind = row["symbols"], row["bleu"], row["kind"]
        colour = OTHER if isinstance(kind, str) else THIS
        one.plot([x] * len(bleu), bleu, "-", color=colour)
        one.plot(x, mean(bleu), "o", color=colour)
        place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        one.annotate(f"{mean(bleu):.1f}", (x, max(bleu)), **place)
        two.plot(x, 100 * row["enough"], "o", color=colour)
        name = kind if isinstance(kind, str) else f"{kind:,}"
        names.append("\n" * (len(names) % 2) + name)  # in two rows: some are close
        said.append(
            f"{kind}: vocabulary {x:,}, {mean(bleu):.1f} BLEU ({min(bleu):.1f} to "
            f"{max(bleu):.1f}), {row['enough']:.0%} occur 100 times"
        )
    shares = {letters + row["merges"]: row["enough"] for row in record["rule"]}
    shares |= {row["symbols"]: row["enough"] for row in rows[1:-1]}
    points = [(size, 100 * share) for size, share in sorted(shares.items())]
    two.plot(*zip(*points, strict=True), "-", color=THIS)
    two.axhline(95, color=OTHER, linestyle="--")
    two.text(sizes[-1], 97, "95 %", ha="right")
    # cited: 100
    two.set(title="% of symbols met 100 times", ylim=(0, 112))
    one.set(title="BLEU", ylim=(0, 1.18 * max(max(row["bleu"]) for row in rows)))
    for ax in (one, two):
        ax.set(xscale="log", xlim=(sizes[0] / 1.5, 1.6 * sizes[-1]))
        ax.set(xlabel="merges, by vocabulary (log axis)")
        ax.set_xticks(sizes, names)
        ax.minorticks_off()
    best = max(rows, key=lambda row: mean(row["bleu"]))
    near = [
        name.strip()
        for row, name in zip(rows, names, strict=True)
        if max(row["bleu"]) >= min(best["bleu"])  # seeds of both overlap
    ]
    seconds = [one for row in rows for one in row["cpu_seconds"]]
    size, share = max(points, key=lambda point: point[1])
    return show(
        figure,
        title=f"In about the same time, {' and '.join(near)} merges translate best",
        alt=f"By the number of merges. {'; '.join(said)}.",
        caption=f"Recorded: mean and range of {len(best['bleu'])} seeds, "
        f"{min(seconds):.0f} to {max(seconds):.0f} CPU seconds each. Symbols that "
        f"are met 100 times: {share:.0f} % at most, after {size - letters} merges.",
    )


# ---- other ways to cut -----------------------------------------------------------


def others_table(text: str, sentence: str, size: int = 600) -> Html:
    """Show a sentence in the pieces of four tokenizers that read the same text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    settings = {"vocab_size": size, "show_progress": False}
    space = pre_tokenizers.Metaspace()
    byte = pre_tokenizers.ByteLevel(add_prefix_space=True)
    split = pre_tokenizers.WhitespaceSplit()
    unknown = {"special_tokens": ["[UNK]"]}
    kinds = {
        "BPE": (
            *(models.BPE(unk_token="[UNK]"), space),
            trainers.BpeTrainer(**settings, **unknown),
        ),
        "byte-level BPE": (
            *(models.BPE(), byte),
            trainers.BpeTrainer(**settings, initial_alphabet=byte.alphabet()),
        ),
        "WordPiece": (
            *(models.WordPiece(unk_token="[UNK]"), split),
            trainers.WordPieceTrainer(**settings, **unknown),
        ),
        "unigram": (
            *(models.Unigram(), space),
            trainers.UnigramTrainer(**settings, **unknown, unk_token="[UNK]"),
        ),
    }
    rows = []
    for name, (model, pre, trainer) in kinds.items():
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre
        tokenizer.train_from_iterator(text.split(". "), trainer)
        found, lost = tokenizer.encode(sentence), tokenizer.token_to_id("[UNK]")
        pairs = zip(found.tokens, found.ids, strict=True)
        pieces = ["[UNK]" if i == lost else piece for piece, i in pairs]
        if name == "byte-level BPE":
            back = decoders.ByteLevel().decode(found.tokens)
            assert back.strip() == sentence  # nothing is ever unknown
        row = (name, len(pieces), pieces.count("[UNK]"), " ".join(pieces))
        rows.append(row)
    return show_table(
        ("kind", "pieces", "of these unknown", f"“{sentence}”"),
        rows,
        caption=f"Each learned {size} symbols from the same docstrings. [UNK] is "
        "unknown.",
    )


def check_bytes() -> None:
    """Prove how many bytes a sign takes."""
    assert [len(sign.encode()) for sign in "aï中🙂"] == [1, 2, 3, 4]
    print("✓ a, ï, 中 and 🙂 are 1, 2, 3 and 4 bytes")


# ---- slips -----------------------------------------------------------------------


def check_slips() -> None:
    """Show four slips on a few letters, and what is right."""
    merges = [("b", "c"), ("a", "b")]
    assert apply_merges("abc", merges) == ["a", "bc"]
    assert apply_merges("abc", merges[::-1]) == ["ab", "c"]
    print("✓ order: of “abc”, b c first leaves a bc; a b first leaves ab c")
    learned = learn_merges(split_words("to go to"), 9)
    for text in ("to go", "to  go", "togo"):
        pieces = [p for word in split_words(text) for p in apply_merges(word, learned)]
        assert join_pieces(pieces) == " ".join(text.split())
    print("✓ spaces: “to go” and “togo” are put together as they were")
    without = [word.removeprefix("▁") for word in split_words("to go")]
    assert join_pieces(without) == "togo"
    print("✓ spaces: without a mark “to go” comes back as “togo”")
    assert apply_merges("xto", learned) == ["x", "to"]
    assert apply_merges("▁to", learned) == ["▁to"]
    print("✓ marks: “to” is ▁to as a word, and another piece, to, inside “xto”")
