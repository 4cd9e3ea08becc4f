"""An opcode that nobody knows, all the way through ``cccopt transform``: kept outside of regions, refused inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.cli.main import main
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control, Memory, definitions, facts, reads
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_statement
from tests.kernels.running import PTX

MARKED = (PTX / "several_ends.ptx").read_text().split("\n")
UNKNOWN = "frobnicate.sync.x::y.b32 %r1|%p1, [%rd1+8], {%r2, _}, !%p2, -4"


def transformed(at: int, folder: Path) -> tuple[int, str]:
    """The exit status and the output with the unknown instruction behind line ``at`` (counted from 1)."""
    source, out = folder / "in.ptx", folder / "out.ptx"
    source.write_text("\n".join([*MARKED[:at], f"\t{UNKNOWN};", *MARKED[at:]]))
    status = main(["transform", str(source), "-o", str(out), "--ccc", "always"])
    return status, out.read_text() if out.exists() else ""


def test_outside_of_a_region_it_is_printed_as_it_was(tmp_path: Path) -> None:
    at = next(i for i, line in enumerate(MARKED, 1) if "%tid.z" in line)
    status, out = transformed(at, tmp_path)
    assert status == 0
    assert out.count(f"\t{UNKNOWN};\n") == 1
    assert out.count("vote.sync") > 0  # the region is rewritten all the same


@pytest.mark.parametrize("mark", ["// ccc if.begin", "// ccc body.begin"])
def test_inside_it_is_named_with_its_line(
    mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = next(i for i, line in enumerate(MARKED, 1) if mark in line)
    status, out = transformed(at, tmp_path)
    assert (status, out) == (1, "")
    said = capsys.readouterr().err
    assert "error[CCC044]" in said
    assert f"`frobnicate.sync.x::y.b32` (line {at + 1} of the PTX)" in said


def test_it_reads_and_writes_all_it_names() -> None:
    (function,) = parse(f".entry k () {{ @%p3 {UNKNOWN}; }}").functions()
    assert function.body is not None
    (statement,) = function.body
    assert isinstance(statement, Instruction)
    assert print_statement(statement) == f"\t@%p3 {UNKNOWN};"
    assert {r.name for r in definitions(statement)} == {"%r1", "%p1", "%r2", "%p2"}
    assert {r.name for r in reads(statement)} == {"%r1", "%p1", "%r2", "%p2", "%p3", "%rd1"}
    told = facts(statement)
    assert (told.known, told.pure, told.memory, told.space) == (False, False, Memory.ATOMIC, "generic")
    assert told.synchronises
    assert told.convergent
    assert told.control is Control.NEXT
