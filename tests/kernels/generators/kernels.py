"""Kernels with marked loops and paths, legal by construction, with a launch and arguments for each.

A kernel is text as nvcc writes it (`loops`, `paths`, `exclusive`, `pieces`), made from `Choices`. What
keeps it legal:

* each iteration has a *slot*, a number of its own over all threads and trips, and stores to rows of that slot only;
  in a row, each path has its own places; what all share are read-only buffers and order-free atomics;
* no register carries a value from one run of a path to a later one;
* what is read behind a path is cheap to compute again, or read by straight code at the join alone;
* without the clause ``independent``, code behind a path reads memory through ``.nc`` only;
* contexts stay within what the block's shared memory holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.kernels.generators import grids, reductions
from tests.kernels.generators.build import (
    ATOMICS,
    BUFFERS,
    COUNTERS,
    FLAG,
    REDUCTIONS,
    ROW,
    SCALARS,
    WORDS,
    Build,
    Site,
    parameter,
    pointer,
    scalar,
)
from tests.kernels.generators.code import COUNT, Choices, Writer, drawn, seeded
from tests.kernels.generators.extras import BINS, FUNCTION, TILE, beginning, declarations, ending
from tests.kernels.generators.loops import marked_loop
from tests.kernels.generators.values import Scope, arithmetic, scrambled

SHARED_BYTES = 49152
OUTER_TRIPS = 3
NAME = "k"

LIMITS = ["maxntid", "reqntid", None, "block", "maxntid short"]
"""What may tell the size of a block."""

BLOCKS = [
    (32,), (64,), (33,), (1,), (96,), (8, 4), (16, 4), (7, 5), (4, 4, 4), (31,), (5, 1, 13),
    (100,), (128,), (2, 3, 11), (256,), (32, 8), (1000,), (1024,), (32, 32),
]  # fmt: skip
SMALL = [(32,), (32,), (64,), (8, 4), (33,), (96,), (16, 4), (7, 5), (128,), (4, 4, 4), (5, 1, 13)]
"""Blocks whose warps' stacks of sorted paths have room; most of them are whole warps."""


