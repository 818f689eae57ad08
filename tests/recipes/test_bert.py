"""annotated/recipes/bert.py: text in pieces, gaps filled, and files that don't fit."""

import dataclasses

import pooch
import pytest
import torch

from annotated.data import datasets, published
from annotated.data.datasets import DataError
from annotated.recipes import bert as recipe
from annotated.recipes.bert import official_bert, read_bert
from tools.official import TINY, tiny_pieces, write_tiny

CONFIG = recipe.BertConfig(vocab_size=len(tiny_pieces()), **TINY)


@pytest.fixture
def files(tmp_path):
    write_tiny(tmp_path)
    folder = tmp_path / "bert-base-uncased"
    return folder / "model.safetensors", folder / "vocab.txt"


def test_a_text_becomes_pieces_between_special_ones(files):
    filler = read_bert(*files, CONFIG)
    names = [tiny_pieces()[i] for i in filler.ids("Ab'[MASK] Ü漢.")]
    assert names == ["[CLS]", "a", "##b", "'", "[MASK]", "u", "[UNK]", ".", "[SEP]"]


def test_a_gap_is_filled_by_the_likeliest_pieces(files):
    filler = read_bert(*files, CONFIG)
    filler.bert.train()  # dropout must not touch the answer
    found = filler.fill("ab [MASK] c.")
    assert filler.bert.training and found == filler.fill("ab [MASK] c.")
    filler.bert.eval()
    ids = torch.tensor([filler.ids("ab [MASK] c.")])
    logits = filler.bert.guess_tokens(filler.bert(ids))[0, 3]
    wanted = logits.softmax(-1).sort(descending=True)
    assert [p for _, p in found] == pytest.approx(wanted.values[:5].tolist())
    assert found[0][0] == tiny_pieces()[wanted.indices[0]] and len(found) == 5
    for text in ("no gap", "[MASK] and [MASK]"):
        with pytest.raises(ValueError, match=r"text must hold one \[MASK\], got"):
            filler.fill(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x + "one more\n",
        lambda x: x.replace("[SEP]", "sep"),
        lambda x: x[:-40],
    ],
)
def test_a_vocabulary_that_does_not_fit_is_named(files, change):
    files[1].write_text(change(files[1].read_text()))
    with pytest.raises(ValueError, match=r"vocab\.txt must hold 160 different pieces"):
        read_bert(*files, CONFIG)


def test_official_weights_are_read_where_they_are(files, monkeypatch):
    folder = files[0].parents[1]
    monkeypatch.setenv("ANNOTATED_DATA", str(folder))
    nowhere = ("https://nowhere.invalid/file",)
    rows = tuple(
        datasets.File(p.name, nowhere, p.stat().st_size, f"sha256:{pooch.file_hash(p)}")
        for p in files
    )
    row = dataclasses.replace(published.PUBLISHED["bert-base-uncased"], files=rows)
    monkeypatch.setitem(published.PUBLISHED, "bert-base-uncased", row)
    monkeypatch.setattr(recipe, "BertConfig", lambda: CONFIG)
    found, wanted = official_bert(), read_bert(*files, CONFIG)
    text = "ab [MASK] c."
    assert not found.bert.training and found.fill(text) == wanted.fill(text)
    assert published.published_files("bert-base-uncased", folder) == [*files]

    files[1].write_text("other")
    with pytest.raises(
        DataError, match=r"vocab\.txt isn't the published file.*it has 5"
    ):
        published.published_files("bert-base-uncased", folder)
    assert files[1].read_text() == "other"  # the folder is only read
    files[1].unlink()
    with pytest.raises(DataError, match=r"vocab\.txt is missing: BERT"):
        published.published_files("bert-base-uncased", folder)
    assert official_bert() is None
    with pytest.raises(DataError, match=r"cannot download vocab\.txt"):
        official_bert(download=True)
