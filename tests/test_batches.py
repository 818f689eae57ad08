"""annotated/batches.py: nothing lost, nothing ambiguous, no day in two splits."""

import datetime
import hashlib
import random
from collections import Counter
from itertools import pairwise, product

import pytest
import torch

from annotated import batches as data
from annotated.batches import (
    FIRST_DAY,
    LAST_DAY,
    LOCALES,
    SPLITS,
    STYLES,
    TASKS,
    Batch,
    Vocabulary,
    batches,
    date_pairs,
    date_split,
    make_batch,
    pad_sequences,
    sequence_task,
    token_batches,
    write_date,
)

# what the recorded runs and everybody's test scores depend on
SPLITS_OF_ALL_DAYS = "62013790e7cf80ced0a8cc0c2a8e12bde0eeb8a8b3cc3ec4b9f856a7b95c9c02"
PINNED_DRAW = "c7c82e7533c42e73573fa6b7108421702506daf597f978c14977cef46597c182"

DAY = datetime.timedelta(days=1)
ALL_DAYS = [FIRST_DAY + i * DAY for i in range((LAST_DAY - FIRST_DAY).days + 1)]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---- Vocabulary --------------------------------------------------------------


def test_ids_are_the_order_of_the_symbols_after_the_special_ones():
    vocabulary = Vocabulary(["b", "ä", "aa", "b"])
    assert vocabulary.symbols == ("<pad>", "<start>", "<end>", "aa", "b", "ä")
    assert (vocabulary.pad, vocabulary.start, vocabulary.end) == (0, 1, 2)
    assert len(vocabulary) == 6
    assert vocabulary.encode(["b", "aa"]) == [4, 3]
    assert vocabulary.encode(["b", "aa"], end=True) == [4, 3, 2]


def test_decoding_undoes_encoding_up_to_the_end():
    vocabulary = Vocabulary("7. März 2024")
    for text in ("7. März 2024", "z", "", "  .."):
        ids = vocabulary.encode(text)
        assert "".join(vocabulary.decode(ids)) == text
        rest = [vocabulary.pad, 5, vocabulary.end]
        more = torch.tensor([vocabulary.start, *ids, vocabulary.end, *rest])
        assert "".join(vocabulary.decode(more)) == text


# ---- pad_sequences, make_batch, Batch ----------------------------------------


def test_padding_follows_the_shorter_sequences():
    tokens, lengths = pad_sequences([[3, 4], [5, 6, 7], [], [4]], pad=11)
    assert tokens.tolist() == [[3, 4, 11], [5, 6, 7], [11, 11, 11], [4, 11, 11]]
    assert lengths.tolist() == [2, 3, 0, 1]
    assert tokens.dtype == lengths.dtype == torch.int64
    assert pad_sequences([[3], [4, 5]])[0].tolist() == [[3, 0], [4, 5]]


def test_labels_are_the_target_one_step_ahead():
    source, target = Vocabulary("abc"), Vocabulary("xyzb")
    batch = make_batch([("ab", "xyz"), ("cab", "b")], source, target)
    assert batch.source.tolist() == [[3, 4, 0], [5, 3, 4]]
    assert batch.lengths.tolist() == [2, 3]
    assert batch.target.tolist() == [[1, 4, 5, 6], [1, 3, 2, 0]]
    assert batch.labels.tolist() == [[4, 5, 6, 2], [3, 2, 0, 0]]


def test_a_batch_moves_as_a_whole():
    batch = make_batch([("a", "b")], Vocabulary("a"), Vocabulary("b"))
    moved = batch.to("meta")
    assert isinstance(moved, Batch)
    assert {tensor.device.type for tensor in moved} == {"meta"}
    assert [tensor.shape for tensor in moved] == [tensor.shape for tensor in batch]


# ---- batches, token_batches --------------------------------------------------

# sources of 1 to 40 characters in no order; each pair is another one
PAIRS = [("a" * (1 + (17 * i) % 40), f"{i:04}") for i in range(211)]
LETTERS, DIGITS = Vocabulary("a"), Vocabulary("0123456789")


