"""Chapter 12: what the page and its recorded runs share.

One seed trains on the page, ``python -m benchmarks segments`` trains the others. Losses
by position are in bits per character. Letters: b batch, t queries, s keys, d model
width.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.attention import masked_softmax
from annotated.data.text import CHARACTERS, Characters, standard_library
from annotated.devices import device_of, to_device
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.masks import causal_mask
from annotated.positions import sinusoidal_encoding
from annotated.recipes.common import one_cycle
from annotated.segments import SegmentLoss, segments
from annotated.training import evaluating, fit
from annotated.transformer_xl import (
    RelativeMultiHeadAttention,
    TransformerXL,
    TransformerXLConfig,
    relative_shift,
    update_memory,
)

# ---- three published shifts, and a loop ----------------------------------------

# Each takes the scores of all distances from s down to −(t − 1), (t, s + t), and gives
# those of all keys, (t, s): the last query stands at the last key.


def shift_by_index(scores: Float[Tensor, "t _"]) -> Float[Tensor, "t s"]:
    """Return ``scores`` by key, each looked up by its distance: slow, plainly right."""
    t, width = scores.shape
    s = width - t
    shifted = scores.new_empty(t, s)
    for i in range(t):
        for j in range(s):
            distance = (i + s - t) - j  # from the query's position to the key's
            shifted[i, j] = scores[i, s - distance]
    return shifted


def paper_shift(scores: Float[Tensor, "t _"]) -> Float[Tensor, "t s"]:
    """Return ``scores`` shifted as in the paper's code: no distance is below 0."""
    s = scores.shape[1] - scores.shape[0]
    return relative_shift(scores[:, 1 : s + 1])


def labml_shift(scores: Float[Tensor, "t _"]) -> Float[Tensor, "t s"]:
    """Return rows of ``scores`` shifted to the right, as labml does: padded behind.

    The first row stays, row i moves by i; the last s columns are kept.
    """
    t, width = scores.shape
    line = F.pad(scores, (0, 1)).flatten()
    return line[: t * width].view(t, width)[:, t:]


def labml_shift_changed(scores: Float[Tensor, "t _"]) -> Float[Tensor, "t s"]:
    """Return ``scores`` shifted as labml#185 proposes: their front is dropped."""
    t, width = scores.shape
    line = F.pad(scores, (0, 1)).flatten()
    return line[t:].view(t, width)[:, t:]


SHIFTS = {
    "index loop": shift_by_index,
    "the paper's code": paper_shift,
    "labml's": labml_shift,
    "labml's, changed as proposed": labml_shift_changed,
}


# ---- the four terms, slowly ----------------------------------------------------


def four_terms(
    attention: RelativeMultiHeadAttention,
    query: Float[Tensor, "b t d"],
    key: Float[Tensor, "b s d"],
) -> dict[str, Float[Tensor, "b h t s"]]:
    """Return the terms "a" to "d" of all scores, with a vector R for each pair.

    Dai et al. (2019), section 3.3: their sum, divided by ``√k``, is what the softmax
    gets. Nothing is shifted. Keys after their query get distance 0, for a mask to hide.

    Args:
        query: the last t of the keys' positions.
    """
    b, h, t, s = len(query), attention.heads, query.shape[1], key.shape[1]
    position = torch.arange(s)
    distance = (position[s - t :, None] - position).clamp(min=0)  # (t, s)
    vectors = sinusoidal_encoding(s, attention.d_model)[distance].to(query)
    q = attention.query_map(query).unflatten(-1, (h, -1))  # (b, t, h, k)
    k = attention.key_map(key).unflatten(-1, (h, -1))  # (b, s, h, k)
    r = attention.position_map(vectors).unflatten(-1, (h, -1))  # (t, s, h, k)
    u, v = attention.content_bias[:, 0], attention.position_bias[:, 0]  # (h, k)
    terms = {
        "a": torch.einsum("bthk,bshk->bhts", q, k),
        "b": torch.einsum("bthk,tshk->bhts", q, r),
        "c": torch.einsum("hk,bshk->bhs", u, k)[:, :, None],
        "d": torch.einsum("hk,tshk->hts", v, r)[None],
    }
    return {name: term.expand(b, h, t, s) for name, term in terms.items()}


