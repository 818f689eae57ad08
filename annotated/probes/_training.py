"""Probes of what training needs: modes and numbers, the loss, and the parameters."""

import copy
import inspect
import io
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.probes._calls import (
    Broken,
    Failed,
    NotAsked,
    Subject,
    difference,
    modules_of,
    tensor_of,
    words,
)
from annotated.probes._reading import _training

LOGITS = ("logits", "output", "outputs", "out", "pred", "preds", "predictions", "input")
OPTIONAL = ("mask", "seg", "token_type")  # parameters of inputs that are optional
SHIFTED = ("target", "targets", "y")

# ---- modes and numbers ---------------------------------------------------------------


def modes_and_numbers(s: Subject) -> str:
    """The same twice, finite in every precision, with finite gradients."""
    inputs, said = s.around(s.real(), s.inputs[0] if len(s.inputs) > 1 else None), []
    if s.kind == "translation":
        inputs = tuple(x[: min(map(len, inputs))] for x in inputs)
    first = s.call(inputs)
    text = [x.tolist() for x in inputs]
    for number in (0, 1, 2):
        gap = difference(s.call(inputs, number=number), first)
        if gap.max() > 0:
            why = "with the same random state: something is kept from call to call"
            if number:
                why = "from another random state: it draws in evaluation (dropout?)"
            i = tuple(int(n) for n in torch.unravel_index(gap.argmax(), gap.shape))
            raise Failed(f"called twice, {gap.max():.2g} apart, {why}", i[:2], text)
    if not first.isfinite().all() and not (first == -torch.inf).any():
        raise Failed("logits aren't finite", _first(~first.isfinite()), text)
    if first.isnan().any():
        raise Failed("logits are NaN", _first(first.isnan()), text)
    _left_in_training(s)
    said.append("the same twice")
    said += _halves(s, inputs, first)
    said += _gradients_finite(s, inputs)
    said += _training_mode(s, inputs)
    try:
        empty = s.call(tuple(x[:0] for x in inputs))
        said.append(f"an empty batch gives {tuple(empty.shape)}")
    except Broken as error:
        if s.o.strict:
            raise
        said.append(f"an empty batch is refused ({error})")
    return "; ".join(said)


def _first(wrong: Tensor) -> tuple:
    return tuple(int(n) for n in wrong.nonzero()[0][:2])


def _left_in_training(s: Subject) -> None:
    left = [n for m in s.modules for n, part in m.named_modules() if part.training]
    if left:
        raise Failed(
            f"after eval(), {left[0] or 'the model'} is still in training mode"
        )


