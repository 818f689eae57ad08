"""annotated/adaptive.py: against PyTorch's adaptive softmax, and word by word."""

import pytest
import torch
from torch import nn

from annotated.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from tests.compare import assert_close
from tests.refused import assert_refused, table

# b 2, t 3, d 12; 23 words in clusters of 5, 6 and 12, whose vectors are 12, 6, 3 wide
B, T, D, V = 2, 3, 12, 23
CUTOFFS = (5, 11)


def every_word():
    return torch.randperm(V)[None]


# ---- AdaptiveEmbedding -------------------------------------------------------


def test_each_word_has_the_vector_of_its_cluster():
    module = AdaptiveEmbedding(V, D, CUTOFFS, div_value=2)
    assert [tuple(table.shape) for table in module.tables] == [(5, 12), (6, 6), (12, 3)]
    words = every_word()
    for word, found in zip(words[0].tolist(), module(words)[0], strict=True):
        cluster = (word >= 5) + (word >= 11)
        row = module.tables[cluster][word - (0, *CUTOFFS)[cluster]]
        if cluster:
            row = module.maps[cluster].weight @ row
        assert_close(found, row * D**0.5)


def test_without_cutoffs_it_is_an_ordinary_embedding():
    module = AdaptiveEmbedding(V, D)
    tokens = torch.randint(0, V, (B, T))
    assert [tuple(p.shape) for p in module.parameters()] == [(V, D)]
    assert_close(
        module(tokens), nn.functional.embedding(tokens, module.tables[0]) * D**0.5
    )


def test_a_first_cluster_of_another_width_is_mapped_too():
    module = AdaptiveEmbedding(V, D, CUTOFFS, div_value=2, d_embed=8)
    assert [table.shape[1] for table in module.tables] == [8, 4, 2]
    found = module(torch.tensor([[3]]))[0, 0]
    assert_close(found, module.maps[0].weight @ module.tables[0][3] * D**0.5)


def test_vectors_of_all_clusters_begin_with_deviation_one():
    module = AdaptiveEmbedding(3000, 64, (1000, 2000), div_value=2)
    x = module(torch.arange(3000)[None])[0]
    for part in x.split(1000):
        assert part.std().item() == pytest.approx(1, abs=0.1)


def test_gradients_reach_the_rows_that_were_read():
    module = AdaptiveEmbedding(V, D, CUTOFFS, div_value=2)
    module(torch.tensor([[3, 7, 20]])).sum().backward()
    for vectors, row in zip(module.tables, (3, 2, 9), strict=True):
        assert vectors.grad.abs().sum(1).nonzero().flatten().tolist() == [row]


def test_an_embedding_keeps_its_dtype():
    module = AdaptiveEmbedding(V, D, CUTOFFS, div_value=2).double()
    assert module(every_word()).dtype == torch.float64
    with torch.autocast("cpu", torch.bfloat16):
        assert module.float()(every_word()).isfinite().all()


# ---- AdaptiveSoftmax ---------------------------------------------------------


@pytest.fixture
def pair():
    """Ours and PyTorch's, with the same weights."""
    ours = AdaptiveSoftmax(V, D, CUTOFFS, div_value=2)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(D, V, list(CUTOFFS), 2, head_bias=False)
    head = torch.cat([ours.tables[0], ours.clusters]).detach()
    theirs.head.weight.data.copy_(head)
    for i, (narrow, words) in enumerate(theirs.tail, start=1):
        narrow.weight.data.copy_(ours.maps[i].weight)
        words.weight.data.copy_(ours.tables[i])
    return ours, theirs


def test_log_probabilities_are_those_of_pytorch(pair):
    ours, theirs = pair
    x = torch.randn(B, T, D)
    found = ours(x)
    assert found.shape == (B, T, V)
    assert_close(found, theirs.log_prob(x.flatten(0, 1)).view(B, T, V))
    assert_close(found.exp().sum(-1), torch.ones(B, T))
    assert_close(ours(x[0, 0]), found[0, 0])


