"""Change the address of the repository, everywhere, in one command.

    python -m tools.repository https://github.com/OWNER/NAME [--branch main]

The address lives in _config.yml. The links in the prose are rewritten with it and the
notebooks, whose setup cell installs from there, are generated anew.
"""

import argparse
import re
import sys
from pathlib import Path

from tools import notebooks, source

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(
    r"https://github\.com/(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)"
    r"/(?P<name>[A-Za-z0-9._-]+)"
)
BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
TEXTS = (
    "_config.yml",
    "CITATION.cff",
    "README.md",
    "book/**/*.md",
    "notebooks/src/**/*.py",
    "pyproject.toml",
)


def parse_address(url: str) -> tuple[str, str]:
    """Owner and name of a repository on GitHub."""
    found = ADDRESS.fullmatch(url.rstrip("/"))
    if found is None or found["name"].endswith(".git") or set(found["name"]) <= {"."}:
        raise ValueError(f"url is {url!r}, expected https://github.com/OWNER/NAME")
    return found["owner"], found["name"]


def links(owner: str, name: str, branch: str) -> list[str]:
    """All forms in which a text links to the repository, the longer ones first."""
    here = f"{owner}/{name}"
    return [
        f"github.com/{here}/blob/{branch}/",
        f"github.com/{here}/tree/{branch}/",
        f"colab.research.google.com/github/{here}/blob/{branch}/",
        f"codespaces.new/{here}",
        f"mybinder.org/v2/gh/{here}/{branch}",
        f"github.com/{here}",
        f"{owner}.github.io/{name}",
    ]


def rewrite(text: str, old: list[str], new: list[str]) -> str:
    """`text` with each of the old links made new, in one pass."""
    made_new = dict(zip(old, new, strict=True))
    # a link to another repository whose name only starts like this one stays
    ends = {
        link: "" if link.endswith("/") else r"(?![\w-]|\.(?!git\b)\w)" for link in old
    }
    pattern = "|".join(re.escape(link) + ends[link] for link in old)
    return re.sub(rf"(?<![\w.-])(?:{pattern})", lambda m: made_new[m[0]], text)


def set_branch(config: str, branch: str) -> str:
    """`repository.branch` in the text of _config.yml, comments and order kept."""
    pattern = r"(?m)^(repository:\n(?:[ ]+.*\n|#.*\n)*?[ ]+branch:[ ]*)[^\s#]+"
    config, found = re.subn(pattern, rf"\g<1>{branch}", config)
    if found != 1:
        raise ValueError("_config.yml: expected `branch:` in the block `repository:`")
    return config


def change(url: str, branch: str, root: Path = ROOT) -> list[str]:
    """Rewrite all texts that hold the address; the names of those that changed."""
    if not BRANCH.fullmatch(branch):
        raise ValueError(f"branch is {branch!r}, expected the name of a branch")
    present = source.repository(root)
    old = links(*parse_address(present["url"]), present["branch"])
    new = links(*parse_address(url), branch)
    changed = []
    for path in sorted(path for glob in TEXTS for path in root.glob(glob)):
        text = path.read_text(encoding="utf-8")
        result = rewrite(text, old, new)
        if path.name == "_config.yml":
            result = set_branch(result, branch)
        if result != text:
            path.write_text(result, encoding="utf-8")
            changed.append(path.relative_to(root).as_posix())
    return changed


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.repository",
        description="Change the address of the repository, everywhere.",
    )
    parser.add_argument("url", help="https://github.com/OWNER/NAME")
    parser.add_argument("--branch", default="main")
    options = parser.parse_args(arguments)
    try:
        changed = change(options.url, options.branch, root)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for name in changed:
        print(f"{name}: rewritten")
    return notebooks.main([], root)


if __name__ == "__main__":
    sys.exit(main())
