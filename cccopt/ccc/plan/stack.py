"""The context stack: its layout in memory and the code that pushes and pops (DESIGN 4.2).

Each warp has S slots (32, or more if tasks of several paths or points wait), as a structure of arrays by word: 64-bit
values in words of 8 bytes, which come first, all others in words of 4. Predicates share one word, one bit each; 16-bit
values are stored two to a word.

    address of word w, slot s = base + warps * S * (bytes of the words before w) + (warp * S + s) * size

In shared memory the stacks of a block's warps lie side by side. In global memory a warp has an entry of a pool to
itself (`cccopt.ccc.plan.pool`): there the number of warps is 1, and the base address is that of the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cccopt.ccc.function.code import at, op
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import Address, Guard, Instruction, Operand, Register, Vector
from cccopt.ptx.isa import width

SLOTS = 32


@dataclass(frozen=True, slots=True)
class StateSpace:
    """A state space that holds stacks: its ``name``, the type of its addresses, and the opcode that computes the
    address of a slot.
    """

    name: str
    address: str
    slot_address: str


SHARED = StateSpace("shared", "b32", "mad.lo.s32")
GLOBAL = StateSpace("global", "b64", "mad.wide.s32")


@dataclass(frozen=True, slots=True)
class Value:
    """A register (or special register) of the context, by name, with its type; or what local memory holds at
    ``address``.
    """

    name: str
    type: str
    address: Address | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """``size`` bytes of a slot that hold ``values``: one of 32 or 64 bits, up to two of 16, or up to 32 predicates."""

    size: int
    values: tuple[Value, ...]

    @property
    def packed(self) -> bool:
        """Whether the word is not simply a value's own bits."""
        return self.values[0].type == "pred" or width(self.values[0].type) == 16

    @property
    def type(self) -> str:
        """The type of a register that holds the word."""
        return f"b{self.size * 8}" if self.packed else self.values[0].type


@dataclass(frozen=True, slots=True)
class Layout:
    """The words of one path's stack, those of 8 bytes first; ``start`` is its offset in the block's stacks."""

    words: tuple[Word, ...]
    threads: int
    start: int

    @property
    def context_bytes(self) -> int:
        """Bytes of one context."""
        return sum(word.size for word in self.words)

    @property
    def bytes(self) -> int:
        """Bytes of the stacks of all warps of a block."""
        return self.context_bytes * self.threads

    def values(self) -> tuple[Value, ...]:
        """All values of a context."""
        return tuple(value for word in self.words for value in word.values)

    def offset(self, index: int) -> int:
        """Where the array of word ``index`` begins, in bytes."""
        return self.start + sum(word.size for word in self.words[:index]) * self.threads


def layout(values: Iterable[Value], threads: int, start: int) -> Layout:
    """The stack for contexts of ``values`` in blocks of up to ``threads`` threads, from byte ``start`` (8-aligned)."""
    values = list(values)
    by_width = {
        bits: [v for v in values if v.type != "pred" and width(v.type) == bits] for bits in (64, 32, 16)
    }
    predicates = [v for v in values if v.type == "pred"]
    halves = by_width[16]
    words = [
        *(Word(8, (v,)) for v in by_width[64]),
        *(Word(4, (v,)) for v in by_width[32]),
        *(Word(4, tuple(halves[i : i + 2])) for i in range(0, len(halves), 2)),
        *(Word(4, tuple(predicates[i : i + 32])) for i in range(0, len(predicates), 32)),
    ]
    rounded = (threads + SLOTS - 1) // SLOTS * SLOTS
    return Layout(tuple(words), rounded, start)


Lookup = Callable[[str], Operand]


