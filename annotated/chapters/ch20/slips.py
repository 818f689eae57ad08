"""Chapter 20: slips of the five documents that the book follows, each shown failing.

``slips.tsv`` says each in words. The function of its name re-creates the idea in a few
lines of ours, beside its repair, which is the book's own code wherever it has some. It
returns what both give, and by name further numbers that the words need.
"""

import csv
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from annotated import attention as book
from annotated.attention import MultiHeadAttention, masked_softmax
from annotated.batches import Vocabulary, make_batch
from annotated.bert import Bert, BertConfig
from annotated.classifier import ClassifierConfig, TransformerClassifier, pool
from annotated.data.bpe import split_words
from annotated.masks import causal_mask, length_mask
from annotated.metrics import bleu
from annotated.page.notebook import recorded
from annotated.positions import PositionalEncoding, sinusoidal_encoding
from annotated.recipes import copy_task
from annotated.recurrent_attention import AdditiveAttention, LocationSensitiveAttention
from annotated.reversible import ReversibleBlock
from annotated.training import LabelSmoothing, evaluate, noam_schedule
from annotated.transformer import EncoderLayer as Layer
from annotated.transformer import FeedForward, Transformer, TransformerConfig
from annotated.transformer_xl import (
    RelativeMultiHeadAttention,
    TransformerXLConfig,
    update_memory,
)

SMALL = TransformerConfig(9, 9, 16, 2, 1, 32, dropout=0.0)


@dataclass(frozen=True)
class Slip:
    """A mistake of a source, in words; a row of ``slips.tsv``."""

    id: str
    source: str  #: "S0" to "S4"; "S1, S4" if both have it
    section: str  #: of the (first) source, a key of ``book/sources.yml``
    page: str  #: of the book, which teaches it: "04c_broken_masks"
    #: mask, position, loss, normalisation, scale, decoding, batch, claim or code
    family: str
    least: float  #: ``wrong`` and ``right`` differ by at least this
    title: str
    symptom: str  #: what one sees
    effect: str  #: what was measured; numbers of the run are filled in
    repair: str
    guard: str  #: the test that fails if this book makes the mistake

    @property
    def chapter(self) -> int:
        """The number of the chapter that teaches it."""
        return int(self.page[:2])

    def said(self, runs: list[dict[str, float]]) -> str:
        """Return the effect, with the medians of several ``runs`` filled in."""
        return self.effect.format(**{k: median(r[k] for r in runs) for k in runs[0]})

    def code(self) -> str:
        """Return the lines that a run runs."""
        return inspect.getsource(function_of(self.id))


