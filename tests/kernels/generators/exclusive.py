"""Three to six marked paths of which a lane comes to one at most, as a switch or a chain of conditions leads to them,
and the common tail behind their join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.kernels.generators.build import ATOMICS, COUNTERS, ROW, Build, Site, element, scalar, store
from tests.kernels.generators.paths import (
    BYTES,
    LARGEST,
    SMALLEST,
    Merge,
    copied,
    letter,
    menu,
    result,
    settle,
)
from tests.kernels.generators.pieces import code, condition
from tests.kernels.generators.reductions import behind
from tests.kernels.generators.values import Scope, as_word, compute, digest, scrambled, source

FEWEST, MOST = 3, 6
NUMBERS = 8  # that an index may have: with fewer paths the others lead to none
TESTS = 12  # bytes of what tests on the way compute for the paths
STEADY = 16  # bytes of what a tail reads beside the paths' results
STORES = 2  # of a tail

Result = tuple[str, str]
"""A type and a register that paths write and the tail reads."""


@dataclass
class _Cases:
    """The paths: a label and a region each, where a lane goes that comes to none, whether no lane does, and what
    is known in each path because the way there leads through its computation.
    """

    labels: list[str]
    regions: list[int]
    default: str
    covering: bool
    known: list[list[tuple[str, str]]] = field(default_factory=list)


def _slots(count: int) -> int:
    """Slots that a warp has for sorted paths: two share 94, one more takes 63."""
    return count // 2 * 94 + count % 2 * 63


def room(b: Build, count: int) -> int:
    """Bytes that one context of so many sorted paths may have."""
    return 32 * b.left // _slots(count)


def fits(b: Build) -> bool:
    """Whether there is room for exclusive paths."""
    return b.places <= 12 and room(b, FEWEST) >= SMALLEST + TESTS


def exclusive(b: Build, scope: Scope, latch: str | None) -> None:
    """Code that leads to the paths, the paths, and a tail; ``latch`` is where an iteration ends early."""
    ch, w = b.ch, b.w
    counts = [n for n in range(FEWEST, MOST + 1) if room(b, n) >= SMALLEST + TESTS]
    count = ch.pick([*counts, *counts[2:]])
    allowed = min(LARGEST, room(b, count)) - TESTS
    results = _results(b, scope, allowed - SMALLEST)
    reserved = TESTS + (STEADY + sum(BYTES[type] for type, _ in results) if results else 0)
    outer = _ahead(b, scope)
    own = [entry for entry in scope.names() if entry[1] in scope.spare]
    merge = Merge(ch.some(own, ch.number(3)), [])
    before = b.left
    shared = menu(b, outer, merge, allowed + TESTS - reserved)
    b.left = before - (reserved + before - b.left) * _slots(count) // 32
    shared.place, shared.scratch = ("paths", b.places, 4), "path"
    b.places += 4
    join, arm = w.label(), w.label()
    kind = ch.number(100)
    covering = kind < 40
    default = latch if latch is not None and kind >= 90 else arm if kind >= 70 else join
    cases = _Cases([w.label() for _ in range(count)], [b.region() for _ in range(count)], default, covering)
    _lead(b, outer, cases)
    whole = ch.chance(50) or not b.independent
    order = ch.some(range(count), count) if ch.chance(70) else [*range(count)][::-1]
    for k in order:
        w.place(cases.labels[k])
        inner = shared.child()
        for type, name in cases.known[k]:
            inner.add(type, name)
        _path(b, inner, cases.regions[k], results if whole else ch.some(results, ch.number(len(results) + 1)))
        if default == arm or k != order[-1] or ch.chance(50):
            w.emit(f"bra.uni \t{join}")
    if default == arm:
        w.place(arm)
        _other(b, scope.child(), merge, results)
    w.place(join)
    settle(scope, merge)
    if results:
        _tail(b, scope, results)
    scope.quiet = scope.quiet or not b.independent


def _results(b: Build, scope: Scope, left: int) -> list[Result]:
    """Registers for what paths leave to the tail, with what they hold where no path writes them."""
    found: list[Result] = []
    left -= STEADY
    for _ in range(b.ch.pick([1, 2, 3, 0, 1])):
        type = b.ch.pick(["b32", "b32", "f32", "b64", "f64"])
        if left >= BYTES[type]:
            left -= BYTES[type]
            name = b.w.new(type)
            copied(b, type, name, source(b.ch, scope, b.w, letter(type)))
            found.append((type, name))
    return found


def _ahead(b: Build, scope: Scope) -> Scope:
    """The scope of the paths: some values of it are computed here, and by a small branch; only paths read them."""
    ch, w = b.ch, b.w
    outer = scope.child()
    outer.spare, outer.unset = set(), {}
    if ch.chance(50):
        chosen = w.do("mov.b32", "b32", source(ch, outer, w, "r"))
        over = w.label()
        w.emit(f"@{compute(ch, outer, w, 'pred')} bra \t{over}")
        w.emit(f"mad.lo.s32 \t{chosen}, {chosen}, 3, {source(ch, outer, w, 'r')}")
        w.place(over)
        outer.add("b32", chosen)
    for _ in range(ch.number(4)):
        compute(ch, outer, w, ch.pick(["b32", "b32", "b64", "f32", "b16", "pred"]))
    outer.spare = set()
    return outer


# --- the ways to the paths ---


def _lead(b: Build, scope: Scope, cases: _Cases) -> None:
    """Branches to one of the paths, or past them."""
    cases.known = [[] for _ in cases.labels]
    b.ch.pick([_jump, _tests, _tree, _conditions, _jump])(b, scope, cases)


def _number(b: Build, scope: Scope, count: int) -> str:
    """A number below `NUMBERS`: the lane's own, or one for all lanes of a warp, or of a part of it."""
    ch, w = b.ch, b.w
    salt = ch.number(1000)
    kind = ch.number(100)
    if kind >= 95:
        word = scrambled(w, scalar(b, "ua")[1], salt)
    else:
        word = scrambled(w, scope.slot, salt)
        if kind >= 40:
            together = w.do("shr.u32", "b32", scope.slot, 5 if kind >= 50 else ch.between(1, 4))
            word, own = scrambled(w, together, salt), word
            if kind >= 70:
                # Now and then a lane has its own.
                rare = w.do("and.b32", "b32", own, 63 if kind >= 80 else 7)
                word = w.do("selp.b32", "b32", own, word, w.do("setp.eq.s32", "pred", rare, 5))
    bits = w.do("shr.u32", "b32", word, ch.between(3, 12))
    if ch.chance(50):
        return w.do("and.b32", "b32", bits, NUMBERS - 1)
    return w.do("rem.u32", "b32", bits, ch.pick([count, count + 1]))


