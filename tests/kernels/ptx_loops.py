"""Small marked loops in PTX: one kernel with holes, so that a test shows only what it is about."""

from __future__ import annotations

from typing import Any

import numpy as np

from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from tests.kernels.running import Launch

FOR, IF, VARIABLE, SECOND = 1, 2, 3, 4
"""The numbers of the loop, its path, an inner loop, a second path. Pragma N stands on line 10 * N."""


SCRATCH = {"b32": ("r", 10, 40), "b64": ("rd", 8, 40), "pred": ("p", 4, 20)}
"""By type the letters of registers with numbers, and their first number and the one past their last."""

REGISTERS = """
    .reg .b32 %n, %i, %stride, %value, %bits, %thread, %tid_x, %block, %block_size;
    .reg .b64 %a, %out, %other, %offset, %a_i, %out_i, %other_i; .reg .pred %skips, %none, %more;
    .reg .b32 %k, %x, %bound, %result, %term, %sum; .reg .b64 %wide_k, %wide_bound; .reg .b16 %h<10>; .reg .f32 %f<10>;
""" + "".join(
    f"    .reg .{type} {', '.join(f'%{letters}{k}' for k in range(first, end))};\n"
    for type, (letters, first, end) in SCRATCH.items()
)
"""Those of the loop, of an inner loop, and scratch; a number that is not among them is a mistake."""


def mark(event: str, region: int, words: str = "") -> str:
    """A marker's comment line; ``words`` are clauses."""
    # The file comes last: its name may hold blanks.
    where = f" line={10 * region}:3 {words} file=loop.cu" if event in ("for.begin", "if.begin") else ""
    return f"// ccc {event} {region}{where}"


PATH = "mad.lo.u32 %r10, %value, 7, 1; st.global.u32 [%out_i], %r10;"
SKIP = "and.b32 %bits, %value, 3; setp.ne.u32 %skips, %bits, 0;"
"""One lane in four takes the path."""


def inner_loop(body: str, variable: bool = True, clauses: str = "") -> str:
    """``x = value; bound = value / 4 % 8; for (k = 0; k < bound; ++k) body``, marked ``for variable`` or not."""
    words = f"variable {clauses}".strip()
    begin, end = (mark("for.begin", VARIABLE, words), mark("for.end", VARIABLE)) if variable else ("", "")
    top, bottom = (mark("body.begin", VARIABLE), mark("body.end", VARIABLE)) if variable else ("", "")
    return f"""
    mov.u32 %k, 0; mov.u32 %x, %value; shr.u32 %bound, %value, 2; and.b32 %bound, %bound, 7;
    {begin}
    setp.eq.u32 %p8, %bound, 0; @%p8 bra INNER_DONE;
INNER:
    {top}
    {body}
    {bottom}
    add.u32 %k, %k, 1; setp.lt.u32 %p9, %k, %bound; @%p9 bra INNER;
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
    """``skip; if (!skips) { #pragma ccc if: code } JOIN:``; ``begin`` is a label ahead of the path."""
    join = f"JOIN{label}"
    return f"""
    {skip} @%skips bra {join};
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
    """A module with the kernel ``k(n, a, out, other, flag)``; each hole is code in this place of it:

        ahead
        #pragma ccc for
        if (thread < n) {
          preheader
          for (i = thread; i < n; i += stride) {
            value = a[i];                             // out_i and other_i are &out[i] and &other[i]
            before
            body                                      // a `path`, if None
            behind
        LATCH: latch
          }
        }
        DONE: after

    Numbered registers (`SCRATCH`) and %h, %f are the tests'.
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
    {REGISTERS}
    {declarations}
    ld.param.u32 %n, [n];
    ld.param.u64 %a, [a]; cvta.to.global.u64 %a, %a;
    ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;
    ld.param.u64 %other, [other]; cvta.to.global.u64 %other, %other;
    mov.u32 %tid_x, %tid.x; mov.u32 %block_size, %ntid.x; mov.u32 %block, %ctaid.x;
    mad.lo.u32 %thread, %block, %block_size, %tid_x;
    mov.u32 %stride, %nctaid.x; mul.lo.u32 %stride, %stride, %block_size;
    mov.u32 %i, %thread;
    {ahead}
    {for_begin}
    setp.ge.u32 %none, %i, %n; @%none bra DONE;
    {preheader}
LOOP:
    {top}
    mul.wide.u32 %offset, %i, 4;
    add.u64 %a_i, %a, %offset; add.u64 %out_i, %out, %offset; add.u64 %other_i, %other, %offset;
    ld.global.nc.u32 %value, [%a_i];
    {before}
    {body}
    {behind}
    {bottom}
LATCH:
    {latch}
    add.u32 %i, %i, %stride; setp.lt.u32 %more, %i, %n; @%more bra LOOP;
DONE:
    {for_end}
    {after}
    ret;
}}
"""


def module(**holes: Any) -> Module:
    """The parsed `loop`."""
    return parse(loop(**holes), "loop.ptx")


def begins_with_path() -> Module:
    """A loop that the compiler has rotated, so that an iteration begins with the path, which all lanes take:

        for (i = thread;; i += stride) {
          if (i >= n) break;
          #pragma ccc if
          { value = i; PATH }
        }

    Each iteration ends with the test of the next one.
    """
    top, begin = mark("body.begin", FOR), mark("if.begin", IF)
    text = loop(f"{PATH}\n{mark('if.end', IF)}", preheader=top, latch=top)
    # What is loaded first may be prefetched, and would come before the path.
    for old, new in (
        (f"LOOP:\n    {top}\n", f"LOOP:\n    {begin}\n"),
        ("ld.global.nc.u32 %value, [%a_i];", "mov.u32 %value, %i;"),
    ):
        assert old in text
        text = text.replace(old, new)
    return parse(text, "loop.ptx")


def regions_of(text: str) -> tuple[View, tuple[Region, ...]]:
    """The kernel of a `loop` and its marked loops."""
    module = parse(text)
    view = view_of(module, next(f for f in module.functions() if f.name == "k"))
    return view, find(view).regions


def arguments(launch: Launch) -> list[Any]:
    """n, a, out, other, flag: values 0 to 63, as many for each lane; `other` starts with values, not zeros."""
    n = launch.threads * launch.trips
    values = np.random.default_rng(5).integers(0, 64, n).astype(np.uint32)
    return [n, values, np.zeros(n, np.uint32), values[::-1].copy(), 3]


def uneven_arguments(launch: Launch) -> list[Any]:
    """The same, but some lanes make a trip less."""
    return [launch.uneven, *arguments(launch)[1:]]


LAUNCHES = (Launch(1, 64, 9), Launch(2, 33, 4))
