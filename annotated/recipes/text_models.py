"""Chapter 11: models of text beside the GPT: they average, carry on, or convolve.

Letters: b batch, t length, v vocabulary (``book/notation.md``).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.devices import device_of, to_device


class PastAverage(MultiHeadAttention):
    """The mean of the values of the past (chapter 11): attention that asks nothing.

    Queries and keys are zeros, so all scores are alike, and all weights that the mask
    leaves.
    """

    def project(self, query, key=None, value=None, start=0):
        """Return zeros, zeros and the values of each head.

        ``query``, ``key``, ``value`` and ``start`` are as in the class above.
        """
        q, k, v = super().project(query, key, value, start)
        return torch.zeros_like(q), torch.zeros_like(k), v


class GRUText(nn.Module):
    """A recurrent model of text: one state, carried from character to character.

    Cho et al. (2014) for the unit; Mikolov et al. (2010) for the model. The output is
    tied, as that of :class:`~annotated.gpt.GPT`; ``d_model`` is the width of embeddings
    and state, ``vocab_size`` the number of tokens.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.rnn = nn.GRU(d_model, d_model, batch_first=True)

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits of what follows each of the ``tokens``."""
        # a state lies between −1 and 1, an embedding begins as small as 1 / √d
        x = self.embedding(tokens) * self.embedding.embedding_dim**0.5
        return self.rnn(x)[0] @ self.embedding.weight.T


class ConvolutionText(nn.Module):
    """A causal convolutional model of text: each layer looks twice as far apart.

    Van den Oord et al. (2016); Bai et al. (2018). Layer i, from 0, sees ``kernel``
    positions, ``2^i`` apart, the last of them its own. The output is tied, ``d_model``
    is the width of the stream, ``layers`` their number, ``vocab_size`` that of tokens.
    """

    def __init__(self, vocab_size: int, d_model: int, layers: int = 4, kernel: int = 5):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(layers + 1))
        self.maps = nn.ModuleList(
            nn.Conv1d(d_model, d_model, kernel, dilation=2**i) for i in range(layers)
        )

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits of what follows each of the ``tokens``."""
        x = self.embedding(tokens)
        for norm, convolution in zip(self.norms, self.maps, strict=False):
            y = F.relu(norm(x)).transpose(1, 2)  # (b, d, t)
            past = (convolution.kernel_size[0] - 1) * convolution.dilation[0]
            x = x + convolution(F.pad(y, (past, 0))).transpose(1, 2)
        return self.norms[-1](x) @ self.embedding.weight.T


def path_length(way: str, distance: int) -> int:
    """Return how many layers or steps carry a character to a position further on.

    Vaswani et al. (2017), table 1, "maximum path length", here for one pair.

    Args:
        way: "attention", "recurrent" or "convolution", as
            :func:`~annotated.recipes.text.text_model` has them.
        distance: from the character to the position that reads it, from 0.
    """
    require.choice(("attention", "recurrent", "convolution"), way=way)
    require.count(0, distance=distance)
    if way == "attention":
        return 1
    if way == "recurrent":
        return distance + 1
    layers, reach = 1, 4  # kernels of 5 reach 4 back, then 8, 16, 32 further
    while reach < distance:
        layers, reach = layers + 1, reach + 4 * 2**layers
    return layers


def influence(model: nn.Module, windows: Int[Tensor, "b t"]) -> Float[Tensor, "t"]:
    """Return how much the last position's prediction hangs on each character before.

    The norm of the gradient of its largest logit by each embedding, in the mean of the
    windows; the nearest character comes first.

    Args:
        model: with an ``embedding``.
    """
    inputs = []

    def keep(module: nn.Module, args: tuple, output: Tensor) -> None:
        output.retain_grad()
        inputs.append(output)

    handle = model.embedding.register_forward_hook(keep)
    try:
        model(to_device(windows, device_of(model)))[:, -1].amax(dim=-1).sum().backward()
    finally:
        handle.remove()
        model.zero_grad()
    return inputs[0].grad.norm(dim=-1).mean(dim=0).flip(0)
