"""A benchmark workload's source as PTX, compiled as ``cccopt bench cte`` compiles it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cccopt.harness.cte import workload as cte_workload
from cccopt.harness.cte.workload import CteWorkload
from cccopt.toolchain.discovery import find_nvcc


def ptx_of(workload: CteWorkload, build: str, folder: Path) -> str:
    """The PTX of a policy or form; ``folder`` is for files."""
    output = folder / f"{workload.name}-{build}.ptx"
    options = ("-ptx", "-arch=sm_90", *cte_workload.options(workload, build))
    command = [find_nvcc().driver, *options, workload.source, "-o", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output.read_text()
