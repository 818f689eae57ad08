"""How answers are called that take or change what is no plain data (``through=``).

Students' processes import this file: there is no right answer in it. Where a rule is
broken that a result cannot show, the name of the fault is returned in its place; the
exercise's ``broken`` has the hint.
"""

import math
import re
import sys
from collections.abc import Callable
from inspect import isgenerator
from pathlib import Path
from weakref import WeakSet, ref

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from annotated.checks.calling import copied, upstream


class Refused(Exception):
    """A model was asked what it should not be asked."""


# ---- chapter 01: scores in one sum -------------------------------------------


class Looping(BaseException):
    """An answer calls PyTorch too often; no `except Exception` of its own helps it."""


class Operations(TorchDispatchMode):
    """Shows what PyTorch computes, also inside a call that calls Python back."""

    def __init__(self, look: Callable):
        super().__init__()
        self.look = look

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.look(function, args, result)
        return result


class Counted(TorchFunctionMode):
    """Counts the calls of PyTorch's functions, and ends an answer that makes too many.

    Args:
        most: so many are allowed, and ten operations for each.
    """

    def __init__(self, most: float):
        super().__init__()
        self.calls, self.operations, self.most = 0, 0, most
        self.inside = Operations(self.look)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        if self.loops:
            raise Looping
        return function(*args, **(kwargs or {}))

    def look(self, operation: Callable, args: tuple, result: object) -> None:
        self.operations += 1
        if self.loops:
            raise Looping

    def __enter__(self) -> "Counted":
        self.inside.__enter__()
        return super().__enter__()

    def __exit__(self, kind, error, traceback) -> bool:
        super().__exit__(kind, error, traceback)
        self.inside.__exit__(kind, error, traceback)
        return kind is Looping

    @property
    def loops(self) -> bool:
        return self.calls > self.most or self.operations > 10 * self.most


def without_loops(answer: Callable, *arguments: Tensor) -> object:
    """Let an answer compute, with far fewer calls than it has queries or keys."""
    with Counted(200) as seen:
        result = answer(*arguments)
    return "loops" if seen.loops else result


def with_few_calls(answer: Callable, *arguments: Tensor) -> object:
    """Let an answer compute, with fewer calls than it has sequences or positions."""
    with Counted(40) as seen:
        result = answer(*arguments)
    return "loops" if seen.loops else result


def first_if_differentiated(answer: Callable, *arguments: Tensor) -> object:
    """Let an answer compute; gradients are compared of its first result."""
    result = answer(*arguments)
    return result[0] if arguments[0].requires_grad else result


def first_two_if_differentiated(answer: Callable, *arguments: Tensor) -> object:
    """Let an answer compute; gradients are compared of its first two results."""
    result = answer(*arguments)
    return torch.cat(result[:2], dim=-1) if arguments[0].requires_grad else result


# ---- chapter 02: self-attention, whole ---------------------------------------


ATTENTION = (F.scaled_dot_product_attention, F.multi_head_attention_forward)


class Watched(TorchFunctionMode):
    """Notes whether PyTorch's own attention is called."""

    fused = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.fused |= function in ATTENTION
        return function(*args, **(kwargs or {}))


class ReadyMade(RuntimeError):
    """PyTorch's own attention was called, in a process that has none."""


def written_out(answer: Callable, *arguments: Tensor) -> object:
    """Let an answer attend, by its own arithmetic."""
    try:
        with Watched() as seen:
            result = answer(*arguments)
    except ReadyMade:
        return arguments[0][..., :0]
    return result[..., :0] if seen.fused else result  # no width, and a gradient


# ---- chapter 03: the split that mixes words ----------------------------------


@torch.enable_grad()
def differentiable(answer: Callable, split: Callable) -> object:
    """Let an answer follow gradients through a split."""
    return answer(split)


# ---- chapter 06: tied weights ------------------------------------------------


