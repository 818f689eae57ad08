"""Chapter 09, machine translation: its drawings, tables, proofs, and the speller."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from annotated.attention import record_attention
from annotated.batches import Batch, Vocabulary, make_batch
from annotated.data.spelling import Sounds, pronunciations
from annotated.devices import device_of
from annotated.metrics import bleu, edit_distance, error_rates, sacrebleu_score
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Choice, Html, Text, explorer, static
from annotated.page.notebook import check_close, show, show_table
from annotated.page.packed import packed_script, unpack_model
from annotated.page.pictures import Matrix, chain, number
from annotated.page.plots import THIS, attention_heatmap, plot_bars, plot_lines
from annotated.page.records import dots, grouped
from annotated.page.svg import COLOURS
from annotated.recipes.translation import Cutter, Translations, translate
from annotated.search import DecoderCache, Rereader, beam_search, cached_greedy_decode
from annotated.transformer import Transformer

Known = Mapping[str, Sequence[Sounds]]  # each word's pronunciations
WRITE = {"start": Vocabulary.start, "end": Vocabulary.end, "max_new_tokens": 40}
MODEL = "spelling_model.js"  # what `pack_model` made of the recorded one
SHA256 = "37ab6725b7a66b0e7dcab26fa3e8fee1244947630b3788a4703933020db60360"
KINDS = ["phonemes", "words"]  # of errors
SEARCHES = ["greedy", "beam of 4"]
LETTERS = 40  # at most, of a word that is typed
VOWELS = set("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split())


def shifted(written: Tensor) -> Tensor:
    """Return what the decoder reads when it writes ids (b, t)."""
    start = torch.full_like(written[:, :1], Vocabulary.start)
    return torch.cat([start, written[:, :-1]], dim=1)


# ---- spelling and sound --------------------------------------------------------------


#: words in -ough, and with how many sounds that ends
OUGH = {"dough": 1, "through": 1, "plough": 1, "tough": 2, "cough": 2, "hiccough": 2}


def six_sounds() -> Html:
    """Draw six words with one ending in common, and what that sounds like."""
    drawing, said = Drawing(350, 27 * len(OUGH) + 8), []
    for i, (word, last) in enumerate(OUGH.items()):
        y, sounds = 22 + 27 * i, pronunciations()[word][0]
        drawing.frame(110, y - 16, 40, 22, shade=0.25, color="key")
        stem = word.removesuffix("ough")
        drawing.text(106, y, stem, anchor="end", code=True, size=15)
        drawing.text(130, y, "ough", code=True, size=15)
        drawing.arrow((162, y - 5), (192, y - 5))
        first, end = " ".join(sounds[:-last]), " ".join(sounds[-last:])
        drawing.text(208, y, first, anchor="start", code=True, size=15)
        left = 208 + 9.1 * (len(first) + 1)
        drawing.frame(
            left - 5, y - 16, 9.1 * len(end) + 10, 22, shade=0.25, color="value"
        )
        drawing.text(left, y, end, anchor="start", code=True, size=15)
        said.append(f"{word} is {first} {end}")
    return drawing.figure(
        alt=f"Six words that end in ough, and their sounds: {'; '.join(said)}.",
        caption="Six words with the same last four letters, and the first answer of "
        "the CMU Pronouncing Dictionary for each: OW as in go, UW as in too, AW as in "
        "now, AH as in hut, AA as in odd.",
    )


KEY = """
AA odd, AE at, AH hut, AO ought, AW cow, AY hide, EH red, ER hurt, EY ate, IH it,
IY eat, OW oat, OY toy, UH hood, UW two, B be, CH cheese, D deep, DH thee, F fee,
G green, HH he, JH jeep, K key, L leaf, M me, N knee, NG ping, P pea, R reach, S sea,
SH she, T tea, TH thin, V veal, W we, Y yield, Z zoo, ZH seizure
"""


def key_to_sounds() -> Html:
    """Show a word for each of the 39 sounds, behind a line."""
    pairs = [one.split() for one in KEY.split(",")]
    for sound, word in pairs:
        assert any(sound in answer for answer in pronunciations()[word]), word
    said = ", ".join(f"<code>{sound}</code> {word}" for sound, word in pairs)
    title = f"The {len(pairs)} sounds, a word for each"
    return Html(f"<details><summary>{title}</summary><p>{said}.</p></details>")


#: new words and names, as people say them
PEOPLE = {
    "quidditch": "K W IH D IH CH",
    "jabberwock": "JH AE B ER W AA K",
    "brexit": "B R EH K S IH T",
    "chatbot": "CH AE T B AA T",
    "covid": "K OW V IH D",
}


def as_people_say(model: Transformer, cutter: Cutter) -> str:
    """Say how many new words a model pronounces as people do, and the others."""
    said = dict(zip(PEOPLE, translate(model, cutter, PEOPLE), strict=True))
    other = [
        f"*{word}*, which people say `{right}`"
        for word, right in PEOPLE.items()
        if said[word] != right
    ]
    count = f"{len(PEOPLE) - len(other)} of the last {len(PEOPLE)}"
    return f"{count} are as people say them" + (
        f". Not so {' and '.join(other)}." if other else "."
    )


def padding_share(batch: Batch) -> float:
    """Return the share of positions that hold padding, both sides together."""
    empty = (batch.source == 0).sum() + (batch.labels == 0).sum()
    return (empty / (batch.source.numel() + batch.labels.numel())).item()


def counted(task: Translations) -> dict[str, float]:
    """Return losses of guessing without reading, by what is known of sounds before."""
    ends = Vocabulary.SPECIAL[1:]
    texts = [(ends[0], ends[0], *sounds, ends[1]) for _, sounds in task.pairs]
    levels = {}
    for name, n in (("how common each is", 0), ("after the last two", 2)):
        both = Counter(
            text[i - n : i + 1] for text in texts for i in range(2, len(text))
        )
        before: Counter = Counter()
        for run, times in both.items():
            before[run[:-1]] += times
        nats = sum(m * math.log(before[run[:-1]] / m) for run, m in both.items())
        levels[name] = nats / both.total()
    return levels


class Control:
    """Follows a model's loss on words that it doesn't learn from, read and misread.

    Once each word is given with its own letters, and once with those of another word
    of the same length: what a model knows of sounds and lengths alone is the same
    for both. The ``pairs`` are words with their sounds.
    """

    def __init__(
        self, model: Transformer, loss: Callable, cutter: Cutter, pairs: Sequence
    ):
        self.model, self.loss, self.history = model, loss, []
        pairs = sorted(pairs, key=lambda pair: len(pair[0]))  # neighbours are as long
        own = make_batch(pairs, cutter.source, cutter.target).to(device_of(model))
        self.batches = {"own": own, "other": own._replace(source=own.source.roll(1, 0))}

    @torch.no_grad()
    def __call__(self, step: int) -> None:
        """Take both losses after every tenth ``step``, later after fewer."""
        if step % (10 if step <= 150 else 150):
            return
        losses = (
            self.loss(self.model, batch).item() for batch in self.batches.values()
        )
        self.history.append(
            {"step": step, **dict(zip(self.batches, losses, strict=True))}
        )

    def reads_from(self, nats: float = 0.1) -> int:
        """Return the first step at which another word's letters cost ``nats`` more."""
        apart = (
            one["step"] for one in self.history if one["other"] > one["own"] + nats
        )
        return next(apart)


