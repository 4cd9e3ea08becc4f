"""What tests of the harness share: a machine that seems to have a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STAND_IN = Path(__file__).with_name("stand_in")


@pytest.fixture
def seeming_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine that seems to have a GPU and ncu; gives the folder of the latter."""
    programs = tmp_path / "programs"
    programs.mkdir()
    ncu = programs / "ncu"
    ncu.write_text(
        f"""#!{sys.executable}
import os, subprocess, sys
log, child = sys.argv[sys.argv.index("--log-file") + 1], sys.argv[sys.argv.index({sys.executable!r}) :]
assert sys.argv[sys.argv.index("--profile-from-start") + 1] == "off"
names = sys.argv[sys.argv.index("--metrics") + 1]
variables = {{"STAND_IN_LOG": log, "STAND_IN_METRICS": names}}
sys.exit(subprocess.run(child, env={{**os.environ, **variables}}).returncode)
"""
    )
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    for name in ("pycuda", "pycuda.driver"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(STAND_IN)
    yield programs
    for name in ("pycuda", "pycuda.driver"):
        sys.modules.pop(name, None)
