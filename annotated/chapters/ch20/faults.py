"""The corpus: a small model for each fault that people make, for the probes to find.

Every fault changes one thing in ``Small``, a decoder (or an encoder) that is sound: it
knows padding (id 0) on either side, positions, packed documents and a cache. A row has
the family whose probe must find it, what is wrong, and the public report of the same
fault, where there is one. They stand in the table at the end, by what a method does
instead.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint  # noqa: F401, a row uses it

V, T, D, H = 40, 64, 32, 4
Case = tuple[Callable, Any, dict[str, Any]]


def texts(rows: int = 2, length: int = T, seed: int = 0) -> Tensor:
    """Return ids from 3 on, (rows, length): 0 is padding, 1 starts, 2 ends."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, V, (rows, length), generator=generator)


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

    kind, causal, layers_, pad = "causal", True, 2, 0

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

    kind, causal = "encoder", False


class Pooled(SmallEncoder):
    """A classifier by the mean of the real tokens."""

    def pool(self, y: Tensor, real: Tensor) -> Tensor:
        y = y.masked_fill(~real[..., None], 0.0)
        return y.sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def forward(self, x: Tensor, documents: Tensor | None = None) -> Tensor:
        return self.output(self.pool(self.states(x), self.real(x)))


class Translator(Small):
    """An encoder, and a decoder that looks at its states."""

    kind = "translation"

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

    name: str  #: unique; of the class or function, too
    family: str  #: the probe that must find it
    what: str  #: what is wrong, in a line
    report: str  #: of the same fault in public: owner/repo#number, or a title
    code: str  #: the lines that make it
    told: dict[str, Any]  #: what the probes are told; cache and packed: as it has them

    def make(self) -> Case:
        """Return what to call, its tokens, and what the probes are told."""
        made, told = globals()[self.name], dict(self.told)
        if not isinstance(made, type):  # a loss of a sound model
            return Small(), texts(), {"loss": made, "pad": 0, "end": 2} | told
        model = made()
        if told.pop("cache", False):
            told |= {"step": model.step, "reorder": model.reorder}
        if told.pop("packed", False):
            told["segments"] = model
        if self.family == "scores":
            tokens = torch.arange(8).reshape(2, 4).repeat(1, 2) % SCORED
            return model, tokens, {"vocabulary": SCORED}
        tokens = pair() if model.kind == "translation" else texts()
        return model, tokens, {"kind": model.kind} | told


FAULTS: dict[str, Fault] = {}


def rows(table: str) -> None:
    """Add a table of faults, each the body of a class, or of a loss.

    ::

        == family: what the probes are told of those below
        Name: what is wrong [owner/repo#number]
            method: what it returns (of `more`, what it does)
            method:
                statements
            def other(self, of, parameters):
                statements
        Name(Base): of another model than `Small`
        name(f, x): of a loss
            statements, and what it returns

    Args:
        table: the rows; eight spaces go on with the line above.
    """
    for row in re.split(r"\n+(?=\S)", table.strip()):
        first, *lines = _joined(row)
        if first.startswith("== "):
            family, _, given = first[3:].partition(": ")
            told = eval(f"dict({given})")
            continue
        pattern = r"(\w+)(?:\((.*?)\))?: (.*?)(?: \[(.*)\])?"
        name, base, what, report = re.fullmatch(pattern, first).groups(default="")
        if base == "f, x":
            *before, last = (f"    {line.strip()}" for line in lines)
            body = [*before, last.replace("    ", "    return ", 1)]
            code = "\n".join([f"def {name}(f, x):", *body])
        else:
            base = base or "Small"
            body = [_method(globals()[base], line) for line in lines or ["    pass"]]
            code = "\n".join([f"class {name}({base}):", "\n".join(body).lstrip("\n")])
        exec(compile(code, f"<{name}>", "exec"), globals())
        FAULTS[name] = Fault(name, family, what, report, code, told)


