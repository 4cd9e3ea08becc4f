"""The functions that the CUDA runtime provides to device code: `printf`, and what a failed `assert` calls.

See PTX Writer's Guide to Interoperability, System Calls. Calling any other function without a body is an error.
Output goes to standard error, so that it never mixes with results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cccopt.analysis.memory import ASSERTION
from cccopt.emulator.errors import OUT_OF_BOUNDS, TRAPPED, UNSUPPORTED, EmulatorError
from cccopt.emulator.launch_memory import LaunchMemory
from cccopt.emulator.layout import WINDOWS
from cccopt.emulator.pieces import Decoded
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import Array
from cccopt.emulator.shape import Shape

PRINTF = "vprintf"

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<size>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcsp%])"
)
_WIDE = frozenset({"l", "ll", "j", "z", "t"})
_NARROW = {"hh": np.uint8, "h": np.uint16}

Read = Callable[[int, int], bytes]
"""Reads bytes, given their address and number."""


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """Runs system calls in a launch."""

    memory: LaunchMemory
    places: Places
    shape: Shape

    def require(self, name: str, item: Decoded) -> None:
        """Raises EmulatorError for a function that is not known (CCC070)."""
        if name not in (PRINTF, ASSERTION):
            raise self.places.error(
                UNSUPPORTED,
                f"function `{name}` has no body here",
                item,
                help="link the device code first, or emulate a launch that does not call it",
            )

    def run(self, name: str, item: Decoded, lanes: Array, arguments: Sequence[Array]) -> Array:
        """Runs function ``name`` for ``lanes``, called by ``item``; ``arguments`` have one element per lane. Returns,
        for each lane, how many arguments `printf` has read. Raises EmulatorError for a failed assertion (CCC078).
        """
        results = np.zeros(lanes.size, np.int32)
        for place, lane in enumerate(lanes.tolist()):
            given = [int(argument[place]) for argument in arguments]
            if name == ASSERTION:
                raise self._failed(item, lane, given)
            text_at = partial(self._text, item, lane)
            values = _Values(given[1], partial(self._bytes, item, lane))
            sys.stderr.write(formatted(text_at(given[0]), values, text_at))
            results[place] = values.count
        return results

    def _failed(self, item: Decoded, lane: int, given: Sequence[int]) -> EmulatorError:
        condition, file, function = (self._text(item, lane, given[place]) for place in (0, 1, 3))
        return self.places.error(
            TRAPPED,
            f"assertion `{condition}` failed in {self.shape.thread_name(lane)}",
            item,
            why=f"it is in `{function}`, {file}:{given[2]}",
        )

    def _bytes(self, item: Decoded, lane: int, address: int, size: int) -> bytes:
        return bytes(self._from(item, lane, address)[:size])

    def _text(self, item: Decoded, lane: int, address: int) -> str:
        return bytes(self._from(item, lane, address)).partition(b"\0")[0].decode(errors="replace")

    def _from(self, item: Decoded, lane: int, address: int) -> Array:
        """The bytes from a generic address onwards, as ``lane`` sees them."""
        owners = {"shared": int(self.shape.block_of(np.int64(lane))), "local": lane, "const": 0}
        for space, owner in owners.items():
            limit, data, stride = self.memory.space(space)
            offset = address - WINDOWS[space]
            if 0 <= offset < limit:
                return data[owner * stride :][offset:limit]
        allocation = self.memory.allocations.find(address)
        if allocation is None:
            raise self.places.error(
                OUT_OF_BOUNDS,
                f"a system call reads out of bounds: address {address:#x}, {self.shape.thread_name(lane)}",
                item,
                why=self.memory.allocations.describe(address),
            )
        return allocation.data[address - allocation.base :]


@dataclass(slots=True)
class _Values:
    """The arguments of a `printf`, one after the other, each at the next multiple of its size."""

    at: int
    read: Read
    count: int = 0

    def next(self, size: int) -> bytes:
        start = -(-self.at // size) * size
        self.at = start + size
        self.count += 1
        return self.read(start, size)

    def integer(self, size: int, *, signed: bool) -> int:
        return int.from_bytes(self.next(size), "little", signed=signed)


def formatted(format: str, values: _Values, text_at: Callable[[int], str]) -> str:
    """What C's `printf` writes for ``format``."""
    return _CONVERSION.sub(lambda found: _converted(found, values, text_at), format)


def _converted(found: re.Match[str], values: _Values, text_at: Callable[[int], str]) -> str:
    kind, size = found["kind"], found["size"]
    if kind == "%":
        return "%"
    spec = "%" + found["flags"]
    spec += str(values.integer(4, signed=True)) if found["width"] == "*" else found["width"] or ""
    if found["precision"] is not None:
        precision = values.integer(4, signed=True) if found["precision"] == "*" else found["precision"]
        spec += f".{precision}"
    if kind in "eEfFgG":
        return f"{spec}{kind}" % _real(values)
    if kind in "aA":
        shown = re.sub(r"\.?0+p", "p", _real(values).hex())
        return f"{spec.partition('.')[0]}s" % (shown.upper() if kind == "A" else shown)
    if kind in "sp":
        address = values.integer(8, signed=False)
        return f"{spec}s" % (text_at(address) if kind == "s" else hex(address))
    signed = kind in "di"
    value = values.integer(8 if size in _WIDE else 4, signed=signed)
    if kind == "c":
        return f"{spec}c" % (value & 0xFF)
    if size in _NARROW:
        narrow = np.array(value & 0xFFFF).astype(_NARROW[size])
        value = int(narrow.view(f"i{narrow.itemsize}") if signed else narrow)
    return f"{spec}{'d' if kind == 'u' else kind}" % value


def _real(values: _Values) -> float:
    return float(np.frombuffer(values.next(8), np.float64)[0])
