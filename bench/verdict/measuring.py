"""What the GPU says of a program: its profile, and the times of its kernels in each build."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.profile.programs import observed
from bench.real.build import PLAIN
from bench.real.measure import Run, fault
from bench.verdict.programs import COUNTED, Task, is_rewritten, regions_of
from cccopt.ccc.profitability.code_digest import canonical
from cccopt.profiling.collecting import run_file
from cccopt.profiling.run_file import as_text, write
from cccopt.profiling.running import ProgramRun

TIMES, COUNTS = "times.json", "counts.pickle"


def take_profile(task: Task, rounds: int, limit: float) -> str:
    """Count and time a program once, unless that was done; returns what went wrong. ``rounds`` makes no difference.

    What the agent left is kept for `make_profile`, which needs no GPU.
    """
    del rounds
    built, kept = task.built, task.place / COUNTS
    if kept.exists() or not {PLAIN, COUNTED} <= built.folders.keys():
        return "" if kept.exists() else "it is not built"
    plain, timed = observed(built, PLAIN, counted=False, limit=limit)
    run, counted = observed(built, COUNTED, counted=True, limit=limit)
    wrong = fault(task.recipe, plain, plain) or fault(task.recipe, run, plain)
    if wrong or not counted.units:
        return wrong or f"nothing is counted: {counted.lost[:1]}"
    kept.write_bytes(pickle.dumps((counted, timed)))
    return ""


def make_profile(task: Task) -> None:
    """Write the profile of what was counted, if anything was and it is another than before: builds are as new as it."""
    kept = task.place / COUNTS
    if kept.exists():
        made = run_file(*pickle.loads(kept.read_bytes()))
        if not task.profile.exists() or task.profile.read_text() != as_text(made):
            write(task.profile, made)


def take_times(task: Task, rounds: int, limit: float) -> str:
    """Run the builds, taking turns, and keep the nanoseconds by build, kernel and round; return what went wrong.
    Builds in which nothing is rewritten are the plain one, and do not run.
    """
    built = task.built
    variants = [
        what
        for what in built.folders
        if what == PLAIN or (what != COUNTED and any(map(is_rewritten, regions_of(task.place, what))))
    ]
    if PLAIN not in variants:
        return "it is not built"
    times: dict[str, dict[str, list[float]]] = {what: defaultdict(list) for what in variants}
    wrong: dict[str, str] = {}
    first: Run | None = None
    device = ""
    for _ in range(rounds):
        for what in variants:
            if what in wrong:
                continue
            run, seen = observed(built, what, counted=False, limit=limit)
            first = run if first is None else first
            said = fault(task.recipe, run, first) or _untimed(seen)
            if said:
                wrong[what] = said
                continue
            device = seen.times[0].device
            for name, nanoseconds in _by_kernel(seen).items():
                times[what][name].append(nanoseconds)
    found = {"program": task.program.name, "device": device, "times": times, "wrong": wrong}
    (task.place / TIMES).write_text(json.dumps(found) + "\n")
    return "; ".join(f"{what}: {said}" for what, said in wrong.items())


def times_of(place: Path) -> dict[str, Any] | None:
    """What `take_times` kept, None if it did not run."""
    file = place / TIMES
    found: dict[str, Any] | None = json.loads(file.read_text()) if file.exists() else None
    return found


def _untimed(seen: ProgramRun) -> str:
    return "" if seen.times else seen.untimed or "it ran no kernel"


def _by_kernel(seen: ProgramRun) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for time in seen.times:
        found[canonical(time.name)] += time.nanoseconds
    return found
