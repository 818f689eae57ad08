"""Decoding: from a model that predicts the next symbol to a sequence.

Letters: b batch, s source length, t length of what is written (``book/notation.md``).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from annotated.training import _is_whole, evaluating
from annotated.transformer import Transformer


def greedy_decode(
    model: Transformer,
    source: Int[Tensor, "b s"],
    *,
    start: int,
    end: int | None = None,
    max_length: int,
) -> Int[Tensor, "b t"]:
    """Write the likeliest symbol, again and again.

    Stops when every sequence has written ``end``. All that was written is read again
    at each step; a cache for it comes in chapter 09.

    Args:
        model: all its parts are left in the mode that they were in; it writes in
            evaluation mode.
        source: token ids, ``(b, s)``, padded with the model's pad.
        start: the id that training began every target with.
        end: the id that ends a sequence; without it, all get ``max_length``.
        max_length: most symbols to write, ``end`` included, ``start`` not.

    Returns:
        Ids ``(b, t)`` in the dtype of ``source``, t at most ``max_length``, without
        ``start``; the model's pad behind ``end``. For a batch of no sequences t is 1,
        or ``max_length`` without ``end``.

    Raises:
        TypeError: if ``model`` is no ``Transformer``, or ``source`` does not hold
            whole numbers.
        ValueError: if ``start`` or ``end`` is outside the target's vocabulary, or
            ``max_length`` is below 1 or above the number of positions.
    """
    if not isinstance(model, Transformer):
        raise TypeError(f"model must be a Transformer, got {type(model).__name__}")
    config = model.config
    for name, symbol in (("start", start), ("end", 0 if end is None else end)):
        if not _is_whole(symbol) or not 0 <= symbol < config.target_vocab:
            raise ValueError(
                f"{name} must be an id from 0 to {config.target_vocab - 1}, "
                f"got {symbol!r}"
            )
    if not _is_whole(max_length) or not 1 <= max_length <= config.max_len:
        raise ValueError(
            f"max_length must be a whole number from 1 to max_len={config.max_len}, "
            f"got {max_length!r}"
        )
    with evaluating(model):
        memory, memory_mask = model.encode(source)
        written = torch.full_like(source[:, :1], start)
        ended = torch.zeros_like(written, dtype=torch.bool)  # (b, 1)
        for _ in range(max_length):
            logits = model.decode(written, memory, memory_mask)[:, -1:]  # (b, 1, v)
            symbol = logits.argmax(dim=-1).to(source).masked_fill(ended, config.pad)
            written = torch.cat([written, symbol], dim=1)
            if end is not None:
                ended = ended | (symbol == end)
                if ended.all():
                    break
    return written[:, 1:]
