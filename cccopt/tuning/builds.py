"""The builds of a program that are tried: each in a copy of the source tree, with options from the environment.

`ccc-nvcc` takes options from NVCC_APPEND_FLAGS, so any build system that runs it will do. Each compilation leaves a
report in the build's folder: the reports prove that the build ran `ccc-nvcc` with these options, and show which kernels
have annotations.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cccopt.ccc.profitability.code_digest import canonical
from cccopt.diagnostic import CccError, Severity, error
from cccopt.text import shortened
from cccopt.tuning.tree import copy

PLAIN, DECIDED = "plain", "decided"
_REPORTS = "reports"
_SAID = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one build."""

    folder: Path

    @property
    def tree(self) -> Path:
        """The copy of the source tree."""
        return self.folder / "tree"

    @property
    def reports(self) -> Path:
        """Where compilations leave their reports."""
        return self.folder / _REPORTS


def flags_of(build: str, decisions: Path) -> list[str]:
    """The options of ccc-nvcc for a build of `cccopt.ccc.profitability.decisions.BUILDS`, or for the one that follows
    ``decisions`` (a file that is empty for the others). They come last, so they override those of the build line.
    """
    form = "auto" if build in (PLAIN, "auto", "always", DECIDED) else build
    mode = {PLAIN: "off", "auto": "auto", DECIDED: "auto"}.get(build, "always")
    return [f"--ccc={mode}", f"--ccc-form={form}", "--ccc-keep-going", f"--ccc-decisions={decisions}"]


def make(
    build: str, command: str, source: Path, place: Place, decisions: Path, without: Collection[Path] = ()
) -> None:
    """Copy the tree ``source``, except the files ``without``, and run ``command`` in the copy. Raises CccError if that
    fails or compiles nothing with `ccc-nvcc` (CCC116).
    """
    shutil.rmtree(place.folder, ignore_errors=True)
    place.reports.mkdir(parents=True)
    copy(source, place.tree, without)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place.tree,
        env=_environment(flags_of(build, decisions), place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = done.stdout.strip()[-_SAID:]
        raise _failed(build, f"`{shortened(command, 80)}` ended with status {done.returncode}:\n{said}")
    if not any(place.reports.glob("*.json")):
        raise CccError(
            error(
                "CCC116",
                f"the build `{build}` compiled nothing with ccc-nvcc",
                why=f"`{shortened(command, 80)}` succeeded, and no compilation left a report",
                help="make it build from scratch (`make -B`), with ccc-nvcc in place of nvcc",
            )
        )


def _failed(build: str, why: str) -> CccError:
    return CccError(
        error("CCC116", f"the build `{build}` failed", why=why, help="fix it, and run this again")
    )


def _environment(flags: list[str], place: Place) -> dict[str, str]:
    before = os.environ.get("NVCC_APPEND_FLAGS", "")
    ours = [*flags, f"--ccc-report={place.reports.resolve()}{os.sep}"]
    return {**os.environ, "NVCC_APPEND_FLAGS": " ".join([*before.split(), *ours])}


def digests_in(places: Iterable[Place]) -> dict[str, tuple[str, ...]]:
    """The digests of each annotated function that builds compiled: at most one for each architecture and file."""
    found: dict[str, set[str]] = {}
    for place in places:
        for unit in units_in(place):
            for name, digest in unit.get("digests", {}).items():
                found.setdefault(canonical(name), set()).add(digest)
    return {name: tuple(sorted(digests)) for name, digests in found.items()}


def rewritten_in(place: Place) -> frozenset[str]:
    """The functions in which a build rewrote something."""
    return frozenset(
        canonical(region["kernel"])
        for unit in units_in(place)
        for region in unit.get("regions", ())
        if region["outcome"] == "rewritten"
    )


def stale_in(place: Place) -> list[str]:
    """What a build's compilations say about stale decisions."""
    return [
        remark["message"]
        for unit in units_in(place)
        for remark in unit.get("remarks", ())
        if (remark["code"], remark["severity"]) == ("CCC115", Severity.WARNING.value)
    ]


def units_in(place: Place) -> Iterator[Mapping[str, Any]]:
    """The reports of a build's compilations."""
    for file in sorted(place.reports.glob("*.json")):
        yield from json.loads(file.read_text())["units"]
