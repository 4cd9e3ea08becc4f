"""Small marked loops in PTX: one kernel with holes, so that a test shows only what it is about."""

from __future__ import annotations

from typing import Any

import numpy as np

from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from tests.kernels.running import Launch

FOR, IF, VARIABLE, SECOND = 1, 2, 3, 4
"""The numbers of the loop, its path, an inner loop, a second path. Pragma N stands on line 10 * N."""


def mark(event: str, region: int, words: str = "") -> str:
    """A marker's comment line; ``words`` are clauses."""
    # The file comes last: its name may hold blanks.
    where = f" line={10 * region}:3 {words} file=loop.cu" if event in ("for.begin", "if.begin") else ""
    return f"// ccc {event} {region}{where}"


PATH = "mad.lo.u32 %r10, %r6, 7, 1; st.global.u32 [%rd6], %r10;"
SKIP = "and.b32 %r9, %r6, 3; setp.ne.u32 %p1, %r9, 0;"
"""One lane in four takes the path."""


def inner_loop(body: str, variable: bool = True, clauses: str = "") -> str:
    """A loop of ``v % 8`` trips over %r13 with a guard and ``%r14`` as its value, marked or not."""
    words = f"variable {clauses}".strip()
    begin, end = (mark("for.begin", VARIABLE, words), mark("for.end", VARIABLE)) if variable else ("", "")
    top, bottom = (mark("body.begin", VARIABLE), mark("body.end", VARIABLE)) if variable else ("", "")
    return f"""
    mov.u32 %r13, 0; mov.u32 %r14, %r6; shr.u32 %r15, %r6, 2; and.b32 %r15, %r15, 7;
    {begin}
    setp.eq.u32 %p8, %r15, 0; @%p8 bra INNER_DONE;
INNER:
    {top}
    {body}
    {bottom}
    add.u32 %r13, %r13, 1; setp.lt.u32 %p9, %r13, %r15; @%p9 bra INNER;
INNER_DONE:
    {end}
"""


def path(
    code: str = PATH,
    *,
    skip: str = SKIP,
    begin: str = "",
    region: int = IF,
    clauses: str = "",
    label: str = "",
) -> str:
    """A marked path that ends at its join, ahead of it the test of which lanes skip it; ``begin`` is its label."""
    join = f"JOIN{label}"
    return f"""
    {skip} @%p1 bra {join};
{begin}
    {mark("if.begin", region, clauses)}
    {code}
    {mark("if.end", region)}
{join}:
"""


def loop(
    body: str | None = None,
    *,
    before: str = "",
    behind: str = "",
    latch: str = "",
    ahead: str = "",
    preheader: str = "",
    after: str = "",
    module: str = "",
    declarations: str = "",
    bounds: str = ".maxntid 128",
    clauses: str = "",
    marked: bool = True,
) -> str:
    """A module with the kernel ``k(n, a, out, other, flag)`` and a grid-stride loop around ``body`` (a path, if None).

    %r1 is n, %r3 the thread, %r5 the index i and %r6 the value a[i]; %rd1, %rd2, %rd3 are the arrays, %rd6 and %rd7
    point to out[i] and other[i]. Free: %r10 to %r39, %rd10 on, %p5 on, %h, %f. ``ahead`` and ``after`` stand outside
    of the loop, ``preheader`` between its guard and its header, ``before`` ahead of the body, ``latch`` behind its end.
    """
    if body is None:
        body = path()
    for_begin, for_end = (mark("for.begin", FOR, clauses), mark("for.end", FOR)) if marked else ("", "")
    top, bottom = (mark("body.begin", FOR), mark("body.end", FOR)) if marked else ("", "")
    return f""".version 9.0
.target sm_90
.address_size 64
{module}
.visible .entry k(.param .u32 n, .param .u64 a, .param .u64 out, .param .u64 other, .param .u32 flag)
{bounds}
{{
    .reg .pred %p<20>; .reg .b16 %h<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<10>;
    {declarations}
    ld.param.u32 %r1, [n];
    ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd1, %rd1;
    ld.param.u64 %rd2, [out]; cvta.to.global.u64 %rd2, %rd2;
    ld.param.u64 %rd3, [other]; cvta.to.global.u64 %rd3, %rd3;
    mov.u32 %r2, %tid.x; mov.u32 %r7, %ntid.x; mov.u32 %r8, %ctaid.x;
    mad.lo.u32 %r3, %r8, %r7, %r2;
    mov.u32 %r4, %nctaid.x; mul.lo.u32 %r4, %r4, %r7;
    mov.u32 %r5, %r3;
    {ahead}
    {for_begin}
    setp.ge.u32 %p2, %r5, %r1; @%p2 bra DONE;
    {preheader}
LOOP:
    {top}
    mul.wide.u32 %rd4, %r5, 4;
    add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;
    ld.global.nc.u32 %r6, [%rd5];
    {before}
    {body}
    {behind}
    {bottom}
LATCH:
    {latch}
    add.u32 %r5, %r5, %r4; setp.lt.u32 %p3, %r5, %r1; @%p3 bra LOOP;
DONE:
    {for_end}
    {after}
    ret;
}}
"""


def module(**holes: Any) -> Module:
    """The parsed `loop`."""
    return parse(loop(**holes), "loop.ptx")


def arguments(launch: Launch) -> list[Any]:
    """n, a, out, other, flag: values 0 to 63, as many for each lane; `other` starts with values, not zeros."""
    n = launch.threads * launch.trips
    values = np.random.default_rng(5).integers(0, 64, n).astype(np.uint32)
    return [n, values, np.zeros(n, np.uint32), values[::-1].copy(), 3]


def uneven_arguments(launch: Launch) -> list[Any]:
    """The same, but some lanes make a trip less."""
    return [launch.uneven, *arguments(launch)[1:]]


LAUNCHES = (Launch(1, 64, 9), Launch(2, 33, 4))
