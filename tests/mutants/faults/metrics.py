TABLE = r"""
edit_distance
    before, row = row, [i] -> before, row = row, [0]  # deletions for nothing
    before[j] + 1 -> before[j] + 2  # a deletion is two
    (symbol != wanted) -> 2 * (symbol != wanted)  # a replacement is two
error_rates
    distances.index(min(distances)) -> 0  # the first answer
    len(answers[nearest]) -> len(answers[0])  # length of the first answer
    len(answers[nearest]) -> len(output)  # divided by the output
    distances[nearest] > 0 -> distances[0] > 0  # other answers are wrong
    wrong / len(outputs) -> wrong / length  # words by sounds
    require.that(outputs, "outputs must hold at least one sequence, got none")
        pass  # nothing to rate
ngrams
    - n + 1 -> - n  # the last one lost
bleu
    (counts & allowed) -> (counts)  # all match
    allowed |= -> allowed +=  # references added up
    (abs(n - len(output)), n) -> n  # the shortest reference
    len(output)), n)) -> len(output)), -n))  # the longer of two
    min(0.0, 1 - reference_length / length)
        1 - reference_length / length  # long outputs gain
    reference_length / length) -> length / reference_length)  # upside down
    ) / most) -> ))  # product for mean
    100 * brevity * mean -> 100 * mean  # no penalty
sacrebleu_score
    BLEU(tokenize=tokenize) -> BLEU()  # tokenisation ignored
"""