def tied(tie: Callable, source: tuple, target: tuple, output: tuple) -> dict:
    """Let an answer tie two embeddings and an output layer; what became of them.

    Args:
        tie: the answer.
        source: symbols and width of the first embedding.
        target: those of the second.
        output: those of the output layer.
    """
    shapes = source, target, output
    modules = [
        nn.Embedding(*source),
        nn.Embedding(*target),
        nn.Linear(*reversed(output), bias=False),
    ]
    owned = [module.weight for module in modules]
    kept = [weight.detach().clone() for weight in owned]
    message = None
    try:
        tie(*modules)
    except ValueError as error:
        message = str(error)
    numbers = {int(number) for number in re.findall(r"\d+", message or "")}
    differing = {frozenset(p) for s in shapes for p in zip(source, s, strict=True)}
    weights = [module.weight for module in modules]
    return {
        "refused": message is not None,
        "refusal names two sizes": any(
            len(pair) == 2 and pair <= numbers for pair in differing
        ),
        "unchanged": [
            weight is own and torch.equal(weight, value)
            for weight, own, value in zip(weights, owned, kept, strict=True)
        ],
        "the source's": [weight is owned[0] for weight in weights],
        "parameters": len(list(nn.ModuleList(modules).parameters())),
        "in one place": [w.data_ptr() == weights[0].data_ptr() for w in weights],
        "equal": [torch.equal(weight, weights[0]) for weight in weights],
        "learns": [weight.requires_grad for weight in weights],
    }


# ---- chapter 05: scores that are compared --------------------------------------


def scores_tried(
    answer: Callable, score: Callable, width: int, count: bool = False
) -> object:
    """Let an answer try a score.

    Args:
        count: is it asked for at least 200 times?
    """
    asked = 0

    def watched(*given: object) -> Tensor:
        nonlocal asked
        asked += 1
        return score(*given)

    result = answer(watched, width)
    return "few" if count and asked < 200 else result


# ---- chapter 06: sequences that a model is tried with --------------------------


def sequences_tried(
    answer: Callable, model: Callable, length: int, vocab: int, count: bool = False
) -> object:
    """Let an answer try a model, with sequences of one length alone.

    Args:
        count: are nearly ten times as many sequences tried as differ from one of them
            in one symbol after the first?
    """
    tried = set()

    def watched(ids: Tensor) -> Tensor:
        if ids.shape[1] != length:
            raise Refused("length")
        tried.update(map(tuple, ids.tolist()))
        return model(ids)

    try:
        result = answer(watched, length, vocab)
    except Refused as refused:
        return str(refused)
    enough = 9 * (length - 1) * (vocab - 1)
    return "few" if count and result is False and len(tried) < enough else result


# ---- chapter 07: accumulation ------------------------------------------------


def accumulated(
    answer: Callable,
    model_loss: Callable,
    parameter: Tensor,
    batches: list[Tensor],
    counts: list[int],
    old: Tensor | None = None,
    memory: bool = False,
) -> object:
    """Let an answer accumulate gradients, and watch what it does to the parameter.

    Args:
        answer: called as ``answer(model_loss, parameter, batches, counts)``.
        old: what stands in ``parameter.grad`` before.
        memory: watch that one loss is held at a time, and no graph afterwards.
    """
    leaf = parameter.clone().requires_grad_()
    leaf.grad = None if old is None else old.clone()
    waiting: set[object] = set()  # losses that nobody has gone backward through
    faults = []

    def watched(given: Tensor, batch: Tensor) -> Tensor:
        same = [b is batch or (b.shape == batch.shape and b.equal(batch)) for b in own]
        if not any(same):
            faults.append("joined")
            return model_loss(given, batch)
        seen = given.view_as(given)  # of its own for each loss
        if seen.requires_grad and real[same.index(True)]:
            loss = object()
            waiting.add(loss)
            seen.register_hook(lambda _: waiting.discard(loss))
            if memory and len(waiting) > 1:
                faults.append("together")
        return model_loss(seen, batch)

    own, real = list(batches), [count > 0 for count in counts]  # lists may be changed
    with torch.enable_grad():
        result = answer(watched, leaf, batches, counts)
    if not leaf.equal(parameter):
        faults.append("moved")
    if not isinstance(result, Tensor):
        return faults[0] if faults else result
    if memory and result.requires_grad:
        faults.append("attached")
    return faults[0] if faults else result.detach()


