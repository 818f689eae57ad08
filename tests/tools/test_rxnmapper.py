"""tools/rxnmapper.py: from the wheel to files, number for number."""

import hashlib
import io
import zipfile

import pytest
import torch

from annotated.weights import read_safetensors
from tools import rxnmapper

STATE = {
    "albert.embeddings.word_embeddings.weight": torch.arange(6.0).reshape(2, 3),
    "predictions.bias": torch.tensor([1.0, -1.0]),
}
COPIES = {copy: STATE[original] for copy, original in rxnmapper.COPIES.items()}


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    def wheel(state: dict, known: bool = True) -> list[str]:
        file = io.BytesIO()
        torch.save(state, file)
        contents = [file.getvalue(), b"[PAD]\n", b"a licence"]
        path, named = tmp_path / "tiny.whl", dict.fromkeys(rxnmapper.FILES)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in zip(named, contents, strict=True):
                archive.writestr(name, content)
                named[name] = hashlib.sha256(content).hexdigest()
        if known:
            monkeypatch.setattr(rxnmapper, "FILES", named)
        return [str(path)]

    return wheel


def test_numbers_stay_and_copies_go(wheel, tmp_path):
    rxnmapper.main(wheel(STATE | COPIES), tmp_path / "made")
    found = read_safetensors(tmp_path / "made" / "model.safetensors")
    assert list(found) == sorted(STATE)
    assert all(torch.equal(found[name], x) for name, x in STATE.items())
    assert (tmp_path / "made" / "vocab.txt").read_bytes() == b"[PAD]\n"
    assert (tmp_path / "made" / "LICENSE").read_bytes() == b"a licence"
    content = (tmp_path / "made" / "model.safetensors").read_bytes()
    assert int.from_bytes(content[:8], "little") % 8 == 0


def test_another_wheel_is_refused(wheel, tmp_path):
    with pytest.raises(
        SystemExit, match=r"pytorch_model\.bin has the sha256 .* expect"
    ):
        rxnmapper.main(wheel(STATE | COPIES, known=False), tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_copy_that_differs_is_not_left_out(wheel, tmp_path):
    other = {copy: x + 1 for copy, x in COPIES.items()}
    with pytest.raises(SystemExit, match=r"decoder\.weight is not albert"):
        rxnmapper.main(wheel(STATE | other), tmp_path / "made")


def test_other_numbers_than_floats_are_named():
    with pytest.raises(ValueError, match=r"x must hold float32 or .*got torch\.int64"):
        rxnmapper.safetensors({"x": torch.tensor([1])})
