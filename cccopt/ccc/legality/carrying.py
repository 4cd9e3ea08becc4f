"""The carried form: a task is the rest of its iteration, and the lane that made it continues with its next one.

A *token* (one iteration) that reaches a point (`cccopt.ccc.regions.points`) waits there with all that the rest of the
iteration reads. The lane that resumes it runs that rest, to the next point or to the end, so nothing inside an
iteration changes order. The lane that made it must know where its own next iteration begins, and whether there is one,
without running the rest:

        for (i = tid; i < n; i += stride) {
          x = a[i];
          if (x > 0) {               <- point: the token waits with x and i
            out[i] = f(x);              runs as a task
            if (out[i] < 1) b[i] = x;   runs as a task, too
          }
        }                               `i += stride; i < n` runs in the lane: the point's *advance*

The advance is the backward slice, by data and control, of what the loop's header and the code after the loop read. It
may contain only pure code and loads of what nothing writes, so it does not depend, by data, control or memory, on
anything that the task computes. The task leaves out what only the advance needs.

Weiser, "Program slicing", ICSE 1981; Giegerich, "A formal framework for the derivation of machine-specific optimizers",
TOPLAS 5(3), 1983 (strongly live variables).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import or_

from cccopt.analysis import effects
from cccopt.analysis.dataflow import Analysis, Direction, FlowGraph, solve
from cccopt.analysis.dominance import EXIT, dependence, immediate_dominators
from cccopt.analysis.loops import Loop
from cccopt.ccc.function.graph import Leave, Node, reachable, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.lost_values import computed_value
from cccopt.ccc.legality.recomputation import repeatable
from cccopt.ccc.legality.reductions import Reduction, Reductions
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.points import Point
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction

DEAR = 64.0
"""The form is refused if the code that both the advance and the token run takes more than this many issue slots."""

_Live = Mapping[str, frozenset[str]]
"""The registers that are live at the beginning of each node, by the node's name."""


@dataclass(frozen=True, slots=True)
class Advance:
    """What a lane runs in place of the rest of its iteration, on its own registers: the statements ``kept`` of
    ``nodes``, entered at the point. The branch of a node in ``jumps`` decides nothing: control goes straight to the
    given target, in or out of the nodes.
    """

    nodes: frozenset[str]
    kept: frozenset[int]
    jumps: Mapping[str, str]


