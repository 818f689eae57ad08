TESTS = (
    "refinement",
    "chapters/ch09/drawings",
    "chapters/ch10/drawings",
    "chapters/ch15/drawings",
)
TABLE = r"""
_rounded
    amax(dim=1) -> amax(dim=0)[: len(weight)]  # scales of columns
    / 127 -> / 63  # seven bits
    weight = scales -> weight = weight[:, 0]  # scales lost
pack_model
    "target": cutter.target -> "target": cutter.source  # its own language
    held_out,\n -> "",\n  # no answers
packed_script
    page/static/{name} -> page/{name}  # another folder
answers_text
    sorted(known) -> known  # words in any order
_weights
    then += rows -> then += 0  # the same scales for all
    at += size -> at += 0  # the same numbers for all
    * weights[part][:, None] -> * 1  # without scales
unpack_model
    _weights(packed) -> {}  # no weights
unpack_refiner
    _weights(packed)) -> model.state_dict())  # no weights
pack_films
    bag.output.weight[0] -> bag.output.weight[0].abs()  # all for praise
    words.symbols[2:] -> words.symbols[1:]  # a word more
unpack_films
    weight.fill_(1.0) -> weight.fill_(-1.0)  # the other answer
    bias.copy_(weights.pop -> bias.add_(weights.pop  # a bias of its own
pack_bert
    del weights["output.weight"] -> pass  # the embedding twice
    len(words.special) : -> 1 :  # special ones among the words
    {"norm": model.config.norm} -> {"norm": "pre"}  # another order of norms
unpack_bert
    weights["embedding.weight"] -> weights["embedding.weight"] * 2  # untied
"""
