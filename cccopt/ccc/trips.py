"""Counted loops whose trips are tasks: how many trips a lane has left, and what a trip reads, from its number alone.

    LOOP: ld.global.u32 %r5, [%rd1];        header registers: %rd1 begins with a and grows by 4,
          ...                                                 %r1 begins with b and grows by 1
          add.s64 %rd1, %rd1, 4;            trip t reads %rd1 = a + 4 t; nothing but the test reads %r1
          add.s32 %r1, %r1, 1;
          setp.ne.s32 %p1, %r1, 0;          behind the first trip -b - 1 are left
          @%p1 bra LOOP;

Basic induction variables: Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.1.2 and 9.6. All arithmetic is that of the
machine, modulo 2^32 or 2^64: trips are counted right whenever the loop ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.affine import access_size
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.cost import integer
from cccopt.analysis.invariance import LoopInvariance
from cccopt.analysis.loops import innermost
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.graph import Branch, Node, condition, targets
from cccopt.ccc.regions import Path
from cccopt.ccc.view import View
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Literal, Operand, Register
from cccopt.ptx.isa import Control, Memory

_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@dataclass(frozen=True, slots=True)
class TripCount:
    """Behind a trip the lane goes on while ``register`` + ``offset`` ``compare`` ``bound``, both of ``type``; at the
    end of the first trip the register is what it was at its beginning, and it grows by ``step`` from trip to trip.

    Where ``compare`` is ``ne``, ``step`` is a power of two or its negative; else it is 1 (``lt``, ``le``) or -1.
    """

    register: str
    offset: int
    step: int
    compare: str
    type: str
    bound: Register | Literal

    @property
    def registers(self) -> frozenset[str]:
        """Those that tell how many trips there are."""
        return frozenset({self.register, *([self.bound.name] if isinstance(self.bound, Register) else [])})


@dataclass(frozen=True, slots=True)
class Pointer:
    """A register that is ``base`` + ``counter`` * ``size`` in each trip, the product made by ``widen``."""

    register: str
    base: str
    counter: str
    size: int
    widen: str


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """A loop with one exit, at its latch, whose trips a lane can begin in any order.

    ``steps`` are the bytes or counts by which registers that a trip reads grow from trip to trip, ``pointers`` those
    that follow one of them, ``reads`` all other registers that a trip reads before it writes them, ``code`` the
    statements that a trip needs, its own test not.
    """

    latch: str
    count: TripCount
    steps: Mapping[str, int]
    pointers: tuple[Pointer, ...]
    reads: frozenset[str]
    code: frozenset[int]

    @property
    def strides(self) -> Mapping[str, int]:
        """How much each register that trips count grows from one to the next."""
        return {**self.steps, **{p.register: p.size * self.steps[p.counter] for p in self.pointers}}


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to memory in a trip: ``fixed`` to one place in all trips of a lane, or at ``offset`` from what
    ``register`` holds at the header, where that is known. ``size`` is in bytes, ``value`` what a store to a fixed place
    stores.
    """

    fixed: bool
    size: int
    register: str = ""
    offset: int = 0
    value: tuple[Operand, ...] = ()


def counted_loop(
    view: View, path: Path, carried: Iterable[str], fixed: Callable[[str], bool]
) -> CountedLoop | None:
    """The path as a counted loop, or None where it is none.

    ``carried`` registers go from trip to trip in any lane; ``fixed`` tells which are the same in the whole warp for all
    its trips.
    """
    return _Loop(view, path, frozenset(carried), fixed).counted()


