"""Chapter 20's clinic: twelve small models, eleven of them broken, and examinations.

All learn one language, whose best loss is known. A text is letters between a start and
an end; after the first three, a letter is the one three places back with probability
0.85, and any of the eight otherwise. It ends after 6 to 14 letters, each as likely.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import probes
from annotated.attention import MultiHeadAttention, record_attention
from annotated.gpt import GPT, GPTConfig
from annotated.masks import causal_mask
from annotated.transformer import FeedForward

PAD, START, END, LETTERS, LONGEST = 0, 1, 2, 8, 14
SYMBOLS = "·^.abcdefgh"
KEEP = 0.85  # chance that a letter is looked up, three places back
STEPS, BATCH, RATE = 400, 64, 3e-3
CHUNK = 4


# ---- the language, and what its best model would reach -------------------------------


def texts(rows: int, seed: int) -> Tensor:
    """Return texts, (rows, 16): start, letters, end, padding."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 3 + LETTERS, (rows, LONGEST + 2), generator=generator)
    kept = torch.rand(tokens.shape, generator=generator) < KEEP
    for i in range(4, LONGEST + 1):
        tokens[:, i] = torch.where(kept[:, i], tokens[:, i - 3], tokens[:, i])
    count = torch.randint(6, LONGEST + 1, (rows, 1), generator=generator)
    place = torch.arange(LONGEST + 2)
    tokens = torch.where(place > count, PAD, tokens)
    tokens[:, 0] = START
    return tokens.scatter(1, count + 1, END)


def floor(tokens: Tensor) -> float:
    """Return the loss of whoever knows the rule, in nats per token that is asked for.

    Args:
        tokens: texts, (b, 16).
    """
    total = asked = 0
    for row in tokens.tolist():
        count = row.index(END) - 1
        for i in range(1, count + 2):
            chance = 1.0
            if i > 6:  # it may end here
                ends = 1 / (LONGEST - i + 2)
                chance = ends if i == count + 1 else 1 - ends
            if i <= count:
                same = i > 3 and row[i] == row[i - 3]
                chance *= (KEEP * same + (1 - KEEP) / LETTERS) if i > 3 else 1 / LETTERS
            total -= torch.tensor(chance).log().item()
        asked += count + 1
    return total / asked


# ---- the parts that break them -------------------------------------------------------


class SummaryAttention(MultiHeadAttention):
    """Causal attention that also reads the mean of each chunk of a few tokens.

    Args:
        d_model: width of input and output, d.
        heads: number of heads.
        chunk: number of tokens in a chunk.
        may_read: compares the number of a chunk with that of the query's own:
            ``operator.lt`` is right, and ``operator.le`` lets it read its own chunk,
            whose last tokens may still be to come.
    """

    def __init__(self, d_model: int, heads: int, chunk: int = CHUNK, may_read=None):
        super().__init__(d_model, heads)
        self.chunk, self.may_read = chunk, may_read or operator.lt

    def with_means(self, query):
        """Return all that is read, (b, t + n, d), and who may read it, (t, t + n)."""
        length = query.shape[1]
        own = torch.arange(length, device=query.device) // self.chunk  # (t,)
        chunks = own[-1] + 1
        members = F.one_hot(own, chunks).T.to(query.dtype)  # (n, t)
        means = members @ query / members.sum(dim=1, keepdim=True)  # (b, n, d)
        finished = self.may_read(torch.arange(chunks), own[:, None])  # (t, n)
        visible = torch.cat([causal_mask(length)[0, 0], finished], dim=1)
        return torch.cat([query, means], dim=1), visible[None, None]

    def forward(self, query, key=None, value=None, mask=None):
        keys, visible = self.with_means(query)
        return super().forward(query, keys, keys, visible)

    def weights(self, query, key=None, mask=None):
        return super().weights(query, *self.with_means(query))


class NormOver(nn.Module):
    """A layer norm's weights around a norm over another axis: 0 rows, 1 time."""

    def __init__(self, d_model: int, axis: int):
        super().__init__()
        self.axis, self.affine = axis, nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        apart = x - x.mean(dim=self.axis, keepdim=True)
        spread = apart.square().mean(dim=self.axis, keepdim=True)
        x = apart / (spread + 1e-5).sqrt()
        return x * self.affine.weight + self.affine.bias


