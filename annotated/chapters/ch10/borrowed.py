"""Chapter 10: an encoder that others have trained, borrowed for film sentences.

all-MiniLM-L6-v2 is a BERT of six layers (Wang et al., 2020) that learned from a billion
pairs of sentences which ones belong together (Reimers and Gurevych, 2019), and never
saw a label of ours. It fills the blocks of this book (:mod:`annotated.weights`) and is
used as it was meant: the mean of the vectors of the real tokens.

Letters: n texts, b batch, t length, d width.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from annotated.batches import pad_sequences
from annotated.bert import Bert, BertConfig
from annotated.classifier import pool
from annotated.data.datasets import fetch
from annotated.devices import device_of
from annotated.training import evaluating
from annotated.weights import load_bert, read_safetensors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MINILM = BertConfig(d_model=384, heads=12, layers=6, d_ff=1536)


def borrowed_encoder() -> tuple[Bert, "Tokenizer"]:
    """Return the model and what cuts its texts; both are downloaded, 91 MB.

    It needs ``tokenizers``, which the extra ``translation`` brings.
    """
    from tokenizers import Tokenizer

    weights, pieces = fetch("minilm", "model.safetensors", "tokenizer.json")
    state = {f"bert.{n}": x for n, x in read_safetensors(weights).items()}
    # The file has no heads for guessing words and order. Ours are zero, and not asked.
    d, v = MINILM.d_model, MINILM.vocab_size
    for name, *shape in (
        ("predictions.bias", v),
        ("predictions.transform.dense.weight", d, d),
        ("predictions.transform.dense.bias", d),
        ("predictions.transform.LayerNorm.weight", d),
        ("predictions.transform.LayerNorm.bias", d),
        ("seq_relationship.weight", 2, d),
        ("seq_relationship.bias", 2),
    ):
        state[f"cls.{name}"] = torch.zeros(shape)
    tokenizer = Tokenizer.from_file(str(pieces))
    tokenizer.no_padding()
    return load_bert(state, MINILM), tokenizer


class SentenceEncoder(nn.Module):
    """A BERT, the mean over its real tokens, and a linear map to logits.

    Reimers and Gurevych (2019).
    """

    def __init__(self, bert: Bert, classes: int = 1):
        super().__init__()
        self.bert = bert
        self.output = nn.Linear(bert.config.d_model, classes)

    def vectors(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b d"]:
        """Return a vector for each text of ``tokens``."""
        return pool(self.bert(tokens), tokens != self.bert.config.pad)

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b c"]:
        """Return logits for each text of ``tokens``."""
        return self.output(self.vectors(tokens))


def read_vectors(
    model: SentenceEncoder, tokenizer: "Tokenizer", texts: Sequence[str], size: int = 64
) -> Float[Tensor, "n d"]:
    """Return a vector of each of the ``texts``, in their order.

    Args:
        size: number of texts in a batch; those of about one length are read together.
    """
    ids = [one.ids for one in tokenizer.encode_batch(list(texts))]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    vectors = torch.empty(len(ids), model.bert.config.d_model)
    with evaluating(model):
        for first in range(0, len(order), size):
            rows = order[first : first + size]
            tokens, _ = pad_sequences([ids[i] for i in rows], model.bert.config.pad)
            vectors[rows] = model.vectors(tokens.to(device_of(model))).cpu()
    return vectors