def test_losses_are_those_of_pytorch_and_gradients_too(pair):
    ours, theirs = pair
    x = torch.randn(1, V, D, requires_grad=True)
    words = every_word()
    losses = ours.loss(x, words)
    expected = theirs(x[0], words[0])
    assert_close(losses[0], -expected.output)
    assert_close(losses, -ours(x).gather(-1, words[..., None])[..., 0])
    (found,) = torch.autograd.grad(losses.mean(), x, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected.loss, x, retain_graph=True)
    assert_close(found, wanted)
    losses.mean().backward()
    expected.loss.backward()
    assert_close(
        torch.cat([ours.tables[0].grad, ours.clusters.grad]), theirs.head.weight.grad
    )
    for i, (narrow, rows) in enumerate(theirs.tail, start=1):
        assert_close(ours.maps[i].weight.grad, narrow.weight.grad)
        assert_close(ours.tables[i].grad, rows.weight.grad)


def test_a_first_cluster_of_another_width_is_mapped_down():
    module = AdaptiveSoftmax(V, D, CUTOFFS, div_value=2, d_embed=8)
    x = torch.randn(B, T, D)
    head = torch.cat([module.tables[0], module.clusters]) @ module.maps[0].weight
    assert_close(module(x)[..., :5], (x @ head.T).log_softmax(-1)[..., :5])


def test_without_cutoffs_it_is_an_ordinary_softmax():
    module = AdaptiveSoftmax(V, D)
    x, target = torch.randn(B, T, D), torch.randint(0, V, (B, T))
    logits = x @ module.tables[0].T
    assert_close(module(x), logits.log_softmax(-1))
    wanted = nn.functional.cross_entropy(logits.mT, target, reduction="none")
    assert_close(module.loss(x, target), wanted)


def test_logits_of_all_clusters_begin_with_deviation_one():
    module = AdaptiveSoftmax(3000, 64, (1000, 2000), div_value=2)
    x = torch.randn(200, 64)
    for narrow, vectors in zip(module.maps, module.tables, strict=True):
        logits = narrow(x) @ vectors.T
        assert logits.std().item() == pytest.approx(1, abs=0.1)
    assert (x @ module.clusters.T).std().item() == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(
    ("given", "computed"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_log_probabilities_are_at_least_in_single_precision(given, computed):
    module, words = AdaptiveSoftmax(V, D, CUTOFFS, div_value=2).to(given), every_word()
    x = torch.randn(1, V, D, dtype=given)
    logs, losses = module(x), module.loss(x, words)
    assert logs.dtype == losses.dtype == computed
    assert_close(logs.exp().sum(-1), torch.ones(1, V, dtype=computed), single=1e-6)
    losses.mean().backward()
    for p in module.parameters():
        assert p.grad.dtype == given and p.grad.isfinite().all()


REFUSED = """
    AdaptiveEmbedding(23, 12)(torch.tensor([[23]]))
        tokens must hold integers from 0 to 22, got 23
    AdaptiveSoftmax(23, 12).loss(torch.randn(1, 1, 12), torch.tensor([[-1]]))
        target must hold integers from 0 to 22, got -1
    AdaptiveSoftmax(23, 12)(torch.randn(2, 9))
        x must have the shape (*batch, d) with d=12 as in self.d_model, got (2, 9)
    AdaptiveSoftmax(23, 4).loss(torch.randn(2, 3, 4), torch.zeros(2, 1).long())
        target must have the shape (b, t) with t=3 as in x, got (2, 1)
    AdaptiveSoftmax(23, 12, (5, 23))
        cutoffs must ascend from 1 to below vocab_size=23, got (5, 23)
    AdaptiveEmbedding(23, 12, (5, 11))
        d_embed must be an integer ≥ 16, got 12
"""


@pytest.mark.parametrize(("call", "message"), table(REFUSED).items())
def test_errors_name_argument_value_and_expectation(call, message):
    assert_refused(call, message, globals())