def _jump(b: Build, scope: Scope, cases: _Cases) -> None:
    """switch (x): a jump by index, behind a test of its range or with a place for each number"""
    ch, w = b.ch, b.w
    count = len(cases.labels)
    number = _number(b, scope, count)
    table = w.label()
    targets = list(cases.labels)
    if cases.covering or ch.chance(50):
        targets += [
            cases.labels[k % count] if cases.covering else cases.default for k in range(count, NUMBERS)
        ]
    else:
        w.emit(f"@{w.do('setp.gt.u32', 'pred', number, count - 1)} bra \t{cases.default}")
    w.lines.append(f"{table}: .branchtargets {', '.join(targets)};")
    w.emit(f"brx.idx \t{number}, {table}")


def _tests(b: Build, scope: Scope, cases: _Cases) -> None:
    """if (x == 0) ... else if (x == 1) ..."""
    number = _number(b, scope, len(cases.labels))
    _chain(b, scope, cases, lambda k, _: b.w.do("setp.eq.s32", "pred", number, k))


def _conditions(b: Build, scope: Scope, cases: _Cases) -> None:
    """if (p) ... else if (q) ..., each on something else"""
    _chain(b, scope, cases, lambda _, inner: condition(b, inner))


def _chain(b: Build, scope: Scope, cases: _Cases, test: Callable[[int, Scope], str]) -> None:
    """Tests, one after the other, and between them perhaps computations that paths further on read."""
    ch, w = b.ch, b.w
    inner, left = scope.child(), TESTS
    for k, label in enumerate(cases.labels):
        if k and ch.chance(25) and left >= 4:
            left -= 4
            made = ("b32", compute(ch, inner, w, "b32"))
            for known in cases.known[k:]:
                known.append(made)
        elif k and ch.chance(8):
            code(b, inner.child(), 1)
        if cases.covering and k == len(cases.labels) - 1:
            w.emit(f"bra.uni \t{label}")
        else:
            w.emit(f"@{test(k, inner)} bra \t{label}")
    if not cases.covering:
        w.emit(f"bra.uni \t{cases.default}")


