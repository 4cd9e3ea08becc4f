"""Refusals and errors whose reason depends on where a path or a text ends."""

from __future__ import annotations

from pathlib import Path

import pytest

import cccopt
from cccopt.cli.main import main
from cccopt.diagnostic import CccError
from tests.cli.test_commands import MARKED

END = "\t// ccc if.end 2\nNEXT:"
LAST = "\t// ccc for.end 1\n\tret;\n"
KERNEL = """\
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(64) k(int n, const int* __restrict__ in, int* __restrict__ out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  int y = in[i];
#pragma ccc switch
  switch (y & 3) {
    case 0: for (int k = 0; k < 40; ++k) { y = y * 3 + k; } out[i] = y; return;
    case 1: for (int k = 0; k < 40; ++k) { y = y * 5 + k; } out[i] = y; return;
    default: break;
  }
}
"""


@pytest.mark.parametrize("target", ["OUT", "DONE"])
def test_a_path_that_leaves_its_loop_is_told_so(target: str) -> None:
    """By `return` or by `break`: it is in the marked loop, as its text says, but returns to it never."""
    text = MARKED.replace(END, END.replace("NEXT", f"\tbra {target};\nNEXT")).replace(
        LAST, LAST.replace("\tret", "OUT:\n\tret")
    )
    with pytest.raises(CccError) as caught:
        cccopt.transform(text, ccc="always")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC032"
    assert diagnostic.place is not None
    assert str(diagnostic.place).startswith("k.cu:5:5")


def test_a_path_after_the_loop_is_in_none() -> None:
    path = MARKED[MARKED.index("\t// ccc if.begin 2") : MARKED.index("\t// ccc if.end 2")]
    after = "\t@%p1 bra OUT;\n" + path.replace("2 line=5:5", "3 line=9:9") + "\t// ccc if.end 3\nOUT:\n"
    with pytest.raises(CccError) as caught:
        cccopt.transform(MARKED.replace(LAST, LAST.replace("\tret", after + "\tret")), ccc="always")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC030"
    assert str(diagnostic.place).startswith("k.cu:9:9")


@pytest.mark.nvcc
def test_a_case_may_return_under_grid_and_not_under_for(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL)
    (unit,) = cccopt.compile(source, ccc="always").report["units"]
    assert {region["outcome"] for region in unit["regions"]} == {"rewritten"}
    loop = KERNEL.replace("#pragma ccc grid\n", "").replace("  if (i >= n) return;\n", "")
    loop = loop.replace("int i =", "\n#pragma ccc for\n  for (int i =").replace(
        "blockDim.x;\n", "blockDim.x; i < n; i += blockDim.x) {\n"
    )
    source.write_text(loop + "}\n")
    with pytest.raises(CccError) as caught:
        cccopt.compile(source, ccc="always")
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"CCC032"}


@pytest.mark.parametrize("content", ["", " \n\t\n", "// only a comment\n/* and\nanother */\n"])
@pytest.mark.parametrize("command", [["transform", "x.ptx", "-o", "out.ptx"], ["explain", "x.ptx"]])
def test_an_empty_text_is_an_error(
    content: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.ptx").write_text(content)
    assert main(command) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(
        "error[CCC002]: the text contains nothing but white space and comments\n  --> x.ptx:1:1\n"
    )
    assert not Path("out.ptx").exists()


@pytest.mark.parametrize("name", ["missing.cu", "folder.cu", "README", ""])
def test_what_is_no_file_is_not_for_nvcc_to_judge(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.cu").mkdir()
    assert main(["explain", name]) == 1
    assert capsys.readouterr().err.startswith("error[CCC086]: cannot read `")
