"""Refinement: all symbols are guessed at once, and what is masked is guessed again.

A decoder that looks both ways guesses every ``[MASK]`` of a target in one pass. There
are two ways to write with it: mask-predict (Ghazvininejad et al., 2019) writes all,
masks the least sure and writes them again; masked diffusion (Austin et al., 2021; Sahoo
et al., 2024; Nie et al., 2025) writes a share in each round, and its loss bounds the
likelihood.

Letters: b batch, s source length, t target length, d model width, v vocabulary, n
number of lengths (``book/notation.md``). Targets hold no start and no end symbol: their
length is guessed, and what follows is padding.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.masks import length_mask, padding_mask
from annotated.search import padding_last
from annotated.training import evaluating
from annotated.transformer import Transformer, TransformerConfig

ORDERS = ("random", "surest", "blocks")


class MaskedTransformer(Transformer):
    """A Transformer that guesses what is masked, and how long the target is.

    Its parts are the :class:`~annotated.transformer.Transformer`'s own. The decoder
    gets another mask, without the causal part, and its logits are of the symbol that
    stands at a position, not of the next one. How much longer the target is than the
    source is guessed from the sum of the memory. Ghazvininejad et al. (2019), section
    2.3, guess a length, from a symbol of its own that stands before the source.

    Args:
        config: its ``target_vocab`` counts ``[MASK]``, which is the last id, ``mask``.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.mask = config.target_vocab - 1
        require.that(
            config.pad != self.mask, f"pad must not be [MASK], the last id {self.mask}"
        )
        # of every difference from the source's length, −max_len to max_len
        self.length = nn.Linear(config.d_model, 2 * config.max_len + 1)

    @require.shapes
    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s d"],
        memory_mask: Bool[Tensor, "b 1 1 s"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "b t v"]:
        """Return logits of the symbol that stands at each position.

        Neither padding nor ``[MASK]`` is ever an answer: their logits are −∞ (the zero
        masking probabilities of Sahoo et al., 2024, section 3.2.3).

        Args:
            target: token ids, masked anywhere, padded behind.
            memory: what :meth:`~annotated.transformer.Transformer.encode` gave.
            memory_mask: the mask that came with it.
            mask: what else a position must not look at, broadcastable to
                ``(b, h, t, t)``; every real position sees all others if not given.

        Raises:
            ValueError: if ``target`` is longer than ``max_len``, or holds an id outside
                the vocabulary (looked at on the CPU alone).
        """
        c = self.config
        require.ids(c.target_vocab, target=target)
        x = self.positions(self.target_embedding(target) * c.d_model**0.5)
        seen = padding_mask(target, c.pad)
        if mask is not None:
            require.mask(mask, (len(target), c.heads, *(2 * target.shape[1:])))
            seen = seen & mask
        logits = self.output(self.decoder(x, memory, seen, memory_mask))
        never = torch.tensor([c.pad, self.mask], device=logits.device)
        return logits.index_fill(-1, never, -torch.inf)

    @require.shapes
    def guess_length(
        self, memory: Float[Tensor, "b s d"], memory_mask: Bool[Tensor, "b 1 1 s"]
    ) -> Float[Tensor, "b n"]:
        """Return log-probabilities of all lengths from 0 to ``max_len``; 0 never is.

        Arguments as :meth:`decode`.
        """
        most, real = self.config.max_len, memory_mask[:, 0, 0]  # (b, s)
        scores = self.length((memory * real[..., None]).sum(dim=1))
        lengths = torch.arange(most + 1, device=memory.device)
        differences = lengths - real.sum(dim=1, keepdim=True)  # (b, n)
        scores = scores.gather(1, differences + most)
        return scores.masked_fill(lengths == 0, -torch.inf).log_softmax(dim=-1)


# ---- learning to guess what is masked ------------------------------------------


