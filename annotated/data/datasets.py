"""Data sets that are downloaded, each only when it is asked for by name.

The default of the book is data on board (``annotated.data``), which needs no
network. What is here comes from other people's servers: every file has several
addresses and a checksum, and nothing else ever takes its place.

Files are kept in ``<cache>/<data set>/<file>``, where the environment variable
``ANNOTATED_DATA`` names the cache; without it, it is the system's folder for caches.
"""

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm  # not tqdm.auto, whose widgets stay in saved notebooks

from annotated import require

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


def _minilm_file(name: str, size: int, sha256: str) -> File:
    path = f"sentence-transformers/all-MiniLM-L6-v2/resolve/main/{name}"
    mirrors = (f"https://huggingface.co/{path}", f"https://hf-mirror.com/{path}")
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
    "film_ratings": Dataset(
        title="Rotten Tomatoes, the ratings collected for VADER",
        task="how far people agree about a sentence of a film review",
        splits=("train", "validation", "test"),
        files=(
            File(
                "hutto_ICWSM_2014.tar.gz",
                _github(
                    "cjhutto/vaderSentiment",
                    "18c86513ea60b02fce8f3b1b598da43042d91b08",
                    "additional_resources/hutto_ICWSM_2014.tar.gz",
                ),
                2_338_514,
                "sha256:"
                "d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa",
            ),
        ),
        licence="MIT",
        citation="Hutto and Gilbert (2014), VADER: A Parsimonious Rule-based Model for "
        "Sentiment Analysis of Social Media Text",
    ),
    "minilm": Dataset(
        title="all-MiniLM-L6-v2, a pretrained encoder of sentences",
        task="vectors of sentences: weights, and what cuts a text into pieces",
        splits=(),
        files=(
            _minilm_file(
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            _minilm_file(
                "tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
        licence="Apache 2.0",
        citation="Reimers and Gurevych (2019), Sentence-BERT; Wang et al. (2020), "
        "MiniLM, whose model it began with",
    ),
    "gpt2": Dataset(
        title="GPT-2, the small one",
        task="text generation: weights; its tokenizer is on board",
        splits=(),
        files=(
            File(
                "model.safetensors",
                tuple(
                    f"https://{host}/openai-community/gpt2/resolve/"
                    "607a30d783dfa663caf39e06633721c8d4cfcd7e/model.safetensors"
                    for host in ("huggingface.co", "hf-mirror.com")
                ),
                548_105_171,
                "sha256:"
                "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
            ),
        ),
        licence="MIT",
        citation="Radford et al. (2019), GPT-2",
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
                "sha256:"
                "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc",
            ),
        ),
        licence="GNU Free Documentation License (Wikipedia, March 2006)",
        citation="Mahoney (2006), Large Text Compression Benchmark",
    ),
}


# ---- fetching ----------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder that downloads are kept in; it need not exist yet."""
    import pooch

    folder = os.environ.get("ANNOTATED_DATA") or pooch.os_cache(
        "annotated-transformers"
    )
    return Path(folder).expanduser().absolute()


def fetch(name: str, *files: str) -> list[Path]:
    """Return the paths of files of a data set, after downloading what is missing.

    Every file is checked each time, so a path that is returned holds the right bytes.
    A download that is cut off or wrong is removed, and the next mirror is tried.

    Args:
        name: a data set of ``REGISTRY``.
        files: names of some of its files; none means all.

    Raises:
        DataError: if a file cannot be downloaded from any of its mirrors.
    """
    require.choice(REGISTRY, name=name)
    rows = {file.name: file for file in REGISTRY[name].files}
    for file in files:
        require.choice(rows, files=file)
    return [_fetch(name, rows[file]) for file in files or rows]


def _fetch(name: str, file: File) -> Path:
    import pooch
    import requests

    def download(url, path, registry):
        with tqdm(desc=file.name, total=file.size, unit="B", unit_scale=True) as bar:
            get = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)
            get(url, path, registry)

    folder, failures = cache_folder() / name, ""
    for url in file.mirrors:
        try:
            settings = {"fname": file.name, "path": folder, "downloader": download}
            return Path(pooch.retrieve(url, file.checksum, **settings))
        except (requests.RequestException, ValueError) as error:  # or a wrong checksum
            failures += f"\n  {url}: {error}"
    raise DataError(
        f"{name}: cannot download {file.name} ({file.size:,} bytes, {file.checksum}). "
        f"Tried in turn:{failures}\n"
        "Without a network, download the file elsewhere and put it at "
        f"{folder / file.name}, or set ANNOTATED_DATA to a folder that holds "
        f"{name}/{file.name}, or use the data on board (annotated.data), which needs "
        "no download."
    )


