"""What the published GPT-2 and BERT give in this book's blocks: `make official`.

Each model is a record, `book/results/official/NAME.json`, written after every row;
called again, this goes on where it stopped. Logits are compared with those of
`transformers` where it is installed, and that row stays unfinished where it isn't. On
two cores WikiText takes the better part of an hour.

    python -m tools.official            downloads what the cache lacks, 1 GB
    python -m tools.official FOLDER     reads FOLDER/gpt2/model.safetensors, of
                                        FOLDER/bert-base-uncased that and vocab.txt, and
                                        FOLDER/wikitext2/wikitext-2-raw-v1.zip if there
    python -m tools.official --dry      seconds: tiny files with random weights, which
                                        it writes to `_build/official` if no FOLDER is
                                        named; its records go there, too
"""

import argparse
import copy
import hashlib
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from annotated.attention import record_attention
from annotated.bert import BertConfig, pair_ids
from annotated.chapters.ch15.drawings import GAPS
from annotated.chapters.ch16.drawings import PROMPTS, random_state
from annotated.chapters.ch16.drawings_b import ALICE
from annotated.data.byte_bpe import gpt2_tokenizer
from annotated.data.datasets import DataError
from annotated.data.published import PUBLISHED, published_files
from annotated.data.text import all_windows, standard_library
from annotated.decoding import sample
from annotated.gpt import next_token_loss
from annotated.gpt2 import SIZES
from annotated.recipes.bert import read_bert
from annotated.training import evaluate
from annotated.weights import load_gpt2, read_safetensors
from tools import ROOT
from tools.rows import Piece, go_on, versions
from tools.safetensors import safetensors

OUT, DRY = ROOT / "book" / "results" / "official", ROOT / "_build" / "official"
TOLERANCE = 1e-6  # of logits in double precision
TINY = {"d_model": 24, "heads": 3, "layers": 2, "d_ff": 60, "max_len": 64}


@dataclass(frozen=True)
class Source:
    """Where the files are; ``dry``: tiny ones, which stand for the published."""

    folder: Path | None
    dry: bool
    device: str

    def sized(self, real: Any, dry: Any) -> Any:
        return dry if self.dry else real

    def files(self, name: str) -> list[Path]:
        if not self.dry:
            return published_files(name, self.folder)
        return [self.folder / name / file.name for file in PUBLISHED[name].files]


def compared(ours: list[Tensor], theirs: Callable[[], list[Tensor]]) -> dict[str, Any]:
    """Return the largest difference of logits, where `transformers` is installed."""
    if not find_spec("transformers"):
        return {"unfinished": "not compared: transformers isn't installed"}
    import transformers

    pairs = zip(ours, theirs(), strict=True)
    gap = max((a - b).abs().max().item() for a, b in pairs)
    if not gap <= TOLERANCE:
        raise ValueError(f"logits differ from those of transformers by {gap:g}")
    return {"difference": gap, "transformers": transformers.__version__}


# ---- GPT-2 -------------------------------------------------------------------------


