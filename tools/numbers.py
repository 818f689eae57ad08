"""Numbers in prose say where they come from, and agree with it.

    python -m tools.numbers [NOTEBOOK ...]

A decimal, a percentage, an "n of m" or an "n times" in a chapter's prose or in a
figure's words is either inserted by the run (`say`, f-strings), or a comment in its
paragraph, or right after it, marks it; in code a comment of the cell does, in a module
of drawings one anywhere in it:

    <!-- exact: 2.40 = log(11), 0.5 -->    true everywhere; computed if it says how
    <!-- given: 0.1 -->                    a setting that the page chose
    <!-- cited: 28.4 -->                   from the literature
    <!-- printed: 3.40, 84 % -->           a cell of this page prints it, on any machine
    <!-- recorded rates: 0.83 = max(row["loss"] for row in record["rows"]) -->

The last two are compared with the outputs that `tools.execute` kept, and with
`book/results/rates.json`; a percentage with the hundredfold value.
"""

import argparse
import ast
import math
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import CHAPTERS, ROOT, cache, notebook_named

NUMBER = re.compile(
    r"(?<![\w.,/-])(\d+\.\d+|\d+(?=\s?%|\s+percent)|[1-9]\d*(?=\s+times\b)"
    r"|\d[\d ,]* (?:of|out of|in) \d+)(?![\w.]*\w)"
)
KINDS = "exact|given|cited|printed|recorded"
MARK = re.compile(rf"({KINDS})(?: (\w+))?: (.*)", re.S)
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.S)
NOT_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]*>|^#+ .*$", re.S | re.M
)
# a version, or a place in a book or paper
PLACES = re.compile(
    r"(?:[Ss]ections?|[Cc]hapters?|[Pp]ages?|[Tt]ables?|[Ff]igures?|[Ee]quations?"
    r"|Python|PyTorch|[Vv]ersions?|transformers|torch)"
    r" \d[\d.]*(?:(?:,| and| to| or|–) \d[\d.]*)*"
)
WORDS = {"alt", "caption", "question", "title", "label"}


def numbers(text: str, sections: set[str]) -> list[str]:
    """The numbers of a piece of prose that have to come from somewhere."""
    text = PLACES.sub("", NOT_PROSE.sub(" ", COMMENT.sub("", text)))
    return [n for n in map(str.strip, NUMBER.findall(text)) if n not in sections]


def marked(comments: list[str]) -> Iterator[tuple[str, str, str, str]]:
    """Kind, record, number and expression of each number that comments mark."""
    for comment in comments:
        found = MARK.fullmatch(comment)
        if found:
            for part in re.split(r",(?= *\d[\d.]*\s?(?:%|=|,|$|of|in|out))", found[3]):
                number, _, how = part.partition("=")
                yield found[1], found[2] or "", number.strip(" %\n"), how.strip()


def computed(how: str, record: dict) -> float:
    names = {name: getattr(math, name) for name in dir(math) if name[0] != "_"}
    names |= {"record": record, "median": statistics.median, "mean": statistics.mean}
    return eval(" ".join(how.split()), names)  # an expression of this repository


def agrees(number: str, percent: bool, value: float) -> bool:
    """Whether a number, as it is written, is what a value rounds to."""
    digits = len(number.partition(".")[2])
    number = number.split()[0]  # of "380 of 1000"
    return abs(float(number) - value * (100 if percent else 1)) <= 0.501 * 10**-digits


