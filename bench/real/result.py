"""What is known of a program after its builds and its runs: one JSON file, which holds no line of the program."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.real.build import Build
from bench.real.measure import Measured
from bench.real.outcome import KernelOutcome, kernel_outcomes
from bench.real.program import Program

FILE = "result.json"


def _kernel(kernel: KernelOutcome) -> dict[str, Any]:
    found = [{**asdict(annotation), **asdict(outcome)} for annotation, outcome in kernel.outcomes]
    return {"kernel": kernel.kernel, "accepted": kernel.accepted, "annotations": found}


def built(program: Program, builds: list[Build]) -> dict[str, Any]:
    """The part that the builds tell."""
    return {
        "program": program.name,
        "repository": program.repository,
        "commit": program.commit,
        "folder": program.folder,
        "builds": {each.variant: {"succeeded": each.succeeded, "seconds": each.seconds} for each in builds},
        "kernels": {
            each.variant: [_kernel(kernel) for kernel in kernel_outcomes(program, each)]
            for each in builds
            if each.variant != "plain"
        },
        "runs": {},
    }


def with_runs(result: dict[str, Any], runs: dict[str, Measured]) -> dict[str, Any]:
    """The same with what the runs tell."""
    return {**result, "runs": {variant: asdict(measured) for variant, measured in runs.items()}}


def write(result: dict[str, Any], out: Path) -> None:
    """Keep the result of a program beside its builds."""
    (out / result["program"] / FILE).write_text(json.dumps(result, indent=1) + "\n")


def read(folder: Path) -> dict[str, Any]:
    """The result of a program."""
    found: dict[str, Any] = json.loads((folder / FILE).read_text())
    return found
