"""A GPU for machines that have none: tensors with numbers, on a device of their own.

The tensors say that they are on the device ``meta``, whose operations PyTorch would
compute without numbers. Here each holds a tensor with numbers, so what depends on
numbers (``if ended.all()``) runs too. As on a GPU, an operation on tensors of two
devices raises, and as on Apple's, one in double precision does. What is not here: a
GPU's kernels, their rounding and their order.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

GPU = torch.device("meta")
aten = torch.ops.aten
# these copy from one device to another
COPIES = (aten._to_copy.default, aten.copy_.default)
# a GPU looks its rows up by indices from the CPU too, and wants lengths from there
MIXED = (
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._pack_padded_sequence.default,
)


class OnGPU(Tensor):
    """A tensor on the pretended GPU, and its ``numbers``, a tensor on the CPU."""

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "OnGPU":
        if numbers.dtype == torch.float64:
            raise TypeError("float64 on the GPU: MPS has none")
        wrapped = Tensor._make_wrapper_subclass(
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=GPU,
        )
        wrapped.numbers = numbers
        return wrapped

    def __repr__(self) -> str:
        return f"OnGPU({self.numbers!r})"

    def tolist(self) -> list:  # a subclass has none by itself
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """Makes tensors on the pretended GPU, where one of its device is asked for."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


ran: list[str] = []  # operations on the pretended GPU, by name


def _run(operation, args, kwargs):
    name = operation._schema.name
    changes = name.endswith("_") and not name.endswith("__")  # its first argument
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    wanted = kwargs.get("device")
    if wanted is None:
        stays = any(isinstance(x, OnGPU) for x in tensors)
    else:
        stays = torch.device(wanted) == GPU
        kwargs = kwargs | {"device": torch.device("cpu")}
    if stays:
        ran.append(name)
    if operation not in COPIES and any(isinstance(x, OnGPU) for x in tensors):
        # a number, a tensor without an axis, may come from the CPU to be read
        aside = [x for x in tensors if not isinstance(x, OnGPU) and x.dim()]
        if operation in MIXED and isinstance(args[0], OnGPU):
            aside = []
        if aside or (changes and not isinstance(args[0], OnGPU)):
            names = ("CPU", "GPU")
            raise RuntimeError(
                f"{name} got tensors on two devices: "
                + ", ".join(
                    f"{names[isinstance(x, OnGPU)]} {tuple(x.shape)}" for x in tensors
                )
            )
    result = operation(*tree_map(_numbers, args), **tree_map(_numbers, kwargs))
    if changes:
        if torch.Tag.inplace_view in operation.tags:  # such as transpose_
            with no_dispatch():
                operation(*args, **kwargs)
        return args[0]
    if operation is aten._pack_padded_sequence.default:
        return _on_gpu(result[0]), result[1]  # sizes of the batches stay on the CPU
    return tree_map(_on_gpu, result) if stays else result


def _numbers(x):
    return x.numbers if isinstance(x, OnGPU) else x


def _on_gpu(x):
    return OnGPU(x) if isinstance(x, Tensor) else x


def on_gpu(model: nn.Module) -> nn.Module:
    """Move a model; parameters that are shared stay shared."""
    moved = {}

    def move(tensor):
        if tensor not in moved:
            moved[tensor] = OnGPU(tensor.detach())
            if isinstance(tensor, nn.Parameter):
                moved[tensor] = nn.Parameter(moved[tensor], tensor.requires_grad)
        return moved[tensor]

    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    setattr(module, name, move(tensor))
    return model


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Return a block in which the device ``GPU`` has numbers; it knows no autocast."""
    tensor = torch.tensor  # makes its own where no mode sees it

    with (
        patch(
            "torch.tensor", lambda data, device=None, **k: tensor(data, **k).to(device)
        ),
        patch("torch.autocast", lambda *_, **__: nullcontext()),
        patch("torch.is_autocast_enabled", lambda *_: False),
        patch("torch.get_autocast_dtype", lambda *_: torch.bfloat16),
        _Factories(),
    ):
        yield
