"""data/vendored.py: the file that came with the package, or a clear error."""

import hashlib
import sys
import threading
from email.message import Message
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

import pytest

from annotated.data import byte_bpe, glassllm, reactions, spelling, vendored
from annotated.data.datasets import DataError
from annotated.data.vendored import MissingError, vendored_file

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


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        del args  # the tests' output is not the place for it


@pytest.fixture
def repository(path, tmp_path, monkeypatch):
    """The folder that a repository's tags are served from, with no file on board."""
    path.unlink()
    handler = partial(Handler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        about = Message()
        about["Version"] = "1.2.0"
        about["Project-URL"] = "Documentation, https://example.org"
        url = f"http://127.0.0.1:{server.server_port}"
        about["Project-URL"] = f"Repository, {url}"
        monkeypatch.setattr(vendored, "metadata", lambda name: about)
        monkeypatch.setenv("ANNOTATED_DATA", str(tmp_path / "cache"))
        yield tmp_path / "raw"
        server.shutdown()


def serve(repository, version, content):
    file = repository / version / "annotated/vendor/someone/weights.bin"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)


@pytest.mark.parametrize(
    "served",
    [
        {"v1.2.0": CONTENT, "HEAD": b"newer"},
        {"HEAD": CONTENT},  # not tagged yet
        {"v1.2.0": b"older", "HEAD": CONTENT},
    ],
)
def test_a_file_that_a_wheel_left_out_is_downloaded_once(served, repository, tmp_path):
    for version, content in served.items():
        serve(repository, version, content)
    found = vendored_file("someone/weights.bin", SHA256)
    assert found == tmp_path / "cache/package/vendor/someone/weights.bin"
    assert found.read_bytes() == CONTENT
    repository.rename(tmp_path / "offline")
    assert vendored_file("someone/weights.bin", SHA256) == found


def test_a_file_that_cannot_be_had_is_named_with_what_to_do(repository):
    serve(repository, "v1.2.0", b"other")
    with pytest.raises(MissingError) as caught:
        vendored_file("someone/weights.bin", SHA256)
    first, *tried, last = str(caught.value).splitlines()
    assert first.startswith("annotated/vendor/someone/weights.bin is not in the inst")
    assert "/raw/v1.2.0/annotated/vendor/someone/weights.bin: SHA256 hash" in tried[0]
    assert "/raw/HEAD/annotated/vendor/someone/weights.bin: 404" in tried[-1]
    assert "pip install --editable" in last


def test_without_pooch_the_error_says_so(repository, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingError, match=r"weights.bin .*: pip install pooch"):
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
