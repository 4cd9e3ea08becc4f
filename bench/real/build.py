"""Builds of a program: plain nvcc on the source as it is, and `ccc-nvcc` on the annotated one, by two modes.

Each build has a folder of its own, with a copy of the program's folder at its place in the repository, so that paths to
neighbouring folders hold:

    OUT/NAME/plain/tree/FOLDER      the program, built
    OUT/NAME/plain/log              what the compilers printed
    OUT/NAME/always/reports/*.json  what `--ccc-report` says, a file for each run of the compiler
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.real.program import Program, annotate
from bench.real.recipe import Recipe

PLAIN = "plain"
VARIANTS = {
    PLAIN: None,
    "always": "--ccc=always",
    "auto": "--ccc=auto",
    "collected": "--ccc=always --ccc-form=carried",
}
"""The options of `ccc-nvcc` by build; None for plain nvcc on the source as it is. `collected` moves tasks between lanes
wherever that is legal, also where `always` lets lanes wait because that is predicted to be faster."""
LIMIT = 1200  # seconds for all build commands of one variant


@dataclass(frozen=True, slots=True)
class Build:
    """A build: whether it succeeded, how many seconds it took, what it printed, and the reports of `ccc-nvcc`."""

    variant: str
    succeeded: bool
    seconds: float
    log: str
    reports: tuple[dict[str, Any], ...]


def copy_sources(program: Program, recipe: Recipe, checkouts: Sequence[Path], tree: Path) -> Path:
    """Copy what a build needs; returns the program's folder in the copy. `FileNotFoundError` without a checkout."""
    # A checkout may have a folder of its own name.
    here = [each for each in checkouts if each.name == program.checkout]
    roots = (*here, *(each / program.checkout for each in checkouts))
    root = next((each for each in roots if (each / program.folder).exists()), None)
    if root is None:
        raise FileNotFoundError(f"no folder `{program.checkout}`, a checkout of {program.repository}")
    for part in (program.folder, *recipe.also):
        source, target = root / part, tree / part
        if source.is_dir():
            # Repositories have links to data that they do not hold.
            shutil.copytree(
                source,
                target,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(".git"),
                ignore_dangling_symlinks=True,
            )
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return tree / program.folder


def _compiler(options: str | None, place: Path, commands: Mapping[str, str]) -> Path:
    """A script that stands for nvcc: the program's own build files know no options of ours."""
    command = commands[PLAIN]
    if options is not None:
        reports = place / "reports"
        reports.mkdir(exist_ok=True)
        command = f'{commands["ccc"]} {options} --ccc-keep-going --ccc-report="{reports}/$$.json"'
    return compiler_script(place, f'exec {command} "$@"')


def compiler_script(place: Path, line: str) -> Path:
    """A script of one shell line that stands for nvcc."""
    script = place / "nvcc"
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    return script


def build(
    program: Program,
    recipe: Recipe,
    checkouts: Sequence[Path],
    place: Path,
    options: str | None,
    commands: Mapping[str, str],
) -> Build:
    """Build one variant in ``place``, whose name is the variant's, a fresh folder.

    The six parameters are what a build depends on, and nothing else needs them together.
    """
    place = place.absolute()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        folder = copy_sources(program, recipe, checkouts, place / "tree")
    except OSError as problem:
        (place / "log").write_text(f"{problem}\n")
        return Build(place.name, False, 0.0, f"{problem}\n", ())
    if options is not None:
        annotate(folder, program.annotations)
    succeeded, seconds, log = compiled(recipe, folder, place, _compiler(options, place, commands))
    reports = tuple(json.loads(path.read_text()) for path in sorted((place / "reports").glob("*.json")))
    return Build(place.name, succeeded, seconds, log, reports)


def compiled(recipe: Recipe, folder: Path, place: Path, compiler: Path) -> tuple[bool, float, str]:
    """Run the build commands in a program's folder: whether they succeeded, the seconds, and what they printed."""
    environment = {**os.environ, "NVCC": str(compiler), "HERE": str(Path.cwd())}
    start = time.monotonic()
    lines = "\n".join(["set -e", *recipe.build])
    try:
        done = subprocess.run(
            ["bash", "-c", lines],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
        )
        succeeded, log = done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        succeeded, log = False, f"not built in {LIMIT} seconds\n"
    seconds = time.monotonic() - start
    (place / "log").write_text(log, errors="replace")
    return succeeded, seconds, log