@dataclass(frozen=True)
class Case:
    """A kernel and how to launch it.

    ``text`` is the marked PTX; lines that begin with `COUNT` belong to its counting twin. ``nested`` tells that an
    unmarked loop runs the marked ones several times. ``resident`` blocks share the work of one marked ``grid``.
    """

    text: str = field(repr=False)
    grid: tuple[int, ...]
    block: tuple[int, ...]
    scalars: tuple[Any, ...]
    seed: int
    slots: int
    nested: bool
    sites: tuple[Site, ...]
    counters: int
    resident: int | None = None

    @property
    def ptx(self) -> str:
        """The marked PTX."""
        lines = self.text.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(COUNT))

    @property
    def sets_flag(self) -> bool:
        """Whether iterations set a flag unless it is set: how many do depends on the order of lanes."""
        return f"+{FLAG}]" in self.text

    @property
    def unmarked(self) -> str:
        """The PTX without markers."""
        lines = self.ptx.splitlines(keepends=True)
        return "".join(line for line in lines if "// ccc " not in line)

    @property
    def counting(self) -> str:
        """The unmarked PTX that also counts, per warp, entries into loops and tasks; one more parameter."""
        text = self.text.replace(COUNT, "\t")
        return "".join(line for line in text.splitlines(keepends=True) if "// ccc " not in line)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(np.prod(self.block))

    @property
    def total(self) -> int:
        """Threads of the grid."""
        return self.threads * int(np.prod(self.grid))

    @property
    def warps(self) -> int:
        """Warps of the grid."""
        return -(-self.threads // 32) * int(np.prod(self.grid))

    def arguments(self) -> list[Any]:
        """Fresh arguments, the same each time."""
        random = np.random.default_rng(self.seed)
        words = random.integers(0, 1 << 32, (2, WORDS), dtype=np.uint32)
        counters = np.zeros((len(ATOMICS), COUNTERS), np.uint32)
        for row, name in zip(counters, ATOMICS, strict=True):
            row[:] = {"min.s32": 0x7FFFFFFF, "and.b32": 0xFFFFFFFF, "max.s32": 0x80000000}.get(name, 0)
        results = np.zeros(len(REDUCTIONS), np.uint64)
        results[:] = [first for _, first in REDUCTIONS.values()]
        counters = np.concatenate([counters.ravel(), results.view(np.uint32), np.zeros(1, np.uint32)])
        outputs = {name: np.zeros(self.slots * ROW[name], np.uint8) for name in ("paths", "rest", "tails")}
        outputs["final"] = np.zeros(self.total * ROW["final"], np.uint8)
        buffers = {"data": words[0], "plain": words[1], "counters": counters, **outputs}
        return [*(buffers[name] for name in BUFFERS), *self.scalars]


def kernels(kind: str = "") -> st.SearchStrategy[Case]:
    """Legal kernels of a `kernel` kind."""

    @st.composite
    def strategy(draw: Callable[[st.SearchStrategy[int]], int]) -> Case:
        return kernel(drawn(draw), kind)

    return strategy()


def from_seed(seed: int, kind: str = "") -> Case:
    """The kernel of a seed, without hypothesis."""
    return kernel(seeded(seed), kind)


def kernel(ch: Choices, kind: str = "") -> Case:
    """A kernel from choices. Loops of the kind ``exclusive`` have three or more exclusive paths, those of
    ``reductions`` update accumulators that their marks name, and blocks of both have room for that. Kernels of the kind
    ``grid`` are marked so. Those of the kind ``recursive`` call functions that are, in loops or as grids.
    """
    if kind == "grid" or (kind == "recursive" and ch.chance(25)):
        return _grid_kernel(ch, recursive=kind == "recursive")
    exclusive, reducing, recursive = (kind == name for name in ("exclusive", "reductions", "recursive"))
    roomy = exclusive or reducing or recursive
    block, grid = _shape(ch, SMALL if roomy else BLOCKS)
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    nested = ch.chance(15)
    most = (
        30
        if exclusive and threads * blocks <= 64
        else 14
        if threads * blocks <= 64
        else 8
        if threads * blocks <= 128
        else 4
        if threads <= 256
        else 2
    )
    trips = ch.pick([most, most, most - 1, most // 2, 1]) if not nested else ch.pick([most // 2, 1])
    limit = ch.pick([name for name in LIMITS if name] if roomy else LIMITS)
    left = _room(threads, limit) - (reductions.RESERVED if reducing else 0)
    b = Build(
        ch,
        Writer(),
        threads,
        threads * blocks,
        max(trips, 1),
        ch.chance(65),
        min(left, 900 if exclusive else 400),
    )
    b.clauses = _block_clause(limit, block)
    b.exclusive, b.recursive = exclusive, recursive
    b.together = threads % 32 == 0 and not nested and ch.chance(15)
    _body(b, nested, grid, reducing)
    return _case(b, limit, block, grid, nested=nested)


def _grid_kernel(ch: Choices, recursive: bool) -> Case:
    """A kernel marked ``grid``."""
    block, grid = ch.pick(grids.BLOCKS), ch.pick(grids.GRIDS)
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    limit = ch.pick([name for name in LIMITS if name] if recursive else LIMITS)
    b = Build(
        ch, Writer(), threads, threads * blocks, 1, ch.chance(65), min(_room(threads, limit), 400),
        clauses=_block_clause(limit, block), blockwise=True, recursive=recursive,
    )  # fmt: skip
    b.done = b.w.label()
    scope = Scope()
    grids.begin(b, scope)
    scope.slot = _thread(b, grid)
    scope.add("b32", scope.slot)
    scope.spare = set()
    grids.task(b, scope, threads % 32 == 0)
    b.w.place(b.done)
    b.w.emit("ret")
    return _case(b, limit, block, grid, resident=grids.resident(ch, blocks))


def _room(threads: int, limit: str | None) -> int:
    """Bytes a thread that stacks may use."""
    return (SHARED_BYTES - 4 * (TILE + BINS)) // (max(threads, 32) if limit else 1024)


def _block_clause(limit: str | None, block: tuple[int, ...]) -> str:
    return f" block={','.join(str(size) for size in block)}" if limit == "block" else ""


def _case(
    b: Build,
    limit: str | None,
    block: tuple[int, ...],
    grid: tuple[int, ...],
    nested: bool = False,
    resident: int | None = None,
) -> Case:
    """The case of a body that is complete."""
    scalars = _scalars(b.ch, b)
    text = _module(b, _directive(limit, block))
    slots = b.span * (OUTER_TRIPS if nested else 1)
    seed, counters = b.ch.number(1 << 16), b.w.counted
    return Case(text, grid, block, scalars, seed, slots, nested, tuple(b.sites), counters, resident)


def _shape(ch: Choices, blocks: list[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    block = ch.pick([*blocks[:11], *blocks])
    threads = int(np.prod(block))
    return block, ch.pick([(1,), (1,), (2,), (3,), (2, 2)] if threads <= 64 else [(1,)])


def _scalars(ch: Choices, b: Build) -> tuple[Any, ...]:
    """Values for the scalar parameters; ``n`` and ``trips`` decide how often loops run."""
    n = ch.pick([b.span, b.span - 1, b.span, b.span - b.total // 2, 0, 1, b.span // 2 + 3, b.total - 1])
    trips = ch.pick([b.trips, b.trips, b.trips, b.trips - 1, 1, 0])
    values = {
        "n": min(n, b.span), "trips": trips, "ua": ch.number(1 << 32), "ub": ch.number(1000), "la": ch.number(1 << 40),
        "fa": ch.number(1000) / 8, "da": ch.number(1000) / 16, "ha": ch.number(1 << 16),
    }  # fmt: skip
    return tuple(values[name] for name in SCALARS)


def _directive(limit: str | None, block: tuple[int, ...]) -> str:
    """The limit of the block size; NVVM 20 leaves out sizes of 1."""
    if limit in (None, "block"):
        return ""
    name, _, short = str(limit).partition(" ")
    sizes = block if short else (*block, 1, 1)[:3]
    return f".{name} {', '.join(str(size) for size in sizes)}\n"


def _body(b: Build, nested: bool, grid: tuple[int, ...], reducing: bool) -> None:
    """The kernel's body: parameters, early returns, one or two marked loops, perhaps a loop or a branch around them."""
    ch, w = b.ch, b.w
    scope = Scope()
    for name in SCALARS:
        if name not in ("n", "trips") and ch.chance(70):
            scope.add(*scalar(b, name))
    for buffer in BUFFERS:
        if ch.chance(40):
            pointer(b, scope, buffer)
    thread = _thread(b, grid)
    scope.slot = thread
    scope.add("b32", thread)
    arithmetic(ch, scope, w, 4)
    scope.spare = set()
    if reducing:
        reductions.begin(b, thread)
    b.done = w.label()
    if ch.chance(20) and not b.together:
        _leave(b, thread, b.done)
    trip = _outer_begin(b, thread) if nested else None
    if trip is not None:
        scope.add("b32", trip[0])
        arithmetic(ch, scope, w, 3)
        scope.spare = set()
    for _ in range(1 + ch.chance(15)):
        after = w.label()
        if ch.chance(12) and not b.together:
            _leave(b, thread, after)
        marked_loop(b, scope.child(), thread, trip[0] if trip else None)
        w.place(after)
        if b.left < 60:
            break
    if trip is not None:
        _outer_end(b, *trip)
    ending(b, scope.child(), thread)
    w.place(b.done)
    w.emit("ret")


def _thread(b: Build, grid: tuple[int, ...]) -> str:
    """The number of a thread over the grid."""
    w = b.w

    def special(name: str) -> str:
        return w.do("mov.u32", "b32", name)

    row = w.do("mad.lo.s32", "b32", special("%tid.z"), special("%ntid.y"), special("%tid.y"))
    linear = w.do("mad.lo.s32", "b32", row, special("%ntid.x"), special("%tid.x"))
    block = special("%ctaid.x")
    if len(grid) > 2:
        row = w.do("mad.lo.s32", "b32", special("%ctaid.z"), special("%nctaid.y"), special("%ctaid.y"))
        block = w.do("mad.lo.s32", "b32", row, special("%nctaid.x"), block)
    elif len(grid) > 1:
        block = w.do("mad.lo.s32", "b32", special("%ctaid.y"), special("%nctaid.x"), block)
    return w.do("mad.lo.s32", "b32", block, b.threads, linear)


def _leave(b: Build, thread: str, target: str) -> None:
    """Some lanes, or whole warps, go to ``target``."""
    ch, w = b.ch, b.w
    kind = ch.number(3)
    if kind == 0:
        word = w.do("and.b32", "b32", scrambled(w, thread, ch.between(0, 99)), 7)
        test = w.do("setp.eq.s32", "pred", word, 0)
    elif kind == 1:
        test = w.do("setp.ge.s32", "pred", thread, b.total - ch.between(1, 40))
    else:
        warp = w.do("and.b32", "b32", w.do("shr.u32", "b32", thread, 5), 1)
        test = w.do("setp.eq.s32", "pred", warp, 1)
    w.emit(f"@{test} bra \t{target}")


def _outer_begin(b: Build, thread: str) -> tuple[str, str, str]:
    """An unmarked loop whose trip count differs between lanes: counter, bound, head."""
    w = b.w
    bits = w.do("rem.u32", "b32", scrambled(w, thread, 3), OUTER_TRIPS)
    bound = w.do("add.s32", "b32", bits, 1)
    trip, head = w.do("mov.u32", "b32", 0), w.label()
    w.place(head)
    return trip, bound, head


def _outer_end(b: Build, trip: str, bound: str, head: str) -> None:
    b.w.emit(f"add.s32 \t{trip}, {trip}, 1")
    again = b.w.do("setp.lt.s32", "pred", trip, bound)
    b.w.emit(f"@{again} bra \t{head}")


def _module(b: Build, directive: str) -> str:
    parameters = [f"\t.param .u64 {parameter(name)}" for name in BUFFERS]
    parameters += [f"\t.param .{type} {parameter(name)}" for name, type in SCALARS.items()]
    ahead = beginning(b)
    comma, separator = f"{COUNT},\n", ",\n"
    lines = [
        ".version 9.0\n.target sm_90\n.address_size 64\n\n",
        FUNCTION if "function" in b.uses else "",
        *b.functions,
        f".visible .entry {NAME}(\n{separator.join(parameters)}\n",
        f"{comma}{COUNT}.param .u64 {parameter('counts')}\n)\n{directive}{{\n",
        *(f"{line}\n" for line in (*declarations(b), *b.w.declarations())),
        _counting_setup(b),
        *(f"{line}\n" for line in (*ahead, *b.w.lines)),
        "}\n",
    ]
    return "".join(lines)


def _counting_setup(b: Build) -> str:
    """The counting twin's own registers: the row of counters of the warp."""
    code = f"""
        .reg .b64 %counts; .reg .b32 %cw<9>; .reg .b64 %cd<3>;
        mov.u32 %cw1, %tid.z; mov.u32 %cw2, %ntid.y; mov.u32 %cw3, %tid.y; mad.lo.u32 %cw1, %cw1, %cw2, %cw3;
        mov.u32 %cw2, %ntid.x; mov.u32 %cw3, %tid.x; mad.lo.u32 %cw1, %cw1, %cw2, %cw3; shr.u32 %cw1, %cw1, 5;
        mov.u32 %cw4, %ctaid.y; mov.u32 %cw5, %nctaid.x; mov.u32 %cw6, %ctaid.x; mad.lo.u32 %cw4, %cw4, %cw5, %cw6;
        mad.lo.u32 %cw1, %cw4, {-(-b.threads // 32)}, %cw1;
        ld.param.u64 %cd1, [{parameter("counts")}]; mul.wide.u32 %cd2, %cw1, {4 * max(b.w.counted, 1)};
        add.s64 %counts, %cd1, %cd2;
    """
    return "".join(f"{COUNT}{line.strip()}\n" for line in code.strip().splitlines())
