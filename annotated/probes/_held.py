"""Finding the modules that a function holds, and leaving them as they were."""

import functools
import inspect
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def modules_of(f: Any, depth: int = 3) -> list[nn.Module]:
    """Return the modules that a function holds: itself, or in its closure."""
    seen, found = set(), []

    def look(thing: Any, left: int) -> None:
        if id(thing) in seen or left < 0 or inspect.ismodule(thing):
            return
        seen.add(id(thing))
        if isinstance(thing, nn.Module):
            found.append(thing)
        elif isinstance(thing, functools.partial):
            look((thing.func, thing.args, thing.keywords), left)
        elif inspect.ismethod(thing):
            look((thing.__self__, thing.__func__), left)
        elif inspect.isfunction(thing):
            if not str(thing.__module__).startswith("torch."):
                seen_by_it = inspect.getclosurevars(thing)
                held = seen_by_it.nonlocals, seen_by_it.globals, thing.__defaults__
                look(held, left - 1)
        elif isinstance(thing, dict):
            for value in thing.values():
                look(value, left)
        elif isinstance(thing, (tuple, list)):
            for value in thing[:100]:
                look(value, left)
        elif not isinstance(thing, (type, Tensor)) and hasattr(thing, "__dict__"):
            look(dict(vars(thing)), left - 1)

    look(f, depth)
    inner = {id(m) for top in found for m in top.modules() if m is not top}
    return [top for top in found if id(top) not in inner]


@contextmanager
def untouched(modules: list[nn.Module]) -> Iterator[None]:
    """Leave the modules as they were: modes, values, gradients; and all random states.

    Inside they are in evaluation mode. Parameters above 4 MB in all aren't copied:
    only a model that changes its own weights while it reads would change them.
    """
    every = {id(m): m for top in modules for m in top.modules()}.values()
    modes = [(m, m.training) for m in every]
    parameters = {id(p): p for m in every for p in m.parameters(recurse=False)}.values()
    buffers = [(m, n, b) for m in every for n, b in m._buffers.items() if b is not None]
    kept = [b for *_, b in buffers]
    if sum(p.numel() * p.element_size() for p in parameters) < 2**22:
        kept += parameters
    copies = [(x, x._version, x.detach().clone()) for x in kept]
    gradients = [(p, p.grad, p.requires_grad) for p in parameters]
    numpy = sys.modules.get("numpy")
    states = random.getstate(), numpy and numpy.random.get_state()
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    try:
        with torch.random.fork_rng(enabled=True, devices=None if cuda else []):
            for top in modules:
                top.eval()
            for p in parameters:
                p.grad = None
            yield
    finally:
        for m, mode in modes:
            m.training = mode
        for m, name, b in buffers:
            m._buffers[name] = b
        for x, version, copy in copies:
            if x._version != version:
                x.data.copy_(copy)
        for p, gradient, wanted in gradients:
            p.grad, p.requires_grad = gradient, wanted
        random.setstate(states[0])
        if numpy:
            numpy.random.set_state(states[1])


def seed(number: int) -> None:
    """Set every random state that a model may draw from."""
    torch.manual_seed(number)
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number)
