"""What may not be rewritten (DESIGN 6): each rule states what must hold, and the code transcribes it.

A path P of a marked loop L runs later than the rest of its iteration, in another lane, together with other runs of P.
The pragma's promise covers other iterations; what follows P in its own iteration is checked here. Shapes that cannot be
rewritten are refused where they are found (`cccopt.ccc.regions`), contexts and stacks where they are planned
(`cccopt.ccc.plan`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.carry import carry_readers
from cccopt.ccc.function.annotations import vouches
from cccopt.ccc.function.calls import HARMLESS_CALLS, called, callees
from cccopt.ccc.function.mangled import source_name
from cccopt.ccc.function.origins import Note
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.carried_region import CarriedRegion
from cccopt.ccc.legality.counted_loops import may_expand
from cccopt.ccc.legality.local_bytes import LocalBytes
from cccopt.ccc.legality.local_memory import LocalMemory
from cccopt.ccc.legality.locks import released_after
from cccopt.ccc.legality.order import Clash, MemoryOrder
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.legality.remedies import remedies
from cccopt.ccc.legality.waiting import tried
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Rule, refuse
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Symbol
from cccopt.ptx.isa import Control, Memory, callee_of
from cccopt.ptx.special import THREAD_IDENTITY


def check(analysis: RegionAnalysis) -> None:
    """Raises Refusal for the first rule that the region breaks."""
    rules = _Rules(analysis)
    rules.known_instructions()
    rules.no_lost_value()
    rules.no_recursion()
    rules.no_barrier()
    rules.no_exit_in_calls()
    rules.own_local_memory()
    rules.no_local_memory_of_callers()
    for path in analysis.region.all_paths():
        rules.no_carry_flag(path, path.begin, path.end)
        rules.no_parameter(path)
        rules.no_collective(path)
        rules.no_opaque_call(path)
        rules.no_identity_in_calls(path)
        rules.no_fence(path)
        rules.no_thread_memory(path)
        rules.order_within_iteration(path)


def check_deferred(analysis: RegionAnalysis, path: Path) -> None:
    """Raises Refusal if the path may not run later than the code after it in its iteration. `check` assumes that the
    inner iterations of loops that may be expanded run at once.
    """
    _Rules(analysis).order_of_rest(path)


def check_carried(carried: CarriedRegion) -> None:
    """Raises Refusal for the first rule that the region breaks in the carried form."""
    rules = _Rules(carried)
    rules.known_instructions()
    rules.no_recursion()
    rules.no_barrier()
    rules.no_exit_in_calls()
    for point in carried.region.points:
        carried.carrying.advance(point)
    carried.local.check()
    rules.no_local_memory_of_callers()
    for path in carried.region.paths:
        rules.no_carry_flag(path, path.begin, carried.region.header)
        rules.no_parameter(path)
        rules.no_collective(path)
        rules.no_opaque_call(path)
        rules.no_identity_in_calls(path)
        rules.no_waiting(path, across=carried.changes_lanes)
        rules.no_worklist(path, carried.carrying.deciding)
        rules.no_thread_memory(path)


@dataclass(frozen=True)
class _Rules:
    analysis: RegionAnalysis

    @property
    def view(self) -> View:
        return self.analysis.view

    @property
    def region(self) -> Region:
        return self.analysis.region

    @property
    def order(self) -> MemoryOrder:
        return self.analysis.order

    def known_instructions(self) -> None:
        """Every instruction of L is in the instruction table, and reads the thread's index by component."""
        for index, instruction in self.view.instructions(self.region.nodes | self.region.preheader):
            if not isa.facts(instruction).known or "%tid" in effects.special_registers(instruction):
                line = "?" if instruction.position is None else instruction.position.line
                raise self._refuse(refusal.UNKNOWN, self.region, index, instruction.opcode, line)

    def no_lost_value(self) -> None:
        """What P writes is not read after it, or its readers sink into the task, or the lane can compute it again."""
        _ = self.analysis.sunk

    def no_carry_flag(self, path: Path, *nodes: str) -> None:
        """The carry flag is not live at the beginning of ``nodes``, where lanes may go on with another task."""
        for block in self.view.blocks_of(nodes):
            if block in self._carry:
                raise self._refuse(refusal.CARRY_FLAG, path, self._carry[block])

    def no_recursion(self) -> None:
        """The function of L does not call itself, directly or not: a stack holds the tasks of one run."""
        name = self.view.function.name
        if name in called(self.view.module, callees(self.view.function)):
            raise refuse(refusal.RECURSION, self.region.annotation.place)

    def no_barrier(self) -> None:
        """No instruction of L, nor of what it calls, waits for other warps or for copies in flight."""
        for index, instruction in self.view.instructions(self.region.nodes):
            if any(waits(i) for i in self.view.with_callees(instruction)):
                raise self._refuse(refusal.BARRIER, self.region, index)

    def no_exit_in_calls(self) -> None:
        """No function that L calls ends the thread: the whole warp votes, and tasks run in other lanes."""
        for index, instruction in self.view.instructions(self.region.nodes):
            _, *inner = self.view.with_callees(instruction)
            if any(i.base == "exit" for i in inner):
                raise self._refuse(refusal.CALL_EXIT, self.region, index, _callee(instruction))

    def no_parameter(self, path: Path) -> None:
        """No instruction of P accesses a parameter of its function, unless that is a kernel."""
        function = self.view.function
        if function.kind == "entry":
            return
        own = {variable.name for variable in (*function.parameters, *function.returns)}
        for index, instruction in self._code(path):
            bases = [o.base for o in instruction.operands if isinstance(o, Address)]
            mine = next((b.name for b in bases if isinstance(b, Symbol) and b.name in own), None)
            if mine is not None:
                raise self._refuse(refusal.PARAMETER, path, index, mine)

    def no_collective(self, path: Path) -> None:
        """No instruction of P, nor of what it calls, depends on which lanes run it together."""
        for index, instruction in self._code(path):
            culprit = next((i for i in self.view.with_callees(instruction) if _collective(i)), None)
            if culprit is not None:
                raise self._refuse(refusal.COLLECTIVE, path, index, culprit.opcode)

    def no_opaque_call(self, path: Path) -> None:
        """Every call in P is to a function whose body is known, that the user vouches for, or that is harmless."""
        for index, instruction in self._code(path):
            calls = [i for i in self.view.with_callees(instruction) if isa.facts(i).control is Control.CALL]
            for call in calls:
                callee = callee_of(call)
                if callee is None:
                    raise self._refuse(refusal.CALL_BY_POINTER, path, index)
                known = self._body(callee) is not None or callee in HARMLESS_CALLS
                if not known and not vouches(self.region.annotation, callee):
                    raise self._refuse(refusal.CALL, path, index, source_name(callee))

    def no_identity_in_calls(self, path: Path) -> None:
        """No function that P calls reads which thread runs it: the task runs in another lane."""
        for index, instruction in self._code(path):
            _, *inner = self.view.with_callees(instruction)
            read = {
                name
                for i in inner
                for name in effects.special_registers(i)
                if name.startswith(THREAD_IDENTITY)
            }
            if read:
                raise self._refuse(refusal.CALL_IDENTITY, path, index, _callee(instruction), min(read))

    def no_fence(self, path: Path) -> None:
        """No fence, acquire, release, warp barrier, volatile access or spin on an atomic in L outside of P; no lock
        that decides whether P runs and is released after it; and nothing in P that orders memory accesses, if accesses
        follow P in its iteration.
        """
        if self._independent(path):
            return
        inside = set(self.view.statements(path.nodes))
        for index, instruction in self.view.instructions(self.region.nodes):
            ordered = index in self._orders
            if index in inside:
                # What follows in the iteration now comes before it.
                overtaking = self.order.follows_memory(path) if ordered else None
                if overtaking is not None:
                    raise self._refuse(refusal.FENCE, path, index)
                continue
            # A lane that waits for a lock never reaches the vote at which its holder waits.
            if ordered or index in self._spinning or instruction.opcode.startswith("bar.warp"):
                raise self._refuse(refusal.FENCE, path, index)
        following = self.order.following(path)
        release = released_after(self.view, self.region.nodes, path.nodes, following)
        if release is not None:
            raise self._refuse(refusal.FENCE, path, release)

    @cached_property
    def _orders(self) -> frozenset[int]:
        """The statements of the region that order memory accesses, or call code that does."""
        instructions = self.view.instructions(self.region.nodes)
        return frozenset(i for i, s in instructions if any(map(_ordered, self.view.with_callees(s))))

    def no_waiting(self, path: Path, *, across: bool) -> None:
        """No spin on an atomic, poll of a volatile value or warp barrier in L outside of the segment P. None in P
        either if tokens may change lanes ``across`` it: a waiting token could hold the lock that others spin on.
        """
        inside = frozenset[int]() if across else frozenset(self.view.statements(path.nodes))
        index = next((i for i in self._waiting if i not in inside), None)
        if index is not None:
            raise self._refuse(refusal.WAITING, path, index)

    @cached_property
    def _waiting(self) -> tuple[int, ...]:
        """The spins, polls and warp barriers of L."""
        return tuple(i for i, s in self.view.instructions(self.region.nodes) if self._waits(i, s))

    def _waits(self, index: int, instruction: Instruction) -> bool:
        if index in self._spinning or instruction.opcode.startswith("bar.warp"):
            return True
        polls = any(isa.facts(i).volatile for i in self.view.with_callees(instruction))
        return polls and self._in_inner_loop(index)

    def no_worklist(self, path: Path, deciding: Collection[int]) -> None:
        """No task of P writes what the statements ``deciding`` read: a lane would leave L too early, or wait in L for a
        task that is itself waiting.
        """
        if self._independent(path):
            return
        clash = self.order.first_clash(self.order.deferred(path), sorted(deciding))
        if clash is not None:
            other = "the code that decides whether the loop ends"
            raise self._reordered(
                refusal.MEMORY, path, clash, "where it is decided whether the loop ends", other
            )

    def _in_inner_loop(self, index: int) -> bool:
        loop = self.view.innermost(self.view.cfg.block_of(index))
        return loop is not None and self.view.name(loop.header) != self.region.header

    def no_thread_memory(self, path: Path) -> None:
        """No task of P writes to a place that another iteration of its thread may use, or uses such a place that is
        written elsewhere in L.
        """
        met = self.order.meeting(path, own=True)
        if met is not None:
            raise self._refuse(refusal.SCRATCH, path, met.deferred)
        if self._independent(path):
            return
        met = self.order.meeting(path, own=False)
        if met is not None:
            notes = self._notes(met, "the store")
            raise refuse(refusal.SCRATCH_BEFORE, path.annotation.place, notes=notes)

    def order_within_iteration(self, path: Path) -> None:
        """No access of P may touch the same bytes as one that follows it in its iteration, if either writes. Other
        inner iterations of the loops of tasks around P are included.
        """
        if not (self.analysis.expand and may_expand(path)):
            self.order_of_rest(path)
        if self._independent(path):
            return
        clash = self.order.clash_in_inner_iterations(path)
        if clash is not None:
            where, other = "in another inner iteration", "another inner iteration"
            raise self._reordered(refusal.MEMORY_INNER, path, clash, where, other)

    def order_of_rest(self, path: Path) -> None:
        """No access of P may touch the same bytes as one of the code after it in its iteration, if either writes."""
        clash = None if self._independent(path) else self.order.clash(path)
        if clash is not None:
            raise self._reordered(refusal.MEMORY, path, clash, "after it", "the code after it")

    def _reordered(self, rule: Rule, path: Path, clash: Clash, where: str, other: str) -> refusal.Refusal:
        """The refusal for ``clash`` with an access of the code ``other``; a note says ``where`` it is."""
        origins = self.view.origins
        why = f"{origins.access(clash.deferred, 'the path')}, and {origins.access(clash.other, other)}"
        help = remedies(self.view, clash, follows=rule is refusal.MEMORY)
        return refuse(rule, path.annotation.place, why=why, help=help, notes=self._notes(clash, where))

    def own_local_memory(self) -> None:
        """No local memory is live into or out of a task (`cccopt.ccc.legality.local_memory`)."""
        local = LocalMemory(self.view, self.region, self.view.memory)
        for path in self.region.all_paths():
            clash = local.clash(path, [i for i, _ in self._code(path)])
            if clash is not None:
                notes = self._notes(Clash(*clash), "elsewhere")
                raise refuse(refusal.LOCAL, path.annotation.place, notes=notes)

    def no_local_memory_of_callers(self) -> None:
        """No function that calls the function of L passes on an address of its local memory: a task would use another
        lane's.
        """
        module, function = self.view.module, self.view.function
        if function.kind == "entry":
            return
        for caller in module.functions():
            if caller.body is None or function.name not in called(module, callees(caller)):
                continue
            if LocalBytes(view_of(module, caller)).escapes:
                why = (
                    f"`{source_name(caller.name)}` stores an address of its local memory, or passes it to a function,"
                    " and the task may run in another lane"
                )
                help = "let the function be inlined into it (`__forceinline__`)"
                raise refuse(refusal.LOCAL, self.region.annotation.place, why=why, help=help)

    # --- helpers of the rules ---

    def _code(self, path: Path) -> list[tuple[int, Instruction]]:
        """The instructions that run as tasks of the path."""
        found = ((index, self.view.body[index]) for index in self.order.deferred(path))
        return [(index, s) for index, s in found if isinstance(s, Instruction)]

    @cached_property
    def _carry(self) -> Mapping[int, int]:
        return carry_readers(self.view.cfg, self.view.body)

    @cached_property
    def _spinning(self) -> frozenset[int]:
        """The statements of L for which an inner loop waits or tries."""
        outer = self.view.blocks_of(self.region.nodes)
        own = tried(self.view, (loop for loop in self.view.loops if loop.blocks < outer))
        code = self.view.instructions(self.region.nodes)
        calls = [(i, callee_of(s)) for i, s in code if isa.facts(s).control is Control.CALL]
        spinning = {name for name in {name for _, name in calls} if name is not None and self._spins(name)}
        return own.union(i for i, name in calls if name in spinning)

    def _spins(self, callee: str) -> bool:
        """Whether a function, or one that it calls, may wait like this."""
        names = called(self.view.module, [callee])
        functions = (f for f in self.view.module.functions() if f.name in names and f.body is not None)
        return any(tried(inner, inner.loops) for f in functions for inner in [view_of(self.view.module, f)])

    def _independent(self, path: Path) -> bool:
        return path.annotation.independent or self.region.annotation.independent

    def _body(self, name: str) -> Sequence[object] | None:
        return next(
            (f.body for f in self.view.module.functions() if f.name == name and f.body is not None), None
        )

    def _notes(self, clash: Clash, where: str) -> tuple[Note, ...]:
        origins = self.view.origins
        return (*origins.notes("in the path", clash.deferred), *origins.notes(where, clash.other))

    def _refuse(self, rule: Rule, where: Path | Region, index: int, *details: object) -> refusal.Refusal:
        return refuse(rule, where.annotation.place, *details, notes=self.view.origins.notes("here", index))


def _callee(call: Instruction) -> str:
    """The name of the function that a direct call names, as a user writes it."""
    return source_name(callee_of(call) or "")


def waits(instruction: Instruction) -> bool:
    """Whether an instruction waits for other warps or for copies in flight, or is something that such a wait waits for
    (an arrival, a copy that begins).
    """
    return isa.facts(instruction).waits


def _ordered(instruction: Instruction) -> bool:
    """Whether an instruction orders accesses to memory, its own or others."""
    facts = isa.facts(instruction)
    if facts.control is Control.CALL:
        return False
    return facts.volatile or facts.fence or (facts.synchronises and facts.memory is not Memory.NONE)


def _collective(instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    if facts.control is Control.CALL or facts.fence or not facts.known:
        return facts.known is False
    return facts.aligned or facts.convergent or (facts.synchronises and facts.memory is Memory.NONE)
