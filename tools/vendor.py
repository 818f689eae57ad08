"""Re-create the folders of third-party browser code: `book/vendor`, which becomes part
of the site, and `tests/site/vendor`, which the tests of the site run in its pages.

    python -m tools.vendor            fetch with npm and replace the folders
    python -m tools.vendor --check    compare the folders with their checksums, offline

Of book/vendor only what a page can request is kept. A page that needs more (a TeX
extension, say) fails the browser tests with the name of the missing file: add it to
PACKAGES.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "book" / "vendor"
TEST_VENDOR = ROOT / "tests" / "site" / "vendor"

# Git must not touch line ends here: the checksums are of the bytes that npm gave.
GITATTRIBUTES = "* -text -diff linguist-vendored\n"


class VendorError(Exception):
    """The folder, npm or a package is not as expected."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str
    files: dict[str, str]  # pattern in the package: its folder or file here


PACKAGES = [
    Package(
        "mathjax",
        "3.2.2",
        "Apache-2.0",
        {
            "LICENSE": "mathjax/LICENSE",
            "es5/tex-mml-chtml.js": "mathjax/",
            "es5/output/chtml/fonts/woff-v2/*.woff": (
                "mathjax/output/chtml/fonts/woff-v2/"
            ),
            # loaded when a formula says \boldsymbol, \cancel or \color
            "es5/input/tex/extensions/boldsymbol.js": "mathjax/input/tex/extensions/",
            "es5/input/tex/extensions/cancel.js": "mathjax/input/tex/extensions/",
            "es5/input/tex/extensions/color.js": "mathjax/input/tex/extensions/",
        },
    ),
    # `embed.js` is the build for the core widgets: half the size of `embed-amd.js`,
    # and it needs no require.js.
    Package(
        "@jupyter-widgets/html-manager",
        "1.0.14",
        "BSD-3-Clause",
        {
            "LICENSE": "html-manager/LICENSE",
            "dist/embed.js": "html-manager/",
            "dist/embed.js.LICENSE.txt": "html-manager/",
            # Font Awesome, for the icons; every browser of today reads woff2
            "dist/*.woff2": "html-manager/",
        },
    ),
    # The version bundled in html-manager, which ships the font without its licence.
    Package(
        "@fortawesome/fontawesome-free",
        "5.15.4",
        "OFL-1.1",
        {"LICENSE.txt": "html-manager/FONT-AWESOME-LICENSE.txt"},
    ),
    # The book's type, one family in three styles. All weights are in one file; of the
    # scripts, Latin and Greek.
    Package(
        "@fontsource-variable/source-serif-4",
        "5.3.1",
        "OFL-1.1",
        {
            "LICENSE": "fonts/SOURCE-SERIF-LICENSE.txt",
            "files/source-serif-4-latin-wght-*.woff2": "fonts/",
            "files/source-serif-4-greek-wght-normal.woff2": "fonts/",
        },
    ),
    Package(
        "@fontsource-variable/source-sans-3",
        "5.3.0",
        "OFL-1.1",
        {
            "LICENSE": "fonts/SOURCE-SANS-LICENSE.txt",
            "files/source-sans-3-latin-wght-normal.woff2": "fonts/",
            "files/source-sans-3-greek-wght-normal.woff2": "fonts/",
        },
    ),
    Package(
        "@fontsource-variable/source-code-pro",
        "5.3.0",
        "OFL-1.1",
        {
            "LICENSE": "fonts/SOURCE-CODE-LICENSE.txt",
            "files/source-code-pro-latin-wght-normal.woff2": "fonts/",
            "files/source-code-pro-greek-wght-normal.woff2": "fonts/",
        },
    ),
]
# Finds faults of accessibility. The packages for Python bundle versions years old.
TEST_PACKAGES = [
    Package(
        "axe-core",
        "4.14.1",
        "MPL-2.0",
        {"LICENSE*": "axe-core/", "axe.min.js": "axe-core/"},
    )
]
FOLDERS = {VENDOR: PACKAGES, TEST_VENDOR: TEST_PACKAGES}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pack(package: Package, folder: Path) -> tuple[Path, str]:
    """Download one package; return its tarball and npm's checksum of it."""
    spec = f"{package.name}@{package.version}"
    npm = shutil.which("npm")
    if npm is None:
        raise VendorError("npm is not installed; only --check works without it")
    # npm compares the tarball with the registry's checksum before it writes it.
    command = [npm, "pack", spec, "--json", "--ignore-scripts"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise VendorError(f"npm pack {spec} failed:\n{done.stderr.strip()}")
    [entry] = json.loads(done.stdout)
    return folder / Path(entry["filename"]).name, entry["integrity"]


def extract(package: Package, tarball: Path, target: Path) -> dict[str, str]:
    """Copy the wanted files below `target`; return path -> sha256."""
    written = {}
    with tarfile.open(tarball) as archive:
        members = {
            member.name.partition("/")[2]: member
            for member in archive.getmembers()
            if member.isfile()
        }
        for pattern, place in package.files.items():
            names = [name for name in members if fnmatchcase(name, pattern)]
            if not names:
                raise VendorError(
                    f"{package.name} {package.version} has no file {pattern!r}"
                )
            for name in names:
                file = place + Path(name).name if place.endswith("/") else place
                path = target / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(members[name]).read())
                written[file] = sha256(path)
    return dict(sorted(written.items()))


