"""Where lanes that a varying branch separates reconverge, and which registers may differ then.

Lanes that a branch sends different ways wait for one another at its immediate post-dominator. A register that is
uniform on each path may differ for two reasons. *Joins*: at a block that more than one successor of the branch
reaches, the registers that the paths between write differ. *Cycles*: if lanes can return to the branch while others
wait, they leave the cycle in different iterations, so after it all registers that the cycle writes differ.

        block 0: @%p1 bra 2          branch 0 mixes, at block 2, what block 1 writes: {%r1}
        block 1: mov.u32 %r1, 1
        block 2: add.s32 %r2, %r2, 1
                 @%p2 bra 2          branch 2 mixes, at block 3, what its loop writes: {%r2}
        block 3: ret

Rosemann, Moll, Hack, "An abstract interpretation for SPMD divergence on reducible control flow graphs", POPL
2021 (disjoint paths and temporal divergence; here over-approximated by reachability, which also serves
irreducible graphs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from operator import or_

from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.analysis.dominance import total_post_dominators


@dataclass(frozen=True)
class Mixing:
    """The reconvergence points of a function's lanes."""

    cfg: ControlFlowGraph
    written: Sequence[int]
    """The registers that each block writes, as bit sets."""

    def mixed_by(self, branch: int) -> list[tuple[int, int]]:
        """Pairs of a block and the registers, as a bit set, that vary at its start if ``branch`` varies."""
        stop = self._post_dominators[branch]
        sides = [self._reach([target], {branch, stop}) for target in self.cfg.successors[branch]]
        reached = set().union(*sides)
        joined = {b for b, times in Counter(chain(*sides)).items() if times > 1} - {branch}
        found = []
        if joined:
            written = self._written_on_the_way(reached - {branch, stop})
            found = [(block, written(block)) for block in joined]
        cycle = self._cycle(branch, stop, reached)
        leaving = {target for block in cycle for target in self.cfg.successors[block]} - cycle
        return found + [(block, self._written_in(cycle)) for block in leaving]

    @cached_property
    def _post_dominators(self) -> Mapping[int, int | None]:
        return total_post_dominators(self.cfg).immediate

    def _cycle(self, branch: int, stop: int | None, reached: set[int]) -> set[int]:
        """The blocks ``reached`` from ``branch`` that are on a cycle through it and where lanes may be while others
        wait at ``stop``.
        """
        return reached & (self._reaching(branch, reached - {stop}) | {branch}) if branch in reached else set()

    def _reach(self, starts: Iterable[int], stops: Collection[int | None]) -> set[int]:
        """The blocks that ``starts`` reach on paths that end at ``stops`` (which are included)."""
        successors = self.cfg.successors
        found = set(starts)
        work = [block for block in found if block not in stops]
        while work:
            for target in successors[work.pop()]:
                if target not in found:
                    found.add(target)
                    if target not in stops:
                        work.append(target)
        return found

    def _reaching(self, block: int, within: Collection[int]) -> set[int]:
        """The blocks among ``within`` that have a path to ``block`` through ``within``."""
        found: set[int] = set()
        work = [source for source in self.cfg.predecessors[block] if source in within]
        while work:
            source = work.pop()
            if source not in found:
                found.add(source)
                work += [s for s in self.cfg.predecessors[source] if s in within]
        return found

    def _written_on_the_way(self, within: Collection[int]) -> Callable[[int], int]:
        """A function from a block to the registers that blocks ``within`` may write on paths through them to it."""
        order = sorted(within, key=self._rank.__getitem__)
        before = dict.fromkeys(order, 0)
        predecessors, written = self.cfg.predecessors, self.written

        def of(block: int) -> int:
            found = 0
            for source in predecessors[block]:  # runs hundreds of thousands of times: no generator
                if source in before:
                    found |= before[source] | written[source]
            return found

        changed = True
        while changed:
            changed = False
            for block in order:
                now = of(block)
                if now != before[block]:
                    before[block] = now
                    # All its other successors come later in this round.
                    changed |= block in self._retreating
        return of

    @cached_property
    def _rank(self) -> Mapping[int, int]:
        return {block: rank for rank, block in enumerate(self.cfg.reverse_postorder)}

    @cached_property
    def _retreating(self) -> frozenset[int]:
        """The blocks with a successor that does not come after them in `_rank`."""
        edges = ((a, b) for a in self.cfg.reverse_postorder for b in self.cfg.successors[a])
        return frozenset(a for a, b in edges if self._rank[b] <= self._rank[a])

    def _written_in(self, blocks: Iterable[int]) -> int:
        return reduce(or_, (self.written[block] for block in blocks), 0)
