"""Just enough ELF to compare the machine code of two cubins."""

from __future__ import annotations

import struct


def code_sections(cubin: bytes) -> dict[str, bytes]:
    """The contents of each section named ``.text.*`` of a 64-bit little-endian ELF file."""
    assert cubin[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]

    def name(offset: int) -> str:
        start = headers[names][4] + offset
        return cubin[start : cubin.index(b"\0", start)].decode()

    return {name(h[0]): cubin[h[4] : h[4] + h[5]] for h in headers if name(h[0]).startswith(".text")}
