"""The roots of an address: the variables and kernel parameters that it may be derived from.

Each definition of a register gets a set of roots from those of its operands. `mov`, `cvta`, `cvt` and `selp`
choose among them, `add`, `sub` and `mad` combine an address with an offset, products and shifts are plain
numbers without a root, and everything else is `UNKNOWN`. The sets are the fixpoint of rounds over the body.

        mov.u32 %r1, tile;              %r1: {variable tile}
        ld.param.u64 %rd1, [a];         %rd1: {parameter a}
        shl.b32 %r2, %tid, 2;           %r2: {}
        add.s32 %r3, %r1, %r2;          %r3: {variable tile}
        ld.global.u64 %rd2, [%rd1];     %rd2: {unknown}

"Derived from" is C's and LLVM's rule: arithmetic on the address of one object does not lead to another. The distance
between two addresses in one object is a plain number. A number that a variable's address was subtracted from, or that
hides one in another way, may lead anywhere in a sum.
Cooper, Torczon, "Engineering a Compiler", 2nd ed., 9.2.4; LLVM Language Reference, "Pointer Aliasing Rules".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Function,
    Indexed,
    Instruction,
    Literal,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    TextureAddress,
)
from cccopt.ptx.isa import Arithmetic


@dataclass(frozen=True, slots=True)
class Root:
    """A ``variable`` or a kernel's ``parameter`` by name, or something ``unknown``."""

    kind: str
    name: str = ""


UNKNOWN = Root("unknown")

_HIDDEN = Root("unknown", "computed from the address of a variable")
"""While roots are sought: unlike an unknown index, it makes a sum with a variable's address unknown."""

_SUMS = frozenset(
    {
        Arithmetic.SUM,
        Arithmetic.DIFFERENCE,
        Arithmetic.PRODUCT_SUM,
        Arithmetic.CONJUNCTION,
        Arithmetic.DISJUNCTION,
    }
)
_CHOICES = frozenset({Arithmetic.COPY, Arithmetic.SELECTION})
_NUMBERS = frozenset(
    {
        Arithmetic.PRODUCT,
        Arithmetic.LEFT_SHIFT,
        Arithmetic.RIGHT_SHIFT,
        Arithmetic.QUOTIENT,
        Arithmetic.REMAINDER,
        Arithmetic.BIT_COUNT,
    }
)
_MOST_ROUNDS = 20  # if roots still change then, all are unknown


