"""Chapter 20: slips of the five documents that the book follows, each shown failing.

Every function re-creates the idea of a slip in a few lines of ours, beside its repair,
which is the book's own code wherever it has some. ``wrong`` and ``right`` are what both
give. Source S0 to S4 and its sections are those of ``book/sources.yml``.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from annotated.attention import (
    MultiHeadAttention,
    masked_softmax,
    scaled_dot_product_attention,
)
from annotated.batches import Vocabulary, make_batch
from annotated.bert import Bert, BertConfig
from annotated.classifier import ClassifierConfig, TransformerClassifier, pool
from annotated.data.bpe import split_words
from annotated.masks import causal_mask, length_mask
from annotated.metrics import bleu
from annotated.page.notebook import recorded
from annotated.positions import PositionalEncoding, sinusoidal_encoding
from annotated.recipes.copy_task import (
    COPY,
    VOCAB,
    copy_batches,
    exact_copies,
    next_symbol_loss,
    train_copy,
)
from annotated.recurrent_attention import AdditiveAttention, LocationSensitiveAttention
from annotated.reversible import ReversibleBlock
from annotated.training import LabelSmoothing, evaluate, noam_schedule
from annotated.transformer import (
    EncoderLayer,
    FeedForward,
    Transformer,
    TransformerConfig,
)
from annotated.transformer_xl import (
    RelativeMultiHeadAttention,
    TransformerXLConfig,
    update_memory,
)

FAMILIES = (
    *("mask", "position", "loss", "normalisation", "scale"),
    *("decoding", "batch", "claim", "code"),
)
Numbers = dict[str, float]


@dataclass(frozen=True)
class Slip:
    """A mistake of a source, and what it does."""

    id: str
    source: str  #: "S0" to "S4"; several, if they share it
    section: str  #: of the (first) source, a key of ``book/sources.yml``
    chapter: int  #: of the book, which teaches it
    family: str  #: one of ``FAMILIES``
    title: str
    least: float  #: ``wrong`` and ``right`` differ by at least this
    symptom: str  #: what one sees
    effect: str  #: what was measured; the numbers of the run are filled in
    repair: str
    guard: str  #: the test that fails if this book's code makes the mistake
    function: Callable[[], Numbers]

    def run(self, seed: int) -> Numbers:
        """Return what was measured with a ``seed``; nobody's random numbers change."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return {name: float(x) for name, x in self.function().items()}

    def say(self, runs: list[Numbers]) -> str:
        """Return the effect, with the medians of several ``runs`` filled in."""
        return self.effect.format(**{k: median(r[k] for r in runs) for k in runs[0]})

    def code(self) -> str:
        """Return the lines that :meth:`run` runs, without what is said about them."""
        lines = inspect.getsource(self.function).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("def "))
        return "\n".join(lines[start:])


SLIPS: dict[str, Slip] = {}


