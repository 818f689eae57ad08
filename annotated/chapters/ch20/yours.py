"""Page 20c: a model of Hugging Face under the probes, and models that are told less."""

from collections.abc import Callable, Mapping
from textwrap import fill
from typing import Any

import torch

from annotated import probes
from annotated.chapters.ch20 import faults

ASKED = ("padding", "cache", "loss")


def ask_gpt2():
    """Return what the probes say of a GPT-2, and of it called without positions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, eos_token_id=2, **sizes))
    tokens = torch.randint(3, 100, (2, 48))  # ids, (b, t)

    def called(x):  # a mask, and no positions
        return model(x, attention_mask=(x != 0).long())

    return [probes.probe(f, tokens, pad=0) for f in (model, called)]


def here_or_recorded(ask: Callable[[], list], record: Mapping[str, Any]) -> list[str]:
    """Return reports: of a run, or of the recorded one where the library is missing.

    Args:
        ask: returns reports; imports ``transformers``.
        record: that of the benchmark ``your_model``.
    """
    try:
        return [str(report) for report in ask()]
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        return record["reports"]


def wrapped(report: Any) -> str:
    """Return a report whose lines fit a page; what goes on is indented."""
    lines = str(report).splitlines()
    return "\n".join(fill(line, 78, subsequent_indent="    ") for line in lines)


#: by name: a model, and a loss of it
MODELS = {
    "1": (faults.Small, faults.cross_entropy),
    "2": (faults.FrontNotMasked, faults.cross_entropy),
    "3": (faults.PieceWithoutMask, faults.cross_entropy),
    "4": (faults.Small, faults.padding_counts),
}


def told(model: str, pad: bool, step: bool, loss: bool) -> str:
    """Return three lines of a model's report, told what the switches say and no more.

    Args:
        model: a name in ``MODELS``.
        pad: whether the probes know the id of padding.
        step: whether they can read on with its cache, and reorder it.
        loss: whether they have its loss.
    """
    with torch.random.fork_rng(devices=[]):
        make, cost = MODELS[model]
        f = make()
        given = {"pad": 0} if pad else {}
        given |= {"step": f.step, "reorder": f.reorder} if step else {}
        given |= {"loss": cost} if loss else {}
        report = probes.probe(f, faults.texts(), only=ASKED, **given)
    said = "\n".join(map(str, report.outcomes))
    # a frame with NaN in it is taken for a broken drawing
    return wrapped(said.replace("gives no NaN", "gives finite numbers"))


def lines(report: str, *names: str) -> str:
    """Return the first line of a report, and those of the probes with these names."""
    first, *others = report.splitlines()
    said = {line[2:].partition(":")[0]: line for line in others}
    return "\n".join([first, *(said[name] for name in names)])
