"""May two accesses to memory change order? This module alone decides that, for everything that the rewrite defers.

A *token* is one iteration of the marked loop. The pragma promises that tokens are independent; it says nothing about
the order inside one. A path P runs as a task, later than what follows it in its token: it *overtakes* nothing, and all
of that overtakes it. So each access of P, and of the continuation that moves with it, must commute with each

* access that follows P in the same inner iteration, or after the loops of tasks around P (`clash`);
* access of a later inner iteration of a loop of tasks around P, including other runs of P
  (`clash_in_inner_iterations`). With `for variable`, the user promises that inner iterations are independent, except
  when their order is known to matter (`cccopt.ccc.legality.inner_iterations`); those of a `while` keep their order.

Two accesses commute if neither writes, or if they cannot touch the same bytes (`cccopt.analysis.memory`: state spaces,
roots of addresses, memory that nothing writes). They also commute if both are integer atomics of one operation whose
results nothing reads. An address that advances by a constant is a different address in each inner iteration.

Two tokens of one thread meet at the addresses that the thread uses again (`cccopt.ccc.legality.thread_memory`); see
`meeting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.memory import Access
from cccopt.ccc.function.graph import reachable
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.atomics import commutes_as
from cccopt.ccc.legality.inner_iterations import InnerIterations
from cccopt.ccc.legality.sunk_code import SunkCode
from cccopt.ccc.legality.thread_memory import ThreadMemory
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.clauses import Kind
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Memory

_Kind = tuple[Access, str]
"""What an access may touch, and the operation under which it commutes; equal for most accesses of a loop."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Two statements that may not change order: one that tasks of a path run, and one that would then run first."""

    deferred: int
    other: int


