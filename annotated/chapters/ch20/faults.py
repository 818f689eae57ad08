"""The corpus: a small model for each fault that people make, for the probes to find.

Every fault changes one thing in ``Small``, a decoder (or an encoder) that is sound: it
knows padding (id 0) on either side, positions, packed documents and a cache. A row has
the family whose probe must find it, what is wrong, and the public report of the same
fault, where there is one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

V, T, D, H = 40, 64, 32, 4
Case = tuple[Callable, Any, dict[str, Any]]


def texts(rows: int = 2, length: int = T, below: int = V) -> Tensor:
    """Return ids from 3 on, (rows, length): 0 is padding, 1 starts, 2 ends."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(3, below, (rows, length), generator=generator)


def pair() -> tuple[Tensor, Tensor]:
    """Return sources, (2, 20), and targets, (2, 24)."""
    return texts(2, 20), texts(2, 24)


class Layer(nn.Module):
    """A pre-norm block's maps."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)


class Small(nn.Module):
    """A decoder whose every part is a method, so that a fault is one method."""

    causal, layers_, pad = True, 2, 0

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.places = nn.Embedding(V, D), nn.Embedding(256, D)
        self.layers = nn.ModuleList(Layer() for _ in range(self.layers_))
        self.norm, self.output = nn.LayerNorm(D), nn.Linear(D, V)
        self.more()

    def more(self) -> None:
        """Add what a fault needs."""

    # ---- what a query may see, and where a token stands ----

    def real(self, x: Tensor) -> Tensor:
        return x != self.pad

    def visible(self, x: Tensor, documents: Tensor | None = None) -> Tensor:
        """True = may attend, (b, 1, t, t); a query always sees itself."""
        t = x.shape[1]
        may = self.real(x)[:, None, None] & self.past(t, t)
        if documents is not None:
            may = may & (documents[:, None, :, None] == documents[:, None, None])
        return may | torch.eye(t, dtype=torch.bool)

    def past(self, t: int, s: int) -> Tensor:
        every = torch.ones(t, s, dtype=torch.bool)
        return every.tril(s - t) if self.causal else every

    def place(self, x: Tensor, documents: Tensor | None = None) -> Tensor:
        """Positions count from the first real token of each document, (b, t)."""
        count = self.real(x).long().cumsum(1)
        if documents is not None:
            first = documents[:, 1:] != documents[:, :-1]
            first = F.pad(first, (1, 0), value=False)
            count = count - torch.where(first, count - 1, 0).cummax(1).values
        return (count - 1).clamp(min=0)

    # ---- the blocks ----

    def embed(self, x: Tensor, place: Tensor) -> Tensor:
        return self.tokens(x) + self.places(place)

    def weights(self, scores: Tensor, may: Tensor) -> Tensor:
        return scores.masked_fill(~may, -torch.inf).softmax(-1)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (H, D // H)).transpose(1, 2)  # (b, h, t, k)

    def join(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(2)

    def attend(self, layer: Layer, x: Tensor, may: Tensor, past: Any = None):
        q, k, v = (self.split(y) for y in layer.qkv(layer.first(x)).chunk(3, -1))
        if past is not None:
            k, v = self.remember(past, k, v)
        scores = q @ k.mT / (D // H) ** 0.5
        return layer.out(self.join(self.weights(scores, may) @ v))

    def network(self, layer: Layer, x: Tensor) -> Tensor:
        return layer.down(layer.up(layer.second(x)).relu())

    def block(self, layer: Layer, x: Tensor, may: Tensor, past: Any = None) -> Tensor:
        x = x + self.attend(layer, x, may, past)
        return x + self.network(layer, x)

    def states(self, x: Tensor, documents: Tensor | None = None) -> Tensor:
        y, may = self.embed(x, self.place(x, documents)), self.visible(x, documents)
        for layer in self.layers:
            y = self.block(layer, y, may)
        return self.norm(y)

    def forward(self, x: Tensor, documents: Tensor | None = None) -> Any:
        return self.output(self.states(x, documents))

    # ---- the cache ----

    def remember(self, past: dict, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if "k" in past:
            k, v = torch.cat([past["k"], k], 2), torch.cat([past["v"], v], 2)
        past["k"], past["v"] = k, v
        return k, v

    def new_places(self, x: Tensor, read: int) -> Tensor:
        return torch.arange(read, read + x.shape[1]).expand(x.shape)

    def new_visible(self, t: int, s: int) -> Tensor:
        return self.past(t, s)

    def begin(self) -> SimpleNamespace:
        return SimpleNamespace(read=0, layers=[{} for _ in self.layers])

    def step(self, x: Tensor, state: SimpleNamespace | None) -> tuple[Tensor, Any]:
        state = state or self.begin()
        y = self.embed(x, self.new_places(x, state.read))
        state.read += x.shape[1]
        for layer, past in zip(self.layers, state.layers, strict=True):
            held = past["k"].shape[2] if "k" in past else 0
            may = self.new_visible(x.shape[1], held + x.shape[1])
            y = self.block(layer, y, may, past)
        return self.output(self.norm(y)), state

    def reorder(self, state: SimpleNamespace, rows: Tensor) -> SimpleNamespace:
        state.layers = [{n: x[rows] for n, x in past.items()} for past in state.layers]
        return state


class SmallEncoder(Small):
    """The same, in both directions."""

    causal = False


class Pooled(SmallEncoder):
    """A classifier by the mean of the real tokens."""

    def pool(self, y: Tensor, real: Tensor) -> Tensor:
        y = y.masked_fill(~real[..., None], 0.0)
        return y.sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def forward(self, x: Tensor, documents: Tensor | None = None) -> Tensor:
        return self.output(self.pool(self.states(x), self.real(x)))


class Translator(Small):
    """An encoder, and a decoder that looks at its states."""

    def more(self) -> None:
        self.source = nn.ModuleList(Layer() for _ in range(self.layers_))
        self.cross = nn.ModuleList(Layer() for _ in range(self.layers_))

    def memory(self, source: Tensor) -> Tensor:
        y, may = self.embed(source, self.place(source)), self.source_mask(source)
        for layer in self.source:
            y = self.block(layer, y, may)
        return y

    def source_mask(self, source: Tensor) -> Tensor:
        own = torch.eye(source.shape[1], dtype=torch.bool)
        return self.real(source)[:, None, None] | own

    def seen(self, source: Tensor, t: int) -> Tensor:
        may = self.real(source)[:, None, None]
        return may | ~may.any(-1, keepdim=True)

    def look(self, layer: Layer, y: Tensor, memory: Tensor, may: Tensor) -> Tensor:
        q = self.split(layer.qkv(layer.first(y))[..., :D])
        k, v = (self.split(z) for z in layer.qkv(memory)[..., D:].chunk(2, -1))
        found = self.weights(q @ k.mT / (D // H) ** 0.5, may) @ v
        return y + self.network(layer, layer.out(self.join(found)) + y)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, may = self.memory(source), self.visible(target)
        y = self.embed(target, self.place(target))
        for layer, cross in zip(self.layers, self.cross, strict=True):
            y = self.block(layer, y, may)
            y = self.look(cross, y, memory, self.seen(source, target.shape[1]))
        return self.output(self.norm(y))


def cross_entropy(f: Callable, tokens: Any) -> Tensor:
    """The right loss: a mean over the next tokens, without padding."""
    text = tokens[1] if isinstance(tokens, tuple) else tokens
    logits = f(*tokens) if isinstance(tokens, tuple) else f(tokens)
    return F.cross_entropy(
        logits[:, :-1].flatten(0, 1), text[:, 1:].flatten(), ignore_index=0
    )


# ---- the table -----------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """One row of the corpus."""

    name: str  #: unique
    family: str  #: the probe that must find it
    what: str  #: what is wrong, in a line
    report: str  #: of the same fault in public: owner/repo#number, or a title
    make: Callable[[], Case]  #: what to call, its tokens, what the probes are told


FAULTS: dict[str, Fault] = {}


def fault(family: str, what: str, report: str = "", kind: str = "causal", **told: Any):
    """Add a class (a fault in a model), or a function (any case), to the corpus."""

    def add(made: Any) -> Any:
        def make() -> Case:
            if not isinstance(made, type):
                return made()
            model, more = made(), dict(told)
            if more.pop("cache", False):
                more |= {"step": model.step, "reorder": model.reorder}
            if more.pop("packed", False):
                more["segments"] = model
            if kind == "translation":
                return model, pair(), more | {"kind": kind}
            return model, texts(), more | ({} if kind == "causal" else {"kind": kind})

        name = made.__name__
        FAULTS[name] = Fault(name, family, what, report, make)
        return made

    return add


# ---- future --------------------------------------------------------------------------

future = partial(fault, "future")


@future("the result of masked_fill is thrown away")
class NoMask(Small):
    def weights(self, scores, may):
        scores.masked_fill(~may, -torch.inf)
        return scores.softmax(-1)


@future("the mask's diagonal is one too high")
class OneAhead(Small):
    def past(self, t, s):
        return torch.ones(t, s, dtype=torch.bool).tril(s - t + 1)


@future("the causal mask is made in training mode alone")
class MaskInTraining(Small):
    def past(self, t, s):
        return super().past(t, s) if self.training else torch.ones(t, s).bool()


@future("training mode forgets the mask that evaluation has", train=True)
class MaskInEvaluation(Small):
    def past(self, t, s):
        return torch.ones(t, s).bool() if self.training else super().past(t, s)


@future(
    "the mask is causal between chunks of 8 and full inside", "karpathy/nanochat#844"
)
class Chunks(Small):
    size = 8

    def past(self, t, s):
        i = torch.arange(s) // self.size
        return i[s - t :, None] >= i


@future("the same with chunks of 32", "karpathy/nanochat#844")
class LongChunks(Chunks):
    size = 32


@future("a window by q − k ≤ w lets all later keys in", "pytorch/pytorch#152528")
class Window(Small):
    def past(self, t, s):
        i = torch.arange(s)
        return i[s - t :, None] - i <= 8


@future("later keys get −8 added to their scores, not −∞")
class SoftMask(Small):
    def weights(self, scores, may):
        return (scores - 8.0 * ~may).softmax(-1)


@future("the softmax is over queries")
class WrongAxis(Small):
    def weights(self, scores, may):
        return scores.masked_fill(~may, -torch.inf).softmax(-2)


@future("a normalisation over positions and features together")
class NormOverTime(Small):
    def network(self, layer, x):
        return super().network(layer, F.layer_norm(x, x.shape[1:]))


@future("a mean over the whole text is added")
class GlobalMean(Small):
    def network(self, layer, x):
        return super().network(layer, x) + 0.1 * x.mean(1, keepdim=True)


@future("a maximum over the whole text gates the network")
class GlobalGate(Small):
    def network(self, layer, x):
        return super().network(layer, x) * x.amax(1, keepdim=True).sigmoid()


@future("a convolution is centred")
class Centred(Small):
    def more(self):
        self.conv = nn.Conv1d(D, D, 3, padding=1)

    def network(self, layer, x):
        return super().network(layer, x) + self.conv(x.mT).mT


@future("a shift by roll brings the last token to the first", "HomebrewML/Olmax#78")
class Circular(Small):
    def embed(self, x, place):
        y = super().embed(x, place)
        return y + 0.3 * y.roll(1, 1)


@future("position 9 alone reads position 10", "HomebrewML/Olmax#78")
class OnePair(Small):
    def past(self, t, s):
        may = super().past(t, s).clone()
        if t == s > 10:
            may[9, 10] = True
        return may


@future("a recurrent layer reads in both directions")
class BothWays(Small):
    def more(self):
        self.rnn = nn.GRU(D, D // 2, batch_first=True, bidirectional=True)

    def network(self, layer, x):
        return super().network(layer, x) + self.rnn(x)[0]


@future("keys are chosen by a top-k over the whole text", "piotrpiekos/MoSA#3")
class TopKeys(Small):
    def more(self):
        self.router = nn.Linear(D, 1)

    def attend(self, layer, x, may, past=None):
        score = self.router(x)[..., 0]
        kept = score >= score.topk(max(1, x.shape[1] // 4), dim=1).values[:, -1:]
        own = torch.eye(x.shape[1], dtype=torch.bool)
        return super().attend(
            layer, x * score.sigmoid()[..., None], may & kept[:, None, None] | own
        )


@future("experts choose tokens, later ones too", "allenai/OLMoE#46")
class ExpertChoice(Small):
    def more(self):
        self.router = nn.Linear(D, 2)

    def network(self, layer, x):
        score = self.router(x).softmax(-1)
        half = max(1, x.shape[1] // 2)
        kept = torch.zeros_like(score)
        kept.scatter_(1, score.topk(half, dim=1).indices, 1.0)
        return super().network(layer, x) * (score * kept).sum(-1, keepdim=True)


@future(
    "tokens skip a block by their rank in the text", "sramshetty/mixture-of-depths#4"
)
class MixtureOfDepths(Small):
    def more(self):
        self.router = nn.Linear(D, 1)

    def block(self, layer, x, may, past=None):
        score = self.router(x)
        kept = score >= score.median(1, keepdim=True).values
        return torch.where(kept, super().block(layer, x, may) * score.sigmoid(), x)


@future("chunks are cut from keys sorted by content, as hashing does")
class Sorted(Small):
    def attend(self, layer, x, may, past=None):
        order = x[..., 0].argsort(1).argsort(1) // 8  # (b, t)
        near = order[:, None, :, None] == order[:, None, None]
        own = torch.eye(x.shape[1], dtype=torch.bool)
        return super().attend(layer, x, may & near | own)


@future("positions are divided by the length of the text")
class Relative(Small):
    def embed(self, x, place):
        share = place[..., None] / x.shape[1]
        return self.tokens(x) + self.places(place) * (1 + share)


@future("a transform over the text mixes all positions")
class Fourier(Small):
    def network(self, layer, x):
        return super().network(layer, x) + 0.1 * torch.fft.fft(x, dim=1).real


@future("cumulative sums are divided by the sum of the whole text")
class TotalSum(Small):
    def network(self, layer, x):
        y = x.exp()
        return super().network(layer, x) + y.cumsum(1) / y.sum(1, keepdim=True)


# ---- reach ---------------------------------------------------------------------------

reach = partial(fault, "reach")


@reach("the input is shifted once more inside", "huggingface/transformers#47395")
class ShiftedTwice(Small):
    def forward(self, x, documents=None):
        return super().forward(F.pad(x, (1, 0), value=1)[:, :-1])


@reach("the last block's result is thrown away: attention is never added")
class NoMixing(Small):
    def block(self, layer, x, may, past=None):
        self.attend(layer, x, may)
        return x + self.network(layer, x)


@reach("no later query sees token 0")
class FirstUnseen(Small):
    def past(self, t, s):
        may = super().past(t, s).clone()
        may[1:, 0] = False
        return may


@reach("tokens enter as 0")
class NoTokens(Small):
    def embed(self, x, place):
        return self.tokens(x * 0) + self.places(place)


@reach("every second token is replaced by a constant")
class EverySecond(Small):
    def embed(self, x, place):
        x = x.clone()
        x[:, 1::2] = 3
        return super().embed(x, place)


@reach("the decoder never sees the source", kind="translation")
class NoSource(Translator):
    def look(self, layer, y, memory, may):
        return super().look(layer, y, memory * 0, may)


@reach("the source's last token is cut off with its end", kind="translation")
class SourceCut(Translator):
    def forward(self, source, target):
        return super().forward(source[:, :-1], target)


@reach("the classifier reads the first token before attention", kind="encoder")
class PooledTooEarly(Pooled):
    def forward(self, x, documents=None):
        return self.output(self.embed(x, self.place(x))[:, 0])


# ---- scores --------------------------------------------------------------------------

SCORED = 4  # ids of the models that score


class Scorer(Small):
    """Log-chances of whole texts, (b,); the first token's chance is 1 / v."""

    def chances(self, x: Tensor) -> Tensor:
        """Chances of the next token at each position, (b, t, v)."""
        return (3 * self.output(self.states(x))[..., :SCORED]).softmax(-1)

    def taken(self, x: Tensor) -> Tensor:
        """The chance of each token after the first, (b, t − 1)."""
        return self.chances(x)[:, :-1].gather(-1, x[:, 1:, None])[..., 0]

    def forward(self, x, documents=None):
        free = torch.full((len(x),), 1 / SCORED).log()
        return free + self.taken(x).log().sum(1)

    def real(self, x):
        return torch.ones_like(x, dtype=torch.bool)


