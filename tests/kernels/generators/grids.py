"""Kernels marked ``grid``: a task a thread, early returns, the same paths as loops have; blocks come in one to three
dimensions, and fewer are resident than are launched.
"""

from __future__ import annotations

from tests.kernels.generators.build import BUFFERS, SCALARS, Build, pointer, scalar
from tests.kernels.generators.code import Choices
from tests.kernels.generators.extras import collective
from tests.kernels.generators.loops import paths
from tests.kernels.generators.pieces import code
from tests.kernels.generators.values import MIX, Scope, compute, scrambled

BLOCKS = [(32,), (64,), (8, 4), (33,), (7, 5), (96,), (4, 4, 4), (16,), (32, 2), (1,), (2, 3, 11)]
GRIDS = [(9,), (5,), (12,), (3, 3), (2, 2, 3), (1, 7), (1, 1, 6), (3, 1, 3), (2,), (1,), (2, 3, 2)]


def resident(ch: Choices, blocks: int) -> int:
    """How many of so many blocks are resident: mostly some of them."""
    return ch.pick([2, 1, 3, 1, 2, max(blocks - 1, 1), blocks, blocks + 2])


def begin(b: Build, scope: Scope) -> None:
    """What stands at the head of the kernel, its mark among it."""
    ch = b.ch
    late = ch.chance(50)
    if not late:
        _mark(b)
    for name in SCALARS:
        if name not in ("n", "trips") and ch.chance(50):
            scope.add(*scalar(b, name))
    for buffer in BUFFERS:
        if ch.chance(30):
            pointer(b, scope, buffer)
    # nvcc moves loads of parameters ahead of the inline assembly.
    if late:
        _mark(b)


def task(b: Build, scope: Scope, whole: bool) -> None:
    """What a thread does; with ``whole``, warps are whole until threads return."""
    ch, w = b.ch, b.w
    b.entered = w.count()
    scope.place = ("rest", 0, 1)
    if whole and ch.chance(25):
        collective(b, scope)
    for _ in range(ch.pick([1, 1, 2, 0])):
        code(b, scope, 2)
        _return(b, scope)
    for _ in range(ch.number(4)):
        compute(ch, scope, w, ch.pick(MIX))
    latch = w.label()
    paths(b, scope, latch)
    scope.place = ("rest", 1, 1)
    code(b, scope, 3)
    if ch.chance(25):
        _return(b, scope)
        code(b, scope, 2)
    w.place(latch)


def _mark(b: Build) -> None:
    b.mark("grid.begin", b.region(), f"{' independent' if b.independent else ''}{b.clauses}")


def _return(b: Build, scope: Scope) -> None:
    """Some threads, or whole warps or blocks, are done."""
    ch, w = b.ch, b.w
    kind = ch.number(5)
    if kind == 0:
        test = w.do("setp.ge.u32", "pred", scope.slot, b.total - ch.between(0, b.threads))
    elif kind == 1:
        block = w.do("mov.u32", "b32", ch.pick(["%ctaid.x", "%ctaid.y", "%ctaid.z"]))
        test = w.do("setp.eq.s32", "pred", block, ch.number(3))
    elif kind == 2:
        warp = w.do("shr.u32", "b32", scope.slot, 5)
        test = w.do("setp.eq.s32", "pred", w.do("and.b32", "b32", warp, 3), ch.number(4))
    else:
        bits = w.do("and.b32", "b32", scrambled(w, scope.slot, ch.number(99)), 7)
        test = w.do("setp.lt.u32", "pred", bits, ch.between(1, 3))
    leave = ch.pick(["ret", "bra", "exit", "arm"])
    if leave == "arm":
        over = w.label()
        w.emit(f"@!{test} bra \t{over}")
        code(b, scope.child(), 2)
        w.emit("ret")
        w.place(over)
    else:
        w.emit(f"@{test} bra \t{b.done}" if leave == "bra" else f"@{test} {leave}")
