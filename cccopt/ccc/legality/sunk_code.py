"""Values that a path writes and the code after it reads (DESIGN 4.2).

The path may run later and in another lane. Such a value is refused unless

* the lane can recompute it cheaply from what the path was given (`cccopt.ccc.legality.recomputation`), or
* all that reads it can *sink* into the task: straight-line code after the join on which nothing else depends
  (`cccopt.ccc.legality.continuation`)

        if (v > 0.5f) r = f(v);         the store reads r: tasks run `r = f(v); out[i] = r`,
        out[i] = r;                     lanes that skipped the path run `out[i] = r` themselves

Each side effect happens exactly once: lanes whose tasks run the sunk code skip it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.liveness import upward_exposed
from cccopt.ccc.function.graph import targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.continuation import Continuation
from cccopt.ccc.legality.counted_loops import counted_loop, may_expand
from cccopt.ccc.legality.exclusive import exclusive_paths
from cccopt.ccc.legality.recomputation import Recomputation, recomputation
from cccopt.ccc.legality.reductions import Reduction, Reductions, loop_sums, named_for, no_reduction
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.hammocks import Hammock
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path, forward
from cccopt.ccc.regions.values import live_outs

CHEAP = 4.0
"""Up to this many issue slots, a lane recomputes a value rather than having its reader moved."""

DEAR = 32.0
"""Up to this many issue slots, a lane recomputes a value if its reader cannot be moved."""


@dataclass(frozen=True, slots=True)
class SunkCode:
    """What becomes of the values that are read after one path, as statement indices in the order to run them.

    Statements in ``moved`` run with the task. Of these, those in ``skipped`` no longer run in the lane that made the
    task, and no lane itself runs those in ``dropped``: each lane that gets there has a task that runs them. Those in
    ``recomputed`` run again in the lane that made the task and write the registers ``kept``. The statements of
    ``hammocks`` are among those in ``moved``, after their branch. ``reductions`` are those that the path or its sunk
    code updates, ``sums`` those of the iterations of an expanded loop: each lane has its own after it.
    """

    moved: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    dropped: frozenset[int] = frozenset()
    recomputed: tuple[int, ...] = ()
    kept: frozenset[str] = frozenset()
    hammocks: tuple[Hammock, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    sums: tuple[Reduction, ...] = ()


def sunk_code(view: View, region: Region, reductions: Reductions, *, expand: bool) -> Mapping[str, SunkCode]:
    """What happens to the live-outs of each path of the region, by its first node. Raises Refusal if that is unsound.

    ``expand`` allows counted loops to be expanded.
    """
    found = {
        path.begin: _of_path(Continuation(view, region, path, around, reductions), expand)
        for path, around in _with_surroundings(region.paths, region.nodes)
    }
    _check_named(region, found.values())
    for group in exclusive_paths(view, region, found):
        found.update(_of_group(view, region, group, found))
    return found


def _with_surroundings(
    paths: Sequence[Path], around: frozenset[str]
) -> Iterator[tuple[Path, frozenset[str]]]:
    """Each path, outer ones first, with the nodes of what directly encloses it."""
    for path in paths:
        yield path, around
        yield from _with_surroundings(path.children, path.nodes)


def _of_path(after: Continuation, expand: bool) -> SunkCode:
    view, path, reductions = after.view, after.path, after.reductions
    own = reductions.of(view, path)
    outs = live_outs(view, path) - {r.register for r in own}
    if not outs:
        return SunkCode(reductions=own)
    if expand and not own and may_expand(path):
        found = loop_sums(view, after.region, path, outs)
        if found and counted_loop(view, path, outs, lambda _: False) is not None:
            return SunkCode(sums=found)
    carried = _carried(view, path, outs)
    if carried is not None:
        raise no_reduction(view, after.region, path, carried, reductions)
    sunk = _read_after(after, outs)
    updated = (reductions.updating(index) for index in sunk.moved)
    return replace(sunk, reductions=tuple(dict.fromkeys((*own, *(r for r in updated if r is not None)))))


def _read_after(after: Continuation, outs: frozenset[str]) -> SunkCode:
    """What becomes of the registers ``outs``, which a path writes and code after it reads."""
    again = recomputation(after.view, after.path, outs, CHEAP)
    if outs <= again.registers:
        return _with_recomputed(SunkCode(), again)
    if again.registers:
        # If code sinks anyway, what reads the cheap ones may be able to sink, too.
        with suppress(Refusal):
            return _sunk(after, outs)
    try:
        sunk = _sunk(after, outs - again.registers)
    except Refusal:
        again = recomputation(after.view, after.path, outs, DEAR)
        if not outs <= again.registers:
            raise
        sunk = SunkCode()
    return _with_recomputed(sunk, again)


def _with_recomputed(sunk: SunkCode, again: Recomputation) -> SunkCode:
    return replace(sunk, recomputed=again.statements, kept=again.registers)


def _sunk(after: Continuation, outs: frozenset[str]) -> SunkCode:
    """The statements that run with the task, and those of them that its lane then skips."""
    readers, tainted = after.readers(outs)
    helpers = after.helpers(readers, tainted)
    return SunkCode(
        tuple(sorted(readers | helpers, key=after.order.__getitem__)),
        tuple(sorted(readers, key=after.order.__getitem__)),
        hammocks=tuple(h for h in after.hammocks if h.branch in readers),
    )


def _carried(view: View, path: Path, outs: frozenset[str]) -> str | None:
    """A register whose value from one run of the path is read in a later run."""
    inside = set(view.statements(path.nodes))
    begin = view.cfg.blocks[view.block_of_name[path.begin]].start
    blocks = view.blocks_of(path.nodes)
    stops = [block.start for block in view.cfg.blocks if block.index not in blocks]
    exposed = sorted(outs & upward_exposed(view.cfg, view.body, begin, stops))
    if not path.is_loop:
        return next((n for n in exposed if view.reaching.reaching(begin, n) & inside), None)
    # Inside a task, the loop carries its own values; only those from an earlier task count.
    entering = [b for b in view.cfg.predecessors[view.block_of_name[path.begin]] if b not in blocks]
    return next(
        (n for n in exposed if any(view.reaching.reaching_end(b, n) & inside for b in entering)), None
    )


def _of_group(
    view: View, region: Region, group: Sequence[Path], found: Mapping[str, SunkCode]
) -> Mapping[str, SunkCode]:
    """The sunk code of exclusive paths: what the tasks of some run, the tasks of all run, even those of a path that
    leaves a value alone (`case 0: moved = p;`). Code that control reaches only through these paths is dropped.
    """
    sunk = {path.begin: found[path.begin] for path in group}
    if any(code.hammocks or code.reductions for code in sunk.values()):
        return {}
    readers = frozenset(index for code in sunk.values() for index in code.skipped)
    for path in group:
        if readers and not sunk[path.begin].moved:
            # If that is refused, lanes of this path run the code themselves.
            with suppress(Refusal):
                sunk[path.begin] = _also_moved(view, region, path, readers, sunk[path.begin])
    inside = frozenset(name for path in group for name in path.nodes)
    end = group[0].end
    others = (
        n for n in region.nodes - inside for t in targets(view.graph.nodes[n].end) if forward(view, t) == end
    )
    if any(forward(view, name) != end for name in others):
        return sunk
    block = view.block_of_name[end]
    alone = all(view.dominators.dominates(block, view.cfg.block_of(i)) for i in readers)
    # Code can be dropped only if the tasks of all these paths run all of it.
    if not alone or any(readers.difference(code.skipped) for code in sunk.values()):
        return sunk
    return {begin: replace(code, dropped=readers) for begin, code in sunk.items()}


def _also_moved(view: View, region: Region, path: Path, readers: frozenset[int], sunk: SunkCode) -> SunkCode:
    """The sunk code of a path if its tasks also run ``readers``, which read none of its values. Raises Refusal if they
    cannot.
    """
    after = Continuation(view, region, path, region.nodes, Reductions())
    own = {(index, name) for index in readers for name in effects.writes(view.body[index])}
    helpers = set[int]()
    for index in sorted(readers):
        helpers |= after.operands(index, own, after.statements, Reductions())
    moved = tuple(sorted(readers | helpers, key=after.order.__getitem__))
    return replace(sunk, moved=moved, skipped=tuple(sorted(readers, key=after.order.__getitem__)))


def _check_named(region: Region, found: Collection[SunkCode]) -> None:
    """Check that the clause names a variable for each reduction that tasks update."""
    used = dict.fromkeys(
        r for code in found for r in (*code.reductions, *(s for s in code.sums if s.operator.floating))
    )
    for sign, updated in Counter(r.operator.sign for r in used).items():
        named = len(named_for(region, sign))
        if updated > named:
            raise refuse(refusal.REDUCTIONS, region.annotation.place, updated, sign, named)
