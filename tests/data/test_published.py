"""Files that others have published, in a folder that is named."""

import hashlib

import pytest

from annotated.data import published
from annotated.data.datasets import DataError, Dataset, File

CONTENT = b"weights"
FILE = File("a.bin", (), len(CONTENT), f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")


@pytest.fixture(autouse=True)
def one_is_published(monkeypatch):
    parts = {"title": "A model", "task": "", "licence": "", "citation": ""}
    small = Dataset(splits=(), files=(FILE,), **parts)
    monkeypatch.setattr(published, "PUBLISHED", {"small": small})


def test_a_folder_holds_the_published_files(tmp_path):
    path = tmp_path / "small" / FILE.name
    with pytest.raises(DataError, match=r"small/a\.bin is missing: A model"):
        published.published_files("small", tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"another")
    with pytest.raises(DataError, match="isn't the published file: 7 bytes"):
        published.published_files("small", tmp_path)
    path.write_bytes(CONTENT)
    assert published.published_files("small", tmp_path) == [path]


def test_without_a_folder_each_file_is_fetched(monkeypatch):
    monkeypatch.setattr(published, "_fetch", lambda name, file: (name, file.name))
    assert published.published_files("small") == [("small", "a.bin")]
    with pytest.raises(ValueError, match="name"):
        published.published_files("large")
