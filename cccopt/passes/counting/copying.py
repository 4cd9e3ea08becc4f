"""The counted copy of one function: its statements, with code that counts between them.

    L:                                  L:
                                            activemask.b32 %m;               the unit's counters
                                            and.b32 %t, %m, %lower;
                                            setp.eq.u32 %leader, %t, 0;
                                            @%leader add.u32 %w, %w, 1;      executions, here in a register
                                            add.u32 %n, %n, 1;               lanes, likewise
        ...                                 ...
        @%p bra L;                          @%p add.u32 %e, %e, 1;           an edge's lanes
                                            @%p bra L;
                                            ...                              all that the thread has counted
        ret;                                ret;

In loops, no branch skips counting code, so lanes diverge and reconverge as they did. The work that threads do last adds
code where the program had only an exit. Lanes that jump to a bare exit leave at once; at a block of code, ptxas may
make them wait for the others, which may wait for them at a barrier or a shuffle. So if threads may wait for each other,
a bare exit stays bare, and lanes do their last work before the branch that leads there. In a loop, and before a guarded
`ret` in one, they call a function for it: its atomic operations on shared memory must not be in the loop.

        @%p bra EXIT;                       @%p activemask.b32 %m; ...
                                            @!%p bra STAY;
                                            ...
                                        STAY:
                                            @%p bra EXIT;
    EXIT: ret;                          EXIT: ret;

If not all warps are counted (`sampling`), the kernel's own code follows the counted code, for the other warps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from cccopt.ccc.function.code import negated, number, op
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.block import begin, begin_warp, leaving
from cccopt.passes.counting.block_loops import lanes_together
from cccopt.passes.counting.bounds import REGISTERS, THREADS, is_bounded
from cccopt.passes.counting.choice import Choice, Counters, Place
from cccopt.passes.counting.flow import LEAVING, Flow, FlowEdge, Way
from cccopt.passes.counting.layout import OUTSIDE, UNKNOWN
from cccopt.passes.counting.memory import Adder, Memory, initial, lanes_from
from cccopt.passes.counting.second_copy import once_more, relabelled
from cccopt.passes.counting.watched import Watched, access_code, histogram_code
from cccopt.ptx.ir import (
    Body,
    Directive,
    Function,
    Group,
    Guard,
    Instruction,
    Label,
    Marker,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import Control, facts, register_types


@dataclass(frozen=True)
class Copying:
    """What is known about a function to be copied.

    ``callees`` are the counted names of the functions that have one. Threads that leave the function from a loop in
    which others stay call the function ``leave``. With ``apart``, bare exits stay bare; with ``redux``, the target has
    reductions over a warp; with ``relabel``, labels get new names. ``limit`` is how many registers there may be, 0 for
    any number. The variables ``moved`` belong to the module.
    """

    function: Function
    name: str
    flow: Flow
    choice: Choice
    watched: Watched
    memory: Memory
    callees: Mapping[str, str]
    leave: str
    apart: bool = False
    redux: bool = True
    limit: int | None = None
    relabel: bool = False
    moved: frozenset[str] = frozenset()


def counted_copy(what: Copying) -> Function:
    """The function under its new name, with counters."""
    return _Copier(what).function()


@dataclass
class _Copier:
    what: Copying
    names: Names = field(init=False)
    adder: Adder = field(init=False)
    registers: list[Register] = field(init=False)
    plain: str = field(init=False)
    entered: Register = field(init=False)
    """A bit for each loop nest that the thread has entered."""
    masks: dict[int, Register] = field(init=False)
    """The lanes with which a unit began, for the units whose branches are counted by them."""

    def __post_init__(self) -> None:
        function, memory = self.what.function, self.what.memory
        self.names = Names(self.body, register_types(function))
        base = self.names.register("b64") if memory.name is None else None
        weight = self.names.register("b32") if memory.every > 1 else None
        self.adder = Adder(memory, self.names, base, self.names.register("b32"), weight)
        self.plain = self.names.label("plain")
        self.entered = self.names.register("b32")
        self.masks = {s.source: self.names.register("b32") for s in self.what.choice.splits}
        self.registers = [self.names.register("b32") for _ in range(self.what.choice.registers)]

    @property
    def body(self) -> Body:
        return self.what.function.body or ()

    @property
    def kernel(self) -> bool:
        return self.what.function.kind == "entry"

    @property
    def samples(self) -> bool:
        """Whether warps outside the sample come here."""
        return self.kernel and self.what.memory.every > 1

    def function(self) -> Function:
        before = self._before()
        out: list[Statement] = []
        for index, statement in enumerate(self.body):
            out += before.get(index, ())
            out += self._statement(statement, self.what.flow.cfg.block_of(index))
        out += before.get(len(self.body), ())
        out += self._end()
        begin = list(self._begin())
        code = (*self.names.declarations(), *begin, *out)
        if self.what.relabel:
            code = relabelled(code)
        if self.samples:
            code = (*code, Label(self.plain), *once_more(self.body, self.what.moved))
        function = self.what.function
        return replace(
            function,
            name=self.what.name,
            body=code,
            linkage=self._linkage(),
            directives=(*self._directives(), *self._limit()),
        )

    def _directives(self) -> Iterator[Directive]:
        for directive in self.what.function.directives:
            if not self.what.limit or directive.name != ".maxnreg":
                yield directive

    def _limit(self) -> Iterator[Directive]:
        """The register limit; for a kernel without one, a limit that allows launches of blocks of all sizes."""
        # The linker applies a kernel's limit to everything that it may call.
        if self.what.limit == 0:
            return
        if self.kernel and self.what.limit is not None:
            yield Directive(".maxnreg", (str(self.what.limit),))
        elif self.kernel and not is_bounded(self.what.function):
            yield Directive(".maxnreg", (str(REGISTERS // THREADS),))

    def _before(self) -> dict[int, list[Statement]]:
        """The code that counts, by the statement that it precedes."""
        flow, places = self.what.flow, self.what.choice.places
        found: dict[int, list[Statement]] = {}
        for index, statement in lanes_together(flow):
            found.setdefault(index, []).append(statement)
        for place, counters in places.items():
            if place.unit != OUTSIDE and place.unit not in self.bare:
                found.setdefault(flow.head(place.unit), []).extend(
                    self._count(counters, None, unit=place.unit)
                )
        for edge, code in self._entries():
            if edge.source != OUTSIDE:
                found.setdefault(flow.end(edge.source), []).extend(code)
        for split in self.what.choice.splits:
            if split.entry != UNKNOWN and (source := flow.edges[split.entry].source) != OUTSIDE:
                found.setdefault(flow.end(source), []).append(initial(self.masks[split.source]))
        for unit, first in self.what.watched.branches.items():
            (jumps,) = (flow.edges[i].guard for i in flow.out[unit] if flow.edges[i].way is Way.TAKEN)
            assert jumps is not None
            found.setdefault(flow.end(unit), []).extend(histogram_code(self.adder, first, jumps))
        for place, counters in places.items():
            if place.edge != OUTSIDE:
                edge = flow.edges[place.edge]
                code = self._count(counters, _going(edge))
                found.setdefault(flow.end(edge.source), []).extend(code)
        for index, pair in self.what.watched.accesses.items():
            access = self.body[index]
            assert isinstance(access, Instruction)
            found.setdefault(index, []).extend(access_code(self.adder, access, pair))
        for unit in sorted(self.bare):
            for edge in (flow.edges[i] for i in flow.into[unit]):
                going = _going(edge)
                counters = places.get(Place(unit), Counters())
                here = found.setdefault(flow.end(edge.source), [])
                in_loop = edge.source != OUTSIDE and flow.units[edge.source].depth > 0
                here += [*self._count(counters, going, in_loop=in_loop), *self.last(going, in_loop)]
        return found

    def _entries(self) -> Iterator[tuple[FlowEdge, Iterator[Statement]]]:
        """The edges by which lanes enter loop nests, with what they do there first."""
        memory = self.what.memory
        for bit, nest in enumerate(memory.nests):
            for edge in (self.what.flow.edges[index] for index in nest.entries):
                yield edge, memory.come(bit, self.entered, self.names.register("b32"), _going(edge))

    def _linkage(self) -> tuple[str, ...]:
        return self.what.function.linkage if self.kernel else ()

    def _begin(self) -> Iterator[Statement]:
        """What the function does first."""
        yield op("mov.u32", self.adder.lower, SpecialRegister("%lanemask_lt"))
        if self.adder.base is not None:
            yield from self.adder.copy_address(Symbol(self.plain) if self.samples else None)
        memory = self.what.memory
        yield from map(initial, self.registers)
        for split in self.what.choice.splits:
            if split.entry != UNKNOWN and self.what.flow.edges[split.entry].source == OUTSIDE:
                yield initial(self.masks[split.source])
        if memory.private:
            yield memory.local_variable()
        if memory.private:
            yield from memory.cleared(memory.registers, memory.common, self.names.register("b32"), None)
            yield initial(self.entered)
        for edge, code in self._entries():
            if edge.source == OUTSIDE:
                yield from code
        if self.samples:
            assert self.adder.base is not None
            assert self.adder.weight is not None
            yield from begin_warp(memory, self.names, self.adder.base, self.adder.weight)
        elif self.kernel:
            yield from begin(memory, self.names)
        yield from self._count(self.what.choice.places.get(Place(), Counters()), None)

    # --- counting ----------------------------------------------------------------------------------------------

    def _private(self, counter: int) -> bool:
        """Whether a counter is each thread's own."""
        return 0 <= counter - self.what.memory.own < self.what.memory.private

    def _add_one(self, counter: int, who: Guard | None) -> Iterator[Statement]:
        index = counter - self.what.memory.own
        register = self.registers[index] if index < len(self.registers) else None
        return self.adder.add_one(counter, register, who)

    def _count(
        self, counters: Counters, among: Guard | None, *, unit: int = OUTSIDE, in_loop: bool = False
    ) -> Iterator[Statement]:
        """Counts the lanes here for which ``among`` is true, at the head of ``unit`` if there is one; with ``in_loop``,
        the code is in a loop, and counters that are not private are global.
        """
        private, paired = self._private(counters.lanes), self._are_paired(counters)
        if paired:
            pair, load = self.adder.loaded_pair(counters.warps)
            yield load
            yield op("add.u32", pair.elements[1], pair.elements[1], 1, guard=among)
        elif private:
            yield from self._add_one(counters.lanes, among)
        if counters.warps == UNKNOWN and (private or counters.lanes == UNKNOWN):
            return
        mask, leader = self.names.register("b32"), self.names.register("pred")
        yield from _active(mask, among)
        yield from self.adder.leader(mask, leader, among)
        if paired:
            yield op("add.u32", pair.elements[0], pair.elements[0], 1, guard=Guard(leader))
            yield op("st.local.v2.u32", self.what.memory.in_local(counters.warps), pair)
        elif counters.warps != UNKNOWN:
            yield from self._add_execution(counters.warps, Guard(leader), in_loop)
        yield from self._count_splits(unit, mask, leader, in_loop)
        if counters.lanes != UNKNOWN and not private:
            active = self.names.register("b32")
            yield from lanes_from(self.names, mask, self.adder.lower, active)
            yield from self.adder.add(counters.lanes, active, Guard(leader), in_loop=in_loop)

    def _are_paired(self, counters: Counters) -> bool:
        """Whether the two counters of a place are side by side in the thread's local memory, aligned like a vector."""
        first = counters.warps - self.what.memory.own
        return (
            counters.lanes == counters.warps + 1
            and first >= len(self.registers)
            and first % 2 == 0
            and self._private(counters.lanes)
        )

    def _add_execution(self, counter: int, leader: Guard, in_loop: bool) -> Iterator[Statement]:
        if self._private(counter):
            yield from self._add_one(counter, leader)
        else:
            yield from self.adder.add(counter, number(1), leader, in_loop=in_loop)

    def _count_splits(
        self, unit: int, mask: Register, leader: Register, in_loop: bool
    ) -> Iterator[Statement]:
        """Counts an execution of the branch that led the lanes of ``mask`` to the head of ``unit`` if others went the
        other way, and keeps the mask if a branch at the unit's end is counted with it.
        """
        for split in self.what.choice.splits:
            if split.target == unit != OUTSIDE:
                parted = self.names.register("pred")
                # The lanes here are a subset of those at the branch; for lanes from outside the loop, that mask is 0.
                yield op("setp.gt.and.u32", parted, self.masks[split.source], mask, leader)
                yield from self._add_execution(split.counter, Guard(parted), in_loop)
        if unit in self.masks:
            yield op("mov.u32", self.masks[unit], mask)

    def last(self, among: Guard | None, in_loop: bool) -> list[Statement]:
        """What threads for which ``among`` is true do before they leave the function."""
        memory = self.what.memory
        code: list[Statement] = [
            op("st.local.u32", memory.in_local(memory.own + index), register, guard=among)
            for index, register in enumerate(self.registers)
        ]
        if among is None or not in_loop:
            code += leaving(memory, self.names, Symbol(memory.local), self.entered, self.what.redux)
            if among is None or not code:
                return code
            stay = self.names.label("stay")
            return [op("bra", Symbol(stay), guard=negated(among)), *code, Label(stay)]
        if not memory.private:
            return [] if memory.name is None else [op("call", Symbol(self.what.leave), guard=among)]
        own = self.names.register("b64")
        call = op("call", Symbol(self.what.leave), Group((own, self.entered)), guard=among)
        return [*code, op("mov.u64", own, Symbol(memory.local)), call]

    # --- the program's own statements --------------------------------------------------------------------------

    @cached_property
    def bare(self) -> frozenset[int]:
        """The units that are bare exits and have to stay so."""
        flow = self.what.flow
        if not self.what.apart:
            return frozenset()
        return frozenset(unit for block, unit in flow.first.items() if self._is_bare(block, unit))

    def _is_bare(self, block: int, unit: int) -> bool:
        flow = self.what.flow
        if flow.last(block) != unit or not flow.only_leaves(unit):
            return False
        return not any(flow.edges[i].way in (Way.ENTRY, Way.INDEXED) for i in flow.into[unit])

    def _statement(self, statement: Statement, block: int) -> list[Statement]:
        """A statement of the body, with the code added before it."""
        if isinstance(statement, Marker) or (
            isinstance(statement, Variable) and statement.name in self.what.moved
        ):
            return []
        if not isinstance(statement, Instruction):
            return [statement]
        flow, control = self.what.flow, facts(statement).control
        if control is Control.CALL:
            return [_calling(statement, self.what.callees)]
        unit = flow.first.get(block)
        if control in LEAVING and unit is not None and unit not in self.bare:
            return [*self.last(statement.guard, flow.units[unit].depth > 0), statement]
        return [statement]

    def _end(self) -> list[Statement]:
        """The code after a body if control reaches its end."""
        flow = self.what.flow
        last = len(flow.cfg.blocks) - 1
        run = [s for s in self.body if isinstance(s, Instruction)]
        leaves = bool(run) and run[-1].guard is None and facts(run[-1]).control in (*LEAVING, Control.TRAP)
        if leaves or last not in flow.cfg.reachable:
            return []
        edges = [flow.edges[i] for i in flow.out[flow.last(last)]]
        if all(e.target != OUTSIDE or e.way is Way.LOST for e in edges):
            return []
        return [*self.last(None, in_loop=False), Instruction("ret")]


def _active(mask: Register, among: Guard | None) -> Iterator[Statement]:
    """The mask of the active lanes for which ``among`` is true."""
    if among is not None:
        yield initial(mask)
    yield op("activemask.b32", mask, guard=among)


def _going(edge: FlowEdge) -> Guard | None:
    """The condition on which lanes take an edge, None if all do."""
    return negated(edge.guard) if edge.guard is not None and edge.way is Way.OTHER else edge.guard


def _calling(call: Instruction, callees: Mapping[str, str]) -> Instruction:
    """The call, changed to call the counted copy if there is one."""
    for index, operand in enumerate(call.operands):
        if isinstance(operand, Symbol):
            if operand.name not in callees:
                break
            operands = list(call.operands)
            operands[index] = Symbol(callees[operand.name])
            return replace(call, operands=tuple(operands))
    return call
