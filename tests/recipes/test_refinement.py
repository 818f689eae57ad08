"""recipes/refinement.py: what the models of chapter 19 learn from, and write."""

import pytest
import torch

from annotated.batches import Vocabulary, make_batch
from annotated.recipes.refinement import (
    MASKED,
    STEPS,
    MaskedLoss,
    on_canvas,
    refine,
    refinement_model,
    without_end,
)
from annotated.recipes.translation import Cutter
from annotated.refinement import MaskedTransformer, Refinement

CUTTER = Cutter(Vocabulary("abc"), Vocabulary("ABC"), [])
BATCH = make_batch([("ab", "AB"), ("cab", "CAB"), ("a", "A")], *CUTTER[:2])


def test_targets_have_no_end_or_are_full_of_them():
    assert without_end(BATCH.labels).tolist() == [[3, 4, 0], [5, 3, 4], [3, 0, 0]]
    wanted = [[3, 4, 2, 2, 2], [5, 3, 4, 2, 2], [3, 2, 2, 2, 2]]
    assert on_canvas(BATCH.labels, 5).tolist() == wanted
    assert on_canvas(BATCH.labels, 2).tolist() == [row[:4] for row in wanted]


@pytest.mark.parametrize("kind", STEPS)
def test_each_kind_has_its_model_and_loss(kind):
    model = refinement_model(kind, CUTTER)
    assert isinstance(model, MaskedTransformer) == (kind in MASKED)
    layers = [len(stack.layers) for stack in (model.encoder, model.decoder)]
    assert layers == ([4, 1] if kind == "deep encoder" else [2, 2])
    if kind in MASKED:
        assert model.mask == len(CUTTER.target)
        loss = MaskedLoss(kind)
        assert loss.batch_weight(BATCH) == 6 and loss(model, BATCH).isfinite()


def test_texts_come_back_in_their_order():
    def write(model, source):  # each letter's capital
        return Refinement(source, torch.zeros(len(source)), [])

    written = refine(torch.nn.Linear(1, 1), CUTTER, ["cab", "", "a", "b"], 2, write)
    assert written == ["C A B", "", "A", "B"]
