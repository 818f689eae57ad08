"""The package alone: what `pip install` makes of it, in Colab as here."""

import importlib.resources
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# from the list of what Colab's GPU runtime has installed
COLAB = {
    "babel": "2.18.0",
    "ipython": "7.34.0",
    "jinja2": "3.1.6",
    "matplotlib": "3.10.0",
    "numpy": "2.1.3",
    "seaborn": "0.13.2",
    "torch": "2.11.0+cu128",
    "tqdm": "4.67.3",
}


def pins():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and line[0] != "#"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    root = tmp_path_factory.mktemp("package")
    copied = shutil.ignore_patterns("__pycache__")
    for name in ("annotated", "book/results"):
        shutil.copytree(ROOT / name, root / name, ignore=copied)
    shutil.copy(ROOT / "pyproject.toml", root)
    (root / "book/results/a_run.json").write_text('{"seed": 0}')
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            ".",
            "--no-deps",
            "--no-build-isolation",
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = root.glob("*.whl")
    return path


def test_the_wheel_holds_all_code_scripts_styles_data_and_recorded_runs(wheel):
    expected = {"annotated/results/a_run.json"}
    for path in (ROOT / "annotated").rglob("*"):
        if path.suffix in (".py", ".js", ".css") and path.name != "_make.py":
            expected.add(path.relative_to(ROOT).as_posix())
    expected.add("annotated/page/static/reactions.tsv")
    expected.add("annotated/page/static/respelled.tsv")
    expected.add("annotated/page/static/molecules.json")
    for path in (ROOT / "annotated/vendor").glob("*/[!_]*"):
        expected.add(path.relative_to(ROOT).as_posix())
    assert any("cmudict.dict.gz" in name for name in expected)
    assert any("model.safetensors" in name for name in expected)
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert expected <= inside
    assert not any(name.endswith("_make.py") for name in inside)
    assert not any(name.startswith(("book/", "tools/", "tests/")) for name in inside)


def test_recorded_runs_are_found_in_an_installed_wheel(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = (
        "import importlib.resources as r;"
        "print(r.files('annotated.results').joinpath('a_run.json').read_text())"
    )
    # -P: not the folder that this runs in; -S: no editable install of the repository
    shown = subprocess.run(
        [sys.executable, "-P", "-S", "-c", script],
        cwd=tmp_path.parent,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(shown.stdout) == {"seed": 0}


def test_recorded_runs_are_found_in_the_installation_that_runs_this():
    names = {
        path.name for path in importlib.resources.files("annotated.results").iterdir()
    }
    assert {path.name for path in (ROOT / "book/results").glob("*.json")} <= names
    assert "__init__.py" in names


def test_installing_on_colab_leaves_torch_and_numpy_alone():
    needed = {r.name: r for r in map(Requirement, PROJECT["project"]["dependencies"])}
    assert set(needed) - set(COLAB) == {"jaxtyping"}  # pip installs this one there
    for name, present in COLAB.items():
        assert needed[name].specifier.contains(present), name


def test_every_requirement_is_pinned_and_installed_as_pinned():
    for pin in pins():
        (operator,) = [(s.operator) for s in pin.specifier]
        assert operator == "==", pin
        installed = version(pin.name).partition("+")[0]  # torch says +cpu or +cu130
        assert pin.specifier.contains(installed), f"{pin}, installed is {installed}"


def test_the_pins_lie_in_the_ranges_of_the_package():
    pinned = {pin.name.lower(): next(iter(pin.specifier)).version for pin in pins()}
    extras = dict(PROJECT["project"]["optional-dependencies"])
    extras.pop("bench")  # has an environment of its own, and its pins
    ranges = PROJECT["project"]["dependencies"] + [
        r for e in extras.values() for r in e
    ]
    for required in map(Requirement, ranges):
        assert required.specifier.contains(pinned[required.name.lower()]), required
