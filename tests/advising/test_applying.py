"""Pragmas written into sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cccopt.advising.applying import apply, patch, with_pragmas
from cccopt.advising.pragmas import Pragma
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError
from cccopt.text import Place, Position


def _pragma(file: Path, kind: Kind, line: int, column: int) -> Pragma:
    return Pragma(kind, Place(str(file), Position(line, column), ""))


def _applied(folder: Path, text: str, *where: tuple[Kind, int, int]) -> str:
    file = folder / "x.cu"
    file.write_bytes(text.encode("latin-1"))
    apply(with_pragmas(_pragma(file, *each) for each in where))
    return file.read_bytes().decode("latin-1")


def test_a_pragma_has_a_line_above_its_statement(tmp_path: Path) -> None:
    text = "void f() {\n  for (;;) {\n    if (x) y();\n  }\n}\n"
    made = _applied(tmp_path, text, (Kind.FOR, 2, 3), (Kind.IF, 3, 5))
    assert made == "void f() {\n#pragma ccc for\n  for (;;) {\n#pragma ccc if\n    if (x) y();\n  }\n}\n"


def test_lines_are_parted_where_a_statement_does_not_begin_its_line(tmp_path: Path) -> None:
    text = "  if (x) {\n    y();\n  } else {\n    z();\n  }\n"
    made = _applied(tmp_path, text, (Kind.IF, 1, 3), (Kind.ELSE, 3, 5))
    assert made == "#pragma ccc if\n  if (x) {\n    y();\n  }\n#pragma ccc else\n  else {\n    z();\n  }\n"


def test_an_else_if_is_marked_as_the_reference_says(tmp_path: Path) -> None:
    made = _applied(tmp_path, "  if (x) y(); else if (z) w();\n", (Kind.IF, 1, 3), (Kind.IF, 1, 20))
    assert made == "#pragma ccc if\n  if (x) y(); else\n#pragma ccc if\n  if (z) w();\n"


def test_a_kernel_is_marked_above_its_whole_definition(tmp_path: Path) -> None:
    text = "// A kernel.\ntemplate <class T>\n__global__ void\nk(T* a) {\n  a[0] = 1;\n}\n"
    made = _applied(tmp_path, text, (Kind.GRID, 4, 1))
    assert made == text.replace("template", "#pragma ccc grid\ntemplate")


def test_a_switch_is_marked_above_its_head(tmp_path: Path) -> None:
    text = "  switch (x) {\n    case 1: y(); break;\n    case 2: z();\n  }\n"
    assert _applied(tmp_path, text, (Kind.SWITCH, 2, 5)) == f"#pragma ccc switch\n{text}"


def test_bytes_and_line_ends_stay(tmp_path: Path) -> None:
    text = "// größer\r\n  while (x)\r\n    y(); // é\r\n"
    made = _applied(tmp_path, text, (Kind.WHILE, 2, 3))
    assert made == "// größer\r\n#pragma ccc while\r\n  while (x)\r\n    y(); // é\r\n"


def test_of_two_pragmas_over_one_statement_the_first_counts(tmp_path: Path) -> None:
    made = _applied(tmp_path, "for (;;) y();\n", (Kind.WHILE, 1, 1), (Kind.FOR_VARIABLE, 1, 1))
    assert made == "#pragma ccc while\nfor (;;) y();\n"


def test_of_two_blocks_the_larger_counts_and_none_if_one_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "x.cu"
    file.write_text("for (;;) y();\n")
    loop = _pragma(file, Kind.FOR, 1, 1)
    small, wide = replace(loop, block=(64, 2)), replace(loop, block=(128,))
    ((_, made),) = with_pragmas([small, wide]).values()
    assert made == "#pragma ccc for block(128, 2)\nfor (;;) y();\n"
    ((_, made),) = with_pragmas([small, loop]).values()
    assert made == "#pragma ccc for\nfor (;;) y();\n"
    ((_, made),) = with_pragmas([small, replace(loop, block=(1024,))]).values()
    assert made == "#pragma ccc for\nfor (;;) y();\n"


def test_a_statement_of_a_macro_is_refused_and_nothing_written(tmp_path: Path) -> None:
    text = "#define LOOP for (;;) y();\nvoid f() {\n  if (x) y();\n  LOOP\n}\n"
    with pytest.raises(CccError, match="CCC118") as caught:
        _applied(tmp_path, text, (Kind.IF, 3, 3), (Kind.WHILE, 4, 3))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.help.startswith('write `_Pragma("ccc while")`')
    assert (tmp_path / "x.cu").read_text() == text


def test_a_word_in_a_comment_is_no_statement(tmp_path: Path) -> None:
    with pytest.raises(CccError, match="CCC118"):
        _applied(tmp_path, "// if only\n", (Kind.IF, 1, 4))


def test_the_patch_is_a_unified_diff(tmp_path: Path) -> None:
    file = tmp_path / "x.cu"
    file.write_text("void f() {\n  for (;;) y();\n}")
    text = patch(with_pragmas([_pragma(file, Kind.FOR, 2, 3)]))
    assert text.splitlines()[2:] == [
        "@@ -1,3 +1,4 @@",
        " void f() {",
        "+#pragma ccc for",
        "   for (;;) y();",
        " }",
        "\\ No newline at end of file",
    ]
    file_before = file.read_text()
    assert file_before == "void f() {\n  for (;;) y();\n}"
