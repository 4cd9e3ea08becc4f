"""Instrumented modules on the emulator: the counted copy of a kernel beside the plain one, which counts everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cccopt.emulator import Profile, Program
from cccopt.passes.counting.layout import Layout, of_bytes
from cccopt.passes.instrument import COUNTED, DETAILED, HEAD, Counting, instrumented
from cccopt.profiling.counts import FunctionCounts, counts_of, issues_of
from cccopt.ptx.ir import Instruction, Module
from cccopt.ptx.verifier import verify

HOW: Mapping[str, Counting] = {
    "as it is": Counting(),
    "all in local memory": Counting(registers=0, local=1 << 16),
    "one copy": Counting(registers=3, copies=1),
    "many registers": Counting(registers=64),
    "more counters than a thread can have": Counting(registers=1, local=2),
    "a sample": DETAILED,  # of a small launch it holds all warps
}
"""Ways to count that put counters in different places."""

Launch = Callable[[Program, str], Profile]
"""Launches the kernel of a name on a program."""


@dataclass(frozen=True)
class Both:
    """A launch of the plain kernel, and what the counted one has counted."""

    module: Module
    layout: Layout
    plain: Profile
    counted: Profile
    counts: tuple[FunctionCounts, ...]
    raw: bytes


def run_both(module: Module, kernel: str, launch: Launch, how: Counting | None = None) -> Both:
    """Launches the plain and the counted kernel."""
    new, layout = instrumented(module, how)
    verify(new)
    plain = launch(Program(module), kernel)
    program = Program(new)
    counted = launch(program, kernel + COUNTED)
    assert as_read(program) == layout
    raw = counts_in(program, layout)
    return Both(module, layout, plain, counted, counts_of(layout, raw), raw)


def memory_at(program: Program, address: int, size: int) -> bytes:
    """Global memory of a program."""
    found = program._memory.at(address)
    start = address - found.base
    return found.data[start : start + size].tobytes()


def head_of(program: Program) -> tuple[int, ...]:
    """The four numbers by which a host finds counts and layout."""
    (name,) = (name for name in program._variables.addresses if HEAD in name)
    data = memory_at(program, program._variables.addresses[name].address, 32)
    return tuple(int.from_bytes(data[i : i + 8], "little") for i in range(0, 32, 8))


def counts_in(program: Program, layout: Layout) -> bytes:
    """The raw counts."""
    address, size, _, _ = head_of(program)
    assert size == layout.size
    return memory_at(program, address, size)


def as_read(program: Program) -> Layout:
    """The layout that the module carries."""
    _, _, address, size = head_of(program)
    return of_bytes(memory_at(program, address, size))


def differing(both: Both) -> list[Any]:
    """The instructions whose counts are not the emulator's: function, statement, those of the emulator and ours."""
    bodies = {f.name: f.body or () for f in both.module.functions() if f.body is not None}
    want = {key: (count.warps, count.lanes) for key, count in both.plain.issues.items()}
    have = {
        key: (count.warps, count.lanes)
        for key, count in issues_of(both.counts).items()
        if isinstance(bodies[key[0]][key[1]], Instruction)
    }
    return [
        (*k, want.get(k), have.get(k))
        for k in sorted(want.keys() | have.keys())
        if want.get(k) != have.get(k)
    ]
