"""Faults of page/diagrams.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "Drawing._add": [
        ('name.replace("_", "-")', "name", "attributes that SVG doesn't know"),
    ],
    "Drawing.text": [
        ('"700" if bold else None', '"700"', "all bold"),
        ('"var(--at-mono)" if code else None', "None", "symbols in type of any width"),
        ('" ".join(f"{at:g}" for at in x)', "x[0]", "all at the first letter's place"),
        ('"font_size": size', '"font_size": 13', "size ignored"),
    ],
    "Drawing.arrow": [
        ("self.line(*points[:-1], end, width=width)", "self.line(*points[-2:-1], end)",
         "corners cut"),
        ("x - 7 * u, y - 7 * v", "x + 7 * u, y + 7 * v", "tip backwards"),
        ("4.5 * s * v, end[1] - 4.5", "4.5 * s * v, end[1] + 4.5",
         "tip askew on a slope"),
    ],
    "Drawing.frame": [
        ('"4 4" if dashed else None', '"4 4"', "all dashed"),
        ('"fill_opacity": shade', '"fill_opacity": 1', "one shade for all"),
        ("--at-{color}", "--at-this", "one color for all"),
    ],
    "Drawing.cells": [
        ("left + j * size", "left + i * size", "rows and columns change places"),
        ("11 / 12 * size", "size", "one large area"),
    ],
    "Drawing.box": [
        ("middle - width / 2", "middle", "beside its text"),
        ("return top + height", "return height", "not where it ends"),
        ("bold=bool(notes)", "bold=True", "a name alone bold"),
    ],
    "Drawing.branch": [
        ("PLUS if middle > stream else -PLUS", "PLUS", "through the plus"),
        ("return y", "return top", "not where the plus is"),
        ("points, y = [(middle, y)], y + GAP", "y = y + GAP", "from the stream again"),
    ],
    "Drawing.figure": [
        ("require_alt(alt)", "alt", "says nothing"),
    ],
}
