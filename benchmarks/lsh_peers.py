"""Two published LSH attentions behind one face, for ``lsh_error`` and ``lsh_cost``.

``make bench NAME=lsh_cost`` installs them in an environment of their own, and runs a
benchmark in it.
"""

import logging

import torch
from torch import Tensor, nn

PEERS = ("transformers", "reformer-pytorch")


def transformers_attention(
    d_model: int, heads: int, chunk: int, rounds: int, causal: bool
) -> nn.Module:
    """Return the layer of `transformers`, without its output map."""
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import LSHSelfAttention

    logging.getLogger("transformers").setLevel(logging.ERROR)
    config = ReformerConfig(
        hidden_size=d_model,
        num_attention_heads=heads,
        attention_head_size=d_model // heads,
        num_hashes=rounds,
        lsh_attn_chunk_length=chunk,
        num_buckets=None,  # chosen from the length
        max_position_embeddings=2**16,
        lsh_attention_probs_dropout_prob=0.0,
        is_decoder=causal,
    )
    return LSHSelfAttention(config).eval()


class TransformersLayer(nn.Module):
    """The attention of `transformers` and an output map."""

    def __init__(self, d_model: int, heads: int, chunk: int, rounds: int):
        super().__init__()
        sizes = d_model, heads, chunk, rounds
        self.attention = transformers_attention(*sizes, causal=True)
        self.output_map = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output_map(self.attention(x).hidden_states)


def reformer_pytorch_layer(
    d_model: int, heads: int, chunk: int, rounds: int
) -> nn.Module:
    """Return the layer of `reformer-pytorch`, with its maps."""
    from reformer_pytorch import LSHSelfAttention

    options = {"bucket_size": chunk, "n_hashes": rounds, "causal": True}
    return LSHSelfAttention(dim=d_model, heads=heads, **options).eval()


def attend(peer: str, query: Tensor, value: Tensor, rounds: int, causal: bool):
    """Return what a peer makes of ``(b, t, k)``, with scores q·k̂ as ours has them."""
    if peer == "reformer-pytorch":
        from reformer_pytorch.reformer_pytorch import LSHAttention

        attention = LSHAttention(bucket_size=64, n_hashes=rounds, causal=causal).eval()
        return attention(query * query.shape[-1] ** 0.5, value)[0]  # it divides by √k
    k = query.shape[-1]
    # maps that take the query from the first half of x, and the value from the second;
    # the second head is idle
    attention = transformers_attention(2 * k, 2, 64, rounds, causal)
    one, none = torch.eye(k), torch.zeros(k, k)
    for layer, row in (
        (attention.query_key, [one, none]),
        (attention.value, [none, one]),
    ):
        layer.weight.copy_(torch.cat([torch.cat(row, 1), torch.zeros(k, 2 * k)]))
    return attention(torch.cat([query, value], dim=-1)).hidden_states[..., :k]
