"""How `glassllm.npz` was made: what the package glassllm makes of its own model.

    python3.11 -m venv ENV
    ENV/bin/pip install "glassllm==0.1.0" "numpy==2.4.6"
    ENV/bin/python tests/references/glassllm.py tests/references/glassllm.npz

Logits of its NumPy forward at some positions of two texts, in float64, so that rounding
is not what differs; what it writes on when it always takes the likeliest token; and
what its tokenizer makes of many texts.
"""

import random
import sys

import numpy
from glassllm import GlassLM, load_pretrained, no_grad
from glassllm.train import __file__ as PACKAGE

POSITIONS = [0, 1, 7, 30, 63, 127]
PROMPT = "Alice was beginning to"
POOLS = [
    *("abcdefgh", "XYZ", "0123", " ", "   ", "\n", "’", "‘", "“", ".,;:!?()[]", "—"),
    *(
        " the",
        " Alice",
        " said",
        "ing",
        " Queen",
        "▁",
        "<unk>",
        "<pad>",
        "é",
        "e\u0301",
    ),
    *("我们", "😀", "\t", "Æ", "ù", "{}", "'", " don’t", " rabbit", "\r", "_"),
]


def texts() -> list[str]:
    rng = random.Random(0)
    made = ["a", " ", "  a", "a  ", "\n\n a", PROMPT, "“Off with her head!” she said."]
    while len(made) < 300:
        pools = rng.choices(POOLS, k=rng.randint(1, 25))
        made.append("".join(p if rng.random() < 0.6 else rng.choice(p) for p in pools))
    return made


def main() -> None:
    _, tokenizer = load_pretrained("en")
    path = PACKAGE.replace("train.py", "weights/en.npz")
    model = GlassLM.load(path, dtype=numpy.float64)
    ids = numpy.random.default_rng(0).integers(1024, size=(2, 128))
    words = " ".join(["“Curiouser and curiouser!” cried Alice, and down she went."] * 9)
    ids[0] = tokenizer.encode(words)[:128]
    with no_grad():
        logits = model(ids).data[:, POSITIONS]
    steps = model.generate(tokenizer.encode(PROMPT), 60, greedy=True)
    several = texts()
    coded = [tokenizer.encode(text) for text in several]
    numpy.savez_compressed(
        sys.argv[1],
        ids=ids,
        positions=numpy.array(POSITIONS),
        logits=logits.astype(numpy.float32),
        prompt=numpy.array(tokenizer.encode(PROMPT)),
        written=numpy.array([step.token for step in steps]),
        texts=numpy.array([text.encode().hex() for text in several]),
        lengths=numpy.array([len(one) for one in coded]),
        coded=numpy.array([i for one in coded for i in one]),
        decoded=numpy.array([tokenizer.decode(one).encode().hex() for one in coded]),
    )
    print(tokenizer.decode([int(i) for i in numpy.load(sys.argv[1])["written"]]))


main()
