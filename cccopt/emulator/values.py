"""Values in generated code: reading operands, converting between types of the same width, writing destinations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cccopt.emulator.errors import MALFORMED, UNSUPPORTED
from cccopt.emulator.layout import Frames, SymbolAddress
from cccopt.emulator.literals import literal
from cccopt.emulator.pieces import Decoded, MemoryOperand, Modified, Modifier, Slot
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import PRED, TYPES, Type
from cccopt.emulator.semantics.operation import unsigned
from cccopt.emulator.special_registers import KEPT
from cccopt.ptx.ir import Literal, SpecialRegister, Wildcard
from cccopt.ptx.special import SPECIAL_TYPES

_TICKING = frozenset(
    {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
)
"""The special registers that change during a launch."""

_U4: Type = np.dtype("u4")
_U8: Type = np.dtype("u8")


@dataclass
class NamedValue:
    """A Python name that holds a value for each lane (or one for all: ``scalar``)."""

    name: str
    dtype: Type
    scalar: bool = False


@dataclass
class PieceCode:
    """The code of one piece: its lines, the current values of registers, and the registers read and written."""

    lines: list[str] = field(default_factory=list)
    values: dict[int, NamedValue] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)


class Values:
    """The values of the piece that is being generated.

    ``frames`` says where local variables are, and which functions are recursive: their registers also have a copy for
    each depth.
    """

    def __init__(self, places: Places, slots: list[Slot], frames: Frames) -> None:
        self.places = places
        self.slots = slots
        self.frames = frames
        self.names: dict[str, Any] = {"np": np}
        self.specials: list[str] = []
        self.cc: dict[str, Slot] = {}
        self.constants: dict[tuple[str, int | str], str] = {}
        self.code = PieceCode()
        self.fresh = 0
        self.deep_piece = False
        self.views: dict[tuple[str, Type], str] = {}
        for name, t in TYPES.items():
            self.names[f"T_{name}"] = t

    def begin(self, function: str) -> None:
        """Starts the code of a piece of ``function``."""
        self.code = PieceCode()
        self.views = {}
        self.deep_piece = function in self.frames.deep

    # --- lines and guards ---

    def guard(self, item: Decoded) -> NamedValue:
        """Whether the guard of an instruction holds, one element per lane."""
        assert item.guard is not None
        value = self.array(self.read(item.guard))
        return self.emit(f"~{value.name}", PRED) if item.negated else value

    def emit(self, expression: str, dtype: Type, scalar: bool = False) -> NamedValue:
        """Adds a line that gives ``expression`` a name."""
        self.fresh += 1
        name = f"v{self.fresh}"
        self.code.lines.append(f"{name} = {expression}")
        return NamedValue(name, dtype, scalar)

    # --- reading ------------------------------------------------------------------------------------------------

    def read(self, slot: Slot) -> NamedValue:
        """The current value of a register."""
        code = self.code
        if slot.index not in code.values:
            code.reads.add(slot.index)
            code.values[slot.index] = self.emit(f"R{slot.index}[rx]", slot.dtype)
        return code.values[slot.index]

    def converted(
        self, item: Decoded, value: NamedValue, dtype: Type, *, narrows: bool = False
    ) -> NamedValue:
        """A value as another type of the same width; a wider one is truncated if the instruction allows it."""
        if value.dtype == dtype:
            return value
        if value.dtype == PRED or dtype == PRED:
            raise self.places.error(
                MALFORMED, f"`{item.instruction.opcode}` mixes predicates and numbers", item
            )
        if value.dtype.itemsize > dtype.itemsize and narrows:
            cut = self.view(value, unsigned(value.dtype))
            short = self.emit(f"{cut.name}.astype(T_u{8 * dtype.itemsize})", unsigned(dtype), value.scalar)
            return self.view(short, dtype)
        if value.dtype.itemsize != dtype.itemsize:
            raise self.places.error(
                MALFORMED,
                f"`{item.instruction.opcode}` has an operand of {8 * value.dtype.itemsize} bits",
                item,
                why=f"it takes {8 * dtype.itemsize} bits",
            )
        return self.view(value, dtype)

    def view(self, value: NamedValue, dtype: Type) -> NamedValue:
        """The bits of a value as another type of the same width."""
        if value.dtype == dtype:
            return value
        key = (value.name, dtype)
        if key not in self.views:
            self.views[key] = self.emit(f"{value.name}.view(T_{type_name(dtype)})", dtype).name
        return NamedValue(self.views[key], dtype, value.scalar)

    def operand(self, item: Decoded, operand: object, dtype: Type, *, narrows: bool = False) -> NamedValue:
        """The value of a source operand, as ``dtype``."""
        if isinstance(operand, Slot):
            return self.converted(item, self.read(operand), dtype, narrows=narrows)
        if isinstance(operand, Literal):
            try:
                return self.constant(literal(operand.spelling, dtype), dtype)
            except ValueError as problem:
                raise self.places.error(MALFORMED, f"`{item.instruction.opcode}`: {problem}", item) from None
        if isinstance(operand, SpecialRegister):
            return self.special(item, operand.name, dtype, narrows)
        if isinstance(operand, Modified):
            value = self.operand(item, operand.operand, dtype, narrows=narrows)
            sign = "~" if operand.modifier is Modifier.NOT else "-"
            return self.emit(f"{sign}{value.name}", dtype, value.scalar)
        address = self.symbol(item, operand, dtype)
        if address is not None:
            return address
        raise self.places.error(
            UNSUPPORTED, f"`{item.instruction.opcode}`: this kind of operand is not supported", item
        )

    def constant(self, value: Any, dtype: Type) -> NamedValue:
        """A value that is the same in all lanes."""
        pattern = np.asarray(value, dtype).tobytes().hex()
        key = (dtype.str, pattern)
        if key not in self.constants:
            name = f"C{len(self.constants)}"
            self.constants[key] = name
            # numpy computes with zero-dimensional arrays faster than with its scalars.
            self.names[name] = np.asarray(value, dtype)
        return NamedValue(self.constants[key], dtype, True)

    def symbol(self, item: Decoded, operand: object, dtype: Type) -> NamedValue | None:
        """The address of a variable (with its offset) as a value."""
        offset = 0
        if isinstance(operand, MemoryOperand):
            offset = operand.offset
            operand = operand.base
        if not isinstance(operand, SymbolAddress):
            return None
        if operand.space == "local":
            return self.local_address(item, operand.address + offset, dtype)
        mask = (1 << (8 * dtype.itemsize)) - 1
        return self.constant((operand.address + offset) & mask, unsigned(dtype))

    def local_address(self, item: Decoded, offset: int, dtype: Type) -> NamedValue:
        """An address in the function's frame of local memory."""
        base = self.constant(self.frames.starts[item.function] + offset, unsigned(dtype))
        if not self.deep_piece:
            return base
        name = type_name(unsigned(dtype))
        return self.emit(
            f"depth[ix].astype(T_{name}) * T_{name}.type({self.frames.per_depth}) + {base.name}",
            unsigned(dtype),
        )

    def special(self, item: Decoded, name: str, dtype: Type, narrows: bool) -> NamedValue:
        """The value of a special register."""
        if name not in SPECIAL_TYPES or name not in _TICKING | KEPT:
            raise self.places.error(UNSUPPORTED, f"special register `{name}` is not supported", item)
        width: Type = _U8 if SPECIAL_TYPES[name] == "b64" else _U4
        if name in _TICKING:
            shift = 32 if name.endswith("_hi") else 0
            value = self.emit(
                f"np.full(n, (ticks() >> {shift}) & 0x{'F' * (2 * width.itemsize)}, T_{type_name(width)})",
                width,
            )
        else:
            if name not in self.specials:
                self.specials.append(name)
            value = self.emit(f"S{self.specials.index(name)}[ix]", width)
        if width.itemsize < dtype.itemsize:
            return self.emit(f"{value.name}.astype(T_{type_name(unsigned(dtype))})", unsigned(dtype))
        return self.converted(item, value, dtype, narrows=True)

    def array(self, value: NamedValue) -> NamedValue:
        """A value with one element per lane."""
        if not value.scalar:
            return value
        return self.emit(f"np.full(n, {value.name}, T_{type_name(value.dtype)})", value.dtype)

    # --- writing ------------------------------------------------------------------------------------------------

    def write(self, item: Decoded, operand: object, value: NamedValue, *, widens: bool = False) -> None:
        """Writes a value to a destination in the lanes whose guard holds."""
        if isinstance(operand, Wildcard):
            return
        if not isinstance(operand, Slot):
            raise self.places.error(
                UNSUPPORTED, f"`{item.instruction.opcode}`: this kind of destination is not supported", item
            )
        storage = operand.dtype
        if value.dtype.itemsize < storage.itemsize and widens and storage != PRED:
            kind = "i" if value.dtype.kind == "i" else "u"
            wide: Type = np.dtype(f"{kind}{storage.itemsize}")
            value = self.emit(f"{value.name}.astype(T_{type_name(wide)})", wide, value.scalar)
        value = self.converted(item, value, storage)
        if item.guard is not None:
            old = self.converted(item, self.read(operand), storage)
            value = self.emit(f"np.where({self.guard_name(item)}, {value.name}, {old.name})", storage)
        self.code.values[operand.index] = value
        self.code.written.add(operand.index)

    def guard_name(self, item: Decoded) -> str:
        """The name of `guard`'s value; adds a line that counts the lanes that it switches off."""
        guard = self.guard(item)
        key = (f"off{item.function}:{item.statement}", PRED)
        if key not in self.views:
            self.views[key] = guard.name
            self.code.lines.append(
                f"off[({item.function!r}, {item.statement})] += n - int(np.count_nonzero({guard.name}))"
            )
        return self.views[key]


def type_name(dtype: Type) -> str:
    """The PTX name of a numpy type."""
    if dtype == PRED:
        return "pred"
    return {"u": "u", "i": "s", "f": "f"}[dtype.kind] + str(8 * dtype.itemsize)
