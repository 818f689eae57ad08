"""Make `annotated/vendor/rxnmapper` from the wheel that the model was published in.

    pip download --no-deps rxnmapper==0.4.3
    python -m tools.rxnmapper rxnmapper-0.4.3-py3-none-any.whl

Weights go from PyTorch's pickle to safetensors, number for number. Of two tensors that
the file holds twice, the output's matrix and its bias, the second copies are left out.
"""

import argparse
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch

VENDOR = Path(__file__).parents[1] / "annotated" / "vendor" / "rxnmapper"
FOLDER = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
# file of the wheel: sha256
FILES = {
    f"{FOLDER}/pytorch_model.bin": (
        "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2"
    ),
    f"{FOLDER}/vocab.txt": (
        "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd"
    ),
    "rxnmapper-0.4.3.dist-info/licenses/LICENSE": (
        "707cf50feda0013d8669dda399d2c621414c3b3e29b07938af20b7572c93d499"
    ),
}
COPIES = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}


DTYPES = {torch.float32: "F32", torch.float16: "F16"}


def safetensors(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Return a file of tensors of floats: the header's length, the header, the numbers.

    In the order of their names, so that the same numbers give the same bytes.
    """
    header, numbers = {}, b""
    for name, tensor in sorted(tensors.items()):
        if tensor.dtype not in DTYPES:
            raise ValueError(f"{name} must hold float32 or float16, got {tensor.dtype}")
        content = tensor.contiguous().numpy().tobytes()
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(numbers), len(numbers) + len(content)],
        }
        numbers += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + numbers


def main(arguments: list[str] | None = None, folder: Path = VENDOR) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    with zipfile.ZipFile(parser.parse_args(arguments).wheel) as wheel:
        model, vocabulary, licence = (wheel.read(name) for name in FILES)
    for content, name in zip((model, vocabulary, licence), FILES, strict=True):
        found = hashlib.sha256(content).hexdigest()
        if found != FILES[name]:
            raise SystemExit(f"{name} has the sha256 {found}, expected {FILES[name]}")
    state = torch.load(io.BytesIO(model), map_location="cpu", weights_only=True)
    for copy, original in COPIES.items():
        if not torch.equal(state.pop(copy), state[original]):
            raise SystemExit(f"{copy} is not {original} once more")
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        "model.safetensors": safetensors(state),
        "vocab.txt": vocabulary,
        "LICENSE": licence,
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name} ({len(content):,} bytes)")


if __name__ == "__main__":
    main()
