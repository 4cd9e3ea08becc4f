"""Input that does not verify is told as the input's fault, at its place; never as a fault of a pass (CCC059)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.ccc.function.annotations import is_annotation
from cccopt.cli.main import main
from cccopt.diagnostic import render
from cccopt.driver import transform
from cccopt.passes import pipeline
from cccopt.passes.options import Options
from cccopt.ptx.errors import PtxError
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
CALL = "call (%r1), _optix_get_launch_index_x, ();"
OPTIX = f".visible .entry __raygen__k ()\n{{\n  .reg .b32 %r<3>;\n    {CALL}\n  ret;\n}}\n"
MARKED = ".visible .entry marked ()\n{\n// ccc for.begin 1 line=3:1 file=k.cu\n{}ret;\n}\n"

WRONG = [
    (
        ".entry k ()\n{\n  .reg .b32 %r<3>;\n\t  mov.b32 %r1, %r9;\n ret;\n}",
        "CCC006",
        7,
        4,
        "mov.b32 %r1, %r9;",
    ),
    (".entry k ()\n{\n  .reg .b32 %r<3>;\n   .reg .b64 %r<2>;\n}", "CCC007", 7, 4, "   .reg .b64 %r<2>;"),
    (".func f ()\n{ ret; }\n  .func f ()\n{ ret; }", "CCC007", 6, 3, "  .func f ()"),
    (".entry k ()\n{\n  .reg .b32 %r<3>;\n @%r1 ret;\n}", "CCC008", 7, 3, " @%r1 ret;"),
    (
        " .func f (.reg .b32 %r, .reg .b32 %r)\n{ ret; }",
        "CCC007",
        4,
        2,
        " .func f (.reg .b32 %r, .reg .b32 %r)",
    ),
    (".entry k ()\n{\n .reg .b32 %r;  ld.global.b32 %r, [x];\n}", "CCC006", 6, 17, "ld.global.b32 %r, [x];"),
]


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "quoted"), WRONG, ids=[f"{w[1]}-{i}" for i, w in enumerate(WRONG)]
)
def test_place_of_a_fault(text: str, code: str, line: int, column: int, quoted: str) -> None:
    with pytest.raises(PtxError) as caught:
        transform(HEAD + text, name="x.ptx")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert f"  --> x.ptx:{line}:{column}\n" in render(diagnostic)
    assert quoted in render(diagnostic).split("\n")[3]


def test_calls_that_the_loader_resolves_pass_through() -> None:
    assert transform(HEAD + OPTIX).ptx == HEAD + OPTIX


def test_they_pass_beside_a_marked_function() -> None:
    module = parse(HEAD + OPTIX + MARKED.replace("{}", ""))
    result = pipeline.run(module, Options("always", keep_going=True))
    printed = print_module(result.module)
    assert "_optix_get_launch_index_x" in printed


def test_they_do_not_pass_in_one() -> None:
    text = HEAD + OPTIX.replace("call", "// ccc for.begin 1 line=3:1 file=k.cu\n    call")
    assert any(is_annotation(s) for f in parse(text).functions() for s in f.body or ())
    with pytest.raises(PtxError) as caught:
        transform(text, name="x.ptx")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, str(diagnostic.place)) == ("CCC006", "x.ptx:8:5")


def test_registers_of_all_functions_stay_as_they_are_and_are_refused_beside_marks() -> None:
    registers = HEAD + "  .reg .b32 %shared<4>;\n.entry k () { mov.b32 %shared2, 1; ret; }\n"
    assert transform(registers).ptx == registers
    with pytest.raises(PtxError) as caught:
        transform(registers + MARKED.replace("{}", ""), name="x.ptx")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, str(diagnostic.place)) == ("CCC005", "x.ptx:4:3")
    assert "a `.reg` outside of all functions" in diagnostic.message


def test_transform_says_so_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "x.ptx", tmp_path / "y.ptx"
    source.write_text(HEAD + WRONG[0][0])
    assert main(["transform", str(source), "-o", str(out)]) == 1
    assert not out.exists()
    said = capsys.readouterr().err
    assert said.startswith("error[CCC006]: undeclared register `%r9`")
    assert f"{source}:7:4" in said
