"""The counts of kernels whose candidates are marked (`cccopt.source.candidates`), instruction by instruction.

Regions overlap in every way, so counts by region would fit only one selection. The instructions are those of the marked
PTX, with loops over blocks in kernels that can have one. The PTX is kept with the counts, so a reader need not compile
the program again with its original options.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cccopt.ccc.profitability.region_counts import Count, Issues
from cccopt.ptx.ir import Function, Instruction, Marker, Module
from cccopt.ptx.printer import print_module
from cccopt.source.candidates import FIRST


@dataclass(frozen=True, slots=True)
class CandidateCounts:
    """The ``warps`` that issued each instruction of the function ``name``, and the ``lanes`` active in them."""

    name: str
    warps: tuple[int, ...]
    lanes: tuple[int, ...]

    def __add__(self, other: CandidateCounts) -> CandidateCounts:
        pairs = (zip(a, b, strict=True) for a, b in ((self.warps, other.warps), (self.lanes, other.lanes)))
        warps, lanes = (tuple(x + y for x, y in both) for both in pairs)
        return replace(self, warps=warps, lanes=lanes)


@dataclass(frozen=True, slots=True)
class CandidateUnit:
    """The functions of ``unit``, a compiled file, that ran. ``packed`` is its marked PTX, compressed."""

    unit: str
    packed: str
    functions: tuple[CandidateCounts, ...]

    @property
    def ptx(self) -> str:
        """The marked PTX. Raises ValueError if ``packed`` is damaged."""
        try:
            return zlib.decompress(base64.b85decode(self.packed)).decode()
        except (zlib.error, UnicodeDecodeError) as problem:
            raise ValueError(f"the PTX of `{self.unit}` is damaged: {problem}") from problem

    def __add__(self, other: CandidateUnit) -> CandidateUnit:
        found = {counts.name: counts for counts in self.functions}
        for counts in other.functions:
            found[counts.name] = found[counts.name] + counts if counts.name in found else counts
        return replace(self, functions=tuple(found.values()))


@dataclass(frozen=True, slots=True)
class _Counted:
    warps: int
    lanes: int


def has_candidates(module: Module) -> bool:
    """Whether the module contains markers of candidates."""
    return any(map(_has_candidates, module.functions()))


def candidates_of(unit: str, module: Module, issues: Issues) -> tuple[CandidateUnit, ...]:
    """The functions with candidates that ran, from ``issues`` by statement; empty if none ran."""
    ran = tuple(
        CandidateCounts(function.name, tuple(c.warps for c in counts), tuple(c.lanes for c in counts))
        for function in module.functions()
        if _has_candidates(function)
        and (counts := _by_instruction(function, issues))
        and any(c.warps for c in counts)
    )
    if not ran:
        return ()
    packed = base64.b85encode(zlib.compress(print_module(module).encode(), 9)).decode()
    return (CandidateUnit(unit, packed, ran),)


def issues_of(function: Function, counts: CandidateCounts) -> Issues:
    """The issues by statement of ``function``, which has the counted instructions and any markers.

    Raises ValueError if it has a different number of instructions.
    """
    indices = _instructions(function)
    if not len(indices) == len(counts.warps) == len(counts.lanes):
        raise ValueError(f"`{function.name}` has {len(indices)} instructions, not {len(counts.warps)}")
    return {
        (function.name, index): _Counted(warps, lanes)
        for index, warps, lanes in zip(indices, counts.warps, counts.lanes, strict=True)
        if warps
    }


def _by_instruction(function: Function, issues: Issues) -> Sequence[Count]:
    none = _Counted(0, 0)
    return [issues.get((function.name, index), none) for index in _instructions(function)]


def _instructions(function: Function) -> list[int]:
    return [index for index, s in enumerate(function.body or ()) if isinstance(s, Instruction)]


def _has_candidates(function: Function) -> bool:
    return any(isinstance(s, Marker) and s.region >= FIRST for s in function.body or ())
