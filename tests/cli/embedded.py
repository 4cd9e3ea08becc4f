"""The code of a kernel inside the files that nvcc makes: PTX texts and cubins, as they are or in containers."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from tests.ptx.elf import code_sections

_CUBIN = 190  # the machine of an ELF file


@dataclass(frozen=True, slots=True)
class Code:
    """A PTX text or a cubin: the kernel ``work``, and all other functions."""

    kind: str
    kernel: bytes
    rest: Mapping[str, bytes]

    @property
    def has_votes(self) -> bool:
        """Whether it can be a rewritten kernel. (Machine code cannot be read here.)"""
        return self.kind == "cubin" or b"vote.sync" in self.kernel


def code_of(name: str, data: bytes) -> list[Code]:
    """The pieces of code with the kernel ``work`` in the file ``name``, in their order, unless it is compressed."""
    if name.endswith((".fatbin.c", ".cu.cpp.ii")):
        # The fat binary as numbers, in assembly.
        data = b"".join(struct.pack("<Q", int(word, 16)) for word in re.findall(rb"0x([0-9a-f]{16})\b", data))
    found = []
    for start in re.finditer(rb"\.version \d|\x7fELF\x02\x01", data):
        piece = data[start.start() :]
        if piece.startswith(b".version"):
            functions = _functions(piece.partition(b"\0")[0])
            kernel = functions.pop("work", None)
            if kernel is not None:
                found.append(Code("PTX", kernel, functions))
        elif struct.unpack_from("<H", piece, 18) == (_CUBIN,):
            sections = code_sections(piece)
            kernel = sections.pop(".text.work", None)
            if kernel is not None:
                found.append(Code("cubin", kernel, sections))
    return found


def _functions(ptx: bytes) -> dict[str, bytes]:
    """The functions of a PTX text by name, without blanks, comments and the labels that debug information needs."""
    text = re.sub(rb"//.*|\$L__tmp\d+:?", b"", ptx)
    starts = list(re.finditer(rb"(?m)^.*\.(?:entry|func)\b(?: *\([^()]*\))?\s*([\w$]+)", text))
    texts = (text[start.start() :].partition(b"\n}")[0] for start in starts)
    return {start[1].decode(): b"".join(body.split()) for start, body in zip(starts, texts, strict=True)}
