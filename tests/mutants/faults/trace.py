TABLE = r"""
Source
    class Source(NamedTuple) -> class Source  # no tuple
Step
    self.source.line} -> self.source.part}  # the part as a line
    self.value.shape -> self.shapes[0]  # the shape that went in
trace
    with evaluating(model), recorder: -> with recorder:  # in training
    last == len(steps) - 1 -> last >= 0  # an output on the way
    last is not None and -> last is None or  # no output
    raise TypeError( -> print(  # any function is a model
    require.that(inputs, -> print(  # without tokens
    not any(hasattr(part, "_orig_mod") for part in model.modules())
        True  # a compiled model
    _require_tokens(tokens)\n -> pass\n  # any tokens
_require_tokens
    tokens.numel(), -> True,  # empty tokens
    @require.shapes\n ->  # of any shape
_Recorder.__torch_function__
    if given and results: -> if results:  # what has nothing of the tokens
_Recorder.go_on
    value=result.clone(), ->  # half a turn
_Recorder.record
    name in LAYOUT or ->  # views are steps
    or (name in STEPS_IF_CHANGED and _same(result, given[0])) ->  # idle steps
    and _same(result, given[0]) ->  # masks are no steps
    return before -> return None  # read by nobody
_Recorder.unfold
    if is_causal: -> if False:  # later keys are visible
    return False -> attn_mask = None  # biases forgotten
    scale=scale -> scale=1.0  # not scaled
    \n        self.steps[-1] = self.steps[-1]._replace(value=result.clone())
        # not the kernel's own
_Recorder.add
    self.whole = frame if whole else None -> self.whole = None  # in parts
    dict.fromkeys(n for -> sorted(n for  # read in another order
    name += f"_{approximate}" -> pass  # one GELU for two
    letters.append(str( -> str((  # how many share is not said
    self.tables.add(id(args[1])) -> pass  # tied is not said
    if symbol in letters else -> if False else  # never the same letter
    value.clone()\n -> value\n  # values that go on changing
    letters[0]\n -> "Q"\n  # keys are queries
_Recorder.linear
    if bias is None else f" + b
        if bias is not None else f" + b  # a bias where there is none
_Recorder.place
    int(layer) + 1 -> int(layer)  # counted from 0
    [int(index)] -> [0]  # every residual is attention's
    if path in ENDS: -> if False:  # no ends
    if name in functions] -> ]  # all embed alike
_letter
    place.startswith("decoder") -> False  # no memory
_source
    [line - 1 : end] -> [line - 1 : line]  # the first line alone
    cut[-1] = cut[-1][: stop - margin] -> pass  # on to the end of the line
    cut[0][start - margin :] -> cut[0]  # from the beginning of the line
    .encode()[margin:] -> [margin:].encode('latin-1')  # letters for bytes
    if whole or -> if  # a piece of a turn
"""
