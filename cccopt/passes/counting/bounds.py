"""How many registers a counted copy of a kernel may have, and thus how many of its counters each memory holds.

A copy has as many resident threads as its registers allow, and the local memory of all of them shares a cache of some
200 KB. At 64 registers for each of 1024 threads, that is room for some 48 counters per thread and for what ptxas
spills.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from cccopt.ptx.ir import Function, Module

REGISTERS, THREADS = 1 << 16, 1 << 10
"""The registers of a multiprocessor, and the most threads of a block."""

_OURS, _MOST, _STEP = 32, 128, 8
_FEWEST_REGISTERS, _FEWEST_LOCAL = 6, 16
_BOUNDS = (".maxntid", ".reqntid", ".maxnreg", ".minnctapersm")


def is_bounded(kernel: Function) -> bool:
    """Whether directives bound the threads or registers of a kernel."""
    return any(d.name in _BOUNDS for d in kernel.directives)


def registers_of_thread(kernel: Function) -> int:
    """How many registers a thread of the copy may have, at most 128; without bounds, as many as allow blocks of all
    sizes.
    """
    said = {d.name: prod(int(a) for a in d.arguments) for d in kernel.directives if d.name in _BOUNDS}
    threads = said.get(".reqntid", said.get(".maxntid", THREADS))
    found = REGISTERS // (threads * said.get(".minnctapersm", 1))
    return min(found // _STEP * _STEP, said.get(".maxnreg", _MOST), _MOST)


def above_bounds(module: Module, plain: Mapping[str, int]) -> dict[str, int]:
    """The register counts of those ``plain`` kernels without bounds that use more registers than the largest block
    could have. They are launched with smaller blocks, so copies may have as many; with fewer, ptxas would spill.
    """
    return {
        f.name: plain[f.name]
        for f in module.functions()
        if f.kind == "entry"
        and f.body is not None
        and not is_bounded(f)
        and plain.get(f.name, 0) > registers_of_thread(f)
    }


def counters_in_registers(registers: int) -> int:
    """How many counters a thread with ``registers`` has in them, besides what the kernel needs."""
    return max(registers - _OURS, _FEWEST_REGISTERS)


def counters_in_local_memory(registers: int, held: int) -> int:
    """How many more it may have in its local memory if ``held`` are in registers: at least as many as could be in
    registers.
    """
    return max(registers - _OURS, 2 * (registers - _OURS) - held, _FEWEST_LOCAL)
