"""annotated/data.py: nothing lost, nothing ambiguous, no day in two splits."""

import datetime
import hashlib
import math
import random
from collections import Counter
from itertools import pairwise

import numpy
import pytest
import torch

from annotated import data
from annotated.data import (
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


def days_of(*years: int) -> list[datetime.date]:
    return [day for day in ALL_DAYS if day.year in years]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---- Vocabulary --------------------------------------------------------------


def test_special_symbols_have_the_first_ids():
    vocabulary = Vocabulary("ba")
    assert vocabulary.symbols == ("<pad>", "<start>", "<end>", "a", "b")
    assert (vocabulary.pad, vocabulary.start, vocabulary.end) == (0, 1, 2)
    assert len(vocabulary) == 5


def test_ids_depend_on_neither_order_nor_number_of_the_symbols():
    wanted = Vocabulary(["x", "aa", "ä", " "])
    other = Vocabulary(["ä", " ", "x", "aa", "x", " "])
    assert other.symbols == wanted.symbols
    assert other.encode(["aa", "ä"]) == wanted.encode(["aa", "ä"])


def test_decoding_undoes_encoding():
    vocabulary = Vocabulary("7. März 2024")
    for text in ("7. März 2024", "z", "", "  .."):
        ids = vocabulary.encode(text)
        assert len(ids) == len(text)
        assert "".join(vocabulary.decode(ids)) == text


def test_a_row_of_a_batch_can_be_decoded():
    vocabulary = Vocabulary("abc")
    assert vocabulary.decode(torch.tensor([5, 3, 2])) == ["c", "a"]


def test_each_symbol_has_its_own_id():
    vocabulary = Vocabulary("abc")
    assert vocabulary.encode("cab") == [5, 3, 4]


def test_the_end_symbol_is_appended_when_asked_for():
    vocabulary = Vocabulary("ab")
    assert vocabulary.encode("ab", end=True) == [3, 4, vocabulary.end]
    assert vocabulary.encode("ab") == [3, 4]


def test_decoding_stops_at_the_first_end_and_leaves_special_symbols_out():
    vocabulary = Vocabulary("abc")
    ids = [vocabulary.start, 3, vocabulary.pad, 5, vocabulary.end, 4, vocabulary.end]
    assert vocabulary.decode(ids) == ["a", "c"]


# ---- pad_sequences, make_batch, Batch ----------------------------------------


def test_padding_stands_behind_the_shorter_sequences():
    sequences = [[3, 4], [5, 6, 7, 8, 9], [], [4, 4, 4]]
    tokens, lengths = pad_sequences(sequences, pad=11)
    assert tokens.tolist() == [
        [3, 4, 11, 11, 11],
        [5, 6, 7, 8, 9],
        [11] * 5,
        [4, 4, 4, 11, 11],
    ]
    assert lengths.tolist() == [2, 5, 0, 3]
    assert tokens.dtype == lengths.dtype == torch.int64
    assert sequences == [[3, 4], [5, 6, 7, 8, 9], [], [4, 4, 4]]


def test_padding_is_zero_unless_said_otherwise():
    tokens, _ = pad_sequences([[3], [4, 5]])
    assert tokens.tolist() == [[3, 0], [4, 5]]


def test_labels_are_the_target_one_step_ahead():
    source, target = Vocabulary("abc"), Vocabulary("xyz")
    batch = make_batch([("ab", "xyz"), ("cab", "y")], source, target)
    x, y, z = target.encode("xyz")
    assert batch.target.tolist() == [
        [target.start, x, y, z],
        [target.start, y, target.end, target.pad],
    ]
    assert batch.labels.tolist() == [
        [x, y, z, target.end],
        [y, target.end, target.pad, target.pad],
    ]
    assert torch.equal(batch.target[:, 1:], batch.labels[:, :-1])


def test_sources_keep_their_symbols_and_lengths():
    source, target = Vocabulary("abc"), Vocabulary("xyz")
    batch = make_batch([("ab", "x"), ("cabba", "y")], source, target)
    assert batch.lengths.tolist() == [2, 5]
    assert ["".join(source.decode(row)) for row in batch.source.tolist()] == [
        "ab",
        "cabba",
    ]
    assert batch.source[0, 2:].eq(source.pad).all()


def test_each_side_has_its_own_vocabulary():
    batch = make_batch([("b", "b")], Vocabulary("ab"), Vocabulary("b"))
    assert batch.source.tolist() == [[4]]
    assert batch.labels.tolist() == [[3, 2]]


def test_a_batch_moves_as_a_whole():
    batch = make_batch([("a", "b")], Vocabulary("a"), Vocabulary("b"))
    moved = batch.to("meta")
    assert isinstance(moved, Batch)
    assert {tensor.device.type for tensor in moved} == {"meta"}
    assert [tensor.shape for tensor in moved] == [tensor.shape for tensor in batch]


# ---- batches -----------------------------------------------------------------


def make_pairs(count: int) -> list[tuple[str, str]]:
    """Sources of 1 to 40 characters in no order; each pair is another one."""
    lengths = [1 + (17 * i) % 40 for i in range(count)]
    return [("a" * n, f"{i:04}") for i, n in enumerate(lengths)]


PAIRS = make_pairs(211)
LETTERS, DIGITS = Vocabulary("a"), Vocabulary("0123456789")


def cut(size: int, seed: int | None, pairs=PAIRS) -> list[Batch]:
    return list(batches(pairs, LETTERS, DIGITS, size, seed))


def read_back(parts: list[Batch]) -> list[tuple[str, str]]:
    return [
        ("".join(LETTERS.decode(source)), "".join(DIGITS.decode(labels)))
        for batch in parts
        for source, labels in zip(
            batch.source.tolist(), batch.labels.tolist(), strict=True
        )
    ]


def padding(parts: list[Batch]) -> float:
    """Share of the sources' positions that hold no symbol."""
    real = sum(int(batch.lengths.sum()) for batch in parts)
    return 1 - real / sum(batch.source.numel() for batch in parts)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("size", [1, 7, 211, 500])
def test_batches_hold_every_pair_once(size, seed):
    parts = cut(size, seed)
    assert sorted(read_back(parts)) == sorted(PAIRS)
    sizes = sorted((len(batch.source) for batch in parts), reverse=True)
    whole, rest = divmod(len(PAIRS), size)
    assert sizes == [size] * whole + [rest] * (rest > 0)


def test_without_a_seed_the_order_stays():
    assert read_back(cut(7, None)) == PAIRS


def test_a_seed_decides_the_order():
    assert read_back(cut(7, 3)) == read_back(cut(7, 3))
    assert read_back(cut(7, 3)) != read_back(cut(7, 4))


def test_batches_of_similar_length_hold_little_padding():
    assert padding(cut(7, None)) > 0.3
    for seed in range(3):
        assert padding(cut(7, seed)) < 0.1


def test_batches_do_not_come_from_short_to_long():
    sizes = [batch.source.shape[1] for batch in cut(7, 0)]
    rises = sum(a <= b for a, b in pairwise(sizes)) / (len(sizes) - 1)
    assert 0.3 < rises < 0.7


def test_a_batch_has_other_company_with_another_seed():
    def company(seed):
        parts = [frozenset(read_back([batch])) for batch in cut(7, seed)]
        return {pair: part for part in parts for pair in part}

    one, other = company(0), company(1)
    alike = sum(len(one[pair] & other[pair]) - 1 for pair in PAIRS)
    assert alike < 0.5 * 6 * len(PAIRS), "pairs are sorted without being shuffled first"


def test_batches_leave_the_pairs_alone():
    pairs = list(PAIRS)
    cut(7, 0, pairs)
    assert pairs == PAIRS


def test_draws_leave_the_generator_of_others_alone(monkeypatch):
    def refuse(*_):
        raise AssertionError("drawn from the generator that everybody shares")

    for name in ("choice", "randint", "randrange", "shuffle"):
        monkeypatch.setattr(random, name, refuse)
    assert cut(7, 0)
    assert date_pairs(3, "train")


def test_no_pair_gives_no_batch():
    assert cut(7, 0, []) == []


# ---- token_batches -----------------------------------------------------------


def token_cut(tokens: int, seed: int | None, pairs=PAIRS) -> list[Batch]:
    return list(token_batches(pairs, LETTERS, DIGITS, tokens, seed))


def room(batch: Batch) -> int:
    return max(batch.source.numel(), batch.labels.numel())


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("tokens", [40, 41, 133, 10_000])
def test_batches_by_tokens_hold_every_pair_once_and_no_token_too_many(tokens, seed):
    parts = token_cut(tokens, seed)
    assert sorted(read_back(parts)) == sorted(PAIRS)
    assert max(room(batch) for batch in parts) <= tokens
    for batch in parts:
        assert batch.target.shape == batch.labels.shape


def test_batches_by_tokens_are_nearly_full_and_hold_little_padding():
    parts = token_cut(133, 0)
    # one pair more of at most 40 places would not fit, except in the last one
    light = [batch for batch in parts if room(batch) <= 133 - 40]
    assert len(light) <= 1
    assert padding(parts) < 0.1
    sizes = {len(batch.source) for batch in parts}
    assert max(sizes) >= 4 * min(sizes), "short ones come many at a time"


def test_the_end_of_a_target_takes_a_place():
    pairs = [("a", "123")] * 6  # with its end symbol a target takes four places
    assert [len(b.labels) for b in token_cut(8, None, pairs)] == [2, 2, 2]
    assert [len(b.labels) for b in token_cut(11, None, pairs)] == [2, 2, 2]
    assert [len(b.labels) for b in token_cut(12, None, pairs)] == [3, 3]
    pairs = [("aaaaaa", "1")] * 6  # and a source none
    assert [len(b.source) for b in token_cut(12, None, pairs)] == [2, 2, 2]


def test_batches_by_tokens_come_by_length_without_a_seed():
    lengths = [n for batch in token_cut(133, None) for n in batch.lengths.tolist()]
    assert lengths == sorted(lengths, key=lambda n: max(n, 5)), (
        "by the longer side: four digits and an end"
    )
    same = [("aa", digit) for digit in "3719"]
    assert read_back(token_cut(4, None, same)) == same, "pairs of one length stay"


def test_a_seed_shuffles_equals_and_batches():
    assert read_back(token_cut(133, 3)) == read_back(token_cut(133, 3))
    assert read_back(token_cut(133, 3)) != read_back(token_cut(133, 4))
    assert read_back(token_cut(133, 0)) != read_back(token_cut(133, None))
    widths = [batch.source.shape[1] for batch in token_cut(133, 0)]
    rises = sum(a <= b for a, b in pairwise(widths)) / (len(widths) - 1)
    assert 0.25 < rises < 0.75, "batches come from short to long"
    same = [("a" * 5, f"{i:04}") for i in range(60)]
    company = [
        {frozenset(read_back([batch])) for batch in token_cut(20, seed, same)}
        for seed in (0, 1)
    ]
    assert not company[0] & company[1], "the same pairs always meet"


def test_batches_by_tokens_leave_pairs_and_generators_of_others_alone(monkeypatch):
    for name in ("choice", "randint", "randrange", "shuffle"):
        monkeypatch.setattr(random, name, None)
    pairs = list(PAIRS)
    assert token_cut(133, 0, pairs)
    assert pairs == PAIRS
    assert token_cut(133, 0, []) == []


# ---- sequence_task -----------------------------------------------------------


def drawn(task: str, seed: int = 0, **settings):
    generator = torch.Generator().manual_seed(seed)
    return sequence_task(task, 300, generator, **settings)


def in_python(task: str, row: list[int]) -> list[int]:
    start, *symbols = row
    symbols = {
        "copy": lambda: symbols,
        "reverse": lambda: symbols[::-1],
        "sort": lambda: sorted(symbols),
    }[task]()
    return [start, *symbols]


every_task = pytest.mark.parametrize("task", TASKS)


@every_task
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shortest": 2},
        {"length": 7, "shortest": 4, "vocab": 5},
        {"length": 2, "vocab": 3},
        {"length": 13, "shortest": 13, "vocab": 40},
    ],
)
def test_the_target_is_what_python_makes_of_each_row(task, settings):
    source, target = drawn(task, **settings)
    length, vocab = settings.get("length", 10), settings.get("vocab", 11)
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
        assert in_python(task, row[:size]) + padding == wanted
    assert set(sizes) == set(range(shortest, length + 1)), "every length is drawn"
    symbols = set(source[:, 1:].flatten().tolist()) - {0}
    assert symbols == set(range(1, vocab)), "every symbol is drawn, the start too"


