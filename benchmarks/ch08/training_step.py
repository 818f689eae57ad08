"""Chapter 08: a training step of ours beside one of ``nn.Transformer``.

Forward, loss, backward and Adam, in CPU seconds, in turn; the median of the rounds'
ratios is told. Three models of the same sizes: ours (pre-norm), and PyTorch's with
pre-norm and with post-norm. Ours and PyTorch's pre-norm begin with the same weights,
and must give the same loss. Sources are padded, both kinds of mask are passed, and
there is no dropout.
"""

import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.positions import PositionalEncoding
from annotated.transformer import Transformer, TransformerConfig

CONFIG = {"d_model": 256, "heads": 8, "layers": 3, "d_ff": 1024, "vocab": 8000}
BATCH, LENGTH, ROUNDS = 32, 64, 11


class Peer(nn.Module):
    """``nn.Transformer`` with embeddings, positions and an output layer."""

    def __init__(self, norm_first: bool):
        super().__init__()
        c = CONFIG
        self.source_embedding = nn.Embedding(c["vocab"], c["d_model"])
        self.target_embedding = nn.Embedding(c["vocab"], c["d_model"])
        self.positions = PositionalEncoding(c["d_model"], LENGTH)
        self.body = nn.Transformer(
            c["d_model"],
            c["heads"],
            c["layers"],
            c["layers"],
            c["d_ff"],
            dropout=0.0,
            batch_first=True,
            norm_first=norm_first,
        )
        self.output = nn.Linear(c["d_model"], c["vocab"], bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        scale = CONFIG["d_model"] ** 0.5
        hidden = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        padded = source == 0
        out = self.body(
            self.positions(self.source_embedding(source) * scale),
            self.positions(self.target_embedding(target) * scale),
            tgt_mask=hidden.isinf(),
            src_key_padding_mask=padded,
            tgt_key_padding_mask=target == 0,
            memory_key_padding_mask=padded,
            tgt_is_causal=False,  # the padding is masked as well
        )
        return self.output(out)


def ours() -> Transformer:
    """Return our model of these sizes."""
    sizes = {k: v for k, v in CONFIG.items() if k != "vocab"}
    vocab = CONFIG["vocab"]
    return Transformer(
        TransformerConfig(
            vocab, vocab, dropout=0.0, norm="pre", max_len=LENGTH, **sizes
        )
    )


@torch.no_grad()
def copy_weights(source: Transformer, peer: Peer) -> None:
    """Put our weights into PyTorch's model."""
    for name in ("source_embedding", "target_embedding", "output"):
        getattr(peer, name).weight.copy_(getattr(source, name).weight)

    def attention(one, other):
        maps = (one.query_map, one.key_map, one.value_map)
        other.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
        other.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
        other.out_proj.load_state_dict(one.output_map.state_dict())

    for name in ("encoder", "decoder"):
        stack, theirs = getattr(source, name), getattr(peer.body, name)
        for one, other in zip(stack.layers, theirs.layers, strict=True):
            attention(one.attention, other.self_attn)
            if name == "decoder":
                attention(one.cross_attention, other.multihead_attn)
            other.linear1.load_state_dict(one.feed_forward.inner.state_dict())
            other.linear2.load_state_dict(one.feed_forward.outer.state_dict())
            for i, residual in enumerate(one.residuals, start=1):
                getattr(other, f"norm{i}").load_state_dict(residual.norm.state_dict())
        theirs.norm.load_state_dict(stack.norm.state_dict())


def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw a batch: sources of lengths from half to whole, targets likewise."""
    sequences = []
    for size in (LENGTH, LENGTH + 1):
        tokens = torch.randint(1, CONFIG["vocab"], (BATCH, size), generator=generator)
        lengths = torch.randint(LENGTH // 2, size + 1, (BATCH, 1), generator=generator)
        lengths[0] = size
        sequences.append(tokens.masked_fill(torch.arange(size) >= lengths, 0))
    return sequences[0], sequences[1]


def lost(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the loss a real token."""
    source, target = batch
    logits = model(source, target[:, :-1])
    return F.cross_entropy(
        logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0
    )


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[Tensor, Tensor]
) -> float:
    """Take one step and return its CPU seconds."""
    began = time.process_time()
    optimizer.zero_grad()
    lost(model, batch).backward()
    optimizer.step()
    return time.process_time() - began


def run() -> dict[str, Any]:
    torch.manual_seed(0)
    models = {"ours": ours(), "pre": Peer(True), "post": Peer(False)}
    copy_weights(models["ours"], models["pre"])
    generator = torch.Generator().manual_seed(0)
    batch = draw(generator)
    with torch.no_grad():
        losses = {name: lost(model, batch).item() for name, model in models.items()}
    gap = abs(losses["ours"] - losses["pre"])
    if gap > 1e-5:
        raise AssertionError(f"equal weights, but the losses differ by {gap:.1e}")
    optimizers = {
        name: torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
        for name, model in models.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    names = list(models)
    for turn in range(-1, ROUNDS):
        batch = draw(generator)
        shift = turn % 3
        for name in names[shift:] + names[:shift]:  # nobody is always the first
            taken = step(models[name], optimizers[name], batch)
            if turn >= 0:
                seconds[name].append(taken)
    ratios = {}
    for name in ("pre", "post"):
        pairs = zip(seconds[name], seconds["ours"], strict=True)
        found = sorted(theirs / own for theirs, own in pairs)
        quarter = len(found) // 4
        ratios[name] = {
            "ratio": statistics.median(found),
            "quartiles": [found[quarter], found[-1 - quarter]],
        }
    result = {
        "config": CONFIG | {"batch": BATCH, "length": LENGTH},
        "rounds": ROUNDS,
        "parameters": {
            name: sum(p.numel() for p in model.parameters())
            for name, model in models.items()
        },
        "loss_difference": gap,
        "cpu_seconds": {name: statistics.median(s) for name, s in seconds.items()},
        "ratios": ratios,
    }
    print(result)
    return result


def bands(record: dict[str, Any]) -> None:
    """Check this record's band, and that the losses are the same."""
    assert record["ratios"]["pre"]["ratio"] >= 0.95
    assert record["loss_difference"] < 1e-6
