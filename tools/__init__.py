"""What builds the book; each module runs as `python -m tools.NAME`."""
