"""The probe of the future: what comes later moves nothing, exactly."""

import torch
from torch import Tensor, nn

from annotated.probes._calls import (
    ROUNDING,
    Broken,
    Failed,
    NotAsked,
    Subject,
    difference,
)

PREFIXES = (1, 3, 7, 15, 31, 32, 63)


def places(t: int) -> list[int]:
    """Return the tokens that are changed, all if there are few."""
    if t <= 64:
        return list(range(t))
    near = {p + d for p in (0, *(2**k for k in range(14))) for d in (-1, 0, 1)}
    even = {round(n * (t - 1) / 40) for n in range(41)}
    return sorted(p for p in near | even if 0 <= p < t)


def change_one(s: Subject, text: Tensor, at: list[int], number: int = 1) -> Tensor:
    """Return a row for each place of one text, (n, t), with that token changed."""
    rows = text.expand(len(at), -1).clone()
    index = torch.arange(len(at)), torch.tensor(at)
    rows[index] = s.other(text[0, at][None], number=number)[0]
    return rows


def moves(s: Subject) -> tuple[list[int], Tensor]:
    """Return which tokens were changed, and how far logits moved, (n, t)."""
    if "moves" not in s.cache:
        text, t = s.real(rows=1), s.text.shape[1]
        at = places(t)
        if 2 * len(at) / s.rows * s.per_call > s.seconds / 4:  # a slow model
            at = sorted({p for p in (0, t - 1, *PREFIXES, t // 2) if p < t})
        s.afford(2 * len(at) / s.rows)
        changed = change_one(s, text, at)
        base = text.expand(len(at), -1)
        s.cache["moves"] = at, s.pairs(base, changed)
    return s.cache["moves"]


def ahead(at: list[int], moved: Tensor) -> Tensor:
    """Return moves of logits before the changed token, 0 for all others."""
    i = torch.arange(moved.shape[1], device=moved.device)
    return moved * (i < torch.tensor(at, device=moved.device)[:, None])


def future(s: Subject) -> str:
    """Changing what comes after i moves nothing at or before i, exactly."""
    if s.kind == "encoder":
        raise NotAsked('an encoder may see all; kind="causal" would ask')
    if s.scorer and s.first.dim() == 1:
        raise NotAsked("scores of whole texts have no positions; see scores")
    notes = []
    at, moved = moves(s)
    text = s.real(rows=1)
    leak = s.exact(
        ahead(at, moved),
        lambda: ahead(at, s.pairs(text.expand(len(at), -1), change_one(s, text, at))),
        lambda: _slopes(s, text.expand(len(at), -1), at),
    )
    if leak.any():
        _leaks(s, at, leak)
    t = s.text.shape[1]
    lengths = [t, *(n for n in (3 * t // 4, t // 2 + 1, t // 4 + 3) if 2 < n < t)]
    if s.text.device.type == "cpu":  # too long an index ends a GPU's process
        lengths += [2 * t, 3 * t + 1]
    refused = []
    for length in lengths:
        try:
            _suffixes(s, length)
        except Broken:
            if length == t:
                raise
            refused.append(length)
    if refused:
        notes.append(f"lengths {', '.join(map(str, refused))} were refused")
    notes += _by_gradient(s)
    notes += ["prefixes alone not asked: it draws"] if s.draws else s.finer(_alone)
    if train := s.training():
        s.afford(2 * len(at) / s.rows)
        with train as f:
            base, changed = text.expand(len(at), -1), change_one(s, text, at)
            leak = ahead(at, s.pairs(base, changed, f=f))
        if leak.max() > 1e-6 * s.scale:
            _leaks(s, at, leak, " in training mode, but not in evaluation")
    said = "what comes later moves no logit, exactly"
    return f"{said} ({'; '.join(notes)})" if notes else said


def _suffixes(s: Subject, length: int) -> None:
    """Raise if a whole new suffix moves what stands before it."""
    cuts = sorted({p for p in (*PREFIXES, length // 2, length - 1) if p < length})
    text = s.real(length, rows=1).expand(len(cuts), -1)
    after = (
        torch.arange(length, device=text.device)
        >= torch.tensor(cuts, device=text.device)[:, None]
    )
    lowest, highest = s.ids[0], s.ids[-1]
    repeat = text[:, :1].expand_as(text)  # what stood there already: sorts, hashes
    fillings = [s.other(text, number=2), repeat]
    if length == s.text.shape[1]:
        fillings += [lowest.expand_as(text), highest.expand_as(text)]
    s.afford(2 * len(fillings) * len(cuts) / s.rows * length / s.text.shape[1])
    for filling in fillings:
        changed = torch.where(after, filling, text)
        leak = s.pairs(text, changed) * ~after
        leak = s.exact(
            leak,
            lambda new=changed: s.pairs(text, new) * ~after,
            lambda: _slopes(s, text, cuts),
        )
        if leak.any():
            row = int(leak.amax(1).nonzero()[0])
            i = int(leak[row].argmax())
            both = torch.stack([text[row], changed[row]])
            raise Failed(
                f"a new suffix from token {cuts[row]} of {length} on moves logit {i} "
                f"by {leak.max():.2g}{_selects(s, both, cuts[row])}{experts_hint(s)}",
                (i, cuts[row]),
                tuple(both.tolist()),
            )


def _leaks(s: Subject, at: list[int], leak: Tensor, how: str = "") -> None:
    pairs = [(int(i), at[int(n)]) for n, i in leak.nonzero()]
    n = max(range(len(at)), key=lambda n: leak[n].max().item())
    i, j = int(leak[n].argmax()), at[n]
    value = leak.max().item()
    gaps = {j - i for i, j in pairs}
    shape = ""
    if gaps == {1}:
        shape = ", always from the very next token"
    elif len(pairs) == 1:
        shape = ", and nothing else moves"
    else:
        for size in (2, 4, 8, 16, 32, 64):
            if size < s.text.shape[1] and all(i // size == j // size for i, j in pairs):
                shape = f", all within chunks of {size}"
                break
    text = s.real(rows=1)
    both = torch.cat([text, change_one(s, text, [j])])
    example, hint = tuple(both.tolist()), ""
    if not how:
        hint = _selects(s, both, j) + experts_hint(s)
        (i, j), example = _smallest(s, (i, j), example)
    raise Failed(
        f"changing token {j} moves logit {i}, which comes before it{how} ({len(pairs)} "
        f"pairs in all{shape}; by {value:.2g} at most){hint}",
        (i, j),
        example,
    )


def _smallest(s: Subject, where: tuple, example: tuple) -> tuple:
    """Return the pair of the shortest text whose last token moves an earlier logit."""
    text, t = s.real(rows=1), s.text.shape[1]
    for length in (n for n in (2, 3, 4, 6, 8, 9, 12, 16, 17, 24, 32, 33) if n < t):
        short = text[:, :length]
        try:
            changed, leak = _by_last(s, short)
        except Broken:
            continue
        if leak.any():
            found = int(leak[0].argmax()), length - 1
            return found, (short[0].tolist(), changed[0].tolist())
    return where, example


def _by_last(s: Subject, text: Tensor) -> tuple[Tensor, Tensor]:
    """Return a text with another last token, and how far that moves logits before."""
    last = [text.shape[1] - 1]
    changed = change_one(s, text, last)

    def moved() -> Tensor:
        return ahead(last, s.pairs(text, changed))

    return changed, s.exact(moved(), moved, lambda: _slopes(s, text, last))


def experts_hint(s: Subject) -> str:
    """Return a hint if the model holds experts."""
    names = {type(m).__name__ for top in s.modules for m in top.modules()}
    experts = [n for n in sorted(names) if "expert" in n.lower() or "moe" in n.lower()]
    return f"; the model holds {experts[0]}: a capacity of experts?" if experts else ""


def embedded(s: Subject, text: Tensor, f=None, grad: bool = True):
    """Return logits and the embeddings that they come from, (b, t, d), or None."""
    seen = []

    def keep(module: nn.Module, args: tuple, output: Tensor) -> Tensor | None:
        same = args and isinstance(args[0], Tensor) and args[0].shape == text.shape
        if same and torch.equal(args[0], text) and isinstance(output, Tensor):
            if output.dim() == 3 and not seen:
                seen.append(output.detach().requires_grad_())
            if output.dim() == 3 and torch.equal(output, seen[0]):
                return seen[0] + 0  # however often it is looked up
        return None

    hooks = [
        m.register_forward_hook(keep)
        for top in s.modules
        for m in top.modules()
        if isinstance(m, nn.Embedding)
    ]
    try:
        logits = s.run(text, f=f, grad=grad)
    finally:
        for hook in hooks:
            hook.remove()
    return logits, (seen[0] if seen else None)


def _gradients(s: Subject, text: Tensor, cuts: list[int]) -> Tensor | None:
    """Return the gradient of each row's first logits by each token, (rows, t)."""
    logits, leaf = embedded(s, text)
    if leaf is None or not logits.requires_grad:
        return None
    noise = torch.Generator().manual_seed(3)
    upstream = torch.randn(logits.shape, generator=noise).to(logits)
    before = (
        torch.arange(text.shape[1], device=text.device)
        < torch.tensor(cuts, device=text.device)[:, None]
    )
    finite = logits.isfinite()
    loss = (logits.where(finite, 0.0) * upstream * before[..., None]).sum()
    (gradient,) = torch.autograd.grad(loss, leaf, allow_unused=True)
    if gradient is None:
        return None
    return gradient.abs().nan_to_num(0.0).sum(-1) * ~before


def _slopes(s: Subject, text: Tensor, cuts: list[int]) -> Tensor | None:
    """Return what :func:`_gradients` does of many rows, (n, t)."""
    found = []
    for n in range(0, len(cuts), s.rows):
        found.append(_gradients(s, text[n : n + s.rows], cuts[n : n + s.rows]))
    return None if any(one is None for one in found) else torch.cat(found)


def _unlike_source(s: Subject) -> Tensor:
    """Return a text, (1, t), whose embeddings can't be taken for the source's."""
    text = s.real(rows=1)
    return s.other(text) if s.kind == "translation" else text


def _by_gradient(s: Subject) -> list[str]:
    if s.scorer:
        return []
    t = s.text.shape[1]
    cuts = [p for p in places(t) if p] or [1]
    s.afford(4 * len(cuts) / s.rows)
    text = _unlike_source(s).expand(len(cuts), -1)
    largest = 0.0
    for n in range(0, len(cuts), s.rows):
        rows, some = text[n : n + s.rows], cuts[n : n + s.rows]
        try:
            leak = _gradients(s, rows, some)
        except (RuntimeError, Broken) as error:
            return [f"gradients weren't asked: {str(error).splitlines()[0][:90]}"]
        if leak is None:
            return [
                "gradients weren't asked: no nn.Embedding of these tokens was found"
            ]
        if leak.max() > 0:
            small = (
                ROUNDING * s.scale / leak.max()
            )  # gradients have a scale of their own
            leak = s.exact(
                leak * small,
                lambda rows=rows, some=some, by=small: by * _gradients(s, rows, some),
            )
        largest = max(largest, leak.max().item())
        if largest:
            row = int(leak.amax(1).argmax())
            j = int(leak[row].argmax())
            i, j = _one_pair(s, text[:1], some[row], j)
            raise Failed(
                f"the gradient of logit {i} by token {j}, which comes later, isn't 0, "
                "although changing tokens showed no move",
                (i, j),
                (text[0].tolist(), text[0].tolist()),
            )
    return []


def _one_pair(s: Subject, text: Tensor, cut: int, j: int) -> tuple[int, int]:
    """Return a logit before ``cut`` that has a gradient by token ``j``."""
    logits, leaf = embedded(s, text)
    for i in reversed(range(cut)):
        one = logits[0, i].square().sum() + logits[0, i].sum()
        (gradient,) = torch.autograd.grad(one, leaf, retain_graph=True)
        if gradient[0, j].any():
            return i, j
    return cut - 1, j


def _selects(s: Subject, texts: Tensor, found: int) -> str:
    """Return a hint if the future decides what is read, and isn't read itself.

    Args:
        s: the function.
        texts: before and after the change that moves it, (2, t), of any length.
        found: the first token that was changed; logits before it move.
    """
    try:
        before = texts[:1]
        if difference(s.run(before), s.run(before)).any():
            return "; so does a second call: it keeps something, see modes and numbers"
        # of both texts: a maximum has its slope in one of them alone; and of one
        # row by what stands earlier in the other: rows may mix
        cuts = [found, found], [found, 1]
        slopes = [_slopes(s, texts, some) for some in cuts]
    except (RuntimeError, Failed):
        return ""
    if any(one is None or one.any() for one in slopes):
        return ""
    return (
        "; its gradient is 0: later tokens aren't read, they decide what is read (a "
        "sort, a top-k, hashing into buckets)"
    )


def _alone(s: Subject) -> list[str]:
    """Compare each prefix alone with the same in the whole text."""
    text = s.real()
    s.afford(len(PREFIXES) + 1)
    whole, refused, t = s.run(text), [], text.shape[1]
    for p in (p for p in (*PREFIXES, t // 2) if p < t):
        try:
            alone = s.run(text[:, :p])
        except Broken:
            refused.append(p)
            continue
        gap = s.apart(alone, whole[:, :p])
        if gap > 1:
            i = int(s.moved(alone, whole[:, :p]).amax(0).argmax())
            raise Failed(
                f"the first {p} tokens alone give other logits than with {t - p} more "
                f"behind them (logit {i} by {gap * s.tolerance * s.scale:.2g})",
                (i, p),
                (text[0, :p].tolist(), text[0].tolist()),
            )
    return (
        [f"{', '.join(map(str, refused))} tokens alone were refused"] if refused else []
    )
