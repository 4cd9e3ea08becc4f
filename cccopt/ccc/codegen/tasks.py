"""The code of one marked path: sites in a whole, copies that run tasks, the stack's traffic, the remainder.

A *task* is one run of an `if` path, one trip of a loop that is expanded (`cccopt.ccc.codegen.expansion`), or one lane's
remaining trips of any other loop of tasks. Tasks run on registers of their own, so that what a lane keeps for the code
behind the path survives.

    join:   want = ballot(p); want == 0: go on
    choose: r = 32 - popc(want);  top >= r: take, else push
    push:   lanes with p store their context at top + rank; top += popc(want)
    take:   lanes without p load slot top - 1 - rank; top -= r; all 32 run the path

Of a loop with a stack the warp runs trip after trip while idle lanes can be filled from the stack; when they no longer
can, the lanes that still have trips push them, and the warp goes on to find more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from cccopt.analysis import effects
from cccopt.ccc.codegen.copies import keep_rolled, unrolled, without_pragmas
from cccopt.ccc.codegen.decision_trees import flattened
from cccopt.ccc.codegen.expansion import REDUX, ExpandedSite
from cccopt.ccc.codegen.exposure import exposed
from cccopt.ccc.codegen.in_place import in_place
from cccopt.ccc.codegen.own_nodes import OwnNodes
from cccopt.ccc.codegen.sites import Site, place_flagged, place_site
from cccopt.ccc.codegen.sorting import SortingSite
from cccopt.ccc.function.code import FULL_WARP, flag_op, negated, op, predicate
from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    End,
    Jump,
    Node,
    Nodes,
    condition,
    copy,
    led,
    program_order,
    reachable,
    targets,
)
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.partials import collect, deposit
from cccopt.ccc.plan.plan import PathPlan, Plan, own
from cccopt.ccc.plan.stack import SLOTS, Lookup, Value, clear, copy_value
from cccopt.ccc.regions.values import live_outs
from cccopt.ptx.ir import Guard, Instruction, Register, Statement
from cccopt.ptx.language import Language


class Tasks:
    """Makes the nodes of a region's paths: each method returns new ones, or adds them to the ``nodes`` it is given."""

    def __init__(self, view: View, plan: Plan) -> None:
        self.view = view
        self.plan = plan
        self.names = view.names
        self.region = plan.region.annotation.region
        self.own = OwnNodes(view, plan)
        self.base = self.own.nodes
        self.sorting_sites = tuple(
            SortingSite(sorting, plan.lane, plan.lanes_before, self.names, self.region)
            for sorting in plan.sortings
        )

    def node(self, nodes: Nodes, name: str, code: Iterable[Statement], end: End, phase: str = "") -> str:
        """Adds a node that the program did not have to ``nodes``; its name."""
        nodes[name] = Node(name, tuple(code), end, self.region, phase)
        return name

    def phase(self, nodes: Nodes, phase: str, code: Iterable[Statement], end: End) -> str:
        """Adds a node that profiles can name; its name."""
        return self.node(nodes, self.names.label(phase), code, end, phase)

    # --- wholes and sites ---

    def settle(
        self,
        nodes: Nodes,
        enter: str,
        begin: str,
        paths: tuple[PathPlan, ...],
        given: Collection[str] = (),
        behind: Collection[str] = (),
    ) -> Nodes:
        """The whole ``nodes``, entered at ``enter`` and then at ``begin``, with a site for each of ``paths``; ``given``
        are registers that have a value there in all lanes, and keep it, ``behind`` those that are read after the whole.
        """
        alive = self._alive(begin).union(given)
        for path in paths:
            sorting = next((s for s in self.sorting_sites if path in s.sorting.paths), None)
            if sorting is None:
                site = self._loop_site if path.path.is_loop else self._if_site
                site = site if path.counted is None else self._expanded_site
                where = self._where([path], nodes, alive)
                nodes = place_flagged(nodes, enter, where, partial(site, path), self.names, self.region)
            elif path is sorting.first:
                nodes = self._sorted(sorting, nodes, enter, alive)
            if path.skip_flags:
                # Lanes whose tasks run the tail pass it under a false guard.
                written = (effects.writes(self.view.body[i]) for i in path.tail if i in self.plan.skipped)
                skipped = self._cleared(live_outs(self.view, path.path).union(*written) - alive)
                nodes[enter] = replace(nodes[enter], code=(*skipped, *nodes[enter].code))
        unset = self._cleared(exposed(nodes, enter, behind, alive))
        nodes[enter] = replace(nodes[enter], code=(*unset, *nodes[enter].code))
        return nodes

    def _where(self, paths: Sequence[PathPlan], nodes: Nodes, alive: Collection[str]) -> Site:
        """The site of some paths that end at one place in ``nodes``; ``alive`` registers have a value there anyway."""
        inside = frozenset().union(*(path.path.nodes for path in paths))
        # A site placed before may stand between a path and where its end led at first. Nodes that only held markers
        # are no longer on any way.
        begins = tuple(path.path.begin for path in paths)
        run = reachable({name: nodes[name] for name in inside if name in nodes}, begins)
        outside = {t for n in run for t in targets(nodes[n].end) if t not in inside}
        (goal,) = outside - self.view.traps
        # What is alive at the whole's beginning has a value there; the rest may not have one at the join.
        met = {v.name for path in paths for v in path.stack.layout.values()}
        met |= {name for path in paths if path.counted is not None for name in path.counted.count.registers}
        met |= frozenset().union(*(self._alive(path.path.end) for path in paths))
        # What a lane computes again there has operands of its own.
        met |= {n for path in paths for i in path.recomputed for n in effects.reads(self.view.body[i])}
        return Site(begins, inside, goal, self._cleared(met - {*alive}))

    def _sorted(self, sorting: SortingSite, nodes: Nodes, enter: str, alive: Collection[str]) -> Nodes:
        """The whole with one site for exclusive paths."""
        paths = sorting.sorting.paths
        where = self._where(paths, nodes, alive)
        arrive, ahead = sorting.arrivals()
        leaves = {**{begin: number for number, begin in enumerate(arrive)}, where.end: len(paths)}
        behind = self._alive(sorting.first.path.end)
        read = {where.end: behind} | {p.path.begin: self._alive(p.path.begin) for p in paths}
        straight = flattened(nodes, enter, leaves, read, self.names)
        arrive |= {label: op("mov.u32", sorting.which, chosen) for label, chosen in straight.chosen.items()}
        where = replace(where, begins=tuple(arrive), start=(*where.start, ahead))

        def build(behind: str) -> tuple[Nodes, str]:
            return sorting.site(self._task, self._in_place, behind)

        return place_site(straight.nodes, enter, where, arrive, build, self.names, self.region)

    def _in_place(self, path: PathPlan, behind: str) -> tuple[str, Nodes]:
        # What nobody runs behind the site has to run here.
        alone = not self.plan.dropped.isdisjoint(path.tail)
        tail = [self._instruction(index) for index in path.tail] if alone else []
        return in_place(path, tail, behind, self.base, self.names, self.region)

    def _alive(self, name: str) -> frozenset[str]:
        return self.view.liveness.live_in[self.view.block_of_name[name]]

    def _cleared(self, names: Iterable[str]) -> tuple[Instruction, ...]:
        """Code that gives registers of the program (special ones aside) a value."""
        types = self.view.types
        known = types.keys() - self.view.scoped
        return tuple(clear(Value(name, types[name])) for name in sorted(names) if name in known)

    def enter(
        self, nodes: Nodes, name: str, paths: Iterable[PathPlan], begin: str, end: str, alive: Guard | None
    ) -> None:
        """Adds the node at which the warp enters a whole: to ``begin``, or without ``alive`` straight to ``end``."""
        cleared = dict.fromkeys(flag for path in paths for flag in path.skip_flags)
        code = [op("mov.pred", flag, 0) for flag in cleared]
        self.node(nodes, name, code, Jump(begin) if alive is None else Branch(alive, begin, end))

    def _task(self, path: PathPlan, behind: str, alive: Guard | None = None) -> tuple[str, Nodes]:
        """A renamed copy of the path, with its moved tail, that runs one task in each lane (with ``alive``, in those
        lanes only) and ends at ``behind``.
        """
        begin, end = path.path.begin, path.path.end
        nodes: Nodes = {name: self.base[name] for name in program_order(self.base, path.path.nodes)}
        enter = self.names.label("enter")
        self.enter(nodes, enter, path.children, begin, end, alive)
        given = [live.name for live in path.live_ins]
        read = live_outs(self.view, path.path) if path.tail else ()
        nodes = self.settle(nodes, enter, begin, path.children, given, read)
        copies, names_of = copy(nodes.values(), self.names, path.rewrite)
        tail: Nodes = {}
        leave = self._tail(path, behind, tail)
        if leave != behind and alive is not None:
            leave = self.node(tail, self.names.label("mine"), (), Branch(alive, leave, behind))
        # The tail is not led: it may go on to the very node that the path went to.
        return names_of[enter], {**led(copies, {end: leave}), **tail}

    def _tail(self, path: PathPlan, behind: str, nodes: Nodes) -> str:
        """The node that runs the moved tail of the task, gives away its parts of reductions and goes on to ``behind``,
        which it is where there is nothing to do.
        """
        behind = self._deposit(path, behind, nodes)
        if not path.tail:
            return behind
        own: Nodes = {}
        first = self._moved(path, (), behind, own)
        copies, names_of = copy(own.values(), self.names, path.rewrite)
        nodes.update(copies)
        return names_of[first]

    def _deposit(self, path: PathPlan, behind: str, nodes: Nodes) -> str:
        """Adds what gives a task's parts of reductions to its owner; the name of its first node."""
        if path.owner is None:
            return behind
        own, first = deposit(
            path.partials, path.owner, behind, self.names, self.region, reset=path.path.is_loop
        )
        nodes.update(own)
        return first

    def _moved(self, path: PathPlan, last: Iterable[Statement], behind: str, nodes: Nodes) -> str:
        """Adds the tail on the program's own registers, the code ``last`` at its end; the name of its first node."""
        branches = {h.branch: h for h in path.hammocks}
        inside = {i for h in path.hammocks for i in h.statements}
        first = name = self.names.label("tail")
        code: list[Statement] = []
        for index in path.tail:
            if index in branches:
                hammock, following = branches[index], self.names.label("tail")
                nodes[name] = Node(name, tuple(code), Branch(hammock.past, following, hammock.begin))
                piece = {n: self.base[n] for n in hammock.nodes}
                nodes.update(led(piece, {hammock.join: following}))
                name, code = following, []
            elif index not in inside:
                code.append(path.updates.get(index) or self._instruction(index))
        nodes[name] = Node(name, (*code, *last), Jump(behind))
        return first

    def _if_site(self, path: PathPlan, flag: Guard, behind: str, certain: bool) -> tuple[Nodes, str]:
        idle, missing = (self.names.register("b32") for _ in range(2))
        full = Guard(self.names.register("pred"))
        nodes: Nodes = {}
        behind = self._recompute(path, flag, behind, nodes)
        begin, task = self._task(path, behind)
        if certain:
            # All lanes have a task of their own: none need wait.
            values = path.stack.layout.values()
            code = [i for v in values for i in copy_value(v, own(v.name), path.task(v.name))]
            # Without a vote of its own, the path orders accesses to the stacks of those inside it and to owners' slots.
            ordered = path.owner is not None or any(map(self.plan.has_stack, path.children))
            order = self._order(path) if ordered else []
            code = [*order, *self._hold(path, flag), *code, *path.restore]
            nodes.update(task)
            return nodes, self.phase(nodes, path.phase("take"), code, Jump(begin))
        push = self.phase(nodes, path.phase("push"), self._push(path, idle, missing, flag, own), Jump(behind))
        take = self.phase(nodes, path.phase("take"), self._pop(path, idle, missing, flag, own), Jump(begin))
        nodes.update(task)
        choose = [
            *self._order(path),
            op("popc.b32", missing, idle),
            op("setp.ge.s32", full.register, path.top, missing),
        ]
        some = self.node(nodes, self.names.label("choose"), choose, Branch(full, take, push, UNIFORM))
        return nodes, self._join(path, idle, flag, behind, some, nodes)

    def _loop_site(self, path: PathPlan, flag: Guard, behind: str, certain: bool) -> tuple[Nodes, str]:
        idle, missing = (self.names.register("b32") for _ in range(2))
        enough, busy = (Guard(self.names.register("pred")) for _ in range(2))
        turn, vote = (self.names.label(what) for what in ("turn", "vote"))
        nodes: Nodes = {}
        behind = self._recompute(path, flag, behind, nodes)
        begin, task = self._trip(path, busy, vote)
        trip = self.phase(nodes, path.phase("trip"), (), Jump(begin))
        nodes.update(task)
        self.node(nodes, vote, [self._idle(idle, busy)], Jump(turn))
        take = self.phase(
            nodes, path.phase("take"), self._pop(path, idle, missing, busy, path.task), Jump(trip)
        )
        # A pop may have been the last access to the slots that are written now.
        code = [op("bar.warp.sync", FULL_WARP), *self._push(path, idle, missing, busy, path.task)]
        store = self.phase(nodes, path.phase("push"), code, Jump(behind))
        given = self._deposit(path, store, nodes)
        test = [op("popc.b32", missing, idle), op("setp.ge.s32", enough.register, path.top, missing)]
        self.node(nodes, turn, test, Branch(enough, take, given, UNIFORM))
        values = path.stack.layout.values()
        code = [i for v in values for i in copy_value(v, own(v.name), path.task(v.name))]
        code = [*self._order(path), *code, *path.restore, *path.resets, flag_op(busy.register, flag)]
        admit = self.names.label("admit")
        if certain:
            return nodes, self.node(nodes, admit, [*self._hold(path, flag), *code], Jump(trip))
        some = self.node(nodes, admit, code, Jump(turn))
        return nodes, self._join(path, idle, flag, behind, some, nodes)

    def _expanded_site(self, path: PathPlan, flag: Guard, behind: str, certain: bool) -> tuple[Nodes, str]:
        loop, following = path.counted, self.names.label("next")
        assert loop is not None
        counting = [i for i in self.view.statements(path.path.nodes) if i not in loop.code]
        trip = self.own.without(path.path.nodes, counting)
        trip = led(trip, {path.path.begin: following, path.path.end: following})
        trip[loop.latch] = replace(trip[loop.latch], end=Jump(following))
        trip[path.path.begin] = without_pragmas(trip[path.path.begin])
        redux = Language.of(self.view.module).has(REDUX)
        lanes = self.plan.lane, self.plan.lanes_before
        site = ExpandedSite(path, loop, trip, following, *lanes, self.names, self.region, redux)
        return site.nodes(flag, behind, certain)

    def _trip(self, path: PathPlan, busy: Guard, vote: str, alive: Guard | None = None) -> tuple[str, Nodes]:
        """Up to ``chunk`` trips of a loop on the task's registers, with ``alive`` in those lanes only; ``busy`` tells
        afterwards whether trips are left.
        """
        nodes: Nodes = {}
        # Lanes whose tasks have ended in any of the trips run their tails together, before they may get other ones.
        landing = vote
        given = self._deposit(path, vote, nodes)
        if path.tail or given != vote:
            ended = self._moved(path, (), given, nodes) if path.tail else given
            landing = self.node(nodes, self.names.label("landing"), (), Branch(busy, vote, ended))
        again = self.names.label("again")
        if path.chunk > 1:
            together = unrolled(path.chunk, len(self.view.instructions(path.path.nodes)))
            left, more = self.names.register("b32"), Guard(self.names.register("pred"))
            begin = self._body(path, busy, again, landing, together, nodes)
            keep_rolled(nodes, begin)
            count = [op("sub.s32", left, left, together), op("setp.ne.s32", more.register, left, 0)]
            self.node(nodes, again, count, Branch(more, begin, landing))
            start = [op("mov.u32", left, path.chunk), op("mov.pred", busy.register, 1)]
            begin = self.node(nodes, self.names.label("chunk"), start, Jump(begin))
        else:
            self.node(nodes, again, [op("mov.pred", busy.register, 1)], Jump(landing))
            begin = self._body(path, busy, again, landing, 1, nodes)
        if path.children:
            enter = self.names.label("enter")
            self.enter(nodes, enter, path.children, begin, vote, alive)
            nodes = self.settle(nodes, enter, begin, path.children, [live.name for live in path.live_ins])
            begin = enter
        copies, names_of = copy(nodes.values(), self.names, path.rewrite)
        return names_of[begin], copies

    def _body(
        self, path: PathPlan, busy: Guard, again: str, landing: str, together: int, nodes: Nodes
    ) -> str:
        """Adds ``together`` trips in a row on the program's own registers: the last goes on to ``again``, a lane whose
        trips have ended to ``landing``, its flag down. The name of the first node.
        """
        header, end = path.path.begin, path.path.end
        done = self.node(nodes, self.names.label("done"), [op("mov.pred", busy.register, 0)], Jump(landing))
        for place in reversed(range(together)):
            trip: Nodes = {}
            for name in program_order(self.base, path.path.nodes):
                node = self.base[name]
                if name == header:
                    node = without_pragmas(node)
                if (
                    path.chunk == 1
                    and isinstance(node.end, Branch)
                    and set(targets(node.end)) == {header, end}
                ):
                    code = [flag_op(busy.register, condition(node.end, header))]
                    setter = self.node(nodes, self.names.label("flag"), code, Jump(landing))
                    trip[name] = replace(node, end=Jump(setter))
                else:
                    trip.update(led({name: node}, {header: again, end: done}))
            again = header
            if place:
                trip, names_of = copy(trip.values(), self.names, lambda instruction: instruction)
                again = names_of[header]
            nodes.update(trip)
        return again

    def _idle(self, idle: Register, flag: Guard) -> Instruction:
        """The vote that gives the lanes without ``flag``: what is counted is how many tasks are missing."""
        return op("vote.sync.ballot.b32", idle, predicate(negated(flag)), FULL_WARP)

    def _join(self, path: PathPlan, idle: Register, flag: Guard, behind: str, some: str, nodes: Nodes) -> str:
        """The node at which the warp meets: on to ``some`` if any lane wants the path."""
        nobody = Guard(self.names.register("pred"))
        code = [
            *self._hold(path, flag),
            self._idle(idle, flag),
            op("setp.eq.s32", nobody.register, idle, FULL_WARP),
        ]
        return self.node(nodes, self.names.label("join"), code, Branch(nobody, behind, some, UNIFORM))

    def _order(self, path: PathPlan) -> list[Instruction]:
        """The barrier between this visit's accesses to the stack and those of the last visit. A path inside an `if`
        path needs none: the outer one's stands between any two runs of its tasks.
        """
        once = any(
            path is p for outer in self.plan.all_paths() if not outer.path.is_loop for p in outer.children
        )
        return [] if once else [op("bar.warp.sync", FULL_WARP)]

    def _recompute(self, path: PathPlan, flag: Guard, behind: str, nodes: Nodes) -> str:
        """Lanes that wanted the path compute again what they read behind it; the name of the node to go to."""
        if not path.recomputed:
            return behind
        again = self.node(nodes, self.names.label("recompute"), path.own(self.view.body), Jump(behind))
        return self.node(nodes, self.names.label("mine"), (), Branch(flag, again, behind))

    def _hold(self, path: PathPlan, flag: Guard) -> list[Instruction]:
        """Keeps the flag for the code behind the site that these lanes skip, because their tasks run it."""
        if not path.skip_flags:
            return []
        kept = self.names.register("pred")
        return [
            flag_op(kept, flag),
            *(op("or.pred", skipping, skipping, kept) for skipping in path.skip_flags),
        ]

    # --- stack code ---

    def _push(
        self, path: PathPlan, idle: Register, missing: Register, flag: Guard, source: Lookup
    ) -> list[Instruction]:
        ahead, slot = self.names.register("b32"), self.names.register("b32")
        return [
            # The truth table of ~idle & lanes_before.
            op("lop3.b32", ahead, idle, self.plan.lanes_before, 0, 0x0C),
            op("popc.b32", ahead, ahead),
            op("add.s32", slot, path.top, ahead),
            *path.stack.push(source, slot, flag),
            op("sub.s32", path.top, path.top, missing),
            op("add.s32", path.top, path.top, SLOTS),
        ]

    def _pop(
        self, path: PathPlan, idle: Register, missing: Register, flag: Guard, source: Lookup
    ) -> list[Instruction]:
        ahead, slot = self.names.register("b32"), self.names.register("b32")
        return [
            op("and.b32", ahead, idle, self.plan.lanes_before),
            op("popc.b32", ahead, ahead),
            op("sub.s32", slot, path.top, ahead),
            *path.stack.pop(source, path.task, slot, negated(flag), below=1),
            *path.restore,
            op("sub.s32", path.top, path.top, missing),
        ]

    def drains(self, final: str, nodes: Nodes) -> str:
        """The remainder: what is left on the stacks, outer paths first, and the barrier behind it."""
        # Lanes that ran a popped task are not those that own it, and what follows may read what it wrote.
        code = [op("bar.warp.sync", FULL_WARP)]
        code += collect(self.plan.partials, self.plan.slots, self.names, header=self.plan.split)
        following = self.node(nodes, self.names.label("drained"), code, Jump(final))
        for site in reversed(self.sorting_sites):
            following = site.drain(self._task, following, nodes)
        for path in reversed(self.plan.all_paths()):
            if self.plan.has_stack(path):
                following = self._drain(path, following, nodes)
        return following

    def _drain(self, path: PathPlan, following: str, nodes: Nodes) -> str:
        some, mine = (Guard(self.names.register("pred")) for _ in range(2))
        code = [op("bar.warp.sync", FULL_WARP), op("setp.lt.s32", mine.register, self.plan.lane, path.top)]
        if path.children:
            # Inner votes need the whole warp: lanes without a task come along, idle.
            whole = self._trips if path.path.is_loop else self._task
            begin, task = whole(path, following, mine)
            values = path.stack.layout.values()
            code += [clear(Value(path.task(v.name).name, v.type)) for v in values]
            code += path.stack.pop(path.task, path.task, self.plan.lane, mine)
            code += [*path.restore, *path.resets]
            pop = self.phase(nodes, path.phase("drain"), code, Jump(begin))
        else:
            copy_of = self._loop_task if path.path.is_loop else self._task
            begin, task = copy_of(path, following)
            load = path.stack.pop(path.task, path.task, self.plan.lane, None)
            load += [*path.restore, *path.resets]
            own_task = self.node(nodes, self.names.label("last"), load, Jump(begin))
            pop = self.phase(nodes, path.phase("drain"), code, Branch(mine, own_task, following))
        nodes.update(task)
        test = [op("setp.ne.s32", some.register, path.top, 0)]
        return self.node(nodes, self.names.label("left"), test, Branch(some, pop, following, UNIFORM))

    def _loop_task(self, path: PathPlan, behind: str) -> tuple[str, Nodes]:
        """The remaining trips of a variable loop, each lane at its own pace."""
        nodes = [self.base[name] for name in program_order(self.base, path.path.nodes)]
        copies, names_of = copy(nodes, self.names, path.rewrite)
        tail: Nodes = {}
        leave = self._tail(path, behind, tail)
        return names_of[path.path.begin], {**led(copies, {path.path.end: leave}), **tail}

    def _trips(self, path: PathPlan, behind: str, busy: Guard) -> tuple[str, Nodes]:
        """The remaining trips of the lanes with ``busy``, which all lanes go through together, trip by trip."""
        some = Guard(self.names.register("pred"))
        vote = self.names.label("vote")
        begin, nodes = self._trip(path, busy, vote, alive=busy)
        test = [op("vote.sync.any.pred", some.register, predicate(busy), FULL_WARP)]
        self.node(nodes, vote, test, Branch(some, begin, behind, UNIFORM))
        return begin, nodes

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement
