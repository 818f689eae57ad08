"""The probe of a cache: reading in pieces gives what reading at once gives."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from annotated.probes._calls import (
    Broken,
    Failed,
    NotAsked,
    Subject,
    tensor_of,
    words,
)


class Reader:
    """A cache, however it is handed over."""

    def __init__(self, s: Subject):
        self.s, self.step, self.prefill = s, s.o.step, s.o.prefill
        self.state, self.length, self.begun = None, 0, False
        if (
            self.step is None
            and "past_key_values" in s.taken
            and ("use_cache" in s.taken or "cache_position" in s.taken)
            and s.kind == "causal"
        ):
            self.step = lambda tokens, state: self._own(tokens, state)
        if self.step is None:
            raise NotAsked("is there a cache? step= (and prefill=) would read with it")
        self.takes = _places(self.step)
        self.begins = 2
        if self.prefill is not None and s.kind == "translation":
            self.begins = min(2, _places(self.prefill))

    def _own(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        more = {} if state is None else {"past_key_values": state}
        out = self.s.f(tokens, use_cache=True, **more)
        return out.logits, out.past_key_values

    def begin(self) -> None:
        self.state, self.length, self.begun = None, 0, False

    def read(self, tokens: Tensor, inputs: tuple[Tensor, ...] | None = None) -> Tensor:
        """Return logits of new tokens, (b, n, v)."""
        first = not self.begun and self.prefill is not None
        self.begun = True
        call: Callable = self.prefill if first else self.step
        given = (tokens, self.state, self.length)[: self.takes]
        name = "prefill" if first else "step"
        texts = tuple(inputs or (tokens,)) if first else (tokens,)
        if first:
            texts = texts[: self.begins]
        rest = () if first else given[1:]
        out = self.s.call(texts, f=lambda *x: call(*x, *rest), plain=name)
        logits = tensor_of(out)
        both = isinstance(out, (tuple, list)) and len(out) > 1
        head = tensor_of(out[0]) if both else None
        if isinstance(head, Tensor) and head.dim() < 4:
            logits, self.state = head, out[1]
        elif hasattr(out, "past_key_values"):
            self.state = out.past_key_values
        elif first and not isinstance(out, Tensor) and not hasattr(out, "logits"):
            self.state = out  # the state alone
            self.length += tokens.shape[1] * (len(texts) == len(inputs or (tokens,)))
            return None
        self.length += tokens.shape[1]
        if not isinstance(logits, Tensor):
            raise Broken(
                f"{name} returned {type(out).__name__}, no logits, when called "
                f"with tokens of shape {tuple(tokens.shape)}"
            )
        return logits[:, None] if logits.dim() == 2 else logits

    def keep(self, rows: Tensor) -> bool:
        """Reorder rows of the state; False if nobody knows how."""
        if self.s.o.reorder is not None:
            self.state = self.s.o.reorder(self.state, rows)
            return True
        for name in ("keep", "reorder", "reorder_cache", "batch_select_indices"):
            if hasattr(self.state, name):
                made = getattr(self.state, name)(rows)
                self.state = self.state if made is None else made
                return True
        try:
            self.state = _take(self.state, rows)
        except TypeError:  # it isn't known which axis holds the rows
            return False
        return self.takes > 1


def _places(f: Callable) -> int:
    """Return how many arguments a function is given: tokens, state, number read."""
    try:
        call = f.forward if isinstance(f, nn.Module) else f
        every = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return 2
    if any(p.kind == p.VAR_POSITIONAL for p in every):
        return 2
    every = [p for p in every if p.kind in (0, 1)]
    third = every[2:3]
    if third and third[0].default is not inspect.Parameter.empty:
        known = ("start", "offset", "position", "pos", "length", "read")
        return 3 if third[0].name in known else 2
    return min(3, len(every))


def _take(state: Any, rows: Tensor) -> Any:
    if isinstance(state, Tensor):
        if state.numel() <= 1:
            return state
        if len(state) != len(rows):
            raise TypeError(words(state))
        return state[rows]
    if isinstance(state, dict):
        return {name: _take(x, rows) for name, x in state.items()}
    if isinstance(state, (tuple, list)):
        taken = [_take(x, rows) for x in state]
        named = hasattr(state, "_fields")
        return type(state)(*taken) if named else type(state)(taken)
    if state is None or isinstance(state, (int, float, bool)):
        return state
    raise TypeError(type(state).__name__)


def pieces(s: Subject, reader: Reader, inputs: tuple, sizes: list[int]):
    """Return the places and logits that reading in pieces gives."""
    reader.begin()
    text, at, n = inputs[-1], [], 0
    out = []
    for size in sizes:
        tokens = text[:, n : n + size]
        if not tokens.shape[1]:
            break
        logits = reader.read(tokens, (*inputs[:-1], tokens))
        if logits is None and not reader.length:  # it has seen the source alone
            logits = reader.read(tokens)
        if logits is None:
            n += tokens.shape[1]
            continue
        given = min(logits.shape[1], tokens.shape[1])
        at += range(n + tokens.shape[1] - given, n + tokens.shape[1])
        out.append(logits[:, -given:])
        n += tokens.shape[1]
    return at, torch.cat(out, 1) if out else None


def cache(s: Subject) -> str:
    """One token at a time, in pieces, and at once give the same."""
    if s.kind == "encoder":
        raise NotAsked("an encoder doesn't write, so there is nothing to keep")
    reader = Reader(s)
    if s.draws:
        raise NotAsked("it draws at random in evaluation: see modes and numbers")
    text = s.real()
    inputs = s.around(text, s.sources(len(text)))
    whole, t = s.call(inputs), text.shape[1]
    s.afford(3 * t + 20)
    ones = [1] * t
    half = [t // 2] + [1] * (t - t // 2)
    said, refused = [], []
    ways = [
        ("one token at a time", ones),
        ("half of it at once and the rest one at a time", half),
        ("pieces of 3", [3] * t),
        ("pieces of 7", [7] * t),
        ("pieces of 1, 3 and 7", [1, 3, 7] * t),
        ("a long prompt and a piece of 5", [t - 5, 5]),
        ("all at once", [t]),
    ]
    for name, sizes in ways:
        try:
            at, logits = pieces(s, reader, inputs, sizes)
        except Broken as error:
            if name == ways[0][0]:
                raise
            refused.append(f"{name} refused ({error})")
            continue
        if logits is not None:  # a prefill may give none
            _same(s, name, logits, whole[:, at], at, text)
            said.append(name)
    _again(s, reader, inputs, ones, whole)
    said.append(_beams(s, reader))
    short = tuple(x[:1] for x in inputs)
    at, logits = pieces(s, reader, short, ones)
    _same(
        s, "a batch of one after a larger one", logits, s.call(short)[:, at], at, text
    )
    return "; ".join(
        filter(None, [f"{', '.join(said[:-1])}: all the same", said[-1], *refused])
    )


def _same(s: Subject, name: str, logits: Tensor, wanted: Tensor, at: list[int], text):
    if logits.shape != wanted.shape:
        raise Failed(
            f"{name}: step gives logits of shape {tuple(logits.shape)} and "
            f"{s.name} {tuple(wanted.shape)}",
            None,
            text[0].tolist(),
        )
    gap = s.apart(logits, wanted)
    if gap > 1:
        moved = s.moved(logits, wanted)
        wrong = (moved > s.tolerance * s.scale).any(0)
        i = int(wrong.nonzero()[0])
        row = int(moved[:, i].argmax())
        raise Failed(
            f"{name}: logit {at[i]} is the first that isn't what it is at once, by "
            f"{moved[:, i].max():.2g} ({int(wrong.sum())} of {len(at)} differ)",
            (at[i], row),
            text[row, : at[i] + 1].tolist(),
        )


def _again(s: Subject, reader: Reader, inputs, sizes, whole) -> None:
    """Raise if a text that was read before leaves something behind."""
    new = s.around(s.other(inputs[-1], number=31), inputs[0])
    at, logits = pieces(s, reader, new, sizes)
    _same(s, "another text after that", logits, s.call(new)[:, at], at, new[-1])


def _beams(s: Subject, reader: Reader) -> str:
    """Reorder the rows half way, as a beam search does."""
    n = 5  # seldom a number of layers: the axis of rows is known by its length
    text = s.real(rows=n)
    half, inputs = text.shape[1] // 2, s.around(text, s.sources(n))
    rows = torch.arange(n, device=text.device).roll(1)
    rows[-1] = rows[0]  # one beam goes on twice, another ends
    pieces(s, reader, inputs, [1] * half)
    if not reader.keep(rows):
        return "beams not asked: reorder= would say how rows of the state are taken"
    mixed = torch.cat([text[rows, :half], text[:, half:]], 1)
    wanted = s.call((*(x[rows] for x in inputs[:-1]), mixed))
    out = [reader.read(mixed[:, i : i + 1]) for i in range(half, text.shape[1])]
    at = list(range(half, text.shape[1]))
    _same(s, "beams in another order", torch.cat(out, 1), wanted[:, at], at, mixed)
    return "beams in any order"


def standing_still(s: Subject) -> None:
    """Raise if positions stand still, or run ahead, while a cache decodes."""
    if s.kind == "encoder":
        return
    try:
        reader = Reader(s)
    except NotAsked:
        return
    t = min(s.text.shape[1], 12)
    text = s.real(rows=1)[:, :1].expand(s.rows, t)  # nothing but positions differs
    inputs = s.around(text)
    s.afford(t + 2)
    at, logits = pieces(s, reader, inputs, [1] * t)
    _same(s, "equal tokens, one at a time", logits, s.call(inputs)[:, at], at, text)
    rows = s.real(rows=2)[:, :t]
    rows[1] = torch.cat([rows[0, : t - 1].flip(0), rows[0, t - 1 :]])
    inputs = s.around(rows)
    at, logits = pieces(s, reader, inputs, [1] * t)
    whole = s.call(inputs)
    cached, once = (s.apart(x[:1, -1], x[1:, -1]) for x in (logits, whole))
    if s.apart(logits, whole[:, at]) > 1 and once > 1 and cached < once / 2:
        raise Failed(
            "read one token at a time, the order of earlier tokens matters "
            f"{f'{cached / once:.0%} as much as' if cached > 1 else 'not, other than'} "
            "at once: positions stand still",
            (t - 1, 0),
            rows.tolist(),
        )
