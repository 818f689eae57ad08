"""ch09/drawings_c.py: its steps are the module's, and faults are refused."""

from types import SimpleNamespace

import pytest

from annotated.chapters.ch09 import drawings_c as ch09c
from annotated.data.bpe import learn_merges, split_words
from tests.shown import cells, soup
from tests.tokens import tokenizer_of

TIMES = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
TEXT = "the cat sat on the mat. the rat that sat on the cat is the rat. " * 20


def test_words_letters_and_pieces_are_counted():
    learned = split_words("to go to sea")
    merges = learn_merges(learned, 2)
    _, words, letters, pieces = cells(
        ch09c.sizes_table(learned, split_words("to see a z"), merges)
    )
    assert words == ["words", "3", "1.00", "75.0%"]
    assert letters == ["letters", "7", "2.75", "25.0%"]
    assert pieces == ["pieces, 2 merges", "9", "2.25", "25.0%"]


def test_each_merge_is_drawn_with_its_count():
    learned = learn_merges([w for w, n in TIMES.items() for _ in range(n)], 4)
    drawn = soup(ch09c.steps_drawing(TIMES, learned))
    written = [text.text for text in drawn.select("text")]
    assert written.count("9 times") == 2 and written.count("7 times") == 2


def test_a_tokenizer_with_other_merges_is_refused(capsys):
    words = split_words(TEXT)
    ch09c.check_tokenizer(tokenizer_of(words, 12), words, 12)
    with pytest.raises(AssertionError):
        ch09c.check_tokenizer(tokenizer_of(words[:9], 12), words, 12)
    cut = SimpleNamespace(tokens=["?"])
    real = tokenizer_of(words, 12)
    other = SimpleNamespace(to_str=real.to_str, encode=lambda word: cut)
    with pytest.raises(AssertionError):
        ch09c.check_tokenizer(other, words, 12)
    assert capsys.readouterr().out.count("✓") >= 3


def test_merges_shorten_the_text_and_rare_pieces_are_counted():
    words = split_words(TEXT)
    rows = ch09c.amounts(words, words[:50], learn_merges(words, 4000))
    assert [row["merges"] for row in rows] == list(ch09c.SOME)
    assert rows[0]["pieces"] > rows[1]["pieces"] >= rows[-1]["pieces"] >= 1
    assert rows[0]["rare"] == 0 and rows[0]["vocabulary"] == len(set(TEXT))
    assert rows[-1]["rare"] > 0  # pieces that later merges have swallowed


def test_other_kinds_cut_in_other_ways():
    _, *rows = cells(ch09c.others_table(TEXT, "the rats ½", size=60))
    by_kind = {name: pieces for name, _, _, pieces in rows}
    lost = {name: int(unknown) for name, _, unknown, _ in rows}
    assert lost["byte-level BPE"] == 0 and lost["BPE"] == 1
    assert "[UNK]" in by_kind["BPE"] and "[UNK]" not in by_kind["byte-level BPE"]
    assert "[UNK]" in by_kind["unigram"] and by_kind["WordPiece"].endswith("[UNK]")