class Speaker(nn.Module):
    """Says what comes next from the last symbol read and from the whole source.

    Args:
        source: a vector for each symbol of the source, ``(v, d)``.
        target: a vector for each symbol of the target, ``(v, d)``.
        output: a vector for each symbol to say, ``(v, d)``.
    """

    def __init__(self, source: Tensor, target: Tensor, output: Tensor) -> None:
        super().__init__()
        self.source, self.target, self.output = map(
            nn.Parameter, (source.clone(), target.clone(), output.clone())
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        read = self.source[source].mean(dim=1, keepdim=True) + self.target[target]
        return read.tanh() @ self.output.mT


def _ready(tables: list[Tensor], rates: list[float]) -> tuple:
    """A model with an old gradient, plain descent, and rates, one for each step."""
    model = Speaker(*tables)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.1)  # of an evaluation, say
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = LambdaLR(optimizer, lambda done: rates[min(done, len(rates) - 1)])
    return model, optimizer, schedule


def steps_taken(
    answer: Callable,
    tables: list[Tensor],
    batches: list[tuple[Tensor, Tensor]],
    rates: list[float],
    clip: float,
) -> object:
    """Let an answer take steps, one for each batch; losses, and what became of it.

    Args:
        answer: called as ``answer(model, source, target, optimizer, schedule, clip)``.
        tables: parameters of the model.
        batches: sources and targets.
        rates: learning rate of each step.
        clip: largest norm of the gradient.
    """
    model, optimizer, schedule = _ready(tables, rates)
    losses, modes = [], []
    optimizer.register_step_pre_hook(lambda *_: modes.append(model.training))
    with torch.enable_grad():
        for source, target in batches:
            loss = answer(model, source, target, optimizer, schedule, clip)
            if isinstance(loss, Tensor) and loss.requires_grad:
                return loss
            losses.append(loss)
    if not all(isinstance(one, float | Tensor) for one in losses):
        return losses[0]
    if not all(modes):
        return "a step in evaluation mode"
    if not model.training:
        return "left in evaluation mode"
    losses = [float(one) for one in losses]
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    return {"losses": losses, "rate": schedule.get_last_lr()[0], "weights": weights}


def looped(
    answer: Callable,
    tables: list[Tensor],
    training: list[tuple[Tensor, Tensor]],
    checking: list[tuple[Tensor, Tensor]],
    rates: list[float],
    clip: float,
    epochs: int,
) -> object:
    """Let an answer train for some epochs; all losses, and what became of the model.

    Args:
        answer: called as ``answer(model, training, checking, optimizer, schedule,
            clip)`` for each epoch.
    """
    model, optimizer, schedule = _ready(tables, rates)
    optimizer.zero_grad()
    losses, modes, stepped, left, dropped = [], [], [], [], []

    def gradients() -> Tensor:
        each = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        return torch.cat([gradient.flatten() for gradient in each])

    def remember(*_: object) -> None:
        modes.append(model.training)
        stepped.append(gradients())

    def evaluate(model: nn.Module, given: tuple[Tensor, ...]) -> None:
        if any(given[0] is source for source, _ in checking):
            dropped.append(model.training)

    parameters = list(model.parameters())
    optimizer.register_step_pre_hook(remember)
    model.register_forward_pre_hook(evaluate)
    with torch.enable_grad():
        for _ in range(epochs):
            said = answer(model, training, checking, optimizer, schedule, clip)
            if not isinstance(said, tuple | list) or len(said) != 2:
                return said
            losses.append([*map(float, said[0]), float(said[1])])
            # those of the last step may stay: the next one clears them
            now = gradients()
            left.append(bool(now.any()) and not (stepped and now.equal(stepped[-1])))
    if not all(modes):
        return "a step in evaluation mode"
    if any(dropped):
        return "an evaluation in training mode"
    if not model.training:
        return "left in evaluation mode"
    weights = torch.cat([p.detach().flatten() for p in parameters])
    rate = schedule.get_last_lr()[0]
    return {"losses": losses, "rate": rate, "weights": weights, "left": left}


# ---- chapter 08: greedy decoding ---------------------------------------------


