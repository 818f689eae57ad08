TABLE = r"""
Characters
    \n    SPECIAL = () ->  # with special symbols
    pad = start = end = None -> pad = start = None  # stops at a character
standard_library
    .expandtabs() ->  # tabs
    .replace("\f", "\\n") ->  # form feeds
    "backslashreplace" -> "ignore"  # characters lost
    "utf-8" -> "latin-1"  # another encoding
    in MODULES[split] -> in sorted(MODULES[split])[::-1]  # another order
library_facts
    "".join(texts.values()) -> texts["train"]  # half of the hash
    len(text) for -> len(text.split()) for  # words
random_windows
    rows[:, :-1], rows[:, 1:] -> rows[:, 1:], rows[:, :-1]  # asks the past
    rows[:, :-1], rows[:, 1:] -> rows[:, :-1], rows[:, :-1]  # not shifted
    len(ids) - length, ( -> len(ids) - length - 1, (  # last window never
    manual_seed(seed) -> manual_seed(0)  # seed ignored
    (size, 1) -> (1, 1)  # one window for all
    for _ in range(steps) -> for _ in range(steps + 1)  # a batch too many
all_windows
    ids[1 : whole + 1] -> ids[:whole]  # not shifted
    if whole < len(ids) - 1:\n -> if False:\n  # the rest cut
    (len(ids) - 1) // length -> len(ids) // length  # a target too few
    if whole:\n -> if True:\n  # a batch of no windows
    ids[None, whole:-1] -> ids[None, whole - 1:-2]  # the rest one too early
ngram_bits
    + 1.0 ->  # no price for what never came
    log(2) -> 1  # nats
    dim=1, keepdim=True -> dim=0, keepdim=True  # of the wrong axis
    order - 1, -1, -1 -> order  # characters in the wrong order
    codes(text) -> codes(train)  # on what was counted
    require.ids(size, train=train, text=text) -> pass  # ids
"""
