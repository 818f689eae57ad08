"""Chapter 09: what the cache of keys and values saves an encoder–decoder.

The model of ``training_step`` writes 64 symbols for each of 16 sources of 32, in turn
by :class:`DecoderCache` and by :class:`Rereader`, which reads all that was written
again at each step.

Band: the tokens are identical in float64 and in float32, and with the cache it takes at
most a sixth of the CPU time.
"""

import time
from statistics import median
from typing import Any

import torch

from annotated.search import DecoderCache, Rereader, cached_greedy_decode
from annotated.transformer import Transformer, TransformerConfig

MODEL = {"d_model": 256, "heads": 8, "layers": 3, "d_ff": 1024, "dropout": 0.0}
VOCAB, BATCH, SOURCE, WRITTEN, REPEATS = 8000, 16, 32, 64, 5
READERS = {"cached": DecoderCache, "plain": Rereader}


def run() -> dict[str, Any]:
    torch.manual_seed(0)
    config = TransformerConfig(VOCAB, VOCAB, norm="pre", max_len=128, **MODEL)
    model = Transformer(config).eval()
    with torch.no_grad():  # else an untrained model writes one symbol for ever
        model.target_embedding.weight.mul_(3.0)
    source = torch.randint(3, VOCAB, (BATCH, SOURCE))
    written: dict[str, torch.Tensor] = {}
    seconds: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(REPEATS):
        for name, reader in READERS.items():
            began = time.process_time()
            written[name] = cached_greedy_decode(
                model, source, start=1, max_new_tokens=WRITTEN, reader=reader
            )
            seconds[name].append(time.process_time() - began)
    row = {name: median(times) for name, times in seconds.items()}
    row |= {"times": row["plain"] / row["cached"], "all": seconds}
    row |= {"identical": torch.equal(written["cached"], written["plain"])}
    row |= {"symbols": written["cached"].unique().numel()}
    model.double()
    exact = [
        cached_greedy_decode(model, source, start=1, max_new_tokens=WRITTEN, reader=one)
        for one in READERS.values()
    ]
    row |= {"identical in float64": torch.equal(*exact)}
    print(row, flush=True)
    sizes = {"batch": BATCH, "source": SOURCE, "written": WRITTEN, "vocabulary": VOCAB}
    return {"model": MODEL, **sizes, **row}