def paragraphs(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each block of Markdown, with the comments in it and in those right after it."""
    blocks = re.split(r"\n\s*\n", text)
    for i, block in enumerate(blocks):
        if not COMMENT.sub("", block).strip():
            continue
        comments = COMMENT.findall(block)
        for after in blocks[i + 1 :]:
            if COMMENT.sub("", after).strip():
                break
            comments += COMMENT.findall(after)
        yield block, comments


def words_in_code(code: str) -> str:
    """What figures of a cell say, as far as it is written out."""
    tree = ast.parse(cache.code_of({"cells": [{"cell_type": "code", "source": code}]}))
    texts = []
    for node in ast.walk(tree):
        name = getattr(
            node, "arg", None
        )  # caption="…", or caption = "…" before the call
        if isinstance(node, ast.Assign):
            name = getattr(node.targets[0], "id", None)
        if isinstance(node, ast.keyword | ast.Assign) and name in WORDS:
            parts = (n for n in ast.walk(node.value) if isinstance(n, ast.Constant))
            texts += [part.value for part in parts if isinstance(part.value, str)]
    return "\n".join(texts)


def pieces(notebook: dict, root: Path) -> Iterator[tuple[str, list[str]]]:
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from paragraphs(text)
        elif words := words_in_code(text):
            yield words, re.findall(r"(?m)^\s*# (.*)$", text)
    for module in drawings(notebook, root):
        text = module.read_text("utf-8")
        yield words_in_code(text), re.findall(r"(?m)^\s*# (.*)$", text)


def drawings(notebook: dict, root: Path) -> list[Path]:
    """The modules of drawings that a page imports."""
    imports = re.findall(
        r"from annotated\.chapters\.(ch\d\d)(?: import |\.)(drawings\w*)",
        cache.code_of(notebook),
    )
    files = {root / f"annotated/chapters/{ch}/{name}.py" for ch, name in imports}
    return sorted(file for file in files if file.is_file())


def printed(notebook: dict) -> str:
    """All that the cells of an executed notebook print."""
    texts = []
    for cell in cache.code_cells(notebook):
        for output in cell["outputs"]:
            texts.append("".join(output.get("text", "")))
            data = output.get("data", {})
            texts += [
                "".join(data.get(f"text/{kind}", "")) for kind in ("html", "plain")
            ]
    hidden = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.S)  # tags, too
    return "\n".join(hidden.sub(" ", text) for text in texts)


def wrong(path: Path, sections: set[str], root: Path = ROOT) -> list[str]:
    """The numbers of a notebook that come from nowhere, or from something else."""
    notebook, found = cache.read(path), []
    kept = cache.place(path, notebook, root)
    shown = printed(cache.read(kept)) if kept.is_file() else None
    for text, comments in pieces(notebook, root):
        marks, there = list(marked(comments)), numbers(text, sections)
        for number in there:
            if not any(number == mark[2] for mark in marks):
                near = " ".join(text[max(0, text.find(number) - 50) :].split())[:90]
                found.append(f"{number} has no mark: … {near} …")
        for kind, name, number, how in marks:
            if number not in there:
                found.append(f"{kind}: {number} is marked and not there")
            elif kind == "printed" and shown is None:
                found.append(f"printed: {number}, but it was not executed as it is now")
            elif kind == "printed":
                alone = rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)"
                if not re.search(alone, shown):
                    found.append(f"{number} is printed by no cell")
            elif kind == "recorded" and not (name and how):
                found.append(f"recorded: {number} names no record, or no value in it")
            elif how:
                file = root / "book" / "results" / f"{name}.json"
                value = computed(how, cache.read(file) if name else {})
                percent = re.search(rf"{re.escape(number)}\s?%", text) is not None
                if not agrees(number, percent, value):
                    found.append(f"{number} is {value:g} by {how}")
    return found


def headings(paths: list[Path]) -> set[str]:
    texts = (c["source"] for p in paths for c in cache.read(p)["cells"])
    return set(re.findall(r"(?m)^#+ (\d+\.\d+) ", "\n".join("".join(t) for t in texts)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.numbers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 8 or 13b")
    every = sorted((ROOT / CHAPTERS).glob("*.ipynb"))
    paths = [notebook_named(name) for name in parser.parse_args(arguments).names]
    paths = paths or every
    sections, bad = headings(every), 0
    for path in paths:
        own = {s for s in sections if int(s.split(".")[0]) == int(path.stem[:2])}
        for line in wrong(path, own):
            print(f"{path.name}: {line}")
            bad += 1
    print(f"{len(paths)} notebooks, {bad} numbers in prose to mend")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
