"""benchmarks/memory.py: peaks that are known beforehand."""

import sys

import pytest

from benchmarks.memory import known, peak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_peak_is_what_is_alive_together():
    assert abs(peak(known, megabytes=50) - 50) < 1
    assert abs(peak(known, megabytes=50, freed=80) - 80) < 1


def test_a_process_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match=r"known .* ended with 1"):
        peak(known, megabytes="many")