def asked(
    answer: Callable,
    next_logits: Callable,
    b: int,
    start: int,
    end: int,
    pad: int,
    most: int,
) -> object:
    """Let an answer decode, and watch whom it asks about, and with what."""
    history = {row: [start] for row in range(b)}  # of the rows that have not ended

    def watched(tokens: object, rows: object) -> Tensor:
        for fault, broken in rules:
            if broken(tokens, rows):
                raise Refused(fault)
        logits = next_logits(tokens, rows)
        for row, symbol in zip(rows.tolist(), logits.argmax(-1).tolist(), strict=True):
            history[row].append(symbol)
            if symbol == end:
                del history[row]
        return logits

    def other(tokens: Tensor, rows: Tensor) -> bool:
        return tokens.tolist() != [history[row] for row in rows.tolist()]

    rules = [
        ("tensors", lambda x, n: not all(isinstance(t, Tensor) for t in (x, n))),
        ("shapes", lambda x, n: x.dim() != 2 or n.shape != x.shape[:1]),
        ("int64", lambda x, n: {x.dtype, n.dtype} != {torch.int64}),
        ("numbers", lambda x, n: not set(n.tolist()) <= set(range(b))),
        ("afresh", lambda x, n: n.tolist() == [*range(len(history))] != [*history]),
        ("ended", lambda x, n: not set(n.tolist()) <= set(history)),
        ("together", lambda x, n: sorted(n.tolist()) != sorted(history)),
        ("start", lambda x, n: not x.shape[1] or bool((x[:, 0] != start).any())),
        ("room", lambda x, n: x.shape[1] > most),
        ("fed", other),
    ]
    try:
        return answer(watched, b, start, end, pad, most)
    except Refused as refused:
        return str(refused)


# ---- chapter 12: the memory of segments --------------------------------------


def memory_kept(
    answer: Callable, memory: Tensor, states: Tensor, mem_len: int
) -> object:
    """Let an answer update a memory while gradients are on: none may flow out of it."""
    with torch.enable_grad():
        given = (x.clone().requires_grad_() for x in (memory, states))
        kept = answer(*given, mem_len)
    return "attached" if isinstance(kept, Tensor) and kept.requires_grad else kept


# ---- chapter 13: windows, and no table of all pairs ----------------------------


class Measured(Counted):
    """Counts calls, remembers the size of the largest result, and counts the
    multiplications of matrix products."""

    largest = products = 0

    def look(self, operation: Callable, args: tuple, result: object) -> None:
        super().look(operation, args, result)
        if isinstance(result, Tensor):
            self.largest = max(self.largest, result.numel())
            if operation in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default):
                self.products += result.numel() * args[0].shape[-1]


def within_windows(
    answer: Callable, x: Tensor, values: Tensor, bucket: Tensor, c: int
) -> object:
    """Let an answer attend; a long sequence needs far less than all its pairs."""
    t = len(x)
    long = t >= 100
    with Measured(40 * t if long else math.inf) as seen:
        result = answer(x, values, bucket, c)
    if long and seen.largest >= t * t:
        return "dense"
    return "loops" if seen.loops else result


# ---- chapter 17: no table of all pairs ------------------------------------------


def without_table(
    answer: Callable, *arguments: object, most: float = math.inf, once: bool = False
) -> object:
    """Let an answer compute; where there are many pairs, no tensor may hold nearly as
    many numbers. Queries, keys and values are the first three arguments, or n is the
    first.

    Args:
        most: so many calls of PyTorch are allowed.
        once: is each score computed once?
    """
    both = arguments[:2] if isinstance(arguments[0], Tensor) else 2 * arguments[:1]
    sizes = [len(one) if isinstance(one, Tensor) else one for one in both]
    pairs = math.prod(sizes)
    with Measured(most) as seen:
        result = answer(*arguments)
    if seen.loops:
        return "loops"
    if pairs > 50_000 and seen.largest > pairs / 10:
        return "table"
    if pairs > 50_000 and once:
        _, k, v, *_ = arguments
        if seen.products > pairs * (1.5 * k.shape[1] + v.shape[1]):
            return "twice"
    return result


def in_one_pass(answer: Callable, *arguments: object) -> object:
    """The same, and each score is computed once."""
    return without_table(answer, *arguments, once=True)


def without_table_or_loop(answer: Callable, q: Tensor, *others: object) -> object:
    """The same, and a long text needs no more calls of PyTorch than a short one."""
    return without_table(answer, q, *others, most=100 if len(q) > 300 else math.inf)


