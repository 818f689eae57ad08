"""What notebooks find on other machines: many are simulated, and the finds are kept.

    python -m tools.machines [NOTEBOOK ...]          what is lacking of the recorded 30
    python -m tools.machines --noise 901-903 [...]   other machines; nothing is recorded
    python -m tools.machines --ci                    one machine for what has changed

Another processor, or a GPU, adds numbers in another order: the last bit differs, and
after a few hundred steps of training so does the model. A machine of noise multiplies
each parameter, after each step of an optimiser, by one plus or minus one rounding; the
noise depends on the machine's number, the step and the parameter alone, so that a run
resumed from a checkpoint meets the same. The others are real: PyTorch's, MKL's and
oneDNN's plainest instructions (four times slower), two threads, other Pythons (another
standard library) and Colab's versions.

`book/results/findings/NN.json` holds, for each finding of page NN, what every machine
found, and for the named alternative as well. A machine that has run a notebook as it is
now doesn't run it again; what findings don't depend on can change (see `slices`).
"""

import argparse
import ast
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools import CHAPTERS, ROOT, cache, findings, slices

# Not those at which bands were looked at while they were written: these are 1 to 9.
NOISE = [f"noise-{number}" for number in range(11, 36)]
PLAIN = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}
REAL = ["plain", "threads-2", "python-3.12", "python-3.13", "colab"]
NAMES = NOISE + REAL
CHANGED = 3  # so many notebooks are drawn in CI when only the module has changed
CI_SECONDS = 500  # of CPU time on two cores


def numbered(name: str) -> int:
    """The number of a machine of noise; 0 for the others."""
    return int(name.removeprefix("noise-")) if name.startswith("noise-") else 0


# ---- one notebook on one machine -----------------------------------------------------


def add_noise(number: int) -> None:
    """Round each parameter otherwise after each step of an optimiser, from now on."""
    import weakref

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    size = 2**22
    draw = torch.Generator().manual_seed(number)
    factors = 1 + 6e-8 * torch.randn(size, generator=draw)
    calls = weakref.WeakKeyDictionary()

    def round_otherwise(optimizer, args, kwargs) -> None:
        calls[optimizer] = made = calls.get(optimizer, 0) + 1
        parameters = (p for group in optimizer.param_groups for p in group["params"])
        for i, p in enumerate(parameters):
            if p.grad is None or p.dtype != torch.float32:
                continue
            step = int(optimizer.state.get(p, {}).get("step", made))
            start = (step * 1_000_003 + i * 7919) % (size - p.numel())
            with torch.no_grad():
                p.mul_(factors[start : start + p.numel()].view(p.shape).to(p.device))

    register_optimizer_step_post_hook(round_otherwise)


class Softened(ast.NodeTransformer):
    """An assertion that fails is noted, and the notebook goes on."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        note = f"__missed__({ast.unparse(node.test)!r})"
        handler = ast.ExceptHandler(
            ast.Name("AssertionError", ast.Load()), None, ast.parse(note).body
        )
        tried = ast.copy_location(ast.Try([node], [handler], [], []), node)
        return ast.fix_missing_locations(tried)


def run(path: Path, machine: str) -> dict:
    """Run a notebook in this process; what it found, and what went wrong."""
    import nbformat
    import torch
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    if numbered(machine):
        add_noise(numbered(machine))
    shell = InteractiveShell.instance()
    # only what IPython's own display() sends is needed: pictures are drawn, not kept
    shell.display_pub = published = CapturingDisplayPublisher()
    asserted: list[str] = []
    shell.user_ns["__missed__"] = asserted.append
    shell.ast_transformers.append(Softened())
    stopped, began = None, time.process_time()
    os.chdir(path.parent)
    with (
        open(os.devnull, "w") as quiet,
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),  # progress bars
    ):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type != "code":
                continue
            done = shell.run_cell(cell.source, store_history=True)
            error = done.error_before_exec or done.error_in_exec
            if error and "raises-exception" not in cell.metadata.get("tags", []):
                stopped = f"{type(error).__name__}: {error}"[:300]
                break
    outputs = [o["data"] for o in published.outputs if findings.MIME in o["data"]]
    return {
        "findings": [data[findings.MIME] for data in outputs],
        "asserts": asserted,
        "stopped": stopped,
        "seconds": round(time.process_time() - began),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
    }


# ---- which, where, and what for ------------------------------------------------------


def short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def code_hash(notebook: dict) -> str:
    """Of all in a notebook's code that its findings may depend on."""
    return slices.hash_of(notebook)


def module_hash(notebook: dict) -> str:
    """Of all files that it imports or reads."""
    files = sorted(cache.dependencies(cache.code_of(notebook)))
    return short("".join(short(file.read_text("utf-8")) for file in files))


