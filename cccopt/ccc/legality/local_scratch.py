"""Local memory that one iteration of a thread leaves for another one."""

from __future__ import annotations

from cccopt.analysis.loops import Loop
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.local_bytes import LocalBytes


def strays(view: View, loop: Loop) -> tuple[int, ...]:
    """The statements of a loop that may load from local memory what another iteration has stored, or that pass on an
    address in it.
    """
    local = LocalBytes(view)
    statements = [i for b in sorted(loop.blocks) for i in view.cfg.blocks[b].statements()]
    used = [i for i in statements if i in local.accesses]
    escaping = tuple(i for i in local.escapes if i in statements) if used else ()
    left = local.live(loop.blocks, loop.header)[loop.header] & local.stored_in(loop.blocks) if used else 0
    return escaping + tuple(i for i in used if local.accesses[i].loads & left)