def _joined(row: str) -> list[str]:
    """Return the lines of a row, each with what goes on with it."""
    lines, statements = [], False
    for line in row.split("\n"):
        deep = line.startswith(8 * " ")
        if deep and not statements:
            lines[-1] += f" {line.strip()}"
            continue
        statements = statements if deep else line.endswith(":")
        lines.append(line)
    return lines


def _method(base: type, line: str) -> str:
    """Return a line of a row as Python: a method of a base has its parameters."""
    found = re.fullmatch(r"    (\w+):(?: (.*))?", line)
    if not found:
        blank = "\n" if line.startswith("    def ") else ""
        return blank + line  # a statement, an attribute, the begin of a method
    method, does = found.groups()
    parameters = inspect.signature(getattr(base, method)).parameters.values()
    bare = ", ".join(str(p.replace(annotation=p.empty)) for p in parameters)
    word = "" if method == "more" else "return "
    return f"\n    def {method}({bare}):" + (f"\n        {word}{does}" if does else "")


# ---- models that score texts ---------------------------------------------------------

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


def seen_before(x: Tensor) -> Tensor:
    """Whether each pair of tokens came before in its text, (b, t − 1)."""
    pairs = x[:, :-1] * SCORED + x[:, 1:]
    same = pairs[:, :, None] == pairs[:, None]
    return same.tril(-1).any(-1)


def flat(logits: Tensor, labels: Tensor, **how: Any) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **how)


# ---- the rows ------------------------------------------------------------------------