def slow_attention(
    attention: RelativeMultiHeadAttention,
    query: Float[Tensor, "b t d"],
    key: Float[Tensor, "b s d"],
) -> Float[Tensor, "b t d"]:
    """Return what ``attention`` makes of ``query`` and ``key``, from the four terms."""
    scores = sum(four_terms(attention, query, key).values())
    scores = scores / (attention.d_model // attention.heads) ** 0.5
    mask = causal_mask(query.shape[1], key.shape[1], device=query.device)
    weights = masked_softmax(scores, mask)
    values = attention.value_map(key).unflatten(-1, (attention.heads, -1))
    heads = torch.einsum("bhts,bshk->bthk", weights, values)
    return attention.output_map(heads.flatten(2))


# ---- segments of one text, with memory and without -----------------------------

SEGMENTS = {"length": 32, "batch": 32, "steps": 600, "rate": 8e-3, "clip": 1.0}


class RememberingGPT(GPT):
    """A GPT with a memory, in which every segment's positions are numbered from 0.

    Dai et al. (2019), section 3.3, ask how such a model should tell a segment's
    position from the same position of the segment before. ``config`` is a GPT's; its
    ``max_len`` is also the most that is remembered.
    """

    def loss(
        self,
        tokens: Int[Tensor, "b t"],
        target: Int[Tensor, "b t"],
        memories: Float[Tensor, "_ b _ d"] | None = None,
    ) -> tuple[Float[Tensor, "b t"], Float[Tensor, "_ b _ d"]]:
        """Return the loss of each ``target``, in nats, and new memories.

        Args:
            memories: what the segment before gave, ``(layers, b, m, d)``; none at the
                beginning of a text.
        """
        x = self.embed(tokens)
        if memories is None:
            memories = x.new_zeros(len(self.blocks.layers), len(x), 0, x.shape[2])
        states = []
        for layer, memory in zip(self.blocks.layers, memories, strict=True):
            states.append(x)
            attend, map_each = layer.residuals
            known = torch.cat([memory, x], dim=1)
            y = layer.attention(attend.norm(x), attend.norm(known))
            x = map_each(x + y, layer.feed_forward)
        logits = self.output(self.blocks.norm(x))
        losses = F.cross_entropy(logits.mT, target, reduction="none")
        kept = update_memory(memories, torch.stack(states), self.config.max_len)
        return losses, kept


_WIDTHS = {"vocab_size": len(CHARACTERS), "d_model": 64, "heads": 4, "layers": 2}
_XL = _WIDTHS | {"d_ff": 256, "norm": "pre"}
# a GPT's network is wider by what the maps of distances take in the others
_NUMBERED = GPTConfig(**_WIDTHS, d_ff=288, max_len=SEGMENTS["length"])
MODELS: dict[str, Callable[[], nn.Module]] = {
    "vanilla": lambda: GPT(_NUMBERED),
    "numbered, with memory": lambda: RememberingGPT(_NUMBERED),
    "relative, no memory": lambda: TransformerXL(TransformerXLConfig(**_XL)),
    "Transformer-XL": lambda: TransformerXL(
        TransformerXLConfig(**_XL, mem_len=SEGMENTS["length"])
    ),
}
_WITH_MEMORY = TransformerXL, RememberingGPT


@cache
def library_ids(split: str) -> Int[Tensor, "n"]:
    """Return the standard library's text of a ``split`` as ids of characters."""
    return torch.tensor(Characters(CHARACTERS).encode(standard_library(split)))


def train_on_segments(
    kind: str, seed: int, steps: int = SEGMENTS["steps"]
) -> tuple[nn.Module, float]:
    """Return a model that read the library once, in order, and its CPU seconds.

    All kinds read the same segments in the same order; those with memory begin each
    segment with that of the one before.
    """
    require.choice(MODELS, kind=kind)
    text = library_ids("train")
    torch.manual_seed(seed)
    model = MODELS[kind]()
    generator = torch.Generator().manual_seed(seed)
    begin = int(torch.randint(len(text), (), generator=generator))
    whole = segments(text.roll(-begin), SEGMENTS["batch"], SEGMENTS["length"])
    batches = list(islice(whole, steps))
    optimizer, schedule = one_cycle(model, SEGMENTS["rate"], len(batches))
    loss = SegmentLoss() if isinstance(model, _WITH_MEMORY) else next_token_loss
    history = fit(
        model, loss, batches, optimizer, schedule=schedule, clip=SEGMENTS["clip"]
    )
    return model, history[-1]["cpu_seconds"]


def token_bits(
    model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]
) -> Iterator[Float[Tensor, "b t"]]:
    """Read segments one after another, with memory if the model has any.

    Yields:
        The bits of each target, ``(b, t)``.
    """
    memories = None
    for batch in batches:
        tokens, target = to_device(batch, device_of(model))
        with evaluating(model):
            if isinstance(model, _WITH_MEMORY):
                losses, memories = model.loss(tokens, target, memories)
            else:
                logits = model(tokens)
                losses = F.cross_entropy(logits.mT, target, reduction="none")
        yield losses / log(2)


def bits_by_segment_position(
    model: nn.Module, length: int = SEGMENTS["length"]
) -> Float[Tensor, "t"]:
    """Return the mean bits of a character at each position of a segment.

    Args:
        model: as in :func:`token_bits`; it reads the held-out modules.
        length: of the segments; a shorter one at the end is left out.
    """
    batches = segments(library_ids("validation"), SEGMENTS["batch"], length)
    whole = (batch for batch in batches if batch[0].shape[1] == length)
    return torch.cat(list(token_bits(model, whole))).mean(dim=0)
