"""The accuracy of a profile of CTE's workloads, which no program of their own runs: a process under Nsight Compute runs
the plain build once (`cccopt.harness.once`), and this one runs the counted build.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from sys import executable
from typing import Any

from bench.counted_workloads import (
    CTE,
    CountedCode,
    counts_in,
    loaded,
    nvcc_options,
    plain_name,
    plain_ptx,
    sample_of,
)
from bench.profile.accuracy import Counted, codes_in, kernels, warps_of
from bench.profile.ncu import Ncu
from cccopt.device.gpu import open_gpu
from cccopt.harness.builds import cubin_file
from cccopt.harness.cte.workload import AUTOMATIC
from cccopt.harness.on_gpu import Bench
from cccopt.harness.workload import FULL
from cccopt.passes.counting.layout import Layout
from cccopt.passes.instrument import ALL, instrumented
from cccopt.profiling.counts import by_name
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.ptxas import assemble
from cccopt.workers.apart import environment

_SEED = 1


@dataclass(frozen=True, slots=True)
class BuiltWorkload:
    """A workload with a folder that has its ``plain`` machine code; ``counted`` code with what its counters count."""

    name: str
    folder: Path
    plain: Path
    counted: bytes
    layout: Layout


def build_all(names: Sequence[str], folder: Path, jobs: int) -> list[BuiltWorkload]:
    """Build CTE's workloads of these names, ``jobs`` at a time. Raises `CccError` and `CalledProcessError`."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda name: _build(name, folder / name), filter(CTE.__contains__, names)))


def _build(name: str, folder: Path) -> BuiltWorkload:
    folder.mkdir(parents=True, exist_ok=True)
    sample = sample_of(name)
    plain = cubin_file(folder, sample.name, AUTOMATIC)
    command = [
        "nvcc",
        "-O3",
        "-arch=sm_90",
        "-cubin",
        *nvcc_options(name),
        str(sample.source),
        "-o",
        str(plain),
    ]
    subprocess.run(command, check=True)
    module, layout = instrumented(parse(plain_ptx(name)), ALL)
    return BuiltWorkload(name, folder, plain, assemble(print_module(module), "sm_90").cubin, layout)


def compared(built: BuiltWorkload, ncu: Ncu, limit: float) -> dict[str, Any]:
    """Compare the kernels of a workload, over all of their launches."""
    result: dict[str, Any] = {"program": built.name, "kernels": [], "why": ""}
    sample = sample_of(built.name)
    with open_gpu() as gpu:
        module = gpu.load(built.counted)
        build = loaded(built.name, CountedCode(module))
        Bench(gpu, sample.instance(FULL, _SEED), built.plain.read_bytes()).run(build, check=True)
        counts = by_name(counts_in(module, built.layout))
    if build.wrong:
        return {**result, "why": build.wrong}
    once = [executable, "-m", "cccopt.harness.once", plain_name(built.name), AUTOMATIC, "--unchecked"]
    inputs = ["--input", CTE[built.name], "--size", FULL, "--seed", str(_SEED), "--cubins", str(built.folder)]
    with tempfile.TemporaryDirectory(prefix="cccopt-") as place:
        here = Path.cwd()
        theirs = ncu.profile(join([*once, *inputs]), here, environment(), Path(place), 0, limit)
    if theirs.why:
        return {**result, "why": theirs.why}
    ours = {
        name: Counted(built.layout, each, None, counts)
        for name, each in counts.items()
        if each.layout.kernel and warps_of(each)
    }
    return {**result, "kernels": kernels(ours, codes_in(built.folder), theirs.kernels)}
