"""`tools/vendor.py` on small packages made here: no npm and no network."""

import io
import shutil
import tarfile

import pytest

from tools import vendor
from tools.vendor import Package, VendorError

PACKAGE = Package(
    "toy", "1.0.0", "MIT", {"LICENSE": "toy/LICENSE", "dist/*.js": "toy/"}
)
FILES = {"LICENSE": b"free", "dist/a.js": b"a()", "dist/b.js": b"b()", "more": b""}


@pytest.fixture
def registry(monkeypatch):
    """A stand-in for npm: packs `files` and gives `integrity` as their checksum."""

    def serve(files=FILES, integrity="sha512-1"):
        def pack(package, folder):
            path = folder / f"{package.name}.tgz"
            with tarfile.open(path, "w:gz") as archive:
                for name, content in files.items():
                    member = tarfile.TarInfo(f"package/{name}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
            return path, integrity

        monkeypatch.setattr(vendor, "pack", pack)

    serve()
    return serve


@pytest.fixture
def folder(tmp_path, registry):
    made = tmp_path / "vendor"
    vendor.create([PACKAGE], made)
    return made


def check(folder, packages=(PACKAGE,)):
    return vendor.problems(list(packages), folder)


def test_create_writes_what_is_listed_and_no_more(folder):
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*.*")}
    assert present == {"MANIFEST.json", ".gitattributes", "toy/a.js", "toy/b.js"}
    assert (folder / "toy" / "LICENSE").read_bytes() == b"free"
    assert check(folder) == []


def test_create_removes_what_is_no_longer_listed(folder):
    (folder / "old.js").touch()
    vendor.create([PACKAGE], folder)
    assert not (folder / "old.js").exists()
    assert [p.name for p in folder.parent.iterdir()] == ["vendor"]


def test_changed_file_is_found(folder):
    (folder / "toy" / "a.js").write_text("evil()")
    [found] = check(folder)
    assert found.startswith("toy/a.js has sha256")


def test_missing_and_extra_files_are_found(folder):
    shutil.move(folder / "toy" / "a.js", folder / "toy" / "c.js")
    assert check(folder) == ["toy/a.js is missing", "toy/c.js is not in MANIFEST.json"]


def test_other_version_than_recorded_is_found(folder):
    newer = Package("toy", "1.1.0", "MIT", PACKAGE.files)
    assert check(folder, [newer]) == [
        "toy 1.0.0 MIT is only in MANIFEST.json",
        "toy 1.1.0 MIT is only in PACKAGES",
    ]


def test_empty_folder_is_found(tmp_path):
    assert check(tmp_path) == ["toy 1.0.0 MIT is only in PACKAGES"]


def test_other_bytes_for_the_same_version_are_refused(folder, registry):
    registry({**FILES, "dist/a.js": b"evil()"}, integrity="sha512-2")
    with pytest.raises(VendorError, match="sha512-2, the manifest has sha512-1"):
        vendor.create([PACKAGE], folder)
    assert check(folder) == []


def test_failure_leaves_the_old_folder_as_it_was(folder, registry):
    registry({"LICENSE": b"free"})
    with pytest.raises(VendorError, match=r"no file 'dist/\*\.js'"):
        vendor.create([PACKAGE], folder)
    assert check(folder) == []
    assert [p.name for p in folder.parent.iterdir()] == ["vendor"]


def test_npm_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(VendorError, match="npm is not installed"):
        vendor.pack(PACKAGE, tmp_path)


def test_command_reports_and_fails(monkeypatch, folder, capsys):
    (folder / "toy" / "a.js").unlink()
    monkeypatch.setattr(vendor, "ROOT", folder.parent)
    monkeypatch.setattr(vendor, "FOLDERS", {folder: [PACKAGE]})
    assert vendor.main(["--check"]) == 1
    assert "vendor: toy/a.js is missing" in capsys.readouterr().out
