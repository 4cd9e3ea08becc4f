"""The layout of one function's counters: its units and edges, with the places in the source that they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cccopt.passes.counting.choice import Choice, loose
from cccopt.passes.counting.flow import Flow, branches
from cccopt.passes.counting.layout import UNKNOWN, Access, Branch, Edge, FunctionLayout, LoopUnits, Spot, Unit
from cccopt.passes.counting.memory import Memory
from cccopt.passes.counting.watched import Watched
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.lines import source_lines

NO_FILE = "<ptx>"
"""The file of statements without a source line: their lines are those of the PTX."""

_Place = tuple[int, int, int]


class Files:
    """The files that places name, numbered as they occur."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._numbers: dict[str, int] = {}

    def number(self, file: str) -> int:
        """The number of a file."""
        return self._numbers.setdefault(file, len(self._numbers))

    @property
    def names(self) -> tuple[str, ...]:
        """The files by their numbers."""
        return tuple(self._numbers)


def function_layout(
    files: Files,
    module: Module,
    function: Function,
    flow: Flow,
    choice: Choice,
    watched: Watched,
    memory: Memory,
) -> FunctionLayout:
    """What the counters of ``function`` count."""
    places = _places(files, module, function)
    units = tuple(
        Unit(unit.start, unit.stop, choice.unit_warps[i], choice.unit_lanes[i], _spots(flow, i, places))
        for i, unit in enumerate(flow.units)
    )
    edges = tuple(
        Edge(edge.source, edge.target, choice.edge_warps[i], choice.edge_lanes[i], loose(flow, edge))
        for i, edge in enumerate(flow.edges)
    )
    return FunctionLayout(
        function.name,
        function.kind == "entry",
        "",
        memory.first,
        memory.counters,
        memory.name is not None,
        units,
        edges,
        tuple(_branches(flow, watched, places)),
        tuple(_loops(flow, places)),
        tuple(Access(Spot(*places[i]), *counters) for i, counters in watched.accesses.items()),
    )


def _places(files: Files, module: Module, function: Function) -> list[_Place]:
    """The place of each statement; those before the first known place get that one."""
    lines = source_lines(module, function)
    first = next((line for line in lines if line is not None), None)
    found: list[_Place] = []
    for line, statement in zip(lines, function.body or (), strict=True):
        line = first if line is None else line
        if line is not None:
            found.append((files.number(line.file), line.line, line.column))
        else:
            at = statement.position
            found.append((files.number(NO_FILE), 0 if at is None else at.line, 0))
    return found


def _spots(flow: Flow, unit: int, places: list[_Place]) -> tuple[Spot, ...]:
    here = flow.units[unit]
    counts = Counter(places[i] for i in range(here.start, here.stop) if isinstance(flow.body[i], Instruction))
    return tuple(Spot(*place, count) for place, count in counts.items())


def _branches(flow: Flow, watched: Watched, places: list[_Place]) -> Iterator[Branch]:
    for unit, taken, other in branches(flow):
        spot = Spot(*places[flow.units[unit].stop - 1])
        yield Branch(spot, unit, taken, other, watched.branches.get(unit, UNKNOWN))


def _loops(flow: Flow, places: list[_Place]) -> Iterator[LoopUnits]:
    for loop in sorted(flow.loops, key=lambda loop: loop.header):
        header = flow.first[loop.header]
        back = [i for i in flow.into[header] if flow.is_in(flow.edges[i], loop.blocks)]
        entries = [i for i in flow.into[header] if i not in back]
        latch = flow.cfg.blocks[loop.latches[-1]]
        # Compilers give the branch back to the header the loop's own line.
        run = [i for i in latch.statements() if isinstance(flow.body[i], Instruction)]
        yield LoopUnits(Spot(*places[run[-1] if run else latch.start]), header, tuple(entries), tuple(back))