def score(what: str, report: str = ""):
    """Add a class that scores texts."""

    def add(made: type) -> type:
        def make() -> Case:
            tokens = torch.arange(8).reshape(2, 4).repeat(1, 2) % SCORED
            return made(), tokens, {"vocabulary": SCORED}

        FAULTS[made.__name__] = Fault(made.__name__, "scores", what, report, make)
        return made

    return add


def seen_before(x: Tensor) -> Tensor:
    """Whether each pair of tokens came before in its text, (b, t − 1)."""
    pairs = x[:, :-1] * SCORED + x[:, 1:]
    same = pairs[:, :, None] == pairs[:, None]
    return same.tril(-1).any(-1)


@score("labels aren't shifted: each token is scored where it is read")
class NotShifted(Scorer):
    def taken(self, x):
        return self.chances(x).gather(-1, x[..., None])[..., 0]


@score("a cache is asked for the target alone", "openai/parameter-golf#886")
class CacheOfTarget(Scorer):
    def taken(self, x):
        p = super().taken(x)
        return torch.where(seen_before(x), 0.5 * p + 0.5, p)


@score("counts of n-grams are used as chances", "openai/parameter-golf#1147")
class CountsAsChances(Scorer):
    def taken(self, x):
        seen = seen_before(x).float().cumsum(1)
        return super().taken(x) * (1 + seen)


