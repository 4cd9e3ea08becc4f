"""How a program of the gallery is built and run, and what to read in its output: `recipes/NAME.toml`, or the same in a
folder of the user's. The README shows one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import tomllib

OURS = Path(__file__).with_name("recipes")
"""The folder of our recipes."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The commands are shell lines, run in the program's folder; `$NVCC` is the compiler.

    `also` are more folders or files of the checkout that it needs. `prepare` makes its inputs, in a folder that is
    `$INPUTS` when it runs. `time` has for each kernel (or for several together, by any name) a regular expression whose
    group is a time in any unit; without one, the time of the whole process is measured. `passes` must be found in what
    it prints; what `same` finds must not differ between builds, numbers but by `rtol`. `once` is a run like `run` with
    few launches of each kernel, for a profiler that runs each of them several times.
    """

    build: tuple[str, ...]
    run: str
    also: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    time: tuple[tuple[str, str], ...] = ()
    passes: str = ""
    same: tuple[str, ...] = ()
    rtol: float = 0.0
    once: str = ""


def read_recipe(path: Path) -> Recipe:
    """A recipe; `TypeError` for a key that none has, `re.error` for a wrong expression."""
    table = tomllib.loads(path.read_text())
    table["time"] = tuple(table.get("time", {}).items())
    for key in ("build", "also", "prepare", "same"):
        table[key] = tuple(table.get(key, ()))
    recipe = Recipe(**table)
    for expression in (recipe.passes, *recipe.same, *(each for _, each in recipe.time)):
        re.compile(expression)
    return recipe
