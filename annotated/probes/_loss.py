"""The probe of the loss: what it asks for, of which positions, and how much."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from annotated.probes._calls import (
    Failed,
    NotAsked,
    Subject,
)
from annotated.probes._loss_forms import Loss, Pretended, injectable
from annotated.probes._modes import first_of


def loss(s: Subject) -> str:
    """What the loss asks for, of which positions, and with which weights."""
    if s.scorer or (s.vocabulary is None and s.kind != "encoder"):
        raise NotAsked("f gives scores of texts and no logits; see scores")
    asked = Loss(s)
    if asked.form == "tokens" and injectable(s) is None:
        said = [_own_loss(s, asked)]
    else:
        said = [_asked_for(s, asked)]
    said.append(_accumulated(s, asked))
    said.append(_at_the_start(s, asked))
    return "; ".join(filter(None, said))


def _batch(s: Subject) -> tuple[tuple, list[int]]:
    """Return rows of several lengths if there is padding, and the lengths."""
    t = min(s.text.shape[1], 16)
    text = s.real(rows=3)[:, :t].clone()
    text = torch.where(text == text.roll(1, 1), s.other(text, number=41), text)
    second = text == text.roll(2, 1)
    text = torch.where(second, s.other(text, number=42), text)
    lengths = [t, max(t - 3, 2), max(t // 2, 2)] if s.o.pad is not None else [t] * 3
    if type(s.o.start) is int:
        text[:, 0] = s.o.start
    for row, n in enumerate(lengths):
        if type(s.o.end) is int:
            text[row, n - 1] = s.o.end
        if s.o.pad is not None:
            text[row, n:] = s.o.pad
    sources = s.sources(3)
    return s.around(text, sources), lengths


def _asked_for(s: Subject, asked: Loss) -> str:
    v = s.vocabulary
    inputs, lengths = _batch(s)
    text = inputs[-1]
    device = text.device
    if asked.form == "own":
        out = s.call(inputs, f=asked.whole, grad=True, plain="loss")
        value, leaves = out.loss, [out.logits]
    else:
        fake = Pretended(s, lambda x: torch.zeros(*x.shape, v, device=device))
        value = asked(inputs, fake)
        leaves = fake.kept
    if not leaves:
        raise NotAsked("the loss didn't call f")
    if not value.requires_grad:
        raise Failed("the loss has no gradient by the logits: it is detached")
    gradients = torch.autograd.grad(value, leaves, allow_unused=True)
    if asked.form == "own" and gradients[0] is None:
        return _own_loss(s, asked)
    if sum(map(len, leaves)) == len(text):  # it may read row by row
        leaf = torch.cat(list(leaves))
        gradient = torch.cat(
            [
                torch.zeros_like(x) if g is None else g
                for x, g in zip(leaves, gradients, strict=True)
            ]
        )
    else:
        leaf, gradient = leaves[0], gradients[0]
    if gradient is None or not gradient.any():
        raise Failed("the loss has no gradient by the logits")
    if not gradient.isfinite().all():
        raise Failed(
            f"of equal logits the loss is {value.item():.4g}, its gradient NaN"
        )
    n = leaf.shape[1]
    counts = gradient.abs().amax(-1) > 1e-3 * gradient.abs().max()  # (b, n)
    label = gradient.argmin(-1)
    b, t = text.shape
    place = torch.arange(n, device=device).expand(b, n)
    ends = torch.tensor(lengths, device=device)[:, None]
    shown = text[0].tolist()

    def at(k: int) -> Tensor:
        return text.gather(1, (place + k).clamp(0, t - 1))

    inside = place + 2 < ends
    here = counts & inside
    if not here.any():
        raise Failed("no real token is asked for", None, shown)
    names = {
        0: "the token that was just read: a model that copies its input wins",
        2: "the token after the next: labels are shifted twice",
        -1: "the token before: labels are shifted the wrong way",
    }
    right = (label == at(1))[here].float().mean()
    for k, name in names.items():
        if right < 0.9 and (label == at(k))[here].float().mean() > 0.9:
            i = first_of(here)
            raise Failed(f"at position t the loss asks for {name}", i[1:], shown)
    if right < 0.9:
        row, i = first_of(here & (label != at(1)))
        raise Failed(
            f"at position {i} the loss asks for id {int(label[row, i])}, and not "
            f"for the next token, {int(at(1)[row, i])}",
            (row, i),
            shown,
        )
    wanted = place + 1 < ends
    missing = wanted & ~counts
    if missing.any():
        row, i = first_of(missing)
        last = i + 2 == lengths[row] and s.o.end is not None
        what = (
            "the end is never asked for"
            if last
            else (
                f"the token {i + 1} of row {row} (id {int(at(1)[row, i])}) isn't asked"
                " for"
            )
        )
        raise Failed(
            f"{what}: {int(missing.sum())} of {int(wanted.sum())} are missing",
            (row, i),
            text[row].tolist(),
        )
    extra = counts & ~wanted & (place + 1 < t)
    beyond = counts & (place + 1 >= t)
    if extra.any() or beyond.any():
        row, i = first_of(extra if extra.any() else beyond)
        what = (
            "padding is asked for"
            if extra.any()
            else ("something is asked for after the last token")
        )
        raise Failed(
            f"{what}: {int((extra | beyond).sum())} of {int(counts.sum())} "
            "positions that count",
            (row, i),
            text[row].tolist(),
        )
    _weights(s, asked, inputs, leaf, gradient, counts, label, lengths)
    said = "each position is asked for its next token"
    padding = "pad= would ask about padding" if s.o.pad is None else "padding isn't"
    said += f", {padding}"
    return said + ("" if s.o.end is None else ", the end is")


def _weights(s, asked, inputs, leaf, gradient, counts, label, lengths) -> None:
    v, text = s.vocabulary, inputs[-1]
    large = 30.0
    if asked.form == "own":
        chance = leaf.float().softmax(-1).gather(-1, label[..., None])[..., 0]
        weight = gradient.gather(-1, label[..., None])[..., 0] / (chance - 1)
        _equal_weights(weight[counts], counts, lengths, text)
        return

    def sure(x: Tensor) -> Tensor:
        known = F.one_hot(label, v).to(torch.float32) * large
        if len(x) < len(known):  # row by row
            known = known[len(fake.kept) :]
        return known[: len(x), : x.shape[1]].clone()

    fake = Pretended(s, sure)
    value = asked(inputs, fake)
    peaked = torch.autograd.grad(value, fake.kept[: len(text)])
    peaked = torch.cat(peaked) if len(peaked) == len(text) else peaked[0]
    low = gradient.gather(-1, label[..., None])[..., 0]
    high = peaked.gather(-1, label[..., None])[..., 0]
    weight = (high - low)[counts] * v / (v - 1)
    if value > 0.6 * large or (
        value > 0.5 * math.log(v)
        and high[counts].abs().max() < 1e-4 * weight.abs().max()
    ):
        raise Failed(
            f"a model that is right and sure pays {value.item():.3g} nats per "
            "token: softmax twice, or logits that are changed",
            None,
            text[0].tolist(),
        )
    _equal_weights(weight, counts, lengths, text)


def _equal_weights(weight: Tensor, counts: Tensor, lengths: list[int], text) -> None:
    """Raise if labels don't weigh the same, 1 in all."""
    mean, n = weight.mean().item(), int(counts.sum())
    rows = [weight[counts.nonzero()[:, 0] == row].mean().item() for row in range(3)]
    if max(rows) - min(rows) > 2e-3 * abs(mean):
        told = ", ".join(f"{w:.3g}" for w in rows)
        raise Failed(
            f"rows with {', '.join(str(x - 1) for x in lengths)} labels weigh {told} a "
            "label: the mean is over rows, not over tokens",
            (0, 0),
            text.tolist(),
        )
    if (weight - mean).abs().max() > 2e-3 * abs(mean):
        raise Failed("labels of one row weigh unequally", (0, 0), text[0].tolist())
    total = weight.sum().item()
    if abs(total - 1) > 5e-3:
        rows_, places_ = len(text), text.numel()
        what = f"the weights of {n} labels add up to {total:.4g}, and not to 1"
        if abs(mean - 1) < 5e-3:
            what += ": a sum and no mean"
        elif abs(total - n / places_) < 5e-3:
            what += f": the sum is divided by all {places_} positions"
        elif abs(1 / mean - n) > 0.5:
            what += f": the sum is divided by {1 / mean:.4g}"
        if abs(total - n / rows_) < 5e-3:
            what += " (a sum for each row)"
        raise Failed(what, None, text.tolist())


