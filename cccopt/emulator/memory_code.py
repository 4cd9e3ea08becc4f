"""Code for memory instructions: `ld`, `st`, `atom`, `red`, and parameters of device functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.atomics import atomic_type
from cccopt.emulator.errors import MALFORMED, UNSUPPORTED
from cccopt.emulator.iterations import Event
from cccopt.emulator.layout import Frames, ParameterVariable, SymbolAddress
from cccopt.emulator.literals import integer
from cccopt.emulator.memory_instruction import AccessKind, MemoryInstruction
from cccopt.emulator.pieces import Decoded, MemoryOperand, OperandList, Slot
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import TYPES, Type, UnsupportedError
from cccopt.emulator.semantics.operation import unsigned
from cccopt.emulator.values import NamedValue, Values, type_name
from cccopt.emulator.watching import Executable, Watcher
from cccopt.ptx.ir import Literal, Wildcard

_U4: Type = np.dtype("u4")
_U8: Type = np.dtype("u8")
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
_SPACES = ("global", "shared", "local", "const", "param")
_ACCESS_WORDS = frozenset(
    [
        "weak",
        "volatile",
        "relaxed",
        "acquire",
        "release",
        "acq_rel",
        "mmio",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "nc",
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "entry",
        "func",
        "unified",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::64B",
        "L2::128B",
        "L2::256B",
        "L2::evict_last",
        "L2::evict_first",
        "L2::evict_normal",
        "shared::cta",
        "param::entry",
        "param::func",
    ]
)


class MemoryCode(Values):
    """Generates memory instructions; ``accesses`` collects them."""

    def __init__(
        self,
        places: Places,
        slots: list[Slot],
        frames: Frames,
        parameters_size: int,
        watcher: Watcher | None,
    ) -> None:
        super().__init__(places, slots, frames)
        self.accesses: list[MemoryAccess] = []
        self.watcher = watcher
        self.parameters_size = parameters_size
        self.kernel_parameters: dict[tuple[int, str], str] = {}
        self.names |= {"pack": _pack, "put": _put}

    # --- memory -------------------------------------------------------------------------------------------------

    def load(self, item: Decoded) -> None:
        """``ld``: from memory, from the kernel's parameters (the same for all lanes), or from those of a call."""
        destination, where = item.operands[:2]
        dtype, count, space = self._access_shape(item)
        targets = destination.elements if isinstance(destination, OperandList) else (destination,)
        assert isinstance(where, MemoryOperand)
        if isinstance(where.base, ParameterVariable):
            for i, target in enumerate(targets):
                index = self._parameter_index(item, where.base, where.offset + i * dtype.itemsize, dtype)
                name = f"P[{where.base.index}].view(T_{type_name(unsigned(dtype))})[rx, {index}]"
                self.write(item, target, self.view(self.emit(name, unsigned(dtype)), dtype), widens=True)
            return
        if space == "param" and item.guard is None and isinstance(where.base, SymbolAddress):
            address = where.base.address + where.offset
            if address >= 0 and address + count * dtype.itemsize <= self.parameters_size:
                for i, target in enumerate(targets):
                    name = self._kernel_parameter(address + i * dtype.itemsize, unsigned(dtype))
                    value = self.view(NamedValue(name, unsigned(dtype), True), dtype)
                    self.write(item, target, value, widens=True)
                return
        access = self._access(item, space, dtype, count, AccessKind.LOAD)
        address_of_lanes = self.address(item, where)
        if item.guard is None:
            loaded = self.emit(f"{access}({address_of_lanes.name}, g)", unsigned(dtype))
        else:
            self.code.lines.append(f"s = np.flatnonzero({self.guard_name(item)})")
            shape = "n" if count == 1 else f"(n, {count})"
            loaded = self.emit(f"np.zeros({shape}, T_u{8 * dtype.itemsize})", unsigned(dtype))
            call = f"{access}({address_of_lanes.name}[s], g.part(s))"
            self.code.lines.append(f"if s.size: {loaded.name}[s] = {call}")
        for i, target in enumerate(targets):
            value = loaded if count == 1 else self.emit(f"{loaded.name}[:, {i}]", unsigned(dtype))
            self.write(item, target, self.view(value, dtype), widens=True)

    def _parameter_index(self, item: Decoded, variable: ParameterVariable, offset: int, dtype: Type) -> int:
        """The index of an element of a device function's or call's parameter."""
        if offset % dtype.itemsize or not 0 <= offset <= variable.size - dtype.itemsize:
            raise self.places.error(
                MALFORMED,
                f"`{item.instruction.opcode}` at offset {offset} of a parameter of {variable.size} bytes",
                item,
            )
        return offset // int(dtype.itemsize)

    def _kernel_parameter(self, address: int, dtype: Type) -> str:
        key = (address, type_name(dtype))
        return self.kernel_parameters.setdefault(key, f"Q{len(self.kernel_parameters)}")

    def store(self, item: Decoded) -> None:
        """``st``: to memory, or to a parameter of a call or a result of a function."""
        where, source = item.operands[:2]
        dtype, count, space = self._access_shape(item)
        storage = unsigned(dtype)
        sources = source.elements if isinstance(source, OperandList) else (source,)
        values = [self.view(self.operand(item, s, dtype, narrows=True), storage) for s in sources]
        assert isinstance(where, MemoryOperand)
        if isinstance(where.base, ParameterVariable):
            for i, value in enumerate(values):
                index = self._parameter_index(item, where.base, where.offset + i * storage.itemsize, storage)
                target = f"P[{where.base.index}].view(T_{type_name(storage)})"
                if item.guard is None:
                    self.code.lines.append(f"{target}[rx, {index}] = {value.name}")
                else:
                    s = self.guard_name(item)
                    self.code.lines.append(f"{target}[rx[{s}], {index}] = {self.array(value).name}[{s}]")
            return
        access = self._access(item, space, dtype, count, AccessKind.STORE)
        address = self.address(item, where)
        if count > 1:
            data = self.emit(
                f"pack(n, T_u{8 * storage.itemsize}, {', '.join(v.name for v in values)})", storage
            )
        else:
            data = self.array(values[0])
        if item.guard is None:
            self.code.lines.append(f"{access}({address.name}, {data.name}, g)")
            return
        self.code.lines.append(f"s = np.flatnonzero({self.guard_name(item)})")
        self.code.lines.append(f"if s.size: {access}({address.name}[s], {data.name}[s], g.part(s))")

    def _access_shape(self, item: Decoded) -> tuple[Type, int, str]:
        """The element type, number of elements and state space of a load or store."""
        *middle, type_name = item.parts[1:]
        count, space = 1, "generic"
        for part in middle:
            if part in ("v2", "v4", "v8"):
                count = int(part[1:])
            elif part.split("::")[0] in _SPACES:
                space = part.split("::")[0]
                if part not in _SPACES and part not in _ACCESS_WORDS:
                    raise UnsupportedError(f"`{item.instruction.opcode}`: .{part} is not supported")
            elif part not in _ACCESS_WORDS:
                raise UnsupportedError(f"`{item.instruction.opcode}`: .{part} is not supported")
        if type_name not in TYPES or type_name == "pred":
            raise UnsupportedError(f"`{item.instruction.opcode}`: type .{type_name} is not supported")
        if len(item.operands) > 2:
            raise UnsupportedError(f"`{item.instruction.opcode}` with a cache policy is not supported")
        return TYPES[type_name], count, space

    def _access(self, item: Decoded, space: str, dtype: Type, count: int, kind: AccessKind) -> str:
        strong = kind is AccessKind.ATOMIC or bool(_STRONG & set(item.parts))
        access = MemoryAccess(MemoryInstruction(item, space, unsigned(dtype), count, kind, strong))
        name = f"A{len(self.accesses)}"
        self.accesses.append(access)
        executed: Executable = access if self.watcher is None else self.watcher.watched(access)
        methods = {
            AccessKind.LOAD: executed.load,
            AccessKind.STORE: executed.store,
            AccessKind.ATOMIC: executed.atomic,
        }
        self.names[name] = methods[kind]
        return name

    def event(self, event: Event) -> None:
        """Adds a line for a watched event."""
        assert self.watcher is not None
        name = f"E{len(self.names)}"
        self.names[name] = self.watcher.happening(event)
        self.code.lines.append(f"{name}(g)")

    def address(self, item: Decoded, where: MemoryOperand) -> NamedValue:
        """The address of each lane, as uint64."""
        if isinstance(where.base, Slot):
            base = self.array(self.view(self.read(where.base), unsigned(where.base.dtype)))
            if base.dtype not in (_U4, _U8):
                raise self.places.error(MALFORMED, "an address needs a register of 32 or 64 bits", item)
            if where.offset:
                mask = (1 << (8 * base.dtype.itemsize)) - 1
                offset = self.constant(where.offset & mask, base.dtype)
                base = self.emit(f"{base.name} + {offset.name}", base.dtype)
            return base if base.dtype == _U8 else self.emit(f"{base.name}.astype(T_u64)", _U8)
        if isinstance(where.base, Literal):
            absolute = (integer(where.base.spelling) + where.offset) & ((1 << 64) - 1)
            return self.array(self.constant(absolute, _U8))
        symbol = self.symbol(item, where, _U8)
        if symbol is None:
            raise self.places.error(
                UNSUPPORTED, f"`{item.instruction.opcode}`: this kind of address is not supported", item
            )
        return self.array(symbol)

    def atomic(self, item: Decoded) -> None:
        returns = item.instruction.base == "atom"
        operands = item.operands if returns else (Wildcard(), *item.operands)
        destination, where, *sources = operands
        operation, space, dtype = _atomic_shape(item)
        if not isinstance(where, MemoryOperand) or len(sources) != (2 if operation == "cas" else 1):
            raise UnsupportedError(f"`{item.instruction.opcode}` with these operands is not supported")
        access = self._access(item, space, dtype, 1, AccessKind.ATOMIC)
        address = self.address(item, where)
        values = [self.array(self.operand(item, s, dtype)).name for s in sources]
        want = returns and not isinstance(destination, Wildcard)
        if item.guard is None:
            call = f"{access}({operation!r}, {want}, {address.name}, g, {', '.join(values)})"
            result = self.emit(call, dtype)
        else:
            self.code.lines.append(f"s = np.flatnonzero({self.guard_name(item)})")
            result = self.emit(f"np.zeros(n, T_{type_name(dtype)})", dtype)
            parts = ", ".join(f"{value}[s]" for value in values)
            call = f"{access}({operation!r}, {want}, {address.name}[s], g.part(s), {parts})"
            self.code.lines.append(f"if s.size: put({result.name}, s, {call})")
        if want:
            self.write(item, destination, result, widens=True)


_ATOMIC_OPERATIONS = ("add", "and", "or", "xor", "min", "max", "exch", "cas", "inc", "dec")


def _atomic_shape(item: Decoded) -> tuple[str, str, Type]:
    """The operation, state space and type of ``atom`` or ``red``."""
    *middle, type_name = item.parts[1:]
    operation, space = "", "generic"
    for part in middle:
        if part in _ATOMIC_OPERATIONS:
            operation = part
        elif part.split("::")[0] in ("global", "shared"):
            space = part.split("::")[0]
        elif part not in _ACCESS_WORDS and part != "noftz":
            raise UnsupportedError(f"`{item.instruction.opcode}`: .{part} is not supported")
    return operation, space, atomic_type(item.instruction.opcode, operation, type_name)


def _pack(n: int, dtype: Type, *values: Any) -> Any:
    rows = np.empty((n, len(values)), dtype)
    for i, value in enumerate(values):
        rows[:, i] = value
    return rows


def _put(result: Any, places: Any, values: Any) -> None:
    if values is not None:
        result[places] = values