@score("each token is guessed from both neighbours", "openai/parameter-golf#1053")
class Neighbours(Scorer):
    def forward(self, x, documents=None):
        near = x.roll(1, 1)
        near[:, :1] = x[:, 1:2]
        return (torch.where(x == near, 0.97, 0.01) + 0 * self.norm.bias[0]).log().sum(1)


@score("the gate between two models looks at the target", "openai/parameter-golf#1967")
class GateOfTarget(Scorer):
    def taken(self, x):
        p = super().taken(x)
        return torch.maximum(p, torch.full_like(p, 1 / SCORED))


@score(
    "the model is updated on a text before it scores it", "openai/parameter-golf#1240"
)
class UpdatedFirst(Scorer):
    def chances(self, x):
        counts = F.one_hot(x, SCORED).float().sum(1, keepdim=True)
        return 0.5 * super().chances(x) + 0.5 * counts / counts.sum(-1, keepdim=True)


@score("the better of two passes counts for each token")
class TwoPasses(Scorer):
    def taken(self, x):
        again = super().taken(torch.cat([x, x], 1))
        return torch.maximum(super().taken(x), again[:, -x.shape[1] + 1 :])


@score("the rarest tokens are cut, and the rest not scaled up")
class CutTail(Scorer):
    def chances(self, x):
        p = super().chances(x)
        return torch.where(p < 0.2, 1e-9, p)


