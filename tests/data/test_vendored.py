"""annotated/data/vendored.py: the file that came with the package, or a clear error."""

import hashlib

import pytest

from annotated.data import vendored
from annotated.data.datasets import DataError
from annotated.data.vendored import vendored_file

CONTENT = b"as it was published\r\n\0"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "vendor" / "someone" / "weights.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    monkeypatch.setattr(vendored, "files", lambda package: tmp_path)
    return path


def test_a_file_that_is_as_it_came_is_found(path):
    assert vendored_file("someone/weights.bin", SHA256) == path


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"\0", b"<html>"])
def test_other_bytes_are_refused(path, content):
    path.write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(
        DataError,
        match=f"weights.bin is not the file that .* not {SHA256}, but {found}.*again",
    ):
        vendored_file("someone/weights.bin", SHA256)


def test_a_missing_file_is_named(path):
    path.unlink()
    with pytest.raises(DataError, match=r"weights.bin is not .* but FileNotFoundError"):
        vendored_file("someone/weights.bin", SHA256)
