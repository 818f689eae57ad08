"""Page 09b, search: its toy, drawings, tables and the tree of beams."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.data import Vocabulary, pad_sequences
from annotated.metrics import error_rates
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import say, show, show_table
from annotated.page.plots import OTHER, THIS, name_lines
from annotated.recipes.translation import Cutter, Recipe, translate
from annotated.search import (
    PENALTIES,
    STOPS,
    DecoderCache,
    Hypothesis,
    beam_search,
    exhaustive_search,
    log_probabilities,
)
from annotated.spelling import spelling_words
from annotated.transformer import Transformer, TransformerConfig

IDS = {"start": Vocabulary.start, "end": Vocabulary.end}
Words = tuple[str, ...]
Continue = Callable[[Tensor], Tensor]  #: ids (k, t) to log-probabilities (k, v)

# ---- a toy: three words that may come first ---------------------------------------

WORDS = ("pad", "start", "end", "at", "suddenly", "all", "once", "first")


def table_of(after: Mapping[str, Mapping[str, float]]) -> Float[Tensor, "v v"]:
    """Return log-probabilities, a row for what was written last."""
    table = torch.zeros(len(WORDS), len(WORDS))
    for word, chances in after.items():
        for other, chance in chances.items():
            table[WORDS.index(word), WORDS.index(other)] = chance
    return table.log()


class TableReader:
    """Reads a target as the module's search wants it read, and looks up a table."""

    vocab_size, pad = len(WORDS), 0

    def __init__(self, table: Float[Tensor, "v v"]):
        self.table = table

    def read(self, tokens: Int[Tensor, "b 1"]) -> Float[Tensor, "b 1 v"]:
        """Return what comes after ``tokens``, which are the last ones."""
        logits = self.table[tokens].clone()
        logits[logits.isneginf().all(dim=-1)] = 0.0  # after the end; not looked at
        return logits

    def keep(self, rows: Int[Tensor, "n"]) -> None:
        """Go on with these ``rows``: a table remembers none."""


def search_table(table: Float[Tensor, "v v"], **options: Any) -> list[Hypothesis]:
    """Return what the module's beam search finds in a table."""
    given = {"max_new_tokens": 4, "alpha": 0.0, "stop": "never"} | IDS | options
    source = torch.ones(1, 1, dtype=torch.long)
    (found,) = beam_search(
        nn.Module(), source, reader=lambda model, source: TableReader(table), **given
    )
    return found


def tree(every: Mapping[Words, float], after: Mapping[str, Mapping]) -> Html:
    """Draw all sentences of the toy as a tree, its likeliest one and the greedy one."""
    greedy: tuple[str, ...] = ()
    while not greedy or greedy[-1] != "end":
        chances = after[greedy[-1] if greedy else "start"]
        greedy += (max(chances, key=chances.get),)
    best, columns, high = max(every, key=every.get), (6, 84, 168, 238), 27
    drawing = Drawing(350, high * len(every) + 30)
    middles: dict[Words, list[float]] = {}
    for i, words in enumerate(every):
        for n in range(len(words) + 1):
            middles.setdefault(words[:n], []).append(34 + high * i)
    place = {words: sum(ys) / len(ys) for words, ys in middles.items()}
    drawing.text(344, 14, "probability", anchor="end")
    for words in place:
        if not words or words[-1] == "end":
            continue
        before, word, y = words[:-1], words[-1], place[words]
        x = columns[len(words) - 1]
        chance = after[before[-1] if before else "start"][word]
        on_path = words in (best[: len(words)], greedy[: len(words)])
        if before:
            left = columns[len(before) - 1] + 8 + 7.2 * len(before[-1])
            drawing.line((left, place[before] - 4), (x - 4, y - 4), width=1)
        drawing.text(x, y, word, anchor="start", bold=on_path)
        drawing.text(x, y + 13, f"{chance:.2f}", anchor="start", size=12)
    for words, chance in every.items():
        y, last = place[words], words[:-1]
        begin = columns[len(last) - 1] + 8 + 7.2 * len(last[-1])
        drawing.line((begin, place[last] - 4), (243, y - 4), width=0.6)
        mark = " ← greedy" if words == greedy else " ← best" if words == best else ""
        drawing.text(
            344, y, f"{chance:.3f}{mark}", anchor="end", bold=words in (best, greedy)
        )
    said = "; ".join(f"{' '.join(w[:-1])} {p:.3f}" for w, p in every.items())
    return drawing.figure(
        alt=f"A tree of {len(every)} sentences and their probabilities: {said}. Greedy "
        f"decoding writes {' '.join(greedy[:-1])}.",
        caption="Below each word its probability after the one before it; on the right "
        "that of the whole.",
    )