@dataclass(frozen=True)
class MemoryOrder:
    """The order of accesses in the tokens of one region, with the ``sunk`` code of its paths."""

    view: View
    region: Region
    sunk: Mapping[str, SunkCode]

    def deferred(self, path: Path) -> list[int]:
        """The instructions that run as tasks of the path: its own, and the continuation that moves along."""
        own = (index for index, _ in self.view.instructions(path.nodes))
        moved = (i for i in self.sunk[path.begin].moved if isinstance(self.view.body[i], Instruction))
        return [*own, *moved]

    def following(self, path: Path) -> list[int]:
        """The statements of a token that follow the path and run in the lane that made the task. They are those of the
        same inner iteration of all loops of tasks around it, those after these loops, and those that decide whether
        another token exists.
        """
        around = self._loops_of_tasks(path)
        starts = self._starts(self.region.annotation.region)
        inner = frozenset().union(*(self._starts(p.annotation.region) for p in around))
        heads = {p.begin for p in around}
        nodes = {n: self.view.graph.nodes[n] for n in self.region.nodes - self._stops(starts)}
        same = reachable({n: node for n, node in nodes.items() if n not in inner | heads}, [path.end])
        inside = frozenset().union(*(p.nodes for p in around))
        after = reachable(nodes, [path.end]) - inside
        skipped = set(self.sunk[path.begin].skipped)
        return [i for i in self.view.statements(same | after) if i not in skipped]

    def clash(self, path: Path) -> Clash | None:
        """An access of the path's tasks and one after the path, if these two may not change order."""
        return self.first_clash(self.deferred(path), self.following(path))

    def clash_in_inner_iterations(self, path: Path) -> Clash | None:
        """An access of the path's tasks and one of another inner iteration, if these two may not change order."""
        for loop in self._loops_of_tasks(path):
            iterations = InnerIterations(self.view, loop)
            if loop.annotation.kind == Kind.FOR_VARIABLE and not iterations.in_order():
                continue
            others = self._accesses(self.view.statements(loop.nodes))
            others += self._accesses(self.sunk[loop.begin].moved)
            for mine in self._accesses(self.deferred(path)):
                for other in others:
                    copies = self._copy_of(mine, loop) != self._copy_of(other, loop)
                    if self._may_clash(mine, other) and iterations.may_meet(mine, other, copies=copies):
                        return Clash(mine, other)
        return None

    def _copy_of(self, index: int, loop: Path) -> frozenset[int]:
        """Which copy of the body a statement belongs to, if the compiler unrolled a loop of tasks."""
        view = self.view
        starts = view.blocks_of(self._starts(loop.annotation.region) & loop.nodes)
        block = view.cfg.block_of(index)
        return frozenset(start for start in starts if view.dominators.dominates(start, block))

    def follows_memory(self, path: Path) -> int | None:
        """A statement after the path that accesses memory which others may write."""
        found = (i for i in self._accesses(self.following(path)) if not self.view.memory.access(i).constant)
        return next(found, None)

    def meeting(self, path: Path, *, own: bool) -> Clash | None:
        """An access of the path's tasks and one of another token of the same thread that meet at an address which
        belongs to the thread. If ``own``, both are in the path; otherwise, the other one is a write elsewhere in the
        loop.
        """
        mine = self._accesses(self.deferred(path))
        if own:
            return next((Clash(i, i) for i in mine if self._comes_back(i)), None)
        inside, firsts = frozenset(mine), self._firsts(mine)
        others = (i for i in self._coming_back if i not in inside)
        return next((clash for i in others if (clash := self._clash_with(firsts, i)) is not None), None)

    # --- helpers ---

    def first_clash(self, mine: Iterable[int], others: Iterable[int]) -> Clash | None:
        """An access of ``mine`` and one of ``others`` that may not change order."""
        firsts = self._firsts(self._accesses(mine))
        found = (self._clash_with(firsts, other) for other in self._accesses(others))
        return next((clash for clash in found if clash is not None), None)

    def _firsts(self, accesses: Iterable[int]) -> Mapping[_Kind, int]:
        """The first access of each kind."""
        kinds: dict[_Kind, int] = {}
        for index in accesses:
            kinds.setdefault(self._kind(index), index)
        return kinds

    def _clash_with(self, firsts: Mapping[_Kind, int], other: int) -> Clash | None:
        kind = self._kind(other)
        found = [first for mine, first in firsts.items() if self._clashes(mine, kind)]
        return Clash(min(found), other) if found else None

    def _may_clash(self, a: int, b: int) -> bool:
        return self._clashes(self._kind(a), self._kind(b))

    def _clashes(self, a: _Kind, b: _Kind) -> bool:
        """Whether two accesses may touch the same bytes, at least one of them writing, and leave a different result in
        the other order.
        """
        return not (a[1] and a[1] == b[1]) and self.view.memory.may_clash(a[0], b[0])

    def _kind(self, index: int) -> _Kind:
        if index not in self._kinds:
            self._kinds[index] = self.view.memory.access(index), commutes_as(self.view, index)
        return self._kinds[index]

    @cached_property
    def _kinds(self) -> dict[int, _Kind]:
        return {}

    def _accesses(self, statements: Iterable[int]) -> list[int]:
        return [i for i in statements if self._is_access(i)]

    def _is_access(self, index: int) -> bool:
        if index not in self._known:
            memory = self.view.memory
            self._known[index] = memory.accesses_memory(index) and not memory.passes_arguments(index)
        return self._known[index]

    @cached_property
    def _known(self) -> dict[int, bool]:
        """A cache for `_is_access`: the code of many paths overlaps."""
        return {}

    @cached_property
    def _coming_back(self) -> tuple[int, ...]:
        """The writes of the loop that may meet others of the same thread."""
        return tuple(filter(self._comes_back, self._accesses(self.view.statements(self.region.nodes))))

    def _comes_back(self, index: int) -> bool:
        if index not in self._reused:
            self._reused[index] = self._writes_shared(index) and self._thread.is_reused(index)
        return self._reused[index]

    @cached_property
    def _reused(self) -> dict[int, bool]:
        """A cache for `_comes_back`."""
        return {}

    def _writes_shared(self, index: int) -> bool:
        """Whether a statement writes memory that other lanes can see, in an order that matters."""
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        facts = isa.facts(statement)
        writes = facts.memory is Memory.STORE or (
            facts.memory is Memory.ATOMIC and not commutes_as(self.view, index)
        )
        return writes and not self.view.memory.spaces(index) <= {"local", "param"}

    def _loops_of_tasks(self, path: Path) -> list[Path]:
        """The loops of tasks around a path."""
        return [p for p in self.region.all_paths() if p.is_loop and path.nodes < p.nodes]

    def _starts(self, region: int) -> frozenset[str]:
        """The nodes at which an iteration of a marked loop starts; a loop that the compiler unrolled has several."""
        markers = self.view.markers("body.begin", region)
        return self.view.names_of(self.view.cfg.block_of(i) for i in markers)

    def _stops(self, starts: frozenset[str]) -> frozenset[str]:
        """Where a token ends: where the next one starts, after its test, or at the header if there is no marker."""
        return starts if starts & self.region.nodes else frozenset({self.region.header})

    @cached_property
    def _thread(self) -> ThreadMemory:
        return ThreadMemory(self.view, self.region)