@every_task
def test_lengths_are_drawn_evenly(task):
    source, _ = drawn(task, length=6, shortest=3)
    counts = Counter(source.ne(0).sum(dim=1).tolist())
    assert set(counts) == {3, 4, 5, 6}
    # 75 expected of each, with a deviation of 7.5: five of them
    assert all(37 < count < 113 for count in counts.values()), counts


@every_task
def test_the_generator_decides_what_is_drawn(task):
    before = torch.get_rng_state()
    one, same, other = drawn(task), drawn(task), drawn(task, seed=1)
    assert all(map(torch.equal, one, same))
    assert not torch.equal(one[0], other[0])
    generator = torch.Generator().manual_seed(0)
    first = sequence_task(task, 5, generator)[0]
    assert not torch.equal(first, sequence_task(task, 5, generator)[0])
    assert torch.equal(torch.get_rng_state(), before), "drawn from everybody's"


def test_all_tasks_draw_the_same_sources():
    sources = [drawn(task, shortest=2)[0] for task in TASKS]
    assert torch.equal(sources[0], sources[1]) and torch.equal(sources[0], sources[2])
    assert TASKS == ("copy", "reverse", "sort")


def test_a_copy_is_a_tensor_of_its_own():
    source, target = drawn("copy")
    target[:] = 0
    assert source.ne(0).all()


