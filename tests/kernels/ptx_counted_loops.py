"""Counted loops of tasks in PTX, whose trips leave marks that do not depend on their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from tests.kernels.ptx_loops import VARIABLE, loop, mark
from tests.kernels.running import Arguments, Launch

TABLE = 256
"""Words of the table that trips add to."""

LOADED = "ld.global.nc.u32 %k, [%other_i]; mov.u32 %bound, %value;"
"""Begin and bound of the counter, from ``other`` and ``a``."""

WIDE = """
    mul.wide.u32 %rd10, %i, 8; add.u64 %rd11, %other, %rd10; ld.global.nc.u64 %wide_k, [%rd11];
    add.u64 %rd11, %a, %rd10; ld.global.nc.u64 %wide_bound, [%rd11];
"""
"""The same for a counter of 64 bits."""

HALVES = "cvt.u32.u64 %r16, %wide_k; shr.u64 %rd16, %wide_k, 32; cvt.u32.u64 %r17, %rd16; xor.b32 %r16, %r16, %r17;"
"""%r16 from both halves of such a counter."""


def added(value: str = "%k", counter: str = "%k") -> str:
    """Adds ``value`` to a word of the table that the counter and the iteration choose."""
    return f"""
    mad.lo.u32 %r20, {counter}, 0x9E3779B1, %i; shr.u32 %r21, %r20, 9; and.b32 %r21, %r21, {TABLE - 1};
    mul.wide.u32 %rd20, %r21, 4; add.u64 %rd20, %out, %rd20; mad.lo.u32 %r22, {value}, 5, %r20;
    red.global.add.u32 [%rd20], %r22;
"""


def counted(
    code: str | None = None,
    region: int = VARIABLE,
    /,
    *,
    begin: str = LOADED,
    leave: str = "setp.ge.s32 %p8, %k, %bound;",
    advance: str = "add.s32 %k, %k, 1;",
    test: str = "setp.lt.s32 %p9, %k, %bound;",
    going: str = "@%p9",
) -> str:
    """A loop marked ``for variable`` whose counter is %k and whose bound is %bound, or what the holes make of it.

    ``leave`` sets %p8 in lanes that make no trip; without it each lane makes one. ``code`` (`added`, if None) may use
    %r16 on, %rd16 on, %p5 to %p7, %h, %f.
    """
    guard = f"{leave} @%p8 bra DONE_{region};" if leave else ""
    return f"""
    {begin}
    {mark("for.begin", region, "variable")}
    {guard}
INNER_{region}:
    {mark("body.begin", region)}
    {added() if code is None else code}
    {mark("body.end", region)}
    {advance} {test}
    {going} bra INNER_{region};
DONE_{region}:
    {mark("for.end", region)}
"""


def between(begins: Sequence[int], bounds: Sequence[int], launch: Launch, bits: int = 32) -> Arguments:
    """``n, a, out, other, flag``: the iterations' counters go from ``begins`` to ``bounds``, again and again."""
    n = launch.threads * launch.trips
    first, last = (
        np.array([v % (1 << bits) for v in values], f"u{bits // 8}") for values in (begins, bounds)
    )
    return [n, np.resize(last, n), np.zeros(TABLE, np.uint32), np.resize(first, n), 3]


def trips(numbers: Sequence[int], launch: Launch) -> Arguments:
    """Arguments for so many trips in the iterations, whose counters begin at different numbers."""
    begins = [place % 7 - 3 for place in range(len(numbers))]
    return between(begins, [begin + n for begin, n in zip(begins, numbers, strict=True)], launch)


@dataclass(frozen=True)
class Shape:
    """A way to count up or down by ``step`` while the counter ``compare`` the bound.

    The rest are holes of `counted` in place of those that follow from that, for a counter of 32 bits; ``offset`` is
    what the tested value is ahead of the counter at the trip's beginning, ``bound`` a literal one.
    """

    compare: str
    type: str = "s32"
    step: int = 1
    offset: int | None = None
    advance: str = ""
    test: str = ""
    going: str = "@%p9"
    bound: int | None = None

    @property
    def bits(self) -> int:
        """Bits of the counter."""
        return int(self.type[1:])

    @property
    def module(self) -> Module:
        """The kernel."""
        bound = "%bound" if self.bound is None else str(self.bound)
        opposite = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq"}[self.compare]
        holes = {
            "advance": self.advance or f"add.s{self.bits} %k, %k, {self.step};",
            "test": self.test or f"setp.{self.compare}.{self.type} %p9, %k, {bound};",
            "leave": f"setp.{opposite}.{self.type} %p8, %k, {bound};",
        }
        if self.bits == 32:
            return parse(loop(counted(going=self.going, **holes)))
        wide = {
            name: text.replace("%k", "%wide_k").replace("%bound", "%wide_bound")
            for name, text in holes.items()
        }
        return parse(loop(counted(HALVES + added("%r16", "%r16"), begin=WIDE, going=self.going, **wide)))

    def arguments(self, launch: Launch) -> Arguments:
        """Few trips or none, around zero and as near to the ends of the type as the loop still ends."""
        signed = self.type[0] == "s"
        least = -(1 << self.bits - 1) if signed else 0
        most = least + (1 << self.bits) - 1
        ahead = abs(self.step if self.offset is None else self.offset) + (self.compare in ("le", "ge")) - 1
        stops = [most - ahead - k for k in (0, 1)] if self.step > 0 else [least + ahead + k for k in (0, 1)]
        stops += [most // 2 + 9, 40, 3, least + most // 8]
        if self.compare == "ne":
            stops += [0, -1, most, least]
        if self.bound is not None:
            stops = [self.bound]
        # Steps that do not end at the bound itself.
        shorts = range(abs(self.step) if self.compare != "ne" else 1)
        nearer = 1 if self.step > 0 else -1
        pairs = [
            (stop - self.step * n + nearer * short, stop)
            for stop in stops
            for n in (0, 1, 2, 9, 33)
            for short in shorts
        ]
        begins, ends = zip(*pairs, strict=True)
        return between(begins, ends, launch, self.bits)