def gpt2(source: Source) -> Iterator[Piece]:
    config = replace(SIZES["small"], **source.sized({}, TINY))
    (path,) = source.files("gpt2")
    model = load_gpt2(read_safetensors(path), config).to(source.device)
    tokenizer = gpt2_tokenizer()
    ids = torch.tensor([tokenizer.encode(ALICE)])[:, : config.max_len]

    @torch.no_grad()
    def logits() -> dict[str, Any]:
        def theirs() -> list[Tensor]:
            from transformers import GPT2Config, GPT2Model

            c = config
            sizes = {"vocab_size": c.vocab_size, "n_positions": c.max_len}
            sizes |= {"n_embd": c.d_model, "n_layer": c.layers, "n_head": c.heads}
            given = GPT2Config(**sizes, n_inner=c.d_ff)
            # the class with an output wants a file more; its output is the embedding
            other = GPT2Model.from_pretrained(path.parent, config=given).double()
            return [other(ids).last_hidden_state @ other.wte.weight.T]

        return compared([copy.deepcopy(model).cpu().double()(ids)], theirs)

    @torch.no_grad()
    def attention() -> dict[str, Any]:
        with record_attention(model) as maps:
            model(ids.to(source.device))
        # (1, h, t, t) in each layer; the first token has nothing else to look at
        by_layer = [one[0, :, 1:, 0].mean().item() for (one,) in maps.values()]
        return {"by_layer": by_layer, "tokens": ids.shape[1]}

    def continuation(prompt: str) -> dict[str, Any]:
        start = torch.tensor([tokenizer.encode(prompt)], device=source.device)
        write = partial(sample, model, start, max_new_tokens=source.sized(24, 4))
        drawn = write(top_k=40, generator=torch.Generator().manual_seed(0))
        texts = {"likeliest": write(top_k=1), "drawn": drawn}
        return {name: tokenizer.decode(x[0].tolist()) for name, x in texts.items()}

    def library() -> str:
        return standard_library("validation")[: source.sized(None, 2000)]

    def wikitext() -> str:
        with zipfile.ZipFile(*source.files("wikitext2")) as archive:
            return archive.read("wikitext-2-raw/wiki.test.raw").decode()

    def spent(read: Callable[[], str], window: int) -> dict[str, Any]:
        """Return what a text costs, read in windows that lie end to end."""
        try:
            text = read()
        except DataError as error:
            return {"unfinished": f"not measured: {in_a_line(error)}"}
        ids = torch.tensor(tokenizer.encode(text))
        windows, tokens = all_windows(ids, window, 1), len(ids) - 1
        nats = evaluate(model, next_token_loss, windows, weight=lambda b: b[1].numel())
        return {
            "perplexity": exp(nats),  # of a token
            "bits_per_byte": nats * tokens / log(2) / len(text.encode()),
            "nats_per_word": nats * tokens / len(text.split()),
            "tokens": tokens,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }

    yield {"what": "logits"}, logits
    yield {"what": "attention"}, attention
    for prompt in PROMPTS:
        key = {"what": "continuation", "prompt": prompt, "seed": 0, "top_k": 40}
        yield key, partial(continuation, prompt)
    for text, read, window in (
        ("the held-out modules of Python's library", library, 1024),
        ("WikiText-2's test articles", wikitext, 1024),
        ("WikiText-2's test articles", wikitext, 512),
    ):
        length = source.sized(window, window // 16)
        key = {"what": "text", "text": text, "window": length}
        yield key, partial(spent, read, length)


# ---- BERT --------------------------------------------------------------------------


def bert(source: Source) -> Iterator[Piece]:
    tiny = {**TINY, "vocab_size": len(tiny_pieces())}
    config = replace(BertConfig(), **source.sized({}, tiny))
    weights, vocabulary = source.files("bert-base-uncased")
    filler = read_bert(weights, vocabulary, config)
    model, pieces = filler.bert.to(source.device), filler.pieces

    @torch.no_grad()
    def logits() -> dict[str, Any]:
        sentences = (filler.ids(text)[1:-1] for text in GAPS[:2])
        rows = pair_ids(*sentences, pieces["[CLS]"], pieces["[SEP]"])
        ids, segments = torch.tensor(rows)[:, None]

        def theirs() -> list[Tensor]:
            import transformers

            c = config
            sizes = {"vocab_size": c.vocab_size, "hidden_size": c.d_model}
            sizes |= {"num_hidden_layers": c.layers, "num_attention_heads": c.heads}
            sizes |= {"intermediate_size": c.d_ff, "max_position_embeddings": c.max_len}
            given, kind = (
                transformers.BertConfig(**sizes),
                transformers.BertForPreTraining,
            )
            other = kind.from_pretrained(weights.parent, config=given).double()
            found = other(ids, token_type_ids=segments)
            return [found.prediction_logits, found.seq_relationship_logits]

        double = copy.deepcopy(model).cpu().double()
        states = double(ids, segments)
        return compared(
            [double.guess_tokens(states), double.guess_next(states)], theirs
        )

    yield {"what": "logits"}, logits
    for text in GAPS:
        key = {"what": "gap", "text": text}
        yield key, lambda text=text: {"guesses": filler.fill(text)}


# ---- tiny files that stand for the published ones ----------------------------------


def tiny_pieces() -> list[str]:
    """Special pieces where BERT has them, and letters, which cut every word."""
    unused = [f"[unused{i}]" for i in range(99)]
    letters = [*".'abcdefghijklmnopqrstuvwxyz"]
    inside = [f"##{letter}" for letter in letters]
    return ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *inside]


