"""The programs of the verdict, their builds and their profiles.

OUT/NAME/plain/tree/FOLDER    built by nvcc
OUT/NAME/counted/...          by `ccc-nvcc --ccc-instrument=detailed`, with its annotations
OUT/NAME/auto/...             by `--ccc=auto` without a profile
OUT/NAME/always/...           by `--ccc=always` and the profile
OUT/NAME/profiled/...         by `--ccc=auto` and the profile
OUT/NAME/profile.ccc.json     what `counted` and `plain` say on the GPU
OUT/NAME/tune/...             by `cccopt tune` (`bench.verdict.tuning`)
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.profile.programs import ROOT, SAMPLE, Built, Commands, chosen
from bench.real.build import PLAIN, build
from bench.real.measure import prepare
from bench.real.program import Program
from bench.real.recipe import Recipe

COUNTED, AUTO, ALWAYS, PROFILED = "counted", "auto", "always", "profiled"
PROFILE = "profile.ccc.json"
BEFORE = {PLAIN: None, COUNTED: "--ccc-instrument=detailed", AUTO: "--ccc=auto"}
"""The builds that need no profile."""
AFTER = {ALWAYS: "--ccc=always", PROFILED: "--ccc=auto"}
BUILT = "build.json"
"""What is known of a build, in its folder: whether it succeeded, and the reports of `ccc-nvcc`."""


@dataclass(frozen=True, slots=True)
class Task:
    """A program, how it is built and run, and the folder of its builds."""

    program: Program
    recipe: Recipe
    place: Path

    @property
    def profile(self) -> Path:
        """Its profile, which may not be there."""
        return self.place / PROFILE

    @property
    def built(self) -> Built:
        """Its builds, for `bench.profile.programs.observed`."""
        folders = {
            what: self.place / what / "tree" / self.program.folder
            for what in (*BEFORE, *AFTER)
            if has_build(self.place, what)
        }
        return Built(self.program.name, self.recipe, folders, self.place / "inputs", self.place)


def is_for_fitting(name: str) -> bool:
    """Whether the model of time may be fitted to a program: the samples, and those of the gallery of whose names'
    SHA-256 the first digit is below 6. All others are held out.
    """
    return name.startswith(SAMPLE) or int(hashlib.sha256(name.encode()).hexdigest()[0], 16) < 6


def tasks(recipes: Path | None, only: Sequence[str], out: Path) -> list[Task]:
    """The programs that have a recipe, and the samples; of these the ones that are named, if any are."""
    return [
        Task(program, recipe, (out / program.name).absolute()) for program, recipe in chosen(recipes, only)
    ]


def has_build(place: Path, what: str) -> bool:
    """Whether a build has succeeded."""
    file = place / what / BUILT
    return file.exists() and json.loads(file.read_text())["succeeded"]


def regions_of(place: Path, what: str) -> list[dict[str, Any]]:
    """What became of the annotations in a build, by the reports of `ccc-nvcc`."""
    file = place / what / BUILT
    reports = json.loads(file.read_text())["reports"] if file.exists() else []
    return [region for report in reports for unit in report["units"] for region in unit["regions"]]


def is_rewritten(region: Mapping[str, Any]) -> bool:
    """Whether a region of a report is in the build as it was rewritten."""
    return bool(region["outcome"] == "rewritten")


def _is_new(task: Task, what: str) -> bool:
    """Whether a build has succeeded, and with the profile that there is."""
    if not has_build(task.place, what):
        return False
    made = (task.place / what / BUILT).stat().st_mtime
    return what in BEFORE or made >= task.profile.stat().st_mtime


def build_all(
    given: Sequence[Task], checkouts: Sequence[Path], commands: Commands, jobs: int, *, profiled: bool
) -> list[str]:
    """Make the builds that are missing, ``jobs`` at a time: those before a profile, or those ``profiled``, of the
    programs that have one. Returns what went wrong.
    """
    wanted = [
        (task, what)
        for task in given
        for what in (AFTER if profiled else BEFORE)
        if (task.profile.exists() or not profiled) and not _is_new(task, what)
    ]
    with ThreadPoolExecutor(jobs) as pool:
        said = pool.map(lambda one: _build(*one, [ROOT, *checkouts], commands), wanted)
        return [line for line in said if line]


def _build(task: Task, what: str, checkouts: Sequence[Path], commands: Commands) -> str:
    options = {**BEFORE, **AFTER}[what]
    if what in AFTER:
        options = f'{options} --ccc-profile="{task.profile}"'
    place = task.place / what
    words = {PLAIN: commands.nvcc, "ccc": commands.ccc_nvcc}
    try:
        done = build(task.program, task.recipe, checkouts, place, options, words)
    except ValueError as problem:
        return f"{task.program.name}: {problem}"
    shutil.rmtree(place / "reports", ignore_errors=True)
    (place / BUILT).write_text(json.dumps(asdict(done)) + "\n")
    why = next(iter(done.log.strip().splitlines()[-1:]), "")
    return "" if done.succeeded else f"{task.program.name}: {what} is not built: {why}"


def make_inputs(task: Task) -> str:
    """Make a program's inputs unless they are there; returns what went wrong."""
    place = task.place / "inputs"
    done = place / ".made"
    if done.exists():
        return ""
    said = prepare(task.recipe, place)
    if not said:
        done.touch()
    return said