def slips() -> dict[str, Slip]:
    """Return all slips, by their id."""
    text = Path(__file__).with_name("slips.tsv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    slips = [Slip(**r | {"least": float(r["least"])}) for r in rows]
    return {slip.id: slip for slip in slips}


def function_of(name: str) -> Callable:
    """Return the function of the slip called ``name``: ``no_tanh`` of "no-tanh"."""
    return globals()[name.replace("-", "_")]


def run(name: str, seed: int) -> dict[str, float]:
    """Return what the slip called ``name`` gives, ``wrong`` and ``right``.

    The random numbers are those of a ``seed``; nobody else's change.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        wrong, right, *more = function_of(name)()
    numbers = {"wrong": wrong, "right": right, **(more[0] if more else {})}
    return {key: float(number) for key, number in numbers.items()}


def refused(error: type[BaseException], *calls: Callable) -> tuple[bool, ...]:
    """Return which of the ``calls`` raise an ``error``."""
    answers = []
    for call in calls:
        try:
            call()
            answers.append(False)
        except error:
            answers.append(True)
    return tuple(answers)


def attended(q, key, mask=None):
    """Return the weights of the book's scaled attention."""
    return book.scaled_dot_product_attention(q, key, key, mask)[1]


def entropy(weights):
    """Return the mean entropy of the rows of ``weights``, in nats."""
    return -torch.xlogy(weights, weights).sum(dim=-1).mean()


def of_seed(rows):
    """Return those of the ``rows`` of a record that have the seed of this run."""
    return [row for row in rows if row["seed"] == torch.initial_seed()]


def largest(x, other):
    """Return the largest difference of two tensors."""
    return (x - other).abs().max()


def no_tanh():
    module = AdditiveAttention(8, 8, 16)
    query, keys = 4 * torch.randn(1, 4, 8), 4 * torch.randn(1, 5, 8)
    sums = module.query_map(query)[:, :, None] + module.key_map(keys)[:, None]
    wrong = module.direction(sums)[..., 0].softmax(dim=-1)  # no tanh
    return [largest(rows, rows[:, :1]) for rows in (wrong, module(query, keys)[1])]


def local_sensitive():
    query, keys = torch.ones(1, 1, 1), torch.ones(1, 7, 1)  # one sound, seven times
    window = (torch.arange(7) - 2).abs() <= 1  # around position 2
    moves_on = LocationSensitiveAttention(1, 1, hidden=1, filters=1, kernel=3)
    moves_on.convolution.weight[:] = torch.tensor([1.0, 0, 0])  # one to the left
    moves_on.location_map.weight[:], moves_on.direction.weight[:] = 5, 10
    previous = F.one_hot(torch.tensor([2]), 7).float()
    weights = moves_on(query, keys, previous=previous)[1][0, 0]
    return masked_softmax(torch.zeros(7), window)[3], weights[3]


def mean_grows():
    dots = {k: (torch.randn(2, 4000, k).prod(dim=0)).sum(dim=-1) for k in (16, 1024)}
    grows = dots[1024].std() / dots[16].std()
    return (dots[1024].mean() / dots[1024].std()).abs(), grows


def equal_entries():
    def spread(k, entries):
        q, key = (torch.randn(4000, entries).expand(-1, k) for _ in "qk")
        return ((q * key).sum(dim=-1) / k**0.5).std()

    return spread(1024, 1) / spread(16, 1), spread(1024, 1024) / spread(16, 16)


def by_position():
    x, order = torch.randn(1, 6, 8), torch.randperm(6)
    weights, shuffled = attended(x, x), attended(x[:, order], x[:, order])
    return largest(shuffled, weights), largest(shuffled, weights[:, order][..., order])


def other_keys():
    x, masks = torch.randn(200, 6, 16), (~torch.eye(6, dtype=torch.bool), None)
    return [attended(x, x, m).diagonal(dim1=1, dim2=2).mean() for m in masks]


def whole_width():
    heads, d_model = 8, 512
    q, key = torch.randn(50, heads, 4, 64), torch.randn(50, heads, 32, 64)
    wrong = (q @ key.mT / d_model**0.5).softmax(dim=-1)  # not by heads
    return entropy(wrong), entropy(attended(q, key))


def not_indented():
    text = "def __init__(self):\nself.heads = 4\n"
    texts = text, text.replace("\nself", "\n    self")
    return refused(SyntaxError, *(partial(compile, x, "", "exec") for x in texts))


def tiled_lengths():
    lengths, heads = torch.tensor([3, 9]), 3
    scores = torch.randn(2 * heads, 9, 9)  # all heads of the first sentence come first
    right = lengths.repeat_interleave(heads)
    padding = ~length_mask(right, 9)[:, 0]

    def on_padding(each):
        weights = masked_softmax(scores, length_mask(each, 9)[:, 0])
        return (weights * padding).sum(dim=-1).mean(dim=-1).max()

    return on_padding(lengths.repeat(heads)), on_padding(right)


def through_numpy():
    lengths = torch.tensor([3, 5], device="meta")  # any device but the CPU
    return refused(TypeError, lengths.numpy, lambda: length_mask(lengths, 5))


PADDED = length_mask(torch.tensor([3]), 5)[0]  # three words, two pads


def on_hidden(mask, change):
    """Return the weight on hidden keys, under what ``change`` makes of scores."""
    scores = torch.randn(100, mask.shape[-2], mask.shape[-1])
    weights = change(scores).softmax(dim=-1), masked_softmax(scores, mask)
    return [(w * ~mask).sum(dim=-1).mean() for w in weights]


def thrown_away():
    def change(scores):
        scores.masked_fill(~PADDED, -1e9)  # returns a new tensor
        return scores

    return on_hidden(PADDED, change)


def tiny_positive():
    return on_hidden(PADDED, lambda scores: scores.masked_fill(~PADDED, 1e-9))


def tiny_negative():
    mask = causal_mask(8)[0]
    return on_hidden(mask, lambda scores: scores.masked_fill(~mask, -1e-9))


def softmax_if_masked():
    def attend(q, mask=None):
        scores = q @ q.mT / q.shape[-1] ** 0.5
        if mask is not None:
            weights = masked_softmax(scores, mask)
        return weights @ q

    q = torch.randn(1, 3, 4)
    return refused(UnboundLocalError, lambda: attend(q), lambda: attended(q, q))


def norm_not_called():
    class Careless(FeedForward):
        def __init__(self):
            super().__init__(16, 32)
            self.norm = nn.LayerNorm(16)  # and never called

    def forgotten(module):
        with torch.enable_grad():
            module(torch.randn(1, 4, 16)).square().sum().backward()
        return sum(parameter.grad is None for parameter in module.parameters())

    return forgotten(Careless()), forgotten(Layer(SMALL))


def arguments_ignored():
    def careless(dropout, positions):  # uses neither
        return MultiHeadAttention(8, 2, dropout=0.1), PositionalEncoding(8, 200)

    (attention, wrong), x = careless(dropout=0, positions=400), torch.randn(1, 5, 8)
    moved = largest(attention(x), attention(x))
    return len(wrong.table), len(PositionalEncoding(8, 400).table), {"moved": moved}


def fill_in_place(scores, lengths):
    scores[torch.arange(scores.shape[-1]) >= lengths[:, None]] = -1e6
    return scores.softmax(dim=-1)


def in_place():
    scores, lengths = torch.randn(2, 5), torch.tensor([3, 4])
    before = scores.clone()
    masked_softmax(scores, length_mask(lengths, 5)[:, 0, 0])
    right = (scores != before).sum()
    fill_in_place(scores, lengths)
    return (scores != before).sum(), right


def empty_row():
    scores, none = torch.randn(1, 5), torch.tensor([0])
    right = masked_softmax(scores, length_mask(none, 5)[:, 0, 0]).sum()
    half = fill_in_place(scores.half(), none).isnan().all()
    return fill_in_place(scores, none).sum(), right, {"half": half}


def bare_except():
    def attempt(error):
        try:
            raise KeyboardInterrupt  # somebody wants to stop it
        except error:
            return "tried something else"

    errors = BaseException, TypeError  # `except:` is `except BaseException:`
    return refused(KeyboardInterrupt, *(partial(attempt, error) for error in errors))


def mask_in_training_only():
    # each message has a code of its own; nobody knows a letter's before it came
    b, t, v = 200, 24, 33
    plain = torch.randint(v, (b, t))
    code = torch.randint(v, (b, v)).gather(1, plain)
    # a position reads its plain letter, and the pair of letters before it
    before = F.pad(plain, (1, -1), value=-1)
    told = F.one_hot(F.pad(code, (1, -1)), v).float()
    # "find my letter" in one head; if it isn't there, the first value: no idea
    scores = F.pad(20.0 * (plain[:, :, None] == before[:, None]), (1, 0), value=10.0)
    values = torch.cat([torch.full((b, 1, v), 1 / v), told], dim=1)
    seen = (plain[:, :, None] == plain[:, None]).tril(-1).any(dim=-1)
    first = ~seen[:, :-1]  # nobody is told the last answer

    def loss(mask):
        chances = masked_softmax(scores, F.pad(mask, (1, 0), value=True)) @ values
        return -chances.gather(-1, code[..., None])[:, :-1, 0][first].log().mean()

    return loss(torch.ones(1, t, t, dtype=torch.bool)), loss(causal_mask(t)[0])


def index_range():
    i = torch.arange(512.0)  # dimension i gets the frequency of pair i
    angles = torch.arange(512.0)[:, None] / 10000 ** (2 * i / 512)
    wrong = torch.where(i % 2 == 0, angles.sin(), angles.cos())
    tables = wrong, sinusoidal_encoding(512, 512)
    return [(table.std(dim=0) < 0.01).float().mean() for table in tables]


def no_buffer():
    class Positions(nn.Module):
        table = sinusoidal_encoding(10, 8)  # neither parameter nor buffer

        def forward(self, x):
            return x + self.table[: x.shape[1]]

    def call(positions):
        model = nn.Sequential(positions, nn.Linear(8, 8)).bfloat16()
        return model(torch.zeros(1, 3, 8, dtype=torch.bfloat16))

    right = PositionalEncoding(8)
    return refused(RuntimeError, lambda: call(Positions()), lambda: call(right))


def position_zero():
    model = Transformer(
        TransformerConfig(copy_task.VOCAB, copy_task.VOCAB, **copy_task.COPY)
    )
    seed = torch.initial_seed()
    with torch.enable_grad():
        copy_task.train_copy(model, copy_task.copy_batches(seed, 250, 128))
    ((source, target),) = copy_task.copy_batches(1000 + seed, 1, 1000)
    written, (memory, mask) = source[:, :1], model.encode(source)
    for _ in range(9):  # what a decoder says that reads one symbol at a time
        x = model.target_embedding(written) * model.config.d_model**0.5
        x = model.positions(x, positions=torch.zeros_like(written))
        x = model.decoder(x, memory, causal_mask(written.shape[1]), mask)
        following = model.output(x[:, -1:]).argmax(dim=-1)
        written = torch.cat([written, following], dim=1)
    right = copy_task.exact_copies(model, 1000 + seed) / 1000
    return (written == target).all(dim=1).float().mean(), right


def odd_width():
    def table(length, d_model):
        angles = torch.rand(length, (d_model + 1) // 2)
        made = torch.zeros(length, d_model)
        made[:, 0::2], made[:, 1::2] = angles.sin(), angles.cos()

    def names(make):
        try:
            return make(5, 7)
        except (RuntimeError, ValueError) as error:
            return "d_model" in str(error)

    return names(table), names(sinusoidal_encoding)


def dropout_not_passed():
    default = Layer(SMALL, lambda: MultiHeadAttention(16, 2, dropout=0.1))
    x = torch.randn(4, 10, 16)
    return [largest(layer(x), layer(x)) for layer in (default, Layer(SMALL))]


def own_layer_norm():
    def norm(x):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (x.std(dim=-1, keepdim=True) + 1e-6)  # of n − 1, and ε outside

    x, wide = torch.randn(500, 8), torch.randn(500, 512)
    return norm(x).std(), nn.LayerNorm(8)(x).std(), {"wide": norm(wide).std()}


def vocabularies_as_lengths():
    model = Transformer(TransformerConfig(10, 10, 16, 2, 2, 32))
    long, tens = torch.ones(1, 50).long(), torch.full((1, 3), 10)
    (error,) = refused(ValueError, lambda: model(tens, tens))
    return 10, model(long, long).shape[1], {"refused": error}


def not_a_module():
    module = isinstance(nn.ModuleList(), nn.Module)
    tensor = isinstance(nn.Parameter(torch.ones(1)), torch.Tensor)
    return 0, module + tensor


def cross_attention_unmasked():
    model = Transformer(SMALL)
    source, target = torch.randint(1, 9, (4, 5)), torch.randint(1, 9, (4, 6))
    memory, mask = model.encode(F.pad(source, (0, 20)))
    logits = (model.decode(target, memory, each) for each in (None, mask))
    return [largest(one, model(source, target)) for one in logits]


def embeddings_too_large():
    right = Transformer(TransformerConfig(1000, 9, 32, 2, 1, 32)).source_embedding
    positions = sinusoidal_encoding(10, 32).square().mean().sqrt()
    tables = nn.Embedding(1000, 32), right
    return [table.weight.std() * 32**0.5 / positions for table in tables]


def glorot_embeddings():
    right = Transformer(TransformerConfig(99, 9, 512, 2, 1, 32)).source_embedding
    tables = (nn.init.xavier_uniform_(torch.empty(v, 512)) for v in (30_000, 10))
    sizes = [x.std() * 512**0.5 for x in (*tables, right.weight)]
    return sizes[0], sizes[2], {"small": sizes[1]}


def two_linear_maps():
    network, x = FeedForward(16, 64), torch.randn(100, 16)
    one = x @ (network.outer.weight @ network.inner.weight).T
    one = one + network.outer(network.inner.bias)
    outputs = network.outer(network.inner(x)), network(x)
    return [(y - one).norm() / one.norm() for y in outputs]


def two_nonlinearities():
    module, x = MultiHeadAttention(16, 2, bias=False), torch.randn(1, 5, 16)

    def attend(x):
        q, k, v = module.project(x)
        return (q @ k.mT @ v).norm()  # no softmax

    return 2, attend(2 * x) / attend(x)


def axis_alone():
    x, norms = 3 + 2 * torch.randn(16, 8), (nn.BatchNorm1d(8), nn.LayerNorm(8))
    return [largest(norm(x), norm.eval()(x)) for norm in norms]


def lost_labels():
    target, batch = torch.tensor([[1, 4, 2, 0]]), SimpleNamespace()
    batch.trg = target[:, :-1]
    batch.trg_mask = target[:, 1:]  # trg_y is meant
    batch.trg_mask = batch.trg != 0
    right = make_batch([("a", "a")], Vocabulary("a"), Vocabulary("a"))
    return refused(AttributeError, lambda: batch.trg_y, lambda: right.labels)


def backward_in_evaluation():
    model = Transformer(TransformerConfig(5, 5, 8, 2, 2, 16, max_len=10))
    optimizer, seed = torch.optim.Adam(model.parameters(), 1e-3), torch.initial_seed()
    five, loss = {"vocab_size": 5}, copy_task.next_symbol_loss

    def gradient(count, step=False):
        for batch in copy_task.copy_batches(seed + count, count, 30, **five):
            with torch.enable_grad():
                loss(model, batch).backward()  # whatever it is for
            if step:
                optimizer.step()
                optimizer.zero_grad()
        grads = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        optimizer.zero_grad()
        return torch.tensor([*grads, 0.0]).norm()

    gradient(20, step=True)
    own, waits = gradient(1), gradient(5)
    evaluate(model, loss, copy_task.copy_batches(seed, 5, 30, **five))
    return waits / own, gradient(0) / own


def noam_at_zero():
    def rate(step):
        return 512**-0.5 * min(step**-0.5, step * 4000**-1.5)

    adam = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1.0)
    calls = lambda: LambdaLR(adam, rate), lambda: noam_schedule(adam, 512, 4000)
    return refused(ZeroDivisionError, *calls)  # LambdaLR begins with step 0


def log_of_zero():
    smoothing, labels = LabelSmoothing(5, 0, 0.4), torch.tensor([2, 1, 0])
    chances = torch.tensor([0, 0.2, 0.7, 0.1, 0]).expand(3, 5)

    def loss(guard):
        logs = chances.masked_fill(chances == 0, guard).log()
        return F.kl_div(logs, smoothing.distribution(labels), reduction="sum")

    guarded = {"nine": loss(1e-9), "twelve": loss(1e-12)}
    return loss(0).isnan(), smoothing(torch.randn(3, 5), labels).isnan(), guarded


def seven_from_four():
    (row,) = of_seed(recorded("copy_task")["main"])
    four, ten, fourteen = (row["lengths"][n]["exact"] for n in ("4", "10", "14"))
    return fourteen, ten, {"four": four}


def ten_epochs():
    after = {row["steps"]: row for row in of_seed(recorded("copy_task")["source"])}
    return after[200]["exact"], after[800]["exact"], {"loss": after[200]["test_loss"]}


def one_empty_name():
    def own_ids(special):
        ids = {symbol: i for i, symbol in enumerate(special)}
        return sum(ids[symbol] == i for i, symbol in enumerate(special)) / len(special)

    return own_ids([""] * 4), own_ids(Vocabulary.SPECIAL)


def end_cut_off():
    texts = ["a" * int(n) for n in torch.randint(1, 16, (1000,))]
    cut = [["<start>", *text, "<end>"][:10] for text in texts]
    right = make_batch([(t, t) for t in texts], *[Vocabulary("a")] * 2).labels
    ends = (right == Vocabulary.end).any(dim=1).float().mean()
    return sum("<end>" not in one for one in cut) / 1000, 1 - ends


def question_mark():
    text = "who won ? who ? it was who, not me. who?"

    def split(text):
        return "".join(f" {c}" if c in ",.!" else c for c in text).split()

    cut = (function(text) for function in (split, split_words))
    return [len({w.strip("▁") for w in words if "who" in w}) for words in cut]


def bleu_scale():
    words = "the cat sat on the mat".split()
    return 1, bleu([words], [[words]])["score"]


def positions_on_cpu():
    tokens = torch.ones(1, 3, dtype=torch.long, device="meta")
    with torch.device("meta"):
        right = TransformerClassifier(ClassifierConfig(9, 2))
    positions = torch.arange(3, device="cpu")  # what torch.arange(t) makes
    return [x.device != tokens.device for x in (positions, right(tokens))]


def mean_with_padding():
    states = torch.randn(1, 3, 16)
    padded, real = F.pad(states, (0, 0, 0, 20)), torch.arange(23)[None] < 3
    alone, means = states.mean(dim=1), (padded.mean(dim=1), pool(padded, real))
    return [(one - alone).norm() / alone.norm() for one in means]


def reads_padding():
    kinds = {row["kind"]: row for row in of_seed(recorded("pooling")["rows"])}
    unmasked, right = kinds["unmasked"], kinds["encoder"]
    f1 = {"f1": unmasked["macro"], "masked": right["macro"]}
    return unmasked["flips"], right["flips"], f1


def lost_exponent():
    epochs = 170_000 * 32 * 256 / 10**8
    return 108 // 256, 10**8 // 256, {"epochs": epochs}


def mask_ignored():
    class Careless(MultiHeadAttention):
        def __init__(self, *sizes, mask=False):
            super().__init__(*sizes)  # mask is never used

    x, other = torch.randn(2, 1, 8, 16)
    other[:, :-1] = x[:, :-1]  # another last word
    modules = Careless(16, 2, mask=True), MultiHeadAttention(16, 2, causal=True)
    return [largest(m(x)[:, :-1], m(other)[:, :-1]) for m in modules]


def scale_dropped():
    (q, key), mask = torch.randn(2, 50, 64, 64), causal_mask(64)[0]
    weights = masked_softmax(q @ key.mT, mask), attended(q, key, mask)
    return [entropy(w[:, -1]).exp() for w in weights]


def long_distances():
    x = torch.randn(1, 64, 32, requires_grad=True)
    gru, attention = nn.GRU(32, 32, batch_first=True), MultiHeadAttention(32, 2)

    def first_by_last(module):
        with torch.enable_grad():
            output = module(x)[0] if module is gru else module(x)
            (felt,) = torch.autograd.grad(output[0, -1].square().sum(), x)
        return felt[0, 0].norm() / felt[0, -2].norm()  # the last one asks, too

    return first_by_last(gru), first_by_last(attention)


def lengths_swapped():
    def kept(memory, states, mem_len, ext_len):
        qlen, mlen = len(memory), len(states)  # the wrong way round
        end = mlen + max(0, qlen - ext_len)
        return torch.cat([memory, states])[max(0, end - mem_len) : end]

    states = torch.empty(0, 4), torch.randn(8, 4)
    return [len(update(*states, 16, 3)) for update in (kept, update_memory)]


def no_distances():
    memory, x = torch.randn(1, 6, 16), torch.randn(1, 4, 16)
    orders = [torch.cat([m, x], dim=1) for m in (memory, memory.flip(1))]
    plain = MultiHeadAttention(16, 2, causal=True)
    modules = plain, RelativeMultiHeadAttention(16, 2)
    return [largest(*(m(x, both) for both in orders)) for m in modules]


def positions_in_place():
    times, new = torch.ones(2, 1), torch.ones(2, 1)  # stored with its position
    right = times.clone()
    for _ in range(3):  # segments
        times += 1
        right = update_memory(right, new, mem_len=8)
    return times.max(), right.max()


def uninitialised():
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)  # fills such memory with NaN
    try:
        u = (
            nn.Parameter(torch.empty(2, 8)),
            RelativeMultiHeadAttention(16, 2).content_bias,
        )
    finally:
        torch.use_deterministic_algorithms(before)
    return [x.isnan().float().mean() for x in u]