# ---- dates -------------------------------------------------------------------


def test_every_day_of_two_centuries_is_there():
    assert (FIRST_DAY, LAST_DAY) == (
        datetime.date(1900, 1, 1),
        datetime.date(2099, 12, 31),
    )
    assert len(ALL_DAYS) == 73_049


@pytest.fixture(scope="module")
def splits() -> list[str]:
    """The split of each day."""
    return [date_split(day) for day in ALL_DAYS]


def test_every_day_has_one_split_and_keeps_it(splits):
    assert set(splits) == set(SPLITS) == {"train", "validation", "test"}
    assert sha256("\n".join(splits)) == SPLITS_OF_ALL_DAYS


def test_splits_are_eight_one_and_one_tenth(splits):
    shares = {name: count / len(splits) for name, count in Counter(splits).items()}
    assert shares == pytest.approx(
        {"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.01
    )


def test_every_split_has_days_of_all_months_and_years(splits):
    for name in SPLITS:
        pairs = zip(ALL_DAYS, splits, strict=True)
        days = [day for day, split in pairs if split == name]
        assert {day.month for day in days} == set(range(1, 13))
        assert {day.day for day in days} == set(range(1, 32))
        assert len({day.year for day in days}) == 200


def test_there_are_at_least_twelve_locales():
    assert len(set(LOCALES)) == len(LOCALES) >= 12


def test_the_short_style_stands_for_two_days_and_is_left_out():
    assert "short" not in STYLES
    march, july = datetime.date(2024, 3, 7), datetime.date(2024, 7, 3)
    assert write_date(march, "en_US", "short") == write_date(july, "es", "short")


def test_a_date_is_written_as_its_locale_does():
    day = datetime.date(2024, 3, 7)
    assert write_date(day, "de", "long") == "7. März 2024"
    assert write_date(day, "en_US", "medium") == "Mar 7, 2024"
    assert write_date(day, "zh", "full") == "2024年3月7日星期四"


def test_every_space_of_a_date_is_a_plain_one():
    for locale in (*LOCALES, "da", "bg", "lv"):
        for style in STYLES:
            text = write_date(datetime.date(2024, 3, 7), locale, style)
            assert all(c == " " or not c.isspace() for c in text), repr(text)
            assert text == text.strip()
            assert "  " not in text


# ---- date_pairs --------------------------------------------------------------


def iso_days(target: str) -> list[datetime.date]:
    return [datetime.date.fromisoformat(text) for text in target.split(" ")]


def test_the_draw_is_pinned():
    # of the targets alone: how babel writes a date may change with its version
    targets = [target for _, target in date_pairs(50, "train")]
    assert sha256("\n".join(targets)) == PINNED_DRAW


def test_the_same_seed_gives_the_same_pairs():
    assert date_pairs(40, "test", 3) == date_pairs(40, "test", 3)
    assert date_pairs(40, "test", 3) != date_pairs(40, "test", 4)
    assert date_pairs(40, "test") == date_pairs(40, "test", 0)


def test_a_longer_draw_begins_as_a_shorter_one():
    assert date_pairs(40, "train")[:7] == date_pairs(7, "train")


@pytest.mark.parametrize("split", SPLITS)
def test_pairs_come_from_their_split_only(split):
    pairs = date_pairs(300, split, dates=(1, 3))
    assert len(pairs) == 300
    for _, target in pairs:
        assert {date_split(day) for day in iso_days(target)} == {split}


def test_a_source_says_the_days_of_its_target_in_one_locale():
    for source, target in date_pairs(100, "train", dates=(1, 3)):
        texts, days = source.split("; "), iso_days(target)
        assert len(texts) == len(days)
        speakers = [
            locale
            for locale in LOCALES
            if all(
                text in {write_date(day, locale, style) for style in STYLES}
                for text, day in zip(texts, days, strict=True)
            )
        ]
        assert speakers, f"nobody writes {target} as {source!r}"


def test_a_line_holds_as_many_dates_as_asked_for():
    counts = Counter(
        len(iso_days(t)) for _, t in date_pairs(200, "train", dates=(2, 4))
    )
    assert set(counts) == {2, 3, 4}
    assert {len(iso_days(t)) for _, t in date_pairs(50, "train")} == {1}


def test_every_locale_and_style_is_drawn():
    drawn = set()
    for source, target in date_pairs(500, "train"):
        (day,) = iso_days(target)
        for locale in LOCALES:
            for style in STYLES:
                if write_date(day, locale, style) == source:
                    drawn.add((locale, style))
    assert drawn == {(locale, style) for locale in LOCALES for style in STYLES}


def test_every_day_can_be_drawn_the_first_and_the_last_too(monkeypatch):
    days = [day for day in ALL_DAYS[:9] if date_split(day) == "train"]
    monkeypatch.setattr(data, "FIRST_DAY", days[0])
    monkeypatch.setattr(data, "LAST_DAY", days[-1])
    drawn = {day for _, target in date_pairs(200, "train") for day in iso_days(target)}
    assert drawn == set(days)


def test_only_the_locales_asked_for_are_drawn():
    pairs = date_pairs(50, "train", locales=["de"])
    for source, target in pairs:
        (day,) = iso_days(target)
        assert source in {write_date(day, "de", style) for style in STYLES}


# ---- every way of writing every day takes a second: last ---------------------


def test_no_text_stands_for_two_days():
    # two years that end alike: a year of two digits would be found, too
    meant = {}
    for day in days_of(1924, 2024):
        for locale in LOCALES:
            for style in STYLES:
                text = write_date(day, locale, style)
                assert meant.setdefault(text, day) == day, (text, locale, style)
    assert len(meant) > 20 * 732


# ---- wrong arguments ---------------------------------------------------------


@pytest.mark.bad_input
def test_a_vocabulary_needs_a_symbol():
    with pytest.raises(
        ValueError, match=r"^symbols must hold at least one symbol, got"
    ):
        Vocabulary([])


@pytest.mark.bad_input
@pytest.mark.parametrize("name", Vocabulary.SPECIAL)
def test_a_symbol_must_not_have_a_special_name(name):
    message = rf"^symbols must not use the special names \['{name}'\]$"
    with pytest.raises(ValueError, match=message):
        Vocabulary(["a", name])


@pytest.mark.bad_input
def test_unknown_symbols_are_named():
    message = (
        r"^sequence holds symbols outside the vocabulary: \['x', 'y'\]; "
        "known are 2 symbols$"
    )
    with pytest.raises(ValueError, match=message):
        Vocabulary("ab").encode("ayxbx")


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [5, -1, 99])
def test_ids_outside_the_vocabulary_are_named(wrong):
    message = f"^ids must lie between 0 and 4, got {wrong}$"
    with pytest.raises(ValueError, match=message):
        Vocabulary("ab").decode([3, 4, wrong])


