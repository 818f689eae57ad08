"""The API: a page for each module, and what Sphinx's extensions need to suit this book.

The pages are written to ``book/api`` before Sphinx looks for its sources. The directive
``{modules} annotated.data`` lists those of a package. Types in a signature are shown,
not linked: most are PyTorch's or Python's own, which this site does not describe, and a
link to another site needs the network. Links that a docstring sets itself still must
lead somewhere: there a missing target stays a warning, which fails the build.
"""

import ast
import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
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
# of these packages, what a reader calls: the rest is for who writes them
CHECKS = {
    "annotated.checks": {"check": "function", "CheckFailed": "exception"},
    "annotated.probes": {
        "probe": "function",
        "require_sound": "function",
        "Report": "class",
        "Outcome": "class",
    },
}
PARAMETERS = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")


def configure(app, config) -> None:
    for name, value in SETTINGS.items():
        setattr(config, name, value)
    write_pages(ROOT / "book" / "api")


def modules() -> dict[str, Path]:
    """The modules that have a page; a chapter's own are for its page alone."""
    inside = sorted((ROOT / "annotated").rglob("[!_]*.py"))
    files = [path.relative_to(ROOT) for path in inside]
    apart = {"chapters", "checks", "notebook.py", "vendor"}  # by a folder or a file
    found = [path for path in files if path.parts[1] not in apart]
    named = {".".join(path.with_suffix("").parts): ROOT / path for path in found}
    return named | {
        package: ROOT.joinpath(*package.split("."), "__init__.py") for package in CHECKS
    }


def page(module: str) -> str:
    """The text of a module's page."""
    shown = f".. automodule:: {module}\n   :members:\n"
    if module in CHECKS:
        named = CHECKS[module].items()
        shown = "\n".join(
            f".. auto{kind}:: {module}.{name}\n" + "   :members:\n" * (kind == "class")
            for name, kind in named
        )
    return f"# {module}\n\n```{{eval-rst}}\n{shown}```\n"


def write_pages(folder: Path) -> None:
    """Write those that are not there as they should be, and remove others."""
    folder.mkdir(exist_ok=True)
    texts = {folder / f"{module}.md": page(module) for module in modules()}
    for path in {*folder.iterdir()} - {*texts}:
        path.unlink()
    for path, text in texts.items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Modules(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        lines = ["| module | what it is |", "|-|-|"]
        for module, path in modules().items():
            if module.rpartition(".")[0] == self.arguments[0]:
                self.env.note_dependency(str(path))
                doc = ast.get_docstring(ast.parse(path.read_text("utf-8")))
                about = doc.splitlines()[0].replace("``", "`")
                lines.append(f"| [{module}](api/{module}.md) | {about} |")
        box = nodes.container()
        listed = StringList(lines, "modules")
        self.state.nested_parse(listed, self.content_offset, box)
        return box.children


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
    app.add_directive("modules", Modules)
    app.connect("config-inited", configure)
    app.connect("missing-reference", leave_types_unlinked)
    app.connect("html-page-context", repair_signatures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
