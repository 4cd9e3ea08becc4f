"""One run of a build: the times of its kernels, and what it left."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cccopt.ccc.profitability.code_digest import canonical
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.profiling.running import ProgramRun, environment_for, left_in
from cccopt.text import shortened


@dataclass(frozen=True, slots=True)
class Observed:
    """A run: its exit status, nanoseconds by kernel (its canonical name) over all launches, the GPU, and hashes of the
    files it is judged by (empty for one that is not there).
    """

    status: int
    times: dict[str, float]
    device: str
    outputs: tuple[str, ...]


def observe(command: str, tree: Path, outputs: Sequence[str]) -> Observed:
    """Run ``command`` in ``tree``; what it prints is thrown away. Raises CccError where there are no times (CCC116)."""
    for name in outputs:
        (tree / name).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="cccopt-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=tree,
            env=environment_for(folder, counted=False, timed=True),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            code = process.wait()
        seen = left_in(folder, process.pid, code, counted=False)
    if seen.status == 0 and not seen.times:
        raise CccError(_untimed(command, seen))
    times: dict[str, float] = defaultdict(float)
    for time in seen.times:
        times[canonical(time.name)] += time.nanoseconds
    devices = sorted({time.device for time in seen.times})
    return Observed(
        seen.status, dict(times), ", ".join(devices), tuple(_hash(tree / name) for name in outputs)
    )


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _untimed(command: str, seen: ProgramRun) -> Diagnostic:
    why = seen.untimed or next(iter(seen.lost), "")
    if not why:
        why = "it ran no kernel" if seen.used_cuda else "it made no call of CUDA"
    return error(
        "CCC116",
        f"there are no times of `{shortened(command, 80)}`",
        why=why,
        help="give a command that runs kernels on a GPU; times need CUPTI (`pip install nvidia-cuda-cupti`)",
    )
