TABLE = r"""
static
    .joinpath(folder, name) -> .joinpath(folder, "explorer.js")  # file
Html._repr_html_
    return self.text -> return repr(self.text)  # the text as Python has it
_json
    return htmlsafe_json_dumps( -> import json\n    return json.dumps(  # script ends
    ensure_ascii=False -> ensure_ascii=True  # letters
    allow_nan=False -> allow_nan=True  # NaN
_templates
    autoescape=True -> autoescape=False  # nothing is escaped
render
    get_template("html.jinja") -> get_template("explorer.js")  # another file
Slider
    start: Any = None -> start: Any = 9  # start that is no value
Choice
    label: str\n    options: Sequence[str]
        options: str\n    label: str  # options for the label
Switch
    name: str\n    label: str -> label: str\n    name: str  # names swapped
Text
    name: str\n    label: str -> label: str\n    name: str  # names swapped
Text.rows
    count("\\n") + 1 -> count("\\n")  # one line too few
    [3, * -> [*  # one line for short ones
Grid
    name: str\n    label: str -> label: str\n    name: str  # names swapped
alt_problem
    (alt or "").strip() -> alt or ""  # blank text
    text in (source, path.name, path.stem) or ->  # text from the file
    or FILE_NAME.search(text) ->  # name of a file
    len(text.split()) < 3 -> len(text.split()) < 2  # two words
require_alt
    return alt.strip() -> return alt  # spaces around an alt
plot_html
    \n    pyplot.close(figure) ->  # figure left open
    larger=1.35 if once else 1 -> larger=1  # frames stay small
    once=once -> once=False  # frames are drawn twice
name_of
    unique(f"{kind}-{digest[:12]}") -> f"{kind}-{digest[:12]}"  # a second one
    "".join(map(str, contents)) -> str(contents[0])  # ids by the label alone
explorer
    "values": values} -> "values": state}  # checks without values
    script, inner, controls) -> script, controls)  # ids by the data
    script, inner, controls) -> script, inner)  # ids by the controls
pack
    largest / 32767 -> largest / 32768  # overflow
    or 1.0 -> or 0.0  # division by zero
    astype("<i2") -> astype(">i2")  # byte order, packed
    numpy.round(array / scale) -> numpy.floor(array / scale)  # rounded down
    list(array.shape) -> [array.size]  # shape
unpack
    b64decode(packed["base64"]), "<i2")
        b64decode(packed["base64"]), ">i2")  # byte order, unpacked
    .reshape(packed["shape"]).float() -> .reshape(packed["shape"])  # dtype
    * packed["scale"] -> / 32767  # scale ignored
rounded
    weight.copy_(unpack(packed[name])) -> pass  # Python keeps its own numbers
"""
