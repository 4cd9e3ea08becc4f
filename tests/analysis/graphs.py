"""Bodies and graphs for the analyses' tests: a hypothesis strategy, and searches by brute force."""

from __future__ import annotations

from hypothesis import strategies as st

from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.ptx.ir import Guard, Instruction, Label, Literal, Register, Statement, Symbol

REGISTERS = ("%r0", "%r1", "%r2")


def label(block: int) -> str:
    return f"L{block}"


def bra(target: int, guard: str | None = None, negated: bool = False) -> Instruction:
    return Instruction(
        "bra", (Symbol(label(target)),), None if guard is None else Guard(Register(guard), negated)
    )


def add(destination: str, first: str, second: str | None = None, guard: str | None = None) -> Instruction:
    operand = Literal("1") if second is None else Register(second)
    return Instruction(
        "add.s32",
        (Register(destination), Register(first), operand),
        None if guard is None else Guard(Register(guard)),
    )


@st.composite
def bodies(draw: st.DrawFn, max_blocks: int = 6) -> tuple[Statement, ...]:
    """Random bodies: a few adds over three registers (some guarded by `%p`), ended by a random way on."""
    count = draw(st.integers(1, max_blocks))
    names = st.sampled_from(REGISTERS)
    body: list[Statement] = []
    for block in range(count):
        body.append(Label(label(block)))
        for _ in range(draw(st.integers(0, 2))):
            guard = draw(st.sampled_from([None, None, "%p"]))
            body.append(add(draw(names), draw(names), draw(names), guard))
        end = draw(st.sampled_from(["fall", "branch", "jump", "return", "maybe"]))
        if end == "branch":
            body.append(bra(draw(st.integers(0, count - 1)), "%p"))
        elif end == "jump":
            body.append(bra(draw(st.integers(0, count - 1))))
        elif end == "return":
            body.append(Instruction("ret"))
        elif end == "maybe":
            body.append(Instruction("exit", (), Guard(Register("%p"))))
    return tuple(body)


def reached(successors: dict[int, set[int]], start: int, without: int | None = None) -> set[int]:
    """The nodes that ``start`` reaches (itself too) on paths that avoid ``without``."""
    if start == without:
        return set()
    seen = {start}
    work = [start]
    while work:
        for target in successors.get(work.pop(), set()):
            if target != without and target not in seen:
                seen.add(target)
                work.append(target)
    return seen


def next_statements(cfg: ControlFlowGraph) -> dict[int, set[int]]:
    """The statements that may run behind each statement."""
    found: dict[int, set[int]] = {}
    for block in cfg.blocks:
        for statement in block.statements():
            heads = {cfg.blocks[target].start for target in cfg.successors[block.index]}
            found[statement] = {statement + 1} if statement + 1 < block.stop else heads
    return found
