"""Page 12c: the options of Transformer-XL, each tried by a small run.

What ``python -m benchmarks lengths`` records for three seeds, the page does for one.
Letters: b batch, n length of a text, d model width.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from annotated.attention import MultiHeadAttention
from annotated.chapters.ch12.segments import SEGMENTS, library_ids, token_bits
from annotated.devices import device_of, to_device
from annotated.segments import segments
from annotated.training import evaluating
from annotated.transformer_xl import TransformerXL, TransformerXLConfig, update_memory

# ---- what memory keeps ---------------------------------------------------------


def swapped_update(
    memory: Float[Tensor, "*batch _ d"],
    states: Float[Tensor, "*batch _ d"],
    mem_len: int,
    ext_len: int = 0,
) -> Float[Tensor, "*batch _ d"]:
    """Return what the paper's code keeps of ``memory`` and ``states`` (its issue 59).

    It hands its update the two lengths in the wrong order: ``ext_len`` is taken from
    the memory's length and not from the segment's. ``mem_len`` is the most it keeps.
    """
    end = states.shape[-2] + max(0, memory.shape[-2] - ext_len)
    joined = torch.cat([memory, states], dim=-2)
    return joined[..., max(0, end - mem_len) : end, :].detach()


UPDATES = {"right": update_memory, "swapped": swapped_update}


def remembered(
    lengths: Sequence[int], mem_len: int, ext_len: int, update: str = "right"
) -> list[list[int]]:
    """Return which positions of a text are in memory after each of its segments.

    Args:
        lengths: new positions in each segment. As in the paper's loader, it also reads
            the last ``ext_len`` before them again.
        mem_len: most positions in memory.
        ext_len: positions that are read again.
    """
    memory, kept, begin = torch.empty(0, 1), [], 0
    for length in lengths:
        again, end = max(0, begin - ext_len), begin + length
        states = torch.arange(float(again), end)[:, None]  # its position
        memory = UPDATES[update](memory, states, mem_len, ext_len)
        kept.append(memory[:, 0].int().tolist())
        begin = end
    return kept


def times_added(
    length: int, mem_len: int, count: int, in_place: bool, positioned: bool = True
) -> list[int]:
    """Return how often each state has its position added when it is seen as memory.

    With absolute positions (``attn_type`` 2 and 3) the paper's code remembers states
    with their positions, and adds positions again to the memory that a segment sees.

    Args:
        mem_len: most positions in memory.
        count: number of segments; the last one looks.
        in_place: whether they are added to the memory itself, as in the paper's code,
            or to a copy.
        positioned: whether states go into memory with their position, as in the
            paper's code.
    """
    memory, seen = torch.empty(0, 1), torch.empty(0, 1)
    for _ in range(count):
        seen = memory.add_(1) if in_place else memory + 1
        states = torch.full((length, 1), float(positioned))
        memory = update_memory(memory, states, mem_len)
    return seen[:, 0].int().tolist()


def attention_entropy(growth: float, normalised: bool, keys: int = 8) -> float:
    """Return the mean entropy, in nats, of attention in a stream that has grown.

    Args:
        growth: what the stream is multiplied by; later layers of a pre-norm stack read
            larger sums.
        normalised: whether queries are made of the normalised stream, as keys are; the
            paper's code, with absolute positions (``attn_type`` 2 and 3) and
            ``pre_lnorm``, makes them of the stream itself.
    """
    generator = torch.Generator().manual_seed(0)
    x = growth * torch.randn(16, keys, 64, generator=generator)
    attention = MultiHeadAttention(64, 4, bias=False)
    for map_ in (attention.query_map, attention.key_map):
        nn.init.normal_(map_.weight, std=64**-0.5, generator=generator)
    key = nn.functional.layer_norm(x, (64,))
    with torch.no_grad():
        weights = attention.weights(key if normalised else x, key)
    return -torch.xlogy(weights, weights).sum(dim=-1).mean().item()


# ---- how far a model sees ------------------------------------------------------


class AttachedXL(TransformerXL):
    """Transformer-XL whose memory lets gradients through (chapter 12).

    The model of Dai et al. (2019) without its stop-gradient.
    """

    def remember(
        self, memories: Float[Tensor, "*batch _ d"], states: Float[Tensor, "*batch _ d"]
    ) -> Float[Tensor, "*batch _ d"]:
        """Return the last of old ``memories`` and a segment's ``states``, attached."""
        joined = torch.cat([memories, states], dim=-2)
        return joined[..., max(0, joined.shape[-2] - self.config.mem_len) :, :]