@pytest.mark.bad_input
def test_there_must_be_sequences_to_pad():
    message = r"^sequences must hold at least one sequence, got none$"
    with pytest.raises(ValueError, match=message):
        pad_sequences([])
    with pytest.raises(ValueError, match=message):
        make_batch([], LETTERS, DIGITS)


@pytest.mark.bad_input
@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_must_hold_a_pair(size):
    with pytest.raises(ValueError, match=f"^size must be at least 1, got {size}$"):
        next(batches(PAIRS, LETTERS, DIGITS, size))


@pytest.mark.bad_input
@pytest.mark.parametrize("split", ["dev", "Train", "", None])
def test_a_split_must_be_one_of_those_named(split):
    message = (
        rf"^split must be one of \('train', 'validation', 'test'\), got {split!r}$"
    )
    with pytest.raises(ValueError, match=message):
        date_pairs(0, split)  # even if nothing is drawn


@pytest.mark.bad_input
@pytest.mark.parametrize("dates", [(0, 1), (3, 2), (-1, -1)])
def test_the_number_of_dates_must_be_a_range(dates):
    with pytest.raises(ValueError, match=r"^dates must be 1 ≤ least ≤ most, got ") as e:
        date_pairs(1, "train", dates=dates)
    assert str(dates) in str(e.value)


