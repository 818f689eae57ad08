"""For all tests: one thread, no windows, and shapes and types checked at run time.

jaxtyping's import hook checks every tensor that a function of `annotated` takes or
returns. What `annotated.require` refuses is refused before that, with its own error.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from beartype import beartype
from jaxtyping import install_import_hook

# before torch is imported, by whichever test comes first
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["MPLBACKEND"] = "Agg"

if "annotated" in sys.modules:
    raise RuntimeError("`annotated` was imported before its checks were installed")


def check_shapes(function):
    """Check jaxtyping's annotations alone: of other arguments our own errors tell."""
    function.__annotations__ = {
        name: annotation
        for name, annotation in function.__annotations__.items()
        if "jaxtyping" in repr(annotation)
    }
    return beartype(function)


# Not of the exercises' checks: they have no annotations of shapes, and what counts an
# answer's calls would count them a thousand times slower.
PACKAGE = Path(importlib.util.find_spec("annotated").origin).parent
PATHS = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
CHECKED = [
    ".".join(("annotated", *path.parts))
    for path in PATHS
    if "checks" not in path.parts and path.name != "__init__"
]
# the hook wants an expression, which begins with the name of a module
install_import_hook(CHECKED, f"sys.modules[{__name__!r}].check_shapes")


@pytest.fixture(autouse=True)
def seeded():
    """Each test draws the same random numbers, whichever tests came before it."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
