"""What an iteration loads at its head is prefetched one iteration early.

    H: mul.wide.u32 %rd6, %r1, 8;              H: (as before)
       add.s64 %rd7, %rd5, %rd6;                  ld.global.nc.f64 %fd1, [%rd7];
       ld.global.nc.f64 %fd1, [%rd7];    ->       ... up to where the iteration parts into its paths ...
       ... the paths ...                          add.u32 %r3, %r1, %r2;  setp.lt.u32 %p2, %r3, %r4;
       add.u32 %r1, %r1, %r2;                     (the address of %r3)  @%p2 prefetch.global.L2 [%rd9];
       setp.lt.u32 %p1, %r1, %r4;                 ... the paths ...
       @%p1 bra H;                                add.u32 %r1, %r1, %r2;  setp.lt.u32 %p1, %r1, %r4;  @%p1 bra H;

The votes and barriers of the collected loop keep a load of the next iteration from starting before this one's end. A
prefetch needs no register that waits for it: where lanes are sorted (`cccopt.ccc.codegen.sorting`) there are none to
spare. Other loops are left as they are: what it would do there has not been measured.

Prefetched is for an iteration that the lane surely makes, so that no other address is touched than before: the loop has
one way out, at its latch, and what decides there is computed from registers at hand.

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
from cccopt.ccc.function.view import View, view
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
"""Instructions that an address, and what it is made of in the next iteration, may take each."""


class _NotKnown(Exception):
    """Where the next iteration loads is not to be told."""


def run(module: Module, options: Options) -> PassResult:
    """Prefetch for the loops of all marked functions; EXACT."""
    return PassResult(each_marked(module, options, _prefetching))


def _prefetching(module: Module, function: Function, options: Options) -> Function:
    seen = view(module, function)
    names = Names(function.body or (), seen.types, prefix="next")
    ahead: dict[int, list[Statement]] = {}
    try:
        for region in find(seen, frozenset(seen.annotations)).regions:
            going = _going(seen, region) if len(region.paths) >= FEWEST else None
            if going is not None and RegionAnalysis(seen, region, options.expand).exclusive:
                iteration = _Iteration(seen, region, names)
                if iteration.place_is_in_path():
                    continue
                code = ahead.setdefault(id(seen.body[iteration.place]), [])
                for index in iteration.loads():
                    with suppress(_NotKnown):
                        code += iteration.prefetch(index, going)
    except Refusal:
        return function  # collect-contexts tells of it
    if not any(ahead.values()):
        return function
    body = (new for old in function.body or () for new in (*ahead.get(id(old), ()), old))
    return replace(function, body=(*names.declarations(), *body))


def _going(seen: View, region: Region) -> Guard | None:
    """The condition at the one latch to go on, which is the only way out of the loop too; None if there is another."""
    nodes = seen.graph.nodes
    leaving = [n for n in region.nodes for t in targets(nodes[n].end) if t not in region.nodes | seen.traps]
    latches = [n for n in region.nodes if region.header in targets(nodes[n].end)]
    if len(latches) != 1 or leaving != latches:
        return None
    end = nodes[latches[0]].end
    return condition(end, region.header) if isinstance(end, Branch) else None


class _Iteration:
    """An iteration of one loop: what its head loads, and from where the next one does. Code for that goes ahead of
    statement ``place``, where the iteration parts into its paths: few registers are in use there.
    """

    def __init__(self, seen: View, region: Region, names: Names) -> None:
        self.seen = seen
        self.region = region
        self.names = names
        header = seen.block_of_name[region.header]
        (latch,) = (b for b in seen.cfg.predecessors[header] if seen.name(b) in region.nodes)
        self.head = [i for block in _straight(seen, header) for i in seen.cfg.blocks[block].statements()]
        self.own = seen.statements(region.nodes)
        self.stop = seen.cfg.blocks[latch].stop - 1
        parting = {seen.block_of_name[name] for path in region.paths for name in (path.begin, path.end)}
        self.place = seen.cfg.blocks[seen.dominators.nearest_common(parting)].stop - 1

    def place_is_in_path(self) -> bool:
        """Whether all lanes come through a path first: its tasks run elsewhere, and for another iteration."""
        name = self.seen.name(self.seen.cfg.block_of(self.place))
        return any(name in path.nodes for path in self.region.paths)

    def loads(self) -> list[int]:
        """The loads of global memory at the iteration's head."""
        return [
            i
            for i in self.head
            if isinstance(s := self.seen.body[i], Instruction)
            and isa.facts(s).memory is Memory.LOAD
            and isa.facts(s).space == "global"
            and s.guard is None
        ]

    def prefetch(self, index: int, going: Guard) -> list[Statement]:
        """The code that prefetches what the load at statement ``index`` loads in the next iteration, if that is made.

        Raises `_NotKnown`.
        """
        address = self._address(index)
        needed: set[str] = set()
        written: set[str] = set()
        for i in (*address, index):
            needed |= effects.needs(self.seen.body[i]) - written
            written |= effects.writes(self.seen.body[i])
        steps: set[int] = set()
        for name in sorted({*needed, going.register.name}):
            self._next(name, self.stop, steps)
        rank = {block: place for place, block in enumerate(self.seen.cfg.reverse_postorder)}
        ordered = sorted(steps, key=lambda i: (rank[self.seen.cfg.block_of(i)], i))
        computed, uses = self._copied(ordered, {})
        again, uses = self._copied(address, uses)
        where = next(o for o in self._instruction(index).operands if isinstance(o, Address))
        fetch = op("prefetch.global.L2", where, guard=going)
        return [*computed, *again, isa.rename(fetch, uses, {})]

    def _instruction(self, index: int) -> Instruction:
        statement = self.seen.body[index]
        assert isinstance(statement, Instruction)
        return statement

    def _computation(self, index: int) -> Instruction:
        statement = self.seen.body[index]
        # It runs in the lane's own place.
        if not isinstance(statement, Instruction) or not is_computation(
            statement, CONSTANT_SPECIAL_REGISTERS
        ):
            raise _NotKnown
        return statement

    def _copied(
        self, statements: Iterable[int], given: Mapping[str, Operand]
    ) -> tuple[list[Statement], dict[str, Operand]]:
        """The statements on fresh registers, and the register that each name then stands for."""
        uses = dict(given)
        code: list[Statement] = []
        for index in statements:
            instruction = self._instruction(index)
            results = {
                d.name: self.names.register(self.seen.types[d.name]) for d in isa.definitions(instruction)
            }
            code.append(isa.rename(instruction, uses, results))
            uses.update(results)
        return code, uses

    def _address(self, load: int) -> list[int]:
        """The statements of the head that make a load's address, in order."""
        found: set[int] = set()
        work = [load]
        while work:
            at = work.pop()
            ahead = self.head[: self.head.index(at)]
            for name in effects.needs(self.seen.body[at]):
                last = next((i for i in reversed(ahead) if name in effects.writes(self.seen.body[i])), None)
                if last is not None and last not in found:
                    self._computation(last)
                    found.add(last)
                    work.append(last)
        if len(found) > MOST_STATEMENTS:
            raise _NotKnown
        return sorted(found, key=self.head.index)

    def _next(self, name: str, at: int, steps: set[int]) -> None:
        """Adds to ``steps`` what computes the value that a register has at statement ``at`` from what registers hold at
        ``place``.
        """
        writers = [i for i in self.own if name in effects.writes(self.seen.body[i])]
        before = [i for i in writers if self._may_run_before(i, at)]
        later = [i for i in before if not self._may_run_before(i, self.place)]
        if not later:
            # What the register holds at `place` it holds from there on.
            if before != [i for i in writers if self._may_run_before(i, self.place)]:
                raise _NotKnown
            return
        index = later[0]
        if index in steps:
            return
        block = self.seen.cfg.block_of
        if len(later) > 1 or not self.seen.dominators.dominates(block(index), block(at)):
            raise _NotKnown
        if self.seen.innermost(block(index)) != self.seen.innermost(block(self.head[0])):
            raise _NotKnown
        if len(steps) == MOST_STATEMENTS:
            raise _NotKnown
        steps.add(index)
        for operand in sorted(effects.needs(self._computation(index))):
            self._next(operand, index, steps)

    def _may_run_before(self, index: int, at: int) -> bool:
        """Whether statement ``index`` may run ahead of statement ``at`` in one iteration."""
        block, end = (self.seen.cfg.block_of(i) for i in (index, at))
        if block == end and index < at:
            return True
        once = {n: self.seen.graph.nodes[n] for n in self.region.nodes if n != self.region.header}
        following = targets(self.seen.graph.nodes[self.seen.name(block)].end)
        return self.seen.name(end) in reachable(once, following)


def _straight(seen: View, header: int) -> list[int]:
    """The block of a loop's header and those that it alone goes on to, which markers have parted from it."""
    found = [header]
    while True:
        following = seen.cfg.successors[found[-1]]
        if len(following) != 1 or following[0] in found or len(seen.cfg.predecessors[following[0]]) != 1:
            return found
        found.append(following[0])
