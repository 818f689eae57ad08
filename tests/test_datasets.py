"""annotated/datasets.py against a server on this machine that misbehaves: the right
file or none, a clear word about why, and splits in which nothing stands twice.

No test uses the network. Those of the real files read them in the folder that
ANNOTATED_DATA names, and warn where there is none.
"""

import builtins
import dataclasses
import errno
import gzip
import hashlib
import io
import os
import random
import re
import socket
import sys
import tarfile
import threading
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import pytest

from annotated import datasets
from annotated.data import SPLITS
from annotated.datasets import (
    REGISTRY,
    DataError,
    Dataset,
    File,
    banner,
    cache_folder,
    enwik8,
    fetch,
    imdb,
    multi30k,
    rotten_tomatoes,
    tinyshakespeare,
)

REAL = os.environ.get("ANNOTATED_DATA")  # read before any test sets another one
BODY = b"to be, or not to be\n" * 500
PIECE = len(BODY) // 3


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ANNOTATED_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets, "TIMEOUT", (10, 10))
    return folder


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


# ---- a server that misbehaves --------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.headers_of[self.path] = dict(self.headers)
        self.server.answers[self.path](self)

    def log_message(self, *args):
        del args  # the tests' output is not the place for it

    def begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()


def sends(body):
    def answer(handler):
        handler.begin(len(body))
        handler.wfile.write(body)

    return answer


def fails(status):
    return lambda handler: handler.send_error(status)


def breaks_off(handler):
    handler.begin(len(BODY))
    handler.wfile.write(BODY[:PIECE])


def says_nothing(handler):
    handler.server.over.wait(10)


def stops_within(handler):
    handler.begin(len(BODY))
    handler.wfile.write(BODY[:PIECE])
    handler.wfile.flush()
    handler.server.over.wait(10)


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.asked, server.headers_of, server.answers = [], {}, {}
        server.over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def url(name, answer):
            server.answers[f"/{name}"] = answer
            return f"http://127.0.0.1:{server.server_port}/{name}"

        server.url = url
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def refusing_url() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/refused"


def checksum(body: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, body).hexdigest()}"


@pytest.fixture
def toy(monkeypatch):
    """Register a data set `toy`; by default with one file, which holds BODY."""

    def register(*mirrors, files=None, **changes):
        file = File("toy.txt", mirrors, len(BODY), checksum(BODY))
        files = files or [dataclasses.replace(file, **changes)]
        row = Dataset("Toy", "none", ("train",), tuple(files), "free", "Nobody (1900)")
        monkeypatch.setitem(REGISTRY, "toy", row)

    return register


# ---- downloads that work -------------------------------------------------------


def test_a_file_is_downloaded_into_the_folder_of_its_data_set(toy, server, cache):
    toy(server.url("a", sends(BODY)))
    assert fetch("toy") == [cache / "toy" / "toy.txt"]
    assert (cache / "toy" / "toy.txt").read_bytes() == BODY
    assert files_in(cache) == [cache / "toy" / "toy.txt"]


def test_a_file_is_downloaded_once(toy, server):
    toy(server.url("a", sends(BODY)))
    assert fetch("toy") == fetch("toy")
    assert server.asked == ["/a"]


def test_a_good_mirror_is_not_talked_about(toy, server, capsys):
    toy(server.url("a", sends(BODY)), server.url("b", sends(BODY)))
    fetch("toy")
    assert server.asked == ["/a"]
    assert capsys.readouterr().out == ""


@pytest.fixture
def three_files(toy, server):
    bodies = {"one": b"1", "two": b"22", "three": b"333"}
    toy(
        files=[
            File(name, (server.url(name, sends(body)),), len(body), checksum(body))
            for name, body in bodies.items()
        ]
    )
    return bodies


def test_all_files_are_fetched_in_the_order_of_the_registry(three_files):
    paths = fetch("toy")
    assert [path.name for path in paths] == ["one", "two", "three"]
    assert [path.read_bytes() for path in paths] == list(three_files.values())


def test_only_the_files_asked_for_are_fetched_in_that_order(three_files, server):
    paths = fetch("toy", "three", "one")
    assert [path.read_bytes() for path in paths] == [b"333", b"1"]
    assert server.asked == ["/three", "/one"]


