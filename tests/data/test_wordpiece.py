"""data/wordpiece.py: cuts by hand and by ``tokenizers``, joins by recounting."""

import random
from collections import Counter
from itertools import pairwise
from math import log

import pytest

from annotated.data.wordpiece import (
    SCORES,
    bert_words,
    cut_word,
    learn_pieces,
    letters_of,
    likelihood_gain,
)
from tests.tokens import real_words

TOY = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


def likelihood(texts: list[list[str]]) -> float:
    """What a text is worth in nats if each piece is drawn by its share."""
    counts = Counter(piece for text in texts for piece in text)
    return sum(n * log(n / counts.total()) for n in counts.values())


def joined(text: list[str], pair: tuple[str, str]) -> list[str]:
    """Join a pair in one text, from left to right."""
    done, rest = [], list(text)
    while rest:
        if tuple(rest[:2]) == pair:
            done.append(pair[0] + pair[1][2:])
            del rest[:2]
        else:
            done.append(rest.pop(0))
    return done


def slow_pieces(words: list[str], joins: int, score: str, least: int) -> list[str]:
    """Count everything anew for each join."""
    texts = [letters_of(word) for word in words]
    known = sorted({piece for text in texts for piece in text})
    for _ in range(joins):
        single = Counter(piece for text in texts for piece in text)
        counts = Counter(pair for text in texts for pair in pairwise(text))
        worth = {
            (a, b): SCORES[score](n, single[a], single[b], single.total(), a == b)
            for (a, b), n in counts.items()
            if n >= least
        }
        if not worth:
            break
        age = {piece: i for i, piece in enumerate(known)}
        best = min(worth, key=lambda pair: (-worth[pair], age[pair[0]], age[pair[1]]))
        piece = best[0] + best[1][2:]
        known += [piece] * (piece not in known)
        texts = [joined(text, best) for text in texts]
    return known


# ---- words ---------------------------------------------------------------------

HARD = [
    "It isn't GOOD, is it?",
    "Crème brûlée à la Café",
    "Äpfel, Öl und Straße",
    "мой ПЁС",
    "snake_case __init__ a+b=c $5 €5 5% → x",
    "中文和English混排，句号。",
    "tabs\tand\nlines \u00a0 and\u2003more",
    "un\u200bseen \x00\x07soft\u00adhyphen",
    "“quotes” – dashes — and…",
    "İstanbul ı",
    "e\u0301 combined",
    "",
    "   ",
]


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("accents", [True, False])
@pytest.mark.parametrize("text", HARD)
def test_words_are_those_of_berts_tokenizer(text, lower, accents):
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    normalise = BertNormalizer(lowercase=lower, strip_accents=not accents)
    words = BertPreTokenizer().pre_tokenize_str(normalise.normalize_str(text))
    assert bert_words(text, lower, accents) == [word for word, _ in words]


def test_words_by_hand():
    assert bert_words("Café-crème, s'il te plaît!") == [
        "cafe", "-", "creme", ",", "s", "'", "il", "te", "plait", "!",
    ]  # fmt: skip
    assert bert_words("Café", lower=False) == ["Cafe"]
    assert bert_words("Café", accents=True) == ["café"]
    assert bert_words("йод") == ["иод"]  # more than an accent is lost


# ---- cutting -------------------------------------------------------------------

PIECES = {"un", "##aff", "##able", "una", "##ff", "a", "##a", "##b"}


@pytest.mark.parametrize(
    ("word", "cut"),
    [
        ("unaffable", ["una", "##ff", "##able"]),  # the longest first
        ("unab", ["una", "##b"]),
        ("a", ["a"]),
        ("ab", ["a", "##b"]),
        ("b", ["[UNK]"]),  # begins no word
        ("unax", ["[UNK]"]),  # the whole word
        ("", []),
    ],
)
def test_the_longest_piece_that_fits_is_taken(word, cut):
    assert cut_word(word, PIECES) == cut


