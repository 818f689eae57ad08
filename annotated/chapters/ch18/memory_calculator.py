"""Chapter 18's calculator: what a training step takes, and on which card it fits."""

from collections.abc import Mapping
from typing import Any

from annotated.gpt import GPTConfig
from annotated.gpt2 import count_parameters
from annotated.memory import largest_batch, training_memory
from annotated.page.frames import Choice, Html, Slider, Switch, explorer, static

OWN = "your own"
CARDS = (8, 16, 24, 80)  #: GB
HEAD = 64  #: width of each head
OWN_USE = 1e9  #: bytes that a card needs for itself
MODELS = {
    "chapter 16's small model": {"layers": 3, "width": 64, "vocabulary": 1024},
    "GPT-2 small": {"layers": 12, "width": 768},
    "GPT-2 medium": {"layers": 24, "width": 1024},
    "GPT-2 large": {"layers": 36, "width": 1280},
    "GPT-2 XL": {"layers": 48, "width": 1600},
    "GPT-3 6.7B": {"layers": 32, "width": 4096, "length": 2048},
}
MODELS = {
    name: {"vocabulary": 50_257, "length": 1024} | sizes
    for name, sizes in MODELS.items()
}
MODELS["chapter 16's small model"]["length"] = 64
CHOICES = {
    "layers": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 36, 48, 64, 96],
    "width": [64, 128, 256, 512, 768, 1024, 1280, 1600, 2048, 4096, 8192],
    "vocabulary": [96, 256, 1024, 8192, 32_000, 50_257, 128_256],
    "length": [2**n for n in range(6, 16)],
    "batch": [2**n for n in range(8)],
    "processes": [2**n for n in range(7)],
}
LABELS = {
    "layers": "layers",
    "width": "width",
    "vocabulary": "vocabulary",
    "length": "text length",
    "batch": "texts per card",
    "processes": "cards",
}
PRECISIONS = {
    "float32": "float32",
    "autocast to bfloat16": "mixed",
    "bfloat16 alone": "bfloat16",
}
STAGES = ("nothing", "Adam's numbers", "gradients, too", "parameters, too")
START = {
    "model": "GPT-2 medium",
    "batch": 16,
    "precision": "float32",
    "checkpointed": False,
    "accumulating": False,
    "processes": 1,
    "shared": STAGES[0],
}


def asked(state: Mapping[str, Any]) -> tuple[GPTConfig, dict[str, Any]]:
    """Return the config that the controls ask for, and the options of its memory."""
    width = state["width"]
    config = GPTConfig(
        state["vocabulary"],
        d_model=width,
        heads=width // HEAD,
        layers=state["layers"],
        d_ff=4 * width,
        max_len=state["length"],
        activation="gelu_tanh",
    )
    return config, {
        "precision": PRECISIONS[state["precision"]],
        "checkpointed": state["checkpointed"],
        "accumulating": state["accumulating"],
        "foreach": True,  # as on a GPU
        "shards": state["processes"],
        "stage": STAGES.index(state["shared"]),
    }


def memory_bytes(state: Mapping[str, Any]) -> dict[str, int]:
    """Return what the calculator has to compute, by the book's own functions.

    Returns:
        The bytes of each part where memory is fullest, their "total", and the largest
        batch for each of ``CARDS``.
    """
    config, options = asked(state)
    use = training_memory(config, state["batch"], state["length"], **options)
    largest = {
        str(card): largest_batch(
            config, state["length"], card * 1e9 - OWN_USE, **options
        )
        for card in CARDS
    }
    return use._asdict() | {"total": use.total} | largest


