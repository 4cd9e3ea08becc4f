"""The three builds of a workload: plain, annotated with the pass off, annotated with the pass on.

Marks alone can change what nvcc makes of a loop, so all three are measured. DESIGN chapter 8.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cccopt import driver
from cccopt.diagnostic import CccError, error, render
from cccopt.files import read_text
from cccopt.harness.result import CCC, MARKED, PLAIN, KernelResources, Region
from cccopt.harness.workload import Sample
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.ptxas import resources
from cccopt.toolchain.settings import Settings
from cccopt.unit import diagnostics_of


@dataclass(frozen=True, slots=True)
class Builds:
    """PTX by build name (in the order in which tables show them), what was collected, and the remarks."""

    ptx: Mapping[str, str]
    regions: tuple[Region, ...]
    remarks: tuple[str, ...]


def compile_builds(sample: Sample, arch: str, *, marked: bool = True, ccc: str = "always") -> Builds:
    """Compile ``sample`` for ``arch`` (``sm_90``); the `MARKED` build only if asked. Raises `CccError`."""
    program = driver.compile(sample.source, arch=arch, ccc=ccc)
    ptx = {PLAIN: program.original_ptx}
    if marked:
        ptx[MARKED] = _marked_ptx(sample, arch)
    ptx[CCC] = program.ptx
    units = program.report["units"]
    return Builds(
        ptx,
        tuple(
            _region(region)
            for unit in units
            for region in unit["regions"]
            if region["outcome"] == "rewritten"
        ),
        tuple(render(remark) for unit in units for remark in diagnostics_of(unit["remarks"])),
    )


def _marked_ptx(sample: Sample, arch: str) -> str:
    """What the front end makes of the text with all its marks, before any rewrite."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        output = Path(folder) / "out.ptx"
        arguments = ["-ptx", f"-arch={arch}", str(sample.source), "-o", str(output)]
        done = run_nvcc(arguments, Settings("always", keep=folder), capture=True)
        if done.status != 0:
            raise CccError(error("CCC085", f"nvcc failed with exit status {done.status}", why=done.errors))
        # The text with all marks is the first that is compiled; one without annotations is left to nvcc.
        stages = list(Path(folder).glob("*.1.ptx"))
        return read_text(stages[0] if stages else output)


def kernel_resources(ptx: str, arch: str, kernels: Iterable[str]) -> tuple[KernelResources, ...]:
    """What ptxas says of each of ``kernels``."""
    found = resources(ptx, arch)
    return tuple(
        KernelResources(
            kernel,
            found[kernel].registers,
            found[kernel].shared,
            found[kernel].spill_stores + found[kernel].spill_loads,
        )
        for kernel in kernels
    )


def _region(data: Mapping[str, Any]) -> Region:
    place = data["place"]
    # Loops are reported too; only paths have live-ins and a stack.
    is_path = bool(data["context"])
    return Region(
        data["kernel"],
        data["region"],
        data["kind"],
        f"{Path(place['file']).name}:{place['line']}" if place else "",
        data["context_bytes"] if is_path else None,
        tuple((phase, tuple(labels)) for phase, labels in data["labels"]),
    )
