"""The map links to every chapter that exists, and shows where a chapter stands."""

from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup

from book._ext import map as book_map
from tools import ROOT


def app(*pages):
    """As much of Sphinx as the map asks for."""

    def relative(start, to):
        return "" if start == to else f"{to}.html"

    return SimpleNamespace(
        env=SimpleNamespace(found_docs={"book/intro", *pages}),
        builder=SimpleNamespace(get_relative_uri=relative),
        config=SimpleNamespace(root_doc="book/intro"),
    )


PAGES = "notebooks/02_self_attention", "notebooks/02b_more", "notebooks/03_heads"


def drawn(page):
    return BeautifulSoup(book_map.map_html(app(*PAGES), page), "html.parser")


def test_chapters_that_exist_are_linked_and_the_others_are_not():
    links = {
        a["href"]: a.get_text(" ", strip=True) for a in drawn("book/intro").select("a")
    }
    assert set(links) == {"notebooks/02_self_attention.html", "notebooks/03_heads.html"}
    assert links["notebooks/02_self_attention.html"] == "self-attention 2"
    absent = drawn("book/intro").select(".absent")
    assert (
        len(absent) == len(book_map.TRANSFORMER + book_map.OFFSPRING) - 3
    )  # chapter 3 has two parts
    assert not [part for part in absent if part.find_parent("a")]


def test_a_chapter_sees_where_it_stands_and_the_way_to_the_whole():
    html = book_map.strip_html(app(*PAGES), "notebooks/03_heads", 3)
    links = BeautifulSoup(html, "html.parser").select("a")
    assert [a["href"] for a in links] == [
        "notebooks/02_self_attention.html",
        "#",
        "book/intro.html#the-map",
    ]
    own = "3 multi-head attention and cross-attention"
    assert [a.text for a in links] == ["2", own, "the map"]
    assert [a.get("aria-label") for a in links] == ["2 self-attention", None, None]
    assert [a.get("aria-current") for a in links] == [None, "true", None]
    assert drawn("book/intro").nav["id"] == "the-map"


def test_below_the_whole_map_is_the_way_to_the_laboratory():
    built = app("notebooks/03_heads", "book/laboratory")
    soup = BeautifulSoup(book_map.map_html(built, "book/intro"), "html.parser")
    assert "book/laboratory.html" in [a["href"] for a in soup.select("a")]
    assert "laboratory" not in str(drawn("book/intro"))


@pytest.mark.parametrize(
    ("page", "chapter"),
    [
        ("notebooks/02_self_attention", 2),
        ("notebooks/02b_more", 2),
        ("book/exercises/02_self_attention", 2),
        ("book/intro", None),
        ("book/02_prose", None),
    ],
)
def test_the_chapter_of_a_page(page, chapter):
    assert book_map.chapter_of(page) == chapter


def test_every_chapter_of_the_book_is_on_the_map():
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    chapters = {book_map.chapter_of(f) for f in files if f.startswith("notebooks/")}
    assert chapters
    parts = book_map.TRANSFORMER + book_map.OFFSPRING
    assert chapters <= {part.chapter for part in parts}


@pytest.mark.parametrize("drawing", [book_map.TRANSFORMER, book_map.OFFSPRING])
def test_no_two_boxes_overlap(drawing):
    for i, one in enumerate(drawing):
        for other in drawing[:i]:
            beside = one.x >= other.x + other.width or other.x >= one.x + one.width
            above = one.y >= other.y + other.height or other.y >= one.y + one.height
            assert beside or above, (one, other)
