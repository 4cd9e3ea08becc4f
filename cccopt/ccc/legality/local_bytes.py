"""Which bytes of a function's local variables each statement loads and stores, and which of them are live.

PTX does not distinguish arrays: nvcc puts all arrays of a function into one variable (`__local_depot0`), and any of
them may begin at any address that is computed there. So an access at a constant place touches just these bytes, and any
other access may touch the whole variable.

        st.local.u32 [%SPL+8], %r1;         stores bytes 8 to 11, surely
        ld.local.u32 %r2, [%rd7];           %rd7 = %SPL + 4 * %r9: may load any byte

Liveness is computed as for registers (`cccopt.analysis.liveness`), over sets of bytes. A loop of one block that stores
from one constant place to another stores all bytes in between (`cccopt.analysis.stored`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from cccopt.analysis import effects
from cccopt.analysis.affine import access_size
from cccopt.analysis.dataflow import Analysis, Direction, FlowGraph, solve
from cccopt.analysis.roots import UNKNOWN, AddressRoots
from cccopt.analysis.stored import StoredBytes
from cccopt.ccc.function.calls import HARMLESS_CALLS
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.local_memory import derived_from
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Operand, Register, Symbol
from cccopt.ptx.isa import Control, Memory, Role, callee_of


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """What a statement does to local memory, as sets of bytes: those that it may load, may store, and surely stores."""

    loads: int = 0
    stores: int = 0
    kills: int = 0


@dataclass(frozen=True)
class LocalBytes:
    """The local memory of one function. Statements are given by index, sets of bytes as bit sets (`bits`)."""

    view: View

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The size of each local variable, in bytes."""
        return self._stored.sizes

    def bits(self, variable: str, start: int, stop: int) -> int:
        """The bytes ``start`` to ``stop`` (half-open) of a variable, as far as it reaches."""
        first, size = self._starts[variable], self.sizes[variable]
        start, stop = max(start, 0), min(stop, size)
        return ((1 << max(stop - start, 0)) - 1) << (first + start)

    @cached_property
    def accesses(self) -> Mapping[int, LocalAccess]:
        """What each statement that uses local memory does to it."""
        found = {
            i: access for i, s in self._instructions() if (access := self._access(i, s)) != LocalAccess()
        }
        passed = {index: self._of_values(index) for index in self._printed}
        read = LocalAccess(loads=union(passed.values()))
        found.update({index: LocalAccess(loads=bits) for index, bits in passed.items()})
        return found | dict.fromkeys(self._printed.values(), read)

    @cached_property
    def escapes(self) -> tuple[int, ...]:
        """The statements that pass an address of local memory on to where it cannot be followed, or access local memory
        at an address that cannot be followed.
        """
        found: list[int] = []
        for index, statement in self._instructions():
            if isa.facts(statement).pure or index in self._printed:
                continue
            values = {name for _, name in _values(statement)}
            accesses = self.view.memory.accesses_memory(index)
            roots = self.view.memory.roots(index) if accesses else frozenset()
            lost = isa.facts(statement).space == "local" and any(r.name not in self.sizes for r in roots)
            if lost or values & self._addresses:
                found.append(index)
        return tuple(found)

    def may_follow(self, index: int) -> bool:
        """Whether a statement may access memory at an address that was passed on."""
        statement = self.view.body[index]
        if not isinstance(statement, Instruction):
            return False
        facts = isa.facts(statement)
        if facts.control is Control.CALL:
            return callee_of(statement) not in HARMLESS_CALLS
        if not self.view.memory.accesses_memory(index) or facts.space not in (None, "generic", "local"):
            return False
        return UNKNOWN in self.view.memory.roots(index)

    # --- data flow ---

    def stored_in(self, blocks: Iterable[int]) -> int:
        """All bytes that statements of some blocks may store."""
        statements = (i for block in blocks for i in self.view.cfg.blocks[block].statements())
        return union(self.accesses[i].stores for i in statements if i in self.accesses)

    def live(
        self, blocks: Collection[int], header: int | None = None, cut: Collection[int] = ()
    ) -> Mapping[int, int]:
        """The bytes that may be loaded before they are stored, from the beginning of each of ``blocks`` onwards, as
        long as control stays in them and does not reach ``header``. What a loop stores as a whole does not count if it
        contains one of the blocks ``cut``.
        """
        followed = {b: self._stored_by_loop(b) if b not in cut else 0 for b in blocks}

        def transfer(block: int, live: int) -> int:
            live &= ~followed[block]
            for index in reversed(self.view.cfg.blocks[block].statements()):
                access = self.accesses.get(index)
                if access is not None:
                    live = live & ~access.kills | access.loads
            return live

        return solve(Analysis(Direction.BACKWARD, 0, 0, or_, transfer), self._graph(blocks, header)).before

    def stored_before(self, blocks: Collection[int], header: int) -> Mapping[int, int]:
        """What code of ``blocks`` may have stored, since control was last at ``header``, where each of them begins."""

        def transfer(block: int, stored: int) -> int:
            return stored | self.stored_in([block])

        return solve(Analysis(Direction.FORWARD, 0, 0, or_, transfer), self._graph(blocks, header)).before

    def _graph(self, blocks: Collection[int], header: int | None) -> FlowGraph:
        successors = self.view.cfg.successors
        inside = {b: tuple(t for t in successors[b] if t in blocks and t != header) for b in sorted(blocks)}
        return FlowGraph(inside, frozenset({min(blocks)}), frozenset())

    def _stored_by_loop(self, block: int) -> int:
        """What the loop that consists of only this block has surely stored when control leaves it."""
        if self._stored.loop_of(block) is None:
            return 0
        found = 0
        for index in self.view.cfg.blocks[block].statements():
            for name in self.sizes if self.accesses.get(index, LocalAccess()).stores else ():
                for byte in self._stored.bytes_of(index, name):
                    found |= self.bits(name, byte, byte + 1)
        return found

    # --- single statements ---

    def _access(self, index: int, statement: Instruction) -> LocalAccess:
        if not self.view.memory.accesses_memory(index) or isa.facts(statement).control is Control.CALL:
            return LocalAccess()
        touched = 0
        for root in self.view.memory.roots(index):
            if root.name in self.sizes:
                touched |= self.bits(root.name, 0, self.sizes[root.name])
        place, surely = self._stored.place(index), False
        size = access_size(statement)
        if touched and size and place is not None and place[0] in self.sizes:
            touched, surely = self.bits(place[0], place[1], place[1] + size), statement.guard is None
        memory = isa.facts(statement).memory
        return LocalAccess(
            touched if memory is not Memory.STORE else 0,
            touched if memory is not Memory.LOAD else 0,
            touched if memory is Memory.STORE and surely else 0,
        )

    def _of_values(self, index: int) -> int:
        """All bytes of the variables whose addresses a statement reads as values."""
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        roots = AddressRoots(self.view.function, self.view.reaching)
        found = {r.name for o, _ in _values(statement) for r in roots.of_value(index, o)}
        return sum(self.bits(name, 0, self.sizes[name]) for name in sorted(found) if name in self.sizes)

    @cached_property
    def _printed(self) -> Mapping[int, int]:
        """The statements that pass an address of local memory to a system call that only reads there, each with the
        call.
        """
        found: dict[int, int] = {}
        for block in self.view.cfg.blocks:
            passing: list[int] = []
            for index in block.statements():
                statement = self.view.body[index]
                if not isinstance(statement, Instruction):
                    continue
                if statement.base == "st" and isa.facts(statement).space == "param":
                    passed = any(name in self._addresses for _, name in _values(statement))
                    passing += [index] if passed else []
                elif isa.facts(statement).control is Control.CALL:
                    if callee_of(statement) in HARMLESS_CALLS:
                        found.update(dict.fromkeys(passing, index))
                    passing = []
        return found

    @cached_property
    def _addresses(self) -> frozenset[str]:
        """Registers that may hold an address of local memory."""
        derived: dict[str, set[str]] = {}
        work: list[str] = []
        for _, statement in self._instructions():
            if isa.facts(statement).pure:
                # The result of comparing addresses is not an address.
                made = {name for name in effects.writes(statement) if self.view.types[name] != "pred"}
                for name in effects.reads(statement):
                    derived.setdefault(name, set()).update(made)
                named = {o.name for o in statement.operands if isinstance(o, Symbol)}
                if statement.opcode.startswith("cvta.local") or not named.isdisjoint(self.sizes):
                    work += made
        return derived_from(work, derived)

    # --- helpers ---

    def _instructions(self) -> Iterator[tuple[int, Instruction]]:
        for block in self.view.cfg.reverse_postorder:
            for index in self.view.cfg.blocks[block].statements():
                statement = self.view.body[index]
                if isinstance(statement, Instruction):
                    yield index, statement

    @cached_property
    def _starts(self) -> Mapping[str, int]:
        """The index of the first byte of each variable."""
        found, start = dict[str, int](), 0
        for name, size in self.sizes.items():
            found[name] = start
            start += size
        return found

    @cached_property
    def _stored(self) -> StoredBytes:
        return StoredBytes(self.view.reaching, self.view.dominators, self.view.loops)


def _values(statement: Instruction) -> Iterator[tuple[Operand, str]]:
    """The registers that a statement reads other than as addresses to access, with the operands that contain them."""
    for operand, role in zip(statement.operands, isa.facts(statement).roles, strict=True):
        if role is not Role.DEF and not isinstance(operand, Address):
            yield from ((operand, r.name) for r in isa.registers_in(operand) if isinstance(r, Register))


def union(sets: Iterable[int]) -> int:
    """The union of some sets of bytes."""
    return reduce(or_, sets, 0)
