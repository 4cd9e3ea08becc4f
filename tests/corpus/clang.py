"""What clang's NVPTX back end makes of the sources in ``clang/``: CUDA without its headers, OpenCL C, plain C."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parent / "clang"
TARGETS = ("sm_75", "sm_80", "sm_86")
_DEVICE = ("-nocudainc", "-nocudalib", "--cuda-device-only", "-Wno-unknown-cuda-version")
_COMMON = ("-Xclang", "-target-feature", "-Xclang", "+ptx75", "-fdebug-compilation-dir=.", "-S")
_OPTIONS = {"O0": ("-O0",), "O2": ("-O2",), "fast": ("-O3", "-ffast-math"), "g": ("-O2", "-gdwarf-2")}

# clang 14 stops with an internal error at two of them.
_CRASHES = frozenset({("kernels.cl", "O0"), ("plain.c", "g")})


def version() -> str | None:
    """What ``clang --version`` says, or None where there is no clang with the back end."""
    clang = shutil.which("clang")
    if clang is None:
        return None
    listed = subprocess.run([clang, "-print-targets"], capture_output=True, text=True, check=False).stdout
    said = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0] if "nvptx64" in listed else None


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    for source in ("kernels.cu", "kernels.cl", "plain.c"):
        for arch in TARGETS:
            for option, words in _OPTIONS.items():
                if (source, option) not in _CRASHES:
                    yield f"{source.replace('.', '_')}.{arch}.{option}.ptx", _compiled(source, arch, words)


def _compiled(source: str, arch: str, words: tuple[str, ...]) -> str:
    language = {
        ".cu": ("-x", "cuda", *_DEVICE, f"--cuda-gpu-arch={arch}"),
        ".cl": ("-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header"),
        ".c": ("-x", "c"),
    }[Path(source).suffix]
    target = () if source.endswith(".cu") else ("-target", "nvptx64-nvidia-cuda", f"-march={arch}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "a.ptx")
        command = ["clang", *target, *language, *words, *_COMMON, source, "-o", str(out)]
        subprocess.run(command, cwd=SOURCES, check=True, capture_output=True)
        return out.read_text()
