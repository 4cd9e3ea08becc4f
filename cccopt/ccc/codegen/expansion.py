"""Counted loops whose inner iterations are tasks, without a stack: the warp lays those of all its lanes side by side
and runs 32 of them at a time (`cccopt.ccc.legality.counted_loops` finds such loops).

        lane    0  1  2  3 ...      position    0 1 2 | 3 | 4 5 6 7 8 ...
        counts  3  0  1  5          lane        0 0 0 | 2 | 3 3 3 3 3
        ends    3  3  4  9          iteration   0 1 2 | 0 | 0 1 2 3 4

    lay:    ends = inclusive sum of the lanes' counts; rest = that of lane 31
            slot = in lane k, the k-th lane that has any
    window: each lane sets the bit of the position before its first one: the number of bits set below a position says
            which of the lanes with inner iterations it belongs to, the owner
            the owner's registers come by shuffles; those that grow in each inner iteration are computed from its number
            lanes below rest run one inner iteration;  rest -= 32; rest > 0: window

Neighboring inner iterations run in neighboring lanes: loads that follow the loop's counter are coalesced. Sums stay
below 2^31 because a lane lays out no more than `MOST` inner iterations at a time.

Khorasani 2016, 4.2 does this by hand (CTE), with a binary search instead of bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.codegen.partial_results import put
from cccopt.ccc.function.code import FULL_WARP, flag_op, number, op, predicate
from cccopt.ccc.function.graph import UNIFORM, Branch, Jump, Node, Nodes, copy
from cccopt.ccc.legality.counted_loops import CountedLoop
from cccopt.ccc.plan.plan import PathPlan, own
from cccopt.ptx.ir import Guard, Instruction, Operand, Pair, Register, Vector
from cccopt.ptx.isa import width

MOST = 1 << 25
"""The most inner iterations of a lane that are laid out at a time."""

STEPS = (16, 8, 4, 2, 1)

REDUX = op("redux.sync.or.b32", 0, 0, FULL_WARP)
"""The instruction that combines the bits of all lanes at once, if the target has it."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Registers. ``begin`` is the position in the window just before a lane's first inner iteration, ``end`` the
    position after its last one (only for sums). ``begun`` is how many lanes, not counting the first, have begun before
    the window. ``slot`` is, in lane k, the k-th lane that has inner iterations. ``begins`` has the bits that all lanes
    have set in the window.
    """

    begin: Register
    begun: Register
    slot: Register
    end: Register
    begins: Register


@dataclass(frozen=True, slots=True)
class _State:
    """Registers of the expansion. ``has`` flags lanes that have inner iterations, ``more`` those with more than are
    laid out now; ``some`` says whether any lane has more. ``left`` is how many are left after the first one. ``starts``
    are the registers that grow in each inner iteration as they are in a lane's first one, ``firsts`` as they would be
    at the window's first position. ``counts`` is a lane's count, ``ends`` and ``before`` are the inclusive and
    exclusive sums of the counts, and ``rest`` is all that is left from the window onwards.
    """

    has: Guard
    more: Guard
    some: Guard
    left: Register
    starts: Mapping[str, Register]
    firsts: Mapping[str, Register]
    counts: Register
    ends: Register
    before: Register
    rest: Register
    bounds: _Bounds


@dataclass(frozen=True, slots=True)
class ExpansionCode:
    """The code of one expanded loop: ``lane`` and ``before`` are the registers of the lane's number and of the mask of
    the lanes below it, ``iteration`` the nodes of one inner iteration on the program's registers, entered at the path's
    beginning; it ends at ``next``. ``redux`` says whether the target has `redux.sync`.
    """

    path: PathPlan
    loop: CountedLoop
    iteration: Mapping[str, Node]
    next: str
    lane: Register
    before: Register
    builder: Builder
    redux: bool

    def nodes(self, flag: Guard, after: str, certain: bool) -> tuple[Nodes, str]:
        """The nodes and the name of the first; lanes with ``flag`` have inner iterations, and all lanes if
        ``certain``.
        """
        nodes: Nodes = {}
        state = self._state()
        lay, window, ended, again = (self.builder.label(what) for what in ("lay", "window", "ended", "again"))
        expand = self._expand(nodes, state, flag, lay)
        self._lay(nodes, lay, state, window)
        self._window(nodes, window, state, ended)
        self._round(nodes, ended, again, state, lay, after)
        join = self.builder.label("join")
        if certain:
            code = [op("mov.pred", flag.register, 1)]
            return nodes, self.builder.node(nodes, join, code, Jump(expand))
        wanted = self.builder.flag()
        vote = [op("vote.sync.any.pred", wanted.register, predicate(flag), FULL_WARP)]
        return nodes, self.builder.node(nodes, join, vote, Branch(wanted, expand, after, UNIFORM))

    def _state(self) -> _State:
        r, build = self.builder.register, self.builder
        return _State(
            has=build.flag(),
            more=build.flag(),
            some=build.flag(),
            left=r(f"b{width(self.loop.count.type)}"),
            starts={name: r(self._type(name)) for name in self.loop.steps},
            firsts={name: r(self._type(name)) for name in self.loop.steps},
            counts=r(),
            ends=r(),
            before=r(),
            rest=r(),
            bounds=_Bounds(*(r() for _ in range(5))),
        )

    def _expand(self, nodes: Nodes, state: _State, flag: Guard, lay: str) -> str:
        """Adds the node at which lanes with ``flag`` count their inner iterations; returns its name."""
        # Inner iterations read what other lanes wrote before the loop.
        code = [op("bar.warp.sync", FULL_WARP), *self._count(state.left), flag_op(state.has.register, flag)]
        code += [op(f"mov.b{width(self._type(n))}", start, own(n)) for n, start in state.starts.items()]
        label = self.builder.label("expand")
        return self.builder.node(nodes, label, code, Jump(lay), self.path.phase("expand"))

    def _lay(self, nodes: Nodes, lay: str, state: _State, window: str) -> None:
        """Adds the code that lays the inner iterations of all lanes side by side."""
        counts, ends, before = state.counts, state.ends, state.before
        code = [*self._laid_out(state.left, state.has, counts), *self._sum(counts, ends)]
        code += [op("shfl.sync.idx.b32", state.rest, ends, 31, 31, FULL_WARP)]
        code += [op("sub.s32", before, ends, counts)]
        for name, step in self.loop.steps.items():
            code.append(self._add(name, state.firsts[name], before, -step, state.starts[name]))
        self._close_up(nodes, lay, code, state, window)

    def _window(self, nodes: Nodes, window: str, state: _State, ended: str) -> None:
        """Adds the loop over windows of 32 inner iterations: each lane gets one from its owner, and runs it."""
        bounds, rest = state.bounds, state.rest
        busy, last = self.builder.flag(), self.builder.flag()
        copies, names_of = copy(self.iteration.values(), self.builder.names, self.path.registers.rename)
        nodes.update(copies)
        owner = self.builder.register()
        code = [
            *self._owner(bounds, owner),
            *(p.reset for p in self.path.results.sums),
            *self._received(state.firsts, owner),
            *self.path.context.restore,
            op("setp.lt.s32", busy.register, self.lane, rest),
        ]
        end = Branch(busy, names_of[self.path.path.begin], self.next)
        self.builder.node(nodes, window, code, end, self.path.phase("trip"))
        step = [
            *self._given(bounds),
            op("add.s32", rest, rest, -32),
            op("add.s32", bounds.begin, bounds.begin, -32),
        ]
        step += [op("add.s32", bounds.end, bounds.end, -32)] if self.path.results.sums else []
        for name, at in self.loop.steps.items():
            first = state.firsts[name]
            step.append(op(f"add.s{width(self._type(name))}", first, first, 32 * at))
        step.append(op("setp.gt.s32", last.register, rest, 0))
        self.builder.node(nodes, self.next, step, Branch(last, window, ended, UNIFORM))

    def _round(self, nodes: Nodes, ended: str, again: str, state: _State, lay: str, after: str) -> None:
        """Adds the code that goes back to ``lay`` while a lane has more inner iterations than are laid out at once."""
        left, has, more, some = state.left, state.has, state.more, state.some
        bits = width(self.loop.count.type)
        code = [
            *([op("bar.warp.sync", FULL_WARP)] if self.path.meets_rest else []),
            op(f"setp.ge.and.u{bits}", more.register, left, MOST, has.register),
            op("vote.sync.any.pred", some.register, predicate(more), FULL_WARP),
        ]
        self.builder.node(nodes, ended, code, Branch(some, again, after, UNIFORM))
        code = [op(f"sub.s{bits}", left, left, MOST), op("mov.pred", has.register, more.register)]
        for name, at in self.loop.steps.items():
            start = state.starts[name]
            code.append(self._add(name, start, state.bounds.begin, at, state.firsts[name]))
            code.append(op(f"add.s{width(self._type(name))}", start, start, (MOST + 1) * at))
        self.builder.node(nodes, again, code, Jump(lay))

    def _type(self, name: str) -> str:
        return next(v.type for v in self.path.stack.layout.values() if v.name == name)

    def _count(self, left: Register) -> list[Instruction]:
        """Computes how many inner iterations a lane with any has left after the first one."""
        count, r = self.loop.count, self.builder.register
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

    def _laid_out(self, left: Register, has: Guard, counts: Register) -> list[Instruction]:
        """Computes how many inner iterations a lane lays out now."""
        bits = width(self.loop.count.type)
        some = left if bits == 32 else self.builder.register("b64")
        code = [op(f"min.u{bits}", some if bits == 64 else counts, left, MOST - 1)]
        if bits == 64:
            code.append(op("cvt.u32.u64", counts, some))
        return [*code, op("add.s32", counts, counts, 1), op("selp.b32", counts, counts, 0, has.register)]

    def _sum(self, counts: Register, ends: Register) -> list[Instruction]:
        """Computes the inclusive prefix sum over the lanes."""
        code = [op("mov.b32", ends, counts)]
        for step in reversed(STEPS):
            other, below = self.builder.register(), self.builder.register("pred")
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
        state: _State,
        window: str,
    ) -> None:
        """Adds the node ``name`` with ``code``, and code that finds lanes with inner iterations and goes to
        ``window``.
        """
        r, bounds, counts = self.builder.register, state.bounds, state.counts
        some, rank, busy, full = r("b32"), r("b32"), r("pred"), Guard(r("pred"))
        code += [
            op("setp.ne.u32", busy, counts, 0),
            op("vote.sync.ballot.b32", some, busy, FULL_WARP),
            # Neither a lane without inner iterations nor the first of the others ever sets a bit.
            op("selp.b32", bounds.begin, state.before, 0, busy),
            op("add.s32", bounds.begin, bounds.begin, -1),
            *([op("selp.b32", bounds.end, state.ends, 0, busy)] if self.path.results.sums else []),
            op("mov.u32", bounds.begun, 0),
            op("mov.u32", bounds.slot, self.lane),
            op("setp.eq.s32", full.register, some, FULL_WARP),
        ]
        close = self.builder.label("close")
        self.builder.node(nodes, name, code, Branch(full, window, close, UNIFORM))
        upward = [
            # Not from %lanemask_le: in a task of a path around the loop, that is another lane's.
            op("shl.b32", rank, self.before, 1),
            # The truth table of (rank | 1) & some.
            op("lop3.b32", rank, rank, 1, some, 0xA8),
            op("popc.b32", rank, rank),
        ]
        self.builder.node(nodes, close, [*upward, *self._search(rank, bounds.slot)], Jump(window))

    def _search(self, ranks: Register, slot: Register) -> list[Instruction]:
        """Finds in lane k the first lane whose rank is above k, or lane 31 if there is none."""
        code = [op("mov.u32", slot, 0)]
        for step in STEPS:
            rank, probe, below = (self.builder.register(type) for type in ("b32", "b32", "pred"))
            code += [
                op("add.s32", probe, slot, step - 1),
                op("shfl.sync.idx.b32", rank, ranks, probe, 31, FULL_WARP),
                op("setp.le.u32", below, rank, self.lane),
                op("add.s32", slot, slot, step, guard=Guard(below)),
            ]
        return code

    def _owner(self, bounds: _Bounds, owner: Register) -> list[Instruction]:
        """Finds the lane whose inner iteration is at this lane's position of the window."""
        bit, rank, count = (self.builder.register() for _ in range(3))
        begins = bounds.begins
        return [
            # A shift by more than 31 leaves nothing.
            op("shl.b32", bit, 1, bounds.begin),
            *self._all_bits(begins, bit),
            op("and.b32", rank, begins, self.before),
            op("popc.b32", rank, rank),
            op("add.s32", rank, rank, bounds.begun),
            op("popc.b32", count, begins),
            op("add.s32", bounds.begun, bounds.begun, count),
            op("shfl.sync.idx.b32", owner, bounds.slot, rank, 31, FULL_WARP),
        ]

    def _all_bits(self, target: Register, bits: Register) -> list[Instruction]:
        """Combines the bits of all lanes."""
        if self.redux:
            return [op("redux.sync.or.b32", target, bits, FULL_WARP)]
        code = [op("mov.b32", target, bits)]
        for step in STEPS:
            other = self.builder.register()
            code.append(op("shfl.sync.bfly.b32", other, target, step, 31, FULL_WARP))
            code.append(op("or.b32", target, target, other))
        return code

    def _given(self, bounds: _Bounds) -> list[Instruction]:
        """Combines what each lane's inner iterations contribute in this window, and adds it to the lane's own value."""
        if not self.path.results.sums:
            return []
        r = self.builder.register
        far, last, given, begun = r("b32"), r("b32"), r("pred"), r("pred")
        code = [
            # How many lanes below this one the owner's first one in the window is: that is right after the last bit
            # set below.
            op("and.b32", far, bounds.begins, self.before),
            op("bfind.u32", far, far),
            op("add.s32", far, far, 1),
            op("sub.s32", far, self.lane, far),
            op("min.s32", last, bounds.end, 32),
            op("add.s32", last, last, -1),
            op("setp.lt.s32", begun, bounds.begin, 31),
            op("setp.gt.and.s32", given, bounds.end, 0, begun),
        ]
        for part in self.path.results.sums:
            operator, total = part.reduction.operator, own(part.reduction.register)
            assert isinstance(total, Register)
            size = operator.bits // 8
            other = r(f"b{operator.bits}")
            for step in reversed(STEPS):
                within = r("pred")
                code += [
                    op("setp.ge.s32", within, far, step),
                    *self._shuffled(size, other, part.register, number(step), "up"),
                    *put(operator, part.register, other, self.builder.names, Guard(within)),
                ]
            code += self._shuffled(size, other, part.register, last)
            code += put(operator, total, other, self.builder.names, Guard(given))
        return code

    def _received(self, firsts: Mapping[str, Register], owner: Register) -> list[Instruction]:
        """Fetches the registers of the inner iteration at the lane's position from its owner."""
        stack = self.path.stack
        code: list[Instruction] = []
        for word in stack.layout.words:
            packing, source = stack.pack(word, lambda name: firsts.get(name, own(name)))
            target = (
                self.builder.register(word.type)
                if word.packed
                else self.path.registers.of(word.values[0].name)
            )
            code += [*packing, *self._shuffled(word.size, target, source, owner)]
            if word.packed:
                code += stack.unpack(word, target, self.path.registers.of)
        return [
            *code,
            *(
                self._add(n, self.path.registers.of(n), self.lane, at, self.path.registers.of(n))
                for n, at in self.loop.steps.items()
            ),
        ]

    def _shuffled(
        self, size: int, target: Register, source: Register, owner: Operand, how: str = "idx"
    ) -> list[Instruction]:
        """Fetches the value of another lane: of ``owner`` or, if ``how`` is ``up``, of the lane that many below."""
        last = 0 if how == "up" else 31
        if size == 4:
            return [op(f"shfl.sync.{how}.b32", target, source, owner, last, FULL_WARP)]
        parts = [self.builder.register() for _ in range(2)]
        moved = [self.builder.register() for _ in range(2)]
        return [
            op("mov.b64", Vector(tuple(parts)), source),
            *(
                op(f"shfl.sync.{how}.b32", m, p, owner, last, FULL_WARP)
                for m, p in zip(moved, parts, strict=True)
            ),
            op("mov.b64", target, Vector(tuple(moved))),
        ]

    def _add(self, name: str, target: Register, times: Register, step: int, start: Operand) -> Instruction:
        """``start`` plus ``times`` the step, for the register ``name``: positions are below 2^31."""
        kind = "mad.wide.s32" if width(self._type(name)) == 64 else "mad.lo.s32"
        return op(kind, target, times, step, start)
