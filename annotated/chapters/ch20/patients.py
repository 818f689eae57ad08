"""Patients without end: small training scripts in which one or two things are wrong.

    from annotated.chapters.ch20.patients import patient

    ill = patient(0)        # any number gives another one
    print(ill.source)       # read it, and mend its text
    ill.check(ill.source)   # is it sound, and if not, which family of fault is left?

A patient is a sound script, ``SOUND``, in which pieces of text are replaced: rows of
``FAULTS``, each of which is a fault of the corpus (``faults.py``), by its name there.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import SimpleNamespace

import torch
from torch import Tensor

from annotated import probes, require
from annotated.chapters.ch20 import faults as corpus
from annotated.checks import Change, Draw, changes, material, replaced

SOUND = '''\
"""A small language model, how it reads on with a cache, and how it is trained."""

import torch
from torch import nn
from torch.nn import functional as F

V, D, HEADS, LAYERS = 20, 16, 2, 2
PAD, END = 0, 2


def look(tokens, pad):
    """Who may attend to whom (b, 1, t, t), and where each token stands (b, t)."""
    t = tokens.shape[1]
    past = torch.ones(t, t, dtype=torch.bool).tril()
    real = (tokens != pad)[:, None, None, :]
    may = past & real | torch.eye(t, dtype=torch.bool)
    place = ((tokens != pad).cumsum(dim=1) - 1).clamp(min=0)
    return may, place


def read_on(model, tokens, past=None):
    """Logits (b, n, v) of n more tokens, and all that is kept of the text so far."""
    past = past or {"read": 0, "layers": [{} for _ in model.layers]}
    n, read = tokens.shape[1], past["read"]
    x = model.embed(tokens, torch.arange(read, read + n))
    may = torch.ones(n, read + n, dtype=torch.bool).tril(read)
    for layer, kept in zip(model.layers, past["layers"], strict=True):
        x = layer(x, may, kept)  # adds its keys and values to what is kept
    past["read"] = read + n
    return model.logits(x), past


def loss(model, tokens):
    """The mean of the next tokens' losses."""
    logits, labels = model(tokens)[:, :-1], tokens[:, 1:]
    rows = logits.flatten(0, 1)
    return F.cross_entropy(rows, labels.flatten(), ignore_index=PAD)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, may, kept=None):
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.qkv(self.first(x)).chunk(3, dim=-1)
        )
        if kept is not None:
            k = torch.cat([kept["k"], k], dim=2) if kept else k
            v = torch.cat([kept["v"], v], dim=2) if kept else v
            kept["k"], kept["v"] = k, v
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~may, -torch.inf).softmax(dim=-1)
        heads = (weights @ v).transpose(1, 2).flatten(2)
        x = x + self.dropout(self.out(heads))
        y = self.second(x)
        return x + self.dropout(self.down(self.up(y).relu()))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D), nn.Embedding(256, D)
        nn.init.normal_(self.tokens.weight, std=D**-0.5)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.output = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        self.output.weight = self.tokens.weight

    def embed(self, tokens, place):
        return self.tokens(tokens) + self.places(place)

    def logits(self, x):
        return self.output(self.norm(x))

    def forward(self, tokens):
        may, place = look(tokens, PAD)
        x = self.embed(tokens, place)
        for layer in self.layers:
            x = layer(x, may)
        return self.logits(x)