@pytest.mark.bad_input
def test_there_must_be_a_locale_to_draw_from():
    with pytest.raises(
        ValueError, match=r"^locales must hold at least one .* got none"
    ):
        date_pairs(1, "train", locales=[])


@pytest.mark.bad_input
def test_a_draw_is_of_no_fewer_than_no_lines():
    with pytest.raises(ValueError, match=r"^count must be 0 or more, got -1$"):
        date_pairs(-1, "train")


@pytest.mark.bad_input
@pytest.mark.parametrize("seed", [None, 0])
def test_a_pair_that_does_not_fit_is_named(seed):
    pairs = [("a", "1"), ("aaa", "12345"), ("a" * 7, "1")]
    with pytest.raises(ValueError, match=r"^tokens must be at least 6, for pair 1; "):
        token_batches(pairs, LETTERS, DIGITS, 5, seed)  # at the call already
    with pytest.raises(ValueError, match=r"^tokens must be at least 7, for pair 2; "):
        token_batches(pairs, LETTERS, DIGITS, 6, seed)
    assert len(list(token_batches(pairs, LETTERS, DIGITS, 7, seed))) == 3


@pytest.mark.bad_input
@pytest.mark.parametrize("tokens", [math.nan, 2.5, 0, -3, "9", True, None])
def test_tokens_of_a_batch_are_a_whole_number(tokens):
    message = f"^tokens must be a whole number from 1 on, got {tokens!r}$"
    with pytest.raises(ValueError, match=message):
        token_batches([("a", "1")], LETTERS, DIGITS, tokens)


