"""Where annotations could be."""

from __future__ import annotations

import re

import pytest

from cccopt.source.annotate import annotate
from cccopt.source.candidates import FIRST, annotated_with_candidates, with_candidates

_HEAD = "__attribute__((global)) void k(int n, int* a) "


def _candidates(text: str, name: str = "x.cu") -> list[tuple[str, int]]:
    """The kinds and lines of all candidates."""
    regions = annotated_with_candidates(text, name).regions
    return [(str(region.kind), region.place.position.line) for region in regions]


def _inside(body: str) -> list[str]:
    """The kinds of the candidates in a kernel's body, but for the kernel."""
    kinds = [kind for kind, _ in _candidates(f"{_HEAD}{{ {body} }}")]
    assert kinds[0] == "grid"
    return kinds[1:]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("for (int i = 0; i < n; ++i) a[i] = 1;", ["while"]),
        ("for (int i : all) f(i);", ["while"]),
        ("while (n) --n;", ["while"]),
        ("do { --n; } while (n);", ["while"]),
        ("if (n) a[0] = 1;", ["if"]),
        ("if (n) { a[0] = 1; } else a[1] = 1;", ["if", "else"]),
        ("if (n) a[0] = 1; else if (a[0]) a[1] = 2; else a[2] = 3;", ["if", "if", "else"]),
        ("switch (n) { case 1: f(); break; case 2: g(); }", ["switch", "switch"]),
        ("for (;;) { if (n) { while (a[n]) ++n; } }", ["while", "if", "while"]),
    ],
)
def test_loops_and_branches_are_candidates(body: str, kinds: list[str]) -> None:
    assert _inside(body) == kinds


@pytest.mark.parametrize(
    "body",
    [
        "if (n) return;",
        "if (n) { return; }",
        "while (true) { break; }",
        "while (a[0]);",
        "for (int k = 0; k < 4; ++k) a[k] = 1;",
        "for (int k = 3; k >= 0; --k) a[k] = 1;",
        "if constexpr (sizeof(int) == 4) a[0] = 1;",
        "switch (n) { default: break; }",
    ],
)
def test_what_only_jumps_or_is_decided_is_none(body: str) -> None:
    assert _inside(body) == []


def test_an_else_needs_its_if() -> None:
    assert _inside("if (n) return; else a[0] = 1;") == []


def test_bounds_are_literal_only_as_a_whole() -> None:
    assert _inside("for (int k = 0; k < n + 4; ++k) a[k] = 1;") == ["while"]
    assert _inside("for (int k = n; k < 4; ++k) a[k] = 1;") == ["while"]


def test_numbers_are_those_of_no_annotation() -> None:
    regions = annotated_with_candidates(f"{_HEAD}{{ while (n) --n; }}", "x.cu").regions
    assert [region.id for region in regions] == [FIRST, FIRST + 1]


def test_functions_of_the_device_alone_have_candidates() -> None:
    text = (
        "void host(int n) { while (n) --n; }\n"
        "static __attribute__((host)) __attribute__((device)) void f(int n) { while (n) --n; }\n"
        "template <class T> __attribute__((device)) void S<T>::g(int n) { if (n) a = 1; }\n"
        "__attribute__((device)) constexpr int c(int n) { while (n) --n; return n; }\n"
    )
    # A loop over tasks is what makes any of them a region.
    kinds = _candidates(text + f"{_HEAD}{{ f(n); }}")
    assert kinds == [("while", 2), ("if", 3), ("grid", 5)]


def test_a_function_that_calls_itself_is_one() -> None:
    text = "__attribute__((device)) void f(int n) { if (n) { g(); f(n - 1); } }\n"
    assert _candidates(text + f"{_HEAD}{{ f(n); }}") == [("recursive", 1), ("if", 1), ("grid", 2)]


def test_annotated_functions_are_left_without_their_pragmas() -> None:
    annotated = f"{_HEAD}{{\n#pragma ccc for\nfor (;;) {{\n#pragma ccc if\nif (n) a[0] = 1; }} }}\n"
    other = "__attribute__((global)) void l(int n) { while (n) --n; }\n"
    assert _candidates(annotated + other) == [("grid", 6), ("while", 6)]
    assert "ccc for\n" not in with_candidates(annotated + other, "x.cu")


def test_headers_of_others_have_none() -> None:
    body = "{ while (n) --n; }"
    text = (
        f'# 1 "/usr/include/c.h" 1 3 4\n__attribute__((device)) inline void c(int n) {body}\n'
        f'# 1 "/cuda/include/cuda_runtime.h" 1\n__attribute__((device)) inline void r(int n) {body}\n'
        f'# 1 "/cuda/include/crt/math.h" 1\n__attribute__((device)) inline void m(int n) {body}\n'
        f'# 7 "own.cuh" 1\n__attribute__((device)) inline void o(int n) {body}\n'
        f'# 3 "x.cu" 2\n{_HEAD}{body}\n'
    )
    regions = annotated_with_candidates(text, "x.cu").regions
    places = [(r.place.file, r.place.position.line) for r in regions]
    assert places == [("own.cuh", 7), ("x.cu", 3), ("x.cu", 3)]


def test_a_macro_in_a_header_of_the_system_makes_it_nobody_elses() -> None:
    """As nvcc preprocesses CUB: what a macro of CUDA's gives there has a marker of its own, without the flag."""
    header = '"/usr/include/c.h"'
    text = (
        f"# 1 {header} 1 3 4\n"
        + f"# 2 {header}\n__attribute__((device))\n# 2 {header} 3 4\ninline void c() {{}}\n" * 3
        + f"# 5 {header}\n__attribute__((device)) inline void d(int n) {{ while (n) --n; }}\n"
        + f'# 3 "x.cu" 2\n{_HEAD}{{ while (n) --n; }}\n'
    )
    assert _candidates(text) == [("grid", 3), ("while", 3)]


def test_a_macro_of_the_system_in_a_file_of_the_users_leaves_it_the_users() -> None:
    text = f'# 3 "x.cu"\n{_HEAD}{{ while (n != \n# 3 "x.cu" 3 4\n0x7fffffff\n# 3 "x.cu"\n) ++n; }}\n'
    assert _candidates(text) == [("grid", 3), ("while", 3)]


def test_lines_stay_what_they_were() -> None:
    text = f'# 10 "x.cu"\n{_HEAD}{{\n  while (n) {{ if (a[n]) f(); else g();\n }}\n  if (n) h();\n}}\n'
    assert _candidates(text) == [("grid", 10), ("while", 11), ("if", 11), ("else", 11), ("if", 13)]


def test_nothing_is_said_of_a_text_without_kernels() -> None:
    assert with_candidates("int f(int n) { while (n) --n; return n; }\n", "x.cu").count("#pragma") == 0


def test_a_text_without_the_markers_is_the_text() -> None:
    text = f"{_HEAD}{{ while (n) --n; }}\n"
    made = with_candidates(text, "x.cu")
    assert re.sub(r"\n#pragma ccc .*\n# .*\n", "", made) == text
    assert annotate(made, "x.cu").regions
