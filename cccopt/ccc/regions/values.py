"""Registers that pass values from a path to the code after it."""

from __future__ import annotations

from cccopt.analysis import effects
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.paths import Path


def live_outs(view: View, path: Path) -> frozenset[str]:
    """The registers that the path writes and that are live where control continues after it."""
    written = {name for i in view.statements(path.nodes) for name in effects.writes(view.body[i])}
    return view.liveness.live_in[view.block_of_name[path.end]] & written


def definitions_at_end(view: View, path: Path, name: str) -> frozenset[int]:
    """The definitions of a register that reach the ends of a path."""
    return frozenset(d for block in view.ends(path.nodes) for d in view.reaching.reaching_end(block, name))
