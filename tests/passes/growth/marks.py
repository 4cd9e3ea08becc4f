"""Modules that grow in what is marked, or in what a marked piece has: live-ins, paths, loops, sums, trips."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.passes.growth.text import HEADING, Kernel, in_loop, in_path, module


def _live_ins(size: int) -> str:
    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        values = [k.read(k.made("r", f"add.s32 {{}}, {i}, {n};")) for n in range(size)]

        def path() -> None:
            result = word
            for value in values:
                result = k.made("r", f"xor.b32 {{}}, {result}, {value};")
            k.store(i, result)

        k.path(k.some(word), path)

    return in_loop(iteration)


def _rebuilt_live_ins(size: int) -> str:
    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        values = [k.made("r", f"mad.lo.s32 {{}}, {word}, {n + 3}, {n};") for n in range(size)]

        def path() -> None:
            result = word
            for value in values:
                result = k.made("r", f"xor.b32 {{}}, {result}, {value};")
            k.store(i, result)

        k.path(k.some(word), path)

    return in_loop(iteration)


def _paths(size: int) -> str:
    def iteration(k: Kernel, i: str) -> None:
        for _ in range(size):
            word = k.read(i, "data")
            k.path(k.some(word), lambda: k.store(i, k.read(i)))

    return in_loop(iteration)


def _cases(size: int) -> str:
    """Exclusive paths, told apart by a chain of comparisons."""

    def iteration(k: Kernel, i: str) -> None:
        word, join, group = k.read(i, "data"), k.new("L"), k.number() + 1
        for n in range(size):
            past = k.new("L")
            k(f"@{k.made('p', f'setp.ne.s32 {{}}, {word}, {n};')} bra {past};")
            region = k.number()
            k(f"// ccc if.begin {region} kind=switch case={n} group={group} independent")
            k.store(i, k.chain(k.read(word), 5))
            k(f"// ccc if.end {region}")
            k(f"bra {join};")
            k(f"{past}:")
        k(f"{join}:")

    return in_loop(iteration)


def _loops(size: int) -> str:
    k = Kernel()

    def iteration(i: str) -> None:
        word = k.read(i, "data")
        k.path(k.some(word), lambda: k.store(i, k.read(i)))

    for _ in range(size):
        k.loop(iteration)
    return module(k.text())


def _functions(size: int, *, marked: bool) -> str:
    texts = []
    for n in range(size):
        k = Kernel(f"k{n}")

        def iteration(i: str, k: Kernel = k) -> None:
            word = k.read(i, "data")
            k.path(k.some(word), lambda: k.store(i, k.read(i)))

        if marked or n == 0:
            k.loop(iteration)
        else:
            k.store(k.thread, k.branches(k.thread, 3))
        texts.append(k.text())
    return module(*texts)


def _calls(size: int) -> str:
    """Functions that each call the next two; the path calls the first."""

    def call(callee: int, register: str) -> str:
        return (
            f"{{ .param .b32 a; .param .b32 b; st.param.b32 [a], {register};"
            f" call (b), f{callee}, (a); ld.param.b32 {register}, [b]; }}"
        )

    texts = []
    for n in reversed(range(size)):
        calls = " ".join(call(callee, "%r1") for callee in (n + 1, n + 2) if callee < size)
        texts.append(
            f".func (.param .b32 f{n}_r) f{n}(.param .b32 f{n}_a) {{ .reg .b32 %r<2>; ld.param.u32 %r1, [f{n}_a];"
            f" {calls} add.s32 %r1, %r1, 1; st.param.b32 [f{n}_r], %r1; ret; }}\n"
        )

    def path(k: Kernel, i: str, word: str) -> None:
        result = k.made("r", f"mov.u32 {{}}, {word};")
        k(call(0, result))
        k.store(i, result)

    return module(*texts, in_path(path).removeprefix(HEADING))


def _sums_of_hashes(size: int) -> str:
    """A reduction's updates in the path, each by a word at a place that is a hash of the one before."""
    k = Kernel()
    total = k.constant()

    def path(place: str) -> None:
        for _ in range(size):
            place = k.hash(place, 3)
            k(f"add.s32 {total}, {total}, {k.read(place)};")

    def iteration(i: str) -> None:
        word = k.read(i, "data")
        k.path(k.some(word), lambda: path(word))

    k.loop(iteration, "reduce=+:s")
    k.store(k.thread, total)
    return module(k.text())