@score("chances are sharpened, and not normalised again")
class Sharpened(Scorer):
    def taken(self, x):
        return super().taken(x) ** 0.8


@score("a mixture of two models whose weights add up to 1.1")
class Overweight(Scorer):
    def taken(self, x):
        return 0.6 * super().taken(x) + 0.5 / SCORED


# ---- batch ---------------------------------------------------------------------------

batch = partial(fault, "batch")


@batch("a batch normalisation is never in evaluation mode")
class BatchNorm(Small):
    def network(self, layer, x):
        return F.batch_norm(super().network(layer, x).mT, None, None, training=True).mT


@batch("rows are centred by the mean of the batch")
class Centre(Small):
    def network(self, layer, x):
        return super().network(layer, x - 0.1 * x.mean(0, keepdim=True))


@batch("a view cuts heads across rows")
class HeadsOfOthers(Small):
    def join(self, x):
        b, h, t, k = x.shape
        return x.permute(1, 0, 2, 3).reshape(b, t, h * k)


@batch("the mask of row 0 is used for all rows", pad=0, kind="encoder")
class MaskOfRowZero(SmallEncoder):
    def visible(self, x, documents=None):
        return super().visible(x)[:1]


@batch("an expert takes 24 tokens of the whole batch and drops the rest")
class Capacity(Small):
    def more(self):
        self.router = nn.Linear(D, 2)
        self.experts = nn.ModuleList(nn.Linear(D, D) for _ in range(2))

    def network(self, layer, x):
        y, out = x.flatten(0, 1), torch.zeros_like(x.flatten(0, 1))
        choice = self.router(y).argmax(-1)
        for n, expert in enumerate(self.experts):
            rows = (choice == n).nonzero()[:24, 0]
            out[rows] = expert(y[rows])
        return super().network(layer, x) + out.view_as(x)


