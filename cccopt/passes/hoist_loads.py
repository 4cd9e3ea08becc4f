"""Coalesced loads at the head of an `if` path are moved before it, and their values wait on the stack (DESIGN 4.1).

        @%p2 bra JOIN;                          @%p2 bra JOIN;
        // ccc if.begin 2                       mul.wide.s32 %rd5, %r5, 4;
        mul.wide.s32 %rd5, %r5, 4;              add.s64 %rd6, %rd1, %rd5;
        add.s64 %rd6, %rd1, %rd5;       ->      ld.global.u32 %r6, [%rd6];
        sqrt.rn.f32 %f2, %f1;                   // ccc if.begin 2
        ld.global.u32 %r6, [%rd6];              sqrt.rn.f32 %f2, %f1;

The lanes of a warp read adjacent elements; those that run its tasks may not: F. Khorasani 2016, 4.1.3 and figure 4.9.
Code moved before the marker is run by the lane itself, before it votes; the context of the path is chosen from what is
live after the marker.

Loads whose address has the size of the access as its stride across lanes are moved, with the pure instructions that
they need. They and all that they pass are straight-line code of the path's first block: no store, atomic, barrier,
call, volatile or ordered access, and no other marker. A lane that takes the path then loads in each iteration what a
full warp would have loaded at once, and the value takes room on the stack. So loads move only

* if the context does not grow: the value waits instead of its address or index,
* or if it grows by at most `MOST_GROWTH` bytes, and what is loaded with one address register takes no more than
  that (`row[v]` and `row[v + 1]` are one access to memory, and two words on the stack).

All such loads move if that holds for them together; else address registers are tried one by one, the first `MOST_TRIED`
of them. ``hoist`` moves all loads, whatever their addresses and the context, ``nohoist`` none; loops of tasks keep
theirs.

Safety: EXACT. Declines without a remark. If ``hoist`` forces a move after which collect-contexts can no longer rewrite
the path, the path is not rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.affine import LaneStrides, access_size
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.plan.compression import HOISTED
from cccopt.ccc.plan.planning import legal_plan
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.ccc.regions.paths import Path
from cccopt.passes.options import Options
from cccopt.passes.result import PassResult
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Function, Instruction, Item, Location, Marker, Module, Statement
from cccopt.ptx.isa import Control, Memory

MOST_GROWTH = 4
"""The bytes by which a context may grow for loads that move: one word, as in figure 4.9."""

MOST_TRIED = 16
"""The most address registers of a head that are tried one by one: each trial analyzes the whole function again."""


@dataclass(frozen=True, slots=True)
class Head:
    """The statements after a path's begin marker, the ``position``-th of its function; of these, ``loads`` may move."""

    position: int
    marker: Marker
    window: tuple[Statement, ...]
    loads: tuple[int, ...]


Moves = tuple[tuple[Head, tuple[int, ...]], ...]
"""Heads of one marked loop, and the loads of each that move."""

Contexts = Mapping[int, int]
"""The context bytes of paths, by the position of their heads; paths that cannot be collected are not in it."""

Trials = Generator[Moves, Contexts | None, Moves]


def run(module: Module, options: Options) -> PassResult:
    """Move loads before the paths of all marked functions; EXACT."""
    items: list[Item] = []
    for item in module.items:
        own = options.of(item.name) if isinstance(item, Function) else options
        if isinstance(item, Function) and own.mode != Mode.OFF and any(_heads(item)):
            item = _hoisted(module, item, own)
        items.append(item)
    return PassResult(Module(tuple(items)))


def _hoisted(module: Module, function: Function, options: Options) -> Function:
    view = view_of(module, function)
    try:
        paths = _paths(view)
    except Refusal:
        return function  # collect-contexts reports it
    strides = view.lane_strides
    indices = {id(statement): index for index, statement in enumerate(view.body)}
    heads: dict[str, list[tuple[Head, bool]]] = {}
    for head in _heads(function):
        if head.position not in paths:
            continue
        region, path = paths[head.position]
        asked = path.annotation.hoist
        if asked is False:
            continue
        first = indices[id(head.marker)] + 1
        wanted = [p for p in head.loads if asked or _is_coalesced(strides, first + p)]
        loads = tuple(p for p in wanted if _needed(head.window, [p], wanted) is not None)
        if loads:
            heads.setdefault(region.header, []).append((replace(head, loads=loads), asked is True))
    return _tried(module, function, options, [_trials(found) for found in heads.values()])


