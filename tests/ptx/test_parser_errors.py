"""Text that is not PTX: always one diagnostic that points at the place, never another exception."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cccopt.diagnostic import Diagnostic, render
from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Instruction, Marker
from cccopt.ptx.parser import parse
from tests.ptx.conftest import HERE
from tests.slow import drawn

FEATURES = (HERE / "features.ptx").read_text()
SIZE = 2_000_000  # characters of garbage
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
        ('.file 1 "no end\n', "CCC003", 4, 9, "unterminated string"),
        (".entry k () { ret; }\n/* no end\n", "CCC003", 5, 1, "unterminated comment"),
        (".entry k () {\n\t.frobnicate 3;\n}", "CCC005", 5, 2, "directive `.frobnicate`"),
        (".frobnicate 3\n", "CCC005", 4, 1, "directive `.frobnicate`"),
        (".entry k () {\n// ccc nonsense\nret; }", "CCC004", 5, 1, "mark without"),
        (".entry k () {\n// ccc if.begin 1 line=x file=y\n}", "CCC004", 5, 1, "malformed `line=x`"),
        (".entry k () {\n// ccc for.begin 1 block=0\n}", "CCC004", 5, 1, "malformed `block=0`"),
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


def nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + "1" + closing * depth


@pytest.mark.parametrize("depth", [1_000, 10_000, 1_000_000])
@pytest.mark.parametrize(
    "text",
    [
        ".entry k () {{ mov.u32 %r1, {parentheses}; }}",
        ".entry k () {{ mov.u32 %r1, {braces}; }}",
        ".entry k () {{ mov.u32 %r1, {brackets}; }}",
        ".global .u32 a = {braces};",
        ".global .u64 a = {calls};",
        ".entry k () {braces}",
    ],
)
def test_what_is_nested_too_deeply_is_told(text: str, depth: int) -> None:
    places = {
        "parentheses": nested("(", ")", depth),
        "braces": nested("{", "}", depth),
        "brackets": nested("[", "]", depth),
        "calls": "generic(" * depth,
    }
    diagnostic = diagnose(text.format(**places))
    assert diagnostic.message == "nested too deeply"
    assert len(render(diagnostic)) < 600


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("~" * 100_000 + "1", "a constant expression that is too long"),
        ("1+" + "(" * 99 + "1" + "+1)" * 90, "unexpected `;`"),
        ("1+" + "9" * 10_000, "a number of 10000 digits"),
        ("9" * 10_000_000 + "+1", "a number of 10000000 digits"),
    ],
)
def test_constants_out_of_all_proportion(value: str, message: str) -> None:
    assert message in diagnose(f".entry k () {{ mov.u32 %r1, {value}; }}").message


@pytest.mark.parametrize(
    "text",
    [
        ".entry k () { .reg .b32 r<1000000000>; }",
        ".entry k () { .reg .b32 %r<1000000000>; }",
        ".func k (.reg .b32 r<1000000000>) { ret; }",
        ".entry k () { L: .branchtargets l<1000000000>; }",
        ".entry k () {" + ".reg .b32 r<1000000>;" * 2 + "}",
    ],
)
def test_declarations_of_very_many_names(text: str) -> None:
    assert diagnose(text).message == "too many names in one function"


def test_a_number_that_is_no_machine_integer() -> None:
    for size in (20, 10_000, 10_000_000):
        diagnostic = diagnose(f".global .b8 a[{'9' * size}];")
        assert "999`" in diagnostic.message or "999...`" in diagnostic.message


GARBAGE = {
    "zeros": "\0" * SIZE,
    "one line": "a" * SIZE,
    "words": "a " * (SIZE // 2),
    "braces": "{" * SIZE,
    "braces in a body": ".entry k () " + "{" * SIZE,
    "parentheses": ".entry k () { mov.b32 %r1, " + "(" * SIZE,
    "digits": "1" * SIZE,
    "dots": ".a" * (SIZE // 2),
    "colons": ".entry k () { a.b" + "::a" * (SIZE // 3),
    "a string": '.file 1 "' + "a" * SIZE,
    "a string of escapes": '.file 1 "' + "\\a" * (SIZE // 2),
    "a comment": "/* " + "\n" * SIZE,
    "a slash": "/" + " " * SIZE,
    "behind PTX": FEATURES + "\x01" * SIZE,
    "behind lines": "\n" * SIZE + "}",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_told_at_once_and_in_little_memory(kind: str) -> None:
    text = GARBAGE[kind]
    tracemalloc.start()
    try:
        diagnostic = diagnose(text)
        assert tracemalloc.get_traced_memory()[1] < 10 * SIZE
    finally:
        tracemalloc.stop()
    assert diagnostic.place is not None
    assert len(render(diagnostic)) < 1000


def test_endless_comments_are_an_empty_module() -> None:
    assert parse("//" * SIZE).items == ()


@settings(max_examples=drawn(150), deadline=None)
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
