"""Pictures of a built page for a person to look at, one for each screenful.

python tests/site/shoot.py notebooks/01_seq2seq_attention.html pictures --dark
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.site.browser import (
    built_pages,
    find_browser,
    launched,
    served,
    site_folder,
    visiting,
)


def shoot(page: str, folder: Path, dark: bool, width: int, height: int) -> list[Path]:
    """Write the pictures and return their paths."""
    site = site_folder()
    if not (site / page).is_file():
        raise FileNotFoundError(
            f"page {page!r} is not in {site}; expected one of {built_pages(site)}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{Path(page).stem}-{'dark' if dark else 'light'}-{width}"
    pictures = []
    with sync_playwright() as playwright:
        executable = find_browser(playwright)
        if executable is None:
            raise FileNotFoundError("no Chromium found: set CHROMIUM to its path")
        with (
            launched(playwright, executable) as browser,
            served(site) as base,
            visiting(
                browser,
                base,
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
            ) as visit,
        ):
            visit.open(page)
            total = visit.page.evaluate("document.documentElement.scrollHeight")
            # a little overlap, so that nothing hides behind the page's own header
            for number, top in enumerate(range(0, total, height - 80)):
                visit.page.evaluate("top => window.scrollTo(0, top)", top)
                path = folder / f"{stem}-{number:02}.png"
                visit.page.screenshot(path=path)
                pictures.append(path)
    return pictures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", help="path below _build/html")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280, help="in pixels")
    parser.add_argument("--height", type=int, default=900, help="in pixels")
    options = parser.parse_args()
    try:
        pictures = shoot(**vars(options))
    except FileNotFoundError as error:
        print(f"shoot: {error}", file=sys.stderr)
        return 1
    print(*pictures, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
