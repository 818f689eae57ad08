"""Page 12b, adaptive softmax: its table and its proof."""

import torch
from torch import nn
from torch.nn import functional as F

from annotated.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from annotated.page.frames import Html
from annotated.page.notebook import check_close, show_table


def millions(module: nn.Module) -> float:
    """Return how many million parameters a module has."""
    return sum(p.numel() for p in module.parameters()) / 1e6


def sizes_table(plain: AdaptiveEmbedding, adaptive: AdaptiveEmbedding) -> Html:
    """Show the tables of an adaptive embedding, beside those of a ``plain`` one."""
    assert 274 < millions(plain) < 274.3 and 37 < millions(adaptive) < 37.6
    bounds = zip(adaptive.bounds, adaptive.bounds[1:], strict=False)
    return show_table(
        ("words", "width", "numbers in the table, millions"),
        [
            (f"{start:,} to {end - 1:,}", width, f"{table.numel() / 1e6:.1f}")
            for (start, end), width, table in zip(
                bounds, adaptive.widths, adaptive.tables, strict=True
            )
        ],
        caption=f"With the maps between widths {millions(adaptive):.1f} million; an "
        f"ordinary table has {millions(plain):.1f} million.",
    )


def check_softmax() -> None:
    """Prove that losses are PyTorch's, and those of one whole distribution."""
    sizes = {"cutoffs": [6, 14], "div_value": 2}
    ours = AdaptiveSoftmax(30, 16, **sizes).double()
    theirs = nn.AdaptiveLogSoftmaxWithLoss(16, 30, head_bias=False, **sizes).double()
    with torch.no_grad():
        theirs.head.weight.copy_(torch.cat([ours.tables[0], ours.clusters]))
        for i, (down, up) in enumerate(theirs.tail, start=1):
            down.weight.copy_(ours.maps[i].weight)
            up.weight.copy_(ours.tables[i])
    x = torch.randn(2, 9, 16, dtype=torch.float64, requires_grad=True)
    target = torch.randint(30, (2, 9))
    loss = ours.loss(x, target)
    wanted = -theirs(x.flatten(0, 1), target.flatten()).output.view(2, 9)
    pairs = [[y, *torch.autograd.grad(y.sum(), x)] for y in (loss, wanted)]
    claim = "equals nn.AdaptiveLogSoftmaxWithLoss(head_bias=False), loss and gradient"
    check_close(claim, *pairs, 1e-9)
    every = ours(x)
    total = every.exp().sum(dim=-1)
    check_close("all probabilities add up to 1", total, torch.ones(2, 9), 1e-9)
    entry = F.nll_loss(every.mT, target, reduction="none")
    check_close("the loss is the entry of the whole distribution", loss, entry, 1e-9)
