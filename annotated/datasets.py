"""Data sets that are downloaded, each only when asked for by name.

The default of the book is data on board (:mod:`annotated.data`), which needs no
network. What is here comes from other people's servers: every file has several
addresses and a checksum, is used only if it is the right one, and nothing else ever
takes its place.

Files live in ``<cache>/<data set>/<file>``. ``ANNOTATED_DATA`` in the environment
names the cache; without it, the system's folder for caches is taken. Loaders:
:func:`multi30k`, :func:`tinyshakespeare`, :func:`rotten_tomatoes`, :func:`imdb`,
:func:`enwik8`.
"""

import gzip
import hashlib
import io
import os
import re
import tarfile
import uuid
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

TIMEOUT = (10, 30)  # seconds: to connect, and between two pieces of an answer


class DataError(OSError):
    """A file of a data set cannot be had; the message says what to do about it."""


# ---- the registry ------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """One file of a data set, and how to know that it is the right one."""

    name: str  #: under which it is kept
    mirrors: tuple[str, ...]  #: addresses, tried in this order
    size: int  #: bytes
    checksum: str  #: ``sha256:…``, ``sha1:…`` or ``md5:…``
    # Some people publish the checksum of what is in their zip file, not of the zip
    # file.
    member: str = ""  #: the member of a zip file that ``checksum`` is of, if any
    member_size: int = 0  #: bytes of that member


@dataclass(frozen=True)
class Dataset:
    """A row of the registry."""

    title: str  #: what it is called
    task: str  #: what it is used for
    splits: tuple[str, ...]  #: names of its parts
    files: tuple[File, ...]  #: what is downloaded
    licence: str  #: under what terms it may be used
    citation: str  #: whom to name


def _github(repository: str, commit: str, path: str) -> tuple[str, str]:
    # A commit, not a branch: a branch may change under our checksums. The second
    # host serves the files of public repositories by commit, too.
    return (
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{commit}/{path}",
    )


def _multi30k_file(name: str, size: int, sha256: str) -> File:
    commit = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    mirrors = _github("multi30k/dataset", commit, f"data/task1/raw/{name}")
    return File(name, mirrors, size, f"sha256:{sha256}")


def _rotten_tomatoes_file(name: str, size: int, sha256: str) -> File:
    repository = "dennybritz/cnn-text-classification-tf"
    commit = "a0d0e9742b3dc42194955e78858f7be93027c75e"
    mirrors = _github(repository, commit, f"data/rt-polaritydata/{name}")
    return File(name, mirrors, size, f"sha256:{sha256}")


