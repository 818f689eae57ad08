"""Where the outputs of executed notebooks are kept.

jupyter-cache compares the code of a notebook and nothing else. What that code imports
and reads goes into the name of the cache's folder, so that an edit there starts a new,
empty cache. The notebook executor and the Sphinx build both ask `cache_path`.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("annotated", "book/results", "requirements.txt")
PARENT = "_build/.jupyter_cache"
KEY = re.compile(r"[0-9a-f]{16}")


class CacheError(OSError):
    """The folder of the cache cannot be used."""


def source_files(root: Path = ROOT) -> Iterator[Path]:
    """Every file that the outputs of a notebook depend on, in a fixed order."""
    for name in SOURCES:
        path = root / name
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (f for f in files if f.is_file() and "__pycache__" not in f.parts)


def cache_key(root: Path = ROOT) -> str:
    """A hash over names and contents of `source_files`, the Python and the device."""
    digest = hashlib.sha256()
    environment = [f"python {sys.version_info.major}.{sys.version_info.minor}"]
    environment.append(os.environ.get("ANNOTATED_DEVICE", ""))
    digest.update("\0".join(environment).encode())
    for path in source_files(root):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"\0{path.relative_to(root).as_posix()}\0{content}".encode())
    return digest.hexdigest()[:16]


def cache_parent(root: Path = ROOT) -> Path:
    return Path(os.environ.get("ANNOTATED_CACHE") or root / PARENT).absolute()


def cache_path(root: Path = ROOT) -> Path:
    """The folder of the present key, made if need be and known to be writable."""
    path = cache_parent(root) / cache_key(root)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            path.touch()  # the newest folders outlive `prune`
    except OSError as error:
        raise CacheError(
            f"cannot write to the cache of executed notebooks, {path}: "
            f"{error.strerror}. Make that folder writable, or set ANNOTATED_CACHE "
            "to a folder that is."
        ) from error
    return path


def prune(parent: Path, keep: int = 3) -> list[Path]:
    """Remove all but the newest caches; say which. Other folders are left alone."""
    caches = [
        path
        for path in parent.iterdir()
        if KEY.fullmatch(path.name) and (path / "global.db").is_file()
    ]
    caches.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in caches[keep:]:
        shutil.rmtree(path)
    return caches[keep:]