def by_size(size: int, seed: int | None, pairs=PAIRS) -> list[Batch]:
    return list(batches(pairs, LETTERS, DIGITS, size, seed))


def by_tokens(tokens: int, seed: int | None, pairs=PAIRS) -> list[Batch]:
    return list(token_batches(pairs, LETTERS, DIGITS, tokens, seed))


both_ways = pytest.mark.parametrize(("cut", "most"), [(by_size, 7), (by_tokens, 133)])


def read_back(parts: list[Batch]) -> list[tuple[str, str]]:
    return [
        ("".join(LETTERS.decode(source)), "".join(DIGITS.decode(labels)))
        for batch in parts
        for source, labels in zip(batch.source, batch.labels, strict=True)
    ]


def padding(parts: list[Batch]) -> float:
    """Share of the sources' positions that hold no symbol."""
    real = sum(int(batch.lengths.sum()) for batch in parts)
    return 1 - real / sum(batch.source.numel() for batch in parts)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("size", [1, 7, 211, 500])
def test_batches_hold_every_pair_once(size, seed):
    parts = by_size(size, seed)
    assert sorted(read_back(parts)) == sorted(PAIRS)
    whole, rest = divmod(len(PAIRS), size)
    sizes = sorted((len(batch.source) for batch in parts), reverse=True)
    assert sizes == [size] * whole + [rest] * (rest > 0)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("tokens", [40, 41, 133, 10_000])
def test_batches_by_tokens_hold_every_pair_once_and_no_token_too_many(tokens, seed):
    parts = by_tokens(tokens, seed)
    assert sorted(read_back(parts)) == sorted(PAIRS)
    room = [max(batch.source.numel(), batch.labels.numel()) for batch in parts]
    assert max(room) <= tokens
    # one pair more of at most 40 tokens would not fit, except in the last one
    assert sum(used <= tokens - 40 for used in room) <= 1


@both_ways
def test_a_seed_decides_the_order(cut, most):
    assert read_back(cut(most, 3)) == read_back(cut(most, 3))
    assert len({tuple(read_back(cut(most, seed))) for seed in (3, 4, None)}) == 3
    assert read_back(by_size(7, None)) == PAIRS, "without a seed the order stays"


@both_ways
def test_batches_hold_little_padding_and_do_not_come_from_short_to_long(cut, most):
    assert padding(by_size(7, None)) > 0.3
    for seed in range(3):
        assert padding(cut(most, seed)) < 0.1
    widths = [batch.source.shape[1] for batch in cut(most, 0)]
    rises = sum(a <= b for a, b in pairwise(widths)) / (len(widths) - 1)
    assert 0.25 < rises < 0.75


@both_ways
def test_a_pair_meets_others_with_another_seed(cut, most):
    same = [("a" * 5, f"{i:04}") for i in range(60)]
    company = [
        {frozenset(read_back([batch])) for batch in cut(most, seed, same)}
        for seed in (0, 1)
    ]
    assert not company[0] & company[1], "the same pairs always meet"


@both_ways
def test_pairs_and_the_generator_of_others_are_left_alone(cut, most, monkeypatch):
    for name in ("choice", "randint", "randrange", "shuffle"):
        monkeypatch.setattr(random, name, None)
    pairs = list(PAIRS)
    assert cut(most, 0, pairs) and cut(most, 0, []) == []
    assert pairs == PAIRS
    assert date_pairs(3, "train")


def test_the_end_of_a_target_takes_a_position():
    pairs = [("a", "123")] * 6  # with its end symbol a target takes four
    assert [len(b.labels) for b in by_tokens(8, None, pairs)] == [2, 2, 2]
    assert [len(b.labels) for b in by_tokens(11, None, pairs)] == [2, 2, 2]
    assert [len(b.labels) for b in by_tokens(12, None, pairs)] == [3, 3]
    pairs = [("aaaaaa", "1")] * 6  # and a source none
    assert [len(b.source) for b in by_tokens(12, None, pairs)] == [2, 2, 2]


