"""Counts by source line as the machine code has them: the PTX's counts, weighted by the plain cubin's instructions.

A line of the source holds instructions of several blocks, as a `for` does, and how many of each decides its active
lanes. `ptxas` makes of one PTX instruction none, one or twenty, so a line's warp instructions in the PTX and in the
machine code differ. The cubin says of each machine instruction which PTX instruction it comes from (`machine_code`),
and the layout of the counters says which unit this is in. So each machine instruction is given the executions of a
unit, and a line the sum over its machine instructions.

Of which unit? `ptxas` moves code: what was hoisted still names the PTX instruction that it was. But all instructions of
a *run*, from a place that branches lead to or behind control flow up to the next such place, are issued equally often.
The run's unit is that of the branch it ends with, which does not move; without one, that of most of its instructions.

    @P0 ST [R2], R5            if-converted: issued by the run's warps and lanes, on in the lanes of its own unit

Instructions under a predicate that come from another unit than the run's were branched around in the PTX. A warp issues
them with the run, and their lanes *on* are those of the unit they come from. Of other predicated instructions it is
taken that they are on in all active lanes.

What is not known: how often a loop that `ptxas` unrolled runs each of its copies. Each is given the executions of the
whole loop, so the loop weighs more; efficiencies of lines change by that only where they are in and outside of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cccopt.passes.counting.layout import Unit
from cccopt.profiling.counts import FunctionCounts, WarpsAndLanes
from cccopt.profiling.machine_code import MachineCode, MachineInstruction
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.parser import parse


@dataclass(frozen=True, slots=True)
class MachineLine:
    """The machine instructions of a line: ``warps`` issued them, ``lanes`` were active in them, and ``on`` of these
    were not switched off by a predicate. ``predicated`` counts the instructions under one that are no control flow,
    ``instructions`` all.
    """

    file: str
    line: int
    warps: int
    lanes: int
    on: int
    predicated: int
    instructions: int


def ptx_instructions(code: MachineCode) -> Mapping[str, Mapping[int, int]]:
    """For each function the index of the PTX instruction at each line of the cubin's PTX: the first of several.

    Raises CccError where the PTX cannot be read.
    """
    found: dict[str, dict[int, int]] = {}
    for item in parse(code.ptx).items:
        if isinstance(item, Function) and item.body is not None:
            here = found[item.name] = {}
            run = [statement for statement in item.body if isinstance(statement, Instruction)]
            for index, instruction in enumerate(run):
                if instruction.position is not None:
                    here.setdefault(instruction.position.line, index)
            here[0] = len(run)
    return found


def machine_lines(
    counts: FunctionCounts, instructions: Sequence[MachineInstruction], origins: Mapping[int, int]
) -> tuple[MachineLine, ...]:
    """The lines of a function whose PTX was counted and whose machine code is ``instructions``.

    ``origins`` is the function's part of `ptx_instructions`. Raises ValueError where the machine code was made from
    other PTX than was counted.
    """
    units = _unit_of_each(counts.layout.units)
    if origins.get(0) != len(units):
        raise ValueError(f"the cubin's PTX has {origins.get(0, 0)} instructions, not {len(units)}")
    of = [units[origins[i.ptx]] if i.ptx and i.ptx in origins else None for i in instructions]
    totals: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0] * 5)
    for start, stop in _runs(instructions):
        unit = _unit(instructions[start:stop], of[start:stop])
        here = WarpsAndLanes() if unit is None else counts.units[unit]
        for instruction, own in zip(instructions[start:stop], of[start:stop], strict=True):
            predicated = instruction.guarded and not instruction.control
            on = here.lanes
            if predicated and own is not None and own != unit:
                on = min(here.lanes, counts.units[own].lanes)
            total = totals[instruction.file, instruction.line]
            for k, add in enumerate((here.warps, here.lanes, on, int(predicated), 1)):
                total[k] += add
    return tuple(MachineLine(*place, *total) for place, total in sorted(totals.items()))


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


def _unit(run: Sequence[MachineInstruction], of: Sequence[int | None]) -> int | None:
    """The unit whose executions a run has."""
    if run[-1].control and run[-1].guarded and of[-1] is not None:
        return of[-1]
    votes = Counter(u for i, u in zip(run, of, strict=True) if u is not None and not i.guarded)
    votes = votes or Counter(u for u in of if u is not None)
    return votes.most_common(1)[0][0] if votes else None
