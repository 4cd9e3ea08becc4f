"""Which versions of Python and of nvcc cccopt works with, tried one after the other: `python -m bench.version_matrix`.

Each Python (`--python`, as often as wanted; by default python3.10, python3.11 and so on, as far as PATH has them) gets
an environment with the wheel, its dependencies and what the tests need. There it prints its version, measures a sample
on the emulator, and runs a part of the tests. Each nvcc is a toolkit of the package index, the newest of each minor
version from 13.0 on, as extra `cu13` installs one. It compiles all samples with `--ccc=always` to machine code, and the
emulator holds their results against those of plain nvcc and of numpy. Of CUDA 12 the index has ptxas alone, so nothing
compiles there; the table says what the newest package holds.

All of it goes into temporary folders (about 300 MB at a time). The table is printed, and written as Markdown to --out.
Exit status 1 where anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cccopt.cli.common import add_workers
from cccopt.diagnostic import CccError
from cccopt.harness.bench import EMULATED_ARCH, MeasureOptions, measure
from cccopt.harness.workload import load, names
from cccopt.text import shortened
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from cccopt.workers.queue import Item, Worker, answers

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = 10, 30
"""Minor versions of Python that PATH is searched for."""
TESTS = (
    "tests/test_text.py",
    "tests/ptx/test_round_trip.py",
    "tests/emulator/test_integers.py",
    "tests/source/test_pragmas.py",
    "tests/ccc/regions",
    "tests/workers/test_queue.py",
)
"""A part of the tests that touches each layer and takes a minute."""
PARTS = "nvcc,nvvm,crt,cudart,cccl"
"""Those of extra `cu13`."""
TITLES = ("tried", "version", "with", "result")
SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: what was tried, its version, what it worked with, and what came out; ``failed`` if that is
    not as it should be.
    """

    tried: str
    version: str
    details: str
    result: str
    failed: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        """The same in the order of `TITLES`."""
        return self.tried, self.version, self.details, self.result


class StepFailed(Exception):
    """A command failed; the text is the last line that it said."""