class Forgetting(Counted):
    """Ends an answer whose tensors hold too many numbers at once, all that PyTorch gave
    it together, or require a gradient.

    Args:
        room: so many numbers are allowed.
    """

    def __init__(self, room: float):
        super().__init__(math.inf)
        self.room, self.fault = room, ""
        self.given: list[ref] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs)
        if isinstance(result, Tensor) and result.requires_grad:
            self.stop("autograd")
        return result

    def look(self, operation: Callable, args: tuple, result: object) -> None:
        if torch.is_grad_enabled():
            self.stop("autograd")
        if isinstance(result, Tensor) and self.held_with(result) > self.room:
            self.stop("table")

    def stop(self, fault: str) -> None:
        self.fault = fault
        raise Looping

    def held_with(self, result: Tensor) -> int:
        """How many numbers are held, now that there's one result more."""
        self.given = [one for one in self.given if one() is not None] + [ref(result)]
        stores = {}  # by their places, since views share what they hold
        for x in (one() for one in self.given):
            store = x.untyped_storage()
            stores[store.data_ptr()] = store.nbytes() // x.itemsize
        return sum(stores.values())


def forgetting(answer: Callable, q: Tensor, k: Tensor, *others: object) -> object:
    """Let an answer go backward without autograd; where there are many pairs, it never
    holds nearly as many numbers."""
    pairs = len(q) * len(k)
    with Forgetting(pairs / 3 if pairs > 50_000 else math.inf) as seen:
        result = answer(q, k, *others)
    return seen.fault or result


def in_pieces(
    answer: Callable, q: Tensor, k: Tensor, v: Tensor, window: int, sizes: list[int]
) -> object:
    """Let an answer read a text in pieces; the last of them is unknown before."""
    result, before = answer(q, k, v, window, sizes), len(q) - sizes[-1]
    pair = isinstance(result, tuple | list) and len(result) == 2
    if not pair or not isinstance(result[0], Tensor):
        return result
    k, v = (x.index_fill(0, torch.arange(before, len(x)), math.nan) for x in (k, v))
    again, _ = answer(q, k, v, window, sizes)
    return result if again[:before].equal(result[0][:before]) else "later"


# ---- chapter 14: dice that are rolled again, and chunks ----------------------


class Kept(torch.autograd.Function):
    """The same tensor; a mark lives as long as its graph, until somebody goes back."""

    @staticmethod
    def forward(x: Tensor, mark: object) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        ctx.mark = inputs[1]

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple:
        ctx.mark = None
        return gradient, None


class Mark:
    """Lives as long as somebody holds it."""


def _marked(x: Tensor, marks: WeakSet) -> Tensor:
    """The same tensor; among the marks is one more as long as its graph lives."""
    mark = Mark()
    marks.add(mark)
    return Kept.apply(x, mark)


def leaving_flags(
    answer: Callable, f: Callable, weights: list[Tensor], *streams: Tensor
) -> object:
    """Let an answer differentiate, and see whether its arguments came out of it, and
    whether it kept the graphs of more than two calls at once."""
    marks, most, off = WeakSet(), 0, False

    def watched(z: Tensor, w: Tensor) -> Tensor:
        nonlocal most, off
        off = off or not torch.is_grad_enabled()
        added = f(z, w)
        if added.requires_grad:
            added = _marked(added, marks)
            most = max(most, len(marks))
        return added

    try:
        result = answer(watched, weights, *streams)
    except RuntimeError as error:
        if off and "does not require grad" in str(error):
            return "off"
        raise
    if any(given.requires_grad for given in (*weights, *streams)):
        return "touched"
    return "graph" if most > 2 else result


@torch.enable_grad()
def replayed(
    answer: Callable, f: Callable, x: Tensor, rebuilt: Tensor, between: int
) -> dict:
    """Let an answer replay a call; what it gives, and how the generator goes on."""
    torch.rand(2)  # not where a fresh seed stands
    state = torch.get_rng_state()
    f(x)
    torch.rand(between)
    x = rebuilt.clone().requires_grad_()
    result = answer(f, state.clone(), x)
    follows = isinstance(result, Tensor) and result.requires_grad
    if follows:
        (gradient,) = torch.autograd.grad(result.sum(), x, allow_unused=True)
        follows, result = gradient is not None, result.detach()
    return {"result": result, "gradients": follows, "next": torch.rand(4)}


