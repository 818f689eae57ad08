"""data/byte_bpe.py: GPT-2's tokenizer, as ``tokenizers`` and the paper have it."""

import random
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import torch

from annotated.data.byte_bpe import (
    END_OF_TEXT,
    GPT2,
    ByteTokenizer,
    byte_letters,
    gpt2_tokenizer,
    join_bytes,
    parse_ranks,
    split_text,
    to_letters,
)
from annotated.data.datasets import DataError

BYTES = {bytes([byte]): byte for byte in range(256)}
TOY = BYTES | {b"he": 256, b"ll": 257, b"hell": 258, b"lo": 259}
END = 50256

# what a tokenizer trips over
POOLS = [
    *("abcdefghij", "ABCXYZ", "0123456789", " ", "  \t\n\r", "'", ".,;:!?()[]{}"),
    *("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "’s", "' s", "don't"),
    *("\u00a0", "\u2003\u3000", "\x1c\x1d\x1e\x1f", "\x85", "\x00\x07", "\u200b\ufeff"),
    *("éüßñ", "e\u0301", "ΑΒΓ", "привет", "שלום", "مرحبا", "हिन्दी", "ไทย", "한국어"),
    *("我们今天去学校", "日本語", "½²Ⅷ〇四", "٣٤٥", "𝟘𝐀", "ﬁ", "İ", "ſ", "©®™€"),
    *("😀", "👩‍👩‍👧", "🇩🇪", "👍🏽"),
    *("_", "__init__", "->", "==", "\n    ", "#!/", "\\n"),
    *("<|endoftext|", " the", " and", "ing", "http://", "3.14", "1e-5", "x2y"),
]
CODE = Path(__file__).read_text(encoding="utf-8")


def hard_strings(count: int, seed: int = 0) -> list[str]:
    """Texts of all pools, of any characters, and pieces of this file."""
    rng = random.Random(seed)
    known = "".join(map(chr, old_characters()))
    texts = ["", " ", "  ", "\n", " \n ", "a  ", "  a", "a \n b", END_OF_TEXT[:-1]]
    while len(texts) < count:
        kind = len(texts) % 4
        if kind == 0:
            texts.append("".join(rng.choices(known, k=rng.randint(1, 40))))
        elif kind == 1:
            start = rng.randrange(len(CODE))
            part = CODE[start : start + rng.randint(1, 200)]
            texts.append(part.replace(END_OF_TEXT, ""))
        else:
            pools = rng.choices(POOLS, k=rng.randint(1, 30))
            texts.append(
                "".join(p if rng.random() < 0.5 else rng.choice(p) for p in pools)
            )
    return texts


@cache
def old_characters() -> list[int]:
    """Return those of Unicode 3.2, on whose kind every library agrees."""
    old = unicodedata.ucd_3_2_0
    surrogates = range(0xD800, 0xE000)
    kinds = {i: old.category(chr(i)) for i in range(0x110000) if i not in surrogates}
    return [i for i, kind in kinds.items() if kind not in ("Cn", "Co")]


@pytest.fixture(scope="module")
def theirs():
    """The tokenizer of ``tokenizers``, with GPT-2's pattern and the same ranks."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    known, merges = {}, []
    for token, rank in gpt2_tokenizer().ranks.items():
        if len(token) > 1:  # the merge that made it: two tokens that are older
            first, second = join_bytes(token, known)
            merges.append((to_letters(first), to_letters(second)))
        known[token] = rank
    letters = {to_letters(token): rank for token, rank in known.items()}
    tokenizer = Tokenizer(BPE(letters, merges))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = Decoder()
    return tokenizer


# ---- pieces --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello world", ["Hello", " world"]),
        ("it's we'll I'd", ["it", "'s", " we", "'ll", " I", "'d"]),
        ("you've I'm they're", ["you", "'ve", " I", "'m", " they", "'re"]),
        ("IT'S", ["IT", "'", "S"]),  # the endings are small letters
        ("don't 'tis", ["don", "'t", " '", "tis"]),
        ("a   b", ["a", "  ", " b"]),  # the last space goes with the word
        ("a \n b", ["a", " \n", " b"]),
        ("a  ", ["a", "  "]),
        ("a\tb", ["a", "\t", "b"]),  # only a space goes with a word
        ("a\u00a0\u00a0b", ["a", "\u00a0", "\u00a0", "b"]),
        ("3.14 x2", ["3", ".", "14", " x", "2"]),
        ("x²½ Ⅷ", ["x", "²½", " Ⅷ"]),  # numbers of all kinds
        ("我们，4个", ["我们", "，", "4", "个"]),
        ("(a)!? ...", ["(", "a", ")!?", " ..."]),
        ("_a_", ["_", "a", "_"]),  # no letter
        ("👍🏽é", ["👍🏽", "é"]),
        ("a\x1cb", ["a", "\x1c", "b"]),
        ("a \x1c", ["a", " \x1c"]),  # a sign, though Python calls it a space
        ("", []),
    ],
)
def test_pieces(text, pieces):
    assert split_text(text) == pieces


@pytest.mark.slow
def test_pieces_are_those_of_the_pattern_of_the_paper_for_every_character():
    import regex

    pattern = regex.compile(
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    )
    every = map(chr, old_characters())
    text = "".join(f"a{c}1 {c}b'{c}s !{c}{c} \n" for c in every)
    assert split_text(text) == pattern.findall(text)
    for one in hard_strings(400, seed=1):
        assert split_text(one) == pattern.findall(one)


# ---- bytes and letters ---------------------------------------------------------


def test_letters_of_bytes():
    assert to_letters(b" the\n") == "ĠtheĊ"
    assert to_letters("é€".encode()) == "Ã©âĤ¬"
    assert len(set(byte_letters().values())) == 256
    assert not any(c.isspace() or not c.isprintable() for c in byte_letters().values())


def test_ranks_of_single_bytes_are_in_the_order_of_letters():
    tokens = gpt2_tokenizer().tokens
    assert [tokens[i][0] for i in range(256)] == list(byte_letters())


# ---- tokens --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "tokens"),
    [
        ("hello", ["hell", "o"]),  # "he", "ll" and "hell" are older than "lo"
        ("llo", ["ll", "o"]),
        ("lolo", ["lo", "lo"]),
        ("lll", ["ll", "l"]),
        ("xyz", ["x", "y", "z"]),
        ("h", ["h"]),
        ("", []),
    ],
)
def test_the_oldest_join_comes_first(piece, tokens):
    assert join_bytes(piece.encode(), TOY) == [token.encode() for token in tokens]


def test_known_ids():
    ours = gpt2_tokenizer()
    assert ours.vocab_size == 50257
    assert ours.encode("Hello world") == [15496, 995]
    assert ours.encode(" the") == [262]
    assert ours.decode([15496, 11, 995, 0]) == "Hello, world!"


def test_ids_are_those_of_tokenizers(theirs):
    ours = gpt2_tokenizer()
    texts = hard_strings(1500)
    assert len({*texts}) > 1200
    for text in texts:
        ids = ours.encode(text)
        assert ids == theirs.encode(text).ids, repr(text)
        assert ours.decode(ids) == text
    long = CODE + "".join(texts)
    assert ours.encode(long) == theirs.encode(long).ids


def test_any_ids_are_decoded_as_by_tokenizers(theirs):
    """Their bytes are seldom UTF-8."""
    rng, ours = random.Random(0), gpt2_tokenizer()
    for _ in range(300):
        ids = [rng.randrange(END) for _ in range(rng.randint(1, 9))]
        ids += rng.choices(range(94, 256), k=3)
        assert ours.decode(ids) == theirs.decode(ids)


def test_half_a_character_is_replaced_or_refused():
    ours = gpt2_tokenizer()
    ids = ours.encode("a😀")
    assert len(ids) > 2
    assert ours.decode(ids[:-1]) == "a�"
    assert ours.decode(ids[:-1], errors="ignore") == "a"
    with pytest.raises(UnicodeDecodeError):
        ours.decode(ids[:-1], errors="strict")


def test_half_a_surrogate_pair_is_no_character():
    with pytest.raises(ValueError, match="got half of a surrogate pair"):
        gpt2_tokenizer().encode("a\ud83d")


def test_a_special_token_that_is_typed_is_text_unless_it_is_allowed(theirs):
    ours, text = gpt2_tokenizer(), f"one{END_OF_TEXT}\n two{END_OF_TEXT}"
    typed = ours.encode(text)
    assert typed == theirs.encode(text).ids and END not in typed
    assert ours.encode(END_OF_TEXT) == [27, 91, 437, 1659, 5239, 91, 29]
    theirs.add_special_tokens([END_OF_TEXT])
    allowed = ours.encode(text, allow_special=True)
    assert allowed == theirs.encode(text).ids
    assert allowed.count(END) == 2 and allowed[-1] == END
    assert ours.decode(typed) == ours.decode(allowed) == text
    plain = ours.encode("one", allow_special=True)
    assert plain == ours.encode("one")


def test_a_tokenizer_without_special_tokens():
    ours = ByteTokenizer(TOY)
    assert ours.encode("hello", allow_special=True) == [258, ord("o")]
    assert ours.vocab_size == 260


def test_the_longest_of_special_tokens_that_begin_alike():
    ours = ByteTokenizer(BYTES, {"<a": 256, "<a>": 257})
    assert ours.encode("<a><a", allow_special=True) == [257, 256]


def test_bytes_of_ids():
    ours = ByteTokenizer(TOY, {"<end>": 260})
    ids = [258, 111, 260]
    assert ours.decode_bytes(ids) == [b"hell", b"o", b"<end>"]
    assert ours.decode(torch.tensor(ids)) == ours.decode(ids) == "hello<end>"


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([5, 50257], ValueError, r"ids\[1\] must be an integer from 0 to 50256, got 5"),
        ([-1], ValueError, r"ids\[0\] must be an integer from 0 to 50256, got -1"),
        ([1.0], TypeError, r"ids\[0\] must be an integer from 0 to 50256, got 1.0"),
    ],
)
def test_ids_that_are_none_are_named(ids, error, message):
    with pytest.raises(error, match=message):
        gpt2_tokenizer().decode(ids)


@pytest.mark.parametrize(
    "special", [{"<end>": 300}, {"<end>": 259}, {"<a>": 260, "<b>": 260}]
)
def test_ids_of_special_tokens_come_after_the_ranks(special):
    with pytest.raises(ValueError, match=r"must be 0 to 26[01], each once"):
        ByteTokenizer(TOY, special)


# ---- files ---------------------------------------------------------------------


def lines_of(ranks: dict[bytes, int]) -> list[str]:
    from base64 import b64encode

    return [f"{b64encode(token).decode()} {rank}" for token, rank in ranks.items()]


def test_ranks_are_read():
    assert parse_ranks("\n".join(lines_of(TOY)) + "\n") == TOY
    assert parse_ranks("\n".join(reversed(lines_of(TOY)))) == TOY


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, "aGVs"], "line 261 must be a token .*got 'aGVs'"),
        (lambda lines: [*lines, "aGVs 260 1"], "line 261 must be .*got 'aGVs 260 1'"),
        (lambda lines: [*lines, "aGVs x"], "line 261 must be .*got 'aGVs x'"),
        (lambda lines: [*lines, "aG?Vs 260"], "line 261 must be .*got .aG.Vs 260."),
        (lambda lines: [*lines, "aGV 260"], "line 261 must be .*: Incorrect padding"),
        (lambda lines: [*lines, "aGU= 260"], "line 261.*the token is there twice"),
        (lambda lines: [*lines, "aGVs 259"], r"ranks 0 to 260, each once.*no 260"),
        (lambda lines: [*lines, "aGVs -1"], r"ranks 0 to 260, each once.*no 260"),
        (lambda lines: [*lines[:257], *lines[258:]], r"0 to 258, .*there is no 257"),
        (lambda lines: lines[:250], "all 256 bytes; 6 are missing"),
        (lambda lines: [], "all 256 bytes; 256 are missing"),
        (lambda lines: ["<html>", *lines], "line 1 must be a token .*got '<html>'"),
    ],
)
def test_what_is_wrong_with_ranks_is_named(change, message):
    with pytest.raises(ValueError, match=f"(?s)text.*{message}"):
        parse_ranks("\n".join(change(lines_of(TOY))))


def test_a_damaged_file_is_refused(monkeypatch):
    monkeypatch.setitem(GPT2, "sha256", "0" * 64)
    with pytest.raises(DataError, match=r"gpt2\.tiktoken\.gz is not the file"):
        gpt2_tokenizer.__wrapped__()
