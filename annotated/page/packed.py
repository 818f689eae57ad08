"""Trained translators as a script that a page loads when its reader asks for it.

Matrices have eight bits a number and a scale for each row, everything else is in single
precision. A browser takes a script from a disk as well as from a server, which it does
with no other kind of file.

    python -m annotated.page.packed FILE

makes the speller of chapter 09 from a file that holds a ``state_dict``, the ``config``,
and the symbols of ``source`` and ``target`` by their ids, with the dictionary's answers
for the words that are held out.
"""

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from annotated.data import Vocabulary
from annotated.recipes.translation import Cutter
from annotated.spelling import Sounds, spelling_words
from annotated.transformer import Transformer, TransformerConfig

OPENING = "(globalThis.annotatedModels ||= {})[{name}] = "


def pack_model(
    name: str, model: Transformer, cutter: Cutter, held_out: str = ""
) -> str:
    """Return a script that puts a model under its name, for its page to find.

    Args:
        name: by which the page asks for it.
        model: any Transformer; its numbers lose precision.
        cutter: what cuts its texts; symbols must be letters, without merges.
        held_out: right answers, as :func:`answers_text` writes them.
    """
    shapes, whole, real = {}, [], []
    for part, weight in model.state_dict().items():
        weight = weight.detach().cpu().float()
        shapes[part] = list(weight.shape)
        if weight.dim() == 2:
            scales = weight.abs().amax(dim=1).clamp(min=1e-12) / 127
            whole.append((weight / scales[:, None]).round().to(torch.int8).flatten())
            weight = scales
        real.append(weight.flatten())
    packed = {
        "config": asdict(model.config),
        "source": cutter.source.symbols,
        "target": cutter.target.symbols,
        "shapes": shapes,
        "whole": _text(torch.cat(whole), "i1"),
        "real": _text(torch.cat(real), "<f4"),
        "held_out": held_out,
    }
    opening = OPENING.replace("{name}", json.dumps(name))
    return f"{opening}{json.dumps(packed, ensure_ascii=False)};\n"


def answers_text(known: Mapping[str, Sequence[Sounds]], cutter: Cutter) -> str:
    """Return words with their answers as ``;word ABC,ABD;word …;``, to be searched.

    A letter stands for a sound: A for the first one.

    Args:
        known: the answers of each word.
        cutter: whose ``target`` holds the sounds.
    """
    first = ord("A") - len(Vocabulary.SPECIAL)

    def coded(sounds: Sounds) -> str:
        return "".join(chr(first + i) for i in cutter.target.encode(sounds))

    rows = (f"{w} {','.join(map(coded, known[w]))};" for w in sorted(known))
    return ";" + "".join(rows)


def unpack_model(script: str) -> tuple[Transformer, Cutter]:
    """Return the model that a browser makes of a ``script``, and its cutter."""
    packed = json.loads(script[script.index("] = ") + 4 :].rstrip().removesuffix(";"))
    whole, real = _numbers(packed["whole"], "i1"), _numbers(packed["real"], "<f4")
    weights, at, then = {}, 0, 0
    for part, shape in packed["shapes"].items():
        rows, size = shape[0], torch.Size(shape).numel()
        weights[part] = real[then : then + rows]
        then += rows
        if len(shape) == 2:
            weights[part] = whole[at : at + size].view(shape) * weights[part][:, None]
            at += size
    return _made(packed, weights)


def _made(parts: dict[str, Any], weights: dict[str, Tensor]) -> tuple[Any, Cutter]:
    model = Transformer(TransformerConfig(**parts["config"])).eval()
    model.load_state_dict(weights)
    special = len(Vocabulary.SPECIAL)
    sides = (Vocabulary(parts[side][special:]) for side in ("source", "target"))
    return model, Cutter(*sides, [])


def _text(numbers: Tensor, kind: str) -> str:
    return base64.b64encode(numbers.numpy().astype(kind).tobytes()).decode()


def _numbers(text: str, kind: str) -> Tensor:
    array = numpy.frombuffer(base64.b64decode(text), kind)
    return torch.from_numpy(array.astype("f4"))


if __name__ == "__main__":
    parts = torch.load(sys.argv[1], weights_only=True)
    made = _made(parts, parts["state_dict"])
    held_out = spelling_words("validation") | spelling_words("test")
    script = pack_model("spelling", *made, answers_text(held_out, made[1]))
    path = Path(__file__).with_name("static") / "spelling_model.js"
    path.write_text(script, "utf-8")
    print(f"{path}: {len(script) / 1e6:.1f} MB")
