"""The book on paper: nothing is cut, no page is empty, the contents are right."""

import pytest
from pypdf import PdfReader

from tools import pdf

CHAPTERS = ("04_masks", "12_transformer_xl", "20_errata")


@pytest.mark.covers("04", "12", "20", "tools/pdf")
def test_three_chapters_on_paper(site, browser, tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "SITE", site)
    monkeypatch.setattr(pdf, "OUT", tmp_path)
    chosen = [f"notebooks/{name}" for name in CHAPTERS]
    assert pdf.print_pages(browser, chosen, whole=True) == []
    whole = PdfReader(tmp_path / "the-annotated-transformers.pdf")
    contents = whole.pages[1].extract_text().splitlines()
    for row in contents[1:]:  # a title and its page
        title, number = row.rsplit(" ", 1)
        assert title in whole.pages[int(number) - 1].extract_text()
    for name in CHAPTERS:
        pages = PdfReader(tmp_path / f"notebooks-{name}.pdf").pages
        text = [page.extract_text() for page in pages]
        assert text[0].startswith(f"{int(name[:2])}. ")  # the running head
        assert text[-1].strip().endswith(str(len(pages)))
        assert any("Answers" in one for one in text)
        assert any(
            "Live: https://annotated-transformers.github.io/" in one for one in text
        )


@pytest.mark.covers("tools/pdf")
def test_what_paper_would_cut_is_named(tmp_path, monkeypatch, browser):
    monkeypatch.setattr(pdf, "SITE", tmp_path)
    wide = "<table style='width: 900px'><tr><td>wide</td></tr></table>"
    high = "<figure style='height: 1200px'>high</figure>"
    (tmp_path / "page.html").write_text(f"<article>{wide}{high}</article>")
    page = browser.new_page(viewport={"width": pdf.COLUMN_PX, "height": pdf.PAGE_PX})
    cut = pdf.prepared(page, "page", "https://example.org/")
    page.close()
    assert cut == ["too wide: TABLE wide", "higher than a page: FIGURE high"]