@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "md5"])
def test_each_kind_of_published_checksum_is_understood(algorithm, toy, server):
    url = server.url("a", sends(BODY))
    toy(url, checksum=checksum(BODY, algorithm))
    assert fetch("toy")[0].read_bytes() == BODY


def test_a_download_can_be_read_by_others_as_any_new_file(toy, server, cache):
    toy(server.url("a", sends(BODY)))
    ordinary = cache.parent / "ordinary"
    ordinary.touch()
    assert fetch("toy")[0].stat().st_mode == ordinary.stat().st_mode


def test_files_are_not_asked_for_in_compressed_form(toy, server):
    toy(server.url("a", sends(BODY)))
    fetch("toy")
    assert server.headers_of["/a"]["Accept-Encoding"] == "identity"


def test_a_bar_shows_the_progress(toy, server, capsys):
    toy(server.url("a", sends(BODY)))
    fetch("toy")
    said = capsys.readouterr().err
    assert re.search(r"toy\.txt: 100%.* 10\.0k/10\.0k, 00:00 left\n$", said)


def test_the_bar_can_be_left_out(toy, server, capsys):
    toy(server.url("a", sends(BODY)))
    fetch("toy", progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_bar_of_a_mirror_that_failed_is_taken_away(toy, server, capsys):
    toy(server.url("a", fails(404)), server.url("b", sends(BODY)))
    fetch("toy")
    lines = capsys.readouterr().err.split("\n")
    shown = [line.rsplit("\r", 1)[-1] for line in lines]
    assert [line[:13] for line in shown if line.strip()] == ["toy.txt: 100%"]


def test_two_fetches_at_once_do_not_mix(toy, server, cache):
    both = threading.Barrier(2)

    def waits_for_the_other(handler):
        handler.begin(len(BODY))
        handler.wfile.write(BODY[:PIECE])
        handler.wfile.flush()
        both.wait(10)
        handler.wfile.write(BODY[PIECE:])

    toy(server.url("a", waits_for_the_other))
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(fetch, "toy", progress=False) for _ in range(2)]
    assert [job.result() for job in jobs] == [[cache / "toy" / "toy.txt"]] * 2
    assert server.asked == ["/a", "/a"]
    assert files_in(cache) == [cache / "toy" / "toy.txt"]
    assert (cache / "toy" / "toy.txt").read_bytes() == BODY


# ---- mirrors that fail ---------------------------------------------------------

LONGER, OTHER = BODY + b"!", BODY[:-1] + b"!"
BAD_ANSWERS = {
    "not found": (fails(404), "HTTP 404 Not Found"),
    "server error": (fails(500), "HTTP 500 Internal Server Error"),
    "breaks off": (breaks_off, "the connection broke off before the end of the file"),
    "cut off": (
        sends(BODY[:PIECE]),
        f"sent a wrong file: {PIECE:,} bytes instead of 10,000",
    ),
    "longer": (sends(LONGER), "sent a wrong file: 10,001 bytes instead of 10,000"),
    "other bytes": (
        sends(OTHER),
        f"sent a wrong file: sha256 {hashlib.sha256(OTHER).hexdigest()} instead of "
        f"{hashlib.sha256(BODY).hexdigest()}",
    ),
    "says nothing": (says_nothing, "no answer within 10 s (connection) or 0.3 s"),
    "stops within": (stops_within, "no answer within 10 s (connection) or 0.3 s"),
}
bad_answers = pytest.mark.parametrize(
    ("answer", "reason"), BAD_ANSWERS.values(), ids=list(BAD_ANSWERS)
)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(datasets, "TIMEOUT", (10, 0.3))


@pytest.mark.usefixtures("impatient")
@bad_answers
def test_after_a_bad_mirror_the_next_is_tried(
    answer, reason, toy, server, cache, capsys
):
    bad = server.url("bad", answer)
    toy(bad, server.url("good", sends(BODY)))
    assert fetch("toy")[0].read_bytes() == BODY
    assert server.asked == ["/bad", "/good"]
    said = capsys.readouterr().out
    assert said.startswith(f"toy: {bad}: {reason}")
    assert said.endswith(". Trying the next mirror.\n")
    assert files_in(cache) == [cache / "toy" / "toy.txt"]


