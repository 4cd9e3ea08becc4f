"""What is printed is what was read: token by token, node by node, and in the code that ptxas makes."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.scopes import with_unique_names
from cccopt.ptx.verifier import verify
from tests.ptx.conftest import HERE, tool
from tests.ptx.elf import code_sections
from tests.ptx.tokens import tokens

CASES = [
    ("control", "sm_75"),
    ("control", "sm_90", "-lineinfo"),
    ("control", "sm_100", "-G"),
    ("memory", "sm_90", "-G"),
    ("memory", "sm_121", "-lineinfo"),
    ("arithmetic", "sm_90"),
    ("arithmetic", "sm_100"),
    ("warp", "sm_90"),
    ("warp", "sm_121"),
    ("cluster", "sm_90"),
]
HAND_WRITTEN = ("features", "forms", "declarations")
Compiled = Callable[..., str]


def rebuilt(node: Any) -> Any:
    """A deep copy of a tree of nodes in which every node is made anew from its fields."""
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = {f.name: rebuilt(getattr(node, f.name)) for f in dataclasses.fields(node)}
        return type(node)(**fields)
    return tuple(rebuilt(child) for child in node) if type(node) is tuple else node


def check(text: str) -> None:
    module = parse(text)
    printed = print_module(rebuilt(module))
    assert tokens(printed) == tokens(text)
    assert parse(printed) == module
    verify(module)


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_hand_written_text(name: str) -> None:
    text = (HERE / f"{name}.ptx").read_text()
    check(text)
    check(text.replace("\n", "\r\n"))
    check("\ufeff" + text.replace("; ", "; /* 2\u00b5s \u2713 */ "))


def test_tokens_see_a_lost_register() -> None:
    assert tokens(".reg .b32 a, b;") != tokens(".reg .b32 a;")
    assert tokens("// ccc if.begin 1\n") != tokens("// cccc if.begin 1\n")


@pytest.mark.nvcc
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_nvcc_output(case: tuple[str, ...], compiled: Compiled) -> None:
    check(compiled(*case))


def check_machine_code(text: str, arch: str, folder: Path, *options: str) -> None:
    def assemble(name: str, text: str) -> dict[str, bytes]:
        source, cubin = folder / f"{name}.ptx", folder / f"{name}.cubin"
        source.write_text(text)
        command = [tool("ptxas"), f"-arch={arch}", *options, str(source), "-o", str(cubin)]
        subprocess.run(command, check=True)
        return code_sections(cubin.read_bytes())

    module = parse(text)
    original = assemble("original", text)
    assert original
    assert assemble("printed", print_module(module)) == original
    assert assemble("unique", print_module(with_unique_names(module))) == original


@pytest.mark.nvcc
@pytest.mark.parametrize("case", [c for c in CASES if "-G" not in c], ids="-".join)
def test_machine_code_is_the_same(case: tuple[str, ...], compiled: Compiled, tmp_path: Path) -> None:
    check_machine_code(compiled(*case), case[1], tmp_path)


@pytest.mark.nvcc
@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_machine_code_of_hand_written_text(name: str, tmp_path: Path) -> None:
    check_machine_code((HERE / f"{name}.ptx").read_text(), "sm_90", tmp_path)


SMALL = """
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<2>; .reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;
}
"""
UNIFIED = """
.version 9.0
.target sm_90
.address_size 64
.visible .global .attribute(.unified(0xDC5, 3)) .b32 table[4];
.global .attribute(.managed, .unified(19, 95)) .f32 f;
.func .attribute(.unified(20, 97)) (.reg .b32 r) g(.reg .b32 a) { add.s32 r, a, 1; ret; }
"""
BEYOND_PTXAS = (
    ".version 9.0\n.target sm_75\n.address_size 32\n",
    ".version 1.4\n.target sm_10, map_f64_to_f32\n.tex .u32 t;\n",
    ".version 10.3\n.target sm_207a, some_option\n.address_size 64\n",
)


@pytest.mark.nvcc
@pytest.mark.parametrize("version", ["6.3", "7.0", "7.8", "8.0", "8.8", "9.0"])
def test_versions(version: str, tmp_path: Path) -> None:
    text = f".version {version}\n.target sm_75\n.address_size 64\n{SMALL}"
    check(text)
    check_machine_code(text, "sm_75", tmp_path)


@pytest.mark.nvcc
def test_every_target_that_ptxas_lists(tmp_path: Path) -> None:
    said = subprocess.run([tool("ptxas"), "--help"], check=True, capture_output=True, text=True).stdout
    targets = sorted(set(re.findall(r"'(sm_\d+[af]?)'", said)))
    assert len(targets) > 12
    for target in targets:
        text = f".version 9.0\n.target {target}\n.address_size 64\n{SMALL}"
        check(text)
        check_machine_code(text, target, tmp_path)


@pytest.mark.nvcc
def test_unified_addresses_are_for_linked_code(tmp_path: Path) -> None:
    check(UNIFIED + SMALL)
    check_machine_code(UNIFIED + SMALL, "sm_90", tmp_path, "-c")


@pytest.mark.parametrize("head", BEYOND_PTXAS)
def test_what_ptxas_no_longer_or_not_yet_takes_comes_back(head: str) -> None:
    check(head + SMALL)


@pytest.mark.nvcc
def test_markers_survive(compiled: Compiled) -> None:
    printed = print_module(parse(compiled("warp", "sm_90")))
    assert printed.count("// ccc if.begin 3 name=odd flag file=a file with blanks.cu\n") == 1
    assert printed.count("// ccc if.end 3\n") == 1


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        (".global .u32 a, b[2];", ".global .u32 a;\n.global .u32 b[2];\n"),
        (".entry k () { L: .branchtargets M<2>; }", "\n.entry k()\n{\nL:\n\t.branchtargets M0, M1;\n}\n"),
        (".global .align 0x8 .b8 a[010];", ".global .align 8 .b8 a[8];\n"),
        (
            ".global .align 8 .attribute(.managed) .u64 a;",
            ".global .attribute(.managed) .align 8 .u64 a;\n",
        ),
        (".entry k () { st.global .u32 [a], 1; }", "\n.entry k()\n{\n\tst.global.u32 [a], 1;\n}\n"),
        (".entry k () { ld.u32 %r1, [%rd1-4]; }", "\n.entry k()\n{\n\tld.u32 %r1, [%rd1+-4];\n}\n"),
    ],
)
def test_spellings_that_are_normalised(written: str, printed: str) -> None:
    module = parse(written)
    assert print_module(module) == printed
    assert parse(printed) == module