def batch(rows=16, width=12):
    """Texts that count, from anywhere and not all equally far, with END and PAD."""
    lengths = torch.randint(width // 2, width + 1, (rows, 1))
    tokens = (torch.randint(V, (rows, 1)) + torch.arange(width)) % (V - 3) + 3
    tokens[torch.arange(width) == lengths - 1] = END
    tokens[torch.arange(width) >= lengths] = PAD
    return tokens


def train(steps=100):
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        value = loss(model, batch())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1}: {value.item():.2f} nats a token")
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    train()
'''

# changes of SOUND, each with the name that the same fault has in the corpus
TABLE = r"""
torch.ones(t, t, dtype=torch.bool).tril()
    torch.ones(t, t, dtype=torch.bool)  # NoMask
    torch.ones(t, t, dtype=torch.bool).tril(1)  # OneAhead
    torch.arange(t)[:, None] // 8 >= torch.arange(t) // 8  # Chunks
    torch.arange(t)[:, None] - torch.arange(t) < 8  # Window
self.places(place) -> (self.places(place) + self.tokens(tokens).roll(1, dims=1))
        # Circular
scores.masked_fill(~may, -torch.inf) -> (scores - 9.0 * ~may)  # SoftMask
softmax(dim=-1) -> softmax(dim=-2)  # WrongAxis
y = self.second(x)
    y = self.second(F.layer_norm(x, x.shape[1:]))  # NormOverTime
    y = self.second(x + x.mean(dim=1, keepdim=True))  # GlobalMean
    y = self.second(x + F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1).mean(dim=-1))  # Centred
real = (tokens != pad)[:, None, None, :]
    real = torch.ones_like(tokens, dtype=torch.bool)[:, None, None, :]  # FrontNotMasked
    real = (tokens == pad)[:, None, None, :]  # Inverted
    real = (tokens != pad)[:, None, :, None]  # QueriesMasked
past & real | torch.eye(t, dtype=torch.bool) -> past & real  # EmptyRow
((tokens != pad).cumsum(dim=1) - 1).clamp(min=0)
    torch.arange(t).expand(tokens.shape)  # FrontCounted
    ((tokens != pad).cumsum(dim=1) - 1).clamp(min=0).amax(dim=0).expand(tokens.shape)
        # LongestRow
torch.arange(read, read + n)
    torch.arange(n) + read + max(read - 1, 0) // 2  # OffsetTwice
dtype=torch.bool).tril(read)
    dtype=torch.bool)  # PieceWithoutMask
    dtype=torch.bool).tril(read if n == 1 else 0)  # MaskAtTheTop
kept["k"], kept["v"] = k, v -> kept["k"], kept["v"] = k, v[:, :, -1:].expand_as(v)
        # OldValues
v = torch.cat([kept["v"], v], dim=2) -> v = torch.cat([v, kept["v"]], dim=2)  # InFront
model(tokens)[:, :-1], tokens[:, 1:]
    model(tokens), tokens  # same_token
    model(tokens)[:, :-2], tokens[:, 2:]  # after_the_next
    model(tokens)[:, :-2], tokens[:, 1:-1]  # last_forgotten
labels.flatten(), ignore_index=PAD)
    labels.flatten())  # padding_counts
    labels.flatten(), ignore_index=END)  # end_is_padding
    labels.flatten(), ignore_index=PAD, reduction="sum")  # sum_of_tokens
    labels.flatten(), ignore_index=PAD, reduction="sum") / labels.numel()
        # divided_by_all
rows = logits.flatten(0, 1)
    rows = logits.softmax(dim=-1).flatten(0, 1)  # softmax_twice
std=D**-0.5
    std=2  # LoudHead
real = (tokens != pad)[:, None, None, :] -> real = (tokens != pad)[:1, None, None, :]
        # MaskOfRowZero
y = self.second(x) -> y = self.second(x - x.mean(dim=0, keepdim=True))  # Centre
self.output(self.norm(x)) -> self.output(x)  # NeverCalled
self.out(heads) -> self.out(heads.detach())  # Detached
self.places(place) -> self.places(place).detach()  # NoGradient
nn.ModuleList(Block() for _ in range(LAYERS)) -> [Block() for _ in range(LAYERS)]
        # PlainList
self.output.weight = self.tokens.weight
    self.output.weight.data = self.tokens.weight.data  # TiedByData
nn.Embedding(256, D) -> torch.randn(256, D)
self.places(place) -> self.places[place]  # NotSaved
self.dropout(self.out(heads)) -> F.dropout(self.out(heads), 0.1)  # AlwaysDropout
self.dropout(self.out(heads)) -> self.out(heads)
self.dropout(self.down(self.up(y).relu())) -> self.down(self.up(y).relu())
        # IdleDropout
-torch.inf -> -1e9  # HalfMask
self.up(y).relu() -> (self.up(y) * (self.up(y) > 0)).sqrt()  # RootAtZero
"""


@dataclass(frozen=True)
class Fault:
    """A change of ``SOUND``."""

    name: str  #: of the same fault in the corpus
    change: Change

    @property
    def family(self) -> str:
        """The probe that must find it."""
        return corpus.FAULTS[self.name].family


FAULTS = {name: Fault(name, change) for name, change in changes(TABLE).items()}
FAMILIES = tuple(dict.fromkeys(fault.family for fault in FAULTS.values()))


@dataclass(frozen=True)
class Patient:
    """A script with faults; ``print(patient.source)`` shows it."""

    seed: int | str
    source: str = field(repr=False)
    faults: tuple[Fault, ...] = field(repr=False)  #: one or two; look here last

    def build(self) -> SimpleNamespace:
        """Run the script, but for its training; what it defines: Model, loss, …"""
        return SimpleNamespace(**material.script(self.source))

    def part(self, name: str) -> str:
        """The text of one of its functions or classes."""
        return part_of(self.source, name)

    def check(self, repaired: str) -> list[str]:
        """Say whether a repaired script is sound, or what is left.

        Its text is executed here: somebody else's belongs into a sandbox.

        Args:
            repaired: the text of the whole script.

        Returns:
            The families of what is left, none if it is sound.
        """
        found = examine(repaired)
        # one fault may make other probes fail, too: its own family comes first
        own = [name for name in found if name in {f.family for f in self.faults}]
        for name in own or found:
            print(f"✗ {name}: {found[name]}")
        if others := [name for name in found if own and name not in own]:
            print(f"  (it may be why these fail, too: {', '.join(others)})")
        if not found:
            print("✓ sound: all probes pass")
        return own or list(found)


def part_of(source: str, name: str) -> str:
    """The text of a function or class of a script.

    Raises:
        ValueError: if there is none of that name.
    """
    found = re.search(rf"^(?:def|class) {name}\b.*?(?=\n\n\n|\Z)", source, re.M | re.S)
    if not found:
        raise ValueError(f"name: the script has no function or class {name!r}")
    return found[0]


def patient(
    seed: int | str,
    family: str | None = None,
    part: str | None = None,
    names: Sequence[str] = (),
) -> Patient:
    """Draw a patient: the same one for the same seed.

    Args:
        seed: a number, or any text.
        family: of its faults, one of ``FAMILIES``; any if not given.
        part: the function or class that is ill, "loss" say; any if not given.
        names: of the faults that it has, from ``FAULTS``, in place of drawn ones.

    Raises:
        ValueError: if the family is none of ``FAMILIES``, or no fault fits.
    """
    if family is not None:
        require.choice(FAMILIES, family=family)
    draw = Draw(f"patient {seed} {family} {part}")
    within = part_of(SOUND, part) if part else SOUND
    known = [
        fault
        for fault in FAULTS.values()
        if family in (None, fault.family) and _fits(within, [fault])
    ]
    require.that(known, f"no fault of the family {family!r} is in {part!r}")
    faults = [FAULTS[name] for name in names]
    if not faults:
        pairs = [list(two) for two in combinations(known, 2) if _fits(within, two)]
        faults = draw.choice(
            [[one] for one in known] + draw.shuffled(pairs)[: len(known)]
        )
    return Patient(seed, with_faults(drawn_sizes(draw), faults), tuple(faults))


def _fits(source: str, faults: Iterable[Fault]) -> bool:
    """Are these pieces of text there, and apart?"""
    try:
        return bool(with_faults(source, faults))
    except ValueError:
        return False


def drawn_sizes(draw: Draw) -> str:
    """The sound script, with other sizes and ids."""
    heads = draw.choice([2, 3])
    pad, end = draw.shuffled(range(3))[:2]
    sizes = f"{draw.integer(17, 29)}, {8 * heads}, {heads}, {draw.choice([2, 3])}"
    change = [("20, 16, 2, 2", sizes), ("PAD, END = 0, 2", f"PAD, END = {pad}, {end}")]
    return replaced(SOUND, change)


def with_faults(source: str, faults: Iterable[Fault]) -> str:
    """A script with these faults in it.

    Raises:
        ValueError: if one has changed what another one changes.
    """
    for fault in faults:
        source = replaced(source, fault.change)
    return source


def friend(seed: int | str, t: int = 0, length: int = 0) -> str:
    """A sound script, or one whose second norm is over a stretch of positions.

    Args:
        seed: of its sizes, and of where the stretch begins.
        t: length of the texts.
        length: of the stretch; 0 gives a sound script.
    """
    draw = Draw(f"friend {seed}")
    source = drawn_sizes(draw)
    if not length:
        return source
    start = draw.integer(0, t - length)
    stretch = f"x[:, {start}:{start + length}]"
    whole = f"F.layer_norm({stretch}, {stretch}.shape[1:])"
    parts = f"[x[:, :{start}], {whole}, x[:, {start + length}:]]"
    new = f"y = self.second(torch.cat({parts}, dim=1))"
    return replaced(source, ("y = self.second(x)", new))


def texts(script: SimpleNamespace, rows: int = 3, t: int = 26) -> Tensor:
    """Texts without padding, (rows, t), for the probes."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(3, script.V, (rows, t), generator=generator)


def examine(source: str) -> dict[str, str]:
    """What the probes find in a script: family -> what was seen; nothing if it's sound.

    Raises:
        ValueError: if it can't be run, or lacks what was there before.
    """
    try:
        script = SimpleNamespace(**material.script(source))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(20)  # not where the probes make another instance
            model = script.Model()
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"source: the script can't be run: {kind}: {error}") from error
    lacking = {"V", "PAD", "END", "loss", "read_on"} - vars(script).keys()
    if lacking:
        raise ValueError(f"source: the script has lost {', '.join(sorted(lacking))}")
    report = probes.probe(
        model,
        texts(script),
        pad=script.PAD,
        end=script.END,
        loss=script.loss,
        step=lambda tokens, past: script.read_on(model, tokens, past),
        reorder=reordered,
        train=True,
        make=script.Model,
    )
    asked = [one for one in report.outcomes if one.name != "packing"]
    return {one.name: one.said for one in asked if one.state != "passed"}


def reordered(past: dict, rows: Tensor) -> dict:
    """What is kept of some rows of a batch."""
    layers = [{name: x[rows] for name, x in kept.items()} for kept in past["layers"]]
    return {"read": past["read"], "layers": layers}
