"""Finding nvcc: which one drives a compilation, and why the others do not.

The order is: what the caller or ``CCC_NVCC`` names, the active Python's site-packages (the wheels of the
extra ``cu13``), conda, ``CUDA_HOME``/``CUDA_PATH``, ``PATH``, the usual system folders. ``CCC_NVCC=wheel``
admits only the wheels. A toolkit that does not answer or lacks a part (the PyPI package ``nvidia-cuda-nvcc`` on its
own has no cicc) is passed over, and `candidates` says so.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cccopt.diagnostic import CccError, Diagnostic, Severity, error
from cccopt.toolchain.options import FLAG_VARIABLES

WHEEL = "wheel"
_WHEELS = "site-packages"
_OURSELVES = "it is a link to ccc-nvcc"
_INSTALL = (
    "install one with `pip install 'cccopt[cu13]'`, or put the nvcc of a CUDA 13 toolkit on PATH,"
    " or name it in CCC_NVCC"
)
_NAME = (
    "name the nvcc of a CUDA toolkit, such as `/usr/local/cuda/bin/nvcc`, or unset CCC_NVCC so that cccopt looks for"
    " one"
)


@dataclass(frozen=True, slots=True)
class Nvcc:
    """A usable nvcc.

    ``path`` is spelled as it was found, links unresolved, and may be a wrapper script; ``bin`` is the folder of the
    compiler's own tools (nvcc's ``_HERE_``). ``version`` is, for example, ``13.0.88``. ``origin`` says where the search
    found it; ``passed_over`` are the unusable ones that the search found before it.
    """

    path: Path
    version: str
    bin: Path
    origin: str
    passed_over: tuple[Candidate, ...] = ()

    @property
    def root(self) -> Path:
        """The toolkit's folder."""
        return self.bin.parent

    @property
    def driver(self) -> Path:
        """The nvcc program itself, not a wrapper script around it."""
        return self.bin / "nvcc"

    @property
    def cicc(self) -> Path:
        """The device compiler: CUDA C++ in, PTX out."""
        return self.root / "nvvm" / "bin" / "cicc"

    def tool(self, name: str) -> Path:
        """A program of this toolkit: ``ptxas``, ``cudafe++``."""
        return self.bin / name


@dataclass(frozen=True, slots=True)
class Candidate:
    """An nvcc at a place where `find_nvcc` looks; ``problem`` is empty if it can be used."""

    path: Path
    origin: str
    problem: str = ""


def find_nvcc(path: str | os.PathLike[str] | None = None) -> Nvcc:
    """The nvcc to use: the one named by ``path``, or else the first usable one in the order above.

    Raises CccError: CCC080 when none is found, CCC081 when a named one cannot be used.
    """
    named = os.fspath(path) if path is not None else os.environ.get("CCC_NVCC", "")
    if named and named != WHEEL:
        return _named(named)
    seen: list[Candidate] = []
    for candidate in candidates(wheel_only=named == WHEEL):
        if not candidate.problem:
            return _nvcc(candidate, tuple(seen))
        seen.append(candidate)
    why = "; ".join(f"{one.path} ({one.origin}): {one.problem}" for one in seen)
    if named == WHEEL:
        raise CccError(
            error(
                "CCC080",
                "no nvcc from PyPI wheels is installed",
                why=why or f"CCC_NVCC=wheel accepts only the site-packages of `{sys.executable}`",
                help="install one with `pip install 'cccopt[cu13]'`",
            )
        )
    raise CccError(error("CCC080", "no nvcc found", why=why, help=_INSTALL))


def warnings_of(nvcc: Nvcc) -> tuple[Diagnostic, ...]:
    """A warning for each nvcc that was passed over although the user may think that it is used.

    These are the ones on ``PATH``, in a system folder or named by a variable. Wheels of other programs that hold part
    of a toolkit, and links to ccc-nvcc, are usual and cause no warning.
    """
    return tuple(
        Diagnostic(
            "CCC081",
            Severity.WARNING,
            f"`{one.path}` ({one.origin}) is passed over: {one.problem}",
            why=f"`{nvcc.path}` ({nvcc.origin}) is used in its place",
            help="repair or remove it, or set CCC_NVCC to the nvcc to use",
        )
        for one in nvcc.passed_over
        if one.origin != _WHEELS and one.problem != _OURSELVES
    )


def candidates(*, wheel_only: bool = False) -> Iterator[Candidate]:
    """Every nvcc that exists where `find_nvcc` looks, in its order."""
    met = set()
    for place, origin in _places(wheel_only):
        if place.is_file() and place not in met:
            met.add(place)
            yield Candidate(place, origin, _problem(place))