def _loads(size: int) -> str:
    """Coalesced loads at the head of a path, each by an address of its own."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")

        def path() -> None:
            values = [k.read(k.made("r", f"add.s32 {{}}, {i}, {n};")) for n in range(size)]
            for value in values:
                k(f"red.global.add.u32 [%out], {value};")

        k.path(k.some(word), path)

    return in_loop(iteration)


def _reductions(size: int) -> str:
    k = Kernel()
    totals = [k.constant() for _ in range(size)]

    def iteration(i: str) -> None:
        word = k.read(i, "data")

        def path() -> None:
            place = word
            for total in totals:
                place = k.hash(place, 1)
                k(f"add.s32 {total}, {total}, {k.read(place)};")

        k.path(k.some(word), path)

    k.loop(iteration, "reduce=" + ",".join(f"+:s{n}" for n in range(size)))
    for n, total in enumerate(totals):
        k.store(k.made("r", f"mad.lo.s32 {{}}, {k.thread}, {size}, {n};"), total)
    return module(k.text())


def _carried(size: int, clauses: str = "kind=while") -> str:
    """A loop of tasks whose trips hand on many values."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        values = [k.made("r", f"add.s32 {{}}, {word}, {n};") for n in range(size)]

        def trip(c: str) -> None:
            for a, b in zip(values, values[1:] + values[:1], strict=True):
                k(f"mad.lo.s32 {a}, {b}, 3, {c};")

        k.tasks(trip, word, clauses)
        for n, value in enumerate(values):
            k.store(k.made("r", f"mad.lo.s32 {{}}, {i}, {size}, {n};"), value)

    return in_loop(iteration)


def _trips(values: Callable[[Kernel, str], object], clauses: str) -> str:
    """A loop of tasks with that in each trip."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")

        def trip(c: str) -> None:
            place = k.made("r", f"mad.lo.s32 {{}}, {i}, 64, {c};")
            values(k, place)

        k.tasks(trip, word, clauses)

    return in_loop(iteration)


def _scattering_branches(size: int) -> Callable[[Kernel, str], None]:
    """Branches that store to places found in data: a multiple of the thread's place would be its own."""
    return lambda k, i: k.store(i, k.branches(k.made("r", f"xor.b32 {{}}, {i}, 7;"), size))


def _inductions(size: int) -> str:
    """A counted loop with many counters."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        counters = [k.made("r", f"add.s32 {{}}, {word}, {n};") for n in range(size)]

        def trip(c: str) -> None:
            for n, counter in enumerate(counters):
                k(f"red.global.add.u32 [{k.element('out', counter)}], {c};")
                k(f"add.s32 {counter}, {counter}, {n + 1};")

        k.tasks(trip, word, "")

    return in_loop(iteration)


def _nested_paths(size: int) -> str:
    """Marked paths in each other."""

    def iteration(k: Kernel, i: str) -> None:
        def within(depth: int) -> None:
            word = k.read(i, "data")
            if depth:
                k.path(k.some(word), lambda: within(depth - 1))
            k.store(i, word)

        within(size)

    return in_loop(iteration)


def _index_chain(size: int) -> str:
    """A loop's index by a chain of operations, uniform and not."""
    k = Kernel()
    start = k.chain(k.thread, size)
    step = k.shared(k.made("r", "mov.u32 {}, %ntid.x;"), size)
    region, again, done = k.number(), k.new("L"), k.new("L")
    index = k.made("r", f"mov.u32 {{}}, {start};")
    k(f"// ccc for.begin {region}")
    k(f"@{k.made('p', f'setp.ge.u32 {{}}, {index}, {k.count};')} bra {done};")
    k(f"{again}:")
    k(f"// ccc body.begin {region}")
    k.path(k.some(k.read(index, "data")), lambda: k.store(index, k.read(index)))
    k(f"// ccc body.end {region}")
    k(f"add.s32 {index}, {index}, {step};")
    k(f"@{k.made('p', f'setp.lt.u32 {{}}, {index}, {k.count};')} bra {again};")
    k(f"{done}:")
    k(f"// ccc for.end {region}")
    return module(k.text())


MARKS: Mapping[str, Callable[[int], str]] = {
    "live-ins": _live_ins,
    "rebuilt live-ins": _rebuilt_live_ins,
    "coalesced loads": _loads,
    "paths of a loop": _paths,
    "cases": _cases,
    "nested paths": _nested_paths,
    "marked loops": _loops,
    "marked functions": lambda n: _functions(n, marked=True),
    "unmarked functions": lambda n: _functions(n, marked=False),
    "calls": _calls,
    "reductions": _reductions,
    "sums of hashes": _sums_of_hashes,
    "carried values": _carried,
    "counters": _inductions,
    "trips with chains": lambda n: _trips(lambda k, i: k.store(i, k.hash(i, n)), "kind=while"),
    "expanded trips with chains": lambda n: _trips(lambda k, i: k.store(i, k.hash(i, n)), ""),
    "blocks in trips": lambda n: _trips(_scattering_branches(n), "kind=while chunk=1"),
    "chain to the index": _index_chain,
}
