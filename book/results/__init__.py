"""Recorded runs: imported as `annotated.results` (pyproject.toml maps this folder)."""
