"""The values of literal tokens (PTX ISA 4.5): ``42``, ``-0x7F``, ``017``, ``0f3F800000``, ``0d3FF0000000000000``."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from cccopt.emulator.semantics import PRED, Type
from cccopt.emulator.semantics.operation import unsigned


def integer(spelling: str) -> int:
    """The value of an integer token: ``42``, ``-0x7F``, ``0b1``, ``017``, ``7U``."""
    text = spelling.strip().rstrip("uU")
    negative = text.startswith("-")
    text = text.lstrip("+-")
    # In PTX, a leading zero means octal.
    is_octal = len(text) > 1 and text[0] == "0" and text.isdigit()
    value = int(text, 8) if is_octal else int(text, 0)
    return -value if negative else value


def literal(spelling: str, dtype: Type) -> Any:
    """The value of a literal token for an operand of a given type."""
    lower = spelling.lower()
    if lower.startswith(("0f", "0d")) and len(lower) > 9:
        data = bytes.fromhex(spelling[2:])[::-1]
        if dtype.kind == "f":
            return (
                struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
                if len(data) != dtype.itemsize
                else np.frombuffer(data, dtype)[0]
            )
        if len(data) != dtype.itemsize:
            raise ValueError(f"literal `{spelling}` where {8 * dtype.itemsize} bits are needed")
        return np.frombuffer(data, unsigned(dtype)).view(dtype)[0]
    if dtype.kind == "f":
        return dtype.type(float(spelling))
    if dtype == PRED:
        return bool(integer(spelling))
    if "." in spelling or ("e" in lower and not lower.startswith("0x")):
        return np.asarray(float(spelling), np.float64 if dtype.itemsize == 8 else np.float32).view(dtype)[()]
    u = unsigned(dtype)
    return np.asarray(integer(spelling) & ((1 << (8 * dtype.itemsize)) - 1), u).view(dtype)[()]


def literal_bytes(spelling: str, type_name: str, size: int) -> bytes:
    """A literal as the bytes of a variable."""
    if spelling.lower().startswith("0f"):
        data = struct.pack("<I", int(spelling[2:], 16))
        return data if size == 4 else struct.pack("<d", struct.unpack("<f", data)[0])
    if spelling.lower().startswith("0d"):
        data = struct.pack("<Q", int(spelling[2:], 16))
        return data if size == 8 else struct.pack("<f", struct.unpack("<d", data)[0])
    if type_name.startswith("f"):
        value = float(spelling)
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
    return (integer(spelling) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
