"""python -m annotated.probes package.module:function: probe a model in a terminal.

The name is of a module or a function of tokens, or of one without arguments that makes
it. Tokens are read from a file that ``torch.save`` wrote, or from a text: integers, a
row each line. Without them ids are drawn, 2 rows of 64 below ``--vocabulary``. The exit
status is 1 if a probe failed, and 2 if nothing could be asked.
"""

import argparse
import importlib
import inspect
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from annotated.probes import NAMES, probe
from annotated.probes._calls import KINDS


def load(name: str) -> Any:
    """Return what ``package.module:function`` names, called if it takes nothing."""
    module, _, path = name.partition(":")
    if not path:
        raise ValueError(f"NAME must be package.module:function, got {name}")
    thing = importlib.import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    if not isinstance(thing, nn.Module):
        every = inspect.signature(thing).parameters.values()
        bare = all(p.default is not p.empty for p in every)
        thing = thing() if bare or isinstance(thing, type) else thing
    return thing


def read(path: str | None, kind: str, vocabulary: int) -> Tensor | tuple[Tensor, ...]:
    """Return the tokens in a file, (b, t), or drawn ones; a pair of a translation."""
    if path is None:
        generator = torch.Generator().manual_seed(0)
        made = [torch.randint(vocabulary, (2, 64), generator=generator) for _ in "ab"]
        return tuple(made) if kind == "translation" else made[0]
    try:
        return torch.load(path, weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError):
        text = Path(path).read_text("utf-8").strip()
    if text.startswith("["):
        rows = json.loads(text)
        rows = rows if isinstance(rows[0], list) else [rows]
    else:
        lines = filter(None, text.split("\n"))
        rows = [[int(n) for n in line.replace(",", " ").split()] for line in lines]
    shortest = min(map(len, rows))
    return torch.tensor([row[:shortest] for row in rows])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m annotated.probes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="package.module:function")
    parser.add_argument("--kind", choices=KINDS, default="causal")
    parser.add_argument("--tokens", metavar="FILE")
    parser.add_argument("--vocabulary", type=int, default=50)
    parser.add_argument("--only", action="append", choices=NAMES, default=[])
    parser.add_argument("--seconds", type=float, default=60.0)
    for name in ("pad", "start", "end"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--train", action="store_true", help="training mode, too")
    for name in ("loss", "step", "prefill"):
        parser.add_argument(f"--{name}", metavar="package.module:function")
    given = vars(parser.parse_args(arguments))
    sys.path.insert(0, "")
    try:
        f = load(given.pop("name"))
        file = given.pop("tokens")
        tokens = read(file, given["kind"], given.pop("vocabulary"))
        for name in ("loss", "step", "prefill"):
            module, _, function = (given[name] or "").partition(":")
            given[name] = (
                getattr(importlib.import_module(module), function) if module else None
            )
        report = probe(f, tokens, **given)
    except (ImportError, AttributeError, OSError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(report)
    if file is None and "call" in [one.name for one in report.failures]:
        print("(ids were drawn: --tokens FILE or --vocabulary N says which there are)")
    return int(not report.ok)


if __name__ == "__main__":
    sys.exit(main())
