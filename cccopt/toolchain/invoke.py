"""Running nvcc through its shadow toolkit, and collecting what the shims report."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cccopt.toolchain.discovery import Nvcc, find_nvcc
from cccopt.toolchain.options import split_variables
from cccopt.toolchain.settings import Settings
from cccopt.toolchain.shadow import shadow_toolkit


@dataclass(frozen=True, slots=True)
class Run:
    """How nvcc ended: its exit status as a shell shows it, its messages if captured, and the shims' reports.

    There is one report for each annotated file and architecture, in the order of the reports' names.
    """

    status: int
    output: str
    errors: str
    reports: tuple[dict[str, Any], ...]


def run_nvcc(
    arguments: Sequence[str],
    settings: Settings,
    *,
    nvcc: Nvcc | None = None,
    capture: bool = False,
) -> Run:
    """Run nvcc on ``arguments`` through the shims; its output passes through unless ``capture``.

    Raises CccError if there is no usable nvcc (CCC080, CCC081) or no place for the shadow toolkit (CCC082).
    """
    real = nvcc if nvcc is not None else find_nvcc()
    program = shadow_toolkit(real) / "bin" / "nvcc"
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        extended = replace(settings, reports=folder)
        # The caller's settings apply: ccc-nvcc's options in nvcc's variables, unknown to nvcc, are dropped.
        _, _, variables = split_variables(os.environ)
        environment = {**os.environ, **variables, **extended.environment()}
        # errors="surrogateescape": nvcc quotes the user's source, whatever its encoding.
        done = subprocess.run(
            [str(program), *arguments],
            env=environment,
            capture_output=capture,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        reports = read_reports(folder)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Run(status, done.stdout or "", done.stderr or "", reports)


def read_reports(folder: str) -> tuple[dict[str, Any], ...]:
    """The reports that the shims wrote into ``folder``, in the order of their names."""
    return tuple(json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json")))


def was_refused(reports: Iterable[dict[str, Any]]) -> bool:
    """Whether a shim ended the compilation: an annotation is wrong or a region was refused."""
    return any("errors" in report for report in reports)
