"""The machine code of a cubin by place: for each instruction, its source line and the PTX line that it comes from.

`ptxas` writes three sections into the cubin of code with line information (`-lineinfo`). ``.debug_line`` is a DWARF 2
line table from machine code to source lines; ``.nv_debug_line_sass`` is one of the same form to lines of the PTX.
``.nv_debug_ptx_txt`` is that PTX, with a zero at the end of each line. It lacks ``.loc`` and comments, but their lines
remain, empty. All of it is in the cubin, so no disassembler is needed.

Little is read from an instruction itself (16 bytes since sm_70). Bits 0 to 11 are its opcode, bits 12 to 15 its guard
(7 is ``PT``, which guards nothing). The target of a BRA is a distance from the next instruction, in steps of 4 bytes,
in the 48 bits that begin at bit 34. Since sm_90, bits 16 to 23 hold eight lower bits of it. The branch to itself after
the end of each function shows which form is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

SIZE = 16
"""The bytes of an instruction."""

_NO_GUARD = 7
_BRANCH, _NOP = 0x947, 0x918
# Branches, calls, returns and related instructions of sm_70 to sm_90: BRX, JMP, EXIT, ... BSYNC, at which lanes
# reconverge, is among them, because more lanes are active after it.
_CONTROL = frozenset(
    {0x941, 0x942, 0x943, 0x944, 0x945, 0x946, _BRANCH, 0x948, 0x949, 0x94A, 0x94B, 0x94C, 0x94D, 0x94E, 0x94F, 0x950}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """An instruction: ``file`` is empty and ``line`` 0 if no source line is known; ``ptx`` is 0 if no PTX line is.

    A ``guarded`` one runs under a predicate. A ``control`` one branches, or lets lanes diverge or reconverge. A
    ``reached`` one is the target of a branch.
    """

    file: str
    line: int
    ptx: int
    guarded: bool
    control: bool
    reached: bool = False


@dataclass(frozen=True)
class MachineCode:
    """A cubin: the instructions of each function, in order from its beginning, and the PTX it was made from, if
    known.
    """

    functions: Mapping[str, tuple[MachineInstruction, ...]]
    ptx: str = ""


def machine_code(cubin: bytes) -> MachineCode:
    """The code of a cubin. Raises ValueError for any other file."""
    try:
        elf = _Elf(cubin)
        source = _tables(elf, ".debug_line")
        ptx = _tables(elf, ".nv_debug_line_sass")
        functions = {
            name.removeprefix(".text."): tuple(
                _instructions(elf.bytes_of(name), source.get(name), ptx.get(name))
            )
            for name in elf.sections
            if name.startswith(".text.")
        }
        return MachineCode(functions, _ptx_text(elf))
    except (struct.error, IndexError, UnicodeDecodeError) as problem:
        raise ValueError(f"not a cubin: {problem}") from problem


_Row = tuple[int, str, int]


def _instructions(
    code: bytes, source: list[_Row] | None, ptx: list[_Row] | None
) -> Iterator[MachineInstruction]:
    words: list[tuple[int, int]] = list(struct.iter_unpack("<QQ", code[: len(code) // SIZE * SIZE]))
    # A branch to itself and NOPs follow the end.
    end = len(words)
    while end and words[end - 1][0] & 0xFFF == _NOP:
        end -= 1
    wide = False
    if end and words[end - 1][0] & 0xFFF == _BRANCH:
        wide = _target(*words[end - 1], end - 1, wide=True) == end - 1
        end -= wide or _target(*words[end - 1], end - 1, wide=False) == end - 1
    reached = {
        _target(low, high, i, wide=wide)
        for i, (low, high) in enumerate(words[:end])
        if low & 0xFFF == _BRANCH
    }
    lines, origins = _spread(source, end), _spread(ptx, end)
    for i, ((low, _), (file, line), (_, origin)) in enumerate(zip(words[:end], lines, origins, strict=True)):
        guarded = low >> 12 & 0xF != _NO_GUARD
        yield MachineInstruction(file, line, origin, guarded, low & 0xFFF in _CONTROL, i in reached)


def _target(low: int, high: int, index: int, *, wide: bool) -> int:
    """The index of the instruction that a BRA leads to."""
    distance = low >> 34 | (high & 0x3FFFF) << 30
    distance -= distance >> 47 << 48
    if wide:
        distance = distance << 8 | low >> 16 & 0xFF
    return index + 1 + distance * 4 // SIZE


def _spread(rows: list[_Row] | None, count: int) -> list[tuple[str, int]]:
    """The file and line of each of ``count`` instructions: those of the last row at or before it."""
    found = [("", 0)] * count
    ordered = sorted(rows or (), key=lambda row: row[0])
    for i, (address, file, line) in enumerate(ordered):
        stop = ordered[i + 1][0] if i + 1 < len(ordered) else count * SIZE
        for k in range(-(-address // SIZE), min(-(-stop // SIZE), count)):
            found[k] = (file, line) if line else ("", 0)
    return found


def _ptx_text(elf: _Elf) -> str:
    if ".nv_debug_ptx_txt" not in elf.sections:
        return ""
    return elf.bytes_of(".nv_debug_ptx_txt").replace(b"\0", b"\n").decode("utf-8", "replace")


# --- ELF -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int
    info: int


class _Elf:
    """The sections of a 64-bit little-endian ELF file."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a cubin: not a 64-bit ELF file")
        self._data = data
        (start,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        found: list[tuple[int, _Section]] = []
        for i in range(count):
            name, kind, _, _, offset, length, link, info = struct.unpack_from(
                "<IIQQQQII", data, start + i * size
            )
            found.append((name, _Section(kind, offset, length, link, info)))
        text = self._of(found[names][1])
        self._ordered = [(_string(text, at), section) for at, section in found]
        self.sections = dict(self._ordered)

    def _of(self, section: _Section) -> bytes:
        return self._data[section.offset : section.offset + section.size]

    def bytes_of(self, name: str) -> bytes:
        """The contents of a section."""
        return self._of(self.sections[name])

    @cached_property
    def _symbols(self) -> list[int]:
        """The section of each symbol."""
        if ".symtab" not in self.sections:
            return []
        return [struct.unpack_from("<H", entry, 6)[0] for entry in _cut(self.bytes_of(".symtab"), 24)]

    def addresses(self, name: str) -> dict[int, str]:
        """The offsets in a section at which an address is stored, with the section that the address is in."""
        found: dict[int, str] = {}
        for prefix, size in ((".rela", 24), (".rel", 16)):
            if prefix + name in self.sections:
                for entry in _cut(self.bytes_of(prefix + name), size):
                    offset, info = struct.unpack_from("<QQ", entry)
                    found[offset] = self._ordered[self._symbols[info >> 32]][0]
        return found


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data) - size + 1, size))


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "surrogateescape")


