"""The built site behind a local server, and the browser that visits it."""

import os
import shutil
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright

ROOT = Path(__file__).resolve().parents[2]
# Project pages are hosted below a folder: a link to the host's root must fail here.
SUBPATH = "/annotated-transformers/stable/"  # as 404.html has it
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = [
    "--no-sandbox",  # Chromium refuses its sandbox to root, as in containers
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 300_000  # for what never comes: nothing here measures speed

WAIT_MS = 20_000  # for the page's own scripts
SETTLE = """async (wait) => {
    const end = performance.now() + wait, late = [];
    const timeout = new Promise((done) => setTimeout(done, wait, "not finished"));
    const until = async (what, ready) => {
        while (!ready() && performance.now() < end)
            await new Promise((next) => setTimeout(next, 50));
        if (!ready()) late.push(`${what} not ready after ${wait} ms`);
    };
    const math = window.MathJax?.startup?.promise ?? Promise.resolve();
    const trouble = await Promise.race([math.then(() => "", String), timeout]);
    if (trouble) late.push(`MathJax: ${trouble}`);
    for (const one of document.querySelectorAll(".annotated-explorer"))
        await until(`explorer ${one.id}`, () => one.dataset.ready === "true");
    const views = 'script[type="application/vnd.jupyter.widget-view+json"]';
    for (const one of document.querySelectorAll(views)) {
        const place = one.parentElement;
        await until("widget", () => place.querySelector(".jupyter-widgets"));
    }
    return late;
}"""


def site_folder() -> Path:
    return Path(os.environ.get("ANNOTATED_SITE") or ROOT / "_build" / "html")


def built_pages(site: Path) -> list[str]:
    """Every page of the book, as a path below the site; empty if nothing is built."""
    pages = (path.relative_to(site) for path in site.rglob("*.html"))
    # `index.html` only redirects; `_static` holds templates of the theme
    return sorted(
        page.as_posix()
        for page in pages
        if page.as_posix() != "index.html" and not page.parts[0].startswith("_")
    )


def find_browser(playwright: Playwright) -> str | None:
    """The path of a Chromium: $CHROMIUM, the system's, or Playwright's own."""
    chosen = os.environ.get("CHROMIUM")
    if chosen:
        if not shutil.which(chosen):
            raise FileNotFoundError(
                f"CHROMIUM={chosen!r}: expected the path or name of a browser"
            )
        return chosen
    own = playwright.chromium.executable_path
    found = [path for path in map(shutil.which, BROWSERS) if path]
    return (found + [own if Path(own).is_file() else None])[0]


@contextmanager
def launched(playwright: Playwright, executable: str):
    browser = playwright.chromium.launch(executable_path=executable, args=SWITCHES)
    try:
        yield browser
    finally:
        browser.close()


class _Handler(SimpleHTTPRequestHandler):
    """Serves the site below SUBPATH and nothing anywhere else."""

    protocol_version = "HTTP/1.1"  # keep connections: a page is some thirty requests

    def translate_path(self, path: str) -> str:
        if not path.startswith(SUBPATH):
            return os.path.join(self.directory, "outside-the-site")
        return super().translate_path("/" + path.removeprefix(SUBPATH))

    def log_message(self, format: str, *args) -> None:
        """Quiet: a test that fails names the request itself."""


@contextmanager
def served(site: Path):
    """Yield the address of `site`, served by this process."""
    handler = partial(_Handler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{SUBPATH}"
        finally:
            server.shutdown()


@dataclass
class Visit:
    """A page in the browser, and what went wrong with it since it was opened."""

    page: Page
    base: str
    blocked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)  # by scripts

    def open(self, address: str) -> None:
        self.page.goto(self.base + address, wait_until="load")
        self.settle()

    def settle(self) -> None:
        """Wait until MathJax, widgets and explorers have drawn, or note who did not."""
        self.errors += self.page.evaluate(SETTLE, WAIT_MS)

    def _route(self, route) -> None:
        url = route.request.url
        if url.startswith((self.base, "data:", "blob:")):
            route.continue_()
        else:
            self.blocked.append(url)
            route.abort()

    def _response(self, response) -> None:
        self.loaded.append(response.url)
        if response.request.resource_type in ("fetch", "xhr"):
            self.fetched.append(response.url)
        if response.status >= 400:
            self.failed.append(f"{response.status} {response.url}")

    def _console(self, message) -> None:
        if message.type == "error":
            self.errors.append(
                f"console: {message.text} ({message.location.get('url')})"
            )

    def _page_error(self, error) -> None:
        self.errors.append(f"uncaught: {error}")

    def _websocket(self, socket) -> None:
        self.blocked.append(socket.url)


@contextmanager
def visiting(browser: Browser, base: str, **context_options):
    """Yield a Visit in a fresh context that can reach nothing outside `base`."""
    options = {
        "viewport": {"width": 1280, "height": 900},
        "reduced_motion": "reduce",  # so that colours do not fade while axe looks
        **context_options,
    }
    context = browser.new_context(**options)
    context.set_default_timeout(TIMEOUT_MS)
    try:
        page = context.new_page()
        visit = Visit(page, base)
        context.route("**/*", visit._route)
        page.on("response", visit._response)
        page.on("console", visit._console)
        page.on("pageerror", visit._page_error)
        page.on("websocket", visit._websocket)
        yield visit
    finally:
        context.close()