class DetachedAttention(MultiHeadAttention):
    """Attention whose scores are computed without gradients."""

    def attend(self, q, k, v, mask=None):
        return super().attend(q.detach(), k.detach(), v, mask)


class MaskInTraining(MultiHeadAttention):
    """Attention that is causal in training mode alone."""

    def forward(self, query, key=None, value=None, mask=None):
        self.causal = self.training
        return super().forward(query, key, value, mask)


def small(attention: Callable | None = None) -> GPT:
    """Return a GPT of 16 positions; ``attention`` makes that of each block."""
    return GPT(GPTConfig(len(SYMBOLS), 32, 4, 2, 128, max_len=64), attention)


def with_norms_over(axis: int) -> GPT:
    """Return a GPT whose norms within the blocks are over another ``axis``."""
    model = small()
    for module in [*model.blocks.modules()]:
        for name, child in [*module.named_children()]:
            if isinstance(child, nn.LayerNorm) and module is not model.blocks:
                setattr(module, name, NormOver(32, axis))
    return model


def noisy() -> GPT:
    """Return a GPT with a dropout that isn't switched off: training=True by default."""
    model = small()
    for module in model.modules():
        if isinstance(module, FeedForward):
            module.register_forward_hook(lambda *given: F.dropout(given[-1], 0.2))
    return model


def loss_of(tokens: Tensor, logits: Tensor, ahead: int, silent: tuple) -> Tensor:
    """Return the loss of logits (b, t, v) that are asked for what is ``ahead``.

    Args:
        tokens: texts, (b, t).
        logits: of what is to come.
        ahead: how many places further the label stands: 1 is right.
        silent: labels that nobody is asked for: right is padding alone.
    """
    labels = tokens[:, ahead:]
    skipped = torch.isin(labels, torch.tensor(silent, dtype=torch.int64))
    labels = labels.masked_fill(skipped, -100)
    kept = logits[:, : labels.shape[1]]
    return F.cross_entropy(kept.flatten(0, 1), labels.flatten())


@dataclass(frozen=True)
class Patient:
    """A model that somebody brings."""

    name: str  #: of the one who brings it
    complaint: str  #: what they say
    diagnosis: str  #: what is the matter
    make: Callable[[], GPT] = small
    ahead: int = 1  #: where labels are read
    silent: tuple = (PAD,)  #: labels that aren't asked for
    place: int | None = None  #: where each step of the cache stands; none: counted


OTHERS = ("the learning rate is too high", "it is too small", "it overfits")
#: name: diagnosis, and below it what its owner says
BROUGHT = """
Ada: nothing: this is the best possible
    The loss hasn't moved for an hour. Nothing I try gets it lower.
Bo: it reads later letters of its own chunk
    I added a summary for every four letters. The loss fell to a fifth!
Chen: its norm mixes all positions
    A new norm, and we're ahead of everyone.
Dana: its label is the symbol that it reads
    The loss is almost zero, and it writes one letter forever.
Emre: its label is the symbol after the next
    The loss is fine. What it writes isn't.
Fay: padding counts in its loss
    A far better loss than Ada's, but what it writes is no better.
Gita: dropout is on in evaluation
    Each time that I evaluate it, I get another number.
Hugo: each step of its cache is at position 0
    Its loss is as good as Ada's. In production it writes nonsense.
Ines: rows of a batch see each other
    The loss is middling, and a single customer gets nonsense.
Jun: queries and keys get no gradient
    It learns, but it stops too early. Do I need a larger model?
Kofi: the end is never asked for
    Its loss is the best I can hope for, but it never stops writing.
Lea: it sees later letters, in evaluation only
    On held-out texts it does worse than in training. Overfitting?
"""
BROKEN: dict[str, dict[str, Any]] = {
    "Bo": {
        "make": partial(small, partial(SummaryAttention, 32, 4, CHUNK, operator.le))
    },
    "Chen": {"make": partial(with_norms_over, 1)},
    "Dana": {"ahead": 0},
    "Emre": {"ahead": 2},
    "Fay": {"silent": ()},
    "Gita": {"make": noisy},
    "Hugo": {"place": 0},
    "Ines": {"make": partial(with_norms_over, 0)},
    "Jun": {"make": partial(small, partial(DetachedAttention, 32, 4, causal=True))},
    "Kofi": {"silent": (PAD, END)},
    "Lea": {"make": partial(small, partial(MaskInTraining, 32, 4, causal=True))},
}
PATIENTS = tuple(
    Patient(name, complaint, diagnosis, **BROKEN.get(name, {}))
    for name, diagnosis, complaint in re.findall(r"(\w+): (.*)\n    (.*)", BROUGHT)
)
DIAGNOSES = (*sorted(p.diagnosis for p in PATIENTS), *OTHERS)