@require.shapes
def mask_predict_loss(
    model: MaskedTransformer,
    source: Int[Tensor, "b s"],
    target: Int[Tensor, "b t"],
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Return the loss of mask-predict, in nats per masked symbol.

    Ghazvininejad et al. (2019), section 2.2: of a target of N symbols, a number from 1
    to N is masked, all numbers being as likely. The length's own loss, as a share of
    each symbol, is added.

    Args:
        model: trained or to be trained.
        source: token ids, padded behind.
        target: token ids without start and end, padded behind.
        generator: draws on the CPU, whatever the device.

    Raises:
        ValueError: if a target is empty, or holds ``[MASK]``.
    """
    real = _real(model, target)
    sizes = real.sum(dim=1)
    u = torch.rand(len(target), generator=generator).to(target.device)
    masked = _some(real, 1 + (u * sizes).long(), generator)
    memory, memory_mask = model.encode(source)
    costs = _costs(model, memory, memory_mask, target, masked)
    length = _length_cost(model, memory, memory_mask, sizes)
    return costs.sum() / masked.sum() + length.sum() / sizes.sum()


@require.shapes
def diffusion_loss(
    model: MaskedTransformer,
    source: Int[Tensor, "b s"],
    target: Int[Tensor, "b t"],
    share: Float[Tensor, "b"] | None = None,
    lengths: bool = True,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Return a draw of the bound on −log p(target | source), in nats per symbol.

    Each symbol is masked with a chance of t, and what the masked ones cost is divided
    by t: with t uniform in (0, 1] the mean is never below −log p (Sahoo et al., 2024,
    equation 10; Nie et al., 2025, equation 3). Without 1/t, or with a least t above 0,
    it is no bound.

    Arguments as :func:`mask_predict_loss`.

    Args:
        share: t of each row, in (0, 1]; drawn if not given, evenly spread over the rows
            (Kingma et al., 2021, appendix I).
        lengths: whether the length's own cost is added, without which it is a bound
            for targets of a known length.

    Raises:
        ValueError: if a target is empty or holds ``[MASK]``, or ``share`` isn't in
            (0, 1].
    """
    real = _real(model, target)
    if share is None:
        even = torch.arange(len(target)) / len(target)
        share = 1 - (torch.rand((), generator=generator) + even) % 1  # (0, 1]
    bad = share[~((share > 0) & (share <= 1))].tolist()  # NaN too
    require.that(not bad, f"share must be in (0, 1], got {bad[:1]}")
    share = share.to(target.device)
    u = torch.rand(target.shape, generator=generator).to(target.device)
    memory, memory_mask = model.encode(source)
    masked = real & (u < share[:, None])
    costs = _costs(model, memory, memory_mask, target, masked) / share
    if lengths:
        costs = costs + _length_cost(model, memory, memory_mask, real.sum(dim=1))
    return costs.sum() / real.sum()


@require.shapes
def diffusion_bits(
    model: MaskedTransformer,
    source: Int[Tensor, "b s"],
    target: Int[Tensor, "b t"],
    draws: int = 16,
    lengths: bool = True,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "b"]:
    """Return an estimate of the bound on −log₂ p(target | source), in bits a target.

    It has the mean of :func:`diffusion_loss`, and varies less: of N symbols n are
    masked, all n being as likely, and what they cost counts N/n (Nie et al., 2025,
    equation 6, where ``draws`` were 128).

    Arguments as :func:`diffusion_loss`.

    Args:
        draws: number of masks for each target; their n are evenly spread.

    Returns:
        Bits ``(b,)``, the length's own among them if ``lengths``.
    """
    require.count(draws=draws)
    real = _real(model, target)
    sizes = real.sum(dim=1)
    with evaluating(model):
        memory, memory_mask = model.encode(source)
        total = torch.zeros(len(target), dtype=memory.dtype, device=memory.device)
        first = torch.rand(len(target), dtype=torch.float64, generator=generator)
        for i in range(draws):
            u = (first + i / draws) % 1
            number = 1 + (u * sizes.cpu()).long().clamp(max=sizes.cpu() - 1)
            number = number.to(sizes)
            masked = _some(real, number, generator)
            costs = _costs(model, memory, memory_mask, target, masked)
            total += costs * sizes / number / draws
        if lengths:
            total += _length_cost(model, memory, memory_mask, sizes)
    return total / math.log(2)


def _real(model: MaskedTransformer, target: Int[Tensor, "b t"]) -> Bool[Tensor, "b t"]:
    """Return where ``target`` has symbols, after a look at what it holds."""
    pad = model.config.pad
    require.padding_behind(pad, target=target)
    real = target != pad
    if target.device.type == "cpu":  # a GPU would have to wait
        empty = (~real.any(dim=1)).nonzero().flatten().tolist()
        message = f"target must hold a symbol in each row, got none in rows {empty}"
        require.that(not empty and len(target), message)
        rows = (target == model.mask).any(dim=1).nonzero().flatten().tolist()
        message = f"target must be without [MASK] ({model.mask}), got it in rows {rows}"
        require.that(not rows, message)
    return real


def _some(
    real: Bool[Tensor, "b t"], number: Int[Tensor, "b"], generator=None
) -> Bool[Tensor, "b t"]:
    """Return ``number`` of the ``real`` positions of each row, all as likely."""
    u = torch.rand(real.shape, dtype=torch.float64, generator=generator)
    some = _largest(u, number.cpu(), real.cpu())  # not every GPU has float64
    return some.to(real.device)


def _largest(
    scores: Float[Tensor, "b t"], number: Int[Tensor, "b"], among: Bool[Tensor, "b t"]
) -> Bool[Tensor, "b t"]:
    """Return the ``number`` positions with the largest scores ``among`` some."""
    order = (-scores).masked_fill(~among, torch.inf).argsort(dim=1, stable=True)
    place = order.argsort(dim=1)
    return among & (place < number[:, None])


def _costs(model, memory, memory_mask, target, masked) -> Float[Tensor, "b"]:
    """Return −log p of the ``masked`` symbols of each row, added up, in nats."""
    read = target.masked_fill(masked, model.mask)
    logits = model.decode(read, memory, memory_mask)
    right = target.masked_fill(~masked, 0)  # any symbol: it isn't counted
    costs = -logits.log_softmax(dim=-1).gather(-1, right[..., None].long())[..., 0]
    return costs.where(masked, 0.0).sum(dim=1)


def _length_cost(model, memory, memory_mask, sizes) -> Float[Tensor, "b"]:
    logs = model.guess_length(memory, memory_mask)
    return -logs.gather(1, sizes[:, None])[:, 0]


# ---- writing in rounds -----------------------------------------------------------


class Round(NamedTuple):
    """What was read in a round, and what stands after it."""

    read: Int[Tensor, "b t"]  #: ids with ``[MASK]``, padded behind
    written: Int[Tensor, "b t"]  #: ids afterwards, some still masked in diffusion
    logs: Float[Tensor, "b t"]  #: log p of each symbol when it was written; 0 elsewhere


class Refinement(NamedTuple):
    """What was written, and how."""

    tokens: Int[Tensor, "b t"]  #: ids, padded behind
    score: Float[Tensor, "b"]  #: mean log p of the symbols when they were written
    rounds: list[Round]  #: those in which the model was asked


@require.shapes
def mask_predict(
    model: MaskedTransformer,
    source: Int[Tensor, "b s"],
    *,
    rounds: int,
    candidates: int = 1,
    length: Int[Tensor, "b"] | None = None,
) -> Refinement:
    """Write all symbols at once, then mask the least sure and write these again.

    Ghazvininejad et al. (2019), section 3: before round r of T, counted from 0, the
    ``⌊N (T − r) / T⌋`` symbols that were written with the least probability are masked;
    those that stay keep theirs. Of several lengths, the one whose symbols have the
    largest mean log-probability is kept (section 3.3). The likeliest symbol is taken
    everywhere, so nothing is random.

    Args:
        model: writes in evaluation mode, without gradients.
        source: token ids, padded anywhere with the model's pad.
        rounds: T; with more of them than symbols, some have nothing to mask, and cost
            nothing.
        candidates: how many of the likeliest lengths are tried, in one batch.
        length: of each target, from 1 to ``max_len``; guessed if not given.

    Returns:
        Ids, their score, and what was read and written round by round.

    Raises:
        ValueError: if a number is out of range, or a source is all padding.
    """
    require.count(rounds=rounds)
    require.count(1, model.config.max_len, candidates=candidates)
    if length is not None:
        message = f"candidates must be 1 if length is given, got {candidates}"
        require.that(candidates == 1, message)
        require.within(1, model.config.max_len, length=length)
    with evaluating(model):
        memory, memory_mask = model.encode(padding_last(source, model.config.pad))
        sizes = _lengths(model, memory, memory_mask, candidates, length)  # (b, n)
        rows = torch.arange(len(source), device=source.device)
        rows, count = rows.repeat_interleave(sizes.shape[1]), sizes.flatten()
        memory, memory_mask = memory[rows], memory_mask[rows]
        tokens = _canvas(model, count)
        real = tokens != model.config.pad
        logs, done = torch.zeros_like(tokens, dtype=memory.dtype), []
        for r in range(rounds):
            masked = _largest(-logs, count * (rounds - r) // rounds, real)
            if not masked.any():
                break
            read = tokens.masked_fill(masked, model.mask)
            every = model.decode(read, memory, memory_mask).log_softmax(dim=-1)
            best, guess = every.max(dim=-1)
            tokens, logs = guess.where(masked, tokens), best.where(masked, logs)
            done.append(Round(read, tokens, logs))
        scores = (logs.sum(dim=1) / count).view(sizes.shape)
        best, which = scores.max(dim=1)
        rows = torch.arange(len(source), device=source.device) * sizes.shape[1] + which
        longest = int(count[rows].max())
    done = [Round(*(part[rows, :longest] for part in one)) for one in done]
    return Refinement(done[-1].written, best, done)


@require.shapes
def diffusion_sample(
    model: MaskedTransformer,
    source: Int[Tensor, "b s"],
    *,
    rounds: int,
    order: str = "random",
    block: int = 1,
    remask: float = 0.0,
    temperature: float = 1.0,
    length: Int[Tensor, "b"] | None = None,
    canvas: Int[Tensor, "b t"] | None = None,
    generator: torch.Generator | None = None,
) -> Refinement:
    """Write a share of the masked symbols in each round, the same number in each.

    What a round writes is drawn from the model's distribution at each position by
    itself. It stays, unless it is masked again.

    Args:
        model: writes in evaluation mode, without gradients.
        source: token ids, padded anywhere with the model's pad.
        rounds: number of equal shares; with more of them than symbols, some are empty,
            and cost nothing.
        order: which ones come first. "random": any (Sahoo et al., 2024, the ancestral
            sampler, with equal shares). "surest": those whose drawn symbol has the
            largest probability (Chang et al., 2022). "blocks": those of the first
            block, and in it the surest (Nie et al., 2025).
        block: width of a block, in positions; with 1, it is written left to right.
        remask: chance of what was written to be masked again before each further round
            (Wang et al., 2025), in [0, 1); as many more are then written.
        temperature: of the draw; 0 takes the likeliest symbol.
        length: of each target, from 1 to ``max_len``; the likeliest if not given.
        canvas: ids ``(b, t)``, with ``[MASK]`` where something is to be written: the
            rest is given, and never changes. It stands for ``length``.
        generator: draws on the CPU, whatever the device.

    Returns:
        Ids, their score (0 for what was given), and what was read and written.

    Raises:
        ValueError: if a number is out of range, ``order`` is unknown, or a source is
            all padding.
    """
    c = model.config
    require.count(rounds=rounds, block=block)
    require.choice(ORDERS, order=order)
    require.probability(remask=remask)
    fits = isinstance(temperature, int | float) and 0 <= temperature < math.inf
    require.that(fits, f"temperature must be a number ≥ 0, got {temperature!r}")
    require.that(
        length is None or canvas is None, "give length or canvas, got both of them"
    )
    if length is not None:
        require.within(1, c.max_len, length=length)
    if canvas is not None:
        require.ids(c.target_vocab, canvas=canvas)
        require.padding_behind(c.pad, canvas=canvas)
    with evaluating(model):
        memory, memory_mask = model.encode(padding_last(source, c.pad))
        if canvas is None:
            count = _lengths(model, memory, memory_mask, 1, length)[:, 0]
            canvas = _canvas(model, count)
        tokens, free = canvas, canvas == model.mask
        # what is drawn, and in which order, is decided in float64, on the CPU
        blocks = torch.arange(canvas.shape[1]) // block
        logs, done = torch.zeros(tokens.shape, dtype=torch.float64), []
        for r in range(1, rounds + 1):
            if remask and done:
                again = torch.rand(tokens.shape, generator=generator) < remask
                tokens = tokens.masked_fill(free & again.to(tokens.device), model.mask)
            masked = tokens == model.mask
            after = -(-free.sum(dim=1) * r // rounds)  # written after it, rounded up
            number = after - (free & ~masked).sum(dim=1)
            if not (number > 0).any():
                continue
            logits = model.decode(tokens, memory, memory_mask).cpu().double()
            every = logits.log_softmax(dim=-1)
            scores = every
            if temperature:
                scores = every + temperature * gumbel(logits.shape, generator)
            drawn = scores.argmax(dim=-1)
            log = every.gather(-1, drawn[..., None])[..., 0]
            first = log
            if order == "random":
                first = torch.rand(log.shape, dtype=log.dtype, generator=generator)
            elif order == "blocks":  # chances lie in [0, 1], so no block is overtaken
                first = log.exp() - 2.0 * blocks
            chosen = _largest(first, number.cpu(), masked.cpu())
            read = tokens
            tokens = drawn.to(tokens).where(chosen.to(tokens.device), tokens)
            hidden = (tokens == model.mask).cpu()
            logs = log.where(chosen, logs).masked_fill(hidden, 0.0)
            done.append(Round(read, tokens, logs))
        score = logs.sum(dim=1) / free.sum(dim=1).clamp(min=1).cpu()
    return Refinement(tokens, score.to(memory), done)


def gumbel(
    shape: tuple[int, ...], generator: torch.Generator | None = None
) -> Float[Tensor, "..."]:
    """Return Gumbel noise: the largest of ``log p + noise`` is a draw from ``p``.

    It is made in double precision: a uniform number of single precision is at most
    1 − 2⁻²⁴, so that its noise ends at 16.6 nats, and what is rarer never comes.

    Args:
        shape: of the noise.
        generator: draws on the CPU.
    """
    u = torch.rand(shape, dtype=torch.float64, generator=generator)
    return -(-u.log()).log()


def _lengths(model, memory, memory_mask, candidates, length) -> Int[Tensor, "b n"]:
    """Return the likeliest lengths of each row, the likeliest first, or those given."""
    if length is not None:
        return length[:, None]
    return model.guess_length(memory, memory_mask).topk(candidates, dim=1).indices


def _canvas(model: MaskedTransformer, sizes: Int[Tensor, "b"]) -> Int[Tensor, "b t"]:
    """Return as many masks as ``sizes`` say, and padding behind."""
    real = length_mask(sizes, int(sizes.max()))[:, 0, 0]
    return torch.where(real, model.mask, model.config.pad)
