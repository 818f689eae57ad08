"""Speculative decoding: a cheap draft guesses, the model checks several at once.

Leviathan et al. (2023); Chen et al. (2023). One reading of t + 1 positions takes a
large model hardly longer than one position. What is written has the distribution of
the model alone, whatever the draft is; a bad draft costs time, nothing else.

Letters: t guesses, v vocabulary, s length of a prompt (``book/notation.md``).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.decoding import KeyValueCache, keep_top_k, keep_top_p, tempered
from annotated.gpt import GPT
from annotated.training import evaluating

# ---- one step: operations on two distributions ----------------------------------


@require.shapes
def acceptance(
    draft: Float[Tensor, "*batch v"], target: Float[Tensor, "*batch v"]
) -> Float[Tensor, "*batch"]:
    """Return the probability that a guess is kept: what both distributions share.

    A guess is drawn from ``draft`` and kept with ``min(1, target / draft)``: together
    the sum of the smaller of ``draft`` and ``target``.
    """
    return torch.minimum(draft, target).sum(dim=-1)


@require.shapes
def residual(
    draft: Float[Tensor, "*batch v"], target: Float[Tensor, "*batch v"]
) -> Float[Tensor, "*batch v"]:
    """Return the distribution of the token that stands in for a refused guess.

    What ``target`` has more than ``draft``, shared out anew: just what the guesses that
    were kept leave to be drawn. Where it has nothing more, both are the same, and so is
    the result.
    """
    left = (target - draft).clamp(min=0)
    whole = left.sum(dim=-1, keepdim=True)
    return torch.where(whole > 0, left / whole, target)


NEEDED = "must hold probabilities, and each row sum to 1"


def _distributes(rows: Tensor) -> bool:
    sums = (rows.sum(dim=-1) - 1).abs()
    return bool((rows >= 0).all() and sums.lt(1e-3).all())


@require.shapes
def speculative_step(
    guesses: Int[Tensor, "t"],
    draft: Float[Tensor, "t v"],
    target: Float[Tensor, "_ v"],
    generator: torch.Generator | None = None,
) -> Int[Tensor, "_"]:
    """Return the guesses that are kept, and one token more.

    Guesses are looked at in their order. Each is kept with probability
    ``min(1, target / draft)``; at the first that isn't, a token is drawn from the
    :func:`residual` instead, and what was guessed after it is void. If all are kept,
    the token more is drawn from the last row of ``target``.

    Args:
        guesses: tokens, each drawn from its row of ``draft``.
        draft: probabilities, ``(t, v)``, from which they were drawn.
        target: the model's probabilities, ``(t + 1, v)``, at the same places and one
            more.
        generator: draws on the CPU.

    Returns:
        From 1 to t + 1 ids, distributed as if ``target`` alone had drawn them.

    Raises:
        ValueError: if a row isn't a distribution, or gives its guess no probability.
    """
    t = len(guesses)
    require.choice({t + 1}, rows_of_target=len(target))
    require.ids(draft.shape[1], guesses=guesses)
    given, draft, target = guesses.cpu(), draft.cpu(), target.cpu()
    require.that(_distributes(draft), f"draft {NEEDED}")
    require.that(_distributes(target), f"target {NEEDED}")
    q = draft.gather(1, given[:, None]).squeeze(1)  # (t,)
    p = target[:t].gather(1, given[:, None]).squeeze(1)
    require.that((q > 0).all(), "guesses must be drawn from draft, which has one at 0")
    keep = torch.rand(t, generator=generator, dtype=p.dtype) * q < p
    kept = int(keep.long().cumprod(dim=0).sum())  # those before the first refusal
    chances = target[t] if kept == t else residual(draft[kept], target[kept])
    more = torch.multinomial(chances, 1, generator=generator)
    return torch.cat([given[:kept], more]).to(guesses)


def expected_tokens(acceptance: float, guesses: int) -> float:
    """Return the tokens that one reading of the model gives on average.

    Leviathan et al. (2023), equation 1: ``(1 − a^(t+1)) / (1 − a)``, if each guess is
    kept with the same probability a.

    Args:
        acceptance: probability that a guess is kept, from 0 to 1.
        guesses: number t of guesses.
    """
    require.count(0, guesses=guesses)
    require.that(
        0 <= acceptance <= 1, f"acceptance must be from 0 to 1, got {acceptance}"
    )
    return float(sum(acceptance**i for i in range(guesses + 1)))


def expected_speedup(acceptance: float, guesses: int, cost: float) -> float:
    """Return how many times faster it is than the model alone.

    Leviathan et al. (2023), theorem 3.8, if a reading of t + 1 positions takes the
    model as long as one of one position.

    Arguments as :func:`expected_tokens`.

    Args:
        cost: of one guess; a reading of the model costs 1.
    """
    require.that(cost >= 0, f"cost must be at least 0, got {cost}")
    return expected_tokens(acceptance, guesses) / (guesses * cost + 1)


# ---- with models ---------------------------------------------------------------


class Speculated(NamedTuple):
    """What :func:`speculative_sample` wrote, and how many guesses were kept."""

    tokens: Int[Tensor, "1 t"]  #: ids, without the prompt
    #: of each reading of the model, so that there were ``len(kept)`` of them
    kept: list[int]


def rewind(cache: KeyValueCache, length: int) -> None:
    """Make a ``cache`` forget what it read from position ``length`` on.

    Keys and values of guesses that weren't kept must go; those before them never looked
    at them, and stay.

    Raises:
        ValueError: if ``length`` is below 0, or a window has let go what is needed.
    """
    require.count(0, length=length)
    if length < cache.length:
        whole = all(k.shape[2] == cache.length for k, _ in cache.kept)
        require.that(whole, "cache must hold all positions, but keeps a window's alone")
        cache.kept = [(k[:, :, :length], v[:, :, :length]) for k, v in cache.kept]
        cache.length = length


@require.shapes
def speculative_sample(
    model: nn.Module,
    draft: nn.Module,
    prompt: Int[Tensor, "1 s"],
    *,
    max_new_tokens: int,
    guesses: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    cache: bool = True,
) -> Speculated:
    """Write on after a prompt as :func:`~annotated.decoding.sample` does, with a draft.

    The distribution is that of ``sample`` with ``model`` alone; with ``top_k=1`` the
    tokens are.

    Arguments as :func:`~annotated.decoding.sample`, for both models.

    Args:
        model: gives logits ``(1, t, v)`` of tokens ``(1, t)``, on its device; a
            :class:`~annotated.gpt.GPT`, or any other that looks at the past alone.
        draft: another one, with the same vocabulary; ``nn.Embedding`` of ``(v, v)``
            logits looks at the last token alone.
        prompt: ids of one sequence, at least one.
        max_new_tokens: number of symbols to write.
        guesses: most of them for each reading of ``model``.
        generator: draws on the CPU.
        cache: whether keys and values of a GPT are kept; it changes the time alone.

    Returns:
        The ids, and how many guesses each reading of ``model`` kept.

    Raises:
        ValueError: if prompt and new symbols do not fit into the context of one of the
            two, or an argument is out of range.
    """
    require.count(max_new_tokens=max_new_tokens)
    require.count(0, guesses=guesses)
    require.at_most(one=1, prompt_length=prompt.shape[1])
    end, written, kept = prompt.shape[1] + max_new_tokens, prompt, []
    readers = [_Reader(one, end, cache) for one in (draft, model)]

    def chances(reader: _Reader, tokens: Tensor, last: int) -> Tensor:
        rows = tempered(reader.read(tokens)[0, -last:].cpu(), temperature)
        rows = rows if top_k is None else keep_top_k(rows, top_k)
        return rows if top_p is None else keep_top_p(rows, top_p)  # (last, v)

    with evaluating(model), evaluating(draft):
        while written.shape[1] < end:
            guessed, q = written, []
            t = min(guesses, end - written.shape[1] - 1)
            for _ in range(t):
                q += [chances(readers[0], guessed, 1)]
                guess = torch.multinomial(q[-1], 1, generator=generator)
                guessed = torch.cat([guessed, guess.to(guessed)], dim=1)
            p = chances(readers[1], guessed, t + 1)
            q = torch.cat(q) if t else p[:0]
            given = guessed[0, written.shape[1] :]  # (t,)
            tokens = speculative_step(given, q, p, generator)
            kept.append(len(tokens) - 1)
            written = torch.cat([written, tokens[None]], dim=1)
            for reader in readers:
                reader.rewind(written.shape[1] - 1)  # none has read the last one
    return Speculated(written[:, prompt.shape[1] :], kept)


class _Reader:
    """Gives logits of all that it has not read yet, with a cache where there is one."""

    def __init__(self, model: nn.Module, end: int, cache: bool):
        if isinstance(model, GPT):
            context = model.config.max_len
            require.at_most(prompt_and_new_tokens=end, max_len=context)
        self.model = model
        self.past = KeyValueCache(model) if cache and isinstance(model, GPT) else None

    def read(self, tokens: Int[Tensor, "1 t"]) -> Float[Tensor, "1 _ v"]:
        if self.past is None:
            return self.model(tokens)
        return self.past.read(tokens[:, self.past.length :])

    def rewind(self, length: int) -> None:
        if self.past is not None:
            rewind(self.past, length)
