"""Files of others that come with the package, each with its licence and a checksum.

They lie in ``annotated/vendor``, a folder for each source, with a README that says
where they are from, whose they are and under what licence.

A wheel, which is also what ``pip install git+…`` makes, leaves out the four largest
files (``exclude-package-data`` in ``pyproject.toml``): most who install it need none of
them. A checkout has them. Without one, a file is downloaded when it is asked for, from
the repository at the version that is installed, or at its head while that version has
no tag; the checksum says whether it is the right one.
"""

import hashlib
from importlib.metadata import metadata
from importlib.resources import files
from pathlib import Path

from annotated.data.datasets import DataError, cache_folder


class MissingError(DataError):
    """A file is neither in the installed package nor to be had from the repository."""


def vendored_file(name: str, sha256: str) -> Path:
    """Return the path of a file of others, if it is as it came.

    Args:
        name: of the file, with its folder in ``annotated/vendor``.
        sha256: the checksum that it must have.

    Raises:
        DataError: if its checksum is another; a ``MissingError`` if there is no file
            and none can be downloaded.
    """
    return package_file(f"vendor/{name}", sha256)


def package_file(name: str, sha256: str) -> Path:
    """Return the path of any file of the package, downloaded if a wheel left it out.

    Args:
        name: of the file, with its folder in ``annotated``.
        sha256: the checksum that it must have.

    Raises:
        DataError: as :func:`vendored_file` does.
    """
    path = files("annotated") / name
    if not path.is_file():
        return _download(name, sha256)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise DataError(
            f"{path} is not the file that came with this package: its sha256 is not "
            f"{sha256}, but {found}. Install the package again."
        )
    return path


def _download(name: str, sha256: str) -> Path:
    missing = f"annotated/{name} is not in the installed package"
    try:
        import pooch
        import requests  # which pooch needs
    except ModuleNotFoundError as error:
        raise MissingError(
            f"{missing}, and its download needs pooch: pip install pooch"
        ) from error
    path, failures = cache_folder() / "package" / name, ""
    for url in _addresses(name):
        try:
            settings = {"fname": path.name, "path": path.parent}
            return Path(pooch.retrieve(url, f"sha256:{sha256}", **settings))
        except (requests.RequestException, ValueError) as error:  # or a wrong checksum
            failures += f"\n  {url}: {error}"
    raise MissingError(
        f"{missing}, and it cannot be downloaded. Tried in turn:{failures}\n"
        "A clone of the repository has it: pip install --editable CLONE"
    )


def _addresses(name: str) -> list[str]:
    about = metadata("annotated-transformers")
    urls = dict(line.split(", ") for line in about.get_all("Project-URL"))
    versions = f"v{about['Version']}", "HEAD"
    return [f"{urls['Repository']}/raw/{at}/annotated/{name}" for at in versions]
