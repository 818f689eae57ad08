"""Boolean masks. True = may attend, everywhere in the book; masks compose with ``&``.

Letters: b batch, t query length, s key length, h heads (``book/notation.md``).
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from annotated import require


@require.shapes
def length_mask(lengths: Int[Tensor, "b"], size: int) -> Bool[Tensor, "b 1 1 s"]:
    """True at the real tokens of each sequence, False at the padding after them.

    The two axes of size 1 stand for heads and queries: every head and every query
    of a sequence may see the same keys. Headless attention (chapter 01) drops the
    first of them: ``length_mask(lengths, size)[:, 0]`` is ``(b, 1, s)``.

    Args:
        lengths: number of real tokens of each sequence, ``(b,)``.
        size: padded length s of the batch.

    Returns:
        Boolean mask ``(b, 1, 1, s)``.

    Raises:
        ValueError: if a length is below 0 or above ``size``.
    """
    require.within(0, size, lengths=lengths)
    positions = torch.arange(size, device=lengths.device)
    real = positions < lengths[:, None]  # (b, s)
    return real[:, None, None, :]


@require.shapes
def padding_mask(tokens: Int[Tensor, "b s"], pad: int = 0) -> Bool[Tensor, "b 1 1 s"]:
    """True at the real tokens of each sequence, False wherever ``pad`` stands.

    It does for token ids what :func:`length_mask` does for lengths; padding may stand
    anywhere. The two axes of size 1 stand for heads and queries.

    Args:
        tokens: token ids, ``(b, s)``.
        pad: the id of padding.

    Returns:
        Boolean mask ``(b, 1, 1, s)``, on the device of ``tokens``.
    """
    real = tokens != pad  # (b, s)
    return real[:, None, None, :]


def causal_mask(
    queries: int, keys: int | None = None, device: torch.device | str | None = None
) -> Bool[Tensor, "1 1 t s"]:
    """True where a query may look: at the keys up to its own position, none after it.

    With more keys than queries, the queries are the last of the keys' positions: the
    last query sees all keys. A decoder that kept its earlier keys needs just this.

    Args:
        queries: number t of queries.
        keys: number s of keys, at least as many; as many if not given.
        device: where to make the mask; ``&`` combines only masks of one device.

    Returns:
        Boolean mask ``(1, 1, t, s)``, the same for every sequence and head.

    Raises:
        ValueError: if there are more queries than keys: the first ones would stand
            before every key.
    """
    keys = queries if keys is None else keys
    require.at_most(queries=queries, keys=keys)
    square = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return square.tril(keys - queries)[None, None]


@require.shapes
def document_mask(documents: Int[Tensor, "b t"]) -> Bool[Tensor, "b 1 t t"]:
    """True between tokens of one document, where several are packed in a row.

    Padding is a document of its own.

    Args:
        documents: the number of each token's document; any numbers, one for each.

    Returns:
        Boolean mask ``(b, 1, t, t)``, on the device of ``documents``.
    """
    return (documents[:, :, None] == documents[:, None, :])[:, None]


@require.shapes
def count_positions(mask: Bool[Tensor, "b 1 _ s"]) -> Int[Tensor, "b s"]:
    """Count the tokens before each one that it may see: its position in its own text.

    Of a :func:`padding_mask` these are the positions without the padding, of a
    :func:`document_mask` they start again at 0 with each document.

    Args:
        mask: boolean, of every query ``(b, 1, s, s)``, or the same for all of them.

    Returns:
        Positions from 0 on, ``(b, s)``; of padding, any.
    """
    seen = mask & causal_mask(mask.shape[-1], device=mask.device)  # (b, 1, s, s)
    return (seen[:, 0].sum(dim=-1) - 1).clamp(min=0)
