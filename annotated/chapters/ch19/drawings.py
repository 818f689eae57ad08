"""Chapter 19: its drawings, counts and tables."""

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import combinations
from math import log, log2, prod
from statistics import mean

import torch
from torch import Tensor

from annotated.chapters.ch19 import chain
from annotated.data.spelling import Sounds, pronunciations
from annotated.page.diagrams import NOTE, Drawing
from annotated.page.frames import Choice, Html, Slider, Text, explorer, static
from annotated.page.notebook import check_close, show, show_table
from annotated.page.packed import packed_script, unpack_model, unpack_refiner
from annotated.page.plots import COLOURS, plot_bars
from annotated.recipes.translation import Cutter, translate
from annotated.refinement import MaskedTransformer, diffusion_sample, mask_predict
from annotated.search import cached_greedy_decode
from annotated.transformer import Transformer

CITIES = {"New York": True, "San Diego": True, "New Diego": False, "San York": False}

# ---- New Diego -----------------------------------------------------------------------


def postcards() -> Html:
    """Draw two people who write one word each, and the four cities of their cards."""
    drawing = Drawing(350, 176)
    for x, name, words in (
        (52, "you", ("New", "San")),
        (136, "your friend", ("York", "Diego")),
    ):
        drawing.text(x, 16, name, bold=True)
        for i, word in enumerate(words):
            drawing.frame(x - 37, 28 + 40 * i, 74, 30, shade=0.2, color="key")
            drawing.text(x, 48 + 40 * i, f"{word}  ½", size=14)
    drawing.text(94, 126, "at the same moment", size=NOTE)
    drawing.arrow((184, 66), (208, 66))
    for i, (city, real) in enumerate(CITIES.items()):
        y = 14 + 34 * i
        drawing.frame(
            218, y - 4, 128, 28, shade=0.25, color="right" if real else "wrong"
        )
        mark = "✓" if real else "✗"
        drawing.text(226, y + 15, f"{mark} {city}", anchor="start", size=14)
        drawing.text(338, y + 15, "¼", anchor="end")
    return drawing.figure(
        alt="You write New or San, half of the time each; your friend York or Diego. "
        "Of four cards that are equally likely two name a city, New York and San "
        "Diego, and two don't: New Diego and San York.",
        caption="Half of the trips go to New York, half to San Diego. Both of you know "
        "that, and neither sees the other's word.",
    )


NAMES = {"New York or San Diego": 2, "BOSTON or DALLAS": 6}


def agreeing(p: float, m: int) -> float:
    """Return how often m symbols that are written at once belong to one text."""
    return p**m + (1 - p) ** m


def choice_bits(p: float) -> float:
    """Return the entropy of a choice between two, in bits."""
    return -sum(x * log2(x) for x in (p, 1 - p) if x)


