"""Counts by source line as the machine code has them: the PTX's counts, weighted by the plain cubin's instructions.

A source line, such as a `for`, has instructions in several basic blocks; how many are in each decides its active lanes.
`ptxas` turns one PTX instruction into none, one or twenty, so a line's warp instructions differ between the PTX and the
machine code. The cubin says which PTX instruction each machine instruction comes from (`machine_code`), and the layout
of the counters says which unit that one is in. So each machine instruction gets the executions of a unit, and a line
the sum over its machine instructions.

Which unit? `ptxas` moves code: a hoisted instruction still names its PTX instruction. But all instructions of a *run*
are issued equally often. A run begins at a branch target or after control flow, and extends to the next such place. Its
unit is that of the branch it ends with, which does not move; without one, that of most of its instructions.

    @P0 ST [R2], R5            if-converted: issued by the run's warps and lanes, on in the lanes of its own unit

Predicated instructions that come from a unit other than the run's were branched around in the PTX. A warp issues them
with the run, and their lanes *on* are those of the unit that they come from. Other predicated instructions are assumed
to be on in all active lanes.

It is not known how often a loop that `ptxas` unrolled runs each of its copies. Each gets the executions of the whole
loop, so the loop weighs more. That changes only the efficiencies of lines that are both inside and outside the loop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cccopt.analysis.cfg import build
from cccopt.passes.counting.layout import Unit
from cccopt.profiling.counts import FunctionCounts, WarpsAndLanes
from cccopt.profiling.machine_code import MachineCode, MachineInstruction
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.parser import parse


@dataclass(frozen=True, slots=True)
class MachineLine:
    """The machine instructions of a line: ``warps`` issued them, ``lanes`` were active in them, and ``on`` of these
    were not switched off by a predicate. ``instructions`` is their number; ``predicated`` of them are under a
    predicate and are not control flow.
    """

    file: str
    line: int
    warps: int
    lanes: int
    on: int
    predicated: int
    instructions: int


Origins = Mapping[int, tuple[str, int]]
"""Maps a line of a cubin's PTX to the function and the index of the first instruction there. Indices count only
reachable instructions: no unit has the others.
"""


def ptx_origins(code: MachineCode) -> tuple[Origins, Mapping[str, int]]:
    """Where the PTX of a cubin has its instructions, and how many reachable ones each function has.

    Raises CccError if the PTX cannot be read.
    """
    found: dict[int, tuple[str, int]] = {}
    sizes: dict[str, int] = {}
    for item in parse(code.ptx).items:
        if isinstance(item, Function) and item.body is not None:
            graph = build(item.body)
            reached = [
                item.body[i] for block in sorted(graph.reachable) for i in graph.blocks[block].statements()
            ]
            run = [statement for statement in reached if isinstance(statement, Instruction)]
            sizes[item.name] = len(run)
            for index, instruction in enumerate(run):
                if instruction.position is not None:
                    found.setdefault(instruction.position.line, (item.name, index))
    return found, sizes


def machine_lines(
    counts: Mapping[str, FunctionCounts],
    instructions: Sequence[MachineInstruction],
    origins: Origins,
    sizes: Mapping[str, int],
) -> tuple[MachineLine, ...]:
    """The lines of a function whose machine code is ``instructions``. ``counts`` are those of all functions by name:
    `ptxas` inlines, so some instructions may come from functions that it calls, whose counts are of all callers.

    ``origins`` and ``sizes`` are from `ptx_origins`. Raises ValueError if the machine code was not made from the PTX
    that was counted.
    """
    units: dict[tuple[str, int], _Unit] = {}
    for name in {origins[i.ptx][0] for i in instructions if i.ptx in origins} & counts.keys():
        here = _unit_of_each(counts[name].layout.units)
        if len(here) != sizes[name]:
            raise ValueError(f"`{name}` has {sizes[name]} instructions in the cubin's PTX, not {len(here)}")
        units |= {(name, index): (name, unit) for index, unit in enumerate(here)}
    of = [units.get(origins[i.ptx]) if i.ptx in origins else None for i in instructions]
    totals: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0] * 5)
    for start, stop in _runs(instructions):
        unit = _unit(instructions[start:stop], of[start:stop])
        ran = _executions(counts, unit)
        for instruction, own in zip(instructions[start:stop], of[start:stop], strict=True):
            predicated = instruction.guarded and not instruction.control
            on = ran.lanes
            if predicated and own is not None and own != unit:
                on = min(ran.lanes, _executions(counts, own).lanes)
            total = totals[instruction.file, instruction.line]
            for k, add in enumerate((ran.warps, ran.lanes, on, int(predicated), 1)):
                total[k] += add
    return tuple(MachineLine(*place, *total) for place, total in sorted(totals.items()))


_Unit = tuple[str, int]


def _executions(counts: Mapping[str, FunctionCounts], unit: _Unit | None) -> WarpsAndLanes:
    return WarpsAndLanes() if unit is None else counts[unit[0]].units[unit[1]]


def _unit_of_each(units: Sequence[Unit]) -> list[int]:
    """The unit of each instruction of the PTX."""
    return [i for i, unit in enumerate(units) for _ in range(sum(spot.instructions for spot in unit.spots))]


def _runs(instructions: Sequence[MachineInstruction]) -> Iterator[tuple[int, int]]:
    start = 0
    for i, instruction in enumerate(instructions):
        if instruction.reached and i > start:
            yield start, i
            start = i
        if instruction.control:
            yield start, i + 1
            start = i + 1
    if start < len(instructions):
        yield start, len(instructions)


def _unit(run: Sequence[MachineInstruction], of: Sequence[_Unit | None]) -> _Unit | None:
    """The unit whose executions a run gets."""
    if run[-1].control and run[-1].guarded and of[-1] is not None:
        return of[-1]
    votes = Counter(u for i, u in zip(run, of, strict=True) if u is not None and not i.guarded)
    votes = votes or Counter(u for u in of if u is not None)
    return votes.most_common(1)[0][0] if votes else None
