TABLE = r"""
Vocabulary.__init__
    sorted(set(symbols)) -> dict.fromkeys(symbols)  # ids by first appearance
    sorted(set(symbols)) -> sorted(symbols)  # repeats
Vocabulary.encode
    [self.end] * end -> [self.end]  # always an end
    if unknown: -> if False:  # unknown symbols
Vocabulary.decode
    i >= len(self.SPECIAL) -> i > len(self.SPECIAL)  # first symbol lost
    takewhile(lambda i: i != self.end, map(int, ids))
        map(int, ids)  # reads on after the end
Batch
    target: Tensor  #: ``(b, t)``, begins with the start symbol\n    labels: Tensor
        labels: Tensor\n    target: Tensor  # target and labels swapped
Batch.to
    tensor.to(device) -> tensor  # stays where it is
pad_sequences
    padding_value=pad -> padding_value=0  # pad ignored
    batch_first=True, ->  # length first
    [len(row) for row in rows] -> [tokens.shape[1] for row in rows]  # padding counts
make_batch
    encode(target, end=True) -> encode(target)  # no end after the target
    labels[:, :-1]] -> labels[:, 1:]]  # off by one
    torch.cat([start, labels[:, :-1]], dim=1) -> labels  # the decoder reads its answers
    [target_vocabulary.encode( -> [source_vocabulary.encode(  # one vocabulary
batches
    pairs = list(pairs) -> pass  # pairs reordered in place
    len(pairs), size) -> len(pairs) - size + 1, size)  # last batch lost
    \n        rng.shuffle(starts) ->  # batches not shuffled
    key=lambda p: len(p[0]) -> key=lambda p: 0  # not by length
    random.Random(seed) -> random.Random(0)  # seed ignored
    i + size], source -> i + size + 1], source  # overlap
token_batches
    len(pair[1]) + 1 -> len(pair[1])  # end of the target not counted
    max(len(pair[0]), len(pair[1]) + 1) -> len(pair[0])  # target not counted
    (len(groups[-1]) + 1) * size(pair)
        len(groups[-1]) * size(pair)  # one pair too many
    * size(pair) > tokens -> * size(pair) >= tokens  # a full batch refused
    rng.shuffle(pairs)\n -> pass\n  # equals not shuffled
    for g in groups) -> for g in groups[:-1])  # last batch lost
sequence_task
    randint(1, vocab_size -> randint(1, vocab_size - 1  # last id never drawn
    randint(1, vocab_size -> randint(0, vocab_size  # padding drawn
    length), generator=generator -> length)  # generator ignored
    randint(shortest, length + 1
        randint(shortest, max(length, shortest + 1)  # longest never drawn
    \n    drawn[:, 0] = 1 ->  # no start symbol
    source.clone() -> source  # copy shared
    back = (sizes - positions) -> back = (length - positions)  # padding turned as well
    behind = source.masked_fill(source == 0, vocab_size)
        behind = source  # padding sorted to the front
date_split
    digest()[0] -> digest()[1]  # days move to other splits
    day.isoformat() -> str(day.year)  # years stay together
write_date
    " ".join(format_date(day, style, locale=locale).split())
        format_date(day, style, locale=locale)  # other spaces
    locale=locale -> locale="en_GB"  # locale ignored
date_pairs
    date_split(day) == split -> date_split(day) != split  # of other splits
    (LAST_DAY - FIRST_DAY).days + 1
        (LAST_DAY - FIRST_DAY).days  # last day never drawn
    random.Random(f"{split}-{seed}") -> random.Random(split)  # seed ignored
    write_date(day, locale,
        write_date(day, rng.choice(locales),  # locales mixed in a line
    rng.choice(locales) -> rng.choice(LOCALES)  # locales ignored
"""
