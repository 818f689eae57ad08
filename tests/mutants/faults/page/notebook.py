TABLE = r"""
setup
    \n    torch.manual_seed(seed) ->  # torch not seeded
    \n    numpy.random.seed(seed) ->  # numpy not seeded
    random.seed(seed)\n    use -> use  # random not seeded
    \n    use_style() ->  # no style
    cuda.matmul.allow_tf32 = torch.backends. ->  # products in TF32
    torch.backends.cudnn.allow_tf32 = ->  # recurrent layers in TF32
    wanted or ( -> (  # environment ignored
    ("cuda" if available else "cpu") -> "cpu"  # GPU unused
show_source
    textwrap.dedent(source) -> source  # not dedented
    in things: -> in things[:1]:  # the first thing alone
    if fold:\n -> if False:\n  # never folded
_brief
    sorted(cuts, reverse=True) -> sorted(cuts)  # lines move while they are cut
    if len(kept) < end - first: -> if False:  # docstring never ends
    if len(kept) < end - first: -> if kept:  # docstring ends twice
    list(takewhile(str.strip, lines[first:end])) -> lines[first:end]  # whole docstring
    checks.append(node)\n -> pass\n  # checks shown
    if _requires(d)] -> if False]  # decorators that check shown
    if _requires(d)] -> ]  # other decorators cut
check_shape
    != tuple(axes -> == tuple(axes  # inverted
    tuple(tensor.shape) != tuple(axes.values())
        sorted(tensor.shape) != sorted(axes.values())  # axes in any order
        tensor.shape[: len(axes)] != tuple(axes.values())  # axes left out
check_close
    rtol=0 -> rtol=1  # relative
    atol=tolerance -> atol=1  # tolerance ignored
    t.detach().cpu().double() -> t.detach().cpu().half()  # compared in half precision
    max(\n -> min(\n  # smallest difference printed
check_same
    torch.randn_like(output) -> torch.ones_like(output)  # sums alone compared
    [*parameters, *( -> [*(  # parameters left out
    for m in (ours, reference, *inputs)
        for m in (ours, reference)  # modules among inputs left out
        for m in inputs  # modules that are functions left out
    list(dict.fromkeys(learned)) -> learned  # parameters counted twice
    [output, *gradients] -> [output]  # no gradients
    [output, *gradients] -> gradients  # no output
    x.detach().requires -> x.requires  # inputs changed
    if output.shape != upstream.shape: -> if False:  # shapes that broadcast
    *results, tolerance) -> *results)  # tolerance ignored
expect
    return all( -> return any(  # one bound is enough
    ("≥", at_least) -> (">", at_least)  # at least is above
    ("≤", at_most) -> ("<", at_most)  # at most is below
    (">", above) -> ("≥", above)  # above is at least
    ("<", below) -> ("≤", below)  # below is at most
    all(map(inside, values)) -> any(map(inside, values))  # one is enough
    not any(map(inside, others)) -> True  # any alternative will do
    "" if held else _differs(verdict) -> _differs(verdict)  # always shown
    if not bounds: -> if False:  # no band at all
    any(a >= b for a in low for b in high) -> False  # an empty band
    if not values or -> if  # nothing measured
    math.isnan, others -> math.isnan, []  # an alternative that is no number
    re.fullmatch( -> re.search(  # any name
_band
    else repr(end) -> else text  # a bound loses digits
_numbers
    [*value] -> [*value][:1]  # the first alone
    .flatten() -> [:1]  # the first of a tensor
_plain
    if math.isfinite(number) else str(number) ->  # JSON holds no infinity
_differs
    min(spread), max(spread) -> spread[0], spread[-1]  # first and last
    {len(found)} other -> {len(spread)} other  # counts values
say
    display(Markdown(text)) -> display(text)  # not as Markdown
recorded
    [entry["seed"]] if "seed" in entry else [] -> []  # seeds not said
    {made['command']} -> {name}  # command not said
    made.get("exact", True) -> True  # a record that isn't exact not said
recorded_if_any
    if file.is_file() else None -> if True else None  # there must be a record
cost
    time.process_time() -> time.perf_counter()  # seconds of the clock
    else 2**20 -> else 2**30  # unit
show_table
    rows=list(rows) -> rows=list(rows)[1:]  # the first row is lost
    caption=caption -> caption=""  # caption of a table
show
    plot_html(figure, described(figure) if alt is None else alt)
        str(plot_html(figure, alt))  # image escaped
    title=title -> title=""  # title of a figure
    caption=caption -> caption=""  # caption of a figure
"""
