TABLE = r"""
split_words
    text.split() -> text.split(" ")  # other spaces
    |[^\w{SPACE}] ->  # signs lost
join_pieces
    .strip() ->  # begins with a space
    .replace(SPACE, " ") ->  # no spaces
merge
    i += 2\n -> i += 1\n  # aaa becomes aa aa
    pieces[i] + pieces[i + 1] -> pieces[i + 1] + pieces[i]  # turned round
learn_merges
    min(tied, key=lambda pair: (age[pair[0]], age[pair[1]]))
        tied[0]  # ties by chance
    (age[pair[0]], age[pair[1]]) -> pair  # ties by alphabet
    del counts[pair] -> pass  # merges of nothing
    sign * times[word] -> sign  # each word once
    count(word, -1) -> pass  # old pairs still counted
    require.count(0, merges=merges) -> pass  # fewer than none
apply_merges
    rank.get(pair, len(rank)) -> -rank.get(pair, -1)  # the last one first
    \n        if best not in rank:\n            break ->  # all joined
recover_merges
    if len(p) > 1 ->  # letters too
    , key=ranks.get) -> )  # by alphabet
"""
