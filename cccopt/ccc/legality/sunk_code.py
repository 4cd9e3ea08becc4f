"""Values that a path writes and the code behind it reads (DESIGN 4.2).

The path may run later and in another lane, so such a value breaks the deal, unless

* the lane can compute it again by itself, cheaply, from what the path was given (nvcc merges a load that the path and
  the code behind it share), or
* all that reads it can run with the task: the *tail*, straight code behind the join that nothing else depends on

        if (v > 0.5f) r = f(v);         the store reads r: tasks run `r = f(v); out[i] = r`,
        out[i] = r;                     lanes that skipped the path run `out[i] = r` themselves

A branch may stand in the tail if all that it leads past moves along (`cccopt.ccc.regions.hammocks`). Each side effect
happens exactly once: lanes whose tasks run the tail leave it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.liveness import upward_exposed
from cccopt.ccc.function.graph import Jump, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.counted_loops import counted_loop, may_expand
from cccopt.ccc.legality.exclusive import exclusive_paths
from cccopt.ccc.legality.reductions import Reduction, Reductions, loop_sums, reductions
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.hammocks import Hammock, hammock_at
from cccopt.ccc.regions.marked_loops import Path, Region, forward
from cccopt.ccc.regions.values import definitions_at_end, live_outs
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control, Memory

CHEAP = 4.0
"""Issue slots up to which a lane rather computes a value again than moving its reader."""

DEAR = 32.0
"""Issue slots up to which it does so where the reader cannot be moved."""


@dataclass(frozen=True, slots=True)
class Tails:
    """What becomes of the values that are read behind one path, as statement indices in the order to run them.

    ``moved`` run with the task, of them ``skipped`` no longer with the lane that made it, and ``dropped`` in no lane:
    whoever comes there has a task that runs them. ``recomputed`` run again in that lane and write the registers
    ``kept``. The statements of ``hammocks`` are among those that moved, behind their branch. ``reductions`` are those
    that the path or its tail updates, ``sums`` those of an expanded loop's own trips: each lane has its own behind it.
    """

    moved: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    dropped: frozenset[int] = frozenset()
    recomputed: tuple[int, ...] = ()
    kept: frozenset[str] = frozenset()
    hammocks: tuple[Hammock, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    sums: tuple[Reduction, ...] = ()


def tails(view: View, region: Region, *, expand: bool = True) -> Mapping[str, Tails]:
    """For each path of the region, by its first node, what happens to its live-outs. Raises Refusal.

    ``expand`` allows to expand counted loops.
    """
    found: dict[str, Tails] = {}
    sums = reductions(view, region)
    for path in region.paths:
        _visit(view, region, path, region.nodes, sums, found, expand)
    _check_named(region, found.values())
    for group in exclusive_paths(view, region, found):
        found.update(_of_all(view, region, group, found))
    return found


def _of_all(
    view: View, region: Region, group: Sequence[Path], found: Mapping[str, Tails]
) -> Mapping[str, Tails]:
    """The tails of exclusive paths, where tasks of all run what tasks of some do: also a path that leaves a value alone
    (`case 0: moved = p;`) has a reader of it there. Code that all ways lead to through these paths is then dropped.
    """
    tails = {path.begin: found[path.begin] for path in group}
    if any(tail.hammocks or tail.reductions for tail in tails.values()):
        return {}
    readers = frozenset(index for tail in tails.values() for index in tail.skipped)
    chain, _ = _behind(view, region, group[0], region.nodes)
    order = {index: place for place, index in enumerate(chain)}
    for path in group:
        if readers and not tails[path.begin].moved:
            helpers: set[int] = set()
            own = {(index, name) for index in readers for name in effects.writes(view.body[index])}
            try:
                for index in sorted(readers):
                    _operands(view, path, index, own, chain, helpers, Reductions())
            except Refusal:
                continue  # its lanes run the tail themselves
            moved = tuple(sorted(readers | helpers, key=order.__getitem__))
            skipped = tuple(sorted(readers, key=order.__getitem__))
            tails[path.begin] = replace(tails[path.begin], moved=moved, skipped=skipped)
    inside = frozenset(name for path in group for name in path.nodes)
    end = group[0].end
    ways = (
        n for n in region.nodes - inside for t in targets(view.graph.nodes[n].end) if forward(view, t) == end
    )
    if any(forward(view, name) != end for name in ways):
        return tails
    block = view.block_of_name[end]
    alone = all(view.dominators.dominates(block, view.cfg.block_of(i)) for i in readers)
    # Lanes that agree run the tail whole or not at all.
    if not alone or any(readers.difference(tail.skipped) for tail in tails.values()):
        return tails
    return {begin: replace(tail, dropped=readers) for begin, tail in tails.items()}


def _check_named(region: Region, found: Collection[Tails]) -> None:
    """The clause names a variable for each reduction that tasks update."""
    used = dict.fromkeys(
        r for tails in found for r in (*tails.reductions, *(s for s in tails.sums if s.operator.floating))
    )
    for sign, updated in Counter(r.operator.sign for r in used).items():
        named = [variable for other, variable in region.annotation.reductions if other == sign]
        if updated > len(named):
            raise refuse(refusal.REDUCTIONS, region.annotation.place, updated, sign, len(named))


def _visit(
    view: View,
    region: Region,
    path: Path,
    around: frozenset[str],
    sums: Reductions,
    found: dict[str, Tails],
    expand: bool,
) -> None:
    found[path.begin] = _tails(view, region, path, around, sums, expand)
    for child in path.children:
        _visit(view, region, child, path.nodes, sums, found, expand)


def _tails(
    view: View, region: Region, path: Path, around: frozenset[str], sums: Reductions, expand: bool
) -> Tails:
    own = sums.of(view, path)
    outs = live_outs(view, path) - {r.register for r in own}
    if not outs:
        return Tails(reductions=own)
    if expand and not own and may_expand(path):
        found = loop_sums(view, region, path, outs)
        if found and counted_loop(view, path, outs, lambda _: False) is not None:
            return Tails(sums=found)
    inside = set(view.statements(path.nodes))
    carried = _carried(view, path, outs, inside)
    if carried is not None:
        raise _carries(region, path, carried, sums)
    tail = _read_behind(view, region, path, outs, inside, around, sums)
    moved = (sums.updating(index) for index in tail.moved)
    return replace(tail, reductions=tuple(dict.fromkeys((*own, *(r for r in moved if r is not None)))))


def _carries(region: Region, path: Path, name: str, sums: Reductions) -> Refusal:
    """The refusal for a register whose value from one run of a path is read in a later one."""
    reason = sums.reasons.get(name)
    if not region.annotation.reductions:
        return refuse(refusal.CARRIED, path.annotation.place, name)
    why = refusal.CARRIED.why + f"; it is no reduction: {reason or 'the path does not only update it'}"
    return refuse(refusal.CARRIED, path.annotation.place, name, why=why)


def _read_behind(
    view: View,
    region: Region,
    path: Path,
    outs: frozenset[str],
    inside: set[int],
    around: frozenset[str],
    sums: Reductions,
) -> Tails:
    """What becomes of the registers ``outs``, which a path writes and code behind it reads."""
    slices = {name: _slice(view, path, name, inside) for name in sorted(outs)}
    kept, recomputed = _again(view, slices, CHEAP)
    if outs <= kept:
        return Tails(recomputed=recomputed, kept=kept)
    if kept:
        # With a tail anyway, what reads the cheap ones can be part of it.
        with suppress(Refusal):
            return _tail(view, region, path, outs, inside, around, sums)
    try:
        tail = _tail(view, region, path, outs - kept, inside, around, sums)
    except Refusal:
        kept, recomputed = _again(view, slices, DEAR)
        if not outs <= kept:
            raise
        return Tails(recomputed=recomputed, kept=kept)
    return replace(tail, recomputed=recomputed, kept=kept)


def _again(
    view: View, slices: Mapping[str, tuple[int, ...] | None], most: float
) -> tuple[frozenset[str], tuple[int, ...]]:
    """The registers that a lane computes again for at most so many issue slots each, and the statements that do it."""
    chosen = {name: s for name, s in slices.items() if s is not None and _cost(view, s) <= most}
    rank = {block: place for place, block in enumerate(view.cfg.reverse_postorder)}
    found = {index for s in chosen.values() for index in s}
    ordered = tuple(sorted(found, key=lambda index: (rank[view.cfg.block_of(index)], index)))
    written = [name for index in ordered for name in effects.writes(view.body[index])]
    return (frozenset(chosen), ordered) if len(written) == len(set(written)) else (frozenset(), ())


def _carried(view: View, path: Path, outs: frozenset[str], inside: set[int]) -> str | None:
    """A register whose value from one run of the path is read in a later run."""
    begin = view.cfg.blocks[view.block_of_name[path.begin]].start
    blocks = view.blocks_of(path.nodes)
    stops = [block.start for block in view.cfg.blocks if block.index not in blocks]
    exposed = upward_exposed(view.cfg, view.body, begin, stops)
    if path.is_loop:
        # Inside a task the loop carries its values on; only those from an earlier task count.
        entering = [b for b in view.cfg.predecessors[view.block_of_name[path.begin]] if b not in blocks]
        return next(
            (
                n
                for n in sorted(outs & exposed)
                if any(view.reaching.reaching_end(b, n) & inside for b in entering)
            ),
            None,
        )
    return next((n for n in sorted(outs & exposed) if view.reaching.reaching(begin, n) & inside), None)


def _slice(view: View, path: Path, name: str, inside: set[int]) -> tuple[int, ...] | None:
    """The statements of the path that compute ``name`` from the path's live-ins, if they always run and are pure."""
    found: set[int] = set()
    ends = view.ends(path.nodes)
    work = [definitions_at_end(view, path, name)]
    while work:
        definitions = work.pop()
        if not definitions & inside:
            continue
        # A single definition dominates its uses, so there are no cycles.
        if len(definitions) != 1:
            return None
        (index,) = definitions
        if index in found:
            continue
        statement = view.body[index]
        if not isinstance(statement, Instruction) or not _repeatable(view, statement):
            return None
        if not all(view.dominators.dominates(view.cfg.block_of(index), end) for end in ends):
            return None
        found.add(index)
        work += [view.reaching.reaching(index, needed) for needed in effects.needs(statement)]
    return tuple(sorted(found))


