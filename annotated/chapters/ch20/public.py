"""Page 20b: thirty faults of public reports, each re-created in a few lines and probed.

``public.tsv`` says what was wrong and what it did to people. The re-creations are those
of the corpus, ``faults.py``: they change one thing in a small, sound model.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from annotated import probes
from annotated.chapters.ch20 import faults

TEXT = 5  # tokens of the texts whose chances are added up


@dataclass(frozen=True)
class PublicFault:
    """A fault that a public report tells of; a row of ``public.tsv``."""

    report: str  #: owner/repository#number
    year: int  #: of the report
    fault: str  #: the re-creation's name in the corpus
    wrong: str
    effect: str  #: what it did to people

    @property
    def url(self) -> str:
        """Where the report stands."""
        repository, number = self.report.split("#")
        return f"https://github.com/{repository}/issues/{number}"

    @property
    def family(self) -> str:
        """The probe that must see it."""
        return faults.FAULTS[self.fault].family

    @property
    def code(self) -> str:
        """The lines that re-create it."""
        return faults.FAULTS[self.fault].code


@cache
def public_faults() -> tuple[PublicFault, ...]:
    """Return all of them, the newest years first as the table has them."""
    text = Path(__file__).with_name("public.tsv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(PublicFault(**r | {"year": int(r["year"])}) for r in rows)


def ask(name: str) -> probes.Outcome:
    """Return what the probe of its family says of the fault called ``name``."""
    fault = faults.FAULTS[name]
    with torch.random.fork_rng(devices=[]):
        f, tokens, how = fault.make()
        if fault.family == "scores":
            tokens = tokens[:, :TEXT]
        report = probes.probe(f, tokens, only=(fault.family,), **how)
    return report[fault.family]
