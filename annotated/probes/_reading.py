"""Probes of what a model reads: its reach, scores of texts, and order."""

import math

import torch
from torch import Tensor, nn

from annotated.probes._calls import (
    TOLERANCE,
    Broken,
    Failed,
    NotAsked,
    Subject,
    difference,
)
from annotated.probes._future import change_one, moves, places

TEXTS = 4096  # most texts whose chances are added up

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
    begun = " with the same first token" if free else ""
    texts = f"{count} texts of {most} tokens{begun}"
    said = f"the chances of all {texts} add up to {total:.4f}"
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
        out, seen = out.double(), s.first.double()
        if seen.min() >= 0:  # chances, or losses
            out = out.log() if seen.max() <= 1 else -out
            if out.dim() == 2 and (seen[:, 0] == 0).all():
                out[:, 0] = 0.0  # the first token is given
        return out if out.dim() == 1 else out.sum(1)
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
                    f"the {name} of the next token add up to {worst:.4f} at {i}",
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
    if s.scorer and s.first.dim() == 1:
        raise NotAsked("scores of whole texts may do without order")
    a_set = s.o.positions is False or s.o.positions in ("set", "none")
    said = [_swaps(s, a_set)]
    if s.kind == "translation":
        said.append(_source_swaps(s, a_set))
    if s.kind != "encoder" and not a_set:
        said += _idle_table(s)
    if s.o.positions and not a_set:
        said += _positions_arrive(s)
    return "; ".join(filter(None, said))


def swapped(x: Tensor, k: int) -> Tensor:
    x = x.clone()
    x[:, [k, k + 1]] = x[:, [k + 1, k]]
    return x


def _swaps(s: Subject, a_set: bool) -> str:
    t, text = s.text.shape[1], s.real()
    mixed = s.draw(*text.shape, number=5)
    text = torch.where(text == text.roll(1, 1), mixed, text)  # swaps need two tokens
    pairs = sorted({min(k, t - 3) for k in (0, 1, t // 4, t // 2, 3 * t // 4, t)})
    s.afford(4 * len(pairs))
    base = s.run(text)
    whole = base.dim() < 3 and not (s.scorer and base.dim() == 2)
    noise, real_order, still = s.tolerance * s.scale / 30, [], []
    for k in pairs:
        texts = text.clone()
        same = texts[:, k] == texts[:, k + 1]
        texts[same, k + 1] = s.other(texts[same, k + 1][None])[0] if same.any() else 0
        base, new = s.run(texts), s.run(swapped(texts, k))
        both = texts.clone()
        both[:, [k, k + 1]] = s.other(both[:, [k, k + 1]], number=4)
        replaced = s.run(both)
        if s.kind == "encoder" and not whole:
            others = [i for i in range(t) if i not in (k, k + 1)]
            reference = difference(base[:, others], replaced[:, others])
            gap = difference(swapped(base, k), new)
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
                (row.tolist(), swapped(row[None], k)[0].tolist()),
            )
        return "texts are sets"
    refused = ""
    if still and s.tolerance == TOLERANCE and s.modules:  # too small for float32?
        try:
            with s.cast(torch.float64):
                s.tolerance = 1e-12
                return _swaps(s, a_set)
        except Broken:
            refused = ", and double precision can't be asked"
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
            f"{every} changes nothing else{refused}: positions don't arrive "
            "(if texts are sets, say positions=False)",
            (k, k + 1),
            (row.tolist(), swapped(row[None], k)[0].tolist()),
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
        gap = difference(s.run(text, x), s.run(text, swapped(x, k))).max().item()
        matters = gap > 1e-6 * s.scale
        if matters == a_set:
            raise Failed(
                f"swapping source tokens {k} and {k + 1} "
                + (f"matters ({gap:.2g})" if matters else "changes nothing"),
                ("source", k),
                (x[0].tolist(), swapped(x, k)[0].tolist()),
            )
    return ""


def _idle_table(s: Subject) -> list[str]:
    """Raise if the model holds a table of positions, and equal tokens look alike."""
    tables = (m for top in s.modules for m in top.modules())
    width = next((m.embedding_dim for m in tables if isinstance(m, nn.Embedding)), 0)
    held = [
        name
        for top in s.modules
        for name, x in (*top.named_parameters(), *top.named_buffers())
        if x.dim() >= 2
        and x.shape[-1] == width
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
            f"{held[0]} holds positions, but equal tokens give equal logits: "
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
