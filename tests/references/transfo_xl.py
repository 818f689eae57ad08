"""How `transfo_xl.npz` was made: what `transformers` computes with random weights.

The model left `transformers` long ago, so it needs an environment of its own:

    python3.11 -m venv ENV
    ENV/bin/pip install "transformers==4.37.2" "numpy<2" "torch==2.13.0"
    ENV/bin/python tests/references/transfo_xl.py tests/references/transfo_xl.npz

Two models, each reading four segments of a text, with memories of
zeros at the beginning: "post" with an adaptive softmax of three clusters, tied; "pre"
with `clamp_len` and `same_length`. The map of the first cluster is the identity and the
biases of the softmax are zero, as `annotated` has it; every other number is random.
"""

import sys

import numpy
import torch
import transformers
from transformers import TransfoXLConfig, TransfoXLLMHeadModel

SHARED = {"vocab_size": 23, "d_model": 12, "d_embed": 12, "n_head": 3, "d_head": 4}
SHARED |= {"d_inner": 14, "n_layer": 2, "dropout": 0.0, "dropatt": 0.0}
SHARED |= {"untie_r": True, "attn_type": 0, "adaptive": True}
MODELS = {
    "post": {
        "cutoffs": [5, 11],
        "div_val": 2,
        "tie_projs": [False, False, False],
        "tie_word_embeddings": True,
        "mem_len": 7,
        "same_length": False,
        "clamp_len": -1,
        "pre_lnorm": False,
    },
    "pre": {
        "cutoffs": [],
        "div_val": 1,
        "tie_projs": [False],
        "tie_word_embeddings": False,
        "mem_len": 6,
        "same_length": True,
        "clamp_len": 4,
        "pre_lnorm": True,
    },
}
LENGTHS = (5, 3, 8, 2)  # of the segments: shorter and longer than the memories


def randomise(model: TransfoXLLMHeadModel) -> None:
    for name, parameter in model.named_parameters():
        if "bias" in name and name.startswith("crit."):
            parameter.data.zero_()
        elif name.endswith("projs.0"):
            parameter.data.copy_(torch.eye(12))
        else:
            parameter.data.copy_(0.5 * torch.randn(parameter.shape)).round_(decimals=3)


def run(options: dict) -> dict[str, torch.Tensor]:
    model = TransfoXLLMHeadModel(TransfoXLConfig(**SHARED, **options))
    randomise(model)
    model.eval()
    made = {f"weight.{name}": value for name, value in model.state_dict().items()}
    memories, total = None, 0.0
    for i, length in enumerate(LENGTHS):
        tokens = torch.randint(0, 23, (2, length))
        output = model(tokens, mems=memories, return_dict=True)
        memories = output.mems
        mixture = torch.randn(2, length, 23)
        total = total + (output.prediction_scores * mixture).sum()
        made[f"tokens.{i}"] = tokens
        made[f"mixture.{i}"] = mixture
        made[f"scores.{i}"] = output.prediction_scores
        made[f"memories.{i}"] = torch.stack(memories).transpose(1, 2)  # layers, b, m, d
    total.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            made[f"gradient.{name}"] = parameter.grad
    return made


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    arrays = {}
    for model, options in MODELS.items():
        for name, value in run(options).items():
            arrays[f"{model}.{name}"] = value.detach().numpy()
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    numpy.savez_compressed(sys.argv[1], versions=versions, **arrays)
    print(versions, len(arrays), "arrays")


main()
