"""A text read in segments, side by side and one after another.

Letters: b batch, n length of a text (``book/notation.md``).
"""

from collections.abc import Iterator

from jaxtyping import Float, Int
from torch import Tensor

from annotated import require
from annotated.devices import to_device
from annotated.transformer_xl import TransformerXL


class SegmentLoss:
    """The loss of segments that follow one another, for ``fit`` and ``evaluate``.

    It hands the memories of each batch to the next. A new one begins a new text. The
    memories are its state, which checkpoints of ``fit`` hold: a resumed run remembers.
    """

    def __init__(self):
        self.memories: Tensor | None = None

    def __call__(
        self, model: TransformerXL, batch: tuple[Tensor, Tensor]
    ) -> Float[Tensor, ""]:
        """Return the mean loss of a ``batch``: tokens ``(b, t)`` and their targets."""
        memories = to_device(self.memories, batch[0].device)  # from a checkpoint: CPU
        losses, self.memories = model.loss(*batch, memories)
        return losses.mean()

    def batch_weight(self, batch: tuple[Tensor, Tensor]) -> int:
        """Return the number of targets in a ``batch``, of which the loss is a mean.

        Tokens and targets are ``(b, t)`` each.
        """
        return batch[1].numel()

    def state_dict(self) -> dict[str, Tensor | None]:
        """Return the memories, ``(layers, b, m, d)``; None before the first batch."""
        return {"memories": self.memories}

    def load_state_dict(self, state: dict[str, Tensor | None]) -> None:
        """Take over the memories of a ``state``, ``(layers, b, m, d)``, or none."""
        self.memories = state["memories"]


@require.shapes
def segments(
    text: Int[Tensor, "n"], batch: int, length: int
) -> Iterator[tuple[Int[Tensor, "b _"], Int[Tensor, "b _"]]]:
    """Cut a text into ``batch`` parts of one length, and read them side by side.

    Args:
        text: ids, ``(n,)``.
        batch: number b of parts; up to b − 1 symbols at the end are left out.
        length: length of a segment, at least 1; the last one may be shorter.

    Yields:
        Tokens and targets, ``(b, length)`` each: row i of a segment continues where row
        i of the previous one stopped.
    """
    require.count(most=len(text) - 1, batch=batch)
    require.count(length=length)
    width = (len(text) - 1) // batch
    tokens = text[: batch * width].view(batch, width)
    target = text[1 : batch * width + 1].view(batch, width)
    yield from zip(tokens.split(length, 1), target.split(length, 1), strict=True)
