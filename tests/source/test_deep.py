"""Statements nested deeper than Python's own stack."""

from __future__ import annotations

import pytest

from cccopt.source.annotate import annotate
from cccopt.source.pragmas import SourceError

DEEP = 3000

PATHS = {
    "if": "if (c) " * DEEP + "x = 1;",
    "if with else": "if (c) " * DEEP + "x = 1;" + " else x = 2;" * DEEP,
    "else if": "if (c) x = 1; else " * DEEP + "x = 2;",
    "do": "do " * DEEP + "x = 1;" + " while (c);" * DEEP,
    "both": "if (c) do " * DEEP + "x = 1;" + " while (c);" * DEEP,
    "for": "for (;;) " * DEEP + "x = 1;",
    "try": "try { " * DEEP + "x = 1;" + " } catch (...) { }" * DEEP,
    "braces": "{ " * DEEP + "x = 1;" + " }" * DEEP,
    "brackets": "x = " + "(" * DEEP + "1" + ")" * DEEP + ";",
    "labels": "[[likely]] l: " * DEEP + "x = 1;",
}


def annotated(path: str) -> str:
    return "#pragma ccc for\nfor (int i = 0; i < n; ++i) {\n#pragma ccc if\nif (c) BEGIN END after(); }\n".replace(
        "BEGIN END", path
    )


@pytest.mark.parametrize("kind", PATHS)
def test_a_deep_path_ends_where_it_does(kind: str) -> None:
    made = annotate(annotated(PATHS[kind]), "k.cu")
    assert [region.kind for region in made.regions] == ["for", "if"]
    before, _, after = made.text.partition('asm volatile("// ccc if.end 2" ::: "memory");')
    assert PATHS[kind] in before
    assert after.partition("after();")[0].split() == ["}"]


def test_an_else_belongs_to_the_innermost_if() -> None:
    made = annotate(annotated("if (a) x = 1; else x = 2;"), "k.cu")
    path = made.text.partition("// ccc if.begin 2")[2].partition("// ccc if.end 2")[0]
    assert "else x = 2;" in path
    made = annotate(annotated("if (a) do x = 1; while (b); else x = 2; else x = 3;"), "k.cu")
    path, _, rest = made.text.partition("// ccc if.begin 2")[2].partition("// ccc if.end 2")
    assert "else x = 2;" in path
    assert "else x = 3;" in rest


def test_the_work_of_a_case_may_be_deep() -> None:
    cases = f"case 1: {'{' * DEEP} x = 1; break; {'}' * DEEP} case 2: {'if (c) ' * DEEP} x = 2; break;"
    text = f"#pragma ccc for\nfor (;;) {{\n#pragma ccc switch\nswitch (k) {{ {cases} }} }}\n"
    made = annotate(text, "k.cu")
    assert [region.case for region in made.regions] == ["", "1", "2"]


@pytest.mark.parametrize(("depth", "fits"), [(190, True), (192, False), (1500, False)])
def test_annotations_nest_as_deep_as_stacks_can_fit(depth: int, fits: bool) -> None:
    paths = "".join(f"\n#pragma ccc if\nif (a{n}) {{" for n in range(depth)) + "}" * depth
    text = f"#pragma ccc for\nfor (;;) {{{paths}}}\n"
    if fits:
        assert len(annotate(text, "k.cu").regions) == depth + 1
        return
    with pytest.raises(SourceError) as caught:
        annotate(text, "k.cu")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC043"
    assert str(diagnostic.place).startswith("k.cu:386:")
    going_on = annotate(text, "k.cu", keep_going=True)
    assert len(going_on.regions) == 192
    assert going_on.warnings[0] == diagnostic.as_warning()
    assert len(going_on.regions) + len(going_on.warnings) == depth + 1
