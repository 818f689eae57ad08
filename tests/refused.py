"""Wrong calls, and how the error begins that names what is wrong with them."""

import pytest


def table(text: str) -> dict[str, str]:
    """Read calls, each with its error on the line below."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return dict(zip(lines[::2], lines[1::2], strict=True))


def assert_refused(call: str, message: str, names: dict) -> None:
    """Evaluate a call with these names; its error is to begin with a message."""
    with pytest.raises((ValueError, TypeError)) as caught:
        eval(call, names)
    assert str(caught.value).startswith(message)
