"""Each test its own settings of plots, and no figure of another."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def figures():
    with plt.rc_context():
        yield
    plt.close("all")
