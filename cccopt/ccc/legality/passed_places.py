"""The arguments from which called functions compute the addresses that they write to
(`cccopt.ccc.function.written_places`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from cccopt.analysis.roots import AddressRoots
from cccopt.ccc.function.call_sequences import Unfit, accesses, sequence_of
from cccopt.ccc.function.view import View
from cccopt.ccc.function.written_places import parameters_of_places
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand
from cccopt.ptx.isa import Control

Passed: TypeAlias = "Sequence[tuple[int, Operand]]"
"""The statements that pass something, with the operands."""

PassedPlaces: TypeAlias = "Mapping[int, Passed | None]"
"""What each call passes on; None if that is not known."""


def passed_places(view: View, nodes: Collection[str], *, in_grid: bool) -> PassedPlaces:
    """What the calls in ``nodes`` pass on. With ``in_grid``, iterations were threads of different blocks, which nothing
    orders: they cannot share scratch in global memory, and its addresses do not count.
    """
    roots = AddressRoots(view.function, view.reaching) if in_grid else None
    found: dict[int, Passed | None] = {}
    places: dict[str, frozenset[int]] = {}
    for call, instruction in view.instructions(nodes):
        callee = isa.callee_of(instruction) if isa.facts(instruction).control is Control.CALL else None
        if callee is None:
            continue
        if callee not in places:
            places[callee] = parameters_of_places(view.module, callee)
        try:
            passed = [*_passed(view, call, places[callee])] if places[callee] else []
        except Unfit:
            found[call] = None
            continue
        found[call] = [(i, o) for i, o in passed if roots is None or not _is_global(roots, i, o)]
    return found


def _passed(view: View, call: int, places: Collection[int]) -> Iterator[tuple[int, Operand]]:
    """What the call passes as the parameters ``places``. Raises Unfit."""
    sequence = sequence_of(view.body, call)
    for index in range(sequence.start, sequence.call):
        statement = view.body[index]
        if isinstance(statement, Instruction) and statement.base == "st":
            for access in accesses(statement, sequence.arguments):
                if access.piece.variable in places:
                    yield index, access.operand


def _is_global(roots: AddressRoots, use: int, operand: Operand) -> bool:
    """Whether an operand is an address that a parameter of the kernel gives."""
    found = roots.of_value(use, operand)
    return bool(found) and all(root.kind == "parameter" for root in found)
