"""annotated/devices.py: batches go where the model is."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from annotated.devices import device_of, to_device


class Fed(NamedTuple):
    inputs: Tensor
    parts: dict


def test_a_model_is_where_its_first_tensor_is():
    model = nn.Linear(2, 2)
    assert device_of(model) == torch.device("cpu")
    assert device_of(model.to("meta")) == torch.device("meta")


def test_a_model_without_parameters_is_where_its_buffers_are():
    norm = nn.BatchNorm1d(2, affine=False)
    assert device_of(norm.to("meta")) == torch.device("meta")


def test_a_model_without_tensors_is_on_the_cpu():
    assert device_of(nn.Identity()) == torch.device("cpu")


def test_all_that_can_be_moved_moves_and_the_rest_stays():
    one = torch.ones(2)
    batch = {"one": one, "fed": Fed(one, {"deep": [one, ("text", one)]}), "seven": 7}
    moved = to_device(batch, "meta")
    assert list(moved) == list(batch) and moved["seven"] == 7
    inputs, parts = moved["fed"]
    assert type(moved["fed"]) is Fed and type(parts["deep"]) is list
    text, deepest = parts["deep"][1]
    tensors = moved["one"], inputs, parts["deep"][0], deepest
    assert {tensor.device.type for tensor in tensors} == {"meta"} and text == "text"
    assert one.device.type == "cpu", "the batch itself stays as it was"
