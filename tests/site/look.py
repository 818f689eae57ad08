"""How a page looks: what is cut, too small, light in the dark, or moves when touched.

python -m tests.site.look [--pictures FOLDER] [PAGE ...]

Opens every page, or those given, such as notebooks/13b_learning.html, once a theme, and
resizes it to each width, before and after its controls are touched. Of a page that was
built alone: ANNOTATED_SITE=_build/page/_build/html.
"""

import argparse
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.site.browser import (
    built_pages,
    find_browser,
    launched,
    served,
    site_folder,
    visiting,
)
from tests.site.checkers import drawings, set_theme

WIDTHS = 390, 1200, 1280, 1440, 1920
LOOKS = """(dark) => {
    const found = [], article = document.querySelector("article.bd-article");
    if (!article) return found;
    const told = (what, node) => found.push(
        `${what}: ${(node.closest("[aria-label]")?.ariaLabel || node.textContent)
            .trim().replace(/\\s+/g, " ").slice(0, 70)}`);
    const seen = (node) => node.checkVisibility({ visibilityProperty: true });
    for (const code of article.querySelectorAll("pre"))
        if (seen(code) && code.scrollWidth > code.clientWidth + 1
            && !getComputedStyle(code).backgroundImage.includes("gradient"))
            told("code is cut, and no edge shows it", code);
    const formulas = article.querySelectorAll("div.math, mjx-container[display]");
    for (const formula of innerWidth > 600 ? formulas : [])
        if (seen(formula) && formula.scrollWidth > formula.clientWidth + 1)
            told("a formula is cut", formula);
    if (dark) for (const node of article.querySelectorAll("*")) {
        const [r, g, b, a = 1] = (getComputedStyle(node).backgroundColor
            .match(/[\\d.]+/g) || []).map(Number);
        const box = node.getBoundingClientRect();
        const light = a > 0.5 && 0.3 * r + 0.6 * g + 0.1 * b > 190;
        if (light && box.width * box.height > 4000 && seen(node))
            told("a light box in the dark", node);
    }
    if (document.documentElement.scrollWidth > innerWidth)
        found.push("scrolls sideways");
    return [...new Set(found)];
}"""


def looks(page: Page, dark: bool) -> list[str]:
    """What is wrong with a page's look as it stands."""
    return page.evaluate(LOOKS, dark)


def looked_at(visit, address: str, pictures: Path | None) -> dict[str, list[str]]:
    """What is wrong with a page, and where: at which widths, touched or not.

    Args:
        pictures: where the whole page is kept as it looks at first, if anywhere.
    """
    found: dict[str, list[str]] = {}
    for theme in ("light", "dark"):
        visit.open(address)
        set_theme(visit.page, theme)
        for touched in (False, True):
            for width in WIDTHS:
                visit.page.set_viewport_size({"width": width, "height": 900})
                visit.page.wait_for_timeout(300)
                wrong = looks(visit.page, theme == "dark")
                if touched:
                    wrong += drawings(visit.page)
                elif pictures:
                    name = f"{Path(address).stem}-{width}-{theme}.png"
                    visit.page.screenshot(path=pictures / name, full_page=True)
                for one in wrong:
                    where = f"{width} {theme}{' touched' * touched}"
                    found.setdefault(one, []).append(where)
    return found


def main() -> int:
    site = site_folder()
    known = built_pages(site)
    parser = argparse.ArgumentParser(prog="python -m tests.site.look")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    given = parser.parse_args()
    if unknown := {*given.pages} - {*known}:
        parser.error(f"expected built pages, such as {known[-1]}, got {unknown}")
    count = 0
    with sync_playwright() as playwright, served(site) as base:
        with launched(playwright, find_browser(playwright)) as browser:
            for address in given.pages or known:
                with visiting(browser, base) as visit:
                    wrong = looked_at(visit, address, given.pictures)
                count += len(wrong)
                print(f"{address}: {len(wrong) or 'nothing'} wrong", flush=True)
                for what, where in wrong.items():
                    times = len(where)
                    print(f"  {what} ({where[0]}, {times} times in all)", flush=True)
    return bool(count)


if __name__ == "__main__":
    raise SystemExit(main())
