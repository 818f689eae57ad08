"""The API page: what Sphinx's autodoc, napoleon and viewcode need to suit this book.

Types in a signature are shown, not linked: most are PyTorch's or Python's own, which
this site does not describe, and a link to another site needs the network. Links that a
docstring sets itself still must lead somewhere: there a missing target stays a warning,
which fails the build.
"""

import re

from docutils import nodes
from sphinx import addnodes

PARTS = ("sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode")
SETTINGS = {
    "add_module_names": False,  # the module stands in the heading
    "autodoc_member_order": "bysource",
    "autodoc_preserve_defaults": True,  # `LOCALES`, not its sixteen values
    "autodoc_typehints_format": "short",
    # the page itself and the search are the index
    "html_domain_indices": False,
    "html_use_index": False,
    # `[Setup](setup)` means the page, not the function
    "myst_ref_domains": ["std"],
    # "Ids ``(b, t)``: …" in a Returns section is a sentence, not a type
    "napoleon_use_rtype": False,
    "python_maximum_signature_line_length": 70,
    "toc_object_entries_show_parents": "hide",
}
PARAMETERS = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")


def configure(app, config) -> None:
    for name, value in SETTINGS.items():
        setattr(config, name, value)


def leave_types_unlinked(
    app, env, node: addnodes.pending_xref, text: nodes.Node
) -> nodes.Node | None:
    """Answer Sphinx's question for a target that it cannot find."""
    ancestor = node.parent
    while ancestor is not None:
        if isinstance(ancestor, addnodes.desc_signature):
            return text
        ancestor = ancestor.parent
    return None


def repair_signatures(app, pagename, templatename, context, doctree) -> None:
    """Sphinx sets parameters on lines of their own as a <dl> that has no <dt>."""
    if context.get("body"):
        context["body"] = PARAMETERS.sub(_lines, context["body"])


def _lines(match: re.Match) -> str:
    line = '<span class="sig-line" style="display: block; padding-left: 2em">'
    return match[1].replace("<dd>", line).replace("</dd>", "</span>")


def setup(app) -> dict:
    for part in PARTS:
        app.setup_extension(part)
    app.connect("config-inited", configure)
    app.connect("missing-reference", leave_types_unlinked)
    app.connect("html-page-context", repair_signatures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
