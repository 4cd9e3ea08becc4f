"""What Triton and numba-cuda make of our kernels ahead of time, without a GPU.

The kernels' files are run under their bare names, so that no folder of this machine stands in the PTX.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import linecache
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def version(package: str) -> str | None:
    """The version of an installed package, with its name, or None."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def _run(file: str) -> dict[str, Any]:
    text = (HERE / file).read_text(encoding="utf-8")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # for `inspect`
    names: dict[str, Any] = {"__name__": Path(file).stem}
    exec(compile(text, file, "exec"), names)
    return names


def triton_texts() -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    for name, function, types, constants, options, targets in _run("triton_kernels.py")["kernels"]():
        signature = {**types, **dict.fromkeys(constants, "constexpr")}
        values = {(function.arg_names.index(argument),): value for argument, value in constants.items()}
        source = ASTSource(function, signature=signature, constexprs=values)
        for target in targets:
            # Without a version Triton writes the newest that its own ptxas takes.
            settings = {**options, "ptx_version": 90 if target >= 90 else 88}
            kernel = triton.compile(source, target=GPUTarget("cuda", target, 32), options=settings)
            yield f"{name}.sm_{target}.ptx", kernel.asm["ptx"]


def numba_texts() -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    from numba import cuda

    warnings.simplefilter("ignore")
    kernels = _run("numba_kernels.py")["kernels"]
    before = Path.cwd()
    os.chdir("/")  # debug information names the file by where it would lie
    try:
        for name, function, signature, options, targets in kernels():
            for target in targets:
                text, _ = cuda.compile_ptx(function, signature, cc=divmod(target, 10), **options)
                yield f"{name}.sm_{target}.ptx", text
    finally:
        os.chdir(before)


_FILE = re.compile(r'(\.file\s+\d+\s+)"[^"\n]*/([^"/\n]+)"')
_BYTES = re.compile(r"(?:^\s*\.b8[ \t]+\d+(?:[ \t]*,[ \t]*\d+)*[^\n]*\n)+", re.MULTILINE)


def neutral(text: str) -> str:
    """``text`` with the bare names of files; ValueError where a folder of this machine is left in it."""
    text = _FILE.sub(r'\1"\2"', text)
    data = "".join(
        chr(int(n) % 256) for run in _BYTES.findall(text) for n in re.findall(r"\b\d+\b(?=[,\s])", run)
    )
    for folder in (sys.prefix, str(HERE.parent.parent), str(Path.home()), os.environ.get("TMPDIR", "/tmp")):
        if len(folder) > 1 and (folder in text or folder in data):
            raise ValueError(f"`{folder}` stands in the PTX")
    return text
