"""annotated/recipes/gpt2.py: tokens of the first ranks, bits per byte, and streams."""

import dataclasses
from math import log

import pooch
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotated import gpt2
from annotated.chapters.ch16.drawings import TINY, random_state
from annotated.data import datasets
from annotated.data.byte_bpe import gpt2_tokenizer
from annotated.data.datasets import DataError, File
from annotated.recipes.gpt2 import (
    GPT2_RECIPE,
    TokenText,
    bits_per_byte,
    official_gpt2,
    short_tokenizer,
    small_gpt2,
    stream_by_depth,
    text_nats,
)
from annotated.weights import load_gpt2
from tools.safetensors import safetensors


def test_the_first_ranks_are_a_tokenizer():
    tokenizer = short_tokenizer(300)
    assert tokenizer.vocab_size == 300 and not tokenizer.special
    assert tokenizer.ranks.items() < gpt2_tokenizer().ranks.items()
    text = "for i in range(中): 👍"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert short_tokenizer(256).encode("ab") == [64, 65]


@pytest.mark.parametrize("size", [255, 60_000])
def test_a_tokenizer_has_all_bytes_and_no_more_than_there_are(size):
    with pytest.raises(ValueError, match=f"size must be.*{size}"):
        short_tokenizer(size)


def test_nats_are_those_of_every_token_but_the_first():
    table, ids = nn.Embedding(9, 9), torch.randint(9, (50,))
    wanted = F.cross_entropy(table(ids[:-1]), ids[1:], reduction="sum").item()
    assert text_nats(table, ids, 7) == pytest.approx(wanted, rel=1e-5)
    text = TokenText(ids, ids, 120)
    assert bits_per_byte(table, text, 7) == pytest.approx(wanted / log(2) / 120, 1e-5)


def test_the_page_trains_what_its_recipe_says():
    model = small_gpt2(1024)
    c = model.config
    assert (c.d_model, c.layers, c.activation) == (64, 3, "gelu_tanh")
    assert c.max_len == GPT2_RECIPE.model["max_len"] and c.tied
    # 0.02 at a width of 768; six sublayers write to the stream
    wide = 0.02 * (768 / 64) ** 0.5
    assert model.embedding.weight.std().item() == pytest.approx(wide, rel=0.05)
    writing = model.blocks.layers[0].feed_forward.outer.weight
    assert writing.std().item() == pytest.approx(wide / 6**0.5, rel=0.05)
    again, other = small_gpt2(1024), small_gpt2(1024, seed=1)
    assert torch.equal(again.embedding.weight, model.embedding.weight)
    assert not torch.equal(other.embedding.weight, model.embedding.weight)


def test_streams_grow_where_nothing_normalises_the_sum():
    plain, scaled = (stream_by_depth("pre", 32, s, d_model=64) for s in (False, True))
    assert len(plain) == 33 and plain[0] == scaled[0]
    assert plain[32] / plain[2] == pytest.approx(4, rel=0.25)  # √(32 / 2)
    assert scaled[-1] < 0.5 and scaled[-1] * 6 < plain[-1]
    short = stream_by_depth("pre", 4, True, d_model=64)
    assert short[-1] == pytest.approx(scaled[-1].item(), rel=0.2)
    for s in (True, False):
        post = stream_by_depth("post", 4, s, d_model=64)
        assert torch.allclose(post[1:], torch.ones(4), atol=0.02)


# ---- official weights --------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache in which a tiny file stands for OpenAI's."""
    monkeypatch.setenv("ANNOTATED_DATA", str(tmp_path))
    state = {name: x.float() for name, x in random_state(TINY).items()}
    (tmp_path / "gpt2").mkdir()
    path = tmp_path / "gpt2" / "model.safetensors"
    path.write_bytes(safetensors(state))
    nowhere = ("https://nowhere.invalid/model.safetensors",)
    file = File(
        path.name, nowhere, path.stat().st_size, f"sha256:{pooch.file_hash(path)}"
    )
    row = dataclasses.replace(datasets.REGISTRY["gpt2"], files=(file,))
    monkeypatch.setitem(datasets.REGISTRY, "gpt2", row)
    monkeypatch.setitem(gpt2.SIZES, "small", TINY)
    return path, state


def test_official_weights_are_read_where_they_are(cache):
    _, state = cache
    tokens = torch.arange(9)[None]
    found, wanted = official_gpt2(), load_gpt2(state, TINY)
    assert not found.training and torch.equal(found(tokens), wanted(tokens))


def test_without_the_file_there_is_no_model_and_no_download(cache):
    path, _ = cache
    path.unlink()
    assert official_gpt2() is None
    with pytest.raises(DataError, match=r"gpt2: cannot download model\.safetensors"):
        official_gpt2(download=True)


def test_a_damaged_file_is_refused(cache):
    path, _ = cache
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="cannot download"):
        official_gpt2()
