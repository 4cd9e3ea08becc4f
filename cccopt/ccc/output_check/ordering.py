"""Is each access to the stacks, and to what tasks write, ordered after the earlier accesses of other lanes?

The lanes of a warp run in no particular order. Only `bar.warp.sync` orders what one lane wrote before what another one
reads (PTX ISA 9.0, 9.7.13: `vote` and `shfl` do not order memory). A forward data-flow analysis of the rewritten loop
tracks what may be *pending*: done by some lane, with no barrier since on some path. It is an error if

* a stack is loaded from while stores to it are pending, or stored to while loads are;
* a part is given to an owner's slot while the owner's own accesses are pending, or the owner reads it too early;
* an expanded window begins while memory accesses of the iteration, or of other inner iterations, are pending: the
  window runs in other lanes than these;
* control leaves the loop while accesses to stacks, parts given to owners or memory accesses of tasks are pending;
* control leaves the loop while tasks may still wait on some stack;
* a stack in global memory is accessed when the warp may hold no entry of the pool, or has passed no barrier since it
  claimed one; an entry is given back while accesses are pending, or is kept.

A stack counts as empty once its counter is found to be zero, or once each lane below the counter takes a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import or_

from cccopt.analysis.dataflow import Analysis, Direction, FlowGraph, solve
from cccopt.ccc.output_check.accesses import OWNED, StackAddresses
from cccopt.ccc.output_check.claims import Claims
from cccopt.ccc.output_check.draining import drained
from cccopt.ccc.output_check.regions import LoopCode, Violation
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Register
from cccopt.ptx.isa import Control, Facts, Memory

OWN, INNER, TASKS, FOREIGN, GIVEN, OWNER, NONE, HELD, CLAIMED, FIRST = (1 << bit for bit in range(10))
"""What may be pending: accesses of the iteration (`OWN`), of expanded inner iterations (`INNER`), of tasks (`FOREIGN`);
parts given to owners' slots (`GIVEN`); owners' accesses to their slots (`OWNER`). `TASKS`: lanes may already run tasks
of others. The warp may hold no entry of the pool (`NONE`), may hold one (`HELD`), or may have claimed it without a
barrier since (`CLAIMED`). From `FIRST` onwards, the bits of each stack.
"""

_WHY = {
    OWN: "memory accesses of the iteration",
    INNER: "memory accesses of other inner iterations",
    FOREIGN: "memory accesses of tasks",
    GIVEN: "updates of owners' slots",
    OWNER: "accesses of owners to their slots",
    CLAIMED: "the claim of an entry of the pool",
}


@dataclass(frozen=True, slots=True)
class _Event:
    """A statement's effect on what is pending: it is an error if any of ``forbidden`` is pending; ``cleared`` is
    removed, ``added`` is added, and ``then`` is added too if any of ``when`` is pending.
    """

    statement: int
    forbidden: int = 0
    cleared: int = 0
    added: int = 0
    when: int = 0
    then: int = 0

    def apply(self, state: int) -> int:
        state = state & ~self.cleared | self.added
        return state | self.then if state & self.when else state


def ordering_violations(loop: LoopCode) -> Iterator[Violation]:
    """Accesses that no barrier orders, and tasks that may never run."""
    bits = _Bits(loop)
    reader = _EventReader(loop, bits)
    events = {block: reader.events(block) for block in loop.blocks}

    def transfer(block: int, state: int) -> int:
        for event in events[block]:
            state = event.apply(state)
        return state

    graph = FlowGraph(loop.successors, frozenset({loop.entry}), loop.leaving)
    # What the iteration finds in memory may have been written just before the loop.
    start = OWN if loop.facts.pool is None else OWN | NONE
    before = solve(Analysis(Direction.FORWARD, start, 0, or_, transfer), graph).before
    for block in loop.blocks:
        state = before[block]
        for event in events[block]:
            if state & event.forbidden:
                yield Violation(event.statement, bits.pending(state & event.forbidden))
            state = event.apply(state)
        if block in loop.leaving and state & bits.outside:
            last = loop.code.cfg.blocks[block].stop - 1
            yield Violation(last, f"control leaves the loop: {bits.pending(state & bits.outside)}")
    yield from reader.strays


class _Bits:
    """The bits of each stack: pending stores, pending loads, and tasks that may wait, for each sorted path."""

    def __init__(self, loop: LoopCode) -> None:
        self.stores: list[int] = []
        self.loads: list[int] = []
        self.waiting: list[list[int]] = []
        self.texts = dict(_WHY)
        self.barrier = OWN | INNER | FOREIGN | GIVEN | OWNER | CLAIMED
        self.outside = FOREIGN | GIVEN | HELD
        following = FIRST
        for stack in loop.facts.stacks:
            store, load, *waiting = (following << bit for bit in range(2 + max(stack.sorted_paths, 1)))
            following <<= 2 + len(waiting)
            self.stores.append(store)
            self.loads.append(load)
            self.waiting.append(waiting)
            self.texts[store] = f"stores to the stack of `{stack.counter}`"
            self.texts[load] = f"loads from the stack of `{stack.counter}`"
            self.texts |= dict.fromkeys(waiting, f"tasks on the stack of `{stack.counter}`")
            self.barrier |= store | load
            self.outside |= store | load | sum(waiting)

    def pending(self, state: int) -> str:
        """What is pending, in words."""
        if state & NONE:
            return "the warp may have no entry of the pool"
        if state & HELD:
            return "an entry of the pool may be left claimed"
        bit, text = next((bit, text) for bit, text in self.texts.items() if bit & state)
        waits = any(bit in bits for bits in self.waiting)
        return f"{text} may be left over" if waits else f"no `bar.warp.sync` orders this after {text}"


class _EventReader:
    """Reads the events of blocks; ``strays`` are accesses to the stacks' memory that belong to no stack."""

    def __init__(self, loop: LoopCode, bits: _Bits) -> None:
        self.loop = loop
        self.bits = bits
        self.addresses = StackAddresses(loop)
        self.drained = drained(loop, self.addresses)
        self.claims = Claims(loop, self.addresses)
        self.strays: list[Violation] = []

    def events(self, block: int) -> list[_Event]:
        """The events of a block in order."""
        start = self.loop.code.cfg.blocks[block].start
        found: list[_Event] = []
        if self.claims.has_claimed(block):
            found.append(_Event(start, cleared=NONE, added=HELD | CLAIMED))
        if block in self.loop.windows:
            found.append(_Event(start, forbidden=OWN, added=TASKS))
        if block not in self.loop.expansions:
            # Outside of expansions, pending inner iterations precede those of the next such loop.
            found.append(_Event(start, when=INNER, then=OWN))
        for index, instruction in self.loop.code.instructions(block):
            found += self._of(index, instruction, block)
        gone = sum(self.bits.waiting[stack][path] for stack, path in self.drained.get(block, ()))
        if gone:
            found.append(_Event(start, cleared=gone))
        return found

    def _of(self, index: int, instruction: Instruction, block: int) -> Iterator[_Event]:
        bits = self.bits
        if self.loop.is_barrier(instruction):
            yield _Event(index, cleared=bits.barrier)
            return
        facts = isa.facts(instruction)
        if instruction.base == "add" and isinstance(instruction.operands[0], Register):
            stack = self.addresses.counters.get(instruction.operands[0].name)
            if stack is not None:
                yield _Event(index, added=sum(bits.waiting[stack]))
        elif self.claims.tries(instruction):
            yield _Event(index, forbidden=HELD)
        elif self.claims.releases(instruction):
            pending = sum(bits.stores) | sum(bits.loads)
            yield _Event(index, forbidden=pending | NONE, cleared=HELD, added=NONE)
        elif facts.space in ("shared", "global") and self.addresses.are_of(instruction):
            yield from self._of_stacks(index, instruction)
        elif _touches_memory(facts):
            own = INNER if block in self.loop.inner_iterations else OWN
            yield _Event(index, added=own, when=TASKS, then=FOREIGN)

    def _of_stacks(self, index: int, instruction: Instruction) -> Iterator[_Event]:
        bits = self.bits
        stack = self.addresses.stack_of(instruction)
        if isa.facts(instruction).memory is Memory.ATOMIC:
            yield _Event(index, forbidden=OWNER, added=GIVEN)
        elif stack is None:
            self.strays.append(Violation(index, "this belongs to none of the loop's stacks"))
        elif stack == OWNED:
            yield _Event(index, forbidden=GIVEN, added=OWNER)
        elif instruction.base == "st":
            yield _Event(index, forbidden=bits.loads[stack] | NONE | CLAIMED, added=bits.stores[stack])
        else:
            waits = bits.stores[stack] | NONE | CLAIMED
            yield _Event(index, forbidden=waits, added=bits.loads[stack] | TASKS)


def _touches_memory(facts: Facts) -> bool:
    if facts.control is Control.CALL or not facts.known:
        return True
    return facts.memory is not Memory.NONE and facts.space not in ("param", "const")