def raw_queries():
    module, x = MultiHeadAttention(64, 4, bias=False), 30 * torch.randn(16, 8, 64)
    for each in (module.query_map, module.key_map):
        nn.init.normal_(each.weight, std=64**-0.5)
    key = F.layer_norm(x, (64,))
    return [entropy(module.weights(query, key)) for query in (x, key)]


def byte_masks():
    x, hidden = torch.zeros(2, 4), torch.ones(2, 4).triu(1)
    masks = hidden.byte(), hidden.bool()
    return refused(RuntimeError, *(partial(x.masked_fill, m, -1) for m in masks))


def none_by_default():
    def longest(tgt_len=None, ext_len=None, mem_len=None):
        return tgt_len + ext_len + mem_len

    return refused(TypeError, longest, lambda: TransformerXLConfig(96))


def counted_twice():
    t, s, d = 512, 1024, 64
    once = s * d * d + t * s * d  # W R for each distance, then each query with each
    return 2 * d * d * t * s / once, (d * d + d) * t * s / once


def nearest_keys():
    q, key = torch.randn(1, 50, 64), torch.randn(1, 65536, 64)
    top = [attended(x, key).topk(64).values.sum(dim=-1).mean() for x in (q, 4 * q)]
    return 1, top[0], {"long": top[1]}


