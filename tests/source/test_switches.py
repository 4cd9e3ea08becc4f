"""The cases of a switch: which are paths, where each begins and ends, and which cannot be told apart."""

from __future__ import annotations

import pytest

from cccopt.source.annotate import annotate
from cccopt.source.lexer import tokens
from cccopt.source.pragmas import SourceError
from cccopt.source.strip import strip
from tests.source.marks import attributes, read

_LOOP = "#pragma ccc for\nfor (;;) {}\n"


def _annotated(body: str) -> str:
    """The marked text of a switch with this body, ahead of a loop of its own that lets paths stand alone."""
    text = f"#pragma ccc switch\nswitch (x) {body}\n;\n{_LOOP}"
    annotated = annotate(text, "x.cu").text
    assert annotated.count("\n") == text.count("\n")
    return annotated


def _marked(body: str) -> str:
    return read(_annotated(body)).removeprefix("switch (x) ").rsplit(" ; {", 1)[0]


def _cases(body: str) -> list[str]:
    said = attributes(_annotated(body))
    return [w.removeprefix("case=") for s in said.values() for w in s.split() if w.startswith("case=")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "{ case 1: S; T; break; default: U; }",
            "{ case 1: <if.begin 1> S; T; <if.end 1> break; default: <if.begin 2> U; <if.end 2> }",
        ),
        (
            "{ case 1: case 2: S; break; case 3: break; default: ; }",
            "{ case 1: case 2: <if.begin 1> S; <if.end 1> break; case 3: break; default: ; }",
        ),
        (
            "{ case 1: { S; break; } case 2: { T; } break; case 3: { { U; continue; } } }",
            "{ case 1: <if.begin 1> { S; <if.end 1> break; } case 2: <if.begin 2> { T; } <if.end 2> break;"
            " case 3: <if.begin 3> { { U; <if.end 3> continue; } } }",
        ),
        (
            "{ case 1: S; return; case 2: T; goto x; case 3: U; return -A::b; default: { break; } }",
            "{ case 1: <if.begin 1> S; <if.end 1> return; case 2: <if.begin 2> T; <if.end 2> goto x;"
            " case 3: <if.begin 3> U; <if.end 3> return -A::b; default: { break; } }",
        ),
        (
            "{ int y; case 1: x: S; [[likely]] break; y: z: default: T; w: }",
            "{ int y; case 1: x: <if.begin 1> S; <if.end 1> [[likely]] break; y: z: default: <if.begin 2> T;"
            " <if.end 2> w: }",
        ),
        (
            "{ [[likely]] case 1: [[maybe_unused]] int a = [] { switch (1) { case 9: break; } return 2; }();"
            " break; case 2: break; }",
            "{ [[likely]] case 1: <if.begin 1> [[maybe_unused]] int a ="
            " [] { switch (1) { case 9: break; } return 2; }(); <if.end 1> break; case 2: break; }",
        ),
        (
            "{ case 1: switch (y) { case 1: S; case 2: T; } break; case 2: if (a) break; else S; break; }",
            "{ case 1: <if.begin 1> switch (y) { case 1: S; case 2: T; } <if.end 1> break;"
            " case 2: <if.begin 2> if (a) break; else S; <if.end 2> break; }",
        ),
        (
            "{ case 1:\n#pragma ccc if\nif (a) S; break; default:\n#pragma ccc for variable\nfor (;;) T; }",
            "{ case 1: <if.begin 1> if (a) { <if.begin 3> { S; } <if.end 3> } <if.end 1> break; default:"
            " <if.begin 2> { <for.begin 4> <unroll 1> for (;;) { <body.begin 4> { T; } <body.end 4> }"
            " <for.end 4> } <if.end 2> }",
        ),
        (
            "{ case 1:\n#pragma ccc switch\nswitch (y) { case 5: S; break; default: T; } break; }",
            "{ case 1: <if.begin 1> switch (y) { case 5: <if.begin 2> S; <if.end 2> break;"
            " default: <if.begin 3> T; <if.end 3> } <if.end 1> break; }",
        ),
    ],
)
def test_what_is_marked(body: str, expected: str) -> None:
    assert _marked(body) == expected


