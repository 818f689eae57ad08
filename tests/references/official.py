"""How `official.npz` was made: tiny models of `transformers`, their weights and logits.

    python3.11 -m venv ENV
    ENV/bin/pip install "transformers==5.23.0" "torch==2.13.0"
    ENV/bin/python tests/references/official.py tests/references/official.npz

Every weight is random, those of norms and biases too, so that none can be mistaken for
another. BERT and ALBERT read two segments and padding; ALBERT's two layers are one, and
its attention is kept too.
"""

import sys

import numpy
import torch
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

V, T = 23, 9
SIZES = {"n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 20}
LAYERS = {"num_hidden_layers": 2, "max_position_embeddings": 16, "vocab_size": V}
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=V, **SIZES)),
    "bert": lambda: BertForPreTraining(
        BertConfig(
            hidden_size=12, num_attention_heads=3, intermediate_size=20, **LAYERS
        )
    ),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(
            hidden_size=24,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=20,
            rms_norm_eps=1e-3,  # so large that another would be seen
            rope_parameters={"rope_type": "default", "rope_theta": 500.0},
            **LAYERS,
        )
    ),
    "albert": lambda: AlbertForPreTraining(
        AlbertConfig(
            embedding_size=6,
            hidden_size=12,
            num_attention_heads=3,
            intermediate_size=20,
            attn_implementation="eager",  # which gives its weights
            **LAYERS,
        )
    ),
}


def main() -> None:
    torch.manual_seed(0)
    made = {}
    for kind, make in MODELS.items():
        model = make().eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        tokens = torch.randint(1, V, (2, T))
        given = {"input_ids": tokens}
        if "bert" in kind:
            tokens[1, -3:] = 0
            given["attention_mask"] = (tokens != 0).long()
            given["token_type_ids"] = (torch.arange(T) > 4).long().expand(2, T)
        with torch.no_grad():
            found = model(**given, output_attentions=kind == "albert")
        outputs = ["logits"]
        if kind == "bert":
            outputs = ["prediction_logits", "seq_relationship_logits"]
        if kind == "albert":
            outputs = ["prediction_logits", "sop_logits"]
            made["albert.attentions"] = torch.stack(found.attentions)
        made |= {f"{kind}.given.{name}": x for name, x in given.items()}
        made |= {f"{kind}.{name}": getattr(found, name) for name in outputs}
        state = model.state_dict()
        made |= {f"{kind}.state.{name}": x for name, x in state.items()}
    numpy.savez_compressed(sys.argv[1], **{n: x.numpy() for n, x in made.items()})


main()
