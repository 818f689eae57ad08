"""Models that others have trained and published, and a text that they are measured on.

They are kept like the data sets of :mod:`annotated.data.datasets`, in
``<folder>/<name>/<file>``, with the same promise: the right bytes or none.
"""

from pathlib import Path

from annotated import require
from annotated.data.datasets import (
    REGISTRY,
    DataError,
    Dataset,
    File,
    _fetch,
    _is_right,
)


def _hub_file(folder: str, name: str, size: int, sha256: str) -> File:
    hosts = "huggingface.co", "hf-mirror.com"
    mirrors = tuple(f"https://{host}/{folder}/{name}" for host in hosts)
    return File(name, mirrors, size, f"sha256:{sha256}")


_BERT = "google-bert/bert-base-uncased/resolve/86b5e0934494bd15c9632b12f734a8a67f723594"
_WIKITEXT = "datasets/ggml-org/ci/resolve/927b3642933080f1b0e811e2f916e14c292992f9"
# fmt: off
PUBLISHED = {
    "gpt2": REGISTRY["gpt2"],
    "bert-base-uncased": Dataset(
        title="BERT base, which reads small letters alone",
        task="guessing hidden words: weights, and the pieces of its words",
        splits=(),
        files=(
            _hub_file(_BERT, "model.safetensors", 440_449_768,
                "68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3"),
            _hub_file(_BERT, "vocab.txt", 231_508,
                "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
        ),
        licence="Apache 2.0",
        citation="Devlin et al. (2019), BERT",
    ),
    "wikitext2": Dataset(
        title="WikiText-2, raw",
        task="language modelling; no rare word is replaced by <unk>",
        splits=("train", "validation", "test"),
        files=(
            _hub_file(_WIKITEXT, "wikitext-2-raw-v1.zip", 4_721_645,
                "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11"),
        ),
        licence="CC BY-SA 3.0 (Wikipedia)",
        citation="Merity et al. (2017), Pointer Sentinel Mixture Models",
    ),
}
# fmt: on


def published_files(name: str, folder: Path | None = None) -> list[Path]:
    """Return the paths of all files that were published under a name.

    Args:
        name: one of ``PUBLISHED``.
        folder: holds them, and is only read; if not given, what the cache lacks is
            downloaded.

    Raises:
        DataError: if a file of ``folder`` is missing or isn't the published one, or if
            one can't be downloaded.
    """
    require.choice(PUBLISHED, name=name)
    files = PUBLISHED[name].files
    if folder is None:
        return [_fetch(name, file) for file in files]
    for file in files:
        path = folder / name / file.name
        if not path.is_file():
            raise DataError(f"{path} is missing: {PUBLISHED[name].title}")
        if not _is_right(path, file):
            raise DataError(
                f"{path} isn't the published file: {file.size:,} bytes, "
                f"{file.checksum}, wanted; it has {path.stat().st_size:,} bytes"
            )
    return [folder / name / file.name for file in files]
