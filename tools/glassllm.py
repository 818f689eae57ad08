"""Make `annotated/vendor/glassllm` from the wheel that the model was published in.

    pip download --no-deps glassllm==0.1.0
    python -m tools.glassllm glassllm-0.1.0-py3-none-any.whl

Weights go from NumPy's archive to safetensors, number for number and under the same
names. What else the archive holds, the configuration, is in
`annotated/data/glassllm.py`.
"""

import argparse
import hashlib
import io
import zipfile
from pathlib import Path

import numpy
import torch

from tools.rxnmapper import safetensors

VENDOR = Path(__file__).parents[1] / "annotated" / "vendor" / "glassllm"
# file of the wheel: sha256
FILES = {
    "glassllm/weights/en.npz": (
        "261ae219ab98caa1f3641e23deb3d9d91b7b7a276f991cbd494f67cfa5abce4d"
    ),
    "glassllm/weights/en.tokenizer.json": (
        "4cf0830157c45cf7f8c70a8fdcb8378c33330b9ba0c9a312e772d7d6485ca4df"
    ),
    "glassllm-0.1.0.dist-info/licenses/LICENSE": (
        "9e33376790743d975866a3606a3d8be224344b3ad60d56e9dd84e8a7fb842581"
    ),
}


def main(arguments: list[str] | None = None, folder: Path = VENDOR) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    with zipfile.ZipFile(parser.parse_args(arguments).wheel) as wheel:
        weights, tokenizer, licence = (wheel.read(name) for name in FILES)
    for content, name in zip((weights, tokenizer, licence), FILES, strict=True):
        found = hashlib.sha256(content).hexdigest()
        if found != FILES[name]:
            raise SystemExit(f"{name} has the sha256 {found}, expected {FILES[name]}")
    arrays = numpy.load(io.BytesIO(weights))
    state = {
        name: torch.from_numpy(arrays[name])
        for name in arrays.files
        if name != "__config__"
    }
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        "model.safetensors": safetensors(state),
        "tokenizer.json": tokenizer,
        "LICENSE": licence,
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name} ({len(content):,} bytes)")


if __name__ == "__main__":
    main()
