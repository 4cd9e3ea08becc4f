"""One run of a build: the times of its kernels, and what it left."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cccopt.ccc.profitability.code_digest import canonical
from cccopt.profiling.running import ProgramRun, environment_for, left_in

LIMIT = 600.0
TOO_LONG = 124
"""The exit status of a run that was killed at its limit, as with `timeout`."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A run: its exit status, the nanoseconds of each kernel (by canonical name) over all launches, the GPU, and hashes
    of the output files (empty for a missing one). ``untimed`` says why there are no times.
    """

    status: int
    times: dict[str, float]
    device: str
    outputs: tuple[str, ...]
    untimed: str = ""


def observe(command: str, tree: Path, outputs: Sequence[str], limit: float = LIMIT) -> Observed:
    """Run ``command`` in ``tree`` and discard what it prints. After ``limit`` seconds it is killed, with all that it
    has started, and its status is `TOO_LONG`.
    """
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
            start_new_session=True,
        ) as process:
            code = _ended(process, limit)
        seen = left_in(folder, process.pid, code, counted=False)
    times: dict[str, float] = defaultdict(float)
    for time in seen.times:
        times[canonical(time.name)] += time.nanoseconds
    devices = sorted({time.device for time in seen.times})
    hashes = tuple(_hash(tree / name) for name in outputs)
    return Observed(
        seen.status, dict(times), ", ".join(devices), hashes, "" if seen.times else _untimed(seen)
    )


def _ended(process: subprocess.Popen[bytes], limit: float) -> int:
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return TOO_LONG
    finally:
        # At the limit, and if we are interrupted: a program whose kernel hangs would keep the GPU.
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _untimed(seen: ProgramRun) -> str:
    why = seen.untimed or next(iter(seen.lost), "")
    return why or ("it ran no kernel" if seen.used_cuda else "it made no CUDA call")
