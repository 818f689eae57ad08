TABLE = r"""
to_llama
    weight = weight.T\n -> pass\n  # not transposed
    (".W_Q", ".W_K")
        (".W_Q",)  # keys stay as they are
        (".W_Q", ".W_K", ".W_V")  # values too
        (".W_X",)  # neighbours turn as if they were halves
    renamed.get(name, name)] -> renamed.get(name, "")]  # unknown ones are lost
_in_halves
    (-1, width // 2, 2) -> (-1, 2, width // 2)  # the other way
    (-1, width // 2, 2) -> (1, -1, 2)  # across heads
glass_model
    load_llama(to_llama(state, CONFIG), CONFIG) -> GPT(CONFIG).eval()  # random
merges
    (first, second) for -> (second, first) for  # turned round
vocabulary
    *_tokenizer()["alphabet"], *joined
        *joined, *_tokenizer()["alphabet"]  # letters last
    in enumerate(tokens) -> in enumerate(tokens, 1)  # counted from 1
encode
    unicodedata.normalize("NFC", text) -> text  # accents apart
    .replace(" ", SPACE) ->  # spaces unknown
    ids.get(piece, unknown) -> ids[piece]  # unknown refused
    for chunk in chunks for -> for chunk in pieces for  # each chunk once
    CHUNK.findall(marked) -> marked.split(SPACE)  # without their spaces
decode
    dict.fromkeys(SPECIALS, "") -> dict()  # special ones are text
    {"<unk>": UNKNOWN} -> {"<unk>": "<unk>"}  # as its name
    .replace(SPACE, " ") ->  # no spaces
    len(tokens) - 1 -> len(tokens)  # one too many
    ids.tolist() if isinstance(ids, Tensor) else list(ids)
        list(ids)  # what a model wrote is refused
_file
    FILES[name] -> FILES.get(name[:1])  # another checksum
"""