def _repeatable(view: View, instruction: Instruction) -> bool:
    """Whether running it twice gives the same result: pure, or a load of what nobody writes."""
    facts = isa.facts(instruction)
    if not facts.known or facts.control is not Control.NEXT or isa.is_conditional_write(instruction):
        return False
    constant = facts.memory is Memory.LOAD and reads_unchanging_memory(instruction, view.function)
    return facts.pure or constant


def _cost(view: View, indices: tuple[int, ...]) -> float:
    return sum(isa.facts(s).slots for i in indices if isinstance(s := view.body[i], Instruction))


def _tail(
    view: View,
    region: Region,
    path: Path,
    outs: frozenset[str],
    inside: set[int],
    around: frozenset[str],
    sums: Reductions,
) -> Tails:
    """The statements that run with the task, and those of them that its lane then leaves out."""
    chain, hammocks = _behind(view, region, path, around)
    home = {i: h for h in hammocks for i in (h.branch, *h.statements)}
    order = {index: place for place, index in enumerate(chain)}
    tainted = {(d, name) for name in outs for d in definitions_at_end(view, path, name) & inside}
    readers: set[int] = set()
    work = True
    while work:
        work = False
        for index, statement in enumerate(view.body):
            if index in inside or index in readers or not isinstance(statement, Instruction):
                continue
            read = next(
                (n for n in sorted(effects.needs(statement)) if _reached(view, index, n, tainted)), None
            )
            if read is None:
                continue
            if index not in order:
                raise _live_out(view, path, read)
            found = (index,) if index not in home else (home[index].branch, *home[index].statements)
            for moving in found:
                _check_movable(view, region, path, moving, read, sums, hammock=index in home)
                if sums.updating(moving) is None:
                    tainted |= {(moving, name) for name in effects.writes(view.body[moving])}
            readers |= set(found)
            work = True
    _check_updates(view, region, path, inside, readers, tainted, sums)
    helpers: set[int] = set()
    # A task has whatever its path writes, also what the lane computes again for itself.
    own = tainted | {
        (d, n) for n in live_outs(view, path) for d in definitions_at_end(view, path, n) & inside
    }
    straight = [index for index in chain if index not in home]
    for index in sorted(readers):
        _operands(view, path, index, own, straight, helpers, sums)
        if index in home:
            _check_inside(view, path, index, set(home[index].statements))
    return Tails(
        tuple(sorted(readers | helpers, key=order.__getitem__)),
        tuple(sorted(readers, key=order.__getitem__)),
        hammocks=tuple(h for h in hammocks if h.branch in readers),
    )


