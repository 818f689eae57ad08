"""annotated/segments.py: what follows what, and what is handed on."""

import pytest
import torch

from annotated.devices import to_device
from annotated.segments import SegmentLoss, segments
from annotated.training import evaluate, fit
from annotated.transformer_xl import TransformerXL, TransformerXLConfig
from tests.pretended_gpu import GPU, on_gpu, pretended_gpu


def model(mem_len=4):
    torch.manual_seed(0)
    return TransformerXL(TransformerXLConfig(31, 8, 2, 1, 8, mem_len=mem_len))


def test_rows_go_on_where_they_stopped_and_targets_are_one_further():
    text = torch.arange(31)
    batches = list(segments(text, batch=3, length=4))
    assert [tokens.shape[1] for tokens, _ in batches] == [4, 4, 2]
    rows = torch.cat([tokens for tokens, _ in batches], dim=1)
    assert rows.tolist() == [list(range(i, i + 10)) for i in (0, 10, 20)]
    for tokens, target in batches:
        assert torch.equal(target, tokens + 1)


@pytest.mark.parametrize(
    ("batch", "length", "message"),
    [
        (32, 2, "batch must be an integer from 1 to 30, got 32"),
        (3, 0, "length must be an integer ≥ 1, got 0"),
    ],
)
def test_segments_that_cannot_be_are_refused(batch, length, message):
    with pytest.raises(ValueError, match=message):
        next(segments(torch.arange(31), batch, length))


def test_losses_hand_memories_on_and_a_new_one_begins_anew():
    xl, loss = model(), SegmentLoss()
    batches = list(segments(torch.arange(31), batch=3, length=4))
    found = [loss(xl, batch) for batch in batches[:2]]
    first, memories = xl.loss(*batches[0])
    second, _ = xl.loss(*batches[1], memories)
    assert found[0] == first.mean()
    assert found[1] == second.mean()
    assert SegmentLoss()(xl, batches[1]) != second.mean()
    assert loss.memories.shape == (1, 3, 4, 8)
    assert [loss.batch_weight(batch) for batch in batches] == [12, 12, 6]


def test_fit_and_evaluate_take_it():
    xl = model()
    text = torch.arange(31).repeat(4)
    before = evaluate(xl, SegmentLoss(), segments(text, 2, 5))
    optimizer = torch.optim.Adam(xl.parameters(), lr=0.02)
    for _ in range(3):
        fit(xl, SegmentLoss(), segments(text, 2, 5), optimizer)
    assert evaluate(xl, SegmentLoss(), segments(text, 2, 5)) < before - 0.5


def resumable(path, steps):
    """A run of so many steps over one text; a new memory in each process."""
    xl = model()
    optimizer = torch.optim.Adam(xl.parameters(), lr=0.02)
    batches = list(segments(torch.arange(31).repeat(4), 2, 5))[:steps]
    history = fit(xl, SegmentLoss(), batches, optimizer, checkpoint=path)
    return [record["loss"] for record in history], list(xl.parameters())


@pytest.mark.parametrize("until", [1, 4])
def test_a_resumed_run_remembers_what_it_read(until, tmp_path):
    wanted, parameters = resumable(None, 8)
    resumable(tmp_path / "run.pt", until)
    losses, resumed = resumable(tmp_path / "run.pt", 8)
    assert losses == wanted
    assert all(map(torch.equal, resumed, parameters))


def test_a_memory_from_a_file_goes_where_the_batch_is():
    xl, loss = model(), SegmentLoss()
    batches = list(segments(torch.arange(31), batch=3, length=4))
    loss(xl, batches[0])
    state = loss.state_dict()  # on the CPU, as a checkpoint is loaded
    wanted = loss(xl, batches[1])
    with pretended_gpu():
        loss.load_state_dict(state)
        found = loss(on_gpu(xl), to_device(batches[1], GPU))
        assert found.device == GPU
        torch.testing.assert_close(found.numbers, wanted)
