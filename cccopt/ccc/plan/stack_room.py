"""Where a plan puts the stacks of a region: shared memory, or global memory if that is too small."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import StackMemory
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.plan.block_size import whole_warps
from cccopt.ccc.plan.partials import Slots
from cccopt.ccc.plan.pool import HEAD, Claim, check_pools, pool_for
from cccopt.ccc.plan.stack import GLOBAL, SHARED, SLOTS, StateSpace
from cccopt.ptx.ir import Register
from cccopt.text import Place


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What a user says about stacks: the ``memory`` that holds them, and how many blocks run at once (None: as many as
    fit on the largest device of the target).
    """

    memory: StackMemory = StackMemory.AUTO
    resident: int | None = None


ANY_MEMORY = StackOptions()

_Plan = TypeVar("_Plan")


def first_that_fits(options: StackOptions, plan: Callable[[StateSpace], _Plan]) -> _Plan:
    """The plan with stacks in shared memory, or in global memory if they do not fit there or ``options`` ask for it.

    Raises Refusal.
    """
    if options.memory is not StackMemory.GLOBAL:
        try:
            return plan(SHARED)
        except Refusal as problem:
            if options.memory is StackMemory.SHARED or problem.diagnostics[0].code != refusal.STACK.code:
                raise
    return plan(GLOBAL)


@dataclass(frozen=True, slots=True)
class StackRoom:
    """The memory for the stacks of ``warps`` warps in ``space``: those of a block of ``threads``, after the owners'
    ``slots``, or those of the one warp that has claimed the pool's ``entry``.
    """

    view: View
    space: StateSpace
    threads: int
    slots: Slots
    entry: Register | None

    @classmethod
    def of(cls, view: View, space: StateSpace, threads: int, slots: Slots) -> StackRoom:
        """The memory in ``space`` for blocks of up to ``threads`` threads."""
        return cls(view, space, threads, slots, view.names.register("b64") if space is GLOBAL else None)

    @property
    def warps(self) -> int:
        """How many warps have their stacks there."""
        return whole_warps(self.threads) // SLOTS if self.space is SHARED else 1

    @property
    def start(self) -> int:
        """Where stacks may begin, in bytes."""
        return self.slots.bytes if self.space is SHARED else HEAD

    def shared_bytes(self, end: int) -> int:
        """The bytes of shared memory that stacks ending at byte ``end`` take, including the owners' slots."""
        return end if self.space is SHARED else self.slots.bytes

    def bases(self, sizes: Iterable[int]) -> dict[int, Register]:
        """Registers for the warp's own base addresses, by word size; in global memory, the entry's for all sizes."""
        register = self.view.names.register
        return {size: register(self.space.address) if self.entry is None else self.entry for size in sizes}

    def claim(self, end: int, options: StackOptions, place: Place | None) -> Claim | None:
        """The claim of an entry whose stacks end at byte ``end``, if they are there and not empty. Raises Refusal."""
        if self.entry is None or end == HEAD:
            return None
        pool = pool_for(self.view.module, self.threads, end, options.resident)
        check_pools([pool], place)
        return Claim(pool, self.entry)
