"""How `rxnmapper.npz` was made: what `transformers` makes of the model on board.

    python3.11 -m venv ENV
    ENV/bin/pip install "transformers==5.23.0" "torch==2.13.0" "safetensors==0.8.0"
    ENV/bin/python tests/references/rxnmapper.py tests/references/rxnmapper.npz

The ids of two short reactions, padded, and for them the attention of all layers, the
logits and what the pooler gives. In float64, so that rounding is not what differs.
"""

import sys
from pathlib import Path

import numpy
import torch
from safetensors.torch import load_file
from transformers import AlbertConfig, AlbertForMaskedLM, AlbertModel

FOLDER = Path(__file__).parents[2] / "annotated" / "vendor" / "rxnmapper"
REACTIONS = ["C O . C Br >> C O C", "C C ( = O ) O >> C C O"]


def main() -> None:
    config = AlbertConfig(
        vocab_size=591,
        embedding_size=128,
        hidden_size=256,
        num_attention_heads=8,
        intermediate_size=512,
        num_hidden_layers=12,
        hidden_act="gelu",
        attn_implementation="eager",
    )
    state = load_file(FOLDER / "model.safetensors")
    state["predictions.decoder.weight"] = state[
        "albert.embeddings.word_embeddings.weight"
    ]
    state["predictions.decoder.bias"] = state["predictions.bias"]
    model = AlbertForMaskedLM(config).eval().double()
    print(model.load_state_dict(state, strict=False))
    with_pooler = AlbertModel(config).eval().double()
    own = {name.removeprefix("albert."): x for name, x in state.items()}
    print(with_pooler.load_state_dict(own, strict=False))

    names = (FOLDER / "vocab.txt").read_text().splitlines()
    rows = [["[CLS]", *text.split(), "[SEP]"] for text in REACTIONS]
    longest = max(map(len, rows))
    rows = [row + ["[PAD]"] * (longest - len(row)) for row in rows]
    ids = torch.tensor([[names.index(token) for token in row] for row in rows])
    given = {"input_ids": ids, "attention_mask": (ids != 0).long()}
    with torch.no_grad():
        found = model(**given, output_attentions=True)
        pooled = with_pooler(**given).pooler_output
    made = {
        "ids": ids,
        "logits": found.logits[0, 6],  # at the arrow
        "attentions": torch.stack(found.attentions),
        "pooled": pooled,
    }
    numpy.savez_compressed(
        sys.argv[1],
        **{
            name: x.to(torch.int64 if name == "ids" else torch.float32).numpy()
            for name, x in made.items()
        },
    )


main()