def found_in_toy(by_hand: Callable, table: Float[Tensor, "v v"]) -> None:
    """Say what a notebook's search finds in the toy, by its width."""
    rows = []
    for width in (1, 2):
        log, ids = by_hand(lambda ids: table[ids[:, -1]], width, 4)[0]
        rows.append(f"a width of {width} finds *{said(ids)}* ({math.exp(log):.3f})")
    say(f"In the toy, {' and '.join(rows)}.")


def said(ids: Iterable[int]) -> str:
    """Return the words of the toy without the end."""
    return " ".join(WORDS[i] for i in ids if i != IDS["end"])


def check_toy(
    every: Mapping[Words, float], by_hand: Callable, table: Float[Tensor, "v v"]
) -> None:
    """Check that sentences are all there are, and searches find the best of them."""
    assert abs(sum(every.values()) - 1) < 1e-6
    best = max(every, key=every.get)
    for width in (2, 3, 7):
        log, ids = by_hand(lambda ids: table[ids[:, -1]], width, 4)[0]
        assert tuple(WORDS[i] for i in ids) == best
        (theirs,) = search_table(table, beam=width)
        assert theirs.tokens == ids and abs(theirs.log_probability - log) < 1e-5
    print(f"✓ the probabilities of all {len(every)} sentences add up to 1")
    print("✓ widths of 2, 3 and 7 find the best of all, by hand and in the module")


def check_search(by_hand: Callable) -> None:
    """Prove a notebook's search and the module's on 20 random Transformers."""
    given = IDS | {"max_new_tokens": 4}
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 12, "dropout": 0.0}
    missed = 0
    for seed in range(20):
        torch.manual_seed(seed)
        model = Transformer(TransformerConfig(6, 5, **sizes, norm="pre"))
        model.double().eval()
        model.output.weight.data *= 3.0
        model.target_embedding.weight.data *= 3.0
        source = torch.randint(1, 6, (1, 4))
        every = exhaustive_search(model, source, **given)
        after = continues(model, source)
        for width in (1, 2, 5, 108):  # 108 = 4 · 3³: all there is room for
            ours = [(ids, round(log, 9)) for log, ids in by_hand(after, width, 4)]
            (theirs,) = beam_search(
                model, source, beam=width, n_best=width, alpha=0, stop="never", **given
            )
            theirs = [(one.tokens, round(one.log_probability, 9)) for one in theirs]
            assert ours[:width] == theirs, (seed, width)
            missed += width == 1 and theirs[0][0] != every[0].tokens
        assert theirs[0][0] == every[0].tokens and len(theirs) == 108
    print("✓ by hand = the module: same sequences in 80 searches, to 1e-9")
    print("✓ as wide as all sequences = exhaustive search, on 20 random models")
    print(f"measured: greedy decoding misses the best on {missed} of these 20")


def continues(model: Transformer, source: Int[Tensor, "1 s"]) -> Continue:
    """Return a function from ids (k, t) to the log-probabilities of what follows."""

    @torch.no_grad()
    def after(ids: Int[Tensor, "k t"]) -> Float[Tensor, "k v"]:
        logits = model(source.expand(len(ids), -1), ids)[:, -1]
        logs = logits.log_softmax(dim=-1)
        logs[:, model.config.pad] = -torch.inf
        return logs

    return after


# ---- a trained model -------------------------------------------------------------

