"""Turn pieces into Python: each becomes one function over the active lanes, compiled once per kernel.

A piece reads the registers that it needs from the register file (one array per register, indexed by lane). It
works only on local arrays of the active lanes, and writes back what some piece reads before writing it:

        mul.wide.s32 %rd20, %r15, 4;        v3 = F7(v1.view(i4), C4)
        add.s64      %rd5, %rd11, %rd20;    v4 = np.add(v2, v3.view(u8))
                                            R18[rx] = v4

The function returns the condition or index of the branch that the piece ends with, if any. Constants stay scalars
until an instruction would compute only with scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cccopt.emulator.errors import UNSUPPORTED
from cccopt.emulator.iterations import Event
from cccopt.emulator.kernel import KernelCode
from cccopt.emulator.layout import SPACE_OF_WINDOW, WINDOW_BITS, WINDOWS, Frames
from cccopt.emulator.memory_code import MemoryCode
from cccopt.emulator.pieces import Decoded, Modified, OperandList, Piece, PieceEnd, Slot
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import PRED, PURE, TYPES, Operation, Type, UnsupportedError, resolve
from cccopt.emulator.semantics.operation import unsigned
from cccopt.emulator.values import NamedValue, PieceCode, type_name
from cccopt.emulator.watching import Watcher

_U4: Type = np.dtype("u4")
_U8: Type = np.dtype("u8")
_IGNORED = frozenset(
    {
        "membar",
        "fence",
        "prefetch",
        "prefetchu",
        "nanosleep",
        "pmevent",
        "discard",
        "applypriority",
        "griddepcontrol",
    }
)


_READ_OUTSIDE = (PieceEnd.COLLECTIVE, PieceEnd.BARRIER, PieceEnd.ACTIVEMASK, PieceEnd.CALL)


class Generator(MemoryCode):
    """Generates the functions of a kernel's pieces."""

    def __init__(
        self,
        places: Places,
        slots: list[Slot],
        frames: Frames,
        parameters_size: int,
        watcher: Watcher | None,
    ) -> None:
        super().__init__(places, slots, frames, parameters_size, watcher)
        self._operations: dict[tuple[Any, ...], tuple[str, Operation]] = {}

    def generate(self, pieces: list[Piece], passed: Iterable[object]) -> KernelCode:
        """The code of all pieces, with the operands ``passed`` that calls copy; raises EmulatorError for an
        instruction that is not supported.
        """
        done: list[tuple[Piece, PieceCode, str | None]] = []
        exposed = {operand.index for operand in passed if isinstance(operand, Slot)}
        for piece in pieces:
            result = self._piece(piece)
            done.append((piece, self.code, result))
            exposed |= self.code.reads
            exposed |= {slot.index for slot in _read_outside(piece)}
        body: list[str] = []
        given: list[str] = []
        for piece, code, result in done:
            stores = [
                f"R{index}[rx] = {self._stored(code, index)}" for index in sorted(code.written & exposed)
            ]
            if not code.lines and not stores and result is None:
                given.append("None")
                continue
            given.append(f"b{piece.index}")
            index = "rx = ix + depth[ix] * total" if piece.function in self.frames.deep else "rx = ix"
            lines = ["ix = g.ix", "n = g.n", index, *code.lines, *stores]
            lines += [] if result is None else [f"return {result}"]
            body.append(f"    def b{piece.index}(g):\n" + "".join(f"        {line}\n" for line in lines))
        arrays = [f"    R{slot.index} = R[{slot.index}]\n" for slot in self.slots]
        special = [f"    S{i} = S[{i}]\n" for i in range(len(self.specials))]
        source = "def make(R, S, P, m, depth, total):\n    off = m.off\n    ticks = m.ticks\n"
        parameters = [
            f"    {name} = m.parameter({address}, T_{of_type})\n"
            for (address, of_type), name in self.kernel_parameters.items()
        ]
        source += "".join([*arrays, *special, *parameters, *body]) + f"    return [{', '.join(given)}]\n"
        return KernelCode(source, self.names, self.accesses, self.specials, frozenset(exposed))

    def _stored(self, code: PieceCode, index: int) -> str:
        value = code.values[index]
        storage = self.slots[index].dtype
        return value.name if value.dtype == storage else f"{value.name}.view(T_{type_name(storage)})"

    # --- pieces and instructions --------------------------------------------------------------------------------

    def _piece(self, piece: Piece) -> str | None:
        self.begin(piece.function)
        for item in piece.straight:
            if isinstance(item, Event):
                self.event(item)
                continue
            try:
                self._instruction(item)
            except UnsupportedError as problem:
                raise self.places.error(UNSUPPORTED, str(problem), item) from None
        if piece.end is PieceEnd.BRANCH and piece.ending is not None and piece.ending.guard is not None:
            guard = self.guard(piece.ending)
            return guard.name
        if piece.end is PieceEnd.INDEXED and piece.ending is not None:
            return self.array(self.operand(piece.ending, piece.ending.operands[0], _U4)).name
        return None

    def _instruction(self, item: Decoded) -> None:
        base = item.instruction.base
        if base in _IGNORED:
            return
        if base in ("ld", "ldu"):
            self.load(item)
        elif base == "st":
            self.store(item)
        elif base in ("atom", "red"):
            self.atomic(item)
        elif base == "mov":
            self._move(item)
        elif base in ("cvta", "isspacep"):
            self._address_space(item)
        elif base in PURE:
            self._pure(item)
        elif base in ("trap", "brkpt"):
            raise UnsupportedError(f"`{item.instruction.opcode}` is not supported")
        else:
            resolve(item.parts)  # raises an error: it is not known

    # --- families -----------------------------------------------------------------------------------------------

    def _pure(self, item: Decoded) -> None:
        destination, *sources = item.operands
        pair = isinstance(destination, OperandList)
        key = (item.instruction.opcode, pair, len(sources))
        if key not in self._operations:
            operation = resolve(item.parts, pair=pair, sources=len(sources))
            name = f"F{len(self._operations)}"
            self.names[name] = operation.function
            self._operations[key] = (name, operation)
        name, operation = self._operations[key]
        narrows = item.instruction.base == "cvt"
        values: list[NamedValue] = []
        types = operation.inputs[:-1] if operation.carry_in else operation.inputs
        if len(sources) != len(types):
            raise UnsupportedError(
                f"`{item.instruction.opcode}` with {len(sources) + 1} operands is not supported"
            )
        for source, dtype in zip(sources, types, strict=True):
            values.append(self.operand(item, source, dtype, narrows=narrows))
        if operation.carry_in:
            values.append(self.read(self.carry(item)))
        if all(value.scalar for value in values):
            values[0] = self.array(values[0])
        result = self.emit(f"{name}({', '.join(value.name for value in values)})", operation.outputs[0])
        if len(operation.outputs) == 1:
            self.write(item, destination, result, widens=narrows)
            return
        parts = [self.emit(f"{result.name}[{i}]", t) for i, t in enumerate(operation.outputs)]
        targets = (
            destination.elements if isinstance(destination, OperandList) else (destination, self.carry(item))
        )
        for target, part in zip(targets, parts, strict=True):
            self.write(item, target, part)

    def carry(self, item: Decoded) -> Slot:
        if item.function not in self.cc:
            self.cc[item.function] = Slot(len(self.slots), PRED, "%CC")
            self.slots.append(self.cc[item.function])
        return self.cc[item.function]

    def _move(self, item: Decoded) -> None:
        """``mov``: also packs and unpacks vectors, and takes addresses."""
        destination, source = item.operands
        type_name = item.parts[-1]
        if type_name not in TYPES or len(item.parts) != 2:
            raise UnsupportedError(f"`{item.instruction.opcode}` is not supported")
        t = TYPES[type_name]
        if isinstance(destination, OperandList):
            part = np.dtype(f"u{t.itemsize // len(destination.elements)}")
            whole = self.view(self.array(self.operand(item, source, t)), unsigned(t))
            rows = self.emit(
                f"np.ascontiguousarray({whole.name}).view(T_u{8 * part.itemsize}).reshape(n, -1)", part
            )
            for i, target in enumerate(destination.elements):
                self.write(item, target, self.emit(f"{rows.name}[:, {i}]", part))
            return
        if isinstance(source, OperandList):
            part = np.dtype(f"u{t.itemsize // len(source.elements)}")
            names = [self.operand(item, element, part).name for element in source.elements]
            packed = self.emit(f"pack(n, T_u{8 * part.itemsize}, {', '.join(names)})", part)
            self.write(
                item,
                destination,
                self.emit(f"{packed.name}.view(T_u{8 * t.itemsize}).reshape(n)", unsigned(t)),
            )
            return
        self.write(item, destination, self.operand(item, source, t))

    def _address_space(self, item: Decoded) -> None:
        """``cvta{.to}.space`` and ``isspacep.space``."""
        destination, source = item.operands
        space = next((part.split("::")[0] for part in item.parts[1:] if part.split("::")[0] in WINDOWS), None)
        if space is None:
            raise UnsupportedError(f"`{item.instruction.opcode}` is not supported")
        if item.instruction.base == "isspacep":
            value = self.array(self.operand(item, source, _U8))
            window = f"({value.name} >> np.uint64({WINDOW_BITS}))"
            code = WINDOWS[space] >> WINDOW_BITS
            test = f"{window} == {code}" if code else f"{window} > {max(SPACE_OF_WINDOW)}"
            self.write(item, destination, self.emit(test, PRED))
            return
        if item.parts[-1] not in ("u64", "b64", "s64"):
            raise UnsupportedError(f"`{item.instruction.opcode}`: addresses have 64 bits")
        value = self.operand(item, source, _U8)
        if WINDOWS[space]:
            value = self.array(value)
            base = self.constant(WINDOWS[space], _U8)
            value = self.emit(f"{value.name} {'-' if 'to' in item.parts else '+'} {base.name}", _U8)
        self.write(item, destination, value)


def _read_outside(piece: Piece) -> list[Slot]:
    """The registers that a piece's end reads from the register file itself: operands of collectives and calls."""
    if piece.end not in _READ_OUTSIDE or piece.ending is None:
        return []
    found: list[Slot] = []

    def collect(operand: object) -> None:
        if isinstance(operand, Slot):
            found.append(operand)
        elif isinstance(operand, OperandList):
            for element in operand.elements:
                collect(element)
        elif isinstance(operand, Modified):
            collect(operand.operand)

    for operand in piece.ending.operands:
        collect(operand)
    return found


def compile_code(code: KernelCode) -> Callable[..., Any]:
    """The function that binds register arrays and returns the pieces' functions."""
    names = dict(code.names)
    exec(compile(code.source, "<pieces>", "exec"), names)
    made: Callable[..., Any] = names["make"]
    return made