def test_only_markers_are_put_in() -> None:
    text = "{ case 1: { S; break; } case ' ': case 2: T; return; default: U; }"
    without = tokens(read(_annotated(text)).replace("if.begin", "").replace("if.end", ""))
    words = [t.text for t in without if t.text not in "<>" and not t.text.isdigit()]
    expected = [t.text for t in tokens(f"switch (x) {text}") if not t.text.isdigit()]
    assert words[: len(expected)] == expected


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("case 1", "1"),
        ("case A :: b", "A::b"),
        ("case a ? b : c", "a?b:c"),
        ("case 1 ... 5", "1...5"),
        ("case ' '", r"'\\x20'"),
        ("case '\"'", r"'\"'"),
        ("default", "default"),
        ("case 1: case 2: default", "1"),
    ],
)
def test_a_case_is_known_by_its_first_label(label: str, text: str) -> None:
    assert _cases(f"{{ {label}: S; }}") == [text]


def test_every_case_says_what_the_pragma_says_and_where_it_stands() -> None:
    text = (
        '# 3 "k.cu"\n'
        "#pragma ccc for\n"
        "for (;;) {\n"
        "#pragma ccc switch collect(2) always name(kinds) independent\n"
        "  switch (x) {\n"
        "    case 1: S; break;\n"
        "    case 2: break;\n"
        "    case 3: {\n"
        "#pragma ccc if\n"
        "      if (a) T;\n"
        "    } break;\n"
        "    default: U;\n"
        "  }\n"
        "}\n"
    )
    annotated = annotate(text, "x.cu")
    said = attributes(annotated.text)
    shared = "name=kinds mode=always collect=2 independent kind=switch"
    assert said["if.begin 2"] == f"line=7:5 {shared} case=1 group=2 file=k.cu"
    assert said["if.begin 3"] == f"line=9:5 {shared} case=3 group=2 file=k.cu"
    assert said["if.begin 4"] == f"line=13:5 {shared} case=default group=2 file=k.cu"
    assert said["if.begin 5"] == "line=11:7 file=k.cu"
    assert [r.parent for r in annotated.regions] == [None, 1, 1, 1, 3]
    assert [r.group for r in annotated.regions] == [0, 2, 2, 2, 0]
    assert [r.id for r in annotate(text, "x.cu", only={1, 3}).regions] == [1, 3]
    assert annotate(text.replace("always", "off"), "x.cu").text.count("if.begin") == 1


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("{ case 1: S;\ncase 2: T; }", 2, "falls through into the next"),
        ("{ case 1:\n case 2: T; [[fallthrough]]; default: U; }", 2, "end the case with `break`"),
        ("{ case 1: ;\ncase 2: T; }", 2, "above a block in each case"),
        ("{ case 1: if (a) break;\ncase 2: T; }", 2, "falls through"),
        ("{ case 1: { S; }\ncase 2: T; }", 2, "falls through"),
        ("{ case 1: do { S;\ncase 2: T; } while (n); }", 3, "a `case` label is inside another statement"),
        ("{ case 1: if (n)\ndefault: T; }", 3, "a `default` label is inside another statement"),
        ("{ case 1: {\ncase 2: T; } }", 3, "write all labels at the outermost level"),
        ("{ case 1:\nreturn f(x); }", 3, "store the value in a variable"),
        ("{ case 1: S;\nreturn x + 1; }", 3, "outside of the path"),
        ("case 1: S;", 2, "write it in braces"),
        ("{ case 1: break; default: return; }", 2, "no case of the `switch` does anything"),
        ("{ }", 2, "no case of the `switch` does anything"),
    ],
)
def test_cases_that_are_no_paths(body: str, line: int, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        annotate(f"x;\n#pragma ccc switch\nswitch (x) {body}\n{_LOOP}".replace("x;\n#", "#"), "x.cu")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC018"
    assert diagnostic.place is not None
    assert diagnostic.place.position.line == line
    assert says in str(caught.value)
    assert "annotated here" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("#pragma ccc switch\nif (a) b;", "CCC012", "applies to a `switch`, but is above `if`"),
        ("#pragma ccc if\nswitch (a) { default: b; }", "CCC012", "an `if` or a block"),
        (
            "#pragma ccc switch\nx:\n#pragma ccc switch\nswitch (a) { default: b; }",
            "CCC015",
            "above one statement",
        ),
        ("#pragma ccc switch\nswitch (a) { case 1: b;", "CCC016", "under this pragma has no end"),
        ("#pragma ccc switch\nswitch (a) { case 1: b; break; }", "CCC013", "without an annotated loop"),
    ],
)
def test_mistakes(text: str, code: str, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        annotate("x;\n" + text, "x.cu")
    assert {d.code for d in caught.value.diagnostics} == {code}
    assert says in str(caught.value)


def test_none_marked_is_stripped() -> None:
    text = "#pragma ccc switch\nswitch (x) { default: S; }\n" + _LOOP
    assert annotate(text, "x.cu", only=()).text == strip(text)