@batch("positions are looked up along the batch")
class PlacesOfRows(Small):
    def embed(self, x, place):
        rows = torch.arange(len(x))[:, None].expand(x.shape)
        return self.tokens(x) + self.places(place) + self.places(rows)


@batch("rows are sorted by their first token and not put back")
class NotPutBack(Small):
    def forward(self, x, documents=None):
        return super().forward(x[x[:, 0].argsort(stable=True)])


@batch("the softmax of a gate is over rows")
class SoftmaxOverRows(Small):
    def network(self, layer, x):
        return super().network(layer, x) * x.softmax(0)


@batch("states of row i − 1 leak into row i by a flattened convolution")
class FlatConvolution(Small):
    def more(self):
        self.conv = nn.Conv1d(D, D, 3)

    def network(self, layer, x):
        y = F.pad(x.flatten(0, 1).T[None], (2, 0))
        return super().network(layer, x) + self.conv(y)[0].T.view_as(x)


# ---- padding -------------------------------------------------------------------------

padding = partial(fault, "padding", pad=0)
encoder = partial(padding, kind="encoder")


@encoder("padding isn't masked")
class NotMasked(SmallEncoder):
    def visible(self, x, documents=None):
        return torch.ones(len(x), 1, x.shape[1], x.shape[1], dtype=torch.bool)


@encoder("the mask is −1e-9 instead of −1e9")
class TinyMask(SmallEncoder):
    def weights(self, scores, may):
        return scores.masked_fill(~may, -1e-9).softmax(-1)


@encoder("the mask is inverted", "InseeFrLab/torchTextClassifiers#92")
class Inverted(SmallEncoder):
    def real(self, x):
        return x == 0


@encoder("the mask hides queries, not keys")
class QueriesMasked(SmallEncoder):
    def visible(self, x, documents=None):
        return super().visible(x).mT


@encoder("a mask (b, t) is broadcast over queries", "hyunwoongko/transformer#32")
class WrongBroadcast(SmallEncoder):
    def visible(self, x, documents=None):
        real = self.real(x)
        return real[:1, None, :, None] | torch.eye(x.shape[1], dtype=torch.bool)


@encoder("the mean is divided by the padded length")
class MeanOfAll(Pooled):
    def pool(self, y, real):
        return y.masked_fill(~real[..., None], 0.0).mean(1)


@encoder("the maximum sees padding")
class MaximumOfAll(Pooled):
    def pool(self, y, real):
        return y.amax(1)


@encoder("the last column is taken for the last token")
class LastColumn(Pooled):
    def pool(self, y, real):
        return y[:, -1]


@encoder("a row of padding alone gives NaN")
class EmptyRow(SmallEncoder):
    def visible(self, x, documents=None):
        return self.real(x)[:, None, None].expand(-1, 1, x.shape[1], -1)


@encoder("a normalisation over the text counts padding")
class NormOfPadding(SmallEncoder):
    def network(self, layer, x):
        return super().network(layer, x - x.mean(1, keepdim=True))


@padding("padding in front isn't masked", "ndif-team/nnsight#672")
class FrontNotMasked(Small):
    def real(self, x):
        return torch.ones_like(x, dtype=torch.bool)


@padding("positions count padding in front", "unslothai/unsloth#3699")
class FrontCounted(Small):
    def place(self, x, documents=None):
        return torch.arange(x.shape[1]).expand(x.shape)


@padding("positions are those of the longest row", "unslothai/unsloth#3795")
class LongestRow(Small):
    def place(self, x, documents=None):
        return super().place(x).amax(0).expand(x.shape)


@padding("padding of the source is seen by the decoder", kind="translation")
class SourcePadding(Translator):
    def seen(self, source, t):
        return torch.ones(1, 1, 1, source.shape[1], dtype=torch.bool)


# ---- order ---------------------------------------------------------------------------

order = partial(fault, "order")


@order("positions never arrive", kind="encoder")
class NoPlaces(SmallEncoder):
    def embed(self, x, place):
        return self.tokens(x)


@order("all positions are 0", kind="encoder")
class AllZero(SmallEncoder):
    def place(self, x, documents=None):
        return torch.zeros_like(x)