#: what can be ordered: name, and the minutes that the clinic's clock counts for it
EXAMINATIONS = {
    "the best possible loss": 1,
    "the loss curve": 1,
    "the same text twice": 1,
    "who sees whom": 2,
    "what the loss asks for": 2,
    "a row alone, and in a batch": 2,
    "gradients, part by part": 2,
    "an attention map": 3,
    "what it writes": 3,
    "step by step, with a cache": 3,
    "one batch by heart": 5,
    "another seed": 60,
    "twice as many steps": 120,
}
WRONG = 30  #: minutes that a wrong diagnosis costs: a repair that repairs nothing


# ---- training, and writing -----------------------------------------------------------


def train(
    patient: Patient, seed: int = 0, steps: int = STEPS, rows: int | None = None
) -> tuple[GPT, list[float]]:
    """Train a model as its owner did.

    Args:
        patient: whose.
        seed: of weights and texts.
        steps: of Adam, at a rate that falls to zero.
        rows: of one batch that is read at every step; fresh ones if not given.

    Returns:
        The model, in evaluation mode, and its loss at every step.
    """
    torch.manual_seed(seed)
    model, losses = patient.make(), []
    adam = torch.optim.Adam(model.parameters(), RATE)
    tokens = texts(rows or BATCH * steps, 1000 + seed)
    for step in range(steps):
        for group in adam.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        batch = tokens if rows else tokens[step * BATCH : (step + 1) * BATCH]
        loss = loss_of(batch, model(batch), patient.ahead, patient.silent)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return model.eval(), losses


def step_of(model: GPT, patient: Patient) -> Callable:
    """Return ``step(tokens, state)`` of the owner's cache, for the probes.

    The cache is no more than the symbols: what matters is where they are said to stand.
    """

    def step(tokens: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        read = tokens if state is None else torch.cat([state, tokens], dim=1)
        where = torch.arange(read.shape[1]).expand(len(read), -1)
        if patient.place is not None and state is not None:
            where = where * 0 + patient.place
        return model(read, positions=where)[:, -tokens.shape[1] :], read

    return step


@torch.no_grad()
def written(model: GPT, patient: Patient, rows: int = 3, most: int = 17) -> list[str]:
    """Return texts that it samples, a symbol at a time, with its owner's cache."""
    generator = torch.Generator().manual_seed(5)
    step, symbols = step_of(model, patient), torch.full((rows, 1), START)
    logits, state = step(symbols, None)
    for _ in range(most):
        new = torch.multinomial(logits[:, -1].softmax(-1), 1, generator=generator)
        symbols = torch.cat([symbols, new], dim=1)
        logits, state = step(new, state)
    lines = ["".join(SYMBOLS[i] for i in row) for row in symbols.tolist()]
    return [line.split(".")[0] + "." * ("." in line) for line in lines]


# ---- examinations --------------------------------------------------------------------


@torch.no_grad()
def loss_on(model: GPT, patient: Patient, tokens: Tensor) -> float:
    """Return the loss that its owner reports."""
    return loss_of(tokens, model(tokens), patient.ahead, patient.silent).item()


def asked_at(patient: Patient, tokens: Tensor) -> list[str]:
    """Return what the loss wants at each position of a text (1, t), or "" if nothing.

    It needs no look into the loss: its gradient is negative at the logit that is asked.
    """
    logits = torch.zeros(*tokens.shape, len(SYMBOLS), requires_grad=True)
    loss = loss_of(tokens, logits, patient.ahead, patient.silent)
    (gradient,) = torch.autograd.grad(loss, logits)
    wanted, where = gradient[0].min(dim=-1)
    return [
        SYMBOLS[i] if low < 0 else ""
        for i, low in zip(where.tolist(), wanted.tolist(), strict=True)
    ]


@torch.no_grad()
def reach(model: Callable, tokens: Tensor, symbols: int, first: int = 0) -> Tensor:
    """Return which logits i move when token j becomes another, (t, t), as booleans.

    Args:
        model: gives logits (b, t, v); random numbers are the same at every call.
        tokens: ids, (b, t).
        symbols: how many ids there are to change one to.
        first: the smallest of them.
    """

    def read(text: Tensor) -> Tensor:
        torch.manual_seed(0)
        return model(text)

    before, columns = read(tokens), []
    for j in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, j] = first + (tokens[:, j] - first + 1) % symbols
        columns.append((read(changed) != before).any(dim=-1).any(dim=0))
    return torch.stack(columns, dim=1)


