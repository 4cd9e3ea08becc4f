"""Theoretical occupancy: how many warps of a kernel fit on a multiprocessor at once, and what limits them.

The limits are those of the CUDA Programming Guide (appendix "Compute Capabilities", table "Technical
Specifications per Compute Capability") of CUDA 13.0. Registers and shared memory are allocated as in the toolkit's
`cuda_occupancy.h`, with the largest carveout for shared memory that the architecture has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LANES = 32
_REGISTERS = 64 * 1024
_REGISTER_UNIT = 256  # registers are allocated to warps in units of this,
_SUBPARTITIONS = 4  # and those of a warp all come from one of these


@dataclass(frozen=True, slots=True)
class Limits:
    """What a multiprocessor holds: ``warps``, ``blocks``, ``shared`` bytes.

    The system takes ``reserved`` bytes of shared memory per block, which is allocated in units of ``unit`` bytes.
    """

    warps: int
    blocks: int
    shared: int
    reserved: int = 1024
    unit: int = 128


_LIMITS = {
    75: Limits(32, 16, 64 * 1024, reserved=0, unit=256),
    80: Limits(64, 32, 164 * 1024),
    86: Limits(48, 16, 100 * 1024),
    87: Limits(48, 16, 164 * 1024),
    88: Limits(48, 16, 100 * 1024),
    89: Limits(48, 24, 100 * 1024),
    90: Limits(64, 32, 228 * 1024),
    100: Limits(64, 32, 228 * 1024),
    103: Limits(64, 32, 228 * 1024),
    110: Limits(48, 24, 228 * 1024),
    120: Limits(48, 24, 100 * 1024),
    121: Limits(48, 24, 100 * 1024),
}

WARPS, BLOCKS, REGISTERS, SHARED = "warps", "blocks", "registers", "shared memory"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``blocks`` fit on a multiprocessor, with ``warps`` of the ``most`` warps that it can hold; 0 if none fits.

    ``limited_by`` names what limits them: `WARPS`, `BLOCKS`, `REGISTERS` or `SHARED`, or several if they allow the same
    number.
    """

    blocks: int
    warps: int
    most: int
    limited_by: tuple[str, ...]

    @property
    def share(self) -> float:
        """Resident warps over those that the multiprocessor can hold, 0 to 1."""
        return self.warps / self.most


def limits_of(arch: str) -> Limits | None:
    """The limits of ``sm_90``, ``sm_90a``, ...; None for an architecture that is not in the table."""
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    return _LIMITS.get(int(found.group(1))) if found is not None else None


def occupancy(registers: int, shared: int, threads: int, arch: str) -> Occupancy | None:
    """The occupancy of a kernel with ``registers`` per thread, and ``shared`` bytes and ``threads`` threads per block.

    None for an architecture that is not in the table.
    """
    limits = limits_of(arch)
    if limits is None:
        return None
    warps = -(-threads // LANES)
    fitting = {
        WARPS: limits.warps // warps,
        BLOCKS: limits.blocks,
        REGISTERS: _blocks_by_registers(registers, warps),
        SHARED: limits.shared // max(_rounded(shared + limits.reserved, limits.unit), 1),
    }
    blocks = min(fitting.values())
    limited_by = tuple(name for name, most in fitting.items() if most == blocks)
    return Occupancy(blocks, blocks * warps, limits.warps, limited_by)


def _blocks_by_registers(registers: int, warps: int) -> int:
    """How many blocks of ``warps`` warps a multiprocessor has registers for."""
    a_warp = max(_rounded(registers * LANES, _REGISTER_UNIT), _REGISTER_UNIT)
    # A block fits only if there are enough registers with its warps spread evenly over the subpartitions.
    if a_warp * _rounded(warps, _SUBPARTITIONS) > _REGISTERS:
        return 0
    return _REGISTERS // _SUBPARTITIONS // a_warp * _SUBPARTITIONS // warps


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