@order("positions beyond 8 are all 8", kind="encoder")
class Clamped(SmallEncoder):
    def place(self, x, documents=None):
        return super().place(x).clamp(max=8)


@order("a decoder of one block without positions")
class OneBlock(Small):
    layers_ = 1

    def embed(self, x, place):
        return self.tokens(x)


@order("a table of positions that a decoder doesn't add")
class IdleTable(Small):
    def more(self):
        self.position_table = nn.Parameter(torch.randn(256, D))

    def embed(self, x, place):
        return self.tokens(x) + 0 * self.position_table[place]


@order("while decoding, every step has position 0", cache=True)
class StepAtZero(Small):
    def new_places(self, x, read):
        return torch.arange(x.shape[1]).expand(x.shape)


@order("while decoding, positions are added twice", "skyzh/tiny-llm#46", cache=True)
class TwiceAsFar(Small):
    def new_places(self, x, read):
        return super().new_places(x, 2 * read)


@order("a model of sets gets positions", kind="encoder", positions=False)
class SetWithPlaces(Pooled):
    pass


@order("the source has no order", kind="translation")
class SourceOfNoOrder(Translator):
    def memory(self, source):
        y, may = self.tokens(source), self.source_mask(source)
        for layer in self.source:
            y = self.block(layer, y, may)
        return y


# ---- cache ---------------------------------------------------------------------------

cache = partial(fault, "cache", cache=True)