def gradients(model: GPT, patient: Patient, tokens: Tensor) -> dict[str, float]:
    """Return the norm of the gradient of each kind of part."""
    model.zero_grad()
    loss_of(tokens, model(tokens), patient.ahead, patient.silent).backward()
    kinds = {
        "embedding": "embedding",
        "positions": "positions",
        "query_map": "queries",
        "key_map": "keys",
        "value_map": "values",
        "output_map": "attention's output",
        "norm": "norms",
    }
    norms = dict.fromkeys([*kinds.values(), "feed-forward"], 0.0)
    for name, parameter in model.named_parameters():
        kind = next((k for word, k in kinds.items() if word in name), "feed-forward")
        if parameter.grad is not None:
            norms[kind] += parameter.grad.square().sum().item()
    model.zero_grad()
    return {kind: norm**0.5 for kind, norm in norms.items()}


def examine(patient: Patient) -> dict[str, Any]:
    """Train a model and record all that can be ordered."""
    model, curve = train(patient)
    held_out = texts(512, 7)
    longest = held_out[held_out[:, LONGEST] > END][:4, : LONGEST + 1]  # no padding
    row, few = longest[:1], held_out[:8]
    step, ahead = step_of(model, patient), patient.ahead

    def owners_loss(f: Callable, tokens: Tensor) -> Tensor:
        return loss_of(tokens, f(tokens), ahead, patient.silent)

    report = probes.probe(
        model, longest, pad=PAD, start=START, end=END, loss=owners_loss,
        step=step, train=True, make=patient.make, seconds=3600,
    )  # fmt: skip
    with torch.no_grad():
        twice = (model(few) - model(few)).abs().max().item()
        alone = torch.cat([model(one[None]) for one in few])
        company = (model(few) - alone).abs().max().item()
        at_once, state, steps = model(row), None, []
        for one in row.split(1, dim=1):
            logits, state = step(one, state)
            steps.append(logits)
        cache = (at_once - torch.cat(steps, dim=1)).abs().max().item()
        with record_attention(model) as maps:
            model(row)
        attention = [*maps.values()][-1][0][0].mean(dim=0)
    padded = few[few[:, -2] == PAD][:1]
    return {
        "name": patient.name,
        "complaint": patient.complaint,
        "diagnosis": patient.diagnosis,
        "curve": [sum(curve[i : i + 20]) / 20 for i in range(0, STEPS, 20)],
        "loss": loss_on(model, patient, held_out),
        "floor": floor(held_out),
        "twice": twice,
        "reach": reach(model, longest, LETTERS, 3).int().tolist(),
        "read": [SYMBOLS[i] for i in padded[0].tolist()],
        "asked": asked_at(patient, padded),
        "company": company,
        "gradients": gradients(model, patient, held_out[:64]),
        "map": [[round(w, 2) for w in line] for line in attention.tolist()],
        "symbols": [SYMBOLS[i] for i in row[0].tolist()],
        "writes": written(model, patient),
        "cache": cache,
        "heart": train(patient, steps=100, rows=8)[1][-1],
        "another": loss_on(train(patient, seed=1)[0], patient, held_out),
        "longer": loss_on(train(patient, steps=2 * STEPS)[0], patient, held_out),
        "probes": [[one.name, one.state, one.said] for one in report.outcomes],
    }