def test_a_dead_first_mirror_is_passed_over(toy, server, capsys):
    dead = refusing_url()
    toy(dead, server.url("good", sends(BODY)))
    assert fetch("toy")[0].read_bytes() == BODY
    wanted = f"toy: {dead}: no connection. Trying the next mirror.\n"
    assert capsys.readouterr().out == wanted


@pytest.mark.usefixtures("impatient")
@bad_answers
def test_nothing_is_kept_of_a_bad_download(answer, reason, toy, server, cache):
    toy(server.url("bad", answer))
    with pytest.raises(DataError, match=re.escape(reason)):
        fetch("toy")
    assert files_in(cache) == []


def test_who_catches_errors_of_files_catches_this_one_too(toy):
    toy(refusing_url())
    with pytest.raises(OSError, match="toy: cannot download"):
        fetch("toy")


def test_the_error_names_every_mirror_with_its_failure(toy, server):
    dead, missing = refusing_url(), server.url("missing", fails(404))
    toy(dead, missing)
    with pytest.raises(DataError) as caught:
        fetch("toy")
    assert f"\n  {dead}: no connection\n" in str(caught.value)
    assert f"\n  {missing}: HTTP 404 Not Found\n" in str(caught.value)


def test_after_the_last_mirror_no_next_one_is_promised(toy, server, capsys):
    toy(server.url("a", fails(404)), server.url("b", fails(404)))
    with pytest.raises(DataError):
        fetch("toy")
    assert capsys.readouterr().out.count("Trying the next mirror") == 1


def test_offline_the_error_says_what_to_do(toy, cache):
    toy(refusing_url())
    with pytest.raises(DataError) as caught:
        fetch("toy")
    said = str(caught.value)
    expected = f"toy: cannot download toy.txt (10,000 bytes, {checksum(BODY)}). "
    assert said.startswith(expected)
    assert f"put it at {cache / 'toy' / 'toy.txt'}" in said
    assert "set ANNOTATED_DATA to a folder that holds toy/toy.txt" in said
    assert "use the data on board (annotated.data)" in said


@pytest.mark.parametrize("algorithm", ["sha1", "md5"])
def test_no_kind_of_checksum_lets_a_wrong_file_pass(algorithm, toy, server, cache):
    toy(server.url("a", sends(OTHER)), checksum=checksum(BODY, algorithm))
    with pytest.raises(DataError, match=f"sent a wrong file: {algorithm} "):
        fetch("toy")
    assert files_in(cache) == []


def test_other_faults_of_requests_are_named(toy):
    toy("http://")
    with pytest.raises(DataError, match="http://: InvalidURL: "):
        fetch("toy")


def test_a_server_with_a_false_certificate_is_named(toy, server):
    # plain HTTP where TLS is expected: the handshake fails
    toy(server.url("a", sends(BODY)).replace("http:", "https:"))
    with pytest.raises(DataError, match=r"/a: no secure connection \("):
        fetch("toy")