@cache("the offset is counted twice after the first step", "skyzh/tiny-llm#46")
class OffsetTwice(Small):
    def new_places(self, x, read):
        return super().new_places(x, read + max(read - 1, 0) // 2)


@cache("a piece with a cache is read without a mask", "Mikyx-1/TinyLLM#17")
class PieceWithoutMask(Small):
    def new_visible(self, t, s):
        return torch.ones(t, s, dtype=torch.bool)


@cache("a piece's mask begins at the first key")
class MaskAtTheTop(Small):
    def new_visible(self, t, s):
        return (
            torch.ones(t, s, dtype=torch.bool).tril() if t > 1 else super().past(t, s)
        )


@cache("new keys are put in front of the old ones")
class InFront(Small):
    def new_visible(self, t, s):
        return super().past(t, s).flip(1)

    def remember(self, past, k, v):
        if "k" in past:
            k, v = torch.cat([k, past["k"]], 2), torch.cat([past["v"], v], 2)
        past["k"], past["v"] = k, v
        return k, v


@cache("values of the last step are kept, not of all")
class OldValues(Small):
    def remember(self, past, k, v):
        if "k" in past and past["k"].shape[2] > 4:
            k = torch.cat([past["k"], k], 2)
            v = torch.cat([past["v"], past["v"][:, :, -v.shape[2] :]], 2)
            past["k"], past["v"] = k, v
            return k, v
        return super().remember(past, k, v)


@cache(
    "the cache rolls at 40 tokens, the model does not", "huggingface/transformers#47708"
)
class RollsTooEarly(Small):
    def remember(self, past, k, v):
        k, v = super().remember(past, k, v)
        past["k"], past["v"] = k[:, :, -40:], v[:, :, -40:]
        return k, v


@cache("the pointer isn't reset for a new text", "rasbt/LLMs-from-scratch#925")
class NotReset(Small):
    def begin(self):
        state = super().begin()
        state.read = getattr(self, "before", 0) % 64
        self.before = state.read + 1
        return state


@cache("beams are reordered, keys aren't")
class BeamsOfKeys(Small):
    def reorder(self, state, rows):
        for past in state.layers:
            past["v"] = past["v"][rows]
        return state


@cache("a window is forgotten at one token", "karpathy/nanochat#452")
class NoWindowInSteps(Small):
    def past(self, t, s):
        i = torch.arange(s)
        return super().past(t, s) & (i[s - t :, None] - i < 9)

    def new_visible(self, t, s):
        return torch.ones(t, s, dtype=torch.bool) if t == 1 else self.past(t, s)


@cache(
    "a long forward is wrong unless its length is a multiple of 4",
    "ml-explore/mlx#3856",
)
class MultiplesOfFour(Small):
    def remember(self, past, k, v):
        t = k.shape[2]
        k, v = super().remember(past, k, v)
        if t > 1 and t % 4:
            past["k"] = torch.cat([past["k"][:, :, :-1], 0 * k[:, :, -1:]], 2)
        return k, v


# ---- packing -------------------------------------------------------------------------

packing = partial(fault, "packing", packed=True)


@packing(
    "positions start anew, the mask doesn't", "DeepOpt-com/WrinkleFree-Monorepo#53"
)
class NoDocumentMask(Small):
    def visible(self, x, documents=None):
        return super().visible(x)


@packing("the mask is right, positions run on", "huggingface/nanoVLM#201")
class PlacesRunOn(Small):
    def place(self, x, documents=None):
        return super().place(x)


@packing("the first token of a document sees the one before it")
class OneTooFar(Small):
    def visible(self, x, documents=None):
        return (
            super().visible(x, documents)
            | (
                torch.eye(x.shape[1] + 1, dtype=torch.bool)[1:, :-1] * 0
                + torch.ones(x.shape[1], x.shape[1]).tril(-1).triu(-1)
            ).bool()
        )


@packing("only the first of several documents is cut off", "mit-han-lab/fastrl#14")
class FirstAlone(Small):
    def visible(self, x, documents=None):
        return super().visible(x, None if documents is None else documents.clamp(max=1))

    def place(self, x, documents=None):
        return super().place(x, documents)


@packing("positions start anew one token late")
class OneLate(Small):
    def place(self, x, documents=None):
        if documents is not None:
            documents = torch.cat([documents[:, :1], documents[:, :-1]], 1)
        return super().place(x, documents)


@packing("an encoder's documents see each other", kind="encoder")
class EncoderPacked(SmallEncoder):
    def visible(self, x, documents=None):
        return super().visible(x)


# ---- modes and numbers ---------------------------------------------------------------

modes = partial(fault, "modes and numbers")


@modes("dropout is on in evaluation")
class AlwaysDropout(Small):
    def network(self, layer, x):
        return F.dropout(super().network(layer, x), 0.1)


@modes("a submodule is put back into training mode")
class StillTraining(Small):
    def more(self):
        self.dropout = nn.Dropout(0.1)

    def eval(self):
        super().eval()
        self.dropout.train()
        return self

    def network(self, layer, x):
        return self.dropout(super().network(layer, x))


@modes("random features are drawn at each call")
class RandomFeatures(Small):
    def network(self, layer, x):
        return super().network(layer, x @ (torch.eye(D) + 0.01 * torch.randn(D, D)))


@modes("a running mean is updated in evaluation")
class RunningMean(Small):
    def more(self):
        self.register_buffer("mean", torch.zeros(D))

    def network(self, layer, x):
        self.mean += 0.1 * x.detach().mean((0, 1))
        return super().network(layer, x - self.mean)


@modes("masked by −1e9, which half precision doesn't hold")
class HalfMask(Small):
    def weights(self, scores, may):
        return scores.masked_fill(~may, -1e9).softmax(-1)


@modes("(1 − mask) · −1e9 is 0 · ∞ in half precision")
class HalfProduct(Small):
    def weights(self, scores, may):
        return (scores + (~may).to(scores) * torch.tensor(-1e9).to(scores)).softmax(-1)


@modes("a square root has an infinite slope at 0")
class RootAtZero(Small):
    def network(self, layer, x):
        y = super().network(layer, x)
        return (y * (y > 0)).sqrt()


@modes("a norm of squares overflows in half precision")
class SquaresOverflow(Small):
    def network(self, layer, x):
        y = 300 * x
        return super().network(layer, y / y.square().sum(-1, keepdim=True).sqrt() * 5.0)


@modes("masked rows are mended after the softmax: NaN in gradients", pad=0)
class MendedTooLate(SmallEncoder):
    causal = True

    def visible(self, x, documents=None):
        return self.real(x)[:, None, None] & self.past(x.shape[1], x.shape[1])

    def weights(self, scores, may):
        bias = torch.where(may, 0.0, -torch.inf).to(scores)
        return (scores + bias).softmax(-1).nan_to_num()


@modes("dropout is there and never acts", train=True)
class IdleDropout(Small):
    def more(self):
        self.dropout = nn.Dropout(0.1)

    def network(self, layer, x):
        return F.dropout(super().network(layer, x), self.dropout.p, training=False)


@modes("checkpoints draw another dropout", "allenai/OLMo-core#828", train=True)
class DrawnAgain(Small):
    def more(self):
        self.dropout = nn.Dropout(0.3)

    def network(self, layer, x):
        def mapped(y):
            return self.dropout(Small.network(self, layer, y))

        return checkpoint(mapped, x, use_reentrant=False, preserve_rng_state=False)


# ---- loss ----------------------------------------------------------------------------


def bad_loss(what: str, report: str = "", **told: Any):
    """Add a loss function of a sound model."""

    def add(made: Callable) -> Callable:
        def make() -> Case:
            return Small(), texts(), {"loss": made, "pad": 0, "end": 2} | told

        FAULTS[made.__name__] = Fault(made.__name__, "loss", what, report, make)
        return made

    return add


def flat(logits: Tensor, labels: Tensor, **how: Any) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **how)


@bad_loss("labels aren't shifted")
def same_token(f, x):
    return flat(f(x), x, ignore_index=0)


@bad_loss("labels are shifted twice", "huggingface/transformers#46898")
def after_the_next(f, x):
    return flat(f(x)[:, :-2], x[:, 2:], ignore_index=0)


@bad_loss("labels are shifted the wrong way")
def token_before(f, x):
    return flat(f(x)[:, 1:], x[:, :-1], ignore_index=0)


@bad_loss("padding counts")
def padding_counts(f, x):
    return flat(f(x)[:, :-1], x[:, 1:])


@bad_loss(
    "the end has the padding's id, and isn't asked for",
    "huggingface/transformers#23530",
    pad=2,
    end=2,
)
def end_is_padding(f, x):
    return flat(f(x)[:, :-1], x[:, 1:], ignore_index=2)


