"""tests/sample.py: a few of many tests for each commit, and in time all of them."""

import pytest

from tests import sample


@pytest.fixture(autouse=True)
def not_all(monkeypatch):
    monkeypatch.delenv("ANNOTATED_ALL", raising=False)


def test_one_commit_chooses_about_one_in_ten_and_always_the_same(monkeypatch):
    monkeypatch.setattr(sample, "commit", lambda: "1f")
    names = [f"test_page[{number}]" for number in range(1000)]
    first = [name for name in names if sample.chosen(name, 10)]
    assert 70 < len(first) < 130
    assert [name for name in names if sample.chosen(name, 10)] == first


def test_in_time_every_test_is_chosen(monkeypatch):
    times = 0
    for number in range(1000):
        monkeypatch.setattr(sample, "commit", lambda name=str(number): name)
        times += sample.chosen("test_page[02]", 10)
    assert 70 < times < 130


def test_all_are_chosen_where_all_are_wanted(monkeypatch):
    monkeypatch.setenv("ANNOTATED_ALL", "1")
    assert all(sample.chosen(str(number), 10) for number in range(100))
