"""Source lines by `.loc`, which hold until the next one."""

from __future__ import annotations

from cccopt.ptx.lines import SourceLine, source_chains, source_lines
from cccopt.ptx.parser import parse

TEXT = """
.file 1 "a dir/k.cu"
.file 2 "inline.h"
.entry k ()
{
mov.u32 %r1, 0;
.loc 1 10 5
mov.u32 %r1, 1;
mov.u32 %r1, 2;
.loc 2 7 3, function_name info, inlined_at 1 10 5
mov.u32 %r1, 3;
.loc 2 9 1, function_name info, inlined_at 2 7 3
mov.u32 %r1, 4;
.loc 1 0 0
ret;
}
"""
OUTER, INNER, INMOST = (
    SourceLine("a dir/k.cu", 10, 5),
    SourceLine("inline.h", 7, 3),
    SourceLine("inline.h", 9, 1),
)


def test_lines_are_sticky_and_know_their_callers() -> None:
    module = parse(TEXT)
    (function,) = module.functions()
    chains = [(), *[(OUTER,)] * 3, *[(INNER, OUTER)] * 2, *[(INMOST, INNER, OUTER)] * 2, (), ()]
    assert list(source_chains(module, function)) == chains
    assert source_lines(module, function) == tuple(c[0] if c else None for c in chains)


def test_without_debug_lines_nothing_is_known() -> None:
    module = parse(".entry k () { ret; }")
    (function,) = module.functions()
    assert source_lines(module, function) == (None,)
