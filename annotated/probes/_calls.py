"""Calling somebody's model without leaving a trace, and saying what went wrong.

Letters: b batch, t length, s source length, v vocabulary (``book/notation.md``).
"""

import functools
import inspect
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from annotated.probes._held import modules_of, seed

KINDS = ("causal", "encoder", "translation")
MASKS = ("attention_mask", "src_key_padding_mask", "key_padding_mask", "mask")
POSITIONS = ("position_ids", "positions")
TOLERANCE = 3e-5  # of the largest logit, where shapes differ
ROUNDING = 1e-5  # of the largest logit: what may be rounding at equal shapes


class Failed(Exception):
    """A probe found a fault: what, at which positions, and the texts that show it."""

    def __init__(self, said: str, where: Any = None, example: Any = None):
        super().__init__(said)
        self.where, self.example = where, example


class NotAsked(Exception):
    """A probe can't be asked: why, and which argument would let it."""


class Broken(Failed):
    """The function raised, or returned what can't be read."""


def words(value: Any) -> str:
    """Return a name for a function, shapes for tensors, a short text for the rest."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}"
    return getattr(value, "__name__", type(value).__name__)


def tensor_of(output: Any) -> Any:
    """Return the logits of what a model returned: a tensor, or what holds one."""
    for name in ("logits", "last_hidden_state"):
        if not isinstance(output, Tensor) and hasattr(output, name):
            return getattr(output, name)
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], Tensor):
        return output[0]
    return output


def difference(a: Tensor, b: Tensor) -> Tensor:
    """Return how far numbers lie apart, ``(b, t, v)`` or less; equal infinities not."""
    a, b = a.detach(), b.detach()
    same = (a == b) | (a.isnan() & b.isnan())
    return (a - b).abs().nan_to_num(torch.inf, torch.inf).masked_fill(same, 0.0)


class Subject:
    """A function under the probes: its arguments, and ways to call it."""

    def __init__(self, f: Callable, tokens: Any, kind: str, seconds: float, options):
        self.f, self.kind, self.name, self.o = f, kind, words(f), options
        self.spent, self.per_call, self.recent = 0.0, 0.0, []
        self.seconds, self.printed, self.cache = seconds, "", {}
        self.tolerance = TOLERANCE
        found = modules_of(f)
        train = options.train
        self.modules = found + [m for m in modules_of(train) if m not in found]
        first = next((p for m in found for p in m.parameters()), None)
        texts = tokens if kind == "translation" else (tokens,)
        here = None if first is None or first.device.type == "meta" else first.device
        self.inputs = tuple(x.detach().to(here or x.device) for x in texts)
        call = f.forward if isinstance(f, nn.Module) else f
        try:
            self.taken = dict(inspect.signature(call).parameters)
        except (TypeError, ValueError):
            self.taken = {}
        names = (options.pad, options.start, options.end, options.mask)
        self.special = {n for n in names if type(n) is int}
        self.rows = max(2, len(self.inputs[-1]))

    # ---- texts ---------------------------------------------------------------------

    @property
    def text(self) -> Tensor:
        """The text that is varied, (b, t): of a translation, the target."""
        return self.inputs[-1]

    @functools.cached_property
    def ids(self) -> Tensor:
        """The ids that new tokens are drawn from."""
        return self._ids(self.text, self.vocabulary or int(self.text.max()) + 1)

    @functools.cached_property
    def source_ids(self) -> Tensor:
        return self._ids(self.inputs[0], int(self.inputs[0].max()) + 1)

    def _ids(self, text: Tensor, size: int) -> Tensor:
        every = set(text.unique().tolist())
        if len(every - self.special) < min(16, size):  # too few to tell models apart
            every = set(range(min(size, 10_000))) | every
        ordinary = sorted(every - self.special) or sorted(every)
        return torch.tensor(ordinary, dtype=text.dtype, device=text.device)

    def draw(self, *shape: int, of: Tensor | None = None, number: int = 0) -> Tensor:
        """Draw tokens of a shape (b, t); ``of`` are the ids to draw from."""
        of = self.ids if of is None else of
        generator = torch.Generator().manual_seed(number)
        return of[torch.randint(len(of), shape, generator=generator).to(of.device)]

    def other(self, text: Tensor, of: Tensor | None = None, number: int = 1) -> Tensor:
        """Return tokens that differ from ``text`` at every place."""
        of = self.ids if of is None else of
        place = torch.searchsorted(of, text.contiguous()).clamp(max=len(of) - 1)
        step = self.draw(
            *text.shape, of=torch.arange(max(len(of) - 1, 1)), number=number
        )
        return of[(place + 1 + step.to(of.device)) % len(of)]

    def real(self, width: int | None = None, rows: int | None = None) -> Tensor:
        """Return rows of text without special ids, (rows, width), drawn if short."""
        rows, width = rows or self.rows, width or self.text.shape[1]
        text = self.draw(rows, width, number=7)
        n, m = min(rows, len(self.text)), min(width, self.text.shape[1])
        text[:n, :m] = self.text[:n, :m]
        special = torch.tensor(sorted(self.special), dtype=text.dtype)
        wrong = torch.isin(text, special.to(text.device))
        return torch.where(wrong, self.draw(rows, width, number=8), text)

    def sources(self, n: int) -> Tensor | None:
        """Return n different sources of a translation, (n, s), without special ids."""
        if self.kind != "translation":
            return None
        given = self.inputs[0]
        drawn = self.draw(n, given.shape[1], of=self.source_ids, number=13)
        drawn[: len(given)] = given[:n]
        wrong = torch.isin(drawn, drawn.new_tensor(sorted(self.special)))
        instead = self.draw(*drawn.shape, of=self.source_ids, number=14)
        return torch.where(wrong, instead, drawn)

    # ---- calls ---------------------------------------------------------------------

    def around(self, text: Tensor, source: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return all inputs for rows of the varied text, (b, t)."""
        if self.kind != "translation":
            return (text,)
        if source is None:
            source = self.inputs[0][:1].expand(len(text), -1)
        return source, text

    def run(self, text: Tensor, source: Tensor | None = None, **how: Any) -> Tensor:
        return self.call(self.around(text, source), **how)

    def call(
        self,
        inputs: tuple[Tensor, ...],
        f: Callable | None = None,
        number: int = 0,
        grad: bool = False,
        whole: bool = False,
        plain: str = "",
        **more: Any,
    ) -> Any:
        """Return logits, from a known random state.

        ``whole``: return all that came. ``plain``: the name of another function, which
        takes the tokens and nothing else, and may return anything.
        """
        given = tuple(x.clone() for x in inputs)
        seed(number)
        said, began = io.StringIO(), (time.process_time(), time.monotonic())
        f, more = f or self.f, {} if plain else self.extras(given) | more
        name = plain or self.name
        shapes = " and ".join(words(x) for x in inputs)
        called = f"when called with tokens {shapes}"
        if more:
            called += " and " + ", ".join(f"{k} {words(v)}" for k, v in more.items())
        try:
            with torch.set_grad_enabled(grad), redirect_stdout(said):
                if not plain and "decoder_input_ids" in self.taken and len(given) > 1:
                    more |= {"input_ids": given[0], "decoder_input_ids": given[1]}
                    output = f(**more)
                else:
                    output = f(*given, **more)
        except Exception as error:
            first = (str(error).strip() or "no message").splitlines()[0][:160]
            message = f"{name} raised {type(error).__name__} ({first}) {called}"
            raise Broken(message, None, inputs) from error
        cpu, wall = time.process_time() - began[0], time.monotonic() - began[1]
        took = cpu if cpu > 0.02 * wall else wall  # a busy machine isn't a slow model
        self.recent = [*self.recent[-7:], took]
        self.per_call = min(self.recent)  # the others waited for a processor
        self.spent += self.per_call
        self.printed = self.printed or said.getvalue().strip()
        if any(not torch.equal(a, b) for a, b in zip(given, inputs, strict=True)):
            raise Broken(f"{name} changed its own tokens {called}", None, inputs)
        if whole or plain:
            return output
        logits = tensor_of(output)
        b, t = inputs[-1].shape
        if self.kind == "causal" and getattr(logits, "shape", None) == (b, t - 1):
            if logits.is_floating_point():  # scores of all tokens but the first
                logits = nn.functional.pad(logits, (1, 0))
        self._check(logits, inputs, called)
        return logits.flatten(2) if logits.dim() > 3 else logits

    def _check(self, logits: Any, inputs: tuple[Tensor, ...], called: str) -> None:
        name, text = self.name, inputs[-1]
        if not isinstance(logits, Tensor):
            raise Broken(f"{name} returned {words(logits)}, no tensor, {called}")
        if logits.device.type == "meta":
            raise Broken(f"{name} returned a tensor without numbers (meta) {called}")
        if not logits.is_floating_point():
            what = f"{words(logits)}: numbers that are no logits"
            raise Broken(f"{name} returned {what}, {called}")
        wanted, shape = tuple(text.shape), tuple(logits.shape)
        fits = shape[:2] == wanted if len(shape) > 2 else shape[:1] == wanted[:1]
        if self.kind != "encoder":
            scores = self.kind == "causal" and shape in (wanted, wanted[:1])
            fits = (len(shape) == 3 and fits) or scores
        if not fits or not shape:
            b, t = wanted
            what = f"({b}, {t}, v)" if self.kind != "encoder" else f"({b}, {t}, …)"
            raise Broken(f"{name} returned the shape {shape} and not {what} {called}")

    def extras(self, inputs: tuple[Tensor, ...]) -> dict[str, Any]:
        """Return the arguments that tell the function of padding and positions."""
        o, more = self.o, {}
        text = inputs[0]
        if callable(o.mask):
            made = o.mask(*inputs)
            name = next((n for n in MASKS if n in self.taken), "mask")
            more |= made if isinstance(made, dict) else {name: made}
        elif o.pad is not None and (name := self.mask_name()):
            more[name] = self._mask(name, text != o.pad)
            if name == "attention_mask" and "decoder_attention_mask" in self.taken:
                behind = (inputs[-1] != o.pad).flip(1).cumsum(1).flip(1) > 0
                behind[:, :1] = True  # the start may be the pad's id
                more["decoder_attention_mask"] = behind.long()
        if callable(o.positions):
            made = o.positions(*inputs)
            name = next((n for n in POSITIONS if n in self.taken), "positions")
            more |= made if isinstance(made, dict) else {name: made}
        elif name := self.positions_name():
            real = torch.ones_like(text) if o.pad is None else (text != o.pad).long()
            more[name] = (real.cumsum(1) - 1).clamp(min=0)
        return more

    def mask_name(self) -> str | None:
        """Return the argument that takes a padding mask, if there is one."""
        if isinstance(self.o.mask, str):
            return self.o.mask
        found = next((n for n in MASKS if n in self.taken), None)
        if found == "mask" and self.o.mask is not True:  # the book's, True = may attend
            typed = "Bool" in str(self.taken[found].annotation)
            return found if typed else None
        return found

    def positions_name(self) -> str | None:
        given = self.o.positions
        if isinstance(given, str) and given not in ("set", "none"):
            return given
        found = next((n for n in POSITIONS if n in self.taken), None)
        asked = self.kind == "causal" and self.o.pad is not None and self.mask_name()
        return found if given is True or (given is None and asked) else None

    def _mask(self, name: str, real: Tensor) -> Tensor:
        if name.endswith("key_padding_mask"):
            return ~real
        if name == "mask" and "Bool" in str(
            getattr(self.taken.get(name), "annotation", "")
        ):
            return real[:, None, None]
        return real.long() if name.endswith("attention_mask") else real

    def wrap(self, logits: Tensor, form: Any) -> Any:
        """Return logits in the form of another output."""
        if isinstance(form, Tensor):
            return logits
        if isinstance(form, (tuple, list)):
            return (logits, *form[1:])
        return SimpleNamespace(logits=logits, last_hidden_state=logits)

    # ---- what is measured ----------------------------------------------------------

    @functools.cached_property
    def first(self) -> Tensor:
        """What the function gives for the tokens as they came."""
        return self.call(self.inputs)

    @functools.cached_property
    def draws(self) -> bool:
        """Whether another random state gives other logits; shapes then do, too."""
        return bool(difference(self.call(self.inputs, number=1), self.first).max() > 0)

    @property
    def scorer(self) -> bool:
        """Whether it gives scores of texts, (b,) or (b, t), and no logits."""
        return self.kind == "causal" and self.first.dim() < 3

    @functools.cached_property
    def vocabulary(self) -> int | None:
        logits = self.first
        return (
            logits.shape[-1] if self.kind != "encoder" and logits.dim() == 3 else None
        )

    @functools.cached_property
    def scale(self) -> float:
        finite = self.first.masked_select(self.first.isfinite())
        return max(finite.abs().max().item(), 1e-30) if finite.numel() else 1.0

    def moved(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the largest move of each position, (b, t), or of each row, (b, 1)."""
        moved = difference(a, b)
        if moved.dim() == 1:
            return moved[:, None]
        if moved.dim() == 3:
            return moved.amax(-1)
        return (
            moved
            if self.scorer and moved.dim() == 2
            else moved.flatten(1).amax(1, True)
        )

    def apart(self, a: Tensor, b: Tensor) -> float:
        """Return how far two outputs lie apart, where 1 is the tolerance."""
        if not a.numel():
            return 0.0
        if self.tolerance < TOLERANCE and not (a.isfinite() & b.isfinite()).all():
            raise Broken(
                "numbers aren't finite in double precision"
            )  # masks of float32
        return difference(a, b).max().item() / (self.tolerance * self.scale)

    def afford(self, calls: float) -> None:
        """Go on only if there is time for so many calls."""
        left = self.seconds - self.spent
        if calls * self.per_call > left:
            raise NotAsked(
                f"a call takes {self.per_call:.2g} s: {calls:.0f} of them don't fit "
                f"into what is left of seconds={self.seconds:g}"
            )

    def training(self) -> Any:
        """Return the function in training mode, for a ``with``; None if not given."""
        train = self.o.train
        if not train or (train is True and not self.modules):
            return None

        @contextmanager
        def mode() -> Iterator[Callable]:
            try:
                for m in self.modules:
                    m.train()
                yield self.f if train is True else train
            finally:
                for m in self.modules:
                    m.eval()

        return mode()

    @contextmanager
    def cast(self, dtype: torch.dtype) -> Iterator[None]:
        """Give parameters and buffers another precision for a while."""
        every = {id(m): m for top in self.modules for m in top.modules()}.values()
        kept = {id(p): (p, p.data) for m in every for p in m.parameters(recurse=False)}
        named = [
            (m, n, b) for m in every for n, b in m._buffers.items() if b is not None
        ]
        grads = [(p, p.grad) for p, _ in kept.values()]
        try:
            for p, data in kept.values():
                p.grad = None
                if data.is_floating_point():
                    p.data = data.to(dtype)
            for m, name, b in named:
                if b.is_floating_point():
                    m._buffers[name] = b.to(dtype)
            yield
        finally:
            for p, data in kept.values():
                p.grad = None
                p.data = data
            for p, grad in grads:
                p.grad = grad
            for m, name, b in named:
                m._buffers[name] = b

    def finer(self, ask: Callable[["Subject"], str]) -> str:
        """Ask, and once more in double precision with a 20 times smaller tolerance."""
        if self.draws:
            raise NotAsked(
                "it draws at random in evaluation, and another shape draws otherwise: "
                "see modes and numbers"
            )
        said = ask(self)
        if self.modules:
            rows = self.rows
            try:
                self.afford(20)
                self.tolerance = TOLERANCE / 20
                self.rows = max(2, rows // 2) if rows > 1 else 1  # of twice the size
                with self.cast(torch.float64):
                    ask(self)
            except (Broken, NotAsked):
                said += "; not asked in double precision"
            finally:
                self.tolerance, self.rows = TOLERANCE, rows
        return said

    def pairs(self, base: Tensor, other: Tensor, **how: Any) -> Tensor:
        """Return how far each position moves from one batch of texts to another.

        Both are called in pieces of as many rows as the user's batch, so that shapes
        are equal and memory stays that of a pass.
        """
        moves, length = [], max(base.shape[1], 1)
        rows = max(1, min(self.rows, self.rows * self.text.shape[1] // length))
        for a, b in zip(base.split(rows), other.split(rows), strict=True):
            moves.append(self.moved(self.run(a, **how), self.run(b, **how)))
        return torch.cat(moves)

    def exact(
        self,
        moves: Tensor,
        again: Callable[[], Tensor],
        slopes: Callable[[], Tensor | None] | None = None,
    ) -> Tensor:
        """Return moves with those set to 0 that are rounding and no leak.

        What is rounding vanishes in double precision (experts that get another number
        of tokens multiply matrices of another shape); a leak does not. ``slopes``
        gives gradients that a leak would have, (b, t).
        """
        largest = moves.max().item() if moves.numel() else 0.0
        if not 0 < largest <= ROUNDING * self.scale or not self.modules:
            return moves
        try:
            with self.cast(torch.float64):
                double = again().max().item()
        except Failed:
            double = largest
        gone = double <= 1e-4 * largest
        if not gone and slopes is not None and largest <= ROUNDING * self.scale / 10:
            try:  # norms of float32 round in double precision, too, but have no slope
                found = slopes()
            except (Failed, RuntimeError):
                found = None  # without one, a move counts
            gone = found is not None and not found.any()
        return torch.zeros_like(moves) if gone else moves
