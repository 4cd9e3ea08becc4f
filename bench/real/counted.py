"""Counts of the candidates of a gallery program: built without our pragmas, with candidates marked, and run once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from bench.real.build import compiled, compiler_script, copy_sources
from bench.real.program import Program
from bench.real.recipe import Recipe

CANDIDATES = "candidates"
COUNTS = "run.json"
RECOUNTED = "recounted.json"
WORDS = "words"
SECONDS = 120
"""For a counted run, and for advice."""

_GPU = Lock()


def count_candidates(program: Program, recipe: Recipe, checkouts: Sequence[Path], place: Path) -> str:
    """Build a program in ``place`` with its candidates counted, and run it once. Writes the counts to `COUNTS` there,
    and the words of the compilations to `WORDS`; returns what went wrong, or nothing.
    """
    folder = fresh(program, recipe, checkouts, place / CANDIDATES)
    line = f'printf "%s\\n" "$@" >>{place / WORDS}; exec ccc-nvcc --ccc-candidates --ccc-instrument "$@"'
    if not built(recipe, folder, place / CANDIDATES, line):
        return "not built with candidates"
    return _profiled(recipe, folder, place, COUNTS)


def count_applied(recipe: Recipe, applied: Path, tree: Path, place: Path) -> str:
    """Build a program with the annotations that were written into its folder ``applied`` of ``tree``, counted, and run
    it once. Writes the counts to `RECOUNTED` in ``place``; returns what went wrong, or nothing.
    """
    copied = place / "recounted" / "tree"
    shutil.copytree(tree, copied, dirs_exist_ok=True)
    folder = copied / applied.relative_to(tree)
    if not built(recipe, folder, copied.parent, 'exec ccc-nvcc --ccc-instrument "$@"'):
        return "not built with annotations, counted"
    return _profiled(recipe, folder, place, RECOUNTED)


def _profiled(recipe: Recipe, folder: Path, place: Path, counts: str) -> str:
    """Run a counted program once; returns what went wrong, or nothing."""
    with _GPU:  # one counted program at a time: others would change its times
        command = ["profile", "-o", str(place / counts), "--", "bash", "-c", recipe.once or recipe.run]
        wrong = cccopt(command, folder, {"INPUTS": str(place / "inputs")})
    return f"not counted: {wrong}" if wrong else ""


def fresh(program: Program, recipe: Recipe, checkouts: Sequence[Path], place: Path) -> Path:
    """A fresh copy of what a program's build needs, in ``place``; returns the program's folder in it."""
    place.mkdir(parents=True, exist_ok=True)
    return copy_sources(program, recipe, checkouts, place / "tree")


def built(recipe: Recipe, folder: Path, place: Path, line: str) -> bool:
    """Whether a build succeeds in which a shell line stands for the compiler."""
    return compiled(recipe, folder, place, compiler_script(place, line))[0]


def cccopt(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a command of ours in a folder; returns the end of what it says where it fails, or nothing."""
    command = [sys.executable, "-m", "cccopt.cli.main", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"more than {SECONDS} seconds"
    return "" if done.returncode == 0 else done.stderr[-600:] or f"status {done.returncode}"
