"""Which memory instructions may touch the same bytes: by state space, and by where their addresses come from.

An address is followed through its use-def chains (`mov`, `cvta`, `add`, `sub`, `mad`, `selp`, ...) to its
*roots*: the variables and kernel parameters that it may be derived from. Two accesses are *provably distinct*
if neither writes, if one reads memory that nothing writes (`ld.const`, `.nc`, a kernel's parameters), if their
state spaces differ, or if their roots are variables with no name in common. Two pointer parameters may hold
the same address, and a pointer parameter may hold the address of a variable, unless the source declares one of them
`__restrict__`.

        st.shared.u32 [a+%r1], %r2;    against  ld.shared.u32 %r3, [b];          distinct: two shared variables
        st.global.u32 [%rd1], %r2;     against  ld.global.nc.u32 %r3, [%rd2];    distinct: `.nc` is a promise
        st.global.u32 [%rd1], %r2;     against  ld.global.u32 %r3, [%rd2];       may conflict

Cooper, Torczon, "Engineering a Compiler", 2nd ed., 9.2.4; PTX ISA 9.0, 5.1 (state spaces) and 9.7.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.reaching import ReachingDefinitions
from cccopt.analysis.roots import AddressRoots, Root
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module, Variable
from cccopt.ptx.isa import Control, Memory

ASSERTION = "__assertfail"
"""The function that a failed `assert` calls: it ends the launch, and reads only its own text."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a memory statement may do and where; many statements have equal accesses."""

    writes: bool
    constant: bool
    spaces: frozenset[str]
    roots: frozenset[Root]


@dataclass(frozen=True)
class MemoryAliasing:
    """The memory instructions of one function and what they may touch. Statements are given by index. ``restricted``
    are the parameters with exclusive access to what is written through them, ``pure`` the functions that only read,
    ``readnone`` those that access no memory that other code sees.
    """

    module: Module
    function: Function
    reaching: ReachingDefinitions
    restricted: frozenset[str] = frozenset()
    pure: frozenset[str] = frozenset()
    readnone: frozenset[str] = frozenset({ASSERTION})

    def accesses_memory(self, statement: int) -> bool:
        """Whether the statement may read or write memory; calls and unknown opcodes may."""
        return self._memory(statement) is not Memory.NONE

    def passes_arguments(self, statement: int) -> bool:
        """Whether the statement accesses a variable of a call sequence, which writes it before anything reads it."""
        variables = (self._variables.get(r.name) for r in self.roots(statement) if r.kind == "variable")
        return isa.facts(self._instruction(statement)).space == "param" and all(
            variable is not None and variable.space == "param" for variable in variables
        )

    def may_write(self, statement: int) -> bool:
        """Whether the statement may write memory."""
        return self._memory(statement) in (Memory.STORE, Memory.ATOMIC)

    def may_clash(self, a: Access, b: Access) -> bool:
        """Whether two accesses may touch the same bytes and at least one of them writes."""
        if not (a.writes or b.writes) or a.constant or b.constant:
            return False
        if "generic" not in a.spaces | b.spaces and not a.spaces & b.spaces:
            return False
        return not self._distinct_variables(a.roots, b.roots)

    def access(self, statement: int) -> Access:
        """What a memory statement may do and where."""
        if statement not in self._accesses:
            self._accesses[statement] = Access(
                self.may_write(statement),
                self._reads_constant(statement),
                self.spaces(statement),
                self.roots(statement),
            )
        return self._accesses[statement]

    @cached_property
    def _accesses(self) -> dict[int, Access]:
        return {}

    def spaces(self, statement: int) -> frozenset[str]:
        """The state spaces that a memory statement may touch; ``generic`` means any."""
        space = isa.facts(self._instruction(statement)).space or "generic"
        if space != "generic":
            return frozenset({space})
        return frozenset(self._space_of(root) for root in self.roots(statement))

    def roots(self, statement: int) -> frozenset[Root]:
        """What the addresses of a memory statement may be derived from; `UNKNOWN` for a call."""
        return self._roots.of_access(statement)

    @cached_property
    def _roots(self) -> AddressRoots:
        return AddressRoots(self.function, self.reaching)

    def _space_of(self, root: Root) -> str:
        """The state space that a generic address points to; an address from the host points to global memory."""
        if root.kind == "parameter":
            return "global"
        variable = self._variables.get(root.name) if root.kind == "variable" else None
        return "generic" if variable is None else variable.space

    def _distinct_variables(self, a: frozenset[Root], b: frozenset[Root]) -> bool:
        return all(self._distinct(mine, other) for mine in a for other in b)

    def _distinct(self, a: Root, b: Root) -> bool:
        """Whether addresses derived from two roots lead to different memory."""
        kinds = {a.kind, b.kind}
        if "unknown" in kinds:
            return False
        if kinds == {"variable"}:
            return self._storage(a.name) != self._storage(b.name)
        return a != b and any(r.kind == "parameter" and r.name in self.restricted for r in (a, b))

    def _storage(self, name: str) -> str:
        """One name for variables that share memory: all `.extern .shared` arrays begin at the same address."""
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
        if not isinstance(instruction, Instruction):
            return Memory.NONE
        facts = isa.facts(instruction)
        callee = isa.callee_of(instruction) if facts.control is Control.CALL else None
        if callee in self.readnone:
            return Memory.NONE
        return Memory.LOAD if callee in self.pure else facts.memory

    def _instruction(self, statement: int) -> Instruction:
        instruction = self.reaching.body[statement]
        if not isinstance(instruction, Instruction):
            raise ValueError(f"statement {statement} is not an instruction")
        return instruction
