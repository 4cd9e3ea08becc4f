"""Where a rewritten loop runs the tasks that are left on a stack.

        setp.ne.s32 %some, %top, 0;             left: an empty stack is passed by
        @!%some bra FOLLOWING;
        setp.lt.s32 %mine, %lane, %top;         drain: each lane below the counter takes one task
        @!%mine bra FOLLOWING;                  or the loads have the guard
        ld.shared.b32 %r5, [%at+1024];

        setp.ne.s32 %some, %top, 0;             a loop that takes tasks until none is left
        @%some bra AGAIN;

One lane per path counts the tasks of sorted paths, so their counter comes from a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cccopt.ccc.output_check.accesses import StackAddresses
from cccopt.ccc.output_check.regions import LoopCode, is_lane
from cccopt.ptx.ir import Guard, Instruction, Literal, Register

Tasks = tuple[int, int]
"""The number of a stack, and that of a sorted path in it (0 if there is none)."""


def drained(loop: LoopCode, addresses: StackAddresses) -> Mapping[int, frozenset[Tasks]]:
    """For each block, the tasks that surely no longer wait on any path from it."""
    found = {block: frozenset(_taken(loop, addresses, block)) for block in loop.blocks}
    tests = {block: frozenset(_passed(loop, addresses, block, found)) for block in loop.blocks}
    ends = {block: frozenset(_found_empty(loop, addresses, block)) for block in loop.blocks}
    gone = {block: found[block] | tests[block] | ends[block] for block in loop.blocks}
    return {block: tasks for block, tasks in gone.items() if tasks}


def _taken(loop: LoopCode, addresses: StackAddresses, block: int) -> Iterator[Tasks]:
    """The tasks that lanes below a counter take, here or where the branch of the block leads them."""
    code = loop.code
    counts: dict[str, Tasks] = {name: (number, 0) for name, number in addresses.counters.items()}
    for _, instruction in code.instructions(block):
        match instruction.opcode, instruction.operands:
            case "shfl.sync.idx.b32", (Register(made), Register(name), Literal(path), *_) if name in counts:
                counts[made] = (counts[name][0], int(path))
            case (("setp.lt.s32" | "setp.lt.u32"), (Register(mine), lane, Register(name))) if name in counts:
                tasks = counts[name]
                if is_lane(code, lane) and _loads(loop, addresses, block, mine, tasks[0]):
                    yield tasks


def _passed(
    loop: LoopCode, addresses: StackAddresses, block: int, taken: Mapping[int, frozenset[Tasks]]
) -> Iterator[Tasks]:
    """The stack that a block finds empty, or else whose tasks are taken where its branch leads."""
    following = loop.code.where(block, holds=True)
    if following is not None:
        yield from (tasks for tasks in _tested(loop, addresses, block) if tasks in taken.get(following, ()))


def _found_empty(loop: LoopCode, addresses: StackAddresses, block: int) -> Iterator[Tasks]:
    """The stack that the only predecessor of the block has found empty."""
    sources = loop.code.cfg.predecessors[block]
    if len(sources) != 1 or loop.code.where(sources[0], holds=True) == block:
        return
    if loop.code.where(sources[0], holds=False) == block:
        yield from _tested(loop, addresses, sources[0])


def _tested(loop: LoopCode, addresses: StackAddresses, block: int) -> Iterator[Tasks]:
    """The stack whose counter a block compares with zero to decide where control goes."""
    end = loop.code.ending(block)
    if end is None or end.guard is None:
        return
    for _, instruction in loop.code.instructions(block):
        match instruction.opcode, instruction.operands:
            case "setp.ne.s32", (Register(some), Register(name), Literal("0")) if (
                name in addresses.counters and some == end.guard.register.name
            ):
                yield addresses.counters[name], 0


def _loads(loop: LoopCode, addresses: StackAddresses, block: int, mine: str, stack: int) -> bool:
    """Whether lanes with the flag ``mine`` load from the stack, in ``block`` or where its branch leads them."""
    facts = loop.facts.stacks[stack]
    if facts.start == facts.stop:
        return True
    if any(_pops(loop, addresses, block, Guard(Register(mine)), stack)):
        return True
    end = loop.code.ending(block)
    if end is None or end.guard is None or end.guard.register.name != mine:
        return False
    following = loop.code.where(block, holds=True)
    return following is not None and any(_pops(loop, addresses, following, None, stack))


def _pops(
    loop: LoopCode, addresses: StackAddresses, block: int, guard: Guard | None, stack: int
) -> Iterator[Instruction]:
    for _, instruction in loop.code.instructions(block):
        loads = instruction.base == "ld" and instruction.guard == guard
        if loads and addresses.stack_of(instruction) == stack:
            yield instruction