@dataclass(frozen=True)
class Carrying:
    """The tokens of one marked loop: what waits at each of its points, and what runs from there on. Statements are
    given by index, nodes by name.
    """

    view: View
    region: Region
    allowed: Reductions

    def rest(self, point: Point) -> frozenset[str]:
        """The nodes that an iteration may still reach from ``point``."""
        return self._rests[point.begin]

    def segment(self, point: Point) -> frozenset[str]:
        """The nodes that a task runs from ``point`` to the next one, or to the end of the iteration."""
        begins = {p.begin for p in self.region.points}
        between = {name: node for name, node in self._body.items() if name not in begins}
        return frozenset({point.begin, *reachable(between, self._targets(point.begin))})

    def comes_back(self, point: Point) -> bool:
        """Whether an iteration may reach ``point`` more than once."""
        after = reachable(self._body, targets(self.view.graph.nodes[point.begin].end))
        return point.begin in after

    def together(self, point: Point) -> int:
        """How many points are on a cycle with ``point``, itself included."""
        return sum(p.begin in self.rest(point) and point.begin in self.rest(p) for p in self.region.points)

    def rest_code(self, point: Point) -> list[int]:
        """The statements that tokens run from ``point`` onwards."""
        return [index for index in self.view.statements(self.rest(point)) if index in self.code]

    @cached_property
    def code(self) -> frozenset[int]:
        """The statements that tokens run after their first point: all but those that only the advance needs."""
        return self._token[0]

    def needs(self, point: Point) -> frozenset[str]:
        """The registers that the rest of the iteration reads from ``point`` onwards."""
        return self._token[1][point.begin]

    @cached_property
    def reductions(self) -> tuple[Reduction, ...]:
        """The accumulators that tokens update: each is in one register, and nothing keeps an older value of it."""
        view = self.view
        inside = set(view.statements(frozenset().union(*self._rests.values())))
        blocks = {view.block_of_name[point.begin] for point in self.region.points}
        found: list[Reduction] = []
        for r in self.allowed.found:
            written = [i for i in inside if r.register in effects.writes(view.body[i])]
            alone = all(r.live(view, block) <= {r.register} for block in blocks)
            if (
                inside & r.updates.keys()
                and alone
                and r.at_exits <= {r.register}
                and all((i, r.register) in r.values for i in written)
            ):
                found.append(r)
        return tuple(found)

    def advance(self, point: Point) -> Advance:
        """What the lane runs itself. Raises Refusal if that needs results of the rest of the iteration."""
        if point.begin not in self._advances:
            self._advances[point.begin] = self._advance(point)
        return self._advances[point.begin]

    @cached_property
    def _advances(self) -> dict[str, Advance]:
        """The advances found so far: the region's check, cost and plan all need them."""
        return {}

    def _advance(self, point: Point) -> Advance:
        nodes = self.rest(point) - self.view.traps
        self._check_exits(point, nodes)
        outcomes = sorted({t for name in nodes for t in self._targets(name) if t not in nodes})
        dependent, after = self._control(nodes, outcomes)
        # If control can only go to one place, no branch decides.
        deciding = {b for o in outcomes for b in dependent[o]} if len(outcomes) > 1 else set[str]()
        kept, relevant = self._sliced(nodes, deciding, dependent, self._needed_outside)
        for index in sorted(kept):
            statement = self.view.body[index]
            assert isinstance(statement, Instruction)
            if not _pure(self.view, statement):
                raise self._dependent(point, index)
        self._check_cost(point, nodes, kept | {self._last(name) for name in relevant})
        # A lane that would trap leaves the trap to its task.
        several = {name for name in nodes if len(targets(self.view.graph.nodes[name].end)) > 1}
        jumps = {name: after[name] for name in several - relevant}
        return Advance(nodes, kept, jumps)

    @cached_property
    def deciding(self) -> frozenset[int]:
        """The statements of the loop that decide, by data and control, when a lane leaves it."""
        nodes = self.region.nodes
        outcomes = sorted({t for name in nodes for t in self._targets(name) if t not in nodes})
        dependent, _ = self._control(nodes, outcomes)
        leaving = {name for name in nodes if any(t not in nodes for t in self._targets(name))}
        return self._sliced(nodes, leaving, dependent, lambda _: frozenset())[0]

    # --- tokens ---

    @cached_property
    def _token(self) -> tuple[frozenset[int], _Live]:
        """The statements that tokens run, and what is live where nodes begin."""
        nodes = self.view.with_traps(frozenset().union(*self._rests.values()))
        roots: set[int] = set()
        for index, statement in self.view.instructions(nodes):
            if isa.facts(statement).control is isa.Control.NEXT and not _pure(self.view, statement):
                roots.add(index)
        for name in nodes:
            ways = {t if t in nodes else "" for t in self._ways(name, nodes)}
            if len(ways) > 1:
                roots.add(self._last(name))
        for index, statement in self.view.instructions(nodes):
            if isa.facts(statement).control in (isa.Control.CALL, isa.Control.EXIT):
                roots.add(index)
        updated = frozenset(r.register for r in self.reductions)
        return self._strongly_live(nodes, roots, lambda _: updated)

    def _needed_outside(self, target: str) -> frozenset[str]:
        """The registers that a lane needs when it leaves its iteration for ``target``, except its own parts of
        reductions, which it keeps.
        """
        view = self.view
        if target not in view.block_of_name:
            return frozenset()
        live = view.liveness.live_in[view.block_of_name[target]]
        return live - {r.register for r in self.reductions}

    def _sliced(
        self,
        nodes: frozenset[str],
        deciding: Collection[str],
        dependent: Mapping[str, frozenset[str]],
        outside: Callable[[str], frozenset[str]],
    ) -> tuple[frozenset[int], set[str]]:
        """The backward slice of what is read ``outside`` and of the branches of the nodes ``deciding``: its statements,
        and the nodes whose branches are in it.
        """
        relevant = self._closed(deciding, dependent)
        while True:
            roots = {self._last(name) for name in relevant}
            kept, _ = self._strongly_live(nodes, roots, outside)
            holding = {self.view.name(self.view.cfg.block_of(index)) for index in kept - roots}
            more = self._closed({b for name in holding for b in dependent[name]} | relevant, dependent)
            if more == relevant:
                return kept - roots, relevant
            relevant = more

    def _strongly_live(
        self, nodes: frozenset[str], roots: Collection[int], outside: Callable[[str], frozenset[str]]
    ) -> tuple[frozenset[int], _Live]:
        """The statements of ``nodes`` on which ``roots`` and the registers ``outside(target)`` of each target outside
        depend by data, and the registers that are live where nodes begin.
        """
        view = self.view
        names = sorted(nodes)
        number = {name: place for place, name in enumerate(names)}
        ways = {name: self._ways(name, nodes) for name in names}
        left = {
            number[name]: frozenset[str]().union(*(outside(t) for t in ways[name] if t not in nodes))
            for name in names
        }
        statements = {number[name]: self._backwards[view.block_of_name[name]] for name in names}

        def follow(node: int, live: frozenset[str], kept: set[int] | None) -> frozenset[str]:
            live = live | left[node]
            for index, effect in statements[node]:
                if index in roots or not effect.writes.isdisjoint(live):
                    live = (live - effect.kills) | effect.needs
                    if kept is not None:
                        kept.add(index)
            return live

        nothing = frozenset[str]()
        graph = FlowGraph(
            {number[n]: [number[t] for t in ways[n] if t in nodes] for n in names},
            frozenset(number.values()),
            frozenset(number[n] for n in names if any(t not in nodes for t in ways[n]) or not ways[n]),
        )
        solution = solve(
            Analysis(Direction.BACKWARD, nothing, nothing, or_, lambda node, live: follow(node, live, None)),
            graph,
        )
        kept: set[int] = set()
        before = {
            name: follow(number[name], solution.after.get(number[name], nothing), kept) for name in names
        }
        return frozenset(kept), before

    @cached_property
    def _backwards(self) -> Sequence[Sequence[tuple[int, effects.Effects]]]:
        """The instructions of each block, last ones first, with what they read and write."""
        body = self.view.body
        return [
            [
                (i, effects.of(body[i]))
                for i in reversed(block.statements())
                if isinstance(body[i], Instruction)
            ]
            for block in self.view.cfg.blocks
        ]

    # --- control flow ---

    @cached_property
    def _body(self) -> Mapping[str, Node]:
        """The nodes of the loop without its header, where an iteration ends."""
        nodes = self.view.graph.nodes
        return {name: nodes[name] for name in self.region.nodes if name != self.region.header}

    @cached_property
    def _rests(self) -> Mapping[str, frozenset[str]]:
        return {p.begin: frozenset(reachable(self._body, [p.begin])) for p in self.region.points}

    def _targets(self, name: str) -> tuple[str, ...]:
        """Where control may go from a node, except to a trap."""
        return tuple(t for t in targets(self.view.graph.nodes[name].end) if t not in self.view.traps)

    def _ways(self, name: str, nodes: Collection[str]) -> tuple[str, ...]:
        """Where control may go from a node, except to a trap outside ``nodes``."""
        return tuple(
            t for t in targets(self.view.graph.nodes[name].end) if t in nodes or t not in self.view.traps
        )

    def _last(self, name: str) -> int:
        """The statement that ends a node with several targets."""
        return self.view.cfg.blocks[self.view.block_of_name[name]].stop - 1

    def _control(
        self, nodes: frozenset[str], outcomes: Collection[str]
    ) -> tuple[Mapping[str, frozenset[str]], Mapping[str, str]]:
        """For each of ``nodes`` and ``outcomes``, the nodes whose branches decide whether control reaches it; and the
        immediate post-dominator of each node.
        """
        names = [*sorted(nodes), *outcomes]
        number = {name: place for place, name in enumerate(names)}
        ways: dict[int, tuple[int, ...]] = {
            number[n]: tuple(number[t] for t in self._targets(n)) or (EXIT,) for n in nodes
        }
        ways.update({number[o]: (EXIT,) for o in outcomes})
        backwards: dict[int, list[int]] = {place: [] for place in [*number.values(), EXIT]}
        for source, found in ways.items():
            for target in found:
                backwards[target].append(source)
        able = immediate_dominators(backwards, EXIT).immediate
        # A node from which control never leaves is treated as if it could.
        for place in number.values():
            if place not in able:
                backwards[EXIT].append(place)
                ways[place] = (*ways[place], EXIT)
        tree = immediate_dominators(backwards, EXIT)
        found_dependence = dependence(ways | {EXIT: ()}, tree)
        after = {
            names[place]: names[above]
            for place, above in tree.immediate.items()
            if place != EXIT and above is not None and above != EXIT
        }
        return {
            names[place]: frozenset(names[b] for b in branches)
            for place, branches in found_dependence.items()
            if place != EXIT
        }, after

    @staticmethod
    def _closed(chosen: Collection[str], dependent: Mapping[str, frozenset[str]]) -> set[str]:
        """The branches ``chosen``, and those that decide whether control reaches them."""
        found: set[str] = set()
        work = list(chosen)
        while work:
            name = work.pop()
            if name not in found:
                found.add(name)
                work += dependent[name]
        return found

    def marked(self, point: Point) -> frozenset[int]:
        """What tokens run of the marked code; empty if the compiler has left nothing of it."""
        return self._marked(point) & self.code

    def _marked(self, point: Point) -> frozenset[int]:
        """The statements of the marked code: those of the inner loop, or those that only the point leads to."""
        view = self.view
        begin = view.block_of_name[point.begin]
        loop = view.innermost(begin) if point.annotation.variable else None
        if loop is not None:
            return frozenset(i for b in loop.blocks for i in view.cfg.blocks[b].statements())
        blocks = (b for b in view.blocks_of(self.rest(point)) if view.dominators.dominates(begin, b))
        return frozenset(i for b in blocks for i in view.cfg.blocks[b].statements())

    # --- refusals ---

    def _check_exits(self, point: Point, nodes: frozenset[str]) -> None:
        view = self.view
        for block, name in sorted((view.block_of_name.get(name, -1), name) for name in nodes):
            for way in (*targets(view.graph.nodes[name].end), name):
                node = view.graph.nodes.get(way)
                if node is not None and isinstance(node.end, Leave) and way not in view.traps:
                    notes = view.origins.jump(view.cfg.blocks[block].stop - 1) if block >= 0 else ()
                    raise refuse(refusal.OTHER_EXIT, point.annotation.place, notes=notes)

    def _check_cost(self, point: Point, nodes: frozenset[str], kept: frozenset[int]) -> None:
        """What the lane and the token both compute must be cheap: it runs twice, and in divergent lanes."""
        view = self.view
        twice = kept & self.code
        inner = [loop for loop in view.loops if view.names_of(loop.blocks) <= nodes]
        for loop in inner:
            looping = [index for index in sorted(twice) if view.cfg.block_of(index) in loop.blocks]
            if looping:
                raise self._dependent(
                    point, next((i for i in looping if self._leaves(i, loop, kept)), looping[0])
                )
        marked = self.marked(point)
        if not marked:
            raise refuse(refusal.NOTHING_WAITS, point.annotation.place)
        if marked <= kept:
            # The lane would do all of the work itself.
            raise self._dependent(point, min(marked))
        if sum(isa.facts(s).slots for i in twice if isinstance(s := view.body[i], Instruction)) > DEAR:
            raise self._dependent(point, min(twice))

    def _leaves(self, index: int, loop: Loop, kept: frozenset[int]) -> bool:
        """Whether one of the ``kept`` statements outside of ``loop`` reads what a statement in it writes."""
        view, written = self.view, effects.writes(self.view.body[index])
        outside = (i for i in kept if view.cfg.block_of(i) not in loop.blocks)
        read = ((i, name) for i in outside for name in effects.needs(view.body[i]) & written)
        return any(index in view.reaching.reaching(i, name) for i, name in read)

    def _dependent(self, point: Point, index: int) -> Refusal:
        value = computed_value(self.view, index)
        return refuse(refusal.NEXT_ITERATION, point.annotation.place, value.name, notes=value.notes)


def _pure(view: View, statement: Instruction) -> bool:
    """Whether running a statement, or omitting it, changes only the registers that it writes."""
    return isa.facts(statement).pure or repeatable(view, statement)
