"""The laboratory: its experiments in PyTorch, ``python -m benchmarks laboratory``.

``static/laboratory.json`` says what the page and this module train. The page's engine
is ``static/laboratory_engine.js``; tests compare it with the model below.
"""

import json
import operator
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from annotated import require
from annotated.attention import MultiHeadAttention
from annotated.devices import device_of, to_device
from annotated.masks import causal_mask, padding_mask
from annotated.page.frames import static
from annotated.positions import LearnedPositionalEmbedding, RotaryMultiHeadAttention
from annotated.recipes.parts import Skips
from annotated.training import LabelSmoothing
from annotated.transformer import Encoder, Residual, Transformer, TransformerConfig

PAD, START, END, LETTERS = range(4)  # the first letter has id 3
Settings = Mapping[str, Any]


def laboratory_settings(experiment: str = "whole", **changes: Any) -> dict[str, Any]:
    """Return all settings of a named ``experiment``, with some ``changes``.

    Raises:
        ValueError: if there is no such experiment, or no such setting.
    """
    file = json.loads(static("laboratory.json"))
    require.choice(file["experiments"], experiment=experiment)
    settings = file["settings"] | file["experiments"][experiment]["changes"]
    for name in changes:
        require.choice(settings, name=name)
    return settings | changes


# ---- the model -------------------------------------------------------------------


class Unscaled:
    """Attention without 1/√k, to be mixed in: queries are √k times as long."""

    def project(self, query, key=None, value=None, start=0):
        """Return longer queries, and keys and values as they were.

        ``query``, ``key``, ``value`` and ``start`` are as in the class above.
        """
        q, k, v = super().project(query, key, value, start)
        return q * q.shape[-1] ** 0.5, k, v


class UnscaledAttention(Unscaled, MultiHeadAttention):
    """Multi-head attention with plain dot products as scores (chapter 02)."""


class UnscaledRotaryAttention(Unscaled, RotaryMultiHeadAttention):
    """The same with rotary positions (chapter 05)."""


class NoResidual(Residual):
    """A residual without its addition (chapter 06), in both orders of the norm."""

    def forward(self, x, sublayer):
        """Return what ``sublayer`` makes of ``x``, normalised before or after."""
        if self.norm_order == "pre":
            return sublayer(self.norm(x))
        return self.norm(sublayer(x))


class LaboratoryTransformer(Transformer):
    """The Transformer of chapter 06 with the switches of the laboratory.

    ``settings`` are those of :func:`laboratory_settings`. A decoder alone reads source
    and target as one sequence, and has no source embedding, encoder or cross-attention.
    """

    def __init__(self, settings: Settings):
        s, vocab = settings, LETTERS + settings["letters"]
        config = TransformerConfig(
            vocab,
            vocab,
            d_model=s["width"],
            heads=s["heads"],
            layers=s["layers"],
            d_ff=s["inner"],
            dropout=0.0,
            norm="post" if s["norm"] == "post" else "pre",
            max_len=2 * (s["longest"] + 1),
        )
        super().__init__(config)
        self.causal, self.alone = s["causal"], s["model"] == "decoder"
        if self.alone:
            self.decoder = Encoder(config)  # what makes it a decoder is its mask
            self.encoder = self.source_embedding = None
        if s["positions"] == "learned":
            places = config.max_len if self.alone else config.max_len // 2
            self.positions = LearnedPositionalEmbedding(places, s["width"])
        elif s["positions"] != "sinusoidal":
            self.positions = nn.Identity()
        for stack in filter(None, (self.encoder, self.decoder)):
            if s["norm"] == "none":
                stack.norm = nn.Identity()
            for layer in stack.layers:
                _switch(layer, s)
        for name, parameter in self.named_parameters():  # drawn as in the book's class
            if "embedding" in name:
                nn.init.normal_(parameter, std=s["width"] ** -0.5)
            elif parameter.dim() > 1 and name != "positions.table":
                nn.init.xavier_uniform_(parameter)

    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s d"] | None,
        memory_mask: Bool[Tensor, "b 1 1 s"] | None = None,
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of the symbol that comes next, at each position.

        Arguments ``target``, ``memory`` and ``memory_mask`` are those of the class
        above; a decoder alone has no memory.
        """
        mask = padding_mask(target, self.config.pad)
        if self.causal:
            mask = mask & causal_mask(target.shape[1], device=target.device)
        x = self.positions(self.target_embedding(target) * self.config.d_model**0.5)
        memory = () if self.alone else (memory,)
        masks = (mask,) if self.alone else (mask, memory_mask)
        return self.output(self.decoder(x, *memory, *masks))

    def forward(
        self, source: Int[Tensor, "b s"], target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t v"]:
        """Return the logits of what follows; see :func:`laboratory_batch`.

        A decoder alone reads ``target``, which holds the ``source``.
        """
        if self.alone:
            return self.decode(target, None)
        return super().forward(source, target)


def _switch(layer: nn.Module, s: Settings) -> None:
    for name in ("attention", "cross_attention"):
        if hasattr(layer, name):
            rotary = s["positions"] == "rotary" and name == "attention"
            plain = (UnscaledAttention, MultiHeadAttention)
            turned = (UnscaledRotaryAttention, RotaryMultiHeadAttention)
            kind = (turned if rotary else plain)[s["scaled"]]
            setattr(layer, name, kind(s["width"], s["heads"]))
    if not s["residual"]:
        order = layer.residuals[0].norm_order
        layer.residuals = nn.ModuleList(
            NoResidual(s["width"], norm=order) for _ in layer.residuals
        )
    if s["norm"] == "none":
        for residual in layer.residuals:
            residual.norm = nn.Identity()
    if not s["feed_forward"]:
        layer.feed_forward, layer.residuals[-1] = None, Skips()


# ---- tasks and training ----------------------------------------------------------

LABORATORY_TASKS = {"copy": list, "reverse": lambda word: word[::-1], "sort": sorted}


def laboratory_words(
    settings: Settings, count: int, generator: torch.Generator
) -> list[list[int]]:
    """Return ``count`` words as ids, drawn with a ``generator`` by the ``settings``."""
    draw = partial(torch.randint, generator=generator)
    ids = (LETTERS, LETTERS + settings["letters"])
    sizes = draw(settings["shortest"], settings["longest"] + 1, (count,)).tolist()
    return [draw(*ids, (size,)).tolist() for size in sizes]


def laboratory_batch(
    settings: Settings, words: list[list[int]]
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b t"], Int[Tensor, "b t"]]:
    """Return sources, targets and labels of ``words`` for the task of ``settings``.

    A source is the word and END; a target is START and the answer, and its labels are
    the answer and END. For a decoder alone a target begins with the source, whose
    positions have no label.
    """
    n, answers = settings["longest"] + 1, map(LABORATORY_TASKS[settings["task"]], words)
    rows = []
    for word, answer in zip(words, answers, strict=True):
        source, target, labels = [*word, END], [START, *answer], [*answer, END]
        if settings["model"] == "decoder":
            target, labels = source + target, [PAD] * len(source) + labels
        rows.append([source, target, labels])
    sizes = [n, *[2 * n if settings["model"] == "decoder" else n] * 2]
    return tuple(
        torch.tensor([row[i] + [PAD] * (size - len(row[i])) for row in rows])
        for i, size in enumerate(sizes)
    )


def _batch(
    model: nn.Module, settings: Settings, words: list[list[int]]
) -> tuple[Tensor, Tensor, Tensor]:
    return to_device(laboratory_batch(settings, words), device_of(model))


def laboratory_rate(settings: Settings, step: int) -> float:
    """Return the rate that ``settings`` give a ``step``, counted from 1.

    With warm-up it is :func:`~annotated.training.noam_rate`; its peak is a setting.
    """
    rate, hold = settings["rate"], settings["hold"]
    if step < hold:
        return rate * step / hold if settings["warmup"] else rate
    return rate * (hold / step) ** 0.5


def laboratory_loss(
    model: LaboratoryTransformer, settings: Settings, words: list[list[int]]
) -> Float[Tensor, ""]:
    """Return the loss of a ``model`` on ``words``, with ``settings``' smoothing."""
    source, target, labels = _batch(model, settings, words)
    size = LETTERS + settings["letters"]
    loss = LabelSmoothing(size, PAD, settings["smoothing"])
    return loss(model(source, target), labels)