def test_stopping_a_download_leaves_nothing(toy, server, cache, monkeypatch):
    toy(server.url("a", sends(BODY)))
    write_fails(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fetch("toy")
    assert files_in(cache) == []


# ---- files that are there already ------------------------------------------------


@pytest.mark.parametrize("content", [OTHER, BODY[:PIECE], b""])
def test_a_wrong_file_in_the_cache_is_refused_and_left_alone(
    content, toy, server, cache
):
    toy(server.url("a", sends(BODY)))
    path = cache / "toy" / "toy.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        fetch("toy")
    assert f"toy: {path} is not the file it should be: " in str(caught.value)
    assert "It was left as it is. Remove it, and it will" in str(caught.value)
    assert path.read_bytes() == content
    assert server.asked == []


def test_a_file_put_there_by_hand_needs_no_network(toy, cache):
    toy(refusing_url())
    path = cache / "toy" / "toy.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(BODY)
    assert fetch("toy") == [path]


# ---- disks that fail -------------------------------------------------------------


def write_fails(monkeypatch, error):
    """Let a download fail when half of it is on the disk."""

    class Failing(io.FileIO):
        def write(self, data):
            super().write(data[: len(data) // 2])
            raise error

    def failing_open(path, mode):
        assert mode == "w+b"
        return Failing(path, "w+")

    monkeypatch.setattr(pooch.downloaders, "open", failing_open, raising=False)
    assert builtins.open is not failing_open


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_cannot_take_the_file_is_named(
    code, toy, server, cache, monkeypatch
):
    toy(server.url("a", sends(BODY)), server.url("b", sends(BODY)))
    write_fails(monkeypatch, OSError(code, os.strerror(code)))
    with pytest.raises(DataError) as caught:
        fetch("toy")
    said = str(caught.value)
    path = cache / "toy" / "toy.txt"
    assert said.startswith(f"toy: cannot read or write {path} (10,000 bytes): ")
    assert os.strerror(code) in said
    assert "set ANNOTATED_DATA to another folder" in said
    assert server.asked == ["/a"], "no other mirror makes room on the disk"
    assert files_in(cache) == []


@pytest.mark.parametrize("in_the_way", ["cache", "cache/toy"])
def test_a_file_in_the_way_of_the_folder_is_named(in_the_way, toy, server, tmp_path):
    toy(server.url("a", sends(BODY)))
    obstacle = tmp_path / in_the_way
    obstacle.parent.mkdir(exist_ok=True)
    obstacle.write_text("here first")
    with pytest.raises(DataError, match=r"toy: cannot read or write .*toy\.txt"):
        fetch("toy")
    assert obstacle.read_text() == "here first"
    assert server.asked == []


def test_a_folder_in_the_place_of_the_file_is_named(toy, cache):
    toy(refusing_url())
    (cache / "toy" / "toy.txt").mkdir(parents=True)
    with pytest.raises(DataError, match="toy: cannot read or write"):
        fetch("toy")


# ---- the cache, and the package pooch ----------------------------------------------


def test_the_environment_names_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ANNOTATED_DATA", str(tmp_path))
    assert cache_folder() == tmp_path


def test_the_name_of_the_cache_may_begin_with_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("ANNOTATED_DATA", "~/data")
    assert cache_folder() == tmp_path / "data"


def test_a_cache_named_from_here_is_still_found_from_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANNOTATED_DATA", "data")
    assert cache_folder() == tmp_path / "data"


@pytest.mark.parametrize("unset", [None, ""])
def test_else_the_cache_is_where_the_system_keeps_caches(unset, monkeypatch):
    if unset is None:
        monkeypatch.delenv("ANNOTATED_DATA")
    else:
        monkeypatch.setenv("ANNOTATED_DATA", unset)
    assert cache_folder() == Path(pooch.os_cache("annotated-transformers"))


def test_without_pooch_the_error_says_so(toy, monkeypatch):
    toy(refusing_url())
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"need the package pooch, .*pip install"):
        fetch("toy")


def test_without_pooch_files_that_are_there_are_read(toy, cache, monkeypatch):
    toy(refusing_url())
    monkeypatch.setitem(sys.modules, "pooch", None)
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.txt").write_bytes(BODY)
    assert fetch("toy")[0].read_bytes() == BODY


# ---- checksums of what is in a zip file --------------------------------------------


def zipped(content: bytes, name: str = "inner", method=zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def damaged(archive: bytes) -> bytes:
    middle = archive.index(b"inner") + 15
    return archive[:middle] + bytes([archive[middle] ^ 255]) + archive[middle + 1 :]


@pytest.fixture
def zip_toy(toy, server):
    def register(sent):
        url = server.url("a", sends(sent))
        toy(url, size=len(zipped(BODY)), member="inner", member_size=len(BODY))

    return register


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_zip_file_may_change_where_its_content_does_not(method, zip_toy):
    zip_toy(zipped(BODY, method=method))
    assert fetch("toy")[0].read_bytes() == zipped(BODY, method=method)


BAD_ZIPS = {
    "other content": (zipped(OTHER), "inner in it: sha256 "),
    "shorter": (zipped(BODY[:99]), "inner in it: 99 bytes instead of 10,000"),
    "longer": (zipped(LONGER), "inner in it: 10,001 bytes instead of 10,000"),
    "other name": (zipped(BODY, "outer"), "no whole zip file with inner in it"),
    "truncated": (zipped(BODY)[:-9], "no whole zip file with inner in it"),
    "damaged": (damaged(zipped(BODY)), "no whole zip file with inner in it"),
    "no zip": (b"<!DOCTYPE html>", "no whole zip file with inner in it (15 bytes; "),
}


@pytest.mark.parametrize(("sent", "reason"), BAD_ZIPS.values(), ids=list(BAD_ZIPS))
def test_a_zip_file_of_the_wrong_content_is_refused(sent, reason, zip_toy, cache):
    zip_toy(sent)
    with pytest.raises(DataError, match=re.escape(f"sent a wrong file: {reason}")):
        fetch("toy")
    assert files_in(cache) == []


# ---- the banner --------------------------------------------------------------------


def test_the_banner_says_when_the_data_is_on_board(capsys):
    banner()
    assert capsys.readouterr().out == "Data: on board, nothing is downloaded\n"


def test_the_banner_says_what_was_downloaded(toy, server, capsys):
    toy(server.url("a", sends(BODY)))
    fetch("toy")
    banner("toy")
    assert capsys.readouterr().out == (
        "Data: Toy, a download: 1 of 1 files here, checksums (sha256) match. "
        "Licence: free. Source: Nobody (1900)\n"
    )


def test_the_banner_says_when_nothing_is_downloaded_yet(toy, capsys):
    toy(refusing_url())
    banner("toy")
    assert capsys.readouterr().out.startswith("Data: Toy, a download: not here yet. ")


def test_the_banner_counts_the_files(three_files, capsys):
    fetch("toy", "two")
    banner("toy")
    assert three_files.keys() == {"one", "two", "three"}
    said = capsys.readouterr().out
    assert said.startswith("Data: Toy, a download: 1 of 3 files here, checksums ")


def test_the_banner_does_not_hide_a_wrong_file(three_files, cache, capsys):
    fetch("toy")
    (cache / "toy" / "three").write_bytes(three_files["three"][:-1] + b"!")
    banner("toy")
    assert "here, WRONG checksums (sha256) of three. " in capsys.readouterr().out


def test_the_banner_says_when_only_the_content_is_checked(zip_toy, capsys):
    zip_toy(zipped(BODY))
    fetch("toy")
    banner("toy")
    assert "checksums (sha256 of the content) match" in capsys.readouterr().out


# ---- the registry ------------------------------------------------------------------

ROWS = pytest.mark.parametrize("name", list(REGISTRY))
FILES = pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=f"{name}/{file.name}")
        for name, row in REGISTRY.items()
        for file in row.files
    ],
)
DIGITS = {"md5": 32, "sha1": 40, "sha256": 64}


