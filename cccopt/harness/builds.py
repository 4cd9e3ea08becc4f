"""The builds of a workload: plain, annotated with the pass off, with the pass on, and the peer written by hand.

Markers alone can change what nvcc makes of a loop, so annotated code with the pass off is measured too. DESIGN
chapter 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cccopt import driver, resources
from cccopt.diagnostic import CccError, render
from cccopt.driver.unit_report import diagnostics_of
from cccopt.harness.choices import BuildName
from cccopt.harness.result import KernelResources, RewrittenRegion
from cccopt.harness.sample_profile import SWEPT_SIZE, sample_profile
from cccopt.harness.workload import Launch, Sample
from cccopt.region_profiles import RunProfile
from cccopt.toolchain.ptxas import Resources, assemble
from cccopt.toolchain.ptxas import resources as ptxas_resources

ALL_BUILDS = (BuildName.PLAIN, BuildName.MARKED, BuildName.ALWAYS, BuildName.AUTO, BuildName.HANDWRITTEN)


@dataclass(frozen=True, slots=True)
class Builds:
    """PTX by build name (in the order in which tables show them), what was collected, and the remarks."""

    ptx: Mapping[str, str]
    regions: tuple[RewrittenRegion, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Build:
    """One build: its code, what ptxas reports for its kernels (by name), what was collected, and the remarks."""

    name: str
    ptx: str
    cubin: bytes
    resources: Mapping[str, KernelResources]
    regions: tuple[RewrittenRegion, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoBuild:
    """A build that does not exist, and why: a refusal with its code, or a source that this installation lacks.

    ``by_headers``: a `static_assert` in the headers rejects it, which is a result and not a failure.
    """

    name: str
    why: str
    by_headers: bool = False


def compile_builds(
    sample: Sample, arch: str, *, marked: bool = True, ccc: str = "always", form: str = "auto"
) -> Builds:
    """Compile ``sample`` for ``arch`` (such as ``sm_90``), the build ``marked`` only on request. Raises `CccError`."""
    program = driver.compile(sample.source, arch=arch, ccc=ccc, form=form)
    ptx: dict[str, str] = {BuildName.PLAIN: program.original_ptx}
    if marked:
        ptx[BuildName.MARKED] = driver.marked_ptx(sample.source, arch=arch) or program.original_ptx
    ptx[BuildName.CCC] = program.ptx
    return Builds(ptx, *_regions_and_remarks(program.report))


def auto_for(ending: str) -> str:
    """The name of the `BuildName.AUTO` build decided by launches at `SWEPT_SIZE` whose labels end with ``ending``."""
    return f"{BuildName.AUTO} {ending}"


def split_name(name: str) -> tuple[str, str]:
    """Which of `ALL_BUILDS` a build is, and the ending of the launch labels that it is made for; empty for all."""
    kind, _, ending = name.partition(" ")
    return kind, ending


def build(sample: Sample, name: str, arch: str, form: str = "auto") -> Build | NoBuild:
    """Make the build ``name`` (one of `ALL_BUILDS`, or what `auto_for` gives) of ``sample`` for ``arch``, with
    rewritten loops in ``form``; a refusal gives a `NoBuild`.
    """
    try:
        return _build(sample, name, arch, form)
    except CccError as problem:
        return NoBuild(name, first_of(problem))


def first_of(problem: CccError) -> str:
    """The code and message of an error's first diagnostic, for a table."""
    first = problem.diagnostics[0]
    return f"{first.code}: {first.message}"


