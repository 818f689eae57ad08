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
    if not isinstance(lengths, Tensor) or lengths.is_floating_point():
        kind = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise TypeError(f"lengths must be a tensor of whole numbers, got {kind}")
    if lengths.dtype == torch.bool:
        raise TypeError("lengths must be a tensor of whole numbers, got torch.bool")
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
