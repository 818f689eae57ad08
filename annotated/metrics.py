"""Error rates and BLEU: how far an output is from what a person would accept.

Letters: n length of an n-gram. Sequences hold anything that can be compared: letters,
sounds, words.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from annotated import require

Symbols = Sequence[Hashable]


def edit_distance(one: Symbols, other: Symbols) -> int:
    """Return the fewest insertions, deletions and replacements between two sequences.

    Levenshtein (1966). ``row[j]`` is the distance between what was read of ``one`` and
    the first j symbols of ``other``; the next row needs the last one alone.

    Args:
        one: a sequence of symbols.
        other: another one.
    """
    row = list(range(len(other) + 1))
    for i, symbol in enumerate(one, start=1):
        before, row = row, [i]
        for j, wanted in enumerate(other, start=1):
            replaced = before[j - 1] + (symbol != wanted)
            row.append(min(replaced, before[j] + 1, row[j - 1] + 1))
    return row[-1]


def error_rates(
    outputs: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> dict[str, float]:
    """Return the share of symbols, and of whole outputs, that are wrong.

    Of several references the nearest counts, and of those that are as near the first
    one: its length is what its errors are divided by. With sounds as symbols, these are
    the phoneme and the word error rate.

    Args:
        outputs: sequences of symbols.
        references: for each output all answers that are right, at least one.

    Returns:
        ``"symbols"``: edits in all divided by the symbols of the references, which may
        be above 1; ``"whole"``: the share of outputs that equal no reference.

    Raises:
        ValueError: if there are no outputs, not as many references, one has no answer,
            or all the answers are empty.
    """
    require.that(outputs, "outputs must hold at least one sequence, got none")
    require.that(
        len(outputs) == len(references),
        f"references must be as many as outputs, got {len(references)} and "
        f"{len(outputs)}",
    )
    edits = length = wrong = 0
    for i, (output, answers) in enumerate(zip(outputs, references, strict=True)):
        require.that(
            answers, f"references must hold an answer for output {i}, got none"
        )
        distances = [edit_distance(output, answer) for answer in answers]
        nearest = distances.index(min(distances))
        edits += distances[nearest]
        length += len(answers[nearest])
        wrong += distances[nearest] > 0
    require.that(length, "references must hold at least one symbol, got none")
    return {"symbols": edits / length, "whole": wrong / len(outputs)}


def ngrams(symbols: Symbols, n: int) -> Counter:
    """Return how often each run of ``n`` ``symbols`` stands in a sequence of them."""
    return Counter(tuple(symbols[i : i + n]) for i in range(len(symbols) - n + 1))


def bleu(
    outputs: Sequence[Symbols],
    references: Sequence[Sequence[Symbols]],
    most: int = 4,
) -> dict[str, Any]:
    """Return BLEU and all that it is made of, from 0 to 100.

    Papineni et al. (2002), over a whole corpus: the geometric mean of the shares of
    n-grams that a reference holds, each counted at most as often as in one reference,
    times a penalty for outputs that are shorter in all than their references. Nothing
    is smoothed: if no n-gram of a length matches, BLEU is 0. What is a word has to be
    decided before, and decides much; :func:`sacrebleu_score` decides it as published
    results do.

    Args:
        outputs: sequences of words.
        references: for each output one or several translations.
        most: length of the longest n-grams.

    Returns:
        ``"score"``; ``"matches"`` and ``"totals"`` for n from 1 to ``most``, and their
        quotients ``"precisions"``; the ``"brevity"`` penalty, and the two lengths that
        it comes from, ``"length"`` and ``"reference_length"``.

    Raises:
        ValueError: if there are no outputs, or not as many references.
    """
    require.count(most=most)
    require.that(outputs, "outputs must hold at least one sequence, got none")
    require.that(
        len(outputs) == len(references),
        f"references must be as many as outputs, got {len(references)} and "
        f"{len(outputs)}",
    )
    matches, totals = [0] * most, [0] * most
    length = reference_length = 0
    for output, several in zip(outputs, references, strict=True):
        length += len(output)
        # the reference whose length is nearest; of two, the shorter one
        nearest = min(map(len, several), key=lambda n: (abs(n - len(output)), n))
        reference_length += nearest
        for n in range(1, most + 1):
            counts, allowed = ngrams(output, n), Counter()
            for reference in several:
                allowed |= ngrams(reference, n)  # the larger of both counts
            matches[n - 1] += (counts & allowed).total()  # the smaller of both
            totals[n - 1] += counts.total()
    pairs = list(zip(matches, totals, strict=True))
    precisions = [right / every if every else 0.0 for right, every in pairs]
    brevity = math.exp(min(0.0, 1 - reference_length / length)) if length else 0.0
    mean = 0.0
    if min(precisions) > 0:
        mean = math.exp(sum(map(math.log, precisions)) / most)
    return {
        "score": 100 * brevity * mean,
        "matches": matches,
        "totals": totals,
        "precisions": precisions,
        "brevity": brevity,
        "length": length,
        "reference_length": reference_length,
    }


def sacrebleu_score(
    outputs: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> tuple[float, str]:
    """Return BLEU as sacrebleu computes it, and the signature to print beside it.

    Post (2018). It needs the package sacrebleu, which the extra ``translation`` brings.

    Args:
        outputs: sentences as a reader would read them, not cut into words.
        references: a translation for each.
        tokenize: what cuts them into words: "13a", the usual one, "intl", "char",
            "none" or another one of sacrebleu's.

    Raises:
        ImportError: if sacrebleu is not installed.
        ValueError: if there are not as many references as outputs.
    """
    try:
        from sacrebleu.metrics import BLEU
    except ImportError as error:
        raise ImportError(
            "sacrebleu is not installed. It comes with the extra `translation`: "
            'pip install "annotated-transformers[translation]"'
        ) from error
    require.that(
        len(outputs) == len(references),
        f"references must be as many as outputs, got {len(references)} and "
        f"{len(outputs)}",
    )
    metric = BLEU(tokenize=tokenize)
    score = metric.corpus_score(list(outputs), [list(references)]).score
    return score, str(metric.get_signature())
