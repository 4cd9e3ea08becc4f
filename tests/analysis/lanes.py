"""A warp of a few lanes that runs random bodies, to hold uniformity and invariance against what really
happens.

The bodies know `mov` (of a number, `%laneid`, `%ctaid.x` or a register), `add`, `setp.lt` and ways to go on,
each with or without a guard. Lanes that a branch parts meet again at its immediate post-dominator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from cccopt.analysis.cfg import ControlFlowGraph, EdgeKind, build, ending
from cccopt.analysis.dominance import EXIT, post_dominators
from cccopt.ptx.ir import Guard, Instruction, Label, Literal, Operand, Register, SpecialRegister, Statement

from .graphs import bra, label

LANES = 4
NUMBERS = ("%r0", "%r1", "%r2", "%r3")
PREDICATES = ("%p0", "%p1")
Values = dict[str, int]


@st.composite
def programs(draw: st.DrawFn, max_blocks: int = 6) -> tuple[Statement, ...]:
    """Random bodies over a few registers whose first block writes most of them."""
    count = draw(st.integers(2, max_blocks))
    sources: list[Operand] = [*map(Register, NUMBERS), Literal("1"), Literal("3")]
    operand = st.sampled_from(sources)
    guard = st.sampled_from([None, None, Guard(Register("%p0")), Guard(Register("%p1"), negated=True)])
    body: list[Statement] = []

    def move(name: str, chosen: Operand) -> Instruction:
        return Instruction("mov.u32", (Register(name), chosen), None)

    starts: list[Operand] = [
        SpecialRegister("%laneid"),
        Literal("0"),
        Literal("3"),
        SpecialRegister("%ctaid.x"),
    ]
    for name, start in zip(NUMBERS, starts[: draw(st.integers(3, 4))], strict=False):
        body.append(move(name, start))
    body.append(Instruction("setp.lt.u32", (Register("%p0"), Register("%r0"), Literal("2"))))
    for block in range(count):
        body.append(Label(label(block)))
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.sampled_from(["move", "add", "compare"]))
            first, second = draw(operand), draw(operand)
            where = draw(guard)
            if kind == "move":
                body.append(Instruction("mov.u32", (Register(draw(st.sampled_from(NUMBERS))), first), where))
            elif kind == "add":
                target = Register(draw(st.sampled_from(NUMBERS)))
                body.append(Instruction("add.s32", (target, first, second), where))
            else:
                target = Register(draw(st.sampled_from(PREDICATES)))
                body.append(Instruction("setp.lt.u32", (target, first, second), where))
        way = draw(st.sampled_from(["fall", "fall", "branch", "branch", "count", "count", "jump", "exit"]))
        if way == "count":
            counter, predicate = Register(draw(st.sampled_from(NUMBERS))), draw(st.sampled_from(PREDICATES))
            body.append(Instruction("add.s32", (counter, counter, Literal("1"))))
            body.append(Instruction("setp.lt.u32", (Register(predicate), counter, draw(operand))))
            body.append(bra(draw(st.integers(0, block)), predicate))
        if way == "branch":
            body.append(
                bra(draw(st.integers(0, count - 1)), draw(st.sampled_from(PREDICATES)), draw(st.booleans()))
            )
        elif way == "jump":
            body.append(bra(draw(st.integers(0, count - 1))))
        elif way == "exit":
            body.append(Instruction("exit", (), draw(guard)))
    return tuple(body)


@dataclass(frozen=True)
class Step:
    """One statement run by some lanes together, with all registers of each just before it."""

    statement: int
    lanes: dict[int, Values]


def run(body: tuple[Statement, ...], lanes: range, most_steps: int = 300) -> list[Step]:
    """The statements that a warp of ``lanes`` runs, in order, at most ``most_steps``."""
    return _Warp(body, lanes, most_steps).trace()


class _Warp:
    def __init__(self, body: tuple[Statement, ...], lanes: range, most_steps: int) -> None:
        self.body = body
        self.cfg: ControlFlowGraph = build(body)
        self.reconvergence = post_dominators(self.cfg).immediate
        # What nothing has written yet is junk, another in each lane.
        self.values = {
            lane: dict.fromkeys(NUMBERS, 40 + lane) | dict.fromkeys(PREDICATES, lane % 2) for lane in lanes
        }
        self.alive = set(lanes)
        self.steps: list[Step] = []
        self.most_steps = most_steps

    def trace(self) -> list[Step]:
        # Each entry: lanes, the block they stand at, the block at which they wait for those below.
        stack: list[tuple[set[int], int, int | None]] = [(set(self.alive), 0, None)]
        while stack and len(self.steps) < self.most_steps:
            lanes, block, stop = stack.pop()
            lanes &= self.alive
            if not lanes or block in (stop, EXIT):
                continue
            ways = list(self._block(lanes, block))
            if len(ways) == 1:
                stack.append((*ways[0], stop))
                continue
            meet = self.reconvergence.get(block)
            if meet is not None and meet != EXIT:
                stack.append((set(lanes), meet, stop))
            stack += [(part, target, meet) for part, target in ways]
        return self.steps

    def _block(self, lanes: set[int], block: int) -> Iterator[tuple[set[int], int]]:
        for statement in self.cfg.blocks[block].statements():
            self.steps.append(Step(statement, {lane: dict(self.values[lane]) for lane in sorted(lanes)}))
            instruction = self.body[statement]
            if isinstance(instruction, Instruction):
                for lane in lanes:
                    self._execute(instruction, self.values[lane], lane)
        end = ending(self.body, self.cfg.blocks[block])
        taken = {lane for lane in lanes if end is not None and _passes(end, self.values[lane])}
        kinds = {kind: b for b in self.cfg.successors[block] for kind in self.cfg.kinds[block, b]}
        if end is not None and end.base == "exit":
            self.alive -= taken
        elif taken:
            yield taken, kinds[EdgeKind.TAKEN]
        if lanes - taken and EdgeKind.FALLTHROUGH in kinds:
            yield lanes - taken, kinds[EdgeKind.FALLTHROUGH]

    def _execute(self, instruction: Instruction, values: Values, lane: int) -> None:
        if instruction.base in ("bra", "exit") or not _passes(instruction, values):
            return
        target, *sources = instruction.operands
        numbers = [_value(source, values, lane) for source in sources]
        assert isinstance(target, Register)
        results = {"mov": numbers[0], "add": sum(numbers) % 50, "setp": int(numbers[0] < numbers[-1])}
        values[target.name] = results[instruction.base]


def _passes(instruction: Instruction, values: Values) -> bool:
    guard = instruction.guard
    return guard is None or bool(values[guard.register.name]) != guard.negated


def _value(operand: Operand, values: Values, lane: int) -> int:
    if isinstance(operand, Register):
        return values[operand.name]
    if isinstance(operand, SpecialRegister):
        return lane if operand.name == "%laneid" else 7
    assert isinstance(operand, Literal)
    return int(operand.spelling)