def said(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    """What a command prints. Raises StepFailed for a status other than 0, and where it takes too long."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise StepFailed(str(problem)) from problem
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise StepFailed(lines[-1].strip() if lines else f"status {done.returncode}")
    return done.stdout


def pip(*words: str | Path) -> tuple[str | Path, ...]:
    """A command of this Python's pip."""
    return sys.executable, "-m", "pip", *words


# --- Python -------------------------------------------------------------------------------------------------------


def pythons() -> list[str]:
    """The interpreters that PATH has, the oldest first."""
    found = (shutil.which(f"python3.{minor}") for minor in range(OLDEST, NEWEST))
    return [path for path in found if path is not None]


def python_row(python: str, wheel: Path) -> Row:
    """Install the wheel for an interpreter and try it; a failure is a row, too."""
    version, steps = python, []
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        folder = Path(name)
        try:
            version = said([python, "-c", "import sys; print(sys.version.split()[0])"], folder).strip()
            here = environment_of(python, version, wheel, folder)
            numpy = said([here / "python", "-c", "import numpy; print(numpy.__version__)"], folder).strip()
            for step in (smoke(here, folder), part_of_tests(here, folder)):
                steps.extend(step)
        except StepFailed as problem:
            return Row("Python", version, "", "; ".join([*steps, f"failed: {problem}"]), failed=True)
    return Row("Python", version, f"numpy {numpy}", "; ".join(steps))


def environment_of(python: str, version: str, wheel: Path, folder: Path) -> Path:
    """An environment with the wheel, and with what tests need once it has been tried without; returns its ``bin``. Its
    pip is our own copy: a distribution's Python may lack one.
    """
    minor = ".".join(version.split(".")[:2])
    said(
        pip("download", "-q", "--no-deps", "--only-binary", ":all:", "--python-version", minor, "pip"), folder
    )
    (newest,) = folder.glob("pip-*.whl")
    said([python, "-m", "venv", "--without-pip", "venv"], folder)
    here = folder / "venv" / "bin"
    said([here / "python", newest / "pip", "install", "-q", wheel], folder)
    said([here / "cccopt", "--version"], folder)  # with nothing but its dependencies
    said([here / "python", newest / "pip", "install", "-q", "pytest", "hypothesis"], folder)
    return here


def smoke(here: Path, folder: Path) -> Iterator[str]:
    """Run commands of an installation, each with what it should say."""
    said([here / "cccopt", "explain", "CCC036"], folder)
    yield "`explain`"
    said([here / "cccopt", "bench", "bfs", "--size", "small"], folder, CCC_NVCC=str(find_nvcc().path))
    yield "`bench bfs`"


def part_of_tests(here: Path, folder: Path) -> Iterator[str]:
    """Run `TESTS` from a copy of the folder of tests, so that no checkout's `cccopt` is imported."""
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    options = ("-q", "-p", "no:cacheprovider", "-c", "pytest.ini")
    text = (ROOT / "pyproject.toml").read_text()
    marks = re.findall(
        r'^  "(\w+: [^"]*)",$', text.partition("markers = [")[2].partition("]")[0], re.MULTILINE
    )
    lines = ["[pytest]", "addopts = --import-mode=importlib", "pythonpath = .", "markers ="]
    (folder / "pytest.ini").write_text("\n".join([*lines, *(f"  {mark}" for mark in marks)]) + "\n")
    last = said([here / "python", "-m", "pytest", *options, *TESTS], folder).strip().splitlines()[-1]
    yield re.sub(r" in .*", "", last).strip("= ")


# --- nvcc ---------------------------------------------------------------------------------------------------------


def toolkits() -> list[str]:
    """The toolkits of CUDA 13 in the package index, as `newest_of_minors` has them."""
    return newest_of_minors(said(pip("index", "versions", "cuda-toolkit"), ROOT))


def newest_of_minors(listed: str) -> list[str]:
    """The newest version of each minor one of CUDA 13 in what `pip index versions` prints, the oldest first."""
    found = re.search(r"^Available versions: (.*)$", listed, re.MULTILINE)
    newest: dict[tuple[int, ...], tuple[int, ...]] = {}
    for text in found[1].split(", ") if found else ():
        version = tuple(map(int, text.split(".")))
        if version[0] == 13:
            newest[version[:2]] = max(version, newest.get(version[:2], ()))
    return [".".join(map(str, newest[key])) for key in sorted(newest)]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A sample that was compiled and run: how many regions were rewritten, the version of its PTX, and what went wrong
    (empty: nothing).
    """

    regions: int
    ptx: str
    problem: str = ""


def nvcc_row(version: str, workers: int) -> Row:
    """Install a toolkit and compile and run all samples with it."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        folder = Path(name)
        try:
            said(pip("install", "-q", "--target", folder, f"cuda-toolkit[{PARTS}]=={version}"), folder)
            nvcc = find_nvcc(folder / "nvidia" / "cu13" / "bin" / "nvcc")
        except (StepFailed, CccError) as problem:
            return Row("CUDA", version, "", f"failed: {_first_line(problem)}", failed=True)
        # No GPU is visible to them: results are the emulator's.
        items = [Item(f"`{sample}`", compile_and_run, (sample, str(nvcc.path))) for sample in names()]
        found: list[Compiled] = []
        problems = []
        with answers(items, (Worker(""),) * workers) as all_answers:
            for item, answer in zip(items, all_answers, strict=True):
                try:
                    one = answer.result()
                except CccError as problem:
                    one = Compiled(0, "", problem.diagnostics[0].why or _first_line(problem))
                if one.problem:
                    problems.append(f"{item.name}: {shortened(one.problem, 120)}")
                else:
                    found.append(one)
    regions, ptx = sum(one.regions for one in found), ", ".join(sorted({one.ptx for one in found}))
    right = f"{len(found)} of {len(items)} samples right, {regions} regions rewritten"
    details = f"nvcc {nvcc.version}, PTX {ptx}"
    return Row("CUDA", version, details, "; ".join([right, *problems]), failed=bool(problems))


def compile_and_run(name: str, nvcc: str) -> Compiled:
    """Compile a sample to machine code, and run its builds on the emulator. Raises CccError where one does not compile
    to PTX.
    """
    os.environ["CCC_NVCC"] = nvcc
    sample = load(name)
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        cubin = Path(folder) / "sample.cubin"
        words = ["-cubin", f"-arch={EMULATED_ARCH}", str(sample.source), "-o", str(cubin)]
        done = run_nvcc(words, Settings("always"), capture=True)
        if done.status or not cubin.is_file():
            return Compiled(0, "", done.errors.strip().partition("\n")[0] or f"status {done.status}")
        ptx = Path(folder) / "sample.ptx"
        run_nvcc(["-ptx", *words[1:-1], str(ptx)], Settings("always"), capture=True)
        version = re.search(r"^\.version (\S+)", ptx.read_text(), re.MULTILINE)
    measurement = measure(sample, MeasureOptions(size="small", marked=False))
    wrong = [f"{build.name}: {build.wrong}" for build in measurement.builds if build.wrong]
    return Compiled(len(measurement.regions), version[1] if version else "?", "; ".join(wrong))


def cuda_12_row() -> Row:
    """What the newest package of CUDA 12's nvcc holds of a compiler. A whole one would be worth a trial."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        folder = Path(name)
        try:
            said(pip("download", "-q", "--no-deps", "-d", folder, "nvidia-cuda-nvcc-cu12"), folder)
        except StepFailed as problem:
            return Row("CUDA", "12", "", f"failed: {problem}", failed=True)
        (package,) = folder.glob("*.whl")
        with zipfile.ZipFile(package) as files:
            held = {Path(path).name for path in files.namelist() if Path(path).parent.name == "bin"}
    programs = [tool for tool in ("nvcc", "cicc", "cudafe++", "ptxas") if tool in held]
    whole = len(programs) == 4
    result = "a whole compiler, which is not tried" if whole else "no compiler: nothing to try"
    return Row("CUDA", package.name.split("-")[1], f"holds {', '.join(programs)}", result, failed=whole)


# --- the table ----------------------------------------------------------------------------------------------------


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a table."""
    lines = [TITLES, ("---",) * len(TITLES), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def show(rows: Iterable[Row], console: Console) -> None:
    """Print the rows."""
    table = Table(*TITLES, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row.cells, style="red" if row.failed else None)
    console.print(table)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="python -m bench.version_matrix", description=(__doc__ or "").strip()
    )
    options.add_argument(
        "--python", action="append", metavar="PROGRAM", help="an interpreter; may be repeated"
    )
    options.add_argument(
        "--cuda", action="append", metavar="VERSION", help="a version of `cuda-toolkit`; may be repeated"
    )
    options.add_argument("--only", choices=("python", "cuda"), help="one half of the table")
    add_workers(options, "compile and run N samples at a time (default: 1)")
    options.add_argument("--out", type=Path, default=Path("build/versions.md"), help="default: %(default)s")
    return options


def tried(given: argparse.Namespace) -> Iterator[Row]:
    """The rows, as they come."""
    if given.only != "cuda":
        with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
            said([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name], ROOT)
            (wheel,) = Path(name).glob("*.whl")
            for python in given.python or pythons():
                yield python_row(python, wheel)
    if given.only != "python":
        for version in given.cuda or toolkits():
            yield nvcc_row(version, given.workers or 1)
        yield cuda_12_row()


def main() -> int:
    """Try all, print, write; returns the exit status."""
    given = parser().parse_args()
    rows = []
    for row in tried(given):
        print(*row.cells, sep="  ", file=sys.stderr, flush=True)
        rows.append(row)
    show(rows, Console(width=None if sys.stdout.isatty() else 160))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(markdown(rows))
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    # Workers look for what they do by this name of the module: theirs is another `__main__`.
    from bench import version_matrix

    sys.exit(version_matrix.main())
