"""Citations that read the same in Colab and in the book.

A chapter cites a paper by an ordinary link, ``[Bahdanau et al. (2015)](https://…)``,
because Colab shows Sphinx's own markup raw. A link whose text ends in a year must lead
to an address in the bibliography; otherwise Sphinx warns, and the build fails.
"""

import re
from collections.abc import Iterable

from docutils import nodes
from pybtex.database import parse_file
from sphinx.util import logging

logger = logging.getLogger(__name__)

ENDS_IN_YEAR = re.compile(r"(\((19|20)\d\d\)|, (19|20)\d\d)$")


def uncited(doctree: nodes.document, known: Iterable[str]) -> list[nodes.reference]:
    """The links that look like citations and lead to no entry of the bibliography."""
    known = set(known)
    return [
        node
        for node in doctree.findall(nodes.reference)
        if ENDS_IN_YEAR.search(node.astext()) and node.get("refuri") not in known
    ]


def check(app, doctree: nodes.document) -> None:
    for path in app.config.bibtex_bibfiles:
        app.env.note_dependency(str(app.srcdir / path))
    known = [
        entry.fields["url"]
        for path in app.config.bibtex_bibfiles
        for entry in parse_file(app.srcdir / path).entries.values()
        if "url" in entry.fields
    ]
    for node in uncited(doctree, known):
        logger.warning(
            "the citation %r leads to %r, which is in no entry of the bibliography",
            node.astext(),
            node.get("refuri", node.get("refid", "nowhere")),
            location=node,
            type="citations",
        )


def setup(app):
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
