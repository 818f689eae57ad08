"""Decoding: from a model that predicts the next symbol to a sequence.

Letters: b batch, s source length, t length of what is written (``book/notation.md``).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from annotated import require
from annotated.training import evaluating
from annotated.transformer import Transformer


@require.shapes
def greedy_decode(
    model: Transformer,
    source: Int[Tensor, "b s"],
    *,
    start: int,
    end: int | None = None,
    max_new_tokens: int,
) -> Int[Tensor, "b t"]:
    """Write the likeliest symbol, again and again.

    Stops when every sequence has written ``end``. All that was written is read again
    at each step; chapter 09 adds a cache.

    Args:
        model: writes in evaluation mode, without gradients.
        source: token ids, ``(b, s)``, padded with the model's pad.
        start: the id that training began every target with.
        end: the id that ends a sequence; without it, none ends early.
        max_new_tokens: most symbols to write, ``end`` included, ``start`` not.

    Returns:
        Ids ``(b, t)`` in the dtype of ``source``, t at most ``max_new_tokens``, without
        ``start``; the model's pad after ``end``.
    """
    config = model.config
    require.count(0, config.target_vocab - 1, start=start, end=end or 0)
    require.count(most=config.max_len, max_new_tokens=max_new_tokens)
    with evaluating(model):
        memory, memory_mask = model.encode(source)
        written = torch.full_like(source[:, :1], start)
        ended = torch.zeros_like(written, dtype=torch.bool)  # (b, 1)
        for _ in range(max_new_tokens):
            logits = model.decode(written, memory, memory_mask)[:, -1:]  # (b, 1, v)
            symbol = logits.argmax(dim=-1).to(source).masked_fill(ended, config.pad)
            written = torch.cat([written, symbol], dim=1)
            if end is not None:
                ended = ended | (symbol == end)
                if ended.all():
                    break
    return written[:, 1:]
