"""For all tests: one thread, no windows, and shapes and types checked at run time.

jaxtyping's import hook checks every signature of `annotated`, and it raises before our
own errors for wrong arguments can. Tests of those are marked `bad_input`. They run in a
process of their own, with ANNOTATED_NO_HOOK=1, which runs nothing else.
"""

import os
import sys

from beartype import beartype
from jaxtyping import install_import_hook

# before torch is imported, by whichever test comes first
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["MPLBACKEND"] = "Agg"


def check_shapes(function):
    """Check jaxtyping's annotations alone: of other arguments our own errors tell."""
    function.__annotations__ = {
        name: annotation
        for name, annotation in function.__annotations__.items()
        if "jaxtyping" in repr(annotation)
    }
    return beartype(function)


HOOK = os.environ.get("ANNOTATED_NO_HOOK") != "1"
if HOOK:
    if "annotated" in sys.modules:
        raise RuntimeError("`annotated` was imported before its checks were installed")
    # the hook wants an expression, which begins with the name of a module
    install_import_hook("annotated", f"sys.modules[{__name__!r}].check_shapes")


def pytest_collection_modifyitems(config, items):
    def runs_here(item):
        return HOOK == (item.get_closest_marker("bad_input") is None)

    config.hook.pytest_deselected(items=[i for i in items if not runs_here(i)])
    items[:] = [item for item in items if runs_here(item)]