def curve(
    history: Sequence[Mapping[str, float]], control: Control, levels: Mapping
) -> Html:
    """Plot the losses of a training run, its control, and levels to compare with."""
    last, other = len(history), COLOURS["muted"]
    ax = plot_lines(
        {
            f"{whose} letters": {one["step"]: one[whose] for one in control.history}
            for whose in ("own", "other")
        },
        colors={"other letters": other},
        xlabel="training step",
        ylabel="nats per symbol",
        xscale="log",
        xlim=(1, last),
        ylim=(0, 1.1 * max(one["other"] for one in control.history)),
    )
    losses = [one["loss"] for one in history]
    ax.plot(range(1, last + 1), losses, color=THIS, alpha=0.25, linewidth=1)
    for name, level in levels.items():
        ax.axhline(level, color=other, linewidth=1, linestyle=":")
        ax.text(1, level - 0.6, f"{name}: {level:.2f}", color=other)
    return show(
        ax.figure,
        title=f"From step {control.reads_from()} on, it reads",
        caption="Pale: each batch of training. Lines: held-out words, with their own "
        "letters and with those of another word of the same length.",
    )


# ---- how wrong is it? ----------------------------------------------------------------


def distance_table(written: Sounds, wanted: Sounds) -> Html:
    """Show all distances between prefixes of two sequences, and a cheapest path."""
    t, s = len(written), len(wanted)
    table = torch.tensor(
        [
            [edit_distance(written[:i], wanted[:j]) for j in range(s + 1)]
            for i in range(t + 1)
        ]
    )
    costs, (i, j) = torch.zeros(t + 1, s + 1, dtype=torch.bool), (t, s)
    path = torch.zeros_like(costs)
    path[0, 0] = True
    while i or j:
        ways = [(i - 1, j - 1)] * (i > 0 and j > 0)
        ways += [(i - 1, j)] * (i > 0) + [(i, j - 1)] * (j > 0)
        before = min(ways, key=lambda at: table[at])
        if i and j and written[i - 1] == wanted[j - 1]:
            before = i - 1, j - 1
        costs[i, j], path[i, j] = table[i, j] > table[before], True
        i, j = before
    names = ["", *written], ["", *wanted]
    edits = int(table[-1, -1])
    said = f"{' '.join(written)} for {' '.join(wanted)}"
    picture = Matrix(table, said, *names, wrong=costs, framed=path, narrow=True)
    apart = sum(one != other for one, other in zip_longest(written, wanted))
    caption = "Down: written. Across: the dictionary. Each number is the fewest edits "
    caption += "between the row's prefix and the column's. Framed: a cheapest path"
    caption += "; red: its edits. " if edits else ". "
    caption += f"{edits} edit{'s' * (edits != 1)} for {s} sounds: {edits / s:.0%}. "
    caption += f"Compared position by position, {apart} differ."
    return chain(picture, caption=caption)


