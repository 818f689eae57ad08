"""Decoding: from a model that predicts the next symbol to a sequence.

Letters: b batch, s source length, t length of what is written, v vocabulary, d model
width (``book/notation.md``).
"""

from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.gpt import GPT
from annotated.masks import count_positions
from annotated.search import padding_last
from annotated.training import evaluating
from annotated.transformer import Transformer


@require.shapes
def greedy_decode(
    model: Transformer,
    source: Int[Tensor, "b s"],
    *,
    start: int,
    end: int | None = None,
    max_new_tokens: int,
) -> Int[Tensor, "b t"]:
    """Write the likeliest symbol, again and again.

    Stops when every sequence has written ``end``. All that was written is read again
    at each step; chapter 09 adds a cache.

    Args:
        model: writes in evaluation mode, without gradients.
        source: token ids, ``(b, s)``, padded anywhere with the model's pad.
        start: the id that training began every target with.
        end: the id that ends a sequence; without it, none ends early.
        max_new_tokens: most symbols to write, ``end`` included, ``start`` not.

    Returns:
        Ids ``(b, t)`` in the dtype of ``source``, t at most ``max_new_tokens``, without
        ``start``; the model's pad after ``end``.
    """
    config = model.config
    require.count(
        0, config.target_vocab - 1, start=start, **({} if end is None else {"end": end})
    )
    require.count(most=config.max_len, max_new_tokens=max_new_tokens)
    with evaluating(model):
        memory, memory_mask = model.encode(padding_last(source, config.pad))
        written = torch.full_like(source[:, :1], start)
        ended = torch.zeros_like(written, dtype=torch.bool)  # (b, 1)
        for _ in range(max_new_tokens):
            logits = model.decode(written, memory, memory_mask)[:, -1:]  # (b, 1, v)
            symbol = logits.argmax(dim=-1).to(source).masked_fill(ended, config.pad)
            written = torch.cat([written, symbol], dim=1)
            if end is not None:
                ended = ended | (symbol == end)
                if ended.all():
                    break
    return written[:, 1:]


# ---- sampling: operations on a distribution ------------------------------------


@require.shapes
def tempered(
    logits: Float[Tensor, "... v"], temperature: float
) -> Float[Tensor, "... v"]:
    """Return probabilities ``softmax(logits / temperature)``.

    Below 1 the likely gets likelier, above 1 all get more alike.

    Args:
        logits: ``(…, v)``.
        temperature: above 0.
    """
    instead = f"got {temperature}; top_k=1 takes the likeliest symbol"
    require.that(temperature != 0, f"temperature must be above 0, {instead}")
    require.positive(temperature=temperature)
    # the largest stays at 0, so that nothing overflows, and nor is 0 divided by 0
    below = logits - logits.amax(dim=-1, keepdim=True)
    return (below / max(temperature, torch.finfo(torch.float32).tiny)).softmax(dim=-1)


@require.shapes
def keep_top_k(probabilities: Float[Tensor, "... v"], k: int) -> Float[Tensor, "... v"]:
    """Keep the ``k`` likeliest symbols, and share the whole among them.

    Fan et al. (2018), section 5.1.

    Args:
        probabilities: ``(…, v)``.
        k: from 1, which leaves the likeliest alone, to v, which keeps all.

    Returns:
        Probabilities ``(…, v)``, 0 for what is not kept.
    """
    require.count(1, probabilities.shape[-1], k=k)
    largest, places = probabilities.topk(k)
    kept = torch.zeros_like(probabilities).scatter(-1, places, largest)
    return kept / kept.sum(dim=-1, keepdim=True)


@require.shapes
def keep_top_p(
    probabilities: Float[Tensor, "... v"], p: float
) -> Float[Tensor, "... v"]:
    """Keep the fewest symbols that have ``p`` together, and share the whole among them.

    Holtzman et al. (2020), equations 2 and 3: the nucleus. The likeliest come first,
    and the one that reaches ``p`` is still kept.

    Args:
        probabilities: ``(…, v)``.
        p: in (0, 1]; 1 keeps all.

    Returns:
        Probabilities ``(…, v)``, 0 for what is not kept.

    Raises:
        ValueError: if ``p`` is not in (0, 1].
    """
    require.positive(p=p)
    require.at_most(p=p, one=1)
    falling, places = probabilities.sort(dim=-1, descending=True, stable=True)
    exact = falling.cpu().double()
    before = exact.cumsum(dim=-1) - exact  # what the likelier ones have
    dropped = ((before >= p) & (p < 1)).to(falling.device)
    falling = falling.masked_fill(dropped, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, places, falling)
    return kept / kept.sum(dim=-1, keepdim=True)


