"""A file in the format *safetensors* that stands for a download."""

import json
from collections.abc import Mapping

import torch
from torch import Tensor

KINDS = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16",
    torch.int64: "I64", torch.int16: "I16", torch.int8: "I8",
    torch.uint64: "U64", torch.bool: "BOOL",
}  # fmt: skip


def file_of(header: object, numbers: bytes) -> bytes:
    """The header's length, the header, the numbers."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the file that holds some tensors."""
    header, numbers = {"__metadata__": {"format": "pt"}}, b""
    for name, x in tensors.items():
        content = x.detach().numpy().tobytes()
        place = [len(numbers), len(numbers) + len(content)]
        entry = {"dtype": KINDS[x.dtype], "shape": [*x.shape], "data_offsets": place}
        header[name] = entry
        numbers += content
    return file_of(header, numbers)
