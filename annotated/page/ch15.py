"""Chapter 15, BERT: its drawings, tables, and what is measured live."""

from typing import Any

import torch
from torch import Tensor

from annotated.bert import Bert
from annotated.functions import tokens_of
from annotated.page.frames import Choice, Html, Switch, explorer, static
from annotated.page.frames import Text as Field
from annotated.page.packed import pack_bert, unpack_bert
from annotated.recipes.pretraining import Tokens
from annotated.training import evaluating

# ---- guess what is hidden --------------------------------------------------------

HIDDEN = "?"  # as it is typed: no token of Python's
BEST = 5  # guesses that are shown of each
ORDERS = ["neither", "number 1", "number 2", "the surer one"]
HIDING = {  # lines, and what is hidden in them
    "if source ? ? None:\n    return source": ("is", "not"),
    "if source is ? ?:\n    return source": ("not", "None"),
    "def __exit__(self, *?):\n    self.close(*?)": ("args", "args"),
    "def f(*args, **?):\n    g(*args, **?)": ("kwargs", "kwargs"),
    "try:\n    return data[key]\n? ?:\n    return None": ("except", "KeyError"),
    "if x < 0:\n    raise ?('bad')": ("ValueError",),
}


def guessed(model: Bert, words: Tokens, text: str, order: str) -> dict[str, Any]:
    """Return what a model makes of a ``text``, as the explorer does.

    Args:
        model: a trained one.
        words: that it knows.
        text: lines of Python, with ``HIDDEN`` for one or two tokens.
        order: which of two is filled in first, one of ``ORDERS``.

    Returns:
        ``"tokens"``, which of them are ``"unknown"``, and the best ``"guesses"`` for
        each hidden one, with their chances. Where one of two is filled in, its number
        is ``"first"``; ``"again"`` are then the guesses for the other one, ``"kept"``
        the chance that is left to what was its best guess, and ``"changed"`` says
        whether another one is best.
    """
    name = "_hidden_"
    tokens = tokens_of(text.replace(HIDDEN, name))
    tokens = tuple(HIDDEN if token == name else token for token in tokens)
    ids = torch.tensor(words.row(tokens))
    hidden = [i for i, token in enumerate(tokens) if token == HIDDEN]
    ids[hidden] = words.mask

    def chances() -> Tensor:
        with evaluating(model):
            logits = model.guess_tokens(model(ids[None]))[0]
        logits[:, list(words.special)] = -torch.inf  # they are never an answer
        return logits.softmax(dim=-1)

    def best(row: Tensor) -> list[tuple[str, float]]:
        values, places = row.topk(BEST)
        symbols = [words.symbols[i] for i in places.tolist()]
        return list(zip(symbols, values.tolist(), strict=True))

    at_once = chances()[hidden]
    found = {
        "tokens": tokens,
        "unknown": (ids == words.unknown).tolist(),
        "guesses": [best(row) for row in at_once],
        "first": None,
    }
    if len(hidden) == 2 and order != ORDERS[0]:
        sure, guess = at_once.max(dim=-1)
        first = sure.argmax().item() if order == ORDERS[3] else ORDERS.index(order) - 1
        ids[hidden[first]] = guess[first]
        again = chances()[hidden[1 - first]]
        before = guess[1 - first]
        found |= {"first": first, "again": best(again), "kept": again[before].item()}
        found["changed"] = again.argmax().item() != before.item()
    return found


def mask_guesser(model: Bert, words: Tokens) -> Html:
    """Show a BERT that guesses what a reader hides in lines of Python.

    Args:
        model: a trained one; it comes with the page, in eight bits a number.
        words: that it knows.
    """
    packed = pack_bert(model, words)
    rounded, _ = unpack_bert(packed)
    rounded.double()
    texts = [*HIDING]
    data = {
        "model": packed,
        "orders": ORDERS,
        "best": BEST,
        "known": [{"text": text, "hidden": HIDING[text]} for text in texts],
        "letters": 400,
        "room": 230,
    }
    states = [(texts[0], order) for order in ORDERS]
    states += [(text, ORDERS[1 + i % 3]) for i, text in enumerate(texts[1:])]
    checks = [
        ({"text": text, "order": order}, guessed(rounded, words, text, order))
        for text, order in states
    ]
    return explorer(
        static("mask_guesser.js"),
        data,
        [
            Field(
                "text",
                "Python, with a ? for each hidden token",
                texts[0],
                texts,
                most=data["letters"],
                code=True,
            ),
            Choice("order", "fill in first", ORDERS),
            Switch("shown", "show what stood there"),
        ],
        label="Guess hidden tokens",
        checks=checks,
        question="Hide two tokens that must agree. Do the two best guesses agree when "
        "both are guessed at once?",
        caption="Our BERT in your browser, each number rounded to eight bits. It reads "
        "any number as 0 and any string as “…”. Among its guesses ⏎ ends a line, ⇥ and "
        "⇤ begin and end an indented block. Dashed: a token that it doesn't know.",
    )
