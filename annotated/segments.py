"""A text read in segments, side by side and one after another.

Letters: b batch, n length of a text (``book/notation.md``).
"""

from collections.abc import Iterator

from jaxtyping import Float, Int
from torch import Tensor

from annotated import require
from annotated.transformer_xl import TransformerXL


class SegmentLoss:
    """The loss of segments that follow one another, for ``fit`` and ``evaluate``.

    It hands the memories of each batch to the next. A new one begins a new text.
    """

    def __init__(self):
        self.memories: Tensor | None = None

    def __call__(
        self, model: TransformerXL, batch: tuple[Tensor, Tensor]
    ) -> Float[Tensor, ""]:
        """Return the mean loss of a ``batch``: tokens ``(b, t)`` and their targets."""
        losses, self.memories = model.loss(*batch, self.memories)
        return losses.mean()


@require.shapes
def segments(
    text: Int[Tensor, "n"], batch: int, length: int
) -> Iterator[tuple[Int[Tensor, "b _"], Int[Tensor, "b _"]]]:
    """Cut a text into ``batch`` parts of one length, and read them side by side.

    Args:
        text: ids, ``(n,)``.
        batch: number b of parts; up to b − 1 symbols at the end of the text are left.
        length: length of a segment; the last one may be shorter.

    Yields:
        Tokens and targets, ``(b, length)`` each: row i of a segment goes on where row i
        of the segment before stopped.
    """
    require.count(most=len(text) - 1, batch=batch)
    width = (len(text) - 1) // batch
    tokens = text[: batch * width].view(batch, width)
    target = text[1 : batch * width + 1].view(batch, width)
    yield from zip(tokens.split(length, 1), target.split(length, 1), strict=True)
