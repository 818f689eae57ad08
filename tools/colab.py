"""Run notebooks as Colab would: alone in an empty folder, with Colab's versions.

    python -m tools.colab [NOTEBOOK ...]

Makes an environment of its own (`.venv-colab`) from `tools/colab.txt`. The notebook's
own setup cell installs `annotated` by git; a clone on this machine stands in for the
repository's address, and holds the working tree as it is; what a wheel leaves out lies
where its download would be. After *Run all*, nothing that Colab brings may have another
version than before.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools import ROOT
from tools.source import repository

PINS = ROOT / "tools" / "colab.txt"
ENVIRONMENT = ROOT / ".venv-colab"
# what `annotated` needs and Colab does not bring
MAY_BE_ADDED = {"annotated-transformers", "jaxtyping", "wadler-lindig"}
KERNEL = "colab-stand-in"


def run(*command: object, **options) -> str:
    """The output of a command; its own words if it fails."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **options
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def environment() -> Path:
    """The Python of an environment that holds just the pinned versions."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / ".pins"
    digest = hashlib.sha256(PINS.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        print("making .venv-colab with Colab's versions (minutes, the first time)")
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        run(sys.executable, "-m", "venv", ENVIRONMENT)
        run(python, "-m", "pip", "install", "--quiet", "-r", PINS)
        stamp.write_text(digest)
    for name in MAY_BE_ADDED:  # a fresh Colab has none of them
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", name)
    return python


def with_published(pins: str, published: str) -> str:
    """The pins with the versions of a list that Colab publishes; PyTorch's stays.

    Raises:
        ValueError: if the list does not name one of them: it is no such list, then.
    """
    found = dict(re.findall(r"^([\w.-]+)==(\S+)$", published, re.M))

    def line(match: re.Match) -> str:
        name = match[1]
        if name == "torch":
            return match[0]
        if name not in found:
            raise ValueError(f"the published versions do not name {name}")
        return f"{name}=={found[name]}"

    return re.sub(r"^([\w.-]+)==\S+$", line, pins, flags=re.M)


def versions(python: Path) -> dict[str, str]:
    """Every installed distribution and its version."""
    listed = run(python, "-m", "pip", "list", "--format", "json")
    return {
        re.sub(r"[-_.]+", "-", row["name"]).lower(): row["version"]
        for row in json.loads(listed)
    }


def snapshot(folder: Path, branch: str) -> Path:
    """A git repository of the working tree, in one commit on the branch."""
    clone = folder / "repository"
    clone.mkdir()
    listed = run("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    run("git", "init", "--quiet", "--initial-branch", branch, cwd=clone)
    run("git", "add", "--all", cwd=clone)
    author = ["-c", "user.name=stand-in", "-c", "user.email=stand-in@example.org"]
    run("git", *author, "commit", "--quiet", "-m", "working tree", cwd=clone)
    return clone


def downloads(clone: Path, folder: Path) -> None:
    """Put what a wheel leaves out where `annotated` keeps its downloads."""
    project = tomllib.loads((clone / "pyproject.toml").read_text("utf-8"))
    left_out = project["tool"]["setuptools"]["exclude-package-data"]
    for package, patterns in left_out.items():
        for pattern in patterns:
            for file in (clone / package.replace(".", "/")).glob(pattern):
                there = folder / "package" / file.relative_to(clone / "annotated")
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, there)


def kernel(folder: Path, python: Path, clone: Path, url: str) -> None:
    """Make the environment's kernel known, with git led to the clone for the address.

    The environment must not find what this process finds: no PYTHONPATH, and a home of
    its own, so that neither user site nor configuration reaches in.
    """
    spec = folder / "kernels" / KERNEL
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    settings = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{clone.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": url,
        "HOME": str(folder),
        "ANNOTATED_DATA": str(folder / "data"),
        "PYTHONPATH": "",
        "PYTHONNOUSERSITE": "1",
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # a warning of the debugger's
    }
    described = {"argv": argv, "display_name": KERNEL, "env": settings}
    (spec / "kernel.json").write_text(json.dumps({**described, "language": "python"}))
    os.environ["JUPYTER_PATH"] = str(folder)


def run_all(path: Path, timeout: int) -> str | None:
    """Execute a notebook alone in an empty folder; the error, or None."""
    with tempfile.TemporaryDirectory() as empty:
        shutil.copy(path, empty)
        notebook = nbformat.read(Path(empty) / path.name, as_version=4)
        client = NotebookClient(
            notebook,
            timeout=timeout,
            kernel_name=KERNEL,
            resources={"metadata": {"path": empty}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return str(error)
    return None


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What a notebook did to the environment that it should not have done."""
    wrong = [
        f"{name}: {before[name]} became {after.get(name, 'missing')}"
        for name in before
        if after.get(name) != before[name]
    ]
    added = set(after) - set(before) - MAY_BE_ADDED
    return wrong + [f"{name} {after[name]} was added" for name in sorted(added)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.colab", description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--timeout", type=int, default=600, help="seconds a cell")
    parser.add_argument(
        "--published", type=Path, help="pip-freeze.txt of Colab: write its versions"
    )
    options = parser.parse_args()
    if options.published:
        PINS.write_text(with_published(PINS.read_text(), options.published.read_text()))
    paths = options.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    missing = [str(path) for path in paths if not path.is_file()]
    if missing or not paths:
        parser.error(f"no such notebook: {', '.join(missing) or 'notebooks/*.ipynb'}")
    where = repository()
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clone = snapshot(folder, where["branch"])
        downloads(clone, folder / "data")
        for path in paths:
            python = environment()
            shutil.rmtree(folder / "kernels", ignore_errors=True)
            kernel(folder, python, clone, where["url"].rstrip("/"))
            before, began = versions(python), time.monotonic()
            if "annotated-transformers" in before:
                raise SystemExit("annotated is there before the setup cell ran")
            problem = run_all(path, options.timeout)
            after = versions(python)
            wrong = changes(before, after)
            if problem is None and "annotated-transformers" not in after:
                wrong.append("the setup cell did not install annotated")
            seconds = time.monotonic() - began
            state = "failed" if problem or wrong else "passed"
            print(f"{state}  {path.name}  {seconds:.0f} s", flush=True)
            for line in [problem, *wrong]:
                if line:
                    print(line)
            failed += [path.name] if problem or wrong else []
    print(f"{len(paths) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
