"""A walk through one prediction: an explorer that shows a trace step by step."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from markupsafe import Markup, escape
from torch import Tensor, nn

from annotated import require
from annotated.page.frames import Html, Slider, explorer, pack, static, unpack
from annotated.trace import Step, trace

MOST_BYTES = 300_000
MOST_COLUMNS = 128  #: of a picture; of a wider value every second, third … is shown
BEST = 10  #: of the logits
SHOWN = 5  #: numbers that are written out for the chosen position
CAPTION = (
    "Step with the buttons, the slider, or the arrow keys inside the drawing; the map "
    "jumps to a part of the model. Tap a row to follow its position."
)

#: what an operation does, in words; the numbers are those of its model
WORDS = {
    "token vectors": "Each token's id picks one row of the table E: {last} numbers "
    "for each position.",
    "scaled vectors": "Every number is multiplied by √{last}.",
    "vectors with positions": "Each position adds a vector of its own, so that order "
    "counts.",
    "norm": "Each position by itself: its {last} numbers are scaled to a common size.",
    "queries": "Each position asks: {heads} heads × {width} numbers.",
    "keys": "Each position says what it offers: {own} heads × {width} numbers.",
    "values": "Each position says what it would hand over: {own} heads × {width} "
    "numbers.",
    "turned queries": "Each pair of numbers is turned by an angle that grows with the "
    "position.",
    "turned keys": "Keys are turned by the same angles, so that a score depends on "
    "the distance.",
    "shared turned keys": "Each head of keys serves {shared} heads of queries.",
    "shared keys": "Each head of keys serves {shared} heads of queries.",
    "shared values": "Each head of values serves {shared} heads of queries.",
    "scaled queries": "Dividing by √{width} keeps scores from growing with the width.",
    "scores": "Every query meets every key: one number for each pair, in each head.",
    "visible scores": "A key that a position may not see gets −∞ (hatched).",
    "weights": "Each row becomes shares that sum to 1: how much a position takes from "
    "each of the others.",
    "weighted sum": "Each position collects values, in the shares of its weights.",
    "attention's output": "One map mixes what {heads} heads found into {last} numbers.",
    "stream": "What was found is added to the stream: {last} numbers for each "
    "position.",
    "inner numbers": "Each position by itself: {before} numbers become {last}.",
    "gates": "Each position by itself: {before} numbers become {last} gates.",
    "open gates": "A gate far below 0 closes; one far above 0 lets its number through.",
    "gated numbers": "Each inner number is multiplied by its gate.",
    "activations": "What is negative is held back.",
    "network's output": "{before} numbers become {last} again: what the network found.",
    "logits": "One number for each of {last} tokens: how well it fits as the next one.",
}


# ---- formulas --------------------------------------------------------------------

SIGNS = {
    "top": "⊤", "odot": "⊙", "leftarrow": "←", "infty": "∞", "lceil": "⌈",
    "rceil": "⌉", "sum": "∑",
}  # fmt: skip
NAMES = {
    "Phi": "Φ", "mu": "μ", "sigma": "σ", "varepsilon": "ε", "pi": "π",
    "exp": "exp", "max": "max", "tanh": "tanh",
}  # fmt: skip
TOKEN = re.compile(
    r"\\(?:text|mathrm)\{[^}]*\}|\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|[^\W\d_]|\S"
)


def mathml(latex: str) -> Markup:
    """Return a formula as MathML, which browsers draw without a script.

    Args:
        latex: what the equations of a trace are made of: letters, numbers, signs,
            indices and powers, fractions, roots, hats and texts.

    Raises:
        ValueError: if it holds a command that isn't among these, doesn't close what it
            opens, or breaks off.
    """
    tokens = TOKEN.findall(latex)[::-1]
    closed = tokens.count("{") == tokens.count("}")
    require.that(closed, f"latex must close what it opens, got {latex!r}")
    row = _row(tokens)
    return Markup(f'<math displaystyle="true">{row}</math>')


def _row(tokens: list[str], end: str = "") -> str:
    parts = []
    while tokens and tokens[-1] != end:
        base = tokens[-1]
        made = _atom(tokens)
        marks = {}
        while tokens and tokens[-1] in "_^":
            mark = tokens.pop()
            marks[mark] = _atom(tokens)
        under, over = marks.get("_", ""), marks.get("^", "")
        kind = "sub" * bool(under) + "sup" * bool(over)
        kind = "under" if base == r"\sum" else kind
        parts.append(f"<m{kind}>{made}{under}{over}</m{kind}>" if marks else made)
    if end:
        tokens.pop()
    return f"<mrow>{''.join(parts)}</mrow>"


def _atom(tokens: list[str]) -> str:
    require.that(tokens, "latex must go on after its last mark or command")
    token = tokens.pop()
    if token == "{":
        return _row(tokens, "}")
    if found := re.match(r"\\(?:text|mathrm)\{(.*)\}", token):
        return f"<mtext>{escape(found[1]).replace(' ', chr(160))}</mtext>"
    if not token.startswith("\\"):
        kind = "mi" if token.isalpha() else "mn" if token[0].isdigit() else "mo"
        form = ' stretchy="false"' if token in "()[]" else ""
        token = {"-": "−", "'": "′"}.get(token, token)
        return f"<{kind}{form}>{escape(token)}</{kind}>"
    command = token[1:]
    if command == ",":
        return '<mspace width="0.17em"></mspace>'
    if command == "frac":
        return f"<mfrac>{_atom(tokens)}{_atom(tokens)}</mfrac>"
    if command == "sqrt":
        return f"<msqrt>{_atom(tokens)}</msqrt>"
    if command in ("hat", "overline"):
        sign = "^" if command == "hat" else "‾"
        return f"<mover accent='true'>{_atom(tokens)}<mo>{sign}</mo></mover>"
    require.choice([*SIGNS, *NAMES], command=command)
    if command in SIGNS:
        return f"<mo>{SIGNS[command]}</mo>"
    return f"<mi>{NAMES[command]}</mi>"


# ---- the trace, packed -----------------------------------------------------------


def trace_walk(
    model: nn.Module,
    *inputs: Tensor,
    names: Sequence[Sequence[str]],
    label: str = "One prediction, step by step",
    question: str | None = None,
) -> Html:
    """Show every step of one prediction: its place, equation, source and values.

    Args:
        model: as in :func:`~annotated.trace.trace`.
        inputs: its token ids, of one sequence each, ``(1, t)``.
        names: for each input, what each id of its vocabulary is called; the last of
            them names the logits too.

    Raises:
        ValueError: if there aren't as many names as inputs, if an input holds several
            sequences, or if the page would need over 300 kB.
    """
    require.that(
        len(names) == len(inputs),
        f"names must be one list for each input, got {len(names)} and {len(inputs)}",
    )
    for tokens in inputs:
        require.that(
            len(tokens) == 1, f"inputs must be one sequence each, got {len(tokens)}"
        )
    steps = trace(model, *inputs)
    tokens = [
        [vocabulary[i] for i in ids[0].tolist()]
        for vocabulary, ids in zip(names, inputs, strict=True)
    ]
    items = list(_items(steps, names[-1]))
    cards = [_card(step, steps) for step in steps]
    unlike = [card for i, card in enumerate(cards) if card not in cards[:i]]
    for item, card in zip(items, cards, strict=True):
        item["card"] = unlike.index(card)  # the same in every layer
    data = {"tokens": tokens, "steps": items, "cards": unlike, "shown": SHOWN}
    size = len(json.dumps(data))
    require.that(
        size <= MOST_BYTES,
        f"the trace must fit into {MOST_BYTES:,} bytes, got {size:,}: shorten the text",
    )
    maps = [item for item in items if item["kind"] == "map"]
    heads = max((item["value"]["shape"][0] for item in maps), default=1)
    longest = max(map(len, tokens))
    first = next((i for i, s in enumerate(steps, 1) if s.operation == "weights"), 1)
    state = {"position": longest, "head": 1}
    checks = [
        (state | {"step": i}, values_of(item, tokens, longest, 1))
        for i, item in enumerate(items, 1)
    ]
    return explorer(
        static("ch16/trace_walk.js"),
        data,
        [
            Slider("step", f"step, of {len(steps)}", range(1, len(steps) + 1), first),
            Slider("position", "position", range(1, longest + 1), longest),
            Slider("head", "head", range(1, heads + 1), 1),
        ],
        label=label,
        checks=checks,
        question=question,
        caption=CAPTION,
    )


def values_of(
    item: dict[str, Any], tokens: list[list[str]], position: int, head: int
) -> dict[str, Any]:
    """Return what the explorer has to show of one step.

    Args:
        position: the chosen position, from 1; the last one if there are fewer.
        head: the chosen head, from 1.
    """
    row = min(position, len(tokens[item["rows"]])) - 1
    if item["kind"] == "logits":
        return {"numbers": [chance for _, chance in item["best"][row]]}
    value = unpack(item["value"])
    if item["kind"] == "map":
        numbers = value[min(head, len(value)) - 1, row]
    else:
        numbers = value[row, :SHOWN]
    return {"numbers": [float(number) for number in numbers]}


def _items(steps: list[Step], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield where each step is, whose tokens it is about, and its picture."""
    sides: list[tuple[int, int]] = []  # whose tokens a value's rows and columns are
    inputs = 0
    for step in steps:
        if step.reads:
            rows, columns = sides[step.reads[0]]
            if step.operation == "scores":
                columns = sides[step.reads[1]][0]
        else:
            rows = columns = inputs
            inputs += step.operation == "token vectors"
        sides.append((rows, columns))
        whose = {"place": step.place, "rows": rows, "columns": columns}
        yield whose | _picture(step, names)


