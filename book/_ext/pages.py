"""Checks and repairs of the pages while Sphinx builds them.

A warning fails the build (`-W`): for an image without a text for those who do not see
it, for a link inside the site that leads nowhere, and for anything that a page would
load from another host.
"""

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from docutils import nodes
from sphinx.util import logging

from annotated.page.frames import alt_problem

logger = logging.getLogger(__name__)


class ImageScan(HTMLParser):
    """Collects what is wrong with the pictures of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._svg: list[bool] = []  # open <svg> elements: named already?
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        if tag == "img":
            problem = alt_problem(values.get("alt"), values.get("src") or "")
            if problem:
                source = (values.get("src") or "no src")[:60]
                self.problems.append(f"<img> ({source}) {problem}")
        elif tag == "svg":
            named = values.get("aria-label") or values.get("aria-labelledby")
            self._svg.append(bool(named) or values.get("aria-hidden") == "true")
        elif tag == "title" and self._svg:
            self._svg[-1] = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg" and self._svg and not self._svg.pop():
            self.problems.append(
                "<svg> has no name: give it aria-label or <title>, or aria-hidden"
            )


def image_problems(doctree: nodes.document) -> list[tuple[nodes.Node, str]]:
    """Every picture of a page that lacks a real text, with where it is."""
    found = []
    for node in doctree.findall(nodes.image):
        problem = alt_problem(node.get("alt"), node.get("uri", ""))
        if problem:
            found.append((node, f"image {node.get('uri', '')} {problem}"))
    for node in doctree.findall(nodes.raw):
        if "html" in node.get("format", "").split():
            found += [(node, problem) for problem in ImageScan(node.astext()).problems]
    return found


def check_images(app, doctree: nodes.document, docname: str) -> None:
    for node, problem in image_problems(doctree):
        logger.warning(
            "%s: %s", docname, problem, location=node, type="pages", subtype="alt"
        )


class PageScan(HTMLParser):
    """The anchors of a page, its links, and the files that it loads."""

    LOADS = {"img", "script", "iframe", "source", "video", "audio", "embed", "track"}
    LINKS_LOADED = {"stylesheet", "icon", "preload", "manifest"}

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        for key in ("id", "name"):
            if values.get(key):
                self.anchors.add(values[key])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag in self.LOADS and values.get("src"):
            self.loaded.append(values["src"])
        elif tag == "link" and values.get("href"):
            if self.LINKS_LOADED & set((values.get("rel") or "").split()):
                self.loaded.append(values["href"])


def link_problems(site: Path, pages: list[str]) -> list[tuple[str, str]]:
    """Broken links and foreign files of the built pages: (page, what is wrong)."""
    scans = {
        page: PageScan((site / page).read_text(encoding="utf-8")) for page in pages
    }
    found = []
    for page, scan in scans.items():
        for address in scan.loaded:
            parts = urlsplit(address)
            if parts.netloc or parts.path.startswith("/"):
                found.append((page, f"loads {address} from outside the site"))
        for address in dict.fromkeys(scan.links + scan.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = page
            if parts.path:
                joined = (site / page).parent / unquote(parts.path)
                if not joined.is_file():
                    found.append((page, f"links to {address}, which does not exist"))
                    continue
                target = joined.resolve().relative_to(site.resolve()).as_posix()
            anchor = unquote(parts.fragment)
            # browsers take these two for the top of the page
            if anchor in ("", "top") or target not in scans:
                continue
            if anchor not in scans[target].anchors:
                found.append((page, f"links to {address}, which has no such anchor"))
    return found


RELEASED = (
    ("the-annotated-transformers.pdf", "book .pdf", "The whole book, to print", "book"),
    (
        "annotated-transformers-html.zip",
        "book .zip",
        "The site, to open from a disk",
        "file-zipper",
    ),
)


def take_address(app, config) -> None:
    """All that needs the site's address has it from ``html_baseurl``."""
    config.ogp_site_url = config.html_baseurl
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path


VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')


def keep_one_viewport(page: Path) -> None:
    """Sphinx, docutils and the theme write one each; the last one stays."""
    text = page.read_text(encoding="utf-8")
    more = len(VIEWPORT.findall(text)) - 1
    if more > 0:
        page.write_text(VIEWPORT.sub("", text, more), encoding="utf-8")


def cite(app, pagename, templatename, context, doctree) -> None:
    """Tell Zotero and Google Scholar what a page is, as CITATION.cff has it."""
    if doctree is None or not app.config.html_baseurl:
        return
    book = yaml.safe_load((Path(app.srcdir) / "CITATION.cff").read_text("utf-8"))
    tags = {
        "citation_title": app.env.titles[pagename].astext(),
        "citation_inbook_title": book["title"],
        "citation_author": book["authors"][0]["name"],
        "citation_publication_date": book["date-released"].replace("-", "/"),
        "citation_public_url": context["pageurl"],
    }
    context["metatags"] += "".join(
        f'\n<meta name="{name}" content="{html.escape(content)}" />'
        for name, content in tags.items()
    )