def test_the_registry_holds_the_five_data_sets():
    expected = ["multi30k", "tinyshakespeare", "rotten_tomatoes", "imdb", "enwik8"]
    assert list(REGISTRY) == expected


@ROWS
def test_a_row_says_what_a_reader_must_know(name):
    row = REGISTRY[name]
    assert row.title
    assert row.task
    assert row.licence
    assert re.search(r"\((19|20)\d\d\)", row.citation), "authors and year"


@ROWS
def test_a_row_cannot_be_changed_by_accident(name):
    row = REGISTRY[name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.licence = "free"
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.files[0].checksum = checksum(b"")


@ROWS
def test_no_two_files_of_a_data_set_share_a_name(name):
    names = [file.name for file in REGISTRY[name].files]
    assert len(set(names)) == len(names) >= 1


@FILES
def test_a_file_has_mirrors_on_several_hosts(file):
    addresses = [urlsplit(mirror) for mirror in file.mirrors]
    assert {address.scheme for address in addresses} == {"https"}
    assert len({address.netloc for address in addresses}) == len(addresses) >= 2


@FILES
def test_a_checksum_is_whole(file):
    algorithm, digits = file.checksum.split(":")
    assert re.fullmatch("[0-9a-f]*", digits)
    assert len(digits) == DIGITS[algorithm]


def test_what_comes_from_github_is_pinned_to_a_commit():
    mirrors = [m for row in REGISTRY.values() for f in row.files for m in f.mirrors]
    github = [m for m in mirrors if "github" in m or "/gh/" in m]
    assert len(github) == 2 * (9 + 1 + 2)
    assert all(re.search("[/@][0-9a-f]{40}/", mirror) for mirror in github)


def test_published_checksums_are_the_ones_used():
    [archive] = REGISTRY["imdb"].files
    assert archive.checksum == "md5:7c2ac02c03563afcf9b574c7e56c153a"
    [archive] = REGISTRY["enwik8"].files
    assert archive.checksum == "sha1:57b8363b814821dc9d47aa4d41f58733519076b2"
    assert (archive.member, archive.member_size) == ("enwik8", 10**8)


# ---- loaders, on small files of the same form --------------------------------------


@pytest.fixture
def place(cache, monkeypatch):
    """Put files of a data set into the cache, with their checksums in the registry."""

    def put(name, contents, **changes):
        files = []
        for file in REGISTRY[name].files:
            if file.name in contents:
                body = contents[file.name]
                path = cache / name / file.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
                ours = {"size": len(body), "checksum": checksum(body), **changes}
                file = dataclasses.replace(file, **ours)
            # a test that asks for anything else must not reach the network
            files.append(dataclasses.replace(file, mirrors=(refusing_url(),)))
        row = dataclasses.replace(REGISTRY[name], files=tuple(files))
        monkeypatch.setitem(REGISTRY, name, row)

    return put


SENTENCES = {
    "en": ["A dog.", "Two  men.", "Snow\u2028falls."],
    "de": ["Ein Hund.", " Zwei Männer. ", "Es\x85schneit."],
    "fr": ["Un chien.", "Deux hommes.", "Il neige."],
}


def multi30k_files(stem: str, *languages: str) -> dict[str, bytes]:
    return {
        f"{stem}.{language}.gz": gzip.compress(
            "".join(f"{line}\n" for line in SENTENCES[language]).encode()
        )
        for language in languages
    }


def test_sentences_stand_beside_their_translations(place):
    place("multi30k", multi30k_files("train", "en", "de"))
    assert multi30k("train") == [
        ("A dog.", "Ein Hund."),
        ("Two  men.", "Zwei Männer."),
        ("Snow\u2028falls.", "Es\x85schneit."),
    ]


@pytest.mark.parametrize("pair", [("en", "fr"), ("de", "en"), ("fr", "de")])
def test_the_languages_are_those_asked_for(pair, place):
    place("multi30k", multi30k_files("train", *pair))
    wanted = [SENTENCES[language][0] for language in pair]
    assert multi30k("train", *pair)[0] == tuple(wanted)


@pytest.mark.parametrize(
    ("split", "stem"),
    [("train", "train"), ("validation", "val"), ("test", "test_2016_flickr")],
)
def test_a_split_of_multi30k_is_read_from_its_files(split, stem, place):
    place("multi30k", multi30k_files(stem, "en", "de"))
    assert len(multi30k(split)) == 3


def test_nine_tenths_of_the_characters_are_for_training(place):
    text = "".join(random.Random(0).choices("aé\n ", k=1005))
    place("tinyshakespeare", {"input.txt": text.encode()})
    assert tinyshakespeare("train") == text[:904]
    assert tinyshakespeare("validation") == text[904:]


def polarity_files(negative: list[str], positive: list[str]) -> dict[str, bytes]:
    return {
        f"rt-polarity.{end}": "".join(f"{line} \n" for line in lines).encode()
        for end, lines in (("neg", negative), ("pos", positive))
    }


NEGATIVE = [f"dull , part {i} ." for i in range(500)]
POSITIVE = [f"a café scene , take {i} !" for i in range(500)]


def test_sentences_have_the_label_of_their_file(place):
    place("rotten_tomatoes", polarity_files(NEGATIVE, POSITIVE))
    for split in REGISTRY["rotten_tomatoes"].splits:
        for sentence, label in rotten_tomatoes(split):
            assert sentence in (NEGATIVE, POSITIVE)[label]


def test_every_sentence_is_in_one_split(place):
    place("rotten_tomatoes", polarity_files(NEGATIVE, POSITIVE))
    splits = [rotten_tomatoes(s) for s in REGISTRY["rotten_tomatoes"].splits]
    found = [sentence for split in splits for sentence, _ in split]
    assert sorted(found) == sorted(NEGATIVE + POSITIVE)


def test_eight_in_ten_sentences_are_for_training(place):
    place("rotten_tomatoes", polarity_files(NEGATIVE, POSITIVE))
    sizes = [len(rotten_tomatoes(s)) for s in REGISTRY["rotten_tomatoes"].splits]
    assert sizes == pytest.approx([800, 100, 100], abs=30)


def test_the_split_follows_the_words_alone(place):
    plain = [f"take {i} of many" for i in range(100)]
    decorated = [f"Take {i} , of many !" for i in range(100)]
    place("rotten_tomatoes", polarity_files(plain, decorated))
    for split in REGISTRY["rotten_tomatoes"].splits:
        sentences = {sentence for sentence, _ in rotten_tomatoes(split)}
        pairs = zip(plain, decorated, strict=True)
        assert all((a in sentences) == (b in sentences) for a, b in pairs)


def test_the_order_of_the_file_does_not_matter(place):
    place("rotten_tomatoes", polarity_files(NEGATIVE, POSITIVE))
    wanted = rotten_tomatoes("train")
    place("rotten_tomatoes", polarity_files(NEGATIVE[::-1], POSITIVE[::-1]))
    assert rotten_tomatoes("train") == wanted


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_labels_of_a_split_come_mixed(split, place):
    place("rotten_tomatoes", polarity_files(NEGATIVE, POSITIVE))
    labels = [label for _, label in rotten_tomatoes(split)]
    half = len(labels) // 2
    assert sum(labels[:half]) / half == pytest.approx(0.5, abs=0.2)


def test_no_character_within_a_sentence_cuts_it(place):
    sentence = "one\x85two\u2028three"
    place("rotten_tomatoes", polarity_files([sentence], []))
    found = [rotten_tomatoes(s) for s in REGISTRY["rotten_tomatoes"].splits]
    assert [(sentence, 0)] in found


REVIEWS = {
    "aclImdb/train/pos/10_9.txt": "Très bon.<br />\nIndeed.",
    "aclImdb/train/pos/2_7.txt": "good",
    "aclImdb/train/neg/10_2.txt": "poor",
    "aclImdb/train/neg/2_1.txt": "bad",
    "aclImdb/test/neg/0_3.txt": "dull",
    "aclImdb/test/pos/0_10.txt": "bright",
}
NO_REVIEWS = {
    "aclImdb/README": "",
    "aclImdb/train/unsup/0_0.txt": "who knows",
    "aclImdb/train/urls_pos.txt": "address",
    "aclImdb/train/pos/3_8.txt.bak": "backup",
    "../aclImdb/train/pos/4_8.txt": "outside",
    "/aclImdb/train/pos/5_8.txt": "at the root",
}


def tar_gz(contents: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("aclImdb/train/neg/6_1.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
        folder = tarfile.TarInfo("aclImdb/train/neg/7_1.txt")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    return stream.getvalue()


@pytest.fixture
def reviews(place):
    place("imdb", {"aclImdb_v1.tar.gz": tar_gz(REVIEWS | NO_REVIEWS)})


@pytest.mark.usefixtures("reviews")
def test_reviews_have_the_label_of_their_folder():
    assert imdb("test") == [("dull", 0), ("bright", 1)]


@pytest.mark.usefixtures("reviews")
def test_reviews_are_ordered_by_number_and_labels_take_turns():
    assert imdb("train") == [
        ("bad", 0),
        ("good", 1),
        ("poor", 0),
        ("Très bon.<br />\nIndeed.", 1),
    ]


@pytest.mark.usefixtures("reviews")
def test_nothing_of_the_archive_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = files_in(tmp_path)
    imdb("train")
    assert files_in(tmp_path) == before


def test_the_bytes_are_split_at_90_and_95_percent(place):
    content = random.Random(0).randbytes(1000)
    place(
        "enwik8",
        {"enwik8.zip": zipped(content, "enwik8")},
        checksum=checksum(content),
        member_size=1000,
    )
    assert enwik8("train") == content[:900]
    assert enwik8("validation") == content[900:950]
    assert enwik8("test") == content[950:]


# ---- wrong arguments ---------------------------------------------------------------

LOADERS = {
    "multi30k": multi30k,
    "tinyshakespeare": tinyshakespeare,
    "rotten_tomatoes": rotten_tomatoes,
    "imdb": imdb,
    "enwik8": enwik8,
}


@pytest.mark.bad_input
@pytest.mark.parametrize("use", [fetch, banner])
@pytest.mark.parametrize("name", ["wikitext", "", "Multi30k", "../multi30k"])
def test_an_unknown_data_set_is_named(use, name, cache):
    message = rf"^name must be one of \['multi30k', .*'enwik8'\], got {name!r}$"
    with pytest.raises(ValueError, match=message):
        use(name)
    assert not cache.exists()


@pytest.mark.bad_input
def test_an_unknown_file_is_named_before_any_is_fetched(cache):
    message = r"^files of imdb must be among \['aclImdb_v1.tar.gz'\], got 'train'$"
    with pytest.raises(ValueError, match=message):
        fetch("imdb", "aclImdb_v1.tar.gz", "train")
    assert not cache.exists()


@pytest.mark.bad_input
@pytest.mark.parametrize("name", list(LOADERS))
@pytest.mark.parametrize("split", ["dev", "Train", "", None])
def test_an_unknown_split_is_named(name, split, cache):
    message = f"split of {name} must be one of {REGISTRY[name].splits}, got {split!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LOADERS[name](split)
    assert not cache.exists()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "split"), [("tinyshakespeare", "test"), ("imdb", "validation")]
)
def test_a_split_that_a_data_set_lacks_is_refused(name, split):
    with pytest.raises(ValueError, match=f"^split of {name} must be one of"):
        LOADERS[name](split)


@pytest.mark.bad_input
@pytest.mark.parametrize("pair", [("en", "en"), ("en", "cs"), ("", "de"), ("DE", "en")])
def test_two_of_the_three_languages_are_needed(pair, cache):
    message = (
        "source and target must be two of ('en', 'de', 'fr'), "
        f"got {pair[0]!r}, {pair[1]!r}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        multi30k("train", *pair)
    assert not cache.exists()


# ---- the real files, where ANNOTATED_DATA holds them -------------------------------


@pytest.fixture
def real(monkeypatch):
    """Use the real cache, with mirrors that do not answer."""

    def use(name):
        row = REGISTRY[name]
        folder = Path(REAL or "") / name
        if not REAL or not all((folder / file.name).is_file() for file in row.files):
            lacking = (
                f"no real {name}: ANNOTATED_DATA is {REAL!r}, so a test is left out"
            )
            warnings.warn(lacking, stacklevel=2)
            pytest.skip(lacking)
        dead = [dataclasses.replace(f, mirrors=(refusing_url(),)) for f in row.files]
        row = dataclasses.replace(row, files=tuple(dead))
        monkeypatch.setitem(REGISTRY, name, row)
        monkeypatch.setenv("ANNOTATED_DATA", REAL)

    return use


@pytest.mark.parametrize("target", ["de", "fr"])
def test_the_real_multi30k_has_the_published_sizes(target, real):
    real("multi30k")
    sizes = [len(multi30k(split, "en", target)) for split in SPLITS]
    assert sizes == [29_000, 1_014, 1_000]


def test_the_real_multi30k_is_aligned(real):
    real("multi30k")
    assert multi30k("test")[-1] == (
        "A girl at the shore of a beach with a mountain in the distance.",
        "Ein Mädchen an einer Küste mit einem Berg im Hintergrund.",
    )


def test_the_real_tiny_shakespeare_has_the_usual_split(real):
    real("tinyshakespeare")
    train, validation = tinyshakespeare("train"), tinyshakespeare("validation")
    assert (len(train), len(validation)) == (1_003_854, 111_540)
    assert train.startswith("First Citizen:\nBefore we proceed")
    assert len(set(train + validation)) == 65


def test_the_real_rotten_tomatoes_are_all_there_once(real):
    real("rotten_tomatoes")
    splits = [rotten_tomatoes(split) for split in SPLITS]
    assert [len(split) for split in splits] == [8_625, 1_001, 1_036]
    assert [sum(label for _, label in split) for split in splits] == [4_308, 504, 519]
    assert len({sentence for split in splits for sentence, _ in split}) == 2 * 5_331


def test_the_real_imdb_has_the_published_sizes(real):
    real("imdb")
    for split in ("train", "test"):
        reviews = imdb(split)
        assert len(reviews) == 25_000
        assert sum(label for _, label in reviews) == 12_500


def test_the_real_enwik8_has_the_usual_split(real):
    real("enwik8")
    sizes = [len(enwik8(split)) for split in SPLITS]
    assert sizes == [90_000_000, 5_000_000, 5_000_000]
