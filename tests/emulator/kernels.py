"""Tiny kernels for the machine's tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from cccopt.emulator import Profile, emulate

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
DECLARATIONS = """
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .f32 %f<9>; .reg .b64 %rd<20>; .reg .f64 %fd<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r0, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd1, %rd2;
"""
"""%r0 is the global thread number, %rd1 the buffer `out`, %rd2 the address of the thread's 32-bit word in it."""


def kernel(body: str, *, parameters: str = "", module: str = "", directives: str = "") -> str:
    """A module with the kernel ``k(out, parameters...)`` around ``body``, which ends with `ret` by itself."""
    more = f", {parameters}" if parameters else ""
    head = f"{HEAD}{module}\n.visible .entry k(.param .u64 out{more})\n{directives}\n"
    return f"{head}{{{DECLARATIONS}\n{body}\n    ret;\n}}\n"


def run(
    body: str,
    *,
    grid: Any = 1,
    block: Any = 32,
    args: tuple[Any, ...] = (),
    words: int | None = None,
    **options: Any,
) -> tuple[np.ndarray[Any, np.dtype[np.uint32]], Profile]:
    """Runs ``kernel(body)`` with an output word a thread; gives the words and the profile."""
    of_kernel = {
        name: options.pop(name) for name in ("parameters", "module", "directives") if name in options
    }
    threads = int(np.prod(grid)) * int(np.prod(block))
    out = np.zeros(threads if words is None else words, np.uint32)
    profile = emulate(kernel(body, **of_kernel), "k", grid=grid, block=block, args=[out, *args], **options)
    return out, profile
