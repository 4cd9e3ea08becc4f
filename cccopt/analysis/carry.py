"""Where a thread's carry flag is live: `add.cc` and the like set it, `addc` and the like read it, and neither has it as
an operand (PTX ISA 9.0, 9.7.2, extended-precision arithmetic).

        B0: add.cc.u32  %r1, %r2, %r3;      not live: it is set before it is read
            @%p1 bra    B2;
        B1: add.u32     %r4, %r4, 1;        live, for `addc`
        B2: addc.u32    %r5, %r6, %r7;      live
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Statement


def carry_readers(cfg: ControlFlowGraph, body: Sequence[Statement]) -> Mapping[int, int]:
    """For each block at whose beginning the carry flag is live, a statement that may read its value."""
    found: dict[int, int] = {}
    setting: set[int] = set()
    for block in cfg.blocks:
        for index in block.statements():
            statement = body[index]
            if not isinstance(statement, Instruction):
                continue
            if isa.facts(statement).carries:
                found[block.index] = index
                break
            # A guarded instruction leaves the flag of some lanes as it was.
            if isa.facts(statement).sets_carry and statement.guard is None:
                setting.add(block.index)
                break
    work = list(found)
    while work:
        after = work.pop()
        for before in cfg.predecessors[after]:
            if before not in setting and before not in found:
                found[before] = found[after]
                work.append(before)
    return found
