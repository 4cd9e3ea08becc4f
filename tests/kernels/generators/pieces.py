"""Pieces of straight and branching code that may stand anywhere in an iteration: in a path, ahead of it, behind it."""

from __future__ import annotations

from tests.kernels.generators.build import Build, atomic, load, scalar, store
from tests.kernels.generators.extras import call, count, pair, pair_store, scratch, table
from tests.kernels.generators.reductions import update
from tests.kernels.generators.values import Scope, arithmetic, compute, scrambled, source

SPECIALS = ("%tid.x", "%laneid", "%ctaid.x", "%ntid.x", "%nctaid.x", "%tid.y")


def code(b: Build, scope: Scope, most: int, depth: int = 0) -> None:
    """Up to ``most`` random pieces, not nested deeper than ``2 - depth``."""
    for _ in range(b.ch.between(0, most)):
        piece = b.ch.pick(PIECES)
        if piece in (_branch, _loop):
            if depth < 2:
                piece(b, scope, depth)
        else:
            piece(b, scope)
    update(b, scope)


def condition(b: Build, scope: Scope) -> str:
    """A predicate that holds in a random share of lanes, mostly between one and seven of eight."""
    ch, w = b.ch, b.w
    word = scrambled(w, scope.slot, ch.between(0, 999))
    kind = ch.number(100)
    if kind == 99:
        return compute(ch, scope, w, "pred")
    if kind == 98:
        return scope.add("pred", w.do("setp.gt.u32", "pred", ch.pick(scope.values["b32"]), 77))
    if kind == 97:
        return scope.add("pred", w.do("setp.ge.u32", "pred", word, ch.pick([0, 1])))
    bits = w.do("shr.u32", "b32", word, ch.between(3, 12))
    chosen = w.do("and.b32", "b32", bits, 7)
    if kind > 70:
        other = source(ch, scope, w, "r")
        chosen = w.do("and.b32", "b32", w.do("xor.b32", "b32", chosen, other), 7)
    compare = ch.pick(["setp.lt.u32", "setp.ge.u32", "setp.gt.s32"])
    return scope.add("pred", w.do(compare, "pred", chosen, ch.between(1, 6)))


def _arithmetic(b: Build, scope: Scope) -> None:
    arithmetic(b.ch, scope, b.w, 4)


def _special(b: Build, scope: Scope) -> None:
    scope.add("b32", b.w.do("mov.u32", "b32", b.ch.pick(SPECIALS)), spare=True)


def _scalar(b: Build, scope: Scope) -> None:
    type, name = scalar(b, b.ch.pick(["ua", "ub", "la", "fa", "da", "ha"]))
    scope.add(type, name, spare=True)


def _store(b: Build, scope: Scope) -> None:
    if not scope.quiet:
        store(b, scope)


def _atomic(b: Build, scope: Scope) -> None:
    if not scope.quiet:
        atomic(b, scope)


def _branch(b: Build, scope: Scope, depth: int) -> None:
    """An if, perhaps with an else, on anything."""
    ch, w = b.ch, b.w
    test = compute(ch, scope, w, "pred")
    other, join = w.label(), w.label()
    has_else = ch.chance(40)
    w.emit(f"@!{test} bra \t{other if has_else else join}")
    _arm(b, scope, depth)
    if has_else:
        w.emit(f"bra.uni \t{join}" if ch.chance(50) else f"bra \t{join}")
        w.place(other)
        _arm(b, scope, depth)
    w.place(join)


def _inner(scope: Scope) -> Scope:
    """The scope of a piece that may not run, or run several times."""
    inner = scope.child()
    inner.unset = {}
    inner.scratch = scope.scratch if scope.scratch == "path" else ""
    return inner


def _arm(b: Build, scope: Scope, depth: int) -> None:
    inner = _inner(scope)
    compute(b.ch, inner, b.w, "b32")
    code(b, inner, 2, depth + 1)
    if not scope.quiet:
        store(b, inner)


def _loop(b: Build, scope: Scope, depth: int) -> None:
    """A loop of zero to three trips, by a value of the lane, that carries values on."""
    ch, w = b.ch, b.w
    bound = w.do("and.b32", "b32", source(ch, scope, w, "r"), 3)
    trip = w.do("mov.u32", "b32", 0)
    sum = w.do("mov.b32", "b32", source(ch, scope, w, "r"))
    head, join = w.label(), w.label()
    test = w.do("setp.eq.s32", "pred", bound, 0)
    w.emit(f"@{test} bra \t{join}")
    w.place(head)
    inner = _inner(scope)
    inner.add("b32", trip)
    inner.add("b32", sum)
    code(b, inner, 2, depth + 1)
    w.emit(f"mad.lo.s32 \t{sum}, {sum}, 5, {source(ch, inner, w, 'r')}")
    if not scope.quiet and ch.chance(50):
        store(b, inner, trip if scope.place[0] == "paths" else None)
    w.emit(f"add.s32 \t{trip}, {trip}, 1")
    w.emit(f"setp.lt.u32 \t{test}, {trip}, {bound}")
    w.emit(f"@{test} bra \t{head}")
    w.place(join)
    scope.add("b32", sum, spare=True)


PIECES = (
    *(
        _arithmetic,
        _arithmetic,
        load,
        load,
        _special,
        _scalar,
        _store,
        _atomic,
        _branch,
        _branch,
        _loop,
        _loop,
    ),
    *(pair, pair_store, scratch, table, count, call),
)