def _check_movable(
    view: View, region: Region, path: Path, index: int, read: str, sums: Reductions, *, hammock: bool
) -> None:
    statement = view.body[index]
    if not isinstance(statement, Instruction) or not _movable(statement, hammock):
        raise _live_out(view, path, read)
    if sums.updating(index) is not None:
        if hammock or not sums.movable(view, index):
            raise _live_out(view, path, read)
        return
    carried = (n for n in sorted(effects.writes(statement)) if _next_trip(view, region, path, index, n))
    name = next(carried, None)
    if name is not None:
        raise _carries(region, path, name, sums)


def _check_updates(
    view: View,
    region: Region,
    path: Path,
    inside: set[int],
    moved: Collection[int],
    tainted: set[tuple[int, str]],
    sums: Reductions,
) -> None:
    """Moved updates go on with the part of a reduction that tasks keep in one register."""
    end = view.block_of_name[path.end]
    own = sums.of(view, path)
    for index in sorted(moved):
        r = sums.updating(index)
        if r is None:
            continue
        updated = r.updates[index][1]
        # Of what the path itself adds to another register that part knows nothing, and tasks of a path around that keep
        # the value in another one would overwrite what is added to it.
        elsewhere = r not in own and not inside.isdisjoint(r.updates)
        if elsewhere or _reached(view, index, updated, tainted) or r.live(view, end) != {r.register}:
            raise _carries(region, path, updated, sums)