def _card(step: Step, steps: list[Step]) -> dict[str, Any]:
    """Return what stands above the picture of a step."""
    return {
        "title": step.operation[0].upper() + step.operation[1:],
        "words": words_of(step, steps),
        "math": mathml(step.equation),
        "symbol": mathml(step.symbol),
        "file": f"{step.source.file}, line {step.source.line}",
        "code": step.source.text.partition(step.source.part),
        "given": " and ".join(map(_shape, step.shapes)),
        "shape": _shape(step.value.shape),
    }


def _shape(shape: Sequence[int]) -> str:
    """Return a shape without the batch, which is of one sequence."""
    return f"({', '.join(map(str, shape[1:]))}{',' * (len(shape) == 2)})"


def _picture(step: Step, names: Sequence[str]) -> dict[str, Any]:
    value = step.value[0].double()
    if step.operation == "logits":
        chances, best = value.softmax(-1).topk(min(BEST, value.shape[-1]))
        pairs = zip(best.tolist(), chances.tolist(), strict=True)
        rows = [
            [[names[i], round(p, 5)] for i, p in zip(*one, strict=True)]
            for one in pairs
        ]
        return {"kind": "logits", "best": rows}
    if step.operation in ("scores", "visible scores", "weights"):
        hidden = value == -torch.inf
        rows = ["".join("01"[x] for x in row) for row in hidden.any(0).tolist()]
        packed = pack(value.masked_fill(hidden, 0.0))
        return {"kind": "map", "value": packed, "hidden": rows}
    groups = 1
    if value.dim() == 3:  # (h, t, k), side by side
        groups = len(value)
        value = value.transpose(0, 1).flatten(1)
    every = -(-value.shape[-1] // MOST_COLUMNS)
    shown = value[:, ::every]
    top = float(shown.abs().quantile(0.98)) or 1.0
    return {
        "kind": "rows", "value": pack(shown), "groups": groups, "every": every,
        "width": value.shape[-1], "top": float(f"{top:.3g}"),
    }  # fmt: skip


def words_of(step: Step, steps: list[Step]) -> str:
    """Return what a step does, in words; nothing if its operation has none."""
    beside = [one for one in steps if one.place == step.place]
    heads = [one.value.shape[1] for one in beside if one.operation == "weights"]
    last, before = step.value.shape[-1], step.shapes[0][-1]
    count = heads[0] if heads else 1
    queries = [one.value.shape[-1] for one in beside if one.operation == "queries"]
    width = queries[0] // count if queries else last
    shared = step.value.shape[1] // step.shapes[0][1] if step.value.dim() == 4 else 1
    if step.operation == "shared values":  # that came in one piece
        shared = count // (before // width)
    return WORDS.get(step.operation, "").format(
        last=last, before=before, heads=count, width=width, own=last // width,
        shared=shared,
    )  # fmt: skip
