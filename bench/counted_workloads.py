"""The samples and CTE's workloads as the benches of counting run them: their plain code, and what counted code of
theirs has counted.

A workload of CTE is named `cte-NAME`; the code that is counted is that of the policy `automatic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cccopt import driver, resources
from cccopt.device.gpu import Kernel, LoadedModule
from cccopt.harness.cte import workload as cte
from cccopt.harness.on_gpu import LoadedBuild, LoadedCode
from cccopt.harness.workload import Sample, load
from cccopt.passes.counting.layout import Layout
from cccopt.passes.instrument import COUNTED, HEAD
from cccopt.profiling.counts import FunctionCounts, counts_of

SAMPLES = ("bfs", "dqg", "emies", "escape", "ff", "hash", "iefa", "rt", "sensitivity", "sssp", "walk")
CTE = {
    **dict.fromkeys(
        ("cte-bfs", "cte-diag", "cte-pagerank", "cte-spmv", "cte-spmv_double", "cte-sssp"), "rmat"
    ),
    "cte-dqg": "normal_20",
    "cte-fmm": "clustered_q5",
    "cte-line_quad": "quad",
    "cte-records": "ragged",
}
"""CTE's workloads and their inputs."""
_CTE = "cte-"


def sample_of(name: str) -> Sample:
    """The workload on its input."""
    return cte.load(plain_name(name)).sample(CTE[name]) if name in CTE else load(name)


def plain_name(name: str) -> str:
    """The name that the workload has on its shelf."""
    return name.removeprefix(_CTE)


def nvcc_options(name: str) -> tuple[str, ...]:
    """nvcc's options for the plain code of a workload, with line information."""
    source = sample_of(name).source
    common = ("-lineinfo", "-w", f"-I{source.parent}", f"-I{resources.folder('cte_templates')}")
    return (*common, *cte.options(cte.load(plain_name(name)), cte.AUTOMATIC)) if name in CTE else common


def plain_ptx(name: str) -> str:
    """The plain code of a workload for sm_90. Raises `CccError` as `cccopt.driver.compile` does."""
    source = sample_of(name).source
    return driver.compile(source, arch="sm_90", ccc="off", nvcc_options=nvcc_options(name)).ptx


def loaded(name: str, code: LoadedCode) -> LoadedBuild:
    """A build of a workload that runs ``code``, plain or counted. The first that is run tells the right results where
    there is no reference.
    """
    return LoadedBuild(sample_of(name).plain, code)


@dataclass
class CountedCode:
    """Loaded code of which the counted kernels are taken."""

    module: LoadedModule

    def kernel(self, name: str) -> Kernel:
        """The counted kernel of the plain one's name."""
        return self.module.kernel(name + COUNTED)


def counts_in(module: LoadedModule, layout: Layout) -> list[FunctionCounts]:
    """What the counted kernels of a module have counted since it was loaded."""
    import pycuda.driver as cuda

    handle: Any = module.handle
    head = np.zeros(4, np.uint64)
    cuda.memcpy_dtoh(head, handle.get_global(HEAD)[0])
    raw = np.zeros(int(head[1]) // 8, np.uint64)
    cuda.memcpy_dtoh(raw, int(head[0]))
    return counts_of(layout, raw.tobytes())
