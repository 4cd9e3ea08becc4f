"""Loops that may wait for another thread: nothing that they do themselves ends them.

        SPIN: atom.cas.b32 %r1, [%rd1], 0, 1;       a lock: the lane goes on when its holder has released it
              setp.ne.s32  %p1, %r1, 0;
              @%p1 bra     SPIN;

What decides the exits of such a loop, by data or by control, comes from memory that other threads write. It comes from
an atomic, a volatile or ordered load, or one that bypasses a cache; in a loop with a fence, from any load; or from a
load of a fixed place that nothing in the loop writes. Fences and loads in functions that the loop calls count. Three
exits, if each inner iteration reaches them, end a loop all the same, unless they lead to a `trap`, as those of a
watchdog do:

        setp.ge.s32 %p1, %i, %n;  @%p1 bra OUT      %i grows in each inner iteration, and none changes %n, though it may
                                                    be loaded anew each time

        atom.add.u32 %i, [%rd1], 1;                 each inner iteration claims a different number
        setp.ge.u32 %p1, %i, %n;  @%p1 bra OUT

        atom.cas.b32 %r2, [%rd1], %old, %new;       a lock-free update: another thread was faster, and has gone on
        setp.eq.s32 %p1, %r2, %old;  @%p1 bra OUT   (%old is what the last attempt returned, or a load of the place)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.cfg import EdgeKind
from cccopt.analysis.comparisons import is_comparison
from cccopt.analysis.cost import integer
from cccopt.analysis.loops import Loop
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.call_sequences import symbols_of
from cccopt.ccc.function.calls import HARMLESS_CALLS
from cccopt.ccc.function.view import View
from cccopt.ccc.function.written_places import writes_elsewhere
from cccopt.ccc.legality.deciding import deciding
from cccopt.ccc.legality.observing import loads_common, observes
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Literal, Operand, Register, TextureAddress
from cccopt.ptx.isa import Arithmetic, Control, Memory, callee_of, registers_in

_OPPOSITE = {"eq": "ne", "lt": "ge", "gt": "le", "lo": "hs", "hi": "ls"}
_OPPOSITE |= {opposite: test for test, opposite in _OPPOSITE.items()}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "lo": "hi", "ls": "hs"}
_MIRRORED |= {mirrored: test for test, mirrored in _MIRRORED.items()}
_GREATER, _LESS = ("ge", "gt", "hi", "hs"), ("le", "lt", "lo", "ls")
_SCALED = (Arithmetic.LEFT_SHIFT, Arithmetic.PRODUCT)
_FALLING = (Arithmetic.NEGATION, Arithmetic.DIFFERENCE)


def waiting(view: View, loops: Iterable[Loop]) -> int | None:
    """A statement whose result some of the ``loops`` may wait for; None if all end by themselves."""
    return next((min(found) for loop in loops if (found := _Ends(view, loop).waits_for)), None)


def tried(view: View, loops: Iterable[Loop]) -> frozenset[int]:
    """All statements for whose results one of the ``loops`` may wait, and the atomics that decide how long one tries,
    even if it gives up in the end: a lane that goes on may hold a lock. After a lock-free update, it holds none.
    """
    return frozenset[int]().union(*(_Ends(view, loop).tries for loop in loops))


def _calls(instruction: Instruction) -> bool:
    return isa.facts(instruction).control is Control.CALL


@dataclass(frozen=True)
class _Ends:
    """The exits of one loop."""

    view: View
    loop: Loop

    @cached_property
    def waits_for(self) -> frozenset[int]:
        """The statements that the loop may wait for, if nothing else ends it."""
        if any(self._ends_itself(block) for block in self._always()):
            return frozenset()
        return frozenset(i for i in self._deciding() if self._observes(i))

    @property
    def tries(self) -> frozenset[int]:
        """The statements that the loop may wait for, and the atomics that decide when it ends, except for those of
        lock-free updates.
        """
        tests = [test for block in self._always() for test in self._exit_tests(block)]
        updates = {swap for test in tests if (swap := self._succeeding(*test)) is not None}
        atomics = {i for i in self._deciding() if self._may_try(i)}
        return self.waits_for | (atomics - updates)

    # --- what decides the exits ---

    @cached_property
    def inside(self) -> frozenset[int]:
        """The statements of the loop."""
        blocks = self.view.cfg.blocks
        return frozenset(i for b in self.loop.blocks for i in blocks[b].statements())

    def _leaving(self) -> frozenset[int]:
        """The blocks from which lanes leave the loop."""
        return frozenset(a for a, _ in self.loop.exits) | (self.loop.blocks & frozenset(self.view.cfg.exits))

    def _deciding(self) -> frozenset[int]:
        """The statements of the loop that decide, by data, control and the lane's own memory, which lanes leave."""
        memory = self.view.memory
        stores = [i for i in self.inside if self._memory(i) in (Memory.STORE, Memory.ATOMIC)]
        calls = [i for i in self.inside if self._is_call(i)]

        def stored(index: int) -> list[int]:
            """What may have stored what a statement loads from the lane's own memory."""
            if self._memory(index) is not Memory.LOAD:
                return []
            access = memory.access(index)
            if not {"local", "param", "generic"} & access.spaces:
                return []
            return [*(i for i in stores if memory.may_clash(access, memory.access(i))), *calls]

        return deciding(self.view, self._leaving(), self.inside, stored)

    def _observes(self, index: int) -> bool:
        statement = self.view.body[index]
        if not isinstance(statement, Instruction):
            return False
        if self._is_call(index):
            code = self.view.with_callees(statement)
            # `malloc` may find no memory until another thread frees some.
            if any(observes(i) or (_calls(i) and callee_of(i) not in self._known - {"malloc"}) for i in code):
                return True
            return any(map(loads_common, code)) and (self._has_fence or self._repeats(statement))
        if self._memory(index) is not Memory.LOAD:
            return observes(statement)
        access = self.view.memory.access(index)
        if access.constant or access.spaces <= {"local", "param"}:
            return False
        return observes(statement) or self._has_fence or self._stays(index, statement)

    def _may_try(self, index: int) -> bool:
        """Whether a statement, or what it calls, is an atomic operation."""
        statement = self.view.body[index]
        if not isinstance(statement, Instruction):
            return False
        # The facts of a call say the worst about its callee.
        return any(
            callee_of(i) not in self._known if _calls(i) else isa.facts(i).memory is Memory.ATOMIC
            for i in self.view.with_callees(statement)
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        """The functions whose code is known."""
        return HARMLESS_CALLS | {f.name for f in self.view.module.functions() if f.body is not None}

    def _stays(self, index: int, load: Instruction) -> bool:
        """Whether a load reads one place that nothing in the loop writes: compilers hoist it unless told not to."""
        memory = self.view.memory
        places = (o for o in load.operands if isinstance(o, Address | TextureAddress))
        if not all(self.is_invariant(index, part) for place in places for part in registers_in(place)):
            return False
        access = memory.access(index)
        writes = (i for i in self.inside if memory.may_write(i))
        return not any(memory.may_clash(access, memory.access(i)) for i in writes)

    def _repeats(self, call: Instruction) -> bool:
        """Whether a call reads the same places in each inner iteration, and nothing in the loop writes."""
        code = [(i, s) for i in self.inside if isinstance(s := self.view.body[i], Instruction)]
        if any(writes_elsewhere(inner) for _, s in code for inner in self.view.with_callees(s)):
            return False
        names = set(symbols_of(call))
        arguments = ((i, s) for i, s in code if s.base == "st" and not names.isdisjoint(symbols_of(s)))
        return all(self.is_invariant(i, operand) for i, s in arguments for operand in s.operands[1:])

    @cached_property
    def _has_fence(self) -> bool:
        """Whether the loop, or a function that it calls, asks for what other threads have written."""
        code = (s for i in self.inside if isinstance(s := self.view.body[i], Instruction))
        return any(isa.facts(i).fence for s in code for i in self.view.with_callees(s))

    def _memory(self, index: int) -> Memory:
        statement = self.view.body[index]
        return isa.facts(statement).memory if isinstance(statement, Instruction) else Memory.NONE

    def is_atomic(self, index: int) -> bool:
        """Whether a statement is an atomic operation."""
        return self._memory(index) is Memory.ATOMIC

    def _is_call(self, index: int) -> bool:
        statement = self.view.body[index]
        return isinstance(statement, Instruction) and _calls(statement)

    # --- exits that are taken in the end ---

    def _always(self) -> Iterator[int]:
        """The exiting blocks that each inner iteration reaches."""
        return (b for b in self._leaving() if self.loop.always_runs(b, self.view.dominators))

    def _ends_itself(self, block: int) -> bool:
        """Whether the loop's own progress makes lanes leave it at the end of ``block``."""
        return any(self._is_reached(*test) for test in self._exit_tests(block))

    def _exit_tests(self, block: int) -> Iterator[tuple[int, Instruction, str]]:
        """Comparisons each of which suffices for lanes to leave the loop at the end of ``block`` (see `_tests`)."""
        index = self.view.cfg.blocks[block].stop - 1
        branch = self.view.body[index]
        if not isinstance(branch, Instruction) or branch.guard is None:
            return
        leaves = not branch.guard.negated
        cfg, traps = self.view.cfg, self.view.blocks_of(self.view.traps)
        if branch.base == "bra":
            target = next(t for t in cfg.successors[block] if EdgeKind.TAKEN in cfg.kinds[block, t])
            leaves = leaves == (target not in self.loop.blocks)
        # A watchdog: a lane that comes there has waited in vain.
        if branch.base == "trap" or (traps and not traps.isdisjoint(cfg.successors[block])):
            return
        yield from self._tests(index, branch.guard.register.name, leaves)

    def _tests(self, use: int, name: str, leaves: bool) -> Iterator[tuple[int, Instruction, str]]:
        """Comparisons each of which suffices for lanes to leave, given that they do if the predicate is ``leaves``: the
        statements, and how the operands then compare.
        """
        index = self._only(use, name)
        statement = None if index is None else self.view.body[index]
        if index is None or not isinstance(statement, Instruction) or statement.guard is not None:
            return
        operands = [o for o in statement.operands[1:] if isinstance(o, Register)]
        if statement.opcode == "not.pred" and operands:
            yield from self._tests(index, operands[0].name, not leaves)
        if statement.opcode == ("or.pred" if leaves else "and.pred"):
            for operand in operands:
                yield from self._tests(index, operand.name, leaves)
        if is_comparison(statement) and len(statement.parts) == 3:
            compare = statement.parts[1] if leaves else _OPPOSITE.get(statement.parts[1], "")
            yield index, statement, compare

    def _is_reached(self, test: int, statement: Instruction, compare: str) -> bool:
        _, first, second = statement.operands
        ways = ((first, second, compare), (second, first, _MIRRORED.get(compare, "")))
        return (
            any(self._passes(test, *way) for way in ways)
            or self._succeeding(test, statement, compare) is not None
        )

    def _succeeding(self, test: int, statement: Instruction, compare: str) -> int | None:
        """The compare-and-swap of which a comparison says that it has found what the lane had read."""
        _, first, second = statement.operands
        ways = ((first, second), (second, first)) if compare == "eq" else ()
        return next((swap for way in ways if (swap := self._swap(test, *way)) is not None), None)

    def _passes(self, test: int, growing: Operand, bound: Operand, compare: str) -> bool:
        """Whether the inner iterations bring an operand past a bound that none of them changes."""
        if not isinstance(growing, Register) or not self._is_given(test, bound):
            return False
        grown = _Growth(self, test, growing.name)
        if not grown.steady:
            return False
        up, down = grown.by >= 0, grown.by <= 0 and not grown.claimed
        counted = compare == "eq" and grown.by != 0 and not grown.claimed and self.is_invariant(test, bound)
        return (compare in _GREATER and up) or (compare in _LESS and down) or counted

    def _is_given(self, use: int, operand: Operand) -> bool:
        """Whether no inner iteration changes an operand: it is invariant, or recomputed from what is, and from plain
        loads of fixed places. Another thread may write there, but a lane that counts to such a bound makes progress
        without it.
        """
        if not isinstance(operand, Register) or self.is_invariant(use, operand):
            return True
        index = self._only(use, operand.name)
        statement = None if index is None else self.view.body[index]
        if index is None or not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
            return False
        facts = isa.facts(statement)
        if facts.memory is Memory.LOAD:
            return not self._has_fence and not observes(statement) and self._stays(index, statement)
        if facts.memory is not Memory.NONE or facts.control is not Control.NEXT or not facts.known:
            return False
        return all(
            isinstance(o, (Register, Literal)) and self._is_given(index, o) for o in statement.operands[1:]
        )

    def _swap(self, test: int, result: Operand, expected: Operand) -> int | None:
        """The compare-and-swap of which the operands are what it returned and the value it expected, if that was read
        from its place.
        """
        if not isinstance(result, Register) or not isinstance(expected, Register):
            return None
        swap = self._only(test, result.name)
        statement = None if swap is None else self.view.body[swap]
        if swap is None or not isinstance(statement, Instruction) or statement.parts[0] != "atom":
            return None
        if "cas" not in statement.parts or statement.guard is not None or not self.each_time(swap):
            return None
        reaching = self.view.reaching.reaching
        if statement.operands[2] != expected or reaching(swap, expected.name) != reaching(
            test, expected.name
        ):
            return None
        return swap if self._is_of_place(swap, expected.name, swap, set()) else None

    def _is_of_place(self, use: int, register: str, swap: int, seen: set[int]) -> bool:
        """Whether each iteration of the loop sets the register to what ``swap``, or a load of its place, returned."""
        reaching = self.view.reaching
        if not self.inside.issuperset(
            i for latch in self.loop.latches for i in reaching.reaching_end(latch, register)
        ):
            return False
        for index in reaching.reaching(use, register):
            statement = self.view.body[index] if index != ENTRY else None
            if index in seen or index == swap or index not in self.inside:
                continue
            seen.add(index)
            if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
                return False
            source = statement.operands[1] if len(statement.operands) == 2 else None
            copied = statement.base == "mov" and isinstance(source, Register)
            if copied and isinstance(source, Register) and self._is_of_place(index, source.name, swap, seen):
                continue
            if not (statement.base == "ld" and self.same_place(index, swap)):
                return False
        return True

    def same_place(self, a: int, b: int) -> bool:
        """Whether two statements access the place of one address operand."""
        first, second = (
            next((o for o in s.operands if isinstance(o, Address)), None)
            for s in (self.view.body[a], self.view.body[b])
            if isinstance(s, Instruction)
        )
        if first is None or first != second:
            return False
        reaching = self.view.reaching.reaching
        base = first.base
        return not isinstance(base, Register) or reaching(a, base.name) == reaching(b, base.name)

    def each_time(self, index: int) -> bool:
        """Whether each inner iteration runs the statement."""
        block = self.view.cfg.block_of(index)
        return self.loop.always_runs(block, self.view.dominators)

    def _only(self, use: int, register: str) -> int | None:
        """The one statement of the loop whose result ``use`` reads."""
        found = self.view.reaching.reaching(use, register)
        return next(iter(found)) if len(found) == 1 and found <= self.inside else None

    def is_invariant(self, use: int, operand: Operand) -> bool:
        """Whether nothing in the loop writes the operand that ``use`` reads."""
        if not isinstance(operand, Register):
            return True
        return self.inside.isdisjoint(self.view.reaching.reaching(use, operand.name))


class _Growth:
    """How a register of a loop changes from iteration to iteration. It is ``steady`` if each runs all that changes it,
    and only sums do. ``by`` is the sign of the change, 0 if it is not known; ``claimed`` says that it comes from a
    counter in memory.
    """

    def __init__(self, ends: _Ends, use: int, register: str) -> None:
        self.ends = ends
        self.by = 0
        self.claimed = False
        self._scaled = False
        self._seen: set[int] = set()
        self._steps: set[int] = set()
        linear = self._follow(use, register)
        self.by = max(self._steps) if len(self._steps) == 1 else 0
        apart = {1, -1} <= self._steps
        self.steady = linear and (self.claimed or (bool(self._steps) and not self._scaled and not apart))

    def _follow(self, use: int, register: str) -> bool:
        found = self.ends.view.reaching.reaching(use, register) & self.ends.inside - self._seen
        self._seen |= found
        return all(self._definition(index) for index in found)

    def _definition(self, index: int) -> bool:
        ends = self.ends
        statement = ends.view.body[index]
        assert isinstance(statement, Instruction)
        facts = isa.facts(statement)
        if isa.is_conditional_write(statement) or not ends.each_time(index):
            return False
        if facts.memory is Memory.ATOMIC:
            self.claimed = statement.base == "atom" and facts.reduction == "+"
            return self.claimed and self._claims_more(index, statement)
        varying = [s for s in statement.operands[1:] if not ends.is_invariant(index, s)]
        if facts.memory is not Memory.NONE or len(varying) != 1 or not isinstance(varying[0], Register):
            return False
        return self._changes(facts.arithmetic, statement, varying[0]) and self._follow(index, varying[0].name)

    def _claims_more(self, index: int, atomic: Instruction) -> bool:
        """Whether an addition claims a larger number each time: of an amount that is not negated, and nothing else in
        the loop gives numbers back.
        """
        ends, amount = self.ends, atomic.operands[2]
        memory, step = ends.view.memory, integer(amount)
        others = [i for i in ends.inside if i != index and ends.is_atomic(i)]
        if step is not None:
            return step > 0 and not any(ends.same_place(i, index) for i in others)
        if any(memory.may_clash(memory.access(index), memory.access(i)) for i in others):
            return False
        found = ends.view.reaching.reaching(index, amount.name) if isinstance(amount, Register) else ()
        made = (ends.view.body[i] for i in found if i != ENTRY)
        return not any(isinstance(s, Instruction) and isa.facts(s).arithmetic in _FALLING for s in made)

    def _changes(self, kind: Arithmetic, statement: Instruction, varying: Register) -> bool:
        """Whether an instruction is a step that is understood; its sign is recorded."""
        if kind is Arithmetic.COPY:
            return True
        if kind not in (Arithmetic.SUM, Arithmetic.DIFFERENCE, *_SCALED) or len(statement.operands) != 3:
            return False
        first, second = statement.operands[1:]
        value = integer(second if varying is first else first)
        sign = 0 if value is None else (value > 0) - (value < 0)
        if kind is Arithmetic.SUM or varying is first:
            if kind in _SCALED:
                self._scaled = True
                return value is None or value > 0
            if value != 0:
                self._steps.add(-sign if kind is Arithmetic.DIFFERENCE else sign)
            return True
        return False
