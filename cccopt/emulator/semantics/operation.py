"""A row of the semantics table: a function on lanes, with the types of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""A numpy array, one element per lane. numpy's stubs lose the element type at each operator, so it is not stated."""
Type: TypeAlias = "np.dtype[Any]"

PRED: Type = np.dtype(np.bool_)

TYPES: dict[str, Type] = {
    "pred": PRED,
    **{f"{kind}{8 * size}": np.dtype(f"u{size}") for kind in "bu" for size in (1, 2, 4, 8)},
    **{f"s{8 * size}": np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
}
"""The numpy type of the values of each scalar PTX type (PTX ISA 5.2.1)."""


class UnsupportedError(Exception):
    """An opcode or modifier that the machine does not know; the message names it."""


@dataclass(frozen=True)
class Operation:
    """``function`` maps arrays of the types ``inputs`` (one element per lane) to an array of type ``outputs[0]``,
    or to a tuple of arrays if there are several outputs.

    ``carry_in`` and ``carry_out`` say that the last input or output is the carry flag, which no operand names.
    """

    function: Callable[..., Any]
    inputs: tuple[Type, ...]
    outputs: tuple[Type, ...]
    carry_in: bool = False
    carry_out: bool = False


class Modifiers:
    """The dotted parts of an opcode after the first, read one by one; a part that is never read is an error."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.opcode = ".".join(parts)
        self._left = list(parts[1:])

    def flag(self, name: str) -> bool:
        """Whether ``name`` is among the parts; removes it."""
        if name in self._left:
            self._left.remove(name)
            return True
        return False

    def choice(self, *names: str, default: str | None = None) -> str:
        """Removes and returns the first of ``names`` among the parts; without a default, there must be one."""
        for name in names:
            if self.flag(name):
                return name
        if default is None:
            raise UnsupportedError(f"`{self.opcode}` has none of .{', .'.join(names)}")
        return default

    def drop(self, *names: str) -> None:
        """Removes all of ``names``: modifiers that do not affect values."""
        for name in names:
            self.flag(name)

    def types(self, count: int = 1) -> tuple[str, ...]:
        """The last ``count`` parts, which must be all that is left."""
        found, self._left = tuple(self._left), []
        if len(found) != count:
            extra = ", ".join("." + name for name in found[: len(found) - count])
            raise UnsupportedError(f"`{self.opcode}`: unknown modifier {extra or 'list'}")
        for name in found:
            if name not in TYPES:
                raise UnsupportedError(f"`{self.opcode}`: type .{name} is not supported")
        return found

    def type_of(self, *allowed: str) -> str:
        """The one type that is left; it must be one of ``allowed`` (any if none is given)."""
        (found,) = self.types()
        if allowed and found not in allowed:
            raise UnsupportedError(f"`{self.opcode}`: type .{found} is not supported here")
        return found


def is_float(name: str) -> bool:
    """Whether a type name is a floating-point type."""
    return name.startswith("f")


def wider(dtype: Type) -> Type:
    """The integer type of twice the width and the same signedness."""
    return np.dtype(f"{dtype.kind}{dtype.itemsize * 2}")


def unsigned(dtype: Type) -> Type:
    """The unsigned integer type of the same width."""
    return PRED if dtype == PRED else np.dtype(f"u{dtype.itemsize}")


def bits(dtype: Type) -> int:
    """The width in bits."""
    return int(dtype.itemsize) * 8
