TABLE = r"""
cmudict_text
    hashlib.sha256(content).hexdigest() != CMUDICT["sha256"]
        not content  # another dictionary
    (OSError, EOFError, gzip.zlib.error) -> OSError  # a file cut off
pronunciations
    .partition(" #")[0] ->  # comments are sounds
    re.sub(r"\(\d+\)$", "", spelled) -> spelled  # numbers are of the word
    if not stress: -> if stress:  # stress upside down
    rstrip("012") -> rstrip("12")  # unstressed vowels apart
    words.setdefault(word, {})[tuple(sounds)] = None
        words[word] = {tuple(sounds): None}  # the last one alone
cmudict_facts
    len(lines) - len(words) -> len(answers) - len(words)  # further ones
    len(lines) - len(answers) -> len(answers) - len(words)  # alike
    " #" in line -> "(" in line  # comments
word_split
    re.sub(r"[^a-z]", "", word) -> word  # punctuation decides
    .removesuffix("s") ->  # plurals are other words
    bucket < 18 -> bucket < 12  # fewer to train on
    SPLITS[bucket - 17] -> SPLITS[1]  # no test words
spelling_words
    == split -> != split  # the others
    pronunciations(stress) -> pronunciations()  # stress ignored
    require.choice(SPLITS, split=split) -> pass  # any split
spelling_pairs
    None if every else 1 -> 1  # first ones alone
    None if every else 1 -> None  # every one
    (split, stress) -> (split)  # stress ignored
"""
