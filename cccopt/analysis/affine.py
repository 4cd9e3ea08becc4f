"""Affine addresses: by how much a register's value grows from one lane of the warp to the next.

A value is *affine in the lane* if it is a uniform number plus a constant, its *stride*, times the lane. `%tid.x` and
`%laneid` have stride 1, a uniform value 0; sums, differences and products with constants, shifts to the left and
conversions of integers carry strides on, and so does an induction variable that grows by the same in all lanes.

        mad.lo.s32 %r1, %ctaid, %ntid, %tid;    %r1: 1
    LOOP:
        mul.wide.s32 %rd2, %r1, 4;              %rd2: 4
        add.s64 %rd3, %rd1, %rd2;               %rd3: 4 (%rd1 is a parameter)
        ld.global.u32 %r2, [%rd3];              lanes beside one another read elements beside one another
        add.s32 %r1, %r1, %nthreads;            %r1: 1 again

The answer is for judging speed, not for proofs: that 32 lanes of a warp differ in `%tid.x` alone (blocks whose width is
a multiple of 32), and that no narrow sum wraps around between two lanes, is assumed. Coutinho, Sampaio, Pereira, Meira,
"Divergence analysis and optimizations", PACT 2011 (affine values).
"""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.cost import integer
from cccopt.analysis.dominance import Dominance
from cccopt.analysis.loops import Loop
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions
from cccopt.analysis.uniformity import Uniformity
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Instruction,
    Literal,
    Operand,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    Vector,
)
from cccopt.ptx.isa import Memory

_STRIDES = {"%tid.x": 1, "%laneid": 1, "%tid.y": 0, "%tid.z": 0}
_DEEPEST = 32

_Value = tuple[str, frozenset[int]]
"""A register and the definitions of it that reach a point."""


@dataclass(frozen=True)
class LaneStrides:
    """The strides of one function's registers over the lanes. Statements go by index."""

    reaching: ReachingDefinitions
    uniformity: Uniformity
    dominators: Dominance
    loops: tuple[Loop, ...]

    def of_register(self, statement: int, register: str) -> int | None:
        """The stride of a register as ``statement`` reads it; None where it is not known to have one."""
        return self._of_register(statement, register, {}, _DEEPEST)

    def of_access(self, statement: int) -> int | None:
        """The stride of a memory instruction's address, in bytes a lane; None where it is not known to have one."""
        instruction = self.reaching.body[statement]
        addresses = (
            [o for o in instruction.operands if isinstance(o, Address)]
            if isinstance(instruction, Instruction)
            else []
        )
        if len(addresses) != 1:
            return None
        return self._of_operand(statement, addresses[0].base, {}, _DEEPEST)

    def is_coalesced(self, statement: int) -> bool:
        """Whether lanes beside one another access memory beside one another: the stride is the access' size."""
        size = access_size(self.reaching.body[statement])
        stride = self.of_access(statement)
        return size > 0 and stride is not None and abs(stride) == size

    def _of_register(self, statement: int, name: str, assumed: dict[_Value, int], depth: int) -> int | None:
        if self.uniformity.is_uniform_use(statement, name):
            return 0
        definitions = self.reaching.reaching(statement, name)
        value = name, definitions
        if value in assumed:
            return assumed[value]
        if depth == 0 or not definitions or ENTRY in definitions:
            return None
        if len(definitions) == 1:
            return self._of_definition(min(definitions), assumed, depth - 1)
        return self._of_induction(value, assumed, depth - 1)

    def _of_induction(self, value: _Value, assumed: dict[_Value, int], depth: int) -> int | None:
        """The stride of a loop's counter: it begins with it, and each trip leaves it as it is."""
        _, definitions = value
        loop = next((found for found in reversed(self.loops) if self._counts(found, definitions)), None)
        if loop is None:
            return None
        (inside,) = (d for d in definitions if self.reaching.cfg.block_of(d) in loop.blocks)
        (outside,) = definitions - {inside}
        stride = self._of_definition(outside, assumed, depth)
        if stride is None:
            return None
        again = self._of_definition(inside, {**assumed, value: stride}, depth)
        return stride if again == stride else None

    def _counts(self, loop: Loop, definitions: frozenset[int]) -> bool:
        """Whether one of two definitions is run ahead of the loop, and the other once in each trip."""
        blocks = {d: self.reaching.cfg.block_of(d) for d in definitions}
        inside = [block for block in blocks.values() if block in loop.blocks]
        outside = [block for block in blocks.values() if block not in loop.blocks]
        return (
            len(inside) == len(outside) == 1
            and self.dominators.dominates(outside[0], loop.header)
            and all(self.dominators.dominates(inside[0], latch) for latch in loop.latches)
        )

    def _of_definition(self, index: int, assumed: dict[_Value, int], depth: int) -> int | None:
        instruction = self.reaching.body[index]
        if not isinstance(instruction, Instruction) or isa.is_conditional_write(instruction):
            return None
        if not isa.facts(instruction).pure or len(effects.writes(instruction)) != 1:
            return None
        sources = instruction.operands[1:]
        strides = [self._of_operand(index, source, assumed, depth) for source in sources]
        return combined(instruction, sources, strides)

    def _of_operand(
        self, statement: int, operand: Operand, assumed: dict[_Value, int], depth: int
    ) -> int | None:
        match operand:
            case Literal() | Symbol():
                return 0
            case SpecialRegister(name):
                return _STRIDES.get(name, None if name.startswith(("%lanemask", "%clock")) else 0)
            case Register(name):
                return self._of_register(statement, name, assumed, depth)
        return None


def access_size(instruction: Statement) -> int:
    """The bytes that one lane loads or stores; 0 where the table does not tell."""
    if not isinstance(instruction, Instruction):
        return 0
    facts = isa.facts(instruction)
    if not facts.known or facts.memory is Memory.NONE:
        return 0
    for operand, type in zip(instruction.operands, facts.types, strict=True):
        if type is not None:
            lanes = len(operand.elements) if isinstance(operand, Vector) else 1
            return lanes * isa.width(type) // 8
    return 0


def combined(instruction: Instruction, sources: tuple[Operand, ...], strides: list[int | None]) -> int | None:
    """The stride of a result from those of its operands."""
    if not all(part in isa.WIDTHS and part[0] in "bsu" for part in _types(instruction)):
        return None
    match instruction.base, strides:
        case (("mov" | "cvt" | "cvta"), [a]):
            return a
        case "add", [int(a), int(b)]:
            return a + b
        case "sub", [int(a), int(b)]:
            return a - b
        case "neg", [int(a)]:
            return -a
        case "shl", [int(a), _] if (by := integer(sources[1])) is not None and 0 <= by < 64:
            return a << by
        case (("mul" | "mul24"), [a, b]):
            return None if "hi" in instruction.parts else _product(sources, a, b)
        case (("mad" | "mad24"), [a, b, int(c)]):
            product = None if "hi" in instruction.parts else _product(sources, a, b)
            return None if product is None else product + c
    return None


def _types(instruction: Instruction) -> list[str]:
    return [part for part in instruction.parts if part in isa.WIDTHS]


def _product(sources: tuple[Operand, ...], a: int | None, b: int | None) -> int | None:
    """The stride of a product: only one with a constant has one, or one of uniform values."""
    if a == 0 and b == 0:
        return 0
    for stride, factor in ((a, integer(sources[1])), (b, integer(sources[0]))):
        if stride is not None and factor is not None:
            return stride * factor
    return None
