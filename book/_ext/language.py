"""Chinese words in a page are marked as Chinese.

A screen reader then reads them in Chinese, and a browser takes the right font. The
pages themselves stay plain text.
"""

import re

from docutils import nodes

# words that hold a Chinese character; the Latin words beside them are English
CHINESE = re.compile(r"(\S*[\u3400-\u9fff]\S*(?:\s+\S*[\u3400-\u9fff]\S*)*)")
# docutils turns this class into the attribute lang="zh"
MARK = "language-zh"
VERBATIM = (
    nodes.literal,
    nodes.FixedTextElement,
    nodes.raw,
    nodes.math,
    nodes.math_block,
    nodes.comment,
)


def marked(text: str) -> list[nodes.Node]:
    """The text as nodes, each stretch of Chinese in one of its own."""
    pieces = enumerate(CHINESE.split(text))
    return [
        nodes.inline("", piece, classes=[MARK]) if i % 2 else nodes.Text(piece)
        for i, piece in pieces
        if piece
    ]


def mark(app, doctree: nodes.document) -> None:
    for text in list(doctree.findall(nodes.Text)):
        ancestor = text.parent
        while ancestor is not None and not isinstance(ancestor, VERBATIM):
            ancestor = ancestor.parent
        if ancestor is None and CHINESE.search(text):
            text.parent.replace(text, marked(text))


def setup(app) -> dict:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
