"""ch10/borrowed.py: others' weights in our blocks, and their vectors."""

import os
import warnings
from pathlib import Path

import pytest
import torch

from annotated.bert import Bert, BertConfig
from annotated.chapters.ch10 import borrowed
from annotated.chapters.ch10.borrowed import (
    SentenceEncoder,
    borrowed_encoder,
    read_vectors,
)
from tools.safetensors import safetensors

tokenizers = pytest.importorskip("tokenizers")
SMALL = BertConfig(vocab_size=9, d_model=8, heads=2, layers=1, d_ff=8, max_len=16)
REAL = os.environ.get("ANNOTATED_DATA")


def cutter():
    names = ["[PAD]", "[UNK]", "a", "b", "c", "d", "e", "f", "g"]
    model = tokenizers.models.WordLevel({n: i for i, n in enumerate(names)}, "[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


def test_a_vector_is_the_mean_over_a_texts_own_tokens():
    model = SentenceEncoder(Bert(SMALL)).eval()
    texts = ["a b c d e f", "g", "b a", "c c c c", "e"]
    for size in (1, 2, 5):
        found = read_vectors(model, cutter(), texts, size)
        for text, vector in zip(texts, found, strict=True):
            ids = torch.tensor([cutter().encode(text).ids])
            alone = model.bert(ids)[0].mean(dim=0)
            torch.testing.assert_close(vector, alone, rtol=1e-5, atol=1e-6)
    ids = torch.tensor([[2, 3, 0]])
    wanted = model.output(model.bert(ids[:, :2]).mean(dim=1))
    torch.testing.assert_close(model(ids), wanted)


def test_weights_and_tokenizer_are_read_from_the_files(tmp_path, monkeypatch):
    torch.manual_seed(1)
    bert, state = Bert(SMALL), {}
    layer, ours = "encoder.layer.0.", bert.encoder.layers[0]
    sides = [
        ("embeddings.LayerNorm", bert.norm),
        (f"{layer}attention.self.query", ours.attention.query_map),
        (f"{layer}attention.self.key", ours.attention.key_map),
        (f"{layer}attention.self.value", ours.attention.value_map),
        (f"{layer}attention.output.dense", ours.attention.output_map),
        (f"{layer}attention.output.LayerNorm", ours.residuals[0].norm),
        (f"{layer}intermediate.dense", ours.feed_forward.inner),
        (f"{layer}output.dense", ours.feed_forward.outer),
        (f"{layer}output.LayerNorm", ours.residuals[1].norm),
        ("pooler.dense", bert.pooler),
    ]
    for name, part in sides:
        state |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
    state["embeddings.word_embeddings.weight"] = bert.embedding.weight
    state["embeddings.position_embeddings.weight"] = bert.positions.table
    state["embeddings.token_type_embeddings.weight"] = bert.segments.weight
    weights, pieces = tmp_path / "model.safetensors", tmp_path / "tokenizer.json"
    weights.write_bytes(safetensors(state))
    padding = cutter()
    padding.enable_padding(length=8)
    padding.save(str(pieces))
    monkeypatch.setattr(borrowed, "fetch", lambda name, *files: [weights, pieces])
    monkeypatch.setattr(borrowed, "MINILM", SMALL)
    found, tokenizer = borrowed_encoder()
    ids = torch.tensor([tokenizer.encode("a b c").ids])
    assert ids.tolist() == [[2, 3, 4]], "padded"
    assert torch.equal(found(ids), bert.eval()(ids))


def test_the_real_one_knows_what_belongs_together():
    folder = Path(REAL or "") / "minilm"
    if not REAL or not (folder / "model.safetensors").is_file():
        lacking = f"no real minilm in ANNOTATED_DATA={REAL!r}: a test is left out"
        warnings.warn(lacking, stacklevel=1)
        pytest.skip(lacking)
    bert, tokenizer = borrowed_encoder()
    sentences = (
        "A man is eating food.",
        "A man is eating a piece of bread.",
        "The girl is carrying a baby.",
    )
    vectors = read_vectors(SentenceEncoder(bert), tokenizer, sentences)
    near = torch.nn.functional.cosine_similarity(vectors[0], vectors[1:])
    # measured once; what counts is that nothing of the files is mixed up
    torch.testing.assert_close(near, torch.tensor([0.7553, -0.105]), rtol=0, atol=1e-3)
