"""Probes: what a model does wrong, found by calling it, with the smallest example.

    from annotated import probes

    report = probes.probe(f, tokens, kind="causal")
    print(report)                                        # a line for each probe
    probes.require_sound(f, tokens, kind="causal")       # in a test

``f`` is a module or a function of token ids that gives logits. The probes call it with
texts that differ in one thing, and compare. They need no source and no training, and
leave the model as it was: mode, parameters, gradients, random states. At equal shapes
honest models move by exactly 0.0, so no tolerance hides a small leak; where shapes must
differ (a prefix alone, a batch of one, a cache), 3e-5 of the largest logit is allowed.
What a probe finds need not be used by the model: it says what was seen, and no more.

Letters: b batch, t length, s source length, v vocabulary (``book/notation.md``).
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from annotated import require
from annotated.probes._cache import cache, standing_still
from annotated.probes._calls import (
    KINDS,
    Broken,
    Failed,
    NotAsked,
    Subject,
    difference,
    words,
)
from annotated.probes._future import future
from annotated.probes._held import untouched
from annotated.probes._loss import loss
from annotated.probes._modes import modes_and_numbers
from annotated.probes._parameters import parameters
from annotated.probes._reading import order, reach, scores
from annotated.probes._report import Outcome, Report
from annotated.probes._rows import batch, packing, padding

__all__ = ["NAMES", "Outcome", "Report", "probe", "require_sound"]


def _call(s: Subject) -> str:
    """The function takes tokens, and gives logits of the right shape."""
    try:
        out = s.first
    except Broken as error:
        if len(s.text) > 1:  # if it reads a row alone, the others go on, row by row
            s.inputs, s.rows = tuple(x[:1] for x in s.inputs), 1
            with suppress(Broken):
                s.first  # noqa: B018, it's kept
        raise error
    shapes = [(1, s.text.shape[1]), (2, s.text.shape[1]), (2, 1)]
    s.afford(2 * len(shapes))
    refused = []
    for rows, width in shapes[:2] if s.scorer else shapes:
        try:
            s.run(s.real(width, rows))
        except Broken as error:
            refused.append(error)
            if rows == 2 and width > 1:
                s.rows = 1  # the others go on, row by row
    if refused:
        raise refused[0]
    others = s.text.int() if s.text.dtype == torch.int64 else s.text.long()
    said = (
        f"{words(s.text)} tokens give {words(out)}, {s.per_call * 1000:.3g} ms a call"
    )
    try:
        given = (*s.inputs[:-1], others)
        if difference(s.call(given), s.call(s.inputs)).max() > 0:
            said += f"; {others.dtype} ids give other logits"
    except Broken:
        said += f"; {others.dtype} ids are refused"
    if s.printed:
        said += f"; it prints ({s.printed.splitlines()[0][:60]!r} …)"
    return said


def _order(s: Subject) -> str:
    said = order(s)
    standing_still(s)
    return said


PROBES: dict[str, Callable[[Subject], str]] = {
    "call": _call,
    "future": future,
    "reach": reach,
    "scores": scores,
    "batch": batch,
    "padding": padding,
    "order": _order,
    "cache": cache,
    "packing": packing,
    "modes and numbers": modes_and_numbers,
    "loss": loss,
    "parameters": parameters,
}
NAMES = tuple(PROBES)  #: of all probes, in the order of a report


def probe(
    f: Callable,
    tokens: Tensor | tuple[Tensor, Tensor],
    kind: str = "causal",
    *,
    pad: int | None = None,
    start: int | None = None,
    end: int | None = None,
    mask: Any = None,
    positions: Any = None,
    step: Callable | None = None,
    prefill: Callable | None = None,
    reorder: Callable | None = None,
    segments: Any = None,
    loss: Callable | None = None,
    train: Any = None,
    make: Callable | None = None,
    vocabulary: int | None = None,
    learn: bool = False,
    strict: bool = False,
    only: Collection[str] = (),
    seconds: float = 60.0,
) -> Report:
    """Return what the probes say of a model.

    What can't be asked without an argument is "not asked", and says which. Prints of
    ``f`` are kept apart. Modules that ``f`` is or holds in its closure are put into
    evaluation mode for the while; of another device, the tokens are moved to theirs.

    >>> probe(model, tokens, pad=0, loss=lambda f, x: F.cross_entropy(
    ...     f(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten(), ignore_index=0)).ok
    >>> def prefill(tokens):                             # of a model with a cache
    ...     cache = KeyValueCache(model)
    ...     return cache.read(tokens), cache
    >>> probe(model, tokens, prefill=prefill, step=lambda x, c: (c.read(x), c)).ok

    Args:
        f: a module or a function: of token ids ``(b, t)``, integers, it gives logits
            ``(b, t, v)``; of kind "encoder" states ``(b, t, …)`` or classes ``(b, c)``;
            of kind "translation" ``f(source, target)`` gives ``(b, t, v)``, where
            logits at t are of target t + 1. An object with ``logits`` or
            ``last_hidden_state`` and a tuple that begins with them do, too. A causal
            ``f`` may also give log-chances of texts, ``(b,)``, or of each token,
            ``(b, t)``: then their sum is asked for.
        tokens: texts like those that the model reads, ``(b, t)``; t of 32 to 64 sees
            chunks up to that size. Of a translation, the pair ``(source, target)``.
        kind: "causal", "encoder" or "translation".
        pad: the id of padding, if ``f`` is to know it: from the ids, or by ``mask``.
        start: the id that begins texts.
        end: the id that ends them; the loss must ask for it.
        mask: how ``f`` is told of padding, if not by ids: the name of its argument, or
            ``mask(tokens)`` that makes it (a tensor, or a dictionary of arguments).
            A tensor (b, t), True = real, tells which id is padding.
            ``attention_mask`` (b, t), 1 = real, ``key_padding_mask`` (b, t), True =
            padding, and the book's ``mask`` (b, 1, 1, t), True = may attend, are found
            by themselves. An integer is the id of [MASK].
        positions: False says that texts are sets: order must not matter. True or the
            name of an argument that takes positions (b, t): they count from the first
            real token, so that padding in front may be asked of any kind.
        step: ``step(tokens, state) -> (logits, state)`` reads on: tokens ``(b, n)``,
            logits ``(b, n, v)``, or ``(b, v)`` of the last; the state is None at first,
            and may be changed in place (then ``step`` may return logits alone). It may
            take a third argument, the number of tokens that were read, or the tokens
            alone. A model with ``past_key_values`` needs none.
        prefill: ``prefill(tokens) -> (logits, state)`` reads the beginning; of a
            translation ``prefill(source, target)``, or ``prefill(source) -> state``.
            It may return the state alone. If not given, ``step`` does.
        reorder: ``reorder(state, rows) -> state`` takes rows of a state, as a beam
            search does. States that are tensors (b, …), or have ``keep(rows)`` or
            ``reorder_cache(rows)``, need none.
        segments: how ``f`` is told of packed documents: the name of its argument (or
            True), which takes the number of each token's document, ``(b, t)``; or
            ``segments(tokens, numbers) -> logits``; or the id that ends each document.
        loss: ``loss(f, tokens)``, the best, for then it is tried on models that copy,
            or are right; ``loss(f, (tokens, targets))`` with −100 for padding;
            ``loss(logits, tokens)``; ``loss(logits, target)``, where targets come
            shifted; or ``loss(tokens)``. Of a translation, tokens are the pair. A
            model with ``labels`` needs none.
        train: True, if ``f`` is to be asked in training mode, too; or the function.
        make: makes another instance of the model, to load its state into. A model with
            a ``config`` needs none: ``type(model)(model.config)``.
        vocabulary: number of ids, where outputs don't tell: of what scores texts.
        learn: whether to learn one batch by heart as well; 100 steps.
        strict: whether an empty batch must be possible.
        only: names of the probes to ask, ``NAMES``; all if not given.
        seconds: what does not fit into this time is not asked.

    Returns:
        A :class:`Report`: ``report.ok``, ``report.failures[0].name``, ``.where`` and
        ``.example``, ``report.figure()``; ``print(report)``.

    Raises:
        TypeError: if ``f`` can't be called, or tokens or ids are no integers.
        ValueError: if ``kind`` or a name in ``only`` is unknown, or there is no token.
    """
    require.choice(KINDS, kind=kind)
    first = {name.split()[0]: name for name in NAMES}  # "modes" will do
    only = [first.get(n, n) for n in ((only,) if isinstance(only, str) else only)]
    for name in only:
        require.choice(NAMES, only=name)
    for name, number in (("pad", pad), ("start", start), ("end", end)):
        if number is not None and not isinstance(number, int):
            raise TypeError(f"{name} must be an id, an integer, got {number!r}")
    if not callable(f):
        raise TypeError(f"f must be a module or a function, got {type(f).__name__}")
    texts = tokens if kind == "translation" else (tokens,)
    if kind == "translation" and (isinstance(tokens, Tensor) or len(tokens) != 2):
        raise TypeError("tokens must be a pair (source, target) of a translation")
    for text in texts:
        whole = isinstance(text, Tensor) and not (
            text.is_floating_point() or text.is_complex() or text.dtype == torch.bool
        )
        if not whole:
            raise TypeError(f"tokens must be a tensor of integers, got {words(text)}")
        fits = text.dim() == 2 and text.numel()
        require.that(fits, f"tokens must be (b, t), not empty, got {tuple(text.shape)}")
    if isinstance(mask, Tensor):  # True = real: it tells the id of padding
        pads = texts[0][~mask.bool()].unique() if mask.shape == texts[0].shape else ()
        pad, mask = int(pads[0]) if pad is None and len(pads) == 1 else pad, None
    positions = True if isinstance(positions, Tensor) else positions
    given = locals()
    names = "pad start end mask positions step prefill reorder segments loss train make"
    more = "vocabulary learn strict"
    options = SimpleNamespace(**{n: given[n] for n in f"{names} {more}".split()})
    subject = Subject(f, tokens, kind, seconds, options)
    outcomes = []
    with untouched(subject.modules):
        for name, ask in PROBES.items():
            if not only or name in only:
                outcomes.append(_ask(name, ask, subject))
            if name == "call" and outcomes and "first" not in vars(subject):
                why = "f gave no logits for the tokens as they came"
                left = (n for n in NAMES[1:] if not only or n in only)
                outcomes += [Outcome(n, "not asked", why) for n in left]
                break
    seen = subject.cache.get("reach")
    return Report(subject.name, kind, outcomes, None if seen is None else seen.cpu())


def _ask(name: str, ask: Callable[[Subject], str], subject: Subject) -> Outcome:
    try:
        if name != "call" and ask is not _call:
            subject.afford(1)
        return Outcome(name, "passed", ask(subject))
    except NotAsked as why:
        if name == "call":  # slow, but it gave logits
            return Outcome(name, "passed", f"it gives logits; {why}")
        return Outcome(name, "not asked", str(why))
    except Failed as fault:
        return Outcome(name, "failed", str(fault), fault.where, fault.example)
    except Exception as error:  # a fault of the probe itself, or of an odd output
        first = (str(error).strip() or "no message").splitlines()[0]
        kind = type(error).__name__
        said = f"{subject.name} can't be asked: {kind} ({first[:160]}) in this probe"
        return Outcome(name, "failed", said)


def require_sound(
    f: Callable,
    tokens: Tensor | tuple[Tensor, Tensor],
    kind: str = "causal",
    **how: Any,
) -> None:
    """Require that no probe fails, in a test.

    Args:
        f: as for :func:`probe`.
        tokens: as for :func:`probe`, ``(b, t)``.
        kind: as for :func:`probe`.
        how: the other arguments of :func:`probe`.

    Raises:
        AssertionError: with the lines of the report, if one does.
    """
    report = probe(f, tokens, kind, **how)
    if not report.ok:
        raise AssertionError(str(report))
