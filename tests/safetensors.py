"""A file in the format *safetensors*, for tests that stand for a download."""

import json
from collections.abc import Mapping

from torch import Tensor


def safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Of tensors in single precision: the header's length, the header, the numbers."""
    header, numbers = {}, b""
    for name, tensor in tensors.items():
        content = tensor.detach().numpy().tobytes()
        place = [len(numbers), len(numbers) + len(content)]
        header[name] = {"dtype": "F32", "shape": [*tensor.shape], "data_offsets": place}
        numbers += content
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers
