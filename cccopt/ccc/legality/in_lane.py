"""What must hold for the in-lane form (`cccopt.ccc.plan.in_lane`): each rule states it, and the code transcribes it.

Each lane runs its own instructions in order, so neither the user's promise nor a rule on values, memory order or local
memory is needed. What changes is which lanes run together, and when a lane runs: PTX has left both open since `sm_70`.
The rules still refuse what depends on either, in the marked loop L and in what it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.ccc.function.annotations import vouches
from cccopt.ccc.function.calls import (
    HARMLESS_CALLS,
    called,
    called_code,
    callees,
    shared_variables,
    with_callees,
)
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.observing import observes
from cccopt.ccc.legality.waiting import waiting
from cccopt.ccc.outcome import in_lane_rules
from cccopt.ccc.outcome.refusal import Refusal, Rule, refuse
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ptx import isa
from cccopt.ptx.ir import Directive, Function, Instruction
from cccopt.ptx.isa import Control, Memory, callee_of, is_indirect_call

LEAST_TARGET = 70
"""The first target whose lanes have their own program counters."""

_CLOCKS = ("%clock", "%globaltimer", "%pm")
"""Prefixes of the names of registers that show how much time has passed."""


def check_in_lane(view: View, region: Region) -> None:
    """Raises Refusal for the first rule that the region breaks."""
    rules = _Rules(view, region)
    rules.lanes_can_wait()
    rules.known_instructions()
    rules.no_opaque_call()
    rules.no_barrier()
    rules.no_collective()
    rules.no_clock()
    rules.no_waiting()
    rules.no_exchange()


@dataclass(frozen=True)
class _Rules:
    view: View
    region: Region

    def lanes_can_wait(self) -> None:
        """Lanes of the target have their own program counters."""
        words = (
            d.arguments for d in self.view.module.items if isinstance(d, Directive) and d.name == ".target"
        )
        for target in (str(word) for found in words for word in found):
            number = re.fullmatch(r"sm_(\d+)[af]?", target)
            if number is not None and int(number[1]) < LEAST_TARGET:
                raise refuse(in_lane_rules.TARGET, self.region.annotation.place, target)

    def known_instructions(self) -> None:
        """Every instruction that L runs is in the instruction table."""
        for index, instruction in self._all_instructions:
            if not isa.facts(instruction).known:
                raise self._refuse(in_lane_rules.UNKNOWN, index, instruction.opcode)

    def no_opaque_call(self) -> None:
        """Every call is to a function whose body is known, that the user vouches for, or that is harmless."""
        seen = {f.name for f in self.view.module.functions() if f.body is not None} | HARMLESS_CALLS
        for index, instruction in self._all_instructions:
            if isa.facts(instruction).control is not Control.CALL:
                continue
            callee = callee_of(instruction)
            if callee is None or (callee not in seen and not vouches(self.region.annotation, callee)):
                raise self._refuse(in_lane_rules.CALL, index)

    def no_barrier(self) -> None:
        """No instruction waits for other warps or for copies in flight, or is something that such a wait waits for (an
        arrival, a copy that begins).
        """
        for index, instruction in self._all_instructions:
            facts = isa.facts(instruction)
            if facts.waits or facts.barrier:
                raise self._refuse(in_lane_rules.BARRIER, index, instruction.opcode)

    def no_collective(self) -> None:
        """No instruction depends on which lanes run it together. This includes a branch, in a function that L calls,
        that promises that all of them agree (``.uni``); in L itself, the rewrite removes that suffix.
        """
        for index, instruction in self._all_instructions:
            facts = isa.facts(instruction)
            calls = facts.control is Control.CALL
            together = not calls and (facts.convergent or facts.aligned or facts.collective)
            agrees = "uni" in instruction.parts and instruction.guard is not None
            agrees |= "uni" in instruction.parts and facts.control is Control.INDEXED
            if together or (agrees and instruction is not self.view.body[index]):
                raise self._refuse(in_lane_rules.COLLECTIVE, index, instruction.opcode)

    def no_clock(self) -> None:
        """No instruction reads how much time has passed."""
        for index, instruction in self._all_instructions:
            for name in sorted(effects.special_registers(instruction)):
                if name.startswith(_CLOCKS):
                    raise self._refuse(in_lane_rules.CLOCK, index, name)

    def no_waiting(self) -> None:
        """Each loop ends by itself (`cccopt.ccc.legality.waiting`), and so does each recursive function."""
        nest = self.view.blocks_of(self.region.nodes)
        found = waiting(self.view, (loop for loop in self.view.loops if loop.blocks <= nest))
        if found is not None:
            raise self._refuse(in_lane_rules.WAITING, found)
        for index, instruction in self.view.instructions(self.region.nodes):
            if any(map(self._may_wait, self._called(instruction))):
                raise self._refuse(in_lane_rules.WAITING, index)

    def no_exchange(self) -> None:
        """No two accesses, one of which writes, may touch the same shared memory, or the same memory if one of them is
        volatile, unless both are atomics. The clause `independent` vouches for that.
        """
        points = (point.annotation for point in self.region.points)
        if self.region.annotation.independent or all(point.independent for point in points):
            return
        for index, instruction in self.view.instructions(self.region.nodes):
            inner = with_callees(self.view.module, instruction)[1:]
            if any(map(self._is_volatile, inner)) or (
                inner and self._has_shared and any(map(_stores, inner))
            ):
                raise self._refuse(in_lane_rules.EXCHANGE, index)
        self._no_exchange_in_loop()

    # --- helpers of the rules ---

    @cached_property
    def _all_instructions(self) -> tuple[tuple[int, Instruction], ...]:
        """All instructions that L may run, each with the statement of L that it is or that calls it."""
        module = self.view.module
        own = self.view.instructions(self.region.nodes)
        return tuple((index, inner) for index, i in own for inner in with_callees(module, i))

    def _called(self, instruction: Instruction) -> Iterator[Function]:
        callee = callee_of(instruction) if isa.facts(instruction).control is Control.CALL else None
        names = set() if callee is None else called(self.view.module, [callee])
        return (f for f in self.view.module.functions() if f.name in names and f.body is not None)

    def _may_wait(self, function: Function) -> bool:
        """Whether a loop or the recursion of a function may wait."""
        inner = view_of(self.view.module, function)
        recursive = function.name in called(self.view.module, callees(function))
        if waiting(inner, inner.loops) is not None:
            return True
        body = function.body or ()
        return bool(recursive or inner.irreducible) and any(
            isinstance(s, Instruction) and (observes(s) or isa.facts(s).fence) for s in body
        )

    def _no_exchange_in_loop(self) -> None:
        memory = self.view.memory
        found = [
            (i, s)
            for i, s in self.view.instructions(self.region.nodes)
            if isa.facts(s).memory is not Memory.NONE and (self._is_volatile(s) or self._may_be_shared(i))
        ]
        stores = [(i, s) for i, s in self.view.instructions(self.region.nodes) if memory.may_write(i)]
        for i, s in found:
            for j, other in stores:
                atomics = isa.facts(s).memory is Memory.ATOMIC and isa.facts(other).memory is Memory.ATOMIC
                if i == j or atomics or not (self._loads(i, s) or self._loads(j, other)):
                    continue
                if memory.may_clash(memory.access(i), memory.access(j)):
                    raise self._refuse(in_lane_rules.EXCHANGE, i)

    def _loads(self, index: int, instruction: Instruction) -> bool:
        facts = isa.facts(instruction)
        if facts.control is Control.CALL:
            return self.view.memory.accesses_memory(index)
        return facts.memory is Memory.LOAD or (
            facts.memory is Memory.ATOMIC and bool(isa.definitions(instruction))
        )

    def _is_volatile(self, instruction: Instruction) -> bool:
        facts = isa.facts(instruction)
        return facts.memory is not Memory.NONE and facts.volatile

    def _may_be_shared(self, index: int) -> bool:
        spaces = self.view.memory.spaces(index)
        return "shared" in spaces or ("generic" in spaces and self._has_shared)

    @cached_property
    def _has_shared(self) -> bool:
        """Whether a generic address may point into shared memory: a function that runs together with this one has some,
        or an unknown caller may.
        """
        module, own = self.view.module, self.view.function
        if own.kind == "entry" and not any(is_indirect_call(i) for i in called_code(module, own.name)):
            return bool(shared_variables(module, own))
        outside = own.kind != "entry" and "visible" in own.linkage
        return outside or any(shared_variables(module, function) for function in (own, *module.functions()))

    def _refuse(self, rule: Rule, index: int, *details: object) -> Refusal:
        notes = self.view.origins.notes("here", index)
        return refuse(rule, self.region.annotation.place, *details, notes=notes)


def _stores(instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    return facts.memory in (Memory.STORE, Memory.ATOMIC) and facts.space in ("shared", "generic")
