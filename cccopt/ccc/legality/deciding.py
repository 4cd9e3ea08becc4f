"""The statements on which a decision depends, by data and control: a backward slice (M. Weiser, TSE 10(4), 1984)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View


def deciding(
    view: View,
    branches: Iterable[int],
    inside: Collection[int],
    further: Callable[[int], Iterable[int]] = lambda index: (),
) -> frozenset[int]:
    """The statements ``inside`` on which the ends of the blocks ``branches`` depend. ``further`` gives more statements
    on which one of them depends, such as stores of what it loads.
    """
    dependence = view.control_dependence
    found: set[int] = set()
    work = [view.cfg.blocks[b].stop - 1 for b in branches]
    while work:
        index = work.pop()
        if index in found or index not in inside:
            continue
        found.add(index)
        for name in effects.needs(view.body[index]):
            work += view.reaching.reaching(index, name) - {ENTRY}
        work += [view.cfg.blocks[b].stop - 1 for b in dependence[view.cfg.block_of(index)]]
        work += further(index)
    return frozenset(found)
