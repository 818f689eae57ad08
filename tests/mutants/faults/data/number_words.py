TABLE = r"""
english
    rest < 100 -> rest < 10  # no and before tens
    if rest: -> if True:  # one thousand and zero
    most=LARGEST -> most=None  # a thousand thousand
_english
    {words} and {_english(rest)} -> {words} {_english(rest)}  # no and
    if rest < 20: -> if rest < 13:  # ten-three
    if ones else -> if True else  # twenty-zero
french
    ["mille"] if thousands == 1 else ->  # un mille
    rest % 100 == 80 or ->  # quatre-vingt without its s
    rest > 100 and ->  # cents for one hundred
    rest > 100 and rest % 100 == 0 -> rest > 100  # cents in the middle
    if rest or not thousands: -> if rest:  # nothing for zero
    least=0, ->  # no zero
_french
    "cent" if hundreds == 1 else ->  # un cent
    tens in (7, 9) -> tens == 7  # ninety is eighty
    tens in (7, 9) -> tens in (7, 8, 9)  # eighty is ninety
    ones in (1, 11) -> ones == 1  # soixante-onze
    and tens < 8 ->  # quatre-vingt et un
    if not ones: -> if False:  # vingt-zéro
cut_words
    -?[^\s-]+ -> [^\s-]+  # hyphens lost
    -?[^\s-]+ -> \S+  # hyphens not cut
join_words
    .replace(" -", "-") ->  # a space before hyphens
number_split
    if number < 100: -> if False:  # words that training never had
    bucket < 18 -> bucket < 10  # half of them to train
    SPLITS[bucket - 17] -> "test"  # no validation
    hashlib.sha256(str(number).encode()).digest()[:4]
        bytes([hash(str(number)) % 256])  # another split in each process
numbers_of
    10 ** rng.randint(1, 6) -> 10**6  # hardly any short ones
    if number_split(number) == split: -> if True:  # of any split
    random.Random(0) -> random.Random()  # others each time
    require.count(least=1, most=30_000, size=size) -> pass  # too many
"""
