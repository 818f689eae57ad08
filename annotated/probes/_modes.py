"""The probe of modes and numbers: the same twice, finite, and differentiable."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from annotated.probes._calls import (
    Broken,
    Failed,
    Subject,
    difference,
)


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
        raise Failed("logits aren't finite", first_of(~first.isfinite()), text)
    if first.isnan().any():
        raise Failed("logits are NaN", first_of(first.isnan()), text)
    _left_in_training(s)
    said.append("the same twice")
    said += _halves(s, inputs, first)
    said += _gradients_finite(s, tuple(x[-2:] for x in inputs))
    said += _training_mode(s, inputs)
    try:
        empty = s.call(tuple(x[:0] for x in inputs))
        said.append(f"an empty batch gives {tuple(empty.shape)}")
    except Broken as error:
        if s.o.strict:
            raise
        said.append(f"an empty batch is refused ({error})")
    return "; ".join(said)


def first_of(wrong: Tensor) -> tuple:
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
    said, rows, coarse = [], [inputs], 0.0
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
                raise Failed(f"{what} in {name}", first_of(odd), texts[0].tolist())
            gap, spread = (
                difference(logits.float(), wanted.float()),
                wanted.std().item(),
            )
            spread = max(spread, (0.05 if s.scorer else 1e-3) * s.scale)
            real = gap.flatten(2).amax(-1) if gap.dim() > 2 else gap
            far = real.flatten()[: 10**6].quantile(0.9).item() / spread
            limit = max(0.3, coarse) if dtype == torch.float16 else 1.0
            coarse = max(coarse, far)  # bfloat16 has fewer digits, and comes first
            if wanted.numel() > 1 and far > limit:
                raise Failed(
                    f"{name} is {far:.2g} deviations of the logits away",
                    first_of(gap == gap.max()),
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
    if not (train := s.training()):
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
                "in training mode, logits aren't finite", first_of(~one.isfinite())
            )
    with s.training() as f:
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
