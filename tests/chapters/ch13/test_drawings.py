"""Chapter 13's checks name what a reader broke; what it measures is what is there."""

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch13 import drawings as ch13
from annotated.chapters.ch13.lsh import meetings
from annotated.reformer import LSHSelfAttention, lsh_attention, lsh_buckets

SOCKS = torch.tensor([[-4, -7], [-8, 1], [8, -1], [4, 7], [-7, -4.0]])


def test_buckets_by_angles_are_those_of_the_hash():
    for turn, buckets in ((0, 4), (45, 4), (35, 2)):
        found = ch13.hashed(SOCKS, turn, buckets, 4)
        assert found.shape == (4, 5)
        for row, other in zip(found, ch13.TURNS, strict=True):
            turned = SOCKS @ ch13.turn_by(turn + other)[:, : buckets // 2]
            both = torch.cat([turned, -turned], dim=-1)
            assert row.equal(both.argmax(dim=-1)), (turn, buckets, other)


def test_pairs_have_their_angle():
    one, other = ch13.at_angle(40, 9, 8, torch.Generator().manual_seed(0))
    for vectors in (one, other):
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(9))
    cosine = torch.tensor(40.0).deg2rad().cos()
    torch.testing.assert_close((one * other).sum(-1), cosine.expand(9))


@pytest.mark.parametrize(("angle", "buckets"), [(20, 2), (70, 4), (110, 8)])
def test_a_probability_is_what_a_sample_gives(angle, buckets):
    generator = torch.Generator().manual_seed(0)
    pairs = ch13.at_angle(angle, 100, 8, generator)
    ids = lsh_buckets(pairs.flatten(0, 1), buckets, 400, generator).view(400, 2, 100)
    sampled = (ids[:, 0] == ids[:, 1]).double().mean().item()
    assert ch13.collision_probability(angle, buckets) == pytest.approx(
        sampled, abs=0.03
    )


def attend(x, values, buckets, chunk, once=True, causal=True):
    return lsh_attention(x, values, buckets, chunk, causal, repeats=not once)


def test_joined_rounds_are_compared_with_the_modules(capsys):
    ch13.check_rounds(attend)
    assert capsys.readouterr().out.count("✓") == 4
    for wrong in (
        lambda *given, once=True: attend(*given, once=False),
        lambda *given, once=True: attend(*given, once=True),
        lambda *given, once=True: attend(*given, once, causal=False),
        lambda x, *given, once=True: attend(x.detach(), *given, once) + 0 * x,
    ):
        with pytest.raises(AssertionError, match="attend = the module"):
            ch13.check_rounds(wrong)


def one_round(x, values, positions_or_bucket, c, by_place=False):
    order = positions_or_bucket.argsort(stable=True)
    at = order.argsort() if by_place else torch.arange(len(x))
    met = meetings(positions_or_bucket[None], c)[0] & (at <= at[:, None])
    scores = (x @ F.normalize(x, dim=-1).T).masked_fill(~met, -torch.inf)
    own = torch.eye(len(x), dtype=torch.bool)
    return scores.masked_fill(own, -1e5).softmax(-1) @ values, None


def test_a_round_that_sees_the_future_is_told_so(capsys):
    ch13.check_future(one_round)
    assert "✓" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="outputs see a later value"):
        ch13.check_future(lambda *given: one_round(*given, by_place=True))


def test_what_is_found_is_counted_among_the_heaviest():
    weights = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    met = torch.tensor([[True, False, True], [True, True, True]])
    assert ch13._found(met, weights, 1) == 0.5  # the second row's 0.5
    assert ch13._found(met, weights, 2) == 0.75  # all but 0.6


def test_kept_megabytes_are_counted_once_and_without_inputs():
    x = torch.randn(500, 500, requires_grad=True)  # 1 MB
    assert ch13.kept(torch.exp, x) == 0  # it keeps its output
    assert ch13.kept(lambda x: x.exp().sin() + 1, x) == 1
    assert ch13.kept(lambda x: (x * 2).square() * x, x) == pytest.approx(2, abs=0.01)


def test_the_models_of_a_kind_are_taken_in_the_order_of_the_columns():
    right = {"LSH-1": 0.1, "LSH-8": 0.8, "full": 1.0, "LSH-4": 0.4, "LSH-2": 0.2}
    runs = [{"trained": kind, "right": right} for kind in ("full", "LSH-1", "full")]
    found = ch13.accuracy(runs, "full")
    assert found.tolist() == [[1.0, 0.8, 0.4, 0.2, 0.1]] * 2


def test_a_gradient_that_is_not_replayed_is_refused(capsys):
    layer = LSHSelfAttention(16, 2, 8, 1, causal=True)
    x = torch.randn(1, 64, 16, requires_grad=True)

    def gradient(replayed):
        torch.manual_seed(1 if replayed else 2)
        return torch.autograd.grad(layer(x).square().sum(), x)[0]

    ch13.check_replay(gradient, layer, x)
    assert "hashed anew" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="replayed"):
        ch13.check_replay(lambda replayed: gradient(not replayed), layer, x)