def test_batches_by_tokens_come_by_length_without_a_seed():
    lengths = [n for batch in by_tokens(133, None) for n in batch.lengths.tolist()]
    assert lengths == sorted(lengths, key=lambda n: max(n, 5)), (
        "by the longer side: four digits and an end"
    )
    same = [("aa", digit) for digit in "3719"]
    assert read_back(by_tokens(4, None, same)) == same, "pairs of one length stay"


# ---- sequence_task -----------------------------------------------------------


def drawn(task: str, seed: int = 0, **settings):
    generator = torch.Generator().manual_seed(seed)
    return sequence_task(task, 300, generator, **settings)


IN_PYTHON = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}
every_task = pytest.mark.parametrize("task", TASKS)


@every_task
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shortest": 2},
        {"length": 7, "shortest": 4, "vocab_size": 5},
        {"length": 2, "vocab_size": 3},
        {"length": 13, "shortest": 13, "vocab_size": 40},
    ],
)
def test_the_target_is_what_python_makes_of_each_row(task, settings):
    source, target = drawn(task, **settings)
    length, vocab_size = settings.get("length", 10), settings.get("vocab_size", 11)
    shortest = settings.get("shortest", length)
    assert source.shape == target.shape == (300, length)
    assert source.dtype == target.dtype == torch.int64
    sizes = Counter()
    for row, wanted in zip(source.tolist(), target.tolist(), strict=True):
        size = row.index(0) if 0 in row else length
        sizes[size] += 1
        padding = [0] * (length - size)
        assert row[0] == 1, "the start symbol stands in front"
        assert row[size:] == padding, "padding stands behind, and nowhere else"
        assert [1, *IN_PYTHON[task](row[1:size]), *padding] == wanted
    assert set(sizes) == set(range(shortest, length + 1)), "every length is drawn"
    # evenly: within six standard deviations of what is expected
    expected = 300 / len(sizes)
    assert all(abs(n - expected) < 6 * expected**0.5 for n in sizes.values()), sizes
    symbols = set(source[:, 1:].flatten().tolist()) - {0}
    assert symbols == set(range(1, vocab_size)), "every symbol is drawn, the start too"


def test_the_generator_decides_what_is_drawn_and_all_tasks_draw_alike():
    before = torch.get_rng_state()
    sources = [drawn(task, shortest=2)[0] for task in TASKS]
    assert torch.equal(sources[0], sources[1]) and torch.equal(sources[0], sources[2])
    assert not torch.equal(sources[0], drawn("copy", seed=1, shortest=2)[0])
    generator = torch.Generator().manual_seed(0)
    first, _ = sequence_task("copy", 5, generator)
    assert not torch.equal(first, sequence_task("copy", 5, generator)[0])
    assert torch.equal(torch.get_rng_state(), before), "drawn from everybody's"


def test_a_copy_is_a_tensor_of_its_own():
    source, target = drawn("copy")
    target[:] = 0
    assert source.ne(0).all()


# ---- dates -------------------------------------------------------------------


@pytest.fixture(scope="module")
def splits() -> list[str]:
    """The split of each day."""
    return [date_split(day) for day in ALL_DAYS]


def test_every_day_of_two_centuries_has_one_split_and_keeps_it(splits):
    assert (ALL_DAYS[0].year, ALL_DAYS[-1].year, len(ALL_DAYS)) == (1900, 2099, 73_049)
    assert sha256("\n".join(splits)) == SPLITS_OF_ALL_DAYS
    shares = [splits.count(name) / len(splits) for name in SPLITS]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_a_date_is_written_as_its_locale_does():
    day = datetime.date(2024, 3, 7)
    assert write_date(day, "de", "long") == "7. März 2024"
    assert write_date(day, "en_US", "medium") == "Mar 7, 2024"
    assert write_date(day, "zh", "full") == "2024年3月7日星期四"


