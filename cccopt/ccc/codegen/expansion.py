"""Counted loops whose trips are tasks, without a stack: the warp lays the trips of all its lanes side by side and runs
32 of them at a time (`cccopt.ccc.legality.counted_loops` finds such loops).

        lane    0  1  2  3 ...      place   0 1 2 | 3 | 4 5 6 7 8 ...
        trips   3  0  1  5          lane    0 0 0 | 2 | 3 3 3 3 3
        ends    3  3  4  9          trip    0 1 2 | 0 | 0 1 2 3 4

    lay:    ends = inclusive sum of the lanes' trips; rest = that of lane 31
            slot = in lane k, the k-th lane that has trips
    window: each lane marks the place ahead of its trips: the number of marks below a place says which of the lanes with
            trips it belongs to, the owner
            the owner's registers come by shuffles, those that grow from trip to trip from the number of the trip
            lanes below rest run one trip;  rest -= 32; rest > 0: window

Trips of neighbouring places run in neighbouring lanes: loads that follow the loop's counter are coalesced. Sums stay
below 2^31 because a lane lays out no more than `MOST` trips at a time.

Khorasani 2016, 4.2 does this by hand (CTE), with a binary search in place of marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cccopt.ccc.function.code import FULL_WARP, flag_op, number, op, predicate
from cccopt.ccc.function.graph import UNIFORM, Branch, End, Jump, Node, Nodes, copy
from cccopt.ccc.function.names import Names
from cccopt.ccc.legality.counted_loops import CountedLoop
from cccopt.ccc.plan.partials import put
from cccopt.ccc.plan.plan import PathPlan, own
from cccopt.ptx.ir import Guard, Instruction, Operand, Pair, Register, SpecialRegister, Statement, Vector
from cccopt.ptx.isa import width

MOST = 1 << 25
"""Trips of a lane that are laid out at a time."""

STEPS = (16, 8, 4, 2, 1)

REDUX = op("redux.sync.or.b32", 0, 0, FULL_WARP)
"""What brings the bits of all lanes together at once, where the target has it."""


@dataclass(frozen=True, slots=True)
class _Marks:
    """Registers: the place in the window that is ahead of where a lane's trips begin, how many lanes' trips but the
    first's have begun up to the place ahead of the window, in lane k the k-th lane that has trips, the place behind a
    lane's last trip (for sums alone), and all lanes' marks in the window.
    """

    begin: Register
    begun: Register
    slot: Register
    end: Register
    begins: Register


@dataclass(frozen=True)
class ExpandedSite:
    """The site of one counted loop: ``lane`` and ``before`` are the registers of the lane's number and of the mask of
    those below it, ``trip`` the nodes of one trip on the program's registers, entered at the path's beginning; it ends
    at ``next``. ``redux`` tells whether the target has `redux.sync`.
    """

    path: PathPlan
    loop: CountedLoop
    trip: Mapping[str, Node]
    next: str
    lane: Register
    before: Register
    names: Names
    region: int
    redux: bool

    def nodes(self, flag: Guard, behind: str, certain: bool) -> tuple[Nodes, str]:
        """The site's nodes and its first, where lanes with ``flag`` have trips, and all if ``certain``."""
        r, names = self.names.register, self.names
        nodes: Nodes = {}
        has, more, some = (Guard(r("pred")) for _ in range(3))
        left = r(f"b{width(self.loop.count.type)}")
        starts = {name: r(self._type(name)) for name in self.loop.steps}
        firsts = {name: r(self._type(name)) for name in self.loop.steps}
        trips, ends, ahead, rest = (r("b32") for _ in range(4))
        lay, window, again = (names.label(what) for what in ("lay", "window", "again"))
        marks = _Marks(*(r("b32") for _ in range(5)))

        # What lanes wrote ahead of the loop, trips read in other lanes.
        count = [op("bar.warp.sync", FULL_WARP), *self._count(left), flag_op(has.register, flag)]
        count += [op(f"mov.b{width(self._type(n))}", start, own(n)) for n, start in starts.items()]
        phase = self.path.phase
        expand = self._node(nodes, names.label("expand"), count, Jump(lay), phase("expand"))

        code = [*self._trips(left, has, trips), *self._sum(trips, ends)]
        code += [op("shfl.sync.idx.b32", rest, ends, 31, 31, FULL_WARP), op("sub.s32", ahead, ends, trips)]
        code += [self._add(n, firsts[n], ahead, -step, starts[n]) for n, step in self.loop.steps.items()]
        self._close_up(nodes, lay, code, marks, (trips, ahead, ends), window)

        busy, last = Guard(r("pred")), Guard(r("pred"))
        copies, names_of = copy(self.trip.values(), names, self.path.rewrite)
        nodes.update(copies)
        owner = r("b32")
        code = [
            *self._owner(marks, owner),
            *(p.reset for p in self.path.sums),
            *self._received(firsts, owner),
        ]
        code += [*self.path.restore, op("setp.lt.s32", busy.register, self.lane, rest)]
        begin = names_of[self.path.path.begin]
        self._node(nodes, window, code, Branch(busy, begin, self.next), phase("trip"))
        step = [
            *self._given(marks),
            op("add.s32", rest, rest, -32),
            op("add.s32", marks.begin, marks.begin, -32),
        ]
        step += [op("add.s32", marks.end, marks.end, -32)] if self.path.sums else []
        for name, at in self.loop.steps.items():
            step.append(op(f"add.s{width(self._type(name))}", firsts[name], firsts[name], 32 * at))
        step.append(op("setp.gt.s32", last.register, rest, 0))
        ended = names.label("ended")
        self._node(nodes, self.next, step, Branch(last, window, ended, UNIFORM))

        bits = width(self.loop.count.type)
        code = [op(f"setp.ge.and.u{bits}", more.register, left, MOST, has.register)]
        code += [op("vote.sync.any.pred", some.register, predicate(more), FULL_WARP)]
        self._node(nodes, ended, code, Branch(some, again, behind, UNIFORM))
        code = [op(f"sub.s{bits}", left, left, MOST), op("mov.pred", has.register, more.register)]
        for name, at in self.loop.steps.items():
            code += [self._add(name, starts[name], marks.begin, at, firsts[name])]
            code += [op(f"add.s{width(self._type(name))}", starts[name], starts[name], (MOST + 1) * at)]
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
        by = abs(count.step).bit_length() - 1
        if count.compare == "ne":
            return [*code, op(f"shr.u{bits}", left, distance, by)]
        # The last of several steps may go past the bound.
        short = count.compare in ("lt", "gt")
        if by and short:
            code.append(op(f"add.s{bits}", distance, distance, -1))
        if by:
            code.append(op(f"shr.u{bits}", distance, distance, by))
        if by or not short:
            code.append(op(f"add.s{bits}", distance, distance, 1))
        goes = r("pred")
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

    def _close_up(
        self,
        nodes: Nodes,
        name: str,
        code: list[Instruction],
        marks: _Marks,
        places: tuple[Register, Register, Register],
        window: str,
    ) -> None:
        """Adds the node ``name`` of ``code``, and what finds the lanes that have trips, on to ``window``."""
        r = self.names.register
        trips, ahead, ends = places
        some, rank, busy, full = r("b32"), r("b32"), r("pred"), Guard(r("pred"))
        code += [
            op("setp.ne.u32", busy, trips, 0),
            op("vote.sync.ballot.b32", some, busy, FULL_WARP),
            # Neither a lane without trips nor the first of the others ever marks a place.
            op("selp.b32", marks.begin, ahead, 0, busy),
            op("add.s32", marks.begin, marks.begin, -1),
            *([op("selp.b32", marks.end, ends, 0, busy)] if self.path.sums else []),
            op("mov.u32", marks.begun, 0),
            op("mov.u32", marks.slot, self.lane),
            op("setp.eq.s32", full.register, some, FULL_WARP),
        ]
        close = self.names.label("close")
        self._node(nodes, name, code, Branch(full, window, close, UNIFORM))
        upward = [op("mov.u32", rank, SpecialRegister("%lanemask_le"))]
        upward += [op("and.b32", rank, rank, some), op("popc.b32", rank, rank)]
        self._node(nodes, close, [*upward, *self._search(rank, marks.slot)], Jump(window))

    def _search(self, ranks: Register, slot: Register) -> list[Instruction]:
        """In lane k the first lane whose rank is above k; lane 31 where none is."""
        code = [op("mov.u32", slot, 0)]
        for step in STEPS:
            rank, probe, below = (self.names.register(type) for type in ("b32", "b32", "pred"))
            code += [
                op("add.s32", probe, slot, step - 1),
                op("shfl.sync.idx.b32", rank, ranks, probe, 31, FULL_WARP),
                op("setp.le.u32", below, rank, self.lane),
                op("add.s32", slot, slot, step, guard=Guard(below)),
            ]
        return code

    def _owner(self, marks: _Marks, owner: Register) -> list[Instruction]:
        """The lane whose trip is at this lane's place of the window."""
        mark, rank, count = (self.names.register("b32") for _ in range(3))
        begins = marks.begins
        return [
            # A shift by more than 31 leaves nothing.
            op("shl.b32", mark, 1, marks.begin),
            *self._all_bits(begins, mark),
            op("and.b32", rank, begins, self.before),
            op("popc.b32", rank, rank),
            op("add.s32", rank, rank, marks.begun),
            op("popc.b32", count, begins),
            op("add.s32", marks.begun, marks.begun, count),
            op("shfl.sync.idx.b32", owner, marks.slot, rank, 31, FULL_WARP),
        ]

    def _all_bits(self, target: Register, bits: Register) -> list[Instruction]:
        """The bits of all lanes together."""
        if self.redux:
            return [op("redux.sync.or.b32", target, bits, FULL_WARP)]
        code = [op("mov.b32", target, bits)]
        for step in STEPS:
            other = self.names.register("b32")
            code.append(op("shfl.sync.bfly.b32", other, target, step, 31, FULL_WARP))
            code.append(op("or.b32", target, target, other))
        return code

    def _given(self, marks: _Marks) -> list[Instruction]:
        """Puts together what trips of one lane in this window come to, and adds it to what the lane has."""
        if not self.path.sums:
            return []
        r = self.names.register
        far, last, given, begun = r("b32"), r("b32"), r("pred"), r("pred")
        code = [
            # How far ahead the window has its first trip of this owner: behind the last mark below.
            op("and.b32", far, marks.begins, self.before),
            op("bfind.u32", far, far),
            op("add.s32", far, far, 1),
            op("sub.s32", far, self.lane, far),
            op("min.s32", last, marks.end, 32),
            op("add.s32", last, last, -1),
            op("setp.lt.s32", begun, marks.begin, 31),
            op("setp.gt.and.s32", given, marks.end, 0, begun),
        ]
        for part in self.path.sums:
            operator, total = part.reduction.operator, own(part.reduction.register)
            assert isinstance(total, Register)
            size = operator.bits // 8
            other = r(f"b{operator.bits}")
            for step in reversed(STEPS):
                within = r("pred")
                code += [
                    op("setp.ge.s32", within, far, step),
                    *self._shuffled(size, other, part.register, number(step), "up"),
                    *put(operator, part.register, other, self.names, Guard(within)),
                ]
            code += self._shuffled(size, other, part.register, last)
            code += put(operator, total, other, self.names, Guard(given))
        return code

    def _received(self, firsts: Mapping[str, Register], owner: Register) -> list[Instruction]:
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
                self._add(n, self.path.task(n), self.lane, at, self.path.task(n))
                for n, at in self.loop.steps.items()
            ),
        ]

    def _shuffled(
        self, size: int, target: Register, source: Register, owner: Operand, how: str = "idx"
    ) -> list[Instruction]:
        """The value of another lane: of ``owner``, or so many lanes below where ``how`` is ``up``."""
        last = 0 if how == "up" else 31
        if size == 4:
            return [op(f"shfl.sync.{how}.b32", target, source, owner, last, FULL_WARP)]
        parts = [self.names.register("b32") for _ in range(2)]
        moved = [self.names.register("b32") for _ in range(2)]
        return [
            op("mov.b64", Vector(tuple(parts)), source),
            *(
                op(f"shfl.sync.{how}.b32", m, p, owner, last, FULL_WARP)
                for m, p in zip(moved, parts, strict=True)
            ),
            op("mov.b64", target, Vector(tuple(moved))),
        ]

    def _add(self, name: str, target: Register, trips: Register, step: int, start: Operand) -> Instruction:
        """``start`` and so many times the step, for the register ``name``: places are below 2^31."""
        kind = "mad.wide.s32" if width(self._type(name)) == 64 else "mad.lo.s32"
        return op(kind, target, trips, step, start)
