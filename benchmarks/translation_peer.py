"""What chapter 09's recipes are compared with: ``nn.Transformer``, trained beside."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from annotated.masks import causal_mask
from annotated.positions import PositionalEncoding
from annotated.recipes.common import one_cycle
from annotated.recipes.translation import Recipe, Translations, translation_batches
from annotated.transformer import TransformerConfig


class Peer(nn.Module):
    """``nn.Transformer`` with embeddings, positions and an output layer around it."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = self.config = config
        self.source_embedding = nn.Embedding(c.source_vocab, c.d_model)
        self.target_embedding = (
            self.source_embedding if c.tied else nn.Embedding(c.target_vocab, c.d_model)
        )
        self.positions = PositionalEncoding(c.d_model, c.max_len, c.dropout)
        self.body = nn.Transformer(
            c.d_model,
            c.heads,
            c.layers,
            c.layers,
            c.d_ff,
            c.dropout,
            batch_first=True,
            norm_first=c.norm == "pre",
        )
        self.output = nn.Linear(c.d_model, c.target_vocab, bias=False)
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table.weight, std=c.d_model**-0.5)
        if c.tied:
            self.output.weight = self.source_embedding.weight

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory and where it may be looked at."""
        real = source != self.config.pad
        x = self.source_embedding(source) * self.config.d_model**0.5
        memory = self.body.encoder(self.positions(x), src_key_padding_mask=~real)
        return memory, real

    def decode(self, target: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        """Return the logits. Padding comes last, so it is hidden from all else."""
        hidden = ~causal_mask(target.shape[1])[0, 0]
        x = self.target_embedding(target) * self.config.d_model**0.5
        out = self.body.decoder(
            self.positions(x),
            memory,
            tgt_mask=hidden,
            memory_key_padding_mask=~real,
            tgt_is_causal=True,
        )
        return self.output(out)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, *self.encode(source))


class Beside:
    """Trains another model while one is trained: both meet the same busy machine.

    It reads the batches of the same seed, at the same rates. Its number of ``steps``
    may be another than the recipe's, so that both take as many CPU seconds.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[nn.Module, Any], Tensor],
        task: Translations,
        recipe: Recipe,
        steps: int,
        seed: int,
        precision: torch.dtype | None = None,
    ):
        self.model, self.loss = model.train(), loss
        self.optimizer, self.schedule = one_cycle(model, recipe.rate, steps)
        self.batches = translation_batches(task, recipe.tokens, steps, seed)
        self.share, self.precision = steps / recipe.steps, precision
        self.done, self.cpu_seconds, self.losses = 0, 0.0, []

    def __call__(self, step: int) -> None:
        """Keep up with ``step`` of the other model."""
        while self.done < round(step * self.share):
            self.done += 1
            batch = next(self.batches)
            began = time.process_time()
            self.optimizer.zero_grad()
            half = {"dtype": self.precision, "enabled": bool(self.precision)}
            with torch.enable_grad(), torch.autocast("cpu", **half):
                loss = self.loss(self.model, batch)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.losses.append(loss.item())
            self.cpu_seconds += time.process_time() - began
