"""Shared code of the book "The Annotated Transformers".

Flat, one file a topic, nothing re-exported: ``from annotated.attention import …``.
"""

__version__ = "0.1.0"
