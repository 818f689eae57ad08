"""Page 09c, subwords: merges step by step, the stepper, and other ways to cut."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any

import matplotlib.pyplot as plt

from annotated.bpe import (
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
from annotated.page.plots import THIS

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
        ("symbols are", "vocabulary", "symbols a word", "words unknown"),
        rows,
        caption=f"Learned from {len(learned):,} words, measured on the next "
        f"{len(unread):,}.",
    )


# ---- the toy ---------------------------------------------------------------------


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
            x, top = left + at[word], y + 25 * (i // 2)
            for piece in pieces[word]:
                wide = 8 * len(piece) + 6
                new = pair is not None and piece == "".join(pair)
                drawing.frame(x, top - 14, wide, 20, shade=0.3 if new else 0)
                drawing.text(x + wide / 2, top, piece, code=True)
                x += wide + 3
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
        static("bpe_stepper.js"),
        {},
        [
            Text("text", "learn from", TOY_TEXT, TEXTS, most=300),
            Slider("merges", "merges", list(range(31)), 3),
            Text("word", "then cut", "lowest", ("slow", "seashells"), most=40),
        ],
        label="Byte-pair encoding, step by step",
        checks=[
            ({"text": t, "merges": n, "word": w}, learned_from(t, n, w))
            for t, n, w in states
        ],
        question="“lowest” isn't in the text. After how many merges does it take two "
        "pieces, and which?",
        caption="▁ stands for the space before a word. Filled: the piece that was just "
        "joined. Each number is how often the word stands in your text. Dashed: a "
        "letter that isn't in it.",
    )


# ---- tokenizers ------------------------------------------------------------------


def check_tokenizer(tokenizer: Any, words: Sequence[str], merges: int) -> None:
    """Prove that a trained tokenizer has our merges, and cuts as we do."""
    began = perf_counter()
    learned = learn_merges(words, merges)
    taken = perf_counter() - began
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
    print(f"measured: our merges in {taken:.1f} s")


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
    """Plot length and rare pieces by the number of merges."""
    figure, (one, two) = plt.subplots(1, 2, figsize=(8.6, 3.2))
    places = range(len(rows))
    one.plot(places, [row["pieces"] for row in rows], "o-", color=THIS)
    two.plot(places, [100 * row["rare"] for row in rows], "o-", color=THIS)
    one.set(ylabel="pieces a word, unread text", ylim=(0, None))
    two.set(ylabel="pieces met fewer than 20 times, %", ylim=(0, None))
    for ax in (one, two):
        ax.set_xticks(places, [f"{row['merges']}" for row in rows])
        ax.set(xlabel="merges")
    said = "; ".join(
        f"{row['merges']}: vocabulary {row['vocabulary']}, {row['pieces']:.2f} pieces "
        f"a word, {row['rare']:.0%} rare"
        for row in rows
    )
    return show(
        figure,
        title="Early merges shorten the text, late ones fill the vocabulary",
        alt=f"Pieces a word and rare pieces by merges. {said}.",
        caption=f"From {rows[0]['vocabulary']} letters to a vocabulary of "
        f"{rows[-1]['vocabulary']:,}. Docstrings of Python's library.",
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
        rows.append((name, len(pieces), " ".join(pieces)))
    return show_table(
        ("kind", "pieces", f"“{sentence}”"),
        rows,
        caption=f"Each learned {size} pieces from the same docstrings.",
    )


def check_others(times: Mapping[str, int]) -> None:
    """Prove what WordPiece's rule joins first in the toy, and what a byte is."""
    pairs: Counter[Pair] = Counter()
    single: Counter[str] = Counter()
    for word, n in times.items():
        for letter in word:
            single[letter] += n
        for pair in pairwise(word):
            pairs[pair] += n
    score = {p: pairs[p] / (single[p[0]] * single[p[1]]) for p in pairs}
    assert max(pairs, key=pairs.get) == ("e", "s")
    assert max(score, key=score.get) == ("i", "d")
    print("✓ WordPiece's score joins i d first, where BPE joins e s")
    assert [len(sign.encode()) for sign in "aï中🙂"] == [1, 2, 3, 4]
    print("✓ a, ï, 中 and 🙂 are 1, 2, 3 and 4 bytes")


# ---- slips -----------------------------------------------------------------------


def check_slips() -> None:
    """Show five slips on a few letters, and what is right."""
    merges = [("b", "c"), ("a", "b")]
    assert apply_merges("abc", merges) == ["a", "bc"]
    assert apply_merges("abc", merges[::-1]) == ["ab", "c"]
    print("✓ order: of “abc”, b c first leaves a bc; a b first leaves ab c")
    at_once = [i for i, pair in enumerate(pairwise("aaa")) if pair == ("a", "a")]
    assert at_once == [0, 1] and merge("aaa", ("a", "a")) == ["aa", "a"]
    print("✓ overlaps: “aaa” holds a a at 0 and at 1, and only the first is joined")
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
