"""`make official`, tried with tiny files in the published ones' place."""

import json
import re
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
import torch

from annotated.chapters.ch15 import drawings as ch15
from annotated.chapters.ch16 import drawings as ch16
from tools import official


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files to be read; records go beside them, and nothing compares."""
    monkeypatch.setattr(official, "DRY", tmp_path)
    monkeypatch.setattr(official, "find_spec", lambda name: None)
    official.write_tiny(tmp_path / "files")
    return tmp_path / "files"


def record(folder, name):
    return json.loads((folder.parent / f"{name}.json").read_text())


def test_everything_runs_dry_and_goes_on(folder, monkeypatch, capsys):
    assert official.main(["--dry"]) == 0
    assert capsys.readouterr().out.count("call again for what is left") == 2
    gpt2, bert = (record(folder, name) for name in official.MODELS)
    assert len(gpt2["rows"]) == gpt2["of"] == 9 and len(bert["rows"]) == bert["of"] == 6
    for made in (gpt2, bert):
        unfinished = [row for row in made["rows"] if "unfinished" in row]
        assert [row["what"] for row in unfinished] == ["logits"]
        assert "not compared" in unfinished[0]["unfinished"]
    assert {len(x) for x in gpt2["provenance"]["files"].values()} == {64}
    short, *_ = (row for row in gpt2["rows"] if row.get("window") == 32)
    # random weights of 0.3 are worse than guessing all of 50,257 tokens alike
    assert short["perplexity"] > 50_257 and short["tokens"] > 1000
    _, attention = gpt2["rows"][:2]
    assert len(attention["by_layer"]) == 2 and max(attention["by_layer"]) < 1
    assert all(len(row["guesses"]) == 5 for row in bert["rows"] if row["what"] == "gap")

    # with something to compare with, the row that was left is measured, and no other
    here = {"difference": 1e-12, "transformers": "9.9"}
    monkeypatch.setattr(official, "compared", lambda ours, theirs: here)
    assert official.main(["--dry"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4 and "gpt2: complete" in said and "bert: complete" in said
    gpt2, bert = (record(folder, name) for name in official.MODELS)
    assert here.items() <= gpt2["rows"][-1].items()

    # pages show what is there
    monkeypatch.setattr(ch15, "recorded_if_any", lambda name: bert)
    monkeypatch.setattr(ch16, "recorded_if_any", lambda name: gpt2)
    shown = ch15.gaps_table(None).text
    assert all(text in shown for text in ch15.GAPS) and "transformers 9.9" in shown
    assert "English: cheese ⏎ French" in ch16.continuations(None, None).text
    words = ch16.official_said(gpt2)
    assert f"{short['perplexity']:.1f} per token" in words and "9.9" in words
    assert "windows of 32 tokens" in words and "the first token" in words


def test_without_a_record_pages_show_nothing(monkeypatch):
    monkeypatch.setattr(ch15, "recorded_if_any", lambda name: None)
    monkeypatch.setattr(ch16, "recorded_if_any", lambda name: None)
    assert ch15.gaps_table(None) is None and ch16.continuations(None, None) is None


def test_other_logits_are_refused(monkeypatch):
    made = ModuleType("transformers")
    made.__version__, made.__spec__ = "9.9", ModuleSpec("transformers", None)
    monkeypatch.setitem(sys.modules, "transformers", made)
    x = torch.ones(2, 3, dtype=torch.float64)
    near = official.compared([x], lambda: [x + 1e-9])
    assert near["transformers"] == "9.9" and near["difference"] == pytest.approx(1e-9)
    for far in (x + 1e-5, x * torch.nan):
        with pytest.raises(
            ValueError, match="logits differ from those of transformers"
        ):
            official.compared([x], lambda far=far: [far])


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def reshape(path):
    state = official.read_safetensors(path)
    state = {name: x[..., :-1] if x.dim() > 1 else x for name, x in state.items()}
    path.write_bytes(
        official.safetensors({n: x.contiguous() for n, x in state.items()})
    )


@pytest.mark.parametrize("name", ["gpt2", "bert-base-uncased"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), r"No such file .*model\.safetensors"),
        (cut, r"model\.safetensors is no file of safetensors, or damaged: "),
        (reshape, r"does not fit config: .* must have the shape .* got .* in all"),
    ],
)
def test_a_bad_file_is_one_clear_line(folder, name, spoil, message, capsys):
    spoil(folder / name / "model.safetensors")
    short = name.partition("-")[0]
    assert official.main(["--dry", str(folder)]) == 1
    said = capsys.readouterr().out
    (line,) = (line for line in said.splitlines() if line.startswith(f"{short}: "))
    assert re.search(message, line)
    assert not (folder.parent / f"{short}.json").exists()


def test_what_was_not_published_is_not_taken_for_it(folder, capsys):
    assert official.main([str(folder)]) == 1
    assert capsys.readouterr().out.count("isn't the published file: ") == 2
    assert official.main([str(folder / "gpt2")]) == 1
    assert capsys.readouterr().out.count("model.safetensors is missing: ") == 2


def test_without_wikitext_its_rows_wait(folder, monkeypatch, capsys):
    def missing(source, name, files=official.Source.files):
        if name == "wikitext2":
            raise official.DataError("no archive")
        return files(source, name)

    monkeypatch.setattr(official.Source, "files", missing)
    assert official.main(["--dry"]) == 0
    rows = [row for row in record(folder, "gpt2")["rows"] if row["what"] == "text"]
    said = [row.get("unfinished") for row in rows]
    assert said == [None, *2 * ["not measured: no archive"]]