def models_table(spelling: Mapping[str, Any], larger: Mapping[str, Any]) -> Html:
    """Show the errors of recorded models: ours, PyTorch's, and the larger one."""
    rows = []
    for (name,), runs in grouped(spelling["rows"], "name").items():
        cells = (dots([run[kind] for run in runs], ".1%") for kind in KINDS)
        rows.append((name, f"{runs[0]['parameters']:,}", *cells))
    eight = next(run for run in larger["rows"] if run["bits"] == 8 and run["beam"] == 1)
    cells = (f"{eight[kind]:.1%}" for kind in KINDS)
    rows.append(("larger, eight bits", f"{larger['parameters']:,}", *cells))
    caption = f"{spelling['tested']:,} test words, greedily. Three seeds; one larger."
    return show_table(("model", "parameters", "sounds", "words"), rows, caption)


def number_words(record: Mapping[str, Any]) -> str:
    """Say how many unseen numbers are exact, and how many of a kind left out."""
    runs = [run for run in record["rows"] if run["name"] == "ours"]
    exact, tested = [run["exact"] for run in runs], runs[0]["tested"]
    kinds = grouped(record["left out"], "left out")
    sevens = [run["exact"] for run in kinds["seventy … thousand",]]
    return (
        f"Recorded with {len(runs)} seeds: of {tested:,} unseen numbers, "
        f"{span(exact, '.2%')} are exact. But leave all numbers out of training whose "
        f"thousands contain *seventy*, and {span(sevens, '.0%')} of them are exact, "
        "although it learned *seventy* everywhere else: *seventy-two thousand* became "
        "*soixante-deux mille*, sixty-two. Leave out all six-digit numbers, and it "
        "gets none of them."
    )


def span(shares: Sequence[float], style: str) -> str:
    """Return the least and the most of some shares, in a format's ``style``."""
    least, most = f"{min(shares):{style}}", f"{max(shares):{style}}"
    return f"{least.rstrip('%')} to {most}"


def nearest(written: Sounds, answers: Sequence[Sounds]) -> Sounds:
    """Return the answer that is nearest to what was written."""
    return min(answers, key=lambda answer: edit_distance(written, answer))


def mistakes(written: Sequence[Sounds], known: Known) -> Counter:
    """Count what was written in place of what: pairs of sounds."""
    found: Counter = Counter()
    for output, answers in zip(written, known.values(), strict=True):
        wanted = nearest(output, answers)
        for kind, i, k, j, m in SequenceMatcher(
            a=wanted, b=output, autojunk=False
        ).get_opcodes():
            if kind == "replace" and k - i == m - j == 1:
                found[wanted[i], output[j]] += 1
    return found