class KeyValueCache:
    """Reads on where it stopped: keys and values of what was read are kept.

    Under a causal mask the past never looks at what comes later, so its keys and
    values stay as they are. Only the new positions go through the ``model``, a
    :class:`~annotated.gpt.GPT` in evaluation mode, and look at all that is kept.

    Raises:
        ValueError: if a layer's attention isn't a causal
            :class:`~annotated.attention.MultiHeadAttention`: what such a layer gave
            may change with what comes later.
    """

    def __init__(self, model: GPT):
        for layer in model.blocks.layers:
            kind, causal = type(layer.attention), layer.attention.causal
            refused = f"{kind.__name__} with {causal=}: pass cache=False to sample"
            require.that(
                issubclass(kind, MultiHeadAttention) and causal,
                f"model must have MultiHeadAttention with causal=True, got {refused}",
            )
        self.model = model
        self.kept: list[tuple[Tensor, Tensor] | None] = [None] * model.config.layers
        self.length = 0  #: number of positions that are kept

    @require.shapes
    def read(
        self,
        tokens: Int[Tensor, "b t"],
        mask: Bool[Tensor, "b 1 _ s"] | None = None,
        positions: Int[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t v"]:
        """Return the logits at new positions, as the whole sequence would give them.

        Args:
            tokens: ids of the new positions, those after all that was read before.
            mask: as for :meth:`GPT.forward <annotated.gpt.GPT.forward>`, from the new
                positions to all s so far.
            positions: of the new ones, likewise.

        Raises:
            ValueError: if they reach beyond ``max_len``, their batch is of another size
                than before, or the model is in training mode.
        """
        require.that(not self.model.training, "model must be in evaluation mode")
        if self.length:
            require.choice({self.kept[0][0].shape[0]}, sequences=tokens.shape[0])
        x = self.model.embed(tokens, self.length, positions)
        for i, layer in enumerate(self.model.blocks.layers):
            attend, map_each = layer.residuals
            x = attend(x, partial(self.attend, i, layer.attention, mask=mask))
            x = map_each(x, layer.feed_forward)
        self.length += tokens.shape[1]
        return self.model.output(self.model.blocks.norm(x))

    def attend(
        self,
        i: int,
        attention: MultiHeadAttention,
        x: Float[Tensor, "b t d"],
        mask: Bool[Tensor, "b 1 _ s"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return what new positions make of all so far, and keep their keys and values.

        Args:
            i: the layer.
            attention: of that layer.
            x: what it reads at the new positions.
            mask: as for :meth:`read`.
        """
        q, k, v = attention.project(x, start=self.length)  # new positions alone
        if self.kept[i] is not None:
            past_k, past_v = self.kept[i]
            k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        # (b, kv_heads, s, k) each, s positions so far: of a window, the last ones
        s, window = k.shape[2], getattr(attention, "window", k.shape[2])
        self.kept[i] = k[:, :, -window:], v[:, :, -window:]
        return attention.attend(q, k, v, None if mask is None else mask[..., -s:])


@require.shapes
def sample(
    model: GPT,
    prompt: Int[Tensor, "b s"],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    cache: bool = True,
    slide: bool = False,
    end: int | None = None,
    pad: int | None = None,
) -> Int[Tensor, "b t"]:
    """Write on after a prompt, drawing each symbol from the model's distribution.

    First the temperature applies, then ``top_k``, then ``top_p``; ``top_k=1`` always
    takes the likeliest symbol.

    Args:
        model: writes in evaluation mode, without gradients.
        prompt: ids, at least one for each sequence. A GPT has no padding: every id is
            a token that it reads, unless ``pad`` is given.
        max_new_tokens: number of symbols to write, ``end`` included.
        temperature: as for :func:`tempered`.
        top_k: as for :func:`keep_top_k`; all by default.
        top_p: as for :func:`keep_top_p`; all by default.
        generator: draws on the CPU, whatever the model's device, so that a seed writes
            the same everywhere.
        cache: whether keys and values are kept; it changes the time alone. A model that
            :class:`KeyValueCache` refuses, such as one with LSH attention, needs False.
        slide: go on beyond the model's context by reading its last ``max_len`` symbols
            only. Every symbol moves to another position at each step, so that nothing
            of the past can be kept.
        end: the id that ends a sequence; without it, none ends early.
        pad: the id that fills up prompts of several lengths, wherever it stands. It is
            moved to the front, where it's hidden and has no position: each prompt is
            written on as if alone.

    Returns:
        Ids ``(b, t)``, without the prompt. t is ``max_new_tokens``, or less if all
        sequences ended before; ``pad`` stands behind ``end``, or ``end`` again if there
        is no ``pad``.

    Raises:
        ValueError: if prompt and new symbols do not fit into the context and ``slide``
            is not set, an argument is out of range, or the model can't be cached.
    """
    require.count(max_new_tokens=max_new_tokens)
    require.at_most(one=1, prompt_length=prompt.shape[1])
    given = {name: i for name, i in {"end": end, "pad": pad}.items() if i is not None}
    require.count(0, model.config.vocab_size - 1, **given)
    padded = pad is not None and bool((prompt == pad).any())
    if padded:
        prompt = padding_last(prompt.flip(1), pad).flip(1)  # they end in one column
        prompt = prompt[:, (prompt != pad).any(dim=0)]
        real = prompt != pad  # (b, s)
    context, written, hints = model.config.max_len, prompt, {}
    ended = torch.zeros_like(prompt[:, :1], dtype=torch.bool)  # (b, 1)
    past = KeyValueCache(model) if cache else None
    if not slide:
        needed = prompt.shape[1] + max_new_tokens
        require.at_most(prompt_and_new_tokens=needed, max_len=context)
    with evaluating(model):
        for _ in range(max_new_tokens):
            cached = cache and written.shape[1] <= context
            first = past.length if cached else -context  # of the columns to read
            if padded:
                mask = real[:, None, None, -context:]
                hints = {"mask": mask, "positions": count_positions(mask)[:, first:]}
            read = past.read if cached else model
            logits = read(written[:, first:], **hints)
            chances = tempered(logits[:, -1].cpu(), temperature)  # (b, v)
            if top_k is not None:
                chances = keep_top_k(chances, top_k)
            if top_p is not None:
                chances = keep_top_p(chances, top_p)
            symbol = torch.multinomial(chances, 1, generator=generator).to(written)
            if end is not None:
                symbol = symbol.masked_fill(ended, end if pad is None else pad)
                ended = ended | (symbol == end)
            written = torch.cat([written, symbol], dim=1)
            if padded:
                real = F.pad(real, (0, 1), value=True)
            if end is not None and ended.all():
                break
    return written[:, prompt.shape[1] :]
