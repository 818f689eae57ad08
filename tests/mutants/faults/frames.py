"""Faults of annotated/frames.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "require_alt": [
        ("if len(alt.split()) < 3:", "if False:", "says nothing"),
        (".lower().endswith", ".endswith", "a file's name"),
    ],
    "image_html": [
        ('alt="{html.escape(alt)}"', 'alt="{alt}"', "alt not escaped"),
        ("    pyplot.close(figure)\n", "", "figure left open"),
        ("pixels * 96 / dpi", "pixels", "too large"),
    ],
    "static": [
        ('"static", name', '"static", "explorer.js"', "another file"),
    ],
    "Html._repr_html_": [
        ("return self.text", "return html.escape(self.text)", "escaped twice"),
    ],
    "frame_slider": [
        ("    values = list(values)\n", "", "values from an iterator"),
        ('" hidden" if i else', '" hidden" if not i else', "the first alone hidden"),
        ('max="{len(values) - 1}"', 'max="{len(values)}"', "one value too many"),
        ("alt(value), dpi", "alt(values[0]), dpi", "alt of the first frame"),
        ("html.escape(json.dumps(names))", "json.dumps(names)", "names not escaped"),
        ("[label, *names, *frames]", "[*names, *frames]", "ids shared by sliders"),
    ],
    "Slider.html": [
        ("list(self.values).index(start)", "0", "start ignored"),
        ("if self.start is None", "if not self.start", "start of zero"),
        ('max="{len(self.values) - 1}"', 'max="{len(self.values)}"',
         "one value too many"),
    ],
    "Choice.html": [
        ("html.escape(o)", "o", "option not escaped"),
    ],
    "Text.html": [
        ("html.escape(self.start)", "self.start", "start not escaped"),
        ("html.escape(s)", "s", "suggestion not escaped"),
    ],
    "Grid.html": [
        ("{0 if i == j == 0 else -1}", "0", "a stop at every cell"),
        ("{0 if i == j == 0 else -1}", "-1", "no stop at any cell"),
        ('data-row="{i}" data-column="{j}"', 'data-row="{j}" data-column="{i}"',
         "axes swapped"),
    ],
    "_json": [
        ('"\\\\u003c"', '"<"', "a text ends the script"),
    ],
    "explorer": [
        ('"values": values}', '"values": state}', "checks without values"),
        ("label + script + inner +", "label + script +", "ids shared by explorers"),
    ],
    "pack": [
        ("largest / 32767", "largest / 32768", "overflow"),
        ("or 1.0", "or 0.0", "division by zero"),
        ("numpy.round(array / scale)", "numpy.floor(array / scale)", "rounded down"),
        ("list(array.shape)", "[array.size]", "shape lost"),
    ],
    "unpack": [
        ('"<i2"', '">i2"', "byte order"),
        ('* packed["scale"]', "/ 32767", "scale ignored"),
    ],
}