def by_length(
    written: Sequence[Sounds], known: Known, edges: Sequence[tuple[int, int]]
) -> list[list[tuple[Sounds, Sequence[Sounds]]]]:
    """Return what was written, with the right answers, by the length of the word."""
    both = list(zip(known.items(), written, strict=True))
    return [
        [(output, answers) for (w, answers), output in both if low <= len(w) <= high]
        for low, high in edges
    ]


def errors_sorted(written: Sequence[Sounds], known: Known) -> Html:
    """Plot how many words are wrong by their length, and the commonest mix-ups.

    Points: how many would be if each sound were wrong at the same rate, on its own.
    """
    rate = error_rates(written, list(known.values()))["symbols"]
    edges = {"1–4": (1, 4), "5–6": (5, 6), "7–8": (7, 8), "9–10": (9, 10)}
    edges["11+"] = 11, LETTERS
    shares, expected = {}, []
    groups = by_length(written, known, [*edges.values()])
    for name, some in zip(edges, groups, strict=True):
        number = max(len(some), 1)
        shares[name] = 100 * sum(one not in right for one, right in some) / number
        sizes = (len(nearest(one, answers)) for one, answers in some)
        chances = (1 - max(0.0, 1 - rate) ** size for size in sizes)
        expected.append(100 * sum(chances) / number)
    figure, (left, right) = plt.subplots(1, 2)
    wrong = {"wrong": (COLOURS["wrong"], 0.7)}
    axes = {"xlabel": "letters", "title": "Words wrong, %"}
    plot_bars({"wrong": shares}, left, colors=wrong, **axes)
    left.plot(range(5), expected, "o", color=COLOURS["muted"], label="at one rate")
    found = mistakes(written, known).most_common(7)
    times = {f"{wanted} → {output}": n for (wanted, output), n in found}
    axes = {"xlabel": "times", "title": "One sound for another"}
    plot_bars({"wrong": times}, right, colors=wrong, upright=False, **axes)
    right.grid(axis="x"), right.grid(visible=False, axis="y")
    return show(
        figure,
        title="Long words have more sounds to get wrong, and vowels are confused",
        caption="Points: if every sound were wrong at the same rate, on its own. "
        "Right: what the dictionary has → what the model wrote.",
    )


def vowel_share(written: Sequence[Sounds], known: Known) -> tuple[float, float]:
    """Return the share of mix-ups between vowels: of all, and if pairs were drawn."""
    found = mistakes(written, known)
    both = sum(n for pair, n in found.items() if VOWELS >= {*pair})
    every = [sound for answers in known.values() for sound in answers[0]]
    vowels = sum(sound in VOWELS for sound in every) / len(every)
    return both / found.total(), vowels**2


def changes(
    before: Sequence[Sounds], after: Sequence[Sounds], known: Known
) -> tuple[int, int, int]:
    """Count changed words: now right, now wrong, and neither of these."""
    moved = Counter(
        (one in answers, other in answers)
        for one, other, answers in zip(before, after, known.values(), strict=True)
        if one != other
    )
    others = moved[False, False] + moved[True, True]
    return moved[False, True], moved[True, False], others


def as_unequal(one: int, other: int) -> float:
    """Return how likely a fair coin falls as unequally as that, or more so."""
    n, less = one + other, min(one, other)
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(less + 1)) / 2**n)


# ---- search and cache ----------------------------------------------------------------


def hypotheses_table(
    found: Mapping[str, Sequence[tuple[float, str]]], word: str, answers: Sequence
) -> Html:
    """Show what searches found for a word: by name, log-probabilities and sounds."""
    rows = [
        ("" if i else name, sounds, number(log), f"{math.exp(log):.1%}")
        for name, several in found.items()
        for i, (log, sounds) in enumerate(several)
    ]
    right = " or ".join(" ".join(answer) for answer in answers)
    caption = f"The word is {word}; the dictionary has {right}."
    return show_table(("search", "sounds", "log p", "p"), rows, caption)


def check_beam(
    beam: Callable[[Tensor, int], list], model: Transformer, sources: Sequence[Tensor]
) -> None:
    """Prove that ``beam(source, k)`` of the page finds what the module does."""
    options = WRITE | {"stop": "first", "alpha": 0.0}
    for k in (1, 4):
        for source in sources:
            ours = beam(source, k)[0]
            theirs = beam_search(model, source, beam=k, **options)[0][0]
            assert ours[1][1:] == theirs.tokens, (ours, theirs)
            assert abs(ours[0] - theirs.log_probability) < 1e-3
    print(f"✓ equals `beam_search` with stop='first', {len(sources)} words, k 1 and 4")