def _own_loss(s: Subject, asked: Loss) -> str:
    """Compare the loss of a model that shifts its labels with cross-entropy."""
    inputs, _ = _batch(s)
    text, value = inputs[-1], asked(inputs).item()
    logs = s.call(inputs).float().log_softmax(-1)
    labels = asked.labels(text)

    def mean(k: int) -> float:
        size = text.shape[1]
        shown, wanted = logs[:, : size - k], labels[:, k:]
        return F.cross_entropy(shown.flatten(0, 1), wanted.flatten()).item()

    found = {k: mean(k) for k in (0, 1, 2)}
    if abs(found[1] - value) < 1e-4 * max(1, abs(value)):
        return "its own loss is that of the next token"
    for k, name in ((0, "the token just read"), (2, "the token after the next")):
        if abs(found[k] - value) < 1e-4 * max(1, abs(value)):
            raise Failed(
                f"its own loss, {value:.4f}, is that of {name}; of the next token "
                f"it would be {found[1]:.4f}",
                (0, k),
                text[0].tolist(),
            )
    raise Failed(
        f"its own loss, {value:.4f}, isn't the mean over next tokens, {found[1]:.4f}",
        None,
        text.tolist(),
    )


def _accumulated(s: Subject, asked: Loss) -> str:
    """Compare a batch with its rows, each weighed by its number of labels."""
    inputs, lengths = _batch(s)
    whole = asked(inputs).item()
    parts, total = 0.0, 0
    for row, n in enumerate(lengths):
        one = tuple(x[row : row + 1] for x in inputs)
        parts += (n - 1) * asked(one).item()
        total += n - 1
    if abs(parts / total - whole) > 2e-3 * max(abs(whole), 1e-3):
        raise Failed(
            f"three rows, one at a time and weighed by their labels, give "
            f"{parts / total:.4f}, together {whole:.4f}: accumulated pieces aren't one "
            "batch",
            None,
            inputs[-1].tolist(),
        )
    return "accumulated pieces equal one batch"


