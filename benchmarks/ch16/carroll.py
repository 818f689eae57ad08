"""Chapter 16: what glassllm's model writes, and its loss on a line, loaded wrongly too.

For readers whose installation lacks the model's file; pages compute it anew elsewhere.
"""

from typing import Any

from annotated.chapters.ch16.drawings_b import careless_losses, story, weights
from annotated.data.glassllm import glass_model


def run() -> dict[str, Any]:
    return {"text": story(glass_model()), "losses": careless_losses(weights())}