REACH = TransformerXLConfig(96, d_model=32, heads=4, layers=3, d_ff=64, mem_len=4)


def reach_model(kind: type[TransformerXL], **changes: Any) -> TransformerXL:
    """Return a small random model of a ``kind``; ``changes`` are those of ``REACH``."""
    torch.manual_seed(0)
    return kind(replace(REACH, **changes)).eval()


def last_output(
    model: TransformerXL, text: Int[Tensor, "n"], length: int
) -> Float[Tensor, "v"]:
    """Return the log-probabilities after a ``text``, read in segments of a ``length``.

    ``model`` hands its memories from segment to segment, the last of which is whole.
    """
    text, memories = to_device(text, device_of(model)), None
    for tokens in text[None].split(length, dim=1):
        output, memories = model(tokens, memories)
    return output[0, -1]


def reached_by_change(
    model: TransformerXL, text: Int[Tensor, "n"], length: int
) -> Bool[Tensor, "n"]:
    """Return for each position whether another symbol there changes the last output."""
    with evaluating(model):
        before = last_output(model, text, length)
        changed = torch.empty(len(text), dtype=torch.bool)
        for position in range(len(text)):
            other = text.clone()
            other[position] = (text[position] + 1) % model.config.vocab_size
            changed[position] = (last_output(model, other, length) != before).any()
    return changed


def reached_by_gradient(
    model: TransformerXL, text: Int[Tensor, "n"], length: int
) -> Float[Tensor, "n"]:
    """Return for each position the norm of the last output's gradient there.

    The output is that of the symbol with id 0; the gradient is that of the embedding.
    """
    embedded = []
    hook = model.embedding.register_forward_hook(
        lambda module, args, output: embedded.append(output)
    )
    try:
        output = last_output(model, text, length)[0]
    finally:
        hook.remove()
    parts = torch.autograd.grad(output, embedded, allow_unused=True)
    filled = [
        torch.zeros_like(x) if part is None else part
        for x, part in zip(embedded, parts, strict=True)
    ]
    return torch.cat(filled, dim=1)[0].norm(dim=-1)


# ---- lengths that change the loss by themselves --------------------------------

# segment, memory, and other options
LENGTHS: list[tuple[int, int, dict[str, Any]]] = [
    (8, 0, {}),
    (32, 0, {}),
    (256, 0, {}),
    (8, 256, {}),
    (256, 256, {}),
    *((32, mem_len, {}) for mem_len in (32, 64, 128, 256)),
    *((32, mem_len, {"same_length": True}) for mem_len in (32, 64, 128, 256)),
    *((32, mem_len, {"clamp_len": 63}) for mem_len in (64, 128, 256)),
]


def bits_at(model: TransformerXL, length: int, mem_len: int, **options: Any) -> float:
    """Return the bits per character of held-out text, by other lengths than trained.

    Args:
        model: has its own lengths again afterwards.
    """
    trained = model.config
    lengths = {"mem_len": mem_len, "same_length": False, "clamp_len": None}
    model.config = replace(trained, **lengths | options)
    try:
        batches = segments(library_ids("validation"), SEGMENTS["batch"], length)
        bits = torch.cat(list(token_bits(model, batches)), dim=1)
    finally:
        model.config = trained
    return bits.mean().item()
