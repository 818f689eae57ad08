"""Data sets, tokenizers, texts that come with the package."""