# fmt: off
_MULTI30K_FILES = (
    _multi30k_file("train.en.gz", 568_929,
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    _multi30k_file("train.de.gz", 637_044,
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    _multi30k_file("train.fr.gz", 604_242,
        "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
    _multi30k_file("val.en.gz", 21_650,
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    _multi30k_file("val.de.gz", 24_681,
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    _multi30k_file("val.fr.gz", 23_001,
        "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
    _multi30k_file("test_2016_flickr.en.gz", 21_077,
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    _multi30k_file("test_2016_flickr.de.gz", 22_890,
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
    _multi30k_file("test_2016_flickr.fr.gz", 22_310,
        "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
)
_ROTTEN_TOMATOES_FILES = (
    _rotten_tomatoes_file("rt-polarity.neg", 612_506,
        "2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd"),
    _rotten_tomatoes_file("rt-polarity.pos", 626_395,
        "4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58"),
)
# fmt: on

REGISTRY = {
    "multi30k": Dataset(
        title="Multi30k, task 1",
        task="translation: descriptions of pictures in English, German and French",
        splits=("train", "validation", "test"),
        files=_MULTI30K_FILES,
        licence="the terms of Flickr30k: research and education, not commercial",
        citation="Elliott, Frank, Sima'an and Specia (2016), Multi30K: Multilingual "
        "English-German Image Descriptions; Elliott, Frank, Barrault, Bougares and "
        "Specia (2017) for the French",
    ),
    "tinyshakespeare": Dataset(
        title="Tiny Shakespeare",
        task="language modelling by characters",
        splits=("train", "validation"),
        files=(
            File(
                "input.txt",
                (
                    *_github(
                        "karpathy/char-rnn",
                        "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e",
                        "data/tinyshakespeare/input.txt",
                    ),
                    "https://storage.googleapis.com/download.tensorflow.org/data/shakespeare.txt",
                ),
                1_115_394,
                "sha256:"
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),
        ),
        licence="the text is in the public domain; its repository is under MIT",
        citation="Karpathy (2015), char-rnn",
    ),
    "rotten_tomatoes": Dataset(
        title="Rotten Tomatoes, sentence polarity v1.0",
        task="classification: is a sentence of a film review negative or positive",
        splits=("train", "validation", "test"),
        files=_ROTTEN_TOMATOES_FILES,
        licence="none stated at its source; NLTK passes it on under CC BY 4.0",
        citation="Pang and Lee (2005), Seeing Stars: Exploiting Class Relationships "
        "for Sentiment Categorization with Respect to Rating Scales",
    ),
    "imdb": Dataset(
        title="IMDb, Large Movie Review Dataset v1.0",
        task="classification: is a film review negative or positive",
        splits=("train", "test"),
        files=(
            File(
                "aclImdb_v1.tar.gz",
                (
                    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                    "https://bj.bcebos.com/dataset/imdb%2FaclImdb_v1.tar.gz",
                ),
                84_125_825,
                "md5:7c2ac02c03563afcf9b574c7e56c153a",
            ),
        ),
        licence="none stated; its authors ask to be cited",
        citation="Maas, Daly, Pham, Huang, Ng and Potts (2011), Learning Word Vectors "
        "for Sentiment Analysis",
    ),
    "enwik8": Dataset(
        title="enwik8, the first 10^8 bytes of the English Wikipedia",
        task="language modelling by bytes",
        splits=("train", "validation", "test"),
        files=(
            File(
                "enwik8.zip",
                (
                    "https://mattmahoney.net/dc/enwik8.zip",
                    "https://data.deepai.org/enwik8.zip",
                ),
                36_445_475,
                # Published at mattmahoney.net/dc/textdata.html, for the content. No
                # checksum of the zip file is published there, so none is pinned.
                "sha1:57b8363b814821dc9d47aa4d41f58733519076b2",
                member="enwik8",
                member_size=10**8,
            ),
        ),
        licence="GNU Free Documentation License (Wikipedia, March 2006)",
        citation="Mahoney (2006), Large Text Compression Benchmark",
    ),
}


def _row(name: str) -> Dataset:
    if name not in REGISTRY:
        raise ValueError(f"name must be one of {list(REGISTRY)}, got {name!r}")
    return REGISTRY[name]


# ---- fetching ----------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder that downloads are kept in; it need not exist yet.

    Raises:
        ImportError: if ``ANNOTATED_DATA`` is not set and ``pooch`` is not installed.
    """
    wanted = os.environ.get("ANNOTATED_DATA")
    if wanted:
        return Path(wanted).expanduser().absolute()
    return _pooch().os_cache("annotated-transformers")


def fetch(name: str, *files: str, progress: bool = True) -> list[Path]:
    """Return the paths of files of a data set, after downloading what is missing.

    Every file is checked each time, so a path that is returned holds the right bytes.
    A download has a name of its own until it is complete and checked: whatever
    happens, there is either the right file or none, also when several processes
    fetch the same one.

    Args:
        name: a data set of ``REGISTRY``.
        files: names of some of its files; none means all.
        progress: show a bar for each download.

    Returns:
        A path for each file, in the order asked for.

    Raises:
        ValueError: if there is no data set or file of that name.
        DataError: if a file cannot be downloaded from any of its mirrors, cannot be
            written, or is there already and is the wrong one (it is left alone).
        ImportError: if a download is needed and ``pooch`` is not installed.
    """
    rows = {file.name: file for file in _row(name).files}
    for wanted in files:
        if wanted not in rows:
            raise ValueError(
                f"files of {name} must be among {list(rows)}, got {wanted!r}"
            )
    return [_fetch_file(name, rows[wanted], progress) for wanted in files or rows]


def _fetch_file(name: str, file: File, progress: bool) -> Path:
    path = cache_folder() / name / file.name
    try:
        if os.path.lexists(path):
            fault = _fault(path, file)
            if fault:
                raise DataError(
                    f"{name}: {path} is not the file it should be: {fault}. It was "
                    "left as it is. Remove it, and it will be downloaded again."
                )
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        return _download(name, file, path, progress)
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"{name}: cannot read or write {path} ({file.size:,} bytes): {error}. Make "
            "room there or make it accessible, or set ANNOTATED_DATA to another folder."
        ) from error


def _download(name: str, file: File, path: Path, progress: bool) -> Path:
    pooch = _pooch()
    import requests
    from tqdm import tqdm  # not tqdm.auto: its widgets stay in saved notebooks

    failures = []
    for url in file.mirrors:
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        bar = tqdm(
            desc=file.name,
            total=file.size,
            unit="B",
            unit_scale=True,
            ncols=79,
            # no speed: pooch fills the bar anew at the end, in no time
            bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt}, {remaining} left",
            disable=not progress,
        )
        get = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=2**16,
            timeout=TIMEOUT,
            # compressed on the way, the length would be another one
            headers={"Accept-Encoding": "identity"},
        )
        try:
            get(url, str(part), None)
            fault = _fault(part, file)
            if not fault:
                part.replace(path)
                return path
            failures.append(f"{url}: sent a wrong file: {fault}")
        except requests.RequestException as error:
            failures.append(f"{url}: {_reason(error)}")
            bar.leave = False
        finally:
            bar.close()
            part.unlink(missing_ok=True)
        if len(failures) < len(file.mirrors):
            print(f"{name}: {failures[-1]}. Trying the next mirror.")
    tried = "".join(f"\n  {failure}" for failure in failures)
    raise DataError(
        f"{name}: cannot download {file.name} ({file.size:,} bytes, {file.checksum}). "
        f"Tried in turn:{tried}\n"
        "Nothing was kept. Without a network, either download the file elsewhere and "
        f"put it at {path}, or set ANNOTATED_DATA to a folder that holds "
        f"{name}/{file.name}, or use the data on board (annotated.data), which needs "
        "no download."
    )


def _fault(path: Path, file: File) -> str:
    """Return what is wrong with a file, or an empty string."""
    if not file.member:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            return _mismatch(stream, size, file.size, file.checksum)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(file.member) as stream:
            size = archive.getinfo(file.member).file_size
            fault = _mismatch(stream, size, file.member_size, file.checksum)
    # whatever zipfile says of files that are cut off, damaged, or of another kind
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        size = path.stat().st_size
        return f"no whole zip file with {file.member} in it ({size:,} bytes; {error})"
    return fault and f"{file.member} in it: {fault}"


def _mismatch(
    stream: io.BufferedIOBase, size: int, wanted_size: int, checksum: str
) -> str:
    if size != wanted_size:
        return f"{size:,} bytes instead of {wanted_size:,}"
    algorithm, _, wanted = checksum.partition(":")
    # told that it is not for security, because md5 is switched off on some machines
    found = hashlib.file_digest(
        stream, lambda: hashlib.new(algorithm, usedforsecurity=False)
    ).hexdigest()
    return "" if found == wanted else f"{algorithm} {found} instead of {wanted}"


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError):
        return f"HTTP {error.response.status_code} {error.response.reason}"
    # inside a body, a time-out comes as a ConnectionError
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return f"no answer within {TIMEOUT[0]} s (connection) or {TIMEOUT[1]} s (data)"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off before the end of the file"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection ({error})"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return f"{type(error).__name__}: {error}"


def _pooch() -> ModuleType:
    try:
        import pooch
    except ModuleNotFoundError as error:
        raise ImportError(
            "downloads need the package pooch, which is not installed: pip install "
            "pooch; files in the folder ANNOTATED_DATA are read without it"
        ) from error
    return pooch


def banner(name: str | None = None) -> None:
    """Print one line that says which data a page uses.

    The files are checked for it: the line tells what is in the cache at this moment.

    Args:
        name: a data set of ``REGISTRY``; none means the data on board.

    Raises:
        ValueError: if there is no data set of that name.
    """
    if name is None:
        print("Data: on board, nothing is downloaded")
        return
    dataset = _row(name)
    folder = cache_folder() / name
    there = [file for file in dataset.files if (folder / file.name).is_file()]
    wrong = [file.name for file in there if _fault(folder / file.name, file)]
    kinds = {
        file.checksum.partition(":")[0] + " of the content" * bool(file.member)
        for file in there
    }
    checksums = f"checksums ({', '.join(sorted(kinds))})"
    state = f"{len(there)} of {len(dataset.files)} files here, "
    if not there:
        state = "not here yet"
    elif wrong:
        state += f"WRONG {checksums} of {', '.join(wrong)}"
    else:
        state += f"{checksums} match"
    print(
        f"Data: {dataset.title}, a download: {state}. "
        f"Licence: {dataset.licence}. Source: {dataset.citation}"
    )


# ---- loaders -----------------------------------------------------------------


def multi30k(
    split: str, source: str = "en", target: str = "de"
) -> list[tuple[str, str]]:
    """Return pairs of a sentence and its translation.

    Args:
        split: ``"train"`` (29,000 pairs), ``"validation"`` (1,014) or ``"test"``
            (1,000: ``test_2016_flickr``).
        source: language of the first of a pair, ``"en"``, ``"de"`` or ``"fr"``.
        target: language of the second.

    Raises:
        ValueError: if a split or language is none of those, or both languages are one.
        DataError, ImportError: see :func:`fetch`.
    """
    _require_split("multi30k", split)
    languages = ("en", "de", "fr")
    if not {source, target} <= {*languages} or source == target:
        raise ValueError(
            f"source and target must be two of {languages}, got {source!r}, {target!r}"
        )
    stem = {"validation": "val", "test": "test_2016_flickr"}.get(split, split)
    paths = fetch("multi30k", f"{stem}.{source}.gz", f"{stem}.{target}.gz")
    return list(
        zip(*(_lines(gzip.decompress(p.read_bytes())) for p in paths), strict=True)
    )


def tinyshakespeare(split: str) -> str:
    """Return the first nine tenths of the text, or the rest.

    Args:
        split: ``"train"`` (1,003,854 characters) or ``"validation"`` (111,540).

    Raises:
        ValueError: if ``split`` is neither.
        DataError, ImportError: see :func:`fetch`.
    """
    _require_split("tinyshakespeare", split)
    text = fetch("tinyshakespeare")[0].read_bytes().decode()
    end = len(text) * 9 // 10
    return text[:end] if split == "train" else text[end:]


def rotten_tomatoes(split: str) -> list[tuple[str, int]]:
    """Return sentences of film reviews with their labels.

    The data set has no splits of its own. A hash of a sentence's words decides, as
    for the dates on board: 8 in 10 are for training, 1 each for validation and test;
    none is in two splits, not even with other punctuation. The order follows the
    hash too, so the labels come mixed.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``.

    Returns:
        Pairs of a sentence and 0 (negative) or 1 (positive).

    Raises:
        ValueError: if ``split`` is none of those.
        DataError, ImportError: see :func:`fetch`.
    """
    _require_split("rotten_tomatoes", split)
    kept = []
    paths = fetch("rotten_tomatoes", "rt-polarity.neg", "rt-polarity.pos")
    for label, path in enumerate(paths):
        for sentence in _lines(path.read_bytes()):
            words = " ".join(re.findall(r"\w+", sentence.lower()))
            digest = hashlib.sha256(words.encode()).digest()
            tenth = digest[0] % 10
            if split == {8: "validation", 9: "test"}.get(tenth, "train"):
                # not by the first byte, which has decided the split
                kept.append((digest[1:], sentence, label))
    return [(sentence, label) for _, sentence, label in sorted(kept)]


def imdb(split: str) -> list[tuple[str, int]]:
    """Return film reviews with their labels, read inside the archive.

    Nothing is unpacked to the disk. The reviews are as they were written, some with
    ``<br />`` in them. Negative and positive ones take turns.

    Args:
        split: ``"train"`` or ``"test"``, 25,000 reviews each, of different films.

    Returns:
        Pairs of a review and 0 (negative) or 1 (positive).

    Raises:
        ValueError: if ``split`` is neither.
        DataError, ImportError: see :func:`fetch`.
    """
    _require_split("imdb", split)
    wanted = re.compile(rf"aclImdb/{split}/(neg|pos)/(\d+)_\d+\.txt")
    found = []
    with tarfile.open(fetch("imdb")[0]) as archive:
        for member in archive:
            match = wanted.fullmatch(member.name)
            if match and member.isfile():
                review = archive.extractfile(member).read().decode()
                found.append((int(match[2]), int(match[1] == "pos"), review))
    return [(review, label) for _, label, review in sorted(found)]


def enwik8(split: str) -> bytes:
    """Return 90, 5 or 5 million bytes, the split that the papers use.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``, in the order of the file.

    Raises:
        ValueError: if ``split`` is none of those.
        DataError, ImportError: see :func:`fetch`.
    """
    _require_split("enwik8", split)
    [file] = REGISTRY["enwik8"].files
    first, last = {"train": (0, 90), "validation": (90, 95), "test": (95, 100)}[split]
    percent = file.member_size // 100
    with zipfile.ZipFile(fetch("enwik8")[0]) as archive:
        with archive.open(file.member) as stream:
            stream.seek(first * percent)
            return stream.read((last - first) * percent)


def _require_split(name: str, split: str) -> None:
    splits = _row(name).splits
    if split not in splits:
        raise ValueError(f"split of {name} must be one of {splits}, got {split!r}")


def _lines(content: bytes) -> list[str]:
    # not splitlines, which also splits at characters that stand inside sentences
    return [line.strip() for line in io.StringIO(content.decode(), newline="\n")]
