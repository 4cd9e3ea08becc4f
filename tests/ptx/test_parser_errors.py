"""Text that is not PTX: always one diagnostic that points at the place, never another exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cccopt.diagnostic import Diagnostic
from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Instruction, Marker
from cccopt.ptx.parser import parse
from tests.ptx.conftest import HERE

FEATURES = (HERE / "features.ptx").read_text()
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def diagnose(text: str) -> Diagnostic:
    with pytest.raises(PtxError) as caught:
        parse(text, "x.ptx")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "message"),
    [
        (".entry k () { ret; ", "CCC002", 4, 18, "ends in the middle"),
        (".entry k ()\n{\nadd.s32 %r1, %r2", "CCC002", 6, 16, "ends in the middle"),
        (".entry k () {\nadd.s32 %r1, 4\n}\n.entry l () { ret; }", "CCC001", 6, 1, "unexpected `}`"),
        (".entry k () {\nret;\n.visible .entry l () { ret; }", "CCC002", 6, 10, "`.entry` in the middle"),
        (".entry k () { ret; \x01 }", "CCC003", 4, 20, "stray character '\\x01'"),
        (".entry k () { ret; \u00e9 }", "CCC001", 4, 20, "unexpected `\u00e9`"),
        ('.file 1 "no end\n', "CCC003", 4, 9, "string without an end"),
        (".entry k () { ret; }\n/* no end\n", "CCC003", 5, 1, "comment without an end"),
        (".entry k () {\n\t.frobnicate 3;\n}", "CCC005", 5, 2, "directive `.frobnicate`"),
        (".frobnicate 3\n", "CCC005", 4, 1, "directive `.frobnicate`"),
        (".entry k () {\n// ccc nonsense\nret; }", "CCC004", 5, 1, "marker without"),
        (".entry k () { add.s32 %r1 %r2; }", "CCC001", 4, 27, "unexpected `%r2`"),
    ],
)
def test_diagnostics(text: str, code: str, line: int, column: int, message: str) -> None:
    diagnostic = diagnose(HEAD + text)
    assert diagnostic.code == code
    assert message in diagnostic.message
    assert diagnostic.place is not None
    assert (diagnostic.place.position.line, diagnostic.place.position.column) == (line, column)
    assert diagnostic.place.line_text == (HEAD + text).split("\n")[line - 1]


def test_empty_text_is_an_empty_module() -> None:
    assert parse("\n// nothing\n").items == ()


def test_unknown_opcode_is_no_error() -> None:
    (function,) = parse(HEAD + ".entry k () { frobnicate.x::y.b32 %r1, [%rd1]; }").functions()
    assert function.body is not None
    (statement,) = function.body
    assert isinstance(statement, Instruction)
    assert statement.opcode == "frobnicate.x::y.b32"


def test_markers_count_in_functions_only() -> None:
    lines = ["// ccc if.begin 1", ".entry k ()", "{", "// ccc if.begin 2 a=b=c flag file=/x y", "ret;", "}"]
    module = parse("\n".join([*lines, "// ccc if.begin 3"]))
    (function,) = module.items
    assert function.body is not None  # type: ignore[union-attr]
    marker = function.body[0]  # type: ignore[union-attr]
    assert marker == Marker("if.begin", 2, (("a", "b=c"), ("flag", ""), ("file", "/x y")))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_text_gives_a_module_or_a_diagnostic(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(FEATURES)))
    cut = data.draw(st.sampled_from([0, 1, 2, 10, len(FEATURES)]))
    inserted = data.draw(st.text(max_size=3) | st.sampled_from(list(".{}()[]\"'@%/*|!,;:")))
    text = FEATURES[:start] + inserted + FEATURES[start + cut :]
    try:
        parse(text)
    except PtxError as problem:
        (diagnostic,) = problem.diagnostics
        assert diagnostic.code in {"CCC001", "CCC002", "CCC003", "CCC004", "CCC005"}
        assert diagnostic.place is not None
