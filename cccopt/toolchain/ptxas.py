"""What ptxas says a kernel needs: registers, spills, shared memory, stack.

The report is the text of ``ptxas -v`` (seen from CUDA 11.8 to 13.5); a part that a later version words
differently is an error here, never a zero.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cccopt.diagnostic import CccError, error
from cccopt.files import write_text
from cccopt.toolchain.discovery import Nvcc, find_nvcc


@dataclass(frozen=True, slots=True)
class Resources:
    """Needs of one kernel: ``registers`` per thread; spills, ``shared`` (static, per block) and ``stack`` in bytes."""

    registers: int
    spill_stores: int
    spill_loads: int
    shared: int
    stack: int


@dataclass(frozen=True, slots=True)
class Assembled:
    """What ptxas makes of a PTX text: machine code, and what each kernel needs, by PTX name."""

    cubin: bytes
    resources: dict[str, Resources]


def resources(ptx: str, arch: str, nvcc: Nvcc | None = None) -> dict[str, Resources]:
    """Compile ``ptx`` for ``arch`` (``sm_90``) and report each kernel by its PTX name.

    Raises CccError: CCC085 with ptxas' own messages if it refuses the PTX, CCC080 without a toolkit.
    """
    return assemble(ptx, arch, nvcc).resources


def assemble(ptx: str, arch: str, nvcc: Nvcc | None = None) -> Assembled:
    """Compile ``ptx`` for ``arch`` (``sm_90``) with ptxas' own defaults, which are nvcc's. Raises like `resources`."""
    real = nvcc if nvcc is not None else find_nvcc()
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        source, output = Path(folder) / "in.ptx", Path(folder) / "out.cubin"
        write_text(source, ptx)
        done = subprocess.run(
            [real.tool("ptxas"), "-v", f"-arch={arch}", source, "-o", output],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        cubin = output.read_bytes() if done.returncode == 0 else b""
    if done.returncode != 0:
        said = done.stdout.replace(str(source), "<ptx>").strip()
        raise CccError(error("CCC085", f"ptxas rejects this PTX for {arch}", why=said))
    return Assembled(cubin, parse_report(done.stdout))


def parse_report(text: str) -> dict[str, Resources]:
    """The kernels in the text of ``ptxas -v``; device functions have properties but no registers of their own."""
    found = {}
    for part in re.split(r"^ptxas info +: Compiling entry function ", text, flags=re.MULTILINE)[1:]:
        kernel = part.split("'", 2)[1]
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        used = re.search(r"Used (\d+) registers.*", part)
        if frame is None or used is None:
            raise CccError(error("CCC085", f"cannot read what ptxas says of `{kernel}`", why=part.strip()))
        shared = re.search(r"(\d+)(?:\+\d+)? bytes smem", used.group())
        cumulative = re.search(r"(\d+) bytes cumulative stack size", used.group())
        found[kernel] = Resources(
            registers=int(used.group(1)),
            spill_stores=int(frame.group(2)),
            spill_loads=int(frame.group(3)),
            shared=int(shared.group(1)) if shared is not None else 0,
            stack=int(cumulative.group(1)) if cumulative is not None else int(frame.group(1)),
        )
    return found
