"""Items that tests of the queue give to workers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cccopt.diagnostic import CccError, error
from cccopt.harness.result import BuildResult


def double(number: int) -> int:
    """Later items end first."""
    time.sleep(0.3 / number)
    return 2 * number


def note_gpu(folder: Path, name: str) -> str:
    """Says on which GPU it runs, and fails where another item runs on the same one."""
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "any")
    (folder / f"busy-{gpu}").mkdir()
    (folder / name).write_text(gpu)
    time.sleep(0.2)
    (folder / f"busy-{gpu}").rmdir()
    return gpu


def end_by(how: str) -> str:
    """Comes to nothing in one of several ways, or gives ``well``."""
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "error":
        raise CccError(error("CCC095", "a kernel failed on the GPU"))
    if how == "mistake":
        raise ValueError("a mistake of ours")
    return "well"


def end_for_well(folder: str, codes: Mapping[str, bytes], *rest: Any) -> dict[str, BuildResult]:
    """Stands for the timing of a sample: that of ``well`` dies, others have no launches."""
    if folder.endswith("well"):
        end_by("kill")
    return {name: BuildResult(name, (), ()) for name in codes}


def hang(folder: Path, name: str) -> None:
    """Waits for ever, with a child, and a child in a session of its own that only a `finally` ends."""
    child = subprocess.Popen(["sleep", "300"])
    other = subprocess.Popen(["sleep", "300"], start_new_session=True)
    (folder / "unfinished").write_text(f"{os.getpid()} {child.pid} {other.pid}")
    (folder / "unfinished").rename(folder / name)
    try:
        time.sleep(300)
    finally:
        other.kill()
        other.wait()


def runs_on(pid: int) -> bool:
    """Whether a process goes on; one that has been killed may need a moment."""
    for _ in range(30):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.1)
    return True
