"""ch17/patterns.py: models under masks, copying, glyphs, and a grid."""

import math

import pytest
import torch

from annotated.chapters.ch17 import patterns
from annotated.chapters.ch17.patterns import (
    COPY,
    COPY_SIZES,
    SIDE,
    bits_per_pixel,
    column_pattern,
    copied,
    copy_batches,
    copy_masks,
    copy_patterns,
    glyphs,
    grid_pattern,
    heard,
    image_patterns,
    masked_gpt,
    masks_of,
    reachable,
    stride_patterns,
    train_copy,
    train_grid,
    train_image,
)
from annotated.gpt import GPT, GPTConfig
from annotated.recipes.text import Corpus
from annotated.sparse import SparseSelfAttention, local_pattern, reach, strided_patterns


def test_a_masked_model_is_the_one_with_blocks():
    heads = strided_patterns(5)
    model = masked_gpt(masks_of([heads, heads], 23), 7, seed=3, d_model=12, heads=2)
    torch.manual_seed(3)
    config = GPTConfig(7, d_model=12, heads=2, layers=2, max_len=23)
    blocks = GPT(
        config,
        lambda: SparseSelfAttention(12, 2, pattern=heads, block=4, causal=True),
    )
    tokens = torch.randint(7, (2, 19))
    for one in (model, blocks):
        one.double()
    torch.testing.assert_close(model(tokens), blocks(tokens), atol=1e-11, rtol=0)


def test_layers_have_masks_of_their_own_and_a_seed():
    near, every = strided_patterns(4)
    masks = masks_of([(near, near), (every, every)], 9)
    one, two = (masked_gpt(masks, 5, seed, d_model=8, heads=2) for seed in (0, 1))
    layers = [layer.attention.visible for layer in one.blocks.layers]
    assert all(map(torch.equal, layers, masks)) and masks[0].shape == (1, 2, 9, 9)
    assert not torch.equal(one.embedding.weight, two.embedding.weight)


def test_a_mask_of_the_caller_hides_more():
    module = patterns.MaskedSelfAttention(4, 1, visible=local_pattern(3).mask(6))
    x, key = torch.randn(1, 6, 4), torch.ones(1, 1, 1, 6, dtype=torch.bool)
    key[..., 3] = False
    changed = x.clone()
    changed[:, 3] += 1.0
    same = module(x, mask=key)[:, 4:] - module(changed, mask=key)[:, 4:]
    assert same.abs().max() == 0


@pytest.mark.parametrize("name", copy_patterns())
@pytest.mark.parametrize("layers", [1, 2])
def test_a_model_hears_what_the_product_of_its_masks_says(name, layers):
    masks = copy_masks(name, layers)
    model = masked_gpt(masks, COPY["symbols"], 0, **COPY_SIZES)
    assert torch.equal(heard(model), reach(masks, layers)[-1])
    assert model.embedding.weight.dtype == torch.float32


def test_distances_are_heard_as_the_chapter_says():
    def share(name, layers, distance):
        return reachable(reach(copy_masks(name, layers), layers)[-1], distance)

    assert [share("window", n, 12) for n in (1, 2)] == [0, 1]
    assert [share("window and first", 2, d) for d in (16, 21)] == pytest.approx(
        [1 / 32, 1 / 27]  # only the first symbol is heard from there: no relay
    )
    assert [share("dilated", 2, d) for d in (5, 12, 16, 21)] == [0, 1, 1, 0]
    assert [share("strided, by layer", n, 16) for n in (1, 2)] == [0, 1]
    assert [share("strided, by head", n, 21) for n in (1, 2)] == [0, 1]
    assert 0 < share("fixed, by head", 1, 21) < 0.2 < share("fixed, by head", 2, 21)


def test_targets_stand_some_positions_back():
    tokens, targets = next(copy_batches(5, 1, seed=0))
    assert torch.equal(targets[:, 5:], tokens[:, :-5])
    assert (targets[:, :5] == -100).all()
    assert tokens.shape == (COPY["batch"], COPY["length"])
    assert tokens.max() == COPY["symbols"] - 1


def test_what_is_heard_is_learned_in_some_steps():
    masks = copy_masks("strided, by head", 1)
    model, history = train_copy(masks, 16, seed=1)
    assert len(history) == patterns.COPY_STEPS[1]
    assert copied(model, 16) > 0.9
    assert copied(model, 21) < 0.2


def test_glyphs_are_apart_and_look_like_letters():
    found = glyphs()
    keys = [{image.numpy().tobytes() for image in part} for part in found[:2]]
    assert not keys[0] & keys[1]
    assert [*map(len, keys)] == [*map(len, found.names)]
    held = set(patterns.HELD_OUT)
    assert set(found.names[1]) == held and not set(found.names[0]) & held
    for part, names in zip(found[:2], found.names, strict=True):
        assert part.shape[1:] == (SIDE, SIDE)
        ink = part.double().mean(dim=(1, 2))
        assert 0.02 < ink.min() < ink.max() < 0.4, names[int(ink.argmax())]
    letter = found.train[found.names[0].index("O")]
    assert not letter[7, 8] and letter.any(dim=0).sum() > 6  # a hole, in the middle
    tall = found.train[found.names[0].index("L")].nonzero()[:, 0]
    deep = found.train[found.names[0].index("p")].nonzero()[:, 0]
    assert deep.max() > tall.max() == 11  # the line that letters stand on


def test_a_column_is_that_of_the_next_pixel():
    mask = column_pattern(4).mask(12)[0, 0]
    assert mask[10].nonzero()[:, 0].tolist() == [3, 7, 10]
    near, column = stride_patterns(5)
    assert near.mask(12).sum(-1).max() == patterns.IMAGES["window"]
    assert column.mask(12)[0, 0, 10].nonzero()[:, 0].tolist() == [1, 6, 10]
    off = image_patterns()["column of the pixel read"][1].mask(40)[0, 0, 39]
    assert off.nonzero()[:, 0].tolist() == [7, 23, 39]


def test_bits_of_a_coin_are_one():
    class Coin(torch.nn.Module):
        def forward(self, tokens):
            return torch.zeros(*tokens.shape, 2)

    assert bits_per_pixel(Coin(), glyphs().held_out[:3]) == pytest.approx(1.0)


def test_glyphs_are_learned_from():
    model, history = train_image(image_patterns()["row and column"], steps=20)
    assert len(history) == 20
    empty = -math.log2(1 - glyphs().held_out.double().mean())
    assert empty < bits_per_pixel(model, glyphs().held_out[:20]) < 1.0


def test_a_point_of_the_grid_is_a_union():
    mask = grid_pattern(2, 4, True).mask(12)[0, 0]
    assert mask[11].nonzero()[:, 0].tolist() == [0, 3, 7, 10, 11]
    mask = grid_pattern(3, None, False).mask(12)[0, 0]
    assert mask[11].nonzero()[:, 0].tolist() == [9, 10, 11]


def test_a_text_is_read_under_a_pattern():
    ids = torch.arange(400) % 5
    bits = train_grid(grid_pattern(2, None, False), Corpus(ids, ids, None, 5), steps=30)
    assert bits < 1.0  # of log2(5) = 2.3
