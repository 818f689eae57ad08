"""data/vendored.py: the file that came with the package, or a clear error."""

import hashlib
from importlib.resources import files

import pytest

from annotated.data import byte_bpe, glassllm, reactions, spelling, vendored
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


VENDOR = files("annotated") / "vendor"
COPYRIGHTS = {
    "cmudict": (spelling.CMUDICT, "Carnegie Mellon University", 1_000_000),
    "gpt2_bpe": (byte_bpe.GPT2, "Copyright (c) 2022 OpenAI", 400_000),
    "rxnmapper": (reactions.RXNMAPPER, "Copyright 2020 RXN4Chemistry", 3_300_000),
    "glassllm": (glassllm.GLASSLLM, "MIT License", 1_800_000),
}
CHECKSUMS = {
    "cmudict": {"cmudict.dict": spelling.CMUDICT["sha256"]},
    "gpt2_bpe": {"gpt2.tiktoken.gz": byte_bpe.GPT2["sha256"]},
    "rxnmapper": reactions.FILES,
    "glassllm": glassllm.FILES,
}


@pytest.mark.parametrize("folder", COPYRIGHTS)
def test_licence_version_and_checksums_lie_beside_the_files(folder):
    facts, holder, most = COPYRIGHTS[folder]
    assert holder in (VENDOR / folder / "LICENSE").read_text("utf-8")
    told = (VENDOR / folder / "README.md").read_text("utf-8")
    assert facts["version"].split()[1] in told and facts["source"] in told
    for name, checksum in CHECKSUMS[folder].items():
        assert f"`{name}`" in told and checksum in told
    sizes = [file.stat().st_size for file in (VENDOR / folder).iterdir()]
    assert sum(sizes) < most
