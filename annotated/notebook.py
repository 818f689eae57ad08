"""For notebooks that were saved before this moved: use ``annotated.page.notebook``."""

from annotated.page.notebook import *  # noqa: F403