def _places(wheel_only: bool) -> Iterator[tuple[Path, str]]:
    for folder in _site_folders():
        for toolkit in sorted(folder.glob("cu[0-9]*"), reverse=True):
            yield toolkit / "bin" / "nvcc", _WHEELS
    if wheel_only:
        return
    for variable, subfolder in (("CONDA_PREFIX", "bin"), ("CUDA_HOME", "bin"), ("CUDA_PATH", "bin")):
        if os.environ.get(variable):
            yield Path(os.environ[variable]).absolute() / subfolder / "nvcc", variable
    for place in _on_path():
        if os.access(place, os.X_OK):
            yield place, "PATH"
    yield Path("/usr/local/cuda/bin/nvcc"), "the usual system folder"
    yield Path("/opt/cuda/bin/nvcc"), "the usual system folder"


def evidence(nvcc: Nvcc) -> Iterator[Path]:
    """The files whose state the choice of ``nvcc`` and its shadow depends on, whether they exist or not."""
    for entry in sys.path:
        yield Path(entry).absolute() / "nvidia"
    for place, _ in _places(wheel_only=False):
        yield place
    yield from _on_path()
    yield from (nvcc.path, nvcc.driver, nvcc.bin / "nvcc.profile", nvcc.cicc, nvcc.tool("cudafe++"))


def _on_path() -> Iterator[Path]:
    for folder in os.get_exec_path():
        yield Path(folder).absolute() / "nvcc"


def _site_folders() -> list[Path]:
    """The folders of the namespace package ``nvidia``, which the CUDA wheels share."""
    spec = importlib.util.find_spec("nvidia")
    places = spec.submodule_search_locations if spec is not None else None
    return [Path(place) for place in places or ()]


def _named(name: str) -> Nvcc:
    found = shutil.which(name)
    if found is None:
        raise CccError(error("CCC081", f"`{name}` is not an nvcc: no such program", help=_NAME))
    place = Path(found).absolute()
    problem = _problem(place)
    if problem:
        raise CccError(error("CCC081", f"`{name}` cannot be used: {problem}", help=_NAME))
    return _nvcc(Candidate(place, "named"))


def _problem(nvcc: Path) -> str:
    """Why this nvcc cannot compile, or an empty string."""
    if not os.access(nvcc, os.X_OK):
        return "it is not executable"
    if Path(os.path.realpath(nvcc)).name == "ccc-nvcc":
        return _OURSELVES
    folder = _tools(nvcc)
    if folder is None:
        return "it does not show where its tools are (no nvcc.profile beside it, and no answer to --dryrun)"
    parts = {
        "cudafe++": folder / "cudafe++",
        "ptxas": folder / "ptxas",
        "cicc": folder.parent / "nvvm" / "bin" / "cicc",
    }
    lacking = [name for name, place in parts.items() if not place.is_file()]
    if lacking:
        return f"its toolkit lacks {', '.join(lacking)}"
    return "" if _version(nvcc) else "it does not behave like nvcc"


@cache
def _tools(nvcc: Path) -> Path | None:
    """The folder that nvcc takes its tools from; None if not known. nvcc does not resolve links, and the one on
    ``PATH`` may be a wrapper script.
    """
    for place in (nvcc, Path(os.path.realpath(nvcc))):
        if (place.parent / "nvcc.profile").is_file():
            return place.parent
    answer = _answer(nvcc, "--dryrun", "x.cu").stderr
    here = re.search(r"^#\$ _HERE_=(.+)$", answer, re.MULTILINE)
    return Path(here.group(1)) if here is not None else None


def _nvcc(usable: Candidate, passed_over: tuple[Candidate, ...] = ()) -> Nvcc:
    folder = _tools(usable.path)
    assert folder is not None
    return Nvcc(usable.path, _version(usable.path), folder, usable.origin, passed_over)


@cache
def _version(nvcc: Path) -> str:
    """The version that nvcc reports (``13.0.88``), or an empty string."""
    version = re.search(r"\bV(\d+\.\d+\.\d+)", _answer(nvcc, "--version").stdout)
    return "" if version is None else version.group(1)


def _answer(nvcc: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What nvcc prints; nothing if it does not run. Its option variables are left out: they may hold ours."""
    command = [str(nvcc), *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in FLAG_VARIABLES}
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,  # ours may be closed (ccache does that), and a shell reuses its number
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return subprocess.CompletedProcess(command, 1, "", "")


if __name__ == "__main__":
    try:
        print(find_nvcc().path)
    except CccError as problem:
        sys.exit(str(problem))
