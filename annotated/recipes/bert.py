"""Chapter 15: the published BERT, and how it fills a gap."""

from pathlib import Path
from typing import NamedTuple

import torch

from annotated import require
from annotated.bert import Bert, BertConfig
from annotated.data.datasets import cache_folder
from annotated.data.published import PUBLISHED, published_files
from annotated.data.wordpiece import bert_words, cut_word
from annotated.devices import device_of
from annotated.training import evaluating
from annotated.weights import load_bert, read_safetensors

MASK = "[MASK]"
SPECIAL = {"[UNK]", "[CLS]", "[SEP]", MASK}


class GapFiller(NamedTuple):
    """A BERT that reads text, in small letters."""

    bert: Bert  #: the model
    pieces: dict[str, int]  #: the id of each piece of a word

    def ids(self, text: str) -> list[int]:
        """Return the ids of a ``text`` between [CLS] and [SEP]; it may hold [MASK]."""
        tokens = ["[CLS]"]
        for i, part in enumerate(text.split(MASK)):
            tokens += [MASK] * (i > 0)
            for word in bert_words(part):
                tokens += cut_word(word, self.pieces)
        return [self.pieces[token] for token in [*tokens, "[SEP]"]]

    @torch.no_grad()
    def fill(self, text: str) -> list[tuple[str, float]]:
        """Return the five likeliest pieces for the gap, with their probabilities.

        Args:
            text: has [MASK] in one place.

        Raises:
            ValueError: if there is no gap, or more than one.
        """
        gaps = text.count(MASK)
        require.that(gaps == 1, f"text must hold one {MASK}, got {gaps} in {text!r}")
        ids = self.ids(text)
        with evaluating(self.bert):
            states = self.bert(torch.tensor([ids], device=device_of(self.bert)))
            logits = self.bert.guess_tokens(states[0, ids.index(self.pieces[MASK])])
        chances, found = logits.softmax(dim=-1).topk(5)
        names = list(self.pieces)
        return [(names[i], p.item()) for i, p in zip(found, chances, strict=True)]


def read_bert(weights: Path, vocabulary: Path, config: BertConfig) -> GapFiller:
    """Return the BERT of two files.

    Args:
        weights: in the format *safetensors*, named as for
            :func:`annotated.weights.load_bert`.
        vocabulary: a piece in each line; its id is the number of lines before it.
        config: of the model that is wanted.

    Raises:
        OSError: if a file can't be read.
        ValueError: if a file is damaged, or does not fit ``config``.
    """
    lines = vocabulary.read_text("utf-8").removesuffix("\n").split("\n")
    pieces = {piece: i for i, piece in enumerate(lines)}
    require.that(
        len(pieces) == len(lines) == config.vocab_size and pieces.keys() >= SPECIAL,
        f"{vocabulary} must hold {config.vocab_size} different pieces, "
        f"{sorted(SPECIAL)} among them, got {len(pieces)} in {len(lines)} lines",
    )
    return GapFiller(load_bert(read_safetensors(weights), config), pieces)


def official_bert(download: bool = False) -> GapFiller | None:
    """Return BERT base "uncased" with Google's weights, or None where they aren't.

    Args:
        download: whether to fetch the files, 440 MB, if they aren't in the cache.

    Raises:
        DataError: if a file can't be downloaded.
    """
    name = "bert-base-uncased"
    kept = [cache_folder() / name / file.name for file in PUBLISHED[name].files]
    if not download and not all(path.exists() for path in kept):
        return None
    return read_bert(*published_files(name), BertConfig())
