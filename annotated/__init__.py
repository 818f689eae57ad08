"""Shared code of the book "The Annotated Transformers".

Ideas lie flat, one file a topic: ``from annotated.attention import …``. ``data`` holds
data sets and tokenizers, ``recipes`` what several chapters train, ``page`` what all
pages are made of, ``chapters`` what one chapter alone uses.
"""

__version__ = "1.0.0"