def counting_positions(
    answer: Callable, f: Callable, x: Tensor, size: int, reach: int
) -> object:
    """Let an answer compute in chunks, and watch how long and how many they are."""
    lengths = []

    def watched(part: Tensor) -> Tensor:
        lengths.append(part.shape[-2])
        return f(part)

    result = answer(watched, x, size, reach)
    if max(lengths, default=0) > size + reach:
        return "too many"
    return "too often" if len(lengths) > -(-x.shape[-2] // size) else result


# ---- chapter 15: an error that names what is wrong ---------------------------


SAVED = ["words", "widen.kernel", "layer.qkv.kernel", "layer.qkv.bias"]
SAVED += ["layer.out.kernel", "layer.out.bias"]  # the names of a file of weights


def naming(answer: Callable, state: dict, layers: int) -> object:
    """Let an answer translate weights; one that refuses has to name what is odd."""
    try:
        return answer(state, layers)
    except ValueError as error:
        odd = set(SAVED) ^ state.keys()
        if not all(name in str(error) for name in odd):
            return "unnamed"
        raise


# ---- chapter 18: pieces of a batch, processes, and blocks that run twice ------


def stepped_in_pieces(
    answer: Callable,
    tables: list[Tensor],
    pieces: list[tuple[Tensor, Tensor]],
    rate: float,
    clip: float,
) -> object:
    """Let an answer take one step with a batch in pieces; its loss, and the weights."""
    v, d = tables[0].shape
    model = nn.Sequential(nn.Embedding(v, d), nn.Tanh(), nn.Linear(d, v, bias=False))
    for parameter, table in zip(model.parameters(), tables, strict=True):
        parameter.data = table.clone()
        parameter.grad = torch.full_like(table, 0.1)  # of an evaluation, say
    shapes, faults, marks = {x.shape for x, _ in pieces}, [], WeakSet()

    def watch(module: nn.Module, given: tuple, logits: Tensor) -> Tensor:
        if not logits.requires_grad:
            return logits
        if marks:
            faults.append("together")
        return _marked(logits, marks)

    def compare(module: nn.Module, given: tuple) -> None:
        if given[0].shape not in shapes:
            faults.append("joined")

    model[0].register_forward_pre_hook(compare)
    model[-1].register_forward_hook(watch)  # its parts may be called one by one
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with torch.enable_grad():
        loss = answer(model, optimizer, pieces, clip)
    if getattr(loss, "requires_grad", False):
        faults.append("attached")
    if faults or not isinstance(loss, float | Tensor):
        return faults[0] if faults else loss
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    return {"loss": float(loss), "weights": weights}


def trained_in_shares(
    answer: Callable,
    weight: Tensor,
    texts: list[Tensor],
    gradient: Callable,
    shuffle: Callable,
    ranks: int,
    clip: float,
) -> object:
    """Let an answer train; the weights, if each process took its gradient each step."""
    calls = 0

    def counted(w: Tensor, tokens: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return gradient(w, tokens)

    weights = answer(weight, texts, counted, shuffle, ranks, clip)
    if isinstance(weights, list) and calls != 3 * len(texts) // 4 * ranks:
        return "shares"
    return weights


def _played(processes: list, exchange: Callable, most: int) -> list:
    """Run generators in step, one for each process; what they return.

    Args:
        exchange: what all have sent -> what arrives at each.
        most: so many exchanges are allowed.
    """
    if not all(map(isgenerator, processes)):
        raise Refused("generator")
    arrived = [None] * len(processes)
    for _ in range(most + 1):
        sent, results = [], []
        for process, message in zip(processes, arrived, strict=True):
            try:
                sent.append(process.send(message))
            except StopIteration as end:
                results.append(end.value)
        if not sent:
            return results
        if results:
            raise Refused("alone")
        arrived = exchange(sent)
    raise Refused("often")


def in_a_ring(program: Callable, inputs: list) -> list:
    """Play n processes, which send to the next one; what each of them returns.

    Args:
        program: a generator, ``program(rank, n, input)``, for the reader to try.
    """
    processes = [program(rank, len(inputs), x) for rank, x in enumerate(inputs)]
    return _played(processes, lambda sent: sent[-1:] + sent[:-1], 1000)


def around_the_ring(
    answer: Callable, gradients: list[Tensor], noise: float = 0.0
) -> object:
    """Let an answer add up gradients in a ring; what each process returns.

    Args:
        noise: added to all that's sent in the first step; so each number of the sum,
            which starts there in one process, has to grow by it.
    """
    n, most = len(gradients), -(-len(gradients[0]) // len(gradients))
    own, added = copied(gradients), [noise]

    def pass_on(sent: list) -> list[Tensor]:
        for piece in sent:
            if not (isinstance(piece, Tensor) and piece.dim() == 1):
                raise Refused("message")
            if piece.dtype != own[0].dtype:
                raise Refused("message")
            if len(piece) > most:
                raise Refused("whole")
        extra = added.pop() if added else 0.0
        return [sent[rank - 1] + extra for rank in range(n)]

    try:
        processes = [answer(rank, n, gradient) for rank, gradient in enumerate(own)]
        results = _played(processes, pass_on, 2 * (n - 1))
    except Refused as refused:
        return str(refused)
    return results if all(map(torch.equal, own, gradients)) else "changed"


EXCHANGES = "reduce-scatter", "all-reduce", "all-gather"


def owned_in_parts(
    answer: Callable,
    weights: Tensor,
    gradients: list[Tensor],
    averages: list[tuple[Tensor, Tensor]],
    step: int,
    rate: float,
    clip: float,
) -> object:
    """Let an answer take a step of Adam with n owners; what each process returns.

    Args:
        gradients: of all weights, one for each process.
        averages: both of Adam's, of each process's part.
    """
    n, most, done = len(gradients), len(averages[0][0]), []

    def exchange(sent: list) -> list[Tensor]:
        for message in sent:
            if not isinstance(message, tuple | list) or len(message) != 2:
                raise Refused("message")
            if message[0] not in EXCHANGES:
                raise Refused("message")
            if not isinstance(message[1], Tensor | float | int):
                raise Refused("message")
        kinds, values = [one[0] for one in sent], [torch.as_tensor(x) for _, x in sent]
        if len(set(kinds)) > 1 or len({value.shape for value in values}) > 1:
            raise Refused("different")
        [kind, *_], size = kinds, values[0].numel()
        if kind in done:
            raise Refused("often")
        done.append(kind)
        if kind == "all-gather":
            if size > most:
                raise Refused("gathered")
            return [torch.cat([x.flatten() for x in values]) for _ in range(n)]
        total = torch.stack(values).sum(dim=0).flatten()
        if kind == "all-reduce":
            if size > 1:
                raise Refused("reduced")
            return [total[0].clone() for _ in range(n)]
        if size % n:
            raise Refused("uneven")
        return [part.clone() for part in total.chunk(n)]

    given = [
        (weights.clone(), gradient.clone(), *copied(own))
        for gradient, own in zip(gradients, averages, strict=True)
    ]
    before = copied(given)
    try:
        processes = [
            answer(rank, n, *own, step, rate, clip) for rank, own in enumerate(given)
        ]
        results = _played(processes, exchange, len(EXCHANGES))
    except Refused as refused:
        return str(refused)
    for one, other in zip(given, before, strict=True):
        if not all(map(torch.equal, one, other)):
            return "changed"
    missing = [f"no {kind}" for kind in EXCHANGES if n > 1 and kind not in done]
    if missing:
        return missing[0]
    for result in results:
        if isinstance(result, tuple | list) and len(result) == 3:
            if {getattr(one, "shape", None) for one in result[1:]} != {(most,)}:
                return "averages"
    return results


@torch.enable_grad()
def run_twice(
    answer: Callable,
    f: Callable,
    x: Tensor,
    weights: list[Tensor],
    learns: bool,
    between: int,
) -> object:
    """Let an answer checkpoint a block, and see what it keeps, gives and draws.

    Args:
        learns: does x require a gradient?
        between: so many numbers are drawn between the passes.
    """
    inputs = [x.clone().requires_grad_(learns)]
    inputs += [weight.clone().requires_grad_() for weight in weights]
    marks, ready = WeakSet(), False

    def watched(*given: Tensor) -> Tensor:
        nonlocal ready
        frame = sys._getframe()
        while frame := frame.f_back:
            file = Path(frame.f_code.co_filename)
            ready |= file.parts[-3:] == ("torch", "utils", "checkpoint.py")
        added = f(*given)
        return _marked(added, marks) if added.requires_grad else added

    torch.rand(2)  # not where a fresh seed stands
    y = answer(watched, *inputs)
    if ready or not isinstance(y, Tensor):
        return "ready" if ready else y
    if not y.requires_grad:
        return "flat"
    if marks:  # a graph of f is alive
        return "kept"
    drawn = [torch.rand(4)]
    torch.rand(between)
    try:
        (y * upstream(y)).sum().backward()
    except RuntimeError as error:
        if "element 0 of tensors" in str(error):
            return "off"
        raise
    drawn.append(torch.rand(4))
    gradients = [one.grad for one in inputs if one.requires_grad]
    return {"value": y.detach(), "gradients": gradients, "drawn": drawn}


# ---- chapter 20: patients, which come as texts -------------------------------


def script(source: str) -> dict:
    """Run the text of a patient; what it defines."""
    namespace = {"__name__": "patient"}
    exec(compile(source, "<a patient>", "exec"), namespace)
    return namespace


def _born(source: str, number: int) -> tuple[dict, nn.Module]:
    """What a patient's text defines, and a model of it."""
    made = script(source)
    torch.manual_seed(number)
    return made, made["Model"]()


def as_trained(answer: Callable, source: str, tokens: Tensor, number: int) -> object:
    """Let an answer examine a model that comes from its training."""
    made, model = _born(source, number)
    return answer(model.train(), tokens, made["V"])


def looking(answer: Callable, tokens: Tensor, source: str, number: int) -> object:
    """Let a model read with an answer's masks and positions; logits of real tokens."""
    made, model = _born(source, number)
    made["look"] = answer
    logits = model.eval()(tokens)
    real = (tokens != made["PAD"])[..., None]
    finite = bool(logits.isfinite().all())
    return {"logits": logits.masked_fill(~real, 0.0), "finite": finite}


@torch.enable_grad()
def asked_of_loss(answer: Callable, source: str) -> object:
    """Let an answer examine a loss."""
    made = script(source)
    return answer(*(made[name] for name in ("loss", "V", "PAD", "END")))


def reading_on(
    answer: Callable, source: str, texts: list[Tensor], pieces: list[int], number: int
) -> object:
    """Let an answer read texts by turns, in pieces, each token once; their logits."""
    _, model = _born(source, number)
    model.eval()
    read, pasts, found = 0, [None] * len(texts), [[] for _ in texts]

    def count(layer: nn.Module, given: tuple) -> None:
        nonlocal read
        read += given[0].shape[:2].numel()

    model.layers[0].register_forward_pre_hook(count)
    for turn in zip(*(tokens.split(pieces, dim=1) for tokens in texts), strict=True):
        for i, piece in enumerate(turn):
            logits, pasts[i] = answer(model, piece, pasts[i])
            found[i].append(logits)
    again = read > sum(map(Tensor.numel, texts))
    return "again" if again else [torch.cat(logits, dim=1) for logits in found]


@torch.enable_grad()
def examined(answer: Callable, source: str, tokens: Tensor, number: int) -> object:
    """Let an answer make models, and examine them."""
    make = script(source)["Model"]
    torch.manual_seed(number)
    return answer(lambda: make(), tokens)


def with_twenty_calls(
    answer: Callable, source: str, tokens: Tensor, number: int
) -> object:
    """Let an answer call a model, one text at a time, and not more than 20 times."""
    made, model = _born(source, number)
    model.eval()
    calls = 0

    def f(text: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > 20:
            raise Looping
        if text.shape != tokens.shape:
            shape = tuple(text.shape)
            raise ValueError(f"f reads one text {tuple(tokens.shape)}, got {shape}")
        with torch.no_grad():
            return model(text[None])[0]

    try:
        result = answer(f, tokens, made["V"])
    except Looping:
        return "calls"
    return "calls" if calls > 20 else result  # an answer may have caught it
