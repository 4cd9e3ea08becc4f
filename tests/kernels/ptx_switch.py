"""Exclusive marked paths in PTX: a jump by index leads each lane to one of them, or past all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.kernels.ptx_loops import mark
from tests.kernels.running import Arguments, Launch

CHOOSE = "shr.u32 %bits, %value, 1; and.b32 %bits, %bits, 7;"
"""A number from 0 to 7, by the lane's value."""

LONG = (
    "mad.lo.u32 %r10, %value, {0}, %i; xor.b32 %r10, %r10, 0x55; st.global.u32 [%out_i], %r10;",
    "mul.wide.u32 %rd10, %value, 7; add.u64 %rd10, %rd10, %offset; cvt.u32.u64 %r10, %rd10; "
    "red.global.add.u32 [%out_i], %r10;",
    "mov.b32 {{%h1, %h2}}, %value; add.u16 %h1, %h1, %h5; cvt.u32.u16 %r10, %h1; st.global.u32 [%out_i], %r10;",
    "selp.b32 %r10, {0}, %value, %p7; red.global.xor.b32 [%out_i], %r10;",
)
AHEAD = "cvt.u16.u32 %h5, %value; setp.gt.u32 %p7, %value, 30;"
"""Values of 16 bits and a predicate for contexts."""


def switch(
    count: int,
    choose: str = CHOOSE,
    behind: str = "",
    code: str = "",
    *,
    codes: Sequence[str] = (),
    covering: bool = False,
    clauses: Mapping[int, str] | None = None,
) -> str:
    """A jump by index over ``count`` marked paths, the numbers behind them to the join or, if ``covering``, to the
    paths again. ``codes`` are the paths' own, ``clauses`` stand in some of their pragmas.
    """
    rest = [f"CASE{k % count}" for k in range(count, 8)] if covering else ["JOIN"] * (8 - count)
    targets = ", ".join([f"CASE{k}" for k in range(count)] + rest)
    text = f"{AHEAD} {choose} table: .branchtargets {targets}; brx.idx %bits, table;\n"
    for k in range(count):
        body = codes[k] if codes else code or LONG[k % len(LONG)].format(k + 3)
        begin = mark("if.begin", 10 + k, (clauses or {}).get(k, ""))
        text += f"CASE{k}:\n{begin}\n{body}\n{mark('if.end', 10 + k)}\nbra.uni JOIN;\n"
    return text + "JOIN:\n" + behind


def steps(launch: Launch, numbers: list[list[int]]) -> Arguments:
    """Arguments by which lane k of each warp comes to the path ``numbers[trip][k]``."""
    warps = launch.threads // 32
    trips = [numbers[trip % len(numbers)] * warps for trip in range(launch.trips)]
    values = np.array(trips, np.uint32).reshape(-1)
    return [values.size, values, np.zeros(values.size, np.uint32), values[::-1].copy(), 3]
