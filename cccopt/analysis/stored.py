"""Definite assignment of local arrays: whether all bytes that a load may read have been stored before it.

Stores at constant addresses count if they dominate the load, and so do those of a single-block loop whose iterations
can be followed: it starts from constants and steps to a constant end. nvcc's `sinf` fills its scratch memory like this:

        mov.u64 %rd1, __local_depot0; mov.u32 %r1, 0;
    L:  st.local.u32 [%rd1], %r9; add.s64 %rd1, %rd1, 4; add.s32 %r1, %r1, 1;     bytes 0 to 23
        setp.ne.s32 %p1, %r1, 6; @%p1 bra L;
        st.local.u32 [%SPL+24], %r9;                                              bytes 24 to 27

Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.4 (constant propagation).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.comparisons import is_comparison
from cccopt.analysis.dominance import Dominance
from cccopt.analysis.loops import Loop
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions
from cccopt.ptx import isa
from cccopt.ptx.constants import number
from cccopt.ptx.ir import Address, Instruction, Literal, Operand, Register, Symbol, Variable
from cccopt.ptx.isa import Arithmetic

_MAX_TRIP_COUNT = 1024
_LARGEST = 1 << 31
_DEEPEST = 24

_COMPUTE: Mapping[Arithmetic, Callable[[int, int], int]] = {
    Arithmetic.SUM: operator.add,
    Arithmetic.DIFFERENCE: operator.sub,
    Arithmetic.PRODUCT: operator.mul,
    Arithmetic.LEFT_SHIFT: operator.lshift,
}
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Value:
    """A known number, or an address: that many bytes after the beginning of the variable ``root``."""

    number: int
    root: str = ""


@dataclass(frozen=True)
class StoredBytes:
    """The stores of one function to its local variables. Statements are given by index."""

    reaching: ReachingDefinitions
    dominators: Dominance
    loops: tuple[Loop, ...]

    def covers(self, load: int, variable: str, stores: Collection[int]) -> bool:
        """Whether ``stores`` have surely stored every byte of the local ``variable`` when control reaches ``load``."""
        size = self.sizes.get(variable)
        if size is None:
            return False
        missing = set(range(size))
        for store in stores:
            if missing and self._always_before(store, load):
                missing -= self.bytes_of(store, variable)
        return not missing

    def _always_before(self, store: int, load: int) -> bool:
        """Whether every path of control to ``load`` passes ``store``, and completes the single-block loop around it, if
        any.
        """
        cfg = self.reaching.cfg
        a, b = cfg.block_of(store), cfg.block_of(load)
        if a == b:
            return store < load and self.loop_of(a) is None
        return self.dominators.dominates(a, b)

    def loop_of(self, block: int) -> Loop | None:
        """The loop that consists only of ``block``."""
        return next((loop for loop in self.loops if loop.blocks == {block}), None)

    def place(self, access: int) -> tuple[str, int] | None:
        """The variable and the offset at which a load or store begins, if that is always the same."""
        statement = self.reaching.body[access]
        assert isinstance(statement, Instruction)
        address = self._address(statement, lambda name: self._value(access, name, 0))
        return (address.root, address.number) if address is not None and address.root else None

    def bytes_of(self, store: int, variable: str) -> frozenset[int]:
        """The bytes of ``variable`` that ``store`` has stored whenever control has passed it."""
        if (store, variable) not in self._known:
            block = self.reaching.cfg.block_of(store)
            around = self.loop_of(block)
            statement = self.reaching.body[store]
            assert isinstance(statement, Instruction)
            addresses = (
                [self._address(statement, lambda name: self._value(store, name, 0))]
                if around is None
                else self._followed(around, store)
            )
            size = self._width(statement)
            self._known[store, variable] = frozenset(
                address.number + i
                for address in addresses
                if address is not None and address.root == variable and statement.guard is None
                for i in range(size)
            )
        return self._known[store, variable]

    @cached_property
    def _known(self) -> dict[tuple[int, str], frozenset[int]]:
        return {}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The bytes of each local variable."""
        found: dict[str, int] = {}
        for statement in self.reaching.body:
            if (
                isinstance(statement, Variable)
                and statement.space == "local"
                and None not in statement.dimensions
            ):
                size = isa.width(statement.type.lstrip(".")) // 8
                for extent in statement.dimensions:
                    size *= extent or 0
                found[statement.name] = size
        return found

    def _width(self, store: Instruction) -> int:
        vector = next((int(part[1:]) for part in store.parts if part in ("v2", "v4", "v8")), 1)
        return isa.width(store.parts[-1]) // 8 * vector

    def _address(self, store: Instruction, value: Callable[[str], _Value | None]) -> _Value | None:
        address = next((o for o in store.operands if isinstance(o, Address)), None)
        if address is None:
            return None
        offset = address.offset
        if offset is not None and not isinstance(offset, Literal):
            return None
        base = self._operand(address.base, value) if isinstance(address.base, Register | Symbol) else None
        moved = number(offset.spelling) if offset is not None else 0
        return _Value(base.number + int(moved), base.root) if base is not None else None

    def _followed(self, loop: Loop, store: int) -> list[_Value | None]:
        """Where ``store`` stores in each iteration of a single-block loop, computed from constants; empty if that is
        unknown.
        """
        (block,) = loop.blocks
        cfg, body = self.reaching.cfg, self.reaching.body
        statements = list(cfg.blocks[block].statements())
        end = body[statements[-1]]
        entering = [b for b in cfg.predecessors[block] if b != block]
        if len(entering) != 1 or not isinstance(end, Instruction) or end.guard is None:
            return []
        (before,) = entering
        target = next((o.name for o in end.operands if isinstance(o, Symbol)), "")
        again = target == cfg.blocks[block].label
        state: dict[str, _Value | None] = {}

        def value(name: str) -> _Value | None:
            if name not in state:
                state[name] = self._only(self.reaching.reaching_end(before, name), 0)
            return state[name]

        addresses: list[_Value | None] = []
        for _ in range(_MAX_TRIP_COUNT):
            for index in statements[:-1]:
                statement = body[index]
                if isinstance(statement, Instruction):
                    if index == store:
                        addresses.append(self._address(statement, value))
                    made = self._computed(statement, value)
                    state.update(dict.fromkeys(effects.writes(statement), made))
            test = value(end.guard.register.name)
            if test is None:
                return []
            if (bool(test.number) != end.guard.negated) != again:
                return addresses
        return []

    def _value(self, statement: int, name: str, depth: int) -> _Value | None:
        """What the register holds at the statement, if that is always the same."""
        return self._only(self.reaching.reaching(statement, name), depth)

    def _only(self, definitions: frozenset[int], depth: int) -> _Value | None:
        if len(definitions) != 1 or ENTRY in definitions or depth > _DEEPEST:
            return None
        (definition,) = definitions
        if (definition, depth) not in self._defined:
            self._defined[definition, depth] = self._of_definition(definition, depth)
        return self._defined[definition, depth]

    @cached_property
    def _defined(self) -> dict[tuple[int, int], _Value | None]:
        """A cache of the values of definitions, by the depth at which they are followed: many addresses share some."""
        return {}

    def _of_definition(self, definition: int, depth: int) -> _Value | None:
        statement = self.reaching.body[definition]
        assert isinstance(statement, Instruction)
        if len(effects.writes(statement)) != 1 or isa.is_conditional_write(statement):
            return None
        return self._computed(statement, lambda name: self._value(definition, name, depth + 1))

    def _computed(self, instruction: Instruction, value: Callable[[str], _Value | None]) -> _Value | None:
        """What an instruction of a few kinds computes, in numbers that no width truncates."""
        if instruction.guard is not None or len(instruction.operands) < 2:
            return None
        sources = [self._operand(operand, value) for operand in instruction.operands[1:]]
        if any(source is None for source in sources):
            return None
        known = [source for source in sources if source is not None]
        result: _Value | None = None
        facts = isa.facts(instruction)
        if facts.arithmetic is Arithmetic.COPY and len(known) == 1:
            (result,) = known
        elif is_comparison(instruction) and instruction.parts[1] in _COMPARE:
            a, b = known
            return (
                _Value(int(_COMPARE[instruction.parts[1]](a.number, b.number))) if a.root == b.root else None
            )
        elif (
            facts.linear
            and facts.arithmetic in _COMPUTE
            and len(known) == 2
            and "hi" not in instruction.parts
        ):
            a, b = known
            offset = facts.arithmetic is Arithmetic.SUM or not (a.root or b.root)
            offset = offset or (facts.arithmetic is Arithmetic.DIFFERENCE and not b.root)
            if not offset or (a.root and b.root):
                return None
            result = _Value(_COMPUTE[facts.arithmetic](a.number, b.number), a.root or b.root)
        return result if result is not None and 0 <= result.number < _LARGEST else None

    def _operand(self, operand: Operand, value: Callable[[str], _Value | None]) -> _Value | None:
        if isinstance(operand, Register):
            return value(operand.name)
        if isinstance(operand, Symbol):
            return _Value(0, operand.name)
        if isinstance(operand, Literal):
            literal = number(operand.spelling)
            return _Value(literal) if isinstance(literal, int) else None
        return None