def _tried(module: Module, function: Function, options: Options, trials: Sequence[Trials]) -> Function:
    """The function with the moves that the trials end with. Marked loops are independent of each other, so one view of
    the function serves a trial of each.
    """
    going = dict(enumerate(trials))
    moves: dict[int, Moves] = {}
    contexts: Contexts | None = None
    while going:
        for key, trial in tuple(going.items()):
            try:
                moves[key] = trial.send(contexts)
            except StopIteration as end:
                moves[key] = end.value
                del going[key]
        changed = _all_moved(function, moves.values())
        if going:
            contexts = _contexts(
                module, changed, options, {h.position for key in going for h, _ in moves[key]}
            )
    return changed if moves else function


def _is_coalesced(strides: LaneStrides, statement: int) -> bool:
    instruction = strides.reaching.body[statement]
    assert isinstance(instruction, Instruction)
    return isa.facts(instruction).space in ("global", "generic") and strides.is_coalesced(statement)


def _trials(heads: Sequence[tuple[Head, bool]]) -> Trials:
    """Which loads of a loop's paths move: from each head as many as its context has room for, or all with ``hoist``.

    Yields moves whose contexts it has to know, and returns those to make.
    """
    kept: Moves = ()
    contexts: Contexts | None = None
    for head, asked in heads:
        everything: Moves = (*kept, (head, head.loads))
        if asked:
            kept, contexts = everything, None
            continue
        if contexts is None:
            contexts = yield (*kept, (head, ()))
        before = (contexts or {}).get(head.position)
        if before is None:
            continue
        after = yield everything
        groups = _by_address(head)
        if _fits(head, groups, before, after):
            kept, contexts = everything, after
            continue
        best: list[tuple[int, ...]] = []
        moved = kept
        for group in groups[:MOST_TRIED]:
            some: Moves = (*kept, (head, tuple(position for chosen in (*best, group) for position in chosen)))
            after = yield some
            if _fits(head, [*best, group], before, after):
                best.append(group)
                moved, contexts = some, after
        kept = moved
    return kept


def _fits(head: Head, groups: Sequence[tuple[int, ...]], before: int, contexts: Contexts | None) -> bool:
    after = (contexts or {}).get(head.position)
    if after is None:
        return False
    small = all(sum(access_size(head.window[p]) for p in group) <= MOST_GROWTH for group in groups)
    return after <= before + (MOST_GROWTH if small else 0)


def _by_address(head: Head) -> tuple[tuple[int, ...], ...]:
    """The head's loads grouped by the base of their addresses, each group in order."""
    found: dict[object, list[int]] = {}
    for position in head.loads:
        statement = head.window[position]
        assert isinstance(statement, Instruction)
        base = next((o.base for o in statement.operands if isinstance(o, Address)), position)
        found.setdefault(base, []).append(position)
    return tuple(tuple(group) for group in found.values())


def _paths(view: View) -> dict[int, tuple[Region, Path]]:
    """The `if` paths of all marked loops, by their begin marker's position among those of the body."""
    found = {
        view.block_of_name[path.begin]: (region, path)
        for region in find(view, frozenset(view.annotations)).regions
        for path in region.all_paths()
        if not path.is_loop
    }
    begins = (view.cfg.block_of(i) for i, s in enumerate(view.body) if _is_begin(s))
    return {position: found[block] for position, block in enumerate(begins) if block in found}


def _contexts(module: Module, function: Function, options: Options, positions: Collection[int]) -> Contexts:
    """The contexts of all paths in the loops that contain the paths with the function's ``positions``-th markers."""
    view = view_of(module, function)
    try:
        paths = _paths(view)
    except Refusal:
        return {}
    found: dict[int, int] = {}
    for header in {paths[position][0].header for position in positions if position in paths}:
        mine = {position: path for position, (region, path) in paths.items() if region.header == header}
        region = next(region for region, _ in paths.values() if region.header == header)
        try:
            analysis = RegionAnalysis(view, region, options.expand)
            plans = legal_plan(analysis, options.form, options.stack_options).all_paths()
        except Refusal:
            continue
        sizes = {plan.path.begin: plan.stack.layout.context_bytes for plan in plans}
        found.update((position, sizes[path.begin]) for position, path in mine.items())
    return found


