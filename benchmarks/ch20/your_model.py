"""Page 20c: a GPT-2 of Hugging Face under the probes, as it is and without positions.

Expected: as it is, nothing fails. Called with a mask and without positions, padding in
front moves logits, and nothing else fails.
"""

from typing import Any

from annotated.chapters.ch20.yours import ask_gpt2


def run() -> dict[str, Any]:
    import transformers  # of the benchmarks' environment alone

    reports = ask_gpt2()
    return {
        "transformers": transformers.__version__,
        "reports": [str(report) for report in reports],
        "failed": [[one.name for one in report.failures] for report in reports],
    }


def bands(record: dict[str, Any]) -> None:
    """Check what failed, and that all else was asked."""
    assert record["failed"] == [[], ["padding"]]
    assert "11 passed, 1 not asked" in record["reports"][0].splitlines()[0]