def test_the_longest_piece_may_be_a_dead_end():
    # "ab" + "##c" would do, but "abc" isn't looked back from
    assert cut_word("abcd", {"ab", "##cd", "abc"}) == ["[UNK]"]


def test_a_word_of_too_many_letters_is_unknown():
    assert cut_word("a" * 5, PIECES, longest=5) == ["a"] + ["##a"] * 4
    assert cut_word("a" * 6, PIECES, longest=5) == ["[UNK]"]
    assert cut_word("a" * 100, PIECES) != ["[UNK]"] == cut_word("a" * 101, PIECES)


def test_cuts_are_those_of_tokenizers():
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece

    words = real_words(300)
    for score in SCORES:
        pieces = ["[UNK]", *learn_pieces(words[:300], 80, score)]
        pieces = [piece for piece in pieces if piece != "##z"]  # some are unknown then
        vocabulary = {piece: i for i, piece in enumerate(pieces)}
        model = WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=12)
        tokenizer, unknown = Tokenizer(model), 0
        for word in words:
            cut = cut_word(word, vocabulary, longest=12)
            assert cut == tokenizer.encode(word).tokens
            unknown += cut == ["[UNK]"]
        assert 0 < unknown < len(words) / 4


# ---- learning ------------------------------------------------------------------


def test_letters_inside_a_word_are_marked():
    assert letters_of("low") == ["l", "##o", "##w"]


def test_the_toy_by_hand():
    letters = learn_pieces(TOY, 0)
    assert letters == sorted({piece for word in TOY for piece in letters_of(word)})
    # 9 times "##e ##s", older than "##s ##t", which is as frequent
    assert learn_pieces(TOY, 1, "count")[-1] == "##es"
    # "##i" and "##d" are in "widest" alone: 3 / (3 · 3), and no pair is above 1/3
    assert learn_pieces(TOY, 1, "ratio")[-1] == "##id"
    # "##e" stands in many other places, so that "##es" gains less
    assert learn_pieces(TOY, 1, "likelihood")[-1] == "##st"


def test_a_gain_is_the_difference_of_likelihoods():
    texts = [letters_of(word) for word in real_words(300)]
    before = likelihood(texts)
    single = Counter(piece for text in texts for piece in text)
    counts = Counter(pair for text in texts for pair in pairwise(text))
    for pair, both in counts.most_common(40):
        after = likelihood([joined(text, pair) for text in texts])
        first, second = pair
        found = likelihood_gain(
            both, single[first], single[second], single.total(), first == second
        )
        assert found == pytest.approx(after - before, abs=1e-6), pair
    texts = [["a", "a"]] * 3 + [["b"]]
    gain = likelihood_gain(3, 6, 6, 7, same=True)
    after = likelihood([["aa"]] * 3 + [["b"]])
    assert gain == pytest.approx(after - likelihood(texts))


@pytest.mark.parametrize("score", SCORES)
def test_pieces_are_those_of_counting_all_anew(score):
    for seed in range(4):
        rng = random.Random(seed)
        words = ["".join(rng.choices("aabc", k=rng.randint(1, 7))) for _ in range(25)]
        assert learn_pieces(words, 30, score) == slow_pieces(words, 30, score, 1)
    words = real_words(60)
    assert learn_pieces(words, 60, score, 3) == slow_pieces(words, 60, score, 3)


def test_rare_pairs_are_not_joined():
    words = ["ab"] * 3 + ["cd"] * 2
    assert learn_pieces(words, 9, "ratio", min_count=3)[4:] == ["ab"]
    assert learn_pieces(words, 9, "ratio", min_count=2)[4:] == ["cd", "ab"]
    assert learn_pieces(words, 9, min_count=4)[4:] == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"joins": -1}, "joins must be an integer ≥ 0, got -1"),
        ({"joins": 1, "min_count": 0}, "min_count must be an integer ≥ 1, got 0"),
        ({"joins": 1, "score": "odds"}, "score must be one of 'likelihood', "),
    ],
)
def test_what_cannot_be_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        learn_pieces(["ab"], **given)
