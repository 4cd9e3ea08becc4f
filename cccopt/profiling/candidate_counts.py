"""What a run counted of kernels whose candidates are marked (`cccopt.source.candidates`), instruction by instruction.

Regions overlap in every way, so that counts by region would fit one selection alone. The instructions are those of the
PTX with loops over blocks, where kernels can have one; a digest tells whether another compilation makes the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cccopt.ccc.profitability.code_digest import digests
from cccopt.ccc.profitability.profile import Count, Issues
from cccopt.ptx.ir import Function, Instruction, Marker, Module
from cccopt.source.candidates import FIRST


@dataclass(frozen=True, slots=True)
class CandidateCounts:
    """The ``warps`` that issued each instruction of the function ``name``, and the ``lanes`` active in them."""

    name: str
    digest: str
    warps: tuple[int, ...]
    lanes: tuple[int, ...]

    def __add__(self, other: CandidateCounts) -> CandidateCounts:
        pairs = (zip(a, b, strict=True) for a, b in ((self.warps, other.warps), (self.lanes, other.lanes)))
        warps, lanes = (tuple(x + y for x, y in both) for both in pairs)
        return replace(self, warps=warps, lanes=lanes)


@dataclass(frozen=True, slots=True)
class _Counted:
    warps: int
    lanes: int


def has_candidates(module: Module) -> bool:
    """Whether markers of candidates are in the module."""
    return any(_is_of_candidate(s) for function in module.functions() for s in function.body or ())


def counts_of_candidates(module: Module, issues: Issues) -> tuple[CandidateCounts, ...]:
    """The counts of each function with candidates that ran, from ``issues`` by statement."""
    found = digests(module)
    return tuple(
        CandidateCounts(
            function.name,
            found[function.name],
            tuple(count.warps for count in counts),
            tuple(count.lanes for count in counts),
        )
        for function in module.functions()
        if function.name in found
        and (counts := _by_instruction(function, issues))
        and any(c.warps for c in counts)
    )


def issues_of(function: Function, counts: CandidateCounts) -> Issues:
    """The issues by statement of ``function``, which has the instructions that were counted and any markers.

    Raises ValueError where it has others.
    """
    indices = _instructions(function)
    if len(indices) != len(counts.warps):
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


def _is_of_candidate(statement: object) -> bool:
    return isinstance(statement, Marker) and statement.region >= FIRST