def memory_calculator() -> Html:
    """Show what a training step takes, for published models and the reader's own."""
    begin = MODELS[START["model"]] | START
    states = [START | sizes | {"model": name} for name, sizes in MODELS.items()]
    for precision in PRECISIONS:
        states += [
            begin | {"precision": precision, "checkpointed": on} for on in (False, True)
        ]
    states += [begin | {"processes": 8, "shared": stage} for stage in STAGES]
    states.append(begin | {"accumulating": True, "batch": 4})
    own = {"model": OWN, "layers": 8, "width": 512, "length": 8192, "vocabulary": 96}
    states.append(begin | own | {"batch": 1})
    made = explorer(
        static("ch18/memory_calculator.js"),
        {"models": MODELS, "own": OWN, "cards": CARDS, "head": HEAD, "use": OWN_USE}
        | {"stages": STAGES, "precisions": PRECISIONS},
        [
            Choice("model", "model", [*MODELS, OWN], START["model"]),
            *(
                Slider(name, LABELS[name], values, begin[name])
                for name, values in CHOICES.items()
                if name != "processes"
            ),
            Choice("precision", "precision", [*PRECISIONS], START["precision"]),
            Switch("checkpointed", "checkpoint each block"),
            Switch("accumulating", "accumulate gradients"),
            Slider("processes", LABELS["processes"], CHOICES["processes"], 1),
            Choice("shared", "shared", STAGES, START["shared"]),
        ],
        label="What a training step takes",
        checks=[(state, memory_bytes(state)) for state in states],
        question=f"GPT-2 medium needs {gigabytes(begin)} for batches of 16 texts, and "
        "your card has 24. Which of these is enough, without any of the others: half "
        "the layers, autocast, checkpoints, or eight cards that share everything, with "
        "16 texts on each?",
        caption="Memory through one training step; dotted, before your last change. "
        "Bold: cards on which your batch fits, with 1 GB left for the card itself. A "
        "GB is 10⁹ bytes; cards are sold by 2³⁰. Attention is fused, Adam isn't, and "
        "what's gathered for a moment isn't counted. Heads have width 64, no dropout.",
    )
    vocabulary = 3 * 4 * begin["batch"] * begin["length"] * begin["vocabulary"] / 1e9
    answer = (
        "<details><summary>Answer</summary><p>Only checkpoints. Half the layers still "
        f"take {gigabytes(begin | {'layers': begin['layers'] // 2})}, autocast takes "
        f"{gigabytes(begin | {'precision': 'autocast to bfloat16'})}, and eight cards "
        "take "
        f"{gigabytes(begin | {'processes': 8, 'shared': STAGES[3]})} each: they share "
        "parameters, gradients and Adam's numbers, but what fills a card is its own 16 "
        f"texts. With checkpoints it's {gigabytes(begin | {'checkpointed': True})}, "
        f"of which {vocabulary:.1f} are the three tables over the vocabulary: a fused "
        "loss (18.9) has no such tables. (Fewer texts at a time help, too: with 4, "
        f"accumulated, it's {gigabytes(begin | {'accumulating': True, 'batch': 4})}.)"
        "</p><p>Why does autocast save so little? Those three tables stay in float32, "
        "as do the residual stream and the weights. And it adds copies, of weights "
        "and of attention's input.</p></details>"
    )
    return Html(str(made.text) + answer)


def sharded_said() -> str:
    """Say what sharding saves where the model is large and the batch small."""
    name, cards = "GPT-3 6.7B", CHOICES["processes"][-1]
    alone = START | MODELS[name] | {"model": name, "batch": 1}
    shared = alone | {"processes": cards, "shared": STAGES[3]}
    config, options = asked(shared)
    use = training_memory(config, 1, shared["length"], **options)
    rest = use.activations / use.total
    whole = training_memory(config, 1, shared["length"], foreach=True)
    each, held = (
        size / count_parameters(config)
        for size in (whole.total, whole.total - whole.temporary)
    )
    return (
        f"With one text on each card, {name} takes {gigabytes(alone)} alone. That's "
        f"{each:.0f} bytes per parameter and not {held:.0f}, because on a GPU, Adam's "
        "update makes a temporary copy of all parameters (with `fused=True` it "
        f"doesn't). On each of {cards} cards that divide everything, it takes "
        f"{gigabytes(shared)}, and {rest:.0%} of that are activations."
    )


def gigabytes(state: Mapping[str, Any]) -> str:
    """Return what a step takes in all, in words."""
    config, options = asked(state)
    use = training_memory(config, state["batch"], state["length"], **options)
    return f"{use.total / 1e9:.0f} GB"
