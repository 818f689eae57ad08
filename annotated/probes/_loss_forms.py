"""Calling a loss, however it is called, with logits that one wants."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.probes._calls import Broken, Failed, NotAsked, Subject, tensor_of, words

LOGITS = ("logits", "output", "outputs", "out", "pred", "preds", "predictions", "input")
SHIFTED = ("target", "targets", "y")


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