@dataclass(frozen=True)
class StackCode:
    """Generates the accesses to one stack. ``bases`` maps a word size to the register with the warp's own base address
    in ``space``.
    """

    layout: Layout
    space: StateSpace
    bases: Mapping[int, Register]
    names: Names
    own: frozenset[str] | None = None

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that the stacks of a block's warps take."""
        return self.layout.bytes if self.space is SHARED else 0

    @property
    def global_bytes(self) -> int:
        """Bytes of global memory that the stack of a warp takes."""
        return self.layout.bytes if self.space is GLOBAL else 0

    def words(self) -> Iterator[tuple[int, Word]]:
        """The words that hold a value of ``own`` (all, if None), with their index in the layout."""
        for index, word in enumerate(self.layout.words):
            if self.own is None or any(value.name in self.own for value in word.values):
                yield index, word

    def addresses(self, slot: Register) -> tuple[list[Instruction], dict[int, Register]]:
        """The code that computes the address of ``slot`` for each word size, and the registers that hold it."""
        code: list[Instruction] = []
        found: dict[int, Register] = {}
        for size, base in self.bases.items():
            found[size] = self.names.register(self.space.address)
            code.append(op(self.space.slot_address, found[size], slot, size, base))
        return code, found

    def push(self, source: Lookup, slot: Register, flag: Guard) -> list[Instruction]:
        """Lanes with ``flag`` store the context that ``source`` names into ``slot``."""
        code, address = self.addresses(slot)
        for index, word in self.words():
            packing, value = self.pack(word, source)
            where = at(address[word.size], self.layout.offset(index))
            code += [*packing, op(f"st.{self.space.name}.b{word.size * 8}", where, value, guard=flag)]
        return code

    def pop(
        self,
        source: Lookup,
        target: Callable[[str], Register],
        slot: Register,
        flag: Guard | None,
        below: int = 0,
    ) -> list[Instruction]:
        """Lanes with ``flag`` (all, if None) load the context of slot ``slot - below`` into ``target``; the others move
        theirs there from ``source``.
        """
        code, address = self.addresses(slot)
        for index, word in self.words():
            where = at(address[word.size], self.layout.offset(index) - below * word.size)
            load = f"ld.{self.space.name}.b{word.size * 8}"
            if word.packed:
                # If all lanes load, they have nothing of their own to keep.
                packing, packed = (
                    ([], self.names.register("b32")) if flag is None else self.pack(word, source)
                )
                code += [*packing, op(load, packed, where, guard=flag), *self.unpack(word, packed, target)]
                continue
            value = word.values[0]
            if value.address is not None:
                code += self._to_local(value, op(load, self.names.register(value.type), where, guard=flag))
                continue
            code += () if flag is None else copy_value(value, source(value.name), target(value.name))
            code.append(op(load, target(value.name), where, guard=flag))
        return code

    def _to_local(self, value: Value, load: Instruction) -> list[Instruction]:
        """The load of a word into a register of its own, and the store from there to its place in local memory, under
        the load's guard.
        """
        (held, _), address, flag = load.operands, value.address, load.guard
        assert isinstance(held, Register)
        assert address is not None
        first = [] if flag is None else [clear(Value(held.name, value.type))]
        return [*first, load, op(f"st.local.{value.type}", address, held, guard=flag)]

    def pack(self, word: Word, source: Lookup) -> tuple[list[Instruction], Register]:
        """The code that packs the values of a word, and the register that then holds it."""
        address = word.values[0].address
        if address is not None:
            held = self.names.register(word.type)
            return [op(f"ld.local.{word.type}", held, address)], held
        if not word.packed:
            operand = source(word.values[0].name)
            if isinstance(operand, Register):
                return [], operand
            held = self.names.register(word.type)
            return [op(f"mov.b{word.size * 8}", held, operand)], held
        packed = self.names.register("b32")
        if word.values[0].type != "pred":
            halves = [source(v.name) for v in (*word.values, word.values[-1])][:2]
            return [op("mov.b32", packed, Vector(tuple(halves)))], packed
        code: list[Instruction] = []
        for bit, value in enumerate(word.values):
            one = packed if bit == 0 else self.names.register("b32")
            code.append(op("selp.b32", one, 1 << bit, 0, source(value.name)))
            if bit:
                code.append(op("or.b32", packed, packed, one))
        return code, packed

    def unpack(self, word: Word, packed: Register, target: Callable[[str], Register]) -> list[Instruction]:
        """The code that unpacks the values of a packed word."""
        if word.values[0].type != "pred":
            halves: list[Operand] = [target(v.name) for v in word.values]
            if len(halves) == 1:
                halves.append(self.names.register("b16"))
            return [op("mov.b32", Vector(tuple(halves)), packed)]
        code: list[Instruction] = []
        for bit, value in enumerate(word.values):
            one = self.names.register("b32")
            code.append(op("and.b32", one, packed, 1 << bit))
            code.append(op("setp.ne.u32", target(value.name), one, 0))
        return code


def clear(value: Value) -> Instruction:
    """Gives a register of the program an arbitrary value."""
    kind = "pred" if value.type == "pred" else f"b{width(value.type)}"
    return op(f"mov.{kind}", Register(value.name), 0)


def copy_value(value: Value, source: Operand, target: Register) -> Sequence[Instruction]:
    """The move of one value, nothing if source and target are one register."""
    if source == target:
        return ()
    kind = "pred" if value.type == "pred" else f"b{width(value.type)}"
    return (op(f"mov.{kind}", target, source),)
