"""ch20/corpus_drawings.py: shares are of a family's own faults."""

import torch

from annotated.chapters.ch20 import corpus_drawings as ch20
from annotated.probes import NAMES


def fault(family, failed="", not_asked=""):
    """A row: all probes that aren't named have passed."""
    states = dict.fromkeys(NAMES, "passed")
    states |= dict.fromkeys(failed.split(), "failed")
    states |= dict.fromkeys(not_asked.split(), "not asked")
    return {"family": family, "states": states, "said": dict.fromkeys(failed.split())}


RECORD = {
    "faults": [
        fault("future", "future cache"),
        fault("future", "future", not_asked="loss"),
        fault("loss", not_asked="cache order"),
        fault("loss", "loss order", not_asked="cache"),
    ],
    "sound": [{"name": "b", "said": {}, "seconds": s} for s in (0.5, 1.25, 4.0)],
}


def test_a_family_s_faults_are_counted_by_probe():
    families, shares = ch20.corpus_shares(RECORD)
    assert families == ["future", "loss"]
    wanted = torch.zeros(2, len(NAMES))
    wanted[0, NAMES.index("future")] = 1
    wanted[0, NAMES.index("cache")] = wanted[1, NAMES.index("loss")] = 0.5
    wanted[1, NAMES.index("order")] = 1  # of the one that was asked
    wanted[1, NAMES.index("cache")] = torch.nan
    assert torch.equal(shares.nan_to_num(-1), wanted.nan_to_num(-1))
    assert ch20.failing(RECORD, "future", "cache") == "1 of 2"
    assert ch20.failing(RECORD, "loss", "order") == "1 of 1"
    text = ch20.corpus_picture(RECORD).text
    assert "100%" in text and ">–<" in text


def test_words_count_what_was_found_and_false_alarms():
    words = ch20.corpus_words(RECORD)
    assert "Of 4 faults" in words and "finds 3" in words and "none set off" in words
    assert "1.2 CPU" in words and "slowest 4.0" in words
    alarmed = RECORD | {"sound": [{"name": "a", "said": {"cache": ""}, "seconds": 1}]}
    assert "1 sound models, 1 set off a probe (a)" in ch20.corpus_words(alarmed)