def list_pages(app, exception: Exception | None) -> None:
    """Write sitemap.xml, of all pages: Sphinx may write only those that changed."""
    if exception or app.builder.name != "html" or not app.config.html_baseurl:
        return
    names = (f"{app.config.html_baseurl}{name}.html" for name in app.env.found_docs)
    urls = "".join(f"<url><loc>{name}</loc></url>" for name in sorted(names))
    schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    text = f'{head}<urlset xmlns="{schema}">{urls}</urlset>\n'
    (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf-8")


def check_links(app, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    site = Path(app.outdir)
    names = [*sorted(app.env.found_docs), "search", "genindex"]
    pages = [f"{name}.html" for name in names]
    pages = [page for page in pages if (site / page).exists()]
    for page in pages:
        keep_one_viewport(site / page)
    for page, problem in link_problems(site, pages):
        logger.warning("%s %s", page, problem, type="pages", subtype="link")


# those of pandas; of show_table, at its corner and where a row goes on
EMPTY_HEADINGS = ("<th></th>", '<th scope="col"></th>', '<th scope="row"></th>')


def repair_tables(app, doctree: nodes.document, docname: str) -> None:
    """A table's corner may be an empty <th>, a heading that says nothing."""
    for node in list(doctree.findall(nodes.raw)):
        text = node.astext()
        if "html" not in node.get("format", "").split():
            continue
        for empty in EMPTY_HEADINGS:
            text = text.replace(empty, "<td></td>")
        if text != node.astext():
            node.replace_self(nodes.raw("", text, format=node["format"]))


REPAIRS = {
    # docutils gives bibliographies roles that ARIA has withdrawn, on wrong parents
    ' role="doc-biblioentry"': "",
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    # the corner of a table in Markdown
    '<th class="head"><p></p></th>': "<td></td>",
    # myst-nb names every folded cell the same, and not what is written on it
    '<summary aria-label="Toggle hidden content">': "<summary>",
}
SHARED = re.compile(r'<(style|script) class="annotated-shared">.*?</\1>', re.DOTALL)


def repair_html(app, pagename, templatename, context, doctree) -> None:
    """Mend names and roles that would mislead a screen reader; keep shared code once.

    Every explorer brings the code that all of them share: in Colab it stands alone.
    """
    known = set()

    def once(match: re.Match) -> str:
        copies = match[0] in known
        known.add(match[0])
        return "" if copies else match[0]

    if context.get("body"):  # the page of search results has none
        for wrong, right in REPAIRS.items():
            context["body"] = context["body"].replace(wrong, right)
        context["body"] = SHARED.sub(once, context["body"])


LAST = "book/end"  # of the pages that are read in order


def lead_on(app, pagename, templatename, context, doctree) -> None:
    """From a chapter the way leads to the next chapter; what is below it is named."""
    below = app.env.toctree_includes
    main = below[app.config.root_doc]
    if pagename not in main:
        return

    def link(name: str) -> dict[str, str]:
        title = html.escape(app.env.titles[name].astext())
        return {"link": app.builder.get_relative_uri(pagename, name), "title": title}

    at = main.index(pagename)
    context["prev"] = link(main[at - 1]) if at else link(app.config.root_doc)
    more = pagename != LAST and at + 1 < len(main)
    context["next"] = link(main[at + 1]) if more else None
    pages = below.get(pagename)
    if pages and pagename.startswith("notebooks/"):
        links = ('<a href="{link}">{title}</a>'.format(**link(p)) for p in pages)
        context["body"] += (
            '<nav class="annotated-deeper" aria-label="Pages below this chapter">'
            f"Deeper: {' · '.join(links)}</nav>"
        )


def offer_files(app, pagename, templatename, context, doctree) -> None:
    """The download menu has what a release has: the book to print and to unpack."""
    home = app.config.html_theme_options.get("repository_url")
    for menu in context.get("header_buttons", []) if home else []:
        if menu.get("label") == "download-buttons":
            menu["buttons"] += [
                {
                    "type": "link",
                    "url": f"{home}/releases/latest/download/{name}",
                    "text": text,
                    "tooltip": tooltip,
                    "icon": f"fas fa-{icon}",
                    "label": "released",
                }
                for name, text, tooltip, icon in RELEASED
            ]


def setup(app) -> dict:
    app.connect("config-inited", take_address, priority=100)
    app.connect("doctree-resolved", check_images)
    app.connect("doctree-resolved", repair_tables)
    app.connect("html-page-context", repair_html)
    app.connect("html-page-context", lead_on)
    app.connect("html-page-context", cite)
    app.connect("html-page-context", offer_files, priority=600)  # after the theme's
    # after Jupyter Book's own handlers, one of which writes index.html
    app.connect("build-finished", check_links, priority=900)
    app.connect("build-finished", list_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
