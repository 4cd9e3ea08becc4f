"""Small marked kernels for the tests of the check."""

from __future__ import annotations

from typing import Any

import numpy as np

from cccopt.checking import Checked, Checker, check

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
DECLARATIONS = """
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b32 %i, %t, %n, %k;
    ld.param.u64 %rd1, [out]; ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
"""
ADDRESS = "mul.wide.u32 %rd5, %i, 4; add.u64 %rd5, %rd1, %rd5;"
"""%rd5 is the address of word %i of `out`, and %rd1 that of word 0."""


def loop(body: str, *, before: str = "", after: str = "", out: str = "DONE") -> str:
    """A kernel ``k(out, n)``: `for (i = tid; i < n; i += ntid)` around ``body``, marked as region 1."""
    return f"""{HEAD}.visible .entry k(.param .u64 out, .param .u32 n) {{ {DECLARATIONS} {before}
    // ccc for.begin 1 line=3:1 file=k.cu
    mov.u32 %i, %t;
    setp.ge.u32 %p1, %i, %n;
    @%p1 bra DONE;
LOOP:
    // ccc body.begin 1
    {ADDRESS}
    {body}
    // ccc body.end 1
    mov.u32 %r19, %ntid.x;
    add.u32 %i, %i, %r19;
    setp.lt.u32 %p1, %i, %n;
    @%p1 bra LOOP;
    bra {out};
DONE:
    // ccc for.end 1
OUT:
    {after}
    ret;
}}
"""


def inner(body: str, kind: str, *, ahead: str = "", behind: str = "") -> str:
    """The body of `loop` that is itself a loop, over %k from 0 to 3, marked ``kind`` as region 2."""
    mark = "variable" if kind == "for variable" else f"kind={kind}"
    return f"""{ahead}
    // ccc for.begin 2 {mark} line=5:1 file=k.cu
    mov.u32 %k, 0;
INNER:
    // ccc body.begin 2
    {body}
    // ccc body.end 2
    add.u32 %k, %k, 1;
    setp.lt.u32 %p2, %k, 4;
    @%p2 bra INNER;
    // ccc for.end 2
    {behind}
"""


def grid(body: str) -> str:
    """A kernel ``k(out, n)`` marked ``grid``, with %i the number of the thread."""
    return f"""{HEAD}.visible .entry k(.param .u64 out, .param .u32 n) {{ {DECLARATIONS}
    // ccc grid.begin 1 line=1:1 file=k.cu
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %i, %r1, %r2, %t;
    {ADDRESS}
    {body}
    ret;
}}
"""


def checked(ptx: str, *, n: int = 128, threads: int = 32, blocks: int = 1, words: int = 4096) -> Checked:
    """What a launch of ``k`` on zeros shows."""
    return check(ptx, "k", grid=blocks, block=threads, args=[np.zeros(words, np.uint32), n])


def kinds(found: Checked) -> list[tuple[bool, str, str]]:
    """The findings: whether it is a conflict, the pragma, how they meet; in no order."""
    return sorted((f.conflict, f.loop.pragma, f.kind) for f in found.findings)


def launched(ptx: str, *arguments: list[Any]) -> Checked:
    """What launches of ``k``, a warp each, show together."""
    checker = Checker(ptx)
    for args in arguments:
        checker.launch("k", 1, 32, args)
    return checker.result()
