"""Do all lanes of a rewritten loop reach each vote, shuffle and barrier that the rewrite added?

All lanes enter a rewritten loop together: either only a full `activemask` leads to it, or its entry asks `activemask`
which lanes are there (the in-lane form) and each vote names these. From there onwards, lanes diverge at *varying*
branches, whose conditions may differ between lanes, and reconverge at the branch's immediate post-dominator. So they
are together in a block that no varying branch decides, directly or through other branches (control dependence).

A condition is uniform if it is computed from literals, special registers of the block or the grid, votes, and shuffles
from one lane to all. All lanes must run these instructions, and the rewrite must have added the register of the result.
All other conditions vary.

        vote.sync.ballot.b32 %b, %p, %full;     %b is uniform, %p need not be
        popc.b32 %n, %b;                        %n is uniform
        setp.ge.s32 %q, %top, %n;               %q is uniform if %top is
        @%q bra TAKE;                           all 32 lanes reach TAKE, or none

Ferrante, Ottenstein, Warren, "The program dependence graph and its use in optimization", TOPLAS 9(3), 1987;
Coutinho, Sampaio, Pereira, Meira, "Divergence analysis and optimizations", PACT 2011.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cccopt.analysis import effects
from cccopt.analysis.constancy import UNIFORM_SPECIAL_REGISTERS
from cccopt.ccc.output_check.regions import LoopCode, Violation
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Literal, Register
from cccopt.ptx.isa import Control, Memory


def convergence_violations(loop: LoopCode) -> Iterator[Violation]:
    """Collectives of the rewrite that lanes may not reach together, and an entry that a partial warp may pass."""
    code = loop.code
    if loop.facts.lanes and not _asks_for_lanes(loop):
        yield Violation(code.cfg.blocks[loop.entry].start, "the mask does not name all lanes that enter")
    if not loop.facts.lanes and not loop.full_mask:
        yield Violation(code.cfg.blocks[loop.entry].start, "a partial warp may enter the rewritten loop")
    apart, varying = parted(loop)
    for block in loop.blocks:
        end = loop.end_of(block)
        for index, instruction in code.instructions(block):
            made_barrier = instruction.opcode.startswith("bar.warp") and not code.has_own_barriers
            if not _is_collective(instruction) or not (made_barrier or code.makes(instruction)):
                continue
            if "activemask" in instruction.parts and block == loop.entry and loop.facts.lanes:
                continue
            if "sync" not in instruction.parts or not loop.names_all_lanes(instruction):
                yield Violation(index, "this does not name all lanes")
            elif instruction.guard is not None:
                yield Violation(index, "some lanes may pass this under a false guard")
            elif block in apart:
                yield Violation(
                    index, f"some lanes may not reach this: {_reason(loop, block, apart, varying)}"
                )
            if index == end:
                break


def _is_collective(instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    return facts.convergent and facts.control is Control.NEXT and facts.memory is Memory.NONE


def parted(loop: LoopCode) -> tuple[frozenset[int], frozenset[int]]:
    """The blocks that lanes may reach at different times or not at all, and those that end in a varying branch."""
    code = loop.code
    dependants: dict[int, list[int]] = {}
    for block, branches in loop.dependence.items():
        for branch in branches:
            dependants.setdefault(branch, []).append(block)
    seen: set[str] = set()
    apart: set[int] = set()
    varying: set[int] = set()
    work: list[str] = []

    def vary(names: Collection[str]) -> None:
        new = [name for name in names if name not in seen]
        seen.update(new)
        work.extend(new)

    def part(branch: int) -> None:
        varying.add(branch)
        pending = [*dependants.get(branch, ())]
        while pending:
            block = pending.pop()
            if block not in apart:
                apart.add(block)
                pending += dependants.get(block, ())
                for _, instruction in code.instructions(block):
                    vary(effects.writes(instruction))

    ends = {block: end for block in loop.blocks if (end := code.ending(block)) is not None}
    for block, end in ends.items():
        if not _relevant(loop, end) <= code.definitions.keys():
            part(block)
    readers: dict[str, list[tuple[int, Instruction]]] = {}
    for block in loop.blocks:
        if block in apart:
            continue
        for _, instruction in code.instructions(block):
            ending = instruction is ends.get(block)
            if not ending and not code.makes(instruction):
                continue
            needed = _relevant(loop, instruction)
            if ending or (needed <= code.definitions.keys() and _may_be_uniform(loop, instruction)):
                for name in needed:
                    readers.setdefault(name, []).append((block, instruction))
            else:
                vary(effects.writes(instruction))
    inside = frozenset(i for block in loop.blocks for i in code.cfg.blocks[block].statements())
    vary([n for n in readers if not inside.issuperset(code.definitions.get(n, (-1,)))])
    while work:
        for block, instruction in readers.get(work.pop(), ()):
            vary(effects.writes(instruction))
            if isa.facts(instruction).control is not Control.NEXT:
                part(block)
    return frozenset(apart), frozenset(varying)


def _relevant(loop: LoopCode, instruction: Instruction) -> frozenset[str]:
    """The registers that decide whether the instruction has one result for the whole warp."""
    if _is_vote(loop, instruction):
        return frozenset()
    if _is_broadcast(loop, instruction):
        # It matters which lane is read, not what the others hold.
        return frozenset(o.name for o in instruction.operands[2:-1] if isinstance(o, Register))
    return effects.needs(instruction)


def _may_be_uniform(loop: LoopCode, instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    if not facts.known or not effects.special_registers(instruction) <= UNIFORM_SPECIAL_REGISTERS:
        return False
    if _is_vote(loop, instruction) or _is_broadcast(loop, instruction):
        return True
    return facts.control is not Control.CALL and facts.memory is Memory.NONE and facts.pure


def _is_vote(loop: LoopCode, instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    return facts.uniform and instruction.guard is None and loop.names_all_lanes(instruction)


def _is_broadcast(loop: LoopCode, instruction: Instruction) -> bool:
    """`shfl.sync.idx d, a, lane, 31, mask`: each lane gets ``a`` of the lane numbered ``lane``."""
    if instruction.parts[:3] != ("shfl", "sync", "idx") or instruction.guard is not None:
        return False
    clamp = instruction.operands[3] if len(instruction.operands) == 5 else None
    return (
        loop.names_all_lanes(instruction) and isinstance(clamp, Literal) and clamp.spelling in ("31", "0x1f")
    )


def _asks_for_lanes(loop: LoopCode) -> bool:
    """Whether the mask of the lanes is read from `activemask` at the entry, and only once."""
    code, entry = loop.code, loop.entry
    made = code.definitions.get(loop.facts.lanes, [])
    first = code.body[made[0]] if len(made) == 1 else None
    asked = isinstance(first, Instruction) and first.base == "activemask" and first.guard is None
    again = any(source in loop.successors for source in code.cfg.predecessors[entry])
    return asked and code.cfg.block_of(made[0]) == entry and not again


def _reason(loop: LoopCode, block: int, apart: frozenset[int], varying: frozenset[int]) -> str:
    """The branch that separates the lanes that reach ``block``, in words."""
    seen: set[int] = set()
    work = [block]
    while work:
        for branch in sorted(loop.dependence[work.pop()] - seen):
            seen.add(branch)
            if branch in varying:
                return f"they diverge in block `{loop.code.cfg.blocks[branch].label or branch}`"
            work.append(branch)
    return "they diverge before it"
