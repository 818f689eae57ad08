"""Boolean masks. True = may attend, everywhere in the book; masks compose with ``&``.

Letters: b batch, t query length, s key length, h heads (``book/notation.md``).
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def length_mask(lengths: Int[Tensor, "b"], size: int) -> Bool[Tensor, "b 1 1 s"]:
    """True at the real tokens of each sequence, False at the padding behind them.

    The two axes of size 1 stand for heads and queries: every head and every query
    of a sequence may see the same keys. Headless attention (chapter 01) drops the
    first of them: ``length_mask(lengths, size)[:, 0]`` is ``(b, 1, s)``.

    Args:
        lengths: number of real tokens of each sequence, ``(b,)``, whole numbers.
        size: padded length s of the batch.

    Returns:
        Boolean mask ``(b, 1, 1, s)``.

    Raises:
        TypeError: if ``lengths`` is not a tensor of whole numbers.
        ValueError: if ``lengths`` is not one-dimensional, or holds a length below 0
            or above ``size``.
    """
    _require_whole("lengths", lengths)
    if lengths.dim() != 1:
        raise ValueError(
            f"lengths must have one axis (b,), got shape {tuple(lengths.shape)}"
        )
    if lengths.numel() and not 0 <= lengths.min() <= lengths.max() <= size:
        raise ValueError(
            f"lengths must lie between 0 and size={size}, "
            f"got {lengths.min().item()} to {lengths.max().item()}"
        )
    positions = torch.arange(size, device=lengths.device)
    return (positions < lengths[:, None])[:, None, None, :]


def padding_mask(tokens: Int[Tensor, "b s"], pad: int = 0) -> Bool[Tensor, "b 1 1 s"]:
    """True at the real tokens of each sequence, False wherever ``pad`` stands.

    What :func:`length_mask` is for lengths, this is for token ids; padding may stand
    anywhere. The two axes of size 1 stand for heads and queries.

    Args:
        tokens: token ids, ``(b, s)``, whole numbers.
        pad: the id of padding.

    Returns:
        Boolean mask ``(b, 1, 1, s)``, on the device of ``tokens``.

    Raises:
        TypeError: if ``tokens`` is not a tensor of whole numbers, or ``pad`` no whole
            number.
        ValueError: if ``tokens`` does not have two axes.
    """
    _require_whole("tokens", tokens)
    if tokens.dim() != 2:
        raise ValueError(
            f"tokens must have the axes (b, s), got shape {tuple(tokens.shape)}"
        )
    if not isinstance(pad, int) or isinstance(pad, bool):
        raise TypeError(f"pad must be a whole number, the id of padding, got {pad!r}")
    return (tokens != pad)[:, None, None, :]


def causal_mask(
    queries: int, keys: int | None = None, device: torch.device | str | None = None
) -> Bool[Tensor, "1 1 t s"]:
    """True where a query may look: at the keys up to its own position, none behind.

    With more keys than queries, the queries are the last ones of the keys: the last
    query sees all keys. So it is when a decoder goes on from keys that it has kept.

    Args:
        queries: number t of queries, 1 or more.
        keys: number s of keys, at least as many; as many if not given.
        device: where to make the mask; it can be combined with ``&`` only with masks
            of the same device.

    Returns:
        Boolean mask ``(1, 1, t, s)``, the same for every sequence and head.

    Raises:
        TypeError: if a number is no whole number.
        ValueError: if there are no queries, or fewer keys than queries.
    """
    keys = queries if keys is None else keys
    for name, number in (("queries", queries), ("keys", keys)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name} must be a whole number, got {number!r}")
    if queries < 1:
        raise ValueError(f"queries must be 1 or more, got {queries}")
    if keys < queries:
        raise ValueError(
            f"keys must be at least as many as queries, got {keys} keys and {queries} "
            "queries: the first queries would stand before every key"
        )
    square = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return square.tril(keys - queries)[None, None]


def require_mask(mask: object, shape: tuple[int, ...]) -> None:
    """Raise a readable error unless ``mask`` is boolean and fits scores of ``shape``.

    Args:
        mask: what a caller passed as mask.
        shape: shape of the scores that it masks, for example ``(b, t, s)``.

    Raises:
        TypeError: if ``mask`` is not a boolean tensor. A mask of 0 and 1 or of
            −inf and 0 would be read the wrong way round without a word.
        ValueError: if ``mask`` cannot be broadcast to ``shape``.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(
            f"mask must be a boolean tensor (True = may attend), got {kind}; "
            "for a mask of 0 and 1 pass mask.bool()"
        )
    fits = mask.dim() <= len(shape) and all(
        m in (1, n) for m, n in zip(reversed(mask.shape), reversed(shape), strict=False)
    )
    if not fits:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the scores' "
            f"shape {tuple(shape)} (batch, …, queries, keys)"
        )


def _require_whole(name: str, tensor: object) -> None:
    is_tensor = isinstance(tensor, Tensor)
    if (
        not is_tensor
        or tensor.is_floating_point()
        or tensor.is_complex()
        or tensor.dtype == torch.bool
    ):
        kind = tensor.dtype if is_tensor else type(tensor).__name__
        raise TypeError(f"{name} must be a tensor of whole numbers, got {kind}")
