"""Many kernels to one module, and to machine code: ptxas starts once for all of them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cccopt.ptx.ir import Function, Module, Statement, Variable
from cccopt.toolchain.discovery import find_nvcc


class AssemblyError(Exception):
    """ptxas does not take a text; the message is its own."""


def merged(modules: Sequence[Module]) -> Module:
    """One module of all their functions and variables, each name once."""
    items: dict[object, Statement | Function] = {}
    for module in modules:
        for item in module.items:
            declared = isinstance(item, Function) and item.body is None
            key = (item.name, declared) if isinstance(item, Function | Variable) else repr(item)
            items.setdefault(key, item)  # type: ignore[arg-type]
    return Module(tuple(items.values()))  # type: ignore[arg-type]


def cubin(ptx: str, arch: str, *options: str) -> bytes:
    """Machine code of a PTX text. Raises AssemblyError."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.ptx", Path(folder) / "out.cubin"
        source.write_text(ptx)
        command = [str(find_nvcc().bin / "ptxas"), f"-arch={arch}", *options, str(source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssemblyError(done.stderr.strip() or f"ptxas ended with {done.returncode}")
        return out.read_bytes()
