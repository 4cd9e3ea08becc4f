"""Which statement a pragma names, what is put around it, and what is said about mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cccopt.clauses import Clauses
from cccopt.diagnostic import Severity
from cccopt.source.annotate import annotate
from cccopt.source.pragmas import SourceError
from cccopt.source.strip import strip
from cccopt.text import Place, Position
from tests.source.marks import attributes, read

_LOOP = "#pragma ccc for\nfor (;;) {}\n"


def _marked(text: str) -> str:
    """`text` marked, behind a loop of its own that lets paths stand alone."""
    annotated = annotate(text + "\n;\n" + _LOOP, "x.cu")
    assert annotated.text.count("\n") == (text + "\n;\n" + _LOOP).count("\n")
    assert "#pragma ccc" not in annotated.text
    return read(annotated.text).rsplit(" ; {", 1)[0]


def _mistakes(text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(SourceError) as caught:
        annotate(text, "x.cu")
    places = [(d.code, d.place) for d in caught.value.diagnostics]
    return [(code, place.position.line, place.position.column) for code, place in places if place is not None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "#pragma ccc for\nfor (A; B; C) { S; }",
            "{ <for.begin 1> <unroll 1> for (A; B; C) { <body.begin 1> { { S; } } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "#pragma ccc for variable\nfor (auto x : y) S;",
            "{ <for.begin 1> <unroll 1> for (auto x : y) { <body.begin 1> { S; } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "#pragma ccc for\n#pragma unroll 4\nfor (;;) S;",
            "{ <for.begin 1> <unroll 4> for (;;) { <body.begin 1> { S; } <body.end 1> } <for.end 1> }",
        ),
        (
            "#pragma unroll (N)\n#pragma ccc for\nfor (;;) S;",
            "{ <for.begin 1> <unroll (N)> for (;;) { <body.begin 1> { S; } <body.end 1> } <for.end 1> }",
        ),
        (
            "#pragma ccc for\nagain: [[likely]] for (;;) S;",
            "again: { <for.begin 1> <unroll 1> [[likely]] for (;;) { <body.begin 1> { S; } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "if (a)\n#pragma ccc for\nfor (;;) S; else T;",
            "if (a) { <for.begin 1> <unroll 1> for (;;) { <body.begin 1> { S; } <body.end 1> }"
            " <for.end 1> } else T;",
        ),
        ("#pragma ccc if\nif (c) S; else T;", "if (c) { <if.begin 1> { S; } <if.end 1> } else T;"),
        ("#pragma ccc if\nif (c) { S; }", "if (c) { <if.begin 1> { { S; } } <if.end 1> }"),
        (
            "#pragma ccc if\nif (c) if (d) S; else T;",
            "if (c) { <if.begin 1> { if (d) S; else T; } <if.end 1> }",
        ),
        (
            "if (a)\n#pragma ccc if\nif (b) S; else T;",
            "if (a) if (b) { <if.begin 1> { S; } <if.end 1> } else T;",
        ),
        (
            "if (a) S; else\n#pragma ccc if\nif (b) T; else U;",
            "if (a) S; else if (b) { <if.begin 1> { T; } <if.end 1> } else U;",
        ),
        (
            "#pragma ccc if\nif constexpr (int x = f([] { return ')'; }); x < y) [[likely]] { S; }",
            "if constexpr (int x = f([] { return ')'; }); x < y) "
            "{ <if.begin 1> { [[likely]] { S; } } <if.end 1> }",
        ),
        (
            "if (!p) continue;\n#pragma ccc if\n{ S; }\nT;",
            "if (!p) continue; { <if.begin 1> { { S; } } <if.end 1> } T;",
        ),
        ("do\n#pragma ccc if\n{ S; } while (c);", "do { <if.begin 1> { { S; } } <if.end 1> } while (c);"),
        ("while (c)\n#pragma ccc if\n{ S; }", "while (c) { <if.begin 1> { { S; } } <if.end 1> }"),
        (
            "switch (x) { case 1:\n#pragma ccc if\nif (c) S; break; }",
            "switch (x) { case 1: if (c) { <if.begin 1> { S; } <if.end 1> } break; }",
        ),
        (
            "#pragma ccc while\nwhile (int x = f()) S;",
            "{ <for.begin 1> <unroll 1> while (int x = f()) { <body.begin 1> { S; } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "do S; while (d);\n#pragma ccc while\n#pragma unroll 2\nwhile (a) while (b);",
            "do S; while (d); { <for.begin 1> <unroll 2> while (a) { <body.begin 1> { while (b); } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "#pragma ccc while chunk(4)\ndo S; while (a); T;",
            "{ <for.begin 1> <unroll 1> do { <body.begin 1> { S; } <body.end 1> } while (a); <for.end 1> } T;",
        ),
        (
            "#pragma ccc while\nfor (A; B; C) { if (b) break; S; }",
            "{ <for.begin 1> <unroll 1> for (A; B; C) { <body.begin 1> { { if (b) break; S; } } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "#pragma ccc for\nwhile (i < n) { S; i += step; }",
            "{ <for.begin 1> <unroll 1> while (i < n) { <body.begin 1> { { S; i += step; } } <body.end 1> }"
            " <for.end 1> }",
        ),
        (
            "#pragma ccc for variable\ndo S; while (a);",
            "{ <for.begin 1> <unroll 1> do { <body.begin 1> { S; } <body.end 1> } while (a); <for.end 1> }",
        ),
        (
            "do\n#pragma ccc while\ndo { S; } while (a); while (b);",
            "do { <for.begin 1> <unroll 1> do { <body.begin 1> { { S; } } <body.end 1> } while (a); <for.end 1> }"
            " while (b);",
        ),
        (
            "#pragma ccc if\nif (a) S;\n#pragma ccc else\nelse T; U;",
            "if (a) { <if.begin 1> { S; } <if.end 1> } else { <if.begin 2> { T; } <if.end 2> } U;",
        ),
        (
            "if (a) S;\n#pragma ccc else\nelse T; U;",
            "if (a) S; else { <if.begin 1> { T; } <if.end 1> } U;",
        ),
        (
            "#pragma ccc if\nif (a) { S; } else [[unlikely]]\n#pragma ccc else\n{ T; } U;",
            "if (a) { <if.begin 1> { { S; } } <if.end 1> }"
            " else { <if.begin 2> { [[unlikely]] { T; } } <if.end 2> } U;",
        ),
        (
            "#pragma ccc if\nif (a) S; else\n#pragma ccc if\nif (b) T;\n#pragma ccc else\nelse U;",
            "if (a) { <if.begin 1> { S; } <if.end 1> } else if (b) { <if.begin 2> { T; } <if.end 2> }"
            " else { <if.begin 3> { U; } <if.end 3> }",
        ),
        (
            "#pragma ccc if\nif (a) S;\n#pragma ccc else\nelse\n#pragma ccc if\nif (b) T; else U;",
            "if (a) { <if.begin 1> { S; } <if.end 1> } else { <if.begin 2> {"
            " if (b) { <if.begin 3> { T; } <if.end 3> } else U; } <if.end 2> }",
        ),
        (
            "if (a)\n#pragma ccc if\nif (b) S; else\n#pragma ccc else\n#pragma unroll 2\nfor (;;) T;",
            "if (a) if (b) { <if.begin 1> { S; } <if.end 1> } else { <if.begin 2> {"
            " #pragma unroll 2 for (;;) T; } <if.end 2> }",
        ),
        (
            "if (a)\n#pragma ccc if\n{ S; }\n#pragma ccc else\nelse T;",
            "if (a) { <if.begin 1> { { S; } } <if.end 1> } else { <if.begin 2> { T; } <if.end 2> }",
        ),
    ],
)
def test_what_is_named(text: str, expected: str) -> None:
    assert _marked(text) == expected


def test_regions_that_end_in_one_place_close_from_within() -> None:
    text = "#pragma ccc for\nfor (;;)\n#pragma ccc if\nif (c)\n#pragma ccc for variable\nfor (;;) S;"
    assert _marked(text) == (
        "{ <for.begin 1> <unroll 1> for (;;) { <body.begin 1> { if (c) { <if.begin 2> { "
        "{ <for.begin 3> <unroll 1> for (;;) { <body.begin 3> { S; } <body.end 3> } <for.end 3> } "
        "} <if.end 2> } } <body.end 1> } <for.end 1> }"
    )


def test_an_unroll_pragma_of_an_inner_loop_stays_its_own() -> None:
    text = "#pragma ccc for\nfor (;;)\n#pragma unroll 2\nfor (;;) S;"
    assert _marked(text) == (
        "{ <for.begin 1> <unroll 1> for (;;) { <body.begin 1> { #pragma unroll 2 for (;;) S; } <body.end 1> }"
        " <for.end 1> }"
    )


def test_pragmas_in_strings_are_text() -> None:
    text = 'auto s = R"(\n#pragma ccc nonsense\n)";\n'
    assert annotate(text, "x.cu").text == text == strip(text)
    assert strip(text + _LOOP) == text + "\nfor (;;) {}\n"


def test_regions_and_attributes() -> None:
    text = (
        '# 10 "a b/k.cu"\n'
        "#pragma ccc for name(rows) block(16,4) always\n"
        "  for (;;) {\n"
        "#pragma ccc if independent\n"
        "    if (c)\n"
        "#pragma ccc for variable auto\n"
        "      for (;;) {}\n"
        "  }\n"
    )
    annotated = annotate(text, "x.cu")
    said = attributes(annotated.text)
    assert said["for.begin 1"] == "line=11:3 name=rows block=16,4,1 mode=always file=a b/k.cu"
    assert said["if.begin 2"] == "line=13:5 independent file=a b/k.cu"
    assert said["for.begin 3"] == "line=15:7 mode=auto variable file=a b/k.cu"
    assert all(not words for event, words in said.items() if "end" in event or "body" in event)
    rows, path, edges = annotated.regions
    assert (rows.id, rows.kind, rows.parent) == (1, "for", None)
    assert rows.clauses == Clauses(name="rows", block=(16, 4, 1), mode="always")
    assert rows.place == Place("a b/k.cu", Position(11, 3), "  for (;;) {")
    assert (path.id, path.kind, path.parent) == (2, "if", 1)
    assert (edges.id, edges.kind, edges.parent) == (3, "for variable", 2)


def test_clauses_are_attributes() -> None:
    text = (
        "#pragma ccc for reduce(+ : sum) collect(3) reduce(max:best,last)\n"
        "for (;;) {\n"
        "sum = best = last;\n"
        "#pragma ccc if hoist\n"
        "if (a) b;\n"
        "#pragma ccc else nohoist name(other)\n"
        "else c;\n"
        "#pragma ccc while chunk(016)\n"
        "while (a) b;\n"
        "#pragma ccc for variable chunk(2)\n"
        "for (;;) c;\n"
        "}\n"
    )
    said = attributes(annotate(text, "x.cu").text)
    assert said["for.begin 1"] == "line=2:1 reduce=+:sum,max:best,max:last collect=3 file=x.cu"
    assert said["if.begin 2"] == "line=5:1 hoist=yes file=x.cu"
    assert said["if.begin 3"] == "line=7:1 name=other hoist=no kind=else file=x.cu"
    assert said["for.begin 4"] == "line=9:1 chunk=16 kind=while file=x.cu"
    assert said["for.begin 5"] == "line=11:1 chunk=2 variable file=x.cu"
    assert [r.parent for r in annotate(text, "x.cu").regions] == [None, 1, 1, 1, 1]


def test_the_pragma_and_not_the_keyword_tells_what_a_loop_is() -> None:
    text = "#pragma ccc for\nwhile (a)\n#pragma ccc while\nfor (;;)\n#pragma ccc for variable\ndo b; while (c);\n"
    annotated = annotate(text, "x.cu")
    said = attributes(annotated.text)
    assert said["for.begin 1"] == "line=2:1 file=x.cu"
    assert said["for.begin 2"] == "line=4:1 kind=while file=x.cu"
    assert said["for.begin 3"] == "line=6:1 variable file=x.cu"
    assert [r.kind for r in annotated.regions] == ["for", "while", "for variable"]


_REDUCED = """\
# 1 "y.cu"
#pragma ccc for reduce(+: re, im) reduce(max: most)
for (;;) {
  S(im);
#pragma ccc if
  if (re) { re += x.im; p->most = y::most; }
#pragma ccc else
  else most = max(most, im);
#pragma ccc switch
  switch (im) { case 1: re += 1; break; default: x.re = 2; }
#pragma ccc for variable
  for (; re < 9;) { im += 1; }
#pragma ccc while
  while (more) {
#pragma ccc if
    { most = 3; }
  }
}
"""


def test_the_end_of_a_path_pins_the_reduced_variables_in_its_text() -> None:
    marked = annotate(_REDUCED, "x.cu").text
    found = re.findall(r"((?:::ccc_pin_\(\w+\); )*)asm volatile\(\"// ccc (\w+\.end \d+)", marked)
    assert {end: re.findall(r"\((\w+)\)", pinned) for pinned, end in found} == {
        "if.end 2": ["re"],
        "if.end 3": ["im", "most"],
        "if.end 4": ["re"],
        "if.end 5": [],
        "body.end 6": ["im"],
        "for.end 6": [],
        "body.end 7": ["most"],
        "for.end 7": [],
        "if.end 8": ["most"],
        "body.end 1": [],
        "for.end 1": [],
    }


def test_what_pins_stands_ahead_of_the_text_and_moves_no_line() -> None:
    for text, first in ((_REDUCED, '# 1 "y.cu"\n'), (_REDUCED.split("\n", 1)[1], '# 1 "a\\\\b\\"c"\n')):
        marked = annotate(text, 'a\\b"c').text
        begin, functions, rest = marked.split("\n", 2)
        assert f"{begin}\n" == first
        assert functions.startswith("__attribute__((host)) __attribute__((device))")
        assert rest.startswith(first)
        assert rest.count("\n") - first.count("\n") == text.removeprefix(first).count("\n")
    unused = _REDUCED.replace("reduce(+: re, im) reduce(max: most)", "reduce(+: S)")
    assert "ccc_pin_" not in annotate(unused, "x.cu").text
    assert "ccc_pin_" not in annotate(_REDUCED, "x.cu", only=(2, 3, 4)).text


def test_a_reduction_is_placed_at_its_variable() -> None:
    text = "#pragma ccc for name(none) reduce(+: sum, none)\nfor (;;) sum += 1;\n"
    assert _mistakes(text) == [("CCC015", 1, 43)]
    member = "#pragma ccc for reduce(+: sum, sum [ 1 ])\nfor (;;) sum[10] += sum.one;\n"
    assert _mistakes(member) == [("CCC015", 1, 32)]


def test_members_and_elements_are_reduced() -> None:
    text = (
        "#pragma ccc for reduce(+ : s . total, t[ 2 ]) reduce(max: s.most[0].x)\nfor (;;) {\n"
        "#pragma ccc if\nif (a) { s.total += t [2]; s.most[0].y = q.s.most[0].x; }\n"
        "#pragma ccc if\nif (b) { int t[3]; t[2] = 1; s.most[0].x = 2; }\n}\n"
    )
    marked = annotate(text, "x.cu").text
    assert "reduce=+:s.total,+:t[2],max:s.most[0].x" in attributes(marked)["for.begin 1"]
    found = re.findall(r"((?:::ccc_pin_\([^()]+\); )*)asm volatile\(\"// ccc (if\.end \d+)", marked)
    assert {end: re.findall(r"\(([^()]+)\)", pinned) for pinned, end in found} == {
        "if.end 2": ["s.total", "t[2]"],
        "if.end 3": ["s.most[0].x"],
    }


def test_an_else_is_not_blamed_for_its_if() -> None:
    text = "#pragma ccc iff\nif (a) b;\n#pragma ccc else\nelse c;\n"
    assert _mistakes(text) == [("CCC010", 1, 13)]


def test_going_on_leaves_out_each_mistake_alone_with_a_warning() -> None:
    good = "#pragma ccc if\nif (a) b;\n"
    loop = f"#pragma ccc for\nfor (;;) {{\n{good}}}\n"
    bad = "#pragma ccc iff\nif (c) d;\n#pragma ccc if\nfor (;;) f;\n"
    made = annotate(loop + bad + loop, "x.cu", keep_going=True)
    assert read(made.text) == read(annotate(loop + strip(bad) + loop, "x.cu").text)
    assert [r.id for r in made.regions] == [1, 2, 3, 4]
    assert [(d.code, d.severity, str(d.place)) for d in made.warnings] == [
        ("CCC010", Severity.WARNING, "x.cu:6:13"),
        ("CCC012", Severity.WARNING, "x.cu:8:9"),
    ]
    none = annotate("#pragma ccc fur\nfor (;;) {\n" + good + "}\n", "x.cu", keep_going=True)
    assert (none.regions, [d.code for d in none.warnings]) == ((), ["CCC010", "CCC013"])
    assert annotate(loop, "x.cu", keep_going=True) == annotate(loop, "x.cu")


def test_a_loop_beside_the_path_is_not_in_it() -> None:
    path = "#pragma ccc if\nif (c) S; else\n#pragma ccc for variable\nfor (;;) T;\n"
    text = "#pragma ccc for\nfor (;;) {\n" + path + "}"
    assert [r.parent for r in annotate(text, "x.cu").regions] == [None, 1, 1]


def test_names_that_a_c_string_cannot_hold_are_escaped() -> None:
    text = '# 1 "C:\\\\k\\"\\303\\251%.cu"\n' + _LOOP
    annotated = annotate(text, "x.cu")
    assert annotated.regions[0].place.file == 'C:\\k"é%.cu'
    assert attributes(annotated.text)["for.begin 1"].endswith(r"file=C:\\k\"\\xe9%.cu")


def test_a_text_without_pragmas_is_left_alone() -> None:
    text = "int ccc; // pragma\n"
    assert annotate(text, "x.cu").text is text
    assert annotate(text, "x.cu").regions == ()
    assert strip(text) is text


_TWO_LOOPS = _LOOP + "#pragma ccc for\n#pragma unroll 3\nfor (;;) S;\n"


def test_only_the_accepted_are_marked_and_keep_their_ids() -> None:
    second = annotate(_TWO_LOOPS, "x.cu", only={2})
    assert [r.id for r in second.regions] == [2]
    assert read(second.text).startswith("for (;;) {} { <for.begin 2> <unroll 3> for")
    none = annotate(_TWO_LOOPS, "x.cu", only=())
    assert none.text == strip(_TWO_LOOPS) == "\nfor (;;) {}\n\n#pragma unroll 3\nfor (;;) S;\n"
    assert annotate(_TWO_LOOPS, "x.cu", only={1, 2}) == annotate(_TWO_LOOPS, "x.cu")


def test_off_leaves_a_region_and_what_needs_it_alone() -> None:
    inner = "{\n#pragma ccc if\nif (c) S;\n}\n"
    off = "#pragma ccc for off\nfor (;;) " + inner
    assert annotate(off, "x.cu").text == strip(off)
    assert [r.kind for r in annotate(off + _LOOP, "x.cu").regions] == ["for"]
    assert annotate("#pragma ccc if\n" + inner + off, "x.cu").regions == ()
    path_off = _LOOP.replace("{}", inner).replace("ccc if", "ccc if off")
    assert [(r.id, r.kind) for r in annotate(path_off, "x.cu").regions] == [(1, "for")]
    around = "#pragma ccc for\nfor (;;)\n" + off
    assert [(r.kind, r.parent) for r in annotate(around, "x.cu").regions] == [("for", None), ("if", 1)]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("#pragma ccc for\nx = 1;", "CCC012", "but is above `x`"),
        ("#pragma ccc for\n{ for (;;); }", "CCC012", "but is above `{`"),
        ("#pragma ccc if\nfor (;;) {}", "CCC012", "above an `if` or a block"),
        ("#pragma ccc if\nwhile (a) {}", "CCC012", "above an `if` or a block"),
        ("#pragma ccc if\nelse {}", "CCC012", "above the `if`"),
        ("#pragma ccc if\n}", "CCC012", "but is above nothing"),
        ("#pragma ccc if", "CCC012", "but is above nothing"),
        ("void f()\n#pragma ccc if\n{ }", "CCC012", "inside the function"),
        ("auto f = [=]() mutable\n#pragma ccc if\n{ };", "CCC012", "inside the function"),
        ("#pragma ccc for\n#pragma ccc if\nfor (;;) {}", "CCC015", "above one statement"),
        ("#pragma ccc for\nx:\n#pragma ccc for\nfor (;;) {}", "CCC015", "above one statement"),
        ("#pragma ccc for\nfor (;; {}", "CCC016", "under this pragma has no end"),
        ("#pragma ccc if\nif (a) { b;", "CCC016", "under this pragma has no end"),
        ("#pragma ccc for\n[[a for (;;) {}", "CCC016", "under this pragma has no end"),
        ("#pragma ccc fur\nfor (;;) {}", "CCC010", "did you mean `for`"),
        ("#pragma ccc for variable\nif (a) {}", "CCC012", "applies to a loop, but is above `if`"),
        ("do {}\n#pragma ccc for\nwhile (a);", "CCC012", "above the `do`"),
        ("do {}\n#pragma ccc while\nwhile (a);", "CCC012", "above the `do`"),
        ("do if (a) {} else { b; }\n#pragma ccc while\nwhile (a);", "CCC012", "above the `do`"),
        ("#pragma ccc while\ndo a;", "CCC016", "under this pragma has no end"),
        ("#pragma ccc else\nif (a) b; else c;", "CCC012", "between it and its statement"),
        (
            "#pragma ccc if\nif (a) b;\n#pragma ccc else\nelse\n#pragma ccc else\nc;",
            "CCC015",
            "one statement",
        ),
        ("#pragma ccc for reduce(+: sum, most)\nfor (;;) sum += mostly;", "CCC015", "`most`, which does not"),
    ],
)
def test_mistakes_say_what_would_work(text: str, code: str, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        annotate("x;\n" + text, "x.cu")
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert says in str(caught.value)
    assert "x.cu:" in str(caught.value)


def test_paths_need_an_annotated_loop_somewhere() -> None:
    path = "x;\n#pragma ccc if\nif (a) b;\n#pragma ccc for variable\nfor (;;) c;\n"
    assert _mistakes(path) == [("CCC013", 2, 9), ("CCC013", 4, 9)]
    assert len(annotate(path + _LOOP, "x.cu").regions) == 3


def test_a_path_of_an_included_file_may_belong_to_a_loop_of_another_one() -> None:
    path = '# 1 "x.cu"\n# 7 "h.cuh" 1\n#pragma ccc if\nif (a) b;\n# 3 "x.cu" 2\n;\n'
    made = annotate(path, "x.cu")
    assert (made.text, made.regions) == (strip(path), ())
    assert [(d.code, d.severity, str(d.place)) for d in made.warnings] == [
        ("CCC013", Severity.WARNING, "h.cuh:7:9")
    ]
    assert len(annotate(path + _LOOP, "x.cu").regions) == 2


def test_every_mistake_is_told_once_at_the_users_line() -> None:
    text = '# 7 "h.h" 1\n#pragma ccc iff\nif (a) b;\n# 3 "x.cu" 2\n;\n#pragma ccc for  block(0)\nfor (;;);\n'
    with pytest.raises(SourceError) as caught:
        annotate(text + text, "y.cu")
    assert [(d.code, str(d.place)) for d in caught.value.diagnostics] == [
        ("CCC010", "h.h:7:13"),
        ("CCC011", "x.cu:4:18"),
    ]


def test_the_users_file_is_quoted_where_it_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("\n\t#pragma  ccc  for  if if\n\tFOR(x) /* for */ for (;;) {}\n")
    preprocessed = f'# 2 "{file}"\n#pragma ccc for if if\n'
    with pytest.raises(SourceError) as caught:
        annotate(preprocessed, "x.cu")
    place = caught.value.diagnostics[0].place
    assert place == Place(str(file), Position(2, 21), "\t#pragma  ccc  for  if if")
    loop = f'# 2 "{file}"\n#pragma ccc for\n# 3 "{file}"\nfor (;;) {{}}\n'
    assert annotate(loop, "x.cu").regions[0].place.position == Position(3, 19)


def test_line_directives_in_their_c_form_count() -> None:
    text = '#line 40 "y.cu"\n\n#line 50\n#pragma ccc if\nif (a) b;\n'
    assert _mistakes(text) == [("CCC013", 50, 9)]


def test_what_stands_before_the_last_header_is_looked_at_when_needed() -> None:
    text = 'if (f(";"))\n# 2 "x.cu" 2\n#pragma ccc if\n{ S; }\n' + _LOOP
    assert read(annotate(text, "x.cu").text).startswith('if (f(";")) { <if.begin 1> { { S; } } <if.end 1> }')
    body = text.replace("if (f", "void g(f")
    assert _mistakes(body) == [("CCC012", 2, 9)]


@pytest.mark.parametrize(
    ("body", "pinned"),
    [
        ("sum += f(i);", True),
        ("float other = 0; sum += other;", True),
        ("f(a, sum); if (a) sum = a * sum;", True),
        ("for (int k = f(sum); k < 3; ++k) sum += k;", True),
        ("return_value = sum, sum = 1;", True),
        ("float sum = 0; y[i] = sum;", False),
        ("const unsigned a = 0, sum = 1; y[i] = sum;", False),
        ("float *a, sum; sum = 1;", False),
        ("for (float sum = 0; sum < 3; ++sum) f(sum);", False),
        ("std::pair<int, float> sum = g(); f(sum);", False),
        ("{ auto sum{0}; f(sum); }", False),
    ],
)
def test_a_variable_that_the_path_declares_is_not_pinned(body: str, pinned: bool) -> None:
    """The pin comes after the braces of the path, where its own variables are not known."""
    text = f"""__global__ void k(int n) {{
  float sum = 0;
#pragma ccc for reduce(+: sum)
  for (int i = 0; i < n; ++i) {{
#pragma ccc if
    if (i & 1) {{ {body} }}
  }}
}}
"""
    assert ("ccc_pin_(sum)" in annotate(text, "x.cu").text) == pinned
