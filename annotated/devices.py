"""Devices: a batch goes to where its model is, on the CPU or on a GPU.

Data is made and kept on the CPU. Whatever reads batches with a model moves them first,
so a page runs unchanged wherever its model stands.
"""

from itertools import chain
from typing import Any

import torch
from torch import nn


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a ``model``: the CPU if it has neither parameter nor buffer.

    A model is on one device, so its first tensor tells.
    """
    tensors = chain(model.parameters(), model.buffers())
    return next((tensor.device for tensor in tensors), torch.device("cpu"))


def to_device(batch: Any, device: torch.device | str) -> Any:
    """Return a batch on a device.

    Args:
        batch: a tensor, or anything else with a method ``to``; or a tuple, named tuple,
            list or dictionary of them, at any depth. What can't be moved stays.
        device: where it goes.
    """
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: to_device(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        make = getattr(type(batch), "_make", type(batch))  # of a NamedTuple
        return make(to_device(part, device) for part in batch)
    return batch
