"""Marked paths and the branches that lead to them, in the shapes that nvcc makes of conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.kernels.generators.build import ROW, Build, Site, atomic, element, flag, load, store
from tests.kernels.generators.pieces import code, condition
from tests.kernels.generators.reductions import behind
from tests.kernels.generators.values import Scope, compute, digest, scrambled, source

BYTES = {"b16": 4, "b32": 4, "b64": 8, "f32": 4, "f64": 8, "pred": 4}
SMALLEST = 28  # bytes of context that a path needs even when it reloads what it can
LARGEST = 88
IDENTITY = 16  # of them for the slot and the special registers that a path may read
TAIL = 36
CARRIED = 20  # what the trips of a variable loop carry on


@dataclass
class Merge:
    """What arms of a branch leave behind for the code after the join.

    ``clobbered`` registers are overwritten in the arms and dead behind them. ``cheap`` ones are read behind: a marked
    arm computes them at once, from few instructions. ``tail``, a type and a register, is read only by straight code at
    the join.
    """

    clobbered: list[tuple[str, str]]
    cheap: list[str]
    tail: tuple[str, str] | None = None


@dataclass
class _Arms:
    """The arms of a site: ``marked`` writes a marked path (``1`` the second of two), ``other`` unmarked code."""

    marked: Callable[[int], None]
    other: Callable[[], None]


def site(b: Build, scope: Scope, depth: int, latch: str | None = None) -> None:
    """Code that leads to one or two marked paths, the paths, and what reads their results at the join."""
    ch, w = b.ch, b.w
    shapes = [_simple, _both, _either, _with_else, _else_first, _switch, _copies, _exclusive]
    shape = ch.pick(shapes if b.places <= 4 and b.left >= 2 * SMALLEST + 16 else shapes[:6])
    allowed = min(LARGEST, b.left // (2 if shape in (_copies, _exclusive) else 1))
    merge = _merge(b, scope, depth, allowed, shape)
    if merge.tail is not None:
        allowed -= TAIL
        b.left -= TAIL * (2 if shape in (_copies, _exclusive) else 1)
    regions = [b.region(), b.region() if shape is _exclusive else b.regions]
    places = [b.places, b.places + (4 if shape is _exclusive else 0)]
    b.places = places[-1] + 4

    def marked(which: int) -> None:
        inner = menu(b, scope, merge, allowed)
        inner.place, inner.scratch = ("paths", places[which], 4), "path"
        _path(b, inner, regions[which], merge, depth)

    arms = _Arms(marked, lambda: _other(b, scope, merge))
    join = w.label()
    if latch is not None and ch.chance(25):
        # `if (!p) continue; { ... }`: lanes that do not take the path leave out what follows it, too.
        w.emit(f"@!{condition(b, scope)} bra \t{latch}")
        marked(0)
    else:
        shape(b, scope.child(), arms, join)
    w.place(join)
    settle(scope, merge)
    if merge.tail is not None:
        _tail(b, scope, merge)
    scope.quiet = scope.quiet or not b.independent


def _merge(b: Build, scope: Scope, depth: int, allowed: int, shape: object) -> Merge:
    ch = b.ch
    own = [(type, name) for type, name in scope.names() if name in scope.spare]
    clobbered = ch.some(own, ch.between(0, 3))
    words = [name for type, name in own if type == "b32" and (type, name) not in clobbered]
    merge = Merge(clobbered, ch.some(words, ch.number(3)) if ch.chance(40) else [])
    if depth == 0 and allowed >= SMALLEST + TAIL and ch.chance(35):
        type = ch.pick(["b32", "f32", "f64", "b64"])
        name = b.w.new(type)
        if shape is not _with_else or ch.chance(50):
            copied(b, type, name, source(ch, scope, b.w, letter(type)))
        else:
            copied(b, type, name, _zero(type))
        merge.tail = (type, name)
        if b.blockwise or b.sums:
            # What reads these would move with the tail, past stores to the same places: no `independent` code.
            merge.cheap.clear()
    return merge


def letter(type: str) -> str:
    """The letter of a type of operands."""
    return {"b32": "r", "f32": "f", "f64": "g", "b64": "d"}[type]


def _zero(type: str) -> str:
    return {"b32": "0", "f32": "0f00000000", "f64": "0d0000000000000000", "b64": "0"}[type]


def menu(b: Build, scope: Scope, merge: Merge, allowed: int) -> Scope:
    """The scope of a path: of what is known outside, as much as its context may hold."""
    ch = b.ch
    inner = scope.child()
    left = allowed - IDENTITY
    if inner.rows is not None and (left < 16 or ch.chance(40)):
        inner.rows = None
    left -= 8 if inner.rows is not None else 0
    for buffer in list(inner.pointers):
        if left >= 8 and ch.chance(60):
            left -= 8
        else:
            del inner.pointers[buffer]
    known = [entry for entry in inner.names() if entry[1] != scope.slot]
    taken: list[tuple[str, str]] = []
    for type, name in ch.some(known, ch.between(2, 12)):
        if left >= BYTES[type] and name not in merge.cheap:
            left -= BYTES[type]
            taken.append((type, name))
    inner.values = {}
    inner.spare = set()
    for type, name in [("b32", scope.slot), *taken]:
        inner.add(type, name)
    for type, name in merge.clobbered:
        if (type, name) in taken:
            inner.spare.add(name)
        else:
            inner.unset.setdefault(type, []).append(name)
    b.left -= allowed - max(left, 0)
    return inner


def settle(scope: Scope, merge: Merge) -> None:
    """Behind the join: what the arms overwrote is gone; registers that may be reused stay so."""
    scope.drop({name for _, name in merge.clobbered})
    for type, name in merge.clobbered:
        scope.unset.setdefault(type, []).append(name)


def _path(b: Build, inner: Scope, region: int, merge: Merge, depth: int) -> None:
    """A marked path: its markers and body."""
    ch, w = b.ch, b.w
    b.mark("if.begin", region)
    b.sites.append(Site(region, b.entered, w.count()))
    for name in merge.cheap:
        _cheap(b, inner, name)
    code(b, inner, 4)
    # The store at the join runs with the outer task, the inner path behind it: not provably distinct.
    nest = b.independent or merge.tail is None
    if nest and depth < 2 and b.places < 12 and b.left >= SMALLEST + CARRIED and ch.chance(35):
        store(b, inner)
        if ch.chance(50):
            site(b, inner, depth + 1)
        else:
            variable(b, inner)
        code(b, inner, 2)
    if not inner.quiet:
        store(b, inner, most=8)
    if merge.tail is not None:
        result(b, inner, merge.tail, dear=not b.independent)
    b.mark("if.end", region)


def _cheap(b: Build, inner: Scope, name: str) -> None:
    """Writes a register that is read behind the path, from live-ins and by at most four issue slots."""
    ch, w = b.ch, b.w
    steady = [n for n in inner.values["b32"] if n not in inner.spare]
    kind = ch.number(3)
    if kind == 2:
        # The index may be anything that stays inside: a constant keeps the slice short.
        base = inner.pointers.get("data")
        if base is not None:
            w.emit(f"ld.global.nc.u32 \t{name}, [{base}+{4 * ch.number(256)}]")
            return
    first = ch.pick(steady)
    if kind == 1:
        first = w.do("xor.b32", "b32", first, ch.pick([*steady, "77"]))
    w.emit(f"{ch.pick(['add.s32', 'and.b32', 'max.s32'])} \t{name}, {first}, {ch.pick([*steady, '3'])}")


def result(b: Build, inner: Scope, tail: tuple[str, str], dear: bool) -> None:
    """Writes what code at the join reads; a ``dear`` value is no lane to compute again by itself."""
    ch, w = b.ch, b.w
    type, name = tail
    value = compute(ch, inner, w, type)
    if dear:
        # Were it cheap to compute again, its store would stay behind the path and conflict with the path's own.
        opcode, divisor = {"b32": ("div.u32", "7"), "b64": ("div.u64", "9")}.get(
            type, (f"div.rn.{type}", value)
        )
        value = w.do(opcode, type, value, divisor)
    guard = ""
    if ch.chance(25):
        guard = f"@{ch.pick(['', '!'])}{compute(ch, inner, w, 'pred')} "
    copied(b, type, name, value, guard)


def copied(b: Build, type: str, name: str, value: str, guard: str = "") -> None:
    """Moves ``value`` to the register ``name``."""
    b.w.emit(f"{guard}mov.{type.replace('b', 'u')} \t{name}, {value}")


def _other(b: Build, scope: Scope, merge: Merge) -> None:
    """An unmarked arm beside a path."""
    ch, w = b.ch, b.w
    inner = scope.child()
    inner.spare = {name for _, name in merge.clobbered}
    code(b, inner, 3)
    if not inner.quiet and ch.chance(50):
        store(b, inner)
    for name in merge.cheap:
        if ch.chance(50):
            w.emit(f"add.s32 \t{name}, {source(ch, inner, w, 'r')}, 1")
    if merge.tail is not None and ch.chance(70):
        type, name = merge.tail
        copied(b, type, name, compute(ch, inner, w, type))


def _tail(b: Build, scope: Scope, merge: Merge) -> None:
    """Straight code at the join that uses the result of the path and stores it."""
    ch, w = b.ch, b.w
    assert merge.tail is not None
    type, name = tail = merge.tail
    inner = Scope({type: [name]}, pointers=dict(scope.pointers), slot=scope.slot)
    steady = [entry for entry in scope.names() if entry[1] not in merge.cheap]
    for other, known in ch.some(steady, 2):
        inner.add(other, known)
    if ch.chance(60):
        name = compute(ch, Scope({t: list(n) for t, n in inner.values.items()}), w, type)
        w.emit(f"add.{type.replace('b', 's')} \t{name}, {name}, {tail[1]}")
    address = element(b, inner, "tails", scope.slot, ROW["tails"])
    w.emit(f"st.global.{type.replace('b', 'u')} \t[{address}+{8 * b.tails}], {name}")
    b.tails += 1
    behind(b, scope, type, name)


# --- shapes ---


def _simple(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (p) P"""
    test = condition(b, scope)
    if b.ch.chance(40):
        test = b.w.do("not.pred", "pred", test)
        b.w.emit(f"@{test} bra \t{join}")
    else:
        b.w.emit(f"@!{test} bra \t{join}")
    arms.marked(0)


