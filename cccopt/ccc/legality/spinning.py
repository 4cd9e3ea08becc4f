"""Loops that may wait for another thread: what an atomic returns decides how long they run.

        SPIN: atom.cas.b32 %r1, [%rd1], 0, 1;       a lock: the lane goes on when its holder has released it
              setp.ne.s32  %p1, %r1, 0;
              @%p1 bra     SPIN;

Outside of a path, such a lane never reaches the vote at which the holder of the lock waits. The retry loop of a
lock-free update (compare-and-swap until no other thread was faster) has the same shape and counts as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cccopt.analysis import effects
from cccopt.analysis.loops import Loop
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ptx.ir import Instruction


def spinning_atomics(view: View, loops: Iterable[Loop]) -> frozenset[int]:
    """The atomics in any of the ``loops`` whose results decide when lanes leave that loop, as statements."""
    found: set[int] = set()
    for loop in loops:
        atomics = {i for b in loop.blocks for i in view.cfg.blocks[b].statements() if _is_atomic(view, i)}
        if atomics:
            deciding = {view.cfg.blocks[a].stop - 1 for a, _ in loop.exits}
            found |= atomics & _sources(view, deciding)
    return frozenset(found)


def _is_atomic(view: View, index: int) -> bool:
    statement = view.body[index]
    return isinstance(statement, Instruction) and statement.base == "atom"


def _sources(view: View, statements: Collection[int]) -> frozenset[int]:
    """The statements from which the operands of some statements are computed: their backward slice by data."""
    found: set[int] = set()
    work = list(statements)
    while work:
        index = work.pop()
        for name in effects.needs(view.body[index]):
            new = view.reaching.reaching(index, name) - found - {ENTRY}
            found |= new
            work += new
    return frozenset(found)
