"""Chapter 17: one small language model in six ways, for the one chart of Part III.

All have the same width, depth and networks, and read the same text; what differs is how
a position hears from others, and what is kept for the backward pass. Letters: b batch,
t length, v vocabulary (``book/notation.md``).
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from math import log
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention, scaled_dot_product_attention
from annotated.data.text import CHARACTERS, random_windows
from annotated.gpt import GPT, GPTConfig
from annotated.masks import causal_mask
from annotated.positions import PositionalEncoding
from annotated.reformer import LSHSelfAttention, Reformer, ReformerConfig
from annotated.segments import segments
from annotated.sparse import SparseSelfAttention, strided_patterns
from annotated.training import evaluating
from annotated.transformer_xl import TransformerXL, TransformerXLConfig

WIDTHS = {"d_model": 64, "heads": 2, "layers": 4, "d_ff": 256}
STRIDE, BLOCK = 64, 32  # of the sparse heads: one is local, one strided
CHUNK, HASHES = 64, 1  # of LSH attention
SEGMENT = 128  # of Transformer-XL, which remembers as many
READ = 2048  # characters that a training step reads
WARMUP = 20  # steps
Batch = tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]


class WrittenOutAttention(MultiHeadAttention):
    """Causal attention as the equation says it: all scores, a mask, a softmax.

    The equation is that of Vaswani et al. (2017); arguments are those of
    :class:`~annotated.attention.MultiHeadAttention`.
    """

    def attend(
        self,
        q: Float[Tensor, "b h t k"],
        k: Float[Tensor, "b h s k"],
        v: Float[Tensor, "b h s k"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return the output of ``q``, ``k`` and ``v``; there's no other ``mask``."""
        require.that(mask is None, "mask must be None: this attention has its own")
        causal = causal_mask(q.shape[2], k.shape[2], device=q.device)
        heads, _ = scaled_dot_product_attention(q, k, v, causal)
        return self.output_map(heads.transpose(1, 2).flatten(2))


_SIZES = WIDTHS["d_model"], WIDTHS["heads"]
_FUSED = partial(MultiHeadAttention, *_SIZES, causal=True)
#: what a block of each way attends with; Transformer-XL has its own
ATTENTION: dict[str, Callable[[], nn.Module]] = {
    "written out": partial(WrittenOutAttention, *_SIZES, causal=True),
    "fused": _FUSED,
    "sparse": partial(
        SparseSelfAttention, *_SIZES, pattern=strided_patterns(STRIDE), block=BLOCK
    ),
    "LSH": partial(LSHSelfAttention, *_SIZES, CHUNK, HASHES, causal=True),
    "reversible": _FUSED,
}
WAYS = (*ATTENTION, "Transformer-XL")


def long_model(way: str, length: int, seed: int = 0) -> nn.Module:
    """Return an untrained model of characters.

    All but Transformer-XL, which knows distances, add sinusoids to their embeddings
    and have an output of their own.

    Args:
        length: the most characters that it reads at once.
    """
    require.choice(WAYS, way=way)
    torch.manual_seed(seed)
    size = len(CHARACTERS)
    if way == "Transformer-XL":
        config = TransformerXLConfig(size, **WIDTHS, norm="pre", mem_len=SEGMENT)
        return TransformerXL(config)
    if way == "reversible":
        config = ReformerConfig(size, **WIDTHS, max_len=length)
        model = Reformer(config, ATTENTION[way])
        for block in model.blocks.parameters():
            if block.dim() > 1:
                nn.init.xavier_uniform_(block)
        return model
    config = GPTConfig(size, **WIDTHS, max_len=length, tied=False)
    model = GPT(config, ATTENTION[way])
    model.positions = PositionalEncoding(config.d_model, length)
    nn.init.normal_(model.embedding.weight)  # as large as what is added to it
    return model


def parts_of(model: nn.Module, batch: Batch) -> Iterator[Float[Tensor, "b t"]]:
    """Yield the losses of a batch, part by part.

    Transformer-XL reads a segment at a time, and begins with nothing to remember; the
    others read all at once.

    Yields:
        A loss for each token of the part, in nats.
    """
    if isinstance(model, TransformerXL):
        memories, cut = None, (x.split(SEGMENT, 1) for x in batch)
        for pair in zip(*cut, strict=True):
            losses, memories = model.loss(*pair, memories)
            yield losses
    else:
        tokens, target = batch
        yield F.cross_entropy(model(tokens).mT, target, reduction="none")


def pass_over(model: nn.Module, batch: Batch) -> None:
    """Add the gradients of the mean loss of a ``batch`` to those of a ``model``."""
    for losses in parts_of(model, batch):
        (losses.sum() / batch[0].numel()).backward()


def bits(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Return the mean loss in bits per character."""
    total, count = 0.0, 0
    with evaluating(model):
        for batch in batches:
            total += sum(losses.sum().item() for losses in parts_of(model, batch))
            count += batch[0].numel()
    return total / count / log(2)


def batches_for(
    way: str, ids: Int[Tensor, "n"], length: int, steps: int, seed: int
) -> Iterator[Batch]:
    """Yield batches of ``READ`` characters to learn from.

    Windows from all over the text; for Transformer-XL segments in order, side by side,
    for which it keeps its memory from one batch to the next.
    """
    if way != "Transformer-XL":
        yield from random_windows(ids, length, READ // length, steps, seed)
        return
    generator = torch.Generator().manual_seed(seed)
    begin = int(torch.randint(len(ids), (), generator=generator))
    for tokens, target in segments(ids.roll(-begin), READ // SEGMENT, SEGMENT):
        if tokens.shape[1] == SEGMENT:
            yield tokens, target


class Learner:
    """A model that learns for so many CPU seconds, which may be taken in turns.

    The rate rises for ``WARMUP`` steps, and falls to nothing over the second half of
    the time, so all learners end well, however many steps they get.
    """

    def __init__(
        self,
        way: str,
        ids: Int[Tensor, "n"],
        length: int,
        rate: float,
        limit: float,
        seed: int,
    ):
        self.model = long_model(way, length, seed)
        self.rate, self.limit = rate, limit
        self.seconds, self.steps = 0.0, 0
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self._memories: Tensor | None = None

        def forever() -> Iterator[Batch]:
            for epoch in range(1000):
                yield from batches_for(way, ids, length, 1000, seed + 1000 * epoch)

        self._batches = forever()

    def learn(self, until: float) -> None:
        """Take steps until ``until`` CPU seconds in all, or ``limit``, are spent."""
        while self.seconds < min(until, self.limit):
            began = time.process_time()
            self._step(next(self._batches))
            self.seconds += time.process_time() - began

    def _step(self, batch: Batch) -> None:
        self.steps += 1
        left = 2 * (1 - self.seconds / self.limit)
        for group in self._optimizer.param_groups:
            group["lr"] = self.rate * min(1, self.steps / WARMUP, left)
        self._optimizer.zero_grad()
        if isinstance(self.model, TransformerXL):
            losses, self._memories = self.model.loss(*batch, self._memories)
            losses.mean().backward()
        else:
            pass_over(self.model, batch)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()


def take_turns(learners: dict[Any, Learner], turn: float) -> None:
    """Let all learn to their end, in turns.

    So a machine that's busy for a while slows all of them.

    Args:
        turn: CPU seconds that each gets before the next one.
    """
    while any(one.seconds < one.limit for one in learners.values()):
        for one in learners.values():
            one.learn(one.seconds + turn)
