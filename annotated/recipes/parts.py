"""Chapters 06 and 08: parts of a model are taken away before it is trained."""

from torch import nn

from annotated import require
from annotated.transformer import Residual, Transformer

PARTS = ("residual", "norm", "network", "encoder", "self-attention", "positions")


class Replaces(nn.Module):
    """A residual without its addition (chapter 06): the sublayer's output goes on.

    ``residual`` is the pre-norm one whose norm it keeps.
    """

    def __init__(self, residual: Residual):
        super().__init__()
        self.norm = residual.norm

    def forward(self, x, sublayer):
        """Return what ``sublayer`` gives for the normalised ``x``."""
        return sublayer(self.norm(x))


class Skips(nn.Module):
    """A residual without its sublayer (chapter 06): the stream goes on as it came."""

    def forward(self, x, sublayer):
        """Return ``x``; ``sublayer`` is not called."""
        return x


class Raw(nn.Module):
    """An encoder without layers (chapter 06): the memory is the embedded source."""

    layers = ()

    def forward(self, x, mask=None):
        """Return ``x``; no position looks at another, so ``mask`` hides nothing."""
        return x


def take_away(model: Transformer, *parts: str) -> Transformer:
    """Take parts out of every layer of a pre-norm ``model``.

    Args:
        model: changed in place, before it is trained.
        parts: "residual" (the addition), "norm", "network", "encoder",
            "self-attention" (the decoder's) or "positions".

    Returns:
        The model.
    """
    for part in parts:
        require.choice(PARTS, part=part)
        if part == "positions":
            model.positions = nn.Identity()
        if part == "encoder":
            model.encoder = Raw()
        for stack in (model.encoder, model.decoder):
            if part == "norm":
                stack.norm = nn.Identity()
            for layer in stack.layers:
                _take_from(layer, part, stack is model.decoder)
    return model


def _take_from(layer: nn.Module, part: str, decodes: bool) -> None:
    if part == "network":
        layer.feed_forward, layer.residuals[-1] = None, Skips()
    elif part == "self-attention" and decodes:
        layer.attention, layer.residuals[0] = None, Skips()
    for i, residual in enumerate(layer.residuals):
        if part == "residual" and isinstance(residual, Residual):
            layer.residuals[i] = Replaces(residual)
        elif part == "norm":
            residual.norm = nn.Identity()
