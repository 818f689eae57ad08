"""The package alone: what `pip install` makes of it, in Colab as here."""

import importlib.resources
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement

import annotated

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
# from the list of what Colab's GPU runtime has installed
COLAB = {
    "babel": "2.18.0",
    "ipython": "7.34.0",
    "jinja2": "3.1.6",
    "matplotlib": "3.10.0",
    "numpy": "2.1.3",
    "pooch": "1.9.0",
    "seaborn": "0.13.2",
    "torch": "2.11.0+cu128",
    "tqdm": "4.67.3",
}


# for their size: data/vendored.py downloads them
LEFT_OUT = {
    "annotated/page/static/films_model.js",
    "annotated/page/static/refinement_model.js",
    "annotated/page/static/spelling_model.js",
    "annotated/vendor/rxnmapper/model.safetensors",
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
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
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
    expected.add("annotated/py.typed")
    expected.add("annotated/page/static/reactions.tsv")
    expected.add("annotated/page/static/respelled.tsv")
    expected.add("annotated/page/static/molecules.json")
    for path in (ROOT / "annotated/vendor").glob("*/[!_]*"):
        expected.add(path.relative_to(ROOT).as_posix())
    assert any("cmudict.dict.gz" in name for name in expected)
    assert LEFT_OUT < expected
    expected -= LEFT_OUT
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert not LEFT_OUT & inside and wheel.stat().st_size < 5_000_000
    assert expected <= inside
    assert not any(name.endswith("_make.py") for name in inside)
    assert not any(name.startswith(("book/", "tools/", "tests/")) for name in inside)


def run_installed(script, wheel, folder, *site):
    """What a script prints that finds the wheel, and not this repository."""
    zipfile.ZipFile(wheel).extractall(folder)
    # -P: not the folder that this runs in; -S: no editable install of the repository
    shown = subprocess.run(
        [sys.executable, "-P", "-S", "-c", script],
        cwd=folder.parent,
        env={"PYTHONPATH": os.pathsep.join([str(folder), *site])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_recorded_runs_are_found_in_an_installed_wheel(wheel, tmp_path):
    script = (
        "import importlib.resources as r;"
        "print(r.files('annotated.results').joinpath('a_run.json').read_text())"
    )
    assert json.loads(run_installed(script, wheel, tmp_path)) == {"seed": 0}


def test_what_an_engineer_imports_needs_no_extra(wheel, tmp_path):
    script = f"""\
import sys
sys.modules |= dict.fromkeys({sorted(of_an_extra())})  # importing them fails
import annotated.attention, annotated.probes, annotated.trace, annotated.weights
from annotated.data import vendored
print(annotated.__file__, *vendored._addresses("vendor/a.bin"))
"""
    site = sysconfig.get_path("purelib")
    where, tagged, _ = run_installed(script, wheel, tmp_path, site).split()
    assert Path(where).is_relative_to(tmp_path)
    repository, version = PROJECT["project"]["urls"]["Repository"], VERSION
    assert tagged == f"{repository}/raw/v{version}/annotated/vendor/a.bin"


def test_binder_has_what_a_notebook_needs():
    binder = yaml.safe_load((ROOT / "binder/environment.yml").read_text("utf-8"))
    project = PROJECT["project"]
    ranges = project["dependencies"] + project["optional-dependencies"]["notebooks"]
    names = {Requirement(line).name for line in ranges} - {"torch"} | {"pytorch-cpu"}
    assert names <= set(binder["dependencies"])


def of_an_extra():
    notebooks = PROJECT["project"]["optional-dependencies"]["notebooks"]
    names = {Requirement(line).name for line in notebooks}
    return (names - {"ipython"}) | {"IPython"}


def test_its_metadata_are_valid_and_one_version_is_everywhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        about = Metadata.from_email(archive.read(name), validate=True)
    assert about.description.startswith("# The Annotated Transformers")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == str(about.version) == annotated.__version__
    assert citation["repository-code"] == about.project_urls["Repository"]


def test_recorded_runs_are_found_in_the_installation_that_runs_this():
    names = {
        path.name for path in importlib.resources.files("annotated.results").iterdir()
    }
    assert {path.name for path in (ROOT / "book/results").glob("*.json")} <= names
    assert "__init__.py" in names


def test_installing_on_colab_leaves_torch_and_numpy_alone():
    project = PROJECT["project"]
    ranges = project["dependencies"] + project["optional-dependencies"]["notebooks"]
    needed = {r.name: r for r in map(Requirement, ranges)}
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
