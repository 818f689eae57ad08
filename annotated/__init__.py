"""Shared code of the book "The Annotated Transformers".

Ideas lie flat, one file a topic; ``recipes`` holds what pages and records train,
``page`` what a page is made of. Nothing is re-exported: ``from annotated.attention
import …``.
"""

__version__ = "0.1.0"