def _is_begin(statement: Statement) -> bool:
    return isinstance(statement, Marker) and statement.event == "if.begin"


def _heads(function: Function) -> Iterator[Head]:
    """The heads of a function's `if` paths that have loads."""
    body = function.body or ()
    begins = [index for index, statement in enumerate(body) if _is_begin(statement)]
    for position, index in enumerate(begins):
        marker = body[index]
        window = tuple(_window(body[index + 1 :]))
        loads = tuple(p for p, statement in enumerate(window) if _is_load(statement))
        if loads and isinstance(marker, Marker):
            yield Head(position, marker, window, loads)


def _window(after: Sequence[Statement]) -> Iterator[Statement]:
    for statement in after:
        if not isinstance(statement, Location) and not _may_pass(statement):
            return
        yield statement


def _may_pass(statement: Statement) -> bool:
    """Whether a load may swap with the statement: an instruction without effects, or a plain load."""
    if not isinstance(statement, Instruction):
        return False
    facts = isa.facts(statement)
    plain = facts.known and facts.control is Control.NEXT and not facts.synchronises and not facts.convergent
    loads = facts.memory is Memory.LOAD and not facts.volatile and "relaxed" not in statement.parts
    return plain and (loads or (facts.pure and facts.memory is Memory.NONE))


def _is_load(statement: Statement) -> bool:
    """Whether it is a load whose value a task can receive; parameters are rebuilt anyway."""
    if not isinstance(statement, Instruction):
        return False
    facts = isa.facts(statement)
    return facts.memory is Memory.LOAD and facts.space in ("global", "generic", "const", "shared")


def _needed(window: Sequence[Statement], loads: Sequence[int], others: Collection[int]) -> list[int] | None:
    """The positions in ``window`` of ``loads`` and of all that must move along with them, in order; None if these
    include a load that is not among ``others``.
    """
    found = set(loads)
    read: set[str] = set()
    written: set[str] = set()
    for position in range(max(loads), -1, -1):
        statement = window[position]
        # Two instructions may not swap if one reads or overwrites what the other writes.
        writes, needs = effects.writes(statement), effects.needs(statement)
        if position not in found:
            if writes.isdisjoint(read | written) and needs.isdisjoint(written):
                continue
            if _is_load(statement) and position not in others:
                return None
            found.add(position)
        read |= needs
        written |= writes
    return sorted(found)


def _all_moved(function: Function, moves: Iterable[Moves]) -> Function:
    """The function with all the loads moved, each head's in the order of the body."""
    for head, loads in sorted((m for found in moves for m in found), key=lambda move: move[0].position):
        function = _moved(function, head, loads) if loads else function
    return function


def _moved(function: Function, head: Head, loads: Sequence[int]) -> Function:
    """The function with ``loads``, and what they need, before the path's marker."""
    body = function.body or ()
    index = next(i for i, s in enumerate(body) if s is head.marker)
    positions = _needed(head.window, loads, head.loads)
    assert positions is not None, "a load that is not to move stands in the way of one that is"
    names = sorted(n for p in positions if _is_load(head.window[p]) for n in effects.writes(head.window[p]))
    at = next((i for i, (key, _) in enumerate(head.marker.attributes) if key == "file"), None)
    attributes = list(head.marker.attributes)
    attributes.insert(len(attributes) if at is None else at, (HOISTED, ",".join(names)))
    marker = replace(head.marker, attributes=tuple(attributes))
    after = [s for p, s in enumerate(head.window) if p not in positions]
    where = next((s for s in reversed(body[:index]) if isinstance(s, Location)), None)
    before: list[Statement] = []
    current = where
    for position, statement in enumerate(head.window):
        if isinstance(statement, Location):
            current = statement
        elif position in positions:
            last = next((s for s in reversed(before) if isinstance(s, Location)), where)
            before += [statement] if current is None or current == last else [current, statement]
    # A `.loc` holds until the next one, so the path begins again with its own.
    again = [where] if where is not None and any(isinstance(s, Location) for s in before) else []
    stop = index + 1 + len(head.window)
    return replace(function, body=(*body[:index], *before, *again, marker, *after, *body[stop:]))