#: smaller than the chapter's: a quarter of a minute
SMALL = Recipe(
    "spelling",
    {"d_model": 64, "heads": 4, "layers": 1, "d_ff": 128, "dropout": 0.0}
    | {"norm": "pre", "max_len": 64},
    tokens=1200,
    steps=600,
    rate=8e-3,
)


class Task:
    """A trained speller, words it has never seen, and their pronunciations.

    Args:
        model: the speller.
        cutter: what cuts words and joins sounds.
        count: number of words, drawn with a fixed seed.
    """

    def __init__(self, model: Transformer, cutter: Cutter, count: int):
        self.model, self.cutter = model.eval(), cutter
        known, encode = spelling_words("test"), cutter.source.encode
        plain = sorted(filter(str.isalpha, known))
        self.words = random.Random(0).sample(plain, count)
        self.answers = [known[word] for word in self.words]
        self.source, _ = pad_sequences([encode(word) for word in self.words])

    def search(
        self, rows: Any = slice(None), most: int = 30, **options: Any
    ) -> list[Hypothesis]:
        """Return the best hypothesis of each of these words."""
        given = {"alpha": 0.0, "max_new_tokens": most} | IDS | options
        found = beam_search(self.model, self.source[rows], **given)
        return [several[0] for several in found]

    def sounds(self, tokens: Iterable[int]) -> Words:
        """Return sounds by their ids, without the end."""
        return tuple(self.cutter.target.decode(tokens))

    def right(self, found: Sequence[Hypothesis]) -> list[bool]:
        """Return of each word whether the dictionary has what was found."""
        pairs = zip(found, self.answers, strict=True)
        return [self.sounds(one.tokens) in answers for one, answers in pairs]

    def rates(self, found: Sequence[Hypothesis]) -> tuple[str, str]:
        """Return the phoneme and the word error rate, in percent."""
        rates = error_rates([self.sounds(one.tokens) for one in found], self.answers)
        return f"{rates['symbols']:.1%}", f"{rates['whole']:.1%}"

    def failed(self, found: Sequence[Hypothesis]) -> float:
        """Return the share of wrong answers for which search is to blame."""
        wrong = [i for i, right in enumerate(self.right(found)) if not right]
        return self.search_errors(found, wrong) / len(wrong)

    def search_errors(self, found: Sequence[Hypothesis], wrong: Iterable[int]) -> int:
        """Return how often a right answer is likelier than what was found."""
        reference = self.references().tolist()
        return sum(reference[i] > found[i].log_probability + 1e-4 for i in wrong)

    def references(self) -> Float[Tensor, "b"]:
        """Return the log-probability of the likeliest right answer of each word."""
        rows = [i for i, several in enumerate(self.answers) for _ in several]
        ids = [
            self.cutter.target.encode(one, end=True)
            for several in self.answers
            for one in several
        ]
        logs = log_probabilities(
            self.model, self.source[rows], pad_sequences(ids)[0], start=IDS["start"]
        )
        best = torch.full((len(self.words),), -torch.inf)
        return best.scatter_reduce(0, torch.tensor(rows), logs, "amax")


# ---- the tree of beams -----------------------------------------------------------

MOST = 10  # symbols in a tree
BEAMS, ALPHAS = (1, 2, 3, 4, 5), (0.0, 0.5, 1.0, 1.5, 2.0)


def grow(after: Continue, width: int, most: int = MOST) -> list[list[list]]:
    """Return what a search does at each step, as ``[parent, symbol, log p, fate]``.

    A parent is the place of a living one among those of the step before; the fate is
    "lives", "ends" or "dropped".
    """
    ids, total, steps = torch.tensor([[IDS["start"]]]), torch.zeros(1), []
    for length in range(1, most + 1):
        logs = total[:, None] + after(ids)
        size = logs.shape[1]
        best, places = logs.flatten().topk(min(2 * width, logs.numel()))
        rows, symbols = places // size, places % size
        ended = symbols == IDS["end"]
        over = ended | (length == most)
        lives = (~ended).nonzero().flatten()[:width]
        living = set(lives.tolist())
        step = []
        for j in range(len(best)):
            if j < width and over[j]:
                fate = "ends"
            elif j in living:
                fate = "lives"
            else:
                fate = "dropped"
            step.append([rows[j].item(), symbols[j].item(), best[j].item(), fate])
        steps.append(step)
        ids = torch.cat([ids[rows], symbols[:, None]], dim=1)[lives]
        total = best[lives]
    return steps


