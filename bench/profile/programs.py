"""The programs that are profiled, the gallery's and the samples, their builds, and runs with the agent in them.

OUT/NAME/plain/tree/FOLDER     built by nvcc, with line information, which changes no code; its cubins are kept
OUT/NAME/counted/tree/FOLDER   built by `ccc-nvcc --ccc-instrument`
OUT/NAME/sampled/tree/FOLDER   built by `ccc-nvcc --ccc-instrument=sampled`
OUT/NAME/detailed/tree/FOLDER  built by `ccc-nvcc --ccc-instrument=detailed`
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.real.build import compiled, compiler_script, copy_sources
from bench.real.measure import Run, prepare, shell
from bench.real.program import Program, read_programs
from bench.real.recipe import Recipe, read_recipe
from cccopt.profiling.running import ProgramRun, environment_for, left_in

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "sample-"
PLAIN, COUNTED, SAMPLED, DETAILED = "plain", "counted", "sampled", "detailed"
BUILDS = {
    PLAIN: "",
    COUNTED: "--ccc-instrument",
    SAMPLED: "--ccc-instrument=sampled",
    DETAILED: "--ccc-instrument=detailed",
}
SAME = {"hash": (r"pairs.*found once \d+",)}
"""What a sample prints that no build may change, where that is not all: which pairs find no slot depends on races."""
DONE = "built"
"""The file in a build's folder that says that it succeeded."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The two compilers, as shell words."""

    nvcc: str
    ccc_nvcc: str


@dataclass(frozen=True, slots=True)
class Built:
    """A program with its builds' folders; ``why`` says why one of them is not there."""

    name: str
    recipe: Recipe
    folders: dict[str, Path]
    inputs: Path
    keep: Path
    why: str = ""


def add_options(options: argparse.ArgumentParser, *, out: str, rounds: int) -> None:
    """Add what benches of these programs have in common: where the programs are, how they are built, and how long they
    may run.
    """
    options.add_argument("checkouts", nargs="*", type=Path, help="folders with the checkouts of the gallery")
    options.add_argument("--recipes", type=Path, help="the folder with NAME.toml, as `bench.real` has them")
    options.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help=f"this program alone ({SAMPLE}NAME: a sample)",
    )
    options.add_argument("--out", type=Path, default=Path(out), help="where the builds go")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="builds at a time")
    options.add_argument(
        "--rounds",
        type=int,
        default=rounds,
        help="runs of each build where times are taken (default: %(default)s)",
    )
    options.add_argument("--budget", type=float, default=1e9, help="seconds after which no program is begun")
    options.add_argument("--limit", type=float, default=60, help="seconds for one run (default: %(default)s)")
    options.add_argument("--nvcc", default="nvcc", help="the plain compiler (default: %(default)s)")
    options.add_argument("--ccc-nvcc", default="ccc-nvcc", help="ours (default: %(default)s)")


def samples() -> list[tuple[Program, Recipe]]:
    """The samples that are programs of their own, with what `nvcc` builds of them by default."""
    found = []
    for source in sorted((ROOT / "samples").glob("*/*.cu")):
        name = source.stem
        program = Program(SAMPLE + name, "", "", "samples", name, "", "", ())
        build = f"$NVCC -O3 -arch=sm_90 {name}.cu -o main"
        recipe = Recipe((build,), "./main", ("bfs",), same=SAME.get(name, (".+",)))
        found.append((program, recipe))
    return found


def chosen(recipes: Path | None, only: Sequence[str]) -> list[tuple[Program, Recipe]]:
    """The samples, and the programs of the gallery that have a recipe; of these the ones that are named, if any are."""
    found = samples()
    for program in read_programs() if recipes else []:
        path = recipes / f"{program.name}.toml" if recipes else Path()
        if path.exists():
            found.append((program, read_recipe(path)))
    return [each for each in found if not only or each[0].name in only]


def build_all(
    programs: Sequence[tuple[Program, Recipe]],
    checkouts: Sequence[Path],
    out: Path,
    commands: Commands | None,
    *,
    jobs: int,
) -> list[Built]:
    """Build the programs, ``jobs`` commands at a time, unless there are no ``commands``: then they are built already.

    Inputs are made meanwhile.
    """

    def make(task: tuple[Program, Recipe, str]) -> str:
        program, recipe, what = task
        place = (out / program.name).absolute()
        if what == "inputs":
            return prepare(recipe, place / what) if recipe.prepare else ""
        assert commands is not None
        return _build(program, recipe, [ROOT, *checkouts], place / what, commands)

    whats = ("inputs",) if commands is None else ("inputs", *BUILDS)
    tasks = [(program, recipe, what) for program, recipe in programs for what in whats]
    with ThreadPoolExecutor(jobs) as pool:
        said = list(pool.map(make, tasks))
    found = []
    for i, (program, recipe) in enumerate(programs):
        place = (out / program.name).absolute()
        (place / "inputs").mkdir(parents=True, exist_ok=True)
        folders = {what: place / what / "tree" / program.folder for what in BUILDS}
        why = next((line for line in said[len(whats) * i :][: len(whats)] if line), "")
        if not why and not all((place / what / DONE).exists() for what in BUILDS):
            why = f"there is no build in {place}"
        found.append(Built(program.name, recipe, folders, place / "inputs", place / PLAIN / "keep", why))
    return found


def _build(program: Program, recipe: Recipe, checkouts: list[Path], place: Path, commands: Commands) -> str:
    """Build one variant in a fresh folder; returns what went wrong."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        folder = copy_sources(program, recipe, checkouts, place / "tree")
    except OSError as problem:
        return str(problem)
    if option := BUILDS[place.name]:
        off = " --ccc=off" if program.name.startswith(SAMPLE) else ""
        line = f'exec {commands.ccc_nvcc} {option}{off} "$@"'
    else:
        keep = shlex.quote(str(place / "keep"))
        # One folder a command: several may compile files of one name.
        line = f'mkdir -p {keep}; exec {commands.nvcc} -lineinfo --keep --keep-dir "$(mktemp -d {keep}/XXXXXX)" "$@"'
    succeeded, _, log = compiled(recipe, folder, place, compiler_script(place, line))
    if succeeded:
        (place / DONE).touch()
    return "" if succeeded else f"{place.name} is not built: {_last(log)}"


def _last(log: str) -> str:
    said = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in said if "error" in line.lower()), said[-1] if said else "it said nothing")[
        :160
    ]


def observed(
    built: Built, variant: str, *, counted: bool, limit: float, once: bool = False
) -> tuple[Run, ProgramRun]:
    """Run a build with the agent in it: what it printed, and what the agent says."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        folder = Path(name)
        environment = {
            **environment_for(folder, counted=counted, timed=True),
            "INPUTS": str(built.inputs),
        }
        run = shell(command_of(built.recipe, once=once), built.folders[variant], environment, limit)
        return run, left_in(folder, 0, run.status, counted=counted)


def command_of(recipe: Recipe, *, once: bool) -> str:
    """The shell line that runs a program, with few launches if ``once``."""
    return (once and recipe.once) or recipe.run


def environment_of(built: Built) -> dict[str, str]:
    """The environment of a run without the agent."""
    return {**os.environ, "INPUTS": str(built.inputs)}
