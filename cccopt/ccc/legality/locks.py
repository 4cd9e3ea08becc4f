"""Locks that a lane takes without waiting: what an atomic returns decides whether it runs a path.

        if (atomicCAS(&lock[k], 0, 1) == 0) {       taken, if no other thread holds it
          if (c) sum[k] += x;                       the path
          atomicExch(&lock[k], 0);                  released: as a task, the path would run after this
        }

An atomic counts as such if the code after the path may write to the location that it tested.
Loops that wait for a lock, or try several times, are another matter (`cccopt.ccc.legality.waiting`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cccopt.ccc.function.view import View
from cccopt.ccc.legality.deciding import deciding
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control, Memory


def released_after(
    view: View, region: Collection[str], path: Collection[str], following: Iterable[int]
) -> int | None:
    """The first statement of ``following`` that may release a lock which decides whether a ``path`` of ``region`` runs.
    Both are given by their nodes.
    """
    inside = frozenset(view.statements(region)) - frozenset(view.statements(path))
    if not any(_takes(view, index) for index in inside):
        return None
    dependence, blocks = view.control_dependence, view.blocks_of(path)
    branches = frozenset[int]().union(*(dependence[block] for block in blocks))
    taken = [index for index in deciding(view, branches, inside) if _takes(view, index)]
    writes = (index for index in following if _writes(view, index))
    return next((w for w in writes if any(_may_clash(view, t, w) for t in taken)), None)


def _code(view: View, index: int) -> Iterable[Instruction]:
    """An instruction, with the code of what it calls."""
    statement = view.body[index]
    return view.with_callees(statement) if isinstance(statement, Instruction) else ()


def _takes(view: View, index: int) -> bool:
    return any(i.base == "atom" for i in _code(view, index))


def _writes(view: View, index: int) -> bool:
    return any(isa.facts(i).memory in (Memory.STORE, Memory.ATOMIC) for i in _code(view, index))


def _may_clash(view: View, a: int, b: int) -> bool:
    """Whether two statements may touch the same location; what functions access is not known."""
    statements = (view.body[a], view.body[b])
    if any(isinstance(s, Instruction) and isa.facts(s).control is Control.CALL for s in statements):
        return True
    return view.memory.may_clash(view.memory.access(a), view.memory.access(b))
