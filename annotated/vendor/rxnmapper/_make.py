"""Make the files of this folder from the wheel that the model was published in.

    python -m venv ENV
    ENV/bin/pip install torch safetensors
    ENV/bin/pip download --no-deps rxnmapper==0.4.3
    ENV/bin/python annotated/vendor/rxnmapper/_make.py rxnmapper-0.4.3-py3-none-any.whl

Of two tensors that the file holds twice, the second copies are left out.
"""

import io
import sys
import zipfile
from pathlib import Path

import torch
from safetensors.torch import save_file

HERE = Path(__file__).parent
FOLDER = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
COPIES = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}

with zipfile.ZipFile(sys.argv[1]) as wheel:
    file = io.BytesIO(wheel.read(f"{FOLDER}/pytorch_model.bin"))
    (HERE / "vocab.txt").write_bytes(wheel.read(f"{FOLDER}/vocab.txt"))
    licence = wheel.read("rxnmapper-0.4.3.dist-info/licenses/LICENSE")
    (HERE / "LICENSE").write_bytes(licence)
state = torch.load(file, map_location="cpu", weights_only=True)
for copy, original in COPIES.items():
    assert torch.equal(state.pop(copy), state[original])
save_file(state, HERE / "model.safetensors")