# ---- what an examination tells, and the shortest way ---------------------------------


def near(loss: float, best: float) -> str:
    """Say on which side of the ``best`` possible a ``loss`` lies; 3 % are near."""
    if abs(loss / best - 1) < 0.03:
        return "Nothing is missing."
    return "Nobody can be that good." if loss < best else "Something is missing."


def findings(p: Mapping[str, Any]) -> dict[str, str]:
    """Return what each examination of a record tells, in a sentence."""
    best = p["floor"]
    pairs = [
        (i, j) for i, row in enumerate(p["reach"]) for j, on in enumerate(row) if on
    ]
    later = [(i, j) for i, j in pairs if j > i]
    sees = "No logit moves when a later letter changes."
    if later:
        chunked = all(i // CHUNK == j // CHUNK for i, j in later)
        only = ", but only within chunks of four" if chunked else ""
        sees = f"Logits move when later letters change{only}."
    read, asked = p["read"], p["asked"]
    wants = "the next"
    if asked[0] != read[1]:
        wants = "the same" if asked[0] == read[0] else "the one after the next"
    elif "·" in asked:
        wants = "the next, and padding"
    elif "." not in asked:
        wants = "the next, but no end"
    words = [text.strip("^.·") for text in p["writes"]]
    fours = [w[i : i + 4] for w in words for i in range(len(w) - 3)]
    kept = [four[0] == four[3] for four in fours if len({*four}) > 1]  # not "aaaa"
    rule = "The rule shows" if 3 * sum(kept) > 2 * len(kept) else "The rule is lost"
    ends = "every" if all(w.endswith(".") for w in p["writes"]) else "not every"
    worse = p["loss"] > 1.1 * sum(p["curve"][-2:]) / 2
    length, keys = len(p["map"]), len(p["map"][0])  # more keys: summaries
    chunks = [CHUNK * (n + 1) - 1 for n in range(keys - length)]
    last = [*range(length), *(min(i, length - 1) for i in chunks)]  # letter of a key
    late = any(
        weight and at > i
        for i, row in enumerate(p["map"])
        for weight, at in zip(row, last, strict=True)
    )
    dead = ", ".join(kind for kind, norm in p["gradients"].items() if norm == 0)
    differ = "They differ, by far more than rounding."
    same = "They are the same, up to rounding."
    return {
        "the best possible loss": near(p["loss"], best),
        "the loss curve": f"Held-out texts cost {'more' if worse else 'as much'}.",
        "the same text twice": differ if p["twice"] else "They are exactly the same.",
        "who sees whom": sees,
        "what the loss asks for": f"It asks for {wants}.",
        "a row alone, and in a batch": differ if p["company"] > 1e-3 else same,
        "gradients, part by part": f"There's none for: {dead}."
        if dead
        else "Every part gets a gradient.",
        "an attention map": f"{'Some' if late else 'No'} weight lies on later letters.",
        "what it writes": f"{rule}; {ends} text ends.",
        "step by step, with a cache": differ if p["cache"] > 1e-3 else same,
        "one batch by heart": "Learned." if p["heart"] < 0.5 * best else "Not learned.",
        "another seed": near(p["another"], best),
        "twice as many steps": near(p["longer"], best),
    }


def shortest(record: list[Mapping[str, Any]], name: str) -> list[str]:
    """Return the fewest minutes' examinations that leave only one diagnosis.

    Args:
        record: all patients.
        name: whose; the way is short for what the answers turn out to be.
    """
    told = {p["name"]: findings(p) for p in record}
    ways = (
        (sum(EXAMINATIONS[e] for e in way), way)
        for count in range(1, 4)
        for way in combinations(EXAMINATIONS, count)
    )
    for _, way in sorted(ways, key=lambda pair: pair[0]):
        same = [n for n, f in told.items() if all(f[e] == told[name][e] for e in way)]
        if same == [name]:
            return list(way)
    raise ValueError(f"no three examinations tell {name} from the others")