@torch.no_grad()
def laboratory_writes(
    model: LaboratoryTransformer, settings: Settings, words: list[list[int]]
) -> list[list[int]]:
    """Return what a ``model`` with its ``settings`` writes for ``words`` of one length.

    It writes symbol by symbol, and never padding or the start.
    """
    source, target, _ = _batch(model, settings, words)
    told = len(words[0]) + 2 if model.alone else 1  # up to START
    written = target[:, :told]
    for _ in range(settings["longest"] + 1):
        logits = model(source, written)[:, -1]
        logits[:, [PAD, START]] = -torch.inf  # never written
        written = torch.cat([written, logits.argmax(-1, keepdim=True)], 1)
    rows = [row[told:].tolist() for row in written]
    return [
        row[: row.index(END)] if END in row else row[: settings["longest"]]
        for row in rows
    ]


class LaboratoryRun(NamedTuple):
    """A model and how its training went."""

    model: LaboratoryTransformer  #: trained
    losses: list[float]  #: of each step
    tests: list[float]  #: share of 64 fresh words written right, every 25 steps
    exact: float  #: share of 1000 fresh words written right at the end


@torch.no_grad()
def laboratory_exact(
    model: LaboratoryTransformer, settings: Settings, words: list[list[int]]
) -> float:
    """Return the share of ``words`` that a ``model`` with ``settings`` writes right.

    Under a causal mask one pass over the right answers tells: a word is written right
    if and only if each symbol is the likeliest after the right ones before it.
    """
    if settings["causal"]:
        source, target, labels = _batch(model, settings, words)
        logits = model(source, target)
        logits[..., [PAD, START]] = -torch.inf
        right = (logits.argmax(-1) == labels) | (labels == PAD)
        return right.all(-1).cpu().double().mean().item()
    written = laboratory_writes(model, settings, words)
    answer = LABORATORY_TASKS[settings["task"]]
    return sum(map(operator.eq, written, map(answer, words))) / len(words)


def train_laboratory(settings: Settings) -> LaboratoryRun:
    """Return a run of training as on the page; ``settings`` hold its seed.

    Every 25 steps it writes 64 fresh words; where 99 % of them are right, and then of
    1000 others, the run ends before its last step.
    """
    draw = torch.Generator().manual_seed(settings["seed"])
    few = laboratory_words(settings, 64, torch.Generator().manual_seed(1_000_001))
    many = laboratory_words(settings, 1000, torch.Generator().manual_seed(1_000_002))
    torch.manual_seed(settings["seed"])
    model = LaboratoryTransformer(settings)
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses, tests = [], []
    for step in range(1, settings["steps"] + 1):
        words = laboratory_words(settings, settings["batch"], draw)
        adam.param_groups[0]["lr"] = laboratory_rate(settings, step)
        loss = laboratory_loss(model, settings, words)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        if step % 25 == 0:
            tests.append(laboratory_exact(model, settings, few))
            if tests[-1] >= 0.99 and laboratory_exact(model, settings, many) >= 0.99:
                break
    return LaboratoryRun(model, losses, tests, laboratory_exact(model, settings, many))
