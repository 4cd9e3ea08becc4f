"""PTX of other compilers, old and newer, and by hand: forms that PTX ISA 9.0 does not have, or has given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Directive, Function, Instruction, Register, RegisterDeclaration, SpecialRegister
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.scopes import with_unique_names
from cccopt.ptx.verifier import verify
from tests.corpus.ladder import assemble
from tests.ptx.conftest import tool
from tests.ptx.test_round_trip import check

NEW = ".version 9.0\n.target sm_90\n.address_size 64\n"
OLD = ".version 1.4\n.target sm_13\n"
KERNEL = ".entry k () { ret; }\n"

# Each: what it is, and whether ptxas 13.0 takes it.
FORMS = {
    "a prototype without its semicolon": (
        NEW + ".visible .func (.param .b32 r) f (.param .b32 a)\n"
        ".visible .func (.param .b32 r) f (.param .b32 a)\n{ st.param.b32 [r], 1; ret; }\n" + KERNEL,
        True,
    ),
    "one before each other item, and at the end": (
        NEW + ".extern .func a .noreturn\n.file 1 \"x\"\n.extern .func b\n.global .u32 x;\n.extern .func c ()\n"
        ".section .debug_x { .b8 1 }\n.weak .func d ()\n{ ret; }\n" + KERNEL + ".extern .func e (.param .b32 p)",
        True,
    ),
    "a marker between heading and body": (NEW + ".func f () // ccc for.begin 1\n{ ret; }\n" + KERNEL, True),
    "an empty list of results": (NEW + ".func () f () { ret; }\n.entry k () { call (), f, (); ret; }", True),
    "a newline in a string": (
        NEW + '.file 1 "dir\nname.cu"\n.entry k () { .pragma "no\nunroll"; ret; }', True,
    ),
    "a backslash is no escape": (NEW + '.file 1 "C:\\"\n.file 2 "\\n"\n' + KERNEL, True),
    "a register of all functions": (
        OLD + ".reg .u32 %ra<17>;\n.reg .pred q;\n"
        ".func f () { mov.u32 %ra3, 4; @q ret; ret; }\n.entry k () { call f; ret; }",
        True,
    ),
    "DWARF of PTX 1": (
        OLD + KERNEL + ' \t@@DWARF .section .debug_info, "",@progbits\n\t@@DWARF .byte\t0x95, 0x02\n'
        "\t@@DWARF .4byte\t.debug_abbrev\n\t@@DWARF .4byte\t0x742f0108, 0x742f706d\n@@DWARF .quad 1\n"
        "@@DWARF .section .debug_abbrev, \"\", @progbits\n@@DWARF .byte 1\n",
        True,
    ),
    "a register named like a special one": (
        NEW + ".entry k (.param .u64 p) { .reg .u64 %q; .reg .u32 %tid, %clock, %r;\n"
        "mov.u32 %tid, %laneid; mov.u32 %clock, %tid; ld.param.u64 %q, [p];\n"
        "{ .reg .u32 %laneid; mov.u32 %laneid, %clock; st.global.u32 [%q], %laneid; }\n"
        "mov.u32 %r, %laneid; st.global.u32 [%q+4], %r; ret; }",
        True,
    ),
    "several named like counters": (
        NEW + ".entry k () { .reg .u32 %pm<3>, %envreg<2>; mov.u32 %pm1, %pm7; mov.u32 %envreg1, %pm1; ret; }",
        True,
    ),
    "a vector, a label and variables named so": (
        NEW + ".func f (.reg .u32 %laneid) { .reg .u32 r; mov.u32 r, %laneid; ret; }\n"
        ".entry k (.param .u32 %smid) { .reg .v4 .u32 %ctaid; .reg .u32 r; .shared .u32 %warpid;\n"
        "mov.u32 %ctaid.x, 3; mov.u32 r, %tid.x; ld.param.u32 r, [%smid]; ld.shared.u32 r, [%warpid];\n"
        "%clock: bra %clock; }",
        True,
    ),
    "directives after 9.0": (
        ".version 9.5\n.target sm_90\n.address_size 64\n.visible .entry k (.param .u64 a,\n"
        '.hidden .param .align 64 .b8 x[128])\n.language 1\n.minperctamemory 4 .local_maxnreg 32\n.language "x"\n'
        "{ ret; }",
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_form_is_read_and_printed(form: str) -> None:
    text, _ = FORMS[form]
    check(text.replace("// ccc for.begin 1", ""))
    check(text.replace("// ccc for.begin 1", "").replace("; ", ";\n/* comment */\n"))


@pytest.mark.nvcc
@pytest.mark.parametrize("form", [form for form, (_, taken) in FORMS.items() if taken])
def test_ptxas_makes_the_same_code_of_it(form: str) -> None:
    text, _ = FORMS[form]
    target = "sm_75" if text.startswith(OLD) else "sm_90"
    options = [] if text.startswith(OLD) else ["-c"]  # registers of all functions: only without ABI
    command = (tool("ptxas"), f"-arch={target}", "-w", *options)
    assert assemble(command, print_module(parse(text))) == assemble(command, text)


def test_a_kernel_needs_its_semicolon() -> None:
    """As for ptxas: `.entry` alone is a text that ends too early, or a fault."""
    for text, code in ((".entry k ()", "CCC002"), (".entry k ()\n.entry k () { ret; }", "CCC002")):
        with pytest.raises(PtxError) as caught:
            parse(NEW + text)
        assert caught.value.diagnostics[0].code == code


def test_markers_beside_a_body_are_comments() -> None:
    (function,) = parse(NEW + ".func f () .noreturn // ccc for.begin 1\n{ ret; }").functions()
    assert function.directives == (Directive(".noreturn"),)
    assert function.body == (Instruction("ret"),)


def _operands(function: Function) -> list[object]:
    instructions = [s for s in function.body or () if isinstance(s, Instruction)]
    return [operand for instruction in instructions for operand in instruction.operands]


def test_a_register_hides_a_special_one_to_the_end_of_its_scope() -> None:
    body = "mov.u32 %r, %clock; { .reg .u32 %clock; mov.u32 %r, %clock; } mov.u32 %r, %clock;"
    (function,) = parse(f"{NEW}.entry k () {{ .reg .u32 %r; {body} }}").functions()
    _, first, _, second, _, third = _operands(function)
    assert (first, second, third) == (
        SpecialRegister("%clock"),
        Register("%clock"),
        SpecialRegister("%clock"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("() { .reg .u32 %tid; mov.u32 %tid, %tid.x; }", ""),
        ("() { .reg .u32 %tid; mov.u32 %tid, %laneid; }", "mov.u32 %tid_1, %laneid;"),
        ("() { .reg .u32 %pm<2>; mov.u32 %pm1, %pm2; }", "mov.u32 %pm_1_1, %pm2;"),
        ("(.reg .u32 %tid) { .reg .u32 r; mov.u32 r, %tid; }", "mov.u32 r, %tid_1;"),
    ],
)
def test_unique_names_hide_no_special_register(text: str, expected: str) -> None:
    """What follows goes by name: a register must not be taken for the special one."""
    module = parse(f"{NEW}.func k {text}")
    if not expected:
        with pytest.raises(PtxError, match="%tid"):  # `%tid.x` is a part of the register, which is no vector
            verify(module)
        return
    verify(module)
    unique = with_unique_names(module)
    verify(unique)
    assert expected in print_module(unique)


def test_names_of_registers_of_all_functions() -> None:
    module = parse(OLD + ".reg .u32 %ra<3>;\n.entry k () { mov.u32 %ra2, 1; ret; }")
    assert any(isinstance(item, RegisterDeclaration) for item in module.items)
    verify(module)
    with pytest.raises(PtxError, match="undeclared register `%ra3`"):
        verify(parse(OLD + ".reg .u32 %ra<3>;\n.entry k () { mov.u32 %ra3, 1; ret; }"))


def test_an_unknown_directive_is_named(tmp_path: Path) -> None:
    for text in (
        ".frobnicate 3\n",
        ".entry k () .frobnicate 3 { ret; }",
        ".entry k () { .frobnicate 3; ret; }",
    ):
        with pytest.raises(PtxError) as caught:
            parse(NEW + text)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "CCC005"
        assert "`.frobnicate`" in diagnostic.message
