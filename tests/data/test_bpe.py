"""data/bpe.py: merges by hand, by counting all anew, and by ``tokenizers``."""

import json
import random

import pytest

from annotated.data.bpe import (
    apply_merges,
    join_pieces,
    learn_merges,
    merge,
    recover_merges,
    split_words,
)
from tests.tokens import real_words, tokenizer_of

TOY = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


def marked_words(count: int) -> list[str]:
    return [f"▁{word}" for word in real_words(count)]


def test_the_toy_of_the_paper():
    assert learn_merges(TOY, 4) == [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")]
    assert apply_merges("lowest", learn_merges(TOY, 4)) == ["low", "est"]
    assert apply_merges("slow", learn_merges(TOY, 4)) == ["s", "low"]


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        ("aaa", ["aa", "a"]),
        ("aaaa", ["aa", "aa"]),
        ("baab", ["b", "aa", "b"]),
        ("aba", ["a", "b", "a"]),
        ("a", ["a"]),
        ("", []),
    ],
)
def test_what_was_joined_is_not_joined_again(pieces, joined):
    assert merge(list(pieces), ("a", "a")) == joined


def test_of_aaa_two_are_joined_and_then_the_third():
    assert learn_merges(["aaa"], 5) == [("a", "a"), ("aa", "a")]
    assert apply_merges("aaaaa", [("a", "a")]) == ["aa", "aa", "a"]


def test_ties_go_to_the_older_pieces():
    # all pairs are as frequent
    assert learn_merges(["dc", "ba", "bc"], 3) == [("b", "a"), ("b", "c"), ("d", "c")]
    # "ab" is younger than any letter, "ba" than "ab"
    assert learn_merges(["abz", "yz", "yz", "abx", "abq"], 2)[1] == ("y", "z")


def test_a_merge_learned_first_is_applied_first():
    merges = [("b", "c"), ("a", "b")]
    assert apply_merges("abc", merges) == ["a", "bc"]
    assert apply_merges("abc", merges[::-1]) == ["ab", "c"]


def test_there_are_no_more_merges_than_pairs():
    assert learn_merges(["ab", "ab"], 9) == [("a", "b")]
    assert learn_merges(["a", "b"], 9) == [] == learn_merges([], 9)
    assert learn_merges(["ab"], 0) == []


def test_frequent_words_count_as_often_as_they_stand_there():
    assert learn_merges(["ab"] + ["yz"] * 2, 1) == [("y", "z")]


def test_merges_and_pieces_are_those_of_tokenizers():
    rng = random.Random(0)
    few = ["".join(rng.choices("aab", k=rng.randint(1, 9))) for _ in range(30)]
    for words, merges in ((marked_words(1000), 300), (few, 40)):
        tokenizer = tokenizer_of(words, merges)
        theirs = json.loads(tokenizer.to_str())["model"]["merges"]
        learned = learn_merges(words, merges)
        assert learned == [tuple(pair) for pair in theirs]
        for word in set(words[:200]):
            assert apply_merges(word, learned) == tokenizer.encode(word).tokens


def test_merges_are_recovered_from_pieces():
    learned = learn_merges(marked_words(200), 150)
    ranks = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz'-.▁")}
    for pair in learned:
        ranks.setdefault("".join(pair), len(ranks))
    assert recover_merges(ranks) == learned
    with pytest.raises(
        ValueError, match=r"'abc' must be two older pieces, got \['a', "
    ):
        recover_merges({"a": 0, "b": 1, "c": 2, "abc": 3})


@pytest.mark.parametrize(
    "text",
    [
        "A dog, two dogs.",
        "Zwei Männer stehen am Herd – und kochen.",
        "it's 3.50 (or so) ...",
        "l'été à Paris",
        "",
        "?",
    ],
)
def test_a_text_is_put_together_as_it_was(text):
    words = split_words(text)
    assert join_pieces(words) == text
    pieces = [piece for word in words for piece in apply_merges(word, [("d", "o")])]
    assert join_pieces(pieces) == text


def test_signs_are_words_and_a_space_belongs_to_what_follows():
    assert split_words("A dog, it's  so.") == [
        "▁A", "▁dog", ",", "▁it", "'", "s", "▁so", ".",
    ]  # fmt: skip
    assert split_words("two\tlines\n") == ["▁two", "▁lines"]


def test_a_number_of_merges_below_none_is_named():
    with pytest.raises(ValueError, match="merges must be an integer ≥ 0, got -1"):
        learn_merges(["ab"], -1)
