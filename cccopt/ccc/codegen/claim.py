"""The claim of an entry of the pool that holds a warp's stacks in global memory (`cccopt.ccc.plan.pool`).

    claim:      number = hash of block and warp
    attempt:    lane 0: atom.acquire.cas of the entry's claim, 0 -> 1;  all lanes get what it found
                it was 0: bar.warp.sync, and into the rewritten loop
                else the next number, up to `ATTEMPTS`; then the original loop
    ...
    drained:    bar.warp.sync;  lane 0: st.release of 0

A warp never waits for another one here. It leaves the rewritten loop only through `drained` or, before its first
iteration, through a separate release; traps end the launch, and the context with it.

No lane reads what another warp left in an entry, or overwrites what another warp still reads. In terms of the PTX
memory model: all accesses of the warp to the entry come before lane 0's release because of `bar.warp.sync`, which
orders those of all participating threads. The next warp's lane 0 reads what the release wrote with an acquire of the
same scope, so the two synchronize; its other lanes follow because of `bar.warp.sync`. Inside the loop, a lane pops only
slots that a lane of its own warp has pushed since the claim, with a `bar.warp.sync` in between: the push comes before
the pop in causality order, and any other write to the slot comes before that push or after that pop. So the pop returns
what was pushed, whatever line L1 held before.
"""

from __future__ import annotations

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.function.code import FULL_WARP, at, op
from cccopt.ccc.function.graph import UNIFORM, Branch, Jump, Nodes
from cccopt.ccc.plan.pool import Claim
from cccopt.ccc.plan.stack import SLOTS
from cccopt.ptx.ir import Instruction, Literal, Pragma, Register, SpecialRegister, Symbol

ATTEMPTS = 32
"""The most entries that a warp tries. If a fifth of them is free, one warp in a thousand finds none."""

_SPREAD = Literal("0x9E3779B1")
"""2^32 divided by the golden ratio: multiples of it, as fractions of 2^32, lie far apart (Knuth, TAOCP 3, 6.4)."""

_MULTIPLIER, _INCREMENT = Literal("1664525"), Literal("1013904223")
"""A linear congruential generator with a period of 2^32 (Press et al., "Numerical Recipes", 7.1)."""


def claim(plan: Claim, number: Register, loop: str, original: str, builder: Builder, nodes: Nodes) -> str:
    """Adds the nodes that lead to ``loop`` with an entry of the pool, or to ``original`` without one; returns the
    first's name.

    ``number`` is the number of the warp in the grid, as `warp_number` computes it; the code overwrites it.
    """
    register = builder.register
    lane, index, left, old, found = (register() for _ in range(5))
    leader, free, more = (builder.flag() for _ in range(3))
    pool = register("b64")
    attempt = builder.label("attempt")
    claimed = builder.node(nodes, builder.label("claimed"), [op("bar.warp.sync", FULL_WARP)], Jump(loop))
    again = [
        op("mad.lo.u32", number, number, _MULTIPLIER, _INCREMENT),
        op("sub.u32", left, left, 1),
        op("setp.ne.s32", more.register, left, 0),
    ]
    retry = builder.node(nodes, builder.label("retry"), again, Branch(more, attempt, original, UNIFORM))
    code = [
        op("mul.hi.u32", index, number, plan.pool.entries),
        op("mad.wide.u32", plan.entry, index, plan.pool.entry_bytes, pool),
        # What the other lanes hold does not matter, but ptxas should see it written.
        op("mov.u32", old, 1),
        op("atom.acquire.gpu.global.cas.b32", old, at(plan.entry), 0, 1, guard=leader),
        op("shfl.sync.idx.b32", found, old, 0, SLOTS - 1, FULL_WARP),
        op("setp.eq.s32", free.register, found, 0),
    ]
    builder.node(nodes, attempt, [Pragma(("nounroll",)), *code], Branch(free, claimed, retry, UNIFORM))
    start = [
        op("mov.u32", lane, SpecialRegister("%laneid")),
        op("setp.eq.s32", leader.register, lane, 0),
        op("mov.u64", pool, Symbol(plan.pool.name)),
        op("mul.lo.u32", number, number, _SPREAD),
        op("mov.u32", left, ATTEMPTS),
    ]
    return builder.phase(nodes, f"claim_{builder.region}", start, Jump(attempt))


def warp_number(first_thread: Register, warps: int, builder: Builder) -> tuple[Register, list[Instruction]]:
    """The register with the number in the grid of the warp that begins at ``first_thread`` of its block, and the code
    that computes it; a block has ``warps`` warps. In large grids and clusters, numbers wrap: they need not be unique.
    """
    block, extent, index, warp = (builder.register() for _ in range(4))
    return warp, [
        op("mov.u32", block, SpecialRegister("%ctaid.z")),
        op("mov.u32", extent, SpecialRegister("%nctaid.y")),
        op("mov.u32", index, SpecialRegister("%ctaid.y")),
        op("mad.lo.u32", block, block, extent, index),
        op("mov.u32", extent, SpecialRegister("%nctaid.x")),
        op("mov.u32", index, SpecialRegister("%ctaid.x")),
        op("mad.lo.u32", block, block, extent, index),
        op("shr.u32", warp, first_thread, 5),
        op("mad.lo.u32", warp, block, warps, warp),
    ]


def release(plan: Claim | None, lane: Register, builder: Builder) -> list[Instruction]:
    """Gives the entry back, after a `bar.warp.sync`; ``lane`` is the register with the lane's number."""
    if plan is None:
        return []
    first = builder.flag()
    return [
        op("setp.eq.s32", first.register, lane, 0),
        op("st.release.gpu.global.b32", at(plan.entry), 0, guard=first),
    ]
