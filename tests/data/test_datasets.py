"""data/datasets.py against a server on this machine that misbehaves: the right
file or none, a clear word about why, and splits in which nothing stands twice.

No test uses the network. Those of the real files read them in the folder that
ANNOTATED_DATA names, and warn where there is none.
"""

import dataclasses
import gzip
import hashlib
import io
import os
import random
import re
import socket
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import pytest

from annotated.batches import SPLITS
from annotated.data import datasets
from annotated.data.datasets import (
    REGISTRY,
    DataError,
    Dataset,
    File,
    banner,
    cache_folder,
    enwik8,
    fetch,
    film_ratings,
    imdb,
    multi30k,
    rotten_tomatoes,
    tinyshakespeare,
)
from annotated.data.published import PUBLISHED

REAL = os.environ.get("ANNOTATED_DATA")  # read before any test sets another one
BODY = b"to be, or not to be\n" * 500
PIECE = BODY[: len(BODY) // 3]
OTHER = BODY[:-1] + b"!"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ANNOTATED_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets, "TIMEOUT", (10, 0.3))
    return folder


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


# ---- a server that misbehaves --------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.answers[self.path](self)

    def log_message(self, *args):
        del args  # the tests' output is not the place for it

    def send(self, length: int, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def sends(body):
    return lambda handler: handler.send(len(body), body)


def breaks_off(handler):
    handler.send(len(BODY), PIECE)


def stops_within(handler):
    handler.send(len(BODY), PIECE)
    handler.server.over.wait(10)


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.asked, server.answers = [], {}
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


# ---- fetching ------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "md5"])
def test_a_file_is_downloaded_once(algorithm, toy, server, cache, capsys):
    mirrors = server.url("a", sends(BODY)), server.url("b", sends(BODY))
    toy(*mirrors, checksum=checksum(BODY, algorithm))
    assert fetch("toy") == fetch("toy") == [cache / "toy" / "toy.txt"]
    assert server.asked == ["/a"]
    assert (cache / "toy" / "toy.txt").read_bytes() == BODY
    assert files_in(cache) == [cache / "toy" / "toy.txt"]
    assert re.search(r"toy\.txt: 100%.* 10\.0k/10\.0k", capsys.readouterr().err)


@pytest.fixture
def three_files(toy, server):
    bodies = {"one": b"1", "two": b"22", "three": b"333"}
    files = [
        File(name, (server.url(name, sends(body)),), len(body), checksum(body))
        for name, body in bodies.items()
    ]
    toy(files=files)
    return bodies


def test_the_files_asked_for_are_fetched_in_that_order(three_files, server):
    found = [path.read_bytes() for path in fetch("toy", "three", "one")]
    assert found == [b"333", b"1"]
    assert server.asked == ["/three", "/one"]
    assert [path.read_bytes() for path in fetch("toy")] == [*three_files.values()]


BAD_ANSWERS = {
    "not found": (lambda handler: handler.send_error(404), "404 Client Error"),
    "server error": (lambda handler: handler.send_error(500), "500 Server Error"),
    "breaks off": (breaks_off, "IncompleteRead"),
    "stops within": (stops_within, "timed out"),
    "says nothing": (lambda handler: handler.server.over.wait(10), "timed out"),
    "cut off": (sends(PIECE), "does not match the known hash"),
    "other bytes": (sends(OTHER), "does not match the known hash"),
}


@pytest.mark.parametrize(("answer", "reason"), BAD_ANSWERS.values(), ids=[*BAD_ANSWERS])
def test_nothing_is_kept_of_a_bad_mirror_and_the_next_is_tried(
    answer, reason, toy, server, cache
):
    bad = server.url("bad", answer)
    toy(bad)
    with pytest.raises(DataError) as caught:
        fetch("toy")
    (failure,) = re.findall(rf"\n  {bad}: (.*)\n", str(caught.value))
    assert reason in failure
    assert files_in(cache) == []
    toy(refusing_url(), bad, server.url("good", sends(BODY)))
    assert fetch("toy")[0].read_bytes() == BODY
    assert server.asked == ["/bad", "/bad", "/good"]
    assert files_in(cache) == [cache / "toy" / "toy.txt"]


def test_offline_the_error_says_what_to_do(toy, cache):
    dead = refusing_url(), refusing_url()
    toy(*dead)
    with pytest.raises(OSError, match=r"toy: cannot download toy\.txt") as caught:
        fetch("toy")
    said = str(caught.value)
    assert f"(10,000 bytes, {checksum(BODY)})" in said
    assert all(f"\n  {url}: " in said for url in dead)
    assert f"put it at {cache / 'toy' / 'toy.txt'}" in said
    assert "set ANNOTATED_DATA to a folder that holds toy/toy.txt" in said
    assert "use the data on board (annotated.data)" in said


def put(folder: Path, content: bytes) -> Path:
    path = folder / "toy" / "toy.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def test_a_file_put_there_by_hand_needs_no_network(toy, cache):
    toy(refusing_url())
    path = put(cache, BODY)
    assert fetch("toy") == [path]


@pytest.mark.parametrize("content", [OTHER, PIECE, b""])
def test_a_wrong_file_in_the_cache_is_never_used(content, toy, server, cache):
    toy(refusing_url())
    path = put(cache, content)
    with pytest.raises(DataError):
        fetch("toy")
    toy(server.url("a", sends(BODY)))
    assert fetch("toy") == [path] and path.read_bytes() == BODY


def test_stopping_a_download_leaves_nothing(toy, server, cache, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    toy(server.url("a", sends(BODY)))
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", stopped)
    with pytest.raises(KeyboardInterrupt):
        fetch("toy")
    assert files_in(cache) == []


def test_the_cache_is_the_folder_that_the_environment_names(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for value, wanted in {"~/data": "home/data", "data": "data"}.items():
        monkeypatch.setenv("ANNOTATED_DATA", value)
        assert cache_folder() == tmp_path / wanted
    monkeypatch.setenv("ANNOTATED_DATA", "")
    assert cache_folder() == Path(pooch.os_cache("annotated-transformers"))


# ---- the banner ------------------------------------------------------------------


def test_the_banner_says_which_data_is_in_use(three_files, cache, capsys):
    banner()
    assert capsys.readouterr().out == "Data: on board, nothing is downloaded\n"
    for files, here in (((), 0), (("two",), 1), (tuple(three_files), 3)):
        if files:
            fetch("toy", *files)
        banner("toy")
        assert capsys.readouterr().out == (
            f"Data: Toy, a download: {here} of 3 files are here, checksums match. "
            "Licence: free. Source: Nobody (1900)\n"
        )
    (cache / "toy" / "three").write_bytes(b"33!")
    banner("toy")
    assert "2 of 3 files are here" in capsys.readouterr().out, "a wrong file counted"


# ---- the registry ----------------------------------------------------------------

ROWS = REGISTRY | PUBLISHED
FILES = [file for row in ROWS.values() for file in row.files]
DIGITS = {"md5": 32, "sha1": 40, "sha256": 64}


@pytest.mark.parametrize("row", ROWS.values(), ids=[*ROWS])
def test_a_row_says_what_a_reader_must_know(row):
    assert row.title and row.task and row.licence
    assert re.search(r"\((19|20)\d\d\)", row.citation), "authors and year"
    names = [file.name for file in row.files]
    assert len(set(names)) == len(names) >= 1


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_a_file_has_mirrors_on_several_hosts_and_a_whole_checksum(file):
    addresses = [urlsplit(mirror) for mirror in file.mirrors]
    assert {address.scheme for address in addresses} == {"https"}
    assert len({address.netloc for address in addresses}) == len(addresses) >= 2
    algorithm, digits = file.checksum.split(":")
    assert re.fullmatch("[0-9a-f]*", digits) and len(digits) == DIGITS[algorithm]
    for mirror in file.mirrors:
        if "github" in mirror or "/gh/" in mirror:
            assert re.search("[/@][0-9a-f]{40}/", mirror), "a commit, not a branch"


# ---- loaders, on small files of the same form --------------------------------------


@pytest.fixture
def place(cache, monkeypatch):
    """Put files of a data set into the cache, with their checksums in the registry."""

    def put(name, contents):
        files = []
        for file in REGISTRY[name].files:
            # a test that asks for anything else must not reach the network
            file = dataclasses.replace(file, mirrors=(refusing_url(),))
            if file.name in contents:
                body = contents[file.name]
                path = cache / name / file.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
                file = dataclasses.replace(file, checksum=checksum(body))
            files.append(file)
        row = dataclasses.replace(REGISTRY[name], files=tuple(files))
        monkeypatch.setitem(REGISTRY, name, row)

    return put


def packed(files: dict[str, str], links: Sequence[tarfile.TarInfo] = ()) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        for link in links:
            archive.addfile(link)
    return stream.getvalue()


SENTENCES = {
    "en": ["A dog.", "Two  men.", "Snow\u2028falls."],
    "de": ["Ein Hund.", " Zwei Männer. ", "Es\x85schneit."],
    "fr": ["Un chien.", "Deux hommes.", "Il neige."],
}


@pytest.mark.parametrize("pair", [("en", "de"), ("de", "en"), ("fr", "de")])
@pytest.mark.parametrize(
    ("split", "stem"),
    [("train", "train"), ("validation", "val"), ("test", "test_2016_flickr")],
)
def test_sentences_stand_beside_their_translations(pair, split, stem, place):
    texts = {n: "".join(f"{line}\n" for line in SENTENCES[n]).encode() for n in pair}
    files = {f"{stem}.{n}.gz": gzip.compress(text) for n, text in texts.items()}
    place("multi30k", files)
    wanted = ([line.strip() for line in SENTENCES[language]] for language in pair)
    assert multi30k(split, *pair) == list(zip(*wanted, strict=True))


def test_nine_tenths_of_the_characters_are_for_training(place):
    text = "".join(random.Random(0).choices("aé\n ", k=1005))
    place("tinyshakespeare", {"input.txt": text.encode()})
    assert tinyshakespeare("train") == text[:904]
    assert tinyshakespeare("validation") == text[904:]


NEGATIVE = [f"dull , part {i} .\x85\u2028" for i in range(500)]
POSITIVE = [f"a café scene , take {i} !" for i in range(500)]


def tomatoes(place, negative, positive) -> list[list[tuple[str, int]]]:
    contents = {}
    for end, lines in (("neg", negative), ("pos", positive)):
        text = "".join(f"{line}e \n" for line in lines)
        contents[f"rt-polarity.{end}"] = text.encode()
    place("rotten_tomatoes", contents)
    return [rotten_tomatoes(split) for split in SPLITS]


def test_every_sentence_is_in_one_split_with_the_label_of_its_file(place):
    splits = tomatoes(place, NEGATIVE, POSITIVE)
    wanted = [(f"{s}e", 0) for s in NEGATIVE] + [(f"{s}e", 1) for s in POSITIVE]
    assert sorted(pair for split in splits for pair in split) == sorted(wanted)
    assert [len(split) for split in splits] == pytest.approx([800, 100, 100], abs=30)
    for split in splits:
        half = [label for _, label in split[: len(split) // 2]]
        assert sum(half) / len(half) == pytest.approx(0.5, abs=0.2), "labels come mixed"
    assert tomatoes(place, NEGATIVE[::-1], POSITIVE[::-1]) == splits


def test_the_split_follows_the_words_alone(place):
    plain = [f"take {i} of many, say" for i in range(100)]
    decorated = [f"Take {i} , of many ! Say" for i in range(100)]
    for split in tomatoes(place, plain, decorated):
        found = {"".join(re.findall(r"\w", s.lower())) for s, _ in split}
        assert 2 * len(found) == len(split)


def test_ratings_stand_beside_the_sentence_they_are_of(place):
    for split in tomatoes(place, NEGATIVE[:50], POSITIVE[:50]):
        assert split, "a split without sentences shows nothing"
    # another edition: capitals, no commas, sentences in another order, one unrated
    texts = [
        f"{s}e".replace(" , ", " ").title() for s in POSITIVE[:50] + NEGATIVE[1:50]
    ]
    columns = {
        "GroundTruth": [f"{i}\t0.5\t{text}" for i, text in enumerate(texts)],
        "anonDataRatings": [f"{i}\t0.5\t1\t[{i}, -4]" for i in range(len(texts))],
    }
    files = {
        f"hutto_ICWSM_2014/movieReviewSnippets_{name}.txt": "".join(
            f"{row}\r\n" for row in rows[::-1]
        )
        for name, rows in columns.items()
    }
    place("film_ratings", {"hutto_ICWSM_2014.tar.gz": packed(files)})
    found = [film_ratings(split) for split in SPLITS]
    wanted = {f"{s}e": (1, i) for i, s in enumerate(POSITIVE[:50])}
    wanted |= {f"{s}e": (0, 50 + i) for i, s in enumerate(NEGATIVE[1:50])}
    rows = {
        text: (label, ratings[0]) for some in found for text, label, ratings in some
    }
    assert rows == wanted
    for split, some in zip(SPLITS, found, strict=True):
        unrated = f"{NEGATIVE[0]}e"
        order = [pair for pair in rotten_tomatoes(split) if pair[0] != unrated]
        assert [(text, label) for text, label, _ in some] == order


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
    "aclImdb/train/pos/3_8.txt.bak": "backup",
    "../aclImdb/train/pos/4_8.txt": "outside",
}


def test_reviews_are_read_in_the_order_of_their_numbers(place, tmp_path, monkeypatch):
    links = []
    for i, kind in enumerate((tarfile.SYMTYPE, tarfile.DIRTYPE)):
        info = tarfile.TarInfo(f"aclImdb/train/neg/{6 + i}_1.txt")
        info.type, info.linkname = kind, "/etc/hostname"
        links.append(info)
    place("imdb", {"aclImdb_v1.tar.gz": packed(REVIEWS | NO_REVIEWS, links)})
    monkeypatch.chdir(tmp_path)
    before = files_in(tmp_path)
    last = ("Très bon.<br />\nIndeed.", 1)
    assert imdb("train") == [("bad", 0), ("good", 1), ("poor", 0), last]
    assert imdb("test") == [("dull", 0), ("bright", 1)]
    assert files_in(tmp_path) == before, "nothing is unpacked"


def test_the_bytes_are_split_at_90_and_95_percent(place):
    content, stream = random.Random(0).randbytes(1000), io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("enwik8", content)
    place("enwik8", {"enwik8.zip": stream.getvalue()})
    assert enwik8("train") == content[:900]
    assert enwik8("validation") == content[900:950]
    assert enwik8("test") == content[950:]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fetch("Multi30k"), "name must be one of 'multi30k', .* 'Multi30k'"),
        (lambda: banner("wiki"), "name must be one of 'multi30k', .* got 'wiki'"),
        (lambda: imdb("validation"), "split must be one of 'train', 'test', got 'val"),
        (lambda: film_ratings("all"), "split must be one of 'train', .* got 'all'"),
        (lambda: tinyshakespeare("test"), "split must be one of 'train', 'validation'"),
        (lambda: rotten_tomatoes("dev"), "split must be one of 'train', .* got 'dev'"),
        (lambda: enwik8("valid"), "split must be one of 'train', .* got 'valid'"),
        (lambda: multi30k("train", "en", "en"), "must be two languages, got 'en'"),
    ],
)
def test_an_honest_mistake_is_named_before_anything_is_fetched(make, message, cache):
    with pytest.raises(ValueError, match=message):
        make()
    assert not cache.exists()


# ---- the real files, where ANNOTATED_DATA holds them -------------------------------


@pytest.fixture
def real(monkeypatch):
    """Use the real cache, with mirrors that do not answer."""

    def use(name):
        row = REGISTRY[name]
        folder = Path(REAL or "") / name
        if not REAL or not all((folder / file.name).is_file() for file in row.files):
            lacking = f"no real {name} in ANNOTATED_DATA={REAL!r}: a test is left out"
            warnings.warn(lacking, stacklevel=2)
            pytest.skip(lacking)
        dead = [dataclasses.replace(f, mirrors=(refusing_url(),)) for f in row.files]
        row = dataclasses.replace(row, files=tuple(dead))
        monkeypatch.setitem(REGISTRY, name, row)
        monkeypatch.setenv("ANNOTATED_DATA", REAL)

    return use


@pytest.mark.parametrize(
    ("name", "read", "sizes"),
    [
        ("multi30k", partial(multi30k, target="de"), [29_000, 1_014, 1_000]),
        ("multi30k", partial(multi30k, target="fr"), [29_000, 1_014, 1_000]),
        ("tinyshakespeare", tinyshakespeare, [1_003_854, 111_540]),
        ("rotten_tomatoes", rotten_tomatoes, [8_625, 1_001, 1_036]),
        ("imdb", imdb, [25_000, 25_000]),
        ("enwik8", enwik8, [90_000_000, 5_000_000, 5_000_000]),
    ],
)
def test_the_real_files_have_the_published_sizes(name, read, sizes, real):
    real(name)
    splits = SPLITS[:2] if name == "tinyshakespeare" else SPLITS
    splits = ("train", "test") if name == "imdb" else splits
    assert [len(read(split)) for split in splits] == sizes


def test_the_real_ratings_are_of_nearly_all_sentences(real):
    real("rotten_tomatoes")
    real("film_ratings")
    splits = [film_ratings(split) for split in SPLITS]
    assert [len(split) for split in splits] == [8_553, 991, 1_031]
    ratings = [several for split in splits for _, _, several in split]
    assert min(map(len, ratings)) == 15
    assert {one for several in ratings for one in several} == {*range(-4, 5)}
