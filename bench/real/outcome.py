"""What became of each annotation, read from the reports of `ccc-nvcc` and from what it printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.real.build import Build
from bench.real.program import Annotation, Kernel, Program, line_after

REACH = {"grid": 10, "switch": 100}
"""Lines from a pragma to what is reported of it, at most: the kernel's name, the cases of a switch."""
NOTHING = "CCC054"
"""The code of what is left because there is nothing to collect."""
DIAGNOSTIC = re.compile(r"^(error|warning)\[(CCC\d+)\]: (.*)\n\s+--> (.*?):(\d+):\d+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or a warning: a refused region is a warning where the compiler is told to go on."""

    code: str
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """`state` is `rewritten`, `declined`, `refused` or, where nothing is said of it, `dropped`.

    `detail` is the form of a rewritten region, or the code of what was said about another one.
    """

    state: str
    detail: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class KernelOutcome:
    """The outcomes of a kernel's annotations, in their order, and whether it is accepted."""

    kernel: str
    outcomes: tuple[tuple[Annotation, Outcome], ...]

    @property
    def accepted(self) -> bool:
        """All of the kernel's annotations are rewritten, or all are left since there is nothing to collect."""
        states = {outcome.state for _, outcome in self.outcomes}
        nothing = any(outcome.detail == NOTHING for _, outcome in self.outcomes)
        return states <= {"rewritten"} or (states == {"declined"} and nothing)


def diagnostics(log: str) -> list[Diagnostic]:
    """The errors and warnings of `ccc-nvcc` in what a build printed."""
    return [
        Diagnostic(code, message, file, int(line)) for _, code, message, file, line in DIAGNOSTIC.findall(log)
    ]


def _of_units(build: Build, key: str) -> Iterator[dict[str, Any]]:
    """The `regions` or `remarks` of all reports of a build that have a place."""
    for report in build.reports:
        for unit in report["units"]:
            yield from (each for each in unit[key] if each["place"])


def _names(annotation: Annotation, program: Program, file: str, line: int) -> bool:
    """Whether a place is that of an annotation: its pragma, its statement, a line of a kernel's head, a case."""
    if Path(annotation.file).name != Path(file).name:
        return False
    own = line_after(annotation, program.annotations)
    last = own + REACH.get(annotation.pragma.split()[0], 0)
    others = [
        line_after(each, program.annotations) - 1
        for each in program.annotations
        if each.file == annotation.file and each.line > annotation.line
    ]
    return own - 1 <= line <= min([last, *(other - 1 for other in others)])


def outcome_of(annotation: Annotation, program: Program, build: Build) -> Outcome:
    """What became of an annotation in all of its copies: refused before declined, declined before rewritten."""
    for each in diagnostics(build.log):
        if _names(annotation, program, each.file, each.line):
            return Outcome("refused", each.code, each.message)

    def here(said: dict[str, Any]) -> bool:
        return _names(annotation, program, said["place"]["file"], said["place"]["line"])

    copies = [region for region in _of_units(build, "regions") if here(region)]
    if not copies:
        return Outcome("dropped", "" if build.succeeded else "(no build)")
    if any(region["outcome"] != "rewritten" for region in copies):
        remarks = [remark for remark in _of_units(build, "remarks") if here(remark)]
        return Outcome("declined", *(remarks[0][key] for key in ("code", "message") if remarks))
    return Outcome("rewritten", "/".join(dict.fromkeys(region["form"] for region in copies)))


def _with_cause(kernel: Kernel, program: Program, build: Build) -> KernelOutcome:
    """A refusal that names no annotated line goes to the last annotation above it, in a kernel that was dropped."""
    found = [(each, outcome_of(each, program, build)) for each in kernel.annotations]
    if any(outcome.state == "refused" for _, outcome in found):
        return KernelOutcome(kernel.name, tuple(found))
    for said in diagnostics(build.log):
        if any(_names(each, program, said.file, said.line) for each in program.annotations):
            continue
        above = [
            index
            for index, (each, outcome) in enumerate(found)
            if outcome.state == "dropped"
            and Path(each.file).name == Path(said.file).name
            and line_after(each, program.annotations) <= said.line
        ]
        if above:
            last = above[-1]
            found[last] = (found[last][0], Outcome("refused", said.code, said.message))
    return KernelOutcome(kernel.name, tuple(found))


def kernel_outcomes(program: Program, build: Build) -> list[KernelOutcome]:
    """What became of the annotations of each kernel."""
    return [_with_cause(kernel, program, build) for kernel in program.kernels]
