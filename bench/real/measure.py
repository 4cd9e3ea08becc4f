"""Runs of a program's builds, taking turns, and whether their results agree.

The time of a kernel is what the program prints of it. Where it prints none, the kernel's launches are timed as `cccopt
profile` does. Where that cannot be done either, the time is that of the whole process, start of the device included:
that draws the ratio of two builds towards 1, and the table says where it is so.
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.real.recipe import Recipe
from cccopt.profiling.names import shown
from cccopt.profiling.running import environment_for, left_in

LIMIT = 600.0  # seconds for one run, by default
WALL = "process"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its exit status, what it printed, the seconds that it took in all, and the nanoseconds of each kernel's
    launches, if they were timed.
    """

    status: int
    output: str
    seconds: float
    launches: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs of one build: the median of each time, and why its results are not right (empty: they are)."""

    times: dict[str, float]
    wrong: str


def prepare(recipe: Recipe, inputs: Path) -> str:
    """Make the inputs in a folder that all builds share; returns what went wrong, or nothing."""
    inputs.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(root)}
    lines = "\n".join(["set -e", *recipe.prepare])
    done = subprocess.run(["bash", "-c", lines], cwd=inputs, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no inputs: {done.stderr[-200:]}"


def run(recipe: Recipe, folder: Path, inputs: Path, limit: float = LIMIT) -> Run:
    """Run a build once; a run that takes longer than ``limit`` seconds has the status 124, as that of `timeout`.

    Raises CccError for want of what times launches (CCC082, CCC110).
    """
    with tempfile.TemporaryDirectory(prefix="cccopt-") as left:
        agent = environment_for(Path(left), counted=False, timed=True)
        one = shell(recipe.run, folder, {**agent, "INPUTS": str(inputs.absolute())}, limit)
        launches = Counter[str]()
        for each in left_in(Path(left), 0, one.status, counted=False).times:
            launches[short_name(each.name)] += each.nanoseconds
    return replace(one, launches=launches)


def short_name(kernel: str) -> str:
    """The name of a kernel without namespaces, template arguments and parameters."""
    found = re.search(r"(\w+)(?:<.*>)?\(", shown(kernel))
    return found[1] if found else kernel


def shell(command: str, folder: Path, environment: Mapping[str, str], limit: float) -> Run:
    """Run a shell line; the status is 124 where it takes longer than ``limit`` seconds."""
    start = time.monotonic()
    # In a session of its own: at the limit the program must end too, not only the shell that started it.
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            status, output = 124, ""
        finally:
            # At the limit, and where we are interrupted.
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return Run(status, output, time.monotonic() - start)


def times(recipe: Recipe, one: Run, kernels: Collection[str] = ()) -> dict[str, float]:
    """The times of ``kernels``: as they are printed, each summed over its lines, or else those of its launches. Where
    nothing is known of them, what is printed of other things or of several together, or the time of the process.
    """
    lines = {name: re.findall(expression, one.output) for name, expression in recipe.time}
    printed = {name: sum(map(float, values)) for name, values in lines.items() if values}
    own = {name: time for name, time in {**one.launches, **printed}.items() if name in kernels}
    return own or printed or {WALL: one.seconds}


def results(recipe: Recipe, one: Run) -> list[str]:
    """The part of the output that must not differ between builds."""
    return [match.group(0) for each in recipe.same for match in re.finditer(each, one.output, re.MULTILINE)]


def agree(left: str, right: str, rtol: float) -> bool:
    """Whether two texts are equal, their numbers but for a relative difference."""
    if rtol == 0 or left == right:
        return left == right
    if NUMBER.sub("#", left) != NUMBER.sub("#", right):
        return False
    pairs = zip(map(float, NUMBER.findall(left)), map(float, NUMBER.findall(right)), strict=True)
    return all(abs(a - b) <= rtol * max(abs(a), abs(b)) for a, b in pairs)


def fault(recipe: Recipe, one: Run, plain: Run) -> str:
    """Why a run is wrong, held against one of the plain build; empty where it is right."""
    if one.status != 0:
        return f"status {one.status}"
    if recipe.passes and not re.search(recipe.passes, one.output):
        return "its own check fails"
    ours, theirs = results(recipe, one), results(recipe, plain)
    if recipe.same and not theirs:
        return "the plain build prints no results"
    if len(ours) != len(theirs) or not all(
        agree(a, b, recipe.rtol) for a, b in zip(ours, theirs, strict=True)
    ):
        return "other results than the plain build"
    return ""


def measure(
    recipe: Recipe,
    kernels: Collection[str],
    folders: dict[str, Path],
    inputs: Path,
    rounds: int,
    limit: float = LIMIT,
) -> dict[str, Measured]:
    """Run the builds, `plain` among them, taking turns: what changes on the machine meanwhile affects all of them. A
    build that has taken longer than ``limit`` seconds is not run again. ``kernels`` are those whose times are wanted.
    """
    runs: dict[str, list[Run]] = {variant: [] for variant in folders}
    for _ in range(rounds):
        for variant, folder in folders.items():
            if not any(one.status == 124 for one in runs[variant]):
                runs[variant].append(run(recipe, folder, inputs, limit))
    return {variant: _summary(recipe, kernels, each, runs["plain"][0]) for variant, each in runs.items()}


def _summary(recipe: Recipe, kernels: Collection[str], runs: Sequence[Run], plain: Run) -> Measured:
    wrong = next((why for each in runs if (why := fault(recipe, each, plain))), "")
    found = [times(recipe, each, kernels) for each in runs]
    return Measured(
        {name: statistics.median(each.get(name, 0.0) for each in found) for name in found[0]}, wrong
    )
