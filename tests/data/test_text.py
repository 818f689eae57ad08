"""data/text.py: characters are what they were, and every next one is asked for."""

import hashlib
import math
import platform
from collections import Counter

import pytest
import torch

from annotated.batches import Vocabulary
from annotated.data.text import (
    CHARACTERS,
    MODULES,
    Characters,
    all_windows,
    library_facts,
    ngram_bits,
    random_windows,
    standard_library,
)

IDS = torch.arange(100, 140)  # an id says where it stands


# ---- the text -----------------------------------------------------------------------


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A standard library of three small modules, one of them of a package."""
    paths = {"stdlib": str(tmp_path)}
    monkeypatch.setattr("annotated.data.text.sysconfig.get_paths", lambda: paths)
    names = {"train": ("b", "json/a"), "validation": ("c",)}
    monkeypatch.setattr("annotated.data.text.MODULES", names)
    (tmp_path / "json").mkdir()
    (tmp_path / "b.py").write_bytes(b"x = 1\r\n\ty\n")
    (tmp_path / "json" / "a.py").write_text("# caf\u00e9 \u2248\n\fend\n", "utf-8")
    (tmp_path / "c.py").write_text("c\n")
    return tmp_path


def test_modules_follow_each_other_in_plain_characters(library):
    told = "x = 1\n        y\n# caf\\xe9 \\u2248\n\nend\n"
    assert standard_library("train") == told
    assert standard_library("validation") == "c\n"


def test_the_hash_is_that_of_both_texts(library):
    facts = library_facts()
    text = standard_library("train") + "c\n"
    assert facts["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert facts["characters"] == {"train": len(text) - 2, "validation": 2}
    assert facts["modules"] == {"train": 2, "validation": 1}
    assert facts["python"] == platform.python_version()
    assert "PSF" in facts["licence"]


def test_a_module_that_is_gone_is_named(library):
    (library / "c.py").unlink()
    with pytest.raises(FileNotFoundError, match=r"c\.py"):
        standard_library("validation")


def test_this_python_has_all_modules_and_no_module_is_in_both_splits():
    train, validation = standard_library("train"), standard_library("validation")
    assert set(train + validation) == set(CHARACTERS)
    assert 1_900_000 < len(train) < 2_600_000
    assert 0.05 < len(validation) / len(train) < 0.1
    assert not set(MODULES["train"]) & set(MODULES["validation"])
    assert "def wrap(text, width=70" in validation
    assert "def wrap(text, width=70" not in train


def test_characters_have_no_special_symbol_and_come_back():
    characters = Characters(CHARACTERS)
    assert len(characters) == 96 and characters.symbols[:3] == ("\n", " ", "!")
    text = "if a:\n    return\n\n"
    ids = characters.encode(text)
    assert ids[2] == CHARACTERS.index(" ")
    assert "".join(characters.decode(ids)) == text
    everything = range(len(characters))
    assert "".join(characters.decode(everything)) == CHARACTERS
    assert "".join(characters.decode(torch.arange(96))) == CHARACTERS
    assert isinstance(characters, Vocabulary)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        characters.encode("café")


# ---- windows ------------------------------------------------------------------------


def test_targets_are_the_same_text_one_later():
    drawn = list(random_windows(IDS, length=7, size=5, steps=60, seed=0))
    assert len(drawn) == 60
    for window, target in drawn:
        assert window.shape == target.shape == (5, 7)
        assert torch.equal(target, window + 1)
        assert torch.equal(window[:, 1:], window[:, :-1] + 1)
    firsts = {int(window[0, 0]) for window, _ in drawn}
    starts = torch.cat([window[:, 0] for window, _ in drawn])
    assert starts.min() == 100 and starts.max() == 139 - 7, "from end to end"
    assert len(firsts) > 10


def test_a_seed_draws_the_same_windows():
    def draw(seed):
        return torch.cat([w for w, _ in random_windows(IDS, 4, 3, 5, seed)])

    assert torch.equal(draw(0), draw(0)) and not torch.equal(draw(0), draw(1))
    assert not torch.equal(draw(0)[:3], draw(0)[3:6])


@pytest.mark.parametrize("length", [1, 3, 5, 13, 38, 39, 50])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_every_character_but_the_first_is_the_target_of_one_window(length, size):
    targets, shapes = [], []
    for window, target in all_windows(IDS, length, size):
        assert torch.equal(target, window + 1)
        assert 1 <= window.shape[0] <= size and 1 <= window.shape[1] <= length
        shapes.append(tuple(window.shape))
        targets += target.flatten().tolist()
    assert targets == IDS[1:].tolist(), "in order, nothing twice"
    assert sum(shape[1] < length for shape in shapes) <= 1


# ---- the floor ----------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3])
def test_counting_gives_the_bits_of_a_slow_count(order):
    train = torch.randint(5, (300,), generator=torch.Generator().manual_seed(0))
    text = torch.randint(5, (80,), generator=torch.Generator().manual_seed(1))
    text[7] = 4
    rows = train.tolist()
    followed = Counter(tuple(rows[i : i + order]) for i in range(301 - order))
    before = Counter()
    for run, n in followed.items():
        before[run[:-1]] += n
    bits, asked = 0.0, text.tolist()
    for i in range(81 - order):
        run = tuple(asked[i : i + order])
        bits -= math.log2((followed[run] + 1) / (before[run[:-1]] + 5))
    wanted = bits / (81 - order)
    assert ngram_bits(train, text, order, 5) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: standard_library("test"), "split must be one of 'train', 'validation"),
        (lambda: next(random_windows(IDS, 40, 1, 1, 0)), "got length=40 and .*one=39"),
        (lambda: next(all_windows(IDS[:1], 5, 1)), "at most characters, got two=2 and"),
        (lambda: ngram_bits(IDS, IDS, 1, 139), "must hold integers from 0 to 138"),
        (lambda: ngram_bits(IDS, IDS[:1], 2, 140), "order must be at most characters"),
    ],
)
def test_an_honest_mistake_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_longest_window_is_drawn():
    window, target = next(random_windows(IDS, 39, 2, 1, 0))
    assert window.tolist() == [IDS[:-1].tolist()] * 2
    assert target.tolist() == [IDS[1:].tolist()] * 2
