"""Reductions: registers that iterations only update with one associative operator, as in `reduce(+: sum)` (DESIGN 4.3).

Names do not survive into PTX, so reductions are found by shape. The *values* of an accumulator are what its register
holds at the marked loop's header and all that the loop derives from it

        add.f32 %f1, %f1, %f9;      an update by `+`: %f1 is an operand, %f9 none of its values
        mov.f32 %f2, %f1;           a copy
        selp.f32 %f1, %f2, %f1, %p; a choice among values

and nothing else in the loop reads one. A task then starts with the operator's identity instead of the value and ends
with its contribution, and the contributions of all tasks may be combined in any order. In the *any-lane* form, each
lane accumulates what it runs, for itself or for others; that is right if the values of all lanes end in one atomic of
the operator on one address after the loop. Otherwise, the *owner* of a task gets its contribution.

Safety: REASSOCIATES for floating-point `+` and `*`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.liveness import upward_exposed
from cccopt.ccc.function.graph import reachable, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.extremes import extremes
from cccopt.ccc.legality.lost_values import lost_value
from cccopt.ccc.legality.operators import Operator, hands_on, operator_of
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.clauses import FLAG_OPERATORS
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Register
from cccopt.ptx.isa import Memory, Role

Value = tuple[int, str]
"""A definition (a statement's index, or ENTRY) and the register that it writes."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """An accumulator of a region: the register that holds it at the loop's header, its values in and before the loop,
    and for each statement that updates it, the register written and the operand updated.

    ``at_exits`` are the registers that hold it where lanes leave the loop; ``any_lane`` says whether the values of all
    lanes end in one result there.
    """

    register: str
    operator: Operator
    values: frozenset[Value]
    updates: Mapping[int, tuple[str, str]]
    at_exits: frozenset[str]
    any_lane: bool = False

    @cached_property
    def _names(self) -> frozenset[str]:
        """The registers of its values."""
        return frozenset(name for _, name in self.values)

    def live(self, view: View, block: int) -> frozenset[str]:
        """The registers that hold a value at the beginning of ``block`` and are read later."""
        start = view.cfg.blocks[block].start
        return frozenset(n for n in self._names & view.liveness.live_in[block] if self.holds(view, start, n))

    def live_after(self, view: View, index: int) -> frozenset[str]:
        """The registers that hold a value after a statement and are read later."""
        return frozenset(
            n
            for n in self._names & view.liveness.live_after(index)
            if any((d, n) in self.values for d in view.reaching.reaching_after(index, n))
        )

    def holds(self, view: View, statement: int, name: str) -> bool:
        """Whether a register may hold a value just before ``statement``."""
        return name in self._names and any(
            (d, name) in self.values for d in view.reaching.reaching(statement, name)
        )


@dataclass(frozen=True)
class Reductions:
    """The accumulators of a region, and for registers that are not accumulators the reason, as a clause."""

    found: tuple[Reduction, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def updating(self, index: int) -> Reduction | None:
        """The reduction that a statement updates."""
        return next((r for r in self.found if index in r.updates), None)

    def of(self, view: View, path: Path) -> tuple[Reduction, ...]:
        """The reductions that the code of ``path`` updates and that a task can update: each is in one register, the one
        of the loop's header, and nothing else keeps an older value of it.
        """
        inside = set(view.statements(path.nodes))
        begin = view.cfg.blocks[view.block_of_name[path.begin]].start
        blocks = view.blocks_of(path.nodes)
        stops = [block.start for block in view.cfg.blocks if block.index not in blocks]
        users = [r for r in self.found if inside & r.updates.keys()]
        exposed = upward_exposed(view.cfg, view.body, begin, stops) if users else frozenset()
        writers: dict[str, list[int]] = {}
        for index in sorted(inside) if users else ():
            for name in effects.writes(view.body[index]):
                writers.setdefault(name, []).append(index)
        chosen: list[Reduction] = []
        for r in users:
            written = writers.get(r.register, ())
            only = frozenset({r.register})
            given = frozenset(n for n in exposed if r.holds(view, begin, n))
            left = r.live(view, view.block_of_name[path.end])
            if given <= only and left == only and all((i, r.register) in r.values for i in written):
                chosen.append(r)
        return tuple(chosen)

    def movable(self, view: View, index: int) -> bool:
        """Whether an update may run elsewhere: nothing keeps the value that it updates, or makes a decision that
        depends on it.
        """
        r = self.updating(index)
        statement = view.body[index]
        if isinstance(statement, Instruction) and statement.base == "selp":
            return False
        return r is not None and r.live_after(view, index) == frozenset({r.updates[index][0]})


def no_reduction(view: View, region: Region, path: Path, name: str, reductions: Reductions) -> Refusal:
    """The refusal for a register whose value from one run of a path is read in a later one."""
    reason = reductions.reasons.get(name)
    value = lost_value(view, path, name, carried=True)
    if not region.annotation.reductions:
        return refuse(refusal.CARRIED, path.annotation.place, value.name, notes=value.notes)
    why = refusal.CARRIED.why + f"; it is not a reduction: {reason or 'the path does not only update it'}"
    help = (
        "in the paths, use the variable only to update it with the operator that the clause names; or update it in"
        " memory (atomicAdd), or make iterations independent"
    )
    return refuse(refusal.CARRIED, path.annotation.place, value.name, why=why, notes=value.notes, help=help)


def reductions(view: View, region: Region) -> Reductions:
    """The accumulators of ``region`` whose operators its pragma names; none without the clause."""
    if not region.annotation.reductions:
        return Reductions()
    search = _Search(view, region)
    header = view.block_of_name[region.header]
    written = {n for i in search.inside for n in effects.writes(view.body[i])}
    found: list[Reduction] = []
    reasons: dict[str, str] = {}
    for name in sorted(view.liveness.live_in[header] & written):
        try:
            made = search.follow(name)
        except _Not as reason:
            reasons[name] = str(reason)
            continue
        if made is not None and named_for(region, made.operator.sign):
            found.append(made)
        elif made is not None:
            reasons[name] = f"the clause `reduce` names no variable updated by `{made.operator.sign}`"
    return Reductions(tuple(found), reasons)


def named_for(region: Region, sign: str) -> tuple[str, ...]:
    """The variables of the region's clauses that an operator may update; for `|`, also flags, which are kept as words
    (`cccopt.passes.flag_reductions`).
    """
    meant = FLAG_OPERATORS if sign == "|" else {sign}
    return tuple(variable for written, variable in region.annotation.reductions if written in meant)


def loop_sums(view: View, region: Region, path: Path, names: Collection[str]) -> tuple[Reduction, ...] | None:
    """The registers ``names``, which a loop of tasks leaves for later code, as accumulators that its inner iterations
    only update. None unless all of them are, and the region's clause names the operators of floating-point ones.
    """
    signs = {sign for sign, _ in region.annotation.reductions}
    search = _Search(view, replace(region, header=path.begin, nodes=path.nodes, preheader=frozenset()))
    found: list[Reduction] = []
    for name in sorted(names):
        try:
            made = search.follow(name, any_lane=False)
        except _Not:
            return None
        if (
            made is None
            or made.at_exits != {name}
            or (made.operator.floating and made.operator.sign not in signs)
        ):
            return None
        found.append(made)
    return tuple(found)


class _Not(Exception):
    """The register is not an accumulator, for the reason given in the message."""


class _Search:
    """Follows registers through the statements of a marked loop."""

    def __init__(self, view: View, region: Region) -> None:
        self.view = view
        self.region = region
        self.inside = frozenset(view.statements(region.nodes))
        self.extremes = extremes(view, self.inside)

    def follow(self, name: str, *, any_lane: bool = True) -> Reduction | None:
        """The reduction in the register ``name``; None if no operator updates it. Raises _Not."""
        view = self.view
        header = view.block_of_name[self.region.header]
        start = view.cfg.blocks[header].start
        seeds = {(d, name) for d in view.reaching.reaching(start, name)}
        values: set[Value] = set()
        steps: set[int] = set()
        updates: dict[int, tuple[str, str]] = {}
        operator: Operator | None = None
        work = sorted(seeds)
        while work:
            value = work.pop()
            if value in values:
                continue
            values.add(value)
            for index in self.view.readers.get(value, ()):
                if index not in self.inside:
                    continue
                statement = self.instruction(index)
                if value[1] in self.chosen(self.extremes.compares.get(index)):
                    continue
                update = operator_of(statement, value[1])
                if value[1] in self.chosen(index):
                    update = Operator(*self.extremes.choices[index][:2])
                if update is not None:
                    if operator is not None and not operator.merges(update):
                        raise _Not(f"`{self.text(index)}` updates it with a different operator")
                    ftz = update.ftz or (operator is not None and operator.ftz)
                    operator = Operator(update.sign, update.type, ftz, update.nan)
                    updates[index] = (isa.definitions(statement)[0].name, value[1])
                elif not hands_on(statement, value[1]):
                    raise _Not(f"`{self.text(index)}` reads it in the loop")
                steps.add(index)
                work += [(index, written.name) for written in isa.definitions(statement)]
        if operator is None:
            return None
        stray = next((d for d, _ in sorted(seeds) if d in self.inside and d not in steps), None)
        if stray is not None:
            raise _Not(f"`{self.text(stray)}` overwrites it in the loop")
        for index in sorted(steps):
            if index in updates and not operator.is_idempotent:
                # A task's part of `s` would be doubled in its place: t = s + x; s = t + s.
                others = effects.reads(self.instruction(index)) - {updates[index][1]}
                if any((d, n) in values for n in others for d in view.reaching.reaching(index, n)):
                    raise _Not(f"`{self.text(index)}` combines two values of it")
            for read in self.operands(index, updates):
                if any((d, read) not in values for d in view.reaching.reaching(index, read)):
                    raise _Not(f"`{self.text(index)}` may start from another value")
        made = Reduction(name, operator, frozenset(values), updates, frozenset())
        if made.live(view, header) != {name}:
            raise _Not("an older value of it is kept")
        exits = self.exits()
        held = [made.live(view, view.block_of_name[e]) for e in exits if e in view.block_of_name]
        if any(len(names) > 1 for names in held):
            raise _Not("an older value of it is read after the loop")
        at_exits = frozenset().union(*held)
        any_lane = any_lane and _AnyLane(view, self.region, made, exits).holds()
        return Reduction(name, operator, made.values, updates, at_exits, any_lane)

    def chosen(self, index: int | None) -> frozenset[str]:
        """The registers that a statement may update by choosing the smaller or larger one."""
        choice = None if index is None else self.extremes.choices.get(index)
        return frozenset() if choice is None else choice[2]

    def operands(self, index: int, updates: Mapping[int, tuple[str, str]]) -> Iterator[str]:
        """The registers in which a statement of the web must find values."""
        statement = self.instruction(index)
        if index in updates:
            yield updates[index][1]
        else:
            # For a choice, both of its sources; the condition comes last.
            sources = statement.operands[1:3] if statement.base == "selp" else statement.operands[1:]
            for operand in sources:
                if not isinstance(operand, Register):
                    raise _Not(f"`{self.text(index)}` may overwrite it in the loop")
                yield operand.name
        if statement.guard is not None:
            yield from (written.name for written in isa.definitions(statement))

    def exits(self) -> frozenset[str]:
        """Where lanes go when they leave the loop, or go past it."""
        nodes, region = self.view.graph.nodes, self.region
        ways = frozenset(t for n in region.nodes for t in targets(nodes[n].end)) - region.nodes
        past = frozenset(t for n in region.preheader for t in targets(nodes[n].end))
        return (ways | (past - region.nodes - region.preheader)) - self.view.traps

    def instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement

    def text(self, index: int) -> str:
        return self.view.origins.text(index).rstrip(";")


class _AnyLane:
    """Whether all that lanes do with a reduction after the loop is to combine it, once, into one common result."""

    def __init__(self, view: View, region: Region, reduction: Reduction, exits: Collection[str]) -> None:
        self.view = view
        self.region = region
        self.reduction = reduction
        self.exits = exits
        self.around = view.blocks_of(region.nodes | region.preheader)

    def holds(self) -> bool:
        view, r = self.view, self.reduction
        blocks = [view.block_of_name.get(e) for e in sorted(self.exits)]
        values: set[Value] = set()
        for block in blocks:
            names = r.live(view, block) if block is not None else frozenset()
            if block is None or len(names) != 1:
                return False
            (name,) = names
            start = view.cfg.blocks[block].start
            values |= {(d, name) for d in view.reaching.reaching(start, name)}
        select = view.cfg.blocks[view.block_of_name[self.region.select]].start
        loop = view.blocks_of(self.region.nodes)
        # A loop around the region may bring an old value back.
        again = view.reaching.reaching(select, r.register)
        if any(d >= 0 and view.cfg.block_of(d) in loop for d in again):
            return False
        atomics = self._atomics(values)
        return atomics is not None and bool(atomics) and all(map(self._by_all, atomics))

    def _atomics(self, values: set[Value]) -> list[int] | None:
        """The atomics after the loop that read the values, or copies of them; None if anything else reads them."""
        view = self.view
        loop = view.blocks_of(self.region.nodes)
        made = {d for d, _ in values if view.cfg.block_of(max(d, 0)) in loop and d >= 0}
        found: list[int] = []
        uses: dict[int, str] = {}
        work = sorted(values)
        while work:
            definition, name = work.pop()
            for index in view.readers.get((definition, name), ()):
                block = view.cfg.block_of(index)
                if index in uses or (definition in made and block in loop):
                    continue
                if block in self.around:
                    # Code before the loop can read only what an earlier run of it, or a later copy, left.
                    if definition in made or definition in uses:
                        return None
                    continue
                statement = view.body[index]
                assert isinstance(statement, Instruction)
                uses[index] = name
                if statement.base == "mov" and statement.guard is None and len(statement.operands) == 2:
                    values |= {(index, written.name) for written in isa.definitions(statement)}
                elif self._fits(index, statement, name):
                    found.append(index)
                else:
                    return None
                work += sorted((index, n) for n in effects.writes(statement) if (index, n) in values)
        # Any other value that reaches an atomic would also go into the result, from some lanes.
        for index, name in uses.items():
            if any((d, name) not in values for d in view.reaching.reaching(index, name)):
                return None
        return found

    def _fits(self, index: int, atomic: Instruction, name: str) -> bool:
        """Whether a statement is an atomic of the operator whose result nothing reads, on an address that all lanes
        share.
        """
        operator = self.reduction.operator
        facts = isa.facts(atomic)
        if facts.memory is not Memory.ATOMIC or atomic.guard is not None or operator.atomic is None:
            return False
        # Its result, if it has one, comes first.
        address, *others = atomic.operands[1:] if facts.roles[0] is Role.DEF else atomic.operands
        kind = operator.atomic.partition(".")[2]
        kinds = (
            {kind}
            if operator.floating or operator.is_extreme
            else {f"{sign}{operator.bits}" for sign in "usb"}
        )
        alike = facts.reduction == operator.sign and atomic.parts[-1] in kinds
        if not alike or others != [Register(name)] or not isinstance(address, Address):
            return False
        base = address.base
        uniform = not isinstance(base, Register) or (
            base.name != name and self.view.uniformity.is_uniform_use(index, base.name)
        )
        return uniform and not effects.writes(atomic) & self.view.liveness.live_after(index)

    def _by_all(self, atomic: int) -> bool:
        """Whether every lane that leaves the loop reaches a statement exactly once before the loop's next run."""
        view = self.view
        block, select = view.cfg.block_of(atomic), view.block_of_name[self.region.select]
        if view.innermost(block) != view.innermost(select):
            return False
        others = {n: node for n, node in view.graph.nodes.items() if view.block_of_name.get(n) != block}
        past = reachable(others, self.exits)
        leaving = any(not targets(others[n].end) and n not in view.traps for n in past)
        return not leaving and self.region.select not in past
