"""Loads at the head of an iteration are prefetched one iteration early.

    H: mul.wide.u32 %rd6, %r1, 8;              H: (as before)
       add.s64 %rd7, %rd5, %rd6;                  ld.global.nc.f64 %fd1, [%rd7];
       ld.global.nc.f64 %fd1, [%rd7];    ->       ... up to where the iteration branches into paths ...
       ... the paths ...                          add.u32 %r3, %r1, %r2;  setp.lt.u32 %p2, %r3, %r4;
       add.u32 %r1, %r1, %r2;                     (the address of %r3)  @%p2 prefetch.global.L2 [%rd9];
       setp.lt.u32 %p1, %r1, %r4;                 ... the paths ...
       @%p1 bra H;                                add.u32 %r1, %r1, %r2;  setp.lt.u32 %p1, %r1, %r4;  @%p1 bra H;

The votes and barriers of the collected loop keep a load of the next iteration from starting before this one ends. A
prefetch needs no register that waits for it: if lanes are sorted (`cccopt.ccc.codegen.sorting`), there are none to
spare. Other loops are left as they are: the effect there has not been measured.

Loads are prefetched only for an iteration that the lane is certain to run, so that no new address is accessed: the loop
has one exit, at its latch, whose condition is computed from registers at hand.

Safety: EXACT. D. Callahan, K. Kennedy, A. Porterfield, "Software prefetching", ASPLOS 1991; PTX ISA 9.0, 9.7.9.16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from cccopt.analysis import effects
from cccopt.analysis.constancy import CONSTANT_SPECIAL_REGISTERS
from cccopt.ccc.function.code import op
from cccopt.ccc.function.graph import Branch, condition, reachable, targets
from cccopt.ccc.function.names import Names
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.exclusive import FEWEST
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.plan.sinking import is_computation
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.passes.options import Options
from cccopt.passes.preparing import each_marked
from cccopt.passes.result import PassResult
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Function, Guard, Instruction, Module, Operand, Statement
from cccopt.ptx.isa import Memory

MOST_STATEMENTS = 8
"""The most instructions for an address, and for its inputs in the next iteration."""


class _NotKnown(Exception):
    """It is not known where the next iteration loads."""


def run(module: Module, options: Options) -> PassResult:
    """Prefetch for the loops of all marked functions; EXACT."""
    return PassResult(each_marked(module, options, _prefetching))


def _prefetching(module: Module, function: Function, options: Options) -> Function:
    view = view_of(module, function)
    names = Names(function.body or (), view.types, prefix="next")
    added: dict[int, list[Statement]] = {}
    try:
        for region in find(view, frozenset(view.annotations)).regions:
            going = _going(view, region) if len(region.paths) >= FEWEST else None
            if going is not None and RegionAnalysis(view, region, options.expand).exclusive:
                iteration = _Iteration(view, region, names)
                if iteration.parts_in_path():
                    continue
                code = added.setdefault(id(view.body[iteration.parting]), [])
                for index in iteration.loads():
                    with suppress(_NotKnown):
                        code += iteration.prefetch(index, going)
    except Refusal:
        return function  # collect-contexts reports it
    if not any(added.values()):
        return function
    body = (new for old in function.body or () for new in (*added.get(id(old), ()), old))
    return replace(function, body=(*names.declarations(), *body))


def _going(view: View, region: Region) -> Guard | None:
    """The condition to go on at the only latch, if that is also the only exit of the loop; else None."""
    nodes = view.graph.nodes
    leaving = [n for n in region.nodes for t in targets(nodes[n].end) if t not in region.nodes | view.traps]
    latches = [n for n in region.nodes if region.header in targets(nodes[n].end)]
    if len(latches) != 1 or leaving != latches:
        return None
    end = nodes[latches[0]].end
    return condition(end, region.header) if isinstance(end, Branch) else None


class _Iteration:
    """An iteration of one loop: what its head loads, and where the next one loads from. Code that prefetches is
    inserted before statement ``parting``, where the iteration splits into its paths: few registers are live there.
    """

    def __init__(self, view: View, region: Region, names: Names) -> None:
        self.view = view
        self.region = region
        self.names = names
        header = view.block_of_name[region.header]
        (latch,) = (b for b in view.cfg.predecessors[header] if view.name(b) in region.nodes)
        self.head = [i for block in _straight(view, header) for i in view.cfg.blocks[block].statements()]
        self.own = view.statements(region.nodes)
        self.stop = view.cfg.blocks[latch].stop - 1
        ends = {view.block_of_name[name] for path in region.paths for name in (path.begin, path.end)}
        self.parting = view.cfg.blocks[view.dominators.nearest_common(ends)].stop - 1

    def parts_in_path(self) -> bool:
        """Whether ``parting`` is in a path: its tasks run elsewhere, and for another iteration."""
        name = self.view.name(self.view.cfg.block_of(self.parting))
        return any(name in path.nodes for path in self.region.paths)

    def loads(self) -> list[int]:
        """The loads of global memory at the iteration's head."""
        return [
            i
            for i in self.head
            if isinstance(s := self.view.body[i], Instruction)
            and isa.facts(s).memory is Memory.LOAD
            and isa.facts(s).space == "global"
            and s.guard is None
            and any(isinstance(o, Address) for o in s.operands)
        ]

    def prefetch(self, index: int, going: Guard) -> list[Statement]:
        """The code that prefetches what the load at statement ``index`` loads in the next iteration, if there is one.

        Raises `_NotKnown`.
        """
        address = self._address(index)
        needed: set[str] = set()
        written: set[str] = set()
        for i in (*address, index):
            needed |= effects.needs(self.view.body[i]) - written
            written |= effects.writes(self.view.body[i])
        steps: set[int] = set()
        for name in sorted({*needed, going.register.name}):
            self._next(name, self.stop, steps)
        rank = {block: position for position, block in enumerate(self.view.cfg.reverse_postorder)}
        ordered = sorted(steps, key=lambda i: (rank[self.view.cfg.block_of(i)], i))
        computed, uses = self._copied(ordered, {})
        again, uses = self._copied(address, uses)
        where = next(o for o in self._instruction(index).operands if isinstance(o, Address))
        fetch = op("prefetch.global.L2", where, guard=going)
        return [*computed, *again, isa.rename(fetch, uses, {})]

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement

    def _computation(self, index: int) -> Instruction:
        statement = self.view.body[index]
        # It runs in the lane itself, so it may read these special registers.
        if not isinstance(statement, Instruction) or not is_computation(
            statement, CONSTANT_SPECIAL_REGISTERS
        ):
            raise _NotKnown
        return statement

    def _copied(
        self, statements: Iterable[int], given: Mapping[str, Operand]
    ) -> tuple[list[Statement], dict[str, Operand]]:
        """The statements with fresh registers, and the register that each name then refers to."""
        uses = dict(given)
        code: list[Statement] = []
        for index in statements:
            instruction = self._instruction(index)
            results = {
                d.name: self.names.register(self.view.types[d.name]) for d in isa.definitions(instruction)
            }
            code.append(isa.rename(instruction, uses, results))
            uses.update(results)
        return code, uses

    def _address(self, load: int) -> list[int]:
        """The statements of the head that compute a load's address, in order."""
        found: set[int] = set()
        work = [load]
        while work:
            at = work.pop()
            earlier = self.head[: self.head.index(at)]
            for name in effects.needs(self.view.body[at]):
                last = next((i for i in reversed(earlier) if name in effects.writes(self.view.body[i])), None)
                if last is not None and last not in found:
                    self._computation(last)
                    found.add(last)
                    work.append(last)
        if len(found) > MOST_STATEMENTS:
            raise _NotKnown
        return sorted(found, key=self.head.index)

    def _next(self, name: str, at: int, steps: set[int]) -> None:
        """Adds to ``steps`` the statements that compute a register's value at statement ``at`` from registers at
        ``parting``.
        """
        writers = [i for i in self.own if name in effects.writes(self.view.body[i])]
        before = [i for i in writers if self._may_run_before(i, at)]
        later = [i for i in before if not self._may_run_before(i, self.parting)]
        if not later:
            # The register keeps the value that it has at `parting`.
            if before != [i for i in writers if self._may_run_before(i, self.parting)]:
                raise _NotKnown
            return
        index = later[0]
        if index in steps:
            return
        block = self.view.cfg.block_of
        if len(later) > 1 or not self.view.dominators.dominates(block(index), block(at)):
            raise _NotKnown
        if self.view.innermost(block(index)) != self.view.innermost(block(self.head[0])):
            raise _NotKnown
        if len(steps) == MOST_STATEMENTS:
            raise _NotKnown
        steps.add(index)
        for operand in sorted(effects.needs(self._computation(index))):
            self._next(operand, index, steps)

    def _may_run_before(self, index: int, at: int) -> bool:
        """Whether statement ``index`` may run before statement ``at`` in one iteration."""
        block, end = (self.view.cfg.block_of(i) for i in (index, at))
        if block == end and index < at:
            return True
        once = {n: self.view.graph.nodes[n] for n in self.region.nodes if n != self.region.header}
        following = targets(self.view.graph.nodes[self.view.name(block)].end)
        return self.view.name(end) in reachable(once, following)


def _straight(view: View, header: int) -> list[int]:
    """The block of a loop's header and its chain of only successors, which markers have separated from it."""
    found = [header]
    while True:
        following = view.cfg.successors[found[-1]]
        if len(following) != 1 or following[0] in found or len(view.cfg.predecessors[following[0]]) != 1:
            return found
        found.append(following[0])
