"""What `cccopt tune` chooses for the programs of the verdict, and what it measures of that.

OUT/NAME/tune/tree      the annotated program
OUT/NAME/tune/work      what `cccopt tune` makes of it, which it continues
OUT/NAME/tuned.json     what it chose
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.profile.programs import ROOT
from bench.real.build import compiler_script, copy_sources
from bench.real.measure import Run, fault
from bench.real.program import annotate
from bench.verdict.programs import Task
from cccopt.cli.tune import DEFAULT
from cccopt.diagnostic import CccError
from cccopt.tuning import tuner
from cccopt.tuning.runs import Observed, observe

TUNED = "tuned.json"
_PRINTED = "printed.txt"


def tune(
    task: Task,
    checkouts: Sequence[Path],
    ccc_nvcc: str,
    rounds: int,
    limit: float,
    gpu: AbstractContextManager[Any],
) -> str:
    """Tune a program unless that was done; returns what went wrong. Only one program at a time runs on the ``gpu``."""
    kept = task.place / TUNED
    if kept.exists():
        return ""
    own = task.place / "tune"
    source = own / "tree"
    try:
        if not source.exists():
            annotate(
                copy_sources(task.program, task.recipe, [ROOT, *checkouts], source), task.program.annotations
            )
        compiler = compiler_script(own, f'exec {ccc_nvcc} --ccc-keep-going "$@"')
        given = tuner.Task(
            _line(task, f"export NVCC={shlex.quote(str(compiler))}", *task.recipe.build),
            _line(task, f"({task.recipe.run}) > {_PRINTED} 2>&1"),
            source,
            own / "work",
            DEFAULT,
            rounds,
        )
        runner = partial(_run, task, limit, gpu, [])
        found = tuner.Tuner(given, lambda what: None, runner).tuned()
    except CccError as problem:
        (first, *_) = problem.diagnostics
        return f"{first.message}: {first.why}"
    except (OSError, ValueError) as problem:
        return str(problem)
    kernels = [asdict(each) for each in found.chosen]
    said = {"device": found.device, "kernels": kernels, "left_out": dict(found.left_out)}
    kept.write_text(json.dumps(said) + "\n")
    return ""


def tuned_of(task: Task) -> dict[str, Any] | None:
    """What `tune` kept, None if it did not run."""
    file = task.place / TUNED
    found: dict[str, Any] | None = json.loads(file.read_text()) if file.exists() else None
    return found


def _line(task: Task, *commands: str) -> str:
    """A shell line that runs commands in the program's folder of a copy of the tree."""
    variables = f"export HERE={shlex.quote(str(ROOT))} INPUTS={shlex.quote(str(task.place / 'inputs'))}"
    return "\n".join(["set -e", variables, f"cd {shlex.quote(task.program.folder)}", *commands])


def _run(
    task: Task,
    limit: float,
    gpu: AbstractContextManager[Any],
    first: list[Run],
    command: str,
    tree: Path,
    outputs: Sequence[str],
) -> Observed:
    """Run a build; one with wrong results has a status other than 0. The first run is the plain build's."""
    with gpu:
        found = observe(command, tree, outputs, limit)
    printed = tree / task.program.folder / _PRINTED
    run = Run(found.status, printed.read_text(errors="replace") if printed.exists() else "", 0.0)
    first.append(run)
    return replace(found, status=found.status or int(bool(fault(task.recipe, run, first[0]))))
