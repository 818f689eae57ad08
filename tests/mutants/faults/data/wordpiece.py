TABLE = r"""
bert_words
    text.lower() if lower else text -> text.lower()  # always lower-cased
    if not accents: -> if lower:  # accents go with capitals
    if _alone(c) else c -> if not c.isalnum() else c  # other signs
    if c in "\t\\n\r" or unicodedata.category(c)[0] != "C" ->  # controls are kept
    c in "\t\\n\r" or ->  # lines run together
    "NFD" -> "NFC"  # accents stay
cut_word
    range(len(word), start, -1) -> range(start + 1, len(word) + 1)  # the shortest first
    INSIDE if start else -> "" if start else  # no ##
    return [UNKNOWN]\n        cut
        return [*cut, UNKNOWN]\n        cut  # what was cut is kept
    cut if len(word) <= longest else [UNKNOWN] -> cut  # long words vanish
likelihood_gain
    _nats(total - both) -> _nats(total)  # as many pieces as before
    (0 if same else _nats(second)) -> _nats(second)  # aa counted twice
    (first - 2 * both,) if same else ->  # aa like ab
    + _nats(both) ->  # the new piece left out
letters_of
    (i > 0) -> (i >= 0)  # the first one marked, too
learn_pieces
    (age[pair[0]], age[pair[1]]) -> pair  # ties by alphabet
    min(tied, key=lambda pair: (age[pair[0]], age[pair[1]]))
        next(tied)  # ties by chance
    if n >= min_count ->  # rare pairs, too
    single[piece] += sign * times[word]
        single[piece] += sign  # pieces counted once a word
    counts[pair] += sign * times[word]
        counts[pair] += sign  # pairs counted once a word
    count(word, -1) -> pass  # old pairs still counted
    .removeprefix(INSIDE) ->  # ## inside of a piece
    require.choice(SCORES, score=score) -> pass  # score unchecked
    require.count(0, joins=joins) -> pass  # fewer than none
    require.count(min_count=min_count) -> pass  # min_count unchecked
"""