def check_cache(model: Transformer, source: Tensor) -> None:
    """Prove that the cache changes no token, nor any logit by more than rounding."""
    one, other = (
        cached_greedy_decode(model, source, reader=reader, **WRITE)
        for reader in (DecoderCache, Rereader)
    )
    check_close("greedy tokens with the cache and without it", one, other, 0.0)
    with torch.no_grad():
        given = shifted(one)
        past = DecoderCache(model, source)
        steps = [past.read(given[:, i : i + 1]) for i in range(given.shape[1])]
        at_once = model(source, given)
    real = one != 0
    claim = "logits step by step and in one pass"
    check_close(claim, torch.cat(steps, dim=1)[real], at_once[real], 1e-3)


def check_refusals(model: Transformer, source: Tensor) -> None:
    """Prove that a search refuses what makes no sense, and bears a very wide beam."""
    for name, given, beam in (
        ("a beam of 0", source, 0),
        ("a source of padding only", torch.zeros_like(source), 4),
    ):
        try:
            beam_search(model, given, beam=beam, **WRITE)
        except ValueError as error:
            print(f"{name}: {error}")
        else:
            raise AssertionError(f"{name} was not refused")
    wide, wider = (
        beam_search(model, source, beam=k, alpha=0.0, **WRITE)[0][0].tokens
        for k in (40, 3 * model.config.target_vocab)
    )
    assert wide == wider
    print("a beam wider than the vocabulary finds what one of 40 finds")


def cache_picture(steps: int = 5) -> Html:
    """Draw which positions of the target are computed, without a cache and with it."""
    drawing, cell = Drawing(350, 24 * steps + 65), 26
    for panel, name in enumerate(("without a cache", "with a cache")):
        left, count = 30 + 176 * panel, 0
        drawing.text(left, 15, name, anchor="start", bold=True)
        for i in range(steps):
            y = 26 + 24 * i
            if not panel:
                drawing.text(left - 8, y + 15, f"{i + 1}", anchor="end", size=NOTE)
            for j in range(i + 1):
                fresh = panel == 0 or j == i
                count += fresh
                look: dict[str, Any] = {
                    "shade": 0.75 if fresh else 0.0,
                    "color": "this",
                }
                drawing.frame(
                    left + cell * j, y, cell - 3, 20, dashed=not fresh, **look
                )
        words = f"{count} positions computed,"
        source = f"the source's keys {f'{steps} times' if not panel else 'once'}"
        for i, line in enumerate((words, source)):
            y = 26 + 24 * steps + 14 + 17 * i
            drawing.text(left, y, line, anchor="start", size=NOTE)
    return drawing.figure(
        alt=f"Two staircases of {steps} steps. Without a cache each step computes all "
        f"positions so far, {steps * (steps + 1) // 2} in all. With a cache each step "
        f"computes the newest alone, {steps} in all, and reads the others.",
        caption="The positions of the target that the decoder computes at each step. "
        "Filled: computed. Dashed: its keys and values are read from the cache.",
    )


# ---- BLEU ----------------------------------------------------------------------------


def bleu_words(output: str, reference: str, most: int = 4) -> Html:
    """Show BLEU of one sentence, by its n-grams; matches may count once each."""
    ours, theirs = output.split(), reference.split()
    rows, logs, smooth, halves = [], 0.0, 0.0, 1
    for n in range(1, most + 1):
        counts, allowed = (
            Counter(zip(*(words[i:] for i in range(n)), strict=False))
            for words in (ours, theirs)
        )
        both = counts & allowed
        total = counts.total()
        share = both.total() / total if total else 0.0
        logs += math.log(share) / most if share else -math.inf
        halves *= 1 if share else 2  # as sacrebleu's "exp" has it
        smooth += math.log(share or 1 / (halves * max(total, 1))) / most
        missed = [" ".join(gram) for gram in counts - allowed]
        others = " · ".join(missed[:3]) + " · …" * (len(missed) > 3)
        shown = f"{both.total()} of {total}"
        rows.append((n, shown, f"{share:.2f}", others or "–"))
    brevity = math.exp(min(0.0, 1 - len(theirs) / max(len(ours), 1)))
    said = f"“{output}”: {len(ours)} words, reference {len(theirs)}, so brevity is "
    said += f"{brevity:.2f}. BLEU {100 * brevity * math.exp(logs):.1f}"
    if halves > 1:
        said += f"; {100 * brevity * math.exp(smooth):.1f} as sacrebleu smooths it"
    return show_table(("n", "found", "share", "not in the reference"), rows, said)


