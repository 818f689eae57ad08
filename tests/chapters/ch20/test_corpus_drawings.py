"""ch20/corpus_drawings.py: shares are of a family's own faults."""

import torch

from annotated.chapters.ch20 import corpus_drawings as ch20
from annotated.probes import NAMES

RECORD = {
    "faults": [
        {"family": "future", "said": {"future": "", "cache": ""}, "seconds": 1},
        {"family": "future", "said": {"future": ""}, "seconds": 1},
        {"family": "loss", "said": {}, "seconds": 1},
        {"family": "loss", "said": {"loss": ""}, "seconds": 1},
    ],
    "sound": [{"name": "b", "said": {}, "seconds": s} for s in (0.5, 1.25, 4.0)],
}


def test_a_family_s_faults_are_counted_by_probe():
    families, shares = ch20.corpus_shares(RECORD)
    assert families == ["future", "loss"]
    wanted = torch.zeros(2, len(NAMES))
    wanted[0, NAMES.index("future")] = 1
    wanted[0, NAMES.index("cache")] = wanted[1, NAMES.index("loss")] = 0.5
    assert shares.equal(wanted)
    assert "100%" in ch20.corpus_picture(RECORD).text


def test_words_count_what_was_found_and_false_alarms():
    words = ch20.corpus_words(RECORD)
    assert "Of 4 faults" in words and "finds 3" in words and "none set off" in words
    assert "1.2 CPU" in words and "slowest 4.0" in words
    alarmed = RECORD | {"sound": [{"name": "a", "said": {"cache": ""}, "seconds": 1}]}
    assert "1 sound models, 1 set off a probe (a)" in ch20.corpus_words(alarmed)
