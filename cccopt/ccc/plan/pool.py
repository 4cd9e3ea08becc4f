"""The pool of stacks in global memory: entries, each with room for the stacks of one warp at one loop.

A warp claims an entry before the loop and releases it after the drain (`cccopt.ccc.codegen.claim`); if it finds none,
it runs the original loop. The stacks of a warp are a few kilobytes, which L1 mostly holds.

    byte 0 of an entry      1 while a warp has it; else 0, as all bytes are when the module is loaded
    byte 128 on             the stacks

There are entries for all warps that the largest device of the target runs at once, and a quarter more. So a fifth is
free even then, and a warp finds one after five tries on average. Loops with entries of equal size share a pool, even if
their kernels run at the same time: only claims decide which warp has an entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.ccc.outcome.stack_pool import StackPool
from cccopt.ccc.plan.devices import warps_at_once
from cccopt.ptx.ir import Function, Module, Register, Variable
from cccopt.text import Place

HEAD = 128
"""Bytes before the stacks of an entry, of which the claim takes four: a line of L1, so stacks begin on a new line."""

LARGEST = 1 << 30
"""Bytes that the pools of a module may take together: the device has that much less while the module is loaded."""

_GRAIN = 1024
"""The size of an entry is a multiple of this many bytes, so more loops share a pool."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A plan's use of a pool: ``entry`` is the register with the address of the warp's entry."""

    pool: StackPool
    entry: Register


def pool_for(module: Module, threads: int, end: int, resident: int | None) -> StackPool:
    """The pool for stacks that end at byte ``end`` of an entry, in ``resident`` blocks of up to ``threads`` threads at
    once; if ``resident`` is None, for as many warps as the target's largest device holds.
    """
    warps = warps_at_once(module, threads, resident)
    return StackPool(warps + (warps + 3) // 4, (end + _GRAIN - 1) // _GRAIN * _GRAIN)


def check_pools(pools: Iterable[StackPool], place: Place | None) -> None:
    """Raises Refusal if the pools of a module take too much memory."""
    needed = sum(pool.bytes for pool in pools)
    if needed > LARGEST:
        raise refuse(refusal.STACK_POOL, place, f"{needed:,}", f"{LARGEST:,}")


def with_pools(module: Module, pools: Iterable[StackPool]) -> Module:
    """The module with the variables of ``pools`` that it does not have yet."""
    made = (Variable("global", ".b8", p.name, (p.bytes,), alignment=HEAD) for p in dict.fromkeys(pools))
    missing = [variable for variable in made if variable not in module.items]
    first = next((i for i, item in enumerate(module.items) if isinstance(item, Function)), len(module.items))
    return Module((*module.items[:first], *missing, *module.items[first:]))
