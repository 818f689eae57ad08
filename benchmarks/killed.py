"""python -m benchmarks.killed RANK STEP WORDS …: annotated.train, shot in the middle.

The process of that RANK kills itself, as ``kill -9`` would, before it begins STEP
(counted from the first batch that it draws, whether trained on or skipped). The words
are those of ``python -m annotated.train``.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from annotated import train


def mortal(batches: Callable[..., Iterator[Any]], step: int) -> Callable:
    """Return what gives the same ``batches``, and kills the process at ``step``."""

    def some(*given: Any) -> Iterator[Any]:
        for number, batch in enumerate(batches(*given), start=1):
            if number == step:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return some


if __name__ == "__main__":
    rank, step = map(int, sys.argv[1:3])
    if int(os.environ["RANK"]) == rank:
        train.copy_batches = mortal(train.copy_batches, step)
    sys.exit(train.main(sys.argv[3:]))