def three_scores(output: str, reference: str) -> Html | None:
    """Show BLEU of one output by what counts as a word; needs sacrebleu."""
    if not find_spec("sacrebleu"):
        print("sacrebleu isn't installed here: pip install sacrebleu")
        return None
    rows = []
    for cut, words in (
        ("none", "what spaces part: commas and full stops stick to words"),
        ("13a", "the usual: most signs, but isn't, well-known, 7.30 stay whole"),
        ("intl", "signs are words within words, too: isn ' t, well - known"),
        ("char", "every letter is a word"),
    ):
        score, signature = sacrebleu_score([output], [reference], cut)
        rows.append((cut, words, f"{score:.1f}", signature.split("|")[-1]))
    caption = f"Output: {output} Reference: {reference} (sacrebleu "
    caption += f"{rows[0][3].removeprefix('version:')}.)"
    return show_table(("tokenize", "a word is", "BLEU"), [r[:3] for r in rows], caption)


def check_bleu(outputs: Sequence[str], reference: str, by_hand: float) -> None:
    """Prove that BLEU by hand is the module's, and sacrebleu's if it is there."""
    scores = [bleu([one.split()], [[reference.split()]])["score"] for one in outputs]
    check_close(
        "BLEU by hand is `bleu`'s", torch.tensor(by_hand), torch.tensor(scores[0]), 1e-4
    )
    assert scores[0] == max(scores) and scores[2] > scores[1]
    if find_spec("sacrebleu"):
        theirs, _ = sacrebleu_score(outputs[:1], [reference], "none")
        check_close(
            "and sacrebleu's", torch.tensor(theirs), torch.tensor(scores[0]), 1e-4
        )
        for one in outputs:  # what the tables say of smoothing
            theirs, _ = sacrebleu_score([one], [reference], "none")
            assert f" {theirs:.1f}" in bleu_words(one, reference)._repr_html_(), one


def multi30k_table(record: Mapping[str, Any]) -> Html:
    """Show BLEU of recorded models on sentences, a number for each seed."""
    rows = []
    for (name,), runs in grouped(record["rows"], "name").items():
        wide = [run["beam 5"]["bleu"] for run in runs if "beam 5" in run]
        minutes = dots((run["cpu_seconds"] / 60 for run in runs), ".1f")
        greedy = dots((run["bleu"] for run in runs), ".1f")
        rows.append((name, greedy, dots(wide, ".1f") or "–", minutes))
    caption = "English to German, test_2016_flickr, a number for each seed. "
    caption += f"{record['pairs']:,} pairs, {record['symbols']:,} pieces. "
    caption += f"sacrebleu's signature: {record['rows'][0]['signature']}."
    header = "model", "BLEU, greedy", "beam of 5", "CPU minutes"
    return show_table(header, rows, caption)


def sentences_table(record: Mapping[str, Any]) -> Html:
    """Show sentences of the book's own, and what a recorded model wrote."""
    rows = [(row["source"], row["said"]) for row in record["rows"]]
    return show_table(("English", "what it wrote"), rows, "Greedy, seed 0.")


# ---- attention -----------------------------------------------------------------------


@torch.no_grad()
def cross_maps(model: Transformer, cutter: Cutter, word: str) -> tuple[Tensor, list]:
    """Return cross-attention (layers, h, t, s) for a word, and the sounds written."""
    model.eval()
    ids = [cutter.source.encode(cutter.cut(word))]
    source = torch.tensor(ids, device=device_of(model))
    written = cached_greedy_decode(model, source, **WRITE)
    with record_attention(model) as maps:
        model(source, shifted(written))
    every = [maps[n][0][0].cpu() for n in maps if n.endswith("cross_attention")]
    return torch.stack(every), [cutter.target.symbols[i] for i in written[0].tolist()]


