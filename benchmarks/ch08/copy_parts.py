"""Chapter 08: whose work is copying, and where do the leaps of the loss come from?

The page's recipe without the decoder's self-attention, and without the encoder's layer.
Then one run whose loss leaps while the rate is high (no causal mask, as in
``copy_task``), again from twelve steps before the leap at a half and at a quarter of
the rate, on the same batches.
"""

from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR

from annotated.recipes.copy_task import (
    COPY,
    COPY_TRAINING,
    VOCAB,
    SeesAhead,
    copy_batches,
    copy_rate,
    next_symbol_loss,
)
from annotated.training import fit
from annotated.transformer import TransformerConfig
from benchmarks.ch08.ablations import one
from benchmarks.ch08.copy_task import curve
from benchmarks.record import SEEDS

LEAPS = 4  # a seed whose loss leaps
BACK = 12  # steps before the leap
CALM = 110  # a leap is looked for after this step, when the task is learned


def rewound(begin: int, factor: float, until: int) -> list[float]:
    """Return the losses of a run with ``factor`` times the rate from ``begin`` on."""
    torch.manual_seed(LEAPS)
    model = SeesAhead(TransformerConfig(VOCAB, VOCAB, **COPY))
    steps, batch = COPY_TRAINING["steps"], COPY_TRAINING["batch"]
    optimizer = torch.optim.Adam(
        model.parameters(), COPY_TRAINING["rate"], betas=(0.9, 0.98)
    )

    def rate(done: int) -> float:
        return copy_rate(done, steps) * (factor if done >= begin else 1.0)

    batches = list(copy_batches(LEAPS, steps, batch))[:until]
    schedule = LambdaLR(optimizer, rate)
    return curve(fit(model, next_symbol_loss, batches, optimizer, schedule=schedule))


def run() -> dict[str, Any]:
    rows = [
        one(f"no {part}", seed, without=part)
        for part in ("self-attention", "encoder")
        for seed in SEEDS
    ]
    losses = rewound(0, 1.0, until=200)
    highest = max(losses[CALM:])
    leap = losses.index(highest, CALM)
    again = [
        {"factor": f, "losses": rewound(leap - BACK, f, until=leap + 20)[leap - BACK :]}
        for f in (1.0, 0.5, 0.25)
    ]
    return {"rows": rows, "seed": LEAPS, "leap": leap + 1, "back": BACK, "again": again}


def bands(record: dict[str, Any]) -> None:
    """Check this record's bands, and that half the rate keeps calm, too."""
    assert min(row["exact"][0] for row in record["rows"]) >= 990
    whole, *lower = (max(run["losses"]) for run in record["again"])
    assert whole > 0.3 and max(lower) < 0.05
