"""annotated/metrics.py: error rates and BLEU by hand, by recursion, by sacrebleu."""

import random
import sys
from functools import cache

import pytest

from annotated.metrics import (
    bleu,
    edit_distance,
    error_rates,
    ngrams,
    sacrebleu_score,
)


def slow_distance(one, other) -> int:
    """By recursion, from the definition."""

    @cache
    def rest(i, j):
        if i == len(one) or j == len(other):
            return len(one) - i + len(other) - j
        if one[i] == other[j]:
            return rest(i + 1, j + 1)
        return 1 + min(rest(i + 1, j + 1), rest(i + 1, j), rest(i, j + 1))

    return rest(0, 0)


def test_distances_are_those_of_a_recursion():
    rng = random.Random(0)
    for _ in range(200):
        one, other = ("".join(rng.choices("abc", k=rng.randrange(8))) for _ in "ab")
        assert edit_distance(one, other) == slow_distance(one, other), (one, other)


def test_the_nearest_reference_counts_with_its_own_length():
    # of the first output: 1 edit to the second answer, of 3 sounds
    outputs = ["abc", "xy"]
    references = [["abcdef", "abd", "bc"], ["xy"]]
    assert error_rates(outputs, references) == {"symbols": 1 / 5, "whole": 1 / 2}
    assert error_rates(["abd"], [["x", "abd"]])["whole"] == 0.0
    # both answers are as near: the first one's length counts
    assert error_rates(["ab"], [["a", "abc"]])["symbols"] == 1.0
    assert error_rates(["ab"], [["abc", "a"]])["symbols"] == 1 / 3


@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        ([], [], "outputs must hold at least one sequence, got none"),
        (["a"], [], "references must be as many as outputs, got 0 and 1"),
        (["a", "b"], [["a"], []], "must hold an answer for output 1, got none"),
        (["a"], [[""]], "references must hold at least one symbol, got none"),
    ],
)
def test_an_honest_mistake_is_named(outputs, references, message):
    with pytest.raises(ValueError, match=message):
        error_rates(outputs, references)


def test_ngrams_are_counted():
    assert ngrams("abab", 2) == {("a", "b"): 2, ("b", "a"): 1}
    assert ngrams("ab", 3) == {}


# ---- BLEU ------------------------------------------------------------------------


def test_bleu_of_one_pair_by_hand():
    output = "the cat sat on the mat mat".split()
    reference = "the cat is on the mat today".split()
    told = bleu([output], [[reference]])
    # "mat" counts once of twice; the cat, on the, the mat; on the mat; none of four
    assert told["matches"] == [5, 3, 1, 0] and told["totals"] == [7, 6, 5, 4]
    assert told["score"] == 0.0
    told = bleu([output], [[reference]], most=3)
    product = 5 / 7 * 3 / 6 * 1 / 5
    assert told["score"] == pytest.approx(100 * product ** (1 / 3))
    assert told["brevity"] == 1.0


def test_a_short_output_pays():
    told = bleu(["a b c d".split()], [["a b c d e f".split()]])
    assert told["precisions"] == [1.0] * 4
    assert told["brevity"] == pytest.approx(2.718281828 ** (1 - 6 / 4))
    assert told["score"] == pytest.approx(100 * told["brevity"])
    assert bleu(["a b c d e".split()], [["a b c d".split()]])["brevity"] == 1.0


def test_the_reference_of_the_nearest_length_counts_and_of_two_the_shorter():
    output = "a b c d".split()
    several = ["a b c d e f".split(), "a b c".split(), "a b c d e".split()]
    assert bleu([output], [several])["reference_length"] == 3
    several[1] = ["a"]
    assert bleu([output], [several])["reference_length"] == 5


def test_a_word_counts_as_often_as_in_the_reference_that_has_it_most_often():
    several = ["the cat".split(), "the dog the".split()]
    assert bleu(["the the the".split()], [several])["matches"][0] == 2


WORDS = "a dog runs on the green grass . two men sit and talk , while it rains".split()


def draw(seed: int, count: int) -> list[tuple[str, str]]:
    """Sentences, each with one in which some words are others."""
    rng, pairs = random.Random(seed), []
    for _ in range(count):
        words = rng.choices(WORDS, k=rng.randint(1, 14))
        other = [rng.choice(WORDS) if rng.random() < 0.2 else word for word in words]
        pairs.append((" ".join(words), " ".join(other[: rng.randint(1, 14)])))
    return pairs


@pytest.mark.parametrize("seed", range(5))
def test_bleu_is_sacrebleus_on_the_same_words(seed):
    references, outputs = zip(*draw(seed, 30), strict=True)
    wanted, _ = sacrebleu_score(outputs, references, tokenize="none")
    cut = [[reference.split()] for reference in references]
    told = bleu([output.split() for output in outputs], cut)
    assert told["score"] > 5, "the test sees little"
    assert told["score"] == pytest.approx(wanted, abs=1e-9)


def test_sacrebleu_says_how_it_counted():
    score, signature = sacrebleu_score(["A dog runs."], ["A dog runs."])
    assert score == pytest.approx(100.0)
    assert "tok:13a" in signature and "case:mixed" in signature
    _, other = sacrebleu_score(["A dog runs."], ["A dog runs."], tokenize="char")
    assert "tok:char" in other


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    with pytest.raises(ImportError, match=r"annotated-transformers\[translation\]"):
        sacrebleu_score(["a"], ["a"])


def test_as_many_references_as_outputs():
    message = "references must be as many as outputs, got 2"
    with pytest.raises(ValueError, match=message):
        sacrebleu_score(["a"], ["a", "b"])
    with pytest.raises(ValueError, match=message):
        bleu(["a"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="outputs must hold at least one sequence"):
        bleu([], [])