def answer(
    steps: Sequence[Sequence], width: int, alpha: float, stop: str, most: int = MOST
) -> tuple[float, list[int]]:
    """Return score and symbols of what a search that grew these ``steps`` returns.

    The penalty is the plain one. Neither it nor the way to stop changes what grows.
    """
    finished: list[tuple[float, list[int]]] = []
    living: list[list[int]] = [[]]
    for n, step in enumerate(steps, start=1):
        paths = [[*living[parent], symbol] for parent, symbol, _, _ in step]
        fates = [fate for *_, fate in step]
        logs = [log for _, _, log, _ in step]
        for path, log, fate in zip(paths, logs, fates, strict=True):
            if fate == "ends":
                finished.append((log / n**alpha, path))
        alive = [j for j, fate in enumerate(fates) if fate == "lives"]
        living = [paths[j] for j in alive]
        hope = max((logs[j] for j in alive), default=-math.inf)
        bound = max(hope / (n + 1) ** alpha, hope / most**alpha)
        if stop == "first" and len(finished) >= width:
            break
        if stop == "bound" and finished and max(finished)[0] >= bound:
            break
    return max(finished)


def telling(
    task: Task, greedy: Sequence[Hypothesis], wide: Sequence[Hypothesis]
) -> list[int]:
    """Return words that show something: mended by the beam, then wrong, then right."""
    fits = [
        4 <= len(word) and word.isalpha() and max(map(len, answers)) < MOST - 3
        for word, answers in zip(task.words, task.answers, strict=True)
    ]
    before, after = task.right(greedy), task.right(wide)
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for i, kind in enumerate(zip(before, after, strict=True)):
        if fits[i] and len(wide[i].tokens) < MOST - 2:
            kinds.setdefault(kind, []).append(i)
    wanted = {(False, True): 3, (False, False): 2, (True, False): 1, (True, True): 1}
    return [i for kind, n in wanted.items() for i in kinds.get(kind, [])[:n]]


def tree_explorer(
    task: Task, greedy: Sequence[Hypothesis], wide: Sequence[Hypothesis]
) -> Html:
    """Show the tree of beams for a few words, and check what it finds."""
    shown = telling(task, greedy, wide)
    names, checks = [task.words[i] for i in shown], []
    trees: dict[str, dict[str, list]] = {}
    for i in shown:
        source = torch.tensor([task.cutter.source.encode(task.words[i])])
        after = continues(task.model, source)
        trees[task.words[i]] = {
            str(width): [
                [[row, symbol, round(log, 5), fate] for row, symbol, log, fate in step]
                for step in grow(after, width)
            ]
            for width in BEAMS
        }
    for n, (stop, alpha) in enumerate(
        [("first", 0.0), ("bound", 1.0), ("never", 2.0), ("bound", 0.5), ("first", 1.5)]
    ):
        i, width = shown[n % len(shown)], BEAMS[-1 - n]
        options = {"alpha": alpha, "penalty": "plain", "stop": stop, "beam": width}
        (one,) = task.search([i], most=MOST, **options)
        state = {"word": task.words[i], "beam": width, "alpha": alpha, "stop": stop}
        best = {"best": " ".join(task.sounds(one.tokens)), "score": one.score}
        checks.append((state, best))
    symbols = task.cutter.target.symbols
    return explorer(
        static("beam_tree.js"),
        {
            "trees": trees,
            "symbols": symbols,
            "end": IDS["end"],
            "most": MOST,
            "answers": {
                task.words[i]: [" ".join(one) for one in task.answers[i]] for i in shown
            },
        },
        [
            Choice("word", "word", names),
            Slider("beam", "beam", BEAMS, 3),
            Slider("alpha", "length penalty α", ALPHAS),
            Choice("stop", "stop", STOPS, "bound"),
        ],
        label="The tree of beams",
        checks=checks,
        question=f"Set the beam to 1: at which sound does greedy decoding leave the "
        f"path that the beam of 3 takes through “{names[0]}”?",
        caption="A box is a hypothesis: its last sound, and the probability of all of "
        "it so far. Tinted: lives on. Double frame: finished. Dashed: dropped, the two "
        "likeliest. Filled: the answer. The penalty is the plain one, n^α.",
    )


