"""Marked PTX that grows in one dimension at a time: `SHAPES` names functions from a size to a module's text.

Each size is a number of statements, blocks, values or annotations; twice the size is about twice the text. What the
passes do with such modules has to grow as the text does (`test_growth`, ``bench/growth.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.passes.growth.marks import MARKS
from tests.passes.growth.text import Kernel, ahead, behind, in_loop, in_path, module


def _nested(k: Kernel, value: str, depth: int) -> None:
    if depth:
        k.counted(lambda c: _nested(k, k.made("r", f"add.s32 {{}}, {value}, {c};"), depth - 1), value)
    else:
        k.store(value, value)


def _jump_table(k: Kernel, i: str, size: int) -> None:
    """An unmarked switch."""
    cases, join, table = [k.new("L") for _ in range(size)], k.new("L"), k.new("L")
    k(f"{table}: .branchtargets {', '.join(cases)};")
    k(f"brx.idx {i}, {table};")
    for n, case in enumerate(cases):
        k(f"{case}:")
        k.store(i, k.constant(n))
        k(f"bra {join};")
    k(f"{join}:")


def _accesses(size: int) -> str:
    """Stores in the path and loads of what nobody writes in the rest, and the other way round."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")

        def path() -> None:
            for n in range(size):
                k.store(
                    k.made("r", f"mad.lo.s32 {{}}, {i}, {size}, {n};"),
                    k.read(k.made("r", f"add.s32 {{}}, {i}, {n};")),
                )

        k.path(k.some(word), path, "")
        value = word
        k.local.append(".shared .align 4 .b8 total[4];")
        for n in range(size):
            value = k.made(
                "r", f"add.s32 {{}}, {value}, {k.read(k.made('r', f'add.s32 {{}}, {value}, {n};'))};"
            )
        k(f"red.shared.add.u32 [total], {value};")

    return in_loop(iteration)


def _local(size: int) -> str:
    """An array of the path's own, stored at constant places and then loaded."""

    def path(k: Kernel, i: str, word: str) -> None:
        k.local.append(f".local .align 4 .b8 scratch[{4 * size}];")
        base = k.made("rd", "mov.u64 {}, scratch;")
        for n in range(size):
            k(f"st.local.u32 [{base}+{4 * n}], {word};")
        value = word
        for n in range(size):
            value = k.made(
                "r", f"xor.b32 {{}}, {value}, {k.made('r', f'ld.local.u32 {{}}, [{base}+{4 * n}];')};"
            )
        k.store(i, value)

    return in_path(path)


def _selects(k: Kernel, word: str, size: int) -> str:
    """Branches that if-conversion makes selects of, each with two arms."""
    value = word
    for _ in range(size):
        other, join, result = k.new("L"), k.new("L"), k.new("r")
        k(f"@{k.some(value)} bra {other};")
        k(f"add.s32 {result}, {value}, 5;")
        k(f"bra {join};")
        k(f"{other}:")
        k(f"xor.b32 {result}, {value}, 9;")
        k(f"{join}:")
        value = result
    return value


def _guarded(k: Kernel, word: str, size: int) -> str:
    """Guarded writes of one register."""
    result = k.made("r", f"mov.u32 {{}}, {word};")
    test = k.some(word)
    for n in range(size):
        k(f"@{test} add.s32 {result}, {result}, {n};")
    return result


def _scopes(k: Kernel, word: str, size: int) -> str:
    """Scopes that declare registers of the same names, as inline assembly and calls have."""
    result = k.made("r", f"mov.u32 {{}}, {word};")
    for n in range(size):
        k(
            f"{{ .reg .b32 t<3>; .reg .b32 one; add.s32 t1, {result}, {n}; mov.u32 one, t1; mov.u32 {result}, one; }}"
        )
    return result