def trains(notebook: dict) -> bool:
    return re.search(r"\bexpect\(", cache.code_of(notebook)) is not None


def record_of(path: Path) -> Path:
    return ROOT / findings.RECORDS / f"{path.stem.split('_')[0]}.json"


def read_record(path: Path) -> dict:
    file = record_of(path)
    return cache.read(file) if file.is_file() else {"machines": {}, "findings": {}}


def keep(path: Path, machine: str, result: dict, code: str, module: str) -> None:
    """Write what a machine found into the record of the notebook."""
    record = read_record(path)
    machines = record["machines"]
    machines[machine] = {"code": code, "module": module}
    for key in ("python", "torch", "seconds", "asserts"):
        machines[machine][key] = result[key]
    names = {finding["name"] for finding in result["findings"]}
    found = {name: f for name, f in record["findings"].items() if name in names}
    for finding in result["findings"]:
        entry = found.setdefault(finding["name"], {"unlike": {}})
        entry["words"], entry["band"] = finding["words"], finding["band"]
        entry.setdefault("values", {})[machine] = finding["value"]
        entry["unlike"]["words"] = finding["unlike"]["words"]
        entry["unlike"].setdefault("values", {})[machine] = finding["unlike"]["value"]
    record = {"notebook": path.stem, "machines": machines, "findings": found}
    file = record_of(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".partial")
    text = json.dumps(shortened(record), indent=1, ensure_ascii=False)
    # a machine, and a list of numbers, in a line
    text = re.sub(r"\{[^{}]*\}|\[[^][{}]*\]", lambda m: " ".join(m[0].split()), text)
    beside.write_text(text + "\n", encoding="utf-8")
    beside.replace(file)


def shortened(value):
    """The same with numbers of nine digits."""
    if isinstance(value, dict):
        return {key: shortened(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [shortened(entry) for entry in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def wrong(result: dict) -> list[str]:
    """What a machine found otherwise than the page says."""
    lines = [f"stopped: {result['stopped']}"] if result["stopped"] else []
    lines += [f"assert {text}" for text in result["asserts"]]
    for finding in result["findings"]:
        if not finding["held"]:
            lines.append(findings.differs(finding))
        if not finding["unlike"]["outside"]:
            lines.append(f"{finding['name']}: its alternative is in the band, too")
    return lines


# ---- many, side by side --------------------------------------------------------------


@functools.cache  # pip would make Colab's anew for every notebook
def environment(machine: str) -> tuple[Path, dict[str, str]]:
    """The Python of a machine, and its settings."""
    settings = {
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "MPLBACKEND": "agg",
    }
    if machine == "plain":
        settings |= PLAIN
    if machine == "threads-2":
        settings["OMP_NUM_THREADS"] = "2"
    if machine == "colab":
        from tools import colab

        return with_annotated(colab.environment()), settings
    if machine.startswith("python-"):
        return other_python(machine.removeprefix("python-")), settings
    return Path(sys.executable), settings


def with_annotated(python: Path) -> Path:
    """An environment in which the working tree is installed as it is."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needs = ["setuptools>=77", "nbformat", "jaxtyping", "babel"]
    subprocess.run([*pip, *needs], check=True)
    here = ["--no-deps", "--no-build-isolation", "--editable", ROOT]
    subprocess.run([*pip, *here], check=True)
    return python


def other_python(version: str) -> Path:
    """The Python of `.venv-pythonX.Y`, made if it isn't there."""
    folder = ROOT / f".venv-python{version}"
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        base = shutil.which(f"python{version}")
        if base is None:
            raise SystemExit(f"there is no python{version} on this machine's PATH")
        subprocess.run([base, "-m", "venv", folder], check=True)
        pins = (ROOT / "requirements.txt").read_text("utf-8")
        torch = re.search(r"^torch==\S+", pins, re.M)[0]
        needs = [
            "ipykernel",
            "matplotlib",
            "numpy",
            "seaborn",
            "tqdm",
            "jinja2",
            "pillow",
        ]
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, torch, *needs], check=True)
        with_annotated(python)
        (folder / ".installed").touch()
    return python


class Job:
    """One notebook on one machine, in a process of its own.

    A machine of noise is a fork of this process, which has imported PyTorch already.
    """

    def __init__(self, path: Path, machine: str):
        self.path, self.machine = path, machine
        self.result = ROOT / "_build" / "machines" / f"{path.stem}.{machine}.json"
        self.result.parent.mkdir(parents=True, exist_ok=True)
        self.result.unlink(missing_ok=True)
        if numbered(machine):
            self.pid = os.fork()
            if self.pid == 0:
                self.fork()
        else:
            python, settings = environment(machine)
            command = [
                python,
                "-m",
                "tools.machines",
                "--one",
                machine,
                path,
                self.result,
            ]
            paths = {"PYTHONPATH": str(ROOT)}
            # kept: subprocess itself would wait for one that nobody refers to
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | settings | paths
            )
            self.pid = self.process.pid

    def fork(self) -> None:
        status = 1
        try:
            one(self.machine, self.path, self.result)
            status = 0
        finally:  # not the parent's exit: its buffers and handlers are not ours
            os._exit(status)

    def take(self) -> dict:
        if not self.result.is_file():
            lost = {"seconds": 0, "asserts": [], "findings": []}
            return lost | {"stopped": "its process ended"}
        return cache.read(self.result)