def _check_inside(view: View, path: Path, index: int, own: set[int]) -> None:
    """What a statement of a hammock reads comes either from the hammock or from outside, whatever way was taken."""
    for name in sorted(effects.needs(view.body[index])):
        definitions = view.reaching.reaching(index, name)
        if definitions & own and not definitions <= own:
            raise _live_out(view, path, name)


def _behind(
    view: View, region: Region, path: Path, around: frozenset[str]
) -> tuple[list[int], list[Hammock]]:
    """The statements that run next behind the path, in order, up to the first branch that is no hammock's, and the
    hammocks among them.
    """
    begins = {p.begin for p in region.all_paths()}
    found: list[int] = []
    hammocks: list[Hammock] = []
    name = path.end
    seen: set[str] = set()
    while name in around and name not in begins | seen | {region.header}:
        seen.add(name)
        found += view.statements([name])
        end = view.graph.nodes[name].end
        if isinstance(end, Jump):
            name = forward(view, end.target)
            continue
        hammock = hammock_at(view, region, name, around - begins)
        if hammock is None:
            break
        hammocks.append(hammock)
        found += hammock.statements
        name = hammock.join
    return found, hammocks


def _reached(view: View, index: int, name: str, tainted: Collection[tuple[int, str]]) -> bool:
    return any((d, name) in tainted for d in view.reaching.reaching(index, name))


def _next_trip(view: View, region: Region, path: Path, index: int, name: str) -> bool:
    """Whether a later trip of a loop around the path may read what statement ``index`` writes to ``name``."""
    for begin, nodes in region.loops_around(path).items():
        header = view.block_of_name[begin]
        latches = [b for b in view.cfg.predecessors[header] if view.name(b) in nodes]
        carried = (index in view.reaching.reaching_end(latch, name) for latch in latches)
        if name in view.liveness.live_in[header] and any(carried):
            return True
    return False


def _movable(instruction: Instruction, hammock: bool) -> bool:
    facts = isa.facts(instruction)
    flows = facts.control is Control.NEXT and instruction.guard is None
    # A hammock moves as a whole.
    flows = flows or (hammock and facts.control in (Control.NEXT, Control.BRANCH))
    plain = facts.known and flows
    # Parameters of a call are worth nothing without the call.
    plain = plain and facts.space != "param"
    return plain and not (facts.synchronises or facts.convergent or facts.volatile)


def _operands(
    view: View,
    path: Path,
    index: int,
    own: set[tuple[int, str]],
    chain: list[int],
    helpers: set[int],
    sums: Reductions,
) -> None:
    """Adds to ``helpers`` the pure statements behind the path that a moved statement needs as well."""
    begin = view.cfg.blocks[view.block_of_name[path.begin]].start
    straight = set(chain)
    updated = sums.updating(index)
    # Of a reduction a task has a part of its own.
    accumulator = "" if updated is None else updated.updates[index][1]
    work = [(use, name) for use, name in _needed(view, index) if name != accumulator]
    while work:
        use, name = work.pop()
        definitions = view.reaching.reaching(use, name)
        if not definitions & straight:
            # On the way through this path, whatever others write.
            definitions = definitions_at_end(view, path, name)
        if _reached(view, use, name, own) or definitions == view.reaching.reaching(begin, name):
            continue
        if len(definitions) != 1:
            raise _live_out(view, path, name)
        (definition,) = definitions
        statement = view.body[definition] if definition >= 0 else None
        if (
            definition not in chain
            or not isinstance(statement, Instruction)
            or not _repeatable(view, statement)
        ):
            raise _live_out(view, path, name)
        if definition not in helpers:
            helpers.add(definition)
            work += _needed(view, definition)


def _needed(view: View, index: int) -> list[tuple[int, str]]:
    """What a statement reads, as a stack that gives the first name first."""
    return [(index, name) for name in sorted(effects.needs(view.body[index]), reverse=True)]


def _live_out(view: View, path: Path, name: str) -> Refusal:
    return refuse(
        refusal.LIVE_OUT,
        path.annotation.place,
        name,
        help="move its use into the path; a value that the path only reads again (a loop bound, say) is best read into"
        " a local ahead of it",
    )
