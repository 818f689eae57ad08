"""A trace: every operation of one prediction, with equation, source line and values.

PyTorch tells :func:`trace` of each operation that is about to run. Python's own stack
then says the rest: in which part of the model, and in which piece of which line. So
no model needs code of its own for it, and nothing can go stale.

Letters: b batch, t query length, s key length, h heads, d model width, k width of a
head, v vocabulary (``book/notation.md``).
"""

import linecache
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jaxtyping
import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from annotated import require
from annotated.attention import masked_softmax, scaled_dot_product_attention
from annotated.masks import causal_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    turn_pairs,
)
from annotated.sparse import block_sparse_attention
from annotated.training import evaluating
from annotated.transformer import FeedForward, Residual, Transformer

ROOT = Path(__file__).parents[1]
#: where the files begin whose frames are not the model's own
HELPER_FILES = (
    require.__file__,
    __file__,
    str(Path(torch.__file__).parent),
    str(Path(jaxtyping.__file__).parent),  # this and the next check types in tests
    "<@beartype",
)

#: operations that only lay the same numbers out anew; they are no steps
LAYOUT = set(
    "__get__ __getitem__ chunk contiguous expand flatten float movedim permute reshape "
    "split squeeze t to transpose unbind unflatten unsqueeze view view_as".split()
)
#: operations that are steps only where they change a number
STEPS_IF_CHANGED = ("cat", "dropout", "masked_fill", "masked_fill_")
#: functions that are one step, whatever they are made of
SINGLE_STEPS = (turn_pairs.__name__, block_sparse_attention.__name__)

#: what each linear map gives, the letter of that, and the map's own index
MAPS = {
    "query_map": ("queries", "Q", "q"),
    "key_map": ("keys", "K", "k"),
    "value_map": ("values", "V", "v"),
    "output_map": ("attention's output", "Y", "o"),
    "inner": ("inner numbers", "U", "1"),
    "gate": ("gates", "G", "g"),
    "outer": ("network's output", "Y", "2"),
    "output": ("logits", "Z", "z"),
}
#: of other operations: what they give, the letter of that, and its equation, in which
#: @ and # are the letters of what goes in. A key may begin with the class of the part,
#: or with the name of the function that calls the operation.
# fmt: off
OTHERS = {
    "embedding": ("token vectors", "X", r"E[\text{tokens}]"),
    (Transformer, "mul"): ("scaled vectors", "X", r"\sqrt{d} \, @"),
    (LearnedPositionalEmbedding, "add"): ("vectors with positions", "X", "@ + P"),
    (PositionalEncoding, "add"): ("vectors with positions", "X", "@ + P"),
    "layer_norm": ("norm", r"\hat{X}",
        r"g \odot \frac{@ - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b"),
    "rms_norm": ("norm", r"\hat{X}",
        r"g \odot \frac{@}{\sqrt{\overline{@^2} + \varepsilon}}"),
    turn_pairs.__name__: ("turned", "@", r"@_p \leftarrow R_p \, @_p"),
    "repeat_interleave": ("shared", "@", r"@^{(i)} = @^{(\lceil i / # \rceil)}"),
    (scaled_dot_product_attention.__name__, "mul"): ("scaled queries", "Q",
        r"@ / \sqrt{k}"),
    (scaled_dot_product_attention.__name__, "matmul"): ("scores", "S", r"@ \, #^\top"),
    (masked_softmax.__name__, "masked_fill"): ("visible scores", "S",
        r"@_{ij} \leftarrow {-\infty} \text{ where } i \text{ may not see } j"),
    "softmax": ("weights", "A",
        r"A_{ij} = \frac{\exp(@_{ij})}{\sum_{j'} \exp(@_{ij'})}"),
    "matmul of weights": ("weighted sum", "C", r"@ \, #"),
    scaled_dot_product_attention.__name__: ("attention", "C",
        r"\mathrm{softmax}(Q K^\top / \sqrt{k} + B) \, V"),
    block_sparse_attention.__name__: ("attention in blocks", "C",
        r"\mathrm{softmax}(Q K^\top / \sqrt{k} + B) \, V"),
    "relu": ("activations", "H", r"\max(0, @)"),
    "gelu": ("activations", "H", r"@ \odot \Phi(@)"),
    "gelu_tanh": ("activations", "H",
        r"\frac{1}{2} @ (1 + \tanh(\sqrt{2/\pi} \, (@ + 0.044715 \, @^3)))"),
    "silu": ("open gates", "H", r"\frac{@}{1 + e^{-@}}"),
    (FeedForward, "mul"): ("gated numbers", "H", r"@ \odot #"),
    (Residual, "add"): ("stream", "X", "@ + #"),
}
# fmt: on
#: stacks of layers, and what a layer of each is called
STACKS = {"blocks": "block", "encoder": "encoder layer", "decoder": "decoder layer"}
ENDS = {"encoder.norm": "end of the encoder"} | dict.fromkeys(
    ("blocks.norm", "decoder.norm", "output"), "output"
)
#: methods that embed, and what they embed
EMBEDS = {
    "embed": "embedding",
    "encode": "source embedding",
    "decode": "target embedding",
}


