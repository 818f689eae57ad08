"""The stand-in for Colab notices what a notebook does to its environment."""

import pytest

from tools.colab import MAY_BE_ADDED, PINS, changes, with_published

BEFORE = {"torch": "2.11.0", "numpy": "2.1.3"}


def test_annotated_and_what_it_needs_may_be_added():
    after = BEFORE | dict.fromkeys(MAY_BE_ADDED, "1.0")
    assert changes(BEFORE, after) == []


@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_another_version_is_noticed(name):
    wrong = changes(BEFORE, BEFORE | {name: "9.9"})
    assert wrong == [f"{name}: {BEFORE[name]} became 9.9"]


def test_a_package_that_went_missing_is_noticed():
    assert changes(BEFORE, {"torch": "2.11.0"}) == ["numpy: 2.1.3 became missing"]


def test_a_package_that_nobody_expected_is_noticed():
    assert changes(BEFORE, BEFORE | {"spacy": "3.0"}) == ["spacy 3.0 was added"]


def test_what_may_be_added_is_not_pinned_as_colabs_own():
    pinned = {line.partition("==")[0] for line in PINS.read_text().splitlines()}
    assert pinned >= {"ipywidgets", "ipython", "numpy", "pandas", "matplotlib"}
    assert not pinned & MAY_BE_ADDED


def test_published_versions_take_the_place_of_pins_but_for_torch():
    pins = "# why\ntorch==2.13.0\nnumpy==2.1.3\npyzmq==26.2.1\n"
    published = "# made by\nnumpy==2.2.0\ntorch==2.99\npyzmq==27.0\nother==1\n"
    expected = "# why\ntorch==2.13.0\nnumpy==2.2.0\npyzmq==27.0\n"
    assert with_published(pins, published) == expected
    with pytest.raises(ValueError, match="do not name pyzmq"):
        with_published(pins, "numpy==2.2.0\n")
