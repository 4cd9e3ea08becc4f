"""Scoped names made unique: the same program, with no name in two scopes, and braces around labels gone."""

from __future__ import annotations

from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.scopes import with_unique_names
from cccopt.ptx.verifier import verify
from tests.ptx.tokens import tokens

BEFORE = """
.entry k ()
{
.reg .pred %p<3>;
.reg .b32 %r<4>;
{ .reg .pred %p1; .reg .b32 t<2>; setp.ne.s32 %p1, %r1, 0; @%p1 bra AGAIN; mov.u32 t1, %r1; AGAIN: }
{ .reg .pred p; .reg .b32 t<2>; setp.ne.s32 p, %r2, 0; @p bra AGAIN; { mov.u32 t1, %r2; } AGAIN: }
{ .local .b32 v; { @%p1 bra AGAIN; AGAIN: } }
@%p1 bra AGAIN;
AGAIN: ret;
}
"""
AFTER = """
.entry k ()
{
.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .pred %p1_1; .reg .b32 t<2>; setp.ne.s32 %p1_1, %r1, 0; @%p1_1 bra AGAIN_1; mov.u32 t1, %r1; AGAIN_1:
.reg .pred p; .reg .b32 t_1_<2>; setp.ne.s32 p, %r2, 0; @p bra AGAIN_2; { mov.u32 t_1_1, %r2; } AGAIN_2:
{ .local .b32 v; @%p1 bra AGAIN_3; AGAIN_3: }
@%p1 bra AGAIN;
AGAIN: ret;
}
"""


def test_names_become_unique() -> None:
    module = parse(BEFORE)
    unique = with_unique_names(module)
    assert tokens(print_module(unique)) == tokens(AFTER)
    verify(module)
    verify(unique)
    assert with_unique_names(unique) == unique


def test_registers_of_a_scope_become_the_functions() -> None:
    """So that statements of inline assembly can be moved: cuda_fp16.h declares registers in braces."""
    scopes = "{ .reg .b16 low; cvt.u16.u32 low, %r1; }\n{ .reg .b16 low; cvt.u16.u32 low, %r2; }"
    unique = with_unique_names(parse(f".entry k ()\n{{\n.reg .b32 %r<4>;\n{scopes}\nret;\n}}"))
    text = print_module(unique)
    assert text.count("{") == text.count("}") == 1
    assert "cvt.u16.u32 low_1, %r2" in " ".join(text.split())
    verify(unique)


def test_nothing_to_do() -> None:
    module = parse(".entry k () { .reg .b32 %r<2>; mov.u32 %r1, 1; ret; }")
    assert with_unique_names(module) is not None
    assert with_unique_names(module) == module


def test_what_is_unique_stays_as_it_is() -> None:
    scopes = "{ .local .b32 t; .reg .b32 v; mov.u32 v, %r1; }\n{ mov.u32 %r1, %r2; }"
    module = parse(f".entry k ()\n{{\n.reg .b32 %r<4>;\n{scopes}\nret;\n}}")
    unique = with_unique_names(parse(BEFORE))
    assert with_unique_names(module) == module
    assert with_unique_names(unique) == unique