def test_every_space_of_a_date_is_a_plain_one():
    for locale, style in product((*LOCALES, "da", "bg", "lv"), STYLES):
        text = write_date(datetime.date(2024, 3, 7), locale, style)
        assert text == " ".join(text.split(" ")).strip() and "  " not in text
        assert all(c == " " or not c.isspace() for c in text), repr(text)


def test_no_text_stands_for_two_days():
    march, july = datetime.date(2024, 3, 7), datetime.date(2024, 7, 3)
    assert write_date(march, "en_US", "short") == write_date(july, "es", "short")
    assert "short" not in STYLES and len(set(LOCALES)) >= 12
    # two years that end alike: a year of two digits would be found, too
    meant = {}
    for day in (day for day in ALL_DAYS if day.year in (1924, 2024)):
        for locale, style in product(LOCALES, STYLES):
            text = write_date(day, locale, style)
            assert meant.setdefault(text, day) == day, (text, locale, style)
    assert len(meant) > 20 * 732


# ---- date_pairs --------------------------------------------------------------


def iso_days(target: str) -> list[datetime.date]:
    return [datetime.date.fromisoformat(text) for text in target.split(" ")]


def writings(day: datetime.date, locale: str) -> set[str]:
    return {write_date(day, locale, style) for style in STYLES}


def test_the_draw_is_pinned():
    # of the targets alone: how babel writes a date may change with its version
    targets = [target for _, target in date_pairs(50, "train")]
    assert sha256("\n".join(targets)) == PINNED_DRAW
    assert date_pairs(7, "train", 0) == date_pairs(50, "train")[:7]
    assert date_pairs(7, "train", 1) != date_pairs(7, "train", 0)


@pytest.mark.parametrize("split", SPLITS)
def test_lines_come_from_their_split_and_hold_as_many_dates_as_asked_for(split):
    lines = [iso_days(target) for _, target in date_pairs(300, split, dates=(2, 4))]
    assert {date_split(day) for line in lines for day in line} == {split}
    assert {len(line) for line in lines} == {2, 3, 4} and len(lines) == 300
    assert {len(iso_days(target)) for _, target in date_pairs(50, split)} == {1}


def test_a_source_says_the_days_of_its_target_in_one_locale():
    for source, target in date_pairs(100, "train", dates=(1, 3)):
        written = list(zip(source.split("; "), iso_days(target), strict=True))
        assert any(
            all(text in writings(day, locale) for text, day in written)
            for locale in LOCALES
        ), f"nobody writes {target} as {source!r}"
    for source, target in date_pairs(50, "train", locales=["de"]):
        assert source in writings(*iso_days(target), "de")


def test_every_locale_and_style_is_drawn():
    found = set()
    for source, target in date_pairs(500, "train"):
        (day,) = iso_days(target)
        for locale, style in product(LOCALES, STYLES):
            if write_date(day, locale, style) == source:
                found.add((locale, style))
    assert found == set(product(LOCALES, STYLES))


def test_every_day_can_be_drawn_the_first_and_the_last_too(monkeypatch):
    days = [day for day in ALL_DAYS[:9] if date_split(day) == "train"]
    monkeypatch.setattr(data, "FIRST_DAY", days[0])
    monkeypatch.setattr(data, "LAST_DAY", days[-1])
    drawn = {day for _, target in date_pairs(200, "train") for day in iso_days(target)}
    assert drawn == set(days)


PAIR = [("aaa", "1"), ("a", "123456")]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vocabulary("ab").encode("axy"), r"outside the voc.*: \['x', 'y'\]$"),
        (lambda: by_size(0, None), "size must be an integer ≥ 1, got 0"),
        (lambda: token_batches(PAIR, LETTERS, DIGITS, 6), "longest=7 and tokens=6"),
        (lambda: date_pairs(1, "dev"), "split must be one of 'train', .* got 'dev'"),
        (lambda: drawn("copy", vocab_size=2), "vocab_size must be .* got 2"),
        (lambda: drawn("copy", shortest=11), "shortest must be .* 2 to 10, got 11"),
    ],
)
def test_an_honest_mistake_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
