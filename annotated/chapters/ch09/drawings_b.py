"""Page 09b, search: its toy, drawings, tables and the tree of beams."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.batches import Vocabulary, pad_sequences
from annotated.data.bpe import join_pieces
from annotated.data.spelling import spelling_words
from annotated.metrics import error_rates
from annotated.page.diagrams import Drawing
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import say, show, show_table
from annotated.page.plots import OTHER, THIS, plot_lines
from annotated.page.records import grouped
from annotated.page.svg import COLOURS
from annotated.recipes.translation import Cutter, Recipe, translate
from annotated.search import (
    PENALTIES,
    DecoderCache,
    Hypothesis,
    beam_search,
    exhaustive_search,
    log_probabilities,
)
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
        start = (begin, place[last] - 4)
        if (ends := after[last[-1]]["end"]) < 1:
            x = columns[len(last)]
            drawing.line(start, (x - 4, y - 4), width=1)
            drawing.text(x, y, "end", anchor="start", bold=words in (best, greedy))
            drawing.text(x, y + 13, f"{ends:.2f}", anchor="start", size=12)
            start = (x + 30, y - 4)
        drawing.line(start, (243, y - 4), width=0.6)
        mark = " ← greedy" if words == greedy else " ← best" if words == best else ""
        drawing.text(
            344, y, f"{chance:.3f}{mark}", anchor="end", bold=words in (best, greedy)
        )
    said = "; ".join(f"{' '.join(w[:-1])} {p:.3f}" for w, p in every.items())
    return drawing.figure(
        alt=f"A tree of {len(every)} sentences and their probabilities: {said}. Greedy "
        f"decoding writes {' '.join(greedy[:-1])}.",
        caption="Below each word its probability after the one before it; on the right "
        "that of the whole. An end that is certain isn't drawn.",
    )


def trace_of_toy(by_hand: Callable, table: Float[Tensor, "v v"]) -> Html:
    """Show each step of a beam of 2 in the toy, and what a notebook's search finds."""
    past: list[list[int]] = [[]]
    rows = []
    for n, step in enumerate(grow(lambda ids: table[ids[:, -1]], 2, 4), start=1):
        paths = [[*past[parent], symbol] for parent, symbol, _, _ in step]
        cells: dict[str, list[str]] = {"lives": [], "ends": [], "dropped": []}
        for path, (_, _, log, fate) in zip(paths, step, strict=True):
            if log > -math.inf:
                cells[fate].append(f"{said(path)} {math.exp(log):.3f}")
        pairs = zip(paths, step, strict=True)
        past = [path for path, (*_, fate) in pairs if fate == "lives"]
        if any(cells.values()):
            rows.append((n, *(", ".join(some) or "–" for some in cells.values())))
    found = [by_hand(lambda ids: table[ids[:, -1]], k, 4)[0] for k in (1, 2)]
    one, two = (f"“{said(ids)}” ({math.exp(log):.3f})" for log, ids in found)
    return show_table(
        ("step", "alive", "finished", "dropped"),
        rows,
        caption=f"A beam of 2 in the toy finds {two}; a beam of 1 finds {one}.",
    )


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
    """A trained speller, ``count`` words it has never seen, and their sounds."""

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
) -> dict[str, list[int]]:
    """Return words that show something, by what they show; ``wide`` is a beam of 4."""
    given = {"beam": 4, "alpha": 1.0, "penalty": "plain", "most": MOST}
    bound, first = (task.search(stop=stop, **given) for stop in ("bound", "first"))
    right, before = task.right(wide), task.right(greedy)
    kinds: dict[str, list[int]] = {}
    for i, (word, answers) in enumerate(zip(task.words, task.answers, strict=True)):
        long = max(*map(len, answers), 0, len(bound[i].tokens), len(wide[i].tokens))
        if len(word) < 4 or long >= MOST - 2:
            continue
        if first[i].tokens != bound[i].tokens:
            kind = "hasty"  # the first that are finished aren't the best
        elif bound[i].tokens != wide[i].tokens:
            kind = "penalised"  # another answer with a penalty
        elif right[i] != before[i]:
            kind = "lost" if before[i] else "mended"
        else:
            kind = "same" if right[i] else "wrong"
        kinds.setdefault(kind, []).append(i)
    wanted = {"mended": 2, "penalised": 1, "hasty": 1, "lost": 1, "wrong": 1, "same": 1}
    good = task.right(bound)
    return {
        kind: sorted(kinds[kind], key=lambda i: not good[i])[:n]
        for kind, n in wanted.items()
        if kind in kinds
    }


