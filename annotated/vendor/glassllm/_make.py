"""Make the files of this folder from the wheel that the model was published in.

    python -m venv ENV
    ENV/bin/pip install numpy safetensors
    ENV/bin/pip download --no-deps glassllm==0.1.0
    ENV/bin/python annotated/vendor/glassllm/_make.py glassllm-0.1.0-py3-none-any.whl

What else the archive holds, the configuration, is in `annotated/glassllm.py`.
"""

import io
import sys
import zipfile
from pathlib import Path

import numpy
from safetensors.numpy import save_file

HERE = Path(__file__).parent

with zipfile.ZipFile(sys.argv[1]) as wheel:
    archive = numpy.load(io.BytesIO(wheel.read("glassllm/weights/en.npz")))
    tokenizer = wheel.read("glassllm/weights/en.tokenizer.json")
    (HERE / "tokenizer.json").write_bytes(tokenizer)
    licence = wheel.read("glassllm-0.1.0.dist-info/licenses/LICENSE")
    (HERE / "LICENSE").write_bytes(licence)
state = {name: archive[name] for name in archive.files if name != "__config__"}
save_file(state, HERE / "model.safetensors")
