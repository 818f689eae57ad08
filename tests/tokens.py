"""Words of English, and a tokenizer that learns from words, by ``tokenizers``."""

import random

from annotated.data.spelling import pronunciations


def real_words(count: int) -> list[str]:
    """English words, some of them often."""
    words = sorted(pronunciations())
    rng = random.Random(count)
    return [rng.choice(words) for _ in range(count) for _ in range(rng.randint(1, 3))]


def tokenizer_of(words: list[str], merges: int):
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = WhitespaceSplit()
    size = len(set("".join(words))) + merges
    trainer = BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator([" ".join(words)], trainer)
    return tokenizer