def sentence_tree(recorded: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the beginning of a recorded sentence, and what the explorer needs."""
    one, symbols = recorded["trees"][0], ["", "", "end"]

    def node(line: str) -> list:
        parent, piece, log, fate = line.split(" ")
        piece = "end" if piece == "<end>" else piece
        if piece not in symbols:
            symbols.append(piece)
        return [int(parent), symbols.index(piece), float(log), fate]

    trees = {
        width: [[node(part) for part in line.split("  ")] for line in lines]
        for width, lines in one["trees"].items()
    }
    most = max(len(tree) for tree in trees.values())
    item = {"trees": trees, "symbols": symbols, "most": most, "pieces": True}
    item |= {"source": one["source"], "right": [one["reference"]]}
    return " ".join(one["source"].split()[:4]) + " …", item


def tree_explorer(
    task: Task, shown: Mapping[str, Sequence[int]], recorded: Mapping[str, Any]
) -> Html:
    """Show the tree of beams for a few words and a sentence; check what it finds."""
    rows = [i for several in shown.values() for i in several]
    names, checks = [task.words[i] for i in rows], []
    items: dict[str, dict[str, Any]] = {}
    for i in rows:
        source = torch.tensor([task.cutter.source.encode(task.words[i])])
        after = continues(task.model, source)
        trees = {
            str(width): [
                [[row, symbol, round(log, 5), fate] for row, symbol, log, fate in step]
                for step in grow(after, width)
            ]
            for width in BEAMS
        }
        right = [" ".join(one) for one in task.answers[i]]
        item = {"trees": trees, "most": MOST, "pieces": False, "right": right}
        items[task.words[i]] = item
    for n, (stop, alpha) in enumerate(
        [("first", 0.0), ("bound", 1.0), ("never", 2.0), ("bound", 0.5), ("first", 1.0)]
    ):
        i, width = rows[n % len(rows)], BEAMS[-1 - n]
        options = {"alpha": alpha, "penalty": "plain", "stop": stop, "beam": width}
        (one,) = task.search([i], most=MOST, **options)
        state = {"word": task.words[i], "beam": width, "alpha": alpha}
        state |= {"stop": STOP_NAMES[stop]}
        best = {"best": " ".join(task.sounds(one.tokens)), "score": one.score}
        checks.append((state, best))
    sentence, item = sentence_tree(recorded)
    for width, alpha, stop in ((1, 0.0, "first"), (4, 0.0, "bound"), (4, 1.0, "never")):
        steps = item["trees"][str(width)]
        score, ids = answer(steps, width, alpha, stop, item["most"])
        text = join_pieces(item["symbols"][i] for i in ids if i != IDS["end"])
        state = {"word": sentence, "beam": width, "alpha": alpha}
        state |= {"stop": STOP_NAMES[stop]}
        checks.append((state, {"best": text, "score": score}))
    items[sentence] = item
    return explorer(
        static("ch09/beam_tree.js"),
        {"items": items, "symbols": task.cutter.target.symbols, "end": IDS["end"]},
        [
            Choice("word", "word", [*names, sentence]),
            Slider("beam", "beam", BEAMS, 3),
            Slider("alpha", "length penalty α", ALPHAS),
            Choice("stop", "stop", list(STOP_NAMES.values()), "bound"),
        ],
        label="The tree of beams",
        checks=checks,
        question=f"For “{names[0]}”, set the beam to 1: at which sound does "
        "greedy decoding leave the path that the beam of 3 takes?",
        caption="A box is a hypothesis: its last symbol, and the probability of all of "
        "it so far. Tinted: lives on. Double frame: finished. Dashed: dropped, the two "
        "likeliest. Filled: the answer. Without tint, in the last column: still alive "
        "when the search stops. The penalty is the plain one, nᵅ. A wide tree scrolls "
        "sideways.",
    )


def tree_tasks(shown: Mapping[str, Sequence[int]], task: Task) -> list[tuple[str, str]]:
    """Return what to try in the tree of beams, and what comes of it in this run."""

    def spoken(i: int, width: int, alpha: float, stop: str) -> str:
        source = torch.tensor([task.cutter.source.encode(task.words[i])])
        steps = grow(continues(task.model, source), width)
        return " ".join(task.sounds(answer(steps, width, alpha, stop)[1]))

    def marked(i: int, sounds: str) -> str:
        right = tuple(sounds.split()) in task.answers[i]
        return f"{sounds} ({'right' if right else 'wrong'})"

    several = []
    (i, *_), *_ = shown.values()
    greedy, beam = spoken(i, 1, 0.0, "first"), spoken(i, 3, 0.0, "bound")
    ways = zip([*greedy.split(), "the end"], [*beam.split(), "the end"], strict=False)
    parts = [(n, *pair) for n, pair in enumerate(ways, 1) if len(set(pair)) == 2]
    for place, ours, theirs in parts[:1]:
        what = f"“{task.words[i]}”, a beam of 1, then of 3"
        comes = f"they part at sound {place}: {ours} is likelier there, and {theirs} "
        several.append((what, comes + "begins the likelier answer"))
    for i in shown.get("penalised", ()):
        none = spoken(i, 4, 0.0, "bound")
        alpha = next(a for a in ALPHAS if spoken(i, 4, a, "bound") != none)
        short, long = marked(i, none), marked(i, spoken(i, 4, alpha, "bound"))
        comes = f"{short} with α = 0, and from {alpha:g} on the longer {long}"
        several.append((f"“{task.words[i]}”, a beam of 4, and α", comes))
    for i in shown.get("hasty", ()):
        first, bound = (
            marked(i, spoken(i, 4, 1.0, stop)) for stop in ("first", "bound")
        )
        what = f"“{task.words[i]}”, a beam of 4 and α = 1, *first* and *bound*"
        several.append((what, f"*first* stops at {first}, and misses {bound}"))
    for i in shown.get("lost", ()):
        right, wrong = spoken(i, 1, 0.0, "first"), spoken(i, 4, 0.0, "bound")
        comes = f"the greedy {right} is right; the likelier {wrong} is wrong"
        several.append((f"“{task.words[i]}”, a beam of 1, then of 4", comes))
    return several


def say_tasks(task: Task, shown: Mapping[str, Sequence[int]]) -> None:
    """Say what to try in the tree of beams, and fold what comes of it."""
    tasks = tree_tasks(shown, task)
    tried = "".join(f"\n{n}. {what}." for n, (what, _) in enumerate(tasks, start=1))
    comes = "".join(f"\n{n}. {said}." for n, (_, said) in enumerate(tasks, start=1))
    say(
        f"Then try, one after the other:\n{tried}\n\n"
        f"<details><summary>What you should see</summary>\n{comes}\n\n</details>"
    )


def minus(value: float, digits: int) -> str:
    """Return a number as text, with a minus that is as wide as a digit."""
    return f"{value:.{digits}f}".replace("-", "−")


# ---- penalties -------------------------------------------------------------------

NAMES = {"plain": "plain", "gnmt": "GNMT's"}


def penalties_figure(every: Mapping[Words, float]) -> Html:
    """Plot the scores of the toy's best two by α, under both penalties."""
    figure, panels = plt.subplots(1, 2)
    one, other = sorted(every, key=every.get, reverse=True)[:2]
    logs = {words: math.log(every[words]) for words in (one, other)}
    first, second = (" ".join(words[:-1]) for words in logs)
    for ax, (penalty, name) in zip(panels, NAMES.items(), strict=True):
        divisor = PENALTIES[penalty]
        growth = math.log(divisor(len(other), 1.0) / divisor(len(one), 1.0))
        crossing = math.log(logs[other] / logs[one]) / growth
        scores = {
            " ".join(words[:-1]): {
                alpha: log / divisor(len(words), alpha)
                for alpha in torch.linspace(0, 2, 41).tolist()
            }
            for words, log in logs.items()
        }
        axes = {"xlabel": "α", "ylim": (-1.5, 0), "xticks": [0, 0.5, 1, 1.5, 2]}
        axes |= {"title": f"{name}: from {crossing:.2f} on"}
        plot_lines(scores, ax, colors={first: OTHER}, **axes)
        height = logs[one] / divisor(len(one), crossing)
        ax.plot(crossing, height, "o", color=COLOURS["ink"], label="they meet")
    panels[0].set(ylabel="score")
    return show(
        figure,
        title=f"From which α on does “{second}” win? It depends on the penalty",
        caption="The higher a line, the better the sentence. The dot: where the longer "
        "one catches up.",
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
    assert winner(1.0, "plain", lambda words: len(words) + 20) == "suddenly"
    print(
        "✓ with a prompt of 20 words counted in n, α = 1 no longer changes the winner"
    )


# ---- when to stop ----------------------------------------------------------------

#: those of the module, as the page calls them
STOP_NAMES = {"first": "first", "bound": "bound", "never": "to the end"}


class Counting(DecoderCache):
    """A cache that counts how often it is read."""

    reads = 0

    def read(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits, and count."""
        Counting.reads += 1
        return super().read(tokens)


def check_bound(task: Task, hopeless: Callable, count: int = 200) -> None:
    """Prove that the bound returns what searching to the end returns, and stops early.

    For ``count`` words; ``hopeless`` is the notebook's rule for one source.
    """
    rows = slice(count)
    for alpha in (0.0, 0.6, 1.0):
        for penalty in PENALTIES:
            given = {"beam": 5, "alpha": alpha, "penalty": penalty, "most": 14}
            bound, never = (
                task.search(rows, stop=stop, **given) for stop in ("bound", "never")
            )
            assert bound == never, (alpha, penalty)
    print(f"✓ bound = to the end: the same answers, {count} words, six penalties")
    for i in range(min(count, 40)):
        Counting.reads = 0
        given = {"beam": 5, "alpha": 1.0, "penalty": "plain", "stop": "bound"}
        task.search([i], reader=Counting, most=14, **given)
        source = torch.tensor([task.cutter.source.encode(task.words[i])])
        assert steps_until(hopeless, continues(task.model, source)) == Counting.reads
    print("✓ `hopeless` stops after as many steps as the module, 40 words")
    greedy = task.search(rows, beam=1, stop="first")
    again = translate(task.model, task.cutter, task.words[:count])
    assert [" ".join(task.sounds(one.tokens)) for one in greedy] == again
    print(f"✓ beam 1 that stops first = greedy decoding, {count} words")


def steps_until(hopeless: Callable, after: Continue, most: int = 14) -> int:
    """Return the number of steps of a search that stops by a notebook's rule."""
    best = -math.inf
    for n, step in enumerate(grow(after, 5, most), start=1):
        ends = [log / n for _, _, log, fate in step if fate == "ends"]
        best = max([best, *ends])
        alive = max((log for *_, log, fate in step if fate == "lives"), default=-999.0)
        if best > -math.inf and hopeless(alive, best, 1.0, most):
            return n
    return most


def stops_table(recorded: Mapping[str, Any]) -> Html:
    """Show what each way to stop reads and returns, by the penalty."""
    rows = []
    for row in recorded["stops"]:
        name = penalty_name(row["penalty"], row["alpha"])
        to_end = row["stop"] == "never"
        rows.append(
            (
                f"{name}: {STOP_NAMES[row['stop']]}",
                f"{row['steps']:.0f}",
                "–" if to_end else f"{row['missed']:.1%}",
                f"{row['length']:.3f}",
                f"{row['bleu']:.1f}",
            )
        )
    return show_table(
        ("penalty: stop", "steps", "a better one missed", "length", "BLEU"),
        rows,
        caption=f"Beam of 5, {recorded['tested']} sentences; steps: means of "
        f"{recorded['alone']}, searched one by one. Missed: how often searching to the "
        "end finds a better score. Length: words for each word of the references.",
    )


# ---- whose error -----------------------------------------------------------------


class Forgetful(DecoderCache):
    """A cache whose rows don't follow their hypotheses."""

    def keep(self, rows: Int[Tensor, "n"]) -> None:
        """Make room for all hypotheses, and never reorder them."""
        if len(rows) != len(self.tokens):
            super().keep(rows)


def say_forgotten(task: Task, wide: Sequence[Hypothesis]) -> None:
    """Say what a beam of 4 gets wrong if it forgets to reorder its cache."""
    again = task.search(beam=4, reader=Forgetful)
    whole, broken = (task.rates(several)[1] for several in (wide, again))
    other = sum(a.tokens != b.tokens for a, b in zip(wide, again, strict=True))
    wrong = f"{broken} of the words are wrong instead of {whole}"
    if whole == broken:
        wrong = f"still {whole} of the words are wrong, exactly as before"
    say(
        "**A mistake that shows nowhere.** When hypotheses are reordered, each must "
        "take its parent's cache along: the cache's `keep(rows)` copies it. Leave it "
        f"out and nothing crashes: with a beam of 4, {other} of {len(wide)} answers "
        f"change, and {wrong}. So don't wait for a symptom: compare with a search that "
        "reads everything again."
    )


def whose_table(
    task: Task,
    found: Mapping[str, Sequence[Hypothesis]],
    shown: Mapping[str, Sequence[int]],
) -> Html:
    """Show of how many wrong words the right answer was likelier than the found."""
    rows = []
    for name, several in found.items():
        wrong = [i for i, right in enumerate(task.right(several)) if not right]
        search = task.search_errors(several, wrong)
        log = mean(one.log_probability for one in several)
        rows.append((name, minus(log, 3), len(wrong), search, len(wrong) - search))
    won, lost, changed = exchanged(task, found["greedy"], found["beam of 4"])
    such = f" ({task.words[shown['lost'][0]]} is one)" if "lost" in shown else ""
    return show_table(
        ("search", "mean log p", "wrong", "search errors", "model errors"),
        rows,
        caption=f"{len(task.words)} words that the model has never seen. With a beam "
        f"of 4 instead of greedy decoding {changed} answers change: {won} wrong ones "
        f"become right, and {lost} right ones wrong{such}.",
    )


def exchanged(
    task: Task, greedy: Sequence[Hypothesis], wide: Sequence[Hypothesis]
) -> tuple[int, int, int]:
    """Return how many words a beam makes right, how many wrong, and all it changes."""
    before, after = task.right(greedy), task.right(wide)
    pairs = list(zip(before, after, strict=True))
    changed = sum(a.tokens != b.tokens for a, b in zip(greedy, wide, strict=True))
    return pairs.count((False, True)), pairs.count((True, False)), changed


# ---- wide beams, long outputs ----------------------------------------------------


def penalty_name(penalty: str, alpha: float) -> str:
    """Return the name of a penalty in a table."""
    return f"{NAMES[penalty]}, α = {alpha:g}" if alpha else "none"


def by_penalty(recorded: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the recorded rows of each penalty, by its name."""
    groups = grouped(recorded["beams"], "penalty", "alpha")
    return {penalty_name(*penalty): rows for penalty, rows in groups.items()}


def wide_figure(recorded: Mapping[str, Any]) -> Html:
    """Plot BLEU and length by the width of the beam, for each penalty."""
    figure, panels = plt.subplots(1, 2)
    tables = by_penalty(recorded)
    titles = {"bleu": "BLEU", "length": "length, 1 is the references'"}
    for ax, (key, title) in zip(panels, titles.items(), strict=True):
        lines = {
            name.split(",")[0]: {row["beam"]: row[key] for row in rows}
            for name, rows in tables.items()
        }
        colors = dict(zip(lines, (OTHER, THIS, COLOURS["key"]), strict=True))
        axes = {"xlabel": "beam, log axis", "xticks": [1, 2, 4, 8, 16, 32, 100]}
        plot_lines(lines, ax, colors=colors, title=title, xscale="log", **axes)
        plt.setp(ax.lines, marker="o", markersize=5)
    panels[1].axhline(1.0, color=COLOURS["rule"], zorder=0)
    return show(
        figure,
        title="Without a penalty, a wide beam writes less and less",
        caption=f"Penalties: {'; '.join(tables)}. Recorded: one model, one seed; the "
        f"first {recorded['tested']} sentences of Multi30k's test set, English to "
        "German.",
    )


def price_table(
    recorded: Mapping[str, Any], beams: Sequence[int] = (1, 2, 4, 8, 32, 100)
) -> Html:
    """Show what beams cost, find and miss without a penalty, and BLEU with each."""
    tables = by_penalty(recorded)
    rows = [
        (
            row["beam"],
            f"{1000 * row['seconds']:.0f}",
            minus(row["log"], 1),
            f"{row['empty']:.0%}",
            f"{row['empty_likelier']:.0%}",
            f"{row['search_errors']:.1%}",
            *(f"{one['bleu']:.1f}" for one in (row, *others)),
        )
        for row, *others in zip(*tables.values(), strict=True)
        if row["beam"] in beams
    ]
    missed = ("empty likelier", "reference likelier")
    _, gnmt, plain = tables
    return show_table(
        ("beam", "ms", "mean log p", "empty", *missed, "BLEU", "GNMT", "plain"),
        rows,
        caption=f"Without a penalty, but for the last two: BLEU with {gnmt}, and with "
        f"{plain}. ms: CPU time for a sentence, on one core, up to {recorded['rows']} "
        "hypotheses in a batch. Empty: what is found. Likelier than that: each is a "
        "search error, so there are at least so many.",
    )


# ---- recurrent and Transformer ---------------------------------------------------


def folded(summary: str, words: str, table: Html) -> Html:
    """Fold words (HTML) and a table behind a line that says what they show."""
    inside = f"<p>{words}</p>{table.text}"
    return Html(f"<details><summary>{summary}</summary>{inside}</details>")


def beams_table(rows: Sequence[Mapping[str, Any]]) -> Html:
    """Fold how often a recurrent model and ours are wrong, and whose fault it is."""
    table, gains, greedy = [], [], {}
    for (name,), runs in grouped(rows, "name").items():
        tables = [{one["beam"]: one for one in run["beams"]} for run in runs]
        gains += [100 * (beams[1]["words"] - beams[5]["words"]) for beams in tables]
        words = [mean(beams[k]["words"] for beams in tables) for k in (1, 5, 20)]
        greedy[name] = words[0]
        search = mean(beams[1]["search"] for beams in tables)
        table.append((name, *(f"{share:.1%}" for share in (*words, search))))
    widths = ("words wrong: greedy", "beam of 5", "beam of 20")
    assert min(gains) < 0 < max(gains) and greedy["GRU"] < greedy["Transformer"]
    url = "https://github.com/bentrevett/pytorch-seq2seq/issues/141"
    return folded(
        "Why does a beam help my RNN and not my Transformer?",
        "A user gained one to two BLEU with a beam of 5 on recurrent models, and "
        f'nothing on others (<a href="{url}">pytorch-seq2seq#141</a>). On our words it '
        "hardly helps either: between seeds and models a beam of 5 changes the word "
        f"error rate by {minus(-max(gains), 1)} to +{-min(gains):.1f} points. So being "
        "recurrent isn't enough. (Trained for so short a time, the GRU is ahead.)",
        show_table(
            ("model", *widths, "greedy search errors"),
            table,
            caption=f"Recorded: means of {len(rows) // 2} seeds of chapter 9's speller "
            "and a recurrent one with attention, trained for about as many CPU "
            "seconds; no length penalty.",
        ),
    )


# ---- the answer that agrees most -------------------------------------------------


@torch.no_grad()
def draw(
    task: Task, rows: Sequence[int], count: int, seed: int = 0, most: int = 25
) -> list[list[list[int]]]:
    """Return ids of ``count`` pronunciations of each word, drawn from the model."""
    generator = torch.Generator().manual_seed(seed)
    past = DecoderCache(task.model, task.source[rows].repeat_interleave(count, dim=0))
    symbol, written = torch.full((len(rows) * count, 1), IDS["start"]), []
    for _ in range(most):
        chances = past.read(symbol)[:, -1].softmax(dim=-1)
        symbol = torch.multinomial(chances, 1, generator=generator)
        written.append(symbol)
    end, drawn = IDS["end"], torch.cat(written, dim=1).tolist()
    drawn = [row[: row.index(end) + 1 if end in row else most] for row in drawn]
    return [drawn[i : i + count] for i in range(0, len(drawn), count)]


def check_samples(task: Task, count: int = 4000) -> None:
    """Check that samples are drawn as often as they are likely."""
    i = min(range(len(task.words)), key=lambda i: len(task.words[i]))
    (one,) = task.search([i], beam=4)
    (drawn,) = draw(task, [i], count)
    share = drawn.count(one.tokens) / count
    chance = math.exp(one.log_probability)
    room = 3 * (chance * (1 - chance) / count) ** 0.5  # three standard errors
    assert abs(share - chance) < room, (share, chance)
    print(
        f"✓ drawn as often as likely: {share:.3f} of {count} samples of "
        f"“{task.words[i]}”, probability {chance:.3f}, to {room:.3f}"
    )


def agreeing_table(
    task: Task,
    agrees_most: Callable,
    found: Mapping[str, Sequence[Hypothesis]],
    count: int = 600,
) -> Html:
    """Show the error rates of the samples that agree most, beside two searches."""
    outputs = {
        name: [task.sounds(one.tokens) for one in several[:count]]
        for name, several in found.items()
    }
    samples = []
    for first in range(0, count, 50):
        samples += draw(task, range(count)[first : first + 50], 16, seed=first)
    outputs["one sample"] = [task.sounds(several[0]) for several in samples]
    outputs["agrees most, of 16 samples"] = [
        task.sounds(agrees_most(several)) for several in samples
    ]
    table = []
    for name, chosen in outputs.items():
        rates = error_rates(chosen, task.answers[:count])
        table.append((name, f"{rates['symbols']:.1%}", f"{rates['whole']:.1%}"))
    caption = f"{count} words that the model has never seen."
    return show_table(("choice", "sounds wrong", "words wrong"), table, caption)


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