def minus(value: float, digits: int) -> str:
    """Return a number as text, with a minus that is as wide as a digit."""
    return f"{value:.{digits}f}".replace("-", "−")


# ---- penalties -------------------------------------------------------------------


def ranking(every: Mapping[Words, float], alpha: float, penalty: str) -> Html:
    """Show the sentences of the toy by their scores, the best first."""
    rows = []
    for words, chance in every.items():
        divisor = PENALTIES[penalty](len(words), alpha)
        rows.append((math.log(chance) / divisor, words, divisor))
    rows.sort(reverse=True)
    return show_table(
        ("sentence", "n", "log p", "penalty", "score"),
        [
            (
                " ".join(words[:-1]),
                len(words),
                minus(score * divisor, 2),
                f"{divisor:.2f}",
                minus(score, 2),
            )
            for score, words, divisor in rows[:4]
        ],
        caption="The four best; n counts the end.",
    )


def check_penalties(every: Mapping[Words, float]) -> None:
    """Prove which sentence wins under which penalty, and that a common one is none."""
    logs = {words: math.log(chance) for words, chance in every.items()}

    def winner(alpha: float, penalty: str, length: Callable = len) -> str:
        score = {w: z / PENALTIES[penalty](length(w), alpha) for w, z in logs.items()}
        return " ".join(max(score, key=score.get)[:-1])

    assert winner(0, "plain") == winner(0.6, "gnmt") == "suddenly"
    assert winner(0.6, "plain") == "at once"
    print("✓ with α = 0.6 the plain penalty changes the winner, GNMT's doesn't")
    for alpha in (0.0, 0.6, 1.0, 2.0):
        assert winner(alpha, "plain", lambda words: 4) == "suddenly"
    print("✓ one penalty for all, that of the step: no effect, whatever α")
    # unfinished ones: what is compared has one length, until something has ended
    halves = {words[:n] for words in every for n in range(1, len(words))}
    assert len(halves) > len(every)
    assert winner(1.0, "plain", lambda words: len(words) + 20) == "suddenly"
    print(
        "✓ with a prompt of 20 words counted in n, α = 1 no longer changes the winner"
    )


def lengths_table(task: Task) -> Html:
    """Show what α changes in a trained model's answers."""
    wanted = sum(len(one[0]) for one in task.answers) / len(task.answers)
    rows = []
    for penalty, alphas in (("plain", (0.0, 1.0, 2.0)), ("gnmt", (1.0, 2.0))):
        for alpha in alphas:
            found = task.search(beam=5, alpha=alpha, penalty=penalty)
            mean = sum(len(task.sounds(one.tokens)) for one in found) / len(found)
            name = f"{penalty}, α = {alpha:g}" if alpha else "none, α = 0"
            rows.append((name, f"{mean:.2f}", *task.rates(found)))
    return show_table(
        ("penalty", "sounds in an answer", "sounds wrong", "words wrong"),
        rows,
        caption=f"Beam of 5, {len(task.words)} words; the dictionary's answers have "
        f"{wanted:.2f} sounds.",
    )


# ---- when to stop ----------------------------------------------------------------