def not_reversible():
    block = ReversibleBlock(FeedForward(8, 64), FeedForward(8, 64))
    x1, x2 = torch.randn(2, 10, 8)
    y1, y2 = x1 + block.f(x2), x2 + block.g(x1)
    # x1 = y1 − F(x2) and x2 = y2 − G(x1) need each other: take what is known
    wrong, (right, _) = y1 - block.f(y2), block.inverse(*block(x1, x2))
    return largest(wrong, x1), largest(right, x1)


def bert_340():
    with torch.device("meta"):
        model = Bert(BertConfig(d_model=1024, heads=16, layers=24, d_ff=4096))
    parts = model, model.transform, model.transform_norm, model.follows
    whole, *heads = (sum(p.numel() for p in part.parameters()) for part in parts)
    right = whole - sum(heads) - model.output.bias.numel()
    return 340, right / 1e6, {"heads": whole / 1e6}


def sixteen_matrices():
    scores = torch.empty(16, 1000, 1000, device="meta")
    size = scores.element_size() * scores.numel()
    return 250, size / 1e6, {"layers": 12e9 // (4 * size)}


def gradient_in_pieces(divide, clear):
    """Return the gradient of eight pieces of a batch, and that of the batch."""
    model, x, y = nn.Linear(16, 1), torch.randn(64, 16), torch.randn(64, 1)
    with torch.enable_grad():
        (whole,) = torch.autograd.grad(F.mse_loss(model(x), y), model.weight)
        for some, wanted in zip(x.chunk(8), y.chunk(8), strict=True):
            if clear:
                model.zero_grad()
            (F.mse_loss(model(some), wanted) / (8 if divide else 1)).backward()
    return model.weight.grad, whole


def cleared_between():
    ways = gradient_in_pieces(False, clear=True), gradient_in_pieces(True, clear=False)
    return [(pieces - whole).norm() / whole.norm() for pieces, whole in ways]


def not_divided():
    ways = (gradient_in_pieces(divide, clear=False) for divide in (False, True))
    return [pieces.norm() / whole.norm() for pieces, whole in ways]
