"""What `cccopt tune` has done, in a file of its work folder, so that it can go on after an interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cccopt.diagnostic import CccError
from cccopt.files import write_text
from cccopt.toolchain.discovery import find_nvcc
from cccopt.tuning.runs import Observed
from cccopt.version import __version__

_FILE, _TOOL = "state.json", "cccopt tune"
_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CUDA_VISIBLE_DEVICES")


@dataclass
class State:
    """The builds that succeeded, and the runs by stage and build. What failed is not kept, so it is tried again."""

    key: Mapping[str, Any]
    built: list[str] = field(default_factory=list)
    runs: dict[str, dict[str, list[Observed]]] = field(default_factory=dict)

    def save(self, work: Path) -> None:
        """Write it to its file."""
        write_text(work / _FILE, json.dumps({"tool": _TOOL, **asdict(self)}))


def load(work: Path, key: Mapping[str, Any]) -> State:
    """The state in a work folder; a new one if it has none, or one with another ``key``."""
    try:
        data = json.loads((work / _FILE).read_text())
        if data["tool"] == _TOOL and data["key"] == key:
            return State(key, [str(build) for build in data["built"]], _runs(data["runs"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # there is none, or one of another version
    return State(key)


def _runs(data: Mapping[str, Any]) -> dict[str, dict[str, list[Observed]]]:
    return {
        stage: {build: [_observed(run) for run in runs] for build, runs in builds.items()}
        for stage, builds in data.items()
    }


def _observed(run: Mapping[str, Any]) -> Observed:
    times = {str(name): float(time) for name, time in run["times"].items()}
    outputs = tuple(map(str, run["outputs"]))
    return Observed(int(run["status"]), times, str(run["device"]), outputs, str(run["untimed"]))


def is_work_folder(folder: Path) -> bool:
    """Whether a folder holds a state of ours."""
    try:
        return bool(json.loads((folder / _FILE).read_text())["tool"] == _TOOL)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def circumstances() -> dict[str, Any]:
    """What builds and runs depend on besides their commands and the source."""
    nvcc: list[Any] = []
    try:
        path = find_nvcc().path
        nvcc = [str(path), path.stat().st_mtime_ns]
    except (CccError, OSError):
        pass  # the build line may bring its own
    return {"cccopt": __version__, "nvcc": nvcc, **{name: os.environ.get(name, "") for name in _VARIABLES}}
