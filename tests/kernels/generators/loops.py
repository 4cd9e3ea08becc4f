"""Marked loops in the shapes that nvcc makes: a guard ahead of the rotated loop, breaks, continues, accumulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.kernels.generators.build import ROW, WORDS, Build, element, pointer, scalar
from tests.kernels.generators.exclusive import exclusive, fits
from tests.kernels.generators.extras import collective
from tests.kernels.generators.paths import CARRIED, SMALLEST, site, variable
from tests.kernels.generators.pieces import code
from tests.kernels.generators.recursive import recursion
from tests.kernels.generators.reductions import clause, outcomes, restart
from tests.kernels.generators.values import Scope, arithmetic, as_word, compute, scrambled, source


@dataclass
class Counting:
    """How a loop counts: ``counter`` goes on by ``step`` while ``compare`` holds between it and ``bound``.

    ``slot`` gives the number of the iteration over all threads. ``more`` may end the loop as well.
    """

    counter: str
    step: str
    compare: str
    bound: str
    slot: Callable[[], str]
    more: Callable[[], str] | None = None
    type: str = "b32"


def grid_stride(b: Build, scope: Scope, thread: str) -> Counting:
    """for (i = thread; i < n; i += threads of the grid)"""
    _, n = scalar(b, "n")
    i = b.w.do("mov.u32", "b32", thread)
    return Counting(i, _grid(b), "lt", n, lambda: b.w.do("mov.u32", "b32", i))


def wide_stride(b: Build, scope: Scope, thread: str) -> Counting:
    """for (size_t i = thread; i < n; i += threads of the grid)"""
    w = b.w
    n, i, step = (w.do("cvt.u64.u32", "b64", word) for word in (scalar(b, "n")[1], thread, _grid(b)))
    return Counting(i, step, "lt", n, lambda: w.do("cvt.u32.u64", "b32", i), type="b64")


def uniform(b: Build, scope: Scope, thread: str) -> Counting:
    """for (k = 0; k < trips; ++k), the same in all lanes"""
    _, bound = scalar(b, "trips")
    k = b.w.do("mov.u32", "b32", 0)
    return Counting(k, "1", "lt", bound, lambda: _row_of(b, k, thread))


def varying(b: Build, scope: Scope, thread: str) -> Counting:
    """for (k = 0; k < own; ++k), lanes with none to many trips"""
    bound = _own_trips(b, scope, thread)
    k = b.w.do("mov.u32", "b32", 0)
    return Counting(k, "1", "lt", bound, lambda: _row_of(b, k, thread))


def downwards(b: Build, scope: Scope, thread: str) -> Counting:
    """for (k = own - 1; k > -1; --k)"""
    k = b.w.do("add.s32", "b32", _own_trips(b, scope, thread), -1)
    return Counting(k, "-1", "gt", "-1", lambda: _row_of(b, k, thread))


def searching(b: Build, scope: Scope, thread: str) -> Counting:
    """do { ... state = next(state); } while (++k < trips && state says so)"""
    _, bound = scalar(b, "trips")
    k = b.w.do("mov.u32", "b32", 0)
    state = scrambled(b.w, thread, 5)
    scope.add("b32", state)

    def more() -> str:
        b.w.emit(f"mad.lo.s32 \t{state}, {state}, 1664525, 1013904223")
        bits = b.w.do("shr.u32", "b32", state, 28)
        return b.w.do("setp.gt.u32", "pred", bits, b.ch.pick([1, 3, 0]))

    return Counting(k, "1", "lt", bound, lambda: _row_of(b, k, thread), more)


def _own_trips(b: Build, scope: Scope, thread: str) -> str:
    """A number of trips for each lane, from what a load gives, seldom from its number alone."""
    if b.ch.chance(80):
        index = b.w.do("and.b32", "b32", thread, WORDS - 1)
        loaded = b.w.do("ld.global.nc.u32", "b32", f"[{element(b, scope, 'data', index, 4)}]")
        spread = b.w.do("shr.u32", "b32", loaded, 7)
    else:
        spread = b.w.do("shr.u32", "b32", scrambled(b.w, thread, b.ch.between(0, 99)), 7)
    if b.ch.chance(30):
        # Lanes with one trip and lanes with all.
        few = b.w.do("setp.ne.s32", "pred", b.w.do("and.b32", "b32", spread, 3), 0)
        return b.w.do("selp.b32", "b32", 1, b.trips, few)
    return b.w.do("rem.u32", "b32", spread, b.trips + 1)


def _row_of(b: Build, k: str, thread: str) -> str:
    return b.w.do("mad.lo.s32", "b32", k, _grid(b), thread)


def _grid(b: Build) -> str:
    """The number of threads of the grid, computed here or, as nvcc does where it knows the block, a literal."""
    if b.ch.chance(30):
        return b.w.do("mov.u32", "b32", b.total)
    blocks, threads = b.w.do("mov.u32", "b32", "%nctaid.x"), b.w.do("mov.u32", "b32", "%ntid.x")
    count = b.w.do("mul.lo.s32", "b32", blocks, threads)
    for axis in ("%ntid.y", "%ntid.z", "%nctaid.y"):
        count = b.w.do("mul.lo.s32", "b32", count, b.w.do("mov.u32", "b32", axis))
    return count


def marked_loop(b: Build, around: Scope, thread: str, trip: str | None) -> None:
    """A marked loop from its begin to its end marker; ``trip`` counts an unmarked loop around it."""
    ch, w = b.ch, b.w
    region, number = b.region(), b.loops
    b.loops += 1
    b.places = b.tails = 0
    results = _accumulators(b, around)
    if b.sums and ch.chance(70):
        restart(b, thread)
    before = around.child()
    b.mark("for.begin", region, f"{' independent' if b.independent else ''}{b.clauses}{clause(b)}")
    b.entered = w.count()
    kinds = [grid_stride, uniform, varying, downwards, searching, wide_stride]
    counting = (uniform if b.together else ch.pick(kinds))(b, before, thread)
    late = before.child()
    exit, head, latch, gone = w.label(), w.label(), w.label(), w.label()
    rotated = ch.chance(80)
    test = w.new("pred")
    if rotated:
        _compare(b, test, counting, leave=True)
        w.emit(f"@{test} bra \t{exit}")
        _preheader(b, late)
    moving = _moving_rows(b, late, counting, trip) if ch.chance(25) else None
    w.place(head)
    if ch.chance(60):
        w.lines.append('\t.pragma "nounroll";')
    if not rotated:
        _compare(b, test, counting, leave=True)
        w.emit(f"@{test} bra \t{exit}")
    b.mark("body.begin", region)
    breaks = _Breaks(b, gone)
    late.add(counting.type, counting.counter)
    early = _iteration(b, late, counting, results, latch, breaks, trip)
    b.mark("body.end", region)
    w.place(latch)
    if not early:
        _advance(b, counting)
    if moving is not None:
        w.emit(f"add.s64 \t{late.rows}, {late.rows}, {moving}")
    if rotated:
        _compare(b, test, counting, leave=False)
        if counting.more is not None:
            w.emit(f"and.pred \t{test}, {test}, {counting.more()}")
        w.emit(f"@{test} bra \t{head}")
        w.emit(f"bra.uni \t{exit}") if breaks.used else None
    else:
        w.emit(f"bra.uni \t{head}")
    if breaks.used:
        w.place(gone)
        w.emit(f"add.s32 \t{results[0][1]}, {results[0][1]}, 1000")
    w.place(exit)
    b.mark("for.end", region)
    _finish(b, around, thread, results, number)


@dataclass
class _Breaks:
    """Ways out of the loop from its middle."""

    b: Build
    target: str
    used: bool = False

    def perhaps(self, scope: Scope, percent: int) -> None:
        """if (some lanes) break;"""
        b = self.b
        if b.ch.chance(percent) and not b.together:
            bits = b.w.do("and.b32", "b32", scrambled(b.w, scope.slot, b.ch.between(0, 99)), 15)
            rare = b.w.do("setp.eq.s32", "pred", bits, b.ch.between(0, 15))
            b.w.emit(
                f"@{rare} bra \t{self.target}" if self.target != b.done or b.ch.chance(50) else f"@{rare} ret"
            )
            self.used = True


def _compare(b: Build, test: str, counting: Counting, leave: bool) -> None:
    opposite = {"lt": "ge", "gt": "le"}
    compare = opposite[counting.compare] if leave else counting.compare
    suffix = counting.type.replace("b", "s")
    b.w.emit(f"setp.{compare}.{suffix} \t{test}, {counting.counter}, {counting.bound}")


def _advance(b: Build, counting: Counting) -> None:
    suffix = counting.type.replace("b", "s")
    b.w.emit(f"add.{suffix} \t{counting.counter}, {counting.counter}, {counting.step}")


def _moving_rows(b: Build, late: Scope, counting: Counting, trip: str | None) -> int:
    """Lets a pointer to the row of the iteration move along with the counter; the bytes of its step."""
    slot = _slot(b, counting, trip)
    offset = b.w.do("mul.wide.u32", "b64", slot, ROW["paths"])
    late.rows = b.w.do("add.s64", "b64", pointer(b, late.child(), "paths"), offset)
    return (-1 if counting.step == "-1" else 1) * b.total * ROW["paths"]


def _slot(b: Build, counting: Counting, trip: str | None) -> str:
    slot = counting.slot()
    return slot if trip is None else b.w.do("mad.lo.s32", "b32", trip, b.span, slot)


def _preheader(b: Build, late: Scope) -> None:
    """What nvcc computes between guard and header; lanes that fail the guard skip it."""
    for buffer in ("data", "plain", "paths", "rest", "counters"):
        if b.ch.chance(40):
            pointer(b, late, buffer)
    kept = late.child()
    arithmetic(b.ch, kept, b.w, 3)
    for type, name in kept.names():
        late.add(type, name)


def _accumulators(b: Build, scope: Scope) -> list[tuple[str, str]]:
    """Registers that an iteration of a lane hands on to its next one."""
    ch = b.ch
    found = [("b32", b.w.do("mov.u32", "b32", 0))]
    if ch.chance(40):
        found.append(("f32", b.w.do("mov.f32", "f32", "0f3F800000")))
    if ch.chance(25):
        found.append(("b64", b.w.do("cvt.s64.s32", "b64", source(ch, scope, b.w, "r"))))
    return found


def _update(b: Build, scope: Scope, results: list[tuple[str, str]]) -> None:
    for type, name in results:
        if b.ch.chance(50):
            value = b.ch.pick(scope.values[type]) if scope.values.get(type) else name
            opcode = {"b32": "mad.lo.s32", "f32": "fma.rn.f32", "b64": "mad.lo.s64"}[type]
            factor = {"b32": "5", "f32": "0f3F000000", "b64": "3"}[type]
            b.w.emit(f"{opcode} \t{name}, {name}, {factor}, {value}")


def _iteration(
    b: Build,
    late: Scope,
    counting: Counting,
    results: list[tuple[str, str]],
    latch: str,
    breaks: _Breaks,
    trip: str | None,
) -> bool:
    """One iteration: code, marked paths, code. Whether the counter was already advanced."""
    ch, w = b.ch, b.w
    scope = late.child()
    scope.slot = _slot(b, counting, trip)
    scope.add("b32", scope.slot)
    scope.place = ("rest", 0, 1)
    if scope.rows is None and ch.chance(25):
        offset = w.do("mul.wide.u32", "b64", scope.slot, ROW["paths"])
        scope.rows = w.do("add.s64", "b64", pointer(b, scope, "paths"), offset)
    for type, name in results:
        scope.add(type, name)
    if ch.chance(50 if b.exclusive else 15):
        _load_ahead(b, scope)
    early = counting.more is None and ch.chance(30)
    if early:
        _advance(b, counting)
    if b.together:
        collective(b, scope)
    code(b, scope, 4)
    for type in ("b32", "b32", "f32", "pred"):
        if ch.chance(70):
            compute(ch, scope, w, type)
    _update(b, scope, results)
    breaks.perhaps(scope, 12)
    _Breaks(b, b.done).perhaps(scope, 6)
    if ch.chance(15) and not b.together:
        bits = w.do("and.b32", "b32", scrambled(w, scope.slot, ch.between(0, 99)), 3)
        w.emit(f"@{w.do('setp.eq.s32', 'pred', bits, 0)} bra \t{latch}")
    paths(b, scope, latch)
    scope.place = ("rest", 1, 1)
    code(b, scope, 3)
    _update(b, scope, results)
    breaks.perhaps(scope, 10)
    return early


def _load_ahead(b: Build, scope: Scope) -> None:
    """A load at the iteration's head whose address the next iteration's can be told from: in a row of the iteration's
    own, so that no other may be touched, or of read-only words.
    """
    ch, w = b.ch, b.w
    if b.independent and ch.chance(50):
        address = element(b, scope, "rest", scope.slot, ROW["rest"])
        scope.add("b32", w.do("ld.global.u32", "b32", f"[{address}]"), spare=True)
        return
    index = w.do("and.b32", "b32", scope.slot, WORDS - 1)
    address = element(b, scope, "data", index, 4)
    scope.add("b32", w.do("ld.global.nc.u32", "b32", f"[{address}]"), spare=True)


def paths(b: Build, scope: Scope, latch: str) -> None:
    """One or two sites, perhaps of exclusive paths; with two, code between them."""
    ch = b.ch
    early = None if b.together else latch
    if b.recursive:
        recursion(b, scope)
    elif fits(b) and (ch.chance(20) or b.exclusive):
        exclusive(b, scope, early)
    elif ch.chance(25):
        variable(b, scope, tail=True)
    else:
        site(b, scope, 0, early)
    if b.independent and b.places <= 8 and b.left >= SMALLEST + CARRIED and ch.chance(35):
        scope.place = ("rest", 1, 1)
        code(b, scope, 2)
        if fits(b) and ch.chance(15):
            exclusive(b, scope, None)
        elif ch.chance(25):
            variable(b, scope, tail=True)
        else:
            site(b, scope, 0)


def _finish(b: Build, scope: Scope, thread: str, results: list[tuple[str, str]], number: int) -> None:
    """Behind the loop: a lane stores what it carried through, and reads what its own paths stored."""
    ch, w = b.ch, b.w
    row = w.do("mul.wide.u32", "b64", thread, ROW["final"])
    address = w.do("add.s64", "b64", pointer(b, scope, "final"), row)
    word = w.do("mov.u32", "b32", 1)
    for type, name in [*results, *outcomes(b, scope)]:
        word = w.do("mad.lo.s32", "b32", word, 31, as_word(w, type, name))
    if ch.chance(40):
        base = w.do("mul.wide.u32", "b64", thread, ROW["paths"])
        own = w.do("add.s64", "b64", pointer(b, scope, "paths"), base)
        for place in range(max(b.places, 1)):
            value = w.do("ld.global.u32", "b32", f"[{own}+{8 * place}]")
            word = w.do("mad.lo.s32", "b32", word, 33, value)
    old = w.do("ld.global.u32", "b32", f"[{address}+{8 * number}]")
    w.emit(f"st.global.u32 \t[{address}+{8 * number}], {w.do('mad.lo.s32', 'b32', old, 7, word)}")
