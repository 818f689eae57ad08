"""Faults of annotated/frames.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "require_alt": [
        ("return alt.strip()", "return alt", "spaces around an alt"),
    ],
    "image_html": [
        ('alt="{html.escape(alt)}"', 'alt="{alt}"', "alt not escaped"),
        ("    pyplot.close(figure)\n", "", "figure left open"),
        ("pixels * 96 / dpi", "pixels", "twice as large"),
        ("quantize(colours)", "quantize(256)", "colours ignored"),
    ],
    "static": [
        ('.joinpath("static", name)', '.joinpath("static", "explorer.js")', "file"),
    ],
    "Html._repr_html_": [
        ("return self.text", "return html.escape(self.text)", "escaped twice"),
    ],
    "frame_slider": [
        ("values = list(values)\n    if not values", "if not values", "iterator"),
        ('" hidden" if i else', '" hidden" if not i else', "hidden inverted"),
        ('" hidden" if i else', '" hidden" if i > 1 else', "two frames seen"),
        ('max="{len(values) - 1}"', 'max="{len(values)}"', "one value too many"),
        ("alt(value), dpi)", "alt(values[0]), dpi)", "alt of the first frame"),
        ("alt(value), dpi)", "alt(value))", "dpi ignored, frames"),
        ("image_html(draw(value)",
         "image_html(draw(values[0])", "first picture everywhere"),
        ("{html.escape(json.dumps(names))}",
         "{json.dumps(names)}", "names not escaped"),
        ("FRAMES_SCRIPT.replace('ROOT', root)", "FRAMES_SCRIPT", "no root"),
        ("[label, *names, *frames]", "[*names, *frames]", "ids shared by sliders"),
    ],
    "Slider.html": [
        ("list(self.values).index(start)", "0", "start ignored"),
        ("self.values[0] if self.start is None else",
         "self.values[0] if not self.start else", "start of zero"),
        ('max="{len(self.values) - 1}"',
         'max="{len(self.values)}"', "one value too many, explorer"),
    ],
    "Choice.html": [
        ("<option>{html.escape(o)}</option>",
         "<option>{o}</option>", "option not escaped"),
    ],
    "Text.html": [
        ('maxlength="{self.most}"', 'maxlength="60"', "most ignored"),
        ('value="{html.escape(self.start)}"',
         'value="{self.start}"', "start not escaped"),
        ('<option value="{html.escape(s)}">',
         '<option value="{s}">', "suggestion not escaped"),
    ],
    "Grid.html": [
        ("{0 if i == j == 0 else -1}", "0", "a stop at every cell"),
        ("{0 if i == j == 0 else -1}", "-1", "no stop at any cell"),
        ('data-row="{i}" data-column="{j}"',
         'data-row="{j}" data-column="{i}"', "axes of a grid"),
        ("above * self.columns", "above * self.rows", "names above"),
        ('(beside if j == 0 else "")', '""', "names beside"),
    ],
    "_json": [
        ('replace(\n        "<", "\\\\u003c"\n    )',
         'replace("<", "<")', "script ends"),
        ("ensure_ascii=False", "ensure_ascii=True", "letters"),
    ],
    "explorer": [
        ('"values": values}', '"values": state}', "checks without values"),
        ("label + script + inner +", "label + script +", "ids shared by explorers"),
        ('<section class="annotated-explorer" id="{root}" \'\n'
         '        f\'aria-label="{html.escape(label)}"',
         '<section class="annotated-explorer" id="{root}" \'\n'
         '        f\'aria-label="{label}"', "label not escaped"),
    ],
    "pack": [
        ("largest / 32767", "largest / 32768", "overflow"),
        ("or 1.0", "or 0.0", "division by zero"),
        ('astype("<i2")', 'astype(">i2")', "byte order, packed"),
        ("numpy.round(array / scale)", "numpy.floor(array / scale)", "rounded down"),
        ("list(array.shape)", "[array.size]", "shape"),
    ],
    "unpack": [
        ('b64decode(packed["base64"]), "<i2")',
         'b64decode(packed["base64"]), ">i2")', "byte order, unpacked"),
        ('.reshape(packed["shape"]).float()', '.reshape(packed["shape"])', "dtype"),
        ('* packed["scale"]', "/ 32767", "scale ignored"),
    ],
}
