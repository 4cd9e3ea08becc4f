"""Counted loops whose trips are tasks, without a stack: the warp lays the trips of all its lanes side by side and runs
32 of them at a time (`cccopt.ccc.trips` finds such loops).

        lane    0  1  2  3 ...      place   0 1 2 | 3 | 4 5 6 7 8 ...
        trips   3  0  1  5          lane    0 0 0 | 2 | 3 3 3 3 3
        ends    3  3  4  9          trip    0 1 2 | 0 | 0 1 2 3 4

    expand: ends = inclusive sum of the lanes' trips; total = that of lane 31
    window: place = base + lane;  owner = the first lane whose end is above it, by binary search
            the owner's registers come by shuffles, those that grow from trip to trip from the number of the trip
            lanes with place < total run one trip;  base += 32; base < total: window

Trips of neighbouring places run in neighbouring lanes: loads that follow the loop's counter are coalesced. Sums stay
below 2^31 because a lane lays out no more than `MOST` trips at a time.

Khorasani 2016, 4.2 does this by hand (CTE); the search is that of Davidson, Baxter, Garland, Owens, "Work-efficient
parallel GPU methods for single-source shortest paths", IPDPS 2014, over a warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cccopt.ccc.code import FULL_WARP, flag_op, number, op, predicate
from cccopt.ccc.graph import UNIFORM, Branch, End, Jump, Node, Nodes, copy
from cccopt.ccc.names import Names
from cccopt.ccc.plan import PathPlan, own
from cccopt.ccc.trips import CountedLoop
from cccopt.ptx.ir import Guard, Instruction, Operand, Pair, Register, Statement, Vector
from cccopt.ptx.isa import width

MOST = 1 << 26
"""Trips of a lane that are laid out at a time."""

STEPS = (16, 8, 4, 2, 1)


@dataclass(frozen=True)
class ExpandedSite:
    """The site of one counted loop: ``lane`` is the register of the lane's number, ``trip`` the nodes of one trip on
    the program's registers, entered at the path's beginning; it ends at ``next``.
    """

    path: PathPlan
    loop: CountedLoop
    trip: Mapping[str, Node]
    next: str
    lane: Register
    names: Names
    region: int

    def nodes(self, flag: Guard, behind: str, certain: bool) -> tuple[Nodes, str]:
        """The site's nodes and its first, where lanes with ``flag`` have trips, and all if ``certain``."""
        r, names = self.names.register, self.names
        nodes: Nodes = {}
        has, more, some = (Guard(r("pred")) for _ in range(3))
        left = r(f"b{width(self.loop.count.type)}")
        starts = {name: r(self._type(name)) for name in self.loop.steps}
        firsts = {name: r(self._type(name)) for name in self.loop.steps}
        ends, ahead, total, base, place, owner = (r("b32") for _ in range(6))
        lay, window, again = (names.label(what) for what in ("lay", "window", "again"))

        # What lanes wrote ahead of the loop, trips read in other lanes.
        count = [op("bar.warp.sync", FULL_WARP), *self._count(left), flag_op(has.register, flag)]
        count += [op(f"mov.b{width(self._type(n))}", start, own(n)) for n, start in starts.items()]
        phase = self.path.phase
        expand = self._node(nodes, names.label("expand"), count, Jump(lay), phase("expand"))

        code = [*self._trips(left, has, ahead), *self._sum(ahead, ends)]
        code += [op("shfl.sync.idx.b32", total, ends, 31, 31, FULL_WARP), op("sub.s32", ahead, ends, ahead)]
        code += [self._add(n, firsts[n], ahead, -step, starts[n]) for n, step in self.loop.steps.items()]
        code += [op("mov.u32", base, 0), op("mov.u32", place, self.lane)]
        self._node(nodes, lay, code, Jump(window))

        busy, last = Guard(r("pred")), Guard(r("pred"))
        copies, names_of = copy(self.trip.values(), names, self.path.rewrite)
        nodes.update(copies)
        code = [*self._search(ends, place, owner), *self._received(firsts, owner, place)]
        code += [*self.path.unpacking, op("setp.lt.u32", busy.register, place, total)]
        begin = names_of[self.path.path.begin]
        self._node(nodes, window, code, Branch(busy, begin, self.next), phase("trip"))
        step = [op("add.u32", base, base, 32), op("add.u32", place, place, 32)]
        step += [op("setp.lt.u32", last.register, base, total)]
        ended = names.label("ended")
        self._node(nodes, self.next, step, Branch(last, window, ended, UNIFORM))

        bits = width(self.loop.count.type)
        code = [op(f"setp.ge.and.u{bits}", more.register, left, MOST, has.register)]
        code += [op("vote.sync.any.pred", some.register, predicate(more), FULL_WARP)]
        self._node(nodes, ended, code, Branch(some, again, behind, UNIFORM))
        code = [op(f"sub.s{bits}", left, left, MOST), op("mov.pred", has.register, more.register)]
        for name, at in self.loop.steps.items():
            code += [self._add(name, starts[name], ahead, at, firsts[name])]
            code += [op(f"add.s{width(self._type(name))}", starts[name], starts[name], MOST * at)]
        self._node(nodes, again, code, Jump(lay))
        if certain:
            return nodes, self._node(
                nodes, names.label("join"), [op("mov.pred", flag.register, 1)], Jump(expand)
            )
        wanted = Guard(r("pred"))
        vote = [op("vote.sync.any.pred", wanted.register, predicate(flag), FULL_WARP)]
        return nodes, self._node(nodes, names.label("join"), vote, Branch(wanted, expand, behind, UNIFORM))

    def _node(self, nodes: Nodes, name: str, code: Iterable[Statement], end: End, phase: str = "") -> str:
        nodes[name] = Node(name, tuple(code), end, self.region, phase)
        return name

    def _type(self, name: str) -> str:
        return next(v.type for v in self.path.stack.layout.values() if v.name == name)

    def _count(self, left: Register) -> list[Instruction]:
        """The trips behind the first one that a lane with any has left."""
        count, r = self.loop.count, self.names.register
        bits = width(count.type)
        first, distance = r(f"b{bits}"), r(f"b{bits}")
        up = count.step > 0
        code = [
            op(f"add.s{bits}", first, Register(count.register), count.offset),
            op(f"sub.s{bits}", distance, *((count.bound, first) if up else (first, count.bound))),
        ]
        if count.compare == "ne":
            return [*code, op(f"shr.u{bits}", left, distance, abs(count.step).bit_length() - 1)]
        goes = r("pred")
        if count.compare in ("le", "ge"):
            code.append(op(f"add.s{bits}", distance, distance, 1))
        code.append(op(f"setp.{count.compare}.{count.type}", goes, first, count.bound))
        return [*code, op(f"selp.b{bits}", left, distance, 0, goes)]

    def _trips(self, left: Register, has: Guard, trips: Register) -> list[Instruction]:
        """The trips that a lane lays out now."""
        bits = width(self.loop.count.type)
        some = left if bits == 32 else self.names.register("b64")
        code = [op(f"min.u{bits}", some if bits == 64 else trips, left, MOST - 1)]
        if bits == 64:
            code.append(op("cvt.u32.u64", trips, some))
        return [*code, op("add.s32", trips, trips, 1), op("selp.b32", trips, trips, 0, has.register)]

    def _sum(self, trips: Register, ends: Register) -> list[Instruction]:
        """The inclusive sum over the lanes."""
        code = [op("mov.b32", ends, trips)]
        for step in reversed(STEPS):
            other, below = self.names.register("b32"), self.names.register("pred")
            code += [
                Instruction(
                    "shfl.sync.up.b32",
                    (Pair(other, below), ends, number(step), number(0), FULL_WARP),
                ),
                op("add.s32", ends, ends, other, guard=Guard(below)),
            ]
        return code

    def _search(self, ends: Register, place: Register, owner: Register) -> list[Instruction]:
        """The first lane whose end is above the place; lane 31 where none is."""
        code = [op("mov.u32", owner, 0)]
        for step in STEPS:
            end, probe, above = (
                self.names.register("b32"),
                self.names.register("b32"),
                self.names.register("pred"),
            )
            code += [
                op("add.s32", probe, owner, step - 1),
                op("shfl.sync.idx.b32", end, ends, probe, 31, FULL_WARP),
                op("setp.le.u32", above, end, place),
                op("add.s32", owner, owner, step, guard=Guard(above)),
            ]
        return code

    def _received(
        self, firsts: Mapping[str, Register], owner: Register, place: Register
    ) -> list[Instruction]:
        """The registers of the trip at the lane's place, from its owner."""
        stack = self.path.stack
        code: list[Instruction] = []
        for word in stack.layout.words:
            packing, source = stack.pack(word, lambda name: firsts.get(name, own(name)))
            target = self.names.register(word.type) if word.packed else self.path.task(word.values[0].name)
            code += [*packing, *self._shuffled(word.size, target, source, owner)]
            if word.packed:
                code += stack.unpack(word, target, self.path.task)
        return [
            *code,
            *(
                self._add(n, self.path.task(n), place, at, self.path.task(n))
                for n, at in self.loop.steps.items()
            ),
        ]

    def _shuffled(self, size: int, target: Register, source: Register, owner: Register) -> list[Instruction]:
        if size == 4:
            return [op("shfl.sync.idx.b32", target, source, owner, 31, FULL_WARP)]
        parts = [self.names.register("b32") for _ in range(2)]
        moved = [self.names.register("b32") for _ in range(2)]
        return [
            op("mov.b64", Vector(tuple(parts)), source),
            *(op("shfl.sync.idx.b32", m, p, owner, 31, FULL_WARP) for m, p in zip(moved, parts, strict=True)),
            op("mov.b64", target, Vector(tuple(moved))),
        ]

    def _add(self, name: str, target: Register, trips: Register, step: int, start: Operand) -> Instruction:
        """``start`` and so many times the step, for the register ``name``: places are below 2^31."""
        kind = "mad.wide.s32" if width(self._type(name)) == 64 else "mad.lo.s32"
        return op(kind, target, trips, step, start)
