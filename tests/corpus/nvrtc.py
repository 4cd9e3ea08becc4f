"""What NVRTC, the compiler in the driver's manner, makes of those sources in ``cuda/`` that need no host header."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from tests.corpus.cases import SOURCES

NAMES = (
    "algorithms", "arithmetic", "assembly", "control", "functions_math", "memory", "small_floats", "specific",
    "tensor", "textures", "warp", "atomics",
)  # fmt: skip
"""The sources that NVRTC takes."""

_OPTIONS = {
    "O3": (),
    "lineinfo": ("--generate-line-info",),
    "G": ("--device-debug",),
    "rdc": ("--relocatable-device-code=true", "--use_fast_math"),
}
_TARGETS = ("75", "80", "89", "90a", "100a", "120")


def version() -> str | None:
    """NVRTC's version, or None where the package is missing."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        return None
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor}"


def texts(include: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each file; ``include`` is the folder of the toolkit's headers."""
    for at, name in enumerate(NAMES):
        for step, (option, words) in enumerate(_OPTIONS.items()):
            arch = _TARGETS[(at + step) % len(_TARGETS)]
            yield f"{name}.sm_{arch}.{option}.ptx", _compiled(name, arch, words, include)


def _compiled(name: str, arch: str, words: tuple[str, ...], include: Path) -> str:
    from cuda.bindings import nvrtc

    def checked(result: tuple[object, ...]) -> object:
        if result[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"{name}: {result[0]}")
        return result[1] if len(result) == 2 else None

    folders = [f"--include-path={path}" for path in (include, include / "cccl")]
    options = [
        f"--gpu-architecture=compute_{arch}",
        "--std=c++17",
        "--device-int128",
        "--disable-warnings",
        *folders,
        *words,
    ]
    text = (SOURCES / f"{name}.cu").read_bytes()
    program = checked(nvrtc.nvrtcCreateProgram(text, f"{name}.cu".encode(), 0, [], []))
    done = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if done[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(f"{name} for {arch}: {log.decode()}")
    ptx = b" " * checked(nvrtc.nvrtcGetPTXSize(program))
    checked(nvrtc.nvrtcGetPTX(program, ptx))
    return ptx.rstrip(b"\0").decode()
