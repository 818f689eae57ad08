"""data/spelling.py: every word with all its sounds, and none in two splits."""

import gzip
import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from annotated.batches import SPLITS
from annotated.data import spelling
from annotated.data.datasets import DataError
from annotated.data.spelling import (
    cmudict_facts,
    pronunciations,
    spelling_pairs,
    spelling_words,
    word_split,
)

TEXT = """\
cat K AE1 T
cat's K AE1 T S
gdp G IY1 D IY1 P IY1 # abbrev
read R EH1 D
read(2) R IY1 D
record R AH0 K AO1 R D
record(2) R EH1 K ER0 D
record(3) R AH1 K AO0 R D # noun(?)
"""


@pytest.fixture
def tiny(monkeypatch):
    """A dictionary of a few lines."""
    monkeypatch.setattr(spelling, "cmudict_text", lambda: TEXT)
    for function in (pronunciations, spelling_words):
        monkeypatch.setattr(spelling, function.__name__, function.__wrapped__)
    return spelling


def test_a_word_has_all_its_pronunciations_without_comments_numbers_and_stress(tiny):
    words = tiny.pronunciations()
    assert list(words) == ["cat", "cat's", "gdp", "read", "record"]
    assert words["cat"] == (("K", "AE", "T"),)
    assert words["gdp"] == (("G", "IY", "D", "IY", "P", "IY"),)
    assert words["read"] == (("R", "EH", "D"), ("R", "IY", "D")), "the first one first"
    # the third is the first one with another stress
    found = [" ".join(one) for one in words["record"]]
    assert found == ["R AH K AO R D", "R EH K ER D"]


def test_stress_is_kept_where_it_is_asked_for(tiny):
    words = tiny.pronunciations(stress=True)
    assert words["read"] == (("R", "EH1", "D"), ("R", "IY1", "D"))
    assert len(words["record"]) == 3


def test_what_becomes_of_the_lines_is_counted(tiny):
    facts = tiny.cmudict_facts()
    counted = {"lines": 8, "words": 5, "comments": 2, "further": 3, "alike": 1}
    assert {name: facts[name] for name in counted} == counted
    assert facts["several"] == 2
    assert facts["sounds"] == len(set("K AE T S G IY D P R EH AH AO ER".split()))


def test_pairs_hold_the_first_pronunciation_or_every_one(tiny, monkeypatch):
    splits = {"r": "test"}
    monkeypatch.setattr(tiny, "word_split", lambda w: splits.get(w[0], "train"))
    assert tiny.spelling_pairs("test") == [
        ("read", ("R", "EH", "D")),
        ("record", tuple("R AH K AO R D".split())),
    ]
    assert len(tiny.spelling_pairs("test", every=True)) == 4
    assert len(tiny.spelling_pairs("test", every=True, stress=True)) == 5
    assert [word for word, _ in tiny.spelling_pairs("train")] == ["cat", "cat's", "gdp"]


# ---- the real one --------------------------------------------------------------


def test_the_dictionary_is_whole():
    facts = cmudict_facts()
    assert facts["lines"] == 135_166 and facts["words"] == 126_052
    assert facts["comments"] == 22 and facts["further"] == 9_114
    assert facts["sounds"] == 39
    assert facts["several"] == 8_175
    assert pronunciations()["read"] == (("R", "EH", "D"), ("R", "IY", "D"))
    stressed = pronunciations(stress=True).values()
    assert sum(len(answers) > 1 for answers in stressed) == 8_445


def test_no_word_is_in_two_splits_nor_with_other_punctuation():
    words = {split: spelling_words(split) for split in SPLITS}
    assert sum(map(len, words.values())) == 126_052
    letters = {
        split: {"".join(filter(str.isalpha, word)) for word in words[split]}
        for split in SPLITS
    }
    for one, other in (SPLITS[:2], SPLITS[1:], SPLITS[::2]):
        assert not letters[one] & letters[other]
    shares = [len(words[split]) / 126_052 for split in SPLITS]
    assert shares == pytest.approx([0.9, 0.05, 0.05], abs=0.01)


def test_a_word_stays_in_its_split():
    for word in ("attention", "o'neil", "key", "apple", "footwork", "saber"):
        digest = hashlib.sha256(word.replace("'", "").encode()).digest()
        bucket = int.from_bytes(digest[:4], "big") % 20
        expected = (["train"] * 18 + ["validation", "test"])[bucket]
        forms = word, f"{word}s", f"{word}'s", f"{word}s'", f"{word[0]}.{word[1:]}"
        assert {word_split(same) for same in forms} == {expected}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda packed: packed[:-1000], "EOFError"),
        (lambda packed: b"", "its sha256 is e3b0c4"),
        (lambda packed: b"<html>" + packed, "BadGzipFile"),
        (lambda packed: packed[:5000] + b"\0" * 99 + packed[5099:], "error|Error"),
        (lambda packed: gzip.compress(b"cat K AE1 T\n"), "its sha256 is"),
        (lambda packed: None, "FileNotFoundError"),
    ],
)
def test_a_damaged_file_is_refused(change, found, tmp_path, monkeypatch):
    path = Path("vendor", "cmudict", "cmudict.dict.gz")
    packed = change((files("annotated") / path).read_bytes())
    (tmp_path / path).parent.mkdir(parents=True)
    if packed is not None:
        (tmp_path / path).write_bytes(packed)
    monkeypatch.setattr(spelling, "files", lambda name: tmp_path)
    with pytest.raises(DataError, match=f"(?s)cmudict.dict.gz is not .*({found})"):
        spelling.cmudict_text()


def test_an_unknown_split_is_named():
    with pytest.raises(ValueError, match=r"split must be one of .*, got .dev."):
        spelling_pairs("dev")