def _both(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (p && q) P"""
    b.w.emit(f"@!{condition(b, scope)} bra \t{join}")
    inner = scope.child()
    load(b, inner)
    b.w.emit(f"@!{condition(b, inner)} bra \t{join}")
    arms.marked(0)


def _either(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (p || q) P"""
    begin = b.w.label()
    b.w.emit(f"@{condition(b, scope)} bra \t{begin}")
    inner = scope.child()
    code(b, inner, 1)
    b.w.emit(f"@!{condition(b, inner)} bra \t{join}")
    b.w.place(begin)
    arms.marked(0)


def _with_else(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (p) P else E"""
    other = b.w.label()
    b.w.emit(f"@!{condition(b, scope)} bra \t{other}")
    arms.marked(0)
    b.w.emit(f"bra.uni \t{join}")
    b.w.place(other)
    arms.other()


def _else_first(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (!p) E else P, P last in the text"""
    begin = b.w.label()
    b.w.emit(f"@{condition(b, scope)} bra \t{begin}")
    arms.other()
    b.w.emit(f"bra.uni \t{join}")
    b.w.place(begin)
    arms.marked(0)


def _switch(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """switch (x) { case 0: E; break; case 1: case 3: P; }, a jump by index behind a test of its range"""
    w = b.w
    begin, other, targets = w.label(), w.label(), w.label()
    bits = w.do("shr.u32", "b32", scrambled(w, scope.slot, b.ch.between(0, 999)), 9)
    chosen = w.do("and.b32", "b32", bits, 7)
    w.emit(f"@{w.do('setp.gt.u32', 'pred', chosen, 3)} bra \t{join}")
    w.lines.append(f"{targets}: .branchtargets {other}, {begin}, {join}, {begin};")
    w.emit(f"brx.idx \t{chosen}, {targets}")
    w.place(other)
    arms.other()
    w.emit(f"bra.uni \t{join}")
    w.place(begin)
    arms.marked(0)


def _copies(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (p) P else if (q) P: nvcc duplicated the path"""
    _chain(b, scope, arms, join, 0)


def _exclusive(b: Build, scope: Scope, arms: _Arms, join: str) -> None:
    """if (p) P else if (q) Q"""
    _chain(b, scope, arms, join, 1)


def _chain(b: Build, scope: Scope, arms: _Arms, join: str, second: int) -> None:
    other = b.w.label()
    b.w.emit(f"@!{condition(b, scope)} bra \t{other}")
    arms.marked(0)
    b.w.emit(f"bra.uni \t{join}")
    b.w.place(other)
    inner = scope.child()
    code(b, inner, 1)
    b.w.emit(f"@!{condition(b, inner)} bra \t{join}")
    arms.marked(second)
    if b.ch.chance(30):
        b.w.emit(f"bra.uni \t{join}")


# --- loops of varying trip count ---


def variable(b: Build, scope: Scope, tail: bool = False) -> None:
    """A loop marked ``for variable``: its trips store to places of their own. With ``tail``, what it results in may be
    stored behind it, by straight code; else nothing of it is read there. Where its trips hand nothing on, it is
    `_counted`.
    """
    ch, w = b.ch, b.w
    region = b.region()
    nest = not tail and b.places < 8 and b.left >= SMALLEST + 2 * CARRIED + 40 and ch.chance(30)
    counted = not nest and ch.chance(50)
    chunk = "" if nest or counted else ch.pick(["", "", " chunk=2", " chunk=5"])
    merge = Merge(ch.some([e for e in scope.names() if e[1] in scope.spare], ch.number(3)), [])
    inner = menu(b, scope, merge, min(LARGEST, b.left) - CARRIED)
    b.left -= CARRIED
    inner.place, inner.scratch = ("paths", b.places, 4), "trip"
    b.places += 4
    trip, bound, sum = w.new("b32"), w.new("b32"), w.new("b32")
    w.emit(f"and.b32 \t{trip}, {scrambled(w, scope.slot, ch.between(0, 99))}, 1")
    most = 3 if nest else ch.pick([3, 31, 3]) if counted else ch.pick([3, 7, 1])
    w.emit(f"and.b32 \t{bound}, {scrambled(w, scope.slot, ch.between(100, 999))}, {most}")
    if counted:
        _counted(b, inner, region, (trip, bound), most)
        settle(scope, merge)
        scope.quiet = scope.quiet or not b.independent
        return
    w.emit(f"mov.b32 \t{sum}, {source(ch, inner, w, 'r')}")
    b.mark("for.begin", region, f" variable{chunk}")
    head, latch, join = w.label(), w.label(), w.label()
    test = w.do("setp.ge.s32", "pred", trip, bound)
    w.emit(f"@{test} bra \t{join}")
    b.sites.append(Site(region, b.entered, w.count()))
    if ch.chance(50):
        inner.add("b64", w.do("mul.wide.s32", "b64", trip, 4))
    w.place(head)
    b.mark("body.begin", region)
    inner.add("b32", trip)
    inner.add("b32", sum)
    own = inner.child()
    if ch.chance(20):
        w.emit(f"@{compute(ch, own, w, 'pred')} bra \t{latch}")
    code(b, own, 3, 1)
    store(b, own, trip, most=8)
    if nest:
        _inside(b, own, trip)
    w.emit(f"mad.lo.s32 \t{sum}, {sum}, 3, {source(ch, own, w, 'r')}")
    if ch.chance(15):
        w.emit(f"@{compute(ch, own, w, 'pred')} bra \t{join}")
    b.mark("body.end", region)
    w.place(latch)
    w.emit(f"add.s32 \t{trip}, {trip}, 1")
    w.emit(f"setp.lt.s32 \t{test}, {trip}, {bound}")
    w.emit(f"@{test} bra \t{head}")
    w.place(join)
    b.mark("for.end", region)
    settle(scope, merge)
    if tail and ch.chance(60):
        address = element(b, scope.child(), "tails", scope.slot, ROW["tails"])
        w.emit(f"st.global.u32 \t[{address}+{8 * b.tails}], {sum}")
        b.tails += 1
        behind(b, scope, "b32", sum)
    scope.quiet = scope.quiet or not b.independent


def _counted(b: Build, inner: Scope, region: int, limits: tuple[str, str], most: int) -> None:
    """A loop whose counter goes up or down between the ``limits``, and whose trips may run in any order: up to four of
    them store, each to a place of its own, which an address gives that may move along; any number add to counters that
    all share.
    """
    ch, w = b.ch, b.w
    first, bound = limits
    shape = ch.pick(["lt", "ne", "down", "wide", "first"])
    stores = most <= 3
    trip, step, type = w.do("mov.u32", "b32", first), -1 if shape == "down" else 1, "s32"
    b.mark("for.begin", region, " variable")
    head, latch, join = w.label(), w.label(), w.label()
    test = w.do("setp.ge.s32", "pred", first, bound)
    w.emit(f"@{test} bra \t{join}")
    b.sites.append(Site(region, b.entered, w.count(), counted=True))
    last, counter = bound, trip
    if shape == "down":
        w.emit(f"add.s32 \t{trip}, {bound}, -1")
        last = first
    elif shape == "wide":
        type = "s64"
        counter, last = (w.do("cvt.u64.u32", "b64", word) for word in (trip, bound))
    row = element(b, inner, "paths", inner.slot, ROW["paths"])
    row = w.do("add.s64", "b64", row, w.do("mul.wide.s32", "b64", trip, 8))
    moves = ch.chance(50)
    other = w.do("mul.lo.s32", "b32", inner.slot, 13) if ch.chance(30) else ""
    w.place(head)
    b.mark("body.begin", region)
    own = inner.child()
    if type == "s64":
        own.add("b64", counter)
        w.emit(f"cvt.u32.u64 \t{trip}, {counter}")
    own.add("b32", trip)
    if other:
        own.add("b32", other)
    # The pieces may neither carry on nor store to places that trips share.
    own.quiet = True
    body = own.child()
    if ch.chance(20):
        w.emit(f"@{compute(ch, body, w, 'pred')} bra \t{latch}")
    code(b, body, 3, 1)
    if stores:
        place = row
        if not moves:
            place = element(b, inner, "paths", inner.slot, ROW["paths"])
            place = w.do("add.s64", "b64", place, w.do("mul.wide.s32", "b64", trip, 8))
        w.emit(f"st.global.u32 \t[{place}+{8 * inner.place[1]}], {digest(ch, body, w, 8)}")
    if not inner.quiet:
        atomic(b, body)
        if b.independent and ch.chance(50):
            flag(b, body)
    b.mark("body.end", region)
    w.place(latch)
    again = {"ne": "ne", "down": "ge"}.get(shape, "lt")
    compare = f"setp.{again}.{type} \t{test}, {counter}, {last}"
    if shape == "first":
        compare = f"setp.lt.s32 \t{test}, {w.do('add.s32', 'b32', trip, 1)}, {bound}"
        w.emit(compare)
    w.emit(f"add.{type} \t{counter}, {counter}, {step}")
    if stores and moves:
        w.emit(f"add.s64 \t{row}, {row}, {8 * step}")
    if other:
        w.emit(f"add.s32 \t{other}, {other}, 1000003")
    if shape != "first":
        w.emit(compare)
    w.emit(f"@{test} bra \t{head}")
    w.place(join)
    b.mark("for.end", region)


def _inside(b: Build, scope: Scope, trip: str) -> None:
    """A path in a trip of a variable loop. Each trip has a place for its store, for trips may change their order."""
    w = b.w
    region, join = b.region(), w.label()
    inner = menu(b, scope, Merge([], []), min(LARGEST, b.left))
    inner.add("b32", trip)
    inner.place, inner.scratch, inner.quiet = ("paths", b.places, 4), "", True
    b.places += 4
    word = w.do("add.s32", "b32", scrambled(w, scope.slot, b.ch.between(0, 999)), trip)
    chosen = w.do("and.b32", "b32", word, b.ch.pick([1, 3]))
    w.emit(f"@{w.do('setp.ne.s32', 'pred', chosen, 0)} bra \t{join}")
    b.mark("if.begin", region)
    b.sites.append(Site(region, b.entered, w.count()))
    code(b, inner, 4, 1)
    store(b, inner, trip, most=8)
    b.mark("if.end", region)
    w.place(join)
    scope.quiet = scope.quiet or not b.independent