def bert_state() -> dict[str, Tensor]:
    """Return random weights by the names of the published file, which are of 2018."""
    d, d_ff, v = TINY["d_model"], TINY["d_ff"], len(tiny_pieces())
    e, head = "bert.embeddings", "cls.predictions"
    shapes = {f"{e}.word_embeddings.weight": (v, d), f"{head}.bias": (v,)}
    shapes[f"{e}.position_embeddings.weight"] = TINY["max_len"], d
    shapes[f"{e}.token_type_embeddings.weight"] = 2, d
    maps = {"bert.pooler.dense": (d, d), "cls.seq_relationship": (2, d)}
    maps[f"{head}.transform.dense"] = d, d
    norms = [e, f"{head}.transform"]
    for i in range(TINY["layers"]):
        layer = f"bert.encoder.layer.{i}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            maps[f"{layer}.attention.{name}"] = d, d
        maps[f"{layer}.intermediate.dense"] = d_ff, d
        maps[f"{layer}.output.dense"] = d, d_ff
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name, shape in maps.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.LayerNorm.gamma": (d,), f"{name}.LayerNorm.beta": (d,)}
    draw = torch.Generator().manual_seed(0)
    return {n: 0.4 * torch.randn(s, generator=draw) for n, s in shapes.items()}


def write_tiny(folder: Path) -> None:
    """Write files with the names and the layout of the published ones."""
    config = replace(SIZES["small"], **TINY)
    state = {name: x.float() for name, x in random_state(config).items()}
    mask = torch.ones(1, 1, config.max_len, config.max_len).tril()  # is in there, too
    state |= {f"h.{i}.attn.bias": mask for i in range(config.layers)}
    for name in PUBLISHED:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "gpt2/model.safetensors").write_bytes(safetensors(state))
    (folder / "bert-base-uncased/model.safetensors").write_bytes(
        safetensors(bert_state())
    )
    lines = "".join(f"{piece}\n" for piece in tiny_pieces())
    (folder / "bert-base-uncased/vocab.txt").write_text(lines, "utf-8")
    with zipfile.ZipFile(folder / "wikitext2/wikitext-2-raw-v1.zip", "w") as archive:
        archive.writestr(
            "wikitext-2-raw/wiki.test.raw", 20 * f" \n = Alice = \n {ALICE}"
        )


# ---- records -----------------------------------------------------------------------

MODELS = {"gpt2": ("gpt2", gpt2), "bert": ("bert-base-uncased", bert)}


def in_a_line(error: Exception) -> str:
    first, *more = str(error).splitlines()
    return " ".join([first, *more[:1]]) + (f" … {len(more)} in all" if more[1:] else "")


def record(name: str, source: Source) -> bool:
    """Add what is missing of a model's record; return whether it is complete."""
    published, make = MODELS[name]
    made = {
        "command": "python -m tools.official" + source.sized("", " --dry"),
        **versions(),
        "device": source.device,
        "files": {
            f"{published}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
            for path in source.files(published)
        },
    }
    path = source.sized(OUT, DRY) / f"{name}.json"
    return go_on(path, make(source), made, "files")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER")
    parser.add_argument("--dry", action="store_true", help="tiny, with random weights")
    options = parser.parse_args(words)
    folder = options.folder
    if options.dry and not folder:
        folder = DRY / "files"
        write_tiny(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    source, failed = Source(folder, options.dry, device), 0
    for name in MODELS:
        try:
            said = "complete" if record(name, source) else "call again for what is left"
        except (OSError, ValueError) as error:  # DataError is an OSError
            said, failed = in_a_line(error), 1
        print(f"{name}: {said}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