def _beside(size: int) -> str:
    """Code ahead of the marked loop and behind it."""
    k = Kernel()
    word = k.branches(k.chain(k.read(k.thread, "data"), size), size // 4)

    def iteration(i: str) -> None:
        k.path(k.some(k.read(i, "data")), lambda: k.store(i, k.read(i)))

    k.loop(iteration)
    k.store(k.thread, k.branches(k.chain(word, size), size // 4))
    return module(k.text())


def _exits(k: Kernel, i: str, size: int) -> None:
    """A loop with many ways out to one place."""
    done = k.new("L")

    def body(c: str) -> None:
        for _ in range(size):
            word = k.read(k.made("r", f"add.s32 {{}}, {c}, {i};"))
            k(f"@{k.some(word)} bra {done};")

    k.counted(body, i)
    k(f"{done}:")
    k.store(i, i)


def _mixed(k: Kernel, word: str, size: int) -> str:
    """Branches of which each varies only because lanes meet behind the one before."""
    value = k.constant(1)
    test = k.some(word)
    for _ in range(size):
        past, result = k.new("L"), k.constant()
        k(f"@{test} bra {past};")
        k(f"add.s32 {result}, {value}, 1;")
        k.store(result, word)
        k(f"{past}:")
        value, test = result, k.some(result)
    return value


def _local_in_blocks(size: int) -> str:
    """Arrays of the path's and of the rest's, stored and loaded in many blocks."""

    def uses(k: Kernel, value: str, array: str) -> str:
        k.local.append(f".local .align 4 .b8 {array}[4];")
        base = k.made("rd", f"mov.u64 {{}}, {array};")
        k(f"st.local.u32 [{base}], {value};")
        for _ in range(size):
            past = k.new("L")
            k(f"@{k.some(value)} bra {past};")
            k(f"st.local.u32 [{base}], {k.made('r', f'ld.local.u32 {{}}, [{base}];')};")
            k(f"{past}:")
        return k.made("r", f"ld.local.u32 {{}}, [{base}];")

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        k.path(k.some(word), lambda: k.store(i, uses(k, word, "inner")))
        k.store(i, uses(k, word, "outer"), "more")

    return in_loop(iteration)


def _backwards(k: Kernel, value: str, size: int) -> str:
    """A chain whose blocks stand in the file in the opposite order."""
    labels, end = [k.new("L") for _ in range(size)], k.new("L")
    registers = [value, *(k.new("r") for _ in range(size))]
    k(f"bra {labels[0] if labels else end};")
    for n in reversed(range(size)):
        k(f"{labels[n]}:")
        k(f"mad.lo.s32 {registers[n + 1]}, {registers[n]}, 5, 7;")
        k(f"bra {labels[n + 1] if n + 1 < size else end};")
    k(f"{end}:")
    return registers[-1]


def _stored(k: Kernel, i: str, value: str) -> None:
    k.store(i, k.read(value))


def _chased(k: Kernel, value: str, size: int) -> str:
    """Loads, each at a place that is a hash of what the one before has loaded."""
    for _ in range(size):
        value = k.read(k.hash(value, 3))
    return value


def _after(k: Kernel, i: str, size: int) -> None:
    """A path, and behind it blocks that have nothing to do with it."""
    word = k.read(i, "data")
    k.path(k.some(word), lambda: k.store(i, k.read(i)))
    k.store(i, k.branches(i, size), "more")


def _in_a_row(k: Kernel, word: str, size: int) -> None:
    """Loops one behind the other."""
    for _ in range(size):
        k.counted(lambda c: k.store(c, word), word)


VALUES: Mapping[str, Callable[[int], str]] = {
    "chain in path": lambda n: in_path(lambda k, i, w: _stored(k, i, k.chain(w, n))),
    "shared uses in path": lambda n: in_path(lambda k, i, w: _stored(k, i, k.shared(w, n))),
    "hash in path": lambda n: in_path(lambda k, i, w: _stored(k, i, k.hash(w, n))),
    "loads of hashes in path": lambda n: in_path(lambda k, i, w: k.store(i, _chased(k, w, n))),
    "chain before path": lambda n: ahead(lambda k, w: k.chain(w, n)),
    "shared uses before path": lambda n: ahead(lambda k, w: k.shared(w, n)),
    "hash before path": lambda n: ahead(lambda k, w: k.hash(w, n)),
    "chain after path": lambda n: behind(lambda k, w: k.chain(w, n)),
    "shared uses after path": lambda n: behind(lambda k, w: k.shared(w, n)),
    "hash after path": lambda n: behind(lambda k, w: k.hash(w, n)),
    "chain backwards in path": lambda n: in_path(lambda k, i, w: _stored(k, i, _backwards(k, w, n))),
    "chain backwards before path": lambda n: ahead(lambda k, w: _backwards(k, w, n)),
    "scopes in path": lambda n: in_path(lambda k, i, w: k.store(i, _scopes(k, w, n))),
    "guarded writes": lambda n: in_path(lambda k, i, w: k.store(i, _guarded(k, w, n))),
    "memory accesses": _accesses,
    "local arrays": _local,
    "local arrays in blocks": _local_in_blocks,
}

BLOCKS: Mapping[str, Callable[[int], str]] = {
    "blocks in path": lambda n: in_path(lambda k, i, w: k.store(i, k.branches(w, n))),
    "blocks before path": lambda n: ahead(lambda k, w: k.branches(w, n)),
    "blocks after path": lambda n: in_loop(lambda k, i: _after(k, i, n)),
    "hammocks after path": lambda n: behind(lambda k, w: k.branches(w, n)),
    "selects before path": lambda n: ahead(lambda k, w: _selects(k, w, n)),
    "selects in path": lambda n: in_path(lambda k, i, w: k.store(i, _selects(k, w, n))),
    "branches that mix": lambda n: in_path(lambda k, i, w: k.store(i, _mixed(k, w, n))),
    "nested loops in path": lambda n: in_path(lambda k, i, w: _nested(k, w, n)),
    "loops in path": lambda n: in_path(lambda k, i, w: _in_a_row(k, w, n)),
    "exits of a loop": lambda n: in_path(lambda k, i, w: _exits(k, w, n)),
    "jump table": lambda n: in_path(lambda k, i, w: _jump_table(k, w, n)),
    "code beside": _beside,
}

SHAPES: Mapping[str, Callable[[int], str]] = {**VALUES, **BLOCKS, **MARKS}
