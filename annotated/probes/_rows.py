"""Probes of rows and pieces: batches, padding, packed documents, and caches."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from annotated.probes._calls import (
    Broken,
    Failed,
    NotAsked,
    Subject,
    tensor_of,
    words,
)
from annotated.probes._reading import _among_rows

# ---- batch ---------------------------------------------------------------------------


def batch(s: Subject) -> str:
    """Another row, another order of rows, and a batch of one change nothing."""
    return s.finer(_batch)


def _batch(s: Subject) -> str:
    text = s.real(rows=max(3, s.rows))
    n = len(text)
    sources = _sources(s, n)
    base = s.run(text, sources)
    for others, what in (
        (s.other(text, number=11), "other tokens in the other rows"),
        (text[:1].expand_as(text).clone(), "copies of row 0 as the other rows"),
    ):
        others[0] = text[0]
        said = sources
        if sources is not None:
            said = s.other(sources, s.source_ids, 12)
            said[0] = sources[0]

        def gaps(new=others, said=said) -> Tensor:
            return s.moved(s.run(text, sources), s.run(new, said))[:1]

        gap = s.exact(gaps(), gaps)
        if gap.any():
            share = (gap > 0).float().mean().item()
            some = f"{int((gap > 0).sum())} of its {gap.numel()} logits move: "
            some += "a capacity of experts moves some" if 0 < share < 0.7 else ""
            raise Failed(
                f"{what} move row 0 by {gap.max():.2g} ({some.rstrip(': ')})"
                f"{_among_rows(s)}",
                (0, int(gap[0].argmax())),
                (text.tolist(), others.tolist()),
            )
    order = torch.arange(n).roll(1)
    permuted = s.run(text[order], None if sources is None else sources[order])
    gap = s.apart(permuted, base[order])
    if gap > 1:
        row = int(s.moved(permuted, base[order]).amax(1).argmax())
        raise Failed(
            f"rows in another order: row {row} gets other logits "
            f"(by {gap * s.tolerance * s.scale:.2g}){_among_rows(s)}",
            (row,),
            (text.tolist(), text[order].tolist()),
        )
    for row in range(n):
        one = s.run(text[row : row + 1], None if sources is None else sources[[row]])
        gap = s.apart(one, base[row : row + 1])
        if gap > 1:
            raise Failed(
                f"row {row} alone gives other logits than in a batch of {n} "
                f"(by {gap * s.tolerance * s.scale:.2g}){_among_rows(s)}",
                (row,),
                (text[row].tolist(), text.tolist()),
            )
    if s.o.pad is not None:
        _ragged(s)
    return f"{n} rows, in any order and alone: no row moves another"


def _sources(s: Subject, n: int) -> Tensor | None:
    """Return different sources, (n, s), of a translation."""
    if s.kind != "translation":
        return None
    given = s.inputs[0]
    drawn = s.draw(n, given.shape[1], of=s.source_ids, number=13)
    drawn[: len(given)] = given[:n]
    wrong = torch.isin(drawn, drawn.new_tensor(sorted(s.special), dtype=drawn.dtype))
    return torch.where(wrong, s.draw(*drawn.shape, of=s.source_ids, number=14), drawn)


# ---- padding -------------------------------------------------------------------------


def padding(s: Subject) -> str:
    """More padding moves no logit of a real token, and a batch equals its rows."""
    pad = s.o.pad
    if pad is None:
        raise NotAsked("which id is padding? pad= would say")
    if s.scorer and s.first.dim() == 1:
        raise NotAsked("scores of whole texts")
    return s.finer(_padding)


def _padding(s: Subject) -> str:
    said, text = [], s.real()
    sources = _sources(s, len(text))
    for n in (1, 3, 8):
        _padded(s, text, sources, n, "behind")
    said.append("padding behind moves nothing")
    _ragged(s)
    given = s.o.positions
    wanted = s.kind == "causal" or (given not in (None, False, "set", "none"))
    if wanted:
        try:
            for n in (1, 3, 8):
                _padded(s, text, sources, n, "in front")
            _ragged(s, front=True)
            said.append("nor in front")
        except Broken as error:
            said.append(f"padding in front was refused ({error})")
    else:
        said.append(
            "in front not asked: positions= would say that they count from the "
            "first real token"
        )
    said.append(_empty_row(s, text, sources))
    return "; ".join(filter(None, said))


def _pads(x: Tensor, n: int, pad: int, front: bool = False) -> Tensor:
    pads = x.new_full((len(x), n), pad)
    return torch.cat([pads, x] if front else [x, pads], 1)


def _padded(
    s: Subject, text: Tensor, sources: Tensor | None, n: int, side: str
) -> None:
    front, pad = side == "in front", s.o.pad
    if s.kind == "translation":
        cases = [
            ("source", text, _pads(sources, n, pad, front)),
        ]
        if not front:
            cases.append(("target", _pads(text, n, pad), sources))
    else:
        cases = [("text", text, None)]
    for name, target, source in cases:
        if s.kind != "translation":
            short = text[:, : text.shape[1] - n] if text.shape[1] > n + 1 else text
            base, new = s.run(short), s.run(_pads(short, n, pad, front))
            if base.dim() > 2 or s.scorer:
                new = new[:, n:] if front else new[:, : short.shape[1]]
        else:
            short = text if name == "target" else source
            base, new = s.run(text, sources), s.run(target, source)[:, : text.shape[1]]
        gap = s.apart(new, base)
        if gap > 1:
            moved = s.moved(new, base)
            row, i = divmod(int(moved.argmax()), moved.shape[1])
            many = int((moved > s.tolerance * s.scale).sum())
            raise Failed(
                f"{n} × padding {side} of the {name} moves logits of real tokens: "
                f"logit {i} of row {row} by {moved.max():.2g}, {many} in all",
                (row, i),
                (short[row].tolist(), _pads(short[[row]], n, pad, front)[0].tolist()),
            )


def _ragged(s: Subject, front: bool = False) -> None:
    """Raise if rows of several lengths in a batch aren't what they are alone."""
    text, pad = s.real(rows=max(3, s.rows)), s.o.pad
    sources, n = _sources(s, len(text)), len(text)
    varied = text if sources is None else sources
    t = varied.shape[1]
    lengths = [max(1, t - (row * (t - 1)) // n) for row in range(n)]
    lengths = lengths[1:] + lengths[:1]  # row 0 has padding, too
    rows = [varied[i : i + 1, :length] for i, length in enumerate(lengths)]
    padded = torch.cat([_pads(x, t - x.shape[1], pad, front) for x in rows])
    together = s.run(padded) if sources is None else s.run(text, padded)
    for i, row in enumerate(rows):
        alone = s.run(row) if sources is None else s.run(text[i : i + 1], row)
        mine = together[i : i + 1]
        if sources is None and (alone.dim() > 2 or s.scorer):
            mine = mine[:, t - row.shape[1] :] if front else mine[:, : row.shape[1]]
        gap = s.apart(alone, mine)
        if gap > 1:
            raise Failed(
                f"row {i} of {lengths[i]} tokens, padded {'in front' if front else ''}"
                f"{'' if front else 'behind'} in a batch of lengths {lengths}, gives "
                f"other logits than alone (by {gap * s.tolerance * s.scale:.2g})",
                (i, int(s.moved(alone, mine)[0].argmax())),
                (row[0].tolist(), padded.tolist()),
            )


def _empty_row(s: Subject, text: Tensor, sources: Tensor | None) -> str:
    """Raise if a row of padding alone gives NaN."""
    varied = (text if sources is None else sources).clone()
    varied[-1] = s.o.pad
    try:
        out = s.run(varied) if sources is None else s.run(text, varied)
    except Broken as error:
        return f"a row of padding alone was refused ({error})"
    if out.isnan().any():
        slow = s.call(
            s.around(varied) if sources is None else (varied, text), grad=True
        )
        if not slow.isnan().any():
            return "a row of padding alone gives NaN by PyTorch's fast path alone"
        row = int(out.flatten(1).isnan().any(1).nonzero()[0])
        raise Failed("a row of padding alone gives NaN", (row, 0), varied.tolist())
    return "a row of padding alone gives no NaN"


# ---- packing -------------------------------------------------------------------------


def packing(s: Subject) -> str:
    """The second document of a row is read as if alone."""
    how = s.o.segments
    if how is None or how is False:
        raise NotAsked("is a row told of several documents? segments= would say how")
    if s.kind == "translation":
        raise NotAsked("packed translations aren't known to these probes")
    return s.finer(_packing)


def _packing(s: Subject) -> str:
    text = s.real()
    t = text.shape[1]
    cuts = sorted({1, t // 4, t // 2, 2 * t // 3} - {0, t})
    for cut in cuts:
        first, second = text[:, :cut], text[:, cut:]
        kept = [("second", cut, second, slice(cut, None))]
        if s.kind == "encoder":
            kept.append(("first", 0, first, slice(0, cut)))
        for name, start, part, place in kept:
            other = s.other(text, number=21)
            other[:, place] = part
            base = _packed(s, text, [cut, t - cut])
            new = _packed(s, other, [cut, t - cut])
            if base.dim() < 3 and not s.scorer:
                raise NotAsked("outputs are of whole rows, not of documents")
            moved = s.moved(base, new)[:, place]
            if moved.any():
                row, i = divmod(int(moved.argmax()), moved.shape[1])
                raise Failed(
                    f"another document in the row moves the {name} one: logit "
                    f"{start + i} by {moved.max():.2g} ({cut} and {t - cut} tokens)",
                    (start + i, 0 if start else cut),
                    (text[row].tolist(), other[row].tolist()),
                )
            alone = _packed(s, part, [part.shape[1]])
            gap = s.apart(base[:, place], alone)
            if gap > 1:
                raise Failed(
                    f"the {name} document ({cut} and {t - cut} tokens) sees no other, "
                    "but gives other logits than alone: its positions don't start anew "
                    f"(by {gap * s.tolerance * s.scale:.2g})",
                    (start, start),
                    (text[0].tolist(), part[0].tolist()),
                )
    third = [t // 3, t // 3, t - 2 * (t // 3)]
    if min(third) > 0:
        whole, last = _packed(s, text, third), text[:, 2 * (t // 3) :]
        gap = s.apart(whole[:, 2 * (t // 3) :], _packed(s, last, [last.shape[1]]))
        if gap > 1:
            raise Failed(
                "the last of three documents gives other logits than alone",
                (2 * (t // 3), 0),
                (text[0].tolist(), last[0].tolist()),
            )
    return f"documents cut at {', '.join(map(str, cuts))} are read as if alone"


def _packed(s: Subject, text: Tensor, lengths: list[int]) -> Tensor:
    """Return logits of rows that hold documents of these lengths."""
    how = s.o.segments
    if type(how) is int:  # the id that ends a document; it belongs to the one it ends
        text, ends = text.clone(), torch.tensor(lengths).cumsum(0)[:-1] - 1
        text[:, ends] = how
        return s.run(text)
    numbers = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    numbers = numbers.to(text.device).expand(text.shape)
    if callable(how):
        return s.call((text,), f=lambda x, **_: how(x, numbers))
    names = ("segments", "documents", "document_ids", "segment_ids", "seq_idx")
    name = (
        how if isinstance(how, str) else next((n for n in names if n in s.taken), None)
    )
    return s.run(text, **{name or "segments": numbers})


# ---- cache ---------------------------------------------------------------------------


class Reader:
    """A cache, however it is handed over."""

    def __init__(self, s: Subject):
        self.s, self.step, self.prefill = s, s.o.step, s.o.prefill
        self.state, self.length = None, 0
        if (
            self.step is None
            and "past_key_values" in s.taken
            and ("use_cache" in s.taken or "cache_position" in s.taken)
            and s.kind == "causal"
        ):
            self.step = lambda tokens, state: self._own(tokens, state)
        if self.step is None:
            raise NotAsked("is there a cache? step= (and prefill=) would read with it")
        try:
            wanted = [
                p
                for p in inspect.signature(self.step).parameters.values()
                if p.default is p.empty and p.kind in (0, 1)
            ]
            self.takes = max(1, min(len(wanted), 3))
            if not wanted or any(
                p.kind == 2 for p in inspect.signature(self.step).parameters.values()
            ):
                self.takes = 2
        except (TypeError, ValueError):
            self.takes = 2

    def _own(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        more = {} if state is None else {"past_key_values": state}
        out = self.s.f(tokens, use_cache=True, **more)
        return out.logits, out.past_key_values

    def begin(self) -> None:
        self.state, self.length = None, 0

    def read(self, tokens: Tensor, inputs: tuple[Tensor, ...] | None = None) -> Tensor:
        """Return logits of new tokens, (b, n, v)."""
        first = self.length == 0 and self.prefill is not None
        call: Callable = self.prefill if first else self.step
        given = (tokens, self.state, self.length)[: self.takes]
        name = "prefill" if first else "step"
        texts = tuple(inputs or (tokens,)) if first else (tokens,)
        rest = () if first else given[1:]
        out = self.s.call(texts, f=lambda *x: call(*x, *rest), plain=name)
        logits = tensor_of(out)
        if isinstance(out, (tuple, list)) and len(out) > 1:
            logits, self.state = tensor_of(out[0]), out[1]
        elif hasattr(out, "past_key_values"):
            self.state = out.past_key_values
        elif first and not isinstance(out, Tensor) and not hasattr(out, "logits"):
            self.state = out  # a cache that is made, and has read nothing
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
        if logits is None:
            logits = reader.read(tokens)
        given = min(logits.shape[1], tokens.shape[1])
        at += range(n + tokens.shape[1] - given, n + tokens.shape[1])
        out.append(logits[:, -given:])
        n += tokens.shape[1]
    return at, torch.cat(out, 1)


def cache(s: Subject) -> str:
    """One token at a time, in pieces, and at once give the same."""
    if s.kind == "encoder":
        raise NotAsked("an encoder doesn't write, so there is nothing to keep")
    reader = Reader(s)
    text = s.real()
    inputs = s.around(text, _sources(s, len(text)))
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
    half, inputs = text.shape[1] // 2, s.around(text, _sources(s, n))
    rows = torch.arange(n, device=text.device).roll(1)
    rows[-1] = rows[0]  # one beam goes on twice, another ends
    pieces(s, reader, inputs, [half // 2] + [1] * (half - half // 2))
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
