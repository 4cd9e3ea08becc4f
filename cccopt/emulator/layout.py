"""The layout of variables: the address of each in its state space, and the bytes that initializers give.

Shared and local addresses are offsets into the memory of the block and of the thread; parameter and constant
addresses are offsets into that of the kernel. Generic addresses are these plus the base of a window (`WINDOWS`);
global addresses are already generic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cccopt.emulator.literals import literal_bytes
from cccopt.emulator.memory import GlobalMemory
from cccopt.ptx.ir import (
    Indexed,
    Initializer,
    InitializerCall,
    InitializerList,
    Literal,
    Module,
    Symbol,
    Variable,
)

WINDOWS = {"shared": 1 << 40, "local": 2 << 40, "const": 3 << 40, "param": 4 << 40, "global": 0}
"""What `cvta` adds to an address of each space. Global allocations lie above all windows."""

WINDOW_BITS = 40
CODE = 5 << 40
"""The address of a module's first function, where no memory is."""

SPACE_OF_WINDOW = {base >> WINDOW_BITS: space for space, base in WINDOWS.items() if base}
"""The space of a generic address by its bits from `WINDOW_BITS` upwards; all other addresses are global."""


@dataclass(frozen=True)
class SymbolAddress:
    """A variable: its space and its address there."""

    space: str
    address: int


@dataclass(frozen=True)
class ParameterVariable:
    """A parameter of a device function, or a `.param` variable of a call: bytes for each lane."""

    index: int
    size: int


def bytes_of(type_name: str) -> int:
    """The size in bytes of a type spelled ``.b32``, ``u8``, ``f16x2`` or ``.v2 .f32``."""
    parts = type_name.replace(".", " ").split()
    lanes = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    match = re.search(r"(\d+)(x2)?$", parts[-1])
    if match is None:
        raise ValueError(f"no size for type `{type_name}`")
    return lanes * int(match[1]) // 8 * (2 if match[2] else 1)


def size_of(variable: Variable) -> int:
    """The size in bytes of a variable; 0 for an unsized one."""
    return bytes_of(variable.type) * math.prod(0 if d is None else d for d in variable.dimensions)


def alignment_of(variable: Variable) -> int:
    """The alignment in bytes of a variable."""
    return variable.alignment or bytes_of(variable.type)


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


class ModuleMemory:
    """The module's own variables in memory: each global in its own buffer, constants in one bank. Functions have
    addresses to compare.
    """

    def __init__(self, module: Module, memory: GlobalMemory) -> None:
        self.addresses: dict[str, SymbolAddress] = {}
        self.shared: dict[str, Variable] = {}
        names = dict.fromkeys(function.name for function in module.functions())
        self.functions = {name: SymbolAddress("global", CODE + 16 * i) for i, name in enumerate(names)}
        # Textures, samplers and surfaces have no bytes; code that names them is refused.
        variables = [v for v in module.items if isinstance(v, Variable) and not v.type.endswith("ref")]
        bank = 0
        for variable in variables:
            if variable.space == "global":
                # An external array without a size still has an address.
                base = memory.allocate(max(size_of(variable), 1), variable.name, alignment_of(variable))
                self.addresses[variable.name] = SymbolAddress("global", base)
            elif variable.space == "const":
                bank = _align(bank, alignment_of(variable))
                self.addresses[variable.name] = SymbolAddress("const", bank)
                bank += size_of(variable)
            elif variable.space == "shared":
                self.shared[variable.name] = variable
        self.constants = np.zeros(_align(bank, 16), np.uint8)
        for variable in variables:
            if variable.initializer is None or variable.name not in self.addresses:
                continue
            image = self._image(variable)
            where = self.addresses[variable.name]
            if where.space == "const":
                self.constants[where.address : where.address + image.size] = image
            else:
                memory.at(where.address).data[: image.size] = image

    def _image(self, variable: Variable) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        image = np.zeros(size_of(variable), np.uint8)
        assert variable.initializer is not None
        self._fill(
            image, 0, variable.initializer, variable.type.split(".")[-1].strip(), list(variable.dimensions)
        )
        return image

    def _fill(
        self,
        image: np.ndarray[tuple[int], np.dtype[np.uint8]],
        offset: int,
        value: Initializer,
        type_name: str,
        dimensions: list[int | None],
    ) -> None:
        size = bytes_of(type_name)
        if isinstance(value, InitializerList):
            inner = dimensions[1:]
            stride = size * math.prod(d or 0 for d in inner)
            for i, element in enumerate(value.elements):
                self._fill(image, offset + i * stride, element, type_name, inner)
            return
        data = self._scalar(value, type_name, size)
        image[offset : offset + size] = np.frombuffer(data, np.uint8)

    def _scalar(self, value: Initializer, type_name: str, size: int) -> bytes:
        if isinstance(value, Literal):
            return literal_bytes(value.spelling, type_name, size)
        mask, shift = None, 0
        if isinstance(value, InitializerCall) and value.function != "generic":
            mask = int(value.function, 16)
            shift = (mask & -mask).bit_length() - 1
        assert isinstance(value, Symbol | Indexed | InitializerCall)
        address = self._address(value)
        if mask is not None:
            address = (address & mask) >> shift
        return (address & ((1 << (8 * size)) - 1)).to_bytes(size, "little")

    def _address(self, value: Symbol | Indexed | InitializerCall) -> int:
        if isinstance(value, InitializerCall):  # `generic(name)+4` inside a mask
            return self._address(value.argument) + (
                0 if value.offset is None else int(value.offset.spelling, 0)
            )
        name, offset = (
            (value.name, 0) if isinstance(value, Symbol) else (value.base.name, int(value.offset.spelling, 0))
        )
        where = self.addresses.get(name, self.functions.get(name))
        return offset if where is None else WINDOWS[where.space] + where.address + offset


