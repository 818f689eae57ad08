"""Chapter 16: what glassllm's model writes, and its loss on a line, loaded wrongly too.

For readers whose installation lacks the model's file; pages compute it anew elsewhere.
Nothing is trained.
"""

from typing import Any

from annotated.glassllm import glass_model
from annotated.page.ch16b import careless_losses, story, weights


def run() -> dict[str, Any]:
    """Write on, and read."""
    return {"text": story(glass_model()), "losses": careless_losses(weights())}
