"""Run and record benchmarks: ``python -m benchmarks [NAME …]``, all by default."""

import argparse
import importlib

from benchmarks.record import record

NAMES = (
    "ablations",
    "attention_memory",
    "beginnings",
    "cached_sampling",
    "chunked_cost",
    "copy_depth",
    "copy_parts",
    "copy_task",
    "dates",
    "deep_and_long",
    "distance",
    "duplicate",
    "evaluation_cost",
    "few_keys",
    "first_steps",
    "full_means",
    "hashes_again",
    "heads",
    "inverse_error",
    "laboratory",
    "ladder",
    "ladder_parts",
    "lengths",
    "lsh_cost",
    "lsh_error",
    "one_stream",
    "positions",
    "pronouns",
    "rates",
    "reformer_pairs",
    "reformer_steps",
    "reformer_text",
    "regularisation",
    "reversible_cost",
    "reversible_length",
    "rhyme",
    "segments",
    "several_heads",
    "shakespeare",
    "text",
    "text_counts",
    "text_deeper",
    "text_larger",
    "text_reach",
    "text_rivals",
    "training_step",
    "two_streams",
    "warmup",
    "wider",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names or NAMES
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"NAME must be among {', '.join(NAMES)}; got {', '.join(unknown)}")
    for name in names:
        record(name, importlib.import_module(f"benchmarks.{name}").run)


main()