class Counting(DecoderCache):
    """A cache that counts how often it is read."""

    reads = 0

    def read(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits, and count."""
        Counting.reads += 1
        return super().read(tokens)


def stops_table(task: Task, count: int = 60, alpha: float = 1.0) -> Html:
    """Show what each way to stop reads and returns, word by word."""
    found, reads = {}, {}
    for stop in STOPS:
        Counting.reads = 0
        options = {"alpha": alpha, "penalty": "plain", "stop": stop, "beam": 5}
        found[stop] = [
            task.search([i], reader=Counting, **options)[0] for i in range(count)
        ]
        reads[stop] = Counting.reads
    assert found["bound"] == found["never"]
    rows = []
    for stop in STOPS:
        pairs = zip(found[stop], found["never"], strict=True)
        worse = sum(one.score < best.score for one, best in pairs)
        mean = sum(len(one.tokens) for one in found[stop]) / count
        rows.append((stop, f"{reads[stop] / count:.1f}", f"{mean:.2f}", worse))
    return show_table(
        ("stop", "steps", "symbols in the answer", "a better one was missed"),
        rows,
        caption=f"Means of {count} words, beam of 5, plain penalty with α = {alpha:g}, "
        "at most 30 steps. Symbols count the end.",
    )


def check_bound(task: Task, count: int = 200) -> None:
    """Prove that the bound returns what searching to the end returns."""
    rows = slice(count)
    for alpha in (0.0, 0.6, 1.0):
        for penalty in PENALTIES:
            given = {"beam": 5, "alpha": alpha, "penalty": penalty, "most": 14}
            bound, never = (
                task.search(rows, stop=stop, **given) for stop in ("bound", "never")
            )
            assert bound == never, (alpha, penalty)
    print(f"✓ bound = never: the same answers for {count} words, six penalties")
    greedy = task.search(rows, beam=1, stop="first")
    again = translate(task.model, task.cutter, task.words[:count])
    assert [" ".join(task.sounds(one.tokens)) for one in greedy] == again
    print(f"✓ beam 1 that stops first = greedy decoding, {count} words")


# ---- whose error -----------------------------------------------------------------


def whose_table(task: Task, found: Mapping[str, Sequence[Hypothesis]]) -> Html:
    """Show of how many wrong words the right answer was likelier than the found."""
    rows = []
    for name, several in found.items():
        wrong = [i for i, right in enumerate(task.right(several)) if not right]
        search = task.search_errors(several, wrong)
        mean = sum(one.log_probability for one in several) / len(several)
        rows.append((name, minus(mean, 3), len(wrong), search, len(wrong) - search))
    return show_table(
        ("search", "mean log p found", "wrong", "search errors", "model errors"),
        rows,
        caption=f"{len(task.words)} words that the model has never seen.",
    )


# ---- recurrent and Transformer ---------------------------------------------------


def beam_means(rows: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, float]]:
    """Return a recorded model's rates for each beam, means of its seeds."""
    tables = [row["beams"] for row in rows if row["name"] == name]
    return [
        {
            key: sum(one[key] for one in several) / len(several)
            for key in ("beam", "phonemes", "words", "search", "model")
        }
        for several in zip(*tables, strict=True)
    ]


def beams_figure(rows: Sequence[Mapping[str, Any]]) -> Html:
    """Plot a recurrent model and ours by the width of the beam, and whose errors."""
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 3.4))
    said = []
    for name, color in (("Transformer", THIS), ("GRU", OTHER)):
        table = beam_means(rows, name)
        places = range(len(table))
        for ax, key in zip(panels, ("words", "search"), strict=True):
            shares = [100 * one[key] for one in table]
            ax.plot(places, shares, "o-", color=color, label=name)
            ax.set_xticks(places, [f"{one['beam']:.0f}" for one in table])
            ax.set(xlabel="beam", ylim=(0, None))
        said += [
            f"{name}, beam of {one['beam']:.0f}: {one['words']:.1%} of words wrong, "
            f"{one['search']:.1%} by the search"
            for one in table
        ]
    panels[0].set(ylabel="words wrong, %")
    panels[1].set(ylabel="of these by the search, % of words")
    name_lines(panels[0])
    name_lines(panels[1])
    return show(
        figure,
        title="What a beam repairs is what greedy search had missed",
        alt="; ".join(said) + ".",
        caption=f"Recorded: means of {len(rows) // 2} seeds, both trained for about as "
        "many CPU seconds; no length penalty.",
    )