@pytest.mark.bad_input
def test_counts_may_be_numpys():
    assert len([*token_batches([("a", "1")], LETTERS, DIGITS, numpy.int64(9))]) == 1
    generator = torch.Generator()
    source, _ = sequence_task("copy", numpy.int64(3), generator, length=numpy.int64(7))
    assert source.shape == (3, 7)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "Copy"}, "task must be one of ('copy', 'reverse', 'sort'), got 'Co"),
        ({"task": None}, "task must be one of ('copy', 'reverse', 'sort'), got None"),
        ({"vocab": 2}, "vocab must be a whole number from 3 on, got 2"),
        ({"vocab": "11"}, "vocab must be a whole number from 3 on, got '11'"),
        ({"count": 0}, "count must be a whole number from 1 on, got 0"),
        ({"count": 3.0}, "count must be a whole number from 1 on, got 3.0"),
        ({"count": True}, "count must be a whole number from 1 on, got True"),
        ({"length": 1}, "length must be a whole number from 2 on, got 1"),
        ({"length": 9.5}, "length must be a whole number from 2 on, got 9.5"),
        ({"shortest": 1}, "shortest must be a whole number from 2 on, got 1"),
        ({"shortest": "2"}, "shortest must be a whole number from 2 on, got '2'"),
        ({"shortest": 11}, "shortest must not be above length=10, got 11"),
    ],
)
def test_a_task_has_a_name_and_numbers_in_their_range(given, message):
    given = {"task": "copy", "count": 3, "generator": torch.Generator()} | given
    with pytest.raises(ValueError) as caught:
        sequence_task(**given)
    assert str(caught.value).startswith(message)
