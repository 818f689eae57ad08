"""annotated/recipes/gpt2.py: tokens of the first ranks, bits per byte, and streams."""

from math import log

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotated.data.byte_bpe import gpt2_tokenizer
from annotated.data.text import standard_library
from annotated.recipes.gpt2 import (
    GPT2_RECIPE,
    TokenText,
    bits_per_byte,
    short_tokenizer,
    small_gpt2,
    stream_by_depth,
    text_nats,
    token_text,
)


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


@pytest.mark.slow
def test_the_text_is_the_librarys():
    tokenizer = short_tokenizer()
    text, whole = token_text(tokenizer), standard_library("validation")
    assert tokenizer.decode(text.validation.tolist()) == whole
    assert text.validation_bytes == len(whole.encode())
    assert (
        tokenizer.decode(text.train[:50].tolist())
        == (
            standard_library("train")[: len(tokenizer.decode(text.train[:50].tolist()))]
        )
    )


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


def test_a_seed_is_a_stream():
    first, same, other = (stream_by_depth("pre", 2, True, 32, s) for s in (0, 0, 1))
    assert torch.equal(first, same) and not torch.equal(first, other)