class KernelLayout:
    """The addresses that one kernel's code needs: its parameters, shared and local variables."""

    def __init__(self, module: ModuleMemory) -> None:
        self._module = module
        self._shared: dict[str, int] = {}
        self._dynamic: list[str] = []
        self._frames: dict[str, int] = {}
        self.shared_size = 0
        self.parameters_size = 0
        self.parameters: list[tuple[int, Variable]] = []
        self.parameter_variables: list[ParameterVariable] = []

    def kernel_parameter(self, variable: Variable) -> int:
        """The offset of the kernel's next parameter."""
        offset = _align(self.parameters_size, alignment_of(variable))
        self.parameters.append((offset, variable))
        self.parameters_size = offset + size_of(variable)
        return offset

    def parameter_variable(self, variable: Variable) -> ParameterVariable:
        """A new `.param` variable of a function or a call."""
        found = ParameterVariable(len(self.parameter_variables), size_of(variable))
        self.parameter_variables.append(found)
        return found

    def local(self, function: str, variable: Variable) -> int:
        """The offset of a local variable in its function's frame."""
        offset = _align(self._frames.get(function, 0), alignment_of(variable))
        self._frames[function] = offset + size_of(variable)
        return offset

    @property
    def frame_sizes(self) -> dict[str, int]:
        """The size of each function's local frame, in multiples of 16 bytes."""
        return {name: _align(size, 16) for name, size in self._frames.items()}

    def shared_variable(self, name: str, variable: Variable) -> int:
        """The offset of a shared variable. Unsized (dynamic) ones all lie after the static ones."""
        if name not in self._shared:
            self._shared[name] = _align(self.shared_size, alignment_of(variable))
            self.shared_size = self._shared[name] + size_of(variable)
        return self._shared[name]

    @property
    def shared_variables(self) -> dict[str, int]:
        """The offsets of the shared variables by name; one in a function is ``function:variable``."""
        return dict(self._shared)

    def reserve_shared(self, names: set[str]) -> None:
        """Lays out the module's shared variables among ``names``, in the module's order."""
        used = [v for v in self._module.shared.values() if v.name in names]
        for variable in used:
            if None not in variable.dimensions:
                self.shared_variable(variable.name, variable)
        for variable in used:
            if None in variable.dimensions:
                offset = _align(self.shared_size, max(alignment_of(variable), 16))
                self._shared[variable.name] = offset
                self.shared_size = offset

    def module_symbol(self, name: str) -> SymbolAddress | None:
        """The address of a variable or function of the module, or None if it has neither of that name."""
        if name in self._shared:
            return SymbolAddress("shared", self._shared[name])
        return self._module.addresses.get(name, self._module.functions.get(name))


@dataclass(frozen=True)
class Frames:
    """Local memory of a thread: where each function's variables begin.

    A function that is not recursive has one frame; these come first, ``single`` bytes in all. Recursive functions
    (``deep``) have a frame for each depth of calls, ``per_depth`` bytes apart.
    """

    starts: Mapping[str, int]
    deep: frozenset[str]
    single: int
    per_depth: int

    @classmethod
    def of(cls, sizes: Mapping[str, int], functions: Sequence[str], deep: frozenset[str]) -> Frames:
        """The frames of ``functions``, whose variables take ``sizes`` bytes, multiples of 16."""
        starts: dict[str, int] = {}
        single = end = 0
        for name in sorted(functions, key=deep.__contains__):
            starts[name] = end
            end += sizes.get(name, 0)
            if name not in deep:
                single = end
        return cls(starts, deep, single, end - single)
