"""Chapter 19: numbers in two languages."""

import pytest

from annotated.chapters.ch19 import languages


def test_each_number_is_learned_in_both_languages_and_none_is_tested():
    task, test = languages.two_languages()
    learned = {int("".join(digits)) for digits, _ in task.pairs}
    assert len(task.pairs) == 2 * len(learned) and learned.isdisjoint(test)
    one = min(learned)
    names = {words for digits, words in task.pairs if digits == [*str(one)]}
    assert names == {*languages.names(one).values()}


@pytest.mark.parametrize(
    "words, mixed, right",
    [
        ("eight thousand five hundred and ninety", False, True),
        ("huit mille cinq cent quatre -vingt -dix", False, True),
        ("huit thousand five hundred and ninety", True, False),
        ("eight thousand five hundred and nine", False, False),
        ("six mille", False, False),  # six is a word of both
    ],
)
def test_names_and_mixtures(words, mixed, right):
    assert languages.is_mixed(words.split()) == mixed
    assert languages.is_right(8590, words.split()) == right


def test_shares_and_lengths_are_counted():
    lines = ["one thousand and one", "mille thousand", "mille deux", "mille"]
    numbers = [1001, 1001, 1001, 1000]
    assert languages.mixed_share(lines) == 0.25
    assert languages.right_share(numbers, lines) == 0.5
    assert languages.wrong_lengths(numbers, lines) == (2, 0)
    assert languages.wrong_lengths([1001], ["mille et un six"]) == (1, 0)
    assert languages.wrong_lengths([1001], ["mille et un"]) == (1, 1)