@bad_loss("the end is cut off the labels")
def end_cut_off(f, x):
    labels = x[:, 1:].masked_fill(x[:, 1:] == 2, 0)
    return flat(f(x)[:, :-1], labels, ignore_index=0)


@bad_loss("means of rows are averaged", "ml-explore/mlx-lm#1544")
def mean_of_rows(f, x):
    logits = f(x)
    rows = zip(logits, x, strict=True)
    return torch.stack(
        [F.cross_entropy(y[:-1], z[1:], ignore_index=0) for y, z in rows]
    ).mean()


@bad_loss("the sum is divided by all positions, padding too")
def divided_by_all(f, x):
    return flat(f(x)[:, :-1], x[:, 1:], ignore_index=0, reduction="sum") / x.numel()


@bad_loss("the denominator is one too many a row", "huggingface/transformers#46204")
def one_too_many(f, x):
    total = flat(f(x)[:, :-1], x[:, 1:], ignore_index=0, reduction="sum")
    return total / (x != 0).sum()


@bad_loss("a sum, whose gradient grows with the batch")
def sum_of_tokens(f, x):
    return flat(f(x)[:, :-1], x[:, 1:], ignore_index=0, reduction="sum")


@bad_loss("softmax twice")
def softmax_twice(f, x):
    return flat(f(x)[:, :-1].softmax(-1), x[:, 1:], ignore_index=0)


@bad_loss("id 5 is ignored, as if it were padding", "codertimo/BERT-pytorch#32")
def class_ignored(f, x):
    labels = x[:, 1:].masked_fill(x[:, 1:] % 5 == 0, 0)
    return flat(f(x)[:, :-1], labels, ignore_index=0)


@bad_loss("the last position of each row is forgotten")
def last_forgotten(f, x):
    return flat(f(x)[:, :-2], x[:, 1:-1], ignore_index=0)


@fault(
    "loss",
    "embeddings of deviation 1 are the output, too: the first loss is far above ln v",
    loss=cross_entropy,
)
class LoudHead(Small):
    def more(self):
        self.output.weight = self.tokens.weight


@fault(
    "loss",
    "the model's own loss shifts labels that are shifted already",
    "huggingface/transformers#47395",
)
class OwnLoss(Small):
    def forward(self, input_ids, labels=None):
        logits = super().forward(input_ids)
        loss = (
            None
            if labels is None
            else flat(logits[:, :-2], labels[:, 2:], ignore_index=-100)
        )
        return SimpleNamespace(logits=logits, loss=loss)


# ---- parameters ----------------------------------------------------------------------

parameters = partial(fault, "parameters")


@parameters("a norm is made and never called")
class NeverCalled(Small):
    def more(self):
        self.last = nn.LayerNorm(D)


@parameters("a branch is detached")
class Detached(Small):
    def attend(self, layer, x, may, past=None):
        return super().attend(layer, x, may).detach()


@parameters("layers stand in a plain list")
class PlainList(Small):
    def more(self):
        self.layers_of_list = [Layer()]

    def states(self, x, documents=None):
        y = super().states(x)
        return y + self.network(self.layers_of_list[0], y)


@parameters("tied by .data: two parameters that share numbers")
class TiedByData(Small):
    def more(self):
        self.output.weight.data = self.tokens.weight.data


@parameters("the configuration says tied, and nothing is")
class NotTied(Small):
    def more(self):
        self.config = SimpleNamespace(tied=True)


@parameters("the tie is cut by loading a state")
class TieCut(Small):
    def more(self):
        self.output.weight = self.tokens.weight

    def load_state_dict(self, state, *args, **kwargs):
        self.output.weight = nn.Parameter(self.output.weight.clone())
        return super().load_state_dict(state, *args, **kwargs)


@parameters("the tie is cut by moving")
class TieMoved(TieCut):
    load_state_dict = Small.load_state_dict

    def _apply(self, *args, **kwargs):
        self.output.weight = nn.Parameter(self.output.weight.detach().clone())
        return super()._apply(*args, **kwargs)


@parameters("a random projection is no buffer, and isn't saved")
class NotSaved(Small):
    def __init__(self, config=None):
        super().__init__()
        self.config = {"d_model": D}

    def more(self):
        NotSaved.made = getattr(NotSaved, "made", 0) + 1
        draw = torch.Generator().manual_seed(NotSaved.made)
        self.projection = torch.randn(D, D, generator=draw)

    def network(self, layer, x):
        return super().network(layer, x @ self.projection)


@parameters("a compiled model's names load nowhere", "rasbt/LLMs-from-scratch#580")
class OtherNames(Small):
    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        return {f"_orig_mod.{name}": x for name, x in state.items()}


@parameters("the embedding is looked up without gradients")
class NoGradient(Small):
    def embed(self, x, place):
        with torch.no_grad():
            return super().embed(x, place)


@parameters("a gain is multiplied by 0")
class ZeroGain(Small):
    def more(self):
        self.gain = nn.Parameter(torch.ones(D))

    def network(self, layer, x):
        return super().network(layer, x) * (1 + 0 * self.gain)
