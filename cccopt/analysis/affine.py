"""Affine addresses: by how much a register's value grows from one lane of the warp to the next.

A value is *affine in the lane* if it is a uniform number plus a constant, its *stride*, times the lane. `%tid.x` and
`%laneid` have stride 1, uniform values 0. Sums, differences, products with constants, left shifts and integer
conversions propagate strides, and so does an induction variable that grows by the same amount in all lanes.

        mad.lo.s32 %r1, %ctaid, %ntid, %tid;    %r1: 1
    LOOP:
        mul.wide.s32 %rd2, %r1, 4;              %rd2: 4
        add.s64 %rd3, %rd1, %rd2;               %rd3: 4 (%rd1 is a parameter)
        ld.global.u32 %r2, [%rd3];              adjacent lanes read adjacent elements
        add.s32 %r1, %r1, %nthreads;            %r1: 1 again

The answer is good enough to judge speed, but not for proofs. It assumes that the lanes of a warp differ only in
`%tid.x` (blocks whose width is a multiple of 32), and that no narrow sum wraps around between two lanes. Coutinho,
Sampaio, Pereira, Meira, "Divergence analysis and optimizations", PACT 2011 (affine values).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal as OneOf

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
from cccopt.ptx.isa import Arithmetic, Memory

_STRIDES = {"%tid.x": 1, "%laneid": 1, "%tid.y": 0, "%tid.z": 0}

_Source = int | None | frozenset[int]
"""A stride that is known at once, or the definitions that determine it."""

_Stride = int | None | OneOf["unsolved"]
"""The stride of a definition; unsolved until all that it is computed from has been examined."""


@dataclass(frozen=True)
class LaneStrides:
    """The strides of one function's registers over the lanes. Statements are given by index.

    A definition is examined on demand, with all that it is computed from, and only once, however many statements read
    it. Counters are assumed to keep their initial stride until an iteration shows otherwise: Wegman, Zadeck, "Constant
    propagation with conditional branches", TOPLAS 13(2), 1991.
    """

    reaching: ReachingDefinitions
    uniformity: Uniformity
    dominators: Dominance
    loops: tuple[Loop, ...]

    def of_register(self, statement: int, register: str) -> int | None:
        """The stride of a register as ``statement`` reads it; None if it is not known to have one."""
        return self._of_source(self._of_register(statement, register))

    def of_access(self, statement: int) -> int | None:
        """The stride of a memory instruction's address, in bytes per lane; None if it is not known to have one."""
        instruction = self.reaching.body[statement]
        addresses = (
            [o for o in instruction.operands if isinstance(o, Address)]
            if isinstance(instruction, Instruction)
            else []
        )
        if len(addresses) != 1:
            return None
        return self._of_source(self._of_operand(statement, addresses[0].base))

    def is_coalesced(self, statement: int) -> bool:
        """Whether neighboring lanes access neighboring memory: the stride is the size of the access."""
        size = access_size(self.reaching.body[statement])
        stride = self.of_access(statement)
        return size > 0 and stride is not None and abs(stride) == size

    def _of_source(self, source: _Source) -> int | None:
        if isinstance(source, frozenset):
            self._solve(source)
        stride = self._joined(source)
        return None if stride == "unsolved" else stride

    def _solve(self, wanted: Iterable[int]) -> None:
        """Find the strides of definitions and of all that these are computed from."""
        readers: dict[int, list[int]] = {}
        new: dict[int, None] = {}
        work = list(wanted)
        while work:
            definition = work.pop()
            if definition in self._strides or definition == ENTRY:
                continue
            new[definition] = None
            self._strides[definition] = "unsolved"
            for source in self._sources(definition):
                for made_of in source if isinstance(source, frozenset) else ():
                    readers.setdefault(made_of, []).append(definition)
                    work.append(made_of)
        while new:  # a stride changes at most twice: to a number, and to None
            definition, _ = new.popitem()
            stride = self._of_definition(definition)
            if stride != self._strides[definition]:
                self._strides[definition] = stride
                new.update(dict.fromkeys(readers.get(definition, ())))

    @cached_property
    def _strides(self) -> dict[int, _Stride]:
        """The strides of what definitions write, for those that have been examined."""
        return {}

    def _joined(self, source: _Source) -> _Stride:
        """The stride of a value from those of its definitions: either there is only one, or the value is a loop counter
        whose initial stride each iteration leaves unchanged.
        """
        if not isinstance(source, frozenset):
            return source
        if not source or ENTRY in source:
            return None
        if len(source) == 1:
            return self._strides[min(source)]
        counter = self._counter(source)
        if counter is None:
            return None
        begins, again = (self._strides[definition] for definition in counter)
        return begins if again in (begins, "unsolved") or begins == "unsolved" else None

    def _counter(self, definitions: frozenset[int]) -> tuple[int, int] | None:
        """The definitions before a loop and in it, if there are only these two and each iteration runs the latter."""
        if definitions not in self._counters:
            self._counters[definitions] = self._found_counter(definitions)
        return self._counters[definitions]

    @cached_property
    def _counters(self) -> dict[frozenset[int], tuple[int, int] | None]:
        return {}

    def _found_counter(self, definitions: frozenset[int]) -> tuple[int, int] | None:
        if len(definitions) != 2:
            return None
        block = {d: self.reaching.cfg.block_of(d) for d in definitions}
        for loop in reversed(self.loops):
            outside, inside = sorted(definitions, key=lambda d: block[d] in loop.blocks)
            if (
                block[inside] in loop.blocks
                and block[outside] not in loop.blocks
                and self.dominators.dominates(block[outside], loop.header)
                and loop.always_runs(block[inside], self.dominators)
            ):
                return outside, inside
        return None

    def _of_definition(self, index: int) -> _Stride:
        strides = [self._joined(source) for source in self._sources(index)]
        instruction = self.reaching.body[index]
        if not strides or not isinstance(instruction, Instruction):
            return None
        known: list[int | None] = []
        for stride in strides:
            if stride == "unsolved":
                return stride
            known.append(stride)
        return combined(instruction, instruction.operands[1:], known)

    def _sources(self, index: int) -> tuple[_Source, ...]:
        """What a definition computes its value from; empty if the value has no stride."""
        if index not in self._known_sources:
            instruction = self.reaching.body[index]
            plain = (
                isinstance(instruction, Instruction)
                and not isa.is_conditional_write(instruction)
                and isa.facts(instruction).pure
                and len(effects.writes(instruction)) == 1
            )
            operands = instruction.operands[1:] if plain and isinstance(instruction, Instruction) else ()
            self._known_sources[index] = tuple(self._of_operand(index, operand) for operand in operands)
        return self._known_sources[index]

    @cached_property
    def _known_sources(self) -> dict[int, tuple[_Source, ...]]:
        return {}

    def _of_operand(self, statement: int, operand: Operand) -> _Source:
        match operand:
            case Literal() | Symbol():
                return 0
            case SpecialRegister(name):
                return _STRIDES.get(name, None if name.startswith(("%lanemask", "%clock")) else 0)
            case Register(name):
                return self._of_register(statement, name)
        return None

    def _of_register(self, statement: int, name: str) -> _Source:
        if self.uniformity.is_uniform_use(statement, name):
            return 0
        return self.reaching.reaching(statement, name)


