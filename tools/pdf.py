"""The book on paper: every chapter as a PDF, and the whole.

    python -m tools.pdf          all pages, and the whole with its contents
    python -m tools.pdf 04 04b   some

Chromium prints the built pages; `_build/pdf` has what comes out. A page says nothing
that its HTML doesn't: `tools/pdf.js` puts answers at the end, numbers the links and
says where a drawing moves; the style is `site.css`, as for a reader who prints.
"""

import argparse
import sys
from collections.abc import Iterator
from html import escape
from io import BytesIO
from pathlib import Path

import yaml
from playwright.sync_api import Browser, Page, sync_playwright
from pypdf import PdfReader, PdfWriter

from tests.site.browser import SETTLE, WAIT_MS, find_browser, launched

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
OUT = ROOT / "_build" / "pdf"
MARGIN = {"top": "20mm", "bottom": "20mm", "left": "18mm", "right": "18mm"}
COLUMN_PX, PAGE_PX = 658, 971  # of A4, between these margins, at 96 to the inch
NOT_ON_PAPER = ("book/laboratory", "book/api")  # one moves, one is looked up


def names(toc: dict) -> Iterator[str]:
    """Every page of a table of contents, in order, as a path below the site."""
    if name := toc.get("root", toc.get("file")):
        yield name
    for kind in ("parts", "chapters", "sections"):
        for below in toc.get(kind, []):
            yield from names(below)


def prepared(page: Page, name: str, base: str) -> list[str]:
    """Open a page as paper shows it; return what would be cut."""
    page.emulate_media(media="print", color_scheme="light")
    page.goto((SITE / f"{name}.html").as_uri())
    page.evaluate(SETTLE, WAIT_MS)
    script = (ROOT / "tools" / "pdf.js").read_text()
    return page.evaluate(script, [f"{base}{name}.html", PAGE_PX])


def stamps(page: Page, heads: list[str], first: int = 1) -> PdfReader:
    """Return pages that hold nothing but a running head and a page number each."""
    sheets = "".join(
        f"<section><p>{escape(head)}</p><p>{number}</p></section>"
        for number, head in enumerate(heads, first)
    )
    page.set_content(
        "<style>@page { size: A4; margin: 0 } body { margin: 0 } section { height:"
        "297mm; box-sizing: border-box; padding: 9mm 18mm; display: flex; flex-"
        "direction: column; justify-content: space-between; break-after: page; font:"
        "9pt sans-serif; color: #555 } p { margin: 0 } p + p { text-align: center }"
        f"</style>{sheets}"
    )
    return PdfReader(BytesIO(page.pdf(prefer_css_page_size=True)))


def stamp(page: Page, book: PdfWriter, heads: list[str], first: int = 1) -> PdfWriter:
    """Put heads and numbers on the pages of a book; return it."""
    for sheet, own in zip(book.pages, stamps(page, heads, first).pages, strict=True):
        sheet.merge_page(own)
        sheet.compress_content_streams()
    return book


def contents(page: Page, title: str, rows: list[tuple[str, int]]) -> PdfReader:
    """Return the title page and the contents."""
    lines = "".join(
        f"<tr><td>{escape(name)}</td><td>{number}</td></tr>" for name, number in rows
    )
    page.set_content(
        f"<style>body {{ font: 11pt/1.5 serif }} table {{ width: 100% }} td + td {{"
        f"text-align: right }} h1 {{ margin: 60mm 0; break-after: page }}</style>"
        f"<h1>{escape(title)}</h1><h2>Contents</h2><table>{lines}</table>"
    )
    return PdfReader(BytesIO(page.pdf(format="A4", margin=MARGIN)))


def print_pages(browser: Browser, chosen: list[str], whole: bool) -> list[str]:
    """Write a PDF of each page, and of all; return what paper cuts."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    base = config["sphinx"]["config"]["html_baseurl"]
    page = browser.new_page(viewport={"width": COLUMN_PX, "height": PAGE_PX})
    book, rows, heads, cut = PdfWriter(), [], [], []
    OUT.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        found = prepared(page, name, base)
        title = page.locator("h1").first.inner_text().rstrip("#").strip()
        printed = PdfReader(BytesIO(page.pdf(format="A4", margin=MARGIN)))
        for number, sheet in enumerate(printed.pages, 1):
            if not sheet.extract_text().strip():
                found.append(f"page {number} is empty")
        own = [title] * len(printed.pages)
        file = OUT / f"{name.replace('/', '-')}.pdf"
        stamp(page, PdfWriter(clone_from=printed), own).write(file)
        rows.append((title, len(heads) + 1))
        heads += own
        book.append(printed, title)
        cut += [f"{name}: {what}" for what in found]
        print(f"{name}: {len(own)} pages")
    if whole:
        ahead = len(contents(page, config["title"], rows).pages)
        rows = [(name, number + ahead) for name, number in rows]
        stamp(page, book, heads, ahead + 1)
        book.merge(0, contents(page, config["title"], rows), "Contents")
        book.compress_identical_objects()  # every page brought its fonts along
        book.write(OUT / "the-annotated-transformers.pdf")
    page.close()
    return cut


def main(wanted: list[str]) -> int:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    every = [name for name in names(toc) if name not in NOT_ON_PAPER]
    chosen = [
        name
        for name in every
        if not wanted or name.removeprefix("notebooks/").split("_")[0] in wanted
    ]
    if not chosen:
        print(f"expected numbers of pages, as 04 or 13b, got {wanted}", file=sys.stderr)
        return 1
    if not all((SITE / f"{name}.html").exists() for name in chosen):
        print("expected a built book in _build/html: run make book", file=sys.stderr)
        return 1
    with sync_playwright() as playwright:
        with launched(playwright, find_browser(playwright)) as browser:
            cut = print_pages(browser, chosen, not wanted)
    print(*cut, sep="\n")
    return bool(cut)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wanted", nargs="*", metavar="NAME", help="like 04 or 13b")
    sys.exit(main(parser.parse_args().wanted))
