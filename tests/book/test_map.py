"""Cards lead to the chapters that they name; a strip shows where a page stands."""

from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes

from book._ext import map as book_map
from book._ext import pages
from tools import ROOT

TITLES = {
    "book/intro": "The book",
    "notebooks/02_self_attention": "2. Self-attention",
    "notebooks/02b_more": "2b. More",
    "notebooks/03_heads": "3. Heads & tails",
    "book/laboratory": "The laboratory",
}


def app():
    """As much of Sphinx as cards, strip and ways ask for."""

    def relative(start, to):
        return "" if start == to else f"{to}.html"

    env = SimpleNamespace(
        found_docs=set(TITLES),
        titles={name: nodes.title("", title) for name, title in TITLES.items()},
        toctree_includes={
            "book/intro": [
                "notebooks/02_self_attention",
                "notebooks/03_heads",
                "book/laboratory",
            ],
            "notebooks/02_self_attention": ["notebooks/02b_more"],
        },
    )
    return SimpleNamespace(
        env=env,
        builder=SimpleNamespace(get_relative_uri=relative),
        config=SimpleNamespace(root_doc="book/intro"),
    )


def test_a_card_shows_a_chapter_and_leads_to_it():
    html = book_map.cards_html(app(), "book/intro", "Part I", {3: "Many at once."})
    soup = BeautifulSoup(html, "html.parser")
    (card,) = soup.select("a")
    assert card["href"] == "notebooks/03_heads.html"
    assert card.b.text == "3. Heads & tails" and card.span.text == "Many at once."
    assert soup.nav["aria-label"] == "Part I"
    assert card.svg["aria-hidden"] == "true" and card.select("rect")


def test_a_card_for_no_chapter_is_an_error():
    with pytest.raises(KeyError):
        book_map.cards_html(app(), "book/intro", "Part I", {4: "Absent."})


def test_every_chapter_of_the_book_has_one_card_with_a_picture():
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    chapters = [book_map.chapter_of(f) for f in files if f.startswith("notebooks/")]
    front = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    cards = [
        number
        for block in front.split("```{cards}")[1:]
        for number in yaml.safe_load(block.split("```")[0].split("\n", 1)[1])
    ]
    assert cards == chapters and set(cards) <= set(book_map.PICTURES)


@pytest.mark.parametrize("number", book_map.PICTURES)
def test_a_picture_stays_inside_its_card(number):
    soup = BeautifulSoup(book_map.PICTURES[number](), "html.parser")
    assert soup.select("rect, path, circle, text")
    for rect in soup.select("rect"):
        x, y, w, h = (float(rect[name]) for name in ("x", "y", "width", "height"))
        assert x >= 0 and x + w <= book_map.WIDTH
        assert y >= 0 and y + h <= book_map.HEIGHT


def test_a_chapter_sees_where_it_stands():
    html = book_map.strip_html(app(), "notebooks/03_heads", 3)
    links = BeautifulSoup(html, "html.parser").select("a")
    assert [a["href"] for a in links] == ["notebooks/02_self_attention.html", "#"]
    assert [a.text for a in links] == ["2", "3"]
    assert [a["aria-label"] for a in links] == ["2 Self-attention", "3 Heads & tails"]
    assert [a.get("aria-current") for a in links] == [None, "true"]


def test_from_a_chapter_the_way_leads_to_the_next_chapter():
    context = {"body": "text", "prev": None, "next": {"link": "2b", "title": "2b"}}
    pages.lead_on(app(), "notebooks/02_self_attention", "page.html", context, None)
    assert context["prev"]["title"] == "The book"
    assert context["next"]["link"] == "notebooks/03_heads.html"
    assert context["next"]["title"] == "3. Heads &amp; tails"
    below = BeautifulSoup(context["body"], "html.parser").nav
    assert [(a["href"], a.text) for a in below.select("a")] == [
        ("notebooks/02b_more.html", "2b. More")
    ]


def test_the_last_page_leads_nowhere_and_a_deeper_one_as_the_theme_has_it():
    context = {"body": "", "prev": 1, "next": 2}
    pages.lead_on(app(), "notebooks/02b_more", "page.html", context, None)
    assert context == {"body": "", "prev": 1, "next": 2}
    pages.lead_on(app(), "book/laboratory", "page.html", context, None)
    assert context["next"] is None and context["prev"]["link"].startswith(
        "notebooks/03"
    )


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


def test_all_pages_are_written_again_after_a_new_title():
    book = app()
    assert book_map.also_written(book, book.env) == set(TITLES)
    assert book_map.also_written(book, book.env) == ["book/intro"]
    book.env.titles["notebooks/03_heads"] = nodes.title("", "3. Tails")
    assert book_map.also_written(book, book.env) == set(TITLES)
    assert book_map.also_written(book, book.env) == ["book/intro"]
