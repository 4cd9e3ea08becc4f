"""Which registers may be written between two statements of one iteration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from cccopt.analysis import effects
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path


class WritesBetween:
    """Finds writes in the iterations of a marked loop; those of loops around ``path`` count as iterations, too."""

    def __init__(self, view: View, region: Region, path: Path) -> None:
        self.view = view
        self.region = region
        self.path = path
        self._between: dict[tuple[int, int], set[int]] = {}
        self._names: dict[int, set[str]] = {}

    def may_write(self, name: str, statement: int, begin: int) -> bool:
        """Whether the register may be written at or after ``statement`` and before ``begin``, within one iteration."""
        if statement == begin:
            return False
        block = self.view.cfg.block_of(statement)
        own = range(statement, self.view.cfg.blocks[block].stop)
        return any(name in effects.writes(self.view.body[i]) for i in own) or any(
            name in self._written_in(b) for b in self._blocks(block, self.view.cfg.block_of(begin))
        )

    def written_since(self, statement: int, definitions: Collection[int], begin: int) -> set[str]:
        """The registers that may be written after ``statement`` and before the next time that control reaches
        ``begin``, on paths that pass none of ``definitions``, which include it.
        """
        cfg = self.view.cfg
        block, end = cfg.block_of(statement), cfg.block_of(begin)
        rest = range(statement + 1, cfg.blocks[block].stop)
        stops = {end, *map(cfg.block_of, definitions)}
        free = self.view.blocks_of(self.region.nodes) - stops
        onward = {b: cfg.successors[b] for b in {block, *free}}
        back = {b: cfg.predecessors[b] for b in {end, *free}}
        between = _reached(onward, block) & _reached(back, end) & free
        found: set[str] = set()
        found.update(*(effects.writes(self.view.body[i]) for i in rest))
        return found.union(*map(self._written_in, between))

    def _written_in(self, block: int) -> set[str]:
        if block not in self._names:
            writes = (effects.writes(self.view.body[i]) for i in self.view.cfg.blocks[block].statements())
            self._names[block] = set().union(*writes)
        return self._names[block]

    def _blocks(self, block: int, end: int) -> set[int]:
        """The blocks between ``block`` and ``end`` within one iteration, without ``block`` unless it is in an inner
        cycle.
        """
        if (block, end) not in self._between:
            onward, back = self._iteration
            self._between[block, end] = (_reached(onward, block) & _reached(back, end)) - {end}
        return self._between[block, end]

    @cached_property
    def _iteration(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """For each block of the loop, its successors and its predecessors within one iteration."""
        inside = self.view.blocks_of(self.region.nodes)
        around = self.region.loops_around(self.path)
        again = {
            (source, self.view.block_of_name[header])
            for header, nodes in around.items()
            for source in self.view.blocks_of(nodes)
        }
        onward = {
            b: [t for t in self.view.cfg.successors[b] if t in inside and (b, t) not in again] for b in inside
        }
        back: dict[int, list[int]] = {b: [] for b in inside}
        for block, following in onward.items():
            for target in following:
                back[target].append(block)
        return onward, back


def _reached(step: Mapping[int, Sequence[int]], block: int) -> set[int]:
    """The blocks that one or more steps from ``block`` lead to."""
    found: set[int] = set()
    work = list(step.get(block, ()))
    while work:
        target = work.pop()
        if target not in found:
            found.add(target)
            work += step.get(target, ())
    return found