def heads_picture(
    maps: Tensor, sounds: Sequence[str], word: str, right: Sounds
) -> plt.Figure:
    """Draw the heads of one layer (h, t, s), a panel each; is what they wrote right?"""
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 0.62 * len(sounds) + 1.4))
    names = [sound.replace("<end>", "end") for sound in sounds]
    for h, (ax, weights) in enumerate(zip(axes.flat, maps, strict=False)):
        title = f"head {h + 1}"
        attention_heatmap(weights, names, word, ax=ax, title=title, bar=False)
    if (written := " ".join(sounds[:-1])) == " ".join(right):
        said = f"{word} is written {written}, as in the dictionary"
    else:
        said = f"{word} is written {written}; the dictionary has {' '.join(right)}"
    figure.suptitle(said)
    return figure


PLAIN = "bdlmnpv"  # letters that sound like themselves wherever they sound


def pointing(model: Transformer, cutter: Cutter, words: Sequence[str]) -> Tensor:
    """Return how often each head points at the letter it should, (layers, h).

    That is, looks at it more than at any other letter. Only sounds count of which the
    letter is beyond doubt, such as an M in a word with one ``m``.
    """
    found = []
    for word in words:
        maps, said = cross_maps(model, cutter, word)
        for letter in PLAIN:
            if word.count(letter) == said.count(letter.upper()) == 1:
                row = maps[:, :, said.index(letter.upper())]
                found.append(row.argmax(dim=-1) == word.index(letter))
    return torch.stack(found).float().mean(dim=0)


def steadily(words: Sequence[str], written: Sequence[Sounds]) -> float:
    """Return how often a look in even steps from left to right would find the letter.

    For the sounds that :func:`pointing` counts; ``written`` has those of the words.
    """
    found = []
    for word, said in zip(words, written, strict=False):
        for letter in PLAIN:
            if word.count(letter) == said.count(letter.upper()) == 1:
                place = said.index(letter.upper()) / max(len(said) - 1, 1)
                found.append(round(place * (len(word) - 1)) == word.index(letter))
    return sum(found) / len(found)


# ---- a word of the reader's ----------------------------------------------------------


def ough_said(model: Transformer, cutter: Cutter) -> str:
    """Say how the recorded model pronounces -ough, and how many a page's ``model``."""
    recorded_one = unpack_model(packed_script(MODEL, SHA256))
    larger, smaller = (
        dict(zip(OUGH, translate(*one, OUGH), strict=True))
        for one in (recorded_one, (model, cutter))
    )
    right, wrong, ours = [], [], 0
    for word in OUGH:
        answers = {" ".join(sounds) for sounds in pronunciations()[word]}
        ours += smaller[word] in answers
        if larger[word] in answers:
            first = larger[word] == " ".join(pronunciations()[word][0])
            other = f" (`{larger[word]}`, also in the dictionary)"
            right.append(f"`{word}`{'' if first else other}")
        else:
            wrong.append(f"`{word}` becomes `{larger[word]}`")
    return (
        f"It gets {len(right)} of 6 right: {', '.join(right)}. But {', '.join(wrong)}. "
        f"Your model of section 9.3 gets {ours} of 6. Both have read five of these "
        "words in training."
    )


def speller() -> Html:
    """Show the recorded model: what a reader types, it pronounces."""
    script = packed_script(MODEL, SHA256)
    model, _ = unpack_model(script)
    config, size = model.config, len(script.encode()) / 1e6
    heads = [
        f"layer {layer + 1}, head {head + 1}"
        for layer in range(config.layers)
        for head in range(config.heads)
    ]
    data = {
        "name": "spelling",
        "file": MODEL,
        "button": f"Load the model ({size:.1f} MB)",
        "before": "The model is loaded when you ask for it, and runs in your browser.",
        "missing": "It could not be loaded: it comes with the pages of the book, not "
        "with its notebooks.",
        "searches": SEARCHES,
        "most": LETTERS,
        "heads": ["all heads", *heads],
    }
    suggestions = "thorrowmere tomato through hiccough live data made mad".split()
    return explorer(
        static("ch09/speller.js"),
        data,
        [
            Text("word", "word", suggestions[0], suggestions, most=LETTERS),
            Choice("search", "search", SEARCHES),
            Choice("look", "weights of", data["heads"]),
        ],
        label="Pronounce a word",
        checks=[({"word": word}, {"loaded": False}) for word in ("", "live")],
        question="Which sounds of your own name will it doubt? Type it, and look at "
        "the percentages. Words that it never trained on, such as tomato, come with "
        "the dictionary's answer.",
        caption="A row for each sound: how sure the model is of it, where its heads "
        "look, and, on a wide screen, the next best sounds.",
    )