class Source(NamedTuple):
    """A piece of source, as it stands in its file."""

    file: str  #: its path, from the folder that holds ``annotated``
    line: int  #: number of its first line
    text: str  #: the line; several, where the operation goes on in the next
    part: str  #: what of the text is the operation


class Step(NamedTuple):
    """One operation of a prediction.

    Its value is ``(b, t, d)``, or ``(b, h, t, k)`` inside the heads of an attention,
    where scores and weights are ``(b, h, t, s)``; logits are ``(b, t, v)``.
    """

    place: str  #: where in the model, such as "block 1, attention"
    operation: str  #: what it gives, such as "queries"
    symbol: str  #: the letter of that, in LaTeX
    equation: str  #: in LaTeX; a row of a matrix is a position
    source: Source  #: the line that did it
    reads: tuple[int, ...]  #: numbers of the steps whose values it read
    shapes: tuple[tuple[int, ...], ...]  #: of the values it read
    value: Tensor  #: what came out

    def __repr__(self) -> str:
        where = f"{self.source.file}:{self.source.line}"
        shape = tuple(self.value.shape)
        return f"{self.place}: {self.operation} {shape}, {self.equation}, {where}"


def trace(model: nn.Module, *inputs: Tensor) -> list[Step]:
    """Return every operation of one prediction, in the order in which they ran.

    A step is an operation that makes new numbers from the tokens: not a mask, nor a
    view of the same numbers. Where PyTorch's fused attention ran, the steps are those
    of :func:`~annotated.attention.scaled_dot_product_attention`, and the last of them
    has the value that the fused kernel gave.

    Args:
        model: any module, of this book or your own. It runs once, in evaluation mode
            and without gradients, and stays as it was.
        inputs: what it reads, token ids ``(b, t)``: of a Transformer the source, then
            the target.

    Returns:
        The steps. The value of the last one is the model's output.

    Raises:
        TypeError: if ``model`` is no module, or an input holds no integers.
        ValueError: if the model is compiled, if an input isn't ``(b, t)`` or is empty,
            if the model finds an id or a length out of range, or if its output is not
            what its last operation made.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    require.that(
        not any(hasattr(part, "_orig_mod") for part in model.modules()),
        "model must not be compiled: its operations are fused; trace it before "
        "torch.compile",
    )
    require.that(inputs, "inputs must hold the tokens that the model reads, got none")
    for tokens in inputs:
        _require_tokens(tokens)
    recorder = _Recorder(model, inputs)
    with evaluating(model), recorder:
        output = model(*inputs)
    steps = recorder.steps
    _, last = recorder.made.get(id(output), (output, None))
    require.that(
        last is not None and last == len(steps) - 1,
        "model must end with the operation of PyTorch that makes its output, a tensor; "
        f"got a {type(model).__name__} whose output is not the last of its steps",
    )
    return steps


@require.shapes
def _require_tokens(tokens: Int[Tensor, "b t"]) -> None:
    shape = tuple(tokens.shape)
    require.that(tokens.numel(), f"tokens must not be empty, got the shape {shape}")


class _Recorder(TorchFunctionMode):
    """Writes a step for each operation that PyTorch tells it of."""

    def __init__(self, model: nn.Module, inputs: Iterable[Tensor]):
        super().__init__()
        self.steps: list[Step] = []
        self.parts = dict(model.named_modules())
        self.paths = {id(part): path for path, part in self.parts.items()}
        # what depends on the tokens, and the number of the step that made it; the
        # tensors are kept, so that no id is given away twice
        self.made = {id(tokens): (tokens, None) for tokens in inputs}
        self.tables: set[int] = set()  # ids of what embeddings look up
        self.whole: FrameType | None = None  # the call that the last step is all of

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        given = [x for x in _tensors((args, kwargs)) if id(x) in self.made]
        results = list(_tensors(result))
        if given and results:
            number = self.record(function, given, results[0], args, kwargs)
            self.made |= {id(one): (one, number) for one in results}
        return result

    def record(self, function, given, result, args, kwargs) -> int | None:
        """Write a step, if it is one; return the number of the step that ``result`` is.

        ``given`` are the tensors among ``args`` and ``kwargs`` that depend on tokens.
        """
        name, before = function.__name__, self.made[id(given[0])][1]
        if not result.is_floating_point():
            return None
        frames = list(_frames())
        if self.whole in frames:
            self.go_on(given, result)
        elif name in LAYOUT or (name in STEPS_IF_CHANGED and _same(result, given[0])):
            return before
        elif function is not F.scaled_dot_product_attention or not self.unfold(
            result, *args, **kwargs
        ):
            self.add(name, frames, given, result, args, kwargs)
        return len(self.steps) - 1

    def go_on(self, given, result) -> None:
        """Let the last step, which is several operations, read and give this one's."""
        step, last = self.steps[-1], len(self.steps) - 1
        numbers = dict.fromkeys(self.made[id(x)][1] for x in given)
        more = [n for n in numbers if n not in (None, last, *step.reads)]
        self.steps[-1] = step._replace(
            value=result.clone(),
            reads=(*step.reads, *more),
            shapes=(*step.shapes, *(tuple(self.steps[n].value.shape) for n in more)),
        )

    def unfold(
        self,
        result,
        q,
        k,
        v,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
    ) -> bool:
        """Write the steps of the equation in the place of a fused kernel.

        Return whether there is one: not if a mask is numbers, which scores get added.
        """
        if is_causal:
            attn_mask = causal_mask(q.shape[-2], k.shape[-2], device=q.device)
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            return False
        with self:
            scaled_dot_product_attention(q, k, v, attn_mask, scale=scale)
        self.steps[-1] = self.steps[-1]._replace(value=result.clone())
        return True

    def add(self, name, frames, given, value, args, kwargs) -> None:
        own = [f for f in frames if id(f.f_locals.get("self")) in self.paths]
        path = self.paths[id(own[0].f_locals["self"])]
        outside = (
            f for f in frames if not f.f_code.co_filename.startswith(HELPER_FILES)
        )
        single = (f for f in frames if f.f_code.co_name in SINGLE_STEPS)
        frame = next(single, None) or next(outside)
        function = frame.f_code.co_name
        whole = function in SINGLE_STEPS
        self.whole = frame if whole else None
        place = self.place(path, {f.f_code.co_name for f in own})
        numbers = (self.made[id(x)][1] for x in given)
        reads = tuple(dict.fromkeys(n for n in numbers if n is not None))
        steps = [self.steps[n] for n in reads]
        letters = [_letter(step, place) for step in steps]
        first = steps[0].operation if steps else ""
        if name == "linear":
            label = self.linear(path, *args, **kwargs)
        else:
            part = type(self.parts[path])
            keys = (part, name), f"{name} of {first}", (function, name)
            if (approximate := kwargs.get("approximate", "none")) != "none":
                name += f"_{approximate}"
            own_words = name, "Y", rf"\text{{{name}}}({', '.join(letters)})"
            labels = (OTHERS[key] for key in (*keys, function, name) if key in OTHERS)
            label = next(labels, own_words)
        operation, symbol, right = label
        if name == "embedding":
            self.tables.add(id(args[1]))
        if name == "repeat_interleave":
            letters.append(str(value.shape[1] // given[0].shape[1]))
        if symbol == "@":
            operation, symbol = f"{operation} {first}", letters[0]
        for mark, letter in zip("@#", letters, strict=False):
            right = right.replace(mark, letter)
        if not re.search(r"=|\\leftarrow", right):
            sign = r"\leftarrow" if symbol in letters else "="
            right = f"{symbol} {sign} {right}"
        shapes = tuple(tuple(x.shape) for x in [s.value for s in steps] or given)
        source, value = _source(frame, whole), value.clone()
        self.steps.append(
            Step(place, operation, symbol, right, source, reads, shapes, value)
        )

    def linear(self, path, x, weight, bias=None) -> tuple[str, str, str]:
        """Return what a linear map gives, the letter of that, and the right side."""
        name = path.split(".")[-1]
        operation, symbol, index = MAPS.get(name, (name, "Y", ""))
        matrix = "E" if id(weight) in self.tables else f"W_{{{index}}}"
        bias = "" if bias is None else f" + b_{{{index}}}"
        return operation, symbol, rf"@ \, {matrix}^\top{bias}"

    def place(self, path: str, functions: set[str]) -> str:
        """Return where a part is, in words; ``functions`` are those that called it."""
        if path in ENDS:
            return ENDS[path]
        if match := re.match(r"(\w+)\.layers\.(\d+)\.(\w+)\.?(\d*)", path):
            stack, layer, part, index = match.groups()
            if part == "residuals":  # one for each sublayer, in their order
                children = self.parts[f"{stack}.layers.{layer}"].named_children()
                part = [name for name, _ in children][int(index)]
            kind = STACKS.get(stack, f"{stack} layer")
            return f"{kind} {int(layer) + 1}, {part.replace('_', '-')}"
        embeds = [EMBEDS[name] for name in EMBEDS if name in functions]
        return embeds[0] if embeds else path or type(self.parts[path]).__name__


def _letter(step: Step, place: str) -> str:
    """Return the letter of a step's value: M, the memory, if the decoder reads it."""
    crossed = step.place.endswith("encoder") or step.place.startswith("encoder")
    return "M" if crossed and place.startswith("decoder") else step.symbol


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, tuple | list | dict):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _tensors(value)


def _frames() -> Iterator[FrameType]:
    """Yield the calls that led here, the innermost first."""
    frame = sys._getframe(1)
    while frame:
        yield frame
        frame = frame.f_back


def _source(frame: FrameType, whole: bool) -> Source:
    """Return the piece of source that ``frame`` is at; the whole line if ``whole``."""
    code = frame.f_code
    line, end, start, stop = list(code.co_positions())[frame.f_lasti // 2]
    lines = linecache.getlines(code.co_filename)[line - 1 : end]
    text = textwrap.dedent("".join(lines)).rstrip()
    path = Path(code.co_filename)
    file = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    if whole or start is None or not lines:
        return Source(file, line, text, text)
    # columns count bytes, and a dedented text begins further left
    margin = min(len(one) - len(one.lstrip()) for one in lines if one.strip())
    cut = [one.encode()[margin:] for one in lines]
    cut[-1] = cut[-1][: stop - margin]
    cut[0] = cut[0][start - margin :]
    return Source(file, line, text, b"".join(cut).decode())
