"""Which form of the loop fits: *split* if trip counts differ by at most one between the lanes, else *idle lanes*.

Both are correct for any loop; the choice only affects speed (DESIGN 4.2). The split form suits these loops:

        for (i = tid + ctaid * ntid; i < n; i += ntid * nctaid)     affine start, grid stride, uniform bound
        for (k = 0; k < count; ++k)                                 all of it uniform
"""

from __future__ import annotations

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction

_STRIDES = ("%ntid", "%nctaid")
_DEEPEST = 8
"""The longest chain of operations in which the stride of a loop is searched for."""


def is_split(view: View, region: Region) -> bool:
    """Whether the loop has one test to leave it, and the lanes' outcomes of this test and of those to enter it are at
    most one iteration apart.
    """
    loop, preheader = view.blocks_of(region.nodes), view.blocks_of(region.preheader)
    last = _leaving(view, loop - view.blocks_of(view.traps), loop)
    guards = _leaving(view, preheader, loop | preheader)
    if len(last) != 1:
        return False
    return _even(view, region, last[0], in_loop=True) and all(
        _even(view, region, g, in_loop=False) for g in guards
    )


def _leaving(view: View, blocks: frozenset[int], inside: frozenset[int]) -> list[int]:
    """The last statements of ``blocks`` from which lanes may leave ``inside``."""
    inside |= view.blocks_of(view.traps)
    return [
        view.cfg.blocks[block].stop - 1
        for block in sorted(blocks)
        if any(target not in inside for target in view.cfg.successors[block]) or block in view.cfg.exits
    ]


def _even(view: View, region: Region, branch: int, *, in_loop: bool) -> bool:
    """Whether a branch tests a uniform value, or compares an index affine in the thread with a uniform bound;
    ``in_loop``, the index must advance by the size of a block or the grid.
    """
    statement = view.body[branch]
    if not isinstance(statement, Instruction) or statement.guard is None:
        return False
    for test in view.reaching.reaching(branch, statement.guard.register.name):
        varying = [] if test == ENTRY else _varying_reads(view, test)
        walk = _IndexOrigin(view, region)
        if test == ENTRY or len(varying) > 1:
            return False
        if varying and not (walk.affine(test, varying[0]) and (walk.stride or not in_loop)):
            return False
    return True


def _varying_reads(view: View, index: int) -> list[str]:
    names = sorted(effects.needs(view.body[index]))
    return [name for name in names if not view.uniformity.is_uniform_use(index, name)]


class _IndexOrigin:
    """Follows an index back to its start; ``stride`` says whether the loop adds a block's or the grid's size to it."""

    def __init__(self, view: View, region: Region) -> None:
        self.view = view
        self.loop = view.blocks_of(region.nodes)
        self.stride = False
        self._seen: set[int] = set()

    def affine(self, use: int, register: str) -> bool:
        """Whether sums and uniform multiples of special registers make up the register's value at ``use``."""
        work = list(self.view.reaching.reaching(use, register))
        while work:
            definition = work.pop()
            if definition == ENTRY:
                return False
            if definition in self._seen:
                continue
            self._seen.add(definition)
            statement = self.view.body[definition]
            assert isinstance(statement, Instruction)
            if not isa.facts(statement).linear:
                return False
            if self.view.cfg.block_of(definition) in self.loop:
                self.stride = self.stride or self._has_stride(definition)
            for name in _varying_reads(self.view, definition):
                work += self.view.reaching.reaching(definition, name)
        return True

    def _has_stride(self, index: int) -> bool:
        """Whether a uniform operand is computed from the size of a block or of the grid."""
        reached = {index}
        front = reached
        for _ in range(_DEEPEST + 1):
            specials = (effects.special_registers(self.view.body[i]) for i in front)
            if any(name.startswith(_STRIDES) for names in specials for name in names):
                return True
            front = {d for i in front for d in self._uniform_sources(i)} - reached
            reached = reached | front
        return False

    def _uniform_sources(self, index: int) -> set[int]:
        """The definitions of the uniform registers that a statement reads."""
        uniform = effects.needs(self.view.body[index]) - set(_varying_reads(self.view, index))
        return {d for name in uniform for d in self.view.reaching.reaching(index, name) if d != ENTRY}
