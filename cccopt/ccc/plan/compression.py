"""Context compression: values that cheap arithmetic rebuilds from others are rebuilt after the pop (DESIGN 4.1).

        cvt.s64.s32 %rd2, %r22;     P reads %rd2 (8 bytes): %r22 (4 bytes) is collected instead,
        @%p2 bra    J;              and each task begins with the conversion

`cccopt.ccc.plan.rematerialization` determines which values can be computed again, and from which others. The choice is
a minimum cut: nodes are values, with edges from the operands of a computation to its result. Cutting a value means
collecting it and costs its bytes; leaving it on the side of the sink means rebuilding it and costs its issue slots.
Only a value that its register still holds where the path begins can be collected. Khorasani 2016, 4.1.3 (the thesis
looks at direct operands only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from cccopt.ccc.function.view import View
from cccopt.ccc.plan.context import LiveIn, Placement
from cccopt.ccc.plan.rematerialization import Outer, ReachingValue, Rematerialization, Step
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Marker
from cccopt.ptx.isa import width

STORE_A_BYTE, LOAD_A_BYTE = 1.0, 1.0
"""The cost of a byte of context in issue slots: storing four bytes takes four, loading and moving them about four."""

TAKEN = 0.9
"""The factor for the cost of a value in tasks if it is not computed before the branch: a little less than 1, because
not all lanes take the path.
"""

HOISTED = "hoisted"
"""The attribute of a begin marker that names the registers whose loads were moved before the path."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """Live-ins with their final decisions, including registers collected to rebuild others from, and the rebuilding
    steps in order.

    ``shared`` are operands of the steps that need no slot, because they are live-ins that are left out or rebuilt
    before the loop.
    """

    live_ins: tuple[LiveIn, ...]
    steps: tuple[Step, ...] = ()
    shared: tuple[tuple[ReachingValue, LiveIn], ...] = ()


def compress(
    view: View,
    region: Region,
    path: Path,
    live_ins: Sequence[LiveIn],
    outer: Outer | None = None,
) -> Compressed:
    """The cheapest choice of what to collect for ``live_ins``; ``outer`` is the path around ``path``, if there is one.

    Values that a variable loop writes are rebuilt only if they are computed the same way on every path to its header.
    """
    (found,) = compress_together(view, region, ((path, live_ins),), outer)
    return found


def compress_together(
    view: View,
    region: Region,
    paths: Sequence[tuple[Path, Sequence[LiveIn]]],
    outer: Outer | None = None,
    *,
    one_stack: bool = True,
    sunk: frozenset[int] = frozenset(),
) -> tuple[Compressed, ...]:
    """The cheapest choice for n paths that exclude each other: a value that k of them rebuild costs k / n of its slots.

    With ``one_stack``, an iteration stores a value once; with separate stacks, once for each of the k paths. Only tasks
    of the paths run the statements ``sunk``.
    """
    live = {live.name for _, live_ins in paths for live in live_ins}
    values = Rematerialization(view, region, [path for path, _ in paths], live, outer, sunk)
    found = _Cut(values, one_stack).choose([tuple(live_ins) for _, live_ins in paths])
    return tuple(_with_hoisted(view, path, choice) for (path, _), choice in zip(paths, found, strict=True))


def _with_hoisted(view: View, path: Path, choice: Compressed) -> Compressed:
    """The choice with a note on what was loaded before the path (`cccopt.passes.hoist_loads`)."""
    block = view.cfg.blocks[view.block_of_name[path.begin]]
    markers = (s for i in block.statements() if isinstance(s := view.body[i], Marker))
    hoisted = {n for m in markers for n in dict(m.attributes).get(HOISTED, "").split(",")}
    return replace(
        choice,
        live_ins=tuple(
            replace(i, reason=f"loaded before the path{_lanes(path)}")
            if i.name in hoisted and i.decision == Placement.COLLECTED
            else i
            for i in choice.live_ins
        ),
    )


def _lanes(path: Path) -> str:
    return " as `hoist` asks" if path.annotation.hoist else ": coalesced"


@dataclass(frozen=True, slots=True)
class _Cut:
    """The choice of which ``values`` to collect."""

    values: Rematerialization
    one_stack: bool

    def choose(self, contexts: Sequence[tuple[LiveIn, ...]]) -> tuple[Compressed, ...]:
        """The final decisions for the live-ins of each path."""
        view = self.values.view
        wanted = [
            {
                i.name: ReachingValue(i.name, view.reaching.reaching(begin, i.name), True)
                for i in live_ins
                if i.decision == Placement.COLLECTED and i.name in view.types
            }
            for begin, live_ins in zip(self.values.begins, contexts, strict=True)
        ]
        reached = self.values.reach([key for keys in wanted for key in keys.values()])
        if not self.values.steps:
            return tuple(Compressed(live_ins) for live_ins in contexts)
        _, (source, _) = nx.minimum_cut(self._graph(reached, wanted), "source", "sink")
        return tuple(
            self._chosen(live_ins, keys, source) for live_ins, keys in zip(contexts, wanted, strict=True)
        )

    def _chosen(
        self, live_ins: tuple[LiveIn, ...], keys: dict[str, ReachingValue], source: set[object]
    ) -> Compressed:
        rebuilt: dict[ReachingValue, Step] = {}
        collected: dict[ReachingValue, None] = {}
        for key in keys.values():
            self._decide(key, source, rebuilt, collected)
        if not rebuilt:
            return Compressed(live_ins)
        names = {key.register for key in collected}
        out = [self._decided(i, keys, rebuilt) for i in live_ins]
        known = {i.name for i in live_ins}
        extra = (
            LiveIn(n, self.values.view.types[n], Placement.COLLECTED, "other values are recomputed from it")
            for n in sorted(names - known)
        )
        shared = tuple(
            (k, self.values.shared[k])
            for s in rebuilt.values()
            for _, k in s.operands
            if k in self.values.shared
        )
        return Compressed((*out, *extra), tuple(rebuilt.values()), shared)

    def _decided(
        self, live: LiveIn, keys: dict[str, ReachingValue], rebuilt: dict[ReachingValue, Step]
    ) -> LiveIn:
        key = keys.get(live.name)
        if key not in rebuilt:
            return live
        sources = ", ".join(f"`{name}`" for name, _ in rebuilt[key].operands) or "constants"
        return replace(
            live, decision=Placement.RECOMPUTED, reason=f"each task computes it again from {sources}"
        )

    def _decide(
        self,
        key: ReachingValue,
        source: set[object],
        rebuilt: dict[ReachingValue, Step],
        collected: dict[ReachingValue, None],
    ) -> None:
        """Collects or rebuilds a value, operands first."""
        if key in self.values.shared or key in rebuilt or key in collected:
            return
        if (key, "in") in source:
            collected[key] = None
            return
        for _, operand in self.values.steps[key].operands:
            self._decide(operand, source, rebuilt, collected)
        rebuilt[key] = self.values.steps[key]

    def _graph(
        self, reached: Sequence[ReachingValue], wanted: Sequence[Mapping[str, ReachingValue]]
    ) -> nx.DiGraph:
        """The values with the cost of collecting them, of rebuilding them, and of computing them before the branch.

        Prices are integers, so equal ones compare equal.
        """
        graph, values = nx.DiGraph(), self.values
        users = [values.sources(keys.values()) for keys in wanted]
        for key in reached:
            count = sum(key in found for found in users)
            share = count / len(users)
            if key.held and values.is_readable(key.register):
                kind = values.view.types[key.register]
                bits = 8 if kind == "pred" else width(kind)
                slots = bits / 8 * ((1 if self.one_stack else count) * STORE_A_BYTE + share * LOAD_A_BYTE)
                graph.add_edge((key, "in"), (key, "out"), capacity=_price(slots))
            else:
                graph.add_edge((key, "in"), (key, "out"))
            step = values.steps.get(key)
            if step is None:
                graph.add_edge("source", (key, "in"))
                continue
            instruction = values.view.body[step.statement]
            assert isinstance(instruction, Instruction)
            slots = isa.facts(instruction).slots
            if values.sinks(step):
                graph.add_edge((key, "in"), "sink", capacity=_price(slots))
                share *= TAKEN
            graph.add_edge("source", (key, "in"), capacity=_price(slots * share))
            for _, operand in step.operands:
                if operand not in values.shared:
                    graph.add_edge((operand, "out"), (key, "in"))
        for keys in wanted:
            for key in keys.values():
                graph.add_edge((key, "out"), "sink")
        return graph


def _price(slots: float) -> int:
    return round(slots * 1000)