def access_size(instruction: Statement) -> int:
    """The bytes that one lane loads or stores; 0 if the instruction table does not say."""
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


_SLOW_16, _SLOW_32 = 1, 1 << 20
_PRODUCTS = (Arithmetic.PRODUCT, Arithmetic.PRODUCT_SUM)


def may_recur(instruction: Instruction, growth: float) -> bool:
    """Whether a result that seems to grow by ``growth`` (infinity: an unknown amount) from one iteration to the next
    may come back to an earlier value. It does if it is only a part of what grows, if it saturates, and if it has so
    few bits that it wraps around in loops that programs contain.
    """
    if any(isinstance(operand, Vector) for operand in instruction.operands):
        return True
    facts = isa.facts(instruction)
    if "sat" in instruction.parts or (facts.arithmetic in _PRODUCTS and not facts.linear):
        return True
    narrowest = min((isa.WIDTHS[type] for type in _types(instruction)), default=64)
    if narrowest == 32:
        return math.isfinite(growth) and abs(growth) > _SLOW_32
    return narrowest < 16 or (narrowest == 16 and abs(growth) > _SLOW_16)


def combined(instruction: Instruction, sources: tuple[Operand, ...], strides: list[int | None]) -> int | None:
    """The stride of a result from those of its operands."""
    if not all(part in isa.WIDTHS and part[0] in "bsu" for part in _types(instruction)):
        return None
    match isa.facts(instruction).arithmetic, strides:
        case Arithmetic.COPY, [a]:
            return a
        case Arithmetic.SUM, [int(a), int(b)]:
            return a + b
        case Arithmetic.DIFFERENCE, [int(a), int(b)]:
            return a - b
        case Arithmetic.NEGATION, [int(a)]:
            return -a
        case Arithmetic.LEFT_SHIFT, [int(a), _] if (by := integer(sources[1])) is not None and 0 <= by < 64:
            return a << by
        case Arithmetic.PRODUCT, [a, b]:
            return None if "hi" in instruction.parts else _product(sources, a, b)
        case Arithmetic.PRODUCT_SUM, [a, b, int(c)]:
            product = None if "hi" in instruction.parts else _product(sources, a, b)
            return None if product is None else product + c
    return None


def _types(instruction: Instruction) -> list[str]:
    return [part for part in instruction.parts if part in isa.WIDTHS]


def _product(sources: tuple[Operand, ...], a: int | None, b: int | None) -> int | None:
    """The stride of a product with a constant, or of uniform values; None for other products."""
    if a == 0 and b == 0:
        return 0
    for stride, factor in ((a, integer(sources[1])), (b, integer(sources[0]))):
        if stride is not None and factor is not None:
            return stride * factor
    return None
