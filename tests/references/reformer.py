"""How `reformer.npz` was made: what two published LSH attentions give, and gradients.

    python3.11 -m venv ENV
    ENV/bin/pip install "transformers==5.23.0" "reformer-pytorch==1.4.4" "torch==2.13.0"
    ENV/bin/python tests/references/reformer.py tests/references/reformer.npz

`transformers` divides a key by its length; `reformer-pytorch` scales the scores by
1 / √k besides. All is computed in double precision, from numbers of single precision:
there the −1e5 of one and the −5e4 of the other for a position itself do no harm.

"two chunks": a chunk and its neighbour are the whole sequence, so both are exact
attention. "many chunks": three rounds, with the buckets that were used; there the first
chunk of a round looks at the last one of another round.
"""

import logging
import sys

import numpy
import torch
from reformer_pytorch.reformer_pytorch import LSHAttention
from transformers import ReformerConfig
from transformers.models.reformer.modeling_reformer import LSHSelfAttention

B, H, K, C = 2, 3, 4, 4  # batch, heads, width of a head, positions in a chunk
CASES = {"two chunks": (8, 1), "many chunks": (48, 3)}  # length, rounds
logging.disable(logging.WARNING)


def graded(output, inputs, made):
    mixture = torch.randn(output.shape).to(output)
    gradients = torch.autograd.grad((output * mixture).sum(), list(inputs.values()))
    made |= {"output": output, "mixture": mixture, **inputs}
    for name, gradient in zip(inputs, gradients, strict=True):
        made[f"gradient.{name}"] = gradient
    return made


def of_transformers(length, rounds, causal, padded):
    config = ReformerConfig(
        hidden_size=H * K,
        num_attention_heads=H,
        attention_head_size=K,
        num_hashes=rounds,
        lsh_attn_chunk_length=C,
        num_buckets=2 if length == 2 * C else 8,
        lsh_attention_probs_dropout_prob=0.0,
        is_decoder=causal,
    )
    model = LSHSelfAttention(config).eval()
    torch.nn.init.normal_(model.query_key.weight)  # beside it their ε = 1e-6 is nothing
    torch.nn.init.normal_(model.value.weight, std=0.3)
    model.double()
    x = torch.randn(B, length, H * K).double().requires_grad_()
    mask = torch.ones(B, length, dtype=torch.bool)
    if padded:
        mask[1, -3:] = False
    result = model(x, attention_mask=mask if padded else None)
    maps = {"query_map": model.query_key.weight, "value_map": model.value.weight}
    inputs = {"x": x} | maps
    output = result.hidden_states * mask[..., None]
    return graded(output, inputs, {"buckets": result.buckets, "mask": mask})


def of_reformer_pytorch(length, rounds, causal, padded):
    model = LSHAttention(bucket_size=C, n_hashes=rounds, causal=causal).eval()
    query, value = (torch.randn(B, length, K).double() for _ in range(2))
    query.requires_grad_(), value.requires_grad_()
    mask = torch.ones(B, length, dtype=torch.bool)
    if padded:
        mask[1, -3:] = False
    output, _, buckets = model(query, value, input_mask=mask if padded else None)
    inputs = {"query": query, "value": value}
    made = {"buckets": buckets.view(B, rounds, length), "mask": mask}
    return graded(output * mask[..., None], inputs, made)


def main():
    torch.manual_seed(0)
    made = {}
    for name, model in (("hf", of_transformers), ("rp", of_reformer_pytorch)):
        for case, (length, rounds) in CASES.items():
            for causal, padded in ((False, False), (True, False), (False, True)):
                if padded and case == "many chunks":
                    continue  # padding is sorted in ways of their own
                kind = "padded" if padded else "causal" if causal else "plain"
                key = f"{name}.{case}.{kind}"
                for part, value in model(length, rounds, causal, padded).items():
                    value = value.float() if value.is_floating_point() else value
                    made[f"{key}.{part}"] = value.detach().numpy()
    numpy.savez_compressed(sys.argv[1], **made)


main()
