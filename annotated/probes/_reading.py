"""Probes of what a model reads: the future, its reach, scores of texts, and order."""

import math

import torch
from torch import Tensor, nn

from annotated.probes._calls import (
    ROUNDING,
    Broken,
    Failed,
    TOLERANCE,
    NotAsked,
    Subject,
    difference,
)

PREFIXES = (1, 3, 7, 15, 31, 32, 63)
TEXTS = 4096  # most texts whose chances are added up


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


# ---- future --------------------------------------------------------------------------


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
    notes += s.finer(_alone)
    if train := _training(s):
        s.afford(2 * len(at) / s.rows)
        with train as f:
            base, changed = text.expand(len(at), -1), change_one(s, text, at)
            leak = ahead(at, s.pairs(base, changed, f=f))
        if leak.max() > 1e-6 * s.scale:
            _leaks(s, at, leak, " in training mode, but not in evaluation")
    said = "what comes later moves no logit, exactly"
    return f"{said} ({'; '.join(notes)})" if notes else said


def _training(s: Subject):
    """Return the function in training mode, for a `with`; None if it wasn't given."""
    from contextlib import contextmanager

    train = s.o.train
    if train is None or train is False or (train is True and not s.modules):
        return None

    @contextmanager
    def training():
        tops = [m for m in s.modules]
        try:
            for m in tops:
                m.train()
            yield s.f if train is True else train
        finally:
            for m in tops:
                m.eval()

    return training()


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
        leak = s.exact(leak, lambda new=changed: s.pairs(text, new) * ~after)
        if leak.any():
            row = int(leak.amax(1).nonzero()[0])
            i = int(leak[row].argmax())
            raise Failed(
                f"a new suffix from token {cuts[row]} of {length} on moves logit {i} by "
                f"{leak.max():.2g}{_selects(s)}{_among_rows(s)}",
                (i, cuts[row]),
                (text[row].tolist(), changed[row].tolist()),
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
    text = s.real(rows=1)[0]
    example = text.tolist(), change_one(s, text[None], [j])[0].tolist()
    if not how:
        (i, j), example = _smallest(s, (i, j), example)
    raise Failed(
        f"changing token {j} moves logit {i}, which comes before it{how} ({len(pairs)} "
        f"pairs in all{shape}; by {value:.2g} at most){_selects(s)}{_among_rows(s)}",
        (i, j),
        example,
    )


def _smallest(s: Subject, where: tuple, example: tuple) -> tuple:
    """Return the pair of the shortest text whose last token moves an earlier logit."""
    text, t = s.real(rows=1), s.text.shape[1]
    for length in (n for n in (2, 3, 4, 6, 8, 9, 12, 16, 17, 24, 32, 33) if n < t):
        short = text[:, :length]
        changed = change_one(s, short, [length - 1])
        try:
            leak = ahead([length - 1], s.pairs(short, changed))
        except Broken:
            continue
        if leak.max() > 1e-6 * s.scale:
            found = int(leak[0].argmax()), length - 1
            return found, (short[0].tolist(), changed[0].tolist())
    return where, example


def _among_rows(s: Subject) -> str:
    """Return a hint if the model holds experts."""
    names = {type(m).__name__ for top in s.modules for m in top.modules()}
    experts = [n for n in sorted(names) if "expert" in n.lower() or "moe" in n.lower()]
    return f"; the model holds {experts[0]}: a capacity of experts?" if experts else ""


def _embedded(s: Subject, text: Tensor, f=None, grad: bool = True):
    """Return logits and the embeddings that they come from, (b, t, d), or None."""
    seen = []

    def keep(module: nn.Module, args: tuple, output: Tensor) -> Tensor | None:
        same = args and isinstance(args[0], Tensor) and args[0].shape == text.shape
        if same and torch.equal(args[0], text) and isinstance(output, Tensor):
            if output.dim() == 3 and not seen:
                leaf = output.detach().requires_grad_()
                seen.append(leaf)
                return leaf + 0
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
    logits, leaf = _embedded(s, text)
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


def _by_gradient(s: Subject) -> list[str]:
    if s.scorer:
        return []
    t = s.text.shape[1]
    cuts = [p for p in places(t) if p] or [1]
    s.afford(4 * len(cuts) / s.rows)
    text = s.real(rows=1).expand(len(cuts), -1)
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
    logits, leaf = _embedded(s, text)
    for i in reversed(range(cut)):
        one = logits[0, i].square().sum() + logits[0, i].sum()
        (gradient,) = torch.autograd.grad(one, leaf, retain_graph=True)
        if gradient[0, j].any():
            return i, j
    return cut - 1, j


def _selects(s: Subject) -> str:
    """Return a hint if the future decides what is read, and isn't read itself."""
    t = s.text.shape[1]
    cuts = [p for p in PREFIXES if p < t][: s.rows] or [1]
    try:
        text = s.real(rows=1).expand(len(cuts), -1)
        leak = _gradients(s, text, cuts)
    except (RuntimeError, Failed):
        return ""
    if leak is None or leak.any():
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


# ---- reach ---------------------------------------------------------------------------


def reach(s: Subject) -> str:
    """Which token moves logit t at all."""
    if s.scorer and s.first.dim() == 1:
        raise NotAsked("scores of whole texts have no positions")
    at, moved = moves(s)
    s.cache["reach"] = moved.T
    text = s.real(rows=1)[0].tolist()
    if not moved.any():
        raise Failed("no token moves any logit", None, (text, text))
    by_token = moved.amax(1) > 0
    dead = [j for j, alive in zip(at, by_token.tolist(), strict=True) if not alive]
    t, one = s.text.shape[1], moved.shape[1] == 1 != s.text.shape[1]
    if s.kind == "translation":
        _source_reach(s)
    if one:
        if by_token.sum() == 1 and t > 2:
            j = at[int(by_token.nonzero()[0])]
            raise Failed(
                f"of {t} tokens, only token {j} moves the output", (0, j), text
            )
        return f"{int(by_token.sum())} of {len(at)} tokens move the output"
    own = moved[torch.arange(len(at)), at] > 0
    mixed = moved.clone()
    mixed[torch.arange(len(at)), at] = 0.0
    if len(at) > 4 and own.sum() <= 0.1 * len(at) and not dead == at:
        i = at[int((~own).nonzero()[-1])]
        raise Failed(
            f"logit {i} doesn't depend on token {i}, nor most others on their own: the "
            "text is shifted twice",
            (i, i),
            (text, change_one(s, torch.tensor([text]).to(s.text), [i])[0].tolist()),
        )
    if t > 1 and not mixed.any():
        raise Failed(
            "each logit depends on its own token alone: nothing else is read",
            (t - 1, 0),
            text,
        )
    if dead and not (dead == [t - 1] and s.kind == "causal" and s.scorer):
        raise Failed(f"token {dead[0]} moves no logit at all", (dead[0], dead[0]), text)
    if s.kind != "encoder" and t > 8 and len(at) > 8:
        later = [bool(mixed[n].any()) for n in range(len(at))]
        unread = [
            j for j, read in zip(at, later, strict=True) if not read and j < t - 1
        ]
        if unread == [0]:
            raise Failed("no later logit depends on token 0", (t - 1, 0), text)
    if s.kind == "encoder" and len(at) == t > 8:
        heard = (mixed > 0).any(0)
        if not heard.all() and heard.float().mean() > 0.5:
            i = int((~heard).nonzero()[0])
            raise Failed(f"output {i} hears of no other token", (i, 0), text)
    last = [t - 1 - j for j, x in zip(at, moved[:, -1].tolist(), strict=True) if x > 0]
    if s.kind == "encoder":
        return f"{(moved > 0).float().mean():.0%} of all pairs"
    if last and max(last) < t - 1:
        return f"the last logit reaches back {max(last)} tokens: a window"
    return "each logit depends on its token and on those before it"


def _source_reach(s: Subject) -> None:
    source, text = s.inputs[0][:1], s.real(rows=1)
    n = source.shape[1]
    at = [j for j in places(n) if int(source[0, j]) not in s.special]
    s.afford(2 * len(at) / s.rows)
    rows = source.expand(len(at), -1).clone()
    index = torch.arange(len(at)), torch.tensor(at)
    rows[index] = s.other(source[:, at], s.source_ids)[0]
    moved = []
    for some in rows.split(s.rows):
        same, texts = source.expand(len(some), -1), text.expand(len(some), -1)
        moved.append(s.moved(s.run(texts, same), s.run(texts, some)).amax(1))
    moved = torch.cat(moved)
    dead = [j for j, x in zip(at, moved.tolist(), strict=True) if not x]
    if dead:
        all_of_them = len(dead) == len(at)
        which = "no source token" if all_of_them else f"source token {dead[0]} never"
        raise Failed(
            f"{which} moves a logit ({len(dead)} of {len(at)} move nothing)",
            ("source", dead[0]),
            source[0].tolist(),
        )


# ---- scores --------------------------------------------------------------------------


def scores(s: Subject) -> str:
    """The chances of all texts of a small vocabulary and length add up to 1."""
    if s.kind != "causal":
        raise NotAsked(f"{s.kind} outputs are no scores of texts; a causal model's are")
    v = s.vocabulary or s.o.vocabulary or int(s.text.max()) + 1
    notes = [] if s.scorer else _normalised(s)
    free = 0 if s.scorer else 1  # the first token of a model's text is given
    most = max(int(math.log(TEXTS) / math.log(max(v, 2)) + 1e-9), 1 + free)
    most = min(most, 8, s.text.shape[1])
    count = v ** (most - free)
    if count > 4 * TEXTS or most <= free:
        raise NotAsked(f"{v} tokens are too many to add up all texts of {most}")
    rows = max(1, s.rows * s.text.shape[1] // most)
    s.afford(count / rows * most / s.text.shape[1])
    numbers = torch.arange(count, device=s.text.device)
    columns = [numbers // v ** (most - free - 1 - n) % v for n in range(most - free)]
    firsts = [None]
    if free:
        firsts = [s.o.start if type(s.o.start) is int else int(s.real(rows=1)[0, 0])]
    every = torch.stack(columns, 1).to(s.text.dtype)
    if free:
        every = torch.cat([every.new_full((count, 1), firsts[0]), every], 1)
    logs = torch.cat([_log_chance(s, some) for some in every.split(rows)]).double()
    total = logs.exp().sum().item()
    groups = logs.exp().view(v, -1).sum(1) if s.scorer else logs.new_tensor([total])
    said = f"the chances of all {count} texts of {most} tokens add up to {total:.4f}"
    if abs(total - 1) < 2e-3:
        return "; ".join([said, *notes])
    if s.scorer and (groups - 1).abs().max() < 2e-3:
        return f"{said}, 1 for each first token, which is given"
    likeliest = every[logs.argmax()].tolist()
    raise Failed(f"{said} and not to 1", ("sum", total), likeliest)


def _log_chance(s: Subject, texts: Tensor) -> Tensor:
    """Return the log-chance of each text, (b,)."""
    out = s.run(texts)
    if s.scorer:
        return out if out.dim() == 1 else out.double().sum(1)
    logs = out.double()[:, :-1].log_softmax(-1)
    return logs.gather(-1, texts[:, 1:, None].long())[..., 0].sum(1)


def _normalised(s: Subject) -> list[str]:
    """Raise if outputs are chances or their logarithms, and don't add up to 1."""
    out = s.first.double()
    if out.shape[-1] < 4 or out.numel() < 64:
        return []
    for name, sums, likely in (
        ("chances", out.sum(-1), (out.min() >= 0) & (out.max() <= 1)),
        ("log-chances", out.logsumexp(-1).exp(), out.max() <= 1e-6),
    ):
        near = 0.3 < sums.median().item() < 3
        if likely and near:
            if (sums - 1).abs().max() > 2e-3:
                row, i = divmod(int((sums - 1).abs().argmax()), sums.shape[1])
                worst = sums[row, i].item()
                raise Failed(
                    f"the {name} of the next token add up to {worst:.4f} at {i}, not to 1",
                    (i, i),
                    s.text[row].tolist() if row < len(s.text) else None,
                )
            return [f"outputs are {name}"]
    return []


# ---- order ---------------------------------------------------------------------------


def order(s: Subject) -> str:
    """Permuting tokens must matter, or, of a set, must not."""
    t = s.text.shape[1]
    if t < 4:
        raise NotAsked(f"{t} tokens are too few; give at least 4")
    a_set = s.o.positions is False or s.o.positions in ("set", "none")
    said = [_swaps(s, a_set)]
    if s.kind == "translation":
        said.append(_source_swaps(s, a_set))
    if s.kind != "encoder" and not a_set:
        said += _idle_table(s)
    if s.o.positions and not a_set:
        said += _positions_arrive(s)
    return "; ".join(filter(None, said))


def _swapped(x: Tensor, k: int) -> Tensor:
    x = x.clone()
    x[:, [k, k + 1]] = x[:, [k + 1, k]]
    return x


def _swaps(s: Subject, a_set: bool) -> str:
    t, text = s.text.shape[1], s.real()
    mixed = s.draw(*text.shape, number=5)
    text = torch.where(text == text.roll(1, 1), mixed, text)  # swaps need two tokens
    pairs = sorted({0, 1, t // 4, t // 2, 3 * t // 4, t - 3})
    s.afford(4 * len(pairs))
    base = s.run(text)
    whole = base.dim() < 3 and not (s.scorer and base.dim() == 2)
    noise, real_order, still = s.tolerance * s.scale / 30, [], []
    for k in pairs:
        texts = text.clone()
        same = texts[:, k] == texts[:, k + 1]
        texts[same, k + 1] = s.other(texts[same, k + 1][None])[0] if same.any() else 0
        base, new = s.run(texts), s.run(_swapped(texts, k))
        both = texts.clone()
        both[:, [k, k + 1]] = s.other(both[:, [k, k + 1]], number=4)
        replaced = s.run(both)
        if s.kind == "encoder" and not whole:
            others = [i for i in range(t) if i not in (k, k + 1)]
            reference = difference(base[:, others], replaced[:, others])
            gap = difference(_swapped(base, k), new)
        elif whole:
            gap, reference = difference(base, new), difference(base, replaced)
        else:
            behind = slice(k + 2, None)
            gap = difference(base[:, behind], new[:, behind])
            reference = difference(base[:, behind], replaced[:, behind])
        gap, reference = gap.max().item(), reference.max().item()
        matters = gap > max(noise, 1e-4 * reference)
        if reference > 10 * noise:
            (real_order if matters else still).append((k, gap, texts[0]))
    if a_set:
        if real_order:
            k, gap, row = max(real_order, key=lambda one: one[1])
            raise Failed(
                f"swapping tokens {k} and {k + 1} matters ({gap:.2g}), although "
                "positions=False says that texts are sets",
                (k, k + 1),
                (row.tolist(), _swapped(row[None], k)[0].tolist()),
            )
        return "texts are sets"
    if still and s.tolerance == TOLERANCE and s.modules:  # too small for float32?
        try:
            with s.cast(torch.float64):
                s.tolerance = 1e-12
                return _swaps(s, a_set)
        except Broken:
            pass
        finally:
            s.tolerance = TOLERANCE
    if still:
        k, _, row = still[0]
        every = (
            "swapping any two neighbours"
            if not real_order
            else (f"swapping tokens {k} and {k + 1}, but not others,")
        )
        raise Failed(
            f"{every} changes nothing else: positions don't arrive "
            "(if texts are sets, say positions=False)",
            (k, k + 1),
            (row.tolist(), _swapped(row[None], k)[0].tolist()),
        )
    if not real_order:
        raise NotAsked("no swap could be read off: neighbours move no other logit")
    return "the order of neighbours matters"


def _source_swaps(s: Subject, a_set: bool) -> str:
    source, text = s.inputs[0][:1], s.real(rows=1)
    n = source.shape[1]
    for k in sorted({0, n // 3, n // 2}):
        if k + 1 >= n or {int(source[0, k]), int(source[0, k + 1])} & s.special:
            continue
        x = source.clone()
        if x[0, k] == x[0, k + 1]:
            x[:, k] = s.other(x[:, [k]], s.source_ids)[:, 0]
        gap = difference(s.run(text, x), s.run(text, _swapped(x, k))).max().item()
        matters = gap > 1e-6 * s.scale
        if matters == a_set:
            raise Failed(
                f"swapping source tokens {k} and {k + 1} "
                + (f"matters ({gap:.2g})" if matters else "changes nothing"),
                ("source", k),
                (x[0].tolist(), _swapped(x, k)[0].tolist()),
            )
    return ""


def _idle_table(s: Subject) -> list[str]:
    """Raise if the model holds a table of positions, and equal tokens look alike."""
    held = [
        name
        for top in s.modules
        for name, x in (*top.named_parameters(), *top.named_buffers())
        if x.dim() >= 2
        and x.shape[-2] >= s.text.shape[1]
        and x.is_floating_point()
        and any(
            part in ("pe", "wpe") or part.startswith("pos")
            for part in name.lower().replace("_", ".").split(".")
        )
        and not any(word in name.lower() for word in ("bias", "rel", "rot", "map"))
    ]
    if not held or s.scorer:
        return []
    text = s.real(rows=1)[:, :1].expand(s.rows, s.text.shape[1])
    logits = s.run(text)
    if difference(logits[:, 1:], logits[:, :1]).max() <= 1e-6 * s.scale:
        raise Failed(
            f"{held[0]} holds positions, but a text of equal tokens gives equal logits: "
            "they don't arrive",
            (1, 0),
            text[0].tolist(),
        )
    return []


def _positions_arrive(s: Subject) -> list[str]:
    """Raise if other positions make no difference."""
    name = s.positions_name() or next(
        (n for n in ("position_ids", "positions") if n in s.taken), "positions"
    )
    text = s.real()
    count = torch.arange(text.shape[1], device=text.device).expand(text.shape)
    try:
        base = s.run(text, **{name: count})
        new = s.run(text, **{name: count // 2})
    except Broken as error:
        return [f"{name} weren't asked: {error}"]
    if difference(base, new).max() <= 1e-6 * s.scale:
        raise Failed(f"other {name} change nothing", None, text[0].tolist())
    return []
