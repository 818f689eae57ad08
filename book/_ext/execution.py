"""Sphinx extension: outputs come from the cache that `tools.execute` fills.

`jupyter-book build` alone works too: what the cache lacks is executed then, serially.
"""

import sys
from pathlib import Path

from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.cache import CacheError, cache_path


def use_shared_cache(app, config):
    try:
        path = cache_path()
    except CacheError as error:
        raise ExtensionError(str(error)) from error
    config.nb_execution_mode = "cache"
    config.nb_execution_cache_path = str(path)


def setup(app):
    app.connect("config-inited", use_shared_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