# --- line tables (DWARF 2, section 6.2) ----------------------------------------------------------------------------


def _tables(elf: _Elf, name: str) -> dict[str, list[_Row]]:
    """The rows (address, file, line) of a line table, by section of code."""
    found: dict[str, list[_Row]] = {}
    if name not in elf.sections:
        return found
    data, addresses = elf.bytes_of(name), elf.addresses(name)
    at = 0
    while at + 4 < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        _Program(data[: at + 4 + length], at, addresses).run(found)
        at += 4 + length
    return found


class _Program:
    """The line program of one unit, which begins at ``at``."""

    def __init__(self, data: bytes, at: int, addresses: Mapping[int, str]) -> None:
        self._data, self._addresses = data, addresses
        version, header = struct.unpack_from("<HI", data, at + 4)
        if version > 4:
            raise ValueError(f"a line table of DWARF {version}")
        self._start = at + 10 + header
        at += 10
        self._step = data[at]
        # Version 4 has one more byte, for machines with wide instructions.
        at += 2 if version < 4 else 3
        self._base, self._range, self._special = struct.unpack_from("<bBB", data, at)
        at += 3
        self._operands = data[at : at + self._special - 1]
        self._at = at + self._special - 1
        folders = [""]
        while folder := self._text():
            folders.append(folder)
        self._files = [""]
        while file := self._text():
            folder = folders[self._number()]
            self._number(), self._number()
            self._files.append(f"{folder}/{file}" if folder and not file.startswith("/") else file)
        self._at = self._start

    def _text(self) -> str:
        text = _string(self._data, self._at)
        self._at = self._data.index(b"\0", self._at) + 1
        return text

    def _number(self, *, signed: bool = False) -> int:
        """A LEB128 number."""
        value, shift = 0, 0
        while True:
            byte: int = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def run(self, found: dict[str, list[_Row]]) -> None:
        """Add all rows to ``found``."""
        section, address, file, line = "", 0, 1, 1
        while self._at < len(self._data):
            opcode = self._data[self._at]
            self._at += 1
            emits = opcode >= self._special
            if emits:
                step, up = divmod(opcode - self._special, self._range)
                address += step * self._step
                line += self._base + up
            elif opcode == 0:
                size = self._number()
                operation, operand = self._data[self._at], self._at + 1
                self._at += size
                if operation == 1:
                    section, address, file, line = "", 0, 1, 1
                elif operation == 2:
                    section = self._addresses.get(operand, "")
                    # The offset from the function's beginning: each section holds one function.
                    (address,) = struct.unpack_from("<Q", self._data, operand)
            elif opcode == 1:
                emits = True
            elif opcode == 2:
                address += self._number() * self._step
            elif opcode == 3:
                line += self._number(signed=True)
            elif opcode == 4:
                file = self._number()
            elif opcode == 8:
                address += (255 - self._special) // self._range * self._step
            elif opcode == 9:
                (advance,) = struct.unpack_from("<H", self._data, self._at)
                self._at += 2
                address += advance
            else:
                for _ in range(self._operands[opcode - 1]):
                    self._number()
            if emits and section:
                name = self._files[file] if file < len(self._files) else ""
                found.setdefault(section, []).append((address, name, line))
