"""The cycles that code takes in a warp running alone: latencies instead of issue slots (`cccopt.analysis.cost`).

A block takes as long as the longest chain of instructions that need one another's results: loads that do not depend on
one another wait together. A block waits for what it loads, even if only another block reads it.

        ld.global.u32 %r1, [%rd1];       0 to 400
        ld.global.u32 %r2, [%rd2];       1 to 401
        add.u32 %r3, %r1, %r2;           401 to 405.5
"""

from __future__ import annotations

from cccopt.analysis.cfg import Block
from cccopt.ptx import isa
from cccopt.ptx.ir import Body, Instruction
from cccopt.ptx.isa import Control, Memory

LOADED = {"global": 400.0, "generic": 400.0, "shared": 30.0, "local": 35.0}
"""Cycles from a load to its result, by state space; `CACHED` for others (parameters, constants). On compute capability
9.0, a load takes about 40 cycles from the first-level cache, 260 from the second-level one and 500 to 800 from memory
(W. Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024): irregular
code meets all three.
"""

CACHED = 8.0

RETURNED = 1.5
"""The latency of an atomic operation that returns a value, relative to that of a load."""

DEPENDENT = 4.5
"""Cycles from an instruction to one that needs its result."""

A_SLOT = 2.0
"""Cycles for each issue slot of a slow instruction, which usually becomes a sequence of machine instructions."""

CALLED = 40.0
"""Cycles of a call and its return, without the callee."""


def latency(instruction: Instruction) -> float:
    """The cycles until another instruction can use the result."""
    facts = isa.facts(instruction)
    if facts.control is Control.CALL:
        return CALLED
    if facts.memory is Memory.NONE:
        return max(DEPENDENT, A_SLOT * facts.slots)
    if not isa.definitions(instruction):
        return 1.0
    loaded = LOADED.get(facts.space or "", CACHED)
    return loaded * RETURNED if facts.memory is Memory.ATOMIC else loaded


def of_block(body: Body, block: Block) -> float:
    """The cycles of one run of a block by a warp that runs alone."""
    now = end = 0.0
    ready: dict[str, float] = {}
    for instruction in (s for index in block.statements() if isinstance(s := body[index], Instruction)):
        now = max([now, *(ready.get(register.name, 0.0) for register in isa.reads(instruction))])
        done = now + latency(instruction)
        now += 1.0
        ready |= {register.name: done for register in isa.definitions(instruction)}
        end = max(end, done)
    return end