def one(machine: str, path: Path, target: Path) -> None:
    result = run(path.absolute(), machine)
    target.write_text(json.dumps(result), encoding="utf-8")


def lacking(path: Path, machines: list[str]) -> list[str]:
    """The machines that have not run a notebook as it is now."""
    notebook, known = cache.read(path), read_record(path)["machines"]
    code = code_hash(notebook)
    return [m for m in machines if known.get(m, {}).get("code") != code]


def for_ci(paths: list[Path]) -> list[tuple[Path, str]]:
    """What CI runs: a second try is the same try."""
    changed, moved = [], []
    for path in paths:
        notebook = cache.read(path)
        known = read_record(path)["machines"].values()
        name = f"noise-{1000 + int(code_hash(notebook), 16) % 9000}"
        cost = max((m["seconds"] for m in known), default=60)
        if not any(m["code"] == code_hash(notebook) for m in known):
            changed.append((cost, path, name))
        elif not any(m["module"] == module_hash(notebook) for m in known):
            moved.append((short(module_hash(notebook) + name), cost, path, name))
    draw = [job[1:] for job in sorted(moved)[:CHANGED]]
    chosen, seconds = [], 0
    for cost, path, name in [*sorted(changed, key=lambda job: job[2]), *draw]:
        if seconds + cost <= CI_SECONDS:
            chosen.append((path, name))
            seconds += cost
    if len(chosen) < len(changed):
        print(f"{len(changed)} notebooks have changed, {len(chosen)} fit in the time")
    return chosen


def work(jobs: list[tuple[Path, str]], side_by_side: int, record: bool) -> int:
    """Run jobs side by side; how many statements were missed."""
    import matplotlib.pyplot  # noqa: F401 (in the parent, so that forks have it)
    import torch
    from IPython.core import interactiveshell  # noqa: F401

    torch.set_num_threads(1)
    waiting, running, bad, done = list(jobs), {}, 0, 0
    while waiting or running:
        while waiting and len(running) < side_by_side:
            path, machine = waiting.pop(0)
            read = cache.read(path)
            running[Job(path, machine)] = code_hash(read), module_hash(read)
        pid, _ = os.wait()
        job = next((job for job in running if job.pid == pid), None)
        if job is None:
            continue
        hashes, result = running.pop(job), job.take()
        lines = wrong(result)
        bad, done = bad + len(lines), done + 1
        print(
            f"[{done}/{len(jobs)}] {job.path.stem} on {job.machine}: "
            f"{len(result['findings'])} findings, {len(lines)} missed, "
            f"{result['seconds']} CPU-s",
            flush=True,
        )
        for line in lines:
            print(f"    {line}", flush=True)
        now = cache.read(job.path)
        # not if something was edited meanwhile: who knows which text was imported
        same = hashes == (code_hash(now), module_hash(now))
        if record and not result["stopped"] and same:
            keep(job.path, job.machine, result, *hashes)
    return bad


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.machines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--machines", nargs="+", default=NAMES, metavar="NAME")
    parser.add_argument("--noise", help="first and last number of others, like 901-903")
    parser.add_argument("--ci", action="store_true", help="one for what has changed")
    parser.add_argument("--jobs", type=int, default=2, help="how many side by side")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        machine, path, target = options.one
        one(machine, Path(path), Path(target))
        return 0
    os.environ.update(environment("noise-0")[1])
    paths = [path.absolute() for path in options.notebooks]
    paths = paths or sorted((ROOT / CHAPTERS).glob("*.ipynb"))
    paths = [path for path in paths if trains(cache.read(path))]
    if options.ci:
        jobs = for_ci(paths)
    elif options.noise:
        first, last = map(int, options.noise.split("-"))
        jobs = [(p, f"noise-{n}") for n in range(first, last + 1) for p in paths]
    else:
        # machine by machine, so that what a stopped sweep has is even
        todo = {path: lacking(path, options.machines) for path in paths}
        jobs = [(p, m) for m in options.machines for p in paths if m in todo[p]]
    missed = work(jobs, options.jobs, record=not (options.ci or options.noise))
    print(f"{len(jobs)} runs, {missed} statements missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