def banner(name: str | None = None) -> None:
    """Print one line that says which data a page uses.

    Args:
        name: a data set of ``REGISTRY``, whose files are checked; none means the data
            on board.
    """
    if name is None:
        print("Data: on board, nothing is downloaded")
        return
    require.choice(REGISTRY, name=name)
    dataset, folder = REGISTRY[name], cache_folder() / name
    right = sum(_is_right(folder / file.name, file) for file in dataset.files)
    print(
        f"Data: {dataset.title}, a download: {right} of {len(dataset.files)} files are "
        f"here, checksums match. Licence: {dataset.licence}. "
        f"Source: {dataset.citation}"
    )


def _is_right(path: Path, file: File) -> bool:
    import pooch

    algorithm, _, wanted = file.checksum.partition(":")
    return path.is_file() and pooch.file_hash(str(path), algorithm) == wanted


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
        ValueError: if both languages are the same.
    """
    require.choice(REGISTRY["multi30k"].splits, split=split)
    require.choice(("en", "de", "fr"), source=source, target=target)
    if source == target:
        raise ValueError(f"source and target must be two languages, got {source!r}")
    stem = {"validation": "val", "test": "test_2016_flickr"}.get(split, split)
    paths = fetch("multi30k", f"{stem}.{source}.gz", f"{stem}.{target}.gz")
    return list(
        zip(*(_lines(gzip.decompress(p.read_bytes())) for p in paths), strict=True)
    )


def tinyshakespeare(split: str) -> str:
    """Return the first nine tenths of the text, or the rest.

    Args:
        split: ``"train"`` (1,003,854 characters) or ``"validation"`` (111,540).
    """
    require.choice(REGISTRY["tinyshakespeare"].splits, split=split)
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
    """
    require.choice(REGISTRY["rotten_tomatoes"].splits, split=split)
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


def film_ratings(split: str) -> list[tuple[str, int, list[int]]]:
    """Return sentences of :func:`rotten_tomatoes` with what people made of them.

    At least 15 raters gave each sentence a whole number from -4 (very negative) to 4.
    The few sentences that nobody rated are left out.

    Args:
        split: as there.

    Returns:
        Sentence, label, and the ratings, in the order of :func:`rotten_tomatoes`.
    """
    known = {_letters(text): (text, label) for text, label in rotten_tomatoes(split)}

    def last_columns(name: str) -> dict[str, str]:
        member = f"hutto_ICWSM_2014/movieReviewSnippets_{name}.txt"
        rows = [line.split("\t") for line in _lines(archive.extractfile(member).read())]
        return {row[0]: row[-1] for row in rows if row[0]}

    with tarfile.open(fetch("film_ratings")[0]) as archive:
        texts, ratings = last_columns("GroundTruth"), last_columns("anonDataRatings")
    rated = {_letters(text): json.loads(ratings[i]) for i, text in texts.items()}
    return [(*known[key], rated[key]) for key in known if key in rated]


def _letters(sentence: str) -> str:
    # the two editions differ in spaces, hyphens and quotation marks
    return "".join(re.findall(r"[a-z0-9]", sentence.lower()))


def imdb(split: str) -> list[tuple[str, int]]:
    """Return film reviews with their labels, read inside the archive.

    Nothing is unpacked to the disk. The reviews are as they were written, some with
    ``<br />`` in them. Negative and positive ones take turns.

    Args:
        split: ``"train"`` or ``"test"``, 25,000 reviews each, of different films.

    Returns:
        Pairs of a review and 0 (negative) or 1 (positive).
    """
    require.choice(REGISTRY["imdb"].splits, split=split)
    wanted = re.compile(rf"aclImdb/{split}/(neg|pos)/(\d+)_\d+\.txt")
    reviews = []
    with tarfile.open(fetch("imdb")[0]) as archive:
        for member in archive:
            match = wanted.fullmatch(member.name)
            if match and member.isfile():
                review = archive.extractfile(member).read().decode()
                reviews.append((int(match[2]), int(match[1] == "pos"), review))
    return [(review, label) for _, label, review in sorted(reviews)]


def enwik8(split: str) -> bytes:
    """Return 90, 5 or 5 million bytes, the split that the papers use.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``, in the order of the file.
    """
    require.choice(REGISTRY["enwik8"].splits, split=split)
    first, last = {"train": (0, 90), "validation": (90, 95), "test": (95, 100)}[split]
    with zipfile.ZipFile(fetch("enwik8")[0]) as archive:
        content = archive.read("enwik8")
    return content[len(content) * first // 100 : len(content) * last // 100]


def _lines(content: bytes) -> list[str]:
    # not splitlines, which also splits at characters inside sentences
    return [line.strip() for line in io.StringIO(content.decode(), newline="\n")]
