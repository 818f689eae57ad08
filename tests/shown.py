"""What a cell shows, as tests look at it."""

from bs4 import BeautifulSoup

from annotated.page.frames import Html


def soup(html: Html) -> BeautifulSoup:
    """Return the elements of what is shown."""
    return BeautifulSoup(html.text, "html.parser")


def cells(html: Html) -> list[list[str]]:
    """Return the texts of a table, row by row, from its header on."""
    rows = soup(html).select("tr")
    return [[cell.text for cell in row.select("th, td")] for row in rows]