def slip(*about: Any) -> Callable:
    """Return a decorator that makes a :class:`Slip` of a function, which says ``about``
    it all that stands between its id and the function."""  # fmt: skip

    def keep(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
        name = function.__name__.replace("_", "-")
        *texts, guard = about
        SLIPS[name] = Slip(name, *texts, f"tests/{guard}", function)
        return function

    return keep


def refused(error: type[BaseException], function: Callable, *args: Any) -> bool:
    """Return whether ``function`` raises an ``error``."""
    try:
        function(*args)
    except error:
        return True
    return False


def entropy(weights: torch.Tensor) -> torch.Tensor:
    """Return the mean entropy of the rows of ``weights``, in nats."""
    return -torch.xlogy(weights, weights).sum(dim=-1).mean()


# ---- chapters 1 and 2: scores --------------------------------------------------


@slip("S4", "3", 1, "code", "Additive attention without its tanh", 0.05,
    "It trains, but all rows of the alignment are equal.",
    "Rows of the alignment differ by {wrong:.0e}; with the tanh, by up to {right:.2f}.",
    "Put a tanh between the sum and the score.",
    "test_recurrent_attention.py::test_additive_scores_by_loops")  # fmt: skip
def no_tanh():
    attention = AdditiveAttention(8, 8, 16)
    query, keys = torch.randn(1, 4, 8), torch.randn(1, 5, 8)
    sums = attention.query_map(query)[:, :, None] + attention.key_map(keys)[:, None]
    wrong = attention.direction(sums)[..., 0].softmax(dim=-1)
    right = attention(query, keys)[1]
    apart = [(rows - rows[:, :1]).abs().max() for rows in (wrong, right)]
    return {"wrong": apart[0], "right": apart[1]}


@slip("S4", "3", 1, "claim", "“Local sensitive” for location-sensitive", 0.5,
    "You build a window, and equal sounds stay equal inside it.",
    "Of equal keys, a window gives the next one {wrong:.0%} of the weight; a look at "
    "the previous alignment gives {right:.0%}.",
    "Convolve the previous alignment (Chorowski et al., 2015).",
    "test_recurrent_attention.py::test_location_sensitive_attention_by_loops",
)  # fmt: skip
def local_sensitive():
    query, keys = torch.ones(1, 1, 1), torch.ones(1, 7, 1)
    window = (torch.arange(7) - 2).abs() <= 1  # around position 2
    moves_on = LocationSensitiveAttention(1, 1, hidden=1, filters=1, kernel=3)
    with torch.no_grad():
        moves_on.convolution.weight[:] = torch.tensor([1.0, 0, 0])  # one to the left
        moves_on.location_map.weight[:], moves_on.direction.weight[:] = 5, 10
    previous = F.one_hot(torch.tensor([2]), 7).float()
    wrong = masked_softmax(torch.zeros(7), window)[3]
    return {"wrong": wrong, "right": moves_on(query, keys, previous=previous)[1][0, 0, 3]}


@slip("S2", "3.4.2", 2, "claim", "“The mean of a dot product grows with k”", 4,
    "You look for a mean to subtract, and there is none.",
    "From k = 16 to 1,024 the deviation grows {right:.1f} times (√64 = 8); the mean is "
    "{wrong:.2f} of it.",
    "The deviation is √k, so divide by √k.",
    "test_attention.py::test_scaled_attention_is_pytorchs")  # fmt: skip
def mean_grows():
    small, large = (
        (torch.randn(4000, k) * torch.randn(4000, k)).sum(dim=-1) for k in (16, 1024)
    )
    return {"wrong": (large.mean() / large.std()).abs(), "right": large.std() / small.std()}


@slip("S2", "3.4.2", 2, "claim", "Why √k, argued with equal entries", 4,
    "The argument asks for a division by k.",
    "Divided by √k, products of vectors with equal entries still grow {wrong:.1f} times "
    "from k = 16 to 1,024, those of independent entries {right:.1f} times.",
    "Entries are independent: variances add up, to k.",
    "test_attention.py::test_scaled_attention_is_pytorchs")  # fmt: skip
def equal_entries():
    def spread(k, entries):
        q, key = (torch.randn(4000, entries).expand(-1, k) for _ in "qk")
        return ((q * key).sum(dim=-1) / k**0.5).std()

    return {
        "wrong": spread(1024, 1) / spread(16, 1),
        "right": spread(1024, 1024) / spread(16, 16),
    }


@slip("S2", "1.2", 2, "claim", "“Weights depend on the positions (i, j)”", 0.05,
    "You expect attention to know the order of words.",
    "After a shuffle, the weight between two places differs by up to {wrong:.2f}, that "
    "between two words by {right:.0e}.",
    "Weights depend on the vectors; add positions to them.",
    "test_classifier.py::test_only_positions_tell_an_order")  # fmt: skip
def by_position():
    x, order = torch.randn(1, 6, 8), torch.randperm(6)
    weights = scaled_dot_product_attention(x, x, x)[1]
    shuffled = scaled_dot_product_attention(*[x[:, order]] * 3)[1]
    moved = weights[:, order][:, :, order]
    wrong, right = ((shuffled - w).abs().max() for w in (weights, moved))
    return {"wrong": wrong, "right": right}


@slip("S2", "3.4.1", 2, "claim", "“Keys are for the other words, j ≠ i”", 0.1,
    "Outputs differ from any reference, most for short texts.",
    "Without its own key a word keeps {wrong:.0%} of its value; by the formula it keeps "
    "{right:.0%} (random vectors of width 16, six words).",
    "A word has a key for itself, too.",
    "test_attention.py::test_scaled_attention_is_pytorchs")  # fmt: skip
def other_keys():
    x = torch.randn(200, 6, 16)
    masks = ~torch.eye(6, dtype=torch.bool), None
    weights = (scaled_dot_product_attention(x, x, x, mask)[1] for mask in masks)
    wrong, right = (w.diagonal(dim1=1, dim2=2).mean() for w in weights)
    return {"wrong": wrong, "right": right}


# ---- chapter 3: heads ----------------------------------------------------------


@slip("S2", "4.4a", 3, "scale", "Scores divided by √ of the whole width", 0.2,
    "Attention is too flat, more so with more heads.",
    "Eight heads: an entropy of {wrong:.2f} nats, where {right:.2f} is meant and 3.47 "
    "is all alike.",
    "Divide by the root of a head's own width.",
    "test_attention.py::test_heads_are_pytorchs_forward_and_backward")  # fmt: skip
def whole_width():
    heads, d_model = 8, 512
    q, key = torch.randn(50, heads, 4, 64), torch.randn(50, heads, 32, 64)
    wrong = (q @ key.mT / d_model**0.5).softmax(dim=-1)
    return {
        "wrong": entropy(wrong),
        "right": entropy(scaled_dot_product_attention(q, key, key)[1]),
    }


@slip("S2", "4.4a", 3, "code", "A class body that isn't indented", 1,
    "IndentationError: expected an indented block.",
    "As printed, Python compiles {wrong:.0f} of 1; indented, {right:.0f}.",
    "Indent what belongs to the method.",
    "test_attention.py::test_heads_are_pytorchs_forward_and_backward")  # fmt: skip
def not_indented():
    text = "class Heads:\n    def __init__(self):\n    self.heads = 4\n"
    indented = text.replace("    self.", "        self.")
    wrong, right = (
        not refused(IndentationError, compile, one, "page", "exec")
        for one in (text, indented)
    )
    return {"wrong": wrong, "right": right}


@slip("S1", "4.2", 3, "batch", "Lengths tiled over heads in the wrong order", 0.3,
    "Long sentences are cut, short ones read padding; equal lengths hide it.",
    "One head of the short sentence puts {wrong:.0%} of its weight on padding; in the "
    "right order, {right:.0%}.",
    "repeat_interleave the lengths, or let a mask (b, 1, 1, s) broadcast.",
    "test_attention.py::test_heads_are_pytorchs_forward_and_backward")  # fmt: skip
def tiled_lengths():
    lengths, heads = torch.tensor([3, 9]), 3
    scores = torch.randn(2 * heads, 9, 9)  # all heads of the first sentence come first
    padding = ~length_mask(lengths.repeat_interleave(heads), 9)[:, 0]

    def on_padding(each):
        weights = masked_softmax(scores, length_mask(each, 9)[:, 0])
        return (weights * padding).sum(dim=-1).mean(dim=-1).max()

    return {
        "wrong": on_padding(lengths.repeat(heads)),
        "right": on_padding(lengths.repeat_interleave(heads)),
    }


@slip("S1", "4.2", 3, "code", "A mask that goes through NumPy", 1,
    "It stops on every device but the CPU, or waits for the GPU at each layer.",
    "Of one device that isn't the CPU, NumPy refuses {wrong:.0f}, the book's mask "
    "{right:.0f}.",
    "Compare positions with lengths on their own device.",
    "test_masks.py::test_length_mask_is_made_on_the_device_of_the_lengths",
)  # fmt: skip
def through_numpy():
    lengths = torch.tensor([3, 5], device="meta")
    return {
        "wrong": refused(TypeError, lambda: torch.from_numpy(lengths.numpy())),
        "right": refused(TypeError, length_mask, lengths, 5),
    }


# ---- chapter 4: masks ----------------------------------------------------------


def on_padding(wrong, scores, mask):
    """Return what stays on padding under the ``wrong`` weights, and under the book's."""
    right = masked_softmax(scores, mask)
    shares = [(w * ~mask).sum(dim=-1).mean() for w in (wrong, right)]
    return {"wrong": shares[0], "right": shares[1]}


@slip("S3", "2 code (1)", 4, "mask", "A mask that is thrown away", 0.2,
    "No error; answers change when padding is appended.",
    "{wrong:.0%} of the weight stays on two pads beside three words; masked, {right:.0%}.",
    "Use what masked_fill returns.",
    "test_attention.py::test_it_is_the_softmax_over_the_keys_that_are_left",
)  # fmt: skip
def thrown_away():
    scores, mask = torch.randn(100, 4, 5), length_mask(torch.tensor([3]), 5)[0]
    scores.masked_fill(~mask, -1e9)  # returns a new tensor
    return on_padding(scores.softmax(dim=-1), scores, mask)


@slip("S3", "2", 4, "mask", "“A very small number, such as 1e-9”", 0.2,
    "No error; padding counts as a word of average interest.",
    "{wrong:.0%} of the weight stays on two pads beside three words; masked, {right:.0%}.",
    "Small means far below zero: −∞, by a boolean mask.",
    "test_attention.py::test_it_is_the_softmax_over_the_keys_that_are_left",
)  # fmt: skip
def tiny_positive():
    scores, mask = torch.randn(100, 4, 5), length_mask(torch.tensor([3]), 5)[0]
    return on_padding(scores.masked_fill(~mask, 1e-9).softmax(dim=-1), scores, mask)


@slip("S0", "4.1", 4, "mask", "−1e−9 for −1e9", 0.2,
    "The training loss is far too good, and nothing can be written.",
    "Under a causal mask, {wrong:.0%} of the weight lies on the future; masked, "
    "{right:.0%}.",
    "−∞, by a boolean mask.",
    "test_gpt.py::test_no_position_sees_what_comes_later_and_each_sees_all_before",
)  # fmt: skip
def tiny_negative():
    scores, mask = torch.randn(100, 8, 8), causal_mask(8)[0]
    return on_padding(scores.masked_fill(~mask, -1e-9).softmax(dim=-1), scores, mask)


@slip("S0", "4.1", 4, "code", "A softmax only if there is a mask", 1,
    "UnboundLocalError at the first call without a mask.",
    "Of one call without a mask, {wrong:.0f} fails; of the book's, {right:.0f}.",
    "Take the softmax outside of the if.",
    "test_attention.py::test_scaled_attention_is_pytorchs")  # fmt: skip
def softmax_if_masked():
    def attend(q, mask=None):
        scores = q @ q.mT / q.shape[-1] ** 0.5
        if mask is not None:
            weights = masked_softmax(scores, mask)
        return weights @ q

    q = torch.randn(1, 3, 4)
    return {
        "wrong": refused(UnboundLocalError, attend, q),
        "right": refused(UnboundLocalError, scaled_dot_product_attention, q, q, q),
    }


@slip("S3", "2 code (3)", 4, "normalisation", "A layer norm made and never called", 1,
    "Two parameters never learn.",
    "{wrong:.0f} of 6 parameters get no gradient; in the book's layer, {right:.0f}.",
    "Call it. Ask each new model which parameters get no gradient.",
    "test_transformer.py::test_the_whole_model_is_pytorchs_forward_and_backward",
)  # fmt: skip
def norm_not_called():
    class Careless(FeedForward):
        def __init__(self):
            super().__init__(8, 16)
            self.norm = nn.LayerNorm(8)

    def forgotten(module):
        module(torch.randn(1, 4, 8)).square().sum().backward()
        return sum(parameter.grad is None for parameter in module.parameters())

    book = EncoderLayer(TransformerConfig(9, 9, 8, 2, 1, 16))
    return {"wrong": forgotten(Careless()), "right": forgotten(book)}


@slip("S3", "2 code (7)", 4, "code", "Arguments that never arrive", 100,
    "dropout=0 still draws random numbers, and long texts fail.",
    "Asked for 400 positions, it has {wrong:.0f}; the book's has {right:.0f}. With "
    "dropout=0, two passes differ by {moved:.2f}.",
    "Pass them on. A linter finds arguments that are never used.",
    "test_transformer.py::test_every_dropout_has_the_probability_of_the_config",
)  # fmt: skip
def arguments_ignored():
    class Careless(nn.Module):
        def __init__(self, dropout, positions):
            super().__init__()
            self.attention = MultiHeadAttention(8, 2, dropout=0.1)
            self.register_buffer("table", sinusoidal_encoding(200, 8))

    module, x = Careless(dropout=0, positions=400), torch.randn(1, 5, 8)
    return {
        "wrong": len(module.table),
        "right": len(PositionalEncoding(8, max_len=400).table),
        "moved": (module.attention(x) - module.attention(x)).abs().max(),
    }


def mask_in_place(scores, lengths):
    """Overwrite ``scores`` behind the ``lengths``, as the second source does."""
    scores[torch.arange(scores.shape[-1]) >= lengths[:, None]] = -1e6
    return scores.softmax(dim=-1)


@slip("S1", "3", 4, "mask", "A mask written into the caller's scores", 1,
    "Scores that you print afterwards aren't those that you computed.",
    "{wrong:.0f} of the caller's 10 scores have changed; under the book's mask, "
    "{right:.0f}.",
    "masked_fill without the underscore.",
    "test_attention.py::test_it_is_the_softmax_over_the_keys_that_are_left",
)  # fmt: skip
def in_place():
    scores, lengths = torch.randn(2, 5), torch.tensor([3, 4])
    before = scores.clone()
    masked_softmax(scores, length_mask(lengths, 5)[:, 0, 0])
    right = (scores != before).sum()
    mask_in_place(scores, lengths)
    return {"wrong": (scores != before).sum(), "right": right}


@slip("S1", "3", 4, "mask", "−1e6 where nothing is left to see", 1,
    "An empty sentence attends to its padding; in float16 it is NaN.",
    "An empty row puts {wrong:.0%} of its weight on padding; the book's {right:.0%}. In "
    "float16, {nan:.0f} row of 1 is NaN.",
    "−∞, and zeros for a row with no key.",
    "test_attention.py::test_a_row_with_no_key_left_gives_zeros_forward_and_backward",
)  # fmt: skip
def empty_row():
    scores, none = torch.randn(1, 5), torch.tensor([0])
    right = masked_softmax(scores, length_mask(none, 5)[:, 0, 0]).sum()
    half = mask_in_place(scores.half(), none).isnan().all()
    return {"wrong": mask_in_place(scores, none).sum(), "right": right, "nan": half}


@slip("S1", "3", 4, "code", "A bare except that tries something else", 1,
    "Ctrl-C doesn't stop it, and an error speaks of another line.",
    "Of one interrupt, {wrong:.0f} comes through; with the error named, {right:.0f}.",
    "Name the error, or ask for the device.",
    "test_masks.py::test_what_does_not_fit_is_named")  # fmt: skip
def bare_except():
    def interrupted():
        raise KeyboardInterrupt

    def attempt(caught):
        try:
            return interrupted()
        except caught:
            return "something else"

    return {  # `except:` catches what `except BaseException:` does
        "wrong": refused(KeyboardInterrupt, attempt, BaseException),
        "right": refused(KeyboardInterrupt, attempt, TypeError),
    }


@slip("S1", "9.1", 4, "mask", "A causal mask in training only", 2,
    "The loss in evaluation is better than possible.",
    "A decipherer whose loss can't be below ln 33 = 3.50 gets {wrong:.2f} without the "
    "mask in evaluation; with it, {right:.2f}.",
    "A mask says what may be known. Leave it on.",
    "test_gpt.py::test_no_position_sees_what_comes_later_and_each_sees_all_before",
)  # fmt: skip
def mask_in_training_only():
    # each message has a code of its own; nobody knows a letter's before it came
    b, t, v = 200, 24, 33
    plain = torch.randint(v, (b, t))
    code = torch.randint(v, (b, v)).gather(1, plain)
    # a position reads its plain letter, and the pair that stood before it
    before = F.pad(plain, (1, -1), value=-1)
    told = F.one_hot(F.pad(code, (1, -1)), v).float()
    # "find my letter" in one head; if it isn't there, the first value: no idea
    scores = F.pad(20.0 * (plain[:, :, None] == before[:, None]), (1, 0), value=10.0)
    values = torch.cat([torch.full((b, 1, v), 1 / v), told], dim=1)
    seen = (plain[:, :, None] == plain[:, None]).tril(-1).any(dim=-1)
    first = ~seen[:, :-1]  # nobody is given the last answer

    def loss(mask):
        chances = masked_softmax(scores, F.pad(mask, (1, 0), value=True)) @ values
        return -chances.gather(-1, code[..., None])[:, :-1, 0][first].log().mean()

    mask = causal_mask(t)[0]
    return {"wrong": loss(torch.ones_like(mask)), "right": loss(mask)}


# ---- chapter 5: positions ------------------------------------------------------


@slip("S4", "4", 5, "position", "A sinusoid for each i from 0 to d", 0.2,
    "Half of the dimensions don't move.",
    "{wrong:.0%} of 512 dimensions hardly change over 512 positions; with i up to d/2, "
    "{right:.0%}.",
    "i counts pairs, from 0 to d/2 − 1.",
    "test_positions.py::test_sine_and_cosine_alternate")  # fmt: skip
def index_range():
    i = torch.arange(512.0)  # dimension i gets the frequency of pair i
    angles = torch.arange(512.0)[:, None] / 10000 ** (2 * i / 512)
    wrong = torch.where(i % 2 == 0, angles.sin(), angles.cos())
    right = sinusoidal_encoding(512, 512)
    still = [(table.std(dim=0) < 0.01).float().mean() for table in (wrong, right)]
    return {"wrong": still[0], "right": still[1]}


@slip("S1", "7.1", 5, "position", "A table of positions that is no buffer", 1,
    "The model has moved, or is half as precise, and its table isn't.",
    "In bfloat16, the next layer refuses {wrong:.0f} of 1 output; of the book's, "
    "{right:.0f}.",
    "register_buffer.",
    "test_positions.py::test_adding_positions_keeps_the_dtype_of_the_input",
)  # fmt: skip
def no_buffer():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = sinusoidal_encoding(10, 8)

        def forward(self, x):
            return x + self.table[: x.shape[1]]

    def fails(positions):
        model = nn.Sequential(positions, nn.Linear(8, 8)).bfloat16()
        return refused(RuntimeError, model, torch.zeros(1, 3, 8, dtype=torch.bfloat16))

    return {"wrong": fails(Positions()), "right": fails(PositionalEncoding(8))}


@slip("S1", "9.1", 5, "position", "Every symbol is written at position 0", 0.5,
    "A low loss, and a decoder that repeats itself.",
    "With the same weights, {wrong:.1%} of sequences are copied at position 0, and "
    "{right:.1%} when positions count up.",
    "Tell the decoder where it goes on.",
    "test_decoder_cache.py::test_pieces_give_what_the_whole_gives")  # fmt: skip
def position_zero():
    model, seed = Transformer(TransformerConfig(VOCAB, VOCAB, **COPY)), torch.initial_seed()
    train_copy(model, copy_batches(seed, 250, 128))
    right = exact_copies(model.eval(), 1000 + seed) / 1000
    ((source, target),) = copy_batches(1000 + seed, 1, 1000)
    written = source[:, :1]
    with torch.no_grad():
        memory, mask = model.encode(source)
        for _ in range(9):  # what a decoder says that reads one symbol at a time
            x = model.target_embedding(written) * model.config.d_model**0.5
            x = model.positions(x, positions=torch.zeros_like(written))
            x = model.decoder(x, memory, causal_mask(written.shape[1]), mask)
            following = model.output(x[:, -1:]).argmax(dim=-1)
            written = torch.cat([written, following], dim=1)
    return {"wrong": (written == target).all(dim=1).float().mean(), "right": right}


@slip("S0", "6.2", 5, "position", "An odd width", 1,
    "“The expanded size of the tensor (3) must match …”",
    "{wrong:.0f} of 1 message names d_model; of the book's, {right:.0f}.",
    "Refuse it by its name.",
    "test_positions.py::test_widths_are_even")  # fmt: skip
def odd_width():
    def table(length, d_model):
        angles = torch.rand(length, (d_model + 1) // 2)
        made = torch.zeros(length, d_model)
        made[:, 0::2], made[:, 1::2] = angles.sin(), angles.cos()

    def names(make):
        try:
            return bool(make(5, 7))
        except (RuntimeError, ValueError) as error:
            return "d_model" in str(error)

    return {"wrong": names(table), "right": names(sinusoidal_encoding)}


# ---- chapter 6: the Transformer ------------------------------------------------


@slip("S0", "7", 6, "code", "Dropout that attention isn't told of", 0.05,
    "With dropout=0, training isn't repeatable, and gradients are noisy.",
    "With dropout=0, two passes of a layer differ by up to {wrong:.2f}; of the book's, "
    "by {right:.0f}.",
    "Pass it on.",
    "test_transformer.py::test_without_dropout_training_is_evaluation")  # fmt: skip
def dropout_not_passed():
    book = EncoderLayer(TransformerConfig(9, 9, 16, 2, 1, 32, dropout=0.0))
    default = EncoderLayer(
        TransformerConfig(9, 9, 16, 2, 1, 32, dropout=0.0),
        attention=lambda: MultiHeadAttention(16, 2, dropout=0.1),  # whatever was asked
    )
    x = torch.randn(4, 10, 16)
    wrong, right = ((m(x) - m(x)).abs().max() for m in (default, book))
    return {"wrong": wrong, "right": right}


@slip("S0", "2.3", 6, "normalisation", "A layer norm by hand, with n − 1", 0.05,
    "Outputs are a little too small; imported weights give other answers.",
    "At width 8 the outputs have a deviation of {wrong:.3f}, where {right:.3f} is right; "
    "at width 512, {wide:.3f}.",
    "Divide by n, and add ε inside the root: nn.LayerNorm.",
    "test_transformer.py::test_the_whole_model_is_pytorchs_forward_and_backward",
)  # fmt: skip
def own_layer_norm():
    def norm(x):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (x.std(dim=-1, keepdim=True) + 1e-6)

    x, wide = torch.randn(500, 8), torch.randn(500, 512)
    outputs = norm(x), nn.LayerNorm(8)(x), norm(wide)
    return dict(zip(("wrong", "right", "wide"), (y.std() for y in outputs), strict=True))


@slip("S0", "7", 6, "claim", "Vocabularies explained as lengths", 10,
    "You cut texts to 10 symbols, and id 10 is out of range.",
    "Said to read {wrong:.0f} symbols, a model of two vocabularies of 10 reads "
    "{right:.0f}, and refuses {refused:.0f} of 1 text with the id 10.",
    "Name arguments.",
    "test_transformer.py::"
    "test_source_and_target_may_be_of_any_length_up_to_the_last_position",
)  # fmt: skip
def vocabularies_as_lengths():
    model, ids = Transformer(TransformerConfig(10, 10, 16, 2, 2, 32)), torch.ones(1, 50)
    read = model(ids.long(), ids.long()).shape[1]
    tens = torch.full((1, 3), 10)
    return {"wrong": 10, "right": read, "refused": refused(ValueError, model, tens, tens)}


@slip("S0", "2.1", 6, "claim", "“ModuleList is no Module, a Parameter no Tensor”", 1,
    "You convert parameters, and look for a forward that is missing.",
    "{wrong:.0f} of the two statements are so; isinstance says yes {right:.0f} times.",
    "Both are subclasses; a ModuleList only lacks a forward.",
    "test_transformer.py::test_layers_of_a_stack_do_not_share_their_numbers",
)  # fmt: skip
def not_a_module():
    yes = isinstance(nn.ModuleList(), nn.Module) + isinstance(
        nn.Parameter(torch.ones(1)), torch.Tensor
    )
    return {"wrong": 2 - yes, "right": yes}


@slip("S0", "4.2", 6, "mask", "“The mask of cross-attention is all ones”", 0.1,
    "A translation changes when its source is padded.",
    "Twenty pads move a logit by up to {wrong:.2f}; with the source's mask, by "
    "{right:.0e}.",
    "Cross-attention needs the padding mask of the source.",
    "test_transformer.py::test_the_whole_model_is_pytorchs_forward_and_backward",
)  # fmt: skip
def cross_attention_unmasked():
    model = Transformer(TransformerConfig(9, 9, 16, 2, 2, 32)).eval()
    source, target = torch.randint(1, 9, (4, 5)), torch.randint(1, 9, (4, 6))
    memory, mask = model.encode(F.pad(source, (0, 20)))
    moved = [
        (model.decode(target, memory, each) - model(source, target)).abs().max()
        for each in (None, mask)
    ]
    return {"wrong": moved[0], "right": moved[1]}


@slip("S1", "8.1", 6, "scale", "Embeddings × √d that were not small", 4,
    "The model learns words but no order.",
    "At d = 32, embeddings are {wrong:.1f} times as large as positions; begun with "
    "d^−½, {right:.1f} times.",
    "Draw them with deviation d^−½ before you multiply by √d.",
    "test_transformer.py::test_embeddings_enter_the_stream_with_deviation_one",
)  # fmt: skip
def embeddings_too_large():
    positions = sinusoidal_encoding(10, 32).square().mean().sqrt()
    book = Transformer(TransformerConfig(1000, 9, 32, 2, 1, 32)).source_embedding
    sizes = [
        (table.weight * 32**0.5).square().mean().sqrt() / positions
        for table in (nn.Embedding(1000, 32), book)
    ]
    return {"wrong": sizes[0], "right": sizes[1]}


@slip("S0", "7", 6, "scale", "Glorot's numbers for embeddings", 0.5,
    "The larger the vocabulary, the fainter its words.",
    "Times √512, Glorot's embeddings have a deviation of {small:.2f} for 10 words and "
    "{wrong:.2f} for 30,000; the book's {right:.2f}.",
    "Embeddings are looked up, not summed over the vocabulary: d^−½.",
    "test_transformer.py::test_embeddings_enter_the_stream_with_deviation_one",
)  # fmt: skip
def glorot_embeddings():
    small, wrong = (
        nn.init.xavier_uniform_(torch.empty(v, 512)).std() * 512**0.5
        for v in (10, 30_000)
    )
    book = Transformer(TransformerConfig(99, 9, 512, 2, 1, 32)).source_embedding
    return {"wrong": wrong, "right": book.weight.std() * 512**0.5, "small": small}


@slip("S4", "4", 6, "code", "“Two linear maps”, and nothing between", 0.1,
    "Four times the width, and not more than one matrix.",
    "Two maps differ from one by {wrong:.0e} of their size; with the ReLU, by "
    "{right:.0%}.",
    "Put a nonlinearity between them.",
    "test_transformer.py::test_activations_are_those_of_their_formulas")  # fmt: skip
def two_linear_maps():
    network, x = FeedForward(16, 64), torch.randn(100, 16)
    one = network.outer.weight @ network.inner.weight
    bias = network.outer(network.inner.bias)
    single = x @ one.T + bias
    wrong, right = (
        (y - single).norm() / single.norm()
        for y in (network.outer(network.inner(x)), network(x))
    )
    return {"wrong": wrong, "right": right}


@slip("S2", "4.2", 6, "claim", "“The inner layer can't be narrower”", 0.5,
    "You pay for width that the task doesn't need.",
    "Half as wide as the stream it runs; it writes to {wrong:.0%} of the directions, "
    "and the residual keeps {right:.0%}.",
    "It may; the residual carries the rest.",
    "test_transformer.py::test_the_smallest_and_the_largest_numbers_are_taken",
)  # fmt: skip
def narrow_network():
    network, x = FeedForward(16, 8, bias=False), torch.randn(500, 16)
    ranks = [torch.linalg.matrix_rank(y) / 16 for y in (network(x), x + network(x))]
    return {"wrong": ranks[0], "right": ranks[1]}


@slip("S2", "4.5", 6, "claim", "“Only softmax and ReLU are nonlinear”", 4,
    "You call attention without a softmax a linear map of its input.",
    "A linear map doubles with its input; attention without its softmax grows "
    "{right:.0f} times, not {wrong:.0f}.",
    "It multiplies its input with itself: queries, keys and values.",
    "test_attention.py::test_scaled_attention_is_pytorchs")  # fmt: skip
def two_nonlinearities():
    attention, x = MultiHeadAttention(16, 2, bias=False), torch.randn(1, 5, 16)

    def attend(x):
        q, k, v = attention.project(x)
        return (q @ k.mT @ v).norm()  # no softmax

    return {"wrong": 2, "right": attend(2 * x) / attend(x)}


@slip("S1", "6", 6, "normalisation", "“The axis is the only difference”", 0.1,
    "Batch norm answers differently in evaluation.",
    "After one batch, evaluation moves batch norm by up to {wrong:.2f}, layer norm by "
    "{right:.0f}.",
    "Batch norm keeps running means, too, and needs a batch.",
    "test_transformer.py::test_without_dropout_training_is_evaluation")  # fmt: skip
def axis_alone():
    x, moved = 3 + 2 * torch.randn(16, 8), []
    for norm in (nn.BatchNorm1d(8), nn.LayerNorm(8)):
        moved.append((norm(x) - norm.eval()(x)).abs().max())
    return {"wrong": moved[0], "right": moved[1]}


# ---- chapters 7 and 8: training ------------------------------------------------


@slip("S0", "8.1", 7, "code", "Labels stored under the mask's name", 1,
    "AttributeError: trg_y, at the first batch.",
    "Of one batch, {wrong:.0f} has no labels; of the book's, {right:.0f}.",
    "Make it in one call, of all its fields.",
    "test_batches.py::test_labels_are_the_target_one_step_ahead")  # fmt: skip
def lost_labels():
    target = torch.tensor([[1, 4, 2, 0]])
    wrong = SimpleNamespace(trg=target[:, :-1])
    wrong.trg_mask = target[:, 1:]  # trg_y is meant
    wrong.trg_mask = wrong.trg != 0
    book = make_batch([("a", "a")], Vocabulary("a"), Vocabulary("a"))
    return {"wrong": not hasattr(wrong, "trg_y"), "right": not hasattr(book, "labels")}


@slip("S0", "9 (2)", 7, "loss", "A loss that calls backward in evaluation", 1,
    "The more often you evaluate, the stranger the run.",
    "After an evaluation of five batches, {wrong:.1f} times a step's own gradient "
    "waits for the next one; after the book's, {right:.0f}.",
    "Evaluate without gradients.",
    "test_training.py::test_evaluating_restores_all_modes_and_gradients")  # fmt: skip
def backward_in_evaluation():
    model = Transformer(TransformerConfig(5, 5, 8, 2, 2, 16, max_len=10))
    optimizer, seed = torch.optim.Adam(model.parameters(), lr=1e-3), torch.initial_seed()

    def gradient(count, step=False):
        batches = copy_batches(seed + count, count, 30, vocab_size=5)
        for batch in batches:
            next_symbol_loss(model, batch).backward()  # whatever it is for
            if step:
                optimizer.step()
                optimizer.zero_grad()
        grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        optimizer.zero_grad()
        return torch.cat(grads).norm().item() if grads else 0.0

    gradient(20, step=True)
    own = mean(gradient(1) for _ in range(3))
    waiting = gradient(5)
    evaluate(model, next_symbol_loss, copy_batches(seed, 5, 30, vocab_size=5))
    return {"wrong": waiting / own, "right": gradient(0) / own}


@slip("S0", "8.2", 7, "code", "Noam's rate at step 0", 1,
    "ZeroDivisionError, as soon as a LambdaLR has it.",
    "Of one schedule, {wrong:.0f} fails before its first step; of the book's, "
    "{right:.0f}.",
    "Count steps from 1.",
    "test_training.py::test_step_n_of_a_real_optimiser_has_the_rate_of_n")  # fmt: skip
def noam_at_zero():
    def rate(step):
        return 512**-0.5 * min(step**-0.5, step * 4000**-1.5)

    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1.0)
    return {
        "wrong": refused(ZeroDivisionError, LambdaLR, optimizer, rate),
        "right": refused(ZeroDivisionError, noam_schedule, optimizer, 512, 4000),
    }


@slip("S0", "8.3", 7, "loss", "The logarithm of a probability of 0", 1,
    "NaN, or a loss that depends on a guard.",
    "{wrong:.0f} of 1 loss is NaN without a guard; with 1e-9 it is {nine:.1f}, with "
    "1e-12 {twelve:.1f}. From logits, {right:.0f} is NaN.",
    "Hand over logits: log_softmax is finite.",
    "test_training.py::test_an_impossible_symbol_costs_nothing_where_nobody_asks_for_it",
)  # fmt: skip
def log_of_zero():
    smoothing, labels = LabelSmoothing(5, 0, 0.4), torch.tensor([2, 1, 0])
    chances = torch.tensor([0, 0.2, 0.7, 0.1, 0]).expand(3, 5)
    wanted = smoothing.distribution(labels)

    def loss(guard):
        guarded = chances.masked_fill(chances == 0, guard)
        return F.kl_div(guarded.log(), wanted, reduction="sum")

    book = smoothing(torch.randn(3, 5), labels)
    numbers = {"nine": loss(1e-9), "twelve": loss(1e-12)}
    return {"wrong": loss(0.0).isnan(), "right": book.isnan()} | numbers


@slip("S0", "9 (6)", 8, "decoding", "Seven symbols from a source of four", 0.5,
    "The last three are invented, and nobody notices.",
    "Trained on length 10 only, a model copies {four:.1%} of sources of length 4, but "
    "{wrong:.1%} of length 14; of length 10, {right:.1%}.",
    "Stop at an end symbol, and train on several lengths.",
    "test_decoding.py::test_it_stops_when_every_sequence_has_ended")  # fmt: skip
def seven_from_four():
    rows = {row["seed"]: row["lengths"] for row in recorded("copy_task")["main"]}
    exact = {n: one["exact"] for n, one in rows[torch.initial_seed()].items()}
    return {"wrong": exact["14"], "right": exact["10"], "four": exact["4"]}


@slip("S0", "9 (5)", 8, "loss", "A warm-up longer than the training", 500,
    "The loss falls nicely, and nothing is copied.",
    "Of 1,000 sequences, {wrong:.0f} are copied after 200 steps, at a loss of "
    "{loss:.2f}; after 800 steps, {right:.0f}.",
    "Count steps, not epochs.",
    "recipes/test_copy_task.py::test_the_rate_goes_up_stays_and_falls")  # fmt: skip
def ten_epochs():
    rows, seed = recorded("copy_task")["source"], torch.initial_seed()
    by_steps = {row["steps"]: row for row in rows if row["seed"] == seed}
    first = by_steps[200]
    return {
        "wrong": first["exact"],
        "right": by_steps[800]["exact"],
        "loss": first["test_loss"],
    }


# ---- chapters 9 to 11: texts ---------------------------------------------------


@slip("S1", "10", 9, "batch", "Four special symbols with one name", 0.5,
    "Padding, start and end print as nothing, and can't be looked up.",
    "As printed, {wrong:.0%} of special symbols have an id of their own; in the book, "
    "{right:.0%}.",
    "Give them names: <pad>, <start>, <end>, <unk>.",
    "test_batches.py::test_ids_are_the_order_of_the_symbols_after_the_special_ones",
)  # fmt: skip
def one_empty_name():
    def own_ids(special):
        ids = {symbol: i for i, symbol in enumerate(special)}
        return sum(ids[symbol] == i for i, symbol in enumerate(special)) / len(special)

    return {"wrong": own_ids([""] * 4), "right": own_ids(Vocabulary.SPECIAL)}


@slip("S1", "10", 9, "batch", "A cut that takes the end symbol", 0.2,
    "The model never ends long answers.",
    "Of targets with 1 to 15 words, cut to 10 symbols, {wrong:.0%} have no end; in the "
    "book, {right:.0%}.",
    "Cut the words first, then add the end; or leave long pairs out.",
    "test_batches.py::test_the_end_of_a_target_takes_a_position")  # fmt: skip
def end_cut_off():
    texts = ["a" * int(n) for n in torch.randint(1, 16, (1000,))]
    vocabulary = Vocabulary("a")
    cut = [["<start>", *text, "<end>"][:10] for text in texts]
    book = make_batch([(text, text) for text in texts], vocabulary, vocabulary).labels
    ends = (book == vocabulary.end).any(dim=1).float().mean()
    return {"wrong": mean("<end>" not in one for one in cut), "right": 1 - ends}


@slip("S1", "10", 9, "batch", "A question mark that stays at its word", 1,
    "Words before a question mark are rare, so they become unknown.",
    "“who” has {wrong:.0f} entries in the vocabulary; in the book {right:.0f}.",
    "Split off every sign.",
    "recipes/test_translation.py::test_sentences_are_cut_and_put_together_again",
)  # fmt: skip
def question_mark():
    text = "who won ? who ? it was who, not me. who?"

    def split(text):
        return "".join(f" {c}" if c in ",.!" else c for c in text).split()

    wrong, right = (
        len({word.strip("▁") for word in cut(text) if "who" in word})
        for cut in (split, split_words)
    )
    return {"wrong": wrong, "right": right}


@slip("S0", "8.3", 9, "claim", "BLEU “close to 1”, beside 28.4", 50,
    "You can't tell a good score from a perfect one.",
    "Equal texts score {right:.0f}, where the text says {wrong:.0f}. (The B is for "
    "bilingual, not for double.)",
    "Say which: 28.4 of 100 is 0.284 of 1.",
    "test_metrics.py::test_bleu_is_sacrebleus_on_the_same_words")  # fmt: skip
def bleu_scale():
    words = "the cat sat on the mat".split()
    return {"wrong": 1, "right": bleu([words], [[words]])["score"]}


@slip("S2", "4.3.3", 10, "position", "Positions made on the CPU", 1,
    "“Expected all tensors to be on the same device.”",
    "Of one device that isn't the CPU, it leaves {wrong:.0f}; the book's model "
    "{right:.0f}.",
    "torch.arange(t, device=x.device).",
    "test_devices.py::test_it_runs_on_a_gpu")  # fmt: skip
def positions_on_cpu():
    tokens = torch.ones(1, 3, dtype=torch.long, device="meta")
    with torch.device("meta"):
        book = TransformerClassifier(ClassifierConfig(9, 2))
    positions = torch.arange(tokens.shape[1])
    return {
        "wrong": positions.device != tokens.device,
        "right": book(tokens).device != tokens.device,
    }


@slip("S2", "4.3.3", 10, "batch", "A mean that averages padding", 0.3,
    "The same review gets another answer in another batch.",
    "Beside a text of 23 words, the vector of one with 3 changes by {wrong:.0%}; in "
    "the book by {right:.0%}.",
    "Sum the real words, divide by their number.",
    "test_classifier.py::test_company_and_padding_change_nothing")  # fmt: skip
def mean_with_padding():
    states = torch.randn(1, 3, 16)
    padded, real = F.pad(states, (0, 0, 0, 20)), torch.arange(23)[None] < 3
    alone = states.mean(dim=1)
    means = padded.mean(dim=1), pool(padded, real)
    wrong, right = ((one - alone).norm() / alone.norm() for one in means)
    return {"wrong": wrong, "right": right}


@slip("S3", "2 code (7)", 10, "mask", "A classifier that reads padding", 1,
    "A good score on the test, and answers that change with the batch.",
    "With 300 pads appended, {wrong:.1f} of 100 answers change, masked {right:.0f}; F1 "
    "as padded in training: {f1:.3f} against {masked:.3f}.",
    "Mask. A good score is no test of it.",
    "test_classifier.py::test_company_and_padding_change_nothing")  # fmt: skip
def reads_padding():
    rows, seed = recorded("pooling")["rows"], torch.initial_seed()
    kinds = {row["kind"]: row for row in rows if row["seed"] == seed}
    unmasked, masked = kinds["unmasked"], kinds["encoder"]
    return {
        **{"wrong": unmasked["flips"], "right": masked["flips"]},
        **{"f1": unmasked["macro"], "masked": masked["macro"]},
    }


@slip("S2", "4.4.2", 11, "claim", "10⁸ characters, printed as 108", 1,
    "The numbers of the training run fit no data set.",
    "108 characters hold {wrong:.0f} windows of 256, 10⁸ hold {right:,.0f}; 170,000 "
    "batches of 32 read them {epochs:.0f} times.",
    "10⁸.",
    "data/test_text.py::"
    "test_every_character_but_the_first_is_the_target_of_one_window",
)  # fmt: skip
def lost_exponent():
    windows = {count: count // 256 for count in (108, 10**8)}
    epochs = 170_000 * 32 * 256 / 10**8
    return {"wrong": windows[108], "right": windows[10**8], "epochs": epochs}


@slip("S2", "4.4a", 11, "mask", "An argument mask that is never used", 0.1,
    "The training loss falls to nearly 0, and samples are nonsense.",
    "The last word moves outputs before it by up to {wrong:.2f}; in the book by "
    "{right:.0f}.",
    "Use it. Change the future, and see whether the past moves.",
    "test_gpt.py::test_no_position_sees_what_comes_later_and_each_sees_all_before",
)  # fmt: skip
def mask_ignored():
    book = MultiHeadAttention(16, 2, causal=True)
    careless = MultiHeadAttention(16, 2)  # of a class that was given mask=True
    x = torch.randn(1, 8, 16)
    other = x.clone()
    other[:, -1] = torch.randn(16)
    wrong, right = ((m(x) - m(other))[:, :-1].abs().max() for m in (careless, book))
    return {"wrong": wrong, "right": right}


@slip("S2", "4.4.1", 11, "scale", "The masked version loses its scale", 0.5,
    "Attention is nearly hard from the start, and learns slowly.",
    "Of 64 keys of width 64, a query attends to {wrong:.1f}; scaled, to {right:.1f} (e "
    "to the entropy).",
    "Scale before you mask.",
    "test_attention.py::test_causal_attention_is_that_of_a_mask")  # fmt: skip
def scale_dropped():
    q, key = torch.randn(50, 64, 64), torch.randn(50, 64, 64)
    mask = causal_mask(64)[0]
    weights = masked_softmax(q @ key.mT, mask)
    wrong, right = (
        entropy(w[:, -1]).exp()
        for w in (weights, scaled_dot_product_attention(q, key, key, mask)[1])
    )
    return {"wrong": wrong, "right": right}


@slip("S1, S4", "1.2", 11, "claim", "“Recurrent networks suit long distances”", 0.1,
    "One source says so, another the opposite.",
    "Before training, the first of 64 inputs moves the last output of a GRU {wrong:.0e} "
    "times as much as the last input, and of attention {right:.2f} times.",
    "A path of 63 steps against one of one step. Training changes the numbers.",
    "chapters/ch11/test_drawings.py::"
    "test_layers_of_the_convolution_carry_over_the_distance",
)  # fmt: skip
def long_distances():
    x = torch.randn(1, 64, 32, requires_grad=True)
    gru, attention = nn.GRU(32, 32, batch_first=True), MultiHeadAttention(32, 2)

    def first_by_last(output):
        felt = torch.autograd.grad(output[0, -1].square().sum(), x)[0][0].norm(dim=-1)
        return felt[0] / felt[-2]  # the last one asks, too

    return {"wrong": first_by_last(gru(x)[0]), "right": first_by_last(attention(x))}


# ---- chapters 12 to 14: longer texts -------------------------------------------


@slip("S0", "XL code (4)", 12, "code", "Two lengths handed over in the wrong order", 1,
    "Nothing, while ext_len is 0; else a query sees its own future.",
    "After a first segment of 8, with ext_len 3, {wrong:.0f} states are kept, where "
    "{right:.0f} are right.",
    "Pass them by name.",
    "test_transformer_xl.py::test_memory_keeps_the_last_states_that_are_not_read_again",
)  # fmt: skip
def lengths_swapped():
    def kept(memory, states, mem_len, ext_len):
        qlen, mlen = len(memory), len(states)  # the wrong way round
        end = mlen + max(0, qlen - ext_len)
        return torch.cat([memory, states])[max(0, end - mem_len) : end]

    arguments = torch.empty(0, 4), torch.randn(8, 4), 16, 3
    return {"wrong": len(kept(*arguments)), "right": len(update_memory(*arguments))}


@slip("S0", "XL code (3)", 12, "position", "Transformer-XL with absolute attention", 0.01,
    "The memory is a bag: its order makes no difference.",
    "Shuffle the memory, and outputs move by {wrong:.0e}; with relative scores, by up "
    "to {right:.2f}.",
    "R, u and v belong into the score.",
    "test_transformer_xl.py::test_attention_is_the_four_terms_forward_and_backward",
)  # fmt: skip
def no_distances():
    memory, x = torch.randn(1, 6, 16), torch.randn(1, 4, 16)
    shuffled = memory.flip(1)

    def moved(attention):
        both = (attention(x, torch.cat([m, x], dim=1)) for m in (memory, shuffled))
        return (next(both) - next(both)).abs().max()

    plain = MultiHeadAttention(16, 2, causal=True)
    return {"wrong": moved(plain), "right": moved(RelativeMultiHeadAttention(16, 2))}


@slip("S0", "XL code (4)", 12, "position", "Positions added to the memory in place", 1,
    "What is remembered drifts with every segment.",
    "After three segments a state holds its position {wrong:.0f} times; in the book's "
    "memory {right:.0f} time.",
    "Store states without positions; add them to a copy.",
    "test_transformer_xl.py::test_segments_with_memory_are_the_text_read_at_once",
)  # fmt: skip
def positions_in_place():
    times, new = torch.ones(2, 1), torch.ones(2, 1)  # stored with its position
    book = times.clone()
    for _ in range(3):
        times += 1
        book = update_memory(book, new, mem_len=8)
    return {"wrong": times.max(), "right": book.max()}


@slip("S0", "XL code (4)", 12, "code", "u and v are uninitialised memory", 1,
    "NaN at the first step, on some days.",
    "When PyTorch fills such memory with NaN, to show it, {wrong:.0%} of u is NaN; of "
    "the book's {right:.0%}.",
    "Begin with zeros.",
    "test_transformer_xl.py::test_u_and_v_begin_at_zero_and_maps_have_no_bias",
)  # fmt: skip
def uninitialised():
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        wrong = nn.Parameter(torch.empty(2, 8))  # torch.Tensor(2, 8), in other words
        right = RelativeMultiHeadAttention(16, 2).content_bias
    finally:
        torch.use_deterministic_algorithms(before)
    return {"wrong": wrong.isnan().float().mean(), "right": right.isnan().float().mean()}


@slip("S0", "XL code (3)", 12, "normalisation", "Queries from the raw stream", 0.5,
    "Deep layers attend to one key each.",
    "When the stream has grown 30 times, the entropy of attention is {wrong:.2f} nats; "
    "with normalised queries {right:.2f}.",
    "Normalise what queries are made of, as keys are.",
    "test_transformer_xl.py::test_norm_says_where_it_stands")  # fmt: skip
def raw_queries():
    attention, x = MultiHeadAttention(64, 4, bias=False), 30 * torch.randn(16, 8, 64)
    for each in (attention.query_map, attention.key_map):
        nn.init.normal_(each.weight, std=64**-0.5)
    key = F.layer_norm(x, (64,))
    wrong, right = (entropy(attention.weights(query, key)) for query in (x, key))
    return {"wrong": wrong, "right": right}


@slip("S0", "XL code (4)", 12, "code", "Masks of bytes", 1,
    "“masked_fill only supports boolean masks.”",
    "Of one mask, {wrong:.0f} is refused as bytes, {right:.0f} as booleans.",
    ".bool() for .byte().",
    "test_attention.py::test_a_mask_of_numbers_is_refused")  # fmt: skip
def byte_masks():
    hidden = torch.ones(2, 4).triu(1)
    fill = torch.zeros(2, 4).masked_fill
    return {
        "wrong": refused(RuntimeError, fill, hidden.byte(), -torch.inf),
        "right": refused(RuntimeError, fill, hidden.bool(), -torch.inf),
    }


@slip("S0", "XL code (4)", 12, "code", "Default arguments that crash", 1,
    "TypeError: unsupported operand types, None and None.",
    "Of one call without lengths, {wrong:.0f} fails; of the book's, {right:.0f}.",
    "A default is a value that works.",
    "test_transformer_xl.py::test_memory_begins_empty_and_grows_to_its_length",
)  # fmt: skip
def none_by_default():
    def longest(tgt_len=None, ext_len=None, mem_len=None):
        return tgt_len + ext_len + mem_len

    return {
        "wrong": refused(TypeError, longest),
        "right": refused(TypeError, TransformerXLConfig, 96),
    }


@slip("S0", "XL computation", 12, "claim", "Multiplications counted in two ways", 20,
    "A trick looks twice as good as it is.",
    "For 512 queries, 1,024 keys and widths of 64, the text's counts say {wrong:.0f} "
    "times fewer; multiplications alone, {right:.0f} times.",
    "Count additions on both sides, or on neither.",
    "test_transformer_xl.py::test_a_shift_puts_each_distance_at_its_key")  # fmt: skip
def counted_twice():
    t, s, d = 512, 1024, 64
    once = s * d * d + t * s * d  # W R for each distance, then each query with each
    return {"wrong": 2 * d * d * t * s / once, "right": (d * d + d) * t * s / once}


@slip("S0", "Reformer LSH", 13, "claim", "“32 or 64 of 64,000 keys are enough”", 0.2,
    "You keep the nearest keys, and most of the weight is elsewhere.",
    "Of 65,536 random keys of width 64, the 64 nearest get {right:.1%} of the weight, "
    "not {wrong:.0%}; with queries four times as long, {long:.0%}.",
    "It depends on how sharp a head is. Measure.",
    "chapters/ch13/test_lsh.py::test_recall_counts_the_heaviest_keys_that_are_met",
)  # fmt: skip
def nearest_keys():
    q, key = torch.randn(1, 50, 64), torch.randn(1, 65536, 64)
    right, long = (
        scaled_dot_product_attention(one, key, key)[1].topk(64).values.sum(dim=-1).mean()
        for one in (q, 4 * q)
    )
    return {"wrong": 1, "right": right, "long": long}


@slip("S0", "Reformer LSH", 13, "claim", "“O(L long L)”", 1,
    "A misprint that was copied; L log L is meant.",
    "When L doubles from 4,096, pairs grow {wrong:.0f} times in full attention, "
    "{right:.1f} times in chunks of 64 that look one back.",
    "The sort costs L log L, the scores 128 L.",
    "test_reformer.py::test_attention_is_a_softmax_over_those_that_one_meets",
)  # fmt: skip
def long_for_log():
    def met(length):  # a chunk meets itself and the one before
        return sum(64 * min(64 * (i + 1), 128) for i in range(length // 64))

    return {"wrong": 8192**2 / 4096**2, "right": met(8192) / met(4096)}


@slip("S0", "Reformer RevNet", 14, "code", "A reversible layer that can't be undone", 0.1,
    "Rebuilt activations are wrong, and so are all gradients.",
    "Undone as the text has it, inputs are off by {wrong:.2f}; as RevNet has it, by "
    "{right:.0e}.",
    "G reads y₁, which is known afterwards, and not x₁.",
    "test_reversible.py::test_the_inverse_gives_back_what_came")  # fmt: skip
def not_reversible():
    block = ReversibleBlock(FeedForward(8, 64), FeedForward(8, 64))
    x1, x2 = torch.randn(10, 8), torch.randn(10, 8)
    y1, y2 = x1 + block.f(x2), x2 + block.g(x1)
    # x1 = y1 − F(x2) and x2 = y2 − G(x1) need each other: take what is known
    wrong = (y1 - block.f(y2) - x1).abs().max()
    back, _ = block.inverse(*block(x1, x2))
    return {"wrong": wrong, "right": (back - x1).abs().max()}


@slip("S0", "Reformer RevNet", 14, "claim", "“y = x + f(x) can't be undone”", 0.01,
    "You think that two streams are needed.",
    "For f = sin(x)/2, 50 rounds of x = y − f(x) come from {wrong:.2f} off to {right:.0e}.",
    "It can, if f shrinks distances; two streams need no condition and one round.",
    "test_reversible.py::test_a_block_is_the_two_equations")  # fmt: skip
def residual_undone():
    x = torch.randn(100, dtype=torch.float64)
    y = x + x.sin() / 2
    guess = y
    for _ in range(50):
        guess = y - guess.sin() / 2
    return {"wrong": (y - x).abs().max(), "right": (guess - x).abs().max()}


# ---- chapters 15 and 18: large models ------------------------------------------


@slip("S2", "6.1", 15, "claim", "BERT with 340 million parameters", 1,
    "Your copy of BERT seems to lack five million.",
    "The configuration says {right:.1f} million, {heads:.1f} with its heads; {wrong:.0f} "
    "is rounded.",
    "Count them.",
    "test_bert.py::test_models_have_as_many_parameters_as_the_papers_say",
)  # fmt: skip
def bert_340():
    with torch.device("meta"):
        model = Bert(BertConfig(d_model=1024, heads=16, layers=24, d_ff=4096))
    whole = sum(p.numel() for p in model.parameters())
    heads = model.transform, model.transform_norm, model.follows
    extra = sum(p.numel() for head in heads for p in head.parameters())
    extra += model.output.bias.numel()
    return {"wrong": 340, "right": (whole - extra) / 1e6, "heads": whole / 1e6}


@slip("S2", "7", 18, "claim", "250 MB for sixteen matrices", 100,
    "You plan for 12 layers, and 46 would fit.",
    "Sixteen matrices of 1,000 × 1,000 take {right:.0f} MB, not {wrong:.0f}: four times "
    "that for four heads. Into 12 GB go {layers:.0f} layers of one head, not 12.",
    "Multiply it out: batch × heads × t² × 4 bytes.",
    "test_memory.py::test_every_work_has_its_own_bytes")  # fmt: skip
def sixteen_matrices():
    scores = torch.empty(16, 1000, 1000, device="meta")
    size = scores.element_size() * scores.numel()
    return {"wrong": 250, "right": size / 1e6, "layers": 12e9 // (4 * size)}


def gradient_in_pieces(divide, clear):
    """Return the gradient of eight pieces of a batch, and that of the batch."""
    model, x, y = nn.Linear(16, 1), torch.randn(64, 16), torch.randn(64, 1)
    F.mse_loss(model(x), y).backward()
    whole = model.weight.grad.clone()
    model.zero_grad()
    for some, wanted in zip(x.chunk(8), y.chunk(8), strict=True):
        if clear:
            model.zero_grad()
        (F.mse_loss(model(some), wanted) / (8 if divide else 1)).backward()
    return model.weight.grad, whole


@slip("S2", "7.2", 18, "batch", "Accumulation by calling zero_grad", 0.3,
    "A large batch costs eight passes, and learns like a small one.",
    "Cleared between pieces, the gradient is {wrong:.0%} off that of the batch; kept, "
    "{right:.0e}.",
    "Not calling it is the point: clear once a step.",
    "test_training.py::test_small_batches_together_are_the_step_of_the_large_one",
)  # fmt: skip
def cleared_between():
    off = []
    for divide, clear in ((False, True), (True, False)):
        pieces, whole = gradient_in_pieces(divide, clear)
        off.append((pieces - whole).norm() / whole.norm())
    return {"wrong": off[0], "right": off[1]}


@slip("S2", "7.2", 18, "scale", "Losses added up and not divided", 4,
    "Clipping bites at every step, or plain descent runs away.",
    "Eight pieces give {wrong:.1f} times the gradient of the batch; divided, "
    "{right:.1f} times.",
    "Divide each loss by the number of pieces, or weigh it by its tokens.",
    "test_training.py::test_small_batches_together_are_the_step_of_the_large_one",
)  # fmt: skip
def not_divided():
    times = []
    for divide in (False, True):
        pieces, whole = gradient_in_pieces(divide, clear=False)
        times.append(pieces.norm() / whole.norm())
    return {"wrong": times[0], "right": times[1]}
