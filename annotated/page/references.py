"""PyTorch's own modules computing with the weights of ours, for proofs to compare with.

The weights are not copied: gradients arrive in our parameters, so that
:func:`annotated.page.notebook.check_same` compares all of them.
"""

import re
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from annotated.positions import sinusoidal_encoding
from annotated.transformer import ACTIVATIONS, Transformer

# patterns in names of ours, and what stands there in PyTorch's
_NAMES = {
    r"\battention": "self_attn",
    r"\bcross_attention": "multihead_attn",
    r"(query|key|value)_map\.": "in_proj_",  # one matrix: q, k and v in this order
    r"output_map": "out_proj",
    r"feed_forward\.inner": "linear1",
    r"feed_forward\.outer": "linear2",
    r"residuals\.0\.norm": "norm1",
    r"residuals\.1\.norm": "norm2",
    r"residuals\.2\.norm": "norm3",
}


def torch_weights(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a layer or a stack by their names in PyTorch's.

    Args:
        module: an encoder or decoder layer, or anything made of these.

    Returns:
        Tensors of any shape, connected to the parameters of ``module``; for
        ``load_state_dict`` or ``torch.func.functional_call``.
    """
    parts: dict[str, list[Tensor]] = {}
    for name, weight in module.named_parameters():
        for ours, theirs in _NAMES.items():
            name = re.sub(ours, theirs, name)
        parts.setdefault(name, []).append(weight)
    return {name: torch.cat(weights) for name, weights in parts.items()}


def nn_transformer(
    model: Transformer,
) -> Callable[[Int[Tensor, "b s"], Int[Tensor, "b t"]], Float[Tensor, "b t v"]]:
    """Return PyTorch's nn.Transformer, between the tables of ``model``, as a function.

    It maps ids of source and target to logits, as ``model`` does, without dropout. (A
    model whose parts PyTorch's layers don't have is refused when it is called.)
    """
    c, pre = model.config, model.config.norm == "pre"
    sizes = c.d_model, c.heads, c.d_ff, 0.0, ACTIVATIONS[c.activation], c.norm_epsilon
    settings = {"batch_first": True}
    with torch.device("meta"):  # no numbers: the weights come with each call
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, norm_first=pre, **settings),
            c.layers,
            nn.LayerNorm(c.d_model) if pre else None,
            enable_nested_tensor=False,
        )
        decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, norm_first=pre, **settings),
            c.layers,
            nn.LayerNorm(c.d_model) if pre else None,
        )
        stacks = {"custom_encoder": encoder, "custom_decoder": decoder}
        reference = nn.Transformer(*sizes[:2], **stacks, **settings)

    def embed(ids: Tensor, table: nn.Embedding) -> Tensor:
        positions = sinusoidal_encoding(ids.shape[1], c.d_model).to(table.weight)
        return F.embedding(ids, table.weight) * c.d_model**0.5 + positions

    def logits(source: Tensor, target: Tensor) -> Tensor:
        length, weights = target.shape[1], torch_weights(model)
        inside = {n: w for n, w in weights.items() if n.startswith(("enc", "dec"))}
        streams = (
            embed(source, model.source_embedding),
            embed(target, model.target_embedding),
        )
        masks = {  # True = hidden
            "tgt_mask": torch.ones(length, length).triu(1).bool(),
            "src_key_padding_mask": source == c.pad,
            "tgt_key_padding_mask": target == c.pad,
            "memory_key_padding_mask": source == c.pad,
        }
        stream = functional_call(reference, inside, streams, masks, strict=True)
        return stream @ model.output.weight.T

    return logits
