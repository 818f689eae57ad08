"""Files of others that come with the package, each with its licence and a checksum.

They lie in ``annotated/vendor``, a folder for each source, with a README that says
where they are from, whose they are and under what licence.
"""

import hashlib
from importlib.resources import files
from pathlib import Path

from annotated.data.datasets import DataError


def vendored_file(name: str, sha256: str) -> Path:
    """Return the path of a file that came with the package, if it is as it came.

    Args:
        name: of the file, with its folder in ``annotated/vendor``.
        sha256: the checksum that it must have.

    Raises:
        DataError: if the file is missing, or its checksum is another.
    """
    path = files("annotated") / "vendor" / name
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        found = f"{type(error).__name__}: {error}"
    if found != sha256:
        raise DataError(
            f"{path} is not the file that came with this package: its sha256 is not "
            f"{sha256}, but {found}. Install the package again."
        )
    return path
