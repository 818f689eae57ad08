"""Drafts for the small trained model of page 16c, and what becomes of their guesses.

Letters: t guesses, v vocabulary (``book/notation.md``).
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.data.datasets import DataError
from annotated.data.glassllm import decode, encode, glass_model
from annotated.decoding import sample, tempered
from annotated.gpt import GPT
from annotated.speculative import acceptance, speculative_step

MISSING = (
    "The model's file, annotated/vendor/glassllm/model.safetensors, is not in this "
    "installation, so this cell has nothing to show. What was measured with the model "
    "was recorded, in book/results/drafts.json."
)


def model() -> GPT | None:
    """Return the model that read Lewis Carroll, or nothing without its file."""
    try:
        return glass_model()
    except DataError:
        print(MISSING)
        return None


# ---- drafts ------------------------------------------------------------------------


def texts(model: GPT, count: int, seed: int = 0) -> Int[Tensor, "_ t"]:
    """Return texts, as long as its context, that a ``model`` writes after a line."""
    start = torch.tensor([encode("\n")]).expand(count, 1)
    generator = torch.Generator().manual_seed(seed)
    length = model.config.max_len - 1
    written = sample(model, start, max_new_tokens=length, generator=generator)
    return torch.cat([start, written], dim=1)


def count_pairs(texts: Int[Tensor, "b t"], v: int) -> Float[Tensor, "v v"]:
    """Return how often each token came after each of the ``v`` in ``texts``."""
    before, after = texts[:, :-1].flatten(), texts[:, 1:].flatten()
    counts = torch.zeros(v, v)
    one = torch.ones(len(after))
    return counts.index_put_((before, after), one, accumulate=True)


@torch.no_grad()
def add_chances(model: GPT, texts: Int[Tensor, "b t"]) -> Float[Tensor, "v v"]:
    """Return sums of a ``model``'s chances after each token of ``texts``."""
    p = model(texts[:, :-1]).softmax(dim=-1).flatten(0, 1)
    sums = torch.zeros(p.shape[1], p.shape[1])
    return sums.index_add_(0, texts[:, :-1].flatten(), p)


def first_layers(model: GPT, count: int) -> GPT:
    """Return a copy of the ``model`` with its first ``count`` layers alone."""
    draft = GPT(replace(model.config, layers=count))
    draft.load_state_dict(model.state_dict(), strict=False)  # upper layers left
    return draft.eval()


def as_draft(counts: Float[Tensor, "v v"]) -> nn.Embedding:
    """Return a table of ``counts`` as a model that looks at the last token alone.

    Five tokens more in each row, shared out as all tokens are, so that no row is empty
    and no token impossible.
    """
    every = counts.sum(dim=0) + 0.1
    more = counts + 5 * every / every.sum()
    return nn.Embedding.from_pretrained(more.log())


def drafts(model: GPT, texts: Int[Tensor, "b t"]) -> dict[str, nn.Module]:
    """Return drafts of a ``model`` by their names, the worst first."""
    v = model.config.vocab_size
    counts = count_pairs(texts, v)
    return {
        "any token": as_draft(torch.ones(v, v)),
        "frequent tokens": as_draft(counts.sum(dim=0).expand(v, v)),
        "pairs, counted": as_draft(counts),
        "pairs, averaged": as_draft(add_chances(model, texts)),
        "1 layer": first_layers(model, 1),
        "2 layers": first_layers(model, 2),
        "3 layers": first_layers(model, 3),
        "the model itself": model,
    }


def cost_of(draft: nn.Module, model: GPT) -> float:
    """Return the weights that a guess of the ``draft`` reads, as a share of a model's.

    Args:
        draft: another model, or a table, of which a guess reads one row.
    """
    whole = sum(p.numel() for p in model.parameters())
    if isinstance(draft, nn.Embedding):
        return draft.embedding_dim / whole
    return sum(p.numel() for p in draft.parameters()) / whole


@torch.no_grad()
def kept_share(
    draft: nn.Module,
    model: nn.Module,
    texts: Int[Tensor, "b t"],
    temperature: float = 1.0,
) -> float:
    """Return how likely a guess is kept, on average over the positions of ``texts``.

    Args:
        temperature: of both; 0 takes the likeliest token of each.
    """
    rows = [one(texts[:, :-1]) for one in (draft, model)]
    if temperature == 0:
        guess, wanted = (row.argmax(dim=-1) for row in rows)
        return (guess == wanted).double().mean().item()
    q, p = (tempered(row, temperature) for row in rows)
    return acceptance(q, p).mean().item()


# ---- one reading after another -----------------------------------------------------

Reading = dict[str, Any]  #: guesses with their two probabilities, kept, and one more


@torch.no_grad()
def readings(
    model: nn.Module,
    draft: nn.Module,
    prompt: Int[Tensor, "1 s"],
    *,
    max_new_tokens: int,
    guesses: int,
    seed: int = 0,
) -> list[Reading]:
    """Return what :func:`~annotated.speculative.speculative_sample` does, step by step.

    Args:
        guesses: most of them for each reading of ``model``.
    """
    generator = torch.Generator().manual_seed(seed)
    written, end, seen = prompt, prompt.shape[1] + max_new_tokens, []
    while (length := written.shape[1]) < end:
        guessed, q = written, torch.zeros(0)
        for _ in range(min(guesses, end - length - 1)):
            row = draft(guessed)[0, -1:].softmax(dim=-1)  # (1, v)
            guess = torch.multinomial(row, 1, generator=generator)
            guessed = torch.cat([guessed, guess], dim=1)
            q = torch.cat([q.to(row).reshape(-1, row.shape[1]), row])
        p = model(guessed)[0, length - 1 :].softmax(dim=-1)  # (t + 1, v)
        given = guessed[0, length:]  # (t,)
        tokens = speculative_step(given, q.reshape(-1, p.shape[1]), p, generator)
        rows = [
            (decode([one]), *(round(x[i, one].item(), 4) for x in (q, p)))
            for i, one in enumerate(given.tolist())
        ]
        more = decode(tokens[-1:].tolist())
        seen.append({"guesses": rows, "kept": len(tokens) - 1, "more": more})
        written = torch.cat([written, tokens[None]], dim=1)
    return seen