def _at_the_start(s: Subject, asked: Loss) -> str:
    """Compare the loss of random tokens with ln v."""
    text = s.draw(s.rows, min(s.text.shape[1], 64), number=51)
    inputs = s.around(text)
    value, v = asked(inputs).item(), s.vocabulary
    own = asked(s.around(s.real())).item()
    gap = value - math.log(v)
    logs = s.call(inputs).float()
    common = logs.mean((0, 1)).log_softmax(-1)
    shared = -common[text[:, 1:].flatten()].mean().item() - math.log(v)
    spread = logs.std(-1).mean().item()
    said = f"random tokens cost {value:.3f}, ln {v} = {math.log(v):.3f}"
    if not math.isfinite(value):
        raise Failed(f"{said}: not finite", None, text[0].tolist())
    if min(gap, own - math.log(v)) > 1.0:
        read = logs[:, :-1].gather(-1, text[:, :-1, None].long())[..., 0].mean()
        echo = (read - logs.mean()).item()
        raise Failed(
            f"{said}: {gap:.3g} nats above. Logits have a deviation of {spread:.3g} "
            f"({spread**2 / 2:.3g} nats), of the gap {shared:.3g} come from what "
            f"all positions share; the token just read stands {echo:.3g} above average",
            None,
            text[0].tolist(),
        )
    if value < 0.7 * math.log(v):
        raise Failed(
            f"{said}: random tokens can't be guessed so well", None, text[0].tolist()
        )
    return said
