"""What tests of 16c share: a small trained model, its texts and drafts."""

import pytest

from annotated.chapters.ch16 import drafting
from annotated.data.glassllm import glass_model


@pytest.fixture(scope="module")
def model():
    return glass_model()


@pytest.fixture(scope="module")
def texts(model):
    return drafting.texts(model, 8)


@pytest.fixture(scope="module")
def drafts(model, texts):
    return drafting.drafts(model, texts)
