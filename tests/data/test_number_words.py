"""data/number_words.py: every rule by numbers written out by hand."""

import pytest

from annotated.batches import SPLITS
from annotated.data.number_words import (
    cut_words,
    english,
    french,
    join_words,
    number_split,
    numbers_of,
)

FRENCH = """
0 zéro
16 seize
17 dix-sept
19 dix-neuf
21 vingt et un
31 trente et un
70 soixante-dix
71 soixante et onze
72 soixante-douze
79 soixante-dix-neuf
80 quatre-vingts
81 quatre-vingt-un
91 quatre-vingt-onze
99 quatre-vingt-dix-neuf
100 cent
180 cent quatre-vingts
181 cent quatre-vingt-un
200 deux cents
201 deux cent un
280 deux cent quatre-vingts
300 trois cents
305 trois cent cinq
1000 mille
1080 mille quatre-vingts
1971 mille neuf cent soixante et onze
2000 deux mille
21000 vingt et un mille
71071 soixante et onze mille soixante et onze
80000 quatre-vingt mille
80080 quatre-vingt mille quatre-vingts
200200 deux cent mille deux cents
280000 deux cent quatre-vingt mille
999999 neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf
"""
ENGLISH = """
0 zero
12 twelve
20 twenty
21 twenty-one
100 one hundred
101 one hundred and one
110 one hundred and ten
342 three hundred and forty-two
1000 one thousand
1001 one thousand and one
1101 one thousand one hundred and one
80080 eighty thousand and eighty
200000 two hundred thousand
305006 three hundred and five thousand and six
999999 nine hundred and ninety-nine thousand nine hundred and ninety-nine
"""
TEST = [105, 138, 150, 159, 173, 193, 206, 232, 235, 238, 281, 294]
VALIDATION = [108, 114, 143, 155, 167, 171, 177, 181, 191, 195, 269, 282, 297]


def cases(text):
    rows = [line.split(maxsplit=1) for line in text.strip().splitlines()]
    return [(int(number), words) for number, words in rows]


@pytest.mark.parametrize(("number", "words"), cases(FRENCH))
def test_french(number, words):
    assert french(number) == words


@pytest.mark.parametrize(("number", "words"), cases(ENGLISH))
def test_english(number, words):
    assert english(number) == words


@pytest.mark.parametrize("language", [english, french])
def test_no_two_numbers_are_called_the_same(language):
    some = {*range(2000), *range(0, 1_000_000, 997), *range(0, 1_000_000, 1000)}
    assert len({language(n) for n in some}) == len(some)


@pytest.mark.parametrize("language", [english, french])
@pytest.mark.parametrize("number", [-1, 1_000_000])
def test_other_numbers_have_no_words_here(language, number):
    with pytest.raises(ValueError, match=f"from 0 to 999999, got {number}"):
        language(number)
    with pytest.raises(TypeError, match="number must be an integer"):
        language(3.0)


def test_words_are_cut_and_put_together_again():
    words = ["quatre", "-vingt", "-un", "mille", "vingt", "et", "un"]
    assert cut_words("quatre-vingt-un mille vingt et un") == words
    assert join_words(words) == "quatre-vingt-un mille vingt et un"
    assert cut_words("  two\thundred - one ") == ["two", "hundred", "one"]
    assert cut_words("") == [] and join_words([]) == ""
    for number in range(0, 1_000_000, 331):
        for text in (english(number), french(number)):
            assert join_words(cut_words(text)) == text


# ---- splits ----------------------------------------------------------------------


def test_a_hash_tells_splits_apart_and_all_words_are_for_training():
    splits = [number_split(n) for n in range(20_000)]
    assert {*splits[:100]} == {"train"}
    counts = {split: splits.count(split) for split in SPLITS}
    assert 17_700 < counts["train"] < 18_300
    assert 900 < counts["validation"] < 1_100 and 900 < counts["test"] < 1_100
    # they never move, on no machine
    assert [n for n in range(300) if splits[n] == "test"] == TEST
    assert [n for n in range(300) if splits[n] == "validation"] == VALIDATION


def test_numbers_are_drawn_by_their_lengths_from_one_split():
    drawn = {split: numbers_of(split, 2000) for split in SPLITS}
    for split, numbers in drawn.items():
        assert len(numbers) == len(set(numbers)) == 2000
        assert {number_split(n) for n in numbers} == {split}
        assert numbers_of(split, 2000) == numbers == numbers_of(split, 3000)[:2000]
        assert numbers != sorted(numbers)
    longest = sum(n > 99_999 for n in drawn["train"]) / 2000
    assert 0.1 < longest < 0.4, "of all numbers nine in ten have six digits"
    assert max(drawn["test"]) > 990_000


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ValueError, match="split must be one of 'train', 'validation'"):
        numbers_of("all", 3)
    for size in (0, 30_001):
        with pytest.raises(ValueError, match=f"size must be .* 1 to 30000, got {size}"):
            numbers_of("test", size)
