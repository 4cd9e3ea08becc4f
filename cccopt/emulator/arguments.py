"""A launch's arguments: numpy arrays become buffers, numbers take the parameter's type, bytes are structs."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cccopt.diagnostic import error
from cccopt.emulator.errors import LAUNCH, EmulatorError
from cccopt.emulator.layout import size_of
from cccopt.emulator.memory import GlobalMemory
from cccopt.emulator.semantics import TYPES, Array
from cccopt.ptx.ir import Variable
from cccopt.text import quantity


def refuse(message: str, *, why: str = "", help: str = "") -> EmulatorError:
    """An error of the launch itself."""
    return EmulatorError(error(LAUNCH, message, why=why, help=help))


@dataclass
class _Region:
    """Host bytes from ``start`` to ``stop`` and their address on the device; ``arrays`` lie in them."""

    name: str
    start: int
    stop: int
    arrays: list[Array]
    base: int = 0


@dataclass
class Resident:
    """Device memory that outlives a launch: an array keeps its address for as long as it lives."""

    base: int
    arrays: list[weakref.ref[Array]]


class Buffers:
    """The arrays of a launch in device memory. Arrays that share host bytes also share them on the device.

    ``known`` holds what earlier launches left there, by host range; memory that belongs to no living array is freed.
    """

    def __init__(self, memory: GlobalMemory, known: dict[tuple[int, int], Resident]) -> None:
        self._memory = memory
        self._known = known
        self._regions: list[_Region] = []
        for key, resident in list(known.items()):
            if all(array() is None for array in resident.arrays):
                memory.free(resident.base)
                del known[key]

    def add(self, array: Array, name: str) -> None:
        """Adds an array. Raises EmulatorError for one that is not contiguous or holds Python objects."""
        if not array.flags.c_contiguous:
            raise refuse(
                f"argument `{name}` is not a contiguous array", help="pass np.ascontiguousarray(...) of it"
            )
        if array.dtype.hasobject:
            raise refuse(f"argument `{name}` holds Python objects")
        start = int(array.__array_interface__["data"][0])
        region = _Region(name, start, start + array.nbytes, [array])
        apart = []
        for other in self._regions:
            if other.start < region.stop and region.start < other.stop:
                region.start, region.stop = min(region.start, other.start), max(region.stop, other.stop)
                region.arrays = other.arrays + region.arrays
            else:
                apart.append(other)
        self._regions = [*apart, region]

    def copy_in(self) -> None:
        """Gives every region its address on the device and its contents."""
        for region in self._regions:
            key = (region.start, region.stop)
            if key not in self._known:
                base = self._memory.allocate(region.stop - region.start, region.name)
                self._known[key] = Resident(base, [])
            self._known[key].arrays = [weakref.ref(array) for array in region.arrays]
            region.base = self._known[key].base
            data = self._memory.at(region.base).data
            for array in region.arrays:
                offset = self._offset(region, array)
                data[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)

    def address(self, array: Array) -> int:
        """The device address of an array that was added."""
        region = next(r for r in self._regions if any(a is array for a in r.arrays))
        return region.base + self._offset(region, array)

    def copy_out(self) -> None:
        """Copies the device's contents back into the arrays."""
        for region in self._regions:
            data = self._memory.at(region.base).data
            for array in region.arrays:
                offset = self._offset(region, array)
                new = data[offset : offset + array.nbytes]
                if array.flags.writeable:
                    array.reshape(-1).view(np.uint8)[:] = new
                elif not np.array_equal(array.reshape(-1).view(np.uint8), new):
                    raise refuse("the kernel wrote to a read-only array")

    @staticmethod
    def _offset(region: _Region, array: Array) -> int:
        return int(array.__array_interface__["data"][0]) - region.start