rows("""
== future
NoMask: the result of masked_fill is thrown away
    weights:
        scores.masked_fill(~may, -torch.inf)
        return scores.softmax(-1)
Chunks: the mask is causal between chunks of 8 and full inside [karpathy/nanochat#844]
    size = 8
    past:
        i = torch.arange(s) // self.size
        return i[s - t :, None] >= i
LongChunks(Chunks): the same with chunks of 32 [karpathy/nanochat#844]
    size = 32
Circular: a shift by roll brings the last token to the first [HomebrewML/Olmax#78]
    embed:
        y = super().embed(x, place)
        return y + 0.3 * y.roll(1, 1)
OnePair: position 9 alone reads position 10 [HomebrewML/Olmax#78]
    past:
        may = super().past(t, s).clone()
        if t == s > 10:
            may[9, 10] = True
        return may
TopKeys: keys are chosen by a top-k over the whole text [piotrpiekos/MoSA#3]
    more: self.router = nn.Linear(D, 1)
    attend:
        score = self.router(x)[..., 0]
        kept = score >= score.topk(max(1, x.shape[1] // 4), dim=1).values[:, -1:]
        own = torch.eye(x.shape[1], dtype=torch.bool)
        return super().attend(
            layer, x * score.sigmoid()[..., None], may & kept[:, None, None] | own
        )
ExpertChoice: experts choose tokens, later ones too [allenai/OLMoE#46]
    more: self.router = nn.Linear(D, 2)
    network:
        score = self.router(x).softmax(-1)
        half = max(1, x.shape[1] // 2)
        kept = torch.zeros_like(score)
        kept.scatter_(1, score.topk(half, dim=1).indices, 1.0)
        return super().network(layer, x) * (score * kept).sum(-1, keepdim=True)
MixtureOfDepths: tokens skip a block by their rank in the text
        [sramshetty/mixture-of-depths#4]
    more: self.router = nn.Linear(D, 1)
    block:
        score = self.router(x)
        kept = score >= score.median(1, keepdim=True).values
        return torch.where(kept, super().block(layer, x, may) * score.sigmoid(), x)
Sorted: chunks are cut from keys sorted by content, as hashing does
    attend:
        order = x[..., 0].argsort(1).argsort(1) // 8  # (b, t)
        near = order[:, None, :, None] == order[:, None, None]
        own = torch.eye(x.shape[1], dtype=torch.bool)
        return super().attend(layer, x, may & near | own)
OneAhead: the mask's diagonal is one too high
    past: torch.ones(t, s, dtype=torch.bool).tril(s - t + 1)
MaskInTraining: the causal mask is made in training mode alone
    past: super().past(t, s) if self.training else torch.ones(t, s).bool()
Window: a window by q − k ≤ w lets all later keys in [pytorch/pytorch#152528]
    past: torch.arange(s)[s - t :, None] - torch.arange(s) <= 8
SoftMask: later keys get −8 added to their scores, not −∞
    weights: (scores - 8.0 * ~may).softmax(-1)
WrongAxis: the softmax is over queries
    weights: scores.masked_fill(~may, -torch.inf).softmax(-2)
NormOverTime: a normalisation over positions and features together
    network: super().network(layer, F.layer_norm(x, x.shape[1:]))
GlobalMean: a mean over the whole text is added
    network: super().network(layer, x) + 0.1 * x.mean(1, keepdim=True)
GlobalGate: a maximum over the whole text gates the network
    network: super().network(layer, x) * x.amax(1, keepdim=True).sigmoid()
Centred: a convolution is centred
    more: self.conv = nn.Conv1d(D, D, 3, padding=1)
    network: super().network(layer, x) + self.conv(x.mT).mT
BothWays: a recurrent layer reads in both directions
    more: self.rnn = nn.GRU(D, D // 2, batch_first=True, bidirectional=True)
    network: super().network(layer, x) + self.rnn(x)[0]
Relative: positions are divided by the length of the text
    embed: self.tokens(x) + self.places(place) * (1 + place[..., None] / x.shape[1])
Fourier: a transform over the text mixes all positions
    network: super().network(layer, x) + 0.1 * torch.fft.fft(x, dim=1).real
TotalSum: cumulative sums are divided by the sum of the whole text
    network: super().network(layer, x)
        + x.exp().cumsum(1) / x.exp().sum(1, keepdim=True)

== future: train=True
MaskInEvaluation: training mode forgets the mask that evaluation has
    past: torch.ones(t, s).bool() if self.training else super().past(t, s)

== reach
NoMixing: the last block's result is thrown away: attention is never added
    block:
        self.attend(layer, x, may)
        return x + self.network(layer, x)
FirstUnseen: no later query sees token 0
    past:
        may = super().past(t, s).clone()
        may[1:, 0] = False
        return may
EverySecond: every second token is replaced by a constant
    embed:
        x = x.clone()
        x[:, 1::2] = 3
        return super().embed(x, place)
ShiftedTwice: the input is shifted once more inside [huggingface/transformers#47395]
    forward: super().forward(F.pad(x, (1, 0), value=1)[:, :-1])
NoTokens: tokens enter as 0
    embed: self.tokens(x * 0) + self.places(place)
NoSource(Translator): the decoder never sees the source
    look: super().look(layer, y, memory * 0, may)
SourceCut(Translator): the source's last token is cut off with its end
    forward: super().forward(source[:, :-1], target)
PooledTooEarly(Pooled): the classifier reads the first token before attention
    forward: self.output(self.embed(x, self.place(x))[:, 0])

== scores
CacheOfTarget(Scorer): a cache is asked for the target alone [openai/parameter-golf#886]
    taken:
        p = super().taken(x)
        return torch.where(seen_before(x), 0.5 * p + 0.5, p)
Neighbours(Scorer): each token is guessed from both neighbours
        [openai/parameter-golf#1053]
    forward:
        near = x.roll(1, 1)
        near[:, :1] = x[:, 1:2]
        return (torch.where(x == near, 0.97, 0.01) + 0 * self.norm.bias[0]).log().sum(1)
UpdatedFirst(Scorer): the model is updated on a text before it scores it
        [openai/parameter-golf#1240]
    chances:
        counts = F.one_hot(x, SCORED).float().sum(1, keepdim=True)
        return 0.5 * super().chances(x) + 0.5 * counts / counts.sum(-1, keepdim=True)
TwoPasses(Scorer): the better of two passes counts for each token
    taken:
        again = super().taken(torch.cat([x, x], 1))
        return torch.maximum(super().taken(x), again[:, -x.shape[1] + 1 :])
NotShifted(Scorer): labels aren't shifted: each token is scored where it is read
    taken: self.chances(x).gather(-1, x[..., None])[..., 0]
CountsAsChances(Scorer): counts of n-grams are used as chances
        [openai/parameter-golf#1147]
    taken: super().taken(x) * (1 + seen_before(x).float().cumsum(1))
GateOfTarget(Scorer): the gate between two models looks at the target
        [openai/parameter-golf#1967]
    taken: super().taken(x).clamp(min=1 / SCORED)
CutTail(Scorer): the rarest tokens are cut, and the rest not scaled up
    chances: torch.where(super().chances(x) < 0.2, 1e-9, super().chances(x))
Sharpened(Scorer): chances are sharpened, and not normalised again
    taken: super().taken(x) ** 0.8
Overweight(Scorer): a mixture of two models whose weights add up to 1.1
    taken: 0.6 * super().taken(x) + 0.5 / SCORED

== batch
Capacity: an expert takes 24 tokens of the whole batch and drops the rest
    more:
        self.router = nn.Linear(D, 2)
        self.experts = nn.ModuleList(nn.Linear(D, D) for _ in range(2))
    network:
        y, out = x.flatten(0, 1), torch.zeros_like(x.flatten(0, 1))
        choice = self.router(y).argmax(-1)
        for n, expert in enumerate(self.experts):
            rows = (choice == n).nonzero()[:24, 0]
            out[rows] = expert(y[rows])
        return super().network(layer, x) + out.view_as(x)
FlatConvolution: states of row i − 1 leak into row i by a flattened convolution
    more: self.conv = nn.Conv1d(D, D, 3)
    network:
        y = F.pad(x.flatten(0, 1).T[None], (2, 0))
        return super().network(layer, x) + self.conv(y)[0].T.view_as(x)
BatchNorm: a batch normalisation is never in evaluation mode
    network: F.batch_norm(super().network(layer, x).mT, None, None, training=True).mT
Centre: rows are centred by the mean of the batch
    network: super().network(layer, x - 0.1 * x.mean(0, keepdim=True))
HeadsOfOthers: a view cuts heads across rows
    join: x.transpose(0, 1).reshape(len(x), x.shape[2], D)
PlacesOfRows: positions are looked up along the batch
    embed: super().embed(x, place)
        + self.places(torch.arange(len(x))[:, None].expand(x.shape))
NotPutBack: rows are sorted by their first token and not put back
    forward: super().forward(x[x[:, 0].argsort(stable=True)])
SoftmaxOverRows: the softmax of a gate is over rows
    network: super().network(layer, x) * x.softmax(0)

== batch: pad=0
MaskOfRowZero(SmallEncoder): the mask of row 0 is used for all rows
    visible: super().visible(x)[:1]

== padding: pad=0
NotMasked(SmallEncoder): padding isn't masked
    visible: torch.ones(len(x), 1, x.shape[1], x.shape[1], dtype=torch.bool)
TinyMask(SmallEncoder): the mask is −1e-9 instead of −1e9
    weights: scores.masked_fill(~may, -1e-9).softmax(-1)
Inverted(SmallEncoder): the mask is inverted [InseeFrLab/torchTextClassifiers#92]
    real: x == 0
QueriesMasked(SmallEncoder): the mask hides queries, not keys
    visible: super().visible(x).mT
WrongBroadcast(SmallEncoder): a mask (b, t) is broadcast over queries
        [hyunwoongko/transformer#32]
    visible: self.real(x)[:1, None, :, None] | torch.eye(x.shape[1]).bool()
MeanOfAll(Pooled): the mean is divided by the padded length
    pool: y.masked_fill(~real[..., None], 0.0).mean(1)
MaximumOfAll(Pooled): the maximum sees padding
    pool: y.amax(1)
LastColumn(Pooled): the last column is taken for the last token
    pool: y[:, -1]
EmptyRow(SmallEncoder): a row of padding alone gives NaN
    visible: self.real(x)[:, None, None].expand(-1, 1, x.shape[1], -1)
NormOfPadding(SmallEncoder): a normalisation over the text counts padding
    network: super().network(layer, x - x.mean(1, keepdim=True))
FrontNotMasked: padding in front isn't masked [ndif-team/nnsight#672]
    real: torch.ones_like(x, dtype=torch.bool)
FrontCounted: positions count padding in front [unslothai/unsloth#3699]
    place: torch.arange(x.shape[1]).expand(x.shape)
LongestRow: positions are those of the longest row [unslothai/unsloth#3795]
    place: super().place(x).amax(0).expand(x.shape)
SourcePadding(Translator): padding of the source is seen by the decoder
    seen: torch.ones(1, 1, 1, source.shape[1], dtype=torch.bool)

== order
OneBlock: a decoder of one block without positions
    layers_ = 1
    embed: self.tokens(x)
SourceOfNoOrder(Translator): the source has no order
    memory:
        y, may = self.tokens(source), self.source_mask(source)
        for layer in self.source:
            y = self.block(layer, y, may)
        return y
NoPlaces(SmallEncoder): positions never arrive
    embed: self.tokens(x)
AllZero(SmallEncoder): all positions are 0
    place: torch.zeros_like(x)
Clamped(SmallEncoder): positions beyond 8 are all 8
    place: super().place(x).clamp(max=8)
IdleTable: a table of positions that a decoder doesn't add
    more: self.position_table = nn.Parameter(torch.randn(256, D))
    embed: self.tokens(x) + 0 * self.position_table[place]

== order: cache=True
StepAtZero: while decoding, every step has position 0
    new_places: torch.arange(x.shape[1]).expand(x.shape)
TwiceAsFar: while decoding, positions are added twice [skyzh/tiny-llm#46]
    new_places: super().new_places(x, 2 * read)

== cache: cache=True
InFront: new keys are put in front of the old ones
    new_visible: super().past(t, s).flip(1)
    remember:
        if "k" in past:
            k, v = torch.cat([k, past["k"]], 2), torch.cat([past["v"], v], 2)
        past["k"], past["v"] = k, v
        return k, v
OldValues: values of the last step are kept, not of all
    remember:
        if "k" in past and past["k"].shape[2] > 4:
            k = torch.cat([past["k"], k], 2)
            v = torch.cat([past["v"], past["v"][:, :, -v.shape[2] :]], 2)
            past["k"], past["v"] = k, v
            return k, v
        return super().remember(past, k, v)
RollsTooEarly: the cache rolls at 40 tokens, the model does not
        [huggingface/transformers#47708]
    remember:
        k, v = super().remember(past, k, v)
        past["k"], past["v"] = k[:, :, -40:], v[:, :, -40:]
        return k, v
NotReset: the pointer isn't reset for a new text [rasbt/LLMs-from-scratch#925]
    begin:
        state = super().begin()
        state.read = getattr(self, "before", 0) % 64
        self.before = state.read + 1
        return state
BeamsOfKeys: beams are reordered, keys aren't
    reorder:
        for past in state.layers:
            past["v"] = past["v"][rows]
        return state
NoWindowInSteps: a window is forgotten at one token [karpathy/nanochat#452]
    past:
        i = torch.arange(s)
        return super().past(t, s) & (i[s - t :, None] - i < 9)
    new_visible: torch.ones(t, s, dtype=torch.bool) if t == 1 else self.past(t, s)
MultiplesOfFour: a long forward is wrong unless its length is a multiple of 4
        [ml-explore/mlx#3856]
    remember:
        t = k.shape[2]
        k, v = super().remember(past, k, v)
        if t > 1 and t % 4:
            past["k"] = torch.cat([past["k"][:, :, :-1], 0 * k[:, :, -1:]], 2)
        return k, v
OffsetTwice: the offset is counted twice after the first step [skyzh/tiny-llm#46]
    new_places: super().new_places(x, read + max(read - 1, 0) // 2)
PieceWithoutMask: a piece with a cache is read without a mask [Mikyx-1/TinyLLM#17]
    new_visible: torch.ones(t, s, dtype=torch.bool)
MaskAtTheTop: a piece's mask begins at the first key
    new_visible: torch.ones(t, s).bool().tril() if t > 1 else super().past(t, s)

== packing: packed=True
NoDocumentMask: positions start anew, the mask doesn't
        [DeepOpt-com/WrinkleFree-Monorepo#53]
    visible: super().visible(x)
PlacesRunOn: the mask is right, positions run on [huggingface/nanoVLM#201]
    place: super().place(x)
OneTooFar: the first token of a document sees the one before it
    visible: super().visible(x, documents)
        | torch.ones(x.shape[1], x.shape[1]).tril(-1).triu(-1).bool()
FirstAlone: only the first of several documents is cut off [mit-han-lab/fastrl#14]
    visible: super().visible(x, None if documents is None else documents.clamp(max=1))
OneLate: positions start anew one token late
    place: super().place(x, None if documents is None
        else torch.cat([documents[:, :1], documents[:, :-1]], 1))
EncoderPacked(SmallEncoder): an encoder's documents see each other
    visible: super().visible(x)

== modes and numbers
StillTraining: a submodule is put back into training mode
    more: self.dropout = nn.Dropout(0.1)
    def eval(self):
        super().eval()
        self.dropout.train()
        return self
    network: self.dropout(super().network(layer, x))
RunningMean: a running mean is updated in evaluation
    more: self.register_buffer("mean", torch.zeros(D))
    network:
        self.mean += 0.1 * x.detach().mean((0, 1))
        return super().network(layer, x - self.mean)
RootAtZero: a square root has an infinite slope at 0
    network:
        y = super().network(layer, x)
        return (y * (y > 0)).sqrt()
SquaresOverflow: a norm of squares overflows in half precision
    network:
        y = 300 * x
        return super().network(layer, y / y.square().sum(-1, keepdim=True).sqrt() * 5.0)
AlwaysDropout: dropout is on in evaluation
    network: F.dropout(super().network(layer, x), 0.1)
RandomFeatures: random features are drawn at each call
    network: super().network(layer, x @ (torch.eye(D) + 0.01 * torch.randn(D, D)))
HalfMask: masked by −1e9, which half precision doesn't hold
    weights: scores.masked_fill(~may, -1e9).softmax(-1)
HalfProduct: (1 − mask) · −1e9 is 0 · ∞ in half precision
    weights: (scores + (~may).to(scores) * torch.tensor(-1e9).to(scores)).softmax(-1)

== loss
same_token(f, x): labels aren't shifted
    flat(f(x), x, ignore_index=0)
after_the_next(f, x): labels are shifted twice [huggingface/transformers#46898]
    flat(f(x)[:, :-2], x[:, 2:], ignore_index=0)
token_before(f, x): labels are shifted the wrong way
    flat(f(x)[:, 1:], x[:, :-1], ignore_index=0)
padding_counts(f, x): padding counts
    flat(f(x)[:, :-1], x[:, 1:])
end_cut_off(f, x): the end is cut off the labels
    flat(f(x)[:, :-1], x[:, 1:].masked_fill(x[:, 1:] == 2, 0), ignore_index=0)
divided_by_all(f, x): the sum is divided by all positions, padding too
    flat(f(x)[:, :-1], x[:, 1:], ignore_index=0, reduction="sum") / x.numel()
one_too_many(f, x): the denominator is one too many a row
        [huggingface/transformers#46204]
    total = flat(f(x)[:, :-1], x[:, 1:], ignore_index=0, reduction="sum")
    total / (x != 0).sum()
mean_of_rows(f, x): means of rows are averaged [ml-explore/mlx-lm#1544]
    rows = zip(f(x)[:, :-1], x[:, 1:], strict=True)
    torch.stack([F.cross_entropy(y, z, ignore_index=0) for y, z in rows]).mean()
sum_of_tokens(f, x): a sum, whose gradient grows with the batch
    flat(f(x)[:, :-1], x[:, 1:], ignore_index=0, reduction="sum")
softmax_twice(f, x): softmax twice
    flat(f(x)[:, :-1].softmax(-1), x[:, 1:], ignore_index=0)
class_ignored(f, x): id 5 is ignored, as if it were padding [codertimo/BERT-pytorch#32]
    labels = x[:, 1:].masked_fill(x[:, 1:] % 5 == 0, 0)
    flat(f(x)[:, :-1], labels, ignore_index=0)
last_forgotten(f, x): the last position of each row is forgotten
    flat(f(x)[:, :-2], x[:, 1:-1], ignore_index=0)

== loss: pad=2
end_is_padding(f, x): the end has the padding's id, and isn't asked for
        [huggingface/transformers#23530]
    flat(f(x)[:, :-1], x[:, 1:], ignore_index=2)

== loss
OwnLoss: the model's own loss shifts labels that are shifted already
        [huggingface/transformers#47395]
    def forward(self, input_ids, labels=None):
        logits, loss = super().forward(input_ids), None
        if labels is not None:
            loss = flat(logits[:, :-2], labels[:, 2:], ignore_index=-100)
        return SimpleNamespace(logits=logits, loss=loss)

== loss: loss=cross_entropy
LoudHead: embeddings of deviation 1 are the output, too: the first loss is far above
        ln v
    more: self.output.weight = self.tokens.weight

== parameters
TieCut: the tie is cut by loading a state
    more: self.output.weight = self.tokens.weight
    def load_state_dict(self, state, *args, **kwargs):
        self.output.weight = nn.Parameter(self.output.weight.clone())
        return super().load_state_dict(state, *args, **kwargs)
TieMoved: the tie is cut by moving
    more: self.output.weight = self.tokens.weight
    def _apply(self, *args, **kwargs):
        self.output.weight = nn.Parameter(self.output.weight.detach().clone())
        return super()._apply(*args, **kwargs)
NotSaved: a random projection is no buffer, and isn't saved
    def __init__(self, config=None):
        super().__init__()
        self.config = {"d_model": D}
    more:
        NotSaved.made = getattr(NotSaved, "made", 0) + 1
        draw = torch.Generator().manual_seed(NotSaved.made)
        self.projection = torch.randn(D, D, generator=draw)
    network: super().network(layer, x @ self.projection)
OtherNames: a compiled model's names load nowhere [rasbt/LLMs-from-scratch#580]
    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        return {f"_orig_mod.{name}": x for name, x in state.items()}
PlainList: layers stand in a plain list
    more: self.layers_of_list = [Layer()]
    states:
        y = super().states(x)
        return y + self.network(self.layers_of_list[0], y)
NeverCalled: a norm is made and never called
    more: self.last = nn.LayerNorm(D)
Detached: a branch is detached
    attend: super().attend(layer, x, may).detach()
TiedByData: tied by .data: two parameters that share numbers
    more: self.output.weight.data = self.tokens.weight.data
NotTied: the configuration says tied, and nothing is
    more: self.config = SimpleNamespace(tied=True)
NoGradient: the embedding is looked up without gradients
    embed: super().embed(x, place).detach()
ZeroGain: a gain is multiplied by 0
    more: self.gain = nn.Parameter(torch.ones(D))
    network: super().network(layer, x) * (1 + 0 * self.gain)

== modes and numbers: pad=0
MendedTooLate(SmallEncoder): masked rows are mended after the softmax: NaN in gradients
    kind, causal = "causal", True
    visible: self.real(x)[:, None, None] & self.past(x.shape[1], x.shape[1])
    weights:
        bias = torch.where(may, 0.0, -torch.inf).to(scores)
        return (scores + bias).softmax(-1).nan_to_num()

== modes and numbers: train=True
DrawnAgain: checkpoints draw another dropout [allenai/OLMo-core#828]
    more: self.dropout = nn.Dropout(0.3)
    network:
        def mapped(y):
            return self.dropout(Small.network(self, layer, y))
        return checkpoint(mapped, x, use_reentrant=False, preserve_rng_state=False)
IdleDropout: dropout is there and never acts
    more: self.dropout = nn.Dropout(0.1)
    network: F.dropout(super().network(layer, x), self.dropout.p, training=False)

== order: positions=False
SetWithPlaces(Pooled): a model of sets gets positions
""")
