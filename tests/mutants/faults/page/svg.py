TABLE = r"""
unique
    _given[name] += 1 -> _given[name] = 2  # the third has the second's name
drawings
    or width > PHONE ->  # no drawing for a phone
    min(width, TEXT) -> width  # wider than the column
    0.85 * (_stack(figure) - 1)
        0 * (_stack(figure) - 1)  # panels squeezed on a phone
_lighten
    rotation=0, ->  # the axis is named on its side
    , pad=22 ->  # title on the name of the axis
    _write_out(formatter) -> pass  # exponents too small to read
_write_out
    if label else "" -> if value else ""  # a number at every mark
    1e-4 <= low and ->  # 0.000000001, or 1e-09
_power
    str(int(exponent)) -> exponent  # 10⁻⁰⁹
_stack
    ax.set_subplotspec(place)\n ->  # panels stay side by side
_drawing
    max(text.get_fontsize(), SMALLEST) -> text.get_fontsize()  # small letters
    > MOST_MARKS -> > 10**9  # a mark each
    _part(ax)\n -> ax.get_label()\n  # names on each other
    unique(f"{alt}{width}") -> f"{alt}{width}"  # equal drawings share names
_inner
    m[0] if m[1] in used else "" -> m[0]  # names that two figures share
    _rounded(tag[0]), text -> tag[0], text  # twelve digits
    r"<[^>]+>" -> r".+"  # numbers of an axis rounded
    var(--at-{name}, {colour}) -> {colour}  # colours of one theme
"""
