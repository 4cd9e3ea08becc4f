"""Which memory instructions may touch the same bytes: by state space, and by where their addresses come from.

An address is followed through its use-def chains (`mov`, `cvta`, `add`, `sub`, `mad`, `selp`, ...) to its
*roots*: the variables and kernel parameters that it may be derived from. Two accesses are *provably distinct*
if neither writes, if one reads memory that nobody writes (`ld.const`, `.nc`, a kernel's parameters), if their
state spaces differ, or if their roots are variables with no name in common. Two pointer parameters may hold
one address, and one that holds the address of a variable.

        st.shared.u32 [a+%r1], %r2;       against  ld.shared.u32 %r3, [b];       distinct: two shared
        variables st.global.u32 [%rd1], %r2;        against  ld.global.nc.u32 %r3, [%rd2]; distinct: `.nc` is
        a promise st.global.u32 [%rd1], %r2;        against  ld.global.u32 %r3, [%rd2];    may conflict

Cooper, Torczon, "Engineering a Compiler", 2nd ed., 9.2.4; PTX ISA 9.0, 5.1 (state spaces) and 9.7.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Function,
    Indexed,
    Instruction,
    Literal,
    Module,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    TextureAddress,
    Variable,
)
from cccopt.ptx.isa import Memory


@dataclass(frozen=True, slots=True)
class Root:
    """What an address may be derived from: a ``variable``, a kernel's ``parameter``, or something
    ``unknown``.
    """

    kind: str
    name: str = ""


UNKNOWN = Root("unknown")

_ADDING = frozenset({"add", "sub", "mad", "mad24", "or", "and"})
_CHOOSING = frozenset({"mov", "cvta", "cvt", "selp"})
_SCALING = frozenset({"mul", "mul24", "shl", "shr", "div", "rem", "popc", "clz", "bfind"})
"""Opcodes whose result is a number, not an address."""
_MOST_STEPS = 500  # a longer walk ends in `UNKNOWN`


@dataclass(frozen=True)
class MemoryAliasing:
    """The memory instructions of one function and what they may touch. Statements go by index."""

    module: Module
    function: Function
    reaching: ReachingDefinitions

    def accesses_memory(self, statement: int) -> bool:
        """Whether the statement may read or write memory; calls and unknown opcodes may."""
        return self._memory(statement) is not Memory.NONE

    def may_write(self, statement: int) -> bool:
        """Whether the statement may write memory."""
        return self._memory(statement) in (Memory.STORE, Memory.ATOMIC)

    def may_conflict(self, a: int, b: int) -> bool:
        """Whether the two statements may touch the same bytes, at least one of them writing."""
        if not (self.accesses_memory(a) and self.accesses_memory(b)):
            return False
        if not (self.may_write(a) or self.may_write(b)) or self._reads_constant(a) or self._reads_constant(b):
            return False
        spaces_a, spaces_b = self.spaces(a), self.spaces(b)
        if "generic" not in spaces_a | spaces_b and not spaces_a & spaces_b:
            return False
        return not self._distinct_variables(self.roots(a), self.roots(b))

    def spaces(self, statement: int) -> frozenset[str]:
        """The state spaces that a memory statement may touch; ``generic`` stands for any."""
        space = isa.facts(self._instruction(statement)).space or "generic"
        if space != "generic":
            return frozenset({space})
        return frozenset(self._space_of(root) for root in self.roots(statement))

    def roots(self, statement: int) -> frozenset[Root]:
        """What the addresses of a memory statement may be derived from; `UNKNOWN` for a call."""
        operands = self._instruction(statement).operands
        addresses = [o for o in operands if isinstance(o, Address | TextureAddress)]
        if not addresses:
            return frozenset({UNKNOWN})
        return _union(self._address_roots(statement, address) for address in addresses)

    def _address_roots(self, statement: int, address: Address | TextureAddress) -> frozenset[Root]:
        if isinstance(address, TextureAddress):
            return frozenset({UNKNOWN})
        # A plain number as an address says nothing of what lies there.
        return _Trace(self.function, self.reaching).operand(statement, address.base) or frozenset({UNKNOWN})

    def _space_of(self, root: Root) -> str:
        """The state space behind a generic address: what a host passes to a kernel points to global
        memory.
        """
        if root.kind == "parameter":
            return "global"
        variable = self._variables.get(root.name) if root.kind == "variable" else None
        return "generic" if variable is None else variable.space

    def _distinct_variables(self, a: frozenset[Root], b: frozenset[Root]) -> bool:
        if any(root.kind != "variable" for root in a | b):
            return False
        return not {self._storage(root.name) for root in a} & {self._storage(root.name) for root in b}

    def _storage(self, name: str) -> str:
        """One name for what shares memory: all `.extern .shared` arrays begin at the same address."""
        variable = self._variables.get(name)
        dynamic = variable is not None and variable.space == "shared" and "extern" in variable.linkage
        return "dynamic shared memory" if dynamic else name

    @cached_property
    def _variables(self) -> Mapping[str, Variable]:
        own = [statement for statement in self.function.body or () if isinstance(statement, Variable)]
        shared = [item for item in self.module.items if isinstance(item, Variable)]
        return {variable.name: variable for variable in [*shared, *own]}

    def _reads_constant(self, statement: int) -> bool:
        return not self.may_write(statement) and reads_unchanging_memory(
            self._instruction(statement), self.function
        )

    def _memory(self, statement: int) -> Memory:
        instruction = self.reaching.body[statement]
        return isa.facts(instruction).memory if isinstance(instruction, Instruction) else Memory.NONE

    def _instruction(self, statement: int) -> Instruction:
        instruction = self.reaching.body[statement]
        if not isinstance(instruction, Instruction):
            raise ValueError(f"statement {statement} is no instruction")
        return instruction


class _Trace:
    """One walk from an address back through its use-def chains."""

    def __init__(self, function: Function, reaching: ReachingDefinitions) -> None:
        self.function = function
        self.reaching = reaching
        self.steps_left = _MOST_STEPS

    def operand(
        self, statement: int, operand: Operand, asked: frozenset[int] = frozenset()
    ) -> frozenset[Root]:
        """The roots of an operand as ``statement`` reads it; none for a plain number.

        ``asked`` are the definitions on the way here: one in a cycle adds nothing to its own roots.
        """
        if isinstance(operand, Indexed):
            return self.operand(statement, operand.base, asked)
        if isinstance(operand, Symbol):
            return frozenset({Root("variable", operand.name)})
        if isinstance(operand, Literal | SpecialRegister):
            return frozenset()
        if not isinstance(operand, Register) or self.steps_left <= 0:
            return frozenset({UNKNOWN})
        self.steps_left -= 1
        definitions = self.reaching.reaching(statement, operand.name)
        return _union(self._definition(d, asked) for d in definitions - asked)

    def _definition(self, definition: int, asked: frozenset[int]) -> frozenset[Root]:
        instruction = None if definition == ENTRY else self.reaching.body[definition]
        if not isinstance(instruction, Instruction):
            return frozenset({UNKNOWN})
        asked = asked | {definition}
        sources = [self.operand(definition, source, asked) for source in _pointers(instruction)]
        if instruction.base in _ADDING:
            return _sum(sources)
        if instruction.base in _CHOOSING:
            return _union(sources)
        if instruction.base in _SCALING:
            return frozenset()
        if isa.facts(instruction).space == "param" and self.function.kind == "entry":
            return self._parameter(instruction)
        return frozenset({UNKNOWN})

    def _parameter(self, instruction: Instruction) -> frozenset[Root]:
        base = next((o.base for o in instruction.operands if isinstance(o, Address)), None)
        own = isinstance(base, Symbol) and reads_unchanging_memory(instruction, self.function)
        return frozenset({Root("parameter", base.name) if own and isinstance(base, Symbol) else UNKNOWN})


def _pointers(instruction: Instruction) -> tuple[Operand, ...]:
    """The source operands that the result may be derived from: no factor of a product, no predicate."""
    if instruction.base in ("mad", "mad24"):
        return instruction.operands[-1:]
    if instruction.base == "selp":
        return instruction.operands[1:3]
    return instruction.operands[1:] if instruction.base in _ADDING | _CHOOSING else ()


def _sum(sources: list[frozenset[Root]]) -> frozenset[Root]:
    """The roots of a sum: where one operand is surely a variable's address, the others are offsets to it."""
    variables = [roots for roots in sources if roots and all(root.kind == "variable" for root in roots)]
    return _union(variables or sources)


def _union(sets: Iterable[frozenset[Root]]) -> frozenset[Root]:
    return frozenset(root for roots in sets for root in roots)