def _tree(b: Build, scope: Scope, cases: _Cases) -> None:
    """switch (x), by halves"""
    w = b.w
    number = _number(b, scope, len(cases.labels))
    if not cases.covering:
        w.emit(f"@{w.do('setp.gt.u32', 'pred', number, len(cases.labels) - 1)} bra \t{cases.default}")
    _half(b, number, 0, cases.labels)


def _half(b: Build, number: str, first: int, labels: Sequence[str]) -> None:
    w = b.w
    if len(labels) == 1:
        w.emit(f"bra.uni \t{labels[0]}")
        return
    half = len(labels) // 2
    upper = w.label()
    w.emit(f"@{w.do('setp.gt.s32', 'pred', number, first + half - 1)} bra \t{upper}")
    _half(b, number, first, labels[:half])
    w.place(upper)
    _half(b, number, first + half, labels[half:])


# --- the paths and the tail ---


def _path(b: Build, inner: Scope, region: int, results: Sequence[Result]) -> None:
    """One path, which writes ``results``."""
    ch, w = b.ch, b.w
    b.mark("if.begin", region)
    b.sites.append(Site(region, b.entered, w.count(), exclusive=True))
    code(b, inner, 3)
    if not inner.quiet and (not results or ch.chance(60)):
        store(b, inner, most=8)
    for type, name in results:
        # A lane would compute again what is cheap, and such a path stands by itself.
        result(b, inner, (type, name), dear=not b.independent or ch.chance(85))
    b.mark("if.end", region)


def _other(b: Build, scope: Scope, merge: Merge, results: Sequence[Result]) -> None:
    """What lanes run that come to none of the paths."""
    ch = b.ch
    scope.spare = {name for _, name in merge.clobbered}
    code(b, scope, 2)
    if not scope.quiet and ch.chance(50):
        store(b, scope)
    for type, name in ch.some(results, ch.number(len(results) + 1)):
        copied(b, type, name, compute(ch, scope, b.w, type))


def _tail(b: Build, scope: Scope, results: Sequence[Result]) -> None:
    """Straight code at the join that stores what the paths left, or counts it."""
    ch, w = b.ch, b.w
    inner = Scope(pointers=dict(scope.pointers), slot=scope.slot)
    for type, name in [*results, *ch.some(scope.names(), 2)]:
        inner.add(type, name)
    stores = 0
    for type, name in results:
        if ch.chance(40):
            value = compute(ch, Scope({t: list(n) for t, n in inner.values.items()}), w, type)
            name = w.do(f"add.{type.replace('b', 's')}", type, value, name)
            inner.add(type, name)
        if stores < STORES and ch.chance(70):
            address = element(b, inner, "tails", scope.slot, ROW["tails"])
            w.emit(f"st.global.{type.replace('b', 'u')} \t[{address}+{8 * b.tails}], {name}")
            b.tails += 1
            stores += 1
        else:
            _count(b, inner, type, name)
        behind(b, scope, type, name)
    if stores < STORES and ch.chance(50):
        address = element(b, inner, "tails", scope.slot, ROW["tails"])
        w.emit(f"st.global.u32 \t[{address}+{8 * b.tails}], {digest(ch, inner, w, 4)}")
        b.tails += 1


def _count(b: Build, scope: Scope, type: str, name: str) -> None:
    """An order-free atomic on the result."""
    w = b.w
    kind = b.ch.number(len(ATOMICS))
    value = as_word(w, type, name)
    index = w.do("and.b32", "b32", value, COUNTERS - 1)
    address = f"[{element(b, scope, 'counters', index, 4)}+{4 * COUNTERS * kind}]"
    w.emit(f"red.global.{ATOMICS[kind]} \t{address}, {value}")