class _Loop:
    def __init__(self, view: View, path: Path, carried: frozenset[str], fixed: Callable[[str], bool]) -> None:
        self.view = view
        self.path = path
        self.carried = carried
        self.fixed = fixed
        self.header = view.block_of_name[path.begin]
        self.blocks = view.blocks_of(path.nodes)
        self.statements = frozenset(view.statements(path.nodes))
        self.written = {name for i in self.statements for name in effects.writes(view.body[i])}

    def counted(self) -> CountedLoop | None:
        latch = self._latch()
        if latch is None:
            return None
        name, node = latch
        assert isinstance(node.end, Branch)
        branch = self.view.cfg.blocks[self.view.block_of_name[name]].stop - 1
        count = self._count(branch, node.end)
        if count is None:
            return None
        if self._dependent():
            return None
        needed = self._needed(branch)
        reads = {r for i in needed for r in effects.needs(self.view.body[i]) if self._from_ahead(i, r)}
        steps: dict[str, int] = {}
        for register in sorted(reads & self.written - self.carried):
            step = self._step(register)
            if step is None:
                return None
            steps[register] = step
        pointers = tuple(p for r, step in steps.items() if (p := self._pointer(r, step, count)) is not None)
        if pointers:
            gone = {pointer.register for pointer in pointers}
            steps = {r: step for r, step in steps.items() if r not in gone} | {count.register: count.step}
            reads = reads - gone | {count.register}
        return CountedLoop(name, count, steps, pointers, frozenset(reads), frozenset(needed))

    def _pointer(self, register: str, step: int, count: TripCount) -> Pointer | None:
        """The register as an address that the loop's counter gives, without its wrapping around."""
        sign = count.type[0]
        made = self._ahead(register)
        if isa.width(count.type) != 32 or sign not in "su" or count.compare == "ne" or made is None:
            return None
        index, addition = made
        if addition.base != "add" or isa.width(addition.parts[-1]) != 64:
            return None
        for base, offset in (addition.operands[1:], addition.operands[:0:-1]):
            product = self._single(index, offset)
            if product is None or not isinstance(base, Register) or not self._lasts(index, base.name):
                continue
            where, multiply = product
            if multiply.opcode != f"mul.wide.{sign}32" or multiply.operands[1] != Register(count.register):
                continue
            size = integer(multiply.operands[2])
            if (
                size is not None
                and size * count.step == step
                and self._lasts(where, count.register, counts=True)
            ):
                return Pointer(register, base.name, count.register, size, multiply.opcode)
        return None

    def _ahead(self, register: str) -> tuple[int, Instruction] | None:
        """The one statement ahead of the loop that gives a register its first value."""
        first = self.view.cfg.blocks[self.header].start
        outside = self.view.reaching.reaching(first, register) - self.statements
        return self._statement(outside)

    def _single(self, use: int, operand: Operand) -> tuple[int, Instruction] | None:
        """The one statement whose result ``use`` reads."""
        if not isinstance(operand, Register):
            return None
        return self._statement(self.view.reaching.reaching(use, operand.name))

    def _statement(self, definitions: Iterable[int]) -> tuple[int, Instruction] | None:
        found = [*definitions]
        statement = self.view.body[found[0]] if len(found) == 1 and ENTRY not in found else None
        if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
            return None
        return found[0], statement

    def _lasts(self, use: int, register: str, *, counts: bool = False) -> bool:
        """Whether a register holds at the loop's header, or where it ``counts`` trips at first, what ``use`` reads."""
        first = self.view.cfg.blocks[self.header].start
        held = self.view.reaching.reaching(first, register)
        if counts:
            held -= self.statements
        elif not self.fixed(register):
            return False
        return held == self.view.reaching.reaching(use, register)

    def _dependent(self) -> bool:
        """Whether a trip is seen to hand something to a later one through memory: at a place that is the same in each
        trip, or at one that both reach. For all else the pragma's word is taken.
        """
        view = self.view
        invariance = LoopInvariance(view.function, view.reaching, self.blocks)
        stores: list[_Access] = []
        others: list[_Access] = []
        for index, instruction in view.instructions(self.path.nodes):
            facts = isa.facts(instruction)
            if facts.control is Control.CALL:
                return True
            if facts.memory is Memory.NONE or facts.space in ("local", "param", "const"):
                continue
            place = next(o for o in instruction.operands if isinstance(o, Address))
            base = place.base.name if isinstance(place.base, Register) else ""
            access = self._access(index, place, fixed=not base or invariance.holds(index, base))
            if facts.memory is Memory.STORE:
                values = effects.reads(instruction) - {base}
                if access.fixed and not all(invariance.holds(index, name) for name in values):
                    return True
                value = tuple(self._plain(index, o) for o in instruction.operands if o is not place)
                stores.append(replace(access, value=value))
            elif facts.memory is Memory.LOAD and not reads_unchanging_memory(instruction, view.function):
                others.append(access)
            elif facts.memory is Memory.ATOMIC and access.fixed and self._differs(index, base):
                # In one order within a lane; any two lanes had none.
                return True
        return any(self._meet(store, other) for store in stores for other in (*stores, *others))

    def _differs(self, index: int, register: str) -> bool:
        return bool(register) and not self.view.uniformity.is_uniform_use(index, register)

    def _access(self, index: int, place: Address, *, fixed: bool) -> _Access:
        found = self._from_header(index, place.base)
        by = 0 if place.offset is None else integer(place.offset)
        size = access_size(self.view.body[index])
        if found is None or by is None:
            return _Access(fixed, size)
        register, offset = found
        return _Access(fixed, size, register, offset + by)

    def _plain(self, index: int, operand: Operand) -> Operand:
        """The literal that a register holds at a statement, or the operand as it is."""
        found = self._definition(index, operand.name) if isinstance(operand, Register) else None
        statement = None if found is None else self.view.body[found]
        if isinstance(statement, Instruction) and statement.base == "mov":
            (_, source) = statement.operands
            return source if isinstance(source, Literal) else operand
        return operand

    def _meet(self, store: _Access, other: _Access) -> bool:
        """Whether the store of one trip is seen to reach what the other access does in another one."""
        if store.fixed and other.fixed:
            return store.value != other.value
        step = self._step(store.register) if store.register and store.register == other.register else None
        if step is None:
            return False
        apart, size = store.offset - other.offset, max(store.size, other.size)
        nearest = apart // step
        return any(abs(apart - trips * step) < size for trips in (nearest, nearest + 1) if trips)

    def _latch(self) -> tuple[str, Node] | None:
        """The one node that leads out of the loop and back to its header, by one branch."""
        nodes = {name: self.view.graph.nodes[name] for name in self.path.nodes}
        outside = nodes.keys() | self.view.traps
        leaving = [n for n, node in nodes.items() if any(t not in outside for t in targets(node.end))]
        again = [n for n, node in nodes.items() if self.path.begin in targets(node.end)]
        if leaving != again or len(leaving) != 1:
            return None
        node = nodes[leaving[0]]
        return (leaving[0], node) if isinstance(node.end, Branch) and self._once(leaving[0]) else None

    def _once(self, name: str) -> bool:
        """Whether each trip runs the node, once."""
        loop = innermost(self.view.loops, self.view.block_of_name[name])
        return loop is not None and loop.header == self.header

    def _count(self, branch: int, end: Branch) -> TripCount | None:
        going = condition(end, self.path.begin)
        test = self._definition(branch, going.register.name)
        statement = None if test is None else self.view.body[test]
        if test is None or not isinstance(statement, Instruction):
            return None
        if statement.base != "setp" or len(statement.parts) != 3 or len(statement.operands) != 3:
            return None
        compare, type = statement.parts[1:]
        if type not in ("s32", "u32", "b32", "s64", "u64", "b64"):
            return None
        if compare in _UNSIGNED:
            compare, type = _UNSIGNED[compare], "u" + type[1:]
        target, left, right = statement.operands
        # Of a pair the second one holds the opposite.
        if compare not in _OPPOSITE or target != going.register:
            return None
        value = self._from_header(test, left)
        if value is None:
            compare, left, right = _SWAPPED[compare], right, left
            value = self._from_header(test, left)
        if going.negated:
            compare = _OPPOSITE[compare]
        if value is None or not self._is_fixed(right):
            return None
        register, offset = value
        step = self._step(register)
        if step is None or isa.width(self.view.types[register]) != isa.width(type):
            return None
        ways = {"ne": abs(step).bit_count() == 1, "lt": step == 1, "le": step == 1}
        if not ways.get(compare, compare in ("gt", "ge") and step == -1):
            return None
        assert isinstance(right, Register | Literal)
        return TripCount(register, offset, step, compare, type, right)

    def _is_fixed(self, operand: Operand) -> bool:
        """Whether an operand of the test is the same in each trip of a lane."""
        if isinstance(operand, Register):
            return operand.name not in self.written
        return isinstance(operand, Literal) and integer(operand) is not None

    def _definition(self, use: int, register: str) -> int | None:
        """The one statement of a trip whose result ``use`` reads, whatever way the trip took."""
        definitions = self.view.reaching.reaching(use, register)
        if len(definitions) != 1 or not definitions <= self.statements:
            return None
        (index,) = definitions
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return None if isa.is_conditional_write(statement) else index

    def _from_header(self, use: int, operand: Operand, depth: int = 8) -> tuple[str, int] | None:
        """The register of the header, and what is added to it, whose sum ``use`` reads."""
        if not isinstance(operand, Register) or operand.name not in self.written or not depth:
            return None
        if self._from_ahead(use, operand.name):
            return operand.name, 0
        index = self._definition(use, operand.name)
        if index is None:
            return None
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        kind = statement.parts[1:]
        if len(kind) != 1 or kind[0][1:] not in ("32", "64") or kind[0][0] not in "bsu":
            return None
        found = self._from_header(index, statement.operands[1], depth - 1)
        if found is None or statement.base == "mov":
            return found
        by = integer(statement.operands[2]) if statement.base in ("add", "sub") else None
        if by is None:
            return None
        register, offset = found
        return register, offset + (by if statement.base == "add" else -by)

    def _from_ahead(self, use: int, register: str) -> bool:
        """Whether ``use`` reads what the register held at the header, for all that is known of it."""
        definitions = self.view.reaching.reaching(use, register)
        return not definitions <= self.statements or definitions == self.view.reaching.reaching(
            self.view.cfg.blocks[self.header].start, register
        )

    def _step(self, register: str) -> int | None:
        """By how much a register of the header grows from trip to trip."""
        first = self.view.cfg.blocks[self.header].start
        inside = self.view.reaching.reaching(first, register) & self.statements
        if len(inside) != 1 or ENTRY in inside:
            return None
        (index,) = inside
        block = self.view.cfg.block_of(index)
        if not self._once(self.view.name(block)) or not self._dominates_latches(block):
            return None
        found = self._grown(index)
        # What is read in between must be the header's own, in each of its uses.
        others = (d for d in self.statements if register in effects.writes(self.view.body[d]) and d != index)
        return found if not any(True for _ in others) else None

    def _grown(self, index: int) -> int | None:
        """By how much the statement's result is larger than what its register held at the header."""
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
            return None
        names = effects.writes(statement)
        if len(names) != 1:
            return None
        (register,) = names
        kind = statement.parts[1:]
        if len(kind) != 1 or kind[0][1:] not in ("32", "64") or kind[0][0] not in "bsu":
            return None
        found = self._from_header(index, statement.operands[1])
        by = 0 if statement.base == "mov" else None
        if statement.base in ("add", "sub"):
            by = integer(statement.operands[2])
        if found is None or by is None or found[0] != register:
            return None
        half = 1 << isa.width(kind[0]) - 1
        step = (found[1] + (-by if statement.base == "sub" else by) + half) % (2 * half) - half
        # Trips are told apart by multiplications of 32 bits.
        return step if step and abs(step) < 1 << 31 else None

    def _dominates_latches(self, block: int) -> bool:
        latches = (b for b in self.blocks if self.header in self.view.cfg.successors[b])
        return all(self.view.dominators.dominates(block, latch) for latch in latches)

    def _needed(self, branch: int) -> set[int]:
        """The statements of a trip without those that only count: the next trip's registers come from its number."""
        body, reaching = self.view.body, self.view.reaching
        work = [
            i
            for i in self.statements
            if isinstance(statement := body[i], Instruction)
            and i != branch
            and (not isa.facts(statement).pure or not effects.writes(statement))
        ]
        work += [
            i
            for i in self.statements
            if not self.carried.isdisjoint(effects.writes(body[i])) and i not in work
        ]
        found: set[int] = set()
        while work:
            index = work.pop()
            if index in found:
                continue
            found.add(index)
            for name in effects.needs(body[index]):
                if not (name in self.written and self._from_ahead(index, name)) or name in self.carried:
                    work += reaching.reaching(index, name) & self.statements
        return found
