"""Probes of rows: batches, padding, and packed documents."""

import torch
from torch import Tensor

from annotated.probes._calls import (
    TOLERANCE,
    Broken,
    Failed,
    NotAsked,
    Subject,
)
from annotated.probes._future import embedded, experts_hint

# ---- batch ---------------------------------------------------------------------------


def batch(s: Subject) -> str:
    """Another row, another order of rows, and a batch of one change nothing."""
    _others(s)
    return s.finer(_permuted)


def _others(s: Subject) -> None:
    """Raise if what stands in other rows moves row 0."""
    text = s.real(rows=max(3, s.rows))
    n = len(text)
    sources = s.sources(n)
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

        gap = s.exact(gaps(), gaps, lambda: _slopes_of_others(s, text))
        if gap.any():
            raise Failed(
                f"{what} move row 0 by {gap.max():.2g}{_some_move(s, gap[0])}",
                (0, int(gap[0].argmax())),
                (text.tolist(), others.tolist()),
            )


def _permuted(s: Subject) -> str:
    text = s.real(rows=max(3, s.rows))
    n = len(text)
    sources = s.sources(n)
    base = s.run(text, sources)
    order = torch.arange(n).roll(1)
    permuted = s.run(text[order], None if sources is None else sources[order])
    gap = s.apart(permuted, base[order])
    if gap > 1:
        row = int(s.moved(permuted, base[order]).amax(1).argmax())
        raise Failed(
            f"rows in another order: row {row} gets other logits "
            f"(by {gap * s.tolerance * s.scale:.2g})"
            f"{_some_move(s, s.moved(permuted, base[order])[row])}",
            (row,),
            (text.tolist(), text[order].tolist()),
        )
    for row in range(n):
        one = s.run(text[row : row + 1], None if sources is None else sources[[row]])
        gap = s.apart(one, base[row : row + 1])
        if gap > 1:
            raise Failed(
                f"row {row} alone gives other logits than in a batch of {n} "
                f"(by {gap * s.tolerance * s.scale:.2g})"
                f"{_some_move(s, s.moved(one, base[row : row + 1])[0])}",
                (row,),
                (text[row].tolist(), text.tolist()),
            )
    if s.o.pad is not None:
        _ragged(s)
    return f"{n} rows, in any order and alone: no row moves another"


def _slopes_of_others(s: Subject, text: Tensor) -> Tensor | None:
    """Return gradients of the logits of row 0 by tokens of other rows, (b − 1, t)."""
    if s.kind == "translation":
        return None
    logits, leaf = embedded(s, text)
    if leaf is None or not logits.requires_grad:
        return None
    (gradient,) = torch.autograd.grad(logits[0].square().sum() + logits[0].sum(), leaf)
    return gradient[1:].abs().sum(-1)


def _some_move(s: Subject, moved: Tensor) -> str:
    """Return how many logits of a row move; where experts are full, some do."""
    far = int((moved > 1e-6 * s.scale).sum())
    said = f"; {far} of its {len(moved)} logits move"
    if 0 < far < 0.7 * len(moved):
        said += ", as where experts have a capacity"
    return said + experts_hint(s)


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
    sources = s.sources(len(text))
    for n in (1, 3, 8):
        _padded(s, text, sources, n, "behind")
    said.append("padding behind moves nothing")
    _ragged(s)
    given = s.o.positions
    wanted = s.kind == "causal" or (given not in (None, False, "set", "none"))
    if wanted:
        try:
            for n in (1, 3, 8):
                _padded(s, text, sources, n, "in front of")
            _ragged(s, front=True)
            said.append("nor in front")
        except Broken as error:
            said.append(f"padding in front was refused ({error})")
    else:
        said.append(
            "in front not asked: positions= would say that they count from the "
            "first real token"
        )
    if s.tolerance == TOLERANCE:  # in double precision, masks of float32 overflow
        said.append(_empty_row(s, text, sources))
    return "; ".join(filter(None, said))


def _pads(x: Tensor, n: int, pad: int, front: bool = False) -> Tensor:
    pads = x.new_full((len(x), n), pad)
    return torch.cat([pads, x] if front else [x, pads], 1)


def _padded(
    s: Subject, text: Tensor, sources: Tensor | None, n: int, side: str
) -> None:
    front, pad = side == "in front of", s.o.pad
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
                f"{n} × padding {side} the {name} moves logits of real tokens: "
                f"logit {i} of row {row} by {moved.max():.2g}, {many} in all",
                (row, i),
                (short[row].tolist(), _pads(short[[row]], n, pad, front)[0].tolist()),
            )


def _ragged(s: Subject, front: bool = False) -> None:
    """Raise if rows of several lengths in a batch aren't what they are alone."""
    text, pad = s.real(rows=max(3, s.rows)), s.o.pad
    sources, n = s.sources(len(text)), len(text)
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
        raise NotAsked("can a row hold several documents? segments= would say how")
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