@dataclass(frozen=True)
class AddressRoots:
    """The roots of the addresses of one function."""

    function: Function
    reaching: ReachingDefinitions

    def of_access(self, statement: int) -> frozenset[Root]:
        """The roots of all addresses of a memory instruction; `UNKNOWN` if it has none (a call).

        Raises ValueError for a statement that is not an instruction.
        """
        if statement not in self._known:
            self._known[statement] = self._of_access(statement)
        return self._known[statement]

    @cached_property
    def _known(self) -> dict[int, frozenset[Root]]:
        """A cache for `of_access`: each access is compared with many others."""
        return {}

    def _of_access(self, statement: int) -> frozenset[Root]:
        instruction = self.reaching.body[statement]
        if not isinstance(instruction, Instruction):
            raise ValueError(f"statement {statement} is not an instruction")
        addresses = [o for o in instruction.operands if isinstance(o, Address | TextureAddress)]
        found = [self._of_address(statement, address) for address in addresses]
        return _union(found) if found else frozenset({UNKNOWN})

    def of_value(self, statement: int, operand: Operand) -> frozenset[Root]:
        """The roots of an operand as ``statement`` reads it; none for a plain number."""
        found = self._of_operand(statement, operand, self._definitions)
        return found - {_HIDDEN} | {UNKNOWN} if _HIDDEN in found else found

    def _of_address(self, statement: int, address: Address | TextureAddress) -> frozenset[Root]:
        if isinstance(address, TextureAddress):
            return frozenset({UNKNOWN})
        # A plain number as an address says nothing about what is there.
        return self.of_value(statement, address.base) or frozenset({UNKNOWN})

    @cached_property
    def _definitions(self) -> Mapping[int, frozenset[Root]]:
        """The roots of what each statement writes."""
        cfg = self.reaching.cfg
        order = [i for b in cfg.reverse_postorder for i in cfg.blocks[b].statements()]
        written = [i for i in order if effects.writes(self.reaching.body[i])]
        found: dict[int, frozenset[Root]] = dict.fromkeys(written, frozenset())
        readers = self._readers(written)
        pending = set(written)  # what reads only roots that have not changed is not computed again
        for _ in range(_MOST_ROUNDS):
            if not pending:
                return found
            changed = False
            for definition in written:
                if definition not in pending:
                    continue
                pending.discard(definition)
                roots = self._of_definition(definition, found)
                if roots != found[definition]:
                    found[definition] = roots
                    pending.update(readers[definition])
                    changed = True
            if not changed:
                return found
        return dict.fromkeys(written, frozenset({UNKNOWN}))

    def _readers(self, written: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The definitions that read each of the definitions ``written``."""
        found: dict[int, list[int]] = {definition: [] for definition in written}
        for index in written:
            for name in effects.reads(self.reaching.body[index]):
                for definition in self.reaching.reaching(index, name):
                    if definition != ENTRY:
                        found[definition].append(index)
        return found

    def _of_definition(self, definition: int, known: Mapping[int, frozenset[Root]]) -> frozenset[Root]:
        instruction = self.reaching.body[definition]
        assert isinstance(instruction, Instruction)
        facts = isa.facts(instruction)
        if facts.arithmetic in _NUMBERS:
            return frozenset()
        if instruction.base == "cvta" and "to" not in instruction.parts and "global" not in instruction.parts:
            # A number that the host passes may be an address in shared memory.
            found = self._of_operand(definition, instruction.operands[1], known)
            return found if all(root.kind == "variable" for root in found) else frozenset({UNKNOWN})
        if facts.arithmetic in _SUMS | _CHOICES:
            sources = [self._of_operand(definition, source, known) for source in _pointers(instruction)]
            if facts.arithmetic is Arithmetic.DIFFERENCE:
                return _difference(*sources)
            return _sum(sources) if facts.arithmetic in _SUMS else _union(sources)
        if facts.space == "param" and self.function.kind == "entry":
            return self._of_parameter(instruction)
        sources = [self._of_operand(definition, o, known) for o in instruction.operands[1:] if facts.pure]
        return frozenset({_HIDDEN if any(map(_holds_variable, sources)) else UNKNOWN})

    def _of_operand(
        self, statement: int, operand: Operand, known: Mapping[int, frozenset[Root]]
    ) -> frozenset[Root]:
        if isinstance(operand, Indexed):
            return self._of_operand(statement, operand.base, known)
        if isinstance(operand, Symbol):
            return frozenset({Root("variable", operand.name)})
        if isinstance(operand, Literal | SpecialRegister):
            return frozenset()
        if not isinstance(operand, Register):
            return frozenset({UNKNOWN})
        definitions = self.reaching.reaching(statement, operand.name)
        return _union(frozenset({UNKNOWN}) if d == ENTRY else known[d] for d in definitions)

    def _of_parameter(self, instruction: Instruction) -> frozenset[Root]:
        bases = [o.base for o in instruction.operands if isinstance(o, Address)]
        if not reads_unchanging_memory(instruction, self.function):
            return frozenset({UNKNOWN})
        return frozenset(Root("parameter", b.name) if isinstance(b, Symbol) else UNKNOWN for b in bases)


def _pointers(instruction: Instruction) -> tuple[Operand, ...]:
    """The source operands that the result may be derived from: no factor of a product, no predicate."""
    if isa.facts(instruction).arithmetic is Arithmetic.PRODUCT_SUM:
        return instruction.operands[-1:]
    return instruction.operands[1:3]


def _sum(sources: list[frozenset[Root]]) -> frozenset[Root]:
    """The roots of a sum: if one operand is surely a variable's address, the others are offsets to it."""
    variables = [roots for roots in sources if roots and all(root.kind == "variable" for root in roots)]
    return _union(sources if any(_HIDDEN in roots for roots in sources) else variables or sources)


def _difference(a: frozenset[Root], b: frozenset[Root]) -> frozenset[Root]:
    """The roots of ``a`` less ``b``: a distance if both are addresses in one object."""
    if a == b and all(root.kind != "unknown" for root in a):
        return frozenset()
    return frozenset({_HIDDEN}) if _holds_variable(b) else _sum([a, b])


def _holds_variable(roots: frozenset[Root]) -> bool:
    return any(root.kind == "variable" or root == _HIDDEN for root in roots)


def _union(sets: Iterable[frozenset[Root]]) -> frozenset[Root]:
    return frozenset(root for roots in sets for root in roots)
