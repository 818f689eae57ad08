"""Trained models as a script that a page loads when its reader asks for it.

Matrices have eight bits a number and a scale for each row, everything else is in single
precision. A browser takes a script from a disk as well as from a server, which it does
with no other kind of file. :func:`pack_model` is for a translator, :func:`pack_films`
for the two models of chapter 10 that judge a sentence. :func:`pack_bert` packs one
that a page brings along.

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

from annotated.batches import Vocabulary
from annotated.bert import Bert, BertConfig
from annotated.classifier import ClassifierConfig, TransformerClassifier
from annotated.data.spelling import Sounds, spelling_words
from annotated.data.vendored import package_file
from annotated.recipes.classification import BagOfEmbeddings, Words
from annotated.recipes.pretraining import Tokens
from annotated.recipes.translation import Cutter
from annotated.refinement import MaskedTransformer
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
    packed = {
        "config": asdict(model.config),
        "source": cutter.source.symbols,
        "target": cutter.target.symbols,
        **_rounded(model.state_dict()),
        "held_out": held_out,
    }
    return _script(name, packed)


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


def packed_script(name: str, sha256: str) -> str:
    """Return a script that was made here; a wheel downloads it (``data/vendored.py``).

    Args:
        name: of the file in ``page/static``.
        sha256: the checksum of what was recorded last.
    """
    return package_file(f"page/static/{name}", sha256).read_text("utf-8")


def unpack_model(script: str) -> tuple[Transformer, Cutter]:
    """Return the model that a browser makes of a ``script``, and its cutter."""
    packed = _parts(script)
    return _made(packed, _weights(packed))


def unpack_refiner(script: str) -> tuple[MaskedTransformer, Cutter]:
    """Return the model with ``[MASK]`` that a browser makes of a ``script``."""
    packed = _parts(script)
    model = MaskedTransformer(TransformerConfig(**packed["config"])).eval()
    model.load_state_dict(_weights(packed))
    return model, _cutter(packed)


def pack_films(
    name: str, bag: BagOfEmbeddings, encoder: TransformerClassifier, words: Words
) -> str:
    """Return a script with both models of chapter 10 under one name.

    Of the bag a weight for each word is left, its vector's part in the logit: their
    mean and a bias are what it computes.

    Args:
        name: by which the page asks for them.
        bag: with one class.
        encoder: with one class, which averages; its matrices lose precision.
        words: that both know, none of them with a space in it.
    """
    weights = encoder.state_dict()
    weights["bag.weight"] = bag.embedding.weight @ bag.output.weight[0]
    weights["bag.bias"] = bag.output.bias
    packed = {
        "config": asdict(encoder.config),
        "words": " ".join(words.symbols[2:]),
        **_rounded(weights),
    }
    return _script(name, packed)


def unpack_films(script: str) -> tuple[BagOfEmbeddings, TransformerClassifier, Words]:
    """Return what a browser makes of a ``script``: a bag of vectors of width 1."""
    packed = _parts(script)
    weights = _weights(packed)
    words = Words([tuple(packed["words"].split(" "))])
    bag = BagOfEmbeddings(len(words), 1, d_model=1).eval()
    with torch.no_grad():
        bag.embedding.weight.copy_(weights.pop("bag.weight")[:, None])
        bag.output.weight.fill_(1.0)
        bag.output.bias.copy_(weights.pop("bag.bias"))
    encoder = TransformerClassifier(ClassifierConfig(**packed["config"])).eval()
    encoder.load_state_dict(weights)
    return bag, encoder, words


def pack_bert(model: Bert, words: Tokens) -> dict[str, Any]:
    """Return a BERT as data for an explorer.

    Args:
        model: with embeddings as wide as its states; its matrices lose precision.
        words: that it knows, none of them with a space in it.
    """
    weights = model.state_dict()
    del weights["output.weight"]  # it is the embedding
    return {
        "config": asdict(model.config) | {"norm": model.config.norm},
        "words": " ".join(words.symbols[len(words.special) :]),
        **_rounded(weights),
    }


def unpack_bert(packed: Mapping[str, Any]) -> tuple[Bert, Tokens]:
    """Return what a browser makes of the data that :func:`pack_bert` ``packed``."""
    weights = _weights(packed)
    weights["output.weight"] = weights["embedding.weight"]
    config = {k: v for k, v in packed["config"].items() if k != "norm"}
    model = Bert(BertConfig(**config)).eval()
    model.load_state_dict(weights)
    return model, Tokens([tuple(packed["words"].split(" "))])


def _rounded(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    shapes, whole, real = {}, [], []
    for part, weight in weights.items():
        weight = weight.detach().cpu().float()
        shapes[part] = list(weight.shape)
        if weight.dim() == 2:
            scales = weight.abs().amax(dim=1).clamp(min=1e-12) / 127
            whole.append((weight / scales[:, None]).round().to(torch.int8).flatten())
            weight = scales
        real.append(weight.flatten())
    numbers = _text(torch.cat(whole), "i1"), _text(torch.cat(real), "<f4")
    return {"shapes": shapes, "whole": numbers[0], "real": numbers[1]}


def _weights(packed: Mapping[str, Any]) -> dict[str, Tensor]:
    whole, real = _numbers(packed["whole"], "i1"), _numbers(packed["real"], "<f4")
    weights, at, then = {}, 0, 0
    for part, shape in packed["shapes"].items():
        rows, size = shape[0], torch.Size(shape).numel()
        weights[part] = real[then : then + rows]
        then += rows
        if len(shape) == 2:
            weights[part] = whole[at : at + size].view(shape) * weights[part][:, None]
            at += size
    return weights


def _script(name: str, packed: Mapping[str, Any]) -> str:
    opening = OPENING.replace("{name}", json.dumps(name))
    return f"{opening}{json.dumps(packed, ensure_ascii=False)};\n"


def _parts(script: str) -> dict[str, Any]:
    return json.loads(script[script.index("] = ") + 4 :].rstrip().removesuffix(";"))


def _made(parts: dict[str, Any], weights: dict[str, Tensor]) -> tuple[Any, Cutter]:
    model = Transformer(TransformerConfig(**parts["config"])).eval()
    model.load_state_dict(weights)
    return model, _cutter(parts)


def _cutter(parts: dict[str, Any]) -> Cutter:
    special = len(Vocabulary.SPECIAL)
    sides = (Vocabulary(parts[side][special:]) for side in ("source", "target"))
    return Cutter(*sides, [])


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