def steps_explorer() -> Html:
    """Let the reader choose names, shares and rounds, and see what is written."""
    shares, rounds = [50, 60, 70, 80, 90, 95, 99], [1, 2, 3, 6]
    checks = []
    for name, n in NAMES.items():
        for r, share in ((1, 50), (2, 90), (3, 99), (6, 70)):
            p, m = share / 100, -(-n // r)
            values = {"right": agreeing(p, m), "lost": (m - 1) * choice_bits(p)}
            checks.append(({"names": name, "rounds": r, "share": share}, values))
    return explorer(
        static("ch19/new_diego.js"),
        {"names": {name: name.split(" or ") for name in NAMES}},
        [
            Choice("names", "names", [*NAMES]),
            Slider("rounds", "rounds", rounds),
            Slider("share", "share of the first name, %", shares),
        ],
        label="New Diego by steps",
        checks=checks,
        question="Spelled letter by letter, how many rounds does BOSTON or DALLAS need "
        "before half of what is written is a city? And does it help if one of them is "
        "rare?",
        caption="Twenty-four cards, drawn at random. A round writes equally many "
        "symbols, from the left, each for itself.",
    )


def lost_figure() -> Html:
    """Plot what texts of the small language lose by the rounds they are written in."""
    lost = {f"{k}": chain.lost(k) for k in (1, 2, 4, 8)}
    ax = plot_bars(
        {"lost": lost},
        colors={"lost": (COLOURS["wrong"], 0.7)},
        xlabel="rounds, for eight letters",
        ylabel="bits lost per text",
        ylim=(0, 10),
    )
    for i, value in enumerate(lost.values()):
        ax.text(i, value + 0.25, f"{abs(value):.2f}", ha="center")
    return show(
        ax.figure,
        title="Twice the rounds, less than half the loss",
        caption="Computed, for a model that knows the language exactly. A text has "
        f"{chain.bits():.2f} bits.",
    )


def check_lost() -> None:
    """Prove what rounds lose by a sum over all texts and all choices of positions."""

    def divergence(blocks: Sequence[Sequence[int]]) -> float:
        p, q, seen = chain.chances(), torch.ones(()).double(), set()
        for block in blocks:
            for i in block:
                others = [j for j in range(chain.LENGTH) if j not in seen | {i}]
                top = p.sum(dim=others, keepdim=True) if others else p
                q = q * top / top.sum(dim=i, keepdim=True).clamp_min(1e-300)
            seen |= {*block}
        return torch.special.xlogy(p, p / q.clamp_min(1e-300)).sum().item() / log(2)

    every = range(chain.LENGTH)
    halves = [[h, [i for i in every if i not in h]] for h in combinations(every, 4)]
    for rounds, choices in {1: [[every]], 2: halves, 8: [[[i] for i in every]]}.items():
        by_sum = torch.tensor(mean(map(divergence, choices)), dtype=torch.float64)
        by_formula = torch.tensor(chain.lost(rounds), dtype=torch.float64)
        claim = f"bits lost in {rounds} rounds: the formula, and {len(choices)} sums"
        check_close(claim, by_sum, by_formula, 1e-9)


# ---- words with several answers ------------------------------------------------------


def mixed(answers: Sequence[Sounds], length_known: bool) -> float:
    """Return how often sounds guessed at once are none of the ``answers``.

    Every answer is equally likely, and the guess at each position is as often a sound
    as the answers have it there.

    Args:
        answers: all right ones of a word.
        length_known: how many sounds it has is drawn first, together; otherwise the
            positions behind a short answer are guessed to be empty, each for itself.
    """
    longest, right = max(map(len, answers)), 0.0
    groups: dict[int, list[Sounds]] = {}
    for answer in answers:
        size = len(answer) if length_known else longest
        padded = answer + ("",) * (size - len(answer))
        groups.setdefault(size, []).append(padded)
    for group in groups.values():
        columns = [Counter(column) for column in zip(*group, strict=True)]
        chances = (
            prod(c[s] / len(group) for c, s in zip(columns, one, strict=True))
            for one in group
        )
        right += len(group) / len(answers) * sum(chances)
    return 1 - right


def mixing_table(words: Sequence[str]) -> Html:
    """Show how often a guess at once mixes the answers of words, and of all words."""
    several = {w: a for w, a in pronunciations().items() if len(a) > 1}
    rows = []
    for word in words:
        said = " or ".join(" ".join(answer) for answer in several[word])
        shares = (f"{mixed(several[word], known):.0%}" for known in (False, True))
        rows.append((word, said, *shares))
    ends = (
        sum(mixed(a, known) for a in several.values()) / len(several)
        for known in (False, True)
    )
    rows.append((f"all {len(several):,}", "", *(f"{share:.1%}" for share in ends)))
    return show_table(
        ("word", "right answers", "length unknown", "length known"),
        rows,
        "How often a guess at once is no right answer.",
    )


# ---- rounds --------------------------------------------------------------------------


def rounds_table(
    steps: Sequence[tuple[Tensor, Tensor]], symbols: Sequence[str], mask: int
) -> Html:
    """Show what each round read, masks as ■, and what it wrote, (t,) ids each."""
    said: Callable[[Tensor], str] = lambda ids: " ".join(  # noqa: E731
        "■" if i == mask else symbols[i] for i in ids.tolist()
    )
    rows = [(f"{i}", said(a), said(b)) for i, (a, b) in enumerate(steps, start=1)]
    return show_table(("round", "reads", "writes"), rows)


@torch.no_grad()
def check_rounds(
    refine: Callable, model: MaskedTransformer, cutter: Cutter, words: Sequence[str]
) -> None:
    """Prove that the page's ``refine`` is the module's, and two of its properties."""
    model = deepcopy(model).cpu().eval()  # where the page's tensors are
    for word in words:
        source = torch.tensor([cutter.source.encode(word)])
        memory, seen = model.encode(source)
        n = model.guess_length(memory, seen)[0].argmax()

        def guess(tokens: Tensor, memory=memory, seen=seen) -> Tensor:
            return model.decode(tokens[None], memory, seen)[0].softmax(dim=-1)

        def module(rounds: int, source=source, n=n) -> Tensor:
            return mask_predict(model, source, rounds=rounds, length=n[None]).tokens[0]

        for rounds in (1, 3, 4, 10):
            ours, _ = refine(guess, n.item(), rounds, model.mask)
            assert torch.equal(ours, module(rounds)), (word, rounds)
        masks = torch.full((int(n),), model.mask)
        assert torch.equal(guess(masks).argmax(dim=-1), module(1))
        written = masks
        for i in range(int(n)):
            written[i] = guess(written)[i].argmax()
        options = {"order": "blocks", "block": 1, "temperature": 0.0}
        alike = diffusion_sample(
            model, source, rounds=int(n), length=n[None], **options
        )
        assert torch.equal(alike.tokens[0], written)
    print(
        f"✓ `refine` writes what `mask_predict` writes: {len(words)} words, T 1 to 10"
    )
    print("✓ one round with nothing masked again is one forward pass")
    print("✓ one symbol a round from the left is greedy decoding of the same scores")


# ---- what it costs -------------------------------------------------------------------


def work_picture(n: int = 8, rounds: int = 4) -> Html:
    """Draw which positions each pass computes: one at a time, or all in few rounds."""
    drawing, cell = Drawing(350, 22 * n + 64), 19
    panels = {
        "symbol by symbol, cached": [[i] for i in range(n)],
        f"{rounds} rounds": [range(n)] * rounds,
    }
    for panel, (name, passes) in enumerate(panels.items()):
        left = 8 + 180 * panel
        drawing.text(left, 15, name, anchor="start", bold=True)
        for i, fresh in enumerate(passes):
            for j in range(n):
                look = {"shade": 0.75 if j in fresh else 0.0, "dashed": j not in fresh}
                if j in fresh or j < i:
                    drawing.frame(left + cell * j, 26 + 22 * i, cell - 3, 18, **look)
        work = sum(map(len, passes))
        words = f"{len(passes)} passes, {work} positions"
        drawing.text(left, 22 * n + 50, words, anchor="start", size=NOTE)
    return drawing.figure(
        alt=f"Left: {n} passes, each computes one position and reads those before it. "
        f"Right: {rounds} passes, each computes all {n} positions.",
        caption="A row for each pass of the decoder. Filled: computed. Dashed: read "
        "from a cache.",
    )


# ---- a word of the reader's ----------------------------------------------------------

FILE = "refinement_model.js"  # both models
SHA256 = "cc03c437f298a558079197a6a4d20f6269cd6d85c4a19e1ccc0298505685612a"
MASKED, CAUSAL = "in rounds", "symbol by symbol"
ORDERS = {"all, least sure again": "least sure", "surest first": "surest"}
ORDERS |= {"left to right": "blocks", "random": "random"}
LENGTHS = ["one shorter", "as guessed", "one longer"]


def models() -> tuple[MaskedTransformer, Transformer, Cutter]:
    """Return both models as a browser has them, and their cutter."""
    by_symbol, in_rounds = packed_script(FILE, SHA256).splitlines()
    masked, cutter = unpack_refiner(in_rounds)
    return masked, unpack_model(by_symbol)[0], cutter


def writer_data() -> dict:
    """Return what the explorer of words needs besides the models."""
    size = len(packed_script(FILE, SHA256).encode()) / 1e6
    return {
        "masked": MASKED,
        "causal": CAUSAL,
        "file": FILE,
        "button": f"Load both models ({size:.1f} MB)",
        "before": "The models are loaded when you ask for them, and run in your "
        "browser.",
        "missing": "They could not be loaded: they come with the pages of the book, "
        "not with its notebooks.",
        "orders": ORDERS,
        "lengths": LENGTHS,
        "most": 16,
        "room": 300,
    }


def writer() -> Html:
    """Show both recorded models: what a reader types, they pronounce pass by pass."""
    words = "angeline often thorrowmere through incomprehensible cat".split()
    return explorer(
        static("ch19/refiner.js") + static("ch19/rounds.js"),
        writer_data(),
        [
            Text("word", "word", words[0], words, most=16),
            Slider("rounds", "rounds", [1, 2, 3, 4, 6, 10], 4),
            Choice("order", "written", [*ORDERS]),
            Choice("length", "length", LENGTHS, LENGTHS[1]),
            Slider("passes", "passes so far", [*range(60)], 1),
        ],
        label="A word in rounds",
        checks=[({"word": word}, {"loaded": False}) for word in ("", "live")],
        question="Go through it pass by pass. Which sounds are doubted, and hidden "
        "again?",
        caption="A row for each round; filled squares are masks, tinted ones were "
        "written in it. Below: how sure it was (%), and the next best sound. A full "
        "stop ends a word.",
    )


def writer_answers() -> str:
    """Return what the recorded models write where the page asks for a prediction."""
    masked, causal, cutter = models()

    def said(word: str, rounds: int, more: int = 0) -> tuple[str, int]:
        source = torch.tensor([cutter.source.encode(word)])
        length = masked.guess_length(*masked.encode(source)).argmax(dim=1) + more
        found = mask_predict(masked, source, rounds=rounds, length=length)
        return f"`{' '.join(cutter.target.decode(found.tokens[0]))}`", int(length)

    def passes(word: str) -> str:
        source = torch.tensor([cutter.source.encode(word)])
        ends = {"start": 1, "end": 2, "max_new_tokens": 40}
        n, steps = said(word, 4)[1], cached_greedy_decode(causal, source, **ends)
        asked = len(mask_predict(masked, source, rounds=4).rounds)
        return (
            f"for `{word}` {asked} passes over {n} positions, {asked * n} in all, "
            f"against {steps.shape[1]} passes over one each"
        )

    def fate(parts: Sequence[str]) -> str:
        answers = pronunciations()["angeline"]
        if tuple(parts) in answers:
            return "one of the right answers"
        fits = len(parts) == len(answers[0])
        fits &= all(map(tuple.__contains__, zip(*answers, strict=True), parts))
        return "a mixture of the right answers" if fits else "no right answer"

    one, two, four = (said("angeline", rounds)[0] for rounds in (1, 2, 4))
    [by_symbol] = translate(causal, cutter, ["angeline"])
    shorter, longer = (said("angeline", 4, more)[0] for more in (-1, 1))
    return (
        f"1. One round writes {one}, two write {two}, four {four}: "
        f"{fate(four.strip('`').split())}. Symbol by symbol it's `{by_symbol}`, "
        f"{fate(by_symbol.split())}.\n"
        f"2. One shorter: {shorter}. One longer: {longer}. The length is a command, "
        "and the model obeys.\n"
        f"3. It depends on the clock: {passes('cat')}; {passes('incomprehensible')}. "
        "In passes, rounds win where words are long; look at what they write there. In "
        "work they lose, and your browser, which computes on one core, shows it in "
        "milliseconds."
    )