def say_beams(rows: Sequence[Mapping[str, Any]]) -> None:
    """Say what a beam of 5 gains for each model, and how sure each is."""
    parts = []
    for name in ("Transformer", "GRU"):
        greedy, *_ = table = beam_means(rows, name)
        five = next(one for one in table if one["beam"] == 5)
        sure = [row["beams"][0]["sure"] for row in rows if row["name"] == name]
        parts.append(
            f"The {name}'s likeliest symbol has a probability of "
            f"{sum(sure) / len(sure):.3f} on average. Of its greedy answers "
            f"{greedy['search']:.1%} are wrong because the search failed; a beam of 5 "
            f"changes its word error rate from {greedy['words']:.1%} to "
            f"{five['words']:.1%}."
        )
    say(" ".join(parts))


# ---- the answer that agrees most -------------------------------------------------


@torch.no_grad()
def draw(task: Task, i: int, count: int, most: int = 25) -> list[list[int]]:
    """Return ids of pronunciations of word ``i``, drawn from the model."""
    past = DecoderCache(task.model, task.source[[i] * count])
    symbol, written = torch.full((count, 1), IDS["start"]), []
    for _ in range(most):
        chances = past.read(symbol)[:, -1].softmax(dim=-1)
        symbol = torch.multinomial(chances, 1)
        written.append(symbol)
    rows, end = torch.cat(written, dim=1).tolist(), IDS["end"]
    return [row[: row.index(end) + 1 if end in row else most] for row in rows]


def check_samples(task: Task, count: int = 2000) -> None:
    """Check that samples are drawn as often as they are likely."""
    i = min(range(len(task.words)), key=lambda i: len(task.words[i]))
    (one,) = task.search([i], beam=4)
    drawn = draw(task, i, count)
    share = drawn.count(one.tokens) / count
    chance = math.exp(one.log_probability)
    room = 5 * (chance * (1 - chance) / count) ** 0.5
    assert abs(share - chance) < room, (share, chance)
    print(
        f"✓ drawn as often as likely: {share:.2f} of {count} samples of "
        f"“{task.words[i]}”, probability {chance:.2f}, to {room:.2f}"
    )


def agreeing_table(
    task: Task,
    agrees_most: Callable,
    found: Mapping[str, Sequence[Hypothesis]],
    count: int = 200,
) -> Html:
    """Show the error rates of the samples that agree most, beside two searches."""
    outputs = {}
    for name, several in found.items():
        outputs[name] = [task.sounds(one.tokens) for one in several[:count]]
    samples = [draw(task, i, 16) for i in range(count)]
    outputs["one sample"] = [task.sounds(several[0]) for several in samples]
    outputs["agrees most, of 16 samples"] = [
        task.sounds(agrees_most(several)) for several in samples
    ]
    rows = []
    for name, chosen in outputs.items():
        rates = error_rates(chosen, task.answers[:count])
        rows.append((name, f"{rates['symbols']:.1%}", f"{rates['whole']:.1%}"))
    return show_table(
        ("choice", "sounds wrong", "words wrong"), rows, caption=f"{count} words."
    )


# ---- bad input -------------------------------------------------------------------


def check_edges(task: Task) -> None:
    """Check and print what comes of inputs that are hardly any."""
    model, cutter = task.model, task.cutter
    assert translate(model, cutter, ["", "a", ""])[::2] == ["", ""]
    print("✓ an empty word: an empty answer, also between others")
    assert cutter.unknown("cañ½on") == "ñ½"
    assert translate(model, cutter, ["cañ½on"]) == translate(model, cutter, ["caon"])
    print("✓ “cañ½on”: ñ and ½ are named by `cutter.unknown`, the rest is read")
    wide, wider = (task.search([0], beam=beam) for beam in (60, 200))
    assert wide[0].tokens == wider[0].tokens
    print("✓ a beam wider than the vocabulary finds what one of 60 finds")
    padding = torch.zeros(1, 4, dtype=torch.long)
    for attempt in (
        lambda: task.search([0], beam=0),
        lambda: beam_search(model, padding, **IDS, max_new_tokens=9),
        lambda: translate(model, cutter, ["a" * 70]),
    ):
        try:
            attempt()
        except ValueError as error:
            print(f"✓ refused: {error}")
        else:
            raise AssertionError("an input that is none was accepted")