def read_manifest(folder: Path) -> dict:
    path = folder / "MANIFEST.json"
    if not path.is_file():
        return {"packages": []}
    return json.loads(path.read_text())


def create(packages: list[Package] = PACKAGES, folder: Path = VENDOR) -> None:
    """Fetch every package and put the result in place of `folder` in one step."""
    known = {
        (entry["name"], entry["version"]): entry["integrity"]
        for entry in read_manifest(folder)["packages"]
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    # beside the folder: a rename is atomic only within one file system
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".vendor-") as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        entries = []
        for package in packages:
            print(f"npm pack {package.name}@{package.version}", flush=True)
            tarball, integrity = pack(package, Path(temporary))
            before = known.get((package.name, package.version), integrity)
            if before != integrity:
                raise VendorError(
                    f"{package.name} {package.version}: npm gave a package with "
                    f"checksum {integrity}, the manifest has {before}"
                )
            entries.append(
                {
                    "name": package.name,
                    "version": package.version,
                    "licence": package.licence,
                    "integrity": integrity,
                    "files": extract(package, tarball, fresh),
                }
            )
        manifest = {"command": "make vendor", "packages": entries}
        (fresh / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")
        (fresh / ".gitattributes").write_text(GITATTRIBUTES)
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        fresh.rename(folder)


def problems(packages: list[Package] = PACKAGES, folder: Path = VENDOR) -> list[str]:
    """What in `folder` differs from its manifest, and the manifest from PACKAGES."""
    manifest = read_manifest(folder)
    found = []
    wanted = {(p.name, p.version, p.licence) for p in packages}
    listed = {(e["name"], e["version"], e["licence"]) for e in manifest["packages"]}
    for entry in sorted(wanted ^ listed):
        where = "PACKAGES" if entry in wanted else "MANIFEST.json"
        found.append(f"{' '.join(entry)} is only in {where}")
    sums = {name: s for e in manifest["packages"] for name, s in e["files"].items()}
    for name, expected in sums.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif sha256(path) != expected:
            found.append(f"{name} has sha256 {sha256(path)}, expected {expected}")
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*")}
    present = {name for name in present if (folder / name).is_file()}
    extra = present - set(sums) - {"MANIFEST.json", ".gitattributes"}
    found.extend(f"{name} is not in MANIFEST.json" for name in sorted(extra))
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="verify, change nothing")
    options = parser.parse_args(arguments)
    found = []
    try:
        for folder, packages in FOLDERS.items():
            if not options.check:
                create(packages, folder)
            name = folder.relative_to(ROOT)
            found += [f"{name}: {problem}" for problem in problems(packages, folder)]
    except (VendorError, OSError) as error:
        print(f"vendor: {error}", file=sys.stderr)
        return 1
    if found:
        print("vendor: not as recorded:", *found, sep="\n  ")
        print("Run `make vendor` to re-create it.")
        return 1
    print("vendored code: every checksum agrees")
    return 0


if __name__ == "__main__":
    sys.exit(main())