def parameter_bytes(
    parameters: Sequence[tuple[int, Variable]], size: int, arguments: Sequence[Any], buffers: Buffers
) -> Array:
    """The kernel's parameter block; raises EmulatorError if an argument does not fit its parameter."""
    variables = [variable for _, variable in parameters]
    if len(parameters) != len(arguments):
        given = f"{len(arguments)} {'was' if len(arguments) == 1 else 'were'} given"
        raise refuse(
            f"the kernel takes {quantity(len(parameters), 'argument')}, but {given}",
            why=f"its parameters are {', '.join(map(_described, variables))}; pointers are .u64"
            if variables
            else "",
            help="give one argument for each parameter, in order",
        )
    for (_, variable), argument in zip(parameters, arguments, strict=True):
        if isinstance(argument, np.ndarray) and argument.ndim > 0:
            buffers.add(argument, variable.name)
    buffers.copy_in()
    block = np.zeros(-(-size // 16) * 16, np.uint8)
    for (offset, variable), argument in zip(parameters, arguments, strict=True):
        data = _one(variable, argument, buffers)
        block[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
    return block


_STRUCT = "pass a structure as bytes, which only Python can (`cccopt.emulate`)"


def _named(variable: Variable) -> str:
    """A parameter as messages name it: by its place, counted from 1, if nvcc has numbered it."""
    number = re.search(r"_param_(\d+)$", variable.name)
    return f"parameter `{variable.name}`" if number is None else f"parameter {int(number[1]) + 1}"


def _described(variable: Variable) -> str:
    return f"a structure of {size_of(variable)} bytes" if variable.dimensions else variable.type.strip()


def _one(variable: Variable, argument: Any, buffers: Buffers) -> bytes:
    size = size_of(variable)
    name = _named(variable)
    if isinstance(argument, bytes | bytearray):
        if len(argument) != size:
            raise refuse(f"{name} has {size} bytes, but its argument has {len(argument)}")
        return bytes(argument)
    if isinstance(argument, np.ndarray) and argument.ndim > 0:
        if variable.dimensions or size != 8:
            raise refuse(
                f"{name} is not a pointer, but its argument is an array",
                help=_STRUCT if variable.dimensions else "",
            )
        return buffers.address(argument).to_bytes(8, "little")
    if variable.dimensions:
        raise refuse(f"{name} is a struct of {size} bytes", help=_STRUCT)
    if isinstance(argument, np.ndarray):
        argument = argument[()]
    return _number(variable, argument)


def _number(variable: Variable, argument: Any) -> bytes:
    type_name = variable.type.strip().lstrip(".")
    if type_name not in TYPES:
        raise refuse(
            f"{_named(variable)} has type .{type_name}, which cannot be set from a number",
            help="pass it as bytes (in Python)",
        )
    t = TYPES[type_name]
    if isinstance(argument, bool | np.bool_):
        argument = int(argument)
    is_real = isinstance(argument, float | np.floating)
    if not is_real and not isinstance(argument, int | np.integer):
        raise refuse(f"{_named(variable)} cannot take an argument of type `{type(argument).__name__}`")
    if t.kind == "f" or (is_real and type_name.startswith("b")):
        as_float = np.dtype(f"f{t.itemsize}")
        with np.errstate(over="ignore"):
            value = as_float.type(argument)
        if math.isfinite(float(argument)) and not math.isfinite(float(value)):
            raise _range(variable, argument)
        return np.asarray(value).tobytes()
    if is_real:
        raise refuse(f"{_named(variable)} is .{type_name}, but its argument is the number {argument}")
    # nvcc also writes .u32 for a C int, so both readings of the bits are in range.
    bits = 8 * t.itemsize
    low = -(1 << (bits - 1))
    high = (1 << (bits - 1)) - 1 if t.kind == "i" else (1 << bits) - 1
    if not low <= int(argument) <= high:
        raise _range(variable, argument)
    return (int(argument) & ((1 << bits) - 1)).to_bytes(t.itemsize, "little")


def _range(variable: Variable, argument: Any) -> EmulatorError:
    return refuse(f"{_named(variable)} is {variable.type}, but its argument {argument} is out of range")
