"""What is folded on a page, and what the fold says."""

import json
from types import SimpleNamespace

import pytest

from book._ext import folds


def folded(tags, path="notebooks/02_self_attention.ipynb"):
    cell = {"cell_type": "code", "source": "1", "metadata": {"tags": list(tags)}}
    source = [json.dumps({"cells": [cell]})]
    env = SimpleNamespace(doc2path=lambda docname: path)
    folds.fold_cells(SimpleNamespace(env=env), "page", source)
    return json.loads(source[0])["cells"][0]["metadata"]


@pytest.mark.parametrize(
    ("tags", "kept", "says"),
    [
        (["setup"], ["setup", "hide-cell"], "Set-up, the same in every chapter"),
        (["hide-input", "proof"], ["hide-input", "proof"], "how we checked"),
        (["hide-input"], ["hide-input"], None),
        ([], [], None),
    ],
)
def test_a_fold_says_what_its_tags_mean(tags, kept, says):
    metadata = folded(tags)
    assert metadata["tags"] == kept
    assert metadata.get("mystnb", {}).get("code_prompt_show") == says


def test_only_notebooks_have_cells():
    source = ["# A page of prose"]
    env = SimpleNamespace(doc2path=lambda docname: "book/setup.md")
    folds.fold_cells(SimpleNamespace(env=env), "book/setup", source)
    assert source == ["# A page of prose"]
