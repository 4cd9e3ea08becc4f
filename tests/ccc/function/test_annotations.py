"""What annotations say, from the source modifier's attributes to the passes' view of them."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from cccopt.ccc.function.annotations import Annotation, annotations_of
from cccopt.clauses import Clauses
from cccopt.ptx.ir import Function
from cccopt.ptx.parser import parse
from cccopt.source.annotate import annotate
from cccopt.text import Place, Position


def _read(text: str) -> dict[int, Annotation]:
    """The annotations of a source text, by way of its markers in PTX."""
    literals = re.findall(r'asm volatile\("((?:[^"\\]|\\.)*)"', annotate(text, "k.cu").text)
    markers = "\n".join(re.sub(r"\\(.)", r"\1", literal) for literal in literals)
    module = parse(
        f".version 9.0\n.target sm_90\n.address_size 64\n.entry k()\n{{\n{markers}\nret;\n}}\n", "k.ptx"
    )
    (kernel,) = (item for item in module.items if isinstance(item, Function))
    assert kernel.body is not None
    return dict(annotations_of(kernel.body))


def _one(region: int, event: str, kind: str, line: int, **more: object) -> Annotation:
    place = Place("k.cu", Position(line, 1))
    return Annotation(region, event, kind, place=place, **more)  # type: ignore[arg-type]


def test_every_pragma_says_what_it_is() -> None:
    text = (
        "#pragma ccc for\nfor (;;) {\n"
        "#pragma ccc for variable\nfor (;;) ;\n"
        "#pragma ccc while\nwhile (a) ;\n"
        "#pragma ccc if\nif (a) b;\n"
        "#pragma ccc else\nelse c;\n"
        "#pragma ccc switch\nswitch (a) {\ncase 'x': b; break;\ndefault: c; }\n"
        "}\n"
        "#pragma ccc recursive\n__device__ int\nf() {}\n"
        "#pragma ccc grid\n__global__ void\nk() {}\n"
    )
    assert _read(text) == {
        1: _one(1, "for", "for", 2),
        2: _one(2, "for", "for variable", 4, variable=True),
        3: _one(3, "for", "while", 6, variable=True),
        4: _one(4, "if", "if", 8),
        5: _one(5, "if", "else", 10),
        6: _one(6, "if", "switch", 13, case="'x'", group=6),
        7: _one(7, "if", "switch", 14, case="default", group=6),
        8: _one(8, "for", "recursive", 18, variable=True),
        9: _one(9, "for", "grid", 21),
    }
    assert [a.pragma for a in _read(text).values()] == [a.kind for a in _read(text).values()]


@pytest.mark.parametrize(
    ("pragma", "statement", "expected"),
    [
        ("for name(rows)", "for (;;) ;", _one(1, "for", "for", 2, name="rows")),
        ("for block(64, 2) always", "for (;;) ;", _one(1, "for", "for", 2, block=(64, 2, 1), mode="always")),
        ("for independent collect(12)", "for (;;) ;", _one(1, "for", "for", 2, independent=True, collect=12)),
        (
            "for reduce(+: a, b) reduce(max: c)",
            "for (;;) a = b = c;",
            _one(1, "for", "for", 2, reductions=(("+", "a"), ("+", "b"), ("max", "c"))),
        ),
        (
            "for reduce(*:a) reduce(&:b) reduce(|:c) reduce(^:d)",
            "for (;;) a = b = c = d;",
            _one(1, "for", "for", 2, reductions=(("*", "a"), ("&", "b"), ("|", "c"), ("^", "d"))),
        ),
    ],
)
def test_every_clause_comes_through(pragma: str, statement: str, expected: Annotation) -> None:
    assert _read(f"#pragma ccc {pragma}\n{statement}\n") == {1: expected}


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [
        ("while chunk(16)", _one(2, "for", "while", 4, variable=True, chunk=16)),
        ("while hoist", _one(2, "for", "while", 4, variable=True, hoist=True)),
        ("while nohoist auto", _one(2, "for", "while", 4, variable=True, hoist=False, mode="auto")),
    ],
)
def test_every_clause_of_a_path_comes_through(pragma: str, expected: Annotation) -> None:
    text = f"#pragma ccc for\nfor (;;)\n#pragma ccc {pragma}\nwhile (a) ;\n"
    assert _read(text)[2] == expected


def test_every_clause_reaches_the_passes() -> None:
    """A clause of a pragma is one of an annotation, by way of the mark that `cccopt.source.annotate` writes."""
    assert {field.name for field in fields(Clauses)} <= {field.name for field in fields(Annotation)}