def _build(sample: Sample, name: str, arch: str, form: str) -> Build | NoBuild:
    regions: tuple[RewrittenRegion, ...] = ()
    remarks: tuple[str, ...] = ()
    if name == BuildName.HANDWRITTEN:
        source = resources.folder("bench") / "handwritten" / f"{sample.name}.cu"
        if not source.is_file():
            return NoBuild(name, f"there is no bench/handwritten/{sample.name}.cu")
        include = ("-I", str(sample.source.parent))
        ptx = driver.compile(source, arch=arch, ccc="off", nvcc_options=include).ptx
    elif name == BuildName.MARKED:
        ptx = driver.marked_ptx(sample.source, arch=arch)
        if not ptx:
            return NoBuild(name, "there is no annotation")
    else:
        kind, ending = split_name(name)
        profile = _profile(sample, ending, arch) if kind == BuildName.AUTO else None
        mode = "off" if name == BuildName.PLAIN else kind
        program = driver.compile(sample.source, arch=arch, ccc=mode, profile=profile, form=form)
        ptx = program.ptx
        regions, remarks = _regions_and_remarks(program.report)
    return assembled(name, ptx, arch, regions, remarks)


def assembled(
    name: str, ptx: str, arch: str, regions: tuple[RewrittenRegion, ...] = (), remarks: tuple[str, ...] = ()
) -> Build:
    """The build that ptxas makes of ``ptx``. Raises `CccError` if ptxas refuses it."""
    made = assemble(ptx, arch)
    kernels = {kernel: _needs(kernel, found) for kernel, found in made.resources.items()}
    return Build(name, ptx, made.cubin, kernels, regions, remarks)


def cubin_file(folder: Path, sample: str, build: str) -> Path:
    """The file in which tools that run builds find the machine code of a build."""
    return folder / f"{sample}.{build}.cubin"


def _profile(sample: Sample, ending: str, arch: str) -> RunProfile | None:
    if not ending:
        return sample_profile(sample, arch)

    def wanted(launch: Launch) -> bool:
        return launch.label.endswith(f" {ending}")

    return sample_profile(sample, arch, size=SWEPT_SIZE, wanted=wanted)


def _regions_and_remarks(report: Mapping[str, Any]) -> tuple[tuple[RewrittenRegion, ...], tuple[str, ...]]:
    """What was rewritten, and the remarks."""
    units = report["units"]
    regions = (region for unit in units for region in unit["regions"] if region["outcome"] == "rewritten")
    remarks = (render(remark) for unit in units for remark in diagnostics_of(unit["remarks"]))
    return tuple(_region(region) for region in regions), tuple(remarks)


def kernel_resources(ptx: str, arch: str, kernels: Iterable[str]) -> tuple[KernelResources, ...]:
    """What ptxas reports for each of ``kernels``."""
    found = ptxas_resources(ptx, arch)
    return tuple(_needs(kernel, found[kernel]) for kernel in kernels)


def _needs(kernel: str, found: Resources) -> KernelResources:
    spills = found.spill_stores + found.spill_loads
    return KernelResources(kernel, found.registers, found.shared, spills)


def _region(data: Mapping[str, Any]) -> RewrittenRegion:
    place = data["place"]
    # Loops are reported too; only paths have live-ins and a stack.
    is_path = bool(data["context"])
    return RewrittenRegion(
        data["kernel"],
        data["region"],
        data["kind"],
        f"{Path(place['file']).name}:{place['line']}" if place else "",
        data["context_bytes"] if is_path else None,
        tuple((phase, tuple(labels)) for phase, labels in data["labels"]),
        uncompressed_bytes(data["context"]) if is_path else None,
    )


_REBUILT_FROM = "other values are recomputed from it"


def uncompressed_bytes(context: Iterable[Mapping[str, str]]) -> int:
    """The size of a context (entries of a report) if every live-in that waits were itself on the stack.

    As on the stack, 32 predicates share a word, and so do two 16-bit values.
    """
    # The report also lists what compression added to the live-ins.
    waits = [
        entry["type"]
        for entry in context
        if entry["decision"] == "recomputed"
        or (entry["decision"] == "collected" and entry["reason"] != _REBUILT_FROM)
    ]
    bits = [0 if kind == "pred" else int(re.sub(r"\D", "", kind)) for kind in waits]
    predicates, halves = bits.count(0), sum(1 for b in bits if 0 < b <= 16)
    words = -(-predicates // 32) + -(-halves // 2) + sum(b // 32 for b in bits if b > 16)
    return 4 * words