def _halves(s: Subject, inputs: tuple, first: Tensor) -> Iterator[str]:
    if not s.modules:
        return ["half precision not asked: no module was found in the function"]
    said, rows = [], [inputs]
    if s.o.pad is not None and inputs[0].shape[1] > 4:
        padded = inputs[0].clone()
        padded[0, padded.shape[1] // 2 :] = s.o.pad
        rows.append((padded, *inputs[1:]))
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        for texts in rows:
            wanted = s.call(texts)
            try:
                with s.cast(dtype):
                    logits = s.call(texts)
            except Broken as error:
                if "overflow" in str(error) or "out of range" in str(error):
                    raise Failed(
                        f"in {name}: {error}", None, texts[0].tolist()
                    ) from None
                said.append(f"{name} not asked: {str(error).split(' when')[0]}")
                break
            odd = ~logits.isfinite() & wanted.isfinite()
            if odd.any():
                what = "NaN" if logits.isnan().any() else "infinite"
                raise Failed(f"{what} in {name}", _first(odd), texts[0].tolist())
            gap, spread = (
                difference(logits.float(), wanted.float()),
                wanted.std().item(),
            )
            limit = 0.35 if dtype == torch.bfloat16 else 0.1
            real = gap.flatten(2).amax(-1) if gap.dim() > 2 else gap
            far = real.flatten().quantile(0.9).item() if real.numel() < 10**6 else 0.0
            spread = max(spread, 1e-3 * s.scale)
            if wanted.numel() > 1 and far > limit * max(spread, 1e-30) * 3:
                raise Failed(
                    f"{name} is {far / spread:.2g} standard deviations of the logits away",
                    _first(gap == gap.max()),
                    texts[0].tolist(),
                )
        else:
            said.append(name)
    return said


def _gradients_finite(s: Subject, inputs: tuple) -> list[str]:
    parameters = [p for m in s.modules for p in m.parameters() if p.requires_grad]
    if not parameters:
        return ["gradients not asked: no parameter was found"]
    texts = [inputs]
    if s.o.pad is not None:
        padded = [x.clone() for x in inputs]
        padded[0][0, padded[0].shape[1] // 2 :] = s.o.pad
        texts.append(tuple(padded))
        empty = [x.clone() for x in inputs]
        empty[0][-1] = s.o.pad
        texts.append(tuple(empty))
    for n, one in enumerate(texts):
        try:
            logits = s.call(one, grad=True)
        except Broken:
            if n == 2:  # it may refuse a row of nothing
                continue
            raise
        if not logits.requires_grad:
            raise Failed(
                "logits have no gradient: they are detached from all parameters"
            )
        noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
        finite = logits.isfinite().detach()
        loss = (torch.where(finite, logits, 0.0) * noise.to(logits)).sum()
        for p, g in zip(
            parameters,
            torch.autograd.grad(loss, parameters, allow_unused=True),
            strict=True,
        ):
            if g is not None and not g.isfinite().all():
                where = ("", " with padding", " with a row of padding alone")[n]
                raise Failed(
                    f"the gradient of {_name(s, p)} isn't finite{where}",
                    None,
                    one[0].tolist(),
                )
    return ["gradients are finite"]


def _name(s: Subject, parameter: Tensor) -> str:
    for m in s.modules:
        for name, p in m.named_parameters():
            if p is parameter:
                return name
    return "a parameter"


def _training_mode(s: Subject, inputs: tuple) -> list[str]:
    """Try the training mode: dropout acts, and gradients are the slopes."""
    if not (train := _training(s)):
        return []
    drops = [
        m
        for top in s.modules
        for m in top.modules()
        if isinstance(m, nn.Dropout) and m.p > 0
    ]
    with train as f:
        one, two = (s.call(inputs, f=f, number=n) for n in (0, 1))
        if drops and torch.equal(one, two):
            raise Failed("the model holds dropout, but training mode draws nothing")
        if not one.isfinite().all():
            raise Failed(
                "in training mode, logits aren't finite", _first(~one.isfinite())
            )
    with _training(s) as f:
        _slope(s, inputs, f)
    return ["in training mode gradients are slopes"]


def _slope(s: Subject, inputs: tuple, f: Callable) -> None:
    """Raise if the gradient isn't the slope of the loss, from one random state."""
    parameters = [p for m in s.modules for p in m.parameters() if p.requires_grad]
    if not parameters:
        return
    noise = torch.Generator().manual_seed(2)

    def loss(grad: bool) -> Tensor:
        logits = s.call(inputs, f=f, grad=grad)
        noise.manual_seed(2)
        upstream = torch.randn(logits.shape, generator=noise).to(logits)
        return (logits.log_softmax(-1).nan_to_num(0, 0, 0) * upstream).mean()

    try:
        with s.cast(torch.float64):
            gradients = torch.autograd.grad(loss(True), parameters, allow_unused=True)
            pairs = [
                (p, g)
                for p, g in zip(parameters, gradients, strict=True)
                if g is not None
            ]
            noise.manual_seed(5)
            way = [
                g / (g.norm() + 1e-12) * p.norm()
                + 0.5
                * torch.randn(g.shape, generator=noise, dtype=g.dtype).to(g)
                * p.abs().mean()
                for p, g in pairs
            ]
            slope = sum(
                (w * g).sum() for w, (_, g) in zip(way, pairs, strict=True)
            ).item()
            step, values = 1e-5, [p.data for p, _ in pairs]
            ends = []
            for sign in (1, -1):
                for (p, _), value, w in zip(pairs, values, way, strict=True):
                    p.data = value + sign * step * w
                ends.append(loss(False).item())
            for (p, _), value in zip(pairs, values, strict=True):
                p.data = value
    except (Broken, RuntimeError):
        return
    found = (ends[0] - ends[1]) / (2 * step)
    if abs(found - slope) > 0.03 * max(abs(found), abs(slope)) + 1e-7:
        raise Failed(
            f"in training mode the gradient says a slope of {slope:.4g}, and the "
            f"loss has {found:.4g}: another forward pass was differentiated"
        )


# ---- loss ----------------------------------------------------------------------------


class Pretended(nn.Module):
    """A model that gives the logits one wants, and keeps them for their gradient."""

    def __init__(self, s: Subject, make: Callable[[Tensor], Tensor]):
        super().__init__()
        self.s, self.make, self.kept, self.read = s, make, [], []
        self.config = getattr(s.f, "config", None)
        if "form" not in s.cache:
            s.cache["form"] = s.call(s.inputs, whole=True)
        self.form = s.cache["form"]

    def forward(self, *inputs: Any, **more: Any) -> Any:
        texts = [
            x
            for x in (*inputs, *more.values())
            if isinstance(x, Tensor) and not x.is_floating_point() and x.dim() == 2
        ]
        names = more.get("decoder_input_ids")
        text = (
            names
            if names is not None
            else texts[1 if self.s.kind == "translation" and len(texts) > 1 else 0]
        )
        leaf = self.make(text).requires_grad_()
        self.kept.append(leaf)
        self.read.append(text)
        return self.s.wrap(leaf, self.form)


class Loss:
    """A loss function, however it is called."""

    def __init__(self, s: Subject):
        self.s, self.loss, self.form = s, s.o.loss, ""
        self.aligned = False
        own = s.modules and s.f is s.modules[0] and "labels" in s.taken
        if self.loss is None and own and s.kind == "causal":
            self.form = "own"
            return
        if self.loss is None:
            raise NotAsked("which loss? loss= would say")
        if s.kind == "encoder":
            raise NotAsked("losses are asked of causal models and translations")
        try:
            call = self.loss.forward if isinstance(self.loss, nn.Module) else self.loss
            names = [
                n
                for n, p in inspect.signature(call).parameters.items()
                if p.kind in (0, 1)
                and (p.default is p.empty or n in (*LOGITS, *SHIFTED))
            ]
        except (TypeError, ValueError):
            names = ["logits", "target"]
        if len(names) < 2:
            self.form = "tokens"
        elif names[0].lower() in LOGITS or isinstance(self.loss, nn.Module):
            self.form = "logits"
            self.aligned = names[1].lower() in SHIFTED
        else:
            self.form = self._second(names)

    def _second(self, names: list[str]) -> str:
        """Find what a loss of a model and a batch takes."""
        inputs = self.s.around(self.s.real(rows=3))

        def zeros(x: Tensor) -> Tensor:
            return torch.zeros(*x.shape, self.s.vocabulary, device=x.device)

        errors = []
        for form in ("model", "pair", "logits"):
            self.form = form
            self.fake = Pretended(self.s, zeros)
            try:
                value = self(inputs, self.fake)
                if isinstance(value, Tensor) and value.dim() == 0 and self.fake.kept:
                    return form
                errors.append(f"{form}: no single number")
            except Failed as error:
                errors.append(str(error))
        raise Broken(f"loss can't be called: {'; '.join(errors)}")

    def __call__(self, inputs: tuple, fake: nn.Module | None = None, f=None) -> Tensor:
        """Return the loss of texts by a pretended model, or by the user's own."""
        s, model = self.s, fake if fake is not None else self.s.f
        batch = inputs if s.kind == "translation" else inputs[0]
        text = inputs[-1]
        if self.form == "own":
            arguments, loss = (), lambda: self.whole(text).loss
        elif self.form == "pair":
            shown = text[:, :-1], self.labels(text)[:, 1:]
            shown = (inputs[0], *shown) if s.kind == "translation" else shown
            arguments, loss = (model, shown), self.loss
        elif self.form == "logits":
            arguments, loss = (model, inputs), self._of_logits
        else:
            arguments = (batch,) if self.form == "tokens" else (model, batch)
            loss = self.loss

        def call(*_: Tensor) -> Any:
            return loss(*arguments)

        if fake is None or self.form in ("model", "pair", "logits"):
            value = s.call(inputs, f=call, grad=True, plain="loss")
        else:
            value = self._injected(inputs, fake, call)
        if isinstance(value, (tuple, list)) and value:
            value = value[0]
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise Broken(
                f"loss returned {words(value)}, and not one number, when called with "
                f"tokens {tuple(text.shape)}"
            )
        return value.reshape(())

    def whole(self, text: Tensor) -> Any:
        """Return all that a model with a loss of its own gives."""
        return self.s.f(text, labels=self.labels(text))

    def _of_logits(self, model: Callable, inputs: tuple) -> Any:
        text, logits = inputs[-1], tensor_of(model(*inputs))
        if not self.aligned:
            return self._flat(logits, text)
        labels = self.labels(F.pad(text[:, 1:], (0, 1), value=-100))
        if self.s.o.pad is not None and self.s.o.pad != self.s.o.end:
            labels = labels.masked_fill(labels == -100, self.s.o.pad)
        return self._flat(logits, labels)

    def labels(self, labels: Tensor) -> Tensor:
        """Return labels, (b, t), with −100 for padding."""
        pad = self.s.o.pad
        if pad is None:
            return labels
        wrong = labels == pad
        if pad == self.s.o.end:  # the first of them is the end, and is asked for
            wrong = wrong & (wrong.cumsum(1) > 1)
        return labels.masked_fill(wrong, -100)

    def _flat(self, logits: Tensor, labels: Tensor) -> Any:
        """Call a loss of logits and labels, in the shapes that it takes."""
        try:
            return self.loss(logits, labels)
        except (RuntimeError, ValueError, IndexError):
            keep = labels.flatten() != -100
            return self.loss(logits.flatten(0, 1)[keep], labels.flatten()[keep])

    def _injected(self, inputs: tuple, fake: nn.Module, call: Callable) -> Tensor:
        """Let a module of the function give the pretended logits."""
        module = injectable(self.s)
        if module is None:
            raise NotAsked(
                "f holds no module whose output is the logits: let loss take "
                "(model, tokens)"
            )

        def give(_: nn.Module, args: tuple, kwargs: dict, output: Any) -> Any:
            fake.form = output
            return fake(*args, **kwargs)

        hook = module.register_forward_hook(give, with_kwargs=True)
        try:
            return self.s.call(inputs, f=call, grad=True, plain="loss")
        finally:
            hook.remove()


def injectable(s: Subject) -> nn.Module | None:
    """Return the module whose output is the function's."""
    inputs, seen = s.around(s.real()), []

    def note(module: nn.Module, args: tuple, output: Any) -> None:
        seen.append((module, tensor_of(output)))

    hooks = [m.register_forward_hook(note) for m in s.modules]
    try:
        logits = s.call(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    for module, out in seen:
        if (
            isinstance(out, Tensor)
            and out.shape == logits.shape
            and torch.equal(out, logits)
        ):
            return module
    return None


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
    from annotated.probes._rows import _sources

    sources = _sources(s, 3)
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
            i = _first(here)
            raise Failed(f"at position t the loss asks for {name}", i[1:], shown)
    if right < 0.9:
        row, i = _first(here & (label != at(1)))
        raise Failed(
            f"at position {i} the loss asks for id {int(label[row, i])}, and not "
            f"for the next token, {int(at(1)[row, i])}",
            (row, i),
            shown,
        )
    wanted = place + 1 < ends
    missing = wanted & ~counts
    if missing.any():
        row, i = _first(missing)
        last = i + 2 == lengths[row] and s.o.end is not None
        what = (
            "the end is never asked for"
            if last
            else (
                f"the token {i + 1} of row {row} (id {int(at(1)[row, i])}) isn't asked for"
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
        row, i = _first(extra if extra.any() else beyond)
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
    if s.o.pad is not None:
        said += ", padding isn't"
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
            f"(about {spread**2 / 2:.3g} nats), of the gap {shared:.3g} come from what all "
            f"positions share; the token just read stands {echo:.3g} above the mean",
            None,
            text[0].tolist(),
        )
    if value < 0.7 * math.log(v):
        raise Failed(
            f"{said}: random tokens can't be guessed so well", None, text[0].tolist()
        )
    return said


# ---- parameters ----------------------------------------------------------------------


def parameters(s: Subject) -> str:
    """Every parameter gets a gradient, what is tied stays tied, states can be loaded."""
    whole = isinstance(s.f, nn.Module)
    tops = [m for m in modules_of(s.f) if any(True for _ in m.parameters())]
    if not tops:
        raise NotAsked(
            "no module with parameters was found in f; pass the module itself"
        )
    _registered(tops)
    said = [_gradients_reach(s, tops, whole), _ties(tops)]
    for top in tops:
        said.append(_loaded(s, top))
    if s.o.learn:
        said.append(_by_heart(s, tops))
    else:
        said.append("learning by heart not asked: learn=True would try it")
    return "; ".join(filter(None, said))


def _gradients_reach(s: Subject, tops: list[nn.Module], whole: bool) -> str:
    inputs, called = s.around(s.real()), set()
    named = {}
    for top in tops:
        for name, p in top.named_parameters():
            named.setdefault(id(p), (name, p))
    hooks = [
        m.register_forward_hook(lambda m, *_: called.add(id(m)))
        for top in tops
        for m in top.modules()
    ]
    try:
        output = s.call(inputs, grad=True, whole=True)
    finally:
        for hook in hooks:
            hook.remove()
    found, noise = [], torch.Generator().manual_seed(61)

    def tensors(out: Any) -> None:
        if isinstance(out, Tensor) and out.is_floating_point() and out.requires_grad:
            found.append(out)
        elif isinstance(out, dict):
            tensors(list(out.values()))
        elif isinstance(out, (list, tuple)):
            for one in out[:50]:
                tensors(one)

    tensors(
        output
        if isinstance(output, (Tensor, dict, list, tuple))
        else list(vars(output).values())
    )
    if not found:
        raise Failed("no output has a gradient: all parameters are cut off")
    total = sum(
        (x.nan_to_num(0, 0, 0) * torch.randn(x.shape, generator=noise).to(x)).sum()
        for x in found
    )
    wanted = [(name, p) for name, p in named.values() if p.requires_grad and p.numel()]
    frozen = len(named) - len(wanted)
    gradients = torch.autograd.grad(total, [p for _, p in wanted], allow_unused=True)
    owners = {
        id(p): m
        for top in tops
        for m in top.modules()
        for p in m.parameters(recurse=False)
    }
    cut, idle = [], []
    for (name, p), g in zip(wanted, gradients, strict=True):
        if g is not None and g.any():
            continue
        if g is not None and (name.endswith("bias") or (p.dim() < 2 and p.numel() < 2)):
            continue  # a bias of keys has no say in a softmax
        if g is None and not whole and id(owners[id(p)]) not in called:
            idle.append(name)  # a head that this function doesn't ask
        elif any(word in name for word in OPTIONAL):
            idle.append(name)
        else:
            cut.append(name)
    if cut:
        more = f" (and {len(cut) - 1} more)" if len(cut) > 1 else ""
        raise Failed(
            f"{cut[0]}{more} gets no gradient: it has no say in the outputs",
            cut[0],
            cut,
        )
    said = f"all {len(wanted) - len(idle)} parameters get a gradient"
    if frozen:
        said += f", {frozen} are frozen"
    return said + (f", {len(idle)} aren't asked ({idle[0]})" if idle else "")


def _registered(tops: list[nn.Module]) -> None:
    """Raise if modules stand in a plain list, where no parameter is registered."""
    every = {id(m) for top in tops for m in top.modules()}
    for top in tops:
        for name, m in top.named_modules():
            for key, held in vars(m).items():
                if key.startswith("_") or not isinstance(held, (list, tuple, dict)):
                    continue
                for one in held.values() if isinstance(held, dict) else held:
                    lost = isinstance(one, nn.Module) and id(one) not in every
                    lost = lost or isinstance(one, nn.Parameter)
                    if lost and (
                        isinstance(one, Tensor) or any(True for _ in one.parameters())
                    ):
                        path = f"{name}.{key}" if name else key
                        raise Failed(
                            f"{path} is a plain {type(held).__name__}: what it "
                            "holds is no part of the model",
                            path,
                        )


def groups(top: nn.Module) -> set[frozenset[str]]:
    """Return the names that share one parameter."""
    names: dict[int, list[str]] = {}
    for name, p in top.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return {frozenset(one) for one in names.values() if len(one) > 1}


def _ties(tops: list[nn.Module]) -> str:
    tied = 0
    for top in tops:
        places: dict[int, str] = {}
        seen: dict[int, int] = {}
        for name, p in top.named_parameters(remove_duplicate=False):
            at = p.data_ptr()
            if p.numel() and at in places and seen[at] != id(p):
                raise Failed(
                    f"{places[at]} and {name} share numbers, but are two "
                    "parameters: after moving or loading they part",
                    name,
                )
            places.setdefault(at, name)
            seen.setdefault(at, id(p))
        before = groups(top)
        tied += len(before)
        moved = copy.deepcopy(top)
        moved.double()
        if groups(moved) != before:
            lost = sorted(next(iter(before ^ groups(moved))))
            raise Failed(
                f"{' and '.join(lost)} aren't tied any more after moving", lost
            )
        _declared(top, before)
    return f"{tied} are tied and stay so" if tied else ""


def _declared(top: nn.Module, before: set[frozenset[str]]) -> None:
    config = getattr(top, "config", None)
    says = [
        n
        for n in (
            "tied",
            "tie_weights",
            "tie_word_embeddings",
            "weight_tying",
            "tie_embeddings",
        )
        if getattr(config, n, None) is True or getattr(top, n, None) is True
    ]
    if not says:
        return
    together = {n for group in before for n in group}
    tables = [(n, m) for n, m in top.named_modules() if isinstance(m, nn.Embedding)]
    heads = [(n, m) for n, m in top.named_modules() if isinstance(m, nn.Linear)]
    for name, table in tables:
        for other, head in heads:
            alike = table.weight.shape == head.weight.shape
            if (alike and table.weight.shape[0] > 2 * table.weight.shape[1]) or (
                alike and any(w in other.lower() for w in ("head", "output", "out"))
            ):
                both = {f"{name}.weight", f"{other}.weight"}
                if table.weight is not head.weight and not both & together:
                    raise Failed(
                        f"{says[0]} is True, but {name} and {other} are two parameters",
                        name,
                    )


def _fresh(s: Subject, top: nn.Module) -> nn.Module | None:
    """Return another instance, with other numbers, if one can be made."""
    if callable(s.o.make):
        return s.o.make()
    config = getattr(top, "config", None)
    if config is None or (isinstance(config, dict) and not config):
        return None
    try:
        torch.manual_seed(99)
        other = type(top)(copy.deepcopy(config))
    except Exception:
        return None
    names = [[(n, type(m)) for n, m in one.named_modules()] for one in (top, other)]
    return other if names[0] == names[1] else None  # it may take more than a config


def _loaded(s: Subject, top: nn.Module) -> str:
    """Load the saved state into another instance, and compare outputs and ties."""
    inputs = s.around(s.real())
    if any(p.device.type == "meta" for p in top.parameters()):
        return ""
    other = _fresh(s, top) if top is s.f else None
    how = "another instance"
    if other is None:
        other, how = copy.deepcopy(top), "a copy with other numbers"
        with torch.no_grad():
            for p in other.parameters():
                if p.is_floating_point():
                    p.add_(torch.randn_like(p))
            for name, x in other.named_buffers():
                if name in other.state_dict() and x.is_floating_point():
                    x.add_(torch.randn_like(x))
    file = io.BytesIO()
    torch.save(top.state_dict(), file)
    file.seek(0)
    try:
        other.load_state_dict(torch.load(file, weights_only=True))
    except Exception as error:
        raise Failed(
            "a saved state dict can't be loaded: "
            f"{str(error).strip().splitlines()[-1].strip()[:160]}"
        ) from error
    device = next(top.parameters()).device
    other.to(device).eval()
    if groups(other) != groups(top):
        lost = sorted(next(iter(groups(other) ^ groups(top))))
        raise Failed(f"{' and '.join(lost)} aren't tied any more after loading", lost)
    if top is not s.f:
        return ""
    wanted, found = s.call(inputs), s.call(inputs, f=other)
    if s.apart(found, wanted) > 1:
        gap = difference(found, wanted).max().item()
        raise Failed(
            f"{how} that loads the state dict gives other logits (by {gap:.2g}): "
            "something that matters isn't in it",
            None,
            inputs[-1].tolist(),
        )
    return f"{how} that loads the state gives the same"


def _by_heart(s: Subject, tops: list[nn.Module]) -> str:
    """Learn one batch by heart, and put everything back."""
    inputs = s.around(s.real())
    if s.kind == "encoder":
        return "learning by heart is asked of causal models and translations"
    text = inputs[-1]
    every = [p for m in tops for p in m.parameters() if p.requires_grad]
    kept = [p.detach().clone() for p in every]
    optimizer, values = torch.optim.Adam(every, 3e-3), []
    s.afford(300)
    try:
        for _ in range(100):
            logits = s.call(inputs, grad=True).float()[:, :-1]
            value = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten().long())
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            values.append(value.item())
    finally:
        with torch.no_grad():
            for p, value in zip(every, kept, strict=True):
                p.copy_(value)
                p.grad = None
    if not values[-1] < 0.5 * values[0]:
        raise Failed(
            f"100 steps of Adam on one batch lower its loss from {values[0]:.3f} "
            f"to {values[-1]:.3f} only: it can't be learnt by heart",
            None,
            text.tolist(),
        )
    return f"one batch is learnt by heart ({values[0]:.2f} to {values[-1]:.2f})"
